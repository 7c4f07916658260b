"""Chapter 10, layout: the exercises, their mistakes and the passes to refute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import permutations

import numpy as np

from ...ir import Builder, Graph, Node, defs, users
from ...ops import OPS, Attrs, Kind, infer
from ...passes.dce import dce
from ...passes.layout import layout as package_layout
from ...text import parse
from ..exercise import Exercise, Mistake, Refutation
from ..graphs import Space
from ..judge import judge_calls, judge_pass

TURNS = tuple(("transpose", {"perm": perm}) for perm in ((1, 2, 0), (2, 0, 1), (1, 0, 2), (1, 0)))

# ---- one permutation instead of two -------------------------------------------------------------------------------


def compose(p, q):
    """The permutation of transpose(transpose(x, p), q), as a tuple.

    ``p`` and ``q`` are tuples of axes, as NumPy's transpose takes them: axis i of transpose(x, p) is
    axis p[i] of x. For each axis of the result, ask: which axis of the middle is it, and which of x?

        x                        shape (10, 20, 30)
        transpose(x, (1, 2, 0))  shape (20, 30, 10)
        and that by (0, 2, 1)    shape (20, 10, 30)

        compose((1, 2, 0), (0, 2, 1)) == (1, 0, 2)
        compose((1, 2, 0), (1, 2, 0)) == (2, 0, 1)
    """
    ### BEGIN SOLUTION
    perm = []
    for axis in q:
        perm.append(p[axis])
    return tuple(perm)
    ### END SOLUTION


def compose_in_one_line(p, q):
    return tuple([p[axis] for axis in q])


def compose_by_numpy(p, q):
    """Asks NumPy, with an array whose sides are all different."""
    shape = np.empty(tuple(range(len(p)))).transpose(p).transpose(q).shape
    return tuple(int(axis) for axis in shape)


def compose_backwards(p, q):
    return tuple([q[axis] for axis in p])


def compose_positions(p, q):
    return tuple([p.index(axis) for axis in q])


def compose_as_list(p, q):
    return [p[axis] for axis in q]


def compose_numpy_integers(p, q):
    return tuple(np.array(p)[list(q)])


def compose_the_second(p, q):
    return tuple(q)


def compose_sums(p, q):
    return tuple([(a + b) % len(p) for a, b in zip(p, q)])


def compose_equal_cancels(p, q):
    return tuple(range(len(p))) if p == q else compose_in_one_line(p, q)


def compose_places(p, q):
    found = [0] * len(p)
    for place, axis in enumerate(q):
        found[axis] = p[place]
    return tuple(found)


def compose_cases() -> list[tuple]:
    return [(p, q) for rank in range(1, 5) for p in permutations(range(rank)) for q in permutations(range(rank))]


def explain_compose(case: tuple, want, got) -> tuple[str, ...]:
    p, q = case
    x = np.empty([10 * (axis + 1) for axis in range(len(p))])
    return (f"x has shape {x.shape}", f"transposed by {p}: {x.transpose(p).shape}",
            f"and that by {q}: {x.transpose(p).transpose(q).shape}",
            f"compose should give {want!r}", f"and gives           {got!r}")


# ---- cancelling ---------------------------------------------------------------------------------------------------

CANCEL_SPACE = Space(inputs=(("x", "f32[2,2,2]"), ("w", "f32[2,3]")),
                     ops=(*TURNS, ("transpose", {"perm": (0, 1, 2)}), ("neg", {}), ("add", {})),
                     limit=400, larger=100, size=7)  # fmt: skip


def turned(*perms: tuple[int, ...]) -> Graph:
    """Transposes by these, one of the other."""
    builder = Builder("turned")
    name = builder.input("x", f"f32[{','.join('2' * len(perms[0]))}]")
    for perm in perms:
        name = builder.emit("transpose", name, perm=perm)
    return builder.build({"y": name})


CANCEL_TARGETS = tuple(parse(text) for text in (
    "graph swap(x: f32[2,2]) -> (y) {\n t = transpose(x) {perm=[1,0]}\n y = transpose(t) {perm=[1,0]}\n return y\n}",
    "graph turn(x: f32[2,2,2]) -> (y) {\n t = transpose(x) {perm=[1,2,0]}\n y = transpose(t) {perm=[1,2,0]}\n return"
    " y\n}",
    "graph oblong(x: f32[2,3]) -> (y) {\n t = transpose(x) {perm=[1,0]}\n y = transpose(t) {perm=[1,0]}\n return y\n}",
    "graph back(x: f32[2,2,2]) -> (y) {\n t = transpose(x) {perm=[1,2,0]}\n y = transpose(t) {perm=[2,0,1]}\n return"
    " y\n}",
    "graph mixed(x: f32[2,2,2]) -> (y) {\n t = transpose(x) {perm=[1,2,0]}\n y = transpose(t) {perm=[1,0,2]}\n return"
    " y\n}",
    "graph sides(x: f32[2,3,4]) -> (y) {\n t = transpose(x) {perm=[1,2,0]}\n y = transpose(t) {perm=[1,0,2]}\n return"
    " y\n}",
    "graph still(x: f32[2,3]) -> (y) {\n t = transpose(x) {perm=[0,1]}\n y = neg(t)\n return y\n}",
    "graph read(x: f32[2,2]) -> (y, z) {\n t = transpose(x) {perm=[1,0]}\n u = transpose(t) {perm=[1,0]}\n y ="
    " neg(u)\n z = neg(t)\n return y, z\n}",
    "graph three(x: f32[2,2,2]) -> (y) {\n t = transpose(x) {perm=[1,2,0]}\n u = transpose(t) {perm=[1,0,2]}\n"
    " y = transpose(u) {perm=[2,0,1]}\n return y\n}",
    "graph between(x: f32[2,2]) -> (y) {\n t = transpose(x) {perm=[1,0]}\n u = neg(t)\n y = transpose(u)"
    " {perm=[1,0]}\n return y\n}",
    "graph twice(x: f32[3,3]) -> (y) {\n y = transpose(x) {perm=[1,0]}\n return y\n}",
)) + tuple(turned(*perms) for perms in (
    *([tuple(range(rank))] for rank in range(1, 6)),
    [(0, 3, 1, 2), (0, 2, 3, 1)], [(1, 0, 2, 4, 3), (1, 0, 2, 4, 3)], [(3, 0, 1, 2), (3, 0, 1, 2)],
    [(0, 2, 1, 3)], [(0, 1, 3, 2)], [(1, 0, 2, 3)], [(2, 1, 0)], [(0, 2, 1)], [(1, 0, 2)], [(1, 2, 0)],
))  # fmt: skip


def cancel_transposes(graph):
    """Make one transpose out of a transpose of a transpose, and none where every axis is back.
    Graph -> Graph.

    ``node.value.perm`` is a transpose's permutation; ``Attrs(perm=(1, 0))`` makes the value of a new
    node: a tuple of Python's ints. ``Node(name, op, inputs, value, type, origin)`` makes a node;
    a transpose keeps its name and type.

        t = transpose(x) {perm=[1,2,0]}             t = transpose(x) {perm=[1,2,0]}
        u = transpose(t) {perm=[1,0,2]}  becomes    u = transpose(x) {perm=[2,1,0]}
        v = transpose(u) {perm=[2,1,0]}             y = neg(x)
        y = neg(v)

    Whoever read v reads x from then on: operations and outputs, whose public names stay. Drop a single
    transpose, too, if it moves no axis. One that nobody reads any more, like t, may stay (chapter 05).
    Look through transposes only: what stands between two of them keeps them apart.
    Your compose may help.
    """
    ### BEGIN SOLUTION
    nodes, known, stands_for = [], {}, {}
    for node in graph.nodes:
        inputs = tuple(stands_for.get(name, name) for name in node.inputs)
        value = node.value
        if node.op == "transpose":
            perm, source = value.perm, known[inputs[0]]
            if source.op == "transpose":
                perm = tuple(source.value.perm[axis] for axis in perm)
                inputs = source.inputs
            if perm == tuple(range(len(perm))):
                stands_for[node.name] = inputs[0]
                continue
            value = Attrs(perm=perm)
        node = Node(node.name, node.op, inputs, value, node.type, node.origin)
        known[node.name] = node
        nodes.append(node)
    outputs = tuple((public, stands_for.get(value, value)) for public, value in graph.outputs)
    return Graph(graph.name, tuple(nodes), outputs)
    ### END SOLUTION


def stacked(graph: Graph) -> int:
    """Needed transposes that read a transpose, or that move no axis."""
    graph = dce(graph).graph
    nodes = defs(graph)
    found = [node for node in graph.nodes if node.op == "transpose"]
    return sum(nodes[node.inputs[0]].op == "transpose" or node.value.perm == tuple(range(len(node.value.perm)))
               for node in found)


def cancel_from_the_root(graph):
    """Keeps for each value where it comes from, and how its axes stand."""
    roots, nodes = {}, []
    for node in graph.nodes:
        roots[node.name] = node.name, tuple(range(len(node.type.shape)))
        if node.op == "transpose":
            root, perm = roots[node.inputs[0]]
            perm = compose_in_one_line(perm, node.value.perm)
            roots[node.name] = root, perm
            if perm != tuple(sorted(perm)):
                nodes.append(replace(node, inputs=(root,), value=Attrs(perm=perm)))
            continue
        nodes.append(replace(node, inputs=tuple(name_of(name, roots) for name in node.inputs)))
    return Graph(graph.name, tuple(nodes), tuple((public, name_of(value, roots)) for public, value in graph.outputs))


def name_of(value: str, roots: dict) -> str:
    root, perm = roots[value]
    return root if perm == tuple(sorted(perm)) else value


def cancel_by_the_package(graph):
    """The package's layout does more, and is right."""
    return package_layout(graph).graph


