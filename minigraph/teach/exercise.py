"""What an exercise is: its solution, its judge, its hints and the mistakes that people make."""

from __future__ import annotations

import functools
import inspect
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..ir import Graph
from .judge import Failure, Verdict, judge_harm
from .standins import trace_by_example

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"  # nbgrader's markers
YOUR_TURN = 'raise NotImplementedError("your turn")'


@dataclass(frozen=True)
class Mistake:
    """A wrong solution that people write: what it gets told, and the hint that fits it."""

    function: Callable
    kind: str  # the kind of failure that it must get
    note: str  # names the misconception, in one sentence


@dataclass(frozen=True)
class Exercise:
    """One exercise. Its identity is the name of ``solution``.

    ``judge(function)`` gives a Verdict. ``adapt`` turns the learner's function into what the judge calls, where that
    is not the function itself (a key function becomes a pass).
    """

    chapter: str  # "03"
    title: str
    solution: Callable  # solved, with the markers around what the learner writes
    judge: Callable[[Callable], Verdict]
    hints: tuple[str, str, str]  # the idea, the algorithm in words, the skeleton
    mistakes: tuple[Mistake, ...]  # at least five
    alternatives: tuple[Callable, ...] = ()  # other right solutions, at least two
    probes: tuple[tuple, ...] = ()  # calls that tell the mistakes apart, each the arguments of one
    adapt: Callable[[Callable], Callable] = lambda function: function
    without: tuple[str, ...] = ()  # names that would do all the work: a solution may not use them
    praise: str = ""  # after success: what to look at
    is_pass: bool = False  # Graph -> Graph: may run in later chapters
    stretch: bool = False

    @property
    def name(self) -> str:
        return self.solution.__name__

    def verdict(self, function: Callable) -> Verdict:
        """The judge's verdict. What a function returns or raises may be so strange that the judge itself trips over it."""
        try:
            return self.judge(function)
        except (Exception, SystemExit) as error:
            return Verdict(Failure("raises", "What your function returned or raised cannot be compared or shown:"
                                   f" that raises {type(error).__name__}."), 0)

    @property
    def lines(self) -> int:
        """How many lines the solution has between the markers."""
        return len(solution_lines(source_of(self.solution)))


def source_of(function: Callable) -> str:
    return textwrap.dedent(inspect.getsource(function))


def solution_lines(source: str) -> list[str]:
    """What is between the markers, without blank lines and comments."""
    inside, kept = False, []
    for line in source.splitlines():
        if line.strip() in (BEGIN, END):
            inside = line.strip() == BEGIN
        elif inside and line.strip() and not line.strip().startswith("#"):
            kept.append(line.strip())
    return kept


def stub(source: str) -> str:
    """The learner's version: each marked region becomes one line that says whose turn it is."""
    pattern = re.compile(rf"^( *){BEGIN}\n.*?^ *{END}\n", re.MULTILINE | re.DOTALL)
    return pattern.sub(lambda match: f"{match[1]}{YOUR_TURN}\n", source)


def solved(source: str) -> str:
    """The solution without the markers."""
    return re.sub(rf"^ *({BEGIN}|{END})\n", "", source, flags=re.MULTILINE)


@dataclass(frozen=True)
class Refutation:
    """A wrong pass to refute with a small graph. ``start`` is a graph on which it does no harm.

    ``judge(function, graph)`` gives the harm as a Failure, or None, and what the pass made of the graph.
    """

    chapter: str
    function: Callable
    start: Graph
    answer: Graph  # a graph that refutes it; shown to nobody, run by the tests
    hint: str | Callable[[Graph, Graph], str]  # after a graph that does not do; may look at it, and at what the pass made of it
    lesson: str | Callable[[Graph], str]  # what to take away, after success; may look at the graph
    judge: Callable[[Callable, Graph], tuple[Failure | None, object]] = judge_harm
    harmless: str = "On this graph the pass does no harm: every value and effect is as before."

    @property
    def name(self) -> str:
        return self.function.__name__


def said(sentence: str | Callable[..., str], *about) -> str:
    """A sentence, or what it says about these."""
    return sentence(*about) if callable(sentence) else sentence


@dataclass(frozen=True)
class Baked:
    """A function with an ``if`` or a loop that a tracer baked in. The task: inputs on which its graph and it differ."""

    chapter: str
    function: Callable
    example: dict[str, list]  # what it was traced on; the lists become arrays of float32
    answer: dict[str, list]
    hint: str
    lesson: str  # what to take away, after success

    @property
    def name(self) -> str:
        return self.function.__name__

    @functools.cached_property
    def graph(self) -> Graph:
        """What ``trace_by_example`` made of the example."""
        return trace_by_example(self.function, **{name: np.float32(value) for name, value in self.example.items()})


@dataclass(frozen=True)
class Break:
    """A rule of the IR to break with a graph of one's own. ``start`` is a graph that breaks none."""

    chapter: str
    rule: str  # a key of invariants.RULES
    start: Graph
    answer: str  # an expression for a graph that breaks it; it may name prelude's names, ``start``'s nodes, and ``good``
    hint: str  # after the first graph that does not do: what the rule is about
    recipe: str  # after a later one: how to break it
    lesson: Callable[[Graph], str]  # what to take away, after success: a rule can be broken in several ways

    @property
    def name(self) -> str:
        return self.rule


@dataclass(frozen=True)
class Benchmark:
    """A benchmark that measures the wrong thing. The task: two graphs that it puts in the wrong order."""

    chapter: str
    function: Callable[[Graph], float]  # what it says a graph takes, seconds
    truth: Callable[[Graph], float]  # what it takes
    start: tuple[str, str]  # two graphs as text, which it puts in the right order
    answer: tuple[str, str]
    hint: str
    lesson: str
    tie: str  # to somebody whose two graphs it calls equally fast: what must differ
    unfit: Callable[[Graph], str] = lambda graph: ""  # why its machine cannot run a graph: the end of "The first graph …."

    @property
    def name(self) -> str:
        return self.function.__name__
