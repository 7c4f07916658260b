"""NumPy's reductions on traced values, within the rounding bound of NumPy's own."""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from .record import Traced, cast, emit, lift
from .source import fail
from .ufuncs import truth


def axes_of(axis, rank: int) -> tuple[int, ...]:
    return tuple(range(rank)) if axis is None else tuple(sorted(normalize_axis_tuple(axis, rank)))


def reduce(row: str, a: Traced, axis, keepdims) -> Traced:
    return emit(row, a, axis=axes_of(axis, a.ndim), keepdims=bool(keepdims))


def widened(a: Traced, dtype) -> Traced:
    """Small integers and bools are summed in 64 bits: the cast that NumPy makes silently."""
    if dtype is None:
        dtype = {"b": np.int64, "i": np.int64, "u": np.uint64}.get(a.dtype.kind, a.dtype)
    return cast(a, np.dtype(dtype))


def masked(a: Traced, where, filler) -> Traced:
    """The elements that ``where=`` leaves out are replaced by what changes nothing."""
    return a if where is True else np.where(where, a, a.dtype.type(filler))


def accumulating(row: str):
    """``np.sum`` and ``np.prod``."""

    def reduction(a, axis=None, dtype=None, *, keepdims=False, initial=None, where=True):
        a = masked(widened(lift(a), dtype), where, row == "prod")
        if a.dtype == bool:  # only with dtype=bool
            return reduce("any" if row == "sum" else "all", a, axis, keepdims)
        result = reduce(row, a, axis, keepdims)
        if initial is None:
            return result
        return result + result.dtype.type(initial) if row == "sum" else result * result.dtype.type(initial)

    return reduction


def selecting(row: str, combine):
    """``np.max`` and ``np.min``; of an axis of length 0, and with ``where=``, only with ``initial``."""

    def reduction(a, axis=None, *, keepdims=False, initial=None, where=True):
        a = lift(a)
        if where is not True:
            if initial is None:
                fail("reduction operation with where= does not have an identity, so to use it give initial=")
            a = masked(a, where, initial)
        empty = any(a.shape[i] == 0 for i in axes_of(axis, a.ndim))
        if initial is not None and empty:
            return np.full_like(reduce("any", truth(a), axis, keepdims), initial, dtype=a.dtype)
        rows = {"max": "any", "min": "all"} if a.dtype == bool and not empty else {}
        result = reduce(rows.get(row, row), a, axis, keepdims)
        return result if initial is None else combine(result, a.dtype.type(initial))

    return reduction


def logical(row: str):
    return lambda a, axis=None, *, keepdims=False, where=True: reduce(
        row, masked(truth(lift(a)), where, row == "all"), axis, keepdims)


def arg(row: str):
    def reduction(a, axis=None, *, keepdims=False):
        a = lift(a)
        if axis is not None:
            return emit(row, a, axis=normalize_axis_index(axis, a.ndim), keepdims=bool(keepdims))
        flat = emit(row, np.ravel(a), axis=0)
        return np.reshape(flat, (1,) * a.ndim) if keepdims else flat

    return reduction


def mean(a, axis=None, dtype=None, *, keepdims=False):
    a = lift(a)
    if dtype is None and a.dtype.kind in "biu":
        dtype = np.float64
    return reduce("mean", a if dtype is None else cast(a, np.dtype(dtype)), axis, keepdims)


def divided(total, count):
    """total / count in total's dtype, as NumPy's mean and var round it: through f64 where count is not exact."""
    if total.dtype.type(count) == count:
        return total / total.dtype.type(count)
    return cast(cast(total, np.float64) / np.float64(count), total.dtype)


def var(a, axis=None, dtype=None, *, ddof=0, keepdims=False):
    a = lift(a)
    if dtype is None and a.dtype.kind in "biu":
        dtype = np.float64
    a = a if dtype is None else cast(a, np.dtype(dtype))
    count = prod(a.shape[i] for i in axes_of(axis, a.ndim))
    deviation = a - divided(np.sum(a, axis=axis, keepdims=True), count)
    return divided(np.sum(deviation * deviation, axis=axis, keepdims=keepdims), max(count - ddof, 0))


