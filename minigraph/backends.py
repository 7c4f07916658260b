"""The back ends behind one name: ``compile(graph, backend="c")``."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable

import numpy as np

from .errors import RunError, brief, nearest
from .fusion import ROWS, fuse
from .ir import Graph
from .plan import Plan, make_plan
from .run_numpy import Executable
from .verify import check_donate, verify

# name -> (module, class): a back end takes a Plan and its own options; it is imported when it is asked for
BACKENDS = {"numpy": ("run_plan", "PlanExecutable"), "c": ("run_c", "CExecutable"), "cupy": ("run_cupy", "CupyExecutable")}


def compile(graph: Graph, donate: Iterable[str] = (), backend: str = "reference", fused: bool = True, **options) -> Callable:
    """Bind a graph for repeated runs; call the result with the inputs by name, it gives the outputs by public name.

    ``backend`` is reference (one NumPy call a node, as ``run``), numpy (the plan, in an arena), c (generated C, one
    call for all) or cupy (a CUDA GPU). ``donate`` names inputs that the caller gives away, to be updated in place.
    ``fused=False`` makes each node a launch of its own, to compare with. ``OPTIONS`` lists the options of each back end,
    as ``threads`` of c and ``mode`` of cupy.
    Raises RunError for a back end or an option that is not there, and for a value that it cannot have.
    """
    if not isinstance(graph, Graph):
        raise RunError(f"compile takes a Graph, not {type(graph).__name__}: this is minigraph's compile(graph, backend=...);"
                       " Python's own is builtins.compile")
    check_backend(backend, ("reference", *BACKENDS))
    options = check_options(backend, options)
    if isinstance(donate, str) and donate in ("reference", *BACKENDS):
        raise RunError(f"donate is a list of names of inputs; a back end is asked for by name: compile(graph, backend='{donate}')")
    if backend == "reference":
        return Executable(graph, donate)
    verify(graph)
    donate = check_donate(graph, donate)  # before the work
    return bind(make_plan(fuse(graph, rows=matmul_rows(backend), enabled=fused), donate), backend, **options)


def bind(plan: Plan, backend: str, **options) -> Callable:
    """A back end bound to a plan. Raises RunError as ``compile`` does."""
    check_backend(backend, tuple(BACKENDS))
    module, name = BACKENDS[backend]
    return getattr(importlib.import_module(f".{module}", __package__), name)(plan, **check_options(backend, options))


def check_backend(backend: str, known: tuple[str, ...]) -> None:
    if not isinstance(backend, str) or backend not in known:
        raise RunError(f"unknown back end {brief(backend)}; there are {', '.join(known)}. {nearest(str(backend), known)}".strip())


def check_options(backend: str, options: dict) -> dict:
    """The options of a back end, each known and of a value that it can have; NumPy's scalars become Python's."""
    options = {name: value.item() if isinstance(value, np.generic) else value for name, value in options.items()}
    known = [name for name, (owner, *_) in OPTIONS.items() if owner == backend]
    for name, value in options.items():
        if name not in known:
            hint = f"{name} is of the back end {OPTIONS[name][0]}" if name in OPTIONS else nearest(name, known)
            raise RunError(f"the back end {backend} has no option '{name}': {hint or 'it has ' + (', '.join(known) or 'none')}")
        _, fits, rule = OPTIONS[name]
        if not fits(value):
            raise RunError(f"{name} is {rule}, not {brief(value)}")
    return options


def is_threads(value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_THREADS


def is_flags(value) -> bool:
    return isinstance(value, (str, list, tuple, set, frozenset)) and all(isinstance(flag, str) for flag in value)


MOST_THREADS = 1024  # with very many, starting them ends the process

# option -> (its back end, what fits, that as text)
OPTIONS: dict[str, tuple[str, Callable, str]] = {
    "threads": ("c", is_threads, f"a whole number from 1 to {MOST_THREADS}"),
    "mode": ("cupy", lambda value: isinstance(value, str), "a name, like 'graph'"),
    "fast": ("cupy", is_flags, "fast-math flags, like 'contract' or ['contract']"),
    "poison": ("numpy", lambda value: isinstance(value, bool), "True or False"),
}


def matmul_rows(backend: str) -> int:
    """Products of up to so many rows are generated; NumPy and CuPy have a library for all of them."""
    return ROWS if backend == "c" else 0
