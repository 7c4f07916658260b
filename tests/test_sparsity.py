"""Pruning, compressed storage, and products that skip zeros, in every back end against the definition."""

from __future__ import annotations

import numpy as np
import pytest
from test_formats import needs_c, normal, on_the_shim, packed_product

import minigraph as mg
from minigraph import sparse
from minigraph.check_backends import Case, check_cases
from minigraph.drawing import draw_24
from minigraph.errors import GraphError, MinigraphError, RunError
from minigraph.formats import FORMATS
from minigraph.fusible_graphs import fusible_sample
from minigraph.fuzz import within_bound
from minigraph.ir import Builder, Graph
from minigraph.models import compiled, smollm2
from minigraph.ops import OPS
from minigraph.passes import compress, dce, prune
from minigraph.passes.sparsity import PATTERNS, largest, mask_24, mask_anywhere, mask_blocks
from minigraph.pipeline import run_pass
from minigraph.plan import make_plan
from minigraph.types import DTYPES, type_of
from minigraph.verify import verify

KINDS = {"sparse_matmul": lambda w: sparse.compress_24(w), "block_matmul": lambda w: sparse.compress_blocks(w, 8)}


def pruned(op: str, rows: int, terms: int, seed: int = 1) -> np.ndarray:
    w = normal(rows, terms, seed=seed)
    mask = mask_24(w) if op == "sparse_matmul" else mask_blocks(w, 0.5, 8)
    return np.where(mask, w, np.float32(0))


def product(op: str, x: np.ndarray, w: np.ndarray, epilogue: bool = False):
    stored = KINDS[op](w)
    builder, inputs = Builder("g"), dict(zip(("x", "v", "i", "s"), (x, *stored)))
    y = builder.emit(op, *(builder.input(name, type_of(array)) for name, array in inputs.items()))
    if epilogue:
        inputs["bias"] = normal(len(w), seed=5)
        y = builder.emit("neg", builder.emit("add", y, builder.input("bias", type_of(inputs["bias"]))))
    return builder.build({"y": y}), inputs


def check(got: np.ndarray, x: np.ndarray, w: np.ndarray, bias=None) -> None:
    exact = x.astype(np.float64) @ w.T.astype(np.float64)
    exact = exact if bias is None else -(exact + bias)
    assert got.dtype == np.float32 and got.shape == exact.shape
    assert (np.abs(got - exact) <= np.abs(x) @ np.abs(w.T) * 1e-5 + 1e-6).all()


# ---- storage -------------------------------------------------------------------------------------------------------


def test_24_is_stored_and_comes_back():
    w = pruned("sparse_matmul", 48, 96)
    w[3] = 0  # a row of nothing
    w[5, 4:8] = 0, 0, 0, 7
    values, indices = sparse.compress_24(w)
    assert (values.shape, indices.shape, indices.dtype) == ((3, 48, 16), (3, 3, 16), np.uint32)
    assert np.array_equal(sparse.expand_24(values, indices), w)
    assert values.nbytes + indices.nbytes == w.nbytes * 17 // 32


def test_blocks_are_stored_and_come_back():
    w = pruned("block_matmul", 48, 96)
    w[16:32] = 0  # a tile of nothing
    values, indices, starts = sparse.compress_blocks(w, 8)
    assert starts.tolist() == [0, 6, 6, 12] and values.shape == (12, 8, 16) and len(indices) == 12
    assert np.array_equal(sparse.expand_blocks(values, indices, starts, 96), w)
    nothing = sparse.compress_blocks(np.zeros((16, 32), np.float32))
    assert nothing[0].shape == (0, 16, 16) and not sparse.expand_blocks(*nothing, 32).any()


@pytest.mark.parametrize(
    "bad",
    [
        dict(indices=[0, 4]),
        dict(indices=[-1, 0]),
        dict(starts=[0, 3]),
        dict(starts=[2, 0]),
        dict(starts=[-1, 2]),
        dict(starts=[0, 2, 1]),
        dict(starts=[0, 2, -(2**31)]),  # differences that wrap in 32 bits
        dict(starts=[0, 2**31 - 1, -(2**31)]),
    ],
)
def test_an_index_out_of_range_is_an_error(bad):
    facts = {
        "indices": np.array(bad.get("indices", [0, 1]), np.int32),
        "starts": np.array(bad.get("starts", [0, 2]), np.int32),
    }
    builder = Builder("g")
    inputs = {"x": normal(1, 32), "v": normal(2, 8, 16), "i": facts["indices"], "s": facts["starts"]}
    y = builder.emit("block_matmul", *(builder.input(name, type_of(array)) for name, array in inputs.items()))
    graph = builder.build({"y": y})
    with pytest.raises(RunError, match="a block's column|starts must rise"):
        mg.run(graph, inputs)


