"""The NumPy executor: one call a node. Its results are the reference for everything else."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.lib.array_utils import byte_bounds

from .access import VIEWS
from .errors import MinigraphError, RunError, brief, nearest
from .ir import Graph, Node, defs
from .ops import OPS, Kind
from .text import node_line
from .types import DTYPES, Type
from .verify import check_donate, verify

RUN_TIME = (ValueError, IndexError, ZeroDivisionError, OverflowError, MemoryError)  # what NumPy raises for some values


@dataclass(frozen=True, slots=True)
class Stats:
    """What a run costs, counted from the graph: launches (NumPy calls that compute or copy), bytes and flops."""

    nodes: int
    launches: int
    bytes_read: int
    bytes_written: int
    flops: int


def stats(graph: Graph) -> Stats:
    """Count. A view (reshape, transpose, broadcast_to, slice) launches nothing and moves nothing here."""
    types = {node.name: node.type for node in graph.nodes}
    launches = read = written = flops = 0
    for node in graph.nodes:
        if OPS[node.op].kind in (Kind.INPUT, Kind.CONST) or node.op in VIEWS:
            continue
        operands = tuple(types[name] for name in node.inputs)
        launches += 1
        read += sum(type.nbytes for type in operands)
        written += node.type.nbytes
        flops += OPS[node.op].flops(operands, node.value, node.type)
    return Stats(len(graph.nodes), launches, read, written, flops)


def run(graph: Graph, inputs: Mapping[str, np.ndarray] | None = None, /, seed: int = 0, **named) -> dict[str, np.ndarray]:
    """Run once: ``run(graph, x=array)["y"]``. See ``compile``."""
    return compile(graph)(inputs, seed=seed, **named)


class Instruction(NamedTuple):
    """One call: ``slots[out] = call(*[slots[i] for i in args])``, then the slots in ``frees`` are dropped."""

    call: Callable
    args: tuple[int, ...]
    out: int
    frees: tuple[int, ...]
    node: Node


class OneAtATime:
    """A lock around a run in an executable's own memory. Another thread waits; a run from inside the run is an error, and
    a forked child begins anew. Copies have a lock of their own."""

    def __init__(self):
        self.start()

    def start(self) -> None:
        self.lock, self.process, self.owner = threading.Lock(), os.getpid(), None

    def __enter__(self) -> None:
        if self.process != os.getpid():
            self.start()  # whoever held it is not in this process
        if self.owner == threading.get_ident():
            raise RunError("this executable is running already: something that it prints to, or a signal, called it again. "
                           "Use a second executable there")
        self.lock.acquire()
        self.owner = threading.get_ident()

    def __exit__(self, *error) -> None:
        self.owner = None
        self.lock.release()

    def __reduce__(self):
        return OneAtATime, ()


def as_wanted(dtype: np.dtype, type: Type) -> str:
    """What to try with an array of the right shape and of this dtype; nothing where that would lose more than digits."""
    wanted = np.dtype(DTYPES[type.dtype])
    if dtype == object or not np.can_cast(dtype, wanted, "same_kind"):
        return ""
    return f": add .astype(np.{wanted.name})" if hasattr(np, wanted.name) else f": add .astype('{wanted.name}')"


class Signature:
    """The inputs of a graph, and which of them are given away: what every executable asks of its caller."""

    def __init__(self, graph: Graph, donate: Iterable[str] = ()):
        self.name = graph.name
        self.donate = check_donate(graph, donate)
        self.inputs = {node.name: node.type for node in graph.inputs}

    def gather(self, inputs: Mapping[str, np.ndarray] | None, named: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The inputs of a call in one dict; RunError where they are not given by name."""
        if inputs is None:
            return dict(named)
        if not isinstance(inputs, Mapping):
            example = f", like {{'{next(iter(self.inputs))}': array}}" if self.inputs else ""
            raise RunError(f"{self.name} takes its inputs by name{example}, not as {brief(inputs)}")
        return {**inputs, **named}

    def check(self, inputs: dict, asarray: Callable = np.asarray, bounds: Callable = byte_bounds) -> list[np.ndarray]:
        """The arrays in the graph's order; RunError for one that is missing, unknown or of another type.

        ``asarray`` and ``bounds`` are for arrays that are not NumPy's.
        """
        for name in inputs:
            if name not in self.inputs:
                raise RunError(f"'{name}' is not an input of {self.name}; its inputs are"
                               f" {', '.join(self.inputs) or 'none'}. {nearest(str(name), self.inputs)}".strip())
        arrays = []
        for name, type in self.inputs.items():
            if name not in inputs:
                raise RunError(f"input '{name}' ({type}) is missing")
            try:
                array = asarray(inputs[name])
            except Exception as error:  # of whatever library the value comes from
                raise RunError(f"input '{name}' is {type}, but no array can be made of what was given: {error}") from error
            if array.dtype != DTYPES[type.dtype] or array.shape != type.shape:
                raise RunError(f"input '{name}' is {type}, but an array {array.dtype}{list(array.shape)} was given"
                               + (as_wanted(array.dtype, type) if array.shape == type.shape else ""))
            if name in self.donate and (trouble := why_not_written(array)):
                raise RunError(f"input '{name}' is donated, so it is written to, but {trouble}")
            arrays.append(array)
        if self.donate:
            self.check_overlap(arrays, bounds)
        return arrays

    def check_overlap(self, arrays: list[np.ndarray], bounds: Callable) -> None:
        """A donated array is written to, so no other input may lie in the same memory."""
        end, name = -1, ""  # of those so far, the one that reaches furthest
        for start, stop, other in sorted((*bounds(array), name) for name, array in zip(self.inputs, arrays) if array.size):
            if start < end and not self.donate.isdisjoint((name, other)):
                raise RunError(f"inputs '{name}' and '{other}' share memory, and one of them is donated, so it is written to")
            end, name = max((end, name), (stop, other))


