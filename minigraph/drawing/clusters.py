"""Pictures of a partition: which nodes become one launch, and what goes through memory between launches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from . import look
from .alt import caption
from .dot import CLUSTER, GREY, VERMILLION, cluster, digraph, printable, statement
from ..errors import GraphError, nearest
from ..fusion import Cluster, Partition
from ..ir import Graph, Node, defs
from ..ops import OPS, Kind
from ..plan import number as number_in_code
from .picture import Picture
from .plan import LIMIT, count_of

STORED = dict(style="bold", penwidth=2.4)  # through memory; what stays inside a launch is a thin arrow
WAITS = dict(style="dashed", penwidth=2.6, color=VERMILLION)
# A title is a node in the first row of its frame: arrows go around nodes, and across the label of a frame.
TITLE = dict(shape="plaintext", style="", width=0, height=0, margin=0.02, fontsize=12)
NO_LAUNCH = "a view: no launch"


def draw_clusters(partition: Partition | Graph, groups: Iterable[Sequence[str]] | None = None, limit: int = LIMIT) -> Picture:
    """Each cluster in a frame. Bold arrows go through memory, thin ones stay in registers; dashed ones close a cycle.

    ``partition`` is what ``fuse`` returns; or a graph, and ``groups`` of names that need not be a right partition (a
    node without a group is one of its own). More than ``limit`` nodes: one box a cluster. Raises GraphError for groups
    that cannot be drawn: not of names, of names that are none of the graph's operations, or with a name twice.
    """
    graph = partition.graph if isinstance(partition, Partition) else partition
    nodes = defs(graph)
    groups = None if groups is None else list(groups)
    check_groups(nodes, groups or ())
    clusters = list(partition.clusters) if groups is None else [Cluster("", tuple(names)) for names in groups]
    home = {name: number for number, one in enumerate(clusters) for name in one.nodes}
    for node in graph.nodes:
        if OPS[node.op].kind not in (Kind.INPUT, Kind.CONST) and node.name not in home:
            home[node.name] = len(clusters)
            clusters.append(Cluster("", (node.name,)))
    edges = [(name, node.name) for node in graph.nodes for name in dict.fromkeys(node.inputs)]
    waiting = cycle({(home[a], home[b]) for a, b in edges if a in home and b in home and home[a] != home[b]})
    counts = sum(one.kind != "view" for one in clusters)
    notes = ["bold arrows go through memory"]
    notes += ["frames with dashed arrows between them wait for each other: neither can run first"] * bool(waiting)
    title = caption(f"{graph.name}: {count_of(len(home), 'operation')}, {count_of(counts, 'launch', 'launches')}", *notes)
    drawn = whole if len(graph.nodes) <= limit else folded
    lines = drawn(graph, nodes, clusters, home, edges, waiting, limit)
    words = [f"{number + 1}{f' ({one.kind})' if one.kind else ''}: {', '.join(one.nodes[:8])}{' …' * (len(one.nodes) > 8)}"
             for number, one in enumerate(clusters[:20])]
    alt = (f"The graph {graph.name} in {count_of(counts, 'launch', 'launches')}. " + "; ".join(words)
           + (f"; and {len(clusters) - 20} more" if len(clusters) > 20 else "") + "."
           + (f" Clusters {' and '.join(str(one + 1) for one in sorted(waiting))} wait for each other." if waiting else ""))
    return Picture(digraph(lines, label=title), printable(alt), f"the launches of {graph.name}")


def check_groups(nodes: dict[str, Node], groups: Iterable[Sequence[str]]) -> None:
    computed = [name for name, node in nodes.items() if OPS[node.op].kind not in (Kind.INPUT, Kind.CONST)]
    seen: set[str] = set()
    for group in groups:
        if isinstance(group, str) or not isinstance(group, Iterable):
            raise GraphError(f"a group is a tuple of names, and {group!r} is none", hint="a tuple of one name has a comma: ('y',)")
        for name in group:
            if name not in nodes:
                raise GraphError(f"no value is called {name!r}", hint=nearest(str(name), computed) or f"there are {', '.join(computed)}")
            if name not in computed:
                what = {"input": "an input", "const": "a constant"}[nodes[name].op]
                raise GraphError(f"'{name}' is {what}, not an operation", hint="leave it out")
            if name in seen:
                raise GraphError(f"'{name}' is in the groups twice", hint="a node is in one group")
            seen.add(name)


def title_of(number: int, one: Cluster) -> str:
    kind = NO_LAUNCH if one.kind == "view" else one.kind
    return f"{number + 1}: {kind}" if kind else f"{number + 1}"


def whole(graph: Graph, nodes: dict[str, Node], clusters, home, edges, waiting, limit) -> list[str]:
    ids = {name: f"n{number}" for number, name in enumerate(nodes)}
    lines = [look.box(ids[name], nodes[name]) for name in nodes if name not in home]
    for number, one in enumerate(clusters):
        frame = dict(color=VERMILLION, penwidth=2.6) if number in waiting else dict(style="rounded,dashed") if one.kind == "view" else {}
        boxes = [look.box(ids[name], nodes[name]) for name in one.nodes if name in nodes]
        title = [statement(f"t{number}", label=title_of(number, one), **TITLE), f"{{rank=min; t{number};}}"]
        lines += cluster(number, [*title, *boxes], label="", **frame)
    for a, b in edges:
        lines.append(statement(f"{ids[a]} -> {ids[b]}", **arrow(a, b, nodes, home, waiting)))
    for number, (public, value) in enumerate(graph.outputs):
        lines.append(look.output(f"out{number}", public))
        lines.append(statement(f"{ids[value]} -> out{number}", **STORED))
    return lines


def folded(graph: Graph, nodes: dict[str, Node], clusters, home, edges, waiting, limit) -> list[str]:
    """One box a cluster, the first ones only where there are many."""
    shown = clusters[:limit]
    lines = []
    for number, one in enumerate(shown):
        text = look.label(title_of(number, one), [", ".join(one.nodes[:3]) + (f" … ({len(one.nodes)})" if len(one.nodes) > 3 else "")])
        lines.append(statement(f"c{number}", label=text, shape="box", style="filled,rounded", fillcolor=CLUSTER["bgcolor"]))
    if len(clusters) > limit:
        lines.append(statement("more", label=f"… {len(clusters) - limit} more launches …", shape="box", style="dashed,rounded", color=GREY))
    seen = set()
    for a, b in edges:
        pair = home.get(a), home.get(b)
        if None in pair or pair[0] == pair[1] or pair in seen:
            continue
        seen.add(pair)
        tail, head = (f"c{one}" if one < limit else "more" for one in pair)
        if tail != head:
            lines.append(statement(f"{tail} -> {head}", **arrow(a, b, nodes, home, waiting)))
    return lines


def arrow(a: str, b: str, nodes: dict[str, Node], home: dict[str, int], waiting: set[int]) -> dict:
    if (a in home and home[a] == home.get(b)) or number_in_code(nodes[a]) is not None:  # a number is written into the code
        return {}
    return WAITS if home.get(a) in waiting and home.get(b) in waiting else STORED


def cycle(edges: set[tuple[int, int]]) -> set[int]:
    """The clusters that wait for each other, if any: what is left when every cluster is taken away that can run."""
    while True:
        waits = {b for _, b in edges}
        rest = {(a, b) for a, b in edges if a in waits}
        rest = {(a, b) for a, b in rest if b in {x for x, _ in rest}}
        if rest == edges:
            return waits & {a for a, _ in edges}
        edges = rest
