"""The product skeleton for packed weights: blocks of 4 or 8 bits are read as they are stored and never written out.

The weights of 16 rows are interleaved word by word, so that one vector register holds a word of each of them, and a sum
for each row grows in its own lane. The activations stay float32.
"""

from __future__ import annotations

from pathlib import Path

from ..formats import FORMATS, TILE
from .kernel import Kernel, Operand, Writer, element, indent
from .loops import PARALLEL
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
        blocks = self.product.depth // self.format.values
        nbytes = self.format.nbytes * TILE * blocks  # of a tile
        x = element(self.few, self.terms(0))
        if self.writer.dialect.name == "cuda":
            return self.cuda(label, blocks, nbytes, x)
        inputs, sums = self.writer.name("inputs"), self.writer.name("sums")
        lines = [f"const float {self.sum} = {sums}[lane];", *self.epilogue(self.sum)]
        tile = [f"float {sums}[{TILE}];", f"{self.kind}_tile({self.many} + tile*{nbytes}, {inputs}, {blocks}, {sums});",
                f"for (int lane = 0; lane < {TILE}; lane++) {{", f"  const long {self.column} = tile*{TILE} + lane;", *indent(lines), "}"]
        head = [PARALLEL] * (self.threads > 1 and self.width * self.product.depth >= WORTH_THREADS)
        text = [f"float {inputs}[{blocks * (self.format.values + 1)}];",
                f"{self.kind}_inputs(&{x}, {self.product.few_step}, {blocks}, {inputs});",
                *head, f"for (long tile = 0; tile < {self.width // TILE}; tile++) {{", *indent(tile), "}"]
        for name, (length, _) in reversed(list(zip(self.rows, self.outer))):
            text = [f"for (long {name} = 0; {name} < {length}; {name}++) {{", *indent(text), "}"]
        self.writer.helpers.add("packed")
        return self.writer.finish(label, text, self.output)

    def cuda(self, label: str, blocks: int, nbytes: int, x: str) -> Kernel:
        """A thread a row: neighbours read neighbouring words."""
        tiles = -(-self.width // THREADS)
        lengths = [length for length, _ in self.outer]
        lines = self.cuda_rows(lengths, tiles)
        lines += [f"const int {self.column} = blockIdx.x % {tiles} * {THREADS} + threadIdx.x;",
                  f"if ({self.column} >= {self.width}) return;",
                  f"const float {self.sum} = {self.kind}_row({self.many} + {self.column} / {TILE} * {nbytes}ll, {self.column} % {TILE}, "
                  f"&{x}, {self.product.few_step}, {blocks});", *self.epilogue(self.sum)]
        self.writer.helpers.add("packed")
        outer = 1
        for length in lengths:
            outer *= length
        return self.writer.finish(label, lines, self.output, grid=outer * tiles, block=(THREADS, 1))