def cancel_variant(graph, combine: Callable = compose_in_one_line, identities=True, outputs=True, operands=True,
                   stale=False, middle=False, drop_read=False, only_pairs: Callable | None = None, through=(),
                   is_none: Callable = lambda perm, inputs, node: perm == tuple(range(len(perm))),
                   kept_perm: Callable = tuple, old_type=False, effects=True):
    """The solution with one thing changed; the mistakes below are made of it."""
    old, nodes, known, alias = defs(graph), [], {}, {}
    for node in graph.nodes:
        inputs = tuple(alias.get(name, name) for name in node.inputs) if operands else node.inputs
        value = node.value
        if node.op == "transpose":
            perm, source = value.perm, old[node.inputs[0]] if stale else known[inputs[0]]
            while source.op in through:
                source = known[source.inputs[0]]
            if source.op == "transpose" and (only_pairs is None or only_pairs(source, node)):
                perm = combine(source.value.perm, perm)
                if drop_read:
                    nodes = [one for one in nodes if one.name != source.name]
                inputs = inputs if middle else source.inputs
                node = replace(node, type=source.type) if old_type else node
            if identities and is_none(perm, inputs, node):
                alias[node.name] = inputs[0]
                if not operands:
                    known[node.name] = known[inputs[0]]
                continue
            value = Attrs(perm=perm)
        node = replace(node, inputs=inputs, value=value)
        known[node.name] = node
        if node.op == "transpose":
            node = replace(node, value=Attrs(perm=kept_perm(perm)))
        nodes.append(node)
    nodes = nodes if effects else without_effects(nodes)
    wanted = tuple((public, alias.get(value, value)) for public, value in graph.outputs) if outputs else graph.outputs
    return Graph(graph.name, tuple(nodes), wanted)


def cancel_backwards(graph):
    """Makes one transpose out of two, with the permutations composed backwards."""
    nodes, known, stands_for = [], {}, {}
    for node in graph.nodes:
        inputs = tuple(stands_for.get(name, name) for name in node.inputs)
        value = node.value
        if node.op == "transpose":
            perm, source = value.perm, known[inputs[0]]
            if source.op == "transpose":
                perm = tuple(perm[axis] for axis in source.value.perm)
                inputs = source.inputs
            if perm == tuple(range(len(perm))):
                stands_for[node.name] = inputs[0]
                continue
            value = Attrs(perm=perm)
        known[node.name] = Node(node.name, node.op, inputs, value, node.type, node.origin)
        nodes.append(known[node.name])
    outputs = tuple((public, stands_for.get(value, value)) for public, value in graph.outputs)
    return Graph(graph.name, tuple(nodes), outputs)


def cancel_the_equal(graph):
    """Two equal permutations cancel."""
    return cancel_variant(graph, combine=lambda p, q: tuple(range(len(p))) if p == q else compose_in_one_line(p, q))


def cancel_only_the_equal(graph):
    """Two equal permutations cancel, and no others become one."""
    return cancel_variant(graph, combine=lambda p, q: tuple(range(len(p))),
                          only_pairs=lambda source, node: source.value.perm == node.value.perm)


def cancel_by_shape(graph):
    """What has the shape of x again is x."""
    nodes = defs(graph)
    return cancel_variant(graph, combine=lambda p, q: tuple(range(len(p))), only_pairs=lambda source, node: (
        nodes[source.inputs[0]].type == node.type))


def cancel_what_keeps_its_type(graph):
    """Composes; then a transpose with the type of its operand is none."""
    nodes = defs(graph)
    return cancel_variant(graph, is_none=lambda perm, inputs, node: nodes[inputs[0]].type == node.type)


def cancel_by_positions(graph):
    return cancel_variant(graph, combine=compose_positions)


def cancel_inverses_only(graph):
    return cancel_variant(graph, only_pairs=lambda source, node: (
        compose_in_one_line(source.value.perm, node.value.perm) == tuple(range(len(node.value.perm)))))


def cancel_keeps_identities(graph):
    return cancel_variant(graph, identities=False)


def cancel_few_identities(graph):
    """Has a list of identities."""
    return cancel_variant(graph, is_none=lambda perm, inputs, node: perm in ((0, 1), (0, 1, 2)))


def cancel_by_the_first_axis(graph):
    return cancel_variant(graph, is_none=lambda perm, inputs, node: perm[0] == 0)


def cancel_by_the_last_axis(graph):
    return cancel_variant(graph, is_none=lambda perm, inputs, node: perm[-1] == len(perm) - 1)


def cancel_by_the_ends(graph):
    return cancel_variant(graph, is_none=lambda perm, inputs, node: (perm[0], perm[-1]) == (0, len(perm) - 1))


def cancel_with_one_reader(graph):
    """Composes only where nobody else reads the first transpose."""
    read = users(graph)
    public = [value for _, value in graph.outputs]
    return cancel_variant(graph, only_pairs=lambda source, node: len(read[source.name]) + public.count(source.name) < 2)


def cancel_keeps_the_type(graph):
    """Makes the new node of the first transpose, with that one's type."""
    return cancel_variant(graph, old_type=True)


def without_effects(nodes):
    return [node for node in nodes if OPS[node.op].kind is not Kind.EFFECT]


def cancel_drops_effects(graph):
    return cancel_variant(graph, effects=False)


def needed(made: Graph, root: Callable[[Node], bool]) -> Graph:
    """What the outputs need, and the nodes that are roots."""
    live = {value for _, value in made.outputs} | {node.name for node in made.nodes if root(node)}
    for node in reversed(made.nodes):
        live |= {*node.inputs} if node.name in live else set()
    return Graph(made.name, tuple(node for node in made.nodes if node.name in live), made.outputs)


def cancel_and_clean(graph):
    """Deletes what is dead, effects included."""
    return needed(cancel_variant(graph), lambda node: node.op == "input")


def cancel_as_list(graph):
    return cancel_variant(graph, combine=lambda p, q: [p[axis] for axis in q], kept_perm=lambda perm: perm)


def cancel_kept_as_list(graph):
    """Compares tuples, and keeps lists."""
    return cancel_variant(graph, kept_perm=list)


def cancel_as_array(graph):
    return cancel_variant(graph, kept_perm=np.array)


def cancel_by_arrays(graph):
    """Composes by indexing with arrays."""
    return cancel_variant(graph, combine=lambda p, q: np.array(p)[list(q)], kept_perm=lambda perm: perm,
                          is_none=lambda perm, inputs, node: tuple(perm) == tuple(range(len(perm))))


def cancel_numpy_integers(graph):
    return cancel_variant(graph, combine=compose_numpy_integers)


def cancel_forgets_outputs(graph):
    return cancel_variant(graph, outputs=False)


def cancel_forgets_operands(graph):
    return cancel_variant(graph, operands=False)


def cancel_stale(graph):
    return cancel_variant(graph, stale=True)


def cancel_reads_the_middle(graph):
    return cancel_variant(graph, middle=True)


def cancel_deletes_the_first(graph):
    return cancel_variant(graph, drop_read=True)


def cancel_renames(graph):
    """Gives each transpose that stays a new name."""
    made = cancel_variant(graph)
    new = {node.name: node.name + ".t" if node.op == "transpose" else node.name for node in made.nodes}
    nodes = [replace(node, name=new[node.name], inputs=tuple(new[name] for name in node.inputs)) for node in made.nodes]
    return Graph(graph.name, tuple(nodes), tuple((public, new[value]) for public, value in made.outputs))


def cancel_renames_outputs(graph):
    made = cancel_variant(graph)
    return Graph(graph.name, made.nodes, tuple((value, value) for _, value in made.outputs))


def cancel_through_neg(graph):
    return cancel_variant(graph, through=("neg",))


# ---- flags of matmul ----------------------------------------------------------------------------------------------

