"""How far the value that a launch stores may be from NumPy's: the definition of equal, for several nodes at once.

A launch without a rounded node keeps every bit. A rounded node alone may be off by its ``ulp``, or by its rounding
bound if it is a float reduction or contraction. Where a launch has other nodes behind a rounded one, or several of
them, these allowances do not add up: one ulp can become anything. So the launch is evaluated again in NumPy, node by
node, with every rounded value pushed within what it may be, in several patterns; what is stored may be ``FACTOR`` times
as far from NumPy's value as the farthest of these. Where a pattern changes an integer, a truth value or what is finite,
an ulp decides it, and every result is right.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np

from .fuzz import is_loose, rounding_bound
from .ir import Node
from .ops import OPS
from .types import DTYPES, same_bits

FACTOR = 4  # the patterns are a few points of a box, and errors add up in other ways, too
PATTERNS = 10


def is_rounded(node: Node) -> bool:
    """May another executor give other bits? Then they are near, unless something discontinuous follows."""
    return is_loose(node) or (node.type.domain == "float" and OPS[node.op].ulp > 0)


def reach(node: Node, arrays: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """A float reduction's exact result and its rounding bound, which is infinite only where a sum may overflow.

    A NaN among the terms decides; and so does an infinity, if the other terms cannot overflow. ``rounding_bound`` is
    infinite for both.
    """
    exact, bound = rounding_bound(node, arrays)
    bound = np.where(np.isnan(bound), np.inf, bound)
    if not all(np.isfinite(array).all() for array in arrays):
        clean = [np.where(np.isfinite(array), array, array.dtype.type(0)) for array in arrays]
        bound = np.where(np.isnan(exact) | ~np.isfinite(exact) & np.isfinite(rounding_bound(node, clean)[1]), 0, bound)
    return exact, bound


def near(node: Node, arrays: list[np.ndarray], want: np.ndarray, got: np.ndarray) -> bool:
    """Is ``got`` what a rounded node may give for these operands, for which NumPy gives ``want``?"""
    if not is_loose(node):
        exact, bound = want, OPS[node.op].ulp * np.spacing(np.maximum(np.abs(want), np.abs(got)))
    else:
        exact, bound = reach(node, arrays)
    off = np.abs(np.asarray(got, np.longdouble) - exact)
    return bool(((off <= bound) | (bound == np.inf) | (exact == got) | (np.isnan(exact) & np.isnan(got))).all())


def pushed(node: Node, arrays: list[np.ndarray], result: np.ndarray, push: np.ndarray) -> np.ndarray:
    """The result moved within what it may be: by 1 to the upper end, by -1 to the lower one."""
    up = np.where(push < 0, -1, 1).astype(result.dtype)
    if not is_loose(node):
        gap = OPS[node.op].ulp * np.spacing(np.abs(result))
        return np.where(np.isfinite(gap), result + push.astype(result.dtype) * gap, result)
    exact, bound = reach(node, arrays)
    wild = np.select([push == -1, push < -0.5, push > 0.5], [np.nan, -np.inf, np.inf], exact)  # a sum that may overflow
    far = np.where(bound == np.inf, wild, exact + np.where(bound == 0, 0, push * bound)).astype(result.dtype)
    far = np.where((bound > 0) & np.isfinite(far), np.nextafter(far, up * result.dtype.type(np.inf)), far)
    return np.where(far == 0, np.copysign(far, up), far)  # either zero of max and min


def pattern(number: int, shape: tuple[int, ...], step: int) -> np.ndarray:
    """How far each element is pushed: all up, every second one, all of every second node, or anything in between."""
    index = np.arange(prod(shape)).reshape(shape)
    if number < 6:
        return np.where((np.ones(shape, int), index, np.full(shape, step))[number // 2] % 2 == number % 2, 1.0, -1.0)
    return np.random.default_rng((number, step)).uniform(-1, 1, shape)


def responses(nodes: list[Node], values: dict[str, np.ndarray]) -> Iterator[np.ndarray]:
    """The last node's value, once for each pattern of pushed values."""
    for number in range(PATTERNS):
        moved: dict[str, np.ndarray] = {}
        for step, node in enumerate(nodes):
            arrays = [moved[name] if name in moved else values[name] for name in node.inputs]
            result = np.asarray(OPS[node.op].numpy(*arrays, **dict(node.value or ())))
            if is_rounded(node) and result.size:
                result = pushed(node, arrays, result, pattern(number, result.shape, step))
            moved[node.name] = result
        yield moved[nodes[-1].name]


def stored_right(nodes: list[Node], values: dict[str, np.ndarray], got: np.ndarray) -> bool:
    """May a launch of these nodes store ``got``? ``values`` has NumPy's value of every node and operand."""
    want = values[nodes[-1].name]
    rounded = [node for node in nodes if is_rounded(node)]
    if same_bits(want, got) or not rounded or (want.dtype, want.shape) != (got.dtype, got.shape):
        return same_bits(want, got)
    with np.errstate(all="ignore"):
        if rounded == nodes[-1:]:
            return near(nodes[-1], [values[name] for name in nodes[-1].inputs], want, got)
        free = may_overflow(nodes[-1], values) if nodes[-1].op == "matmul" else np.zeros(want.shape, bool)
        return within_response(want, got, responses(nodes, values), free)


def may_overflow(mixed: Node, values: dict[str, np.ndarray]) -> np.ndarray:
    """Of an attention: where the values, weighted but not divided by the sum of the weights, may leave the range."""
    shares, v = (
        np.abs(np.where(np.isfinite(values[name]), values[name], 0).astype(np.longdouble)) for name in mixed.inputs
    )
    return (
        OPS["matmul"].numpy(shares, v, **dict(mixed.value)) * shares.shape[-1]
        > np.finfo(DTYPES[mixed.type.dtype]).max / 2
    )


def within_response(want: np.ndarray, got: np.ndarray, moved: Iterator[np.ndarray], free: np.ndarray) -> bool:
    most = np.zeros(want.shape, np.longdouble)
    for other in moved:
        if want.dtype.kind != "f":
            free |= other != want
            continue
        same = (other == want) | (np.isnan(other) & np.isnan(want))
        off = np.where(same, 0, np.abs(np.asarray(other, np.longdouble) - want))
        free |= ~np.isfinite(off)
        most = np.fmax(most, off)
    right = free | (got == want)
    if want.dtype.kind == "f":
        right |= (np.isnan(got) & np.isnan(want)) | (np.abs(np.asarray(got, np.longdouble) - want) <= FACTOR * most)
    return bool(right.all())
