"""Chapter 05, dead-code elimination: the exercises, their mistakes and the passes to refute."""

from __future__ import annotations

from dataclasses import replace

from ...errors import MinigraphError
from ...ir import Builder, Graph, Node, users
from ...ops import OPS, Attrs, Kind
from ...passes.dce import dce as package_dce
from ...text import parse, print_graph
from ...verify import verify
from ..exercise import Exercise, Mistake, Refutation
from ..graphs import Space, small_graphs
from ..judge import judge_calls, judge_pass

SPACE = Space(
    inputs=(("x", "f32[4]"), ("w", "f32[4]")),
    consts=(("two", 2.0, "f32[]"),),
    ops=(("add", {}), ("neg", {}), ("print", {"label": "seen"}), ("assert_finite", {}), ("assert_close", {"digits": 5}),
         ("random", {"shape": (4,), "dtype": "f32", "dist": "uniform"}), ("sum", {"axis": (0,), "keepdims": True})),
    most=3, limit=250, larger=200,
)  # fmt: skip

DRAW = "{shape=[4], dtype=f32, dist=uniform, site=%d} : f32[4]"
TARGETS = tuple(parse(text) for text in (
    "graph useful(x: f32[4]) -> (y) {\n y = neg(x)\n return y\n}",
    "graph spare(x: f32[4]) -> (y) {\n dead = const(1.0) : f32[]\n y = neg(x)\n return y\n}",
    "graph unread(x: f32[4], mask: f32[4]) -> (y) {\n y = neg(x)\n return y\n}",
    "graph pair(x: f32[4]) -> (first, last) {\n a = neg(x)\n b = exp(x)\n return first = a, last = b\n}",
    "graph twice(x: f32[4]) -> (one, other) {\n a = neg(x)\n dead = exp(a)\n return one = a, other = a\n}",
    "graph through(x: f32[4]) -> (y) {\n dead = neg(x)\n return y = x\n}",
    "graph namesake(x: f32[4]) -> (y) {\n a = neg(x)\n y = exp(a)\n return y = a\n}",
    f"graph drawn(x: f32[4]) -> (y) {{\n dead = random() {DRAW % 0}\n y = neg(x)\n return y\n}}",
    f"graph second() -> (y) {{\n dead = random() {DRAW % 0}\n y = random() {DRAW % 1}\n return y\n}}",
    'graph seen(x: f32[4]) -> (y) {\n a = exp(x)\n p = print(a) {label="a is"}\n y = neg(x)\n return y\n}',
    "graph checked(x: f32[4]) -> (y) {\n a = exp(x)\n p = assert_finite(a)\n y = neg(x)\n return y\n}",
    "graph chained(x: f32[4]) -> (y) {\n a = neg(x)\n b = exp(a)\n c = sin(b)\n y = add(x, x)\n return y\n}",
    "graph shared(x: f32[4]) -> (y) {\n a = exp(x)\n dead = mul(a, a)\n y = neg(a)\n return y\n}",
    'graph order(x: f32[4]) -> (y) {\n p = print(x) {label="p"}\n q = assert_finite(x, p)\n r = print(x, q) {label="r"}\n'
    " y = neg(x)\n return y\n}",
    "graph compared(x: f32[4]) -> (y) {\n a = exp(x)\n b = neg(x)\n p = assert_close(a, b)\n y = add(x, x)\n return y\n}",
    "graph constant(x: f32[4]) -> (y) {\n two = const(2.0) : f32[]\n dead = mul(x, two)\n return y = two\n}",
    "graph nothing(x: f32[4]) -> () {\n p = print(x)\n dead = neg(x)\n return\n}",
    "graph turned(x: f32[4]) -> (second, first) {\n a = neg(x)\n b = exp(x)\n return second = b, first = a\n}",
    "graph chosen(x: f32[4], c: bool[4]) -> (y) {\n a = neg(x)\n b = exp(x)\n y = where(c, a, b)\n return y\n}",
    "graph late(x: f32[4]) -> (y) {\n y = neg(x)\n a = exp(x)\n p = assert_finite(a)\n dead = sin(a)\n return y\n}",
))  # fmt: skip


def cases():
    """Graphs for functions that are no passes, smallest first."""
    small = list(small_graphs(replace(SPACE, most=2, limit=500)))
    return [(graph,) for graph in sorted([*TARGETS, *small], key=len)]


