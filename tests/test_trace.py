"""Tracing: names, source lines, specs, outputs, constants, effects, and what cannot be traced."""

import copy
import os
import pathlib
import subprocess
import sys
import time
import tracemalloc
from collections import namedtuple

import numpy as np
import pytest

import minigraph
from minigraph.errors import CheckFailed, GraphError, TraceError
from minigraph.ops import OPS
from minigraph.run_numpy import compile, run
from minigraph.text import constants, parse, print_graph
from minigraph.tracing import (
    Tracer, assert_close, assert_finite, constant, conv2d, dequantize, erf, print_value, quantize, random, random_like,
    rsqrt, spec, take, trace, update_slice,
)  # fmt: skip
from minigraph.types import Type, same_bits
from minigraph.verify import verify

WEIGHT = np.arange(16, dtype=np.float32).reshape(4, 4)


def ops(graph) -> list[str]:
    return [node.op for node in graph.nodes]


# ---- names, lines, text ---------------------------------------------------------------------------------------------


def layer(h):
    scaled = h * 2
    return np.maximum(scaled, 0)


def model(x, bias):
    h = x @ WEIGHT
    h = layer(h + bias)
    y = layer(h)
    return y, h


def test_a_graph_reads_like_its_source():
    graph = trace(model, "f32[8,4]", bias="f32[4]")
    verify(graph)
    assert str(graph) == """\
graph model(x: f32[8,4], bias: f32[4]) -> (y, h) {
  WEIGHT = const([[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0], [8.0, 9.0, 10.0, 11.0], [12.0, 13.0, 14.0, 15.0]]) : f32[4,4]
  h = matmul(x, WEIGHT) : f32[8,4]
  h.1 = add(h, bias) : f32[8,4]
  c = const(2.0) : f32[]
  scaled = mul(h.1, c) : f32[8,4]
  c.1 = const(0.0) : f32[]
  h.2 = maximum(scaled, c.1) : f32[8,4]
  c.2 = const(2.0) : f32[]
  scaled.1 = mul(h.2, c.2) : f32[8,4]
  c.3 = const(0.0) : f32[]
  y = maximum(scaled.1, c.3) : f32[8,4]
  return y = y, h = h.2
}
"""
    first = model.__code__.co_firstlineno
    assert graph["h"].origin == (f"test_trace.py:{first + 1}",)
    assert graph["scaled"].origin == (f"test_trace.py:{layer.__code__.co_firstlineno + 1}",)  # the innermost line
    assert parse(print_graph(graph)) == graph


def test_the_same_code_gives_the_same_text_in_every_process():
    code = ("import sys; sys.path.insert(0, 'tests'); from test_trace import model, trace; "
            "g = trace(model, 'f32[8,4]', 'f32[4]'); print(g, [n.origin for n in g.nodes])")
    root, texts = pathlib.Path(__file__).parents[1], set()
    for seed in "01":
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": "."}
        texts.add(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root,
                                 env=environment).stdout)
    assert len(texts) == 1 and texts.pop().startswith("graph model")


def test_attributes_and_captured_arrays_name_constants():
    class Layer:
        weight = None

    one = Layer()
    one.weight = WEIGHT
    local = np.ones(4, np.float32)
    graph = trace(lambda x: x @ one.weight + local, "f32[4]")
    assert [node.name for node in graph.nodes if node.op == "const"] == ["one.weight", "local"]


def test_a_loop_of_5000_is_quick():
    def deep(x):
        for _ in range(5000):
            x = np.tanh(x)
        return x

    start = time.perf_counter()
    graph = trace(deep, "f32[2]")
    assert len(graph) == 5001 and graph.nodes[-1].name == "x.5000"
    assert time.perf_counter() - start < 2


# ---- specs and outputs ----------------------------------------------------------------------------------------------


def test_specs():
    assert spec("f32[8, 4]") == spec("f32", (8, 4)) == spec(np.float32, (8, 4)) == Type("f32", (8, 4))
    assert spec(np.zeros((2, 0), np.int8)) == Type("i8", (2, 0)) and spec(np.float64(3)) == spec("f64[]") == Type("f64")
    for bad in ("f31[2]", "f32", "f32[-1]", np.zeros(2, complex)):
        with pytest.raises(GraphError):
            spec(bad)


