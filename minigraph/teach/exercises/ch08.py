"""Chapter 08, fusion: the exercises, their mistakes and the fusers to refute."""

from __future__ import annotations

import functools
import re
from collections import Counter
from dataclasses import replace

import numpy as np

from ...ir import Graph, defs, users
from ...ops import OPS, Kind
from ...text import parse
from ..exercise import Exercise, Mistake, Refutation
from ..graphs import Space
from ..judge import Verdict, judge_calls
from ..judge_groups import judge_cycle, judge_groups, judge_work
from ..one_op import AROUND
from ..partitions import as_list, element_wise, group_text, in_order, on_the_way, tidy, waiting, with_product

SPACE = Space(
    inputs=(("x", "f32[4]"), ("w", "f32[2,4]")),
    ops=(("neg", {}), ("add", {}), ("sum", {"axis": (0,), "keepdims": True}), ("print", {"label": "seen"}),
         ("random", {"shape": (4,), "dtype": "f32", "dist": "uniform"})),
    most=3, limit=300, larger=150,
)  # fmt: skip

TARGETS = tuple(parse(text) for text in (
    "graph one(x: f32[4]) -> (y) {\n y = neg(x)\n return y\n}",
    "graph given(x: f32[4]) -> (y) {\n return y = x\n}",
    "graph pair(x: f32[4]) -> (y) {\n a = neg(x)\n y = exp(a)\n return y\n}",
    "graph square(x: f32[4]) -> (y) {\n a = neg(x)\n y = mul(a, a)\n return y\n}",
    "graph scaled(x: f32[4]) -> (y) {\n two = const(2.0) : f32[]\n a = mul(x, two)\n y = add(a, two)\n return y\n}",
    "graph both(x: f32[4]) -> (a, y) {\n a = neg(x)\n y = exp(a)\n return a, y\n}",
    "graph renamed(x: f32[4]) -> (seen, y) {\n a = neg(x)\n y = exp(a)\n return seen = a, y = y\n}",
    "graph shared(x: f32[4]) -> (y, z) {\n a = exp(x)\n y = neg(a)\n z = abs(a)\n return y, z\n}",
    "graph diamond(x: f32[4]) -> (y) {\n a = exp(x)\n b = neg(a)\n c = abs(a)\n y = add(b, c)\n return y\n}",
    "graph dead(x: f32[4]) -> (y) {\n a = exp(x)\n y = neg(x)\n return y\n}",
    "graph wide(x: f32[4], w: f32[2,4]) -> (y) {\n a = exp(x)\n y = add(a, w)\n return y\n}",
    "graph total(x: f32[4]) -> (y) {\n a = exp(x)\n y = sum(a) {axis=[0]}\n return y\n}",
    "graph after(x: f32[2,4]) -> (y) {\n a = sum(x) {axis=[0]}\n y = neg(a)\n return y\n}",
    "graph kept(x: f32[4]) -> (y) {\n a = sum(x) {axis=[0], keepdims=true}\n b = neg(a)\n y = exp(b)\n return y\n}",
    "graph centre(x: f32[4]) -> (y) {\n a = exp(x)\n s = sum(a) {axis=[0]}\n y = sub(a, s)\n return y\n}",
    "graph residual(x: f32[4,4], w: f32[4,4]) -> (y) {\n a = tanh(x)\n p = matmul(a, w)\n y = add(p, a)\n return y\n}",
    "graph turned(x: f32[4,4]) -> (y) {\n a = neg(x)\n t = transpose(a) {perm=[1,0]}\n y = add(t, a)\n return y\n}",
    "graph noisy(x: f32[4]) -> (y) {\n n = random() {shape=[4], site=0} : f32[4]\n a = add(x, n)\n y = neg(a)\n return"
    " y\n}",
    'graph watched(x: f32[4]) -> (y) {\n a = neg(x)\n p = print(a) {label="a"}\n y = exp(a)\n return y\n}',
    "graph clipped(x: f32[4]) -> (y) {\n zero = const(0.0) : f32[]\n a = lt(x, zero)\n b = neg(x)\n y = where(a, b,"
    " x)\n return y\n}",
    "graph narrow(x: f32[4]) -> (y) {\n a = neg(x)\n y = cast(a) {dtype=f64}\n return y\n}",
    "graph long(x: f32[4]) -> (y) {\n a = neg(x)\n b = exp(a)\n c = abs(b)\n d = sin(c)\n y = neg(d)\n return y\n}",
    "graph late(x: f32[4]) -> (z, y) {\n a = neg(x)\n z = sin(x)\n b = exp(a)\n y = add(b, a)\n return z, y\n}",
    "graph twice(x: f32[4]) -> (one, other) {\n a = neg(x)\n b = exp(a)\n return one = b, other = b\n}",
    "graph fed(x: f32[4,4], w: f32[4,4]) -> (y) {\n a = exp(x)\n y = matmul(a, w)\n return y\n}",
    "graph flipped(x: f32[4,4]) -> (y) {\n a = exp(x)\n y = transpose(a) {perm=[1,0]}\n return y\n}",
    "graph single(x: f32[1]) -> (y) {\n a = exp(x)\n y = sum(a) {axis=[0], keepdims=true}\n return y\n}",
    "graph around(x: f32[4]) -> (y) {\n a = exp(x)\n b = neg(a)\n s = sum(b) {axis=[0]}\n y = add(a, s)\n return y\n}",
    "graph several(x: f32[4]) -> (a, y) {\n a = exp(x)\n b = neg(a)\n y = abs(b)\n return a, y\n}",
    "graph three(x: f32[4]) -> (z, y, a) {\n a = exp(x)\n y = neg(a)\n z = abs(y)\n return z, y, a\n}",
    "graph point(x: f32[]) -> (y) {\n a = exp(x)\n y = neg(a)\n return y\n}",
    "graph cube(x: f32[2,2,2]) -> (y) {\n a = exp(x)\n y = neg(a)\n return y\n}",
    "graph nested(x: f32[4]) -> (y, z) {\n a = exp(x)\n b = neg(a)\n c = abs(b)\n y = add(b, c)\n z = sum(y)"
    " {axis=[0]}\n return y, z\n}",
))  # fmt: skip


def alone(graph: Graph) -> list[tuple[str, ...]]:
    """Every operation a group of its own."""
    return [(node.name,) for node in graph.nodes if node.op not in ("input", "const")]


# ---- what a grouping costs ----------------------------------------------------------------------------------------


def bytes_moved(graph, groups):
    """How many bytes go through memory when every group is one loop. An int.

    ``groups`` is a list of tuples of names. A group reads every value that its nodes use and that is
    not computed in it: each value once, however often it is used. Constants cost nothing, for a number
    is written into the code. A group writes those of its values that are read outside it: by a node
    of another group, or by the caller, as an output. (No value in these graphs is read by nobody.)
    ``node.type.nbytes`` is the size of a value.

    x: f32[4], a = exp(x), y = add(a, x):  groups [("a", "y")] move 16 + 16 bytes;
    groups [("a",), ("y",)] move (16 + 16) + (32 + 16).
    """
    ### BEGIN SOLUTION
    nodes = defs(graph)
    outputs = {value for public, value in graph.outputs}
    total = 0
    for group in groups:
        used = {name for one in group for name in nodes[one].inputs}
        total += sum(nodes[name].type.nbytes for name in used - set(group) if nodes[name].op != "const")
        outside = {name for node in graph.nodes if node.name not in group for name in node.inputs}
        total += sum(nodes[name].type.nbytes for name in group if name in outside | outputs)
    return total
    ### END SOLUTION


def bytes_by_home(graph, groups):
    home = {name: number for number, group in enumerate(groups) for name in group}
    size = {node.name: node.type.nbytes for node in graph.nodes}
    fixed = {node.name for node in graph.nodes if node.op == "const"}
    reads, writes = set(), {value for _, value in graph.outputs if value in home}
    for node in graph.nodes:
        for name in node.inputs:
            if name not in fixed and home.get(name) != home[node.name]:
                reads.add((name, home[node.name]))
                writes.add(name)
    return sum(size[name] for name, _ in reads) + sum(size[name] for name in writes if name in home)


def bytes_by_users(graph, groups):
    readers, nodes, total = users(graph), defs(graph), 0
    public = dict(graph.outputs).values()
    for group in groups:
        seen = {}
        for name in group:
            seen |= {one: nodes[one] for one in nodes[name].inputs if one not in group and nodes[one].op != "const"}
            if name in public or not set(readers[name]) <= set(group):
                total += nodes[name].type.nbytes
        total += sum([node.type.nbytes for node in seen.values()])
    return total


