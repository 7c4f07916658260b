"""NumPy's functions that compute, on traced values: reductions, products, choices. Each is NumPy code or one row.

Reductions and products are within the rounding bound of NumPy's, everything else is the same to the bit.
"""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from .trace_record import Traced, cast, emit, fail, lift
from .trace_ufuncs import is_weak, truth

# ---- reductions ----------------------------------------------------------------------------------------------------


def axes_of(axis, rank: int) -> tuple[int, ...]:
    return tuple(range(rank)) if axis is None else tuple(sorted(normalize_axis_tuple(axis, rank)))


def reduce(row: str, a: Traced, axis, keepdims) -> Traced:
    return emit(row, a, axis=axes_of(axis, a.ndim), keepdims=bool(keepdims))


def widened(a: Traced, dtype) -> Traced:
    """Small integers and bools are summed in 64 bits: the cast that NumPy makes silently."""
    if dtype is None:
        dtype = {"b": np.int64, "i": np.int64, "u": np.uint64}.get(a.dtype.kind, a.dtype)
    return cast(a, np.dtype(dtype))


def accumulating(row: str):
    """``np.sum`` and ``np.prod``."""

    def reduction(a, axis=None, dtype=None, keepdims=False, initial=None):
        a = widened(lift(a), dtype)
        if a.dtype == bool:  # only with dtype=bool
            return reduce("any" if row == "sum" else "all", a, axis, keepdims)
        result = reduce(row, a, axis, keepdims)
        if initial is None:
            return result
        return result + result.dtype.type(initial) if row == "sum" else result * result.dtype.type(initial)

    return reduction


def selecting(row: str, combine):
    """``np.max`` and ``np.min``; of an axis of length 0 only with ``initial``."""

    def reduction(a, axis=None, keepdims=False, initial=None):
        a = lift(a)
        empty = any(a.shape[i] == 0 for i in axes_of(axis, a.ndim))
        if initial is not None and empty:
            return np.full_like(reduce("any", truth(a), axis, keepdims), initial, dtype=a.dtype)
        rows = {"max": "any", "min": "all"} if a.dtype == bool and not empty else {}
        result = reduce(rows.get(row, row), a, axis, keepdims)
        return result if initial is None else combine(result, a.dtype.type(initial))

    return reduction


def logical(row: str):
    return lambda a, axis=None, keepdims=False: reduce(row, truth(lift(a)), axis, keepdims)


def arg(row: str):
    def reduction(a, axis=None, keepdims=False):
        a = lift(a)
        if axis is not None:
            return emit(row, a, axis=normalize_axis_index(axis, a.ndim), keepdims=bool(keepdims))
        flat = emit(row, np.ravel(a), axis=0)
        return np.reshape(flat, (1,) * a.ndim) if keepdims else flat

    return reduction


def mean(a, axis=None, dtype=None, keepdims=False):
    a = lift(a)
    if dtype is None and a.dtype.kind in "biu":
        dtype = np.float64
    return reduce("mean", a if dtype is None else cast(a, np.dtype(dtype)), axis, keepdims)


def divided(total, count):
    """total / count in total's dtype, as NumPy's mean and var round it: through f64 where count is not exact."""
    if total.dtype.type(count) == count:
        return total / total.dtype.type(count)
    return cast(cast(total, np.float64) / np.float64(count), total.dtype)


def var(a, axis=None, dtype=None, ddof=0, keepdims=False):
    a = lift(a)
    if dtype is None and a.dtype.kind in "biu":
        dtype = np.float64
    a = a if dtype is None else cast(a, np.dtype(dtype))
    count = prod(a.shape[i] for i in axes_of(axis, a.ndim))
    deviation = a - divided(np.sum(a, axis=axis, keepdims=True), count)
    return divided(np.sum(deviation * deviation, axis=axis, keepdims=keepdims), max(count - ddof, 0))


def std(a, axis=None, dtype=None, ddof=0, keepdims=False):
    return np.sqrt(var(a, axis, dtype, ddof, keepdims))


def ptp(a, axis=None, keepdims=False):
    return np.max(a, axis=axis, keepdims=keepdims) - np.min(a, axis=axis, keepdims=keepdims)


def count_nonzero(a, axis=None, keepdims=False):
    return np.sum(truth(lift(a)), axis=axis, keepdims=keepdims)


def average(a, axis=None, weights=None, returned=False, keepdims=False):
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

    def ignoring(a, axis=None, dtype=None, keepdims=False):
        a = lift(a)
        a = np.where(np.isnan(a), a.dtype.type(filler), a) if a.dtype.kind == "f" else a
        return reduction(a, axis=axis, dtype=dtype, keepdims=keepdims)

    return ignoring


