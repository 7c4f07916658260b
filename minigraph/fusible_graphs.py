"""Random graphs of what fusion is about: softmax, norms, products with their epilogues, attention, views, updates.

``fusible_sample(seed, index)`` is a graph, inputs for it, and which of them are donated; a function of the two numbers.
"""

from __future__ import annotations

import random

import numpy as np

from .formats import FORMATS, pack
from .ir import Graph
from .passes.sparsity import mask_24, mask_blocks
from .random_graphs import GROWN, Grower, random_inputs, random_outputs
from .sparse import compress_24, compress_blocks
from .types import DTYPES, Type

FLOATS = ("f32", "f64")
# Squares are frequent, and rows longer than a few vectors.
SIDES = (1, 1, 2, 2, 3, 3, 4, 5, 5, 7, 16, 17, 33, 40, 70, 100)
LONG = (130, 300, 700)  # longer than a tile of attention, than a block of threads
# Words of C and CUDA, macros of their headers, names of loops and helpers: a value may be called like any of these.
HOSTILE = (
    "float int double for if struct register linux unix INFINITY NAN M_PI int32_t uint8_t exp expf exp_f32 maximum_f32"
    " add_i32 f32_to_i32 i j k n t part lane row step first end tile slice sums v v1 memory status threadIdx blockIdx"
    " blockDim i4 kk ii at at_1 a.b a_b a.b.c main run_0 out x_i map_add parts logit sum other c total largest"
    " __syncthreads NULL errno stdin signbit isnan fmaxf y0 gamma block size word inputs"
).split()
UNARY = ("exp", "tanh", "neg", "abs", "sqrt", "sin", "log", "rsqrt", "erf", "floor", "sign", "expm1", "log1p")
BINARY = ("add", "add", "sub", "mul", "mul", "div", "maximum", "minimum", "pow", "mod")


class Fuser(Grower):
    """Grows graphs whose nodes want to be one launch, or look as if they could."""

    def __init__(self, rng: random.Random, name: str = "g"):
        super().__init__(rng, name)
        self.palette = [rng.choice(("f32", "f32", "f32", "f64")), rng.choice(("i32", "i8", "i64", "u8", "bool"))]
        self.names = rng.choice((self.names, self.names, "hostile"))
        self.leaves_are_inputs, self.most = 0.8, rng.choice((600, 600, 3000))
        self.sides = SIDES + LONG * (self.most == 3000)
        self.updated: set[str] = set()  # inputs that an update may overwrite

    def name(self, base: str) -> str:
        return self.builder.fresh(self.rng.choice(HOSTILE)) if self.names == "hostile" else super().name(base)

    def shape(self, rank: int | None = None) -> tuple[int, ...]:
        rank = self.rng.choice((0, 1, 2, 2, 3, 4)) if rank is None else rank
        side = self.rng.choice(self.sides)
        same = self.rng.choice((0.2, 0.2, 1))  # a square, a cube
        shape = [side if self.rng.random() < same else self.rng.choice(self.sides) for _ in range(rank)]
        while np.prod(shape, dtype=int) > self.most:
            shape[shape.index(max(shape))] = self.rng.choice((1, 2, 3))
        return tuple(shape)

    def some(self, rank: int = 1) -> str:
        """A float value of at least that rank."""
        return self.pick(FLOATS, rank)

    def number(self, x: str, value: float) -> str:
        """A constant to calculate with: mostly 0-d."""
        return self.const(np.full(self.rng.choice(((), (), (1,))), value, DTYPES[self.type(x).dtype]))

    def chain(self, *steps) -> str | None:
        """Emit (op, operand, …) one by one; ``...`` stands for the result before. None where one is refused."""
        value = None
        for op, *operands, attrs in ((*step, None) if not isinstance(step[-1], dict) else step for step in steps):
            value = self.emit(op, [value if one is ... else one for one in operands], attrs)
            if value is None:
                return None
        return value

    def axes(self, x: str) -> tuple[int, ...]:
        rank = len(self.type(x).shape)
        axes = self.rng.choice(
            ((rank - 1,), (-1,), (0,), tuple(a for a in range(rank) if self.rng.random() < 0.6) or (-1,))
        )
        return tuple(axis - rank if axis >= 0 and self.rng.random() < 0.2 else axis for axis in axes)

    def reduced(self, op: str, x: str | None, axes: tuple[int, ...], keep: float = 0.5) -> str | None:
        """A reduction that broadcasts again: by keepdims, or by a reshape; or, on purpose, along the wrong axis."""
        if x is None:
            return None
        shape, rank = self.type(x).shape, len(self.type(x).shape)
        if self.rng.random() < keep:
            return self.emit(op, [x], {"axis": axes, "keepdims": True})
        way = self.rng.random()
        value = self.emit(op, [x], {"axis": axes, "keepdims": False})
        if way < 0.3 or value is None:
            return value  # broadcasts from the right: along the wrong axis, where it fits at all
        kept = tuple(1 if axis in {one % rank for one in axes} else dim for axis, dim in enumerate(shape))
        value = self.emit("reshape", [value], {"shape": kept})
        return self.emit("broadcast_to", [value], {"shape": shape}) if way > 0.8 and value is not None else value


