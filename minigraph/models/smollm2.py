"""SmolLM2-135M-Instruct, a real language model, as plain NumPy that a tracer can follow.

A Llama-style decoder (Touvron et al. 2023): RMSNorm (Zhang & Sennrich 2019), rotary positions (Su et al. 2021),
grouped-query attention (Ainslie et al. 2023), SwiGLU (Shazeer 2020) and an output layer that shares the
embedding's weights. The model is by Hugging Face (Ben Allal et al. 2025), under Apache-2.0.

``decode`` computes one token and ``prefill`` a whole prompt. Both are expressions only: no branch depends on
a computed value. Two things that NumPy does not hand to a tracer go through ``take`` (a row of a constant table
at an index known only when run) and ``write`` (into the cache). Everything is float32.

Letters in the shapes: n tokens, L = ``max_len`` places in the cache, H query heads, G key-value heads,
d numbers in a head.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .gguf_file import GGUFFile, ModelError, find_model, read
from .packed import PackedMatrix, packed_room, read_packed

MINUS_INFINITY = np.float32(-np.inf)


@dataclass(frozen=True)
class Config:
    """The hyper-parameters. SmolLM2-135M: 30 layers, hidden 576, ffn 1536, 9 heads, 3 kv_heads, vocab 49152."""

    layers: int
    hidden: int
    ffn: int
    heads: int
    kv_heads: int
    vocab: int
    context: int
    theta: float
    epsilon: float

    @property
    def head_dim(self) -> int:
        return self.hidden // self.heads

    def __post_init__(self):
        sizes = (self.layers, self.hidden, self.ffn, self.heads, self.kv_heads, self.vocab, self.context)
        if min(sizes) < 1 or self.hidden % (2 * self.heads) or self.heads % self.kv_heads:
            raise ModelError(f"The sizes do not fit together (heads, an even head size, groups of heads): {self}.")
        if not (math.isfinite(self.theta) and self.theta > 1 and 0 < self.epsilon < 1):
            raise ModelError(f"theta must be above 1 and epsilon between 0 and 1: {self}.")


@dataclass(frozen=True, eq=False)
class Layer:
    """One block's weights. Matrices are f32[in, out], so that they are used as ``x @ w``.

    (With one row, OpenBLAS reads ``x @ w[in, out]`` and ``w[out, in] @ x`` equally fast, 13 to 15 GB/s.)
    """

    attention_norm: np.ndarray  # f32[hidden]
    query: np.ndarray  # f32[hidden, H*d]
    key: np.ndarray  # f32[hidden, G*d]
    value: np.ndarray  # f32[hidden, G*d]
    output: np.ndarray  # f32[H*d, hidden]
    ffn_norm: np.ndarray  # f32[hidden]
    gate: np.ndarray  # f32[hidden, ffn]
    up: np.ndarray  # f32[hidden, ffn]
    down: np.ndarray  # f32[ffn, hidden]


@dataclass(frozen=True, eq=False)
class Weights:
    """The whole model: read-only f32 arrays, and the tables of the rotary angles for L positions."""

    config: Config
    embedding: np.ndarray  # f32[vocab, hidden], also the output layer
    layers: tuple[Layer, ...]
    norm: np.ndarray  # f32[hidden]
    cos: np.ndarray  # f32[L, d/2]
    sin: np.ndarray  # f32[L, d/2]

    @property
    def max_len(self) -> int:
        """L: how many tokens fit in the cache."""
        return self.cos.shape[0]


# The model.


def rms_norm(x, weight, epsilon):
    """f32[n, hidden] -> f32[n, hidden]: each row divided by its root mean square."""
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + epsilon) * weight


def rotate(x, cos, sin):
    """Rotary positions: f32[n, heads, d], f32[n, 1, d/2] twice -> f32[n, heads, d].

    Numbers 2i and 2i+1 of a head are a point in the plane, turned by the i-th angle of the token's position.
    (GGUF stores the pairs side by side; the original weights have them d/2 apart.)
    """
    n, heads, d = x.shape
    pairs = x.reshape(n, heads, d // 2, 2)
    a, b = pairs[..., 0], pairs[..., 1]
    return np.stack([a * cos - b * sin, a * sin + b * cos], axis=-1).reshape(n, heads, d)


def softmax(x):
    """Along the last axis. Subtracting the largest number keeps exp from overflowing."""
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def silu(x):
    """x * sigmoid(x); far below zero exp overflows to inf, and the quotient is the right limit, -0."""
    return x / (1 + np.exp(-x))


def attention(q, keys, values, visible):
    """f32[n, H, d], f32[G, d, L], f32[G, L, d], bool[n, L] -> f32[n, H*d].

    H/G query heads share each key-value head: they become rows of one matrix product.
    """
    n, heads, d = q.shape
    groups, length = values.shape[:2]
    rows = (q * (1 / math.sqrt(d))).transpose(1, 0, 2).reshape(groups, heads // groups * n, d)
    scores = (rows @ keys).reshape(groups, heads // groups, n, length)
    shares = softmax(np.where(visible, scores, MINUS_INFINITY))
    mixed = shares.reshape(groups, heads // groups * n, length) @ values
    return mixed.reshape(heads, n, d).transpose(1, 0, 2).reshape(n, heads * d)


def forward(weights, x, cos, sin, visible, position, cache):
    """All blocks for n tokens whose first is at ``position`` -> (f32[vocab] of the last token, *new cache).

    ``x`` f32[n, hidden], ``cos`` and ``sin`` f32[n, 1, d/2], ``visible`` bool[n, m]: which of the first m
    places of the cache each token may look at.
    """
    c, n, m, new_cache = weights.config, *visible.shape, []
    for layer, keys, values in zip(weights.layers, cache[0::2], cache[1::2], strict=True):
        h = rms_norm(x, layer.attention_norm, c.epsilon)
        q = rotate((h @ layer.query).reshape(n, c.heads, c.head_dim), cos, sin)
        k = rotate((h @ layer.key).reshape(n, c.kv_heads, c.head_dim), cos, sin)
        v = (h @ layer.value).reshape(n, c.kv_heads, c.head_dim)
        keys = write(keys, k.transpose(1, 2, 0), position, axis=2)
        values = write(values, v.transpose(1, 0, 2), position, axis=1)
        new_cache += [keys, values]
        if m < weights.max_len:  # sizes, not values: this is decided once, when traced
            keys, values = keys[:, :, :m], values[:, :m]
        x = x + attention(q, keys, values, visible) @ layer.output
        h = rms_norm(x, layer.ffn_norm, c.epsilon)
        x = x + (silu(h @ layer.gate) * (h @ layer.up)) @ layer.down
    last = rms_norm(x[n - 1], weights.norm, c.epsilon)
    return weights.embedding @ last, *new_cache


def decode(weights, token, position, cache):
    """One token at ``position``, both i32[] -> (logits f32[vocab], *new cache).

    The cache must hold the tokens at 0 to position-1. With NumPy arrays its arrays are overwritten and
    returned. An IndexError says if the token or the position is out of range, before anything is written.
    """
    c, length = weights.config, weights.max_len
    _check_range(token, c.vocab, "token")
    _check_range(position, length, "position")
    x = take(weights.embedding, token).reshape(1, c.hidden)
    cos = take(weights.cos, position).reshape(1, 1, c.head_dim // 2)
    sin = take(weights.sin, position).reshape(1, 1, c.head_dim // 2)
    visible = (np.arange(length, dtype=np.int32) <= position).reshape(1, length)
    return forward(weights, x, cos, sin, visible, position, cache)


def prefill(weights, tokens, cache):
    """A prompt, i32[n] with 1 <= n <= L, at positions 0 to n-1 -> (logits f32[vocab] after its last token, *new cache).

    Gives what n calls of ``decode`` give, up to rounding, but reads each weight once instead of n times.
    """
    c, n = weights.config, tokens.shape[0]
    if not 1 <= n <= weights.max_len:
        raise ValueError(f"A prompt of {n} tokens does not fit in a cache of {weights.max_len} places.")
    _check_range(tokens, c.vocab, "token")
    x = take(weights.embedding, tokens)
    cos = weights.cos[:n].reshape(n, 1, c.head_dim // 2)
    sin = weights.sin[:n].reshape(n, 1, c.head_dim // 2)
    visible = np.tri(n, dtype=bool)
    return forward(weights, x, cos, sin, visible, 0, cache)


# Rows of tables, and the cache.


def take(table, index):
    """``table[index]`` for an index known only when run: i32[...] -> f32[..., columns].

    With an array as the table, NumPy asks the index neither in ``table[index]`` nor in ``np.take`` (whose
    override looks at the table alone), so the tracer is called by name.
    """
    if isinstance(table, PackedMatrix):
        return table.row(index)
    if isinstance(table, np.ndarray) and not _is_concrete(index):
        from ..tracing import take

        return take(table, index, axis=0)
    return np.take(table, index, axis=0)


def zero_cache(weights) -> tuple[np.ndarray, ...]:
    """An empty cache: keys f32[G, d, L] and values f32[G, L, d] of each layer in turn.

    Zeros, not ``np.empty``: places not yet written get attention weight 0, and 0 * NaN would be NaN.
    Keys are stored transposed, so that ``q @ keys`` needs no transpose: at L = 512 one such product takes
    26 us, and ``q @ keys.transpose(...)`` of the other layout 96 us.
    """
    c, length = weights.config, weights.max_len
    shapes = (c.kv_heads, c.head_dim, length), (c.kv_heads, length, c.head_dim)
    return tuple(np.zeros(shape, np.float32) for _ in range(c.layers) for shape in shapes)


def write(cache, new, position, *, axis):
    """``cache`` with ``new`` at ``position`` along ``axis``; IndexError if it does not fit, never clamped.

    Arrays are written in place and returned: a copy of all 60 would cost more than the decode itself.
    Under a tracer the same call is recorded as an ``update_slice``, which has no side effect.
    """
    if not (isinstance(cache, np.ndarray) and isinstance(new, np.ndarray) and _is_concrete(position)):
        from ..tracing import update_slice

        return update_slice(cache, new, position, axis=axis)
    start, size = operator.index(position), new.shape[axis]
    _check_range(start, cache.shape[axis] - size + 1, "position")
    cache[(slice(None),) * axis + (slice(start, start + size),)] = new
    return cache


def _is_concrete(value) -> bool:
    return isinstance(value, (int, np.integer, np.ndarray))


def _check_range(value, size: int, what: str) -> None:
    """IndexError unless 0 <= value < size. (NumPy would count negative ones from the end.) Graphs check at run time."""
    if _is_concrete(value) and not np.all((np.asarray(value) >= 0) & (np.asarray(value) < size)):
        raise IndexError(f"The {what} must be at least 0 and less than {size}, but it is {value}.")


# Making weights.


def rotary_tables(config: Config, max_len: int) -> tuple[np.ndarray, np.ndarray]:
    """cos and sin, f32[max_len, d/2], of position * theta**(-2i/d); computed in float64."""
    if not 1 <= max_len <= config.context:
        raise ModelError(f"max_len must be between 1 and {config.context}, the model's context, but it is {max_len}.")
    speed = config.theta ** (-np.arange(0, config.head_dim, 2) / config.head_dim)
    angle = np.arange(max_len)[:, None] * speed
    return _frozen(np.cos(angle)), _frozen(np.sin(angle))


def load(source: GGUFFile | str | Path | None = None, max_len: int = 512, packed: bool = False) -> Weights:
    """The weights from a GGUF file, by default the installed one; raises ModelError.

    540 MB of float32; ``packed``: 96 MB, the matrices in the blocks of the file. ``max_len`` is L, the length of the
    cache made by ``zero_cache``.
    """
    file = source if isinstance(source, GGUFFile) else read(source if source is not None else find_model())
    config = read_config(file)
    cos, sin = rotary_tables(config, max_len)
    hidden, ffn, kv = config.hidden, config.ffn, config.kv_heads * config.head_dim
    used, room = [], packed_room(file) if packed else None

    def get(name: str, *shape: int) -> np.ndarray:
        used.append(name)
        return _frozen(file.array(name, shape))

    def matrix(name: str, rows: int, columns: int) -> np.ndarray | PackedMatrix:
        if packed:
            used.append(name)
            return read_packed(file, name, (columns, rows), room)
        # GGUF stores f32[out, in]; the copy puts it in the order in which `x @ w` reads it.
        return _frozen(get(name, columns, rows).T)

    def layer(prefix: str) -> Layer:
        return Layer(
            attention_norm=get(prefix + "attn_norm.weight", hidden),
            query=matrix(prefix + "attn_q.weight", hidden, hidden),
            key=matrix(prefix + "attn_k.weight", hidden, kv),
            value=matrix(prefix + "attn_v.weight", hidden, kv),
            output=matrix(prefix + "attn_output.weight", hidden, hidden),
            ffn_norm=get(prefix + "ffn_norm.weight", hidden),
            gate=matrix(prefix + "ffn_gate.weight", hidden, ffn),
            up=matrix(prefix + "ffn_up.weight", hidden, ffn),
            down=matrix(prefix + "ffn_down.weight", ffn, hidden),
        )

    weights = Weights(
        config=config,
        embedding=matrix("token_embd.weight", hidden, config.vocab) if packed else get("token_embd.weight", config.vocab, hidden),
        layers=tuple(layer(f"blk.{i}.") for i in range(config.layers)),
        norm=get("output_norm.weight", hidden),
        cos=cos,
        sin=sin,
    )
    if room:
        room.freeze()
    if extra := sorted(set(file.tensors) - set(used)):
        # For example an output layer of its own, or biases: a model that this file does not describe.
        raise ModelError(f"{file.path.name}: this architecture has no tensor `{extra[0][:40]}`.")
    return weights


def read_config(file: GGUFFile) -> Config:
    """The hyper-parameters in the file's metadata; raises ModelError if they are missing or make no sense."""
    if (kind := file.get("general.architecture", str)) != "llama":
        raise ModelError(f"{file.path.name}: the architecture is `{kind[:40]}`, but this code is for `llama`.")
    config = Config(
        layers=file.get("llama.block_count", int),
        hidden=file.get("llama.embedding_length", int),
        ffn=file.get("llama.feed_forward_length", int),
        heads=file.get("llama.attention.head_count", int),
        kv_heads=file.get("llama.attention.head_count_kv", int),
        vocab=file.get("llama.vocab_size", int),
        context=file.get("llama.context_length", int),
        theta=file.get("llama.rope.freq_base", float),
        epsilon=file.get("llama.attention.layer_norm_rms_epsilon", float),
    )
    if file.get("llama.rope.dimension_count", int) != config.head_dim or "llama.rope.scaling.type" in file.metadata:
        raise ModelError(f"{file.path.name}: only rotary positions over the whole head, unscaled, are supported.")
    return config


