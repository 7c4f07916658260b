"""Small graphs, smallest first, and inputs that hold the values where mistakes show.

Bounded exhaustive testing: most mistakes show on some small input (Jackson and Damon, "Elements of Style:
Analyzing a Software Design Feature with a Counterexample Detector", 1996, call it the small-scope hypothesis).
Everything here is deterministic, so that a counterexample can be talked about.
"""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from ..errors import GraphError
from ..ir import Builder, Graph, defs
from ..ops import OPS, Kind
from ..types import DTYPES, Const, Type

SPECIAL = {
    "f": (2.0, -0.0, np.inf, np.nan, -3.0, 0.0, -np.inf, 1.5),
    "i": (2, -3, 0, 7, -1, 1, 5, -8),
    "u": (2, 3, 0, 7, 255, 1, 5, 8),
    "b": (True, False, False, True),
}


@dataclass(frozen=True)
class Space:
    """What small graphs are made of. ``ops`` are (op, attributes); ``consts`` are (name, number, type text)."""

    inputs: tuple[tuple[str, str], ...] = (("x", "f32[4]"),)
    consts: tuple[tuple[str, object, str], ...] = ()
    ops: tuple[tuple[str, dict], ...] = ()
    most: int = 2  # operations in the graphs that are enumerated completely
    limit: int = 5000  # graphs enumerated at most
    larger: int = 300  # seeded random graphs after those
    size: int = 8  # their operations


