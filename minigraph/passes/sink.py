"""Sinking one transpose: the operation on what is stored, its axes renumbered, and the transpose below it."""

from __future__ import annotations

from ..ir import Node
from ..ops import OPS, Attrs, infer
from ..rebuild import Env, Rewrite
from ..types import Const, Type
from .axes import Perm, compose, inverse, is_reshape, widen
from .sink_plan import one_order, order_after

PER_AXIS = ("low", "high", "start", "stop", "step", "shape")  # attributes with one number an axis
Relaid = dict[tuple[str, Perm], str]  # what was laid out anew already, for another reader


def sink(node: Node, env: Env, relaid: Relaid) -> Rewrite | None:
    """Compute ``node`` from its operands as they are stored; what is left to transpose is its result."""
    operands = {name: env.defs[name] for name in node.inputs}
    perms = {name: operand.value.perm for name, operand in operands.items() if operand.op == "transpose"}
    stored = {name: env.defs[operand.inputs[0]] if name in perms else operand for name, operand in operands.items()}
    order = one_order(node, perms, operands, [name for name in stored if stored[name].op == "const"])
    if order is None:
        return None
    helpers: list[Node] = []
    new: dict[str, str] = {}
    for name, base in stored.items():
        perm = widen(perms.get(name) or tuple(range(len(base.type.shape))), len(order))
        new[name] = lay_out(base, compose(perm, inverse(order)), node.name, env, relaid, helpers)
    types = {helper.name: helper.type for helper in helpers}
    attrs, inputs = remap(node.value, order), tuple([new[name] for name in node.inputs])
    type = infer(OPS[node.op], tuple([types.get(name) or env.type(name) for name in inputs]), attrs)
    kind, after = OPS[node.op].kind.value, order_after(node, order)
    moves = not is_reshape(type.shape, after)
    if moves or type != node.type:
        helpers.append(Node(env.fresh(f"{node.name}.{node.op}"), node.op, inputs, attrs, type))
        last = ("transpose", Attrs(perm=after)) if moves else ("reshape", Attrs(shape=node.type.shape))
        made = Node(node.name, last[0], (helpers[-1].name,), last[1], node.type)
    else:
        made = Node(node.name, node.op, inputs, attrs, type)
    return Rewrite(f"sink-{kind}", (*helpers, made), f"{node.op} works in any order of axes, and so on what is stored")


def remap(attrs: Attrs | None, order: Perm) -> Attrs | None:
    """The attributes for operands as they are stored. A negative axis counts from the end before it is renumbered."""
    if attrs is None:
        return None
    found, back = dict(attrs), inverse(order)
    for name, value in attrs:
        if name == "axis":
            axes = [order[axis % len(order)] for axis in (value if isinstance(value, tuple) else (value,))]
            found[name] = tuple(sorted(axes)) if isinstance(value, tuple) else axes[0]
        elif name in PER_AXIS and value:  # a slice's step may be left out
            found[name] = tuple([value[axis] for axis in back])
    return Attrs(**found)


def lay_out(base: Node, perm: Perm, owner: str, env: Env, relaid: Relaid, helpers: list[Node]) -> str:
    """The name of ``transpose(base, perm)``; where ``base`` has fewer axes, it gets some of length 1 in front."""
    wide = (1,) * (len(perm) - len(base.type.shape)) + base.type.shape
    type = Type(base.type.dtype, tuple([wide[axis] for axis in perm]))
    stays = is_reshape(wide, perm)
    if not base.type.shape or (stays and type.shape == wide):  # broadcasting puts the axes in front anyway
        return base.name
    if (base.name, perm) not in relaid:
        if stays:
            made = as_shape(base, env.fresh(f"{owner}.{'c' if base.op == 'const' else 'reshape'}"), type)
        elif base.op == "const":
            turned = Const.of(base.value.array.reshape(wide).transpose(perm))
            made = Node(env.fresh(f"{owner}.c"), "const", (), turned, type)
        else:
            made = Node(env.fresh(f"{owner}.transpose"), "transpose", (base.name,), Attrs(perm=perm), type)
        helpers.append(made)
        relaid[base.name, perm] = made.name
    return relaid[base.name, perm]


def as_shape(base: Node, name: str, type: Type) -> Node:
    """The same elements under another shape; a constant shares its bytes."""
    if base.op == "const":
        return Node(name, "const", (), Const(type.dtype, type.shape, base.value.data), type)
    return Node(name, "reshape", (base.name,), Attrs(shape=type.shape), type)
