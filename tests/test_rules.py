"""Every rewrite rule is attacked: exact rules with every special value, flagged rules for a reason for each flag."""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import pytest
from strategies import values_of

import minigraph as mg
from minigraph.errors import GraphError, RuleLoop
from minigraph.fuzz import weight
from minigraph.ops import OPS
from minigraph.passes import dce, simplify
from minigraph.passes.rules import EXACT, FAST, FLAGS, RULES, Rule
from minigraph.passes.simplify import Call, Hole, compile_rule, explain, hole_names
from minigraph.passes.simplify import weight as pattern_weight
from minigraph.random_graphs import ACCEPTED, ORDINARY, SPECIAL, Grower, random_inputs
from minigraph.types import DTYPES, Type, same_bits

EXACT_RULES = [rule for rule in RULES if not rule.flags]
by_name = {"argvalues": EXACT_RULES, "ids": lambda rule: rule.name}


def planted(rule: Rule, count: int):
    """Graphs whose one output is the rule's left-hand side over random types: (graph, what simplify makes of it)."""
    for index in range(count):
        rng = random.Random(f"{rule.name}/{index}")
        grow = Grower(rng)
        grow.leaves_are_inputs = 0.8
        root = grow.plant(rule)
        if root is not None:
            graph = grow.builder.build({"y": root})
            yield rng, graph, simplify(graph, rule.flags, (rule,))


def built_weight(part) -> int:
    """The weight of what a rule makes; what is made of constants alone is computed at once."""
    if not isinstance(part, Call) or not hole_names(part) or all(name[0] == "c" and name[1:] for name in hole_names(part)):
        return 0
    return OPS[part.op].cost + sum(map(built_weight, part.args))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_every_rule_fires_and_lowers_the_weight(rule):
    compiled = compile_rule(rule)
    assert all(pattern_weight(pattern) > built_weight(compiled.result) for pattern in compiled.patterns)
    domains, shapes, lighter = set(), set(), 0
    for _, graph, result in planted(rule, 120):
        if result.report:
            assert {step.rule for step in result.report} == {rule.name}
            mg.verify(result.graph)
            before, after = weight(graph), weight(dce(result.graph).graph)
            assert after <= before or "arcp" in rule.flags  # equal where a part of the pattern has other users
            lighter += after < before
            root = graph[graph.outputs[0][1]]
            domains.add(graph[root.inputs[-1]].type.domain)
            shapes.add(root.type.shape)
    assert lighter and len(shapes) > 2
    root = compiled.patterns[0].op
    takes = {Type(dtype).domain for dtype in ACCEPTED.get(root, DTYPES)}
    takes -= {"bool"} if root == "cast" and compiled.patterns[0].args != (Hole("x", False),) else set()  # too narrow
    assert domains == takes.intersection(rule.domain), "a domain that the rule names was never matched"


@pytest.mark.parametrize("rule", **by_name)
def test_an_exact_rule_keeps_every_bit_on_random_types(rule):
    for rng, graph, result in planted(rule, 60):
        for _ in range(2 if result.report else 0):
            inputs = random_inputs(rng, graph)
            before, after = values_of(graph, inputs), values_of(result.graph, inputs)
            assert same_bits(after[result.graph.outputs[0][1]], before[graph.outputs[0][1]]), (str(graph), inputs)


# ---- every special value with every other ---------------------------------------------------------------------------


class Grid(Grower):
    """Plants a rule whose first hole is a column of values and whose second a row; constants are given."""

    def __init__(self, pool: np.ndarray, constants: tuple):
        super().__init__(random.Random(0))
        self.pool, self.constants, self.inputs = pool, list(constants), {}
        self.names, self.most = "letters", len(pool) ** 2

    def hole(self, hole, dtype, shapes):
        if hole.constant:
            return self.const(np.array(self.constants.pop(0), DTYPES[dtype]))
        pool = self.pool if dtype != "bool" else np.array([False, True])
        array = pool[:, None] if len(self.inputs) % 2 == 0 else pool[None, :]
        name = self.builder.input(f"x{len(self.inputs)}", Type(dtype, array.shape))
        self.inputs[name] = array
        return name


ELEMENTWISE = [rule for rule in RULES if all(op in OPS and OPS[op].kind.value == "elementwise" and op != "cast" for op in
                                             rule.pattern.replace("(", " ( ").replace(",", " ").split() if op in OPS)]


