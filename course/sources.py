"""Read a chapter's sources: percent-format text, one file for the lesson and one for the exercises.

::

    # %% [markdown]
    # # Constant folding
    # %%
    print(graph)
    # %% nbval-ignore-output
    print(seconds)

A word after ``%%`` is a tag or a directive; the directives make a cell from something that is written elsewhere:

=========================  ===========================================================================================
``exercise=NAME``          the stub of an exercise, and in the solutions the solution
``break=RULE``             a cell that breaks a rule of the IR: with a right graph, and in the solutions a broken one
``refute=NAME``            a cell that refutes a wrong pass: with the graph to change, and in the solutions the answer
``refute_trace=NAME``      the same with inputs for a traced function: the example's to change, or the answer
``refute_benchmark=NAME``  the same for a wrong benchmark, with two graphs
``recall``                 lines ``Q:`` and ``A:``, as questions with hidden answers
``glossary=NN``            the chapter's rows of the glossary, as a table
``exhibit=NAME``           the recorded text ``course/exhibits/NAME.txt``
=========================  ===========================================================================================
"""

import html
import re
from dataclasses import dataclass
from pathlib import Path

COURSE = Path(__file__).resolve().parent
CHAPTERS = COURSE / "chapters"
MARK = re.compile(r"^# %%(.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Cell:
    """A cell of a notebook: ``kind`` is ``markdown`` or ``code``."""

    kind: str
    source: str
    tags: tuple[str, ...] = ()


class SourceError(Exception):
    """A chapter's source that cannot be built, in one sentence."""


def chapters() -> list[Path]:
    """The folders of the chapters, in order."""
    return sorted(path for path in CHAPTERS.iterdir() if (path / "exercise.py").is_file() or (path / "lesson.py").is_file())


def read_cells(path: Path, solve: bool = False) -> list[Cell]:
    """The cells of a source file, with the directives carried out; ``solve`` writes solutions into exercises."""
    text = path.read_text(encoding="utf-8")
    cells = []
    starts = list(MARK.finditer(text))
    for mark, following in zip(starts, [*starts[1:], None]):
        body = text[mark.end():following.start() if following else len(text)].strip("\n")
        cells += make_cells(mark[1].split(), body, solve, path)
    return cells


def make_cells(words: list[str], body: str, solve: bool, path: Path) -> list[Cell]:
    head, _, argument = (words[0] if words else "").partition("=")
    tags = tuple(word for word in words if word.startswith(("nbval-", "raises-")))
    if head == "[markdown]":
        return [Cell("markdown", uncomment(body))]
    if head == "recall":
        return [Cell("markdown", recall(uncomment(body), path))]
    if head == "glossary":
        return [Cell("markdown", glossary_table(argument))]
    if head == "exhibit":
        return [Cell("markdown", exhibit(argument))]
    if head == "exercise":
        return [Cell("code", exercise(argument, solve))]
    if head == "break":
        return [Cell("code", broken(argument, solve), tags)]
    if head == "refute_trace":
        return [Cell("code", baked(argument, solve), tags)]
    if head == "refute_benchmark":
        return [Cell("code", benchmark(argument, solve), tags)]
    if head == "refute":
        return [Cell("code", refutation(argument, solve), tags)]
    if len(tags) != len(words):
        raise SourceError(f"{path.name}: what is '# %% {' '.join(words)}'?")
    return [Cell("code", body, tags)]


def uncomment(body: str) -> str:
    return "\n".join(re.sub(r"^# ?", "", line) for line in body.splitlines())


def recall(text: str, path: Path) -> str:
    """Three questions; each answer is hidden until it is asked for."""
    pairs = re.findall(r"^Q: (.*?)\n+A: (.*?)(?=\n+Q: |\Z)", text, re.MULTILINE | re.DOTALL)
    if len(pairs) != 3:
        raise SourceError(f"{path.name}: a recall has 3 questions, not {len(pairs)}")
    items = [f"{number}. {question.strip()}\n\n   <details><summary>Answer</summary>{answer.strip()}</details>"
             for number, (question, answer) in enumerate(pairs, 1)]
    return "## Recall\n\n" + "\n\n".join(items)


def glossary_table(chapter: str) -> str:
    from .glossary import TERMS

    rows = [term for term in TERMS if term.chapter == chapter]
    lines = ["## Terms", "", "| term | what it means | по-русски | 中文 |", "|---|---|---|---|"]
    return "\n".join([*lines, *(f"| {t.english} | {t.meaning} | {t.russian} | {t.chinese} |" for t in rows)])


def exhibit(name: str) -> str:
    """A recorded text with its first lines (``#``) as the caption: what was run, with which version."""
    lines = (COURSE / "exhibits" / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    head = [line.lstrip("# ") for line in lines if line.startswith("#")]
    body = "\n".join(line for line in lines if not line.startswith("#")).strip("\n")
    return f"*Recorded: {' '.join(head)}*\n\n```text\n{body}\n```"


def exercise(name: str, solve: bool) -> str:
    from minigraph.teach.exercise import solved, source_of, stub
    from minigraph.teach.exercises import EXERCISES

    source = source_of(EXERCISES[name].solution)
    return (solved if solve else stub)(source).strip()


def refutation(name: str, solve: bool) -> str:
    from minigraph.teach.exercises import REFUTATIONS

    one = REFUTATIONS[name]
    graph = str(one.answer if solve else one.start).strip()
    return f'graph = parse("""\n{graph}\n""")\nrefute({name}, graph)'


def benchmark(name: str, solve: bool) -> str:
    from minigraph.teach.exercises import BENCHMARKS

    texts = BENCHMARKS[name].answer if solve else BENCHMARKS[name].start
    return "\n".join([*(f'{place} = parse("""\n{text}\n""")' for place, text in zip(("first", "second"), texts)),
                      f"refute_benchmark({name}, first, second)"])


def baked(name: str, solve: bool) -> str:
    from minigraph.teach.exercises import BAKED

    inputs = BAKED[name].answer if solve else BAKED[name].example
    return f"refute_trace({name}, {', '.join(f'{key}={value}' for key, value in inputs.items())})"


def broken(rule: str, solve: bool) -> str:
    from minigraph.teach.exercises import BREAKS

    return f'break_rule("{rule}", {BREAKS[rule].answer if solve else "good"})'


def plain(text: str) -> str:
    """Markdown without its marks, to count words."""
    return html.unescape(re.sub(r"<[^>]+>|[`*_#|>\[\]()-]", " ", re.sub(r"```.*?```", " ", text, flags=re.DOTALL)))


def count_words(cells: list[Cell]) -> int:
    """Words that a learner reads: the markdown cells, without tables and recorded text."""
    prose = [line for cell in cells if cell.kind == "markdown"
             for line in re.sub(r"```.*?```", "", cell.source, flags=re.DOTALL).splitlines() if not line.startswith("|")]
    return len(plain("\n".join(prose)).split())
