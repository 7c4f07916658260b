"""What chapter 11 is built on: pictures of plans, in-place writes element by element, the judges of planners."""

import numpy as np
import pytest

import minigraph as mg
from minigraph.errors import MinigraphError
from minigraph.planners import Buffer, check, exact, greedy_by_size
from minigraph.run_plan import PlanExecutable
from minigraph.teach import memory
from minigraph.teach.examples import frozen_layer
from minigraph.teach.judge_memory import judge_in_place, judge_plan, peak_of, run_in_place

FOUR = [Buffer("a", 0, 3, 1), Buffer("b", 1, 2, 3), Buffer("c", 2, 4, 1), Buffer("d", 3, 4, 3)]


def test_a_picture_says_where_everything_lies():
    picture = mg.draw_memory(FOUR, exact(FOUR), "four")
    assert "in use 4 bytes, lower bound 4" in picture.alt and "overlap" not in picture.alt
    assert "lower bound 4 bytes" in picture.svg and picture.svg == mg.draw_memory(FOUR, exact(FOUR), "four").svg


def test_a_picture_of_an_overlap_shows_it():
    assert "3 pairs of them overlap" in mg.draw_memory(FOUR, [0, 0, 0, 0]).alt


def test_a_picture_needs_an_offset_for_each_buffer():
    for buffers, offsets in ((FOUR, [0]), ([], [])):
        with pytest.raises(MinigraphError, match="an offset for each"):
            mg.draw_memory(buffers, offsets)


def test_stills_are_few_and_in_order():
    many = [Buffer(f"b{i}", i, i + 2, 64 * (i + 1)) for i in range(20)]
    stills = mg.placing_steps(many, greedy_by_size(many), lambda b: -b.size)
    assert stills.alt.startswith("9 stills") and "b19 (1,280 bytes) to 0; b18" in stills.alt
    assert stills.png[:4] == b"\x89PNG"


def test_without_in_place_writes_elements_are_as_numpy_has_them():
    graph = frozen_layer(2, 4)
    x = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)
    (want,), (got,) = mg.run(graph, x=x).values(), run_in_place(graph, {}, {"x": x}).values()
    assert np.allclose(want, got, atol=1e-6)


def test_an_in_place_product_reads_what_it_has_overwritten():
    graph = mg.parse("graph g(x: f32[2,2]) -> (y) {\n a = exp(x)\n y = matmul(a, x)\n return y\n}")
    assert judge_in_place(lambda graph: {}, graph)[0] is None
    assert judge_in_place(lambda graph: {"y": "a"}, graph)[0].kind == "wrong-value"


def test_only_poison_shows_a_buffer_that_is_freed_too_early():
    graph = memory.optimized(frozen_layer())
    early = memory.freed_early(mg.make_plan(graph), "q")
    x = np.random.default_rng(0).standard_normal((8, 16)).astype(np.float32)
    (want,) = mg.run(graph, x=x).values()
    (lucky,), (poisoned,) = (PlanExecutable(early, poison=poison)(x=x).values() for poison in (False, True))
    assert np.allclose(lucky, want, atol=1e-5) and np.isnan(poisoned).all()


def test_the_judge_of_plans_names_what_is_wrong():
    case = [FOUR]
    for offsets, kind in (([0, 0, 0, 0], "overlap"), ([-1, 0, 4, 0], "below-0"), ([3, 0, 4], "not-offsets"),
                          ([3.0, 0, 4, 0], "not-offsets"), ([3, 0, 4, 0], "too-high")):
        assert judge_plan(lambda buffers: list(offsets), [], case).failure.kind == kind, offsets
    assert judge_plan(lambda buffers: [0, 1, 3, 0], [], case).failure is None


def test_every_instance_of_the_lesson_can_be_placed():
    for name, buffers in memory.compared().items():
        assert check(buffers, greedy_by_size(buffers).offsets) == [], name
    assert exact(memory.compared()["the layer"]).optimal


def test_peaks_are_counted_over_launches():
    assert peak_of([("a", ("x",)), ("b", ("a",)), ("y", ("b",))], {"a": 4, "b": 2, "y": 1}, ("y",)) == 6
    assert peak_of([("a", ("x",)), ("b", ("a",)), ("y", ("b",))], {"a": 4, "b": 2, "y": 1}, ("y", "a")) == 7


def test_a_plan_of_the_real_sizes_needs_no_model():
    graph = memory.smollm2_prefill(tokens=4)
    assert len(memory.cache_names(graph)) == 60 and len(graph.outputs) == 61
