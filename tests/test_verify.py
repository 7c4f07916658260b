"""The verifier: an invalid graph for each invariant, with its sentence, and random damage to valid graphs."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from strategies import samples

import minigraph as mg
from minigraph.errors import GraphError
from minigraph.fuzz import evaluate
from minigraph.ir import Builder, Graph, Node
from minigraph.ops import OPS, Attrs, Kind, make_attrs
from minigraph.types import Const, Type
from minigraph.verify import check_signature, problems, verify

F = Type("f32", (2,))
X = Node("x", "input", type=F)
ONE = Node("one", "const", (), Const.of(np.ones(2, np.float32)), F)


def add(name: str, *inputs: str, type=F, **facts) -> Node:
    return Node(name, "add", inputs, type=type, **facts)


SUM = make_attrs(OPS["sum"], {"axis": (0,)})
TOKEN = Type("token")


def effect(name: str, *inputs: str) -> Node:
    return Node(name, "assert_finite", inputs, type=TOKEN)


INVALID = [  # the invariant, nodes, outputs, the sentence
    ("defined earlier", [X, add("y", "x", "z")], "y", "operand 'z' is not defined"),
    ("defined earlier", [X, add("y", "x", "z"), add("z", "x", "x")], "y", "operand 'z' is defined later"),
    ("defined earlier", [X, add("y", "x", "y")], "y", "operand 'y' is defined later"),
    ("defined once", [X, add("y", "x", "x"), add("y", "x", "x")], "y", "'y' is defined twice"),
    ("defined once", [X, X], "x", "'x' is defined twice"),
    ("a name", [X, add("2y", "x", "x")], "x", "'2y' is not a name"),
    ("a name", [X, add("nan", "x", "x")], "x", "'nan' is not a name"),
    ("a name", [X, add("a b", "x", "x")], "x", "'a b' is not a name"),
    ("a name", [X, add("y\n", "x", "x")], "x", "is not a name"),
    ("a name", [X, add("é", "x", "x")], "x", "'é' is not a name"),
    ("op known", [X, Node("y", "relu", ("x",), type=F)], "y", "unknown op 'relu'"),
    ("arity", [X, add("y", "x")], "y", "add takes 2 operands, got 1"),
    ("type", [X, add("y", "x", "x", type=Type("f64", (2,)))], "y", "add gives f32[2], but the node says f64[2]"),
    ("type", [X, add("y", "x", "x", type=None)], "y", "add gives f32[2], but the node says None"),
    ("type", [X, Node("i", "cast", ("x",), make_attrs(OPS["cast"], {"dtype": "i32"}), Type("i32", (2,))),
              add("y", "x", "i")], "y", "operands have different dtypes"),
    ("constants", [ONE, Node("c", "const", (), Const.of([1.0]), F)], "c", "the constant is f64[1], but the node says f32[2]"),
    ("constants", [Node("c", "const", (), np.ones(2, np.float32), F)], "c", "make one with Const.of(array)"),
    ("constants", [X, Node("c", "const", ("x",), ONE.value, F)], "c", "holds a Const and has no operands"),
    ("inputs first", [ONE, X], "x", "input 'x' comes after a computed node"),
    ("inputs first", [Node("x", "input", ("x",), None, F)], "x", "has a type and nothing else"),
    ("inputs first", [Node("x", "input")], "x", "has a type and nothing else"),
    ("attributes", [X, Node("y", "sum", ("x",), None, Type("f32"))], "y", "sum needs the attribute 'axis'"),
    ("attributes", [X, Node("y", "sum", ("x",), Attrs(axis=(0,), keepdims=0), Type("f32"))], "y", "keepdims' is bool, not 0"),
    ("attributes", [X, Node("y", "sum", ("x",), Attrs(axis=(0,)), Type("f32"))], "y", "not in canonical form"),
    ("attributes", [X, Node("y", "sum", ("x",), Attrs(axis=(True,), keepdims=False), Type("f32"))], "y", "axis' is ints"),
    ("attributes", [X, Node("y", "sum", ("x",), {"axis": (0,)}, Type("f32"))], "y", "sum has attributes, not dict"),
    ("attributes", [X, Node("y", "neg", ("x",), Attrs(fast=1), F)], "y", "neg has no attribute 'fast'"),
    ("attributes", [X, Node("y", "neg", ("x",), ONE.value, F)], "y", "neg has no attributes, so its value is None, not a Const"),
    ("effects", [X, effect("a", "x"), effect("b", "x")], "x", "effect 'b' must come after 'a'"),
    ("effects", [X, effect("a", "x"), effect("b", "x", "a"), effect("c", "x", "a")], "x", "effect 'c' must come after 'b'"),
    ("effects", [X, effect("a", "x", "x")], "x", "the last operand of an effect is the token"),
    ("effects", [X, effect("a", "x"), add("y", "x", "a")], "y", "different dtypes"),
    ("effects", [X, effect("a", "x"), Node("y", "neg", ("a",), type=TOKEN)], "x", "an operand is token[]"),
    ("outputs", [X], "y", "output 'y' is 'y', which is not defined"),
    ("outputs", [X, effect("a", "x")], "a", "which holds no data"),
    ("outputs", [X], (("y", "x"), ("y", "x")), "two outputs are named 'y'"),
    ("outputs", [X], (("1", "x"),), "'1' is not a name for an output"),
]  # fmt: skip


@pytest.mark.parametrize(("nodes", "outputs", "sentence"), [row[1:] for row in INVALID], ids=[f"{row[0]}: {row[3]}" for row in INVALID])
def test_an_invalid_graph_breaks_its_invariant(nodes, outputs, sentence):
    outputs = ((outputs, outputs),) if isinstance(outputs, str) else outputs
    with pytest.raises(GraphError) as caught:
        verify(Graph("g", tuple(nodes), outputs))
    assert sentence in str(caught.value)


def test_every_problem_is_found_and_says_where():
    graph = Graph("g", (X, add("y", "x", "q", origin=("model.py:3",)), add("z", "x")), (("z", "nowhere"),))
    found = [str(problem) for problem in problems(graph)]
    assert len(found) == 3
    assert found[0].startswith("model.py:3: operand 'q' is not defined\n    y = add(x, q) : f32[2]")


@pytest.mark.parametrize("node", [
    Node(None, "add", ("x", "x"), None, F), Node("y", None, ("x",), None, F), Node("y", "add", ("x", None), None, F),
    Node("y", "add", (["x"], "x"), None, F), Node("y", "add", ("x", "x"), None, "f32[2]"), Node("y", "add", ("x", "x"), 3, F),
    Node("y", "const", (), None, None), Node("y", "input", (), None, "f32[2]"), Node("y", "neg", "x", None, F),
    Node("y", "sum", ("x",), Attrs(axis="0", keepdims=False), F), Node(3, "input", (), None, F), Node("y", ["add"], ("x",), None, F),
    Node("y", "cast", ("x",), Attrs(dtype=["f32"]), F), Node("y", "add", None, None, F), "y = add(x, x)", None,
    Node("y", "reshape", ("x",), Attrs(shape=(2, None)), F), Node("y", "input", (), None, Type("f33", (1,))),
    Node("y", "input", (), None, Type("f32", (-1,))), Node("y", "input", (), None, Type("f32", ("a",))),
    Node("y", "input", (), None, Type("f32", 3)), Node("y", "input", (), None, Type("token")),
], ids=repr)  # fmt: skip
def test_whatever_a_learner_builds_gets_a_sentence(node):
    """Never a TypeError or a KeyError, however broken the node."""
    found = list(problems(Graph("g", (X, node), (("x", "x"),))))
    assert found and all(isinstance(error, GraphError) and str(error) for error in found)


BROKEN = [Node("y", "input", (), None, Type("f32", [2])), Node("y", "input", (), None, Type("f32", ("a",))),
          Node("y", "input", (), None, Type("f32", None)), Node("y", "input", (), None, Type(3, (2,))),
          Node("y", "neg", ("x",), None, Type("f32", (np.int64(2),))),
          Node("y", "const", (), Const.of(np.float32(1)), ("f32", ())), Node("y", "neg", ("x",), None, ("f32", (2,)))]  # fmt: skip


@pytest.mark.parametrize("node", BROKEN, ids=repr)
def test_a_type_that_is_none_is_said_once_and_not_of_its_readers(node):
    found = list(problems(Graph("g", (X, node, add("z", "y", "y"), add("w", "y", "z")), (("w", "w"),))))
    assert len(found) == 1, list(map(str, found))


def test_a_wrong_node_does_not_change_how_a_right_one_is_printed():
    """True == 1, so what is remembered of the one must not be said of the other."""
    one = Node("x", "input", type=Type("f32", (1,)))
    for axis, keepdims in ((True, 1), (1, True)):
        node = Node("y", "sum", ("x",), Attrs(axis=(axis,), keepdims=keepdims), Type("f32", (True,)))
        assert list(problems(Graph("g", (one, node), (("y", "y"),))))
    right = Node("y", "sum", ("x",), make_attrs(OPS["sum"], {"axis": (0,), "keepdims": True}), Type("f32", (1,)))
    wrong = replace(right, type=Type("f32", (True,)), value=Attrs(axis=(False,), keepdims=1))
    assert "[False]" in str(Graph("g", (one, wrong), (("y", "y"),)))
    assert "y = sum(x) {axis=[0], keepdims=true} : f32[1]\n" in str(Graph("g", (one, right), (("y", "y"),)))


@pytest.mark.parametrize("outputs", [5, None, ("x",), (("x",),), (("x", "x", "x"),), ((["x"], "x"),), (("x", ["x"]),),
                                     ((None, "x"),), ((1, 2),)], ids=repr)  # fmt: skip
def test_whatever_stands_for_outputs_gets_a_sentence(outputs):
    found = list(problems(Graph("g", (X,), outputs)))
    assert found and all(isinstance(error, GraphError) and str(error) for error in found)
    assert list(problems(Graph("g", None, (("x", "x"),))))


def test_names_like_the_words_of_the_language():
    builder = Builder()
    builder.emit("neg", builder.input("x", "f32[]"), name="returned")
    verify(builder.build(["returned"]))


# ---- random damage ----------------------------------------------------------------------------------------------------


def damages(rng: random.Random, graph: Graph):
    """Changes that make a valid graph invalid, as many as it allows: (what was done, the graph)."""
    nodes, read = list(graph.nodes), {name for node in graph.nodes for name in node.inputs}
    computed = [i for i, node in enumerate(nodes) if OPS[node.op].kind not in (Kind.INPUT, Kind.CONST)]

    def with_node(i: int, **changes) -> Graph:
        return replace(graph, nodes=tuple([*nodes[:i], replace(nodes[i], **changes), *nodes[i + 1:]]))

    i = rng.randrange(len(nodes))
    yield "a definition twice", replace(graph, nodes=(*nodes, nodes[i]))
    yield "an unknown op", with_node(i, op="nop")
    yield "an output of nothing", replace(graph, outputs=(*graph.outputs, ("extra", "nothing")))
    if nodes[i].name in read:
        yield "a definition gone", replace(graph, nodes=(*nodes[:i], *nodes[i + 1:]))
    if computed:
        i = rng.choice(computed)
        yield "another type", with_node(i, type=Type("f32", (7, 7, 7)))
        yield "an operand more", with_node(i, inputs=(*nodes[i].inputs, nodes[i].name))
        yield "an operand that comes later", with_node(i, inputs=(nodes[-1].name,) * max(1, len(nodes[i].inputs)))
        yield "an input at the end", replace(graph, nodes=(*nodes, Node("late", "input", (), None, F)))
        if OPS[nodes[i].op].kind is not Kind.EFFECT:
            yield "attributes of another op", with_node(i, value=Attrs(colour=1))


def test_damage_to_random_graphs_is_found():
    rng = random.Random(0)
    for graph, inputs in samples(250, "damage"):
        assert list(problems(graph)) == []
        for what, broken in damages(rng, graph):
            assert list(problems(broken)), (what, str(graph))


def test_what_verifies_runs():
    """Nodes shuffled and types swapped at random: either a problem is found, or the graph runs."""
    rng = random.Random(1)
    accepted = 0
    for graph, inputs in samples(300, "shuffle"):
        nodes = list(graph.nodes)
        i, j = rng.randrange(len(nodes)), rng.randrange(len(nodes))
        nodes[i], nodes[j] = nodes[j], nodes[i]
        k = rng.randrange(len(nodes))
        others = tuple(rng.choice(nodes).name for _ in nodes[k].inputs)
        nodes[k] = replace(nodes[k], inputs=others if rng.random() < 0.5 else nodes[k].inputs)
        shuffled = replace(graph, nodes=tuple(nodes))
        if not list(problems(shuffled)):
            accepted += 1
            values, _, error = evaluate(shuffled, inputs)
            for node in shuffled.nodes if error is None else ():
                if node.type != TOKEN:
                    assert values[node.name].shape == node.type.shape
    assert accepted > 30


# ---- signatures -------------------------------------------------------------------------------------------------------


def test_a_pass_keeps_the_signature():
    graph = mg.parse("graph g(a: f32[], b: f32[]) -> (y, z) {\n y = add(a, b)\n z = neg(y)\n return y, z\n}")
    assert not list(check_signature(graph, graph))
    swapped = replace(graph, nodes=(graph.nodes[1], graph.nodes[0], *graph.nodes[2:]))
    for changed, sentence in (
            (replace(graph, nodes=graph.nodes[1:]), "a pass changed the inputs from (a: f32[], b: f32[]) to (b: f32[])"),
            (swapped, "to (b: f32[], a: f32[])"),
            (replace(graph, outputs=graph.outputs[::-1]), "a pass changed the outputs from (y: f32[], z: f32[]) to (z:"),
            (replace(graph, outputs=(("y", "y"), ("w", "z"))), "to (y: f32[], w: f32[])"),
            (replace(graph, outputs=graph.outputs[:1]), "to (y: f32[])")):
        assert sentence in str(next(iter(check_signature(graph, changed))))
    assert not list(check_signature(graph, replace(graph, outputs=(("y", "z"), ("z", "z")))))