def test_nested_inputs_statics_and_every_kind_of_parameter():
    Pair = namedtuple("Pair", "a b")

    def f(x, cache, pair, scale, *rest, flag=True, **more):
        assert flag is True and isinstance(pair, Pair) and isinstance(cache["k"], tuple)
        return x * scale + cache["k"][0] + pair.b + rest[1] + more["z"]

    graph = trace(f, "f32[2]", {"k": ("f32[2]", "f32[]"), "v w": "i8[]"}, Pair("f32[2]", np.zeros(2)), 2,
                  "f32[]", np.float32(1), z="f32[2]")
    assert [node.name for node in graph.inputs] == [
        "x", "cache.k.0", "cache.k.1", "cache.v_w", "pair.0", "pair.1", "rest.0", "rest.1", "z"]
    assert graph["c"].value.array.dtype == np.float32  # 2 is weak: it takes x's dtype
    with pytest.raises(TraceError, match="two inputs are named"):
        trace(lambda x: 1, {"a b": "f32[]", "a.b": "f32[]", "a_b": "f32[]"})
    assert ops(trace(np.tanh, "f32[2]")) == ["input", "tanh"]


def test_outputs_have_unique_public_names():
    def names(f, *specs):
        graph = trace(f, *specs)
        verify(graph)
        return [name for name, _ in graph.outputs]

    def same(x):
        y = x + 1
        return y, x, y, 3.0

    def nested(x):
        logits = x * 2
        cache = [x, (logits, x)]
        return {"logits": logits, "cache": cache, 0: x}

    def variable(x):
        parts = np.split(x, 2)
        return parts

    def branches(x, flag):
        if flag:
            return x
        return x + 1

    assert names(same, "f32[2]") == ["y", "x", "y.1", "out.3"]
    assert names(nested, "f32[2]") == ["logits", "cache.0", "cache.1.0", "cache.1.1", "out.0"]
    assert names(variable, "f32[2]") == ["parts.0", "parts.1"]
    assert names(branches, "f32[2]", False) == ["out"]
    assert names(lambda x: (x, np.ones(2)), "f32[2]") == ["out.0", "out.1"]
    assert names(lambda: np.float16(1)) == ["out"]
    assert names(eval("lambda x: {'a': x}"), "f32[2]") == ["a"]
    for nothing in (lambda x: None, lambda x: "text", lambda x: (i for i in range(2))):
        with pytest.raises(TraceError, match="test_trace.py:.*returned"):
            trace(nothing, "f32[2]")


def test_variables_named_like_words_of_the_text_form():
    inf = np.ones(20, np.float32) * 3

    def f(x):
        graph = x * inf
        true = graph + 1
        return graph, true

    graph = trace(f, "f32[20]")
    verify(graph)
    assert [public for public, _ in graph.outputs] == ["graph", "true"] and parse(print_graph(graph), constants(graph)) == graph
    with pytest.raises(TraceError, match="'inf' cannot name an input\n.*words of the language"):
        trace(lambda inf: inf, "f32[]")


def test_an_output_may_be_an_input_or_a_constant():
    graph = trace(lambda x: (x, x, np.arange(3), 2), "f32[2]")
    x = np.array([1, np.nan], np.float32)
    a, b, c, d = run(graph, x=x).values()
    assert same_bits(a, x) and same_bits(b, x) and same_bits(c, np.arange(3)) and same_bits(d, np.int64(2))


# ---- constants ------------------------------------------------------------------------------------------------------


def test_a_captured_array_is_copied_and_shared():
    w = np.ones(3, np.float32)
    graph = trace(lambda x: x * w + w, "f32[3]")
    assert ops(graph).count("const") == 1
    w[...] = 7
    assert same_bits(run(graph, x=np.zeros(3, np.float32))["out"], np.ones(3, np.float32))


def test_an_array_that_is_written_to_while_tracing_is_two_constants():
    w = np.ones(3, np.float32)

    def f(x):
        y = x * w
        w[0] = 5
        return y + w

    expected = f(np.arange(3, dtype=np.float32))
    w[0] = 1
    assert same_bits(run(trace(f, "f32[3]"), x=np.arange(3, dtype=np.float32))["out"], expected)


