"""The rules by name agree with the verifier, though they share none of its walk."""

import random

import pytest
from strategies import samples
from test_verify import INVALID, damages

from minigraph.ir import Graph
from minigraph.teach.invariants import RULES, broken_rules
from minigraph.verify import problems

RULE = {"defined earlier": "defined-earlier", "defined once": "defined-once", "op known": "known-op", "arity": "right-type",
        "type": "right-type", "constants": None, "inputs first": None, "attributes": "right-value", "effects": None,
        "outputs": "right-outputs"}  # fmt: skip


NOT_NAMES = [row for row in INVALID if row[0] != "a name" and "not a name" not in row[3]]


@pytest.mark.parametrize("label, nodes, outputs, sentence", NOT_NAMES)
def test_what_the_verifier_refuses_breaks_a_rule(label, nodes, outputs, sentence):
    """Names are the one thing that no rule speaks of."""
    outputs = ((outputs, outputs),) if isinstance(outputs, str) else outputs
    found = broken_rules(Graph("g", tuple(nodes), outputs))
    assert found <= RULES.keys()
    assert RULE[label] in found if RULE[label] else found


def test_right_graphs_break_no_rule_and_damaged_ones_do():
    rng = random.Random(0)
    for graph, _ in samples(60, "invariants"):
        assert not broken_rules(graph)
        for what, damaged in damages(rng, graph):
            assert bool(broken_rules(damaged)) == bool(list(problems(damaged))), what
