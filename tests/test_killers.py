"""The values that kill a rule: each flag has one, and a rule without flags has none."""

import pytest

from minigraph.passes.rules import FAST, RULES, Rule
from minigraph.teach import api
from minigraph.teach.exercises import EXERCISES, ch04
from minigraph.teach.killers import differences, killer, killer_table, rule_grid, title

ARITHMETIC = ("add(", "sub(", "mul(", "div(", "neg(", "abs(", "pow(", "maximum(", "minimum(", "lt(", "gt(")
EXACT = [rule for rule in RULES if not rule.flags and "float" in rule.domain and rule.pattern.startswith(ARITHMETIC)]


@pytest.mark.parametrize("rule", EXACT, ids=lambda rule: rule.name)
def test_an_exact_rule_has_no_killer(rule):
    assert killer(rule) is None


@pytest.mark.parametrize("rule", FAST, ids=lambda rule: rule.name)
def test_each_flag_has_a_killer_that_it_excuses(rule):
    for flag in rule.flags:
        one = killer(rule, flag)
        assert one.where in {other.where for other in differences(rule)}
        assert flag in ("arcp", "reassoc") or flag in one.excuses


def test_the_table_and_the_grid_say_what_they_show():
    rows = killer_table(FAST).rows
    assert {row["rule"] for row in rows} == {"", *(f"{rule.pattern} -> {rule.result}" for rule in FAST)}
    assert rows[0] == {"rule": "add(x, 0.0) -> x", "flags": "nsz", "killer": "x = -0.0", "left side": "0.0", "right side": "-0.0"}
    assert "none found" not in repr(killer_table(FAST))
    grid = rule_grid([Rule("plus", "add(x, 0.0)", "x"), Rule("minus", "sub(x, 0.0)", "x")])
    assert grid.alt == ("Grid, which x kills which rule. add(x, 0.0) -> x: at -0.0: 0.0, not -0.0."
                        " sub(x, 0.0) -> x: the same everywhere.")


def test_a_title_says_when():
    rules = {rule.name: rule for rule in RULES}
    assert title(rules["div-const"]) == "div(x, c1) -> mul(x, div(1, c1))"
    assert title(rules["div-power-of-two"]) == "div(x, c1) -> mul(x, div(1, c1)) when power_of_two"


# ---- what chapter 04 says of killers -------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong, inputs, lines, sentence", [
    ("plus_zero", "x: f32[4]", ["zero = const(-0.0)", "y = add(zero, x)"], "did not fire"),
    ("plus_zero", "x: i8[4]", ["zero = const(0) : i8[]", "y = add(x, zero)"], "On integers it is exact"),
    ("plus_zero", "", ["five = const(5.0)", "zero = const(0.0)", "y = add(five, zero)"], "One float alone"),
    ("plus_zero", "x: f32[4]", ["zero = const(0.0)", "a = add(x, zero)", "y = abs(a)"], "wrong for x = -0.0. But no output shows it"),
    ("times_zero", "x: f32[4]", ["gate = tanh(x)", "zero = const(-0.0)", "y = mul(gate, zero)"], "did not fire"),
    ("times_zero", "", ["x = const(-3.0)", "gate = tanh(x)", "zero = const(0.0)", "y = mul(gate, zero)"], "The x here is -3.0: its tanh"),
    ("times_zero", "", ["x = const(nan)", "gate = tanh(x)", "zero = const(0.0)", "y = mul(gate, zero)"], "NaN * 0.0 is NaN"),
    ("minus_itself", "", ["s = const(nan)", "y = sub(s, s)"], "The x here is NaN"),
    ("minus_itself", "", ["zero = const(0.0)", "s = log(zero)", "y = sub(s, s)"], "The x here is -inf"),
    ("divide_by_itself", "", ["s = const(nan)", "e = exp(s)", "y = div(e, e)"], "The x here is NaN"),
    ("divide_by_itself", "", ["s = const(200.0)", "e = exp(s)", "y = div(e, e)"], "its exp is inf"),
    ("divide_by_itself", "", ["s = const(-200.0)", "e = exp(s)", "y = div(e, e)"], "its exp is 0.0"),
])  # fmt: skip
def test_a_refutation_speaks_of_the_graph_at_hand(wrong, inputs, lines, sentence, tmp_path, monkeypatch):
    monkeypatch.setenv("MINIGRAPH_WORK", str(tmp_path))
    assert sentence in api.refute(getattr(ch04, wrong), ch04.graph_of(inputs, *lines)).lines[0]


@pytest.mark.parametrize("row, sentence", [
    (Rule("eq-self", "eq(x, x)", "1"), "a comparison gives a bool, so its result is true or false, not 1"),
    (Rule("eq-self", "eq(x, x)", True), "True is not text"),
    (Rule("eq-self", "eq(x, x)", "True"), "in small letters"),
    (Rule("mul-zero", "mul(x, 0.0)", "0", ("signed",)), "no integer can be"),
    (Rule("mul-zero", "mul(x, 0)", "0", ("floats",)), "there is no domain 'floats'"),
])  # fmt: skip
def test_a_row_that_can_never_be_used_is_named(row, sentence):
    exercise = EXERCISES["my_rules"]
    failure = exercise.judge(exercise.adapt(lambda: [row])).failure
    assert failure.kind == "raises" and failure.graph is None and sentence in failure.sentence


@pytest.mark.parametrize("flags, right", [
    (("nnan", "ninf"), True), (("nnan",), True), (("ninf",), False), ((), False),
])  # fmt: skip
@pytest.mark.parametrize("pattern, result", [("sub(x, x)", "0"), ("mul(x, 0)", "0")])
def test_nnan_covers_infinities_whose_result_is_nan(pattern, result, flags, right):
    flags += ("nsz",) * (pattern == "mul(x, 0)")
    rows = [rule for rule in ch04.rows() if rule.pattern != pattern or "float" not in rule.domain]
    exercise = EXERCISES["my_rules"]
    failure = exercise.judge(exercise.adapt(lambda: [*rows, Rule("mine", pattern, result, ("float",), flags)])).failure
    assert (failure is None) == right
