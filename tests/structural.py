"""Properties that comparing values cannot see, by the words that a case describes them with.

Each check takes a case and raises AssertionError. ``NOT_YET`` are properties of parts that do not exist.
"""

from __future__ import annotations

import builtins
import itertools
import re
import sys
import tracemalloc

import numpy as np

from minigraph.errors import GraphError, RunError
from minigraph.ir import Graph, Node
from minigraph.ops import OPS, Kind
from minigraph.passes import PASSES
from minigraph.pipeline import optimize, run_pass
from minigraph.run_numpy import compile, run
from minigraph.text import parse, print_graph
from minigraph.tracing import random, trace
from minigraph.types import same_bits
from minigraph.verify import verify
from run_cases import arrays_of, differs, modes, traced_graph

UNITS = {"KiB": 2**10, "MiB": 2**20}


def graphs(case: dict):
    """(traced graph, the arrays that are its inputs), for each mode."""
    for as_inputs in modes(case):
        yield traced_graph(case, as_inputs), {n: a for n, a in arrays_of(case).items() if n in as_inputs}


def constants(graph: Graph) -> list[Node]:
    return [node for node in graph.nodes if node.op == "const"]


def no_shared_memory(case: dict) -> None:
    for graph, arrays in graphs(case):
        for one in (graph, optimize(graph).graph):
            executable, before = compile(one), {name: array.copy() for name, array in arrays.items()}
            results = [*executable(**arrays).values(), *executable(**arrays).values()]
            for a, b in itertools.combinations([*results, *arrays.values()], 2):
                assert not np.shares_memory(a, b)
            for result in results:
                result += 100
            assert all(same_bits(arrays[name], before[name]) for name in arrays)
            assert not differs(case, list(executable(**arrays).values())), "a result was written to"


def few_constant_bytes(case: dict) -> None:
    limits = [int(n) * UNITS[unit] for n, unit in re.findall(r"< (\d+) (\w+)", case["structural"])]
    for graph, _ in graphs(case):
        tracemalloc.start()
        optimized = optimize(graph).graph
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert sum(node.type.nbytes for node in constants(optimized)) < limits[0]
        assert peak < limits[-1]


def one_constant(case: dict) -> None:
    graph = traced_graph(case, ("x",))
    left = constants(optimize(graph, passes=("fold", "dce")).graph)
    assert [node.type.nbytes for node in left] == [arrays_of(case)["w"].nbytes]


def read_only_constants(case: dict) -> None:
    for graph, _ in graphs(case):
        for node in constants(optimize(graph).graph):
            array = node.value.array
            assert array.flags.c_contiguous and not array.flags.writeable
            assert not any(np.shares_memory(array, given) for given in arrays_of(case).values())


def copied_on_import(case: dict) -> None:
    arrays = arrays_of(case)
    code = compile_expression(case)
    executable = compile(trace(lambda: code(**arrays)))
    for array in arrays.values():
        array[...] = 77
    assert not differs(case, list(executable().values()))


def compile_expression(case: dict):
    code = builtins.compile(case["expr"], case["id"], "eval")
    return lambda **names: eval(code, {"np": np, **names})


def nothing_left_to_compute(case: dict) -> None:
    for graph, arrays in graphs(case):
        optimized = optimize(graph).graph
        assert all(OPS[node.op].kind in (Kind.INPUT, Kind.CONST) for node in optimized.nodes)
        assert [name for name, _ in optimized.outputs] == [name for name, _ in graph.outputs]
    no_shared_memory(case)


def draws_differ(case: dict) -> None:
    optimized = optimize(trace(lambda: (random((2, 2)), random((2, 2))), name="draws")).graph
    first, again, other = run(optimized, seed=1), run(optimized, seed=1), run(optimized, seed=2)
    a, b = first
    assert same_bits(first[a], again[a]) and same_bits(first[b], again[b])
    assert (first[a] != other[a]).all() and (first[a] != first[b]).all()


def effect_survives(case: dict) -> None:
    for graph, arrays in graphs(case):
        alone = Graph(graph.name, graph.nodes, ())  # nobody uses the result
        optimized = optimize(alone).graph
        assert any(OPS[node.op].kind is Kind.EFFECT for node in optimized.nodes)
        try:
            run(optimized, **arrays)
        except ValueError:
            continue
        raise AssertionError("the check did not fire")


