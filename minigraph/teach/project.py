"""The project of chapter 06b: a compiler from scratch, on a networkx graph of nodes of its own.

Only the last part knows the course's IR: it translates, so that the same judge can check these graphs, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import permutations

import networkx as nx
import numpy as np

from ..errors import GraphError
from ..ir import Builder, Graph
from ..verify import output_types
from .exact import article
from .judge import Verdict, compare, judge_pass


@dataclass(eq=False, repr=False)  # two nodes are the same only if they are one object: networkx holds both
class Node:
    """One operation, constant or input."""

    op: str  # "input", "const", or an operation: "add", "sub", "mul", "neg"
    inputs: list[Node] = field(default_factory=list)  # references to the nodes that it reads, in order
    value: object = None  # of a const: its NumPy number; of an input: its name
    output: bool = False  # is it an output of the graph?

    def __repr__(self) -> str:
        return self.op if self.value is None else f"{self.op} {self.value}"


MEANING = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "neg": np.negative}  # folding and running ask this table


def network(nodes: Iterable[Node]) -> nx.MultiDiGraph:
    """The graph of these nodes: an edge from each operand to its reader, with the operand's index as its key."""
    graph = nx.MultiDiGraph()
    for node in nodes:
        graph.add_node(node)
        for index, operand in enumerate(node.inputs):
            graph.add_edge(operand, node, key=index)
    return graph


def evaluate(graph: nx.MultiDiGraph, **data) -> list[np.ndarray]:
    """The outputs, in the graph's order. ``data``: an array for each input, by name."""
    with np.errstate(all="ignore"):  # overflow and NaN are values here
        return prepare(graph)(**data)


def prepare(graph: nx.MultiDiGraph) -> Callable[..., list[np.ndarray]]:
    """A function of the inputs that computes the outputs, one call of NumPy a node; the order is found once, here."""
    order = [node for node in nx.topological_sort(graph) if node.op not in ("input", "const")]
    known = {node: node.value for node in graph if node.op == "const"}
    named = [node for node in graph if node.op == "input"]
    outputs = [node for node in graph if node.output]

    def run(**data):
        values = known | {node: data[node.value] for node in named}
        for node in order:
            values[node] = MEANING[node.op](*[values[one] for one in node.inputs])
        return [values[node] for node in outputs]

    return run


def listing(graph: nx.MultiDiGraph) -> str:
    """One node a line, numbered, after a line with their count; dead nodes say so."""
    order = list(nx.topological_sort(graph))
    number = {node: place for place, node in enumerate(order, 1)}
    lines = [f"{len(order)} nodes"]
    for node in order:
        reads = " ".join(f"#{number[one]}" for one in node.inputs)
        note = "   output" if node.output else "" if graph.out_degree(node) else "   nobody reads it"
        lines.append(f"  #{number[node]} {node} {reads}".rstrip() + note)
    return "\n".join(lines)


SIGNS = {"add": "+", "sub": "-", "mul": "*"}


def formula(graph: nx.MultiDiGraph) -> str:
    """The outputs as people write them: ``(7.0 * x) + 0.0``."""
    texts: dict[Node, str] = {}
    for node in nx.topological_sort(graph):
        parts = [texts[one] for one in node.inputs]
        if node.op in SIGNS:
            texts[node] = f"({parts[0]} {SIGNS[node.op]} {parts[1]})"
        else:
            texts[node] = f"-{parts[0]}" if node.op == "neg" else str(node.value)
    return ", ".join(texts[node].removeprefix("(").removesuffix(")") if node.op in SIGNS else texts[node]
                     for node in graph if node.output)


# ---- between these graphs and the course's ----------------------------------------------------------------------------


MALFORMED = "malformed"  # (MALFORMED, kind, sentence): a wrong network, as plain data that travels between processes


def from_graph(graph: Graph) -> nx.MultiDiGraph:
    """The network of a course's graph whose constants are 0-d. A flag cannot say that one value is two outputs."""
    made: dict[str, Node] = {}
    outputs = {value for _, value in graph.outputs}
    for node in graph.nodes:
        value = {"input": node.name, "const": node.value and node.value.array[()]}.get(node.op)
        made[node.name] = Node(node.op, [made[name] for name in node.inputs], value, node.name in outputs)
    return network(made.values())