ABSORB_SPACE = Space(inputs=(("x", "i32[2,2]"), ("w", "i32[2,3]"), ("b", "i32[2,2,2]")),
                     ops=(*(("transpose", {"perm": perm}) for perm in ((1, 0), (0, 2, 1), (1, 0, 2))), ("matmul", {}),
                          ("matmul", {"transpose_a": True}), ("matmul", {"transpose_b": True}), ("neg", {})),
                     limit=700, larger=100, size=6)  # fmt: skip


def permuted(perm: tuple[int, ...]) -> Graph:
    """A matmul that reads this transpose."""
    cube = "x: i32[{0}], w: i32[{0}]".format(",".join("2" * len(perm)))
    return parse(f"graph permuted({cube}) -> (y) {{\n t = transpose(w) {{perm={list(perm)}}}\n y = matmul(x, t)\n"
                 " return y\n}")


ABSORB_TARGETS = tuple(parse(text) for text in (
    "graph right(x: i32[2,2], w: i32[2,2]) -> (y) {\n t = transpose(w) {perm=[1,0]}\n y = matmul(x, t)\n return y\n}",
    "graph left(x: i32[2,2], w: i32[2,2]) -> (y) {\n t = transpose(x) {perm=[1,0]}\n y = matmul(t, w)\n return y\n}",
    "graph flagged(x: i32[2,2], w: i32[2,2]) -> (y) {\n t = transpose(w) {perm=[1,0]}\n y = matmul(x, t)"
    " {transpose_b=true}\n return y\n}",
    "graph other(x: i32[2,2], w: i32[2,2]) -> (y) {\n t = transpose(w) {perm=[1,0]}\n y = matmul(x, t)"
    " {transpose_a=true}\n return y\n}",
    "graph both(x: i32[2,2]) -> (y) {\n t = transpose(x) {perm=[1,0]}\n y = matmul(t, t)\n return y\n}",
    "graph oblong(x: i32[2,3], w: i32[4,3]) -> (y) {\n t = transpose(w) {perm=[1,0]}\n y = matmul(x, t)\n return y\n}",
    "graph batch(x: i32[2,2,2], w: i32[2,2,2]) -> (y) {\n t = transpose(w) {perm=[0,2,1]}\n y = matmul(x, t)\n return"
    " y\n}",
    "graph vector(x: i32[2], w: i32[2,2]) -> (y) {\n t = transpose(w) {perm=[1,0]}\n y = matmul(x, t)\n return y\n}",
    "graph shared(x: i32[2,2]) -> (y, t) {\n t = transpose(x) {perm=[1,0]}\n y = matmul(x, t)\n return y, t\n}",
    "graph others(x: i32[2,2]) -> (y, z) {\n t = transpose(x) {perm=[1,0]}\n y = matmul(x, t)\n z = neg(t)\n return"
    " y, z\n}",
    "graph twice(x: i32[2,2]) -> (y) {\n t = transpose(x) {perm=[1,0]}\n u = transpose(t) {perm=[1,0]}\n y ="
    " matmul(x, u)\n return y\n}",
    "graph pair(x: i32[2,2], w: i32[2,2]) -> (y) {\n t = transpose(x) {perm=[1,0]}\n u = transpose(w) {perm=[1,0]}\n"
    " y = matmul(t, u)\n return y\n}",
    "graph bare(x: i32[2,2], w: i32[2,2]) -> (y) {\n y = matmul(x, w) {transpose_b=true}\n return y\n}",
)) + tuple(map(permuted, [*(perm for rank in (3, 4, 1) for perm in permutations(range(rank))),
                          (0, 1), (0, 1, 2, 4, 3), (0, 1, 3, 2, 4)]))  # fmt: skip


def absorb_into_matmul(graph):
    """Where a matmul reads the transpose of a matrix, let it read the matrix itself. Graph -> Graph.

    ``dict(node.value)`` of a matmul is {"transpose_a": False, "transpose_b": False}. A flag swaps the
    last two axes of an operand, the first one's or the second one's. So a transpose that swaps the last
    two axes, and moves no other, is a flag. ``Attrs(**flags)`` makes the new value.

        t = transpose(w) {perm=[1,0]}     becomes    t = transpose(w) {perm=[1,0]}
        y = matmul(x, t)                             y = matmul(x, w) {transpose_b=true}

    The operand may have more axes: (0, 2, 1) is such a transpose, (1, 0, 2) is not. It may be the
    transpose of a transpose: then go on. The transposes themselves may stay (chapter 05).
    """
    ### BEGIN SOLUTION
    nodes, known = [], {}
    for node in graph.nodes:
        if node.op == "matmul":
            inputs, flags = list(node.inputs), dict(node.value)
            for place, flag in enumerate(("transpose_a", "transpose_b")):
                operand = known[inputs[place]]
                rank = len(operand.type.shape)
                swap = (*range(rank - 2), rank - 1, rank - 2)
                while operand.op == "transpose" and operand.value.perm == swap:
                    flags[flag] = not flags[flag]
                    inputs[place] = operand.inputs[0]
                    operand = known[inputs[place]]
            node = Node(node.name, "matmul", tuple(inputs), Attrs(**flags), node.type, node.origin)
        known[node.name] = node
        nodes.append(node)
    return Graph(graph.name, tuple(nodes), graph.outputs)
    ### END SOLUTION


def swaps(node: Node) -> bool:
    """Is this a transpose of the last two axes, and of no other?"""
    rank = len(node.type.shape)
    return node.op == "transpose" and node.value.perm == (*range(rank - 2), rank - 1, rank - 2)


def absorbable(graph: Graph) -> int:
    """Operands of needed matmuls that are transposes, and could be flags."""
    graph = dce(graph).graph
    nodes = defs(graph)
    return sum(swaps(nodes[name]) for node in graph.nodes if node.op == "matmul" for name in node.inputs)


def absorb_one_at_a_time(graph):
    """Rewrites one operand, and starts again."""
    nodes = defs(graph)
    for index, node in enumerate(graph.nodes):
        for place, flag in enumerate(("transpose_a", "transpose_b")) if node.op == "matmul" else ():
            operand = nodes[node.inputs[place]]
            if swaps(operand):
                inputs = node.inputs[:place] + operand.inputs + node.inputs[place + 1:]
                flags = dict(node.value) | {flag: not dict(node.value)[flag]}
                made = replace(node, inputs=inputs, value=Attrs(**flags))
                rest = graph.nodes[index + 1:]
                return absorb_one_at_a_time(Graph(graph.name, graph.nodes[:index] + (made,) + rest, graph.outputs))
    return graph


def absorb_by_the_package(graph):
    return package_layout(graph).graph


def absorb_variant(graph, fits: Callable = swaps, new_flag: Callable = lambda old: not old, places=(0, 1), again=True,
                   crossed=False, drop=False, only=None):
    """The solution with one thing changed; the mistakes below are made of it."""
    nodes, known, names = [], {}, ("transpose_a", "transpose_b")
    for node in graph.nodes:
        if node.op == "matmul" and (only is None or node in only):
            inputs, flags = list(node.inputs), dict(node.value)
            for place in places:
                operand, flag = known[inputs[place]], names[1 - place if crossed else place]
                while fits(operand):
                    flags[flag] = new_flag(flags[flag])
                    inputs[place] = operand.inputs[0]
                    if drop:
                        nodes = [one for one in nodes if one.name != operand.name]
                    operand = known[inputs[place]]
                    if not again:
                        break
            node = replace(node, inputs=tuple(inputs), value=Attrs(**flags))
        known[node.name] = node
        nodes.append(node)
    return Graph(graph.name, tuple(nodes), graph.outputs)


def absorb_sets_the_flag(graph):
    return absorb_variant(graph, new_flag=lambda old: True)


def absorb_no_flag(graph):
    return absorb_variant(graph, new_flag=lambda old: old)


def absorb_crossed(graph):
    return absorb_variant(graph, crossed=True)


def absorb_second_only(graph):
    return absorb_variant(graph, places=(1,))


def absorb_any_permutation(graph):
    return absorb_variant(graph, fits=lambda node: node.op == "transpose")


def absorb_where(graph, fits: Callable[[tuple[int, ...], int], bool]):
    """With another condition, on a permutation and its length."""
    return absorb_variant(graph, fits=lambda node: (
        node.op == "transpose" and len(node.value.perm) > 1 and fits(node.value.perm, len(node.value.perm))))


def absorb_last_comes_first(graph):
    """Looks whether the last axis has moved one place to the left."""
    return absorb_where(graph, lambda perm, rank: perm[-2] == rank - 1)


def absorb_last_but_one_comes_last(graph):
    return absorb_where(graph, lambda perm, rank: perm[-1] == rank - 2)


def absorb_last_two_only(graph):
    """Looks at the last two axes."""
    return absorb_where(graph, lambda perm, rank: perm[-2:] == (rank - 1, rank - 2))


