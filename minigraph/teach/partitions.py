"""Groups of names, one loop each: the rules that they keep, and how they are shown.

A group computes its nodes for one element after the other and stores its last value. So every node is in one group, a
group holds only what shares its loop, only its last value is read outside, and groups do not wait for each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, ValuesView
from dataclasses import dataclass, replace

import numpy as np

from ..access import squeeze
from ..ir import Graph, Node, defs, users
from ..ops import OPS, Kind
from .exact import article, graph_text

Groups = Sequence[tuple[str, ...]]
GROUP = (list, tuple, set, frozenset)
OF_NODES = ", not its name (node.name)"


@dataclass(frozen=True, repr=False)
class Grouped:
    """A graph and its groups, as a report shows them: a line for each group, or a frame around it."""

    graph: Graph
    groups: tuple[tuple[str, ...], ...]

    def __repr__(self) -> str:
        return graph_text(self.graph).rstrip() + "\n" + group_text(self.groups)

    @property
    def html(self) -> str:
        from ..drawing import draw_clusters

        return draw_clusters(self.graph, self.groups).html


def group_text(groups: Groups) -> str:
    return "groups: " + " ".join(f"({', '.join(group)})" for group in groups)


def is_computed(node: Node) -> bool:
    return node.op not in ("input", "const")


def in_order(answer, graph: Graph) -> list[tuple[str, ...]] | None:
    """What a fuser returned as tuples in the graph's order, groups by their last nodes; None if that cannot be."""
    if no_groups(answer):
        return None
    place = {node.name: number for number, node in enumerate(graph.nodes)}
    found = [tuple(sorted(group, key=lambda name: (place.get(name, -1), name))) for group in answer]
    return sorted(found, key=lambda group: place.get(group[-1], -1))


def no_groups(answer) -> str:
    """What is wrong with the form of an answer, in a sentence; nothing if it is groups of names."""
    wanted = "a list of tuples of names is wanted, such as [('a', 'y')]."
    if not isinstance(answer, GROUP):
        what = "None (is a return missing?)" if answer is None else article(answer)
        return f"Your function returned {what}, and {wanted}"
    for group in answer:
        if isinstance(group, str):
            return (f"A group here is the text {group!r}, and {wanted}"
                    + ("" if "," in group else f" A tuple of one name has a comma: ({group!r},)."))
        if not isinstance(group, GROUP):
            return f"A group here is {article(group)}{OF_NODES * isinstance(group, Node)}, and {wanted}"
        if not group:
            return "A group is empty: each group has at least one name in it."
        for name in group:
            if not isinstance(name, str):
                return f"In a group here is {article(name)}{OF_NODES * isinstance(name, Node)}, and {wanted}"
    return ""


def as_list(answer):
    """A generator, the values of a dict and an array are as good as the list of what is in them."""
    if isinstance(answer, np.ndarray):
        return answer.tolist()
    return list(answer) if isinstance(answer, (Iterator, ValuesView)) else answer


def tidy(function: Callable) -> Callable:
    """The function with its groups in order: lists, tuples and sets are all the same to the judge."""
    def call(graph):
        answer = as_list(function(graph))
        answer = [as_list(group) for group in answer] if isinstance(answer, (list, tuple)) else answer
        found = in_order(answer, graph)
        return answer if found is None else found
    return call


# ---- the rules: each gives the sentence for a fault, or nothing -----------------------------------------------------


Members = Callable[[dict[str, Node], tuple[str, ...]], str]


def fault(graph: Graph, groups: Groups, members: Members) -> tuple[str, str] | None:
    """The first rule that the groups break: its kind and a sentence. ``members`` says what may share a loop."""
    nodes, home = defs(graph), {}
    for number, group in enumerate(groups):
        for name in group:
            if name not in nodes:
                return "invalid", f"There is no value called {name} in this graph."
            if not is_computed(nodes[name]):
                what = "an input: it is given" if nodes[name].op == "input" else "a constant"
                return "invalid", f"{name} is {what}, so it is in no group."
            if name in home:
                where = "a group twice" if home[name] == number else "two groups"
                return "twice", f"{name} is in {where}, so it would be computed twice."
            home[name] = number
    for node in graph.nodes:
        if is_computed(node) and node.name not in home:
            return "missing", f"{node.name} is in no group, so nobody would compute it."
    if loop := waiting(graph, groups):
        return "cycle", f"The groups wait for each other, so neither can run first: {loop}."
    readers, outputs = users(graph), {value for _, value in graph.outputs}
    for number, group in enumerate(groups):
        if sentence := members(nodes, group):
            return "illegal", sentence
        for name in group[:-1]:
            if name in outputs:
                return "outside", f"{name} is an output of the graph, but its group stores only {group[-1]}."
            for reader in readers[name]:
                if home[reader] != number:
                    return "outside", (f"{reader} reads {name} from another group, but the group of {name} stores only"
                                       f" {group[-1]}.")
            if not readers[name]:
                return "stray", f"Nobody reads {name}, so it has no place in a group that stores {group[-1]}."
    return None


