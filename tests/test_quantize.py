"""Quantized weights, scales that move, pairs that go only where that is exact, calibration, and measured error."""

from __future__ import annotations

import sys
from collections import Counter

import numpy as np
import pytest

import minigraph as mg
from minigraph import accuracy
from minigraph.accuracy import compare_logits, error_table, perplexity, stepwise
from minigraph.calibrate import calibrate
from minigraph.compiler import find_compiler
from minigraph.errors import GraphError, MinigraphError, RunError
from minigraph.formats import FORMATS
from minigraph.ir import Builder, Graph, defs
from minigraph.models import compiled, smollm2
from minigraph.ops import row
from minigraph.passes import (
    activations,
    dce,
    explain_dequantize,
    fuse_dequantize,
    quantize_activations,
    quantize_weights,
    remove_quantize_pairs,
)
from minigraph.passes.int8 import exact_scale
from minigraph.pipeline import optimize
from minigraph.verify import verify

needs_c = pytest.mark.skipif(find_compiler() is None, reason="no C compiler")
ALL = ["i8", *FORMATS]


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def ops(graph: Graph) -> Counter:
    return Counter(node.op for node in dce(graph).graph.nodes)


def two_products(flipped: bool) -> Graph:
    """x @ w + b, in both ways in which w can lie."""
    builder = Builder("g")
    x, w = builder.input("x", "f32[3,64]"), normal(64, 32, seed=1)
    y = builder.emit("matmul", x, builder.const(w.T if flipped else w), transpose_b=flipped)
    return builder.build({"y": builder.emit("add", y, builder.const(normal(32)))})


# ---- weights -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", ALL)
@pytest.mark.parametrize("flipped", [False, True])
def test_weights_become_few_bits_and_the_product_reads_them(format, flipped):
    graph, x = two_products(flipped), normal(3, 64, seed=2)
    apart = quantize_weights(graph, format, least=1)
    fused = fuse_dequantize(apart.graph)
    for one in (apart.graph, fused.graph):
        verify(one)
    stored = sum(n.type.nbytes for n in dce(apart.graph).graph.nodes if n.op == "const") - 32 * 4
    assert stored * {"i8": 3.5, "q8": 3.7, "q4": 6.3}[format[:2]] < 64 * 32 * 4
    assert ops(apart.graph)["matmul"] == 1, "the product is left alone"
    assert ops(fused.graph)["dequantize"] == ops(fused.graph)["unpack"] == 0
    exact, rough, last = (mg.run(one, x=x)["y"] for one in (graph, apart.graph, fused.graph))
    assert 1e-4 < np.abs(rough - exact).max() / exact.std() < (0.5 if "q4" in format else 0.05)
    assert np.allclose(rough, last, rtol=1e-4, atol=1e-5)


def test_what_does_not_fit_stays():
    graph = two_products(False)
    assert quantize_weights(graph, "q4_1", least=10**6).graph is graph
    builder = Builder("g")
    x = builder.input("x", "f32[1,33]")
    odd = builder.build({"y": builder.emit("matmul", x, builder.const(normal(33, 32)))})
    assert quantize_weights(odd, "q4_1", least=1).graph is odd
    builder = Builder("g")
    x = builder.input("x", "f32[1,32]")
    infinite = builder.build({"y": builder.emit("matmul", x, builder.const(np.full((32, 32), np.inf, np.float32)))})
    assert quantize_weights(infinite, "i8", least=1).graph is infinite
    with pytest.raises(GraphError, match="no format 'q4_2'\n.*q4_1"):
        quantize_weights(graph, "q4_2")


def test_a_column_of_zeros_has_a_scale():
    builder = Builder("g")
    x, w = builder.input("x", "f32[1,32]"), normal(32, 32)
    w[:, 5] = 0
    graph = builder.build({"y": builder.emit("matmul", x, builder.const(w))})
    y = mg.run(quantize_weights(graph, "i8", least=1).graph, x=normal(1, 32))["y"]
    assert y[0, 5] == 0 and np.isfinite(y).all()


