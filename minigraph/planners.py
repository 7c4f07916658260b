"""Static memory planning: offsets for buffers whose lifetimes are known, with the lowest footprint.

A buffer is a rectangle over time and memory: its lifetime is given, its offset is ours to choose, and no two may
overlap. The most bytes alive at one time are a lower bound; finding the best placement is NP-hard. Every planner is
``planner(buffers, *, seconds, seed, capacity, nodes) -> Placement`` and ignores what it has no use for.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, count
from time import process_time
from typing import NamedTuple

import numpy as np

from .errors import MinigraphError, nearest
from .search import Search, luby, to_columns


class PlanError(MinigraphError, ValueError):
    """Buffers that cannot be placed, or a planner that does not exist."""


class Buffer(NamedTuple):
    """``size`` bytes, alive over the half-open interval [start, end) of launches."""

    name: str
    start: int
    end: int
    size: int


class Placement(NamedTuple):
    """An offset in bytes for each buffer. ``optimal``: it is proved that no footprint is lower."""

    offsets: tuple[int, ...]
    footprint: int  # bytes
    lower_bound: int  # bytes: the most that are alive at one time
    optimal: bool
    planner: str
    nodes: int = 0  # that a search has visited


def lower_bound(buffers: Iterable[Buffer]) -> int:
    """The most bytes alive at one time. A buffer that ends when another starts makes room for it first."""
    changes = sorted((time, change) for b in buffers for time, change in ((b.start, b.size), (b.end, -b.size)))
    return max(accumulate((change for _, change in changes), initial=0))


def check(buffers: Sequence[Buffer], offsets: Sequence[int], capacity: int | None = None, alignment: int = 1) -> list[str]:
    """What is wrong with a placement, as sentences: an empty list where nothing is. Shares no code with the planners.

    A sweep over time. As long as the buffers alive are disjoint, a new one meets one of its two neighbours first.
    """
    if len(offsets) != len(buffers):
        return [f"{len(buffers)} buffers have {len(offsets)} offsets"]
    faults, alive = [], []  # alive: (offset, top, name) in order
    real = [(b.start, b.end, (offset, offset + b.size, b.name)) for b, offset in zip(buffers, offsets) if b.size and b.start < b.end]
    for time, starts, block in sorted([(start, 1, block) for start, _, block in real] + [(end, 0, block) for _, end, block in real]):
        place, (low, top, name) = bisect_left(alive, block), block
        if not starts:
            del alive[place]
            continue
        if low < 0 or low % alignment or (capacity is not None and top > capacity):
            faults.append(f"{name} at [{low}, {top}) is not a multiple of {alignment} within [0, {capacity or '…'})")
        faults += [f"{name} at [{low}, {top}) overlaps {other} at [{start}, {end}) from launch {time} on"
                   for start, end, other in alive[max(place - 1, 0):place + 1] if start < top and low < end]
        insort(alive, block)
    return faults


# ---- greedy: one buffer after the other, never moved again ------------------------------------------------------

FREE = 2**62  # the offset of a buffer that is not placed yet: above everything


class Overlaps:
    """The buffers that take part (with bytes, and alive at some time), by start; and which share a time with which.

    Now and then, in order of start, we note who is alive. A buffer shares a time with some of those at the last note
    and with those that start from there until its own end; only these are looked at.
    """

    def __init__(self, buffers: Sequence[Buffer]):
        self.order = sorted((i for i, b in enumerate(buffers) if b.size and b.start < b.end), key=lambda i: buffers[i].start)
        table = np.array([buffers[i][1:] for i in self.order], np.int64).reshape(-1, 3)
        self.start, self.end, self.size = np.ascontiguousarray(table.T)
        self.until = np.searchsorted(self.start, self.end).tolist()  # the first that starts when it has ended
        self.index, self.note = np.arange(len(table)), []
        alive, first = self.index[:0], 0
        for i in range(len(table)):
            if i - first > len(alive) + 16 or not i:  # so that the notes take no more room than the buffers
                alive = np.concatenate([alive, self.index[first:i]])
                alive, first = alive[self.end[alive] > self.start[i]], i
            self.note.append((alive, first))

    def of(self, i: int) -> np.ndarray:
        """The buffers that share a time with ``i``, itself among them."""
        alive, first = self.note[i]
        others = np.concatenate([alive, self.index[first:self.until[i]]])
        return others[self.end[others] > self.start[i]]

    def breadth(self) -> np.ndarray:
        """For each, the most bytes alive at one time during its life (which are reached when some buffer starts)."""
        ends = np.argsort(self.end, kind="stable")
        started = np.cumsum(self.size)[np.searchsorted(self.start, self.start, "right") - 1]
        ended = np.append(0, np.cumsum(self.size[ends]))[np.searchsorted(self.end[ends], self.start, "right")]
        most, result, length = started - ended, np.zeros_like(self.size), np.array(self.until) - self.index
        for power in range(len(self.size).bit_length()):  # most[i]: over the 2**power starts from i on
            some = np.flatnonzero((length >> power) == 1)
            result[some] = np.maximum(most[some], most[some + length[some] - 2**power])
            most = np.maximum(most, np.append(most[2**power:], np.zeros(min(2**power, len(most)), np.int64)))
        return result


def greedy(near: Overlaps, order: Iterable[int], best: bool = False, placed: np.ndarray | None = None) -> np.ndarray:
    """In this order, each buffer goes to the lowest gap where it fits, or to the tightest (``best``)."""
    low = np.full(len(near.order) + 1, FREE) if placed is None else placed.copy()
    low[-1] = 0  # the ground: a buffer of no bytes
    top = np.where(low < FREE, low + np.append(near.size, 0), 0)
    for i in order:
        others = np.append(near.of(i), -1)
        others = others[np.argsort(low[others], kind="stable")]
        floors = np.maximum.accumulate(top[others])  # the lowest byte free above each of them
        room = low[others[1:]] - floors[:-1]  # endless below a buffer that is not placed yet, as is i itself
        fits = room >= near.size[i]
        low[i] = floors[np.where(fits, room, 2 * FREE - 1).argmin() if best else fits.argmax()]
        top[i] = low[i] + near.size[i]
    return low


def sorted_by(*keys: np.ndarray) -> np.ndarray:
    """Positions in the order of the first key, ties by the next."""
    return np.lexsort(keys[::-1])


def finish(buffers: Sequence[Buffer], near: Overlaps, low: np.ndarray, planner: str) -> Placement:
    """Offsets for all buffers; those that take no part are placed at 0."""
    offsets = [0] * len(buffers)
    for i, offset in zip(near.order, low.tolist()):
        offsets[i] = offset
    footprint, bound = int((low[:len(near.size)] + near.size).max(initial=0)), lower_bound(buffers)
    return Placement(tuple(offsets), footprint, bound, footprint == bound, planner)


def naive(buffers: Sequence[Buffer], **_) -> Placement:
    """Bytes of its own for each buffer."""
    near = Overlaps(buffers)
    return finish(buffers, near, np.cumsum(near.size) - near.size, "naive")


def first_fit(buffers: Sequence[Buffer], **_) -> Placement:
    """In order of start: what an allocator does at run time."""
    near = Overlaps(buffers)
    return finish(buffers, near, greedy(near, near.index), "first_fit")


def best_fit(buffers: Sequence[Buffer], **_) -> Placement:
    """In order of start, each to the tightest gap."""
    near = Overlaps(buffers)
    return finish(buffers, near, greedy(near, near.index, best=True), "best_fit")


def greedy_by_size(buffers: Sequence[Buffer], **_) -> Placement:
    """The largest first (Pisarchyk & Lee 2020): the family of TFLite Micro, XLA and TVM."""
    near = Overlaps(buffers)
    return finish(buffers, near, greedy(near, sorted_by(-near.size, near.start)), "greedy_by_size")


def greedy_by_breadth(buffers: Sequence[Buffer], **_) -> Placement:
    """The buffers of the fullest moment first, the largest of them first (Pisarchyk & Lee 2020)."""
    near = Overlaps(buffers)
    return finish(buffers, near, greedy(near, sorted_by(-near.breadth(), -near.size)), "greedy_by_breadth")


def best_of_orders(buffers: Sequence[Buffer], **_) -> Placement:
    """The best of the simple planners, for none is the best everywhere; it stops at the lower bound."""
    best = greedy_by_size(buffers)
    for planner in first_fit, best_fit, greedy_by_breadth:
        if not best.optimal:
            best = min(best, planner(buffers), key=lambda found: found.footprint)
    return best._replace(planner="best_of_orders")


# ---- exact: lay the moments where memory is tight first, then the rest around them -------------------------------

TIGHT = 0.95  # of the most bytes alive at one time
SMALL = 1_000_000  # buffers × columns that can be searched as a whole
LARGE = 10_000_000  # more than this does not get into one search


def exact(buffers: Sequence[Buffer], *, seconds: float = 30.0, seed: int = 0, capacity: int | None = None,
          nodes: float = math.inf) -> Placement:
    """The best placement found in so many CPU seconds or nodes; stops early where no better one exists, or at ``capacity``.

    Few columns are tight as a rule. We lay the buffers of these columns alone, place all others greedily around them,
    and whatever then stands too high makes its own column a tight one. Every search starts afresh, with a random
    preference and a growing budget, and remembers which columns were dead ends.
    """
    deadline, best, near = process_time() + seconds, best_of_orders(buffers), Overlaps(buffers)
    random_, n = random.Random(seed), len(near.size)
    ranges, columns = to_columns(list(zip(near.start.tolist(), near.end.tolist())))
    spans, unit, low = np.array(ranges, np.int64).reshape(-1, 2), int(np.gcd.reduce(near.size)) or 1, best.offsets
    load = np.zeros(columns + 1, np.int64)
    np.add.at(load, spans[:, 0], near.size)
    np.subtract.at(load, spans[:, 1], near.size)
    load = np.cumsum(load)[:-1]
    proved, used, blamed, weight = best.lower_bound, 0, set(), np.ones(columns)
    turn = -1
    while True:
        turn += 1
        goal = max(proved, (capacity or 0) // unit * unit)
        if best.footprint <= goal or proved > (capacity or proved) or used >= nodes or process_time() > deadline:
            return best._replace(planner="exact", optimal=best.footprint <= proved, nodes=used)
        aim = goal if turn % 4 < 3 else max(goal, (goal + best.footprint - unit) // 2 // unit * unit)
        if turn % 4 != 1 and n * columns <= SMALL:
            chosen = np.arange(columns)
        else:
            fullest = np.argsort(-load, kind="stable")[:LARGE // n + 1]
            chosen = np.array(sorted(blamed.union(fullest[load[fullest] >= TIGHT * best.lower_bound].tolist())))
        first, last = np.searchsorted(chosen, spans.T)
        inside = np.flatnonzero(first < last)
        if len(inside) * len(chosen) > 2 * LARGE:
            blamed.clear()
            continue
        kinds, kind = np.unique(np.stack([first, last, near.size])[:, inside], axis=1, return_inverse=True)
        power, luck = 0.5 * random_.random(), np.array([random_.uniform(0.7, 1.3) for _ in kinds.T])
        preference = ((kinds[1] - kinds[0]) * kinds[2].astype(float)**power * luck)[kind]
        inside = inside[sorted_by(-preference, kind)]
        weights = (0.2 + 0.8 * weight[chosen]).tolist()
        budget = min(2 * len(inside) * (luby(turn // 2 + 1) if turn % 2 == 0 else 1), nodes - used)
        search = Search(list(zip(first[inside].tolist(), last[inside].tolist())), (near.size[inside] // unit).tolist(),
                        len(chosen), aim // unit, weights)
        found, visited = search.run(budget, deadline)
        weight[chosen], used = weights, used + 1 + min(visited, budget)
        if found is None and visited <= budget:
            proved = aim + unit
        if found is None:
            continue
        low, blame = np.full(n + 1, FREE), set()
        for i, offset in zip(inside.tolist(), found):
            others = near.of(i)
            clash = others[(low[others] < (offset + 0) * unit + near.size[i]) & (low[others] + near.size[others] > offset * unit)]
            for other in clash.tolist():
                a, b = max(spans[i, 0], spans[other, 0]), min(spans[i, 1], spans[other, 1])
                blame.add(int(a + load[a:b].argmax()))
            if not len(clash):
                low[i] = offset * unit
        rest = np.flatnonzero(low[:-1] == FREE)
        for keys in (near.size, near.end - near.start), (near.end - near.start, near.size):
            full = greedy(near, rest[sorted_by(*(-key[rest] for key in keys))], placed=low)
            result = finish(buffers, near, full, "exact")
            if result.footprint < best.footprint:
                best = result
            if result.footprint <= aim:
                turn -= turn % 4 == 3  # again, lower
                break
        else:
            high = rest[full[rest] + near.size[rest] > aim]
            blamed |= blame | {int(a + load[a:b].argmax()) for a, b in spans[high]}


PLANNERS: dict[str, Callable[..., Placement]] = {
    planner.__name__: planner
    for planner in (naive, first_fit, best_fit, greedy_by_size, greedy_by_breadth, best_of_orders, exact)
}


def plan_memory(buffers: Sequence[Buffer], planner: str = "best_of_orders", alignment: int = 1, **options) -> Placement:
    """Place the buffers. Sizes are rounded up to ``alignment`` bytes, so that all offsets are multiples of it.

    ``options``: ``seconds``, ``seed``, ``capacity`` (bytes), ``nodes``. Raises PlanError for an unknown planner and for
    buffers with a negative size, an end before the start, or more bytes than can be counted.
    """
    if planner not in PLANNERS:
        raise PlanError(f"there is no planner '{planner}': " + (nearest(planner, PLANNERS) or f"there are {', '.join(PLANNERS)}"))
    if alignment < 1:
        raise PlanError(f"an alignment of {alignment} bytes: it must be at least 1")
    rounded = [b._replace(size=-(-b.size // alignment) * alignment) for b in buffers]
    for b in rounded:
        if b.size < 0 or b.end < b.start:
            raise PlanError(f"buffer '{b.name}' has " + (f"{b.size} bytes" if b.size < 0 else f"its end at {b.end}, before its start at {b.start}"))
    if sum(b.size for b in rounded) >= FREE or any(max(-b.start, b.end) >= FREE for b in rounded):
        raise PlanError("the buffers together, or their times, are too large for 64-bit integers")
    return PLANNERS[planner](rounded, **options)
