"""Chapter 06, common subexpressions and pass order: the exercises, their mistakes and the passes to refute."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace

import numpy as np

from ...ir import Builder, Graph, Node, defs
from ...ops import OPS
from ...passes import cse as package_cse
from ...passes import dce, fold, simplify
from ...text import parse
from ...types import Const, splat
from ..exact import article
from ..exercise import Exercise, Mistake, Refutation
from ..graphs import Space
from ..judge import judge_calls, judge_one, judge_pass

SPACE = Space(
    inputs=(("x", "f32[2,2]"), ("y", "f32[2,2]")),
    consts=(("zero", 0.0, "f32[]"), ("minus", -0.0, "f32[]")),
    ops=(("mul", {}), ("sub", {}), ("maximum", {}), ("sum", {"axis": (0,)}), ("sum", {"axis": (1,)}),
         ("print", {"label": "seen"}), ("random", {"shape": (2, 2), "dtype": "f32", "dist": "uniform"})),
    limit=1000, larger=200,
)  # fmt: skip

TWICE = parse("graph twice(x: f32[4], y: f32[4]) -> (out) {\n a = mul(x, y)\n b = mul(y, x)\n c = exp(a)\n d = exp(b)\n out = add(c, d)\n return out\n}")


def two_constants(name: str, one: np.ndarray, other: np.ndarray) -> Graph:
    builder = Builder(name)
    return builder.build({"a": builder.const(one), "b": builder.const(other)})


def middle(value: float) -> np.ndarray:
    array = np.zeros(2000, np.float32)
    array[1000] = value
    return array


def two_chains(length: int) -> Graph:
    builder = Builder("chains")
    ends = [builder.input("x", "f32[4]")] * 2
    for _ in range(length):
        ends = [builder.emit("neg", end) for end in ends]
    return builder.build({"a": ends[0], "b": ends[1]})


TARGETS = (
    two_constants("zeros", np.float32(0.0), np.float32(-0.0)),
    two_constants("dtypes", np.int32(0), np.float32(0.0)),
    two_constants("truths", np.uint8(1), np.bool_(True)),
    two_constants("shapes", np.zeros((2, 1), np.float32), np.zeros((1, 2), np.float32)),
    two_constants("close", np.float64(1.0), np.nextafter(1.0, 2.0)),
    two_constants("long", middle(1.0), middle(2.0)),
    two_constants("widths", np.float32(0.5), np.float64(0.5)),
    two_constants("nans", np.float32(np.nan), np.float32(np.nan)),
    parse("graph same() -> (a, b) {\n a = const([1, 2, 3]) : i16[3]\n b = const([1, 2, 3]) : i16[3]\n return a, b\n}"),
    parse("graph axes(x: f32[2,2]) -> (a, b) {\n a = sum(x) {axis=[0]}\n b = sum(x) {axis=[1]}\n return a, b\n}"),
    parse("graph from_the_end(x: f32[2,2]) -> (a, b) {\n a = argmax(x) {axis=-1}\n b = argmax(x) {axis=-2}\n return a, b\n}"),
    parse("graph kept(x: f32[1,1]) -> (a, b) {\n a = sum(x) {axis=[0]}\n b = sum(x) {axis=[0], keepdims=true}\n return a, b\n}"),
    parse("graph casts(x: f32[4]) -> (a, b) {\n a = cast(x) {dtype=f16}\n b = cast(x) {dtype=i32}\n return a, b\n}"),
    parse("graph draws() -> (a, b) {\n a = random() {shape=[3], site=0}\n b = random() {shape=[3], site=1}\n return a, b\n}"),
    parse("graph turned(x: f32[4], y: f32[4]) -> (a, b) {\n a = sub(x, y)\n b = sub(y, x)\n return a, b\n}"),
    parse("graph commuting(x: f32[4], y: f32[4]) -> (a, b) {\n a = add(x, y)\n b = add(y, x)\n return a, b\n}"),
    parse("graph equal(x: i32[4], y: i32[4]) -> (a, b) {\n a = eq(x, y)\n b = eq(y, x)\n return a, b\n}"),
    parse("graph larger(x: f32[4]) -> (a, b) {\n z = const(0.0) : f32[4]\n a = maximum(x, z)\n b = maximum(z, x)\n return a, b\n}"),
    parse("graph names(a: f32[4], aa: f32[4]) -> (p, q) {\n p = sub(a, aa)\n q = sub(aa, a)\n return p, q\n}"),
    parse("graph functions(x: f32[4]) -> (a, b) {\n a = neg(x)\n b = abs(x)\n return a, b\n}"),
    parse("graph inputs(x: f32[4], y: f32[4]) -> (a) {\n a = sub(x, y)\n return a\n}"),
    parse("graph seen(x: f32[4]) -> (x) {\n p = print(x) {label=\"seen\"}\n q = print(x, p) {label=\"seen\"}\n return x\n}"),
    parse("graph choices(c: bool[4], x: f32[4], y: f32[4]) -> (a, b) {\n a = where(c, x, y)\n b = where(c, y, x)\n return a, b\n}"),
    parse("graph layouts(x: f32[2,2]) -> (b, d, f) {\n a = reshape(x) {shape=[4]}\n b = reshape(x) {shape=[4]}\n"
          " c = concat(x, x) {axis=0}\n d = concat(x, x) {axis=0}\n e = matmul(x, x)\n f = matmul(x, x)\n return b, d, f\n}"),
    parse("graph lines(x: f32[4]) -> (a, b) {\n a = neg(x)  # model.py:3\n b = neg(x)  # model.py:7\n return a, b\n}"),
    parse("graph three(x: f32[4]) -> (a, b, c) {\n a = exp(x)\n b = exp(x)\n c = exp(x)\n return a, b, c\n}"),
    parse("graph pairs(x: f32[4]) -> (b, d) {\n a = neg(x)\n b = neg(x)\n c = abs(x)\n d = abs(x)\n return b, d\n}"),
    parse("graph deeper(x: f32[4]) -> (c, d) {\n a = neg(x)\n b = neg(x)\n c = abs(a)\n d = abs(b)\n return c, d\n}"),
    two_chains(6),
    TWICE,
    parse("graph alike(x: f32[4]) -> (first, second) {\n a = exp(x)\n b = exp(x)\n return first = a, second = b\n}"),
)  # fmt: skip


def merge_all(graph: Graph) -> Graph:
    """What a right solution leaves."""
    return package_cse(graph).graph


# ---- the key --------------------------------------------------------------------------------------------------------


def cse_key(node):
    """What decides this node's value: two nodes with equal keys are computed once.
    None: never merge this node.

    A key is a tuple, because it is looked up in a dict. It has the operation, the operands, and
    ``node.value``: the attributes, or the constant (a Const compares dtype, shape and bits). Where
    ``OPS[node.op].commutative``, the order of the operands must not matter. Where not
    ``OPS[node.op].mergeable`` (inputs, draws, effects), the answer is None. The node's own name must
    not be in the key. Example: a = mul(x, y) and b = mul(y, x) have one key.
    """
    ### BEGIN SOLUTION
    if not OPS[node.op].mergeable:
        return None
    operands = node.inputs
    if OPS[node.op].commutative:
        operands = tuple(sorted(operands))
    return node.op, operands, node.value
    ### END SOLUTION


def merge_by(key: Callable[[Node], Hashable]) -> Callable[[Graph], Graph]:
    """The pass of a key function: a forward walk that keeps the first node of each key."""

    def merged(graph: Graph) -> Graph:
        first, alias, nodes = {}, {}, []
        for node in graph.nodes:
            node = replace(node, inputs=tuple(alias.get(name, name) for name in node.inputs))
            found = key(node)
            try:
                there = first.setdefault(found, node.name) if found is not None else node.name
            except TypeError:
                raise TypeError(f"a dict cannot look up this key: {unhashable(found)}") from None
            if there == node.name:
                nodes.append(node)
            else:
                alias[node.name] = there
        outputs = tuple((public, alias.get(value, value)) for public, value in graph.outputs)
        return Graph(graph.name, tuple(nodes), outputs)

    return merged


def unhashable(key) -> str:
    """What in a key no dict can look up."""
    if isinstance(key, tuple):
        inside = next((part for part in key if not is_hashable(part)), key)
        return unhashable(inside) if isinstance(inside, tuple) else f"it holds {article(inside)}"
    return f"it is {article(key)}"


def is_hashable(value) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def right_key(node):
    """The solution without its markers; the mistakes below change one thing of it."""
    if not OPS[node.op].mergeable:
        return None
    return node.op, tuple(sorted(node.inputs)) if OPS[node.op].commutative else node.inputs, node.value


def key_as_text(node):
    if OPS[node.op].mergeable:
        inputs = sorted(node.inputs) if OPS[node.op].commutative else node.inputs
        return f"{node.op} {' '.join(inputs)} {node.type} {node.value!r}"


def key_with_sets(node):
    row = OPS[node.op]
    if not row.mergeable:
        return None
    if node.op == "const":
        return node.value
    return (node.op, frozenset(node.inputs) if row.commutative else node.inputs, node.value, node.type)


def key_attributes(node):
    """Forgets the attributes."""
    key = right_key(node)
    return key and (*key[:2], node.value if node.op == "const" else None)


def key_without_value(node):
    """Forgets attributes and constants alike."""
    key = right_key(node)
    return key and key[:2]


def key_type_for_value(node):
    key = right_key(node)
    return key and (*key[:2], node.type)


def key_numbers(node):
    """Constants by their numbers, as Python compares them."""
    key = right_key(node)
    if node.op == "const":
        return node.type, tuple(node.value.array.ravel().tolist())
    return key


def key_draws(node):
    """Two draws of one shape, type and distribution are the same to it."""
    if node.op == "random":
        return node.op, node.value.shape, node.value.dtype, node.value.dist
    return right_key(node)


def key_any_order(node):
    key = right_key(node)
    return key and (node.op, tuple(sorted(node.inputs)), node.value)


def key_one_order(node):
    return (node.op, node.inputs, node.value) if OPS[node.op].mergeable else None


def key_never_none(node):
    return node.op, tuple(sorted(node.inputs)) if OPS[node.op].commutative else node.inputs, node.value


def key_named(node):
    key = right_key(node)
    return key and (node.name, *key)


def key_operands(node):
    key = right_key(node)
    return key and key[1:]


def key_hashed(node):
    key = right_key(node)
    return key and hash(key)


def key_bytes(node):
    if node.op == "const":
        return bytes(node.value.data)
    return right_key(node)


def key_printed(node):
    if node.op == "const":
        return node.type, str(node.value.array)
    return right_key(node)


def key_no_constants(node):
    return None if node.op == "const" else right_key(node)


def key_list(node):
    key = right_key(node)
    return key and list(key)


def key_sorted_list(node):
    if OPS[node.op].mergeable:
        return node.op, sorted(node.inputs) if OPS[node.op].commutative else node.inputs, node.value


def key_lists_inside(node):
    key = right_key(node)
    return key and (key[0], list(key[1]), key[2])


# ---- the pass -------------------------------------------------------------------------------------------------------


def cse(graph):
    """Merge the nodes that compute the same value: the first one stays, the others go. Graph -> Graph.

    Two nodes are the same value when operation, operands and ``node.value`` are equal, where the
    operands' order does not count if ``OPS[node.op].commutative``; only nodes with
    ``OPS[node.op].mergeable`` are merged. A value that was merged away is replaced by the one that
    stays, in operands and in outputs (whose public names stay). One forward walk is enough if the
    operands are replaced before the node is looked up. Example: of a = mul(x, y), b = mul(y, x),
    c = exp(a), d = exp(b) only a and c stay.
    """
    ### BEGIN SOLUTION
    first = {}  # key -> the value that has it
    alias = {}  # name that is gone -> name that stands for it
    nodes = []
    for node in graph.nodes:
        inputs = tuple(alias.get(name, name) for name in node.inputs)
        key = (node.op, tuple(sorted(inputs)) if OPS[node.op].commutative else inputs, node.value)
        if OPS[node.op].mergeable and key in first:
            alias[node.name] = first[key]
            continue
        first[key] = node.name
        nodes.append(Node(node.name, node.op, inputs, node.value, node.type, node.origin))
    outputs = tuple((public, alias.get(value, value)) for public, value in graph.outputs)
    return Graph(graph.name, tuple(nodes), outputs)
    ### END SOLUTION


def cse_by_the_package(graph):
    return package_cse(graph).graph


def cse_by_numbers(graph):
    """Value numbers as one finds them in books: integers, and a second table back to names."""
    numbers, names, table, nodes = {}, [], {}, []
    for node in graph.nodes:
        operands = [numbers[name] for name in node.inputs]
        if OPS[node.op].commutative:
            key = (node.op, *sorted(operands))
        else:
            key = (node.op, *operands, node.value) if OPS[node.op].mergeable else (node.name,)
        if key not in table:
            table[key] = len(names)
            names.append(node.name)
            nodes.append(replace(node, inputs=tuple(names[number] for number in operands)))
        numbers[node.name] = table[key]
    return Graph(graph.name, tuple(nodes), tuple((public, names[numbers[value]]) for public, value in graph.outputs))


def cse_variant(graph, key=right_key, early=False, rewire=True, outputs=True, keep=False, most=10**9):
    """The solution with one thing changed."""
    first, alias, nodes = {}, {}, []
    for node in graph.nodes:
        new = replace(node, inputs=tuple(alias.get(name, name) for name in node.inputs)) if rewire else node
        found = key(node if early else new)
        there = node.name if found is None else first.setdefault(found, node.name)
        if there != node.name and len(alias) < most:
            alias[node.name] = there
            if not keep:
                continue
        nodes.append(new)
    pairs = tuple((public, alias.get(value, value) if outputs else value) for public, value in graph.outputs)
    return Graph(graph.name, tuple(nodes), pairs)


def cse_not_rewired(graph):
    return cse_variant(graph, rewire=False)


def cse_old_outputs(graph):
    return cse_variant(graph, outputs=False)


def cse_early_key(graph):
    return cse_variant(graph, early=True)


def cse_keeps_both(graph):
    return cse_variant(graph, keep=True)


def cse_first_pair(graph):
    return cse_variant(graph, most=1)


def cse_inputs_too(graph):
    return cse_variant(graph, key=key_never_none)


def cse_none_is_a_key(graph):
    return cse_variant(graph, key=lambda node: right_key(node) or "none")


def cse_without_value(graph):
    return cse_variant(graph, key=key_without_value)


def cse_type_for_value(graph):
    return cse_variant(graph, key=key_type_for_value)


def cse_attributes(graph):
    return cse_variant(graph, key=key_attributes)


def cse_numbers(graph):
    return cse_variant(graph, key=key_numbers)


def cse_any_order(graph):
    return cse_variant(graph, key=key_any_order)


def cse_one_order(graph):
    return cse_variant(graph, key=key_one_order)


def cse_renamed(graph):
    done = cse_variant(graph)
    return Graph(done.name, done.nodes, tuple((value, value) for _, value in done.outputs))


def cse_public_alias(graph):
    done = cse_variant(graph)
    old = [value for _, value in graph.outputs]
    moved = {before: after for before, (_, after) in zip(old, done.outputs)}
    pairs = tuple((moved.get(public, public), value) for public, value in done.outputs)
    return Graph(done.name, done.nodes, pairs)


# ---- round after round ----------------------------------------------------------------------------------------------


def run_to_fixpoint(passes, graph):
    """Run ``passes`` in order, round after round, until a round changes nothing.
    Returns the tuple (graph, rounds).

    ``passes`` are functions Graph -> Graph. A round has changed nothing when the graph at its end
    equals (==) the graph at its start, so also when one pass undid what another did. This last round
    counts, too. Some passes never come to rest: after 10 rounds stop all the same. Example: on a graph
    where there is nothing to do, it returns (graph, 1).
    """
    ### BEGIN SOLUTION
    for rounds in range(1, 11):
        before = graph
        for one in passes:
            graph = one(graph)
        if graph == before:
            break
    return graph, rounds
    ### END SOLUTION


def fixpoint_by_while(passes, graph):
    rounds, changed = 0, True
    while changed and rounds < 10:
        start, rounds = graph, rounds + 1
        for function in passes:
            graph = function(graph)
        changed = start != graph
    return graph, rounds


def fixpoint_recursive(passes, graph, left=10):
    after = graph
    for function in passes:
        after = function(after)
    if after == graph or left == 1:
        return after, 11 - left
    return fixpoint_recursive(passes, after, left - 1)


def fixpoint_once(passes, graph):
    for one in passes:
        graph = one(graph)
    return graph, 1


def fixpoint_by_size(passes, graph):
    for rounds in range(1, 11):
        size = len(graph)
        for one in passes:
            graph = one(graph)
        if len(graph) == size:
            break
    return graph, rounds


def fixpoint_last_pass(passes, graph):
    for rounds in range(1, 11):
        before = graph
        for one in passes:
            before, graph = graph, one(graph)
        if graph == before:
            break
    return graph, rounds


def fixpoint_no_limit(passes, graph):
    rounds = 0
    while True:
        rounds, before = rounds + 1, graph
        for one in passes:
            graph = one(graph)
        if graph == before:
            return graph, rounds


def fixpoint_limit(passes, graph, most, same):
    """The solution with another limit or another comparison: ``same(graph, start of the round, start of all)``."""
    start = graph
    for rounds in range(1, most + 1):
        before = graph
        for one in passes:
            graph = one(graph)
        if same(graph, before, start):
            break
    return graph, rounds


def fixpoint_eleven(passes, graph):
    return fixpoint_limit(passes, graph, 11, lambda graph, before, start: graph == before)


def fixpoint_nine(passes, graph):
    return fixpoint_limit(passes, graph, 9, lambda graph, before, start: graph == before)


def fixpoint_identity(passes, graph):
    return fixpoint_limit(passes, graph, 10, lambda graph, before, start: graph is before)


def fixpoint_initial(passes, graph):
    return fixpoint_limit(passes, graph, 10, lambda graph, before, start: graph == start)


def fixpoint_any_pass(passes, graph):
    for rounds in range(1, 11):
        changed = False
        for one in passes:
            before, graph = graph, one(graph)
            changed |= graph != before
        if not changed:
            break
    return graph, rounds


def fixpoint_short_count(passes, graph):
    graph, rounds = fixpoint_by_while(passes, graph)
    return graph, rounds - 1


def fixpoint_one_by_one(passes, graph):
    total = 0
    for one in passes:
        graph, rounds = fixpoint_by_while([one], graph)
        total = max(total, rounds)
    return graph, total


def fixpoint_all_ten(passes, graph):
    for _ in range(10):
        for one in passes:
            graph = one(graph)
    return graph, 10


def fixpoint_all_passes_still(passes, graph):
    for rounds in range(1, 11):
        before = graph
        for one in passes:
            after = one(graph)
            if after == graph:
                return graph, rounds
            graph = after
        if graph == before:
            break
    return graph, rounds


RELAY = """graph relay(x: f32[4]) -> (out) {
  two = const(2.0) : f32[]
  three = const(3.0) : f32[]
  one = sub(three, two)
  a = mul(x, one)
  b = exp(a)
  c = exp(x)
  out = sub(b, c)
  return out
}"""


def folded(graph):
    return fold(graph).graph


def simplified(graph):
    return simplify(graph).graph


def merged(graph):
    return package_cse(graph).graph


def cleaned(graph):
    return dce(graph).graph


def copied(graph):
    """Changes nothing, and returns an equal graph that is another object."""
    return Graph(graph.name, tuple(replace(node) for node in graph.nodes), graph.outputs)


def swapped(graph):
    """Turns the operands of every mul around: it never comes to rest."""
    return Graph(graph.name, tuple(replace(node, inputs=node.inputs[::-1]) if node.op == "mul" else node
                                   for node in graph.nodes), graph.outputs)


def fixpoint_cases():
    """Passes and graphs, smallest first."""
    still = parse("graph still(x: f32[4]) -> (y) {\n y = neg(x)\n return y\n}")
    halves = parse("graph halves(x: f32[4]) -> (y) {\n h = const(2.0)\n y = div(x, h)\n return y\n}")
    twice = parse("graph squares(x: f32[4], z: f32[4]) -> (y) {\n y = mul(x, z)\n return y\n}")
    relay = parse(RELAY)
    yield (copied,), still
    yield (folded, cleaned), still
    yield (cleaned, simplified), halves
    yield (swapped,), twice
    yield (folded, swapped), twice
    yield (swapped, folded), twice
    yield (swapped, swapped), twice  # each round undoes itself
    yield (folded, simplified, merged, cleaned), TWICE
    for order in ((folded, simplified, merged, cleaned), (cleaned, merged, simplified, folded),
                  (merged, simplified, cleaned, folded), (simplified, folded, cleaned, merged)):
        yield order, relay
    yield (), still


CALLED = {folded: "fold", simplified: "simplify", merged: "cse", cleaned: "dce"}
ABOUT = {copied: "copied returns an equal graph that is another object",
         swapped: "swapped turns the operands of every mul around"}


def about_passes(passes) -> list[str]:
    """Their names, and what those do that are not the package's."""
    names = ", ".join(CALLED.get(one, one.__name__) for one in passes) or "none"
    return [f"passes: {names}", *(ABOUT[one] for one in dict.fromkeys(passes) if one in ABOUT)]