def std(a, axis=None, dtype=None, *, ddof=0, keepdims=False):
    return np.sqrt(var(a, axis, dtype, ddof=ddof, keepdims=keepdims))


def ptp(a, axis=None, *, keepdims=False):
    return np.max(a, axis=axis, keepdims=keepdims) - np.min(a, axis=axis, keepdims=keepdims)


def count_nonzero(a, axis=None, *, keepdims=False):
    return np.sum(truth(lift(a)), axis=axis, keepdims=keepdims)


def average(a, axis=None, weights=None, returned=False, *, keepdims=False):
    """As NumPy's, but weights that sum to 0 give NaN: whether they do is known only when the graph runs."""
    if weights is None or returned:
        if returned:
            fail("np.average(returned=True) is not known to the tracer", "compute the sum of the weights yourself")
        return np.mean(a, axis=axis, keepdims=keepdims)
    a, weights = lift(a), lift(weights)
    if weights.shape != a.shape:
        if axis is None or weights.shape != (a.shape[axis],):
            fail(f"weights {weights._type} do not fit {a._type}", "give weights of the same shape", TypeError)
        weights = np.reshape(weights, tuple(dim if i == axis % a.ndim else 1 for i, dim in enumerate(a.shape)))
    dtype = np.result_type(a.dtype, weights.dtype, *(["f8"] if a.dtype.kind in "biu" else []))
    scale = np.sum(cast(weights, dtype), axis=axis, keepdims=keepdims)
    return np.sum(cast(a, dtype) * cast(weights, dtype), axis=axis, keepdims=keepdims) / scale


def along(a, axis):
    a = lift(a)
    return (np.ravel(a), 0) if axis is None else (a, normalize_axis_index(axis, a.ndim))


def cumsum(a, axis=None, dtype=None):
    a, axis = along(a, axis)
    return emit("cumsum", widened(a, dtype), axis=axis)


def sort(a, axis=-1, kind=None, order=None, stable=None):
    a, axis = along(a, axis)
    return emit("sort", a, axis=axis)


def without_nan(reduction, filler):
    """``np.nansum`` and ``np.nanprod``: NaNs count as the identity."""

    def ignoring(a, axis=None, dtype=None, *, keepdims=False):
        a = lift(a)
        a = np.where(np.isnan(a), a.dtype.type(filler), a) if a.dtype.kind == "f" else a
        return reduction(a, axis=axis, dtype=dtype, keepdims=keepdims)

    return ignoring


def nan_select(reduction, filler):
    """``np.nanmax`` and ``np.nanmin``: NaN only where there is nothing else."""

    def ignoring(a, axis=None, *, keepdims=False):
        a = lift(a)
        if a.dtype.kind != "f":
            return reduction(a, axis=axis, keepdims=keepdims)
        nothing = np.all(np.isnan(a), axis=axis, keepdims=keepdims)
        return np.where(nothing, np.nan, reduction(np.where(np.isnan(a), filler, a), axis=axis, keepdims=keepdims))

    return ignoring


REDUCTIONS = {  # name in NumPy -> our version
    "sum": accumulating("sum"), "prod": accumulating("prod"), "mean": mean,
    "max": selecting("max", np.maximum), "min": selecting("min", np.minimum),
    "amax": selecting("max", np.maximum), "amin": selecting("min", np.minimum),
    "any": logical("any"), "all": logical("all"), "argmax": arg("argmax"), "argmin": arg("argmin"),
    "var": var, "std": std, "ptp": ptp, "count_nonzero": count_nonzero, "average": average,
    "cumsum": cumsum, "sort": sort, "nansum": without_nan(np.sum, 0), "nanprod": without_nan(np.prod, 1),
    "nanmax": nan_select(np.max, -np.inf), "nanmin": nan_select(np.min, np.inf),
    "trace": lambda a, offset=0, axis1=0, axis2=1: np.sum(np.diagonal(a, offset, axis1, axis2), axis=-1),
}  # fmt: skip
