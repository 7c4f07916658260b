"""Chapter 04, algebra: the exercises, their mistakes and the passes to refute."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain as chained
from itertools import combinations, combinations_with_replacement, permutations, product

import numpy as np

from ...errors import GraphError, MinigraphError, nearest
from ...ir import Graph, Node
from ...ops import INT, NUMBER, OPS
from ...passes.rules import ANYTHING, FLAGS, Rule
from ...passes.simplify import compile_rule, match
from ...passes.simplify import simplify as rewrite
from ...rebuild import Env
from ...run_numpy import run
from ...text import parse
from ...types import DTYPES, Const, format_value, same_bits
from ..exercise import Exercise, Mistake, Refutation
from ..graphs import Space, small_graphs, special_inputs
from ..judge import NOT_ATTEMPTED, Failure, Verdict, describe, judge_calls, judge_pass, observed, raised, show_element
from ..limits import TookTooLong, time_limit

# ---- is it an identity? -------------------------------------------------------------------------------------------


def is_identity(op, const):
    """Is op(x, const) the same as x, to the bit, whatever x is? True or False.

    ``op`` is "add", "sub", "mul" or "div". ``const`` is a Const of floats or integers, of any shape;
    ``const.array`` is its array. x has the dtype of the constant.

        is_identity("mul", Const.of([1.0, 1.0], "f32"))   # True
        is_identity("mul", Const.of([1.0, 2.0], "f32"))   # False: an x beside the 2.0 is doubled

    "div" comes with floats only: the verifier refuses a div of integers, because 7 / 2 is no integer.

    0.0 == -0.0 is True in Python; ``same_bits(a, b)`` tells the two zeros apart. It compares dtype and
    shape too: the float64 -0.0, which Python's -0.0 is, does not have the same bits as a float32 -0.0.
    About 3 lines.
    """
    ### BEGIN SOLUTION
    identities = {"add": -0.0, "sub": 0.0, "mul": 1.0, "div": 1.0}
    wanted = np.full(const.shape, identities[op], const.array.dtype)
    return same_bits(const.array, wanted)
    ### END SOLUTION


def is_identity_by_signbit(op, const):
    array = const.array
    if op in ("mul", "div"):
        return bool((array == 1).all())
    if array.dtype.kind != "f":
        return not array.any()
    return bool(((array == 0) & (np.signbit(array) == (op == "add"))).all())


def is_identity_by_const(op, const):
    number = {"add": -0.0, "sub": 0.0}.get(op, 1.0)
    return const == Const.of(np.full(const.shape, number), const.dtype)


def is_identity_by_the_table(op, const):
    literal = dict(OPS[op].right_identity).get(const.type.domain)
    return literal is not None and np.array_equal(const.array.view(f"u{const.array.itemsize}"),
                                                  np.full(const.shape, float(literal), const.array.dtype).view(f"u{const.array.itemsize}"))


def is_identity_equal(op, const):
    return bool((const.array == {"add": 0, "sub": 0, "mul": 1, "div": 1}[op]).all())


def is_identity_plus(op, const):
    wanted = np.full(const.shape, {"add": 0.0, "sub": 0.0, "mul": 1.0, "div": 1.0}[op], const.array.dtype)
    return same_bits(const.array, wanted)


def is_identity_minus(op, const):
    wanted = np.full(const.shape, {"add": -0.0, "sub": -0.0, "mul": 1.0, "div": 1.0}[op], const.array.dtype)
    return same_bits(const.array, wanted)


def is_identity_first(op, const):
    first = const.array.flat[0]
    return is_identity_by_signbit(op, Const.of(first))


def is_identity_scalar(op, const):
    return const.shape == () and is_identity_by_signbit(op, const)


def is_identity_floats(op, const):
    return const.type.domain == "float" and is_identity_by_signbit(op, const)


def is_identity_f32(op, const):
    return const.dtype == "f32" and is_identity_by_signbit(op, const)


def is_identity_in_float64(op, const):
    number = {"add": -0.0, "sub": 0.0, "mul": 1.0, "div": 1.0}[op]
    return all(same_bits(element, number) for element in const.array.flat)


def is_identity_zero(op, const):
    return not const.array.any() if op in ("add", "sub") else op == "div" and bool((const.array == 1).all())


def truth(function):
    """NumPy's own True is as good as Python's."""

    def judged(op, const):
        answer = function(op, const)
        return bool(answer) if isinstance(answer, (np.bool_, np.ndarray)) and np.shape(answer) == () else answer

    return judged


def identity_cases():
    """Constants of each dtype, first single numbers, then arrays in which one element is different."""
    numbers = {"f": (1.0, 0.0, -0.0, 2.0, -1.0, np.nan, np.inf, 1.0000001, 1e-7), "i": (0, 1, 2, -1), "u": (0, 1, 2)}
    for shape in ((), (1,), (3,), (2, 2)):
        for dtype in ("f32", "i32", "f64", "f16", "i8", "u8"):
            kind = DTYPES[dtype].kind
            for op in ("add", "sub", "mul", *["div"] * (kind == "f")):
                for number in numbers[kind]:
                    array = np.full(shape, number, DTYPES[dtype])
                    yield op, Const.of(array)
                    for other in numbers[kind] if array.size > 1 else ():
                        for place in (0, 1, -1):
                            mixed = array.copy()
                            mixed.flat[place] = other
                            yield op, Const.of(mixed)


def explain_identity(case, want, got):
    op, const = case
    lines = [f"{op}(x, c) where c = const({format_value(const)}) : {const.type}",
             f"it should give {want}, and gives {got!r}"]
    if want is True:
        return (*lines, f"{op} with this constant gives back every x")
    with np.errstate(all="ignore"):
        for x in np.array((-0.0, 0.0, -3.0, 5.0) if const.dtype[0] == "f" else (3, 5), const.array.dtype):
            result = OPS[op].numpy(np.full(const.shape, x), const.array)
            for index in np.ndindex(const.shape):
                if not same_bits(result[index], x):
                    return (*lines, f"x = {show_element(x)}: {op}(x, {show_element(const.array[index])}) is"
                                    f" {show_element(result[index])}")
    return tuple(lines)


# ---- the pass -----------------------------------------------------------------------------------------------------


def simplify(graph):
    """Take out every operation that gives back one of its operands, to the bit. Graph -> Graph.

    These do, for every x:
        floats:    x + -0.0    -0.0 + x    x - 0.0    x * 1.0    1.0 * x    x / 1.0
        integers:  x + 0       0 + x       x - 0      x * 1      1 * x
        both:      neg(neg(x))
    The constant may be an array; then all of its elements must be the right ones. Whoever read the
    operation reads x from then on: other operations, prints, and outputs, whose public names stay.

    x must have the type of what it replaces: x : f32[4] plus a constant f32[2,4] is f32[2,4], so that
    stays. ``node.type`` is the type of a value. Nodes never change: make a new Node(name, op, inputs,
    value, type, origin); ``origin``, the source lines, is free: nobody checks it, and ``node.origin``
    will do. The result is a Graph(graph.name, tuple(nodes), outputs), and outputs are pairs (public
    name, name of a value). Constants that nobody reads any more may stay (chapter 05).

        a = mul(x, one)                        b = neg(x)
        b = neg(a)              becomes        return y = x
        return y = a, z = b                    return y = x, z = b

    About 20 lines. Your is_identity may help.
    """
    ### BEGIN SOLUTION
    identities = {"add": -0.0, "sub": 0.0, "mul": 1.0, "div": 1.0}
    nodes, known, stands_for = [], {}, {}
    for node in graph.nodes:
        inputs = tuple(stands_for.get(name, name) for name in node.inputs)
        node = Node(node.name, node.op, inputs, node.value, node.type, node.origin)
        known[node.name] = node
        same = []
        if node.op == "neg" and known[inputs[0]].op == "neg":
            same = [known[inputs[0]].inputs[0]]
        elif node.op in identities:
            pairs = [inputs, inputs[::-1]] if OPS[node.op].commutative else [inputs]
            for x, c in pairs:
                if known[c].op == "const":
                    array = known[c].value.array
                    if same_bits(array, np.full(array.shape, identities[node.op], array.dtype)):
                        same.append(x)
        same = [x for x in same if known[x].type == node.type]
        if same:
            stands_for[node.name] = same[0]
        else:
            nodes.append(node)
    outputs = tuple((public, stands_for.get(value, value)) for public, value in graph.outputs)
    return Graph(graph.name, tuple(nodes), outputs)
    ### END SOLUTION


def gives_back(node: Node, known: dict[str, Node]) -> list[str]:
    """The operands that an operation gives back to the bit, and that have its type."""
    operands = [known[name] for name in node.inputs]
    found = []
    if node.op == "neg" and operands[0].op == "neg":
        found = operands[0].inputs
    elif node.op in ("add", "sub", "mul", "div"):
        turned = [operands, operands[::-1]][: 1 + OPS[node.op].commutative]
        found = [x.name for x, c in turned if c.op == "const" and is_identity_by_signbit(node.op, c.value)]
    return [name for name in found if known[name].type == node.type]


def same_as_an_operand(graph: Graph) -> int:
    """Operations that only give back one of their operands."""
    known = {node.name: node for node in graph.nodes}
    return sum(bool(gives_back(node, known)) for node in graph.nodes)


def simplify_one_at_a_time(graph):
    """Takes out one operation, then starts again."""
    known = {node.name: node for node in graph.nodes}
    for node in graph.nodes:
        for x in gives_back(node, known)[:1]:
            return simplify_one_at_a_time(without(graph, node.name, x)) if len(graph) < 100 else simplify_compact(graph)
    return graph


def without(graph: Graph, name: str, instead: str) -> Graph:
    nodes = tuple(replace(node, inputs=tuple(instead if i == name else i for i in node.inputs))
                  for node in graph.nodes if node.name != name)
    return Graph(graph.name, nodes, tuple((public, instead if value == name else value) for public, value in graph.outputs))


def simplify_by_the_package(graph):
    """All exact rules of the package: more than was asked for, and right."""
    return rewrite(graph).graph


def simplify_variant(graph, fits=is_identity_by_signbit, sides=None, neg=True, typed=True, outputs=True, operands=True, drop=False,
                     stale=False, raw=False):
    """The solution with one thing changed; the mistakes below are made of it."""
    nodes, known, alias = [], {}, {}
    for node in graph.nodes:
        original = node
        if operands:
            node = replace(node, inputs=tuple(alias.get(name, name) for name in node.inputs))
        known[node.name] = original if stale else node
        kept, node, found = node, original if raw else node, None
        if neg and node.op == "neg" and known[node.inputs[0]].op == "neg":
            found = known[node.inputs[0]].inputs[0]
        if node.op in ("add", "sub", "mul", "div"):
            a, b = node.inputs
            both = OPS[node.op].commutative if sides is None else sides
            for x, c in ((a, b), (b, a))[: 2 if both else 1]:
                if known[c].op == "const" and fits(node.op, known[c].value) and (not typed or known[x].type == node.type):
                    found = x
        if found is None:
            nodes.append(kept)
            continue
        alias[node.name] = found
        if drop:
            unread = {name for name in node.inputs if name != found and known[name].op == "const"}
            nodes = [one for one in nodes if one.name not in unread]
    wanted = tuple((public, alias.get(value, value)) for public, value in graph.outputs) if outputs else graph.outputs
    return Graph(graph.name, tuple(nodes), wanted)


def simplify_compact(graph):
    return simplify_variant(graph)


def simplify_school(graph):
    return simplify_variant(graph, fits=is_identity_equal)


def simplify_minus_zero(graph):
    return simplify_variant(graph, fits=is_identity_minus)


def simplify_both_sides(graph):
    return simplify_variant(graph, sides=True)


def simplify_one_side(graph):
    return simplify_variant(graph, sides=False)


def simplify_any_shape(graph):
    return simplify_variant(graph, typed=False)


def simplify_first_element(graph):
    return simplify_variant(graph, fits=is_identity_first)


def simplify_floats(graph):
    return simplify_variant(graph, fits=is_identity_floats)


def simplify_scalars(graph):
    return simplify_variant(graph, fits=is_identity_scalar)


def simplify_forgets_outputs(graph):
    return simplify_variant(graph, outputs=False)


def simplify_forgets_operands(graph):
    return simplify_variant(graph, operands=False)


def simplify_renames_outputs(graph):
    simple = simplify_variant(graph)
    return Graph(simple.name, simple.nodes, tuple((public if value == old else value, value)
                                                  for (public, old), (_, value) in zip(graph.outputs, simple.outputs)))


def simplify_stale(graph):
    """Looks through neg(neg(x)) at the graph as it was."""
    return simplify_variant(graph, stale=True)


def simplify_stands_for_what_is_gone(graph):
    """Looks at the operands as they were, so that a removed name may stand for another."""
    return simplify_variant(graph, raw=True)


def simplify_names_outputs_by_value(graph):
    simple = simplify_variant(graph)
    return Graph(simple.name, simple.nodes, tuple((value, value) for _, value in simple.outputs))


def simplify_in_float64(graph):
    return simplify_variant(graph, fits=is_identity_in_float64)


def simplify_by_original_operands(graph):
    """Matches on the graph as it was, and follows what stands for what only afterwards."""
    known, alias = {node.name: node for node in graph.nodes}, {}
    for node in graph.nodes:
        for x in gives_back(node, known)[:1]:
            alias[node.name] = alias.get(x, x)
    nodes = tuple(replace(node, inputs=tuple(alias.get(name, name) for name in node.inputs))
                  for node in graph.nodes if node.name not in alias)
    return Graph(graph.name, nodes, tuple((public, alias.get(value, value)) for public, value in graph.outputs))


def simplify_no_neg(graph):
    return simplify_variant(graph, neg=False)


def simplify_drops_constants(graph):
    return simplify_variant(graph, drop=True)


def simplify_times_zero(graph):
    simple = simplify_variant(graph)
    consts = {node.name: node.value for node in simple.nodes if node.op == "const"}
    nodes = []
    for node in simple.nodes:
        zeros = [consts[name] for name in node.inputs if name in consts and not consts[name].array.any()]
        if node.op == "mul" and zeros:
            value = Const.of(np.zeros(node.type.shape, DTYPES[node.type.dtype]))
            node = Node(node.name, "const", (), value, node.type, node.origin)
        nodes.append(node)
    return Graph(simple.name, tuple(nodes), simple.outputs)


def simplify_nothing(graph):
    return Graph(graph.name, graph.nodes, graph.outputs)


SPACE = Space(
    inputs=(("x", "f32[4]"),),
    consts=(("zero", 0.0, "f32[]"), ("minus_zero", -0.0, "f32[]"), ("one", 1.0, "f32[]"), ("rows", -0.0, "f32[2,4]")),
    ops=(("add", {}), ("sub", {}), ("mul", {}), ("div", {}), ("neg", {}), ("print", {"label": "seen"})),
    limit=500, larger=100,
)  # fmt: skip
INT_SPACE = Space(
    inputs=(("n", "i32[4]"),), consts=(("zero", 0, "i32[]"), ("one", 1, "i32[]"), ("ones", 1, "i32[2,4]")),
    ops=(("add", {}), ("sub", {}), ("mul", {}), ("neg", {})), limit=150, larger=40,
)  # fmt: skip

TARGETS = tuple(parse(text) for text in (
    "graph mixed(x: f32[2]) -> (y) {\n c = const([-0.0, 0.0])\n y = add(x, c)\n return y\n}",
    "graph mixed(x: f32[2]) -> (y) {\n c = const([1.0, 2.0])\n y = mul(x, c)\n return y\n}",
    "graph turned(x: f32[2]) -> (y) {\n c = const(-1.0)\n y = mul(x, c)\n return y\n}",
    "graph turned(x: f32[2]) -> (y) {\n c = const(-1.0)\n y = div(x, c)\n return y\n}",
    "graph turned(n: i32[2]) -> (y) {\n c = const(-1) : i32[]\n y = mul(n, c)\n return y\n}",
    "graph one_off(x: f32[2]) -> (y) {\n c = const(1.0000001)\n y = mul(x, c)\n return y\n}",
    "graph one_off(x: f64[2]) -> (y) {\n c = const(5e-324) : f64[]\n y = add(x, c)\n return y\n}",
    "graph filled(x: f32[2]) -> (y) {\n c = const([1.0, 1.0])\n y = mul(c, x)\n return y\n}",
    "graph half(x: f16[3]) -> (y) {\n c = const(1.0) : f16[]\n y = div(x, c)\n return y\n}",
    "graph double(x: f64[3]) -> (y) {\n c = const(-0.0) : f64[]\n y = sub(x, c)\n return y\n}",
    "graph double(x: f64[3]) -> (y) {\n c = const(-0.0) : f64[]\n y = add(c, x)\n return y\n}",
    "graph bytes(n: u8[3]) -> (y) {\n c = const(0) : u8[]\n y = sub(n, c)\n return y\n}",
    "graph bytes(n: u8[3]) -> (y) {\n a = neg(n)\n y = neg(a)\n return y\n}",
    "graph small(n: i8[3]) -> (y) {\n c = const([0, 0, 0]) : i8[3]\n y = add(c, n)\n return y\n}",
    "graph wider(x: f32[]) -> (y) {\n c = const([1.0, 1.0])\n y = mul(x, c)\n return y\n}",
    "graph deeper(x: f32[2]) -> (y) {\n c = const([[1.0, 1.0]])\n y = mul(x, c)\n return y\n}",
    "graph rows(x: f32[2,3]) -> (y) {\n c = const([1.0, 1.0, 1.0])\n y = mul(x, c)\n return y\n}",
    "graph corner(x: f32[2,3]) -> (y) {\n c = const([[-0.0]])\n y = add(c, x)\n return y\n}",
    "graph outer(x: f32[2,1]) -> (y) {\n c = const([[1.0, 1.0]])\n y = mul(x, c)\n return y\n}",
    "graph between(x: f32[2]) -> (y) {\n c = const(1.0)\n a = neg(x)\n b = mul(a, c)\n y = neg(b)\n return y\n}",
    "graph both(x: f32[2]) -> (y, x, z) {\n c = const(1.0)\n y = mul(x, c)\n return y, x, z = y\n}",
    "graph constants() -> (y) {\n a = const([-0.0, -0.0])\n b = const(-0.0)\n y = add(a, b)\n return y\n}",
    "graph constants() -> (y) {\n a = const([-0.0, -0.0])\n b = const(-0.0)\n y = add(b, a)\n return y\n}",
    "graph layers(x: f32[2,3]) -> (y) {\n c = const(1.0)\n a = mul(x, c)\n b = transpose(a) {perm=[1,0]}\n d = div(b, c)\n"
    " y = sum(d) {axis=[0]}\n return y\n}",
    "graph draws() -> (y) {\n c = const(1.0)\n a = random() {shape=[3], site=4}\n b = mul(a, c)\n y = add(a, b)\n return y\n}",
    "graph thrice(x: f32[2]) -> (c) {\n a = neg(x)\n b = neg(a)\n c = neg(b)\n return c\n}",
    "graph seen(x: f32[2]) -> (y) {\n c = const(-0.0)\n a = add(x, c)\n p = print(a) {label=seen}\n b = neg(a)\n"
    " q = print(b, p) {label=too}\n y = neg(b)\n return y\n}",
    "graph shared(x: f32[2]) -> (y, z) {\n c = const(1.0)\n y = mul(x, c)\n z = add(x, c)\n return y, z\n}",
    "graph masked(x: f32[2], m: bool[2]) -> (y) {\n c = const(1.0)\n a = neg(x)\n b = mul(x, c)\n y = where(m, a, b)\n return y\n}",
))  # fmt: skip


def judge_simplify(function):
    verdict = judge_pass(function, SPACE, simplify_compact, left=same_as_an_operand, targets=TARGETS)
    if verdict.failure is not None:
        return verdict
    more = judge_pass(function, INT_SPACE, simplify_compact, left=same_as_an_operand, deep=None)
    return Verdict(more.failure, verdict.tried + more.tried)


# ---- rules as data ------------------------------------------------------------------------------------------------


def my_rules():
    """Rows for four wishes: each right, and for as many domains as it can be. A list of Rule.

        neg(sub(0, x))  becomes  x
        mul(x, 0)       becomes  0
        eq(x, x)        becomes  true
        abs(mul(x, x))  becomes  mul(x, x)

    A row is Rule(name, pattern, result, domain, flags). ``domain`` is a tuple out of "float", "signed"
    and "unsigned" (integers, which wrap around), ``flags`` a tuple out of "nnan", "ninf" and "nsz":
    promises about what goes in and what comes out. A row is used only where all of its flags are
    allowed. So every killer of a row must be promised away by one of its flags, and a flag that
    promises no killer away is refused. A wish that needs flags for floats and none for integers makes
    two rows:

        Rule("sub-self-int", "sub(x, x)", "0", ("signed", "unsigned"), ())
        Rule("sub-self", "sub(x, x)", "0", ("float",), ("nnan", "ninf"))

    Here ("nnan",) would do as well: inf - inf is NaN. Both are accepted, as for any killer that two
    flags promise away. Where a wish is wrong and no flag helps, it gets no row. About 10 lines.
    """
    ### BEGIN SOLUTION
    integers = ("signed", "unsigned")
    return [
        Rule("neg-zero-sub-int", "neg(sub(0, x))", "x", integers, ()),
        Rule("neg-zero-sub", "neg(sub(0, x))", "x", ("float",), ("nsz",)),
        Rule("mul-zero-int", "mul(x, 0)", "0", integers, ()),
        Rule("mul-zero", "mul(x, 0)", "0", ("float",), ("nnan", "ninf", "nsz")),
        Rule("eq-self-int", "eq(x, x)", "true", integers, ()),
        Rule("eq-self", "eq(x, x)", "true", ("float",), ("nnan",)),
        Rule("abs-square", "abs(mul(x, x))", "mul(x, x)", ("float", "unsigned"), ()),
    ]
    ### END SOLUTION


PATTERNS = {"neg": ("neg(sub(0, x))", "x"), "mul": ("mul(x, 0)", "0"), "eq": ("eq(x, x)", "true"),
            "abs": ("abs(mul(x, x))", "mul(x, x)")}  # fmt: skip
WISHES = {
    ("neg", INT): (), ("neg", ("float",)): ("nsz",), ("mul", INT): (), ("mul", ("float",)): ("nnan", "ninf", "nsz"),
    ("eq", INT): (), ("eq", ("float",)): ("nnan",), ("abs", ("float", "unsigned")): (),
}  # fmt: skip


def rows(changes=(), left_out=()) -> list[Rule]:
    """The right rows with some changed or left out; the mistakes below are made of it."""
    wishes = {wish: flags for wish, flags in WISHES.items() if wish not in left_out} | dict(changes)
    return [Rule(f"{op}-{index}", *PATTERNS[op], domain, flags) for index, ((op, domain), flags) in enumerate(wishes.items())]


def my_rules_as_llvm_needs():
    """inf * 0 is NaN, which nnan excludes already: MLIR asks for nnan and nsz only."""
    return rows({("mul", ("float",)): ("nnan", "nsz")})


def my_rules_one_by_one():
    return [rule._replace(name=f"{rule.name}-{domain}", domain=(domain,)) for rule in rows() for domain in rule.domain]


def my_rules_more():
    """With exact rows that nobody asked for."""
    return [Rule("neg-neg", "neg(neg(x))", "x", NUMBER), *rows({("eq", ("bool",)): ()}), Rule("mul-one", "mul(x, 1)", "x", NUMBER)]


def my_rules_unflagged():
    return [Rule(op, *PATTERNS[op], NUMBER) for op in PATTERNS]


def my_rules_abs_everywhere():
    return rows({("abs", NUMBER): ()}, [("abs", ("float", "unsigned"))])


def my_rules_integers_flagged():
    return [Rule(op, *PATTERNS[op], NUMBER if op != "abs" else ("float", "unsigned"), flags)
            for (op, domain), flags in WISHES.items() if "float" in domain]


def my_rules_all_flags():
    return rows({(op, domain): ("nnan", "ninf", "nsz") for (op, domain), flags in WISHES.items() if flags})


def my_rules_only_floats():
    return rows(left_out=[wish for wish in WISHES if wish[1] == INT])


def my_rules_only_signed():
    return [rule._replace(domain=tuple(domain for domain in rule.domain if domain != "unsigned")) for rule in rows()]


def wrong_flags() -> Iterator[Mistake]:
    """Each wish with each wrong set of flags for floats."""
    needed = {"mul": {"nnan", "nsz"}, "neg": {"nsz"}, "eq": {"nnan"}, "abs": set()}  # ninf may stand in mul's row, and need not
    killers = {("mul", "nnan"): "x * 0.0 is NaN for NaN and for infinities: nnan promises that away.",
               ("mul", "nsz"): "-3.0 * 0.0 is -0.0: without nsz, that is not 0.0.",
               ("neg", "nsz"): "-(0.0 - 0.0) is -0.0: the sign of zero changes.", ("eq", "nnan"): "NaN is not equal to itself."}
    for op, flags in product(PATTERNS, SUBSETS):
        missing = [flag for flag in JUDGED if flag in needed[op] and flag not in flags]
        spare = [flag for flag in flags if flag not in WISHES.get((op, ("float",)), ())]
        if not missing and not spare:
            continue
        domain = ("float", "unsigned") if op == "abs" else ("float",)

        def wrong(op=op, flags=flags, domain=domain):
            return rows({(op, (one,)): flags if one == "float" else () for one in domain}, [(op, domain)])

        wrong.__name__ = "_".join(["my_rules", op, *(flags or ["unflagged"])])
        notes = [killers[op, flag] for flag in missing[:1]]
        if (op, flags) == ("mul", ()):
            notes = ["x * 0.0 is -0.0 for negative x, and NaN for NaN and infinities: it needs flags."]
        if spare:
            notes += [f"The wish {PATTERNS[op][0]} -> {PATTERNS[op][1]} has no killer that {' or '.join(spare)} promises away."
                      " A row waits for all of its flags, so name none without a killer."]
        if op == "abs":
            notes = ["x * x is never negative, not even -0.0, and abs keeps NaN: no flag is needed."]
        # the judge tries the sets of flags in order: in the first that tells, is the row used wrongly, or not used?
        used, right = ([set(wanted).issubset(fast) for fast in SUBSETS] for wanted in (flags, WISHES.get((op, domain), ())))
        first = next(i for i in range(len(SUBSETS)) if used[i] != right[i] and not (used[i] and needed[op].issubset(SUBSETS[i])))
        yield Mistake(wrong, "wrong-value" if used[first] else "did-nothing", " ".join(notes))


def missing_rows() -> Iterator[Mistake]:
    """Each wish without a row for some of the domains that it is right for."""
    for op, (pattern, result) in PATTERNS.items():
        for left_out in [("float",), ("unsigned",)] + ([("float", "unsigned")] if op == "abs" else [("signed",), INT]):

            def wrong(op=op, left_out=left_out):
                kept = [rule._replace(domain=tuple(one for one in rule.domain if one not in left_out or not rule.name.startswith(op)))
                        for rule in rows()]
                return [rule for rule in kept if rule.domain]

            wrong.__name__ = "_".join(["my_rules_no", *left_out, op])
            domains = " and ".join(left_out)
            flags = "without a flag" if op == "abs" or "float" not in left_out else "because flags promise its killers away"
            note = f"No row of yours makes {pattern} into {result} for {domains}, and one may: {flags}."
            yield Mistake(wrong, "did-nothing", note)


def my_rules_none():
    return None


def rewriting(function):
    """Rules as a pass: (graph, flags) -> Graph. What is no list of Rule is described instead."""

    def judged(graph, fast):
        rules = function()
        if not isinstance(rules, (list, tuple)) or not all(isinstance(rule, Rule) for rule in rules):
            return describe(rules)
        return rewrite(graph, fast, tuple(map(tidy, rules))).graph

    return judged


def tidy(rule: Rule) -> Rule:
    """A lone word is taken for a tuple of one; what does not exist is an error instead of a rule that never fires."""
    domain, flags = ((one,) if isinstance(one, str) else tuple(one) for one in (rule.domain, rule.flags))
    for part in (rule.pattern, rule.result):
        if not isinstance(part, str):
            raise GraphError(f"rule {rule.name}: {part!r} is not text. Patterns and results are, like \"mul(x, 0)\" and \"true\"")
        if re.search(r"\b(True|False)\b", part):
            raise GraphError(f"rule {rule.name}: in the language of the graphs it is true and false, in small letters")
        if re.search(r"\d\.\d", part) and set(INT) & set(domain):
            raise GraphError(f"rule {rule.name}: in '{part}' is a number that no integer can be. Write 0, which fits integers and floats")
    if re.match(r"(eq|ne|lt|le|gt|ge)\(", rule.pattern) and re.fullmatch(r"-?[0-9.]+", rule.result):
        raise GraphError(f"rule {rule.name}: a comparison gives a bool, so its result is true or false, not {rule.result}")
    for word, known, what in [(word, ANYTHING, "domain") for word in domain] + [(word, FLAGS, "flag") for word in flags]:
        if word not in known:
            raise GraphError(f"rule {rule.name}: there is no {what} '{word}'. {nearest(str(word), known)}".strip())
    return rule._replace(domain=domain, flags=flags)


FLOATS = (2.0, -0.0, np.inf, np.nan, -3.0, 0.0, -np.inf, 0.1)
PAIRS = np.array(list(product(FLOATS, FLOATS)), np.float32).T
POOLS = {"f32": tuple(PAIRS), "i8": (np.arange(256).astype(np.int8), np.arange(256).astype(np.int8)[::-1]),
         "u8": (np.arange(256).astype(np.uint8), np.arange(256).astype(np.uint8)[::-1])}  # fmt: skip
JUDGED = ("nnan", "ninf", "nsz")
SUBSETS = tuple(chained.from_iterable(combinations(JUDGED, size) for size in range(4)))


def wish_graphs():
    """Each wish by itself, smallest first; then near misses and everything else of up to two operations."""
    for dtype, (x, _) in POOLS.items():
        for op, lines in {"mul": ("zero", "y = mul(x, zero)"), "eq": ("", "y = eq(x, x)"),
                          "neg": ("zero", "a = sub(zero, x)\n y = neg(a)"), "abs": ("", "a = mul(x, x)\n y = abs(a)")}.items():
            const = f"zero = const(0) : {dtype}[]" if lines[0] else ""
            yield parse(f"graph {op}(x: {dtype}[{x.size}]) -> (y) {{\n {const}\n {lines[1]}\n return y\n}}")
        for line in ("y = mul(x, two)", "y = eq(x, z)", "a = sub(x, zero)\n y = neg(a)", "a = sub(zero, x)\n y = neg(x)",
                     "a = mul(x, z)\n y = abs(a)", "a = sub(z, x)\n y = neg(a)", "y = abs(x)", "a = mul(x, two)\n y = abs(a)"):
            yield parse(f"graph near(x: {dtype}[{x.size}], z: {dtype}[{x.size}]) -> (y) {{\n zero = const(0) : {dtype}[]\n"
                        f" two = const(2) : {dtype}[]\n {line}\n return y\n}}")
        yield parse(f"graph wide(x: {dtype}[{x.size}]) -> (y) {{\n zero = const(0) : {dtype}[1,{x.size}]\n y = mul(zero, x)\n return y\n}}")
    for dtype, (x, _) in POOLS.items():
        minus = (("minus_zero", -0.0, "f32[]"),) if dtype == "f32" else ()
        yield from small_graphs(Space(
            inputs=(("x", f"{dtype}[{x.size}]"), ("y", f"{dtype}[{x.size}]")), consts=(("zero", 0, f"{dtype}[]"), ("two", 2, f"{dtype}[]"), *minus),
            ops=(("mul", {}), ("sub", {}), ("neg", {}), ("eq", {}), ("abs", {})), limit=100))


def judge_rules(function):
    """Under each set of flags, the rules may change what the flags excuse and nothing else; and they must do as much
    as is right."""
    reference, tried, case = rewriting(my_rules), 0, ()
    try:
        with time_limit(20):
            for graph in wish_graphs():
                case = (graph, JUDGED)
                if function(*case) == graph == reference(*case):
                    tried += 1  # nothing fires with all flags, so nothing does with fewer
                    continue
                for fast in SUBSETS if graph.inputs[0].type.domain == "float" else ((), JUDGED):
                    tried, case = tried + 1, (graph, fast)
                    failure = judge_rewrite(graph, fast, function(graph, fast), reference)
                    if failure is not None:
                        return Verdict(failure, tried)
    except TookTooLong:
        return Verdict(Failure("too-long", "Your function does not come to an end.", case=case), tried)
    except NotImplementedError:
        return Verdict(NOT_ATTEMPTED, tried)
    except MinigraphError as error:  # the rule is wrong in itself, whatever the graph
        text = str(error).splitlines()[0]
        sentence = f"One of your rows is not a rule: {text}{'' if text.endswith(('.', '?')) else '.'}"
        return Verdict(replace(raised(error, None), sentence=sentence, case=case), tried)
    except (Exception, SystemExit) as error:  # learner's code may raise anything
        return Verdict(replace(raised(error, case[0] if case else None), case=case), tried)
    return Verdict(None, tried)


def judge_rewrite(graph, fast, got, reference) -> Failure | None:
    allowed = f"Allowed flags: {' '.join(fast) or 'none'}."
    if not isinstance(got, Graph):
        return Failure("not-rules", f"Your function returned {got}, not a list of Rule.", case=(graph, fast), got=got)
    found = unexcused(graph, got, fast) if got != graph else ()
    if found:
        return Failure("wrong-value", f"Your rules changed what the graph computes. {allowed}", graph, got, (graph, fast), found)
    best = reference(got, fast)
    if best != got:
        sentence = "None of your rules was used here, and one is right." if got == graph else "Your rules did less here than is right."
        return Failure("did-nothing", f"{sentence} {allowed}", graph, got, (graph, fast), ask_why(got, fast))
    return None


def ask_why(graph, fast) -> tuple[str, ...]:
    """Lines to copy, which say of each rule why it is not used."""
    name = graph.outputs[0][1]
    return ("To see why each rule was not used, run these two lines:", f"graph = parse({str(graph)!r})",
            f'for rule in my_rules(): print(explain(rule, graph, "{name}", {tuple(fast)!r}))')


def unexcused(graph, got, fast) -> tuple[str, ...]:
    """The first difference that the flags do not promise away."""
    inputs = {node.name: array for node, array in zip(graph.inputs, POOLS[graph.inputs[0].type.dtype])}
    before, after = every_value(graph, inputs), every_value(got, inputs)
    for (public, value), (_, now) in zip(graph.outputs, got.outputs):
        left, right = before[value], after[now]
        wrong = ~((left == right) | (left != left) & (right != right))
        if left.dtype.kind == "f" and "nsz" not in fast:
            wrong |= (left == right) & (np.signbit(left) != np.signbit(right))
        for array in (*before.values(), *after.values()):
            if array.dtype.kind == "f" and array.size <= left.size:
                wrong &= ~(np.isnan(array) & ("nnan" in fast) | np.isinf(array) & ("ninf" in fast))
        for index in np.argwhere(wrong)[:1]:
            lines = [f"{name} = {show_element(array[index[-1]])}" for name, array in inputs.items()]
            return (*lines, f"{public} should be {show_element(left[tuple(index)])}, and is {show_element(right[tuple(index)])}")
    return ()


def every_value(graph, inputs) -> dict[str, np.ndarray]:
    names = tuple((node.name, node.name) for node in graph.nodes)
    return run(Graph(graph.name, graph.nodes, names), inputs)


# ---- the stretch: find the killer -----------------------------------------------------------------------------------


def find_killer(before, after, values):
    """Inputs on which two graphs differ in a bit, as a dict that ``run`` takes; None if there are none.

    Both graphs have the same inputs (``before.inputs``, nodes) and the same outputs. Each input is a
    single float of some dtype (f32[], f16[] …) and is to take each of ``values``, a tuple of Python
    floats, together with each of the others: two inputs and three values are nine combinations.
    ``run(graph, inputs)`` gives a dict from output to array; ``Const.of(-0.0, "f16").array`` is an
    array of a dtype. All NaNs count as equal. About 8 lines.

    If ``before`` returns add(x, zero) with zero = const(0.0), and ``after`` returns x:

        find_killer(before, after, (1.0, -0.0))   # {"x": array(-0., dtype=float32)}
        find_killer(before, after, (1.0, 2.0))    # None
    """
    ### BEGIN SOLUTION
    from itertools import product

    for numbers in product(values, repeat=len(before.inputs)):
        pairs = zip(before.inputs, numbers)
        inputs = {node.name: Const.of(number, node.type.dtype).array for node, number in pairs}
        wanted, given = run(before, inputs), run(after, inputs)
        if not all(same_bits(wanted[name], given[name]) for name in wanted):
            return inputs
    return None
    ### END SOLUTION


def find_killer_variant(before, after, values, differ=lambda a, b: not same_bits(a, b), outputs=None, impatient=False,
                        choose=lambda values, size: product(values, repeat=size),
                        typed=lambda number, dtype: DTYPES[dtype].type(number)):
    for numbers in choose(values, len(before.inputs)):
        inputs = {node.name: typed(number, node.type.dtype) for node, number in zip(before.inputs, numbers)}
        wanted, given = run(before, inputs), run(after, inputs)
        if any(differ(wanted[name], given[name]) for name in list(wanted)[:outputs]):
            return inputs
        if impatient:
            return None
    return None


def find_killer_combinations(before, after, values):
    return find_killer_variant(before, after, values, choose=combinations)


def find_killer_in_order(before, after, values):
    return find_killer_variant(before, after, values, choose=combinations_with_replacement)


def find_killer_permutations(before, after, values):
    return find_killer_variant(before, after, values, choose=permutations)


def find_killer_f32(before, after, values):
    return find_killer_variant(before, after, values, typed=lambda number, dtype: np.float32(number))


def find_killer_python_floats(before, after, values):
    return find_killer_variant(before, after, values, typed=lambda number, dtype: number)


def find_killer_recursive(before, after, values):
    def search(chosen):
        if len(chosen) < len(before.inputs):
            node = before.inputs[len(chosen)]
            found = (search(chosen | {node.name: Const.of(value, node.type.dtype).array}) for value in reversed(values))
            return next((one for one in found if one is not None), None)
        wanted, given = run(before, chosen), run(after, chosen)
        return None if all(same_bits(wanted[name], given[name]) for name in wanted) else chosen

    return search({})


def find_killer_compact(before, after, values):
    return find_killer_variant(before, after, values)


def find_killer_unequal(before, after, values):
    return find_killer_variant(before, after, values, differ=lambda a, b: a != b)


def find_killer_close(before, after, values):
    return find_killer_variant(before, after, values, differ=lambda a, b: not np.allclose(a, b, equal_nan=True))


def find_killer_raw_bytes(before, after, values):
    """Compares bytes, as if there were one NaN only."""
    return find_killer_variant(before, after, values, differ=lambda a, b: a.tobytes() != b.tobytes())


def find_killer_together(before, after, values):
    return find_killer_variant(before, after, values, choose=lambda values, size: [(value,) * size for value in values])


def find_killer_first_output(before, after, values):
    return find_killer_variant(before, after, values, outputs=1)


def find_killer_impatient(before, after, values):
    return find_killer_variant(before, after, values, impatient=True)


def killing(function):
    """What is judged: does it find inputs, and do they kill? Any killer is as good as another."""

    def judged(before, after, values):
        found = function(before, after, values)
        if found is None:
            return "no killer"
        if not isinstance(found, dict):
            return f"{describe(found)} instead of a dict or None"
        shown = ", ".join(f"{name} = {value!s}" for name, value in found.items())
        try:
            wanted, given = run(before, found), run(after, found)
        except MinigraphError as error:
            return f"inputs that run refuses: {str(error).splitlines()[0]}"
        if all(same_bits(wanted[name], given[name]) for name in wanted):
            return f"{shown}, where both graphs give {', '.join(map(show_element, wanted.values()))}"
        return "a killer"

    return judged


def killer_cases():
    def graph(inputs, body, outputs="y"):
        return parse(f"graph g({inputs}) -> ({outputs.split(' = ')[0]}) {{\n {body}\n return {outputs}\n}}")

    pairs = [
        (graph("x: f32[]", "c = const(0.0)\n y = add(x, c)"), graph("x: f32[]", "", "y = x")),
        (graph("x: f32[]", "c = const(-0.0)\n y = add(x, c)"), graph("x: f32[]", "", "y = x")),
        (graph("x: f32[]", "y = sub(x, x)"), graph("x: f32[]", "y = const(0.0)")),
        (graph("x: f32[]", "y = mul(x, x)"), graph("x: f32[]", "a = abs(x)\n y = mul(a, a)")),
        (graph("x: f16[]", "c = const(0.0) : f16[]\n y = sub(c, x)"), graph("x: f16[]", "y = neg(x)")),
        (graph("x: f64[]", "y = div(x, x)"), graph("x: f64[]", "y = const(1.0) : f64[]")),
        (graph("x: f64[]", "a = neg(x)\n y = neg(a)"), graph("x: f64[]", "", "y = x")),
        (graph("x: f32[], z: f32[]", "a = sub(x, z)\n y = neg(a)"), graph("x: f32[], z: f32[]", "y = sub(z, x)")),
        (graph("x: f32[], z: f32[]", "y = add(x, z)"), graph("x: f32[], z: f32[]", "y = add(z, x)")),
        (graph("x: f32[], z: f32[]", "y = sub(x, z)"), graph("x: f32[], z: f32[]", "y = sub(z, x)")),
        (graph("x: f32[], z: f32[]", "a = mul(x, z)\n y = div(a, z)"), graph("x: f32[], z: f32[]", "", "y = x")),
        (graph("x: f32[], z: f16[]", "a = cast(z) {dtype=f32}\n y = maximum(x, a)"),
         graph("x: f32[], z: f16[]", "a = cast(z) {dtype=f32}\n b = gt(a, x)\n y = where(b, a, x)")),
        (graph("", "y = const(nan)"), graph("", "y = const(nan:0xffc00000)")),
        (graph("", "a = const(5.0)\n b = const(0.0)\n y = mul(a, b)"), graph("", "y = const(0.0)")),
        (graph("", "a = const(-5.0)\n b = const(0.0)\n y = mul(a, b)"), graph("", "y = const(0.0)")),
    ]
    two = "graph two(x: f32[]) -> (y, z) {{\n c = const({}0.0)\n y = neg(x)\n z = add(x, c)\n return y, z\n}}"
    pairs.append((parse(two.format("-")), parse(two.format(""))))
    for before, after in pairs:
        for values in ((1.0, 2.0, 0.0, -0.0, np.nan, np.inf, -np.inf, 3.0), (np.nan, 1.0, 2.0, 0.5)):
            yield before, after, values
    sides = graph("x: f32[], z: f32[]", "y = gt(x, z)")  # one of these has a killer with x > z alone, the other with x < z
    for values in ((1.0, 2.0), (2.0, 1.0)):
        yield sides, graph("x: f32[], z: f32[]", "a = ne(x, x)\n y = bitwise_and(a, a)"), values
        yield graph("x: f32[], z: f32[]", "y = lt(x, z)"), graph("x: f32[], z: f32[]", "y = ne(x, x)"), values


def explain_killer(case, want, got):
    before, after, values = case
    return ("after the rewrite:", *(f"    {line}" for line in str(after).splitlines()),
            f"values: {', '.join(map(str, values))}", f"there is {want}; your function gives {got}")


# ---- to refute --------------------------------------------------------------------------------------------------------


def plus_zero(graph, rule=Rule("plus-zero", "add(x, 0)", "x", ("float", "signed", "unsigned"))):
    """Replaces x + 0 by x, "because adding nothing changes nothing"."""
    return rewrite(graph, rules=[rule]).graph


def times_zero(graph, rule=Rule("times-zero", "mul(tanh(x), 0)", "0", ("float",))):
    """Replaces x * 0 by 0, but only where x is a tanh: "that lies between -1 and 1, so no infinity gets in"."""
    return rewrite(graph, rules=[rule]).graph


def minus_itself(graph, rule=Rule("minus-itself", "sub(x, x)", "0", ("float", "signed", "unsigned"))):
    """Replaces x - x by 0, "because everybody knows that"."""
    return rewrite(graph, rules=[rule]).graph


def divide_by_itself(graph, rule=Rule("divide-by-itself", "div(exp(x), exp(x))", "1", ("float",))):
    """Replaces x / x by 1, but only where x is an exp: "that is never zero and never negative"."""
    return rewrite(graph, rules=[rule]).graph


def graph_of(inputs: str, *lines: str) -> Graph:
    return parse("\n".join([f"graph mine({inputs}) -> (y) {{", *(f"  {line}" for line in lines), "  return y", "}"]))


def fitting(wrong, graph) -> list[tuple[Node, str]]:
    """The nodes that the rule of a wrong pass fits, each with the name of the rule's x there."""
    rule, env, found = wrong.__defaults__[0], Env(graph), []
    env.defs.update({node.name: node for node in graph.nodes})
    for node, pattern in product(graph.nodes, compile_rule(rule).patterns):
        holes: dict[str, str] = {}
        if match(pattern, node, env, holes) is None and env.type(node.inputs[-1]).domain in rule.domain:
            found.append((node, holes["x"]))
    return found


