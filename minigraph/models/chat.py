"""Text in, text out: the tokenizer and the chat format of SmolLM2, and greedy generation.

The tokenizer is byte-level BPE (Sennrich et al. 2016; bytes as in GPT-2, Radford et al. 2019): the UTF-8 bytes of
a text are merged into the tokens of a fixed vocabulary. Vocabulary and merges come from the GGUF file; the
``tokenizers`` package does the merging.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from . import smollm2
from .gguf_file import GGUFFile, ModelError, find_model, read

# What the chat template in the GGUF file puts in front when there is no other system message.
SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
CONTROL = 3  # the token type of markers such as <|im_end|>


@dataclass(frozen=True, eq=False)
class Tokenizer:
    """``pieces[i]`` are the bytes of token i (none for a marker), ``markers`` the ids of the markers by name."""

    bpe: Any  # tokenizers.Tokenizer
    pieces: tuple[bytes, ...]
    markers: dict[str, int]
    end: frozenset[int]  # tokens that end an answer

    def encode(self, text: str) -> list[int]:
        """The token ids of plain text: ``<|im_end|>`` in it is nine characters, not the end of a message.

        Raises ModelError for a character that the vocabulary cannot spell (a few control characters and
        rare scripts), which would otherwise silently vanish.
        """
        try:
            raw = text.encode()
        except UnicodeEncodeError as error:
            raise ModelError(f"The text is not valid Unicode: {error}.") from error
        ids = self.bpe.encode(text, add_special_tokens=False).ids
        if b"".join(self.pieces[i] for i in ids) != raw:
            lost = next((c for c in text if self.decode(self.bpe.encode(c).ids) != c), "")
            raise ModelError(f"The model's vocabulary has no token for the character {lost!r}.")
        return ids

    def decode(self, ids: Iterable[int]) -> str:
        """The text of some tokens, without markers."""
        return "".join(self.stream(ids))

    def stream(self, ids: Iterable[int]) -> Iterator[str]:
        """Pieces of text as the ids arrive. A character whose bytes are spread over tokens comes out whole."""
        utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        for token in ids:
            if piece := utf8.decode(self.pieces[token]):
                yield piece
        if rest := utf8.decode(b"", final=True):  # the answer was cut in the middle of a character
            yield rest

    def chat(self, prompt: str, system: str = SYSTEM) -> list[int]:
        """The ids of a conversation (in the ChatML format) up to where the assistant's answer begins."""
        start, stop = self.markers["<|im_start|>"], self.markers["<|im_end|>"]
        newline = self.encode("\n")
        ids: list[int] = []
        for role, content in (("system", system), ("user", prompt)):
            ids += [start, *self.encode(f"{role}\n{content}"), stop, *newline]
        return [*ids, start, *self.encode("assistant\n")]


def load_tokenizer(source: GGUFFile | str | Path | None = None) -> Tokenizer:
    """The tokenizer in a GGUF file, by default the installed one; raises ModelError."""
    from tokenizers import Tokenizer as Bpe
    from tokenizers import models, pre_tokenizers

    file = source if isinstance(source, GGUFFile) else read(source if source is not None else find_model())
    name, get = file.path.name, file.get
    kind = get("tokenizer.ggml.model", str), get("tokenizer.ggml.pre", str)
    if kind != ("gpt2", "smollm"):
        raise ModelError(f"{name}: only the tokenizer `gpt2` with the splitting rules `smollm` is known here.")
    tokens, merges = get("tokenizer.ggml.tokens", tuple), get("tokenizer.ggml.merges", tuple)
    types, end = get("tokenizer.ggml.token_type", np.ndarray), get("tokenizer.ggml.eos_token_id", int)
    vocabulary = {token: i for i, token in enumerate(tokens)}
    if not (len(vocabulary) == len(tokens) == len(types) > end >= 0):
        raise ModelError(f"{name}: the vocabulary is damaged: tokens occur twice, or their types are missing.")
    pairs = [tuple(merge.split(" ")) for merge in merges]
    if not all(len(p) == 2 and p[0] in vocabulary and p[1] in vocabulary and p[0] + p[1] in vocabulary for p in pairs):
        raise ModelError(f"{name}: a merge of the tokenizer names a token that is not in the vocabulary.")

    byte_of = {character: byte for byte, character in enumerate(_byte_characters())}
    markers = {token: i for i, token in enumerate(tokens) if types[i] == CONTROL}
    if not {"<|im_start|>", "<|im_end|>"} <= set(markers):
        raise ModelError(f"{name}: the vocabulary lacks the markers of a chat, <|im_start|> and <|im_end|>.")
    try:
        pieces = tuple(b"" if t in markers else bytes(byte_of[character] for character in t) for t in tokens)
    except KeyError as error:
        raise ModelError(f"{name}: a token holds {error}, which stands for no byte.") from error

    bpe = Bpe(models.BPE(vocab=vocabulary, merges=pairs))
    bpe.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    stops = {end, *(markers[m] for m in ("<|im_end|>", "<|endoftext|>") if m in markers)}
    return Tokenizer(bpe, pieces, markers, frozenset(stops))


