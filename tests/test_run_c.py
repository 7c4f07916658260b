"""The C back end: results, errors, names of what is missing, the cache of built code, binding, threads, and the cases."""

from __future__ import annotations

import copy
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import run_cases

import minigraph as mg
from minigraph import compiler
from minigraph.backends import bind
from minigraph.compiler import CompilerError, build, cache_folder
from minigraph.dialect import C_FLAGS
from minigraph.errors import MinigraphError, MinigraphWarning, RunError
from minigraph.fusion import fuse
from minigraph.check_backends import Case, c_batch, check_cases
from minigraph.fuzz_backends import draw
from minigraph.ir import Builder, Graph
from minigraph.pipeline import optimize
from minigraph.plan import Plan, make_plan
from minigraph.run_c import CExecutable
from minigraph.run_numpy import IndexRunError
from minigraph.run_plan import PlanExecutable
from minigraph.text import parse
from minigraph.tracing import trace
from minigraph.types import same_bits

ROOT = Path(__file__).parent.parent
pytestmark = pytest.mark.skipif(compiler.find_compiler() is None, reason="there is no C compiler")
F = np.float32


def plan(text: str, donate=()) -> Plan:
    signature, *lines = (line.strip() for line in text.split(";"))
    name = lines.pop().removeprefix("return ")
    body = "".join(f"  {line}\n" for line in lines)
    return make_plan(fuse(parse(f"graph g({signature}) -> ({name}) {{\n{body}  return {name} = {name}\n}}")), donate)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache of our own."""
    monkeypatch.setenv("MINIGRAPH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def forget():
    """The compiler is looked for anew, before and after."""
    compiler.find_compiler.cache_clear()
    compiler.machine.cache_clear()
    yield
    compiler.find_compiler.cache_clear()
    compiler.machine.cache_clear()


# ---- results ---------------------------------------------------------------------------------------------------------------


def test_one_call_for_all_generated_launches():
    made = plan("x: f32[4,8]; a = exp(x); b = transpose(a) {perm=[1,0]}; c = neg(b); d = sum(c) {axis=[0]}; return d")
    executable = CExecutable(made)
    assert len(made.launches) == 2 and len(executable.steps) == 1
    x = np.linspace(-1, 1, 32, dtype=F).reshape(4, 8)
    assert np.allclose(executable(x=x)["d"], -np.exp(x).sum(1), rtol=1e-6)
    assert mg.compile(made.graph, backend="c")(x=x)["d"].shape == (4,)


def test_a_library_launch_between_two_runs():
    made = plan("x: f32[64]; a = abs(x); b = cumsum(a) {axis=0}; c = neg(b); return c")
    executable = CExecutable(made)
    assert [function is None for function, _ in executable.steps] == [False, True, False]
    x = np.arange(64, dtype=F)
    assert same_bits(executable(x=x)["c"], -np.cumsum(np.abs(x), dtype=F))


def test_a_chain_of_1000_nodes():
    builder = Builder()
    value = builder.input("x", "f32[1]")
    for number in range(1000):
        value = builder.emit(("neg", "abs", "sqrt")[number % 3], value)
    graph = builder.build({"y": value})
    made = make_plan(fuse(graph))
    assert len(made.launches) == 1 and len(made.launches[0].nodes) == 1000
    x = np.array([0.3], F)
    assert same_bits(CExecutable(made)(x=x)["y"], mg.run(graph, x=x)["y"])


def test_a_thousand_launches():
    builder = Builder()
    value = builder.input("x", "f32[3,3]")
    for number in range(500):
        value = builder.emit("neg", builder.emit("transpose", value, perm=(1, 0)))
        value = builder.emit("reshape", builder.emit("reshape", value, shape=(9,)), shape=(3, 3))
    graph = builder.build({"y": value})
    executable = CExecutable(make_plan(fuse(graph)))
    assert len(executable.program.kernels) < 5 and len(executable.steps) == 1
    x = np.arange(9, dtype=F).reshape(3, 3)
    assert same_bits(executable(x=x)["y"], mg.run(graph, x=x)["y"])


def test_effects_and_draws_between_launches(capsys):
    made = plan(
        "x: f32[2]; a = neg(x); p = print(a) {label=one}; r = random() {shape=[2], site=3}; b = add(a, r);"
        " q = print(b, p) {label=two}; c = abs(b); return c"
    )
    x = np.array([1, 2], F)
    for seed in (0, 7):
        result = CExecutable(made)(x=x, seed=seed)
        text = capsys.readouterr().out
        reference = mg.run(made.graph, x=x, seed=seed)
        assert same_bits(result["c"], reference["c"]) and text == capsys.readouterr().out and "one" in text


def test_large_constants_are_gathered_in_one_array():
    rng = np.random.default_rng(0)
    builder = Builder()
    x = builder.input("x", "f32[1,33]")
    for rows, columns in ((33, 65), (65, 41), (41, 70)):
        x = builder.emit("tanh", builder.emit("matmul", x, builder.const(rng.standard_normal((rows, columns), F))))
    graph = builder.build({"y": builder.emit("add", x, builder.const(np.arange(70, dtype=F)))})
    executable = CExecutable(make_plan(fuse(graph)))
    given = rng.standard_normal((1, 33), F)
    assert np.allclose(executable(x=given)["y"], mg.run(graph, x=given)["y"], rtol=1e-5, atol=1e-5)
    assert all(array.ctypes.data % 64 == 0 for array in executable.memory.flat.values() if array.nbytes >= 4096)


def test_results_of_two_calls_are_apart():
    executable = CExecutable(plan("x: f32[4]; a = neg(x); y = reshape(a) {shape=[2,2]}; return y"))
    first = executable(x=np.ones(4, F))["y"]
    second = executable(x=np.zeros(4, F))["y"]
    assert (first == -1).all() and (second == 0).all() and not np.may_share_memory(first, second)


def test_inputs_in_any_layout():
    executable = CExecutable(plan("x: f32[2,3]; y = exp(x); return y"))
    x = np.arange(6, dtype=F).reshape(2, 3)
    shifted = np.zeros(25, np.uint8)[1:].view(F).reshape(2, 3)
    shifted[...] = x
    expected = executable(x=x)["y"]
    for given in (np.asfortranarray(x), x[::-1, ::-1].copy()[::-1, ::-1], shifted, np.repeat(x, 2, 0)[::2]):
        assert same_bits(executable(x=given)["y"], expected)
    with pytest.raises(RunError, match=r"input 'x' is f32\[2,3\], but an array float64"):
        executable(x=x.astype(float))
    with pytest.raises(RunError, match=r"but an array >f4"):
        executable(x=x.astype(">f4"))


# ---- errors ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("position", [-1, 4, 2**31 - 1, -(2**31)])
def test_an_update_out_of_range_leaves_the_donated_cache_alone(position):
    made = plan("c: f32[4,3], u: f32[1,3], i: i32[]; y = update_slice(c, u, i); return y", donate=("c",))
    for executable in (CExecutable(made), PlanExecutable(made)):
        cache = np.arange(12, dtype=F).reshape(4, 3)
        with pytest.raises(IndexRunError, match="y = update_slice"):
            executable(c=cache, u=np.ones((1, 3), F), i=np.array(position, np.int32))
        assert same_bits(cache, np.arange(12, dtype=F).reshape(4, 3))
        result = executable(c=cache, u=np.ones((1, 3), F), i=np.array(3, np.int32))  # and goes on afterwards
        assert result["y"] is cache and cache[3].sum() == 3


@pytest.mark.parametrize("index, dtype, right", [
    ([0, 2, -1, -3], "i32", True), ([3], "i32", False), ([-4], "i64", False), ([2**62], "i64", False), ([-2**63], "i64", False),
    ([0, 2], "u8", True), ([255], "u8", False), ([2**64 - 1], "u64", False),
])  # fmt: skip
def test_take_never_clamps(index, dtype, right):
    made = plan(f"x: f32[3,2], i: {dtype}[{len(index)}]; y = take(x, i) {{axis=0}}; return y")
    x, i = (
        np.arange(6, dtype=F).reshape(3, 2),
        np.array(index, {"i32": "i4", "i64": "i8", "u8": "u1", "u64": "u8"}[dtype]),
    )
    if right:
        assert same_bits(CExecutable(made)(x=x, i=i)["y"], x[i.astype(int)])
        return
    with pytest.raises(IndexRunError, match="an index is out of range.*\n.*y = take"):
        CExecutable(made)(x=x, i=i)


@pytest.mark.parametrize("text, inputs", [
    ("x: f32[3,0], i: i32[]; u = slice(x) {start=[0,0], stop=[1,0]}; y = update_slice(x, u, i); return y",
     {"x": np.ones((3, 0), F), "i": np.array(3, np.int32)}),
    ("x: f32[3,0], i: i32[1]; y = take(x, i) {axis=0}; return y", {"x": np.ones((3, 0), F), "i": np.array([3], np.int32)}),
    ("x: f32[0,3], i: i32[1]; y = take(x, i) {axis=0}; return y", {"x": np.ones((0, 3), F), "i": np.array([0], np.int32)}),
])  # fmt: skip
def test_an_index_is_checked_also_where_nothing_is_moved(text, inputs):
    made = plan(text)
    with pytest.raises(IndexRunError):
        mg.run(made.graph, inputs)
    for executable in (CExecutable(made), PlanExecutable(made)):
        with pytest.raises(IndexRunError):
            executable(inputs)


def test_which_launch_failed_is_said():
    made = plan(
        "x: f32[3], i: i32[]; a = take(x, i) {axis=0}; b = exp(x); c = take(b, i) {axis=0}; y = add(a, c); return y"
    )
    with pytest.raises(IndexRunError, match="a = take"):
        CExecutable(made)(x=np.ones(3, F), i=np.array(5, np.int32))


def test_no_compiler(monkeypatch, forget):
    monkeypatch.setenv("CC", "")
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(compiler.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(CompilerError, match="there is no C compiler.*install gcc or clang.*ziglang.*backend='numpy'"):
        mg.compile(plan("x: f32[3]; y = exp(x); return y").graph, backend="c")


def test_the_compiler_of_the_environment_comes_first(monkeypatch, forget, tmp_path):
    fake = tmp_path / "mycc"
    fake.write_text("#!/bin/sh\necho nonsense >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("CC", f"{fake} -v")
    assert compiler.find_compiler() == (str(fake), "-v")
    monkeypatch.setenv("MINIGRAPH_CACHE", str(tmp_path))
    with pytest.raises(CompilerError, match="the C compiler refused generated code:\n  nonsense"):
        build("int one(void) { return 1; }\n")
    ended = "`.*mycc -v` ended with status {}\n  unset CC, which names this compiler; `minigraph doctor` says"
    for script, said in (
        ("exit 0", "(it said nothing)\n  " + ended.format("0, but wrote no library")),  # says that all is well, and makes nothing
        ("exit 3", "(it said nothing)\n  " + ended.format(3)),
        ("printf '\\377' >&2; exit 1", "\ufffd\n  " + ended.format(1)),
    ):
        fake.write_text(f"#!/bin/sh\n{script}\n")
        with pytest.raises(CompilerError, match="the C compiler refused generated code:\n  " + said.replace("(", r"\(").replace(")", r"\)")):
            build("int one(void) { return 1; }\n")
    fake.write_text("#!/no/such/shell\n")
    with pytest.raises(CompilerError, match="the C compiler `.*mycc` cannot be started: No such file or directory\n  unset CC"):
        build("int one(void) { return 1; }\n")


def test_a_compiler_error_shows_its_words(cache):
    with pytest.raises(CompilerError, match="(?s)refused generated code.*error: .*undeclared"):
        build("int one(void) { return nothing; }\n")


# ---- the cache -----------------------------------------------------------------------------------------------------------------

SOURCE = "int one(void) { return 1; }\n"


def test_built_once(cache, monkeypatch):
    assert build(SOURCE).one() == 1
    files = sorted(path.name for path in cache.iterdir())
    assert len(files) == 2 and files[0].endswith(".sha256") and files[1].endswith(".so")
    monkeypatch.setattr(compiler, "make", lambda *args: pytest.fail("built again"))
    assert build(SOURCE).one() == 1


DAMAGES = (
    lambda library: library.write_bytes(library.read_bytes()[:-100]),
    lambda library: library.write_bytes(b""),
    lambda library: library.unlink(),
    lambda library: library.with_suffix(".sha256").unlink(),
    lambda library: library.with_suffix(".sha256").write_text("nonsense"),
    lambda library: library.write_bytes(library.read_bytes().replace(b"\x00" * 16, b"\x01" * 16, 1)),
    lambda library: library.with_suffix(".sha256").write_bytes(b"\xff\xfe"),  # no UTF-8
    lambda library: [library.unlink(), library.symlink_to("nowhere")],
    lambda library: [library.unlink(), os.mkfifo(library)],  # to read it would take forever
    lambda library: [library.with_suffix(".sha256").unlink(), os.mkfifo(library.with_suffix(".sha256"))],
)


@pytest.mark.parametrize("number", range(len(DAMAGES)))
def test_a_damaged_entry_is_built_again(cache, number):
    source = SOURCE.replace("return 1", f"return {number}")
    path = compiler.entry(source, list(C_FLAGS))
    compiler.make(source, list(C_FLAGS), path)
    assert compiler.is_whole(path)
    DAMAGES[number](path)
    assert not compiler.is_whole(path)
    assert build(source).one() == number and compiler.is_whole(path)


@pytest.mark.parametrize("suffix", [".so", ".sha256"])
def test_an_entry_that_cannot_be_replaced_is_worked_around(cache, suffix):
    source = SOURCE.replace("1", "77")
    blocked = compiler.entry(source, list(C_FLAGS)).with_suffix(suffix)
    blocked.mkdir()
    with pytest.warns(MinigraphWarning, match=f"the cache cannot keep a library.*{blocked}: Is a directory. Remove what is in the way"):
        assert build(source).one() == 77
    assert blocked.is_dir()  # it is not ours to remove


def test_what_cannot_be_loaded_is_a_sentence(cache, monkeypatch, forget, tmp_path):
    """As of a compiler for another machine."""
    fake = tmp_path / "other"
    fake.write_text('#!/bin/sh\nwhile [ $# -gt 1 ]; do [ "$1" = -o ] && echo nonsense > "$2"; shift; done\n')
    fake.chmod(0o755)
    monkeypatch.setenv("CC", str(fake))
    with pytest.raises(CompilerError, match=f"(?s)what `{fake}` built can be used neither in the cache .* nor in a temporary folder .* unset CC"):
        build(SOURCE)


def test_a_cache_here(monkeypatch, tmp_path):
    """The loader takes a name without a folder for one of the system's libraries."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MINIGRAPH_CACHE", ".")
    assert build(SOURCE).one() == 1 and len(list(tmp_path.iterdir())) == 2


