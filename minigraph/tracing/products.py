"""NumPy's products of arrays on traced values: transposes and reshapes around ``matmul``."""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from .record import Traced, cast, lift
from .source import fail


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
    values = one_size_a_label(terms, result, values)
    dtype = np.result_type(*(value.dtype for value in values))
    value, labels = cast(values[0], dtype), terms[0]
    for place, (other, term) in enumerate(zip(values[1:], terms[1:])):
        needed = set("".join(terms[place + 2:]) + result)
        value, labels = contract(value, labels, cast(other, dtype), term, needed)
    value, labels = sum_out(value, labels, set(result))
    return value if labels == result else np.transpose(value, [labels.index(label) for label in result])


def one_size_a_label(terms: list[str], result: str, values: list[Traced]) -> list[Traced]:
    """The operands with axes of length 1 broadcast to what the label is elsewhere, as NumPy does."""
    sizes: dict[str, int] = {}
    for label, dim in ((label, dim) for term, value in zip(terms, values) for label, dim in zip(term, value.shape)):
        if sizes.setdefault(label, dim) == 1:
            sizes[label] = dim
        elif dim not in (1, sizes[label]):
            fail(f"np.einsum: the label '{label}' is {sizes[label]} in one operand and {dim} in another")
    unknown = [label for label in result if label not in sizes]
    if unknown:
        fail(f"np.einsum: the label '{unknown[0]}' of the result is in no operand")
    shapes = [tuple(sizes[label] for label in term) for term in terms]
    return [value if value.shape == shape else np.broadcast_to(value, shape) for value, shape in zip(values, shapes)]


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


PRODUCTS = {  # name in NumPy -> our version
    "dot": dot, "inner": inner, "outer": lambda a, b: np.ravel(lift(a))[:, None] * np.ravel(lift(b))[None, :],
    "vdot": lambda a, b: dot(np.ravel(lift(a)), np.ravel(lift(b))),
    "tensordot": tensordot, "einsum": einsum, "linalg.norm": norm,
    "linalg.matmul": lambda x1, x2: np.matmul(x1, x2),
}  # fmt: skip
