"""The plan: who shares whose memory, what the checker of plans finds, and what the numpy back end gives."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest

import minigraph as mg
from minigraph import check_backends, cli
from minigraph.backends import bind
from minigraph.errors import PassError, RunError
from minigraph.fusible_graphs import fusible_sample
from minigraph.fusion import fuse
from minigraph.fuzz import Finding
from minigraph.check_backends import check_cases
from minigraph.fuzz_backends import draw
from minigraph.planners import naive
from minigraph.plan import Plan, check_plan, make_plan, verify_plan
from minigraph.run_plan import PlanExecutable
from minigraph.text import parse
from minigraph.types import same_bits


def plan(text: str, donate=(), **options) -> Plan:
    """``plan("x: f32[3]; y = exp(x); return y")``."""
    signature, *lines = (line.strip() for line in text.split(";"))
    names = lines.pop().removeprefix("return ").split()
    outputs = ", ".join(f"out{number} = {name}" for number, name in enumerate(names))
    graph = parse(
        f"graph g({signature}) -> ({', '.join(f'out{number}' for number in range(len(names)))}) {{\n"
        + "".join(f"  {line}\n" for line in lines)
        + f"  return {outputs}\n}}"
    )
    return make_plan(fuse(graph, **options), donate)


def run_both(made: Plan, **inputs) -> list[dict[str, np.ndarray]]:
    """The results of the reference, of the plan in NumPy, and of it again in the same arena."""
    reference = mg.run(made.graph, {name: array.copy() for name, array in inputs.items()})
    executable = PlanExecutable(made, poison=True)
    results = [executable({name: array.copy() for name, array in inputs.items()}) for _ in range(2)]
    for result in results:
        assert {name: same_bits(array, reference[name]) for name, array in result.items()} == dict.fromkeys(
            reference, True
        )
    return results


X = np.arange(6, dtype=np.float32).reshape(2, 3)

# ---- sharing memory -----------------------------------------------------------------------------------------------------


def test_a_chain_of_launches_needs_one_buffer():
    made = plan(
        "x: f32[16]; a = exp(x); b = cumsum(a) {axis=0}; c = neg(b); d = cumsum(c) {axis=0}; e = cumsum(d) {axis=0}; return e"
    )
    assert [launch.in_place for launch in made.launches] == [None, None, "b", None, None]
    assert made.arena_bytes == 128  # of four values of 64 bytes two live at one time
    assert made.placement.footprint == made.placement.lower_bound
    run_both(made, x=np.linspace(0, 1, 16, dtype=np.float32))


def test_views_take_no_memory_and_no_launch():
    made = plan(
        "x: f32[2,3]; a = transpose(x) {perm=[1,0]}; b = slice(a) {start=[2,0], stop=[-1,2], step=[-1,1]};"
        " c = broadcast_to(b) {shape=[4,3,2]}; d = reshape(c) {shape=[2,2,3,2]}; y = neg(d); return y"
    )
    assert [launch.name for launch in made.launches] == ["y"] and made.arena_bytes == 0
    assert made.access["d"].strides == (0, 0, -1, 3) and made.access["d"].offset == 2
    run_both(made, x=X)


def test_a_reshape_that_strides_cannot_express_is_a_copy():
    made = plan("x: f32[2,3]; a = transpose(x) {perm=[1,0]}; b = reshape(a) {shape=[6]}; y = neg(b); return y")
    assert [(launch.kind, launch.name) for launch in made.launches] == [("copy", "b"), ("map", "y")]
    run_both(made, x=X)


MERGE = "t = transpose(a) {perm=[1,0,2]}; r = reshape(t) {shape=[3,8]}; y = cumsum(r) {axis=1}"


@pytest.mark.parametrize("above, kind", [
    ("x: f32[2,3,4]; a = exp(x)", "map"),
    ("x: f32[2,3,9], w: f32[2,9,4]; a = matmul(x, w)", "epilogue"),
    ("x: f32[2,3,4], w: f32[2,4,4]; b = cumsum(x) {axis=0}; a = matmul(b, w)", "epilogue"),
    ("x: f32[2,3,4,5]; a = sum(x) {axis=[3]}", "reduce"),
    ("x: f32[2,3,4]; a = cumsum(x) {axis=0}", "library"),
])  # fmt: skip
def test_a_result_is_stored_in_the_order_that_a_reshape_behind_a_transpose_needs(above, kind):
    """The merge of attention's heads: no element moves twice."""
    made = plan(f"{above}; {MERGE}; return y")
    assert [launch.kind for launch in made.launches if launch.name == "a"] == [kind]
    assert not [launch for launch in made.launches if launch.kind == "copy"]
    assert made.access["a"].strides == (4, 8, 1) and made.access["r"].contiguous
    run_both(made, **{node.name: np.arange(node.type.size, dtype=np.float32).reshape(node.type.shape) / 8 for node in made.graph.inputs})


