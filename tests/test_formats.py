"""Packed numbers against the gguf package, and products with them in every back end against the definition."""

from __future__ import annotations

import numpy as np
import pytest

import minigraph as mg
from minigraph import formats, nvrtc, shim
from minigraph.codegen.program import cuda_program
from minigraph.compiler import find_compiler
from minigraph.errors import GraphError
from minigraph.formats import FORMATS, interleave, pack, unpack
from minigraph.ir import Builder
from minigraph.plan import make_plan
from minigraph.types import DTYPES, type_of

PLAIN = [name for name, facts in FORMATS.items() if facts.rows == 1]
TILED = [name for name, facts in FORMATS.items() if facts.rows > 1]
needs_c = pytest.mark.skipif(find_compiler() is None, reason="no C compiler")


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def random_blocks(format: str, count: int) -> np.ndarray:
    """Bytes of blocks whose float16 scales are finite, and otherwise anything."""
    facts, rng = FORMATS[format], np.random.default_rng(2)
    blocks = rng.integers(0, 256, (count, facts.nbytes), dtype=np.uint8)
    halves = 2 if format.startswith("q4") else 1
    scales = rng.standard_normal((count, halves)).astype("<f2")
    scales[0] = 6e-8  # the smallest subnormal
    scales[1] = 0
    scales[2] = -65504
    blocks[:, : 2 * halves] = scales.view(np.uint8)
    return blocks.reshape(-1, 4 * facts.nbytes)


# ---- values --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", PLAIN)
def test_unpack_is_ggufs_to_the_bit(format):
    gguf = pytest.importorskip("gguf")
    data = random_blocks(format, 64)
    theirs = gguf.quants.dequantize(data, getattr(gguf.GGMLQuantizationType, format.upper()))
    assert np.array_equal(unpack(data, format), theirs)


@pytest.mark.parametrize("format", PLAIN)
def test_pack_is_as_good_as_ggufs(format):
    """Scales may be rounded another way; no number may be further off than half a step and the scale's own rounding."""
    gguf = pytest.importorskip("gguf")
    x = normal(16, 128)
    kind = getattr(gguf.GGMLQuantizationType, format.upper())
    theirs = gguf.quants.dequantize(gguf.quants.quantize(x, kind), kind)
    ours = unpack(pack(x, format), format)
    assert np.sqrt(np.mean((ours - x) ** 2)) <= 1.02 * np.sqrt(np.mean((theirs - x) ** 2))
    spread = {"q8_0": 2 * np.abs(x.reshape(-1, 32)).max(axis=1) / 254, "q4_1": np.ptp(x.reshape(-1, 32), axis=1) / 15}[
        format
    ]
    assert (np.abs(ours - x).reshape(-1, 32).max(axis=1) <= 0.5 * spread * 1.05 + 2e-3).all()


@pytest.mark.parametrize("format", FORMATS)
def test_what_was_packed_packs_to_the_same_numbers(format):
    once = unpack(pack(normal(32, 96), format), format)
    twice = unpack(pack(once, format), format)
    assert np.allclose(once, twice, rtol=0, atol=2e-3) and once.dtype == np.float32


@pytest.mark.parametrize("format", FORMATS)
def test_zero_blocks(format):
    assert not unpack(pack(np.zeros((16, 64), np.float32), format), format).any()
    assert unpack(pack(np.full((16, 64), 2.5, np.float32), format), format) == pytest.approx(2.5, rel=1e-3)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e30, 1e-30])
def test_a_hostile_number_spoils_only_its_own_block(format, value):
    x = normal(16, 96)
    x[3, 40] = value
    with np.errstate(all="ignore"):
        found = unpack(pack(x, format), format)
    rest = np.ones(x.shape, bool)
    rest[3, 32:64] = False
    x[3, 40] = 0
    assert np.array_equal(found[rest], unpack(pack(x, format), format)[rest])


@pytest.mark.parametrize("format", TILED)
def test_interleaving_only_moves_bytes(format):
    plain = format.removesuffix("x16")
    data = pack(normal(48, 96), plain)
    woven = interleave(data, format)
    facts = FORMATS[format]
    assert sorted(woven.reshape(3, -1)[1]) == sorted(data[16:32].reshape(-1))
    assert np.array_equal(facts.unravel(woven, 3).reshape(data.shape), data)
    assert np.array_equal(unpack(woven, format), unpack(data, plain))
    assert np.array_equal(woven, pack(normal(48, 96), format))