@needs_c
@pytest.mark.parametrize("starts", [[0, 2, 1], [0, 2, -(2**31)], [0, 2**31 - 1, -(2**31)]], ids=str)
def test_every_back_end_names_the_node_that_an_index_makes_fail(starts):
    """The launch is named after what follows the product."""
    graph = mg.parse("""graph g(x: f32[1,16], v: f32[2,16,16], i: i32[2], s: i32[3]) -> (y) {
      m = block_matmul(x, v, i, s)
      y = tanh(m)
      return y
    }""")
    inputs = {"x": normal(1, 16), "v": normal(2, 16, 16), "i": np.zeros(2, np.int32), "s": np.array(starts, np.int32)}
    for backend, rule in (("reference", "starts must rise"), ("numpy", "starts must rise"), ("c", "block_matmul: an index")):
        with pytest.raises(RunError) as caught:
            mg.compile(graph, backend=backend)(inputs)
        said = str(caught.value)
        assert said.startswith(rule) and said.endswith("m = block_matmul(x, v, i, s) : f32[1,32]") and "tanh" not in said


NOTHING = {  # types that hold no elements
    "block_matmul(x, v, i, s)": [
        "x: f32[0,32], v: f32[2,16,16], i: i32[2], s: i32[2]",
        "x: f32[3,0], v: f32[0,16,16], i: i32[0], s: i32[2]",
        "x: f32[3,32], v: f32[0,16,16], i: i32[0], s: i32[1]",
    ],
    "sparse_matmul(x, v, i)": [
        "x: f32[0,32], v: f32[1,16,16], i: u32[1,1,16]",
        "x: f32[3,0], v: f32[1,0,16], i: u32[1,0,16]",
        "x: f32[3,32], v: f32[0,16,16], i: u32[0,1,16]",
    ],
}


@needs_c
@pytest.mark.parametrize("body, given", [(body, one) for body, many in NOTHING.items() for one in many])
@pytest.mark.parametrize("backend", ["reference", "numpy", "c"])
def test_products_of_nothing(backend, body, given):
    graph = mg.parse(f"graph g({given}) -> (y) {{\n  y = {body}\n  return y\n}}")
    inputs = {node.name: np.zeros(node.type.shape, DTYPES[node.type.dtype]) for node in graph.inputs}
    y = mg.compile(graph, backend=backend)(inputs)["y"]
    assert y.shape == graph["y"].type.shape and not y.any()


@needs_c
@pytest.mark.parametrize("place, value", [("i", 99), ("i", -1), ("s", 99), ("s", -1)])
def test_generated_code_checks_before_it_reads(place, value):
    graph, inputs = product("block_matmul", normal(1, 64), pruned("block_matmul", 32, 64))
    inputs[place] = inputs[place].copy()
    inputs[place][1] = value
    with pytest.raises(RunError, match="out of range"):
        mg.compile(graph, backend="c")(inputs)
    with pytest.raises(IndexError):
        on_the_shim(graph, inputs)


@pytest.mark.parametrize(
    "text, rule",
    [
        ("sparse_matmul(x, v, b)", "a 2:4 matrix is values"),
        ("sparse_matmul(x, x, i)", "a 2:4 matrix is values"),
        ("sparse_matmul(b, v, i)", "it takes f32"),
        ("sparse_matmul(short, v, i)", "rows of 64"),
        ("block_matmul(x, v, b, b)", "blocks are values"),
        ("block_matmul(short, v, c, b)", "whole blocks of 32"),
        ("block_matmul(x, v, c, scalar)", "blocks are values"),
    ],
)
def test_a_wrong_type_gets_a_sentence(text, rule):
    given = "x: f32[2,64], short: f32[2,63], v: f32[1,32,16], i: u32[1,2,16], b: i32[2], c: i32[1], scalar: i32[]"
    head = f"graph g({given}) -> (y) {{\n  y = "
    with pytest.raises(GraphError, match=rule):
        mg.parse(head + text + "\n  return y\n}")


# ---- products ------------------------------------------------------------------------------------------------------


