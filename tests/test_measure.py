"""Measuring: clocks, timings, where numbers are from, recordings, the launch model, and its pictures."""

import gc
import json
import os
import random
import re
import subprocess
import sys
import types
import xml.etree.ElementTree as ET
from types import SimpleNamespace

import numpy as np
import pytest

from minigraph import launch_model, measure as measuring, timing
from minigraph.drawing import chrome_trace, draw_curves, draw_timeline
from minigraph.drawing.curves import DASHES, MARKERS, spread
from minigraph.drawing.plot import COLOURS, KINDS
from minigraph.drawing.timeline import HATCHES, fold, kind, repetition
from minigraph.errors import MinigraphError
from minigraph.gpu import look
from minigraph.launch_model import DEVICE, HOST, PRESETS, Device, Event, predict, quantity, schedule
from minigraph.measure import Measurement, MeasureError, load_recordings, measure, save_recording
from minigraph.recordings import RecordingError, load_recording
from minigraph.timing import Timing, bench, compare, gpu_clock, synchronized, wall

PREDICTED = "predicted by the launch model"


def launch(name="mm", read=1000, written=500, flops=0):
    return SimpleNamespace(name=name, bytes_read=read, bytes_written=written, flops=flops)


def mlp(layers=32):
    """The launches of chapter 07's network: four operations a layer, as a plan would list them."""
    shapes = (("mm", 768 * 768 * 4, 3072, 2 * 768 * 768), ("add", 6144, 3072, 768), ("relu", 3072, 3072, 768),
              ("mul", 6144, 3072, 768))
    return [launch(f"layer{i}.{name}", *rest) for i in range(layers) for name, *rest in shapes]


# ---- clocks and timings -----------------------------------------------------------------------------------------


class Pretend:
    """A clock on which a call costs what its function says, and which keeps a diary."""

    def __init__(self):
        self.diary = []

    def __call__(self, f, loops):
        self.diary.append((f.name, loops))
        cost = f.first if len([name for name, _ in self.diary if name == f.name]) == 1 else f.cost
        return cost * loops


def job(name, cost, first=None):
    def f():
        raise AssertionError("the pretended clock calls nothing")

    f.name, f.cost, f.first = name, cost, cost if first is None else first
    return f


@pytest.mark.parametrize("cost", [1e-8, 3e-7, 1e-4, 0.02])
def test_a_run_has_as_many_calls_as_fill_it(cost):
    took = bench(job("f", cost), seconds=0.5, repeat=10, clock=Pretend())
    assert took.runs == 10
    assert took.loops * cost == pytest.approx(0.05, rel=0.5)
    assert took.median == pytest.approx(cost)


def test_a_slow_function_is_run_three_times_and_a_free_one_ends():
    slow = bench(job("f", 10.0), seconds=0.5, clock=Pretend())
    assert (slow.runs, slow.loops, slow.median) == (timing.LEAST, 1, 10.0)
    assert bench(job("f", 0.0), seconds=0.5, clock=Pretend()).loops == timing.MOST


def test_the_first_call_is_apart():
    took = bench(job("f", 0.001, first=7.0), clock=Pretend())
    assert took.first == 7.0 and took.high == pytest.approx(0.001)


def test_functions_are_timed_in_turn_and_every_second_round_backwards():
    clock = Pretend()
    times = compare({"a": job("a", 0.01), "b": job("b", 0.03)}, seconds=0.3, repeat=4, clock=clock)
    rounds = [name for name, loops in clock.diary[-8:]]
    assert "".join(rounds) == "abbaabba"
    assert [times[name].runs for name in "ab"] == [4, 4]
    assert times["a"].times_faster(times["b"]) == pytest.approx(3)


def test_each_name_may_have_a_clock_of_its_own():
    ours, theirs = Pretend(), Pretend()
    compare({"a": job("a", 0.1), "b": job("b", 0.1)}, clock={"a": ours, "b": theirs})
    assert {name for name, _ in ours.diary} == {"a"} and {name for name, _ in theirs.diary} == {"b"}


def test_a_timing_knows_its_quartiles_and_pairs_rounds():
    took = Timing((4.0, 1.0, 3.0, 2.0, 5.0), 10, 9.0)
    assert (took.median, took.low, took.high, took.runs) == (3.0, 2.0, 4.0, 5)
    # a load that slows both of one round down leaves the ratio as it is
    other = Timing((8.0, 2.0, 6.0, 4.0, 10.0), 10, 9.0)
    assert took.times_faster(other) == 2.0
    assert str(took) == "3 s (2 s to 4 s in 5 runs of 10; first call 9 s)"
    assert Timing((1.0,), 1, 1.0).high == 1.0


