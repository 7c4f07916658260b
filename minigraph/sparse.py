"""Matrices with zeros that are not stored: 2 of every 4 numbers (2:4), and blocks of 16 rows.

The zeros of f32[N, K] are where a kernel can skip them: 2:4 has at most 2 numbers other than 0 in each group of 4 along
a row (Mishra et al., "Accelerating sparse deep neural networks", 2021), block-sparse rows have whole blocks of zeros
(as scipy.sparse's BSR). In both, 16 rows are interleaved: a vector register holds one number of each of them.
"""

from __future__ import annotations

import numpy as np

TILE = 16  # rows that are interleaved
GROUP, KEPT = 4, 2
WORD = 32  # columns of a row whose 16 indices of 2 bits fill one u32
SHIFTS = 2 * np.arange(WORD // GROUP * KEPT, dtype=np.uint32)


def is_24(w: np.ndarray) -> bool:
    """Does f32[N, K] have at most 2 numbers other than 0 in each group of 4? NaN is other than 0."""
    return w.shape[-1] % GROUP == 0 and bool(((w != 0).reshape(-1, GROUP).sum(axis=1) <= KEPT).all())


def compress_24(w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """f32[N, K] that is 2:4 -> values f32[N/16, K/2, 16] and indices u32[N/16, K/32, 16].

    The word of a row has the place of each value in its group of 4, 2 bits a value, the first value lowest. A group
    with fewer than 2 numbers keeps a zero too. N is a multiple of 16, K of 32.
    """
    tiles, length = w.shape[0] // TILE, w.shape[1]
    groups = w.reshape(-1, GROUP)
    places = np.sort(np.argsort(groups == 0, axis=1, kind="stable")[:, :KEPT], axis=1)
    values = np.take_along_axis(groups, places, axis=1).reshape(tiles, TILE, length // 2)
    bits = places.astype(np.uint32).reshape(tiles, TILE, length // WORD, len(SHIFTS)) << SHIFTS
    words = np.bitwise_or.reduce(bits, axis=-1)
    return np.ascontiguousarray(values.transpose(0, 2, 1)), np.ascontiguousarray(words.transpose(0, 2, 1))


def expand_24(values: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """The matrix f32[N, K] that ``compress_24`` took apart."""
    tiles, half, _ = values.shape
    length = half * GROUP // KEPT
    dense = np.zeros((tiles, TILE, length), np.float32)
    tile, row = np.ogrid[:tiles, :TILE]
    # a place that is named twice adds up, as it does in a product
    np.add.at(dense, (tile[..., None], row[..., None], columns_24(indices)), values.transpose(0, 2, 1))
    return dense.reshape(tiles * TILE, length)


def columns_24(indices: np.ndarray) -> np.ndarray:
    """The column of each value: int[N/16, 16, K/2]."""
    tiles, words, _ = indices.shape
    half = words * len(SHIFTS)
    places = (indices.transpose(0, 2, 1)[..., None] >> SHIFTS & np.uint32(GROUP - 1)).reshape(tiles, TILE, half)
    return places + np.arange(half) // KEPT * GROUP


def sparse_matmul(x: np.ndarray, values: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """x @ W.T for a 2:4 matrix W[N, K]: f32[..., K] -> f32[..., N]; what is not stored is not multiplied."""
    result = np.empty((*x.shape[:-1], len(values), TILE), np.result_type(x, values))
    for tile, (some, columns) in enumerate(zip(values, columns_24(indices))):
        result[..., tile, :] = np.einsum("...rk,kr->...r", x[..., columns], some)
    return result.reshape(*x.shape[:-1], len(values) * TILE)


def compress_blocks(w: np.ndarray, columns: int = 16) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """f32[N, K] -> values f32[B, columns, 16], indices i32[B], starts i32[N/16 + 1]: the B blocks that are not all 0.

    Block e is column block ``indices[e]``; those of the tile of rows t are number ``starts[t]`` to ``starts[t+1]`` - 1.
    """
    tiles, across = w.shape[0] // TILE, w.shape[1] // columns
    blocks = w.reshape(tiles, TILE, across, columns).transpose(0, 2, 3, 1)
    there = (blocks != 0).any(axis=(2, 3))
    starts = np.concatenate([[0], np.cumsum(there.sum(axis=1))]).astype(np.int32)
    return np.ascontiguousarray(blocks[there]), np.nonzero(there)[1].astype(np.int32), starts


def check_blocks(indices: np.ndarray, starts: np.ndarray, count: int, across: int) -> None:
    """Raise IndexError where starts or indices point to no block."""
    if starts[0] < 0 or starts[-1] > count or (starts[1:] < starts[:-1]).any():  # a difference could wrap
        raise IndexError(f"starts must rise from 0 to at most {count}, the number of blocks")
    used = indices[starts[0] : starts[-1]]
    if used.size and not 0 <= used.min() <= used.max() < across:
        raise IndexError(f"a block's column is 0 to {across - 1}, not {used.min()} to {used.max()}")


def expand_blocks(values: np.ndarray, indices: np.ndarray, starts: np.ndarray, length: int) -> np.ndarray:
    """The matrix f32[N, length] of these blocks. Raises IndexError."""
    count, columns, _ = values.shape
    tiles, across = len(starts) - 1, length // columns
    check_blocks(indices, starts, count, across)
    dense = np.zeros((tiles, across, columns, TILE), np.float32)
    used = slice(starts[0], starts[-1])
    np.add.at(dense, (np.repeat(np.arange(tiles), np.diff(starts)), indices[used]), values[used])
    return dense.transpose(0, 3, 1, 2).reshape(tiles * TILE, length)


def block_matmul(x: np.ndarray, values: np.ndarray, indices: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """x @ W.T for the block-sparse matrix W[N, K]: f32[..., K] -> f32[..., N]; what is not stored is not multiplied.

    Raises IndexError.
    """
    count, columns, _ = values.shape
    parts = x.reshape(*x.shape[:-1], x.shape[-1] // columns, columns)
    check_blocks(indices, starts, count, parts.shape[-2])
    tiles, bounds = len(starts) - 1, starts.tolist()
    result = np.empty((*x.shape[:-1], tiles, TILE), np.result_type(x, values))
    for tile, (first, end) in enumerate(zip(bounds, bounds[1:])):
        some = parts[..., indices[first:end], :].reshape(*x.shape[:-1], (end - first) * columns)
        result[..., tile, :] = np.matmul(some, values[first:end].reshape(-1, TILE))
    return result.reshape(*x.shape[:-1], tiles * TILE)
