"""Is a graph right through fusion, the plan and a back end? Against NumPy node by node.

``check_cases([Case(graph, inputs)], "c")`` gives the findings of each case, and none where all holds: the partition and
the plan satisfy their checkers; every launch, fed NumPy's values in a poisoned arena, stores what NumPy does (see
``tolerance``) and touches nothing else; the whole graph keeps every bit that no rounding has touched, raises what NumPy
raises, prints the same, and leaves its inputs alone. Many cases share one library, because compilers start slowly.
"""

from __future__ import annotations

import ctypes
import io
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from . import shim
from .codegen.program import Call, Program, Run, calls, find_slots, in_runs, kernels_source, run_source
from .compiler import make
from .dialect import C, C_FLAGS, CUDA
from .errors import MinigraphError
from .fusion import ROWS, fuse, problems
from .fuzz import Finding, evaluate, tainted
from .ir import Graph
from .ops import OPS, Kind
from .plan import Launch, Plan, check_plan, make_plan
from .run_c import INDEXED, CExecutable
from .run_numpy import IndexRunError
from .run_plan import POISON, Memory, PlanExecutable, poison, run_launch
from .tolerance import is_rounded, stored_right
from .types import TOKEN, same_bits

QUICK = ("-O1", *C_FLAGS[1:])  # the compiler takes half the time
# The shim copies what arguments cover, and an argument may point into a buffer's middle: this one covers all of it.
TOUCH = 'extern "C" __global__ void touch(const unsigned char *all) {}\n'


@dataclass
class Case:
    """A graph with all that NumPy says of it, and its plan."""

    graph: Graph
    inputs: dict[str, np.ndarray]
    donate: frozenset[str] = frozenset()
    rows: int = ROWS
    plan: Plan | None = None
    findings: list[Finding] = field(default_factory=list)

    def __post_init__(self):
        self.values, self.printed, self.error = evaluate(self.graph, self.inputs)
        self.rounded: set[str] = set()  # what is rounded, and all that depends on it
        for node in self.graph.nodes:
            if is_rounded(node) or not self.rounded.isdisjoint(node.inputs):
                self.rounded.add(node.name)
        try:
            partition = fuse(self.graph, self.rows)
            self.say("partition", "fuse", problems(self.graph, partition.clusters))
            plan = make_plan(partition, self.donate)
            self.say("plan", "make_plan", check_plan(plan))
            self.plan = None if self.findings else plan
        except Exception as error:
            self.say("crash", "plan", [repr(error)])

    def say(self, kind: str, where: str, sentences: list[str]) -> None:
        self.findings += [Finding(kind, where, sentence) for sentence in sentences]

    def given(self) -> dict[str, np.ndarray]:
        """Inputs that a run may do with what it likes."""
        return {name: array.copy() for name, array in self.inputs.items()}


# ---- the launches of a plan one by one, and all at once ------------------------------------------------------------


def check_launches(
    case: Case, where: str, memory: Memory, run_one: Callable[[Launch], None], tally: Counter
) -> Iterator[Finding]:
    """Each launch on NumPy's values; afterwards NumPy's value takes the place of what it stored."""
    plan, values = case.plan, case.values
    for name, flat in memory.flat.items():
        if plan.regions[name].where == "output":
            flat.view(np.uint8)[...] = POISON
    memory.arena[...] = POISON
    for index, launch in enumerate(plan.launches):
        if launch.name not in values:  # here NumPy stopped with an error
            try:
                run_one(launch)
                yield Finding("error", where, f"'{launch.name}' raises nothing, but NumPy {case.error!r}")
            except MinigraphError:
                pass
            return
        before = {name: flat.tobytes() for name, flat in memory.flat.items() if plan.regions[name].where != "arena"}
        arena = memory.arena.copy()
        try:
            run_one(launch)
        except Exception as error:
            yield Finding("error", where, f"'{launch.name}' raises {error!r}")
            return
        tally[f"{where} {launch.kind}"] += 1
        if plan.type(launch.name).dtype != TOKEN:
            got = memory.value(launch.name).copy()
            if not stored_right([plan.nodes[name] for name in launch.nodes], values, got):
                yield Finding("value", where, f"'{launch.name}' {difference(values[launch.name], got)}")
            yield from untouched(plan, memory, launch, before, arena, where)
            memory.value(launch.name)[...] = values[launch.name]
        poison(plan, memory, index)