def test_a_weight_that_is_summed_both_ways_or_returned_stays():
    builder = Builder("g")
    x, w = builder.input("x", "f32[1,32]"), builder.const(normal(32, 32))
    both = builder.build({"y": builder.emit("matmul", x, w), "z": builder.emit("matmul", x, w, transpose_b=True)})
    assert quantize_weights(both, "i8", least=1).graph is both
    builder = Builder("g")
    x, w = builder.input("x", "f32[1,32]"), builder.const(normal(32, 32))
    returned = builder.build({"y": builder.emit("matmul", x, w), "w": w})
    assert quantize_weights(returned, "i8", least=1).graph is returned


SCALED = """graph g(x: f32[{m},8], v: f32[8], q: i8[8,6], s: f32[{scale}]) -> (y) {{
  w = dequantize(q, s)
  y = {product}
  return y
}}"""


@pytest.mark.parametrize(
    "scale, product, moves",
    [
        ("1,6", "matmul(x, w)", True),
        ("6", "matmul(x, w)", True),
        ("", "matmul(x, w)", True),
        ("1,1", "matmul(x, w)", True),
        ("8,1", "matmul(x, w)", False),
        ("8,6", "matmul(x, w)", False),
        ("1,6", "matmul(v, w)", True),
        ("8,1", "matmul(w, x) {transpose_a=true, transpose_b=true}", False),
        ("1,6", "matmul(w, x) {transpose_a=true, transpose_b=true}", True),
    ],
)
def test_a_scale_moves_only_if_it_is_the_same_all_along_the_sum(scale, product, moves):
    graph = mg.parse(SCALED.format(m=4, scale=scale, product=product))
    result = fuse_dequantize(graph)
    verify(result.graph)
    assert bool(result.report) == moves
    said = explain_dequantize(graph, "y")
    assert ("fused" in said) == moves and (moves or "changes along the summed axis" in said)
    dims = tuple(int(dim) for dim in scale.split(",") if dim)
    inputs = {
        "x": normal(4, 8),
        "v": normal(8),
        "q": np.random.default_rng(0).integers(-128, 128, (8, 6)).astype(np.int8),
        "s": np.abs(normal(*dims)) + np.float32(0.5) if dims else np.float32(0.25),
    }
    assert np.allclose(mg.run(graph, inputs)["y"], mg.run(result.graph, inputs)["y"], rtol=1e-4, atol=1e-3)


def test_the_second_operand_is_asked_where_the_first_stays():
    graph = mg.parse("""graph g(q: i8[4,4], s: f32[1,4]) -> (y) {
      w = dequantize(q, s)
      y = matmul(w, w)
      return y
    }""")
    result = fuse_dequantize(graph)
    verify(result.graph)
    assert [node.inputs for node in result.graph.nodes if node.op == "matmul"] == [("w", "y.wide")]
    q, s = np.arange(-8, 8).astype(np.int8).reshape(4, 4), np.float32([[0.5, 1, 2, 4]])
    assert np.array_equal(mg.run(graph, q=q, s=s)["y"], mg.run(result.graph, q=q, s=s)["y"])
    assert "fused" in explain_dequantize(graph, "y")


def test_a_transposed_scale_is_followed():
    graph = mg.parse("""graph g(x: f32[4,8], q: i8[6,8], s: f32[6,1]) -> (y) {
      w = dequantize(q, s)
      t = transpose(w) {perm=[1,0]}
      y = matmul(x, t)
      return y
    }""")
    fused = fuse_dequantize(graph).graph
    inputs = {"x": normal(4, 8), "q": np.arange(48, dtype=np.int8).reshape(6, 8), "s": normal(6, 1)}
    assert np.allclose(mg.run(graph, inputs)["y"], mg.run(fused, inputs)["y"], rtol=1e-4, atol=1e-3)
    assert ops(fused)["transpose"] == ops(fused)["dequantize"] == 0


