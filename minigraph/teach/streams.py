"""Arguments that come part by part, for exercises in which nobody may have the whole."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator, Sequence

import numpy as np

Part = tuple[np.ndarray, ...]
LONG = 2**17  # bytes: from here on it is measured what a function keeps
KEPT = ("more in memory than it may have",)  # what a function that keeps too much is said to answer


def one_at_a_time(parts: Sequence[Part]) -> Iterator[Part]:
    """Each part until the next one is asked for: all lie in the same memory, and what is over becomes NaN."""
    places = [np.empty(max(array.size for array in arrays)) for arrays in zip(*parts)]
    for part in parts:
        views = tuple(place[:array.size].reshape(array.shape) for place, array in zip(places, part))
        for view, array in zip(views, part):
            view[...] = array
        yield views
        del views
        for place in places:
            place.fill(np.nan)


def with_little_memory(function: Callable, parts: Sequence[Part]):
    """What ``function(parts, one at a time)`` answers; KEPT, if parts are long and it has half of their last arrays."""
    whole = sum(part[-1].nbytes for part in parts)
    if whole < LONG:
        return function(one_at_a_time(parts))
    for _ in range(2):  # once more if it was too much: other threads of a notebook take memory, too
        answer, most = measured(lambda: function(one_at_a_time(parts)))
        if most < whole // 2:
            return answer
    return KEPT


def measured(call: Callable) -> tuple[object, int]:
    """The answer of a call, and the most bytes that it had at a time. NumPy's arrays count."""
    ours = not tracemalloc.is_tracing()
    if ours:
        tracemalloc.start()
    try:
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        answer = call()
        return answer, tracemalloc.get_traced_memory()[1] - before
    finally:
        if ours:
            tracemalloc.stop()
