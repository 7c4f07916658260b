"""The plan: launches over buffers at fixed offsets. Every back end runs the same one.

``make_plan`` takes a partition and decides three things: what each launch reads and stores, which values share
memory (views, results written in place), and where in one arena each buffer lies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

import numpy as np

from .access import Access, row_major, squeeze, view, whole
from .errors import PassError
from .fusion import Cluster, Partition, fuse
from .ir import Graph, Node, defs, users
from .ops import OPS
from .planners import Buffer, Placement, greedy_by_size
from .types import Type, splat
from .verify import check_donate

ALIGNMENT = 64  # bytes: a cache line, and the widest vector register
INLINE = 4096  # a constant of one repeated value, up to so many elements, is a number in the source


class Launch(NamedTuple):
    """One kernel, or one call of a library."""

    name: str  # of the value that it stores
    kind: str  # its cluster's kind, or "copy": a view that strides cannot express
    nodes: tuple[str, ...]
    reads: tuple[str, ...]  # the values that it reads from memory, each once
    in_place: str | None  # the operand into whose memory it writes
    bytes_read: int
    bytes_written: int
    flops: int
    cluster: Cluster


class Region(NamedTuple):
    """A piece of memory. ``where`` is input, const, output or arena; only in the arena does the offset count."""

    where: str
    nbytes: int
    start: int = 0  # the launch that writes it first
    end: int = 0  # one past the last launch that reads it
    offset: int = 0  # bytes


class Output(NamedTuple):
    """A result: ``copied`` where its memory is not its own (a view, an input, a constant, a value returned twice)."""

    public: str
    value: str
    copied: bool


@dataclass(frozen=True)
class Plan:
    """What to launch, and where every value lies."""

    graph: Graph
    nodes: dict[str, Node]  # value -> the node that defines it
    partition: Partition
    launches: tuple[Launch, ...]
    access: dict[str, Access]  # value -> its buffer and strides; values inside a launch have none
    regions: dict[str, Region]  # buffer -> its memory
    outputs: tuple[Output, ...]
    donate: frozenset[str]
    placement: Placement

    @property
    def arena_bytes(self) -> int:
        """The size of the arena, for everything that is neither input, constant nor output."""
        return self.placement.footprint

    def type(self, name: str) -> Type:
        return self.nodes[name].type

    def number(self, name: str):
        """The one element of a constant that the generated code writes as a number, or None; see ``number``."""
        return number(self.nodes[name])

    @property
    def bytes_moved(self) -> int:
        """Bytes read and written by all launches."""
        return sum(launch.bytes_read + launch.bytes_written for launch in self.launches)


def number(node: Node) -> bytes | None:
    """The bytes of the one element that fills a small constant, or None: generated code has it as a literal."""
    if node.op != "const" or not 1 <= node.type.size <= INLINE:
        return None
    return splat(node.value)


def make_plan(partition: Partition | Graph, donate: Iterable[str] = (), planner: Callable = greedy_by_size) -> Plan:
    """Plan the launches of a partition (of a graph: of its default fusion).

    ``donate`` names inputs that the caller gives away: an ``update_slice`` with no later reader writes into them.
    Raises RunError for what is no list of inputs' names.
    """
    if isinstance(partition, Graph):
        partition = fuse(partition)
    graph, donate = partition.graph, check_donate(partition.graph, donate)
    nodes = defs(graph)
    access: dict[str, Access] = {n.name: whole(n.name, n.type) for n in graph.nodes if n.op in ("input", "const")}
    readers = users(graph)
    for _, value in graph.outputs:
        readers[value].append("")  # the caller reads it too
    launches = [launch for cluster in partition.clusters if (launch := make_launch(cluster, nodes, access, readers)) is not None]
    launches = share_memory(launches, nodes, access, donate, partition)
    regions, outputs, placement = lay_out(graph, launches, nodes, access, planner)
    return Plan(graph, nodes, partition, tuple(launches), access, regions, outputs, donate, placement)


def make_launch(cluster: Cluster, nodes: dict[str, Node], access: dict[str, Access], readers: dict[str, list[str]]) -> Launch | None:
    """The launch of a cluster; None for a view, which is only another way to read its operand's memory."""
    root, kind = nodes[cluster.nodes[-1]], cluster.kind
    if kind == "view":
        seen = view(root, access[root.inputs[0]])
        if seen is not None:
            access[root.name] = seen
            return None
        kind, space = "copy", squeeze(access[root.inputs[0]].shape)  # element after element, in the operand's order
        cluster = Cluster(kind, cluster.nodes, space, (), ((root.name, tuple(range(len(space)))),))
    access[root.name] = whole(root.name, root.type) if kind in ("copy", "move") else stored(root, nodes, readers)
    inside = set(cluster.nodes)
    reads = tuple(dict.fromkeys(name for node in cluster.nodes for name in nodes[node].inputs
                                if name not in inside and nodes[name].type.dtype != "token"))
    flops = sum(OPS[node.op].flops(tuple(nodes[i].type for i in node.inputs), node.value, node.type)
                for node in map(nodes.get, cluster.nodes))
    read = sum(bytes_touched(nodes[name], access[name]) for name in reads
               if kind == "library" or number(nodes[name]) is None)
    if root.op == "take":  # of the table it reads what it takes
        read -= max(0, bytes_touched(nodes[root.inputs[0]], access[root.inputs[0]]) - root.type.nbytes)
    return Launch(root.name, kind, cluster.nodes, reads, None, read, root.type.nbytes, flops, cluster)