def tiny(seed: int = 0, max_len: int = 16) -> Weights:
    """The same architecture with 2 layers, hidden 32 and random weights: for tests and pictures."""
    config = Config(
        layers=2, hidden=32, ffn=48, heads=4, kv_heads=2, vocab=96, context=max(64, max_len), theta=1e4, epsilon=1e-5
    )
    rng = np.random.default_rng(seed)
    hidden, ffn, kv = config.hidden, config.ffn, config.kv_heads * config.head_dim

    def random(*shape: int) -> np.ndarray:
        return _frozen(rng.standard_normal(shape) / math.sqrt(shape[0]))

    def layer() -> Layer:
        return Layer(
            attention_norm=_frozen(np.ones(hidden)), query=random(hidden, hidden), key=random(hidden, kv),
            value=random(hidden, kv), output=random(hidden, hidden), ffn_norm=_frozen(np.ones(hidden)),
            gate=random(hidden, ffn), up=random(hidden, ffn), down=random(ffn, hidden),
        )  # fmt: skip

    layers = tuple(layer() for _ in range(config.layers))
    return Weights(
        config, random(config.vocab, hidden), layers, _frozen(np.ones(hidden)), *rotary_tables(config, max_len)
    )


def _frozen(array: np.ndarray) -> np.ndarray:
    """As contiguous read-only float32: weights are constants of the graph."""
    array = np.ascontiguousarray(array, np.float32)
    array.flags.writeable = False
    return array
