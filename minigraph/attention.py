"""Attention as one launch: softmax(q @ k) @ v, recognized by its shape in the graph.

The scores may be scaled, shifted and masked element by element before the softmax. Everything in between is read by
nobody else, so none of it needs to be stored.
"""

from __future__ import annotations

from typing import NamedTuple

from .access import relabels, squeeze
from .ir import Graph, Node, defs
from .ops import OPS, Kind, normal_axes

WIDEST = 2048  # columns of the values: a row of the result lies in what a GPU block shares


class Attention(NamedTuple):
    """The parts, by name: ``mixed = matmul(shares, v)``, ``scores = matmul(q, k)``, and what lies between them."""

    scores: str  # the first product
    prologue: tuple[str, ...]  # element-wise nodes and relabels from the scores to what the softmax takes
    logits: str  # the last of these: what the softmax takes
    nodes: tuple[str, ...]  # all of them in the graph's order, the last one is the second product


def find_attention(graph: Graph, users: dict[str, list[str]], outputs: frozenset[str]) -> dict[str, Attention]:
    """The attentions of a graph, by the name of the second product."""
    nodes = defs(graph)
    found = {}
    for node in graph.nodes:
        if node.op == "matmul" and (attention := match(node, nodes, users, outputs)) is not None:
            found[node.name] = attention
    return found


def match(mixed: Node, nodes: dict[str, Node], users, outputs) -> Attention | None:
    """Walk up from the second product; None where anything is not as it is in an attention."""
    taken: list[str] = [mixed.name]

    def up(name: str, *ops: str) -> Node | None:
        """The node behind relabels, if it is one of these ops; all that is passed is taken."""
        while relabels(nodes[name], nodes):
            taken.append(name)
            name = nodes[name].inputs[0]
        taken.append(name)
        return nodes[name] if nodes[name].op in ops else None

    if mixed.value.transpose_a or len(mixed.type.shape) < 2 or mixed.type.dtype not in ("f32", "f64"):
        return None
    if (shares := up(mixed.inputs[0], "div")) is None:
        return None
    # no relabel from here on: on a square matrix it could turn rows into columns
    e, total = (nodes[name] for name in shares.inputs)
    if e.op != "exp" or total.op != "sum" or total.inputs[0] != e.name or not along_last(total, nodes):
        return None
    shifted = nodes[e.inputs[0]]
    if shifted.op != "sub" or (top := nodes[shifted.inputs[1]]).op != "max" or top.inputs[0] != shifted.inputs[0]:
        return None
    if not along_last(top, nodes) or nodes[shifted.inputs[0]].type.shape != e.type.shape:
        return None
    taken += [e.name, total.name, shifted.name, top.name]
    logits = shifted.inputs[0]
    prologue, scores, todo = [], None, [logits]
    while todo:  # from the logits up to the one product
        name = todo.pop()
        node = nodes[name]
        if name in prologue or name == scores or squeeze(node.type.shape) != squeeze(e.type.shape) or name in outputs:
            continue
        if node.op == "matmul" and scores is None and set(users[name]) <= {*prologue, *taken}:
            scores = name
        elif (OPS[node.op].kind is Kind.ELEMENTWISE or relabels(node, nodes)) and set(users[name]) <= {*prologue, *taken}:
            prologue.append(name)
            todo += node.inputs
    if scores is None or e.type.shape[-1:] == (1,) or not 1 < mixed.type.shape[-1] <= WIDEST:
        return None
    if nodes[mixed.inputs[0]].type.shape[-1] == 1 or squeeze(mixed.type.shape)[:-1] != squeeze(e.type.shape)[:-1]:
        return None  # the shares became a column, or the values have a batch that the scores lack
    inside = {*taken, *prologue, scores}
    if any(set(users[name]) - inside or name in outputs for name in inside - {mixed.name}):
        return None
    if any(nodes[name].type.dtype != mixed.type.dtype for name in inside if nodes[name].type.dtype[0] != "b"):
        return None
    order = {name: index for index, name in enumerate(nodes)}
    return Attention(scores, tuple(sorted(prologue, key=order.get)), logits, tuple(sorted(inside, key=order.get)))


def along_last(node: Node, nodes: dict[str, Node]) -> bool:
    """Does it reduce the last axis alone, so that a softmax over it is meant?"""
    rank = len(nodes[node.inputs[0]].type.shape)
    return normal_axes(node.value.axis, rank) == (rank - 1,) and (node.value.keepdims or rank == 1)
