"""What chapter 07 times: programs of many small operations, element-wise work over sizes, and a GPT-2 block."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ..backends import compile
from ..compiler import CompilerError
from ..ir import Graph
from ..launch_model import over_sizes, quantity
from ..timing import compare, import_cupy, synchronized

Rows = list[dict[str, object]]
MANY = 60  # short runs rather than few long ones: on a busy machine the median is then a quiet run's


def compiled(graph: Graph, **inputs: np.ndarray) -> dict[str, Callable[[], None]]:
    """The graph as generated C on fixed arrays, one call from Python: with a launch for each node inside, and fused.

    Without a C compiler: nothing, and a sentence is printed.
    """
    try:
        return {"C: 1 call, unfused": compile(graph, backend="c", fused=False).bind(inputs),
                "C: 1 call, fused": compile(graph, backend="c").bind(inputs)}
    except CompilerError as error:
        print(f"No line for compiled C: {error}")
        return {}


def per_operation(programs: Mapping[str, Callable[[], object]], operations: int, seconds: float = 0.3) -> Rows:
    """Time programs that all do the same ``operations``. Rows: program, a run, an operation, times as
    fast, which is the ratio of the medians that are shown."""
    timings = compare(programs, seconds=seconds, repeat=MANY)
    first = next(iter(timings.values()))
    return [{"program": name, "a run": quantity(one.median, "s"),
             "an operation": quantity(one.median / operations, "s"),
             "times as fast": round(first.median / one.median, 1)} for name, one in timings.items()]


# ---- one addition over sizes ----------------------------------------------------------------------------------------


def numpy_sizes(sizes: Sequence[int]) -> Rows:
    """Seconds of ``np.add(a, b, out=c)`` on float32 arrays. Rows: elements, NumPy."""
    return add_over_sizes("NumPy", np, sizes, lambda: None)


def cupy_sizes(sizes: Sequence[int]) -> Rows:
    """The same in CuPy, until the GPU has done it. Rows: elements, CuPy. Raises MeasureError without a GPU."""
    cupy = import_cupy()
    return add_over_sizes("CuPy", cupy, sizes, cupy.cuda.get_current_stream().synchronize)


def modelled_sizes(sizes: Sequence[int], device: str) -> Rows:
    """The same by the launch model: an addition of float32 moves 12 bytes an element. Rows: elements, CuPy."""
    return [{"elements": size, "CuPy": seconds} for size, seconds in over_sizes(sizes, device, bytes_per_element=12)]


def add_over_sizes(name: str, library, sizes: Sequence[int], wait: Callable[[], object]) -> Rows:
    """All sizes take turns, so that a slow moment of the machine bends no single point."""

    def add(size: int) -> Callable[[], object]:
        a, b, c = (library.ones(size, dtype="float32") for _ in range(3))
        return lambda: library.add(a, b, out=c)

    timings = compare({str(size): add(size) for size in sizes}, seconds=0.1, repeat=MANY, clock=synchronized(wait))
    return [{"elements": size, name: timings[str(size)].median} for size in sizes]


# ---- a block of GPT-2 small -----------------------------------------------------------------------------------------

HIDDEN, HEADS = 768, 12
ONE_THREAD = {name: "1" for name in
              ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")}


def gpt2_share(seconds: float = 0.6) -> Rows:
    """``shares`` of 1 and of 16 tokens on one thread: in a process of its own, for NumPy asks how many threads multiply
    only when it is loaded."""
    program = f"import json; from minigraph.teach.launches import shares; print(json.dumps(shares((1, 16), {seconds})))"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], env=os.environ | ONE_THREAD,
                          stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def shares(tokens: Sequence[int], seconds: float) -> Rows:
    """How much of a GPT-2 small block, in plain NumPy, its four large products take. Rows: tokens, block, products,
    share %, and how many percent faster the block would be if the rest took no time.

    The products are timed inside each run of the block, and the quickest quarter of the runs counts. On a busy machine,
    timed apart, block and products would be disturbed in different moments.
    """
    draw = np.random.default_rng(0)
    shapes = ((HIDDEN, 3 * HIDDEN), (HIDDEN, HIDDEN), (HIDDEN, 4 * HIDDEN), (4 * HIDDEN, HIDDEN))
    weights = [(draw.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32) for shape in shapes]
    biases = [np.zeros(shape[1], np.float32) for shape in shapes]
    rows = []
    for n in tokens:
        runs = timed_blocks(draw.standard_normal((n, HIDDEN)).astype(np.float32), weights, biases, seconds)
        quiet = sorted(runs)[: max(1, len(runs) // 4)]
        block, products = (statistics.median(times) for times in zip(*quiet))
        rows.append({"tokens": n, "block": quantity(block, "s"), "products": quantity(products, "s"),
                     "share %": round(100 * products / block),
                     "faster without the rest %": round(100 * (block / products - 1))})
    return rows


def timed_blocks(x: np.ndarray, weights: Sequence[np.ndarray], biases: Sequence[np.ndarray],
                 seconds: float) -> list[tuple[float, float]]:
    """Run the block again and again, for so many seconds: what it took, and what its products took, of each run."""
    clock, spent, runs = time.perf_counter, [], []

    def timed_product(a, b):
        start = clock()
        c = a @ b
        spent.append(clock() - start)
        return c

    end = clock() + seconds
    while not runs or clock() < end:
        spent.clear()
        start = clock()
        gpt2_block(x, weights, biases, timed_product)
        runs.append((clock() - start, sum(spent)))
    return runs


def gpt2_block(x: np.ndarray, weights: Sequence[np.ndarray], biases: Sequence[np.ndarray],
               product: Callable[[np.ndarray, np.ndarray], np.ndarray] = np.matmul) -> np.ndarray:
    """A block of GPT-2 small, pre-norm, without the causal mask: f32[n, 768] -> f32[n, 768].

    ``product`` multiplies with the four matrices of weights.
    """
    n = len(x)
    q, k, v = np.split(product(normalized(x), weights[0]) + biases[0], 3, axis=-1)
    q, k, v = (one.reshape(n, HEADS, HIDDEN // HEADS).transpose(1, 0, 2) for one in (q, k, v))
    scores = q @ k.transpose(0, 2, 1) / np.float32(np.sqrt(HIDDEN // HEADS))
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    mixed = (e / e.sum(axis=-1, keepdims=True)) @ v
    x = x + product(mixed.transpose(1, 0, 2).reshape(n, HIDDEN), weights[1]) + biases[1]
    h = product(normalized(x), weights[2]) + biases[2]
    h = 0.5 * h * (1 + np.tanh(np.float32(0.7978846) * (h + np.float32(0.044715) * h * h * h)))
    return x + product(h, weights[3]) + biases[3]


def normalized(x: np.ndarray) -> np.ndarray:
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + np.float32(1e-5))
