"""Quantization of weights: constants become few bits and scales.

This changes values, on purpose. So it is not among ``PASSES``: a user calls it, and measures what it costs
(``minigraph.accuracy``).
"""

from __future__ import annotations

import numpy as np

from ..formats import FORMATS, pack
from ..ir import Graph, Node
from ..ops import Attrs, infer, row
from ..rebuild import Env, Result, Rewrite, rebuild
from ..types import Const
from .weights import check_choice, weights


def emit(env: Env, name: str, op: str, *inputs: Node, **attrs) -> Node:
    """A node with its inferred type, under a new name."""
    value = Attrs(**attrs) if attrs else None
    return Node(
        env.fresh(name),
        op,
        tuple(one.name for one in inputs),
        value,
        infer(row(op), tuple(one.type for one in inputs), value),
    )


def constant(env: Env, name: str, array: np.ndarray) -> Node:
    value = Const.wrap(np.ascontiguousarray(array))
    return Node(env.fresh(name), "const", (), value, value.type)


def quantize_weights(graph: Graph, format: str = "q4_1x16", least: int = 4096) -> Result:
    """Weights of products, constant f32 matrices of at least ``least`` elements, become quantized constants.

    ``format`` is one of ``formats.FORMATS`` (packed blocks along the summed axis, and ``unpack``) or i8 (int8, and
    ``dequantize`` with a scale max/127 for each column of the result). Products stay as they are, and read the
    expanded weights: see ``fuse_dequantize``. A matrix that is not whole blocks or not finite stays. Raises GraphError.
    """
    check_choice("format", format, ("i8", *FORMATS))
    found = weights(graph, least)

    def visit(node: Node, env: Env) -> Rewrite | None:
        if node.name not in found or node.op != "const":
            return None
        array, axis = node.value.array, found[node.name]
        if not np.isfinite(array).all():
            return None
        made = (
            eight_bits(node, array, axis, env)
            if format == "i8"
            else packed(node, array if axis else array.T, axis, format, env)
        )
        if made is None:
            return None
        stored = sum(one.type.nbytes for one in made if one.op == "const")
        return Rewrite(
            "quantize-weights", made, f"{stored:,} bytes in place of {node.type.nbytes:,}; the values are rounded"
        )

    return rebuild(graph, visit)


def eight_bits(node: Node, array: np.ndarray, axis: int, env: Env) -> tuple[Node, ...]:
    scale = np.abs(array).max(axis=axis, keepdims=True) / np.float32(127)
    scale = np.where(scale < np.finfo(np.float32).tiny, np.float32(1), scale)  # of a column of zeros
    q = constant(env, f"{node.name}.i8", row("quantize").numpy(array, scale, "i8"))
    scales = constant(env, f"{node.name}.scale", scale)
    return q, scales, emit(env, node.name, "dequantize", q, scales)


def packed(node: Node, rows: np.ndarray, axis: int, format: str, env: Env) -> tuple[Node, ...] | None:
    facts = FORMATS[format]
    if rows.shape[1] % facts.values or rows.shape[0] % facts.rows:
        return None
    blocks = constant(env, f"{node.name}.{format}", pack(np.ascontiguousarray(rows), format))
    wide = emit(env, f"{node.name}.rows", "unpack", blocks, format=format)
    return (blocks, wide) if axis else (blocks, wide, emit(env, node.name, "transpose", wide, perm=(1, 0)))