def half_dead(size: int) -> Graph:
    """A chain of which the second half is dead, so that a pass that deletes one node a round shows."""
    builder = Builder("half_dead")
    last = middle = builder.input("x", "f32[2]")
    for number in range(size):
        last = builder.emit("neg", last)
        if number == size // 2:
            middle = last
    return builder.build({"out": middle})


def only_deleted(graph: Graph, result: Graph) -> str:
    """What dce promises of the nodes that stay."""
    kept = {node.name for node in result.nodes}
    same = [node for node in graph.nodes if node.name in kept] == list(result.nodes)
    return "" if same else "A node that stays keeps its name, its operands and its place; here one does not."


# ---- where life begins --------------------------------------------------------------------------------------------


def roots(graph):
    """The names of the values that are needed by themselves, as a set, before anything is walked.

    These are the values behind the outputs, and every effect: a node that is not an input and that
    ``OPS[node.op].removable`` does not allow to go. ``graph.outputs`` holds pairs
    (public name, value name).

    For d = sin(x), p = print(x), e = exp(x) and ``return result = d`` the answer is {"d", "p"}.
    """
    ### BEGIN SOLUTION
    names = {value for public, value in graph.outputs}
    for node in graph.nodes:
        if node.op != "input" and not OPS[node.op].removable:
            names.add(node.name)
    return names
    ### END SOLUTION


def roots_in_one_line(graph):
    return {value for _, value in graph.outputs} | {n.name for n in graph.nodes if OPS[n.op].kind is Kind.EFFECT}


def roots_by_token(graph):
    found = set(dict(graph.outputs).values())
    found.update(node.name for node in graph.nodes if node.type.dtype == "token")
    return frozenset(found)


def effect_names(graph):
    return {node.name for node in graph.nodes if OPS[node.op].kind is Kind.EFFECT}


def roots_last_output(graph):
    return {value for _, value in graph.outputs[-1:]} | effect_names(graph)


def roots_public_names(graph):
    return {public for public, _ in graph.outputs} | effect_names(graph)


def roots_without_effects(graph):
    return {value for _, value in graph.outputs}


def roots_with_inputs(graph):
    return {value for _, value in graph.outputs} | {n.name for n in graph.nodes if not OPS[n.op].removable}


def roots_with_draws(graph):
    return roots(graph) | {node.name for node in graph.nodes if node.op == "random"}


def roots_unread(graph):
    return {name for name, readers in users(graph).items() if not readers}


def roots_prints_only(graph):
    return {value for _, value in graph.outputs} | {node.name for node in graph.nodes if node.op == "print"}


def roots_last_effect(graph):
    return {value for _, value in graph.outputs} | {n.name for n in graph.nodes[-1:] if OPS[n.op].kind is Kind.EFFECT}


def roots_and_operands(graph):
    return roots(graph) | {name for node in graph.nodes if node.name in roots(graph) for name in node.inputs}


def as_set(function):
    """A set is a set, frozen or not."""
    def call(graph):
        got = function(graph)
        return set(got) if isinstance(got, frozenset) else got
    return call


def explain_roots(case, want, got):
    if not isinstance(got, set):
        return (f"it should give a set, {in_order(want)}", f"and gives      {type(got).__name__}")
    return (f"it should give {in_order(want)}", f"and gives      {in_order(got)}")


def in_order(names) -> str:
    return "{" + ", ".join(sorted(map(repr, names))) + "}"


# ---- the pass -------------------------------------------------------------------------------------------------------


def dce(graph):
    """Delete every node that no output and no effect needs. Graph -> Graph.

    Needed is what an output gives, every effect (``OPS[node.op].removable`` is False for it), and
    whatever a needed node reads. Inputs stay, needed or not: they are the graph's signature. The nodes
    that stay keep their names, their order and their operands. Do not recurse: graphs may be thousands
    of nodes deep.

    From a = neg(x), b = exp(a), y = sin(x) and ``return y`` the nodes a and b go:
    only the dead b reads a.
    """
    ### BEGIN SOLUTION
    live = {value for public, value in graph.outputs}
    for node in reversed(graph.nodes):
        if node.name in live or not OPS[node.op].removable:
            live.add(node.name)
            live.update(node.inputs)
    kept = tuple(node for node in graph.nodes if node.name in live)
    return Graph(graph.name, kept, graph.outputs)
    ### END SOLUTION


