"""A graph as networkx sees it, and back: for analysis, for drawing elsewhere, and as an independent oracle in tests.

The edges are operands, so ``mul(x, x)`` has two from x: a MultiDiGraph, whose edge key is the operand's index.
"""

from __future__ import annotations

from .errors import GraphError
from .ir import Graph, Node


def to_networkx(graph: Graph):
    """A ``networkx.MultiDiGraph``: node attribute ``node`` (the Node), edge key the operand's index.

    Graph attributes are ``name`` and ``outputs``. Raises GraphError where a name is defined twice or not at all:
    networkx would merge the two, and invent the other.
    """
    import networkx as nx

    result = nx.MultiDiGraph(name=graph.name, outputs=graph.outputs)
    for node in graph.nodes:
        if node.name in result:
            raise GraphError(f"'{node.name}' is defined twice", hint="every value has one definition")
        result.add_node(node.name, node=node)
    for node in graph.nodes:
        for index, name in enumerate(node.inputs):
            if name not in result:
                raise GraphError(f"operand '{name}' of '{node.name}' is not defined")
            result.add_edge(name, node.name, key=index)
    return result


def from_networkx(view) -> Graph:
    """The graph of such a MultiDiGraph. The edges say what reads what, and the order is networkx's order of nodes.

    Where that order puts a node before its operands, another order is found. Raises GraphError for a cycle, a gap
    in the operands, or a node without its Node.
    """
    if not (view.is_directed() and view.is_multigraph()):
        raise GraphError(f"a graph is read from a MultiDiGraph, not from a {type(view).__name__}",
                         hint="mul(x, x) has two edges from x, which only a multigraph can hold")
    nodes = {name: rewire(name, data.get("node"), view.pred[name]) for name, data in view.nodes(data=True)}
    outputs = view.graph.get("outputs")
    if outputs is None:
        raise GraphError("the networkx graph has no attribute 'outputs'", hint="pairs of (public name, value name)")
    for public, value in outputs:
        if value not in nodes:
            raise GraphError(f"output '{public}' is '{value}', which is not defined")
    return Graph(view.graph.get("name", "g"), in_order(nodes), tuple(map(tuple, outputs)))


def rewire(name, node, before) -> Node:
    """The node with its operands read from the edges."""
    if not hasattr(node, "inputs"):
        raise GraphError(f"node '{name}' of the networkx graph has no attribute 'node' that holds its Node",
                         hint="an edge to a name that was never added makes such a node")
    if node.name != name:
        raise GraphError(f"node '{name}' of the networkx graph holds the Node of '{node.name}'")
    operands: dict[object, str] = {}
    for source, edges in before.items():
        for key in edges:
            if key in operands:
                raise GraphError(f"'{name}' has two operands number {key}: {operands[key]} and {source}")
            operands[key] = source
    wanted = range(max(len(operands), len(node.inputs)))
    for index in wanted:
        if index not in operands:
            raise GraphError(f"'{name}' lacks operand {index}", hint="an edge's key is the operand's index: 0, 1, …")
    return Node(name, node.op, tuple(operands[index] for index in wanted), node.value, node.type, node.origin)


def in_order(nodes: dict[str, Node]) -> tuple[Node, ...]:
    """The given order where it is a right one; otherwise each node right after the operands that it waits for."""
    ordered: dict[str, Node] = {}
    for root in sorted(nodes.values(), key=lambda node: node.op != "input"):  # stable: inputs first
        stack, open_ = [root], set()
        while stack:
            node = stack[-1]
            missing = [name for name in node.inputs if name not in ordered]
            if not missing:
                ordered.setdefault(node.name, node)
                open_.discard(node.name)
                stack.pop()
            elif node.name in open_:
                path = [one.name for one in stack if one.name in open_]
                trail = " -> ".join(path[path.index(node.name):])
                raise GraphError(f"a cycle: {trail} (each reads the next)", hint="a graph is acyclic: break the loop")
            else:
                open_.add(node.name)
                stack += [nodes[name] for name in reversed(missing)]
    return tuple(ordered.values())
