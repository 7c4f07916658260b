"""What rounding and pruning cost, measured: logits, perplexity, top-1 agreement, and error against bytes.

A model is a function from tokens i32[n] to logits f32[n, vocab], teacher-forced: each token is given, and nothing is
sampled, so that two models can be compared token by token.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from .errors import MinigraphError
from .formats import FORMATS, pack, unpack
from .ops import row

Model = Callable[[np.ndarray], np.ndarray]
Row = dict[str, object]

# Herman Melville, Moby-Dick (1851), from the first chapter; in the public domain.
TEXT = """Call me Ishmael. Some years ago, never mind how long precisely, having little or no money in my purse, and
nothing particular to interest me on shore, I thought I would sail about a little and see the watery part of
the world. It is a way I have of driving off the spleen and regulating the circulation. Whenever I find
myself growing grim about the mouth; whenever it is a damp, drizzly November in my soul; whenever I find
myself involuntarily pausing before coffin warehouses, and bringing up the rear of every funeral I meet; and
especially whenever my hypos get such an upper hand of me, that it requires a strong moral principle to
prevent me from deliberately stepping into the street, and methodically knocking people's hats off, then, I
account it high time to get to sea as soon as I can. This is my substitute for pistol and ball. With a
philosophical flourish Cato throws himself upon his sword; I quietly take to the ship. There is nothing
surprising in this. If they but knew it, almost all men in their degree, some time or other, cherish very
nearly the same feelings towards the ocean with me.""".replace("\n", " ")


def stepwise(decode: Callable, cache: Callable[[], tuple]) -> Model:
    """A model from ``decode(token, position, cache) -> (logits, *cache)``; ``cache()`` makes an empty cache."""

    def model(tokens: np.ndarray) -> np.ndarray:
        state, found = cache(), []
        for position, token in enumerate(tokens):
            logits, *state = decode(np.int32(token), np.int32(position), tuple(state))
            found.append(np.array(logits))
        return np.stack(found)

    return model


def log_shares(logits: np.ndarray) -> np.ndarray:
    """The logarithm of softmax along the last axis, in float64."""
    wide = logits.astype(np.float64)
    wide -= wide.max(axis=-1, keepdims=True)
    return wide - np.log(np.exp(wide).sum(axis=-1, keepdims=True))


def perplexity(logits: np.ndarray, tokens: np.ndarray) -> float:
    """exp of the mean of -log p(next token): f32[n, vocab] and i32[n], of which the first is not predicted."""
    if len(tokens) < 2:
        raise MinigraphError("perplexity needs at least 2 tokens: the first is not predicted")
    return float(np.exp(-np.mean(log_shares(logits[:-1])[np.arange(len(tokens) - 1), tokens[1:]])))


def compare_arrays(a: np.ndarray, b: np.ndarray, tokens: np.ndarray) -> Row:
    """Logits f32[n, vocab] of a model b beside those of a; the rms error is relative to a's own root mean square."""
    gap = (b - a).astype(np.float64)
    size = np.sqrt(np.mean(a.astype(np.float64) ** 2))
    return {
        "tokens": len(tokens),
        "max error": float(np.abs(gap).max()),
        "rms error": float(np.sqrt(np.mean(gap**2)) / size),
        "top-1": float(np.mean(a.argmax(axis=-1) == b.argmax(axis=-1))),
        "perplexity": perplexity(b, tokens),
        "of a": perplexity(a, tokens),
    }


def compare_logits(a: Model, b: Model, prompts: Iterable[np.ndarray]) -> Row:
    """How far b's logits are from a's over prompts i32[n]: the worst error; means over tokens of the others."""
    rows = [compare_arrays(a(tokens), b(tokens), tokens) for tokens in map(np.asarray, prompts)]
    if not rows:
        raise MinigraphError("there are no prompts to compare on")
    count = sum(one["tokens"] for one in rows)
    mean = {key: sum(one[key] * one["tokens"] for one in rows) / count for key in ("rms error", "top-1")}
    logs = {
        key: float(np.exp(sum(np.log(one[key]) * (one["tokens"] - 1) for one in rows) / (count - len(rows))))
        for key in ("perplexity", "of a")
    }
    return {"tokens": count, "max error": max(one["max error"] for one in rows), **mean, **logs}


