"""A gallery of wrong passes: each makes one mistake that real compilers have made. The suite must reject every one."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from minigraph.ir import Graph, Node, defs, users
from minigraph.ops import OPS, Kind, make_attrs
from minigraph.passes import cse, dce, fold, simplify
from minigraph.passes.cse import value_number
from minigraph.passes.rules import ANYTHING, EXACT, INT, NUMBER, Rule
from minigraph.rebuild import Result, Rewrite, Step, rebuild
from minigraph.types import DTYPES, Const

WRONG: dict[str, tuple[Callable, str]] = {}  # name -> (the pass, the kind of finding that must be among the judge's)


def wrong(kind: str):
    """Enter a pass into the gallery."""
    def enter(function):
        WRONG[function.__name__] = function, kind
        return function

    return enter


# ---- algebra that is true of numbers and false of bits -----------------------------------------------------------------

for rule, kind in (
    (Rule("add_zero", "add(x, 0.0)", "x"), "bits"),
    (Rule("zero_sub", "sub(0.0, x)", "neg(x)"), "bits"),
    (Rule("mul_zero", "mul(x, 0)", "0"), "bits"),
    (Rule("sub_self", "sub(x, x)", "0"), "bits"),
    (Rule("div_self", "div(x, x)", "1"), "bits"),
    (Rule("eq_self", "eq(x, x)", "true", ANYTHING), "bits"),
    (Rule("reassociate", "add(add(x, c1), c2)", "add(x, add(c1, c2))"), "bits"),
    (Rule("reciprocal", "div(x, c1)", "mul(x, div(1, c1))"), "bits"),
    (Rule("neg_of_difference", "neg(sub(x, y))", "sub(y, x)"), "bits"),
    (Rule("square_of_root", "mul(sqrt(x), sqrt(x))", "x"), "bits"),
    (Rule("abs_of_unsigned_neg", "abs(neg(x))", "abs(x)", INT), "bits"),
    (Rule("quotient_of_negatives", "floor_div(neg(x), neg(y))", "floor_div(x, y)", ("signed",)), "bits"),  # -2**31
    (Rule("remainder_of_negatives", "mod(neg(x), neg(y))", "mod(x, y)", ("signed",)), "bits"),
    (Rule("any_cast_pair", "cast(cast(x))", "cast(x)", ANYTHING), "bits"),
    (Rule("max_min", "maximum(x, minimum(x, y))", "x", NUMBER), "bits"),
    (Rule("where_turned", "where(c, x, y)", "where(bitwise_not(c), y, x)", ANYTHING), "contract"),
    (Rule("grows", "neg(x)", "sub(-0.0, x)"), "contract"),
):

    def one_rule(graph, rule=rule):
        return simplify(graph, rules=(*EXACT, rule))

    one_rule.__name__ = rule.name
    wrong(kind)(one_rule)


# ---- value numbering ------------------------------------------------------------------------------------------------------


def merge_by(key: Callable, mergeable: Callable = lambda node: OPS[node.op].mergeable) -> Callable:
    def run(graph: Graph) -> Result:
        numbered: dict = {}

        def visit(node: Node, env) -> Rewrite | None:
            if not mergeable(node):
                return None
            first = numbered.setdefault(key(node), node.name)
            return None if first == node.name else Rewrite("cse", first, "the same")

        return rebuild(graph, visit)

    return run


@wrong("bits")
def cse_without_attributes(graph):
    return merge_by(lambda node: (value_number(node)[:2], node.type, node.value if node.op == "const" else 0))(graph)


@wrong("bits")
def cse_without_attributes_or_types(graph):
    return merge_by(lambda node: (value_number(node)[:2], node.value if node.op == "const" else 0))(graph)


@wrong("bits")
def cse_with_python_equality(graph):
    """0.0 == -0.0."""
    return merge_by(lambda node: (node.op, node.inputs, node.type, str(node.value.array + 0)) if node.op == "const"
                    else (value_number(node), node.type))(graph)


@wrong("contract")
def cse_where_one_is_true(graph):
    """1 == True == 1.0, whatever the dtype."""
    return merge_by(lambda node: ("const", node.type.shape, str(node.value.array.astype(np.float64))) if node.op == "const"
                    else value_number(node))(graph)


@wrong("bits")
def cse_where_everything_commutes(graph):
    return merge_by(lambda node: (node.op, tuple(sorted(node.inputs)), node.value, node.type))(graph)


@wrong("bits")
def cse_where_maximum_commutes(graph):
    return merge_by(lambda node: (node.op, tuple(sorted(node.inputs)), node.value)
                    if node.op in ("maximum", "minimum") else value_number(node))(graph)


@wrong("bits")
def cse_merges_draws(graph):
    """Without the site, two draws look alike."""
    def key(node):
        return ("random", tuple(pair for pair in node.value if pair[0] != "site")) if node.op == "random" else value_number(node)

    return merge_by(key, lambda node: OPS[node.op].mergeable or node.op == "random")(graph)


@wrong("effects")
def cse_merges_effects(graph):
    return merge_by(lambda node: (node.op, node.inputs[:1], node.value) if OPS[node.op].kind is Kind.EFFECT else value_number(node),
                    lambda node: OPS[node.op].mergeable or OPS[node.op].kind is Kind.EFFECT)(graph)


@wrong("contract")
def cse_keeps_the_last(graph):
    last = {value_number(node): node.name for node in graph.nodes if OPS[node.op].mergeable}
    new = {node.name: last.get(value_number(node), node.name) for node in graph.nodes}
    nodes = tuple(replace(node, inputs=tuple(new[name] for name in node.inputs)) for node in graph.nodes if new[node.name] == node.name)
    return replace(graph, nodes=nodes, outputs=tuple((public, new[value]) for public, value in graph.outputs))


# ---- dead code ------------------------------------------------------------------------------------------------------------


def keep_live(graph: Graph, live: set[str], always: Callable) -> Graph:
    for node in reversed(graph.nodes):
        if node.name in live or always(node):
            live |= {node.name, *node.inputs}
    return replace(graph, nodes=tuple(node for node in graph.nodes if node.name in live))


@wrong("contract")
def dce_keeps_the_last_output_only(graph):
    return keep_live(graph, {value for _, value in graph.outputs[-1:]}, lambda node: not OPS[node.op].removable)


@wrong("effects")
def dce_drops_effects(graph):
    return keep_live(graph, {value for _, value in graph.outputs}, lambda node: node.op == "input")


@wrong("error")
def dce_drops_checks(graph):
    """Assertions go, as in a release build; prints stay, each after the print before."""
    tokens, nodes = {}, []
    for node in graph.nodes:
        if node.op in ("assert_close", "assert_finite"):
            tokens[node.name] = tokens.get(node.inputs[-1], node.inputs[-1]) if len(node.inputs) > OPS[node.op].arity[0] else None
        else:
            kept = tuple(tokens.get(name, name) for name in node.inputs)
            nodes.append(replace(node, inputs=tuple(name for name in kept if name is not None)))
    return replace(graph, nodes=tuple(nodes))


@wrong("contract")
def dce_drops_inputs(graph):
    return keep_live(graph, {value for _, value in graph.outputs}, lambda node: OPS[node.op].kind is Kind.EFFECT)


@wrong("idempotence")
def dce_one_layer(graph):
    """Drops what nobody reads, once: what only that used stays."""
    read, outputs = users(graph), {value for _, value in graph.outputs}
    return replace(graph, nodes=tuple(node for node in graph.nodes
                                      if read[node.name] or node.name in outputs or not OPS[node.op].removable))


# ---- folding --------------------------------------------------------------------------------------------------------------


def fold_with(evaluate: Callable, may: Callable = lambda node: OPS[node.op].foldable and node.inputs, limit: int = 1024) -> Callable:
    def run(graph: Graph) -> Result:
        def visit(node: Node, env) -> Rewrite | None:
            operands = [env.defs[name] for name in node.inputs]
            if not may(node) or not all(operand.op == "const" for operand in operands) or node.type.nbytes > limit:
                return None
            try:
                result = evaluate(node, [operand.value.array for operand in operands])
                const = Const.of(np.asarray(result, DTYPES[node.type.dtype]))
            except Exception:
                return None
            return Rewrite("fold", (Node(node.name, "const", (), const, const.type if const.shape != node.type.shape else node.type),), "")

        with np.errstate(all="ignore"):
            return rebuild(graph, visit)

    return run


def call(node: Node, arrays):
    return OPS[node.op].numpy(*arrays, **dict(node.value or ()))


@wrong("bits")
def fold_in_float64(graph):
    return fold_with(lambda node, arrays: call(node, [a.astype(np.float64) if a.dtype.kind in "fiu" and node.type.dtype != "bool" else a
                                                      for a in arrays]))(graph)


@wrong("bits")
def fold_with_swapped_operands(graph):
    return fold_with(lambda node, arrays: call(node, arrays[::-1] if len(arrays) == 2 else arrays))(graph)


@wrong("contract")
def fold_without_broadcasting(graph):
    return fold_with(lambda node, arrays: call(node, arrays).reshape(arrays[0].shape))(graph)


@wrong("growth")
def fold_without_a_limit(graph):
    return fold(graph, max_growth=2**40)


@wrong("bits")
def fold_draws(graph):
    return fold_with(lambda node, arrays: OPS["random"].numpy(12345, **dict(node.value)) if node.op == "random" else call(node, arrays),
                     lambda node: OPS[node.op].foldable or node.op == "random")(graph)


@wrong("bits")
def fold_flushes_subnormals(graph):
    def flush(node, arrays):
        result = call(node, arrays)
        tiny = result.dtype.kind == "f" and np.abs(result) < np.finfo(result.dtype).tiny
        return np.where(tiny, 0, result)

    return fold_with(flush)(graph)


@wrong("bits")
def fold_integers_without_wrapping(graph):
    def clip(node, arrays):
        if node.op not in ("add", "sub", "mul") or node.type.domain not in ("signed", "unsigned"):
            return call(node, arrays)
        info = np.iinfo(DTYPES[node.type.dtype])
        return np.clip(call(node, [a.astype(object) for a in arrays]), int(info.min), int(info.max))

    return fold_with(clip)(graph)


# ---- contracts --------------------------------------------------------------------------------------------------------------


@wrong("contract")
def renames_an_output(graph):
    return replace(graph, outputs=tuple((f"{public}_opt", value) for public, value in graph.outputs))


@wrong("contract")
def turns_the_inputs(graph):
    count = len(graph.inputs)
    return replace(graph, nodes=graph.nodes[:count][::-1] + graph.nodes[count:])


@wrong("contract")
def turns_the_outputs(graph):
    return replace(graph, outputs=graph.outputs[::-1])


@wrong("mutation")
def changes_its_input(graph):
    for node in graph.nodes:
        if node.op == "const" and node.type.domain == "float" and node.value.data:
            zeroed = np.where(node.value.array == 0, 0.0, node.value.array)  # no more -0.0
            object.__setattr__(node.value, "data", zeroed.astype(node.value.array.dtype).tobytes())
    return Result(graph, ())


@wrong("names")
def order_from_a_set(graph):
    """Independent nodes in the order of a set: it follows the names' hashes."""
    done, nodes, rest = set(), [], set(graph.nodes[len(graph.inputs):])
    nodes += graph.inputs
    done |= {node.name for node in graph.inputs}
    while rest:
        ready = {node for node in rest if done.issuperset(node.inputs)}
        nodes += ready
        done |= {node.name for node in ready}
        rest -= ready
    return replace(graph, nodes=tuple(nodes))