def test_two_processes_at_once(cache):
    """Four build the same source at the same time: each gets a whole library."""
    code = f"from minigraph.compiler import build; print(build({SOURCE!r}).one())"
    children = [
        subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(4)
    ]
    assert [child.communicate()[0] for child in children] == ["1\n"] * 4
    assert sorted(path.suffix for path in cache.iterdir()) == [".sha256", ".so"]


@pytest.mark.parametrize("place", ["/proc/self/cache", "a file"])
def test_a_cache_that_cannot_be_written(place, tmp_path, monkeypatch):
    if place == "a file":
        (tmp_path / "file").write_text("")
        place = str(tmp_path / "file")
    elif not os.path.isdir("/proc/self"):
        pytest.skip("there is no /proc here")
    monkeypatch.setenv("MINIGRAPH_CACHE", place)
    assert build(SOURCE).one() == 1
    assert os.stat(cache_folder()).st_mode & 0o077 == 0  # nobody else can put a library there


# ---- bound to arrays -------------------------------------------------------------------------------------------------------------


def test_bound_runs_read_the_arrays_anew():
    executable = CExecutable(plan("x: f32[3]; y = exp(x); return y"))
    x = np.zeros(3, F)
    bound = executable.bind(x=x)
    bound()
    assert (bound.outputs["y"] == 1).all()
    x[...] = 1
    executable(x=np.full(3, 5, F))  # another call in between has memory of its own
    bound()
    assert np.allclose(bound.outputs["y"], np.e)


