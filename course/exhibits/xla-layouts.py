# XLA writes a layout behind each shape: its axes, the one with stride 1 first. {1,0} is row by row,
# {0,1} column by column. It computes exp and + 1 in the order in which x lies. The transpose only
# gets another layout, and moves nothing; the copy behind it writes the result row by row.
# jax 0.10.2, jaxlib 0.10.2, on the CPU; Python 3.11, Linux x86-64, 2026-11.
# `pip install jax==0.10.2 jaxlib==0.10.2; python course/exhibits/xla-layouts.py`
import inspect
import os
import re

os.environ["JAX_PLATFORMS"] = "cpu"
import jax
import jax.numpy as jnp


def turned(x):
    return jnp.exp(x.T) + 1


text = jax.jit(turned).lower(jax.ShapeDtypeStruct((64, 32), jnp.float32)).compile().as_text()
print(inspect.getsource(turned).rstrip())
print("->")
for line in text.splitlines():
    if re.match(r"  (ROOT )?%\w+", line) and not re.search(r" (broadcast|constant)\(", line):
        print(re.sub(r", (metadata|kind|dimensions)=.*|ROOT |%", "", line))
