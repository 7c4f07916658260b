"""A gallery of wrong layout passes: each is the right one with one mistake in it that is made in practice."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from unittest import mock

from minigraph.ir import Graph, Node
from minigraph.ops import Attrs
from minigraph.passes import layout
from minigraph.passes.axes import Perm, inverse
from minigraph.passes.sink import PER_AXIS, lay_out, remap
from minigraph.passes.sink_plan import Sinking, order_after
from minigraph.rebuild import Result, Rewrite, rebuild

# the four files of the pass, each with the functions that it imports from the others
PLACES = [sys.modules[f"minigraph.passes.{name}"] for name in ("axes", "sink_plan", "sink", "layout")]
WRONG: dict[str, tuple[Callable, str]] = {}  # name -> (the pass, the kind of finding that must be among the judge's)


def mistake(kind: str, name: str):
    """Enter ``layout`` into the gallery with the function ``name`` replaced by the decorated one."""
    def enter(function):
        def run(graph: Graph) -> Result:
            with ExitStack() as replaced:
                for place in PLACES:
                    if hasattr(place, name):
                        replaced.enter_context(mock.patch.object(place, name, function))
                return layout(graph)

        run.__name__ = function.__name__
        WRONG[function.__name__] = run, kind
        return function

    return enter


# ---- permutations -----------------------------------------------------------------------------------------------------


@mistake("bits", "compose")
def permutations_composed_backwards(p: Perm, q: Perm) -> Perm:
    return tuple(q[axis] for axis in p)


@mistake("bits", "simplify_transpose")
def equal_permutations_cancel(node: Node, env) -> Rewrite | None:
    """True of swaps, and of nothing else."""
    inner = env.defs[node.inputs[0]] if node.op == "transpose" else node
    if node.op == inner.op == "transpose" and inner.value == node.value:
        return Rewrite("cancel", inner.inputs[0], "the same permutation twice")
    return None


@mistake("bits", "is_reshape")
def a_shape_that_stays_is_no_transpose(shape: tuple[int, ...], p: Perm) -> bool:
    """True until the matrix is square."""
    return tuple(shape[axis] for axis in p) == tuple(shape)


@mistake("bits", "widen")
def new_axes_behind(p: Perm, rank: int) -> Perm:
    """Broadcasting puts them in front."""
    return (*p, *range(len(p), rank))


# ---- operations ---------------------------------------------------------------------------------------------------------


@mistake("bits", "remap")
def negative_axis_not_remapped(attrs: Attrs | None, order: Perm) -> Attrs | None:
    if attrs is None or "axis" not in dict(attrs):
        return remap(attrs, order)
    axes = attrs.axis if isinstance(attrs.axis, tuple) else (attrs.axis,)
    new = tuple(axis if axis < 0 else order[axis] for axis in axes)
    return Attrs(**{**dict(attrs), "axis": new if isinstance(attrs.axis, tuple) else new[0]})


@mistake("bits", "remap")
def axis_not_remapped(attrs: Attrs | None, order: Perm) -> Attrs | None:
    return attrs


@mistake("bits", "remap")
def axis_remapped_the_other_way(attrs: Attrs | None, order: Perm) -> Attrs | None:
    """Right for swaps, and wrong for a rotation of three axes."""
    return remap(attrs, inverse(order))


@mistake("bits", "remap")
def padding_in_the_old_order(attrs: Attrs | None, order: Perm) -> Attrs | None:
    new = remap(attrs, order)
    return new and Attrs(**{name: dict(attrs)[name] if name in PER_AXIS else value for name, value in new})


@mistake("bits", "order_after")
def a_reduction_leaves_axes_in_order(node: Node, order: Perm) -> Perm:
    return order_after(node, order) if len(node.type.shape) == len(order) else tuple(range(len(node.type.shape)))


@mistake("bits", "lay_out")
def a_bias_as_it_is(base: Node, perm: Perm, owner: str, env, relaid: dict, helpers: list) -> str:
    """One number a channel, added along another axis of the same length."""
    return base.name if len(base.type.shape) < len(perm) else lay_out(base, perm, owner, env, relaid, helpers)


@mistake("bits", "lay_out")
def a_constant_as_it_is(base: Node, perm: Perm, owner: str, env, relaid: dict, helpers: list) -> str:
    return base.name if base.op == "const" else lay_out(base, perm, owner, env, relaid, helpers)


# ---- products -----------------------------------------------------------------------------------------------------------


@mistake("bits", "swap_last")
def every_permutation_is_a_flag(p: Perm) -> Perm:
    return tuple(range(len(p)))


@mistake("bits", "swap_last")
def the_batch_stays_where_it_is(p: Perm) -> Perm:
    return (*range(len(p) - 2), p[-1], p[-2])


@mistake("contract", "flip")
def turned_without_swapping_the_operands(node: Node, env) -> Rewrite:
    product = env.defs[node.inputs[0]]
    flags = Attrs(transpose_a=not product.value.transpose_a, transpose_b=not product.value.transpose_b)
    return Rewrite("turn", (Node(node.name, "matmul", product.inputs, flags, node.type),), "both are transposed")


# ---- costs --------------------------------------------------------------------------------------------------------------


@mistake("weight", "Sinking")
class sinks_whatever_can_sink(Sinking):
    """Without the cost rule: one transpose above two readers becomes two below them."""

    def compare(self) -> None:
        pass

    def take_back(self) -> None:
        pass


# ---- right ones, which the judge must accept ---------------------------------------------------------------------------


def cancel_transposes(graph: Graph) -> Graph:
    """As a learner writes it: inverse neighbours go, and nothing else."""
    def visit(node: Node, env) -> Rewrite | None:
        inner = env.defs[node.inputs[0]] if node.op == "transpose" else node
        undone = node.op == inner.op == "transpose" and inverse(inner.value.perm) == node.value.perm
        return Rewrite("cancel", inner.inputs[0], "one undoes the other") if undone else None

    return rebuild(graph, visit).graph


def absorb_swaps(graph: Graph) -> Result:
    """Only the plain case: the last two axes of a product's second operand."""
    def visit(node: Node, env) -> Rewrite | None:
        if node.op != "matmul":
            return None
        operand = env.defs[node.inputs[1]]
        rank = len(operand.type.shape)
        if operand.op != "transpose" or operand.value.perm != (*range(rank - 2), rank - 1, rank - 2):
            return None
        flags = Attrs(**{**dict(node.value), "transpose_b": not node.value.transpose_b})
        made = Node(node.name, "matmul", (node.inputs[0], operand.inputs[0]), flags, node.type)
        return Rewrite("absorb", (made,), "the flag swaps the last two axes")

    return rebuild(graph, visit)


RIGHT = (layout, cancel_transposes, absorb_swaps)