def judge_rounds(function):
    """A call that does not end says why, too."""
    verdict = judge_calls(function, fixpoint_cases(), run_to_fixpoint, seconds=2, explain=explain_rounds)
    failure = verdict.failure
    if failure is None or failure.kind != "too-long" or not failure.case:
        return verdict
    passes, graph = failure.case
    sentence = failure.sentence
    if run_to_fixpoint(passes, graph)[1] == 10:
        sentence += " These passes never come to rest: stop after 10 rounds."
    return replace(verdict, failure=replace(failure, sentence=sentence, graph=graph,
                                            details=tuple(about_passes(passes))))


def explain_rounds(case, want, got):
    lines = [*about_passes(case[0]),
             f"it should give a graph of {len(want[0])} nodes, and {want[1]} as the number of rounds"]
    if isinstance(got, tuple) and len(got) == 2 and isinstance(got[0], Graph):
        same = "this graph" if got[0] == want[0] else f"another graph, of {len(got[0])} nodes,"
        return (*lines, f"and gives {same} and {got[1]!r}")
    return (*lines, f"and gives {'None' if got is None else article(got)}, not a tuple (graph, rounds)")


# ---- the stretch: one table with three hooks ------------------------------------------------------------------------


def one_walk(graph):
    """Folding, one rule of algebra and CSE in a single forward walk. Graph -> Graph.

    For each node, after its operands are replaced by what stands for them: (1) if it is foldable and
    all operands are constants, it becomes a const of the same name; (2) if it is mul(a, c) with c a
    constant whose elements are all 1, and a has the node's type, then a stands for it; (3) if an equal
    node has been seen, as in ``cse``, that one stands for it. What (1) makes must be offered to (3).
    Leave operands that nobody reads any more: dce takes them. Every operation on constants here can be
    computed, so you need no try. Example: mul(x, sub(3.0, 2.0)) becomes x.
    """
    ### BEGIN SOLUTION
    table, alias, known, nodes = {}, {}, {}, []
    for node in graph.nodes:
        inputs = tuple(alias.get(name, name) for name in node.inputs)
        operands = [known[name] for name in inputs]
        node = Node(node.name, node.op, inputs, node.value, node.type, node.origin)
        if inputs and OPS[node.op].foldable and all(one.op == "const" for one in operands):
            arrays = [one.value.array for one in operands]
            result = OPS[node.op].numpy(*arrays, **dict(node.value or ()))
            value = Const.of(np.asarray(result), node.type.dtype)
            node = Node(node.name, "const", (), value, node.type, node.origin)
        elif node.op == "mul" and operands[1].op == "const" and operands[0].type == node.type:
            if (operands[1].value.array == 1).all():
                alias[node.name] = inputs[0]
                continue
        reads = sorted(node.inputs) if OPS[node.op].commutative else node.inputs
        key = (node.op, tuple(reads), node.value)
        if OPS[node.op].mergeable and key in table:
            alias[node.name] = table[key]
            continue
        table[key] = node.name
        known[node.name] = node
        nodes.append(node)
    outputs = tuple((public, alias.get(value, value)) for public, value in graph.outputs)
    return Graph(graph.name, tuple(nodes), outputs)
    ### END SOLUTION


