"""``minigraph bench llm`` and ``accuracy``: SmolLM2 decoding, beside llama.cpp where llama-cpp-python is installed.

The contenders take turns, a few tokens each, while all others wait; see ``llm_contenders``.
"""

from __future__ import annotations

import functools
import importlib.util
import statistics
import sys
from collections.abc import Callable, Iterator

import numpy as np

from .llm_contenders import CONTENDERS, LENGTH, Model, Process, c_packed, with_cache

Row = dict[str, object]
PROMPT = "What does a compiler do? Answer in one sentence."
BURST = 8  # tokens of one turn
READS = 3  # of all weights, in one turn

# beginnings of the texts on which logits are compared; the packed model writes them on
BEGINNINGS = (
    "The capital of France is", "Once upon a time there was a fox who", "To make bread you need", "def fibonacci(n):",
    "The sum of two and three is", "Water boils at", "Dear Sir or Madam,", "In 1969, two astronauts",
    "The difference between a cat and a dog is", "Call me Ishmael. Some years ago", "import numpy as np\n", "My favourite colour is",
    "A triangle has three", "The train to London leaves", "Photosynthesis is the process by which", "List of rivers in Europe:\n",
    "If it rains tomorrow, we", "SELECT name FROM", "It was a bright cold day in April, and", "How to plant a tree:\n1.",
)  # fmt: skip


def contenders() -> list[str]:
    return [name for name in CONTENDERS if name != "llama.cpp" or importlib.util.find_spec("llama_cpp")]


def bench_llm(count: int = 33, rounds: int = 20, threads: tuple[int, ...] = (1, 2)) -> list[Row]:
    """SmolLM2 with one prompt, ``count`` tokens, greedily, by every contender and number of threads, interleaved.

    Milliseconds a token, best, median, and the best in CPU time (of all threads, waiting ones too); times faster than
    plain NumPy and than llama.cpp on as many threads, best to best; the prompt's milliseconds; resident MB, now and at
    most; seconds from the start of the process to the first token, and CPU time until then; whether the tokens are those
    of plain NumPy. For float32 also what reading its constants takes, and decoding in units of it. Raises ModelError
    where the model is missing.
    """
    from .models import chat
    from .models.gguf_file import find_model

    prompt = chat.load_tokenizer(find_model()).chat(PROMPT)
    warm(threads)
    found: dict[tuple[str, int], Row] = {}
    workers: list[Process] = []
    try:
        for number in threads:
            for name in contenders():
                worker = Process(name, number)
                first = worker.ask(tokens=prompt, count=count)
                if not first:
                    print(f"{name} left out: its process ended", file=sys.stderr)
                    continue
                workers.append(worker)
                found[name, number] = {**first, "steps": [], "prefill": [], "read": []}
        for turn in range(rounds):
            say(f"round {turn + 1} of {rounds}")
            for worker in workers[::-1 if turn % 2 else 1]:
                one = found[worker.name, worker.threads]
                tokens, begin = one["tokens"], turn * BURST % (count - 1)
                if begin == 0:
                    one["prefill"].append(worker.ask(do="prefill", tokens=prompt)["seconds"])
                burst = tokens[begin:min(begin + BURST, count - 1)]
                one["steps"] += worker.ask(do="decode", tokens=burst, position=len(prompt) + begin)["seconds"]
                if worker.name == "C, float32":
                    one["read"] += [worker.ask(do="read")["seconds"] for _ in range(READS)]
    finally:
        for worker in workers:
            worker.end()
    return [row_of(name, number, one, found) for (name, number), one in found.items()]


def warm(threads: tuple[int, ...]) -> None:
    """Let the generated code be compiled once, so that the time to the first token is that of every later start."""
    for number in threads:
        worker = Process("C, packed", number)
        worker.ask(tokens=[1], count=1)
        worker.end()


def row_of(name: str, threads: int, one: Row, found: dict) -> Row:
    best, cpu = (min(column) for column in zip(*one["steps"]))

    def faster(than: str, of: Callable = min) -> object:
        other = found.get((than, threads))
        return round(of(wall for wall, _ in other["steps"]) / of(wall for wall, _ in one["steps"]), 2) if other else ""

    def milliseconds(seconds: float) -> float:
        return round(1000 * seconds, 2)

    read, read_cpu = (min(column) for column in zip(*one["read"])) if one["read"] else (0, 0)
    reference = found.get(("plain NumPy", threads))
    return {
        "decode": name, "threads": threads, "ms/token": milliseconds(best),
        "median": milliseconds(statistics.median(wall for wall, _ in one["steps"])), "CPU ms": milliseconds(cpu),
        "x NumPy": faster("plain NumPy"), "x llama.cpp": faster("llama.cpp"), "in medians": faster("llama.cpp", statistics.median),
        "reading ms": milliseconds(read) if read else "", "of it": round(best / read, 2) if read else "",
        "in CPU": round(cpu / read_cpu, 2) if read else "",
        "prefill ms": milliseconds(min(wall for wall, _ in one["prefill"])),
        "MB": round(one["now"] / 1e6), "peak MB": round(one["peak"] / 1e6), "first token s": round(one["ready"], 2),
        "CPU s": round(one["cpu"], 2), "same tokens": one["tokens"] == reference["tokens"] if reference else "",
    }  # fmt: skip


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# ---- accuracy ----------------------------------------------------------------------------------------------------------


def bench_accuracy(prompts: int = 20, tokens: int = 64) -> list[Row]:
    """Logits f32[vocab] after each token of each text, teacher-forced, against plain NumPy on the expanded weights.

    The texts are ``prompts`` beginnings of sentences, written on by the packed model. Errors of logits, the share of
    tokens where the likeliest next token is the same, and the perplexity of the texts. Set one BLAS thread outside.
    """
    from .accuracy import compare_logits
    from .models import chat, smollm2
    from .models.gguf_file import find_model

    tokenizer, packed = chat.load_tokenizer(find_model()), c_packed(1)
    texts = [np.array(written_on(packed, tokenizer.encode(text), tokens), np.int32) for text in BEGINNINGS[:prompts]]
    weights = smollm2.load(max_len=LENGTH)
    reference = with_cache(weights, functools.partial(smollm2.prefill, weights), functools.partial(smollm2.decode, weights))
    truth = list(logits_of(reference, texts))
    rows = []
    for name in ("C, packed", "llama.cpp"):
        if name in contenders():
            model = packed if name == "C, packed" else CONTENDERS[name](1)
            known, others = iter(truth), logits_of(model, texts)
            row = compare_logits(lambda text: next(known), lambda text: next(others), texts)
            rows.append({"decode": name, **{key: float(f"{value:.4g}") if isinstance(value, float) else value for key, value in row.items()}})
    return rows


def written_on(model: Model, ids: list[int], count: int) -> list[int]:
    """The ids, continued greedily until there are ``count``."""
    logits = model.start(ids[:count])
    while len(ids) < count:
        ids = [*ids, int(np.argmax(logits))]
        logits = model.step(ids[-1], len(ids) - 1)
    return ids[:count]


def logits_of(model: Model, texts: list[np.ndarray]) -> Iterator[np.ndarray]:
    for number, text in enumerate(texts, 1):
        say(f"text {number} of {len(texts)}")
        first, *rest = map(int, text)
        yield np.stack([np.array(model.start([first])), *(np.array(model.step(token, place)) for place, token in enumerate(rest, 1))])
