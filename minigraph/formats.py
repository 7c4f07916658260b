"""Packed numbers: blocks of a few bits a number with a common scale, as GGUF files lay them out.

A row of K numbers is K/32 blocks, one after the other, as bytes (u8). ``unpack`` is exact; ``pack`` rounds. The formats
with ``x16`` hold the same blocks of 16 rows interleaved word by word: a vector register then holds one word of each row.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import NamedTuple

import numpy as np

BLOCK = 32  # numbers that share a scale


class Format(NamedTuple):
    """``nbytes`` bytes hold ``values`` numbers. ``unpack``: u8[blocks, nbytes] -> f32[blocks, values]; ``pack`` its inverse.

    Where ``rows`` is more than 1, so many rows are one row of bytes, and ``weave`` and ``unravel`` interleave them and
    take them apart: u8[tiles, rows, blocks, nbytes] <-> u8[tiles, rows * blocks * nbytes].
    """

    name: str
    values: int
    nbytes: int
    unpack: Callable[[np.ndarray], np.ndarray]
    pack: Callable[[np.ndarray], np.ndarray]
    rows: int = 1
    weave: Callable[[np.ndarray], np.ndarray] | None = None
    unravel: Callable[[np.ndarray, int], np.ndarray] | None = None

    def packed_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the bytes that hold f32[shape]."""
        *outer, length = shape
        if self.rows > 1:
            outer[-1] //= self.rows
        return (*outer, length // self.values * self.nbytes * self.rows)

    def shape(self, packed: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the numbers in u8[packed]."""
        *outer, length = packed
        if self.rows > 1:
            outer[-1] *= self.rows
        return (*outer, length // (self.nbytes * self.rows) * self.values)


def halves(numbers: np.ndarray) -> np.ndarray:
    """float16 numbers f16[blocks] as bytes u8[blocks, 2]."""
    return numbers.astype("<f2")[:, None].view(np.uint8)


def rounded(quotients: np.ndarray, low: int, high: int) -> np.ndarray:
    """To the nearest integer, half to even, within bounds; what is no number counts as 0."""
    return np.clip(np.nan_to_num(np.rint(quotients), nan=0.0), low, high)


def divide(x: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """x / scale, and 0 where a whole block is 0."""
    return x / np.where(scale == 0, np.float32(1), scale)


def unpack_q8_0(blocks: np.ndarray) -> np.ndarray:
    """A float16 scale, then 32 int8: value = scale * q."""
    scale = np.ascontiguousarray(blocks[:, :2]).view("<f2").astype(np.float32)
    return np.ascontiguousarray(blocks[:, 2:]).view(np.int8) * scale


def pack_q8_0(x: np.ndarray) -> np.ndarray:
    scale = halves(np.abs(x).max(axis=1) / np.float32(127))
    quotients = divide(x, scale.view("<f2").astype(np.float32))
    return np.concatenate([scale, rounded(quotients, -127, 127).astype(np.int8).view(np.uint8)], axis=1)


def unpack_q4_1(blocks: np.ndarray) -> np.ndarray:
    """A float16 scale and a float16 offset, then 16 bytes of two 4-bit numbers: value = scale * q + offset.

    The low halves of the bytes are values 0 to 15 of the block, the high halves are values 16 to 31.
    """
    pair = np.ascontiguousarray(blocks[:, :4]).view("<f2").astype(np.float32)
    values = np.empty((len(blocks), BLOCK), np.float32)
    np.multiply(blocks[:, 4:] & 15, pair[:, :1], out=values[:, :16])
    np.multiply(blocks[:, 4:] >> 4, pair[:, :1], out=values[:, 16:])
    values += pair[:, 1:]
    return values


def pack_q4_1(x: np.ndarray) -> np.ndarray:
    low = x.min(axis=1)
    scale, offset = halves((x.max(axis=1) - low) / np.float32(15)), halves(low)
    steps = rounded(divide(x - offset.view("<f2").astype(np.float32), scale.view("<f2").astype(np.float32)), 0, 15).astype(np.uint8)
    return np.concatenate([scale, offset, steps[:, :16] | steps[:, 16:] << 4], axis=1)


def weave_q4_1(rows: np.ndarray) -> np.ndarray:
    """The 5 words of a block (two float16, four of nibbles), each for 16 rows in turn: u32[tiles, blocks, 5, 16]."""
    words = rows.view("<u4")
    return np.ascontiguousarray(words.transpose(0, 2, 3, 1)).reshape(len(rows), prod(words.shape[1:])).view(np.uint8)


def unravel_q4_1(data: np.ndarray, blocks: int) -> np.ndarray:
    words = data.view("<u4").reshape(len(data), blocks, 5, TILE)
    return np.ascontiguousarray(words.transpose(0, 3, 1, 2)).view(np.uint8)


def weave_q8_0(rows: np.ndarray) -> np.ndarray:
    """Of each block the scales f16[16], then the 8 words of 4 int8, each for 16 rows in turn: u32[8, 16]."""
    data = np.empty((len(rows), rows.shape[2], rows.shape[3] * TILE), np.uint8)
    data[..., :2 * TILE].view("<u2")[...] = rows[..., :2].view("<u2")[..., 0].swapaxes(1, 2)
    data[..., 2 * TILE:].view("<u4").reshape(*data.shape[:2], 8, TILE)[...] = rows[..., 2:].view("<u4").transpose(0, 2, 3, 1)
    return data.reshape(len(rows), data.shape[1] * data.shape[2])


def unravel_q8_0(data: np.ndarray, blocks: int) -> np.ndarray:
    parts = data.reshape(len(data), blocks, 34 * TILE)
    rows = np.empty((len(parts), TILE, blocks, 34), np.uint8)
    rows[..., :2].view("<u2")[..., 0] = parts[..., :2 * TILE].view("<u2").swapaxes(1, 2)
    rows[..., 2:].view("<u4")[...] = parts[..., 2 * TILE:].view("<u4").reshape(len(data), blocks, 8, TILE).transpose(0, 3, 1, 2)
    return rows


HEAD = {unpack_q8_0: 2, unpack_q4_1: 4}  # bytes of float16 numbers before the others
TILE = 16  # rows that are interleaved
FORMATS = {
    one.name: one for one in (
        Format("q8_0", BLOCK, 34, unpack_q8_0, pack_q8_0), Format("q4_1", BLOCK, 20, unpack_q4_1, pack_q4_1),
        Format("q8_0x16", BLOCK, 34, unpack_q8_0, pack_q8_0, TILE, weave_q8_0, unravel_q8_0),
        Format("q4_1x16", BLOCK, 20, unpack_q4_1, pack_q4_1, TILE, weave_q4_1, unravel_q4_1))
}  # fmt: skip


def interleave(rows: np.ndarray, format: str) -> np.ndarray:
    """Packed rows u8[N, bytes] of the plain format in the order of one with ``x16``: u8[N/16, 16 * bytes]. Moves only."""
    facts = FORMATS[format]
    tiles = prod(rows.shape[:-1]) // facts.rows
    return facts.weave(np.ascontiguousarray(rows).reshape(tiles, facts.rows, rows.shape[-1] // facts.nbytes, facts.nbytes))


def pack(x: np.ndarray, format: str) -> np.ndarray:
    """Round numbers f32[..., K] to a format: u8[..., K/32 * nbytes]."""
    facts = FORMATS[format]
    blocks = facts.pack(np.asarray(x, np.float32).reshape(-1, facts.values))
    if facts.rows > 1:
        blocks = interleave(blocks.reshape(prod(x.shape[:-1]), x.shape[-1] // facts.values * facts.nbytes), format)
    return blocks.reshape(facts.packed_shape(x.shape))


def unpack(data: np.ndarray, format: str) -> np.ndarray:
    """The numbers f32[..., K] of packed rows u8[..., K/32 * nbytes]."""
    facts = FORMATS[format]
    return facts.unpack(blocks_of(data, facts)).reshape(facts.shape(data.shape))


def blocks_of(data: np.ndarray, facts: Format) -> np.ndarray:
    """The blocks u8[blocks, nbytes] of packed rows, in the order of the numbers."""
    data = np.ascontiguousarray(data)
    if facts.rows > 1:  # sizes are spelled out, for NumPy finds none for -1 where there are no elements
        across = facts.shape(data.shape)[-1] // facts.values
        data = facts.unravel(data.reshape(prod(data.shape[:-1]), data.shape[-1]), across)
    return data.reshape(-1, facts.nbytes)


def sizes(data: np.ndarray, format: str) -> np.ndarray:
    """|scale * q| + |offset| for each number: how large are the parts that a kernel sums apart."""
    facts = FORMATS[format]
    blocks = blocks_of(data, facts).copy()
    blocks[:, 1:HEAD[facts.unpack]:2] &= 0x7F  # the signs of the float16 numbers
    return np.abs(facts.unpack(blocks)).reshape(facts.shape(data.shape))


def packed_matmul(x: np.ndarray, weights: np.ndarray, format: str) -> np.ndarray:
    """x @ W.T for packed rows of W: f32[..., K], u8 that hold f32[N, K] -> f32[..., N]."""
    return np.matmul(x, np.swapaxes(unpack(weights, format), -1, -2))