def dce_with_worklist(graph):
    nodes = {node.name: node for node in graph.nodes}
    waiting = [value for _, value in graph.outputs] + [n.name for n in graph.nodes if OPS[n.op].kind is Kind.EFFECT]
    live = set()
    while waiting:
        name = waiting.pop()
        if name not in live:
            live.add(name)
            waiting += nodes[name].inputs
    return replace(graph, nodes=tuple(n for n in graph.nodes if n.op == "input" or n.name in live))


def dce_round_by_round(graph):
    """Slow and right: deletes what nobody reads until there is nothing of the kind."""
    while True:
        read = {name for node in graph.nodes for name in node.inputs} | {value for _, value in graph.outputs}
        kept = tuple(n for n in graph.nodes if n.name in read or not OPS[n.op].removable)
        if len(kept) == len(graph.nodes):
            return graph
        graph = Graph(graph.name, kept, graph.outputs)


def dce_counting_readers(graph):
    readers = {node.name: 0 for node in graph.nodes}
    for name in [name for node in graph.nodes for name in node.inputs] + [value for _, value in graph.outputs]:
        readers[name] += 1
    kept = []
    for node in graph.nodes[::-1]:
        if readers[node.name] or node.op == "input" or OPS[node.op].kind is Kind.EFFECT:
            kept.append(node)
        else:
            for name in node.inputs:
                readers[name] -= 1
    return Graph(graph.name, tuple(kept[::-1]), graph.outputs)


def dce_by_the_package(graph):
    return package_dce(graph).graph


def dce_variant(graph, start=None, rooted=lambda node: not OPS[node.op].removable, reads=lambda node: node.inputs):
    """The solution with one thing changed; the mistakes below are made of it."""
    live = {value for _, value in graph.outputs} if start is None else start
    for node in reversed(graph.nodes):
        if node.name in live or rooted(node):
            live.add(node.name)
            live.update(reads(node))
    return Graph(graph.name, tuple(node for node in graph.nodes if node.name in live), graph.outputs)


def dce_last_output(graph):
    """Keeps what the last output needs, "because the result comes last"."""
    live = {value for public, value in graph.outputs[-1:]}
    for node in reversed(graph.nodes):
        if node.name in live or not OPS[node.op].removable:
            live.add(node.name)
            live.update(node.inputs)
    kept = tuple(node for node in graph.nodes if node.name in live)
    return Graph(graph.name, kept, tuple(pair for pair in graph.outputs if pair[1] in live))


def dce_drops_effects(graph):
    """Deletes whatever no output needs, "because nobody uses the value of a print"."""
    live = {value for public, value in graph.outputs}
    for node in reversed(graph.nodes):
        if node.name in live or node.op == "input":
            live.add(node.name)
            live.update(node.inputs)
    kept = tuple(node for node in graph.nodes if node.name in live)
    return Graph(graph.name, kept, graph.outputs)


def dce_renumbers_draws(graph):
    """Deletes the right nodes, and then numbers the draws that are left 0, 1, 2 …, "to keep it tidy"."""
    live = {value for public, value in graph.outputs}
    for node in reversed(graph.nodes):
        if node.name in live or not OPS[node.op].removable:
            live.add(node.name)
            live.update(node.inputs)
    kept, site = [], 0
    for node in graph.nodes:
        if node.name in live and node.op == "random":
            tidy = Attrs(**(dict(node.value) | {"site": site}))
            kept.append(Node(node.name, node.op, node.inputs, tidy, node.type, node.origin))
            site += 1
        elif node.name in live:
            kept.append(node)
    return Graph(graph.name, tuple(kept), graph.outputs)


def dce_drops_inputs(graph):
    return dce_variant(graph, rooted=lambda node: OPS[node.op].kind is Kind.EFFECT)


def dce_drops_prints(graph):
    return dce_variant(graph, rooted=lambda node: node.op == "input" or node.op.startswith("assert"),
                       reads=lambda node: node.inputs[:int(OPS[node.op].arity[0])] if "assert" in node.op else node.inputs)


def dce_one_round(graph):
    read = {name for node in graph.nodes for name in node.inputs} | {value for _, value in graph.outputs}
    kept = tuple(node for node in graph.nodes if node.name in read or not OPS[node.op].removable)
    return Graph(graph.name, kept, graph.outputs)


