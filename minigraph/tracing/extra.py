"""Functions that NumPy lacks, for arrays and for traced values alike: outside of a trace they compute at once."""

from __future__ import annotations

import numpy as np

from ..ops import DISTRIBUTIONS, make_attrs, row
from .record import ACTIVE, Traced, cast, emit, lift, recording
from ..types import DTYPES, SHORT


def apply(op: str, *values, **attrs):
    """``op`` on the values: recorded if one of them is traced, else computed by the row's own NumPy function.

    Python numbers take the dtype of the first array.
    """
    strong = next((value.dtype for value in values if hasattr(value, "dtype")), None)
    if any(isinstance(value, Traced) for value in values):
        return emit(op, *(lift(value, strong) for value in values), **attrs)
    facts = row(op)
    arrays = [value if hasattr(value, "dtype") else np.asarray(value, strong) for value in values]
    return facts.numpy(*arrays, **dict(make_attrs(facts, attrs) or ()))


def short(dtype) -> str:
    """``"i8"`` from itself or from anything that NumPy takes for a dtype."""
    return dtype if dtype in DTYPES else SHORT[np.dtype(dtype)]


def erf(x):
    """The error function, element by element, correct in double precision and then rounded to x's float dtype."""
    return apply("erf", x)


def rsqrt(x):
    """``1 / np.sqrt(x)`` of floats in one operation."""
    return apply("rsqrt", x)


def take(x, indices, *, axis: int = 0):
    """``np.take(x, indices, axis=axis)``, also where x is an array and ``indices`` alone is traced.

    NumPy asks only its first argument whether it is traced. Raises IndexError when the graph runs, if out of range.
    """
    return apply("take", x, indices if hasattr(indices, "dtype") else np.asarray(indices), axis=axis)


def update_slice(x, update, start, *, axis: int = 0):
    """A copy of x with ``update`` written at position ``start`` along ``axis``.

    ``update`` has x's dtype and rank, and x's length on every other axis; ``start`` is a 0-d integer, possibly known
    only when the graph runs. Raises IndexError there if the update does not fit: it is never clamped.
    """
    return apply("update_slice", x, update, start if hasattr(start, "dtype") else np.int64(start), axis=axis)


def quantize(x, scale, dtype="i8"):
    """``round(x / scale)``, half to even, clipped to the integer dtype's range; NaN becomes 0."""
    return apply("quantize", x, scale, dtype=short(dtype))


def dequantize(q, scale):
    """``q * scale`` in the float dtype of ``scale``, which is an array or a NumPy scalar."""
    return apply("dequantize", q, scale)


def pack(x, format: str):
    """Round f32[..., K] to packed blocks, u8: see ``formats``."""
    return apply("pack", x, format=format)


def unpack(data, format: str):
    """The f32 numbers of packed blocks, exactly."""
    return apply("unpack", data, format=format)


def packed_matmul(x, weights, format: str):
    """``x @ unpack(weights, format).T`` for f32[..., K] and packed rows of K."""
    return apply("packed_matmul", x, weights, format=format)


def conv2d(x, kernel, stride=(1, 1), padding=(0, 0, 0, 0), groups: int = 1):
    """Cross-correlation of x [n, c, h, w] with kernel [out, c/groups, kh, kw]; padding: top, bottom, left, right."""
    return apply("conv2d", x, kernel, stride=tuple(stride), padding=tuple(padding), groups=groups)


def random(shape, dtype="f32", dist="uniform"):
    """Draws that differ at each call, and in a graph at each run with another seed; f32 or f64.

    ``uniform`` is over [0, 1), ``normal`` has mean 0 and deviation 1. A trace gives each draw a site number: the
    draw is a function of the run's seed and of that number, so passes that remove one draw change no other.
    """
    shape, dtype = tuple(shape) if np.iterable(shape) else (shape,), short(dtype)
    active = ACTIVE.get()
    if active is None:
        if dist not in DISTRIBUTIONS:
            raise ValueError(f"unknown distribution '{dist}': there are {' and '.join(DISTRIBUTIONS)}")
        generator = np.random.default_rng()
        draw = generator.random if dist == "uniform" else generator.standard_normal
        return np.asarray(draw(shape, DTYPES[dtype]))
    active.sites += 1
    return emit("random", shape=shape, dtype=dtype, dist=dist, site=active.sites - 1)


def random_like(x, dist="uniform"):
    """``random`` of x's shape and dtype."""
    return random(x.shape, x.dtype, dist)


def effect(op: str, *values, **attrs) -> None:
    """Record an effect while a trace runs, else perform it. Operands are promoted to one dtype."""
    dtype = np.result_type(*(value.dtype if hasattr(value, "dtype") else value for value in values))
    if ACTIVE.get() is not None:
        recording().effect(op, *(cast(lift(value, dtype), dtype) for value in values), **attrs)
    else:
        row(op).numpy(*(np.asarray(value, dtype) for value in values), **dict(make_attrs(row(op), attrs) or ()))


def print_value(x, label: str = "") -> None:
    """Print x each time the graph runs; ``print`` would print once, while tracing. Prints keep their order."""
    effect("print", x, label=label)


def assert_close(x, y, digits: int = 5) -> None:
    """Raise CheckFailed, each time the graph runs, unless x and y agree to ``digits`` digits."""
    effect("assert_close", x, y, digits=digits)


def assert_finite(x):
    """Raise CheckFailed, each time the graph runs, if x has infs or NaNs; gives x, as does ``np.asarray_chkfinite``."""
    if x.dtype.kind == "f":
        effect("assert_finite", x)
    return x


def constant(x):
    """In a trace: x as a constant of the graph, so that what is computed from it is recorded too.

    Without this, NumPy computes at once what does not depend on the inputs, and the graph has only the result.
    """
    return np.asarray(x) if ACTIVE.get() is None else lift(x)

