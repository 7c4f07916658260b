"""Chapter 00's model: what is told without it must be what it says."""

import numpy as np
import pytest

from minigraph.models import compiled, smollm2
from minigraph.models.gguf_file import find_model
from minigraph.pipeline import optimize
from minigraph.teach import tour
from minigraph.verify import verify


@pytest.fixture
def absent(monkeypatch):
    monkeypatch.setattr(tour, "installed", lambda: False)
    tour.weights.cache_clear()
    yield
    tour.weights.cache_clear()


def shape_of(graph):
    return [(node.name, node.op, node.inputs, node.type) for node in graph.nodes]


def test_without_the_model_the_recording_is_told(absent):
    assert tour.answer() == tour.RECORDED
    assert "".join(tour.answer(tokens=2)) == "A compiler"
    assert "not installed" in tour.came_from()


def test_without_the_model_the_graph_has_the_same_size(absent):
    graph = compiled.decode_graph(tour.weights())
    verify(graph)
    better = optimize(graph).graph
    # the numbers that the prose of chapters 00 and 05 names
    assert (len(graph), len(better), len(graph.outputs)) == (2874, 2667, 61)
    assert len(tour.launches(graph)) == len(tour.launches(better)) == 1541
    assert sum(node.op == "matmul" for node in graph.nodes) == 271


def test_shaped_weights_differ_from_one_another():
    numbers = tour.shaped(smollm2.tiny().config, 16)
    arrays = [numbers.embedding, numbers.norm, *(getattr(layer, name) for layer in numbers.layers
                                                 for name in smollm2.Layer.__dataclass_fields__)]
    assert len({float(array.flat[0]) for array in arrays}) == len(arrays)
    assert not any(array.flags.writeable for array in arrays)
    graphs = [compiled.decode_graph(weights) for weights in (numbers, smollm2.tiny())]
    assert shape_of(graphs[0]) == shape_of(graphs[1])


def test_parameters_are_counted():
    numbers = smollm2.tiny()
    every = [numbers.embedding, numbers.norm, *(getattr(layer, name) for layer in numbers.layers
                                                for name in smollm2.Layer.__dataclass_fields__)]
    assert tour.parameters(numbers)["all"] == sum(array.size for array in every)


@pytest.mark.skipif(not tour.installed(), reason="the model is not installed")
def test_the_model_is_as_recorded():
    numbers, _ = tour.load()
    assert numbers.config == tour.SIZES
    assert find_model().stat().st_size == tour.FILE_BYTES
    real, stand_in = (compiled.decode_graph(w) for w in (numbers, tour.shaped(tour.SIZES, tour.MAX_LEN)))
    assert shape_of(real) == shape_of(stand_in)
    assert shape_of(optimize(real).graph) == shape_of(optimize(stand_in).graph)
    assert tour.answer(tokens=3) == tour.RECORDED[:3]


def test_a_model_that_says_something_else_is_noticed(monkeypatch):
    monkeypatch.setattr(tour, "installed", lambda: True)
    monkeypatch.setattr(tour, "load", lambda: (smollm2.tiny(), Spelling()))
    with pytest.raises(AssertionError, match="something else"):
        tour.answer()


def test_the_answer_ends_before_a_close_call(monkeypatch):
    monkeypatch.setattr(tour, "CLOSE", 1e-6)
    numbers = smollm2.tiny()
    scores = [np.eye(96, dtype=np.float32)[7], np.full(96, 0.5, np.float32)]
    made = list(tour.safe_ids([1, 2], numbers, (), lambda token, position, cache: (scores.pop(0), *cache)))
    first = int(np.argmax(smollm2.prefill(numbers, np.array([1, 2], np.int32), smollm2.zero_cache(numbers))[0]))
    assert made == [first, 7]


class Spelling:
    """A tokenizer of 96 letters."""

    end = frozenset()

    def chat(self, prompt):
        return [1, 2]

    def decode(self, ids):
        return "".join(chr(32 + i % 90) for i in ids)