def walk_variant(graph, hooks=("fold", "one", "cse"), operands_of=None, typed=True, offered=True, is_one=None):
    """The stretch with one thing changed; ``hooks`` are tried in this order."""
    table, alias, known, nodes, original = {}, {}, {}, [], defs(graph)
    is_one = is_one or (lambda value: (value.array == 1).all())

    def hook_fold(node):
        operands = [(original if operands_of == "before" else known)[name] for name in node.inputs]
        if node.inputs and OPS[node.op].foldable and all(one.op == "const" for one in operands):
            result = OPS[node.op].numpy(*[one.value.array for one in operands], **dict(node.value or ()))
            return replace(node, op="const", inputs=(), value=Const.of(np.asarray(result), node.type.dtype))

    def hook_one(node):
        if node.op == "mul":
            a, c = (known[name] for name in node.inputs)
            if c.op == "const" and is_one(c.value) and (a.type == node.type or not typed):
                return a.name

    def hook_cse(node):
        key = right_key(node)
        if key is not None and table.setdefault(key, node.name) != node.name:
            return table[key]

    def answer(node):
        """The node, or another that replaces it, or the name of the value that stands for it."""
        for name in hooks:
            found = {"fold": hook_fold, "one": hook_one, "cse": hook_cse}[name](node)
            if isinstance(found, str):
                return found
            if found is not None:
                node = found
                if not offered:
                    break
        return node

    for node in graph.nodes:
        node = replace(node, inputs=tuple(alias.get(name, name) for name in node.inputs))
        found = answer(node)
        if isinstance(found, str):
            alias[node.name] = found
            continue
        known[node.name] = found
        nodes.append(found)
    outputs = tuple((public, alias.get(value, value)) for public, value in graph.outputs)
    return Graph(graph.name, tuple(nodes), outputs)


