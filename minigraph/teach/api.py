"""What learners call: check, hint, solution, predict, refute and its kin, break_rule, progress, use_mine."""

from __future__ import annotations

import contextlib
import difflib
import io
from collections.abc import Callable, Iterable

import numpy as np

from ..errors import MinigraphError, nearest
from ..ir import Graph, Node
from ..launch_model import quantity
from ..passes import PASSES
from ..pipeline import DEFAULT
from ..run_numpy import run
from ..text import parse
from ..types import DTYPES, same_bits
from ..verify import problems
from . import state
from .exercise import Exercise, Mistake, said, solved, source_of
from .exercises import BAKED, BENCHMARKS, BREAKS, CHAPTERS, EXERCISES, REFUTATIONS
from .exact import is_right
from .invariants import RULES, broken_rules
from .judge import Changed, Failure, equal, error_of, graph_size, own_copy, show_array
from .limits import TookTooLong, print_limit, time_limit
from .mine import load_mine, names_read, save_mine
from .report import Report, pictures_of

SECONDS = 2  # that a function to refute may take
LOOK_SECONDS = 5  # that the search for a known mistake may take
TRIES = 3  # wrong checks after which the solution is shown
CLEARLY = 2  # times as slow that a graph must be before the order of two counts


class LearnerError(MinigraphError):
    """A sentence for somebody who called a function of the course with something it does not know."""


def find(function, caller: str = "check") -> Exercise:
    """The exercise that a function belongs to, by its name. ``caller`` is what the learner called."""
    name = getattr(function, "__name__", None)
    if not callable(function) or name is None:
        known = isinstance(function, str) and function in EXERCISES
        what = "a text: leave the quotes out" if known else type(function).__name__
        raise LearnerError(f"{caller} takes a function, like {caller}({function if known else 'fold'}), not {what}")
    if name == "<lambda>":
        raise LearnerError("a lambda has no name that says which exercise it is: write def, and the exercise's name")
    if name not in EXERCISES:
        raise LearnerError(f"no exercise is called '{name}'. {nearest(name, EXERCISES)}".strip())
    module = str(getattr(function, "__module__", ""))
    if module.startswith("minigraph.") and not module.startswith("minigraph.teach."):
        raise LearnerError(f"this is the package's own {name}: run the cell that defines yours first")
    return EXERCISES[name]


@np.errstate(all="ignore")
def check(function: Callable) -> Report:
    """Judge a solution. Not attempted, wrong (with the smallest case that shows it), or right."""
    exercise = find(function)
    with print_limit():
        return checked(exercise, function)


def checked(exercise: Exercise, function: Callable) -> Report:
    code = getattr(function, "__code__", None)
    for name in exercise.without:
        if code and name in names_read(code):
            return Report(exercise.name, "wrong", f"{name} does all the work here: write it yourself.")
    verdict = exercise.verdict(exercise.adapt(function))
    failure = verdict.failure
    if failure is not None and failure.kind == "not-attempted":
        return Report(exercise.name, "not attempted", "It is your turn.",
                      (f"Write the function, then run this cell again. About {exercise.lines} lines are enough;"
                       f" hint({exercise.name}) helps.",))
    if failure is None:
        state.record_check(exercise.name, "right")
        lines = [exercise.praise] if exercise.praise else []
        lines += save_mine(exercise, function) if exercise.is_pass else []
        return Report(exercise.name, "right", f"{verdict.tried:,} cases agree with the reference.", tuple(lines))
    tries = state.record_check(exercise.name, "wrong")
    try:
        with time_limit(LOOK_SECONDS):
            mistake = known_mistake(exercise, failure, function)
    except TookTooLong:
        mistake = None
    lines = [mistake.note] if mistake and mistake.note not in failure.sentence else []
    if tries >= TRIES:
        lines.append(f"hint({exercise.name}) helps, and solution({exercise.name}) is open.")
    else:
        lines.append(f"hint({exercise.name}) helps.")
    state.update("hints", exercise.name, {"note": mistake.note if mistake else "", "level": 0})
    return Report(exercise.name, "wrong", failure.sentence, tuple(lines), failure, pictures_of(failure))


def known_mistake(exercise: Exercise, failure: Failure, function: Callable) -> Mistake | None:
    """The mistake that gives the very same wrong answer on the counterexample, or raises the same; of several, the one
    that also agrees with ``function`` on most of the exercise's probes. One that does so on few of them is not meant."""
    case = failure.case or (failure.graph,)
    wanted = failure.error if failure.kind == "raises" else failure.got
    if (wanted is None and failure.kind != "wrong-value") or (len(case) == 1 and case[0] is None):
        return None  # nothing came back
    suspects = [mistake for mistake in exercise.mistakes if mistake.kind == failure.kind
                and equal(answer(exercise, mistake.function, case), wanted)]

    def agrees(mistake: Mistake) -> int:
        return sum(equal(answer(exercise, mistake.function, probe), answer(exercise, function, probe)) for probe in exercise.probes)

    best = max(suspects, default=None, key=agrees)
    return best if best is not None and 2 * agrees(best) >= len(exercise.probes) else None


