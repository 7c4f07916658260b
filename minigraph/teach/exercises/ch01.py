"""Chapter 01, the graph: the exercises, their mistakes and the rules to break."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ...errors import CheckFailed, GraphError
from ...ir import Graph, Node, users
from ...ops import OPS, Attrs, Kind, infer
from ...run_numpy import run
from ...text import parse
from ...types import TOKEN, Const, Type
from ..exercise import Break, Exercise, Mistake
from ..graphs import chain, special_inputs
from ..exact import exact_line
from ..invariants import broken_rules, has_right_type, has_right_value
from ..judge import NOT_ATTEMPTED, Failure, Verdict, describe, judge_calls, other_kind, raised
from ..limits import TookTooLong, time_limit

# ---- who reads a value? -------------------------------------------------------------------------------------------


def users_of(graph, name):
    """The names of the nodes that read the value ``name``: a list, in the order of the nodes.

    A node that reads it twice, like ``y = mul(x, x)``, is listed twice:
    ``users_of(graph, "x") == ["y", "y"]``. An output is no node, so it is not listed. ``graph.nodes``
    holds the nodes, ``node.inputs`` the names that a node reads. About 6 lines.
    """
    ### BEGIN SOLUTION
    readers = []
    for node in graph.nodes:
        for operand in node.inputs:
            if operand == name:
                readers.append(node.name)
    return readers
    ### END SOLUTION


def users_of_in_one_line(graph, name):
    return [node.name for node in graph.nodes for operand in node.inputs if operand == name]


def users_of_by_counting(graph, name):
    readers = []
    for node in graph.nodes:
        readers += [node.name] * node.inputs.count(name)
    return readers


def users_of_by_the_package(graph, name):
    return users(graph)[name]


def users_of_once(graph, name):
    return [node.name for node in graph.nodes if name in node.inputs]


def users_of_and_outputs(graph, name):
    return users_of(graph, name) + [public for public, value in graph.outputs if value == name]


def users_of_as_nodes(graph, name):
    return [node for node in graph.nodes for operand in node.inputs if operand == name]


def users_of_as_text(graph, name):
    return [node.name for node in graph.nodes for operand in node.inputs if name in operand]


def users_of_upside_down(graph, name):
    return list(graph[name].inputs)


def users_of_sorted(graph, name):
    return sorted(users_of(graph, name))


def users_of_first_operand(graph, name):
    return [node.name for node in graph.nodes if node.inputs[:1] == (name,)]


USERS_GRAPHS = tuple(parse(text) for text in (
    "graph g(x: f32[4]) -> (x) {\n return x\n}",
    "graph g(x: f32[4]) -> (y) {\n y = mul(x, x)\n return y\n}",
    "graph g(x: f32[4], xs: f32[4]) -> (y) {\n y = sub(xs, x)\n return y\n}",
    "graph g(x: f32[4], ax: f32[4]) -> (y) {\n y = sub(ax, x)\n return y\n}",
    "graph g(x: f32[4]) -> (y) {\n y = concat(x, x, x) {axis=0}\n return y\n}",
    "graph g(x: f32[4]) -> (x, y) {\n y = neg(x)\n return x = y, y = x\n}",
    "graph g(exp: f32[4]) -> (sum) {\n sum = exp(exp)\n neg = neg(sum)\n return sum\n}",
    "graph g(x: f32[4]) -> (z, x) {\n z = neg(x)\n a = exp(z)\n y = add(a, z)\n return z, x\n}",
    "graph g(x: f32[4], c: bool[4]) -> (m) {\n m = where(c, x, x)\n a = where(c, m, x)\n return m\n}",
    "graph g(x: f32[4]) -> (y) {\n seen = print(x)\n y = neg(x)\n after = print(y, seen)\n return y\n}",
    "graph g(x: f32[2,2]) -> (s) {\n t = matmul(x, x)\n s = sum(t) {axis=[0]}\n b = concat(t, x, t) {axis=0}\n return s\n}",
))  # fmt: skip


def users_cases() -> Iterator[tuple]:
    for graph in USERS_GRAPHS:
        for node in graph.nodes:
            yield graph, node.name


def explain_users(case, want, got):
    return (f"who reads {case[1]}?", f"it should give {want!r}", f"and gives      {got!r}")


# ---- a small verifier -----------------------------------------------------------------------------------------------


def first_problem(graph):
    """The name of a rule that ``graph`` breaks, or None where all six hold.

    - ``"defined-once"``: no two nodes have the same name.
    - ``"known-op"``: every ``node.op`` is a key of ``OPS``.
    - ``"inputs-first"``: no node with the op ``"input"`` comes after a node with another op.
    - ``"defined-earlier"``: every name in ``node.inputs`` is the name of an earlier node.
    - ``"right-type"``: ``type_is_right`` says so of every node. It is given; read it, and ask it only
      about a node whose op is known and whose operands' types are in ``types``.
    - ``"right-outputs"``: in ``graph.outputs``, pairs (public name, value name), every value is the
      name of a node, and no public name stands twice. (No graph here returns a token.)

    So a graph with ``y = neg(y)`` gives ``"defined-earlier"``. Where several rules are broken, name
    any one of them. About 18 lines.
    """
    def type_is_right(node, types):
        """Is the node's type what it should be?

        ``types`` maps the names of the nodes before it to their types.
        """
        if node.op in ("input", "const"):
            return node.op == "input" or node.type == node.value.type
        try:
            operands = tuple(types[name] for name in node.inputs)
            return node.type == infer(OPS[node.op], operands, node.value)
        except GraphError:  # the operands do not fit the operation
            return False

    ### BEGIN SOLUTION
    types, others = {}, False
    for node in graph.nodes:
        if node.name in types:
            return "defined-once"
        if node.op not in OPS:
            return "known-op"
        if node.op == "input" and others:
            return "inputs-first"
        others = others or node.op != "input"
        if any(name not in types for name in node.inputs):
            return "defined-earlier"
        if not type_is_right(node, types):
            return "right-type"
        types[node.name] = node.type
    publics = [public for public, value in graph.outputs]
    if len(set(publics)) < len(publics) or any(value not in types for public, value in graph.outputs):
        return "right-outputs"
    return None
    ### END SOLUTION


def first_problem_rule_by_rule(graph):
    names = [node.name for node in graph.nodes]
    if len(set(names)) < len(names):
        return "defined-once"
    if not all(node.op in OPS for node in graph.nodes):
        return "known-op"
    kinds = [node.op != "input" for node in graph.nodes]
    if kinds != sorted(kinds):
        return "inputs-first"
    for place, node in enumerate(graph.nodes):
        if not set(node.inputs) <= set(names[:place]):
            return "defined-earlier"
    for public, value in graph.outputs:
        if value not in names or [p for p, _ in graph.outputs].count(public) > 1:
            return "right-outputs"
    for node in graph.nodes:
        if node.op == "const" and node.type != node.value.type:
            return "right-type"
        if node.op not in ("input", "const"):
            try:
                if infer(OPS[node.op], tuple(graph[name].type for name in node.inputs), node.value) != node.type:
                    return "right-type"
            except GraphError:
                return "right-type"
    return None


def first_problem_backwards(graph):
    """Outputs first, then the nodes from the last to the first."""
    known = {node.name for node in graph.nodes}
    if any(value not in known for _, value in graph.outputs) or len(dict(graph.outputs)) < len(graph.outputs):
        return "right-outputs"
    for place in reversed(range(len(graph.nodes))):
        node, before = graph.nodes[place], graph.nodes[:place]
        types = {one.name: one.type for one in before}
        if node.name in types:
            return "defined-once"
        if node.op not in OPS:
            return "known-op"
        if node.op == "input" and before and before[-1].op != "input":
            return "inputs-first"
        if not types.keys() >= set(node.inputs):
            return "defined-earlier"
        if not variant_type_is_right(node, types):
            return "right-type"
    return None


def variant_type_is_right(node, types, match=lambda a, b: a == b, consts=True):
    if node.op == "input":
        return True
    if node.op == "const":
        return not consts or match(node.type, node.value.type)
    try:
        return match(node.type, infer(OPS[node.op], tuple(types[name] for name in node.inputs), node.value))
    except GraphError:
        return False


def first_problem_variant(graph, once=True, known=True, first=True, operands="earlier", right=variant_type_is_right,
                          outputs="all", early=""):
    """The solution with one thing changed; the mistakes below are made of it."""
    types, all_names, seen_other = {}, {node.name for node in graph.nodes}, False
    for node in graph.nodes:
        if once and node.name in types:
            return "defined-once"
        if early == "op" and not right(node, types):
            return "right-type"
        if known and node.op not in OPS:
            return "known-op"
        if first and node.op == "input" and seen_other:
            return "inputs-first"
        if early == "operands" and not right(node, types):
            return "right-type"
        seen_other = seen_other or node.op != "input"
        if operands == "itself":
            types[node.name] = node.type
        there = all_names if operands == "anywhere" else types
        wanted = node.inputs[:1] if operands == "one" else node.inputs
        if any(name not in there for name in wanted):
            return "defined-earlier"
        if all(name in types for name in node.inputs) and not right(node, types):
            return "right-type"
        types[node.name] = node.type
    checked = {"all": graph.outputs, "first": graph.outputs[:1], "none": ()}[outputs]
    if any(value not in types for _, value in checked) or len(dict(checked)) < len(checked):
        return "right-outputs"
    return None


def first_problem_anywhere(graph):
    return first_problem_variant(graph, operands="anywhere")


def first_problem_itself(graph):
    return first_problem_variant(graph, operands="itself", once=False) if len(
        {node.name for node in graph.nodes}) == len(graph.nodes) else "defined-once"


def first_problem_trusting(graph):
    return first_problem_variant(graph, right=lambda node, types: True)


def first_problem_shapes(graph):
    return first_problem_variant(graph, right=lambda node, types: variant_type_is_right(
        node, types, lambda a, b: getattr(a, "shape", a) == getattr(b, "shape", b)))


def first_problem_consts_trusted(graph):
    return first_problem_variant(graph, right=lambda node, types: variant_type_is_right(node, types, consts=False))


def first_problem_unguarded(graph):
    def right(node, types):
        if node.op in ("input", "const"):
            return variant_type_is_right(node, types)
        return node.type == infer(OPS[node.op], tuple(types[name] for name in node.inputs), node.value)
    return first_problem_variant(graph, right=right)


def first_problem_any_op(graph):
    def right(node, types):
        return node.op == "input" or variant_type_is_right(node, types)
    return first_problem_variant(graph, known=False, right=right)


def first_problem_inputs_anywhere(graph):
    return first_problem_variant(graph, first=False)


def first_problem_twice_allowed(graph):
    return first_problem_variant(graph, once=False)


def first_problem_first_output(graph):
    return first_problem_variant(graph, outputs="first")


def first_problem_public_twice(graph):
    found = first_problem_variant(graph, outputs="none")
    names = {node.name for node in graph.nodes}
    return found or ("right-outputs" if any(value not in names for _, value in graph.outputs) else None)


def first_problem_no_outputs(graph):
    return first_problem_variant(graph, outputs="none")


def first_problem_type_before_op(graph):
    """Asks for the type before it knows that the op is in the table."""
    return first_problem_variant(graph, early="op")


def first_problem_type_before_operands(graph):
    """Asks for the type before it knows that the operands are there."""
    return first_problem_variant(graph, early="operands")


def first_problem_printed(graph):
    """Prints the name of the rule, and returns nothing."""


def first_problem_same_value_twice(graph):
    """Takes the values for the public names: the same value under two names is reported."""
    found = first_problem_variant(graph)
    values = [value for _, value in graph.outputs]
    return found or ("right-outputs" if len(set(values)) < len(values) else None)


def first_problem_yes_or_no(graph):
    return first_problem_variant(graph) is None


VALID_GRAPHS = tuple(parse(text) for text in (
    "graph g(x: f32[4]) -> (x) {\n return x\n}",
    "graph g() -> (c) {\n c = const(2.0) : f32[4]\n return c\n}",
    "graph g(x: f32[4]) -> (y) {\n y = mul(x, x)\n return y\n}",
    "graph g(x: f32[4]) -> (a, b) {\n y = neg(x)\n return a = y, b = y\n}",
    "graph g(x: f32[4]) -> (x, y) {\n y = neg(x)\n return x = y, y = x\n}",
    "graph g(x: f32[4], z: i8[2]) -> (y) {\n y = lt(x, x)\n return y\n}",
    "graph g(x: f32[4]) -> (y) {\n c = const(2.0) : f32[]\n y = sub(c, x)\n return y\n}",
    "graph g() -> (r) {\n r = random() {shape=[3], site=0}\n return r\n}",
    "graph g(x: f32[2,4]) -> (y) {\n s = sum(x) {axis=[1], keepdims=true}\n y = add(s, x)\n return y\n}",
    "graph g(x: f32[2,4]) -> (y) {\n y = matmul(x, x) {transpose_b=true}\n dead = cast(x) {dtype=f64}\n return y\n}",
    "graph g(x: f32[2]) -> (y) {\n one = assert_finite(x)\n y = exp(x)\n two = assert_finite(y, one)\n return y\n}",
    "graph g(x: f32[2]) -> () {\n seen = assert_finite(x)\n return\n}",
))  # fmt: skip

F4, F8 = Type("f32", (4,)), Type("f32", (8,))
X = Node("x", "input", (), None, F4)
TWO = Node("two", "const", (), Const.of(2.0, "f32"), Type("f32"))


def op(name: str, op: str, *inputs: str, type: Type | None = F4, value=None) -> Node:
    return Node(name, op, inputs, value, type)


def of_nodes(*nodes: Node, outputs=None) -> Graph:
    """A graph of these nodes; its output is the last one."""
    return Graph("g", nodes, outputs if outputs is not None else (("out", nodes[-1].name),))


INVALID_GRAPHS = (
    of_nodes(X, X),
    of_nodes(X, op("x", "neg", "x")),
    of_nodes(X, op("y", "neg", "x"), op("z", "exp", "y"), op("y", "neg", "x")),
    of_nodes(TWO, TWO),
    of_nodes(op("y", "Neg", "x")),
    of_nodes(X, op("y", "relu", "x")),
    of_nodes(X, op("y", "Neg", "x")),
    of_nodes(X, op("y", "", "x"), outputs=(("out", "x"),)),
    of_nodes(op("w", "inputs"), X),
    of_nodes(TWO, X),
    of_nodes(X, TWO, Node("w", "input", (), None, F8), op("y", "mul", "x", "two")),
    of_nodes(X, op("y", "neg", "x"), Node("w", "input", (), None, F4)),
    of_nodes(op("y", "neg", "x"), outputs=(("x", "y"),)),
    of_nodes(X, op("y", "neg", "y")),
    of_nodes(X, op("y", "add", "x", "y")),
    of_nodes(X, op("y", "concat", "x", "x", "z", value=Attrs(axis=0))),
    of_nodes(X, op("y", "neg", "z"), op("z", "exp", "x")),
    of_nodes(X, op("y", "mul", "x", "z"), op("z", "exp", "x"), outputs=(("z", "y"),)),
    of_nodes(X, op("y", "neg", "out"), outputs=(("out", "x"),)),
    of_nodes(X, op("y", "neg", "X"), outputs=(("out", "x"),)),
    of_nodes(replace(TWO, type=F4)),
    of_nodes(replace(TWO, type=Type("f64"))),
    of_nodes(replace(TWO, type=None)),
    of_nodes(X, op("y", "neg", "x", type=F8)),
    of_nodes(X, op("y", "neg", "x", type=Type("f64", (4,)))),
    of_nodes(X, op("y", "neg", "x", type=None)),
    of_nodes(X, op("y", "neg", "x", type=Type("f32", (4, 1)))),
    of_nodes(X, op("y", "lt", "x", "x")),
    of_nodes(X, op("y", "add", "x")),
    of_nodes(X, op("y", "neg", "x", "x")),
    of_nodes(X, op("y", "neg", type=F4)),
    of_nodes(X, Node("i", "input", (), None, Type("i8", (4,))), op("y", "add", "x", "i")),
    of_nodes(X, Node("w", "input", (), None, F8), op("y", "add", "x", "w")),
    of_nodes(X, op("y", "neg", "x", type=F8), op("z", "exp", "y", type=F8)),
    of_nodes(X, op("y", "sum", "x", type=F4, value=Attrs(axis=(0,), keepdims=False))),
    of_nodes(Node("r", "random", (), Attrs(dist="uniform", dtype="f32", shape=(3,), site=0), F4)),
    of_nodes(X, outputs=(("x", "y"),)),
    of_nodes(X, outputs=(("a", "x"), ("b", "a"))),
    of_nodes(X, op("y", "neg", "x"), outputs=(("a", "x"), ("a", "y"))),
    of_nodes(X, outputs=(("a", "x"), ("a", "x"))),
    of_nodes(X, op("y", "neg", "x"), op("z", "neg", "x"), outputs=(("a", "x"), ("b", "y"), ("a", "z"))),
    # several at once: none of them may make the function raise
    of_nodes(op("y", "relu", "z"), X, op("y", "neg", "x", type=None), outputs=(("a", "b"), ("a", "y"))),
    of_nodes(TWO, X, X, op("y", "add", "two"), outputs=(("a", "q"),)),
)  # fmt: skip


def verifier_cases() -> list[tuple[Graph]]:
    """Right and wrong graphs, smallest first."""
    return [(graph,) for graph in sorted((*VALID_GRAPHS, *INVALID_GRAPHS), key=len)]


def judge_verifier(function) -> Verdict:
    """Any broken rule will do; a right graph breaks none."""
    tried = 0
    try:
        with time_limit(10):
            for (graph,) in verifier_cases():
                tried += 1
                rules = broken_rules(graph)
                try:
                    got = function(graph)
                except NotImplementedError:
                    return Verdict(NOT_ATTEMPTED, tried)
                except (Exception, SystemExit) as error:
                    return Verdict(raised(error, graph), tried)
                if not (isinstance(got, str) and got in rules) if rules else got is not None:
                    lines = (f"it should give {' or '.join(map(repr, sorted(rules))) or None}", f"and gives      {got!r}")
                    sentence = ("Your verifier accepts a graph that breaks a rule." if got is None and rules else
                                "Your verifier complains about a graph that is right." if not rules else
                                "Your verifier names another rule than the one that is broken.")
                    return Verdict(Failure("wrong-value", sentence, graph, got, (graph,), lines), tried)
    except TookTooLong:
        return Verdict(Failure("too-long", "Your function does not come to an end here, or is very slow."), tried)
    return Verdict(None, tried)


# ---- the interpreter --------------------------------------------------------------------------------------------------


def interpret(graph, inputs):
    """Run the graph, node by node, with NumPy:
    a dict from public output name to array, in the order of the outputs.

    ``inputs`` is a dict from input name to array; do not change it. A const's array is
    ``node.value.array``. For any other node call ``OPS[node.op].numpy(*arrays, **attributes)`` with its
    operands' arrays, in order; ``dict(node.value or ())`` are its attributes. Every node runs once, in
    the order of the list, used or not: a print is there for its effect, and its result is a token that
    the next effect takes as an operand like any other. No graph here has random draws, and there may be
    thousands of nodes. About 10 lines.

    For ``y = neg(x)``, returned as ``out``: ``interpret(graph, {"x": np.float32([1, 2])})`` is
    ``{"out": array([-1., -2.], dtype=float32)}``.
    """
    ### BEGIN SOLUTION
    values = {}
    for node in graph.nodes:
        if node.op == "input":
            values[node.name] = inputs[node.name]
        elif node.op == "const":
            values[node.name] = node.value.array
        else:
            arrays = [values[name] for name in node.inputs]
            values[node.name] = OPS[node.op].numpy(*arrays, **dict(node.value or ()))
    return {public: values[value] for public, value in graph.outputs}
    ### END SOLUTION


def interpret_by_the_package(graph, inputs):
    return run(graph, inputs)


def interpret_from_a_copy(graph, inputs):
    """Starts from a copy of the inputs and asks the op's kind."""
    values = dict(inputs)
    for node in graph.nodes:
        kind = OPS[node.op].kind
        if kind is Kind.CONST:
            values[node.name] = np.array(node.value.array)
        elif kind is not Kind.INPUT:
            attributes = {} if node.value is None else {key: value for key, value in node.value}
            values[node.name] = OPS[node.op].numpy(*map(values.get, node.inputs), **attributes)
    return dict((public, np.asarray(values[value])) for public, value in graph.outputs)


