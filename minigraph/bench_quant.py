"""``minigraph bench quant``: what fewer bits cost and what they bring: one matrix, one product, and SmolLM2 itself.

The file's weights are 4-bit already; float32 means those, expanded. Every way takes turns with the others in one run.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

import numpy as np

from .accuracy import TEXT, compare_arrays, error_table
from .backends import compile
from .bench_sparse import caller, own_time, product, stored
from .calibrate import calibrate
from .ir import Graph
from .passes import activations, compress, dce, fuse_dequantize, prune, quantize_activations, quantize_weights
from .pipeline import optimize
from .plan import make_plan
from .timing import compare

Row = dict[str, object]
OTHER_TEXT = "The sea is calm tonight, and the ships lie in the harbour."  # to calibrate on


def tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def integers(graph: Graph, samples: list[dict[str, np.ndarray]], **how) -> Graph:
    eight = quantize_weights(graph, "i8", least=0).graph
    return quantize_activations(eight, calibrate(eight, samples, **how)).graph


def bench_products(results: int = 1536, terms: int = 576, seconds: float = 0.3) -> list[Row]:
    """One row times a matrix, in C on one thread: microseconds, bytes that all launches move, and the error."""
    dense = product(1, results, terms)
    x = np.random.default_rng(1).standard_normal((1, terms)).astype(np.float32)
    graphs = {"f32": dense}
    for format in ("q8_0x16", "q4_1x16", "i8"):
        apart = quantize_weights(dense, format, least=0).graph
        graphs |= {f"{format}, expanded first": apart, f"{format}, fused": fuse_dequantize(apart).graph}
    graphs["i8 times i8"] = integers(dense, [{"x": x}])
    graphs = {name: dce(graph).graph for name, graph in graphs.items()}
    exact = compile(dense)(x=x)["y"]
    times = compare({name: caller(graph, x) for name, graph in graphs.items()}, seconds=seconds, clock=own_time)
    return [
        {
            "product": name,
            "weights MB": round(stored(graph) / 1e6, 2),
            "moved MB": round(make_plan(graph).bytes_moved / 1e6, 2),
            "us": round(times[name].median * 1e6, 1),
            "times faster": round(times[name].times_faster(times["f32"]), 2),
            "rms error": float(f"{np.sqrt(np.mean((compile(graph)(x=x)['y'] - exact) ** 2)) / exact.std():.2g}"),
        }
        for name, graph in graphs.items()
    ]


def model_ways(graph: Graph, samples: list[dict[str, np.ndarray]]) -> dict[str, Graph]:
    """SmolLM2's decode graph, weights stored in each way; ``samples`` are inputs to calibrate on."""
    fused = {
        name: fuse_dequantize(quantize_weights(graph, format).graph).graph
        for name, format in (("q8_0", "q8_0x16"), ("q4_1", "q4_1x16"), ("i8 a row", "i8"))
    }
    head = quantize_weights(graph, "q8_0x16", least=2**24).graph  # only the largest matrix, which is also the embedding
    fused["as in the file: q4_1, head q8_0"] = fuse_dequantize(quantize_weights(head, "q4_1x16").graph).graph
    eight = quantize_weights(graph, "i8").graph
    scales = {
        name: calibrate(graph, samples, method, names=activations(eight))
        for name, method in (("minmax", "minmax"), ("99.9 %", "percentile"))
    }
    both = {f"i8 times i8, {name}": quantize_activations(eight, found).graph for name, found in scales.items()}
    sparse = {
        name: compress(prune(graph, pattern).graph).graph
        for name, pattern in (("2:4", "2:4"), ("half of the blocks", "block"))
    }
    return {"f32": graph, **fused, **both, **sparse}


def bench_model(tokens: int = 48, calibrated: int = 16) -> list[Row]:
    """SmolLM2 teacher-forced on the first tokens of a public-domain text: error, agreement, perplexity, ms a token.

    Scales are calibrated on another text than the one that is measured on. Raises ModelError without the model.
    """
    from .models import chat, compiled, smollm2

    weights, tokenizer = chat.load(max_len=max(tokens, calibrated, 64))
    given = np.array(tokenizer.encode(TEXT)[:tokens], np.int32)
    graph = optimize(compiled.decode_graph(weights)).graph
    tell("calibrating")
    ways = model_ways(graph, samples(weights, graph, tokenizer.encode(OTHER_TEXT)[:calibrated]))
    decodes: dict[str, Callable] = {}
    for name, one in ways.items():
        tell(f"compiling {name}")
        decodes[name] = compiled.as_function(optimize(one).graph, "c")
    caches = {name: smollm2.zero_cache(weights) for name in ways}
    logits: dict[str, list[np.ndarray]] = {name: [] for name in ways}
    times: dict[str, list[float]] = {name: [] for name in ways}
    for position, token in enumerate(given):
        for name, decode in decodes.items():  # in turns, so that a slow moment hits all of them
            start = time.thread_time()  # see own_time
            out, *caches[name] = decode(token, np.int32(position), tuple(caches[name]))
            times[name].append(time.thread_time() - start)
            logits[name].append(out.copy())
    base = np.stack(logits["f32"])
    rows = []
    for name, graph in ways.items():
        found = compare_arrays(base, np.stack(logits[name]), given)
        ratio = statistics.median(b / a for a, b in zip(times[name], times["f32"]))
        rows.append(
            {
                "weights": name,
                "MB": round(stored(graph) / 1e6, 1),
                "rms error": round(found["rms error"], 4),
                "max error": round(found["max error"], 3),
                "top-1": round(found["top-1"], 3),
                "perplexity": round(found["perplexity"], 2),
                "ms/token": round(1e3 * statistics.median(times[name]), 1),
                "times faster": round(ratio, 2),
            }
        )
    return rows


def samples(weights, graph: Graph, tokens) -> list[dict[str, np.ndarray]]:
    """The inputs of the decode graph at each token of a text; the cache grows as it does in use."""
    from .models import smollm2

    names = [node.name for node in graph.inputs]
    token_name, position_name = (name for name in names if not name.startswith("cache"))
    executable, cache, found = compile(graph), smollm2.zero_cache(weights), []
    for position, token in enumerate(tokens):
        inputs = {
            token_name: np.array(token, np.int32),
            position_name: np.array(position, np.int32),
            **dict(zip((name for name in names if name.startswith("cache")), cache)),
        }
        found.append(inputs)
        _, *cache = executable(inputs).values()
    return found


def bench_quant(tokens: int = 48) -> dict[str, list[Row]]:
    """Three tables: a matrix of SmolLM2 in each format, one product, and the whole model."""
    from .models import chat

    weights, _ = chat.load()
    matrix = error_table(weights.layers[0].gate.T)
    del weights
    return {"a matrix": matrix, "a product": bench_products(), "the model": bench_model(tokens)}
