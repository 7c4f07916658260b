# torch.fx's eliminate_dead_code removes the dead values, and two effects with them. What has no
# used result goes, unless fx knows it as an effect: x.add_(1) goes, and the answer changes.
# torch 2.13.0; Python 3.11, Linux x86-64, 2026-11.
# `pip install torch==2.13.0; python course/exhibits/fx-dead-code.py`
import torch
import torch.fx


@torch.fx.wrap  # a function of ours, which fx records and does not look into
def report(x):
    print("x is", x)


def f(x):
    dead = torch.sin(x)
    torch.exp(dead)
    report(x)
    x.add_(1)  # changes x in place
    return x * 2


def show(title):
    print(title)
    print(*[line for line in graph.code.splitlines() if " = " in line or "return" in line], sep="\n")
    print(f"called with 3.0: {graph(torch.tensor(3.0)).item()}")


graph = torch.fx.symbolic_trace(f)
show("as traced:")
graph.graph.eliminate_dead_code()
graph.recompile()
show("\nafter eliminate_dead_code:")
