"""Fusion: a partition of the graph's nodes into clusters, each of which becomes one launch.

The partition is data beside the graph, which stays as it is. One walk from the outputs upwards: a node joins the
cluster of its users if all of them are in that one cluster and no predicate objects. It can make no cycle, because
whatever leaves a joined node stays inside its cluster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from .access import VIEWS, relabels, squeeze
from .attention import Attention, find_attention
from .dialect import C
from .errors import GraphError
from .ir import Graph, Node, defs, users
from .ops import OPS, Kind, normal_axes

MOVES = ("concat", "pad", "take", "update_slice")  # they copy elements from place to place; the kernel is a few loops
REDUCES = ("sum", "prod", "mean", "max", "min", "any", "all")  # the reductions for which a kernel can be generated
PRODUCTS = ("matmul", "packed_matmul", "sparse_matmul", "block_matmul")
AHEAD = 16  # nodes between a reduction and the element-wise work on its rows
SMALL = ("i8", "u8", "i16", "u16")  # dtypes that every float type holds exactly: float16 is no product's
ROWS = 4  # a product of at most so many rows is generated: it only streams its weights, as a good library does too
PACKED_ROWS = 64  # a library would have to unpack all weights first
MOST_OPERANDS = 60  # a kernel's parameters must fit 4 KB on a GPU
MOST_NODES = 2000  # a C compiler's time grows faster than the kernel: 2 s for these, a minute for five times as many


class Cluster(NamedTuple):
    """Nodes that become one launch, in the graph's order; the last one is the value that it stores.

    ``kind`` is map (element-wise), reduce (rows: prologue, reductions, epilogue), epilogue (a generated product and
    what follows it element by element), attention, move, view (no launch) or library (a call for the one node).
    ``space`` are the lengths of the loops, without axes of length 1, ``axes`` those of them that are reduced, and
    ``at`` says for each node along which loops its own axes run.
    """

    kind: str
    nodes: tuple[str, ...]
    space: tuple[int, ...] = ()
    axes: tuple[int, ...] = ()
    at: tuple[tuple[str, tuple[int, ...]], ...] = ()


class Partition(NamedTuple):
    """Every node but inputs and constants in exactly one cluster, clusters in an order in which they can run.

    ``refused`` says for each node that did not join its users why not.
    """

    graph: Graph
    clusters: tuple[Cluster, ...]
    refused: dict[str, str]


@dataclass(slots=True)
class Open:
    """A cluster while it grows."""

    kind: str
    space: tuple[int, ...] = ()
    axes: tuple[int, ...] = ()
    at: dict[str, tuple[int, ...]] = field(default_factory=dict)
    nodes: list[str] = field(default_factory=list)
    operands: set[str] = field(default_factory=set)
    widened: set[str] = field(default_factory=set)  # casts that its product does while it reads: they run along no loop

    @property
    def every(self) -> tuple[int, ...]:
        return tuple(range(len(self.space)))

    @property
    def kept(self) -> tuple[int, ...]:
        return without(self.every, self.axes)


class Facts(NamedTuple):
    """What the predicates may ask."""

    nodes: dict[str, Node]
    users: dict[str, list[str]]
    outputs: frozenset[str]
    rows: int


def fuse(graph: Graph, rows: int = ROWS, enabled: bool = True) -> Partition:
    """Partition a verified graph into launches.

    Products of at most ``rows`` rows are generated, so that what follows them can join (0: a library does every
    product). ``enabled=False`` leaves each node a launch of its own, to compare with.
    """
    facts = Facts(defs(graph), users(graph), frozenset(value for _, value in graph.outputs), rows)
    home: dict[str, Open] = {}
    refused: dict[str, str] = {}
    made: list[Open] = []
    attention = find_attention(graph, facts.users, facts.outputs) if enabled and rows else {}
    for node in reversed(graph.nodes):
        if OPS[node.op].kind in (Kind.INPUT, Kind.CONST) or node.name in home:
            continue
        if (one := attention.get(node.name)) and few_rows(facts.nodes[one.scores], facts) <= rows:
            cluster = open_attention(one, facts)
            made.append(cluster)
            home.update(dict.fromkeys(cluster.nodes, cluster))
            continue
        why = why_apart(node, home, facts) if enabled else "fusion is off"
        if why is None:
            cluster = home[facts.users[node.name][0]]
            join(node, cluster, facts)
        else:
            refused[node.name] = why
            cluster = open_cluster(node, facts)
            made.append(cluster)
        cluster.nodes.append(node.name)
        cluster.operands = (cluster.operands | set(node.inputs)) - {node.name}
        home[node.name] = cluster
    clusters = tuple(Cluster(one.kind, tuple(reversed(one.nodes)), one.space, one.axes, tuple(one.at.items()))
                     for one in reversed(made))
    return Partition(graph, clusters, refused)


def join(node: Node, cluster: Open, facts: Facts) -> None:
    """Take the node in; a first reduction makes the cluster one of rows."""
    if is_widened(node, cluster, facts):
        cluster.widened.add(node.name)
        return
    place = placement(node, cluster, facts)
    if node.op in PRODUCTS:
        cluster.kind = "epilogue"
    elif node.op not in REDUCES and place != cluster.every and cluster.kind == "map":
        cluster.kind, cluster.axes = "reduce", without(cluster.every, place)
    elif node.op in REDUCES and cluster.kind == "map":
        space, axes = reduced_axes(node, facts)
        if squeeze(node.type.shape) == cluster.space and len(space) > len(cluster.space):
            kept = without(range(len(space)), axes)
            cluster.at = {name: tuple(kept[axis] for axis in place) for name, place in cluster.at.items()}
            place = kept  # what was the whole space is now one number a row
        cluster.kind, cluster.space, cluster.axes = "reduce", space, axes
    cluster.at[node.name] = place


def open_cluster(node: Node, facts: Facts) -> Open:
    """The cluster that a node starts when it cannot join its users."""
    if node.op in VIEWS:
        return Open("view")
    if node.op in MOVES and node.type.size and len(node.inputs) <= MOST_OPERANDS:
        return Open("move")  # an empty result has no loop in which an index would be checked: NumPy does that
    if not is_generated(node, facts):
        return Open("library")
    if node.op in REDUCES:
        space, axes = reduced_axes(node, facts)
        cluster = Open("reduce", space, axes)
        cluster.at[node.name] = cluster.kept
        return cluster
    cluster = Open("epilogue" if node.op in PRODUCTS else "map", squeeze(node.type.shape))
    cluster.at[node.name] = cluster.every
    return cluster


def open_attention(attention: Attention, facts: Facts) -> Open:
    """All of an attention; its space are the scores' loops, of which the last one is reduced."""
    space = squeeze(facts.nodes[attention.scores].type.shape)
    cluster = Open("attention", space, (len(space) - 1,), nodes=list(reversed(attention.nodes)))
    cluster.at = dict.fromkeys((*attention.prologue, attention.scores), cluster.every)
    return cluster


