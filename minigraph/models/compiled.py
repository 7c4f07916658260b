"""SmolLM2 through the compiler: trace ``decode`` and ``prefill`` to graphs, optimize, run.

``generate`` from ``chat`` takes the compiled functions in place of the plain NumPy ones; the tokens are the same.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from ..backends import compile
from ..compiler import find_compiler
from ..ir import Graph
from ..pipeline import Optimized, optimize
from ..tracing import trace
from ..types import Type, type_of
from . import chat, smollm2

if TYPE_CHECKING:
    from ..run_c import CExecutable

I32 = Type("i32")


def decode_graph(weights: smollm2.Weights) -> Graph:
    """One token: inputs ``token`` i32[], ``position`` i32[] and ``cache.0`` …; outputs logits and the new cache."""

    def decode(token, position, cache):
        return smollm2.decode(weights, token, position, cache)

    return trace(decode, I32, I32, cache_types(weights))


def prefill_graph(weights: smollm2.Weights, length: int) -> Graph:
    """A prompt of ``length`` tokens: inputs ``tokens`` i32[length] and ``cache.0`` …; outputs as for a token."""

    def prefill(tokens, cache):
        return smollm2.prefill(weights, tokens, cache)

    return trace(prefill, Type("i32", (length,)), cache_types(weights))


def cache_types(weights: smollm2.Weights) -> tuple[Type, ...]:
    return tuple(type_of(array) for array in smollm2.zero_cache(weights))


def as_function(graph: Graph, backend: str = "reference", **options) -> Callable:
    """The graph as a function of its inputs in order, the cache as a tuple; the cache is written in place."""
    names = [node.name for node in graph.inputs]
    cache = [name for name in names if name.startswith("cache.")]
    others = [name for name in names if name not in cache]
    executable = compile(graph, cache, backend, **options)
    pointed: Pointed | None = None

    def function(*arguments):
        nonlocal pointed
        *values, arrays = arguments
        values = tuple(map(np.asarray, values))
        if pointed and pointed.fits(values, arrays):
            return pointed(values)
        inputs = dict(zip(others, values)) | dict(zip(cache, arrays))
        if backend == "c" and not any(copied for _, _, copied in executable.plan.outputs):
            pointed = None  # if this fails, the executable points nowhere
            pointed = Pointed(executable, inputs, len(others))
            return pointed(values)
        return tuple(executable(**inputs).values())

    return function


class Pointed:
    """A C executable that stays pointed at one cache: to check 60 arrays again for each token would take half a millisecond."""

    def __init__(self, executable: CExecutable, inputs: dict[str, np.ndarray], count: int):
        """``count``: how many inputs come before the cache."""
        self.executable = executable
        given = [np.array(array) if number < count else array for number, array in enumerate(inputs.values())]
        inputs = executable.point(dict(zip(inputs, given)))
        self.own, self.arrays = given[:count], given[count:]
        held = set(map(id, self.arrays))
        self.outputs = [(array, id(array) not in held) for array in executable.memory.results(inputs).values()]

    def fits(self, values: tuple, arrays: tuple) -> bool:
        return ((len(values), len(arrays)) == (len(self.own), len(self.arrays)) and all(map(operator.is_, arrays, self.arrays))
                and all(value.dtype == own.dtype and value.shape == own.shape for value, own in zip(values, self.own)))

    def __call__(self, values: tuple) -> tuple:
        for own, value in zip(self.own, values):
            own[...] = value
        self.executable.run()
        return tuple(array.copy() if fresh else array for array, fresh in self.outputs)


def token_by_token(decode: Callable) -> Callable:
    """A ``prefill`` that is made of decodes: no graph has to be compiled for the prompt's length."""

    def prefill(tokens, cache):
        for position, token in enumerate(tokens):
            logits, *cache = decode(token, np.int32(position), tuple(cache))
        return logits, *cache

    return prefill


def generate(
    prompt: str, tokens: int = 128, plain: bool = False, fast: tuple[str, ...] = (),
    on_optimized: Callable[[Optimized], None] = lambda optimized: None, backend: str = "", threads: int = 1,
    on_cut: Callable[[str], object] = lambda why: None,
) -> Iterator[str]:  # fmt: skip
    """The answer to a chat prompt as pieces of text, through the optimized graphs (``plain``: through NumPy alone).

    ``backend`` c decodes from the file's own packed weights in generated code; reference in float32, a NumPy call a
    node. By default c where there is a C compiler. ``on_optimized`` is given the optimized decode graph before the
    first token, ``on_cut`` a sentence where a limit cut the answer off. Raises ModelError.
    """
    backend = backend or ("c" if find_compiler() else "reference")
    packed = backend == "c" and not plain
    weights, tokenizer = chat.load(packed=packed)
    if plain:
        yield from chat.generate(prompt, weights, tokenizer, max_new_tokens=tokens, on_cut=on_cut)
        return
    length = len(tokenizer.chat(prompt))
    if length > weights.max_len:
        raise chat.ModelError(f"The prompt has {length} tokens, but the cache has room for {weights.max_len}.")
    optimized = optimize(decode_graph(weights), fast)
    on_optimized(optimized)
    if packed:
        decode = as_function(optimized.graph, backend, threads=threads)
        prefill = token_by_token(decode)
    else:
        decode = as_function(optimized.graph, backend)
        prefill = as_function(optimize(prefill_graph(weights, length), fast).graph, backend)
    yield from chat.generate(prompt, weights, tokenizer, max_new_tokens=tokens, prefill=prefill, decode=decode, on_cut=on_cut)
