"""What differs between two graphs, value by value: the nodes and the arrows of their union.

Survivors keep their names, so a name is what a node is recognized by.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest

from ..ir import Graph, Node


@dataclass(frozen=True)
class Change:
    """One name of the union: as it was, as it is, and the arrows that end in it: (value, operand, fate)."""

    name: str
    before: Node | None
    after: Node | None
    reads: tuple[tuple[str, int, str], ...]

    @property
    def node(self) -> Node:
        return self.after or self.before

    @property
    def tag(self) -> str:
        """``removed``, ``added``, ``changed`` (it computes something else) or nothing."""
        if self.after is None:
            return "removed"
        if self.before is None:
            return "added"
        was, now = ((node.op, node.value, node.type) for node in (self.before, self.after))
        return "" if was == now else "changed"

    @property
    def rewired(self) -> bool:
        """Does it compute the same from other operands?"""
        return not self.tag and any(fate == "rewired" for _, _, fate in self.reads)

    @property
    def touched(self) -> bool:
        return bool(self.tag) or self.rewired


@dataclass(frozen=True)
class Union:
    """The nodes of two graphs, and their outputs as changes of a node that reads one value."""

    before: Graph
    after: Graph
    changes: tuple[Change, ...]
    outputs: tuple[Change, ...]

    def named(self, tag: str) -> list[Change]:
        return [change for change in self.changes if change.tag == tag]

    @property
    def rewired(self) -> list[Change]:
        return [change for change in (*self.changes, *self.outputs) if change.rewired]

    @property
    def same(self) -> bool:
        return not any(change.touched for change in (*self.changes, *self.outputs))


def compare(before: Graph, after: Graph) -> Union:
    """The union of two graphs; the order is ``before``'s, then what is new."""
    outputs = [[Node(public, "output", (value,)) for public, value in graph.outputs] for graph in (before, after)]
    return Union(before, after, pair(before.nodes, after.nodes), pair(*outputs))


def pair(before, after) -> tuple[Change, ...]:
    old, new = ({node.name: node for node in reversed(nodes)} for nodes in (before, after))  # the first of a name
    names = dict.fromkeys(node.name for node in (*before, *after))
    return tuple(Change(name, old.get(name), new.get(name), fates(old.get(name), new.get(name))) for name in names)


def fates(before: Node | None, after: Node | None) -> tuple[tuple[str, int, str], ...]:
    """Each operand before and after: kept, removed, added, or rewired to another value."""
    if after is None:
        return tuple((name, i, "removed") for i, name in enumerate(before.inputs))
    if before is None:
        return tuple((name, i, "added") for i, name in enumerate(after.inputs))
    arrows = []
    new = "rewired" if before.op == after.op else "added"
    for i, (was, now) in enumerate(zip_longest(before.inputs, after.inputs)):
        if was == now:
            arrows.append((now, i, "kept"))
            continue
        arrows += [(was, i, "removed")] if was is not None else []
        arrows += [(now, i, new)] if now is not None else []
    return tuple(arrows)


def focus(union: Union, limit: int) -> tuple[set[str], list[str]]:
    """The names to draw, at most ``limit`` with the outputs, and sentences on the rest.

    What changed comes first, then its operands and readers: a change in a large graph is looked at from near by.
    """
    names = [change.name for change in union.changes]
    room = limit - len(shown_outputs(union, limit))
    if len(names) <= room:
        return set(names), []
    touched = [change for change in union.changes if change.touched]
    chosen = dict.fromkeys(change.name for change in touched[:room])
    known = set(names)
    near = [name for change in touched for name, _, _ in change.reads if name in known]
    near += [change.name for change in union.changes if any(name in chosen for name, _, _ in change.reads)]
    near += [name for change in shown_outputs(union, limit) for name, _, _ in change.reads if name in known]
    for name in near:
        if len(chosen) < room:
            chosen[name] = None
    notes = []
    if len(touched) > room:
        notes.append(f"{len(touched) - room:,} more changes are not drawn.")
    rest = len(names) - len(chosen) - max(0, len(touched) - room)
    if rest:
        notes.append(f"{rest:,} unchanged node{'s' * (rest != 1)} not drawn.")
    return set(chosen), notes


def shown_outputs(union: Union, limit: int) -> list[Change]:
    """All outputs of a small graph; of a large one those that changed."""
    if len(union.changes) + len(union.outputs) <= limit:
        return list(union.outputs)
    return [change for change in union.outputs if change.touched][:limit // 4]
