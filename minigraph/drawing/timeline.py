"""Timelines: who issues the launches and who executes them, so that the gaps are seen; and the same for Perfetto.

An event is (start, end, name, row) with times in seconds, as ``launch_model.schedule`` makes them. Every picture says
whether its times were measured, recorded or predicted.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..errors import MinigraphError
from ..launch_model import DEVICE, Event, quantity
from .dot import DIM, GREY, INK
from .plan import LIMIT, count_of
from .plot import COLOURS, KINDS, Plot

HATCHES = ("", "////", "....", "xx", "\\\\\\\\", "++")
PALE = 0.45  # how much of its colour a box keeps, so that black letters are read on it
BLOCKS = (2, 1, 0)  # how many of a repeated block are drawn before the cut; one more is drawn after it
PERIOD = 400  # the longest block that is looked for
ROOM = 0.011  # of the width that one letter takes
WORDS = ("measured", "recorded", "predicted")  # how a label begins


@dataclass(frozen=True)
class View:
    """What is drawn of a timeline: the ``events``, and the time from ``cut`` on that is left out, told in ``note``."""

    events: tuple[Event, ...]
    cut: float = math.inf
    length: float = 0.0
    note: str = ""

    def place(self, time: float) -> float:
        """Where a time is drawn."""
        return time if time <= self.cut else max(self.cut, time - self.length)


def draw_timeline(events: Iterable[Event], label: str, title: str = "launches", limit: int = LIMIT) -> Plot:
    """The events in one row for each of host and device, and how busy the device is.

    ``label`` begins with measured, recorded or predicted and is written into the picture. Where there are more launches
    than ``limit``, blocks that repeat are drawn once or twice; where none repeat, the first ``limit``.
    """
    events = in_order(events)
    source(label)
    view = fold(events, limit)
    rows = list(dict.fromkeys(event.row for event in events))
    kinds = kinds_of(events)

    def paint(figure):
        axes = figure.add_subplot()
        end = max(view.place(event.end) for event in view.events)
        for event in view.events:
            left, width = view.place(event.start), view.place(event.end) - view.place(event.start)
            k = kinds.index(kind(event)) if kind(event) in kinds else None
            axes.broken_barh([(left, width)], (rows.index(event.row) - 0.32, 0.64), edgecolor=INK, linewidth=0.7,
                             facecolor=pale(GREY if k is None else COLOURS[k]), hatch="" if k is None else HATCHES[k])
            if width > end * ROOM * (len(kind(event)) + 1):
                axes.text(left + width / 2, rows.index(event.row), kind(event), ha="center", va="center", fontsize=9,
                          clip_on=True, bbox=dict(facecolor="white", edgecolor="none", pad=1.2, alpha=0.85))
        finish(axes, view, rows, kinds, end)
        axes.set_title(f"{title}: {share(events)}\n{label}")

    height = 110 + 62 * len(rows) + 22 * bool(view.note)
    return Plot(paint, in_words(title, label, events, view), title, width=900, height=height)


def in_order(events: Iterable[Event]) -> list[Event]:
    events = sorted((Event(*event) for event in events), key=lambda event: event[:2])
    if not events:
        raise MinigraphError("a timeline of no events shows nothing: run or predict at least one launch")
    for event in events:
        if not 0 <= event.start <= event.end < math.inf:
            raise MinigraphError(f"the event '{event.name}' goes from {event.start} to {event.end} s: an event starts"
                                 " at 0 or later and does not end before that")
    return events


def source(label: str) -> str:
    """The label, if it says where the times are from."""
    if not str(label).startswith(WORDS):
        raise MinigraphError(f"'{label}' does not say where the times are from: a label begins with"
                             f" {', '.join(WORDS[:-1])} or {WORDS[-1]}, as Measurement.source does")
    return label


def kind(event: Event) -> str:
    """The name without the numbers that tell one layer from another: ``layer3.mm_7`` and ``mm.7`` are an ``mm``."""
    return re.split(r"[./]", re.sub(r"[._#]?\d+$", "", event.name))[-1] or event.name


def kinds_of(events: Sequence[Event]) -> list[str]:
    """The most frequent kinds, in the order in which they come; the others share one look."""
    counts: dict[str, int] = {}
    for event in events:
        counts[kind(event)] = counts.get(kind(event), 0) + 1
    often = sorted(counts, key=lambda name: -counts[name])[:KINDS]
    return [name for name in counts if name in often]


def pale(colour: str) -> tuple[float, ...]:
    return tuple(1 - PALE * (1 - int(colour[i:i + 2], 16) / 255) for i in (1, 3, 5))


# ---- what is left out -------------------------------------------------------------------------------------------


def fold(events: list[Event], limit: int) -> View:
    """Everything, or what is left of it when the time in which blocks only repeat is cut out."""
    launches = [event for event in events if event.row == DEVICE] or events
    if len(launches) <= limit:
        return View(tuple(merged(events, limit)))
    start, period, count = repetition([kind(event) for event in launches])
    for blocks in BLOCKS:
        hidden = count - blocks - 1
        if hidden > 0 and len(launches) - hidden * period <= limit:
            first, last = launches[start + blocks * period], launches[start + (count - 1) * period]
            note = (f"a block of {count_of(period, 'launch', 'launches')} × {count:,}: {count_of(hidden, 'block')} left"
                    f" out, {quantity(last.start - first.start, 's')}")
            break
    else:
        first, last = launches[limit], None
        note = f"the first {limit} of {len(launches):,} launches"
    begin, stop = first.start, last.start if last else math.inf
    kept = [event for event in events if event.end <= begin or event.start >= stop]
    kept += [event._replace(end=min(event.end, begin)) for event in events if event.start < begin < event.end]
    kept += [event._replace(start=stop) for event in events if begin <= event.start < stop < event.end]
    return View(tuple(merged(sorted(kept), limit)), begin, stop - begin, note)


def merged(events: Sequence[Event], limit: int) -> list[Event]:
    """A row with more boxes than ``limit``, as that of a host that runs far ahead, becomes one box."""
    found = []
    for row in dict.fromkeys(event.row for event in events):
        own = [event for event in events if event.row == row]
        if len(own) > limit + 2:  # one at each side of a cut is seen in part
            own = [Event(own[0].start, own[-1].end, f"{len(own):,} launches", row)]
        found += own
    return found


def repetition(names: Sequence[str]) -> tuple[int, int, int]:
    """(start, period, count) of the stretch that repeats the most; (0, len, 1) where none does."""
    best = (0, len(names), 1)
    for period in range(1, min(PERIOD, len(names) // 2) + 1):
        start = 0
        for i in range(period, len(names) + 1):
            if i == len(names) or names[i] != names[i - period]:
                count = (i - start) // period
                if count >= 2 and (count - 1) * period > (best[2] - 1) * best[1]:
                    best = (start, period, count)
                start = i - period + 1
    return best


# ---- words and lines --------------------------------------------------------------------------------------------


def finish(axes, view: View, rows: list[str], kinds: list[str], end: float) -> None:
    from matplotlib.patches import Patch
    from matplotlib.ticker import MaxNLocator

    ticks = [time for time in MaxNLocator(7).tick_values(0, end) if 0 <= time <= end]
    later = [time + view.length * (time > view.cut) for time in ticks] if math.isfinite(view.length) else ticks
    axes.set_xticks(ticks, [quantity(time, "s") for time in later])
    axes.set_yticks(range(len(rows)), rows)
    axes.set_xlim(0, end * 1.01)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    if view.note:
        axes.axvline(view.cut, color=INK, linewidth=1.2, linestyle=(0, (1, 1.5)))
        axes.annotate(f"… {view.note} …", (min(max(view.cut / end, 0.25), 0.75), -0.3), xycoords="axes fraction",
                      ha="center", va="top", annotation_clip=False, color=DIM, fontsize=9)
    legend = [Patch(facecolor=pale(COLOURS[k]), edgecolor=INK, hatch=HATCHES[k], linewidth=0.7, label=name)
              for k, name in enumerate(kinds)]
    if any(kind(event) not in kinds for event in view.events):
        legend.append(Patch(facecolor=pale(GREY), edgecolor=INK, linewidth=0.7, label="others"))
    axes.legend(handles=legend, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=9)


def share(events: Sequence[Event]) -> str:
    """``1.46 ms, and the device works for 4 % of it``"""
    whole = max(event.end for event in events) - events[0].start
    working = [event.end - event.start for event in events if event.row == DEVICE]
    more = f", and the device works for {100 * sum(working) / whole:.0f} % of it" if working and whole else ""
    return quantity(whole, "s") + more


def in_words(title: str, label: str, events: Sequence[Event], view: View) -> str:
    """The alt text."""
    parts = [f"Timeline, {title} ({label}): {share(events)}."]
    for row in dict.fromkeys(event.row for event in events):
        own = [event for event in events if event.row == row]
        spent = quantity(sum(event.end - event.start for event in own), "s")
        parts.append(f"{row.capitalize()}: {count_of(len(own), 'box', 'boxes')}, {spent}.")
    return " ".join([*parts, *([f"Drawn: {view.note}."] if view.note else [])])


def chrome_trace(events: Iterable[Event], label: str) -> str:
    """The events as JSON in the Trace Event Format, which ui.perfetto.dev opens; times in microseconds.

    ``label`` becomes the name of the process, so that nobody takes a prediction for a measurement.
    """
    events, pid = in_order(events), 1
    rows = {row: tid for tid, row in enumerate(dict.fromkeys(event.row for event in events), 1)}
    head = [("process_name", 0, source(label)), *(("thread_name", tid, row) for row, tid in rows.items())]
    trace = [{"name": name, "ph": "M", "pid": pid, "tid": tid, "args": {"name": text}} for name, tid, text in head]
    trace += [{"name": event.name, "cat": event.row, "ph": "X", "pid": pid, "tid": rows[event.row],
               "ts": round(event.start * 1e6, 4), "dur": round((event.end - event.start) * 1e6, 4)} for event in events]
    return json.dumps({"traceEvents": trace, "displayTimeUnit": "ns", "otherData": {"times": label}}, indent=1) + "\n"
