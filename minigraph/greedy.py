"""Static memory planning, greedily: offsets for buffers whose lifetimes are known, with a low footprint.

A buffer is a rectangle over time and memory: its lifetime is given, its offset is ours to choose, and no two may
overlap. The most bytes alive at one time are a lower bound. A greedy planner places one buffer after the other, in
some order, and never moves it again.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np


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


def check(buffers: Sequence[Buffer], offsets: Sequence[int], capacity: int | None = None,
          alignment: int = 1) -> list[str]:  # fmt: skip
    """What is wrong with a placement, as sentences: an empty list where nothing is. Shares no code with the planners.

    A sweep over time. As long as the buffers alive are disjoint, a new one meets one of its two neighbours first.
    """
    if len(offsets) != len(buffers):
        return [f"{len(buffers)} buffers have {len(offsets)} offsets"]
    faults, alive = [], []  # alive: (offset, top, name) in order
    events = [(time, starts, (offset, offset + b.size, b.name)) for b, offset in zip(buffers, offsets)
              if b.size and b.start < b.end for time, starts in ((b.start, True), (b.end, False))]
    for time, starts, block in sorted(events):  # at one time, ends come first
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


FREE = 2**62  # the offset of a buffer that is not placed yet, and any number above all others


class Overlaps:
    """The buffers that take part (with bytes, and alive at some time), by start; and which share a time with which.

    Now and then, in order of start, we note who is alive. A buffer shares a time with some of those at the last note
    and with those that start from there until its own end; only these are looked at. The last of all is the ground:
    no bytes at offset 0, below everything.
    """

    def __init__(self, buffers: Sequence[Buffer]):
        real = (i for i, b in enumerate(buffers) if b.size and b.start < b.end)
        self.order = sorted(real, key=lambda i: buffers[i].start)
        self.n = len(self.order)
        rows = [buffers[i][1:] for i in self.order] + [(FREE, FREE, 0)]
        self.start, self.end, self.size = np.ascontiguousarray(np.array(rows, np.int64).T)
        self.until = np.searchsorted(self.start, self.end).tolist()  # the first that starts when it has ended
        self.index, self.note = np.arange(self.n), []
        alive, first = np.array([self.n]), 0
        for i, start in enumerate(self.start[:-1].tolist()):
            if i - first > len(alive) + 16:  # so that the notes take no more room than the buffers
                alive = np.concatenate([alive, self.index[first:i]])
                alive, first = alive[self.end[alive] > start], i
            self.note.append((alive, first, start))

    def of(self, i: int) -> np.ndarray:
        """The buffers that share a time with ``i``, itself and the ground among them."""
        alive, first, start = self.note[i]
        others = np.concatenate((alive, self.index[first:self.until[i]]))
        return others[self.end.take(others) > start]

    def breadth(self) -> np.ndarray:
        """For each, the most bytes alive at one time during its life (which are reached when some buffer starts)."""
        start, end, size = self.start[:-1], self.end[:-1], self.size[:-1]
        by_end = np.argsort(end, kind="stable")
        started = np.cumsum(size)[np.searchsorted(start, start, "right") - 1]
        ended = np.append(0, np.cumsum(size[by_end]))[np.searchsorted(end[by_end], start, "right")]
        most, result, length = started - ended, np.zeros_like(size), np.array(self.until[:-1]) - self.index
        for power in range(self.n.bit_length()):  # most[i]: over the 2**power starts from i on
            some = np.flatnonzero((length >> power) == 1)
            result[some] = np.maximum(most[some], most[some + length[some] - 2**power])
            most = np.maximum(most, np.append(most[2**power:], np.zeros(min(2**power, self.n), np.int64)))
        return result


def greedy(near: Overlaps, order: np.ndarray, best: bool = False, placed: np.ndarray | None = None) -> np.ndarray:
    """In this order, each buffer goes to the lowest gap where it fits, or to the tightest (``best``)."""
    low = np.append(np.full(near.n, FREE), 0) if placed is None else placed.copy()
    top = np.where(low < FREE, low + near.size, 0)
    for i, size in zip(order.tolist(), near.size[order].tolist()):
        others = near.of(i)
        others = others.take(low.take(others).argsort())  # those at one offset in any order: it changes nothing
        floors = np.maximum.accumulate(top.take(others))  # the lowest byte free above each of them
        room = low.take(others)[1:] - floors[:-1]  # endless below a buffer that is not placed yet, as is i itself
        fits = room >= size
        low[i] = floors[np.where(fits, room, FREE + FREE - 1).argmin() if best else fits.argmax()]
        top[i] = low[i] + size
    return low


def sorted_by(*keys: np.ndarray) -> np.ndarray:
    """Positions in the order of the first key, ties by the next."""
    return np.lexsort(keys[::-1])


def finish(buffers: Sequence[Buffer], near: Overlaps, low: np.ndarray, planner: str) -> Placement:
    """Offsets for all buffers; those that take no part are placed at 0."""
    offsets = [0] * len(buffers)
    for i, offset in zip(near.order, low.tolist()):
        offsets[i] = offset
    footprint, bound = int((low + near.size).max()), lower_bound(buffers)
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
    return finish(buffers, near, greedy(near, sorted_by(-near.size[:-1], near.start[:-1])), "greedy_by_size")


def greedy_by_breadth(buffers: Sequence[Buffer], **_) -> Placement:
    """The buffers of the fullest moment first, the largest of them first (Pisarchyk & Lee 2020)."""
    near = Overlaps(buffers)
    return finish(buffers, near, greedy(near, sorted_by(-near.breadth(), -near.size[:-1])), "greedy_by_breadth")


def best_of_orders(buffers: Sequence[Buffer], **_) -> Placement:
    """The best of the simple planners, for none is the best everywhere; it stops at the lower bound."""
    best = greedy_by_size(buffers)
    for planner in first_fit, best_fit, greedy_by_breadth:
        if not best.optimal:
            best = min(best, planner(buffers), key=lambda found: found.footprint)
    return best._replace(planner="best_of_orders")
