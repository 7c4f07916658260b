"""Stand-ins for arrays: the one that chapter 02 completes, and a tracer that runs on an example and so is fooled."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..errors import TraceError
from ..ir import Builder, Graph
from ..run_numpy import run
from ..tracing import make_outputs, returned_names
from ..tracing.proxy import Tracer
from ..tracing.record import ACTIVE, Recording
from ..types import DTYPES, type_of

OPERATORS = {  # row of the op table -> the method for it, and the reflected one, for a stand-in on the right
    "add": ("__add__", "__radd__"), "sub": ("__sub__", "__rsub__"), "mul": ("__mul__", "__rmul__"),
    "div": ("__truediv__", "__rtruediv__"), "matmul": ("__matmul__", "__rmatmul__"),
    # Python reads 2 < x as x > 2, so comparisons need no reflected methods
    "lt": ("__lt__", ""), "le": ("__le__", ""), "gt": ("__gt__", ""), "ge": ("__ge__", ""),
}  # fmt: skip


class Proxy:
    """A stand-in for an array: the name of a value in a Builder. It has a dtype and a shape, no numbers, and no operators yet."""

    __array_ufunc__ = None  # NumPy's own scalars leave np.float32(2) - x to us

    def __init__(self, builder: Builder, name: str):
        self.builder, self.name = builder, name

    @property
    def dtype(self) -> np.dtype:
        return DTYPES[self.builder.type(self.name).dtype]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.builder.type(self.name).shape

    def __repr__(self) -> str:
        return f"<{self.name}: {self.builder.type(self.name)}>"

    def __bool__(self) -> bool:
        """Ask ``builder.decide``, where somebody has put it: a stand-in has no numbers of its own."""
        if not hasattr(self.builder, "decide"):
            raise TraceError(f"an `if` needs the value of {self!r}, which has none yet")
        return self.builder.decide(self)


def with_operators(binary: Callable, record: Callable) -> type[Proxy]:
    """A Proxy that has Python's operators, made by ``binary(op, record)``: a pair of methods."""
    methods = {}
    for op, names in OPERATORS.items():
        methods |= {name: method for name, method in zip(names, binary(op, record)) if name}
    return type("StandIn", (Proxy,), methods)


def assemble(record: Callable, binary: Callable, trace_with: Callable, expression: str, **types: str) -> None:
    """Trace an expression with the learner's own three pieces, and print the graph."""
    try:
        graph = trace_with(expression_of(", ".join(types), expression), types, with_operators(binary, record))
    except NotImplementedError:
        print("Your tracer is not complete yet: solve the exercises above, then run this cell again.")
    else:
        print(graph)


def expression_of(parameters: str, text: str) -> Callable:
    """The function ``lambda parameters: text``. Its file is one of the package's, so that reports leave its line out."""
    return eval(compile(f"lambda {parameters}: {text}", __file__, "eval"), {"np": np})


# ---- a tracer that is fooled ------------------------------------------------------------------------------------------


class Peeking(Tracer):
    """A stand-in that knows the numbers of one example: asked whether it is true, it looks them up."""

    __slots__ = ()

    def __bool__(self):
        graph = self._recording.graph("so_far", [("answer", self)])
        return bool(run(graph, **self._recording.example)["answer"])


def trace_by_example(f: Callable, **example) -> Graph:
    """Trace ``f`` on example arrays. Where Python asks for a value, the example's answers: an ``if`` is baked in, silently."""
    record = Recording(Peeking)
    record.example = {name: np.asarray(value) for name, value in example.items()}
    inputs = {name: record.add("input", (), None, type_of(array), name) for name, array in record.example.items()}
    token = ACTIVE.set(record)
    try:
        outputs = make_outputs(f(**inputs), returned_names(f))
    finally:
        ACTIVE.reset(token)
    return record.graph(f.__name__, outputs)