def test_the_wall_clock_calls_as_often_as_it_is_told():
    calls = []
    assert wall(lambda: calls.append(1), 7) > 0
    assert len(calls) == 7


def test_a_real_function_is_timed():
    x = np.ones(1000, np.float32)
    took = compare({"copy": x.copy, "sum": x.sum}, seconds=0.02, repeat=5)
    assert all(0 < one.low <= one.median <= one.high and one.runs >= timing.LEAST for one in took.values())


def test_the_collector_comes_back():
    assert gc.isenabled()
    with pytest.raises(ZeroDivisionError):
        bench(lambda: 1 / 0)
    assert gc.isenabled()


@pytest.mark.parametrize("wrong", [dict(f=3), dict(f=len, seconds=0), dict(f=len, seconds=float("inf")),
                                   dict(f=len, repeat=1)])
def test_what_cannot_be_timed_is_refused(wrong):
    with pytest.raises(MeasureError):
        bench(**wrong)
    with pytest.raises(MeasureError, match="nothing to time"):
        compare({})


class Gpu:
    """A stand-in for CuPy: kernels take 2 ms, launching one takes the host 0.1 ms, and nobody waits unless told to."""

    KERNEL, LAUNCH = 2.0, 0.1  # milliseconds, like CuPy's events

    def __init__(self):
        self.host = self.done = 0.0
        gpu = self

        class Stream:
            def synchronize(self):
                gpu.host = max(gpu.host, gpu.done)

        class Event:
            def record(self, stream=None):
                gpu.streams.append(stream)
                self.time = max(gpu.host, gpu.done)

            def synchronize(self):
                gpu.host = max(gpu.host, self.time)

        self.streams, self.stream = [], Stream()
        runtime = SimpleNamespace(getDevice=lambda: 0, getDeviceProperties=lambda i: {"name": b"NVIDIA Stand-in"},
                                  runtimeGetVersion=lambda: 12040, driverGetVersion=lambda: 13010)
        self.cuda = SimpleNamespace(Event=Event, get_current_stream=lambda: self.stream, runtime=runtime,
                                    get_elapsed_time=lambda start, end: end.time - start.time)
        self.__version__ = "14.0.0"

    def kernel(self):
        self.host += self.LAUNCH
        self.done = max(self.done, self.host) + self.KERNEL


def test_events_time_the_kernels_and_not_their_launches():
    gpu = Gpu()
    clock = gpu_clock(gpu)
    assert clock(gpu.kernel, 10) == pytest.approx(20.1e-3)  # the first launch is waited for, the others are hidden
    for _ in range(50):
        gpu.kernel()
    assert clock(gpu.kernel, 10) == pytest.approx(20.1e-3)  # work from before is not billed
    assert gpu.host == gpu.done


def test_events_are_recorded_in_the_stream_that_is_asked_for():
    gpu, mine = Gpu(), SimpleNamespace(synchronize=lambda: None)
    gpu_clock(gpu, stream=mine)(gpu.kernel, 1)
    assert gpu.streams == [mine, mine]
    gpu_clock(gpu)(gpu.kernel, 1)
    assert gpu.streams[2:] == [gpu.stream, gpu.stream]


def test_synchronization_is_what_the_wall_clock_lacks(monkeypatch):
    gpu = Gpu()
    monkeypatch.setattr(timing.time, "perf_counter", lambda: gpu.host / 1e3)
    assert wall(gpu.kernel, 10) == pytest.approx(1e-3)  # only the launches
    assert synchronized(gpu.stream.synchronize)(gpu.kernel, 10) == pytest.approx(20.1e-3)


def module(monkeypatch, **attributes):
    stand_in = types.ModuleType("cupy")
    vars(stand_in).update(attributes)
    monkeypatch.setitem(sys.modules, "cupy", stand_in)
    monkeypatch.setattr(timing, "gpu_status", look)  # without the memory of the first answer