@wrong("names")
def cse_keeps_the_first_in_the_alphabet(graph):
    """Sorts by name first, where the order of the nodes should count."""
    result = cse(graph).graph
    inner = sorted((node for node in result.nodes if node.op == "const"), key=lambda node: node.name)
    rest = [node for node in result.nodes if node.op not in ("const", "input")]
    return replace(result, nodes=(*result.inputs, *inner, *rest))


COUNTER = itertools.count()


SEEN = Counter()


@wrong("determinism")
def every_second_time(graph):
    """Remembers what it has seen."""
    SEEN[graph] += 1
    return dce(graph) if SEEN[graph] % 2 else Result(graph, ())


@wrong("idempotence")
def names_from_a_counter(graph):
    """The second run of the process gives other names than the first."""
    return rename_computed(graph, lambda node: f"t{next(COUNTER)}")


@wrong("names")
def names_from_a_hash(graph):
    return rename_computed(graph, lambda node: node.name if node.name[:1] == "h" else f"h{hash(node.name) % 10**12}")


def rename_computed(graph: Graph, new: Callable) -> Graph:
    names = {node.name: node.name if node.op == "input" else new(node) for node in graph.nodes}
    nodes = tuple(replace(node, name=names[node.name], inputs=tuple(names[name] for name in node.inputs)) for node in graph.nodes)
    return replace(graph, nodes=nodes, outputs=tuple((public, names[value]) for public, value in graph.outputs))


