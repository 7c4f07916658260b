"""Each operation of the op table as CuPy computes it: the same names where CuPy has NumPy's, a few lines where not.

What CuPy has nothing for is computed by NumPy on the host: slow, and right. CuPy's own kernels are not strict: they
are compiled with `-ftz=true`, which turns the smallest float32 numbers to zero, and may contract a product and a sum;
shifts by more than the width are left to the hardware. Everything else means what the table's row means.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from ..ir import Node
from ..ops import OPS, Kind, slice_index
from ..types import DTYPES

PRODUCTS = ("matmul", "conv2d")  # they take ``product=``, what to multiply with in the place of cupy.matmul


def is_checked(node: Node) -> bool:
    """Can the node be refused for its values? CuPy would wrap an index that is out of range, and to ask for its value
    would stop the host until the GPU is done; so these take ``status``, a number on the GPU that becomes 1."""
    return node.op in ("take", "update_slice") or (node.op == "pow" and node.type.domain == "signed")


@functools.cache
def calls(cupy) -> dict[str, Callable]:
    """Op -> function of CuPy arrays and the op's attributes, which gives a CuPy array; the element-wise ones that CuPy
    has itself take ``out=`` too."""
    from cupyx.scipy.special import erf

    def rsqrt(x):
        return cupy.divide(x.dtype.type(1), cupy.sqrt(x))

    def cast(x, dtype):
        kind = DTYPES[dtype]
        return float_to_int(x, kind) if x.dtype.kind == "f" and kind.kind in "iu" else x.astype(kind)

    def float_to_int(x, kind):  # as in ops.py
        info = np.iinfo(kind)
        with np.errstate(over="ignore"):
            low, high = x.dtype.type(float(info.min)), x.dtype.type(float(info.max // 2 + 1)) * x.dtype.type(2)
        inside = cupy.where((x > low) & (x < high), x, x.dtype.type(0)).astype(kind)
        return cupy.where(x >= high, kind.type(info.max), cupy.where(x <= low, kind.type(info.min), inside))

    def quantize(x, scale, dtype):
        return float_to_int(cupy.rint(cupy.divide(x, scale).astype(np.float64)), DTYPES[dtype])

    def total(function):  # in the operand's dtype, where NumPy and CuPy would widen small integers
        return lambda x, axis, keepdims: function(x, axis=axis, keepdims=keepdims, dtype=x.dtype)

    def reduce(function):
        return lambda x, axis, keepdims: function(x, axis=axis, keepdims=keepdims)

    def mean(x, axis, keepdims):
        if x.size == 0:  # NaN, and no warning
            return cupy.sum(x, axis=axis, keepdims=keepdims, dtype=x.dtype) / x.dtype.type(0)
        return cupy.mean(x, axis=axis, keepdims=keepdims)

    def matmul(a, b, transpose_a=False, transpose_b=False, out=None, product=cupy.matmul):
        a, b = a.swapaxes(-1, -2) if transpose_a else a, b.swapaxes(-1, -2) if transpose_b else b
        return product(a, b, out=out)

    def conv2d(x, w, stride, padding, groups, product=cupy.matmul):  # as in ops.py
        top, bottom, left, right = padding
        x = cupy.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
        windows = cupy.lib.stride_tricks.sliding_window_view(x, w.shape[2:], axis=(2, 3))
        windows = windows[:, :, ::stride[0], ::stride[1]]
        n, c, high, wide, kh, kw = windows.shape
        columns = windows.reshape(n, groups, c // groups, high, wide, kh, kw).transpose(0, 1, 3, 4, 2, 5, 6)
        columns = columns.reshape(n, groups, high * wide, (c // groups) * kh * kw)
        kernel = w.reshape(groups, w.shape[0] // groups, (c // groups) * kh * kw).swapaxes(-1, -2)
        return product(columns, kernel).transpose(0, 1, 3, 2).reshape(n, w.shape[0], high, wide)

    def pad(x, value, low, high):
        result = cupy.empty(tuple(map(sum, zip(low, x.shape, high))), x.dtype)
        result[...] = value
        result[tuple(slice(start, start + dim) for start, dim in zip(low, x.shape))] = x
        return result

    def power(base, exponent, status=None):
        if status is not None:
            status |= (exponent < 0).any()
        return cupy.power(base, exponent)

    def take(x, indices, axis, status):
        size, info = x.shape[axis], np.iinfo(indices.dtype)
        for wrong, bound in ((cupy.greater_equal, size), (cupy.less, -size)):
            if info.min <= bound <= info.max:
                status |= wrong(indices, indices.dtype.type(bound)).any()
        if size == 0 and indices.size:
            raise IndexError("cannot do a non-empty take from an empty axis")
        return cupy.take(x, indices, axis=axis)

    def update_slice(x, update, start, axis, status, out=None):
        length, at = update.shape[axis], start.astype(np.int64)
        most = x.shape[axis] - length
        status |= (at < 0) | (at > most)
        result = x.copy() if out is None else out
        if update.size:
            place = cupy.arange(length) + cupy.minimum(cupy.maximum(at, 0), most)
            result[(slice(None),) * (axis % x.ndim) + (place,)] = update
        return result

    def on_the_host(row):  # tokens are None, a seed is a number
        def call(*operands, **attrs):
            arrays = [one.get() if isinstance(one, cupy.ndarray) else one for one in operands if one is not None]
            result = row.numpy(*arrays, **attrs)
            return None if row.kind is Kind.EFFECT else cupy.asarray(result)

        call.on_the_host = True
        return call

    found = {row.name: on_the_host(row) for row in OPS.values()}  # random draws too: the same numbers as everywhere
    found |= {row.name: getattr(cupy, row.numpy.__name__) for row in OPS.values() if isinstance(row.numpy, np.ufunc)}
    return found | {
        "maximum": cupy.maximum, "minimum": cupy.minimum, "pow": power, "rsqrt": rsqrt, "where": cupy.where,
        "cast": cast, "erf": lambda x: erf(x).astype(x.dtype, copy=False), "quantize": quantize,
        "dequantize": lambda q, scale: cupy.multiply(q.astype(scale.dtype), scale),
        "sum": total(cupy.sum), "prod": total(cupy.prod), "mean": mean, "max": reduce(cupy.max),
        "min": reduce(cupy.min), "any": reduce(cupy.any), "all": reduce(cupy.all), "argmax": reduce(cupy.argmax),
        "argmin": reduce(cupy.argmin), "cumsum": lambda x, axis: cupy.cumsum(x, axis=axis, dtype=x.dtype),
        "sort": lambda x, axis: cupy.sort(x, axis=axis),
        "matmul": matmul, "conv2d": conv2d, "reshape": lambda x, shape: x.reshape(shape),
        "transpose": lambda x, perm: x.transpose(perm), "broadcast_to": lambda x, shape: cupy.broadcast_to(x, shape),
        "concat": lambda *xs, axis: cupy.concatenate(xs, axis=axis),
        "slice": lambda x, start, stop, step: x[slice_index(start, stop, step)],
        "pad": pad, "take": take, "update_slice": update_slice,
    }  # fmt: skip