def test_a_gpu_is_here_when_it_computes(monkeypatch):
    module(monkeypatch, ones=lambda *shape, dtype: np.ones(*shape, dtype))
    assert timing.gpu_here() == ""
    assert timing.import_cupy() is sys.modules["cupy"]

    def fails(*shape, dtype):
        raise RuntimeError("cudaErrorNoDevice: no CUDA-capable device is detected\nmore")

    module(monkeypatch, ones=fails)
    assert timing.gpu_here() == "the NVIDIA driver sees no GPU"
    with pytest.raises(MeasureError, match="sees no GPU"):
        gpu_clock()
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert timing.gpu_here() == "CuPy is not installed"


def test_the_machine_is_named(monkeypatch):
    monkeypatch.setattr(measuring, "ask", lambda command: (0, "580.65.06\n"))
    assert measuring.gpu_machine(Gpu()) == GPU
    monkeypatch.setattr(measuring, "ask", lambda command: (1, "not found"))
    assert measuring.gpu_machine(Gpu())["driver"] == "for CUDA 13.1"
    here = measuring.cpu_machine(threads=2)
    assert here["name"] and here["threads"] == "2" and here["numpy"] == np.__version__


# ---- where numbers are from -------------------------------------------------------------------------------------

GPU = {"name": "NVIDIA Stand-in", "driver": "580.65.06", "cuda": "12.4", "cupy": "14.0.0"}
ROWS = [{"size": 1000, "s": 1e-5}, {"size": 10**6, "s": 3e-4}]


@pytest.fixture
def no_gpu(monkeypatch):
    monkeypatch.setitem(measuring.HERE, "gpu", lambda: "CuPy is not installed")


def record(folder, file, date, **tables):
    return save_recording(folder / file, tables, kind="gpu", machine=GPU, command="minigraph bench gpu", date=date)


def test_what_is_here_is_measured(no_gpu, tmp_path):
    found = measure("chain", lambda: ROWS, folder=tmp_path)
    assert str(found).startswith("measured here\n") and found.reason == ""
    assert found.column("s") == [1e-5, 3e-4]
    assert [row["source"] for row in found.rows] == ["measured here"] * 2


def test_the_newest_recording_that_has_the_table_comes_next(no_gpu, tmp_path):
    record(tmp_path, "b.json", "2026-01-31", chain=ROWS)
    record(tmp_path, "a.json", "2026-02-01", chain=[{"size": 5, "s": 2.0}])
    record(tmp_path, "c.json", "2026-03-01", other=ROWS)
    save_recording(tmp_path / "d.json", {"chain": ROWS}, kind="cpu", command="x", date="2026-04-01",
                   machine={"name": "a CPU", "threads": "1", "numpy": "2"})
    found = measure("chain", lambda: ROWS, needs="gpu", model=lambda: ROWS, folder=tmp_path)
    assert found.source == "recorded on NVIDIA Stand-in (2026-02-01)"
    assert found.column("s") == [2.0] and found.rows[0]["source"] == found.source
    assert "Not measured here: CuPy is not installed." in str(found)


def test_a_prediction_comes_last_and_always_says_so(no_gpu, tmp_path):
    found = measure("chain", lambda: 1 / 0, needs="gpu", model=lambda: [{"source": "measured here", **ROWS[0]}],
                    folder=tmp_path)
    assert found.source == PREDICTED
    assert str(found).splitlines()[0] == repr(found).splitlines()[0] == PREDICTED
    bundle = found._repr_mimebundle_()
    assert PREDICTED in bundle["text/html"] and PREDICTED in bundle["text/plain"]
    assert all(row["source"] == PREDICTED for row in found.rows)  # whatever the model itself says
    picture = found.draw("size", "s", x_label="elements", label="measured here")
    assert PREDICTED in picture.alt and PREDICTED in picture.svg and "measured here" not in picture.svg


def test_nothing_at_all_is_a_sentence(no_gpu, tmp_path):
    (tmp_path / "broken.json").write_text("{")
    with pytest.raises(MeasureError, match=r"CuPy is not installed(.|\n)*skipped: broken.json is damaged"):
        measure("chain", lambda: ROWS, needs="gpu", folder=tmp_path)
    with pytest.raises(MeasureError, match="what can be needed is cpu or gpu"):
        measure("chain", lambda: ROWS, needs="tpu", folder=tmp_path)
    with pytest.raises(MeasureError, match="no rows"):
        measure("chain", lambda: [], folder=tmp_path)


def test_columns_are_asked_for_by_name():
    some = Measurement("chain", "measured here", ({"source": "measured here", "size": 1, "s": 2.0}, {"size": 2}))
    assert some.column("s") == [2.0, None]
    with pytest.raises(MeasureError, match="no column 'time'; it has size, s"):
        some.column("time")
    assert some.draw("size", "s").alt.count("2 s") == 2  # the row without a number is left out


