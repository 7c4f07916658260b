"""Does a group of nodes mix up two axes? The judge of a fuser that takes one axis for another of the same length.

A launch loops over the axes of its largest value. Each value in it runs along some of these loops: a whole one along
all, the result of a reduction along those that are left. Whoever reads a value reads it along loops, too, by NumPy's
rules of broadcasting. Where the two differ, an element is wanted that another row computes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from ..access import squeeze
from ..fusion import fuse
from ..ir import Graph, Node, defs, users
from ..ops import OPS, Kind, normal_axes
from .partitions import Groups

Shape = tuple[int, ...]
Loops = tuple[int | None, ...]  # for each axis of a value its loop; None for an axis of length 1
ONE_WAY = "a launch walks along the one or along the other"
OTHERS = "each row would need the other rows' results"


def mixed_up(graph: Graph, group: tuple[str, ...]) -> tuple[str, str] | None:
    """A value of the group that no launch over rows, or over columns, can compute, and why; None if all is well."""
    nodes = defs(graph)
    space = largest([nodes[name] for name in group], nodes)
    at: dict[str, Loops] = {}
    reduced: dict[str, set[int]] = {}
    sums: set[str] = set()  # the reductions of the group, and what is made of their results
    for name in group:
        reads_sums = not sums.isdisjoint(nodes[name].inputs)
        if reads_sums or reduces(nodes[name]):
            sums.add(name)
        own = loops_of(nodes[name], nodes, at, space)
        if own is None:
            continue  # it depends on who reads it
        at[name] = own
        reads = reading(nodes[name], own, at, nodes, space)
        for operand, wanted in reads.items():
            if operand in group and wanted != settle(operand, wanted, at, nodes, group) and operand in sums:
                return operand, (f"is {number_each(at[operand], space)}, and {name} reads it as"
                                 f" {number_each(wanted, space)}: {OTHERS}")
        axes = axes_of(nodes[name], reads)
        if axes and (reads_sums or squeeze(nodes[nodes[name].inputs[0]].type.shape) == squeeze(space)):
            reduced[name] = axes  # a short value made of no sum can be reduced anew in every row
            first = next(iter(reduced))
            if axes != reduced[first]:
                return name, (f"is reduced along {axes_text(axes)}, and {first} along {axes_text(reduced[first])}:"
                              f" {ONE_WAY}")
    return None


def largest(members: list[Node], nodes: dict[str, Node]) -> Shape:
    """The shape that the launch loops over: of what it computes and of what it reduces."""
    shapes = [node.type.shape for node in members]
    shapes += [nodes[name].type.shape for node in members if reduces(node) for name in node.inputs]
    return max(shapes, key=lambda shape: (len(shape), math.prod(shape), shape))


def loops_of(node: Node, nodes: dict[str, Node], at: dict[str, Loops], space: Shape) -> Loops | None:
    """Along which loops a value runs, as far as itself and the earlier ones in ``at`` say."""
    if node.type.shape == space:
        return straight(space, space)
    if not reduces(node):
        return next((aligned(node.type.shape, at[name], nodes[name].type.shape) for name in node.inputs
                     if squeeze(nodes[name].type.shape) == squeeze(node.type.shape) and name in at), None)
    operand = nodes[node.inputs[0]]
    own = at.get(operand.name, straight(operand.type.shape, space))
    if own is None or node.type.shape == operand.type.shape:
        return own
    axes = reduced_axes(node, len(own))
    if len(node.type.shape) == len(own):
        return tuple(None if axis in axes else loop for axis, loop in enumerate(own))
    return tuple(loop for axis, loop in enumerate(own) if axis not in axes)


def reading(node: Node, own: Loops, at: dict[str, Loops], nodes: dict[str, Node], space: Shape) -> dict[str, Loops]:
    """Along which loops a node that runs along ``own`` reads each of its operands."""
    if reduces(node):
        operand = node.inputs[0]
        loops = at.get(operand, straight(nodes[operand].type.shape, space))
        return {} if loops is None else {operand: loops}
    shapes = {name: nodes[name].type.shape for name in node.inputs}
    return {name: aligned(shape, own, node.type.shape) for name, shape in shapes.items()}


def settle(name: str, wanted: Loops, at: dict[str, Loops], nodes: dict[str, Node], group: tuple[str, ...]) -> Loops:
    """The loops of a value. If nothing said so far along which it runs, its first reader does."""
    todo = [(name, wanted)]
    while todo:
        one, loops = todo.pop()
        if one in at or one not in group:
            continue
        at[one] = loops
        node = nodes[one]
        if not reduces(node):
            todo += [(other, aligned(nodes[other].type.shape, loops, node.type.shape)) for other in node.inputs]
    return at[name]


def aligned(shape: Shape, loops: Loops, other: Shape) -> Loops:
    """The loops of a value of ``shape`` beside one of the shape ``other`` with these loops: last axes are the same."""
    return tuple(None if dim == 1 or back > len(other) else loops[-back]
                 for dim, back in zip(shape, range(len(shape), 0, -1)))


def straight(shape: Shape, space: Shape) -> Loops | None:
    """The last axis along the last loop, and so on; None if a length does not fit."""
    if any(dim not in (1, loop) for dim, loop in zip(shape, space[len(space) - len(shape):])):
        return None
    return aligned(shape, tuple(range(len(space))), space)


def axes_of(node: Node, reads: dict[str, Loops]) -> set[int]:
    """The loops that a node reduces, none of length 1 among them."""
    if not reduces(node) or not reads:
        return set()
    (loops,) = reads.values()
    return {loops[axis] for axis in reduced_axes(node, len(loops))} - {None}


def reduced_axes(node: Node, rank: int) -> tuple[int, ...]:
    axis = node.value.axis
    return normal_axes(axis if isinstance(axis, tuple) else (axis,), rank)


def reduces(node: Node) -> bool:
    return OPS[node.op].kind is Kind.REDUCTION


def number_each(loops: Loops, space: Shape) -> str:
    """``one number a row``, for the loops of a matrix."""
    found = set(loops) - {None}
    if len(space) == 2 and len(found) == 1:
        return "one number a row" if found == {0} else "one number a column"
    return f"one number for each index along {axes_text(found)}" if found else "one number"


def axes_text(axes: set[int]) -> str:
    return ("axis " if len(axes) == 1 else "axes ") + " and ".join(map(str, sorted(axes)))


# ---- a graph without a mix-up: what does it lack? -------------------------------------------------------------------


@dataclass
class Harmless:
    """A graph whose groups mix up no axes, to be asked what it lacks."""

    graph: Graph
    groups: Groups
    nodes: dict[str, Node] = field(init=False)
    reductions: list[Node] = field(init=False)
    refused: list[tuple[str, tuple[str, ...], str]] = field(init=False)  # left apart; from which launch; why

    def __post_init__(self):
        self.nodes, launches, readers = defs(self.graph), fuse(self.graph), users(self.graph)
        self.reductions = [node for node in self.graph.nodes if reduces(node)]
        wrong = [group for group in self.groups if not any(set(group) <= set(one.nodes) for one in launches.clusters)]
        apart = [name for group in wrong for name in group[:-1] if name in launches.refused]
        home = {name: launch.nodes for launch in launches.clusters for name in launch.nodes}
        self.refused = [(name, home[readers[name][0]], launches.refused[name]) for name in apart]

    def shape_before(self, node: Node) -> Shape:
        return squeeze(self.nodes[node.inputs[0]].type.shape)

    def has_no_reduction(self) -> bool:
        return not self.reductions

    def adds_nothing_up(self) -> bool:
        return all(squeeze(node.type.shape) == self.shape_before(node) for node in self.reductions)

    def has_no_square(self) -> bool:
        return not any(len(node.type.shape) == 2 and len(set(node.type.shape)) == 1 for node in self.graph.nodes)

    def reduces_all(self) -> bool:
        return all(squeeze(node.type.shape) == () for node in self.reductions)

    def returns_it(self) -> bool:
        outputs = {value for _, value in self.graph.outputs}
        return all(node.name in outputs and (node.name,) in self.groups for node in self.reductions)

    def stays_narrow(self) -> bool:
        """Does nothing read the reduced numbers, or what comes of them, beside a larger value?"""
        readers, todo = users(self.graph), [node.name for node in self.reductions]
        while todo:
            name = todo.pop()
            for reader in readers[name]:
                if len(squeeze(self.nodes[reader].type.shape)) > len(squeeze(self.nodes[name].type.shape)):
                    return False
            todo += readers[name]
        return True

    def reads_columns(self) -> bool:
        return not self.refused and all(0 in reduced_axes(node, len(self.nodes[node.inputs[0]].type.shape))
                                        for node in self.reductions)

    def is_one_launch(self) -> bool:
        return not self.refused
