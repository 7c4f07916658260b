"""Random graphs with hostile values, and the question whether the passes keep every bit.

    minigraph fuzz --graphs 200000 --seed 0

Graph number i of seed s depends on (s, i) alone, so a failure is found again by ``--start i --graphs 1``. A failing
graph is printed with its inputs, and again after everything that the failure does not need has been taken away.
"""

from __future__ import annotations

import io
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from . import formats, orderless
from .command.options import arg, positive, read_options, whole
from .errors import CheckFailed, MinigraphError
from .ir import Graph, Node, defs
from .ops import OPS, Kind
from .passes import PASSES
from .passes.axes import layout_weight
from .passes.rules import RULES
from .pipeline import Stage, follow, optimize, replacements, run_pass
from .random_graphs import sample
from .rebuild import ORIGINS
from .run_numpy import VIEWS, compile
from .text import constants, parse, print_graph
from .types import DTYPES, TOKEN, Type, same_bits

# ---- what must hold -----------------------------------------------------------------------------------------------

RUN_ERRORS = (ValueError, IndexError, ZeroDivisionError, OverflowError, MemoryError, CheckFailed)
# Of floats, these depend on the order in which they meet their operands, and that on strides: sums round elsewhere,
# and max and min find one zero or the other first.
LOOSE = ("sum", "mean", "prod", "cumsum", "max", "min", "matmul", "conv2d", "packed_matmul", "sparse_matmul", "block_matmul")
TERMS = {"sparse_matmul": 2, "block_matmul": 2}  # so many operands are terms, and the others say which belong together


class Finding(NamedTuple):
    """Something that should not be: ``kind`` is bits, bound, or anything else in one word."""

    kind: str
    where: str
    sentence: str

    def __str__(self):
        return f"{self.where}: {self.kind}: {self.sentence}"


def compute(node: Node, values: dict[str, np.ndarray], seed: int = 0) -> np.ndarray:
    if node.op == "const":
        return node.value.array
    arrays = [seed] if node.op == "random" else [values[name] for name in node.inputs]
    return np.asarray(OPS[node.op].numpy(*arrays, **dict(node.value or ())))


def evaluate(graph: Graph, inputs: dict[str, np.ndarray], seed: int = 0,
             compute: Callable = compute) -> tuple[dict[str, np.ndarray], str, Exception | None]:
    """Every value by name, what was printed, and the error that stopped the walk: an interpreter of its own."""
    values: dict[str, np.ndarray] = dict(inputs)
    printed = io.StringIO()
    with np.errstate(all="ignore"), redirect_stdout(printed):
        for node in graph.nodes:
            if node.op != "input":
                try:
                    values[node.name] = compute(node, values, seed)
                except RUN_ERRORS as error:
                    return values, printed.getvalue(), error
    return values, printed.getvalue(), None


def is_loose(node: Node) -> bool:
    return node.op in LOOSE and node.type.domain == "float"


