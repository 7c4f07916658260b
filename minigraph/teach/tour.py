"""The language model of chapter 00: live where its wheel is installed, recorded where it is not.

The answer is told only as far as it is the same on every machine: processors round differently, so it ends before the
first token whose two likeliest candidates are close. The graph needs no recording: its shape follows from the model's
sizes, so without the model it is traced from weights of the right shapes that mean nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import islice

import numpy as np

from ..ir import Graph
from ..models import chat, compiled, smollm2
from ..models.gguf_file import ModelError, find_model
from ..ops import OPS, Kind
from ..run_numpy import VIEWS

PROMPT = "What does a compiler do? Answer in one sentence."
CLOSE = 0.25  # of the two best scores; rounding moves them by less than a thousandth
# Made by `python -m minigraph.teach.tour`; the tests compare it with the model where that is installed.
RECORDED = ("A| compiler| is| a| software| tool| that| translates| human| code| into| machine| code|,| allowing| developers| to"
            "| write| and| execute| code| without").split("|")
FILE_BYTES = 98_362_432
MAX_LEN = 512  # places in the cache
SIZES = smollm2.Config(layers=30, hidden=576, ffn=1536, heads=9, kv_heads=3, vocab=49152, context=8192, theta=1e5,
                       epsilon=float(np.float32(1e-5)))


def installed() -> bool:
    """Is the model here?"""
    try:
        find_model()
    except ModelError:
        return False
    return True


def came_from() -> str:
    """Where the answer comes from, in one sentence."""
    if installed():
        return "Generated on this machine, just now. It is word for word what was recorded when the course was made."
    return ("Recorded when the course was made: the model is not installed here. `python3 -m course setup` installs it,"
            " and then this cell generates.")


@cache
def load() -> tuple[smollm2.Weights, chat.Tokenizer]:
    return chat.load(max_len=MAX_LEN)


@cache
def weights() -> smollm2.Weights:
    """The model's weights; where it is not installed, arrays of the same shapes that are almost all zeros."""
    return load()[0] if installed() else shaped(SIZES, MAX_LEN)


def answer(graph: Graph | None = None, tokens: int = len(RECORDED)) -> list[str]:
    """The model's answer to ``PROMPT``, a piece of text for each token.

    From plain NumPy, or with ``graph`` (a decode graph) doing each token. Raises AssertionError if the model says
    something else than it was recorded to say.
    """
    if not installed():
        return RECORDED[:tokens]
    numbers, tokenizer = load()
    decode = compiled.as_function(graph) if graph is not None else partial(smollm2.decode, numbers)
    ids = islice(safe_ids(tokenizer.chat(PROMPT), numbers, tokenizer.end, decode), tokens)
    told = [tokenizer.decode([token]) for token in ids]
    if told != RECORDED[:tokens]:
        raise AssertionError(f"the model says something else than it was recorded to say: {told}")
    return told


def safe_ids(prompt: list[int], numbers: smollm2.Weights, end, decode: Callable) -> Iterator[int]:
    """The ids of the answer, as long as the best candidate is well ahead of the second."""
    logits, *cache = smollm2.prefill(numbers, np.array(prompt, np.int32), smollm2.zero_cache(numbers))
    for position in range(len(prompt), numbers.max_len):
        second, best = np.sort(logits)[-2:]
        token = int(np.argmax(logits))
        if best - second < CLOSE or token in end:
            return
        yield token
        logits, *cache = decode(np.array(token, np.int32), np.array(position, np.int32), tuple(cache))


def shaped(config: smollm2.Config, max_len: int) -> smollm2.Weights:
    """Weights that mean nothing. Each array begins with another number: the passes must not take two for the same."""
    count = 0

    def array(*shape: int) -> np.ndarray:
        nonlocal count
        count += 1
        made = np.zeros(shape, np.float32)  # memory that nobody writes to is not taken
        made.flat[0] = count
        made.flags.writeable = False
        return made

    hidden, ffn, kv = config.hidden, config.ffn, config.kv_heads * config.head_dim
    layers = tuple(smollm2.Layer(
        attention_norm=array(hidden), query=array(hidden, hidden), key=array(hidden, kv), value=array(hidden, kv),
        output=array(hidden, hidden), ffn_norm=array(hidden), gate=array(hidden, ffn), up=array(hidden, ffn),
        down=array(ffn, hidden)) for _ in range(config.layers))  # fmt: skip
    return smollm2.Weights(config, array(config.vocab, hidden), layers, array(hidden),
                           *smollm2.rotary_tables(config, max_len))


def parameters(numbers: smollm2.Weights) -> dict[str, int]:
    """How many numbers the model has learned: embedding, one layer, and all."""
    layer = sum(getattr(numbers.layers[0], name).size for name in smollm2.Layer.__dataclass_fields__)
    total = numbers.embedding.size + len(numbers.layers) * layer + numbers.norm.size
    return {"embedding": numbers.embedding.size, "one layer": layer, "all": total}


def launches(graph: Graph) -> list:
    """The nodes that are a call of their own when NumPy runs the graph."""
    return [node for node in graph.nodes if OPS[node.op].kind not in (Kind.INPUT, Kind.CONST) and node.op not in VIEWS]


def arithmetic(graph: Graph, nodes: list) -> int:
    """How many additions, multiplications and the like these nodes of the graph carry out."""
    types = {node.name: node.type for node in graph.nodes}
    return sum(OPS[node.op].flops(tuple(types[name] for name in node.inputs), node.value, node.type) for node in nodes)


if __name__ == "__main__":
    numbers, tokenizer = load()
    ids = safe_ids(tokenizer.chat(PROMPT), numbers, tokenizer.end, partial(smollm2.decode, numbers))
    print("|".join(tokenizer.decode([token]) for token in ids))
    print(find_model().stat().st_size, "bytes in the file;", numbers.config)
