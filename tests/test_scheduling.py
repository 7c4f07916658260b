"""Reordering: the lowest peak there is for small graphs, never a higher one, and effects stay in order."""

from __future__ import annotations

import random
from itertools import permutations

import pytest

import minigraph as mg
from minigraph.ops import OPS, Kind
from minigraph.random_graphs import sample
from minigraph.run_numpy import peak_bytes
from minigraph.scheduling import Work, as_bits, best_order, freed, greedy_order, reorder

networkx = pytest.importorskip("networkx")


def peak(work: Work, order) -> int:
    """Played node by node; the test's own count."""
    done = alive = most = 0
    for i in order:
        assert not work.needs[i] & ~done, "before its operands"
        alive += work.size[i]
        most = max(most, alive)
        alive -= freed(work, i, done)
        done |= 1 << i
    return most


def watts_strogatz(nodes: int, seed: int) -> Work:
    graph, draw = networkx.connected_watts_strogatz_graph(nodes, 4, 0.75, seed=seed), random.Random(seed)
    reads = [tuple(sorted(j for j in graph[i] if j < i)) for i in range(nodes)]
    readers = [sum(1 << j for j in graph[i] if j > i) or 1 << nodes for i in range(nodes)]
    return Work([str(i) for i in range(nodes)], [draw.randrange(1, 64) for _ in range(nodes)],
                [sum(1 << j for j in read) for read in reads], reads, readers)


@pytest.mark.parametrize("seed", range(20))
def test_no_order_of_a_small_graph_is_better(seed):
    work = watts_strogatz(7, seed)
    lowest = min(peak(work, order) for order in permutations(range(7))
                 if all(not work.needs[i] & ~sum(1 << j for j in order[:place]) for place, i in enumerate(order)))
    assert peak(work, best_order(work)) == lowest <= peak(work, greedy_order(work))


@pytest.mark.parametrize("nodes", (32, 40))
def test_graphs_of_forty_nodes_are_solved(nodes):
    for seed in range(4):
        work = watts_strogatz(nodes, seed)
        order = best_order(work)
        assert sorted(order) == list(range(nodes))
        assert peak(work, order) <= min(peak(work, range(nodes)), peak(work, greedy_order(work)))


def test_random_graphs_keep_their_values_and_never_need_more():
    gained = 0
    for index in range(300):
        graph, inputs = sample(3, index)
        better = reorder(graph)
        mg.verify(better)
        assert peak_bytes(better) <= peak_bytes(graph)
        gained += peak_bytes(better) < peak_bytes(graph)
        kinds = (Kind.EFFECT, Kind.RANDOM)
        assert [n.name for n in better.nodes if OPS[n.op].kind in kinds] == [n.name for n in graph.nodes if OPS[n.op].kind in kinds]
        assert {node.name: node for node in better.nodes} == {node.name: node for node in graph.nodes}
        assert better.outputs == graph.outputs and reorder(better) in (better, graph)
    assert gained > 20


def test_bits_count_as_peak_bytes_does():
    for index in range(200):
        graph, _ = sample(4, index)
        given = sum(node.type.nbytes for node in graph.nodes if node.op in ("input", "const"))
        work = as_bits(graph)
        assert given + peak(work, range(len(work.names))) == peak_bytes(graph), index


def test_two_wide_values_at_a_time_instead_of_four():
    graph = mg.parse("""graph wide(x: f32[8]) -> (y) {
  a = broadcast_to(x) {shape=[1000,8]}
  b = exp(a)
  c = sin(a)
  d = cos(a)
  e = sum(b) {axis=[0,1]}
  f = sum(c) {axis=[0,1]}
  g = sum(d) {axis=[0,1]}
  h = add(e, f)
  y = add(h, g)
  return y
}""")
    assert (peak_bytes(graph), peak_bytes(reorder(graph))) == (96036, 32040)


def test_a_deep_graph_takes_no_recursion_and_little_time():
    builder = mg.Builder("deep")
    x = builder.input("x", "f32[4]")
    for _ in range(20_000):
        x = builder.emit("neg", x)
    graph = builder.build({"y": x})
    assert reorder(graph) is graph
