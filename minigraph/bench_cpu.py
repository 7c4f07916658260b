"""``minigraph bench cpu``: generated kernels against NumPy, and against other compilers where they are installed.

All contenders of a task take turns in one run. Every one works in warm memory: fresh pages cost more than the
arithmetic, so malloc is told to keep what it has (the environment below), and NumPy also has a line that writes with
``out=`` into arrays that are there already. Inputs are float32, the same for all.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from . import peers
from .backends import compile
from .errors import MinigraphError
from .run_plan import aligned
from .timing import compare
from .tracing import spec, trace

# glibc gives large arrays back to the system at once, unless it is told otherwise before the process starts
WARM = {"MALLOC_MMAP_THRESHOLD_": "1073741824", "MALLOC_TRIM_THRESHOLD_": "4294967296"}
COLD = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")  # set on some machines; they change NumPy's own speed


class Task(NamedTuple):
    """A function of NumPy arrays, and the shapes of its arguments."""

    name: str
    function: Callable[..., np.ndarray]
    shapes: tuple[tuple[int, ...], ...]
    out: Callable | None = None  # (buffers, *arrays): the same with ``out=``


def chain(x):
    return np.sqrt(np.maximum((x * 1.5 + 2.0) * 0.5 - 1.0, 0.25) * 3.0 + 1.0)


def chain_out(y, x):
    np.multiply(x, np.float32(1.5), out=y)
    np.add(y, np.float32(2.0), out=y)
    np.multiply(y, np.float32(0.5), out=y)
    np.subtract(y, np.float32(1.0), out=y)
    np.maximum(y, np.float32(0.25), out=y)
    np.multiply(y, np.float32(3.0), out=y)
    np.add(y, np.float32(1.0), out=y)
    np.sqrt(y, out=y)


def curved(x):
    return (np.tanh((np.exp(np.sin(x * 1.5)) + 2.0) * 0.25) - 0.5) * 3.0


def curved_out(y, x):
    np.multiply(x, np.float32(1.5), out=y)
    np.sin(y, out=y)
    np.exp(y, out=y)
    np.add(y, np.float32(2.0), out=y)
    np.multiply(y, np.float32(0.25), out=y)
    np.tanh(y, out=y)
    np.subtract(y, np.float32(0.5), out=y)
    np.multiply(y, np.float32(3.0), out=y)


def softmax(x):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def layer_norm(x, scale, shift):
    centred = x - np.mean(x, axis=-1, keepdims=True)
    variance = np.mean(centred * centred, axis=-1, keepdims=True)
    return centred / np.sqrt(variance + 1e-5) * scale + shift


def gelu(x):
    return 0.5 * x * (1.0 + np.tanh(0.7978846 * (x + 0.044715 * (x * x * x))))


def ones(x):
    """A thousand operations on one element."""
    for _ in range(500):
        x = x * 1.5 + 0.5
    return x


TASKS = (
    *(Task(f"chain of 8, {size:.0e}", chain, ((size,),), chain_out) for size in (10**3, 10**5, 10**7)),
    *(Task(f"chain of 8 with sin exp tanh, {size:.0e}", curved, ((size,),), curved_out) for size in (10**3, 10**5, 10**7)),
    Task("softmax (32,512,512)", softmax, ((32, 512, 512),)),
    Task("layer-norm (512,768)", layer_norm, ((512, 768), (768,), (768,))),
    Task("GELU-tanh (512,3072)", gelu, ((512, 3072),)),
    Task("1000 operations on 1 element", ones, ((1,),)),
)  # fmt: skip


def contenders(task: Task, threads: int, chosen: Iterable[str] = ()) -> dict[str, Callable[[], object]]:
    """Functions without arguments that do the task, by name; ``chosen`` are peers to take along."""
    rng = np.random.default_rng(0)
    arrays = [in_line(rng.standard_normal(shape).astype(np.float32)) for shape in task.shapes]
    found: dict[str, Callable] = {"numpy": lambda: task.function(*arrays)}
    if task.out:
        buffer = in_line(np.zeros(task.shapes[0], np.float32), arrays[0].ctypes.data)
        found["numpy out="] = lambda: task.out(buffer, *arrays)
    graph = trace(task.function, *(spec(f"f32[{','.join(map(str, shape))}]") for shape in task.shapes))
    bound = compile(graph, backend="c", threads=threads).bind(dict(zip([node.name for node in graph.inputs], arrays)))
    found["minigraph c"] = bound
    want = task.function(*arrays)
    check(task, "minigraph c", next(iter(bound.outputs.values())), want, bound)
    if "chain" in task.name:
        target = in_line(np.zeros_like(arrays[0]), arrays[0].ctypes.data)
        found["copy"] = lambda: np.copyto(target, arrays[0])  # read once, write once: nothing can be faster
    for name, (run, result) in peers.contenders(chosen, task.name, task.function, arrays, threads).items():
        check(task, name, result(), want)
        found[name] = run
    return found


def in_line(array: np.ndarray, read: int = 0) -> np.ndarray:
    """A copy that starts with a line of the cache: where an array happens to lie would favour one contender or another.
    ``read``: the address of what is read while it is written."""
    copy = aligned(array.nbytes, read).view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def check(task: Task, name: str, result: np.ndarray, want: np.ndarray, run: Callable | None = None) -> None:
    if run is not None:
        run()
    if not np.allclose(result, want, rtol=1e-4, atol=1e-5, equal_nan=True):
        raise MinigraphError(f"{name} gives other values than NumPy for {task.name}")


def rows(threads: int, words: str, seconds: float, chosen: Iterable[str]) -> list[dict[str, object]]:
    """One row a task and contender: microseconds (median), and how many times faster than plain NumPy in the same run."""
    table = []
    for task in TASKS:
        if not all(word in task.name for word in words.split()):
            continue
        found = contenders(task, threads, chosen)
        if chosen and not set(chosen) & set(found):
            continue  # they cannot do this task
        times = compare(found, seconds=seconds)
        for name, timing in times.items():
            table.append({"task": task.name, "threads": threads, "with": " ".join(chosen), "contender": name,
                          "us": float(f"{timing.median * 1e6:.4g}"), "x numpy": round(timing.times_faster(times["numpy"]), 2)})
    return table


def bench_cpu(threads: Iterable[int] = (1, 2), words: str = "", seconds: float = 1.0) -> list[dict[str, object]]:
    """The table. ``words``: only tasks whose names have them.

    Each number of threads has a process of its own with warm memory, and so has each peer, because not all of them
    bear each other's thread pools: NumPy and ours run again beside each one, in turns.
    """
    table = []
    for count in threads:
        for chosen in [[], *([name] for name in peers.installed())]:
            table += one_process({"threads": count, "words": words, "seconds": seconds, "chosen": chosen})
    return sorted(table, key=lambda row: row["threads"] * 100 + [task.name for task in TASKS].index(row["task"]))


def one_process(options: dict) -> list[dict[str, object]]:
    environment = {name: value for name, value in os.environ.items() if name not in COLD}
    environment |= WARM | {name: str(options["threads"]) for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")}
    done = subprocess.run([sys.executable, "-W", "ignore", "-m", "minigraph.bench_cpu", json.dumps(options)], env=environment, stdout=subprocess.PIPE, text=True)
    ended = {"error": f"its process ended with status {done.returncode}"}
    found = ended if done.returncode else json.loads(done.stdout.splitlines()[-1])
    if isinstance(found, list):
        return found
    if options["chosen"]:  # a peer's own troubles are not ours to mend
        print(f"{options['chosen'][0]} left out with {options['threads']} threads: {found['error']}", file=sys.stderr)
        return []
    raise MinigraphError(f"the benchmark ended early: {found['error']}")


def rows_or_error(options: dict) -> list[dict[str, object]] | dict[str, str]:
    """For the parent process: what went wrong is a sentence, as everywhere."""
    try:
        return rows(**options)
    except Exception as error:  # a peer may raise anything
        if os.environ.get("MINIGRAPH_DEBUG", "0") not in ("", "0"):
            traceback.print_exc()
        return {"error": str(error) if isinstance(error, MinigraphError) else f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    print(json.dumps(rows_or_error(json.loads(sys.argv[1]))), flush=True)
    os._exit(0)  # some peers' threads crash at exit
