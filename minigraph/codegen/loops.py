"""The map skeleton, and the body that all skeletons share: a cluster's element-wise nodes for one element."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import prod

from ..access import merge_axes
from ..dialect import Dialect
from ..ops import OPS
from ..plan import Launch, Plan
from .kernel import Kernel, Operand, Writer, element, indent, reads_of

JOINED = 32  # lanes that a helper joins
UNROLL = 16  # rows added up at once
STAGE = 1024  # elements of a block that goes through several loops: its arrays stay in the first-level cache
BLOCK = 256  # threads of a CUDA block
FREE = "#pragma GCC ivdep"  # a result may lie in an operand's memory, but only at the very element that was just read
PARALLEL = "#pragma omp parallel for"
WORTH_THREADS = 1 << 16  # elements from which on starting a second thread pays


def loop_names(count: int, first: str = "i") -> list[str]:
    names = "ijkl"["ijkl".index(first):]
    return [names[depth] if depth < len(names) else f"{first}{depth}" for depth in range(count)]


def row_names(count: int) -> list[str]:
    """The loops around a sum, whose own loop is k."""
    return ["kk" if name == "k" else name for name in loop_names(count)]


class Body:
    """The lines for one element: ``const float h = x[i] * w[j];``, one a node, and one for what is read twice."""

    def __init__(self, writer: Writer, at: dict[str, tuple[int, ...]], rank: int, nodes: tuple[str, ...]):
        self.writer = writer
        self.reads = {name: reads_of(writer, name, at, rank) for name in nodes}
        self.text: dict[str | Operand, str] = {}  # what stands for a value, or for an element in memory
        self.terms: dict[Operand, list[tuple[str, int]]] = {}  # the index of an operand: loop names and strides
        found = [one for reads in self.reads.values() for one in reads if isinstance(one, Operand)]
        self.operands = [one for one in dict.fromkeys(found) if writer.literal(one.value) is None]
        for one in self.operands:
            writer.pointer(one)  # parameters in the order of their first use

    def index(self, names: list[str], loops: list[tuple[int, tuple[int, ...]]]) -> None:
        """Tell the body its loops: their names, and from ``merge_axes`` the strides of each operand."""
        for number, one in enumerate(self.operands):
            self.terms[one] = self.terms.get(one, []) + [(name, strides[number]) for name, (_, strides) in zip(names, loops)]

    def use(self, one: str | Operand) -> str:
        if one in self.text:
            return self.text[one]
        if (literal := self.writer.literal(one.value)) is not None:
            return literal
        return element(self.writer.pointer(one), self.terms[one])

    def row(self, one: Operand) -> str | None:
        """Where the elements of a block of an operand begin, if they lie one after the other."""
        if self.writer.literal(one.value) is not None or self.terms[one] != [("block", 1), ("i", 1)]:
            return None
        return f"&{self.writer.pointer(one)}[block]"

    def loads(self, nodes: list[str]) -> list[str]:
        """Lines that read once what these nodes use more than once."""
        lines = []
        used = [one for name in nodes for one in self.reads[name] if isinstance(one, Operand)]
        for one in dict.fromkeys(used):
            if used.count(one) > 1 and one not in self.text and self.writer.literal(one.value) is None:
                lines += self.load(one)
        return lines

    def load(self, one: Operand) -> list[str]:
        """The line that reads an element into a local value."""
        where = self.use(one)
        self.text[one] = self.writer.name(f"{self.writer.pointer(one)}_{''.join(n for n, step in self.terms[one] if step) or '0'}")
        return [f"const {self.writer.type(one.value)} {self.text[one]} = {where};"]

    def stored(self, nodes: list[str], target: str) -> list[str]:
        """The lines of these nodes, the last of which goes to ``target``."""
        lines = self.loads(nodes) + [line for name in nodes[:-1] for line in self.line(name)]
        return [*lines, f"{target} = {self.value(nodes[-1])};"]

    def value(self, name: str) -> str:
        """The expression of one node."""
        return self.writer.node(name, [self.use(one) for one in self.reads[name]])

    def line(self, name: str) -> list[str]:
        """The line of one node; none for a node that only renames."""
        text = self.value(name)
        if self.writer.plan.nodes[name].op in ("reshape", "broadcast_to"):
            self.text[name] = text
            return []
        self.text[name] = self.writer.name(name)
        return [f"const {self.writer.type(name)} {self.text[name]} = {text};"]


def map_kernel(plan: Plan, launch: Launch, dialect: Dialect, threads: int = 1, plain: bool = False) -> Kernel:
    """The kernel of a map cluster or of a copy: operands may be strided, the result is contiguous."""
    writer = Writer(plan, launch, dialect, plain)
    space = launch.cluster.space
    body = Body(writer, dict(launch.cluster.at), len(space), launch.nodes)
    loops = merge_axes(space, (*(one.strides for one in body.operands), writer.result()))
    names = loop_names(len(loops))
    body.index(names, loops)
    nodes, output = list(launch.nodes), writer.name(launch.name)
    label, lengths = f"{launch.kind}_{launch.name}", [length for length, _ in loops]
    if dialect.name == "c" and len(loops) == 1 and lengths[0] >= STAGE // 8:
        stages = cut(writer, nodes)
        if len(stages) > 1 or each(writer, nodes[0]):
            return writer.finish(label, staged(body, stages, output, lengths[0], threads), output)
    lines = body.stored(nodes, element(output, [(name, strides[-1]) for name, (_, strides) in zip(names, loops)]))
    if dialect.name == "cuda":
        return writer.finish(label, cuda_thread(names, lengths) + lines, output, grid=blocks(prod(lengths)), block=(BLOCK, 1))
    return writer.finish(label, nest(names, lengths, lines, threads), output)


def each(writer: Writer, name: str) -> str | None:
    """The helper that computes a node for many elements at once, where there is one."""
    helper = f"{writer.plan.nodes[name].op}_each_{writer.dtype(name)}"
    return helper if helper in writer.dialect.helpers else None


def cut(writer: Writer, nodes: list[str]) -> list[list[str]]:
    """The nodes in stages: with several functions like exp or tanh in one loop its registers run out, so each ends a stage.
    A node with a helper for many elements is a stage of its own."""
    costly = [name for name in nodes if writer.dialect.costly(OPS[writer.plan.nodes[name].op], writer.dtype(name))]
    stages: list[list[str]] = [[]]
    for name in nodes:
        if each(writer, name) and stages[-1]:
            stages.append([])
        stages[-1].append(name)
        if (name in costly[:-1] or each(writer, name)) and name != nodes[-1]:
            stages.append([])
    return stages


def staged(body: Body, stages: list[list[str]], output: str, length: int, threads: int) -> list[str]:
    """A short loop for each stage, over a block of elements; what later stages need waits in an array of the block."""
    writer, size = body.writer, min(STAGE, length)
    for one in body.operands:
        ((_, step),) = body.terms[one]
        body.terms[one] = [("block", step), ("i", step)]
    made = {name: number for number, stage in enumerate(stages) for name in stage}
    crossing = [name for name in made if any(name in body.reads[other] and made[other] > made[name] for other in made)]
    arrays = {name: writer.name(f"{name}_part") for name in crossing}
    lines = [f"{writer.type(name)} {text}[{size}];" for name, text in arrays.items()]
    for number, stage in enumerate(stages):
        if call := each(writer, stage[0]):
            operand, last = body.reads[stage[0]][0], number == len(stages) - 1
            row = arrays[operand] if operand in arrays else body.row(operand)
            if row is not None:
                writer.helpers.add(call)
                lines.append(f"{call}({f'&{output}[block]' if last else arrays[stage[0]]}, {row}, size);")
                body.text[stage[0]] = f"{output if last else arrays[stage[0]]}[i]"
                continue
        before = dict(body.text)
        inner = body.loads(stage)
        for name in stage:
            if number == len(stages) - 1 and name == stage[-1]:
                inner.append(f"{output}[block + i] = {body.value(name)};")
                continue
            inner += body.line(name)
            if name in arrays:
                inner.append(f"{arrays[name]}[i] = {body.text[name]};")
        body.text = before | {name: f"{arrays[name]}[i]" for name in stage if name in arrays}
        lines += [FREE, "for (long i = 0; i < size; i++) {", *indent(inner), "}"]
    head = [PARALLEL] * (threads > 1 and length >= WORTH_THREADS)
    size_text = f"const long size = block + {size} < {length} ? {size} : {length} - block;" if length % size else f"const long size = {size};"
    return [*head, f"for (long block = 0; block < {length}; block += {size}) {{", *indent([size_text, *lines]), "}"]


def nest(names: list[str], lengths: list[int], lines: list[str], threads: int) -> list[str]:
    """C loops around lines, the innermost free to run in vectors, the outermost in threads where that pays."""
    shared = threads > 1 and prod(lengths) >= WORTH_THREADS
    if len(lengths) == 1 and shared:
        return around(names, lengths, lines, outermost=PARALLEL + " simd")  # one pragma a loop
    return around(names, lengths, lines, PARALLEL if shared else "", FREE)


def around(names: list[str], lengths: Iterable[int], lines: list[str], outermost: str = "", innermost: str = "") -> list[str]:
    """C loops around lines, and the pragmas of the outermost and of the innermost one."""
    loops = list(zip(names, lengths))
    for depth, (name, length) in reversed(list(enumerate(loops))):
        pragmas = [innermost] * (depth == len(loops) - 1) + [outermost] * (depth == 0)
        lines = [*filter(None, pragmas), f"for (long {name} = 0; {name} < {length}; {name}++) {{", *indent(lines), "}"]
    return lines


def accumulate(
    writer: Writer, dtype: str, index: str, start: str | int, stop: str | int, over: str, target: str,
    factor: Callable[[str], str], row: Callable[[str], str],
) -> list[str]:  # fmt: skip
    """``target += factor(index) * row(index)`` for each index, where ``over`` is the loop over the target's elements.

    Some rows at once: so many times fewer loads and stores of the target.
    """
    kind = writer.dialect.type(dtype)

    def block(count: int) -> list[str]:
        places = [index if step == 0 else f"({index} + {step})" for step in range(count)]
        names = [writer.name(f"{index}_{step}") for step in range(count)]
        total = target
        for name, place in zip(names, places):
            total = writer.combine("add", total, writer.combine("mul", name, row(place), dtype), dtype)
        return [f"const {kind} {name} = {factor(place)};" for name, place in zip(names, places)] + [FREE, f"{over} {target} = {total};"]

    known = isinstance(start, int) and isinstance(stop, int)
    lines = [f"long {index} = {start};"]
    if not known or stop - start >= UNROLL:
        lines += [f"for (; {index} + {UNROLL} <= {stop}; {index} += {UNROLL}) {{", *indent(block(UNROLL)), "}"]
    if not known or (stop - start) % UNROLL:
        lines += [f"for (; {index} < {stop}; {index}++) {{", *indent(block(1)), "}"]
    return ["{", *indent(lines), "}"]


def join_lanes(
    writer: Writer, op: str, dtype: str, text: str, arrays: list[str], width: int, join: Callable[[str, str], str],
) -> list[str]:  # fmt: skip
    """``text`` made of the lanes in the first of ``arrays``: by a helper, which takes them all, where there is one for so
    many lanes, or one after the other."""
    kind, helper = writer.dialect.type(dtype), lanes_helper(writer, op, dtype, width)
    if helper is not None:
        writer.helpers.add(helper)
        return [f"const {kind} {text} = {helper}({', '.join(arrays)});"]
    return [f"{kind} {text} = {arrays[0]}[0];",
            f"for (int lane = 1; lane < {width}; lane++) {text} = {join(text, f'{arrays[0]}[lane]')};"]


def lanes_helper(writer: Writer, op: str, dtype: str, width: int) -> str | None:
    """The helper that joins so many lanes by ``op``, where there is one."""
    helper = f"join_{op}_{dtype}"
    return helper if width == JOINED and helper in writer.dialect.helpers else None


def blocks(elements: int) -> int:
    return max(1, -(-elements // BLOCK))


def integer(count: int) -> str:
    """CUDA's type for a number up to ``count``: int is quicker, and mostly enough."""
    return "int" if count < 2**31 - BLOCK else "long long"


def cuda_thread(names: list[str], lengths: list[int]) -> list[str]:
    """One CUDA thread an element: its number, taken apart into the loops' indices."""
    total = prod(lengths)
    kind = integer(total)
    number = f"{'(long long)' if kind != 'int' else ''}blockIdx.x * blockDim.x + threadIdx.x"
    if len(names) == 1:
        return [f"const {kind} {names[0]} = {number};", f"if ({names[0]} >= {total}) return;"]
    return [f"const {kind} t = {number};", f"if (t >= {total}) return;", *split("t", names, lengths, kind)]


def split(number: str, names: list[str], lengths: list[int], kind: str = "int") -> list[str]:
    """The line that takes one running number apart into the indices of several loops."""
    parts, step = [], 1
    for depth in reversed(range(len(names))):
        text = number if step == 1 else f"{number} / {step}"
        parts.append(f"{names[depth]} = {text}" + (f" % {lengths[depth]}" if depth else ""))
        step *= max(lengths[depth], 1)
    return [f"const {kind} {', '.join(reversed(parts))};"] if parts else []