def grids(rule: Rule, pools=(SPECIAL, ORDINARY)):
    """The rule over all pairs of values, by dtype and constants: (left, right, all values of both sides)."""
    count = len({word for word in rule.pattern.replace("(", " ").replace(")", " ").replace(",", " ").split()
                 if word in ("c1", "c2")})  # fmt: skip
    compiled = compile_rule(rule)
    for dtype in [dtype for dtype in DTYPES if Type(dtype).domain in rule.domain]:
        pool = np.concatenate([values[dtype] for values in pools])
        for constants in product(pool if count < 2 else pool[::2], repeat=count):
            grid = Grid(pool, constants)
            root = grid.instantiate(compiled.patterns[0], dtype, {}, [])
            if root is None:  # the literal is not in this dtype
                continue
            graph = grid.builder.build({"y": root})
            after = dce(simplify(graph, rule.flags, (rule,)).graph).graph
            if after is graph:
                continue
            left, right = values_of(graph, grid.inputs), values_of(after, grid.inputs)
            y = left[root]
            everything = [np.broadcast_to(value, y.shape) for value in [*left.values(), *right.values()] if value.size]
            yield y, right[after.outputs[0][1]], [value for value in everything if value.dtype.kind == "f"]


@pytest.mark.parametrize("rule", [rule for rule in ELEMENTWISE if not rule.flags], ids=lambda rule: rule.name)
def test_an_exact_rule_keeps_every_bit_of_every_pair(rule):
    found = 0
    for left, right, _ in grids(rule):
        assert same_bits(left, right), (left, right)
        found += 1
    assert found


# ---- flags: each for a reason, and all together enough ----------------------------------------------------------------

# Flags whose class of values another flag of the rule excludes, too. LLVM names them all the same.
OVERLAP = {
    ("mul-zero", "ninf"): "inf * 0 is NaN, which nnan excludes",
    ("sub-self", "ninf"): "inf - inf is NaN",
    ("div-self", "ninf"): "inf / inf is NaN",
}


def blame(rule: Rule, left, right, everything) -> dict[str, np.ndarray]:
    """For each flag: the elements that it excludes. A NaN or an infinity counts wherever it turns up."""
    only_sign = (left == right) & (left == 0)
    masks = {"nnan": np.any([np.isnan(value) for value in everything], axis=0),
             "ninf": np.any([np.isinf(value) for value in everything], axis=0), "nsz": only_sign}  # fmt: skip
    return {flag: masks[flag] for flag in rule.flags if flag in masks}


@pytest.mark.parametrize("rule", FAST, ids=lambda rule: rule.name)
def test_each_flag_has_a_counterexample_of_its_own(rule):
    assert set(rule.flags) <= set(FLAGS) and rule.flags
    seen, alone, rounding = set(), set(), 0
    exact = {"arcp", "reassoc"}.isdisjoint(rule.flags)
    for left, right, everything in grids(rule):
        different = ~((left == right) & (np.signbit(left) == np.signbit(right)) | np.isnan(left) & np.isnan(right))
        excluded = blame(rule, left, right, everything)
        for flag, mask in excluded.items():
            others = [other for name, other in excluded.items() if name != flag]
            seen |= {flag} if (different & mask).any() else set()
            alone |= {flag} if (different & mask & ~np.any(others or [np.zeros_like(mask)], axis=0)).any() else set()
        rest = different & ~np.any([np.zeros_like(different), *excluded.values()], axis=0)
        assert not (exact and rest.any()), "a difference that no flag excludes"
    for left, right, everything in grids(rule, (ORDINARY,)):
        size = np.max(np.abs(everything), axis=0)
        usual = np.isfinite(size) & (np.min(np.abs(everything), axis=0) > 0.01)
        error = np.abs(left[usual] - right[usual])
        rounding += np.count_nonzero(error)
        assert (error <= 8 * np.finfo(left.dtype).eps * size[usual]).all(), "more than rounding, on ordinary values"
    for flag in rule.flags:
        if flag in ("arcp", "reassoc"):
            assert rounding, f"{flag}: no rounding differs on ordinary values"
        else:
            assert flag in seen, f"{flag}: no counterexample"
            assert (flag in alone) == ((rule.name, flag) not in OVERLAP), f"{flag}: see OVERLAP"


@pytest.mark.parametrize("rule", [Rule("parked", "sub(x, 0.0)", "x", flags=("nsz",)),
                                  Rule("parked", "mul(x, 1)", "x", flags=("reassoc",)),
                                  Rule("too-bold", "mul(x, 0.0)", "0", flags=("nsz",)),
                                  Rule("too-bold", "sub(x, x)", "0", flags=("ninf",))], ids=str)  # fmt: skip
def test_a_rule_with_the_wrong_flags_is_caught(rule):
    with pytest.raises(AssertionError):
        test_each_flag_has_a_counterexample_of_its_own(rule)


