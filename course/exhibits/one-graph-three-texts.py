# Steps of the example graph (c = a + b, d = c * x, e = sin d) as three compilers write them:
# PyTorch's FX graph, JAX's jaxpr, and StableHLO, the MLIR text that JAX hands to XLA.
# torch 2.13.0, jax 0.10.2, jaxlib 0.10.2; Python 3.11, Linux x86-64, 2026-11.
# `pip install torch==2.13.0 jax==0.10.2 jaxlib==0.10.2;
# python course/exhibits/one-graph-three-texts.py`
import os
import re
import textwrap

os.environ["JAX_PLATFORMS"] = "cpu"
import jax
import jax.numpy as jnp
import torch.fx


def in_torch(a, b, x):
    c = a + b
    d = c * x
    return torch.sin(d)


def in_jax(a, b, x):
    c = a + b
    d = c * x
    return jnp.sin(d)


print("torch.fx:")
print(str(torch.fx.symbolic_trace(in_torch).graph).strip().replace(", kwargs = {}", ""))
number, vector = jax.ShapeDtypeStruct((), jnp.float32), jax.ShapeDtypeStruct((7,), jnp.float32)
print("\njaxpr:", jax.make_jaxpr(in_jax)(number, number, vector), sep="\n")
print("\nStableHLO:")
text = jax.jit(in_jax).lower(number, number, vector).as_text()
function = "\n".join(text.splitlines()[1:-1])  # without the module around it
print(textwrap.dedent(re.sub(r" \{jax.result_info.*?\}|public ", "", function)))