def untouched(
    plan: Plan, memory: Memory, launch: Launch, before: dict[str, bytes], arena: np.ndarray, where: str
) -> Iterator[Finding]:
    """Did the launch write its own value and no other byte?"""
    buffer = plan.access[launch.name].buffer
    own = plan.regions[buffer]
    size = plan.type(launch.name).nbytes
    for name, was in before.items():
        now = memory.flat[name].tobytes()
        if now != was and (name != buffer or now[size:] != was[size:]):
            yield Finding("overrun", where, f"'{launch.name}' writes into {name}")
    if own.where == "arena":
        arena[own.offset : own.offset + size] = memory.arena[own.offset : own.offset + size]
    if not (arena == memory.arena).all():
        wrong = np.flatnonzero(arena != memory.arena)[:9]
        yield Finding("overrun", where, f"'{launch.name}' writes into bytes {wrong} of the arena")


def check_whole(case: Case, where: str, executable: Callable, loose: set[str]) -> Iterator[Finding]:
    """Two runs of everything, in a poisoned arena; ``loose`` are the values whose bits may differ."""
    plan = case.plan
    for number in range(2):
        executable.memory.arena[...] = POISON
        given, printed, got, error = case.given(), io.StringIO(), None, None
        if number:  # the same values, from back to front
            given = {name: array if name in case.donate else backwards(array) for name, array in given.items()}
        try:
            with redirect_stdout(printed):
                got = executable(given)
        except MinigraphError as problem:
            error = problem
        if (error is None) != (case.error is None):
            if not decided_by_rounding(case):
                yield Finding("error", where, f"raised {error!r}, but NumPy {case.error!r}")
            return
        if not loose and printed.getvalue() != case.printed:
            yield Finding("effects", where, f"prints {printed.getvalue()!r} and should print {case.printed!r}")
        for name, array in given.items():
            if name not in case.donate and not same_bits(array, case.inputs[name]):
                yield Finding("overrun", where, f"input '{name}' is written to")
        if got is None:
            continue
        for public, value in case.graph.outputs:
            have, want = got[public], case.values[value]
            if (have.dtype, have.shape) != (want.dtype, want.shape):
                types = f"{have.dtype}{have.shape}, not {want.dtype}{want.shape}"
                yield Finding("type", where, f"output '{public}' is {types}")
            elif value not in loose and not same_bits(have, want):
                yield Finding("bits", where, f"output '{public}' {difference(want, have)}")
        outputs, others = list(got.values()), [array for name, array in given.items() if name not in plan.donate]
        pairs = ((a, b) for i, a in enumerate(outputs) for b in (*outputs[:i], *others, executable.memory.arena))
        if any(np.may_share_memory(a, b) for a, b in pairs):
            yield Finding("alias", where, "two outputs, or an output and an input or the arena, share memory")


def difference(want: np.ndarray, got: np.ndarray) -> str:
    """Where and how much: of the element that is farthest off, or of one with another kind of number."""
    with np.errstate(all="ignore"):
        differs = want != got
        if want.dtype.kind == "f":
            differs = np.where(np.isnan(want), ~np.isnan(got), differs | (np.signbit(want) != np.signbit(got)))
        off = np.where(differs, np.abs(np.asarray(want, np.longdouble) - got), -1)
    worst = np.unravel_index(np.argmax(np.where(np.isnan(off), np.inf, off)), off.shape)
    where = f"differs in {differs.sum()} of {differs.size} elements; [{', '.join(map(str, worst))}]"
    return f"{where} should be {want[worst]!r} and is {got[worst]!r}"


def backwards(array: np.ndarray) -> np.ndarray:
    """Equal values behind negative strides."""
    back = (slice(None, None, -1),) * array.ndim
    return array[back].copy()[back]


def decided_by_rounding(case: Case) -> bool:
    """Is there an operation that may fail, on a value whose bits may differ?"""
    return any(
        (OPS[node.op].kind is Kind.EFFECT or node.op in (*INDEXED, "pow"))
        and not case.rounded.isdisjoint(node.inputs)
        for node in case.graph.nodes
    )


# ---- the back ends -------------------------------------------------------------------------------------------------


def in_numpy(plan: Plan, launch: Launch, memory: Memory) -> None:
    run_launch(plan, launch, memory)


