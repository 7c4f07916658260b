"""Pictures of graphs: ``draw(g)``, ``draw_diff(before, after)`` and ``draw_history(history)``.

A picture can be looked at in a notebook, saved (``.save("a4.svg")``), and read: its ``alt`` says in words what it shows.
Graphs that break the rules are drawn too, with the fault in red. More than about 60 boxes are never drawn: see plan.py.
"""

from __future__ import annotations

from collections.abc import Iterable

from . import look
from .alt import caption, describe, describe_diff
from .blocks import LEAVES
from .changes import Union, compare
from .dot import cluster, digraph
from .ir import Graph, Node
from .picture import Picture
from .plan import GAP, LIMIT, STRIP, Plan, count_of, make_plan
from .stepper import Panel, Stepper
from .text import print_graph
from .types import TOKEN

LINES = 80  # of a graph's text in the stepper


def draw(graph: Graph, limit: int = LIMIT) -> Picture:
    """The graph, operands above what reads them. At most ``limit`` boxes: blocks that repeat are drawn once."""
    plan = make_plan(graph, limit)
    sketch = Sketch({node.name: node_id(plan.drawn(node.name)) for node in graph.nodes}, types_of(graph))
    boxes = {i: gap_box(plan) if i == GAP else plan_box(plan, i) for i in plan.shown}
    sketch.lines += framed(plan, boxes)
    for i in plan.shown:
        for node in (graph.nodes[j] for j in plan.left_out) if i == GAP else (graph.nodes[i],):
            for number, name in enumerate(node.inputs):
                if plan.place.get(name) not in plan.tucked:
                    sketch.read(name, node_id(i), when=plan.place.get(node.name, 0), port=number if strip else None)
    return sketch, boxes
