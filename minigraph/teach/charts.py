"""Charts with a sentence that says what they show."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Mapping
from dataclasses import dataclass

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#777777"  # Okabe and Ito's palette
HATCHES = ("", "//", "..", "xx")  # told apart without colour, too


@dataclass(frozen=True, repr=False)
class Chart:
    """A PNG and its alt text; the text is all that is compared when a notebook is checked."""

    png: bytes
    alt: str

    def __repr__(self) -> str:
        return self.alt

    def _repr_mimebundle_(self, include=None, exclude=None):
        data = {"image/png": base64.b64encode(self.png).decode(), "text/plain": self.alt}
        return data, {"image/png": {"alt": self.alt}}

    @property
    def html(self) -> str:
        data = base64.b64encode(self.png).decode()
        return f'<img src="data:image/png;base64,{data}" alt="{html.escape(self.alt)}" style="max-width:100%">'


def finish(figure, alt: str) -> Chart:
    """Close a matplotlib figure and keep it as a Chart."""
    import matplotlib.pyplot as plt

    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=110, bbox_inches="tight", metadata={"Software": None})
    plt.close(figure)
    return Chart(stream.getvalue(), alt)


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
