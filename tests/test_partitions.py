"""The judge of fusers, what it shows, and the recorded counts of loads and stores."""

import functools
import random

import re

import pytest

from minigraph import backends, nvrtc
from minigraph.backends import bind
from minigraph.drawing import draw_clusters
from minigraph.errors import GraphError, RunError
from minigraph.fusion import Cluster, problems
from minigraph.fusion import fuse as package_fuse
from minigraph.ir import Graph, defs, users
from minigraph.ops import OPS, Kind
from minigraph.plan import make_plan
from minigraph.run_numpy import run
from minigraph.teach import sources
from minigraph.teach.api import hint, refute
from minigraph.teach.exercises.ch08 import (
    PRODUCT_TARGETS, PRODUCTS, SPACE, TARGETS, Line, alone, as_lines, bytes_cases, bytes_moved, emit, emit_cases, emit_turned, fuse,
    fuse_by_size, fuse_epilogues, fuse_freely, fuse_greedily, remarks, suits,
)  # fmt: skip
from minigraph.teach.exercises import EXERCISES
from minigraph.teach.graphs import larger_graphs, special_inputs
from minigraph.teach.judge_groups import judge_groups, judge_one_graph
from minigraph.teach.one_op import AROUND
from minigraph.teach.partitions import (
    Grouped, copied, element_wise, elements, fault, in_order, no_groups, tidy, waiting, with_product,
)  # fmt: skip
from minigraph.teach.tryout import partition_of, try_fuser, try_groups, try_lines
from minigraph.text import parse
from minigraph.types import same_bits
from minigraph.verify import verify

RESIDUAL = next(graph for graph in TARGETS if graph.name == "residual")
GELU = parse(sources.recorded()[0]["graph"])


def partitions(things):
    """Every partition of a list into groups."""
    if not things:
        yield []
        return
    first, *others = things
    for rest in partitions(others):
        yield [[first], *rest]
        for place, group in enumerate(rest):
            yield [*rest[:place], [first, *group], *rest[place + 1:]]


@pytest.mark.parametrize("fuser, graphs, members", [
    (fuse, (*TARGETS, *AROUND), element_wise), (fuse_epilogues, (*PRODUCT_TARGETS, *AROUND), with_product),
])  # fmt: skip
def test_no_partition_that_keeps_the_rules_has_fewer_groups(fuser, graphs, members):
    for graph in graphs:
        names = [name for (name,) in alone(graph)]
        allowed = [found for one in partitions(names) if fault(graph, found := in_order(one, graph), members) is None]
        assert min(map(len, allowed)) == len(fuser(graph)), graph.name
        assert in_order(fuser(graph), graph) in allowed


def test_every_operation_stands_between_two_element_wise_ones():
    assert [graph.name for graph in AROUND] == [name for name, op in OPS.items() if op.kind not in (Kind.INPUT, Kind.CONST)]
    for graph in AROUND:
        verify(graph)
        element_wise_op = OPS[graph.name].kind is Kind.ELEMENTWISE
        assert ((("a", "b", "y") in fuse(graph)) == element_wise_op), graph.name
        assert any("b" in group for group in fuse_epilogues(graph) if len(group) > 1) == (
            element_wise_op or graph.name == "matmul"), graph.name
        if element_wise_op:
            continue
        for group in (("a", "b"), ("b", "y")):
            if set(group) <= set(defs(graph)):
                rest = [(name,) for (name,) in alone(graph) if name not in group]
                assert fault(graph, in_order([group, *rest], graph), element_wise) is not None


@pytest.mark.parametrize("right", [fuse, fuse_epilogues])
@pytest.mark.parametrize("may", [lambda axes: axes < 3, lambda axes: axes > 0])
def test_loops_have_any_number_of_axes(right, may):
    def fuser(graph):
        return [one for group in right(graph)
                for one in ([group] if may(len(graph[group[-1]].type.shape)) else [(name,) for name in group])]

    assert EXERCISES[right.__name__].judge(fuser).failure.kind == "did-nothing"


@pytest.mark.parametrize("right", [fuse, fuse_epilogues])
def test_a_third_output_is_one(right):
    def fuser(graph):
        return right(Graph(graph.name, graph.nodes, graph.outputs[:2]))

    assert EXERCISES[right.__name__].judge(fuser).failure.kind == "outside"


def test_no_case_of_bytes_has_a_value_that_nobody_reads():
    for graph, groups in bytes_cases():
        assert all(users(graph)[name] or name in dict(graph.outputs).values() for group in groups for name in group)


