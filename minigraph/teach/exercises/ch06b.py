"""Chapter 06b, the project: the exercises, their mistakes and the pass to refute. Networks are those of ``..project``."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np

from .. import project
from ...ir import Graph, defs
from ...passes import dce as package_dce
from ...passes import fold as package_fold
from ...text import parse
from ..exercise import Exercise, Mistake, Refutation
from ..graphs import Space
from ..project import as_pass, judge_network

SPACE = Space(
    inputs=(("x", "f32[4]"),),
    consts=(("two", 2.0, "f32[]"), ("zero", 0.0, "f32[]"), ("minus", -0.0, "f32[]"), ("big", 100, "i8[]")),
    ops=(("add", {}), ("sub", {}), ("mul", {}), ("neg", {})),
    limit=400, larger=100,
)  # fmt: skip

TARGETS = tuple(parse(text) for text in (
    "graph number() -> (y) {\n a = const(2.0)\n y = neg(a)\n return y\n}",
    "graph chain() -> (y) {\n a = const(2.0)\n b = neg(a)\n y = neg(b)\n return y\n}",
    "graph difference() -> (y) {\n a = const(2.0)\n b = const(3.0)\n y = sub(a, b)\n return y\n}",
    "graph twice() -> (y) {\n a = const(100) : i8[]\n y = add(a, a)\n return y\n}",
    "graph large() -> (y) {\n a = const(9007199254740993) : i64[]\n y = neg(a)\n return y\n}",
    "graph square(x: f32[4]) -> (y) {\n y = mul(x, x)\n return y\n}",
    "graph tiny() -> (y) {\n a = const(16777216.0)\n b = const(1.0)\n c = add(a, b)\n y = add(c, b)\n return y\n}",
    "graph unread(x: f32[4], z: f32[4]) -> (y) {\n y = neg(x)\n return y\n}",
    "graph itself(x: f32[4]) -> (x) {\n return x\n}",
    "graph number_too() -> (a) {\n a = const(2.0)\n return a\n}",
    "graph dead(x: f32[4]) -> (y) {\n a = neg(x)\n b = neg(a)\n y = neg(x)\n return y\n}",
    "graph behind(x: f32[4]) -> (y) {\n y = neg(x)\n a = neg(y)\n b = neg(a)\n return y\n}",
    "graph both(x: f32[4]) -> (a, b) {\n a = neg(x)\n b = neg(a)\n return a, b\n}",
    "graph three(x: f32[4]) -> (a, b, c) {\n a = neg(x)\n b = mul(x, x)\n c = mul(a, b)\n return a, b, c\n}",
    "graph shared(x: f32[4]) -> (y) {\n t = const(2.0)\n u = neg(t)\n a = mul(x, u)\n y = mul(a, u)\n return y\n}",
    "graph nothing(x: f32[4]) -> (y) {\n z = const(0.0)\n y = mul(x, z)\n return y\n}",
    "graph wide(x: f64[3]) -> (y) {\n a = const(0.1)\n b = const(0.2)\n c = add(a, b)\n y = mul(c, x)\n return y\n}".replace(
        "const(0.1)", "const(0.1) : f64[]").replace("const(0.2)", "const(0.2) : f64[]"),
    "graph expression(x: f32[4]) -> (y) {\n three = const(3.0)\n four = const(4.0)\n seven = add(three, four)\n m = mul(seven, x)\n"
    " five = const(5.0)\n zero = const(0.0)\n n = mul(five, zero)\n y = add(m, n)\n return y\n}",
))  # fmt: skip


def computed(graph: Graph) -> int:
    """Operations on constants alone: what folding should leave none of."""
    nodes = defs(graph)
    return sum(bool(node.inputs) and all(nodes[name].op == "const" for name in node.inputs) for node in graph.nodes)


def fold_all(graph: Graph) -> Graph:
    return package_fold(graph).graph


def sweep(graph: Graph) -> Graph:
    return package_dce(graph).graph


# ---- constant folding -------------------------------------------------------------------------------------------------


def constant_folding(graph):
    """Compute every operation whose inputs are all constants.
    Takes a networkx.MultiDiGraph and returns a new one.

    The graph's nodes are ``project.Node(op, inputs, value, output)``; ``nx.topological_sort(graph)``
    gives them with operands first (the graph itself may list them in any order). Leave the given graph
    and its nodes as they are: make new Nodes, whose inputs are new Nodes, and return
    ``project.network(nodes)``, which adds the edges. A folded node becomes a "const" without inputs;
    its value is what ``project.MEANING[op](*values)`` gives, and its output flag stays. Nodes that
    nobody reads any more may stay.
    Example: after 3.0 + 4.0 is folded, the graph has a const 7.0 in the place of the add.
    """
    ### BEGIN SOLUTION
    new = {}  # node of the given graph -> node of the new one
    for node in nx.topological_sort(graph):
        inputs = [new[one] for one in node.inputs]
        if inputs and all(one.op == "const" for one in inputs):
            value = project.MEANING[node.op](*[one.value for one in inputs])
            new[node] = project.Node("const", [], value, node.output)
        else:
            new[node] = project.Node(node.op, inputs, node.value, node.output)
    return project.network(new.values())
    ### END SOLUTION


def folding_by_edges(graph):
    """Adds the edges itself, and skips the constants that are no longer read."""
    result, new = nx.MultiDiGraph(), {}
    for node in list(nx.topological_sort(graph)):
        operands = [new[one] for one in node.inputs]
        made = project.Node(node.op, operands, node.value, node.output)
        if operands and not any(one.op != "const" for one in operands):
            made = project.Node("const", [], project.MEANING[node.op](*(one.value for one in operands)), node.output)
        new[node] = made
        result.add_node(made)
        for place, one in enumerate(made.inputs):
            result.add_edge(one, made, key=place)
    read = {one for made in result for one in made.inputs}
    result.remove_nodes_from([made for made in result if made.op == "const" and made not in read and not made.output])
    return result


def folding_in_rounds(graph):
    """Folds one level a round, until there is nothing left."""
    while True:
        new, changed = {}, False
        for node in nx.topological_sort(graph):
            if node.inputs and all(one.op == "const" for one in node.inputs):
                value = project.MEANING[node.op](*[one.value for one in node.inputs])
                new[node], changed = project.Node("const", [], value, node.output), True
            else:
                new[node] = project.Node(node.op, [new[one] for one in node.inputs], node.value, node.output)
        graph = project.network(new.values())
        if not changed:
            return graph


def folding_variant(graph, deep=True, flag=True, compute=None, also=None, connect=True, order=nx.topological_sort, keep=False):
    """The solution with one thing changed."""
    new = {}
    compute = compute or (lambda op, values: project.MEANING[op](*values))
    for node in order(graph):
        inputs = [new[one] for one in node.inputs]
        operands = inputs if deep else node.inputs
        if inputs and all(one.op == "const" for one in operands):
            new[node] = project.Node("const", inputs if keep else [], compute(node.op, [one.value for one in inputs]), node.output and flag)
        elif also is not None and (value := also(node, inputs)) is not None:
            new[node] = project.Node("const", [], value, node.output)
        else:
            new[node] = project.Node(node.op, inputs, node.value, node.output)
    if connect:
        return project.network(new.values())
    result = nx.MultiDiGraph()
    result.add_nodes_from(new.values())
    return result


def folding_one_level(graph):
    return folding_variant(graph, deep=False)


def folding_loses_output(graph):
    return folding_variant(graph, flag=False)


def folding_swapped(graph):
    return folding_variant(graph, compute=lambda op, values: project.MEANING[op](*values[::-1]))


def folding_in_python(graph):
    """Python numbers: every integer fits, and every float is a double."""
    return folding_variant(graph, compute=lambda op, values: project.MEANING[op](*[value.item() for value in values]).item())


def folding_in_float64(graph):
    def compute(op, values):
        return project.MEANING[op](*map(np.float64, values)).astype(values[0].dtype)
    return folding_variant(graph, compute=compute)


def folding_times_zero(graph):
    """Also folds x * 0, because the product is known without x."""
    def also(node, inputs):
        if node.op == "mul":
            return next((one.value for one in inputs if one.op == "const" and one.value == 0), None)
    return folding_variant(graph, also=also)


def folding_without_edges(graph):
    return folding_variant(graph, connect=False)


def folding_in_given_order(graph):
    return folding_variant(graph, order=list)


def folding_keeps_inputs(graph):
    return folding_variant(graph, keep=True)


def folding_in_place(graph):
    for node in nx.topological_sort(graph):
        if node.inputs and all(one.op == "const" for one in node.inputs):
            node.value = project.MEANING[node.op](*[one.value for one in node.inputs])
            node.op, node.inputs = "const", []
    return project.network(list(graph))


def folding_nothing(graph):
    return graph


def folding_digraph(graph):
    return nx.DiGraph(folding_variant(graph))


# ---- dead code ----------------------------------------------------------------------------------------------------------


def dead_code_elimination(graph):
    """Keep the outputs, all that they read, directly or through others, and the inputs.
    Returns a new MultiDiGraph.

    An output is a node with ``node.output`` set; there may be several. Nodes with op "input" stay even
    if unused: they are what the caller passes in. Nothing else is kept, and no node is changed. Of
    networkx you may want ``nx.ancestors(graph, node)``: all nodes from which edges lead to ``node``.
    Example: of a = x * 2, b = sin(a), with a as the only output, b goes.
    """
    ### BEGIN SOLUTION
    live = set()
    for node in graph:
        if node.output:
            live |= {node} | nx.ancestors(graph, node)
    kept = [node for node in graph if node in live or node.op == "input"]
    return nx.MultiDiGraph(graph.subgraph(kept))
    ### END SOLUTION


def dead_by_worklist(graph):
    todo, live = [node for node in graph if node.output or node.op == "input"], set()
    while todo:
        node = todo.pop()
        if node not in live:
            live.add(node)
            todo += node.inputs
    return project.network(node for node in graph if node in live)


def dead_by_peeling(graph):
    """Takes away, again and again, what nobody reads."""
    result = graph.copy()
    while True:
        dead = [node for node in result if result.out_degree(node) == 0 and not node.output and node.op != "input"]
        if not dead:
            return result
        result.remove_nodes_from(dead)


def kept_only(graph, live):
    return project.network(node for node in graph if node in live)


def dead_first_output(graph):
    output = next(node for node in graph if node.output)
    live = {output} | nx.ancestors(graph, output)
    return kept_only(graph, live | {node for node in graph if node.op == "input"})


def dead_inputs_too(graph):
    live = set()
    for node in graph:
        if node.output:
            live |= {node} | nx.ancestors(graph, node)
    return kept_only(graph, live)


def dead_once(graph):
    read = {one for node in graph for one in node.inputs}
    return kept_only(graph, {node for node in graph if node in read or node.output or node.op == "input"})


def dead_descendants(graph):
    live = {node for node in graph if node.op == "input"}
    for node in graph:
        if node.output:
            live |= {node} | nx.descendants(graph, node)
    return graph.subgraph(live).copy()


def dead_one_step(graph):
    live = {node for node in graph if node.op == "input" or node.output}
    live |= {one for node in graph if node.output for one in node.inputs}
    return graph.subgraph(live).copy()


def dead_in_place(graph):
    live = {node for node in graph if node.op == "input"}
    for node in graph:
        if node.output:
            live |= {node} | nx.ancestors(graph, node)
    graph.remove_nodes_from([node for node in graph if node not in live])
    return graph


def dead_and_zero(graph):
    """Treats a zero as unused, as the document does: what reads it reads its other operand instead."""
    new = {}
    for node in nx.topological_sort(graph):
        inputs = [new[one] for one in node.inputs]
        rest = [one for one in inputs if not (one.op == "const" and one.value == 0)]
        if node.op == "add" and len(rest) == 1 and not (node.output and rest[0].output):
            rest[0].output |= node.output
            new[node] = rest[0]
        else:
            new[node] = project.Node(node.op, inputs, node.value, node.output)
    return dead_code_elimination(project.network(new.values()))


def dead_nothing(graph):
    return project.network(graph)


# ---- one rule -------------------------------------------------------------------------------------------------------------


def drop_plus_zero(graph):
    """Replace every addition of a zero by its other operand, where that keeps every bit.
    Returns a new MultiDiGraph.

    The zero is a "const" node on either side of an "add", with a value that is a NumPy number. Dropping
    it is exact for an integer 0 and for -0.0, and not for 0.0 (``np.signbit(value)`` is True for -0.0).
    If the add was an output, the other operand becomes one; but if that is an output already, the add
    must stay, because one flag cannot stand for two outputs. Make new Nodes, as in
    ``constant_folding``; the zeros themselves may stay. Example: in integers (7 * x) + 0 becomes 7 * x.
    """
    ### BEGIN SOLUTION
    new = {}  # node of the given graph -> node of the new one
    for node in nx.topological_sort(graph):
        inputs = [new[one] for one in node.inputs]
        stands_in = None
        if node.op == "add":
            for other, zero in (inputs, inputs[::-1]):
                if zero.op == "const" and zero.value == 0:
                    if zero.value.dtype.kind in "iu" or np.signbit(zero.value):
                        stands_in = other
        if stands_in is None or (node.output and stands_in.output):
            new[node] = project.Node(node.op, inputs, node.value, node.output)
        else:
            stands_in.output |= node.output
            new[node] = stands_in
    return project.network(new.values())
    ### END SOLUTION


def exact(value) -> bool:
    """Does adding this change no bit of any number of its dtype?"""
    return bool(value == 0) and (value.dtype.kind in "iu" or bool(np.signbit(value)))


def drop_by_bits(graph):
    """Compares bytes: an integer 0 is all zero bits, and -0.0 is the sign bit alone."""
    new = {}
    for node in nx.topological_sort(graph):
        operands = [new[one] for one in node.inputs]
        keep = None
        if node.op == "add":
            a, b = operands
            for one, other in ((a, b), (b, a)):
                if one.op == "const":
                    zero = np.zeros((), one.value.dtype)
                    if np.asarray(one.value).tobytes() == (-zero).tobytes():
                        keep = other
        if keep is not None and not (keep.output and node.output):
            keep.output = keep.output or node.output
            new[node] = keep
        else:
            new[node] = project.Node(node.op, operands, node.value, node.output)
    return project.network(dict.fromkeys(new.values()))


def drop_in_two_steps(graph):
    """First decides what stands for what, then makes the nodes."""
    stands, flags = {}, {node: node.output for node in graph}
    for node in nx.topological_sort(graph):
        if node.op == "add":
            a, b = (stands.get(one, one) for one in node.inputs)
            other = b if a.op == "const" and exact(a.value) else a if b.op == "const" and exact(b.value) else None
            if other is not None and not (flags[node] and flags[other]):
                stands[node] = other
                flags[other] |= flags.pop(node)
    new = {}
    for node in nx.topological_sort(graph):
        if node not in stands:
            inputs = [new[stands.get(one, one)] for one in node.inputs]
            new[node] = project.Node(node.op, inputs, node.value, flags[node])
    return project.network(new.values())


def drop_variant(graph, may_drop=exact, sides=2, flag=True, guard=True, deep=True, keep_zero=False, ops=("add",)):
    """The solution with one thing changed."""
    new = {}
    for node in nx.topological_sort(graph):
        inputs = [new[one] for one in node.inputs]
        other = None
        if node.op in ops and len(inputs) == 2 and (deep or all(one.op != "add" for one in node.inputs)):
            for one, zero in ((inputs, inputs[::-1]))[:sides]:
                if zero.op == "const" and may_drop(zero.value):
                    other = zero if keep_zero else one
        if other is None or (guard and node.output and other.output):
            new[node] = project.Node(node.op, inputs, node.value, node.output)
        else:
            other.output |= node.output and flag
            new[node] = other
    return project.network(new.values())


def drop_any_zero(graph):
    return drop_variant(graph, may_drop=lambda value: value == 0)


def drop_right_only(graph):
    return drop_variant(graph, sides=1)


def drop_no_flag(graph):
    return drop_variant(graph, flag=False)


def drop_no_guard(graph):
    return drop_variant(graph, guard=False)


def drop_no_minus(graph):
    return drop_variant(graph, may_drop=lambda value: value == 0 and value.dtype.kind in "iu")


def drop_no_integers(graph):
    return drop_variant(graph, may_drop=lambda value: value == 0 and value.dtype.kind == "f" and np.signbit(value))


def drop_keeps_zero(graph):
    return drop_variant(graph, keep_zero=True)


def drop_sub_too(graph):
    return drop_variant(graph, ops=("add", "sub"))


def drop_negative(graph):
    return drop_variant(graph, may_drop=lambda value: value.dtype.kind in "iu" and value == 0 or np.signbit(value))


def drop_nothing(graph):
    return project.network(graph)


DROP_SPACE = replace(SPACE, inputs=(("x", "f32[4]"), ("k", "i8[4]")), consts=(
    ("zero", 0.0, "f32[]"), ("minus", -0.0, "f32[]"), ("none", 0, "i8[]"), ("below", -3, "i8[]")))

DROP_TARGETS = (*TARGETS, *(parse(text) for text in (
    "graph ints(x: i32[4]) -> (y) {\n z = const(0) : i32[]\n y = add(x, z)\n return y\n}",
    "graph left(x: i32[4]) -> (y) {\n z = const(0) : i32[]\n y = add(z, x)\n return y\n}",
    "graph bytes(x: u8[4]) -> (y) {\n z = const(0) : u8[]\n y = add(x, z)\n return y\n}",
    "graph plus(x: f32[4]) -> (y) {\n z = const(0.0)\n y = add(x, z)\n return y\n}",
    "graph minus(x: f32[4]) -> (y) {\n z = const(-0.0)\n y = add(z, x)\n return y\n}",
    "graph below(x: f64[4]) -> (y) {\n z = const(-1.0) : f64[]\n y = add(x, z)\n return y\n}",
    "graph nearly(x: f32[4]) -> (y) {\n z = const(-1e-9)\n y = add(x, z)\n return y\n}",
    "graph from_zero(x: i32[4]) -> (y) {\n z = const(0) : i32[]\n y = sub(z, x)\n return y\n}",
    "graph twice(x: i32[4]) -> (y) {\n z = const(0) : i32[]\n a = add(x, z)\n y = add(z, a)\n return y\n}",
    "graph outputs(x: i32[4]) -> (a, y) {\n z = const(0) : i32[]\n a = neg(x)\n y = add(a, z)\n return a, y\n}",
    "graph inside(x: i32[4]) -> (a, y) {\n z = const(0) : i32[]\n a = add(x, z)\n y = neg(a)\n return a, y\n}",
    "graph zeros() -> (y) {\n a = const(0) : i32[]\n y = add(a, a)\n return y\n}",
)))  # fmt: skip


def exact_additions(graph: Graph) -> int:
    """Additions of a zero that the rule should have dropped; the reference leaves those that two outputs need."""
    nodes = defs(graph)
    return sum(node.op == "add" and any(nodes[name].op == "const" and exact(nodes[name].value.array[()]) for name in node.inputs)
               for node in graph.nodes)


def dropped(graph: Graph) -> Graph:
    return as_pass(drop_plus_zero)(graph)


# ---- a pass to refute -----------------------------------------------------------------------------------------------------


def zero_is_unused(graph):
    """Drops every addition of a constant zero: "the zero changes nothing, so its result is not used"."""
    zeros = {node.name for node in graph.nodes if node.op == "const" and (node.value.array == 0).all()}
    alias, nodes = {}, []
    for node in graph.nodes:
        node = replace(node, inputs=tuple(alias.get(name, name) for name in node.inputs))
        if node.op == "add" and node.inputs[1] in zeros:
            alias[node.name] = node.inputs[0]
        else:
            nodes.append(node)
    outputs = tuple((public, alias.get(value, value)) for public, value in graph.outputs)
    return Graph(graph.name, tuple(nodes), outputs)


EXERCISES = (
    Exercise(
        "06b", "Constant folding", constant_folding,
        lambda function: judge_network(function, SPACE, fold_all, left=computed, targets=TARGETS),
        ("Walk the nodes with operands first, and make a new node for each: what it reads is new already, so a folded operand is"
         " a const by then.",
         "Keep a dict from old nodes to new ones. For each node, look up its new inputs. If there are inputs and all are const,"
         " make a const of what MEANING gives for their values; otherwise make the same node with the new inputs. Do not lose"
         " the output flag.",
         "new = {}\nfor node in nx.topological_sort(graph):\n    inputs = [new[one] for one in node.inputs]\n    if inputs and ...:\n"
         "        new[node] = project.Node('const', [], ..., node.output)\n    else: ...\nreturn project.network(new.values())"),
        (Mistake(folding_one_level, "did-nothing", "A folded node is a constant, too: look at the new inputs, and its readers fold in"
                 " the same walk."),
         Mistake(folding_loses_output, "lost", "The folded node was an output: its flag must stay."),
         Mistake(folding_swapped, "wrong-value", "The operands are in the wrong order: a - b is not b - a."),
         Mistake(folding_in_python, "lost", "This is folding in Python's numbers, which have another dtype than the run: keep NumPy's."),
         Mistake(folding_in_float64, "wrong-value", "This is folding in float64, which does not hold every 64-bit integer: give MEANING"
                 " the values as they are."),
         Mistake(folding_times_zero, "lost", "5 * 0 folds, because both are constants. x * 0 must not: it is NaN for NaN and inf,"
                 " -0.0 for negative x, and as large as x."),
         Mistake(folding_without_edges, "invalid", "The edges are missing: project.network(nodes) makes them from the inputs."),
         Mistake(folding_in_place, "mutated", "The given graph's nodes were changed: make new ones, so that before and after can be"
                 " compared."),
         Mistake(folding_in_given_order, "raises", "The graph may list a reader before what it reads: walk nx.topological_sort(graph)."),
         Mistake(folding_keeps_inputs, "invalid", "A constant reads nothing: give the folded node an empty list of inputs."),
         Mistake(folding_nothing, "did-nothing", "The graph came back as it was."),
         Mistake(folding_digraph, "invalid", "A DiGraph merges the two edges of x * x: return a MultiDiGraph.")),
        (folding_by_edges, folding_in_rounds),
        probes=tuple((graph,) for graph in TARGETS),
        adapt=as_pass,
        praise="The same walk as chapter 03's fold: there the list is in order already, here networkx has to find an order first.",
    ),
    Exercise(
        "06b", "Dead-code elimination", dead_code_elimination,
        lambda function: judge_network(function, SPACE, sweep, targets=TARGETS),
        ("Who is needed? The outputs, and whoever can reach one along the edges.",
         "Collect a set: for each output, itself and its ancestors. Keep the nodes in the set, and the inputs. Make a graph of"
         " them: graph.subgraph(kept) is only a view, so copy it.",
         "live = set()\nfor node in graph:\n    if node.output:\n        live |= {node} | nx.ancestors(graph, node)\nkept = ...\nreturn"
         " nx.MultiDiGraph(graph.subgraph(kept))"),
        (Mistake(dead_first_output, "lost", "There may be several outputs, and each keeps what it reads."),
         Mistake(dead_inputs_too, "lost", "Inputs stay, used or not: they are what the caller passes in."),
         Mistake(dead_once, "did-nothing", "What only dead nodes read is dead as well: one look at who is read is not enough."),
         Mistake(dead_descendants, "invalid", "Descendants are the readers. An output needs what it reads: its ancestors."),
         Mistake(dead_one_step, "invalid", "An output needs more than its own operands: their operands, too, and so on."),
         Mistake(dead_in_place, "mutated", "The given graph was changed: return a new one, so that before and after can be compared."),
         Mistake(dead_and_zero, "wrong-value", "A zero that an addition reads is used. DCE asks who reads a value, and never what the"
                 " value is."),
         Mistake(dead_nothing, "did-nothing", "The graph came back as it was.")),
        (dead_by_worklist, dead_by_peeling),
        probes=tuple((graph,) for graph in TARGETS),
        adapt=as_pass,
        praise="It never looked at a value. That is why it cannot remove the + 0: the addition reads the zero.",
    ),
    Exercise(
        "06b", "One rule of algebra", drop_plus_zero,
        lambda function: judge_network(function, DROP_SPACE, dropped, left=exact_additions, targets=DROP_TARGETS),
        ("Walk as in constant_folding; a dropped add gets no new node: its entry in the dict is the new node of its other operand.",
         "For an add, look at both sides. If one is a const whose value is a zero that changes no bit (an integer, or -0.0), the"
         " other one stands in. Pass the output flag on to it. If both are outputs, keep the add.",
         "for other, zero in (inputs, inputs[::-1]):\n    if zero.op == 'const' and zero.value == 0:\n        if ...: stands_in = other\n"
         "if stands_in is None or (node.output and stands_in.output):\n    new[node] = project.Node(...)\nelse: ..."),
        (Mistake(drop_any_zero, "wrong-value", "x + 0.0 is not x for x = -0.0: the sum is 0.0. Only an integer 0 or -0.0 may go."),
         Mistake(drop_right_only, "did-nothing", "The zero may stand on the left, too."),
         Mistake(drop_no_flag, "lost", "The add was an output: what stands for it must become one."),
         Mistake(drop_no_guard, "lost", "Two outputs became one node, and one flag cannot stand for two outputs: keep the add there."),
         Mistake(drop_no_minus, "did-nothing", "x + (-0.0) is x for every x, so -0.0 may go."),
         Mistake(drop_no_integers, "did-nothing", "Integers have one zero, so x + 0 is x to the bit: it may go."),
         Mistake(drop_keeps_zero, "lost", "The zero was kept, and the other operand dropped."),
         Mistake(drop_sub_too, "wrong-value", "The rule is for add: 0 - x is not x, and x - (-0.0) is not x for x = -0.0."),
         Mistake(drop_negative, "wrong-value", "np.signbit is True for every negative number: the value must be zero, too."),
         Mistake(drop_nothing, "did-nothing", "The graph came back as it was.")),
        (drop_by_bits, drop_in_two_steps),
        probes=tuple((graph,) for graph in DROP_TARGETS),
        adapt=as_pass,
        praise="Run it on the float and the integer expression: only one of them loses its + 0.",
    ),
)  # fmt: skip

REFUTATIONS = (
    Refutation(
        "06b", zero_is_unused,
        parse("graph mine(x: i32[4]) -> (y) {\n  z = const(0) : i32[]\n  y = add(x, z)\n  return y\n}"),
        parse("graph mine(x: f32[4]) -> (y) {\n  z = const(0.0) : f32[]\n  y = add(x, z)\n  return y\n}"),
        "On integers it is right. Which dtype has two zeros?",
        "The zero was used all along: the addition read it. For floats it even changed a bit.",
    ),
)  # fmt: skip
