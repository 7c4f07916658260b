"""What learners do beyond the mistakes that each exercise lists: solutions that were once accepted, and calls that once crashed."""

import json
import linecache

import numpy as np
import pytest

from minigraph import Graph, Node, Type, parse
from minigraph.ops import OPS, Attrs, Kind
from minigraph.teach import api, prelude, state
from minigraph.teach.exercise import solved, source_of
from minigraph.teach.exercises import EXERCISES, REFUTATIONS
from minigraph.teach.graphs import edge_inputs, special_inputs
from minigraph.teach.judge import attempt, equal, judge_harm, judge_one


@pytest.fixture(autouse=True)
def fresh_work(tmp_path, monkeypatch):
    monkeypatch.setenv("MINIGRAPH_WORK", str(tmp_path))


def defined(source: str, name: str):
    namespace = {key: getattr(prelude, key) for key in prelude.__all__} | {"__name__": "__main__"}
    exec(compile(source, "cell", "exec"), namespace)
    return namespace[name]


def changed(name: str, *changes: tuple[str, str]) -> str:
    """The solution with some of its text replaced."""
    source = solved(source_of(EXERCISES[name].solution))
    for old, new in changes:
        assert old in source
        source = source.replace(old, new)
    return source


# ---- solutions that are wrong --------------------------------------------------------------------------------------

SWEEPS = """def in_order(nodes):
    ordered = [node for node in nodes if node.op == "input"]
    left = [node for node in nodes if node.op != "input"]
    for _ in range(5):
        for node in reversed(list(left)):
            if all(name in [one.name for one in ordered] for name in node.inputs):
                ordered.append(node)
                left.remove(node)
    return None if left else ordered
"""
DEPTHS = """def in_order(nodes):
    by_name = {node.name: node for node in nodes}
    def depth(node, below=0):
        if below > len(nodes):
            raise OverflowError
        return 1 + max((depth(by_name[name], below + 1) for name in node.inputs), default=0)
    try:
        return sorted(nodes, key=lambda node: (node.op != "input", depth(node)))
    except OverflowError:
        return None
"""
SUBCLASS = """class Mine(Graph):
    def __eq__(self, other):
        return True
    def __hash__(self):
        return 0
"""
FOLDED = 'elif OPS[node.op].foldable and'
OPERATION = "OPS[node.op].numpy(*arrays, **attributes)"
RENAMED = """new = {node.name: f"v{place}" if node.op != "input" else node.name for place, node in enumerate(kept)}
    kept = tuple(Node(new[n.name], n.op, tuple(new[i] for i in n.inputs), n.value, n.type) for n in kept)
    return Graph(graph.name, kept, tuple((public, new[value]) for public, value in graph.outputs))"""

