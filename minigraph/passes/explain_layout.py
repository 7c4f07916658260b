"""Why a transpose stays."""

from __future__ import annotations

from ..errors import GraphError, nearest
from ..ir import Graph, Node, defs
from ..text import node_line
from .axes import copies, cost
from .layout import layout
from .sink_plan import Sinking, one_order, sinkable


def explain(graph: Graph, name: str) -> str:
    """Why does this transpose stay? One sentence; where it does not, what ``layout`` does with it."""
    nodes, plan = defs(graph), Sinking(graph)
    if name not in nodes:
        raise GraphError(f"no value is named '{name}'", hint=nearest(name, nodes))
    if nodes[name].op != "transpose":
        return f"'{name}' is no transpose: {node_line(nodes[name])}."
    if name not in plan.nodes:
        return f"'{name}' is dead: no output and no effect needs it."
    result = layout(graph)
    steps = {step.before[0]: step.why for step in reversed(result.report) if step.rule != "dead"}  # the first for each
    if name in steps:
        return f"layout changes '{name}': {steps[name]}."
    if name not in defs(result.graph):
        reader = next(reader for reader in plan.readers[name] if reader in steps)
        return f"layout drops '{name}', because '{reader}' does without it: {steps[reader]}."
    must = [f"it is the output '{public}'" for public, value in graph.outputs if value == name]
    could = []
    for node in [nodes[reader] for reader in dict.fromkeys(plan.readers[name])]:
        perms = {operand: nodes[operand].value.perm for operand in node.inputs if nodes[operand].op == "transpose"}
        if sinkable(node) and one_order(node, perms, nodes, plan.fixed):
            could.append(node)
        else:
            must.append(f"{node.op} '{node.name}' {why_needed(node, name, plan)}")
    moved = copies(graph)[name]
    there = sum(cost(node.type) for node in could)
    below = " and ".join(f"'{node.name}'" for node in could)
    if could and must:
        must.append(f"so below {below} there would be {there:,} bytes to move as well")
    elif could:
        must.append(f"below {below} there would be {there:,} bytes to move, and nothing there to cancel it")
    return f"'{name}' stays and moves {moved:,} bytes: {'; '.join(must)}."


def why_needed(node: Node, name: str, plan: Sinking) -> str:
    if node.op == "matmul":
        if name in plan.held:
            return "reads its rows in place, a stride apart, and has no flag for this permutation"
        return "needs its matrices in one piece, and its flags only swap the last two axes"
    if sinkable(node):
        return "has another operand that lies in another order, and would need a transpose instead"
    return "reads the elements one after another in this order"
