"""The graph that a command line names: a ``.mg`` file, ``-`` for standard input, or ``FILE.py:function``.

A Python file is run because the user names it, and for no other reason; nothing in a ``.mg`` file is evaluated.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import re
import sys
import traceback
import types
from collections.abc import Iterable, Iterator
from pathlib import Path

from ..errors import MinigraphError, nearest
from ..files import FileError, load
from ..ir import Graph
from ..text import parse
from ..types import Type, parse_type

PYTHON = re.compile(r"(.*\.py)(?::(.*))?", re.DOTALL)
SPEC = re.compile(r"\s*\w+\s*\[[\d\s,]*\]\s*")  # what an annotation or a default must look like to be taken for a type
FRAMES = 10  # of the user's own calls, in an error


class TargetError(MinigraphError):
    """The command line names something that cannot be loaded."""


def load_target(target: str, specs: Iterable[str] = ()) -> Graph:
    """The graph that ``target`` names; ``specs``, like ``x=f32[8,4]``, are for a Python function's parameters."""
    specs = parse_specs(specs)
    python = PYTHON.fullmatch(target)
    if python:
        return load_function(Path(python[1]), python[2], specs)
    if specs:
        raise TargetError(f"'{next(iter(specs))}={next(iter(specs.values()))}' is not used: '{target}' states its own"
                          " types, and only FILE.py:function takes some")
    return parse(read_stdin(), file="<stdin>") if target == "-" else load(target)


def read_stdin() -> str:
    if sys.stdin is None:
        raise TargetError("standard input is closed")
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileError(f"<stdin>: byte {error.start} is not UTF-8 text") from None


def parse_specs(specs: Iterable[str]) -> dict[str, Type]:
    result: dict[str, Type] = {}
    for text in specs:
        name, equals, type = text.partition("=")
        if not equals or not name.strip().isidentifier():
            raise TargetError(f"'{text}' is not NAME=TYPE, like 'x=f32[8,4]'")
        if name.strip() in result:
            raise TargetError(f"'{name.strip()}' is given two types")
        result[name.strip()] = parse_at(text, type)
    return result


def parse_at(where: str, type: str) -> Type:
    """``parse_type``; an error says where the type stands."""
    try:
        return parse_type(type)
    except MinigraphError as error:
        raise error.at(where=where) from None


# ---- Python functions ------------------------------------------------------------------------------------------


def load_function(path: Path, name: str | None, specs: dict[str, Type]) -> Graph:
    """Run the file, then trace the function that it calls ``name``."""
    code = compile_file(path, name)
    from ..tracing import trace

    with visit(path):
        module = types.ModuleType(f"minigraph_target_{path.stem}")
        module.__file__ = str(path)
        sys.modules[module.__name__] = module  # dataclasses and the like look their module up
        with users_errors(path, "running the file"):
            exec(code, vars(module))
        function = find_function(path, name, vars(module))
        args, kwargs = arguments(f"{path}:{name}", function, specs)
        with users_errors(path, f"tracing {name}"):
            return trace(function, *args, **kwargs)


def compile_file(path: Path, name: str | None) -> types.CodeType:
    """Read and compile, and look whether a function is named at all: nothing runs yet."""
    try:
        source = path.read_bytes()
        tree = ast.parse(source, str(path))
        code = compile(tree, str(path), "exec")
    except SyntaxError as error:
        where = f"{path}:{error.lineno or 1}:{error.offset or 1}"
        raise TargetError(f"{where}: {error.msg}\n    {(error.text or '').strip()}".rstrip()) from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise TargetError(f"{path}: not a Python file: {error or 'it is nested too deeply'}") from None
    if not name:
        found = ", ".join(f"{path}:{node.name}" for node in tree.body if isinstance(node, ast.FunctionDef))
        raise TargetError(f"'{path}' lacks the function to trace; name one: {found or 'it defines none'}")
    return code


@contextlib.contextmanager
def visit(path: Path) -> Iterator[None]:
    """As ``python FILE`` would: modules beside the file can be imported. What it prints is no part of our output."""
    folder = str(path.resolve().parent)
    sys.path.insert(0, folder)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        if folder in sys.path:
            sys.path.remove(folder)


@contextlib.contextmanager
def users_errors(path: Path, doing: str) -> Iterator[None]:
    """An error of the user's own code, as one sentence and the frames of the user's files."""
    try:
        yield
    except MinigraphError:
        raise
    except (Exception, SystemExit) as error:
        lines = "".join(traceback.format_list(users_frames(error, path)[-FRAMES:])).rstrip()
        said = str(error).strip().splitlines() or ["no reason given"]
        raise TargetError(f"{path}: {doing} raised {type(error).__name__}: {said[0]}\n{lines}".rstrip()) from error


def users_frames(error: BaseException, path: Path) -> list[traceback.FrameSummary]:
    """The frames in the target and in what lies beside or below it, except installed packages and minigraph."""
    folder, ours = path.resolve().parent, Path(__file__).resolve().parent
    frames = []
    for frame in traceback.extract_tb(error.__traceback__):
        file = Path(frame.filename).resolve()
        if file == path.resolve() or (folder in file.parents and ours not in file.parents
                                      and "site-packages" not in file.parts):
            frames.append(frame)
    return frames


def find_function(path: Path, name: str, names: dict):
    function = names.get(name)
    if name not in names:
        known = [known for known, value in names.items() if inspect.isfunction(value)]
        hint = nearest(name, known) or f"its functions are {', '.join(known) or 'none'}"
        raise TargetError(f"{path} has no function '{name}': {hint}")
    if not callable(function):
        raise TargetError(f"'{name}' in {path} is of type {type(function).__name__}, not a function")
    return function


def arguments(target: str, function, specs: dict[str, Type]) -> tuple[tuple[Type, ...], dict[str, Type]]:
    """A type for each parameter: as given, else its default, else its annotation. Others keep their defaults."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        raise TargetError(f"{target} has no signature to read: wrap it in a def") from None
    parameters = signature.parameters
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    for name in specs:
        if name not in parameters and not takes_any:
            known = f"its parameters are {', '.join(parameters) or 'none'}"
            raise TargetError(f"'{name}' is no parameter of {target}: {nearest(name, parameters) or known}")
    found, missing = dict(specs), []
    for name, parameter in parameters.items():
        if name in specs or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        type = stated(name, parameter.default) or stated(name, parameter.annotation)
        if type:
            found[name] = type
        elif parameter.default is parameter.empty:
            missing.append(name)
    if missing:
        example = " ".join(f"'{name}=f32[8,4]'" for name in missing)  # in quotes: to a shell, brackets are a pattern
        raise TargetError(f"{target} needs the types of {', '.join(missing)}: add them to the command, like {example},"
                          f' or to the function, like {missing[0]}: "f32[8,4]"')
    bound = signature.bind_partial()
    for name, parameter in parameters.items():  # in their order: as many as possible are passed by position
        if name in found:
            bound.arguments[name] = found.pop(name)
        elif parameter.kind is parameter.VAR_KEYWORD and found:
            bound.arguments[name] = found
    return bound.args, bound.kwargs


def stated(name: str, value) -> Type | None:
    """The type in an annotation or a default: a Type, or text like ``"f32[8,4]"``; None where it is anything else."""
    if isinstance(value, Type):
        return value
    if not isinstance(value, str):
        return None
    value = value.strip().strip("'\"")  # `from __future__ import annotations` keeps the quotes
    return parse_at(f"{name}: \"{value}\"", value) if SPEC.fullmatch(value) else None
