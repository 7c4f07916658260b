"""NumPy's functions that choose and change elements, on traced values, and its questions that need no graph."""

from __future__ import annotations

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from .record import Traced, cast, emit, lift
from .source import fail
from .ufuncs import is_weak, truth


def where(condition, x=None, y=None):
    if x is None or y is None:
        fail("np.where with a condition alone has a length that is known only when the graph runs",
             "give both values: np.where(condition, x, y)")
    x, y = (value if is_weak(value) else lift(value) for value in (x, y))
    dtype = np.result_type(*(value if is_weak(value) else value.dtype for value in (x, y)))

    def branch(value):
        if is_weak(value):  # np.where, unlike ufuncs, wraps a Python int that is out of range
            return lift(np.where(True, value, np.zeros((), dtype))[()])
        return cast(value, dtype)

    return emit("where", truth(lift(condition)), branch(x), branch(y))


def clip(a, a_min=None, a_max=None, *, min=None, max=None):
    """Two nodes where that gives NumPy's bits.

    With bounds that are numbers, or single elements for all of x, NumPy keeps x where it equals a bound, so the sign
    of a zero: maximum, which for a tie takes its second operand (its first in f16), does the same with a traced bound,
    and ``where`` with a bound 0.0.
    """
    a = lift(a)
    low, high = (a_min if min is None else min), (a_max if max is None else max)
    low, high = (b if b is None or is_weak(b) or isinstance(b, Traced) else np.asarray(b)[()] for b in (low, high))
    if a.dtype.kind in "iu":  # a Python int beyond the dtype bounds nothing
        limits = np.iinfo(a.dtype)
        low = None if type(low) is int and low <= limits.min else low
        high = None if type(high) is int and high >= limits.max else high
    if low is None or high is None:
        return a if low is high else np.minimum(a, high) if low is None else np.maximum(a, low)
    dtype = np.clip(np.zeros(0, a.dtype), *(b if is_weak(b) else np.zeros(0, b.dtype) for b in (low, high))).dtype
    a = cast(a, dtype)
    are_numbers = all(is_weak(b) or b.ndim == 0 or b.size == 1 < a.size for b in (low, high))
    for bound, outside, limit in ((low, np.less, np.maximum), (high, np.greater, np.minimum)):
        bound = bound if isinstance(bound, Traced) else np.asarray(bound, dtype)[()]
        if dtype.kind != "f" or not are_numbers:
            a = limit(a, bound)
        elif isinstance(bound, Traced):
            a = limit(a, bound) if dtype == np.float16 else limit(bound, a)
        else:
            a = np.where(outside(a, bound), bound, a) if bound == 0 else limit(a, bound)
    return a


def nan_to_num(x, copy=True, nan=0.0, posinf=None, neginf=None):
    x = lift(x)
    if x.dtype.kind != "f":
        return x
    limits = np.finfo(x.dtype)
    posinf, neginf = limits.max if posinf is None else posinf, limits.min if neginf is None else neginf
    as_x = x.dtype.type
    rest = np.where(x == np.inf, as_x(posinf), np.where(x == -np.inf, as_x(neginf), x))
    return np.where(np.isnan(x), as_x(nan), rest)


def round_(a, decimals=0):
    a = lift(a)
    if a.dtype.kind in "iu" and decimals >= 0:
        return a
    if decimals == 0:
        return np.rint(a)
    if a.dtype == bool:
        fail("bools have no decimals to round to", like=TypeError)
    factor = 10.0 ** abs(decimals)
    steps = np.rint(a * factor if decimals > 0 else a / factor)
    return cast(steps / factor if decimals > 0 else steps * factor, a.dtype if a.dtype.kind in "iu" else steps.dtype)


def diff(a, n=1, axis=-1):
    a = lift(a)
    axis = normalize_axis_index(axis, a.ndim)
    for _ in range(n):
        at = (slice(None),) * axis
        later, earlier = a[(*at, slice(1, None))], a[(*at, slice(None, -1))]
        a = later != earlier if a.dtype == bool else later - earlier
    return a


def triangle(mask_of, keep: bool):
    def part(m, k=0):
        m = lift(m)
        if m.ndim < 2:
            fail("np.tril and np.triu of a traced vector are not known to the tracer", "give it a second axis")
        mask = mask_of(m.shape[-2:], k)
        return np.where(mask, m, m.dtype.type(0)) if keep else np.where(mask, m.dtype.type(0), m)

    return part


def isclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    y = b if isinstance(b, float) else float(b) if type(b) is int else cast(lift(b), np.result_type(lift(b).dtype, 1.0))
    x = a if is_weak(a) else lift(a)
    close = (abs(x - y) <= atol + rtol * abs(y)) & np.isfinite(y) | (x == y)
    return close | (np.isnan(x) & np.isnan(y)) if equal_nan else close


def array_equal(a1, a2, equal_nan=False):
    a1, a2 = lift(a1), lift(a2)
    if a1.shape != a2.shape:
        return False
    same = a1 == a2
    return np.all(same | (np.isnan(a1) & np.isnan(a2)) if equal_nan else same)


def select(condlist, choicelist, default=0):
    dtype = np.result_type(*(c if is_weak(c) else lift(c).dtype for c in (*choicelist, default)))
    result = default
    for condition, choice in reversed(list(zip(condlist, choicelist))):
        result = np.where(condition, choice, result)
    return cast(result, dtype)


# ---- answers that need no graph --------------------------------------------------------------------------------------


def as_dtypes(values):
    return [value.dtype if isinstance(value, Traced) else value for value in values]


def data_dependent(name: str):
    def refuse(*args, **kwargs):
        fail(f"the shape of np.{name}'s result depends on values", "shapes are static: use np.where to mask instead")

    return refuse


def in_place(name: str):
    def refuse(*args, **kwargs):
        fail(f"np.{name} writes into an array in place; a graph has no writes", "use np.where, np.concatenate or"
             " minigraph's update_slice, and np.broadcast_to(x, shape) in place of np.full(shape, x)", TypeError)

    return refuse


CHOICES = {  # name in NumPy -> our version
    "where": where, "clip": clip, "nan_to_num": nan_to_num, "round": round_, "around": round_, "diff": diff,
    "tril": triangle(lambda shape, k: np.tri(*shape, k=k, dtype=bool), True),
    "triu": triangle(lambda shape, k: np.tri(*shape, k=k - 1, dtype=bool), False),
    "isclose": isclose, "allclose": lambda *args, **kwargs: np.all(isclose(*args, **kwargs)),
    "array_equal": array_equal, "select": select, "fix": lambda x: np.trunc(x),
    "isposinf": lambda x: x == np.inf, "isneginf": lambda x: x == -np.inf,
    "astype": lambda x, dtype, copy=True: x.astype(dtype),
    "real": lambda val: val, "imag": lambda val: np.zeros_like(val),
    "iscomplexobj": lambda x: False, "isrealobj": lambda x: True,
    "shape": lambda a: a.shape, "ndim": lambda a: a.ndim,
    "size": lambda a, axis=None: a.size if axis is None else a.shape[axis],
    "result_type": lambda *values: np.result_type(*as_dtypes(values)),
    "can_cast": lambda from_, to, casting="safe": np.can_cast(*as_dtypes((from_, to)), casting),
    **{name: data_dependent(name) for name in (
        "nonzero", "flatnonzero", "argwhere", "unique", "extract", "compress", "bincount", "histogram",
        "trim_zeros", "union1d", "intersect1d", "setdiff1d")},
    **{name: in_place(name) for name in ("copyto", "put", "place", "putmask", "fill_diagonal", "put_along_axis")},
}  # fmt: skip
