"""Indexing traced values: ``x[...]`` as slice, reshape and take nodes.

Basic indices (ints, slices, None, Ellipsis) have NumPy's meaning. Index arrays, traced or not, are one ``take`` from
the indexed axes laid flat. A traced index is checked when the graph runs: out of range is an error there too.
"""

from __future__ import annotations

from math import prod

import numpy as np

from ..errors import GraphError
from ..types import broadcast
from .record import Traced, cast, emit, lift
from .source import fail

FULL = slice(None)


def static_int(item) -> int | None:
    """The value of a plain integer index, else None."""
    if isinstance(item, np.ndarray) and item.ndim == 0 and item.dtype.kind in "iu":
        return int(item)
    if isinstance(item, (int, np.integer)) and not isinstance(item, bool):
        return int(item)
    return None


def is_array(item) -> bool:
    return isinstance(item, (np.ndarray, Traced)) and item.ndim > 0


def normalize(item):
    """One entry of an index, with lists as arrays; raises TraceError for what no graph can do."""
    if isinstance(item, list):
        item = np.asarray(item, None if item else np.intp)
    if isinstance(item, (bool, np.bool_)) or getattr(item, "dtype", None) == bool and item.ndim == 0:
        fail("a bool index adds an axis whose length depends on its value", "use np.where", IndexError)
    if isinstance(item, Traced) and item.dtype == bool:
        fail("a traced mask selects a number of elements that is known only when the graph runs",
             "shapes are static: use np.where(mask, x, other)", IndexError)
    if isinstance(item, (np.ndarray, Traced)) and item.dtype.kind not in "iub":
        fail(f"an index array has integers, not {item.dtype}", like=IndexError)
    if isinstance(item, slice) and any(isinstance(part, Traced) for part in (item.start, item.stop, item.step)):
        fail("a slice with a traced bound has a length that is known only when the graph runs",
             "for a fixed length n write np.take(x, start + np.arange(n), axis=0)", TypeError)
    return item


def expand(index, shape: tuple[int, ...]) -> tuple[list, int]:
    """The index as one entry an axis, plus the Nones, and where its Ellipsis was.

    Ellipsis and what is left off become full slices.
    """
    items, lengths = [], []  # lengths: what an axis must have for a mask to fit it
    for item in index if isinstance(index, tuple) else (index,):
        item = normalize(item)
        mask = isinstance(item, np.ndarray) and item.dtype == bool
        items += item.nonzero() if mask else [item]
        lengths += item.shape if mask else [None]
    if sum(item is Ellipsis for item in items) > 1:
        fail("an index has at most one '...'", like=IndexError)
    used = sum(item is not None and item is not Ellipsis for item in items)
    if used > len(shape):
        fail(f"too many indices: {used} for an array of rank {len(shape)}", like=IndexError)
    at = next((place for place, item in enumerate(items) if item is Ellipsis), len(items))
    rest = len(shape) - used
    items[at:at + 1], lengths[at:at + 1] = [FULL] * rest, [None] * rest
    wanted = [length for item, length in zip(items, lengths) if item is not None]
    for axis, (dim, length) in enumerate(zip(shape, wanted)):
        if length not in (None, dim):
            fail(f"a mask of length {length} does not fit axis {axis}, which has {dim}", like=IndexError)
    return items, at


def wrapped(number: int, axis: int, dim: int) -> int:
    if not -dim <= number < dim:
        fail(f"index {number} is out of bounds for axis {axis} with size {dim}", like=IndexError)
    return number % dim


def take_axis(x: Traced, index, axis: int) -> Traced:
    """``x`` with ``axis`` replaced by the index's own axes."""
    return emit("take", x, lift(index), axis=axis)


def getitem(x: Traced, index) -> Traced:
    """``x[index]``."""
    items, at = expand(index, x.shape)
    if any(map(is_array, items)):
        return getitem_arrays(x, items, at)
    x, items = take_scalars(x, items)
    return getitem_basic(x, items)