def interpret_variant(graph, inputs, const=lambda node: node.value.array, key=lambda public, value: public,
                      skip=lambda node: False, operands=lambda node: node.inputs,
                      attributes=lambda node: dict(node.value or ())):
    """The solution with one thing changed; the mistakes below are made of it."""
    values = {}
    for node in graph.nodes:
        if node.op == "input":
            values[node.name] = inputs[node.name]
        elif node.op == "const":
            values[node.name] = const(node)
        elif not skip(node):
            values[node.name] = OPS[node.op].numpy(*[values[name] for name in operands(node)], **attributes(node))
    return {key(public, value): values[value] for public, value in graph.outputs}


def interpret_value_names(graph, inputs):
    return interpret_variant(graph, inputs, key=lambda public, value: value)


def interpret_by_position(graph, inputs):
    return interpret_variant(graph, dict(zip([node.name for node in graph.inputs], inputs.values())))


def interpret_in_place(graph, inputs):
    inputs.update(interpret_all(graph, inputs))
    return {public: inputs[value] for public, value in graph.outputs}


def interpret_all(graph, inputs):
    everything = Graph(graph.name, graph.nodes, tuple((node.name, node.name) for node in graph.nodes))
    return interpret_variant(everything, inputs)


def interpret_without_attributes(graph, inputs):
    return interpret_variant(graph, inputs, attributes=lambda node: {})


