"""Graphs that break a rule, as learners see them: no two different ones look the same, and nothing makes a report fail."""

from dataclasses import replace

import numpy as np
import pytest

from minigraph.drawing import draw
from minigraph.ir import Graph, Node
from minigraph.ops import Attrs
from minigraph.teach import api, judge
from minigraph.teach.exact import exact_line, exact_text, graph_text, is_right
from minigraph.teach.exercises import EXERCISES
from minigraph.teach.exercises.ch01 import GOOD, INVALID_GRAPHS, TWO, VALID_GRAPHS, X, Y2, Z, op
from minigraph.teach.report import Report
from minigraph.text import print_graph
from minigraph.types import Type


@pytest.fixture(autouse=True)
def fresh_work(tmp_path, monkeypatch):
    monkeypatch.setenv("MINIGRAPH_WORK", str(tmp_path))


def test_a_right_graph_is_printed_as_ever():
    for graph in (GOOD, *VALID_GRAPHS):
        assert is_right(graph) and graph_text(graph) == print_graph(graph)


def test_no_two_wrong_graphs_look_the_same():
    graphs = (*INVALID_GRAPHS, *(Graph("g", (X, TWO, node, Z), (("z", "z"),)) for node in ODD))
    assert not any(map(is_right, graphs))
    texts = [graph_text(graph) for graph in graphs]
    assert len(set(texts)) == len(texts)
    assert not set(texts) & {exact_text(graph) for graph in VALID_GRAPHS}


class Rude:
    def __repr__(self):
        raise ValueError


ODD = [replace(TWO, value=2.0), replace(TWO, value=None), replace(TWO, value=np.float32(2.0)), replace(TWO, value=np.ones(2)),
       replace(TWO, inputs=("x",)), replace(X, value=2.0), replace(X, type=None), replace(X, type="f32[4]"), replace(X, type=Type("f32", 4)),
       replace(X, type=Type("f32", [4])), replace(Y2, value=2.0), replace(Y2, value=TWO.value), replace(Y2, value=Attrs()),
       replace(Y2, inputs="xx"), replace(Y2, inputs=("x", 2)), replace(Y2, name=3), replace(Y2, op=["mul"]),
       op("y", "matmul", "x", "x"), op("y", "sum", "x", value=Attrs(axis=(0,))), op("y", "sum", "x", value={"axis": (0,)}),
       op("y", "sum", "x", value=Attrs(axis=[0])), 5]  # fmt: skip


@pytest.mark.parametrize("node, line", [
    (X, "x = input() : f32[4]"),
    (Y2, "y = mul(x, two) : f32[4]"),
    (replace(X, type="f32[4]"), "x = input()   # type is 'f32[4]', a str"),
    (replace(TWO, value=2.0), "two = const(2.0) : f32[]   # value is 2.0, a float"),
    (replace(Z, value=2.0, type=None), "z = exp(y)   # value is 2.0, a float, type is None"),
    (op("y", "matmul", "x", "x"), "y = matmul(x, x) : f32[4]   # value is None"),
])  # fmt: skip
def test_what_a_line_hides_stands_beside_it(node, line):
    assert exact_line(node) == line


@pytest.mark.parametrize("outputs", [(), ("y",), "y", None, ((1, 2),), [("out", "x")]])
@pytest.mark.parametrize("node", [*ODD, replace(Y2, value=Rude())])
def test_any_graph_makes_a_report(node, outputs):
    """A picture may be impossible; the text is there."""
    graph = Graph("g", (X, node), outputs)
    report = Report("mine", "wrong", "It is broken.", pictures=(("your graph", graph),))
    assert "x = input()" in str(report) and "x = input()" in report.html()


def test_a_picture_of_a_wrong_graph_shows_the_fault():
    late = Graph("late", (TWO, X, Y2), (("y", "y"),))
    assert "after another node" in draw(late).dot and "After another node: x." in draw(late).alt
    odd = Graph("odd", (X, replace(TWO, value=2.5), Y2), (("y", "y"),))
    assert "value is float 2.5" in draw(odd).dot and "The value of two is float 2.5." in draw(odd).alt


# ---- sentences about what was raised, or not returned -------------------------------------------------------------


def reported(tmp_path, name, source):
    """The report on a learner's function; it stands in a file, as a notebook's cell does."""
    path = tmp_path / "cell.py"
    path.write_text(source)
    names = {"OPS": judge.OPS, "__name__": "__main__"}
    exec(compile(source, str(path), "exec"), names)
    return str(api.check(names[name]))


HEAD = '''def interpret(graph, inputs):
    values = {}
    for node in graph.nodes:
        if node.op in ("input", "const"):
            values[node.name] = inputs[node.name] if node.op == "input" else node.value.array
        else:
            arrays = [values[name] for name in node.inputs]
            values[node.name] = OPS[node.op].numpy(*arrays'''


def test_a_raise_names_the_line_and_the_node(tmp_path):
    report = reported(tmp_path, "interpret", HEAD + ")\n    return {public: values[value] for public, value in graph.outputs}\n")
    assert "line 8 of interpret: values[node.name] = OPS[node.op].numpy(*arrays)\n    node is: s = sum(x) {axis=[0]} : f16[]" in report
    assert "Attributes such as axis belong to the operation" in report


