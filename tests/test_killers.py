"""The values that kill a rule: each flag has one, and a rule without flags has none."""

import pytest

from minigraph.passes.rules import FAST, RULES, Rule
from minigraph.teach.killers import differences, killer, killer_table, rule_grid

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
