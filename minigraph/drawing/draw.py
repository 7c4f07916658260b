"""Pictures of graphs: ``draw(g)``, ``draw_diff(before, after)`` and ``draw_history(history)``.

A picture can be looked at in a notebook, saved (``.save("a4.svg")``), and read: its ``alt`` says in words what is seen.
Graphs that break the rules are drawn too, with the fault in red. No picture has more than about 60 boxes: see plan.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby

from . import look
from .alt import caption, describe, describe_diff
from .changes import Change, Union, compare, focus, shown_outputs
from .dot import cluster, digraph, printable
from ..ir import Graph, Node
from .picture import Picture
from .plan import GAP, LIMIT, STRIP, Plan, count_of, make_plan
from .stepper import Panel, Stepper
from ..text import print_graph
from ..types import TOKEN

LINES = 60  # of a graph's text below its picture in the stepper


class Sketch:
    """The lines of a DOT file, and a box for every value that is read and not defined."""

    def __init__(self, ids: dict[str, str]):
        self.ids = ids  # name of a value -> its box
        self.lines: list[str] = []
        self.lost: dict[str, str] = {}

    def add(self, *lines: str) -> None:
        self.lines += lines

    def arrow(self, name: str, to: str, fate: str, port: int | None = None) -> None:
        self.add(look.arrow(self.source(name), to, fate, port))

    def source(self, name: str) -> str:
        if name not in self.ids and name not in self.lost:
            self.lost[name] = f"lost{len(self.lost)}"
            self.add(look.undefined(self.lost[name], name))
        return self.ids.get(name) or self.lost[name]


# ---- one graph ------------------------------------------------------------------------------------------------


def draw(graph: Graph, limit: int = LIMIT, values: Mapping[str, str] | None = None) -> Picture:
    """The graph, operands above what reads them. At most ``limit`` boxes: blocks that repeat are drawn once.

    ``values``: name of a value, or public name of an output -> a text to write beside it.
    """
    values = values or {}
    plan = make_plan(graph, limit)
    sketch = Sketch({name: box_id(plan.drawn(name)) for name in plan.place})
    boxes = {i: gap_box(plan) if i == GAP else plan_box(plan, i, values) for i in plan.shown}
    sketch.add(*framed(plan, boxes))
    for i in plan.shown:
        if i == GAP:
            sketch.add(*gap_arrows(plan))
        else:
            add_arrows(sketch, plan, i)
    for number, (public, more, value) in enumerate(plan.outputs):
        sketch.add(look.output(f"out{number}", public, f"{more}: {values[public]}" if public in values else more))
        sketch.arrow(value, f"out{number}", "kept" if value in plan.place else "undefined")
    top = caption(f"{graph.name}: {count_of(len(graph), 'node')}", *plan.notes)
    return Picture(digraph(sketch.lines, label=top), printable(describe(plan)), f"graph {graph.name}")


def box_id(index: int) -> str:
    return "gap" if index == GAP else f"n{index}"


def strip_of(plan: Plan, node: Node) -> list[str]:
    """What is written where each operand's arrow ends: its number where order matters, or a weight that has no box."""
    if len(node.inputs) > STRIP:
        return []
    ordered = look.wants_order(node)
    tucked = {name: look.inline(plan.graph.nodes[plan.place[name]]) for name in node.inputs
              if plan.place.get(name) in plan.tucked}
    if not ordered and not tucked:
        return []
    return [tucked.get(name) or (str(i) if ordered else "·") for i, name in enumerate(node.inputs)]


def plan_box(plan: Plan, index: int, values: Mapping[str, str]) -> str:
    node = plan.graph.nodes[index]
    tag = "defined twice" if plan.place[node.name] != index else "after another node" if index in plan.late else ""
    if index in plan.bundles:
        return look.bundle(box_id(index), [plan.graph.nodes[i] for i in plan.bundles[index]])
    return look.box(box_id(index), node, strip_of(plan, node), tag,
                    note=values.get(node.name, ""))


def gap_box(plan: Plan) -> str:
    counts = Counter(plan.graph.nodes[i].op for i in plan.left_out).most_common()
    rows = [f"{op} × {count:,}" for op, count in counts[:4]] + ["…"] * (len(counts) > 4)
    return look.ellipsis("gap", f"… {count_of(len(plan.left_out), 'more node')} …", rows)


def gap_arrows(plan: Plan) -> list[str]:
    """One arrow from each box that the nodes left out read."""
    names = (name for i in plan.left_out for name in plan.graph.nodes[i].inputs if plan.drawn(name) is not None)
    tails = dict.fromkeys(map(plan.drawn, names))
    return [look.arrow(box_id(tail), box_id(GAP)) for tail in tails if tail != GAP and tail not in plan.tucked]


def add_arrows(sketch: Sketch, plan: Plan, index: int) -> None:
    """The arrows into one node: one for each operand, and one from a box that stands for many of them."""
    node = plan.graph.nodes[index]
    strip = strip_of(plan, node)
    seen = set()
    for number, name in enumerate(node.inputs):
        tail = plan.drawn(name)
        again = tail in seen and (tail == GAP or tail in plan.bundles) and not strip
        seen.add(tail)
        if plan.place.get(name) not in plan.tucked and not again:
            sketch.arrow(name, box_id(index), fate_of(plan, index, name), number if strip else None)


