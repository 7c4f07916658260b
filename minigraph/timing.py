"""Timing functions: ``bench`` for one, ``compare`` for several in turn, with a clock for the CPU and one for a GPU."""

from __future__ import annotations

import contextlib
import gc
import itertools
import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from .errors import MinigraphError
from .gpu import gpu_status
from .launch_model import quantity

LEAST = 3  # runs of each function, however slow
MOST = 10_000_000  # calls in one run, for functions faster than the clock can see

Clock = Callable[[Callable[[], object], int], float]


class MeasureError(MinigraphError):
    """Nothing could be measured."""


# ---- clocks: call a function so many times, and say how many seconds that took ----------------------------------


def wall(f: Callable[[], object], loops: int) -> float:
    """The time on the wall. Of an asynchronous function, as every CuPy call is, it sees the launch and nothing else."""
    calls = itertools.repeat(None, loops)
    start = time.perf_counter()
    for _ in calls:
        f()
    return time.perf_counter() - start


def synchronized(synchronize: Callable[[], object]) -> Clock:
    """The time on the wall from when earlier work is done until this is, too; ``synchronize`` waits for it."""

    def clock(f, loops):
        synchronize()
        start = time.perf_counter()
        for _ in range(loops):
            f()
        synchronize()
        return time.perf_counter() - start

    return clock


def gpu_clock(cupy=None, stream=None) -> Clock:
    """The GPU's own clock: an event before the calls and one behind them in ``stream``, by default the current one.

    ``cupy`` is the module, or a stand-in with ``cuda.Event``, ``cuda.get_elapsed_time`` and
    ``cuda.get_current_stream``. Raises MeasureError where CuPy is of no use.
    """
    cupy = cupy or import_cupy()

    def clock(f, loops):
        queue = stream or cupy.cuda.get_current_stream()
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        queue.synchronize()  # earlier work is not billed to f
        start.record(queue)
        for _ in range(loops):
            f()
        end.record(queue)
        end.synchronize()
        return cupy.cuda.get_elapsed_time(start, end) / 1e3  # it speaks of milliseconds

    return clock


def import_cupy():
    """CuPy. Raises MeasureError with a sentence where it is of no use."""
    if reason := gpu_here():
        raise MeasureError(f"nothing can be timed on a GPU: {reason}\n  `minigraph doctor` says what would help")
    import cupy

    return cupy


def gpu_here() -> str:
    """An empty text where CuPy computes on a GPU, else why not. Tried once, for a first try can take seconds."""
    return gpu_status().reason


# ---- timing -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Timing:
    """Seconds for one call.

    ``samples`` has a number for each run of ``loops`` calls; ``first`` is the very first call, which may have compiled
    and is in no sample.
    """

    samples: tuple[float, ...]
    loops: int
    first: float

    @property
    def runs(self) -> int:
        return len(self.samples)

    @property
    def median(self) -> float:
        return statistics.median(self.samples)

    @property
    def low(self) -> float:
        """The lower quartile."""
        return quartiles(self.samples)[0]

    @property
    def high(self) -> float:
        """The upper quartile."""
        return quartiles(self.samples)[1]

    def times_faster(self, other: Timing) -> float:
        """How many times as long ``other`` takes: the median over the rounds of one ``compare``, where load cancels."""
        return statistics.median(theirs / ours for ours, theirs in zip(self.samples, other.samples) if ours)

    def __str__(self) -> str:
        low, middle, high, first = (quantity(t, "s") for t in (self.low, self.median, self.high, self.first))
        return f"{middle} ({low} to {high} in {self.runs} runs of {self.loops:,}; first call {first})"


def quartiles(samples: Sequence[float]) -> tuple[float, float]:
    if len(samples) < 2:
        return samples[0], samples[0]
    low, _, high = statistics.quantiles(samples, n=4, method="inclusive")
    return low, high


def bench(f: Callable[[], object], *, seconds: float = 0.5, repeat: int = 15, clock: Clock = wall) -> Timing:
    """Time ``f()``: a first call, a warm-up, then up to ``repeat`` runs of equally many calls in about ``seconds``.

    At least three runs are made, also of a function that is too slow for that. ``clock`` is ``wall``, ``gpu_clock()``
    or ``synchronized(wait)``.
    """
    return compare({"f": f}, seconds=seconds, repeat=repeat, clock=clock)["f"]


def compare(functions: Mapping[str, Callable[[], object]], *, seconds: float = 0.5, repeat: int = 15,
            clock: Clock | Mapping[str, Clock] = wall) -> dict[str, Timing]:
    """Time several functions in turn, ``seconds`` for each: a slow moment hits all of them, so ratios hold.

    Every second round goes backwards, so that nobody always comes after the same neighbour. ``clock`` may be a table
    with one for each name. Raises MeasureError where there is nothing to time.
    """
    if not functions or not all(map(callable, functions.values())):
        raise MeasureError("nothing to time: bench takes a function without arguments, compare a table of them")
    if not (0 < seconds < math.inf and repeat >= LEAST):
        raise MeasureError(f"seconds is above 0 and repeat at least {LEAST}, not {seconds} and {repeat}")
    clocks = {name: clock[name] if isinstance(clock, Mapping) else clock for name in functions}
    samples: dict[str, list[float]] = {name: [] for name in functions}
    with without_collector():
        first = {name: clocks[name](f, 1) for name, f in functions.items()}
        loops = {name: choose_loops(f, clocks[name], seconds / repeat) for name, f in functions.items()}
        spent = 0.0
        for turn in range(repeat):
            for name in list(functions)[::-1 if turn % 2 else 1]:
                took = clocks[name](functions[name], loops[name])
                samples[name].append(took / loops[name])
                spent += took
            if spent > seconds * len(functions) and turn + 1 >= LEAST:
                break
    return {name: Timing(tuple(samples[name]), loops[name], first[name]) for name in functions}


def choose_loops(f: Callable[[], object], clock: Clock, target: float) -> int:
    """So many calls that they take about ``target`` seconds; finding out is the warm-up."""
    loops = 1
    while (took := clock(f, loops)) < target / 4 and loops < MOST:
        loops = min(MOST, loops * (10 if took < target / 20 else 3))
    return max(1, min(MOST, round(loops * target / took))) if took > 0 else MOST


@contextlib.contextmanager
def without_collector():
    """No garbage collection in the middle of a run."""
    was_on = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
