"""Graphs on disk: a ``.mg`` text, and beside it an ``.npz`` with the constants too large for text."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np

from .errors import MinigraphError
from .ir import Graph
from .text import constants, parse, print_graph
from .types import Const, type_of


class FileError(MinigraphError):
    """A file that cannot be read or written as a graph."""


def save(graph: Graph, path: str | Path, origins: bool = True) -> None:
    """Write ``path`` and, where the graph has large constants, ``path`` with the suffix ``.npz``. Raises FileError."""
    path = Path(path)
    if path.suffix == ".npz":
        raise FileError(f"{path}: the graph is text, whose constants go beside it into that file; call it {path.stem}.mg")
    table = constants(graph)
    try:
        path.write_text(print_graph(graph, origins=origins), encoding="utf-8")
        if table:
            # stored, not compressed: what a reader allocates is then bounded by the file's own size
            np.savez(path.with_suffix(".npz"), **{digest: const.array for digest, const in table.items()})
    except OSError as error:
        raise FileError(f"{path}: {error.strerror or error}") from None


def load(path: str | Path) -> Graph:
    """Read a graph. Raises FileError or ParseError; nothing in either file is evaluated or unpickled."""
    path = Path(path)
    text = read_text(path)
    table = path.with_suffix(".npz")
    return parse(text, read_constants(table) if table.exists() and "@" in text else {}, file=str(path))


def read_text(path: Path) -> str:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise FileError(f"{path}: {error.strerror or error}") from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FileError(f"{path}:{line}: byte {error.start} is not UTF-8 text; a .mg file is plain UTF-8") from None


def read_constants(path: Path) -> dict[str, Const]:
    """The side table, digest -> constant. Each digest is checked against the bytes."""
    try:
        with zipfile.ZipFile(path) as archive:
            return dict(read_member(archive, info) for info in archive.infolist())
    except FileError as error:
        raise FileError(f"{path}: {error}") from None
    except Exception as error:  # zipfile, zlib, and NumPy, which has Python's tokenizer read the header, raise many kinds
        raise FileError(f"{path}: not a table of constants, or damaged ({error})") from None


def read_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> tuple[str, Const]:
    if info.compress_type != zipfile.ZIP_STORED:
        raise FileError(f"'{info.filename}' is compressed; constants are stored as they are")
    data = archive.read(info)  # at most the file's own size, because it is stored
    stream = io.BytesIO(data)
    version = np.lib.format.read_magic(stream)
    read_header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in read_header:
        raise FileError(f"'{info.filename}' has an unknown format version {version}")
    shape, fortran, dtype = read_header[version](stream)
    body = memoryview(data)[stream.tell():]
    type = type_of(np.empty((0,), dtype))
    size = np.dtype(dtype).itemsize * int(np.prod(shape, dtype=object))
    if fortran or size != len(body) or any(dim < 0 for dim in shape):
        raise FileError(f"'{info.filename}' says {dtype}{list(shape)}, but holds {len(body)} bytes")
    const = Const(type.dtype, tuple(shape), body)
    digest = info.filename.removesuffix(".npy")
    if const.digest != digest:
        raise FileError(f"the constant '{digest}' does not have the bytes that its name promises")
    return digest, const
