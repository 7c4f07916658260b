"""Rows as a table for people and as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass

import numpy as np

from ..ir import Graph, Node
from ..ops import Attrs
from ..pipeline import Optimized
from ..run_numpy import stats
from ..text import print_graph
from ..types import Const, format_value


def table(rows: Sequence[Mapping[str, object]]) -> str:
    """One line a row under a line of column names: numbers to the right with thousands separated, text to the left."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    cells = [[cell(row.get(name, "")) for name in names] for row in rows]
    numeric = [any(is_number(row.get(name)) for row in rows) for name in names]
    widths = [max(map(len, column)) for column in zip(names, *cells)]
    lines = ("  ".join(text.rjust(width) if right else text.ljust(width)
                       for text, width, right in zip(line, widths, numeric)).rstrip()
             for line in [names, *cells])
    return "\n".join(lines) + "\n"


def is_number(value) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


def cell(value) -> str:
    if isinstance(value, bool) or not is_number(value):
        return str(value)
    return f"{value:,}" if isinstance(value, (int, np.integer)) else f"{value:.4g}"


def to_json(value) -> str:
    """JSON that every parser takes: what JSON has no number for is a string, "nan", "inf" or "-inf"."""
    return json.dumps(plain(value), indent=2, allow_nan=False) + "\n"


def plain(value):
    """The value in JSON's own types."""
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, (np.ndarray, np.generic)):
        return plain(value.tolist())
    if isinstance(value, float) and (value != value or abs(value) == float("inf")):
        return str(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return [plain(one) for one in value] if isinstance(value, Iterable) else str(value)


# ---- what the command line shows of graphs ---------------------------------------------------------------------


def graph_rows(graph: Graph) -> dict:
    """A graph for JSON: the text that ``parse`` reads, and the same nodes one by one."""
    return {"name": graph.name, "inputs": {node.name: str(node.type) for node in graph.inputs},
            "outputs": dict(graph.outputs), "nodes": [node_row(node) for node in graph.nodes],
            "text": print_graph(graph)}


def node_row(node: Node) -> dict:
    row = {"name": node.name, "op": node.op, "inputs": node.inputs, "type": str(node.type), "origin": node.origin}
    if isinstance(node.value, Const):
        row["value"] = format_value(node.value)
    if isinstance(node.value, Attrs):
        row["attrs"] = dict(node.value)
    return row


def optimized_rows(optimized: Optimized) -> dict:
    """All of it for JSON: the graphs, each stage with its steps, and the table."""
    stages = [{"pass": stage.name, "seconds": stage.seconds, "steps": [step._asdict() for step in stage.report]}
              for stage in optimized.history]
    return {"before": graph_rows(optimized.traced), "after": graph_rows(optimized.graph), "stages": stages,
            "table": pass_rows(optimized)}


def pass_rows(optimized: Optimized) -> list[dict]:
    """Nodes, launches and bytes moved: as traced, then after each run of a pass."""
    return [size_row("(traced)", 0, optimized.traced),
            *(size_row(f"{number}. {stage.name}", len(stage.report), stage.after)
              for number, stage in enumerate(optimized.history, 1))]


def size_row(name: str, steps: int, graph: Graph) -> dict:
    counted = stats(graph)
    return {"pass": name, "steps": steps, "nodes": counted.nodes, "launches": counted.launches,
            "bytes": counted.bytes_read + counted.bytes_written}


def report(optimized: Optimized) -> str:
    """The steps, by stage; stages that changed nothing are left out."""
    lines = []
    for number, stage in enumerate(optimized.history, 1):
        if stage.report:
            lines.append(f"{number}. {stage.name}")
        for step in stage.report:
            change = f"{', '.join(step.before)} -> {step.after or 'nothing'}" if step.before != (step.after,) else step.after
            lines.append(f"   {step.rule}: {change}: {step.why}")
    return "\n".join(lines or ["nothing to do: no pass changed the graph"]) + "\n"