def dce_forward(graph):
    live = {value for _, value in graph.outputs}
    for node in graph.nodes:
        if node.name in live or not OPS[node.op].removable:
            live.add(node.name)
            live.update(node.inputs)
    return Graph(graph.name, tuple(node for node in graph.nodes if node.name in live), graph.outputs)


def dce_bare_effects(graph):
    """Keeps the effects and forgets what they read."""
    live = {value for _, value in graph.outputs}
    for node in reversed(graph.nodes):
        if node.name in live:
            live.update(node.inputs)
    return Graph(graph.name, tuple(n for n in graph.nodes if n.name in live or not OPS[n.op].removable), graph.outputs)


def dce_keeps_draws(graph):
    return dce_variant(graph, rooted=lambda node: not OPS[node.op].removable or node.op == "random")


def dce_keeps_constants(graph):
    return dce_variant(graph, rooted=lambda node: not OPS[node.op].removable or node.op == "const")


def dce_public_names(graph):
    return dce_variant(graph, start={public for public, _ in graph.outputs})


def dce_unread(graph):
    """Takes a value that no node reads for dead, though the caller reads the outputs."""
    live = set()
    readers = users(graph)
    for node in reversed(graph.nodes):
        if any(name in live for name in readers[node.name]) or not OPS[node.op].removable:
            live.add(node.name)
    return Graph(graph.name, tuple(node for node in graph.nodes if node.name in live), graph.outputs)


def dce_backwards(graph):
    return replace(graph, nodes=tuple(reversed(package_dce(graph).graph.nodes)))


def dce_recursive(graph):
    nodes, live = {node.name: node for node in graph.nodes}, set()

    def need(name):
        if name not in live:
            live.add(name)
            for operand in nodes[name].inputs:
                need(operand)

    for name in roots(graph):
        need(name)
    return Graph(graph.name, tuple(n for n in graph.nodes if n.op == "input" or n.name in live), graph.outputs)


def dce_first_operand(graph):
    return dce_variant(graph, reads=lambda node: node.inputs[:1])


def dce_nothing(graph):
    return Graph(graph.name, graph.nodes, graph.outputs)


# ---- the stretch: effects go when, and only when, somebody asks for it ----------------------------------------------


def strip_effects(graph, names):
    """The graph without the effects that ``names`` lists, such as ("print",).
    Everything else stays as it is.

    Only effects can be stripped: listing "neg" or "random" changes nothing. An effect reads its values,
    of which there are ``int(OPS[node.op].arity[0])``, and after them the token of the effect before it,
    if there is one. So where an effect goes, the next one that stays takes the token of the last one
    that stayed, or none. What the stripped effects read may be dead now; leave that to dce.

    With p = print(a), q = assert_finite(b, p) and names ("print",) there remains q = assert_finite(b).
    """
    ### BEGIN SOLUTION
    before = ()
    nodes = []
    for node in graph.nodes:
        if OPS[node.op].kind is Kind.EFFECT:
            if node.op in names:
                continue
            values = node.inputs[:int(OPS[node.op].arity[0])]
            node = Node(node.name, node.op, values + before, node.value, node.type, node.origin)
            before = (node.name,)
        nodes.append(node)
    return Graph(graph.name, tuple(nodes), graph.outputs)
    ### END SOLUTION


def strip_effects_by_stand_in(graph, names):
    stand_in, nodes = {}, []
    for node in graph.nodes:
        inputs = [stand_in.get(name, name) for name in node.inputs]
        inputs = tuple(name for name in inputs if name is not None)
        if node.type.dtype == "token" and node.op in names:
            stand_in[node.name] = inputs[-1] if len(inputs) > OPS[node.op].arity[0] else None
        else:
            nodes.append(replace(node, inputs=inputs))
    return replace(graph, nodes=tuple(nodes))


def strip_effects_one_by_one(graph, names):
    while (one := next((n for n in graph.nodes if n.type.dtype == "token" and n.op in names), None)) is not None:
        tokens = one.inputs[int(OPS[one.op].arity[0]):]
        nodes = []
        for node in graph.nodes:
            if node is not one:
                inputs = sum((tokens if name == one.name else (name,) for name in node.inputs), ())
                nodes.append(replace(node, inputs=inputs))
        graph = Graph(graph.name, tuple(nodes), graph.outputs)
    return graph


