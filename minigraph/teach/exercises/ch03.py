"""Chapter 03, constant folding: the exercises, their mistakes and the passes to refute."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...ir import Graph, Node, defs
from ...ops import OPS
from ...passes.fold import fold as package_fold
from ...text import parse
from ...types import DTYPES, Const
from ..exercise import Exercise, Mistake, Refutation
from ..graphs import Space
from ..judge import Failure, Verdict, judge_calls, judge_one, judge_pass

SPACE = Space(
    inputs=(("x", "f32[4]"),),
    consts=(("two", 2.0, "f32[]"), ("three", 3.0, "f32[]"), ("big", 100, "i8[]")),
    ops=(("add", {}), ("sub", {}), ("neg", {}), ("print", {"label": "seen"}),
         ("random", {"shape": (4,), "dtype": "f32", "dist": "uniform"})),
)  # fmt: skip

TARGETS = tuple(parse(text) for text in (
    "graph halves() -> (y) {\n a = const(1.0) : f16[]\n b = const(2049.0) : f32[]\n c = cast(b) {dtype=f16}\n y = add(c, a)\n return y\n}",
    "graph bytes() -> (y) {\n a = const([100, 100]) : i8[2]\n y = add(a, a)\n return y\n}",
    "graph tiny() -> (y) {\n a = const(16777216.0) : f32[]\n b = const(1.0) : f32[]\n c = add(a, b)\n y = add(c, b)\n return y\n}",
    "graph rows() -> (y) {\n a = const([[1.0, 2.0], [3.0, 4.0]]) : f32[2,2]\n y = sum(a) {axis=[0]}\n return y\n}",
    "graph deep(x: f32[4]) -> (y) {\n a = const(2.0)\n b = const(3.0)\n c = add(a, b)\n d = mul(c, b)\n y = mul(d, x)\n return y\n}",
    "graph total() -> (y) {\n a = const([16777216.0, 1.0, 1.0]) : f32[3]\n y = sum(a) {axis=[0]}\n return y\n}",
    "graph curve() -> (a2, b2, c2) {\n a = const(1.0) : f32[]\n b = const(3.3) : f32[]\n c = const(10.5) : f32[]\n"
    " a2 = exp(a)\n b2 = exp(b)\n c2 = exp(c)\n return a2, b2, c2\n}",
    "graph beyond() -> (y) {\n a = const([1.0, 2.0]) : f32[2]\n b = const(5) : i32[]\n y = take(a, b)\n return y\n}",
    "graph infinite() -> (y) {\n a = const(1.0) : f32[]\n b = const(0.0) : f32[]\n c = div(a, b)\n y = sub(c, c)\n return y\n}",
    "graph chosen(x: f32[2]) -> (y) {\n a = const([true, false]) : bool[2]\n b = const([1.0, 2.0]) : f32[2]\n y = where(a, b, x)\n return y\n}",
    "graph sums() -> (b, c) {\n a = const([[1.0, 2.0], [3.0, 4.0]]) : f32[2,2]\n b = sum(a) {axis=[0]}\n c = sum(a) {axis=[1]}\n return b, c\n}",
    "graph kinds() -> (y) {\n a = const([[1, 2, 3], [4, 5, 6]]) : i64[2,3]\n b = transpose(a) {perm=[1,0]}\n c = matmul(b, a)\n"
    " d = reshape(c) {shape=[9]}\n e = concat(d, d, d) {axis=0}\n f = lt(e, e)\n y = where(f, e, e)\n return y\n}",
    "graph powers() -> (y) {\n a = const(2) : i32[]\n b = const(-1) : i32[]\n y = pow(a, b)\n return y\n}",
))  # fmt: skip


def computed(graph: Graph) -> int:
    """Operations whose operands are all constants."""
    nodes = defs(graph)
    return sum(OPS[node.op].foldable and bool(node.inputs) and all(nodes[name].op == "const" for name in node.inputs)
               for node in graph.nodes)


# ---- the value of one operation ---------------------------------------------------------------------------------


def evaluate(node, arrays):
    """The value of one operation on these arrays, as a Const of the node's own dtype.

    ``node`` is a Node, ``arrays`` a list of NumPy arrays, one an operand. The op table knows what each
    operation means: ``OPS[node.op].numpy(*arrays, **attributes)``.
    ``dict(node.value or ())`` gives the attributes.
    """
    ### BEGIN SOLUTION
    attributes = dict(node.value or ())
    result = OPS[node.op].numpy(*arrays, **attributes)
    return Const.of(np.asarray(result), node.type.dtype)
    ### END SOLUTION


def evaluate_by_branches(node, arrays):
    value = OPS[node.op].numpy(*arrays, **(dict(node.value) if node.value else {}))
    return Const.of(np.array(value, dtype=DTYPES[node.type.dtype]))


def evaluate_by_type(node, arrays):
    attributes = {} if node.value is None else {name: value for name, value in node.value}
    return Const.of(np.asarray(OPS[node.op].numpy(*arrays, **attributes)))


def evaluate_in_float64(node, arrays):
    wide = [np.asarray(array, np.float64) for array in arrays]
    return Const.of(np.asarray(OPS[node.op].numpy(*wide, **dict(node.value or ()))), node.type.dtype)


def evaluate_without_attributes(node, arrays):
    return Const.of(np.asarray(OPS[node.op].numpy(*arrays)), node.type.dtype)


def evaluate_reversed(node, arrays):
    return Const.of(np.asarray(OPS[node.op].numpy(*arrays[::-1], **dict(node.value or ()))), node.type.dtype)


def evaluate_bare(node, arrays):
    return OPS[node.op].numpy(*arrays, **dict(node.value or ()))


def evaluate_as_f32(node, arrays):
    return Const.of(np.asarray(OPS[node.op].numpy(*arrays, **dict(node.value or ()))), "f32")


def evaluate_cases():
    """Calls on operations of several dtypes, smallest first."""
    text = """graph cases() -> (e) {
      a = const(2.0) : f32[]
      b = const(3.0) : f32[]
      s = sub(a, b)
      c = const(100) : i8[]
      d = add(c, c)
      f = const(16777217.0) : f64[]
      g = const(16777217) : i32[]
      h = const(3) : i32[]
      h64 = const(2) : i64[]
      k = floor_div(g, h)
      t = const(0.1) : f32[]
      u = add(t, t)
      v = mul(u, t)
      m = const([[1.0, 2.0], [3.0, 4.0]])
      n = sum(m) {axis=[0]}
      o = lt(a, b)
      p = cast(b) {dtype=f64}
      q = exp(b)
      r = const(9007199254740993) : i64[]
      w = add(r, h64)
      z = const([16777216.0, 1.0, 1.0]) : f32[3]
      aa = sum(z) {axis=[0]}
      bb = const([2048.0, 1.0, 1.0]) : f16[3]
      cc = sum(bb) {axis=[0]}
      dd = const(1.0) : f32[]
      ee = exp(dd)
      ff = const(3.3) : f32[]
      gg = exp(ff)
      hh = const(10.5) : f32[]
      ii = exp(hh)
      jj = sum(m) {axis=[1], keepdims=true}
      kk = transpose(m) {perm=[1,0]}
      ll = concat(m, m, kk) {axis=0}
      mm = where(o, a, b)
      nn = maximum(m, jj)
      oo = reshape(ll) {shape=[4,3]}
      pp = argmax(ll) {axis=1}
      e = neg(n)
      return e
    }"""
    graph = parse(text)
    values = package_fold(graph).graph
    arrays = {node.name: node.value.array for node in values.nodes}
    for node in graph.nodes:
        if node.op != "const":
            yield node, [arrays[name] for name in node.inputs]


# ---- the pass -----------------------------------------------------------------------------------------------------


def fold(graph):
    """Replace every operation whose operands are all constants by a constant. Graph -> Graph.

    Leave alone what OPS[node.op].foldable does not allow, and what NumPy refuses to compute: it raises
    ValueError (an integer to a negative power) or IndexError (a take beyond the end). A folded node
    keeps its name. Constants that nobody reads any more may stay: removing them is chapter 05's job.

    a = const(2.0), b = const(3.0), c = add(a, b)  becomes
    a = const(2.0), b = const(3.0), c = const(5.0)
    """
    ### BEGIN SOLUTION
    constants = {}
    nodes = []
    for node in graph.nodes:
        if node.op == "const":
            constants[node.name] = node.value
        elif OPS[node.op].foldable and all(name in constants for name in node.inputs):
            arrays = [constants[name].array for name in node.inputs]
            try:
                result = OPS[node.op].numpy(*arrays, **dict(node.value or ()))
                value = Const.of(np.asarray(result), node.type.dtype)
                constants[node.name] = value
                node = Node(node.name, "const", (), value, node.type, node.origin)
            except (ValueError, IndexError):
                pass  # it will raise at run time, as it did before
        nodes.append(node)
    return Graph(graph.name, tuple(nodes), graph.outputs)
    ### END SOLUTION


def fold_with_lookup(graph):
    known, nodes = {}, []
    for node in graph.nodes:
        operands = [known.get(name) for name in node.inputs]
        if OPS[node.op].foldable and operands and None not in operands:
            try:
                array = OPS[node.op].numpy(*(value.array for value in operands), **dict(node.value or ()))
            except Exception:
                nodes.append(node)
                continue
            node = replace(node, op="const", inputs=(), value=Const.of(np.asarray(array, DTYPES[node.type.dtype])))
        if node.op == "const":
            known[node.name] = node.value
        nodes.append(node)
    return Graph(graph.name, tuple(nodes), graph.outputs)


def fold_by_the_package(graph):
    return package_fold(graph, max_growth=2**40).graph


def fold_variant(graph, foldable=lambda node: OPS[node.op].foldable, compute=None, repeat=True, drop=False):
    """The solution with one thing changed; the mistakes below are made of it."""
    constants, nodes = {}, []
    for node in graph.nodes:
        if node.op == "const":
            constants[node.name] = node.value
        elif foldable(node) and node.inputs and all(name in constants for name in node.inputs):
            arrays = [constants[name].array for name in node.inputs]
            try:
                value = (compute or right_value)(node, arrays)
                if repeat:
                    constants[node.name] = value
                node = Node(node.name, "const", (), value, value.type, node.origin)
            except (ValueError, IndexError):
                pass
        nodes.append(node)
    return Graph(graph.name, tuple(nodes), graph.outputs)


def right_value(node, arrays):
    return Const.of(np.asarray(OPS[node.op].numpy(*arrays, **dict(node.value or ()))), node.type.dtype)


def fold_in_float64(graph):
    """Computes in double precision and rounds at the end, "because more digits must be better"."""
    exact = {}
    nodes = []
    for node in graph.nodes:
        if node.op == "const":
            exact[node.name] = node.value.array.astype(np.float64)
        elif OPS[node.op].foldable and all(name in exact for name in node.inputs):
            try:
                exact[node.name] = OPS[node.op].numpy(*[exact[name] for name in node.inputs], **dict(node.value or ()))
                value = Const.of(np.asarray(exact[node.name]), node.type.dtype)
                node = Node(node.name, "const", (), value, node.type, node.origin)
            except (ValueError, IndexError, TypeError):
                pass
        nodes.append(node)
    return Graph(graph.name, tuple(nodes), graph.outputs)


def fold_swapped(graph):
    return fold_variant(graph, compute=lambda node, arrays: right_value(node, arrays[::-1] if node.op == "sub" else arrays))


def fold_without_attributes(graph):
    def compute(node, arrays):
        attributes = dict(node.value or ())
        if "axis" in attributes:
            attributes["axis"] = tuple(range(arrays[0].ndim))
        return Const.of(np.asarray(OPS[node.op].numpy(*arrays, **attributes)), node.type.dtype)
    return fold_variant(graph, compute=compute)


def fold_everything(graph):
    """Folds whatever has constant operands, effects too: a print of a constant is done once and for all."""
    def compute(node, arrays):
        if not OPS[node.op].foldable:
            return Const.of(np.zeros((), np.float32))
        return right_value(node, arrays)
    folded = fold_variant(graph, foldable=lambda node: True, compute=compute)
    return Graph(folded.name, tuple(node for node in folded.nodes if not (node.op == "const" and node.name not in
                 {n.name for n in graph.nodes if OPS[n.op].removable})), folded.outputs)


def fold_whatever_is_constant(graph):
    constants, nodes = {}, []
    for node in graph.nodes:
        if node.op == "const":
            constants[node.name] = node.value
        elif all(name in constants for name in node.inputs):
            try:
                value = right_value(node, [constants[name].array for name in node.inputs])
                constants[node.name] = value
                node = Node(node.name, "const", (), value, node.type, node.origin)
            except (ValueError, IndexError):
                pass
        nodes.append(node)
    return Graph(graph.name, tuple(nodes), graph.outputs)


def fold_guarding_values(graph):
    constants, nodes = {}, []
    for node in graph.nodes:
        if node.op == "const":
            constants[node.name] = node.value
        elif OPS[node.op].foldable and all(name in constants for name in node.inputs):
            try:
                value = right_value(node, [constants[name].array for name in node.inputs])
                constants[node.name] = value
                node = Node(node.name, "const", (), value, node.type, node.origin)
            except ValueError:
                pass
        nodes.append(node)
    return Graph(graph.name, tuple(nodes), graph.outputs)


def fold_each_in_float64(graph):
    return fold_variant(graph, compute=evaluate_in_float64)


def fold_once(graph):
    return fold_variant(graph, repeat=False)


def fold_renamed(graph):
    folded = fold_variant(graph)
    new = {node.name: f"{node.name}_folded" for node, old in zip(folded.nodes, graph.nodes) if node.op != old.op}
    nodes = tuple(replace(node, name=new.get(node.name, node.name), inputs=tuple(new.get(i, i) for i in node.inputs))
                  for node in folded.nodes)
    return Graph(graph.name, nodes, tuple((new.get(value, public), new.get(value, value)) for public, value in graph.outputs))


def fold_nothing(graph):
    return Graph(graph.name, graph.nodes, graph.outputs)


def fold_without_guard(graph):
    constants, nodes = {}, []
    for node in graph.nodes:
        if node.op == "const":
            constants[node.name] = node.value
        elif OPS[node.op].foldable and all(name in constants for name in node.inputs):
            value = right_value(node, [constants[name].array for name in node.inputs])
            constants[node.name] = value
            node = Node(node.name, "const", (), value, node.type, node.origin)
        nodes.append(node)
    return Graph(graph.name, tuple(nodes), graph.outputs)


# ---- the stretch: a fold that does not grow the program -------------------------------------------------------------


def fold_small(graph):
    """Fold as before, but only where the result is at most 1024 bytes larger
    than the operands together.

    An operand that is read twice counts twice. ``node.type.nbytes`` is the size of a result, known
    before anything is computed; ``len(const.data)`` is that of a constant. Without the bound
    broadcast_to(0.0, [65536, 65536]) would turn 4 bytes into 16 GiB, in your compiler's memory.
    """
    ### BEGIN SOLUTION
    constants = {}
    nodes = []
    for node in graph.nodes:
        if node.op == "const":
            constants[node.name] = node.value
        elif OPS[node.op].foldable and all(name in constants for name in node.inputs):
            operands = [constants[name] for name in node.inputs]
            growth = node.type.nbytes - sum(len(operand.data) for operand in operands)
            if growth <= 1024:
                arrays = [operand.array for operand in operands]
                result = OPS[node.op].numpy(*arrays, **dict(node.value or ()))
                value = Const.of(np.asarray(result), node.type.dtype)
                constants[node.name] = value
                node = Node(node.name, "const", (), value, node.type, node.origin)
        nodes.append(node)
    return Graph(graph.name, tuple(nodes), graph.outputs)
    ### END SOLUTION


def fold_small_variant(graph, allowed):
    constants, nodes = {}, []
    for node in graph.nodes:
        if node.op == "const":
            constants[node.name] = node.value
        elif OPS[node.op].foldable and all(name in constants for name in node.inputs):
            operands = [constants[name] for name in node.inputs]
            if allowed(node, operands):
                value = right_value(node, [operand.array for operand in operands])
                constants[node.name] = value
                node = Node(node.name, "const", (), value, node.type, node.origin)
        nodes.append(node)
    return Graph(graph.name, tuple(nodes), graph.outputs)


def grown(node, operands):
    return node.type.nbytes - sum(operand.array.nbytes for operand in operands)


def fold_small_compact(graph):
    return fold_small_variant(graph, lambda node, operands: grown(node, operands) <= 1024)


def fold_small_by_the_package(graph):
    return package_fold(graph).graph


def fold_small_no_limit(graph):
    # bounded all the same, or the tests of this mistake would need 16 GiB
    return fold_small_variant(graph, lambda node, operands: node.type.nbytes <= 2**22)


def fold_small_absolute(graph):
    return fold_small_variant(graph, lambda node, operands: node.type.nbytes <= 1024)


def fold_small_elements(graph):
    return fold_small_variant(graph, lambda node, operands: node.type.size - sum(o.array.size for o in operands) <= 1024)


def fold_small_strict(graph):
    return fold_small_variant(graph, lambda node, operands: grown(node, operands) < 1024)


def fold_small_largest(graph):
    return fold_small_variant(graph, lambda node, operands: node.type.nbytes - max(o.array.nbytes for o in operands) <= 1024)


def fold_small_never_grows(graph):
    return fold_small_variant(graph, lambda node, operands: grown(node, operands) <= 0)


def fold_small_scalars(graph):
    return fold_small_variant(graph, lambda node, operands: node.type.shape == ())


SMALL_TARGETS = tuple(parse(text) for text in (
    "graph grows() -> (y) {\n a = const(1.0) : f32[]\n y = broadcast_to(a) {shape=[1024]}\n return y\n}",
    "graph fits() -> (y) {\n a = const(1.0) : f32[]\n y = broadcast_to(a) {shape=[257]}\n return y\n}",
    "graph large() -> (y) {\n a = const(1.0) : f32[600]\n y = neg(a)\n return y\n}",
    "graph wide() -> (y) {\n a = const(1.0) : f32[]\n y = broadcast_to(a) {shape=[2000]}\n return y\n}",
    "graph both() -> (y) {\n a = const(1.0) : f32[300]\n b = const(2.0) : f32[300]\n y = concat(a, b) {axis=0}\n return y\n}",
    "graph bytes_more() -> (y) {\n a = const(1) : i8[]\n y = broadcast_to(a) {shape=[1026]}\n return y\n}",
    "graph bytes_fit() -> (y) {\n a = const(1) : i8[]\n y = broadcast_to(a) {shape=[1025]}\n return y\n}",
    "graph same_twice() -> (y) {\n a = const(1.0) : f32[300]\n y = concat(a, a) {axis=0}\n return y\n}",
    "graph little() -> (y) {\n a = const(1.0) : f32[]\n y = broadcast_to(a) {shape=[8]}\n return y\n}",
))  # fmt: skip


def stored_beyond(graph: Graph) -> int:
    """Operations that could be folded within the bound."""
    nodes = defs(graph)
    return sum(bool(node.inputs) and OPS[node.op].foldable and all(nodes[i].op == "const" for i in node.inputs)
               and grown(node, [nodes[i].value for i in node.inputs]) <= 1024 for node in graph.nodes)


def judge_small(function):
    """As for fold; and then no constant may be there that the bound forbids."""
    verdict = judge_pass(function, replace(SPACE, limit=1500, larger=100), fold_small, left=stored_beyond, targets=SMALL_TARGETS)
    for graph in SMALL_TARGETS if verdict.failure is None else ():
        got, best = judge_one(function, graph)[1], fold_small(graph)
        if stored(got) > stored(best):
            return Verdict(Failure("grew", "Your function stored more than the bound allows.", graph, got, details=(
                f"bytes of constants after your function: {stored(got)}; allowed: {stored(best)}",)), verdict.tried)
    return verdict


def stored(graph: Graph) -> int:
    return sum(len(node.value.data) for node in graph.nodes if node.op == "const")


EXERCISES = (
    Exercise(
        "03", "The value of one operation", evaluate,
        lambda function: judge_calls(function, evaluate_cases(), evaluate, explain=lambda case, want, got: (
            f"for {case[0].name} = {case[0].op}({', '.join(case[0].inputs)}) : {case[0].type}",
            f"it should give {want!r}", f"and gives      {got!r}")),
        ("The op table has one row an operation, and its `numpy` is the operation's meaning: call it.",
         "Take OPS[node.op].numpy, call it with the arrays and with the attributes as keywords, make a NumPy array of the"
         " answer, and make a Const of that in the dtype that node.type.dtype names.",
         "attributes = dict(node.value or ())\nresult = OPS[node.op].numpy(...)\nreturn Const.of(np.asarray(result), ...)"),
        (Mistake(evaluate_in_float64, "wrong-value", "This is what computing in float64 gives: the graph's own dtype rounds and"
                 " wraps differently, and a fold must give what the run would have given."),
         Mistake(evaluate_without_attributes, "raises", "Attributes such as axis belong to the operation."),
         Mistake(evaluate_reversed, "wrong-value", "The operands are in the wrong order: a - b is not b - a."),
         Mistake(evaluate_bare, "wrong-value", "This is a NumPy value, not a Const."),
         Mistake(evaluate_as_f32, "wrong-value", "Every result became f32; a node has a dtype of its own.")),
        (evaluate_by_branches, evaluate_by_type),
        probes=tuple(evaluate_cases()),
        praise="You called the op table and had no opinion of your own. The executor asks the same table, so a folded value is the run's value.",
    ),
    Exercise(
        "03", "The pass", fold,
        lambda function: judge_pass(function, SPACE, fold, left=computed, targets=TARGETS),
        ("Walk the nodes once, in order, and remember which values are constants; operands always come first.",
         "Keep a dict from name to Const. A const node enters it. A foldable node whose operands are all in it becomes a const"
         " node of the same name, and enters it too, so that its users can fold in the same walk. Everything else stays.",
         "constants, nodes = {}, []\nfor node in graph.nodes:\n    if node.op == 'const': ...\n    elif OPS[node.op].foldable and"
         " all(...): ...\n    nodes.append(node)\nreturn Graph(graph.name, tuple(nodes), graph.outputs)"),
        (Mistake(fold_in_float64, "wrong-value", "This is folding in float64. A run rounds after every operation in the graph's"
                 " own dtype, so a fold must too."),
         Mistake(fold_each_in_float64, "wrong-value", "Rounding each result back is not enough: a sum, or an exp, in float64"
                 " rounds elsewhere on the way. Call the op table on the arrays as they are."),
         Mistake(fold_whatever_is_constant, "raises", "Ask OPS[node.op].foldable first: an input, a draw or a print is not"
                 " foldable, whatever its operands are."),
         Mistake(fold_guarding_values, "raises", "NumPy refuses in two ways: ValueError, and IndexError where an index is out of"
                 " range."),
         Mistake(fold_swapped, "wrong-value", "The operands are in the wrong order: a - b is not b - a."),
         Mistake(fold_without_attributes, "lost", "Attributes such as axis belong to the operation."),
         Mistake(fold_everything, "lost", "A print of a constant is still a print: only what is foldable may be folded."),
         Mistake(fold_once, "did-nothing", "A folded value is a constant too: remember it, and its users fold in the same walk."),
         Mistake(fold_renamed, "lost", "An output's public name is a promise to the caller: only the value behind it may change."),
         Mistake(fold_nothing, "did-nothing", "The graph came back as it was."),
         Mistake(fold_without_guard, "raises", "NumPy refuses to compute this one, by a ValueError or an IndexError. A fold"
                 " leaves that node alone: the error belongs to the run.")),
        (fold_with_lookup, fold_by_the_package),
        probes=tuple((graph,) for graph in TARGETS),
        praise="One walk was enough, because operands come first: that is what topological order buys.",
        is_pass=True,
    ),
    Exercise(
        "03", "A fold that does not grow the program", fold_small, judge_small,
        ("Before computing, compare the size that the result will have with the sizes of the constants it reads.",
         "growth = node.type.nbytes minus the bytes of the operands; fold only if growth is at most 1024. The type is known"
         " without computing anything.",
         "growth = node.type.nbytes - sum(len(operand.data) for operand in operands)\nif growth <= 1024:\n    ..."),
        (Mistake(fold_small_no_limit, "grew", "There is no limit: 4 bytes became 4096."),
         Mistake(fold_small_absolute, "did-nothing", "A result may be large if its operands were: negating a large constant"
                 " grows nothing."),
         Mistake(fold_small_elements, "grew", "Count bytes, not elements: a float32 has four."),
         Mistake(fold_small_strict, "did-nothing", "The bound itself is allowed: at most 1,024 bytes more."),
         Mistake(fold_small_largest, "did-nothing", "Count all the operands together, not only the largest one."),
         Mistake(fold_small_never_grows, "did-nothing", "A little growth is allowed: up to 1024 bytes."),
         Mistake(fold_small_scalars, "did-nothing", "Arrays may be folded too, within the bound.")),
        (fold_small_compact, fold_small_by_the_package),
        probes=tuple((graph,) for graph in SMALL_TARGETS),
        praise="The bound is on bytes stored, so a program can only grow by a little for each fold.",
        stretch=True,
    ),
)  # fmt: skip

REFUTATIONS = (
    Refutation(
        "03", fold_in_float64,
        parse("graph mine() -> (y) {\n  a = const(2.0) : f32[]\n  b = const(3.0) : f32[]\n  y = add(a, b)\n  return y\n}"),
        parse("graph mine() -> (y) {\n  a = const(16777216.0) : f32[]\n  b = const(1.0) : f32[]\n  c = add(a, b)\n"
              "  y = add(c, b)\n  return y\n}"),
        "One operation is not enough: its result is stored in the node's own dtype again. But this pass keeps all its digits"
        " for the next operation. After which second operation does that show?",
        "More precision is not more right: the compiler must give what the program gives.",
    ),
)  # fmt: skip
