"""What chapter 09 says of reductions: its exercises beside the generated kernels, and beside float64."""

import random
import re

import numpy as np
import pytest

from minigraph.codegen.rows import Walks
from minigraph.dialect import CUDA
from minigraph.fusible_graphs import fusible_graph
from minigraph.fusion import fuse
from minigraph.ops import OPS, Kind
from minigraph.plan import make_plan
from minigraph.teach.api import refute
from minigraph.teach.exercises.ch09 import (
    REFUTATIONS, ROWS, fuse_by_shape, merge, online_softmax, rows_in_chunks, tile_cases, tiled_attention, walks,
)  # fmt: skip
from minigraph.teach.judge_axes import mixed_up
from minigraph.teach.sources import source
from minigraph.teach.streams import KEPT, one_at_a_time, with_little_memory

APART = {"dropped", "beside", "early", "unseen"}  # an output, or what nobody reads, is a launch of its own
REDUCING = [graph for graph in ROWS if graph.name not in APART and any(node.op in ("sum", "max", "min", "mean") for node in graph.nodes)]


@pytest.fixture(autouse=True)
def fresh_work(tmp_path, monkeypatch):
    monkeypatch.setenv("MINIGRAPH_WORK", str(tmp_path))


@pytest.mark.parametrize("graph", REDUCING, ids=lambda graph: graph.name)
def test_the_exercise_counts_the_loops_of_the_generated_kernel(graph):
    plan = make_plan(graph)
    assert len(plan.launches) == 1
    assert walks(graph) == Walks(plan, plan.launches[0]).count
    assert walks(graph) == len(re.findall(r"for \(int j = t; j < 8", source(graph, CUDA)))


def test_one_walk_over_any_chunks_is_the_whole_row():
    draw = np.random.default_rng(0)
    row = 50 * draw.standard_normal(60)
    row[draw.integers(0, 60, 12)] = -np.inf
    want = row.max(), np.exp(row - row.max()).sum()
    for _ in range(20):
        cuts = np.sort(draw.integers(0, 61, 5))
        assert online_softmax(np.split(row, cuts)) == pytest.approx(want, rel=1e-12)


def test_merging_is_associative_and_has_a_zero():
    draw = np.random.default_rng(0)
    parts = [(m, s) for m, s in zip(300 * draw.standard_normal(6), 1 + draw.random(6))] + [(-np.inf, 0.0)]
    for a in parts:
        assert merge(a, (-np.inf, 0.0)) == a == merge((-np.inf, 0.0), a)
        for b in parts:
            for c in parts:
                assert merge(merge(a, b), c) == pytest.approx(merge(a, merge(b, c)), rel=1e-12)


def test_tiled_attention_is_attention():
    for q, tiles in tile_cases():
        k, v = (np.concatenate([tile[part] for tile in tiles]) for part in (0, 1))
        scores = q @ k.T + np.concatenate([tile[2] for tile in tiles], axis=1)
        with np.errstate(all="ignore"):
            e = np.exp(scores - scores.max(axis=1, keepdims=True))
            want = e / e.sum(axis=1, keepdims=True) @ v
            np.testing.assert_allclose(tiled_attention(q, tiles), want, rtol=1e-12, atol=1e-12)


def test_no_answer_of_a_judge_lies_where_rounding_decides():
    """Answers count to six digits, so none may lie near the middle between two such numbers."""
    found = [value for (row,) in rows_in_chunks() for value in online_softmax(row)]
    with np.errstate(all="ignore"):
        found += [value for q, tiles in tile_cases() for value in tiled_attention(q, tiles).ravel()]
    for value in found:
        if np.isfinite(value) and value:
            digits = f"{abs(value):.15e}".split("e")[0].replace(".", "")[6:12]
            assert not 499_990 <= int(digits) <= 500_010, value


def test_the_fuser_to_refute_is_right_where_the_axes_are():
    for graph in REDUCING:
        (report,) = [one.judge(fuse_by_shape, graph)[0] for one in REFUTATIONS]
        assert report is None, graph.name