def moved(graph, groups, size=lambda node: node.type.nbytes, once=True, constants=False, inside=False, stored=None,
          outputs=True, reads=True):
    """The solution with one thing changed; the mistakes below are made of it."""
    nodes, total = defs(graph), 0
    public = {value for _, value in graph.outputs} if outputs else set()
    for group in groups:
        used = [name for one in group for name in nodes[one].inputs]
        used = [name for name in used if (inside or name not in group) and (constants or nodes[name].op != "const")]
        total += sum(size(nodes[name]) for name in (set(used) if once else used)) if reads else 0
        outside = public | {name for node in graph.nodes if node.name not in group for name in node.inputs}
        written = stored(group) if stored else [name for name in group if name in outside]
        total += sum(size(nodes[name]) for name in written)
    return total


def bytes_every_use(graph, groups):
    return moved(graph, groups, once=False)


def bytes_of_constants(graph, groups):
    return moved(graph, groups, constants=True)


def bytes_inside(graph, groups):
    return moved(graph, groups, inside=True)


def bytes_write_all(graph, groups):
    return moved(graph, groups, stored=lambda group: group)


def bytes_write_last(graph, groups):
    return moved(graph, groups, stored=lambda group: group[-1:])


def bytes_without_outputs(graph, groups):
    return moved(graph, groups, outputs=False)


def bytes_public_names(graph, groups):
    """Looks for the public names among the groups' values."""
    public = {name for name, _ in graph.outputs}
    read = {name: [other.name for other in graph.nodes if name in other.inputs] for name in defs(graph)}
    written = [name for group in groups for name in group if name in public or not set(read[name]) <= set(group)]
    return moved(graph, groups, stored=lambda group: [name for name in group if name in written])


def bytes_without_reads(graph, groups):
    return moved(graph, groups, reads=False)


def bytes_without_writes(graph, groups):
    return moved(graph, groups, stored=lambda group: ())


def bytes_elements(graph, groups):
    return moved(graph, groups, size=lambda node: node.type.size)


def bytes_unread_inside(graph, groups):
    """Writes a value only if no node of its own group reads it."""
    readers, public = users(graph), {value for _, value in graph.outputs}
    return moved(graph, groups, stored=lambda group: [
        name for name in group if name in public or not set(readers[name]) & set(group)])


def bytes_by_public_name(graph, groups):
    """Writes an output as often as it has names."""
    return moved(graph, groups) + sum(graph[value].type.nbytes for value in repeated_outputs(graph, groups))


def repeated_outputs(graph, groups):
    computed = [value for _, value in graph.outputs if any(value in group for group in groups)]
    return [value for place, value in enumerate(computed) if value in computed[:place]]


def bytes_output_and_read(graph, groups):
    """Writes an output once for the caller, and once more for the groups that read it."""
    readers, public = users(graph), {value for _, value in graph.outputs}
    twice = [name for group in groups for name in group if name in public and not set(readers[name]) <= set(group)]
    return moved(graph, groups) + sum(graph[name].type.nbytes for name in twice)


def bytes_for_each_reader(graph, groups):
    """Writes a value once for every other group that reads it."""
    nodes, more = defs(graph), 0
    for group in groups:
        for name in group:
            others = sum(any(name in nodes[one].inputs for one in other) for other in groups if other is not group)
            more += max(0, others - 1) * nodes[name].type.nbytes
    return moved(graph, groups) + more


def bytes_of_inputs_only(graph, groups):
    """Reads only the graph's inputs."""
    nodes, total = defs(graph), 0
    for group in groups:
        used = {name for one in group for name in nodes[one].inputs if name not in group}
        total += sum(nodes[name].type.nbytes for name in used if nodes[name].op not in ("input", "const"))
    return moved(graph, groups) - total


def bytes_times_four(graph, groups):
    return moved(graph, groups, size=lambda node: 4 * node.type.size)


def bytes_scalars_free(graph, groups):
    return moved(graph, groups, size=lambda node: node.type.nbytes if node.type.shape else 0)


def bytes_read_once_by_all(graph, groups):
    """Takes a value that two groups read for one read."""
    nodes, home = defs(graph), {name: number for number, group in enumerate(groups) for name in group}
    reads = {name for node in graph.nodes for name in node.inputs if home.get(name) != home.get(node.name)}
    writes = {name for name in reads | {value for _, value in graph.outputs} if name in home}
    reads = {name for name in reads if nodes[name].op != "const"}
    return sum(nodes[name].type.nbytes for name in [*reads, *writes])


def as_number(function):
    """A number is a number, NumPy's too."""
    def call(graph, groups):
        got = function(graph, groups)
        return int(got) if isinstance(got, np.integer) else got
    return call


@functools.cache
def bytes_cases():
    """Every way to put a graph's element-wise nodes into loops that can run, smallest graphs first. Not only the last
    value of a loop may be read outside."""
    found = []
    for graph in TARGETS:
        if graph.name not in ("given", "dead", "watched"):
            ways = [in_order(groups, graph) for groups in partitions([name for (name,) in alone(graph)])]
            found += [(graph, groups) for groups in ways if not waiting(graph, groups)
                      and not any(element_wise(defs(graph), group) for group in groups)]
    return sorted(found, key=lambda case: (len(case[0]), len(case[1])))


def partitions(names):
    """Every way to put these into groups."""
    if not names:
        return [[]]
    first, *others = names
    return [way for rest in partitions(others) for way in
            ([(first,), *rest], *([*rest[:k], (first, *rest[k]), *rest[k + 1:]] for k in range(len(rest))))]


def judge_bytes(function) -> Verdict:
    """Compare with the reference; a wrong answer is shown on the graph with its groups as frames."""
    def lines(case, want, got):
        return group_text(case[1]), f"it should give {want!r}", f"and gives      {got!r}"

    verdict = judge_calls(function, bytes_cases(), bytes_moved, explain=lines)
    failure = verdict.failure
    return verdict if failure is None or not failure.case else replace(
        verdict, failure=replace(failure, groups=tuple(failure.case[1])))


# ---- the fuser ----------------------------------------------------------------------------------------------------


def fuse(graph):
    """Partition a graph into loops: a list of groups, each a tuple of names. Element-wise fusion only.

    Every operation (a node that is no input and no constant) is in exactly one group. A node joins the
    group of its readers if

    - all its readers are in that one group,
    - it is no output,
    - it is element-wise (``OPS[node.op].kind is Kind.ELEMENTWISE``), and so is the group's last node,
    - and these two have the same ``type.shape`` (where shapes differ only in axes of length 1, such as
      (4,) and (1, 4), both answers are right).

    Otherwise it starts a group, as the last node of it. Make as few groups as that allows. The order of
    the groups, and the order in a group, do not matter. A graph may be a chain of thousands of nodes:
    walk along the list, for a function that calls itself at each node runs out of stack.

    From x: f32[4], a = exp(x), b = neg(a), s = sum(b), y = add(b, s) and ``return y``:
    [("a", "b"), ("s",), ("y",)]. Both s and y read b, and they are in two groups.
    """
    ### BEGIN SOLUTION
    nodes, readers = defs(graph), users(graph)
    outputs = {value for public, value in graph.outputs}
    last = {}  # the name of a node -> the name of the last node of its group
    for node in reversed(graph.nodes):
        if node.op in ("input", "const"):
            continue
        ends = {last[name] for name in readers[node.name]}
        end = nodes[ends.pop()] if len(ends) == 1 and node.name not in outputs else node
        same_loop = (OPS[node.op].kind is Kind.ELEMENTWISE and OPS[end.op].kind is Kind.ELEMENTWISE
                     and node.type.shape == end.type.shape)
        last[node.name] = end.name if same_loop else node.name
    groups = {}
    for node in graph.nodes:
        if node.name in last:
            groups.setdefault(last[node.name], []).append(node.name)
    return [tuple(group) for group in groups.values()]
    ### END SOLUTION


def fuse_with_lists(graph):
    readers, home, groups = users(graph), {}, []
    shape = {node.name: node.type.shape for node in graph.nodes if OPS[node.op].kind is Kind.ELEMENTWISE}
    public = set(dict(graph.outputs).values())
    for node in graph.nodes[::-1]:
        if OPS[node.op].kind in (Kind.INPUT, Kind.CONST):
            continue
        found = [home[name] for name in readers[node.name]]
        if (found and all(one is found[0] for one in found) and node.name not in public and node.name in shape
                and shape.get(found[0][0]) == shape[node.name]):
            group = found[0]
        else:
            group = []
            groups.append(group)
        group.append(node.name)
        home[node.name] = group
    return groups


