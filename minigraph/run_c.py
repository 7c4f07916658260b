"""The C back end: a whole plan is one shared library, and a run of launches is one call from Python."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping

import numpy as np

from .codegen.program import Program, Run, c_program
from .compiler import build
from .errors import RunError, brief
from .ir import Node
from .plan import Launch, Plan
from .run_numpy import OneAtATime, Signature, check_seed, describe
from .run_plan import Memory, aligned, run_launch


class CExecutable:
    """A plan bound to generated code. Called like every executable: inputs by name, outputs by public name."""

    def __init__(self, plan: Plan, threads: int = 1, program: Program | None = None, library: ctypes.CDLL | None = None):
        """``program`` and ``library``: the plan's code, where it is built already, among that of other plans."""
        self.plan, self.lock = plan, OneAtATime()
        self.signature = Signature(plan.graph, plan.donate)
        self.program = program or c_program(plan, threads)
        self.memory = Memory(plan, packed=True)
        self.library = library or (build(self.program.source, threads > 1) if self.program.kernels else None)
        if threads > 1 and (setter := getattr(self.library, "omp_set_num_threads", None)):  # not there where no loop is shared
            setter(threads)
        self.table = (ctypes.c_void_p * len(self.program.slots))()
        self.table[0] = address(self.memory.arena)
        for name, slot in self.program.slots.items():
            if name and plan.regions[name].where == "const":
                self.table[slot] = address(self.memory.flat[name])
        self.steps: list[tuple[Callable | None, Run | Launch]] = []
        for step in self.program.steps:
            function = None
            if isinstance(step, Run):
                function = getattr(self.library, step.function)
                function.argtypes, function.restype = [ctypes.c_void_p], ctypes.c_int
            self.steps.append((function, step))

    def __call__(self, inputs: Mapping[str, np.ndarray] | None = None, /, *, seed: int = 0, **named):
        with self.lock:
            given = self.point(self.signature.gather(inputs, named))
            self.run(check_seed(seed))
            return self.memory.results(given)

    def point(self, inputs: dict) -> dict[str, np.ndarray]:
        """Check the inputs, and write where they and the outputs lie into the table."""
        given = dict(zip(self.signature.inputs, self.signature.check(inputs)))
        self.memory.bind(given)
        for name, slot in self.program.slots.items():
            if name and self.plan.regions[name].where in ("input", "output"):
                self.table[slot] = address(self.memory.flat[name])
        return given

    def run(self, seed: int = 0) -> None:
        where = ctypes.addressof(self.table)
        for function, step in self.steps:
            if function is None:
                with np.errstate(all="ignore"):
                    run_launch(self.plan, step, self.memory, seed)
            elif failed := function(where):
                raise out_of_range(culprit(self.plan, step.calls[failed - 1].launch))

    def bind(self, inputs: Mapping[str, np.ndarray] | None = None, /, **named) -> Callable[[], None]:
        """For many runs on the same arrays: ``bound()`` reads them and overwrites ``bound.outputs`` each time."""
        with self.lock:
            named = self.signature.gather(inputs, named)
            given = self.point(named)
            for name, array in given.items():
                if array.size and address(np.asarray(named[name])) != address(self.memory.flat[name]):  # of a list: another array each time
                    fault = "its elements do not lie in one aligned row" if named[name] is array else f"it is {brief(named[name])}, no array"
                    raise RunError(f"input '{name}' cannot be bound: {fault}, so every run would copy them")
            return Bound(self, given)


class Bound:
    """A C executable whose arrays are fixed: the call costs a microsecond, because nothing is checked any more. Each bound one
    may run beside others, but not beside itself."""

    def __init__(self, executable: CExecutable, given: dict[str, np.ndarray]):
        table = (ctypes.c_void_p * len(executable.table))(*executable.table)
        arena = aligned(executable.plan.arena_bytes)  # its own, so that it may run beside the executable and other bound ones
        table[0] = address(arena)
        self.keep = executable, given, dict(executable.memory.flat), table, arena
        self.executable, self.where = executable, ctypes.addressof(table)
        self.outputs = executable.memory.results(given)
        functions = [function for function, _ in executable.steps]
        if len(functions) != 1 or functions[0] is None or any(copied for _, _, copied in executable.plan.outputs):
            raise RunError("only a plan that is one run of generated launches can be bound; call the executable instead")
        self.function = functions[0]

    def __call__(self) -> None:
        if failed := self.function(self.where):
            step = self.executable.steps[0][1]
            raise out_of_range(culprit(self.executable.plan, step.calls[failed - 1].launch))


def address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


INDEXED = ("take", "update_slice", "block_matmul")  # their operands may point outside


def culprit(plan: Plan, launch: Launch) -> Node:
    """The node of a launch that an index can make fail: a launch is named after its last one."""
    return next(plan.nodes[name] for name in launch.nodes if plan.nodes[name].op in INDEXED)


def out_of_range(node: Node) -> RunError:
    return describe(IndexError(f"{node.op}: an index is out of range"), node)
