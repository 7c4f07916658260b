"""Benchmarks: ``minigraph bench passes``, ``llm``, ``checker``, ``gpu``, ``quant`` and ``sparse``. Ratios come from one run.

Each benchmark is a function that returns rows (dicts) for a table. Times vary with the machine and its load, so
nothing here is a test.
"""

from __future__ import annotations

import gc
import random
import resource
import sys
import time
from collections.abc import Callable, Iterable

from .ir import Builder, Graph
from .measure import gpu_machine
from .passes import cse, dce, fold, simplify
from .text import parse, print_graph
from .verify import verify

Row = dict[str, object]


def synthetic(size: int, seed: int = 0) -> Graph:
    """A graph of ``size`` nodes to exercise every pass: 25 % constants, 15 % operations on constants alone, 20 %
    duplicates of earlier operations, the rest fresh; about 70 % are dead once the passes are done."""
    draw = random.Random(seed)
    builder = Builder("synthetic")
    builder.input("x", "f32[7]")
    consts: list[str] = [builder.const(1.0, "f32")]
    values, made = ["x"], [("neg", ("x",))]
    # half of the code is never used: nothing downstream reads from the odd lane
    lanes: list[list[str]] = [["x"], ["x"], ["x"]]
    while len(builder.nodes) < size:
        kind = draw.random()
        if kind < 0.25:
            consts.append(builder.const(draw.choice((0.5, 1.0, 2.0, draw.random())), "f32"))
            continue
        lane = lanes[draw.randrange(3)]
        if kind < 0.40:
            pair = (draw.choice(consts[-50:]), draw.choice(consts[-50:]))
            consts.append(builder.emit(draw.choice(("add", "mul", "sub")), *pair))
            continue
        if kind < 0.60:
            op, inputs = draw.choice(made[-200:])
        else:
            op = draw.choice(("add", "mul", "sub", "neg", "sin", "maximum"))
            operands = (draw.choice(lane[-20:]), draw.choice(consts[-20:] if draw.random() < 0.3 else lane[-20:]))
            inputs = operands[:1] if op in ("neg", "sin") else operands
            made.append((op, inputs))
        value = builder.emit(op, *inputs)
        if kind >= 0.60:
            lane.append(value)
        values.append(value)
    return builder.build({"y": lanes[0][-1]})


def bench_passes(sizes: Iterable[int] = (1_000, 10_000, 100_000), repeat: int = 3) -> list[Row]:
    """Seconds for parse, print, verify and each pass over the synthetic graph (best of ``repeat``), by size."""
    rows = []
    for size in sizes:
        text = print_graph(synthetic(size))
        rows.append(min((passes_once(size, text) for _ in range(repeat)), key=lambda row: row["all"]))
    for row, smaller in zip(rows[1:], rows):
        row["growth"] = round(row["all"] / smaller["all"], 1)
    return rows


def passes_once(size: int, text: str) -> Row:
    row: Row = {"nodes": size}
    gc.collect()
    start_memory = peak_memory()

    def timed(name: str, action: Callable):
        start = time.perf_counter()
        result = action()
        row[name] = round(time.perf_counter() - start, 4)
        return result

    graph = timed("parse", lambda: parse(text))
    timed("print", lambda: print_graph(graph))
    timed("verify", lambda: verify(graph))
    for one in (fold, simplify, cse, dce):
        graph = timed(one.__name__, lambda: one(graph).graph)
    row["passes"] = round(sum(row[one] for one in ("fold", "simplify", "cse", "dce")), 4)
    row["all"] = round(row["passes"] + row["parse"] + row["print"] + row["verify"], 4)
    row["left"] = len(graph)
    row["MB"] = round((peak_memory() - start_memory) / 2**20)
    return row


def peak_memory() -> int:
    """The highest resident memory of this process so far, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def bench_llm() -> list[Row]:
    """SmolLM2 decoding, by NumPy, generated C and llama.cpp; see ``minigraph.bench_llm``."""
    from .bench_llm import bench_llm

    return bench_llm()


def bench_accuracy() -> list[Row]:
    """What packed weights do to SmolLM2's logits, beside llama.cpp; see ``minigraph.bench_llm``."""
    from .bench_llm import bench_accuracy

    return bench_accuracy()


def bench_checker() -> list[Row]:
    """The course's checker against planted mistakes; see ``minigraph.teach.power``."""
    from .teach.power import bench_checker

    return bench_checker()


def bench_gpu() -> dict[str, list[Row]]:
    """All that the chapters show of a GPU; see ``minigraph.bench_gpu``. Says on standard error how far it is."""
    from .bench_gpu import bench_gpu

    return bench_gpu(tell=lambda text: print(text, file=sys.stderr, flush=True))


def bench_quant() -> dict[str, list[Row]]:
    """What fewer bits cost and bring; see ``minigraph.bench_quant``."""
    from .bench_quant import bench_quant

    return bench_quant()


def bench_sparse() -> list[Row]:
    """When zeros pay, and when not; see ``minigraph.bench_sparse``."""
    from .bench_sparse import bench_sparse

    return bench_sparse()


def bench_cpu() -> list[Row]:
    """Generated C against NumPy and other compilers; see ``minigraph.bench_cpu``."""
    from .bench_cpu import bench_cpu

    return bench_cpu()


def bench_memory() -> list[Row]:
    """Planners against instances; see ``minigraph.bench_memory``. Says on standard error where the instances are missing."""
    from .bench_memory import bench_memory

    return bench_memory(tell=lambda text: print(text, file=sys.stderr, flush=True))


# each gives the rows of one table, or several tables by name
BENCHES: dict[str, Callable[[], list[Row] | dict[str, list[Row]]]] = {
    "passes": bench_passes, "llm": bench_llm, "accuracy": bench_accuracy, "checker": bench_checker, "gpu": bench_gpu,
    "quant": bench_quant, "sparse": bench_sparse, "cpu": bench_cpu, "memory": bench_memory,
}  # fmt: skip
RECORDED: dict[str, Callable[[], dict[str, str]]] = {"gpu": gpu_machine}  # what can be kept, with the machine's name