def take_scalars(x: Traced, items: list) -> tuple[Traced, list]:
    """Apply traced 0-d indices, last first so that the axes before keep their place."""
    axes = [sum(other is not None for other in items[:place]) for place in range(len(items))]
    for place in reversed(range(len(items))):
        if isinstance(items[place], Traced):
            x = take_axis(x, checked(items[place], axes[place], x.shape[axes[place]]), axes[place])
            items = items[:place] + items[place + 1:]
    return x, items


def getitem_basic(x: Traced, items: list) -> Traced:
    """Ints, slices and None: one slice for the elements, one reshape for the axes that go or come."""
    ranges, shape, axis = [], [], 0
    for item in items:
        if item is None:
            shape.append(1)
            continue
        number, dim = static_int(item), x.shape[axis]
        if number is not None:
            number = wrapped(number, axis, dim)
            ranges.append(range(number, number + 1))
        elif isinstance(item, slice):
            ranges.append(range(*item.indices(dim)))
            shape.append(len(ranges[-1]))
        else:
            fail(f"{item!r} is not an index", "indices are ints, slices, None, ... and integer arrays", IndexError)
        axis += 1
    if [*map(range, x.shape)] != ranges:
        x = emit("slice", x, start=tuple(r.start for r in ranges), stop=tuple(r.stop for r in ranges),
                 step=tuple(r.step for r in ranges) if any(r.step != 1 for r in ranges) else ())
    return x if x.shape == tuple(shape) else emit("reshape", x, shape=tuple(shape))


def getitem_arrays(x: Traced, items: list, at: int) -> Traced:
    """At least one index array. Ints beside it broadcast with it, as in NumPy: they are index arrays too.

    The result's new axes stand where the index arrays stood together, but in front where something parts them: a
    slice, a None, or an Ellipsis (at ``at``), even one that stands for no axes.
    """
    def advanced(item):
        return is_array(item) or isinstance(item, Traced) or static_int(item) is not None

    places = [place for place, item in enumerate(items) if advanced(item)]
    together = places == list(range(places[0], places[-1] + 1)) and not places[0] < at <= places[-1]
    indices = [items[place] for place in places]
    shapes = [getattr(index, "shape", ()) for index in indices]
    try:
        broadcast(*shapes)
    except GraphError:
        fail(f"index arrays of shapes {' and '.join(map(str, map(list, shapes)))} do not broadcast", like=IndexError)
    # the rest first: afterwards x has all indexed axes in full, and the Nones
    x = getitem_basic(x, [FULL if advanced(item) else item for item in items])
    if len(places) == 1:
        return take_axis(x, checked(indices[0], places[0], x.shape[places[0]]), places[0])
    dims = [x.shape[place] for place in places]
    others = [axis for axis in range(x.ndim) if axis not in places]
    front = len([axis for axis in others if axis < places[0]]) if together else 0
    perm = others[:front] + places + others[front:]
    if perm != list(range(x.ndim)):
        x = emit("transpose", x, perm=tuple(perm))
    flat_shape = x.shape[:front] + (prod(dims),) + x.shape[front + len(dims):]
    flat = emit("reshape", x, shape=flat_shape)
    return take_axis(flat, flat_index([checked(i, p, d) for i, p, d in zip(indices, places, dims)], dims), front)


def checked(index, axis: int, dim: int):
    """A static index, in range or a TraceError; a traced one as it is."""
    if isinstance(index, Traced):
        return cast(index, np.int64) if index.dtype == np.uint64 else index
    index = np.asarray(index)
    for number in (index.min(), index.max()) if index.size else ():
        wrapped(int(number), axis, dim)
    return index


def flat_index(indices: list, dims: list[int]):
    """Positions in the flattened axes. Looking a traced index up in 0, 1 … dim-1 wraps and checks it at run time."""
    flat = 0
    for index, dim in zip(indices, dims):
        if isinstance(index, Traced):
            index = take_axis(lift(np.arange(dim)), index, 0)
        else:
            index = np.where(index < 0, index + dim, index).astype(np.int64)
        flat = flat * dim + index
    return flat
