"""A language model that decodes from packed weights in generated C: against the same weights unpacked, in NumPy."""

from __future__ import annotations

import ctypes
import dataclasses
import mmap

import numpy as np
import pytest

import minigraph as mg
from minigraph import run_plan
from minigraph.codegen import packed as skeleton
from minigraph.codegen.program import Run
from minigraph.compiler import build, find_compiler
from minigraph.errors import MinigraphError
from minigraph.formats import FORMATS, interleave, pack, unpack
from minigraph.fusion import fuse
from minigraph.models import compiled, smollm2
from minigraph.models.gguf_file import FORMATS as GGUF_FORMATS
from minigraph.models.gguf_file import GGUFFile, Tensor
from minigraph.models.packed import PIECE, PackedMatrix, Room, read_packed
from minigraph.pipeline import optimize
from minigraph.plan import ALIGNMENT, make_plan
from minigraph.run_c import CExecutable
from minigraph.run_plan import Memory, PlanExecutable, run_launch

needs_compiler = pytest.mark.skipif(find_compiler() is None, reason="no C compiler")
F, I32 = np.float32, np.int32
MATRICES = ("query", "key", "value", "output", "gate", "up", "down")


def models(max_len: int = 12):
    """Two layers with packed matrices, and the same numbers unpacked."""
    config = smollm2.Config(layers=2, hidden=64, ffn=96, heads=4, kv_heads=2, vocab=112, context=64, theta=1e4, epsilon=1e-5)
    rng, kv = np.random.default_rng(0), config.kv_heads * config.head_dim
    sizes = {"query": (64, 64), "key": (64, kv), "value": (64, kv), "output": (64, 64), "gate": (64, 96), "up": (64, 96), "down": (96, 64)}

    def matrix(rows: int, columns: int, format: str) -> PackedMatrix:
        return PackedMatrix(pack(rng.standard_normal((columns, rows)).astype(F) / F(rows) ** F(0.5), format), format)

    layers = tuple(smollm2.Layer(attention_norm=np.ones(64, F), ffn_norm=np.ones(64, F),
                                 **{name: matrix(*size, "q4_1x16") for name, size in sizes.items()}) for _ in range(2))
    few = smollm2.Weights(config, matrix(64, 112, "q8_0x16"), layers, np.ones(64, F), *smollm2.rotary_tables(config, max_len))
    plain = tuple(dataclasses.replace(one, **{name: unpacked(getattr(one, name)).T for name in MATRICES}) for one in layers)
    return few, dataclasses.replace(few, embedding=unpacked(few.embedding), layers=plain)


def unpacked(matrix: PackedMatrix) -> np.ndarray:
    return unpack(matrix.data, matrix.format)


@needs_compiler
def test_logits_are_those_of_the_unpacked_weights_on_any_number_of_threads(monkeypatch):
    monkeypatch.setattr(skeleton, "WORTH_THREADS", 1)  # small products in threads, too
    few, plain = models()
    graph = optimize(compiled.decode_graph(few)).graph
    decodes = [compiled.as_function(graph, "c", threads=threads) for threads in (1, 2)]
    caches, truth = [smollm2.zero_cache(few) for _ in decodes], smollm2.zero_cache(plain)
    for position, token in enumerate(np.random.default_rng(1).integers(0, 112, 12).astype(I32)):
        want, *_ = smollm2.decode(plain, token, I32(position), truth)
        one, two = (decode(token, I32(position), cache)[0] for decode, cache in zip(decodes, caches))
        assert np.array_equal(one, two), "threads change no bit"
        assert np.abs(one - want).max() < 3e-5 * np.abs(want).max()
    assert all(np.allclose(a, b, rtol=1e-4, atol=1e-5) for a, b in zip(caches[0], truth))


