"""The recording that a trace fills: values by number, with names and source lines from the running frames.

Names are given when the graph is built, because a value's variable is known only after the value exists:
each time an operation is recorded, the user's local variables are looked at, and a value without a name
takes the first variable that it is bound to.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass

import numpy as np

from ..ir import Builder, Graph, Node, is_name
from ..ops import Attrs, infer, make_attrs, row
from ..types import DTYPES, SHORT, Const, Type
from .source import array_name, fail, position, user_frame

ACTIVE: ContextVar[Recording | None] = ContextVar("minigraph_trace", default=None)


class Traced:
    """A value of the graph being recorded: a dtype and a shape, and no numbers. ``trace.Tracer`` gives it operators."""

    __slots__ = ("_recording", "_index", "_type")

    def __init__(self, recording: Recording, index: int, type: Type):
        self._recording, self._index, self._type = recording, index, type

    @property
    def shape(self) -> tuple[int, ...]:
        return self._type.shape

    @property
    def dtype(self) -> np.dtype:
        return DTYPES[self._type.dtype]

    @property
    def ndim(self) -> int:
        return len(self._type.shape)

    @property
    def size(self) -> int:
        return self._type.size

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self._type.nbytes

    def __repr__(self) -> str:
        entry = self._recording.entries[self._index]
        return f"<traced {entry.label}: {self._type}>" if entry.named else f"<traced {self._type}>"


@dataclass(slots=True)
class Entry:
    """A node to be: operands by number, and a name that may still become a variable's."""

    op: str
    inputs: tuple[int, ...]
    value: Const | Attrs | None
    type: Type
    origin: tuple[str, ...]
    label: str
    named: bool = False


class Recording:
    """What one call of ``trace`` records. ``wrap(recording, index, type)`` makes the proxies."""

    def __init__(self, wrap: type[Traced]):
        self.wrap = wrap
        self.entries: list[Entry] = []
        self.arrays: dict[tuple, tuple] = {}  # where an array lies -> (the array, kept alive, and its constant)
        self.token: Traced | None = None  # of the last effect
        self.sites = 0  # random draws so far

    def add(self, op, inputs, value, type, label=None) -> Traced:
        frame = user_frame()
        if frame:
            self.name_locals(frame)
            origin = (position(frame.f_code.co_filename, frame.f_lineno),)
        self.entries.append(Entry(op, inputs, value, type, origin if frame else (), label or op, label is not None))
        return self.wrap(self, len(self.entries) - 1, type)

    def name_locals(self, frame) -> None:
        """Values without a name take the variable that they are bound to; order and cost are those of the locals."""
        for name, value in frame.f_locals.items():
            if type(value) is self.wrap and value._recording is self:
                self.name(value, name)

    def name(self, value: Traced, name: str) -> None:
        entry = self.entries[value._index]
        if not entry.named and is_name(name):
            entry.label, entry.named = name, True

    def emit(self, op: str, *values: Traced, **attrs) -> Traced:
        facts = row(op)
        value = make_attrs(facts, attrs)
        type = infer(facts, tuple(v._type for v in values), value)
        return self.add(op, tuple(v._index for v in values), value, type)

    def effect(self, op: str, *values: Traced, **attrs) -> None:
        """Effects stay in order because each takes the token of the one before."""
        tail = () if self.token is None else (self.token,)
        self.token = self.emit(op, *values, *tail, **attrs)

    def const(self, value: Const, label: str = "c") -> Traced:
        result = self.add("const", (), value, value.type, label)
        self.entries[-1].named = label != "c"
        return result

    def array(self, array: np.ndarray) -> Traced:
        """A captured array, once for each place in memory; one that was written to since is another constant."""
        if type(array) not in (np.ndarray, np.memmap):
            fail(f"a {type(array).__name__} cannot be captured", "pass np.asarray of it", TypeError)
        if array.dtype.newbyteorder("=") not in SHORT:
            fail(f"dtype {array.dtype} is not one of the IR's", "dtypes are " + " ".join(DTYPES), TypeError)
        if not array.dtype.isnative:
            array = array.astype(array.dtype.newbyteorder("="))
        if array.ndim > 1 and array.flags.f_contiguous and not array.flags.c_contiguous:
            perm = tuple(reversed(range(array.ndim)))  # weights are captured as they lie in memory, w.T is w
            return self.emit("transpose", self.array(array.T), perm=perm)
        frozen = is_frozen(array)
        const = Const.wrap(array) if frozen else Const.of(array)
        key = (array.__array_interface__["data"], array.shape, array.strides, array.dtype)
        _, known = self.arrays.get(key, (None, None))
        if known is None or not (frozen or self.entries[known._index].value == const):
            known = self.const(const, array_name(user_frame(), array))
            self.arrays[key] = (array, known)
        return known

    def graph(self, name: str, outputs: list[tuple[str, Traced]]) -> Graph:
        """The graph, with a unique name for each value: inputs keep theirs, then in order of recording."""
        builder = Builder(name)
        names: list[str] = []
        for entry in self.entries:
            node_name = builder.fresh(entry.label)
            names.append(node_name)
            builder.add(Node(node_name, entry.op, tuple(names[i] for i in entry.inputs), entry.value,
                             entry.type, entry.origin))
        return builder.build({public: names[value._index] for public, value in outputs})


def is_frozen(array) -> bool:
    """Is the memory read-only through the whole chain of views, so that sharing it is as good as a copy?"""
    while isinstance(array, np.ndarray):
        if array.flags.writeable:
            return False
        if array.base is None:
            return True
        array = array.base
    try:
        return memoryview(array).readonly
    except TypeError:
        return False


# ---- what the tables of NumPy functions are written in ---------------------------------------------------------------


def recording() -> Recording:
    """The trace that is running; raises TraceError when there is none."""
    active = ACTIVE.get()
    if active is None:
        fail("a traced value is used outside of its trace", "return it from the traced function and run the graph")
    return active


def own(value: Traced) -> Traced:
    """The value, if it belongs to the trace that is running; raises TraceError for one that leaked out of another."""
    if value._recording is not recording():
        fail("a traced value of another trace is used here",
             "do not keep values between calls: pass them as arguments and return them")
    return value


def emit(op: str, *values: Traced, **attrs) -> Traced:
    """Record ``op``; operands are traced values of the right dtypes."""
    return recording().emit(op, *map(own, values), **attrs)


def lift(value, dtype=None) -> Traced:
    """A traced value from anything array-like. ``dtype`` is for Python numbers, which are weak (NEP 50)."""
    if isinstance(value, Traced):
        return own(value)
    if isinstance(value, np.ndarray) and value.ndim:
        return recording().array(value)
    if isinstance(value, (np.ndarray, np.generic)):
        dtype = None
    elif not isinstance(value, (bool, int, float, list, tuple)):
        fail(f"{type(value).__name__} {value!r} is not an array or a number", like=TypeError)
    with np.errstate(all="ignore"):  # 1e10 becomes inf in f16, as it does in NumPy
        array = np.asarray(value, dtype)
    if array.dtype not in SHORT:
        fail(f"dtype {array.dtype} is not one of the IR's", "dtypes are " + " ".join(DTYPES), TypeError)
    return recording().const(Const.of(array))


def cast(value: Traced, dtype) -> Traced:
    """An implicit conversion: nothing is recorded where the dtype is right already."""
    return value if value.dtype == dtype else emit("cast", value, dtype=SHORT[np.dtype(dtype)])
