"""Fusion as a partition: what is one launch, what is not and in which words, and that the checker finds a wrong one."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from minigraph.errors import GraphError
from minigraph.fusible_graphs import fusible_sample
from minigraph.fusion import MOST_OPERANDS, Cluster, explain, fuse, problems
from minigraph.ir import Builder, Graph
from minigraph.plan import make_plan
from minigraph.random_graphs import sample
from minigraph.text import parse
from minigraph.tracing import trace

ROOT = Path(__file__).parent.parent


def graph(signature: str, *lines: str, outputs: str = "") -> Graph:
    """``graph("x: f32[3]", "y = exp(x)")`` returns its last value, or those named."""
    names = outputs or lines[-1].split(" =")[0]
    returned = ", ".join(f"{name} = {name}" for name in names.split())
    body = "\n".join(f"  {line}" for line in lines)
    return parse(f"graph g({signature}) -> ({', '.join(names.split())}) {{\n{body}\n  return {returned}\n}}")


def launches(graph: Graph, **options) -> list[tuple[str, str]]:
    """(kind, names) of every launch."""
    return [(launch.kind, " ".join(launch.nodes)) for launch in make_plan(fuse(graph, **options)).launches]


# ---- what is one launch -----------------------------------------------------------------------------------------------


def softmax(x, axis=-1, keepdims=True, back=None):
    """``back`` is the shape that the reductions get where they do not keep their axes."""
    top = np.max(x, axis, keepdims=keepdims)
    e = np.exp(x - (top if keepdims else np.reshape(top, back)))
    total = np.sum(e, axis, keepdims=keepdims)
    return e / (total if keepdims else np.reshape(total, back))


def rms_norm(x, w):
    return x * (1 / np.sqrt(np.mean(x * x, -1, keepdims=True) + 1e-5)) * w


def layer_norm(x, w, b):
    shifted = x - np.mean(x, -1, keepdims=True)
    return shifted / np.sqrt(np.mean(shifted * shifted, -1, keepdims=True) + 1e-5) * w + b


def log_sum_exp(x, keepdims=True):
    top = np.max(x, -1, keepdims=keepdims)
    e = np.exp(x - (top if keepdims else np.reshape(top, (6, 1))))
    return np.log(np.sum(e, -1, keepdims=keepdims)) + top


def dense(x, w, b):
    return np.maximum(x @ w + b, 0)


def gelu(x):
    return 0.5 * x * (1 + np.tanh(0.7978846 * (x + 0.044715 * x * x * x)))


ONE_LAUNCH = {
    "softmax": (softmax, "reduce", {"x": "f32[6,40]"}),
    "softmax without keepdims": (lambda x: softmax(x, -1, False, (6, 1)), "reduce", {"x": "f32[6,40]"}),
    "softmax along the first axis": (lambda x: softmax(x, 0), "reduce", {"x": "f32[6,40]"}),
    "softmax along the first axis without keepdims": (lambda x: softmax(x, 0, False, (40,)), "reduce", {"x": "f32[6,40]"}),
    "softmax in the middle": (lambda x: softmax(x, -2), "reduce", {"x": "f32[3,6,5]"}),
    "softmax along two axes": (lambda x: softmax(x, (0, -1)), "reduce", {"x": "f32[3,6,5]"}),
    "softmax along all axes": (lambda x: softmax(x, (0, 1)), "reduce", {"x": "f32[3,6]"}),
    "softmax of a square matrix": (softmax, "reduce", {"x": "f32[7,7]"}),
    "softmax of columns of a square matrix": (lambda x: softmax(x, 0), "reduce", {"x": "f32[7,7]"}),
    "softmax with axes of length 1": (lambda x: softmax(x, (1, 3)), "reduce", {"x": "f32[6,1,1,40]"}),
    "RMSNorm": (rms_norm, "reduce", {"x": "f32[6,40]", "w": "f32[40]"}),
    "RMSNorm at batch 1": (rms_norm, "reduce", {"x": "f32[1,40]", "w": "f32[40]"}),
    "layer-norm": (layer_norm, "reduce", {"x": "f64[6,40]", "w": "f64[40]", "b": "f64[40]"}),
    "log-sum-exp": (log_sum_exp, "reduce", {"x": "f32[6,40]"}),
    "log-sum-exp without keepdims": (lambda x: log_sum_exp(x, False), "reduce", {"x": "f32[6,40]"}),
    "a sum of squares": (lambda x, y: np.sum((x - y) * (x - y)), "reduce", {"x": "f32[6,40]", "y": "f32[40]"}),
    "matmul + bias + relu at batch 1": (dense, "epilogue", {"x": "f32[1,30]", "w": "f32[30,40]", "b": "f32[40]"}),
    "matmul + bias + relu of a vector": (dense, "epilogue", {"x": "f32[30]", "w": "f32[30,40]", "b": "f32[40]"}),
    "matmul + bias + GELU": (lambda x, w, b: gelu(x @ w + b), "epilogue", {"x": "f32[2,30]", "w": "f32[30,40]", "b": "f32[40]"}),
    "int8 weights with a scale a row": (lambda x, q, s: (x @ q.T.astype(np.float32)) * s, "epilogue",
                                        {"x": "f32[1,30]", "q": "i8[40,30]", "s": "f32[40]"}),
    "a chain over broadcasts": (lambda x, w, b: np.tanh(x * w + b) * b, "map", {"x": "f32[6,40]", "w": "f32[6,1]", "b": "f32[]"}),
    "a chain through reshapes by 1": (lambda x: np.exp(np.reshape(np.abs(x), (6, 1, 4))) * 2, "map", {"x": "f32[6,4]"}),
}  # fmt: skip


@pytest.mark.parametrize("name", ONE_LAUNCH)
def test_one_launch(name):
    function, kind, types = ONE_LAUNCH[name]
    traced = trace(function, **types)
    assert [found for found, _ in launches(traced)] == [kind]
    assert problems(traced, fuse(traced).clusters) == []


def attention(q, k, v):
    return softmax(q @ np.swapaxes(k, -1, -2) * 0.3) @ v


def test_attention_is_one_launch_and_needs_a_generated_product():
    traced = trace(attention, q="f32[2,1,8]", k="f32[2,9,8]", v="f32[2,9,5]")
    assert [kind for kind, _ in launches(traced)] == ["attention"]
    assert "attention" not in [kind for kind, _ in launches(traced, rows=0)]


@pytest.mark.parametrize("shares, v, mixed", [
    ("p", "f32[2,7,4]", "f32[2,1,4]"),  # one row of scores, and two of values
    ("reshape(p) {shape=[7,1]}", "f32[1,4]", "f32[7,4]"),  # a column of shares: a product of depth 1
])  # fmt: skip
def test_what_only_looks_like_attention(shares, v, mixed):
    """Both once were one launch, which wrote past its memory."""
    one = graph(f"q: f32[1,3], k: f32[3,7], v: {v}", "s = matmul(q, k)", "m = max(s) {axis=[-1], keepdims=true}", "d = sub(s, m)",
                "e = exp(d)", "t = sum(e) {axis=[-1], keepdims=true}", "p = div(e, t)",
                *([f"r = {shares}"] if shares != "p" else []), f"y = matmul({'p' if shares == 'p' else 'r'}, v) : {mixed}")  # fmt: skip
    assert "attention" not in [kind for kind, _ in launches(one, rows=100)]


def test_launches_of_a_deep_network():
    """A11: 32 layers of matmul, add, relu and mul at batch 1."""

    def network(x, w, b, s):
        for layer in range(32):
            x = np.maximum(x @ w[layer] + b[layer], 0) * s[layer]
        return x

    traced = trace(network, x="f32[1,16]", w="f32[32,16,16]", b="f32[32,16]", s="f32[32,16]")
    assert len(launches(traced, enabled=False)) == 128
    assert [kind for kind, _ in launches(traced)] == ["epilogue"] * 32
    assert [kind for kind, _ in launches(traced, rows=0)] == ["library", "map"] * 32


# ---- what is not, and the sentence ----------------------------------------------------------------------------------------

APART = {
    "an output": ("x: f32[3]", ["a = exp(x)", "b = neg(a)"], "a b", "a", "it is an output of the graph, so it must be stored"),
    "nobody reads it": ("x: f32[3]", ["a = exp(x)", "b = neg(x)"], "b", "a", "nobody reads it"),
    "a random draw": ("x: f32[3]", ["a = random() {shape=[3], site=0}", "b = add(a, x)"], "b", "a",
                      "random is not a function of its operands alone"),
    "an effect": ("x: f32[3]", ["a = print(x)", "b = print(x, a)", "c = neg(x)"], "c", "a", "print is not a function of its operands"),
    "users apart": ("x: f32[3]", ["a = exp(x)", "b = neg(a)", "c = sin(a)"], "b c", "a", "its users are in different launches"),
    "a view of it is another launch's": ("x: f32[3,2]", ["a = exp(x)", "b = transpose(a) {perm=[1,0]}", "c = neg(b)"], "c", "a",
                                         "transpose reads it from memory"),
    "a move reads it": ("x: f32[3]", ["a = exp(x)", "b = concat(a, a) {axis=0}"], "b", "a", "concat reads it from memory"),
    "a library reads it": ("x: f32[3]", ["a = exp(x)", "b = cumsum(a) {axis=0}"], "b", "a", "cumsum reads it from memory"),
    "a product's operand": ("x: f32[1,3], w: f32[3,4]", ["a = exp(w)", "b = matmul(x, a)", "c = neg(b)"], "c", "a",
                            "a product reads each element of its operands many times"),
    "what a widened operand is made of": ("x: f32[1,3], q: i8[3,4]", ["n = neg(q)", "w = cast(n) {dtype=f32}", "a = matmul(x, w)"], "a", "n",
                                         "a product reads it from memory"),
    "integers that float32 may round": ("x: f32[1,3], q: i32[3,4]", ["w = cast(q) {dtype=f32}", "a = matmul(x, w)"], "a", "w",
                                        "a product reads each element of its operands many times"),
    "a widened operand with another reader": ("x: f32[1,4], q: i8[4,4]", ["w = cast(q) {dtype=f32}", "a = matmul(x, w)", "b = mul(a, w)"],
                                              "b", "w", "its users are in different launches"),
    "a half float": ("x: f16[3]", ["a = exp(x)", "b = cast(a) {dtype=f32}", "c = neg(b)"], "c", "a", "cast reads it from memory"),
    "a library's result": ("x: f32[3]", ["a = cumsum(x) {axis=0}", "b = neg(a)"], "b", "a", "cumsum of f32[3] is a library's work"),
    "a large product": ("x: f32[9,3], w: f32[3,9]", ["a = matmul(x, w)", "b = exp(a)"], "b", "a", "matmul of f32[9,9] is a library's work"),
    "a signed power may fail": ("x: i32[3]", ["a = pow(x, x)", "b = neg(a)"], "b", "a", "pow of i32[3] is a library's work"),
    "a transpose": ("x: f32[3,2]", ["a = transpose(x) {perm=[1,0]}", "b = neg(a)"], "b", "a", "transpose moves elements"),
    "a second product": ("x: f32[1,3], w: f32[3,3]", ["a = matmul(x, w)", "b = matmul(x, w)", "c = add(a, b)"], "c", "a",
                         "one launch holds one product"),
    "a product before a reduction": ("x: f32[1,3], w: f32[3,4]", ["a = matmul(x, w)", "b = sum(a) {axis=[1]}"], "b", "a",
                                     "one launch holds one product"),
    "a reduction beside a product": ("x: f32[1,3], w: f32[3,4], z: f32[4,5]",
                                     ["s = sum(z) {axis=[1]}", "a = matmul(x, w)", "b = add(a, s)"], "b", "s",
                                     "its launch holds a product already"),
    "two axes at once": ("x: f32[4,4], v: f32[4]", ["a = exp(v)", "r = reshape(a) {shape=[4,1]}", "b = add(x, r)", "c = add(b, a)",
                                                    "s = sum(c) {axis=[1]}"], "s", "a", "its users read it along different axes"),
    "a broadcast that changes the space": ("x: f32[3], y: f32[4,3]", ["a = exp(x)", "b = add(a, y)"], "b", "a",
                                           "a broadcast reads it again and again"),
    "a column that is broadcast": ("x: f32[4,1], y: f32[4,3]", ["a = exp(x)", "b = add(a, y)"], "b", "a",
                                   "a broadcast reads it again and again"),
    "the wrong axis of a square matrix": ("x: f32[5,5]", ["m = max(x) {axis=[1]}", "a = sub(x, m)"], "a", "m",
                                          "it is reduced along one axis and broadcast along another"),
    "rows along another axis": ("x: f32[4,3], y: f32[3]", ["a = exp(y)", "b = add(x, a)", "c = sum(b) {axis=[1]}"], "c", "a",
                                "the rows of this launch run along other axes"),
    "reductions along two axes": ("x: f32[4,4]", ["m = max(x) {axis=[0], keepdims=true}", "a = sub(x, m)", "b = exp(a)",
                                                  "s = sum(b) {axis=[1], keepdims=true}", "c = div(b, s)"], "c", "m",
                                  "this launch reduces along other axes"),
    "a reduction of a smaller space": ("x: f32[4,3], y: f32[5,4,3]", ["m = max(x) {axis=[1], keepdims=true}", "a = add(y, m)"], "a", "m",
                                       "it reduces another shape than this launch works on"),
    "a reduction of nothing but ones": ("x: f32[4,1]", ["m = max(x) {axis=[1], keepdims=true}", "a = sub(x, m)"], "a", "m",
                                        "is a library's work"),
}  # fmt: skip


@pytest.mark.parametrize("name", APART)
def test_apart_with_a_sentence(name):
    signature, lines, outputs, value, sentence = APART[name]
    one = graph(signature, *lines, outputs=outputs)
    partition = fuse(one)
    assert sentence in partition.refused[value]
    assert sentence in explain(partition, value)
    assert problems(one, partition.clusters) == []
    assert next(cluster for cluster in partition.clusters if value in cluster.nodes).nodes[-1] == value


def test_too_many_operands():
    builder = Builder()
    names = [builder.input(f"x{i}", "f32[3]") for i in range(MOST_OPERANDS + 5)]
    total = names[0]
    for name in names[1:]:
        total = builder.emit("add", total, name)
    partition = fuse(builder.build([total]))
    assert [len(set(launch.reads)) for launch in make_plan(partition).launches] == [6, MOST_OPERANDS]
    assert f"at most {MOST_OPERANDS} operands" in " ".join(partition.refused.values())
    wide = Builder()
    pieces = [wide.input(f"x{i}", "f32[3]") for i in range(MOST_OPERANDS + 1)]
    wide.emit("concat", *pieces, axis=0, name="y")
    assert launches(wide.build(["y"])) == [("library", "y")]  # a GPU's kernel has 4 KB of parameters


def test_fusion_off():
    traced = trace(softmax, x="f32[6,40]")
    partition = fuse(traced, enabled=False)
    computed = [node.name for node in traced.nodes if node.op not in ("input", "const")]
    assert [cluster.nodes for cluster in partition.clusters] == [(name,) for name in computed]
    assert "fusion is off" in explain(partition, computed[0])


def test_explain():
    one = graph("x: f32[3]", "a = exp(x)", "b = neg(a)")
    partition = fuse(one)
    assert explain(partition, "a") == "a is computed together with b in one map launch"
    assert explain(partition, "x") == "x is not computed: it is given"
    with pytest.raises(GraphError, match="there is no value 'c'"):
        explain(partition, "c")


# ---- the checker ------------------------------------------------------------------------------------------------------------


DIAMOND = graph("x: f32[3]", "a = exp(x)", "b = cumsum(a) {axis=0}", "c = add(a, b)")


def clusters(*groups: str) -> list[Cluster]:
    return [Cluster("map", tuple(group.split())) for group in groups]


@pytest.mark.parametrize("wrong, sentence", [
    (clusters("a", "b"), "c is in no cluster"),
    (clusters("a", "b", "b c"), "b is in two clusters"),
    (clusters("a", "b b", "c"), "b is in two clusters"),
    (clusters("x a", "b", "c"), "x is no node to compute"),
    (clusters("b", "a c"), "clusters wait for each other"),
    (clusters("a", "c", "b"), "a cluster comes before one whose result it reads"),
    (clusters("b a", "c"), "b is needed outside its cluster, which does not store it"),
    (clusters("a", "c b"), "c is needed outside its cluster, which does not store it"),
])  # fmt: skip
def test_the_checker_finds(wrong, sentence):
    assert any(sentence in one for one in problems(DIAMOND, wrong)), problems(DIAMOND, wrong)
    assert problems(DIAMOND, fuse(DIAMOND).clusters) == []


def test_the_checker_finds_random_changes():
    """Move one node of a right partition into another cluster: mostly wrong, and then it is said."""
    rng, found, tried = random.Random(0), 0, 0
    for index in range(200):
        one, _, _ = fusible_sample(7, index)
        partition = [list(cluster.nodes) for cluster in fuse(one).clusters]
        if len(partition) < 3:
            continue
        source, target = rng.sample(range(len(partition)), 2)
        partition[target].append(partition[source].pop())
        tried += 1
        found += problems(one, [Cluster("map", tuple(nodes)) for nodes in partition if nodes]) != []
    assert tried > 100 and found > 0.6 * tried


def test_random_graphs():
    for index in range(150):
        for one in (sample(11, index)[0], fusible_sample(11, index)[0]):
            for rows in (0, 4, 100):
                assert problems(one, fuse(one, rows).clusters) == []


# ---- no order, no depth, no size ----------------------------------------------------------------------------------------------

PRINTED = """
from minigraph.codegen.program import c_program, cuda_program
from minigraph.fusible_graphs import fusible_sample
from minigraph.plan import make_plan
for index in range(25):
    plan = make_plan(fusible_sample(3, index)[0])
    print(plan.partition.clusters, plan.partition.refused, plan.regions, c_program(plan).source, cuda_program(plan).source)