def interpret_attributes_as_they_are(graph, inputs):
    return interpret_variant(graph, inputs, attributes=lambda node: node.value)


def interpret_as_a_list(graph, inputs):
    return list(interpret_variant(graph, inputs).values())


def interpret_one_array(graph, inputs):
    return interpret_as_a_list(graph, inputs)[0]


def interpret_without_effects(graph, inputs):
    return interpret_variant(graph, inputs, skip=lambda node: OPS[node.op].kind is Kind.EFFECT)


def interpret_python_numbers(graph, inputs):
    return interpret_variant(graph, inputs, const=lambda node: node.value.array.tolist())


def interpret_operands_once(graph, inputs):
    return interpret_variant(graph, inputs, operands=lambda node: dict.fromkeys(node.inputs))


def interpret_swapped(graph, inputs):
    return interpret_variant(graph, inputs, operands=lambda node: node.inputs[::-1] if len(node.inputs) == 2
                             and OPS[node.op].kind is not Kind.EFFECT else node.inputs)


def interpret_last_output(graph, inputs):
    public, value = graph.outputs[-1]
    return {public: interpret_all(graph, inputs)[value]}


def interpret_first_of_two_names(graph, inputs):
    """Goes from values to public names with a dict: of two public names of one value, one is lost."""
    names = {value: public for public, value in graph.outputs}
    return {public: interpret_all(graph, inputs)[value] for value, public in names.items()}


