"""The product skeleton: a matrix product of few rows, with its epilogue on each sum before it is stored.

Such a product reads each weight once, so it is as fast as memory. Where the weights lie row after row along the summed
axis, each result is a dot product; where they lie along the result, all results of a tile are summed side by side.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from ..access import merge_axes
from ..dialect import Dialect
from ..fusion import PRODUCTS
from ..plan import Launch, Plan
from ..types import DTYPES
from .kernel import Kernel, Operand, Writer, element, indent
from .loops import FREE, PARALLEL, Body, accumulate, around, join_lanes, row_names, split

TILE = 4096  # results summed side by side: the sums stay in the first-level cache
LANES = 128  # bytes of partial sums of a dot product: two vector registers, so that one need not wait for itself
COLUMNS, SLICES = 32, 8  # a CUDA block: so many results side by side, each summed in so many slices
WORTH_THREADS = 1 << 17  # multiplications from which on a second thread pays


class Product(NamedTuple):
    """A matmul seen from its loops: ``few`` is the operand of few rows, ``many`` the one that is streamed."""

    few: Operand
    many: Operand
    loop: int | None  # the loop of the space that runs along ``many`` only
    depth: int  # terms of a sum
    few_step: int  # elements from one term to the next
    many_step: int
    few_cast: str | None = None  # the node that makes the operand's elements floats, in this launch
    many_cast: str | None = None


def find_product(writer: Writer, name: str, space: tuple[int, ...], swap: bool = True) -> Product:
    """The operands of a matmul along the loops over its result. ``swap``: stream whichever operand is the larger one."""
    plan, node = writer.plan, writer.plan.nodes[name]
    loops, count = [], 0
    for dim in node.type.shape:  # the loop of each axis of the result, None for one of length 1
        loops.append(count if dim != 1 else None)
        count += dim != 1
    sides = []
    for side, transposed in zip(node.inputs, (node.value.transpose_a, node.value.transpose_b)):
        cast = side if side in writer.launch.nodes and plan.nodes[side].op == "cast" else None
        source = plan.nodes[side].inputs[0] if cast else side
        shape = list(plan.type(side).shape)
        strides = list(plan.access[source].strides) if source in plan.access else [0] * len(shape)  # inside the launch
        if transposed:
            shape[-2:], strides[-2:] = shape[:-3:-1], strides[:-3:-1]
        sides.append((source, cast, shape, strides))
    (a, a_cast, a_shape, a_strides), (b, b_cast, b_shape, b_strides) = sides
    own_m, own_n = len(a_shape) > 1, len(b_shape) > 1
    batch = loops[:len(loops) - own_m - own_n]
    loop_m = loops[len(batch)] if own_m else None
    loop_n = loops[-1] if own_n else None

    def along(value, shape, strides, kept, own, loop) -> Operand:
        steps = [0] * len(space)
        outer = shape[:-2]
        for place, dim, stride in zip(batch[len(batch) - len(outer):], outer, strides):
            if place is not None and dim != 1:
                steps[place] = stride
        if own and loop is not None:
            steps[loop] = strides[kept]
        return Operand(value, tuple(steps))

    left = along(a, a_shape, a_strides, -2, own_m, loop_m)
    right = along(b, b_shape, b_strides, -1, own_n, loop_n)
    depth, a_step, b_step = a_shape[-1], a_strides[-1], b_strides[-2] if own_n else b_strides[-1]
    rows, columns = a_shape[-2] if own_m else 1, b_shape[-1] if own_n else 1
    if swap and rows > columns:
        return Product(right, left, loop_m, depth, b_step, a_step, b_cast, a_cast)
    return Product(left, right, loop_n, depth, a_step, b_step, a_cast, b_cast)


def product_kernel(plan: Plan, launch: Launch, dialect: Dialect, threads: int = 1, plain: bool = False) -> Kernel:
    """The kernel of an epilogue cluster."""
    from .packed import PackedSkeleton  # they are Skeletons themselves
    from .sparse import BlockSkeleton, SparseSkeleton

    kinds = {"packed_matmul": PackedSkeleton, "sparse_matmul": SparseSkeleton, "block_matmul": BlockSkeleton, "matmul": Skeleton}
    hero = next(plan.nodes[name].op for name in launch.nodes if plan.nodes[name].op in PRODUCTS)
    return kinds[hero](Writer(plan, launch, dialect, plain), threads).kernel()


class Skeleton:
    """The loops around the sums, the epilogue behind them, and the parameters; see ``dots`` and ``side_by_side``."""

    find = staticmethod(find_product)

    def __init__(self, writer: Writer, threads: int):
        self.writer, self.threads = writer, threads
        launch, plan = writer.launch, writer.plan
        space, at = launch.cluster.space, dict(launch.cluster.at)
        self.hero = next(name for name in launch.nodes if plan.nodes[name].op in PRODUCTS)
        self.dtype = writer.dtype(self.hero)
        self.type = writer.dialect.type(self.dtype)
        self.product = self.find(writer, self.hero, space)
        self.few, self.many = writer.pointer(self.product.few), writer.pointer(self.product.many)
        self.after = [name for name in launch.nodes if name in at and name != self.hero]
        self.body = Body(writer, at, len(space), tuple(self.after))
        loop = self.product.loop
        outer = [axis for axis in range(len(space)) if axis != loop]
        strides = [one.strides for one in (self.product.few, self.product.many, *self.body.operands)] + [writer.result()]
        self.outer = merge_axes(tuple(space[a] for a in outer), tuple(tuple(s[a] for a in outer) for s in strides))
        self.rows, self.lengths = row_names(len(self.outer)), [length for length, _ in self.outer]
        self.column, self.width = "n", space[loop] if loop is not None else 1
        self.inner = [(self.width, tuple(s[loop] for s in strides))] if loop is not None else []
        shifted = [(length, steps[2:]) for length, steps in self.outer + self.inner]
        self.names = self.rows + [self.column] * len(self.inner)
        self.body.index(self.names, shifted)
        self.output = writer.name(launch.name)
        self.sum = writer.name(self.hero)

    def terms(self, number: int) -> list[tuple[str, int]]:
        return [(name, steps[number]) for name, (_, steps) in zip(self.names, self.outer + self.inner)]

    def weight(self, row: str) -> str:
        return self.widened(self.product.many_cast, element(self.many, [*self.terms(1), (row, self.product.many_step)]))

    def activation(self, row: str) -> str:
        return self.widened(self.product.few_cast, element(self.few, [*self.terms(0), (row, self.product.few_step)]))

    def widened(self, cast: str | None, text: str) -> str:
        return self.writer.node(cast, [text]) if cast else text

    def times(self, a: str, b: str) -> str:
        return self.writer.combine("mul", a, b, self.dtype)

    def plus(self, a: str, b: str) -> str:
        return self.writer.combine("add", a, b, self.dtype)

    def epilogue(self, total: str) -> list[str]:
        """The lines behind a finished sum."""
        self.body.text[self.hero] = total
        target = element(self.output, self.terms(-1))
        return self.body.stored(self.after, target) if self.after else [f"{target} = {total};"]

    def kernel(self) -> Kernel:
        label = f"matmul_{self.writer.launch.name}"
        if self.writer.dialect.name == "cuda":
            return self.cuda(label)
        dots = self.product.many_step == 1 and self.inner or not self.inner
        lines = self.dots() if dots else self.side_by_side()
        return self.writer.finish(label, around(self.rows, self.lengths, lines), self.output)

    @property
    def shared(self) -> bool:
        return self.threads > 1 and self.width * self.product.depth >= WORTH_THREADS

    def dots(self) -> list[str]:
        """One result after the other: a dot product in lanes."""
        depth, width = self.product.depth, LANES // DTYPES[self.dtype].itemsize
        whole = depth // width * width
        lanes = self.writer.name("sums")
        step = f"{lanes}[lane] = {self.plus(f'{lanes}[lane]', self.times(self.activation('(k + lane)'), self.weight('(k + lane)')))};"
        rest = f"{lanes}[k - {whole}] = {self.plus(f'{lanes}[k - {whole}]', self.times(self.activation('k'), self.weight('k')))};"
        lines = [f"{self.type} {lanes}[{width}] = {{0}};"]
        if whole:
            lines += [f"for (long k = 0; k < {whole}; k += {width}) {{", f"  {FREE}",
                      f"  for (int lane = 0; lane < {width}; lane++) {step}", "}"]
        if whole < depth:
            lines.append(f"for (long k = {whole}; k < {depth}; k++) {rest}")
        lines += [*join_lanes(self.writer, "add", self.dtype, self.sum, [lanes], width, self.plus), *self.epilogue(self.sum)]
        if not self.inner:
            return lines
        head = [PARALLEL] * self.shared
        return [*head, f"for (long {self.column} = 0; {self.column} < {self.width}; {self.column}++) {{", *indent(lines), "}"]

    def side_by_side(self) -> list[str]:
        """A tile of results at once: each row of weights is scaled by its activation and added to the sums."""
        width, depth = self.width, self.product.depth
        tile = min(width, TILE if not self.shared else -(-width // self.threads // 16) * 16)
        sums, n = self.writer.name("sums"), self.column
        one_tile = tile >= width
        place = n if one_tile else f"{n} - first"
        head, loop = ("0", str(width)) if one_tile else ("first", "end")
        over = f"for (long {n} = {head}; {n} < {loop}; {n}++)"
        lines = [f"{self.type} {sums}[{tile}];", f"{over} {sums}[{place}] = {self.writer.dialect.literal(self.dtype, 0)};"]
        lines += accumulate(self.writer, self.dtype, "k", 0, depth, over, f"{sums}[{place}]", self.activation, self.weight)
        lines += [FREE, f"{over} {{", *indent([f"const {self.type} {self.sum} = {sums}[{place}];", *self.epilogue(self.sum)]), "}"]
        if one_tile:
            return lines
        head = [PARALLEL] * self.shared
        return [*head, f"for (long first = 0; first < {width}; first += {tile}) {{",
                f"  const long end = first + {tile} < {width} ? first + {tile} : {width};", *indent(lines), "}"]

    def cuda_rows(self, tiles: int) -> list[str]:
        """The outer loops' indices from the number of the block, of which ``tiles`` work on one row."""
        if not self.rows:
            return []
        return [f"const int row = blockIdx.x / {tiles};", *split("row", self.rows, self.lengths)]

    def cuda(self, label: str) -> Kernel:
        """A block sums 32 results side by side, so that neighbours read neighbouring weights; 8 slices of the sum share the work."""
        depth, tiles = self.product.depth, -(-self.width // COLUMNS)
        outer = prod(self.lengths)
        sums = self.writer.name("sums")
        lines = self.cuda_rows(tiles)
        tile = "threadIdx.x" if tiles == 1 else f"blockIdx.x % {tiles} * {COLUMNS} + threadIdx.x"
        lines += [f"const int {self.column} = {tile};", f"__shared__ {self.type} {sums}[{SLICES}][{COLUMNS}];",
                  f"{self.type} part = {self.writer.dialect.literal(self.dtype, 0)};"]
        total = self.plus("part", self.times(self.activation("k"), self.weight("k")))
        lines += [f"if ({self.column} < {self.width})", f"  for (int k = threadIdx.y; k < {depth}; k += {SLICES}) part = {total};",
                  f"{sums}[threadIdx.y][threadIdx.x] = part;", "__syncthreads();", f"if (threadIdx.y > 0 || {self.column} >= {self.width}) return;",
                  f"{self.type} {self.sum} = part;",
                  f"for (int slice = 1; slice < {SLICES}; slice++) {self.sum} = {self.plus(self.sum, f'{sums}[slice][threadIdx.x]')};",
                  *self.epilogue(self.sum)]
        return self.writer.finish(label, lines, self.output, grid=max(1, outer * tiles), block=(COLUMNS, SLICES))