@pytest.mark.parametrize(
    "body, why",
    [
        ("matmul(x, w)", "its rows run along the result"),
        ("matmul(w, x)", "the result would have to be transposed"),
        ("matmul(x, w) {transpose_a=true, transpose_b=true}", "the other operand is transposed"),
        ("add(x, w)", "reads nothing quantized"),
    ],
)
def test_why_a_packed_weight_stays_unpacked(body, why):
    graph = mg.parse(
        f"graph g(x: f32[32,32], p: u8[32,20]) -> (y) {{\n  w = unpack(p) {{format=q4_1}}\n  y = {body}\n  return y\n}}"
    )
    assert fuse_dequantize(graph).graph is graph and why in explain_dequantize(graph, "y")
    with pytest.raises(GraphError, match="no value is named"):
        explain_dequantize(graph, "nobody")


@pytest.mark.parametrize("format", ALL)
@pytest.mark.parametrize("indices", [np.int32(37), np.array([3, -1, 16], np.int64)], ids=["one", "three"])
def test_rows_of_a_table_are_expanded_one_by_one(format, indices):
    builder = Builder("g")
    i = builder.input(
        "i", mg.parse_type(f"{'i32' if indices.ndim == 0 else 'i64'}[{','.join(map(str, indices.shape))}]")
    )
    table, x = builder.const(normal(64, 32)), builder.input("x", "f32[32]")
    graph = builder.build({"row": builder.emit("take", table, i, axis=0), "y": builder.emit("matmul", table, x)})
    apart = quantize_weights(graph, format, least=1).graph
    fused = dce(fuse_dequantize(apart).graph).graph
    verify(fused)
    inputs = {"i": indices, "x": normal(32)}
    assert np.array_equal(mg.run(apart, inputs)["row"], mg.run(fused, inputs)["row"])
    assert all(node.type.size < 64 * 32 for node in fused.nodes if node.op in ("unpack", "dequantize"))
    with pytest.raises(RunError):
        mg.run(fused, {**inputs, "i": np.full_like(indices, 64)})


# ---- pairs ---------------------------------------------------------------------------------------------------------

HOSTILE = [np.inf, -np.inf, np.nan, 0.0, -0.0, 1e38, 3e36]


def pair(scale: np.ndarray, dtype: str = "i8") -> Graph:
    builder = Builder("g")
    q, s = builder.input("q", f"{dtype}[256]"), builder.const(scale)
    return builder.build({"y": builder.emit("quantize", builder.emit("dequantize", q, s), s, dtype=dtype)})


@pytest.mark.parametrize("scale", HOSTILE)
def test_a_pair_stays_where_the_scale_breaks_it(scale):
    scale, every = np.float32(scale), np.arange(-128, 128).astype(np.int8)
    graph = pair(scale)
    assert remove_quantize_pairs(graph).graph is graph
    with np.errstate(all="ignore"):
        assert not np.array_equal(mg.run(graph, q=every)["y"], every), "this scale really does damage"


