"""Dequantization fused into what reads it: packed products, scales that move out of a sum, rows of a table.

The order of rounding changes, so this is not among ``PASSES``.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ..errors import GraphError, nearest
from ..formats import FORMATS
from ..ir import Graph, Node, defs
from ..rebuild import Env, Result, Rewrite, rebuild
from ..types import DTYPES, Type
from .quantize import constant, emit
from .weights import Side, sides, untransposed


def fuse_dequantize(graph: Graph) -> Result:
    """Products read quantized weights themselves.

    - matmul(x, unpack(w).T) becomes packed_matmul(x, w), which expands a block at a time and stores none;
    - matmul(x, dequantize(q, s)) becomes matmul(x, cast(q)) * s, where s is the same all along the summed axis: the
      scale moves out of the sum and is multiplied once a result, as an epilogue;
    - take(unpack(w), i), the row of a table, expands the rows that are taken.

    The sums are rounded in another order: equal within the rounding bound. ``explain_dequantize`` says why one stays.
    """

    def visit(node: Node, env: Env) -> Rewrite | None:
        made = fuse_one(node, env)
        return made if isinstance(made, Rewrite) else None

    return rebuild(graph, visit)


def fuse_one(node: Node, env: Env) -> Rewrite | str | None:
    """The rewrite of one product or take, a reason against it, or None where nothing is quantized."""
    if node.op == "take":
        return take_rows(node, env)
    reason = None
    for side in sides(node, env) if node.op == "matmul" else []:
        fuse = FUSE_OPERAND.get(side.node.op)
        made = fuse(node, side, env) if fuse else None
        if isinstance(made, Rewrite):
            return made
        reason = reason or made
    return reason


def fuse_unpack(node: Node, side: Side, env: Env) -> Rewrite | str:
    if (reason := untransposed(node, side, env)) is not None:
        return f"'{side.node.name}' stays unpacked: {reason}"
    x, blocks, format = env.defs[side.other], env.defs[side.node.inputs[0]], side.node.value.format
    made = emit(env, node.name, "packed_matmul", x, blocks, format=format)
    return Rewrite(
        "fuse-dequantize", (made,), f"{side.node.type.nbytes:,} bytes are not expanded, written and read again"
    )


def scale_of(side: Side, env: Env) -> Node | str:
    """The scale of a dequantized operand, if it can move out of the sum, or why it cannot."""
    q, scale = (env.defs[name] for name in side.node.inputs)
    shape = (1,) * (2 - len(scale.type.shape)) + scale.type.shape
    if len(q.type.shape) != 2 or q.type.shape != side.node.type.shape:
        return f"'{side.node.name}' stays: its scale has more axes than the numbers"
    if shape[side.summed] != 1:
        return (
            f"'{side.node.name}' stays: its scale {scale.type} changes along the summed axis {side.summed}, "
            "so each term of the sum has its own factor"
        )
    return scale


def move_scale(node: Node, side: Side, env: Env) -> Rewrite | str:
    scale = scale_of(side, env)
    if isinstance(scale, str):
        return scale
    wide = emit(env, f"{node.name}.wide", "cast", env.defs[side.node.inputs[0]], dtype=scale.type.dtype)
    product, factor, after = around(node, side, wide, env.defs[side.other], scale, env)
    return Rewrite(
        "move-scale",
        (wide, product, factor, after),
        f"{side.node.type.size:,} multiplications by a scale become {node.type.size:,}: a sum has one",
    )


def around(node: Node, side: Side, weight: Node, x: Node, scale: Node, env: Env) -> tuple[Node, Node, Node]:
    """The product with ``weight`` in the place of ``side``, the scale in the result's shape, and the two multiplied."""
    flags, operands = dict(node.value), [x, x]
    flags["transpose_b" if side.place else "transpose_a"] = side.summed == side.place
    operands[side.place] = weight
    product = emit(env, f"{node.name}.sum", "matmul", *operands, **flags)
    column = (1,) if side.place == 0 and len(x.type.shape) > 1 else ()
    factor = emit(env, f"{node.name}.scale", "reshape", scale, shape=(scale.type.size, *column))
    after = Node(node.name, "mul", (product.name, factor.name), None, Type(factor.type.dtype, node.type.shape))
    return product, factor, after


