"""A function's source lines, and beside each the nodes that it recorded."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass

from ..drawing.look import LOOKS
from ..drawing.picture import SHARP
from ..ir import Graph, Node
from ..ops import OPS
from ..text import node_line
from ..tracing.source import position
from .charts import GREY, Chart, finish

MANY = 24  # nodes; above that only the operations are written


@dataclass(frozen=True)
class Line:
    """A source line. ``visits`` are the nodes that it recorded, one group for each time that Python came by."""

    number: int
    text: str
    visits: tuple[tuple[Node, ...], ...]


def lines_of(graph: Graph, *functions: Callable) -> list[Line]:
    """The lines of the functions, in order, without blank ones, docstrings and comments. A ``def`` line has no nodes."""
    visits: dict[str, list[list[Node]]] = {}
    last = None
    for node in graph.nodes:
        if node.op == "input" or not node.origin:
            continue
        place = node.origin[-1]
        if place != last:
            visits.setdefault(place, []).append([])
        visits[place][-1].append(node)
        last = place
    found = []
    for function in functions:
        source, first = inspect.getsourcelines(function)
        inside = False
        for number, text in enumerate(source, first):
            quotes = text.count('"""')
            if text.strip() and not inside and not quotes:
                groups = visits.get(position(function.__code__.co_filename, number), [])
                found.append(Line(number, text.partition("  # ")[0].rstrip(), tuple(map(tuple, groups))))
            inside ^= quotes == 1
    return found


def draw_lines(graph: Graph, *functions: Callable) -> Chart:
    """Source on the left, nodes on the right. A line that recorded nothing is grey and says so."""
    import matplotlib

    matplotlib.use("Agg", force=False)
    import matplotlib.pyplot as plt

    lines = lines_of(graph, *functions)
    short = len(graph) > MANY
    write = (lambda node: node.op) if short else (lambda node: node_line(node, types=False))
    size, step = 9, 0.28  # points, and inches a row
    dots = round(96 * SHARP)  # an inch, see charts.finish
    letter = int(0.602 * size * dots / 72) / dots  # inches: matplotlib's own monospaced font is set in whole dots
    right = letter * (max(len(line.text) for line in lines) + 6)
    rows, y, widest = [], 0, right + 2
    for line in lines:
        rows.append((line, y))
        y += max(1, len(line.visits))
        for visit in line.visits:
            widest = max(widest, right + sum(letter * len(write(node)) + 0.2 for node in visit))
    figure, axes = plt.subplots(figsize=(widest + 0.1, step * y + 0.1))
    font = dict(family="DejaVu Sans Mono", size=size, va="center")
    for line, y in rows:
        is_def = line.text.lstrip().startswith("def ")
        colour = "black" if line.visits or is_def else "#6b6b6b"
        axes.text(0, -y * step, f"{line.number:3}", color="#6b6b6b", **font)
        axes.text(4 * letter, -y * step, line.text, color=colour, style="normal" if line.visits or is_def else "italic",
                  weight="bold" if is_def else "normal", **font)
        if not line.visits and not is_def:
            axes.text(right + 0.06, -y * step, "nothing recorded", color="#6b6b6b", style="italic", **font)
        for row, visit in enumerate(line.visits):
            x, height = right, -(y + row) * step
            axes.annotate("", (x - 0.02, height), (4 * letter + letter * len(line.text) + 0.06, -y * step),
                          arrowprops=dict(arrowstyle="-|>", color=GREY, linewidth=0.8, shrinkA=0, shrinkB=0))
            for node in visit:
                look = LOOKS[OPS[node.op].kind]
                width = letter * len(write(node))
                axes.text(x + 0.08, height, write(node), bbox=dict(boxstyle="round,pad=0.22", facecolor=look.fill,
                                                                   edgecolor=look.line, linewidth=0.9), **font)
                x += width + 0.2
    axes.set_xlim(0, widest + 0.1)
    axes.set_ylim(-step * (y + max(1, len(rows[-1][0].visits)) - 0.4), step * 0.7)
    axes.axis("off")
    figure.subplots_adjust(0, 0, 1, 1)
    return finish(figure, describe(graph, lines, short))


def describe(graph: Graph, lines: list[Line], short: bool) -> str:
    """The picture in words."""
    parts = []
    for line in lines:
        visits = [" ".join(node.op for node in visit) for visit in line.visits]
        if visits and len(set(visits)) == 1 and len(visits) > 1:
            visits = [f"{len(visits)} times {visits[0]}"]
        if not line.text.lstrip().startswith("def "):
            # no line numbers: they would change with every edit above
            parts.append(f"{line.text.strip().rstrip(':')}: {', then '.join(visits) or 'nothing recorded'}")
    return f"The source of {graph.name}, and the nodes that each line recorded. {'. '.join(parts)}.".replace("<", "less than")
