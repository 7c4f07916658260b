"""Generated C and CUDA: pretty, the same for equal launches, right for hostile names, and right for random graphs."""

from __future__ import annotations

import re
from itertools import product

import numpy as np
import pytest

from minigraph import compiler, nvrtc, shim
from minigraph.codegen import rows
from minigraph.codegen.kernel import Writer
from minigraph.codegen.program import KINDS, c_program, calls, cuda_program, kernel_of, kernels_source
from minigraph.dialect import C, CUDA
from minigraph.errors import GraphError
from minigraph.fusible_graphs import HOSTILE
from minigraph.fusion import fuse
from minigraph.fuzz import evaluate
from minigraph.check_backends import Case, check_cases
from minigraph.fuzz_backends import draw
from minigraph.ir import Builder, Graph, Node
from minigraph.ops import OPS
from minigraph.plan import Plan, make_plan
from minigraph.text import parse
from minigraph.tolerance import stored_right
from minigraph.tracing import trace
from minigraph.types import Type
from minigraph.verify import verify

needs_compiler = pytest.mark.skipif(compiler.find_compiler() is None, reason="there is no C compiler")
needs_shim = pytest.mark.skipif(bool(shim.why_not()), reason=shim.why_not())
needs_nvrtc = pytest.mark.skipif(bool(nvrtc.why_not()), reason=nvrtc.why_not())
BACKENDS = [pytest.param("c", marks=needs_compiler), pytest.param("cuda", marks=needs_shim)]


def plan(text: str, rows: int = 4) -> Plan:
    signature, *lines = (line.strip() for line in text.split(";"))
    names = lines.pop().removeprefix("return ").split()
    body = "".join(f"  {line}\n" for line in lines)
    return make_plan(
        fuse(
            parse(
                f"graph g({signature}) -> ({', '.join(names)}) {{\n{body}"
                f"  return {', '.join(f'{name} = {name}' for name in names)}\n}}"
            ),
            rows,
        )
    )


def wrong(text: str, backend: str, rows: int = 4, **inputs) -> list:
    """What the fuzzer's checks find on this graph."""
    return check_cases([Case(plan(text).graph, inputs, rows=rows)], backend)[0]


def source(made: Plan, dialect=C) -> str:
    """The kernels of a plan, without helpers."""
    return "\n".join(kernel.source for kernel in calls(made, dialect, 1)[1])


# ---- what it looks like -------------------------------------------------------------------------------------------------


def test_a_map_in_c():
    made = plan("x: f32[4,8], w: f32[8]; h = mul(x, w); t = tanh(h); y = add(t, h); return y")
    assert (
        source(made)
        == """\
void map_y(const float *x, const float *w, float *restrict y) {
  for (long i = 0; i < 4; i++) {
    #pragma GCC ivdep
    for (long j = 0; j < 8; j++) {
      const float h = x[i*8 + j] * w[j];
      const float t_1 = tanh_f32(h);
      y[i*8 + j] = t_1 + h;
    }
  }
}
"""
    )


def test_a_map_in_cuda():
    made = plan("x: f32[4,8], w: f32[8]; h = mul(x, w); z = tanh(h); y = add(z, h); return y")
    text = source(made, CUDA)
    assert text.startswith('extern "C" __global__ void map_y(const float *x, const float *w, float *__restrict__ y) {')
    assert "if (t >= 32) return;" in text and "const float h = x[t] * w[j];" in text.replace("x[i*8 + j]", "x[t]")
    kernel = kernel_of(made, made.launches[0], CUDA)
    assert (kernel.grid, kernel.block) == (1, (256, 1))


def test_names_in_the_code_are_the_graphs():
    text = source(
        plan(
            "hidden: f32[4,8], scale: f32[8]; scaled = mul(hidden, scale); gate = neg(scaled); y = mul(gate, scaled); return y"
        )
    )
    for name in ("hidden", "scale", "scaled", "gate"):
        assert re.search(rf"\b{name}\b", text)


def test_layers_that_repeat_are_compiled_once():
    def network(x, w, b):
        for layer in range(12):
            x = np.maximum(x @ w[layer] + b[layer], 0)
        return x

    made = make_plan(trace(network, x="f32[1,16]", w="f32[12,16,16]", b="f32[12,16]"))
    assert len(made.launches) == 12
    for program in (c_program(made), cuda_program(made)):
        assert len(program.kernels) == 1 and sum(len(step.calls) for step in program.steps) == 12
    offsets = [step.calls[0].args[1][1] for step in cuda_program(made).steps]
    assert offsets == [layer * 256 for layer in range(12)]