def one_matmul(case: dict) -> None:
    for graph, _ in graphs(case):
        assert sum(node.op == "matmul" for node in optimize(graph, passes=("cse", "dce")).graph.nodes) == 1


def other_shapes_refused(case: dict) -> None:
    graph = traced_graph(case, tuple(arrays_of(case)))
    try:
        run(graph, **{name: array[:1] for name, array in arrays_of(case).items()})
    except RunError:
        return
    raise AssertionError("a graph ran on inputs of another shape")


def one_array_twice(case: dict) -> None:
    x = arrays_of(case)["x"]
    graph = optimize(trace(lambda x, z: x + z * np.float32(2), x, x)).graph
    assert not differs(case, list(run(graph, x=x, z=x).values()))


def any_order(case: dict) -> None:
    for graph, arrays in graphs(case):
        for order in itertools.permutations(PASSES):
            after = graph
            for name in order:
                after = run_pass(name, PASSES[name], after).after
            assert not differs(case, list(run(after, **arrays).values())), order


def settles(case: dict) -> None:
    for graph, _ in graphs(case):
        done = optimize(graph)
        assert len(done.graph) <= len(graph)
        assert not any(stage.report for stage in optimize(done.graph).history)


def deep_graph(case: dict) -> None:
    def deep(x):
        for _ in range(5000):
            x = x + np.float32(1)
        return x

    limit = sys.getrecursionlimit()
    try:
        sys.setrecursionlimit(300)
        x = arrays_of(case)["x"]
        graph = trace(deep, x)
        for one in (graph, optimize(graph).graph):
            assert parse(print_graph(one)) == one
            assert not differs(case, list(run(one, x=x).values()))
    finally:
        sys.setrecursionlimit(limit)


def confusing_names(case: dict) -> None:
    def confusing(const_0, add):
        c = const_0 + np.float32(1)
        return {"const_0": c, "c": const_0 + np.float32(2), "add": add}

    x = arrays_of(case)["x"]
    for graph in (trace(confusing, x, x), optimize(trace(confusing, x, x)).graph):
        assert len({node.name for node in graph.nodes}) == len(graph.nodes)
        assert not differs(case, list(run(graph, const_0=x, add=x).values())[:2])


def undefined_operands_refused(case: dict) -> None:
    for graph, _ in graphs(case):
        broken = Graph(graph.name, graph.nodes[1:], graph.outputs)
        try:
            verify(broken)
        except GraphError:
            continue
        raise AssertionError("a graph that uses an undefined value passed the verifier")


def raised(case: dict) -> None:
    assert case["expect_error"]


CHECKS = {  # words of the description -> check
    r"shares?_? ?memory|shares memory|no shared memory|alias": no_shared_memory,
    r"constant bytes": few_constant_bytes,
    r"exactly one constant": one_constant,
    r"not writeable|read-only": read_only_constants,
    r"copied on import|mutating the caller": copied_on_import,
    r"0 compute nodes": nothing_left_to_compute,
    r"different draws|reseed": draws_differ,
    r"assert node survives": effect_survives,
    r"matmul kernel invoked exactly once": one_matmul,
    r"new shape": other_shapes_refused,
    r"bound to two inputs": one_array_twice,
    r"all permutations": any_order,
    r"second optimize|fixed point|never grows": settles,
    r"recursion": deep_graph,
    r"unique symbols|unique names": confusing_names,
    r"verify\(\) checks closure": undefined_operands_refused,
    r"error at run time": raised,
}
NOT_YET = {r"fused|quotient|kernels? capped|groups": "fusion", r"buffer|offset|arena|donat": "the memory plan",
           r"generated source|symbols": "code generation"}  # fmt: skip


def check_structure(case: dict) -> str:
    """Run the checks that the description asks for; what was checked and what cannot be yet."""
    text = case["structural"]
    checks = [check for words, check in CHECKS.items() if re.search(words, text)]
    for check in checks:
        check(case)
    missing = [part for words, part in NOT_YET.items() if re.search(words, text)]
    said = [check.__name__ for check in checks] + [f"not yet applicable: {part}" for part in missing]
    return ", ".join(said) or f"not checked: {text}"