def absorb_any_last_two(graph):
    """Looks whether the last two axes are still the last two."""
    return absorb_where(graph, lambda perm, rank: sorted(perm[-2:]) == [rank - 2, rank - 1])


def absorb_matrices_only(graph):
    return absorb_where(graph, lambda perm, rank: perm == (1, 0))


def absorb_up_to_three_axes(graph):
    return absorb_where(graph, lambda perm, rank: perm in ((1, 0), (0, 2, 1)))


def absorb_once(graph):
    return absorb_variant(graph, again=False)


def absorb_deletes(graph):
    return absorb_variant(graph, drop=True)


def absorb_one_operand(graph):
    """Looks at the second operand only where the first is no transpose."""
    made = absorb_variant(graph, places=(0,))
    return absorb_variant(made, places=(1,), only={one for one, other in zip(graph.nodes, made.nodes) if one == other})


def with_flags(graph, flags: Callable[[dict, dict], dict]):
    """The solution, with the flags that this makes of an old node's and a new node's."""
    old, result = defs(graph), absorb_variant(graph)
    nodes = [replace(node, value=Attrs(**flags(dict(old[node.name].value), dict(node.value)))) if node.op == "matmul"
             else node for node in result.nodes]
    return Graph(graph.name, tuple(nodes), graph.outputs)


def absorb_for_every_reader(graph, outputs=True):
    """Whoever read the transpose reads the matrix, and only matmul has a flag for it."""
    nodes, behind = [], {}
    for node in graph.nodes:
        flags = {flag: value != (name in behind) for name, (flag, value) in zip(node.inputs, node.value or ())}
        value = Attrs(**flags) if node.op == "matmul" else node.value
        node = replace(node, inputs=tuple(behind.get(name, name) for name in node.inputs), value=value)
        nodes.append(node)
        if swaps(node):
            behind[node.name] = node.inputs[0]
    renamed = tuple((public, behind.get(value, value)) for public, value in graph.outputs)
    return Graph(graph.name, tuple(nodes), renamed if outputs else graph.outputs)


def absorb_for_every_node(graph):
    return absorb_for_every_reader(graph, outputs=False)


def absorb_with_one_reader(graph):
    """Leaves a transpose that others read, too."""
    read = users(graph)
    public = [value for _, value in graph.outputs]
    return absorb_variant(graph, fits=lambda node: swaps(node) and len(read[node.name]) + public.count(node.name) < 2)


def absorb_backwards(graph):
    """Takes (n-1, ..., 1, 0) for the swap of the last two axes."""
    return absorb_where(graph, lambda perm, rank: perm == tuple(range(rank))[::-1])


def absorb_compares_with_a_list(graph):
    return absorb_where(graph, lambda perm, rank: perm == [*range(rank - 2), rank - 1, rank - 2])


def absorb_forgets_outputs(graph):
    """Deletes a transpose that no node reads any more, be it an output or not."""
    made = absorb_variant(graph)
    read = users(made)
    nodes = [node for node in made.nodes if node.op != "transpose" or read[node.name]]
    return Graph(graph.name, tuple(nodes), graph.outputs)


def absorb_and_sweep(graph):
    """Deletes the transposes that nobody reads any more, once: what only they read goes in the next run."""
    made = absorb_variant(graph)
    read = {name for node in made.nodes for name in node.inputs} | {value for _, value in made.outputs}
    nodes = [node for node in made.nodes if node.op != "transpose" or node.name in read]
    return Graph(graph.name, tuple(nodes), graph.outputs)


def absorb_drops_effects(graph):
    made = absorb_variant(graph)
    return Graph(graph.name, tuple(without_effects(made.nodes)), made.outputs)


def absorb_and_clean(graph):
    """Deletes what is dead, effects included."""
    return needed(absorb_variant(graph), lambda node: node.op == "input")


def absorb_forgets_flags(graph):
    """Begins with both flags False."""
    return with_flags(graph, lambda old, new: {flag: new[flag] != old[flag] for flag in new})


def absorb_one_flag(graph):
    """Makes attributes of the flags that are True."""
    return with_flags(graph, lambda old, new: {flag: True for flag in new if new[flag]})


def absorb_numpy_bools(graph):
    return with_flags(graph, lambda old, new: {flag: np.bool_(new[flag]) for flag in new})


# ---- the stretch: sinking through a reduction -----------------------------------------------------------------------

SINK_SPACE = Space(inputs=(("x", "i32[2,2,2]"), ("w", "i32[2,3]")),
                   ops=(*TURNS, ("max", {"axis": (-1,)}), ("sum", {"axis": (0,)}), ("sum", {"axis": (-2, 0)}),
                        ("max", {"axis": (1,), "keepdims": True}), ("neg", {})),
                   limit=400, larger=100, size=6)  # fmt: skip

SINK_TARGETS = tuple(parse(text) for text in (
    "graph rows(x: i32[2,2]) -> (y) {\n t = transpose(x) {perm=[1,0]}\n y = sum(t) {axis=[0]}\n return y\n}",
    "graph last(x: i32[2,2]) -> (y) {\n t = transpose(x) {perm=[1,0]}\n y = max(t) {axis=[-1]}\n return y\n}",
    "graph turn(x: i32[2,2,2]) -> (y) {\n t = transpose(x) {perm=[1,2,0]}\n y = max(t) {axis=[1]}\n return y\n}",
    "graph back(x: i32[2,2,2]) -> (y) {\n t = transpose(x) {perm=[2,0,1]}\n y = sum(t) {axis=[-1]}\n return y\n}",
    "graph wheel(x: i32[2,2,2,2]) -> (y) {\n t = transpose(x) {perm=[0,2,3,1]}\n y = sum(t) {axis=[0]}\n return y\n}",
    "graph kept(x: i32[2,2,2]) -> (y) {\n t = transpose(x) {perm=[1,2,0]}\n y = sum(t) {axis=[0], keepdims=true}\n"
    " return y\n}",
    "graph two(x: i32[2,2,2]) -> (y) {\n t = transpose(x) {perm=[1,2,0]}\n y = max(t) {axis=[0,-1]}\n return y\n}",
    "graph all(x: i32[2,3]) -> (y) {\n t = transpose(x) {perm=[1,0]}\n y = sum(t) {axis=[0,1]}\n return y\n}",
    "graph sides(x: i32[2,3,4]) -> (y) {\n t = transpose(x) {perm=[1,2,0]}\n y = sum(t) {axis=[-3]}\n return y\n}",
    "graph long(x: i32[2,2,2,2]) -> (y) {\n t = transpose(x) {perm=[1,2,3,0]}\n y = sum(t) {axis=[3]}\n return y\n}",
    "graph shared(x: i32[2,2]) -> (y, t) {\n t = transpose(x) {perm=[1,0]}\n y = sum(t) {axis=[0]}\n return y, t\n}",
    "graph again(x: i32[2,2,2]) -> (y) {\n t = transpose(x) {perm=[1,2,0]}\n s = sum(t) {axis=[0]}\n"
    " y = max(s) {axis=[0]}\n return y\n}",
    *(f"graph other(x: {type}[2,2]) -> (y) {{\n t = transpose(x) {{perm=[1,0]}}\n y = {op}(t) {{axis={axis}}}\n"
      " return y\n}" for op, type, axis in (("min", "i32", "[0]"), ("prod", "i32", "[0]"), ("mean", "f32", "[0]"),
                                            ("any", "bool", "[0]"), ("all", "bool", "[0]"), ("argmax", "i32", "0"),
                                            ("argmin", "i32", "0"), ("cumsum", "i32", "0"), ("sort", "i32", "0"))),
))  # fmt: skip


def sink_through_reduction(graph):
    """A sum or a max of a transpose becomes the transpose of a sum or a max. Graph -> Graph.

    The reduction reads x as it is stored. Its axes get x's numbers: axis i of transpose(x, p) is axis
    p[i] of x, and a negative axis counts from the end. What is left has to stand in the old order
    again. Then a reduction of this one reads a transpose, too, and sinks as well: look at the new
    nodes. Leave other reductions alone: only "sum" and "max".

        t = transpose(x) {perm=[1,2,0]}             y.low = sum(x) {axis=[0]}
        y = sum(t) {axis=[-1]}           becomes    y = transpose(y.low) {perm=[0,1]}

    ``node.value.axis`` is a tuple, ``node.value.keepdims`` is True or False; with keepdims the result
    has as many axes as before. ``Attrs(axis=..., keepdims=...)`` makes the new value; its axes may
    stand in any order. ``infer(OPS[node.op], (type_of_x,), value)`` is the type of the new node, and
    ``node.name + ".low"`` a name that is free. The transpose t may stay, and a new one that moves no
    axis, too.
    """
    ### BEGIN SOLUTION
    nodes, known = [], {}
    for node in graph.nodes:
        if node.op in ("sum", "max") and known[node.inputs[0]].op == "transpose":
            source = known[node.inputs[0]]
            perm, keepdims = source.value.perm, node.value.keepdims
            gone = [perm[axis % len(perm)] for axis in node.value.axis]
            attrs = Attrs(axis=tuple(sorted(gone)), keepdims=keepdims)
            type = infer(OPS[node.op], (known[source.inputs[0]].type,), attrs)
            low = Node(node.name + ".low", node.op, source.inputs, attrs, type, node.origin)
            known[low.name] = low
            nodes.append(low)
            kept = [axis for axis in perm if keepdims or axis not in gone]
            order = tuple(sorted(kept).index(axis) for axis in kept)
            node = Node(node.name, "transpose", (low.name,), Attrs(perm=order), node.type, node.origin)
        known[node.name] = node
        nodes.append(node)
    return Graph(graph.name, tuple(nodes), graph.outputs)
    ### END SOLUTION