def rounding_bound(node: Node, arrays: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """A reference in higher precision, and ``c n u sum|terms|``: how far a result in any order may be from it.

    The bound is infinite where the sum may overflow on the way: then anything may come out.
    """
    if node.op == "packed_matmul":
        return packed_bound(node, *arrays)
    kind = DTYPES[node.type.dtype]
    unit, top = float(np.finfo(kind).eps) / 2, float(np.finfo(kind).max)
    count = TERMS.get(node.op, len(arrays))
    wide, rest = [np.asarray(array, np.longdouble) for array in arrays[:count]], arrays[count:]
    attrs, function = dict(node.value or ()), OPS[node.op].numpy
    exact = np.asarray(function(*wide, *rest, **attrs))
    terms = count_terms(node, arrays)
    if node.op in ("max", "min"):
        bound = np.zeros(exact.shape)
    elif node.op == "prod":  # relative, and only while no partial product can leave the normal numbers
        size = np.abs(wide[0])
        grown = function(np.maximum(size, 1), **attrs)
        shrunk = function(np.where(size > 0, np.minimum(size, 1), 1), **attrs)
        bound = 4 * terms * unit * np.abs(exact)
        bound = np.where((grown > top / 2) | (shrunk < 4 * np.finfo(kind).tiny), np.inf, bound)
    else:
        spread = np.asarray(function(*map(np.abs, wide), *rest, **attrs))
        scale = terms if node.op == "mean" else 1
        bound = 4 * (terms + 1) * (unit * spread + np.finfo(kind).smallest_subnormal)  # products may underflow, too
        bound = np.where(np.isfinite(spread) & (spread * scale > top / 2), np.inf, bound)
    return exact, bound


def packed_bound(node: Node, x: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``rounding_bound`` of a product with packed weights. Generated code sums whole numbers times x, and what it
    multiplies by offsets, apart, so |scale * q| + |offset| stand for |w|. On the way it has x * 2^-24, where the
    smallest numbers underflow, and sums of x * 2^7, where the largest may overflow."""
    kind, format = np.finfo(np.float32), node.value.format
    wide = np.asarray(x, np.longdouble)
    rows, parts = (np.asarray(one(weights, format), np.longdouble) for one in (formats.unpack, formats.sizes))
    spread = np.matmul(np.abs(wide), parts.T)
    bound = 4 * (x.shape[-1] + 1) * (float(kind.eps) / 2 * spread + float(kind.smallest_subnormal))
    bound = bound + float(kind.smallest_subnormal) * 2.0**24 * parts.sum(axis=-1)
    largest = np.maximum(spread, 2**7 * np.abs(wide).sum(axis=-1, keepdims=True))
    return np.matmul(wide, rows.T), np.where(np.isfinite(spread) & (largest > float(kind.max) / 2), np.inf, bound)


def count_terms(node: Node, arrays: list[np.ndarray]) -> int:
    """How many terms one element of the result has."""
    if node.op == "cumsum":
        return arrays[0].shape[node.value.axis]
    if node.op == "block_matmul":  # of the rows with the most blocks
        _, values, _, starts = arrays
        return int(np.diff(starts).max(initial=0)) * values.shape[1]
    if OPS[node.op].kind is Kind.CONTRACTION:
        types = tuple(Type(node.type.dtype, array.shape) for array in arrays)
        return OPS[node.op].flops(types, node.value, node.type) // (2 * max(1, node.type.size))
    return arrays[0].size // max(1, node.type.size)


def within_ulps(ulps: int, a: np.ndarray, b: np.ndarray) -> bool:
    with np.errstate(all="ignore"):
        near = np.abs(a - b) <= ulps * np.spacing(np.maximum(np.abs(a), np.abs(b)))
        return bool((near | (a == b) | (np.isnan(a) & np.isnan(b))).all())


def agree(node: Node, arrays: list[np.ndarray], result: np.ndarray, other: np.ndarray) -> bool:
    """Are both what ``node`` may give for these operands, however they lie in memory? Mostly: the same bits."""
    if same_bits(result, other) or result.dtype != other.dtype or result.shape != other.shape:
        return same_bits(result, other)
    if is_loose(node):
        return within_bound(node, arrays, result) and within_bound(node, arrays, other)
    return node.type.domain == "float" and OPS[node.op].ulp > 0 and within_ulps(OPS[node.op].ulp, result, other)


def within_bound(node: Node, arrays: list[np.ndarray], result: np.ndarray) -> bool:
    """Is ``result`` a rounding of what ``node`` means for these operands?"""
    with np.errstate(all="ignore"):
        exact, bound = rounding_bound(node, arrays)
        result = np.asarray(result, np.longdouble)
        finite = all(np.isfinite(array).all() for array in arrays)
        if not finite:  # an infinity or a NaN somewhere: an overflow elsewhere may meet it
            bound = np.where(np.isnan(bound), np.inf, bound)
        near = np.abs(result - exact) <= bound
        return bool((near | (bound == np.inf) | (result == exact) | (np.isnan(result) & np.isnan(exact))).all())


def launches(stage: Stage, values: dict[str, np.ndarray], seed: int = 0, compute: Callable = compute) -> Iterator[Finding]:
    """Compare a pass's result value by value: each changed node on the values that its operands had before.

    A name that survives means what it meant, and a name that is gone means what stands for it, so nothing composes:
    see ``agree`` for what counts as equal.
    """
    old, new, moved = defs(stage.before), defs(stage.after), replacements(stage.report)
    fed = dict(values)
    with np.errstate(all="ignore"), redirect_stdout(io.StringIO()):
        for node in stage.after.nodes:
            was = old.get(node.name)
            if was is not None and (was.op, was.inputs, was.value) == (node.op, node.inputs, node.value):
                continue  # the same equation
            if OPS[node.op].kind is Kind.EFFECT or (was is not None and node.name not in values):
                continue  # an effect has no value; the other was not reached before an error
            folded = was is not None and node.op == "const" and was.op != "const" and was.inputs and all(
                name in new and new[name].op == "const" for name in was.inputs)
            try:
                if folded:
                    yield from check_fold(stage.name, was, node, new, values)
                    continue
                result = compute(node, fed, seed)
            except (*RUN_ERRORS, KeyError) as error:
                # a new value may stand for one that was not reached before an error
                if was is not None or not (isinstance(error, KeyError) or len(values) < len(old)):
                    yield Finding("error", stage.name, f"'{node.name}' cannot be computed any more: {error!r}")
                continue
            if was is not None and not same_bits(result, values[node.name]) and not (
                    was.op == node.op and agree(was, [values[name] for name in was.inputs], result, values[node.name])):
                yield Finding("bits", stage.name, f"'{node.name}' was {values[node.name]!r} and is {result!r}")
            fed.setdefault(node.name, result)
    for name in old:
        now = follow(moved, name)
        if name not in new and now in new and name in values and now in fed and not same_bits(fed[now], values[name]):
            yield Finding("bits", stage.name, f"'{name}' was {values[name]!r}; '{now}', which stands for it, is {fed[now]!r}")
    for (public, before), (_, after) in zip(stage.before.outputs, stage.after.outputs):
        if before in values and after in fed and not same_bits(values[before], fed[after]):
            yield Finding("bits", stage.name, f"output '{public}' was {values[before]!r} and is {fed[after]!r}")


def check_fold(name: str, was: Node, node: Node, new: dict[str, Node], values: dict) -> Iterator[Finding]:
    """A folded constant keeps its equation, on the constants of the new graph and on the values of the old one."""
    result, consts = node.value.array, {operand: new[operand].value.array for operand in was.inputs}
    again = compute(was, consts)
    if not same_bits(result, again):
        yield Finding("bits", name, f"'{node.name}' is {result!r}, but its equation gives {again!r}")
    before = values.get(node.name)
    if before is None or not all(operand in values and same_bits(array, values[operand]) for operand, array in consts.items()):
        return  # not reached before an error, or an operand is itself a folded sum
    arrays = [values[operand] for operand in was.inputs]
    if not agree(was, arrays, result, before):
        kind = "bound" if is_loose(was) else "bits"
        yield Finding(kind, name, f"'{node.name}' was {before!r} and is folded to {result!r}")


def tainted(graph: Graph) -> set[str]:
    """The values whose bits may depend on strides, which folding changes: for these no bound is known in whole graphs.

    They are what depends on a float reduction or contraction, or on a transcendental function of anything that was a
    view: NumPy's vector loops for contiguous arrays differ by an ulp from its loops for others.
    """
    found: set[str] = set()
    viewed: set[str] = set()
    for node in graph.nodes:
        if node.op in VIEWS or not viewed.isdisjoint(node.inputs):
            viewed.add(node.name)
        if is_loose(node) or not found.isdisjoint(node.inputs) or (OPS[node.op].ulp and node.name in viewed):
            found.add(node.name)
    return found


def weight(graph: Graph) -> int:
    """What a rewrite must lower: the costs of the operations."""
    return sum(OPS[node.op].cost for node in graph.nodes if node.op not in ("input", "const"))


def check_origins(name: str, before: Graph, after: Graph) -> Iterator[Finding]:
    """No source line is invented, none is lost from a value that stays, and every new value has one."""
    old = defs(before)
    known = {line for node in before.nodes for line in node.origin}
    for node in after.nodes:
        if not known.issuperset(node.origin):
            yield Finding("origin", name, f"'{node.name}' stands for a line that is not in the graph: {node.origin}")
        was = old.get(node.name)
        if was is not None and len(was.origin) < ORIGINS and not set(was.origin) <= set(node.origin):
            yield Finding("origin", name, f"'{node.name}' forgot {was.origin} for {node.origin}")
        if known and not node.origin and (was is None or was.origin):
            yield Finding("origin", name, f"'{node.name}' has no source line")


def check_pass(function: Callable, graph: Graph, values: dict[str, np.ndarray], seed: int = 0) -> Iterator[Finding]:
    """Everything that one pass must keep on one graph; ``values`` is what ``evaluate`` says of it."""
    name = getattr(function, "__name__", "pass")
    try:
        stage = run_pass(name, function, graph)
        again = run_pass(name, function, stage.after)
    except MinigraphError as error:
        yield Finding("contract", name, str(error))
        return
    except Exception as error:  # whatever a pass raises is a finding
        yield Finding("crash", name, repr(error))
        return
    found = [*launches(stage, values, seed)]
    if found:  # NumPy's order of summation and its vector loops may explain it; with neither, a mistake still shows
        inputs = {node.name: values[node.name] for node in graph.inputs}
        found = [*launches(stage, evaluate(graph, inputs, seed, orderless.compute)[0], seed, orderless.compute)]
    yield from found
    yield from check_origins(name, graph, stage.after)
    if again.report or again.after != stage.after:
        yield Finding("idempotence", name, f"a second run changes the graph again: {again.report[:2]}")
    moved, now = layout_weight(graph), layout_weight(stage.after)
    if now[0] > moved[0]:
        yield Finding("weight", name, f"transposes moved {moved[0]} bytes and move {now[0]}")
    if weight(stage.after) > weight(graph) and now >= moved:
        yield Finding("weight", name, f"the weight rises from {weight(graph)} to {weight(stage.after)}")


@dataclass
class Tally:
    """What a run has seen so far."""

    graphs: int = 0
    nodes: int = 0
    stopped: int = 0  # graphs that end in an error, optimized or not
    rounded: int = 0  # graphs that differ after a float reduction, each launch within its bound
    rules: Counter = field(default_factory=Counter)
    faults: Counter = field(default_factory=Counter)

    def add(self, other: Tally) -> None:
        self.graphs, self.nodes = self.graphs + other.graphs, self.nodes + other.nodes
        self.stopped, self.rounded = self.stopped + other.stopped, self.rounded + other.rounded
        self.rules.update(other.rules)
        self.faults.update(other.faults)

    def __str__(self):
        other = sum(self.faults.values()) - self.faults["bits"] - self.faults["bound"]
        return (f"{self.faults['bits']} bit differences, {self.faults['bound']} beyond the rounding bound,"
                f" {other} other faults")


def check_graph(graph: Graph, inputs: dict[str, np.ndarray], tally: Tally | None = None, seed: int = 0) -> list[Finding]:
    """Every promise on one graph: text, executor, each pass alone, and the pipeline. Empty where all hold."""
    tally = Tally() if tally is None else tally
    findings: list[Finding] = []
    if parse(print_graph(graph), constants(graph)) != graph:
        findings.append(Finding("text", "parse", "what is printed reads back as another graph"))
    values, printed, error = evaluate(graph, inputs, seed)
    for function in PASSES.values():
        findings += check_pass(function, graph, values, seed)
    try:
        optimized = optimize(graph)
    except MinigraphError as problem:
        return [*findings, Finding("contract", "optimize", str(problem))]
    for stage in optimized.history:
        if stage.before is not graph and stage.report:
            findings += launches(stage, evaluate(stage.before, inputs, seed)[0], seed)
        tally.rules.update(step.rule for step in stage.report)
    if optimized.history[-1].report:
        findings.append(Finding("rounds", "optimize", "the last round still changes the graph"))
    findings += compare_runs(graph, optimized.graph, inputs, (values, printed, error), tally, seed)
    tally.graphs += 1
    tally.nodes += len(graph)
    return findings


def run_outputs(graph: Graph, inputs, seed: int):
    """What the executor gives: outputs (None after an error), printed text, the error."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        try:
            return compile(graph)(seed=seed, **inputs), printed.getvalue(), None
        except RUN_ERRORS as error:
            return None, printed.getvalue(), error


def compare_runs(graph: Graph, optimized: Graph, inputs, reference, tally: Tally, seed: int) -> Iterator[Finding]:
    """Both graphs in the executor, against the reference's values; effects happen in both, in the same order."""
    values, printed, error = reference
    loose = tainted(graph)
    tally.stopped += error is not None
    differs = False
    for where, one in (("executor", graph), ("optimize", optimized)):
        outputs, text, problem = run_outputs(one, inputs, seed)
        if error is not None:  # an operation that nobody needs may go, with its error; a check may not
            if problem is None and (isinstance(error, CheckFailed) or one is graph):
                yield Finding("error", where, f"the error is gone: {error}")
            continue
        if problem is not None:
            yield Finding("error", where, f"an error is new: {problem!r}")
            continue
        wrong = [public for public, value in graph.outputs if not same_bits(outputs[public], values[value])]
        exact = [public for public in wrong if dict(graph.outputs)[public] not in loose]
        if exact or (wrong and one is graph):
            yield Finding("bits", where, f"output '{(exact or wrong)[0]}' differs from the reference")
        if text != printed and not loose:
            yield Finding("effects", where, f"it prints {text!r} and should print {printed!r}")
        differs = differs or bool(wrong)
    tally.rounded += differs


# ---- smaller counterexamples ------------------------------------------------------------------------------------


def shrink(graph: Graph, inputs: dict[str, np.ndarray], fails: Callable[[Graph, dict], bool]) -> tuple[Graph, dict]:
    """A smaller graph that still fails: outputs dropped, nodes dropped, computed nodes turned into inputs."""
    found = True
    while found:
        found = False
        for smaller in candidates(graph, inputs):
            if fails(*smaller):
                (graph, inputs), found = smaller, True
                break
    return graph, inputs


def candidates(graph: Graph, inputs: dict[str, np.ndarray]) -> Iterator[tuple[Graph, dict]]:
    for i in range(len(graph.outputs)):
        yield replace(graph, outputs=graph.outputs[:i] + graph.outputs[i + 1:]), inputs
    read = {name for node in graph.nodes for name in node.inputs} | {value for _, value in graph.outputs}
    for node in reversed(graph.nodes):
        if node.name not in read:
            yield without(graph, node, None), {name: value for name, value in inputs.items() if name != node.name}
        elif OPS[node.op].kind is Kind.EFFECT:  # the next effect takes the token before
            yield without(graph, node, node.inputs[int(OPS[node.op].arity[0]):]), inputs
    try:
        values = evaluate(graph, inputs)[0]
    except Exception:  # the very thing that is being shrunk
        values = {}
    for node in reversed(graph.nodes):
        if node.op != "input" and node.type.dtype != TOKEN and node.name in values:
            made = Node(node.name, "input", (), None, node.type, node.origin)
            rest = tuple(other for other in graph.nodes if other.name != node.name)
            yield replace(graph, nodes=(made, *rest)), {**inputs, node.name: values[node.name]}


def without(graph: Graph, gone: Node, instead: tuple[str, ...] | None) -> Graph:
    def mend(node: Node) -> Node:
        if gone.name not in node.inputs:
            return node
        return replace(node, inputs=node.inputs[:-1] + instead)

    return replace(graph, nodes=tuple(mend(node) for node in graph.nodes if node.name != gone.name))


def describe(seed: int, index: int, findings: list[Finding]) -> str:
    """The failure, with the graph as text, and a smaller one that fails in the same way."""
    graph, inputs = sample(seed, index)
    first = findings[0]

    def fails(graph, inputs) -> bool:
        try:
            return any((one.kind, one.where) == (first.kind, first.where) for one in check_graph(graph, inputs))
        except Exception as error:
            return first.kind == "crash" and first.where == type(error).__name__

    small, small_inputs = shrink(graph, inputs, fails)
    lines = [f"graph {index} of seed {seed}:", *(f"  {one}" for one in findings[:5])]
    lines += [print_graph(graph), "smaller:", print_graph(small)]
    lines += [f"  {name} = {array!r}" for name, array in small_inputs.items()]
    return "\n".join(lines)


# ---- the command ------------------------------------------------------------------------------------------------

CHUNK = 250  # graphs between two progress lines of one worker


def run_chunk(seed: int, indices: range) -> tuple[Tally, list[str]]:
    tally, reports = Tally(), []
    for index in indices:
        try:
            findings = check_graph(*sample(seed, index), tally)
        except Exception as error:  # a crash outside of any pass
            findings = [Finding("crash", type(error).__name__, str(error))]
        tally.faults.update(one.kind for one in findings)
        if findings and len(reports) < 3:
            reports.append(describe(seed, index, findings))
    return tally, reports


def fuzz(graphs: int, seed: int = 0, start: int = 0, jobs: int = 1, say: Callable[[str], object] = print) -> Tally:
    """Check ``graphs`` random graphs; each failure and the progress are said as they come."""
    chunks = [range(i, min(i + CHUNK, start + graphs)) for i in range(start, start + graphs, CHUNK)]
    tally, began, told = Tally(), time.monotonic(), 0.0
    pool = ProcessPoolExecutor(jobs) if jobs > 1 else None
    results = pool.map(run_chunk, [seed] * len(chunks), chunks) if pool else (run_chunk(seed, chunk) for chunk in chunks)
    for part, reports in results:
        tally.add(part)
        for report in reports:
            say(report)
        seconds = time.monotonic() - began
        if seconds - told > 5:
            told = seconds
            say(f"{tally.graphs:,} of {graphs:,} graphs, {tally.graphs / seconds:.0f} a second: {tally}")
    if pool:
        pool.shutdown()
    return tally


def how_many(graphs: int) -> tuple:
    """The arguments of every kind of fuzzing; ``graphs`` by default."""
    return (
        arg("--graphs", type=positive, default=graphs, metavar="N", help=f"how many (default: {graphs:,})"),
        arg("--seed", type=whole, default=0, metavar="N", help="which random graphs (default: 0)"),
        arg("--start", type=whole, default=0, metavar="N", help="the first graph's number (default: 0)"),
        arg("--jobs", type=positive, default=1, metavar="N", help="processes (default: 1)"),
    )


ARGUMENTS = (*how_many(10_000), arg("--backend", metavar="NAME", help="numpy, c or cuda: the promises of fusion, plans and that back end"
             " instead; `minigraph fuzz --backend c --help` has its options"))  # `cli` looks for it: it is never read here


def main(arguments: list[str]) -> int:
    """The command; its exit status is 1 where a promise does not hold. Raises UsageError."""
    options = read_options("fuzz", "random graphs against the promises of the passes", ARGUMENTS, arguments)
    tally = fuzz(options.graphs, options.seed, options.start, options.jobs, lambda line: print(line, flush=True))
    unused = [rule.name for rule in RULES if not rule.flags and rule.name not in tally.rules]
    exact = sum(not rule.flags for rule in RULES)
    print(f"{tally.graphs} graphs, seed {options.seed}: {tally}.")
    print(f"{tally.nodes:,} nodes; {tally.rounded} graphs differ after a float reduction, each launch within its bound;"
          f" {tally.stopped} end in an error; {exact - len(unused)} of {exact} exact rules fired"
          + (f", not {', '.join(unused)}." if 0 < len(unused) <= 8 else "."))
    return 1 if tally.faults else 0


if __name__ == "__main__":
    sys.exit("Start it as `minigraph fuzz`: the command line is above this file.")
