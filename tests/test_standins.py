"""The stand-ins of chapter 02, the tracer that runs on an example, and the picture of lines and nodes."""

import numpy as np
import pytest

from minigraph.errors import TraceError
from minigraph.ir import Builder
from minigraph.run_numpy import run
from minigraph.teach.exercises.ch02 import binary, record, trace_with
from minigraph.teach.lines import draw_lines, lines_of
from minigraph.teach.standins import Proxy, assemble, trace_by_example, with_operators
from minigraph.tracing import trace
from minigraph.verify import verify


def choose(x):
    """A choice."""
    total = np.sum(x)
    if total > 0:  # asked once
        return x * 2

    for _ in range(2):
        x = x - 1
    return x


def test_an_example_bakes_in_the_side_that_it_takes():
    up, down = np.ones(3, np.float32), -np.ones(3, np.float32)
    graph = trace_by_example(choose, x=up)
    verify(graph)
    assert (run(graph, x=up)["out"] == choose(up)).all()
    assert (run(graph, x=down)["out"] != choose(down)).all()
    with pytest.raises(TraceError):
        trace(choose, x="f32[3]")


def test_lines_have_their_nodes():
    graph = trace_by_example(choose, x=-np.ones(3, np.float32))
    lines = {line.text.strip(): [[node.op for node in visit] for visit in line.visits] for line in lines_of(graph, choose)}
    assert lines == {"def choose(x):": [], "total = np.sum(x)": [["sum"]], "if total > 0:": [["const", "gt"]],
                     "return x * 2": [], "for _ in range(2):": [], "x = x - 1": [["const", "sub", "const", "sub"]], "return x": []}
    assert "return x * 2: nothing recorded" in draw_lines(graph, choose).alt


def test_a_stand_in_has_no_value_unless_somebody_decides():
    builder = Builder()
    stand_in = Proxy(builder, builder.input("x", "bool[]"))
    assert repr(stand_in) == "<x: bool[]>" and stand_in.shape == () and stand_in.dtype == bool
    with pytest.raises(TraceError, match="needs the value of <x: bool"):
        bool(stand_in)
    builder.decide = lambda asked: asked is stand_in
    assert stand_in


def test_three_pieces_make_a_tracer(capsys):
    graph = trace_with(lambda x: np.float32(2) - x, {"x": "f32[3]"}, with_operators(binary, record))
    assert [node.op for node in graph.nodes] == ["input", "const", "sub"]
    assemble(record, binary, trace_with, "2 - x", x="i8[3]")
    assert "sub(c, x) : i8[3]" in capsys.readouterr().out

    def stub(op, record):
        raise NotImplementedError("your turn")

    assemble(record, stub, trace_with, "2 - x", x="i8[3]")
    assert "not complete yet" in capsys.readouterr().out
