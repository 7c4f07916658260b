# XLA turns exp(x) * exp(-x) into exp(x + -x): true for real numbers. In floats the answer changes
# where exp(x) overflows.
# jax 0.10.2, jaxlib 0.10.2, on the CPU; Python 3.11, Linux x86-64, 2026-11.
# `pip install jax==0.10.2 jaxlib==0.10.2; python course/exhibits/xla-exp-rule.py`
import os
import re

os.environ["JAX_PLATFORMS"] = "cpu"
import jax
import jax.numpy as jnp


def f(x):
    return jnp.exp(x) * jnp.exp(-x)


x = jnp.array([1, 50, 100], jnp.float32)
lowered = jax.jit(f).lower(x)
print("what JAX hands to XLA (StableHLO):")
print(*[line[2:] for line in lowered.as_text().splitlines() if "stablehlo." in line], sep="\n")
print("\nwhat XLA compiles (optimized HLO): one fused loop")
body = re.search(r"%fused_computation.*?\n}", lowered.compile().as_text(), re.DOTALL)[0]
print(re.sub(r", metadata=\{.*?\}|\{0\}", "", body))
print("\nx                          ", *(f"{float(value):6.4g}" for value in x))
print("f(x), operation by operation", *(f"{float(value):6.4g}" for value in f(x)))
print("f(x), compiled by jax.jit   ", *(f"{float(value):6.4g}" for value in jax.jit(f)(x)))
