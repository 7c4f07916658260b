"""The arrays that a command line names: inputs to run a graph with, and its outputs in a file.

Nothing is evaluated or unpickled, and no file makes us allocate more than the graph's own types ask for.
"""

from __future__ import annotations

import contextlib
import re
import zipfile
from collections.abc import Iterable, Iterator

import numpy as np

from ..errors import MinigraphError, ParseError, nearest
from ..ir import Graph
from ..text import parse
from ..types import DTYPES, Type, type_of


class InputError(MinigraphError):
    """An input that is missing, unknown, of another type, or in a file that cannot be read."""


FILLS = {"zeros": np.zeros, "ones": np.ones}


def read_inputs(graph: Graph, values: Iterable[str], npz: str | None, seed: int) -> dict[str, np.ndarray]:
    """An array for each input: from the ``.npz``, then from ``NAME=VALUE``; InputError where one is missing."""
    wanted = {node.name: node.type for node in graph.inputs}
    arrays = read_npz(npz, wanted, graph) if npz else {}
    for text in values:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not value:
            raise InputError(f"'{text}' is not NAME=VALUE, like x=1.0, x=[1,2], x=random or x=FILE.npy")
        known(name, wanted, graph)
        arrays[name] = read_input(name, value, wanted[name], (seed, list(wanted).index(name)))
    missing = [name for name in wanted if name not in arrays]
    if missing:
        inputs = " ".join(f"--input {name}=random" for name in missing)
        types = ", ".join(f"{name}: {wanted[name]}" for name in missing)
        raise InputError(f"{graph.name} needs a value for {types}; for example {inputs}")
    return arrays


def known(name: str, wanted: dict[str, Type], graph: Graph) -> None:
    if name not in wanted:
        hint = nearest(name, wanted) or f"its inputs are {', '.join(wanted) or 'none'}"
        raise InputError(f"'{name}' is not an input of {graph.name}: {hint}")


def read_input(name: str, value: str, type: Type, seed: tuple[int, int]) -> np.ndarray:
    if type.dtype not in DTYPES:
        raise InputError(f"input '{name}' is a {type}, which cannot be given")
    if value in FILLS:
        return FILLS[value](type.shape, DTYPES[type.dtype])
    if value == "random":
        return random_array(type, seed)
    if value.endswith(".npy"):
        with open(value, "rb") as stream, damaged(value):
            return read_npy(stream, type, name)
    return literal(name, value, type)


def random_array(type: Type, seed: tuple[int, int]) -> np.ndarray:
    """Standard normal floats, small integers, or booleans."""
    generator = np.random.default_rng(seed)
    if type.domain == "float":
        return np.asarray(generator.standard_normal(type.shape), DTYPES[type.dtype])
    low, high = {"bool": (0, 2), "signed": (-8, 9)}.get(type.domain, (0, 9))
    return np.asarray(generator.integers(low, high, type.shape), DTYPES[type.dtype])


def literal(name: str, value: str, type: Type) -> np.ndarray:
    """``1.0`` (for every element), ``[1, 2]``, ``true``: what ``const(...)`` takes in a graph's text."""
    try:
        if re.search(r"[\r\n#]", value):
            raise ParseError("a value is written on one line")
        return parse(f"graph g() -> (c) {{\nc = const({value}) : {type}\nreturn c\n}}")["c"].value.array
    except ParseError as error:
        raise InputError(f"--input {name}={value} for {type}: {error.rule}" + (f"; {error.hint}" if error.hint else "")
                          ) from None


def read_npz(path: str, wanted: dict[str, Type], graph: Graph) -> dict[str, np.ndarray]:
    arrays = {}
    with open(path, "rb") as file, damaged(path), zipfile.ZipFile(file) as archive:
        for member in archive.infolist():
            name = member.filename.removesuffix(".npy")
            known(name, wanted, graph)
            with archive.open(member) as stream:
                arrays[name] = read_npy(stream, wanted[name], name)
    return arrays


def read_npy(stream, type: Type, name: str) -> np.ndarray:
    """An array of the ``.npy`` format, if it is of this type: no more bytes are read than the type has."""
    version = np.lib.format.read_magic(stream)
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in readers:
        raise InputError(f"it has the unknown format version {version[0]}.{version[1]}")
    shape, fortran, dtype = readers[version](stream)
    found = Type(type_of(np.empty(0, dtype)).dtype, shape)
    if found != type:
        hint = f": convert it with .astype('{DTYPES[type.dtype]}')" if found.shape == type.shape else ""
        raise InputError(f"input '{name}' is {type}, but the array is {found}{hint}")
    data = stream.read(type.nbytes)
    if len(data) < type.nbytes:
        raise InputError(f"it ends after {len(data):,} of {type.nbytes:,} bytes")
    return np.ndarray(shape, dtype, data, order="F" if fortran else "C")


@contextlib.contextmanager
def damaged(path: str) -> Iterator[None]:
    """Errors name the file. A damaged file provokes almost any exception in the libraries that read it."""
    try:
        yield
    except MinigraphError as error:
        raise InputError(f"{path}: {error}") from None
    except Exception as error:
        raise InputError(f"{path}: not an array file, or damaged: {error}") from None


def write_npz(path: str, arrays: dict[str, np.ndarray]) -> None:
    """An ``.npz`` that ``np.load`` reads; unlike ``np.savez`` it takes arrays of any name."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, array, allow_pickle=False)