def fuse_by_numbers(graph):
    """Counts how many of a value's readers each group has."""
    number, groups, count = {}, [], users(graph)
    public = {value for _, value in graph.outputs}
    votes = {node.name: Counter() for node in graph.nodes}
    for node in reversed(graph.nodes):
        if node.op == "input" or node.op == "const":
            continue
        mine, kind = votes[node.name], OPS[node.op].kind
        may = len(mine) == 1 and node.name not in public and kind is Kind.ELEMENTWISE
        if may and (kind, node.type.shape) == groups[min(mine)][0]:
            number[node.name] = min(mine)
        else:
            number[node.name] = len(groups)
            groups.append(((kind, node.type.shape), set()))
        groups[number[node.name]][1].add(node.name)
        for name in node.inputs:
            votes[name][number[node.name]] += 1
    assert all(sum(votes[name].values()) == len(count[name]) for name in votes)
    return [names for _, names in groups]


def fuse_by_size(graph):
    """Element-wise nodes of one size have one shape, but for axes of length 1. Finds nodes by searching the list."""
    def find(name):
        return next(node for node in graph.nodes if node.name == name)

    readers, last, groups = users(graph), {}, {}
    public = [value for _, value in graph.outputs]
    for node in reversed(graph.nodes):
        if node.op not in ("input", "const"):
            ends = {last[name] for name in readers[node.name]}
            end = find(ends.pop()) if len(ends) == 1 and node.name not in public else node
            fits = is_map(node) and is_map(end) and node.type.size == end.type.size
            last[node.name] = end.name if fits else node.name
            groups.setdefault(last[node.name], []).append(node.name)
    return groups.values()


def fuse_by_cached_search(graph):
    """Asks the graph for each node, and gives its groups one after the other."""
    readers, ends, public = users(graph), {}, np.array([value for _, value in graph.outputs])
    for node in graph.nodes[::-1]:
        if OPS[node.op].kind not in (Kind.INPUT, Kind.CONST):
            found = {ends[name] for name in readers[node.name]}
            joins = len(found) == 1 and node.name not in public and suits(graph[node.name], graph[min(found)])
            ends[node.name] = min(found) if joins else node.name
    yield from ([name for name in ends if ends[name] == end] for end in dict.fromkeys(ends.values()))


def walk_back(graph, choose):
    """The solution with another choice: ``choose(node, ends, facts)`` is the node whose group it joins, or None."""
    nodes, readers = defs(graph), users(graph)
    outputs = {value for _, value in graph.outputs}
    last = {}
    for node in reversed(graph.nodes):
        if node.op in ("input", "const"):
            continue
        ends = list(dict.fromkeys(last[name] for name in readers[node.name]))
        end = choose(node, [nodes[name] for name in ends], (nodes, readers, outputs, last))
        last[node.name] = end.name if end is not None else node.name
    groups = {}
    for node in graph.nodes:
        if node.name in last:
            groups.setdefault(last[node.name], []).append(node.name)
    return [tuple(group) for group in groups.values()]


def one_of(node, ends, facts, unless=None):
    """The only group of the readers, if the node is no output."""
    return ends[0] if len(ends) == 1 and node.name not in (facts[2] if unless is None else unless) else None


def is_map(node) -> bool:
    return OPS[node.op].kind is Kind.ELEMENTWISE


def suits(node, end) -> bool:
    return is_map(node) and is_map(end) and node.type.shape == end.type.shape


def both_maps(node, end) -> bool:
    return is_map(node) and is_map(end)


def join_if(may, node, end):
    """``end``, if there is one and the node may join it."""
    return end if end is not None and may(node, end) else None


def fuse_outputs_too(graph):
    return walk_back(graph, lambda node, ends, facts: join_if(suits, node, one_of(node, ends, facts, unless=())))


def fuse_public_names(graph):
    public = {name for name, _ in graph.outputs}
    return walk_back(graph, lambda node, ends, facts: join_if(suits, node, one_of(node, ends, facts, unless=public)))


def fuse_forward(graph):
    """Goes forward, and puts a node behind an operand that only it reads."""
    readers, home, groups = users(graph), {}, []
    for node in graph.nodes:
        if node.op in ("input", "const"):
            continue
        before = [name for name in node.inputs if name in home and len(readers[name]) == 1]
        if not before:
            groups.append([])
        home[node.name] = home[before[0]] if before else groups[-1]
        home[node.name].append(node.name)
    return groups


def fuse_first_reader(graph):
    return walk_back(graph, lambda node, ends, facts: join_if(suits, node, one_of(node, ends[:1], facts)))


def fuse_element_wise_readers(graph):
    """Asks only the element-wise readers, as if a sum or a product did not read memory."""
    def choose(node, ends, facts):
        return join_if(suits, node, one_of(node, [end for end in ends if is_map(end)], facts))
    return walk_back(graph, choose)


def fuse_any_shape(graph):
    return walk_back(graph, lambda node, ends, facts: join_if(both_maps, node, one_of(node, ends, facts)))


def fuse_any_operation(graph):
    def may(node, end):
        return is_map(end) and node.type.shape == end.type.shape
    return walk_back(graph, lambda node, ends, facts: join_if(may, node, one_of(node, ends, facts)))


def fuse_into_anything(graph):
    def may(node, end):
        return is_map(node) and (node.type.shape == end.type.shape or not is_map(end))
    return walk_back(graph, lambda node, ends, facts: join_if(may, node, one_of(node, ends, facts)))


def fuse_into_its_shape(graph):
    def may(node, end):
        return is_map(node) and node.type.shape == end.type.shape
    return walk_back(graph, lambda node, ends, facts: join_if(may, node, one_of(node, ends, facts)))


def fuse_all_but(graph, refused):
    """Lists what may not join, by name or by kind, and lets everything else do so."""
    def may(node, end):
        return node.type.shape == end.type.shape and not refused & {node.op, end.op, OPS[node.op].kind, OPS[end.op].kind}
    return walk_back(graph, lambda node, ends, facts: join_if(may, node, one_of(node, ends, facts)))


def fuse_all_but_some_names(graph):
    return fuse_all_but(graph, {"sum", "matmul", "transpose", "random", "print"})


def fuse_all_but_some_kinds(graph):
    return fuse_all_but(graph, {Kind.REDUCTION, Kind.CONTRACTION, Kind.LAYOUT, Kind.RANDOM, Kind.EFFECT})


def fuse_no_points(graph):
    """Asks ``node.type.shape and ...``."""
    def may(node, end):
        return node.type.shape and suits(node, end)
    return walk_back(graph, lambda node, ends, facts: join_if(may, node, one_of(node, ends, facts)))


def fuse_single_reader(graph):
    def choose(node, ends, facts):
        return join_if(suits, node, one_of(node, ends, facts)) if len(facts[1][node.name]) == 1 else None
    return walk_back(graph, choose)


def fuse_one_reading_node(graph):
    def choose(node, ends, facts):
        return join_if(suits, node, one_of(node, ends, facts)) if len(set(facts[1][node.name])) == 1 else None
    return walk_back(graph, choose)


def fuse_pairs(graph):
    """Joins only a reader that ends its group: groups of two levels, never longer."""
    def choose(node, ends, facts):
        ready = all(facts[3][name] == name for name in facts[1][node.name])
        return join_if(suits, node, one_of(node, ends, facts)) if ready else None
    return walk_back(graph, choose)


def fuse_same_type(graph):
    def may(node, end):
        return suits(node, end) and node.type == end.type
    return walk_back(graph, lambda node, ends, facts: join_if(may, node, one_of(node, ends, facts)))


def fuse_nothing(graph):
    return alone(graph)


def fuse_with_inputs(graph):
    return [*fuse(graph), *((node.name,) for node in graph.nodes if node.op == "input")]


def fuse_with_constants(graph):
    return [*fuse(graph), *((node.name,) for node in graph.nodes if node.op == "const")]


def fuse_without_the_dead(graph):
    readers, outputs = users(graph), {value for _, value in graph.outputs}
    return [group for group in fuse(graph) if readers[group[-1]] or group[-1] in outputs]


def fuse_long_only(graph):
    return [group for group in fuse(graph) if len(group) > 1]


