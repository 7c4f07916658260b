"""Graphs that break a rule, as text: every node in its place, and beside it what a line of text would hide.

``print_graph`` is made for right graphs: it puts inputs into the header wherever they stand, and prints no value that
is neither a Const nor attributes. Of a wrong graph that may be the very fault.
"""

from __future__ import annotations

import reprlib

from ..errors import MinigraphError
from ..ir import Graph, Node
from ..ops import OPS, Attrs, Kind
from ..text import format_attrs, print_graph
from ..types import Const, Type, format_value
from ..verify import check_attrs, problems

BRIEF = reprlib.Repr()
BRIEF.maxother = BRIEF.maxstring = BRIEF.maxlong = 60


def graph_text(graph: Graph) -> str:
    """``print_graph`` of a right graph, ``exact_text`` of any other."""
    return print_graph(graph) if is_right(graph) else exact_text(graph)


def is_right(graph: Graph) -> bool:
    try:
        return not any(problems(graph))
    except Exception:  # a learner's graph may hold anything at all
        return False


def exact_text(graph: Graph) -> str:
    """The nodes in their order, inputs among them."""
    lines = ["  " + exact_line(node) for node in graph.nodes]
    try:
        publics = ", ".join(plain(public) for public, _ in graph.outputs)
        results = ", ".join(f"{plain(public)} = {plain(value)}" for public, value in graph.outputs)
    except (TypeError, ValueError):
        publics, results = "?", f"# outputs is {what_is(graph.outputs)}, and no pairs"
    return "\n".join([f"graph {graph.name} -> ({publics}) {{", *lines, f"  return {results}".rstrip(), "}"]) + "\n"


def exact_line(node) -> str:
    """``x = input() : f32[4]``; what the line cannot show stands behind ``#``."""
    if not isinstance(node, Node):
        return BRIEF.repr(node)
    inside = ", ".join(map(plain, node.inputs)) if isinstance(node.inputs, tuple) else BRIEF.repr(node.inputs)
    attributes = ""
    if node.op == "const" and not node.inputs:
        inside = format_value(node.value) if isinstance(node.value, Const) else BRIEF.repr(node.value)
    elif type(node.op) is str and is_attrs(node):
        attributes = format_attrs(node.op, node.value)
    line = f"{plain(node.name)} = {plain(node.op)}({inside}){attributes}"
    line += f" : {node.type}" if is_type(node.type) else ""
    found = hidden(node)
    return line + (f"   # {', '.join(found)}" if found else "")


def hidden(node: Node) -> list[str]:
    """What a line of text does not say of this node."""
    found = []
    if type(node.inputs) is not tuple:
        found.append(f"inputs is {what_is(node.inputs)}")
    if not has_value(node):
        found.append(f"value is {what_is(node.value)}")
    if not is_type(node.type):
        found.append(f"type is {what_is(node.type)}")
    return found


def has_value(node: Node) -> bool:
    """Is the value the one that the line shows?"""
    if type(node.op) is not str or node.op not in OPS:
        return node.value is None or is_attrs(node)
    if OPS[node.op].kind is Kind.CONST:
        return isinstance(node.value, Const) and not node.inputs
    if OPS[node.op].kind is Kind.INPUT:
        return node.value is None
    try:
        check_attrs(node, OPS[node.op])
    except (MinigraphError, TypeError, ValueError):
        return False
    return True


def is_attrs(node: Node) -> bool:
    """Attributes that can be written as text: a learner's may hold a list."""
    try:
        return isinstance(node.value, Attrs) and hash(node.value) is not None
    except TypeError:
        return False


def is_type(found) -> bool:
    return (isinstance(found, Type) and type(found.dtype) is str and type(found.shape) is tuple
            and all(type(dim) is int for dim in found.shape))


def what_is(value) -> str:
    if value is None:
        return "None"
    if isinstance(value, Attrs):
        return f"attributes {BRIEF.repr(dict(value))}"
    return f"{BRIEF.repr(value)}, {article(value)}"


def article(value) -> str:
    """``a float``, ``an int``, ``an array``"""
    if type(value).__name__ == "Opaque":  # it was something else in another process, and says what
        return repr(value)
    name = {"ndarray": "array"}.get(type(value).__name__, type(value).__name__)
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def plain(name) -> str:
    return name if isinstance(name, str) else BRIEF.repr(name)