@pytest.mark.parametrize("text", [
    f"x: f32[2,3,4]; a = exp(x); {MERGE}; return y a",  # an output has its own order
    f"x: f32[2,3,4]; a = exp(x); {MERGE}; z = cumsum(a) {{axis=2}}; return y z",  # another reader
    f"x: f32[2,3,4]; a = exp(x); {MERGE}; z = cumsum(t) {{axis=2}}; return y z",
    "x: f32[2,3,4]; a = exp(x); t = transpose(a) {perm=[0,2,1]}; r = reshape(t) {shape=[24]}; y = cumsum(r) {axis=0}; return y",  # rows stay rows
])  # fmt: skip
def test_a_result_in_its_own_order(text):
    made = plan(text)
    assert made.access["a"].contiguous and [launch.kind for launch in made.launches].count("copy") == 1
    run_both(made, x=np.linspace(0, 1, 24, dtype=np.float32).reshape(2, 3, 4))


def test_orders_of_nothing_and_of_one_element():
    run_both(plan("x: f32[]; a = neg(x); t = transpose(a) {perm=[]}; r = reshape(t) {shape=[]}; y = exp(r); return y"), x=np.float32(1))
    run_both(plan("x: f32[1,1,2]; a = neg(x); t = transpose(a) {perm=[1,0,2]}; r = reshape(t) {shape=[2]}; y = exp(r); return y"),
             x=np.ones((1, 1, 2), np.float32))


@pytest.mark.parametrize("text, why", [
    ("x: f32[2,3]; a = exp(x); y = cumsum(a) {axis=0}; z = neg(a); return y z", "a is not dead"),
    ("x: f32[2,2]; a = cumsum(x) {axis=0}; t = transpose(a) {perm=[1,0]}; b = add(a, t); y = cumsum(b) {axis=0}; return y",
     "it is read in two ways"),
    ("x: f32[2,3]; a = cumsum(x) {axis=0}; b = slice(a) {start=[0,0], stop=[1,3]}; c = broadcast_to(b) {shape=[2,3]};"
     " d = exp(c); y = cumsum(d) {axis=0}; return y", "many elements of the result read one of it"),
    ("x: i64[2,3]; a = cumsum(x) {axis=0}; b = cast(a) {dtype=f64}; y = cumsum(b) {axis=0}; return y", "another dtype"),
    ("x: f32[2,3]; y = exp(x); return y", "inputs are not ours"),
    ("x: f32[3,3]; a = cumsum(x) {axis=0}; s = sum(a) {axis=[1]}; d = sub(a, s); y = cumsum(d) {axis=0}; return y",
     "another launch reads it, too, after this one"),
])  # fmt: skip
def test_not_in_place(text, why):
    made = plan(text)
    first = made.launches[1] if len(made.launches) > 1 else made.launches[0]
    assert first.in_place is None, why
    given = next(node.type for node in made.graph.inputs)
    run_both(
        made, x=np.arange(given.size, dtype={"f32": np.float32, "i64": np.int64}[given.dtype]).reshape(given.shape)
    )


def test_a_softmax_may_overwrite_its_operand():
    """Each walk over a row has read it before the last walk writes it."""
    made = plan(
        "x: f32[2,3]; a = cumsum(x) {axis=0}; m = max(a) {axis=[1], keepdims=true}; d = sub(a, m); e = exp(d);"
        " t = sum(e) {axis=[1], keepdims=true}; p = div(e, t); y = cumsum(p) {axis=0}; return y"
    )
    assert made.launches[1].in_place == "a" and made.launches[1].kind == "reduce"
    run_both(made, x=X)


