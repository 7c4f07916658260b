"""Matrix products that a CUDA graph can record: cuBLAS called through ctypes.

CuPy refuses every cuBLAS call while a stream is being captured (its issue 6290; still so in CuPy 14), although cuBLAS
itself allows it. So a recorded plan calls `cublasGemmStridedBatchedEx` on a handle and in a workspace of its own, which
also means that nothing is allocated during the capture.
"""

from __future__ import annotations

import ctypes
import functools
from itertools import product
from typing import NamedTuple

from ..access import merge_axes, row_major
from ..errors import RunError
from ..types import broadcast

WORKSPACE = {"old": 4 << 20, "new": 32 << 20}  # bytes: what NVIDIA advises before Hopper (9.0) and from there on
DEFAULT = -1  # cublasGemmAlgo_t
# dtype -> (cudaDataType, cublasComputeType, the type of alpha and beta); from library_types.h and cublas_api.h
TYPES = {"float16": (2, 68, ctypes.c_float), "float32": (0, 68, ctypes.c_float), "float64": (1, 70, ctypes.c_double)}
STATUS = {1: "not initialized", 3: "out of memory", 7: "invalid value", 8: "architecture mismatch", 11: "mapping error",
          13: "execution failed", 14: "internal error", 15: "not supported"}  # fmt: skip


class Gemm(NamedTuple):
    """One call: c = a @ b as cuBLAS has it, column-major; places and steps are in elements.

    ``a`` is m by k and ``b`` k by n after the transpositions, each ``count`` times, ``step`` apart.
    """

    transpose_a: bool
    transpose_b: bool
    m: int
    n: int
    k: int
    a: int
    lda: int
    step_a: int
    b: int
    ldb: int
    step_b: int
    c: int
    ldc: int
    step_c: int
    count: int


def layout(rows: int, columns: int, row: int, column: int) -> tuple[bool, int] | None:
    """How cuBLAS can read a matrix whose element (i, j) lies at ``i*row + j*column``: (transposed, leading dimension).

    None where neither way works: cuBLAS wants one of the two strides to be 1 and the other no shorter than its rows.
    """
    for transposed, (length, step), (others, distance) in ((False, (rows, row), (columns, column)),
                                                           (True, (columns, column), (rows, row))):  # fmt: skip
        leading = distance if others > 1 else max(1, length)
        if (step == 1 or length <= 1) and leading >= max(1, length):
            return transposed, leading
    return None


