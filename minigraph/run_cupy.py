"""The CuPy back end: a plan on a CUDA GPU, as one call of CuPy a node, as fused kernels, or as one CUDA graph.

Everything is queued in the caller's current stream, as in CuPy itself, and nothing waits for the GPU unless an index
has to be checked or host arrays are asked for. A plan that is called in another stream than the time before lets that
stream wait for its last run, because both use the same memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np
from numpy.lib.array_utils import byte_bounds

from .device.eager import Eager, told
from .device.fused import Fused
from .device.memory import enough_memory
from .device.recorded import Recorded
from .errors import RunError, nearest
from .gpu import gpu_status
from .passes.simplify import check_flags
from .plan import Plan
from .run_numpy import OneAtATime, Signature, check_seed

MODES: dict[str, Callable] = {"eager": Eager, "fused": Fused, "graph": Recorded}


class CupyExecutable:
    """A plan bound to a GPU. Called like every executable; inputs are NumPy or CuPy arrays, outputs are CuPy arrays.

    ``mode`` is eager (one call of CuPy a node), fused (a generated kernel a launch, cuBLAS for products) or graph (the
    same launches, recorded once as a CUDA graph and replayed). ``to_host=True`` in a call gives NumPy arrays. A
    donated NumPy array is copied to the GPU, and what comes back is the updated copy. ``fast`` with ``contract`` lets
    the compiler join a product and a sum. Raises RunError where no GPU can be used, and for what a mode cannot do.
    """

    def __init__(self, plan: Plan, mode: str = "fused", fast: Iterable[str] = ()):
        if mode not in MODES:
            hint = nearest(str(mode), MODES) or f"there are {', '.join(MODES)}"
            raise RunError(f"the cupy back end has no mode '{mode}': {hint}")
        self.cupy = cupy = import_cupy()
        self.plan, self.mode, self.lock = plan, mode, OneAtATime()
        self.signature = Signature(plan.graph, plan.donate)
        self.device = cupy.cuda.runtime.getDevice()
        self.last = cupy.cuda.get_current_stream()  # in which the plan's memory was used last
        with enough_memory(cupy, plan), told(cupy):
            self.runner = MODES[mode](cupy, plan, "contract" in check_flags(fast))

    def __call__(self, inputs: Mapping[str, np.ndarray] | None = None, /, *, seed: int = 0, to_host: bool = False,
                 **named) -> dict:
        given = self.check(self.signature.gather(inputs, named))
        seed = check_seed(seed)
        with self.lock:
            self.order()
            with enough_memory(self.cupy, self.plan):
                outputs = self.runner(given, seed)
            self.runner.status.check()
        with told(self.cupy):
            return {name: array.get() for name, array in outputs.items()} if to_host else outputs

    def bind(self, inputs: Mapping[str, np.ndarray] | None = None, /, **named) -> Bound:
        """For many runs on the same arrays; see ``Bound``. NumPy arrays, and strided ones, are copied now and once."""
        given = self.check(self.signature.gather(inputs, named))
        self.order()
        with enough_memory(self.cupy, self.plan):
            run, outputs = self.runner.fix({name: self.cupy.asarray(array) for name, array in given.items()})
        return Bound(self, run, outputs)

    def check(self, inputs: dict) -> dict:
        """The inputs by name, each of the right type, and on this GPU if on any."""
        cupy = self.cupy
        if cupy.cuda.runtime.getDevice() != self.device:
            raise RunError(f"this plan lives on GPU {self.device}, which is not the current one: "
                           f"call it inside `with cupy.cuda.Device({self.device})`")
        arrays = self.signature.check(
            inputs, lambda array: array if isinstance(array, cupy.ndarray) else np.asarray(array), bounds)
        given = dict(zip(self.signature.inputs, arrays))
        for name, array in given.items():
            if not isinstance(array, np.ndarray) and array.device.id != self.device:
                raise RunError(f"input '{name}' lies on GPU {array.device.id}, and this plan on GPU {self.device}")
        return given

    def order(self) -> None:
        """In another stream than the last run's, wait for that run."""
        current = self.cupy.cuda.get_current_stream()
        if current.ptr != self.last.ptr:
            current.wait_event(self.last.record())
        self.last = current


class Bound:
    """A CuPy executable whose arrays are fixed. A call queues the launches and returns at once; ``outputs`` are then
    overwritten (in mode eager, which allocates, replaced). ``wait`` waits for the GPU and raises what went wrong."""

    def __init__(self, executable: CupyExecutable, run: Callable[[], dict], outputs: dict):
        self.executable, self.run, self.outputs = executable, run, outputs

    def __call__(self) -> None:
        self.executable.order()
        self.outputs = self.run()

    def wait(self) -> None:
        with told(self.executable.cupy):
            self.executable.last.synchronize()
        self.executable.runner.status.check()


def import_cupy():
    """CuPy. Raises RunError with a sentence where it is of no use."""
    if not (status := gpu_status()).ok:
        raise RunError(f"the cupy back end needs CuPy and an NVIDIA GPU: {status.reason}\n"
                       "  `minigraph doctor` says what would help; the back ends numpy and c need no GPU")
    import cupy

    return cupy


def bounds(array) -> tuple[int, int]:
    """The first byte of an array and one past its last."""
    if isinstance(array, np.ndarray):
        return byte_bounds(array)
    reach = [(dim - 1) * step for dim, step in zip(array.shape, array.strides)]
    start = array.data.ptr + sum(step for step in reach if step < 0)
    return start, array.data.ptr + sum(step for step in reach if step > 0) + array.itemsize
