"""A plot: what matplotlib draws, with a sentence that says what it shows, as SVG and PNG that are the same every time.

Like ``Picture`` for graphs: ``svg``, ``png``, ``html``, ``save``, and shown by JupyterLab before a notebook is run.
"""

from __future__ import annotations

import hashlib
import io
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ..errors import MinigraphError
from .dot import BLUE, GREEN, INK, ORANGE, PURPLE, VERMILLION, printable
from .picture import SHARP, SVG, image, page

PIXELS = 96  # of the screen for each of matplotlib's inches
LINK = "{http://www.w3.org/1999/xlink}href"
# What the learner set for plots of their own does not reach ours: same words, same bytes.
SETTINGS = {"svg.fonttype": "none", "svg.hashsalt": "minigraph", "font.size": 10, "axes.spines.top": False,
            "axes.spines.right": False, "axes.titlelocation": "left", "axes.titlesize": 11, "hatch.linewidth": 0.8}
KINDS = 6  # of curves or boxes that a reader can tell apart
COLOURS = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, INK)  # Okabe and Ito's; never the only difference


@dataclass(frozen=True, repr=False)
class Plot:
    """``paint`` draws into a matplotlib figure of ``width`` × ``height`` pixels; ``alt`` says in words what is seen."""

    paint: Callable
    alt: str
    title: str = "plot"
    width: int = 760
    height: int = 420

    @cached_property
    def svg(self) -> str:
        """The drawing as text, with letters as letters and ids that no other plot has."""
        return tidy(self.render("svg", metadata={"Date": None, "Creator": None}), self)

    @cached_property
    def png(self) -> bytes:
        return self.render("png", dpi=round(PIXELS * SHARP), metadata={"Software": None})

    @property
    def size(self) -> tuple[int, int]:
        """Width and height on the screen, in pixels."""
        return self.width, self.height

    @cached_property
    def html(self) -> str:
        """One ``<img>`` with its alt text; a PNG, because its letters are inside."""
        return image(self.png, self.alt, self.width)

    def render(self, format: str, **options) -> bytes:
        """The file that matplotlib writes. Without pyplot: no window, no state that stays behind."""
        from matplotlib import style
        from matplotlib.figure import Figure

        stream = io.BytesIO()
        with style.context(["default", SETTINGS]):
            figure = Figure(figsize=(self.width / PIXELS, self.height / PIXELS), layout="constrained")
            self.paint(figure)
            figure.savefig(stream, format=format, **options)
        return stream.getvalue()

    def __repr__(self) -> str:
        return self.alt

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/html": self.html, "text/plain": self.alt}

    def save(self, path) -> Path:
        """Write the plot; the suffix says how: .svg .png .html. Returns the path."""
        path = Path(path)
        makers = {".svg": lambda: self.svg.encode(), ".png": lambda: self.png,
                  ".html": lambda: page(self.title, self.html).encode()}
        if path.suffix not in makers:
            raise MinigraphError(f"a plot is saved as {' '.join(makers)}, not as '{path.name}'")
        path.write_bytes(makers[path.suffix]())
        return path


def tidy(svg: bytes, plot: Plot) -> str:
    """matplotlib's SVG with a name for readers that cannot see it, and only the ids that something refers to.

    Those begin with a hash of the drawing: they are the same every time, and two different plots on a page share none.
    """
    root = ET.fromstring(svg[svg.index(b"<svg"):])
    used = set(re.findall(rb'(?:url\(#|href="#)([^")]+)', svg))
    prefix = f"p{hashlib.sha256(svg).hexdigest()[:12]}-"
    for parent in root.iter():
        for child in [child for child in parent if child.tag in (SVG + "metadata", SVG + "style")]:
            parent.remove(child)  # a style sheet would reach everything on the page
    for element in root.iter():
        if (own := element.attrib.pop("id", "")).encode() in used:
            element.set("id", prefix + own)
        if LINK in element.attrib:
            element.set("xlink:href", element.attrib.pop(LINK).replace("#", f"#{prefix}"))
        for name, value in element.attrib.items():
            if "url(#" in value:
                element.set(name, value.replace("url(#", f"url(#{prefix}"))
        element.tag = element.tag.removeprefix(SVG)  # one default namespace, as in picture.py
    head = {"xmlns": SVG[1:-1], "xmlns:xlink": LINK[1:].partition("}")[0],
            "role": "img", "aria-label": printable(plot.alt),
            "width": str(plot.width), "height": str(plot.height), "viewBox": root.get("viewBox"),
            "style": "max-width:100%;height:auto;stroke-linejoin:round;stroke-linecap:butt"}
    root.attrib.clear()
    root.attrib.update(head)
    for place, (tag, text) in enumerate((("title", plot.title), ("desc", plot.alt))):
        element = ET.Element(tag)
        element.text, element.tail = printable(text), "\n"
        root.insert(place, element)
    return ET.tostring(root, encoding="unicode") + "\n"