# ---- updates of what is given away -----------------------------------------------------------------------------------------

CACHE = "c: f32[4,3], u: f32[1,3], i: i32[]; "


def test_an_update_of_donated_memory_writes_nothing_but_the_update():
    made = plan(CACHE + "y = update_slice(c, u, i); return y", donate=("c",))
    assert made.launches[0].in_place == "c" and made.launches[0].bytes_written == 12 and made.arena_bytes == 0
    cache = np.zeros((4, 3), np.float32)
    result = PlanExecutable(made)(c=cache, u=np.ones((1, 3), np.float32), i=np.array(2, np.int32))
    assert result["out0"] is cache and cache.sum() == 3


@pytest.mark.parametrize("lines, why", [
    ("y = update_slice(c, u, i); return y c", "the old cache is an output"),
    ("y = update_slice(c, u, i); s = sum(c) {axis=[0]}; return y s", "the old cache is read afterwards"),
    ("t = transpose(c) {perm=[1,0]}; y = update_slice(c, u, i); s = exp(t); return y s", "a view of it is read afterwards"),
    ("h = slice(c) {start=[0,0], stop=[1,3]}; y = update_slice(c, h, i); return y", "the update is a part of it"),
    ("h = slice(c) {start=[0,0], stop=[2,3]}; y = update_slice(h, u, i); return y", "only its first rows are updated"),
    ("h = reshape(c) {shape=[2,6]}; w = concat(u, u) {axis=1}; y = update_slice(h, w, i); return y", "in another shape"),
])  # fmt: skip
def test_no_update_in_place(lines, why):
    made = plan(CACHE + lines, donate=("c",))
    assert next(launch for launch in made.launches if launch.name == "y").in_place is None, why
    run_both(
        made, c=np.arange(12, dtype=np.float32).reshape(4, 3), u=np.ones((1, 3), np.float32), i=np.array(1, np.int32)
    )


def test_the_position_may_lie_in_the_memory_that_is_updated():
    """On a GPU one thread would read it after another has overwritten it."""
    made = plan(
        "c: i32[8], u: i32[2]; s = slice(c) {start=[3], stop=[4]}; i = reshape(s) {shape=[]}; y = update_slice(c, u, i); return y",
        donate=("c",),
    )
    assert made.launches[0].in_place is None
    run_both(made, c=np.arange(8, dtype=np.int32), u=np.array([7, 7], np.int32))


def test_two_updates_of_one_cache():
    made = plan(CACHE + "a = update_slice(c, u, i); y = update_slice(a, u, i) {axis=0}; return y", donate=("c",))
    assert [launch.in_place for launch in made.launches] == ["c", "a"] and made.outputs[0].copied is False
    run_both(made, c=np.zeros((4, 3), np.float32), u=np.ones((1, 3), np.float32), i=np.array(3, np.int32))


def test_an_updated_cache_returned_twice_is_copied_once():
    made = plan(CACHE + "y = update_slice(c, u, i); return y y", donate=("c",))
    for result in run_both(
        made, c=np.zeros((4, 3), np.float32), u=np.ones((1, 3), np.float32), i=np.array(3, np.int32)
    ):
        assert not np.may_share_memory(result["out0"], result["out1"])


def test_a_donated_array_must_lie_in_one_aligned_row():
    made = plan(CACHE + "y = update_slice(c, u, i); return y", donate=("c",))
    rest = {"u": np.ones((1, 3), np.float32), "i": np.array(0, np.int32)}
    shifted = np.zeros(49, np.uint8)[1:].view(np.float32).reshape(4, 3)
    for cache in (np.zeros((3, 4), np.float32).T, np.zeros((8, 3), np.float32)[::2], shifted):
        with pytest.raises(RunError, match="'c' is donated.* do not lie in one aligned row"):
            PlanExecutable(made)(c=cache, **rest)
    with pytest.raises(RunError, match="cannot donate 'd': it is not an input"):
        plan(CACHE + "y = update_slice(c, u, i); return y", donate=("d",))


