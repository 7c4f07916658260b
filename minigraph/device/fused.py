"""Mode fused: generated kernels, launched one by one, over one arena; CuPy for what has no kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..codegen.program import Call, cuda_program
from ..ops import OPS, Kind
from ..plan import Launch, Plan
from ..run_c import culprit
from ..types import TOKEN
from .calls import PRODUCTS, calls, is_checked
from .eager import Status, told
from .kernels import load
from .memory import DeviceMemory


class Step(NamedTuple):
    """A launch: of a kernel, with pointers as arguments, or of a library where there is no kernel."""

    launch: Launch
    function: Callable | None = None
    grid: tuple[int, ...] = ()
    block: tuple[int, ...] = ()
    places: tuple[tuple[str, int], ...] = ()  # (buffer, offset in elements) of each pointer
    status: tuple = ()  # the last argument of a kernel that may find an index out of range
    args: tuple | None = None  # None where a pointer changes from call to call


class Fused:
    """A plan's launches on the GPU. ``runner(given, seed)`` queues them in the current stream and gives the outputs."""

    def __init__(self, cupy, plan: Plan, contract: bool = False):
        self.cupy, self.plan, self.table = cupy, plan, calls(cupy)
        program = cuda_program(plan)
        found: list[Call | Launch] = [step if isinstance(step, Launch) else step.calls[0] for step in program.steps]
        kernels = load(cupy, program, contract)
        self.memory = DeviceMemory(cupy, plan, self.buffers(found))
        with self.memory.own():
            self.status = Status(cupy, [plan.nodes[name] for one in found for name in checked(plan, one)])
        self.steps = [self.step(one, kernels) for one in found]

    def buffers(self, found: list[Call | Launch]) -> set[str]:
        """The buffers that are read on the GPU."""
        access = self.plan.access
        used = {access[value].buffer for _, value, _ in self.plan.outputs}
        for one in found:
            places = [(access[name].buffer, 0) for name in one.reads] if isinstance(one, Launch) else one.args
            used |= {buffer for buffer, _ in places}
        return used

    def step(self, one: Call | Launch, kernels: dict[str, Callable]) -> Step:
        if isinstance(one, Launch):
            for name in one.reads:  # what never changes is looked up once
                if self.plan.access[name].buffer in self.memory.rows:
                    self.memory.value(name)
            return Step(one)
        launch, kernel, places = one
        status = (self.status.of(culprit(self.plan, launch).name),) if kernel.fails else ()
        step = Step(launch, kernels[kernel.name], (kernel.grid,), kernel.block, places, status)
        fixed = all(buffer in self.memory.rows for buffer, _ in places)
        return step._replace(args=pointers(step, self.memory)) if fixed else step

    def on(self, memory: DeviceMemory) -> list[Step]:
        """The steps with their pointers into this memory."""
        return [step if step.function is None or step.args is not None else step._replace(args=pointers(step, memory))
                for step in self.steps]

    def __call__(self, given: dict, seed: int = 0) -> dict:
        given = {name: self.cupy.asarray(array) for name, array in given.items()}
        memory = self.memory.bound({**given, **self.memory.fresh()})
        self.issue(self.on(memory), memory, seed)
        return memory.results(given)

    def issue(self, steps: list[Step], memory: DeviceMemory, seed: int = 0, kernels: bool = True) -> None:
        """Queue the launches in the current stream (``kernels`` False: only what libraries do)."""
        nodes = self.plan.nodes
        with told(self.cupy) as about:
            for launch, function, grid, block, _, _, args in steps:
                about.node = nodes[launch.name]
                if function is None:
                    self.library(launch, memory, seed)
                elif kernels:
                    function(grid, block, args)

    def library(self, launch: Launch, memory: DeviceMemory, seed: int) -> None:
        """A launch that has no kernel: one call of CuPy a node, from memory into memory."""
        values: dict[str, object] = {}
        for name in launch.nodes:
            node = self.plan.nodes[name]
            function, attrs = self.table[node.op], dict(node.value or ())
            operands = [values[i] if i in values else memory.value(i)
                        for i in node.inputs if self.plan.type(i).dtype != TOKEN]
            if OPS[node.op].kind is Kind.RANDOM:
                operands = [seed]
            if is_checked(node):
                attrs["status"] = self.status.of(name)
            if node.op in PRODUCTS:
                attrs["product"] = self.product
            if name != launch.name:
                values[name] = function(*operands, **attrs)
            elif node.type.dtype == TOKEN:
                function(*operands, **attrs)
            elif node.op == "matmul":
                function(*operands, **attrs, out=memory.value(name))
            else:
                memory.value(name)[...] = function(*operands, **attrs)

    def product(self, a, b, out=None):
        if out is None or out.flags.c_contiguous:
            return self.cupy.matmul(a, b, out=out)
        out[...] = self.cupy.matmul(a, b)
        return out

    def fix(self, given: dict) -> tuple[Callable[[], dict], dict]:
        """A function that queues the launches on these arrays, and the outputs that it overwrites."""
        memory = self.memory.bound({**given, **self.memory.fresh()})
        return self.copying(self.queue(memory), memory, given)

    def queue(self, memory: DeviceMemory) -> Callable[[], None]:
        steps = self.on(memory)
        return lambda: self.issue(steps, memory)

    def copying(self, queue: Callable[[], None], memory: DeviceMemory, given: dict) -> tuple[Callable[[], dict], dict]:
        outputs = memory.results(given)
        copies = [(outputs[public], memory.value(value)) for public, value, copied in self.plan.outputs if copied]

        def run() -> dict:
            queue()
            for target, value in copies:
                target[...] = value
            return outputs

        run.memory = memory  # a recording knows addresses, and keeps no array alive
        return run, outputs


def checked(plan: Plan, one: Call | Launch) -> list[str]:
    """The nodes of a launch that their values can make wrong."""
    if isinstance(one, Launch):
        return [name for name in one.nodes if is_checked(plan.nodes[name])]
    return [culprit(plan, one.launch).name] if one.kernel.fails else []


def pointers(step: Step, memory: DeviceMemory) -> tuple:
    return (*(memory.pointer(buffer, offset) for buffer, offset in step.places), *step.status)