# ---- the predicates: each gives None, or the reason why the node must be a launch apart from its users ----------------


def why_apart(node: Node, home: dict[str, Open], facts: Facts) -> str | None:
    for predicate in PREDICATES:
        if (reason := predicate(node, home, facts)) is not None:
            return reason
    return None


def is_an_output(node, home, facts):
    if node.name in facts.outputs:
        return "it is an output of the graph, so it must be stored"


def has_no_user(node, home, facts):
    if not facts.users[node.name]:
        return "nobody reads it"


def is_a_draw_or_an_effect(node, home, facts):
    if OPS[node.op].kind in (Kind.RANDOM, Kind.EFFECT):
        return f"{node.op} is not a function of its operands alone"


def has_users_apart(node, home, facts):
    if len({id(home[user]) for user in facts.users[node.name]}) > 1:
        return "its users are in different launches: it is stored once, not computed twice"


def feeds_a_closed_launch(node, home, facts):
    user = facts.users[node.name][0]
    cluster = home[user]
    if cluster.kind in ("library", "view", "move", "attention"):
        return f"{facts.nodes[user].op} reads it from memory"
    if user in cluster.widened:
        return "a product reads it from memory"
    if cluster.kind == "epilogue" and any(facts.nodes[name].op in PRODUCTS for name in facts.users[node.name]):
        return None if is_widened(node, cluster, facts) else "a product reads each element of its operands many times: it would be computed as often"


def is_widened(node: Node, cluster: Open, facts: Facts) -> bool:
    """Small integers that a matmul alone reads as floats: the cast is exact and costs less than the bytes it saves."""
    return (cluster.kind == "epilogue" and node.op == "cast" and facts.nodes[node.inputs[0]].type.dtype in SMALL
            and all(facts.nodes[name].op == "matmul" for name in facts.users[node.name]))


def is_not_generated(node, home, facts):
    if not (is_generated(node, facts) or relabels(node, facts.nodes)):
        return f"{node.op} of {node.type} is a library's work" if node.op not in VIEWS else f"{node.op} moves elements"


