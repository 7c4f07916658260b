"""The NumPy executor: the reference's results, memory of its own, effects in order, and errors as sentences."""

from __future__ import annotations

import io
import random
from contextlib import redirect_stdout

import numpy as np
import pytest
from strategies import samples

import minigraph as mg
from minigraph import backends
from minigraph.compiler import find_compiler
from minigraph.errors import CheckFailed, GraphError, MinigraphError, RunError
from minigraph.fuzz import RUN_ERRORS, evaluate
from minigraph.ir import Builder
from minigraph.run_numpy import IndexRunError, compile, find_in_place, run, stats
from minigraph.types import Const, same_bits


def test_random_graphs_run_as_the_plain_interpreter_runs_them():
    for graph, inputs in samples(400, "run"):
        values, printed, error = evaluate(graph, inputs, 7)
        shown = io.StringIO()
        with redirect_stdout(shown):
            if error is None:
                outputs = run(graph, seed=7, **inputs)
                assert list(outputs) == [public for public, _ in graph.outputs]
                for public, value in graph.outputs:
                    assert same_bits(outputs[public], values[value])
            else:
                with pytest.raises(RUN_ERRORS) as caught:
                    run(graph, seed=7, **inputs)
                assert isinstance(caught.value, MinigraphError)
        assert shown.getvalue() == printed


def test_outputs_share_no_memory():
    """Not with inputs, constants or one another: writing to one changes nothing else."""
    for graph, inputs in samples(300, "memory"):
        program = compile(graph)
        with redirect_stdout(io.StringIO()):
            try:
                first = program(**inputs)
            except RUN_ERRORS:
                continue
            kept = {name: array.copy() for name, array in first.items()}
            before = {name: array.copy() for name, array in inputs.items()}
            for name, array in first.items():
                array[...] = array.dtype.type(1)
                for other in first:
                    assert other == name or same_bits(first[other], kept[other]), (str(graph), name, other)
                array[...] = kept[name]
            for array in first.values():
                array[...] = array.dtype.type(3)
            assert all(same_bits(inputs[name], before[name]) for name in inputs)
            again = program(**inputs)
        assert all(same_bits(again[name], kept[name]) for name in kept), str(graph)


ODD = [
    ("graph g() -> () {\n return\n}", {}, {}),
    ("graph g(x: f32[2]) -> (x) {\n return x\n}", {"x": [1, 2]}, {"x": [1, 2]}),
    ("graph g(x: f32[2]) -> (a, b) {\n return a = x, b = x\n}", {"x": [1, 2]}, {"a": [1, 2], "b": [1, 2]}),
    ("graph g() -> (c) {\n c = const(2.5) : f32[]\n return c\n}", {}, {"c": 2.5}),
    ("graph g(x: f32[]) -> (y) {\n y = neg(x)\n return y\n}", {"x": 3}, {"y": -3}),
    ("graph g(x: f32[0,2]) -> (y, s) {\n y = exp(x)\n s = sum(x) {axis=[0]}\n return y, s\n}", {"x": np.zeros((0, 2))},
     {"y": np.zeros((0, 2)), "s": [0, 0]}),
    ("graph g(x: f32[3]) -> (m) {\n m = max(x) {axis=[]}\n return m\n}", {"x": [3, 1, 2]}, {"m": [3, 1, 2]}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "inputs", "outputs"), ODD)
def test_odd_but_valid_graphs_run(text, inputs, outputs):
    found = run(mg.parse(text), **{name: np.array(value, np.float32) for name, value in inputs.items()})
    assert list(found) == list(outputs)
    for name, value in outputs.items():
        assert isinstance(found[name], np.ndarray) and same_bits(found[name], np.array(value, np.float32))


# ---- inputs -----------------------------------------------------------------------------------------------------------

TWO = mg.parse("graph two(first: f32[2], second: i32[]) -> (y) {\n c = cast(second) {dtype=f32}\n y = add(first, c)\n return y\n}")
GOOD = {"first": np.ones(2, np.float32), "second": np.int32(3)}