def test_axes_in_front_stay():
    x = normal(2, 16, 64)
    for format in FORMATS:
        data = pack(x, format)
        assert data.shape == FORMATS[format].packed_shape(x.shape) and FORMATS[format].shape(data.shape) == x.shape
        assert np.array_equal(unpack(data, format)[1], unpack(pack(x[1], format), format))


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("shape", [(0, 32), (16, 0), (0, 0), (2, 0, 32), (0, 16, 64)], ids=str)
def test_what_is_empty(format, shape):
    data = pack(np.zeros(shape, np.float32), format)
    assert data.shape == FORMATS[format].packed_shape(shape) and unpack(data, format).shape == shape


@needs_c
@pytest.mark.parametrize(
    "text",
    [
        "packed_matmul(x, w) {format=q4_1x16} | x: f32[3,0], w: u8[1,0]",
        "packed_matmul(x, w) {format=q8_0x16} | x: f32[0,32], w: u8[1,544]",
        "packed_matmul(x, w) {format=q4_1x16} | x: f32[3,32], w: u8[0,320]",
        "unpack(w) {format=q8_0x16} | w: u8[1,0]",
        "unpack(w) {format=q4_1x16} | w: u8[1,0]",
        "pack(x) {format=q8_0x16} | x: f32[0,32]",
        "pack(x) {format=q4_1x16} | x: f32[0,32]",
    ],
)
@pytest.mark.parametrize("backend", ["reference", "numpy", "c"])
def test_operations_on_nothing(backend, text):
    body, given = text.split(" | ")
    graph = mg.parse(f"graph g({given}) -> (y) {{\n  y = {body}\n  return y\n}}")
    inputs = {node.name: np.zeros(node.type.shape, DTYPES[node.type.dtype]) for node in graph.inputs}
    y = mg.compile(graph, backend=backend)(inputs)["y"]
    assert y.shape == graph["y"].type.shape and not y.any()


@pytest.mark.parametrize("format", FORMATS)
def test_sizes_are_those_of_the_parts(format):
    x = normal(16, 64) - 1
    plain = format.removesuffix("x16")
    parts = formats.sizes(pack(x, format), format)
    assert np.array_equal(parts, formats.sizes(pack(x, plain), plain)) and (parts >= np.abs(unpack(pack(x, format), format))).all()
    low, high = x.reshape(-1, 32).min(axis=1), x.reshape(-1, 32).max(axis=1)
    most = np.maximum(-low, high) if plain == "q8_0" else high - low + np.abs(low)
    assert np.allclose(parts.reshape(-1, 32).max(axis=1), most, rtol=2e-2)


# ---- the type rules ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, rule",
    [
        ("pack(x) {format=q4_2}", "unknown format 'q4_2'"),
        ("pack(i) {format=q4_1}", "pack takes f32"),
        ("pack(odd) {format=q4_1}", "not whole blocks of 32"),
        ("pack(few) {format=q4_1x16}", "in tiles of 16 rows"),
        ("unpack(x) {format=q4_1}", "packed numbers are bytes"),
        ("unpack(b) {format=q8_0}", "not whole blocks of 34 bytes"),
        ("packed_matmul(i, b) {format=q4_1}", "packed_matmul takes f32"),
        ("packed_matmul(odd, b) {format=q4_1}", "the rows are not as long"),
    ],
)
def test_a_wrong_type_gets_a_sentence(text, rule):
    head = "graph g(x: f32[16,64], i: i32[16,64], odd: f32[16,33], few: f32[8,64], b: u8[16,40]) -> (y) {\n  y = "
    with pytest.raises(GraphError, match=rule):
        mg.parse(head + text + "\n  return y\n}")


# ---- products ------------------------------------------------------------------------------------------------------


def packed_product(x: np.ndarray, w: np.ndarray, format: str, epilogue: bool = False):
    """A graph of packed_matmul(x, w), where it is asked for with an epilogue, and its inputs."""
    data, builder = pack(w, format), Builder("g")
    a, b = builder.input("x", type_of(x)), builder.input("w", type_of(data))
    inputs = {"x": x, "w": data}
    y = builder.emit("packed_matmul", a, b, format=format)
    if epilogue:
        bias = normal(len(w), seed=5)
        inputs["bias"] = bias
        y = builder.emit(
            "maximum", builder.emit("add", y, builder.input("bias", type_of(bias))), builder.const(np.float32(0))
        )
    return builder.build({"y": y}), inputs


def check(got: np.ndarray, x: np.ndarray, w: np.ndarray, format: str, bias=None) -> None:
    rows = unpack(pack(w, format), format).astype(np.float64)
    wide = x.astype(np.float64)
    exact = wide @ rows.T + (0 if bias is None else bias)
    exact = exact if bias is None else np.maximum(exact, 0)
    bound = (np.abs(wide) @ np.abs(rows.T)) * 1e-5 + 1e-6  # a few dozen roundings of terms of mixed sizes
    assert got.dtype == np.float32 and got.shape == exact.shape and (np.abs(got - exact) <= bound).all()