REFUTING = {
    "x: f32[4,4]": ("q = mul(x, x)", "s = mean(q) {axis=[1]}", "r = sqrt(s)", "y = div(x, r)"),
    "x: f32[4,4], w: f32[4]": ("s = sum(x) {axis=[1]}", "e = exp(w)", "t = add(e, s)", "y = sub(x, t)"),
    "x: f32[4,1], w: f32[1,4]": ("s = sum(x) {axis=[1]}", "y = add(x, s)"),
    "x: f32[3,3]": ("s = sum(x) {axis=[0]}", "t = sum(x) {axis=[1], keepdims=true}", "a = sub(x, t)", "y = sub(a, s)"),
    "x: f32[5,5]": ("m = max(x) {axis=[0]}", "n = max(x) {axis=[1]}", "y = sub(m, n)"),
    "x: f32[2,2,2]": ("s = sum(x) {axis=[1]}", "y = sub(x, s)"),
}


@pytest.mark.parametrize("inputs", REFUTING)
def test_graphs_that_refute_the_fuser(inputs):
    body = "\n ".join(REFUTING[inputs])
    assert refute(fuse_by_shape, f"graph mine({inputs}) -> (y) {{\n {body}\n return y\n}}").outcome == "right"


LACKING = [
    ("without a reduction", "x: f32[2,1], w: f32[2,4]", "e = exp(x)", "y = add(e, w)"),
    ("without a reduction", "x: f32[4], w: f32[4,4]", "e = exp(x)", "y = add(e, w)"),
    ("length 1", "x: f32[1,4]", "e = sum(x) {axis=[0], keepdims=true}", "y = sub(x, e)"),
    ("length 1", "x: f32[4,1], w: f32[4,4]", "e = sum(x) {axis=[1], keepdims=true}", "y = sub(w, e)"),
    ("2 rows of 4", "x: f32[2,4]", "s = sum(x) {axis=[0]}", "y = sub(x, s)"),
    ("one number for all", "x: f32[4,4]", "s = sum(x) {axis=[0,1], keepdims=true}", "y = sub(x, s)"),
    ("are an output", "x: f32[4,4]", "s = sum(x) {axis=[1]}", "y = sub(x, s)", "y, s"),
    ("broadcast is missing", "x: f32[4,4], w: f32[4]", "s = sum(x) {axis=[1]}", "y = mul(s, w)"),
    ("along columns", "x: f32[4,4]", "s = sum(x) {axis=[0]}", "y = sub(x, s)"),
    ("along columns", "x: f32[4,4]", "s = sum(x) {axis=[0], keepdims=true}", "y = sub(x, s)"),
    ("keepdims is left out", "x: f32[4,4]", "s = sum(x) {axis=[1], keepdims=true}", "y = sub(x, s)"),
    ("not because of the axes", "x: f16[4,4]", "s = sum(x) {axis=[1], keepdims=true}", "y = sub(x, s)"),
]


@pytest.mark.parametrize("word, inputs, first, last, outputs", [(*one, "y")[:5] for one in LACKING])
def test_what_a_graph_lacks_that_does_not_refute_the_fuser(word, inputs, first, last, outputs):
    report = refute(fuse_by_shape, f"graph other({inputs}) -> ({outputs}) {{\n {first}\n {last}\n return {outputs}\n}}")
    assert report.outcome == "wrong" and word in report.lines[0].lower()


def test_what_the_package_fuses_mixes_up_no_axes():
    judged = 0
    for seed in range(300):
        graph, _ = fusible_graph(random.Random(seed))
        kinds = {node.name: OPS[node.op].kind for node in graph.nodes}
        for cluster in fuse(graph).clusters:
            if len(cluster.nodes) > 1 and {kinds[name] for name in cluster.nodes} <= {Kind.ELEMENTWISE, Kind.REDUCTION}:
                assert mixed_up(graph, cluster.nodes) is None, seed
                judged += Kind.REDUCTION in {kinds[name] for name in cluster.nodes}
    assert judged > 100


def test_a_part_is_valid_until_the_next_is_asked_for():
    parts = [(np.arange(3.0), np.ones((2, 2))), (np.arange(2.0), np.zeros((1, 2))), (np.empty(0), np.zeros((0, 2)))]
    for views, part in zip(one_at_a_time(parts), parts):
        assert all(np.array_equal(view, array) for view, array in zip(views, part))
    kept = list(one_at_a_time(parts))
    assert all(np.isnan(array).all() for views in kept for array in views)


def test_memory_is_measured_where_parts_are_long():
    parts = [(np.ones(1024),)] * 64
    assert with_little_memory(lambda given: sum(part.sum() for (part,) in given), parts) == 2**16
    assert with_little_memory(lambda given: np.concatenate([part.copy() for (part,) in given]).sum(), parts) == KEPT
    assert with_little_memory(lambda given: np.concatenate([part.copy() for (part,) in given]).sum(), parts[:2]) == 2048