def walk_with_hooks(graph):
    return walk_variant(graph)


def walk_until_still(graph):
    """Three passes, again and again: slower, and right."""
    while True:
        after = package_cse(walk_variant(fold(graph, max_growth=2**30).graph, hooks=("one",))).graph
        if after == graph:
            return graph
        graph = after


def walk_cse_first(graph):
    return walk_variant(graph, hooks=("cse", "fold", "one"))


def walk_not_offered(graph):
    return walk_variant(graph, offered=False)


def walk_untyped(graph):
    return walk_variant(graph, typed=False)


def walk_first_element(graph):
    return walk_variant(graph, is_one=lambda value: value.array.size > 0 and value.array.ravel()[0] == 1)


def walk_without_folding(graph):
    return walk_variant(graph, hooks=("one", "cse"))


def walk_without_algebra(graph):
    return walk_variant(graph, hooks=("fold", "cse"))


def walk_original_operands(graph):
    return walk_variant(graph, operands_of="before")


def walk_any_constant(graph):
    return walk_variant(graph, is_one=lambda value: splat(value) is not None)


WALK_SPACE = Space(
    inputs=(("x", "f32[2]"),),
    consts=(("one", 1.0, "f32[]"), ("two", 2.0, "f32[]"), ("minus", -0.0, "f32[]")),
    ops=(("sub", {}), ("mul", {}), ("neg", {}), ("print", {"label": "seen"}),
         ("random", {"shape": (2,), "dtype": "f32", "dist": "uniform"})),
    limit=800, larger=120,
)  # fmt: skip