def softmax(grow: Fuser, x: str | None = None) -> str | None:
    x = grow.some() if x is None else x
    axes = grow.axes(x)
    e = grow.chain(("sub", x, grow.reduced("max", x, axes)), ("exp", ...))
    return grow.emit("div", [e, grow.reduced("sum", e, axes)])


def log_sum_exp(grow: Fuser) -> str | None:
    x = grow.some()
    axes = grow.axes(x)
    top = grow.reduced("max", x, axes)
    total = grow.reduced("sum", grow.chain(("sub", x, top), ("exp", ...)), axes)
    return grow.chain(("log", total), ("add", ..., top))


def rms_norm(grow: Fuser) -> str | None:
    x = grow.some()
    squares = grow.reduced("mean", grow.emit("mul", [x, x]), grow.axes(x))
    scale = grow.chain(("add", squares, grow.number(x, 1e-5)), ("rsqrt", ...))
    return grow.chain(("mul", x, scale), ("mul", ..., grow.partner(grow.type(x))))


def layer_norm(grow: Fuser) -> str | None:
    x = grow.some()
    axes = grow.axes(x)
    shifted = grow.emit("sub", [x, grow.reduced("mean", x, axes)])
    spread = grow.reduced("mean", grow.emit("mul", [shifted, shifted]), axes) if shifted else None
    root = grow.chain(("add", spread, grow.number(x, 1e-5)), ("sqrt", ...))
    y = grow.emit("div", [shifted, root])
    return y and grow.chain(("mul", y, grow.partner(grow.type(y))), ("add", ..., grow.partner(grow.type(y))))


def product(grow: Fuser) -> str | None:
    """matmul of few rows, mostly, and what follows it."""
    rng, x = grow.rng, grow.some()
    shape, dtype = grow.type(x).shape, grow.type(x).dtype
    out = rng.choice((1, 2, 5, 17, 40, 130))
    batch = [rng.choice((1, dim)) for dim in shape[:-2]]
    weights = rng.choice(
        ((shape[-1], out), (out, shape[-1]), (*batch, shape[-1], out), (2, shape[-1], out), (shape[-1],))
    )
    w = grow.leaf(Type(dtype, weights))
    if rng.random() < 0.2 and dtype in ("f32", "f64"):
        w = grow.emit("cast", [grow.leaf(Type(rng.choice(("i8", "u8", "i16", "i32")), weights))], {"dtype": dtype})
    if rng.random() < 0.3 and len(weights) > 1:
        w = grow.emit("transpose", [w], {"perm": (*range(len(weights) - 2), len(weights) - 1, len(weights) - 2)})
    y = grow.emit("matmul", [x, w] if rng.random() < 0.8 else [w, x])
    return y and epilogue(grow, y)


