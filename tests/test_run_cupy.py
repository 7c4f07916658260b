"""The CuPy back end against NumPy, on the stand-in for CuPy, cuBLAS and the driver."""

from __future__ import annotations

import functools
import json
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cupy_standin import CUDARuntimeError, Gpu
from strategies import one_op, samples

import minigraph as mg
from minigraph import bench_gpu, cli, gpu, shim, timing
from minigraph.device import cublas, kernels, memory, recorded
from minigraph.device.calls import calls
from minigraph.device.fused import Fused
from minigraph.errors import RunError
from minigraph.fusion import ROWS, fuse
from minigraph.fuzz import evaluate
from minigraph.measure import MeasureError, measure
from minigraph.models import compiled, smollm2
from minigraph.ops import OPS, Kind
from minigraph.plan import make_plan
from minigraph.random_graphs import GROWN
from minigraph.recordings import load_recording
from minigraph.run_cupy import MODES, CupyExecutable
from minigraph.run_numpy import IndexRunError
from minigraph.types import DTYPES, same_bits

needs_shim = pytest.mark.skipif(shim.find() is None, reason=shim.why_not())
compiled_modes = [pytest.param(mode, marks=needs_shim) for mode in ("fused", "graph")]
every_mode = pytest.mark.parametrize("mode", ["eager", *compiled_modes])


@pytest.fixture
def card(monkeypatch):
    """A GPU, for one test."""
    yield Gpu().install(monkeypatch)
    gpu.gpu_status.cache_clear()