WALK_TARGETS = tuple(parse(text) for text in (
    RELAY,
    "graph wider(x: f32[]) -> (y) {\n ones = const(1.0) : f32[4]\n y = mul(x, ones)\n return y\n}",
    "graph partly(x: f32[2]) -> (y) {\n c = const([1.0, 2.0]) : f32[2]\n y = mul(x, c)\n return y\n}",
    "graph ones(x: f32[2]) -> (y) {\n c = const(1.0) : f32[2]\n y = mul(x, c)\n return y\n}",
    "graph whole(x: i32[2]) -> (y) {\n c = const(1) : i32[]\n y = mul(x, c)\n return y\n}",
    "graph small() -> (y) {\n a = const(100) : i8[]\n y = add(a, a)\n return y\n}",
    "graph equals() -> (a, c) {\n one = const(1.0)\n two = const(2.0)\n a = sub(two, one)\n b = neg(two)\n c = neg(b)\n return a, c\n}",
    "graph again(x: f32[2]) -> (a, b) {\n one = const(1.0)\n y = mul(x, one)\n a = neg(x)\n b = neg(y)\n return a, b\n}",
    "graph deep(x: f32[2]) -> (y) {\n one = const(1.0)\n a = neg(one)\n b = neg(a)\n y = mul(x, b)\n return y\n}",
    "graph folds() -> (a, b) {\n t = const(2.0)\n a = neg(t)\n b = neg(t)\n return a, b\n}",
    "graph zeros() -> (a, b) {\n z = const(0.0)\n a = neg(z)\n b = neg(a)\n return a, b\n}",
    "graph nearly(x: f32[2]) -> (y) {\n c = const(1.0000001)\n y = mul(x, c)\n return y\n}",
    "graph tiny() -> (y) {\n a = const(16777216.0)\n b = const(1.0)\n c = add(a, b)\n y = add(c, b)\n return y\n}",
    "graph rows() -> (y) {\n a = const([[1.0, 2.0], [3.0, 4.0]]) : f32[2,2]\n y = sum(a) {axis=[0]}\n return y\n}",
))  # fmt: skip