def nan_select(reduction, filler):
    """``np.nanmax`` and ``np.nanmin``: NaN only where there is nothing else."""

    def ignoring(a, axis=None, keepdims=False):
        a = lift(a)
        if a.dtype.kind != "f":
            return reduction(a, axis=axis, keepdims=keepdims)
        nothing = np.all(np.isnan(a), axis=axis, keepdims=keepdims)
        return np.where(nothing, np.nan, reduction(np.where(np.isnan(a), filler, a), axis=axis, keepdims=keepdims))

    return ignoring


# ---- element by element --------------------------------------------------------------------------------------------


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


def clip(a, a_min=None, a_max=None, min=None, max=None):
    """Two nodes where that gives NumPy's bits.

    With bounds that are numbers NumPy keeps x where it equals a bound, so the sign of a zero: maximum, which for a tie
    takes its second operand (its first in f16), does the same with a traced bound, and ``where`` with a bound 0.0.
    """
    a = lift(a)
    low, high = (a_min if min is None else min), (a_max if max is None else max)
    if a.dtype.kind in "iu":  # a Python int beyond the dtype bounds nothing
        limits = np.iinfo(a.dtype)
        low = None if type(low) is int and low <= limits.min else low
        high = None if type(high) is int and high >= limits.max else high
    if low is None or high is None:
        return a if low is high else np.minimum(a, high) if low is None else np.maximum(a, low)
    dtype = np.clip(np.zeros(0, a.dtype), *(b if is_weak(b) else np.zeros(0, b.dtype) for b in (low, high))).dtype
    a = cast(a, dtype)
    for bound, outside, limit in ((low, np.less, np.maximum), (high, np.greater, np.minimum)):
        bound = bound if isinstance(bound, Traced) else np.asarray(bound, dtype)[()]
        if np.ndim(bound) or np.ndim(low) or np.ndim(high) or dtype.kind != "f":
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


# ---- products ------------------------------------------------------------------------------------------------------


def dot(a, b):
    a, b = lift(a), lift(b)
    if a.ndim == 0 or b.ndim == 0:
        return a * b
    return np.matmul(a, b) if b.ndim == 1 or a.ndim <= 2 and b.ndim <= 2 else tensordot(a, b, (-1, -2))


def inner(a, b):
    a, b = lift(a), lift(b)
    return a * b if a.ndim == 0 or b.ndim == 0 else tensordot(a, b, (-1, -1))


def tensordot(a, b, axes=2):
    a, b = lift(a), lift(b)
    left, right = (range(a.ndim - axes, a.ndim), range(axes)) if isinstance(axes, int) else axes
    left, right = normalize_each(left, a.ndim), normalize_each(right, b.ndim)
    if [a.shape[i] for i in left] != [b.shape[i] for i in right]:
        fail("shape-mismatch for sum", f"the axes summed over are {left} of {a._type} and {right} of {b._type}")
    rows = [i for i in range(a.ndim) if i not in left]
    columns = [i for i in range(b.ndim) if i not in right]
    length = prod(a.shape[i] for i in left)
    matrix = np.matmul(np.reshape(np.transpose(a, (*rows, *left)), (prod(a.shape[i] for i in rows), length)),
                       np.reshape(np.transpose(b, (*right, *columns)), (length, prod(b.shape[i] for i in columns))))
    return np.reshape(matrix, tuple(a.shape[i] for i in rows) + tuple(b.shape[i] for i in columns))


def normalize_each(axes, rank: int) -> tuple[int, ...]:
    """In the order given: it pairs the axes of one operand with those of the other."""
    return normalize_axis_tuple(axes if np.iterable(axes) else (axes,), rank)


def einsum(subscripts, *operands, optimize=False):
    """Two operands at a time, from the left: transposes and reshapes around one batched matmul."""
    if not isinstance(subscripts, str) or "." in subscripts:
        fail("np.einsum is known to the tracer with subscripts like 'ij,jk->ik'", "write the axes out")
    inputs, arrow, result = subscripts.replace(" ", "").partition("->")
    terms = inputs.split(",")
    if not arrow:
        result = "".join(sorted(label for label in set(inputs) - {","} if inputs.count(label) == 1))
    values = [lift(value) for value in operands]
    if len(terms) != len(values) or any(len(term) != value.ndim for term, value in zip(terms, values)):
        fail(f"np.einsum('{subscripts}') does not fit operands {', '.join(str(v._type) for v in values)}")
    if any(len(set(term)) < len(term) for term in (*terms, result)):
        fail("a label twice in one einsum operand (a diagonal) is not known to the tracer", "use np.diag")
    dtype = np.result_type(*(value.dtype for value in values))
    value, labels = cast(values[0], dtype), terms[0]
    for place, (other, term) in enumerate(zip(values[1:], terms[1:])):
        needed = set("".join(terms[place + 2:]) + result)
        value, labels = contract(value, labels, cast(other, dtype), term, needed)
    value, labels = sum_out(value, labels, set(result))
    return value if labels == result else np.transpose(value, [labels.index(label) for label in result])


