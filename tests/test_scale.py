"""100,000 nodes at recursion limit 120: nothing recurses over a graph, and nothing gives up."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from minigraph.errors import MinigraphError
from minigraph.ir import Builder, Graph
from minigraph.pipeline import DEFAULT, optimize
from minigraph.run_numpy import compile
from minigraph.text import parse, print_diff, print_graph
from minigraph.verify import verify

SIZE = 100_000
LIMIT = 120
ROOT = Path(__file__).parent.parent


def chain() -> Graph:
    """Every node reads the one before: as deep as it is long."""
    builder = Builder()
    value = builder.input("x", "f32[2]")
    while len(builder.nodes) < SIZE:
        value = builder.emit(("sin", "neg", "neg", "abs")[len(builder.nodes) % 4], value)
    return builder.build({"y": value})


def comb() -> Graph:
    """A spine with teeth: constants, duplicates, and one chain of effects through everything."""
    builder, token = Builder(), ()
    x = value = builder.input("x", "f32[2]")
    while len(builder.nodes) < SIZE:
        tooth = builder.const(np.float32(len(builder.nodes) % 7))
        twin = builder.emit("mul", x, tooth)
        value = builder.emit("add", value, builder.emit("mul", tooth, x))
        value = builder.emit("maximum", value, twin)
        token = (builder.emit("assert_finite", twin, *token),)
    return builder.build({"y": value})


def fan() -> Graph:
    """One value with tens of thousands of readers, one node with tens of thousands of operands, many outputs, many dead."""
    builder = Builder()
    x = builder.input("x", "f32[2]")
    values = [builder.emit(("sin", "exp", "neg")[i % 3], x) for i in range(SIZE // 2)]
    total = builder.emit("concat", *values, axis=0)
    rest = [builder.emit("abs", value) for value in values[:SIZE // 2 - 3]]
    return builder.build({"y": total, **{f"out{i}": value for i, value in enumerate(rest[::7])}})


SHAPES = {shape.__name__: shape for shape in (chain, comb, fan)}


def work(name: str) -> None:
    graph = SHAPES[name]()
    sys.setrecursionlimit(LIMIT)
    verify(graph)
    text = print_graph(graph)
    assert parse(text) == graph
    optimized = optimize(graph)
    assert {stage.name for stage in optimized.history} == set(DEFAULT) and not optimized.history[-1].report
    x = np.array([0.5, -2], np.float32)
    before, after = compile(graph)(x=x), compile(optimized.graph)(x=x)
    assert all(before[public].tobytes() == after[public].tobytes() for public in before)
    print_diff(graph, optimized.graph)
    assert optimized.why("y")
    broken = Graph(graph.name, (*graph.nodes[:SIZE // 2], *graph.nodes[SIZE // 2 + 1:]), graph.outputs)
    try:
        verify(broken)
        raise AssertionError("a node in the middle is gone, and the graph verifies")
    except MinigraphError:
        pass
    print("done", len(graph), len(optimized.graph))


@pytest.mark.parametrize("name", SHAPES)
def test_large_graphs(name):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(Path(__file__).parent)])}
    code = f"from test_scale import work; work({name!r})"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.stdout.startswith("done"), done.stderr[-2000:]
