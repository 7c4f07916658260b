"""The process that holds one submission: ``python -m minigraph.teach.worker FILE IN OUT``.

It runs the file, then answers calls: a line of JSON in, a line out, over its own two pipes. It judges nothing, and
nobody reads what it prints.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from pathlib import Path

from .wire import decode, encode

# a submission's own checks do nothing
QUIET = ("break_rule", "check", "hint", "solution", "predict", "refute", "refute_benchmark", "refute_trace", "progress", "use_mine")


def cells(path: Path) -> list[str]:
    """The code of a notebook, cell by cell, or of a Python file."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".ipynb":
        return [text]
    sources = [cell["source"] for cell in json.loads(text)["cells"] if cell.get("cell_type") == "code"]
    return ["".join(source) for source in sources]


def without_magics(source: str) -> str:
    """Of a cell that is no Python, what is left without the notebook's own ``%time`` and ``!ls``."""
    try:
        compile(source, "cell", "exec")
        return source
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        pass
    return "\n".join("" if line.lstrip().startswith(("%", "!")) else line for line in source.splitlines())


def load(path: Path) -> tuple[dict, list[str]]:
    """The names that the submission defines, and a sentence for each cell that failed; the rest still counts."""
    from . import prelude

    names = {name: getattr(prelude, name) for name in prelude.__all__}
    names |= {name: lambda *arguments, **options: None for name in QUIET}
    names["__name__"] = "__main__"
    problems = []
    for number, source in enumerate(cells(path), 1):
        # the prelude is here already; importing it again would bring the real check back
        source = without_magics(source).replace("from minigraph.teach.prelude import *", "pass")
        try:
            exec(compile(source, f"cell {number}", "exec"), names)
        except BaseException as error:  # a submission may raise anything, SystemExit included
            problems.append(f"cell {number}: {type(error).__name__}: {error}"[:200])
    return names, problems


def main(argv: list[str]) -> int:
    path, requests, replies = Path(argv[0]), os.fdopen(int(argv[1]), "r"), os.fdopen(int(argv[2]), "w")

    def reply(message: dict) -> None:
        replies.write(json.dumps(message) + "\n")
        replies.flush()

    from . import judge
    from .exercises import EXERCISES

    try:
        names, problems = load(path)
    except BaseException as error:
        reply({"names": [], "problems": [f"the file cannot be read: {type(error).__name__}: {error}"[:200]]})
        return 1
    reply({"names": [name for name in EXERCISES if callable(names.get(name))], "problems": problems[:5]})
    for line in requests:
        call = json.loads(line)
        try:
            function = EXERCISES[call["name"]].adapt(names[call["name"]])
            reply({"result": encode(judge.call(function, *[decode(one) for one in call["arguments"]]))})
        except BaseException as error:
            lines = [f"line {frame.lineno} of {frame.name}" for frame in traceback.extract_tb(error.__traceback__)
                     if frame.filename.startswith("cell ")]
            reply({"error": type(error).__name__, "text": str(error)[:300], "lines": lines[-3:]})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
