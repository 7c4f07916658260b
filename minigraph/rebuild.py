"""What a pass returns, and the forward walk that the rewriting passes share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import NamedTuple

from .ir import Graph, Node, defs, fresh, no_collection
from .types import Type


class Step(NamedTuple):
    """One change: the values ``before`` are now given by ``after`` (empty: by nothing), by ``rule``, and why."""

    rule: str
    before: tuple[str, ...]
    after: str
    why: str


class Result(NamedTuple):
    """A pass's answer: the new graph, and a step for every name that changed."""

    graph: Graph
    report: tuple[Step, ...]


class Rewrite(NamedTuple):
    """What ``visit`` wants instead of a node: nodes to emit, the last of which stands for it, or a value's name."""

    rule: str
    new: str | tuple[Node, ...]
    why: str


ORIGINS = 8  # source lines that one node remembers


class Env:
    """What a visit may ask: the new graph so far."""

    def __init__(self, graph: Graph, taken: Iterable[str] = ()):
        self.defs: dict[str, Node] = {}  # value name -> node of the new graph, already rewritten
        self._names = dict.fromkeys(taken) | defs(graph)

    def type(self, name: str) -> Type:
        return self.defs[name].type

    def fresh(self, base: str) -> str:
        """A name that neither graph has."""
        name = fresh(base, self._names)
        self._names[name] = None
        return name


def rebuild(graph: Graph, visit: Callable[[Node, Env], Rewrite | None], taken: Iterable[str] = ()) -> Result:
    """Offer each node to ``visit``, in order, with operands that are already rewritten.

    So there is no recursion and no worklist: a rule that looks down sees final operands. New nodes are offered
    again; a visit must make progress (see ``simplify``), or this does not end. New values get no name that is
    ``taken``, by values that are gone.
    """
    with no_collection():
        return walk(graph, visit, Env(graph, taken))


def walk(graph: Graph, visit: Callable[[Node, Env], Rewrite | None], env: Env) -> Result:
    alias, steps = {}, []
    for node in graph.nodes:
        if alias:
            inputs = tuple([alias.get(name, name) for name in node.inputs])
            if inputs != node.inputs:
                node = Node(node.name, node.op, inputs, node.value, node.type, node.origin)
        pending = [node]
        while pending:
            current = pending.pop()
            rewrite = visit(current, env)
            if rewrite is None:
                env.defs[current.name] = current
                continue
            if isinstance(rewrite.new, str):
                alias[current.name] = rewrite.new
                adopt_origin(env, rewrite.new, current)
                steps.append(Step(rewrite.rule, (current.name,), rewrite.new, rewrite.why))
                continue
            *helpers, last = rewrite.new
            last = replace(last, name=current.name, origin=current.origin)
            helpers = [replace(helper, origin=current.origin) for helper in helpers]
            pending.extend(reversed([*helpers, last]))
            steps += [Step(rewrite.rule, (current.name,), new.name, rewrite.why) for new in (*helpers, last)]
    outputs = tuple((public, alias.get(value, value)) for public, value in graph.outputs)
    return Result(Graph(graph.name, tuple(env.defs.values()), outputs) if steps else graph, tuple(steps))


def adopt_origin(env: Env, name: str, gone: Node) -> None:
    """The survivor stands for the source lines of what it replaces, too, up to a bound that keeps this linear."""
    node = env.defs[name]
    extra = tuple(line for line in gone.origin if line not in node.origin)
    if extra and node.op != "input" and len(node.origin) < ORIGINS:
        env.defs[name] = replace(node, origin=(node.origin + extra)[:ORIGINS])
