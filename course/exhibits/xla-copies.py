# Two loops read e. A cheap e XLA computes in both, so that it need not be stored; an
# exponential it computes once. One that a broadcast would repeat it computes apart, too.
# jax 0.10.2, jaxlib 0.10.2, on the CPU; Python 3.11, Linux x86-64, 2026-11.
# `pip install jax==0.10.2 jaxlib==0.10.2; python course/exhibits/xla-copies.py`
import inspect
import os
import re

os.environ["JAX_PLATFORMS"] = "cpu"
import jax
import jax.numpy as jnp


def cheap(x):
    e = x * 2 + 1
    return jnp.sqrt(e), jnp.sin(e)


def dear(x):
    e = jnp.exp(x)
    return jnp.sqrt(e), jnp.sin(e)


def repeated(x, v):
    return x + jnp.exp(v)


def show(function, *shapes):
    text = jax.jit(function).lower(*[jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]).compile().as_text()
    print(inspect.getsource(function).rstrip())
    for loop in re.findall(r"^%(?:fused|wrapped)\S* .*?^}", text, re.MULTILINE | re.DOTALL):
        ops = [op for op in re.findall(r"= \S+ ([\w-]+)\(", loop) if op not in ("parameter", "constant", "broadcast")]
        print("-> one loop:", ", ".join(ops))


show(cheap, (64, 64))
print()
show(dear, (64, 64))
print()
show(repeated, (64, 64), (64,))