def shape_of_product(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of NumPy's ``a @ b``."""
    return *broadcast(a[:-2], b[:-2]), *a[-2:-1], *(b[-1:] if len(b) > 1 else ())


def gemms(a_shape, a_strides, b_shape, b_strides, c_strides=None) -> list[Gemm] | None:
    """The calls for NumPy's ``a @ b`` of these shapes and strides (in elements), into a result whose rows are contiguous:
    of these strides, or else C-contiguous.

    None where an operand has to be copied first. An axis of the batch that cannot be walked with one step, together
    with the others, is a loop of calls.
    """
    if c_strides is None:
        c_strides = row_major(shape_of_product(a_shape, b_shape))
    if len(a_shape) == 1:
        a_shape, a_strides, c_strides = (1, *a_shape), (0, *a_strides), (*c_strides[:-1], 0, *c_strides[-1:])
    if len(b_shape) == 1:
        b_shape, b_strides, c_strides = (*b_shape, 1), (*b_strides, 0), (*c_strides, 1)
    (rows, depth), columns = a_shape[-2:], b_shape[-1]
    # column-major, the result is its transpose: c.T = b.T @ a.T
    left = layout(columns, depth, b_strides[-1], b_strides[-2])
    right = layout(depth, rows, a_strides[-1], a_strides[-2])
    batch = broadcast(a_shape[:-2], b_shape[:-2])

    def steps(shape, strides):
        missing = len(batch) - len(shape)
        return (0,) * missing + tuple(0 if dim == 1 else step for dim, step in zip(shape, strides))

    of_a, of_b = steps(a_shape[:-2], a_strides), steps(b_shape[:-2], b_strides)
    if left is None or right is None or min(of_a + of_b, default=0) < 0:
        return None
    of_c, leading = c_strides[:-2], max(1, columns if rows == 1 else c_strides[-2])
    axes = merge_axes(batch, (of_a, of_b, of_c)) or [(1, (0, 0, 0))]
    *outer, (count, (step_a, step_b, step_c)) = axes
    found = []
    for index in product(*(range(length) for length, _ in outer)):
        a, b, c = (sum(i * strides[which] for i, (_, strides) in zip(index, outer)) for which in range(3))
        found.append(Gemm(left[0], right[0], columns, rows, depth, b, left[1], step_b, a, right[1], step_a, c,
                          leading, step_c, count))  # fmt: skip
    return found


class Products:
    """cuBLAS on one stream, for CuPy arrays of floats."""

    def __init__(self, cupy, stream):
        self.cupy, self.library = cupy, load(cupy.cuda.runtime.runtimeGetVersion() // 1000)
        size = WORKSPACE["new" if int(cupy.cuda.Device().compute_capability) >= 90 else "old"]
        self.workspace = cupy.empty(size, "uint8")
        self.handle = ctypes.c_void_p()
        check(self.library.cublasCreate_v2(ctypes.byref(self.handle)))
        check(self.library.cublasSetStream_v2(self.handle, ctypes.c_void_p(stream.ptr)))
        # after the stream, because setting that takes the workspace away
        place = ctypes.c_void_p(self.workspace.data.ptr)
        check(self.library.cublasSetWorkspace_v2(self.handle, place, ctypes.c_size_t(size)))

    def matmul(self, a, b, out=None):
        """``a @ b``; the rows of ``out`` are contiguous, and it overlaps neither of them."""
        if out is None:
            out = self.cupy.empty(shape_of_product(a.shape, b.shape), a.dtype)
        if out.size == 0:
            return out
        if a.shape[-1] == 0:
            out.fill(0)
            return out
        calls = gemms(a.shape, in_elements(a), b.shape, in_elements(b), in_elements(out))
        if calls is None:  # at least one of them
            a, b = self.cupy.ascontiguousarray(a), self.cupy.ascontiguousarray(b)
            calls = gemms(a.shape, in_elements(a), b.shape, in_elements(b), in_elements(out))
        kind, compute, scalar = TYPES[out.dtype.name]
        one, zero = scalar(1), scalar(0)
        for call in calls:
            places = [ctypes.c_void_p(array.data.ptr + place * array.itemsize)
                      for array, place in ((b, call.a), (a, call.b), (out, call.c))]  # fmt: skip
            check(self.library.cublasGemmStridedBatchedEx(
                self.handle, int(call.transpose_a), int(call.transpose_b), call.m, call.n, call.k, ctypes.byref(one),
                places[0], kind, call.lda, ctypes.c_longlong(call.step_a),
                places[1], kind, call.ldb, ctypes.c_longlong(call.step_b), ctypes.byref(zero),
                places[2], kind, call.ldc, ctypes.c_longlong(call.step_c), call.count, compute, DEFAULT))
        return out

    def __del__(self):
        if getattr(self, "handle", None):
            self.library.cublasDestroy_v2(self.handle)


def in_elements(array) -> tuple[int, ...]:
    return tuple(step // array.itemsize for step in array.strides)


def check(status: int) -> None:
    if status:
        raise RunError(f"cuBLAS fails: {STATUS.get(status, f'status {status}')}")


@functools.cache
def load(major: int) -> ctypes.CDLL:
    """The cuBLAS of this version of CUDA: the one that CuPy finds, through the package that it finds it with."""
    names = [f"libcublas.so.{major}", f"cublas64_{major}.dll"]
    try:
        from cuda import pathfinder

        names.insert(0, pathfinder.load_nvidia_dynamic_lib("cublas").abs_path)
    except Exception:  # not installed, or it finds none: the loader may know one by name
        pass
    for name in names:
        try:
            return ctypes.CDLL(name)
        except (OSError, TypeError):
            continue
    suffix = f"-cu{major}" if major < 13 else ""
    raise RunError("a CUDA graph of matrix products needs cuBLAS, and none is found: install nvidia-cublas" + suffix)
