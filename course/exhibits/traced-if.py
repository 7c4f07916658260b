# `if total > 0` needs a number and the tracer has none: torch.fx and JAX stop. torch.compile ends
# the graph there, lets Python decide, and makes a graph for each side that is taken. lax.select
# puts the choice into the graph.
# torch 2.13.0, jax 0.10.2, jaxlib 0.10.2; Python 3.11, Linux x86-64, 2026-11.
# `pip install torch==2.13.0 jax==0.10.2 jaxlib==0.10.2; python course/exhibits/traced-if.py`
import os

os.environ["JAX_PLATFORMS"] = "cpu"
import jax
import jax.numpy as jnp
import torch.fx


def f(x):
    total = x.sum()
    if total > 0:
        return x * 2
    return x - 1


for tool, trace in ("torch.fx", torch.fx.symbolic_trace), ("JAX", jax.make_jaxpr(f)):
    try:
        trace(f if tool == "torch.fx" else jnp.ones(7))
    except Exception as error:
        print(f"{tool}: {type(error).__name__}:", str(error).splitlines()[0], sep="\n  ")

print("torch.compile, called with ones, then with zeros, got these graphs:")
graphs = []
compiled = torch.compile(f, backend=lambda module, inputs: graphs.append(module.graph) or module)
compiled(torch.ones(7)), compiled(torch.zeros(7))
for graph in graphs:
    print("  ", *(node.name for node in graph.nodes if node.op != "placeholder"))

print("with jax.lax.select(total > 0, x * 2, x - 1) for the if:")
print(jax.make_jaxpr(lambda x: jax.lax.select(x.sum() > 0, x * 2, x - 1))(jnp.ones(7)))