def stored(root: Node, nodes: dict[str, Node], readers: dict[str, list[str]]) -> Access:
    """Where the elements of a result go: in their own order, or, where its one reader is a transpose and that one's a
    reshape, in the order in which the reshape needs them. Then neither of the two moves a byte. Rows stay rows."""
    plain, top, order = whole(root.name, root.type), root, tuple(range(len(root.type.shape)))

    def reader(node: Node) -> Node | None:
        (only, *others) = readers[node.name] or [""]
        return nodes[only] if only and not others else None

    while (below := reader(top)) is not None and below.op == "transpose":
        top, order = below, tuple(order[axis] for axis in below.value.perm)
    if top is root or below is None or below.op != "reshape" or order[-1:] != (len(order) - 1,):
        return plain
    shuffled = plain._replace(shape=top.type.shape, strides=tuple(plain.strides[axis] for axis in order))
    if view(below, shuffled) is not None:
        return plain  # it can be read like that as well
    steps = dict(zip(order, row_major(top.type.shape)))
    return plain._replace(strides=tuple(steps[axis] for axis in range(len(order))))


def bytes_touched(node: Node, access: Access) -> int:
    """The bytes of a value that lie in memory: an axis repeated by a stride of 0 is read once."""
    size = node.type.nbytes
    for dim, stride in zip(access.shape, access.strides):
        size = size // dim if dim and stride == 0 else size
    return size


# ---- who shares whose memory ------------------------------------------------------------------------------------------


def share_memory(launches, nodes, access, donate, partition) -> list[Launch]:
    """Let results take the memory of an operand that nobody reads afterwards: ``access`` then names that buffer.

    Safe for a launch that reads element i of the operand only for element i of the result, before it writes it; and
    for an update of a donated input, which writes nothing but the update.
    """
    last: dict[str, int] = {}
    for index, launch in enumerate(launches):
        for name in launch.reads:
            last[access[name].buffer] = index
    for _, value in partition.graph.outputs:
        last[access[value].buffer] = len(launches)
    owner: dict[str, str] = {}
    ours = set(donate)  # buffers in donated memory
    result = []
    outputs = {value for _, value in partition.graph.outputs}
    for index, launch in enumerate(launches):
        for name in launch.reads:
            if last[access[name].buffer] != index:
                continue
            donated = launch.nodes[-1] in ours_after_update(launch, nodes, access, ours)
            reusable = nodes[access[name].buffer].op not in ("input", "const") and launch.name not in outputs
            if (donated and name == nodes[launch.name].inputs[0]) or (reusable and same_elements(launch, name, nodes, access)):
                owner[launch.name] = owner.get(access[name].buffer, access[name].buffer)
                launch = launch._replace(in_place=name)
                if donated:
                    ours.add(launch.name)
                    moved = nodes[nodes[launch.name].inputs[1]].type.nbytes
                    launch = launch._replace(bytes_read=moved, bytes_written=moved)
                break
        result.append(launch)
    for name, lies in access.items():
        access[name] = lies._replace(buffer=owner.get(lies.buffer, lies.buffer))
    return result


def ours_after_update(launch, nodes, access, ours) -> set[str]:
    """The launch's name in a set, if it is an update of all of donated memory that does not read it in another way."""
    node = nodes[launch.name]
    if node.op != "update_slice" or len(launch.nodes) != 1:
        return set()
    target, *others = (access[name] for name in node.inputs)
    if target.buffer not in ours or target != whole(target.buffer, nodes[target.buffer].type):
        return set()  # a view of it has another shape than what the caller gets back
    return set() if any(other.buffer == target.buffer for other in others) else {launch.name}


def same_elements(launch: Launch, name: str, nodes: dict[str, Node], access: dict[str, Access]) -> bool:
    """Does the launch read this operand exactly where it writes its result?"""
    if launch.kind not in ("map", "reduce") or nodes[name].type.nbytes != nodes[launch.name].type.nbytes:
        return False
    same = [other for other in launch.reads if access[other].buffer == access[name].buffer]
    wide = nodes[name].type.size == prod(launch.cluster.space) if launch.kind == "reduce" else True
    return same == [name] and access[name].contiguous and access[launch.name].contiguous and wide and nodes[name].type.dtype == nodes[launch.name].type.dtype