def fuse_by_search(graph, names, remember):
    """Right, and calls itself for each reader of a node."""
    nodes, readers = defs(graph), users(graph)
    outputs = {value for _, value in graph.outputs}

    @remember
    def leader(name):
        ends = {leader(reader) for reader in readers[name]}
        end = nodes[ends.pop()] if len(ends) == 1 and name not in outputs else nodes[name]
        return end.name if suits(nodes[name], end) else name

    groups = {}
    for name in names:
        groups.setdefault(leader(name), []).append(name)
    return list(groups.values())


def fuse_in_a_deep_place(graph, depth=200):
    """Does not come to an end on a long graph, deep in its own calls."""
    while depth == 0 and len(graph) > 1000:
        pass
    return fuse(graph) if depth == 0 else fuse_in_a_deep_place(graph, depth - 1)


@pytest.mark.parametrize("turn, remember, right", [
    (list, functools.cache, False), (reversed, lambda function: function, False), (reversed, functools.cache, True),
])  # fmt: skip
def test_a_recursion_is_told_to_walk(turn, remember, right):
    def fuser(graph):
        return fuse_by_search(graph, turn([name for (name,) in alone(graph)]), remember)

    for one in (fuser, fuse_in_a_deep_place):
        failure = EXERCISES["fuse"].judge(tidy(one)).failure
        if one is fuser and right:
            assert failure is None
        else:
            assert "calls itself" in failure.sentence and "Walk along graph.nodes" in failure.sentence


@pytest.mark.parametrize("body, outputs, says", [
    ("a = exp(x)\n s = sum(a) {axis=[0]}\n y = sub(a, s)", "y", "s, a sum, which"),
    ("a = exp(x)\n e = sin(a)\n c = neg(a)\n z = abs(c)\n d = add(e, c)", "z, d", "all of it is element-wise"),
])  # fmt: skip
def test_the_lesson_of_a_cycle_is_of_this_cycle(body, outputs, says):
    graph = parse(f"graph g(x: f32[4]) -> ({outputs}) {{\n {body}\n return {outputs}\n}}")
    report = refute(fuse_greedily, graph)
    assert report.outcome == "right" and says in report.lines[0]


def test_groups_made_by_hand_are_tried(capsys):
    for groups, says in ((alone(RESIDUAL), "fewer would not"), ([("a", "y"), ("p",)], "wait for each other"),
                         ([("a",), ("a", "y"), ("p",)], "in two groups")):
        try_groups(RESIDUAL, groups)
        assert says in capsys.readouterr().out
    pair = next(graph for graph in TARGETS if graph.name == "pair")
    try_groups(pair, alone(pair))
    assert "fewer would do" in capsys.readouterr().out


@pytest.mark.parametrize("groups, says", [
    ([("a", "zz")], "no value is called 'zz'"), (["ap"], "a tuple of names, and 'ap' is none"), ([3], "and 3 is none"),
    ([("a", "y"), ("a",)], "'a' is in the groups twice"), ([("x", "a")], "'x' is an input"),
])  # fmt: skip
def test_groups_that_cannot_be_drawn_get_a_sentence(groups, says):
    with pytest.raises(GraphError, match=says):
        draw_clusters(RESIDUAL, groups=groups)


def test_minigraphs_compile_says_that_it_is_not_pythons():
    with pytest.raises(RunError, match="builtins.compile"):
        backends.compile("1 + 1", "cell", "exec")


@pytest.mark.parametrize("change, says", [
    (lambda lines: [*lines, "}"], "one line for each node"), (lambda lines: [line[:-1] for line in lines], "ends with a semicolon"),
    (lambda lines: lines[::-1], "in another order"), (lambda lines: [line.replace("float", "auto") for line in lines], "auto"),
    (lambda lines: lines[-1:], "2 here, not 1"),
])  # fmt: skip
def test_wrong_lines_get_a_remark(change, says):
    pair = next(case for case in emit_cases() if case[0].name == "pair")
    want = as_lines(emit)(*pair)
    assert says in " ".join(remarks(want, list(map(Line, change(want)))))


@pytest.mark.parametrize("fuser, space", [(fuse, SPACE), (fuse_epilogues, PRODUCTS)])
def test_the_independent_checker_finds_no_fault_in_what_the_rules_allow(fuser, space):
    for graph in list(larger_graphs(space, seed=1))[:60]:
        assert problems(graph, ordered(graph, fuser(graph))) == []


def ordered(graph, groups):
    return [Cluster("", group) for group in in_order(groups, graph)]


