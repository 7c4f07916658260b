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
PATTERNS = 16
ROUNDS = ("add", "sub", "mul", "div", "sqrt", "rsqrt", "cast", "dequantize")  # to the nearest number


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
        kept = ~np.isfinite(exact) & np.isfinite(rounding_bound(node, clean)[1]) & (not has_offsets(node))
        bound = np.where(np.isnan(exact) | kept, 0, bound)
    return exact, bound


def has_offsets(node: Node) -> bool:
    """Are the weights scale * q + offset, which generated code sums apart? There the parts of inf may be inf - inf."""
    return node.op == "packed_matmul" and node.value.format.startswith("q4_1")


def near(node: Node, arrays: list[np.ndarray], want: np.ndarray, got: np.ndarray) -> bool:
    """Is ``got`` what a rounded node may give for these operands, for which NumPy gives ``want``?"""
    if not is_loose(node):
        exact, bound = want, OPS[node.op].ulp * np.spacing(np.maximum(np.abs(want), np.abs(got)))
        bound = np.where(is_moot(node, arrays), np.inf, bound)
    else:
        exact, bound = reach(node, arrays)
    off = np.abs(np.asarray(got, np.longdouble) - exact)
    return bool(((off <= bound) | (bound == np.inf) | (exact == got) | (np.isnan(exact) & np.isnan(got))).all())


def is_moot(node: Node, arrays: list[np.ndarray]) -> np.ndarray:
    """Where NumPy has two answers: if one exponent 0.5 serves a whole row, power is sqrt, and NaN for -inf."""
    if node.op != "pow":
        return np.zeros((), bool)
    return (arrays[0] == -np.inf) & (arrays[1] == 0.5)


def pushed(node: Node, arrays: list[np.ndarray], result: np.ndarray, push: np.ndarray) -> np.ndarray:
    """The result moved within what it may be: by 1 to the upper end, by -1 to the lower one."""
    up = np.where(push < 0, -1, 1).astype(result.dtype)
    if not is_loose(node):
        gap = OPS[node.op].ulp * np.spacing(np.abs(result))
        result = np.where(is_moot(node, arrays), np.where(push > 0, np.inf, np.nan), result).astype(result.dtype)
        return np.where(np.isfinite(gap), result + push.astype(result.dtype) * gap, result)
    exact, bound = reach(node, arrays)
    wild = np.select([push == -1, push < -0.5, push > 0.5], [np.nan, -np.inf, np.inf], exact)  # a sum that may overflow
    far = np.where(bound == np.inf, wild, exact + np.where(bound == 0, 0, push * bound)).astype(result.dtype)
    far = np.where((bound > 0) & np.isfinite(far), np.nextafter(far, up * result.dtype.type(np.inf)), far)
    return np.where(far == 0, np.copysign(far, up), far)  # either zero of max and min


def pattern(number: int, shape: tuple[int, ...], step: int) -> np.ndarray:
    """How far each element is pushed: all alike, every second one up, all of every second node up, or anything."""
    if number < 8:
        return np.full(shape, (-1, 1, -0.75, 0.75, -0.5, 0.5, -0.25, 0.25)[number])
    if number < 12:
        index = np.arange(prod(shape)).reshape(shape) if number < 10 else np.full(shape, step)
        return np.where(index % 2 == number % 2, 1.0, -1.0)
    return np.random.default_rng((number, step)).uniform(-1, 1, shape)


def responses(nodes: list[Node], values: dict[str, np.ndarray]) -> Iterator[np.ndarray]:
    """The last node's value, once for each pattern of pushed values; twice where one of them jumps over an edge."""
    for number in range(PATTERNS):
        moved, jumps = push_all(nodes, values, number, on_edge=False)
        yield moved
        if jumps:
            yield push_all(nodes, values, number, on_edge=True)[0]


def push_all(nodes: list[Node], values: dict[str, np.ndarray], number: int, on_edge: bool) -> tuple[np.ndarray, bool]:
    """The last node's value in one pattern, and whether any value jumped; ``on_edge`` stops those in the middle."""
    moved: dict[str, np.ndarray] = {}
    inexact: set[str] = set()  # rounded nodes, and all that depends on them
    jumps = False
    for step, node in enumerate(nodes):
        arrays = [moved[name] if name in moved else values[name] for name in node.inputs]
        result = np.asarray(OPS[node.op].numpy(*arrays, **dict(node.value or ())))
        if is_rounded(node) or not inexact.isdisjoint(node.inputs):
            inexact.add(node.name)
            push = pattern(number, result.shape, step)
            if is_rounded(node) and result.size:
                result = pushed(node, arrays, result, push)
            elif node.op in ROUNDS and node.type.domain == "float":  # of other operands it is rounded otherwise
                gap = np.spacing(np.abs(result))
                result = np.where(np.isfinite(gap), result + push.astype(result.dtype) * gap, result)
            over, edge = find_edge(
                node, arrays, [values[name] for name in node.inputs], result, values[node.name], number
            )
            jumps |= bool(over.any())
            result = np.where(over, edge, result).astype(result.dtype) if on_edge else result
        moved[node.name] = result
    return moved[nodes[-1].name], jumps


def find_edge(
    node: Node, moved: list, still: list, result: np.ndarray, base: np.ndarray, number: int
) -> tuple[np.ndarray, object]:
    """Where the push takes a value past a point at which the operation has another value, and that value."""
    if node.op in ("eq", "ne"):
        before, after = (np.sign(np.asarray(a, np.longdouble) - b) for a, b in (still, moved))
        return before * after < 0, node.op == "eq"  # it may be equal on the way
    if node.op == "mod" and node.type.domain == "float":
        a, b, a0, b0 = (np.asarray(array, np.longdouble) for array in (*moved, *still))
        far = (
            np.abs(a - a0) + np.abs(a0 / b0) * np.abs(b - b0) >= np.abs(b0) / 4
        )  # a part of a period: any rest may come out
        return far | (np.floor(a / b) != np.floor(a0 / b0)), np.where(far, b * (number % 4) / 4, 0 * b)
    if result.dtype.kind == "f":
        return np.sign(result) * np.sign(base) < 0, 0  # zero lies on the way
    return np.zeros(result.shape, bool), 0


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