def fuse_copying(graph):
    """Puts a node into the group of each of its readers."""
    return fuse_freely(graph)


def fuse_dict(graph):
    return {group[-1]: group for group in fuse(graph)}


def fuse_names(graph):
    return [name for group in fuse(graph) for name in group]


def fuse_slowly(graph):
    groups = []
    home = {}
    for node in reversed(graph.nodes):
        if node.op in ("input", "const"):
            continue
        found = {id(home[name]): home[name] for name in users(graph)[node.name]}
        group = next(iter(found.values()), None)
        if len(found) != 1 or node.name in dict(graph.outputs).values() or not suits(node, defs(graph)[group[0]]):
            group = []
            groups.append(group)
        group.append(node.name)
        home[node.name] = group
    return groups


def fuse_recursively(graph):
    nodes, readers, last = defs(graph), users(graph), {}
    outputs = {value for _, value in graph.outputs}

    def find(name):
        if name not in last:
            ends = {find(reader) for reader in readers[name]}
            end = nodes[min(ends)] if len(ends) == 1 and name not in outputs else nodes[name]
            last[name] = end.name if suits(nodes[name], end) else name
        return last[name]

    groups = {}
    for (name,) in alone(graph):
        groups.setdefault(find(name), []).append(name)
    return list(groups.values())


# ---- the lines of a loop ------------------------------------------------------------------------------------------


def emit(graph, group):
    """The lines of C inside the loop of a group: a list of texts, one a node, in the group's order.

    The loop is ``for (long i = 0; i < n; i++)``. A value that is not computed in the group lies in
    memory: its element is ``x[i]``. A value of the group is a local variable: its name. Each node gives
    ``const float NAME = EXPRESSION;`` and the last one, which is stored, ``NAME[i] = EXPRESSION;``.
    ``OPS["mul"].expr`` is the text "{0} * {1}": ``.format`` puts the operands in. In these graphs every
    value has the same shape and dtype f32, there is no constant, and no operation needs a function.
    Spaces and comments do not matter, nor does ``const``, nor the order of what * and + take.

    For a = mul(x, w), y = sub(a, x) and the group ("a", "y"):
    ["const float a = x[i] * w[i];", "y[i] = a - x[i];"]
    """
    ### BEGIN SOLUTION
    nodes = defs(graph)
    lines = []
    for name in group:
        operands = [one if one in group else f"{one}[i]" for one in nodes[name].inputs]
        text = OPS[nodes[name].op].expr.format(*operands)
        lines.append(f"{name}[i] = {text};" if name == group[-1] else f"const float {name} = {text};")
    return lines
    ### END SOLUTION


def emit_by_table(graph, group):
    text, lines = {node.name: node.name + "[i]" for node in graph.nodes}, []
    text |= {name: name for name in group}
    for node in map(graph.__getitem__, group):
        operands = sorted(map(text.get, node.inputs)) if OPS[node.op].commutative else map(text.get, node.inputs)
        lines.append(f"const float {node.name} = {OPS[node.op].expr.format(*operands)};")
    *body, end = lines
    return [*body, end.replace("const float ", "").replace(" = ", "[i] = ", 1)]


def emit_backwards(graph, group):
    nodes = {node.name: node for node in graph.nodes}
    found = []
    for name in reversed(group):
        parts = tuple(one + ("" if one in group else "[i]") for one in nodes[name].inputs)
        left = "const float " + name if found else name + "[i]"
        found.insert(0, left + " = " + OPS[nodes[name].op].expr.format(*parts) + ";")
    return tuple(found)


def emit_in_parentheses(graph, group):
    nodes = defs(graph)
    texts = {name: OPS[nodes[name].op].expr.format(*(f"({one})" if one in group else f"({one}[i])"
                                                     for one in nodes[name].inputs)) for name in group}
    last = group[-1]
    return [*(f"const float {name} = ({texts[name]});" for name in group[:-1]), f"{last}[i] = ({texts[last]});"]


def emit_tight(graph, group):
    """Without const and needless spaces, line by line."""
    for line in emit_in_parentheses(graph, group):
        yield line.replace("const ", "").replace(" = ", "=").replace(" * ", "*").replace(" + ", "+")


def emit_spaced(graph, group):
    return np.array([line.replace("const float", "float const").replace("[i]", "[ i ]").replace(";", " ; // a line\n")
                     for line in emit(graph, group)] + ["// done"])


def emitted(graph, group, value=None, line=None, operands=lambda inputs: inputs, names=None):
    """The solution with one thing changed; the mistakes below are made of it."""
    nodes = defs(graph)
    value = value or (lambda name: name if name in group else f"{name}[i]")
    line = line or (lambda name, text: f"{name}[i] = {text};" if name == group[-1] else f"const float {name} = {text};")
    return [line(name, OPS[nodes[name].op].expr.format(*[value(one) for one in operands(nodes[name].inputs)]))
            for name in (names or group)]


def emit_through_memory(graph, group):
    return emitted(graph, group, value=lambda name: f"{name}[i]", line=lambda name, text: f"{name}[i] = {text};")


def emit_reading_memory(graph, group):
    return emitted(graph, group, value=lambda name: f"{name}[i]")


def emit_inputs_only(graph, group):
    given = {node.name for node in graph.nodes if node.op == "input"}
    return emitted(graph, group, value=lambda name: f"{name}[i]" if name in given else name)


def emit_without_elements(graph, group):
    return emitted(graph, group, value=lambda name: name)


def emit_without_store(graph, group):
    return emitted(graph, group, line=lambda name, text: f"const float {name} = {text};")


def emit_storing_all(graph, group):
    return emitted(graph, group, line=lambda name, text: f"{name}[i] = {text};")


def emit_store_is_local(graph, group):
    return emitted(graph, group, line=lambda name, text: f"{'' if name == group[-1] else 'const float '}{name} ="
    f" {text};")


def emit_storing_outputs(graph, group):
    outputs = {value for _, value in graph.outputs}
    return emitted(graph, group, line=lambda name, text: f"{name}[i] = {text};" if name in outputs else
                   f"const float {name} = {text};")


def emit_local_first(graph, group):
    return [*emitted(graph, group, line=lambda name, text: f"const float {name} = {text};"), f"{group[-1]}[i] ="
    f" {group[-1]};"]


def emit_output_by_name(graph, group):
    public = {value: name for name, value in graph.outputs}
    return emitted(graph, group, line=lambda name, text: f"{public.get(name, name)}[i] ="
    f" {text};" if name == group[-1] else
                   f"const float {name} = {text};")


def emit_declaring_elements(graph, group):
    return emitted(graph, group, line=lambda name, text:
                   f"const float {name}{'[i]' if name == group[-1] else ''} = {text};")


def emit_doubles(graph, group):
    return [line.replace("float", "double") for line in emit(graph, group)]


def emit_undeclared(graph, group):
    return [line.replace("const float ", "") for line in emit(graph, group)]


def emit_turned(graph, group):
    return emitted(graph, group, operands=lambda inputs: inputs[::-1])


def emit_sorted(graph, group):
    return emitted(graph, group, operands=sorted)


def emit_all_nodes(graph, group):
    computed = tuple(node.name for node in graph.nodes if node.op != "input")
    return emitted(graph, computed)


def emit_in_graph_order(graph, group):
    return emitted(graph, group, names=[node.name for node in graph.nodes if node.name in group])


def emit_auto(graph, group):
    return [line.replace("float", "auto") for line in emit(graph, group)]


def emit_inlined(graph, group):
    """One line with everything in it."""
    text = {node.name: node.name + "[i]" for node in graph.nodes}
    for name in group:
        text[name] = f"({OPS[graph[name].op].expr.format(*map(text.get, graph[name].inputs))})"
    return [f"{group[-1]}[i] = {text[group[-1]]};"]


def emit_braces(graph, group):
    return [*emit(graph, group), "}"]


def emit_without_semicolons(graph, group):
    return [text.rstrip(";") for text in emitted(graph, group)]


def emit_one_text(graph, group):
    return "\n".join(emitted(graph, group))


def as_lines(function):
    """The function with its lines compared as C: a tuple, a generator or an array of lines is a list of them."""
    def call(graph, group):
        got = as_list(function(graph, group))
        lines = isinstance(got, (list, tuple)) and all(isinstance(line, str) for line in got)
        return [Line(line) for line in got if tokens(line) or not line.strip()] if lines else got
    return call


