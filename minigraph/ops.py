"""The op table: one row is everything that minigraph knows about an operation.

Folding, running, compiling, costing and drawing all ask this table and nothing else. To add an operation,
add one line to ``ROWS``; the tests then attack every claim that the line makes.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

import numpy as np

from . import formats, sparse
from .errors import CheckFailed, GraphError, nearest
from .types import DTYPES, TOKEN, Type, broadcast, check_size


class Kind(Enum):
    """What an operation is allowed to undergo follows from its kind, and is written down nowhere else."""

    INPUT = "input"
    CONST = "const"
    ELEMENTWISE = "elementwise"
    REDUCTION = "reduction"
    CONTRACTION = "contraction"
    LAYOUT = "layout"
    PACKING = "packing"  # numbers to packed blocks and back
    RANDOM = "random"
    EFFECT = "effect"


PURE = {Kind.ELEMENTWISE, Kind.REDUCTION, Kind.CONTRACTION, Kind.LAYOUT, Kind.PACKING}
REQUIRED = object()  # an attribute without a default


class Attrs(tuple):
    """Attributes: a sorted tuple of (name, value) pairs, so that it is hashable and compares by value.

    Values are ints, bools, strings and tuples of ints. Floats are operands, not attributes: 0.0 == -0.0.
    """

    __slots__ = ()

    def __new__(cls, **items):
        return super().__new__(cls, sorted(items.items()))

    def __getattr__(self, name):
        for key, value in self:
            if key == name:
                return value
        raise AttributeError(name)

    def __getnewargs_ex__(self):
        return (), dict(self)


@dataclass(frozen=True, slots=True, eq=False)  # a row is itself: hashing one must be quick
class Op:
    """One row. ``numpy(*arrays, **attrs)`` is the meaning; ``infer(types, attrs)`` its type rule."""

    name: str
    kind: Kind
    arity: tuple[int, float]  # least and most operands
    infer: Callable[[tuple[Type, ...], Attrs], Type]
    numpy: Callable
    expr: str | None = None  # dtype-free source for generated kernels; None: no generated kernel
    flops: Callable[[tuple[Type, ...], Attrs, Type], int] = lambda types, attrs, result: 0
    attrs: tuple[tuple[str, str, object], ...] = ()  # (name, kind of value, default)
    cost: int = 4  # relative, per element; what a rewrite must lower
    commutative: bool = False  # to the bit, NaN payloads aside
    right_identity: tuple[tuple[str, str], ...] = ()  # domain -> literal e with op(x, e) = x to the bit
    idempotent: bool = False  # unary: f(f(x)) = f(x); binary: f(x, x) = x
    involution: bool = False  # f(f(x)) = x
    ulp: int = 0  # allowed gap between executors; 0: the same bits everywhere

    @property
    def foldable(self) -> bool:
        """May it run at compile time? Only what depends on its operands and nothing else."""
        return self.kind in PURE

    @property
    def mergeable(self) -> bool:
        """May two equal ones become one?"""
        return self.kind in PURE or self.kind is Kind.CONST

    @property
    def removable(self) -> bool:
        """May it go when nobody uses it? A pass never removes an input: that is the graph's signature."""
        return self.kind not in (Kind.INPUT, Kind.EFFECT)


# ---- type rules -------------------------------------------------------------------------------------------

FLOAT = ("float",)
INT = ("signed", "unsigned")
NUMBER = FLOAT + INT
BITS = INT + ("bool",)
ANY = NUMBER + ("bool",)


def need(condition: bool, rule: str, hint: str = "") -> None:
    if not condition:
        raise GraphError(rule, hint=hint)


def need_domain(type: Type, domains: tuple[str, ...]) -> None:
    need(type.domain in domains, f"an operand is {type}; this takes {' or '.join(domains)}",
         "insert a cast" if type.domain != TOKEN else "a token is only for the next effect")


def same_dtype(types: tuple[Type, ...]) -> str:
    if any(type.dtype != types[0].dtype for type in types):
        raise GraphError(f"operands have different dtypes: {', '.join(map(str, types))}",
                         hint="casts are explicit: insert a cast")
    return types[0].dtype


def elementwise(domains=NUMBER, to: str | None = None):
    """All operands of one dtype, shapes broadcast; the result has that dtype, or ``to``."""

    def infer(types, attrs):
        dtype = same_dtype(types)
        need_domain(types[0], domains)
        shape = broadcast(*(type.shape for type in types)) if len(types) > 1 else types[0].shape
        return Type(to or dtype, shape)

    return infer


def infer_cast(types, attrs):
    need_domain(types[0], ANY)
    return Type(attrs.dtype, types[0].shape)


def infer_where(types, attrs):
    need(types[0].dtype == "bool", f"where's condition is {types[0]}, not bool")
    dtype = same_dtype(types[1:])
    need_domain(types[1], ANY)
    return Type(dtype, broadcast(*(type.shape for type in types)))


