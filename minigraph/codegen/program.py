"""A plan's launches as source: each distinct kernel once, and for C functions that run many launches in one call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from ..dialect import C, CUDA, Dialect
from ..plan import Launch, Plan
from . import packed, sparse
from .attention import attention_kernel
from .kernel import Kernel
from .loops import map_kernel
from .moves import move_kernel
from .products import product_kernel
from .rows import row_kernel

KINDS: dict[str, Callable[..., Kernel]] = {
    "map": map_kernel, "copy": map_kernel, "reduce": row_kernel, "epilogue": product_kernel, "move": move_kernel,
    "attention": attention_kernel,
}  # fmt: skip


class Call(NamedTuple):
    """A launch of a kernel on values: each argument points to a buffer, so many elements from its start."""

    launch: Launch
    kernel: Kernel
    args: tuple[tuple[str, int], ...]


class Run(NamedTuple):
    """Launches that one C function runs in a row."""

    function: str
    calls: tuple[Call, ...]


@dataclass(frozen=True)
class Program:
    """Source, and the plan's launches as steps: a Run or, for a library, the Launch itself."""

    source: str
    steps: tuple[Run | Launch, ...]
    kernels: tuple[Kernel, ...]
    slots: dict[str, int]  # buffer -> its place in the table of pointers; the arena's is 0


def kernel_of(plan: Plan, launch: Launch, dialect: Dialect = C, threads: int = 1, plain: bool = False) -> Kernel:
    """The kernel of one launch."""
    return KINDS[launch.kind](plan, launch, dialect, threads, plain)


def calls(plan: Plan, dialect: Dialect, threads: int, found: dict | None = None) -> tuple[list[Call | Launch], list[Kernel]]:
    """Every launch that has work to do, with its kernel; equal kernels are one, also with those of other plans in ``found``."""
    found = {} if found is None else found
    names = {kernel.name for kernel in found.values()}
    steps: list[Call | Launch] = []
    for launch in plan.launches:
        if launch.kind not in KINDS:
            steps.append(launch)
            continue
        if plan.type(launch.name).size == 0:
            continue
        plain = kernel_of(plan, launch, dialect, threads, plain=True)
        key = plain.source, plain.grid, plain.block
        kernel = found.get(key)
        params = plain.params
        if kernel is None:
            kernel = found[key] = unique(kernel_of(plan, launch, dialect, threads), names)
        steps.append(Call(launch, kernel, tuple((plan.access[p.value].buffer, plan.access[p.value].offset) for p in params)))
    return steps, list(found.values())


def unique(kernel: Kernel, names: set[str]) -> Kernel:
    """The kernel under a name that no other one has."""
    name, count = kernel.name, 1
    while name in names:
        count += 1
        name = f"{kernel.name}_{count}"
    names.add(name)
    source = kernel.source.replace(f" {kernel.name}(", f" {name}(", 1)
    return Kernel(name, source, kernel.params, kernel.helpers, kernel.grid, kernel.block, kernel.fails)


def c_program(plan: Plan, threads: int = 1) -> Program:
    """The plan in C: kernels, and a function for each run of launches between two library calls."""
    steps, kernels = calls(plan, C, threads)
    runs, slots = in_runs(steps), find_slots(plan)
    functions = [run_source(plan, run, slots) for run in runs if isinstance(run, Run)]
    return Program("\n".join([kernels_source(kernels, C), *functions]), runs, tuple(kernels), slots)


def kernels_source(kernels: list[Kernel], dialect: Dialect) -> str:
    """The kernels after the helpers that they need."""
    helpers = {helper for kernel in kernels for helper in kernel.helpers}
    files = {"packed": packed, "sparse": sparse}
    before = [dialect.prologue(helpers - set(files)), *(file.source(dialect.name) for name, file in files.items() if name in helpers)]
    return "\n".join([*before, *(kernel.source for kernel in kernels)])


def find_slots(plan: Plan) -> dict[str, int]:
    """Buffer -> its place in the table of pointers; the arena is the first."""
    return {name: slot for slot, name in enumerate(["", *(n for n, region in plan.regions.items() if region.where != "arena")])}


def in_runs(steps: list[Call | Launch], prefix: str = "run", apart: bool = False) -> tuple[Run | Launch, ...]:
    """Put neighbouring calls into one Run (``apart``: each into one of its own), named after its number."""
    runs: list[list[Call] | Launch] = []
    for step in steps:
        if isinstance(step, Launch):
            runs.append(step)
        elif runs and isinstance(runs[-1], list) and not apart:
            runs[-1].append(step)
        else:
            runs.append([step])
    return tuple(Run(f"{prefix}_{n}", tuple(one)) if isinstance(one, list) else one for n, one in enumerate(runs))


def run_source(plan: Plan, run: Run, slots: dict[str, int]) -> str:
    """One function that calls the kernels in order; it returns 0, or the number of the launch that failed, from 1."""
    lines = [f"int {run.function}(char **memory) {{"]
    for number, (_, kernel, args) in enumerate(run.calls, 1):
        texts = [pointer(plan, buffer, offset, param, slots) for (buffer, offset), param in zip(args, kernel.params)]
        call = f"{kernel.name}({', '.join(texts)})"
        lines.append(f"  if ({call}) return {number};" if kernel.fails else f"  {call};")
    return "\n".join([*lines, "  return 0;", "}", ""])


def pointer(plan: Plan, buffer: str, offset: int, param, slots: dict[str, int]) -> str:
    region = plan.regions[buffer]
    slot, base = (0, region.offset) if region.where == "arena" else (slots[buffer], 0)
    kind = f"{'' if param.written else 'const '}{C.type(param.dtype)} *"
    place = f"memory[{slot}]" + (f" + {base}" if base else "")
    text = f"({kind}){f'({place})' if base else place}"
    return f"{text} + {offset}" if offset else text


def cuda_program(plan: Plan) -> Program:
    """The plan in CUDA: kernels; the host launches them one by one."""
    steps, kernels = calls(plan, CUDA, 1)
    runs = tuple(step if isinstance(step, Launch) else Run("", (step,)) for step in steps)
    return Program(kernels_source(kernels, CUDA), runs, tuple(kernels), {})