class Line(str):
    """A line of C as it was written; equal to another if both say the same."""

    def __eq__(self, other):
        return isinstance(other, Line) and tokens(self) == tokens(other)

    def __hash__(self):
        return hash(tuple(tokens(self)))


COMMENT = re.compile(r"//.*|/\*.*?\*/", re.DOTALL)
TURNABLE = re.compile(r"(.*=) (\w+(?: \[ i \])?) ([*+]) (\w+(?: \[ i \])?) ;")  # x * y is y * x, to the bit


def tokens(line: str) -> list[str]:
    """The words and signs of a line of C, without what changes nothing: comments, ``const``, parentheses around a name,
    an element, or all that is on the right, and the order of two factors or summands."""
    found = [token for token in re.findall(r"\w+|--|\+\+|\S", COMMENT.sub(" ", line)) if token != "const"]
    text = " ".join(found)
    text = re.sub(r"(?<![\w] )\( (\w+(?: \[ i \])?) \)", r"\1", text)
    whole = re.fullmatch(r"(.*? = )\( ([^()]*(?:\([^()]*\)[^()]*)*) \) ;", text)
    text = f"{whole[1]}{whole[2]} ;" if whole else text
    if turnable := TURNABLE.fullmatch(text):
        left, one, sign, other = turnable.groups()
        text = f"{left} {min(one, other)} {sign} {max(one, other)} ;"
    return text.split()


def emit_cases():
    head = "(x: f32[4], w: f32[4]) -> (out) {\n "
    return [(parse(f"graph {name}{head}" + "\n ".join(lines) + "\n return out ="
    " y\n}"), group) for name, lines, group in (
        ("one", ["y = add(x, w)"], ("y",)),
        ("minus", ["y = neg(x)"], ("y",)),
        ("square", ["y = mul(x, x)"], ("y",)),
        ("pair", ["a = mul(x, w)", "y = sub(a, x)"], ("a", "y")),
        ("apart", ["a = mul(x, w)", "y = sub(a, x)"], ("y",)),
        ("first", ["a = mul(x, w)", "y = sub(a, x)"], ("a",)),
        ("around", ["a = div(x, w)", "y = div(w, a)"], ("a", "y")),
        ("twice", ["a = sub(x, w)", "y = mul(a, a)"], ("a", "y")),
        ("outside", ["a = neg(x)", "b = sub(a, w)", "y = div(a, b)"], ("b", "y")),
        ("inside", ["a = neg(x)", "b = sub(a, w)", "c = div(b, x)", "y = add(c, b)"], ("a", "b", "c")),
        ("turned", ["a = mul(x, w)", "b = neg(x)", "y = sub(a, b)"], ("b", "a", "y")),
        ("long", ["a = mul(x, w)", "b = add(a, x)", "c = neg(b)", "d = div(c, a)", "y = sub(d, w)"],
         ("a", "b", "c", "d", "y")),
    )]  # fmt: skip


def explain_lines(case, want, got):
    lines = isinstance(got, (list, tuple))
    shown = got if lines else [repr(got)]
    return (f"group {case[1]}", *(f"it should give  {line}" for line in want),
            *(f"and gives       {line}" for line in shown), *(remarks(want, got) if lines else ()))


def remarks(want, got) -> list[str]:
    """What is said of lines that are not the wanted ones."""
    pairs = list(zip(want, got))
    if any(one != other and one == Line(f"{other};") for one, other in pairs):
        return ["a statement of C ends with a semicolon"]
    if len(got) != len(want):
        return [f"one line for each node of the group, and no other: {len(want)} here, not {len(got)}"]
    if any(re.match(r"\s*(const\s+)?auto\b", other) for other in got):
        return ["C's compilers know auto for a type only since C23: write float"]
    if sorted(map(tokens, want)) == sorted(map(tokens, got)):
        return ["these are the lines, in another order: the group's order is wanted"]
    return []


# ---- stretch: a product and what follows it -----------------------------------------------------------------------

PRODUCTS = Space(
    inputs=(("x", "f32[4,4]"), ("w", "f32[4,4]")),
    ops=(("matmul", {}), ("add", {}), ("neg", {}), ("sum", {"axis": (1,), "keepdims": True})),
    most=3, limit=300, larger=150,
)  # fmt: skip

PRODUCT_TARGETS = tuple(parse(text) for text in (
    "graph product(x: f32[4,4], w: f32[4,4]) -> (y) {\n y = matmul(x, w)\n return y\n}",
    "graph layer(x: f32[1,4], w: f32[4,4], b: f32[4]) -> (y) {\n p = matmul(x, w)\n a = add(p, b)\n y = tanh(a)\n"
    " return y\n}",
    "graph bare(x: f32[4,4], w: f32[4,4]) -> (y) {\n p = matmul(x, w)\n y = neg(p)\n return y\n}",
    "graph before(x: f32[4,4], w: f32[4,4]) -> (y) {\n a = exp(x)\n p = matmul(a, w)\n y = neg(p)\n return y\n}",
    "graph beside(x: f32[4,4], w: f32[4,4]) -> (y) {\n a = exp(x)\n p = matmul(x, w)\n y = add(p, a)\n return y\n}",
    "graph residual(x: f32[4,4], w: f32[4,4]) -> (y) {\n a = tanh(x)\n p = matmul(a, w)\n y = add(p, a)\n return y\n}",
    "graph chain(x: f32[4,4], w: f32[4,4]) -> (y) {\n p = matmul(x, w)\n a = tanh(p)\n y = neg(a)\n return y\n}",
    "graph gate(x: f32[4,4], w: f32[4,4]) -> (y) {\n p = matmul(x, w)\n q = matmul(w, x)\n y = mul(p, q)\n return y\n}",
    "graph gated(x: f32[4,4], w: f32[4,4]) -> (y) {\n p = matmul(x, w)\n q = matmul(w, x)\n a = tanh(p)\n y = mul(a,"
    " q)\n return y\n}",
    "graph deep(x: f32[1,4], w: f32[4,4]) -> (y) {\n p = matmul(x, w)\n a = tanh(p)\n q = matmul(a, w)\n y = tanh(q)\n"
    " return y\n}",
    "graph powers(x: f32[4,4]) -> (y) {\n p = matmul(x, x)\n q = matmul(p, p)\n y = neg(q)\n return y\n}",
    "graph used(x: f32[4,4], w: f32[4,4]) -> (p, y) {\n p = matmul(x, w)\n y = neg(p)\n return p, y\n}",
    "graph forked(x: f32[4,4], w: f32[4,4]) -> (y, z) {\n p = matmul(x, w)\n y = neg(p)\n z = exp(p)\n return y, z\n}",
    "graph spread(x: f32[1,4], w: f32[4,4], v: f32[4,4]) -> (y) {\n p = matmul(x, w)\n y = add(p, v)\n return y\n}",
    "graph flipped(x: f32[4,4], w: f32[4,4]) -> (y) {\n p = matmul(x, w)\n y = transpose(p) {perm=[1,0]}\n return"
    " y\n}",
    "graph single(x: f32[1,4], w: f32[4,1]) -> (y) {\n p = matmul(x, w)\n y = sum(p) {axis=[1], keepdims=true}\n"
    " return y\n}",
    "graph crossed(x: f32[4,4]) -> (y) {\n p = matmul(x, x)\n a = tanh(p)\n q = matmul(x, x)\n y = mul(a,"
    " q)\n return y\n}",
    "graph second(x: f32[4,4], w: f32[4,4]) -> (y) {\n a = exp(x)\n p = matmul(w, a)\n y = neg(p)\n return y\n}",
    "graph early(x: f32[4,4]) -> (y) {\n a = exp(x)\n b = neg(a)\n p = matmul(a, x)\n y = add(b, p)\n"
    " return y\n}",
    "graph square(x: f32[4,4], w: f32[4,4]) -> (y) {\n p = matmul(x, w)\n y = mul(p, p)\n return y\n}",
    "graph row(x: f32[4,4], v: f32[1,4]) -> (y) {\n p = matmul(x, x)\n q = matmul(v, x)\n y = add(p, q)\n"
    " return y\n}",
    "graph column(x: f32[4,4], v: f32[1,4]) -> (y) {\n q = matmul(v, x)\n p = matmul(x, x)\n y = add(p,"
    " q)\n return y\n}",
    "graph totals(x: f32[4,4], w: f32[4,4]) -> (y) {\n p = matmul(x, w)\n y = sum(p) {axis=[1]}\n return y\n}",
    "graph inner(x: f32[4], w: f32[4]) -> (y) {\n p = matmul(x, w)\n y = neg(p)\n return y\n}",
    "graph batch(x: f32[2,4,4], w: f32[4,4]) -> (y) {\n p = matmul(x, w)\n y = neg(p)\n return y\n}",
    "graph three(x: f32[4,4], w: f32[4,4]) -> (z, y, p) {\n p = matmul(x, w)\n y = neg(p)\n z = exp(y)\n"
    " return z, y, p\n}",
))  # fmt: skip


