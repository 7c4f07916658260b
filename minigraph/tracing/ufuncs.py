"""NumPy's ufuncs on traced values: NEP 50's dtypes made explicit, then one row of the op table or a composition.

Compositions are NumPy code that runs on traced values. Each gives NumPy's bits, special values included; functions
for which no such composition exists (``log1p``, ``hypot`` …) are unknown to the tracer.
"""

from __future__ import annotations

import functools

import numpy as np

from ..errors import nearest
from ..ops import OPS
from .record import Traced, cast, emit, lift
from .source import fail

ROWS = {
    np.add: "add", np.subtract: "sub", np.multiply: "mul", np.divide: "div", np.floor_divide: "floor_div",
    np.remainder: "mod", np.power: "pow", np.maximum: "maximum", np.minimum: "minimum", np.negative: "neg",
    np.absolute: "abs", np.fabs: "abs", np.sign: "sign", np.sqrt: "sqrt", np.exp: "exp", np.log: "log",
    np.tanh: "tanh", np.sin: "sin", np.cos: "cos", np.floor: "floor", np.ceil: "ceil", np.rint: "round",
    np.equal: "eq", np.not_equal: "ne", np.less: "lt", np.less_equal: "le", np.greater: "gt",
    np.greater_equal: "ge", np.bitwise_and: "bitwise_and", np.bitwise_or: "bitwise_or",
    np.bitwise_xor: "bitwise_xor", np.invert: "bitwise_not", np.left_shift: "left_shift",
    np.right_shift: "right_shift", np.matmul: "matmul",
}  # fmt: skip
# an operation that was added to the op table under NumPy's name is known at once
ROWS |= {getattr(np, name): name for name in OPS if isinstance(getattr(np, name, None), np.ufunc)}
COMPARISONS = {np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal}
# what arithmetic means for bool, which the IR leaves to logic
BOOL_ROWS = {"add": "bitwise_or", "maximum": "bitwise_or", "mul": "bitwise_and", "minimum": "bitwise_and"}
SAME = {np.floor, np.ceil, np.trunc, np.absolute}  # these leave integers or bools as they are


# ---- compositions: operands have the loop's dtypes already -----------------------------------------------------------


def truth(x):
    return x if x.dtype == bool else cast(x, bool)


def trunc(x):
    return np.where(x < 0, np.ceil(x), np.floor(x))


def fmax(a, b):
    if a.dtype.kind != "f":
        return np.maximum(a, b)
    return np.where(np.isnan(a), b, np.where(np.isnan(b), a, np.maximum(a, b)))


def fmin(a, b):
    if a.dtype.kind != "f":
        return np.minimum(a, b)
    return np.where(np.isnan(a), b, np.where(np.isnan(b), a, np.minimum(a, b)))


def fmod(a, b):
    rest = np.remainder(a, b)
    if a.dtype.kind != "f":  # remainder has the sign of b, fmod that of a
        return np.where((rest != 0) & ((a < 0) != (b < 0)), rest - b, rest)
    rest = np.remainder(abs(a), abs(b))
    return np.where((a == 0) & (b != 0) & (b == b), a, np.where(a < 0, -rest, rest))  # fmod(-0.0, b) is -0.0


def heaviside(a, b):
    one = a.dtype.type(1)
    return np.where(np.isnan(a), a, np.where(a == 0, b, np.where(a < 0, one - one, one)))


def signbit(x):
    """A NaN has no sign here: which one it has differs between processors, and all NaNs count as one."""
    return (x < 0) | ((x == 0) & (x.dtype.type(1) / x < 0))


def scaled(factor):
    """x times a constant; f16 is computed in f32, as NumPy's loop does."""

    def times(x):
        wide = x.dtype if x.dtype != np.float16 else np.dtype(np.float32)
        return cast(cast(x, wide) * factor(wide.type), x.dtype)

    return times


def reciprocal(x):
    if x.dtype.kind != "f":
        fail("np.reciprocal of integers is not known to the tracer", "write 1 / x", TypeError)
    return x.dtype.type(1) / x