def test_read_only_memory_is_shared_and_not_read():
    w = np.zeros((40_000, 1000), np.float32)  # 160 MB that the system has not even given us yet
    w.setflags(write=False)
    tracemalloc.start()
    graph = trace(lambda x: (x @ w, w @ x[:1000], w.T @ x, w.T, x[:1000] @ w.T), "f32[40000]")
    assert tracemalloc.get_traced_memory()[1] < 1e6
    tracemalloc.stop()
    constants = [node for node in graph.nodes if node.op == "const"]
    assert len(constants) == 1 and np.shares_memory(constants[0].value.array, w)
    base = np.ones(3, np.float32)
    view = base[:]
    view.setflags(write=False)  # read-only, but its owner can write
    graph = trace(lambda x: x + view, "f32[3]")
    base[...] = 2
    assert run(graph, x=base)["out"].tolist() == [3, 3, 3]


def test_strange_captured_arrays():
    swapped, strided = np.arange(3).astype(">f4"), np.arange(6.0)[::-2]
    graph = trace(lambda x: x + swapped + strided, "f32[3]")
    assert run(graph, x=np.zeros(3, np.float32))["out"].tolist() == [5, 4, 3]
    for bad in (np.zeros(3, complex), np.array(["a"]), np.recarray(3, "f4"), np.ma.array([1.0])):
        with pytest.raises(TypeError):
            trace(lambda x: x + bad, "f32[3]")


def test_constant_keeps_numpy_from_computing_at_once():
    assert ops(trace(lambda x: x + np.sqrt(np.ones(3)), "f64[3]")) == ["input", "const", "add"]
    assert ops(trace(lambda x: x + np.sqrt(constant(np.ones(3))), "f64[3]")) == ["input", "const", "sqrt", "add"]
    assert same_bits(constant([1.0]), np.array([1.0]))
    table, ids = np.arange(6.0).reshape(3, 2), np.array([2, 0])
    for f in (lambda i: constant(table)[i], lambda i: take(table, i), lambda i: np.take(constant(table), i, 0)):
        assert same_bits(run(trace(f, ids), i=ids)["out"], table[ids])


# ---- minigraph's own functions, effects, random draws ---------------------------------------------------------------


IMAGE, KERNEL = np.arange(50.0).reshape(1, 2, 5, 5), np.ones((4, 1, 3, 3))
STEPS = np.array([100, -3], np.int8)


@pytest.mark.parametrize("f, arrays", [
    (erf, [np.array([0.5, np.nan], np.float32)]),
    (rsqrt, [np.array([4.0, 0.0])]),
    (lambda x, u, i: update_slice(x, u, i, axis=1), [np.zeros((2, 3)), np.ones((2, 1)), np.int32(2)]),
    (lambda x, u: update_slice(x, u, 1), [np.zeros(3), np.ones(2)]),
    (lambda x: quantize(x, 0.1), [np.array([1.05, np.nan, 1e9], np.float32)]),
    (lambda q: dequantize(q, np.float32(0.5)), [STEPS]),
    (lambda x, k: conv2d(x, k, stride=(2, 1), padding=(1, 1, 0, 0), groups=2), [IMAGE, KERNEL]),
    (lambda x, i: take(x, i, axis=-1), [np.arange(6).reshape(2, 3), np.array([0, -1])]),
])  # fmt: skip
def test_own_functions_are_the_same_eagerly_and_traced(f, arrays):
    graph = trace(f, *arrays)
    got = run(graph, **dict(zip([node.name for node in graph.inputs], arrays)))
    with np.errstate(all="ignore"):
        assert same_bits(got["out"], np.asarray(f(*arrays)))


def test_effects_stay_in_order(capsys):
    def f(x):
        print_value(x, "first")
        y = x + 1
        assert_finite(y)
        assert_close(y, x + 1.0, digits=3)
        print_value(WEIGHT[0, 0], label="last")
        return y

    graph = trace(f, "f32[2]")
    verify(graph)
    effects = [node for node in graph.nodes if OPS[node.op].kind.value == "effect"]
    assert [node.op for node in effects] == ["print", "assert_finite", "assert_close", "print"]
    assert [node.inputs[-1] for node in effects[1:]] == [node.name for node in effects[:-1]]
    capsys.readouterr()
    x = np.zeros(2, np.float32)
    run(graph, x=x)
    traced_text = capsys.readouterr().out
    f(x)
    assert capsys.readouterr().out == traced_text == "first: [0. 0.]\nlast: 0.0\n"
    for bad in (lambda: run(graph, x=x + np.inf), lambda: f(x + np.inf)):
        with pytest.raises(CheckFailed):
            bad()
    assert ops(trace(lambda x: print_value(x), "f32[2]")) == ["input", "print"]  # an effect alone is worth running