def waiting(graph: Graph, groups: Groups) -> str:
    """Which groups wait for each other, as text; nothing if there is an order to run them in."""
    home = {name: number for number, group in enumerate(groups) for name in group}
    needs: dict[int, dict[int, tuple[str, str]]] = {number: {} for number in range(len(groups))}
    for node in graph.nodes:
        for name in node.inputs:
            if node.name in home and name in home and home[name] != home[node.name]:
                needs[home[node.name]].setdefault(home[name], (node.name, name))
    waits = {number: len(others) for number, others in needs.items()}
    feeds: dict[int, list[int]] = {number: [] for number in needs}
    for number, others in needs.items():
        for other in others:
            feeds[other].append(number)
    ready = [number for number, count in waits.items() if not count]
    while ready:
        for number in feeds[ready.pop()]:
            waits[number] -= 1
            if not waits[number]:
                ready.append(number)
    left = [number for number, count in waits.items() if count]
    if not left:
        return ""
    walk, seen = left[0], []
    while walk not in seen:
        seen.append(walk)
        walk = next(other for other in needs[walk] if waits[other])
    loop = seen[seen.index(walk):]
    steps = [needs[one][other] for one, other in zip(loop, [*loop[1:], loop[0]])]
    return " and ".join(f"{reader} needs {name}" for reader, name in steps)


def on_the_way(graph: Graph, groups: Groups) -> list[Node]:
    """The nodes that stand between two nodes of a group that they are not in: a way out of it and back."""
    found = {}
    for group in map(set, groups):
        below, leads = set(group), set(group)
        for node in graph.nodes:
            if not below.isdisjoint(node.inputs):
                below.add(node.name)
        for node in reversed(graph.nodes):
            if node.name in leads:
                leads.update(node.inputs)
        found |= dict.fromkeys((below & leads) - group)
    return [node for node in graph.nodes if node.name in found]


def element_wise(nodes: dict[str, Node], group: tuple[str, ...]) -> str:
    """The members of a loop: element-wise, and all of one shape; axes of length 1 make no difference to a loop."""
    last = nodes[group[-1]]
    for node in map(nodes.get, group if len(group) > 1 else ()):
        if OPS[node.op].kind is not Kind.ELEMENTWISE:
            return f"{node.name} is a {node.op}, which is not element-wise, so it shares no loop."
    for node in map(nodes.get, group):
        if squeeze(node.type.shape) != squeeze(last.type.shape):
            return (f"{node.name} has the shape {list(node.type.shape)}, and the loop runs over"
                    f" {list(last.type.shape)}: each element would be computed again and again.")
    return ""


def with_product(nodes: dict[str, Node], group: tuple[str, ...]) -> str:
    """The members of a loop behind a product: one matmul at most, and nothing of the group before it."""
    products = [name for name in group if nodes[name].op == "matmul"]
    if len(group) == 1 or not products:
        return element_wise(nodes, group)
    if len(products) > 1:
        return f"{' and '.join(products)} are two products in one group: one launch holds one."
    for name in nodes[products[0]].inputs:
        if name in group:
            return f"{products[0]} reads each element of {name} many times, so {name} would be computed as often."
    if nodes[group[-1]].op == "matmul":
        return f"{products[0]} ends its group: what is before a product shares no loop with it."
    if squeeze(nodes[products[0]].type.shape) != squeeze(nodes[group[-1]].type.shape):
        return f"{products[0]} has another shape than the loop over {group[-1]}."
    return element_wise(nodes, (*(name for name in group if name not in products), group[-1]))


# ---- a node in several groups ---------------------------------------------------------------------------------------


def elements(nodes: dict[str, Node], groups: Groups) -> int:
    """How many elements the groups' loops compute: in a loop, each node once for each element of the last one."""
    return sum(len(group) * nodes[group[-1]].type.size for group in groups)


def copied(graph: Graph, groups: Groups) -> tuple[Graph, tuple[tuple[str, ...], ...]]:
    """The graph with a node of its own for every time that one is computed: ``e``, ``e.copy``, ``e.copy2`` …"""
    nodes, made, count = defs(graph), {}, {}
    for number, group in enumerate(groups):
        for name in group:
            count[name] = count.get(name, 0) + 1
            made[number, name] = name + (f".copy{count[name] if count[name] > 2 else ''}" if count[name] > 1 else "")
    body = [node for node in graph.nodes if not is_computed(node)]
    for node in graph.nodes:
        for number, group in enumerate(groups):
            if node.name in group:
                inputs = tuple(made.get((number, name), name) for name in node.inputs)
                body.append(replace(nodes[node.name], name=made[number, node.name], inputs=inputs))
    return (Graph(graph.name, tuple(body), graph.outputs),
            tuple(tuple(made[number, name] for name in group) for number, group in enumerate(groups)))
