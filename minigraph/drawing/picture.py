"""A picture: DOT text with a sentence that says what it shows, drawn when somebody looks at it."""

from __future__ import annotations

import base64
import html
import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ..errors import MinigraphError
from .dot import printable, render

SCALE = 1.2  # screen pixels for one of Graphviz's points
WIDTH = 900  # pixels; a wider picture is scaled down
SHARP = 1.25  # pixels of the PNG for each one shown; notebooks carry it, so not more
SVG = "{http://www.w3.org/2000/svg}"
TITLE = "{http://www.w3.org/1999/xlink}title"


@dataclass(frozen=True, repr=False)
class Picture:
    """``dot`` is the source, ``alt`` says in words what is drawn, ``title`` in very few words."""

    dot: str
    alt: str
    title: str = "graph"

    @cached_property
    def svg(self) -> str:
        """The drawing; raises MinigraphError where no program can draw."""
        return tidy(render(self.dot, "svg"), printable(self.title), printable(self.alt))

    @cached_property
    def png(self) -> bytes:
        width, _ = self.size
        points = float(re.search(r' viewBox="\S+ \S+ (\S+) ', self.svg)[1])
        return render(self.dot, "png", dpi=max(8, round(72 * SHARP * width / points)))

    @property
    def size(self) -> tuple[int, int]:
        """Width and height on the screen, in pixels."""
        width, height = re.search(r' width="(\d+)" height="(\d+)"', self.svg).groups()
        return int(width), int(height)

    @cached_property
    def html(self) -> str:
        """The drawing as one ``<img>`` with its alt text: nothing in it can clash with the page around it.

        A PNG, because its letters are inside: an SVG is set in the reader's own fonts, which may not fit the boxes.
        """
        return image(self.png, self.alt, self.size[0])

    def __repr__(self) -> str:
        return self.alt

    def _repr_mimebundle_(self, include=None, exclude=None):
        """HTML, which JupyterLab shows before a notebook is trusted or run, and the sentence."""
        try:
            shown = self.html
        except MinigraphError as error:
            shown = f"<p>{html.escape(printable(self.alt))}</p><p>Not drawn: {html.escape(str(error))}</p>"
        return {"text/html": shown, "text/plain": self.alt}

    def save(self, path) -> Path:
        """Write the picture; the suffix says how: .svg .png .dot .html. Returns the path."""
        path = Path(path)
        makers = {".svg": lambda: self.svg.encode(), ".png": lambda: self.png, ".dot": lambda: self.dot.encode(),
                  ".html": lambda: page(self.title, self.html).encode()}
        if path.suffix not in makers:
            raise MinigraphError(f"a picture is saved as {' '.join(makers)}, not as '{path.name}'")
        path.write_bytes(makers[path.suffix]())
        return path


def image(png: bytes, alt: str, width: int) -> str:
    """A PNG as an ``<img>`` that carries its data and says in words what it shows."""
    data = base64.b64encode(png).decode()
    return (f'<img src="data:image/png;base64,{data}" alt="{html.escape(printable(alt))}"'
            f' width="{width}" style="max-width:100%;height:auto">')


def page(title: str, body: str) -> str:
    """A whole HTML page."""
    return (f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{html.escape(printable(title))}'
            f'</title></head>\n<body style="font-family:sans-serif;margin:1em">\n{body}\n</body></html>\n')


def screen_size(width: float, height: float) -> tuple[int, int]:
    """Points -> pixels on the screen, at most ``WIDTH`` wide."""
    scale = min(SCALE, WIDTH / width)
    return max(1, round(width * scale)), max(1, round(height * scale))


def tidy(svg: bytes, title: str, alt: str) -> str:
    """Make a program's SVG fit into a page: named for readers that cannot see it, sized, and with no ids.

    Two inline pictures must not share an id, even if they are the same picture. Graphviz's ids are referred to by
    nothing, so there are none at all: no counter, no clock, and the same bytes from every process.
    """
    root = ET.fromstring(svg[svg.index(b"<svg"):])
    for element in root.iter():
        element.attrib.pop("id", None)
    for group in root.iter(SVG + "g"):
        explain(group)
    width, height = screen_size(*map(float, root.get("viewBox").split()[2:]))
    head = {"role": "img", "aria-label": alt, "width": str(width), "height": str(height),
            "viewBox": root.get("viewBox"), "style": "max-width:100%;height:auto"}
    root.attrib.clear()
    root.attrib.update(head)
    for place, (tag, text) in enumerate((("title", title), ("desc", alt))):
        element = ET.Element(SVG + tag)
        element.text, element.tail = text, "\n"
        root.insert(place, element)
    for element in root.iter():  # one default namespace, without touching ElementTree's global registry
        element.tag = element.tag.removeprefix(SVG)
    root.set("xmlns", SVG[1:-1])
    return ET.tostring(root, encoding="unicode") + "\n"


def explain(group: ET.Element) -> None:
    """A node's title becomes its tooltip, which Graphviz writes as the title of a link around the drawing."""
    title = group.find(SVG + "title")
    if title is not None:
        group.remove(title)
    for wrapper in group.findall(SVG + "g"):
        link = wrapper.find(SVG + "a")
        if link is None or TITLE not in link.attrib:
            continue
        place = list(group).index(wrapper)
        group.remove(wrapper)
        for offset, child in enumerate(link):
            group.insert(place + offset, child)
        if title is not None:
            title.text = link.get(TITLE)
            group.insert(0, title)
