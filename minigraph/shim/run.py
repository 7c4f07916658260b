"""Run launches of a built module on copies of the arrays, in both orders, and say what that shows."""

from __future__ import annotations

import _ctypes
import ctypes
import threading
import weakref
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from . import arguments, memory
from .kernels import Kernel, ShimError


class Launch(NamedTuple):
    """One launch: ``grid`` blocks of ``block`` threads in x, y, z; ``shared`` bytes of dynamic shared memory."""

    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared: int = 0


ORDERS = {"ascending": (0,), "descending": (1,), "both": (0, 1)}
MOST_SHARED = 48 * 1024  # what every architecture gives without asking
MOST_GRID = (2**31 - 1, 65535, 65535)

_one_at_a_time = threading.Lock()  # the threads' state is the library's, the stacks the process's


class Three(ctypes.Structure):
    _fields_ = [(axis, ctypes.c_uint) for axis in "xyz"]

    def __str__(self) -> str:
        return f"({self.x}, {self.y}, {self.z})"


class Report(ctypes.Structure):  # fibers.hpp has the same
    _fields_ = [(name, ctypes.c_uint) for name in ("line", "other_line", "waiting", "threads")]
    _fields_ += [(name, Three) for name in ("block", "thread", "other")]


class Entry(ctypes.Structure):  # cuda.hpp calls it Kernel
    _fields_ = [("call", ctypes.c_void_p), ("waits", ctypes.c_bool)]
    _fields_ += [("shared", ctypes.c_void_p), ("shared_end", ctypes.c_void_p)]