def test_draws_have_sites():
    graph = trace(lambda x: (random((2, 3)), random_like(x, "normal"), random(4, np.float64)), "f64[2]")
    assert [(node.value.site, str(node.type)) for node in graph.nodes if node.op == "random"] == [
        (0, "f32[2,3]"), (1, "f64[2]"), (2, "f64[4]")]
    a, b = run(graph, seed=1, x=np.zeros(2)), run(graph, seed=1, x=np.zeros(2))
    assert all(same_bits(a[name], b[name]) for name in a)
    assert random((2, 3)).dtype == np.float32 and random_like(np.zeros(2)).shape == (2,)
    assert not same_bits(random(9), random(9))


# ---- what cannot be traced ------------------------------------------------------------------------------------------


def in_place(x):
    x += 1
    return x


def item_assignment(x):
    x[0] = 1
    return x


def augmented_array(x):
    total = np.zeros(2, np.float32)
    total += x
    return total


REFUSED = [
    (lambda x: 1 if x > 0 else 2, TypeError, "`if`", "np.where"),
    (lambda x: not x, TypeError, "`if`", "np.where"),
    (lambda x: max(x[0], x[1]), TypeError, "`max`", "np.maximum"),
    (lambda x: [row for row in x], TypeError, "looped over", "range"),
    (lambda x: len(x), TypeError, "len", "x.shape"),
    (lambda x: 1.0 in x, TypeError, "`in`", "np.any"),
    (lambda x: range(x[0].astype(int)), TypeError, "index", "plain numbers"),
    (lambda x: float(x[0]), TypeError, "number is wanted", "astype"),
    (lambda x: f"{x[0]:.2f}", TypeError, "formatting", "print_value"),
    (lambda x: np.array([x, x]), TypeError, "an array of numbers", "np.stack"),
    (lambda x: np.arange(3)[x.astype(int)], TypeError, "an array of numbers", "constant"),
    (lambda x: x[x > 0], IndexError, "mask", "np.where"),
    (lambda x: x[:x[0].astype(int)], TypeError, "slice", "np.take"),
    (lambda x: np.nonzero(x), ValueError, "depends on values", "np.where"),
    (lambda x: np.where(x > 0), ValueError, "condition alone", "both values"),
    (in_place, TypeError, "in place", r"x = x \+ y"),
    (item_assignment, TypeError, "in place", "update_slice"),
    (augmented_array, TypeError, "in place", r"x = x \+ y"),
    (lambda x: np.add(x, 1, out=np.zeros(2, np.float32)), TypeError, "in place", "out="),
    (lambda x: np.sum(x, out=np.zeros(())), TypeError, "in place", "result"),
    (lambda x: np.add.at(x, [0], 1), TypeError, "in place", "out="),
    (lambda x: np.log1pp if False else np.log10(x), ValueError, "np.log10 is not known", "did you mean 'log1p'"),
    (lambda x: np.argsort(x), ValueError, "np.argsort is not known", "did you mean"),
    (lambda x: np.mean(x, where=x > 0), TypeError, "'where'", "known are a, axis"),
    (lambda x: np.linalg.det(x), ValueError, "np.linalg.det is not known", ""),
    (lambda x: np.hypot(x, x), ValueError, "np.hypot is not known", "build it"),
    (lambda x: np.max(x, 0, None, True), TypeError, "too many", "known are a, axis"),
    (lambda x: x.tolist(), AttributeError, "no 'tolist'", "no value"),
    (lambda x: x.summ(), AttributeError, "no 'summ'", "did you mean 'sum'"),
    (lambda x: x.astype(complex), TypeError, "complex128", "dtypes are"),
    (lambda x: x.view(np.int32), ValueError, "bits of memory", "astype"),
    (lambda x: x + "a", TypeError, "'a' is not an array", ""),
    (lambda x: x.astype(np.uint8) + 300, OverflowError, "300 out of bounds for uint8", "wider"),
    (lambda x: x.astype(int) ** -1, ValueError, "negative integer powers", r"\*\* -1.0"),
    (lambda x: x.reshape(3), ValueError, "2 elements", ""),
    (lambda x: x + np.ones(3), ValueError, "do not broadcast", ""),
    (lambda x: x.sum(axis=1), IndexError, "axis 1", ""),
    (lambda x: x[2], IndexError, "out of bounds", ""),
]


