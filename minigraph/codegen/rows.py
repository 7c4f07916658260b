"""The row-reduce skeleton: softmax, layer-norm, log-sum-exp in one kernel.

The kept axes count the rows. A row is walked once for each wave of reductions: what a reduction needs is computed just
before it, in the same loop. An element needed again in a later walk is computed again if that is cheap, and otherwise
kept in a scratch row. On CUDA a block works on a row: each thread adds up its own elements, and a tree joins them.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import NamedTuple

import numpy as np

from ..access import merge_axes
from ..dialect import Dialect
from ..fusion import REDUCES, without
from ..ops import OPS
from ..plan import Launch, Plan
from ..types import DTYPES
from .kernel import Kernel, Writer, element, indent
from .loops import BLOCK, FREE, PARALLEL, WORTH_THREADS, Body, around, join_lanes, lanes_helper, loop_names, split

CHEAP = 4  # up to this cost an element is computed again rather than kept
SCRATCH = 40 * 1024  # bytes: of the 48 KB that a CUDA block may share the threads' parts take some; a first-level cache holds it
LANES = 128  # bytes of partial results: two vector registers, so that a reduction is not one long chain
STRIP = 16 * 1024  # bytes: what the rows of a strip have added up stays in the first-level cache
AGAIN = 1 << 16  # elements of a strip that is walked more than once: they stay in the second-level cache
LEAST = 64  # rows of a strip, where there are so many
FEW = 8  # rows side by side: fewer are not worth it
START = {"sum": "0", "mean": "0", "prod": "1", "any": "0", "all": "1"}
JOIN = {"sum": "add", "mean": "add", "prod": "mul", "max": "maximum", "min": "minimum", "any": "bitwise_or", "all": "bitwise_and"}


class Lanes(NamedTuple):
    """An array of partial results: what it starts with, and how an element joins one of them."""

    name: str
    type: str
    start: str
    operand: str
    join: Callable[[str, str], str]


class Walks:
    """Which nodes are computed in which walk over the row."""

    def __init__(self, plan: Plan, launch: Launch, room: int = SCRATCH):
        cluster = launch.cluster
        self.at, inside = dict(cluster.at), set(launch.nodes)
        every = tuple(range(len(cluster.space)))
        nodes = [plan.nodes[name] for name in launch.nodes]
        self.ready: dict[str, int] = {}  # the walk before (a number a row) or in (an element) which a value is known
        for node in nodes:
            first = max((self.ready[i] for i in node.inputs if i in inside), default=0)
            self.ready[node.name] = first + (node.op in REDUCES)
        self.reductions = [node.name for node in nodes if node.op in REDUCES]
        self.wide = {node.name for node in nodes if self.at[node.name] == every and node.op not in REDUCES}
        self.narrow = [node.name for node in nodes if node.name not in self.wide and node.op not in REDUCES]
        self.last = launch.name
        self.count = max(self.ready.values()) + (self.last in self.wide)
        self.inputs = {node.name: [i for i in node.inputs if i in inside] for node in nodes}
        row = prod(cluster.space[axis] for axis in cluster.axes)
        self.kept: dict[str, int] = {}  # value -> the walk that keeps it
        self.computed: list[list[str]] = []
        for walk in range(self.count):
            wanted: set[str] = set()
            todo = [i for name in self.reductions if self.ready[name] == walk + 1 for i in self.inputs[name]]
            todo += [self.last] * (self.last in self.wide and self.ready[self.last] == walk)
            while todo:
                name = todo.pop()
                if name in wanted or name not in self.wide or name in self.kept:
                    continue
                before = next((w for w in range(walk) if name in self.computed[w]), None)
                size = row * DTYPES[plan.type(name).dtype].itemsize
                if before is not None and OPS[plan.nodes[name].op].cost > CHEAP and size <= room:
                    self.kept[name], room = before, room - size
                    continue
                wanted.add(name)
                todo += self.inputs[name]
            self.computed.append([name for name in launch.nodes if name in wanted])

    def joined(self, walk: int) -> list[str]:
        """The reductions that this walk adds up."""
        return [name for name in self.reductions if self.ready[name] == walk + 1]


def row_kernel(plan: Plan, launch: Launch, dialect: Dialect, threads: int = 1, plain: bool = False) -> Kernel:
    """The kernel of a reduce cluster."""
    writer = Writer(plan, launch, dialect, plain)
    cluster = launch.cluster
    space, axes = cluster.space, cluster.axes
    kept = without(range(len(space)), axes)
    body = Body(writer, dict(cluster.at), len(space), launch.nodes)
    result = spread(writer.result(), dict(cluster.at)[launch.name], len(space))
    strides = [one.strides for one in body.operands] + [result]
    outer, inner = (merge_axes(tuple(space[a] for a in group), tuple(tuple(s[a] for a in group) for s in strides))
                    for group in (kept, axes))
    rows, columns = loop_names(len(outer)), loop_names(len(inner), "j" if len(outer) < 2 else "k")
    columns = [name if name not in rows else name * 2 for name in columns]
    body.index(rows, outer)
    body.index(columns, inner)
    skeleton = CudaRows if dialect.name == "cuda" else CStrips if side_by_side(outer, inner) else CRows
    walks = Walks(plan, launch, room=0 if skeleton is CStrips else SCRATCH)
    return skeleton(writer, body, walks, rows, columns, outer, inner).kernel(f"reduce_{launch.name}", threads)


def side_by_side(outer: list, inner: list) -> bool:
    """Is a step to the same place of the next row shorter than one along the row? Then a line of the cache has elements of
    many rows."""
    if not outer or not inner or outer[-1][0] < FEW:
        return False
    return sum(abs(step) > 1 for step in inner[-1][1]) > sum(abs(step) > 1 for step in outer[-1][1])


def spread(strides: tuple[int, ...], axes: tuple[int, ...], rank: int) -> tuple[int, ...]:
    full = [0] * rank
    for axis, stride in zip(axes, strides):
        full[axis] = stride
    return tuple(full)


class CRows:
    """A row is a loop; float reductions run in lanes, which the compiler makes a vector register."""

    def __init__(self, writer, body, walks, rows, columns, outer, inner):
        self.writer, self.body, self.walks = writer, body, walks
        self.rows, self.columns, self.outer, self.inner = rows, columns, outer, inner
        self.row_lengths, self.lengths = [n for n, _ in outer], [n for n, _ in inner]
        self.output = writer.name(writer.launch.name)
        self.scratch = {name: writer.name(name + "_row") for name in walks.kept}
        self.length = prod(self.lengths)

    def store(self, value: str) -> str:
        terms = [(name, strides[-1]) for name, (_, strides) in zip([*self.rows, *self.columns], [*self.outer, *self.inner])]
        return f"{element(self.output, terms)} = {value};"

    def place(self) -> str:
        """The index of an element in a scratch row."""
        terms, step = [], 1
        for name, length in reversed(list(zip(self.columns, self.lengths))):
            terms.append((name, step))
            step *= length
        return element("", reversed(terms))[1:-1]

    def kernel(self, label: str, threads: int) -> Kernel:
        lines = [f"{self.writer.type(name)} {text}[{max(self.length, 1)}];" for name, text in self.scratch.items()]
        for walk in range(self.walks.count):
            lines += self.narrow_lines(walk) + self.walk_lines(walk)
        if self.walks.last not in self.walks.wide:
            lines += self.narrow_lines(self.walks.count)
            lines.append(self.store(self.body.text[self.walks.last]))
        shared = threads > 1 and prod(self.row_lengths) * self.length >= WORTH_THREADS
        return self.writer.finish(label, around(self.rows, self.row_lengths, lines, PARALLEL if shared else ""), self.output)

    def narrow_lines(self, walk: int) -> list[str]:
        """What is one number a row and known before this walk."""
        nodes = [name for name in self.walks.narrow if self.walks.ready[name] == walk]
        return self.body.loads(nodes) + [line for name in nodes for line in self.body.line(name)]

    def element_lines(self, walk: int) -> tuple[list[str], dict[str, str]]:
        """The lines of one element in this walk, and the text of each operand of its reductions."""
        body, walks = self.body, self.walks
        saved, names = dict(body.text), set(self.writer.names)
        for name, before in walks.kept.items():
            if before < walk:
                body.text[name] = f"{self.scratch[name]}[{self.place()}]"
        nodes = [name for name in walks.computed[walk] if name != walks.last]
        joined = walks.joined(walk)
        lines = body.loads([*nodes, *joined, *[walks.last] * (walks.last in walks.computed[walk])])
        for name in nodes:
            lines += body.line(name)
            if walks.kept.get(name) == walk:
                lines.append(f"{self.scratch[name]}[{self.place()}] = {body.text[name]};")
        operands = {name: body.use(body.reads[name][0]) for name in joined}
        if walks.last in walks.computed[walk]:
            lines.append(self.store(body.value(walks.last)))
        body.text, self.writer.names = saved, names  # the next walk is a scope of its own
        return lines, operands

    def start(self, name: str) -> str:
        dtype, op = self.writer.dtype(name), self.writer.plan.nodes[name].op
        if op in START:
            return self.writer.dialect.literal(dtype, int(START[op]))
        return self.writer.dialect.literal(dtype, limit(dtype, -1 if op == "max" else 1))

    def finished(self, name: str, total: str) -> list[str]:
        """The lines after a reduction: a mean divides by the number of terms."""
        if self.writer.plan.nodes[name].op != "mean":
            self.body.text[name] = total
            return []
        self.body.text[name] = self.writer.name(name)
        return [f"const {self.writer.type(name)} {self.body.text[name]} = {self.quotient(name, total)};"]

    def quotient(self, name: str, total: str) -> str:
        dtype = self.writer.dtype(name)
        return self.writer.combine("div", total, self.writer.dialect.literal(dtype, self.length), dtype)

    def total_name(self, name: str) -> str:
        return self.writer.name(name + "_sum" if self.writer.plan.nodes[name].op == "mean" else name)

    def walk_lines(self, walk: int) -> list[str]:
        names = {name: self.total_name(name) for name in self.walks.joined(walk)}
        floats = [name for name in names if self.writer.dtype(name)[0] == "f"]
        lines, operands = self.element_lines(walk)
        width = min((LANES // DTYPES[self.writer.dtype(name)].itemsize for name in floats), default=0)
        lanes = bool(floats) and self.lengths and self.lengths[-1] >= 2 * width
        after = [line for name in names for line in self.finished(name, names[name])]
        if not lanes:
            head = [f"{self.writer.type(name)} {text} = {self.start(name)};" for name, text in names.items()]
            joins = [f"{text} = {self.join(name, text, operands[name])};" for name, text in names.items()]
            return head + self.loop(lines + joins, not floats) + after
        return self.in_lanes(names, lines, operands, width) + after

    def joins(self, name: str) -> str:
        """The operation that joins two results of a reduction."""
        return JOIN[self.writer.plan.nodes[name].op]

    def join(self, name: str, a: str, b: str) -> str:
        return self.writer.combine(self.joins(name), a, b, self.writer.dtype(name))

    def loop(self, lines: list[str], free: bool) -> list[str]:
        return around(self.columns, self.lengths, lines, innermost=FREE if free else "")

    def in_lanes(self, names, lines, operands, width) -> list[str]:
        """Element j goes to lane j % width: so many independent sums, joined in order at the end."""
        column, length = self.columns[-1], self.lengths[-1]
        whole, lane = length // width * width, "lane"
        lanes = {name: self.lanes(name, text, operands[name], width) for name, text in names.items()}
        every = [one for some in lanes.values() for one in some]
        head = [f"{one.type} {one.name}[{width}];" for one in every]
        head += [f"for (int {lane} = 0; {lane} < {width}; {lane}++) {{",
                 *indent(f"{one.name}[{lane}] = {one.start};" for one in every), "}"]

        def step(place: str) -> list[str]:
            return lines + [f"{one.name}[{place}] = {one.join(f'{one.name}[{place}]', one.operand)};" for one in every]

        base = "part"
        inner = [f"for (long {base} = 0; {base} < {whole}; {base} += {width}) {{",
                 f"  {FREE}", f"  for (int {lane} = 0; {lane} < {width}; {lane}++) {{", f"    const long {column} = {base} + {lane};",
                 *indent(step(lane), 2), "  }", "}"]
        if whole < length:
            inner += [f"for (long {column} = {whole}; {column} < {length}; {column}++) {{", *indent(step(f"{column} - {whole}")), "}"]
        inner = around(self.columns[:-1], self.lengths[:-1], inner)
        tail = []
        for name, text in names.items():
            arrays = [one.name for one in lanes[name]]
            tail += join_lanes(self.writer, self.joins(name), self.writer.dtype(name), text, arrays, width, lanes[name][0].join)
        return head + inner + tail

    def lanes(self, name: str, text: str, operand: str, width: int) -> list[Lanes]:
        """The arrays of partial results of a reduction. The largest element of floats has two: with NaN looked for in
        integers the comparison need not mind it, which is twice as fast."""
        compare = {"max": "larger_f32", "min": "smaller_f32"}.get(self.writer.plan.nodes[name].op)
        array = self.writer.name(text + "_lanes")
        if compare is None or lanes_helper(self.writer, self.joins(name), self.writer.dtype(name), width) is None:
            return [Lanes(array, self.writer.type(name), self.start(name), operand, lambda a, b: self.join(name, a, b))]
        self.writer.helpers |= {compare, "magnitude_f32"}
        return [Lanes(array, self.writer.type(name), self.start(name), operand, lambda a, b: f"{compare}({a}, {b})"),
                Lanes(self.writer.name(text + "_magnitudes"), self.writer.dialect.type("u32"), "0", operand, lambda a, b: f"magnitude_f32({a}, {b})")]


class CStrips(CRows):
    """Rows that lie side by side: their elements at one place are the innermost loop, so each row has its partial
    results in an array."""

    def kernel(self, label: str, threads: int) -> Kernel:
        row, count = self.rows[-1], self.row_lengths[-1]
        most = STRIP // sum(DTYPES[self.writer.dtype(name)].itemsize for name in [*self.walks.reductions, *self.walks.narrow])
        if self.walks.count > 1:
            most = min(most, AGAIN // max(self.length, 1))
        width = min(count, max(LEAST, most // LEAST * LEAST))
        whole = width == count
        self.strip = f"for (long {row} = {'0' if whole else 'part'}; {row} < {count if whole else 'end'}; {row}++) {{"
        self.lane, self.width = row if whole else f"{row} - part", width
        lines: list[str] = []
        for walk in range(self.walks.count):
            lines += self.narrow_lines(walk) + self.walk_lines(walk)
        if self.walks.last not in self.walks.wide:
            lines += self.narrow_lines(self.walks.count) + self.each_row([self.store(self.body.text[self.walks.last])])
        if not whole:
            end = f"part + {width} < {count} ? part + {width} : {count}" if count % width else f"part + {width}"
            lines = [f"for (long part = 0; part < {count}; part += {width}) {{", *indent([f"const long end = {end};", *lines]), "}"]
        shared = PARALLEL if threads > 1 and prod(self.row_lengths) * self.length >= WORTH_THREADS else ""
        if len(self.rows) == 1 and not whole:
            lines = [PARALLEL] * bool(shared) + lines
        return self.writer.finish(label, around(self.rows[:-1], self.row_lengths[:-1], lines, shared), self.output)

    def each_row(self, lines: list[str]) -> list[str]:
        return [FREE, self.strip, *indent(lines), "}"] if lines else []

    def array(self, name: str) -> tuple[str, str]:
        """The line of an array with an element a row of the strip, and the text of that element."""
        array = self.writer.name(name)
        return f"{self.writer.type(name)} {array}[{self.width}];", f"{array}[{self.lane}]"

    def narrow_lines(self, walk: int) -> list[str]:
        nodes = [name for name in self.walks.narrow if self.walks.ready[name] == walk]
        known = set(self.body.text)
        lines, arrays = self.body.loads(nodes), []
        for name in nodes:
            value = self.body.value(name)
            array, self.body.text[name] = self.array(name)
            arrays.append(array)
            lines.append(f"{self.body.text[name]} = {value};")
        self.body.text = {one: text for one, text in self.body.text.items() if one in known or isinstance(one, str)}
        return arrays + self.each_row(lines)

    def walk_lines(self, walk: int) -> list[str]:
        parts = {name: self.array(name) for name in self.walks.joined(walk)}
        lines, operands = self.element_lines(walk)
        head = [array for array, _ in parts.values()] + self.each_row([f"{text} = {self.start(name)};" for name, (_, text) in parts.items()])
        joins = [f"{text} = {self.join(name, text, operands[name])};" for name, (_, text) in parts.items()]
        after = []
        for name, (_, text) in parts.items():
            after += self.finished(name, text)
        return head + around(self.columns, self.lengths, self.each_row(lines + joins)) + after

    def finished(self, name: str, total: str) -> list[str]:
        self.body.text[name] = total
        if self.writer.plan.nodes[name].op != "mean":
            return []
        return self.each_row([f"{total} = {self.quotient(name, total)};"])


class CudaRows(CRows):
    """A row is a block. Threads meet at barriers: nobody reads what another has not written yet."""

    def kernel(self, label: str, threads: int) -> Kernel:
        self.block = min(BLOCK, max(32, 1 << (max(self.length, 1) - 1).bit_length()))
        lines = [*split("blockIdx.x", self.rows, self.row_lengths), "const int t = threadIdx.x;"]
        lines += [f"__shared__ {self.writer.type(name)} {text}[{max(self.length, 1)}];" for name, text in self.scratch.items()]
        kinds = dict.fromkeys(self.writer.type(name) for name in self.walks.reductions)
        self.parts = {kind: self.writer.name("parts") for kind in kinds}
        lines += [f"__shared__ {kind} {text}[{self.block}];" for kind, text in self.parts.items()]
        for walk in range(self.walks.count):
            lines += self.narrow_lines(walk) + self.walk_lines(walk)
        if self.walks.last not in self.walks.wide:
            lines += self.narrow_lines(self.walks.count)
            lines.append(f"if (t == 0) {self.store(self.body.text[self.walks.last])}")
        return self.writer.finish(label, lines, self.output, grid=max(1, prod(self.row_lengths)), block=(self.block, 1))

    def walk_lines(self, walk: int) -> list[str]:
        names = {name: self.total_name(name) for name in self.walks.joined(walk)}
        lines, operands = self.element_lines(walk)
        head = [f"{self.writer.type(name)} {text} = {self.start(name)};" for name, text in names.items()]
        joins = [f"{text} = {self.join(name, text, operands[name])};" for name, text in names.items()]
        number = self.columns[0] if len(self.columns) == 1 else "n"
        apart = [] if len(self.columns) == 1 else split("n", self.columns, self.lengths)
        loop = [f"for (int {number} = t; {number} < {self.length}; {number} += {self.block}) {{", *indent(apart + lines + joins), "}"]
        return head + loop + [line for name, text in names.items() for line in self.tree(name, text)] + [
            line for name in names for line in self.finished(name, names[name])]

    def tree(self, name: str, text: str) -> list[str]:
        """Join the threads' parts: half of them takes in the other half, again and again."""
        part = self.parts[self.writer.type(name)]
        joined = self.join(name, f"{part}[t]", f"{part}[t + step]")
        return [f"{part}[t] = {text};", "__syncthreads();",
                f"for (int step = {self.block // 2}; step > 0; step /= 2) {{", f"  if (t < step) {part}[t] = {joined};",
                "  __syncthreads();", "}", f"{text} = {part}[0];", "__syncthreads();"]


def limit(dtype: str, sign: int):
    """The least (``sign`` -1) or largest number of a dtype: what every other one replaces."""
    kind = DTYPES[dtype]
    return sign * np.inf if kind.kind == "f" else (np.iinfo(kind).max if sign > 0 else np.iinfo(kind).min)