WRONG = {
    "a name's end": ("users_of", changed("users_of", ("operand == name", "operand.endswith(name)"))),
    "twice at most": ("users_of", "def users_of(graph, name):\n    return [n.name for n in graph.nodes for _ in range(min(2, n.inputs.count(name)))]\n"),
    "capitals": ("first_problem", changed("first_problem", ("node.op not in OPS", "node.op.lower() not in OPS"))),
    "two operands": ("first_problem", changed("first_problem", ("for name in node.inputs)", "for name in node.inputs[:2])"))),
    "a list of names": ("first_problem", changed("first_problem", ('return "right-type"', 'return ["right-type"]'))),
    "five sweeps": ("in_order", SWEEPS),
    "depths again and again": ("in_order", DEPTHS),
    "three operands": ("in_order", changed("in_order", ("issuperset(node.inputs)", "issuperset(node.inputs[:2])"))),
    "any order": ("record", changed("record", ("return builder.emit(op, *operands)", """seen = builder.__dict__.setdefault("seen", {})
    key = op, frozenset(operands)
    seen[key] = seen.get(key) or builder.emit(op, *operands)
    return seen[key]"""))),
    "few ops": ("evaluate", changed("evaluate", (OPERATION, f"{OPERATION} if node.op in ('add', 'sub', 'mul', 'neg', 'lt', 'floor_div',"
                                                 " 'sum', 'cast', 'exp') else arrays[0]"))),
    "flat": ("evaluate", changed("evaluate", (OPERATION, f"np.squeeze({OPERATION})"))),
    "two arrays": ("evaluate", changed("evaluate", ("*arrays", "*arrays[:2]"))),
    "few ops folded": ("fold", changed("fold", (FOLDED, FOLDED.replace("OPS[node.op].foldable", "node.op in ('add', 'sub', 'neg', 'cast', 'sum',"
                                                                      " 'mul', 'exp', 'take', 'pow', 'div')")))),
    "no i64": ("fold", changed("fold", (FOLDED, FOLDED + " node.type.dtype != 'i64' and"))),
    "no infinities": ("fold", changed("fold", ("                constants[node.name] = value", "                if not np.isfinite(value.array.astype("
                                               "float)).all():\n                    raise ValueError\n                constants[node.name] = value"))),
    "two constants": ("fold", changed("fold", ("for name in node.inputs)", "for name in node.inputs[:2])"))),
    "equal to everything": ("fold", SUBCLASS + changed("fold", ("return Graph(graph.name, tuple(nodes)",
                                                                "return Mine(graph.name, tuple(n for n in nodes if n.op != 'print')"))),
    "1,025 bytes": ("fold_small", changed("fold_small", ("growth <= 1024", "growth <= 1025"))),
    "four bytes each": ("fold_small", changed("fold_small", ("node.type.nbytes", "node.type.size * 4"))),
    "read twice, counted once": ("fold_small", changed("fold_small", ("for name in node.inputs]", "for name in dict.fromkeys(node.inputs)]"))
                                 .replace("for operand in operands]", "for operand in [constants[name] for name in node.inputs]]")),
    "first and last": ("is_identity", changed("is_identity", ("same_bits(const.array, wanted)", "same_bits(const.array.ravel()[[0, -1]], wanted.ravel()[[0, -1]])"))),
    "nearly": ("is_identity", changed("is_identity", ("same_bits(const.array, wanted)", "bool(np.allclose(const.array, wanted) and"
                                                      " (np.signbit(const.array) == np.signbit(wanted)).all())"))),
    "a third operand": ("dce", changed("dce", ("live.update(node.inputs)", "live.update(node.inputs[:2])"))),
    "other names": ("dce", changed("dce", ("return Graph(graph.name, kept, graph.outputs)", RENAMED))),
    "three kinds of effect": ("strip_effects", changed("strip_effects", ("node.op in names", "node.op in names[:2]"))),
    "no layouts": ("cse_key", changed("cse_key", ("not OPS[node.op].mergeable", "not OPS[node.op].mergeable or node.op in ('reshape', 'concat')"))),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_what_was_once_accepted_is_wrong(what):
    name, source = WRONG[what]
    report = api.check(defined(source, name))
    assert report.outcome == "wrong", report
    assert report.html()


def test_nodes_that_are_equal_to_everything_are_none():
    graph = parse("graph g(x: f32[4]) -> (y) {\n y = neg(x)\n return y\n}")
    mine = defined(SUBCLASS.replace("Graph", "Node"), "Mine")
    got = Graph("g", (graph.nodes[0], mine("y", "abs", ("x",), None, graph.nodes[1].type)), graph.outputs)
    assert judge_one(lambda graph: got, graph)[0].kind == "invalid"


# ---- functions and answers of all kinds ------------------------------------------------------------------------------


def users(body: str, before: str = ""):
    return defined(f"{before}\ndef users_of(graph, name):\n    {body}\n", "users_of")


STRANGE = "class Strange(Exception):\n    def __repr__(self):\n        raise ValueError\n    __str__ = __repr__\n"


@pytest.mark.parametrize("body", ["return Strange()", "raise Strange", "raise SystemExit", "return 'x' * 10**6", "raise ValueError('x' * 10**6)"])
def test_a_strange_answer_is_wrong_in_few_words(body):
    report = api.check(users(body, STRANGE))
    assert report.outcome == "wrong" and len(str(report)) < 3000 and report.html()


def test_no_comparison_of_what_a_function_gives_raises():
    def holding(value):
        return Graph("g", (Node("t", "transpose", ("x",), Attrs(perm=value)),), (("y", "t"),))

    assert equal(holding(np.array([1, 0])), holding(np.array([1, 0])))
    for other in (np.array([0, 1]), np.array([1, 0, 2]), (1, 0), np.array([holding, 1], object)):
        assert not equal(holding(np.array([1, 0])), holding(other))
    report = api.check(defined(changed("cancel_transposes", ("Attrs(perm=perm)", "Attrs(perm=np.array(perm))"),
                                       ("perm == tuple(", "tuple(perm) == tuple("), ("perm = tuple(source.value.perm",
                                       "perm = tuple(int(axis) for axis in source.value.perm")), "cancel_transposes"))
    assert report.outcome == "wrong" and str(report)


@pytest.mark.parametrize("name", ["cancel_transposes", "absorb_into_matmul", "sink_through_reduction", "fuse_dequantize"])
def test_a_pass_that_drops_effects_is_wrong(name):
    right = EXERCISES[name].solution

    def drops(graph):
        made = right(graph)
        return Graph(made.name, tuple(node for node in made.nodes if OPS[node.op].kind is not Kind.EFFECT), made.outputs)

    assert EXERCISES[name].judge(drops).failure.kind == "lost"


def test_a_function_that_prints_does_not_fill_the_notebook(capsys):
    function = defined(changed("evaluate", ("result =", "print('x' * 9000)\n    result =")), "evaluate")
    assert api.check(function).outcome == "right"
    out = capsys.readouterr().out
    assert 4000 < len(out) < 5000 and "is not shown" in out


def test_a_function_that_loops_later_is_still_told_what_is_wrong(monkeypatch):
    monkeypatch.setattr(api, "LOOK_SECONDS", 0.3)
    function = users("count.append(1)\n    while len(count) > 8: pass\n    return [n.name for n in graph.nodes if name in n.inputs]",
                     "count = []")
    assert api.check(function).outcome == "wrong"


def test_what_has_no_name_or_no_module():
    with pytest.raises(api.LearnerError, match="lambda"):
        api.check(lambda graph: graph)
    function = users("raise NotImplementedError")
    function.__module__ = None
    assert api.check(function).outcome == "not attempted"


# ---- arguments that are changed in place ------------------------------------------------------------------------------


def sorts(numbers):
    numbers.sort()
    return numbers


def forgets(table, _):
    del table["b"]


def halves(arrays):
    array = arrays["x"][1]
    array /= 2


@pytest.mark.parametrize("function, arguments, sentence, before", [
    (sorts, ([3, 1, 2],), "its first argument, a list", "[3, 1, 2]"),
    (forgets, ({"a": 1, "b": 2}, 5), "its first argument, a dict", "{'a': 1, 'b': 2}"),
    (halves, ({"x": (5, np.float32([2, 4])), "y": np.float32([1])},), "an array in its first argument", "[2., 4.]"),
    (lambda _, seen: seen.add(2), ([1], {1}), "its second argument, a set", "{1}"),
])  # fmt: skip
def test_a_changed_argument_is_noticed_and_the_callers_stays(function, arguments, sentence, before):
    for _ in range(2):  # the second call sees what the first one saw
        answer, failure = attempt(function, arguments, None)
        assert answer is None and failure.kind == "mutated" and f"changed {sentence}." in failure.sentence, failure
        assert failure.details[0].endswith(before)


def test_unchanged_arguments_are_equal_and_graphs_the_same():
    graph = parse("graph g(x: f32[4]) -> (y) {\n y = neg(x)\n return y\n}")
    given = (graph, [np.float32([np.nan, 1])], {"k": (1, [])})
    assert attempt(lambda *got: got[0] is graph and got[1] is not given[1], given, graph) == (True, None)


# ---- the record -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [
    '{"checks": {"users_of": 5}}', '{"checks": {"users_of": {"tries": "x"}}}', '{"hints": {"users_of": {"level": -7}}}',
    '{"hints": {"users_of": 3}}', '{"checks": {"users_of": {"tries": null}}}', "[" * 100000, "[]", "{", "\x00",
])  # fmt: skip
def test_a_spoilt_record_is_set_aside(text, tmp_path, capsys):
    function = users("return 1")
    for call in (api.check, api.hint, api.solution, lambda _: api.progress(), lambda _: api.predict("q", 1)):
        (tmp_path / "progress.json").write_text(text, encoding="utf-8")
        call(function)
        assert (tmp_path / "progress.json.bad").read_text(encoding="utf-8") == text


