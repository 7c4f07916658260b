"""What the tests draw from: random graphs, and hypothesis' own way into the same generator, which shrinks."""

from __future__ import annotations

import random

from hypothesis import settings
from hypothesis import strategies as st

from minigraph.fuzz import evaluate
from minigraph.ir import Graph
from minigraph.random_graphs import Grower, random_graph, random_inputs, sample

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
