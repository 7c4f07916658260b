"""Quantization of weights: constants become few bits and a scale, and the scale moves behind the contraction.

These functions change values, or the order of rounding, on purpose. So they are not among ``PASSES``: a user calls
them, and measures what they cost (``minigraph.accuracy``).
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ..errors import GraphError, nearest
from ..formats import FORMATS, pack
from ..ir import Graph, Node, defs
from ..ops import Attrs, infer, row
from ..rebuild import Env, Result, Rewrite, rebuild
from ..types import DTYPES, Const, Type
from .weights import Side, sides, untransposed, weights


def emit(env: Env, name: str, op: str, *inputs: Node, **attrs) -> Node:
    """A node with its inferred type, under a new name."""
    value = Attrs(**attrs) if attrs else None
    return Node(env.fresh(name), op, tuple(one.name for one in inputs), value, infer(row(op), tuple(one.type for one in inputs), value))


def constant(env: Env, name: str, array: np.ndarray) -> Node:
    value = Const.wrap(np.ascontiguousarray(array))
    return Node(env.fresh(name), "const", (), value, value.type)


def quantize_weights(graph: Graph, format: str = "q4_1x16", least: int = 4096) -> Result:
    """Weights of products, constant f32 matrices of at least ``least`` elements, become quantized constants.

    ``format`` is one of ``formats.FORMATS`` (packed blocks along the summed axis, and ``unpack``) or i8 (int8, and
    ``dequantize`` with a scale max/127 for each column of the result). Products stay as they are, and read the
    expanded weights: see ``fuse_dequantize``. A matrix that is not whole blocks or not finite stays. Raises GraphError.
    """
    if format != "i8" and format not in FORMATS:
        raise GraphError(f"there is no format '{format}'", hint=nearest(format, ["i8", *FORMATS]) or "formats are i8 " + " ".join(FORMATS))
    found = weights(graph)

    def visit(node: Node, env: Env) -> Rewrite | None:
        if node.name not in found or node.op != "const" or node.type.size < least:
            return None
        array, axis = node.value.array, found[node.name]
        if not np.isfinite(array).all():
            return None
        made = eight_bits(node, array, axis, env) if format == "i8" else packed(node, array if axis else array.T, axis, format, env)
        if made is None:
            return None
        stored = sum(one.type.nbytes for one in made if one.op == "const")
        return Rewrite("quantize-weights", made, f"{stored:,} bytes in place of {node.type.nbytes:,}; the values are rounded")

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


def fuse_dequantize(graph: Graph) -> Result:
    """Products read quantized weights themselves.

    - matmul(x, unpack(w).T) becomes packed_matmul(x, w), which expands a block at a time and stores none;
    - matmul(x, dequantize(q, s)) becomes matmul(x, cast(q)) * s, where s is the same all along the summed axis: the scale
      moves out of the sum and is multiplied once a result, as an epilogue;
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
    for side in sides(node, env) if node.op == "matmul" else []:
        if side.node.op == "unpack":
            return fuse_unpack(node, side, env)
        if side.node.op == "dequantize":
            return move_scale(node, side, env)
    return None


def fuse_unpack(node: Node, side: Side, env: Env) -> Rewrite | str:
    if (reason := untransposed(node, side, env)) is not None:
        return f"'{side.node.name}' stays unpacked: {reason}"
    x, blocks, format = env.defs[side.other], env.defs[side.node.inputs[0]], side.node.value.format
    made = emit(env, node.name, "packed_matmul", x, blocks, format=format)
    return Rewrite("fuse-dequantize", (made,), f"{side.node.type.nbytes:,} bytes of expanded weights are not written and read again")


def scale_of(side: Side, env: Env) -> Node | str:
    """The scale of a dequantized operand, if it can move out of the sum, or why it cannot."""
    q, scale = (env.defs[name] for name in side.node.inputs)
    shape = (1,) * (2 - len(scale.type.shape)) + scale.type.shape
    if len(q.type.shape) != 2 or q.type.shape != side.node.type.shape:
        return f"'{side.node.name}' stays: its scale has more axes than the numbers"
    if shape[side.summed] != 1:
        return (f"'{side.node.name}' stays: its scale {scale.type} changes along the summed axis {side.summed}, "
                "so each term of the sum has its own factor")
    return scale


def move_scale(node: Node, side: Side, env: Env) -> Rewrite | str:
    scale = scale_of(side, env)
    if isinstance(scale, str):
        return scale
    wide = emit(env, f"{node.name}.wide", "cast", env.defs[side.node.inputs[0]], dtype=scale.type.dtype)
    product, factor, after = around(node, side, wide, env.defs[side.other], scale, env)
    return Rewrite("move-scale", (wide, product, factor, after),
                   f"{side.node.type.size:,} multiplications by a scale become {node.type.size:,}: it is the same for all terms of a sum")


def around(node: Node, side: Side, weight: Node, x: Node, scale: Node, env: Env) -> tuple[Node, Node, Node]:
    """The product with ``weight`` in the place of ``side``, the scale in the result's shape, and what multiplies by it."""
    flags, operands = dict(node.value), [x, x]
    flags["transpose_b" if side.place else "transpose_a"] = side.summed == side.place
    operands[side.place] = weight
    product = emit(env, f"{node.name}.sum", "matmul", *operands, **flags)
    column = (1,) if side.place == 0 and len(x.type.shape) > 1 else ()
    factor = emit(env, f"{node.name}.scale", "reshape", scale, shape=(scale.type.size, *column))
    after = Node(node.name, "mul", (product.name, factor.name), None, Type(factor.type.dtype, node.type.shape))
    return product, factor, after


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
    return Rewrite("take-packed", (length, flat, tile, place, first, taken, wide, at, picked,
                                   make("reshape", picked, shape=node.type.shape)), why)


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
    return Rewrite("take-packed", tuple(made), f"of {table.type.shape[0]:,} rows only those that are taken are expanded")


