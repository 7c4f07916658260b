"""The running scoreboard: one attention layer, and what the passes learned so far make of it."""

from __future__ import annotations

from collections.abc import Callable

from ..command.tables import table
from ..ir import Graph
from ..passes import PASSES
from ..pipeline import run_pass
from ..run_numpy import peak_bytes, stats
from .examples import frozen_layer

ORDER = ("fold", "simplify", "dce", "cse")  # as the chapters teach them


def scoreboard(*names: str, passes: dict[str, Callable] | None = None, graph: Graph | None = None) -> None:
    """Print a line for the layer as traced, and one after each of the passes ``names``, each on the one before.

    ``scoreboard("traced")`` is the first line alone. ``passes`` may be what ``use_mine()`` gives. Times are not here:
    they differ from run to run.
    """
    graph = graph or frozen_layer()
    rows = [row("traced", graph)]
    for name in names or ORDER:
        if name == "traced":
            continue
        graph = run_pass(name, (passes or PASSES)[name], graph).after
        rows.append(row(f"+ {name}", graph))
    print(table(rows), end="")


def row(label: str, graph: Graph) -> dict[str, object]:
    counts = stats(graph)
    stored = sum(len(node.value.data) for node in graph.nodes if node.op == "const")
    return {"pass": label, "nodes": counts.nodes, "launches": counts.launches,
            "bytes moved": counts.bytes_read + counts.bytes_written, "bytes stored": stored, "peak bytes": peak_bytes(graph)}

