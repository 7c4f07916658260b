# With plain Python numbers there is nothing left to fold: Python adds them while the function is
# traced. The addition is in the graph only if the tracer's own objects are added.
# torch 2.13.0, jax 0.10.2, jaxlib 0.10.2; Python 3.11, Linux x86-64, 2026-11.
# `pip install torch==2.13.0 jax==0.10.2 jaxlib==0.10.2;
# python course/exhibits/python-folds-first.py`
import os

os.environ["JAX_PLATFORMS"] = "cpu"
import jax
import jax.numpy as jnp
import torch.fx


def numbers(x):
    a, b = 2.0, 3.0
    c = a + b
    return c * x


def arrays(x):
    a, b = jnp.float32(2.0), jnp.float32(3.0)
    c = a + b
    return c * x


x = jnp.ones(7, jnp.float32)
print("a, b = 2.0, 3.0                             traced by torch.fx:")
print(*[line for line in torch.fx.symbolic_trace(numbers).code.splitlines() if "=" in line], sep="\n")
print("\na, b = 2.0, 3.0                             traced by jax.make_jaxpr:")
print(jax.make_jaxpr(numbers)(x))
print("\na, b = jnp.float32(2.0), jnp.float32(3.0)   traced by jax.make_jaxpr:")
print(jax.make_jaxpr(arrays)(x))