def fuse_epilogues(graph):
    """As ``fuse``, and a matmul may open a group: what follows it element by element is its epilogue.

    A matmul (``node.op == "matmul"``, and no other contraction) joins the group of its readers by the
    same rules, if that group has no other matmul yet. A node that a matmul reads joins no group: a
    product reads each element of its operands many times.

    From p = matmul(x, w), a = add(p, b), y = tanh(a) and ``return y``:  [("p", "a", "y")].
    With q = exp(x) and p = matmul(q, w), q stays alone.
    """
    ### BEGIN SOLUTION
    nodes, readers = defs(graph), users(graph)
    outputs = {value for public, value in graph.outputs}
    last, taken = {}, set()  # taken: the groups that have a matmul
    for node in reversed(graph.nodes):
        if node.op in ("input", "const"):
            continue
        ends = {last[name] for name in readers[node.name]}
        end = nodes[ends.pop()] if len(ends) == 1 and node.name not in outputs else node
        may_open = node.op == "matmul" and end.name not in taken
        joins = (OPS[end.op].kind is Kind.ELEMENTWISE and node.type.shape == end.type.shape
                 and all(nodes[name].op != "matmul" for name in readers[node.name])
                 and (OPS[node.op].kind is Kind.ELEMENTWISE or may_open))
        last[node.name] = end.name if joins else node.name
        if node.op == "matmul":
            taken.add(last[node.name])
    groups = {}
    for node in graph.nodes:
        if node.name in last:
            groups.setdefault(last[node.name], []).append(node.name)
    return [tuple(group) for group in groups.values()]
    ### END SOLUTION


def is_matmul(node) -> bool:
    return node.op == "matmul"


def is_contraction(node) -> bool:
    return OPS[node.op].kind is Kind.CONTRACTION


def epilogues(graph, product=True, most=1, feeds=False, shape=True, apart=True, alone_first=False, stored=True,
              ends_map=True, maps=True, refused_counts=False, opens=is_matmul):
    """The solution with one thing changed; the mistakes below are made of it."""
    taken = Counter()

    def choose(node, ends, facts):
        nodes, readers, outputs, _ = facts
        found = None
        open_to = ends and (is_map(ends[0]) or not ends_map)
        if open_to and (len(ends) == 1 or not apart) and (node.name not in outputs or not stored):
            fits = not shape or node.type.shape == ends[0].type.shape
            fits = fits and (feeds or all(not opens(nodes[name]) for name in readers[node.name]))
            wanted = opens(node) and product and taken[ends[0].name] < most
            if alone_first and opens(node):
                wanted = wanted and readers[node.name] == [ends[0].name]
            found = ends[0] if fits and ((is_map(node) and maps) or wanted) else None
        if opens(node):
            taken[(found or (ends[0] if refused_counts and ends else node)).name] += 1
        return found
    return walk_back(graph, choose)


def epilogues_with_lists(graph, members=lambda group: group, asked=lambda readers: readers, most=99):
    """Looks for a product among these ``members`` of a group and these ``asked`` readers; joins ``most`` readers at
    most. The mistakes below are made of it."""
    nodes, readers, home, groups = defs(graph), users(graph), {}, []
    for node in reversed(graph.nodes):
        if node.op not in ("input", "const"):
            found = [home[name] for name in readers[node.name]]
            group = found[0] if 0 < len(found) <= most and all(one is found[0] for one in found) else None
            if group is not None:
                end, fed = nodes[group[0]], any(nodes[name].op == "matmul" for name in asked(readers[node.name]))
                fits = is_map(end) and node.type.shape == end.type.shape and not fed
                if node.op == "matmul":
                    fits = fits and all(nodes[name].op != "matmul" for name in members(group))
                if node.name in dict(graph.outputs).values() or not fits or not (is_map(node) or node.op == "matmul"):
                    group = None
            if group is None:
                group = []
                groups.append(group)
            group.append(node.name)
            home[node.name] = group
    return groups


def epilogues_by_parameters(graph):
    return epilogues(graph)


def epilogues_without_products(graph):
    return fuse(graph)


def epilogues_two_products(graph):
    return epilogues(graph, most=9)


def epilogues_with_prologue(graph):
    return epilogues(graph, feeds=True)


def epilogues_any_shape(graph):
    return epilogues(graph, shape=False)


def epilogues_first_reader(graph):
    return epilogues(graph, apart=False)


def epilogues_outputs_too(graph):
    return epilogues(graph, stored=False)


def epilogues_into_anything(graph):
    return epilogues(graph, ends_map=False)


def epilogues_any_contraction(graph):
    return epilogues(graph, opens=is_contraction)


def epilogues_products_only(graph):
    return epilogues(graph, maps=False)


def epilogues_newest_member(graph):
    """Looks for a product only at the member that joined last."""
    return epilogues_with_lists(graph, members=lambda group: group[-1:])


def epilogues_first_reader_asked(graph):
    return epilogues_with_lists(graph, asked=lambda readers: readers[:1])


def epilogues_last_reader_asked(graph):
    return epilogues_with_lists(graph, asked=lambda readers: readers[-1:])


def epilogues_one_reader(graph):
    return epilogues_with_lists(graph, most=1)


def epilogues_refused_counts(graph):
    """Remembers a product for the group that it asked to join, even if it was refused."""
    return epilogues(graph, refused_counts=True)


def epilogues_bias_only(graph):
    return epilogues(graph, alone_first=True)


# ---- fusers to refute ---------------------------------------------------------------------------------------------


def fuse_greedily(graph):
    """Joins the first reader whose loop it can share, "because a launch may store more than one value"."""
    nodes, readers, home = defs(graph), users(graph), {}
    for node in reversed(graph.nodes):
        if node.op in ("input", "const"):
            continue
        home[node.name] = [node.name]
        for name in readers[node.name]:
            shares = OPS[node.op].kind is OPS[nodes[name].op].kind is Kind.ELEMENTWISE
            if shares and node.type.shape == nodes[name].type.shape:
                home[node.name] = home[name]
                home[name].append(node.name)
                break
    return list({id(group): group for group in home.values()}.values())


def fuse_freely(graph):
    """Joins all its readers, whatever their shape, "because what stays in a register costs nothing"."""
    readers, ends = users(graph), {}
    outputs = {value for public, value in graph.outputs}
    for node in reversed(graph.nodes):
        if node.op in ("input", "const"):
            continue
        joins = OPS[node.op].kind is Kind.ELEMENTWISE and node.name not in outputs and readers[node.name]
        if joins and all(OPS[graph[name].op].kind is Kind.ELEMENTWISE for name in readers[node.name]):
            ends[node.name] = {end for name in readers[node.name] for end in ends[name]}
        else:
            ends[node.name] = {node.name}
    groups = {}
    for node in graph.nodes:
        for end in sorted(ends.get(node.name, ())):
            groups.setdefault(end, []).append(node.name)
    return list(groups.values())


def lesson_of_work(graph):
    """Which of the two ways to repeat work the learner found."""
    shapes = {node.type.shape for node in graph.nodes if OPS[node.op].kind is Kind.ELEMENTWISE}
    if len(shapes) > 1:
        return ("The loop runs over the larger shape, so the smaller value is computed once for every element that it"
        " is broadcast to."
                " Stored, it is computed once.")
    return ("Its readers are in two loops, so both compute it. XLA does this on purpose where the operation is cheaper"
    " than a trip to memory;"
            " minigraph stores the value.")


def lesson_of_cycle(graph):
    """What makes any cycle, and what stands on the way out and back in the learner's one."""
    between = on_the_way(graph, in_order(fuse_greedily(graph), graph))
    alien = [node for node in between if not is_map(node)]
    rule = "A way that leaves a group and comes back to it makes the group wait for itself, whatever stands on the way. "
    if alien:
        return rule + f"Here it is {alien[0].name}, a {alien[0].op}, which could not be in the group itself."
    return rule + ("Here all of it is element-wise: each group would be a fine loop, and still none can run first. It is"
                   " not enough that one of the readers is in the group.")