@pytest.mark.parametrize("rule", [Rule("bad", "add(x, 0.0)", "x"), Rule("bad", "mul(x, 0)", "0", ("float",)),
                                  Rule("bad", "abs(neg(x))", "abs(x)", ("unsigned",)),
                                  Rule("bad", "sub(0, x)", "neg(x)", ("float", "signed")),
                                  Rule("bad", "div(mul(x, 2), 2)", "x"), Rule("bad", "eq(x, x)", "true")], ids=str)  # fmt: skip
def test_a_wrong_exact_rule_is_caught(rule):
    with pytest.raises(AssertionError):
        test_an_exact_rule_keeps_every_bit_of_every_pair(rule)


# ---- the table and its machinery --------------------------------------------------------------------------------------


def test_names_are_unique_and_every_rule_says_why():
    names = [rule.name for rule in RULES]
    assert len(set(names)) == len(names)
    assert all(rule.why and rule.domain for rule in RULES)
    assert all(not rule.flags for rule in EXACT) and all(rule.flags for rule in FAST)


@pytest.mark.parametrize("rule", [Rule("turn", "sub(x, y)", "neg(sub(y, x))"), Rule("commute", "add(x, y)", "add(y, x)"),
                                  Rule("grow", "neg(x)", "sub(0.0, x)")], ids=lambda rule: rule.name)  # fmt: skip
def test_a_rule_that_makes_nothing_lighter_is_a_rule_loop(rule):
    graph = mg.parse(f"graph g(x: f32[2], y: f32[2]) -> (r) {{\n r = {rule.pattern}\n return r\n}}")
    with pytest.raises(RuleLoop, match=f"rule {rule.name} does not make 'r = .*' lighter"):
        simplify(graph, rules=(rule,))
    with pytest.raises(RuleLoop, match=rule.name):
        mg.optimize(graph, passes=["dce", lambda graph: simplify(graph, rules=(rule,))])


@pytest.mark.parametrize(("pattern", "result", "sentence"), [
    ("x", "x", "is not an operation"),
    ("relu(x)", "x", "unknown op 'relu'"),
    ("add(x, y", "x", "lacks a closing parenthesis"),
    ("add(", "x", "is not a pattern"),
    ("add(x, y) z", "x", "goes on after the pattern: z"),
    ("add(x, y)", "z", "the hole 'z' of 'z' is not in 'add(x, y)'"),
    ("neg(x)", "mul(x, c1)", "the hole 'c1'"),
    ("add(x y)", "x", "is not a pattern"),
    ("", "x", "is not a pattern"),
])  # fmt: skip
def test_a_badly_written_rule_is_a_sentence(pattern, result, sentence):
    with pytest.raises(GraphError) as caught:
        compile_rule(Rule("r", pattern, result))
    assert sentence in str(caught.value)


def test_unknown_predicates_and_flags_are_sentences():
    with pytest.raises(GraphError, match="no predicate 'power_of_too'"):
        compile_rule(Rule("r", "neg(x)", "x", when="power_of_too"))
    graph = mg.parse("graph g(x: f32[]) -> (x) { return x }")
    with pytest.raises(GraphError, match="unknown fast-math flag 'nzs'\n  did you mean 'nsz'"):
        simplify(graph, ("nzs",))
    assert simplify(graph, "fast").graph is graph and simplify(graph, "nnan, nsz").report == ()


@pytest.mark.parametrize(("name", "dtype", "ops", "constant"), [
    ("div-const", "f32", "div", 1e-40), ("div-const", "f16", "div", 1e-5), ("div-const", "f32", "div", 3e38),
    ("mul-mul", "f32", "mul mul", 1e30), ("mul-mul", "f32", "mul mul", 1e-30),
    ("div-div", "f32", "div div", 1e30), ("div-div", "f32", "div div", 1e-30),
    ("add-add", "f32", "add add", 3e38),
])  # fmt: skip
def test_a_flag_for_rounding_makes_no_constant_that_overflows_or_underflows(name, dtype, ops, constant):
    """0 / 1e-40 is 0, but 0 * (1 / 1e-40) is 0 * inf: arcp allows another rounding, not a NaN."""
    rules = [rule for rule in FAST if rule.name == name]
    for number, fires in ((constant, False), (3.0, True)):
        lines = "\n".join(f"v{i + 1} = {op}(v{i}, c)" for i, op in enumerate(ops.split()))
        graph = mg.parse(f"graph g(v0: {dtype}[3]) -> (y) {{\nc = const({number}) : {dtype}[]\n{lines}\n"
                         f"return y = v{len(ops.split())}\n}}")
        assert bool(simplify(graph, rules[0].flags, rules).report) == fires


