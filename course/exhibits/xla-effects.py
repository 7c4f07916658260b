# jax.debug.print has no result that anybody uses, and stays, because JAX records it as an effect.
# The unused sine and tanh are gone before XLA sees the program.
# jax 0.10.2, jaxlib 0.10.2, on the CPU; Python 3.11, Linux x86-64, 2026-11.
# `pip install jax==0.10.2 jaxlib==0.10.2; python course/exhibits/xla-effects.py`
import os
import re

os.environ["JAX_PLATFORMS"] = "cpu"
import jax
import jax.numpy as jnp


def f(x):
    dead = jnp.sin(x)
    jnp.tanh(dead)
    jax.debug.print("x is {}", x)
    return jnp.exp(x)


vector = jax.ShapeDtypeStruct((7,), jnp.float32)
traced = jax.make_jaxpr(f)(vector)
print("the jaxpr, as traced:           ", *(equation.primitive for equation in traced.eqns))
print("what its equations declare:     ", *({str(e) for equation in traced.eqns for e in equation.effects}))
lowered = jax.jit(f).lower(vector)
print("what JAX hands to XLA:          ", *re.findall(r"stablehlo\.(\w+) [%@]", lowered.as_text()))
print("in that text:                   ", *re.findall(r"@\w*callback|has_side_effect = \w+", lowered.as_text()))
compiled = lowered.compile().as_text()
print("what XLA compiles:              ", *re.findall(r" (custom-call|exponential|sine|tanh)\(", compiled))
print("in that text:                   ", *re.findall(r"custom_call_has_side_effect=\w+", compiled))
