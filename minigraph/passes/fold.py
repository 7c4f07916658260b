"""Constant folding: run at compile time what depends on constants alone."""

from __future__ import annotations

import numpy as np

from ..ir import Graph, Node
from ..ops import OPS, Op
from ..rebuild import Env, Result, Rewrite, rebuild
from ..types import DTYPES, Const


ONE_OPERAND = 2**26  # bytes: beyond, a fold may not add up what its operands store


def fold(graph: Graph, max_growth: int = 1024) -> Result:
    """Replace each operation whose operands are all constants by its value.

    A fold may store at most ``max_growth`` bytes more than the operands it reads: folding
    ``broadcast_to(0.0, [65536, 65536])`` would turn 4 bytes into 16 GiB. And 30 lines of ``concat(x, x)`` double x to
    4 GiB: from 64 MiB on, the largest operand counts instead of their sum. What NumPy refuses (an index out of
    range, an integer to a negative power) stays, and is an error at run time, as it would have been.
    """

    def visit(node: Node, env: Env) -> Rewrite | None:
        facts = OPS[node.op]
        if not facts.foldable or not node.inputs:
            return None
        values = []
        for name in node.inputs:
            value = env.defs[name].value
            if not isinstance(value, Const):
                return None
            values.append(value)
        stored = [len(value.data) for value in values]
        if node.type.nbytes > min(sum(stored), max(*stored, ONE_OPERAND)) + max_growth:
            return None
        result = evaluate(facts, values, node)
        if result is None:
            return None
        why = f"{node.op} of constants is computed once, here"
        return Rewrite("fold", (Node(node.name, "const", (), result, node.type),), why)

    with np.errstate(all="ignore"):  # overflow and NaN are values here, as they are at run time
        return rebuild(graph, visit)


def evaluate(facts: Op, values: list[Const], node: Node) -> Const | None:
    """The row's own NumPy meaning, in the node's own dtype: folding has no second opinion on any operation."""
    try:
        result = facts.numpy(*[value.array for value in values], **dict(node.value or ()))
    except (ValueError, IndexError, ZeroDivisionError, MemoryError):
        return None
    return Const.of(one_nan(np.asarray(result, DTYPES[node.type.dtype])))


def one_nan(array: np.ndarray) -> np.ndarray:
    """All NaNs count as equal, and their bits differ between processors: store the one that np.nan is."""
    if array.dtype.kind == "f" and (nan := array != array).any():
        return np.where(nan, array.dtype.type(np.nan), array)
    return array