def needs_a_second_loop(node, home, facts):
    cluster = home[facts.users[node.name][0]]
    if node.op in PRODUCTS and cluster.kind != "map":
        return "one launch holds one product, and nothing but element-wise work behind it"
    if node.op in REDUCES and cluster.kind == "epilogue":
        return "its launch holds a product already"


def is_read_elsewhere(node, home, facts):
    """The element-wise rule: every user must want exactly the element that the loop is at."""
    cluster = home[facts.users[node.name][0]]
    if is_widened(node, cluster, facts):
        return None  # the product knows where it is
    places = {wanted(node, facts.nodes[user], cluster, facts) for user in facts.users[node.name]}
    if len(places) > 1:
        return "its users read it along different axes"
    (place,) = places
    if node.op in REDUCES:
        return reduces_elsewhere(node, cluster, place, facts)
    if node.op in PRODUCTS or cluster.kind != "reduce":
        if place == cluster.every or (cluster.kind == "map" and is_of_rows(node, cluster, place, facts)):
            return None
        return "a broadcast reads it again and again: it would be computed as often"
    if place not in (cluster.every, cluster.kept):
        return "the rows of this launch run along other axes"


def is_of_rows(node: Node, cluster: Open, place: tuple[int, ...], facts: Facts) -> bool:
    """Is it one number a row, made from a reduction of the rows that this launch works on? Then it is computed once a row.

    The walk upwards has not met the reduction yet, so this looks ahead, a few nodes far.
    """
    todo = [node]
    for _ in range(AHEAD):
        if not todo:
            break
        above = [facts.nodes[name] for name in todo.pop().inputs]
        for other in above:
            if other.op in REDUCES:
                space, axes = reduced_axes(other, facts)
                if space == cluster.space and axes == without(cluster.every, place):
                    return is_generated(other, facts)
            elif squeeze(other.type.shape) == squeeze(node.type.shape) and (OPS[other.op].kind is Kind.ELEMENTWISE or relabels(other, facts.nodes)):
                todo.append(other)
    return False


def reduces_elsewhere(node: Node, cluster: Open, place: tuple[int, ...], facts: Facts) -> str | None:
    space, axes = reduced_axes(node, facts)
    if not axes:
        return "it reduces axes of length 1"
    kept = without(range(len(space)), axes)
    if cluster.kind == "map" and place == cluster.every and len(space) > len(cluster.space):
        return None  # a result for each row, and the rows are this launch's space
    if space != cluster.space:
        return "it reduces another shape than this launch works on"
    if cluster.kind == "reduce" and axes != cluster.axes:
        return "this launch reduces along other axes"
    if place != kept:
        return "it is reduced along one axis and broadcast along another: each row would need the other rows' results"


def has_too_many_operands(node, home, facts):
    cluster = home[facts.users[node.name][0]]
    if len((cluster.operands | set(node.inputs)) - {node.name}) > MOST_OPERANDS:
        return f"a launch has at most {MOST_OPERANDS} operands"


def has_too_many_nodes(node, home, facts):
    if len(home[facts.users[node.name][0]].nodes) >= MOST_NODES:
        return f"a launch has at most {MOST_NODES} operations"


PREDICATES: tuple[Callable[[Node, dict[str, Open], Facts], str | None], ...] = (
    is_an_output, has_no_user, is_a_draw_or_an_effect, has_users_apart, feeds_a_closed_launch, is_not_generated,
    needs_a_second_loop, is_read_elsewhere, has_too_many_operands,
    has_too_many_nodes,
)  # fmt: skip


# ---- axes ----------------------------------------------------------------------------------------------------------------


def without(axes: Iterable[int], some: Iterable[int]) -> tuple[int, ...]:
    """The axes that are not among some of them."""
    return tuple(axis for axis in axes if axis not in some)


def is_generated(node: Node, facts: Facts) -> bool:
    """Can a kernel be generated for the node?"""
    kind = OPS[node.op].kind
    types = tuple(facts.nodes[name].type for name in node.inputs)
    if kind is Kind.ELEMENTWISE:
        return C.supports(OPS[node.op], types, node.type, node.value)
    if node.op in PRODUCTS and node.op != "matmul":  # their weights are read from end to end, so not through a view
        interleaved = node.op != "packed_matmul" or node.value.format.endswith("x16")
        solid = all(facts.nodes[name].op not in VIEWS for name in node.inputs[1:])
        some = facts.nodes[node.inputs[0]].type.size > 0
        return interleaved and solid and some and 0 < node.type.size <= PACKED_ROWS * node.type.shape[-1] and facts.rows > 0
    if node.op == "matmul":
        return node.type.dtype in ("f32", "f64") and few_rows(node, facts) <= facts.rows
    if node.op in REDUCES:
        return node.type.dtype != "f16" and bool(reduced_axes(node, facts)[1])
    return False


