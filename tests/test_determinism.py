"""Deterministic to the byte: no set order, id, clock or seed reaches an output."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
SCRIPT = """
from minigraph.pipeline import optimize
from minigraph.random_graphs import sample
from minigraph.text import constants, print_diff, print_graph
from minigraph.run_numpy import stats

for index in range(50):
    graph, inputs = sample("determinism", index)
    print(graph, [(name, array.tobytes().hex()) for name, array in inputs.items()])
    for fast in ((), "fast"):
        optimized = optimize(graph, fast)
        for stage in optimized.history:
            print(stage.name, *stage.report, sep="\\n  ")
        print(print_graph(optimized.graph, origins=True), list(constants(optimized.graph)), stats(optimized.graph))
        print(print_diff(graph, optimized.graph))
        for node in optimized.graph.nodes:
            print(optimized.why(node.name))
"""


def run(script: str, hash_seed: str) -> bytes:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"}
    return subprocess.run([sys.executable, "-c", script], env=environment, check=True, stdout=subprocess.PIPE).stdout


def test_two_hash_seeds_two_processes_the_same_bytes():
    first, second = run(SCRIPT, "1"), run(SCRIPT, "4242")
    assert len(first) > 50_000
    assert first == second


def test_the_comparison_would_see_a_set():
    script = "print({f'v{i}' for i in range(100)})"
    assert run(script, "1") != run(script, "4242")
