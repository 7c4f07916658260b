"""What chapter 07 counts and times: the network of 32 layers, the device with a queue, the columns of the model."""

import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest

import minigraph as mg
from minigraph.launch_model import DEVICE, HOST
from minigraph.ops import OPS
from minigraph.teach import api, launches
from minigraph.teach.devices import GPU, QueuedDevice, device_here, large_matrix, watch
from minigraph.teach.examples import mlp, mlp_graph
from minigraph.teach.exercises import REFUTATIONS, ch07
from minigraph.teach.score import scoreboard
from minigraph.timing import gpu_here
from minigraph.types import same_bits


@pytest.fixture(autouse=True)
def fresh_work(tmp_path, monkeypatch):
    monkeypatch.setenv("MINIGRAPH_WORK", str(tmp_path))


def arrays_for(graph):
    draw = np.random.default_rng(0)
    return {node.name: draw.standard_normal(node.type.shape).astype(np.float32) for node in graph.inputs}


def test_the_network_is_the_function():
    graph = mlp_graph(layers=3, width=8, batch=2)
    arrays = arrays_for(graph)
    layers = [[arrays[f"{kind}{i}"] for kind in "wbs"] for i in range(3)]
    assert same_bits(mg.run(graph, arrays)["y"], mlp(arrays["x"], layers))


@pytest.mark.parametrize("rows, switch, count", [
    (1, {"enabled": False}, 128), (1, {"rows": 0}, 64), (1, {}, 32), (64, {}, 64)])
def test_32_layers_of_4_operations(rows, switch, count):
    graph = mlp_graph(batch=rows)
    assert len(mg.make_plan(mg.fuse(graph, **switch)).launches) == count
    assert mg.stats(graph).launches == 128


def test_a_queued_device_works_later_and_in_order():
    device, may_go, seen = QueuedDevice(), threading.Event(), []
    device.issue(lambda: (may_go.wait(10), seen.append("first")))
    device.issue(lambda: seen.append("second"))
    assert seen == []  # issue came back, and nothing is done
    may_go.set()
    device.wait()
    assert seen == ["first", "second"]


def test_a_watched_device_says_who_was_busy_when():
    events = watch({"a": lambda: None, "b": lambda: None})
    assert sorted((event.row, event.name) for event in events) == [
        (DEVICE, "a"), (DEVICE, "b"), (HOST, "a"), (HOST, "b"), (HOST, "wait")]
    worked = [event for event in events if event.row == DEVICE]
    waited = next(event for event in events if event.name == "wait")
    assert worked[0].end <= worked[1].start and worked[1].end <= waited.end


def test_the_device_here_is_a_thread_without_a_gpu():
    if gpu_here():
        assert isinstance(device_here(), QueuedDevice)
    assert large_matrix(QueuedDevice()).shape == (1024, 1024)


def test_a_gpu_has_the_same_two_calls(monkeypatch):
    """With a stand-in for CuPy: it notes when somebody waits, and where arrays are made."""
    seen = []
    stream = SimpleNamespace(synchronize=lambda: seen.append("wait"))
    cuda = SimpleNamespace(get_current_stream=lambda: stream)
    cupy = SimpleNamespace(cuda=cuda, ones=lambda shape, dtype: (shape, dtype))
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setattr("minigraph.teach.devices.gpu_here", lambda: "")
    device = device_here()
    assert isinstance(device, GPU)
    device.issue(lambda: seen.append("job"))
    device.wait()
    assert seen == ["job", "wait"]
    assert large_matrix(device) == ((8192, 8192), "float32")


def test_compiled_programs_give_what_numpy_gives_or_a_sentence(monkeypatch, capsys):
    graph = mlp_graph(layers=2, width=8)
    arrays = arrays_for(graph)
    want = mg.run(graph, arrays)["y"]
    for program in launches.compiled(graph, **arrays).values():
        program()
        np.testing.assert_allclose(program.outputs["y"], want, rtol=1e-5)
    monkeypatch.setattr("minigraph.compiler.find_compiler", lambda: None)
    capsys.readouterr()
    assert launches.compiled(mlp_graph(layers=1, width=9), **arrays_for(mlp_graph(layers=1, width=9))) == {}
    assert "no C compiler" in capsys.readouterr().out


def test_the_gpu_benchmark_has_the_tables_that_the_chapter_shows():
    """A recording is looked up by these names; the model's rows have the same columns."""
    from minigraph import bench_gpu

    assert {"add over sizes", "MLP at batch 1"} <= set(bench_gpu.SECTIONS)
    assert callable(bench_gpu.narrow_mlp) and bench_gpu.Setting().layers == 32 and bench_gpu.Setting().width == 1024