def few_rows(node: Node, facts: Facts) -> int:
    """The rows of a product's left operand or the columns of its right one, whichever are fewer."""
    a, b = (facts.nodes[name].type.shape for name in node.inputs)
    rows = 1 if len(a) == 1 else a[-1 if node.value.transpose_a else -2]
    columns = 1 if len(b) == 1 else b[-2 if node.value.transpose_b else -1]
    return min(rows, columns)


def reduced_axes(node: Node, facts: Facts) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The loops over a reduction's operand, and which of them it reduces."""
    shape = facts.nodes[node.inputs[0]].type.shape
    axes = normal_axes(node.value.axis, len(shape))
    number = {axis: count for count, axis in enumerate(axis for axis, dim in enumerate(shape) if dim != 1)}
    return squeeze(shape), tuple(sorted(number[axis] for axis in axes if axis in number))


def wanted(node: Node, user: Node, cluster: Open, facts: Facts) -> tuple[int, ...] | None:
    """Along which loops of the cluster ``user`` reads ``node``: one loop for each axis that is not of length 1."""
    if user.op in REDUCES:
        return cluster.every
    return along(node.type.shape, user, cluster.at[user.name])


def along(shape: tuple[int, ...], user: Node, at: tuple[int, ...]) -> tuple[int, ...]:
    """As ``wanted``, for an operand of this shape of an element-wise or relabelling user that runs along ``at``."""
    if OPS[user.op].kind is not Kind.ELEMENTWISE:
        return at
    target = user.type.shape
    loops = iter(at)
    loop_of = [next(loops) if dim != 1 else None for dim in target]
    return tuple(loop for loop, dim in zip(loop_of[len(target) - len(shape):], shape) if dim != 1)


def placement(node: Node, cluster: Open, facts: Facts) -> tuple[int, ...]:
    return wanted(node, facts.nodes[facts.users[node.name][0]], cluster, facts)


# ---- asking about a partition ------------------------------------------------------------------------------------------


def explain(partition: Partition, name: str) -> str:
    """One sentence: with whom a value is computed, and if apart from its users, why."""
    if name not in {node.name for node in partition.graph.nodes}:
        raise GraphError(f"there is no value '{name}' in {partition.graph.name}")
    for cluster in partition.clusters:
        if name in cluster.nodes:
            others = [other for other in cluster.nodes if other != name]
            company = f" together with {', '.join(others)}" if others else ""
            apart = partition.refused.get(name)
            return f"{name} is computed{company} in one {cluster.kind} launch" + (f"; it is apart from its users, because {apart}" if apart else "")
    return f"{name} is not computed: it is given"


def problems(graph: Graph, clusters: Iterable[Cluster]) -> list[str]:
    """What is wrong with a partition, as sentences; none for a right one. Shares no code with ``fuse``."""
    import networkx

    found, home = [], {}
    computed = [node for node in graph.nodes if node.op not in ("input", "const")]
    for number, cluster in enumerate(clusters):
        for name, times in Counter(cluster.nodes).items():
            if home.setdefault(name, number) != number or times > 1:
                found.append(f"{name} is in two clusters")
    names = {node.name for node in computed}
    found += [f"{node.name} is in no cluster" for node in computed if node.name not in home]
    found += [f"{name} is no node to compute" for name in home if name not in names]
    if found:
        return found
    edges = [(home[name], home[node.name], name) for node in computed for name in node.inputs if name in home]
    quotient = networkx.DiGraph((a, b) for a, b, _ in edges if a != b)
    if not networkx.is_directed_acyclic_graph(quotient):
        loop = " -> ".join(str(a) for a, _ in networkx.find_cycle(quotient))
        found.append(f"clusters wait for each other: {loop}")
    elif any(a > b for a, b, _ in edges):
        found.append("a cluster comes before one whose result it reads")
    stored = {cluster.nodes[-1] for cluster in clusters}
    read = {name for a, b, name in edges if a != b} | {value for _, value in graph.outputs if value in home}
    return found + [f"{name} is needed outside its cluster, which does not store it" for name in sorted(read - stored)]
