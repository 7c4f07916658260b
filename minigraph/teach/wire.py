"""Values as JSON between the grader and a submission's process: data only, nothing is evaluated or unpickled."""

from __future__ import annotations

import base64
from types import FunctionType

import numpy as np

from ..ir import Graph, Node
from ..ops import Attrs
from ..passes.rules import Rule
from ..planners import Buffer
from ..rebuild import Result
from ..types import DTYPES, SHORT, Const, Type, parse_type
from .exact import article

SAFE = "minigraph.teach.exercises."  # functions of the course's own exercises travel by name


class Opaque:
    """Something that does not travel: only what it was called."""

    def __init__(self, kind: str):
        self.kind = kind

    def __repr__(self):
        return self.kind


def encode(value):
    """A value of the course as JSON; what it does not know becomes an Opaque on the other side."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if type(value) in ENCODERS:
        return {type(value).__name__: ENCODERS[type(value)](value)}
    if isinstance(value, np.generic) and value.dtype in SHORT:
        return {"scalar": pack(np.asarray(value))}
    if isinstance(value, FunctionType) and value.__module__.startswith(SAFE):
        return {"function": [value.__module__, value.__qualname__]}
    return {"opaque": article(value)}


def pack(array: np.ndarray) -> list:
    return [SHORT[array.dtype], list(array.shape), base64.b64encode(array.tobytes()).decode()]


def unpack(packed) -> np.ndarray:
    dtype, shape, data = packed
    raw = base64.b64decode(data, validate=True)
    return np.frombuffer(raw, DTYPES[dtype]).reshape([int(dim) for dim in shape]).copy()


def pack_array(array: np.ndarray):
    return pack(array) if array.dtype in SHORT else None


ENCODERS = {
    int: str,
    float: repr,
    list: lambda value: [encode(one) for one in value],
    tuple: lambda value: [encode(one) for one in value],
    set: lambda value: [encode(one) for one in sorted(value, key=repr)],
    frozenset: lambda value: [encode(one) for one in sorted(value, key=repr)],
    dict: lambda value: [[encode(key), encode(one)] for key, one in value.items()],
    np.ndarray: pack_array,
    Const: lambda value: pack(value.array),
    Attrs: lambda value: [[key, encode(one)] for key, one in value],
    Type: lambda value: [value.dtype, encode(value.shape)],
    Node: lambda value: [encode(getattr(value, name)) for name in ("name", "op", "inputs", "value", "type", "origin")],
    Graph: lambda value: [encode(value.name), encode(value.nodes), encode(value.outputs)],
    Result: lambda value: encode(value.graph),
    Rule: lambda value: [encode(one) for one in value],
    Buffer: lambda value: [encode(one) for one in value],
}


def decode(message):
    """The value again. Raises ValueError, TypeError or KeyError for a message that ``encode`` cannot have made."""
    if message is None or isinstance(message, (bool, str)):
        return message
    (kind, content), = message.items()
    return DECODERS[kind](content)


def decode_function(content):
    import importlib

    module, name = content
    if not module.startswith(SAFE) or "." in name:
        raise ValueError(f"no function {name} here")
    return getattr(importlib.import_module(module), name)


DECODERS = {
    "int": int,
    "float": float,
    "list": lambda content: [decode(one) for one in content],
    "tuple": lambda content: tuple(decode(one) for one in content),
    "set": lambda content: {decode(one) for one in content},
    "frozenset": lambda content: frozenset(decode(one) for one in content),
    "dict": lambda content: {decode(key): decode(one) for key, one in content},
    "ndarray": lambda content: Opaque("an array of another dtype") if content is None else unpack(content),
    "scalar": lambda content: unpack(content)[()],
    "Const": lambda content: Const.of(unpack(content)),
    "Attrs": lambda content: Attrs(**{key: decode(one) for key, one in content}),
    "Type": lambda content: Type(content[0], decode(content[1])) if content[0] == "token" else parse_type(
        f"{content[0]}[{','.join(map(str, decode(content[1])))}]"),
    "Node": lambda content: Node(*[decode(one) for one in content]),
    "Graph": lambda content: Graph(*[decode(one) for one in content]),
    "Result": decode,
    "Rule": lambda content: Rule(*[decode(one) for one in content]),
    "Buffer": lambda content: Buffer(*[decode(one) for one in content]),
    "function": decode_function,
    "opaque": lambda content: Opaque(str(content)),
}