@pytest.mark.parametrize("f, error, rule, hint", REFUSED, ids=[case[2] for case in REFUSED])
def test_what_cannot_be_traced_is_said_with_line_rule_and_hint(f, error, rule, hint):
    with pytest.raises(TraceError, match=rf"(?s)^test_trace.py:\d+: .*{rule}.*{hint}") as caught:
        trace(f, "f32[2]")
    assert isinstance(caught.value, error)
    line = int(str(caught.value).split(":")[1])
    assert f.__code__.co_firstlineno <= line <= f.__code__.co_firstlineno + 3
    assert "\n  " in str(caught.value) or not hint


def test_a_leaked_tracer_is_refused():
    kept = []
    trace(lambda x: kept.append(x) or x, "f32[2]")
    with pytest.raises(TraceError, match="outside of its trace"):
        kept[0] + 1
    with pytest.raises(TraceError, match="outside of its trace"):
        kept[0][0]
    with pytest.raises(TraceError, match="another trace"):
        trace(lambda y: y + kept[0], "f32[2]")
    with pytest.raises(TraceError, match="another trace"):
        trace(lambda y: kept[0], "f32[2]")
    with pytest.raises(TraceError, match="another trace"):
        trace(lambda x: trace(lambda: x + 1), "f32[2]")


def test_traces_nest_and_end_after_an_error():
    def outer(x):
        inner = trace(lambda y: y * 2, "f32[3]")
        assert ops(inner) == ["input", "const", "mul"]
        with pytest.raises(ZeroDivisionError):  # the function's own exceptions pass through
            trace(lambda y: 1 / 0, "f32[3]")
        return x + 1

    assert ops(trace(outer, "f32[2]")) == ["input", "const", "add"]
    assert random(2).shape == (2,) and isinstance(random(2), np.ndarray)  # no trace is running any more


def test_a_tracer_behaves_like_an_array_where_it_can():
    def f(x):
        assert isinstance(x, Tracer) and (x.shape, x.ndim, x.size, x.dtype) == ((2, 3), 2, 6, np.float32)
        assert x.nbytes == 24 and x.itemsize == 4 and np.shape(x) == (2, 3) and x.shape[0] == 2
        assert copy.deepcopy(x) is x and x.copy() is x and (+x) is x and x[...] is x
        assert repr(x) == f"{x}" == "<traced x: f32[2,3]>" and repr(x + 1) == "<traced f32[2,3]>"
        with pytest.raises(TypeError):
            {x}
        return x

    assert len(trace(f, "f32[2,3]")) == 3  # x, the constant and x + 1


def test_what_numpy_does_silently_is_recorded():
    def text(f, *specs):
        return [f"{node.op} {node.type}" for node in trace(f, *specs).nodes if node.op not in ("input", "const")]

    assert text(lambda x, k: x * k, "f32[2]", "i64[2]") == ["cast f64[2]", "cast f64[2]", "mul f64[2]"]
    assert text(lambda x: x * 2.0, "f16[2]") == ["mul f16[2]"]
    assert text(lambda x: x.sum(), "i8[2]") == ["cast i64[2]", "sum i64[]"]
    assert text(lambda x: x.mean(), "f16[2]") == ["mean f16[]"]
    assert text(lambda x: x + x, "bool[2]") == ["bitwise_or bool[2]"]
    assert text(lambda x: x.astype(np.float32), "f32[2]") == ["cast f32[2]"]  # the user wrote it
    assert text(lambda x: np.transpose(x, (0, 1)), "f32[2,2]") == ["transpose f32[2,2]"]
    assert text(lambda x: x < 300, "u8[2]") == ["broadcast_to bool[2]"]
    assert text(lambda x: np.zeros_like(x), "f32[999,999]") == ["broadcast_to f32[999,999]"]


def test_the_package_has_the_names():
    for name in ("trace", "spec", "update_slice", "random", "random_like", "print_value", "assert_close"):
        assert getattr(minigraph, name) is globals()[name]
