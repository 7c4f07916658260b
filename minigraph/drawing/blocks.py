"""Find the layers: stretches of a graph's node list that are the same block over and over.

Nodes that read something are numbered in list order; inputs and constants are not, so that it does not matter where
they stand. Node i repeats node i + p when both have the same op, attributes and types, and each operand is either
the same distance away, or the very same value, or an input or constant in both. A run of such nodes is a block of p
nodes repeated; the last bit of care is for the first block, which reads the model's input where the others read the
block before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..ir import Node
from ..ops import Attrs

LEAVES = ("input", "const")
WINDOWS = (1, 2, 4, 8, 16, 32, 64)  # lengths of the snippets whose repetition suggests a period
SUGGESTIONS = 6  # periods tried for each window
LEAST = 4  # nodes that a fold must hide to be worth the reader's while


@dataclass(frozen=True)
class Run:
    """``count`` blocks of ``period`` nodes each, from position ``start`` in the list of nodes that read something."""

    start: int
    period: int
    count: int

    @property
    def stop(self) -> int:
        return self.start + self.period * self.count

    @property
    def saved(self) -> int:
        """How many nodes need not be drawn."""
        return self.period * (self.count - 1)


class Body:
    """The nodes that read something, as numbers: a key for each, and the positions of its operands (-1: a leaf)."""

    def __init__(self, nodes: list[Node]):
        self.nodes = [node for node in nodes if node.op not in LEAVES]
        place = {node.name: i for i, node in enumerate(self.nodes)}
        types = {node.name: node.type for node in nodes}
        numbers: dict[tuple, int] = {}
        self.reads = [tuple(place.get(name, -1) for name in node.inputs) for node in self.nodes]
        self.keys = np.fromiter((numbers.setdefault(key(node, types), len(numbers)) for node in self.nodes),
                                np.int64, len(self.nodes))
        # positions of the readers, once for each operand
        self.users: list[list[int]] = [[] for _ in self.nodes]
        for i, read in enumerate(self.reads):
            for a in read:
                if a >= 0:
                    self.users[a].append(i)

    def repeats(self, i: int, p: int) -> bool:
        """Does node i + p read as node i does, one block further on?"""
        return all(a == b or (a >= 0 and b - a == p) for a, b in zip(self.reads[i], self.reads[i + p]))

    def may_begin(self, i: int, p: int) -> bool:
        """The same for the first block: what it reads from before the repetition, the others read from a block."""
        return (self.keys[i] == self.keys[i + p]
                and all(a == b or (a >= 0 and b - a == p) or a < i < b + p
                        for a, b in zip(self.reads[i], self.reads[i + p])))

    def crossing(self, i: int, p: int) -> int:
        """How many values go from the block that starts at i into the next one."""
        return len({a for read in self.reads[i + p:i + 2 * p] for a in read if i <= a < i + p})

    def one_for_all(self, run: Run) -> bool:
        """May one block stand for all? Not where somebody outside tells them apart, as attention does q from k."""
        last = run.stop - run.period
        for q in range(run.start, last):
            twin = last + (q - run.start) % run.period
            for user in self.users[q]:
                inside = run.start <= user < run.stop
                if not inside and (run.count == 2 or twin not in self.reads[user]):
                    return False
        return True


def key(node: Node, types: dict) -> tuple:
    value = node.value
    if node.op == "random" and isinstance(value, Attrs):
        value = tuple(pair for pair in value if pair[0] != "site")  # every draw has its own
    return node.op, value, node.type, tuple(map(types.get, node.inputs))


def find_runs(body: Body) -> Iterator[Run]:
    """The runs, the one that hides most first; runs inside a block or beside it follow."""
    waiting = [(best_run(body, 0, len(body.keys)), 0, len(body.keys))]
    while waiting := [entry for entry in waiting if entry[0] is not None]:
        entry = max(waiting, key=lambda entry: (entry[0].saved, -entry[0].start))
        waiting.remove(entry)
        run, low, high = entry
        yield run
        inside_and_beside = (low, run.start), (run.start, run.start + run.period), (run.stop, high)
        waiting += [(best_run(body, *span), *span) for span in inside_and_beside]


def best_run(body: Body, low: int, high: int) -> Run | None:
    """The run between two positions that hides most; among equals the one with the shortest period."""
    keys = body.keys[low:high]
    hopes = []
    for p in suggest(keys):
        spans = [(start, stop) for start, stop in true_spans(keys[:-p] == keys[p:]) if stop - start >= p]
        if spans:
            hopes.append((max(stop - start for start, stop in spans), p, spans))
    best = None
    for hope, p, spans in sorted(hopes, key=lambda item: (-item[0], item[1])):
        if best is not None and best.saved >= hope:
            break  # what follows cannot hide more
        for start, stop in spans:
            run = run_among(body, low + start, low + stop, p)
            if run is not None and (best is None or run.saved > best.saved):
                best = run
    return best


def run_among(body: Body, low: int, high: int, p: int) -> Run | None:
    """The longest run of period p among positions whose keys already agree with those p further on."""
    same = np.fromiter((body.repeats(i, p) for i in range(low, high)), bool, high - low)
    start, stop = max(true_spans(same), key=lambda span: span[1] - span[0], default=(0, 0))
    if stop - start < p:
        return None
    first, stop = low + start, low + stop + p
    lowest = max(low, first - p)
    while first > lowest and body.may_begin(first - 1, p):
        first -= 1
    first = settle(body, first, p)
    # a block may start anywhere in the spare nodes: where the fewest values cross, a layer begins
    spare = max(0, (stop - first) % p)
    first = min(range(first, first + min(spare, 64) + 1), key=lambda i: body.crossing(i, p))
    first = settle(body, first, p)
    run = Run(first, p, (stop - first) // p)
    return run if run.count >= 2 and run.saved >= LEAST and body.one_for_all(run) else None


def settle(body: Body, first: int, p: int) -> int:
    """Start later if what the first block reads from outside does not stand for one value of the others each."""
    stands_for: dict[int, int] = {}
    for i in range(first, min(first + p, len(body.reads) - p)):
        for a, b in zip(body.reads[i], body.reads[i + p]):
            outside = a < first <= b and a != b
            fits = stands_for.setdefault(b, a) == a if outside else a == b or (a >= 0 and b - a == p)
            if not fits:
                return i + 1
    return first


def suggest(keys: np.ndarray) -> list[int]:
    """Periods worth trying: how far apart equal snippets of the list are, most frequent first."""
    periods: dict[int, None] = {}
    codes, length = keys.astype(np.uint64) + np.uint64(1), 1
    for window in WINDOWS:
        if window >= len(keys):
            break
        while length < window:  # doubling: the code of a snippet comes from those of its halves
            codes = codes[:-length] * np.uint64(0x9E3779B97F4A7C15) + codes[length:]
            codes ^= codes >> np.uint64(29)
            length *= 2
        order = np.argsort(codes, kind="stable")
        gaps = np.diff(order)[codes[order[1:]] == codes[order[:-1]]]
        counts = np.bincount(gaps, minlength=1)
        for gap in np.argsort(-counts, kind="stable")[:SUGGESTIONS]:
            if counts[gap]:
                periods[int(gap)] = None
    return list(periods)


def true_spans(mask: np.ndarray) -> list[tuple[int, int]]:
    """The maximal stretches of True, as (start, stop)."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], mask, [False])).astype(np.int8)))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist()))