@needs_c
@pytest.mark.parametrize("op", KINDS)
@pytest.mark.parametrize("shape", [(64,), (1, 64), (3, 96), (64, 32), (65, 32), (2, 3, 64)], ids=str)
def test_products_in_c(op, shape):
    x, w = normal(*shape), pruned(op, 48, shape[-1])
    graph, inputs = product(op, x, w, epilogue=True)
    expected = "library" if len(shape) == 2 and shape[0] > 64 else "epilogue"
    assert make_plan(graph).launches[0].kind == expected
    check(mg.run(graph, inputs)["y"], x, w, inputs["bias"])
    check(mg.compile(graph, backend="c")(inputs)["y"], x, w, inputs["bias"])
    check(mg.compile(graph, backend="numpy")(inputs)["y"], x, w, inputs["bias"])


@needs_c
@pytest.mark.parametrize("op", KINDS)
def test_threads_and_the_plain_loops_agree(op, monkeypatch):
    x, w = normal(2, 512), pruned(op, 1024, 512)  # large enough that a second thread is asked for
    graph, inputs = product(op, x, w)
    first, second = (mg.compile(graph, backend="c", threads=n)(inputs)["y"] for n in (1, 2))
    assert np.array_equal(first, second), "each sum is added up by one thread"
    from minigraph import run_c

    real = run_c.build
    monkeypatch.setattr(run_c, "build", lambda source, *rest: real("#define PLAIN\n" + source, *rest))
    check(mg.compile(graph, backend="c")(inputs)["y"], x, w)


@needs_c
@pytest.mark.parametrize("op", KINDS)
def test_products_in_cuda(op):
    x, w = normal(3, 96), pruned(op, 144, 96)
    graph, inputs = product(op, x, w, epilogue=True)
    check(on_the_shim(graph, inputs), x, w, inputs["bias"])


@needs_c
@pytest.mark.parametrize("op", KINDS)
def test_activations_that_do_not_lie_in_one_row(op):
    x, w = normal(64, 3), pruned(op, 32, 64)
    stored = KINDS[op](w)
    builder, inputs = Builder("g"), dict(zip(("x", "v", "i", "s"), (x, *stored)))
    names = [builder.input(name, type_of(array)) for name, array in inputs.items()]
    graph = builder.build({"y": builder.emit(op, builder.emit("transpose", names[0], perm=(1, 0)), *names[1:])})
    check(mg.compile(graph, backend="c")(inputs)["y"], x.T, w)


@needs_c
@pytest.mark.parametrize("op", KINDS)
def test_what_is_not_stored_is_not_multiplied(op):
    """inf times a zero that is stored is NaN; one that is not stored is skipped, in every back end alike."""
    x, w = normal(1, 32), np.zeros((16, 32), np.float32)
    w[:, :2] = 1
    x[0, 31] = np.inf
    graph, inputs = product(op, x, w)
    for got in (mg.run(graph, inputs)["y"], mg.compile(graph, backend="c")(inputs)["y"]):
        assert got == pytest.approx(x[0, 0] + x[0, 1], rel=1e-5)
    with np.errstate(invalid="ignore"):
        assert np.isnan(x @ w.T).all()


# ---- pruning -------------------------------------------------------------------------------------------------------


def test_the_largest_stay_and_of_equal_ones_the_first():
    assert largest(np.array([[1, 3, 3, 3, 0]]), 2).tolist() == [[False, True, True, False, False]]
    assert largest(np.array([[1, 2]]), 0).sum() == 0 and largest(np.array([[1, 2]]), 2).all()
    assert mask_24(np.array([[1, -4, 2, np.nan, 0, 0, 0, 0]], np.float32)).tolist() == [
        [False, True, False, True, True, True, False, False]
    ]
    w = normal(64, 96)
    for mask, share in ((mask_24(w), 0.5), (mask_blocks(w, 0.25, 8), 0.25), (mask_anywhere(w, 0.1), 0.1)):
        assert mask.mean() == pytest.approx(share, abs=1e-3)
        assert np.abs(w)[mask].mean() > np.abs(w)[~mask].mean()
    assert (mask_24(w).reshape(-1, 4).sum(axis=1) == 2).all()
    assert set(mask_blocks(w, 0.25, 8).reshape(4, 16, 12, 8).sum(axis=(1, 3)).reshape(-1)) == {0, 128}