@needs_c
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("shape", [(64,), (1, 64), (2, 96), (5, 32), (64, 64), (65, 32), (2, 3, 64)], ids=str)
def test_products_in_c(format, shape):
    x, w = normal(*shape), normal(32, shape[-1], seed=1)
    graph, inputs = packed_product(x, w, format)
    check(mg.run(graph, inputs)["y"], x, w, format)
    check(mg.compile(graph, backend="c")(inputs)["y"], x, w, format)


@needs_c
@pytest.mark.parametrize("format", TILED)
def test_an_epilogue_joins_the_product(format):
    x, w = normal(3, 96), normal(48, 96, seed=1)
    graph, inputs = packed_product(x, w, format, epilogue=True)
    plan = make_plan(graph)
    assert [launch.kind for launch in plan.launches] == ["epilogue"]
    check(mg.compile(graph, backend="c")(inputs)["y"], x, w, format, inputs["bias"])
    check(mg.compile(graph, backend="c", threads=2)(inputs)["y"], x, w, format, inputs["bias"])


def test_what_is_not_interleaved_or_has_many_rows_is_a_librarys_work():
    kinds = {}
    for format, rows in (("q4_1", 1), ("q4_1x16", 64), ("q4_1x16", 65)):
        graph, _ = packed_product(normal(rows, 64), normal(16, 64), format)
        kinds[format, rows] = make_plan(graph).launches[0].kind
    assert kinds == {("q4_1", 1): "library", ("q4_1x16", 64): "epilogue", ("q4_1x16", 65): "library"}


@needs_c
@pytest.mark.parametrize("format", TILED)
def test_operands_that_do_not_lie_in_one_piece(format):
    """x read through a transpose, and bytes read through a slice: every second one of two matrices."""
    x, w = normal(64, 3), normal(16, 64, seed=1)
    data = pack(w, format)
    both = np.concatenate([data, data[:, ::-1]], axis=1)
    builder = Builder("g")
    a, b = builder.input("x", type_of(x)), builder.input("w", type_of(both))
    a = builder.emit("transpose", a, perm=(1, 0))
    b = builder.emit("slice", b, start=(0, 0), stop=data.shape)
    graph = builder.build({"y": builder.emit("packed_matmul", a, b, format=format)})
    check(mg.run(graph, x=x, w=both)["y"], x.T, w, format)
    check(mg.compile(graph, backend="c")(x=x, w=both)["y"], x.T, w, format)


@needs_c
@pytest.mark.parametrize("format", TILED)
def test_a_slice_of_columns_of_two_tiles(format):
    """The rows of bytes have a gap between them, which the kernel does not know of."""
    x, w = normal(1, 64), normal(32, 64, seed=1)
    data = pack(w, format)
    wide = np.concatenate([data, np.full_like(data, 77)], axis=1)
    builder = Builder("g")
    a, b = builder.input("x", type_of(x)), builder.input("w", type_of(wide))
    b = builder.emit("slice", b, start=(0, 0), stop=data.shape)
    graph = builder.build({"y": builder.emit("packed_matmul", a, b, format=format)})
    check(mg.compile(graph, backend="c")(x=x, w=wide)["y"], x, w, format)


def on_the_shim(graph, inputs: dict[str, np.ndarray]) -> np.ndarray:
    """The graph's one kernel in CUDA, run by the shim; NVRTC compiles it, where that is installed."""
    program, output = cuda_program(make_plan(graph)), graph.outputs[0][1]
    (call,) = program.steps[0].calls
    result = np.zeros(graph[output].type.shape, np.float32)
    arrays = {**inputs, **{n.name: n.value.array.copy() for n in graph.nodes if n.op == "const"}, output: result}
    status = [np.zeros(1, np.int32)] * call.kernel.fails
    launch = shim.Launch(call.kernel.name, (call.kernel.grid, 1, 1), (*call.kernel.block, 1))
    shim.build(program.source).run([(launch, [arrays[param.value] for param in call.kernel.params] + status)])
    if nvrtc.find():
        nvrtc.compile(program.source)
    if status and status[0][0]:
        raise IndexError("an index is out of range")
    return result


@needs_c
@pytest.mark.parametrize("format", TILED)
@pytest.mark.parametrize("rows", [1, 3])
def test_products_in_cuda(format, rows):
    x, w = normal(rows, 96), normal(144, 96, seed=1)  # more than one block of threads, the last one not full
    graph, inputs = packed_product(x, w, format, epilogue=True)
    check(on_the_shim(graph, inputs), x, w, format, inputs["bias"])


def test_rounding_is_half_to_even_and_nan_is_0():
    assert formats.rounded(np.array([0.5, 1.5, 2.5, np.nan, np.inf, -np.inf]), -127, 127).tolist() == [
        0,
        2,
        2,
        0,
        127,
        -127,
    ]
