# XLA folds the example graph: JAX hands over 2 + 3 unfolded, and the compiled code holds the
# constant 5.
# jax 0.10.2, jaxlib 0.10.2, on the CPU; Python 3.11, Linux x86-64, 2026-11.
# `pip install jax==0.10.2 jaxlib==0.10.2; python course/exhibits/xla-folds.py`
import os
import re

os.environ["JAX_PLATFORMS"] = "cpu"
import jax
import jax.numpy as jnp


def example(x, y):
    a, b = jnp.float32(2), jnp.float32(3)  # arrays of JAX, so that Python does not add them itself
    c = a + b
    d = c * x
    e = jnp.sin(d)
    f = jnp.exp(e)
    g = f + c
    return g * y


vector = jax.ShapeDtypeStruct((7,), jnp.float32)
lowered = jax.jit(example).lower(vector, vector)
print("what JAX hands to XLA (StableHLO):")
for line in lowered.as_text().splitlines():
    if "stablehlo." in line:
        print(line[2:])
print("\nwhat XLA compiles (optimized HLO): one fused loop")
body = re.search(r"%fused_computation.*?\n}", lowered.compile().as_text(), re.DOTALL)[0]
print(re.sub(r", metadata=\{.*?\}|\{0\}", "", body))
