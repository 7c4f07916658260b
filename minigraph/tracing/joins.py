"""NumPy's functions that join, cut, repeat and pick elements, on traced values."""

from __future__ import annotations

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from .record import Traced, emit, lift
from .shapes import atleast_1d, atleast_2d, atleast_3d, broadcast_to, expand_dims, moveaxis, ravel, reshape
from .source import fail

# ---- one array -------------------------------------------------------------------------------------------------------


def roll(a, shift, axis=None):
    a = lift(a)
    if axis is None:
        return reshape(roll(ravel(a), shift, 0), a.shape)
    shifts, axes = np.broadcast_arrays(shift, normalize_axis_tuple(axis, a.ndim, allow_duplicate=True))
    for by, along in zip(shifts.tolist(), axes.tolist()):
        cut = -by % a.shape[along] if a.shape[along] else 0
        if cut:
            at = (slice(None),) * along
            a = concatenate([a[(*at, slice(cut, None))], a[(*at, slice(None, cut))]], along)
    return a


def tile(A, reps):
    A, reps = lift(A), tuple(reps) if isinstance(reps, (tuple, list)) else (reps,)
    reps = (1,) * (A.ndim - len(reps)) + reps
    dims = (1,) * (len(reps) - A.ndim) + A.shape
    split = reshape(A, tuple(part for dim in dims for part in (1, dim)))
    spread = broadcast_to(split, tuple(part for pair in zip(reps, dims) for part in pair))
    return reshape(spread, tuple(rep * dim for rep, dim in zip(reps, dims)))


def repeat(a, repeats, axis=None):
    a = lift(a)
    if axis is None:
        a, axis = ravel(a), 0
    axis = normalize_axis_index(axis, a.ndim)
    if isinstance(repeats, Traced):
        fail("np.repeat with traced repeats has a length that is known only when the graph runs", like=TypeError)
    if np.ndim(repeats):
        return take(a, np.repeat(np.arange(a.shape[axis]), repeats), axis)
    spread = broadcast_to(expand_dims(a, axis + 1), a.shape[:axis + 1] + (repeats,) + a.shape[axis + 1:])
    return reshape(spread, a.shape[:axis] + (a.shape[axis] * repeats,) + a.shape[axis + 1:])


def pad(array, pad_width, mode="constant", constant_values=0):
    array = lift(array)
    if isinstance(pad_width, dict):
        pad_width = [pad_width.get(axis, pad_width.get(axis - array.ndim, 0)) for axis in range(array.ndim)]
        pad_width = [(width, width) if isinstance(width, int) else width for width in pad_width]
    widths = np.broadcast_to(np.asarray(pad_width), (array.ndim, 2)).tolist()
    if mode == "constant":
        if np.ndim(constant_values):
            fail("np.pad with a value for each side is not known to the tracer", "pad side by side")
        value = np.zeros((), array.dtype)
        if isinstance(constant_values, Traced):
            value = constant_values.astype(array.dtype)
        else:
            value[...] = constant_values  # NumPy assigns it, so that 2.7 becomes 2 in an integer array
        low, high = zip(*widths) if widths else ((), ())
        return emit("pad", array, lift(value), low=low, high=high)
    if mode not in ("edge", "reflect", "symmetric", "wrap"):
        fail(f"np.pad(mode={mode!r}) is not known to the tracer", "constant, edge, reflect, symmetric and wrap are")
    for axis, width in enumerate(widths):
        if width != [0, 0]:
            array = take(array, np.pad(np.arange(array.shape[axis]), width, mode=mode), axis)
    return array


def take(a, indices, axis=None, *, mode="raise"):
    a, indices = lift(a), indices if isinstance(indices, Traced) else np.asarray(indices)
    if axis is None:
        a, axis = ravel(a), 0
    axis = normalize_axis_index(axis, a.ndim)
    if indices.dtype.kind not in "iub":
        if indices.size:
            fail(f"Cannot cast index data from {indices.dtype} to int64 according to the rule 'same_kind'",
                 like=TypeError)
        indices = indices.astype(np.intp)
    if mode == "wrap":
        indices = indices % a.shape[axis]
    elif mode == "clip":
        indices = np.clip(indices, 0, a.shape[axis] - 1)
    return lift(a)[(slice(None),) * axis + (indices if indices.dtype != bool else indices.astype(np.intp),)]


def take_along_axis(arr, indices, axis=-1):
    arr = lift(arr)
    if axis is None:
        arr, axis = ravel(arr), 0
    axis = normalize_axis_index(axis, arr.ndim)
    if indices.ndim != arr.ndim:
        fail("`indices` and `arr` must have the same number of dimensions")
    grid = [np.arange(dim).reshape((-1,) + (1,) * (arr.ndim - i - 1)) for i, dim in enumerate(arr.shape)]
    return arr[(*grid[:axis], indices, *grid[axis + 1:])]