FUSE_OPERAND = {"unpack": fuse_unpack, "dequantize": move_scale}  # operation of an operand -> how a product takes it


TILED = ("i32", "i64")  # indices that can be split into tile and row


def take_rows(node: Node, env: Env) -> Rewrite | str | None:
    """A row of a packed table: take the bytes first, then expand them. Of 16 interleaved rows, take the tile."""
    table, indices = (env.defs[name] for name in node.inputs)
    if table.op not in ("unpack", "dequantize") or len(table.type.shape) != 2 or node.value.axis % 2:
        return None
    if table.op == "dequantize":
        return take_dequantized(node, table, indices, env)
    blocks, format = env.defs[table.inputs[0]], table.value.format
    if indices.type.size * FORMATS[format].rows >= table.type.shape[0]:
        return f"'{table.name}' stays unpacked: as many rows are taken as it has"
    rows, why = FORMATS[format].rows, f"of {table.type.shape[0]:,} rows only those that are taken are expanded"
    make = partial(emit, env, node.name)
    if rows == 1:
        taken = make("take", blocks, indices, axis=0)
        return Rewrite("take-packed", (taken, make("unpack", taken, format=format)), why)
    if indices.type.dtype not in TILED:
        return f"'{table.name}' stays unpacked: an index {indices.type} cannot be split into tile and row"
    kind = DTYPES[indices.type.dtype]
    length = constant(env, "tile", np.array(rows, kind))
    flat = make("reshape", indices, shape=(indices.type.size,))
    tile, place = make("floor_div", flat, length), make("mod", flat, length)
    first = constant(env, "first", np.arange(indices.type.size, dtype=kind) * kind.type(rows))
    taken = make("take", blocks, tile, axis=0)
    wide, at = make("unpack", taken, format=format), make("add", place, first)
    picked = make("take", wide, at, axis=0)
    return Rewrite(
        "take-packed",
        (length, flat, tile, place, first, taken, wide, at, picked, make("reshape", picked, shape=node.type.shape)),
        why,
    )


def take_dequantized(node: Node, table: Node, indices: Node, env: Env) -> Rewrite | str:
    q, scale = (env.defs[name] for name in table.inputs)
    if q.type.shape != table.type.shape or len(scale.type.shape) != 2:
        return f"'{table.name}' stays expanded: its scale {scale.type} does not go with its rows"
    made = [emit(env, node.name, "take", q, indices, axis=0)]
    if scale.type.shape[0] != 1:  # else one scale for all rows
        scale = emit(env, node.name, "take", scale, indices, axis=0)
        made.append(scale)
    made.append(emit(env, node.name, "dequantize", made[0], scale))
    if made[-1].type != node.type:
        return f"'{table.name}' stays expanded: its scale {scale.type} does not go with one row"
    return Rewrite(
        "take-packed", tuple(made), f"of {table.type.shape[0]:,} rows only those that are taken are expanded"
    )


def explain_dequantize(graph: Graph, name: str) -> str:
    """One sentence: what ``fuse_dequantize`` does with this product or take, and if nothing, why. Raises GraphError."""
    nodes = defs(graph)
    if not isinstance(name, str) or name not in nodes:
        raise GraphError(f"no value is named '{name}'", hint=nearest(str(name), nodes) or "name a matmul or a take")
    env = Env(graph)
    env.defs.update(nodes)
    made = fuse_one(nodes[name], env)
    if isinstance(made, Rewrite):
        return f"'{name}' is fused: {made.why}."
    return f"{made}." if made else f"'{name}' reads nothing quantized."