def interpret_recursive(graph, inputs):
    nodes, values = {node.name: node for node in graph.nodes}, dict(inputs)

    def value_of(name):
        if name not in values:
            node = nodes[name]
            arrays = [value_of(operand) for operand in node.inputs]
            values[name] = node.value.array if node.op == "const" else OPS[node.op].numpy(*arrays, **dict(node.value or ()))
        return values[name]

    for node in graph.nodes[::-1]:
        if OPS[node.op].kind is Kind.EFFECT:
            value_of(node.name)
    return {public: value_of(value) for public, value in graph.outputs}


INTERPRET_GRAPHS = tuple(parse(text) for text in (
    "graph g(x: f32[4]) -> (x) {\n return x\n}",
    "graph g() -> (out) {\n c = const([1.0, -0.0]) : f32[2]\n return out = c\n}",
    "graph g(x: f32[4]) -> (out) {\n y = neg(x)\n return out = y\n}",
    "graph g(x: f32[4]) -> (y) {\n y = mul(x, x)\n return y\n}",
    "graph g(x: f32[4]) -> (x, y) {\n y = neg(x)\n return x = y, y = x\n}",
    "graph g(x: f32[4]) -> (b, a) {\n y = exp(x)\n return b = y, a = y\n}",
    "graph g(x: f32[4], y: f32[4]) -> (z) {\n z = sub(x, y)\n return z\n}",
    "graph g(y: f32[], x: f32[4]) -> (z) {\n z = add(y, x)\n return z\n}",
    "graph g() -> (s) {\n c = const(100) : i8[]\n s = add(c, c)\n return s\n}",
    "graph g() -> (q) {\n c = const(7) : i32[]\n d = const(2) : i32[]\n q = floor_div(c, d)\n return q\n}",
    "graph g() -> (p) {\n c = const(true) : bool[]\n p = add(c, c)\n return p\n}".replace("add", "bitwise_and"),
    "graph g(x: f16[4]) -> (s) {\n s = sum(x) {axis=[0]}\n return s\n}",
    "graph g(x: f32[2,4]) -> (s) {\n s = sum(x) {axis=[1], keepdims=true}\n return s\n}",
    "graph g(x: f32[2,3]) -> (t, r) {\n t = transpose(x) {perm=[1,0]}\n r = reshape(x) {shape=[6]}\n return t, r\n}",
    "graph g(a: f32[2,3], b: f32[2,3]) -> (m) {\n m = matmul(a, b) {transpose_b=true}\n return m\n}",
    "graph g(c: bool[4], x: f32[4]) -> (w) {\n n = neg(x)\n w = where(c, x, n)\n return w\n}",
    "graph g(x: f32[4]) -> (y) {\n dead = exp(x)\n y = cast(x) {dtype=i32}\n return y\n}",
    "graph g(x: f32[2]) -> (y) {\n seen = print(x) {label=seen}\n y = neg(x)\n return y\n}",
    "graph g(x: f32[2]) -> (y) {\n a = print(x) {label=\"seen a\"}\n y = neg(x)\n b = print(y, a) {label=\"seen b\"}\n"
    " return y\n}",
    "graph g(x: f32[4]) -> (y) {\n y = neg(x)\n fine = assert_finite(x)\n return y\n}",
    "graph g(x: f32[4]) -> (y) {\n c = const(2.0) : f32[]\n d = mul(c, x)\n y = concat(d, x, d) {axis=0}\n return y\n}",
    "graph g(x: f32[4]) -> () {\n y = neg(x)\n return\n}",
))  # fmt: skip


def interpret_cases() -> list[tuple[Graph, dict]]:
    """Graphs with inputs, smallest first; the dict of inputs is not always in the graph's order."""
    cases = []
    for graph in sorted(INTERPRET_GRAPHS, key=len):
        for inputs in special_inputs(graph, 3):
            cases.append((graph, dict(reversed(inputs.items()))))
    return cases