def test_what_cannot_be_bound():
    executable = CExecutable(plan("x: f32[4]; y = exp(x); return y"))
    with pytest.raises(RunError, match="input 'x' cannot be bound: its elements do not lie in one aligned row"):
        executable.bind(x=np.zeros(8, F)[::2])
    with pytest.raises(RunError, match="input 'x' cannot be bound: it is .*, no array, so every run would copy them"):
        executable.bind(x=list(np.zeros(4, F)))
    executable.bind(x=memoryview(np.zeros(4, F)))  # which shows its array
    with pytest.raises(RunError, match="takes its inputs by name"):
        executable.bind(np.zeros(4, F))
    with pytest.raises(RunError, match="only a plan that is one run of generated launches can be bound"):
        CExecutable(plan("x: f32[4]; y = cumsum(x) {axis=0}; return y")).bind(x=np.zeros(4, F))
    failing = CExecutable(plan("x: f32[3], i: i32[]; y = take(x, i) {axis=0}; return y"))
    with pytest.raises(IndexRunError):
        failing.bind(x=np.zeros(3, F), i=np.array(3, np.int32))()


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_two_callers_at_once(backend):
    """Each gets its own result: an executable runs one call at a time."""
    made = bind(plan("x: f32[200,300]; a = exp(x); b = cumsum(a) {axis=1}; y = neg(b); return y"), backend)
    arrays = [np.full((200, 300), value, F) for value in (0, 1, 2, 3)]
    alone = [made(x=array)["y"] for array in arrays]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(20):
            for got, want in zip(pool.map(lambda array: made(x=array)["y"], arrays), alone):
                assert same_bits(got, want)


