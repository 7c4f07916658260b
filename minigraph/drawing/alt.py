"""Pictures in words: the sentences for those who cannot see them, and for the line that a notebook stores."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence

from .changes import Union
from .dot import GREY, SMALL, Html, font
from ..ir import Graph, Node
from .look import line, odd_value
from .plan import Plan, count_of

WHOLE = 20  # up to so many nodes are read out one by one


def listing(items: Iterable[str], most: int = 6) -> str:
    """``x, y and z``; ``x, y and 12 more``"""
    items = list(items)
    if len(items) > most + 1:
        items[most:] = [f"{len(items) - most:,} more"]
    return " and ".join([", ".join(items[:-1]), items[-1]] if len(items) > 1 else items)


def brief(node: Node) -> str:
    """The node's line without its type: ``c = add(a, b)``."""
    text = line(node)
    return text if node.op == "input" else text.rpartition(" : ")[0] or text


def outputs_in_words(graph: Graph) -> str:
    if not graph.outputs:
        return "No output."
    names = [public if public == value else f"{public} = {value}" for public, value in graph.outputs]
    return f"Output{'s' * (len(names) > 1)} {listing(names)}."


def describe(plan: Plan) -> str:
    """The alt text of a graph."""
    graph = plan.graph
    inputs = [node.name for node in graph.inputs]
    parts = [f"Graph {graph.name}: {count_of(len(graph), 'node')}.",
             f"Input{'s' * (len(inputs) > 1)} {listing(inputs)}." if inputs else "No input."]
    others = [node for node in graph.nodes if node.op != "input"]
    if len(graph) <= WHOLE and others:
        parts.append("; ".join(map(brief, others)) + ".")
    elif others:
        counts = Counter(node.op for node in others).most_common()
        parts.append(f"Mostly {listing([f'{op} {count:,}' for op, count in counts], 5)}.")
    if plan.late:
        parts.append(f"After another node: {listing(graph.nodes[i].name for i in sorted(plan.late))}.")
    if odd := [f"of {node.name} is {odd_value(node)}" for node in graph.nodes if odd_value(node)]:
        parts.append(f"The value {listing(odd)}.")
    lost = dict.fromkeys(name for node in graph.nodes for name in node.inputs if name not in plan.place)
    if lost:
        parts.append(f"Not defined: {listing(lost)}.")
    return " ".join([*parts, *plan.notes, outputs_in_words(graph)])


def describe_diff(union: Union, title: str, notes: Sequence[str]) -> str:
    """The alt text of a difference."""
    before, after = union.before, union.after
    if union.same:
        return f"{title}: no change, {count_of(len(after), 'node')}."
    parts = [f"{title}: {count_of(len(before), 'node')} before, {len(after):,} after."]
    for tag in ("removed", "added"):
        if some := union.named(tag):
            say = brief if len(some) <= 6 else (lambda node: node.name)
            parts.append(f"{tag.capitalize()}: {listing([say(change.node) for change in some])}.")
    if some := union.named("changed"):
        parts.append("Changed: " + listing([f"{brief(c.before)} became {brief(c.after)}" for c in some], 4) + ".")
    for change in union.rewired[:4]:
        reads = [f"{now} instead of {was}" for was, now in zip(change.before.inputs, change.after.inputs) if was != now]
        what = f"output {change.name}" if change.node.op == "output" else change.name
        parts.append(f"Rewired: {what} reads {listing(reads)}.")
    return " ".join([*parts, *notes])


def caption(*lines: str) -> Html:
    """Small grey lines above a picture, flush left."""
    wrapped = [part for text in lines for part in textwrap.wrap(text, 100)]
    return font(Html("".join(font(text) + '<BR ALIGN="LEFT"/>' for text in wrapped)), SMALL, GREY)