def answer(exercise: Exercise, function: Callable, case: tuple):
    """What a function makes of a case; what it raised, where it does."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # what it prints was seen once
            result = exercise.adapt(function)(*own_copy(case))
    except Changed as change:
        return change.answer
    except (Exception, SystemExit) as error:  # a learner's code and a mistake may raise anything
        return error_of(error)
    return getattr(result, "graph", result)


def hint(function: Callable) -> None:
    """Print the next hint: the idea (or what is known about the last mistake), the algorithm, the skeleton."""
    if getattr(function, "__name__", None) in {*REFUTATIONS, *BENCHMARKS, *BAKED}:
        return print("A refutation has no hints; its sentences are the hints.")
    exercise = find(function, "hint")
    entry = state.load()["hints"].get(exercise.name, {})
    level, note = int(entry.get("level", 0)), str(entry.get("note", ""))
    hints = (note or exercise.hints[0], *exercise.hints[1:])
    level = min(level, len(hints) - 1)
    about = ", about the answer that you checked last" if note and level == 0 else ""
    print(f"Hint {level + 1} of {len(hints)} for {exercise.name}{about}:\n{hints[level]}")
    state.update("hints", exercise.name, {"note": note, "level": level + 1})


def solution(function: Callable) -> None:
    """Print the solution as a diff to the learner's version, after success or three wrong checks."""
    exercise = find(function, "solution")
    entry = state.load()["checks"].get(exercise.name, {})
    if not entry.get("right") and entry.get("tries", 0) < TRIES:
        left = TRIES - entry.get("tries", 0)
        print(f"The solution opens after a right check, or after {left} more wrong ones. hint({exercise.name}) helps.")
        return
    wanted = solved(source_of(exercise.solution))
    try:
        mine = source_of(function)
    except (OSError, TypeError):
        mine = ""
    print("".join(difflib.unified_diff(mine.splitlines(True), wanted.splitlines(True), "yours", "one solution", n=99))
          or "Yours is the same, line by line.")


def predict(question: str, answer=None, actual: Callable | None = None) -> None:
    """Write a prediction down before running: ``predict("nodes left?", 4, lambda: len(g.nodes))``. There is no score."""
    if answer is None:
        print(f"{question}\nWrite your prediction in place of None and run this cell again.")
        return
    value = actual() if actual else None
    state.update("predictions", str(question), repr(answer))
    print(f"{question}\nYou predicted {answer!r}." + (f" It is {value!r}." if actual else ""))


def none_of(what: str, name: str, known: Iterable[str]) -> LearnerError:
    """The error for somebody who named none of those that can be refuted."""
    return LearnerError(f"'{name}' is none of the {what}. {nearest(name, known) or 'They are ' + ', '.join(known) + '.'}")


@np.errstate(all="ignore")
def refute(wrong: Callable, graph: Graph | str, most: int = 6) -> Report:
    """Is ``graph`` one on which the wrong pass goes wrong? At most ``most`` nodes; text or a Graph."""
    name = getattr(wrong, "__name__", "it")
    if name not in REFUTATIONS:
        raise none_of("wrong passes", name, REFUTATIONS)
    try:
        graph = parse(graph) if isinstance(graph, str) else graph
    except MinigraphError as error:
        return unreadable(name, error)
    if not isinstance(graph, Graph):
        raise LearnerError(f"refute takes a wrong pass and a graph, like refute({name}, graph)")
    if not is_right(graph):
        return Report(name, "wrong", "The graph itself breaks a rule of the IR, so the pass is not to blame. verify says:", (),
                      verifier_says(graph), (("your graph", graph),))
    if graph == REFUTATIONS[name].start:
        return Report(name, "not attempted", f"Change the graph so that {name} goes wrong on it.")
    if graph_size(graph) > most:
        return Report(name, "wrong", f"The graph has {counted(graph)}; {most} are enough.")
    failure, got = REFUTATIONS[name].judge(wrong, graph)
    if failure is None:
        pictures = (("before", graph), ("after the wrong pass", got)) if isinstance(got, Graph) else (("your graph, in groups", got),)
        return Report(name, "wrong", REFUTATIONS[name].harmless, (said(REFUTATIONS[name].hint, graph, got),), None, pictures)
    state.update("refuted", name, True)
    return Report(name, "right", f"You refuted it with {counted(graph)}. {failure.sentence.replace('Your function', 'The pass')}",
                  (said(REFUTATIONS[name].lesson, graph),), failure, pictures_of(failure, "the wrong pass", "your graph"))


