"""Run passes over a graph, distrust each one, and remember what happened."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from .errors import GraphError, PassError, nearest
from .ir import Graph, defs
from .passes import PASSES
from .passes.simplify import check_flags
from .rebuild import Result, Step
from .text import node_line
from .verify import check_signature, verify

DEFAULT = ("fold", "simplify", "cse", "dce")
ROUNDS = 4  # a later pass may make work for an earlier one; more rounds have never been needed
Pass = Callable[[Graph], Result]


@dataclass(frozen=True, slots=True)
class Stage:
    """One run of one pass."""

    name: str
    before: Graph
    after: Graph
    report: tuple[Step, ...]
    seconds: float = field(compare=False)


@dataclass(frozen=True, slots=True)
class Optimized:
    """The optimized graph and how it came about."""

    graph: Graph
    history: tuple[Stage, ...]

    @property
    def traced(self) -> Graph:
        """The graph before the first pass."""
        return self.history[0].before if self.history else self.graph

    def why(self, name: str) -> str:
        """Where a value comes from, or what became of it: see ``why``."""
        return why(self, name)


def optimize(graph: Graph, fast: Iterable[str] = (), passes: Iterable[str | Pass] = DEFAULT) -> Optimized:
    """Run ``passes`` in order, again and again until a round changes nothing (at most 4 rounds).

    ``passes`` are names from ``minigraph.passes.PASSES`` or functions ``Graph -> Result`` or ``Graph -> Graph``;
    ``fast`` are LLVM's fast-math flags, none by default. The graph is verified first and after each pass.
    Raises GraphError for an invalid graph and PassError for a pass that breaks its contract.
    """
    fast = check_flags(fast)
    verify(graph)
    todo = [find_pass(one) for one in passes]
    history: list[Stage] = []
    for _ in range(ROUNDS):
        changed = False
        for name, function in todo:
            stage = run_pass(name, function, graph, fast)
            history.append(stage)
            changed |= bool(stage.report)
            graph = stage.after
        if not changed:
            break
    return Optimized(graph, tuple(history))


def find_pass(one: str | Pass) -> tuple[str, Pass]:
    if callable(one):
        return getattr(one, "__name__", "pass"), one
    if one not in PASSES:
        raise GraphError(f"unknown pass '{one}'", hint=nearest(one, PASSES) or "the passes are " + " ".join(PASSES))
    return one, PASSES[one]


def run_pass(name: str, function: Pass, graph: Graph, fast: tuple[str, ...] = ()) -> Stage:
    """Run one pass and check its contract: a valid graph, the same signature, a report that accounts for it."""
    takes_fast = "fast" in inspect.signature(function).parameters
    start = time.perf_counter()
    result = function(graph, fast=fast) if takes_fast else function(graph)
    seconds = time.perf_counter() - start
    has_report = isinstance(result, Result)
    after, report = result if has_report else (result, ())  # a learner's pass returns the graph alone
    if not isinstance(after, Graph):
        raise PassError(f"pass {name} returned {type(after).__name__}, not a Result or a Graph")
    if not isinstance(report, (tuple, list)) or not all(isinstance(step, Step) for step in report):
        raise PassError(f"pass {name} returned a report that is not a tuple of Steps")
    if after is not graph:
        try:
            verify(after)
            raise_first(check_signature(graph, after))
            report = tuple(report) if has_report else derive_report(graph, after)
            raise_first(unaccounted(graph, Result(after, report)))
        except GraphError as error:
            raise PassError(f"pass {name} broke the graph: {error}") from None
    return Stage(name, graph, after, tuple(report), seconds)


def raise_first(errors: Iterable[GraphError]) -> None:
    for error in errors:
        raise error


def unaccounted(before: Graph, result: Result) -> Iterable[GraphError]:
    """Every change that the report does not explain: the price of being able to ask why."""
    old, new = defs(before), defs(result.graph)
    sources = {name for step in result.report for name in step.before}
    targets = {step.after for step in result.report}
    moved = replacements(result.report)
    for name, node in old.items():
        if name not in new and name not in sources:
            yield GraphError(f"'{name}' is gone, and no step says why", node_line(node))
    for name, node in new.items():
        previous = old.get(name)
        if previous is node or name in targets:
            continue
        if previous is None:
            yield GraphError(f"'{name}' is new, and no step says why", node_line(node))
        elif (node.op, node.value, node.inputs) != (
                previous.op, previous.value, tuple(follow(moved, operand) for operand in previous.inputs)):
            yield GraphError(f"'{name}' changed, and no step says why", node_line(node),
                             hint=f"it was {node_line(previous)}")
    for (public, value), (_, now) in zip(before.outputs, result.graph.outputs):
        if now != value and now != follow(moved, value):
            yield GraphError(f"output '{public}' was '{value}' and is '{now}', and no step says why")


def replacements(report: Iterable[Step]) -> dict[str, str]:
    """gone name -> the name that stands for it now, as far as the report knows."""
    moved: dict[str, str] = {}
    for step in report:
        for name in step.before:
            if name == step.after:  # it survives: the step before named a helper of its new definition
                moved.pop(name, None)
            else:
                moved[name] = step.after
    return moved


def follow(moved: dict[str, str], name: str) -> str:
    seen = set()
    while name in moved and name not in seen:
        seen.add(name)
        name = moved[name]
    return name


def derive_report(before: Graph, after: Graph) -> tuple[Step, ...]:
    """A report from the names alone, for a pass that returns only a graph."""
    old, new = defs(before), defs(after)
    steps = [Step("derived", (name,), "", "no longer in the graph") for name in old if name not in new]
    steps += [Step("derived", (name,) if name in old else (), name, "defined anew")
              for name, node in new.items() if old.get(name) != node]
    for (public, value), (_, now) in zip(before.outputs, after.outputs):
        if now != value:
            steps.append(Step("derived", (value,), now, f"output {public} reads another value"))
    return tuple(steps)


# ---- why ------------------------------------------------------------------------------------------------------


def why(optimized: Optimized, name: str) -> str:
    """Walk from a value, an output's public name, or a value that is gone, back to the source lines.

    Raises GraphError where no stage knows the name.
    """
    final = defs(optimized.graph)
    name = dict(optimized.graph.outputs).get(name, name) if name not in final else name
    lines: list[str] = []
    if name not in final:
        name, lines = what_became(optimized, name)
    if name not in final:
        return "\n".join(lines)
    lines.append(f"{node_line(final[name])}")
    stood_for = {name: None}  # an ordered set: the names that this value had
    for number, stage in reversed(list(enumerate(optimized.history))):
        for step in reversed(stage.report):
            if step.after in stood_for:
                sources = ", ".join(step.before) or "nothing"
                change = f"{sources} -> {step.after}" if step.before != (step.after,) else step.after
                lines.append(f"  {number + 1}. {stage.name}, {step.rule}: {change}: {step.why}")
                stood_for.update(dict.fromkeys(step.before))
    traced = defs(optimized.traced)
    for origin in stood_for:
        if origin in traced:
            lines.append(f"  traced: {node_line(traced[origin], origins=True)}")
    return "\n".join(lines)


def what_became(optimized: Optimized, name: str) -> tuple[str, list[str]]:
    """Follow a value that is gone forward through the stages."""
    known = [defs(stage.before) for stage in optimized.history[:1]]
    if not any(name in names for names in known) and not any(
            name in step.before or name == step.after for stage in optimized.history for step in stage.report):
        everything = [*defs(optimized.graph), *(known[0] if known else ())]
        raise GraphError(f"no value is named '{name}', before or after the passes", hint=nearest(name, everything))
    traced = known[0].get(name)
    lines = [f"'{name}' is gone. It was {node_line(traced, origins=True)}" if traced else f"'{name}' is gone."]
    for number, stage in enumerate(optimized.history):
        for step in stage.report:
            if name in step.before and step.after != name:
                lines.append(f"  {number + 1}. {stage.name}, {step.rule}: {step.why}"
                             + (f"; '{step.after}' stands for it" if step.after else ""))
                name = step.after
    return name, lines