@needs_compiler
def test_every_launch_gives_what_numpy_gives_for_the_same_operands():
    """Launch by launch, each from NumPy's operands, so that no error hides behind another."""
    few, _ = models()
    graph = optimize(compiled.decode_graph(few)).graph
    caches = [node.name for node in graph.inputs if node.name.startswith("cache.")]
    plan = make_plan(fuse(graph), donate=caches)
    executable, reference = CExecutable(plan), PlanExecutable(plan)
    for one in (executable, reference):
        given = {"token": np.array(5, I32), "position": np.array(0, I32)} | dict(zip(caches, smollm2.zero_cache(few)))
        one.memory.bind(given)
    ours, theirs = executable.memory, reference.memory
    calls = {call.launch.name: call for _, step in executable.steps if isinstance(step, Run) for call in step.calls}
    products = 0
    for launch in plan.launches:
        ours.arena[...] = theirs.arena
        if call := calls.get(launch.name):
            function = getattr(executable.library, call.kernel.name)
            function(*(ctypes.c_void_p(ours.flat[buffer][offset:].ctypes.data) for buffer, offset in call.args))
        run_launch(plan, launch, theirs)
        if call:
            want, got = theirs.value(launch.name), ours.value(launch.name)
            assert np.allclose(got, want, rtol=1e-5, atol=2e-6 * np.abs(want).max(initial=0)), launch.name
            products += launch.kind == "epilogue"
    assert products == 2 * 7 + 1


@needs_compiler
@pytest.mark.parametrize("format", ["q4_1x16", "q8_0x16"])
@pytest.mark.parametrize("flags", ["", "#define PLAIN\n"])
def test_a_product_is_within_the_rounding_bound_with_vectors_and_without(format, flags):
    """Blocks of 32 in K = 160, so an odd number of them; subnormal and negative scales, too."""
    rng = np.random.default_rng(2)
    w = rng.standard_normal((48, 160)).astype(F) * F(10.0) ** rng.integers(-6, 3, (48, 1)).astype(F)
    data, x = pack(w, format), rng.standard_normal((2, 160)).astype(F)
    graph = mg.trace(lambda x: x @ PackedMatrix(data, format), mg.spec("f32[2,160]"))
    plan = make_plan(fuse(graph))
    program = CExecutable(plan).program
    executable = CExecutable(plan, program=program, library=build(flags + program.source))
    (got,) = executable({graph.inputs[0].name: x}).values()
    wide = unpack(data, format).astype(np.float64)
    low = wide.reshape(48, 5, 32).min(axis=-1, keepdims=True)  # q4_1's offset; its products cancel
    size = np.abs(wide) + (np.broadcast_to(2 * np.abs(low), (48, 5, 32)).reshape(48, 160) if format == "q4_1x16" else 0)
    bound = 40 * np.finfo(F).eps * (np.abs(x.astype(np.float64)) @ size.T)
    assert (np.abs(got - x.astype(np.float64) @ wide.T) <= bound).all() and np.abs(got).max() > 1


@pytest.mark.parametrize("format", ["q4_1", "q8_0"])
def test_a_block_of_a_tile_lies_in_one_piece(format):
    """Block after block, and in it word after word of 16 rows: read from end to end."""
    facts = FORMATS[format + "x16"]
    rows = np.arange(32 * 3 * facts.nbytes).astype(np.uint8).reshape(32, -1)
    data = interleave(rows, facts.name)
    assert data.shape == (2, 16 * 3 * facts.nbytes)
    block = data[1].reshape(3, -1)[2]
    own = rows.reshape(2, 16, 3, facts.nbytes)[1, :, 2]
    head = 4 if format == "q4_1" else 2
    assert np.array_equal(block[:16 * head].reshape(16, head), own[:, :head])
    assert np.array_equal(block[16 * head:].reshape(-1, 16, 4), own[:, head:].reshape(16, -1, 4).swapaxes(0, 1))
    assert np.array_equal(facts.unravel(data, 3).reshape(32, -1), rows)


class File:
    """As much of a GGUFFile as is read."""

    def __init__(self, array: np.ndarray):
        self.array, self.forgotten = array, 0
        self.path = type("Path", (), {"name": "file.gguf"})

    def raw(self, name, shape):
        return self.array

    def format(self, name):
        return "Q4_1"

    def forget(self):
        self.forgotten += 1