def attention(x, w, b):
    h = np.tanh(x @ w + b)
    e = np.exp(h - np.max(h, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True), h.T, x


NETWORK = mg.trace(attention, x="f32[3,4]", w="f32[4,5]", b="f32[5]")


def inputs_of(graph, seed=0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {node.name: rng.standard_normal(node.type.shape).astype(np.float32) for node in graph.inputs}


def agree(found: dict, expected: dict) -> None:
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        np.testing.assert_allclose(found[name], array, rtol=1e-5, atol=1e-6)


# ---- values ---------------------------------------------------------------------------------------------------------


@every_mode
@pytest.mark.parametrize("rows", [0, ROWS])
def test_a_network_in_each_mode(card, mode, rows):
    run, results = CupyExecutable(make_plan(fuse(NETWORK, rows=rows)), mode), []
    for seed in range(3):  # a replay with new inputs
        results.append(run(inputs_of(NETWORK, seed)))
    for seed, one in enumerate(results):  # which leaves what the one before gave
        given = inputs_of(NETWORK, seed)
        agree({name: array.get() for name, array in one.items()}, mg.run(NETWORK, given))
    strided = card.module.asarray(np.asfortranarray(given["x"])).transpose(1, 0).copy().transpose(1, 0)
    assert not strided.flags.c_contiguous
    results = run({**given, "x": strided, "b": card.module.asarray(given["b"])})
    assert all(isinstance(array, card.module.ndarray) for array in results.values())
    agree({name: array.get() for name, array in results.items()}, mg.run(NETWORK, given))
    assert card.replays == (4 if mode == "graph" else 0)


def test_every_operation_alone_as_cupy_does_it(card):
    """Bits: the stand-in's CuPy is NumPy, so what differs is how it is called."""
    tried = set()
    for op in (name for name in GROWN if name != "random"):
        for index in range(8):
            found = one_op(op, index)
            if found is None:
                continue
            graph, given, name = found
            values, _, error = evaluate(graph, given)
            run = mg.compile(graph, backend="cupy", mode="eager")
            if error is not None:
                with pytest.raises(type(error) if isinstance(error, mg.MinigraphError) else RunError):
                    run(given)
                continue
            outputs = run(given, to_host=True)
            tried.add(op)
            assert all(same_bits(outputs[public], np.asarray(values[value])) for public, value in graph.outputs), op
    assert len(tried) > 60


def test_every_row_has_a_call_and_few_run_on_the_host(card):
    table = calls(card.module)
    assert table.keys() == OPS.keys()
    hosts = {name for name in OPS if getattr(table[name], "on_the_host", False)}
    assert {"random", "print", "assert_close", "assert_finite"} <= hosts
    plain = (Kind.ELEMENTWISE, Kind.REDUCTION, Kind.LAYOUT)
    assert not [name for name in hosts if OPS[name].kind in plain]


@pytest.mark.parametrize("mode", ["eager", "fused"])
def test_what_cupy_lacks_runs_on_the_host(card, mode):
    graph = mg.parse("""graph g(x: f32[2,32]) -> (y) {
      p = pack(x) {format="q8_0"} : u8[2,34]
      y = unpack(p) {format="q8_0"} : f32[2,32]
      return y = y
    }""")
    given = inputs_of(graph)
    assert same_bits(mg.compile(graph, backend="cupy", mode=mode)(given, to_host=True)["y"], mg.run(graph, given)["y"])
    with pytest.raises(RunError, match="pack runs on the host"):
        mg.compile(graph, backend="cupy", mode="graph")


@every_mode
def test_random_graphs(card, mode):
    for graph, given in samples(60 if mode == "eager" else 9, "cupy"):
        values, _, error = evaluate(graph, given)
        if error is not None or any(OPS[node.op].kind in (Kind.RANDOM, Kind.EFFECT) for node in graph.nodes):
            continue
        found = mg.compile(graph, backend="cupy", mode=mode)(given, to_host=True)
        exact = mode == "eager"
        for public, value in graph.outputs:
            assert (found[public].dtype, found[public].shape) == (values[value].dtype, values[value].shape)
            if exact:
                assert same_bits(found[public], np.asarray(values[value]))


@pytest.mark.parametrize("mode", ["eager", pytest.param("fused", marks=needs_shim)])
def test_draws_and_effects(card, mode, capsys):
    def f(x):
        noise = mg.random_like(x)
        mg.print_value(x, "x is")
        return x + noise

    graph = mg.trace(f, x="f32[3]")
    run, x = mg.compile(graph, backend="cupy", mode=mode), np.ones(3, np.float32)
    assert same_bits(run(x=x, seed=5, to_host=True)["out"], mg.run(graph, x=x, seed=5)["out"])
    assert capsys.readouterr().out.count("x is: [1. 1. 1.]") == 2
    with pytest.raises(RunError, match="seed"):
        run(x=x, seed=-1)


# ---- memory, streams, captures --------------------------------------------------------------------------------------

CACHE = mg.trace(lambda cache, row, at: (mg.update_slice(cache, row, at), (cache * 2.0).sum()),
                 cache="f32[4,3]", row="f32[1,3]", at="i32[]")  # fmt: skip
STEP = mg.trace(lambda cache, row, at: mg.update_slice(cache, np.sin(row), at),
                cache="f32[4,3]", row="f32[1,3]", at="i32[]")  # fmt: skip


def scalar(i):
    return np.array(i, np.int32)


@every_mode
def test_a_donated_array_is_updated_in_place(card, mode):
    run = mg.compile(STEP, donate=["cache"], backend="cupy", mode=mode)
    host, row = np.zeros((4, 3), np.float32), np.ones((1, 3), np.float32)
    first = run(cache=host, row=row, at=scalar(1))["out"]
    assert not host.any()  # a NumPy array is copied, and the copy updated
    again = run(cache=first, row=2 * row, at=scalar(2))["out"]
    assert again is first
    other = run(cache=np.full((4, 3), 7, np.float32), row=row, at=scalar(0))["out"]
    expected = np.zeros((4, 3), np.float32)
    expected[1], expected[2] = np.sin(np.float32(1)), np.sin(np.float32(2))
    np.testing.assert_allclose(first.get(), expected, rtol=1e-6)  # the second cache has not touched the first
    assert other.get()[0, 0] == pytest.approx(np.sin(1)) and (other.get()[1:] == 7).all()
    if mode == "graph":
        assert len(run.runner.recordings) == 2
        caches = [card.module.asarray(host) for _ in range(recorded.RECORDINGS + 1)]
        for one in caches:
            run(cache=one, row=row, at=scalar(0))
        assert len(run.runner.recordings) == recorded.RECORDINGS
        kept = run(cache=first, row=row, at=scalar(0), to_host=True)["out"][2]
        np.testing.assert_allclose(kept, expected[2], rtol=1e-6)
    with pytest.raises(RunError, match="do not lie in one aligned row"):
        run(cache=card.module.asarray(np.zeros((3, 4), np.float32)).transpose(1, 0), row=row, at=scalar(0))


@needs_shim
def test_a_view_of_a_donated_array_is_the_right_one_s(card):
    graph = mg.trace(lambda cache, row, at: (mg.update_slice(cache, row, at), cache[:1]),
                     cache="f32[4,3]", row="f32[1,3]", at="i32[]")  # fmt: skip
    run = mg.compile(graph, donate=["cache"], backend="cupy", mode="graph")
    caches = [card.module.asarray(np.full((4, 3), number, np.float32)) for number in range(2)]
    for number in (0, 1, 0, 1):
        found = run(cache=caches[number], row=np.full((1, 3), 9, np.float32), at=scalar(2), to_host=True)
        assert (found["out.1"] == number).all() and (found["out.0"][2] == 9).all()


@every_mode
def test_an_update_that_must_not_be_in_place(card, mode):
    run = mg.compile(CACHE, donate=["cache"], backend="cupy", mode=mode)
    given = {"cache": np.ones((4, 3), np.float32), "row": np.full((1, 3), 5, np.float32), "at": scalar(3)}
    agree(run(given, to_host=True), mg.run(CACHE, given))


@every_mode
def test_a_bad_index_is_an_error_and_the_next_call_works(card, mode):
    graph = mg.trace(lambda table, i, row, at: (mg.take(table, i), mg.update_slice(table, row, at)),
                     table="f32[4,3]", i="i64[2]", row="f32[2,3]", at="i32[]")  # fmt: skip
    run = mg.compile(graph, backend="cupy", mode=mode)
    good = inputs_of(graph) | {"i": np.array([-1, 3]), "at": scalar(2)}
    agree(run(good, to_host=True), mg.run(graph, good))
    with pytest.raises(IndexRunError, match="take: an index is out of range"):
        run({**good, "i": np.array([0, 4])})
    with pytest.raises(IndexRunError, match="update_slice: an index is out of range"):
        run({**good, "at": scalar(3)})
    agree(run(good, to_host=True), mg.run(graph, good))
    bound = run.bind({**good, "i": np.array([-5, 0])})
    bound()  # says nothing: it does not wait
    with pytest.raises(IndexRunError):
        bound.wait()


@pytest.mark.parametrize("mode", ["eager", pytest.param("fused", marks=needs_shim)])
def test_a_bad_index_is_told_of_the_product_that_reads_it(card, mode):
    """Not of what follows it, after which the launch is named."""
    graph = mg.parse("""graph g(x: f32[1,16], v: f32[2,16,16], i: i32[2], s: i32[3]) -> (y) {
      m = block_matmul(x, v, i, s)
      y = tanh(m)
      return y
    }""")
    run = mg.compile(graph, backend="cupy", mode=mode)
    good = inputs_of(graph) | {"i": np.zeros(2, np.int32), "s": np.array([0, 1, 2], np.int32)}
    agree(run(good, to_host=True), mg.run(graph, good))
    with pytest.raises(IndexRunError, match=r"\n +m = block_matmul\(") as caught:
        run({**good, "s": np.array([0, 2, 1], np.int32)})
    assert "tanh" not in str(caught.value)


@pytest.mark.parametrize("mode", ["eager", pytest.param("fused", marks=needs_shim)])
def test_a_negative_power_of_integers_is_an_error(card, mode):
    graph = mg.parse("graph g(x: i32[2], y: i32[2]) -> (z) {\n  z = pow(x, y) : i32[2]\n  return z = z\n}")
    run, x = mg.compile(graph, backend="cupy", mode=mode), np.array([2, 3], np.int32)
    assert run(x=x, y=x, to_host=True)["z"].tolist() == [4, 27]
    with pytest.raises(RunError, match="negative integer powers"):
        run(x=x, y=-x)


@every_mode
def test_bound_arrays(card, mode):
    given = inputs_of(NETWORK)
    x = card.module.asarray(given["x"])
    bound = mg.compile(NETWORK, backend="cupy", mode=mode).bind({**given, "x": x})
    first = bound.outputs
    for number in range(3):
        x[...] = card.module.asarray(given["x"] + np.float32(number))
        bound()
        expected = mg.run(NETWORK, {**given, "x": given["x"] + np.float32(number)})
        agree({name: array.get() for name, array in bound.outputs.items()}, expected)
    assert mode == "eager" or bound.outputs is first
    bound.wait()


@every_mode
@pytest.mark.parametrize("bound", [False, True])
def test_a_second_stream_waits_for_the_first(card, mode, bound, monkeypatch):
    cupy, run = card.module, mg.compile(NETWORK, backend="cupy", mode=mode)
    given = [inputs_of(NETWORK, seed) for seed in (1, 2, 3)]
    bounds = [run.bind(one) for one in given]

    def in_streams(dice):
        card.dice, results = dice, []
        streams = [cupy.cuda.Stream(non_blocking=True) for _ in given]
        for number, stream in enumerate(streams):
            with stream:
                if bound:
                    bounds[number]()
                results.append(bounds[number].outputs if bound else run(given[number]))
        for stream, one, result in list(zip(streams, given, results))[::-1]:  # the last one is waited for first
            with stream:
                agree({name: array.get() for name, array in result.items()}, mg.run(NETWORK, one))

    for dice in (None, *map(random.Random, range(6))):
        in_streams(dice)
    if mode != "eager":  # which has no memory of its own to share
        monkeypatch.setattr(CupyExecutable, "order", lambda self: None)
        with pytest.raises(AssertionError):
            for dice in map(random.Random, range(6)):
                in_streams(dice)


@every_mode
def test_bound_runs_are_waited_for(card, mode):
    bound = mg.compile(NETWORK, backend="cupy", mode=mode).bind(inputs_of(NETWORK))
    bound()
    assert bound.outputs["out.0"].host.tobytes() == b"\xa5" * 60  # nothing has run yet
    bound.wait()
    agree({name: array.host for name, array in bound.outputs.items()}, mg.run(NETWORK, inputs_of(NETWORK)))


@every_mode
def test_slices_and_constants(card, mode):
    """Pointers into the middle of a buffer, also with steps and backwards; a constant that is an output, one that a
    library reads, and one that is only a number in the source."""
    table = np.arange(12, dtype=np.float32).reshape(3, 4)

    def f(x):
        y = np.sin(x)
        return y[1:] * 2.0 + x[:-1], x[::-1, 1::2] + 1.0, table, np.argmax(table * 1.0 + x[2, 3], axis=1), x[1:, 2]

    graph = mg.trace(f, x="f32[3,4]")
    run = mg.compile(graph, backend="cupy", mode=mode)
    for seed in range(2):
        agree(run(inputs_of(graph, seed), to_host=True), mg.run(graph, inputs_of(graph, seed)))


@needs_shim
def test_a_new_recording_waits_for_the_last_run(card):
    """Libraries run once before a recording, in the arena that the last run may still use."""
    def f(cache, x, at):
        y = x
        for _ in range(6):
            y = np.tanh(y @ x)
        return mg.update_slice(cache, y, at)

    graph = mg.trace(f, cache="f32[8,4]", x="f32[4,4]", at="i32[]")
    plan = make_plan(fuse(graph, rows=0), ["cache"])
    for seed in range(6):
        card.dice = random.Random(seed)
        run, x, found = CupyExecutable(plan, "graph"), inputs_of(graph, seed)["x"], []
        run.runner.status.nodes = []  # so that no call waits for its end
        for at in (0, 4):
            given = {"cache": np.zeros((8, 4), np.float32), "x": x + np.float32(at / 8), "at": scalar(at)}
            found.append((run(given), mg.run(graph, given)))
        for result, expected in found:
            agree({name: array.get() for name, array in result.items()}, expected)


@needs_shim
def test_constants_are_there_before_another_stream_reads_them(card):
    weights = np.random.default_rng(0).standard_normal((4, 5)).astype(np.float32)
    graph = mg.trace(lambda x: np.tanh(x @ weights), x="f32[3,4]")
    run, given = mg.compile(graph, backend="cupy"), inputs_of(graph)
    with card.module.cuda.Stream(non_blocking=True):
        agree(run(given, to_host=True), mg.run(graph, given))


@needs_shim
def test_a_replay_allocates_nothing_but_results_and_launches_nothing_else(card):
    run = mg.compile(NETWORK, backend="cupy", mode="graph")
    given = {name: card.module.asarray(array) for name, array in inputs_of(NETWORK).items()}
    run(given)
    pool, launches, replays = run.runner.memory.pool, card.launches, card.replays
    before = pool.taken, card.used
    for _ in range(5):
        run(given)
    card.module.cuda.get_current_stream().synchronize()
    run(given)
    assert (pool.taken, card.used) == before and card.replays == replays + 6
    copies = len(NETWORK.inputs) + len(NETWORK.outputs)
    assert card.launches == launches + 6 * copies


@needs_shim
def test_a_capture_that_misses_a_launch_is_seen(card, monkeypatch):
    """The stand-in's own test: a launch in another stream than the captured one is in no replay."""
    issue = Fused.issue

    def outside(self, steps, memory, seed=0, kernels=True):
        issue(self, steps[:-1], memory, seed, kernels)
        if kernels:
            with card.streams[0]:
                issue(self, steps[-1:], memory, seed, kernels)

    monkeypatch.setattr(Fused, "issue", outside)
    run = mg.compile(NETWORK, backend="cupy", mode="graph")
    run(inputs_of(NETWORK, 0))
    with pytest.raises(AssertionError):
        agree(run(inputs_of(NETWORK, 1), to_host=True), mg.run(NETWORK, inputs_of(NETWORK, 1)))


@needs_shim
def test_what_a_capture_cannot_hold_is_told(card, monkeypatch):
    draw = mg.trace(lambda x: x + mg.random_like(x), x="f32[3]")
    with pytest.raises(RunError, match='random runs on the host.*take mode="fused"'):
        mg.compile(draw, backend="cupy", mode="graph")
    run = mg.compile(NETWORK, backend="cupy", mode="graph")
    # CuPy's own product, memory from the common pool, waiting: each ends the capture and leaves the stream usable
    for change in (lambda a, b, out: card.module.matmul(a, b, out=out), lambda a, b, out: card.module.empty(10**6),
                   lambda a, b, out: a.get()):  # fmt: skip
        with monkeypatch.context() as patch:
            recording = lambda stream=run.runner.stream: stream.recording is not None  # noqa: E731
            patch.setattr(run.runner, "product", lambda a, b, out=None: recording() and change(a, b, out))
            patch.setattr(run.runner.memory, "pool", card.pool)
            with pytest.raises(RunError, match="a CUDA graph cannot hold this(.|\n)*matmul"):
                run(inputs_of(NETWORK))
    agree(run(inputs_of(NETWORK), to_host=True), mg.run(NETWORK, inputs_of(NETWORK)))


@needs_shim
def test_libraries_inside_a_capture(card):
    """Temporary memory of a library is the plan's own, and still so after others have allocated."""
    def f(x, w, y):
        return mg.conv2d(x, w), np.argmax(np.cumsum(np.matmul(y, y.transpose(0, 2, 1)), axis=1), axis=-1)

    graph = mg.trace(f, x="f32[1,2,5,5]", w="f32[3,2,3,3]", y="f32[2,3,4]")
    run = mg.compile(graph, backend="cupy", mode="graph")
    for seed in range(3):
        given = inputs_of(graph, seed)
        agree(run(given, to_host=True), mg.run(graph, given))
        others = [card.module.asarray(np.full(size, seed, np.float32)) for size in (10, 100, 200, 500)]  # noqa: F841
        card.module.cuda.get_current_stream().synchronize()


# ---- what goes wrong ------------------------------------------------------------------------------------------------


@every_mode
def test_too_little_memory_is_told_in_bytes(card, mode):
    weights = np.ones((256, 256), np.float32)
    graph = mg.trace(lambda x: np.sin(x @ weights).sum(axis=-1) * 2.0, x="f32[256,256]")
    card.total = card.used + 300_000
    with pytest.raises(RunError, match=r"not enough memory on the GPU: the plan needs .*constants 262 kB.* of .* free"):
        mg.compile(graph, backend="cupy", mode=mode)(inputs_of(graph))
    wants = memory.needs(make_plan(graph))
    assert (wants["inputs"], wants["constants"], wants["outputs"]) == (2**18, 2**18 + 4, 1024)
    card.total = 1 << 30
    agree(mg.compile(graph, backend="cupy", mode=mode)(inputs_of(graph), to_host=True), mg.run(graph, inputs_of(graph)))


def test_memory_comes_back(card):
    before = card.used
    for _ in range(3):
        mg.compile(mg.trace(lambda x: np.sin(x) + x.sum(), x="f32[1000]"), backend="cupy", mode="eager")
    card.pool.free_all_blocks()
    assert card.used <= before


@every_mode
def test_a_failing_launch_names_its_node(card, mode):
    run = mg.compile(NETWORK, backend="cupy", mode=mode)
    run(inputs_of(NETWORK))
    card.refuses["queue"] = CUDARuntimeError("cudaErrorLaunchFailure: unspecified launch failure")
    with pytest.raises((RunError, CUDARuntimeError)):
        run({name: card.module.asarray(array) for name, array in inputs_of(NETWORK).items()})
    if mode != "graph":
        with pytest.raises(RunError, match=r"CuPy fails: cudaErrorLaunchFailure.*\n +\S+ = matmul\("):
            run(inputs_of(NETWORK))


def test_wrong_calls_are_sentences(card):
    with pytest.raises(RunError, match="no mode 'grph': did you mean 'graph'"):
        mg.compile(NETWORK, backend="cupy", mode="grph")
    run, given = mg.compile(NETWORK, backend="cupy", mode="eager"), inputs_of(NETWORK)
    with pytest.raises(RunError, match=r"input 'x' is f32\[3,4\], but an array float64"):
        run({**given, "x": card.module.asarray(np.zeros((3, 4)))})
    far = card.module.asarray(given["x"])
    card.device_of[id(far)] = 1
    with pytest.raises(RunError, match="input 'x' lies on GPU 1, and this plan on GPU 0"):
        run({**given, "x": far})
    card.device = 1
    with pytest.raises(RunError, match="lives on GPU 0, which is not the current one"):
        run(given)
    card.device = 0
    again = mg.compile(STEP, donate=["cache"], backend="cupy", mode="eager")
    cache = card.module.asarray(np.zeros((4, 3), np.float32))
    with pytest.raises(RunError, match="share memory"):
        again(cache=cache, row=cache[1:2], at=scalar(0))


@needs_shim
def test_how_kernels_are_compiled(card):
    graph = mg.trace(lambda x: x * 2.5 + 1.25, x="f32[7]")
    mg.compile(graph, backend="cupy")
    assert card.options[-1] == ("--gpu-architecture=sm_80", "--fmad=false")
    mg.compile(graph, backend="cupy", fast="contract")
    assert card.options[-1] == ("--gpu-architecture=sm_80",)
    count = len(card.options)
    mg.compile(graph, backend="cupy")
    assert len(card.options) == count  # once for each source
    card.capability = "120"  # newer than the compiler: PTX
    mg.compile(graph, backend="cupy")
    assert card.options[-1][0] == "--gpu-architecture=compute_90"
    card.capability = "70"
    with pytest.raises(RunError, match="compute capability 7.0, and this NVRTC compiles for 7.5"):
        mg.compile(graph, backend="cupy")
    card.capability, card.refuses["compile"] = "80", card.module.cuda.nvrtc.NVRTCError("NVRTC_ERROR_COMPILATION (6)")
    with pytest.raises(RunError, match='NVRTC refuses a generated kernel.*\n.*identifier "x" is undefined'):
        kernels.compile(card.module, "other source", 80, ())


DRIVER = "cudaErrorInsufficientDriver: CUDA driver version is insufficient for CUDA runtime version"


@pytest.mark.parametrize("error, driver, cuda, sentence", [
    (DRIVER, "", "13.2", "there is no NVIDIA driver here"),
    (DRIVER, "12.4", "13.2", "up to 12.4, but this CuPy was built for CUDA 13.2: install cupy-cuda12x in its place"),
    (DRIVER, "13.0", "13.2", "built for CUDA 13.2: install a newer driver"),
    ("cudaErrorNoDevice: no CUDA-capable device is detected", "13.0", "13.2", "sees no GPU"),
    ('Failure finding "libnvrtc.so.13 or libnvrtc.so.12": No such file', "13.0", "13.2", "install nvidia-cuda-nvrtc"),
    ('Failure finding "libnvrtc.so.12": No such file', "12.8", "12.9", "install nvidia-cuda-nvrtc-cu12"),
    ('Failure finding "libcublasLt.so.13"', "13.0", "13.2", "install nvidia-cublas"),
    ('catastrophic error: cannot open source file "cuda_fp16.h"', "13.0", "13.2", "install nvidia-cuda-runtime"),
    ("Out of memory allocating 512 bytes", "13.0", "13.2", "no memory left"),
    ("cudaErrorUnknown: unknown\nmore", "13.0", "13.2", r"CuPy does not work \(cudaErrorUnknown: unknown\)"),
])  # fmt: skip
def test_why_there_is_no_gpu(error, driver, cuda, sentence):
    import re

    assert re.search(sentence, gpu.explain(RuntimeError(error), driver, cuda))


def test_status_of_the_machine(card):
    found = gpu.gpu_status()
    assert found == gpu.Status(True, "", "Stand-in GPU", 1, "13.1", "13.0", "14.2.0")
    assert gpu.gpu_status() is found and timing.gpu_here() == ""
    card.refuses["queue"] = CUDARuntimeError("cudaErrorNoDevice: no CUDA-capable device is detected")
    gpu.gpu_status.cache_clear()
    with pytest.raises(RunError, match="needs CuPy and an NVIDIA GPU: the NVIDIA driver sees no GPU\n.*doctor"):
        mg.compile(NETWORK, backend="cupy")


FAKE = """
import numpy
ones, __version__ = numpy.ones, "14.2.0"
class runtime:
    getDeviceCount, getDevice = staticmethod(lambda: 2), staticmethod(lambda: 0)
    driverGetVersion = runtimeGetVersion = staticmethod(lambda: 13000)
    getDeviceProperties = staticmethod(lambda number: {"name": b"Fake GPU"})
class cuda:
    runtime = runtime
"""


def test_doctor_asks_in_another_process(tmp_path, monkeypatch):
    from minigraph import doctor

    def row(text):
        (tmp_path / "cupy.py").write_text(text)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        monkeypatch.setattr(doctor, "nvidia_gpu", lambda: ("", 0))
        monkeypatch.setattr(doctor.importlib.util, "find_spec", lambda name: True)
        return doctor.cupy_row()

    assert (row(FAKE).status, row(FAKE).detail) == ("ok", "CuPy 14.2.0 on Fake GPU and 1 more")
    assert row("raise ImportError('libcuda.so.1: cannot open shared object file')").detail == (
        "CuPy is installed, but CuPy does not import (libcuda.so.1: cannot open shared object file)")
    assert row("import os\nos._exit(3)").status == "optional"
    done = subprocess.run([sys.executable, "-I", Path(gpu.__file__)], capture_output=True, text=True)
    assert done.stdout.count("\n") == 1 and done.returncode == (0 if "CuPy 1" in done.stdout else 1)


# ---- cuBLAS ---------------------------------------------------------------------------------------------------------


def column_major(call: cublas.Gemm, a, b, size: int) -> np.ndarray:
    """The calls' meaning, element by element: ``a`` and ``b`` are flat arrays."""
    c = np.full(size, np.nan)
    for number in range(call.count):
        for i in range(call.m):
            for j in range(call.n):
                left = [a[call.a + number * call.step_a + (k + i * call.lda if call.transpose_a else i + k * call.lda)]
                        for k in range(call.k)]  # fmt: skip
                right = [b[call.b + number * call.step_b + (j + k * call.ldb if call.transpose_b else k + j * call.ldb)]
                         for k in range(call.k)]  # fmt: skip
                c[call.c + number * call.step_c + i + j * call.ldc] = np.dot(left, right)
    return c


def strided(rng: random.Random, shape: tuple[int, ...]) -> np.ndarray:
    """An array of this shape that lies in memory in some order, with gaps or repeated axes."""
    order = rng.sample(range(len(shape)), len(shape))
    wide = [shape[axis] + rng.choice((0, 0, 3)) for axis in order]
    array = np.random.default_rng(rng.randrange(2**32)).integers(-4, 5, wide).astype(np.float64)
    array = array[tuple(slice(0, shape[axis]) for axis in order)].transpose(np.argsort(order))
    if len(shape) > 2 and rng.random() < 0.3:
        array = np.broadcast_to(array[:1], shape)
    return array


def test_products_as_calls_of_cublas():
    rng, direct = random.Random(0), 0
    for _ in range(300):
        m, k, n, batch = rng.randint(1, 4), rng.randint(1, 4), rng.randint(1, 4), rng.choice(((), (2,), (2, 3), (1, 2)))
        a_shape = (k,) if rng.random() < 0.1 else (*rng.choice((batch, batch, ())), m, k)
        b_shape = (k,) if rng.random() < 0.1 else (*rng.choice((batch, batch, tuple(1 for _ in batch), ())), k, n)
        a, b = strided(rng, a_shape), strided(rng, b_shape)
        expected = a @ b
        outer = tuple(rng.sample(range(expected.ndim - 1), expected.ndim - 1)) if expected.ndim else ()  # rows stay rows
        order = (*outer, *range(expected.ndim - 1, expected.ndim))[:expected.ndim]
        stored = np.empty([expected.shape[axis] for axis in order]).transpose(np.argsort(order)) if expected.ndim else np.empty(())
        found = cublas.gemms(a.shape, cublas.in_elements(a), b.shape, cublas.in_elements(b), cublas.in_elements(stored))
        if found is None:
            continue
        direct += 1
        flat = [np.lib.stride_tricks.as_strided(one, (4000,), (8,)) for one in (b, a)]  # the operands change places
        result = np.full(expected.size, np.nan)
        for call in found:
            assert call.lda >= max(1, call.k if call.transpose_a else call.m)
            assert call.ldb >= max(1, call.n if call.transpose_b else call.k) and call.ldc >= max(1, call.m)
            part = column_major(call, *flat, expected.size)
            result = np.where(np.isnan(part), result, part)
        assert np.array_equal(result, expected.transpose(order).ravel())
    assert direct > 150


def test_a_dense_operand_needs_no_copy_and_one_batch_one_call():
    shape = (2, 3, 5, 4)
    found = cublas.gemms(shape, (60, 20, 4, 1), (2, 3, 4, 6), (72, 24, 6, 1))
    assert [(call.count, call.m, call.n, call.k) for call in found] == [(6, 6, 5, 4)]
    assert len(cublas.gemms(shape, (60, 20, 4, 1), (4, 6), (6, 1))) == 1  # one matrix for all
    assert len(cublas.gemms(shape, (60, 20, 4, 1), (2, 1, 4, 6), (24, 24, 6, 1))) == 2  # each for three
    assert cublas.gemms((5, 4), (8, 2), (4, 6), (6, 1)) is None


@needs_shim
def test_products_in_a_graph(card):
    """All that cuBLAS cannot read at once, transposed, broadcast, of other types, of nothing."""
    cases = [((3, 4), (4, 5)), ((4,), (4,)), ((4,), (4, 5)), ((2, 3, 4), (4,)), ((2, 1, 3, 4), (3, 4, 2)),
             ((0, 4), (4, 2)), ((3, 0), (0, 2))]  # fmt: skip
    for dtype in ("f32", "f64", "f16", "i32"):
        for a, b in cases:
            text = ",".join(map(str, a)), ",".join(map(str, b))
            graph = mg.trace(lambda x, y: np.matmul(x, y), x=f"{dtype}[{text[0]}]", y=f"{dtype}[{text[1]}]")
            rng = np.random.default_rng(0)
            given = {node.name: rng.integers(-3, 4, node.type.shape).astype(DTYPES[dtype]) for node in graph.inputs}
            run = CupyExecutable(make_plan(fuse(graph, rows=0)), "graph")
            assert same_bits(run(given, to_host=True)["out"], mg.run(graph, given)["out"]), (dtype, a, b)
    graph = mg.trace(lambda x, y: x.T[::2] @ y[:, ::2].T, x="f32[3,4]", y="f32[5,6]")
    given = {name: np.round(array * 4) for name, array in inputs_of(graph).items()}
    run = CupyExecutable(make_plan(fuse(graph, rows=0)), "graph")
    assert same_bits(run(given, to_host=True)["out"], mg.run(graph, given)["out"])


def test_cublas_errors_are_sentences(card, monkeypatch):
    with pytest.raises(RunError, match="cuBLAS fails: invalid value"):
        cublas.check(7)
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "cuda", None)
    with pytest.raises(RunError, match="needs cuBLAS, and none is found: install nvidia-cublas-cu9"):
        cublas.load(9)


# ---- the benchmark --------------------------------------------------------------------------------------------------

TINY = bench_gpu.Setting(seconds=1e-3, kernels=(1, 3), copies=(1024,), adds=(1, 16), chains=(7,), layers=2, width=8,
                         block=8, past=3, tokens=5, model=lambda: (smollm2.tiny(), [1, 2, 3]))  # fmt: skip


@needs_shim
def test_every_section_of_the_benchmark(card, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(bench_gpu, "bench_gpu", functools.partial(bench_gpu.bench_gpu, TINY))
    monkeypatch.setattr("minigraph.measure.ask", lambda command: (0, "580.65.06\n"))
    path = tmp_path / "mine.json"
    assert cli.main(["bench", "gpu", "--out", str(path)]) == 0
    printed = capsys.readouterr()
    recording = load_recording(path)
    tables = recording.tables
    assert list(tables) == list(bench_gpu.SECTIONS) and all(name in printed.out for name in tables)
    assert "SmolLM2 decode: done in" in printed.err
    assert recording.machine == {"name": "Stand-in GPU", "driver": "580.65.06", "cuda": "13.0", "cupy": "14.2.0"}
    assert recording.label.startswith("recorded on Stand-in GPU")
    for rows in tables.values():
        assert not any("note" in row for row in rows)
        assert all(row[name] > 0 for row in rows for name in ("seconds", "CuPy", "graph", "issue") if name in row)
    launches = [row["launches"] for row in tables["MLP at batch 1"]]
    assert launches == [8, 8, 8, 4, 4, 2, 2]  # A11's 128, 64 and 32, for two layers
    networks = tables["MLP at batch 1"] + tables["transformer layer at batch 1"]
    assert max(row["error"] for row in networks) < 1e-5
    assert [row["same tokens"] for row in tables["SmolLM2 decode"]] == [True] * 4
    shown = measure("add over sizes", needs="gpu", folder=tmp_path)
    assert shown.source == recording.label and shown.column("elements") == [1, 16]
    monkeypatch.setattr(bench_gpu, "bench_gpu", lambda tell: {"copy bandwidth": bench_gpu.copy_bandwidth(TINY)})
    assert cli.main(["bench", "gpu", "--json"]) == 0
    assert [row["bytes"] for row in json.loads(capsys.readouterr().out)["tables"]["copy bandwidth"]] == [1024]


@needs_shim
def test_a_section_that_fails_does_not_end_the_benchmark(card, monkeypatch):
    def fails(setting):
        raise RunError("no such luck\nmore")

    monkeypatch.setitem(bench_gpu.SECTIONS, "add over sizes", fails)
    said: list[str] = []
    tables = bench_gpu.bench_gpu(TINY, ("add over sizes", "copy bandwidth"), said.append)
    assert list(tables) == ["copy bandwidth", "not measured"] and "no such luck" in said[0]
    assert tables["not measured"] == [{"table": "add over sizes", "why": "no such luck"}]
    monkeypatch.setattr(Fused, "product", lambda *args, **kwargs: 1 / 0)  # one way of several
    rows = bench_gpu.bench_gpu(TINY, ["MLP at batch 1"])["MLP at batch 1"]
    assert ["note" in row for row in rows] == [False, False, False, True, False, False, False]
    card.total = card.used + 40_000
    sizes = bench_gpu.Setting(seconds=1e-3, chains=(7, 10**6))
    assert [row["elements"] for row in bench_gpu.chain_over_sizes(sizes)] == [7]


@needs_shim
def test_the_command_line_runs_a_graph_on_a_gpu(card, tmp_path, capsys):
    (tmp_path / "a.mg").write_text("graph g(x: f32[3]) -> (y) {\n  y = mul(x, x) : f32[3]\n  return y = y\n}\n")
    assert cli.main(["run", str(tmp_path / "a.mg"), "--input", "x=[1,2,3]", "--backend", "cupy"]) == 0
    assert capsys.readouterr().out == "y: f32[3]\n[1. 4. 9.]\n"


def test_without_a_gpu_the_benchmark_says_so(monkeypatch, capsys, tmp_path):
    monkeypatch.setitem(sys.modules, "cupy", None)
    gpu.gpu_status.cache_clear()
    assert cli.main(["bench", "gpu", "--out", str(tmp_path / "x.json")]) == 1
    assert "nothing can be timed on a GPU: CuPy is not installed" in capsys.readouterr().err
    with pytest.raises(MeasureError):
        bench_gpu.bench_gpu()
    gpu.gpu_status.cache_clear()
    for arguments, sentence in ((["bench", "gpu", "--out", "x.txt"], "must end in .json"),
                                (["bench", "passes", "--out", "x.json"], "it goes with gpu"),
                                (["bench", "gpu", "--out", "nowhere/x.json"], "no such folder")):  # fmt: skip
        assert cli.main(arguments) == 2
        assert sentence in capsys.readouterr().err


@needs_shim
def test_a_decode_step_has_one_recording_and_updates_the_cache_in_place(card):
    weights = smollm2.tiny()
    graph = mg.optimize(compiled.decode_graph(weights)).graph
    names = [node.name for node in graph.inputs if node.name.startswith("cache.")]
    cache = [card.module.asarray(array) for array in smollm2.zero_cache(weights)]
    run = CupyExecutable(make_plan(fuse(graph), names), "graph")
    expected = smollm2.zero_cache(weights)
    for position in range(3):
        logits, *given = run({"token": scalar(1), "position": scalar(position), **dict(zip(names, cache))}).values()
        want, *expected = smollm2.decode(weights, scalar(1), scalar(position), tuple(expected))
        np.testing.assert_allclose(logits.get(), want, rtol=1e-4, atol=1e-5)
        assert all(one is other for one, other in zip(given, cache))
    assert len(run.runner.recordings) == 1 and isinstance(run.runner, MODES["graph"])