def why_not_written(array: np.ndarray) -> str:
    """Why no back end can write to an array of its caller's; empty where each can. CuPy's flags say less than NumPy's."""
    if not getattr(array.flags, "writeable", True):
        return "the array is read-only"
    in_line = array.flags.c_contiguous and getattr(array.flags, "aligned", True)
    return "" if in_line else "its elements do not lie in one aligned row"


def check_seed(seed) -> int:
    if not isinstance(seed, (int, np.integer)) or seed < 0:
        raise RunError(f"the seed is a whole number from 0 up, not {seed!r}")
    return int(seed)


class Executable:
    """A graph bound to slots. Call it with the inputs by name; it gives the outputs by public name.

    ``executable(x=array)`` and ``executable({"x": array})`` are the same; the second way also serves an input that is
    called ``seed``, which is the seed of the random draws.

    Inputs are arrays of exactly the graph's dtypes and shapes. Outputs share no memory with the inputs, the
    constants or one another, except that a donated input may come back as the output that updates it.
    """

    def __init__(self, graph: Graph, donate: Iterable[str] = ()):
        verify(graph)
        self.graph = graph
        self.signature = Signature(graph, donate)
        slot = {node.name: index for index, node in enumerate(graph.nodes)}
        self.start: list = [None] * (len(slot) + 1)  # constants are put in place once; the last slot is the seed's
        self.input_slots = [slot[name] for name in self.signature.inputs]
        self.outputs = [(public, slot[value]) for public, value in graph.outputs]
        self.borrowed = find_borrowed(graph, self.signature.donate)
        self.in_place = find_in_place(graph, self.signature.donate)
        self.code = self.bind(slot)

    def bind(self, slot: dict[str, int]) -> list[Instruction]:
        last_use = {name: node.name for node in self.graph.nodes for name in node.inputs}
        kept = {value for _, value in self.graph.outputs}
        code = []
        for node in self.graph.nodes:
            kind = OPS[node.op].kind
            if kind is Kind.CONST:
                self.start[slot[node.name]] = node.value.array
            if kind in (Kind.CONST, Kind.INPUT):
                continue
            args = (len(slot),) if kind is Kind.RANDOM else tuple([slot[name] for name in node.inputs])
            frees = tuple([slot[name] for name in dict.fromkeys(node.inputs)
                           if last_use[name] == node.name and name not in kept])
            if node.name not in last_use and node.name not in kept:
                frees += (slot[node.name],)  # nobody reads it
            code.append(Instruction(self.bind_call(node), args, slot[node.name], frees, node))
        return code

    def bind_call(self, node: Node) -> Callable:
        return bind_call(node, node.name in self.in_place)

    def __call__(self, inputs: Mapping[str, np.ndarray] | None = None, /, *, seed: int = 0, **named):
        slots = list(self.start)
        for index, array in zip(self.input_slots, self.signature.check(self.signature.gather(inputs, named))):
            slots[index] = array
        slots[-1] = check_seed(seed)
        with np.errstate(all="ignore"):
            try:
                for call, args, out, frees, node in self.code:
                    slots[out] = call(*[slots[i] for i in args])
                    for index in frees:
                        slots[index] = None
            except MinigraphError:
                raise
            except RUN_TIME as error:
                raise describe(error, node) from error
        return self.owned(slots)

    def owned(self, slots: list) -> dict[str, np.ndarray]:
        """The outputs, each with memory of its own."""
        result = {}
        for (public, index), borrowed in zip(self.outputs, self.borrowed):
            array = np.asarray(slots[index])
            result[public] = array.copy() if borrowed else array
        return result


