"""Permutations of axes: how they compose, which of them move no byte, and what the others cost.

``transpose(x) {perm=p}`` has axis ``p[i]`` of x as its axis i, as in NumPy.
"""

from __future__ import annotations

import functools

from ..ir import Graph, defs
from ..types import Type
from .dce import dce

Perm = tuple[int, ...]
remember = functools.lru_cache(maxsize=8192)  # graphs repeat themselves


@remember
def compose(p: Perm, q: Perm) -> Perm:
    """The permutation of ``transpose(transpose(x, p), q)``: axis i of the result is axis q[i] of the middle."""
    return tuple([p[axis] for axis in q])


@remember
def inverse(p: Perm) -> Perm:
    """``compose(p, inverse(p))`` is the identity."""
    return tuple(sorted(range(len(p)), key=p.__getitem__))


@remember
def widen(p: Perm, rank: int) -> Perm:
    """The same permutation of the last axes, behind new ones in front, where broadcasting puts them."""
    new = rank - len(p)
    return (*range(new), *[new + axis for axis in p])


def swap_last(p: Perm) -> Perm:
    """``p``, then the last two axes swapped: what a transpose flag of matmul does."""
    return (*p[:-2], p[-1], p[-2])


@remember
def stored_shape(shape: tuple[int, ...], p: Perm) -> tuple[int, ...]:
    """The shape of x, where ``transpose(x, p)`` has ``shape``."""
    return tuple([shape[axis] for axis in inverse(p)])


@remember
def is_reshape(shape: tuple[int, ...], p: Perm) -> bool:
    """Do all elements of an array of this shape stay in their order? Then only axes of length 1 move."""
    long = [axis for axis in p if shape[axis] != 1]
    return long == sorted(long) or 0 in shape


def torn(shape: tuple[int, ...], p: Perm) -> int:
    """How matmul reads the transpose of an array of this shape.

    0: as a reshape. 1: rows stay whole, so BLAS's leading dimension reads them in place. 2: columns do, and BLAS's
    transpose argument reads them in place. 3: neither, so that only a copy will do.
    """
    if is_reshape(shape, p):
        return 0
    inner = max(axis for axis, dim in enumerate(shape) if dim != 1)
    return 1 if p[-1] == inner else 2 if p[-2] == inner else 3


def cost(type: Type) -> int:
    """The bytes that a copy of such a value moves: each is read once and written once."""
    return 2 * type.nbytes


def copies(graph: Graph) -> dict[str, int]:
    """Each transpose that an output or an effect needs -> the bytes that it moves: see ``bytes_moved_by_layout``."""
    nodes, views, found = defs(graph), {}, {}

    def read(name: str, op: str = "") -> None:
        if name in views:
            root, perm = views[name]
            how = torn(nodes[root].type.shape, perm)
            if how == 3 or (how and op != "matmul"):
                found[name] = cost(nodes[name].type)

    for node in dce(graph).graph.nodes:
        if node.op == "transpose":
            root, perm = views.get(node.inputs[0]) or (node.inputs[0], tuple(range(len(node.value.perm))))
            views[node.name] = root, compose(perm, node.value.perm)
            found[node.name] = 0
        else:
            for name in node.inputs:
                read(name, node.op)
    for _, value in graph.outputs:
        read(value)
    return found


def bytes_moved_by_layout(graph: Graph) -> int:
    """What the graph's transposes move, in bytes, if each is written out where somebody needs its elements in order.

    A transpose is a view: it costs nothing by itself, and a chain of them is one view. It is written out, once for all
    its readers, where one of them needs a contiguous operand, or where it is an output. Everything needs one except a
    further transpose and a matmul that BLAS can serve in place: in each matrix, neighbours along one axis must be
    neighbours in memory (leading dimension and transpose argument: Dongarra et al., "A set of level 3 basic linear
    algebra subprograms", 1990; NumPy's matmul asks the same). A permutation that moves only axes of length 1 is a
    reshape and moves nothing. Dead transposes do not count.
    """
    return sum(copies(graph).values())


def layout_weight(graph: Graph) -> tuple[int, int, int, int]:
    """What every change of ``layout`` lowers; the first number that differs decides.

    Bytes moved; transposes; transposes of transposes; and transposed operands of matmul, weighed by how torn they are.
    """
    found, nodes = copies(graph), defs(graph)
    reads = [(node.op, nodes[name]) for node in dce(graph).graph.nodes for name in node.inputs if name in found]
    stacked = sum(op == "transpose" for op, _ in reads)
    operands = [(nodes[node.inputs[0]].type.shape, node.value.perm) for op, node in reads if op == "matmul"]
    return sum(found.values()), len(found), stacked, sum(torn(shape, perm) for shape, perm in operands)