def test_a_cycle_is_what_the_independent_checker_calls_one():
    draw, found = random.Random(0), set()
    for graph in list(larger_graphs(SPACE, seed=2))[:80]:
        names = [name for (name,) in alone(graph)]
        groups = {}
        for name in names:
            groups.setdefault(draw.randrange(3), []).append(name)
        groups = in_order(list(groups.values()), graph)
        says = any("wait for each other" in line for line in problems(graph, ordered(graph, groups)))
        assert bool(waiting(graph, groups)) == says
        found.add(says)
    assert found == {True, False}


@pytest.mark.parametrize("groups, kind", [
    ([("a", "y"), ("p",)], "cycle"), ([("a",), ("p", "y")], "illegal"), ([("a", "p"), ("y",)], "illegal"),
    ([("a",), ("p",)], "missing"), ([("a",), ("p",), ("y",), ("x",)], "invalid"),
    ([("a",), ("p",), ("y",), ("q",)], "invalid"),
    ([("a", "y"), ("p",), ("a",)], "twice"), ([("a",), ("p",), ("y", "y")], "twice"), ([("a",), ("p",), ("y",)], None),
])  # fmt: skip
def test_each_rule_is_named(groups, kind):
    found = fault(RESIDUAL, in_order(groups, RESIDUAL), element_wise)
    assert (found and found[0]) == kind
    assert found is None or found[1].endswith(".")


def test_what_is_no_list_of_groups_is_seen():
    for answer in (None, 3, "a", {"y": ("a", "y")}, ["a", "y"], [("a", 1)], [()], [[("a",)]]):
        assert in_order(answer, RESIDUAL) is None
    assert in_order({frozenset(["y", "a"]), ("p",)}, RESIDUAL) == [("p",), ("a", "y")]


@pytest.mark.parametrize("answer, says", [
    (None, "None"), ({"y": ("a", "y")}, "a dict"), (["a,y"], "the text 'a,y'"), ([("a", "p"), "y"], "has a comma: ('y',)"),
    ([RESIDUAL["a"]], "a Node, not its name"), ([(RESIDUAL["a"],)], "a Node, not its name"), ([3], "an int"),
    ([()], "is empty"),
])  # fmt: skip
def test_what_stands_in_a_group_is_named(answer, says):
    assert says in no_groups(answer) and no_groups(answer).endswith((".", ",)."))


def test_axes_of_length_1_make_no_other_loop():
    graph = parse("graph flat(x: f32[4], w: f32[1,4]) -> (y) {\n a = exp(x)\n y = add(a, w)\n return y\n}")
    for fuser, count in ((fuse, 2), (fuse_by_size, 1)):
        groups = in_order(list(fuser(graph)), graph)
        assert fault(graph, groups, element_wise) is None and len(groups) == count
    assert len(package_fuse(graph).clusters) == 1


def test_a_fuser_must_give_the_same_answer_again():
    seen = []

    def forgetful(graph):
        seen.append(graph)
        return fuse(graph) if seen.count(graph) == 1 else alone(graph)

    failure = judge_groups(forgetful, SPACE, fuse, TARGETS).failure
    assert failure.kind == "unstable" and len(failure.details) == 2


def test_bytes_are_counted_as_plans_count_them():
    for graph in (*TARGETS, GELU):
        if graph.name in ("given", "dead", "watched", "turned", "flipped"):  # no launch, an unread store, an effect, views
            continue
        for groups in (alone(graph), fuse(graph)):
            assert bytes_moved(graph, groups) == make_plan(partition_of(graph, groups)).bytes_moved, graph.name


def test_groups_run_as_launches():
    for graph in TARGETS:
        if graph.name == "watched":  # prints
            continue
        inputs = special_inputs(graph, 1)[0]
        got, want = bind(make_plan(partition_of(graph, fuse(graph))), "numpy")(inputs), run(graph, inputs)
        assert all(same_bits(got[name], want[name]) for name in want), graph.name


def test_copies_compute_the_same():
    graph = next(graph for graph in TARGETS if graph.name == "shared")
    groups = in_order(fuse_freely(graph), graph)
    more, split = copied(graph, groups)
    verify(more)
    inputs = special_inputs(graph, 1)[0]
    assert all(same_bits(one, other) for one, other in zip(run(graph, inputs).values(), run(more, inputs).values()))
    assert elements(defs(graph), groups) == 16 > elements(defs(graph), alone(graph))
    assert waiting(more, split) == "" and repr(Grouped(more, split)).endswith("groups: (a, y) (a.copy, z)")