def long_cases() -> list[tuple[Graph, dict]]:
    """A chain that is too deep to recurse, and one in which each value is read twice by the next."""
    deep = chain(3000)
    lines = "".join(f" t{i} = add(t{i - 1}, t{i - 1})\n" for i in range(1, 61))
    wide = parse(f"graph wide(t0: f32[2]) -> (t60) {{\n{lines} return t60\n}}")
    return [(graph, special_inputs(graph, 1)[0]) for graph in (wide, deep)]


def watched(function):
    """The interpreter with its surroundings: (its answer, the effects that were seen, are the inputs as they were?)."""

    def watch(graph, inputs):
        given = {name: array.copy() for name, array in inputs.items()}
        stream = io.StringIO()
        with np.errstate(all="ignore"), contextlib.redirect_stdout(stream):
            try:
                answer = function(graph, given)
            except CheckFailed as error:
                answer = type(error).__name__
        seen = [line for line in stream.getvalue().splitlines() if line.startswith("seen")]  # a learner may print, too
        same = list(given) == list(inputs) and all(given[name].tobytes() == inputs[name].tobytes() for name in inputs)
        return answer, seen, same

    return watch


def judge_interpreter(function) -> Verdict:
    """``function`` is watched already."""
    verdict = judge_calls(function, interpret_cases(), watched(interpret), explain=explain_interpreter)
    if verdict.failure is not None:
        got = verdict.failure.got  # what it returned, what it printed, and whether the inputs are as they were
        kind = other_kind({}, got[0]) if verdict.failure.kind == "wrong-value" and isinstance(got, tuple) else ""
        return Verdict(replace(verdict.failure, sentence=kind), verdict.tried) if kind else verdict
    long = judge_calls(function, long_cases(), watched(interpret), seconds=5)
    if long.failure is not None:
        failure = long.failure
        failure = replace(failure, graph=None, got=None, case=(), details=failure.details if failure.kind == "raises" else (),
                          sentence=failure.sentence + " This was a long chain: run every node once, in a loop.")
        return Verdict(failure, verdict.tried + long.tried)
    return Verdict(None, verdict.tried + long.tried)


def explain_interpreter(case, want, got):
    lines = [f"{name} = {show(array)}" for name, array in case[1].items()]
    parts = ("it should give", "and gives     "), ("it should print", "and prints     ")
    if not isinstance(got, tuple) or len(got) != 3:
        return (*lines, f"and gives {got!r}")
    for (right, wrong), one, other in zip(parts, want, got):
        if show(one) != show(other):
            lines += [f"{right} {show(one)}", f"{wrong} {show(other)}"]
    if not got[2]:
        lines.append("it changes the inputs, which belong to the caller")
    return tuple(lines)


def show(value) -> str:
    """A value with its dtypes: they are what most often differs."""
    if isinstance(value, (np.ndarray, np.generic)):
        return f"{np.array2string(np.asarray(value), separator=', ', threshold=16)} ({np.asarray(value).dtype})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {show(one)}" for key, one in value.items()) + "}"
    return repr(value)


# ---- the stretch: an order ---------------------------------------------------------------------------------------------


def in_order(nodes):
    """Put nodes that come in any order into an order that the IR accepts:
    a list, or None where there is none.

    Inputs first, and every node after the nodes that define its operands; any such order will do. Every
    operand is defined by one of the nodes, and no two have the same name. None for a cycle:
    ``a = neg(b)`` with ``b = neg(a)``. So of ``(z, y, x)``, where z reads y and y reads x, it makes
    ``[x, y, z]``. About 12 lines.
    """
    ### BEGIN SOLUTION
    ordered = [node for node in nodes if node.op == "input"]
    waiting = [node for node in nodes if node.op != "input"]
    placed = {node.name for node in ordered}
    while waiting:
        ready = [node for node in waiting if placed.issuperset(node.inputs)]
        if not ready:
            return None
        ordered += ready
        placed |= {node.name for node in ready}
        waiting = [node for node in waiting if node.name not in placed]
    return ordered
    ### END SOLUTION


def in_order_one_by_one(nodes):
    left, ordered = sorted(nodes, key=lambda node: node.op != "input"), []
    while left:
        placed = [node.name for node in ordered]
        node = next((one for one in left if all(name in placed for name in one.inputs)), None)
        if node is None:
            return None
        left.remove(node)
        ordered.append(node)
    return tuple(ordered)


def in_order_by_depth(nodes):
    """The depth of a node is one more than the deepest of its operands."""
    depth = {node.name: 0 for node in nodes}
    for _ in range(len(nodes) + 1):
        deeper = {node.name: 1 + max((depth[name] for name in node.inputs), default=0) for node in nodes}
        if deeper == depth:
            return sorted(nodes, key=lambda node: (node.op != "input", depth[node.name]))
        depth = deeper
    return None


def in_order_reversed(nodes):
    return list(reversed(nodes))


def in_order_by_name(nodes):
    return sorted(nodes, key=lambda node: (node.op != "input", node.name))


def in_order_by_operands(nodes):
    return sorted(nodes, key=lambda node: (node.op != "input", len(node.inputs)))


def in_order_two_sweeps(nodes):
    ordered = [node for node in nodes if node.op == "input"]
    rest = [node for node in nodes if node.op != "input"]
    for _ in range(2):
        for node in list(rest):
            if all(name in [one.name for one in ordered] for name in node.inputs):
                ordered.append(node)
                rest.remove(node)
    return None if rest else ordered


def in_order_inputs_as_they_come(nodes):
    left, ordered = list(nodes), []
    while left:
        placed = [node.name for node in ordered]
        ready = [node for node in left if all(name in placed for name in node.inputs)]
        if not ready:
            return None
        ordered.append(ready[0])
        left.remove(ready[0])
    return ordered


def in_order_twice(nodes):
    """Lists a node once for each reader."""
    by_name = {node.name: node for node in nodes}

    def before(node, depth):
        if depth > len(nodes):
            raise OverflowError
        return [one for name in node.inputs for one in before(by_name[name], depth + 1)] + [node]

    try:
        found = [one for node in nodes for one in before(node, 0)]
    except OverflowError:
        return None
    return sorted(found, key=lambda node: node.op != "input")


def in_order_depth_first(nodes):
    """Places a node after its operands, and asks nothing of a node that it has been at: a cycle goes unseen."""
    by_name, ordered, been = {node.name: node for node in nodes}, [], set()

    def place(node):
        if node.name not in been:
            been.add(node.name)
            for name in node.inputs:
                place(by_name[name])
            ordered.append(node)

    for node in sorted(nodes, key=lambda node: node.op != "input"):
        place(node)
    return ordered


def in_order_depth_first_for_ever(nodes):
    by_name, ordered = {node.name: node for node in nodes}, []

    def place(node):
        if node not in ordered:
            for name in node.inputs:
                place(by_name[name])
            ordered.append(node)

    for node in sorted(nodes, key=lambda node: node.op != "input"):
        place(node)
    return ordered


