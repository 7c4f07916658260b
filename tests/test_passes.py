"""Each pass on random graphs, and what each of them must and must not do."""

from __future__ import annotations

import hashlib
import random
from dataclasses import replace

import numpy as np
import pytest
from strategies import samples, values_of

import minigraph as mg
from minigraph.errors import PassError
from minigraph.fuzz import check_pass, evaluate, weight
from minigraph.ir import Builder, Graph, Node, defs
from minigraph.ops import OPS, Kind
from minigraph.passes import PASSES, cse, dce, fold, layout, simplify
from minigraph.random_graphs import woven_sample
from minigraph.rebuild import ORIGINS, Rewrite, rebuild
from minigraph.text import print_graph
from minigraph.types import Const, same_bits

GRAPHS = samples(400, "passes")
VALUES = [evaluate(graph, inputs)[0] for graph, inputs in GRAPHS]
WOVEN = [woven_sample("passes", index) for index in range(120)]  # few of the others have two transposes
each_pass = pytest.mark.parametrize("function", PASSES.values(), ids=PASSES)


# ---- every pass -------------------------------------------------------------------------------------------------------


@each_pass
def test_a_pass_keeps_every_promise_on_random_graphs(function):
    """Bits, contract, origins, idempotence and weight: see ``fuzz.check_pass``."""
    fired = 0
    pairs = [(graph, evaluate(graph, inputs)[0]) for graph, inputs in WOVEN] if function is layout else []
    for graph, values in pairs + [(graph, values) for (graph, _), values in zip(GRAPHS, VALUES)]:
        assert [str(one) for one in check_pass(function, graph, values)] == [], str(graph)
        fired += bool(function(graph).report)
    assert fired > 40, "this pass hardly ever has anything to do"


def everything(graph: Graph) -> tuple:
    """The graph, by value, down to the bytes of its constants."""
    return print_graph(graph, origins=True), [bytes(node.value.data) for node in graph.nodes if node.op == "const"]


@each_pass
def test_a_pass_leaves_its_input_alone_and_gives_the_same_again(function):
    for graph, _ in (WOVEN if function is layout else GRAPHS)[:150]:
        before = everything(graph)
        first, second = function(graph), function(graph)
        assert everything(graph) == before
        assert everything(first.graph) == everything(second.graph) and first.report == second.report
        if not first.report:
            assert first.graph is graph, "nothing changed, so it is the same graph"


def rename(graph: Graph, new: dict[str, str]) -> Graph:
    """Other names for the values; helper names (``y.c``) follow the name that they are made from."""
    def turn(name: str) -> str:
        root, dot, rest = name.partition(".")
        return new.get(root, root) + dot + rest

    nodes = tuple(replace(node, name=turn(node.name), inputs=tuple(map(turn, node.inputs))) for node in graph.nodes)
    return replace(graph, nodes=nodes, outputs=tuple((public, turn(value)) for public, value in graph.outputs))


def other_names(graph: Graph) -> dict[str, str]:
    """New first parts for all names, in another alphabetical order."""
    roots = sorted({node.name.partition(".")[0] for node in graph.nodes})
    return {root: f"z{len(roots) - i:03}_{root[:3]}" for i, root in enumerate(roots)}


@each_pass
def test_renaming_commutes_with_a_pass(function):
    for graph, _ in (WOVEN if function is layout else GRAPHS)[:200]:
        new = other_names(graph)
        assert function(rename(graph, new)).graph == rename(function(graph).graph, new), str(graph)


@each_pass
def test_a_pass_of_nothing(function):
    empty = Graph("g", (), ())
    assert function(empty).graph == empty and function(empty).report == ()


# ---- planted waste ------------------------------------------------------------------------------------------------------


