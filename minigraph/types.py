"""Types, constants, and what it means that two arrays are equal to the bit."""

from __future__ import annotations

import functools
import hashlib
from math import prod
from typing import NamedTuple

import numpy as np

from .errors import GraphError, nearest

DTYPES: dict[str, np.dtype] = {
    short: np.dtype(long)
    for short, long in {
        "f16": "float16", "f32": "float32", "f64": "float64",
        "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
        "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
        "bool": "bool",
    }.items()
}  # fmt: skip
SHORT: dict[np.dtype, str] = {dtype: short for short, dtype in DTYPES.items()}

# An effect yields no data, only its place in the order of effects.
TOKEN = "token"
DOMAINS = {"f": "float", "i": "signed", "u": "unsigned", "b": "bool"}


class Type(NamedTuple):
    """The type of a value: ``f32[8,4]`` is 8 by 4 float32; ``f32[]`` is 0-d."""

    dtype: str
    shape: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"

    @property
    def size(self) -> int:
        """How many elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """How many bytes, packed; a token has none."""
        return 0 if self.dtype == TOKEN else self.size * DTYPES[self.dtype].itemsize

    @property
    def domain(self) -> str:
        """``float``, ``signed``, ``unsigned``, ``bool`` or ``token``."""
        return DOMAINS.get(self.dtype[0], TOKEN)


@functools.lru_cache(maxsize=4096)
def parse_type(text: str) -> Type:
    """``parse_type("f32[8,4]") == Type("f32", (8, 4))``; raises GraphError."""
    dtype, bracket, rest = text.strip().partition("[")
    dtype = dtype.strip()
    if dtype not in DTYPES and dtype != TOKEN:
        raise GraphError(f"unknown dtype '{dtype}'", hint=nearest(dtype, DTYPES)
                         or "dtypes are " + " ".join(DTYPES))
    inside = rest.strip()
    if not bracket or not inside.endswith("]"):
        raise GraphError(f"'{text}' is not a type", hint="write a dtype and a shape, like f32[8,4] or f32[]")
    dims = [dim.strip() for dim in inside[:-1].split(",")] if inside[:-1].strip() else []
    # isdecimal alone would let other scripts' digits in, which int() takes too
    if not all(dim.isascii() and dim.isdecimal() and len(dim) < 19 for dim in dims):
        raise GraphError(f"'{text}' is not a type", hint="each dimension is a number: shapes are concrete")
    shape = tuple(map(int, dims))
    check_size(shape)
    return Type(dtype, shape)


def check_size(shape: tuple[int, ...]) -> None:
    """Refuse shapes that no array can have: NumPy's own limits, said as a sentence."""
    if len(shape) > 32:
        raise GraphError(f"a shape has at most 32 dimensions, not {len(shape)}")
    # a zero dimension does not excuse the others: NumPy multiplies only the non-zero ones
    if prod(dim for dim in shape if dim) >= 2**59:
        raise GraphError(f"{list(shape)} has more elements than memory can address")


def is_type(value) -> bool:
    """Is it a Type of the IR, and not just something that looks like one?"""
    return (isinstance(value, Type) and isinstance(value.dtype, str) and (value.dtype in DTYPES or value.dtype == TOKEN)
            and type(value.shape) is tuple and all(type(dim) is int and dim >= 0 for dim in value.shape))


def type_of(array: np.ndarray) -> Type:
    """The type of a NumPy array or scalar; raises GraphError for a dtype that the IR lacks."""
    if array.dtype not in SHORT or not array.dtype.isnative:
        raise GraphError(f"dtype {array.dtype} is not one of the IR's", hint="dtypes are " + " ".join(DTYPES))
    return Type(SHORT[array.dtype.newbyteorder("=")], array.shape)


