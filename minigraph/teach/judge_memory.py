"""Judges of memory planners: is a placement right, is it low enough, is an order of launches one that runs?

And what in-place writes do: ``run_in_place`` computes a small graph one element after the other, as a kernel does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..ir import Graph, Node
from ..ops import OPS, Kind
from ..planners import Buffer, check, lower_bound
from ..run_numpy import VIEWS
from ..types import DTYPES, same_bits
from .exact import article
from .graphs import special_inputs
from .judge import SECONDS, Failure, Verdict, attempt, difference
from .limits import TookTooLong, time_limit

ALLOWED = 1.1  # times the lower bound that a learner's plan may take
SHOWN = 8  # buffers that are written out


# ---- placements -----------------------------------------------------------------------------------------------------


def judge_plan(function: Callable, valid: Sequence[list[Buffer]], low: Sequence[list[Buffer]]) -> Verdict:
    """Judge ``function``: buffers -> offsets. Right on ``valid`` and ``low``, and on ``low`` at most 1.1 times the bound."""
    tried, case = 0, ()
    try:
        with time_limit(SECONDS):
            for height, instances in ((False, sorted([*valid, *low], key=len)), (True, sorted(low, key=len))):
                for buffers in instances:
                    tried += not height
                    case = (buffers,)
                    got, failure = attempt(function, (list(buffers),), None)
                    failure = failure or fault_of(buffers, got, height)
                    if failure:
                        shown = case if failure.kind != "not-attempted" else ()
                        return Verdict(replace(failure, case=shown), tried)
    except TookTooLong:
        return Verdict(Failure("too-long", f"Your function does not come to an end on {len(case[0])} buffers, or is very"
                               f" slow: it was stopped after {SECONDS:g} seconds.", case=case), tried)
    return Verdict(None, tried)


def fault_of(buffers: list[Buffer], offsets, height: bool) -> Failure | None:
    """What is wrong with the answer; with ``height``, whether it takes too much memory."""
    if not isinstance(offsets, (list, tuple)):
        what = "None (is a return missing?)" if offsets is None else article(offsets)
        return Failure("not-offsets", f"Your function returned {what}, and a list of offsets is wanted, one for each buffer.",
                       got=offsets, details=lines_of(buffers))
    if strange := [one for one in offsets if not isinstance(one, (int, np.integer)) or isinstance(one, bool)]:
        return Failure("not-offsets", f"An offset is a whole number of bytes, and {strange[0]!r} is {article(strange[0])}.",
                       got=offsets, details=lines_of(buffers))
    if len(offsets) != len(buffers):
        return Failure("not-offsets", f"There are {len(buffers)} buffers, and your function returned {len(offsets)} offsets.",
                       got=offsets, details=lines_of(buffers))
    offsets = [int(offset) for offset in offsets]
    if faults := check(buffers, offsets):
        kind = "overlap" if "overlaps" in faults[0] else "below-0"
        sentence = ("Two buffers that live at one time overlap." if kind == "overlap" else "A buffer lies below 0.")
        return Failure(kind, sentence, got=offsets, details=(*lines_of(buffers, offsets), faults[0]))
    footprint, bound = footprint_of(buffers, offsets), lower_bound(buffers)
    if height and footprint > ALLOWED * bound:
        return Failure("too-high", f"The plan is right, and takes {footprint:,} bytes where the lower bound is {bound:,}:"
                       f" {footprint / bound:.2f} times as much, and {ALLOWED} times is allowed.", got=offsets,
                       details=lines_of(buffers, offsets))
    return None


def footprint_of(buffers: Sequence[Buffer], offsets: Sequence[int]) -> int:
    return max((offset + buffer.size for buffer, offset in zip(buffers, offsets) if buffer.end > buffer.start), default=0)


def lines_of(buffers: Sequence[Buffer], offsets: Sequence[int] = ()) -> tuple[str, ...]:
    """The buffers, one a line, with where they were put."""
    places = [f" at offset {offset}" for offset in offsets] or [""] * len(buffers)
    lines = [f"{b.name}: launches [{b.start}, {b.end}), {b.size} bytes{place}" for b, place in zip(buffers, places)]
    return (*lines[:SHOWN], *([f"… {len(lines)} buffers in all"] if len(lines) > SHOWN else []))


# ---- orders -------------------------------------------------------------------------------------------------------------


def peak_of(launches: Sequence[tuple], sizes: Mapping[str, int], outputs: Sequence[str]) -> int:
    """The most bytes alive during one launch, with its operands and its result."""
    last = {name: len(launches) for name in outputs}
    for index, (name, reads) in enumerate(launches):
        for value in (name, *reads):
            last[value] = max(last.get(value, 0), index + 1)
    return lower_bound([Buffer(name, index, last[name], sizes[name]) for index, (name, _) in enumerate(launches)])


def judge_order(function: Callable, cases: Sequence[tuple], reference: Callable) -> Verdict:
    """Judge ``function``: (launches, sizes, outputs) -> names in a new order, by the order's rules and by its peak."""
    tried, case = 0, ()
    try:
        with time_limit(SECONDS):
            for height in (False, True):
                for case in cases:
                    tried += not height
                    launches, sizes, outputs = case
                    got, failure = attempt(function, (list(launches), dict(sizes), outputs), None)
                    failure = failure or order_fault(case, got, reference if height else None)
                    if failure:
                        shown = case if failure.kind != "not-attempted" else ()
                        return Verdict(replace(failure, case=shown), tried)
    except TookTooLong:
        return Verdict(Failure("too-long", "Your function does not come to an end here, or is very slow: it was stopped after"
                               f" {SECONDS:g} seconds.", case=case), tried)
    return Verdict(None, tried)