@wrong("idempotence")
def simplify_one_node(graph):
    """One rewrite a run."""
    rewritten = simplify(graph)
    if not rewritten.report:
        return rewritten
    first = rewritten.report[0].before[0]
    stop = [node.name for node in graph.nodes].index(first) + 1
    head = simplify(replace(graph, nodes=graph.nodes[:stop], outputs=())).graph
    moved = {name: step.after for step in rewritten.report[:1] for name in step.before if step.after in defs(head)} if first not in defs(head) else {}
    tail = tuple(replace(node, inputs=tuple(moved.get(name, name) for name in node.inputs)) for node in graph.nodes[stop:])
    return replace(graph, nodes=head.nodes + tail, outputs=tuple((public, moved.get(value, value)) for public, value in graph.outputs))


@wrong("origin")
def loses_the_source_lines(graph):
    result = simplify(graph)
    changed = {step.after for step in result.report}
    nodes = tuple(replace(node, origin=()) if node.name in changed else node for node in result.graph.nodes)
    return Result(replace(result.graph, nodes=nodes), result.report) if result.report else result


@wrong("origin")
def invents_a_source_line(graph):
    nodes = tuple(replace(node, origin=(*node.origin, "optimizer.py:1")) if node.op == "neg" else node for node in graph.nodes)
    return Result(replace(graph, nodes=nodes), ())


