# The arithmetic left of ((3 + 4) * x) + (5 * 0), and the answer at x = -0.0, where IEEE's is 0.0.
# Folding and dead-code elimination end at mul add, which is (7 * x) + 0. Who ends at mul used
# algebra that is inexact: the answer is -0.0.
# torch 2.13.0, jax 0.10.2, jaxlib 0.10.2, on the CPU; Python 3.11, Linux x86-64, 2026-11.
# `pip install torch==2.13.0 jax==0.10.2 jaxlib==0.10.2; python course/exhibits/plus-zero.py`
import os
import re

os.environ["JAX_PLATFORMS"] = "cpu"
import jax
import jax.numpy as jnp
import torch
from torch._inductor.constant_folding import constant_fold


def formula(x, number):
    return ((number(3.0) + number(4.0)) * x) + (number(5.0) * number(0.0))


class Module(torch.nn.Module):
    def __init__(self):
        super().__init__()
        for value in 3, 4, 5, 0:
            self.register_buffer(f"b{value}", torch.tensor(float(value)))

    def forward(self, x):
        return formula(x, lambda value: getattr(self, f"b{value:.0f}"))


def compiled(number):
    left = []
    torch._inductor.config.post_grad_custom_post_pass = lambda graph: left.append(str(graph))
    answer = torch.compile(lambda x: formula(x, number))(torch.tensor([-0.0]))
    return left[0], answer


def row(name, graph, answer=""):
    left = " ".join(re.findall(r"(?:aten\.|stablehlo\.|[\]}] )(add|mul)", graph))
    print(f"{name:50} {left:17} {''.join(f'{float(value):4}' for value in answer)}".rstrip())


module = torch.export.export(Module(), (torch.tensor([-0.0]),)).module()
row("torch.export", str(module.graph), module(torch.tensor([-0.0])))
constant_fold(module)
module.graph.eliminate_dead_code()
row("the same, constant_fold and eliminate_dead_code", str(module.graph), module(torch.tensor([-0.0])))
row("torch.compile, with 3.0 for 3", *compiled(float))
row("torch.compile, with torch.tensor(3.0) for 3", *compiled(torch.tensor))
lowered = jax.jit(lambda x: formula(x, jnp.float32)).lower(jnp.array([-0.0], jnp.float32))
row("jax.jit, before XLA (StableHLO)", lowered.as_text())
row("jax.jit, after XLA", lowered.compile().as_text(), lowered.compile()(jnp.array([-0.0], jnp.float32)))