def run_in_numpy(cases: list[Case], tally: Counter) -> Iterator[list[Finding]]:
    for case in cases:
        memory = Memory(case.plan)
        memory.bind(case.given())
        yield [
            *check_launches(case, "numpy", memory, lambda launch: in_numpy(case.plan, launch, memory), tally),
            *check_whole(case, "numpy", PlanExecutable(case.plan, poison=True), tainted(case.graph)),
        ]


def run_in_c(cases: list[Case], tally: Counter, flags: tuple[str, ...] = QUICK) -> Iterator[list[Finding]]:
    for case, (apart, whole) in zip(cases, c_batch([case.plan for case in cases], flags)):
        apart.point(case.given())
        yield [
            *check_launches(case, "c", apart.memory, single_steps(apart), tally),
            *check_whole(case, "c", whole, case.rounded),
        ]


def c_batch(plans: list[Plan], flags: tuple[str, ...] = QUICK) -> list[tuple[CExecutable, CExecutable]]:
    """All kernels of many plans in one library; each plan twice: with a function for each launch, and as it is used."""
    found: dict = {}
    steps = [calls(plan, C, 1, found)[0] for plan in plans]
    kernels = tuple(found.values())
    programs, parts = [], []
    for number, (plan, step) in enumerate(zip(plans, steps)):
        slots = find_slots(plan)
        runs = in_runs(step, f"one_{number}", apart=True), in_runs(step, f"all_{number}")
        programs.append([Program("", one, kernels, slots) for one in runs])
        parts += [run_source(plan, run, slots) for one in runs for run in one if isinstance(run, Run)]
    with tempfile.TemporaryDirectory() as folder:
        make("\n".join([kernels_source(list(kernels), C), *parts]), list(flags), Path(folder) / "batch.so")
        library = ctypes.CDLL(str(Path(folder) / "batch.so"))
    return [
        tuple(CExecutable(plan, program=program, library=library) for program in pair)
        for plan, pair in zip(plans, programs)
    ]


def single_steps(executable: CExecutable) -> Callable[[Launch], None]:
    steps = {
        (step.calls[0].launch if isinstance(step, Run) else step).name: (function, step)
        for function, step in executable.steps
    }

    def run_one(launch: Launch) -> None:
        executable.steps = [steps[launch.name]] if launch.name in steps else []  # nothing to do for an empty value
        executable.run()

    return run_one


def run_in_cuda(cases: list[Case], tally: Counter) -> Iterator[list[Finding]]:
    """The CUDA source on the CPU, threads first to last and last to first."""
    found: dict = {}
    steps = [calls(case.plan, CUDA, 1, found)[0] for case in cases]
    module = shim.build(TOUCH + kernels_source(list(found.values()), CUDA))
    for case, step in zip(cases, steps):
        memory = Memory(case.plan)
        memory.bind(case.given())
        yield [*check_launches(case, "cuda", memory, cuda_steps(case.plan, memory, step, module), tally)]


def cuda_steps(plan: Plan, memory: Memory, steps: list[Call | Launch], module: shim.Module) -> Callable[[Launch], None]:
    found = {(step.launch if isinstance(step, Call) else step).name: step for step in steps}

    def run_one(launch: Launch) -> None:
        step = found.get(launch.name)
        if isinstance(step, Launch):
            return in_numpy(plan, launch, memory)
        if step is None:
            return None
        status = np.zeros(1, np.int32)
        wholes = [memory.flat[buffer].view(np.uint8) for buffer in dict.fromkeys(buffer for buffer, _ in step.args)]
        args = [memory.flat[buffer][offset:] for buffer, offset in step.args] + [status] * step.kernel.fails
        kernel = shim.Launch(step.kernel.name, (step.kernel.grid,), step.kernel.block)
        module.run([*((shim.Launch("touch", (1,), (1,)), [whole]) for whole in wholes), (kernel, args)])
        if status[0]:
            raise IndexRunError(f"'{launch.name}': an index is out of range")

    return run_one


BACKENDS: dict[str, Callable] = {"numpy": run_in_numpy, "c": run_in_c, "cuda": run_in_cuda}


def check_cases(cases: list[Case], backend: str, tally: Counter | None = None, **options) -> list[list[Finding]]:
    """The findings of each case."""
    tally = Counter() if tally is None else tally
    ready = [case for case in cases if case.plan is not None]
    with np.errstate(all="ignore"), redirect_stdout(io.StringIO()):
        for case, findings in zip(ready, BACKENDS[backend](ready, tally, **options)):
            case.findings += findings
    return [case.findings for case in cases]