class Planter:
    """Inserts waste after a node and lets one of its users read the waste instead."""

    def __init__(self, graph: Graph, rng: random.Random):
        self.nodes, self.outputs, self.rng = list(graph.nodes), list(graph.outputs), rng
        self.used = {node.name for node in graph.nodes}

    def insert(self, i: int, op: str, inputs: tuple[str, ...], value=None, type=None) -> str:
        name = next(name for k in range(1000) if (name := f"waste{k}") not in self.used)
        self.used.add(name)
        self.nodes.insert(i, Node(name, op, inputs, value, type))
        return name

    def plant(self, kind: str) -> bool:
        """One piece of waste of this kind; False where it does not suit the node that the dice chose."""
        first = sum(node.op == "input" for node in self.nodes)
        i = self.rng.randrange(len(self.nodes))
        node, at = self.nodes[i], max(i + 1, first)
        made = self.waste(kind, node, at)
        if made is None:
            return False
        after = self.nodes.index(defs(Graph("g", tuple(self.nodes), ()))[made]) + 1
        uses = [j for j in range(after, len(self.nodes)) if node.name in self.nodes[j].inputs]
        outs = [j for j, (_, value) in enumerate(self.outputs) if value == node.name]
        if kind != "dead" and uses and self.rng.random() < 0.7:
            j = self.rng.choice(uses)
            self.nodes[j] = replace(self.nodes[j], inputs=tuple(made if n == node.name else n for n in self.nodes[j].inputs))
        elif kind != "dead" and outs:
            j = self.rng.choice(outs)
            self.outputs[j] = (self.outputs[j][0], made)
        return True

    def waste(self, kind: str, node: Node, at: int) -> str | None:
        type, domain, floats = node.type, node.type.domain, ("f16", "f32")
        if domain == "token" or (kind == "double neg" and domain == "bool"):
            return None
        if kind == "dead":
            self.insert(at, "ne", (node.name, node.name), None, mg.Type("bool", type.shape))
            return self.insert(at + 1, "bitwise_not", (f"{self.nodes[at].name}",), None, mg.Type("bool", type.shape))
        if kind == "minus zero" and domain == "float":
            zero = self.insert(at, "const", (), Const.of(np.array(-0.0), type.dtype), mg.Type(type.dtype))
            return self.insert(at + 1, "add", (node.name, zero)[::self.rng.choice((1, -1))], None, type)
        if kind == "times one" and domain != "bool":
            one = self.insert(at, "const", (), Const.of(np.array(1), type.dtype), mg.Type(type.dtype))
            return self.insert(at + 1, "mul", (node.name, one), None, type)
        if kind == "duplicate" and OPS[node.op].mergeable:
            return self.insert(at, node.op, node.inputs, node.value, type)
        if kind == "double neg" and domain != "bool":
            once = self.insert(at, "neg", (node.name,), None, type)
            return self.insert(at + 1, "neg", (once,), None, type)
        if kind == "transpose":
            perm = OPS["transpose"], {"perm": tuple(range(len(type.shape)))}
            return self.insert(at, "transpose", (node.name,), mg.ops.make_attrs(*perm), type)
        if kind == "cast" and type.dtype in floats:
            there = mg.ops.make_attrs(OPS["cast"], {"dtype": "f64"}), mg.ops.make_attrs(OPS["cast"], {"dtype": type.dtype})
            wide = self.insert(at, "cast", (node.name,), there[0], mg.Type("f64", type.shape))
            return self.insert(at + 1, "cast", (wide,), there[1], type)
        if kind == "reshape":
            shape, flat = mg.ops.make_attrs(OPS["reshape"], {"shape": type.shape}), (type.size,)
            line = self.insert(at, "reshape", (node.name,), mg.ops.make_attrs(OPS["reshape"], {"shape": flat}),
                               mg.Type(type.dtype, flat))
            return self.insert(at + 1, "reshape", (line,), shape, type)
        return None


def up_to_names(graph: Graph) -> tuple:
    """The graph with names that follow from what they mean: where waste stood first, its name may survive."""
    meaning: dict[str, str] = {}
    for node in graph.nodes:
        inputs = [meaning[name] for name in node.inputs]
        inputs = sorted(inputs) if OPS[node.op].commutative else inputs
        what = (node.op, inputs, node.value, node.type) if OPS[node.op].mergeable else node.name
        meaning[node.name] = hashlib.md5(repr(what).encode()).hexdigest()
    return sorted(meaning.values()), [(public, meaning[value]) for public, value in graph.outputs]


@pytest.mark.parametrize("kind", ["dead", "minus zero", "times one", "duplicate", "double neg", "transpose", "cast", "reshape"])
def test_planted_waste_vanishes(kind):
    rng, planted, to_the_letter = random.Random(kind), 0, 0
    for graph, _ in GRAPHS:
        clean = mg.optimize(graph).graph
        if not clean.nodes:
            continue
        planter = Planter(clean, rng)
        if any([planter.plant(kind) for _ in range(3)]):
            planted += 1
            wasteful = replace(clean, nodes=tuple(planter.nodes), outputs=tuple(planter.outputs))
            mg.verify(wasteful)
            again = mg.optimize(wasteful).graph
            assert up_to_names(again) == up_to_names(clean), str(wasteful)
            to_the_letter += print_graph(again) == print_graph(clean)
    assert planted > 100 and to_the_letter > 0.7 * planted


# ---- fold ---------------------------------------------------------------------------------------------------------------


def folded(op: str, *arrays: np.ndarray, **attrs) -> np.ndarray | None:
    """What fold makes of an operation of constants; None where it leaves it."""
    builder = Builder()
    y = builder.emit(op, *(builder.const(np.asarray(array)) for array in arrays), name="y", **attrs)
    node = fold(builder.build([y])).graph["y"]
    return node.value.array if node.op == "const" else None