def test_any_question_can_be_recorded(capsys):
    for question in (("a", 1), ["b"], 5):
        api.predict(question, 3)
    assert len(state.load()["predictions"]) == 3
    assert json.loads((state.work_folder() / "progress.json").read_text(encoding="utf-8"))


def test_a_saved_pass_that_exits_is_left_out(capsys):
    folder = state.work_folder() / "passes"
    folder.mkdir(parents=True)
    (folder / "dce.py").write_text("raise SystemExit", encoding="utf-8")
    assert "dce" in api.use_mine() and "does not load" in capsys.readouterr().out


def test_a_saved_pass_takes_its_imports_with_it():
    source = "import copy\nfrom dataclasses import replace as with_new\n" + solved(source_of(EXERCISES["dce"].solution))
    source = source.replace("return Graph(graph.name, kept,", "return Graph(graph.name, tuple(with_new(copy.copy(n)) for n in kept),")
    report = api.check(with_source(source, "dce"))
    assert "Saved: " in str(report), report
    assert "import copy\n" in (state.work_folder() / "passes" / "dce.py").read_text(encoding="utf-8")
    source = "TABLE = np.arange(3)\n" + source.replace("return Graph(", "assert len(TABLE)\n    return Graph(")
    assert "it needs TABLE, and only" in str(api.check(with_source(source, "dce")))