def strip_variant(graph, gone, link=lambda tokens: tokens[-1:]):
    """The solution with another choice of what goes, or of the token that the next effect takes."""
    tokens, nodes = (), []
    for node in graph.nodes:
        if gone(node):
            continue
        if OPS[node.op].kind is Kind.EFFECT:
            node = replace(node, inputs=node.inputs[:int(OPS[node.op].arity[0])] + link(tokens))
            tokens += (node.name,)
        nodes.append(node)
    return Graph(graph.name, tuple(nodes), graph.outputs)


def is_effect(node):
    return OPS[node.op].kind is Kind.EFFECT


def strip_effects_all(graph, names):
    return strip_variant(graph, is_effect)


def strip_effects_always_prints(graph, names):
    return strip_variant(graph, lambda node: node.op == "print")


def strip_effects_no_token(graph, names):
    return strip_variant(graph, lambda node: is_effect(node) and node.op in names, lambda tokens: ())


def strip_effects_first_token(graph, names):
    return strip_variant(graph, lambda node: is_effect(node) and node.op in names, lambda tokens: tokens[:1])


def strip_effects_old_tokens(graph, names):
    nodes = tuple(node for node in graph.nodes if not (is_effect(node) and node.op in names))
    return Graph(graph.name, nodes, graph.outputs)


def strip_effects_and_dead(graph, names):
    return package_dce(strip_effects(graph, names)).graph


def strip_effects_anything(graph, names):
    return strip_variant(graph, lambda node: node.op in names)


def strip_effects_first_only(graph, names):
    first = next((node.name for node in graph.nodes if is_effect(node) and node.op in names), None)
    return strip_variant(graph, lambda node: node.name == first)


STRIP_GRAPHS = tuple(parse(text) for text in (
    "graph plain(x: f32[4]) -> (y) {\n y = neg(x)\n return y\n}",
    "graph one(x: f32[4]) -> (y) {\n p = print(x)\n y = neg(x)\n return y\n}",
    "graph leftover(x: f32[4]) -> (y) {\n a = exp(x)\n p = print(a)\n y = neg(x)\n return y\n}",
    'graph two(x: f32[4]) -> (x) {\n p = print(x) {label="p"}\n q = print(x, p) {label="q"}\n return x\n}',
    "graph mixed(x: f32[4]) -> (x) {\n p = print(x)\n q = assert_finite(x, p)\n return x\n}",
    "graph between(x: f32[4]) -> (x) {\n p = assert_finite(x)\n q = print(x, p)\n r = assert_finite(x, q)\n return x\n}",
    "graph closing(x: f32[4]) -> (x) {\n p = assert_finite(x)\n q = assert_close(x, x, p)\n r = print(x, q)\n return x\n}",
    "graph long(x: f32[4]) -> (x) {\n p = assert_finite(x)\n q = assert_finite(x, p)\n r = assert_finite(x, q)\n return x\n}",
    "graph runs(x: f32[4]) -> (x) {\n p = print(x)\n q = print(x, p)\n r = assert_close(x, x, q)\n s = print(x, r)\n"
    " t = print(x, s)\n u = assert_finite(x, t)\n return x\n}",
    f"graph draws(x: f32[4]) -> (y) {{\n r = random() {DRAW % 0}\n p = print(r)\n y = neg(x)\n return y\n}}",
))  # fmt: skip


def strip_cases():
    for graph in sorted(STRIP_GRAPHS, key=len):
        for names in ((), ("print",), ("assert_finite", "assert_close"), ("print", "assert_finite"), ("neg", "random"),
                      ("assert_close", "print", "assert_finite")):
            yield graph, names


def explain_strip(case, want, got):
    """What comes out, what should, and which rule of the IR the answer breaks, if it breaks one."""
    lines = [f"names = {case[1]!r}", *numbered("it should give", want)]
    if not isinstance(got, Graph):
        return (*lines, f"and gives {got!r}")
    try:
        verify(got)
    except MinigraphError as error:
        return (*lines, f"and its answer breaks a rule: {str(error).splitlines()[0]}")
    return (*lines, *numbered("and gives", got))


def numbered(title: str, graph: Graph) -> list[str]:
    return [f"{title}:", *(f"    {line}" for line in print_graph(graph).splitlines())]


