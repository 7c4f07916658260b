"""What a chapter must hold to: budgets, order of teaching, links. The tests call these; an author may, too."""

import ast
import re
from pathlib import Path

from .sources import CHAPTERS, Cell, count_words, read_cells

ROOT = CHAPTERS.parent.parent
WORDS, CODE_CELLS, EXERCISES = 1600, 22, 3  # at most, in a lesson; exercises without the stretch
COLUMNS = 104  # of a line of code, at most
MINUTES = {"word": 1 / 130, "code": 0.9}  # reading aloud in one's head, and running and looking at a cell

# A name -> the first chapter whose lesson or exercises may use it; 00 is a tour and may show everything.
TAUGHT = {"fold": "03", "freeze": "03", "simplify": "04", "dce": "05", "cse": "06", "optimize": "06", "use_mine": "06",
          "fuse": "07", "make_plan": "07", "reorder": "11", "layout": "10",  # in 07 fuse is a switch; 08 teaches how it decides
          "quantize_weights": "12", "fuse_dequantize": "12", "prune": "12"}


def lesson_cells(folder: Path) -> list[Cell]:
    return read_cells(folder / "lesson.py")


def measure(folder: Path) -> dict[str, object]:
    """Words, code cells and estimated minutes of a lesson, and the number of exercises."""
    from minigraph.teach.exercises import EXERCISES as ALL

    cells = lesson_cells(folder)
    words, code = count_words(cells), sum(cell.kind == "code" for cell in cells)
    mine = [one for one in ALL.values() if one.chapter == chapter_of(folder)]
    return {"chapter": folder.name, "words": words, "code cells": code, "exercises": sum(not one.stretch for one in mine),
            "stretch": sum(one.stretch for one in mine),
            "minutes": round(words * MINUTES["word"] + code * MINUTES["code"]),
            "with exercises": round(words * MINUTES["word"] + code * MINUTES["code"] + sum(4 + one.lines for one in mine))}


def chapter_of(folder: Path) -> str:
    return folder.name.split("_")[0]


def too_early(folder: Path) -> list[str]:
    """Names that the chapter's code uses before they are taught."""
    chapter = chapter_of(folder)
    if chapter == "00":
        return []
    found = []
    for name in ("lesson.py", "exercise.py"):
        if not (folder / name).is_file():
            continue
        for cell in read_cells(folder / name):
            if cell.kind == "code":
                used = names_in(cell.source)
                found += [f"{name}: {word}" for word, first in TAUGHT.items() if word in used and first > chapter]
    return found


def names_in(source: str) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.Attribute):
            names.add(node.attr)
        elif isinstance(node, ast.alias):
            names.add(node.name)
    return names


def long_lines(cells: list[Cell]) -> list[str]:
    """Lines of code that a laptop cuts off: its code cells show about 108 columns and do not wrap."""
    return [f"cell {number}, {len(line)} columns: {line.strip()[:60]}" for number, cell in enumerate(cells) if cell.kind == "code"
            for line in cell.source.splitlines() if len(line) > COLUMNS]


def broken_links(text: str, folder: Path) -> list[str]:
    """Links to files that are not there, and paths in code marks that name a file of the course that is not there."""
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)  # recorded text may look like a link
    targets = re.findall(r"\]\(([^)#\s]+)", text)
    local = [target for target in targets if not re.match(r"[a-z]+:", target)]
    marked = re.findall(r"`((?:notebooks|exercises|solutions|minigraph|course)/[\w./]+\.\w+)`", text)
    return [target for target in local if not (folder / target).exists()] + [path for path in marked if not (ROOT / path).exists()]


def missing_parts(cells: list[Cell]) -> list[str]:
    """What the rhythm of a lesson asks for and this one lacks."""
    prose = "\n".join(cell.source for cell in cells if cell.kind == "markdown")
    code = "\n".join(cell.source for cell in cells if cell.kind == "code")
    wanted = {
        "a question, marked **The question:**": "**The question:**" in prose,
        "a prediction": "predict(" in code,
        "a picture": "draw" in code,
        "the pass in a real compiler": "## The same " in prose and "*Recorded: " in prose,
        "a line on the scoreboard": "## The scoreboard" in prose,
        "three questions to recall": "## Recall" in prose,
        "terms": "## Terms" in prose,
    }
    return [part for part, there in wanted.items() if not there]