def infer_quantize(types, attrs):
    same_dtype(types)
    need_domain(types[0], FLOAT)
    need(attrs.dtype[0] in "iu", f"quantize makes integers, not {attrs.dtype}")
    return Type(attrs.dtype, broadcast(types[0].shape, types[1].shape))


def infer_dequantize(types, attrs):
    need_domain(types[0], INT)
    need_domain(types[1], FLOAT)
    return Type(types[1].dtype, broadcast(types[0].shape, types[1].shape))


def normal_axis(axis: int, rank: int) -> int:
    need(-rank <= axis < rank, f"axis {axis} is out of range for rank {rank}")
    return axis % rank


def normal_axes(axes: tuple[int, ...], rank: int) -> tuple[int, ...]:
    normal = tuple(normal_axis(axis, rank) for axis in axes)
    need(len(set(normal)) == len(normal), f"axes {list(axes)} name one axis twice")
    return normal


def reduction(domains=NUMBER, to: str | None = None, empty_ok: bool = False):
    """Reduce over ``axis``. ``empty_ok``: the operation has an identity, so an axis of length 0 is fine."""

    def infer(types, attrs):
        need_domain(types[0], domains)
        shape = types[0].shape
        axes = attrs.axis if isinstance(attrs.axis, tuple) else (attrs.axis,)
        axes = normal_axes(axes, len(shape))
        need(empty_ok or all(shape[axis] for axis in axes),
             f"{types[0]} is empty along axis {list(axes)}: this reduction has no value for nothing")
        kept = tuple(1 if axis in axes else dim for axis, dim in enumerate(shape)
                     if attrs.keepdims or axis not in axes)
        return Type(to or types[0].dtype, kept)

    return infer


def along_axis(domains=ANY):
    """One array in, the same type out, worked along ``axis``."""

    def infer(types, attrs):
        need_domain(types[0], domains)
        normal_axis(attrs.axis, len(types[0].shape))
        return types[0]

    return infer


def swapped(shape: tuple[int, ...]) -> tuple[int, ...]:
    need(len(shape) >= 2, "only an operand of rank 2 or more can be transposed")
    return shape[:-2] + (shape[-1], shape[-2])


def infer_matmul(types, attrs):
    dtype = same_dtype(types)
    need_domain(types[0], NUMBER)
    a, b = types[0].shape, types[1].shape
    need(len(a) >= 1 and len(b) >= 1, "matmul takes no 0-d operand", "mul scales by a number")
    a = swapped(a) if attrs.transpose_a else a
    b = swapped(b) if attrs.transpose_b else b
    a2, b2 = a if len(a) > 1 else (1, *a), b if len(b) > 1 else (*b, 1)
    need(a2[-1] == b2[-2], f"matmul of {list(a)} and {list(b)}: inner dimensions are {a2[-1]} and {b2[-2]}")
    batch = broadcast(a2[:-2], b2[:-2])
    return Type(dtype, batch + a2[-2:-1] * (len(a) > 1) + b2[-1:] * (len(b) > 1))