def first_killer(wrong, graph):
    """The first x, on the inputs that the judge tries, at which the rule of a wrong pass is wrong; None where it is right."""
    fits, result = fitting(wrong, graph), wrong.__defaults__[0].result
    for inputs in special_inputs(graph):
        values = every_value(observed(graph), inputs)
        for node, name in fits:
            x = np.broadcast_to(values[name], node.type.shape)
            right = x if result == "x" else np.full_like(values[node.name], float(result))
            for index in np.ndindex(node.type.shape):
                if not same_bits(values[node.name][index], right[index]):
                    return x[index]
    return None


def harmless(wrong, fits: str, integers: str, floats: str):
    """What to say after a graph on which a wrong pass does no harm: it depends on why it does none."""

    def hint(graph, got) -> str:
        if got == graph:
            return f"The rule did not fire here: it is for {fits}."
        if all(node.type.domain in INT for node, _ in fitting(wrong, graph)):
            return f"The rule fired. {integers}"
        x = first_killer(wrong, graph)
        if x is not None:
            return (f"The rule fired, and it is wrong for x = {show_element(x)}. But no output shows it:"
                    " let the graph return the value itself.")
        return f"The rule fired, and is right for every x that this graph lets in. {floats}"

    return hint


def times_zero_lesson(graph) -> str:
    x = first_killer(times_zero, graph)
    if x is None or np.isnan(x):
        how = "tanh hands NaN through, and NaN * 0.0 is NaN. A negative x does it too: its tanh is negative, so the product is -0.0."
    else:
        how = "its tanh has a minus sign, and so has the product: -0.0. NaN does it too: tanh hands it through."
    return f"The x here is {show_element(x) if x is not None else 'NaN'}: {how} A known range is not enough."


