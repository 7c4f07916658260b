"""Sparsity: the smallest weights become 0, and zeros that lie in a pattern are neither stored nor multiplied.

``prune`` changes values on purpose, and ``compress`` skips a zero even where it would have met inf or NaN. So neither
is among ``PASSES``: a user calls them, and measures what they cost.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real

import numpy as np

from ..errors import GraphError
from ..ir import Graph, Node
from ..rebuild import Env, Result, Rewrite, rebuild
from ..sparse import GROUP, KEPT, TILE, WORD, compress_24, compress_blocks, is_24
from .quantize import constant, emit
from .weights import Side, check_choice, sides, untransposed, weights

PAYS = 0.75  # blocks that are left from which on the dense product is as quick


def magnitude(w: np.ndarray) -> np.ndarray:
    """|w|, where NaN is largest: it is never pruned."""
    return np.nan_to_num(np.abs(w), nan=np.inf, posinf=np.inf)


def largest(scores: np.ndarray, count: int) -> np.ndarray:
    """Which ``count`` of the scores in each row are the largest; of equal ones the first."""
    if not 0 < count < scores.shape[1]:
        return np.full(scores.shape, count > 0)
    least = np.partition(scores, -count, axis=1)[:, -count, None]
    above, equal = scores > least, scores == least
    return above | equal & (np.cumsum(equal, axis=1, dtype=np.int32) <= count - above.sum(axis=1, keepdims=True))


def mask_24(w: np.ndarray, keep: float = 0.5) -> np.ndarray | None:
    """The 2 largest of each 4 along a row of f32[N, K]; None where K is no multiple of 4."""
    return largest(magnitude(w).reshape(-1, GROUP), KEPT).reshape(w.shape) if w.shape[1] % GROUP == 0 else None


def mask_blocks(w: np.ndarray, keep: float = 0.5, columns: int = 16) -> np.ndarray | None:
    """The blocks of 16 rows by ``columns`` with the largest sums of squares, a share ``keep`` of each 16 rows."""
    if w.shape[0] % TILE or w.shape[1] % columns:
        return None
    across = w.shape[1] // columns
    with np.errstate(over="ignore"):
        scores = (magnitude(w).reshape(-1, TILE, across, columns) ** 2).sum(axis=(1, 3))
    return np.repeat(np.repeat(largest(scores, round(across * keep)), columns, axis=1), TILE, axis=0)


def mask_anywhere(w: np.ndarray, keep: float = 0.5) -> np.ndarray:
    """The largest of all, a share ``keep``, wherever they are."""
    return largest(magnitude(w).reshape(1, -1), round(w.size * keep)).reshape(w.shape)


PATTERNS: dict[str, Callable] = {"2:4": mask_24, "block": mask_blocks, "unstructured": mask_anywhere}


def prune(graph: Graph, pattern: str = "2:4", keep: float = 0.5, least: int = 4096) -> Result:
    """The smallest weights become 0: magnitude pruning (Han et al., "Learning both weights and connections", 2015).

    ``pattern`` is 2:4 (2 of each 4 along the summed axis stay), block (of 16 results by 16 terms) or unstructured; the
    last two keep a share ``keep``. Constants of fewer than ``least`` elements, or whose shape the pattern does not
    divide, stay as they are. The weights stay dense: see ``compress``. Raises GraphError.
    """
    check_choice("pattern", pattern, PATTERNS)
    if not isinstance(keep, Real) or not 0 <= keep <= 1:
        raise GraphError(f"keep is a share from 0 to 1, not {keep!r}")
    found = weights(graph, least)

    def visit(node: Node, env: Env) -> Rewrite | None:
        if node.name not in found or node.op != "const":
            return None
        rows = node.value.array if found[node.name] else node.value.array.T
        mask = PATTERNS[pattern](rows, keep)
        if mask is None or not (rows[~mask] != 0).any():
            return None
        new = np.where(mask, rows, np.float32(0))
        made = constant(env, f"{node.name}.pruned", new if found[node.name] else new.T)
        return Rewrite("prune", (made,), f"{pattern}: of {mask.size:,} weights the {int(mask.sum()):,} largest stay")

    return rebuild(graph, visit)


def compress(graph: Graph, columns: int = 16) -> Result:
    """Products with constant weights whose zeros lie in a pattern become sparse products, which skip them.

    2:4 weights become sparse_matmul; weights of which at most 3 in 4 blocks of 16 by ``columns`` are left become
    block_matmul. Zeros anywhere else are no pattern, and stay dense. Equal within the rounding bound for finite
    activations: a zero that is skipped no longer makes NaN of inf. Raises GraphError.
    """
    if not isinstance(columns, (int, np.integer)) or columns < 1:
        raise GraphError(f"columns is a whole number from 1 up, not {columns!r}", hint="a block is 16 rows by columns")
    columns = int(columns)
    # a weight is compressed once for all products that sum along the same axis of it
    made: dict[tuple[str, int], tuple[tuple[Node, ...], str] | None] = {}

    def visit(node: Node, env: Env) -> Rewrite | None:
        for side in sides(node, env) if node.op == "matmul" else []:
            if side.node.op != "const" or side.node.type.dtype != "f32" or not is_right(node, side, env):
                continue
            key = side.node.name, side.summed
            known = key in made
            if not known:
                rows = side.node.value.array if side.summed else np.ascontiguousarray(side.node.value.array.T)
                made[key] = compressed(side.node, rows, columns, env)
            if made[key] is None:
                continue
            stored, op = made[key]
            product = emit(env, node.name, op, env.defs[side.other], *stored)
            before, after = side.node.type.nbytes, sum(one.type.nbytes for one in stored)
            why = f"{after:,} bytes in place of {before:,}; what is not stored is skipped"
            return Rewrite("compress", (product,) if known else (*stored, product), why)
        return None

    return rebuild(graph, visit)


def is_right(node: Node, side: Side, env: Env) -> bool:
    """Can x @ w.T stand for the product? A constant can be stored with its rows along either axis."""
    return untransposed(node, side._replace(summed=1), env) is None


def compressed(weight: Node, rows: np.ndarray, columns: int, env: Env) -> tuple[tuple[Node, ...], str] | None:
    """The constants of the sparse form, and the operation that reads them; None where there is no pattern."""
    if rows.shape[0] % TILE or not rows.size:
        return None
    if rows.shape[1] % columns == 0:
        values, indices, starts = compress_blocks(rows, columns)
        if values.size <= PAYS * rows.size and (values.size < rows.size / 2 or not is_24(rows)):
            named = zip(("blocks", "columns", "starts"), (values, indices, starts))
            return tuple(constant(env, f"{weight.name}.{name}", array) for name, array in named), "block_matmul"
    if rows.shape[1] % WORD == 0 and is_24(rows):
        named = zip(("values", "indices"), compress_24(rows))
        return tuple(constant(env, f"{weight.name}.{name}", array) for name, array in named), "sparse_matmul"
    return None
