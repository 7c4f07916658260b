"""SmolLM2 through the compiler: trace ``decode`` and ``prefill`` to graphs, optimize, run.

``generate`` from ``chat`` takes the compiled functions in place of the plain NumPy ones; the tokens are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ..backends import compile
from ..compiler import find_compiler
from ..ir import Graph
from ..pipeline import Optimized, optimize
from ..tracing import trace
from ..types import Type, type_of
from . import chat, smollm2

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

    def function(*arguments):
        *values, arrays = arguments
        inputs = dict(zip(others, map(np.asarray, values))) | dict(zip(cache, arrays))
        return tuple(executable(**inputs).values())

    return function


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
) -> Iterator[str]:  # fmt: skip
    """The answer to a chat prompt as pieces of text, through the optimized graphs (``plain``: through NumPy alone).

    ``backend`` c decodes from the file's own packed weights in generated code; reference in float32, a NumPy call a
    node. By default c where there is a C compiler. ``on_optimized`` is given the optimized decode graph before the
    first token. Raises ModelError.
    """
    backend = backend or ("c" if find_compiler() else "reference")
    packed = backend == "c" and not plain
    weights, tokenizer = chat.load(packed=packed)
    if plain:
        yield from chat.generate(prompt, weights, tokenizer, max_new_tokens=tokens)
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
    yield from chat.generate(prompt, weights, tokenizer, max_new_tokens=tokens, prefill=prefill, decode=decode)
