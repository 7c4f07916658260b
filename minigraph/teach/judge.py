"""The judge: is this pass right? The tests come in a fixed order, and the first failure is the answer.

raises -> not a Graph -> mutated its input -> invalid IR -> wrong value -> lost an effect, output or name ->
did nothing -> changed what should stay -> not idempotent -> takes too long. Graphs come smallest first, so the first failure is a small one.
"""

from __future__ import annotations

import linecache
import re
import sysconfig
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields, is_dataclass, replace
from inspect import signature
from pathlib import Path

import numpy as np

from ..errors import MinigraphError
from ..ir import Graph, Node
from ..ops import OPS, Kind
from ..passes.dce import dce
from ..rebuild import Result
from ..run_numpy import compile
from ..types import format_element, same_bits
from ..verify import check_signature, verify
from .exact import article, exact_line, graph_text
from .graphs import Space, chain, edge_inputs, larger_graphs, small_graphs, special_inputs, with_effects
from .limits import TookTooLong, time_limit

PACKAGE = str(Path(__file__).resolve().parents[1])
NO_LIST = "A graph is no list: its nodes are in graph.nodes."
NOT_LEARNERS = (PACKAGE, "<frozen", "<string>", sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))
SECONDS = 20  # for all graphs together; right passes need about one


@dataclass(frozen=True)
class Failure:
    """What is wrong, in one sentence, and the smallest case that shows it."""

    kind: str  # raises, not-a-graph, mutated, invalid, wrong-value, lost, did-nothing, changed, not-idempotent, too-long
    sentence: str
    graph: Graph | None = None  # the counterexample
    got: object = None  # what the function made of it
    case: tuple = ()  # the arguments of the call, where they are not just the graph
    details: tuple[str, ...] = ()  # lines: the values that differ, or where it raised
    values: dict = field(default_factory=dict)  # value name -> its text, to be written on the edges
    error: tuple[str, str] = ("", "")  # of an exception: its name and what it said
    groups: tuple[tuple[str, ...], ...] = ()  # of a fuser: how it grouped the graph's nodes


NOT_ATTEMPTED = Failure("not-attempted", "Not attempted yet: your turn.")


@dataclass(frozen=True)
class Verdict:
    """The judge's answer: a failure or None, and how many graphs were tried."""

    failure: Failure | None
    tried: int


def all_nodes(graph: Graph) -> int:
    """Nodes left."""
    return len(graph)


def judge_pass(
    function: Callable, space: Space, reference: Callable[[Graph], Graph],
    left: Callable[[Graph], int] = all_nodes, targets: Iterable[Graph] = (), idempotent: bool = True,
    seconds: float = SECONDS, deep: Callable[[int], Graph] | None = chain, keeps: Callable[[Graph, Graph], str] | None = None,
    watch: bool = True,
) -> Verdict:  # fmt: skip
    """Judge ``function``: Graph -> Graph. ``left`` counts what a pass should reduce, and the first line of its docstring
    says to the learner what that is; it is compared with the reference's count. ``targets`` are graphs to try beside the
    enumerated ones, and with ``watch`` once more with effects; ``deep`` makes a long one.
    ``keeps(graph, result)`` is a sentence about what should have stayed as it was."""
    tried = 0
    try:
        with time_limit(seconds), np.errstate(all="ignore"):
            graphs = [*targets]
            watched = sorted(with_effects(graphs), key=len) if watch else []  # last: most mistakes show without
            graphs = sorted(graphs, key=len) + list(small_graphs(space)) + list(larger_graphs(space)) + watched
            results = []
            for graph in graphs:
                tried += 1
                failure, result = judge_one(function, graph)
                if failure:
                    return Verdict(shrink(failure, lambda g: judge_one(function, g)[0]), tried)
                results.append(result)
            for graph, result in zip(graphs, results):
                if failure := undone(graph, result, reference, left):
                    return Verdict(shrink(failure, lambda g: judge_less(function, g, reference, left)), tried)
            for graph, result in zip(graphs, results) if keeps else ():
                if sentence := keeps(graph, result):
                    return Verdict(Failure("changed", sentence, graph, result), tried)
            for graph, result in zip(graphs, results) if idempotent else ():
                if (failure := judge_again(function, graph, result)) is not None:
                    return Verdict(failure, tried)
            if deep is not None:
                failure, _ = judge_one(function, deep(2000))
                if failure:
                    return Verdict(replace(failure, graph=None, got=None, sentence=failure.sentence
                                           + " This was a chain of 2,000 operations."), tried)
    except TookTooLong:
        graph = graphs[tried - 1] if 0 < tried <= len(graphs) else None
        return Verdict(Failure("too-long", "Your function does not come to an end on this graph, or is very slow: it"
                               f" was stopped after {seconds:g} seconds of computing.", graph), tried)
    return Verdict(None, tried)


