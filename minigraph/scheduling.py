"""Scheduling: the order of the nodes that needs the least memory.

Any topological order computes the same values, but how many bytes are alive at the worst moment differs. Finding the
best order is NP-complete (Sethi, "Complete register allocation problems", 1975); for a few dozen nodes it can be found.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

from .ir import Graph
from .ops import OPS, Kind
from .run_numpy import memory_roots, peak_bytes

EXACT = 40  # nodes up to which the best order is searched for
STATES = 300_000  # sets of executed nodes that the search may look at


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


def at_once(work: Work) -> list[int]:
    """For each node the other nodes whose memory must be alive when it runs, if they have run: somebody reads it who
    cannot run before, or it holds an output."""
    later = [1 << i for i in range(len(work.names))]  # the node, and all that cannot run before it
    for i in range(len(work.names)):
        for j in range(i):
            if later[j] & work.needs[i]:
                later[j] |= 1 << i
    output = 1 << len(work.names)
    return [sum(1 << j for j, readers in enumerate(work.readers) if readers & (mine | output) and not mine >> j & 1) for mine in later]


def best_order(work: Work) -> list[int] | None:
    """The order with the lowest peak: A* over the sets of nodes that have run, where a path is as long as its highest
    point. None where there are too many sets.

    What is alive depends on the set alone, so each set is visited once. The bound on what is still to come: when a node
    runs, it meets what it needs, and of what has run before all that is read later. A node that fits below this bound
    and leaves no more bytes than it found is run at once: whatever comes later is only easier.
    """
    count, together = len(work.names), at_once(work)
    everything, before = (1 << count) - 1, [0] * count
    for i, needs in enumerate(work.needs):
        before[i] = needs | sum_bits(before[j] for j in bits(needs))
    tables = [[sum(work.size[low + j] for j in bits(byte) if low + j < count) for byte in range(256)] for low in range(0, count, 8)]

    def least(i: int, done: int) -> int:
        """The fewest bytes alive while node i runs, if ``done`` ran before."""
        alive, total = (done | before[i]) & together[i], work.size[i]
        for table in tables:
            total += table[alive & 255]
            alive >>= 8
        return total

    nodes = [(i, 1 << i, work.needs[i], work.size[i], [k for k in range(count) if (together[k] & ~before[k]) >> i & 1])
             for i in range(count)]  # the last: those whose least grows when i has run
    start = max((least(i, 0) for i in range(count)), default=0)
    queue: list[tuple[int, int, int, int]] = [(start, 0, 0, 0)]  # bound on the peak, minus the nodes done (deep first), the set, bytes alive
    came = {0: (start, 0, 0)}  # set -> its bound, the set before, the node between
    while queue:
        bound, depth, done, alive = heapq.heappop(queue)
        if done == everything:
            return walk_back(came, done)
        if bound > came[done][0]:
            continue
        if len(came) > STATES:
            return None
        moves = []
        for i, bit, needs, size, grown in nodes:
            if not done & bit and not needs & ~done:
                after = alive + size - freed(work, i, done)
                moves.append((alive + size, after, i, grown))
                if after <= alive and alive + size <= bound:
                    moves = moves[-1:]
                    break
        for top, after, i, grown in moves:
            new = done | 1 << i
            top = max([bound, top] + [least(k, new) for k in grown if not new >> k & 1])
            if new not in came or top < came[new][0]:
                came[new] = (top, done, i)
                heapq.heappush(queue, (top, depth - 1, new, after))
    return None


def sum_bits(masks) -> int:
    """The union of sets of bits."""
    union = 0
    for mask in masks:
        union |= mask
    return union


def walk_back(came: dict, done: int) -> list[int]:
    order = []
    while done:
        _, done, i = came[done]
        order.append(i)
    return order[::-1]


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