# ---- passes to refute -----------------------------------------------------------------------------------------------


def cse_without_attributes(graph):
    """Merges what has the same operation and operands: "attributes are only details"."""

    def key(node):
        if not OPS[node.op].mergeable:
            return None
        return node.op, node.inputs, node.value if node.op == "const" else None

    return merge_by(key)(graph)


def cse_by_number(graph):
    """Merges constants that are equal as numbers: "0.0 == -0.0 is True, Python says so"."""

    def key(node):
        if node.op == "const":
            return "const", node.type, tuple(node.value.array.ravel().tolist())
        return (node.op, node.inputs, node.value) if OPS[node.op].mergeable else None

    return merge_by(key)(graph)


def cse_merges_draws(graph):
    """Merges draws of one shape: "the same text is the same value"."""

    def key(node):
        if node.op == "random":
            return "random", node.value.shape, node.value.dtype, node.value.dist
        return (node.op, node.inputs, node.value) if OPS[node.op].mergeable else None

    return merge_by(key)(graph)


def lesson_of_attributes(graph):
    """A merge of two types is found without running anything; it depends on the learner's graph."""
    if judge_one(cse_without_attributes, graph)[0].kind == "wrong-value":
        return "The verifier cannot help here: both nodes have the same type, so the merged graph is valid, and wrong."
    return ("Here the two types differ, so a check of types finds it. On a square matrix, a sum"
            " over rows and"
            " one over columns have the same type: then only the values tell.")