def unsunk(graph: Graph) -> int:
    """Needed sums and maxima that read a transpose which moves an axis."""
    graph = dce(graph).graph
    nodes = defs(graph)
    read = [nodes[node.inputs[0]] for node in graph.nodes if node.op in ("sum", "max")]
    return sum(node.op == "transpose" and node.value.perm != tuple(range(len(node.value.perm))) for node in read)


def other_reductions(graph: Graph, result: Graph) -> str:
    """A sentence about a reduction that should have been left alone."""
    after = defs(result)
    for node in dce(graph).graph.nodes:
        if OPS[node.op].kind is Kind.REDUCTION and node.op not in ("sum", "max"):
            found = after.get(node.name)
            if found is None or (found.op, found.value) != (node.op, node.value):
                return f"Your function rewrote a {node.op}, and was to leave it as it is."
    return ""


def right_axes(perm, axes):
    return [perm[axis] for axis in axes]


def right_order(perm, gone, keepdims, axes=()):
    kept = [axis for axis in perm if keepdims or axis not in gone]
    return places(kept)


def places(kept: list) -> tuple[int, ...]:
    """For each of them, its place among the sorted ones."""
    return tuple(sum(other < axis for other in kept) for axis in kept)


def sink_variant(graph, axes: Callable = right_axes, order: Callable = right_order, low_axes: Callable | None = None,
                 value: Callable = Attrs, typed=True, types: Callable = lambda type: (type,), ops=("sum", "max"),
                 stale=False, clean=False, end=".low", fits=lambda node: True):
    """The solution with one thing changed; the mistakes below are made of it."""
    nodes, known, old = [], {}, defs(graph)
    for node in graph.nodes:
        source = (old if stale else known)[node.inputs[0]] if node.op in ops else node
        if node.op in ops and source.op == "transpose" and fits(node):
            perm = source.value.perm
            gone = axes(perm, node.value.axis)
            low = low_axes(perm, node.value.axis) if low_axes else sorted(gone)
            attrs = value(axis=tuple(low), keepdims=node.value.keepdims)
            type = infer(OPS[node.op], types(known[source.inputs[0]].type), attrs) if typed else node.type
            last = order(perm, [axis % len(perm) for axis in gone], node.value.keepdims, node.value.axis)
            if last is None or (clean and last == tuple(range(len(last)))):
                node = Node(node.name, node.op, source.inputs, attrs, type)
            else:
                reduced = Node(node.name + end, node.op, source.inputs, attrs, type)
                known[reduced.name] = reduced
                nodes.append(reduced)
                node = Node(node.name, "transpose", (reduced.name,), Attrs(perm=last), node.type)
        known[node.name] = node
        nodes.append(node)
    return Graph(graph.name, tuple(nodes), graph.outputs)


def sink_clean(graph):
    """Adds no transpose that moves no axis."""
    return sink_variant(graph, clean=True)


def sink_by_insertion(graph):
    return sink_variant(graph, axes=lambda perm, axes: [perm[axis if axis >= 0 else len(perm) + axis] for axis in axes])


def sink_in_any_order(graph):
    """Sorts no axes, and has another name for the new node."""
    return sink_variant(graph, low_axes=lambda perm, axes: reversed(right_axes(perm, axes)), end="_below")


def sink_same_axes(graph):
    return sink_variant(graph, axes=lambda perm, axes: list(axes))


def partly_negative(perm, axes):
    return [axis if axis < 0 else perm[axis] for axis in axes]


def sink_keeps_negative(graph):
    return sink_variant(graph, axes=partly_negative)


def negative_never_there(perm, gone, keepdims, axes):
    """Looks for a negative axis among 0, 1, 2, ..."""
    return places([perm[place] for place in range(len(perm)) if keepdims or place not in axes])


def sink_negative_stays(graph):
    return sink_variant(graph, order=negative_never_there)


def sink_negative_everywhere(graph):
    return sink_variant(graph, order=negative_never_there, low_axes=partly_negative)


def inverse_axes(perm, axes):
    return [perm.index(axis % len(perm)) for axis in axes]


def sink_inverse_axes(graph):
    return sink_variant(graph, axes=inverse_axes)


def sink_inverse_low_axes(graph):
    """The wrong axes are reduced, and the right ones left."""
    return sink_variant(graph, low_axes=inverse_axes)


def sink_no_order(graph):
    return sink_variant(graph, order=lambda *given: None)


def sink_same_order(graph):
    return sink_variant(graph, order=lambda *given: tuple(range(len(right_order(*given)))))


def inverse_order(*given):
    right = right_order(*given)
    return tuple(right.index(axis) for axis in range(len(right)))


def sink_inverse_order(graph):
    return sink_variant(graph, order=inverse_order)


def with_keepdims(order: Callable):
    """This order where the dimensions are kept, the right one elsewhere."""
    return lambda perm, gone, keepdims, axes: (order if keepdims else right_order)(perm, gone, keepdims, axes)


def sink_inverse_with_keepdims(graph):
    return sink_variant(graph, order=with_keepdims(inverse_order))


def sink_same_with_keepdims(graph):
    return sink_variant(graph, order=with_keepdims(lambda perm, *given: tuple(range(len(perm)))))


def sink_gaps(graph):
    """Leaves the numbers of x's axes as they are, with gaps."""
    return sink_variant(graph, order=lambda perm, gone, keepdims, axes: (
        tuple(axis for axis in perm if keepdims or axis not in gone)))


def sink_forgets_keepdims(graph):
    return sink_variant(graph, order=lambda perm, gone, keepdims, axes: right_order(perm, gone, False))


def sink_drops_dimensions(graph):
    return sink_variant(graph, value=lambda axis, keepdims: Attrs(axis=axis, keepdims=False))


def sink_axis_alone(graph):
    return sink_variant(graph, value=lambda axis, keepdims: Attrs(axis=axis))


def sink_list_of_axes(graph):
    return sink_variant(graph, value=lambda axis, keepdims: Attrs(axis=list(axis), keepdims=keepdims))


def sink_array_of_axes(graph):
    return sink_variant(graph, value=lambda axis, keepdims: Attrs(axis=np.array(axis), keepdims=keepdims))


def sink_list_order(graph):
    return sink_variant(graph, order=lambda *given: list(right_order(*given)))


def sink_array_order(graph):
    return sink_variant(graph, order=lambda *given: np.array(right_order(*given), np.int64))


def sink_drops_effects(graph):
    made = sink_variant(graph)
    return Graph(graph.name, tuple(without_effects(made.nodes)), made.outputs)


def sink_and_clean(graph):
    """Deletes what is dead, effects included."""
    return needed(sink_variant(graph), lambda node: node.op == "input")


def sink_bare_type(graph):
    """Gives infer the type in place of a tuple of types."""
    return sink_variant(graph, types=lambda type: type)


def sink_stale(graph):
    return sink_variant(graph, stale=True)


def sink_other_reductions(graph):
    return sink_variant(graph, ops=("sum", "max", "min", "prod", "mean", "any", "all"))


def sink_numpy_integers(graph):
    return sink_variant(graph, order=lambda *given: tuple(np.array(right_order(*given), dtype=np.int64)))


def sink_old_type(graph):
    return sink_variant(graph, typed=False)


def sink_minima_too(graph):
    return sink_variant(graph, ops=("sum", "max", "min"))


def sink_every_reduction(graph):
    return sink_variant(graph, ops=[op for op, facts in OPS.items() if facts.kind is Kind.REDUCTION])


def sink_means_too(graph):
    return sink_variant(graph, ops=("sum", "max", "mean"))


def sink_sums_only(graph):
    return sink_variant(graph, ops=("sum",))


def sink_maxima_only(graph):
    return sink_variant(graph, ops=("max",))


def sink_one_axis_only(graph):
    return sink_variant(graph, fits=lambda node: len(node.value.axis) == 1)


def sink_without_keepdims_only(graph):
    return sink_variant(graph, fits=lambda node: not node.value.keepdims)