def _byte_characters() -> list[str]:
    """The character by which GPT-2's vocabulary writes each byte: itself if it prints, else one from U+0100 on."""
    printable = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = (byte for byte in range(256) if byte not in printable)
    stand_in = {byte: chr(256 + n) for n, byte in enumerate(others)}
    return [stand_in.get(byte, chr(byte)) for byte in range(256)]


def load(path: str | Path | None = None, max_len: int = 512, packed: bool = False) -> tuple[smollm2.Weights, Tokenizer]:
    """Weights and tokenizer from one GGUF file, by default the installed one; raises ModelError. See ``smollm2.load``."""
    file = read(path if path is not None else find_model())
    weights, tokenizer = smollm2.load(file, max_len, packed), load_tokenizer(file)
    if len(tokenizer.pieces) != weights.config.vocab:
        raise ModelError(f"{file.path.name}: the tokenizer and the embedding differ in the size of the vocabulary.")
    return weights, tokenizer


def generate(
    prompt: str, weights: smollm2.Weights, tokenizer: Tokenizer, *, system: str = SYSTEM, max_new_tokens: int = 128,
    prefill: Callable | None = None, decode: Callable | None = None, on_cut: Callable[[str], object] = lambda why: None,
) -> Iterator[str]:  # fmt: skip
    """The model's answer to ``prompt``, as pieces of text, always taking the likeliest token.

    Ends with the answer, after ``max_new_tokens``, or when the cache is full. ``prefill(tokens, cache)`` and
    ``decode(token, position, cache)`` both return ``(logits, *new cache)``; a compiled graph may take the place of
    the functions in ``smollm2``, which are the default. ``on_cut`` is given a sentence where a limit cut the answer
    off. ModelError at once if the prompt does not fit.
    """
    ids = generate_ids(tokenizer.chat(prompt, system), weights, tokenizer.end, max_new_tokens, prefill, decode, on_cut)
    return tokenizer.stream(ids)


def generate_ids(
    prompt: Sequence[int], weights: smollm2.Weights, end: Iterable[int] = (), max_new_tokens: int = 128,
    prefill: Callable | None = None, decode: Callable | None = None, on_cut: Callable[[str], object] = lambda why: None,
) -> Iterator[int]:  # fmt: skip
    """The ids that follow those of ``prompt``, without the one of ``end`` that ends them. See ``generate``."""
    if not 1 <= len(prompt) <= weights.max_len:
        raise ModelError(f"The prompt has {len(prompt)} tokens, but the cache has room for {weights.max_len}.")
    prefill = prefill or partial(smollm2.prefill, weights)
    decode = decode or partial(smollm2.decode, weights)
    end = frozenset(end)

    def run() -> Iterator[int]:
        if max_new_tokens < 1:
            return
        logits, *cache = prefill(np.array(prompt, np.int32), smollm2.zero_cache(weights))
        for position in range(len(prompt), len(prompt) + max_new_tokens):
            token = int(np.argmax(logits))
            if token in end:
                return
            yield token
            if position == weights.max_len:
                return on_cut(f"the answer stops here, because the cache has room for {weights.max_len} tokens")
            if position + 1 == len(prompt) + max_new_tokens:
                return on_cut(f"the answer stops here, at the limit of {max_new_tokens} tokens")
            logits, *cache = decode(np.array(token, np.int32), np.array(position, np.int32), tuple(cache))

    return run()