def diag(v, k=0):
    v = lift(v)
    if v.ndim == 1:
        size = len(np.diag(np.zeros(v.shape[0]), k))
        at = np.diag(np.arange(v.shape[0]), k)
        return np.where(np.eye(size, k=k, dtype=bool), take(v, at), v.dtype.type(0)) if v.size else take(v, at)
    if v.ndim != 2:
        fail("Input must be 1- or 2-d.")
    return diagonal(v, k)


def diagonal(a, offset=0, axis1=0, axis2=1):
    a = moveaxis(a, (axis1, axis2), (-2, -1))
    rows, columns = np.nonzero(np.eye(*a.shape[-2:], k=offset, dtype=bool))
    return a[..., rows, columns]


def delete(arr, obj, axis=None):
    arr = lift(arr) if axis is not None else ravel(arr)
    axis = 0 if axis is None else normalize_axis_index(axis, arr.ndim)
    return take(arr, np.delete(np.arange(arr.shape[axis]), obj), axis)


# ---- several arrays --------------------------------------------------------------------------------------------------


def concatenate(arrays, axis=0, *, dtype=None, casting="same_kind"):
    arrays = [lift(array) for array in arrays]
    if not arrays:
        fail("need at least one array to concatenate")
    if axis is None:
        arrays, axis = [ravel(array) for array in arrays], 0
    if any(array.ndim == 0 for array in arrays):
        fail("zero-dimensional arrays cannot be concatenated", "use np.stack")
    dtype = np.result_type(*(array.dtype for array in arrays)) if dtype is None else np.dtype(dtype)
    arrays = [array if array.dtype == dtype else array.astype(dtype) for array in arrays]
    return emit("concat", *arrays, axis=normalize_axis_index(axis, arrays[0].ndim))


def stack(arrays, axis=0, *, dtype=None, casting="same_kind"):
    arrays = [lift(array) for array in arrays]
    if len({array.shape for array in arrays}) != 1:
        fail("all input arrays must have the same shape" if arrays else "need at least one array to stack")
    axis = normalize_axis_index(axis, arrays[0].ndim + 1)
    return concatenate([expand_dims(array, axis) for array in arrays], axis, dtype=dtype)


def vstack(tup, *, dtype=None, casting="same_kind"):
    return concatenate([atleast_2d(array) for array in tup], 0, dtype=dtype)


def hstack(tup, *, dtype=None, casting="same_kind"):
    arrays = [atleast_1d(array) for array in tup]
    return concatenate(arrays, 0 if arrays[0].ndim == 1 else 1, dtype=dtype)


def dstack(tup):
    return concatenate([atleast_3d(array) for array in tup], 2)


def column_stack(tup):
    arrays = [lift(array) for array in tup]
    return concatenate([array if array.ndim >= 2 else reshape(array, (-1, 1)) for array in arrays], 1)


def append(arr, values, axis=None):
    return concatenate([ravel(arr), ravel(values)] if axis is None else [arr, values], axis or 0)


def array_split(ary, indices_or_sections, axis=0):
    ary = lift(ary)
    axis = normalize_axis_index(axis, ary.ndim)
    parts = np.array_split(np.arange(ary.shape[axis]), indices_or_sections)
    bounds, at = [], 0
    for part in parts:
        start = int(part[0]) if len(part) else at
        at = start + len(part)
        bounds.append(slice(start, at))
    return [ary[(slice(None),) * axis + (bound,)] for bound in bounds]


def split(ary, indices_or_sections, axis=0):
    ary = lift(ary)
    sections = indices_or_sections
    if isinstance(sections, int) and ary.shape[normalize_axis_index(axis, ary.ndim)] % sections:
        fail("array split does not result in an equal division", "use np.array_split")
    return array_split(ary, sections, axis)


def split_along(axis: int):
    return lambda ary, indices_or_sections: split(ary, indices_or_sections, axis)


def unstack(x, axis=0):
    x = moveaxis(x, axis, 0)
    return tuple(x[i] for i in range(x.shape[0]))


JOINS = {  # name in NumPy -> our version
    "roll": roll, "tile": tile, "repeat": repeat, "pad": pad, "take": take, "take_along_axis": take_along_axis,
    "diag": diag, "diagonal": diagonal, "delete": delete,
    "concatenate": concatenate, "stack": stack, "vstack": vstack, "hstack": hstack, "dstack": dstack,
    "column_stack": column_stack, "append": append, "array_split": array_split, "split": split,
    "vsplit": split_along(0), "hsplit": lambda ary, n: split(ary, n, 0 if ary.ndim == 1 else 1),
    "dsplit": split_along(2), "unstack": unstack,
}  # fmt: skip
