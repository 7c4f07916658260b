"""Layout: transposes cancel, sink to where they cancel, and become flags of matmul."""

from __future__ import annotations

from ..ir import Graph, Node, defs, no_collection
from ..ops import Attrs
from ..rebuild import Env, Result, Rewrite, rebuild
from .axes import compose, is_reshape, swap_last, torn
from .dce import dce
from .sink import Relaid, as_shape, lay_out, sink
from .sink_plan import Sinking


def layout(graph: Graph) -> Result:
    """Remove transposes, or put them where they move less: every change lowers ``axes.layout_weight``.

    Transposes of transposes compose; a permutation that moves only axes of length 1 is a reshape. The last two axes of
    a matmul's operand are swapped by its flag, those of its result by swapping the operands. Through operations that
    work in any order of axes transposes sink, where ``Sinking`` finds that it pays. A value keeps its name and its
    meaning: what is computed in another order has a name of its own. Element-wise results keep every bit; a float
    reduction or contraction may meet its terms in another order, and stays within its rounding bound.
    """
    report, taken = (), defs(graph)
    with no_collection():
        while (result := one_round(graph, taken)).report:  # the first round nearly always does all; another makes sure
            graph, report, taken = result.graph, report + result.report, taken | defs(result.graph)
    return Result(graph, report)


def one_round(graph: Graph, taken: dict[str, Node]) -> Result:
    """Tidy up what stands side by side; then look at the whole graph, and sink. No new value takes a ``taken`` name."""
    live = {node.name for node in dce(graph).graph.nodes}
    beside: Relaid = {}
    near = rebuild(graph, lambda node, env: tidy(node, env, beside) if node.name in live else None, taken)
    plan, relaid = Sinking(near.graph), {}

    def visit(node: Node, env: Env) -> Rewrite | None:
        if node.name not in plan.nodes:  # new, or dead
            return None
        if node.name in plan.sink:
            return sink(node, env, relaid)
        if node.name in plan.flip and node.op == "transpose":
            return flip(node, env)
        return tidy(node, env, relaid, plan)

    far = rebuild(near.graph, visit, taken)
    if not (report := near.report + far.report):
        return Result(graph, ())
    rest = dce(far.graph)  # most transposes that composed or sank are read by nobody now
    return Result(rest.graph, report + rest.report)


def tidy(node: Node, env: Env, relaid: Relaid, plan: Sinking | None = None) -> Rewrite | None:
    """What can be said of a transpose or a matmul from its operands alone."""
    if node.op == "matmul":
        return absorb(node, env, relaid, plan)
    if node.op != "transpose":
        return None
    rewrite = simplify_transpose(node, env)
    if rewrite is None:
        relaid.setdefault((node.inputs[0], node.value.perm), node.name)
    return rewrite


def simplify_transpose(node: Node, env: Env) -> Rewrite | None:
    """Compose with a transpose above, and see what is left."""
    inner, perm = env.defs[node.inputs[0]], node.value.perm
    stacked = inner.op == "transpose"
    if stacked:
        inner, perm = env.defs[inner.inputs[0]], compose(inner.value.perm, perm)
    if is_reshape(inner.type.shape, perm):
        if inner.type == node.type:
            return Rewrite("cancel-transposes", inner.name, "every axis is back in its place")
        made = as_shape(inner, node.name, node.type)
        return Rewrite("transpose-is-reshape", (made,), "only axes of length 1 move, so all elements stay in order")
    made = Node(node.name, "transpose", (inner.name,), Attrs(perm=perm), node.type)
    return Rewrite("compose-transposes", (made,), "two permutations make one") if stacked else None


def flip(node: Node, env: Env) -> Rewrite:
    product = env.defs[node.inputs[0]]
    flags = Attrs(transpose_a=not product.value.transpose_b, transpose_b=not product.value.transpose_a)
    made = Node(node.name, "matmul", product.inputs[::-1], flags, node.type)
    return Rewrite("transposed-product", (made,), "the transpose of a b is b transposed times a transposed")


def absorb(node: Node, env: Env, relaid: Relaid, plan: Sinking | None) -> Rewrite | None:
    """Let a flag swap the last two axes of an operand, where that leaves less to transpose, or whole rows."""
    for place, flag in enumerate(("transpose_a", "transpose_b")):
        operand = env.defs[node.inputs[place]]
        if operand.op != "transpose":
            continue
        base, rest = env.defs[operand.inputs[0]], swap_last(operand.value.perm)
        left = torn(base.type.shape, rest)
        if left >= torn(base.type.shape, operand.value.perm):
            continue
        if left and (base.name, rest) not in relaid and not (plan and plan.only_for_matmuls(operand.name)):
            continue  # it would stand beside the old transpose, and not instead of it
        helpers: list[Node] = []
        inputs = list(node.inputs)
        inputs[place] = lay_out(base, rest, node.name, env, relaid, helpers)
        flags = dict(node.value)
        made = Node(node.name, "matmul", tuple(inputs), Attrs(**{**flags, flag: not flags[flag]}), node.type)
        return Rewrite("absorb-into-matmul", (*helpers, made), f"{flag} swaps the last two axes")
    return None