def test_bound_ones_run_beside_each_other():
    """Each has an arena of its own."""
    made = bind(plan("x: f32[200,30]; s = sum(x) {axis=[1]}; t = neg(s); y = mul(s, t); z = sum(y) {axis=[0], keepdims=true}; r = add(z, t); return r"), "c")
    assert made.plan.arena_bytes > 0
    arrays = [np.full((200, 30), value, F) for value in (0, 1, 2, 3)]
    bound = [made.bind(x=array) for array in arrays]
    alone = [made(x=array)["r"] for array in arrays]

    def repeat(one):
        for _ in range(300):
            one()

    with ThreadPoolExecutor(5) as pool:
        others = pool.submit(lambda: [same_bits(made(x=arrays[0])["r"], alone[0]) for _ in range(300)])
        list(pool.map(repeat, bound))
        assert all(others.result())
    for one, want in zip(bound, alone):
        assert same_bits(one.outputs["r"], want)


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_a_run_inside_a_run_is_an_error(backend, monkeypatch):
    """Here by what an effect prints to; it must neither wait for itself for ever nor write over what is there."""
    made = bind(plan("x: f32[3]; a = exp(x); p = print(a); y = neg(a); return y"), backend)

    class Screen:
        def write(self, text):
            made(x=np.zeros(3, F))

        def flush(self):
            pass

    monkeypatch.setattr(sys, "stdout", Screen())
    with pytest.raises(RunError, match="running already"):
        made(x=np.ones(3, F))
    monkeypatch.undo()
    assert same_bits(made(x=np.zeros(3, F))["y"], -np.ones(3, F))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_a_fork_during_a_run(backend):
    """The child does not wait for the thread that it left behind."""
    made = bind(plan("x: f32[3]; y = exp(x); return y"), backend)
    with made.lock:
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            os._exit(0 if same_bits(made(x=np.zeros(3, F))["y"], np.ones(3, F)) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert copy.deepcopy(made.lock).lock is not made.lock.lock


def test_threads_give_the_same():
    def network(x, w, b):
        h = np.maximum(x @ w + b, 0)
        return np.exp(h - np.max(h, -1, keepdims=True)), np.tanh(h * 0.01), np.sum(h, 0)

    traced = trace(network, x="f32[4,256]", w="f32[256,70000]", b="f32[70000]")
    rng = np.random.default_rng(0)
    inputs = {
        "x": rng.standard_normal((4, 256), F),
        "w": rng.standard_normal((256, 70000), F),
        "b": rng.standard_normal(70000, F),
    }
    made = make_plan(fuse(traced))
    one, two = (bind(made, "c", threads=threads)(inputs) for threads in (1, 2))
    for name, array in one.items():
        assert np.allclose(array, two[name], rtol=1e-5, atol=1e-5)


# ---- the cases that broke real compilers, and random graphs ------------------------------------------------------------------------


def case_graphs() -> list[tuple[dict, Graph, dict[str, np.ndarray]]]:
    """Every case with its arrays as inputs, as traced and optimized; those that cannot be traced are left out."""
    found = []
    for case in run_cases.load():
        names = tuple(run_cases.arrays_of(case))
        try:
            graph = run_cases.traced_graph(case, names)
        except MinigraphError:
            continue
        for one in dict.fromkeys((graph, optimize(graph).graph)):
            found.append((case, one, run_cases.arrays_of(case)))
    return found


def test_the_cases_in_numpy_and_c():
    found = case_graphs()
    assert len({case["id"] for case, _, _ in found}) > 60
    plans = [make_plan(fuse(graph)) for _, graph, _ in found]
    for (case, graph, arrays), (_, executable) in zip(found, c_batch(plans)):
        for run in (executable, PlanExecutable(executable.plan, poison=True)):
            try:
                got = list(run(arrays).values())
            except MinigraphError as error:
                assert case["expect_error"] and run_cases.is_expected(error, case), (case["id"], error)
                continue
            assert not case["expect_error"] and run_cases.differs(case, got) == "", (case["id"], type(run).__name__)


def test_random_graphs_as_they_are_used():
    """As the fuzzer's, but optimized by the compiler as for use: vectors and reordered loads."""
    cases = [draw(104, index) for index in range(40)]
    for index, findings in enumerate(check_cases(cases, "c", flags=C_FLAGS)):
        assert not findings, (index, findings)


def test_the_fuzzer_notices_a_wrong_plan(monkeypatch):
    """If a gather could write over its table, elements would be gone before they are read; the checker lets it pass."""
    from minigraph import plan as module

    graph = plan(
        "x: i32[4]; i = const([3, 2, 1, 0]); a = cumsum(x) {axis=0}; b = take(a, i) {axis=0}; y = cumsum(b) {axis=0}; return y"
    ).graph
    x = {"x": np.arange(4, dtype=np.int32)}
    assert check_cases([Case(graph, x)], "c") == [[]]
    monkeypatch.setattr(module, "same_elements", lambda launch, name, *rest: name == "a")
    assert {finding.kind for finding in check_cases([Case(graph, x)], "c")[0]} == {"value", "bits"}


def test_the_fuzzer_notices_a_wrong_kernel(monkeypatch):
    """Sums that leave out their last element, and sums along the wrong axis, are found."""
    from minigraph.codegen import rows

    right = rows.CRows.loop
    monkeypatch.setattr(
        rows.CRows,
        "loop",
        lambda self, lines, free: [
            line.replace(f"< {self.lengths[-1]};", f"< {self.lengths[-1] - 1};") for line in right(self, lines, free)
        ],
    )
    case = Case(plan("x: f32[5,5]; y = sum(x) {axis=[1]}; return y").graph, {"x": np.ones((5, 5), F)})
    assert [finding.kind for finding in check_cases([case], "c")[0]] == ["value"]
