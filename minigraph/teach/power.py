"""How strong is the checker? Each planted mistake, against the checker and against the usual test.

The usual test: one fixed graph, ((3 + 4) * x) + (5 * 0), normal random inputs, ``allclose``.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from ..ir import Graph
from ..run_numpy import run
from .examples import expression
from .exercises import EXERCISES
from .judge import graph_size


def usual_test_catches(function: Callable) -> bool:
    """Does the one-graph test fail, as it should for a wrong pass?"""
    graph, x = expression("f32"), np.random.default_rng(0).standard_normal(4).astype(np.float32)
    try:
        got = function(graph)
        got = getattr(got, "graph", got)
        return not np.allclose(run(graph, x=x)["y"], run(got, x=x)["y"])
    except Exception:  # a wrong pass may raise anything: then the test noticed
        return True


def is_pass(function: Callable) -> bool:
    try:
        got = function(expression("f32"))
    except Exception:
        return False
    return isinstance(getattr(got, "graph", got), Graph)


def bench_checker() -> list[dict[str, object]]:
    """A row an exercise: mistakes caught, the largest counterexample, the slowest answer, and the usual test."""
    rows = []
    for exercise in EXERCISES.values():
        caught, sizes, seconds, usual, passes = 0, [0], [0.0], 0, 0
        for mistake in exercise.mistakes:
            function = exercise.adapt(mistake.function)
            start = time.process_time()
            failure = exercise.judge(function).failure
            seconds.append(time.process_time() - start)
            caught += failure is not None
            sizes.append(graph_size(failure.graph) if failure else 0)
            if is_pass(function):
                passes += 1
                usual += usual_test_catches(function)
        start = time.process_time()
        tried = exercise.judge(exercise.adapt(exercise.solution)).tried
        rows.append({"exercise": exercise.name, "chapter": exercise.chapter, "mistakes": len(exercise.mistakes), "caught": caught,
                     "largest case": max(sizes), "slowest s": round(max(seconds), 2), "right s": round(time.process_time() - start, 2),
                     "cases": tried, "usual test": f"{usual} of {passes}" if passes else "not a pass"})
    return rows
