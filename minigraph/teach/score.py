"""The running scoreboard: one attention layer, and what the passes learned so far make of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ..command.tables import table
from ..fusion import fuse
from ..ir import Graph, Node, defs
from ..launch_model import Device, overhead, quantity, work
from ..passes import PASSES
from ..pipeline import run_pass
from ..plan import make_plan
from ..planners import best_of_orders
from ..run_numpy import Stats, peak_bytes, stats
from .examples import frozen_layer

ORDER = ("fold", "simplify", "dce", "cse")  # as the chapters teach them


def scoreboard(*names: str, passes: dict[str, Callable] | None = None, graph: Graph | None = None,
               device: Device | str | None = None) -> None:
    """Print a line for the layer as traced, and one after each of the passes ``names``, each on the one before.

    ``scoreboard("traced")`` is the first line alone, and "fuse" is the plan of the fused graph; in the other lines each
    node is a launch. "plan" is what that plan reserves: in the lines before, memory was packed without a gap. ``passes`` may be what ``use_mine()`` gives. Measured times are not here: they differ from run to
    run. For a ``device`` there are two columns of the launch model: what the launches cost, and how long it works.
    """
    graph = graph or frozen_layer()
    rows = [row("traced", graph, device)]
    for name in names or ORDER:
        if name == "traced":
            continue
        if name == "fuse":  # no pass: the graph stays, and its launches are others
            rows.append(fused_row(graph, device))
            continue
        if name == "plan":
            rows.append(planned_row(graph, device))
            continue
        graph = run_pass(name, (passes or PASSES)[name], graph).after
        rows.append(row(f"+ {name}", graph, device))
    print(table(rows), end="")


def row(label: str, graph: Graph, device: Device | str | None = None) -> dict[str, object]:
    counts = stats(graph)
    stored = sum(len(node.value.data) for node in graph.nodes if node.op == "const")
    found = {"pass": label, "nodes": counts.nodes, "launches": counts.launches,
             "bytes moved": counts.bytes_read + counts.bytes_written, "bytes stored": stored, "peak bytes": peak_bytes(graph)}
    nodes = defs(graph)
    each = (alone(node, nodes) for node in graph.nodes)
    return found if device is None else found | predicted([one for one in each if one.launches], device)


def alone(node: Node, nodes: dict[str, Node]) -> Stats:
    """What ``stats`` counts for one node, so that the work is that of the bytes in the line: its operands become inputs."""
    operands = tuple(replace(nodes[name], op="input", inputs=(), value=None) for name in node.inputs)
    return stats(Graph(node.name, (*operands, node), ()))


def fused_row(graph: Graph, device: Device | str | None = None) -> dict[str, object]:
    """The line of the fused graph: its plan's launches, and the most bytes that live during one of them."""
    plan = make_plan(graph)
    regions = plan.regions.values()
    given = sum(region.nbytes for region in regions if region.where in ("input", "const"))
    made = [region for region in regions if region.where in ("arena", "output")]
    live = [sum(region.nbytes for region in made if region.start <= place < region.end)
            for place in range(len(plan.launches))]
    found = row("+ fuse", graph) | {"launches": len(plan.launches), "bytes moved": plan.bytes_moved,
                                    "peak bytes": given + max(live, default=0)}
    return found if device is None else found | predicted(plan.launches, device)


def planned_row(graph: Graph, device: Device | str | None = None) -> dict[str, object]:
    """The line of the planned graph: all that is reserved, the outputs with memory of their own."""
    plan = make_plan(fuse(graph), planner=best_of_orders)
    own = sum(region.nbytes for region in plan.regions.values() if region.where != "arena")
    return fused_row(graph, device) | {"pass": "+ plan", "peak bytes": own + plan.arena_bytes}


def predicted(launches: Sequence, device: Device | str) -> dict[str, str]:
    return {"launching": quantity(len(launches) * overhead(device), "s"),
            "working": quantity(sum(work(one, device) for one in launches), "s")}