NO_LIST = ("The op table has more operations than a list of exceptions names: sorts, slices, packing and others. Ask what"
           " the node is, Kind.ELEMENTWISE, not what it is not.")

EXERCISES = (
    Exercise(
        "08", "What a grouping costs", bytes_moved,
        judge_bytes,
        ("Take the groups one by one. What does this one need from outside, and what do others need of it?",
         "For each group: collect the names that its nodes read into a set, take away the names of the group and the"
         " constants, and add up the sizes. Then collect the names that nodes outside the group read, and the outputs,"
         " and add up the sizes of the group's names among them.",
         "total = 0\nfor group in groups:\n    used = {...}\n    total += sum(nodes[name].type.nbytes for name in used"
         " - set(group) if ...)\n    outside = {...} | outputs\n    total += sum(... for name in group if name in"
         " outside)\nreturn total"),
        (Mistake(bytes_every_use, "wrong-value", "A loop reads an element once and keeps it in a register, however"
        " often it uses it: count each value once a group."),
         Mistake(bytes_of_constants, "wrong-value", "A constant is a number in the code and is not read from memory"
                 " here."),
         Mistake(bytes_inside, "wrong-value", "A value that is computed in the group is in a register there: it is not"
                 " read from memory."),
         Mistake(bytes_write_all, "wrong-value", "A value that nobody outside the group reads is never written: that"
                 " is the whole gain."),
         Mistake(bytes_write_last, "wrong-value", "Not only the last value may be needed outside: an earlier one may"
                 " be an output, or be read by another group."),
         Mistake(bytes_without_outputs, "wrong-value", "The caller reads the outputs, so they are written, though no"
                 " node reads them."),
         Mistake(bytes_public_names, "wrong-value", "graph.outputs has pairs (public name, value), and the groups hold"
                 " values: take the second of each pair."),
         Mistake(bytes_without_reads, "wrong-value", "Reading goes through memory, too: count what a group reads."),
         Mistake(bytes_without_writes, "wrong-value", "Writing goes through memory, too: count what a group writes."),
         Mistake(bytes_elements, "wrong-value", "These are elements. A float32 has four bytes: type.nbytes counts"
                 " bytes."),
         Mistake(bytes_times_four, "wrong-value", "Not every value is an f32: a bool has one byte, a float64 eight."
                 " type.nbytes knows."),
         Mistake(bytes_scalars_free, "wrong-value", "Not every value of shape () is a constant: a sum of all elements"
                 " is written and read as well. Ask for op == 'const'."),
         Mistake(bytes_unread_inside, "wrong-value", "A value may be read inside its group and outside: the register"
                 " serves the one, and it is written for the other. Ask only for readers outside."),
         Mistake(bytes_by_public_name, "wrong-value", "A value that is returned under two names is written once: put"
                 " the outputs' values into a set."),
         Mistake(bytes_output_and_read, "wrong-value", "An output that another group reads as well is written once,"
                 " for both."),
         Mistake(bytes_for_each_reader, "wrong-value", "A value that several groups read is written once, and read by"
                 " each of them."),
         Mistake(bytes_of_inputs_only, "wrong-value", "A group reads not only the graph's inputs: what another group"
                 " wrote comes from memory, too."),
         Mistake(bytes_read_once_by_all, "wrong-value", "Two groups that read one value are two trips: registers do"
                 " not outlive a launch.")),
        (bytes_by_home, bytes_by_users),
        probes=tuple(bytes_cases()),
        adapt=as_number,
        praise="Now you can say what a fusion saves before you write it. The package's plans count in the same way, but for"
        " views, such as a transpose, which move nothing there (chapter 10).",
    ),
    Exercise(
        "08", "The fuser", fuse,
        lambda function: judge_groups(function, SPACE, fuse, (*TARGETS, *AROUND)),
        ("Walk from the last node to the first: when you come to a node, you know already in which groups its readers"
        " are.",
         "Keep a dict from a node's name to the name of the last node of its group. For each node, collect the groups"
         " of its readers as a set. If there is one, and the node is no output, is element-wise, and so is that last"
         " node, with the same shape, the node gets that group. Otherwise it is the last node of a new one. In the end"
         " collect the names by group.",
         "last = {}\nfor node in reversed(graph.nodes):\n    if node.op in ('input', 'const'):\n        continue\n   "
         " ends = {last[name] for name in readers[node.name]}\n    ...\n    last[node.name] = ...\ngroups = {}\nfor"
         " node in graph.nodes: ...\nreturn list(groups.values())"),
        (Mistake(fuse_outputs_too, "outside", "An output is read by the caller, so it must be stored: it ends its"
        " group."),
         Mistake(fuse_public_names, "outside", "An output has a public name and a value, which may be called"
                 " otherwise: the value must be stored."),
         Mistake(fuse_first_reader, "outside", "Another reader is in another group, so the value must be stored. All"
                 " readers must be in one group."),
         Mistake(fuse_element_wise_readers, "cycle", "A sum or a product is a reader as well, and it reads memory: all"
                 " readers count, not only the element-wise ones."),
         Mistake(fuse_any_shape, "illegal", "A smaller operand is broadcast: in a loop over the larger shape it would"
                 " be computed again for every element. Compare the shapes."),
         Mistake(fuse_any_operation, "illegal", "The node that joins must be element-wise itself: a sum, a draw or a"
                 " product needs more than one element."),
         Mistake(fuse_all_but_some_names, "illegal", NO_LIST), Mistake(fuse_all_but_some_kinds, "illegal", NO_LIST),
         Mistake(fuse_no_points, "did-nothing", "A value of shape () is a loop of one element, and joins as any other."
                 " An empty tuple is false: compare the shapes, and ask no more of them."),
         Mistake(fuse_into_anything, "illegal", "The group must be a loop of element-wise nodes: a sum, a print or a"
                 " product cannot take anything in. Ask the kind of its last node, too."),
         Mistake(fuse_into_its_shape, "illegal", "An equal shape is not enough: a product, a transpose, or a sum along"
                 " an axis of length 1 can have its operand's shape, and is no loop of element-wise nodes. Ask the kind of"
                 " the group's last node, too."),
         Mistake(fuse_forward, "illegal", "To have one reader is not enough. Ask all four: one group of readers, no"
                 " output, both element-wise, the same shape."),
         Mistake(fuse_single_reader, "did-nothing", "Several readers are no obstacle if they are in one group: mul(a,"
                 " a) reads a twice. Count the groups, not the readers."),
         Mistake(fuse_one_reading_node, "did-nothing", "Two readers may well be in one group: both sides of a diamond."
                 " Count the groups, not the readers."),
         Mistake(fuse_pairs, "did-nothing", "A node may join a group of any length: compare with the last node of the"
                 " reader's group, not with the reader."),
         Mistake(fuse_same_type, "did-nothing", "A loop can hold a bool and a float: only the shapes must be the"
                 " same."),
         Mistake(fuse_nothing, "did-nothing", "Every node is alone in its group: nothing is fused."),
         Mistake(fuse_with_inputs, "invalid", "Inputs are given, not computed: they are in no group."),
         Mistake(fuse_with_constants, "invalid", "Constants are not computed: they are in no group."),
         Mistake(fuse_without_the_dead, "missing", "A node that nobody reads is still in the graph, and a partition"
                 " leaves nothing out; deleting is dce's job."),
         Mistake(fuse_long_only, "missing", "A node that joins nobody is a group of its own: it must be in the list."),
         Mistake(fuse_copying, "twice", "The node went into two groups, so both compute it. A partition has each node"
                 " once; a value that two groups need is stored."),
         Mistake(fuse_dict, "not-groups", "This is a dict: return its values as a list."),
         Mistake(fuse_names, "not-groups", "This is a flat list of names: each group is a tuple or list of its own."),
         Mistake(fuse_slowly, "too-long", "users(graph) and defs(graph) walk the whole graph: call each of them once,"
                 " before the loop."),
         Mistake(fuse_recursively, "raises", "A function that calls itself at each node runs out of stack on deep"
                 " graphs: walk the list instead.")),
        (fuse_with_lists, fuse_by_numbers, fuse_by_size, fuse_by_cached_search),
        probes=tuple((graph,) for graph in TARGETS),
        adapt=tidy,
        praise="No test for cycles, and there can be none: what leaves a node that joined stays in its group. The"
        " package's fuse is the same walk with more kinds of groups.",
    ),
    Exercise(
        "08", "The lines of a loop", emit,
        lambda function: judge_calls(as_lines(function), emit_cases(), as_lines(emit), explain=explain_lines),
        ("For each operand there is one question: is it computed in this group?",
         "For each name of the group: write its operands, with [i] behind those that are not in the group. Put them"
         " into the text OPS[op].expr with format. The last name is stored into NAME[i]; each other one becomes a"
         " const float.",
         "for name in group:\n    operands = [... for one in nodes[name].inputs]\n    text ="
         " OPS[nodes[name].op].expr.format(*operands)\n    if name == group[-1]: lines.append(...)\n    else:"
         " lines.append(f'const float {name} = ...')"),
        (Mistake(emit_through_memory, "wrong-value", "This stores every value and reads it back: correct, and not"
        " fused. What stays in the group is a local: const float a = ..."),
         Mistake(emit_reading_memory, "wrong-value", "A value of the group is a local variable, so its name has no"
                 " [i]: nobody stored it."),
         Mistake(emit_inputs_only, "wrong-value", "Inputs are not all that lies in memory: so does what another group"
                 " computed. Ask whether the name is in this group."),
         Mistake(emit_without_elements, "wrong-value", "x is a whole array here, and the loop needs one element:"
                 " x[i]."),
         Mistake(emit_without_store, "wrong-value", "The last value must be stored, or the loop does nothing that"
                 " anybody sees: NAME[i] = ..."),
         Mistake(emit_storing_all, "wrong-value", "Only the last value is stored; the others are locals, const float."),
         Mistake(emit_store_is_local, "wrong-value", "The last value goes into an array: write NAME[i] on the left."),
         Mistake(emit_storing_outputs, "wrong-value", "Not the graph's outputs are stored, but the group's last value:"
                 " another group may read it."),
         Mistake(emit_local_first, "wrong-value", "A local with the name of the array hides the array, and C refuses"
                 " this. Store the expression itself: NAME[i] = EXPRESSION."),
         Mistake(emit_output_by_name, "wrong-value", "The public name is for the caller: here write the name of the"
                 " value."),
         Mistake(emit_turned, "wrong-value", "The operands are in the wrong order: x - y is not y - x."),
         Mistake(emit_sorted, "wrong-value", "In alphabetical order a division gets other operands: w / a is not a / w."
                 " Keep node.inputs as it is."),
         Mistake(emit_in_graph_order, "wrong-value", "The lines come in the group's order: go through the group, not"
                 " through the graph."),
         Mistake(emit_auto, "wrong-value", "C's compilers know auto for a type only since C23: the values are f32, so"
                 " write float."),
         Mistake(emit_inlined, "wrong-value", "This puts earlier expressions into later ones, and computes one again"
                 " where it is used twice. Give each node a line and a name of its own."),
         Mistake(emit_braces, "wrong-value", "Only the lines inside the loop are wanted: the loop and its braces are"
                 " put around them."),
         Mistake(emit_all_nodes, "wrong-value", "Only the nodes of this group belong into its loop."),
         Mistake(emit_without_semicolons, "wrong-value", "In C a statement ends with a semicolon."),
         Mistake(emit_declaring_elements, "wrong-value", "The array is there already: its element y[i] gets a value,"
                 " and no type stands before it."),
         Mistake(emit_doubles, "wrong-value", "The values are f32, which is float in C. A double would compute other"
                 " bits."),
         Mistake(emit_undeclared, "wrong-value", "C knows no local variable before it has a type: const float a ="
                 " ..."),
         Mistake(emit_one_text, "wrong-value", "A list of lines is wanted, not one text.")),
        (emit_by_table, emit_backwards, emit_in_parentheses, emit_tight, emit_spaced),
        probes=tuple(emit_cases()),
        adapt=as_lines,
        praise="One node, one line, one name: the list of nodes was almost C already. The next cell compiles your"
        " lines.",
    ),
    Exercise(
        "08", "Epilogues", fuse_epilogues,
        lambda function: judge_groups(function, PRODUCTS, fuse_epilogues, (*PRODUCT_TARGETS, *AROUND), with_product),
        ("It is your fuse with two changes: which nodes may join, and who may not be the reader.",
         "A node may join if it is element-wise, or if it is a matmul and the group has none yet. Remember the groups"
         " that have one. A node that a matmul reads never joins. The last node of the group must still be"
         " element-wise, and of the same shape.",
         "last, taken = {}, set()\nfor node in reversed(graph.nodes):\n    ...\n    joins = (OPS[end.op].kind is"
         " Kind.ELEMENTWISE and ...\n             and all(nodes[name].op != 'matmul' for name in readers[node.name])\n"
         "             and (... or ...))\n    if node.op == 'matmul': taken.add(...)"),
        (Mistake(epilogues_without_products, "did-nothing", "The product is still alone: a matmul may join the"
        " element-wise nodes that read it."),
         Mistake(epilogues_two_products, "illegal", "Two products need two loops over k: a launch holds one. Remember"
                 " which groups have one."),
         Mistake(epilogues_with_prologue, "illegal", "A product reads each element of its operands once for every"
                 " column or row, so an operation before it would be computed as often: leave it apart."),
         Mistake(epilogues_any_shape, "illegal", "The product must have the shape of the loop: if it is broadcast, it"
                 " would be computed again and again."),
         Mistake(epilogues_first_reader, "outside", "Another reader is in another group, so the value must be stored."),
         Mistake(epilogues_outputs_too, "outside", "An output must be stored, a product, too: it ends its group."),
         Mistake(epilogues_into_anything, "illegal", "An epilogue is element-wise to its end: a transpose, a sum or a"
                 " print takes nothing in. Ask the kind of the group's last node."),
         Mistake(epilogues_any_contraction, "illegal", "Only a matmul opens a group here. A conv2d is a contraction, too,"
                 " and stays apart: ask for its op."),
         Mistake(epilogues_products_only, "did-nothing", "The element-wise nodes join as in fuse: the matmul is one"
                 " more that may, not the only one."),
         Mistake(epilogues_bias_only, "did-nothing", "Yours joins only if its one reader ends the group. Compare with"
                 " the last node of the reader's group: bias, activation and more may follow."),
         Mistake(epilogues_one_reader, "did-nothing", "Yours joins only if one operand reads it. Several readers are no"
                 " obstacle if they are in one group: mul(p, p) reads p twice."),
         Mistake(epilogues_newest_member, "illegal", "The product need not be the member that joined last: look at all"
                 " members of the group, or remember which groups have one."),
         Mistake(epilogues_first_reader_asked, "illegal", "A node that any matmul reads stays apart: ask all its"
                 " readers, not the first."),
         Mistake(epilogues_last_reader_asked, "illegal", "A node that any matmul reads stays apart: ask all its"
                 " readers, not the last."),
         Mistake(epilogues_refused_counts, "did-nothing", "A product that was refused, for its shape or as an output,"
                 " takes no room: remember only those that joined.")),
        (epilogues_with_lists, epilogues_by_parameters),
        probes=tuple((graph,) for graph in PRODUCT_TARGETS),
        adapt=tidy,
        praise="A layer at batch 1 is one launch now: 128 launches become 32.",
        stretch=True,
    ),
)  # fmt: skip

REFUTATIONS = (
    Refutation(
        "08", fuse_greedily,
        parse("graph mine(x: f32[4]) -> (y) {\n  a = exp(x)\n  b = neg(a)\n  y = add(a, b)\n  return y\n}"),
        parse("graph mine(x: f32[4]) -> (y) {\n  a = exp(x)\n  s = sum(a) {axis=[0]}\n  y = sub(a, s)\n  return y\n}"),
        "A node joins the first reader that will have it. Give one a second reader that is in another group, and lead its"
        " value back into the first.",
        lesson_of_cycle,
        judge_cycle, "On this graph the groups can run one after the other: there is no cycle.",
    ),
    Refutation(
        "08", fuse_freely,
        parse("graph mine(x: f32[4]) -> (y) {\n  a = exp(x)\n  b = neg(a)\n  y = add(a, b)\n  return y\n}"),
        parse("graph mine(x: f32[4]) -> (y, z) {\n  a = exp(x)\n  y = neg(a)\n  z = abs(a)\n  return y, z\n}"),
        "Give a value two readers that cannot be in one group, or let it be broadcast: x: f32[4] and w: f32[2,4].",
        lesson_of_work,
        judge_work, "On this graph the groups compute every element once.",
    ),
)  # fmt: skip
