"""A learner's pass, saved as a file of its own so that later chapters can run it."""

from __future__ import annotations

import builtins
import re
import sys
import textwrap
from collections.abc import Callable
from types import FunctionType, ModuleType

from . import state
from .exercise import Exercise, source_of

HEADER = '"""Saved by check({name}), because it is right."""\n\nfrom minigraph.teach.prelude import *  # noqa: F403\n\n\n'


def save_mine(exercise: Exercise, function: Callable) -> list[str]:
    """Write ``work/passes/NAME.py``; a sentence about what happened."""
    try:
        text = HEADER.format(name=exercise.name) + "\n\n".join(sources(function))
        folder = state.work_folder() / "passes"
        namespace: dict = {}
        exec(compile(text, f"{exercise.name}.py", "exec"), namespace)
        if (failure := exercise.judge(exercise.adapt(namespace[exercise.name])).failure) is not None:
            raise NameError(failure.error[1])
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{exercise.name}.py").write_text(text, encoding="utf-8")
    except (OSError, TypeError) as error:
        return [f"It could not be saved for later chapters ({error})."]
    except Exception as error:  # the saved text is the learner's code without the learner's notebook
        return [f"It works here, but not from a file of its own: it needs {missing(error)}, and only the notebook's"
                " functions, numbers, texts and imports are saved with it. Later chapters use the package's pass."]
    return ["Saved: later chapters can run your pass (use_mine)."]


def missing(error: Exception) -> str:
    """What a NameError says is not defined."""
    named = re.search(r"name '(.+?)' is not defined", str(error))
    return named[1] if named else "something of the notebook"


def sources(function: Callable) -> list[str]:
    """The function's source, after what it reads: imports, and the notebook's own functions and simple values."""
    from . import prelude

    found: dict[str, str] = {}

    def visit(one: FunctionType) -> None:
        for name in names_read(one.__code__):
            value = one.__globals__.get(name)
            if name in found or hasattr(builtins, name) or getattr(prelude, name, None) is value and value is not None:
                continue
            if isinstance(value, FunctionType) and value.__module__ == function.__module__:
                found[name] = ""  # also stops recursion between functions
                visit(value)
                found[name] = textwrap.dedent(source_of(value))
            elif isinstance(value, (int, float, str, tuple, frozenset, set, list, dict)):
                found[name] = f"{name} = {value!r}\n"
            elif line := import_of(name, value):
                found[name] = line

    visit(function)
    found.pop(function.__name__, None)
    return [*filter(None, found.values()), source_of(function)]


def import_of(name: str, value) -> str:
    """The line that imports a module, or a module's class or function, by this name; nothing for anything else."""
    module, known = getattr(value, "__module__", None), getattr(value, "__name__", None)
    if isinstance(value, ModuleType):
        line = f"import {known}"
    elif module in sys.modules and module != "__main__" and getattr(sys.modules[module], str(known), None) is value:
        line = f"from {module} import {known}"
    else:
        return ""
    return f"{line} as {name}\n" if known != name else f"{line}\n"


def names_read(code) -> list[str]:
    """Global names in a function's code, its inner functions and comprehensions included."""
    names = list(code.co_names)
    for constant in code.co_consts:
        if hasattr(constant, "co_names"):
            names += names_read(constant)
    return names


def load_mine() -> dict[str, Callable]:
    """The saved passes by name; one that no longer loads is left out."""
    passes = {}
    folder = state.work_folder() / "passes"
    for path in sorted(folder.glob("*.py")) if folder.is_dir() else ():
        namespace: dict = {}
        try:
            exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), namespace)
            passes[path.stem] = namespace[path.stem]
        except (Exception, SystemExit) as error:
            print(f"Your saved pass {path.stem} does not load ({type(error).__name__}); the package's own is used.")
    return passes
