"""Mode eager: one call of CuPy a node. And what all modes share: errors as sentences, and indices that are checked."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from ..errors import MinigraphError, RunError
from ..gpu import first_line
from ..ir import Node
from ..plan import Plan
from ..run_c import out_of_range
from ..run_numpy import RUN_TIME, Executable, describe
from ..text import node_line
from .calls import calls, is_checked
from .memory import is_full


class Status:
    """A number on the GPU for each node that its values can make wrong: 1 where they did."""

    def __init__(self, cupy, nodes: list[Node]):
        self.cupy, self.nodes = cupy, nodes
        self.flags = cupy.zeros(len(nodes), np.int32)
        self.places = {node.name: index for index, node in enumerate(nodes)}

    def of(self, name: str):
        return self.flags[self.places[name]:self.places[name] + 1]

    def check(self) -> None:
        """Wait for the GPU, look once, and raise the RunError of the first that is set."""
        if not self.nodes:
            return
        with told(self.cupy):
            wrong = np.flatnonzero(self.flags.get())
        if len(wrong):
            self.flags.fill(0)
            node = self.nodes[wrong[0]]
            negative = ValueError("Integers to negative integer powers are not allowed.")  # NumPy's words
            raise describe(negative, node) if node.op == "pow" else out_of_range(node)


class told:
    """What CuPy raises inside is told as a RunError about ``node``, which may be set on the way."""

    def __init__(self, cupy, node: Node | None = None):
        self.cupy, self.node = cupy, node

    def __enter__(self) -> told:
        return self

    def __exit__(self, kind, error, trace) -> None:
        if not isinstance(error, Exception) or isinstance(error, MinigraphError) or is_full(self.cupy, error):
            return
        if self.node is not None and isinstance(error, RUN_TIME):
            raise describe(error, self.node) from error
        line = "" if self.node is None else f"\n    {node_line(self.node)}"
        raise RunError(f"CuPy fails: {first_line(error)}{line}") from error


class Eager(Executable):
    """One call of CuPy a node, each with fresh memory from CuPy's pool: what a plain CuPy program does."""

    def __init__(self, cupy, plan: Plan, contract: bool = False):
        self.cupy, self.table = cupy, calls(cupy)
        self.status = Status(cupy, [node for node in plan.graph.nodes if is_checked(node)])
        super().__init__(plan.graph, plan.donate)
        self.start = [cupy.asarray(one) if isinstance(one, np.ndarray) else one for one in self.start]

    def bind_call(self, node: Node) -> Callable:
        function, attrs = self.table[node.op], dict(node.value or ())
        if is_checked(node):
            attrs["status"] = self.status.of(node.name)
        if node.name in self.in_place:
            return lambda x, update, start: function(x, update, start, **attrs, out=x)
        return functools.partial(function, **attrs) if attrs else function

    def __call__(self, given: dict, seed: int = 0) -> dict:
        slots = list(self.start)
        for index, array in zip(self.input_slots, given.values()):
            slots[index] = self.cupy.asarray(array)
        slots[-1] = seed
        with told(self.cupy) as about:
            for call, args, out, frees, about.node in self.code:
                slots[out] = call(*[slots[i] for i in args])
                for index in frees:
                    slots[index] = None
        return {public: slots[index].copy() if borrowed else slots[index]
                for (public, index), borrowed in zip(self.outputs, self.borrowed)}

    def fix(self, given: dict) -> tuple[Callable[[], dict], dict]:
        return lambda: self(given), {}