@pytest.mark.parametrize(("changes", "sentence"), [
    ({"second": None}, "input 'second' (i32[]) is missing"),
    ({"third": 1}, "'third' is not an input of two; its inputs are first, second"),
    ({"secon": 1}, "did you mean 'second'?"),
    ({"first": np.ones(2)}, "input 'first' is f32[2], but an array float64[2] was given: add .astype(np.float32)"),
    ({"first": np.ones(3, np.float32)}, "input 'first' is f32[2], but an array float32[3] was given"),
    ({"first": np.ones((1, 2), np.float32)}, "float32[1, 2]"),
    ({"second": 3}, "input 'second' is i32[], but an array int64[] was given: add .astype(np.int32)"),
    ({"second": "three"}, "input 'second' is i32[]"),
    ({"first": [object(), object()]}, "input 'first' is f32[2]"),
])  # fmt: skip
def test_wrong_inputs_are_sentences(changes, sentence):
    inputs = {name: value for name, value in {**GOOD, **changes}.items() if value is not None}
    with pytest.raises(RunError) as caught:
        run(TWO, **inputs)
    assert sentence in str(caught.value)


@pytest.mark.parametrize("array", (np.float32(3), np.ones(2), np.array(None), np.array(1j)))
def test_no_cast_is_proposed_that_loses_more_than_digits(array):
    with pytest.raises(RunError) as caught:
        run(TWO, first=GOOD["first"], second=array)
    assert str(caught.value).endswith("was given")


needs_c = pytest.mark.skipif(find_compiler() is None, reason="no C compiler")
every_back_end = pytest.mark.parametrize("backend", ["reference", "numpy", pytest.param("c", marks=needs_c)])
X = np.ones(4, np.float32)
ONE = mg.parse("graph g(x: f32[4]) -> (y) {\n y = sin(x)\n return y\n}")


@every_back_end
@pytest.mark.parametrize("inputs, seed, sentence", [
    (X, 0, "g takes its inputs by name, like {'x': array}, not as array([1., 1., 1., 1.], dtype=float32)"),
    (np.ones(100), 0, "not as an object of type ndarray"),
    (3, 0, "by name, like {'x': array}, not as 3"),
    ([X], 0, "by name"),
    ([], 0, "not as []"),
    (0, 0, "not as 0"),
    ("x", 0, "not as 'x'"),
    ({1: X}, 0, "'1' is not an input of g; its inputs are x"),
    ({"x": None}, 0, "input 'x' is f32[4], but an array object[] was given"),
    ({"x": [[1], [2, 3]]}, 0, "input 'x' is f32[4], but no array can be made of what was given: "),
    ({"x": X}, "a", "the seed is a whole number from 0 up, not 'a'"),
])  # fmt: skip
def test_wrong_calls_are_sentences_in_every_back_end(backend, inputs, seed, sentence):
    executable = mg.compile(ONE, backend=backend)
    with pytest.raises(RunError) as caught:
        executable(inputs, seed=seed)
    assert sentence in str(caught.value)


THREADS = "threads is a whole number from 1 to 1024, not "


@pytest.mark.parametrize("options, sentence", [
    *(({"backend": "c", "threads": value}, THREADS + repr(value)) for value in ("a", None, 0, -1, 2.5, True, 10**10, [2])),
    ({"backend": "c", "treads": 2}, "the back end c has no option 'treads': did you mean 'threads'?"),
    ({"backend": "c", "mode": "graph"}, "the back end c has no option 'mode': mode is of the back end cupy"),
    ({"backend": "numpy", "threads": 2}, "the back end numpy has no option 'threads': threads is of the back end c"),
    ({"backend": "numpy", "poison": 1}, "poison is True or False, not 1"),
    ({"threads": 2}, "the back end reference has no option 'threads': threads is of the back end c"),
    ({"speed": 2}, "the back end reference has no option 'speed': it has none"),
    ({"backend": "cupy", "mode": ["graph"]}, "mode is a name, like 'graph', not ['graph']"),
    ({"backend": "cupy", "fast": None}, "fast is fast-math flags"),
    ({"backend": None}, "unknown back end None; there are reference, numpy, c, cupy."),
    ({"backend": ["c"]}, "unknown back end ['c']; there are"),
    ({"backend": "cc"}, "did you mean 'c'?"),
    *(({"backend": backend, "donate": donate}, sentence) for backend in ("reference", "numpy", "c") for donate, sentence in (
        (None, "donate is a list of names of inputs, like ['cache'], not None"),
        (3, "not 3"),
        ("x", "donate is a list of names of inputs, like ['cache'], not 'x'"),
        ("c", "a back end is asked for by name: compile(graph, backend='c')"),
        ([1], "cannot donate '1': it is not an input."),
        ([["x"]], "cannot donate '['x']'"),
        (["y"], "cannot donate 'y': it is not an input."),
    )),
])  # fmt: skip
def test_wrong_options_are_sentences(options, sentence):
    with pytest.raises(RunError) as caught:
        mg.compile(ONE, **options)
    assert sentence in str(caught.value)


