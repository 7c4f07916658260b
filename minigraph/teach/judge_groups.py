"""The judge of fusers, Graph -> groups of names: held to the rules of ``partitions``, on small graphs first.

There is one coarsest partition that keeps the rules; a fuser is right when it keeps them and finds as few groups.
"""

from __future__ import annotations

import time
import timeit
import traceback
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from ..ir import Graph, defs, users
from .graphs import Space, chain, larger_graphs, small_graphs
from .judge import SECONDS, Failure, Verdict, attempt, shrink
from .limits import TookTooLong, time_limit
from .partitions import (
    Grouped, Groups, Members, copied, element_wise, elements, fault, group_text, in_order, is_computed, no_groups, tidy,
    waiting,
)  # fmt: skip

WALK = "Walk along graph.nodes, from the last to the first: then the readers of a node are done before it."
MANY = 50  # frames of one function on the stack: it calls itself
DEEP = 3_000  # nodes in a chain, to see that the walk looks at each a few times at most


def judge_groups(function: Callable, space: Space, reference: Callable[[Graph], Groups], targets: Iterable[Graph] = (),
                 members: Members = element_wise) -> Verdict:  # fmt: skip
    """Judge ``function``: Graph -> groups of names, by the rules, and by the number of the reference's groups."""
    tried, graphs, answers = 0, [], []
    try:
        with time_limit(SECONDS), np.errstate(all="ignore"):
            first = sorted(targets, key=len)
            graphs = first + list(small_graphs(space)) + list(larger_graphs(space))
            for graph in graphs:
                tried += 1
                failure, groups = judge_one_graph(function, graph, members)
                if failure:
                    return Verdict(shrink(failure, lambda g: judge_one_graph(function, g, members)[0]), tried)
                answers.append(groups)
            for graph, groups in zip(first, answers):
                again = in_order(attempt(function, (graph,), graph)[0], graph)
                if again != groups:
                    lines = (f"first {group_text(groups)}", f"then  {group_text(again or ())}")
                    sentence = "Called twice on one graph, your function gave two answers."
                    return Verdict(Failure("unstable", sentence, graph, groups, (), lines), tried)
            if failure := too_many(graphs, answers, reference):
                return Verdict(failure, tried)
    except TookTooLong:
        if failure := too_many(graphs, answers, reference):  # slow and wrong: wrong comes first
            return Verdict(failure, tried)
        graph = graphs[tried - 1] if 0 < tried <= len(graphs) else None
        return Verdict(Failure("too-long", "Your function does not come to an end on this graph, or is very slow: it"
                               f" was stopped after {SECONDS:g} seconds of computing.", graph), tried)
    failure = judge_long_chain(function, chain(DEEP), reference, members)
    return Verdict(failure, tried)


def judge_long_chain(function: Callable, long: Graph, reference: Callable[[Graph], Groups], members: Members) -> Failure | None:
    """Is it right, and no slower than half of one call of ``users`` for each node? A search in a list at each node is
    not as slow by far. Both are timed here and now, so a busy machine slows both."""
    each = min(timeit.repeat(lambda: users(long), number=1, repeat=10, timer=time.process_time))
    try:
        with time_limit(max(1, each * len(long) / 2)):
            failure, groups = judge_one_graph(function, long, members)
    except TookTooLong as stopped:
        if calls_itself(stopped):
            return Failure("too-long", f"On a chain of {DEEP:,} operations your function does not come to an end in reasonable"
                           f" time: for each node it calls itself again and again. {WALK}")
        return Failure("too-long", f"On a chain of {DEEP:,} operations your function does not come to an end in reasonable time:"
                       " at each node it walks the whole graph. users(graph) and defs(graph) do that: call each once,"
                       " before the loop. So does a loop over graph.nodes inside the loop.")
    if failure and failure.error[0] == "RecursionError":
        return Failure("raises", f"On a chain of {DEEP:,} operations Python's stack is full: your function calls itself for each"
                       f" node. {WALK}", details=failure.details, error=failure.error)
    failure = failure or too_many([long], [groups], reference)
    where = failure.details if failure and failure.kind == "raises" else ()
    return failure and replace(failure, graph=None, got=None, groups=(), details=where,
                               sentence=f"{failure.sentence} This was a chain of {DEEP:,} operations.")


def calls_itself(error: BaseException) -> bool:
    """Was some function inside itself many times when this was raised?"""
    inside = Counter(frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__))
    return max(inside.values()) > MANY


def judge_one_graph(function: Callable, graph: Graph, members: Members) -> tuple[Failure | None, Groups]:
    """Judge the groups of one graph by the rules."""
    answer, failure = attempt(function, (graph,), graph)
    if failure:
        return failure, []
    groups = in_order(answer, graph)
    if groups is None:
        return Failure("not-groups", no_groups(answer), graph, answer), []
    if broken := fault(graph, groups, members):
        drawn = () if broken[0] in ("invalid", "twice") else tuple(groups)  # frames around what is there, and once
        return Failure(broken[0], broken[1], graph, answer, (), (group_text(groups),), groups=drawn), groups
    return None, groups


def too_many(graphs: Iterable[Graph], answers: Iterable[Groups], reference: Callable[[Graph], Groups]) -> Failure | None:
    """The first graph whose groups are more than the reference's."""
    for graph, groups in zip(graphs, answers):
        best = tidy(reference)(graph)
        if len(groups) > len(best):
            lines = (f"your {group_text(groups)}", f"enough: {group_text(best).removeprefix('groups: ')}")
            sentence = "There are more groups here than needed."
            return Failure("did-nothing", sentence, graph, groups, (), lines, groups=tuple(groups))
    return None


# ---- refuting a fuser -----------------------------------------------------------------------------------------------


def judge_cycle(fuser: Callable, graph: Graph) -> tuple[Failure | None, Grouped]:
    """Do the groups of a wrong fuser wait for each other on this graph?"""
    groups = in_order(fuser(graph), graph)
    loop = waiting(graph, groups)
    sentence = f"Your function made groups that wait for each other: {loop}."
    return Failure("cycle", sentence, graph, groups=tuple(groups)) if loop else None, Grouped(graph, tuple(groups))


def judge_work(fuser: Callable, graph: Graph) -> tuple[Failure | None, Grouped]:
    """Does a wrong fuser, whose groups may share nodes, compute more elements than the graph has?"""
    groups, nodes = in_order(fuser(graph), graph), defs(graph)
    shown = Grouped(*copied(graph, groups))
    together = elements(nodes, groups)
    apart = elements(nodes, [(node.name,) for node in graph.nodes if is_computed(node)])
    if together <= apart:
        return None, shown
    sentence = f"Your function made launches that compute {together:,} elements, where {apart:,} are enough."
    return Failure("work", sentence, shown.graph, groups=shown.groups), shown
