"""The attention skeleton: a row of scores never leaves the cache, however long it is.

The scores come in tiles. Of all tiles so far three things are known: the largest score, the sum of exp(score - largest)
and the values weighted by those. A tile with a larger score scales the other two down (Milakov and Gimelshein, "Online
normalizer calculation for softmax", 2018; Dao et al., "FlashAttention", 2022). So the result is within the rounding
bound of the plain formula, not equal to the bit.
"""

from __future__ import annotations

from math import prod

from ..access import merge_axes, squeeze
from ..dialect import Dialect
from ..plan import Launch, Plan
from ..types import DTYPES
from .kernel import Kernel, Operand, Writer, element, indent
from .loops import FREE, PARALLEL, Body, accumulate, around, row_names, split
from .products import find_product

TILE = 128  # scores at once; on CUDA also the threads of a block
WORTH_THREADS = 1 << 16  # multiplications from which on a second thread pays


def attention_kernel(plan: Plan, launch: Launch, dialect: Dialect, threads: int = 1, plain: bool = False) -> Kernel:
    """The kernel of an attention cluster."""
    return Skeleton(Writer(plan, launch, dialect, plain), threads).kernel()


class Skeleton:
    def __init__(self, writer: Writer, threads: int):
        self.writer, self.threads = writer, threads
        plan, launch = writer.plan, writer.launch
        space, at = launch.cluster.space, dict(launch.cluster.at)
        self.scores = next(name for name in launch.nodes if plan.nodes[name].op == "matmul")
        top = next(plan.nodes[name] for name in launch.nodes if plan.nodes[name].op == "max" and name not in at)
        self.logits = top.inputs[0]
        self.dtype = writer.dtype(launch.name)
        self.type = writer.dialect.type(self.dtype)
        self.first = find_product(writer, self.scores, space, swap=False)
        mixed_space = squeeze(plan.type(launch.name).shape)
        second = find_product(writer, launch.name, mixed_space, swap=False)
        self.depth, self.length, self.width = self.first.depth, space[-1], mixed_space[-1]
        # the values: along the rows as the result has them, one step a score, one step a column
        values = second.many
        self.values = Operand(values.value, (*values.strides[:-1], second.many_step))
        self.column_step = values.strides[-1]
        q, k, v = self.first.few, self.first.many, self.values
        self.q, self.k, self.v = writer.pointer(q), writer.pointer(k), writer.pointer(v)
        self.body = Body(writer, at, len(space), tuple(name for name in launch.nodes if name in at and name != self.scores))
        rows = tuple(space[:-1])
        result = writer.result()[:-1]
        strides = [one.strides for one in (q, k, v, *self.body.operands)]
        self.outer = merge_axes(rows, (*(s[:-1] for s in strides), result))
        self.rows = row_names(len(self.outer))
        self.tile = min(TILE, 1 << (self.length - 1).bit_length())  # a power of two, so that halves join
        self.steps = [s[-1] for s in strides]
        self.body.index(self.rows, [(length, steps[3:-1]) for length, steps in self.outer])
        for number, one in enumerate(self.body.operands):
            self.body.terms[one] = [*self.body.terms[one], ("n", self.steps[3 + number])]
        self.output = writer.name(launch.name)
        self.names = {word: writer.name(word) for word in ("tile", "mixed", "largest", "total", "before", "shift", "shrink", "score", "share")}

    def terms(self, number: int) -> list[tuple[str, int]]:
        return [(name, steps[number]) for name, (_, steps) in zip(self.rows, self.outer)]

    def at_q(self, depth: str) -> str:
        return element(self.q, [*self.terms(0), (depth, self.first.few_step)])

    def at_k(self, score: str, depth: str) -> str:
        return element(self.k, [*self.terms(1), (score, self.steps[1]), (depth, self.first.many_step)])

    def at_v(self, score: str, column: str) -> str:
        return element(self.v, [*self.terms(2), (score, self.steps[2]), (column, self.column_step)])

    def out(self, column: str) -> str:
        return element(self.output, [*self.terms(-1), (column, 1)])

    def text(self, op: str, *operands: str) -> str:
        return self.writer.apply(op, list(operands), [self.dtype] * len(operands), self.dtype)

    def literal(self, value: float) -> str:
        return self.writer.dialect.literal(self.dtype, value)

    def logit(self, score: str) -> tuple[list[str], str]:
        """The lines from a raw score to what the softmax takes, and its text."""
        self.body.text[self.scores] = score
        nodes = list(self.body.reads)
        lines = self.body.loads(nodes) + [line for name in nodes for line in self.body.line(name)]
        return lines, self.body.text[self.logits]

    def tile_start(self) -> list[str]:
        """A larger score than before shrinks what was summed so far. A row of -inf alone shrinks nothing."""
        n = self.names
        return [f"const {self.type} {n['shift']} = {n['largest']} == -INFINITY ? {self.literal(0)} : {n['largest']};",
                f"const {self.type} {n['shrink']} = {self.text('exp', self.text('sub', n['before'], n['shift']))};"]

    def kernel(self) -> Kernel:
        label = f"attention_{self.writer.launch.name}"
        return self.cuda(label) if self.writer.dialect.name == "cuda" else self.c(label)

    # ---- C: a row after the other, the loops over a tile in vectors

    def c(self, label: str) -> Kernel:
        n, tile, length = self.names, self.tile, self.length
        lines = [f"{self.type} {n['tile']}[{tile}], part[{tile}], {n['mixed']}[{self.width}];",
                 f"{self.type} {n['largest']} = -INFINITY, {n['total']} = {self.literal(0)};",
                 f"for (long c = 0; c < {self.width}; c++) {n['mixed']}[c] = {self.literal(0)};"]
        over, score = "for (long n = first; n < end; n++)", f"{n['tile']}[n - first]"
        every, columns = f"for (long t = 0; t < {tile}; t++)", f"for (long c = 0; c < {self.width}; c++)"
        inner = [f"const long end = first + {tile} < {length} ? first + {tile} : {length};", *self.c_scores(over, score)]
        prologue, logit = self.logit(score)
        if prologue:
            inner += [FREE, f"{over} {{", *indent([*prologue, f"{score} = {logit};"]), "}"]
        if length % tile:  # the rest of the last tile counts for nothing
            inner.append(f"for (long t = end - first; t < {tile}; t++) {n['tile']}[t] = -INFINITY;")
        inner += [*self.c_tree("maximum", every), f"const {self.type} {n['before']} = {n['largest']};",
                  f"{n['largest']} = {self.text('maximum', n['largest'], 'part[0]')};", *self.tile_start(),
                  FREE, f"{every} {n['tile']}[t] = {self.text('exp', self.text('sub', n['tile'] + '[t]', n['shift']))};",
                  *self.c_tree("add", every),
                  f"{n['total']} = {self.text('add', self.text('mul', n['total'], n['shrink']), 'part[0]')};",
                  FREE, f"{columns} {n['mixed']}[c] = {self.text('mul', n['mixed'] + '[c]', n['shrink'])};",
                  *accumulate(self.writer, self.dtype, "n", "first", "end", columns, f"{n['mixed']}[c]",
                              lambda place: f"{n['tile']}[{place} - first]", lambda place: self.at_v(place, "c"))]
        lines += [f"for (long first = 0; first < {length}; first += {tile}) {{", *indent(inner), "}",
                  f"{columns} {self.out('c')} = {self.text('div', n['mixed'] + '[c]', n['total'])};"]
        shared = self.threads > 1 and prod(x for x, _ in self.outer) * length * self.depth >= WORTH_THREADS
        lines = around(self.rows, [count for count, _ in self.outer], lines, PARALLEL if shared else "")
        return self.writer.finish(label, lines, self.output)

    def c_tree(self, op: str, every: str) -> list[str]:
        """Join a tile: half of it takes in the other half, again and again; afterwards part[0] holds the result."""
        return [f"{every} part[t] = {self.names['tile']}[t];", f"for (long step = {self.tile // 2}; step > 0; step /= 2)",
                f"  for (long t = 0; t < step; t++) part[t] = {self.text(op, 'part[t]', 'part[t + step]')};"]

    def c_scores(self, over: str, score: str) -> list[str]:
        """The products q @ k of a tile: side by side where neighbouring scores read neighbouring elements, else in lanes."""
        if self.steps[1] == 1:
            return [f"{over} {score} = {self.literal(0)};",
                    *accumulate(self.writer, self.dtype, "k", 0, self.depth, over, score, self.at_q, lambda place: self.at_k("n", place))]
        width = 64 // DTYPES[self.dtype].itemsize
        whole, sums = self.depth // width * width, self.writer.name("sums")

        def plus(place: str, k: str) -> str:
            return f"{sums}[{place}] = {self.text('add', f'{sums}[{place}]', self.text('mul', self.at_q(k), self.at_k('n', k)))};"

        lines = [f"{self.type} {sums}[{width}] = {{0}};"]
        if whole:
            lines += [f"for (long k = 0; k < {whole}; k += {width})", f"  for (int lane = 0; lane < {width}; lane++) {plus('lane', '(k + lane)')}"]
        if whole < self.depth:
            lines.append(f"for (long k = {whole}; k < {self.depth}; k++) {plus(f'k - {whole}', 'k')}")
        lines += [f"{self.type} {self.names['score']} = {sums}[0];",
                  f"for (int lane = 1; lane < {width}; lane++) {self.names['score']} = {self.text('add', self.names['score'], f'{sums}[lane]')};",
                  f"{score} = {self.names['score']};"]
        return [f"{over} {{", *indent(lines), "}"]

    # ---- CUDA: a block a row, a thread a score of the tile and then a column of the values

    def cuda(self, label: str) -> Kernel:
        n, tile, length = self.names, TILE, self.length
        score = n["score"]
        prologue, logit = self.logit(score)
        dot = self.text("add", score, self.text("mul", self.at_q("k"), self.at_k("n", "k")))
        lines = [*split("blockIdx.x", self.rows, [count for count, _ in self.outer]), "const int t = threadIdx.x;",
                 f"__shared__ {self.type} {n['tile']}[{tile}], {n['mixed']}[{self.width}], part[{tile}];",
                 f"{self.type} {n['largest']} = -INFINITY, {n['total']} = {self.literal(0)};",
                 f"for (int c = t; c < {self.width}; c += {tile}) {n['mixed']}[c] = {self.literal(0)};"]
        inner = ["const int n = first + t;", f"{self.type} logit = -INFINITY;",
                 f"if (n < {length}) {{", f"  {self.type} {score} = {self.literal(0)};",
                 f"  for (int k = 0; k < {self.depth}; k++) {score} = {dot};", *indent([*prologue, f"logit = {logit};"]), "}",
                 *self.tree("maximum", "logit"), f"const {self.type} {n['before']} = {n['largest']};",
                 f"{n['largest']} = {self.text('maximum', n['largest'], 'part[0]')};", *self.tile_start(),
                 f"{n['tile']}[t] = n < {length} ? {self.text('exp', self.text('sub', 'logit', n['shift']))} : {self.literal(0)};",
                 "__syncthreads();", *self.tree("add", f"{n['tile']}[t]"),
                 f"{n['total']} = {self.text('add', self.text('mul', n['total'], n['shrink']), 'part[0]')};",
                 f"for (int c = t; c < {self.width}; c += {tile}) {{",
                 f"  {self.type} sum = {self.text('mul', n['mixed'] + '[c]', n['shrink'])};",
                 f"  for (int other = 0; other < {tile} && first + other < {length}; other++) sum = "
                 + self.text("add", "sum", self.text("mul", n["tile"] + "[other]", self.at_v("(first + other)", "c"))) + ";",
                 f"  {n['mixed']}[c] = sum;", "}", "__syncthreads();"]
        lines += [f"for (int first = 0; first < {length}; first += {tile}) {{", *indent(inner), "}",
                  f"for (int c = t; c < {self.width}; c += {tile}) {self.out('c')} = {self.text('div', n['mixed'] + '[c]', n['total'])};"]
        return self.writer.finish(label, lines, self.output, grid=prod(count for count, _ in self.outer) or 1, block=(tile, 1))

    def tree(self, op: str, value: str) -> list[str]:
        """Join the threads' values; afterwards part[0] holds the result."""
        return [f"part[t] = {value};", "__syncthreads();", f"for (int step = {TILE // 2}; step > 0; step /= 2) {{",
                f"  if (t < step) part[t] = {self.text(op, 'part[t]', 'part[t + step]')};", "  __syncthreads();", "}"]
