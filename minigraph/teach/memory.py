"""Instances of memory planning for chapter 11, and how a learner's planner does on them."""

from __future__ import annotations

import csv
import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path

from ..access import whole
from ..command.tables import table
from ..ir import Graph
from ..models import smollm2
from ..passes import PASSES
from ..pipeline import run_pass
from ..plan import ALIGNMENT, Plan, make_plan
from ..planners import Buffer, greedy_by_size, lower_bound
from ..text import parse
from ..tracing import spec, trace
from . import tour
from .examples import frozen_layer
from .judge import NOT_ATTEMPTED, attempt
from .judge_memory import fault_of, footprint_of, order_fault, peak_of

SEEDS = {"network A": (26, 14), "network B": (40, 24), "network C": (40, 40)}  # seed, launches


def buffers_of(plan: Plan) -> list[Buffer]:
    """What a plan's planner had to place: the arena's regions, sizes rounded up as the plan rounds them."""
    return [Buffer(name, region.start, region.end, -(-region.nbytes // ALIGNMENT) * ALIGNMENT)
            for name, region in plan.regions.items() if region.where == "arena"]


def optimized(graph: Graph) -> Graph:
    """Folded, simplified, merged and without dead code."""
    for name in ("fold", "simplify", "dce", "cse", "dce"):
        graph = run_pass(name, PASSES[name], graph).after
    return graph


def prefill_graph(weights: smollm2.Weights, tokens: int) -> Graph:
    """SmolLM2's prefill: inputs ``tokens`` and the cache, ``k0`` ``v0`` ``k1`` …; outputs logits and the new cache."""
    names = [f"{kind}{layer}" for layer in range(weights.config.layers) for kind in "kv"]
    shapes = {name: spec(f"f32{list(array.shape)}") for name, array in zip(names, smollm2.zero_cache(weights))}
    return trace(lambda tokens, **cache: smollm2.prefill(weights, tokens, tuple(cache.values())), name="prefill",
                 tokens=f"i32[{tokens}]", **shapes)


@cache
def smollm2_prefill(tokens: int = 128) -> Graph:
    """The graph of the real model's sizes. A plan needs shapes only, so it is the same where the model is absent."""
    return prefill_graph(tour.shaped(tour.SIZES, tour.MAX_LEN), tokens)


@cache
def tiny_prefill(tokens: int = 8) -> Graph:
    """The same of a model with two narrow layers."""
    return prefill_graph(smollm2.tiny(), tokens)


def cache_names(graph: Graph) -> list[str]:
    """The inputs that hold the cache."""
    return [node.name for node in graph.inputs if node.name != "tokens"]


EXPERTS = """graph experts(x: f32[16,64], u0: f32[64,256], u1: f32[64,256], u2: f32[64,256],
              d0: f32[256,64], d1: f32[256,64], d2: f32[256,64]) -> (y) {
  wide0 = matmul(x, u0)
  wide1 = matmul(x, u1)
  wide2 = matmul(x, u2)
  narrow0 = matmul(wide0, d0)
  narrow1 = matmul(wide1, d1)
  narrow2 = matmul(wide2, d2)
  sum01 = add(narrow0, narrow1)
  y = add(sum01, narrow2)
  return y
}"""


def experts(*order: str) -> Graph:
    """Three experts, each a wide product and a narrow one, and their sum; ``order`` names the nodes in another order."""
    graph = parse(EXPERTS)
    given = [node for node in graph.nodes if node.op == "input"]
    rest = [graph[name] for name in order] if order else [node for node in graph.nodes if node.op != "input"]
    return Graph(graph.name, (*given, *rest), graph.outputs)


def network(seed: int, launches: int) -> list[Buffer]:
    """Buffers as a network has them: most live for two launches, some (skips) for long; few sizes, all multiples of 64."""
    draw = random.Random(seed)
    found = []
    for start in range(launches):
        long = draw.random() < 0.25
        end = min(launches, start + (draw.randint(3, max(4, launches // 3)) if long else draw.choice((2, 2, 3))))
        found.append(Buffer(f"v{start}", start, end, ALIGNMENT * draw.choice((1, 2, 4, 8, 8, 16, 32))))
    return found


@cache
def networks() -> dict[str, list[Buffer]]:
    """The instances on which a planner's footprint is judged."""
    drawn = {name: network(*which) for name, which in SEEDS.items()}
    graphs = {"experts": experts(), "tiny SmolLM2": optimized(tiny_prefill())}
    return drawn | {name: buffers_of(make_plan(graph)) for name, graph in graphs.items()}


def compared() -> dict[str, list[Buffer]]:
    """Those, and one on which the largest first is not the best order."""
    return networks() | {"the layer": buffers_of(make_plan(optimized(frozen_layer())))}


def try_plan(function: Callable) -> None:
    """Print what a planner's plans take, beside the bound and greedy by size."""
    rows = []
    for name, buffers in compared().items():
        offsets, failure = attempt(function, (list(buffers),), None)
        if failure is NOT_ATTEMPTED:
            return print(f"{getattr(function, '__name__', 'it')}: not attempted yet.")
        if failure or fault_of(buffers, offsets, False):
            return print(f"The plan of {name} is not right yet: check says why.")
        bound, greedy, mine = lower_bound(buffers), greedy_by_size(buffers).footprint, footprint_of(buffers, offsets)
        rows.append({"instance": name, "buffers": len(buffers), "lower bound": bound, "greedy by size": greedy,
                     "yours": mine, "yours / bound": f"{mine / bound:.2f}"})
    print(table(rows), end="")


def try_order(function: Callable) -> None:
    """Print the peak of the given order and of the learner's, for each list of launches."""
    rows = []
    for number, case in enumerate(ORDERS):
        launches, sizes, outputs = case
        order, failure = attempt(function, (list(launches), dict(sizes), outputs), None)
        if failure is NOT_ATTEMPTED:
            return print(f"{getattr(function, '__name__', 'it')}: not attempted yet.")
        if failure or order_fault(case, order, None):
            return print("This is no order yet: check says why.")
        reads = dict(launches)
        rows.append({"list": number, "launches": len(launches), "given": peak_of(*case),
                     "yours": peak_of([(name, reads[name]) for name in order], sizes, outputs)})
    print(table(rows), end="")


# ---- plans that are wrong on purpose --------------------------------------------------------------------------------


def written_over(plan: Plan, name: str, operand: str) -> Plan:
    """The plan, with the result ``name`` in the memory of its operand, whatever that does."""
    access = plan.access | {name: whole(plan.access[operand].buffer, plan.type(name))}
    launches = tuple(launch._replace(in_place=operand) if launch.name == name else launch for launch in plan.launches)
    return replace(plan, access=access, launches=launches)


def freed_early(plan: Plan, name: str) -> Plan:
    """The plan, with a buffer that is given up one launch before its last reader."""
    region = plan.regions[name]
    return replace(plan, regions=plan.regions | {name: region._replace(end=region.end - 1)})


def read_instance(path: str | Path) -> list[Buffer]:
    """Buffers from a file with the columns id, lower, upper and size, as MiniMalloc's are."""
    with open(path, newline="", encoding="utf-8") as file:
        return [Buffer(row["id"], int(row["lower"]), int(row["upper"]), int(row["size"])) for row in csv.DictReader(file)]


# ---- lists of launches for reorder ------------------------------------------------------------------------------------


def listed(text: str, sizes: Iterable[int], outputs: str) -> tuple:
    """``a=x b=ax`` with a size for each -> (launches, sizes, outputs)."""
    launches = [(part.split("=")[0], tuple(part.split("=")[1])) for part in text.split()]
    return launches, dict(zip((name for name, _ in launches), sizes)), tuple(outputs)


ORDERS = (
    listed("y=x", (64,), "y"),
    listed("a=x y=a", (64, 64), "y"),
    listed("a=x b=x c=a d=b y=cd", (512, 512, 64, 64, 64), "y"),
    listed("a=x b=x z=b y=a", (256, 512, 64, 64), "zy"),
    listed("a=x u=x b=a y=b", (64, 128, 64, 64), "y"),
    listed("a=x c=x b=a d=c y=bd", (128, 192, 512, 64, 64), "y"),
    listed("a=x b=x c=x d=a e=b f=c g=de y=gf", (1024, 1024, 1088, 64, 64, 64, 64, 64), "y"),
    listed("a=x b=a c=a d=b e=c f=x h=f y=deh", (64, 512, 512, 64, 64, 256, 64, 64), "y"),
    listed("w=x t=w a=t b=t c=t d=t n=w y=nabcd", (1024, 64, 64, 64, 64, 64, 128, 64), "y"),
    listed("s=x a=s b=s c=s p=a q=b r=c y=pqr", (128, 640, 512, 384, 64, 64, 64, 64), "ys"),
)
