"""Panels that open one below the other, in HTML alone.

Each is a ``<details>``: no script, no style sheet and no id, so it works in a notebook that is not trusted yet and in an
exported page, two on a page do not disturb each other, and a keyboard or a screen reader opens it like anything else.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ..errors import MinigraphError
from .dot import printable
from .picture import Picture, page

ROWS = 40  # of a report
@dataclass(frozen=True)
class Panel:
    """One stage: a name with small print, a picture, the steps of a report, and text."""

    name: str
    small: str
    picture: Picture | None = None
    report: tuple = ()
    text: str = ""


@dataclass(frozen=True, repr=False)
class Stepper:
    """``html`` shows the panels, the first one open; ``alt`` says in words what happened."""

    panels: tuple[Panel, ...]
    alt: str

    @cached_property
    def html(self) -> str:
        if not self.panels:
            return f"<p>{words(self.alt)}</p>"
        sections = "\n".join(section(panel, i == 0) for i, panel in enumerate(self.panels))
        return f'<div role="group" aria-label="{words(self.alt)}">\n{sections}\n</div>\n'

    def __repr__(self) -> str:
        return self.alt

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/html": self.html, "text/plain": self.alt}

    def save(self, path) -> Path:
        """Write a page that works by itself. Returns the path."""
        path = Path(path)
        if path.suffix != ".html":
            raise MinigraphError(f"steps are saved as .html, not as '{path.name}'")
        path.write_text(page(self.alt, self.html), encoding="utf-8")
        return path


def words(text) -> str:
    return html.escape(printable(text))


def section(panel: Panel, is_open: bool) -> str:
    """One panel; its summary is what is seen of it when it is closed."""
    parts = [f"<summary><b>{words(panel.name)}</b>: {words(panel.small)}</summary>"]
    if panel.picture is not None:
        parts.append(drawing(panel.picture))
    if panel.report:
        parts.append(table(panel.report))
    if panel.text:
        parts.append(f"<details><summary>as text</summary><pre>{words(panel.text)}</pre></details>")
    return f"<details{' open' * is_open}>" + "\n".join(parts) + "</details>"


def drawing(picture: Picture) -> str:
    """The picture; where no program can draw, its sentence and the reason."""
    try:
        return picture.html
    except MinigraphError as error:
        return f"<p>{words(picture.alt)}</p><p>Not drawn: {words(error)}</p>"


def table(report: Sequence) -> str:
    """The steps of a report: which rule, what it took, what it gave, and why."""
    head = "".join(f"<th>{name}</th>" for name in ("rule", "before", "after", "why"))
    rows = ["".join(f"<td>{words(cell(part))}</td>" for part in (step.rule, step.before, step.after, step.why))
            for step in report[:ROWS]]
    if len(report) > ROWS:
        rows.append(f'<td colspan="4">… and {len(report) - ROWS:,} more steps</td>')
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def cell(part) -> str:
    """Names with commas between them; anything else as text; nothing for None."""
    if isinstance(part, (tuple, list)):
        return ", ".join(map(str, part))
    return "" if part is None else str(part)
