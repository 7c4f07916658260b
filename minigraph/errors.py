"""Errors are sentences: the rule broken, the node as its text line, where, and what to try."""

from __future__ import annotations

from collections.abc import Iterable


class MinigraphError(Exception):
    """Base of every error that minigraph raises on purpose."""


class MinigraphWarning(RuntimeWarning):
    """Something works, but not as well as it could: one sentence."""


class GraphError(MinigraphError, ValueError):
    """A graph, or a piece of one, breaks a rule of the IR.

    ``rule`` is one sentence, ``line`` the node as its text line, ``where`` a source position
    (``file:line`` or ``file:line:column``), ``hint`` one suggestion.
    """

    def __init__(self, rule: str, line: str = "", where: str = "", hint: str = ""):
        self.rule, self.line, self.where, self.hint = rule, line, where, hint
        super().__init__(rule, line, where, hint)

    def __str__(self) -> str:
        text = f"{self.where}: {self.rule}" if self.where else self.rule
        if self.line:
            text += f"\n    {self.line}"
        if self.hint:
            text += f"\n  {self.hint}"
        return text

    def at(self, line: str = "", where: str = "") -> GraphError:
        """The same error, with the node's line and position filled in where they were missing."""
        return type(self)(self.rule, self.line or line, self.where or where, self.hint)


class ParseError(GraphError):
    """Text that is not a graph; ``where`` is ``file:line:column``."""


class TraceError(GraphError):
    """Python code that cannot be recorded as a graph."""


class RunError(MinigraphError, ValueError):
    """A graph could not be run: wrong inputs, or an operation that NumPy refuses for these values."""


class CheckFailed(RunError):
    """An ``assert_close`` or ``assert_finite`` in the graph did not hold at run time."""


class PassError(MinigraphError):
    """A pass broke its contract: an invalid graph, or changes that its report does not account for."""


class RuleLoop(PassError):
    """A rewrite rule that does not lower the weight of what it rewrites, so that it could run forever."""


def brief(value) -> str:
    """A value in a sentence: as it is written where that is short, else its type."""
    text = repr(value)
    return text if len(text) <= 40 and text.isprintable() else f"an object of type {type(value).__name__}"


def nearest(word: str, known: Iterable[str]) -> str:
    """The suggestion ``did you mean 'x'?``, or an empty string when nothing is near."""
    import difflib  # takes longer to import than most programs need to find no mistake

    close = difflib.get_close_matches(word, list(known), n=3, cutoff=0.6)
    close.sort(key=lambda name: name[:1] != word[:1])  # stable: a slip seldom changes the first letter
    return f"did you mean '{close[0]}'?" if close else ""