def sink_counted_from_0_only(graph):
    return sink_variant(graph, fits=lambda node: min(node.value.axis) >= 0)


def sink_with_one_reader(graph):
    """Leaves a transpose that others read, too."""
    read = users(graph)
    public = [value for _, value in graph.outputs]

    def fits(node):
        return len(read[node.inputs[0]]) + public.count(node.inputs[0]) < 2

    return sink_variant(graph, fits=fits)


def sink_first_axis(graph):
    """Reduces the first of several axes."""
    return sink_variant(graph, axes=lambda perm, axes: right_axes(perm, axes)[:1])


def sink_first_low_axis(graph):
    """Reduces the first of several axes, and leaves the right ones."""
    return sink_variant(graph, low_axes=lambda perm, axes: right_axes(perm, axes)[:1])


def closing_gaps(shift: Callable[[int, list], int]):
    """An order whose numbers are too large by the axes that are gone, less this shift."""
    return lambda perm, gone, keepdims, axes: tuple(
        axis - (0 if keepdims else shift(axis, gone)) for axis in perm if keepdims or axis not in gone)


def sink_closes_one_gap(graph):
    """Takes 1 from each number above the first axis that is gone."""
    return sink_variant(graph, order=closing_gaps(lambda axis, gone: axis > gone[0]))


def sink_closes_all_gaps(graph):
    """Takes all that are gone from each number above the lowest of them."""
    return sink_variant(graph, order=closing_gaps(lambda axis, gone: len(gone) * (axis > min(gone))))


def sink_swaps_names(graph):
    """The reduction keeps the name, and the transpose gets a new one that nobody reads."""
    nodes, old = [], defs(graph)
    for node in sink_variant(graph).nodes:
        if node.name.endswith(".low"):
            node = replace(node, name=node.name.removesuffix(".low"))
        elif node.op == "transpose" and old[node.name].op != "transpose":
            node = replace(node, name=node.name + ".t", inputs=(node.name,))
        else:
            node = replace(node, inputs=tuple(name.removesuffix(".low") for name in node.inputs))
        nodes.append(node)
    return Graph(graph.name, tuple(nodes), graph.outputs)


def sink_negative(graph):
    """Sinks a transpose through max. Negative axes stay as they are: they count from the end."""
    nodes, known = [], {}
    for node in graph.nodes:
        if node.op == "max" and known[node.inputs[0]].op == "transpose":
            source = known[node.inputs[0]]
            perm, keepdims = source.value.perm, node.value.keepdims
            axes = [perm[axis] if axis >= 0 else axis for axis in node.value.axis]
            attrs = Attrs(axis=tuple(axes), keepdims=keepdims)
            type = infer(OPS["max"], (known[source.inputs[0]].type,), attrs)
            low = Node(node.name + ".low", "max", source.inputs, attrs, type)
            gone = [axis % len(perm) for axis in axes]
            kept = [axis for axis in perm if keepdims or axis not in gone]
            order = tuple(sorted(kept).index(axis) for axis in kept)
            node = Node(node.name, "transpose", (low.name,), Attrs(perm=order), node.type)
            known[low.name] = low
            nodes.append(low)
        known[node.name] = node
        nodes.append(node)
    return Graph(graph.name, tuple(nodes), graph.outputs)


# ---- why a graph refutes nothing ------------------------------------------------------------------------------------


def why_in_either_order(graph: Graph, got: Graph) -> str:
    """Why ``cancel_backwards`` does no harm here."""
    pairs, made = [], {}  # made: value -> the permutation that the pass has made of its transposes
    for node in dce(graph).graph.nodes:
        if node.op == "transpose":
            p, q = made.get(node.inputs[0]), node.value.perm
            pairs += [(p, q)] if p else []
            q = compose_in_one_line(p, q) if p else q
            made |= {node.name: q} if q != tuple(range(len(q))) else {}
    if not pairs:
        return ("The pass composes two permutations where a transpose reads a transpose, and an output needs it. Here that"
                " is nowhere.")
    if any(compose_in_one_line(p, q) != compose_in_one_line(q, p) for p, q in pairs):
        return ("Here p[q] and q[p] are not the same, but no output shows it. Let each axis have a length of 2 or more, and"
                " let the second transpose be an output.")
    why = {(p, q): why_they_commute(p, q) for p, q in pairs}
    if len(why) == 1:
        return f"Here p[q] and q[p] are the same: {why[pairs[0]]}. Take two others."
    each = "; ".join(f"for {p} and {q}, {reason}" for (p, q), reason in why.items())
    return f"Wherever the pass composes here, p[q] and q[p] are the same: {each}. Take others."


def why_they_commute(p, q) -> str:
    still = tuple(range(len(p)))
    reasons = {
        "with fewer than three axes they always are": len(p) < 3,
        "one of the two moves no axis": still in (p, q),
        "the two are equal": p == q,
        "the two undo each other": compose_in_one_line(p, q) == still,
        "no axis is moved by both": all(still[axis] in (p[axis], q[axis]) for axis in still),
        "these two may change places": True,
    }
    return next(reason for reason, true in reasons.items() if true)


def why_the_right_axes(graph: Graph, got: Graph) -> str:
    """Why ``sink_negative`` does no harm here."""
    nodes = defs(graph)
    maxima = [node for node in dce(graph).graph.nodes if node.op == "max"]
    sunk = [(node.value.axis, nodes[node.inputs[0]].value.perm) for node in maxima if nodes[node.inputs[0]].op == "transpose"]
    negative = [(axes, perm) for axes, perm in sunk if min(axes, default=0) < 0]
    wrong = [(axes, perm) for axes, perm in negative if {perm[axis] for axis in axes} != {
        perm[axis] if axis >= 0 else axis % len(perm) for axis in axes}]
    return next(sentence for true, sentence in (
        (not maxima, "This pass touches max, and nothing else. Here no output needs one."),
        (not sunk, "The pass sinks a transpose through a max that reads it. Here no max does."),
        (not negative, "It renumbers the axes from 0 on, and leaves negative ones. Which axis of x is the last axis of t?"),
        (all(len(axes) == len(perm) for axes, perm in negative), "Here every axis is reduced, so no number can be the"
         " wrong one. Leave one axis."),
        (not wrong, "Here the axes of x that the pass reduces are the right ones, by luck. Let the transpose put another"
         " axis of x in the place that the negative number means."),
        (True, "It reduces a wrong axis of x here, but no output shows it. Let each axis have a length of 2 or more, and let"
         " the max be an output."),
    ) if true)


