"""The IR: a graph is an ordered list of equations ``name = op(inputs) {attributes}``.

One node is one line of text, and topological order is an invariant instead of an algorithm: every pass is a
``for`` loop. Nothing here changes after it is made.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from .errors import GraphError
from .ops import Attrs, infer, make_attrs, row
from .types import Const, Type, parse_type

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]+)*")
WORDS = {"true", "false", "inf", "nan", "return", "graph"}  # of the text form: no value has such a name


def is_name(text: str) -> bool:
    """May a value have this name?"""
    return NAME.fullmatch(text) is not None and text not in WORDS


@dataclass(frozen=True, slots=True)
class Node:
    """One equation: ``name = op(inputs) {value}``. ``origin`` takes no part in equality."""

    name: str  # the one value that it defines; unique in the graph
    op: str  # a row of the op table
    inputs: tuple[str, ...] = ()  # names of values, in operand order, repeats allowed
    value: Const | Attrs | None = None  # const: a Const; otherwise attributes or None
    type: Type | None = None  # stored, never trusted: verify() computes it again
    origin: tuple[str, ...] = field(default=(), compare=False)  # source lines that it stands for


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes, inputs first and then in any topological order, and the outputs (public name, value name)."""

    name: str
    nodes: tuple[Node, ...]
    outputs: tuple[tuple[str, str], ...]
    _table: dict[str, Node] | None = field(default=None, init=False, repr=False, compare=False)  # made when first asked for

    @property
    def inputs(self) -> tuple[Node, ...]:
        return tuple(node for node in self.nodes if node.op == "input")

    def __getitem__(self, name: str) -> Node:
        """The node that defines ``name``; KeyError where there is none."""
        if self._table is None:
            object.__setattr__(self, "_table", {node.name: node for node in reversed(self.nodes)})
        return self._table[name]

    def __len__(self) -> int:
        return len(self.nodes)

    def __str__(self) -> str:
        from .text import print_graph  # the one upward import: a graph's text is its face

        return print_graph(self)

    def __repr__(self) -> str:
        return f"<graph {self.name}: {len(self.nodes)} nodes>"


def defs(graph: Graph) -> dict[str, Node]:
    """Value name -> the node that defines it."""
    return {node.name: node for node in graph.nodes}


def users(graph: Graph) -> dict[str, list[str]]:
    """Value name -> the names of the nodes that read it, in order, once for each operand. Outputs are not nodes."""
    result: dict[str, list[str]] = {node.name: [] for node in graph.nodes}
    for node in graph.nodes:
        for name in node.inputs:
            result[name].append(node.name)
    return result


@contextmanager
def no_collection() -> Iterator[None]:
    """Hold Python's cycle collector: a walk over a large graph makes many objects and no cycle, and all of them stay."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


def fresh(base: str, taken) -> str:
    """``base``, or ``base.1``, ``base.2`` … : the first that is not taken."""
    if base not in taken:
        return base
    count = 1
    while f"{base}.{count}" in taken:
        count += 1
    return f"{base}.{count}"


class Builder:
    """Builds a graph node by node, checking each: ``y = b.emit("add", x, b.const(1.0))``."""

    def __init__(self, name: str = "g"):
        self.name = name
        self.nodes: dict[str, Node] = {}  # in order of emission; inputs are moved first at the end
        self._counts: dict[str, int] = {}

    def fresh(self, base: str) -> str:
        """A new name. A counter a base, so that 100,000 names from one base take no quadratic time."""
        if base not in self.nodes:
            return base
        count = self._counts.get(base, 0) + 1
        while f"{base}.{count}" in self.nodes:
            count += 1
        self._counts[base] = count
        return f"{base}.{count}"

    def add(self, node: Node) -> str:
        if node.name in self.nodes:
            raise GraphError(f"'{node.name}' is defined twice", hint="every value has one definition")
        self.nodes[node.name] = node
        return node.name

    def input(self, name: str, type: Type | str, origin: tuple[str, ...] = ()) -> str:
        type = parse_type(type) if isinstance(type, str) else type
        return self.add(Node(name, "input", (), None, type, origin))

    def const(self, value, dtype: str | None = None, name: str | None = None, origin: tuple[str, ...] = ()) -> str:
        """A constant from a Const, an array (copied), a number (f32 or i64 without ``dtype``) or a nested list."""
        if not isinstance(value, Const):
            if dtype is None and not isinstance(value, (np.ndarray, np.generic)):
                kind = np.asarray(value).dtype.kind
                dtype = {"f": "f32", "i": "i64", "b": "bool"}.get(kind)
            value = Const.of(value, dtype)
        return self.add(Node(name or self.fresh("c"), "const", (), value, value.type, origin))

    def emit(self, op: str, *inputs: str, name: str | None = None, origin: tuple[str, ...] = (), **attrs) -> str:
        """Append ``op(inputs)``; returns the new value's name. Raises GraphError with the rule that is broken."""
        for value in inputs:
            if value not in self.nodes:
                raise GraphError(f"operand '{value}' is not defined")
        facts = row(op)
        value = make_attrs(facts, attrs)
        type = infer(facts, tuple(self.nodes[i].type for i in inputs), value)
        return self.add(Node(name or self.fresh(op), op, tuple(inputs), value, type, origin))

    def type(self, name: str) -> Type:
        return self.nodes[name].type

    def build(self, outputs: dict[str, str] | Iterable[str]) -> Graph:
        """The graph; ``outputs`` maps public names to values, or lists values that keep their names."""
        pairs = outputs.items() if isinstance(outputs, dict) else ((name, name) for name in outputs)
        nodes = sorted(self.nodes.values(), key=lambda node: node.op != "input")  # stable: inputs first
        return Graph(self.name, tuple(nodes), tuple(pairs))
