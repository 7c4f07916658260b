"""Memory plans: ``draw_memory`` shows each buffer as a rectangle over launches and bytes, ``placing_steps`` how greedy
puts them there one after the other. Both draw the lower bound as a line.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..errors import MinigraphError
from ..planners import Buffer, Placement, lower_bound
from .dot import INK, VERMILLION
from .plan import count_of
from .plot import COLOURS, Plot
from .timeline import HATCHES, pale

LETTER = 0.012  # of the picture's width that one letter takes
LINE = 0.04  # of its height that a line of text takes
FRAMES = 9  # stills at most; of more buffers, some frames are left out
NEW = 2.6  # width in points of the outline of the buffer that was placed last
NAMED = 60  # buffers from which on no names and hatches are drawn


def draw_memory(buffers: Sequence[Buffer], placement: Placement | Sequence[int], title: str = "memory") -> Plot:
    """Rectangles over time × offset: as wide as a buffer lives, as high as it is large, where the placement puts it.

    ``placement`` may also be the offsets in bytes. Where two buffers overlap, the rectangle that they share is crossed
    out. Raises MinigraphError where there are not as many offsets as buffers, or nothing to draw.
    """
    offsets = offsets_of(buffers, placement)
    bound, top = lower_bound(buffers), footprint(buffers, offsets)

    def paint(figure):
        axes = figure.add_subplot()
        paint_memory(axes, buffers, offsets, range(len(buffers)), max(top, bound))
        axes.annotate(f"lower bound {bound:,} bytes", (1, bound), xycoords=("axes fraction", "data"), xytext=(4, 0),
                      textcoords="offset points", va="center", fontsize=9, annotation_clip=False)
        if top - bound > 0.05 * top:
            axes.annotate(f"in use {top:,} bytes", (1, top), xycoords=("axes fraction", "data"), xytext=(4, 0),
                          textcoords="offset points", va="center", fontsize=9, annotation_clip=False)
        axes.set_xlabel("launch")
        axes.set_ylabel("offset in bytes")
        axes.set_title(title)

    return Plot(paint, in_words(title, buffers, offsets), title, width=820, height=400)


def placing_steps(buffers: Sequence[Buffer], placement: Placement | Sequence[int], key: Callable[[Buffer], object],
                  title: str = "placing") -> Plot:
    """Stills of a greedy planner: in the order of ``key`` one buffer more in each, the new one with a thick outline.

    A greedy planner never moves a buffer, so the stills are parts of its ``placement``.
    """
    offsets = offsets_of(buffers, placement)
    order = sorted(range(len(buffers)), key=lambda i: key(buffers[i]))
    counts = list(range(1, len(order) + 1))
    if len(counts) > FRAMES:
        counts = [1 + round(k * (len(order) - 1) / (FRAMES - 1)) for k in range(FRAMES)]
    columns = min(3, len(counts))
    rows = -(-len(counts) // columns)
    top = max(footprint(buffers, offsets), lower_bound(buffers))

    def paint(figure):
        for place, count in enumerate(counts):
            axes = figure.add_subplot(rows, columns, place + 1)
            paint_memory(axes, buffers, offsets, order[:count], top, order[count - 1], columns)
            axes.set_title(f"{count}. {buffers[order[count - 1]].name}", fontsize=10)

    told = "; ".join(f"{buffers[i].name} ({buffers[i].size:,} bytes) to {offsets[i]:,}" for i in order[:12])
    more = f"; and {len(order) - 12} more" if len(order) > 12 else ""
    alt = (f"{count_of(len(counts), 'still')}, {title}: the buffers are placed in the order {told}{more}."
           f" In use at the end: {footprint(buffers, offsets):,} bytes; the lower bound is {lower_bound(buffers):,}.")
    return Plot(paint, alt, title, width=820, height=60 + 190 * rows)


def offsets_of(buffers: Sequence[Buffer], placement) -> Sequence[int]:
    offsets = placement.offsets if isinstance(placement, Placement) else placement
    if len(offsets) != len(buffers) or not buffers:
        raise MinigraphError(f"{count_of(len(buffers), 'buffer')} and {count_of(len(offsets), 'offset')}: a picture needs at"
                             " least one buffer, and an offset for each")
    return offsets


def footprint(buffers: Sequence[Buffer], offsets: Sequence[int]) -> int:
    return max(offset + b.size for b, offset in zip(buffers, offsets))


def paint_memory(axes, buffers, offsets, shown, top: int, new: int = -1, share: int = 1) -> None:
    """The rectangles ``shown`` and the line of the lower bound; ``share``: how many such pictures lie side by side."""
    from matplotlib.patches import Rectangle
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    first, last = min(b.start for b in buffers), max(b.end for b in buffers)
    few = len(buffers) <= NAMED
    for i in shown:
        b, k = buffers[i], i % len(COLOURS)
        box = Rectangle((b.start, offsets[i]), b.end - b.start, b.size, facecolor=pale(COLOURS[k]), edgecolor=INK,
                        hatch=HATCHES[k] if few else "", linewidth=NEW if i == new else 0.9 if few else 0.4,
                        zorder=3 if i == new else 2)
        axes.add_patch(box)
        room = (b.end - b.start) / (last - first) / LETTER / share
        if few and len(b.name) < room and b.size / top > LINE * (1 + 0.6 * (share > 1)):
            axes.text((b.start + b.end) / 2, offsets[i] + b.size / 2, b.name, ha="center", va="center", fontsize=9, zorder=4,
                      bbox=dict(facecolor="white", edgecolor="none", pad=0.8, alpha=0.85))
    for left, right, low, high in clashes(buffers, offsets, shown):
        axes.add_patch(Rectangle((left, low), right - left, high - low, facecolor="none", edgecolor=VERMILLION, hatch="xxx",
                                 linewidth=2, zorder=5))
    axes.axhline(lower_bound(buffers), color=INK, linewidth=1.6, linestyle=(0, (5, 2)), zorder=6)
    axes.set_xlim(first, last)
    axes.set_ylim(0, top * 1.04)
    for ruler, ticks in (axes.xaxis, (16 if last < 1000 else 6) // share), (axes.yaxis, 6):
        ruler.set_major_locator(MaxNLocator(ticks, integer=True))
        ruler.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))


def clashes(buffers, offsets, shown) -> list[tuple[int, int, int, int]]:
    """What two of the rectangles share."""
    found, shown = [], [i for i in shown if buffers[i].size]
    for place, i in enumerate(shown):
        for j in shown[:place]:
            left, right = max(buffers[i].start, buffers[j].start), min(buffers[i].end, buffers[j].end)
            low = max(offsets[i], offsets[j])
            high = min(offsets[i] + buffers[i].size, offsets[j] + buffers[j].size)
            if left < right and low < high:
                found.append((left, right, low, high))
    return found


def in_words(title: str, buffers, offsets) -> str:
    """The alt text."""
    parts = [f"Memory over time, {title}: {count_of(len(buffers), 'buffer')}, in use {footprint(buffers, offsets):,} bytes,"
             f" lower bound {lower_bound(buffers):,}."]
    if len(buffers) <= 16:
        parts.append("; ".join(f"{b.name} in launches {b.start} to {b.end - 1} at bytes {offset:,} to {offset + b.size:,}"
                               for b, offset in zip(buffers, offsets)) + ".")
    if overlapping := len(clashes(buffers, offsets, range(len(buffers)))):
        parts.append(f"{count_of(overlapping, 'pair')} of them overlap.")
    return " ".join(parts)
