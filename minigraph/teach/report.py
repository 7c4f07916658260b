"""What ``check`` answers, as text that can be read aloud and as HTML with pictures."""

from __future__ import annotations

import html
from dataclasses import dataclass

from ..ir import Graph
from .exact import is_right
from .judge import Failure, text_of
from .partitions import Grouped


@dataclass(frozen=True, repr=False)
class Report:
    """``outcome`` is ``not attempted``, ``wrong`` or ``right``; ``lines`` are sentences below the headline."""

    name: str
    outcome: str
    headline: str
    lines: tuple[str, ...] = ()
    failure: Failure | None = None
    pictures: tuple[tuple[str, Graph | Grouped], ...] = ()  # (caption, graph)

    def __str__(self) -> str:
        parts = [f"{self.name}: {self.outcome}. {brief(self.headline)}"]
        if self.failure is not None:
            parts += [f"    {brief(line)}" for line in self.failure.details]
        for caption, graph in self.pictures:
            parts += ["", f"  {caption}:", *(f"    {line}" for line in text_of(graph).splitlines())]
        return "\n".join([*parts, *([""] if self.lines else []), *self.lines])

    __repr__ = __str__

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/plain": str(self), "text/html": self.html()}

    def html(self) -> str:
        """The same report with the graphs drawn. The outcome is a word and a frame, not only a colour."""
        mark = {"right": "✓", "wrong": "✗", "not attempted": "○"}[self.outcome]
        colour = {"right": "#00664b", "wrong": "#a63d00", "not attempted": "#555555"}[self.outcome]
        details = "".join(f"<li><code>{html.escape(brief(line))}</code></li>" for line in self.failure.details) if self.failure else ""
        lines = "".join(f"<p>{html.escape(line)}</p>" for line in self.lines)
        return (f'<div style="border-left:6px solid {colour};padding:0.2em 1em;max-width:56em">'
                f"<p><b>{mark} {html.escape(self.name)}: {self.outcome}.</b> {html.escape(brief(self.headline))}</p>"
                f"{f'<ul>{details}</ul>' if details else ''}{self.drawn()}{lines}</div>")

    def drawn(self) -> str:
        """The pictures side by side, each with its caption."""
        figures = []
        for caption, graph in self.pictures:
            figures.append('<figure style="display:inline-block;vertical-align:top;margin:0.5em 1em">'
                           f"<figcaption>{html.escape(caption)}</figcaption>{picture(graph, self.failure)}</figure>")
        return "".join(figures)


def brief(line: str, most: int = 600) -> str:
    """A line that can be read: a function may return, or say, megabytes."""
    return line if len(line) <= most else f"{line[:most]} …"


def picture(graph: Graph | Grouped, failure: Failure | None) -> str:
    """The drawing as an <img> with its alt text; below a graph that breaks a rule, and where nothing can draw, its text."""
    from ..drawing import draw

    text = f"<pre>{html.escape(text_of(graph))}</pre>"
    try:
        drawn = graph.html if isinstance(graph, Grouped) else draw(graph, values=failure.values if failure else {}).html
    except Exception:  # nothing is installed that draws, or the learner's graph holds anything at all
        return text
    return drawn if isinstance(graph, Grouped) or is_right(graph) else drawn + text


def pictures_of(failure: Failure, whose: str = "your function",
                given: str = "the smallest graph that shows it") -> tuple[tuple[str, Graph | Grouped], ...]:
    """The counterexample, and what the function made of it."""
    if isinstance(failure.graph, Graph) and failure.groups:
        return ((f"{given}, in groups", Grouped(failure.graph, failure.groups)),)
    found = []
    if isinstance(failure.graph, Graph):
        found.append((given if isinstance(failure.got, Graph) else "the graph", failure.graph))
    # equal graphs may differ: NumPy's True is equal to Python's, and breaks a rule
    if isinstance(failure.got, Graph) and (failure.kind == "invalid" or failure.got != failure.graph):
        found.append((f"after {whose}", failure.got))
    return tuple(found)