EXERCISES = (
    Exercise(
        "06", "The key", cse_key,
        lambda function: judge_pass(function, SPACE, merge_all, targets=TARGETS),
        ("Ask of each field of a node: could two nodes that differ only here have different values?",
         "First the nodes that must stay themselves: OPS[node.op].mergeable tells; for the others return None. Then sort"
         " the operands' names if the operation commutes. The key is the tuple of operation, operands and value.",
         "if not OPS[node.op].mergeable: ...\noperands = ... if OPS[node.op].commutative else ...\nreturn node.op, operands, ..."),
        (Mistake(key_attributes, "wrong-value", "Attributes belong to the key: a sum over rows is not a sum over columns."),
         Mistake(key_without_value, "wrong-value", "node.value is missing in the key: it holds the constant, or the"
                 " attributes. Without it, any two constants are one."),
         Mistake(key_type_for_value, "wrong-value", "The type does not replace node.value: two"
                 " constants of one"
                 " type may differ, and so may two sums over other axes."),
         Mistake(key_numbers, "wrong-value", "Compared as numbers, 0.0 equals -0.0, and 1/0.0 is not 1/-0.0. A Const compares bits:"
                 " put node.value itself into the key."),
         Mistake(key_draws, "wrong-value", "Two draws are two draws, even where they look alike: random is not mergeable."),
         Mistake(key_any_order, "wrong-value", "Only some operations commute. x - y is not y - x, and maximum of 0.0 and -0.0"
                 " may give the one or the other zero, by the order. OPS[node.op].commutative tells."),
         Mistake(key_one_order, "did-nothing", "mul(x, y) and mul(y, x) are one value: where the operation commutes, sort the"
                 " operands in the key."),
         Mistake(key_never_none, "lost", "Two inputs of one type look the same and are not: what is not mergeable has no key, so"
                 " return None."),
         Mistake(key_named, "did-nothing", "With the name in it no two keys are ever equal: the name is where a value is kept, not"
                 " what it is."),
         Mistake(key_operands, "wrong-value", "The operation belongs to the key: neg(x) is not abs(x)."),
         Mistake(key_hashed, "wrong-value", "A hash is not a key: different tuples may share one (in Python, hash(-1) == hash(-2))."
                 " Return the tuple; the dict does the hashing."),
         Mistake(key_bytes, "lost", "The same bytes mean different values in different dtypes and shapes. A Const knows all three: use"
                 " node.value."),
         Mistake(key_printed, "wrong-value", "Printed arrays are shortened and rounded, so different constants may print alike. Use"
                 " node.value."),
         Mistake(key_no_constants, "did-nothing", "Constants are mergeable, too: const has a row like any other operation."),
         Mistake(key_list, "raises", "A list cannot be looked up in a dict; a tuple can."),
         Mistake(key_sorted_list, "raises", "sorted gives a list, and a dict cannot look up a tuple that holds one: write"
                 " tuple(sorted(...))."),
         Mistake(key_lists_inside, "raises", "All parts of a key must be hashable: no list inside, but a tuple.")),
        (key_as_text, key_with_sets),
        probes=tuple((graph,) for graph in TARGETS),
        adapt=merge_by,
        praise="check made a pass of your key: a forward walk with a dict, about ten more lines. You write those next.",
    ),
    Exercise(
        "06", "The pass", cse,
        lambda function: judge_pass(function, SPACE, merge_all, targets=TARGETS),
        ("Keep two dicts: from a key to the first value that had it, and from a name that is gone to the one that stands for it.",
         "For each node, in order: replace its operands by what stands for them, then make the key. If the node is mergeable and"
         " the key is known, remember the alias and drop the node. Otherwise note the key and keep the node with the new"
         " operands. At the end, replace the values behind the outputs, too.",
         "first, alias, nodes = {}, {}, []\nfor node in graph.nodes:\n    inputs = tuple(alias.get(name, name) for name in"
         " node.inputs)\n    key = ...\n    if OPS[node.op].mergeable and key in first: ...\n    nodes.append(Node(node.name, node.op,"
         " inputs, node.value, node.type, node.origin))\noutputs = ...\nreturn Graph(graph.name, tuple(nodes), outputs)"),
        (Mistake(cse_not_rewired, "invalid", "The node is gone, and others still read it: replace it in their operands."),
         Mistake(cse_old_outputs, "invalid", "The outputs read values, too: replace the value, and keep the public name."),
         Mistake(cse_early_key, "did-nothing", "The key was made of the old operands. Replace them first; then equal expressions of"
                 " any depth merge in one walk."),
         Mistake(cse_keeps_both, "did-nothing", "The node that was merged away is still in the graph."),
         Mistake(cse_first_pair, "did-nothing", "It stopped after the first pair that it merged."),
         Mistake(cse_inputs_too, "lost", "Two inputs of one type look the same and are not: ask OPS[node.op].mergeable."),
         Mistake(cse_none_is_a_key, "wrong-value", "All nodes that are not mergeable had one key (None?), so they became one node:"
                 " do not look such a node up at all."),
         Mistake(cse_without_value, "wrong-value", "node.value is missing in the key: it holds the constant, or the"
                 " attributes. Without it, any two constants are one."),
         Mistake(cse_type_for_value, "wrong-value", "The type does not replace node.value: two"
                 " constants of one"
                 " type may differ, and so may two sums over other axes."),
         Mistake(cse_attributes, "wrong-value", "Attributes belong to the key: a sum over rows is not a sum over columns."),
         Mistake(cse_numbers, "wrong-value", "Compared as numbers, 0.0 equals -0.0, and 1/0.0 is not 1/-0.0. A Const compares bits:"
                 " put node.value itself into the key."),
         Mistake(cse_any_order, "wrong-value", "Only some operations commute. x - y is not y - x, and maximum of 0.0 and -0.0"
                 " may give the one or the other zero, by the order. OPS[node.op].commutative tells."),
         Mistake(cse_one_order, "did-nothing", "mul(x, y) and mul(y, x) are one value: where the operation commutes, sort the"
                 " operands in the key."),
         Mistake(cse_renamed, "lost", "An output's public name is a promise to the caller: only the"
                 " value behind it may change."),
         Mistake(cse_public_alias, "invalid", "A public name is no value: replace only the second"
                 " part of each"
                 " pair, and keep the first.")),
        (cse_by_the_package, cse_by_numbers),
        probes=tuple((graph,) for graph in TARGETS),
        praise="One walk was enough, at any depth, because the operands were replaced before the node was looked up.",
        is_pass=True,
    ),
    Exercise(
        "06", "Round after round", run_to_fixpoint,
        judge_rounds,
        ("Remember the graph at the start of a round, and compare when the round is over.",
         "Loop over the numbers 1 to 10. In each round keep the graph as `before`, run all passes one after another, and leave"
         " the loop if the graph equals `before`. Return the graph and the number of the round.",
         "for rounds in range(1, 11):\n    before = graph\n    ...\n    if graph == before:\n        break\nreturn graph, rounds"),
        (Mistake(fixpoint_once, "wrong-value", "One round is not enough: a later pass makes work for an earlier one."),
         Mistake(fixpoint_by_size, "wrong-value", "A graph can change and keep its number of nodes: x / 2 becomes x * 0.5. Compare the"
                 " graphs."),
         Mistake(fixpoint_last_pass, "wrong-value", "It compares the graph before and after the last pass only. A round starts before its"
                 " first pass and ends after its last."),
         Mistake(fixpoint_any_pass, "wrong-value", "It asks whether any pass changed something, though a later one may undo it. Compare"
                 " the graph at the end of the round with the one at its start."),
         Mistake(fixpoint_no_limit, "too-long", "There are passes that never come to rest: stop after 10 rounds."),
         Mistake(fixpoint_eleven, "wrong-value", "It runs an 11th round: stop after 10."),
         Mistake(fixpoint_nine, "wrong-value", "It stops after 9 rounds, one too early. range(1, 11) counts from 1 to 10."),
         Mistake(fixpoint_identity, "wrong-value", "`is` asks whether both are one object. A pass may return an equal graph that is"
                 " another object: compare with ==."),
         Mistake(fixpoint_initial, "wrong-value", "It compares with the graph that the first round started with. Compare with the one"
                 " at the start of this round."),
         Mistake(fixpoint_short_count, "wrong-value", "The last round counts, too: only it shows that nothing is left to do."),
         Mistake(fixpoint_one_by_one, "wrong-value", "Each pass came to rest alone, and a later one may still make work for an earlier"
                 " one: repeat the whole round."),
         Mistake(fixpoint_all_ten, "wrong-value", "It goes on after a round that changed nothing: that round is the last."),
         Mistake(fixpoint_all_passes_still, "wrong-value", "It stops at the first pass that has nothing to do; the passes after it may"
                 " have plenty.")),
        (fixpoint_by_while, fixpoint_recursive),
        probes=tuple(case for case in fixpoint_cases() if swapped not in case[0]),
        praise="optimize does nearly the same, and checks every pass. It gives up after 4 rounds instead of 10, and to it a round"
               " has changed something if any pass reports a change.",
    ),
    Exercise(
        "06", "One table, three hooks", one_walk,
        lambda function: judge_pass(function, WALK_SPACE, one_walk, targets=WALK_TARGETS),
        ("It is your cse with two questions before the lookup: can I compute this, and does the rule fit?",
         "Keep a dict from name to the nodes of the new graph, so that you can look at operands as they are now. Replace the"
         " operands; then fold; else try the rule, which only makes an alias; then make the key of the node as it is by now.",
         "for node in graph.nodes:\n    inputs = ...\n    operands = [known[name] for name in inputs]\n    if inputs and ...: node ="
         " Node(node.name, 'const', (), ...)\n    elif node.op == 'mul' and ...: alias[node.name] = inputs[0]; continue\n    key = ..."),
        (Mistake(walk_cse_first, "did-nothing", "The lookup came before the fold, so a folded constant never met its equals."),
         Mistake(walk_not_offered, "did-nothing", "What folding makes must be looked up, too: it may be a constant that is there."),
         Mistake(walk_untyped, "lost", "Multiplying by an array of ones may broadcast: the operand must have the node's type."),
         Mistake(walk_first_element, "wrong-value", "All elements must be 1, not only the first."),
         Mistake(walk_without_folding, "did-nothing", "Folding is missing: an operation on constants is a constant."),
         Mistake(walk_without_algebra, "did-nothing", "The rule is missing: mul(x, 1) is x."),
         Mistake(walk_original_operands, "did-nothing", "Look at the operands as they are now, in the new graph: some have just"
                 " become constants."),
         Mistake(walk_any_constant, "wrong-value", "Only 1 leaves x as it is.")),
        (walk_with_hooks, walk_until_still),
        probes=tuple((graph,) for graph in WALK_TARGETS),
        praise="Each hook saw what the others had just done, so one walk found what separate passes need several rounds for.",
        stretch=True,
    ),
)  # fmt: skip

