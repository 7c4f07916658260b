"""NumPy without its dependence on layout: what a permutation of axes must keep, this keeps to the bit.

NumPy's float sums depend on the order of their terms, and its vector loops on strides. Here terms are sorted before
they are added, and every operand is laid out anew, so two graphs that mean the same up to the order of axes give equal
bits, and one wrong axis does not hide behind a rounding bound. Slow, and for tests only.
"""

from __future__ import annotations

import numpy as np

from .ir import Node
from .ops import OPS, Kind

SORTED = ("sum", "mean", "prod", "max", "min", "matmul")


def compute(node: Node, values: dict[str, np.ndarray], seed: int = 0) -> np.ndarray:
    """The value of one node; ``values`` has its operands."""
    if node.op == "const":
        return node.value.array
    arrays = [np.array(values[name], order="C") for name in node.inputs]
    if node.op in SORTED and node.type.domain == "float":
        return fold_terms(node, *arrays)
    if OPS[node.op].kind is Kind.ELEMENTWISE:
        arrays = [np.array(array, order="C") for array in np.broadcast_arrays(*arrays)]
    arrays = [seed] if node.op == "random" else arrays
    return np.asarray(OPS[node.op].numpy(*arrays, **dict(node.value or ())))


def fold_terms(node: Node, *arrays: np.ndarray) -> np.ndarray:
    terms = products(*arrays, **dict(node.value)) if node.op == "matmul" else rows(*arrays, node.value.axis)
    bits = f"u{terms.itemsize}"
    terms = np.sort(terms.view(bits), axis=-1).view(terms.dtype)
    row = OPS["sum" if node.op == "matmul" else node.op]
    return np.asarray(row.numpy(terms, axis=(-1,), keepdims=False)).reshape(node.type.shape)


def rows(array: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """What one element of the result is made of, along the last axis."""
    gone = [axis % array.ndim for axis in axes]
    kept = [axis for axis in range(array.ndim) if axis not in gone]
    shape = [array.shape[axis] for axis in kept]
    count = int(np.prod([array.shape[axis] for axis in gone], dtype=int))
    return np.array(array.transpose(*kept, *gone), order="C").reshape(*shape, count)


def products(a: np.ndarray, b: np.ndarray, transpose_a: bool, transpose_b: bool) -> np.ndarray:
    a = a.swapaxes(-1, -2) if transpose_a else a
    b = b if transpose_b or b.ndim == 1 else b.swapaxes(-1, -2)
    b = b[..., None, :, :] if b.ndim > 1 else b
    a = a[..., :, None, :] if a.ndim > 1 and b.ndim > 1 else a
    return np.array(a * b, order="C")