def test_a_learners_functions_are_tried(capsys):
    try_fuser(fuse, GELU)
    *table, last = capsys.readouterr().out.splitlines()
    assert "alone" in last
    assert [line.split()[-1] for line in table[1:]] == ["yes"] * 3
    launches = [line.split()[-3] for line in table[1:]]
    assert launches[0] == "9" and launches[1] == launches[2] == "1"

    def stub(*_):
        raise NotImplementedError

    rotate = parse("graph rotate(a: f32[8], b: f32[8]) -> (out) {\n p = mul(a, b)\n out = sub(p, b)\n return out\n}")
    for call in (lambda: try_fuser(stub, GELU), lambda: try_lines(stub, rotate)):
        call()
        assert "not attempted" in capsys.readouterr().out
    try_fuser(lambda graph: [("tanh",)], GELU)
    assert "is in no group" in capsys.readouterr().out
    try_fuser(fuse_greedily, next(graph for graph in TARGETS if graph.name == "centre"))
    assert "wait for each other" in capsys.readouterr().out
    try_lines(lambda graph, group: None, rotate)
    assert "no lines of C yet. A list of texts is wanted." in capsys.readouterr().out


def test_emitted_lines_compile_and_run(capsys):
    from minigraph.compiler import find_compiler

    rotate = parse("graph rotate(a: f32[8], b: f32[8]) -> (out) {\n p = mul(a, b)\n out = sub(p, b)\n return out\n}")
    try_lines(emit, rotate)
    said = capsys.readouterr().out
    assert "out[i] = p - b[i];" in said
    if not find_compiler():
        assert "Not compiled" in said
        pytest.skip("no C compiler")
    assert "every bit" in said
    try_lines(emit_turned, rotate)
    assert "another result" in capsys.readouterr().out
    try_lines(lambda graph, group: ["nonsense"], rotate)
    assert "Not compiled" in capsys.readouterr().out


def test_recorded_loads_and_stores_are_what_the_compiler_says(monkeypatch):
    entries = sources.recorded()
    assert entries
    if not nvrtc.find():
        pytest.skip(nvrtc.why_not())
    for entry in entries:
        live = [list(one) for one in sources.count(parse(entry["graph"]), entry["fused"])]
        assert live == entry["launches"], "record them again: python -m minigraph.teach.sources"
    shown = sources.loads_and_stores(GELU)
    monkeypatch.setattr(nvrtc, "find", lambda: None)
    assert sources.loads_and_stores(GELU) == shown
    with pytest.raises(sources.MinigraphError, match="not among the recorded"):
        sources.loads_and_stores(RESIDUAL)


def test_kernels_are_shown_side_by_side():
    shown = sources.show_kernels(package_fuse(GELU))
    assert repr(shown).count("tanh_1 = ") == 2 and "__global__" in repr(shown)
    page = shown._repr_mimebundle_()["text/html"]
    assert page.count("<pre") == 2
    lines = re.sub("<[^>]*>", "\n", page).split("\n")
    assert max(map(len, lines)) <= 70 and "__restrict__ " in page  # nothing is cut off at half a page's width


def test_a_group_without_names_and_a_hint_for_a_refutation_get_a_sentence(capsys):
    failure, _ = judge_one_graph(lambda graph: [()], TARGETS[0], element_wise)
    assert failure.kind == "not-groups" and "A group is empty" in failure.sentence
    hint(fuse_greedily)
    assert "no hints" in capsys.readouterr().out


def test_what_ends_behind_a_product_is_element_wise():
    for graph in PRODUCT_TARGETS:
        if graph.name in ("flipped", "single", "totals"):
            assert fault(graph, [("p", "y")], with_product)[0] == "illegal"


@pytest.mark.parametrize("one, other, same", [
    ("const float a = x[i] * w[i];", "float const a=( x[ i ]*(w[i]) ) ;", True),
    ("y[i] = fabsf(a);", "y[i] = (fabsf(a));", True), ("y[i] = -a;", "y[i]=-(a);", True),
    ("y[i] = a - b;", "y[i] = b - a;", False), ("y[i] = a - -b;", "y[i] = a--b;", False),
    ("y[i] = a * x[i];", "y[i] = (x[i] * a); // turned", True), ("y[i] = a / x[i];", "y[i] = x[i] / a;", False),
    ("y[i] = a;", "y[i] = a", False), ("y[i] = (a) - (b);", "y[i] = a - b;", True),
    ("float a = x[i];", "double a = x[i];", False), ("y[i] = f(a);", "y[i] = f a;", False),
])  # fmt: skip
def test_lines_of_c_are_compared_by_their_words_and_signs(one, other, same):
    assert (Line(one) == Line(other)) == same
