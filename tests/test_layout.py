"""layout: every promise on random graphs, real layers, what stays and why, and wrong passes that must be rejected."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from strategies import values_of
from wrong_layouts import RIGHT, WRONG

import minigraph as mg
from minigraph import orderless
from minigraph.drawing.dot import renderers
from minigraph.drawing.strides import stride_ruler
from minigraph.errors import GraphError, MinigraphError
from minigraph.fuzz import Finding, check_pass, evaluate, is_loose, within_bound
from minigraph.fuzz_layout import PIPELINE, Tally, check_layout, main, restrided
from minigraph.ir import Builder, Graph, defs
from minigraph.passes import PASSES, layout
from minigraph.passes.axes import bytes_moved_by_layout, compose, inverse, is_reshape, stored_shape, torn, widen
from minigraph.passes.explain_layout import explain
from minigraph.random_graphs import woven_sample
from minigraph.types import same_bits

ROOT = Path(__file__).parent.parent
ALL = [perm for rank in range(5) for perm in permutations(range(rank))]


def transposes(graph: Graph) -> list[str]:
    return [node.name for node in graph.nodes if node.op == "transpose"]


# ---- permutations -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rank", range(5))
def test_permutations_are_what_numpy_does(rank):
    x = np.arange(np.prod(range(2, rank + 2), dtype=int)).reshape(range(2, rank + 2))
    for p in permutations(range(rank)):
        assert (x.transpose(p).transpose(inverse(p)) == x).all() and compose(p, inverse(p)) == tuple(range(rank))
        assert stored_shape(x.transpose(p).shape, p) == x.shape
        assert x[None, None].transpose(widen(p, rank + 2)).shape == (1, 1, *x.transpose(p).shape)
        for q in permutations(range(rank)):
            assert (x.transpose(p).transpose(q) == x.transpose(compose(p, q))).all()


@pytest.mark.parametrize("shape", [(), (3,), (1, 3), (2, 3), (1, 2, 1, 3), (2, 1, 3, 4), (2, 0, 3), (3, 3, 3), (2, 3, 4, 1)])
def test_what_is_a_reshape_and_what_a_product_reads_in_place(shape):
    x = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    for p in permutations(range(len(shape))):
        y = x.transpose(p)
        assert is_reshape(shape, p) == (y.ravel() == x.ravel()).all()
        if len(shape) >= 2 and 1 not in shape and 0 not in shape and not is_reshape(shape, p):
            assert torn(shape, p) == (1 if y.strides[-1] == x.itemsize else 2 if y.strides[-2] == x.itemsize else 3)
            assert torn(shape, p) != 3 or len(shape) > 2


@pytest.mark.parametrize(("lines", "moved"), [
    ("y = exp(t)", 48), ("y = exp(t)\n z = sin(t)", 48), ("y = matmul(t, x)", 0), ("y = matmul(t, x)\n z = neg(t)", 48),
    ("y = transpose(t) {perm=[1,0]}", 0), ("u = transpose(t) {perm=[1,0]}\n y = neg(u)", 0), ("y = reshape(t) {shape=[6]}", 48),
    ("d = exp(t)\n y = neg(x)", 0),
])  # fmt: skip
def test_bytes_moved(lines, moved):
    """6 elements of 4 bytes, read once and written once, where somebody needs them in order; not for what is dead."""
    outputs = [name for name in ("y", "z") if f"{name} = " in lines]
    graph = mg.parse(f"graph g(x: f32[2,3]) -> ({', '.join(outputs)}) {{\n t = transpose(x) {{perm=[1,0]}}\n {lines}\n"
                     f" return {', '.join(outputs)}\n}}")
    assert bytes_moved_by_layout(graph) == moved
    assert bytes_moved_by_layout(mg.parse("graph g(x: f16[2,3]) -> (t) {\n t = transpose(x) {perm=[1,0]}\n return t\n}")) == 24


# ---- random graphs ------------------------------------------------------------------------------------------------------


def test_every_promise_on_random_graphs():
    """A small run of ``python -m minigraph.fuzz_layout``."""
    tally = Tally()
    for index in range(350):
        findings = check_layout(*woven_sample("tests", index), tally)
        assert not findings, (index, [str(one) for one in findings])
    assert tally.changed > 300 and tally.exact > 120 and tally.stopped < 20
    assert tally.bytes[1] < 0.85 * tally.bytes[0] and tally.transposes[1] < 0.5 * tally.transposes[0]
    assert set(tally.rules) == {"absorb-into-matmul", "cancel-transposes", "compose-transposes", "dead", "sink-elementwise",
                                "sink-layout", "sink-reduction", "transpose-is-reshape", "transposed-product"}


def test_the_command(capsys):
    assert main(["--graphs", "30", "--seed", "5"]) == 0
    assert capsys.readouterr().out.startswith("30 graphs: 0 faults.")


def test_the_command_finds_a_mistake_and_makes_it_small(monkeypatch, capsys):
    from minigraph import fuzz_layout

    monkeypatch.setattr(fuzz_layout, "layout", WRONG["permutations_composed_backwards"][0])
    assert main(["--graphs", "60"]) == 1
    small = capsys.readouterr().out.partition("smaller:\n")[2].partition("\n\n")[0]
    assert 2 <= small.count("transpose(") <= 4 and small.count("\n") <= 10, small


def test_what_counts_as_other_strides():
    graph = mg.parse("""graph g(x: f32[4,5], y: f32[4,5]) -> (a, b, c) {
  t = transpose(x) {perm=[1,0]}
  u = exp(t)
  a = sum(u) {axis=[0]}
  b = sum(y) {axis=[0]}
  c = add(b, b)
  return a, b, c
}""")
    result, inputs = layout(graph), {name: np.ones((4, 5), np.float32) for name in "xy"}
    assert restrided(graph, result, values_of(graph, inputs), values_of(result.graph, inputs)) == {"u", "a"}


def test_two_hash_seeds_the_same_bytes():
    script = ("from minigraph.passes import layout\nfrom minigraph.random_graphs import woven_sample\n"
              "for i in range(40):\n    graph, _ = woven_sample(1, i)\n    result = layout(graph)\n"
              "    print(graph, result.graph, *result.report)")
    texts = {subprocess.run([sys.executable, "-c", script], env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
                            check=True, capture_output=True).stdout for seed in ("1", "77")}
    assert len(texts) == 1 and len(texts.pop()) > 20_000


def woven_chain(length: int) -> Graph:
    builder = Builder()
    value = builder.input("x", "f32[2,3,4]")
    turns = ((1, 2, 0), (2, 0, 1), (0, 2, 1), (1, 0, 2))
    while len(builder.nodes) < length:
        if len(builder.nodes) % 9 == 1:
            value = builder.emit("transpose", value, perm=turns[len(builder.nodes) % 4])
        value = builder.emit(("neg", "exp", "abs")[len(builder.nodes) % 3], value)
    return builder.build({"y": value})


def test_a_hundred_thousand_nodes_at_a_low_recursion_limit():
    code = ("import sys\nfrom test_layout import woven_chain\nfrom minigraph.passes import layout\ngraph = woven_chain(100_000)\n"
            "sys.setrecursionlimit(120)\nresult = layout(graph)\nprint(sum(node.op == 'transpose' for node in result.graph.nodes))")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(Path(__file__).parent)])}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.stdout == "1\n", done.stderr[-2000:]


# ---- real layers --------------------------------------------------------------------------------------------------------


def transformer_layer(x, norm, wq, wk, wv, wo, w1, w2):
    """As it is written by people who think in columns: 13 transposes, weights stored [out, in]."""
    batch, length, width = x.shape
    heads = 3

    def rms(x):
        return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + np.float32(1e-5)) * norm

    def split(y):
        return y.reshape(batch, length, heads, width // heads).transpose(0, 2, 1, 3)

    n = rms(x)
    q, k, v = split(n @ wq.T), split(n @ wk.T), split(n @ wv.T)
    scores = (q @ k.transpose(0, 1, 3, 2)) / np.sqrt(np.float32(width // heads))
    keys_first = scores.transpose(0, 1, 3, 2)
    e = np.exp(keys_first - np.max(keys_first, axis=-2, keepdims=True))
    share = (e / np.sum(e, axis=-2, keepdims=True)).transpose(0, 1, 3, 2)
    x = x + (share @ v).transpose(0, 2, 1, 3).reshape(batch, length, width) @ wo.T
    columns = rms(x).transpose(0, 2, 1)
    return x + (w2 @ np.tanh(w1 @ columns)).transpose(0, 2, 1)


def traced_layer(batch: int, length: int) -> tuple[Graph, dict[str, np.ndarray]]:
    square = "f32[12,12]"
    graph = mg.trace(transformer_layer, x=f"f32[{batch},{length},12]", norm="f32[12]", wq=square, wk=square, wv=square, wo=square,
                     w1="f32[20,12]", w2="f32[12,20]")
    rng = np.random.default_rng(0)
    return graph, {node.name: rng.standard_normal(node.type.shape).astype(np.float32) for node in graph.inputs}


def means_the_same(graph: Graph, after: Graph, inputs: dict[str, np.ndarray]) -> None:
    """The same to the bit where sums have one order, and in NumPy each launch within its rounding bound."""
    before, now = (evaluate(one, inputs, compute=orderless.compute)[0] for one in (graph, after))
    values = values_of(after, inputs)
    for (_, old), (_, new) in zip(graph.outputs, after.outputs):
        assert same_bits(before[old], now[new])
    for node in after.nodes:
        assert not is_loose(node) or within_bound(node, [values[name] for name in node.inputs], values[node.name]), node.name


def test_a_transformer_layer_keeps_what_heads_need_and_nothing_else():
    graph, inputs = traced_layer(2, 5)
    assert len(transposes(graph)) == 13
    for after in (layout(graph).graph, mg.optimize(graph, passes=PIPELINE).graph):
        stays = {name: explain(after, name) for name in transposes(after)}
        split = [name for name, why in stays.items() if "moves 0 bytes: matmul" in why and "reads its rows in place" in why]
        merge = [name for name in stays if name not in split]
        assert len(split) == 3 and len(merge) == 1  # q, k, v; and their result
        assert re.search(r"moves 960 bytes: reshape '.*' reads the elements one after another", stays[merge[0]])
        assert all(defs(after)[name].value.perm == (0, 2, 1, 3) for name in stays)
        assert bytes_moved_by_layout(after) == 960 < bytes_moved_by_layout(graph) == 3120
        means_the_same(graph, after, inputs)
        made = mg.make_plan(mg.fuse(after))  # the product that makes the result stores it as the reshape reads it
        assert "copy" not in {launch.kind for launch in made.launches} and made.access[merge[0]].contiguous


def test_one_token_at_a_time_needs_no_transpose():
    graph, inputs = traced_layer(1, 1)
    after = layout(graph).graph
    assert transposes(after) == [] and bytes_moved_by_layout(after) == 0
    means_the_same(graph, after, inputs)


def test_channels_last_meets_conv2d_which_has_channels_first():
    def net(x, k1, b1, k2, b2):
        y = np.maximum(mg.conv2d(x.transpose(0, 3, 1, 2), k1).transpose(0, 2, 3, 1) + b1, np.float32(0))
        z = np.maximum(mg.conv2d(np.pad(y, ((0, 0), (1, 1), (1, 1), (0, 0))).transpose(0, 3, 1, 2), k2).transpose(0, 2, 3, 1) + b2 + y,
                       np.float32(0))
        return np.mean(z, axis=(1, 2)), z[:, ::2, ::2, :]

    graph = mg.trace(net, x="f32[2,5,5,3]", k1="f32[4,3,1,1]", b1="f32[4]", k2="f32[4,4,3,3]", b2="f32[4]")
    after = mg.optimize(graph, passes=PIPELINE).graph
    assert [defs(after)[name].value.perm for name in transposes(after)] == [(0, 3, 1, 2), (0, 2, 3, 1)]  # at the ends
    assert {node.type.shape[1] for node in after.nodes if node.op in ("conv2d", "maximum", "pad")} == {4}
    rng = np.random.default_rng(0)
    inputs = {node.name: rng.standard_normal(node.type.shape).astype(np.float32) for node in graph.inputs}
    means_the_same(graph, after, inputs)


def test_a_value_can_be_followed_through_layout():
    graph = mg.trace(lambda x: np.exp(x.T).T, x="f32[2,3]")
    optimized = mg.optimize(graph, passes=PIPELINE)
    (value,) = [value for _, value in optimized.graph.outputs]
    assert [node.op for node in optimized.graph.nodes] == ["input", "exp"]
    assert "sink-elementwise" in optimized.why(value) and "cancel-transposes" in optimized.why(value)


# ---- constants ------------------------------------------------------------------------------------------------------------


def test_constants_are_laid_out_at_compile_time_and_no_larger():
    table = np.arange(6, dtype=np.float32).reshape(2, 3)
    graph = mg.trace(lambda x: (np.exp(x.T + mg.constant(table.T)) * mg.constant(table.T.copy())).T, x="f32[2,3]")
    for passes in (("layout",), PIPELINE):
        after = mg.optimize(graph, passes=passes).graph
        assert transposes(after) == [] and {node.type.shape for node in after.nodes} == {(2, 3)}
        consts = [node.value for node in after.nodes if node.op == "const"]
        assert all(same_bits(const.array, table) for const in consts)
        means_the_same(graph, after, {"x": table})
    assert sum(len(const.data) for const in consts) == 24  # after cse, one


def test_fold_and_layout_agree_on_a_weight():
    weight = np.arange(12, dtype=np.float32).reshape(4, 3)
    graph = mg.trace(lambda x: x @ mg.constant(weight).T, x="f32[2,3]")
    flag, folded = layout(graph).graph, mg.optimize(graph, passes=("fold", "layout", "dce")).graph
    assert dict(flag.nodes[-1].value)["transpose_b"] and not dict(folded.nodes[-1].value)["transpose_b"]
    assert transposes(flag) == transposes(folded) == []
    assert sum(node.type.nbytes for node in folded.nodes if node.op == "const") == weight.nbytes


# ---- what stays, and why ------------------------------------------------------------------------------------------------

STAYS = [
    ("y = exp(t)", "nothing there to cancel it"),
    ("y = exp(t)\n z = sin(t)", "below 'y' and 'z' there would be 192 bytes to move"),
    ("y = exp(t)\n z = reshape(t) {shape=[12]}", "reshape 'z' reads the elements one after another"),
    ("y = cast(t) {dtype=f64}", "below 'y' there would be 192 bytes"),
    ("y = add(t, w)", "add 'y' has another operand that lies in another order"),
    ("y = neg(x)", "'t' is dead"),
]


@pytest.mark.parametrize(("lines", "why"), STAYS)
def test_a_transpose_stays_where_removing_it_would_cost_as_much(lines, why):
    outputs = [name for name in ("y", "z") if f"{name} = " in lines]
    graph = mg.parse(f"graph g(x: f32[3,4], w: f32[4,3]) -> ({', '.join(outputs)}) {{\n t = transpose(x) {{perm=[1,0]}}\n {lines}\n"
                     f" return {', '.join(outputs)}\n}}")
    assert layout(graph).graph is graph and why in explain(graph, "t")


def test_explain_says_what_happens_to_the_others():
    graph = mg.parse("""graph g(x: f32[3,4], w: f32[5,3], one: f32[1,4], b: f32[2,3,4,5]) -> (y, z, u, v) {
  t = transpose(x) {perm=[1,0]}
  wt = transpose(w) {perm=[1,0]}
  y = matmul(t, wt)
  z = transpose(one) {perm=[1,0]}
  s = transpose(b) {perm=[1,0,2,3]}
  u = transpose(s) {perm=[1,0,2,3]}
  r = transpose(b) {perm=[3,1,0,2]}
  v = matmul(r, x) {transpose_b=true}
  return y, z, u, v
}""")
    assert explain(graph, "t") == "layout drops 't', because 'y' does without it: transpose_a swaps the last two axes."
    assert explain(graph, "z") == "layout changes 'z': only axes of length 1 move, so all elements stay in order."
    assert explain(graph, "u") == "layout changes 'u': every axis is back in its place."
    assert "'r' stays and moves 960 bytes: matmul 'v' needs its matrices in one piece" in explain(graph, "r")
    assert explain(graph, "y").startswith("'y' is no transpose: y = matmul(t, wt)")
    with pytest.raises(GraphError, match="no value is named 'tt'"):
        explain(graph, "tt")


def test_every_transpose_has_its_sentence():
    words = set()
    for index in range(120):
        graph, _ = woven_sample("explain", index)
        after = layout(graph).graph
        for one in (graph, after):
            for name in transposes(one):
                words.add(explain(one, name).partition(" ")[0])
        assert all(explain(after, name).startswith((f"'{name}' stays and moves", f"'{name}' is dead")) for name in transposes(after))
    assert "layout" in words


# ---- wrong passes ---------------------------------------------------------------------------------------------------------

# Small graphs in which mistakes meet that are rare in random ones: cubes, rotations, and axes counted from the end.
KILLERS = """
graph rotations(x: f32[3,3,3]) -> (y, z) {
  t = transpose(x) {perm=[1,2,0]}
  y = transpose(t) {perm=[1,2,0]}
  z = transpose(t) {perm=[2,1,0]}
  return y, z
}
graph square(x: f32[3,3]) -> (y) {
  y = transpose(x) {perm=[1,0]}
  return y
}
graph from_the_end(x: f32[3,3,3]) -> (y, z) {
  t = transpose(x) {perm=[1,2,0]}
  s = cumsum(t) {axis=-1}
  y = transpose(s) {perm=[2,0,1]}
  m = max(t) {axis=[-3], keepdims=true}
  d = sub(t, m)
  z = transpose(d) {perm=[2,0,1]}
  return y, z
}
graph from_the_start(x: f32[3,3,3]) -> (y) {
  t = transpose(x) {perm=[1,2,0]}
  s = cumsum(t) {axis=0}
  y = transpose(s) {perm=[2,0,1]}
  return y
}
graph drops(x: f32[3,3,3]) -> (y) {
  t = transpose(x) {perm=[2,1,0]}
  y = sum(t) {axis=[0]}
  return y
}
graph bias(x: f32[3,3], b: f32[3]) -> (y) {
  t = transpose(x) {perm=[1,0]}
  a = add(t, b)
  y = transpose(a) {perm=[1,0]}
  return y
}
graph table(x: f32[2,2]) -> (y) {
  c = const([[1.0, 2.0], [3.0, 4.0]]) : f32[2,2]
  t = transpose(x) {perm=[1,0]}
  a = mul(t, c)
  y = transpose(a) {perm=[1,0]}
  return y
}
graph wider(x: f32[3,3], w: f32[3,3,3]) -> (y) {
  t = transpose(x) {perm=[1,0]}
  u = transpose(w) {perm=[0,2,1]}
  a = sub(t, u)
  y = transpose(a) {perm=[0,2,1]}
  return y
}
graph border(x: f32[3,3], zero: f32[]) -> (y) {
  t = transpose(x) {perm=[1,0]}
  p = pad(t, zero) {high=[0,1], low=[1,0]}
  y = transpose(p) {perm=[1,0]}
  return y
}
graph batches(x: f32[3,3,3], w: f32[3,3,3]) -> (y, z) {
  t = transpose(x) {perm=[1,0,2]}
  y = matmul(t, w)
  u = transpose(x) {perm=[1,2,0]}
  z = matmul(u, w)
  return y, z
}
graph turned(x: f32[3,3], w: f32[3,3]) -> (y) {
  m = matmul(x, w)
  y = transpose(m) {perm=[1,0]}
  return y
}
graph turned_oblong(x: f32[2,3], w: f32[3,4]) -> (y) {
  m = matmul(x, w)
  y = transpose(m) {perm=[1,0]}
  return y
}
graph twice(x: f32[2,3]) -> (y, z) {
  t = transpose(x) {perm=[1,0]}
  y = exp(t)
  z = abs(t)
  return y, z
}
"""


def corpus() -> list[tuple[Graph, dict[str, np.ndarray]]]:
    rng = np.random.default_rng(0)
    killers = [mg.parse("graph" + text) for text in KILLERS.split("\ngraph")[1:]]
    return [(graph, {node.name: rng.standard_normal(node.type.shape).astype(np.float32) for node in graph.inputs})
            for graph in killers] + [woven_sample("wrong", index) for index in range(60)]


CORPUS = [(graph, evaluate(graph, inputs)[0]) for graph, inputs in corpus()]


def judge(function: Callable, kind: str = "") -> list[Finding]:
    """What is wrong with a pass, up to a finding of this kind."""
    found: list[Finding] = []
    for graph, values in CORPUS:
        found += check_pass(function, graph, values)
        if kind and kind in {one.kind for one in found}:
            break
    return found


@pytest.mark.parametrize("name", WRONG)
def test_the_judge_rejects(name):
    function, kind = WRONG[name]
    found = judge(function, kind)
    assert kind in {one.kind for one in found}, [str(one)[:200] for one in found] or "accepted"


@pytest.mark.parametrize("function", RIGHT, ids=lambda function: function.__name__)
def test_the_judge_accepts(function):
    assert [str(one) for one in judge(function)] == []


def test_layout_is_a_pass_by_name_and_not_in_the_default():
    assert PASSES["layout"] is layout and len(WRONG) >= 15
    graph = mg.parse("graph g(x: f32[2,3]) -> (y) {\n t = transpose(x) {perm=[1,0]}\n y = transpose(t) {perm=[1,0]}\n return y\n}")
    assert len(mg.optimize(graph).graph) == 3 and len(mg.optimize(graph, passes=["layout"]).graph) == 1


# ---- the stride ruler -----------------------------------------------------------------------------------------------------


def test_the_stride_ruler_says_how_axes_walk():
    picture = stride_ruler("f32[2,3]", (1, 0))
    assert repr(picture) == (
        "Strides of f32[2,3] transposed by [1, 0]: memory is a row of 6 cells of 4 bytes; axis 0 has length 3 and stride 1, 4 bytes,"
        " and walks cells 0, 1, 2; axis 1 has length 2 and stride 3, 12 bytes, and walks cells 0, 3; read in order the elements lie"
        " in cells 0, 3, 1, 4, 2, 5: neighbours are not neighbours in memory.")
    assert "one after another" in repr(stride_ruler("f32[2,3]")) and "cells 0: one" in repr(stride_ruler("i8[]"))
    for words in ("axis 0: length 3, stride 1 = 4 bytes", "read in order", "element of x", ">1,2<"):
        assert words in picture.dot
    x = np.arange(24).reshape(2, 3, 4)
    for perm in permutations(range(3)):
        assert f"cells {', '.join(map(str, x.transpose(perm).ravel()))}:" in repr(stride_ruler("i64[2,3,4]", perm))


def test_the_stride_ruler_is_drawn():
    if not renderers():
        pytest.skip("no program to draw with")
    svg = stride_ruler("f32[2,3]", (1, 0)).svg
    assert 'role="img"' in svg and "axis 1: length 2, stride 3 = 12 bytes" in svg


@pytest.mark.parametrize(("given", "words"), [(("f32[9,9]",), "has 81 elements"), (("f32[0]",), "has 0 elements"),
                                              (("f32[2,3]", (0, 0)), "is no permutation of the axes"), (("f32[2",), "is not a type")])
def test_the_stride_ruler_refuses(given, words):
    with pytest.raises(MinigraphError, match=re.escape(words)):
        stride_ruler(*given)


# ---- the interpreter without order ----------------------------------------------------------------------------------------


def test_orderless_sums_are_right_and_do_not_depend_on_the_order_of_axes():
    rng = np.random.default_rng(0)
    for op, attrs in (("sum", "axis=[0,2]"), ("mean", "axis=[-1]"), ("prod", "axis=[1]"), ("max", "axis=[0,1,2]")):
        values = rng.standard_normal((3, 4, 5)).astype(np.float32)
        graph = mg.parse(f"graph g(x: f32[3,4,5]) -> (y) {{\n y = {op}(x) {{{attrs}}}\n return y\n}}")
        node = graph.nodes[1]
        result = orderless.compute(node, {"x": values})
        assert within_bound(node, [values], result) and result.shape == node.type.shape
        flipped = np.ascontiguousarray(values[::-1]) if "0" in attrs else values
        assert same_bits(orderless.compute(node, {"x": flipped}), result) or "0" not in attrs
    both = "{transpose_a=true, transpose_b=true}"
    for a, b, flags in (((3, 4), (4, 5), ""), ((4,), (2, 4, 3), ""), ((2, 3, 4), (4,), ""), ((4, 3), (5, 4), both),
                        ((2, 1, 3, 4), (3, 4, 2), ""), ((4,), (4,), "")):
        types = ["f32[" + ",".join(map(str, shape)) + "]" for shape in (a, b)]
        node = mg.parse(f"graph g(a: {types[0]}, b: {types[1]}) -> (y) {{\n y = matmul(a, b) {flags}\n return y\n}}").nodes[2]
        arrays = {"a": rng.standard_normal(a).astype(np.float32), "b": rng.standard_normal(b).astype(np.float32)}
        result = orderless.compute(node, arrays)
        assert result.shape == node.type.shape and within_bound(node, [*arrays.values()], result)
