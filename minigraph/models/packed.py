"""Matrices that stay packed, as the model file stores them, and still serve in ``x @ w``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..formats import FORMATS, TILE, interleave
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


def read_packed(file: GGUFFile, name: str, shape: tuple[int, int]) -> PackedMatrix:
    """A tensor of a GGUF file as it is stored; raises ModelError where its format or shape do not allow that."""
    format = f"{file.format(name).lower()}x{TILE}"
    if format not in FORMATS or shape[0] % TILE:
        raise ModelError(f"{file.path.name}: `{name}` cannot stay packed: its format or its {shape[0]} rows are not known here.")
    return PackedMatrix(interleave(file.raw(name, shape), format), format)
