"""Where the user's program is: source lines, the names of its variables, and errors at its lines."""

from __future__ import annotations

import functools
import os
import sys

import numpy as np

from ..errors import GraphError, TraceError
from ..ir import is_name

HERE = os.path.dirname(os.path.abspath(__file__))
FACE = os.path.join(os.path.dirname(HERE), "trace.py")
NUMPY = os.path.dirname(os.path.abspath(np.__file__))


@functools.lru_cache(maxsize=None)
def is_machinery(filename: str) -> bool:
    """Is this the tracer's own code or NumPy's? Everything else, other parts of minigraph too, is the user's."""
    path = os.path.abspath(filename)
    return path == FACE or path.startswith((HERE, NUMPY))


def user_frame():
    """The innermost frame that is the user's code, or None."""
    frame = sys._getframe(1)
    while frame is not None and is_machinery(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def position(filename: str, line: int) -> str:
    """``model.py:12``; a notebook cell, whose file is named after a hash, is ``cell:12``."""
    base = os.path.basename(filename)
    return f"{'cell' if base[:-3].isdigit() else base}:{line}"


def here() -> str:
    frame = user_frame()
    return position(frame.f_code.co_filename, frame.f_lineno) if frame else ""


def array_name(frame, array) -> str:
    """What the user's code calls the array: a variable ``w`` or an attribute ``layer.w``, else ``c``."""
    if frame is None:
        return "c"
    mentioned = frame.f_code.co_names  # the globals and attributes of this code
    variables = {**frame.f_locals, **{name: frame.f_globals[name] for name in mentioned if name in frame.f_globals}}
    candidates = list(variables.items())
    for name, value in variables.items():
        fields = getattr(value, "__dict__", {})
        candidates += [(f"{name}.{field}", fields[field]) for field in mentioned if field in fields]
    for name, value in candidates:
        if (value is array or isinstance(value, np.ndarray) and value is array.base) and is_name(name):
            return name
    return "c"


# ---- errors ---------------------------------------------------------------------------------------------------------


class TraceTypeError(TraceError, TypeError):
    """A TraceError where NumPy raises TypeError."""


class TraceIndexError(TraceError, IndexError):
    """A TraceError where NumPy raises IndexError or AxisError."""


class TraceOverflowError(TraceError, OverflowError):
    """A TraceError where NumPy raises OverflowError."""


class TraceAttributeError(TraceError, AttributeError):
    """A TraceError where NumPy raises AttributeError."""


SAME_CLASS = {TypeError: TraceTypeError, IndexError: TraceIndexError, OverflowError: TraceOverflowError,
              AttributeError: TraceAttributeError}


def fail(rule: str, hint: str = "", like: type[Exception] = ValueError):
    """Raise the TraceError that is also a ``like``, at the user's line."""
    raise SAME_CLASS.get(like, TraceError)(rule, where=here(), hint=hint) from None


def located(error: Exception) -> TraceError:
    """What NumPy or the IR refuses, as a TraceError at the user's line; it is still an instance of NumPy's class."""
    if isinstance(error, TraceError):
        return error
    kind = next((ours for theirs, ours in SAME_CLASS.items() if isinstance(error, theirs)), TraceError)
    rule, hint = (error.rule, error.hint) if isinstance(error, GraphError) else (str(error), "")
    return kind(rule, where=here(), hint=hint)
