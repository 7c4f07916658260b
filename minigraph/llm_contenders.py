"""The contenders of ``minigraph bench llm``, each a process of its own, so that its memory and its threads are its own.

Run as ``python -m minigraph.llm_contenders NAME THREADS START``, this file is such a process: ``serve`` answers what
``Process.ask`` wants to know.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

Row = dict[str, object]
LENGTH = 128  # places in the cache


# ---- the contenders ----------------------------------------------------------------------------------------------------


class Model(NamedTuple):
    """``start(ids)`` fills an empty cache, ``step(token, position)`` adds a token: both give logits f32[vocab]."""

    start: Callable[[list[int]], np.ndarray]
    step: Callable[[int, int], np.ndarray]
    read: Callable[[], object] | None = None  # reads all weights once and does nothing else
    keep: object = None  # what must not be collected


def with_cache(weights, prefill: Callable, decode: Callable, read: Callable | None = None) -> Model:
    from .models import smollm2

    cache: tuple = ()

    def start(ids):
        nonlocal cache
        logits, *cache = prefill(np.array(ids, np.int32), smollm2.zero_cache(weights))
        cache = tuple(cache)
        return logits

    def step(token, position):
        return decode(np.int32(token), np.int32(position), cache)[0]

    return Model(start, step, read)


def load(packed: bool = False):
    """The weights. With the tokenizer, for a program that talks needs it too: it counts as memory and time of loading."""
    from .models import chat

    return chat.load(max_len=LENGTH, packed=packed)[0]


def plain_numpy(threads: int) -> Model:
    from .models import smollm2

    weights = load()
    return with_cache(weights, functools.partial(smollm2.prefill, weights), functools.partial(smollm2.decode, weights))


def graph_numpy(threads: int) -> Model:
    from .models import compiled
    from .pipeline import optimize

    weights = load()
    return with_cache(weights, prefill_graph(weights), compiled.as_function(optimize(compiled.decode_graph(weights)).graph))


def prefill_graph(weights) -> Callable:
    """The prompt through a graph of its length in the NumPy executor: products of many rows are a library's work."""
    from .models import compiled
    from .pipeline import optimize

    functions: dict[int, Callable] = {}

    def prefill(tokens, cache):
        if len(tokens) not in functions:
            functions[len(tokens)] = compiled.as_function(optimize(compiled.prefill_graph(weights, len(tokens))).graph)
        return functions[len(tokens)](tokens, cache)

    return prefill


def c_float(threads: int) -> Model:
    from .models import compiled
    from .passes import dce
    from .passes.pack import pack
    from .pipeline import optimize

    weights = load()
    graph = dce(pack(optimize(compiled.decode_graph(weights)).graph).graph).graph
    decode = compiled.as_function(graph, "c", threads=threads)
    return with_cache(weights, prefill_graph(weights), decode, reading(graph, threads))


def reading(graph, threads: int) -> Callable:
    """A generated sum over as many bytes as the graph has in constants: what reading them takes at least."""
    rows = 8
    columns = sum(node.value.type.nbytes for node in graph.nodes if node.op == "const") // (4 * rows)

    @functools.cache  # made when it is asked for: it is not part of the decoding process's memory
    def bound():
        from .backends import compile
        from .tracing import spec, trace

        total = trace(lambda x: np.sum(x, axis=-1), spec(f"f32[{rows},{columns}]"))
        array = np.ones((rows, columns), np.float32)
        return compile(total, backend="c", threads=threads).bind({total.inputs[0].name: array})

    return lambda: bound()()


def c_packed(threads: int) -> Model:
    from .models import compiled
    from .pipeline import optimize

    weights = load(packed=True)
    decode = compiled.as_function(optimize(compiled.decode_graph(weights)).graph, "c", threads=threads)
    return with_cache(weights, compiled.token_by_token(decode), decode)


