"""The kernels that only move elements: concat, pad, take and update_slice."""

from __future__ import annotations

from math import prod

from ..access import merge_axes, row_major
from ..dialect import Dialect
from ..plan import Launch, Plan
from .kernel import Kernel, Operand, Writer, element, indent
from .loops import BLOCK, blocks, cuda_thread, loop_names, nest


def move_kernel(plan: Plan, launch: Launch, dialect: Dialect, threads: int = 1, plain: bool = False) -> Kernel:
    """The kernel of a move cluster."""
    return Mover(Writer(plan, launch, dialect, plain)).kernel()


class Mover:
    def __init__(self, writer: Writer):
        self.writer, self.plan = writer, writer.plan
        self.node = writer.plan.nodes[writer.launch.name]
        self.shape = self.node.type.shape
        self.strides = row_major(self.shape)
        self.cuda = writer.dialect.name == "cuda"
        self.grid = 1

    def kernel(self) -> Kernel:
        lines = MOVES[self.node.op](self)
        facts = dict(grid=self.grid, block=(BLOCK, 1)) if self.cuda else {}
        return self.writer.finish(f"{self.node.op}_{self.node.name}", lines, self.output, fails=self.node.op in ("take", "update_slice"), **facts)

    def loops(self, shape, strides: list[tuple[int, ...]], line, guard: bool = False) -> list[str]:
        """Loops over a shape; ``line(terms)`` gives the statements, with the index terms for each of the strides."""
        merged = merge_axes(shape, tuple(strides)) or [(1, (0,) * len(strides))]
        names = loop_names(len(merged))
        body = line([[(name, steps[number]) for name, (_, steps) in zip(names, merged)] for number in range(len(strides))])
        lengths = [length for length, _ in merged]
        if self.cuda:
            self.grid = max(self.grid, blocks(prod(lengths)))
            start = cuda_thread(names, lengths)
            skip = [part for part in start if not part.startswith("if")]
            number = names[0] if len(names) == 1 else "t"
            rest = skip[1:]
            return ["{", *indent([skip[0], f"if ({number} < {prod(lengths)}) {{", *indent([*rest, *body]), "}"]), "}"]
        return ["{", *indent(nest(names, lengths, body, 1)), "}"] if guard else nest(names, lengths, body, 1)

    def operand(self, value: str) -> Operand:
        return Operand(value, self.plan.access[value].strides)

    def read(self, value: str, terms) -> str:
        literal = self.writer.literal(value)
        return element(self.writer.pointer(self.operand(value)), terms) if literal is None else literal

    def out(self, terms, offset: int = 0) -> str:
        text = element(self.output, terms)
        return text if not offset else text[:-1].replace("[0", f"[{offset}") + "]" if text.endswith("[0]") else f"{text[:-1]} + {offset}]"

    def copy(self, value: str, offset: int = 0) -> list[str]:
        """The value's elements to the result, from this element on."""
        access = self.plan.access[value]
        return self.loops(access.shape, [access.strides, self.strides],
                          lambda terms: [f"{self.out(terms[1], offset)} = {self.read(value, terms[0])};"])

    def concat(self) -> list[str]:
        for value in self.node.inputs:
            if self.writer.literal(value) is None:
                self.writer.pointer(self.operand(value))
        self.output = self.writer.name(self.node.name)
        axis, lines, offset = self.node.value.axis % len(self.shape), [], 0
        for value in self.node.inputs:
            dim = self.plan.type(value).shape[axis]
            if self.plan.type(value).size:
                lines += self.copy(value, offset * self.strides[axis])
            offset += dim
        return lines

    def pad(self) -> list[str]:
        value, filling = self.node.inputs
        for one in (value, filling):
            if self.writer.literal(one) is None:
                self.writer.pointer(self.operand(one))
        self.output = self.writer.name(self.node.name)
        access = self.plan.access[value]
        fill = self.read(filling, [])
        shift = sum(low * step for low, step in zip(self.node.value.low, self.strides))
        if not self.cuda:
            lines = self.loops(self.shape, [self.strides], lambda terms: [f"{self.out(terms[0])} = {fill};"])
            return lines + (self.copy(value, shift) if self.plan.type(value).size else [])
        # one thread an element of the result: two writes of one element would race
        names = loop_names(len(self.shape))
        start = cuda_thread(names or ["i"], list(self.shape) or [1])
        self.grid = blocks(prod(self.shape))
        inside = [f"{name} >= {low} && {name} < {low + dim}" for name, low, dim in zip(names, self.node.value.low, access.shape)]
        terms = [(f"({name} - {low})" if low else name, step) for name, low, step in zip(names, self.node.value.low, access.strides)]
        choice = f"{' && '.join(inside) or '1'} ? {self.read(value, terms)} : {fill}"
        return [*start, f"{element(self.output, list(zip(names, self.strides)))} = {choice};"]

    def position(self, value: str) -> str:
        """The text of a run-time index, which is 0-d."""
        literal = self.writer.literal(value)
        return literal if literal is not None else element(self.writer.pointer(self.operand(value)), [])

    def fail(self) -> str:
        return "{ *status = 1; return; }" if self.cuda else "return 1;"

    def take(self) -> list[str]:
        table, indices = self.node.inputs
        wide, narrow = self.plan.access[table], self.plan.access[indices]
        axis = self.node.value.axis % len(wide.shape)
        size = wide.shape[axis]
        rank = len(narrow.shape)
        # along the result's axes: before the axis, the index's own, after it
        table_steps = wide.strides[:axis] + (0,) * rank + wide.strides[axis + 1:]
        index_steps = (0,) * axis + narrow.strides + (0,) * (len(wide.shape) - axis - 1)
        for value in (table, indices):
            if self.writer.literal(value) is None:
                self.writer.pointer(self.operand(value))
        self.output = self.writer.name(self.node.name)
        at = self.writer.name("at")
        unsigned = self.plan.type(indices).dtype[0] == "u"

        def line(terms):
            lines = [f"long long {at} = {self.read(indices, terms[1])};"]
            if not unsigned:
                lines.append(f"if ({at} < 0) {at} += {size};  // -1 is the last")
            lines.append(f"if ({at} < 0 || {at} >= {size}) {self.fail()}")
            return [*lines, f"{self.out(terms[2])} = {self.read(table, [*terms[0], (at, wide.strides[axis])])};"]

        return [text for text in self.loops(self.shape, [table_steps, index_steps, self.strides], line) if "ivdep" not in text]

    def update_slice(self) -> list[str]:
        target, update, start = self.node.inputs
        access, part = self.plan.access[target], self.plan.access[update]
        axis = self.node.value.axis % len(self.shape)
        in_place = self.writer.launch.in_place == target
        for value in (target, update, start):
            if self.writer.literal(value) is None:
                self.writer.pointer(self.operand(value))
        self.output = self.writer.name(self.node.name)
        at = self.writer.name("at")
        most = self.shape[axis] - part.shape[axis]
        lines = [f"const long long {at} = {self.position(start)};", f"if ({at} < 0 || {at} > {most}) {self.fail()}"]
        shifted = [(at, self.strides[axis])]
        write = lambda terms: [f"{element(self.output, [*terms[1], *shifted])} = {self.read(update, terms[0])};"]  # noqa: E731
        if in_place:
            return lines + self.loops(part.shape, [part.strides, self.strides], write)
        if not self.cuda:
            return lines + self.copy(target) + (self.loops(part.shape, [part.strides, self.strides], write) if prod(part.shape) else [])
        names = loop_names(len(self.shape))
        self.grid = blocks(prod(self.shape))
        here = names[axis]
        terms = [(f"({name} - {at})" if name == here else name, step) for name, step in zip(names, part.strides)]
        choice = (f"{here} >= {at} && {here} < {at} + {part.shape[axis]} ? {self.read(update, terms)} : "
                  f"{self.read(target, list(zip(names, access.strides)))}")
        return [*lines, *cuda_thread(names, list(self.shape)), f"{element(self.output, list(zip(names, self.strides)))} = {choice};"]


MOVES = {"concat": Mover.concat, "pad": Mover.pad, "take": Mover.take, "update_slice": Mover.update_slice}
