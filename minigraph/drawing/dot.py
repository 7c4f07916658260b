"""DOT source, and the program that turns it into SVG or PNG. Nothing here knows what a graph of ours is.

``statement`` writes one line, ``digraph`` and ``cluster`` put lines together, ``render`` runs Graphviz:
``dot`` from PATH when there is one, else the program that the wheel ``graphviz-pure`` installs.
"""

from __future__ import annotations

import html
import importlib.metadata
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from ..errors import MinigraphError

FONT = "Helvetica"  # graphviz-pure brings a font of the same widths
SMALL, TINY = 10, 9  # points (whole ones: Graphviz drops the rest), beside the 14 of a title
INK, DIM, GREY = "#1a1a1a", "#404040", "#595959"
# Okabe and Ito's colours: told apart with every common colour blindness
BLUE, SKY, GREEN, YELLOW = "#0072b2", "#56b4e9", "#009e73", "#f0e442"
ORANGE, VERMILLION, PURPLE = "#e69f00", "#d55e00", "#cc79a7"

GRAPH = dict(rankdir="TB", bgcolor="white", nodesep=0.22, ranksep=0.26, margin=0, pad=0.08,
             labelloc="t", labeljust="l", fontname=FONT, fontsize=11, fontcolor=GREY)  # fmt: skip
NODE = dict(fontname=FONT, fontsize=14, fontcolor=INK, style="filled", height=0.3, width=0.3)
EDGE = dict(fontname=FONT, fontsize=10, fontcolor=GREY, color=INK, arrowsize=0.65, penwidth=1.0)
CLUSTER = dict(style="rounded", color=GREY, penwidth=1.2, margin=10, bgcolor="#f4f4f4",
               labeljust="l", fontname=FONT, fontsize=12, fontcolor=INK)  # fmt: skip

MISSING = ("no program to draw with was found: pictures need Graphviz's `dot`, or the wheel graphviz-pure"
           "\n  pip install graphviz-pure   (or: conda install graphviz; apt install graphviz), then draw again")
NAMES = ("dot", "graphviz-pure")
CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")  # what XML 1.0 cannot hold


# ---- source ---------------------------------------------------------------------------------------------------


class Html(str):
    """A label in Graphviz's HTML-like language; ``statement`` puts it in angle brackets, not in quotes."""


def printable(text) -> str:
    return CONTROL.sub("?", str(text))


def escape(text) -> str:
    """Text inside an HTML-like label."""
    return html.escape(printable(text), quote=True)


def font(text, size: int | None = None, color: str | None = None, tag: str = "") -> Html:
    """``text`` escaped (unless it is Html already), in a size and colour; ``tag`` is B, I or S."""
    inner = text if isinstance(text, Html) else escape(text)
    inner = f"<{tag}>{inner}</{tag}>" if tag else inner
    facts = "".join(f' {key}="{value}"' for key, value in (("POINT-SIZE", size), ("COLOR", color)) if value)
    return Html(f"<FONT{facts}>{inner}</FONT>" if facts else inner)


def quote(value) -> str:
    """A DOT value. Backslashes are doubled, because ``\\N`` and the like would be replaced."""
    if isinstance(value, Html):
        return f"<{value}>"
    text = printable(value).replace("\\", "\\\\").replace('"', '\\"').replace("\r", "").replace("\n", "\\n")
    return f'"{text}"'


def statement(subject: str, **attrs) -> str:
    """``n1 [label="x", shape="box"];``; an attribute that is None is left out."""
    inside = ", ".join(f"{key}={quote(value)}" for key, value in attrs.items() if value is not None)
    return f"{subject} [{inside}];" if inside else f"{subject};"


def indent(lines: Iterable[str]) -> list[str]:
    return ["  " + line for line in lines]


def cluster(number: int, lines: Iterable[str], **attrs) -> list[str]:
    """The lines in a frame of their own."""
    head = statement("graph", **{**CLUSTER, **attrs})
    return [f"subgraph cluster_{number} {{", *indent([head, *lines]), "}"]


def digraph(lines: Iterable[str], **attrs) -> str:
    """A whole DOT file."""
    head = [statement("graph", **{**GRAPH, **attrs}), statement("node", **NODE), statement("edge", **EDGE)]
    return "\n".join(["digraph {", *indent([*head, *lines]), "}"]) + "\n"


# ---- rendering ------------------------------------------------------------------------------------------------


def renderers() -> list[str]:
    """The programs that can draw, best first: on PATH, then where pip puts the wheel's program."""
    found = [shutil.which(name) for name in NAMES]
    folders = [sysconfig.get_path("scripts"), str(Path(sys.executable).parent)]
    found += [shutil.which(NAMES[1], path=folder) for folder in folders]
    if not any(found):  # a user install or a target folder: the wheel's own list of files knows
        found += [shutil.which(NAMES[1], path=folder) for folder in wheel_folders()]
    return list(dict.fromkeys(filter(None, found)))


def wheel_folders() -> list[str]:
    try:
        files = importlib.metadata.files(NAMES[1]) or ()
    except importlib.metadata.PackageNotFoundError:
        return []
    return [str(Path(file.locate()).parent) for file in files if file.stem == NAMES[1]]


def render(source: str, format: str = "svg", dpi: int | None = None, timeout: float = 60.0) -> bytes:
    """Run Graphviz on DOT text. Raises MinigraphError with a sentence when no program can do it."""
    options = [f"-T{format}", *([f"-Gdpi={dpi}"] if dpi else [])]
    attempts = map(partial(attempt, source, options, timeout), renderers())
    problem = MISSING
    for done, problem in attempts:  # a `dot` without its plug-ins is not rare: the next program may work
        if done is not None:
            return done
    raise MinigraphError(problem)


def attempt(source: str, options: list[str], timeout: float, program: str) -> tuple[bytes | None, str]:
    """(the picture, "") or (None, what went wrong)."""
    name = Path(program).stem
    try:
        result = subprocess.run([program, *options], input=source.encode(), capture_output=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return None, f"{name} was still drawing after {timeout:g} s: draw a smaller graph"
    except OSError as error:
        return None, f"{name} cannot be started: {error.strerror}\n  pip install graphviz-pure installs another one"
    if result.returncode == 0 and result.stdout:
        return result.stdout, ""
    said = result.stderr.decode(errors="replace").strip().splitlines() or ["no reason given"]
    return None, f"{name} refused the picture: {said[0]}"