def small_graphs(space: Space) -> Iterator[Graph]:
    """Every graph of up to ``space.most`` operations in order of size, thinned evenly to ``space.limit``."""
    for size in range(space.most + 1):
        programs = list(enumerate_programs(space, size))
        stride = max(1, -(-len(programs) // space.limit))
        for program in programs[::stride]:
            yield from graphs_of(space, program)


def larger_graphs(space: Space, seed: int = 0) -> Iterator[Graph]:
    """Seeded random graphs: several users of a value, several outputs, dead code."""
    draw = random.Random(seed)
    for _ in range(space.larger):
        program: list[tuple] = []
        for _ in range(draw.randint(3, space.size)):
            choice = draw.randrange(len(space.ops))
            names = leaves(space) + [f"t{i + 1}" for i in range(len(program))]
            operands = [draw.choice(names) for _ in range(operand_count(space.ops[choice][0]))]
            program.append((choice, tuple(operands)))
        made = [f"t{i + 1}" for i in range(len(program))]
        graph = make_graph(space, program, sorted(draw.sample(made, draw.randint(1, min(3, len(made))))))
        if graph is not None:
            yield graph


def leaves(space: Space) -> list[str]:
    return [name for name, _ in space.inputs] + [name for name, _, _ in space.consts]


def operand_count(op: str) -> int:
    return int(OPS[op].arity[0])


def enumerate_programs(space: Space, size: int) -> Iterator[tuple]:
    """Lists of ``size`` (operation's index, operands); an operation may read leaves and earlier operations."""
    choices = []
    for position in range(size):
        names = leaves(space) + [f"t{i + 1}" for i in range(position)]
        choices.append([(index, operands) for index, (op, _) in enumerate(space.ops)
                        for operands in itertools.product(names, repeat=operand_count(op))])
    return itertools.product(*choices)


def graphs_of(space: Space, program: tuple) -> Iterator[Graph]:
    """The program with its last value as output; with two operations also with the first one, and with both."""
    made = [f"t{i + 1}" for i in range(len(program))]
    choices = [made[-1:]] if len(made) < 2 else [made[-1:], made[:1], made]
    if not made:
        choices = [[name] for name in leaves(space)]
    for outputs in choices:
        graph = make_graph(space, program, outputs)
        if graph is not None:
            yield graph


def make_graph(space: Space, program, outputs: list[str]) -> Graph | None:
    """The graph, or None where the types do not fit. Constants appear only where they are used."""
    builder = Builder("g")
    token: list[str] = []
    used = {name for _, operands in program for name in operands} | set(outputs)
    for name, type in space.inputs:
        builder.input(name, type)
    for name, value, type in space.consts:
        if name in used:
            builder.const(constant(value, type), name=name)
    try:
        for index, (choice, operands) in enumerate(program):
            op, attrs = space.ops[choice]
            kind = OPS[op].kind
            if kind is Kind.RANDOM:
                attrs = attrs | {"site": index}
            name = builder.emit(op, *operands, *(token if kind is Kind.EFFECT else ()), name=f"t{index + 1}", **attrs)
            if kind is Kind.EFFECT:
                token = [name]
        if any(builder.type(name).dtype == "token" for name in outputs):
            return None
    except GraphError:
        return None
    return builder.build({f"out{i + 1}" if len(outputs) > 1 else "out": name for i, name in enumerate(outputs)})


WATCHED = 12  # nodes of a graph that is tried with effects, too: a counterexample stays small


def with_effects(graphs: Iterable[Graph]) -> Iterator[Graph]:
    """Each small graph that has no effect, with an effect for each output, which reads the output's value. The output is
    a random draw instead, so that all else is live through the effects alone."""
    for graph in graphs:
        if len(graph) <= WATCHED and not any(OPS[node.op].kind in (Kind.EFFECT, Kind.RANDOM) for node in graph.nodes):
            yield watched(graph)


def watched(graph: Graph) -> Graph:
    builder, token = Builder(graph.name), ()
    builder.nodes = defs(graph)
    drawn = builder.emit("random", name=builder.fresh("drawn"), shape=(2,), site=0)
    for public, value in (*graph.outputs, ("drawn", drawn)):
        token = (builder.emit("print", value, *token, name=builder.fresh("seen"), label=public),)
    return builder.build({"out": drawn})


def special_inputs(graph: Graph, sets: int = 4) -> list[dict[str, np.ndarray]]:
    """Inputs that hold the special values of their dtype, so turned that different values meet; then one more, with
    ordinary values, all different."""
    result = []
    for number in range(sets):
        arrays = {}
        for place, node in enumerate(graph.inputs):
            arrays[node.name] = special_array(node.type, start=number * (3 + 2 * place) + place)
        result.append(arrays)
    return [*result, {node.name: distinct_array(node.type, seed=place) for place, node in enumerate(graph.inputs)}]


TURNS = 23  # a prime, and more than the values of a dtype below: then every value of one input meets every one of another
MANY = 4096  # elements of all inputs from which on each array alone holds every value


def edge_inputs(graph: Graph) -> Iterator[dict[str, np.ndarray]]:
    """Inputs that hold the ends of each type, too, and the first integers that floats leave out: for judging what must
    be right for every input. The arrays of ``special_inputs`` hold some values of a dtype, and these all of them."""
    types = {node.name: node.type for node in graph.inputs}
    pairs = len(types) > 1 and sum(type.size for type in types.values()) < MANY
    for number in range(TURNS * (TURNS if pairs else 1)):
        starts = [number + place * (number // TURNS) for place in range(len(types))]
        yield {name: turned(edge_values(type.dtype), type, start) for (name, type), start in zip(types.items(), starts)}


@functools.cache
def edge_values(name: str) -> np.ndarray:
    """The special values of a dtype, the ends of its range, and integers just beyond the digits of the floats."""
    dtype = DTYPES[name]
    if dtype.kind == "f":
        facts = np.finfo(dtype)
        more = [facts.max, -facts.max, facts.tiny, facts.smallest_subnormal, 1 + facts.eps, 0.1, 100, -100]
    else:
        facts = np.iinfo(dtype if dtype.kind != "b" else np.uint8)
        beyond = [sign * (2**digits + 1) for digits in (11, 24, 53) for sign in (1, -1)]
        ends = [facts.min, facts.min + 1, facts.max - 1, facts.max, 50, 100, *beyond]
        more = [number for number in ends if facts.min <= number <= facts.max] if dtype.kind != "b" else []
    return np.resize(np.array([*SPECIAL[dtype.kind], *more], dtype), TURNS)


def distinct_array(type: Type, seed: int) -> np.ndarray:
    """Finite values in no order, no two alike where the dtype has so many: no NaN hides what a maximum was taken of.
    Floats are multiples of one half, so that sums of them are exact in any order."""
    dtype = DTYPES[type.dtype]
    many = min(type.size, 2 ** min(8 * dtype.itemsize, 32))
    numbers = np.random.default_rng(seed).permutation(type.size) % max(many, 1) + seed + 1  # a single value is no 0
    numbers = numbers - many // 2 if dtype.kind in "fi" else numbers
    numbers = numbers / 2 if dtype.kind == "f" else numbers % 2 if dtype.kind == "b" else numbers
    return numbers.astype(dtype).reshape(type.shape)


def special_array(type: Type, start: int = 0) -> np.ndarray:
    dtype = DTYPES[type.dtype]
    return turned(np.array(SPECIAL[dtype.kind], dtype), type, start)


def turned(values: np.ndarray, type: Type, start: int) -> np.ndarray:
    """These values again and again, the one at ``start`` first."""
    return np.resize(np.roll(values, -start), type.shape) if type.size else np.zeros(type.shape, values.dtype)


def chain(size: int, op: str = "neg") -> Graph:
    """A chain of ``size`` operations, to see that a pass neither recurses nor takes quadratic time."""
    builder = Builder("chain")
    last = builder.input("x", "f32[2]")
    for _ in range(size):
        last = builder.emit(op, last)
    return builder.build({"out": last})


def constant(value, type: str) -> Const:
    dtype, shape = type.split("[")
    return Const.of(np.full([int(d) for d in shape[:-1].split(",") if d], value, DTYPES[dtype]))
