"""Which constants are weights: matrices that products sum along one axis."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Real
from typing import NamedTuple

from ..errors import GraphError, nearest
from ..ir import Graph, Node, defs
from ..rebuild import Env

# a matmul's flag for each operand, and the axis that is summed without it
SIDES = (("transpose_a", 1), ("transpose_b", 0))


def check_choice(what: str, given: object, known: Iterable[str]) -> None:
    """Raise GraphError where ``given`` is none of the ``known``, which are called ``what``s."""
    if not isinstance(given, str) or given not in known:
        raise GraphError(
            f"there is no {what} '{given}'", hint=nearest(str(given), known) or f"{what}s are " + ", ".join(known)
        )


def check_least(least: object) -> None:
    """Raise GraphError where the smallest size of a weight is no number."""
    if not isinstance(least, Real) or least != least:
        raise GraphError(f"least is a number of elements, not {least!r}", hint="the default is 4096; 1 takes every weight")


def weights(graph: Graph, least: float = 1) -> dict[str, int]:
    """Each constant f32 matrix that a matmul reads, with the axis along which every such matmul sums.

    Left out are outputs, those that one product sums along rows and another along columns, and those of fewer than
    ``least`` elements or of none. Raises GraphError where ``least`` is no number.
    """
    check_least(least)
    nodes, found = defs(graph), {}
    for node in graph.nodes:
        if node.op != "matmul":
            continue
        for name, (flag, axis) in zip(node.inputs, SIDES):
            one = nodes[name]
            if one.op == "const" and one.type.dtype == "f32" and len(one.type.shape) == 2 and one.type.size >= max(least, 1):
                found.setdefault(name, set()).add(axis ^ getattr(node.value, flag))
    outputs = {value for _, value in graph.outputs}
    return {name: axes.pop() for name, axes in found.items() if len(axes) == 1 and name not in outputs}


class Side(NamedTuple):
    """One operand of a matmul, seen through transposes: ``summed`` and ``kept`` are axes of the matrix ``node``."""

    place: int  # 0 or 1
    node: Node
    summed: int
    other: str  # the other operand

    @property
    def kept(self) -> int:
        return 1 - self.summed


def sides(product: Node, env: Env) -> list[Side]:
    """The operands of a matmul that are matrices, with what lies behind transposes."""
    found = []
    for place, (flag, axis) in enumerate(SIDES):
        node, summed = env.defs[product.inputs[place]], axis ^ getattr(product.value, flag)
        if len(node.type.shape) != 2:
            continue
        while node.op == "transpose":
            summed = node.value.perm[summed]
            node = env.defs[node.inputs[0]]
        found.append(Side(place, node, summed, product.inputs[1 - place]))
    return found


def untransposed(product: Node, side: Side, env: Env) -> str | None:
    """Why ``x @ w.T`` in one call cannot stand for this product, where ``side`` is w; None where it can."""
    x = env.defs[side.other].type
    if side.summed != 1:
        return "its rows run along the result, and it is stored row by row along the sum"
    if side.place == 0 and len(x.shape) != 1:
        return "it is the left operand of a matrix, so the result would have to be transposed"
    if side.place == 1 and product.value.transpose_a:
        return "the other operand is transposed, and would have to be copied"
    return None
