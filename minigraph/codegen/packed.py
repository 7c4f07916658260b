"""The product skeleton for packed weights: blocks of 4 or 8 bits are read as they are stored and never written out.

The weights of 16 rows are interleaved word by word, so that one vector register holds a word of each of them, and a sum
for each row grows in its own lane. The activations stay float32.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from pathlib import Path

from ..formats import FORMATS, TILE
from .kernel import Kernel, Operand, Writer, element, indent
from .loops import PARALLEL, around
from .products import WORTH_THREADS, Product, Skeleton

HELPERS = {"c": Path(__file__).with_name("packed.h"), "cuda": Path(__file__).with_name("packed.cuh")}
THREADS = 128  # of a CUDA block, one a row


def source(dialect: str) -> str:
    """The text of the helpers that these kernels call."""
    return HELPERS[dialect].read_text(encoding="utf-8")


class PackedSkeleton(Skeleton):
    @staticmethod
    def find(writer: Writer, name: str, space: tuple[int, ...]) -> Product:
        """The activations run along the outer loops; the weights' rows are the last one."""
        plan, node = writer.plan, writer.plan.nodes[name]
        x, weights = node.inputs[:2]
        access = plan.access[x]
        steps = [stride for dim, stride in zip(access.shape[:-1], access.strides) if dim != 1]
        few = Operand(x, (*steps, 0))
        return Product(few, Operand(weights, (0,) * len(space)), len(space) - 1, access.shape[-1], access.strides[-1], 1)

    @property
    def format(self):
        return FORMATS[self.writer.plan.nodes[self.hero].value.format]

    @property
    def kind(self) -> str:
        return self.format.name.partition("x")[0]  # as in the names of the helpers

    def kernel(self) -> Kernel:
        label = f"matmul_{self.writer.launch.name}"
        self.writer.helpers.add("packed")
        blocks = self.product.depth // self.format.values
        nbytes = self.format.nbytes * TILE * blocks  # of a tile
        x = element(self.few, self.terms(0))
        if self.writer.dialect.name == "cuda":
            row = f"{self.many} + {self.column} / {TILE} * {nbytes}ll, {self.column} % {TILE}, &{x}, {self.product.few_step}, {blocks}"
            return self.cuda(label, [], f"{self.kind}_row({row})")
        inputs, sums = self.writer.name("inputs"), self.writer.name("sums")
        before = [f"float {inputs}[{blocks * (self.format.values + 1)}];",
                  f"{self.kind}_inputs(&{x}, {self.product.few_step}, {blocks}, {inputs});"]
        sum_up = f"{self.kind}_tile({self.many} + tile*{nbytes}, {inputs}, {blocks}, {sums});"
        return self.tiles(label, before, sum_up, sums, self.width * self.product.depth)

    def tiles(self, label: str, before: list[str], sum_up: str, sums: str, work: int, start: Iterable[str] = (), **facts) -> Kernel:
        """The C kernel: 16 rows at a time, ``sum_up`` writes their sums; ``work`` are the multiplications of a row of x."""
        lines = [f"const float {self.sum} = {sums}[lane];", *self.epilogue(self.sum)]
        tile = [f"float {sums}[{TILE}];", sum_up, f"for (int lane = 0; lane < {TILE}; lane++) {{",
                f"  const long {self.column} = tile*{TILE} + lane;", *indent(lines), "}"]
        shared = PARALLEL if self.threads > 1 and work >= WORTH_THREADS else ""
        text = around(self.rows, self.lengths, [*before, *around(["tile"], [self.width // TILE], tile, shared)])
        return self.writer.finish(label, [*start, *text], self.output, **facts)

    def cuda(self, label: str, before: list[str], total: str, **facts) -> Kernel:
        """The CUDA kernel, a thread a row: neighbours read neighbouring words."""
        tiles = -(-self.width // THREADS)
        lines = [*self.cuda_rows(tiles), f"const int {self.column} = blockIdx.x % {tiles} * {THREADS} + threadIdx.x;",
                 f"if ({self.column} >= {self.width}) return;", *before, f"const float {self.sum} = {total};", *self.epilogue(self.sum)]
        return self.writer.finish(label, lines, self.output, grid=prod(self.lengths) * tiles, block=(THREADS, 1), **facts)