def unreadable(name: str, error: MinigraphError) -> Report:
    """What somebody gets whose text is no graph: the parser's sentence, without the parser's lines of Python."""
    return Report(name, "wrong", "This text cannot be read as a graph. The parser says:", (),
                  Failure("invalid", "", details=tuple(str(error).splitlines())))


def counted(graph: Graph) -> str:
    size = graph_size(graph)
    return f"{size} node{'s' if size != 1 else ''}"


@np.errstate(all="ignore")
def refute_trace(function: Callable, **inputs) -> Report:
    """Do the function and the graph that was traced on an example differ on these inputs? Arrays or lists of numbers."""
    name = getattr(function, "__name__", "it")
    if name not in BAKED:
        raise none_of("traced functions", name, BAKED)
    one = BAKED[name]
    try:
        arrays = {node.name: np.asarray(inputs.pop(node.name), DTYPES[node.type.dtype]) for node in one.graph.inputs}
        have = list(run(one.graph, arrays, **inputs).values())
    except (KeyError, TypeError, ValueError) as error:
        said = f"input {error} is missing" if isinstance(error, KeyError) else str(error).splitlines()[0]
        return Report(name, "wrong", f"The graph does not take these inputs: {said.rstrip('.')}.")
    if all(same_bits(arrays[key], np.float32(value)) for key, value in one.example.items()):
        return Report(name, "not attempted", "This is the example that it was traced on: change the numbers.")
    try:
        with time_limit(SECONDS):
            result = one.function(**{key: array.copy() for key, array in arrays.items()})
    except TookTooLong:
        return Report(name, "wrong", f"{name} itself does not come to an end on these inputs.", (one.hint,))
    want = [np.asarray(part) for part in (result if isinstance(result, tuple) else (result,))]
    shown = tuple(f"{who}: {', '.join(map(show_array, arrays))}" for who, arrays in
                  ((f"{name} gives", want), ("the graph gives", have)))
    if all(map(same_bits, want, have)):
        return Report(name, "wrong", "On these inputs the graph is right.", (*shown, one.hint))
    state.update("refuted", name, True)
    return Report(name, "right", "The graph does not do what the function does.", (*shown, one.lesson))


@np.errstate(all="ignore")
def refute_benchmark(wrong: Callable, first: Graph | str, second: Graph | str, most: int = 6) -> Report:
    """Does the wrong benchmark call one of the graphs the faster one, which in truth takes at least twice as long?"""
    name = getattr(wrong, "__name__", "it")
    if name not in BENCHMARKS:
        raise none_of("wrong benchmarks", name, BENCHMARKS)
    one = BENCHMARKS[name]
    try:
        graphs = tuple(parse(graph) if isinstance(graph, str) else graph for graph in (first, second))
    except MinigraphError as error:
        return unreadable(name, error)
    for place, graph in zip(("first", "second"), graphs):
        if not isinstance(graph, Graph):
            raise LearnerError("refute_benchmark takes a wrong benchmark and two graphs,"
                               f" like refute_benchmark({name}, first, second)")
        if not is_right(graph):
            return Report(name, "wrong", f"The {place} graph itself breaks a rule of the IR. verify says:", (),
                          verifier_says(graph), ((place, graph),))
        if graph_size(graph) > most:
            return Report(name, "wrong", f"The {place} graph has {counted(graph)}; {most} are enough.")
        if reason := one.unfit(graph):
            return Report(name, "wrong", f"The {place} graph {reason}.")
    if graphs == tuple(map(parse, one.start)):
        return Report(name, "not attempted", f"Change the graphs so that {name} calls the slower one faster.")
    claims, truths = [one.function(graph) for graph in graphs], [one.truth(graph) for graph in graphs]
    shown = tuple(f"{place}: {name} says {quantity(claim, 's')}; in truth {quantity(truth, 's')}"
                  for place, claim, truth in zip(("first", "second"), claims, truths))
    if not any(claims[a] < claims[b] and truths[a] >= CLEARLY * truths[b] for a, b in ((0, 1), (1, 0))):
        right_order = any(claims[a] < claims[b] and truths[a] < truths[b] for a, b in ((0, 1), (1, 0)))
        headline = ("It puts these two in the right order." if right_order else one.tie if claims[0] == claims[1] else
                    f"The one that it calls faster must in truth take at least {CLEARLY} times as long.")
        return Report(name, "wrong", headline, (*shown, one.hint))
    state.update("refuted", name, True)
    return Report(name, "right", "It calls the slower graph the faster one.", (*shown, one.lesson),
                  None, tuple(zip(("first", "second"), graphs)))