# ---- where everything lies ------------------------------------------------------------------------------------------------


def lay_out(graph, launches, nodes, access, planner) -> tuple[dict[str, Region], tuple[Output, ...], Placement]:
    """Lifetimes over launches, then offsets: inputs, constants and outputs have memory of their own."""
    where = {node.name: node.op for node in graph.nodes if node.op in ("input", "const")}
    start, end = {}, {}
    for index, launch in enumerate(launches):
        start.setdefault(access[launch.name].buffer, index)
        for name in (launch.name, *launch.reads):
            end[access[name].buffer] = index + 1
    in_place = {launch.name for launch in launches if launch.in_place}
    outputs, given = [], set()
    for public, value in graph.outputs:
        buffer = access[value].buffer
        own = buffer not in where and buffer == value and access[value].contiguous
        updated = where.get(buffer) == "input" and value in in_place and value not in given
        outputs.append(Output(public, value, not (own or updated)))
        given.add(value)
        if own:
            where[buffer] = "output"
        end[buffer] = len(launches)
    inside = [name for name in start if name not in where]
    rooms = [Buffer(name, start[name], end[name], -(-nodes[name].type.nbytes // ALIGNMENT) * ALIGNMENT) for name in inside]
    placement = planner(rooms)
    offset = dict(zip(inside, placement.offsets))
    regions = {name: Region(where.get(name, "arena"), nodes[name].type.nbytes, start.get(name, 0), end.get(name, 0),
                            offset.get(name, 0)) for name in dict.fromkeys([*where, *start])}
    return regions, tuple(outputs), placement


def check_plan(plan: Plan) -> list[str]:
    """What is wrong with a plan's memory, as sentences. It shares no code with the planner: it plays the plan.

    Each line of memory remembers which value was written there last; every read must still find its own.
    """
    found: list[str] = []
    written = [launch.name for launch in plan.launches]
    number = {name: i for i, name in enumerate(dict.fromkeys([*plan.regions, *written]))}  # of a value in memory; -1 is none
    names, stores = list(number), set(written)
    arena = np.full(-(-plan.arena_bytes // ALIGNMENT), -1)
    memory = {name: arena if region.where == "arena" else np.full(-(-region.nbytes // ALIGNMENT), -1)
              for name, region in plan.regions.items()}  # buffer -> for each of its memory's lines the value there

    def source(name: str) -> str:
        while name not in stores and plan.nodes[name].op not in ("input", "const"):
            (name,) = plan.nodes[name].inputs  # a view
        return name

    def lines(name: str) -> tuple[str, int, int]:
        """The memory's buffer, and the lines there from the first up to, not including, the last."""
        buffer = plan.access[name].buffer
        first = plan.regions[buffer].offset // ALIGNMENT
        return buffer, first, first + -(-plan.type(source(name)).nbytes // ALIGNMENT)

    def look(name: str, who: str) -> None:
        buffer, first, last = lines(name)
        there = memory[buffer][first:last]
        if len(other := np.flatnonzero(there != number[source(name)])):
            value = names[there[other[0]]] if there[other[0]] >= 0 else "nothing"
            found.append(f"{who} needs {name}, but at byte {(first + int(other[0])) * ALIGNMENT} there is {value} by then")

    for name, region in plan.regions.items():
        if region.offset % ALIGNMENT or region.offset < 0:
            found.append(f"{name} lies at byte {region.offset}, which is no multiple of {ALIGNMENT}")
        if region.where in ("input", "const"):
            memory[name][:] = number[name]
    for launch in plan.launches:
        buffer, first, last = lines(launch.name)
        for name in launch.reads:
            look(name, launch.name)
            other, start, stop = lines(name)
            if memory[other] is memory[buffer] and start < last and first < stop and (name != launch.in_place or start != first):
                found.append(f"{launch.name} writes where it still reads {name}")
        if last > len(memory[buffer]):
            found.append(f"{launch.name} does not fit the arena")
        region = plan.regions[buffer]
        if region.where == "const" or (region.where == "input" and buffer not in plan.donate):
            found.append(f"{launch.name} writes into {buffer}, which is not ours")
        memory[buffer][first:last] = number[launch.name]
    for public, value, _ in plan.outputs:
        look(value, f"output {public}")
    return found


def verify_plan(plan: Plan) -> None:
    """Raise PassError for a plan that would overwrite what is still needed."""
    if faults := check_plan(plan):
        raise PassError("the memory plan is wrong: " + "; ".join(faults[:3]))