def test_rows_of_times():
    rows = launches.per_operation({"one": lambda: None, "two": lambda: None}, 10, seconds=0.01)
    assert [row["program"] for row in rows] == ["one", "two"] and rows[0]["times as fast"] == 1.0
    assert [row["elements"] for row in launches.numpy_sizes([1, 8])] == [1, 8]
    near, far = launches.modelled_sizes([1, 10**9], "t4")
    assert far["CuPy"] == pytest.approx(near["CuPy"] + 12 * (10**9 - 1) / 300e9)


def test_the_products_are_a_part_of_their_block():
    for row in launches.shares((1, 2), seconds=0.02):
        assert 0 < row["share %"] <= 100
        assert row["faster without the rest %"] >= 0


def test_a_share_is_measured_in_a_process_of_its_own():
    assert [row["tokens"] for row in launches.gpt2_share(seconds=0.02)] == [1, 16]


def test_every_operation_is_counted_once_alone():
    assert {node.op for (graph,) in ch07.count_cases() for node in graph.nodes} == set(OPS)


@pytest.mark.parametrize("name", [name for name in OPS if name not in ch07.NO_LAUNCH])
def test_who_takes_an_operation_for_a_view_is_wrong(name):
    def count_launches(graph):
        return sum(node.op not in (*ch07.NO_LAUNCH, name) for node in graph.nodes)

    assert api.check(count_launches).outcome == "wrong"


def test_the_graph_is_counted_and_not_the_package_asked():
    def count_launches(graph):
        return len(mg.make_plan(mg.fuse(graph, enabled=False)).launches)

    report = api.check(count_launches)
    assert report.outcome == "wrong" and "make_plan does all the work" in report.headline


@pytest.mark.parametrize("answer", [np.array, lambda events: [np.array(one) for one in events], tuple])
def test_a_schedule_may_be_an_array_with_a_row_a_launch(answer):
    def device_events(work, issue, gap):
        return answer(ch07.events_by_number(work, issue, gap))

    assert api.check(device_events).outcome == "right"


def test_pairs_that_are_none_are_wrong_and_no_trouble():
    def device_events(work, issue, gap):
        return [(1.0, 2.0), (3.0,)]

    assert "another answer" in api.check(device_events).headline


SMALL, LARGE = (f"graph g(x: f32[{n},{n}]) -> (y) {{\n y = neg(x)\n return y\n}}" for n in (64, 8192))


@pytest.mark.parametrize("second", [SMALL, LARGE])
def test_two_graphs_that_a_benchmark_calls_equally_fast(second):
    report = api.refute_benchmark(ch07.without_wait, SMALL, second)
    assert report.outcome == "wrong" and "equally fast" in report.headline


def test_a_graph_that_does_not_fit_refutes_nothing():
    report = api.refute_benchmark(ch07.without_wait, SMALL.replace("64,64", "100000000,100000"), SMALL)
    assert report.outcome == "wrong" and "80 TB, and an A100 has 80 GB" in report.headline


def test_a_text_that_is_no_graph_gets_the_parsers_sentence():
    for report in (api.refute_benchmark(ch07.without_wait, "graph", "g"), api.refute(one_refutation(), "graph")):
        assert report.outcome == "wrong" and "cannot be read" in report.headline
        assert "expected the graph's name" in str(report)


def one_refutation():
    return next(iter(REFUTATIONS.values())).function


def test_a_block_of_gpt2_keeps_its_shape_and_its_input():
    x = np.random.default_rng(0).standard_normal((3, launches.HIDDEN)).astype(np.float32)
    shapes = ((1, 3), (1, 1), (1, 4), (4, 1))
    zeros = [np.zeros((a * launches.HIDDEN, b * launches.HIDDEN), np.float32) for a, b in shapes]
    biases = [np.zeros(weight.shape[1], np.float32) for weight in zeros]
    out = launches.gpt2_block(x, zeros, biases)
    assert out.dtype == np.float32
    np.testing.assert_array_equal(out, x)  # without weights only the residual is left


def test_the_scoreboard_predicts_for_a_device(capsys):
    scoreboard("traced", device="a100")
    head, traced = capsys.readouterr().out.splitlines()
    assert head.split()[-2:] == ["launching", "working"]
    launched, moved = (int(traced.split()[place].replace(",", "")) for place in (2, 3))
    assert traced.split()[6:8] == [f"{launched * 11.4:.3g}", "µs"]
    assert traced.split()[8:] == [f"{moved / 2039:.3g}", "ns"]
