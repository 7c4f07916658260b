"""The pipeline: what it demands of a pass, what it remembers, and every promise at once on random graphs."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from strategies import samples, values_of

import minigraph as mg
from minigraph.errors import GraphError, PassError
from minigraph.fuzz import Tally, check_graph, evaluate, fuzz, launches, main, shrink, tainted
from minigraph.ir import Graph, Node, defs
from minigraph.ops import OPS
from minigraph.passes import PASSES, dce, fold
from minigraph.passes.rules import FLAGS, RULES
from minigraph.pipeline import DEFAULT, ROUNDS, optimize, replacements, run_pass
from minigraph.random_graphs import APART, sample
from minigraph.rebuild import Result, Step
from minigraph.types import same_bits

# ---- random graphs ------------------------------------------------------------------------------------------------------


def test_every_promise_on_random_graphs():
    """A small run of ``minigraph fuzz``; the long one is for a machine with time."""
    tally = Tally()
    for index in range(700):
        findings = check_graph(*sample("pipeline", index), tally)
        assert not findings, (index, [str(one) for one in findings])
    assert tally.stopped < 0.05 * tally.graphs, "too many graphs end in an error to say anything"
    assert len(tally.rules) > 0.7 * sum(not rule.flags for rule in RULES)


def test_any_order_of_the_passes():
    for (graph, inputs), order in zip(samples(240, "order"), 10 * list(permutations(PASSES))):
        values, _, error = evaluate(graph, inputs)
        optimized = optimize(graph, passes=order)
        for stage in optimized.history:
            assert list(launches(stage, evaluate(stage.before, inputs)[0])) == []
        if error is None:
            after, loose = values_of(optimized.graph, inputs), tainted(graph)
            for (_, value), (_, now) in zip(graph.outputs, optimized.graph.outputs):
                assert value in loose or same_bits(values[value], after[now])


@pytest.mark.parametrize("fast", [*((flag,) for flag in FLAGS), ("fast",), ("nnan", "ninf", "nsz")], ids=str)
def test_fast_math_keeps_everything_but_the_bits(fast):
    """Valid graphs, the same signature, an account of every change, an end; and integers keep their bits."""
    for graph, inputs in samples(120, "fast"):
        optimized = optimize(graph, fast)
        assert not optimized.history[-1].report and len(optimized.history) <= ROUNDS * len(DEFAULT)
        assert optimize(optimized.graph, fast).graph == optimized.graph
        values, _, error = evaluate(graph, inputs)
        if error is None and all(node.type.domain != "float" for node in graph.nodes):
            after = values_of(optimized.graph, inputs)
            for (_, value), (_, now) in zip(graph.outputs, optimized.graph.outputs):
                assert same_bits(values[value], after[now])


def test_the_history_is_a_chain():
    for graph, _ in samples(100, "history"):
        optimized = optimize(graph)
        assert optimized.history[0].before is graph is optimized.traced and optimized.history[-1].after is optimized.graph
        for before, after in zip(optimized.history, optimized.history[1:]):
            assert before.after is after.before
        assert [stage.name for stage in optimized.history[:4]] == list(DEFAULT)
        assert all(bool(stage.report) == (stage.after is not stage.before) for stage in optimized.history)


# ---- the contract of a pass -----------------------------------------------------------------------------------------------

GRAPH = mg.parse("""graph g(x: f32[2], y: f32[2]) -> (r, s) {
  a = neg(x)   # m.py:1
  b = neg(x)   # m.py:2
  c = add(a, y)   # m.py:3
  d = mul(b, c)   # m.py:4
  t = assert_finite(d)
  return r = d, s = c
}""")


def changed(*nodes: Node, gone: tuple[str, ...] = (), outputs=None) -> Graph:
    """GRAPH with these nodes in the place of those of the same name (new ones at the end), without ``gone``."""
    new = {node.name: node for node in nodes}
    kept = [new.pop(node.name, node) for node in GRAPH.nodes if node.name not in gone]
    return Graph("g", (*kept, *new.values()), outputs or GRAPH.outputs)


A, B, C, D = (GRAPH[name] for name in "abcd")
LEGAL = [
    ("nothing", changed(), ()),
    ("merged", changed(replace(D, inputs=("a", "c")), gone="b"), (Step("cse", ("b",), "a", ""),)),
    ("rewritten", changed(replace(C, op="sub", inputs=("y", "x"))), (Step("r", ("c",), "c", ""),)),
    ("an output moved", changed(outputs=(("r", "c"), ("s", "c"))), (Step("r", ("d",), "c", ""),)),
    ("a helper", changed(Node("e", "neg", ("y",), None, C.type)), (Step("r", ("c",), "e", ""),)),
    ("the signature's own order", changed(A, B), ()),
]
ILLEGAL = [
    ("gone", changed(replace(D, inputs=("a", "c")), gone="b"), (), "'b' is gone, and no step says why"),
    ("new", changed(Node("e", "neg", ("y",), None, C.type)), (), "'e' is new, and no step says why"),
    ("another op", changed(replace(C, op="sub")), (), "'c' changed, and no step says why"),
    ("another order", changed(replace(C, inputs=("y", "a"))), (), "'c' changed, and no step says why"),
    ("another operand", changed(replace(D, inputs=("a", "c"))), (), "'d' changed, and no step says why"),
    ("an output", changed(outputs=(("r", "c"), ("s", "c"))), (), "output 'r' was 'd' and is 'c'"),
    ("an invalid graph", changed(gone="c"), (Step("dead", ("c",), "", ""),), "operand 'c' is not defined"),
    ("another type", changed(replace(C, type=mg.Type("f64", (2,)))), (Step("r", ("c",), "c", ""),), "but the node says f64[2]"),
    ("an input gone", mg.parse("graph g(x: f32[2]) -> (r, s) {\n c = neg(x)\n return r = c, s = c\n}"),
     tuple(Step("r", (name,), "c", "") for name in "abcdty"), "a pass changed the inputs"),
    ("an output's name", changed(outputs=(("q", "d"), ("s", "c"))), (), "a pass changed the outputs"),
    ("outputs in another order", changed(outputs=GRAPH.outputs[::-1]), (), "a pass changed the outputs"),
    ("an output's type", changed(Node("e", "cast", ("d",), mg.ops.make_attrs(OPS["cast"], {"dtype": "f64"}), mg.Type("f64", (2,))),
                                 outputs=(("r", "e"), ("s", "c"))), (Step("r", ("d",), "e", ""),), "a pass changed the outputs"),
]  # fmt: skip


@pytest.mark.parametrize(("graph", "report"), [row[1:] for row in LEGAL], ids=[row[0] for row in LEGAL])
def test_an_accounted_change_is_accepted(graph, report):
    stage = run_pass("mine", lambda _: Result(graph, report), GRAPH)
    assert stage.after is graph and stage.report == report
    assert run_pass("mine", lambda _: graph, GRAPH).after is graph, "a bare graph is accounted for by names"


@pytest.mark.parametrize(("graph", "report", "sentence"), [row[1:] for row in ILLEGAL], ids=[row[0] for row in ILLEGAL])
def test_a_broken_contract_is_a_sentence(graph, report, sentence):
    with pytest.raises(PassError) as caught:
        run_pass("mine", lambda _: Result(graph, report), GRAPH)
    assert "pass mine broke the graph" in str(caught.value) and sentence in str(caught.value)


def test_a_chain_of_replacements_and_a_rewritten_operand():
    """b stands for a, a is replaced in its turn; and an operand that was rewritten with a helper keeps its name."""
    steps = (Step("r", ("a",), "b", ""), Step("r", ("b",), "c", ""), Step("r", ("d",), "d.c", ""), Step("r", ("d",), "d", ""))
    assert replacements(steps) == {"a": "b", "b": "c"}
    graph = mg.parse("""graph g(a: f32[2], b: f32[2]) -> (y) {
      n = neg(a)
      m = neg(n)
      two = const(2.0) : f32[]
      d = div(b, two)
      y = mul(m, d)
      return y
    }""")
    assert "y = mul(a, d)" in str(optimize(graph).graph)


@pytest.mark.parametrize("answer", [None, (), 3, (GRAPH, ()), [GRAPH], "graph"], ids=repr)
def test_an_answer_that_is_no_graph(answer):
    with pytest.raises(PassError, match="pass mine returned"):
        run_pass("mine", lambda _: answer, GRAPH)


@pytest.mark.parametrize("report", [None, 3, ("x",), (("r", ("d",), "d", ""),)], ids=repr)
def test_a_report_that_is_none(report):
    with pytest.raises(PassError, match="a report that is not a tuple of Steps"):
        run_pass("mine", lambda _: Result(changed(), report), GRAPH)


@pytest.mark.parametrize("answer", [Graph("g", None, None), Graph("g", (1, 2), (("r", "d"),)), Graph("g", GRAPH.nodes, (3,)),
                                    Graph("g", list(GRAPH.nodes), GRAPH.outputs)], ids=lambda answer: repr(answer.nodes)[:20])  # fmt: skip
def test_a_graph_of_anything_is_verified_before_its_names_are_compared(answer):
    with pytest.raises(PassError, match="pass mine broke the graph"):
        run_pass("mine", lambda _: answer, GRAPH)


def test_passes_by_name_by_function_and_with_flags():
    seen = []

    def mine(graph, fast=()):
        seen.append(fast)
        return graph

    assert optimize(GRAPH, "nsz,nnan", passes=["dce", mine, lambda graph: dce(graph)]).graph == GRAPH
    assert seen == [("nsz", "nnan")]
    assert optimize(GRAPH, passes=[]).graph is GRAPH and optimize(GRAPH, passes=[]).traced is GRAPH
    with pytest.raises(GraphError, match="unknown pass 'simplfy'\n  did you mean 'simplify'"):
        optimize(GRAPH, passes=["simplfy"])
    with pytest.raises(GraphError, match="unknown fast-math flag"):
        optimize(GRAPH, ["unsafe"])
    with pytest.raises(GraphError, match="not defined"):
        optimize(replace(GRAPH, nodes=GRAPH.nodes[1:]))


# ---- why ------------------------------------------------------------------------------------------------------------------


def test_why_walks_from_any_value_back_to_its_lines():
    optimized = optimize(GRAPH)
    assert optimized.why("r") == (
        "d = mul(a, c) : f32[2]\n"
        "  traced: d = mul(b, c) : f32[2]   # m.py:4")
    text = optimized.why("b")
    assert text.startswith("'b' is gone. It was b = neg(x) : f32[2]   # m.py:2\n  3. cse, cse: the same neg")
    assert "traced: a = neg(x) : f32[2]   # m.py:1" in text and "traced: b = neg(x) : f32[2]   # m.py:2" in text
    with pytest.raises(GraphError, match="no value is named 'zz'"):
        optimized.why("zz")


def test_why_knows_every_name_that_ever_was():
    for graph, _ in samples(200, "why"):
        optimized = optimize(graph)
        names = {node.name for node in graph.nodes} | {public for public, _ in graph.outputs}
        names |= {step.after for stage in optimized.history for step in stage.report if step.after}
        for name in sorted(names):
            assert optimized.why(name)
        for node in optimized.graph.nodes:  # what is left leads back to something that was traced
            assert "traced: " in optimized.why(node.name), (str(graph), node.name)


def test_every_origin_of_the_result_is_one_of_the_trace():
    for graph, _ in samples(200, "why"):
        lines = {line for node in graph.nodes for line in node.origin}
        for node in optimize(graph).graph.nodes:
            assert node.origin and lines.issuperset(node.origin)


def test_a_pass_of_a_learner_gets_a_derived_report():
    def my_cse(graph: Graph) -> Graph:
        return changed(replace(D, inputs=("a", "c")), gone="b")

    stage = run_pass("my_cse", my_cse, GRAPH)
    assert [(step.rule, step.before, step.after) for step in stage.report] == [
        ("derived", ("b",), ""), ("derived", ("d",), "d")]
    optimized = optimize(GRAPH, passes=[my_cse])
    assert optimized.why("b").startswith("'b' is gone") and "derived" in optimized.why("d")


# ---- the command ------------------------------------------------------------------------------------------------------------


def test_fuzz_counts_and_its_command_says_so(capsys):
    assert fuzz(60, "command").graphs == 60
    assert main(["--graphs", "40", "--seed", "3", "--start", "7"]) == 0
    said = capsys.readouterr().out
    assert "40 graphs, seed 3: 0 bit differences, 0 beyond the rounding bound, 0 other faults." in said


def test_a_graph_of_a_seed_is_always_the_same():
    for index in range(20):
        (graph, inputs), (again, same) = sample(5, index), sample(5, index)
        assert graph == again and all(same_bits(inputs[name], same[name]) for name in inputs)
    assert len({str(sample(0, index)[0]) for index in range(100)}) == 100


def test_shrink_keeps_what_fails():
    """Everything goes but the two nodes that the failure needs."""
    def fails(graph, inputs) -> bool:
        found = defs(graph)
        return any(node.op == "exp" and found[node.inputs[0]].op == "neg" for node in graph.nodes)

    graph = mg.parse("""graph g(x: f32[2], y: f32[2]) -> (r, s, t) {
      a = add(x, y)
      k = const(2.0) : f32[]
      b = mul(a, k)
      c = neg(b)
      p = assert_finite(c)
      d = exp(c)
      q = print(d, p)
      e = tanh(d)
      z = assert_finite(y, q)
      return r = e, s = b, t = d
    }""")
    rng = np.random.default_rng(0)
    small, inputs = shrink(graph, {name: rng.random(2, np.float32) for name in "xy"}, fails)
    assert fails(small, inputs) and {node.op for node in small.nodes} == {"input", "neg", "exp"} and len(small) == 3
    mg.verify(small)
    assert not evaluate(small, inputs)[2] and set(inputs) == {node.name for node in small.inputs}


def test_fuzz_finds_a_planted_bug_and_makes_it_small(monkeypatch):
    from minigraph.passes import simplify as original
    from minigraph.passes.rules import EXACT, Rule

    def simplify(graph, fast=()):
        return original(graph, fast, (*EXACT, Rule("bad", "add(x, 0.0)", "x", why="forgets -0.0")))

    monkeypatch.setitem(PASSES, "simplify", simplify)
    said: list[str] = []
    tally = fuzz(300, 0, say=said.append)
    assert tally.faults["bits"]
    small = said[0].partition("smaller:\n")[2]
    assert small.count("\n") <= 10 and "add(" in small and "const(0.0)" in small, said[0]


def test_sampling_covers_the_table():
    ops = {node.op for graph, _ in samples(600, "cover") for node in graph.nodes}
    assert ops == set(OPS) - set(APART)
    random.seed(0)  # the generator has a source of its own
    before = str(sample(0, 0)[0])
    random.seed(1)
    assert str(sample(0, 0)[0]) == before


def test_fold_is_run_with_its_own_options():
    assert run_pass("fold", lambda graph: fold(graph, max_growth=0), GRAPH).after is GRAPH
