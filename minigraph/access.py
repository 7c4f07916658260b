"""Where a value lies in memory: a buffer, and the strides with which it is read. Views move no byte."""

from __future__ import annotations

from typing import NamedTuple

from .ir import Node
from .ops import slice_ranges
from .types import Type


class Access(NamedTuple):
    """How a value is read: element (i, j, …) is ``buffer[offset + i*strides[0] + j*strides[1] + …]``, in elements."""

    buffer: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    @property
    def contiguous(self) -> bool:
        """Row-major without gaps, from the start of the buffer."""
        return self.offset == 0 and self.strides == row_major(self.shape)

    @property
    def steps(self) -> tuple[int, ...]:
        """The strides of the loops over it; see ``squeeze``."""
        return tuple(stride for dim, stride in zip(self.shape, self.strides) if dim != 1)


def squeeze(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The loops over a shape: its axes without those of length 1."""
    return tuple(dim for dim in shape if dim != 1)


def relabels(node: Node, nodes: dict[str, Node]) -> bool:
    """Does it only add or drop axes of length 1? Then element i stays element i."""
    return (node.op in ("reshape", "broadcast_to")
            and squeeze(node.type.shape) == squeeze(nodes[node.inputs[0]].type.shape))


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides, in elements, of a C-contiguous array: ``row_major((2, 3, 4)) == (12, 4, 1)``."""
    strides, step = [], 1
    for dim in reversed(shape):
        strides.append(step)
        step *= dim
    return tuple(reversed(strides))


def whole(name: str, type: Type) -> Access:
    """A value that fills a buffer of its own."""
    return Access(name, type.shape, row_major(type.shape))


def view(node: Node, of: Access) -> Access | None:
    """What a view node reads, when its operand is read as ``of``; None where only a copy will do."""
    return VIEW_RULES[node.op](node, of)


def transposed(node: Node, of: Access) -> Access:
    return of._replace(shape=node.type.shape, strides=tuple(of.strides[axis] for axis in node.value.perm))


def broadcasted(node: Node, of: Access) -> Access:
    shape = node.type.shape
    missing = len(shape) - len(of.shape)
    kept = (0 if old != new else stride for old, new, stride in zip(of.shape, shape[missing:], of.strides))
    return of._replace(shape=shape, strides=(0,) * missing + tuple(kept))


def sliced(node: Node, of: Access) -> Access:
    if 0 in node.type.shape:
        return of._replace(shape=node.type.shape)  # nothing is read
    ranges = slice_ranges(node.value)
    offset = of.offset + sum(taken.start * stride for taken, stride in zip(ranges, of.strides))
    strides = tuple(taken.step * stride for taken, stride in zip(ranges, of.strides))
    return of._replace(shape=node.type.shape, strides=strides, offset=offset)


def reshaped(node: Node, of: Access) -> Access | None:
    strides = reshape_strides(of.shape, of.strides, node.type.shape)
    return None if strides is None else of._replace(shape=node.type.shape, strides=strides)


def reshape_strides(shape, strides, new) -> tuple[int, ...] | None:
    """The strides of the same elements under a new shape, or None: split and merge only axes that lie end to end."""
    if 0 in new:
        return row_major(new)
    chunks = merge_axes(shape, (strides,))  # the longest runs that one stride walks
    result, chunk, left = [], len(chunks) - 1, 1
    step = 0
    for dim in reversed(new):
        if dim == 1:
            result.append(1)
            continue
        if left == 1:  # the next chunk, from the innermost
            left, (step,) = chunks[chunk]
            chunk -= 1
        if left % dim:
            return None  # an axis of the new shape would straddle two chunks
        result.append(step)
        left, step = left // dim, step * dim
    return tuple(reversed(result))


def merge_axes(shape: tuple[int, ...], all_strides: tuple[tuple[int, ...], ...]) -> list[tuple[int, tuple[int, ...]]]:
    """Axes that every access walks end to end become one: (length, its stride in each access), outermost first.

    Axes of length 1 vanish. Fewer axes mean fewer loops and no index arithmetic in the generated code.
    """
    merged: list[tuple[int, tuple[int, ...]]] = []
    for axis, dim in enumerate(shape):
        if dim == 1:
            continue
        steps = tuple(strides[axis] for strides in all_strides)
        if merged and all(outer == step * dim for outer, step in zip(merged[-1][1], steps)):
            merged[-1] = (merged[-1][0] * dim, steps)
        else:
            merged.append((dim, steps))
    return merged


VIEW_RULES = {"transpose": transposed, "broadcast_to": broadcasted, "slice": sliced, "reshape": reshaped}
VIEWS = frozenset(VIEW_RULES)  # the ops that can often be answered by other strides alone
