"""What chapter 09 says of reductions: its exercises beside the generated kernels, and beside float64."""

import itertools
import random
import re

import numpy as np
import pytest

from minigraph.access import squeeze
from minigraph.codegen.rows import Walks
from minigraph.dialect import CUDA
from minigraph.fusible_graphs import fusible_graph
from minigraph.errors import MinigraphError
from minigraph.fusion import fuse
from minigraph.ir import defs
from minigraph.ops import OPS, Kind
from minigraph.plan import make_plan
from minigraph.teach.api import check, refute
from minigraph.teach.exercises.ch09 import (
    REFUTATIONS, ROWS, fuse_by_shape, merge, online_softmax, rows_in_chunks, tile_cases, tiled_attention, walks,
)  # fmt: skip
from minigraph.teach.judge_axes import largest, mixed_up, reduced_axes, reduces
from minigraph.teach.sources import source
from minigraph.teach.streams import KEPT, one_at_a_time, with_little_memory
from minigraph.text import parse

APART = {"dropped", "beside", "early", "unseen"}  # an output, or what nobody reads, is a launch of its own
REDUCING = [graph for graph in ROWS if graph.name not in APART and any(node.op in ("sum", "max", "min", "mean", "prod") for node in graph.nodes)]


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
    ("does no harm", "x: f32[4,4], b: f32[4]", "c = exp(b)\n s = sum(x) {axis=[1], keepdims=true}\n a = mul(x, s)",
     "y = add(a, c)"),
    ("from the launch (t, a, y)", "x: f32[4,4]",
     "s = sum(x) {axis=[1], keepdims=true}\n t = sum(x) {axis=[0], keepdims=true}\n a = sub(x, s)", "y = sub(a, t)"),
    ("does no harm", "x: f16[4,4]", "s = sum(x) {axis=[1], keepdims=true}", "y = sub(x, s)"),
]


@pytest.mark.parametrize("word, inputs, first, last, outputs", [(*one, "y")[:5] for one in LACKING])
def test_what_a_graph_lacks_that_does_not_refute_the_fuser(word, inputs, first, last, outputs):
    report = refute(fuse_by_shape, f"graph other({inputs}) -> ({outputs}) {{\n {first}\n {last}\n return {outputs}\n}}")
    assert report.outcome == "wrong" and word in report.lines[0].lower()


def elements(graph, group, name, index, found):
    """Put into ``found`` all elements that this one is made of, as far as the group computes or reads them."""
    if (name, index) in found:
        return
    found.add((name, index))
    node, nodes = graph[name], defs(graph)
    for operand in node.inputs if name in group else ():
        shape = nodes[operand].type.shape
        if reduces(node):
            axes, own = reduced_axes(node, len(shape)), iter(index)
            whole = len(index) == len(shape)
            places = [range(dim) if axis in axes else [index[axis] if whole else next(own)]
                      for axis, dim in enumerate(shape)]
        else:
            places = [[0] if dim == 1 else [place] for dim, place in zip(shape, index[len(index) - len(shape):])]
        for place in itertools.product(*places):
            elements(graph, group, operand, place, found)


def can_be_one_launch(graph, group):
    """Are there rows, along some axes, so that each needs one number of every sum, and nothing of another row?"""
    nodes, shape = defs(graph), graph[group[-1]].type.shape
    sums = {name for name in group if reduces(nodes[name])}
    space = largest([nodes[name] for name in group], nodes)
    wide = {name for name, node in nodes.items() if squeeze(node.type.shape) == squeeze(space)}
    wide &= {*group, *(nodes[name].inputs[0] for name in sums)}
    needs = {index: set() for index in np.ndindex(shape)}
    for index, found in needs.items():
        elements(graph, group, group[-1], index, found)

    def fits(axes, rows):
        for row in {tuple(index[axis] for axis in rows) for index in needs}:
            found = set().union(*(needs[index] for index in needs if tuple(index[axis] for axis in rows) == row))
            if len({tuple(index[axis - len(space)] for axis in axes) for name, index in found if name in wide}) > 1:
                return False
            if any(len({index for name, index in found if name == one}) > 1 for one in sums):
                return False
        return True

    long = [axis for axis, dim in enumerate(space) if dim != 1]
    choices = [(axes, rows) for size in range(len(long) + 1) for axes in itertools.combinations(long, size)
               for rows in itertools.combinations(range(len(shape)), size) if shape != space or axes == rows]
    return not sums or any(fits(*choice) for choice in choices)


def random_lines(draw):
    """A graph of sums, broadcasts and element-wise nodes over a square matrix, perhaps with a vector. May be None."""
    inputs = ["x: f32[2,2]"] + draw.sample(["b: f32[2]", "b: f32[2,1]", "b: f32[1,2]"], draw.randint(0, 1))
    names, lines = [one[0] for one in inputs], []
    for name in "cdefy"[draw.randint(0, 3):]:
        one, other = draw.choice(names), draw.choice(names)
        keep = draw.choice(["true", "false"])
        sums = [f"sum({one}) {{axis=[{axis}], keepdims={keep}}}" for axis in (0, 1)]
        lines.append(f"{name} = " + draw.choice([f"add({one}, {other})", f"exp({one})", *sums]))
        names.append(name)
    try:
        graph = parse(f"graph drawn({', '.join(inputs)}) -> (y) {{\n " + "\n ".join(lines) + "\n return y\n}")
    except MinigraphError:
        return None
    nodes = defs(graph)
    pairs = [(node.type.shape, nodes[node.inputs[0]].type.shape) for node in graph.nodes if reduces(node)]
    return None if any(squeeze(one) == squeeze(other) for one, other in pairs) else graph  # no sums of one element


def test_a_group_is_refuted_where_counting_its_elements_refutes_it():
    judged = {True: 0, False: 0}
    for seed in range(12_000):
        if (graph := random_lines(random.Random(seed))) is None:
            continue
        for group in map(tuple, fuse_by_shape(graph)):
            if len(group) > 1:
                mixed = mixed_up(graph, group) is not None
                assert mixed is not can_be_one_launch(graph, group), (str(graph), group)
                judged[mixed] += 1
    assert min(judged.values()) > 50, judged


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


def test_who_walks_over_a_graph_is_told_where_its_nodes_are():
    def walks(graph):
        return max(len(node.inputs) for node in graph)

    assert "its nodes are in graph.nodes" in check(walks).headline


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