REFUTATIONS = (
    Refutation(
        "06", cse_without_attributes,
        parse("graph mine(x: f32[2,2]) -> (y) {\n  a = neg(x)\n  b = neg(x)\n  y = mul(a, b)\n  return y\n}"),
        parse("graph mine(x: f32[2,2]) -> (y) {\n  a = sum(x) {axis=[0]}\n  b = sum(x) {axis=[1]}\n  y = sub(a, b)\n  return y\n}"),
        "Which operation has attributes? On a square matrix, a sum over rows and a sum over columns have the same type.",
        lesson_of_attributes,
    ),
    Refutation(
        "06", cse_by_number,
        parse("graph mine(x: f32[4]) -> (y) {\n  a = const(2.0) : f32[]\n  b = const(2.0) : f32[]\n  c = mul(x, a)\n  y = mul(c, b)\n  return y\n}"),
        parse("graph mine(x: f32[4]) -> (y, z) {\n  a = const(0.0) : f32[]\n  b = const(-0.0) : f32[]\n  y = div(x, a)\n  z = div(x, b)\n"
              "  return y, z\n}"),
        "Which two floats are equal and not the same? What do they give as divisors?",
        "Equal is not the same: a constant's key is its dtype, its shape and its bits.",
    ),
    Refutation(
        "06", cse_merges_draws,
        parse("graph mine() -> (y) {\n  a = random() {shape=[4], site=0} : f32[4]\n  y = neg(a)\n  return y\n}"),
        parse("graph mine() -> (y) {\n  a = random() {shape=[4], site=0} : f32[4]\n  b = random() {shape=[4], site=1} : f32[4]\n"
              "  y = sub(a, b)\n  return y\n}"),
        "Draw twice; each draw has a site of its own. What is the difference of two draws, and what is it after the pass?",
        "Two draws that look alike are two values. Their difference is noise; of one draw with itself it is 0.",
    ),
)  # fmt: skip
