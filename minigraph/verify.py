"""The verifier: every invariant of the IR is one named check with its own sentence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from .errors import GraphError, RunError, brief, nearest
from .ir import NAME, Graph, Node, is_name
from .ops import Attrs, Kind, infer, make_attrs, row
from .text import node_line
from .types import TOKEN, Const, Type, check_size, is_type


def verify(graph: Graph) -> None:
    """Raise GraphError for the first invariant that ``graph`` breaks; return None where all hold."""
    for error in problems(graph):
        raise error


def problems(graph: Graph) -> Iterator[GraphError]:
    """Every broken invariant, in the order of the nodes. Later ones may follow from earlier ones."""
    types: dict[str, Type | None] = {}  # None: defined, but by a node that is wrong
    all_names = None
    token = None  # the effect before
    inputs_done = False
    if type(graph.nodes) is not tuple or type(graph.outputs) is not tuple:
        yield GraphError("a graph's nodes and outputs are tuples", hint="make one of a list: Graph(name, tuple(nodes), outputs)")
    if type(graph.name) is not str or not NAME.fullmatch(graph.name):
        yield GraphError(f"{graph.name!r} is not a name for a graph", hint=NAME_HINT)
    for node in graph.nodes if isinstance(graph.nodes, (tuple, list)) else ():
        try:
            check_form(node)
            if node.name in types:
                raise GraphError(f"'{node.name}' is defined twice", hint="every value has one definition")
            if not is_name(node.name):
                raise GraphError(f"{node.name!r} is not a name", hint=NAME_HINT)
            facts = row(node.op)
            if facts.kind is Kind.INPUT:
                check_input(node, inputs_done)
                types[node.name] = node.type
                continue
            inputs_done = True
            if facts.kind is Kind.CONST:
                check_const(node)
                types[node.name] = node.type
                continue
            try:
                operand_types = tuple([types[name] for name in node.inputs])
            except KeyError as missing:
                all_names = all_names or [str(getattr(other, "name", "")) for other in graph.nodes]
                raise undefined(node, missing.args[0], all_names) from None
            if None in operand_types:  # the operand's own error was said already
                types[node.name] = node.type if is_type(node.type) else None
                continue
            check_attrs(node, facts)
            expected = infer(facts, operand_types, node.value)
            if node.type is not expected and (not is_type(node.type) or node.type != expected):  # (True,) == (1,)
                raise GraphError(f"{node.op} gives {expected}, but the node says {node.type}",
                                 hint="a node's type is what its row infers")
            if facts.kind is Kind.EFFECT:
                check_effect(node, facts, token)
                token = node.name
            types[node.name] = node.type
        except GraphError as error:
            yield error.at(line=safe_line(node), where=safe_origin(node))
            if isinstance(node, Node) and type(node.name) is str:
                types.setdefault(node.name, node.type if is_type(node.type) else None)
    yield from check_outputs(graph, types)


NAME_HINT = "a name is letters, digits and _, with dots inside"


def check_form(node: Node) -> None:
    """A learner's list may hold anything at all."""
    if type(node) is not Node:  # what a subclass takes for equal is its own business
        raise GraphError(f"a graph is a list of nodes, and this is a {type(node).__name__}")
    if type(node.name) is not str or type(node.op) is not str:
        raise GraphError("a node's name and its op are strings")
    if type(node.inputs) is not tuple:
        raise GraphError(f"a node's inputs are a tuple of names, not a {type(node.inputs).__name__}",
                         hint="one operand is ('x',)" if type(node.inputs) is str else "")
    for name in node.inputs:
        if type(name) is not str:
            raise GraphError(f"an operand is the name of a value, not {name!r}")


def safe_origin(node: Node) -> str:
    origin = getattr(node, "origin", ())
    return str(origin[-1]) if isinstance(origin, tuple) and origin else ""


def safe_line(node: Node) -> str:
    """The node's text line; a node too broken to print is shown by its repr."""
    try:
        return node_line(node)
    except Exception:  # a learner's node may hold anything at all
        return repr(node)[:200]


def undefined(node: Node, name: str, all_names: list[str]) -> GraphError:
    if name in all_names:
        return GraphError(f"operand '{name}' is defined later", hint="list each node after its operands")
    return GraphError(f"operand '{name}' is not defined", hint=nearest(str(name), all_names))


def check_input(node: Node, inputs_done: bool) -> None:
    if inputs_done:
        raise GraphError(f"input '{node.name}' comes after a computed node", hint="inputs are listed first")
    if node.inputs or node.value is not None or not isinstance(node.type, Type):
        raise GraphError(f"input '{node.name}' has a type and nothing else")
    dtype, shape = node.type
    if not is_type(node.type) or dtype == TOKEN:
        raise GraphError(f"input '{node.name}' is {dtype!s}{shape!s}, which is no array's type",
                         hint="make a type with parse_type('f32[8,4]')")
    check_size(shape)