# ---- outputs ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lines", [
    "y = exp(x); t = transpose(y) {perm=[1,0]}; return t t y",
    "y = exp(x); return y y",
    "c = const([1.0, 2.0]); return x x c",
    "y = exp(x); r = reshape(y) {shape=[6]}; return r",
    "y = cumsum(x) {axis=0}; t = slice(y) {start=[1,2], stop=[-1,-1], step=[-1,-1]}; return t",
])  # fmt: skip
def test_outputs_have_memory_of_their_own(lines):
    """Also views as outputs: the buffer that they look at must live to the end."""
    made = plan("x: f32[2,3]; " + lines)
    x = X.copy()
    result = list(PlanExecutable(made, poison=True)(x=x).values())
    reference = list(mg.run(made.graph, x=x).values())
    assert all(same_bits(a, b) for a, b in zip(result, reference))
    for array in result:
        array[...] = 7
    again = PlanExecutable(made)(x=x)
    assert all(same_bits(a, b) for a, b in zip(again.values(), reference)) and (x == X).all()
    assert not any(np.may_share_memory(a, b) for i, a in enumerate(result) for b in [*result[:i], x])


def test_a_prefix_of_a_buffer_is_not_the_buffer():
    """Its elements lie in one row from the start, but the buffer has more of them."""
    made = plan(
        "x: f32[6]; a = cumsum(x) {axis=0}; p = slice(a) {start=[0], stop=[4]}; m = max(p) {axis=[0], keepdims=true};"
        " d = sub(p, m); y = cumsum(d) {axis=0}; return y"
    )
    assert made.access["p"].contiguous and made.launches[1].in_place == "p" and made.launches[1].name == "d"
    run_both(made, x=X.reshape(6))


def test_unaligned_and_strided_inputs():
    made = plan("x: f32[2,3]; y = exp(x); return y")
    shifted = np.zeros(25, np.uint8)[1:].view(np.float32).reshape(2, 3)
    shifted[...] = X
    for x in (shifted, X[::-1, ::-1].copy()[::-1, ::-1], np.asfortranarray(X)):
        assert same_bits(PlanExecutable(made)(x=x)["out0"], np.exp(X))


# ---- the checker ---------------------------------------------------------------------------------------------------------------

TWO = "x: f32[32]; a = cumsum(x) {axis=0}; b = cumsum(a) {axis=0}; c = cumsum(b) {axis=0}; d = add(a, c); y = cumsum(d) {axis=0}; return y"


def moved(made: Plan, buffer: str, offset: int) -> Plan:
    return replace(made, regions={**made.regions, buffer: made.regions[buffer]._replace(offset=offset)})


def test_a_right_plan_has_no_faults():
    made = plan(TWO)
    assert check_plan(made) == [] and verify_plan(made) is None
    assert made.launches[3].in_place in ("a", "c")
    assert check_plan(make_plan(fuse(made.graph), planner=naive)) == []


@pytest.mark.parametrize("buffer, other", [("b", "a"), ("c", "b"), ("c", "a"), ("a", "c")])
def test_overlapping_offsets_are_found(buffer, other):
    made = plan(TWO)
    for shift in (0, 64):  # all of it, and half
        wrong = moved(made, buffer, made.regions[other].offset + shift)
        assert check_plan(wrong)
        with pytest.raises(PassError, match="the memory plan is wrong"):
            verify_plan(wrong)


def test_other_faults_are_found():
    made = plan(TWO)
    assert "no multiple of 64" in check_plan(moved(made, "b", made.regions["b"].offset + 4))[0]
    assert any("does not fit the arena" in one for one in check_plan(moved(made, "b", made.arena_bytes)))
    in_place = replace(made, access={**made.access, "b": made.access["b"]._replace(buffer="a")})  # a is read again
    assert any("d needs a" in one for one in check_plan(in_place))
    same_time = moved(made, "c", made.regions["b"].offset + 64)  # c is written while b is read
    assert any("c writes where it still reads b" in one for one in check_plan(same_time))
    into_input = replace(made, access={**made.access, "b": made.access["b"]._replace(buffer="x")})
    assert any("b writes into x, which is not ours" in one for one in check_plan(into_input))
    assert not any("not ours" in one for one in check_plan(replace(into_input, donate=frozenset("x"))))
    late = replace(made, launches=(*made.launches[1:], made.launches[0]))
    assert any("needs a" in one for one in check_plan(late))
    lost = replace(made, launches=made.launches[:-1])
    assert check_plan(lost)