# ---- one array: error against bytes -----------------------------------------------------------------------------


def rounded_f16(x: np.ndarray) -> tuple[np.ndarray, float]:
    with np.errstate(over="ignore"):
        return x.astype(np.float16).astype(np.float32), 2 * x.size


def rounded_i8(x: np.ndarray) -> tuple[np.ndarray, float]:
    """int8 with a float32 scale a row."""
    scale = np.abs(x).max(axis=-1, keepdims=True) / np.float32(127)
    scale = np.where(scale == 0, np.float32(1), scale)
    return row("dequantize").numpy(row("quantize").numpy(x, scale, "i8"), scale), x.size + scale.nbytes


def rounded_fp8(x: np.ndarray) -> tuple[np.ndarray, float]:
    """fp8 e4m3, whose largest number is 448, with a float32 scale a row.

    Micikevicius et al., "FP8 formats for deep learning", 2022. Raises MinigraphError without ml_dtypes.
    """
    kind = float8()
    scale = np.abs(x).max(axis=-1, keepdims=True) / np.float32(448)
    scale = np.where(scale == 0, np.float32(1), scale)
    return (x / scale).astype(kind).astype(np.float32) * scale, x.size + scale.nbytes


def float8():
    """The dtype e4m3, of the package ml_dtypes. Raises MinigraphError where that is missing."""
    try:
        import ml_dtypes
    except ImportError:
        raise MinigraphError(
            "fp8 is not NumPy's: it needs the package ml_dtypes, which is not installed\n  pip install ml_dtypes"
        ) from None
    return ml_dtypes.float8_e4m3fn


def packed_as(format: str) -> Callable[[np.ndarray], tuple[np.ndarray, float]]:
    def rounded(x):
        data = pack(x, format)
        return unpack(data, format), data.nbytes

    return rounded


ROUNDINGS: dict[str, Callable[[np.ndarray], tuple[np.ndarray, float]]] = {
    "f16": rounded_f16, "i8 a row": rounded_i8, "fp8 e4m3": rounded_fp8,
    **{name: packed_as(name) for name, facts in FORMATS.items() if facts.rows == 1},
}  # fmt: skip


def error_table(array: np.ndarray) -> list[Row]:
    """What each format makes of f32[..., K]: bits a number, bytes, the root mean square and the largest error.

    Both errors are relative to the root mean square of the array. A format that does not fit the shape, or whose
    package is missing, has the reason in the place of numbers.
    """
    array = np.asarray(array, np.float32)
    size = float(np.sqrt(np.mean(array.astype(np.float64) ** 2))) or 1.0
    rows = [error_row("f32", 32.0, array.nbytes, 0.0, 0.0)]
    for name, rounding in ROUNDINGS.items():
        facts = FORMATS.get(name)
        try:
            if facts and array.shape[-1] % facts.values:
                raise MinigraphError(f"rows of {array.shape[-1]} are not whole blocks of {facts.values}")
            rounded, nbytes = rounding(array)
        except MinigraphError as error:
            rows.append(error_row(name, "", "", "", "", str(error).split("\n")[0]))
            continue
        gap = (rounded - array).astype(np.float64)
        error, worst = float(np.sqrt(np.mean(gap**2))) / size, float(np.abs(gap).max()) / size
        rows.append(error_row(name, round(8 * nbytes / array.size, 2), nbytes, error, worst))
    return rows


def error_row(format: str, bits, nbytes, error, worst, note: str = "") -> Row:
    return {"format": format, "bits": bits, "bytes": nbytes, "rms error": error, "max error": worst, "note": note}