def stored_product(grow: Fuser) -> str | None:
    """A product whose weights are packed, or have zeros that are not stored, and what follows it."""
    rng = grow.rng
    rows, terms = rng.choice((16, 32, 48)), rng.choice((32, 32, 64))
    shape = (*rng.choice(((), (0,), (1,), (2,), (3,), (2, 3))), terms)
    x = grow.leaf(Type("f32", shape if rng.random() < 0.8 else shape[::-1]))
    if grow.type(x).shape != shape:
        x = grow.emit("transpose", [x], {"perm": tuple(range(len(shape)))[::-1]})
    if rng.random() < 0.2:
        x = grow.emit("tanh", [x])
    w = np.array([rng.gauss(0, 1) for _ in range(rows * terms)], np.float32).reshape(rows, terms)
    return (y := rng.choice(STORED)(grow, x, w)) and epilogue(grow, y)


def packed(grow: Fuser, x: str, w: np.ndarray) -> str | None:
    format = grow.rng.choice(tuple(FORMATS))
    return grow.emit("packed_matmul", [x, grow.const(pack(w, format))], {"format": format})


def two_of_four(grow: Fuser, x: str, w: np.ndarray) -> str | None:
    stored = compress_24(np.where(mask_24(w), w, np.float32(0)))
    return grow.emit("sparse_matmul", [x, *map(grow.const, stored)])


def some_blocks(grow: Fuser, x: str, w: np.ndarray) -> str | None:
    """Now and then an index leads outside."""
    rng, columns = grow.rng, grow.rng.choice((1, 4, 16, 32))
    stored = compress_blocks(np.where(mask_blocks(w, rng.choice((0, 0.3, 1)), columns), w, np.float32(0)), columns)
    wrong = stored[rng.choice((1, 2))]
    if wrong.size and rng.random() < 0.1:
        wrong[rng.randrange(wrong.size)] = rng.choice((-1, 1000, -(2**31), 2**31 - 1))
    return grow.emit("block_matmul", [x, *map(grow.const, stored)])


STORED = (packed, packed, two_of_four, some_blocks)


def epilogue(grow: Fuser, y: str) -> str | None:
    rng = grow.rng
    if rng.random() < 0.7:
        y = grow.emit("add", [y, grow.partner(grow.type(y))]) or y
    if rng.random() < 0.3:
        y = grow.emit("mul", [y, grow.emit("tanh", [y])]) or y
    act = rng.choice(("relu", "silu", "gelu", "none"))
    if act == "relu":
        y = grow.emit("maximum", [y, grow.number(y, 0.0)])
    elif act == "silu":
        e = grow.chain(("neg", y), ("exp", ...), ("add", ..., grow.number(y, 1.0)))
        y = grow.emit("div", [y, e])
    elif act == "gelu":
        one, half = grow.number(y, 1.0), grow.number(y, 0.5)
        y = grow.chain(("erf", y), ("add", ..., one), ("mul", ..., y), ("mul", ..., half))
    return softmax(grow, y) if y and rng.random() < 0.1 and grow.type(y).shape else y


def chain(grow: Fuser) -> str | None:
    """Element-wise nodes one after the other, over broadcasts, relabels, and values that are used twice."""
    rng = grow.rng
    y = grow.pick(rng.choice((FLOATS, FLOATS, ("i32", "i8", "i64", "u8"))))
    first = y
    for _ in range(rng.randrange(2, 9)):
        type, dice = grow.type(y), rng.random()
        if dice < 0.15:
            where = rng.randrange(len(type.shape) + 1)
            made = grow.emit("reshape", [y], {"shape": type.shape[:where] + (1,) + type.shape[where:]})
        elif dice < 0.3:
            made = grow.emit(rng.choice(BINARY), [y, first] if rng.random() < 0.5 else [first, y])
        elif dice < 0.4:
            test = grow.emit(rng.choice(("lt", "ge", "eq")), [y, grow.partner(type)])
            made = grow.emit("where", [test, y, grow.partner(type)])
        elif dice < 0.6:
            made = grow.emit(rng.choice(UNARY), [y])
        else:
            made = grow.emit(rng.choice(BINARY), [y, grow.partner(type)])
        y = made or y
    return y


