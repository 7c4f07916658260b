"""A small graph for every operation of the op table: an element-wise node before it, and one behind it.

Where the operation can have the shape of its operand, it has it: then the shape alone keeps nothing apart.
"""

from __future__ import annotations

from ..errors import GraphError
from ..ir import Builder, Graph
from ..ops import OPS, Kind

ROW, LINE, FORMAT = {"axis": (1,), "keepdims": True}, {"axis": 0}, {"format": "q8_0"}
# op -> (the types of its operands, its attributes); for the others any of PLAIN will do
OPERANDS = {
    "where": ("bool[4] f32[4] f32[4]", {}), "cast": ("f32[4]", {"dtype": "f64"}), "dequantize": ("i8[4] f32[4]", {}),
    **dict.fromkeys(("sum", "prod", "mean", "max", "min"), ("f32[4,1]", ROW)),
    **dict.fromkeys(("any", "all"), ("bool[4,1]", ROW)),
    **dict.fromkeys(("argmax", "argmin"), ("f32[4,1]", ROW | {"axis": 1})),
    **dict.fromkeys(("cumsum", "sort"), ("f32[4]", LINE)),
    "matmul": ("f32[4,4] f32[4,4]", {}), "conv2d": ("f32[1,1,2,2] f32[1,1,1,1]", {}),
    "pack": ("f32[32]", FORMAT), "unpack": ("u8[34]", FORMAT), "packed_matmul": ("f32[1,32] u8[32,34]", FORMAT),
    "sparse_matmul": ("f32[1,32] f32[2,16,16] u32[2,1,16]", {}),
    "block_matmul": ("f32[1,16] f32[1,8,16] i32[1] i32[2]", {}),
    "reshape": ("f32[4]", {"shape": (4,)}), "transpose": ("f32[4,4]", {"perm": (1, 0)}),
    "broadcast_to": ("f32[4]", {"shape": (4,)}), "concat": ("f32[4]", LINE),
    "slice": ("f32[4]", {"start": (0,), "stop": (4,)}), "pad": ("f32[4] f32[]", {"low": (0,), "high": (0,)}),
    "take": ("f32[4] i32[4]", {}), "update_slice": ("f32[4] f32[4] i32[]", {}),
    "random": ("", {"shape": (4,), "site": 0}), "print": ("f32[]", {}),
    "assert_close": ("f32[] f32[]", {}), "assert_finite": ("f32[]", {}),
}  # fmt: skip
PLAIN = ("f32[4]", "i32[4]", "bool[4]")


def around(op: str) -> Graph:
    """a, which is element-wise; b = op(a, ...); and y, which is element-wise and reads b, unless b is an effect."""
    if op in OPERANDS:
        return built(op, *OPERANDS[op])
    for type in PLAIN:
        try:
            return built(op, " ".join([type] * int(OPS[op].arity[0])), {})
        except GraphError:
            continue
    raise GraphError(f"{op} takes none of {', '.join(PLAIN)}", hint="add it to OPERANDS")


def built(op: str, types: str, attrs: dict) -> Graph:
    """Operands of one type are one input; the first operand is ``a``."""
    builder, names = Builder(op), iter("xwvu")
    inputs = {type: builder.input(next(names), type) for type in dict.fromkeys(types.split())}
    operands = [inputs[type] for type in types.split()]
    if operands:
        operands[0] = mapped(builder, operands[0], "a")
    builder.emit(op, *operands, name="b", **attrs)
    mapped(builder, "x" if OPS[op].kind is Kind.EFFECT else "b", "y")
    return builder.build(["y"])


def mapped(builder: Builder, operand: str, name: str) -> str:
    return builder.emit("bitwise_not" if builder.type(operand).dtype == "bool" else "neg", operand, name=name)


AROUND = tuple(around(op) for op in OPS if OPS[op].kind not in (Kind.INPUT, Kind.CONST))
