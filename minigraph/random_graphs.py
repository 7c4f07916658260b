"""Random graphs: every one valid, over every row of the op table, with the values on which wrong rewrites fail.

``sample(seed, index)`` is a graph with inputs, a function of the two numbers alone. ``fuzz`` and the tests draw from here.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import product

import numpy as np

from .errors import GraphError
from .ir import Builder, Graph, Node
from .ops import DISTRIBUTIONS, OPS, Kind, infer, make_attrs
from .passes.rules import RULES, Rule
from .passes.simplify import Hole, Literal, parse_pattern
from .text import parse_element
from .types import DTYPES, TOKEN, Const, Type, broadcast, type_of

# ---- values -----------------------------------------------------------------------------------------------------


def special_values(dtype: str) -> np.ndarray:
    """The values on which wrong rewrites fail: zeros of both signs, infinities, NaN, the ends of the range."""
    kind = DTYPES[dtype]
    if kind.kind == "b":
        return np.array([False, True])
    if kind.kind == "f":
        info = np.finfo(kind)
        return np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 2.0, 0.5, 3.0, -7.0, 1 / 3, 0.1, -2.5,
                         info.tiny, -info.tiny, info.smallest_subnormal, -3 * info.smallest_subnormal,
                         info.max, info.min, 1 + float(info.eps)], kind)
    info = np.iinfo(kind)
    values = [0, 0, 1, 1, 2, 3, 7, info.bits - 1, info.bits, info.max, info.max - 1, info.min, info.min + 1]
    return np.array(values + [-1, -1, -2, -7] * (info.min < 0), kind)


def ordinary_values(dtype: str) -> np.ndarray:
    kind = DTYPES[dtype]
    if kind.kind == "b":
        return np.array([False, True])
    if kind.kind == "f":
        return np.array([(i - 12) * 0.37 for i in range(25)], kind)
    return np.arange(0 if kind.kind == "u" else -8, 9).astype(kind)


SPECIAL = {dtype: special_values(dtype) for dtype in DTYPES}
ORDINARY = {dtype: ordinary_values(dtype) for dtype in DTYPES}


def random_array(rng: random.Random, type: Type) -> np.ndarray:
    """Special values, ordinary ones, or one value throughout."""
    pool = (ORDINARY if rng.random() < 0.3 else SPECIAL)[type.dtype]
    count = 1 if rng.random() < 0.2 else type.size
    picks = np.array(rng.choices(range(len(pool)), k=count), np.intp)
    return pool[picks].reshape(type.shape) if count == type.size else np.full(type.shape, pool[picks[0]])


def random_inputs(rng: random.Random, graph: Graph) -> dict[str, np.ndarray]:
    return {node.name: random_array(rng, node.type) for node in graph.inputs}


# ---- graphs -----------------------------------------------------------------------------------------------------

DIMS = (0, 1, 1, 2, 2, 3, 3, 5, 5, 0, 1, 1, 2, 2, 3, 3, 5, 17)  # 17: longer than a vector register, and not even
MOST = 300  # elements of one value
DTYPE_WEIGHTS = {"f32": 8, "f64": 3, "f16": 2, "i32": 3, "i64": 1, "i16": 1, "i8": 2, "u8": 2, "u16": 1, "u32": 1,
                 "u64": 1, "bool": 1}  # fmt: skip
INTS = tuple(dtype for dtype in DTYPES if dtype[0] in "iu")
FLOATS = ("f32", "f64", "f16")
NEGATIVE_IS_AN_ERROR = ("i8", "i16", "i32", "i64")  # as an exponent


def accepted(op: str) -> tuple[str, ...]:
    """The dtypes that an operation of one dtype takes, asked of its own row."""
    facts = OPS[op]
    count = int(facts.arity[0])

    def takes(dtype: str) -> bool:
        try:
            return bool(facts.infer((Type(dtype),) * count, None))
        except GraphError:
            return False

    return tuple(filter(takes, DTYPES))


class Grower:
    """Grows a graph node by node; every node is valid, because its own row is asked for its type."""

    def __init__(self, rng: random.Random, name: str = "g"):
        self.rng, self.builder, self.token = rng, Builder(name), None
        self.by_dtype: dict[str, list[str]] = {dtype: [] for dtype in DTYPES}
        self.palette = rng.choices(list(DTYPE_WEIGHTS), list(DTYPE_WEIGHTS.values()), k=3)
        self.names = rng.choice(("ops", "letters", "traps"))
        self.leaves_are_inputs = 0.3  # the share
        self.most = MOST

    # -- names, leaves, and choosing among what is there

    def name(self, base: str) -> str:
        """Plain names, short ones, or names that a pass would like to take for its own helpers."""
        if self.names == "letters":
            base = f"v{len(self.builder.nodes)}"
        elif self.names == "traps" and self.builder.nodes and self.rng.random() < 0.5:
            base = f"{next(reversed(self.builder.nodes))}.{self.rng.choice(('c', 'mul', 'c.1', '1'))}"
            base = base if len(base) < 40 else "t"
        return self.builder.fresh(base)

    def keep(self, node: Node) -> str:
        self.builder.add(replace(node, origin=(f"model.py:{len(self.builder.nodes)}",)))
        if node.type.dtype != TOKEN:
            self.by_dtype[node.type.dtype].append(node.name)
        return node.name

    def type(self, name: str) -> Type:
        return self.builder.nodes[name].type

    def const(self, array: np.ndarray) -> str:
        return self.keep(Node(self.name("c"), "const", (), Const.of(array), type_of(array)))

    def leaf(self, type: Type, constant: bool = False) -> str:
        """A new input or a new constant."""
        if not constant and self.rng.random() < self.leaves_are_inputs:
            return self.keep(Node(self.name("x"), "input", (), None, type))
        return self.const(random_array(self.rng, type))

    def shape(self, rank: int | None = None) -> tuple[int, ...]:
        rank = self.rng.choice((0, 1, 1, 2, 2, 3)) if rank is None else rank
        return tuple(self.rng.choice(DIMS) for _ in range(rank))

    def dtype(self, dtypes: Iterable[str]) -> str | None:
        """One of these dtypes, of the graph's own palette where possible."""
        dtypes = tuple(dtypes)
        ours = [dtype for dtype in self.palette if dtype in dtypes]
        return self.rng.choice(ours if ours and self.rng.random() < 0.9 else dtypes) if dtypes else None

    def pick(self, dtypes: Iterable[str], rank: int | None = None) -> str:
        """A value of one of these dtypes, with that rank or more; rather a late one, sometimes a new leaf."""
        dtype = self.dtype(dtypes)
        there = [name for name in self.by_dtype[dtype] if rank is None or len(self.type(name).shape) >= rank]
        if not there or self.rng.random() < 0.15:
            return self.leaf(Type(dtype, self.shape(None if rank is None else self.rng.choice((rank, rank + 1)))))
        return there[max(self.rng.randrange(len(there)), self.rng.randrange(len(there)))]

    def partner(self, type: Type, constant: bool = False) -> str:
        """A value of this dtype whose shape broadcasts with this one."""
        there = [name for name in self.by_dtype[type.dtype]
                 if fits(type.shape, self.type(name).shape)
                 and not (constant and self.builder.nodes[name].op != "const")]
        if there and self.rng.random() < 0.6:
            return self.rng.choice(there)
        keep = self.rng.randrange(len(type.shape) + 1)
        shape = tuple(1 if self.rng.random() < 0.2 else dim for dim in type.shape[keep:])
        return self.leaf(Type(type.dtype, shape), constant)

    # -- nodes

    def emit(self, op: str, inputs: Iterable[str], attrs: dict | None = None) -> str | None:
        """Append a node, or return None where its row refuses it."""
        facts, inputs = OPS[op], tuple(inputs)
        if None in inputs:  # an operand was refused
            return None
        try:
            types = tuple(self.type(name) for name in inputs)
            value = make_attrs(facts, self.attributes(op, types) if attrs is None else attrs)
            type = infer(facts, types, value)
        except GraphError:
            return None
        if type.dtype != TOKEN and type.size > self.most:
            return None
        return self.keep(Node(self.name(op), op, inputs, value, type))

    def random_node(self, op: str) -> str | None:
        """A node of this operation, with operands and attributes that suit it."""
        rng, kind = self.rng, OPS[op].kind
        if kind is Kind.RANDOM:
            return self.emit(op, ())
        if kind is Kind.EFFECT:
            return self.effect(op)
        if op in ("floor_div", "mod", "pow", "left_shift", "right_shift") or op in ACCEPTED:
            x = self.pick(ACCEPTED[op], 1 if op in ALONG_AXIS and rng.random() < 0.95 else None)
            inputs = [x] if OPS[op].arity == (1, 1) else [x, self.partner(self.type(x))]
            if op == "pow" and self.type(x).dtype in NEGATIVE_IS_AN_ERROR:
                shape = broadcast(self.type(x).shape, self.type(inputs[1]).shape)[-1:]
                inputs[1] = self.const(np.full(shape, rng.choice((0, 1, 2, 2, 3)), DTYPES[self.type(x).dtype]))
            if len(inputs) == 2 and rng.random() < 0.3:
                inputs.reverse()
            return self.emit(op, inputs)
        return self.emit(op, OPERANDS[op](self))

    def effect(self, op: str) -> str | None:
        x = self.pick(DTYPES if op == "print" else [dtype for dtype in DTYPES if dtype != "bool"])
        if op == "assert_finite" and self.rng.random() < 0.8:  # mostly of something that is finite
            x = self.const(np.array(self.rng.randrange(5), DTYPES[self.type(x).dtype]))
        inputs = (x, x) if op == "assert_close" else (x,)
        token = self.emit(op, inputs + ((self.token,) if self.token else ()))
        self.token = token or self.token
        return token

    def again(self) -> str | None:
        """An equation that is there already, under another name; commuting operands are swapped."""
        computed = [node for node in self.builder.nodes.values() if OPS[node.op].kind not in (Kind.INPUT, Kind.EFFECT)]
        if not computed:
            return None
        node = self.rng.choice(computed)
        inputs = node.inputs[::-1] if OPS[node.op].commutative and self.rng.random() < 0.5 else node.inputs
        return self.keep(replace(node, name=self.name(node.op), inputs=inputs))

    def attributes(self, op: str, types: tuple[Type, ...]) -> dict:
        """Attributes that suit operands of these types, chosen at random."""
        return ATTRIBUTES[op](self.rng, types) if op in ATTRIBUTES else {}

    # -- what the rules look for

    def plant(self, rule: Rule) -> str | None:
        """The left-hand side of a rule, over values that are there; None where the dice do not allow it."""
        domain = self.rng.choice(rule.domain)
        self.goal = self.dtype(dtype for dtype in DTYPES if Type(dtype).domain == domain)
        return self.instantiate(parse_pattern(rule.pattern), self.goal, {}, [])

    def hole(self, hole: Hole, dtype: str, shapes: list) -> str:
        """A value for a hole: mostly one whose shape suits the holes before it."""
        if hole.constant or self.rng.random() < 0.8 or not self.by_dtype[dtype]:
            return self.partner(Type(dtype, shapes[-1] if shapes else self.shape()), hole.constant)
        return self.rng.choice(self.by_dtype[dtype])

    def instantiate(self, part, dtype: str, holes: dict[str, str], shapes: list) -> str | None:
        if isinstance(part, Hole):
            if part.name not in holes:
                holes[part.name] = self.hole(part, dtype, shapes)
                shapes.append(self.type(holes[part.name]).shape)
            return holes[part.name]
        if isinstance(part, Literal):
            try:
                element = parse_element(part.text, dtype)
            except GraphError:
                return None
            shape = self.rng.choice(((), (), (1,), shapes[-1] if shapes else ()))
            return self.const(np.full(shape, element, DTYPES[dtype]))
        dtypes = [dtype] * len(part.args)
        if part.op == "where":
            dtypes[0] = "bool"
        elif part.op == "cast":
            dtypes[0] = self.rng.choice((dtype, self.goal, self.rng.choice(list(DTYPES))))
        inputs = [self.instantiate(arg, *rest) for arg, rest in zip(part.args, ((d, holes, shapes) for d in dtypes))]
        if None in inputs:
            return None
        if OPS[part.op].commutative and self.rng.random() < 0.5:
            inputs.reverse()
        return self.emit(part.op, inputs, {"dtype": dtype} if part.op == "cast" else None)