def one_product(flipped: bool, terms: int = 64) -> Graph:
    builder, w = Builder("g"), normal(terms, 32, seed=1)
    x = builder.input("x", f"f32[3,{terms}]")
    return builder.build({"y": builder.emit("matmul", x, builder.const(w.T if flipped else w), transpose_b=flipped)})


@pytest.mark.parametrize("flipped", [False, True])
@pytest.mark.parametrize(
    "pattern, op, share",
    [("2:4", "sparse_matmul", 17 / 32), ("block", "block_matmul", 0.51), ("unstructured", "matmul", 1)],
)
def test_prune_then_compress(flipped, pattern, op, share):
    graph, x = one_product(flipped), normal(3, 64, seed=2)
    thin = prune(graph, pattern, least=1)
    verify(thin.graph)
    assert [step.rule for step in thin.report] == ["prune"] and prune(thin.graph, pattern, least=1).report == ()
    packed = compress(thin.graph)
    verify(packed.graph)
    last = dce(packed.graph).graph
    assert [node.op for node in last.nodes if node.op.endswith("matmul")] == [op]
    stored = sum(node.type.nbytes for node in last.nodes if node.op == "const")
    assert stored == pytest.approx(share * 64 * 32 * 4, rel=0.02)
    dense, thinned, skipped = (mg.run(one, x=x)["y"] for one in (graph, thin.graph, last))
    assert np.allclose(thinned, skipped, rtol=1e-4, atol=1e-5) and np.abs(dense - thinned).max() > 0.1


def test_what_does_not_fit_stays():
    graph = one_product(True)
    assert compress(graph).graph is graph, "dense weights have no pattern"
    assert prune(graph).graph is graph, "it has fewer elements than ``least``"
    odd = one_product(True, terms=33)
    assert prune(odd, "2:4", least=1).graph is odd and prune(odd, "block", least=1).graph is odd
    empty = mg.trace(lambda x: x @ np.zeros((0, 16), np.float32), x="f32[3,0]")
    assert all(prune(empty, pattern, least=0).graph is empty for pattern in PATTERNS) and compress(empty).graph is empty


@pytest.mark.parametrize(
    "function, arguments, said",
    [
        (prune, dict(pattern="3:4"), "no pattern '3:4'"),
        (prune, dict(pattern=None), "no pattern 'None'"),
        (prune, dict(keep=2), "keep is a share from 0 to 1, not 2"),
        (prune, dict(keep="a"), "keep is a share from 0 to 1, not 'a'"),
        (prune, dict(least="a"), "least is a number of elements, not 'a'"),
        (compress, dict(columns=0), "columns is a whole number from 1 up, not 0"),
        (compress, dict(columns=-16), "columns is a whole number from 1 up, not -16"),
        (compress, dict(columns="a"), "columns is a whole number from 1 up, not 'a'"),
    ],
)
def test_a_wrong_argument_gets_a_sentence(function, arguments, said):
    with pytest.raises(GraphError, match=said):
        function(one_product(True), **arguments)


def test_a_weight_of_two_products_is_stored_once():
    builder = Builder("g")
    x, w = builder.input("x", "f32[1,64]"), builder.const(pruned("sparse_matmul", 32, 64))
    graph = builder.build(
        {
            name: builder.emit("matmul", one, w, transpose_b=True)
            for name, one in (("y", x), ("z", builder.emit("neg", x)))
        }
    )
    last = dce(compress(graph).graph).graph
    assert [node.op for node in last.nodes].count("const") == 2 and [node.op for node in last.nodes].count(
        "sparse_matmul"
    ) == 2


def corner() -> np.ndarray:
    """f32[32, 32] of blocks of 16 by 16 that are 0 but for one."""
    w = np.zeros((32, 32), np.float32)
    w[:16, 16:] = np.arange(256).reshape(16, 16)
    return w