# ---- recordings -------------------------------------------------------------------------------------------------


def test_a_recording_is_read_as_it_was_written(tmp_path):
    rows = [{"size": np.int64(1000), "s": np.float32(0.5), "fast": np.bool_(True), "note": "é", "none": None}]
    written = record(tmp_path, "a.json", "2026-01-31", chain=rows)
    assert load_recording(tmp_path / "a.json") == written
    assert written.tables["chain"] == [{"size": 1000, "s": 0.5, "fast": True, "note": "é", "none": None}]
    assert written.label == "recorded on NVIDIA Stand-in (2026-01-31)"
    today = save_recording(tmp_path / "b.json", {"chain": rows}, kind="gpu", machine=GPU, command="x")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", today.date)


GOOD = {"format": "minigraph recording", "version": 1, "kind": "gpu", "machine": GPU, "date": "2026-01-31",
        "command": "x", "tables": {"chain": ROWS}}
DAMAGED = [
    ("", "not JSON"),
    ('{"format": "minigraph recording", ', "not JSON"),
    ("\ufeff{}", "not JSON"),
    ("[" * 100_000, "damaged"),
    ("[1, 2]", '"format" is not'),
    ('{"format": "other"}', '"format" is not'),
    ({"version": 2}, "version 2, and version 1 is read here"),
    ({"version": None}, "version None"),
    ({"kind": "tpu"}, "'gpu' or 'cpu'"),
    ({"kind": ["gpu"]}, "'gpu' or 'cpu'"),
    ({"machine": None}, 'does not say its "name"'),
    ({"machine": {**GPU, "driver": " "}}, 'does not say its "driver"'),
    ({"date": "yesterday"}, "a day like 2026-01-31"),
    ({"date": 20260131}, "a day like 2026-01-31"),
    ({"command": ""}, '"command" does not say'),
    ({"tables": {}}, "no tables"),
    ({"tables": [ROWS]}, "no tables"),
    ({"tables": {"chain": []}}, "not a list of rows"),
    ({"tables": {"chain": "abc"}}, "not a list of rows"),
    ({"tables": {"chain": [[1, 2]]}}, "not a list of rows"),
    ({"tables": {"chain": [{"s": [1]}]}}, "has a list in 's'"),
    ({"tables": {"chain": [{"s": float("nan")}]}}, "no measurement"),
    ({"tables": {"chain": [{"s": float("inf")}]}}, "no measurement"),
    ('{"s": 1e999}', '"format" is not'),
]


@pytest.mark.parametrize("damage, sentence", DAMAGED)
def test_a_damaged_file_is_skipped_with_a_sentence(tmp_path, damage, sentence):
    text = damage if isinstance(damage, str) else json.dumps({**GOOD, **damage})
    (tmp_path / "bad.json").write_text(text, encoding="utf-8")
    (tmp_path / "good.json").write_text(json.dumps(GOOD))
    (tmp_path / "README.md").write_text("not a recording")
    recordings, problems = load_recordings(tmp_path)
    assert [one.file for one in recordings] == ["good.json"]
    assert len(problems) == 1 and problems[0].startswith("bad.json") and sentence in problems[0]


def test_files_that_cannot_be_read_are_skipped_too(tmp_path):
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "folder.json").mkdir()
    recordings, problems = load_recordings(tmp_path)
    assert recordings == []
    assert [problem.split()[0].rstrip(":") for problem in problems] == ["bytes.json", "folder.json"]
    assert load_recordings(tmp_path / "nowhere") == ([], [])


@pytest.mark.parametrize("rows", [[{"s": float("nan")}], [{"s": [1]}], [{1: 2}], [], "abc", [3]])
def test_what_is_no_measurement_is_not_saved(tmp_path, rows):
    with pytest.raises(RecordingError):
        record(tmp_path, "a.json", "2026-01-31", chain=rows)
    with pytest.raises(RecordingError, match="a .json file"):
        record(tmp_path, "a.txt", "2026-01-31", chain=ROWS)
    with pytest.raises(RecordingError, match="cannot be written"):
        record(tmp_path / "nowhere", "a.json", "2026-01-31", chain=ROWS)
    assert list(tmp_path.iterdir()) == []


