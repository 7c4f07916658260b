"""Dead-code elimination: drop what no output and no effect needs."""

from __future__ import annotations

from ..ir import Graph
from ..ops import OPS
from ..rebuild import Result, Step


def dce(graph: Graph) -> Result:
    """Mark the outputs and the effects live, walk back to what they read, and drop the rest.

    One reverse walk is enough, because operands stand before their users: when a node is reached, all its users
    have been judged. Inputs stay, used or not: they are the graph's signature.
    """
    live = {value for _, value in graph.outputs}
    for node in reversed(graph.nodes):
        # an effect is live by itself: its purpose is not its value
        if node.name in live or not OPS[node.op].removable:
            live.add(node.name)
            live.update(node.inputs)
    kept = tuple([node for node in graph.nodes if node.name in live])
    if len(kept) == len(graph.nodes):
        return Result(graph, ())
    steps = [Step("dead", (node.name,), "", "no output and no effect needs it")
             for node in graph.nodes if node.name not in live]
    return Result(Graph(graph.name, kept, graph.outputs), tuple(steps))
