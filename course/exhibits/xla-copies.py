# XLA copies a cheap value into both loops that read it, so that it need not be stored.
# An exponential that a broadcast would repeat it computes apart, once.
# jax 0.10.2, jaxlib 0.10.2, on the CPU; Python 3.11, Linux x86-64, 2026-11.
# `pip install jax==0.10.2 jaxlib==0.10.2; python course/exhibits/xla-copies.py`
import inspect
import os
import re

os.environ["JAX_PLATFORMS"] = "cpu"
import jax
import jax.numpy as jnp


def shared(x):
    e = x * 2 + 1
    return e / jnp.sum(e, axis=1, keepdims=True)


def repeated(x, v):
    return x + jnp.exp(v)


def show(function, *shapes):
    text = jax.jit(function).lower(*[jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]).compile().as_text()
    print(inspect.getsource(function).rstrip())
    for loop in re.findall(r"^%(?:fused|wrapped)\S* .*?^}", text, re.MULTILINE | re.DOTALL):
        ops = [op for op in re.findall(r"= \S+ ([\w-]+)\(", loop) if op not in ("parameter", "constant", "broadcast")]
        print("-> one loop:", ", ".join(ops))


show(shared, (64, 64))
print()
show(repeated, (64, 64), (64,))