"""


def test_equal_bytes_under_two_hash_seeds():
    texts = [subprocess.run([sys.executable, "-c", PRINTED], capture_output=True, text=True, cwd=ROOT, check=True,
                            env={**os.environ, "PYTHONHASHSEED": seed}).stdout for seed in ("1", "2")]  # fmt: skip
    assert texts[0] == texts[1] and "matmul" in texts[0]


def test_names_do_not_matter():
    """Renaming every value renames the clusters and changes nothing else."""
    for index in range(40):
        one = fusible_sample(5, index)[0]
        new = {node.name: f"n{number}" for number, node in enumerate(one.nodes)}
        other = Graph(
            one.name,
            tuple(replace(node, name=new[node.name], inputs=tuple(map(new.get, node.inputs))) for node in one.nodes),
            tuple((public, new[value]) for public, value in one.outputs),
        )
        assert [tuple(map(new.get, cluster.nodes)) for cluster in fuse(one).clusters] == [
            c.nodes for c in fuse(other).clusters
        ]


DEEP = """
import sys
from minigraph.fusion import fuse
from minigraph.ir import Builder
from minigraph.plan import check_plan, make_plan
builder = Builder()
value = builder.input("x", "f32[2]")
for number in range(SIZE):
    op, attrs = STEPS[number % 3]
    value = builder.emit(op, value, **attrs)
graph = builder.build([value])
sys.setrecursionlimit(120)
plan = make_plan(fuse(graph))
print(len(plan.launches), check_plan(plan))
"""


@pytest.mark.parametrize("size, steps, launches", [
    (100_000, [("neg", {}), ("abs", {}), ("exp", {})], 50),
    (30_000, [("neg", {}), ("transpose", {"perm": (0,)}), ("slice", {"start": (0,), "stop": (2,)})], 10_000),
    (30_000, [("neg", {}), ("cumsum", {"axis": 0}), ("cumsum", {"axis": 0})], 30_000),
])  # fmt: skip
def test_a_deep_chain(size, steps, launches):
    code = DEEP.replace("STEPS", repr(steps)).replace("SIZE", str(size))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout == f"{launches} []\n", done.stderr[-2000:]
