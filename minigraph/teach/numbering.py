"""Value numbering, slowly: the table that grows while a graph is walked, as text and as pictures."""

from __future__ import annotations

from typing import NamedTuple

from ..command.tables import table
from ..drawing import draw
from ..drawing.alt import brief
from ..drawing.stepper import Panel, Stepper
from ..ir import Graph, Node
from ..ops import OPS
from ..text import format_attrs
from ..types import Const, format_value


class Entry(NamedTuple):
    """One node's turn: its key, in numbers, the number that it gets, and whose number that was before."""

    node: Node
    key: str
    number: int
    first: str  # the value that had the key before; empty for a new one


def number_values(graph: Graph) -> list[Entry]:
    """Give each value a number: the number of an earlier value with the same key, or the next free one."""
    numbers: dict[str, int] = {}
    found: dict[str, tuple[int, str]] = {}
    entries = []
    for node in graph.nodes:
        key = key_text(node, numbers)
        number, first = found.setdefault(key, (len(found), node.name))
        numbers[node.name] = number
        entries.append(Entry(node, key, number, first if first != node.name else ""))
    return entries


def key_text(node: Node, numbers: dict[str, int]) -> str:
    """``mul #0 #1``: the operation, its operands' numbers, and what else decides the value."""
    if not OPS[node.op].mergeable:
        return f"{node.op} {node.name}"  # itself and nothing else
    if isinstance(node.value, Const):
        return f"{node.op} {format_value(node.value)} : {node.type}"
    operands = [numbers[name] for name in node.inputs]
    operands = sorted(operands) if OPS[node.op].commutative else operands
    attributes = format_attrs(node.op, node.value).strip() if node.value else ""
    return " ".join([node.op, *(f"#{number}" for number in operands), attributes]).strip()


def value_table(graph: Graph) -> str:
    """The walk as text, a line a node: the key that is looked up, the number found, how long the table is by then."""
    rows, length = [], 0
    for entry in number_values(graph):
        length += not entry.first
        rows.append({"node": brief(entry.node), "key": entry.key, "number": f"#{entry.number}", "in the table": (
            f"there already: {entry.first}" if entry.first else "a new row"), "rows": length})
    return table(rows).rstrip()


def number_steps(graph: Graph) -> Stepper:
    """The same walk as pictures, a tab a node, with the numbers given so far beside their nodes."""
    panels, notes, words = [], {}, []
    for entry in number_values(graph):
        again = f", as {entry.first}" if entry.first else ""
        notes[entry.node.name] = f"#{entry.number}{again}"
        panels.append(Panel(entry.node.name, f"{entry.key} is #{entry.number}{again or ', a new row'}", draw(graph, values=notes)))
        words.append(f"{entry.node.name}: {entry.key} is #{entry.number}{again}")
    return Stepper(tuple(panels), f"Value numbering of graph {graph.name}, node by node. {'; '.join(words)}.")
