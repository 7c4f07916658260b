"""Memory planners: the greedy ones, the best of them, and an exact search; a table of all with one signature.

``planner(buffers, *, seconds, seed, capacity, nodes) -> Placement``; a planner ignores what it has no use for.
Finding the lowest footprint is NP-hard (dynamic storage allocation; Garey & Johnson, SR2).
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from time import process_time

import numpy as np

from .errors import MinigraphError, nearest
from .greedy import (
    FREE,
    Buffer,
    Overlaps,
    Placement,
    best_fit,
    best_of_orders,
    check,
    finish,
    first_fit,
    greedy,
    greedy_by_breadth,
    greedy_by_size,
    lower_bound,
    naive,
    sorted_by,
)
from .search import Search, luby, to_columns

__all__ = [
    "PLANNERS",
    "Buffer",
    "Placement",
    "PlanError",
    "best_fit",
    "best_of_orders",
    "check",
    "exact",
    "first_fit",
    "greedy_by_breadth",
    "greedy_by_size",
    "lower_bound",
    "naive",
    "plan_memory",
]  # fmt: skip

TIGHT = 0.95  # a column is tight with so much of the lower bound alive
SMALL = 100_000  # buffers × columns that one search takes as a whole
LARGE = 10_000_000  # and more than any should take


class PlanError(MinigraphError, ValueError):
    """Buffers that cannot be placed, or a planner that does not exist."""


class Instance:
    """What the exact planner knows of the buffers that take part: lifetimes in columns, bytes alive in each column."""

    def __init__(self, buffers: Sequence[Buffer]):
        self.near = Overlaps(buffers)
        self.n, self.size = self.near.n, self.near.size[:-1]
        spans, self.columns = to_columns(list(zip(self.near.start[:-1].tolist(), self.near.end[:-1].tolist())))
        self.spans = np.array(spans, np.int64).reshape(-1, 2)
        self.unit = int(np.gcd.reduce(self.size)) or 1  # all offsets worth trying are multiples of it
        change = np.zeros(self.columns + 1, np.int64)
        np.add.at(change, self.spans[:, 0], self.size)
        np.subtract.at(change, self.spans[:, 1], self.size)
        self.load = np.cumsum(change)[:-1]
        self.weight = np.ones(self.columns)  # how often a column was a dead end, lately

    def fullest(self, a: int, b: int) -> int:
        """The column with the most bytes alive among [a, b)."""
        return int(a + self.load[a:b].argmax())

    def tight(self) -> list[int]:
        candidates = np.argsort(-self.load, kind="stable")[:LARGE // self.n + 1]
        return candidates[self.load[candidates] >= TIGHT * self.load.max()].tolist()

    def lay(self, chosen: np.ndarray, aim: int, random_: random.Random, length: int, nodes: float, deadline: float):
        """Search for offsets below ``aim`` for the buffers that live in the chosen columns, as if there were no others.

        Wide and large buffers are preferred, with some luck, and those of one kind are neighbours. Returns the
        buffers, their offsets (None: not found), the nodes visited, and whether there provably are no such offsets.
        """
        first, last = np.searchsorted(chosen, self.spans.T)
        inside = np.flatnonzero(first < last)
        kinds, kind = np.unique(np.stack([first, last, self.size])[:, inside], axis=1, return_inverse=True)
        luck = np.array([random_.uniform(0.7, 1.3) for _ in kinds.T])
        value = luck * (kinds[1] - kinds[0]) * kinds[2].astype(float) ** random_.uniform(0, 0.5)
        inside = inside[sorted_by(-value[kind.ravel()], kind.ravel())]
        weight, budget = (0.2 + 0.8 * self.weight[chosen]).tolist(), min(2 * len(inside) * length, nodes)
        spans, sizes = zip(first[inside].tolist(), last[inside].tolist()), self.size[inside] // self.unit
        found, used = Search(list(spans), sizes.tolist(), len(chosen), aim // self.unit, weight).run(budget, deadline)
        self.weight[chosen] = weight
        offsets = None if found is None else np.array(found, np.int64) * self.unit
        return inside, offsets, min(used, budget), found is None and used <= budget

    def complete(self, laid: np.ndarray, offsets: np.ndarray, aim: int) -> tuple[np.ndarray, set[int]]:
        """Place all others greedily around the buffers that are laid: offsets, and the columns to blame where they end
        above ``aim``. Two buffers that were laid as if they never met may clash: then one counts as not laid."""
        near, low, blame = self.near, np.append(np.full(self.n, FREE), 0), set()
        for i, offset, size in zip(laid.tolist(), offsets.tolist(), self.size[laid].tolist()):
            others = near.of(i)
            clash = others[(low[others] < offset + size) & (low[others] + near.size[others] > offset)]
            for (a, b), (c, d) in ((self.spans[i], self.spans[other]) for other in clash):
                blame.add(self.fullest(max(a, c), min(b, d)))
            low[i] = FREE if len(clash) else offset
        rest = np.flatnonzero(low == FREE)
        keys, found = np.stack([-near.size, near.start - near.end])[:, rest], []
        for first, second in keys, keys[::-1]:  # large ones first, or long-lived ones
            found.append(greedy(near, rest[sorted_by(first, second)], placed=low))
            high = rest[(found[-1] + near.size)[rest] > aim]
            if not len(high):
                break
        best = min(found, key=lambda placed: (placed + near.size).max())
        return best, blame.union(self.fullest(*span) for span in self.spans[high].tolist())


def exact(buffers: Sequence[Buffer], *, seconds: float = 30.0, seed: int = 0, capacity: int | None = None,
          nodes: float = math.inf) -> Placement:  # fmt: skip
    """The best placement found within so many CPU seconds and nodes; ends early where none is better or at ``capacity``.

    As a rule only few columns are tight. Lay the buffers of these alone, and all others greedily around them; what then
    stands too high makes its own column a tight one. Small instances are mostly searched as a whole. Each search starts
    afresh, with other preferences and a growing budget, and remembers the dead ends of the ones before.
    """
    deadline, best, used, turn, blamed = process_time() + seconds, best_of_orders(buffers), 0, 0, set()
    proved = best.lower_bound  # no footprint is lower
    goal = max(proved, capacity or 0)
    if best.footprint <= goal:
        return best._replace(planner="exact")
    this, random_ = Instance(buffers), random.Random(seed)
    while best.footprint > goal >= proved and used < nodes and process_time() < deadline:
        aim, halfway = goal // this.unit * this.unit, turn % 4 == 3
        if halfway:  # between what we want and what we have
            aim += (best.footprint - this.unit - aim) // 2 // this.unit * this.unit
        whole = this.n * this.columns <= SMALL and turn % 4 != 1
        chosen = range(this.columns) if whole else sorted(blamed.union(this.tight()))
        length = 1 if turn % 2 else luby(turn // 2 + 1)
        laid, offsets, visited, impossible = this.lay(np.array(chosen), aim, random_, length, nodes - used, deadline)
        used += visited + 1
        if impossible:
            proved = aim + this.unit
            goal = goal if capacity is not None else proved
        if offsets is not None:
            low, blame = this.complete(laid, offsets, aim)
            best = min(best, finish(buffers, this.near, low, "exact"), key=lambda found: found.footprint)
            blamed = blamed | blame if len(blamed) < LARGE // this.n else set()
        turn += not (halfway and best.footprint <= aim)
    return best._replace(planner="exact", optimal=best.footprint <= proved, nodes=used)


PLANNERS: dict[str, Callable[..., Placement]] = {
    planner.__name__: planner
    for planner in (naive, first_fit, best_fit, greedy_by_size, greedy_by_breadth, best_of_orders, exact)
}


def plan_memory(buffers: Sequence[Buffer], planner: str = "best_of_orders", alignment: int = 1, **options) -> Placement:
    """Place the buffers. Sizes are rounded up to ``alignment`` bytes, so that all offsets are multiples of it.

    ``options``: ``seconds``, ``seed``, ``capacity`` (bytes), ``nodes``. Raises PlanError for an unknown planner and for
    buffers with a negative size, an end before the start, or more bytes than 64 bits can count.
    """
    if planner not in PLANNERS:
        hint = nearest(planner, PLANNERS) or f"there are {', '.join(PLANNERS)}"
        raise PlanError(f"there is no planner '{planner}': {hint}")
    if alignment < 1:
        raise PlanError(f"an alignment of {alignment} bytes is not possible: it is at least 1")
    for b in buffers:
        if b.size < 0:
            raise PlanError(f"buffer '{b.name}' has {b.size} bytes")
        if b.end < b.start:
            raise PlanError(f"buffer '{b.name}' ends at {b.end}, before it starts at {b.start}")
    rounded = [b._replace(size=-(-b.size // alignment) * alignment) for b in buffers]
    if sum(b.size for b in rounded) >= FREE or any(max(-b.start, b.end) >= FREE for b in rounded):
        raise PlanError("the buffers together, or their times, are too large for 64-bit integers")
    return PLANNERS[planner](rounded, **options)