def fits(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    return all(x == y or x == 1 or y == 1 for x, y in zip(reversed(a), reversed(b)))


ACCEPTED = {row.name: accepted(row.name) for row in OPS.values()
            if row.kind is Kind.ELEMENTWISE and row.name not in ("where", "cast", "quantize", "dequantize")}
ACCEPTED |= {op: tuple(DTYPES) for op in ("cast", "sort", "argmax", "argmin", "reshape", "transpose", "broadcast_to",
                                          "slice")}  # fmt: skip
ACCEPTED |= {op: tuple(dtype for dtype in DTYPES if dtype != "bool") for op in ("sum", "prod", "max", "min", "cumsum")}
ACCEPTED |= {"mean": FLOATS, "any": ("bool",), "all": ("bool",)}
ALONG_AXIS = ("argmax", "argmin", "cumsum", "sort")

# ---- operands and attributes, by operation ------------------------------------------------------------------------


def where_operands(grow: Grower):
    x = grow.pick(DTYPES)
    y = grow.partner(grow.type(x))
    return grow.partner(Type("bool", broadcast(grow.type(x).shape, grow.type(y).shape))), x, y


def quantize_operands(grow: Grower):
    x = grow.pick(FLOATS)
    return x, grow.partner(grow.type(x))


def dequantize_operands(grow: Grower):
    q = grow.pick(INTS)
    return q, grow.partner(Type(grow.dtype(FLOATS), grow.type(q).shape))


def matmul_operands(grow: Grower):
    """Mostly an existing operand and a leaf that fits it; which of the two is transposed is left to ``attributes``."""
    a = grow.pick([dtype for dtype in DTYPES if dtype != "bool"], 1)
    shape = grow.type(a).shape
    other = grow.shape(1)
    b = grow.rng.choice(((shape[-1],), (shape[-1], *other), (shape[-1], *other), (*other, shape[-1]),
                         (*shape[:-2], shape[-1], *other), shape))  # fmt: skip
    if len(b) == 2 and grow.rng.random() < 0.3:  # folding this transpose changes the strides, and so the rounding
        return a, grow.emit("transpose", [grow.leaf(Type(grow.type(a).dtype, b[::-1]), True)], {"perm": (1, 0)})
    there = [name for name in grow.by_dtype[grow.type(a).dtype] if grow.type(name).shape == b]
    return a, grow.rng.choice(there) if there and grow.rng.random() < 0.7 else grow.leaf(Type(grow.type(a).dtype, b))


def conv2d_operands(grow: Grower):
    rng, dtype = grow.rng, grow.dtype(FLOATS)
    kernel = (rng.choice((1, 2, 4)), rng.choice((0, 1, 2)), rng.choice((1, 2)), rng.choice((1, 3)))
    image = (rng.choice((0, 1, 2)), kernel[1] * rng.choice((1, 1, 2)), rng.choice((2, 3)), rng.choice((3, 5)))
    return grow.leaf(Type(dtype, image)), grow.leaf(Type(dtype, kernel))


def concat_operands(grow: Grower):
    x = grow.pick(DTYPES, 1)
    type = grow.type(x)
    same = [name for name in grow.by_dtype[type.dtype] if grow.type(name) == type]
    return [x, *(grow.rng.choice(same) for _ in range(grow.rng.randrange(3)))]


def pad_operands(grow: Grower):
    x = grow.pick(DTYPES)
    return x, grow.leaf(Type(grow.type(x).dtype))


def take_operands(grow: Grower):
    x = grow.pick(DTYPES, 1)
    least = min(grow.type(x).shape)  # whatever the axis will be
    low, shape = -least if grow.rng.random() < 0.3 else 0, grow.rng.choice(((), (2,), (3,), (2, 2), (0,)))
    shape = shape if least else (0,)
    picks = [grow.rng.randrange(low, least) for _ in range(math.prod(shape))]
    dtype = "i64" if low or grow.rng.random() < 0.5 else grow.rng.choice(("u8", "i32")) if least < 256 else "i32"
    return x, grow.const(np.array(picks, DTYPES[dtype]).reshape(shape))


def update_slice_operands(grow: Grower):
    x = grow.pick(DTYPES, 1)
    type = grow.type(x)
    length = grow.rng.randrange(type.shape[0] + 1)
    update = grow.partner(Type(type.dtype, (length, *type.shape[1:])))
    start = grow.rng.randrange(type.shape[0] - length + 1)
    return x, update, grow.const(np.array(start, DTYPES[grow.rng.choice(("i32", "i64", "u8")) if start < 256 else "i64"]))


OPERANDS: dict[str, Callable] = {
    "where": where_operands, "quantize": quantize_operands, "dequantize": dequantize_operands, "matmul": matmul_operands,
    "conv2d": conv2d_operands, "concat": concat_operands, "pad": pad_operands, "take": take_operands,
    "update_slice": update_slice_operands,
}  # fmt: skip


def some_axes(rng: random.Random, types) -> dict:
    rank = len(types[0].shape)
    axes = [axis for axis in range(rank) if rng.random() < 0.6]
    if all(types[0].shape) and not axes and rank:
        axes = [rng.randrange(rank)]
    rng.shuffle(axes)
    return {"axis": tuple(axis - rank * (rng.random() < 0.2) for axis in axes), "keepdims": rng.random() < 0.4}


def one_axis(rng: random.Random, types) -> dict:
    rank = max(1, len(types[0].shape))
    return {"axis": rng.randrange(-rank, rank)}


def new_shape(rng: random.Random, types) -> dict:
    size, shape = types[0].size, []
    if size == 0:
        shape = list(types[0].shape)
        rng.shuffle(shape)
        return {"shape": shape}
    while size > 1 or (len(shape) < 4 and rng.random() < 0.2):
        dim = rng.choice([dim for dim in range(1, size + 1) if size % dim == 0])
        shape.append(dim)
        size //= dim
    return {"shape": rng.choice((shape, shape, list(types[0].shape)))}


def permutation(rng: random.Random, types) -> dict:
    axes = list(range(len(types[0].shape)))
    if rng.random() < 0.8:
        rng.shuffle(axes)
    return {"perm": axes}


def wider_shape(rng: random.Random, types) -> dict:
    shape = [rng.choice((1, 2, 3)) if dim == 1 else dim for dim in types[0].shape]
    return {"shape": [rng.choice(DIMS) for _ in range(rng.choice((0, 0, 1)))] + shape}


def some_slice(rng: random.Random, types) -> dict:
    start, stop, step = [], [], []
    for dim in types[0].shape:
        low, high = sorted((rng.randrange(dim + 1), rng.randrange(dim + 1)))
        one = rng.choice(((0, dim, 1), (0, dim, 1), (low, high, 1), (low, high, 2), (high - 1, low - 1, -1), (dim - 1, -1, -2)))
        for values, value in zip((start, stop, step), one):
            values.append(value)
    return {"start": start, "stop": stop} if set(step) <= {1} and rng.random() < 0.5 else \
        {"start": start, "stop": stop, "step": step}


def some_padding(rng: random.Random, types) -> dict:
    return {side: [rng.choice((0, 0, 1, 2)) for _ in types[0].shape] for side in ("low", "high")}


def conv2d_attributes(rng: random.Random, types) -> dict:
    x, kernel = types[0].shape, types[1].shape
    return {"stride": rng.choice(((1, 1), (2, 1), (1, 3))), "padding": rng.choice(((0, 0, 0, 0), (1, 1, 0, 2), (0, 1, 1, 1))),
            "groups": x[1] // kernel[1] if len(x) == len(kernel) == 4 and kernel[1] else 1}


def matmul_attributes(rng: random.Random, types) -> dict:
    """Transposes under which the operands fit, if there are any."""
    ways = [dict(transpose_a=a, transpose_b=b) for a, b in product((False, True), repeat=2)]
    rng.shuffle(ways)
    for way in ways:
        try:
            infer(OPS["matmul"], types, make_attrs(OPS["matmul"], way))
            return way
        except GraphError:
            pass
    return {}


def random_attributes(rng: random.Random, types) -> dict:
    return {"shape": [rng.choice(DIMS) for _ in range(rng.choice((0, 1, 2)))], "dtype": rng.choice(("f32", "f64")),
            "dist": rng.choice(DISTRIBUTIONS), "site": rng.randrange(4)}


ATTRIBUTES: dict[str, Callable] = {
    "cast": lambda rng, types: {"dtype": rng.choice(list(DTYPES))},
    "quantize": lambda rng, types: {"dtype": rng.choice(INTS)},
    **dict.fromkeys(("sum", "prod", "mean", "max", "min", "any", "all"), some_axes),
    **dict.fromkeys((*ALONG_AXIS, "concat", "take"), one_axis),
    "matmul": matmul_attributes, "conv2d": conv2d_attributes, "reshape": new_shape, "transpose": permutation,
    "broadcast_to": wider_shape, "slice": some_slice, "pad": some_padding, "random": random_attributes,
    "print": lambda rng, types: {"label": rng.choice(("", "loss", 'a "b"\n\t\\', "\u00e9"))},
}  # fmt: skip
# their operands are blocks of bytes and indices, not any array; tests of their own make them
APART = ("pack", "unpack", "packed_matmul", "sparse_matmul", "block_matmul")
GROWN = tuple(op for op in OPS if op not in ("input", "const", *APART))


def random_graph(rng: random.Random, size: int | None = None) -> Graph:
    """A valid graph of about ``size`` nodes, over all operations and dtypes, with what the passes look for."""
    size = rng.randrange(3, 16) if size is None else size
    grow = Grower(rng, rng.choice(("g", "loss", "model.layer_1")))
    for _ in range(rng.randrange(1, 4)):
        grow.leaf(Type(grow.dtype(DTYPES), grow.shape()))
    while len(grow.builder.nodes) < size:
        dice = rng.random()
        if dice < 0.3:
            grow.plant(rng.choice(RULES))
        elif dice < 0.4:
            grow.again()
        else:
            grow.random_node(rng.choice(GROWN))
    return grow.builder.build(random_outputs(rng, grow))


def random_outputs(rng: random.Random, grow: Grower) -> dict[str, str]:
    values = [node.name for node in grow.builder.nodes.values() if node.type.dtype != TOKEN]
    picks = [values[-1 - int(min(rng.expovariate(0.4), len(values) - 1))] for _ in range(rng.choice((1, 1, 2, 3, 4)))]
    if rng.random() < 0.5:
        return {name: name for name in picks}
    return {f"out{number}": name for number, name in enumerate(picks)}


# ---- graphs with many transposes ------------------------------------------------------------------------------------

SIDES = (1, 2, 2, 3, 3, 4, 4, 19)  # many squares, in which a wrong permutation keeps the shape
WOVEN = ("add", "sub", "mul", "maximum", "exp", "tanh", "abs", "where", "cast", "lt", "sum", "mean", "max", "prod", "argmax",
         "cumsum", "matmul", "conv2d", "reshape", "broadcast_to", "concat", "slice", "pad", "update_slice", "take",
         "print")  # fmt: skip


class Weaver(Grower):
    """Grows graphs in which transposes stand above, below and between everything that they may pass, cancel or become."""

    def __init__(self, rng: random.Random, name: str = "g"):
        super().__init__(rng, name)
        self.palette, self.leaves_are_inputs, self.most = rng.choices(("f32", "f32", "f64", "i32"), k=2), 0.7, 2000

    def shape(self, rank: int | None = None) -> tuple[int, ...]:
        rank = self.rng.choice((1, 2, 3, 3, 4)) if rank is None else rank
        side = self.rng.choice((2, 3))
        shape = tuple(self.rng.choice(SIDES) for _ in range(rank)) if self.rng.random() < 0.6 else (side,) * rank
        return shape if math.prod(shape) <= self.most // 4 else tuple(min(dim, 4) for dim in shape)

    def turn(self, name: str | None, perm: Iterable[int] | None = None) -> str | None:
        """A transpose: by ``perm``, or of the last two axes, or by any permutation."""
        if name is None:
            return None
        axes = list(range(len(self.type(name).shape)))
        if perm is None:
            self.rng.shuffle(axes)
            if len(axes) > 1 and self.rng.random() < 0.4:
                axes = [*range(len(axes) - 2), len(axes) - 1, len(axes) - 2]
        return self.emit("transpose", [name], {"perm": axes if perm is None else perm})

    def there_and_back(self) -> str | None:
        """transpose, a few operations, and a transpose that undoes the first, or almost."""
        x = y = self.turn(self.pick(("f32", "f64", "i32"), 2))
        if x is None:
            return None
        perm = self.builder.nodes[x].value.perm
        for _ in range(self.rng.randrange(1, 4)):
            if len(self.type(y).shape) >= len(perm):  # a reduction may have dropped axes
                y = self.rng.choice(BETWEEN)(self, y, x, perm) or y
        rank = len(self.type(y).shape)
        perm = (*range(rank - len(perm)), *(axis + rank - len(perm) for axis in perm)) if rank > len(perm) else perm
        back = sorted(range(len(perm)), key=perm.__getitem__)
        return self.turn(y, self.rng.choice((back, back, back, perm, None)) if rank == len(perm) else None)

    def product(self) -> str | None:
        """A product of transposed matrices, or of one; sometimes transposed itself."""
        a = self.pick(("f32", "f64", "i32"), 2)
        a = self.turn(a) if self.rng.random() < 0.7 else a
        if a is None:
            return None
        type = self.type(a)
        shape = (*self.rng.choice((type.shape[:-2], ())), type.shape[-1], self.rng.choice(SIDES))
        perm = list(range(len(shape)))
        self.rng.shuffle(perm)
        there = [shape[perm.index(axis)] for axis in range(len(shape))]
        b = self.turn(self.leaf(Type(type.dtype, tuple(there))), perm)
        y = self.emit("matmul", [a, b], {})
        return self.turn(y) if self.rng.random() < 0.4 else y


def unary_between(grow: Weaver, y: str, x: str, perm) -> str | None:
    return grow.emit(grow.rng.choice(("abs", "neg", "exp")), [y])


def binary_between(grow: Weaver, y: str, x: str, perm) -> str | None:
    """With the value at the start, one that is transposed alike (of more axes, too), a bias, or a constant."""
    type, there = grow.type(y), grow.type(grow.builder.nodes[x].inputs[0])
    more = (grow.rng.choice((1, 2)), *there.shape)
    dice = grow.rng.randrange(6)
    if dice < 2:
        other = x if dice else grow.turn(grow.leaf(there), perm)
    elif dice == 2:
        other = grow.turn(grow.leaf(Type(there.dtype, more)), (0, *(axis + 1 for axis in perm)))
    elif dice == 3:
        other = grow.leaf(Type(type.dtype, type.shape[grow.rng.randrange(len(type.shape)):]))
    else:
        other = grow.leaf(Type(type.dtype, type.shape[-grow.rng.randrange(3):] if dice == 4 else ()), True)
    inputs = [y, other] if grow.rng.random() < 0.7 else [other, y]
    return grow.emit(grow.rng.choice(("add", "mul", "sub", "maximum")), inputs)


def reduction_between(grow: Weaver, y: str, x: str, perm) -> str | None:
    rank = len(grow.type(y).shape)
    axis = grow.rng.randrange(-rank, rank)
    if grow.rng.random() < 0.4:
        return grow.emit(grow.rng.choice(("sum", "max", "argmax", "cumsum", "mean")), [y])
    kept = grow.emit(grow.rng.choice(("mean", "max", "sum")), [y], {"axis": [axis], "keepdims": True})
    return grow.emit("sub", [y, kept])


def layout_between(grow: Weaver, y: str, x: str, perm) -> str | None:
    op = grow.rng.choice(("pad", "slice", "concat", "update_slice", "broadcast_to"))
    if op == "pad":
        return grow.emit(op, [y, grow.leaf(Type(grow.type(y).dtype))])
    if op == "update_slice":
        return grow.emit(op, [y, y, grow.const(np.array(0, np.int32))], {"axis": grow.rng.choice((0, -1, 1))})
    return grow.emit(op, [y, y] if op == "concat" else [y])


BETWEEN = (unary_between, binary_between, binary_between, reduction_between, layout_between)


def woven_graph(rng: random.Random) -> Graph:
    """A valid graph of 6 to 30 nodes, of which about a third are transposes."""
    grow = Weaver(rng)
    size = rng.randrange(6, 30)
    grow.leaf(Type(rng.choice(grow.palette), grow.shape(rng.choice((2, 3, 4)))))
    while len(grow.builder.nodes) < size:
        dice = rng.random()
        if dice < 0.3:
            grow.turn(grow.pick(DTYPES if dice < 0.05 else grow.palette, 2))
        elif dice < 0.45:
            grow.there_and_back()
        elif dice < 0.55:
            grow.product()
        elif dice < 0.6:
            grow.again()
        else:
            grow.random_node(rng.choice(WOVEN))
    read = {name for node in grow.builder.nodes.values() for name in node.inputs}
    ends = [node.name for node in grow.builder.nodes.values() if node.op not in ("input", "const") and node.type.dtype != TOKEN
            and rng.random() < (0.1 if node.name in read else 0.8)]  # else most of what is woven would be dead
    return grow.builder.build(ends or random_outputs(rng, grow))


def woven_sample(seed: int, index: int) -> tuple[Graph, dict[str, np.ndarray]]:
    """Like ``sample``, of graphs with many transposes; half of the inputs are such that sums round."""
    rng = random.Random(f"woven {seed}/{index}")
    graph = woven_graph(rng)
    inputs = random_inputs(rng, graph)
    for name, array in inputs.items():
        if array.dtype.kind == "f" and rng.random() < 0.5:
            inputs[name] = np.array([rng.gauss(0, 1) for _ in range(array.size)], array.dtype).reshape(array.shape)
    return graph, inputs


def sample(seed: int, index: int) -> tuple[Graph, dict[str, np.ndarray]]:
    """Graph number ``index`` of ``seed``, and inputs for it."""
    rng = random.Random(f"{seed}/{index}")
    graph = random_graph(rng)
    return graph, random_inputs(rng, graph)