@wrong("contract")
def forgets_to_report(graph):
    return Result(cse(graph).graph, ())


@wrong("contract")
def reports_half(graph):
    result = simplify(graph)
    return Result(result.graph, result.report[::2])


@wrong("weight")
def undoes_cse(graph):
    """Every reader of a cheap value gets a copy of its own."""
    nodes, steps, read = [], [], users(graph)
    taken = defs(graph)
    for node in graph.nodes:
        nodes.append(node)
        if node.op == "neg" and len(read[node.name]) > 1 and f"{node.name}.copy" not in taken:
            nodes.append(replace(node, name=f"{node.name}.copy"))
            steps.append(Step("copy", (node.name,), f"{node.name}.copy", "locality"))
            steps.append(Step("copy", (node.name,), node.name, "stays"))
    return Result(replace(graph, nodes=tuple(nodes)), tuple(steps)) if steps else Result(graph, ())


@wrong("bits")
def transpose_composed_backwards(graph):
    """transpose(transpose(x, p), q) takes p[q[i]], not q[p[i]]: they differ for permutations of three axes."""
    def visit(node, env):
        inner = env.defs.get(node.inputs[0]) if node.op == "transpose" else None
        if inner is None or inner.op != "transpose":
            return None
        perm = tuple(node.value.perm[axis] for axis in inner.value.perm)
        made = Node(node.name, "transpose", inner.inputs, make_attrs(OPS["transpose"], {"perm": perm}), node.type)
        return Rewrite("compose", (made,), "permutations compose")

    return rebuild(graph, visit)


@wrong("crash")
def recursive(graph):
    """Fine on small graphs; a chain of a thousand nodes is too deep for it."""
    found, live = defs(graph), set()

    def visit(name: str) -> None:
        if name not in live:
            live.add(name)
            for operand in found[name].inputs:
                visit(operand)

    for name in [value for _, value in graph.outputs] + [node.name for node in graph.nodes if not OPS[node.op].removable]:
        visit(name)
    return replace(graph, nodes=tuple(node for node in graph.nodes if node.name in live))


@wrong("time")
def quadratic(graph):
    """Looks for each operand from the start of the list."""
    live = {value for _, value in graph.outputs}
    for node in reversed(graph.nodes):
        if node.name in live or not OPS[node.op].removable:
            live |= {next(one.name for one in graph.nodes if one.name == name) for name in (node.name, *node.inputs)}
    return replace(graph, nodes=tuple(node for node in graph.nodes if node.name in live))


# ---- right ones, which the judge must accept ------------------------------------------------------------------------------


def identity(graph):
    return graph


def my_dce(graph):
    """As a learner writes it: a graph in, a graph out."""
    return keep_live(graph, {value for _, value in graph.outputs}, lambda node: not OPS[node.op].removable)


def my_cse(graph):
    return cse(graph).graph


def my_fold(graph):
    return fold_with(call)(graph).graph


def careful_fold(graph):
    return fold(graph, max_growth=0)


def one_exact_rule(graph):
    return simplify(graph, rules=(Rule("minus-zero", "add(x, -0.0)", "x"),))


RIGHT = (fold, simplify, cse, dce, identity, my_dce, my_cse, my_fold, careful_fold, one_exact_rule)