def test_the_recordings_that_we_ship_are_sound():
    recordings, problems = load_recordings()
    assert problems == []
    assert len({(one.kind, one.machine["name"], one.date) for one in recordings}) == len(recordings)


# ---- the launch model -------------------------------------------------------------------------------------------

TOY = Device("toy", bandwidth=1e9, peak=1e12, launch=5e-6, graph_launch=3e-6, graph_node=1e-9, gap=1e-6)


def test_the_sum_by_hand():
    launches = [launch(read=600, written=400), launch(flops=10**7)]
    assert launch_model.times(launches, TOY) == [("mm", 5e-6, 1e-6), ("mm", 5e-6, pytest.approx(1e-5))]
    assert predict(launches, TOY) == pytest.approx(10e-6 + 11e-6)
    assert predict(launches, TOY, "graph") == pytest.approx(3e-6 + 2 * 1.001e-6 + 11e-6)
    assert predict(SimpleNamespace(launches=tuple(launches)), TOY) == predict(launches, TOY)  # a plan will do
    assert predict([], TOY) == predict([], TOY, "graph") == 0


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("mode", launch_model.MODES)
def test_at_the_knee_the_transfer_takes_as_long_as_the_launch(name, mode):
    knee = launch_model.break_even(name, mode)
    at_it = launch(read=knee, written=0)
    assert launch_model.work(at_it, name) == pytest.approx(launch_model.overhead(name, mode))
    (_, below), (_, above) = launch_model.over_sizes([knee / 8e4, knee * 1e4 / 8], name, mode, launches=100)
    fixed = 100 * launch_model.overhead(name, mode)
    assert fixed <= below < 1.01 * fixed + PRESETS[name].graph_launch and above > 9_000 * fixed


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("mode", launch_model.MODES)
def test_a_schedule_is_possible_and_within_its_bounds(name, mode):
    draw = random.Random(name + mode)
    launches = [launch(f"k{i}", 10 ** draw.randint(0, 9), 4, 10 ** draw.randint(0, 10)) for i in range(50)]
    events = schedule(launches, name, mode)
    host, device = ([event for event in events if event.row == row] for row in (HOST, DEVICE))
    assert [event.name for event in device] == [one.name for one in launches]
    assert len(host) == (50 if mode == "eager" else 1)
    for row in (host, device):
        assert all(a.end <= b.start for a, b in zip(row, row[1:]))
    assert all(issued.end <= runs.start for issued, runs in zip(host if mode == "eager" else host * 50, device))
    if PRESETS[name].waits:  # one core cannot issue while it computes
        line = sorted(events)
        assert all(a.end <= b.start for a, b in zip(line, line[1:]))
    rows = launch_model.times(launches, name, mode)
    alone = max(sum(extra for _, extra, _ in rows) * (mode == "eager"), sum(work for _, _, work in rows))
    assert alone <= events[-1].end <= predict(launches, name, mode) * (1 + 1e-12) <= 2.2 * alone + 1


def test_an_overhead_is_hidden_behind_the_work_before_it():
    big = [launch(read=10**9)] * 10
    assert schedule(big, "a100")[-1].end < predict(big, "a100") - 8 * PRESETS["a100"].launch + 10 * PRESETS["a100"].gap
    small = [launch()] * 10
    assert schedule(small, "a100")[-1].end == pytest.approx(10 * PRESETS["a100"].launch, rel=1e-3)


def test_at_batch_one_fewer_launches_are_what_counts():
    """A11: 128 launches against 32 that move nearly the same bytes."""
    whole = mlp()
    fused = [launch(f"layer{i}", 768 * 768 * 4 + 9216, 3072, 2 * 768 * 768 + 2304) for i in range(32)]
    assert len(whole) == 128
    assert 3 < predict(whole, "a100") / predict(fused, "a100") < 4
    assert predict(whole, "a100", "graph") < predict(fused, "a100")


def test_every_number_of_a_preset_has_a_source():
    for device in PRESETS.values():
        assert device.sources and all(len(source) > 30 for source in device.sources)
        assert min(device.bandwidth, device.peak, device.launch, device.graph_launch, device.gap) > 0
        assert device.gap < device.launch


def test_the_table_turns_like_sliders():
    rows = launch_model.table(launches=128, bytes_per_launch=3072, devices=("a100", TOY))
    assert [(row["device"], row["mode"]) for row in rows] == [(name, mode) for name in (PRESETS["a100"].name, "toy")
                                                              for mode in ("eager", "graph")]  # fmt: skip
    assert rows[2]["launching"] == "640 µs" and rows[2]["work"] == "393 µs" and rows[2]["launching %"] == 62
    assert launch_model.table(launches=0, devices=("t4",))[0]["time"] == "0 s"
    more = launch_model.table(launches=256, bytes_per_launch=3072, devices=(TOY,))
    assert more[0]["launching"] == "1.28 ms"