def break_rule(rule: str, graph: Graph) -> Report:
    """Does ``graph`` break this rule of the IR, and no other? See ``invariants.RULES``."""
    if not isinstance(rule, str) or rule not in BREAKS:
        known = nearest(str(rule), BREAKS) or f"The rules are {', '.join(BREAKS)}."
        raise LearnerError(f"no rule is called '{rule}'. {known}")
    if not isinstance(graph, Graph) or not isinstance(graph.nodes, tuple) or not all(isinstance(node, Node) for node in graph.nodes):
        raise LearnerError("break_rule takes a rule and a Graph of Nodes,"
                           ' like break_rule("known-op", Graph("g", (x, y), good.outputs))')
    if not well_formed(graph):
        raise LearnerError('inputs and outputs are tuples: inputs ("y",) with the comma, outputs (("out", "z"),) with both')
    one = BREAKS[rule]
    if equal(graph, one.start):
        return Report(rule, "not attempted", f"Change the graph so that it breaks this rule: {RULES[rule]}.")
    found = broken_rules(graph)
    pictures = (("your graph", graph),)
    if found != {rule}:
        headline = ("This graph breaks no rule." if not found else f"This graph breaks {', '.join(sorted(found))}"
                    + (", so it breaks too much." if rule in found else f", and not {rule}."))
        tries = state.record_check(rule, "wrong")
        return Report(rule, "wrong", headline + (" verify says:" if found else ""),
                      (one.hint,) if tries == 1 else (one.hint, one.recipe), verifier_says(graph), pictures)
    state.update("refuted", rule, True)
    return Report(rule, "right", "Your graph breaks this rule and no other. verify says:", (one.lesson(graph),),
                  verifier_says(graph), pictures)


def verifier_says(graph: Graph) -> Failure:
    """The verifier's first sentence, for a report."""
    return Failure("invalid", "", graph, details=tuple(str(next(problems(graph), "")).splitlines()))


def well_formed(graph: Graph) -> bool:
    """Are inputs tuples of names, and outputs pairs? A comma is quickly forgotten."""
    if not isinstance(graph.outputs, tuple) or not all(isinstance(pair, tuple) and len(pair) == 2 for pair in graph.outputs):
        return False
    if not all(isinstance(node.inputs, tuple) for node in graph.nodes):
        return False
    names = [name for node in graph.nodes for name in (node.name, node.op, *node.inputs)]
    return all(isinstance(name, str) for name in (*names, *sum(graph.outputs, ())))


def progress() -> Report:
    """What is done, chapter by chapter, and what comes next."""
    now = state.load()
    done = {name for name, entry in now["checks"].items() if isinstance(entry, dict) and entry.get("right")}
    done |= {name for name, right in now["refuted"].items() if right}
    lines, total, right, following = [], 0, 0, ""
    for chapter, title in CHAPTERS.items():
        tasks = [name for name, one in EXERCISES.items() if one.chapter == chapter]
        tasks += [name for name, one in REFUTATIONS.items() if one.chapter == chapter]
        tasks += [name for name, one in BAKED.items() if one.chapter == chapter]
        tasks += [name for name, one in BREAKS.items() if one.chapter == chapter]
        tasks += [name for name, one in BENCHMARKS.items() if one.chapter == chapter]
        if not tasks:
            continue
        solved_here = [name for name in tasks if name in done]
        total, right = total + len(tasks), right + len(solved_here)
        missing = [name for name in tasks if name not in done]
        following = following or (f"Next: {missing[0]} in chapter {chapter}." if missing else "")
        lines.append(f"{chapter} {title}: {len(solved_here)} of {len(tasks)}" + (f", to do: {', '.join(missing)}" if missing else ""))
    outcome = "right" if right == total else "not attempted" if not right else "wrong"
    percent = 100 * right // total if total else 100
    return ProgressReport("progress", outcome, f"{percent} % of the exercises are right.", (*lines, *([following] if following else [])))


class ProgressReport(Report):
    """Progress has no outcome of its own to show."""

    def __str__(self) -> str:
        return "\n".join([self.headline, *self.lines])

    __repr__ = __str__

    def html(self) -> str:
        import html

        return "".join(f"<p>{html.escape(line)}</p>" for line in (self.headline, *self.lines))


def use_mine() -> dict[str, Callable]:
    """The passes to run in later chapters: yours where they checked right, the package's own for the rest."""
    passes = {name: PASSES[name] for name in DEFAULT} | load_mine()
    mine = [name for name in passes if passes[name] is not PASSES.get(name)]
    print(f"Your own: {', '.join(mine) or 'none yet'}. From the package: "
          f"{', '.join(name for name in passes if name not in mine) or 'none'}.")
    return passes


__all__ = ["break_rule", "check", "hint", "predict", "progress", "refute", "refute_benchmark", "refute_trace", "solution", "use_mine"]