def judge_calls(
    function: Callable, cases: Iterable[tuple], reference: Callable, seconds: float = SECONDS,
    explain: Callable[[tuple, object, object], tuple[str, ...]] | None = None,
) -> Verdict:  # fmt: skip
    """Judge a function that is no pass: its answer is compared with the reference's, case by case.

    ``explain(case, want, got)`` gives the lines that show the difference.
    """
    tried, case, cases = 0, (), list(cases)
    try:
        with time_limit(seconds), np.errstate(all="ignore"):
            for case in cases:
                tried += 1
                graph = next((part for part in case if isinstance(part, Graph)), None)
                want = reference(*case)
                got, failure = attempt(function, case, graph)
                if failure:
                    at = given(case, tuple(signature(reference).parameters)) if failure.kind == "raises" else ()
                    return Verdict(failure if failure is NOT_ATTEMPTED else replace(failure, case=case, details=at + failure.details), tried)
                if not equal(want, got):
                    lines = (explain or explain_call)(case, want, got)
                    optional = got is None and any(reference(*other) is None for other in cases)
                    sentence = other_kind(want, got) if not optional else ""
                    sentence = sentence or "Your function gives another answer than it should."
                    return Verdict(Failure("wrong-value", sentence, graph, got, case, lines), tried)
    except TookTooLong:
        return Verdict(Failure("too-long", "Your function does not come to an end here, or is very slow: it was"
                               f" stopped after {seconds:g} seconds of computing.", case=case), tried)
    return Verdict(None, tried)


def other_kind(want, got) -> str:
    """A sentence for an answer that is not even of the right kind; nothing where it is."""
    if want is None or type(got) is type(want):
        return ""
    if got is None:
        return "Your function returned None: is a return missing?"
    return f"Your function returned {article(got)}, and {article(want)} is wanted."


def explain_call(case: tuple, want, got) -> tuple[str, ...]:
    return (*given(case), f"it should give {text_of(want)}", f"and gives      {text_of(got)}")