@pytest.mark.parametrize("scale", [1e-45, 1e-39])
def test_a_pair_with_a_subnormal_scale_stays(scale):
    """It is exact where subnormal numbers are kept, as in NumPy; a GPU's kernels may take them for 0."""
    graph, every = pair(np.float32(scale)), np.arange(-128, 128).astype(np.int8)
    assert remove_quantize_pairs(graph).graph is graph
    assert np.array_equal(mg.run(graph, q=every)["y"], every)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_pair_goes_where_it_is_exact(dtype):
    """Every int8 number, and scales from end to end of the float's range: where the guard says yes, q comes back."""
    every = np.arange(-128, 128).astype(np.int8)
    kind, rng = np.finfo(dtype), np.random.default_rng(3)
    spread = np.exp2(rng.uniform(np.log2(float(kind.smallest_subnormal)) + 1, np.log2(float(kind.max)) - 0.01, 3000))
    ends = [
        kind.tiny,
        kind.max / 128,
        kind.max / 129,
        kind.tiny * 2,
        kind.max / 100,
        -1,
        kind.smallest_subnormal,
        -kind.tiny,
    ]
    yes = 0
    with np.errstate(all="ignore"):
        for scale in map(dtype, [*spread, *ends]):
            back = row("quantize").numpy(row("dequantize").numpy(every, scale), scale, "i8")
            if exact_scale(np.asarray(scale), "i8"):
                yes += 1
                assert np.array_equal(back, every), scale
    assert 1000 < yes < 3000 or dtype is np.float64
    graph = pair(np.asarray(dtype(0.125)))
    assert remove_quantize_pairs(graph).graph.outputs == (("y", "q"),)


def test_wide_integers_need_a_wide_float():
    assert (
        exact_scale(np.float32(0.1), "i16")
        and not exact_scale(np.float32(0.1), "i32")
        and exact_scale(np.float64(0.1), "i32")
    )
    assert not exact_scale(np.float16(0.1), "i16")


@pytest.mark.parametrize(
    "text",
    [
        "q2 = quantize(d, t)",  # another scale
        "q2 = quantize(d, s) {dtype=i16}",  # another dtype
        "q2 = quantize(d, v)",  # a scale that nobody knows yet
    ],
)
def test_a_pair_of_unlike_halves_stays(text):
    graph = mg.parse(f"""graph g(q: i8[4], v: f32[]) -> (q2) {{
      s = const(0.5) : f32[]
      t = const(0.25) : f32[]
      d = dequantize(q, s)
      {text}
      return q2
    }}""")
    assert remove_quantize_pairs(graph).graph is graph


# ---- integers ------------------------------------------------------------------------------------------------------


def test_int8_products_are_exact_sums():
    graph = quantize_weights(two_products(False), "i8", least=1).graph
    (name,) = activations(graph)
    whole = quantize_activations(graph, {name: np.float32(0.02)}).graph
    verify(whole)
    x = np.clip(normal(3, 64, seed=7), -2.5, 2.5)
    nodes = defs(whole)
    weight = next(n for n in whole.nodes if n.op == "const" and n.type.dtype == "i8").value.array.astype(np.int64)
    scale = next(n for n in whole.nodes if n.op == "const" and n.type.shape == (1, 32)).value.array
    q = np.rint(x / np.float32(0.02)).astype(np.int64)
    bias = nodes[dce(whole).graph.nodes[-1].inputs[1]].value.array
    expected = (q @ weight).astype(np.float32) * (scale * np.float32(0.02)) + bias
    assert np.array_equal(mg.run(whole, x=x)["y"], expected)
    assert quantize_activations(graph, {}).graph is graph
    rough, exact = mg.run(whole, x=x)["y"], mg.run(two_products(False), x=x)["y"]
    assert np.sqrt(np.mean((rough - exact) ** 2)) < 0.02 * exact.std()


@pytest.mark.parametrize(
    "scales, said",
    [
        ({"zz": 1.0}, "a scale for 'zz', but no value is named so"),
        ({"x": 0.0}, "the scale of 'x' is a float32 above 0, not 0.0\n.*x: f32\\[3,64\\]"),
        ({"x": np.float32(np.nan)}, "above 0"),
        ({"x": np.inf}, "above 0"),
        ({"x": -1.0}, "above 0"),
        ({"x": 1e-60}, "above 0"),
        ({"x": 10**400}, "above 0"),
        ({"x": "a"}, "above 0"),
        ({"x": [1.0, 2.0]}, "above 0"),
        (None, "scales are a dict"),
    ],
)
def test_a_wrong_scale_gets_a_sentence(scales, said):
    graph = quantize_weights(two_products(False), "i8", least=1).graph
    with pytest.raises(GraphError, match=said):
        quantize_activations(graph, scales)


