"""The back ends behind one name: ``compile(graph, backend="c")``."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable

from .errors import RunError, nearest
from .fusion import ROWS, fuse
from .ir import Graph
from .plan import Plan, make_plan
from .run_numpy import Executable
from .verify import verify

# name -> (module, class): a back end takes a Plan and its own options; it is imported when it is asked for
BACKENDS = {"numpy": ("run_plan", "PlanExecutable"), "c": ("run_c", "CExecutable"), "cupy": ("run_cupy", "CupyExecutable")}


def compile(graph: Graph, donate: Iterable[str] = (), backend: str = "reference", fused: bool = True, **options) -> Callable:
    """Bind a graph for repeated runs; call the result with the inputs by name, it gives the outputs by public name.

    ``backend`` is reference (one NumPy call a node, as ``run``), numpy (the plan, in an arena), c (generated C, one
    call for all) or cupy (a CUDA GPU). ``donate`` names inputs that the caller gives away, to be updated in place.
    ``fused=False`` makes each node a launch of its own, to compare with. Options: ``threads`` (c), ``mode`` (cupy).
    Raises RunError for what is not there.
    """
    if not isinstance(graph, Graph):
        raise RunError(f"compile takes a Graph, not {type(graph).__name__}: this is minigraph's compile(graph, backend=...);"
                       " Python's own is builtins.compile")
    if backend == "reference":
        return Executable(graph, donate)
    if backend not in BACKENDS:
        raise RunError(f"unknown back end '{backend}'; there are reference, {', '.join(BACKENDS)}. " + nearest(backend, BACKENDS))
    verify(graph)
    return bind(make_plan(fuse(graph, rows=matmul_rows(backend), enabled=fused), donate), backend, **options)


def bind(plan: Plan, backend: str, **options) -> Callable:
    """A back end bound to a plan."""
    module, name = BACKENDS[backend]
    return getattr(importlib.import_module(f".{module}", __package__), name)(plan, **options)


def matmul_rows(backend: str) -> int:
    """Products of up to so many rows are generated; NumPy and CuPy have a library for all of them."""
    return ROWS if backend == "c" else 0