def test_kernels_that_differ_in_a_number_stay_two():
    made = plan(
        "x: f32[3]; c = const(2.0); d = const(3.0); a = mul(x, c); b = cumsum(a) {axis=0}; y = mul(b, d); return y"
    )
    assert len(c_program(made).kernels) == 2


# ---- names -----------------------------------------------------------------------------------------------------------------


def hostile_graph(names: list[str]):
    """One kernel of each kind whose operands, values and result have these names."""
    builder, pool, used = Builder(), iter(names * 20), []

    def emit(op, *inputs, **attrs):
        name = builder.fresh(next(pool))
        used.append(name)
        return builder.emit(op, *inputs, name=name, **attrs)

    def given(type):
        return builder.input(builder.fresh(next(pool)), type)

    x, y, w = given("f32[2,3,2,2,3]"), given("f32[3,1,2,3]"), given("f32[3,5]")
    a = emit("exp", emit("add", x, y))
    b = emit("tanh", emit("mul", a, emit("maximum", a, y)))
    product = emit("matmul", given("f32[2,2,2,3]"), given("f32[3,5]"))
    product = emit("maximum", emit("add", product, given("f32[5]")), builder.const(0.0))
    top = emit("max", b, axis=(1, 3), keepdims=True)
    e = emit("exp", emit("sub", b, top))
    soft = emit("div", e, emit("sum", e, axis=(1, 3), keepdims=True))
    joined = emit("concat", w, given("f32[2,5]"), axis=0)
    padded = emit("pad", joined, given("f32[]"), low=(0, 1), high=(1, 0))
    taken = emit("take", padded, given("i32[4]"), axis=0)
    updated = emit("update_slice", taken, given("f32[1,6]"), given("i64[]"), axis=0)
    q = emit("matmul", given("f32[2,3]"), given("f32[3,6]"))
    eq = emit("exp", emit("sub", q, emit("max", q, axis=(1,), keepdims=True)))
    mixed = emit("matmul", emit("div", eq, emit("sum", eq, axis=(1,), keepdims=True)), given("f32[6,4]"))
    return builder.build([product, soft, updated, mixed, emit("add", a, a)])


WORDS = sorted({*HOSTILE, *C.helpers, *CUDA.helpers, *OPS} - {"true", "false", "inf", "nan", "return", "graph"})


@pytest.mark.parametrize("backend", BACKENDS)
def test_hostile_names(backend):
    """Words of the languages, loops, helpers, macros, operations: every value may be called so."""
    rng = np.random.default_rng(0)
    cases = []
    for start in range(0, len(WORDS), 25):
        graph = hostile_graph(WORDS[start : start + 25])
        inputs = {
            node.name: rng.standard_normal(node.type.shape).astype(np.float32)
            if node.type.dtype == "f32"
            else np.ones(node.type.shape, {"i32": np.int32, "i64": np.int64}[node.type.dtype])
            for node in graph.inputs
        }
        cases.append(Case(graph, inputs))
    assert {launch.kind for launch in cases[0].plan.launches} == {"map", "reduce", "epilogue", "move", "attention"}
    assert [findings for findings in check_cases(cases, backend) if findings] == []


