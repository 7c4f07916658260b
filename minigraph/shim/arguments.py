"""Arguments of a launch: a pointer takes an array of its dtype, any other parameter a number in its range."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np

from .kernels import Kernel, Param, ShimError

TYPES = {  # C's type -> the dtypes that an array may have, the first also a number's
    "float": ("float32",), "double": ("float64",), "bool": ("bool", "uint8"),
    "char": ("int8", "uint8", "bool"), "signed char": ("int8",), "unsigned char": ("uint8", "bool"),
    "short": ("int16", "float16"), "unsigned short": ("uint16", "float16"),
    "int": ("int32",), "unsigned int": ("uint32",), "long": ("int64",), "unsigned long": ("uint64",),
    "long long": ("int64",), "unsigned long long": ("uint64",),
}  # fmt: skip


def values(kernel: Kernel, args: Sequence) -> list:
    """The arrays as they are and the numbers as ctypes has them, one for each parameter; raises ShimError."""
    if len(args) != len(kernel.params):
        raise ShimError(f"kernel {kernel} takes {len(kernel.params)} arguments, not {len(args)}")
    return [(array if param.pointer else number)(kernel, param, arg) for param, arg in zip(kernel.params, args)]


def array(kernel: Kernel, param: Param, value) -> np.ndarray | ctypes.c_void_p:
    if value is None:
        return ctypes.c_void_p(None)
    what = f"kernel `{kernel.name}`, `{param.text}`"
    if not isinstance(value, np.ndarray):
        raise ShimError(f"{what}: a pointer takes a NumPy array or None, not {type(value).__name__}")
    allowed = TYPES.get(param.base.rstrip("234"))  # float4 is four of float; a type of the source's own may be anything
    if allowed and value.dtype.name not in allowed:
        raise ShimError(f"{what}: the array is {value.dtype}, not {' or '.join(allowed)}")
    if not value.flags.c_contiguous:
        raise ShimError(f"{what}: the array is not C-contiguous, which a kernel cannot know; pass its base or a copy")
    if not param.const and not value.flags.writeable:
        raise ShimError(f"{what}: the array is read-only; make the parameter const or pass a copy")
    return value


def number(kernel: Kernel, param: Param, value):
    what = f"kernel `{kernel.name}`, `{param.text}`"
    if param.base not in TYPES:
        raise ShimError(f"{what}: a number has one of the types {', '.join(TYPES)}")
    dtype = np.dtype(TYPES[param.base][0])
    try:
        if dtype.kind in "iu" and value != int(value):
            raise ValueError
        return np.ctypeslib.as_ctypes_type(dtype)(dtype.type(value).item())
    except (TypeError, ValueError, OverflowError):
        raise ShimError(f"{what}: {value!r} is no {param.base}") from None
