"""networkx as a view: what goes out comes back, and a broken view is refused in a sentence."""

import random
import subprocess
import sys

import pytest

from minigraph.errors import GraphError
from minigraph.ir import Builder, Graph, Node
from minigraph.text import parse
from minigraph.view import from_networkx, to_networkx

A4 = parse("""
graph a4(x: f32[], y: f32[]) -> (h) {
  a = const(2.0)
  b = const(3.0)
  c = add(a, b)
  d = mul(c, x)   # a4.py:6
  e = sin(d)
  f = exp(e)
  g = add(f, c)
  h = mul(g, y)
  return h
}""")
SQUARE = parse("graph square(x: f32[2]) -> (y, same) {\n y = mul(x, x)\n z = sub(y, x)\n return y, same = y\n}")
EFFECTS = parse("graph effects(x: f32[2]) -> (x) {\n a = print(x)\n b = assert_finite(x, a)\n return x\n}")


def scrambled(seed: int) -> Graph:
    """A graph whose order is one of many possible ones."""
    rng, b = random.Random(seed), Builder("scrambled")
    names = [b.input(name, "f32[3]") for name in ("p", "q", "r")]
    for _ in range(rng.randrange(40)):
        if rng.random() < 0.2:
            names.append(b.const(rng.random()))
        else:
            op = rng.choice(("add", "sub", "maximum", "neg"))
            names.append(b.emit(op, *rng.choices(names, k=1 if op == "neg" else 2)))
    return b.build({f"o{i}": name for i, name in enumerate(rng.choices(names, k=3))})


@pytest.mark.parametrize("graph", [A4, SQUARE, EFFECTS, Graph("empty", (), ()), *map(scrambled, range(20))],
                         ids=lambda graph: graph.name)
def test_there_and_back(graph):
    back = from_networkx(to_networkx(graph))
    assert back == graph
    assert [node.origin for node in back.nodes] == [node.origin for node in graph.nodes]


def test_edges_are_operands():
    view = to_networkx(SQUARE)
    assert list(view.edges(keys=True)) == [("x", "y", 0), ("x", "y", 1), ("x", "z", 1), ("y", "z", 0)]
    assert view.nodes["y"]["node"] is SQUARE["y"]
    assert view.graph == {"name": "square", "outputs": SQUARE.outputs}


def test_the_edges_decide():
    view = to_networkx(A4)
    view.remove_edge("c", "g", key=1)
    view.add_edge("e", "g", key=1)
    assert from_networkx(view)["g"].inputs == ("f", "e")


def test_another_order_of_nodes_is_put_right():
    import networkx as nx

    view = to_networkx(A4)
    turned = nx.MultiDiGraph(**view.graph)
    turned.add_nodes_from(reversed(list(view.nodes(data=True))))
    turned.add_edges_from(view.edges(keys=True))
    back = from_networkx(turned)
    assert set(back.nodes) == set(A4.nodes)
    assert [node.name for node in back.nodes] == ["y", "x", "a", "b", "c", "d", "e", "f", "g", "h"]


def test_a_deep_graph():
    b = Builder("deep")
    x = b.input("x", "f32[]")
    for _ in range(5000):
        x = b.emit("neg", x)
    graph = b.build([x])
    assert from_networkx(to_networkx(graph)) == graph


def broken(change):
    view = to_networkx(A4)
    change(view)
    return view


@pytest.mark.parametrize("change, sentence", [
    (lambda v: (v.remove_edge("c", "d", key=0), v.add_edge("h", "d", key=0)),
     "a cycle: d -> h -> g -> f -> e -> d (each reads the next)"),
    (lambda v: v.remove_edge("c", "d", key=0), "'d' lacks operand 0"),
    (lambda v: v.remove_node("x"), "'d' lacks operand 1"),
    (lambda v: v.add_edge("e", "d", key=7), "'d' lacks operand 2"),
    (lambda v: v.add_edge("e", "d", key=1), "'d' has two operands number 1: x and e"),
    (lambda v: v.add_edge("new", "d", key=2), "node 'new' of the networkx graph has no attribute 'node'"),
    (lambda v: v.nodes["d"].update(node=A4["e"]), "node 'd' of the networkx graph holds the Node of 'e'"),
    (lambda v: v.remove_node("h"), "output 'h' is 'h', which is not defined"),
    (lambda v: v.graph.pop("outputs"), "the networkx graph has no attribute 'outputs'"),
])
def test_a_broken_view_is_refused(change, sentence):
    with pytest.raises(GraphError) as error:
        from_networkx(broken(change))
    assert sentence in str(error.value)


def test_only_a_multidigraph_is_read():
    import networkx as nx

    with pytest.raises(GraphError, match="read from a MultiDiGraph, not from a DiGraph"):
        from_networkx(nx.DiGraph(to_networkx(A4)))


@pytest.mark.parametrize("nodes, sentence", [
    ((Node("x", "input"), Node("x", "neg", ("x",))), "'x' is defined twice"),
    ((Node("y", "neg", ("x",)),), "operand 'x' of 'y' is not defined"),
])
def test_what_networkx_cannot_hold_is_refused(nodes, sentence):
    with pytest.raises(GraphError, match=sentence):
        to_networkx(Graph("bad", nodes, ()))


def test_importing_needs_no_networkx():
    code = "import sys, minigraph.view; sys.exit('networkx' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
