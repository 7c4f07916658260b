# XLA merges two equal exponentials: JAX hands over both, and the compiled code has one.
# jax 0.10.2, jaxlib 0.10.2, on the CPU; Python 3.11, Linux x86-64, 2026-11.
# `pip install jax==0.10.2 jaxlib==0.10.2; python course/exhibits/xla-merges.py`
import os
import re

os.environ["JAX_PLATFORMS"] = "cpu"
import jax
import jax.numpy as jnp


def f(x):
    return jnp.exp(x) / (1 + jnp.exp(x))


lowered = jax.jit(f).lower(jax.ShapeDtypeStruct((7,), jnp.float32))
print("what JAX hands to XLA (StableHLO):")
print(*[line[2:] for line in lowered.as_text().splitlines() if "stablehlo." in line], sep="\n")
print("\nwhat XLA compiles (optimized HLO): one fused loop")
body = re.search(r"%fused_computation.*?\n}", lowered.compile().as_text(), re.DOTALL)[0]
print(re.sub(r", metadata=\{.*?\}|\{0\}", "", body))