def order_fault(case: tuple, got, reference: Callable | None) -> Failure | None:
    launches, sizes, outputs = case
    known = dict(launches)
    shown = tuple(f"{name}: {sizes[name]} bytes, reads {', '.join(reads) or 'nothing'}" for name, reads in launches[:SHOWN])
    if not isinstance(got, (list, tuple)) or sorted(map(str, got)) != sorted(known):
        return Failure("not-an-order", "The answer must be a list with each launch's name exactly once.", got=got,
                       details=(*shown, f"your answer: {got!r}"))
    done: set[str] = set()
    for name in got:
        if early := [value for value in known[name] if value in known and value not in done]:
            return Failure("too-early", f"{name} reads {early[0]}, which has not been written by then.", got=list(got),
                           details=(*shown, f"your order: {', '.join(got)}"))
        done.add(name)
    if reference is None:
        return None
    mine, given, best = (peak_of([(name, known[name]) for name in order], sizes, outputs)
                         for order in (got, [name for name, _ in launches], reference(*case)))
    lines = (*shown, f"your order: {', '.join(got)}")
    if mine > given:
        return Failure("worse", f"The peak is {mine} bytes, and it was {given} in the order that was given.", got=list(got),
                       details=lines)
    if mine > best:
        return Failure("too-high", f"The peak is {mine} bytes, and {best} can be reached.", got=list(got), details=lines)
    return None


# ---- in-place writes -------------------------------------------------------------------------------------------------


class Reuse(NamedTuple):
    """What a function said may be written where: result -> operand."""

    graph: Graph
    over: dict[str, str]


def run_in_place(graph: Graph, over: Mapping[str, str], inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The outputs by public name, if each result in ``over`` is written into the memory of its operand.

    A launch computes an element, stores it, and goes on to the next: what it reads later, it reads after that store.
    """
    memory: dict[str, np.ndarray] = {}
    for node in graph.nodes:
        if OPS[node.op].kind is Kind.EFFECT:
            continue  # it writes nothing
        attrs = dict(node.value) if node.value and node.op != "const" else {}
        if node.op == "input":
            memory[node.name] = np.array(inputs[node.name])
        elif node.op == "const":
            memory[node.name] = np.array(node.value.array)
        elif node.op in VIEWS:
            memory[node.name] = OPS[node.op].numpy(memory[node.inputs[0]], **attrs)
        else:
            memory[node.name] = launch(node, memory, over.get(node.name), attrs)
    return {public: np.array(memory[value]) for public, value in graph.outputs}


def launch(node: Node, memory: dict[str, np.ndarray], over: str | None, attrs: dict) -> np.ndarray:
    dtype, shape = DTYPES[node.type.dtype], node.type.shape
    result = np.empty(shape, dtype)
    if over is not None and memory[over].flags.c_contiguous and memory[over].nbytes >= result.nbytes:
        result = memory[over].reshape(-1).view(np.uint8)[:result.nbytes].view(dtype).reshape(shape)
    operands = [memory[name] for name in node.inputs if name in memory] if OPS[node.op].kind is not Kind.RANDOM else [0]
    with np.errstate(all="ignore"):
        for index in np.ndindex(shape):
            result[index] = np.asarray(OPS[node.op].numpy(*operands, **attrs))[index]
    return result


def judge_in_place(function: Callable, graph: Graph) -> tuple[Failure | None, Graph]:
    """Does a wrong rule for in-place writes, graph -> {result: operand}, change an output of this graph?"""
    over = function(graph)
    shown = marked(graph, over)
    for inputs in special_inputs(graph):
        want, have = run_in_place(graph, {}, inputs), run_in_place(graph, over, inputs)
        for public, _ in graph.outputs:
            if not same_bits(want[public], have[public]):
                return difference(graph, shown, public, inputs, want[public], have[public]), shown
    return None, shown


def marked(graph: Graph, over: Mapping[str, str]) -> Graph:
    """The graph with ``y_over_a`` for a result y that is written over a."""
    new = {name: f"{name}_over_{operand}" for name, operand in over.items()}
    nodes = tuple(replace(node, name=new.get(node.name, node.name), inputs=tuple(new.get(i, i) for i in node.inputs))
                  for node in graph.nodes)
    return Graph(graph.name, nodes, tuple((public, new.get(value, value)) for public, value in graph.outputs))
