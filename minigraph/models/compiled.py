"""SmolLM2 through the compiler: trace ``decode`` and ``prefill`` to graphs, optimize, run.

``generate`` from ``chat`` takes the compiled functions in place of the plain NumPy ones; the tokens are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ..ir import Graph
from ..pipeline import Optimized, optimize
from ..run_numpy import compile
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


def as_function(graph: Graph) -> Callable:
    """The graph as a function of its inputs in order, the cache as a tuple; the cache is written in place."""
    names = [node.name for node in graph.inputs]
    cache = [name for name in names if name.startswith("cache.")]
    others = [name for name in names if name not in cache]
    executable = compile(graph, donate=cache)

    def function(*arguments):
        *values, arrays = arguments
        inputs = dict(zip(others, map(np.asarray, values))) | dict(zip(cache, arrays))
        return tuple(executable(**inputs).values())

    return function


def generate(
    prompt: str, tokens: int = 128, plain: bool = False, fast: tuple[str, ...] = (),
    on_optimized: Callable[[Optimized], None] = lambda optimized: None,
) -> Iterator[str]:  # fmt: skip
    """The answer to a chat prompt as pieces of text, through the optimized graphs (``plain``: through NumPy alone).

    ``on_optimized`` is given the optimized decode graph before the first token. Raises ModelError.
    """
    weights, tokenizer = chat.load()
    if plain:
        yield from chat.generate(prompt, weights, tokenizer, max_new_tokens=tokens)
        return
    length = len(tokenizer.chat(prompt))
    if length > weights.max_len:
        raise chat.ModelError(f"The prompt has {length} tokens, but the cache has room for {weights.max_len}.")
    optimized = optimize(decode_graph(weights), fast)
    on_optimized(optimized)
    prefill = as_function(optimize(prefill_graph(weights, length), fast).graph)
    yield from chat.generate(prompt, weights, tokenizer, max_new_tokens=tokens, prefill=prefill,
                             decode=as_function(optimized.graph))