EXERCISES = (
    Exercise(
        "10", "One permutation instead of two", compose,
        lambda function: judge_calls(function, compose_cases(), compose, explain=explain_compose),
        ("Begin at the result. Its axis i is some axis of the middle, and that one is some axis of x.",
         "Axis i of the result is axis q[i] of the middle, and axis a of the middle is axis p[a] of x. Put one into"
         " the other.",
         "perm = []\nfor axis in q:        # an axis of the middle\n    perm.append(...)  # which axis of x is"
         " that?\nreturn tuple(perm)"),
        (Mistake(compose_backwards, "wrong-value", "This is q, then p. The second transpose sees the middle, so q is"
                 " asked first,"
                 " and p says what that axis was in x."),
         Mistake(compose_positions, "wrong-value", "p.index(axis) asks where an axis of x went. The question is which"
                 " axis of x stands"
                 " at this place, and that is p[axis]."),
         Mistake(compose_as_list, "wrong-value", "This is a list: a permutation is kept as a tuple."),
         Mistake(compose_numpy_integers, "wrong-value", "These are NumPy's integers, and an IR keeps Python's:"
                 " int(axis) makes one."),
         Mistake(compose_the_second, "wrong-value", "This is q alone: the first transpose is forgotten."),
         Mistake(compose_sums, "wrong-value", "Permutations are not added. Follow one axis through both."),
         Mistake(compose_equal_cancels, "wrong-value", "Two equal permutations cancel only where each of them is its"
                 " own inverse, as"
                 " a swap is. A rotation of three axes needs three turns."),
         Mistake(compose_places, "wrong-value", "This puts p's axes where q points to, and so undoes q in place of"
                 " doing it.")),
        (compose_in_one_line, compose_by_numpy),
        probes=tuple(compose_cases()),
        praise="compose(p, q) is p[q]: any chain of transposes is one transpose.",
    ),
    Exercise(
        "10", "Cancel transposes", cancel_transposes,
        lambda function: judge_pass(function, CANCEL_SPACE, cancel_transposes, left=stacked, targets=CANCEL_TARGETS),
        ("A transpose of a transpose is one transpose of the value behind both. Compose first; then see whether"
         " anything is left to do.",
         "Walk the nodes in order, and keep the new nodes by name. A transpose whose operand is a transpose reads"
         " that one's operand,"
         " by the composed permutation. If the permutation is (0, 1, 2, ...), make no node: note in a dict that its"
         " name stands for"
         " its operand, and look names up there, also for the outputs.",
         "nodes, known, stands_for = [], {}, {}\nfor node in graph.nodes:\n    inputs = tuple(stands_for.get(...) for"
         " name in"
         " node.inputs)\n    value = node.value\n    if node.op == 'transpose':\n        perm, source = value.perm,"
         " known[inputs[0]]\n"
         "        if source.op == 'transpose':\n            perm, inputs = ...\n        if perm =="
         " tuple(range(len(perm))):\n"
         "            stands_for[node.name] = ...\n            continue\n        value = Attrs(perm=perm)\n   "
         " ...\nreturn Graph(...)"),
        (Mistake(cancel_backwards, "wrong-value", "The permutations are composed backwards. On a matrix that makes no"
                 " difference; where three axes move, it does: p[q], not q[p]."),
         Mistake(cancel_the_equal, "wrong-value", "Two equal permutations cancel only where each is its own inverse."
                 " Compose, and see"
                 " whether the identity is left."),
         Mistake(cancel_only_the_equal, "wrong-value", "Two equal permutations cancel only where each is its own"
                 " inverse. Compose, and see whether the identity is left."),
         Mistake(cancel_by_positions, "wrong-value", "p.index(axis) asks where an axis of x went. The question is which"
                 " axis of x stands at this place, and that is p[axis]."),
         Mistake(cancel_what_keeps_its_type, "wrong-value", "An equal type proves nothing: on a square or a cube, every"
                 " transpose has the type of its operand. Look at the permutation."),
         Mistake(cancel_by_shape, "wrong-value", "An equal shape proves nothing: on a square or a cube, every"
                 " transpose has the shape of"
                 " its operand."),
         Mistake(cancel_reads_the_middle, "wrong-value", "The composed permutation holds for the value behind both"
                 " transposes. Yours reads"
                 " the one in the middle still."),
         Mistake(cancel_through_neg, "wrong-value", "Between these two transposes there is another operation, and it"
                 " must be computed:"
                 " look through transposes only."),
         Mistake(cancel_inverses_only, "did-nothing", "Two transposes that do not cancel are one transpose all the"
                 " same."),
         Mistake(cancel_few_identities, "did-nothing", "This permutation moves no axis, and is none of those that you list:"
                 " compare it with tuple(range(len(perm)))."),
         *(Mistake(function, "wrong-value", "That one axis is in its place says nothing of the others: compare the whole"
                   " permutation.") for function in (cancel_by_the_first_axis, cancel_by_the_last_axis, cancel_by_the_ends)),
         Mistake(cancel_with_one_reader, "did-nothing", "The first transpose may have other readers, and stays for them."
                 " The second one can read past it all the same."),
         Mistake(cancel_keeps_the_type, "invalid", "This is the first transpose's type. The new node has the type of the"
                 " second one, whose name it keeps."),
         *(Mistake(function, "lost", "A print is live by itself, and so is what it reads. Take out transposes, and nothing"
                   " else: deleting is for dce.") for function in (cancel_drops_effects, cancel_and_clean)),
         *(Mistake(function, "invalid", "This permutation is an array. Attributes hold tuples of ints:"
                   " tuple(int(axis) for axis in perm).") for function in (cancel_as_array, cancel_by_arrays)),
         Mistake(cancel_kept_as_list, "invalid", "This permutation is a list. Attributes hold tuples:"
                 " Attrs(perm=tuple(perm))."),
         Mistake(cancel_keeps_identities, "did-nothing", "A permutation that leaves every axis in its place is no"
                 " transpose: whoever"
                 " read it can read its operand."),
         Mistake(cancel_stale, "did-nothing", "The operand may have been rewritten already. Look at the new node, not"
                 " at the one in the"
                 " old graph, and a chain of three becomes one."),
         Mistake(cancel_as_list, "invalid", "This permutation is a list. Attributes hold tuples, and a list is equal"
                 " to no tuple, not"
                 " even (0, 1, 2)."),
         Mistake(cancel_numpy_integers, "invalid", "These are NumPy's integers. Attributes hold Python's: int(axis)"
                 " makes one."),
         Mistake(cancel_renames, "not-idempotent", "A transpose keeps its name and type: give the new node node.name, and"
                 " whoever read it reads it still."),
         Mistake(cancel_renames_outputs, "lost", "An output is a pair (public name, value name). The callers know the public"
                 " name, and it stays; put what stands for the value in the second place alone."),
         Mistake(cancel_forgets_outputs, "invalid", "An output may read the transpose that is gone: give it what"
                 " stands for it."),
         Mistake(cancel_forgets_operands, "invalid", "Whoever read the transpose that is gone must read what stands"
                 " for it."),
         Mistake(cancel_deletes_the_first, "invalid", "The first transpose may have other readers. Leave it: what is"
                 " dead is for dce.")),
        (cancel_from_the_root, cancel_by_the_package),
        probes=tuple((graph,) for graph in CANCEL_TARGETS),
        praise="No list of pairs that cancel: you compose, and the identity falls out as one case. The first"
               " transposes that nobody reads"
               " are for dce.",
        is_pass=True,
    ),
    Exercise(
        "10", "A flag instead of a transpose", absorb_into_matmul,
        lambda function: judge_pass(function, ABSORB_SPACE, absorb_into_matmul, left=absorbable,
                                    targets=ABSORB_TARGETS),
        ("Two swaps of the last two axes are none, so a transpose flips a flag; it does not set it.",
         "For each matmul and each of its two operands: is it a transpose whose permutation is (0, ..., n-3, n-1,"
         " n-2)? Then read its"
         " operand, flip that side's flag, and look again.",
         "for node in graph.nodes:\n    if node.op == 'matmul':\n        inputs, flags = list(node.inputs),"
         " dict(node.value)\n"
         "        for place, flag in enumerate(('transpose_a', 'transpose_b')):\n            operand ="
         " known[inputs[place]]\n"
         "            swap = ...\n            while operand.op == 'transpose' and operand.value.perm == swap:\n      "
         "          ...\n"
         "        node = Node(..., Attrs(**flags), ...)\n    ..."),
        (Mistake(absorb_sets_the_flag, "wrong-value", "The flag may be set already, and then the transpose undoes it:"
                 " flip it."),
         Mistake(absorb_no_flag, "wrong-value", "The matmul reads the matrix itself now, so its flag must say that"
                 " the axes are swapped."),
         Mistake(absorb_crossed, "wrong-value", "transpose_a is for the first operand, and transpose_b for the"
                 " second."),
         Mistake(absorb_any_permutation, "wrong-value", "A flag swaps the last two axes. A transpose that moves"
                 " others is no flag."),
         Mistake(absorb_last_comes_first, "wrong-value", "The last axis is one place further left, but the others"
                 " must be as they were:"
                 " compare the whole permutation."),
         Mistake(absorb_last_but_one_comes_last, "wrong-value", "The last axis but one comes last, but the others must"
                 " be where a swap of two puts them: compare the whole permutation."),
         Mistake(absorb_last_two_only, "wrong-value", "The last two axes are swapped here, but others have moved as"
                 " well: compare the whole permutation."),
         Mistake(absorb_any_last_two, "wrong-value", "The last two axes stand here as they did, so there is nothing to"
                 " flip: ask whether they are swapped."),
         Mistake(absorb_forgets_flags, "wrong-value", "A flag may be set already. Begin with the matmul's own flags:"
                 " dict(node.value)."),
         Mistake(absorb_one_flag, "invalid", "Attrs holds what it is given, and a matmul has both flags: begin with"
                 " dict(node.value)."),
         Mistake(absorb_numpy_bools, "invalid", "Flags are Python's True and False, not NumPy's, and not 0 and 1:"
                 " bool(flag) makes one."),
         *(Mistake(function, "wrong-value", "Only a matmul has a flag. Its operand changes; whoever else reads the"
                   " transpose still needs it.") for function in (absorb_for_every_reader, absorb_for_every_node)),
         Mistake(absorb_backwards, "wrong-value", "Turned round, (0, 1, 2) is (2, 1, 0), and that swaps the first axis with"
                 " the last. A flag swaps the last two: (0, 2, 1)."),
         Mistake(absorb_compares_with_a_list, "did-nothing", "A permutation is a tuple, and no list is equal to it: compare"
                 " with a tuple."),
         Mistake(absorb_with_one_reader, "did-nothing", "The transpose may have other readers, and stays for them. This"
                 " matmul can read past it all the same."),
         Mistake(absorb_forgets_outputs, "invalid", "An output may read the transpose, too. Leave it: what is dead is for"
                 " dce."),
         *(Mistake(function, "lost", "A print is live by itself, and so is what it reads. Rewrite each matmul, and keep"
                   " every node: deleting is for dce.") for function in (absorb_drops_effects, absorb_and_clean)),
         Mistake(absorb_second_only, "did-nothing", "The first operand may be a transpose, too."),
         Mistake(absorb_one_operand, "did-nothing", "Both operands may be transposes: where the first one is, look at"
                 " the second one all the same."),
         Mistake(absorb_up_to_three_axes, "did-nothing", "There may be four axes, or more: make the permutation that"
                 " swaps the last two from their number."),
         Mistake(absorb_matrices_only, "did-nothing", "With more axes, matmul multiplies stacks of matrices, and the"
                 " flags swap the last"
                 " two axes: (0, 2, 1) is a flag as well."),
         Mistake(absorb_once, "did-nothing", "Behind the transpose there may be another one. Look again, until there"
                 " is none."),
         Mistake(absorb_deletes, "invalid", "The transpose may have other readers. Leave it: what is dead is for"
                 " dce.")),
        (absorb_one_at_a_time, absorb_by_the_package, absorb_and_sweep),
        probes=tuple((graph,) for graph in ABSORB_TARGETS),
        praise="The product is told how its operand lies, and nothing is copied. Libraries for products have had"
               " these flags since 1990.",
        is_pass=True,
    ),
    Exercise(
        "10", "Sink through a reduction", sink_through_reduction,
        lambda function: judge_pass(function, SINK_SPACE, sink_through_reduction, left=unsunk, targets=SINK_TARGETS,
                                    idempotent=False, keeps=other_reductions),
        ("Say of each axis of the transpose which axis of x it is: that tells you what to reduce, and what is left in"
         " which order.",
         "The reduced axes are perm[axis]. The others are left, in the order of perm, and the reduction of x gives"
         " them sorted. So the"
         " new transpose has, for each axis that is left, its place among the sorted ones. With keepdims all axes are"
         " left. Keep the new nodes by name: the reduction is a transpose now, for whoever reduces it again.",
         "gone = [perm[axis] for axis in node.value.axis]\nlow = Node(node.name + '.low', ..., Attrs(axis=...,"
         " keepdims=...), infer(...))\n"
         "kept = [axis for axis in perm if keepdims or axis not in gone]\norder = tuple(... for axis in kept)\n"
         "node = Node(node.name, 'transpose', (low.name,), Attrs(perm=order), node.type, node.origin)"),
        (Mistake(sink_same_axes, "wrong-value", "The axes are numbered as in the transpose. In x they have other"
                 " numbers: perm[axis]."),
         Mistake(sink_keeps_negative, "wrong-value", "A negative axis counts from the end of the transpose, and the"
                 " last axis of x is"
                 " another one: renumber it, too."),
         *(Mistake(function, "wrong-value", "Axis i of the transpose is axis perm[i] of x; perm.index goes the other"
                   " way. Swaps do not tell them apart, rotations do.")
           for function in (sink_inverse_axes, sink_inverse_low_axes)),
         Mistake(sink_same_order, "wrong-value", "The axes that are left stand in x's order now, and this transpose"
                 " moves none of them: it must put them back."),
         Mistake(sink_no_order, "wrong-value", "The axes that are left stand in x's order now: transpose the result."),
         Mistake(sink_inverse_order, "wrong-value", "The new transpose goes the wrong way round. Axis i of the result"
                 " is the place of the"
                 " i-th kept axis among the sorted ones."),
         Mistake(sink_gaps, "invalid", "The axes that are left must be numbered anew, without gaps."),
         Mistake(sink_forgets_keepdims, "invalid", "With keepdims the result has as many axes as x, and all of them"
                 " are transposed back."),
         *(Mistake(function, "invalid", "A negative axis is none of 0, 1, 2, ..., so nothing is found to be gone:"
                   " count it from the end first, axis % len(perm).")
           for function in (sink_negative_stays, sink_negative_everywhere)),
         Mistake(sink_inverse_with_keepdims, "invalid", "With keepdims all axes are left, and so the new transpose has"
                 " the permutation of the old one, not its inverse."),
         Mistake(sink_same_with_keepdims, "invalid", "With keepdims all axes are left, and x's order is not the order"
                 " of the old result: the new transpose has the permutation of the old one."),
         Mistake(sink_drops_dimensions, "invalid", "Here keepdims is True, and the reduction of x has to have it, too."),
         Mistake(sink_axis_alone, "raises", "Attrs holds what it is given, and a reduction has both axis and keepdims."),
         Mistake(sink_list_of_axes, "raises", "These axes are a list. Attributes hold tuples: tuple(axes) makes one."),
         Mistake(sink_array_of_axes, "raises", "These axes are an array. Attributes hold tuples of ints:"
                 " tuple(int(axis) for axis in axes)."),
         Mistake(sink_list_order, "invalid", "This permutation is a list. Attributes hold tuples: Attrs(perm=tuple(order))."),
         Mistake(sink_array_order, "invalid", "This permutation is an array. Attributes hold tuples of ints:"
                 " tuple(int(axis) for axis in order)."),
         *(Mistake(function, "lost", "A print is live by itself, and so is what it reads. Keep every other node: deleting is"
                   " for dce.") for function in (sink_drops_effects, sink_and_clean)),
         Mistake(sink_bare_type, "raises", "infer takes a tuple of types, one an operand: (type_of_x,), with the comma."),
         Mistake(sink_numpy_integers, "invalid", "These are NumPy's integers. Attributes hold Python's: int(axis)"
                 " makes one."),
         Mistake(sink_old_type, "invalid", "The reduction of x has another shape than that of its transpose: infer"
                 " tells its type."),
         Mistake(sink_stale, "did-nothing", "What this reduction reads may have become a transpose just now: look at the"
                 " new node of that name, not at the one in the old graph."),
         *(Mistake(function, "changed", 'Ask for "sum" and "max" by name. Others were to stay: min could sink as well, but'
                   " the mean of floats may round otherwise.")
           for function in (sink_other_reductions, sink_minima_too, sink_means_too)),
         Mistake(sink_every_reduction, "raises", 'Ask for "sum" and "max" by name. Not every reduction has a tuple of axes:'
                 " that of argmax is an int."),
         Mistake(sink_sums_only, "did-nothing", "max may sink as well."),
         Mistake(sink_maxima_only, "did-nothing", "sum may sink as well."),
         Mistake(sink_one_axis_only, "did-nothing", "A reduction may have several axes: renumber each."),
         Mistake(sink_without_keepdims_only, "did-nothing", "With keepdims it may sink as well: then all axes are left."),
         Mistake(sink_counted_from_0_only, "did-nothing", "With a negative axis it may sink as well: count from the end,"
                 " axis % len(perm)."),
         Mistake(sink_with_one_reader, "did-nothing", "The transpose may have other readers, and stays for them. This"
                 " reduction can read past it all the same."),
         *(Mistake(function, "invalid", "Here several axes are reduced, and yours reduces the first of them alone: renumber"
                   " each.") for function in (sink_first_axis, sink_first_low_axis)),
         *(Mistake(function, "invalid", "Each axis that is left moves down by as many as are gone below it. With several"
                   " gone, that may differ from axis to axis.") for function in (sink_closes_one_gap, sink_closes_all_gaps)),
         Mistake(sink_swaps_names, "wrong-value", "Whoever read the reduction reads its name, and needs the old order: the"
                 " transpose keeps the name, and the reduction of x gets the new one.")),
        (sink_clean, sink_by_insertion, sink_in_any_order),
        probes=tuple((graph,) for graph in SINK_TARGETS),
        praise="Integers here, for a float sum would add in another order and round otherwise. The transpose below is"
               " smaller by the"
               " axes that are gone.",
        stretch=True,
    ),
)  # fmt: skip