def fate_of(plan: Plan, index: int, name: str) -> str:
    place = plan.place.get(name)
    if place is None:
        return "undefined"
    if place >= index:
        return "too early"
    type = plan.graph.nodes[place].type
    return "order" if type is not None and type.dtype == TOKEN else "kept"


def framed(plan: Plan, boxes: dict[int, str]) -> list[str]:
    """The boxes, with a frame around each folded block; a frame inside a frame comes later in ``folds``."""
    owner: dict[int, int] = {}
    content: dict[int | None, list[str]] = {}
    for number, fold in enumerate(plan.folds):
        owner |= dict.fromkeys(fold.members | fold.leaves, number)
    for index, text in boxes.items():
        content.setdefault(owner.get(index), []).append(text)
    for number in reversed(range(len(plan.folds))):
        members = plan.folds[number].members
        outer = (other for other in reversed(range(number)) if plan.folds[other].members >= members)
        if number in content:
            frame = cluster(number, content[number], label=plan.folds[number].title)
            content.setdefault(next(outer, None), []).extend(frame)
    return content.get(None, [])


# ---- two graphs -----------------------------------------------------------------------------------------------


def draw_diff(before: Graph, after: Graph, title: str | None = None, limit: int = LIMIT) -> Picture:
    """What became of ``before``, in one layout: removed is dashed, added bold, rewired dotted.

    A node that computes something else under the same name has a double frame, and says what it was. Of large graphs
    only what changed is drawn, and what is next to it.
    """
    union = compare(before, after)
    title = title or (before.name if before.name == after.name else f"{before.name} to {after.name}")
    chosen, notes = focus(union, limit)
    ids = {change.name: f"n{i}" for i, change in enumerate(union.changes)}
    sketch = Sketch(ids)
    for change in union.changes:
        if change.name in chosen:
            add_change(sketch, change, chosen)
    for number, change in enumerate(shown_outputs(union, limit)):
        sketch.add(look.output(f"out{number}", change.name, tag=change.tag))
        for name, _, fate in change.reads:
            if name in chosen or name not in ids:
                sketch.arrow(name, f"out{number}", fate)
    top = caption(f"{title}: {count_of(len(before), 'node')} before, {len(after):,} after", key(union), *notes)
    return Picture(digraph(sketch.lines, label=top), printable(describe_diff(union, title, notes)), title)


def add_change(sketch: Sketch, change: Change, chosen: set[str]) -> None:
    node = change.node
    drawn = [(name, i, fate) for name, i, fate in change.reads if name in chosen or name not in sketch.ids]
    strip = diff_strip(node, {i for _, i, _ in drawn})
    box = sketch.ids[change.name]
    sketch.add(look.box(box, node, strip, change.tag, change.before if change.tag == "changed" else None))
    for name, i, fate in drawn:
        ends_here = len(strip) > i and not (fate == "removed" and change.after)
        sketch.arrow(name, box, fate, i if ends_here else None)


def diff_strip(node: Node, drawn: set[int]) -> list[str]:
    """The operands' numbers where order matters; an ellipsis for an operand that has no box."""
    numbers = range(len(node.inputs))
    if len(node.inputs) > STRIP:
        return []
    if look.wants_order(node):
        return [str(i) if i in drawn else "…" for i in numbers]
    return [] if drawn.issuperset(numbers) else ["·" if i in drawn else "…" for i in numbers]


def key(union: Union) -> str:
    """The legend, of what there is."""
    counts = {"removed (dashed)": len(union.named("removed")), "added (bold)": len(union.named("added")),
              "changed (double frame)": len(union.named("changed")), "rewired (dotted)": len(union.rewired)}
    return ",  ".join(f"{count} {what}" for what, count in counts.items() if count) or "no change"


# ---- a history ------------------------------------------------------------------------------------------------


def draw_history(history: Sequence, limit: int = LIMIT) -> Stepper:
    """A row of panels to open, one for each pass, with its picture and its report; no kernel and no script is needed.

    ``history``: objects with ``name``, ``before`` and ``after`` (graphs) and ``report`` (rule, before, after, why),
    or what ``optimize`` returns.
    """
    history = getattr(history, "history", history)
    if not history:
        return Stepper((), "No pass has run.")
    panels = [graph_panel("start", history[0].before, limit)]
    sentences = []
    for idle, stages in groupby(history, key=lambda stage: compare(stage.before, stage.after).same):
        if idle:
            names = ", ".join(stage.name for stage in stages)
            panels.append(Panel(names, "no change"))
            sentences.append(f"{names}: no change")
            continue
        for stage in stages:
            sizes = f"{len(stage.before):,} → {len(stage.after):,} nodes"
            picture = draw_diff(stage.before, stage.after, stage.name, limit)
            panels.append(Panel(stage.name, sizes, picture, tuple(stage.report)))
            sentences.append(f"{stage.name}: {sizes}")
    panels.append(graph_panel("end", history[-1].after, limit))
    return Stepper(tuple(panels), f"Graph {history[0].before.name} through {count_of(len(history), 'pass', 'passes')}. "
                   + "; ".join(sentences) + ".")


def graph_panel(name: str, graph: Graph, limit: int) -> Panel:
    """The whole graph, and its text where that is short."""
    text = print_graph(graph) if len(graph) <= LINES else ""
    return Panel(name, count_of(len(graph), "node"), draw(graph, limit), text=text)


steps = draw_history