def broadcast(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """NumPy's broadcasting of shapes; raises GraphError that names the two dimensions at odds."""
    if len(set(shapes)) == 1:  # by far the most frequent
        return shapes[0]
    rank = max(map(len, shapes))
    result = []
    for axis in range(-rank, 0):
        dims = {shape[axis] for shape in shapes if len(shape) >= -axis} - {1}
        if len(dims) > 1:
            raise GraphError(
                f"shapes {' and '.join(str(list(s)) for s in shapes)} do not broadcast:"
                f" axis {axis} is {' and '.join(map(str, sorted(dims)))}")
        result.append(dims.pop() if dims else 1)
    return tuple(result)


class Const:
    """A constant: dtype, shape and bytes, equal and hashable by those three.

    So 0.0 is not -0.0, 1 is not True, and two nodes that hold constants compare by value.
    """

    __slots__ = ("dtype", "shape", "data", "_hash", "_digest")

    def __init__(self, dtype: str, shape: tuple[int, ...], data: bytes | memoryview):
        type = Type(dtype, shape)
        if not is_type(type) or dtype == TOKEN:
            raise GraphError(f"a constant has no type {dtype!s}{shape!s}", hint="like 'f32' and (8, 4)")
        check_size(shape)
        if type.nbytes != len(data):
            raise GraphError(f"a constant {type} is {type.nbytes} bytes, not {len(data)}")
        self._set(dtype, shape, data if isinstance(data, bytes) else memoryview(data).toreadonly())

    def _set(self, dtype, shape, data):
        for name, value in zip(Const.__slots__, (dtype, shape, data, None, None)):
            object.__setattr__(self, name, value)

    def __setattr__(self, name, value):
        raise AttributeError("a Const never changes: make another one")

    def __reduce__(self):
        return Const, (self.dtype, self.shape, bytes(self.data))

    @staticmethod
    def of(value, dtype: str | None = None) -> Const:
        """Copy an array, a NumPy scalar or a nested list: what the caller does to it later has no effect."""
        array = np.asarray(value, DTYPES[dtype] if dtype else None)
        const = object.__new__(Const)  # the bytes are right by construction: skip the check
        const._set(SHORT.get(array.dtype) or type_of(array).dtype, array.shape, array.tobytes())
        return const

    @staticmethod
    def wrap(array: np.ndarray) -> Const:
        """Share a C-contiguous array's memory without a copy (model weights): the owner must not write to it."""
        if not array.flags.c_contiguous:
            return Const.of(array)
        flat = array.reshape(-1).view(np.uint8) if array.size else array.tobytes()
        return Const(type_of(array).dtype, array.shape, memoryview(flat).toreadonly())

    @property
    def type(self) -> Type:
        return Type(self.dtype, self.shape)

    @property
    def array(self) -> np.ndarray:
        """A C-contiguous view that nobody can make writable again: its memory is handed out read-only."""
        return np.frombuffer(self.data, DTYPES[self.dtype]).reshape(self.shape)

    @property
    def digest(self) -> str:
        """32 hex digits that stand for dtype, shape and bytes in text."""
        if self._digest is None:
            state = hashlib.blake2b(str(self.type).encode(), digest_size=16)
            state.update(self.data)
            object.__setattr__(self, "_digest", state.hexdigest())
        return self._digest

    def __hash__(self):
        if self._hash is None:
            # 64 bytes from each end are enough to spread: equality compares all of them anyway
            ends = bytes(self.data[:64]) + bytes(self.data[-64:])
            object.__setattr__(self, "_hash", hash((self.dtype, self.shape, ends)))
        return self._hash

    def __eq__(self, other):
        if self is other:
            return True
        if not isinstance(other, Const):
            return NotImplemented
        return (self.dtype == other.dtype and self.shape == other.shape
                and (self.data is other.data or self.data == other.data))

    def __repr__(self):
        return f"Const({self.type}, {format_value(self)})"


def splat(const: Const) -> bytes | None:
    """The bytes of the one element that fills the whole constant, or None; a zero-size constant has none."""
    width = DTYPES[const.dtype].itemsize
    if const.shape == ():
        return bytes(const.data)
    first = bytes(const.data[:width])
    if not first:
        return None
    elements = np.frombuffer(const.data, f"u{width}")
    return first if (elements == elements[0]).all() else None


INLINE = 16  # a constant of up to this many elements is written out; a larger one by its digest


def format_value(const: Const) -> str:
    """The text between the parentheses of ``const(...)``; exact, see ``text.parse_value``."""
    one = splat(const)
    if one is not None:
        return format_element(np.frombuffer(one, DTYPES[const.dtype])[0])
    if not const.data:
        return "[]"  # the type has the shape: f32[1000000,0] is not a million empty lists
    if const.array.size <= INLINE:
        return format_nested(const.array)
    return "@" + const.digest


def format_nested(array: np.ndarray) -> str:
    if array.ndim == 0:
        return format_element(array[()])
    return "[" + ", ".join(map(format_nested, array)) + "]"


def format_element(element: np.generic) -> str:
    """The shortest text that reads back as the same bits: ``0.1``, ``-0.0``, ``inf``, ``true``."""
    if element.dtype.kind == "b":
        return "true" if element else "false"
    if element.dtype.kind != "f":
        return str(int(element))
    if element != element:
        bits = element.view(f"u{element.itemsize}")
        canonical = np.array(np.nan, element.dtype).view(bits.dtype)
        return "nan" if bits == canonical else f"nan:{int(bits):#x}"
    # written out here, because NumPy's own str changes between versions
    if element == 0 or 1e-4 <= abs(float(element)) < 1e16:
        return np.format_float_positional(element, unique=True, trim="0")
    return np.format_float_scientific(element, unique=True, trim="-")


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """Equal dtype, shape and bits, where all NaNs count as one and -0.0 is not 0.0."""
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind != "f":
        return bool((a == b).all())
    return bool((((a == b) & (np.signbit(a) == np.signbit(b))) | ((a != a) & (b != b))).all())