def infer_conv2d(types, attrs):
    dtype = same_dtype(types)
    need_domain(types[0], FLOAT)
    (x, w) = (type.shape for type in types)
    need(len(x) == 4 and len(w) == 4, "conv2d takes x [n, c, h, w] and kernel [out, c/groups, kh, kw]")
    need(len(attrs.stride) == 2 and min(attrs.stride) >= 1, "stride is two positive numbers")
    need(len(attrs.padding) == 4 and min(attrs.padding) >= 0, "padding is top, bottom, left, right")
    need(attrs.groups >= 1 and x[1] == w[1] * attrs.groups and w[0] % attrs.groups == 0,
         f"{x[1]} channels do not fit kernel {list(w)} with {attrs.groups} groups")
    top, bottom, left, right = attrs.padding
    size = (x[2] + top + bottom - w[2], x[3] + left + right - w[3])
    need(min(size) >= 0 and min(w[2:]) >= 1, f"kernel {list(w[2:])} does not fit the padded image")
    return Type(dtype, (x[0], w[0], *(room // step + 1 for room, step in zip(size, attrs.stride))))


def infer_reshape(types, attrs):
    need_domain(types[0], ANY)
    need(min(attrs.shape, default=0) >= 0, "a shape has no negative dimension")
    result = Type(types[0].dtype, attrs.shape)
    need(result.size == types[0].size, f"{types[0]} has {types[0].size} elements, {list(attrs.shape)} has {result.size}")
    return result


def infer_transpose(types, attrs):
    need_domain(types[0], ANY)
    rank = len(types[0].shape)
    need(sorted(attrs.perm) == list(range(rank)), f"perm {list(attrs.perm)} is not a permutation of {rank} axes")
    return Type(types[0].dtype, tuple(types[0].shape[axis] for axis in attrs.perm))


def infer_broadcast_to(types, attrs):
    need_domain(types[0], ANY)
    need(min(attrs.shape, default=0) >= 0, "a shape has no negative dimension")
    need(len(attrs.shape) >= len(types[0].shape) and broadcast(types[0].shape, attrs.shape) == attrs.shape,
         f"{types[0]} does not broadcast to {list(attrs.shape)}")
    return Type(types[0].dtype, attrs.shape)


def infer_concat(types, attrs):
    dtype = same_dtype(types)
    need_domain(types[0], ANY)
    axis = normal_axis(attrs.axis, len(types[0].shape))
    rests = {type.shape[:axis] + type.shape[axis + 1:] for type in types}
    need(len(rests) == 1 and len({len(type.shape) for type in types}) == 1,
         f"concat along axis {axis} of {', '.join(map(str, types))}: the other axes differ")
    total = sum(type.shape[axis] for type in types)
    return Type(dtype, types[0].shape[:axis] + (total,) + types[0].shape[axis + 1:])


def slice_ranges(attrs) -> list[range]:
    """The indices that a slice takes, one range an axis; ``step=[]`` is all ones."""
    steps = attrs.step or (1,) * len(attrs.start)
    return [range(*one) for one in zip(attrs.start, attrs.stop, steps)]


def infer_slice(types, attrs):
    need_domain(types[0], ANY)
    shape = types[0].shape
    need(len(attrs.start) == len(attrs.stop) == len(shape) and len(attrs.step) in (0, len(shape)),
         f"slice of {types[0]} needs {len(shape)} starts, stops and steps")
    need(0 not in attrs.step, "a step is never 0")
    ranges = slice_ranges(attrs)
    for axis, (taken, dim) in enumerate(zip(ranges, shape)):
        need(not taken or (0 <= min(taken[0], taken[-1]) and max(taken[0], taken[-1]) < dim),
             f"slice takes {taken} of axis {axis}, which has {dim}",
             "starts and stops are Python's range(start, stop, step); negative ones do not wrap")
    return Type(types[0].dtype, tuple(map(len, ranges)))


def infer_pad(types, attrs):
    dtype = same_dtype(types)
    need_domain(types[0], ANY)
    need(types[1].shape == (), f"pad's value is 0-d, not {types[1]}")
    need(len(attrs.low) == len(attrs.high) == len(types[0].shape) and min(attrs.low + attrs.high, default=0) >= 0,
         f"pad of {types[0]} needs {len(types[0].shape)} lows and highs, none negative")
    return Type(dtype, tuple(map(sum, zip(attrs.low, types[0].shape, attrs.high))))


def infer_take(types, attrs):
    need_domain(types[0], ANY)
    need_domain(types[1], INT)
    axis = normal_axis(attrs.axis, len(types[0].shape))
    return Type(types[0].dtype, types[0].shape[:axis] + types[1].shape + types[0].shape[axis + 1:])


def infer_update_slice(types, attrs):
    dtype = same_dtype(types[:2])
    need_domain(types[0], ANY)
    need_domain(types[2], INT)
    need(types[2].shape == (), f"update_slice's start is 0-d, not {types[2]}")
    x, update = types[0].shape, types[1].shape
    axis = normal_axis(attrs.axis, len(x))
    need(len(update) == len(x) and update[axis] <= x[axis]
         and all(u == d for i, (u, d) in enumerate(zip(update, x)) if i != axis),
         f"an update {types[1]} does not fit into {types[0]} along axis {axis}")
    return Type(dtype, x)


def format_of(name: str) -> formats.Format:
    if name not in formats.FORMATS:
        raise GraphError(f"unknown format '{name}'", hint=nearest(name, formats.FORMATS) or "formats are " + " ".join(formats.FORMATS))
    return formats.FORMATS[name]


def infer_pack(types, attrs):
    format, shape = format_of(attrs.format), types[0].shape
    need(types[0].dtype == "f32", f"pack takes f32, not {types[0]}", "insert a cast")
    need(len(shape) >= 1 + (format.rows > 1) and shape[-1] % format.values == 0 and (format.rows == 1 or shape[-2] % format.rows == 0),
         f"{types[0]} is not whole blocks of {format.values} along the last axis" + f", in tiles of {format.rows} rows" * (format.rows > 1))
    return Type("u8", format.packed_shape(shape))


def infer_unpack(types, attrs):
    format, shape = format_of(attrs.format), types[0].shape
    need(types[0].dtype == "u8", f"packed numbers are bytes, u8, not {types[0]}")
    need(len(shape) >= 1 + (format.rows > 1) and shape[-1] % (format.nbytes * format.rows) == 0,
         f"{types[0]} is not whole blocks of {format.nbytes * format.rows} bytes along the last axis")
    return Type("f32", format.shape(shape))


def infer_packed_matmul(types, attrs):
    x, weights = types[0], infer_unpack(types[1:], attrs)
    need(x.dtype == "f32" and len(x.shape) >= 1, f"packed_matmul takes f32[..., K], not {x}")
    need(len(weights.shape) == 2 and x.shape[-1] == weights.shape[-1],
         f"packed_matmul of {list(x.shape)} and packed rows {list(weights.shape)}: the rows are not as long")
    return Type("f32", (*x.shape[:-1], weights.shape[0]))


def infer_sparse_matmul(types, attrs):
    x, values, indices = types
    tiles, half = values.shape[:2] if len(values.shape) == 3 else (0, 0)
    need(values == Type("f32", (tiles, half, sparse.TILE)) and half % (sparse.WORD // 2) == 0
         and indices == Type("u32", (tiles, half * 2 // sparse.WORD, sparse.TILE)),
         f"a 2:4 matrix is values f32[N/16, K/2, 16] and indices u32[N/16, K/32, 16], not {values} and {indices}")
    need(x.dtype == "f32" and x.shape[-1:] == (half * 2,), f"sparse_matmul of {x} and rows of {half * 2}: it takes f32[..., {half * 2}]")
    return Type("f32", (*x.shape[:-1], tiles * sparse.TILE))


def infer_block_matmul(types, attrs):
    x, values, indices, starts = types
    count, columns = values.shape[:2] if len(values.shape) == 3 else (0, 0)
    tiles = starts.shape[0] - 1 if starts.shape and starts.shape[0] else 0
    need(values == Type("f32", (count, columns, sparse.TILE)) and columns and indices == Type("i32", (count,))
         and starts == Type("i32", (tiles + 1,)),
         f"blocks are values f32[B, columns, 16], indices i32[B] and starts i32[N/16 + 1], not {values}, {indices} and {starts}")
    need(x.dtype == "f32" and len(x.shape) >= 1 and x.shape[-1] % columns == 0,
         f"block_matmul takes f32[..., K] of whole blocks of {columns}, not {x}")
    return Type("f32", (*x.shape[:-1], tiles * sparse.TILE))


def infer_random(types, attrs):
    need(attrs.dtype in ("f32", "f64"), f"random draws are f32 or f64, not {attrs.dtype}")
    if attrs.dist not in DISTRIBUTIONS:
        raise GraphError(f"unknown distribution '{attrs.dist}'", hint=nearest(attrs.dist, DISTRIBUTIONS))
    need(min(attrs.shape, default=0) >= 0, "a shape has no negative dimension")
    need(attrs.site >= 0, "a site is a number from 0 up")
    return Type(attrs.dtype, attrs.shape)


def effect(operands: int, domains=ANY):
    """``operands`` values, then the token of the effect before; yields a token of its own."""

    def infer(types, attrs):
        for type in types[:operands]:
            need_domain(type, domains)
        same_dtype(types[:operands])
        broadcast(*(type.shape for type in types[:operands]))
        need(all(type.dtype == TOKEN for type in types[operands:]),
             "the last operand of an effect is the token of the effect before it")
        return Type(TOKEN)

    return infer


def infer_nothing(types, attrs):
    raise GraphError("inputs and constants carry their own type")


# ---- meanings that NumPy does not have under one name ---------------------------------------------------------


def solid(array):
    """A copy where an axis is repeated by a zero stride, else the array itself.

    np.maximum(0.0, -0.0) depends on whether an operand is broadcast (NumPy swaps the operands then);
    after this a value's bits depend on values alone, however the array came about.
    """
    array = np.asarray(array)
    return array.copy() if 0 in array.strides and array.size > 1 else array


def maximum(a, b):
    return np.maximum(solid(a), solid(b))


def minimum(a, b):
    return np.minimum(solid(a), solid(b))


_erf = np.frompyfunc(math.erf, 1, 1)


def erf(x):
    """Correct in double precision, then rounded: NumPy itself has no erf."""
    return np.asarray(_erf(np.asarray(x, np.float64)), np.float64).astype(x.dtype)


def cast(x, dtype):
    """As NumPy, except from float to integer, where NumPy leaves open what becomes of a number that does not fit."""
    x, kind = np.asarray(x), DTYPES[dtype]
    return float_to_int(x, kind) if x.dtype.kind == "f" and kind.kind in "iu" else x.astype(kind)


def float_to_int(x, kind):
    """Toward zero, clipped to the integer's range, NaN is 0.

    In C what does not fit is undefined, and in NumPy it depends on strides: SIMD loops and plain ones differ.
    """
    info = np.iinfo(kind)
    # the ends as floats: 2**31 is one, 2**31 - 1 in float32 is not; in float16 the largest ones are infinite
    low, high = x.dtype.type(float(info.min)), x.dtype.type(float(info.max // 2 + 1)) * x.dtype.type(2)
    fits = (x > low) & (x < high)
    result = np.where(fits, x, 0).astype(kind)
    return np.where(x >= high, kind.type(info.max), np.where(x <= low, kind.type(info.min), result))


def quantize(x, scale, dtype):
    """round(x / scale), half to even, clipped to the integer's range; NaN becomes 0."""
    return float_to_int(np.rint(np.asarray(x / scale, np.float64)), DTYPES[dtype])


def dequantize(q, scale):
    return q.astype(scale.dtype) * scale


def reduce_with(ufunc):
    # dtype is given because NumPy would widen small integers; the tracer says so with a cast instead
    return lambda x, axis, keepdims: np.asarray(
        ufunc.reduce(x, axis=axis, keepdims=keepdims, dtype=x.dtype), x.dtype)


def mean(x, axis, keepdims):
    if x.size == 0:  # NumPy's mean of nothing is NaN too, but it warns
        return np.asarray(np.add.reduce(x, axis=axis, keepdims=keepdims) / x.dtype.type(0))
    return np.mean(x, axis=axis, keepdims=keepdims)


def matmul(a, b, transpose_a=False, transpose_b=False):
    return np.matmul(np.swapaxes(a, -1, -2) if transpose_a else a, np.swapaxes(b, -1, -2) if transpose_b else b)


def conv2d(x, w, stride, padding, groups):
    """Cross-correlation, NCHW by OIHW, as a matmul over the windows (im2col)."""
    top, bottom, left, right = padding
    x = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], axis=(2, 3))
    windows = windows[:, :, ::stride[0], ::stride[1]]  # n, c, oh, ow, kh, kw
    n, c, oh, ow, kh, kw = windows.shape
    columns = windows.reshape(n, groups, c // groups, oh, ow, kh, kw).transpose(0, 1, 3, 4, 2, 5, 6)
    columns = columns.reshape(n, groups, oh * ow, (c // groups) * kh * kw)
    kernel = w.reshape(groups, w.shape[0] // groups, (c // groups) * kh * kw).swapaxes(-1, -2)
    return np.matmul(columns, kernel).transpose(0, 1, 3, 2).reshape(n, w.shape[0], oh, ow)


def slice_(x, start, stop, step):
    """Python's range on every axis; a stop below 0 with a negative step means down to the first element."""
    return x[slice_index(start, stop, step)]


@functools.lru_cache(maxsize=8192)
def slice_index(start, stop, step) -> tuple[slice, ...]:
    steps = step or (1,) * len(start)
    return tuple(slice(a, b if b >= 0 else None, s) if len(range(a, b, s)) else slice(0, 0)
                 for a, b, s in zip(start, stop, steps))


def pad(x, value, low, high):
    if not low:  # np.pad refuses 0-d arrays
        return np.array(x)
    return np.pad(x, tuple(zip(low, high)), constant_values=value)


def take(x, indices, axis):
    """NumPy's take: -1 is the last; an index out of range is an error, never clamped."""
    return np.take(x, indices, axis=axis, mode="raise")


def update_slice(x, update, start, axis, out=None):
    """x with ``update`` written at ``start`` along ``axis``: a copy, or in place where ``out`` is x."""
    start, length = int(start), update.shape[axis]
    if not 0 <= start <= x.shape[axis] - length:
        raise IndexError(f"update_slice writes {length} at position {start} of axis {axis}, which has {x.shape[axis]}")
    result = x.copy() if out is None else out
    result[(slice(None),) * (axis % x.ndim) + (slice(start, start + length),)] = update
    return result


DISTRIBUTIONS = ("uniform", "normal")


def random(seed, shape, dtype, dist, site):
    """A draw is a function of (run seed, site): deleting or reordering draws changes no other.

    Philox is counter-based (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
    """
    generator = np.random.Generator(np.random.Philox(np.random.SeedSequence((seed, site))))
    draw = generator.random if dist == "uniform" else generator.standard_normal
    return np.asarray(draw(shape, DTYPES[dtype]))


def print_(x, *after, label):
    print(f"{label}: {x}" if label else x)


def assert_close(x, y, *after, digits):
    if not np.allclose(x, y, rtol=10.0**-digits, atol=10.0**-digits, equal_nan=True):
        worst = np.max(np.abs(np.asarray(x, np.float64) - np.asarray(y, np.float64)))
        raise CheckFailed(f"assert_close: the values differ by up to {worst:.3g}, more than {digits} digits allow")


def assert_finite(x, *after):
    if not np.isfinite(x).all():
        raise CheckFailed("assert_finite: the array has infs or NaNs")


def unreachable(*arrays, **attrs):
    raise AssertionError("inputs and constants are not computed")


# ---- flops ----------------------------------------------------------------------------------------------------


def per_element(types, attrs, result):
    return result.size


def per_operand_element(types, attrs, result):
    return types[0].size


def matmul_flops(types, attrs, result):
    a = types[0].shape
    return 2 * result.size * (a[-2] if attrs.transpose_a else a[-1])


def packed_matmul_flops(types, attrs, result):
    return 2 * result.size * types[0].shape[-1]


def sparse_matmul_flops(types, attrs, result):
    return 2 * result.size * types[1].shape[1]


def block_matmul_flops(types, attrs, result):
    rows = types[0].size // types[0].shape[-1] if types[0].size else 0
    return 2 * rows * types[1].size


def conv2d_flops(types, attrs, result):
    return 2 * result.size * math.prod(types[1].shape[1:])


# ---- the table --------------------------------------------------------------------------------------------------


def map_op(name, arity, numpy, expr, domains=NUMBER, to=None, infer=None, **facts) -> Op:
    return Op(name, Kind.ELEMENTWISE, (arity, arity), infer or elementwise(domains, to), numpy, expr,
              per_element, **facts)


def reduce_op(name, numpy, domains=NUMBER, to=None, empty_ok=False, axis="ints", **facts) -> Op:
    attrs = (("axis", axis, REQUIRED), ("keepdims", "bool", False))
    return Op(name, Kind.REDUCTION, (1, 1), reduction(domains, to, empty_ok), numpy,
              flops=per_operand_element, attrs=attrs, **facts)


def layout_op(name, arity, numpy, infer, *attrs, **facts) -> Op:
    return Op(name, Kind.LAYOUT, arity, infer, numpy, attrs=attrs, cost=1, **facts)


def effect_op(name, operands, numpy, *attrs, domains=ANY) -> Op:
    return Op(name, Kind.EFFECT, (operands, operands + 1), effect(operands, domains), numpy, attrs=attrs)


ZERO, ONE, ONES = "0", "1", "-1"
# x + 0.0 is not x for x = -0.0, but x + (-0.0) is x for every x; x - 0.0 is x too
ADD_ID = (("float", "-0.0"), ("signed", ZERO), ("unsigned", ZERO))
SUB_ID = (("float", "0.0"), ("signed", ZERO), ("unsigned", ZERO))
ONE_ID = (("float", ONE), ("signed", ONE), ("unsigned", ONE))
INT_ONE = (("signed", ONE), ("unsigned", ONE))
INT_ZERO = (("signed", ZERO), ("unsigned", ZERO))
OR_ID = (*INT_ZERO, ("bool", "false"))
AND_ID = (("signed", ONES), ("bool", "true"))

ROWS = (
    Op("input", Kind.INPUT, (0, 0), infer_nothing, unreachable),
    Op("const", Kind.CONST, (0, 0), infer_nothing, unreachable),
    # arithmetic
    map_op("add", 2, np.add, "{0} + {1}", commutative=True, right_identity=ADD_ID),
    map_op("sub", 2, np.subtract, "{0} - {1}", right_identity=SUB_ID),
    map_op("mul", 2, np.multiply, "{0} * {1}", commutative=True, right_identity=ONE_ID),
    map_op("div", 2, np.divide, "{0} / {1}", FLOAT, cost=16, right_identity=(("float", ONE),)),
    map_op("floor_div", 2, np.floor_divide, "{floor_div}({0}, {1})", cost=24, right_identity=INT_ONE),
    map_op("mod", 2, np.remainder, "{mod}({0}, {1})", cost=24),
    map_op("pow", 2, np.power, "{pow}({0}, {1})", cost=64, ulp=4, right_identity=ONE_ID),
    # max(x, -inf) is x, but max(0.0, -0.0) and max(-0.0, 0.0) differ: it does not commute
    map_op("maximum", 2, maximum, "{maximum}({0}, {1})", idempotent=True, right_identity=(("float", "-inf"),)),
    map_op("minimum", 2, minimum, "{minimum}({0}, {1})", idempotent=True, right_identity=(("float", "inf"),)),
    map_op("neg", 1, np.negative, "-{0}", cost=2, involution=True),
    map_op("abs", 1, np.abs, "{abs}({0})", cost=2, idempotent=True),
    map_op("sign", 1, np.sign, "{sign}({0})", cost=2, idempotent=True),
    # float functions
    map_op("sqrt", 1, np.sqrt, "{sqrt}({0})", FLOAT, cost=16),
    map_op("rsqrt", 1, lambda x: x.dtype.type(1) / np.sqrt(x), "1 / {sqrt}({0})", FLOAT, cost=24),
    map_op("exp", 1, np.exp, "{exp}({0})", FLOAT, cost=32, ulp=5),
    map_op("log", 1, np.log, "{log}({0})", FLOAT, cost=32, ulp=4),
    map_op("exp2", 1, np.exp2, "{exp2}({0})", FLOAT, cost=32, ulp=5),
    map_op("expm1", 1, np.expm1, "{expm1}({0})", FLOAT, cost=32, ulp=4),
    map_op("log2", 1, np.log2, "{log2}({0})", FLOAT, cost=32, ulp=4),
    map_op("log1p", 1, np.log1p, "{log1p}({0})", FLOAT, cost=32, ulp=4),
    map_op("tanh", 1, np.tanh, "{tanh}({0})", FLOAT, cost=32, ulp=4),
    map_op("erf", 1, erf, "{erf}({0})", FLOAT, cost=32, ulp=4),
    map_op("sin", 1, np.sin, "{sin}({0})", FLOAT, cost=32, ulp=4),
    map_op("cos", 1, np.cos, "{cos}({0})", FLOAT, cost=32, ulp=4),
    map_op("floor", 1, np.floor, "{floor}({0})", FLOAT, idempotent=True),
    map_op("ceil", 1, np.ceil, "{ceil}({0})", FLOAT, idempotent=True),
    map_op("round", 1, np.rint, "{round}({0})", FLOAT, idempotent=True),  # half to even
    # comparisons and logic
    map_op("eq", 2, np.equal, "{0} == {1}", ANY, "bool", commutative=True),
    map_op("ne", 2, np.not_equal, "{0} != {1}", ANY, "bool", commutative=True),
    map_op("lt", 2, np.less, "{0} < {1}", ANY, "bool"),
    map_op("le", 2, np.less_equal, "{0} <= {1}", ANY, "bool"),
    map_op("gt", 2, np.greater, "{0} > {1}", ANY, "bool"),
    map_op("ge", 2, np.greater_equal, "{0} >= {1}", ANY, "bool"),
    map_op("bitwise_and", 2, np.bitwise_and, "{0} & {1}", BITS, commutative=True, idempotent=True,
           right_identity=AND_ID),
    map_op("bitwise_or", 2, np.bitwise_or, "{0} | {1}", BITS, commutative=True, idempotent=True,
           right_identity=OR_ID),
    map_op("bitwise_xor", 2, np.bitwise_xor, "{0} ^ {1}", BITS, commutative=True, right_identity=OR_ID),
    map_op("bitwise_not", 1, np.invert, "{not}({0})", BITS, cost=2, involution=True),
    map_op("left_shift", 2, np.left_shift, "{left_shift}({0}, {1})", INT, right_identity=INT_ZERO),
    map_op("right_shift", 2, np.right_shift, "{right_shift}({0}, {1})", INT, right_identity=INT_ZERO),
    # choice and conversion
    map_op("where", 3, np.where, "{0} ? {1} : {2}", infer=infer_where),
    map_op("cast", 1, cast, "{cast}({0})", infer=infer_cast, cost=2, attrs=(("dtype", "str", REQUIRED),)),
    map_op("quantize", 2, quantize, "{quantize}({0}, {1})", infer=infer_quantize, cost=24,
           attrs=(("dtype", "str", "i8"),)),
    map_op("dequantize", 2, dequantize, "{cast}({0}) * {1}", infer=infer_dequantize),
    # reductions; the float ones (sum mean prod cumsum) depend on the order of summation
    reduce_op("sum", reduce_with(np.add), empty_ok=True),
    reduce_op("prod", reduce_with(np.multiply), empty_ok=True),
    reduce_op("mean", mean, FLOAT, empty_ok=True),
    reduce_op("max", reduce_with(np.maximum)),
    reduce_op("min", reduce_with(np.minimum)),
    reduce_op("any", reduce_with(np.logical_or), ("bool",), empty_ok=True),
    reduce_op("all", reduce_with(np.logical_and), ("bool",), empty_ok=True),
    reduce_op("argmax", np.argmax, ANY, to="i64", axis="int"),
    reduce_op("argmin", np.argmin, ANY, to="i64", axis="int"),
    Op("cumsum", Kind.REDUCTION, (1, 1), along_axis(NUMBER), lambda x, axis: np.cumsum(x, axis, x.dtype),
       flops=per_operand_element, attrs=(("axis", "int", REQUIRED),)),
    Op("sort", Kind.REDUCTION, (1, 1), along_axis(), lambda x, axis: np.sort(x, axis),
       flops=per_operand_element, attrs=(("axis", "int", REQUIRED),)),
    # contractions
    Op("matmul", Kind.CONTRACTION, (2, 2), infer_matmul, matmul, flops=matmul_flops,
       attrs=(("transpose_a", "bool", False), ("transpose_b", "bool", False))),
    Op("conv2d", Kind.CONTRACTION, (2, 2), infer_conv2d, conv2d, flops=conv2d_flops,
       attrs=(("stride", "ints", (1, 1)), ("padding", "ints", (0, 0, 0, 0)), ("groups", "int", 1))),
    # packed numbers, see formats.py; packed_matmul is x @ unpack(weights).T, and never unpacks more than a block
    Op("pack", Kind.PACKING, (1, 1), infer_pack, formats.pack, flops=per_operand_element, attrs=(("format", "str", REQUIRED),)),
    Op("unpack", Kind.PACKING, (1, 1), infer_unpack, formats.unpack, flops=per_element, attrs=(("format", "str", REQUIRED),)),
    Op("packed_matmul", Kind.CONTRACTION, (2, 2), infer_packed_matmul, formats.packed_matmul, flops=packed_matmul_flops,
       attrs=(("format", "str", REQUIRED),)),
    # zeros that are not stored, see sparse.py: x @ W.T for W that is 2:4, and of blocks; what is not stored is not multiplied
    Op("sparse_matmul", Kind.CONTRACTION, (3, 3), infer_sparse_matmul, sparse.sparse_matmul, flops=sparse_matmul_flops),
    Op("block_matmul", Kind.CONTRACTION, (4, 4), infer_block_matmul, sparse.block_matmul, flops=block_matmul_flops),
    # layout: they move elements and change none
    layout_op("reshape", (1, 1), lambda x, shape: x.reshape(shape), infer_reshape, ("shape", "ints", REQUIRED)),
    layout_op("transpose", (1, 1), lambda x, perm: x.transpose(perm), infer_transpose, ("perm", "ints", REQUIRED)),
    layout_op("broadcast_to", (1, 1), lambda x, shape: np.broadcast_to(x, shape), infer_broadcast_to,
              ("shape", "ints", REQUIRED)),
    layout_op("concat", (1, math.inf), lambda *xs, axis: np.concatenate(xs, axis), infer_concat,
              ("axis", "int", REQUIRED)),
    layout_op("slice", (1, 1), slice_, infer_slice,
              ("start", "ints", REQUIRED), ("stop", "ints", REQUIRED), ("step", "ints", ())),
    layout_op("pad", (2, 2), pad, infer_pad, ("low", "ints", REQUIRED), ("high", "ints", REQUIRED)),
    layout_op("take", (2, 2), take, infer_take, ("axis", "int", 0)),
    layout_op("update_slice", (3, 3), update_slice, infer_update_slice, ("axis", "int", 0)),
    # random draws and effects
    Op("random", Kind.RANDOM, (0, 0), infer_random, random,
       attrs=(("shape", "ints", REQUIRED), ("dtype", "str", "f32"), ("dist", "str", "uniform"),
              ("site", "int", REQUIRED))),
    effect_op("print", 1, print_, ("label", "str", "")),
    effect_op("assert_close", 2, assert_close, ("digits", "int", 5), domains=NUMBER),
    effect_op("assert_finite", 1, assert_finite, domains=NUMBER),
)

OPS: dict[str, Op] = {row.name: row for row in ROWS}


def row(name: str) -> Op:
    """The row of an operation; raises GraphError with the nearest right spelling."""
    if name not in OPS:
        raise GraphError(f"unknown op '{name}'", hint=nearest(name, OPS) or "the ops are " + " ".join(OPS))
    return OPS[name]


# ---- attributes ---------------------------------------------------------------------------------------------------

LIMIT = 2**63  # attributes are machine integers


def is_int(value) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and -LIMIT <= value < LIMIT


KINDS: dict[str, tuple[Callable, Callable]] = {  # kind -> (is it one?, its canonical form)
    "int": (is_int, int),
    "ints": (lambda v: isinstance(v, (tuple, list)) and all(map(is_int, v)), lambda v: tuple(map(int, v))),
    "bool": (lambda v: isinstance(v, (bool, np.bool_)), bool),
    "str": (lambda v: isinstance(v, str), str),
}


def make_attrs(op: Op, given: dict) -> Attrs | None:
    """Check attributes against the row and fill in defaults, so that equal meanings are equal values.

    None where the row has no attributes. Raises GraphError.
    """
    if not op.attrs and not given:
        return None
    known = [name for name, _, _ in op.attrs]
    for name in given:
        if name not in known:  # not need(): the hint takes longer than all the rest
            raise GraphError(f"{op.name} has no attribute '{name}'",
                             hint=nearest(name, known) or (f"it has {', '.join(known)}" if known else "it has none"))
    items = {}
    for name, kind, default in op.attrs:
        value = given.get(name, default)
        need(value is not REQUIRED, f"{op.name} needs the attribute '{name}'")
        is_one, canonical = KINDS[kind]
        need(is_one(value), f"{op.name}'s attribute '{name}' is {kind}, not {value!r}")
        if name == "dtype" and value not in DTYPES:
            raise GraphError(f"unknown dtype '{value}'", hint=nearest(value, DTYPES))
        items[name] = canonical(value)
    return Attrs(**items)


@functools.lru_cache(maxsize=8192)  # graphs repeat themselves
def infer(op: Op, types: tuple[Type, ...], attrs: Attrs | None) -> Type:
    """The type of ``op`` on operands of these types; raises GraphError with the rule that they break."""
    least, most = op.arity
    if not least <= len(types) <= most:
        wanted = least if least == most else f"{least} or more" if most == math.inf else f"{least} to {most}"
        raise GraphError(f"{op.name} takes {wanted} operand{'s' * (wanted != 1)}, got {len(types)}")
    result = op.infer(types, attrs)
    check_size(result.shape)
    return result
