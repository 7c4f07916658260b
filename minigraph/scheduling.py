"""Scheduling: the order of the nodes that needs the least memory.

Any topological order computes the same values, but how many bytes are alive at the worst moment differs. Finding the
best order is NP-complete (Sethi, "Complete register allocation problems", 1975); for a few dozen nodes it can be found.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import NamedTuple

from .ir import Graph
from .ops import OPS, Kind
from .run_numpy import memory_roots, peak_bytes

EXACT = 40  # nodes up to which the best order is searched for
STATES = 100_000  # sets of nodes that a search may look at


class Work(NamedTuple):
    """A graph as bits: node i is bit i."""

    names: list[str]
    size: list[int]  # bytes of the memory that the node brings to life; a view brings none
    needs: list[int]  # the nodes that must have run before
    reads: list[tuple[int, ...]]  # the nodes whose memory it reads
    readers: list[int]  # the nodes that read its memory; one more bit, that of no node, where an output lies in it


def reorder(graph: Graph) -> Graph:
    """The same graph in an order with a lower peak, or the graph itself if none is found.

    The best order there is for up to 40 nodes that compute; for more, the better of the given order and of a greedy
    one. Effects and random draws keep their order among themselves. Peaks as ``run_numpy.peak_bytes`` counts them.
    """
    work = as_bits(graph)
    order = best_order(work) if len(work.names) <= EXACT else greedy_order(work)
    if order is None:
        order = greedy_order(work)
    place = {work.names[i]: number for number, i in enumerate(order)}
    given = [node for node in graph.nodes if node.name not in place]
    nodes = (*given, *sorted((node for node in graph.nodes if node.name in place), key=lambda node: place[node.name]))
    better = Graph(graph.name, nodes, graph.outputs)
    return better if peak_bytes(better) < peak_bytes(graph) else graph


def as_bits(graph: Graph) -> Work:
    root = memory_roots(graph)
    computed = [node for node in graph.nodes if OPS[node.op].kind not in (Kind.INPUT, Kind.CONST)]
    number = {node.name: i for i, node in enumerate(computed)}
    size, needs, reads, readers = [], [], [], [0] * len(computed)
    before = None  # the last node whose order counts
    for i, node in enumerate(computed):
        own = root[node.name] == node.name
        size.append(node.type.nbytes if own else 0)
        must = {number[name] for name in node.inputs if name in number}
        memory = {number[root[name]] for name in (*node.inputs, node.name) if root[name] in number} - {i}
        if OPS[node.op].kind in (Kind.EFFECT, Kind.RANDOM):
            must |= {before} - {None}
            before = i
        needs.append(sum(1 << j for j in must))
        reads.append(tuple(sorted(memory)))
        for j in memory:
            readers[j] |= 1 << i
    for _, value in graph.outputs:
        if root[value] in number:
            readers[number[root[value]]] |= 1 << len(computed)
    return Work([node.name for node in computed], size, needs, reads, readers)


def freed(work: Work, i: int, done: int) -> int:
    """The bytes that die when node i runs: memory of which it is the last reader, or its own that nobody reads."""
    left = ~(done | 1 << i)
    size, readers = work.size, work.readers
    return sum([size[j] for j in work.reads[i] if not readers[j] & left]) + (0 if readers[i] else size[i])


def best_order(work: Work) -> list[int] | None:
    """The order with the lowest peak; None where there are too many sets to look at.

    Two searches take turns, from the start and from the end: where one drowns in sets, the other often sees few.
    """
    searches = explore(work, back=False), explore(work, back=True)
    for _ in range(STATES):
        for search in searches:
            order = next(search)
            if order is not None:
                return order
    return None


def explore(work: Work, back: bool) -> Iterator[list[int] | None]:
    """Dijkstra's search over the sets of nodes that have run (backwards: that are taken off the end of an order), where a
    path is as long as its highest point. Yields None after each set, and then the order.

    What is alive depends on the set alone, so each set is visited once. A node that fits below the peak so far and
    leaves no more bytes than it found is taken at once: whatever comes later is only easier.
    """
    count = len(work.names)
    everything, output = (1 << count) - 1, 1 << count
    after = [sum(1 << k for k in range(count) if work.needs[k] >> i & 1) for i in range(count)]
    nodes = list(zip(range(count), work.size, after if back else work.needs))
    alive = sum(size for size, readers in zip(work.size, work.readers) if readers & output) if back else 0
    least = max((size + sum(work.size[j] for j in work.reads[i]) for i, size, _ in nodes), default=0)  # no order has less
    queue = [(least, 0, 0, alive)]  # peak, minus the nodes taken (deep first), the set of them, bytes alive
    came = {0: (least, 0, 0)}  # set -> its peak, the set before, the node between
    while queue[0][2] != everything:
        peak, depth, taken, alive = heapq.heappop(queue)
        if peak > came[taken][0]:
            continue
        moves = []
        for i, size, first in nodes:
            if taken >> i & 1 or first & ~taken:
                continue
            if back:
                top = alive + freed(work, i, everything ^ taken ^ 1 << i)
                left = top - size
            else:
                top = alive + size
                left = top - freed(work, i, taken)
            moves.append((top, left, i))
            if left <= alive and top <= peak:
                moves = moves[-1:]
                break
        for top, left, i in moves:
            new, top = taken | 1 << i, max(peak, top)
            if new not in came or top < came[new][0]:
                came[new] = (top, taken, i)
                heapq.heappush(queue, (top, depth - 1, new, left))
        yield None
    order, taken = [], everything
    while taken:
        _, taken, i = came[taken]
        order.append(i)
    yield order if back else order[::-1]


def greedy_order(work: Work) -> list[int]:
    """Of the nodes that are ready, the one that leaves the fewest bytes alive; among equals the first one written."""
    waiting = [need.bit_count() for need in work.needs]
    after: list[list[int]] = [[] for _ in work.names]
    for i, need in enumerate(work.needs):
        for j in bits(need):
            after[j].append(i)
    left = [readers.bit_count() for readers in work.readers]
    order: list[int] = []

    def change(i: int) -> int:
        return work.size[i] - sum(work.size[j] for j in work.reads[i] if left[j] == 1)

    ready = [(change(i), i) for i, count in enumerate(waiting) if not count]
    heapq.heapify(ready)
    while ready:
        said, i = heapq.heappop(ready)
        if change(i) != said:  # a reader that has run since may have left the last read to this one
            heapq.heappush(ready, (change(i), i))
            continue
        order.append(i)
        for j in work.reads[i]:
            left[j] -= 1
        for k in after[i]:
            waiting[k] -= 1
            if not waiting[k]:
                heapq.heappush(ready, (change(k), k))
    return order


def bits(mask: int) -> list[int]:
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found