def test_the_poison_finds_what_a_lifetime_that_is_too_short_does():
    made = plan(TWO)
    short = replace(made, regions={**made.regions, "a": made.regions["a"]._replace(end=2)})
    x = np.ones(32, np.float32)
    assert np.isnan(PlanExecutable(short, poison=True)(x=x)["out0"]).all()
    assert not np.isnan(PlanExecutable(made, poison=True)(x=x)["out0"]).any()


# ---- counting ------------------------------------------------------------------------------------------------------------------


def test_bytes_and_flops():
    made = plan("x: f32[4,8], w: f32[8]; a = mul(x, w); b = exp(a); y = add(b, x); return y")
    (launch,) = made.launches
    assert (launch.bytes_read, launch.bytes_written, launch.flops) == (128 + 32, 128, 96)
    apart = make_plan(fuse(made.graph, enabled=False))
    assert apart.bytes_moved == (128 + 32 + 128) + (128 + 128) + (128 + 128 + 128)
    assert (
        plan("x: f32[4]; c = const(2.0); y = mul(x, c); return y").launches[0].bytes_read == 16
    )  # 2.0 is in the source


def test_deterministic():
    for index in range(30):
        graph, _, donate = fusible_sample(4, index)
        one, two = (make_plan(graph, donate) for _ in range(2))
        assert (one.launches, one.access, one.regions, one.outputs) == (
            two.launches,
            two.access,
            two.regions,
            two.outputs,
        )


# ---- random graphs --------------------------------------------------------------------------------------------------------------


def test_random_graphs_in_numpy():
    """A slice of ``minigraph fuzz --backend numpy``: partition, plan, each launch in a poisoned arena, and the whole."""
    for index, findings in zip(range(200), check_cases([draw(100, index) for index in range(200)], "numpy")):
        assert not findings, (index, findings)


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked here")


@needs_fork
def test_the_command(capsys):
    assert cli.main(["fuzz", "--backend", "numpy", "--graphs", "30", "--seed", "5"]) == 0
    assert "30 graphs, seed 5" in (said := capsys.readouterr().out) and "0 faults" in said and "numpy map" in said


@needs_fork
def test_the_command_finds_shrinks_and_survives(capsys, monkeypatch):
    """A back end that gets sums wrong, and one that ends the process, at a graph with a sum."""

    def has_sum(case):
        return any(node.op == "sum" and node.name in case.values for node in case.graph.nodes)

    def says_no(cases, tally):
        for case in cases:
            yield [Finding("value", "here", "a sum is wrong")] * has_sum(case)

    def dies(cases, tally):
        for case in cases:
            yield os._exit(3) if has_sum(case) else []

    for backend, words in ((says_no, "here: value: a sum is wrong"), (dies, "ends the process with 3")):
        monkeypatch.setitem(check_backends.BACKENDS, "numpy", backend)
        assert cli.main(["fuzz", "--backend", "numpy", "--graphs", "12", "--seed", "5"]) == 1
        said = capsys.readouterr().out
        assert words in said and "12 graphs, seed 5" in said and " 0 faults" not in said
        if backend is says_no:
            smaller = parse(said.split("smaller:\n")[1].split("\n}")[0] + "\n}")
            assert [node.op for node in smaller.nodes] in (["input", "sum"], ["const", "sum"])


def test_compile_and_bind_name_the_back_ends():
    made = plan("x: f32[2,3]; y = exp(x); return y")
    assert same_bits(bind(made, "numpy")(x=X)["out0"], np.exp(X))
    for backend in ("reference", "numpy"):
        for fused in (True, False):
            assert same_bits(mg.compile(made.graph, backend=backend, fused=fused)(x=X)["out0"], np.exp(X))
    with pytest.raises(RunError, match="unknown back end 'nunpy'.*did you mean 'numpy'"):
        mg.compile(made.graph, backend="nunpy")
