"""Charts with a sentence that says what they show."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..drawing.picture import SHARP, image

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#777777"  # Okabe and Ito's palette
HATCHES = ("", "//", "..", "xx")  # told apart without colour, too


@dataclass(frozen=True, repr=False)
class Chart:
    """A PNG and its alt text; the text is all that is compared when a notebook is checked."""

    png: bytes
    alt: str
    width: int  # pixels on the screen

    def __repr__(self) -> str:
        return self.alt

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/html": self.html, "text/plain": self.alt}

    @property
    def html(self) -> str:
        return image(self.png, self.alt, self.width)


def finish(figure, alt: str) -> Chart:
    """Close a matplotlib figure and keep it as a Chart."""
    import matplotlib.pyplot as plt

    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=round(96 * SHARP), bbox_inches="tight", metadata={"Software": None})
    width = round(figure.get_size_inches()[0] * 96)
    plt.close(figure)
    return Chart(stream.getvalue(), alt, width)


def bars(title: str, values: Mapping[str, float], unit: str) -> Chart:
    """Horizontal bars, each with its number written at the end."""
    import matplotlib

    matplotlib.use("Agg", force=False)
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 0.5 + 0.45 * len(values)))
    colours = (BLUE, ORANGE, GREEN, GREY)
    for place, (label, value) in enumerate(values.items()):
        axes.barh(label, value, color=colours[place % 4], hatch=HATCHES[place % 4], edgecolor="white")
        axes.annotate(f" {value:,.4g} {unit}" if isinstance(value, float) else f" {value:,} {unit}", (value, place), va="center")
    axes.invert_yaxis()
    axes.set_title(title, loc="left")
    axes.set_xlim(0, max(values.values(), default=1) * 1.25 or 1)
    axes.spines[["top", "right"]].set_visible(False)
    numbers = "; ".join(f"{label} {value:,}" for label, value in values.items())
    return finish(figure, f"Bar chart, {title}, in {unit}: {numbers}.")


def grid(title: str, rows: Sequence[str], columns: Sequence[str], cells: Mapping[tuple[str, str], str]) -> Chart:
    """A table as a picture: ``cells`` maps (row, column) to a text; a cell without one shows ``=``."""
    import matplotlib

    matplotlib.use("Agg", force=False)
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(1.25 * len(columns) + 1, 0.45 * len(rows) + 0.5))
    for y, row in enumerate(rows):
        for x, column in enumerate(columns):
            text = cells.get((row, column), "")
            axes.add_patch(plt.Rectangle((x, y), 1, 1, facecolor="#fbe3d6" if text else "white", edgecolor="#bbbbbb",
                                         linewidth=0.8))
            axes.annotate(text or "=", (x + 0.5, y + 0.5), ha="center", va="center", fontsize=9,
                          color="black" if text else GREY, weight="bold" if text else "normal")
    axes.set_xlim(0, len(columns))
    axes.set_ylim(len(rows), 0)
    axes.set_xticks([x + 0.5 for x in range(len(columns))], columns)
    axes.set_yticks([y + 0.5 for y in range(len(rows))], rows, family="monospace")
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.set_title(title, loc="left")
    axes.spines[:].set_visible(False)
    lines = []
    for row in rows:
        marked = [f"at {column}: {cells[row, column]}" for column in columns if (row, column) in cells]
        lines.append(f"{row}: {'; '.join(marked) or 'the same everywhere'}")
    return finish(figure, f"Grid, {title}. " + ". ".join(lines) + ".")