def bool_matmul(a, b):
    return truth(np.matmul(cast(a, np.int64), cast(b, np.int64)))


def row_vector(x):
    return np.expand_dims(x, -2)


def column(x):
    return np.expand_dims(x, -1)


COMPOSED = {
    np.square: lambda x: x * x,
    np.reciprocal: reciprocal,
    np.positive: lambda x: x,
    np.conjugate: lambda x: x,
    np.trunc: trunc,
    np.isnan: lambda x: x != x,
    np.isinf: lambda x: abs(x) == np.inf if x.dtype.kind == "f" else x != x,
    np.isfinite: lambda x: abs(x) < np.inf if x.dtype.kind == "f" else x == x,
    np.logical_and: lambda a, b: truth(a) & truth(b),
    np.logical_or: lambda a, b: truth(a) | truth(b),
    np.logical_xor: lambda a, b: truth(a) ^ truth(b),
    np.logical_not: lambda x: ~truth(x),
    np.fmax: fmax,
    np.fmin: fmin,
    np.fmod: fmod,
    np.divmod: lambda a, b: (a // b, a % b),
    np.heaviside: heaviside,
    np.signbit: signbit,
    np.modf: lambda x: (np.copysign(np.where(np.isinf(x), x.dtype.type(0), x - np.trunc(x)), x), np.trunc(x)),
    np.copysign: lambda a, b: np.where(signbit(b), -abs(a), abs(a)),
    np.deg2rad: scaled(lambda real: real(np.pi) / real(180)),
    np.radians: scaled(lambda real: real(np.pi) / real(180)),
    np.rad2deg: scaled(lambda real: real(180) / real(np.pi)),
    np.degrees: scaled(lambda real: real(180) / real(np.pi)),
    np.vecdot: lambda a, b: np.matmul(row_vector(a), column(b))[..., 0, 0],
}
if hasattr(np, "matvec"):  # NumPy 2.2
    COMPOSED[np.matvec] = lambda a, b: np.matmul(a, column(b))[..., 0]
    COMPOSED[np.vecmat] = lambda a, b: np.matmul(row_vector(a), b)[..., 0, :]
REDUCE = {np.add: np.sum, np.multiply: np.prod, np.maximum: np.max, np.minimum: np.min,
          np.logical_and: np.all, np.logical_or: np.any}  # fmt: skip
KNOWN = {ufunc.__name__ for ufunc in (*ROWS, *COMPOSED)}


# ---- NEP 50 ----------------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=4096)
def loop_dtypes(ufunc, kinds: tuple, dtype=None, casting="same_kind") -> tuple:
    """The dtypes that NumPy would compute with, outputs last; raises TypeError as NumPy does."""
    wanted = {} if dtype is None else {"signature": (None,) * ufunc.nin + (dtype,) * ufunc.nout}
    return ufunc.resolve_dtypes(kinds + (None,) * ufunc.nout, casting=casting, **wanted)


def is_weak(value) -> bool:
    """A Python int or float takes the dtype of its neighbour; bools and NumPy's own scalars are strong."""
    return type(value) in (int, float)


def kind_of(value):
    return type(value) if is_weak(value) else value.dtype


def fits(number: int, dtype: np.dtype) -> bool:
    return dtype.kind not in "iu" or np.iinfo(dtype).min <= number <= np.iinfo(dtype).max


def operands(ufunc, args: list, dtypes: tuple) -> list[Traced]:
    """The operands as traced values of the loop's dtypes, with a ``cast`` wherever NumPy would convert."""
    for arg, loop in zip(args, dtypes):
        if type(arg) is int and not fits(arg, loop):
            fail(f"Python integer {arg} out of bounds for {loop}",
                 f"write np.int64({arg}) to compute in a wider dtype", OverflowError)
    return [lift(arg, loop) if is_weak(arg) else cast(arg, loop) for arg, loop in zip(args, dtypes)]


def compare(ufunc, args: list, dtypes: tuple):
    """Comparisons are exact across integer dtypes: NumPy neither wraps a Python int nor mixes signs through f64."""
    if any(type(arg) is int and not fits(arg, loop) for arg, loop in zip(args, dtypes)):
        # the answer is one and the same for all elements
        answer = ufunc(*(arg if is_weak(arg) else np.zeros((), arg.dtype) for arg in args))
        return np.broadcast_to(lift(answer), next(arg.shape for arg in args if not is_weak(arg)))
    a, b = operands(ufunc, args, dtypes)
    if a.dtype == b.dtype:
        return emit(ROWS[ufunc], a, b)
    # i64 against u64: below zero the order is known, elsewhere u64 holds both
    signed = a if a.dtype.kind == "i" else b
    answer = ufunc(-1, 0) if signed is a else ufunc(0, -1)
    return np.where(signed < 0, answer, emit(ROWS[ufunc], cast(a, np.uint64), cast(b, np.uint64)))


# ---- calls -----------------------------------------------------------------------------------------------------------


def call(ufunc, args: tuple, dtype=None, casting="same_kind"):
    """Record ``ufunc(*args)``."""
    if ufunc not in ROWS and ufunc not in COMPOSED:
        fail(f"np.{ufunc.__name__} is not known to the tracer", nearest(ufunc.__name__, KNOWN)
             or "build it from NumPy functions that are, or compute it before the traced function")
    args = [arg if is_weak(arg) else lift(arg) for arg in args]
    dtypes = loop_dtypes(ufunc, tuple(map(kind_of, args)), None if dtype is None else np.dtype(dtype), casting)
    if ufunc in COMPARISONS:
        return compare(ufunc, args, dtypes)
    values = operands(ufunc, args, dtypes)
    first = values[0].dtype
    if ufunc in SAME and (first == bool or first.kind in "iu" and ufunc is not np.absolute):
        return values[0]
    if ufunc is np.matmul and first == bool:
        return bool_matmul(*values)
    if ufunc not in ROWS:
        return COMPOSED[ufunc](*values)
    row = ROWS[ufunc]
    if ufunc is np.power and first.kind == "i" and type(args[1]) is int and args[1] < 0:
        fail("Integers to negative integer powers are not allowed.", f"write x ** {args[1]}.0")
    return emit(BOOL_ROWS.get(row, row) if first == bool else row, *values)


def outer(ufunc, a, b):
    a, b = lift(a), lift(b)
    return call(ufunc, (np.reshape(a, a.shape + (1,) * b.ndim), b))


def call_ufunc(ufunc, method: str, args: tuple, kwargs: dict):
    """``Tracer.__array_ufunc__``: a call, or ``np.add.reduce``, ``np.add.accumulate``, ``np.multiply.outer``."""
    if method == "at" or any(array is not None for array in kwargs.pop("out", ())):
        fail(f"np.{ufunc.__name__} would write into an array in place; a graph has no writes",
             "write x = x + y instead of x += y, and leave out= away", TypeError)
    dtype = kwargs.pop("dtype", None)
    if method == "__call__":
        if kwargs.pop("where", True) is not True:
            fail(f"np.{ufunc.__name__}(..., where=) is not known to the tracer", "use np.where on the result")
        casting = kwargs.pop("casting", "same_kind")
        for harmless in ("order", "subok"):
            kwargs.pop(harmless, None)
        if kwargs:
            fail(f"np.{ufunc.__name__} is called with {', '.join(kwargs)}, which the tracer does not know")
        return call(ufunc, args, dtype, casting)
    if method == "reduce" and ufunc in REDUCE:
        axis = args[1] if len(args) > 1 else kwargs.pop("axis", 0)
        kwargs |= {} if dtype is None else {"dtype": dtype}
        return REDUCE[ufunc](args[0], axis=axis, **kwargs)
    if method == "accumulate" and ufunc is np.add:
        return np.cumsum(args[0], axis=args[1] if len(args) > 1 else kwargs.pop("axis", 0), dtype=dtype)
    if method == "outer" and not kwargs:
        return outer(ufunc, *args)
    fail(f"np.{ufunc.__name__}.{method} is not known to the tracer")