def test_matrices_are_read_into_one_frozen_array_and_not_copied_again(monkeypatch):
    raw = pack(np.random.default_rng(3).standard_normal((PIECE + 32, 64)).astype(F), "q4_1")
    room, file = Room([raw.nbytes, raw.nbytes]), File(raw)
    one, two = (read_packed(file, "w", (PIECE + 32, 64), room) for _ in range(2))
    room.freeze()
    assert np.array_equal(one.data, interleave(raw, "q4_1x16")) and np.array_equal(one.data, two.data) and file.forgotten == 4
    assert one.data.ctypes.data % ALIGNMENT == 0 and two.data.base is one.data.base is room.whole
    graph = mg.trace(lambda x: x @ two, mg.spec("f32[1,64]"))
    (const,) = (node for node in graph.nodes if node.op == "const")
    plan = make_plan(fuse(graph))

    def shared() -> bool:
        return np.shares_memory(Memory(plan, packed=True).flat[const.name], two.data)

    assert not shared(), "small: it may be copied"
    monkeypatch.setattr(run_plan, "HUGE", room.whole.nbytes)
    assert shared()
    with pytest.raises(MinigraphError, match="cannot stay packed"):
        read_packed(file, "w", (24, 64), room)


@needs_compiler
def test_a_function_may_change_its_cache_and_its_results_stay():
    few, _ = models()
    decode = compiled.as_function(optimize(compiled.decode_graph(few)).graph, "c")
    first, second = smollm2.zero_cache(few), smollm2.zero_cache(few)
    a, *same = decode(I32(3), I32(0), first)
    assert all(map(lambda x, y: x is y, same, first))
    kept = a.copy()
    b, *_ = decode(I32(4), I32(1), first)
    c, *_ = decode(I32(3), I32(0), second)
    assert np.array_equal(a, kept) and np.array_equal(a, c) and not np.array_equal(a, b)
    assert np.array_equal(second[0][:, :, 0], first[0][:, :, 0]) and first[0][:, :, 1].any() and not second[0][:, :, 1].any()
    for token, position, error in ((I32(112), I32(0), "out of range"), (I32(3), I32(12), "out of range"), (np.float32(3), I32(0), "i32")):
        with pytest.raises(MinigraphError, match=error):
            decode(token, position, second)
    d, *_ = decode(I32(3), I32(0), second)
    assert np.array_equal(a, d)


def test_the_benchmark_of_language_models_counts_right():
    """Without a model: a contender whose next token is the last one plus 1."""
    from minigraph import bench_llm, llm_contenders

    def toy(threads):
        def step(token, position):
            return np.eye(8)[(token + 1) % 8]

        return llm_contenders.Model(lambda ids: step(ids[-1], 0), step, lambda: None)

    first = llm_contenders.first_tokens(toy(1), {"tokens": [1, 2], "count": 4}, 0.0)
    assert first["tokens"] == [3, 4, 5, 6] and 0 < first["now"] <= first["peak"]
    one = {**first, "steps": [(2.0, 1.0), (4.0, 3.0)], "prefill": [(1.0, 1.0)], "read": [(1.0, 0.5)]}
    other = {**one, "steps": [(6.0, 1.0), (6.0, 1.0)], "read": [], "tokens": [3]}
    row = bench_llm.row_of("C, packed", 1, one, {("plain NumPy", 1): other, ("C, packed", 1): one})
    assert (row["ms/token"], row["median"], row["x NumPy"], row["x llama.cpp"], row["of it"], row["in CPU"]) == (2000, 3000, 3, "", 2, 2)
    assert row["same tokens"] is False
    assert bench_llm.written_on(toy(1), [1, 2], 5) == [1, 2, 3, 4, 5]


def test_a_file_whose_pages_were_given_back_still_reads(tmp_path):
    path, raw = tmp_path / "file", pack(np.random.default_rng(4).standard_normal((16, 64)).astype(F), "q4_1")
    path.write_bytes(raw.tobytes())
    with path.open("rb") as opened:
        data = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
    file = GGUFFile(path, {}, {"w": Tensor(GGUF_FORMATS[3], (16, 64), 0, raw.nbytes)}, data)
    seen = file.raw("w", (16, 64))
    file.forget()
    assert np.array_equal(seen, raw) and np.array_equal(file.raw("w", (16, 64)), raw)