def test_options_may_be_numpys_numbers_and_names_come_once():
    assert same_bits(mg.compile(ONE, (name for name in ["x"]), backend="numpy", poison=np.True_)(x=X.copy())["y"], np.sin(X))
    with pytest.raises(RunError, match="donate is a list"):
        mg.make_plan(ONE, None)
    with pytest.raises(RunError, match="unknown back end 'reference'; there are numpy, c, cupy"):
        backends.bind(mg.make_plan(ONE), "reference")


@every_back_end
def test_a_donated_array_lies_in_one_row_in_every_back_end(backend):
    with pytest.raises(RunError, match="input 'x' is donated, so it is written to, but its elements do not lie in one aligned row"):
        mg.compile(ONE, ["x"], backend=backend)(x=np.ones(8, np.float32)[::2])


def test_inputs_in_any_layout():
    rng = np.random.default_rng(0)
    graph = mg.parse("graph g(x: f32[3,4]) -> (y) {\n t = transpose(x) {perm=[1,0]}\n y = exp(t)\n return y\n}")
    x = rng.standard_normal((3, 4)).astype(np.float32)
    for layout in (x, np.asfortranarray(x), np.repeat(x, 2, 1)[:, ::2], x[::-1].copy()[::-1]):
        assert same_bits(run(graph, x=layout)["y"], np.exp(x.T))
    with pytest.raises(RunError, match="big-endian|>f4|is f32"):
        run(graph, x=x.astype(">f4"))


# ---- effects and errors ---------------------------------------------------------------------------------------------------


def test_effects_happen_in_order_even_when_nobody_reads_them(capsys):
    graph = mg.parse("""graph g(x: f32[2]) -> (y) {
      p = print(x) {label="first"}
      y = neg(x)
      q = print(y, p)
      r = assert_finite(y, q)
      return y
    }""")
    for program in (compile(graph), compile(mg.optimize(graph).graph)):
        program(x=np.array([1, 2], np.float32))
        assert capsys.readouterr().out == "first: [1. 2.]\n[-1. -2.]\n"
        with pytest.raises(CheckFailed, match="assert_finite: the array has infs or NaNs"):
            program(x=np.array([1, np.inf], np.float32))
        assert capsys.readouterr().out == "first: [ 1. inf]\n[ -1. -inf]\n"


def test_assert_close_says_how_far():
    graph = mg.parse("graph g(x: f32[2], y: f32[2]) -> () {\n a = assert_close(x, y) {digits=3}\n return\n}")
    x = np.array([1, np.nan], np.float32)
    assert run(graph, x=x, y=x + np.float32(1e-4)) == {}
    with pytest.raises(CheckFailed, match="differ by up to .*, more than 3 digits allow"):
        run(graph, x=x, y=x + np.float32(0.1))


def test_assert_close_of_integers_and_infinities():
    graph = mg.parse("graph g(x: i8[2], y: i8[2]) -> () {\n a = assert_close(x, y)\n return\n}")
    with pytest.raises(CheckFailed, match="differ by up to 255"):
        run(graph, x=np.array([127, 0], np.int8), y=np.array([-128, 0], np.int8))
    graph = mg.parse("graph g(x: f32[1], y: f32[1]) -> () {\n a = assert_close(x, y)\n return\n}")
    with pytest.raises(CheckFailed, match="differ by up to inf"):
        run(graph, x=np.array([np.inf], np.float32), y=np.array([1], np.float32))
    with pytest.raises(CheckFailed):
        run(graph, x=np.array([np.nan], np.float32), y=np.array([1], np.float32))


@pytest.mark.parametrize(("text", "inputs", "kind", "sentence"), [
    ("y = take(x, i)   # m.py:7", {"i": 5}, IndexRunError, "(m.py:7)\n    y = take(x, i) : f32[]"),
    ("y = update_slice(x, x, i)", {"i": 1}, IndexRunError, "writes 4 at position 1 of axis 0, which has 4"),
    ("y = update_slice(x, x, i)", {"i": -1}, IndexRunError, "at position -1"),
    ("z = cast(x) {dtype=i32}\n y = pow(z, i)", {"i": -1}, RunError, "negative integer powers"),
])  # fmt: skip
def test_what_numpy_refuses_names_the_node(text, inputs, kind, sentence):
    graph = mg.parse(f"graph g(x: f32[4], i: i32[]) -> (y) {{\n {text}\n return y\n}}")
    with pytest.raises(kind) as caught:
        run(graph, x=np.zeros(4, np.float32), i=np.int32(inputs["i"]))
    assert sentence in str(caught.value)


