"""``minigraph bench memory``: every planner on every instance, and the plans of real graphs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import process_time

import numpy as np

from .command.instances import read_instance
from .fusion import fuse
from .ir import Graph
from .plan import make_plan
from .planners import PLANNERS, Buffer, check, lower_bound
from .tracing import conv2d, spec, trace

# MiniMalloc's own seconds in C++ (Moffitt, "MiniMalloc: a lightweight memory allocator for hardware-accelerated machine
# learning", ASPLOS 2023); an ILP and TelaMalloc need more than an hour for each
PUBLISHED = {"A": 4.9, "B": 3.7, "C": 0.64, "E": 3.7, "F": 5.4, "G": 1.2}
CAPACITY = 2**20


INSTANCES = Path(__file__).resolve().parent.parent / "tests" / "memory"  # of a checkout; an installed package has none


def bench_memory(folder: str | Path = INSTANCES, seconds: float = 30.0, seeds: tuple[int, ...] = (0, 1, 2),
                 tell: Callable[[str], object] = lambda text: None) -> list[dict[str, object]]:
    """Footprint over the lower bound, by planner; CPU seconds of the exact search for each seed. The challenges have their
    capacity in the name (``A.1048576.csv``); C's bound is below it, and a search that reaches the bound fits both.
    ``tell`` is given a sentence where the folder has no instance: the rows are then those of real graphs alone."""
    rows, paths = [], sorted(Path(folder).rglob("*.csv"))
    if not paths:
        tell("the instances are left out: they are files of the repository, below tests/memory, which is not around this package")
    for path in paths:
        buffers = read_instance(path)
        name, *rest = path.stem.split(".")
        capacity = int(rest[0]) if rest and rest[0].isdigit() and int(rest[0]) == CAPACITY else None
        rows.append(planned(path.stem if capacity is None else name, buffers, seconds, seeds) | {
            "MiniMalloc s": PUBLISHED.get(name, "") if capacity else ""})
    return rows + real_graphs()


def planned(name: str, buffers: list[Buffer], seconds: float, seeds: tuple[int, ...]) -> dict[str, object]:
    bound = lower_bound(buffers)
    row: dict[str, object] = {"instance": name, "buffers": len(buffers), "bound": bound}
    for planner, function in PLANNERS.items():
        if planner != "exact":
            found = function(buffers)
            assert not check(buffers, found.offsets)
            row[planner] = round(found.footprint / bound, 4) if bound else 1.0
    ratios, times = [], []
    for seed in seeds if seconds else ():
        start = process_time()
        found = PLANNERS["exact"](buffers, seconds=seconds, seed=seed)
        times.append(process_time() - start)
        assert not check(buffers, found.offsets)
        ratios.append(found.footprint / bound if bound else 1.0)
    if times:
        row |= {"exact": round(max(ratios), 4), "exact s": " ".join(f"{one:.1f}" for one in times)}
    return row


def real_graphs() -> list[dict[str, object]]:
    """Arenas of a transformer layer, a prefill of SmolLM2 (where it is installed) and a small CNN, over their bounds."""
    rows = []
    for name, graph in graphs():
        naive = make_plan(fuse(graph), planner=PLANNERS["naive"]).placement
        row: dict[str, object] = {"instance": name, "buffers": len(naive.offsets), "bound": naive.lower_bound}
        for planner in PLANNERS:
            if planner != "exact":
                row[planner] = round(make_plan(fuse(graph), planner=PLANNERS[planner]).placement.footprint / naive.lower_bound, 4)
        rows.append(row)
    return rows


def graphs() -> list[tuple[str, Graph]]:
    from .models import chat, compiled, smollm2
    from .pipeline import optimize

    found = [("transformer layer", compiled.prefill_graph(smollm2.tiny(), 16)), ("small CNN", trace(cnn, *CNN_TYPES))]
    try:
        weights, _ = chat.load()
        found.append(("SmolLM2 prefill of 128", compiled.prefill_graph(weights, 128)))
    except chat.ModelError:
        pass
    return [(name, optimize(graph).graph) for name, graph in found]


def cnn(x, a, b, c):
    """Three convolutions with a residual connection."""
    x = np.maximum(conv2d(x, a, padding=(1, 1, 1, 1)), 0.0)
    y = np.maximum(conv2d(x, b, padding=(1, 1, 1, 1)), 0.0)
    return np.maximum(conv2d(y, c, padding=(1, 1, 1, 1)) + x, 0.0)


CNN_TYPES = tuple(map(spec, ("f32[1,3,32,32]", "f32[16,3,3,3]", "f32[16,16,3,3]", "f32[16,16,3,3]")))
