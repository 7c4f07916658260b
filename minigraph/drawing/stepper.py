"""Panels behind a row of tabs, in HTML alone.

Radio buttons inside a form choose the panel, and a style sheet hides the others: nothing runs, no id is needed, and
two of them on a page do not disturb each other, because a form is a world of its own for its buttons. Where a notebook
is not trusted yet the style sheet is taken out, and all panels show one below the other.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from .dot import printable
from ..errors import MinigraphError
from .picture import Picture, page

ROWS = 40  # of a report
# Every rule begins with our own class. {n} is a place in the row of tabs; the rules are the same for all steppers.
STYLE = """
.minigraph-steps { font: 14px/1.5 sans-serif; color: #1a1a1a; background: white; padding: 8px; }
.minigraph-steps nav { display: flex; flex-wrap: wrap; gap: 4px; margin-bottom: 8px; }
.minigraph-steps nav label { border: 1px solid #595959; border-radius: 6px; padding: 2px 10px; cursor: pointer; }
.minigraph-steps nav label:has(:checked) { background: #0072b2; color: white; font-weight: bold; }
.minigraph-steps nav label:focus-within { outline: 2px solid #e69f00; }
.minigraph-steps nav input { position: absolute; opacity: 0; }
.minigraph-steps small { display: block; font-size: 11px; font-weight: normal; }
.minigraph-steps table { border-collapse: collapse; font-size: 13px; }
.minigraph-steps td, .minigraph-steps th { border: 1px solid #b3b3b3; padding: 2px 8px; text-align: left; }
@supports selector(:has(*)) {
.minigraph-steps section { display: none; }
%s
}
"""
SHOW = (".minigraph-steps:has(> nav > label:nth-of-type({n}) > :checked) > section:nth-of-type({n})"
        " {{ display: block; }}")


@dataclass(frozen=True)
class Panel:
    """One tab: a name with small print, a picture, the steps of a report, and text."""

    name: str
    small: str
    picture: Picture | None = None
    report: tuple = ()
    text: str = ""


@dataclass(frozen=True, repr=False)
class Stepper:
    """``html`` shows one panel at a time; ``alt`` says in words what happened."""

    panels: tuple[Panel, ...]
    alt: str

    @cached_property
    def html(self) -> str:
        if not self.panels:
            return f"<p>{words(self.alt)}</p>"
        tabs = "".join(tab(panel, i == 0) for i, panel in enumerate(self.panels))
        sections = "\n".join(map(section, self.panels))
        rules = "\n".join(SHOW.format(n=i + 1) for i in range(len(self.panels)))
        # method=dialog: the Enter key must not send the form and reload the page; the data attribute keeps
        # JupyterLab's own shortcuts off the arrow keys, which step through the tabs
        return (f"<style>{STYLE % rules}</style>\n"
                f'<form class="minigraph-steps" method="dialog" data-lm-suppress-shortcuts="true"'
                f' aria-label="{words(self.alt)}">\n'
                f"<nav>{tabs}</nav>\n{sections}\n</form>\n")

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


def tab(panel: Panel, chosen: bool) -> str:
    return (f'<label><input type="radio" name="step"{" checked" * chosen}>'
            f"{words(panel.name)} <small>{words(panel.small)}</small></label>")


def section(panel: Panel) -> str:
    """One panel; its heading tells panels apart where all of them show."""
    parts = [f"<p><b>{words(panel.name)}</b>: {words(panel.small)}</p>"]
    if panel.picture is not None:
        parts.append(drawing(panel.picture))
    if panel.report:
        parts.append(table(panel.report))
    if panel.text:
        parts.append(f"<details><summary>as text</summary><pre>{words(panel.text)}</pre></details>")
    return "<section>" + "\n".join(parts) + "</section>"


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
