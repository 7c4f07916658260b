"""Curves over sizes: ``draw_curves``. Each has a dash, a marker and its name at its end, so colour is never needed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ..errors import MinigraphError
from ..launch_model import quantity
from .dot import DIM, GREY, INK
from .plot import COLOURS, KINDS, Plot

DASHES = ("-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1)), (0, (3, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P")
MANY = 40  # points from which on not every one gets a marker
LINE = 0.055  # height of a line of text as a share of the plot's, so that names at the ends do not overlap

Curve = Sequence[tuple[float, float]]


def draw_curves(curves: Mapping[str, Curve], *, x_label: str, y_label: str, title: str = "", label: str = "",
                log: str = "xy", x_unit: str = "", y_unit: str = "", marks: Sequence[tuple[float, str]] = (),
                steps: bool = False, x_ticks: Sequence[float] = ()) -> Plot:
    """One plot of up to six curves, each a name and its (x, y) pairs.

    ``label`` says where measured numbers are from and is written into the picture. ``log``: the axes with a logarithmic
    scale. ``x_unit`` and ``y_unit`` ("s", "B") are written with prefixes. ``marks``: (x, text) of vertical lines, for a
    knee. ``steps``: values hold until the next, as those of a running maximum. ``x_ticks``: where the x axis has ticks.
    Raises MinigraphError where a curve cannot be drawn.
    """
    check(curves, log)
    title = title or f"{y_label} over {x_label}"

    def paint(figure):
        axes = figure.add_subplot()
        for k, (name, points) in enumerate(curves.items()):
            xs, ys = zip(*points)
            axes.plot(xs, ys, color=COLOURS[k], linestyle=DASHES[k], marker=MARKERS[k], markersize=5, linewidth=1.8,
                      markevery=max(1, len(xs) // 12) if len(xs) > MANY else 1,
                      drawstyle="steps-post" if steps else "default")
        for axis, name, unit in (("x", x_label, x_unit), ("y", y_label, y_unit)):
            set_axis(axes, axis, name, unit, axis in log)
        if x_ticks:
            axes.set_xticks(x_ticks)
        for x, text in marks:
            axes.axvline(x, color=GREY, linewidth=1, linestyle=(0, (2, 2)))
            axes.annotate(text, (x, 1), xycoords=("data", "axes fraction"), xytext=(4, -2), textcoords="offset points",
                          va="top", color=DIM, fontsize=9)
        name_ends(axes, curves)
        axes.set_title(title + (f"\n{label}" if label else ""))
        axes.grid(True, color="#dddddd", linewidth=0.6)
        axes.set_axisbelow(True)

    return Plot(paint, in_words(title, label, curves, x_label, y_label, x_unit, y_unit, marks), title)


def check(curves: Mapping[str, Curve], log: str) -> None:
    if not 0 < len(curves) <= KINDS:
        raise MinigraphError(f"a plot shows 1 to {KINDS} curves, these are {len(curves)}: draw some in another plot")
    for name, points in curves.items():
        if not len(points):
            raise MinigraphError(f"the curve '{name}' has no points")
        for x, y in points:
            if not (math.isfinite(x) and math.isfinite(y)):
                raise MinigraphError(f"the curve '{name}' has the point ({x}, {y}), which lies nowhere: leave it out")
            if (x <= 0 and "x" in log) or (y <= 0 and "y" in log):
                raise MinigraphError(f"the curve '{name}' has the point ({x}, {y}), and a logarithmic axis has no place"
                                     " for 0 and below\n  leave the point out, or name only the other axis in log")


def set_axis(axes, axis: str, name: str, unit: str, log: bool) -> None:
    from matplotlib.ticker import FuncFormatter, NullFormatter

    (axes.set_xlabel if axis == "x" else axes.set_ylabel)(name)
    if log:
        (axes.set_xscale if axis == "x" else axes.set_yscale)("log")
    ruler = axes.xaxis if axis == "x" else axes.yaxis
    if unit or log:
        ruler.set_major_formatter(FuncFormatter(lambda value, _: quantity(value, unit)))
        ruler.set_minor_formatter(NullFormatter())


def name_ends(axes, curves: Mapping[str, Curve]) -> None:
    """Each curve's name right of its last point, moved up or down where two would overlap."""
    axes.get_xlim(), axes.get_ylim()  # matplotlib settles the scale when it is asked for
    place = axes.transData.transform
    unit = axes.transAxes.inverted().transform
    ends = [(float(unit(place(points[-1]))[1]), k, name) for k, (name, points) in enumerate(curves.items())]
    heights = spread([height for height, _, _ in sorted(ends)], LINE)
    for height, (_, k, name) in zip(heights, sorted(ends)):
        axes.plot([1.02], [height], color=COLOURS[k], marker=MARKERS[k], markersize=6, transform=axes.transAxes,
                  clip_on=False)
        axes.annotate(name, (1.035, height), xycoords="axes fraction", va="center", color=INK, fontsize=10)


def spread(heights: Sequence[float], least: float) -> list[float]:
    """The rising ``heights`` with at least ``least`` between neighbours, moved no more than that asks for."""
    found: list[list[float]] = []  # groups of neighbours that touch: [middle of the group, members]
    for height in heights:
        found.append([height, 1])
        while len(found) > 1 and found[-1][0] - found[-2][0] < least * (found[-1][1] + found[-2][1]) / 2:
            (upper, many), (lower, few) = found.pop(), found.pop()
            found.append([(upper * many + lower * few) / (many + few), many + few])
    return [middle + least * (k - (count - 1) / 2) for middle, count in found for k in range(int(count))]


def in_words(title: str, label: str, curves: Mapping[str, Curve], x_label: str, y_label: str, x_unit: str, y_unit: str,
             marks: Sequence[tuple[float, str]]) -> str:
    """The alt text: where each curve begins and ends, and what is marked."""
    parts = [f"Plot, {title}{f' ({label})' if label else ''}: {y_label} over {x_label}."]
    for name, points in curves.items():
        (x0, y0), (x1, y1) = points[0], points[-1]
        middle = "" if len(points) < 3 else f", {quantity(points[len(points) // 2][1], y_unit)} at" \
                                            f" {quantity(points[len(points) // 2][0], x_unit)}"
        parts.append(f"{name}: {quantity(y0, y_unit)} at {quantity(x0, x_unit)}{middle}, {quantity(y1, y_unit)} at"
                     f" {quantity(x1, x_unit)}.")
    parts += [f"Marked at {quantity(x, x_unit)}: {text}." for x, text in marks]
    return " ".join(parts)