def in_order_printed(nodes):
    """Prints the order, and returns nothing."""


def in_order_forever(nodes):
    left, ordered = sorted(nodes, key=lambda node: node.op != "input"), []
    while left:
        node = left.pop(0)
        placed = [one.name for one in ordered]
        (ordered if all(name in placed for name in node.inputs) else left).append(node)
    return ordered


def in_order_leftovers(nodes):
    """What is in a cycle is left out."""
    left, ordered = sorted(nodes, key=lambda node: node.op != "input"), []
    for _ in nodes:
        for node in list(left):
            if all(name in [one.name for one in ordered] for name in node.inputs):
                ordered.append(node)
                left.remove(node)
    return ordered


Y, Z = op("y", "neg", "x"), op("z", "exp", "y")
W = Node("w", "input", (), None, F4)
SHUFFLED = (
    (X,), (), (X, Y), (Y, X), (TWO, X), (Z, Y, X), (Y, Z, X), (op("a", "mul", "y", "y"), Y, X),
    (op("b", "neg", "a"), op("a", "mul", "x", "x"), X),
    (op("a", "neg", "a"),), (X, op("a", "neg", "b"), op("b", "neg", "a")), (op("a", "add", "x", "b"), op("b", "neg", "a"), X),
    (op("y", "mul", "x", "two"), TWO, X), (Y, TWO, W, X), (op("b", "neg", "y"), op("a", "add", "b", "w"), W, Y, X),
    (op("a", "neg", "b"), op("b", "neg", "c"), op("c", "neg", "d"), op("d", "neg", "x"), X),
    (op("a", "neg", "b"), op("b", "neg", "c"), op("c", "neg", "a"), Y, X),
    (op("a", "concat", "x", "x", "y"), Y, X),
)  # fmt: skip
STEPS = [X] + [op(f"t{i}", "add", f"t{i - 1}" if i else "x", f"t{i - 1}" if i else "x") for i in range(150)]
LONG = (tuple(reversed(STEPS)), tuple(STEPS[i * 67 % 151] for i in range(151)))  # the second: sweeps in neither direction are enough


def judge_order(function) -> Verdict:
    """Any right order will do."""
    tried = 0
    try:
        with time_limit(1.5):
            for nodes in (*SHUFFLED, *LONG):
                tried += 1
                try:
                    got = function(nodes)
                except NotImplementedError:
                    return Verdict(NOT_ATTEMPTED, tried)
                except (Exception, SystemExit) as error:
                    return Verdict(replace(raised(error, None), case=(nodes,)), tried)
                sentence = what_is_wrong(nodes, got)
                if sentence:
                    return Verdict(Failure("wrong-value", sentence, None, got, (nodes,), explain_order(nodes, got)), tried)
    except TookTooLong:
        return Verdict(Failure("too-long", "Your function does not come to an end here, or is very slow.", case=(nodes,),
                               details=explain_order(nodes, None)[:1]), tried)
    return Verdict(None, tried)


def what_is_wrong(nodes, got) -> str:
    possible = in_order(nodes) is not None
    if got is None or not possible:
        return "" if (got is None) is not possible else (
            "There is an order, and your function found none." if possible else "There is a cycle, so there is no order.")
    if not isinstance(got, (list, tuple)):
        return f"Your function returned {describe(got)}, not a list of nodes."
    if not all(isinstance(node, Node) for node in got):
        return "The list that your function returned holds something that is not a Node."
    if sorted(node.name for node in got) != sorted(node.name for node in nodes) or set(got) != set(nodes):
        return "Your function lost a node, or lists one twice."
    rules = broken_rules(of_nodes(*got, outputs=())) & {"inputs-first", "defined-earlier"}
    return f"In this order the graph breaks {' and '.join(sorted(rules))}." if rules else ""


def explain_order(nodes, got) -> tuple[str, ...]:
    def written(some):
        few = [exact_line(replace(node, type=F4)).partition(" : ")[0] if isinstance(node, Node) else repr(node) for node in some[:6]]
        return "; ".join(few) + ("; …" if len(some) > 6 else "") or repr(some)
    return f"given: {written(nodes)}", f"gives: {written(got) if isinstance(got, (list, tuple)) else repr(got)}"


# ---- the lists ---------------------------------------------------------------------------------------------------------