def with_source(source: str, name: str):
    """The function that a cell defines, with its text where ``inspect`` finds it."""
    linecache.cache["cell"] = len(source), None, source.splitlines(True), "cell"
    return defined(source, name)


# ---- what is said about it ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("line, sentence", [
    ("graph.nodes[0].op = 'neg'", "A node is a value, and no part of it changes: make a new Node"),
    ("graph.nodes[0].seen = True", "A node is a value, and no part of it changes: make a new Node"),
    ("graph.outputs = ()", "A graph is a value, and no part of it changes: make a new Graph"),
])
def test_who_assigns_to_a_graph_is_told_what_to_do_instead(line, sentence):
    text = str(api.check(users(line)))
    assert sentence in text and "__setattr__" not in text and "raised inside" not in text


def test_a_call_that_raises_is_shown():
    text = str(api.check(defined("def compose(p, q):\n    return p[3]\n", "compose")))
    assert "given: p = (0,)\n    given: q = (0,)" in text


def test_less_than_there_was_to_do_is_shown_on_a_small_graph():
    source = changed("absorb_into_matmul", ("while operand.op", "if operand.op"))
    graph = api.check(defined(source, "absorb_into_matmul")).failure.graph
    assert len(graph) <= 4 and len(graph.outputs) == 1, graph


def test_an_equal_graph_that_breaks_a_rule_is_shown():
    source = changed("absorb_into_matmul", ("Attrs(**flags)", "Attrs(**{flag: int(is_set) for flag, is_set in flags.items()})"))
    text = str(api.check(defined(source, "absorb_into_matmul")))
    assert "value is attributes {'transpose_a': 0" in text and "bool(flag)" in text


def test_the_last_inputs_are_finite_and_differ():
    graph = parse("graph g(x: f16[9,9], y: i8[200], z: u8[30], b: bool[9], w: f32[], v: f32[0]) -> (x) {\n return x\n}")
    last = special_inputs(graph)[-1]
    assert all(np.isfinite(array).all() and array.shape == graph[name].type.shape for name, array in last.items())
    assert all(len(np.unique(last[name])) == last[name].size for name in "xyzwv") and last["w"] != 0


def composed(p: str, q: str, type: str = "f32[2,2,2]", between: str = "t", output: str = "y") -> str:
    return (f"graph g(x: {type}) -> ({output}) {{\n t = transpose(x) {{perm={p}}}\n u = neg(t)\n"
            f" y = transpose({between}) {{perm={q}}}\n return {output}\n}}")


def reduced(perm: str, axis: str, type: str = "f32[3,3,3]", op: str = "max", operand: str = "t") -> str:
    return (f"graph g(x: {type}) -> (y) {{\n t = transpose(x) {{perm={perm}}}\n y = {op}({operand}) {{axis={axis}}}\n"
            " return y\n}")