def compile(graph: Graph, donate: Iterable[str] = ()) -> Executable:
    """Verify and bind a graph for repeated runs.

    ``donate`` names inputs that the caller gives away: where ``update_slice`` writes to one that nobody reads
    later, it writes in place (a KV cache must not be copied for every token).
    """
    return Executable(graph, donate)


def bind_call(node: Node, in_place: bool) -> Callable:
    function = OPS[node.op].numpy
    if in_place:
        return lambda x, update, start: function(x, update, start, node.value.axis, out=x)
    return partial(function, **dict(node.value)) if node.value else function


def memory_roots(graph: Graph) -> dict[str, str]:
    """Value -> the value whose memory it may share: a view shares its operand's, anything else has its own."""
    root: dict[str, str] = {}
    for node in graph.nodes:
        root[node.name] = root[node.inputs[0]] if node.op in VIEWS else node.name
    return root


def find_borrowed(graph: Graph, donate: frozenset[str]) -> list[bool]:
    """For each output: must it be copied, because its memory is not its own?

    It is not for a view, a constant, an input that the caller keeps, or a value that is an output already.
    """
    root, nodes, seen, borrowed = memory_roots(graph), defs(graph), set(), []
    for _, value in graph.outputs:
        source = nodes[root[value]]
        foreign = source.op == "const" or (source.op == "input" and value not in donate)
        borrowed.append(foreign or root[value] != value or value in seen)
        seen.add(value)
    return borrowed


def find_in_place(graph: Graph, donate: frozenset[str]) -> frozenset[str]:
    """The update_slices that may write into their operand: donated memory that nobody reads afterwards.

    A view shares the memory of what it views, so its readers count as readers of that. The result of an update
    in place is donated memory again.
    """
    if not donate:
        return frozenset()
    root = memory_roots(graph)
    last_read: dict[str, int] = {}
    for index, node in enumerate(graph.nodes):
        for name in node.inputs:
            last_read[root[name]] = index
    for _, value in graph.outputs:
        last_read[root[value]] = len(graph.nodes)
    ours, found = set(donate), set()
    for index, node in enumerate(graph.nodes):
        if node.op != "update_slice" or node.inputs[0] not in ours or last_read[node.inputs[0]] != index:
            continue
        if root[node.inputs[1]] != node.inputs[0]:  # the update itself must not be a part of what it overwrites
            ours.add(node.name)
            found.add(node.name)
    return frozenset(found)


@contextmanager
def as_run_error(node: Node) -> Iterator[None]:
    """What NumPy raises inside is told as a RunError about this node."""
    try:
        yield
    except MinigraphError:
        raise
    except RUN_TIME as error:
        raise describe(error, node) from error


def describe(error: Exception, node: Node) -> RunError:
    """NumPy's complaint, with the node and the source line that it is about."""
    where = f" ({', '.join(node.origin[-1:])})" if node.origin else ""
    kind = IndexRunError if isinstance(error, IndexError) else RunError
    return kind(f"{error}{where}\n    {node_line(node)}")


class IndexRunError(RunError, IndexError):
    """A run-time index is out of range: an error, never clamped."""



def peak_bytes(graph: Graph) -> int:
    """The most bytes that live at one time while the graph runs, constants and inputs included; a view adds none."""
    root = memory_roots(graph)
    last = {root[name]: index for index, node in enumerate(graph.nodes) for name in node.inputs}
    for _, value in graph.outputs:
        last[root[value]] = len(graph.nodes)
    ends: dict[int, list[int]] = {}
    live = peak = sum(node.type.nbytes for node in graph.nodes if node.op in ("const", "input"))
    for index, node in enumerate(graph.nodes):
        if node.op not in ("const", "input") and root[node.name] == node.name:
            live += node.type.nbytes
            ends.setdefault(last.get(node.name, index), []).append(node.type.nbytes)
        peak = max(peak, live)
        live -= sum(ends.pop(index, ()))
    return peak
