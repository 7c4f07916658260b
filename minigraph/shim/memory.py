"""The memory that a run works on: copies of the arrays, one for each order, between poisoned guards."""

from __future__ import annotations

import bisect
import ctypes
import functools
import mmap
from dataclasses import dataclass, field

import numpy as np

from .kernels import MOST_THREADS, Kernel

GUARD = 256  # poisoned bytes before and after every array; also the alignment that a copy keeps
STACKS = MOST_THREADS * 64 * 1024


@dataclass(slots=True)
class Region:
    """Bytes from ``low`` to ``high`` that arrays cover, overlapping ones together; ``copies`` are addresses."""

    low: int
    high: int
    written: bool = False
    copies: list[int] = field(default_factory=list)
    owners: list[np.ndarray] = field(default_factory=list)

    def copy(self, number: int) -> None:
        """Make that many copies; of what nobody writes one serves for all."""
        size = self.high - self.low
        for _ in range(number if self.written else 1):
            owner = np.full(size + 3 * GUARD, 255, np.uint8)
            start = owner.ctypes.data + GUARD
            start += (self.low - start) % GUARD
            ctypes.memmove(start, self.low, size)
            self.owners.append(owner)
            self.copies.append(start)
        if not self.written:
            self.copies *= number

    def give_back(self) -> None:
        """The first copy's bytes to where the arrays are."""
        if self.written:
            ctypes.memmove(self.low, self.copies[0], self.high - self.low)


def regions(jobs: list[tuple[Kernel, list]]) -> list[Region]:
    """The least set of regions that holds every array of these kernels' arguments, by address: views share one."""
    spans = sorted(
        (value.ctypes.data, value.ctypes.data + value.nbytes, not param.const)
        for kernel, values in jobs
        for param, value in zip(kernel.params, values)
        if isinstance(value, np.ndarray)
    )
    found: list[Region] = []
    for low, high, written in spans:
        if not found or (low >= found[-1].high and low != found[-1].low):
            found.append(Region(low, high))
        found[-1].high = max(found[-1].high, high)
        found[-1].written |= written
    return found


def place(found: list[Region], value) -> tuple[Region, int] | None:
    """The region that holds an array, and the array's offset there; None for a number."""
    if not isinstance(value, np.ndarray):
        return None
    address = value.ctypes.data
    region = found[bisect.bisect_right(found, address, key=lambda region: region.low) - 1]
    return region, address - region.low


def element(kernel: Kernel, values: list, places: list, region: Region, at: int) -> tuple[str, list]:
    """The array element at a byte of a region, as ``y[3]``, and its value in the first and the last copy."""
    for param, value, place in zip(kernel.params, values, places):
        if place and place[0] is region and not param.const and place[1] <= at < place[1] + value.nbytes:
            index, size = (at - place[1]) // value.itemsize, value.itemsize
            start = place[1] + index * size
            raw = [ctypes.string_at(copy + start, size) for copy in (region.copies[0], region.copies[-1])]
            return f"{param.name}[{index}]", [np.frombuffer(each, value.dtype)[0] for each in raw]
    return "memory outside its arguments", ["one value", "another"]


@functools.cache
def stacks() -> ctypes.Array:
    """The fibers' stacks: address space that all modules share, and memory only where it was used."""
    pages = mmap.mmap(-1, STACKS, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return (ctypes.c_char * STACKS).from_buffer(pages)