def check_const(node: Node) -> None:
    if node.inputs or not isinstance(node.value, Const):
        raise GraphError(f"const '{node.name}' holds a Const and has no operands",
                         hint="make one with Const.of(array)" if isinstance(node.value, np.ndarray) else "")
    if not is_type(node.type) or node.type != node.value.type:
        raise GraphError(f"the constant is {node.value.type}, but the node says {node.type}")
    check_size(node.type.shape)


def check_attrs(node: Node, facts) -> None:
    """The row's attributes, all of them, in canonical form: equal meanings must be equal values."""
    if node.value is None and not facts.attrs:
        return
    if node.value is not None and not isinstance(node.value, Attrs):
        kind = type(node.value).__name__
        if not facts.attrs:
            raise GraphError(f"{node.op} has no attributes, so its value is None, not a {kind}")
        raise GraphError(f"{node.op} has attributes, not {kind}", hint=f"make them with Attrs({'=..., '.join(name for name, *_ in facts.attrs)}=...)")
    right = make_attrs(facts, dict(node.value or ()))
    if repr(right) != repr(node.value):  # by repr, because True == 1
        wanted = f"Attrs({', '.join(f'{name}={value!r}' for name, value in right)})" if right else "None"
        raise GraphError(f"the attributes of {node.op} are not in canonical form", hint=f"this would be {wanted}")


def check_effect(node: Node, facts, token: str | None) -> None:
    after = node.inputs[int(facts.arity[0]):]
    if after != ((token,) if token else ()):
        raise GraphError(f"effect '{node.name}' must come after '{token}'" if token else
                         f"effect '{node.name}' is the first, so it takes no token",
                         hint="each effect takes the token of the one before as its last operand")


def check_outputs(graph: Graph, types: dict[str, Type]) -> Iterator[GraphError]:
    seen: set[str] = set()
    for pair in graph.outputs if isinstance(graph.outputs, (tuple, list)) else ():
        if not isinstance(pair, (tuple, list)) or len(pair) != 2 or not all(type(name) is str for name in pair):
            yield GraphError(f"an output is a pair (public name, value name), not {pair!r}", hint="like ('y', 'y')")
            continue
        public, value = pair
        if value not in types:
            yield GraphError(f"output '{public}' is '{value}', which is not defined", hint=nearest(value, types))
        elif types[value] is not None and types[value].dtype == TOKEN:
            yield GraphError(f"output '{public}' is an effect's token, which holds no data")
        if public in seen:
            yield GraphError(f"two outputs are named '{public}'", hint="public names are unique")
        if not NAME.fullmatch(public):
            yield GraphError(f"{public!r} is not a name for an output")
        seen.add(public)


def check_signature(before: Graph, after: Graph) -> Iterable[GraphError]:
    """What a pass must keep: the inputs with their types and order, the outputs' public names and types."""
    old = [(node.name, node.type) for node in before.inputs]
    new = [(node.name, node.type) for node in after.inputs]
    if old != new:
        yield GraphError(f"a pass changed the inputs from ({signature(old)}) to ({signature(new)})",
                         hint="inputs are the graph's signature: never removed, renamed or reordered")
    old = output_types(before)
    new = output_types(after)
    if old != new:
        yield GraphError(f"a pass changed the outputs from ({signature(old)}) to ({signature(new)})",
                         hint="public names and types stay; only the values behind them may change")


def check_donate(graph: Graph, donate: Iterable[str]) -> frozenset[str]:
    """The inputs that are given away; RunError for what is no list of names, and for a name that is no input."""
    if isinstance(donate, str) or not isinstance(donate, Iterable):
        raise RunError(f"donate is a list of names of inputs, like ['cache'], not {brief(donate)}")
    donate, inputs = tuple(donate), [node.name for node in graph.inputs]
    for name in donate:
        if name not in inputs:
            raise RunError(f"cannot donate '{name}': it is not an input. {nearest(str(name), inputs)}".strip())
    return frozenset(donate)


def output_types(graph: Graph) -> list[tuple[str, Type]]:
    wanted = {value for _, value in graph.outputs}
    types = {node.name: node.type for node in graph.nodes if node.name in wanted}
    return [(public, types.get(value)) for public, value in graph.outputs]


def signature(pairs) -> str:
    return ", ".join(f"{name}: {type}" for name, type in pairs)
