"""Mode graph: the launches of mode fused, recorded once as a CUDA graph; a replay is one call for all of them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import numpy as np

from ..errors import RunError
from ..plan import Plan
from ..text import node_line
from .fused import Fused
from .memory import DeviceMemory

RECORDINGS = 8  # kept, one for each set of donated arrays


class Recorded(Fused):
    """Inputs are copied into fixed arrays before a replay, and outputs out of them.

    Donated inputs are not copied: each set of them has a recording of its own, so give the same arrays again.
    """

    def __init__(self, cupy, plan: Plan, contract: bool = False):
        super().__init__(cupy, plan, contract)
        for node in (plan.nodes[name] for step in self.steps if step.function is None for name in step.launch.nodes):
            if getattr(self.table[node.op], "on_the_host", False):
                raise RunError(f"{node.op} runs on the host, each time anew, and a CUDA graph holds only what the GPU"
                               f' does: take mode="fused"\n    {node_line(node)}')
        self.stream = cupy.cuda.Stream(non_blocking=True)  # only to record in: replays run in the caller's stream
        self.products = None
        with self.memory.own():
            self.fixed = {node.name: cupy.empty(node.type.shape, self.memory.dtype(node.name))
                          for node in plan.graph.inputs if node.name not in plan.donate}
            self.fixed |= self.memory.fresh()
        self.still = self.memory.bound(self.fixed)
        self.copies_donated = any(copied and plan.access[value].buffer in plan.donate
                                  for _, value, copied in plan.outputs)
        self.recordings: dict[tuple[int, ...], Callable[[], None]] = {}

    def __call__(self, given: dict, seed: int = 0) -> dict:
        stream, donated = self.cupy.cuda.get_current_stream(), {}
        for name, array in given.items():
            if name in self.plan.donate:
                donated[name] = self.cupy.asarray(array)
            elif isinstance(array, np.ndarray):
                self.fixed[name].set(np.asarray(array, order="C"), stream)
            else:
                self.fixed[name][...] = array
        key = tuple(array.data.ptr for array in donated.values())
        known = key in self.recordings and not self.copies_donated
        memory = self.still if known else self.memory.bound({**self.fixed, **donated})
        if key not in self.recordings:
            while len(self.recordings) >= RECORDINGS:
                self.recordings.pop(next(iter(self.recordings)))
            self.recordings[key] = self.queue(memory)
        self.recordings[key]()
        return memory.results(donated, copied=True)

    def queue(self, memory: DeviceMemory) -> Callable[[], None]:
        """Record the launches on this memory.

        Libraries run once before: they load their code, and take their temporary memory from the plan's own pool, which
        nobody else asks, so that it is still theirs in each replay. What they compute then is overwritten.
        """
        steps = self.on(memory)
        if not steps:
            return lambda: None
        self.cupy.cuda.get_current_stream().synchronize()  # the last run may still use the arena
        with self.stream, self.memory.own():
            self.issue(steps, memory, kernels=False)
            self.stream.synchronize()
            self.stream.begin_capture()
            try:
                self.issue(steps, memory)
            except Exception as error:
                with contextlib.suppress(Exception):  # that the capture has failed is known already
                    self.stream.end_capture()
                raise RunError(f'a CUDA graph cannot hold this; take mode="fused". {error}') from error
            recording = self.stream.end_capture()
        return lambda: recording.launch()

    def product(self, a, b, out=None):
        if a.dtype.kind != "f":
            return super().product(a, b, out)  # CuPy has kernels of its own for integers
        if self.products is None:
            from .cublas import Products

            self.products = Products(self.cupy, self.stream)
        return self.products.matmul(a, b, out)