def to_graph(net: nx.MultiDiGraph, inputs: dict[str, object], outputs: Iterable[str] = (), name: str = "g") -> Graph:
    """The course's graph of a network. ``inputs``: name -> type; ``outputs``: public names, in the network's order.

    Raises GraphError where types do not fit.
    """
    builder, names = Builder(name), {}
    there = {node.value: node for node in net if node.op == "input"}
    for known, type in inputs.items():
        if known in there:
            names[there[known]] = builder.input(known, type)
    for node in nx.topological_sort(net):
        if node.op == "const":
            names[node] = builder.const(np.asarray(node.value))
        elif node not in names:
            names[node] = builder.emit(node.op, *[names[one] for one in node.inputs])
    values = [names[node] for node in net if node.output]
    public = [*outputs] or (["y"] if len(values) == 1 else [f"y{place}" for place in range(len(values))])
    return builder.build(dict(zip(public, values)))


def as_pass(function: Callable) -> Callable[[Graph], object]:
    """A function on networks as a pass on the course's graphs, for the judge: a Graph, or what is wrong with the network."""

    def adapted(graph: Graph):
        if len({value for _, value in graph.outputs}) < len(graph.outputs):
            return graph
        net = network(reversed(list(from_graph(graph))))  # readers first: only a topological sort finds the order
        before = snapshot(net)
        with np.errstate(all="ignore"):
            got = function(net)
        if snapshot(net) != before:
            return (MALFORMED, "mutated", "Your function changed the graph that it was given, or its nodes: make new ones.")
        if not isinstance(got, nx.Graph):
            return got
        fault = fault_of(got)
        if fault:
            return (MALFORMED, "invalid", fault)
        try:
            return matched(graph, got)
        except (GraphError, TypeError, KeyError) as error:
            return (MALFORMED, "invalid", f"Your function returned a graph that cannot run: {str(error).splitlines()[0]}.")

    return adapted


def snapshot(net: nx.MultiDiGraph) -> tuple:
    nodes = [(id(node), node.op, tuple(map(id, node.inputs)), repr(node.value), node.output) for node in net]
    return tuple(nodes), tuple((id(a), id(b), key) for a, b, key in net.edges(keys=True))


def fault_of(net: nx.Graph) -> str:
    """What is wrong with a network, in one sentence; empty if nothing is."""
    if not (net.is_directed() and net.is_multigraph()):
        return f"Your function returned {article(net)}; x * x has two edges from x, which only a MultiDiGraph holds."
    for node in net:
        if not isinstance(node, Node):
            return f"A node of your graph is {article(node)}, not a project.Node."
    for node in net:
        lost = [one for one in node.inputs if one not in net]
        if lost:
            return f"'{node}' reads '{lost[0]}', which is not in the graph."
        if node.op in ("const", "input") and node.inputs:
            return f"'{node}' is a constant or an input, and still has inputs."
        wanted = sorted((id(one), index) for index, one in enumerate(node.inputs))
        if wanted != sorted((id(source), key) for source, _, key in net.in_edges(node, keys=True)):
            return f"The edges into '{node}' do not agree with its inputs: they must say the same."
    return "" if nx.is_directed_acyclic_graph(net) else "The graph has a cycle."


def matched(graph: Graph, net: nx.MultiDiGraph) -> Graph:
    """The network as a course's graph, with the public names of ``graph``. Flags have no names: any order of outputs
    that computes the same is right."""
    public, inputs = [name for name, _ in graph.outputs], {node.name: node.type for node in graph.inputs}
    first = to_graph(net, inputs, public, graph.name)
    if len(public) == 1 or len(first.outputs) != len(public):
        return first
    wanted, values = output_types(graph), [value for _, value in first.outputs]
    turns = (Graph(first.name, first.nodes, tuple(zip(public, turn))) for turn in permutations(values))
    fitting = [turn for turn in turns if output_types(turn) == wanted]
    return next((turn for turn in fitting if compare(graph, turn) is None), fitting[0] if fitting else first)


def judge_network(adapted: Callable, *args, **options) -> Verdict:
    """``judge_pass`` for what ``as_pass`` makes, with the sentences about networks."""
    verdict = judge_pass(adapted, *args, idempotent=False, watch=False, **options)
    failure = verdict.failure
    if failure is not None and failure.kind == "not-a-graph" and failure.graph is not None:
        got = adapted(failure.graph)
        if isinstance(got, tuple) and got[:1] == (MALFORMED,):
            return replace(verdict, failure=replace(failure, kind=got[1], sentence=got[2], got=got))
    return verdict