def test_no_value_has_the_name_of_what_a_skeleton_declares():
    """Every word of generated kernels, apart from the values' own names, is one that no value gets."""
    packed = "graph g(x: f32[2,64], w: u8[1,{}]) -> (y) {{\n m = packed_matmul(x, w) {{format={}}}\n y = tanh(m)\n return y\n}}"
    graphs = [parse(packed.format(32 * nbytes, name)) for name, nbytes in (("q4_1x16", 20), ("q8_0x16", 34))]
    graphs.append(parse("graph g(x: f32[2,64], w: f32[1,32,16], i: u32[1,2,16]) -> (y) {\n y = sparse_matmul(x, w, i)\n return y\n}"))
    graphs.append(parse("graph g(x: f32[2,64], w: f32[3,8,16], i: i32[3], s: i32[2]) -> (y) {\n y = block_matmul(x, w, i, s)\n return y\n}"))
    plans = [make_plan(fuse(graph, rows=100)) for graph in graphs] + [make_plan(fuse(case.graph, case.rows)) for case in (draw(105, i) for i in range(120))]
    plans += [plan(text) for text, _ in EDGES.values()]
    words = set()
    for made, dialect, threads in product(plans, (C, CUDA), (1, 2)):
        for launch in made.launches:
            if launch.kind in KINDS and made.type(launch.name).size:
                kernel = kernel_of(made, launch, dialect, threads, plain=True)
                text = re.sub(r"//.*|#pragma.*|\"C\"", "", kernel.source)
                words |= set(re.findall(r"(?<![\w.])[A-Za-z_]\w*", text)) - {kernel.name}
    writer = Writer(plans[0], plans[0].launches[0], C)
    assert [word for word in sorted(words) if not re.fullmatch(r"v\d+", word) and writer.name(word) == word] == []


@pytest.mark.parametrize("backend", BACKENDS)
def test_dots_and_underscores_do_not_collide(backend):
    text = (
        "a.b: f32[3], a_b: f32[3], a.b.c: f32[3], a_b_c: f32[3]; a_b.c = sub(a.b, a_b); a_b_1 = sub(a.b.c, a_b_c);"
        " a.b_1 = mul(a_b.c, a_b_1); y = sub(a.b_1, a_b); return y"
    )
    assert wrong(text, backend, **{name: np.arange(3, dtype=np.float32) + number for number, name in
                                   enumerate(("a.b", "a_b", "a.b.c", "a_b_c"))}) == []  # fmt: skip


def test_other_scripts_never_get_this_far():
    """What C would not read as a name is none in a graph."""
    for name in ("\u00e9", "x\u0301", "\u03b1", "x y", "1x", "x-y"):
        with pytest.raises(GraphError):
            verify(Graph("g", (Node(name, "input", (), None, Type("f32", (3,))),), (("y", name),)))


# ---- what was wrong once, smallest graphs first --------------------------------------------------------------------------

F = np.float32
SMALL = {
    "the loop over rows and the loop over the terms were both called k": (
        "a: f64[2,3,3,1], b: f64[2,2,3,1,4]; y = matmul(a, b); return y",
        {"a": np.arange(18.0).reshape(2, 3, 3, 1), "b": np.arange(48.0).reshape(2, 2, 3, 1, 4)}),
    "an activation was called like the operand k": (
        "k: f32[40], w: f32[40,17]; y = matmul(k, w); return y", {"k": np.ones(40, F), "w": np.ones((40, 17), F)}),
    "numbers of i64 were computed as int": (
        "x: i64[2]; a = const(2000000000); b = const(2147483647); c = add(a, b); d = mul(a, b); e = add(x, c); y = mul(e, d); return y",
        {"x": np.array([1, -1])}),
    "a row of scores needed all the memory that a block may share": (
        "x: f64[1,6144]; m = max(x) {axis=[1], keepdims=true}; d = sub(x, m); e = exp(d); s = sum(e) {axis=[1], keepdims=true};"
        " y = div(e, s); return y", {"x": np.linspace(-1, 1, 6144).reshape(1, 6144)}),
}  # fmt: skip


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", SMALL)
def test_was_wrong_once(name, backend):
    text, inputs = SMALL[name]
    assert wrong(text, backend, 100, **inputs) == []


