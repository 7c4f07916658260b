"""NumPy's functions that give an array another shape or order of elements, on traced values."""

from __future__ import annotations

import operator
from math import prod

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from .record import Traced, emit, lift
from .source import fail

def reshape(a, shape, order="C", copy=None):
    a = lift(a)
    shape = tuple(shape) if isinstance(shape, (tuple, list, np.ndarray)) else (shape,)
    shape = tuple(map(operator.index, shape))
    if order == "F":
        return np.transpose(reshape(np.transpose(a), shape[::-1]))
    if order != "C":
        fail(f"order={order!r} depends on how an array lies in memory; a graph's values have no memory yet",
             "use order 'C' or 'F'")
    known = prod(dim for dim in shape if dim != -1)
    if shape.count(-1) == 1 and known:
        shape = tuple(a.size // known if dim == -1 else dim for dim in shape)
    if prod(shape) != a.size or min(shape, default=0) < 0:
        fail(f"cannot reshape {a._type} ({a.size} elements) into shape {list(shape)}")
    return emit("reshape", a, shape=shape)


def ravel(a, order="C"):
    return reshape(a, (-1,) if lift(a).size else (0,), "C" if order in "AK" else order)


def transpose(a, axes=None):
    a = lift(a)
    axes = tuple(reversed(range(a.ndim))) if axes is None else normalize_axis_tuple(axes, a.ndim)
    if len(axes) != a.ndim:
        fail(f"axes {list(axes)} don't match {a._type}, which has {a.ndim}")
    return emit("transpose", a, perm=axes)


def moveaxis(a, source, destination):
    a = lift(a)
    source, destination = normalize_axis_tuple(source, a.ndim), normalize_axis_tuple(destination, a.ndim)
    if len(source) != len(destination):
        fail("`source` and `destination` must have the same number of elements")
    order = [axis for axis in range(a.ndim) if axis not in source]
    for to, axis in sorted(zip(destination, source)):
        order.insert(to, axis)
    return transpose(a, order)


def swapaxes(a, axis1, axis2):
    a = lift(a)
    axes = list(range(a.ndim))
    i, j = normalize_axis_index(axis1, a.ndim), normalize_axis_index(axis2, a.ndim)
    axes[i], axes[j] = axes[j], axes[i]
    return transpose(a, axes)


def rollaxis(a, axis, start=0):
    a = lift(a)
    axis = normalize_axis_index(axis, a.ndim)
    start = start + a.ndim if start < 0 else start
    return moveaxis(a, axis, start - 1 if axis < start else start)


def matrix_transpose(a):
    return swapaxes(a, -1, -2)


def squeeze(a, axis=None):
    a = lift(a)
    axes = [i for i, dim in enumerate(a.shape) if dim == 1] if axis is None else normalize_axis_tuple(axis, a.ndim)
    if any(a.shape[i] != 1 for i in axes):
        fail("cannot select an axis to squeeze out which has size not equal to one")
    return emit("reshape", a, shape=tuple(dim for i, dim in enumerate(a.shape) if i not in axes))


def expand_dims(a, axis):
    a = lift(a)
    rank = a.ndim + len(axis if isinstance(axis, (tuple, list)) else (axis,))
    axes, dims = normalize_axis_tuple(axis, rank), iter(a.shape)
    return emit("reshape", a, shape=tuple(1 if i in axes else next(dims) for i in range(rank)))


def broadcast_to(array, shape, subok=False):
    return emit("broadcast_to", lift(array), shape=tuple(shape) if isinstance(shape, (tuple, list)) else (shape,))


def broadcast_arrays(*arrays, subok=False):
    arrays = [lift(array) for array in arrays]
    shape = np.broadcast_shapes(*(array.shape for array in arrays))
    return tuple(array if array.shape == shape else broadcast_to(array, shape) for array in arrays)


def atleast(rank: int, before: int):
    """``np.atleast_1d`` and its kin: new axes of length 1, at most ``before`` of them in front."""

    def one(array):
        array = lift(array)
        missing = max(0, rank - array.ndim)
        front = min(missing, max(0, before - array.ndim))
        shape = (1,) * front + array.shape + (1,) * (missing - front)
        return array if missing == 0 else reshape(array, shape)

    return lambda *arrays: one(arrays[0]) if len(arrays) == 1 else tuple(map(one, arrays))


atleast_1d, atleast_2d, atleast_3d = atleast(1, 1), atleast(2, 2), atleast(3, 2)


def flip(m, axis=None):
    m = lift(m)
    axes = range(m.ndim) if axis is None else normalize_axis_tuple(axis, m.ndim)
    return m[tuple(slice(None, None, -1) if i in axes else slice(None) for i in range(m.ndim))]


def rot90(m, k=1, axes=(0, 1)):
    turns = k % 4
    if turns == 0:
        return lift(m)
    if turns == 2:
        return flip(m, axes)
    return swapaxes(flip(m, axes[1]), *axes) if turns == 1 else flip(swapaxes(m, *axes), axes[1])


def full_like(a, fill_value, dtype=None, shape=None):
    """One element, broadcast: not a constant of the full size."""
    dtype = a.dtype if dtype is None else np.dtype(dtype)
    shape = a.shape if shape is None else shape
    if isinstance(fill_value, Traced):
        return broadcast_to(fill_value.astype(dtype), shape)
    element = np.zeros((), dtype)
    np.copyto(element, fill_value, casting="unsafe")
    return broadcast_to(element, shape)


def as_array(a, dtype=None, order=None, copy=None):
    """``np.asarray(x, like=x)``: without ``like`` NumPy does not ask a tracer."""
    a = lift(a)
    return a if dtype is None else a.astype(dtype)


SHAPES = {  # name in NumPy -> our version
    "reshape": reshape, "ravel": ravel, "transpose": transpose, "permute_dims": transpose,
    "matrix_transpose": matrix_transpose, "moveaxis": moveaxis, "swapaxes": swapaxes, "rollaxis": rollaxis,
    "squeeze": squeeze, "expand_dims": expand_dims, "broadcast_to": broadcast_to,
    "broadcast_arrays": broadcast_arrays, "atleast_1d": atleast_1d, "atleast_2d": atleast_2d,
    "atleast_3d": atleast_3d, "flip": flip, "flipud": lambda m: flip(m, 0), "fliplr": lambda m: flip(m, 1),
    "rot90": rot90, "full_like": full_like,
    "zeros_like": lambda a, dtype=None, shape=None: full_like(a, 0, dtype, shape),
    "ones_like": lambda a, dtype=None, shape=None: full_like(a, 1, dtype, shape),
    "empty_like": lambda prototype, dtype=None, shape=None: full_like(prototype, 0, dtype, shape),
    "array": as_array, "asarray": as_array, "asanyarray": as_array, "ascontiguousarray": as_array,
    "copy": lambda a: a,
}  # fmt: skip
