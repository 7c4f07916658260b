"""Tracing: run ordinary NumPy code on stand-ins for arrays, and write down what it does.

``trace(f, "f32[8,4]", "f32[4,4]")`` calls ``f`` once with a ``Tracer`` for each array. A Tracer has a dtype and a shape
but no numbers; operators, NumPy functions and methods on it record nodes. What NumPy does silently is recorded too:
each conversion of dtypes (NEP 50) is a ``cast`` node and each Python number a constant of the dtype that it takes.

Tracing records what happened, once. So whatever does not go through a Tracer is baked in: the branch that a plain
``if`` took, loops (they unroll), ``print``, and numbers from ``np.random``, which a tracer cannot see: draw with
``minigraph.random``. What depends on values that are not known yet is a TraceError with the line and what to do.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap

import numpy as np

from ..errors import TraceError
from ..ir import NAME, WORDS, Graph, is_name
from .extra import (
    assert_close, assert_finite, constant, conv2d, dequantize, erf, pack, packed_matmul, print_value, quantize, random,
    random_like, rsqrt, take, unpack, update_slice,
)  # fmt: skip
from .proxy import Tracer
from .record import ACTIVE, Recording, Traced, lift, recording
from .source import fail, position
from ..types import DTYPES, SHORT, Type, parse_type, type_of

__all__ = [
    "trace", "spec", "Tracer", "assert_close", "assert_finite", "constant", "conv2d", "dequantize", "erf",
    "pack", "packed_matmul", "print_value", "quantize", "random", "random_like", "rsqrt", "take", "unpack", "update_slice",
]  # fmt: skip


# ---- specs ----------------------------------------------------------------------------------------------------------


def spec(of, shape=None) -> Type:
    """A type: ``spec("f32[8,4]")``, ``spec("f32", (8, 4))``, ``spec(np.float32, (8, 4))`` or ``spec(array)``."""
    if shape is not None:
        dtype = of if isinstance(of, str) and of in DTYPES else SHORT.get(np.dtype(of), str(of))
        return parse_type(f"{dtype}[{','.join(map(str, shape))}]")
    if isinstance(of, Type):
        return of
    return parse_type(of) if isinstance(of, str) else type_of(of)


def is_spec(value) -> bool:
    return isinstance(value, (Type, str, np.ndarray, np.generic))


def clean(part) -> str:
    """A key or an attribute as a part of a name."""
    return re.sub(r"[^A-Za-z0-9_.]", "_", str(part)).strip(".") or "_"


def items_of(value):
    """The (key, item) pairs of a nested spec or output, or None for a leaf."""
    if isinstance(value, dict):
        return list(value.items())
    is_nest = isinstance(value, (tuple, list)) and not isinstance(value, Type)
    return list(enumerate(value)) if is_nest else None


def rebuilt(value, items: list):
    """The nest again, with other items in it."""
    if isinstance(value, dict):
        return dict(zip(value, items))
    return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)


def make_inputs(record: Recording, given, name: str):
    """``given`` with each spec in it replaced by a Tracer: the inputs ``cache.0``, ``cache.k`` …"""
    items = items_of(given)
    if items is not None:
        return rebuilt(given, [make_inputs(record, item, f"{name}.{clean(key)}") for key, item in items])
    if not is_spec(given):
        return given  # a plain number, None, a configuration: known while tracing, so not part of the graph
    if not is_name(name):
        raise TraceError(f"'{name}' cannot name an input", hint="names are letters, digits and _, joined by dots; "
                         f"{', '.join(sorted(WORDS))} are words of the language")
    if any(entry.label == name for entry in record.entries):
        raise TraceError(f"two inputs are named '{name}'", hint="rename a parameter or a key: in a name, what is not"
                         " an ASCII letter or a digit becomes _")
    return record.add("input", (), None, spec(given), name)


def bind(f, specs: tuple, named: dict) -> tuple[inspect.BoundArguments | None, dict]:
    """Argument names -> specs, by the signature of f; builtins without one get ``x0``, ``x1`` …"""
    try:
        signature = inspect.signature(f)
    except (TypeError, ValueError):
        return None, {f"x{i}": given for i, given in enumerate(specs)} | named
    bound = signature.bind(*specs, **named)
    return bound, dict(bound.arguments)


def call_with(f, bound, arguments: dict, named: dict):
    if bound is None:
        values = list(arguments.items())
        return f(*(v for k, v in values if k not in named), **{k: v for k, v in values if k in named})
    bound.arguments.update(arguments)
    return f(*bound.args, **bound.kwargs)


# ---- outputs --------------------------------------------------------------------------------------------------------


def returned_names(f):
    """What the one ``return`` of f says: an AST node, or None where there is no source or no single return."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(f))).body[0]
    except (OSError, TypeError, SyntaxError, IndexError):
        return None
    returns, todo = [], list(tree.body) if isinstance(tree, ast.FunctionDef) else []
    for node in todo:  # grows while it is walked; functions inside f return elsewhere
        if isinstance(node, ast.Return):
            returns.append(node.value)
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            todo += ast.iter_child_nodes(node)
    return returns[0] if len(returns) == 1 else None