@pytest.mark.parametrize("wrong, sentence", [
    (lambda: predict([], "a1000"), "did you mean 'a100'"),
    (lambda: predict([], "a100", "lazy"), "eager or graph"),
    (lambda: Device("d", 0, 1, 0, 0, 0, 0), "bandwidth of d is 0"),
    (lambda: Device("d", 1, float("nan"), 0, 0, 0, 0), "peak of d is nan"),
    (lambda: Device("d", 1, 1, -1, 0, 0, 0), "launch of d is -1"),
])  # fmt: skip
def test_what_has_no_answer_is_refused(wrong, sentence):
    with pytest.raises(launch_model.ModelError, match=sentence):
        wrong()


@pytest.mark.parametrize("value, unit, text", [
    (1.4567e-3, "s", "1.46 ms"), (9.996e-4, "s", "1 ms"), (9.994e-4, "s", "999 µs"), (4.4e-7, "s", "440 ns"),
    (0, "s", "0 s"), (12, "s", "12 s"), (5e-11, "s", "0.05 ns"), (23_200_000, "B", "23.2 MB"), (2e12, "B", "2 TB"),
    (1000, "", "1,000"), (9999.6, "", "10k"), (10**6, "", "1M"), (0.0123, "", "0.0123"), (-0.5, "", "-0.5"),
    (float("inf"), "s", "inf s"),
])  # fmt: skip
def test_quantities_are_short(value, unit, text):
    assert quantity(value, unit) == text


# ---- timelines --------------------------------------------------------------------------------------------------


