"""What the tests draw from: random graphs, and hypothesis' own way into the same generator, which shrinks."""

from __future__ import annotations

import random
from itertools import product

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from minigraph.fuzz import evaluate
from minigraph.ir import Builder, Graph
from minigraph.ops import OPS, Kind
from minigraph.passes.simplify import literal_bytes
from minigraph.random_graphs import ACCEPTED, SPECIAL, Grower, random_graph, random_inputs, sample
from minigraph.text import parse_element
from minigraph.types import DTYPES, Type

BOUNDED = settings(max_examples=60, deadline=None, derandomize=True, database=None)


def samples(count: int, seed: str | int = 0) -> list[tuple[Graph, dict]]:
    """The first graphs of a seed, with inputs."""
    return [sample(seed, index) for index in range(count)]


@st.composite
def graphs(draw, size: int = 6) -> tuple[Graph, dict]:
    """A random graph with inputs; hypothesis makes every choice, so it shrinks them."""
    rng = draw(st.randoms(use_true_random=False))
    graph = random_graph(rng, size)
    return graph, random_inputs(rng, graph)


def one_op(op: str, index: int) -> tuple[Graph, dict, str] | None:
    """A graph around one node of ``op``, inputs for it, and the node's name; None where the dice did not allow it."""
    rng = random.Random(f"{op}/{index}")
    grow = Grower(rng)
    grow.leaves_are_inputs = 0.7
    name = grow.random_node(op)
    if name is None:
        return None
    graph = grow.builder.build({} if grow.type(name).dtype == "token" else {"y": name})
    return graph, random_inputs(rng, graph), name


def values_of(graph: Graph, inputs: dict) -> dict:
    """Every value of a graph that runs without an error."""
    values, _, error = evaluate(graph, inputs)
    assert error is None, error
    return values


# ---- atlases: every small expression over one dtype, in one graph -------------------------------------------------------


def atlas(dtype: str) -> tuple[Graph, dict]:
    """All unary functions of unary functions, all binary ones of x, y, their functions and the usual constants, and
    chains with two constants: each an output, over all pairs of special values."""
    builder = Builder(f"atlas_{dtype}")
    pool = SPECIAL[dtype]
    x, y = builder.input("x", Type(dtype, (len(pool) ** 2,))), builder.input("y", Type(dtype, (len(pool) ** 2,)))
    inputs = {"x": np.repeat(pool, len(pool)), "y": np.tile(pool, len(pool))}
    consts = [builder.const(np.array(parse_element(text, dtype), DTYPES[dtype])) for text in CONSTANTS if literal_bytes(text, dtype)]
    unary = [op for op in ACCEPTED if OPS[op].kind is Kind.ELEMENTWISE and OPS[op].arity == (1, 1) and op != "cast" and dtype in ACCEPTED[op]]
    binary = [op for op in ACCEPTED if OPS[op].arity == (2, 2) and dtype in ACCEPTED[op]]
    firsts = [x, *(builder.emit(op, x) for op in unary)]
    seconds = [x, y, *(builder.emit(op, y) for op in unary if op in ("neg", "abs", "bitwise_not", "sqrt")), *consts]
    made = [builder.emit(op, first) for op in unary for first in firsts[1:]]
    signs = [first for first, op in zip(firsts, ("", *unary)) if op in ("", "neg", "abs", "bitwise_not", "sqrt")]
    for op, first, second in product(binary, signs, seconds):
        if op == "pow" and (second not in consts or dtype[0] == "i"):
            continue
        made.append(builder.emit(op, first, second))
        if first == x or (op in ("sub", "div") and second == y):
            made += [builder.emit(op, second, first)] if op != "pow" else []
            made += [builder.emit("neg", made[-1])] if "neg" in unary and builder.type(made[-1]).dtype == dtype else []
    chains = [op for op in ("add", "sub", "mul", "div", "maximum") if op in binary]
    for inner, outer, c1, c2 in product(chains, chains, (y, *consts[2:5]), (y, *consts[3:5])):
        made.append(builder.emit(outer, builder.emit(inner, x, c1), c2))
    condition = builder.emit("lt", x, y)
    for chosen in ((x, x), (x, y), (consts[0], y), (x, consts[-1])):
        made.append(builder.emit("where", condition, *chosen))
    return builder.build({f"out.{i}": name for i, name in enumerate(made)}), inputs


CONSTANTS = ("0", "-0.0", "1", "-1", "2", "3", "0.5", "inf", "-inf", "nan", "true", "false")


def cast_atlas() -> tuple[Graph, dict]:
    """Every cast of every cast, over the special values of every dtype."""
    builder, inputs, made = Builder("casts"), {}, []
    for dtype, pool in SPECIAL.items():
        x = builder.input(f"x_{dtype}", Type(dtype, pool.shape))
        inputs[x] = pool
        for middle in DTYPES:
            once = builder.emit("cast", x, dtype=middle)
            made += [builder.emit("cast", once, dtype=last) for last in DTYPES]
    return builder.build({f"out.{i}": name for i, name in enumerate(made)}), inputs
