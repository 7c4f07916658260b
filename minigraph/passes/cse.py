"""Common-subexpression elimination by value numbering: what is computed twice is computed once."""

from __future__ import annotations

from ..ir import Graph, Node
from ..ops import OPS
from ..rebuild import Env, Result, Rewrite, rebuild


def cse(graph: Graph) -> Result:
    """Merge nodes that have the same operation, operands and attributes; the first one stays.

    The walk is forward, so equal operands already have one name when their users' keys are made: equal
    expressions of any depth merge in one walk (Cocke and Schwartz, "Programming Languages and their Compilers",
    1970, call it value numbering).
    """
    numbered: dict[tuple, str] = {}

    def visit(node: Node, env: Env) -> Rewrite | None:
        if not OPS[node.op].mergeable:  # two draws are two draws, and two prints two prints
            return None
        first = numbered.setdefault(value_number(node), node.name)
        if first == node.name:
            return None
        return Rewrite("cse", first, f"the same {node.op} of the same operands")

    return rebuild(graph, visit)


def value_number(node: Node) -> tuple:
    """The key by which two nodes are the same value.

    Attributes belong to it (two sums over different axes differ), a constant counts by dtype, shape and bytes
    (0.0 is not -0.0), and operand order counts except where swapping changes no bit.
    """
    inputs = tuple(sorted(node.inputs)) if OPS[node.op].commutative else node.inputs
    return node.op, inputs, node.value