def test_random_depends_on_the_seed_of_the_run_and_the_site_alone():
    graph = mg.parse("""graph g(x: f32[3]) -> (a, b) {
      waste = random() {shape=[3], site=0}
      a = random() {shape=[3], site=1}
      b = random() {shape=[3], site=1}
      return a, b
    }""")
    x = np.zeros(3, np.float32)
    first, second = run(graph, seed=1, x=x), run(graph, seed=2, x=x)
    assert same_bits(first["a"], first["b"]) and not same_bits(first["a"], second["a"])
    assert same_bits(run(mg.optimize(graph).graph, seed=1, x=x)["a"], first["a"])


# ---- donation ---------------------------------------------------------------------------------------------------------------

CACHE = mg.parse("""graph step(cache: f32[4,2], row: f32[1,2], at: i32[]) -> (next, total) {
  next = update_slice(cache, row, at)
  total = sum(next) {axis=[0,1]}
  return next, total
}""")


def test_a_donated_input_is_updated_in_place():
    cache, row = np.zeros((4, 2), np.float32), np.ones((1, 2), np.float32)
    kept = compile(CACHE)(cache=cache, row=row, at=np.int32(1))
    assert not cache.any() and kept["next"][1].all()
    given = compile(CACHE, donate=["cache"])(cache=cache, row=row, at=np.int32(1))
    assert given["next"] is cache and cache[1].all() and same_bits(given["next"], kept["next"])


@pytest.mark.parametrize(("body", "in_place"), [
    ("next = update_slice(cache, row, at)\n return next", True),
    ("old = sum(cache) {axis=[0,1]}\n next = update_slice(cache, row, at)\n return next, old", True),
    ("next = update_slice(cache, row, at)\n old = sum(cache) {axis=[0,1]}\n return next, old", False),
    ("next = update_slice(cache, row, at)\n return next, cache", False),
    ("view = transpose(cache) {perm=[1,0]}\n next = update_slice(cache, row, at)\n old = exp(view)\n return next, old", False),
    ("view = transpose(cache) {perm=[1,0]}\n next = update_slice(cache, row, at)\n return next, view", False),
    ("part = slice(cache) {start=[2,0], stop=[3,2]}\n next = update_slice(cache, part, at)\n return next", False),
    ("copy = neg(cache)\n next = update_slice(copy, row, at)\n return next", False),
    ("mid = update_slice(cache, row, at)\n next = update_slice(mid, row, at)\n return next", True),
])  # fmt: skip
def test_in_place_only_where_nobody_reads_afterwards(body, in_place):
    names = body.rpartition("return ")[2]
    graph = mg.parse(f"graph g(cache: f32[4,2], row: f32[1,2], at: i32[]) -> ({names}) {{\n {body}\n}}")
    assert bool(find_in_place(graph, frozenset(["cache"]))) == in_place
    rng = np.random.default_rng(0)
    inputs = {"cache": rng.random((4, 2), np.float32), "row": rng.random((1, 2), np.float32), "at": np.int32(2)}
    plain = compile(graph)(**{name: array.copy() for name, array in inputs.items()})
    donated = compile(graph, donate=["cache"])(**{name: array.copy() for name, array in inputs.items()})
    assert all(same_bits(plain[name], donated[name]) for name in plain)