def sum_out(value: Traced, labels: str, needed: set) -> tuple[Traced, str]:
    gone = tuple(i for i, label in enumerate(labels) if label not in needed)
    # the dtype is given because einsum, unlike sum, does not widen small integers
    value = np.sum(value, axis=gone, dtype=value.dtype) if gone else value
    return value, "".join(label for label in labels if label in needed)


def contract(a: Traced, a_labels: str, b: Traced, b_labels: str, needed: set) -> tuple[Traced, str]:
    a, a_labels = sum_out(a, a_labels, needed | set(b_labels))
    b, b_labels = sum_out(b, b_labels, needed | set(a_labels))
    both = [label for label in a_labels if label in b_labels]
    batch, shared = [k for k in both if k in needed], [k for k in both if k not in needed]
    rows, columns = [k for k in a_labels if k not in both], [k for k in b_labels if k not in both]
    size = {**dict(zip(a_labels, a.shape)), **dict(zip(b_labels, b.shape))}

    def arrange(value, labels, *groups):
        value = np.transpose(value, [labels.index(label) for group in groups for label in group])
        return np.reshape(value, tuple(size[k] for k in batch) + tuple(prod(size[k] for k in g) for g in groups[1:]))

    product = np.matmul(arrange(a, a_labels, batch, rows, shared), arrange(b, b_labels, batch, shared, columns))
    labels = batch + rows + columns
    return np.reshape(product, tuple(size[k] for k in labels)), "".join(labels)


def norm(x, ord=None, axis=None, keepdims=False):
    """Vector norms: the Euclidean one, 1 and inf."""
    x = lift(x)
    x = cast(x, np.float64) if x.dtype.kind != "f" else x
    if ord is None or ord == 2 and (x.ndim == 1 or isinstance(axis, int)):
        return np.sqrt(np.sum(x * x, axis=axis, keepdims=keepdims))
    if (x.ndim == 1 or isinstance(axis, int)) and ord in (1, np.inf):
        return np.sum(abs(x), axis=axis, keepdims=keepdims) if ord == 1 else np.max(
            abs(x), axis=axis, keepdims=keepdims, initial=0)
    fail(f"np.linalg.norm with ord={ord!r} is not known to the tracer", "vector norms None, 1, 2 and inf are")


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


MATH = {  # name in NumPy -> our version
    "sum": accumulating("sum"), "prod": accumulating("prod"), "mean": mean,
    "max": selecting("max", np.maximum), "min": selecting("min", np.minimum),
    "amax": selecting("max", np.maximum), "amin": selecting("min", np.minimum),
    "any": logical("any"), "all": logical("all"), "argmax": arg("argmax"), "argmin": arg("argmin"),
    "var": var, "std": std, "ptp": ptp, "count_nonzero": count_nonzero, "average": average,
    "cumsum": cumsum, "sort": sort, "nansum": without_nan(np.sum, 0), "nanprod": without_nan(np.prod, 1),
    "nanmax": nan_select(np.max, -np.inf), "nanmin": nan_select(np.min, np.inf),
    "where": where, "clip": clip, "nan_to_num": nan_to_num, "round": round_, "around": round_, "diff": diff,
    "tril": triangle(lambda shape, k: np.tri(*shape, k=k, dtype=bool), True),
    "triu": triangle(lambda shape, k: np.tri(*shape, k=k - 1, dtype=bool), False),
    "isclose": isclose, "allclose": lambda *args, **kwargs: np.all(isclose(*args, **kwargs)),
    "array_equal": array_equal, "select": select,
    "dot": dot, "inner": inner, "outer": lambda a, b: np.ravel(lift(a))[:, None] * np.ravel(lift(b))[None, :],
    "vdot": lambda a, b: dot(np.ravel(lift(a)), np.ravel(lift(b))),
    "tensordot": tensordot, "einsum": einsum, "linalg.norm": norm,
    "trace": lambda a, offset=0: np.sum(np.diag(a, offset)),
    "astype": lambda x, dtype, copy=True: x.astype(dtype),
    "real": lambda val: val, "imag": lambda val: np.zeros_like(val), "fix": lambda x: np.trunc(x),
    "shape": lambda a: a.shape, "ndim": lambda a: a.ndim,
    "size": lambda a, axis=None: a.size if axis is None else a.shape[axis],
    "iscomplexobj": lambda x: False, "isrealobj": lambda x: True,
    "result_type": lambda *values: np.result_type(*as_dtypes(values)),
    "can_cast": lambda from_, to, casting="safe": np.can_cast(*as_dtypes((from_, to)), casting),
    **{name: data_dependent(name) for name in (
        "nonzero", "flatnonzero", "argwhere", "unique", "extract", "compress", "bincount", "histogram",
        "trim_zeros", "union1d", "intersect1d", "setdiff1d")},
    **{name: in_place(name) for name in ("copyto", "put", "place", "putmask", "fill_diagonal", "put_along_axis")},
}  # fmt: skip