def name_outputs(value, name: str, source) -> list[tuple[str, object]]:
    """(public name, leaf) pairs. A variable in the return statement gives its name, else it is ``out`` and numbers."""
    if isinstance(source, ast.Name) and NAME.fullmatch(source.id):
        name, source = source.id, None
    items = items_of(value)
    if items is None:
        return [(name or "out", value)]
    elements = getattr(source, "elts", None) or getattr(source, "values", None)
    if elements is None or len(elements) != len(items) or any(isinstance(e, ast.Starred) for e in elements):
        elements = [None] * len(items)
    pairs = []
    for (key, item), element in zip(items, elements):
        if isinstance(value, dict):
            element = element if items_of(item) is not None and not isinstance(element, ast.Name) else None
            key_name = f"{name}.{clean(key)}" if name else clean(key)
            key_name = key_name if NAME.fullmatch(key_name) else f"out.{clean(key)}"
        else:
            key_name = f"{name or 'out'}.{key}"
        pairs += name_outputs(item, key_name, element)
    return pairs


def make_outputs(result, source) -> list[tuple[str, Traced]]:
    """The outputs under unique public names."""
    outputs: dict[str, Traced] = {}
    for public, value in name_outputs(result, "", source):
        if not isinstance(value, (Traced, np.ndarray, np.generic, int, float)):
            fail(f"the function returned {type(value).__name__} {value!r} as '{public}'",
                 "return arrays, numbers, or tuples, lists and dicts of them", TypeError)
        base, count = public, 0
        while public in outputs:
            count += 1
            public = f"{base}.{count}"
        outputs[public] = lift(value)
        if base.partition(".")[0] != "out":
            recording().name(outputs[public], base)
    return list(outputs.items())


# ---- trace ----------------------------------------------------------------------------------------------------------


def trace(f, /, *specs, name: str | None = None, **named) -> Graph:
    """Run ``f`` once on tracers and return what it did as a graph.

    Each argument is a spec: a type or its text (``"f32[8,4]"``), an array or NumPy scalar, whose type is taken, or a
    nested tuple, list or dict of these, whose inputs are named ``cache.0`` or ``cache.k``. Anything else, such as a
    Python number, is passed through as it is. Inputs have the names of f's parameters.

    Outputs: f returns a value, or a nested tuple, list or dict of values. A variable in f's return statement gives
    its name to the output; else outputs are ``out``, ``out.0`` …, or named by the dict's keys.
    Arrays that f uses become constants: copied, unless their memory is read-only.

    Raises TraceError at the line of f that cannot be recorded; f's own exceptions pass through.
    """
    record = Recording(Tracer)
    bound, arguments = bind(f, specs, named)
    arguments = {parameter: make_argument(record, bound, parameter, given) for parameter, given in arguments.items()}
    token = ACTIVE.set(record)
    try:
        result = call_with(f, bound, arguments, named)
        if result is None and record.token is None:
            raise TraceError(f"{getattr(f, '__name__', 'the function')} returned nothing", where=definition(f),
                             hint="return the value or values that the graph is to compute")
        outputs = [] if result is None else make_outputs(result, returned_names(f))
    finally:
        ACTIVE.reset(token)
    own_name = clean(getattr(f, "__name__", "g"))
    return record.graph(name or (own_name if NAME.fullmatch(own_name) and own_name != "_lambda_" else "g"), outputs)


def make_argument(record: Recording, bound, parameter: str, given):
    kind = bound and bound.signature.parameters[parameter].kind
    if kind is inspect.Parameter.VAR_KEYWORD:
        return {key: make_inputs(record, value, clean(key)) for key, value in given.items()}
    return make_inputs(record, given, clean(parameter))


def definition(f) -> str:
    code = getattr(f, "__code__", None)
    return position(code.co_filename, code.co_firstlineno) if code else ""