@pytest.mark.parametrize("name, text, sentence", [
    ("cancel_backwards", composed("[1,2,0]", "[1,2,0]"), "the two are equal"),
    ("cancel_backwards", composed("[1,2,0]", "[2,0,1]"), "undo each other"),
    ("cancel_backwards", composed("[1,2,0]", "[0,1,2]"), "moves no axis"),
    ("cancel_backwards", composed("[1,0,2,3]", "[0,1,3,2]", "f32[2,2,2,2]"), "no axis is moved by both"),
    ("cancel_backwards", composed("[1,2,3,0]", "[2,3,0,1]", "f32[2,2,2,2]"), "may change places"),
    ("cancel_backwards", composed("[1,0]", "[1,0]", "f32[2,2]"), "fewer than three axes"),
    ("cancel_backwards", composed("[1,2,0]", "[1,0,2]", between="u"), "that is nowhere"),
    ("cancel_backwards", composed("[1,2,0]", "[1,0,2]", output="u"), "that is nowhere"),
    ("cancel_backwards", composed("[1,2,0]", "[1,0,2]", "f32[1,1,1]"), "length of 2 or more"),
    ("cancel_backwards", composed("[1,0,2]", "[0,2,1]"), ""),
    ("sink_negative", reduced("[1,2,0]", "[-1]", op="sum"), "touches max, and nothing else"),
    ("sink_negative", reduced("[1,2,0]", "[-1]", operand="x"), "Here no max does"),
    ("sink_negative", reduced("[1,2,0]", "[1]"), "last axis of t"),
    ("sink_negative", reduced("[1,2,0]", "[-1,-2,-3]"), "every axis is reduced"),
    ("sink_negative", reduced("[1,0,2]", "[-1]"), "by luck"),
    ("sink_negative", reduced("[1,2,0]", "[-1]", "f32[1,1,1]"), "length of 2 or more"),
    ("sink_negative", reduced("[1,2,0]", "[0,-1]"), ""),
    ("sink_negative", reduced("[2,1,0]", "[-1,-2]"), ""),
    ("sink_negative", reduced("[1,0]", "[-1]", "f32[9,9]"), ""),
])  # fmt: skip
def test_a_refutation_is_taken_or_told_why_not(name, text, sentence):
    report = api.refute(REFUTATIONS[name].function, text)
    assert report.outcome == ("wrong" if sentence else "right") and sentence in str(report), report


@pytest.mark.parametrize("call", [api.check, api.hint, api.solution])
def test_what_takes_a_function_names_itself(call):
    name = call.__name__
    with pytest.raises(api.LearnerError, match=rf"{name} takes a function, like {name}\(users_of\), not a text"):
        call("users_of")
    with pytest.raises(api.LearnerError, match=rf"{name} takes a function, like {name}\(fold\), not int"):
        call(5)


def without_pairs(graph):
    """Drops every quantize of a dequantize, whatever the scale."""
    node = graph["y"]
    return Graph(graph.name, graph.nodes, (("y", graph[node.inputs[0]].inputs[0]),))


@pytest.mark.parametrize("dtype, scale", [("i8", "1e+37"), ("i8", "5e+36"), ("i8", "2.7e+36"), ("i32", "1.0"), ("i8", "0.0")])
def test_a_harm_at_the_ends_of_a_type_is_found(dtype, scale):
    graph = parse(f"graph g(q: {dtype}[4]) -> (y) {{\n s = const({scale}) : f32[]\n w = dequantize(q, s)\n"
                  f" y = quantize(w, s) {{dtype={dtype}}}\n return y\n}}")
    assert judge_harm(without_pairs, graph)[0].kind == "wrong-value"
    assert judge_harm(without_pairs, parse(str(graph).replace(f"const({scale})", "const(0.5)").replace("i32", "i16")))[0] is None


def test_at_the_ends_every_value_meets_every_other():
    graph = parse("graph g(x: f32[], n: i32[], m: i8[]) -> (x) {\n return x\n}")
    seen = [tuple(map(str, inputs.values())) for inputs in edge_inputs(graph)]
    for first, second in ((0, 1), (0, 2), (1, 2)):
        ones, others = ({one[place] for one in seen} for place in (first, second))
        assert len({(one[first], one[second]) for one in seen}) == len(ones) * len(others)
    assert {"inf", "-0.0", "3.4028235e+38"} <= {one[0] for one in seen} and "-2147483648" in {one[1] for one in seen}


# ---- graphs of all kinds ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("graph", [
    Graph("g", (5,), ()), Graph("g", (), None), Graph("g", (Node("y", "neg", ("x",), None, Type("f32", (4,))),), (("y", "y"),)),
])  # fmt: skip
def test_a_broken_graph_refutes_nothing(graph):
    report = api.refute(next(iter(REFUTATIONS.values())).function, graph)
    assert report.outcome == "wrong" and "breaks a rule" in str(report) and report.html()


def test_what_is_no_graph_gets_a_sentence():
    with pytest.raises(api.LearnerError, match="refute takes"):
        api.refute(next(iter(REFUTATIONS.values())).function, None)
    for graph in (Graph("g", None, None), Graph("g", (Node([], "neg"),), ()), Graph("g", (), ((1, 2),)), Graph("g", (), 5)):
        with pytest.raises(api.LearnerError):
            api.break_rule("known-op", graph)
    with pytest.raises(api.LearnerError):
        api.break_rule([], None)