def test_random_graphs_do_not_notice_donation():
    """update_slice over views and copies at random: whatever is written in place, the outputs stay."""
    rng, updated = random.Random(0), 0
    for index in range(300):
        builder = Builder()
        same = [builder.input(name, "f32[3,2]") for name in ("p", "q")]
        rows = [builder.input("r", "f32[1,2]")]
        at = builder.const(np.int32(rng.randrange(3)))
        for _ in range(rng.randrange(2, 8)):
            x = rng.choice(same)
            dice = rng.randrange(4)
            if dice == 0:
                rows.append(builder.emit("slice", x, start=(1, 0), stop=(2, 2)))
            elif dice == 1:
                turned = builder.emit("transpose", x, perm=(1, 0))
                same.append(builder.emit("transpose", turned, perm=(1, 0)))
            elif dice == 2:
                same.append(builder.emit("add", x, rng.choice(same)))
            else:
                same.append(builder.emit("update_slice", x, rng.choice(rows), at))
        graph = builder.build({f"y{i}": rng.choice(same[2:] or same) for i in range(2)})
        draw = np.random.default_rng(index)
        inputs = {node.name: draw.random(node.type.shape, np.float32) for node in graph.inputs}
        plain = compile(graph)(**inputs)
        donate = [name for name in inputs if rng.random() < 0.7]
        updated += bool(find_in_place(graph, frozenset(donate)))
        donated = compile(graph, donate=donate)(**{name: array.copy() for name, array in inputs.items()})
        assert all(same_bits(plain[name], donated[name]) for name in plain), (str(graph), donate)
        kept = {name: array for name, array in inputs.items() if name not in donate}
        before = {name: array.copy() for name, array in kept.items()}
        compile(graph, donate=donate)(**{name: array if name in kept else array.copy() for name, array in inputs.items()})
        assert all(same_bits(kept[name], before[name]) for name in kept)
    assert updated > 40


@pytest.mark.parametrize("seed", ["a", -1, 1.5, None], ids=repr)
def test_a_seed_is_a_whole_number(seed):
    draw = mg.parse("graph g() -> (y) {\n y = random() {shape=[2], site=0}\n return y\n}")
    with pytest.raises(RunError, match="the seed is a whole number from 0 up"):
        run(draw, seed=seed)
    assert same_bits(run(draw, seed=np.uint8(7))["y"], run(draw, seed=7)["y"])


def test_what_cannot_be_donated_is_a_sentence():
    row, at = np.ones((1, 2), np.float32), np.int32(0)
    with pytest.raises(RunError, match="cannot donate 'cash': it is not an input. did you mean 'cache'"):
        compile(CACHE, donate=["cash"])
    frozen = np.zeros((4, 2), np.float32)
    frozen.flags.writeable = False
    with pytest.raises(RunError, match="'cache' is donated, so it is written to, but the array is read-only"):
        compile(CACHE, donate=["cache"])(cache=frozen, row=row, at=at)


def test_one_array_given_twice_is_refused_where_it_is_written_to():
    graph = mg.parse("graph g(a: f32[2,2], b: f32[2,2], r: f32[1,2], i: i32[]) -> (n, s) {\n n = update_slice(a, r, i)\n s = neg(b)\n return n, s\n}")
    both = np.zeros((2, 2), np.float32)
    inputs = {"r": np.ones((1, 2), np.float32), "i": np.int32(0)}
    with pytest.raises(RunError, match="'a' and 'b' share memory, and one of them is donated"):
        compile(graph, donate=["a"])(a=both, b=both, **inputs)
    assert compile(graph)(a=both, b=both, **inputs)["n"][0].all()


# ---- stats, and what cannot be changed -----------------------------------------------------------------------------------------


def test_stats():
    graph = mg.parse("""graph g(x: f32[2,3], w: f32[3,4]) -> (y) {
      h = matmul(x, w)
      t = transpose(h) {perm=[1,0]}
      z = const(0.0) : f32[]
      y = maximum(t, z)
      return y
    }""")
    found = stats(graph)
    assert (found.nodes, found.launches, found.flops) == (6, 2, 2 * 2 * 3 * 4 + 8)
    assert (found.bytes_read, found.bytes_written) == (4 * (6 + 12) + 4 * (8 + 1), 4 * 8 + 4 * 8)


def test_constants_cannot_be_written_to():
    const = Const.of(np.arange(6, dtype=np.float32).reshape(2, 3))
    for array in (const.array, const.array.T, const.array[0], const.array.reshape(-1)):
        with pytest.raises(ValueError):
            array[...] = 0
        with pytest.raises(ValueError):
            array.flags.writeable = True
    with pytest.raises(AttributeError):
        const.data = b""
    owner = np.arange(3)
    with pytest.raises(ValueError):
        Const.wrap(owner).array.flags.writeable = True
    assert owner.flags.writeable


def test_a_graph_that_does_not_verify_is_not_run():
    graph = mg.Graph("g", (mg.Node("y", "neg", ("x",), None, mg.Type("f32")),), (("y", "y"),))
    with pytest.raises(GraphError, match="operand 'x' is not defined"):
        compile(graph)