REFUTATIONS = (
    Refutation(
        "10", cancel_backwards,
        parse("graph mine(x: f32[2,3,4]) -> (y) {\n  t = transpose(x) {perm=[1,0,2]}\n  y = transpose(t)"
              " {perm=[1,0,2]}\n  return y\n}"),
        parse("graph mine(x: f32[2,2,2]) -> (y) {\n  t = transpose(x) {perm=[1,2,0]}\n  y = transpose(t)"
              " {perm=[1,0,2]}\n  return y\n}"),
        why_in_either_order,
        "Composing is not commutative. With two axes there is only one swap, so a test with matrices never sees this"
        " mistake.",
    ),
    Refutation(
        "10", sink_negative,
        parse("graph mine(x: f32[3,3]) -> (y) {\n  t = transpose(x) {perm=[1,0]}\n  y = max(t) {axis=[0]}\n  return"
              " y\n}"),
        parse("graph mine(x: f32[3,3]) -> (y) {\n  t = transpose(x) {perm=[1,0]}\n  y = max(t) {axis=[-1]}\n  return"
              " y\n}"),
        why_the_right_axes,
        "Count from the end first, and renumber then. On a square matrix the verifier has no objection: the shapes"
        " are right, and the"
        " numbers are not.",
    ),
)  # fmt: skip
