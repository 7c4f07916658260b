"""What a learner's fuser, and a learner's lines of C, do when they run."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np

from ..access import squeeze
from ..backends import bind
from ..command.tables import table
from ..compiler import CompilerError, build
from ..drawing import draw_clusters
from ..drawing.picture import Picture
from ..fusion import Cluster, Partition, fuse
from ..ir import Graph, defs
from ..plan import make_plan
from ..run_numpy import run
from ..types import same_bits
from .exercises import ch08
from .graphs import special_inputs
from .judge import NOT_ATTEMPTED, attempt
from .judge_groups import judge_one_graph
from .partitions import Groups, as_list, element_wise, in_order, tidy


def partition_of(graph: Graph, groups: Groups) -> Partition:
    """Groups that keep the rules, as a partition that ``make_plan`` takes; a node alone is as the package has it."""
    nodes = defs(graph)
    alone = {cluster.nodes: cluster for cluster in fuse(graph, enabled=False).clusters}
    clusters = []
    for group in in_order(groups, graph):
        space = squeeze(nodes[group[-1]].type.shape)
        every = tuple(range(len(space)))
        loop = Cluster("map", group, space, (), tuple((name, every) for name in group))
        clusters.append(alone[group] if len(group) == 1 else loop)
    return Partition(graph, tuple(clusters), {})


def try_groups(graph: Graph, groups: Groups) -> Picture | None:
    """Say if groups made by hand keep the rules, and if fewer would do; give them to be drawn, where they can be."""
    failure, found = judge_one_graph(lambda _: as_list(groups), graph, element_wise)
    least = len(ch08.fuse(graph))
    if failure:
        print(failure.sentence)
    elif len(found) > least:
        print(f"These {len(found)} groups keep the rules, and fewer would do.")
    else:
        print(f"These {len(found)} groups keep the rules, and fewer would not.")
    shown = failure.groups if failure else tuple(found)
    return draw_clusters(graph, shown) if shown else None


def try_fuser(function: Callable, graph: Graph) -> None:
    """Print what a fuser's groups cost as launches, beside no fusion and the package's, and if the bits are right."""
    failure, groups = judge_one_graph(tidy(function), graph, element_wise)
    name = getattr(function, "__name__", "it")
    if failure is NOT_ATTEMPTED:
        return print(f"{name}: not attempted yet.")
    if failure:
        return print(f"{name} on {graph.name}: {failure.sentence}")
    rows, inputs = [], special_inputs(graph, 1)[0]
    ways = {"no fusion": fuse(graph, enabled=False), "yours": partition_of(graph, groups), "the package's": fuse(graph)}
    for who, partition in ways.items():
        plan = make_plan(partition)
        got, want = bind(plan, "numpy")(inputs), run(graph, inputs)
        rows.append({"fusion": who, "launches": len(plan.launches), "bytes moved": plan.bytes_moved,
                     "same bits": "yes" if all(same_bits(got[name], want[name]) for name in want) else "no"})
    print(table(rows), end="")
    print(f"This is {graph.name} alone; check tries {name} on many graphs.")


def try_lines(function: Callable, graph: Graph) -> None:
    """Print the loop around the lines that ``function(graph, group)`` gives for all of a graph of float32 values, and,
    with a C compiler, whether it computes the bits that a run gives."""
    group = tuple(node.name for node in graph.nodes if node.op != "input")
    lines, failure = attempt(lambda *case: as_list(function(*case)), (graph, group), graph)
    if failure is NOT_ATTEMPTED:
        return print(f"{getattr(function, '__name__', 'it')}: not attempted yet.")
    if failure or not isinstance(lines, (list, tuple)) or not all(isinstance(line, str) for line in lines):
        return print(f"These are no lines of C yet. {failure.sentence if failure else 'A list of texts is wanted.'}")
    names = [node.name for node in graph.inputs]
    params = ", ".join([*(f"const float *{name}" for name in names), f"float *{group[-1]}", "long n"])
    body = ["  for (long i = 0; i < n; i++) {", *(f"    {line}" for line in lines), "  }"]
    text = "\n".join([f"void {graph.name}({params}) {{", *body, "}"])
    print(text)
    inputs = special_inputs(graph, 1)[0]
    result = np.empty_like(inputs[names[0]])
    arrays = [*(inputs[name] for name in names), result]
    try:
        kernel = getattr(build(text + "\n"), graph.name)
    except CompilerError as error:
        return print(f"\nNot compiled: {error}")
    kernel(*(ctypes.c_void_p(array.ctypes.data) for array in arrays), ctypes.c_long(result.size))
    (want,) = run(graph, inputs).values()
    outcome = "every bit as NumPy has it." if same_bits(result, want) else "another result."
    print(f"\nCompiled, and run on {result.size} elements: {outcome}")