EXERCISES = (
    Exercise(
        "05", "Where life begins", roots,
        lambda function: judge_calls(function, cases(), roots, explain=explain_roots),
        ("Two kinds of value are needed by themselves: what the caller gets, and what is there for its effect.",
         "Collect the second name of each pair in graph.outputs in a set. Then go through the nodes and add the name of each"
         " that is no input and whose row in OPS says that it is not removable.",
         "names = {value for public, value in graph.outputs}\nfor node in graph.nodes:\n    if node.op != 'input' and ...:\n"
         "        names.add(...)\nreturn names"),
        (Mistake(roots_last_output, "wrong-value", "A graph may have several outputs, and the caller gets all of them."),
         Mistake(roots_public_names, "wrong-value", "These are public names. An output is a pair (public name, value name), and"
                 " liveness is about values."),
         Mistake(roots_without_effects, "wrong-value", "An effect is needed by itself: nobody reads a print's value, and still"
                 " somebody reads what it prints."),
         Mistake(roots_with_inputs, "wrong-value", "An input stays in the graph as part of its signature, but that does not make"
                 " it needed: it is no root."),
         Mistake(roots_with_draws, "wrong-value", "A random draw is no effect: it depends on the seed and its site alone, and"
                 " touches nothing else."),
         Mistake(roots_unread, "wrong-value", "That nobody reads a value does not make it needed: this is where the dead are, too."),
         Mistake(roots_prints_only, "wrong-value", "There are other effects than print. The column removable of the op table knows"
                 " them all."),
         Mistake(roots_and_operands, "wrong-value", "These are the roots and what they read. The walk comes later: here only what is"
                 " needed by itself.")),
        (roots_in_one_line, roots_by_token),
        probes=tuple((graph,) for graph in TARGETS),
        adapt=as_set,
        praise="Everything that is alive is alive because one of these needs it. The pass is the walk from here.",
    ),
    Exercise(
        "05", "The pass", dce,
        lambda function: judge_pass(function, SPACE, dce, targets=(*TARGETS, half_dead(60)), deep=half_dead, keeps=only_deleted),
        ("Start from what is needed by itself, and walk the nodes from the last to the first: whoever is needed makes its"
         " operands needed.",
         "Keep a set of live names; at first it holds the values of the outputs. Go through reversed(graph.nodes). A node whose"
         " name is in the set, or that is not removable, is live: add its name and all its operands. At the end keep the live"
         " nodes, in their old order.",
         "live = {value for public, value in graph.outputs}\nfor node in reversed(graph.nodes):\n    if node.name in live or ...:\n"
         "        ...\nkept = tuple(node for node in graph.nodes if ...)\nreturn Graph(graph.name, kept, graph.outputs)"),
        (Mistake(dce_last_output, "lost", "A graph may have several outputs, and the caller gets all of them."),
         Mistake(dce_drops_effects, "lost", "A print is there for what it does, not for its value: an effect is live by itself."),
         Mistake(dce_renumbers_draws, "wrong-value", "The numbers that a draw gives come from its site: renumber it, and it gives"
                 " others."),
         Mistake(dce_drops_inputs, "lost", "An unused input stays: it is in the signature, and the caller still passes it."),
         Mistake(dce_drops_prints, "lost", "A print is an effect as much as an assertion is."),
         Mistake(dce_one_round, "did-nothing", "Dead is also what only dead nodes read. One look at who is read is not enough: walk"
                 " back from what is needed."),
         Mistake(dce_forward, "invalid", "Walked forwards, a node is judged before its readers are. Operands come first in the list,"
                 " so the walk must go backwards."),
         Mistake(dce_bare_effects, "invalid", "A live effect keeps what it reads alive: its operands and the effect before it."),
         Mistake(dce_keeps_draws, "did-nothing", "A draw that nobody reads may go: the other draws do not notice."),
         Mistake(dce_keeps_constants, "did-nothing", "A constant that nobody reads is dead like anything else."),
         Mistake(dce_public_names, "invalid", "An output is a pair (public name, value name), and liveness is about values."),
         Mistake(dce_unread, "invalid", "Outputs are read by the caller, not by a node: begin with their values."),
         Mistake(dce_backwards, "invalid", "The walk goes backwards, the graph does not: operands stand before their readers."),
         Mistake(dce_first_operand, "invalid", "A live node needs all of its operands."),
         Mistake(dce_recursive, "raises", "One call for each node on the way runs out of stack on a deep graph. The list is already in"
                 " order: a loop is enough."),
         Mistake(dce_nothing, "did-nothing", "The graph came back as it was.")),
        (dce_with_worklist, dce_round_by_round, dce_counting_readers, dce_by_the_package),
        probes=tuple((graph,) for graph in TARGETS),
        praise="One walk was enough, because readers come last: when you reach a node, all its readers have been judged.",
        is_pass=True,
    ),
    Exercise(
        "05", "Stripping effects, on request", strip_effects,
        lambda function: judge_calls(function, strip_cases(), strip_effects, explain=explain_strip),
        ("Effects are beads on a string: take one off, and the next one has to be tied to the one before.",
         "Walk the nodes and remember the token of the last effect that stayed (at first there is none). Skip an effect that is"
         " listed. Give every other effect its own values and then that token, and remember its name as the new token.",
         "before = ()\nfor node in graph.nodes:\n    if OPS[node.op].kind is Kind.EFFECT:\n        if node.op in names: continue\n"
         "        values = node.inputs[:int(OPS[node.op].arity[0])]\n        node = Node(..., values + before, ...)\n        ...\n"
         "    nodes.append(node)"),
        (Mistake(strip_effects_all, "wrong-value", "Only what is listed may go: an assertion was not asked for."),
         Mistake(strip_effects_always_prints, "wrong-value", "Nothing goes without being listed, not even a print."),
         Mistake(strip_effects_no_token, "wrong-value", "The effects that stay keep their order, so each takes the token of the one"
                 " before."),
         Mistake(strip_effects_first_token, "wrong-value", "Each effect takes the token of the effect right before it, not of the"
                 " first."),
         Mistake(strip_effects_old_tokens, "wrong-value", "The next effect still asks for the token of one that is gone."),
         Mistake(strip_effects_and_dead, "wrong-value", "One pass, one thought: what became dead is for dce to take."),
         Mistake(strip_effects_anything, "wrong-value", "Only effects can be stripped: a value that somebody reads cannot go because"
                 " its operation is listed."),
         Mistake(strip_effects_first_only, "wrong-value", "All effects of a listed kind go, not only the first.")),
        (strip_effects_by_stand_in, strip_effects_one_by_one),
        probes=tuple(strip_cases()),
        praise="The caller had to name what goes. That is what consent looks like in a program.",
        stretch=True,
    ),
)  # fmt: skip

