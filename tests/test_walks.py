"""What chapter 09 says of reductions: its exercises beside the generated kernels, and beside float64."""

import re

import numpy as np
import pytest

from minigraph.codegen.rows import Walks
from minigraph.dialect import CUDA
from minigraph.plan import make_plan
from minigraph.teach.api import refute
from minigraph.teach.exercises.ch09 import (
    REFUTATIONS, ROWS, fuse_by_shape, merge, online_softmax, rows_in_chunks, tile_cases, tiled_attention, walks,
)  # fmt: skip
from minigraph.teach.sources import source
from minigraph.text import parse

REDUCING = [graph for graph in ROWS if graph.name != "dropped" and any(node.op in ("sum", "max", "min", "mean") for node in graph.nodes)]


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
    columns = parse("graph mine(x: f32[4,4]) -> (y) {\n s = sum(x) {axis=[0]}\n t = sum(x) {axis=[1], keepdims=true}\n"
                    " a = sub(x, t)\n y = sub(a, s)\n return y\n}")
    assert "other axes" in refute(fuse_by_shape, columns).headline
    for reason in ("x: f32[2,1], w: f32[2,4]) -> (y) {\n e = exp(x)\n y = add(e, w)",
                   "x: f32[1,4]) -> (y) {\n e = sum(x) {axis=[0], keepdims=true}\n y = sub(x, e)"):
        report = refute(fuse_by_shape, f"graph other({reason}\n return y\n}}")
        assert report.outcome == "wrong" and "another reason" in str(report)
    wide = parse("graph wide(x: f32[2,4]) -> (y) {\n s = sum(x) {axis=[0]}\n y = sub(x, s)\n return y\n}")
    assert refute(fuse_by_shape, wide).outcome == "wrong"
