"""The plan in NumPy: what the other back ends must agree with, launch by launch.

A launch of one node is one NumPy call that writes into the arena with ``out=``. A launch of several is as many calls,
and what they pass to each other is thrown away at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np
from numpy.lib.stride_tricks import as_strided

from .access import Access
from .ir import Node
from .ops import OPS, Kind
from .plan import ALIGNMENT, Launch, Plan
from .run_numpy import OneAtATime, Signature, as_run_error, check_seed
from .types import DTYPES, TOKEN


POISON = 0xFF  # NaN in every float, -1 in integers: it hides in no sum


PACKED = 4096  # bytes from which on a constant is copied, and an output is aligned
PAGE = 4096  # bytes
HUGE = 1 << 22  # bytes from which on NumPy asks for large pages by itself


class Memory:
    """Arrays for a plan: the arena, the constants, and for each call the inputs and the outputs."""

    def __init__(self, plan: Plan, packed: bool = False):
        self.plan = plan
        self.arena = aligned(plan.arena_bytes)
        self.arena[:] = 0
        self.flat: dict[str, np.ndarray] = {}  # buffer -> its elements in one row
        for name, region in plan.regions.items():
            if plan.type(name).dtype == TOKEN:
                continue  # an effect leaves nothing in memory
            if region.where == "arena":
                self.flat[name] = self.arena[region.offset:region.offset + region.nbytes].view(self.dtype(name))
            elif region.where == "const":
                self.flat[name] = np.require(plan.nodes[name].value.array.reshape(-1), requirements="A")
        if packed:
            self.pack()

    def pack(self) -> None:
        """Copy the large constants into one array: where all weights are read in turn, large pages make that quicker.

        Not those that lie aligned in a large array already: that would only take the memory twice.
        """
        large = [name for name, region in self.plan.regions.items()
                 if region.where == "const" and region.nbytes >= PACKED and not in_large_pages(self.flat[name])]
        size = sum(-(-self.plan.regions[name].nbytes // ALIGNMENT) * ALIGNMENT for name in large)
        room, place = aligned(size), 0
        for name in large:
            array = self.flat[name]
            self.flat[name] = room[place:place + array.nbytes].view(array.dtype)
            self.flat[name][...] = array
            place += -(-array.nbytes // ALIGNMENT) * ALIGNMENT

    def dtype(self, name: str) -> np.dtype:
        return DTYPES[self.plan.type(name).dtype]

    def bind(self, inputs: Mapping[str, np.ndarray]) -> None:
        """Take the inputs, and fresh arrays for the outputs."""
        for name, array in inputs.items():
            self.flat[name] = np.require(array, requirements="CA").reshape(-1)
        read = next((self.flat[name].ctypes.data for name in inputs if self.flat[name].nbytes >= PACKED), 0)
        for name, region in self.plan.regions.items():
            if region.where == "output":
                size, dtype = self.plan.type(name).size, self.dtype(name)
                large = region.nbytes >= PACKED  # for a small one this would cost more than it brings
                self.flat[name] = aligned(size * dtype.itemsize, read).view(dtype) if large else np.empty(size, dtype)

    def array(self, access: Access) -> np.ndarray:
        flat = self.flat[access.buffer]
        if 0 in access.shape:
            return flat[:0].reshape(access.shape)
        if access.contiguous:
            return flat[:prod(access.shape)].reshape(access.shape)  # the buffer may be longer
        return as_strided(flat[access.offset:], access.shape, [step * flat.itemsize for step in access.strides])

    def value(self, name: str) -> np.ndarray:
        return self.array(self.plan.access[name])

    def results(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The outputs by public name; an input that was updated in place is returned itself."""
        result = {}
        for public, value, copied in self.plan.outputs:
            array = self.value(value)
            result[public] = array.copy() if copied else inputs.get(self.plan.access[value].buffer, array)
        return result


def aligned(size: int, read: int = 0) -> np.ndarray:
    """So many bytes, at an address that ALIGNMENT divides: a vector register is then filled from one line of the cache.

    ``read``: the address of what is read while this is written. A processor takes a load for one of what it has just
    stored where the last twelve bits of the addresses agree, and waits; so they are half a page apart.
    """
    room = np.empty(size + ALIGNMENT + (PAGE if read else 0), np.uint8)
    first = -room.ctypes.data % ALIGNMENT
    if read:
        first += (read + PAGE // 2 - room.ctypes.data - first) % PAGE // ALIGNMENT * ALIGNMENT
    return room[first:first + size]


def in_large_pages(array: np.ndarray) -> bool:
    """Does it lie aligned in a large array of NumPy's? Constants show their array through a memoryview."""
    whole = array
    while isinstance(whole, (np.ndarray, memoryview)) and (base := whole.obj if isinstance(whole, memoryview) else whole.base) is not None:
        whole = base
    return isinstance(whole, np.ndarray) and whole.nbytes >= HUGE and array.ctypes.data % ALIGNMENT == 0


def run_launch(plan: Plan, launch: Launch, memory: Memory, seed: int = 0) -> None:
    """Compute one launch with NumPy, from memory into memory. Raises RunError about the node that fails."""
    values: dict[str, np.ndarray] = {}
    for name in launch.nodes:
        node = plan.nodes[name]
        with as_run_error(node):
            value = run_node(plan, node, launch, memory, values, seed)
        if name != launch.name:
            values[name] = value


def run_node(plan: Plan, node: Node, launch: Launch, memory: Memory, values: dict[str, np.ndarray], seed: int) -> np.ndarray | None:
    """One node of a launch. Its result, unless it is the launch's, which goes into memory."""
    row = OPS[node.op]
    operands = [values[i] if i in values else memory.value(i) for i in node.inputs if plan.type(i).dtype != TOKEN]
    attrs = dict(node.value) if node.value else {}
    if row.kind is Kind.RANDOM:
        operands = [seed]
    if node.name != launch.name:
        return np.asarray(row.numpy(*operands, **attrs))
    if node.type.dtype == TOKEN:
        row.numpy(*operands, **attrs)
    elif isinstance(row.numpy, np.ufunc) or (node.op == "update_slice" and launch.in_place == node.inputs[0]):
        row.numpy(*operands, **attrs, out=memory.value(node.name))
    else:
        memory.value(node.name)[...] = row.numpy(*operands, **attrs)
    return None


class PlanExecutable:
    """A plan that runs in NumPy. ``poison``: fill the arena's dead bytes after each launch, so that no stale read goes unseen."""

    def __init__(self, plan: Plan, poison: bool = False):
        self.plan, self.poison, self.lock = plan, poison, OneAtATime()
        self.signature = Signature(plan.graph, plan.donate)
        self.memory = Memory(plan)

    def __call__(self, inputs: Mapping[str, np.ndarray] | None = None, /, *, seed: int = 0, **named):
        given = dict(zip(self.signature.inputs, self.signature.check(self.signature.gather(inputs, named))))
        seed = check_seed(seed)
        with self.lock, np.errstate(all="ignore"):
            self.memory.bind(given)
            for index, launch in enumerate(self.plan.launches):
                run_launch(self.plan, launch, self.memory, seed)
                if self.poison:
                    poison(self.plan, self.memory, index)
            return self.memory.results(given)


def poison(plan: Plan, memory: Memory, index: int) -> None:
    """Overwrite every arena buffer that nobody reads after this launch; outputs may be copied after the last one."""
    for region in plan.regions.values():
        if region.where == "arena" and region.end == index + 1 < len(plan.launches):
            memory.arena[region.offset:region.offset + region.nbytes] = POISON
