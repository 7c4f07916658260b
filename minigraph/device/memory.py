"""A plan's memory on a GPU: one arena, the constants, and for each call the inputs and the outputs."""

from __future__ import annotations

import contextlib
import copy

from ..access import Access
from ..errors import RunError
from ..launch_model import quantity
from ..plan import Plan
from ..types import DTYPES, TOKEN


class DeviceMemory:
    """Arrays for a plan, in a pool of their own.

    CuPy's common pool may give a block that was freed in one stream to the next who asks in that stream, while another
    stream still works on it. Nobody else asks this pool, and what it gives back to the driver waits for the whole GPU.
    """

    def __init__(self, cupy, plan: Plan, used: set[str]):
        """``used``: the buffers that anything on the GPU reads; a constant that only stands in source is not copied."""
        self.cupy, self.plan, self.pool = cupy, plan, cupy.cuda.MemoryPool()
        self.rows: dict[str, object] = {}  # buffer -> its elements in one row
        self.views: dict[str, object] = {}  # value -> its array
        with self.own():
            arena = cupy.empty(plan.arena_bytes, "uint8")
            for name, region in plan.regions.items():
                if plan.type(name).dtype == TOKEN:
                    continue  # an effect leaves nothing in memory
                if region.where == "arena":
                    self.rows[name] = arena[region.offset:region.offset + region.nbytes].view(self.dtype(name))
                elif region.where == "const" and name in used:
                    self.rows[name] = cupy.asarray(plan.nodes[name].value.array).reshape(-1)

    def dtype(self, name: str):
        return DTYPES[self.plan.type(name).dtype]

    def own(self):
        """Inside this, arrays come from the plan's own pool."""
        return self.cupy.cuda.using_allocator(self.pool.malloc)

    def fresh(self) -> dict:
        """New arrays for the outputs, by buffer."""
        return {name: self.cupy.empty(self.plan.type(name).size, self.dtype(name))
                for name, region in self.plan.regions.items() if region.where == "output"}

    def bound(self, arrays: dict) -> DeviceMemory:
        """The same memory with these arrays as inputs and outputs."""
        one = copy.copy(self)
        rows = {name: self.cupy.ascontiguousarray(array).reshape(-1) for name, array in arrays.items()}
        one.rows, one.views = {**self.rows, **rows}, dict(self.views)
        return one

    def pointer(self, buffer: str, offset: int):
        """The elements of a buffer from this one on."""
        row = self.rows[buffer]
        return row[offset:] if offset else row

    def value(self, name: str):
        """A value as an array, which may be strided; a value that is a view has no memory of its own."""
        if name not in self.views:
            self.views[name] = self.array(self.plan.access[name])
        return self.views[name]

    def array(self, access: Access):
        row, size = self.rows[access.buffer], 1
        for dim in access.shape:
            size *= dim
        if size == 0 or access.contiguous:
            return row[:size].reshape(access.shape)
        strides = [step * row.itemsize for step in access.strides]
        return self.cupy.lib.stride_tricks.as_strided(row[access.offset:], access.shape, strides)

    def results(self, given: dict, copied: bool = False) -> dict:
        """The outputs by public name; an input that was updated in place is returned itself. ``copied``: all others are
        copies."""
        found = {}
        for public, value, borrowed in self.plan.outputs:
            buffer = self.plan.access[value].buffer
            if buffer in given and not borrowed:
                found[public] = given[buffer]
            else:
                found[public] = self.value(value).copy() if borrowed or copied else self.value(value)
        return found


def needs(plan: Plan) -> dict[str, int]:
    """The bytes that a plan needs on the GPU, by what they are for."""
    found = {"arena": plan.arena_bytes, "constants": 0, "inputs": 0, "outputs": 0}
    for region in plan.regions.values():
        if region.where != "arena":
            found[{"const": "constants", "input": "inputs", "output": "outputs"}[region.where]] += region.nbytes
    return found


def is_full(cupy, error: BaseException) -> bool:
    """Does the error say that the GPU has no memory left?"""
    return isinstance(error, cupy.cuda.memory.OutOfMemoryError) or "cudaErrorMemoryAllocation" in str(error)


@contextlib.contextmanager
def enough_memory(cupy, plan: Plan):
    """What CuPy raises when the GPU is full is told as a RunError with the plan's needs and what is there."""
    try:
        yield
    except Exception as error:
        if not is_full(cupy, error):
            raise
        free, total = cupy.cuda.Device().mem_info
        kept = cupy.get_default_memory_pool().free_bytes()
        wants = needs(plan)
        parts = ", ".join(f"{what} {quantity(size, 'B')}" for what, size in wants.items() if size)
        hint = (f"; CuPy keeps {quantity(kept, 'B')} more for itself, which"
                " cupy.get_default_memory_pool().free_all_blocks() gives back") * bool(kept)
        raise RunError(f"not enough memory on the GPU: the plan needs {quantity(sum(wants.values()), 'B')} ({parts}),"
                       f" and {quantity(free, 'B')} of {quantity(total, 'B')} are free{hint}. Take a smaller batch, or"
                       " free arrays and other executables first") from error