def llama_cpp(threads: int) -> Model:
    import ctypes

    import llama_cpp as llama

    from .models.gguf_file import find_model

    @llama.llama_log_callback
    def quiet(*text):
        pass

    llama.llama_log_set(quiet, ctypes.c_void_p(0))
    llama.llama_backend_init()
    model = llama.llama_model_load_from_file(str(find_model()).encode(), llama.llama_model_default_params())
    params = llama.llama_context_default_params()
    params.n_ctx, params.n_threads, params.n_threads_batch = LENGTH, threads, threads
    context = llama.llama_init_from_model(model, params)
    memory = llama.llama_get_memory(context)
    vocab = llama.llama_vocab_n_tokens(llama.llama_model_get_vocab(model))

    def run(ids: list[int]) -> np.ndarray:
        array = (llama.llama_token * len(ids))(*ids)  # the batch only points to it
        if llama.llama_decode(context, llama.llama_batch_get_one(array, len(ids))):
            raise RuntimeError("llama_decode failed")
        return np.ctypeslib.as_array(llama.llama_get_logits(context), (vocab,))

    def start(ids):
        llama.llama_memory_clear(memory, True)
        return run(ids)

    def step(token, position):
        llama.llama_memory_seq_rm(memory, 0, position, -1)  # what an earlier turn left from here on
        return run([token])

    return Model(start, step, keep=(quiet, model))


CONTENDERS: dict[str, Callable[[int], Model]] = {
    "plain NumPy": plain_numpy, "graph, NumPy": graph_numpy, "C, float32": c_float, "C, packed": c_packed, "llama.cpp": llama_cpp,
}  # fmt: skip


# ---- a contender's process ---------------------------------------------------------------------------------------------


def serve(name: str, threads: str, started: str) -> None:
    """Answer each line of JSON on standard input with a line on standard output."""
    model = None
    for line in sys.stdin:
        job = json.loads(line)
        if model is None:
            model = CONTENDERS[name](int(threads))
            answer = first_tokens(model, job, float(started))
        elif job["do"] == "decode":
            steps = [clock(lambda: model.step(token, place)) for place, token in enumerate(job["tokens"], job["position"])]
            answer = {"seconds": steps}
        elif job["do"] == "prefill":
            answer = {"seconds": clock(lambda: model.start(job["tokens"]))}
        elif job["do"] == "read":
            answer = {"seconds": clock(model.read) if model.read else None}
        print(json.dumps(answer), flush=True)


def first_tokens(model: Model, job: Row, started: float) -> Row:
    """Load to first token, memory then, and the tokens that follow."""
    token = int(np.argmax(model.start(job["tokens"])))
    ready = time.time() - started
    cpu = time.process_time()
    tokens, position = [token], len(job["tokens"])
    while len(tokens) < job["count"]:
        tokens.append(int(np.argmax(model.step(tokens[-1], position + len(tokens) - 1))))
    return {"ready": ready, "cpu": cpu, "tokens": tokens, **memory_use()}


def clock(action: Callable) -> tuple[float, float]:
    """Seconds on the wall, and of this process's CPU time: on a busy machine only the second is the program's own."""
    start, cpu = time.perf_counter(), time.process_time()
    action()
    return time.perf_counter() - start, time.process_time() - cpu


def memory_use() -> Row:
    """Resident memory in bytes, now and at most so far; Linux's own words, for getrusage counts what the parent had."""
    try:
        lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
        return {name: int(lines[key].split()[0]) << 10 for name, key in (("now", "VmRSS"), ("peak", "VmHWM"))}
    except (OSError, KeyError):
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << (0 if sys.platform == "darwin" else 10)
        return {"now": peak, "peak": peak}


class Process:
    """A contender at work in a process of its own."""

    def __init__(self, name: str, threads: int):
        self.name, self.threads = name, threads
        environment = {key: value for key, value in os.environ.items() if not key.startswith("OPENBLAS_")}
        environment["OPENBLAS_NUM_THREADS"] = str(threads)
        command = [sys.executable, "-m", "minigraph.llm_contenders", name, str(threads), str(time.time())]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)

    def ask(self, **job) -> Row:
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline() or "null") or {}

    def end(self) -> None:
        self.process.stdin.close()
        self.process.wait()


if __name__ == "__main__":
    serve(*sys.argv[1:])