def words(svg):
    return [element.text for element in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text") if element.text]


def test_a_timeline_says_what_it_shows():
    picture = draw_timeline(schedule(mlp(2), "a100"), PREDICTED, "two layers")
    assert {PREDICTED, "host", "device", "mm", "add", "relu", "mul"} <= set(words(picture.svg))
    assert picture.alt == ("Timeline, two layers (predicted by the launch model): 91.2 µs, and the device works for 3 %"
                           " of it. Host: 8 boxes, 91.2 µs. Device: 8 boxes, 2.34 µs.")
    assert repr(picture) == picture.alt and picture.alt in picture._repr_mimebundle_()["text/html"]


@pytest.mark.parametrize("label", ["", "fast", "NVIDIA A100", "MEASURED here"])
def test_times_without_a_source_are_not_drawn(label):
    events = schedule(mlp(1), "a100")
    for make in (draw_timeline, chrome_trace):
        with pytest.raises(MinigraphError, match="does not say where the times are from"):
            make(events, label)


@pytest.mark.parametrize("event", [(1.0, 0.5), (-1.0, 0.5), (float("nan"), 1.0), (0.0, float("inf"))])
def test_events_out_of_time_are_refused(event):
    with pytest.raises(MinigraphError, match="the event 'k' goes from"):
        draw_timeline([(*event, "k", DEVICE)], PREDICTED)
    with pytest.raises(MinigraphError, match="no events"):
        chrome_trace([], PREDICTED)


def test_layers_are_drawn_once_or_twice():
    events = schedule(mlp(32), "a100")
    view = fold(events, 60)
    device = [event for event in view.events if event.row == DEVICE]
    assert [event.name for event in device] == [one.name for one in mlp(32)[:8] + mlp(32)[-4:]]
    assert view.note.startswith("a block of 4 launches × 32: 29 blocks left out, ")
    assert view.length == pytest.approx(29 * 4 * PRESETS["a100"].launch, rel=1e-3)
    places = [(view.place(event.start), view.place(event.end)) for event in sorted(view.events)]
    assert all(start <= end for start, end in places) and max(places)[1] < 0.2 * events[-1].end
    picture = draw_timeline(events, PREDICTED)
    assert "29 blocks left out" in picture.alt and any("29 blocks left out" in text for text in words(picture.svg))


def test_a_prologue_and_an_epilogue_stay():
    layers = [f"layer{i}.{name}" for i in range(30) for name in ("norm", "qkv", "attention", "out")]
    names = ["embed", *layers, "logits", "argmax"]
    view = fold(schedule([launch(name) for name in names], "t4"), 60)
    device = [event.name for event in view.events if event.row == DEVICE]
    assert device[0] == "embed" and device[-2:] == ["logits", "argmax"] and len(device) == 3 + 3 * 4
    long = [f"layer{i}.{chr(97 + k)}" for i in range(5) for k in range(25)]
    view = fold(schedule([launch(name) for name in long], "t4"), 60)
    assert "a block of 25 launches × 5: 3 blocks left out" in view.note


def test_what_does_not_repeat_is_cut_off():
    names = ["".join(random.Random(i).choices("abcdefgh", k=6)) for i in range(80)]
    view = fold(schedule([launch(name) for name in names], "t4"), 60)
    assert view.note == "the first 60 of 80 launches"
    assert [event.name for event in view.events if event.row == DEVICE] == names[:60]


def test_a_host_that_runs_ahead_is_one_box():
    view = fold(schedule([launch(f"big{i}", read=10**9) for i in range(300)], "a100"), 60)
    assert len([event for event in view.events if event.row == HOST]) == 1
    assert len([event for event in view.events if event.row == DEVICE]) == 3


@pytest.mark.parametrize("names, found", [
    ("abcabcabc", (0, 3, 3)), ("xabababy", (1, 2, 3)), ("abcd", (0, 4, 1)), ("a", (0, 1, 1)), ("aaaa", (0, 1, 4)),
    ("abcabd", (0, 6, 1)), ("zzabcdabcdabcd", (2, 4, 3)),
])  # fmt: skip
def test_repetitions_are_found(names, found):
    assert repetition(list(names)) == found


@pytest.mark.parametrize("name, stem", [("layer3.mm_7", "mm"), ("add", "add"), ("matmul.12", "matmul"), ("blk/0/norm#2", "norm"),
                                        ("exp2", "exp")])
def test_a_kind_is_a_name_without_its_number(name, stem):
    assert kind(Event(0, 1, name, DEVICE)) == stem


def test_colour_is_never_alone():
    assert len(set(HATCHES)) == len(set(map(str, DASHES))) == len(set(MARKERS)) == len(set(COLOURS)) == KINDS


def test_perfetto_opens_the_trace():
    events = schedule(mlp(2), "a100")
    trace = json.loads(chrome_trace(events, PREDICTED))
    assert set(trace) == {"traceEvents", "displayTimeUnit", "otherData"} and trace["otherData"]["times"] == PREDICTED
    heads = [event for event in trace["traceEvents"] if event["ph"] == "M"]
    names = {(event["name"], event["tid"]): event["args"]["name"] for event in heads}
    assert names == {("process_name", 0): PREDICTED, ("thread_name", 1): HOST, ("thread_name", 2): DEVICE}
    boxes = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert len(boxes) + len(names) == len(trace["traceEvents"]) and len(boxes) == len(events) == 16
    for box, event in zip(boxes, sorted(events)):
        assert {"name", "cat", "ph", "pid", "tid", "ts", "dur"} == set(box) and box["pid"] == 1
        assert box["cat"] == names["thread_name", box["tid"]] == event.row and box["name"] == event.name
        assert box["ts"] == pytest.approx(event.start * 1e6, abs=1e-3) and box["dur"] >= 0
    assert [box["ts"] for box in boxes] == sorted(box["ts"] for box in boxes)


# ---- curves, and what both kinds of plot keep --------------------------------------------------------------------


def knee(**options):
    sizes = [10**k for k in range(3, 9)]
    counts = {"eager": 8, "fused": 1}
    curves = {name: launch_model.over_sizes(sizes, "a100", launches=count) for name, count in counts.items()}
    return draw_curves(curves, x_label="elements", y_label="time", y_unit="s", label=PREDICTED,
                       marks=[(launch_model.break_even("a100") / 8, "knee")], **options)


def test_a_plot_of_curves_says_what_it_shows():
    picture = knee(title="Eight operations")
    expected = {PREDICTED, "Eight operations", "elements", "time", "eager", "fused", "knee", "1 ms", "1M"}
    assert expected <= set(words(picture.svg))
    assert picture.alt == (f"Plot, Eight operations ({PREDICTED}): time over elements. eager: 91.2 µs at 1,000, 123 µs"
                           " at 1M, 3.23 ms at 100M. fused: 11.4 µs at 1,000, 15.3 µs at 1M, 404 µs at 100M. Marked at"
                           " 2.91M: knee.")
    assert picture.png.startswith(b"\x89PNG")


def test_steps_and_linear_axes():
    values = np.array([3.0, 1, 4, 1, 5])
    picture = draw_curves({"running max": list(enumerate(np.maximum.accumulate(values)))}, x_label="block",
                          y_label="value", log="", steps=True)
    assert "running max: 3 at 0, 4 at 2, 5 at 4." in picture.alt
    assert {"running max", "value over block"} <= set(words(picture.svg))


@pytest.mark.parametrize("curves, sentence", [
    ({}, "1 to 6 curves"), ({str(k): [(1, 1)] for k in range(7)}, "these are 7"), ({"a": []}, "'a' has no points"),
    ({"a": [(1, float("nan"))]}, "lies nowhere"), ({"a": [(0, 1)]}, "no place for 0"),
    ({"a": [(1, -2)]}, "no place for 0"),
])  # fmt: skip
def test_curves_that_cannot_be_drawn_are_refused(curves, sentence):
    with pytest.raises(MinigraphError, match=sentence):
        draw_curves(curves, x_label="x", y_label="y")


def test_names_at_the_ends_do_not_overlap():
    draw = random.Random(7)
    for _ in range(200):
        heights = sorted(draw.choice((draw.random(), 0.5)) for _ in range(draw.randint(1, KINDS)))
        moved = spread(heights, 0.05)
        assert len(moved) == len(heights) and all(b - a > 0.05 - 1e-9 for a, b in zip(moved, moved[1:]))
        if all(b - a >= 0.05 for a, b in zip(heights, heights[1:])):
            assert moved == heights


@pytest.mark.parametrize("log", ["", "xy"])
def test_a_name_stands_where_its_curve_ends(log):
    picture = draw_curves({"low": [(1, 50), (2, 1)], "high": [(1, 1), (2, 100)]}, x_label="x", y_label="y", log=log)
    places = {element.text: float(element.get("y")) for element in ET.fromstring(picture.svg).iter()
              if element.text in ("low", "high")}
    top, bottom = 0.75 * picture.height * 0.05, 0.75 * picture.height * 0.9  # the drawing is in points
    assert top < places["high"] < top + 40 and bottom - 40 < places["low"] < bottom


PLOTS = [lambda: draw_timeline(schedule(mlp(32), "a100"), PREDICTED), knee]


@pytest.mark.parametrize("make", PLOTS)
def test_an_svg_fits_into_any_page(make):
    picture = make()
    root = ET.fromstring(picture.svg)
    assert root.get("role") == "img" and root.get("aria-label") == picture.alt
    tags = {element.tag.partition("}")[2] for element in root.iter()}
    assert {"title", "desc"} <= tags and not {"style", "metadata", "script"} & tags
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    used = set(re.findall(r'(?:url\(#|href="#)([^")]+)', picture.svg))
    assert len(ids) == len(set(ids)) and set(ids) == used != set()
    assert (int(root.get("width")), int(root.get("height"))) == picture.size


def test_two_plots_on_a_page_share_no_id_and_a_plot_is_always_the_same():
    first, second = (make().svg for make in PLOTS)
    assert not set(re.findall(r'id="([^"]+)"', first)) & set(re.findall(r'id="([^"]+)"', second))
    assert [make().svg for make in PLOTS] == [first, second]
    code = ("import sys; from test_measure import PLOTS;"
            " sys.stdout.buffer.write(''.join(make().svg for make in PLOTS).encode())")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, cwd=os.path.dirname(__file__),
                          env={**os.environ, "PYTHONHASHSEED": "1"})
    assert done.stdout.decode() == first + second


def test_a_learners_own_settings_do_not_reach_our_plots():
    import matplotlib

    before = knee().svg
    with matplotlib.rc_context({"font.size": 30, "lines.linewidth": 9, "svg.fonttype": "path"}):
        assert knee().svg == before
        assert matplotlib.rcParams["font.size"] == 30


def test_a_plot_is_saved_by_its_suffix(tmp_path):
    picture = knee()
    assert picture.save(tmp_path / "a.svg").read_text(encoding="utf-8") == picture.svg
    assert picture.save(tmp_path / "a.png").read_bytes() == picture.png
    assert "<img src=" in picture.save(tmp_path / "a.html").read_text(encoding="utf-8")
    with pytest.raises(MinigraphError, match=".svg .png .html"):
        picture.save(tmp_path / "a.gif")