EXERCISES = (
    Exercise(
        "01", "Who reads a value?", users_of,
        lambda function: judge_calls(function, users_cases(), users_of, explain=explain_users),
        ("A node does not know its readers, so look through all nodes and ask each what it reads.",
         "Start with an empty list. For each node in graph.nodes, and for each operand in node.inputs, append node.name"
         " where"
         " the operand is the name that you look for.",
         "readers = []\nfor node in graph.nodes:\n    for operand in ...:\n        if ...:\n           "
         " readers.append(...)\n"
         "return readers"),
        (Mistake(users_of_once, "wrong-value", "mul(x, x) reads x twice, and both count: ask each operand, not whether"
                 " there is one."),
         Mistake(users_of_and_outputs, "wrong-value", "An output is no node: graph.outputs is a table beside the nodes."),
         Mistake(users_of_as_nodes, "wrong-value", "This lists the nodes themselves; their names are wanted."),
         Mistake(users_of_as_text, "wrong-value", "x is a part of the text xs, but not the same name: compare with ==."),
         Mistake(users_of_upside_down, "wrong-value", "This is what the node reads. Wanted is who reads the node."),
         Mistake(users_of_sorted, "wrong-value", "The order of the nodes is wanted, not the alphabet's."),
         Mistake(users_of_first_operand, "wrong-value", "A value may also be the second operand, or the third.")),
        (users_of_in_one_line, users_of_by_counting, users_of_by_the_package),
        probes=tuple(users_cases()),
        without=("users",),
        praise="You walked over everything to find the readers of one value. That is the price of a node that stores"
               " only what it reads.",
    ),
    Exercise(
        "01", "A small verifier", first_problem, judge_verifier,
        ("Walk the nodes once, and remember the type of each name that you have seen: whatever is not remembered is not"
         " defined yet.",
         "Keep a dict from name to type. For each node ask, in this order: is its name in the dict already? Is its op in"
         " OPS? Is it"
         " an input after something else? Is an operand missing from the dict? Is its type wrong? Then remember its"
         " type. After the"
         " walk, look at the outputs.",
         "types = {}\nfor node in graph.nodes:\n    if node.name in types:\n        return \"defined-once\"\n    ...\n"
         "    if not type_is_right(node, types):\n        return \"right-type\"\n    types[node.name] = node.type\nfor"
         " public, value in"
         " graph.outputs:\n    ...\nreturn None"),
        (Mistake(first_problem_anywhere, "wrong-value", "The operand is defined, but not before it is read. Ask only the"
                 " nodes above this one."),
         Mistake(first_problem_itself, "wrong-value", "A node cannot read itself: remember its name after its operands"
                 " are checked."),
         Mistake(first_problem_trusting, "wrong-value", "The stored type is a claim. Infer it again and compare."),
         Mistake(first_problem_shapes, "wrong-value", "The dtype is a part of the type, too."),
         Mistake(first_problem_consts_trusted, "wrong-value", "A const's type is a claim, too: compare it with"
                 " node.value.type."),
         Mistake(first_problem_unguarded, "raises", "infer raises GraphError where the operands do not fit. Catch it."),
         Mistake(first_problem_any_op, "raises", "OPS[node.op] exists only for a known op: ask for that first."),
         Mistake(first_problem_inputs_anywhere, "wrong-value", "An input may not come after another kind of node."),
         Mistake(first_problem_twice_allowed, "wrong-value", "A name that is defined twice leaves open which value is"
                 " meant."),
         Mistake(first_problem_first_output, "wrong-value", "Every output counts, not only the first."),
         Mistake(first_problem_public_twice, "wrong-value", "One public name stands twice in graph.outputs: which of the two would"
                 " the caller get? Ask for that, too."),
         Mistake(first_problem_no_outputs, "wrong-value", "The outputs are a table beside the nodes: look at it after the"
                 " walk."),
         Mistake(first_problem_type_before_op, "raises", "type_is_right looks the op up in OPS, so ask first whether it is"
                 " there."),
         Mistake(first_problem_type_before_operands, "raises", "type_is_right looks up the operands' types, so ask first whether"
                 " all of them are there."),
         Mistake(first_problem_printed, "wrong-value", "Your function returns None, whatever the graph: is a return"
                 " missing? To print a name is not to return it."),
         Mistake(first_problem_same_value_twice, "wrong-value", "One value may be returned under two public names; the"
                 " public names must differ."),
         Mistake(first_problem_yes_or_no, "wrong-value", "The name of the broken rule is wanted, and None where there is"
                 " none.")),
        (first_problem_rule_by_rule, first_problem_backwards),
        probes=tuple(verifier_cases()),
        without=("verify", "problems"),
        praise="One walk and one dict. Whoever writes a pass after you gets a sentence instead of a wrong number three"
               " passes later.",
    ),
    Exercise(
        "01", "The interpreter", interpret, judge_interpreter,
        ("Keep a dict from name to array. Operands come first, so when you reach a node, its operands' arrays are there.",
         "For an input take the caller's array, for a const the array of its value, for anything else the result of calling"
         " OPS[node.op].numpy on the operands' arrays with the attributes as keywords. At the end, look up each output's"
         " value"
         " and return it under its public name.",
         "values = {}\nfor node in graph.nodes:\n    if node.op == \"input\":\n        values[node.name] = ...\n    elif"
         " node.op =="
         " \"const\":\n        ...\n    else:\n        ...\nreturn {public: values[value] for public, value in"
         " graph.outputs}"),
        (Mistake(interpret_value_names, "wrong-value", "The caller knows the public names, not the names of the values"
                 " behind them."),
         Mistake(interpret_by_position, "wrong-value", "Inputs are found by name: the caller's dict may be in any order."),
         Mistake(interpret_in_place, "wrong-value", "The dict of inputs belongs to the caller: put your values into one"
                 " of your own."),
         Mistake(interpret_without_attributes, "raises", "Attributes such as axis belong to the operation: pass them on."),
         Mistake(interpret_attributes_as_they_are, "raises", "An operation without attributes has None for its value:"
                 " dict(node.value or ()) is {} then."),
         Mistake(interpret_as_a_list, "wrong-value", "The caller asks for outputs by their public names: return a dict."),
         Mistake(interpret_one_array, "wrong-value", "There may be several outputs, or none: return a dict from public name to"
                 " array."),
         Mistake(interpret_without_effects, "wrong-value", "A print or an assertion is a node like the others, and runs,"
                 " too."),
         Mistake(interpret_python_numbers, "wrong-value", "A Python number has no dtype. Take node.value.array as it is."),
         Mistake(interpret_operands_once, "raises", "mul(x, x) has two operands, both x."),
         Mistake(interpret_swapped, "wrong-value", "The operands are in the wrong order: x - y is not y - x."),
         Mistake(interpret_last_output, "wrong-value", "There may be several outputs, or none."),
         Mistake(interpret_first_of_two_names, "wrong-value", "One value may be returned under two public names: go from"
                 " public name"
                 " to value, not back."),
         Mistake(interpret_recursive, "raises", "A graph may be deeper than Python recurses. The list has an order: use"
                 " it.")),
        (interpret_from_a_copy, interpret_by_the_package),
        probes=tuple(interpret_cases()),
        adapt=watched,
        without=("run", "compile"),
        praise="Ten lines, and they run any graph without random draws. Each pass will be tested like this: same inputs,"
               " same bits.",
    ),
    Exercise(
        "01", "An order", in_order, judge_order,
        ("A node can be placed as soon as all its operands are placed. Inputs wait for nobody.",
         "Start with the inputs. Again and again, take the waiting nodes whose operands are all placed, and place them."
         " If there is"
         " none and some still wait, they wait for one another: a cycle.",
         "ordered = [inputs]\nwaiting = [the others]\nwhile waiting:\n    ready = [...]\n    if not ready:\n       "
         " return None\n"
         "    ...\nreturn ordered"),
        (Mistake(in_order_reversed, "wrong-value", "Backwards is right only by chance."),
         Mistake(in_order_by_name, "wrong-value", "Names say nothing about who reads whom."),
         Mistake(in_order_by_operands, "wrong-value", "How many operands a node has says nothing about where it belongs."),
         Mistake(in_order_two_sweeps, "wrong-value", "Two sweeps are not enough: sweep as long as something can be"
                 " placed."),
         Mistake(in_order_inputs_as_they_come, "wrong-value", "A constant is ready at once, but inputs come first."),
         Mistake(in_order_twice, "wrong-value", "A node with two readers was listed twice: remember what is placed."),
         Mistake(in_order_depth_first, "wrong-value", "Nobody noticed the cycle. A node that you meet again while its own"
                 " operands are being placed waits for itself: then there is no order, and the answer is None."),
         Mistake(in_order_depth_first_for_ever, "raises", "In a cycle this recursion never comes to an end. Remember which nodes are"
                 " being placed: to meet one of them again is a cycle."),
         Mistake(in_order_printed, "wrong-value", "Your function returns None, whatever the nodes: is a return missing?"),
         Mistake(in_order_forever, "too-long", "In a cycle everybody waits for somebody: stop when nothing is ready."),
         Mistake(in_order_leftovers, "wrong-value", "What waits in a cycle may not just be left out.")),
        (in_order_one_by_one, in_order_by_depth),
        probes=tuple((nodes,) for nodes in SHUFFLED if in_order(nodes) is not None),
        praise="This is topological sorting. Because our list is always in order, no pass of this course ever has to do"
               " it.",
        stretch=True,
    ),
)  # fmt: skip

