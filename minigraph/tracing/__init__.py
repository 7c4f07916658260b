"""From NumPy code to graphs: ``trace``, and the parts it is made of (a proxy, a recording, tables of NumPy functions)."""

from .trace import (
    Tracer, assert_close, assert_finite, constant, conv2d, dequantize, erf, make_outputs, pack, packed_matmul, print_value,
    quantize, random, random_like, returned_names, rsqrt, spec, take, trace, unpack, update_slice,
)  # fmt: skip

__all__ = [
    "Tracer", "assert_close", "assert_finite", "constant", "conv2d", "dequantize", "erf", "make_outputs", "pack",
    "packed_matmul", "print_value", "quantize", "random", "random_like", "returned_names", "rsqrt", "spec", "take", "trace",
    "unpack", "update_slice",
]  # fmt: skip
