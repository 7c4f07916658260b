"""``minigraph bench sparse``: when zeros pay. A product with pruned weights, all ways in turns in one run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

import numpy as np

from .backends import compile
from .errors import RunError
from .ir import Builder, Graph
from .passes import compress, dce, prune
from .timing import compare

Row = dict[str, object]
# rows, results and terms; the second is larger than most caches
SHAPES = ((1, 1536, 576), (1, 24576, 576), (4, 1536, 576), (64, 1536, 576))
WAYS = {  # name -> (pattern, share kept)
    "dense": None,
    "zeros anywhere, half": ("unstructured", 0.5),
    "zeros anywhere, 9 in 10": ("unstructured", 0.1),
    "2:4": ("2:4", 0.5),
    "blocks, half left": ("block", 0.5),
    "blocks, a quarter left": ("block", 0.25),
}


def product(rows: int, results: int, terms: int, seed: int = 0) -> Graph:
    """y = x @ w.T, with random weights."""
    builder = Builder("product")
    x = builder.input("x", f"f32[{rows},{terms}]")
    w = builder.const(np.random.default_rng(seed).standard_normal((results, terms)).astype(np.float32))
    return builder.build({"y": builder.emit("matmul", x, w, transpose_b=True)})


def way(graph: Graph, how: tuple[str, float] | None) -> Graph:
    if how is None:
        return graph
    pattern, keep = how
    pruned = prune(graph, pattern, keep, least=0).graph
    return dce(compress(pruned).graph).graph


def stored(graph: Graph) -> int:
    """The bytes of the constants that a graph reads."""
    return sum(node.type.nbytes for node in dce(graph).graph.nodes if node.op == "const")


def own_time(f: Callable[[], object], loops: int) -> float:
    """A clock that counts the processor time of this thread: what runs in between on a busy machine is not ours."""
    start = time.thread_time()
    for _ in range(loops):
        f()
    return time.thread_time() - start


def caller(graph: Graph, x: np.ndarray):
    """A function without arguments that runs the graph in C, without checks where that can be."""
    executable = compile(graph, backend="c")
    try:
        return executable.bind(x=x)
    except RunError:  # a part of it is a library's work
        return lambda: executable(x=x)


def bench_sparse(shapes: Iterable[tuple[int, int, int]] = SHAPES, seconds: float = 0.4) -> list[Row]:
    """Microseconds of each way for each shape, in C on one thread, and how many times faster than dense it is."""
    table = []
    for shape in shapes:
        graphs = {name: way(product(*shape), how) for name, how in WAYS.items()}
        x = np.random.default_rng(1).standard_normal((shape[0], shape[2])).astype(np.float32)
        times = compare({name: caller(graph, x) for name, graph in graphs.items()}, seconds=seconds, clock=own_time)
        for name, graph in graphs.items():
            op = next(node.op for node in graph.nodes if node.op.endswith("matmul"))
            table.append(
                {
                    "rows": shape[0],
                    "weights": f"{shape[1]} x {shape[2]}",
                    "zeros": name,
                    "op": op,
                    "MB": round(stored(graph) / 1e6, 2),
                    "us": round(times[name].median * 1e6, 1),
                    "times faster": round(times[name].times_faster(times["dense"]), 2),
                }
            )
    return table