def test_a_raise_inside_the_package_names_the_call(tmp_path):
    report = reported(tmp_path, "users_of", "def users_of(graph, name):\n    return list(graph['nobody'].inputs)\n")
    assert "line 2 of users_of: return list(graph['nobody'].inputs)\n" in report and "It was raised inside the package, by " in report
    assert "/" not in report.split("the graph:")[0]


REST = ", **dict(node.value or ()))\n    "


@pytest.mark.parametrize("last, sentence", [
    ("print(values)", "Your function returned None: is a return missing?"),
    ("return list(values.values())", "Your function returned a list, and a dict is wanted."),
    ("return values['x'] if 'x' in values else 1", "Your function returned an array, and a dict is wanted."),
])  # fmt: skip
def test_another_kind_of_answer_is_said(tmp_path, capsys, last, sentence):
    assert sentence in reported(tmp_path, "interpret", HEAD + REST + last + "\n")


def test_a_cycle_that_goes_unseen_is_not_taken_for_another_mistake(tmp_path):
    """On ``a = neg(a)`` a search without a check for cycles answers what the reversed list is, too."""
    report = reported(tmp_path, "in_order", """def in_order(nodes):
    named, done, ordered = {node.name: node for node in nodes}, set(), []
    def visit(node):
        if node.name not in done:
            done.add(node.name)
            for name in node.inputs:
                visit(named[name])
            ordered.append(node)
    for node in reversed(nodes):
        visit(node)
    return [node for node in ordered if node.op == "input"] + [node for node in ordered if node.op != "input"]
""")
    assert "Nobody noticed the cycle." in report and "by chance" not in report
    assert "gives: a = neg(a)\n" in report


def test_a_mistake_is_not_named_where_most_answers_differ():
    exercise = EXERCISES["users_of"]

    def sometimes(graph, name):  # on the counterexample it answers what a function does that lists outputs, too
        return ["x"] if len(graph) == 1 else 3

    failure = exercise.judge(sometimes).failure
    assert len(failure.graph) == 1 and api.known_mistake(exercise, failure, sometimes) is None


# ---- breaking rules -----------------------------------------------------------------------------------------------


TOKEN = Type("token")
SEEN = GOOD.nodes[3]
FAULTS = [  # rule, nodes or outputs of a graph that breaks it, and words of the sentence that fits
    ("defined-earlier", (X, TWO, Y2, SEEN, replace(Z, inputs=("q",))), "No node defines q"),
    ("defined-earlier", (X, TWO, Y2, SEEN, replace(Z, inputs=("z",))), "waits for itself"),
    ("right-value", (X, replace(TWO, value=2), Y2, SEEN, Z), "A Python 2 has no dtype"),
    ("right-value", (X, replace(TWO, value=np.float32(2)), Y2, SEEN, Z), "A NumPy scalar"),
    ("right-value", (X, replace(TWO, value=np.ones(2)), Y2, SEEN, Z), "Whoever holds an array"),
    ("right-value", (X, replace(TWO, value=None), Y2, SEEN, Z), "A Const has"),
    ("right-value", (replace(X, value=2.0), TWO, Y2, SEEN, Z), "An input is a name and a type"),
    ("right-value", (X, TWO, Y2, SEEN, replace(Z, value=2.0)), "exp has no attributes"),
    ("right-value", (X, TWO, Y2, SEEN, Z, op("s", "sum", "z")), "The row of sum asks for: axis, keepdims."),
    ("right-type", (X, TWO, Y2, SEEN, replace(Z, type=None)), "is a claim"),
    ("right-type", (X, replace(TWO, type=Type("f64")), Y2, SEEN, Z), "says its type twice"),
    ("right-type", (replace(X, type=None), TWO, replace(Y2, inputs=("two", "two"), type=Type("f32")),
                    replace(SEEN, inputs=("y",)), replace(Z, type=Type("f32"))), "An input's type"),
    ("right-type", (X, TWO, replace(Y2, inputs=("x",)), SEEN, Z), "The row of mul refuses"),
    ("right-type", (X, TWO, Y2, SEEN, replace(Z, inputs=("seen",))), "The row of exp refuses"),
    ("effects-in-line", (X, TWO, Y2, replace(SEEN, name="first"), SEEN, Z), "Without the token"),
    ("effects-in-line", (X, TWO, Y2, SEEN, *(replace(SEEN, name=name, inputs=("y", "seen")) for name in "ab"), Z), "another effect"),
    ("right-outputs", (("out", "seen"),), "A token holds no data"),
    ("right-outputs", (("out", "z"), ("out", "y")), "only one answer"),
    ("right-outputs", (("out", "q"),), "no node computes"),
]


@pytest.mark.parametrize("rule, parts, sentence", FAULTS)
def test_the_last_sentence_fits_the_fault(rule, parts, sentence):
    graph = Graph("bad", GOOD.nodes, parts) if rule == "right-outputs" else Graph("bad", parts, GOOD.outputs)
    report = api.break_rule(rule, graph)
    assert report.outcome == "right" and sentence in report.lines[0], report


def test_the_recipe_waits_for_a_second_try():
    nothing = Graph("other", GOOD.nodes, GOOD.outputs)
    first, second = api.break_rule("inputs-first", nothing), api.break_rule("inputs-first", nothing)
    assert "Exchange x and two." not in str(first) and "Exchange x and two." in str(second)
    assert first.lines[0] in second.lines
