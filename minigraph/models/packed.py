"""Matrices that stay packed, as the model file stores them, and still serve in ``x @ w``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ..formats import FORMATS, TILE, interleave
from ..plan import ALIGNMENT
from ..tracing import pack, packed_matmul, take, unpack  # noqa: F401
from .gguf_file import GGUFFile, ModelError


@dataclass(frozen=True, eq=False)
class PackedMatrix:
    """f32[rows, length] in a format with 16 interleaved rows: u8[rows/16, bytes]. ``x @ w`` is x times its transpose.

    It stands where the float code has ``w[in, out]``, of which the file stores the transpose, and for ``table[rows, K]``
    in ``table @ x``.
    """

    data: np.ndarray
    format: str

    __array_ufunc__ = None  # so that NumPy leaves ``x @ w`` to us

    def __rmatmul__(self, x):
        return packed_matmul(x, self.data, self.format)

    def __matmul__(self, x):
        return packed_matmul(x, self.data, self.format)

    def row(self, index):
        """Row number ``index`` as f32[length]: of the tile that holds it, one row in 16."""
        tile = take(self.data, index // TILE, axis=0)
        return take(unpack(tile.reshape(1, -1), self.format), index % TILE, axis=0)


class Room:
    """One array for all packed matrices: NumPy asks the system for large pages, and no back end has to copy them together."""

    def __init__(self, sizes: Iterable[int]):
        """``sizes``: the bytes of each matrix."""
        self.whole = np.empty(sum(map(aligned, sizes)) + ALIGNMENT, np.uint8)
        self.free = self.whole[-self.whole.ctypes.data % ALIGNMENT:]

    def take(self, nbytes: int) -> np.ndarray:
        taken, self.free = self.free[:nbytes], self.free[aligned(nbytes):]
        return taken

    def freeze(self) -> None:
        """No more writing: a graph shares only what cannot change, else it copies."""
        self.whole.flags.writeable = False


def aligned(nbytes: int) -> int:
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


def packed_room(file: GGUFFile) -> Room:
    """Room for all matrices of a file."""
    return Room(tensor.stop - tensor.start for tensor in file.tensors.values() if len(tensor.shape) == 2)


PIECE = 1024  # rows that are interleaved at once: what the file's pages and the copies take in between stays small


def read_packed(file: GGUFFile, name: str, shape: tuple[int, int], room: Room) -> PackedMatrix:
    """A tensor of a GGUF file as it is stored; raises ModelError where its format or shape do not allow that."""
    raw = file.raw(name, shape)
    format = f"{file.format(name).lower()}x{TILE}"
    if format not in FORMATS or shape[0] % TILE:
        raise ModelError(f"{file.path.name}: `{name}` cannot stay packed: its format or its {shape[0]} rows are not known here.")
    data = room.take(raw.nbytes).reshape(shape[0] // TILE, -1)
    for row in range(0, shape[0], PIECE):
        data[row // TILE:(row + PIECE) // TILE] = interleave(raw[row:row + PIECE], format)
        file.forget()
    data.flags.writeable = False
    return PackedMatrix(data, format)