def every_fourth(rows: int, terms: int) -> np.ndarray:
    """2:4 along either axis, and not symmetric."""
    w = np.zeros((rows, terms), np.float32)
    w[::2, ::2] = np.arange(rows * terms // 4).reshape(rows // 2, -1)
    return w


@pytest.mark.parametrize("w", [corner(), every_fourth(32, 32), every_fourth(16, 32)], ids=["blocks", "2:4", "oblong"])
def test_a_weight_that_is_summed_both_ways_is_stored_both_ways(w):
    x = normal(2, 1, 3, w.shape[1])
    graph = mg.trace(lambda x: (x @ w.T) @ w, x=f"f32[2,1,3,{w.shape[1]}]")
    stage = run_pass("compress", compress, graph)  # its contract: outputs keep their types
    assert sum(node.op in KINDS for node in stage.after.nodes) == (2 if len(w) == 32 else 1), "16 terms are no word of 2:4"
    want, got = (mg.run(one, x=x)["out"] for one in (graph, stage.after))
    assert want.shape == got.shape and np.abs(want - got).max() <= 1e-5 * np.abs(want).max()


def stored_products():
    x, w = normal(4, 64), normal(48, 64, seed=1)
    yield from (product(op, x, pruned(op, 48, 64)) for op in KINDS)
    yield from (packed_product(x, w, format) for format in FORMATS)


@pytest.mark.parametrize("graph, inputs", [*stored_products()], ids=[*KINDS, *FORMATS])
def test_the_rounding_bound_is_tight_enough_to_catch_a_mistake(graph, inputs):
    node, (x, *stored) = graph.nodes[-1], inputs.values()

    def call(x):
        return OPS[node.op].numpy(x, *stored, **dict(node.value or ()))

    right = call(x)
    for number in (1.0, 1e-35, 1e35):  # what underflows and what overflows is part of it
        scaled = [x * np.float32(number), *stored]
        assert within_bound(node, scaled, call(scaled[0]))
    assert within_bound(node, [x, *stored], right + np.spacing(np.abs(x).max()))
    assert not within_bound(node, [x, *stored], call(np.where(np.arange(64) == 7, 0, x).astype(np.float32)))
    assert not within_bound(node, [x, *stored], right * np.float32(1.01))
    assert not check_cases([Case(graph, inputs)], "numpy")[0]


@needs_c
def test_the_back_ends_are_checked_on_stored_products():
    cases = [Case(graph, inputs) for graph, inputs in stored_products()]
    assert not any(check_cases(cases, "c"))


def test_random_graphs_have_stored_products():
    samples = (fusible_sample(5, index) for index in range(300))
    found = {node.op for graph, *_ in samples for node in graph.nodes}
    assert found >= {*KINDS, "packed_matmul"}


def test_a_compressed_product_of_no_rows():
    graph = mg.trace(lambda x: x @ corner(), x="f32[0,32]")
    assert mg.run(compress(graph).graph, x=np.zeros((0, 32), np.float32))["out"].shape == (0, 32)


@needs_c
@pytest.mark.parametrize("pattern", ["2:4", "block"])
def test_a_language_model_decodes_from_sparse_weights(pattern):
    weights = smollm2.tiny()
    graph = prune(compiled.decode_graph(weights), pattern, least=1).graph
    last = dce(compress(graph).graph).graph
    assert sum(node.op in KINDS for node in last.nodes) > 10
    caches = [smollm2.zero_cache(weights) for _ in range(2)]
    decodes = compiled.as_function(graph), compiled.as_function(last, "c")
    for position, token in enumerate((5, 90, 7)):
        logits = []
        for number, decode in enumerate(decodes):
            one, *caches[number] = decode(np.int32(token), np.int32(position), tuple(caches[number]))
            logits.append(one.copy())
        assert np.abs(logits[0] - logits[1]).max() < 1e-4


# ---- the picture ---------------------------------------------------------------------------------------------------


def test_the_picture_says_what_it_shows():
    picture = draw_24(np.array([[1, -2, 3, 0.5, 9, 8, 7, 6]]))
    assert (
        "row 0 keeps -2 and 3 of 1, -2, 3, 0.5; keeps 9 and 8 of 9, 8, 7, 6" in picture.alt
        and "136 bits in place of 256" in picture.alt
    )
    assert picture.dot.count("dashed") == 4 and "01" in picture.dot
    for shape in ((4, 6), (13, 4), (4, 28), (4,)):
        with pytest.raises(MinigraphError, match="in groups of 4"):
            draw_24(np.zeros(shape))


@needs_c
def test_the_table_of_when_it_pays_has_a_row_for_each_way():
    from minigraph.bench_sparse import WAYS, bench_sparse

    rows = bench_sparse([(1, 32, 64)], seconds=0.01)
    assert [one["zeros"] for one in rows] == list(WAYS)
    assert {one["zeros"]: one["op"] for one in rows}["2:4"] == "sparse_matmul"
    assert [one["op"] for one in rows[:3]] == ["matmul"] * 3, "zeros anywhere are no pattern"
