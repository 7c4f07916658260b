"""What a generated kernel is, and how a cluster's nodes become lines of C or CUDA."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..access import row_major
from ..dialect import Dialect
from ..fusion import REDUCES, along
from ..ops import OPS, Kind
from ..plan import Launch, Plan, number
from ..types import DTYPES

# No value may have the name of a word of C or C++, of a macro or type of their headers, or of what the skeletons declare.
TAKEN = frozenset("""alignas alignof and asm auto bitand bitor bool break case catch char class compl const consteval
constexpr constinit continue decltype default delete do double else enum explicit export extern false float for friend goto if
inline int linux long mutable namespace new noexcept not nullptr operator or private protected public register requires
restrict return short signed sizeof static struct switch template this throw true try typedef typeid typename typeof union
unix unsigned using virtual void volatile while xor concept
blockIdx threadIdx blockDim gridDim warpSize i j k l m n t c row step part lane bad at status main first end slice other sum
logit NAN INFINITY NULL EOF BUFSIZ MAXFLOAT errno stdin stdout stderr
block size tile extern
exp exp2 expm1 log log2 log1p tanh sin cos erf sqrt pow floor ceil rint abs fabs fmod copysign""".split())
TAKEN |= {name for path in Path(__file__).parent.glob("*.[hc]*") for name in re.findall(r"(\w+)\(const", path.read_text(encoding="utf-8"))}
# Loops beyond the fourth (i4, kk), names with a meaning for the compiler (_x, x_t), macros (M_PI), helpers (add_i8)
RESERVED = re.compile(r"[ijkl]\d+|ii|jj|kk|ll|_\w*|\w+_(t|cast|assert|local|eq|yield|await|return)|[A-Z0-9]+_[A-Z0-9_]*"
                      r"|\w+_(f16|f32|f64|[iu](8|16|32|64)|bool)")


class Param(NamedTuple):
    """A pointer parameter: to the elements of ``value``, from the offset of its access on."""

    value: str
    dtype: str
    written: bool = False


@dataclass(frozen=True)
class Kernel:
    """One function of C or CUDA, and how to launch it."""

    name: str
    source: str
    params: tuple[Param, ...]
    helpers: frozenset[str]  # what it needs of the dialect's prologue
    grid: int = 1  # CUDA: blocks
    block: tuple[int, int] = (1, 1)  # CUDA: threads of a block
    fails: bool = False  # may find an index out of range: C returns 1, CUDA sets *status


class Operand(NamedTuple):
    """A value in memory, and how many elements one step along each loop of the space moves."""

    value: str
    strides: tuple[int, ...]


@dataclass
class Writer:
    """Names, parameters and helpers of one kernel while it is written. ``plain`` numbers the names instead of taking the
    graph's, so that equal kernels are equal texts."""

    plan: Plan
    launch: Launch
    dialect: Dialect
    plain: bool = False
    helpers: set[str] = field(default_factory=set)
    params: dict[Operand, str] = field(default_factory=dict)
    names: set[str] = field(default_factory=lambda: set(TAKEN))
    number: int = 0

    def name(self, base: str) -> str:
        if self.plain:
            self.number += 1
            return f"v{self.number}"
        clean = re.sub(r"\W", "_", base, flags=re.ASCII)
        clean = f"v_{clean.lstrip('_')}" if RESERVED.fullmatch(clean) else clean
        fresh, count = clean, 0
        while fresh in self.names or fresh.endswith("f") and fresh[:-1] in TAKEN:
            count += 1
            fresh = f"{clean}_{count}"
        self.names.add(fresh)
        return fresh

    def dtype(self, value: str) -> str:
        """The dtype in which the kernel handles a value; to move a half float about, two bytes are enough."""
        dtype = self.plan.type(value).dtype
        return "u16" if dtype == "f16" and self.launch.kind in ("move", "copy") else dtype

    def type(self, value: str) -> str:
        return self.dialect.type(self.dtype(value))

    def literal(self, value: str) -> str | None:
        """The number that stands for a small constant, or None."""
        raw = number(self.plan.nodes[value])
        return None if raw is None else self.dialect.literal(self.dtype(value), np.frombuffer(raw, DTYPES[self.dtype(value)])[0])

    def pointer(self, operand: Operand) -> str:
        """The parameter that points to an operand."""
        if operand not in self.params:
            self.params[operand] = self.name(operand.value)
        return self.params[operand]

    def apply(self, op: str, operands: list[str], dtypes: list[str], dtype: str, attrs=None) -> str:
        """The text of one operation."""
        text, helpers = self.dialect.expression(OPS[op], operands, dtypes, dtype, attrs)
        self.helpers |= helpers
        return text

    def combine(self, op: str, a: str, b: str, dtype: str) -> str:
        return self.apply(op, [a, b], [dtype, dtype], dtype)

    def node(self, name: str, operands: list[str]) -> str:
        """The text of an element-wise node, or of one that only adds or drops axes of length 1."""
        node = self.plan.nodes[name]
        if OPS[node.op].kind is Kind.LAYOUT:
            return operands[0]
        return self.apply(node.op, operands, [self.dtype(i) for i in node.inputs], node.type.dtype, node.value)

    def operand(self, value: str, at: tuple[int, ...], rank: int) -> Operand:
        """How a value is read in a space of ``rank`` loops when its axes (those not of length 1) run along ``at``."""
        strides = [0] * rank
        for loop, stride in zip(at, self.plan.access[value].steps):
            strides[loop] += stride
        return Operand(value, tuple(strides))

    def result(self) -> tuple[int, ...]:
        """The strides of the result along the loops over it: its axes that are not of length 1."""
        if self.launch.kind == "copy":
            return row_major(self.launch.cluster.space)  # the loops are those of the operand
        return self.plan.access[self.launch.name].steps

    def finish(self, label: str, lines: Iterable[str], output: str, **facts) -> Kernel:
        """The kernel around these lines; ``output`` is the name of its last parameter."""
        name = self.name(label)
        params = [Param(operand.value, self.dtype(operand.value)) for operand in self.params]
        texts = [f"const {self.dialect.type(p.dtype)} *{text}" for p, text in zip(params, self.params.values())]
        params.append(Param(self.launch.name, self.dtype(self.launch.name), True))
        # a result in memory of its own: the compiler may read on before it has written
        alone = "" if self.launch.in_place else "__restrict__ " if self.dialect.name == "cuda" else "restrict "
        texts.append(f"{self.type(self.launch.name)} *{alone}{output}")
        fails = facts.get("fails", False)
        if self.dialect.name == "cuda":
            start, texts = 'extern "C" __global__ void', texts + ["int *status"] * fails
        else:
            # not static: called once, it would be inlined into the plan's function, which is too long to optimize well
            start, lines = "int" if fails else "void", [*lines, *["return 0;"] * fails]
        source = "\n".join([f"{start} {name}({', '.join(texts)}) {{", *indent(lines), "}", ""])
        return Kernel(name, source, tuple(params), frozenset(self.helpers), **facts)


def element(pointer: str, terms: Iterable[tuple[str, int]]) -> str:
    """``element("x", [("i", 4), ("j", 1)]) == "x[i*4 + j]"``."""
    parts = [name if step == 1 else f"{name}*{step}" for name, step in terms if step]
    return f"{pointer}[{' + '.join(parts).replace('+ -', '- ') or '0'}]"


def indent(lines: Iterable[str], depth: int = 1) -> list[str]:
    return ["  " * depth + line if line else line for line in lines]


def reads_of(writer: Writer, name: str, at: dict[str, tuple[int, ...]], rank: int) -> list[Operand | str]:
    """The operands of a node inside its launch: values of the launch by name, others as what to read from memory."""
    node = writer.plan.nodes[name]
    found: list[Operand | str] = []
    for value in node.inputs:
        if value in at:
            found.append(value)
        else:
            whole = tuple(range(rank))  # a reduction reads every element
            place = whole if node.op in REDUCES else along(writer.plan.type(value).shape, node, at[name])
            found.append(writer.operand(value, place, rank))
    return found
