"""What learners do beyond the mistakes that each exercise lists: solutions that were once accepted, and calls that once crashed."""

import json

import pytest

from minigraph import Graph, Node, Type, parse
from minigraph.teach import api, prelude, state
from minigraph.teach.exercise import solved, source_of
from minigraph.teach.exercises import EXERCISES, REFUTATIONS
from minigraph.teach.judge import judge_one


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