@pytest.mark.parametrize(
    "arguments, said",
    [
        (dict(format=None), "no format 'None'"),
        (dict(format=["i8"]), "no format"),
        (dict(format="i8", least="a"), "least is a number of elements, not 'a'"),
        (dict(least=None), "least is a number of elements, not None"),
    ],
)
def test_a_wrong_argument_gets_a_sentence(arguments, said):
    with pytest.raises(GraphError, match=said):
        quantize_weights(two_products(False), **arguments)


@pytest.mark.parametrize("format", ALL)
@pytest.mark.parametrize("shape", [(0, 16), (16, 0)], ids=str)
def test_a_weight_of_nothing_stays(format, shape):
    graph = mg.trace(lambda x: x @ np.zeros(shape, np.float32), x=f"f32[1,{shape[0]}]")
    assert quantize_weights(graph, format, least=0).graph is graph


def test_a_sum_that_int32_does_not_hold_stays():
    builder = Builder("g")
    x, q = builder.input("x", "f32[1,131072]"), builder.input("q", "i8[131072,1]")
    w = builder.emit("dequantize", q, builder.const(np.float32(1)))
    graph = builder.build({"y": builder.emit("matmul", x, w)})
    assert activations(graph) == () and quantize_activations(graph, {"x": np.float32(1)}).graph is graph


def test_calibration_sees_the_largest_and_percentiles_ignore_outliers():
    graph = quantize_weights(two_products(False), "i8", least=1).graph
    samples = [{"x": normal(3, 64, seed=seed)} for seed in range(20)]
    samples[4]["x"][1, 7] = -100
    every = np.concatenate([np.abs(one["x"]).reshape(-1) for one in samples])
    assert calibrate(graph, samples) == {"x": np.float32(100 / 127)}
    assert calibrate(graph, samples, "percentile", 99)["x"] == pytest.approx(np.percentile(every, 99) / 127)
    for nothing in (0, 1e-44):
        assert calibrate(graph, [{"x": np.full((3, 64), nothing, np.float32)}]) == {"x": 1}

    def error(scales):
        calm = samples[0]
        gap = mg.run(quantize_activations(graph, scales).graph, calm)["y"] - mg.run(graph, calm)["y"]
        return np.sqrt(np.mean(gap**2))

    assert error(calibrate(graph, samples, "percentile", 99.9)) < error(calibrate(graph, samples)) / 5
    for arguments, said in (
        (dict(samples=[]), "no samples"),
        (dict(samples=samples, method="entropy"), "no method 'entropy'"),
        (dict(samples=samples, method=None), "no method 'None'"),
        (dict(samples=samples, method="percentile", percentile=0), "a percentile is"),
        (dict(samples=samples, method="percentile", percentile="a"), "a percentile is"),
        (dict(samples=[{"x": np.full((3, 64), np.nan, np.float32)}]), "not finite"),
    ):
        with pytest.raises(RunError, match=said):
            calibrate(graph, **arguments)


# ---- the model -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tiny():
    weights = smollm2.tiny()
    return weights, compiled.decode_graph(weights)


def model(weights, graph: Graph, backend: str = "reference"):
    return stepwise(compiled.as_function(graph, backend), lambda: smollm2.zero_cache(weights))


@needs_c
@pytest.mark.parametrize("format, worst", [("i8", 0.06), ("q8_0x16", 0.06), ("q4_1x16", 0.6)])
def test_a_language_model_decodes_from_quantized_weights(tiny, format, worst):
    weights, graph = tiny
    apart = quantize_weights(graph, format, least=1).graph
    fused = optimize(fuse_dequantize(apart).graph).graph
    prompts = [np.array([5, 3, 90, 7, 7, 1]), np.array([2, 2])]

    def decode(token, position, cache):
        return smollm2.decode(weights, token, position, cache)

    plain = stepwise(decode, lambda: smollm2.zero_cache(weights))
    loss = compare_logits(plain, model(weights, apart), prompts)
    assert (
        loss["tokens"] == 8
        and 1e-3 < loss["max error"] < worst * 4
        and loss["rms error"] < worst
        and loss["top-1"] > 0.4
    )
    same = compare_logits(model(weights, apart), model(weights, fused, "c"), prompts)
    assert same["max error"] < 1e-4 and same["top-1"] == 1


