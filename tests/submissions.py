"""Write a folder of 30 submissions to grade: ``python tests/submissions.py SOLUTIONER``. Right, wrong, broken and hostile ones.

Each is graded on ``evaluate``. EXPECTED says what each must get.
"""

import json
import sys
from pathlib import Path

from minigraph.teach.exercise import solved, source_of, stub
from minigraph.teach.exercises import EXERCISES

SOLUTION = solved(source_of(EXERCISES["evaluate"].solution))
STUB = stub(source_of(EXERCISES["evaluate"].solution))
MISTAKES = ("evaluate_in_float64", "evaluate_without_attributes", "evaluate_reversed", "evaluate_bare", "evaluate_as_f32")


def notebook(*cells: str) -> str:
    made = [{"cell_type": "code", "source": cell, "metadata": {}, "outputs": [], "execution_count": None} for cell in cells]
    return json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def mistaken(name: str) -> str:
    return f"from minigraph.teach.exercises.ch03 import {name}\n\n\ndef evaluate(node, arrays):\n    return {name}(node, arrays)\n"


# file -> (content, the outcome that it must get)
FILES: dict[str, tuple[str, str]] = {
    "right.py": (SOLUTION, "right"),
    "right_notebook.ipynb": (notebook("from minigraph.teach.prelude import *", SOLUTION, "check(evaluate)", "%time evaluate"), "right"),
    "right_split.ipynb": (notebook("def helper(name, known):\n    return name in known", SOLUTION, SOLUTION, "1 / 0", "check(evaluate); check(evaluate)"), "right"),
    "right_helper.py": (mistaken("evaluate_by_type"), "right"),
    **{f"wrong_{name}.py": (mistaken(name), "wrong") for name in MISTAKES},
    "wrong_branches.py": ("import numpy as np\nfrom minigraph import Const\n\n\ndef evaluate(node, arrays):\n    if node.op == 'add':\n"
                          "        return Const.of(np.asarray(arrays[0] + arrays[1]), node.type.dtype)\n", "wrong"),
    "wrong_self.py": ("def evaluate(node, arrays):\n    return evaluate(node, arrays)\n", "wrong"),
    "stub.ipynb": (notebook("from minigraph.teach.prelude import *", STUB, "check(evaluate)"), "not attempted"),
    "empty.py": ("", "missing"),
    "empty.ipynb": (notebook(), "missing"),
    "syntax_error.py": ("def evaluate(node, arrays:\n    return node\n", "missing"),
    "not_a_notebook.ipynb": ("this is no JSON", "missing"),
    "other_names.py": ("def evaluated(node, arrays):\n    return node\n", "missing"),
    "loops.py": ("def evaluate(node, arrays):\n    while True:\n        pass\n", "wrong"),
    "loops_in_c.py": ("def evaluate(node, arrays):\n    return sum(range(10**12))\n", "wrong"),
    "crashes.py": ("import os\n\n\ndef evaluate(node, arrays):\n    os._exit(3)\n", "wrong"),
    "segfault.py": ("import ctypes\n\n\ndef evaluate(node, arrays):\n    ctypes.string_at(0)\n", "wrong"),
    "exits.py": ("raise SystemExit(0)\n", "missing"),
    "memory.py": ("def evaluate(node, arrays):\n    return bytearray(10**11)\n", "wrong"),
    "disk.py": ("def evaluate(node, arrays):\n    with open('big', 'wb') as file:\n        for _ in range(10**6):\n            file.write(bytes(10**6))\n    return arrays\n", "wrong"),
    "gigabyte.py": ("import sys\nfor _ in range(1000):\n    sys.stdout.write('x' * 10**6)\n\n\n" + SOLUTION, "right"),
    "deletes.py": ("import glob, os\nfor path in glob.glob(SUBMISSIONS + '/*'):\n    try:\n        os.unlink(path)\n    except OSError:\n        pass\n\n\n"
                   + SOLUTION, "right"),
    "kills.py": ("import os, signal\ntry:\n    os.kill(os.getppid(), signal.SIGKILL)\nexcept OSError:\n    pass\n\n\n" + SOLUTION, "right"),
    "forges.py": ("import os\n\n\ndef evaluate(node, arrays):\n    for handle in range(3, 30):\n        try:\n            os.write(handle, b'{\"result\": true}\\n')\n"
                  "        except OSError:\n            pass\n    return arrays\n", "wrong"),
    "mutates.py": ("def evaluate(node, arrays):\n    arrays.clear()\n    return arrays\n", "wrong"),
    "garbage.py": ("def evaluate(node, arrays):\n    return object()\n", "wrong"),
}  # fmt: skip

# what can only be held back where Landlock or another user is there
NEEDS_CONFINEMENT = {"deletes.py", "kills.py"}


def write(folder: Path) -> dict[str, str]:
    """Write the files; file name -> the outcome that it must get."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, (content, _) in FILES.items():
        (folder / name).write_text(content.replace("SUBMISSIONS", repr(str(folder))), encoding="utf-8")
    return {name: outcome for name, (_, outcome) in FILES.items()}


if __name__ == "__main__":
    print(f"{len(write(Path(sys.argv[1])))} submissions in {sys.argv[1]}")
