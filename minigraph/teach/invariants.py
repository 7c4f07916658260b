"""The rules of the IR by short names, each checked by a function of its own.

``verify`` walks once and says sentences. Here every rule looks at the whole graph and knows nothing of the others, so
that ``broken_rules`` can say of a broken graph which of them it breaks, and a test can hold the two against each other.
"""

from __future__ import annotations

from collections.abc import Callable

from ..errors import MinigraphError
from ..ir import Graph, Node
from ..ops import OPS, Kind, infer
from ..types import TOKEN, Const, Type
from ..verify import check_attrs

RULES = {
    "defined-once": "no two nodes have the same name",
    "known-op": "every op is a row of the op table",
    "inputs-first": "no input comes after another kind of node",
    "defined-earlier": "every operand is the name of an earlier node",
    "right-value": "a const's value is a Const; any other node's is the attributes that its row asks for, or None",
    "right-type": "every type is what the row infers from the operands; a constant's is its value's",
    "effects-in-line": "every effect after the first takes one operand more: the token of the effect before it",
    "right-outputs": "every output is a value that holds data, so no token; no two have the same public name",
}


def broken_rules(graph: Graph) -> set[str]:
    """The names of all rules that ``graph`` breaks."""
    return {rule for rule, holds in HOLDS.items() if not holds(graph)}


def defined_once(graph: Graph) -> bool:
    names = [node.name for node in graph.nodes]
    return len(set(names)) == len(names)


def known_op(graph: Graph) -> bool:
    return all(node.op in OPS for node in graph.nodes)


def inputs_first(graph: Graph) -> bool:
    is_input = [node.op == "input" for node in graph.nodes]
    return is_input == sorted(is_input, reverse=True)


def defined_earlier(graph: Graph) -> bool:
    names = [node.name for node in graph.nodes]
    return all(name in names[:place] for place, node in enumerate(graph.nodes) for name in node.inputs)


def right_value(graph: Graph) -> bool:
    return all(node.op not in OPS or has_right_value(node) for node in graph.nodes)


def has_right_value(node: Node) -> bool:
    if OPS[node.op].kind is Kind.CONST:
        return isinstance(node.value, Const)
    try:
        check_attrs(node, OPS[node.op])
    except MinigraphError:
        return False
    return True


def right_type(graph: Graph) -> bool:
    """Where it can be told: the op is known, its value is right, and its operands are there."""
    types = {node.name: node.type for node in reversed(graph.nodes)}  # of two definitions the first
    return all(node.op not in OPS or not has_right_value(node) or not types.keys() >= set(node.inputs)
               or has_right_type(node, types) for node in graph.nodes)


def has_right_type(node: Node, types: dict) -> bool:
    kind = OPS[node.op].kind
    if kind is Kind.INPUT:
        return not node.inputs and isinstance(node.type, Type)
    if kind is Kind.CONST:
        return not node.inputs and node.type == node.value.type
    try:
        return node.type == infer(OPS[node.op], tuple(types[name] for name in node.inputs), node.value)
    except (MinigraphError, TypeError, AttributeError):  # an operand's type may be anything at all
        return False


def effects_in_line(graph: Graph) -> bool:
    """Looks at the effects alone: the operands after those that hold data."""
    before: tuple[str, ...] = ()
    for node in graph.nodes:
        if node.op in OPS and OPS[node.op].kind is Kind.EFFECT:
            if tuple(node.inputs[int(OPS[node.op].arity[0]):]) != before:
                return False
            before = (node.name,)
    return True


def right_outputs(graph: Graph) -> bool:
    types = {node.name: node.type for node in graph.nodes}
    publics = [public for public, _ in graph.outputs]
    return len(set(publics)) == len(publics) and all(
        value in types and getattr(types[value], "dtype", "") != TOKEN for _, value in graph.outputs)


HOLDS: dict[str, Callable[[Graph], bool]] = {
    "defined-once": defined_once, "known-op": known_op, "inputs-first": inputs_first, "defined-earlier": defined_earlier,
    "right-value": right_value, "right-type": right_type, "effects-in-line": effects_in_line, "right-outputs": right_outputs,
}  # fmt: skip
