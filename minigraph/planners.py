"""Static memory planning: offsets for buffers whose lifetimes are known, with the lowest footprint.

A buffer is a rectangle: its lifetime is fixed, its offset is ours to choose, and no two rectangles may overlap.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
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
    """An offset in bytes for each buffer. ``optimal``: no placement has a lower footprint, and this was proved."""

    offsets: tuple[int, ...]
    footprint: int  # bytes
    lower_bound: int  # bytes: the most that are alive at one time
    optimal: bool
    planner: str


def lower_bound(buffers: Sequence[Buffer]) -> int:
    """The most bytes alive at one time. A buffer that ends when another starts makes room for it first."""
    changes = sorted([(b.start, b.size) for b in buffers] + [(b.end, -b.size) for b in buffers])
    return max(accumulate((change for _, change in changes), initial=0))


def lives(buffer: Buffer) -> bool:
    """A buffer without bytes or without a lifetime overlaps with nothing: it is placed at 0."""
    return buffer.size > 0 and buffer.end > buffer.start


def check(buffers: Sequence[Buffer], offsets: Sequence[int], capacity: int | None = None, alignment: int = 1) -> list[str]:
    """What is wrong with a placement, as sentences; an empty list where nothing is.

    A sweep over time: if the buffers alive are disjoint, a new one can only run into its neighbours in offset.
    """
    if len(offsets) != len(buffers):
        return [f"{len(buffers)} buffers, but {len(offsets)} offsets"]
    faults, alive = [], []  # alive: (offset, top, name), by offset
    live = [(b, int(offset)) for b, offset in zip(buffers, offsets) if b.size > 0 and b.end > b.start]
    events = [(b.start, 1, i) for i, (b, _) in enumerate(live)] + [(b.end, 0, i) for i, (b, _) in enumerate(live)]
    for time, starts, i in sorted(events):
        buffer, offset = live[i]
        span = (offset, offset + buffer.size, buffer.name)
        place = bisect_left(alive, span)
        if not starts:
            del alive[place]
            continue
        if offset < 0 or offset % alignment or (capacity is not None and span[1] > capacity):
            faults.append(f"{buffer.name} at [{offset}, {span[1]}) is below 0, not aligned to {alignment}, or above {capacity}")
        faults += [f"{buffer.name} at [{offset}, {span[1]}) overlaps {name} at [{low}, {top}) from launch {time} on"
                   for low, top, name in alive[max(place - 1, 0):place + 1] if low < span[1] and offset < top]
        insort(alive, span)
    return faults


class Overlaps:
    """The buffers by start, and for each those that share a time with it, found without looking at all of them.

    Every few starts we note who is alive; then the candidates are those alive at the last note and those that started
    since, up to the buffer's own end.
    """

    def __init__(self, buffers: Sequence[Buffer]):
        self.order = sorted((i for i, b in enumerate(buffers) if lives(b)), key=lambda i: buffers[i].start)
        self.start, self.end, self.size = (np.array([buffers[i][field] for i in self.order], np.int64) for field in (1, 2, 3))
        self.until = np.searchsorted(self.start, self.end)  # the first that starts after it has ended
        self.notes, self.step = [], 1 + int(np.sqrt(len(self.order)))
        alive = np.zeros(0, np.int64)
        for first in range(0, len(self.order), self.step):
            alive = alive[self.end[alive] > self.start[first]]
            self.notes.append(alive)
            alive = np.concatenate([alive, np.arange(first, min(first + self.step, len(self.order)))])

    def candidates(self, i: int) -> np.ndarray:
        note = i // self.step
        return np.concatenate([self.notes[note], np.arange(note * self.step, self.until[i])])


def place_in_order(buffers: Sequence[Buffer], key: Callable[[Buffer], object]) -> list[int]:
    """Greedy first fit: in the order of ``key``, each buffer goes to the lowest offset where it fits."""
    near = Overlaps(buffers)
    low = np.full(len(near.order), -1, np.int64)  # -1: not placed yet
    top = low.copy()
    for i in sorted(range(len(near.order)), key=lambda i: key(buffers[near.order[i]])):
        others = near.candidates(i)
        others = others[(low[others] >= 0) & (near.end[others] > near.start[i])]
        others = others[np.argsort(low[others], kind="stable")]
        ceilings = low[others]
        floors = np.maximum.accumulate(np.concatenate([[0], top[others]]))  # the lowest free byte above each of them
        fits = np.flatnonzero(ceilings - floors[:-1] >= near.size[i])
        low[i] = floors[fits[0]] if len(fits) else floors[-1]
        top[i] = low[i] + near.size[i]
    offsets = [0] * len(buffers)
    for i, offset in zip(near.order, low.tolist()):
        offsets[i] = offset
    return offsets


def placement(buffers: Sequence[Buffer], offsets: Sequence[int], planner: str, proved: bool = False) -> Placement:
    footprint = max((offset + b.size for b, offset in zip(buffers, offsets) if lives(b)), default=0)
    bound = lower_bound(buffers)
    return Placement(tuple(offsets), footprint, bound, proved or footprint == bound, planner)


def naive(buffers: Sequence[Buffer], **_) -> Placement:
    """Every buffer has bytes of its own."""
    sizes = [b.size if lives(b) else 0 for b in buffers]
    ends = list(accumulate(sizes, initial=0))
    return placement(buffers, [end if size else 0 for end, size in zip(ends, sizes)], "naive")


def greedy_by_size(buffers: Sequence[Buffer], **_) -> Placement:
    """The largest first (Pisarchyk & Lee 2020, and TFLite Micro, XLA and TVM)."""
    return placement(buffers, place_in_order(buffers, lambda b: (-b.size, b.start - b.end)), "greedy_by_size")


PLANNERS: dict[str, Callable[..., Placement]] = {"naive": naive, "greedy_by_size": greedy_by_size}


def plan_memory(buffers: Sequence[Buffer], planner: str = "greedy_by_size", alignment: int = 1, **options) -> Placement:
    """Place the buffers; sizes are rounded up to ``alignment`` bytes, so that offsets are multiples of it."""
    rounded = [b._replace(size=-(-b.size // alignment) * alignment) for b in buffers]
    return PLANNERS[planner](rounded, **options)
