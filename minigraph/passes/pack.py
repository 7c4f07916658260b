"""Packing: weights of products of few rows are stored in the order in which a dot product reads them."""

from __future__ import annotations

import numpy as np

from ..ir import Graph, Node, users
from ..ops import Attrs, infer, row
from ..rebuild import Env, Result, Rewrite, rebuild
from ..types import Const

ROWS = 4  # more rows make it a library's work, which packs for itself


def pack(graph: Graph) -> Result:
    """``x @ W`` becomes ``x @ Wt.T``, where W is a constant that nobody else reads and x has few rows.

    Row after row of Wt is then read from end to end, once: the way in which memory is quickest. The sums are added up
    in another order, so the result is equal within the rounding bound only. Run it for back ends that generate such
    products.
    """
    read = users(graph)
    outputs = {value for _, value in graph.outputs}

    def visit(node: Node, env: Env) -> Rewrite | None:
        if node.op != "matmul" or node.value.transpose_b:
            return None
        x, weight = (env.defs[name] for name in node.inputs)
        rows = x.type.shape[-2:-1] if not node.value.transpose_a else x.type.shape[-1:]
        if weight.op != "const" or len(weight.type.shape) != 2 or read[weight.name] != [node.name] or weight.name in outputs:
            return None
        if any(count > ROWS for count in rows) or weight.type.shape[1] <= ROWS:
            return None
        value = Const.wrap(np.ascontiguousarray(weight.value.array.T))
        packed = Node(env.fresh(f"{weight.name}.packed"), "const", (), value, value.type, weight.origin)
        attrs = Attrs(transpose_a=node.value.transpose_a, transpose_b=True)
        product = Node(node.name, "matmul", (x.name, packed.name), attrs,
                       infer(row("matmul"), (x.type, packed.type), attrs), node.origin)
        return Rewrite("pack", (packed, product), "a dot product reads a row of the packed weights from end to end")

    return rebuild(graph, visit)
