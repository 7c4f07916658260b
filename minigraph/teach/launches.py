"""What chapter 07 times: programs of many small operations, element-wise work over sizes, and a GPT-2 block."""

from __future__ import annotations

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


def gpt2_share(tokens: Sequence[int] = (1, 16)) -> Rows:
    """How much of a GPT-2 small block, in plain NumPy, its four large products take,
    by the medians. Rows: tokens, block, products, share %.
    """
    draw = np.random.default_rng(0)
    shapes = ((HIDDEN, 3 * HIDDEN), (HIDDEN, HIDDEN), (HIDDEN, 4 * HIDDEN), (4 * HIDDEN, HIDDEN))
    weights = [(draw.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32) for shape in shapes]
    biases = [np.zeros(shape[1], np.float32) for shape in shapes]
    rows = []
    for n in tokens:
        x = draw.standard_normal((n, HIDDEN)).astype(np.float32)
        wide = draw.standard_normal((n, 4 * HIDDEN)).astype(np.float32)

        def products(x=x, wide=wide):
            for weight in weights[:3]:
                x @ weight
            wide @ weights[3]

        parts = {"block": lambda x=x: gpt2_block(x, weights, biases), "products": products}
        timings = compare(parts, seconds=0.6, repeat=MANY)
        took = {name: one.median for name, one in timings.items()}  # the quickest runs are too few on a shared machine
        rows.append({"tokens": n, **{name: quantity(seconds, "s") for name, seconds in took.items()},
                     "share %": round(100 * took["products"] / took["block"])})
    return rows


def gpt2_block(x: np.ndarray, weights: Sequence[np.ndarray], biases: Sequence[np.ndarray]) -> np.ndarray:
    """A block of GPT-2 small, pre-norm, without the causal mask: f32[n, 768] -> f32[n, 768]."""
    n = len(x)
    q, k, v = np.split(normalized(x) @ weights[0] + biases[0], 3, axis=-1)
    q, k, v = (one.reshape(n, HEADS, HIDDEN // HEADS).transpose(1, 0, 2) for one in (q, k, v))
    scores = q @ k.transpose(0, 2, 1) / np.float32(np.sqrt(HIDDEN // HEADS))
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    mixed = (e / e.sum(axis=-1, keepdims=True)) @ v
    x = x + mixed.transpose(1, 0, 2).reshape(n, HIDDEN) @ weights[1] + biases[1]
    h = normalized(x) @ weights[2] + biases[2]
    h = 0.5 * h * (1 + np.tanh(np.float32(0.7978846) * (h + np.float32(0.044715) * h * h * h)))
    return x + h @ weights[3] + biases[3]


def normalized(x: np.ndarray) -> np.ndarray:
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + np.float32(1e-5))