REFUTATIONS = (
    Refutation(
        "05", dce_last_output,
        parse("graph mine(x: f32[4]) -> (y) {\n  a = sin(x)\n  y = exp(x)\n  return y\n}"),
        parse("graph mine(x: f32[4]) -> (s, y) {\n  a = sin(x)\n  y = exp(x)\n  return s = a, y\n}"),
        "`return` may name several values: `return s = a, y`, with (s, y) in the first line.",
        "A graph has as many results as it says. The language model of chapter 00 has 61: the scores and 60 caches.",
    ),
    Refutation(
        "05", dce_drops_effects,
        parse("graph mine(x: f32[4]) -> (y) {\n  a = sin(x)\n  y = exp(a)\n  return y\n}"),
        parse("graph mine(x: f32[4]) -> (y) {\n  a = sin(x)\n  p = print(a) {label=\"a is\"}\n  y = exp(x)\n  return y\n}"),
        "Somebody wants to see a value while the program runs. The lesson has a line that does it.",
        "Unused is not the same as unneeded: the value of a print is never used, and the print is still what the program does.",
    ),
    Refutation(
        "05", dce_renumbers_draws,
        parse(f"graph mine() -> (y) {{\n  a = random() {DRAW % 0}\n  b = random() {DRAW % 1}\n  y = sub(a, b)\n  return y\n}}"),
        parse(f"graph mine() -> (y) {{\n  a = random() {DRAW % 0}\n  b = random() {DRAW % 1}\n  y = neg(b)\n  return y\n}}"),
        "The pass harms nothing while all draws are used. What if the first one is dead?",
        "A site is a draw's identity. Because nothing ever rewrites it, deleting one draw changes no other.",
    ),
)  # fmt: skip