@pytest.mark.parametrize(("op", "arrays", "attrs", "result"), [
    ("add", (np.float16(512), np.float16(0.25)), {}, np.float16(512)),
    ("mul", (np.float32(16777217), np.float32(1)), {}, np.float32(16777216)),
    ("add", (np.int8(100), np.int8(100)), {}, np.int8(-56)),
    ("sub", (np.uint8(0), np.uint8(1)), {}, np.uint8(255)),
    ("floor_div", (np.int32(-7), np.int32(2)), {}, np.int32(-4)),
    ("mod", (np.int32(-7), np.int32(2)), {}, np.int32(1)),
    ("floor_div", (np.int32(1), np.int32(0)), {}, np.int32(0)),
    ("floor_div", (np.int64(-2**63), np.int64(-1)), {}, np.int64(-2**63)),
    ("div", (np.float32(1), np.float32(-0.0)), {}, np.float32(-np.inf)),
    ("maximum", (np.float32(-0.0), np.float32(0.0)), {}, np.float32(0.0)),
    ("left_shift", (np.int32(1), np.int32(40)), {}, np.int32(0)),
    ("cast", (np.float32(300.7),), {"dtype": "u8"}, np.uint8(255)),
    ("cast", (np.float32(np.nan),), {"dtype": "i32"}, np.int32(0)),
    ("cast", (np.int32(300),), {"dtype": "u8"}, np.uint8(44)),
    ("cast", (np.float64(2**63),), {"dtype": "i64"}, np.int64(2**63 - 1)),
    ("sum", (np.zeros((0, 3), np.float32),), {"axis": (0,)}, np.zeros(3, np.float32)),
    ("mean", (np.zeros((0, 2), np.float32),), {"axis": (0,)}, np.full(2, np.nan, np.float32)),
    ("sum", (np.full(300, 100, np.int8),), {"axis": (0,)}, np.int8(300 * 100 % 256)),
    ("slice", (np.arange(5),), {"start": (4,), "stop": (-1,), "step": (-2,)}, np.array([4, 2, 0])),
    ("pad", (np.float32(3), np.float32(0)), {"low": (), "high": ()}, np.float32(3)),
    ("where", (np.array([True, False]), np.float32(1), np.float32(2)), {}, np.array([1, 2], np.float32)),
    ("matmul", (np.zeros((2, 0), np.float32), np.zeros((0, 2), np.float32)), {}, np.zeros((2, 2), np.float32)),
    ("pow", (np.int32(2), np.int32(-1)), {}, None),
    ("take", (np.arange(3), np.int64(3)), {}, None),
    ("update_slice", (np.arange(3), np.arange(2), np.int64(2)), {}, None),
    ("broadcast_to", (np.float32(0),), {"shape": (50_000, 50_000)}, None),
    ("matmul", (np.ones((50_000, 1), np.float32), np.ones((1, 50_000), np.float32)), {}, None),
])  # fmt: skip
def test_fold(op, arrays, attrs, result):
    """In the node's own dtype, with NumPy's meaning; what fails or would be too large stays (10 GB are not allocated)."""
    found = folded(op, *arrays, **attrs)
    assert (found is None) == (result is None)
    assert result is None or same_bits(found, result)


def test_fold_growth_is_an_option_and_is_bounded():
    graph = mg.parse("graph g() -> (y) {\n z = const(0.5) : f32[]\n y = broadcast_to(z) {shape=[100]}\n return y\n}")
    assert fold(graph, max_growth=395).graph is graph
    assert fold(graph, max_growth=396).graph["y"].op == "const"
    many = mg.parse("graph g() -> (y) {\n a = const(0.5) : f32[]\n b = broadcast_to(a) {shape=[200]}\n"
                    " c = broadcast_to(b) {shape=[2,200]}\n d = broadcast_to(c) {shape=[4,2,200]}\n return y = d\n}")
    assert fold(many).graph["c"].op == "const" and fold(many).graph["d"].op == "broadcast_to"


def test_doubling_again_and_again_is_not_folded_for_ever():
    """30 lines of concat(x, x) ask for 4 PiB, each no more than its operands together."""
    lines = "\n".join(f" c{i + 1} = concat(c{i}, c{i}) {{axis=0}}" for i in range(30))
    graph = mg.parse(f"graph g() -> (c30) {{\n c0 = const(1.0) : f32[1048576]\n{lines}\n return c30\n}}")
    sizes = [node.type.nbytes for node in fold(graph).graph.nodes if node.op == "const"]
    assert sizes == [2**22, 2**23, 2**24, 2**25, 2**26]