class Module:
    """A built source; ``kernels`` maps each name to its Kernel."""

    def __init__(self, library: ctypes.CDLL, kernels: tuple[Kernel, ...]):
        self.kernels = {kernel.name: kernel for kernel in kernels}
        table = (Entry * len(kernels)).in_dll(library, "minigraph_kernels")
        self._entries = dict(zip(self.kernels, table))
        self._launch, self._compare = library.minigraph_launch, library.minigraph_compare
        self._compare.restype = ctypes.c_longlong
        self._compare.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_longlong, ctypes.c_int)
        weakref.finalize(self, _ctypes.dlclose, library._handle)

    def run(self, launches: Iterable[tuple[Launch, Sequence]], order: str = "both") -> None:
        """Run launches one after another and leave the results in the arrays.

        Arguments are C-contiguous arrays (None is a null pointer) and numbers, which take the parameter's type. With
        ``order="both"`` each launch runs twice on copies, threads and blocks first to last and last to first. Raises
        ShimError where the two differ in a bit, which is a race (as is a float sum by atomicAdd, whose order is open),
        where a barrier diverges or memory around an array is written, and for arguments that do not fit. On an error
        the arrays are as they were.
        """
        if order not in ORDERS:
            raise ShimError(f"order is one of {', '.join(ORDERS)}, not {order!r}")
        jobs = [(launch, self._check(launch), args) for launch, args in launches]
        jobs = [(launch, kernel, arguments.values(kernel, args)) for launch, kernel, args in jobs]
        regions = memory.regions([(kernel, values) for _, kernel, values in jobs])
        for region in regions:
            region.copy(len(ORDERS[order]))
        with _one_at_a_time:
            for launch, kernel, values in jobs:
                places = [memory.place(regions, value) for value in values]
                for number, backwards in enumerate(ORDERS[order]):
                    self._once(launch, kernel, values, places, number, backwards)
                self._agree(kernel, values, places)
        for region in regions:
            region.give_back()

    def _check(self, launch: Launch) -> Kernel:
        """The launch's kernel; raises ShimError for a shape that a GPU refuses too."""
        kernel = self.kernels.get(launch.kernel)
        if kernel is None:
            raise ShimError(f"no kernel is named {launch.kernel!r}; the source has {', '.join(self.kernels)}")
        grid, block = three(launch.grid), three(launch.block)
        what = f"kernel `{kernel.name}` cannot be launched with a grid of {grid} and a block of {block}"
        if any(not 1 <= size <= most for size, most in zip(grid, MOST_GRID)):
            raise ShimError(f"{what}: a grid has 1 to {MOST_GRID} blocks")
        if min(block) < 1 or block[2] > 64 or block[0] * block[1] * block[2] > kernel.most_threads:
            raise ShimError(f"{what}: a block of this kernel has 1 to {kernel.most_threads} threads, at most 64 in z")
        if not 0 <= launch.shared <= MOST_SHARED:
            limits = f"dynamic shared memory is 0 to {MOST_SHARED} bytes"
            raise ShimError(f"kernel `{kernel.name}`: {limits}, not {launch.shared}")
        return kernel

    def _once(self, launch: Launch, kernel: Kernel, values: list, places: list, number: int, backwards: int) -> None:
        """One run of one launch, on the copies of that number."""
        cells = [ctypes.c_void_p(place[0].copies[number] + place[1]) if place else value
                 for value, place in zip(values, places)]  # fmt: skip
        pointers = (ctypes.c_void_p * max(1, len(cells)))(*map(ctypes.addressof, cells))
        geometry = (ctypes.c_uint * 6)(*three(launch.grid), *three(launch.block))
        entry, report = ctypes.byref(self._entries[kernel.name]), Report()
        trouble = self._launch(entry, pointers, geometry, ctypes.c_uint(launch.shared), backwards, memory.stacks(),
                               ctypes.byref(report))  # fmt: skip
        if trouble:
            raise ShimError(f"kernel `{kernel.name}`, block {report.block}: " + TROUBLES[trouble - 1](report))

    def _agree(self, kernel: Kernel, values: list, places: list) -> None:
        """Every array that the kernel may write: guards untouched, and the same bits in each order."""
        for place, param in zip(places, kernel.params):
            if place is None or param.const:
                continue
            region = place[0]
            at = self._compare(region.copies[0], region.copies[-1], region.high - region.low, memory.GUARD)
            if at < -1:
                side = "before the start" if at == -2 else "past the end"
                raise ShimError(f"kernel `{kernel.name}` writes {side} of `{param.name}`: guard the index")
            if at >= 0:
                name, (up, down) = memory.element(kernel, values, places, region, at)
                raise ShimError(
                    f"kernel `{kernel.name}`: {name} is {up} when its threads run in ascending order and {down} in "
                    "descending: a race; look for a missing __syncthreads() or for two threads that write one element"
                )


def three(sizes: Sequence[int]) -> tuple[int, int, int]:
    """Sizes in x, y and z; those left out are 1."""
    x, y, z = (*map(int, sizes), 1, 1, 1)[:3]
    return x, y, z


def diverged(report: Report) -> str:
    text = f"divergence at line {report.line}, where {report.waiting} of {report.threads} threads wait, "
    text += f"thread {report.thread} among them; "
    if str(report.other) == str(report.thread):
        return text + "their masks name lanes that do not come"
    where = f"waits at line {report.other_line}" if report.other_line else "has ended"
    rule = "all of a block must reach one __syncthreads(), all of a mask one warp function"
    return f"{text}thread {report.other} {where}; {rule}"


TROUBLES = (  # one for each Trouble of fibers.hpp, in its order
    diverged,
    lambda report: f"line {report.line}: thread {report.thread} calls a warp function whose mask leaves it out",
    lambda report: f"line {report.line} waits, which the shim did not see: write __syncthreads() out in the kernel",
    lambda report: "writes past the end of its dynamic shared memory: give the launch more bytes",
    lambda report: f"thread {report.thread} touches memory that is not its arrays'",
    lambda report: f"thread {report.thread} divides an integer by zero",
    lambda report: f"fixed and dynamic shared memory together take more than {MOST_SHARED} bytes",
)