EDGES = {
    "0-d": ("x: f32[]; y = exp(x); return y", {"x": np.array(1, F)}),
    "all of length 1": ("x: f32[1,1,1], w: f32[1]; s = sum(x) {axis=[0]}; y = mul(s, w); return y", {"x": np.ones((1, 1, 1), F), "w": np.ones(1, F)}),
    "an empty result": ("x: f32[0,3]; a = exp(x); y = sum(a) {axis=[1]}; return y a", {"x": np.ones((0, 3), F)}),
    "sums of nothing": ("x: f32[3,0]; a = exp(x); s = sum(a) {axis=[1]}; y = add(s, s); return y", {"x": np.ones((3, 0), F)}),
    "a mean of nothing": ("x: f32[3,0]; m = mean(x) {axis=[1]}; y = neg(m); return y", {"x": np.ones((3, 0), F)}),
    "a product of depth 0": ("x: f32[2,0], w: f32[0,3]; a = matmul(x, w); y = neg(a); return y", {"x": np.ones((2, 0), F), "w": np.ones((0, 3), F)}),
    "integer sums wrap": ("x: i8[2,300]; s = sum(x) {axis=[1]}; y = neg(s); return y", {"x": np.full((2, 300), 127, np.int8)}),
    "integer products wrap": ("x: u16[2,40]; y = prod(x) {axis=[1]}; return y", {"x": np.full((2, 40), 65535, np.uint16)}),
    "the least integers": ("x: i64[2,40]; a = max(x) {axis=[1]}; b = min(x) {axis=[1]}; y = sub(a, b); return y",
                           {"x": np.full((2, 40), -2**63)}),
    "truth values": ("x: f32[3,40]; z = const(0.5); b = lt(x, z); p = any(b) {axis=[1]}; q = all(b) {axis=[1]}; y = bitwise_xor(p, q); return y",
                     {"x": np.repeat(np.array([[0, 1, 0.4]], F).T, 40, 1) * np.linspace(0, 2, 40, dtype=F)}),
    "maxima and NaN": ("x: f32[2,70]; y = max(x) {axis=[1]}; return y", {"x": np.where(np.arange(140).reshape(2, 70) == 133, F(np.nan), F(1))}),
    "negative steps in every operand": (
        "x: f32[5,7]; a = slice(x) {start=[4,6], stop=[-1,-1], step=[-1,-2]}; b = slice(x) {start=[0,0], stop=[5,4]}; c = mul(a, b);"
        " s = sum(c) {axis=[0]}; y = exp(s); return y", {"x": np.linspace(0, 1, 35, dtype=F).reshape(5, 7)}),
    "a product of reversed operands": (
        "x: f32[1,40], w: f32[40,5]; a = slice(x) {start=[0,39], stop=[1,-1], step=[1,-1]}; b = slice(w) {start=[39,4], stop=[-1,-1], step=[-1,-1]};"
        " y = matmul(a, b); return y", {"x": np.linspace(0, 1, 40, dtype=F).reshape(1, 40), "w": np.linspace(0, 1, 200, dtype=F).reshape(40, 5)}),
    "a table of repeated rows": (
        "x: f32[3], i: i32[4]; b = broadcast_to(x) {shape=[5,3]}; y = take(b, i) {axis=0}; return y",
        {"x": np.arange(3, dtype=F), "i": np.array([-1, 0, 4, -5], np.int32)}),
    "half floats are moved as they are": (
        "x: f16[2,3], p: f16[]; a = pad(x, p) {low=[1,0], high=[0,2]}; b = concat(a, a) {axis=1}; t = transpose(b) {perm=[1,0]};"
        " y = reshape(t) {shape=[30]}; return y", {"x": np.arange(6).reshape(2, 3).astype(np.float16), "p": np.array(np.nan, np.float16)}),
    "rows whose reduction is stored apart": (
        "x: f32[3,40]; s = sum(x) {axis=[1], keepdims=true}; r = exp(s); y = mul(x, r); return y s",
        {"x": np.linspace(-1, 1, 120, dtype=F).reshape(3, 40)}),
    "six loops": ("x: f32[2,3,2,3,2,3], w: f32[2,1,2,1,2,1]; a = mul(x, w); s = sum(a) {axis=[1,3,5], keepdims=true}; y = div(a, s); return y",
                  {"x": np.arange(1, 217, dtype=F).reshape(2, 3, 2, 3, 2, 3), "w": np.arange(1, 9, dtype=F).reshape(2, 1, 2, 1, 2, 1)}),
    "a product wider than a tile": ("x: f32[1,3], w: f32[3,5000]; a = matmul(x, w); y = neg(a); return y",
                                    {"x": np.ones((1, 3), F), "w": np.linspace(0, 1, 15000, dtype=F).reshape(3, 5000)}),
    "a row longer than what can be kept": (
        "x: f32[1,13000]; m = max(x) {axis=[1], keepdims=true}; d = sub(x, m); e = exp(d); s = sum(e) {axis=[1], keepdims=true};"
        " y = div(e, s); return y", {"x": np.linspace(-1, 1, 13000, dtype=F).reshape(1, 13000)}),
    "rows side by side, in more than one strip": (
        "x: f32[3,5000]; m = max(x) {axis=[0]}; d = sub(x, m); e = exp(d); s = sum(e) {axis=[0]}; y = div(e, s); return y",
        {"x": np.where(np.arange(15000) % 4999 == 7, F(np.nan), np.linspace(-1, 1, 15000, dtype=F)).reshape(3, 5000)}),
    "rows side by side, between other axes": (
        "x: f32[2,5,70], w: f32[5,1]; m = mean(x) {axis=[1], keepdims=true}; c = sub(x, m); q = mul(c, c); v = mean(q) {axis=[1], keepdims=true};"
        " r = sqrt(v); n = div(c, r); y = mul(n, w); return y",
        {"x": np.linspace(-1, 1, 700, dtype=F).reshape(2, 5, 70) ** 2, "w": np.arange(5, dtype=F).reshape(5, 1)}),
}  # fmt: skip