def minus_itself_lesson(graph) -> str:
    x = first_killer(minus_itself, graph)
    if x is None or np.isnan(x):
        return ("The x here is NaN, and NaN - NaN is NaN. An infinity does it too: inf - inf is NaN. In attention such scores are there"
                " on purpose: a mask writes -inf.")
    return (f"The x here is {show_element(x)}, and inf - inf is NaN. In attention such scores are there on purpose: a mask writes"
            " -inf. NaN does it too.")


def divide_by_itself_lesson(graph) -> str:
    x = first_killer(divide_by_itself, graph)
    if x is None or np.isnan(x):
        how = "NaN, and NaN / NaN is NaN. Ordinary numbers do it too: in float32, exp(89) is inf and exp(-104) is 0.0"
    elif x > 0:
        how = f"{show_element(x)}: its exp is inf, and inf / inf is NaN. In float32 that begins at 89, an ordinary score"
    else:
        how = f"{show_element(x)}: its exp is 0.0, and 0.0 / 0.0 is NaN. In float32 that begins at -104, an ordinary score"
    return f"The x here is {how}. This is why softmax subtracts the maximum first: the largest score then is 0, and its exp is 1."


EXERCISES = (
    Exercise(
        "04", "Is it an identity?", is_identity,
        lambda function: judge_calls(function, identity_cases(), truth(is_identity), explain=explain_identity),
        ("Each of the four operations has one number that changes nothing. For floats, two of them are zeros, and not the"
         " same zero: try -0.0 + 0.0 and -0.0 - 0.0.",
         "Look the number up by the operation, make an array of the constant's shape and dtype that is full of it, and compare"
         " the constant with that array to the bit. A dtype without -0.0 turns it into 0 by itself.",
         'identities = {"add": ..., "sub": ..., "mul": ..., "div": ...}\nwanted = np.full(const.shape, ..., const.array.dtype)\n'
         "return same_bits(...)"),
        (Mistake(is_identity_equal, "wrong-value", "This compares with ==, for which 0.0 and -0.0 are the same. Only one of the two"
                 " zeros changes nothing."),
         Mistake(is_identity_plus, "wrong-value", "x + 0.0 is not x: for x = -0.0 it is 0.0. The number for add is -0.0."),
         Mistake(is_identity_minus, "wrong-value", "The number for sub is 0.0: -0.0 - (-0.0) is 0.0, but -0.0 - 0.0 is -0.0."),
         Mistake(is_identity_first, "wrong-value", "A constant may be an array: all of its elements must be right, not just one."),
         Mistake(is_identity_scalar, "wrong-value", "An array that is full of the right number changes nothing either."
                 " For same_bits the shape counts: compare with an array of the same shape, or element by element."),
         Mistake(is_identity_in_float64, "wrong-value", "The number may be right, and its dtype is not: a plain -0.0 is a float64, and"
                 " for same_bits the dtype counts. Make the number one of const.array.dtype."),
         Mistake(is_identity_floats, "wrong-value", "Integers have identities too, and only one zero."),
         Mistake(is_identity_f32, "wrong-value", "The other dtypes have identities too.")),
        (is_identity_by_signbit, is_identity_by_const, is_identity_by_the_table),
        probes=tuple(identity_cases()),
        adapt=truth,
        praise="The two zeros are opposites here: -0.0 for add, 0.0 for sub.",
    ),
    Exercise(
        "04", "The pass", simplify, judge_simplify,
        ("Walk the nodes once. When an operation gives back its operand, do not keep it; remember which value stands for it.",
         "Keep two dicts: name -> node, and removed name -> the name that stands for it. For each node, first rename its operands"
         " by the second dict. Then look: is it neg of a neg, or has it an identity as an operand (the right one; for add and mul"
         " either)? If the other operand has the node's type, enter it in the second dict, else keep the node. At the end"
         " rename the outputs' values.",
         "nodes, known, stands_for = [], {}, {}\nfor node in graph.nodes:\n    inputs = tuple(stands_for.get(name, name) for name in"
         " node.inputs)\n    node = Node(node.name, node.op, inputs, node.value, node.type, node.origin)\n    known[node.name] ="
         " node\n    ...\n    if ... and known[x].type == node.type:\n        stands_for[node.name] = x\n    else:\n"
         "        nodes.append(node)\noutputs = ...\nreturn Graph(graph.name, tuple(nodes), outputs)"),
        (Mistake(simplify_school, "wrong-value", "0.0 == -0.0, but x + 0.0 is not x: compare constants to the bit."),
         Mistake(simplify_minus_zero, "wrong-value", "x - (-0.0) is not x: for x = -0.0 it is 0.0. The number for sub is 0.0."),
         Mistake(simplify_both_sides, "wrong-value", "The constant may stand on the left only where the operation commutes: 0.0 - x"
                 " is not x, and 1.0 / x is not either."),
         Mistake(simplify_any_shape, "lost", "A wider constant widens the result, so x is too small to stand for it."),
         Mistake(simplify_first_element, "wrong-value", "All elements of the constant must be right, not just the first."),
         Mistake(simplify_times_zero, "wrong-value", "x * 0.0 is not 0.0: it is -0.0 for negative x, and NaN for infinities and NaN."),
         Mistake(simplify_forgets_outputs, "invalid", "An output may read a value that you took out: it must read x instead."),
         Mistake(simplify_forgets_operands, "invalid", "A later operation may read a value that you took out."),
         Mistake(simplify_stale, "invalid", "neg(neg(x)) gives back the operand of the inner neg, and that may have been taken out"
                 " itself: look at the inner neg as it is now, or look the name up among those that stand for another."),
         Mistake(simplify_renames_outputs, "lost", "A public name is what callers ask for, so it stays: of the pair (public name, value"
                 " name), only the second may change. return y becomes return y = x."),
         Mistake(simplify_names_outputs_by_value, "lost", "A public name is what callers ask for, so it stays: of the pair (public name,"
                 " value name), only the second may change. return y becomes return y = x."),
         Mistake(simplify_stands_for_what_is_gone, "invalid", "The operand that stands for an operation may have been taken out itself:"
                 " rename the operands first, then look."),
         Mistake(simplify_in_float64, "did-nothing", "The number may be right, and its dtype is not: a plain -0.0 is a float64, and for"
                 " same_bits the dtype counts."),
         Mistake(simplify_by_original_operands, "did-nothing", "Look at an operation with the operands that it has now: taking out"
                 " what was between two negs makes them meet."),
         Mistake(simplify_drops_constants, "invalid", "Somebody else may still read that constant. Leave it: clearing up is another"
                 " pass's job."),
         Mistake(simplify_one_side, "did-nothing", "1.0 * x is x as well: add and mul commute. Where both sides are constants, either may be"
                 " the identity."),
         Mistake(simplify_floats, "did-nothing", "Integers have identities too: x + 0, x - 0 and x * 1."),
         Mistake(simplify_scalars, "did-nothing", "A constant that is an array full of ones is an identity too, where it does not"
                 " widen the result."),
         Mistake(simplify_no_neg, "did-nothing", "neg(neg(x)) is x, to the bit."),
         Mistake(simplify_nothing, "did-nothing", "The graph came back as it was.")),
        (simplify_compact, simplify_one_at_a_time, simplify_by_the_package),
        probes=tuple((graph,) for graph in TARGETS),
        praise="Operands come first, so one walk is enough: by the time a node is looked at, its operands are already simple.",
        is_pass=True,
    ),
    Exercise(
        "04", "Rules as data", my_rules, judge_rules,
        ("Take one wish at a time and ask what x must be for both sides to differ. Try 0.0, -0.0, a negative number, inf and NaN;"
         " for integers, think of the ones that wrap around (in i8, 12 * 12 is -112).",
         "A NaN that goes in or comes out: nnan. An infinity: ninf, and where it gives a NaN, nnan alone will do. Only the sign of a"
         " zero: nsz. Nothing: no flag, and the float row"
         " may join the integers' row. A difference at an ordinary integer: leave that domain out.",
         'return [\n    Rule("neg-zero-sub-int", "neg(sub(0, x))", "x", ("signed", "unsigned"), ()),\n'
         '    Rule("neg-zero-sub", "neg(sub(0, x))", "x", ("float",), (...)),\n    ...\n]'),
        (Mistake(my_rules_unflagged, "wrong-value", "These rows have no flags, so they must be right for every x: infinities, NaN and"
                 " both zeros."),
         Mistake(my_rules_abs_everywhere, "wrong-value", "Signed integers wrap around: in i8, 12 * 12 is -112. What is exact for floats"
                 " may be wrong for integers."),
         Mistake(my_rules_integers_flagged, "did-nothing", "Integers have no NaN, no infinity and one zero: their rows need no flags."),
         Mistake(my_rules_all_flags, "did-nothing", "A row waits for all of its flags, so name none without a killer."),
         Mistake(my_rules_only_floats, "did-nothing", "Where floats need flags and integers need none, the integers need a row of"
                 " their own."),
         Mistake(my_rules_only_signed, "did-nothing", "Unsigned integers are integers too."),
         *wrong_flags(), *missing_rows(),
         Mistake(my_rules_none, "not-rules", "Return the list of rows.")),
        (my_rules_as_llvm_needs, my_rules_one_by_one, my_rules_more),
        probes=tuple((graph, fast) for graph in wish_graphs() if graph.name in PATTERNS for fast in SUBSETS),
        adapt=rewriting,
        praise="One of the four was exact for floats and wrong for integers. Which domain is the safe one depends on the rule.",
    ),
    Exercise(
        "04", "Find the killer", find_killer,
        lambda function: judge_calls(function, killer_cases(), killing(find_killer), explain=explain_killer),
        ("Run both graphs on the same inputs and compare the outputs to the bit; the first difference is a killer.",
         "itertools.product(values, repeat=n) gives all combinations for n inputs. For each, make a dict from input name to an"
         " array of that input's dtype, run both graphs, and compare every output with same_bits. Only after the last"
         " combination is the answer None.",
         "for numbers in product(values, repeat=len(before.inputs)):\n    inputs = {node.name: Const.of(number, node.type.dtype).array"
         " for ...}\n    if not all(same_bits(...) for name in ...):\n        return inputs\nreturn None"),
        (Mistake(find_killer_unequal, "wrong-value", "NaN != NaN is True, so this takes two equal answers for a difference; and it"
                 " takes -0.0 for 0.0."),
         Mistake(find_killer_close, "wrong-value", "A difference in one bit counts: 0.0 and -0.0 differ, however close they are."),
         Mistake(find_killer_raw_bytes, "wrong-value", "There is more than one NaN in bits, and all of them count as equal: same_bits"
                 " knows that."),
         Mistake(find_killer_together, "wrong-value", "The inputs need not all take the same value: try every combination."),
         Mistake(find_killer_combinations, "wrong-value", "itertools.combinations never takes a value twice, and keeps their order. Two"
                 " inputs may take the same value, and 1.0, 2.0 is not 2.0, 1.0: itertools.product(values, repeat=...) gives all."),
         Mistake(find_killer_permutations, "wrong-value", "Two inputs may take the same value, which itertools.permutations leaves out:"
                 " itertools.product(values, repeat=...) gives all."),
         Mistake(find_killer_in_order, "wrong-value", "1.0, 2.0 is not 2.0, 1.0: the order counts. itertools.product(values, repeat=...)"
                 " gives all."),
         Mistake(find_killer_f32, "raises", "Inputs have dtypes of their own, and not each is f32: node.type.dtype says which, for each"
                 " node in before.inputs."),
         Mistake(find_killer_python_floats, "raises", "A Python float is a float64, and run wants an input's own dtype:"
                 " Const.of(number, node.type.dtype).array."),
         Mistake(find_killer_first_output, "wrong-value", "A graph may have several outputs."),
         Mistake(find_killer_impatient, "wrong-value", "One combination that agrees proves nothing: go on to the next.")),
        (find_killer_recursive, find_killer_compact),
        probes=tuple(killer_cases()),
        adapt=killing,
        praise="This is how the rule table of this course is tested: every row, on every combination of special values.",
        stretch=True,
    ),
)  # fmt: skip

