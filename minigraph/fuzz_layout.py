"""Random graphs with many transposes, and whether ``layout`` keeps what it promises.

    python -m minigraph.fuzz_layout --graphs 5000 --seed 0

Every graph goes through ``layout`` alone and through the pipeline with it. Graph number i of seed s depends on (s, i)
alone; a failing graph is printed, and again after everything that the failure does not need has been taken away.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from . import orderless
from .command.options import positive, whole
from .errors import MinigraphError
from .fuzz import Finding, check_pass, evaluate, is_loose, shrink, within_bound
from .ir import Graph, defs
from .ops import OPS
from .passes import layout
from .passes.axes import layout_weight
from .pipeline import follow, optimize, replacements
from .random_graphs import woven_sample
from .rebuild import Result
from .text import print_graph
from .types import same_bits

Arrays = dict[str, np.ndarray]
PIPELINE = ("fold", "simplify", "cse", "layout", "dce")


@dataclass
class Tally:
    """What a run has seen."""

    graphs: int = 0
    changed: int = 0  # graphs in which layout has something to do
    exact: int = 0  # of those: no float reduction or contraction meets other strides, so every bit is compared
    rounded: int = 0  # of those: results differ, each launch within its rounding bound
    stopped: int = 0  # graphs that end in an error, before and after
    bytes: list[int] = field(default_factory=lambda: [0, 0])  # moved by transposes, before and after
    transposes: list[int] = field(default_factory=lambda: [0, 0])
    rules: Counter = field(default_factory=Counter)
    faults: Counter = field(default_factory=Counter)

    def __str__(self):
        (before, after), (many, few) = self.bytes, self.transposes
        rules = ", ".join(f"{rule} {count:,}" for rule, count in sorted(self.rules.items()))
        return (f"{self.graphs:,} graphs: {sum(self.faults.values())} faults. layout changed {self.changed:,}:"
                f" {self.exact:,} compared in every bit, {self.rounded:,} rounded otherwise, each launch within its bound;"
                f" {self.stopped:,} end in an error.\nTransposes that are needed: {many:,} before, {few:,} after;"
                f" bytes that they move: {before:,} before, {after:,} after.\nSteps: {rules}.")


def check_layout(graph: Graph, inputs: Arrays, tally: Tally | None = None) -> list[Finding]:
    """Every promise of ``layout`` on one graph; empty where all hold."""
    tally = Tally() if tally is None else tally
    values, _, error = evaluate(graph, inputs)
    findings = [*check_pass(layout, graph, values)]
    try:
        result, optimized = layout(graph), optimize(graph, passes=PIPELINE)
    except MinigraphError as problem:
        return [*findings, Finding("contract", "optimize", str(problem))]
    weights = [layout_weight(graph), layout_weight(result.graph)]
    if result.report and weights[1] >= weights[0]:
        findings.append(Finding("weight", "layout", f"it changes the graph and lowers no weight: {weights}"))
    if optimized.history[-len(PIPELINE):][PIPELINE.index("layout")].report:
        findings.append(Finding("rounds", "optimize", "layout still has something to do in the last round"))
    if error is None:
        findings += compare(graph, inputs, result, values, tally)
        for stage in optimized.history:  # what fold and the others do to bits, their own tests say
            if stage.name == "layout" and stage.report:
                findings += same_meaning("optimize", stage.before, stage.after, inputs)
    tally.graphs += 1
    tally.changed += bool(result.report)
    tally.stopped += error is not None
    for side, weight in enumerate(weights):
        tally.bytes[side] += weight[0]
        tally.transposes[side] += weight[1]
    tally.rules.update(step.rule for step in result.report)
    return findings


def compare(graph: Graph, inputs: Arrays, result: Result, values: Arrays, tally: Tally) -> Iterator[Finding]:
    """The same bits, or, where a float sum met other strides, each launch within its rounding bound."""
    now, _, error = evaluate(result.graph, inputs)
    if error is not None:
        yield Finding("error", "layout", f"an error is new: {error!r}")
        return
    loose = restrided(graph, result, values, now)
    pairs = [(*old, new) for old, (_, new) in zip(graph.outputs, result.graph.outputs)]
    differ = [(public, old) for public, old, new in pairs if not same_bits(values[old], now[new])]
    for public, old in differ:
        if old not in loose:
            yield Finding("bits", "layout", f"output '{public}' differs, and no float sum met other strides")
    if result.report:
        tally.exact += all(old not in loose for _, old, _ in pairs)
        tally.rounded += bool(differ)
    for node in result.graph.nodes:
        if is_loose(node) and not within_bound(node, [now[name] for name in node.inputs], now[node.name]):
            yield Finding("bound", "layout", f"'{node.name}' is beyond its rounding bound")
    yield from same_meaning("layout", graph, result.graph, inputs)


def restrided(graph: Graph, result: Result, old: Arrays, new: Arrays) -> set[str]:
    """The values that depend on a float sum, or a transcendental function, whose operands have other strides now."""
    nodes, moved, found = defs(result.graph), replacements(result.report), set()
    for node in graph.nodes:
        if not found.isdisjoint(node.inputs):
            found.add(node.name)
        elif is_loose(node) or OPS[node.op].ulp:
            now, operands = nodes.get(node.name), tuple(follow(moved, name) for name in node.inputs)
            same = now is not None and (now.op, now.inputs, now.value) == (node.op, operands, node.value) and all(
                old[before].strides == new[after].strides for before, after in zip(node.inputs, operands))
            if not same:
                found.add(node.name)
    return found


def same_meaning(where: str, before: Graph, after: Graph, inputs: Arrays) -> Iterator[Finding]:
    """Where sums do not depend on the order of their terms, every bit of every output must be the same."""
    values, now = (evaluate(graph, inputs, compute=orderless.compute)[0] for graph in (before, after))
    for (public, old), (_, new) in zip(before.outputs, after.outputs):
        if new not in now or not same_bits(values[old], now[new]):
            yield Finding("bits", where, f"output '{public}' differs even where sums are taken in one order")


def describe(index: int, seed: int, findings: list[Finding]) -> str:
    """The failure as text, with a smaller graph that fails in the same way."""
    graph, inputs = woven_sample(seed, index)
    kinds = {(one.kind, one.where) for one in findings[:1]}

    def fails(*one) -> bool:
        return any((finding.kind, finding.where) in kinds for finding in check_layout(*one))

    small, small_inputs = shrink(graph, inputs, fails)
    lines = [f"graph {index} of seed {seed}:", *(f"  {one}" for one in findings[:5]), print_graph(graph), "smaller:",
             print_graph(small), *(f"  {name} = {array!r}" for name, array in small_inputs.items())]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """The command; its exit status is 1 where a promise does not hold."""
    parser = argparse.ArgumentParser(prog="python -m minigraph.fuzz_layout", description="layout on random graphs.")
    parser.add_argument("--graphs", type=positive, default=5_000, help="how many (default 5,000)")
    parser.add_argument("--seed", type=whole, default=0, help="which random graphs (default 0)")
    parser.add_argument("--start", type=whole, default=0, help="the first graph's number (default 0)")
    options = parser.parse_args(arguments)
    tally = Tally()
    for index in range(options.start, options.start + options.graphs):
        findings = check_layout(*woven_sample(options.seed, index), tally)
        tally.faults.update(one.kind for one in findings)
        if findings and sum(tally.faults.values()) - len(findings) < 3:
            print(describe(index, options.seed, findings), flush=True)
    print(tally)
    return 1 if tally.faults else 0


if __name__ == "__main__":
    sys.exit(main())