def given(case: tuple, names: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The arguments, under their names where there are as many; a graph is shown as a graph."""
    starts = [f"{name} = " for name in names] if len(names) == len(case) else [""] * len(case)
    return tuple(f"given: {start}{text_of(part)}" for start, part in zip(starts, case) if not isinstance(part, Graph))


def equal(a, b) -> bool:
    """Equal in type and to the bit, through dicts, lists, tuples, nodes and graphs. Never raises: a learner's graph may
    hold arrays, whose ``==`` is an array, or anything at all."""
    if a is b:
        return True
    if isinstance(a, (np.ndarray, np.generic)):
        if not isinstance(b, (np.ndarray, np.generic)):
            return False
        a, b = np.asarray(a), np.asarray(b)
        if a.dtype == b.dtype == object:
            return a.shape == b.shape and all(map(equal, a.flat, b.flat))
        return same_bits(a, b)
    if isinstance(a, dict):
        return isinstance(b, dict) and list(a) == list(b) and all(equal(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(equal, a, b))
    if type(a) is not type(b):
        return False
    try:
        return bool(a == b)
    except Exception:
        parts = [part.name for part in fields(a) if part.compare] if is_dataclass(a) else []
        return bool(parts) and all(equal(getattr(a, part), getattr(b, part)) for part in parts)


def attempt(function: Callable, case: tuple, graph: Graph | None) -> tuple[object, Failure | None]:
    """Call a learner's function: its answer, or the failure that its exception is, or that it changed an argument."""
    try:
        return call(function, *case), None
    except (TookTooLong, KeyboardInterrupt):
        raise
    except Changed as change:
        return None, Failure("mutated", str(change), graph, change.answer, case, change.lines)
    except NotImplementedError:
        return None, NOT_ATTEMPTED
    except BaseException as error:  # learner's code may raise anything, SystemExit included
        return None, raised(error, graph)


class Changed(Exception):
    """A function changed an argument in place: a sentence, what the function answered, and lines that show the change."""

    def __init__(self, sentence: str, answer=None, lines: tuple[str, ...] = ()):
        super().__init__(sentence)
        self.answer, self.lines = answer, lines


def call(function: Callable, *arguments):
    """The function's answer to copies of these arguments. Raises Changed where it changed one of them in place."""
    handed = own_copy(arguments)
    answer = function(*handed)
    for place, (before, after) in enumerate(zip(arguments, handed)):
        if not equal(before, after):
            raise Changed(*change(place, before, after, answer))
    return answer


def own_copy(value):
    """A copy of what can be changed in place, through tuples, lists and dicts. Graphs cannot, and stay the same objects."""
    if type(value) is np.ndarray:
        return value.copy(order="K")
    if type(value) is dict:
        return {key: own_copy(one) for key, one in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(own_copy, value))
    return set(value) if type(value) is set else value


PLACES = ("first", "second", "third", "fourth", "fifth", "last")


def change(place: int, before, after, answer) -> tuple[str, object, tuple[str, ...]]:
    """What ``Changed`` says: which argument, and the innermost part of it that holds all of the change."""
    argument, inner = f"its {PLACES[min(place, 5)]} argument", False
    while (parts := changed_parts(before, after)) is not None and len(parts) == 1:
        (before, after), inner = parts[0], True
    kind = "an array" if isinstance(before, np.ndarray) else article(before)
    what = f"{kind} in {argument}" if inner else f"{argument}, {kind}"
    lines = (f"before the call: {brief_text(before)}", f"after it:        {brief_text(after)}")
    return f"Your function changed {what}. The caller still needs it as it was: change a copy.", answer, lines


def changed_parts(before, after) -> list[tuple] | None:
    """The pairs of parts that are not equal and can be changed in place; None where it is not a matter of such parts alone."""
    if type(before) is not type(after) or not isinstance(before, (list, tuple, dict)) or len(before) != len(after):
        return None
    keys = list(before) if isinstance(before, dict) else range(len(before))
    if isinstance(before, dict) and keys != list(after):
        return None
    pairs = [(before[key], after[key]) for key in keys if not equal(before[key], after[key])]
    inside = all(type(one) is type(other) and isinstance(one, (list, tuple, dict, set, np.ndarray)) for one, other in pairs)
    return pairs if inside else None


def brief_text(value) -> str:
    return show_array(value) if isinstance(value, np.ndarray) else text_of(value)


Inputs = Callable[[Graph], Iterable[dict[str, np.ndarray]]]


def judge_harm(wrong: Callable, graph: Graph) -> tuple[Failure | None, Graph]:
    """Judge a wrong pass on one graph. Nothing is the matter only if it does no harm at the ends of the types, either."""
    failure, got = judge_one(wrong, graph)
    return (failure, got) if failure else judge_one(wrong, graph, edge_inputs)


def judge_one(function: Callable, graph: Graph, inputs_of: Inputs = special_inputs) -> tuple[Failure | None, Graph]:
    """Judge one call: what it returned is a valid graph with the same signature, values and effects."""
    copy = Graph(graph.name, tuple(replace(node) for node in graph.nodes), graph.outputs)
    got, failure = attempt(function, (graph,), graph)
    if failure:
        return failure, graph
    if isinstance(got, Result):
        got = got.graph
    if type(got) is not Graph:  # nor a subclass, see verify
        return Failure("not-a-graph", f"Your function returned {describe(got)}, not a Graph.", copy), graph
    if graph != copy:
        return Failure("mutated", "Your function changed the graph that it was given; a pass builds a new one.", copy), graph
    try:
        verify(got)
    except MinigraphError as error:
        return Failure("invalid", "Your function returned a graph that breaks a rule of the IR.", copy, got,
                       details=tuple(str(error).splitlines())), graph
    except (TypeError, ValueError, AttributeError):
        return Failure("invalid", "Your function returned a graph whose parts are not what they should be: nodes is a tuple of"
                       " Node, and outputs a tuple of pairs (public name, value name).", copy, got), graph
    for error in check_signature(graph, got):
        return Failure("lost", f"{capital(str(error.rule))}.", copy, got), graph
    return compare(copy, got, inputs_of), got


def compare(graph: Graph, got: Graph, inputs_of: Inputs = special_inputs) -> Failure | None:
    """Run both on special inputs and compare bits and effects."""
    if got is graph or got == graph:
        return None
    before, after = observed(graph), observed(got)
    run_before, run_after = compile(before), compile(after)
    for inputs in inputs_of(graph):
        want, have = outcome(run_before, inputs), outcome(run_after, inputs)
        if isinstance(want, str) or isinstance(have, str):
            if (want if isinstance(want, str) else "") != (have if isinstance(have, str) else ""):
                return Failure("wrong-value", "One of the two graphs cannot be run, and the other can.", graph, got, (),
                               (f"before: {want if isinstance(want, str) else 'runs'}",
                                f"after:  {have if isinstance(have, str) else 'runs'}"))
            continue
        for public, _ in graph.outputs:
            if not same_bits(want[public], have[public]):
                return difference(graph, got, public, inputs, want[public], have[public])
    return compare_effects(graph, got, inputs_of)


def observed(graph: Graph) -> Graph:
    """The graph without its effects, so that running it prints nothing."""
    nodes = tuple(node for node in graph.nodes if OPS[node.op].kind is not Kind.EFFECT)
    return graph if len(nodes) == len(graph.nodes) else Graph(graph.name, nodes, graph.outputs)


def outcome(run, inputs) -> dict[str, np.ndarray] | str:
    try:
        return run(**inputs)
    except MinigraphError as error:
        return str(error).splitlines()[0]


def compare_effects(graph: Graph, got: Graph, inputs_of: Inputs = special_inputs) -> Failure | None:
    """The same effects, in the same order, on the same values."""
    before, after = effects(graph), effects(got)
    if [describe_effect(node) for node in before] != [describe_effect(node) for node in after]:
        return Failure("lost", "Your function dropped, added or reordered an effect: an effect is live by itself.", graph, got, (),
                       (f"before: {', '.join(map(describe_effect, before)) or 'none'}",
                        f"after:  {', '.join(map(describe_effect, after)) or 'none'}"))
    for one, other in zip(before, after):
        seen = [(one.inputs[i], other.inputs[i]) for i in range(int(OPS[one.op].arity[0]))]
        failure = compare(with_outputs(graph, [a for a, _ in seen]), with_outputs(got, [b for _, b in seen]), inputs_of)
        if failure:
            return replace(failure, sentence=f"The effect {describe_effect(one)} sees another value than before.",
                           graph=graph, got=got)
    return None


def effects(graph: Graph) -> list[Node]:
    return [node for node in graph.nodes if OPS[node.op].kind is Kind.EFFECT]


def describe_effect(node: Node) -> str:
    return f"{node.op}{dict(node.value) if node.value else ''}"


def with_outputs(graph: Graph, names: list[str]) -> Graph:
    graph = observed(graph)
    return Graph(graph.name, graph.nodes, tuple((f"seen{i}", name) for i, name in enumerate(names)))


def difference(graph: Graph, got: Graph, public: str, inputs, want: np.ndarray, have: np.ndarray) -> Failure:
    """Name the first element that differs, and the inputs there."""
    at = next(index for index in np.ndindex(want.shape) if not same_bits(want[index], have[index]))
    where = "" if at == () else f"[{', '.join(map(str, at))}]"
    lines = [f"{name} = {show_array(array)}" for name, array in inputs.items()]
    lines += [f"{public}{where} should be {show_element(want[at])}, and is {show_element(have[at])}"]
    return Failure("wrong-value", "Your function changed what the graph computes.", graph, got, (), tuple(lines),
                   {public: f"should be {show_element(want[at])}, is {show_element(have[at])}"})


def show_element(element) -> str:
    return "nan" if element != element else format_element(np.asarray(element)[()])


def show_array(array: np.ndarray) -> str:
    return np.array2string(array, separator=", ", threshold=16, precision=4)


def undone(graph: Graph, result: Graph, reference: Callable[[Graph], Graph], left: Callable[[Graph], int]) -> Failure | None:
    """The reference leaves less."""
    most, least = left(result), left(reference(graph))
    if most <= least:
        return None
    sentence = ("Your function did nothing here, and there was something to do." if result == graph else
                "Your function did less here than it could.")
    counted = (left.__doc__ or "left").strip().splitlines()[0].rstrip(".")
    return Failure("did-nothing", sentence, graph, result, (), (f"{counted}: {most} after your function; {least} possible",))


def judge_less(function: Callable, graph: Graph, reference: Callable[[Graph], Graph], left: Callable[[Graph], int]) -> Failure | None:
    """Is it right here, and leaves more than the reference? Any other failure is none: the function is right on larger graphs."""
    failure, result = judge_one(function, graph)
    return undone(graph, result, reference, left) if failure is None else None


def judge_again(function: Callable, graph: Graph, result: Graph) -> Failure | None:
    failure, twice = judge_one(function, result)
    if failure:
        return replace(failure, sentence=failure.sentence + " (On its own result.)")
    if dce(twice).graph == dce(result).graph and len(twice) <= len(result):  # what is dead may go when it likes
        return None
    name = renamed(result, twice)
    which = f": what was {name[0]} is called {name[1]} now." if name else "."
    return Failure("not-idempotent", f"Running your function a second time changes the graph again{which}", result, twice)


def renamed(before: Graph, after: Graph) -> tuple[str, str] | None:
    """The first node's old and new name, where the two graphs differ in names alone."""
    new = {one.name: other.name for one, other in zip(before.nodes, after.nodes)}
    if len(before) != len(after):
        return None
    nodes = tuple(replace(node, name=new[node.name], inputs=tuple(new[name] for name in node.inputs)) for node in before.nodes)
    alike = after == Graph(before.name, nodes, tuple((public, new[value]) for public, value in before.outputs))
    return next((pair for pair in new.items() if pair[0] != pair[1]), None) if alike else None


def raised(error: BaseException, graph: Graph | None) -> Failure:
    """What the learner's code raised: the learner's lines only, the node it was at, and what it called."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [place for place, frame in enumerate(frames) if is_own(frame.filename)]
    lines = {}
    for frame in (frames[place] for place in own):  # a recursion and a comprehension say a line once
        lines.setdefault((frame.lineno, frame.line), f"line {frame.lineno} of {frame.name}: {frame.line}".rstrip(": "))
    lines = list(lines.values())[-3:]
    lines += node_in([(frame.f_locals, frames[place].line) for place, (frame, _) in enumerate(traceback.walk_tb(error.__traceback__))
                      if place in own])
    advice = frozen(error) or not_a_list(error)
    if own and own[-1] < len(frames) - 1 and not advice:
        lines.append(f"It was raised inside {owner(frames[-1].filename)}, by {call_in(frames[own[-1]])}.")
    text = str(error).splitlines()[0] if str(error) else ""
    return Failure("raises", f"Your function raised {type(error).__name__}{': ' + text if text else ''}.{advice}", graph,
                   details=tuple(lines), error=error_of(error))


def error_of(error: BaseException) -> tuple[str, str]:
    """What two functions that go wrong in the same way have in common. How deep a recursion ended is chance."""
    return type(error).__name__, "" if isinstance(error, RecursionError) else str(error)


def frozen(error: BaseException) -> str:
    """What to do instead, where this was an assignment to a part of something that does not change."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    what = frame.f_locals.get("self")
    if frame.f_code.co_name not in ("__setattr__", "__delattr__") or not is_dataclass(what):
        return ""
    advice = {Node: "make a new Node with what is new in it, and a Graph of the new nodes", Graph: "make a new Graph"}
    name = {Node: "node", Graph: "graph"}.get(type(what), type(what).__name__)
    return f" A {name} is a value, and no part of it changes: {advice.get(type(what), 'make a new one')}."


def not_a_list(error: BaseException) -> str:
    """What to do instead, where a node was asked for by its number: that is also how Python walks over a graph."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    by_number = frame.f_code is Graph.__getitem__.__code__ and not isinstance(frame.f_locals["name"], str)
    return f" {NO_LIST}" if by_number else ""


def is_own(filename: str) -> bool:
    """Is this the learner's file, and not the package's or a library's?"""
    return not filename.startswith(NOT_LEARNERS) and "numpy" not in filename


def owner(filename: str) -> str:
    return "the package" if filename.startswith(PACKAGE) else "a library"


def node_in(scopes: list[tuple[dict, str | None]]) -> list[str]:
    """The node that a learner's line speaks of: of the innermost one that speaks of any."""
    for variables, line in reversed(scopes):
        words = re.findall(r"\w+", line or "")
        for name, value in variables.items():
            if isinstance(value, Node) and name in words:
                return [f"{name} is: {exact_line(value)}"]
    return []


def call_in(frame: traceback.FrameSummary) -> str:
    """The call of this line that was running; Python says which from 3.11 on."""
    if getattr(frame, "colno", None) is None or frame.lineno != frame.end_lineno:
        return "what this line calls"
    line = linecache.getline(frame.filename, frame.lineno).encode()
    return line[frame.colno:frame.end_colno].decode(errors="replace") or "what this line calls"


def shrink(failure: Failure, again: Callable[[Graph], Failure | None]) -> Failure:
    """Drop nodes and outputs while the same kind of failure stays: delta debugging (Zeller, 1999), greedily."""
    if failure.graph is None:
        return failure
    progress = True
    while progress:
        progress = False
        for smaller in shrinks(failure.graph):
            found = again(smaller)
            if found is not None and found.kind == failure.kind:
                failure, progress = found, True
                break
    return failure


def shrinks(graph: Graph) -> Iterator[Graph]:
    """Valid graphs with one output or one node fewer."""
    for index in range(len(graph.outputs) if len(graph.outputs) > 1 else 0):
        yield Graph(graph.name, graph.nodes, graph.outputs[:index] + graph.outputs[index + 1:])
    for node in reversed(graph.nodes):
        replacements = [None] if node.op == "input" else [*node.inputs, None]
        for stand_in in replacements:  # its users read an operand instead, or there are none
            swap = {node.name: stand_in}
            nodes = tuple(replace(other, inputs=tuple(swap.get(i, i) for i in other.inputs))
                          for other in graph.nodes if other is not node)
            outputs = tuple((public, swap.get(value, value)) for public, value in graph.outputs)
            smaller = Graph(graph.name, nodes, outputs)
            try:
                verify(smaller)
            except (MinigraphError, TypeError, AttributeError):
                continue
            yield smaller


def describe(value) -> str:
    return "None (is a return missing?)" if value is None else article(value)


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def graph_size(graph: Graph | None) -> int:
    return len(graph.nodes) if graph is not None else 0


def text_of(value) -> str:
    return graph_text(value) if isinstance(value, Graph) else repr(value)