def tangle(grow: Fuser) -> str | None:
    """Reductions along any axes of a square or a cube, and element-wise nodes of them, their rows and their columns."""
    rng, side = grow.rng, grow.rng.choice((2, 3, 5, 17))
    shape = (side,) * (rng.choice((2, 2, 3)) if side < 17 else 2)
    shapes = shape, rng.choice(((side,), (side, 1))), rng.choice((shape, (side,)))
    pool = [grow.leaf(Type(grow.palette[0], one)) for one in shapes]
    made = pool[0]
    for _ in range(rng.randrange(3, 10)):
        x, dice = made if rng.random() < 0.5 else rng.choice(pool), rng.random()
        rank = len(grow.type(x).shape)
        if dice < 0.35 and rank:
            axes = (rng.randrange(rank),) if rng.random() < 0.8 else tuple(range(rank))
            attrs = {"axis": axes, "keepdims": rng.random() < 0.5}
            new = grow.emit(rng.choice(("sum", "max", "mean", "min")), [x], attrs)
        elif dice < 0.5:
            new = grow.emit(rng.choice(("exp", "neg", "tanh", "abs")), [x])
        elif dice < 0.6:
            old = grow.type(x).shape
            new = grow.emit("reshape", [x], {"shape": rng.choice(((*old, 1), tuple(dim for dim in old if dim > 1)))})
        else:
            new = grow.emit(rng.choice(("add", "sub", "mul", "maximum", "div")), rng.sample((x, rng.choice(pool)), 2))
        made = new or made
        pool.append(made)
    for other in pool:
        made = (rng.random() < 0.5 and grow.emit("add", [made, other])) or made
    return made


def views(grow: Fuser) -> str | None:
    """Views of views, of which some need a copy, and a little work between them."""
    rng = grow.rng
    y = (
        grow.pick(DTYPES, 1)
        if rng.random() < 0.4
        else grow.leaf(Type(grow.dtype(DTYPES), grow.shape(rng.choice((2, 3)))))
    )
    for _ in range(rng.randrange(2, 5)):
        y = grow.emit(rng.choice(("transpose", "transpose", "slice", "broadcast_to")), [y]) or y
        for op in rng.choice((("reshape",), ("reshape", "work"), ("work",), ())):
            y = grow.emit(*(("maximum", [y, y]) if op == "work" else (op, [y]))) or y
    return y


def update(grow: Fuser) -> str | None:
    """A cache that is read, updated at a run-time position, updated again, and read through views."""
    rng, most = grow.rng, grow.rng.choice((2, 4, 8))
    dtype = rng.choice(("f32", "f32", "f16", "i32"))
    cache = grow.builder.input(grow.name("cache"), Type(dtype, (most, *grow.shape(rng.choice((0, 1, 2))))))
    grow.by_dtype[dtype].append(cache)
    if rng.random() < 0.8:
        grow.updated.add(cache)
    now = cache
    for _ in range(rng.randrange(1, 4)):
        shape = grow.type(now).shape
        if rng.random() < 0.2:
            now = grow.emit(rng.choice(("reshape", "transpose", "slice")), [now]) or now
            continue
        axis = rng.randrange(len(shape)) if shape else 0
        if not shape:
            break
        part = (*shape[:axis], rng.randrange(shape[axis] + 1), *shape[axis + 1 :])
        if rng.random() < 0.2:
            piece = grow.emit("slice", [rng.choice((cache, now))])
            piece = piece if piece and grow.type(piece).shape[:axis] == part[:axis] else None
        else:
            piece = grow.leaf(Type(dtype, part))
        start = grow.builder.input(grow.name("pos"), Type(rng.choice(("i32", "i64", "u8"))))
        now = grow.emit("update_slice", [now, piece, start], {"axis": axis}) or now
        if rng.random() < 0.3:
            grow.random_node(rng.choice(("reshape", "slice", "transpose", "sum", "print")))
    return now