@pytest.mark.parametrize("backend", BACKENDS)
def test_edges(backend):
    cases = [Case(plan(text).graph, inputs, rows=100) for text, inputs in EDGES.values()]
    found = check_cases(cases, backend)
    assert {name: findings for name, findings in zip(EDGES, found) if findings} == {}


# ---- what counts as equal --------------------------------------------------------------------------------------------------


def off_by(text: str, change, **inputs) -> bool:
    """May the one launch of this graph store NumPy's value after such a change?"""
    made = plan(text)
    values = evaluate(made.graph, inputs)[0]
    (launch,) = made.launches
    return stored_right([made.nodes[name] for name in launch.nodes], values, change(values[launch.name].copy()))


def nudged(ulps: float):
    return lambda array: array + array.dtype.type(ulps) * np.spacing(array)


def at(index: int, value) -> object:
    def change(array):
        array.reshape(-1)[index] = value
        return array

    return change


X = np.linspace(-2, 2, 40, dtype=np.float32).reshape(4, 10)
SOFTMAX = ("x: f32[4,10]; m = max(x) {axis=[1], keepdims=true}; d = sub(x, m); e = exp(d); s = sum(e) {axis=[1], keepdims=true};"
           " y = div(e, s); return y")  # fmt: skip


@pytest.mark.parametrize("text, change, right", [
    ("x: f32[4,10]; y = mul(x, x); return y", nudged(0), True),
    ("x: f32[4,10]; y = mul(x, x); return y", nudged(1), False),
    ("x: f32[4,10]; y = exp(x); return y", nudged(4), True),
    ("x: f32[4,10]; y = exp(x); return y", nudged(6), False),
    ("x: f32[4,10]; y = exp(x); return y", at(3, np.nan), False),
    ("x: f32[4,10]; y = sum(x) {axis=[1]}; return y", lambda y: y + np.float32(1e-6), True),
    ("x: f32[4,10]; y = sum(x) {axis=[1]}; return y", lambda y: y + np.float32(1e-4), False),
    ("x: f32[4,10]; y = sum(x) {axis=[1]}; return y", lambda y: y.astype(np.float64), False),
    ("x: f32[4,10]; y = max(x) {axis=[1]}; return y", nudged(1), False),
    (SOFTMAX, nudged(4), True),
    (SOFTMAX, lambda y: y * np.float32(1.001), False),
    (SOFTMAX, lambda y: y[:, ::-1], False),
    (SOFTMAX, at(0, np.inf), False),
    ("x: f32[4,10]; e = exp(x); c = const(1000.0); s = mul(e, c); y = sin(s); return y", lambda y: y + np.eye(4, 10, 6, np.float32) * np.float32(1e-4), True),
    ("x: f32[4,10]; e = exp(x); c = const(1000.0); s = mul(e, c); y = sin(s); return y", lambda y: y + np.float32(0.3), False),
    ("x: f32[4,10]; e = exp(x); c = const(0.5); y = lt(e, c); return y", at(0, False), False),
    ("x: f32[4,10]; z = sub(x, x); e = exp(z); c = const(1.0); y = lt(e, c); return y", at(0, True), True),  # an ulp decides
    ("x: f32[4,10]; e = exp(x); y = floor(e); return y", at(39, 8.0), False),
    # what is divided and multiplied again: the sum cancels, and an ulp of rounding stays
    ("x: f32[4,10]; s = sum(x) {axis=[1], keepdims=true}; d = div(x, s); y = mul(d, s); return y", nudged(1), True),
    ("x: f32[4,10]; s = sum(x) {axis=[1], keepdims=true}; d = div(x, s); y = mul(d, s); return y", nudged(40), False),
    # an ulp of tanh is many periods of the rest
    ("x: f32[4,10]; t = tanh(x); c = const(-4e-45); m = mod(t, c); y = log(m); return y", at(3, -np.inf), True),
    ("x: f32[4,10]; t = tanh(x); c = const(3.0); y = mod(t, c); return y", at(39, 0.5), False),
    ("x: f32[4,10]; i = const(-inf); a = minimum(x, i); c = const(0.5); y = pow(a, c); return y", at(3, np.inf), True),
    ("x: f32[4,10]; i = const(-inf); a = minimum(x, i); c = const(0.4); y = pow(a, c); return y", at(3, np.nan), False),
    # what happens exactly at an edge between two pushes
    ("x: f32[4,10]; z = sub(x, x); e = exp(z); c = const(1.0000001); y = eq(e, c); return y", at(3, True), True),
    ("x: f32[4,10]; z = sub(x, x); e = exp(z); c = const(1.001); y = eq(e, c); return y", at(3, True), False),
    ("x: f32[4,10]; z = sub(x, x); e = exp(z); c = const(1.0000001); d = sub(e, c); y = div(c, d); return y", at(3, np.inf), True),
])  # fmt: skip
def test_the_definition_of_equal(text, change, right):
    assert off_by(text, change, x=X) is right


