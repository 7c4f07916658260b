"""The product skeletons for sparse weights: zeros that are not stored are not read, and not multiplied.

As for packed weights, 16 rows are interleaved, and a sum for each row grows in its own lane; see ``sparse.h``.
"""

from __future__ import annotations

from math import prod
from pathlib import Path

from ..sparse import TILE, WORD
from .kernel import Kernel, Operand, element
from .packed import PackedSkeleton

HELPERS = {"c": Path(__file__).with_name("sparse.h"), "cuda": Path(__file__).with_name("sparse.cuh")}


def source(dialect: str) -> str:
    """The text of the helpers that these kernels call."""
    return HELPERS[dialect].read_text(encoding="utf-8")


class SparseSkeleton(PackedSkeleton):
    """2:4. A subclass says what else it reads, and the lines for one tile (C) or one row (CUDA)."""

    fails = False

    def __init__(self, writer, threads: int):
        super().__init__(writer, threads)
        plan, space = writer.plan, (0,) * len(writer.launch.cluster.space)
        self.inputs = plan.nodes[self.hero].inputs
        self.shapes = [plan.type(name).shape for name in self.inputs]
        self.others = [writer.pointer(Operand(name, space)) for name in self.inputs[2:]]

    @property
    def words(self) -> int:
        return self.product.depth // WORD

    def check(self) -> list[str]:
        return []

    def tile(self, x: str, sums: str) -> str:
        weights = f"{self.many} + tile*{self.words * WORD // 2 * TILE}, {self.others[0]} + tile*{self.words * TILE}"
        return f"two_of_four({weights}, {x}, {self.words}, {sums});"

    def row(self, x: str) -> tuple[list[str], str]:
        tile, lane = f"(long long)({self.column} / {TILE})", f"{self.column} % {TILE}"
        return [], (
            f"two_of_four({self.many} + {tile}*{self.words * WORD // 2 * TILE} + {lane}, "
            f"{self.others[0]} + {tile}*{self.words * TILE} + {lane}, &{x}, {self.product.few_step}, {self.words})"
        )

    def kernel(self) -> Kernel:
        label = f"matmul_{self.writer.launch.name}"
        self.writer.helpers.add("sparse")
        x = element(self.few, self.terms(0))
        if self.writer.dialect.name == "cuda":
            return self.cuda(label, *self.row(x), fails=self.fails)
        sums, text, start = self.writer.name("sums"), [], f"&{x}"
        if self.product.few_step != 1:
            start = self.writer.name("inputs")
            text = [
                f"float {start}[{self.product.depth}];",
                f"for (long k = 0; k < {self.product.depth}; k++) {start}[k] = {self.activation('k')};",
            ]
        return self.tiles(label, text, self.tile(start, sums), sums, prod(self.shapes[1]), self.check(), fails=self.fails)


class BlockSkeleton(SparseSkeleton):
    """Block-sparse rows. Their indices are data, so they are checked before they are followed."""

    fails = True

    @property
    def facts(self) -> tuple[int, int, int]:
        """How many blocks, columns of one, and blocks across."""
        count, columns, _ = self.shapes[1]
        return count, columns, self.product.depth // columns

    def check(self) -> list[str]:
        count, _, across = self.facts
        indices, starts = self.others
        return [f"if (bad_blocks({indices}, {starts}, {self.width // TILE}, {count}, {across})) return 1;"]

    def tile(self, x: str, sums: str) -> str:
        indices, starts = self.others
        return f"some_blocks({self.many}, {indices}, {starts}[tile], {starts}[tile + 1], {x}, {self.facts[1]}, {sums});"

    def row(self, x: str) -> tuple[list[str], str]:
        count, columns, across = self.facts
        indices, starts = self.others
        tile, lane = f"{self.column} / {TILE}", f"{self.column} % {TILE}"
        before = [
            f"const int first = {starts}[{tile}], end = {starts}[{tile} + 1];",
            f"if (bad_blocks({indices}, first, end, {count}, {across})) {{ *status = 1; return; }}",
        ]
        return (
            before,
            f"some_blocks({self.many}, {indices}, first, end, {lane}, &{x}, {self.product.few_step}, {columns})",
        )