def attention(grow: Fuser) -> str | None:
    """softmax(scale * q @ k + mask) @ v, with one of its details changed now and then."""
    rng, dtype = grow.rng, grow.palette[0]
    batch = rng.choice(((), (), (2,), (2, 3)))
    rows, depth, width = rng.choice((1, 1, 2, 3, 5)), rng.choice((1, 3, 8, 17)), rng.choice((1, 4, 5, 20))
    length = rng.choice((1, 2, 5, 5, 17, *(LONG if grow.most == 3000 and not batch else ())))
    if rng.random() < 0.2:
        rows = length = width = 5 if length > 17 else length
    flip = rng.random() < 0.5
    q = grow.leaf(Type(dtype, (*batch, rows, depth)))
    k = grow.leaf(Type(dtype, (*batch, length, depth) if flip else (*batch, depth, length)))
    v = grow.leaf(Type(dtype, (*(batch if rng.random() < 0.8 else (rng.choice((1, 2)), *batch)), length, width)))
    s = grow.emit("matmul", [q, k], {"transpose_b": flip})
    for step in ("mul", "add", "where"):
        if s is None or rng.random() < 0.4:
            continue
        if step == "where":
            mask = grow.leaf(Type("bool", rng.choice(((length,), (rows, length)))))
            s = grow.emit("where", [mask, s, grow.number(s, rng.choice((-np.inf, -1e9)))])
        else:
            s = grow.emit(step, [s, rng.choice((grow.number(s, 0.3), grow.partner(grow.type(s))))])
    if s is None:
        return None
    axis = (-1,) if rng.random() < 0.9 else grow.axes(s)
    e = grow.chain(("sub", s, grow.reduced("max", s, axis, 0.95)), ("exp", ...))
    shares = grow.emit("div", [e, grow.reduced("sum", e, axis, 0.95)])
    if shares and rng.random() < 0.15:
        shares = grow.emit("reshape", [shares]) or shares
    return grow.emit("matmul", [shares, v], {} if rng.random() < 0.9 else None)


PARTS = (
    softmax, log_sum_exp, rms_norm, layer_norm, product, product, chain, chain, tangle, tangle, views, views, update,
    attention, attention, stored_product,
)  # fmt: skip
BETWEEN = (
    "print", "random", "assert_finite", "sum", "max", "mean", "any", "all", "prod", "min", "concat", "pad", "take",
    "matmul",
)  # fmt: skip


def fusible_graph(rng: random.Random) -> tuple[Graph, frozenset[str]]:
    """A valid graph of a few such parts, and the inputs that may be donated."""
    grow = Fuser(rng, rng.choice(("g", "loss", "model.layer_1")))
    grow.leaf(Type(grow.palette[0], grow.shape(rng.choice((1, 2, 2, 3)))))
    made = None
    for _ in range(rng.choice((1, 1, 2, 3))):
        made = rng.choice(PARTS)(grow) or made
        if rng.random() < 0.5:
            grow.random_node(rng.choice(BETWEEN if rng.random() < 0.7 else GROWN))
    outputs = {"y": made} if made and rng.random() < 0.5 else random_outputs(rng, grow)
    return grow.builder.build(outputs), frozenset(grow.updated)


def fusible_sample(seed: int, index: int) -> tuple[Graph, dict[str, np.ndarray], frozenset[str]]:
    """Graph ``index`` of ``seed``, inputs for it, and which are donated; most values are such that sums round."""
    rng = random.Random(f"fusible {seed}/{index}")
    graph, donate = fusible_graph(rng)
    inputs = random_inputs(rng, graph)
    ordinary = rng.random() < 0.7
    for name, array in inputs.items():
        if array.dtype.kind == "f" and ordinary:
            inputs[name] = np.array([rng.gauss(0, 1) for _ in range(array.size)], array.dtype).reshape(array.shape)
        elif array.shape == () and array.dtype.kind in "iu":
            inputs[name] = np.array(rng.choice((0, 0, 0, 1, 1, 2, 3, 5)), array.dtype)  # a position, mostly in range
    return graph, inputs, donate