def explain_dequantize(graph: Graph, name: str) -> str:
    """One sentence: what ``fuse_dequantize`` does with the product or take of this name, and if nothing, why. Raises GraphError."""
    nodes = defs(graph)
    if name not in nodes:
        raise GraphError(f"no value is named '{name}'", hint=nearest(name, nodes) or "name a matmul or a take")
    env = Env(graph)
    env.defs.update(nodes)
    made = fuse_one(nodes[name], env)
    return f"'{name}' is fused: {made.why}." if isinstance(made, Rewrite) else f"{made}." if made else f"'{name}' reads nothing quantized."


def exact_scale(scale: np.ndarray, dtype: str) -> bool:
    """Is quantize(dequantize(q, s), s) = q for every integer q of this dtype and every scale in the array?

    With u half a unit in the last place, q * s and the quotient are each within a factor 1 ± u, if no product overflows
    or is subnormal; the result is within 2 |q| u of q, which rounding undoes as long as that is below 1/2. A subnormal
    scale would be exact in NumPy, but kernels that flush such numbers to 0 (``-ftz``, CuPy's default) would give 0 / 0.
    """
    facts, kind = np.iinfo(DTYPES[dtype]), np.finfo(scale.dtype)
    most = max(-int(facts.min), int(facts.max))
    if most * float(kind.eps) >= 0.5:
        return False
    size = np.abs(scale.astype(np.float64 if scale.dtype != np.float64 else np.longdouble))
    return bool(np.all((size >= float(kind.tiny)) & (size <= kind.max / most * (1 - kind.eps))))


def remove_quantize_pairs(graph: Graph) -> Result:
    """quantize(dequantize(q, s), s) is q, where s is a constant for which that is exact: see ``exact_scale``.

    With a scale of inf, NaN or 0, or one so large that q * s overflows, it is not. (The other way round,
    dequantize(quantize(x, s), s) is what rounding means, and never x.)
    """

    def visit(node: Node, env: Env) -> Rewrite | None:
        inner = env.defs[node.inputs[0]] if node.op == "quantize" else node
        if node.op != "quantize" or inner.op != "dequantize":
            return None
        q, scale, again = (env.defs[name] for name in (*inner.inputs, node.inputs[1]))
        if not (isinstance(scale.value, Const) and scale.value == again.value and node.type == q.type):
            return None
        if not exact_scale(scale.value.array, q.type.dtype):
            return None
        return Rewrite("quantize-pair", q.name, f"no {q.type.dtype} times this scale overflows or loses a digit that rounding needs")

    return rebuild(graph, visit)


LONGEST = 2**31 // 128**2 - 1  # terms of a sum of int8 products that int32 always holds


def quantizable(node: Node, env: Env) -> Side | None:
    """The side of an int8 weight whose product could be computed in integers."""
    for side in sides(node, env) if node.op == "matmul" else []:
        if side.node.op == "dequantize" and env.type(side.node.inputs[0]).dtype == "i8" and env.type(side.other).dtype == "f32":
            if isinstance(scale_of(side, env), Node) and side.node.type.shape[side.summed] <= LONGEST:
                return side
    return None


def activations(graph: Graph) -> tuple[str, ...]:
    """The values that meet an int8 weight in a product: what ``quantize_activations`` needs a scale for."""
    env = Env(graph)
    env.defs.update(defs(graph))
    found = [side.other for node in graph.nodes if (side := quantizable(node, env)) is not None]
    return tuple(dict.fromkeys(found))


def quantize_activations(graph: Graph, scales: dict[str, float]) -> Result:
    """Products of int8 weights in integers: matmul(x, dequantize(q, s)) becomes float(int32 sum of int8 products) * (s * scale of x).

    ``scales`` gives each activation's scale, as ``calibrate`` measures them; what is beyond 127 times that is clipped, and
    a product whose activation is not named stays. The int32 sums are exact.
    """

    def visit(node: Node, env: Env) -> Rewrite | None:
        side = quantizable(node, env)
        if side is None or side.other not in scales:
            return None
        of_x = constant(env, f"{side.other}.scale", np.array(scales[side.other], np.float32))
        few = emit(env, f"{side.other}.i8", "quantize", env.defs[side.other], of_x, dtype="i8")
        x, w = (emit(env, f"{node.name}.{letter}", "cast", one, dtype="i32")
                for letter, one in (("x", few), ("w", env.defs[side.node.inputs[0]])))
        product, factor, after = around(node, side, w, x, scale_of(side, env), env)
        number = emit(env, f"{node.name}.float", "cast", product, dtype="f32")
        both = emit(env, f"{node.name}.both", "mul", factor, of_x)
        made = (of_x, few, x, w, product, number, factor, both, Node(node.name, "mul", (number.name, both.name), None, node.type))
        return Rewrite("quantize-activations", made, "int8 times int8 is added up in int32, and scaled once")

    return rebuild(graph, visit)
