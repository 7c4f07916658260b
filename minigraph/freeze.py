"""Freeze inputs: what is known at compile time becomes a constant, and folding can begin."""

from __future__ import annotations

import numpy as np

from .errors import GraphError, nearest
from .ir import Graph, Node
from .types import Const, type_of


def freeze(graph: Graph, **values) -> Graph:
    """The graph with some inputs replaced by constants of the same names: weights, positions, a configuration.

    This is no pass, because the signature changes. Raises GraphError for an unknown input or another type.
    """
    inputs = {node.name: node for node in graph.inputs}
    consts = []
    for name, value in values.items():
        if name not in inputs:
            raise GraphError(f"'{name}' is not an input of {graph.name}", hint=nearest(name, inputs))
        array = np.asarray(value)
        if type_of(array) != inputs[name].type:
            raise GraphError(f"input '{name}' is {inputs[name].type}, the value is {type_of(array)}")
        consts.append(Node(name, "const", (), Const.of(array), inputs[name].type, inputs[name].origin))
    kept = [node for node in graph.nodes if node.name not in values]
    first = len(inputs) - len(values)  # constants come right after the inputs that remain
    return Graph(graph.name, (*kept[:first], *consts, *kept[first:]), graph.outputs)