def test_where_a_rule_asks_for_allowance_it_waits_for_all_its_flags():
    graph = mg.parse("graph g(x: f32[2]) -> (y) {\n z = const(0.0) : f32[]\n y = mul(x, z)\n return y\n}")
    for fast in ((), ("nnan",), ("nnan", "ninf"), ("ninf", "nsz")):
        assert simplify(graph, fast).report == ()
    for fast in (("nnan", "ninf", "nsz"), "fast"):
        assert "y = broadcast_to(y.c) {shape=[2]} : f32[2]" in str(simplify(graph, fast).graph)


EXPLAIN = """graph g(x: f32[2], i: i32[2], w: f32[1,2]) -> (a) {
  zero = const(0.0) : f32[]
  minus = const(-0.0) : f32[]
  three = const([3.0, 2.0]) : f32[2]
  n = neg(x)
  a = add(x, minus)
  b = add(x, zero)
  c = sub(x, n)
  d = abs(i)
  e = div(x, three)
  f = sub(i, i)
  g = mul(n, x)
  return a
}"""


@pytest.mark.parametrize(("rule", "value", "fast", "sentence"), [
    ("add--0.0-float", "a", (), "add--0.0-float fits a = add(x, minus) : f32[2]"),
    ("add--0.0-float", "b", (), "add--0.0-float: '-0.0' does not fit zero = const(0.0) : f32[]: it does not have these bits in every element"),
    ("add--0.0-float", "c", (), "add--0.0-float: 'add(x, -0.0)' does not fit c = sub(x, n) : f32[2]: it is another operation"),
    ("add-zero", "b", (), "add-zero needs the flags nsz: wrong for x = -0.0: -0.0 + 0.0 is 0.0"),
    ("add-zero", "b", ("nsz",), "add-zero fits b = add(x, zero) : f32[2]"),
    ("sub-self", "c", ("fast",), "sub-self: 'x' does not fit n = neg(x) : f32[2]: it is not the value that the hole already stands for"),
    ("abs-neg", "d", (), "abs-neg: 'neg(x)' does not fit i: i32[2]: it is another operation"),
    ("div-power-of-two", "e", (), "div-power-of-two: power of two does not hold"),
    ("div-power-of-two", "a", (), "div-power-of-two: 'div(x, c1)' does not fit a = add(x, minus) : f32[2]: it is another operation"),
    ("sub-self", "f", ("fast",), "sub-self: the rule is for float, the operands are signed"),
    ("mul-neg-neg", "g", (), "mul-neg-neg: 'neg(y)' does not fit x: f32[2]: it is another operation"),
])  # fmt: skip
def test_explain_says_why_a_rule_did_not_fire(rule, value, fast, sentence):
    rules = {rule.name: rule for rule in RULES}
    assert explain(rules[rule], mg.parse(EXPLAIN), value, fast) == sentence


def test_explain_says_where_a_result_does_not_fit():
    graph = mg.parse("graph g(x: f32[2]) -> (y) {\n y = eq(x, x)\n return y\n}")
    assert explain(Rule("eq-one", "eq(x, x)", "1"), graph, "y") == "eq-one: '1' cannot stand for a value of type bool[2]"


def test_explain_knows_its_names():
    with pytest.raises(GraphError, match="no value is named 'q'"):
        explain(RULES[0], mg.parse(EXPLAIN), "q")


def test_a_replacement_keeps_shape_and_dtype():
    """A narrow operand is broadcast to what it replaces; attributes of the replaced operation stay."""
    graph = mg.parse("""graph g(x: f32[3], c: bool[2,3]) -> (y, z, w) {
      yes = const(true) : bool[2,3]
      other = const(1.0) : f32[2,3]
      y = where(yes, x, other)
      a = reshape(x) {shape=[3,1]}
      z = reshape(a) {shape=[1,3]}
      zero = const(0) : i8[4,1]
      i = cast(c) {dtype=i8}
      j = reshape(i) {shape=[6]}
      w = mul(j, zero)
      return y, z, w
    }""")
    after = simplify(graph).graph
    lines = str(after)
    assert "y = broadcast_to(x) {shape=[2,3]} : f32[2,3]" in lines
    assert "z = reshape(x) {shape=[1,3]} : f32[1,3]" in lines
    assert "w = broadcast_to(w.c) {shape=[4,6]} : i8[4,6]" in lines


def test_regrouping_constants_does_not_store_more():
    """(x + column) + row is not x + (column + row): the sum of the two is a matrix."""
    graph = mg.parse("""graph g(x: i32[3,3]) -> (y) {
      a = const([[1], [2], [3]]) : i32[3,1]
      b = const([1, 2, 3]) : i32[3]
      c = add(x, a)
      y = add(c, b)
      return y
    }""")
    assert simplify(graph).report == ()