def test_fold_of_many_rounding_sums_stays_within_their_bound():
    """W.T of a constant: other strides, other bits in x @ W.T, each launch within its rounding bound."""
    from minigraph.fuzz import launches, tainted
    from minigraph.pipeline import run_pass

    rng = np.random.default_rng(0)
    builder = Builder()
    w = builder.const(rng.standard_normal((300, 500)).astype(np.float32))
    x = builder.input("x", "f32[1,500]")
    v = builder.const(rng.standard_normal((1, 500)).astype(np.float32))
    t = builder.emit("transpose", w, perm=(1, 0))
    graph = builder.build({"y": builder.emit("matmul", x, t), "c": builder.emit("matmul", v, t)})
    inputs = {"x": rng.standard_normal((1, 500)).astype(np.float32)}
    values = values_of(graph, inputs)
    stage = run_pass("fold", lambda graph: fold(graph, max_growth=2**20), graph)
    assert [node.op for node in stage.after.nodes].count("const") == 4
    assert list(launches(stage, values)) == []
    assert tainted(graph) == {"matmul", "matmul.1"}


# ---- cse ------------------------------------------------------------------------------------------------------------------


def test_cse_merges_by_bits_attributes_and_operands():
    nan = np.array([np.nan], np.float32)
    other_nan = (nan.view(np.uint32) + 1).view(np.float32)
    builder = Builder()
    for array in (0.0, -0.0, 0.0, 1.0, np.float64(1), np.ones(1, np.float32), nan, other_nan, nan.copy()):
        builder.const(np.asarray(array, np.float32) if isinstance(array, float) and not isinstance(array, np.float64) else array)
    graph = cse(builder.build([])).graph
    assert len(graph) == 7  # the second 0.0 and the third NaN are gone
    big = np.arange(100_000, dtype=np.float32)
    changed = big.copy()
    changed[50_000] += 1  # the hash looks at the ends only
    builder = Builder()
    for array in (big, changed, big.copy()):
        builder.const(array)
    assert len(cse(builder.build([])).graph) == 2


# ---- dce ------------------------------------------------------------------------------------------------------------------


def test_dce_is_what_networkx_says():
    """The live values are the ancestors of outputs and effects: an oracle that shares no code."""
    networkx = pytest.importorskip("networkx")
    for graph, _ in GRAPHS[:200]:
        edges = networkx.DiGraph((operand, node.name) for node in graph.nodes for operand in node.inputs)
        roots = {value for _, value in graph.outputs} | {
            node.name for node in graph.nodes if OPS[node.op].kind in (Kind.EFFECT, Kind.INPUT)}
        live = roots.union(*(networkx.ancestors(edges, root) for root in roots if root in edges))
        assert [node.name for node in dce(graph).graph.nodes] == [node.name for node in graph.nodes if node.name in live]


# ---- rebuild ----------------------------------------------------------------------------------------------------------------


def test_helpers_never_take_a_name_that_is_there():
    graph = mg.parse("graph g(y.c: f32[2], y.mul: f32[2]) -> (y) {\n y.c.1 = const(8.0) : f32[]\n y = div(y.mul, y.c.1)\n return y\n}")
    after = simplify(graph).graph
    assert [node.name for node in after.nodes] == ["y.c", "y.mul", "y.c.1", "y.c.2", "y"]


def test_the_survivor_adopts_origins_up_to_a_bound():
    builder = Builder()
    x = builder.input("x", "f32[]", origin=("model.py:0",))
    names = [builder.emit("neg", x, origin=(f"model.py:{i}",)) for i in range(1, 30)]
    after = cse(builder.build({f"y{i}": name for i, name in enumerate(names)})).graph
    assert after["neg"].origin == tuple(f"model.py:{i}" for i in range(1, 1 + ORIGINS))
    assert after["x"].origin == ("model.py:0",)


def test_a_visit_may_answer_with_several_nodes():
    def double(node: Node, env) -> Rewrite | None:
        if node.op != "exp":
            return None
        helper = Node(env.fresh(f"{node.name}.neg"), "neg", node.inputs, None, node.type)
        return Rewrite("twice", (helper, Node("ignored", "log", (helper.name,), None, node.type)), "for the test")

    graph = mg.parse("graph g(x: f32[]) -> (y) {\n y = exp(x)   # m.py:1\n return y\n}")
    result = rebuild(graph, double)
    assert print_graph(result.graph, origins=True).splitlines()[1:3] == [
        "  y.neg = neg(x) : f32[]   # m.py:1", "  y = log(y.neg) : f32[]   # m.py:1"]
    assert [(step.before, step.after) for step in result.report] == [(("y",), "y.neg"), (("y",), "y")]


def test_weight_never_rises_in_the_pipeline():
    for graph, _ in GRAPHS[:200]:
        weights = [weight(stage.after) for stage in mg.optimize(graph).history]
        assert weights == sorted(weights, reverse=True)


def test_a_pass_that_raises_is_not_hidden():
    def broken(graph):
        raise ZeroDivisionError("mine")

    with pytest.raises((ZeroDivisionError, PassError), match="mine"):
        mg.optimize(GRAPHS[0][0], passes=[broken])