REFUTATIONS = ()

Y2 = Node("y", "mul", ("x", "two"), None, F4)
SEEN = Node("seen", "assert_finite", ("y",), None, Type("token"))
GOOD = Graph("good", (X, TWO, Y2, SEEN, Z), (("out", "z"),))

def lesson_earlier(graph: Graph) -> str:
    names = {node.name for node in graph.nodes}
    lost = [name for node in graph.nodes for name in node.inputs if name not in names]
    if lost:
        return (f"No node defines {lost[0]}, so nobody could compute this. Who asks only the nodes above finds a slip of the pen, a"
                " wrong order and a cycle, all three with one question.")
    if in_order(graph.nodes) is None:
        return "What waits for itself never starts. In every list that keeps this rule there is no cycle: the order is the proof."
    return "In every list that keeps this rule there is no cycle: the order is the proof."


def lesson_value(graph: Graph) -> str:
    node = next(node for node in graph.nodes if node.op in OPS and not has_right_value(node))
    if node.op == "const":
        if isinstance(node.value, np.generic):
            return ("A NumPy scalar has a dtype, but == asks for the number alone: np.float32(0.0) == -0.0. A Const is equal only to the"
                    " same bits of the same dtype.")
        if isinstance(node.value, np.ndarray):
            return ("Whoever holds an array may write to it, and == of two arrays is an array, not an answer. A Const never changes,"
                    " and is equal by dtype, shape and bits.")
        if isinstance(node.value, (bool, int, float, complex)):
            return (f"A Python {node.value!r} has no dtype, and is equal to numbers of other kinds: 1 == 1.0 == True. A Const has a"
                    " dtype, a shape and bits.")
        return "A Const has a dtype, a shape and bits: only so can two constants be compared, and one be computed with."
    if node.op == "input":
        return "An input is a name and a type. Its value comes from the caller, when the graph is run."
    if not OPS[node.op].attrs:
        return (f"{node.op} has no attributes, so its value is None. With anything else there, two nodes that compute the same would"
                " not be equal.")
    asked = ", ".join(name for name, _, _ in OPS[node.op].attrs)
    return (f"The row of {node.op} asks for: {asked}. A node writes all its attributes out, in one form, so that what means the"
            " same is equal.")


def lesson_type(graph: Graph) -> str:
    types = {node.name: node.type for node in graph.nodes}
    node = next(node for node in graph.nodes if not has_right_type(node, types))
    if OPS[node.op].kind in (Kind.INPUT, Kind.CONST):
        if node.inputs:
            return f"An {node.op} reads nothing: its value comes from the caller." if node.op == "input" else (
                "A const reads nothing: its value stands in the node.")
        return "A const says its type twice, in the node and in its value. verify compares the two." if node.op == "const" else (
            "An input's type is all that the compiler knows of it. Every other type is inferred from there.")
    try:
        infer(OPS[node.op], tuple(types[name] for name in node.inputs), node.value)
    except (GraphError, TypeError, AttributeError):
        return (f"The row of {node.op} refuses these operands, so infer has no answer: whatever type the node stated, it would be"
                " wrong.")
    return "A stored type is a claim. verify infers it again, so a pass cannot spread a lie."


def lesson_effects(graph: Graph) -> str:
    found = [node for node in graph.nodes if OPS[node.op].kind is Kind.EFFECT]
    if any(len(node.inputs) == OPS[node.op].arity[0] for node in found[1:]):
        return "Without the token nothing would keep the two effects in order."
    return "It waits for another effect than the one before it, so nothing would keep these two in order."


def lesson_outputs(graph: Graph) -> str:
    types = {node.name: node.type for node in graph.nodes}
    if any(value not in types for _, value in graph.outputs):
        return "An output is a promise to the caller, and no node computes what is promised here."
    if any(types[value].dtype == TOKEN for _, value in graph.outputs):
        return "A token holds no data, so the caller would get nothing. It is there for the next effect alone."
    return "The caller asks by public name. Under one name there can be only one answer."


BREAKS = (
    Break("01", "defined-once", GOOD, 'Graph("bad", (x, two, y, y, seen, z), good.outputs)',
          "This is about the field name: two nodes in the tuple have the same. Everything else stays right, so all that is read must"
          " still be defined above.",
          "Put one node into the tuple twice: (x, two, y, y, seen, z).",
          lambda graph: "Which of the two is meant where the name is read? With one definition a name needs no context: that is"
          " static single assignment."),
    Break("01", "known-op", GOOD,
          'Graph(\n    "bad", (x, two, y, seen, Node("z", "expp", ("y",), None, x.type)), good.outputs)',
          "This is about the field op: a word that is no key of OPS. It takes a new Node with an old name.",
          'In place of z write Node("z", "expp", ("y",), None, x.type).',
          lambda graph: "An op that is not in the table has no meaning: nobody could run it, type it or fold it."),
    Break("01", "inputs-first", GOOD, 'Graph("bad", (two, x, y, seen, z), good.outputs)',
          "This is about the order of the tuple. Which node could stand above an input, because it reads nothing itself?",
          "Exchange x and two.",
          lambda graph: "With the inputs in front, the signature of a graph can be read off its first lines."),
    Break("01", "defined-earlier", GOOD, 'Graph("bad", (x, two, z, y, seen), good.outputs)',
          "This is about the field inputs, and about what stands above: a node reads what is not there yet.",
          "Move z in front of y, which it reads.",
          lesson_earlier),
    Break("01", "right-value", GOOD,
          'Graph(\n    "bad", (x, Node("two", "const", (), 2.0, Type("f32")), y, seen, z), good.outputs)',
          "This is about the field value, the fourth: a Const in a const, attributes where the row asks for some, otherwise None.",
          'In place of two write a node that holds a plain Python number, not Const.of(2.0, "f32").',
          lesson_value),
    Break("01", "right-type", GOOD,
          'Graph(\n    "bad", (x, two, y, seen, Node("z", "exp", ("y",), None, Type("f64", (4,)))), good.outputs)',
          "This is about the field type, the last one: the node says another type than infer. The name, the op and the operands may"
          " stay as they are.",
          'Make z anew, and let it say Type("f64", (4,)).',
          lesson_type),
    Break("01", "effects-in-line", GOOD,
          'Graph(\n    "bad",\n    (x, two, y, seen, z, Node("again", "assert_finite", ("z",), None, Type("token"))),\n    good.outputs)',
          "One effect alone is always in line: this takes a second one. What would it have to read to come after the first?",
          "Append a second assert_finite that reads z, and leave out its last operand, the token seen.",
          lesson_effects),
    Break("01", "right-outputs", GOOD, 'Graph("bad", good.nodes, (("out", "zz"),))',
          "This is about the table of outputs, pairs (public name, value name). The nodes may all stay.",
          'Name a value that no node defines, (("out", "zz"),), or the token seen, or one public name twice.',
          lesson_outputs),
)  # fmt: skip