REFUTATIONS = (
    Refutation(
        "04", plus_zero,
        graph_of("x: i32[4]", "zero = const(0) : i32[]", "y = add(x, zero) : i32[4]"),
        graph_of("x: f32[4]", "zero = const(0.0) : f32[]", "y = add(x, zero) : f32[4]"),
        harmless(plus_zero, "an addition of a constant that is 0 or 0.0 in every element, and -0.0 has other bits",
                 "On integers it is exact. Which dtype has a number that adding zero changes?",
                 "One float alone is changed by adding 0.0. Which?"),
        "One float in four billion is enough: -0.0 + 0.0 is 0.0. On integers the same rule is exact.",
    ),
    Refutation(
        "04", times_zero,
        graph_of("", "half = const(0.5) : f32[]", "gate = tanh(half) : f32[]", "zero = const(0.0) : f32[]", "y = mul(gate, zero) : f32[]"),
        graph_of("x: f32[4]", "gate = tanh(x) : f32[4]", "zero = const(0.0) : f32[]", "y = mul(gate, zero) : f32[4]"),
        harmless(times_zero, "the product of a tanh and a constant that is 0.0 in every element, and -0.0 has other bits", "",
                 "There is no infinity in a tanh. What else can a tanh be that makes its product with 0.0 something other than 0.0?"),
        times_zero_lesson,
    ),
    Refutation(
        "04", minus_itself,
        graph_of("", "score = const(3.0) : f32[]", "y = sub(score, score) : f32[]"),
        graph_of("score: f32[4]", "y = sub(score, score) : f32[4]"),
        harmless(minus_itself, "a sub that has the same name twice",
                 "On integers it is exact. Which dtype has a number that, minus itself, is not 0?",
                 "What would the score have to be, so that it minus itself is not 0.0?"),
        minus_itself_lesson,
    ),
    Refutation(
        "04", divide_by_itself,
        graph_of("", "score = const(1.0) : f32[]", "e = exp(score) : f32[]", "y = div(e, e) : f32[]"),
        graph_of("score: f32[4]", "e = exp(score) : f32[4]", "y = div(e, e) : f32[4]"),
        harmless(divide_by_itself, "a quotient of two exp of the same value", "",
                 "In real numbers exp is never zero. A float32 has a smallest and a largest number: what is exp of -200, and of 200?"),
        divide_by_itself_lesson,
    ),
)  # fmt: skip