def test_calibrated_integers_in_a_language_model(tiny):
    from minigraph.bench_quant import samples

    weights, graph = tiny
    eight = quantize_weights(graph, "i8", least=1).graph
    scales = calibrate(eight, samples(weights, eight, [5, 3, 90, 7]))
    assert len(scales) >= 9
    loss = compare_logits(
        model(weights, graph), model(weights, quantize_activations(eight, scales).graph), [np.array([5, 3, 90, 7, 11])]
    )
    assert loss["rms error"] < 0.1


# ---- measures ------------------------------------------------------------------------------------------------------


def test_perplexity_of_what_is_known():
    tokens = np.array([0, 1, 2, 3])
    assert perplexity(np.zeros((4, 10), np.float32), tokens) == pytest.approx(10)
    sure = np.full((4, 10), -50, np.float32)
    sure[np.arange(3), tokens[1:]] = 50
    assert perplexity(sure, tokens) == pytest.approx(1)
    assert perplexity(sure + 1e4, tokens) == pytest.approx(1)
    with pytest.raises(MinigraphError, match="at least 2 tokens"):
        perplexity(sure[:1], tokens[:1])


def test_comparison_of_what_is_known():
    a = np.eye(4, dtype=np.float32)
    b = a.copy()
    b[0] = [0, 2, 0, 0]
    found = accuracy.compare_arrays(a, b, np.arange(4))
    assert found["max error"] == 2 and found["top-1"] == 0.75 and found["rms error"] == pytest.approx(np.sqrt(5 / 4))
    with pytest.raises(MinigraphError, match="no prompts"):
        compare_logits(lambda t: a, lambda t: b, [])


def test_fewer_bits_more_error():
    found = {one["format"]: one for one in error_table(normal(64, 576))}
    assert (
        found["f32"]["rms error"] == 0
        and found["q4_1"]["bits"] == 5
        and found["q8_0"]["bits"] == 8.5
        and found["f16"]["bits"] == 16
    )
    order = ["f16", "q8_0", "i8 a row", "q4_1"]
    errors = [found[name]["rms error"] for name in order]
    assert errors == sorted(errors) and errors[0] > 0 and errors[-1] < 0.1
    assert {one["format"]: one["note"] for one in error_table(normal(4, 33))}[
        "q4_1"
    ] == "rows of 33 are not whole blocks of 32"


def test_fp8_asks_for_its_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(MinigraphError, match="needs the package ml_dtypes"):
        accuracy.float8()
    note = next(one["note"] for one in error_table(normal(4, 32)) if one["format"] == "fp8 e4m3")
    assert "ml_dtypes" in note


def test_fp8_where_it_is_installed():
    pytest.importorskip("ml_dtypes")
    found = {one["format"]: one["rms error"] for one in error_table(normal(64, 576))}
    assert found["q8_0"] < found["fp8 e4m3"] < found["q4_1"]


@needs_c
def test_the_table_of_products_shows_bytes_and_error():
    from minigraph.bench_quant import bench_products

    rows = {one["product"]: one for one in bench_products(512, 256, seconds=0.01)}
    fused, apart = rows["q4_1x16, fused"], rows["q4_1x16, expanded first"]
    assert fused["moved MB"] * 10 < apart["moved MB"] and fused["rms error"] == apart["rms error"] > 0.01
    assert rows["q8_0x16, fused"]["rms error"] < rows["i8 times i8"]["rms error"] < 0.05
