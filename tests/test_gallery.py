"""The judge: the suite as a function. It must reject every wrong pass, for the right reason, and accept the right ones."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import islice

import numpy as np
import pytest
from strategies import atlas, cast_atlas, samples
from test_passes import everything, other_names, rename
from wrong_passes import RIGHT, WRONG

import minigraph as mg
from minigraph.fuzz import Finding, check_pass, evaluate, run_outputs, tainted
from minigraph.ir import Builder, Graph
from minigraph.types import same_bits

# Small graphs in which mistakes meet that are rare in random ones.
KILLERS = """
graph growth() -> (y) {
  zero = const(0.0) : f32[]
  y = broadcast_to(zero) {shape=[512,512]}
  return y
}
graph square(x: f32[3,3], y: f32[3,3]) -> (a, b, c, d, e) {
  a = sum(x) {axis=[0]}
  b = sum(x) {axis=[1]}
  c = sub(x, y)
  d = sub(y, x)
  m = maximum(x, y)
  n = maximum(y, x)
  e = sub(m, n)
  return a, b, c, d, e
}
graph draws() -> (y, s) {
  a = random() {shape=[3], site=0}
  b = random() {shape=[3], site=1}
  y = sub(a, b)
  s = sum(a) {axis=[0]}
  return y, s
}
graph prints(x: f32[2]) -> (y) {
  p = print(x)   # m.py:1
  q = print(x, p)   # m.py:2
  y = neg(x)   # m.py:3
  r = print(y, q)   # m.py:4
  return y
}
graph checks(x: f32[2]) -> (y) {
  inf = const(0.0) : f32[]
  y = div(x, inf)
  a = assert_finite(y)
  return y
}
graph unused(a: f32[2], b: f32[2]) -> (y) {
  y = neg(b)
  return y
}
graph cubes(x: f32[3,3,3]) -> (y) {
  t = transpose(x) {perm=[1,2,0]}
  y = transpose(t) {perm=[2,1,0]}
  return y
}
graph shared(x: f32[2]) -> (a, b, c) {
  n = neg(x)
  a = exp(n)
  b = sin(n)
  c = cos(n)
  return a, b, c
}
graph tiny() -> (y) {
  a = const(1e-30) : f32[]
  b = const(1e-15) : f32[]
  y = mul(a, b)
  return y
}
graph extremes(x: f32[4], y: f32[4]) -> (m) {
  n = minimum(x, y)
  m = maximum(x, n)
  return m
}
""".replace("\n  inf = ", "\n  zero = ").replace("div(x, inf)", "div(x, zero)")


def corpus(count: int) -> list[tuple[Graph, dict]]:
    rng = np.random.default_rng(0)
    killers = [mg.parse("graph" + text) for text in KILLERS.split("\ngraph")[1:]]
    special = np.array([0.0, -0.0, np.nan, 1.5], np.float32)
    return [(graph, {node.name: rng.choice(special, node.type.shape) for node in graph.inputs}) for graph in killers] + [
        cast_atlas(), *map(atlas, ("f32", "i32", "u8")), *samples(count, "judge")]


CORPUS = [(graph, inputs, evaluate(graph, inputs)) for graph, inputs in corpus(120)]


def judge(function: Callable) -> list[Finding]:
    """What is wrong with a pass, on the first graph where anything is. ``function``: Graph -> Result or Graph."""
    for graph, inputs, reference in CORPUS:
        if found := list(judge_one(function, graph, inputs, *reference)):
            return found
    return [*judge_depth(function)] or [*judge_time(function)]


def judge_one(function, graph, inputs, values, printed, error) -> Iterator[Finding]:
    name = function.__name__
    before = everything(graph)
    findings = list(islice(check_pass(function, graph, values), 3))
    if everything(graph) != before:
        for node, data in zip([node for node in graph.nodes if node.op == "const"], before[1]):
            object.__setattr__(node.value, "data", data)  # so that the next pass is judged on its own
        yield Finding("mutation", name, "it changes the graph that it is given")
        return
    yield from findings
    if findings:
        return
    after = graph_of(function(graph))
    if len(graph) < 1000:
        new = other_names(graph)
        if graph_of(function(graph)) != after:
            yield Finding("determinism", name, "the second run on one graph gives another result")
        if graph_of(function(rename(graph, new))) != rename(after, new):
            yield Finding("names", name, "the result depends on what the values are called")
    stored = [sum(len(node.value.data) for node in one.nodes if node.op == "const") for one in (graph, after)]
    if stored[1] > stored[0] + 2048 * len(graph):
        yield Finding("growth", name, f"it stores {stored[1]:,} bytes of constants, and found {stored[0]:,}")
    outputs, text, problem = run_outputs(after, inputs, 0)
    if error is None and problem is None:
        loose = tainted(graph)
        for public, value in graph.outputs:
            if value not in loose and not same_bits(outputs[public], values[value]):
                yield Finding("bits", name, f"output '{public}' differs")
        if text != printed and not loose:
            yield Finding("effects", name, f"it prints {text!r} and should print {printed!r}")
    elif type(problem).__name__ == "CheckFailed" or type(error).__name__ == "CheckFailed":
        if type(problem) is not type(error):
            yield Finding("error", name, f"a check that failed passes, or the other way round: {error}, {problem}")


def graph_of(result) -> Graph:
    return result if isinstance(result, Graph) else result.graph


def chain(length: int) -> Graph:
    builder = Builder()
    x = builder.input("x", "f32[2]")
    value = x
    for i in range(length):
        value = builder.emit(("neg", "exp", "abs")[i % 3], value)
    return builder.build({"y": value})


def judge_depth(function) -> Iterator[Finding]:
    try:
        function(chain(2_000))
    except RecursionError:
        yield Finding("crash", function.__name__, "a chain of 2,000 nodes is too deep for it")


def lines_executed(function, graph) -> int:
    """Lines of Python that a call executes: a measure of time that does not depend on the machine."""
    count = 0

    def trace(frame, event, argument):
        nonlocal count
        count += event == "line"
        return trace

    old = sys.gettrace()
    sys.settrace(trace)
    try:
        function(graph)
    finally:
        sys.settrace(old)
    return count


def judge_time(function) -> Iterator[Finding]:
    small, large = (lines_executed(function, chain(length)) for length in (50, 400))
    if large > 16 * small:
        yield Finding("time", function.__name__, f"8 times the nodes take {large / small:.0f} times as long")


@pytest.mark.parametrize("name", WRONG)
def test_the_judge_rejects(name):
    function, kind = WRONG[name]
    found = judge(function)
    assert found, "accepted"
    assert kind in {one.kind for one in found}, [str(one) for one in found]


@pytest.mark.parametrize("function", RIGHT, ids=lambda function: function.__name__)
def test_the_judge_accepts(function):
    assert [str(one) for one in judge(function)] == []


def test_the_gallery_is_large():
    assert len(WRONG) >= 40
