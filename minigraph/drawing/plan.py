"""What of a graph is drawn: of a small one everything, of a large one at most ``LIMIT`` boxes, and words for the rest.

Step by step, until it fits: fold repeated blocks, write weights and constants into the nodes that read them, leave
the middle out.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections import Counter
from dataclasses import dataclass, field

from .blocks import LEAVES, Body, Run, find_runs
from ..ir import Graph, Node
from ..types import Const

LIMIT = 60  # boxes in a picture, outputs included
OUTPUTS = 8  # of these at most that many are outputs, where outputs have to be put together
BUNDLE = 12  # inputs and constants above one node before they are drawn together
STRIP = 6  # operands of a node that weights can be written into
FOLDS = 9  # folded blocks in one picture
GAP = -1  # stands for all nodes that are left out


@dataclass
class Fold:
    """A run as it is drawn: graph indices of the block that stands for all."""

    run: Run
    members: set[int]
    leaves: set[int]  # inputs and constants that repeat with it: each block has its own
    title: str  # "layer × 30"


@dataclass
class Plan:
    """Numbers are places in ``graph.nodes``; ``GAP`` is the box for everything left out."""

    graph: Graph
    place: dict[str, int]  # name -> where it is defined first
    shown: list[int] = field(default_factory=list)  # in the order in which they are drawn
    stand_in: dict[int, int] = field(default_factory=dict)  # not drawn -> what is drawn in its stead
    bundles: dict[int, list[int]] = field(default_factory=dict)  # input or constant -> those it stands for, itself too
    tucked: set[int] = field(default_factory=set)  # inputs and constants written into their readers
    folds: list[Fold] = field(default_factory=list)
    left_out: list[int] = field(default_factory=list)
    outputs: list[tuple[str, str, str]] = field(default_factory=list)  # (label, small print, value)

    def drawn(self, name: str) -> int | None:
        """Where the value ``name`` is drawn, or None if nobody defines it."""
        index = self.place.get(name)
        while index in self.stand_in:  # a block inside a block: twice at most, and once more into the gap
            index = self.stand_in[index]
        return index

    @functools.cached_property
    def late(self) -> set[int]:
        """Inputs that come after another kind of node."""
        first = next((i for i, node in enumerate(self.graph.nodes) if node.op != "input"), len(self.graph.nodes))
        return {i for i, node in enumerate(self.graph.nodes) if node.op == "input" and i > first}

    @property
    def notes(self) -> list[str]:
        """What the picture does not show, in sentences."""
        notes = [f"A block of {count_of(fold.run.period, 'node')} is drawn once and stands for"
                 f" {fold.run.count:,} in a row ({fold.title})." for fold in self.folds]
        if self.bundles:
            hidden = sum(map(len, self.bundles.values()))
            notes.append(f"{hidden:,} inputs and constants are drawn as {count_of(len(self.bundles), 'box', 'boxes')}.")
        if self.tucked:
            what = count_of(len(self.tucked), "input or constant", "inputs and constants")
            notes.append(f"Written into what reads them: {what}.")
        if self.left_out:
            notes.append(f"Left out in the middle: {count_of(len(self.left_out), 'node')}.")
        return notes


def count_of(number: int, one: str, many: str = "") -> str:
    """``1 node``, ``12,000 nodes``"""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def make_plan(graph: Graph, limit: int = LIMIT) -> Plan:
    """Decide what is drawn."""
    place: dict[str, int] = {}
    for i, node in enumerate(graph.nodes):
        place.setdefault(node.name, i)
    plan = Plan(graph, place)
    bundle(plan)
    plan.shown = visible(plan, set())
    room = limit - len(graph.outputs)
    if len(plan.shown) > room:
        room = limit - min(OUTPUTS, len(graph.outputs))
        make_room(plan, room)
        plan.shown = in_reading_order(plan)
    if len(plan.shown) > room:
        leave_out_middle(plan, room)
    plan.outputs = put_together(plan, limit - len(plan.shown))
    return plan


def bundle(plan: Plan) -> None:
    """Where a node has many inputs and constants to itself, as a concatenation may, draw all but two as one box."""
    nodes, counts = plan.graph.nodes, readers(plan, set())
    for node in nodes:
        if len(node.inputs) <= BUNDLE:
            continue
        own = [plan.place[name] for name in dict.fromkeys(node.inputs) if counts.get(plan.place.get(name)) == 1]
        if len(own) > BUNDLE:
            first, *others = own[2:]
            plan.bundles[first] = own[2:]
            plan.stand_in |= dict.fromkeys(others, first)


def make_room(plan: Plan, room: int) -> None:
    """Fold the largest run; then tuck; then fold on, for a fold inside a layer hides more than tucked weights do."""
    body = Body(list(plan.graph.nodes))
    where = [i for i, node in enumerate(plan.graph.nodes) if node.op not in LEAVES]
    hidden: set[int] = set()
    for run in itertools.islice(find_runs(body), FOLDS):
        if not plan.tucked and (plan.folds or run.saved * 4 < len(where)) and len(visible(plan, hidden)) > room:
            plan.tucked = tuckable(plan, hidden)
        if len(visible(plan, hidden)) <= room:
            break
        for position in range(run.start + run.period, run.stop):
            hidden.add(where[position])
            plan.stand_in[where[position]] = where[run.start + (position - run.start) % run.period]
        first, second = (body.nodes[run.start + k * run.period:][:run.period] for k in (0, 1))
        plan.folds.append(Fold(run, set(where[run.start:run.start + run.period]), own_leaves(plan, first, second),
                               f"{common_word(first, second)} × {run.count:,}"))
    plan.tucked = set()  # later folds may have made it needless
    if len(visible(plan, hidden)) > room:
        plan.tucked = tuckable(plan, hidden)
    plan.shown = visible(plan, hidden)


def own_leaves(plan: Plan, first: list[Node], second: list[Node]) -> set[int]:
    """The inputs and constants of the first block in whose place the second has others."""
    found = set()
    for a, b in zip(first, second):
        for mine, other in zip(map(plan.place.get, a.inputs), map(plan.place.get, b.inputs)):
            both = mine is not None and other is not None and mine != other
            if both and plan.graph.nodes[mine].op in LEAVES and plan.graph.nodes[other].op in LEAVES:
                found.add(mine)
    return found


def common_word(first: list[Node], second: list[Node]) -> str:
    """``layer`` for nodes named layer0.… in the first block and layer1.… in the second; otherwise ``block``."""
    for a, b in zip(first, second):
        found = [re.match(r"(?:.*?\W)?([A-Za-z]+)[._]?(\d+)[._].", node.name) for node in (a, b)]
        if all(found) and found[0][1] == found[1][1] and found[0][2] != found[1][2]:
            return found[0][1].removesuffix("s")
    return "block"


def readers(plan: Plan, hidden: set[int]) -> Counter[int]:
    """Input or constant -> how many operands of nodes that are not hidden read it; 0 where nobody at all does."""
    nodes, counts = plan.graph.nodes, Counter()
    for i, node in enumerate(nodes):
        for name in node.inputs:
            index = plan.place.get(name)
            if index is not None and nodes[index].op in LEAVES:
                counts[index] += i not in hidden
    return counts


def visible(plan: Plan, hidden: set[int]) -> list[int]:
    """All but the hidden, the tucked, and inputs and constants that only hidden nodes read."""
    counts = readers(plan, hidden)
    kept = {plan.place.get(value) for _, value in plan.graph.outputs}
    return [i for i in range(len(plan.graph.nodes)) if i not in hidden and i not in plan.tucked
            and i not in plan.stand_in and (counts.get(i) != 0 or i in kept)]


def tuckable(plan: Plan, hidden: set[int]) -> set[int]:
    """Inputs and constants with one reader, and constants of one element, where the readers have few operands."""
    nodes = plan.graph.nodes
    counts = readers(plan, hidden)
    small = {i for i in counts if isinstance(nodes[i].value, Const) and nodes[i].value.type.size == 1}
    found = {i for i, count in counts.items() if count == 1} | {i for i in small if counts[i]}
    found -= {plan.place.get(value) for _, value in plan.graph.outputs}
    for i, node in enumerate(nodes):
        if len(node.inputs) > STRIP and i not in hidden:
            found -= {plan.place.get(name) for name in node.inputs}
    return found


def in_reading_order(plan: Plan) -> list[int]:
    """Each input and constant right before its first reader, so that a cut through the list cuts few edges."""
    nodes = plan.graph.nodes
    first_reader: dict[int, list[int]] = {}
    unread = {i for i in plan.shown if nodes[i].op in LEAVES}
    for i in plan.shown:
        for name in nodes[i].inputs:
            leaf = plan.drawn(name)
            if leaf in unread:
                unread.remove(leaf)
                first_reader.setdefault(i, []).append(leaf)
    order = [i for i in plan.shown if i in unread]
    for i in plan.shown:
        if nodes[i].op not in LEAVES:
            order += [*first_reader.get(i, ()), i]
    return order


def leave_out_middle(plan: Plan, room: int) -> None:
    """Keep both ends of the list; one box stands for what lies between them."""
    front = (room - 1) // 2
    back = len(plan.shown) - (room - 1 - front)
    plan.left_out = plan.shown[front:back]
    gone = set(plan.left_out)
    plan.stand_in |= dict.fromkeys(gone, GAP)
    plan.shown[front:back] = [GAP]
    for fold in plan.folds:
        fold.members -= gone


def put_together(plan: Plan, room: int) -> list[tuple[str, str, str]]:
    """The outputs: those that one box stands for as one, and no more than there is room for."""
    several = set(plan.stand_in.values())
    groups: dict[object, list[tuple[str, str]]] = {}
    for public, value in plan.graph.outputs:
        index = plan.drawn(value)
        groups.setdefault(index if index in several else public, []).append((public, value))
    pairs = list(groups.values())
    room = max(room, OUTPUTS)
    if len(pairs) > room:
        pairs[room - 1:] = [[pair for group in pairs[room - 1:] for pair in group]]
    return [(group[0][0], "output", group[0][1]) if len(group) == 1 else
            (f"{group[0][0]} … {group[-1][0]}", f"{len(group):,} outputs", group[0][1]) for group in pairs]