@pytest.mark.parametrize("terms, stored, right", [
    ([np.inf, 1], np.inf, True), ([np.inf, 1], np.nan, False), ([np.inf, 1], 1, False), ([np.inf, -np.inf], np.nan, True),
    ([np.inf, -np.inf], np.inf, False), ([3e38, 3e38], np.inf, True), ([np.nan, 3e38], 0, False),
])  # fmt: skip
def test_a_sum_of_what_is_not_finite(terms, stored, right):
    terms = np.array([terms], np.float32)
    assert off_by("x: f32[1,2]; y = sum(x) {axis=[1]}; return y", at(0, stored), x=terms) is right


# ---- random graphs -----------------------------------------------------------------------------------------------------------


@needs_compiler
def test_random_graphs_in_c():
    """A slice of ``minigraph fuzz --backend c``."""
    for index, findings in zip(range(100), check_cases([draw(101, index) for index in range(100)], "c")):
        assert not findings, (index, findings)


@needs_compiler
def test_random_graphs_with_rows_side_by_side(monkeypatch):
    """Every reduction in strips of three rows, whatever its strides are."""
    monkeypatch.setattr(rows, "LEAST", 3)
    monkeypatch.setattr(rows, "STRIP", 0)
    monkeypatch.setattr(rows, "side_by_side", lambda outer, inner: bool(outer) and bool(inner))
    for index, findings in zip(range(100), check_cases([draw(103, index) for index in range(100)], "c")):
        assert not findings, (index, findings)


@needs_shim
def test_random_graphs_in_cuda():
    """The same with the CUDA source, threads first to last and last to first."""
    for index, findings in zip(range(60), check_cases([draw(102, index) for index in range(60)], "cuda")):
        assert not findings, (index, findings)


@needs_nvrtc
@pytest.mark.parametrize("arch", nvrtc.ARCHS)
def test_every_kernel_compiles_for_gpus(arch):
    """For one of them down to machine code, where too much shared memory is an error."""
    found: dict = {}
    for index in range(25):
        calls(draw(103, index).plan, CUDA, 1, found)
    for text, _ in [*EDGES.values(), *SMALL.values()]:
        calls(plan(text, 100), CUDA, 1, found)
    calls(make_plan(hostile_graph(HOSTILE[:12])), CUDA, 1, found)
    source = kernels_source(list(found.values()), CUDA)
    assert nvrtc.compile(source, arch, to="cubin" if arch == 80 else "ptx").code and len(found) > 80


@needs_nvrtc
def test_too_much_shared_memory_is_refused():
    """So that the test above can fail."""
    source = 'extern "C" __global__ void k(float *y) { __shared__ double s[6145]; s[threadIdx.x] = 1; __syncthreads(); y[0] = s[3]; }'
    with pytest.raises(nvrtc.NvrtcError, match="shared"):
        nvrtc.compile(source, 80, to="cubin")
