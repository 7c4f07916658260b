"""Liveness as pictures: how the set of needed values grows backwards from the outputs and the effects."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..drawing import draw
from ..drawing.picture import Picture
from ..ir import Graph, Node
from ..ops import OPS
from ..text import node_line
from .charts import BLUE, GREY, ORANGE, Chart, finish


@dataclass(frozen=True)
class Moment:
    """One moment of the walk: the node that was looked at (none at the start), what that made live, and all that is."""

    node: Node | None
    new: frozenset[str]
    live: frozenset[str]


def walk_back(graph: Graph) -> list[Moment]:
    """The walk from the last node to the first, one moment a node; before it, one for the outputs."""
    live = {value for _, value in graph.outputs}
    moments = [Moment(None, frozenset(live), frozenset(live))]
    for node in reversed(graph.nodes):
        before = frozenset(live)
        if node.op != "input" and (node.name in live or not OPS[node.op].removable):
            live |= {node.name, *node.inputs}
        moments.append(Moment(node, frozenset(live - before), frozenset(live)))
    return moments


def verdict(node: Node, live: frozenset[str]) -> str:
    if node.name in live:
        return "live"
    return "not needed, but an input" if node.op == "input" else "dead"


def draw_liveness(graph: Graph) -> Picture:
    """The graph with a note at each value: dead, or who it was that made it live."""
    moments = walk_back(graph)
    notes = {node.name: verdict(node, moments[-1].live).replace("dead", "DEAD") for node in graph.nodes}
    for moment in moments[1:]:
        for name in moment.new:
            notes[name] = f"live ({moment.node.name} reads it)" if name != moment.node.name else "live (an effect)"
    notes |= {value: "live (the caller gets it)" for _, value in graph.outputs}
    picture = draw(graph, values=notes)
    return replace(picture, alt=f"{picture.alt} Notes: " + "; ".join(f"{name} {note}" for name, note in notes.items()) + ".")


def chart_liveness(graph: Graph) -> Chart:
    """A row for each node in the order of the list, a column for each moment; the live set grows to the right."""
    import matplotlib

    matplotlib.use("Agg", force=False)
    import matplotlib.pyplot as plt

    moments = walk_back(graph)
    rows = {node.name: place for place, node in enumerate(graph.nodes)}
    figure, axes = plt.subplots(figsize=(3.4 + 0.62 * len(moments), 0.9 + 0.36 * len(rows)))
    for column, moment in enumerate(moments):
        for name in moment.live - moment.new:
            axes.plot(column, rows[name], "o", color=BLUE, markersize=5)
        for name in moment.new:
            axes.plot(column, rows[name], "o", color=BLUE, markersize=13)
        if moment.node is not None:
            place = rows[moment.node.name]
            axes.plot(column, place, "s", color=GREY, markersize=20, fillstyle="none")
            if moment.node.op != "input" and moment.node.name not in moment.live:
                axes.plot(column, place, "x", color=ORANGE, markersize=9, markeredgewidth=3)
    for node in graph.nodes:
        axes.text(len(moments) - 0.4, rows[node.name], verdict(node, moments[-1].live), va="center")
    axes.set_yticks(range(len(rows)), [short_line(node) for node in graph.nodes], family="monospace")
    axes.set_xticks(range(len(moments)), ["start", *(moment.node.name for moment in moments[1:])], family="monospace")
    axes.set_xlabel("the node that is looked at, from the last to the first")
    axes.xaxis.set_label_position("top")
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.set_xlim(-0.6, len(moments) - 0.45)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.spines[:].set_visible(False)
    axes.text(-0.5, len(rows) + 0.1, "large dot: becomes live    small dot: is live    frame: is looked at    cross: dead",
              va="center", fontsize=9)
    return finish(figure, in_words(graph, moments))


def short_line(node: Node) -> str:
    """``b = mul(a, two)``, without the type."""
    text = node_line(node)
    return f"{node.name}: input" if node.op == "input" else (text.rpartition(" : ")[0] or text)


def in_words(graph: Graph, moments: list[Moment]) -> str:
    parts = [f"How liveness grows backwards in graph {graph.name}. At the start {listed(moments[0].new)} live"]
    for moment in moments[1:]:
        name = moment.node.name
        if moment.new:
            parts.append(f"at {name}: {listed(moment.new)} become live" if len(moment.new) > 1 else
                         f"at {name}: {listed(moment.new)} becomes live")
        elif name not in moment.live:
            parts.append(f"at {name}: {verdict(moment.node, moment.live)}")
    dead = [node.name for node in graph.nodes if verdict(node, moments[-1].live) == "dead"]
    return "; ".join(parts) + f". Dead in the end: {', '.join(dead) or 'nothing'}."


def listed(names) -> str:
    return ", ".join(sorted(names)) or "nothing"
