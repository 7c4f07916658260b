"""Make the notebooks from the chapters' sources, one way only: ``python3 -m course build``."""

import hashlib
import os
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from .ending import quietly
from .sources import Cell, chapters, read_cells

ROOT = Path(__file__).resolve().parent.parent
KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
TIMEOUT = 300  # seconds a cell


def notebooks() -> dict[str, Callable[[], list[Cell]]]:
    """Path below the root -> a function that reads the cells, for every notebook of the course."""
    found: dict[str, Callable[[], list[Cell]]] = {}
    for folder in chapters():
        if (folder / "lesson.py").is_file():
            found[f"notebooks/{folder.name}.ipynb"] = partial(read_cells, folder / "lesson.py")
        if (folder / "exercise.py").is_file():
            found[f"exercises/{folder.name}.ipynb"] = partial(read_cells, folder / "exercise.py")
            found[f"solutions/{folder.name}.ipynb"] = partial(read_cells, folder / "exercise.py", solve=True)
    found["notebooks/glossary.ipynb"] = glossary_cells
    return found


def glossary_cells() -> list[Cell]:
    from .glossary import TERMS

    lines = ["# Glossary", "", "Every term of the course, with the chapter that teaches it.", "",
             "| term | what it means | по-русски | 中文 | chapter |", "|---|---|---|---|---|"]
    for term in sorted(TERMS, key=lambda term: term.english.lower()):
        lines.append(f"| {term.english} | {term.meaning} | {term.russian} | {term.chinese} | {term.chapter} |")
    return [Cell("markdown", "\n".join(lines))]


def make_notebook(path: str, cells: list[Cell]) -> dict:
    """A notebook without outputs, format 4.5; a cell's id depends on the notebook and the cell's place."""
    made = []
    for number, cell in enumerate(cells):
        identity = hashlib.sha256(f"{path}:{number}".encode()).hexdigest()[:12]
        one = {"id": identity, "cell_type": cell.kind, "metadata": {"tags": list(cell.tags)} if cell.tags else {},
               "source": cell.source}
        if cell.kind == "code":
            one |= {"execution_count": None, "outputs": []}
        made.append(one)
    return {"cells": made, "metadata": {"kernelspec": KERNEL, "language_info": {"name": "python"}},
            "nbformat": 4, "nbformat_minor": 5}


def build(args: list[str]) -> int:
    """Write all notebooks, or those whose path contains one of ``args``, and execute them."""
    import nbformat

    status = 0
    chosen = {path: read for path, read in notebooks().items() if not args or any(word in path for word in args)}
    if not chosen:
        print(f"No notebook's path has {' or '.join(args)} in it.", file=sys.stderr)
        return 1
    for path, read in chosen.items():
        cells = read()
        started = time.monotonic()
        notebook = nbformat.from_dict(make_notebook(path, cells))
        error = execute(notebook, ROOT / Path(path).parent)
        nbformat.validate(notebook)
        (ROOT / path).parent.mkdir(exist_ok=True)
        nbformat.write(notebook, ROOT / path)
        print(f"{path}: {len(cells)} cells, {time.monotonic() - started:.1f} s{'' if not error else ', FAILED'}", flush=True)
        if error:
            print(error)
            status = 1
    return status


def execute(notebook, folder: Path) -> str:
    """Run all cells in a fresh kernel and keep the outputs; the error's text, or nothing."""
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    folder.mkdir(exist_ok=True)
    # the learner's own progress must not show in a built notebook, nor the other way round
    with tempfile.TemporaryDirectory() as work:
        env = os.environ | {"MINIGRAPH_WORK": work, "OPENBLAS_NUM_THREADS": "1", "PYTHONWARNINGS": "error::DeprecationWarning:minigraph"}
        client = NotebookClient(notebook, timeout=TIMEOUT, kernel_name="python3", record_timing=False, coalesce_streams=True,
                                resources={"metadata": {"path": str(folder)}})
        error = ""
        try:
            client.execute(env=env)
        except CellExecutionError as failure:
            error = str(failure)
    notebook.metadata = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
    return error


if __name__ == "__main__":
    sys.exit(quietly(lambda: build(sys.argv[1:])))
