"""Chapter 02, tracing: a tracer in three pieces, and functions with an ``if`` and a loop that a tracer baked in."""

from __future__ import annotations

import numpy as np

from ...ir import Builder, Graph
from ...types import DTYPES, SHORT
from ..exercise import Baked, Exercise, Mistake
from ..judge import call, describe
from ..judge_traces import judge_traces, numpy_steps, numpy_value, tidy
from ..standins import Proxy, expression_of, with_operators

# ---- one operation ------------------------------------------------------------------------------------------------


def record(builder, op, a, b):
    """Write ``op(a, b)`` into the builder, in the dtype that NumPy would compute it in.
    Returns the new value's name.

    ``a`` and ``b`` are each the name of a value in the builder (a str) or a Python number (int, float
    or bool). NumPy itself tells the dtype: ``np.result_type(np.dtype("int32"), 1.0)`` takes dtypes and
    Python numbers. Only a division of integers is computed in f64. ``DTYPES["i32"]`` is NumPy's int32,
    and ``SHORT`` maps it back to "i32".

    A value of another dtype gets a cast, ``builder.emit("cast", name, dtype="f64")``; one that has the
    dtype already gets none. A number becomes a constant of that dtype, ``builder.const(1.0, "f64")``,
    which refuses what does not fit. ``builder.type(name).dtype`` is the dtype of a value, like "i32".
    Then ``builder.emit(op, ...)``.

    With ``n: i32[3]``, ``record(builder, "add", "n", 1.0)`` writes three nodes: a cast, a constant, an
    add, all f64. About 12 lines.
    """
    ### BEGIN SOLUTION
    kinds = [DTYPES[builder.type(value).dtype] if isinstance(value, str) else value for value in (a, b)]
    dtype = SHORT[np.result_type(*kinds)]
    if op == "div" and dtype[0] != "f":
        dtype = "f64"
    operands = []
    for value in (a, b):
        if not isinstance(value, str):
            value = builder.const(value, dtype)
        elif builder.type(value).dtype != dtype:
            value = builder.emit("cast", value, dtype=dtype)
        operands.append(value)
    return builder.emit(op, *operands)
    ### END SOLUTION


def record_by_helpers(builder, op, a, b):
    def kind(value):
        return builder.nodes[value].type.dtype if type(value) is str else None

    def ready(value, dtype):
        if kind(value) is None:
            return builder.const(np.array(value, DTYPES[dtype]))
        return value if kind(value) == dtype else builder.emit("cast", value, dtype=dtype)

    known = [np.ones(1, DTYPES[kind(value)]) if kind(value) else value for value in (a, b)]
    dtype = np.result_type(*known, np.float64 if op == "div" and np.result_type(*known).kind != "f" else np.bool_)
    left = ready(a, SHORT[dtype])
    return builder.emit(op, left, ready(b, SHORT[dtype]))


def record_right_first(builder, op, a, b):
    with np.errstate(all="ignore"):
        parts = [np.ones((), DTYPES[builder.type(v).dtype]) if isinstance(v, str) else v for v in (a, b)]
        dtype = np.result_type(*parts)
    if op == "div" and dtype.kind in "iub":
        dtype = np.dtype(float)
    names = {}
    for place in (1, 0):
        value = (a, b)[place]
        if isinstance(value, str):
            if DTYPES[builder.type(value).dtype] != dtype:
                value = builder.emit("cast", value, dtype=SHORT[dtype])
        else:
            value = builder.const(dtype.type(value) if dtype.kind != "b" else bool(value), SHORT[dtype])
        names[place] = value
    return builder.emit(op, names[0], names[1])


def record_variant(builder, op, a, b, promote=np.result_type, always=False, divide=True, keep=False, number=None):
    """The solution with one thing changed; the mistakes below are made of it."""
    kinds = [DTYPES[builder.type(value).dtype] if isinstance(value, str) else value for value in (a, b)]
    dtype = SHORT[np.dtype(promote(*kinds))]
    if divide and op == "div" and dtype[0] != "f":
        dtype = "f64"
    operands = []
    for value in (a, b):
        if not isinstance(value, str):
            value = number(builder, value, dtype) if number else builder.const(value, dtype)
        elif not keep and (always or builder.type(value).dtype != dtype):
            value = builder.emit("cast", value, dtype=dtype)
        operands.append(value)
    return builder.emit(op, *operands)


def record_swapped(builder, op, a, b):
    """Puts the value first and the number second, "because the order does not matter"."""
    return record_variant(builder, op, b, a) if not isinstance(a, str) else record_variant(builder, op, a, b)


def record_in_the_arrays_dtype(builder, op, a, b):
    def promote(*kinds):
        return np.result_type(*[kind for kind in kinds if isinstance(kind, np.dtype)])
    return record_variant(builder, op, a, b, promote=promote)


def record_strong_numbers(builder, op, a, b):
    """Gives a Python number a dtype of its own, float64 or int64, as NumPy would if it were an array."""
    def promote(*kinds):
        return np.result_type(*[kind if isinstance(kind, np.dtype) else np.asarray(kind).dtype for kind in kinds])
    return record_variant(builder, op, a, b, promote=promote)


def record_without_casts(builder, op, a, b):
    return record_variant(builder, op, a, b, keep=True)


def record_always_casts(builder, op, a, b):
    return record_variant(builder, op, a, b, always=True)


def record_integer_division(builder, op, a, b):
    return record_variant(builder, op, a, b, divide=False)


def record_returns_the_op(builder, op, a, b):
    record_variant(builder, op, a, b)
    return op


def record_wraps_numbers(builder, op, a, b):
    def number(builder, value, dtype):
        return builder.const(np.asarray(value).astype(DTYPES[dtype]))
    return record_variant(builder, op, a, b, number=number)


def record_casts_numbers(builder, op, a, b):
    def number(builder, value, dtype):
        own = "i64" if type(value) is int else "bool" if type(value) is bool else "f64"
        name = builder.const(value, own)
        return name if own == dtype else builder.emit("cast", name, dtype=dtype)
    return record_variant(builder, op, a, b, number=number)


def run_record(function):
    """What the judge calls: some inputs, and steps ``(op, a, b)``; ``"t1"`` is what the first step returned."""

    def run(types, steps):
        builder = Builder("traced")
        names = {name: builder.input(name, type) for name, type in types.items()}
        for number, (op, *operands) in enumerate(steps, 1):
            try:
                got = function(builder, op, *(names[one] if isinstance(one, str) else one for one in operands))
            except OverflowError:
                return "OverflowError"
            if not isinstance(got, str) or got not in builder.nodes:
                return not_a_name(got)
            names[f"t{number}"] = got
        return tidy(builder.build({"out": got}))

    return run


def not_a_name(got) -> str:
    shown = repr(got) if isinstance(got, str) else describe(got)
    return f"Your function returned {shown}, which is not the name of a value in the builder."


F, N = {"x": "f32[4]"}, {"n": "i32[4]"}
RECORD_CASES = (
    (F, (("add", "x", 2.0),)), (F, (("sub", "x", 2.0),)), (F, (("sub", 2.0, "x"),)), (F, (("div", 2, "x"),)),
    (F, (("mul", "x", "x"),)), (F, (("add", "x", 3),)), (F, (("add", -0.0, "x"),)), (F, (("lt", "x", 2),)),
    (N, (("add", "n", 1.0),)), (N, (("mul", 2, "n"),)), (N, (("sub", True, "n"),)), (N, (("div", "n", "n"),)),
    (N, (("div", "n", 2),)), (N, (("div", 1, "n"),)), (N, (("lt", "n", 0.5),)), (N, (("sub", 0.5, "n"),)),
    ({"h": "f16[4]"}, (("mul", "h", 0.1),)), ({"d": "f64[4]"}, (("mul", 0.1, "d"),)),
    ({"u": "u8[4]"}, (("sub", 1, "u"),)), ({"u": "u8[4]"}, (("add", "u", 1.5),)),
    ({"b": "bool[4]"}, (("add", "b", 1),)), ({"b": "bool[4]"}, (("mul", 0.5, "b"),)), ({"b": "bool[4]"}, (("div", "b", "b"),)),
    ({"t": "i8[4]"}, (("add", "t", 300),)), ({"t": "i8[4]"}, (("add", 100, "t"),)), ({"t": "i8[4]"}, (("div", "t", "t"),)),
    ({"u": "u8[4]"}, (("sub", "u", -1),)),
    ({"n": "i64[4]"}, (("add", "n", 2**53 + 1),)), ({"n": "i32[4]"}, (("mul", 2**31, "n"),)),
    ({"x": "f32[4]", "y": "f32[4]"}, (("sub", "x", "y"),)), ({"x": "f32[4]", "y": "f32[4]"}, (("div", "y", "x"),)),
    ({"x": "f32[4]", "n": "i32[4]"}, (("sub", "x", "n"),)), ({"n": "i32[4]", "x": "f32[4]"}, (("div", "n", "x"),)),
    ({"h": "f16[4]", "x": "f32[4]"}, (("mul", "h", "x"),)), ({"h": "f16[4]", "t": "i8[4]"}, (("sub", "t", "h"),)),
    ({"u": "u8[4]", "t": "i8[4]"}, (("sub", "u", "t"),)), ({"b": "bool[4]", "t": "i8[4]"}, (("add", "b", "t"),)),
    ({"n": "i64[4]", "x": "f32[4]"}, (("lt", "n", "x"),)), ({"x": "f32[2,3]", "w": "f32[3]"}, (("sub", "w", "x"),)),
    (F, (("sub", "x", 1), ("sub", 1, "t1"))), (N, (("mul", "n", 0.5), ("mul", "t1", "n"))),
    ({"x": "f32[4]", "y": "f32[4]"}, (("sub", "x", "y"), ("sub", "y", "x"), ("sub", "t1", "t2"))),
    (F, (("mul", "x", "x"), ("mul", "t1", "t1"), ("sub", "t1", "t2"))), (F, (("add", "x", 0.0), ("mul", "t1", -0.0))),
)  # fmt: skip


def steps_text(case):
    types, steps = case
    calls = "; then ".join(f"record(builder, {op!r}, {a!r}, {b!r})" for op, a, b in steps)
    return f"{calls}  with {', '.join(f'{name}: {type}' for name, type in types.items())}"


def judge_record(function):
    return judge_traces(function, RECORD_CASES, run_record(record), numpy_steps, steps_text)


# ---- the methods behind an operator -----------------------------------------------------------------------------------


def binary(op, record):
    """The two methods behind one operator, as a pair: ``__sub__, __rsub__ = binary("sub", record)``.

    Both are functions of ``self`` and ``other``. ``self`` is a stand-in: ``self.builder`` is the
    builder that it writes to and ``self.name`` its value's name. ``other`` is a stand-in, too, or a
    Python number. Both return a new stand-in: ``type(self)(self.builder, name)``.
    ``record(builder, op, a, b)`` is exercise 1; it takes names and numbers.

    Python calls the first one for ``x - 2``, as ``x.__sub__(2)``. For ``2 - x`` it calls the second
    one, the reflected one, as ``x.__rsub__(2)``: there ``self`` is the *right* operand. About 7 lines.
    """
    ### BEGIN SOLUTION
    def operand(value):
        return getattr(value, "name", value)

    def method(self, other):
        return type(self)(self.builder, record(self.builder, op, self.name, operand(other)))

    def reflected(self, other):
        return type(self)(self.builder, record(self.builder, op, operand(other), self.name))

    return method, reflected
    ### END SOLUTION


def binary_by_one(op, record):
    def make(turned):
        def method(self, other):
            pair = [self.name, other if isinstance(other, (int, float)) else other.name]
            if turned:
                pair.reverse()
            name = record(self.builder, op, pair[0], pair[1])
            return self.__class__(self.builder, name)
        return method
    return make(False), make(True)


def binary_by_lambdas(op, record):
    def made(left, right):
        one = left if isinstance(left, Proxy) else right
        a, b = (x.name if isinstance(x, Proxy) else x for x in (left, right))
        return type(one)(one.builder, record(one.builder, op, a, b))
    return (lambda self, other: made(self, other)), (lambda self, other: made(other, self))


def binary_variant(op, record, left=None, right=None):
    def first(self, other):
        return type(self)(self.builder, record(self.builder, op, self.name, getattr(other, "name", other)))

    def second(self, other):
        return type(self)(self.builder, record(self.builder, op, getattr(other, "name", other), self.name))

    return left or first, right or second


def binary_same_twice(op, record):
    first, _ = binary_variant(op, record)
    return first, first


def binary_turned(op, record):
    first, second = binary_variant(op, record)
    return second, first


def binary_negated(op, record):
    """Turns 2 - x into -(x - 2), "which is the same"."""
    first, second = binary_variant(op, record)

    def reflected(self, other):
        difference = first(self, other)
        return type(self)(self.builder, self.builder.emit("neg", difference.name))

    return first, reflected if op == "sub" else second


def binary_names(op, record):
    first, second = binary_variant(op, record)
    return (lambda self, other: first(self, other).name), (lambda self, other: second(self, other).name)


def binary_whole_other(op, record):
    def first(self, other):
        return type(self)(self.builder, record(self.builder, op, self.name, other))
    return binary_variant(op, record, left=first)


def binary_constants(op, record):
    """Makes the constant itself, and so in a dtype of its own."""
    def name(self, other):
        return other.name if isinstance(other, Proxy) else self.builder.const(np.asarray(other))
    return (lambda self, other: type(self)(self.builder, record(self.builder, op, self.name, name(self, other))),
            lambda self, other: type(self)(self.builder, record(self.builder, op, name(self, other), self.name)))


def binary_self_only(op, record):
    def first(self, other):
        operand = other if isinstance(other, (int, float)) else self.name
        return type(self)(self.builder, record(self.builder, op, self.name, operand))
    return binary_variant(op, record, left=first)


def run_binary(function):
    """What the judge calls: parameters, an expression, and the inputs."""

    def run(parameters, text, types):
        stand_in = with_operators(checked(function), record)
        builder = Builder("traced")
        inputs = {name: stand_in(builder, builder.input(name, type)) for name, type in types.items()}
        got = expression_of(parameters, text)(**inputs)
        if not isinstance(got, stand_in):
            shown = "a Proxy without operators" if isinstance(got, Proxy) else describe(got)
            return f"The operator returned {shown}, not a stand-in like self."
        return tidy(builder.build({"out": got.name}))

    return run


def checked(function):
    """``binary``, with a sentence where it does not return a pair of methods."""

    def pair(op, record):
        got = function(op, record)
        if not (isinstance(got, (tuple, list)) and len(got) == 2 and all(map(callable, got))):
            raise TypeError(f"binary({op!r}, record) returned {describe(got)}, not a pair of methods")
        return got

    return pair


X, XY = {"x": "f32[4]"}, {"x": "f32[4]", "y": "f32[4]"}
BINARY_CASES = (
    ("x", "x + 2", X), ("x", "2 + x", X), ("x", "x - 2", X), ("x", "2 - x", X), ("x", "2.5 / x", X), ("x", "x / 2", X),
    ("x", "True - x", X), ("x", "-0.0 + x", X), ("x", "x * x", X), ("x", "x - x", X), ("x, y", "x - y", XY),
    ("x, y", "y - x", XY), ("x", "x < 2", X), ("x", "2 < x", X), ("x", "2 >= x", X), ("n", "1 - n", N), ("n", "n + 1.0", N),
    ("n", "1.0 - n", N), ("n", "2 / n", N), ("b", "1 - b", {"b": "bool[4]"}), ("u", "3 - u", {"u": "u8[4]"}),
    ("h", "0.1 * h", {"h": "f16[4]"}), ("d", "0.1 * d", {"d": "f64[4]"}), ("x", "(x + 1) * 2", X), ("x", "2 - (1 - x)", X),
    ("x", "(x - 2) - (2 - x)", X), ("x, y", "x / (y - x) - y", XY), ("x, n", "(2 - n) / x", {"x": "f32[4]", "n": "i32[4]"}),
    ("x", "1 / (1 / x)", X), ("x", "(x - 1) / (x - 1)", X), ("a, b", "a @ b", {"a": "i32[2,3]", "b": "i32[3,2]"}),
    ("a", "a @ (2 - a)", {"a": "i32[2,2]"}),
)  # fmt: skip


def expression_text(case):
    return f"{case[1]}  with {', '.join(f'{name}: {type}' for name, type in case[2].items()) or 'no inputs'}"


def judge_binary(function):
    return judge_traces(function, BINARY_CASES, run_binary(binary), numpy_value, expression_text)


# ---- the tracer -------------------------------------------------------------------------------------------------------


def trace_with(f, types, stand_in):
    """Run ``f`` once on stand-ins, and return what it did as a Graph.

    ``types`` maps each parameter of f to the text of a type, ``{"x": "f32[4]", "n": "i32[4]"}``: the
    graph's inputs, in this order. ``stand_in(builder, name)`` makes the stand-in for a value, and its
    ``.name`` is that value's name. Call f with keywords, ``f(**inputs)``. ``builder.input(name, type)``
    returns the input's name.

    f returns one result, or a tuple of results. The one result is the output ``"out"``; those of a
    tuple are ``"out.0"``, ``"out.1"`` and so on, also where the tuple has one item. A result is a
    stand-in or a Python number, and a number becomes a constant, ``builder.const(np.asarray(number))``.
    ``builder.build({"out": name})`` makes the graph from a dict of public names and values' names.
    About 12 lines.
    """
    ### BEGIN SOLUTION
    builder = Builder("traced")
    inputs = {}
    for name, type in types.items():
        inputs[name] = stand_in(builder, builder.input(name, type))
    result = f(**inputs)
    results = {"out": result}
    if isinstance(result, tuple):
        results = {f"out.{place}": one for place, one in enumerate(result)}
    outputs = {}
    for public, one in results.items():
        outputs[public] = one.name if isinstance(one, stand_in) else builder.const(np.asarray(one))
    return builder.build(outputs)
    ### END SOLUTION


def trace_with_lists(f, types, stand_in):
    builder = Builder()
    names = [builder.input(name, type) for name, type in types.items()]
    results = f(**dict(zip(types, [stand_in(builder, name) for name in names])))
    many = type(results) is tuple
    pairs = []
    for place, one in enumerate(results if many else [results]):
        value = one.name if hasattr(one, "name") else builder.const(np.array(one))
        pairs.append((f"out.{place}" if many else "out", value))
    return builder.build(dict(pairs))


def trace_with_nodes(f, types, stand_in):
    builder = Builder("mine")
    inputs = {}
    for name in types:
        builder.input(name, types[name])
        inputs[name] = stand_in(builder, name)
    answer = f(**inputs)
    outputs = []
    for one in answer if isinstance(answer, tuple) else (answer,):
        if not isinstance(one, stand_in):
            one = stand_in(builder, builder.const(np.asarray(one)))
        outputs.append(one.name)
    public = [f"out.{i}" for i in range(len(outputs))] if isinstance(answer, tuple) else ["out"]
    return Graph("mine", tuple(builder.nodes.values()), tuple(zip(public, outputs)))


def trace_variant(f, types, stand_in, order=lambda names: names, call=None, results=None, constant=None, outputs=None, copy=False):
    """The solution with one thing changed; the mistakes below are made of it."""
    builder = Builder("traced")
    inputs = {name: stand_in(builder, builder.input(name, types[name])) for name in order(list(types))}
    result = call(f, inputs) if call else f(**inputs)
    if results:
        pairs = results(result)
    elif isinstance(result, tuple):
        pairs = [(f"out.{place}", one) for place, one in enumerate(result)]
    else:
        pairs = [("out", result)]
    found = {}
    for public, one in pairs:
        value = one.name if isinstance(one, stand_in) else (constant or number)(builder, one)
        if copy and value in types:
            value = builder.emit("reshape", value, shape=builder.type(value).shape)
        found[outputs(value) if outputs else public] = value
    return builder.build(found)


def number(builder, value):
    return builder.const(np.asarray(value))


def trace_with_positions(f, types, stand_in):
    return trace_variant(f, types, stand_in, call=lambda f, inputs: f(*inputs.values()))


def trace_with_sorted_inputs(f, types, stand_in):
    return trace_variant(f, types, stand_in, order=sorted)


def trace_with_two_runs(f, types, stand_in):
    def call(f, inputs):
        f(**inputs)
        return f(**inputs)
    return trace_variant(f, types, stand_in, call=call)


def trace_with_value_names(f, types, stand_in):
    return trace_variant(f, types, stand_in, outputs=lambda value: value)


def trace_with_one_name_a_value(f, types, stand_in):
    """Keeps the outputs in a dict by value, so that a value that is returned twice is an output once."""
    graph = trace_variant(f, types, stand_in)
    kept = {value: public for public, value in reversed(graph.outputs)}
    return Graph(graph.name, graph.nodes, tuple((public, value) for value, public in reversed(kept.items())))


def trace_with_first_result(f, types, stand_in):
    return trace_variant(f, types, stand_in, results=lambda result: [("out", result[0] if isinstance(result, tuple) else result)])


def trace_with_single_unpacked(f, types, stand_in):
    def results(result):
        if not isinstance(result, tuple) or len(result) == 1:
            return [("out", result[0] if isinstance(result, tuple) else result)]
        return [(f"out.{place}", one) for place, one in enumerate(result)]
    return trace_variant(f, types, stand_in, results=results)


def trace_with_float_constants(f, types, stand_in):
    return trace_variant(f, types, stand_in, constant=lambda builder, value: builder.const(value))


def trace_with_used_inputs(f, types, stand_in):
    graph = trace_variant(f, types, stand_in)
    read = {name for node in graph.nodes for name in node.inputs} | {value for _, value in graph.outputs}
    return Graph(graph.name, tuple(node for node in graph.nodes if node.op != "input" or node.name in read), graph.outputs)


def trace_with_copies(f, types, stand_in):
    return trace_variant(f, types, stand_in, copy=True)


READY = with_operators(binary, record)


def run_trace(function):
    """What the judge calls: parameters, an expression, and the inputs."""

    def run(parameters, text, types):
        calls = []
        f = expression_of(parameters, text)

        def once(*operands, **inputs):
            calls.append(1)
            return f(*operands, **inputs)

        got = function(once, types, READY)
        if len(calls) != 1:
            return f"Your function called f {len(calls)} times, not once."
        return tidy(got) if isinstance(got, Graph) else f"Your function returned {describe(got)}, not a Graph."

    return run


TRACE_CASES = (
    ("x", "x + 1", X), ("x", "x", X), ("x, y", "x * 2", XY), ("x", "(x + 1, x * x)", X), ("x", "(x, x)", X),
    ("x", "(x * 2,)", X), ("x", "2.0", X), ("x", "3", X), ("x", "True", X), ("x", "-0.0", X), ("", "4.0", {}),
    ("x, y", "x - y", {"y": "f32[4]", "x": "f32[4]"}), ("y, x", "y - x", {"y": "f32[4]", "x": "i32[4]"}),
    ("x", "(x, 1.5, x.shape[0])", {"x": "f32[2,3]"}), ("x, y", "(y, x)", XY), ("x, n", "x * n - 1", {"x": "f32[4]", "n": "i32[4]"}),
    ("x", "(2 - x, x, 2 - x)", X), ("out, x", "out - x", {"out": "f32[4]", "x": "f32[4]"}), ("n", "((n + 1) * (n + 1), 7, n < 2)", N),
    ("x, y, z", "(z, y)", {"x": "f32[4]", "y": "i8[2]", "z": "bool[3]"}), ("x", "(x,)", X), ("x", "()", X),
    ("x", "(0.0, -0.0, 1, True, 1.0)", X),
)  # fmt: skip


def judge_trace(function):
    return judge_traces(function, TRACE_CASES, run_trace(trace_with), numpy_value, expression_text)


# ---- the stretch: both sides of an if -----------------------------------------------------------------------------------


def both_ways(f, builder, inputs):
    """Record every path through ``f``, and join them with ``where``. Returns the name of the result.

    ``inputs`` maps f's parameters to stand-ins, and ``f(**inputs)`` returns a stand-in, of the same
    type on every path.

    Where Python needs to know whether a stand-in is true, the stand-in asks
    ``builder.decide(stand_in)``. Put a function there: ``builder.decide = decide``. It answers True or
    False, and may note ``stand_in.name``, the condition's value. So run f again and again, each time
    with other answers, until every path has been taken. Each run asks anew, in the same order as long
    as the answers are the same. ``builder.emit("where", condition, a, b)`` takes names and gives ``a``
    where the condition is true. It does no harm to record a thing twice.

    For ``x if s > 0 else x * 2`` two runs are enough. A condition may come after another one, on one
    path and not on the other: ``x if s > 0 else (y if t > 0 else x)`` takes three. About 13 lines.
    """
    ### BEGIN SOLUTION
    def explore(answers):
        conditions = []

        def decide(stand_in):
            conditions.append(stand_in.name)
            return answers[len(conditions) - 1] if len(conditions) <= len(answers) else True

        builder.decide = decide
        result = f(**inputs).name
        path = answers + [True] * (len(conditions) - len(answers))
        for place in reversed(range(len(answers), len(conditions))):
            other = explore(path[:place] + [False])
            result = builder.emit("where", conditions[place], result, other)
        return result

    return explore([])
    ### END SOLUTION


class NeedAnswer(Exception):
    pass


def both_ways_by_stopping(f, builder, inputs):
    """Stops a run at the first question that has no answer yet, and goes on with both answers."""

    def explore(answers):
        seen = []

        def decide(stand_in):
            seen.append(stand_in.name)
            if len(seen) > len(answers):
                raise NeedAnswer
            return answers[len(seen) - 1]

        builder.decide = decide
        try:
            return f(**inputs).name
        except NeedAnswer:
            condition = seen[-1]
        yes, no = explore([*answers, True]), explore([*answers, False])
        return builder.emit("where", condition, yes, no)

    return explore([])


def both_ways_by_list(f, builder, inputs):
    """No recursion: a list of paths, joined from the last to the first."""
    todo, done = [()], {}
    while todo:
        prefix, asked = todo.pop(), []

        def decide(stand_in, prefix=prefix, asked=asked):
            asked.append(stand_in.name)
            return prefix[len(asked) - 1] if len(asked) <= len(prefix) else True

        builder.decide = decide
        result = f(**inputs).name
        path = prefix + (True,) * (len(asked) - len(prefix))
        done[path] = (result, asked)
        todo += [path[:place] + (False,) for place in range(len(prefix), len(asked))]
    while len(done) > 1:
        longest = max(done, key=len)
        left, right = longest[:-1] + (True,), longest[:-1] + (False,)
        (a, asked), (b, _) = done.pop(left), done.pop(right)
        done[longest[:-1]] = (builder.emit("where", asked[len(longest) - 1], a, b), asked)
    return done[()][0]


def both_ways_only_true(f, builder, inputs):
    builder.decide = lambda stand_in: True
    return f(**inputs).name


def both_ways_swapped(f, builder, inputs):
    emit = builder.emit
    builder.emit = lambda op, *names, **attrs: emit(op, *(names[:1] + names[:0:-1] if op == "where" else names), **attrs)
    try:
        return both_ways(f, builder, inputs)
    finally:
        del builder.emit


def both_ways_two_runs(f, builder, inputs):
    """One run with every answer True, and one with every answer False."""
    conditions = []
    builder.decide = lambda stand_in: conditions.append(stand_in.name) or True
    yes = f(**inputs).name
    builder.decide = lambda stand_in: False
    no = f(**inputs).name
    return builder.emit("where", conditions[0], yes, no) if conditions else yes


def both_ways_first_if(f, builder, inputs):
    """Tries both answers to the first question, and answers True to all others."""
    def run(first):
        conditions = []
        builder.decide = lambda stand_in: conditions.append(stand_in.name) or (first if len(conditions) == 1 else True)
        return f(**inputs).name, conditions

    yes, conditions = run(True)
    return builder.emit("where", conditions[0], yes, run(False)[0]) if conditions else yes


def both_ways_forgets(f, builder, inputs, by=lambda path, place: [True] * place, last=False):
    def explore(answers):
        conditions = []

        def decide(stand_in):
            conditions.append(stand_in.name)
            return answers[len(conditions) - 1] if len(conditions) <= len(answers) else True

        builder.decide = decide
        result = f(**inputs).name
        path = answers + [True] * (len(conditions) - len(answers))
        for place in reversed(range(len(answers), len(conditions))):
            other = explore(by(path, place) + [False])
            result = builder.emit("where", conditions[-1 if last else place], result, other)
        return result

    return explore([])


def both_ways_last_condition(f, builder, inputs):
    return both_ways_forgets(f, builder, inputs, by=lambda path, place: path[:place], last=True)


def run_both(function):
    def run(parameters, text, types):
        builder = Builder("traced")
        inputs = {name: READY(builder, builder.input(name, type)) for name, type in types.items()}
        got = call(function, expression_of(parameters, text), builder, inputs)
        if not isinstance(got, str) or got not in builder.nodes:
            return not_a_name(got)
        return tidy(builder.build({"out": got}))

    return run


S, ST = {"x": "f32[2]", "s": "f32[]"}, {"x": "f32[2]", "y": "f32[2]", "s": "f32[]", "t": "f32[]"}
ALL = "x, y, s, t"
BOTH_CASES = (
    ("x, s", "x if s > 0 else x * 2", S), ("x, s", "x * 2", S), ("x, s", "x if s > 0 else x", S),
    ("x, s", "x if not s > 0 else 2 - x", S),
    (ALL, "x if s > 0 else (y if t > 0 else x * 2)", ST), (ALL, "(x if t > 0 else x * 2) if s > 0 else y", ST),
    (ALL, "x if s > 0 and t > 0 else y", ST), (ALL, "x if s > 0 or t > 0 else y", ST),
    (ALL, "(x if s > 0 else y) - (x if t > 0 else y * 2)", ST),
    (ALL, "(x if t > 0 else y) if s > 0 else (y - x if t > 0 else x - y)", ST),
    (ALL, "x if s > 0 else (y if t > 0 else (x * 2 if t < s else y * 2))", ST),
    (ALL, "(x if s > 0 else y) if 0 < t < 2 else (x * 2 if s < 0 else y * 2)", ST),
    (ALL, "(1 if s > 0 else 2) * x + (3 if t > 0 else 4) * y - (5 if s > t else 6)", ST),
)  # fmt: skip


def judge_both(function):
    return judge_traces(function, BOTH_CASES, run_both(both_ways), numpy_value, expression_text, most=None, sets=12)


# ---- refuted: what was baked in -----------------------------------------------------------------------------------------


def normalize(x):
    """Scale x down so that no element is beyond 1, if there is one."""
    peak = np.max(np.abs(x))
    if peak > 1.0:
        x = x / peak
    return x


def settle(x):
    """Halve x until no element is above 1."""
    while np.max(x) > 1.0:
        x = x * 0.5
    return x


EXERCISES = (
    Exercise(
        "02", "One operation", record, judge_record,
        ("Three things in a row: find the common dtype, make both operands of that dtype, emit the operation.",
         "np.result_type takes NumPy dtypes and Python numbers mixed, and a number counts less than an array there: give it"
         " DTYPES[...] of each value and the numbers as they are. Then go through a and b: a number becomes a constant,"
         " a value of another dtype a cast, anything else stays. Keep the order.",
         "kinds = [DTYPES[builder.type(v).dtype] if isinstance(v, str) else v for v in (a, b)]\ndtype = SHORT[np.result_type(*kinds)]\n"
         "if op == 'div' and ...: dtype = 'f64'\noperands = []\nfor value in (a, b):\n    ...\nreturn builder.emit(op, *operands)"),
        (Mistake(record_swapped, "wrong-value", "The operands are in the wrong order: 2 - x is not x - 2."),
         Mistake(record_in_the_arrays_dtype, "wrong-value", "A number takes the array's dtype only where it is of the same kind:"
                 " integers and 1.0 are computed in f64."),
         Mistake(record_strong_numbers, "wrong-value", "A Python number has no dtype of its own: f32 times 2.0 stays f32. Give"
                 " np.result_type the number itself."),
         Mistake(record_without_casts, "raises", "NumPy casts silently; a graph says it: insert a cast."),
         Mistake(record_always_casts, "too-much", "A cast to the dtype that a value already has is a node for nothing."),
         Mistake(record_integer_division, "raises", "NumPy divides integers in f64."),
         Mistake(record_returns_the_op, "wrong-value", "builder.emit returns the name of the new value, which is not always the name of"
                 " the operation."),
         Mistake(record_wraps_numbers, "wrong-value", "NumPy refuses a number that does not fit, and builder.const(number, dtype) does,"
                 " too. astype lets it wrap around."),
         Mistake(record_casts_numbers, "too-much", "Make the constant in the right dtype at once: no cast is needed.")),
        (record_by_helpers, record_right_first),
        probes=RECORD_CASES, adapt=run_record,
        praise="Everything that NumPy does silently is now a line that a compiler can see, move or take away.",
    ),
    Exercise(
        "02", "The methods behind an operator", binary, judge_binary,
        ("Each method records the operation and wraps the new value's name in a new stand-in. The two differ in the order of the"
         " operands alone.",
         "The first: record(self.builder, op, self's name, other), the second the other way round. Where other is a stand-in, give"
         " record its name; a number goes as it is. Return type(self)(self.builder, what record returned).",
         "def method(self, other):\n    return type(self)(self.builder, record(self.builder, op, ..., ...))\n\n"
         "def reflected(self, other):\n    ...\n\nreturn method, reflected"),
        (Mistake(binary_same_twice, "wrong-value",
                 "The reflected method has the operands the other way round: in 2 - x, self is x and comes second."),
         Mistake(binary_turned, "wrong-value", "The first method is for self on the left: x - 2 is x.__sub__(2)."),
         Mistake(binary_negated, "wrong-value",
                 "2 - x is not -(x - 2): at x = 2 one is 0.0 and the other -0.0. Swap the operands instead."),
         Mistake(binary_names, "not-a-graph", "Return a stand-in, not its value's name: the next operator needs methods, too."),
         Mistake(binary_whole_other, "raises", "record takes names and numbers: give it other.name where other is a stand-in."),
         Mistake(binary_constants, "wrong-value",
                 "Give record the number itself: a Python number has no dtype of its own, a constant has one."),
         Mistake(binary_self_only, "wrong-value", "Where other is a stand-in, its name is the operand.")),
        (binary_by_one, binary_by_lambdas),
        probes=BINARY_CASES, adapt=run_binary,
        praise="Python did the reading: it took the expression apart and called your methods in the right order.",
    ),
    Exercise(
        "02", "The tracer", trace_with, judge_trace,
        ("A builder, a stand-in for each input, one call of f, and the names of what it returned.",
         "Make a Builder. For each name and type: builder.input, and a stand-in for it in a dict. Call f(**inputs) once. Make a"
         " dict from public name to result: out, or out.0, out.1 … for a tuple. Turn each result into a name: .name, or a constant.",
         "builder = Builder('traced')\ninputs = {}\nfor name, type in types.items(): ...\nresult = f(**inputs)\n... \noutputs = {}\n"
         "for public, one in ...: ...\nreturn builder.build(outputs)"),
        (Mistake(trace_with_positions, "wrong-value", "The order of types need not be that of f's parameters: call f(**inputs)."),
         Mistake(trace_with_sorted_inputs, "lost", "The graph's inputs come in the order of types."),
         Mistake(trace_with_two_runs, "not-a-graph", "Each run of f records everything again: call it once, and keep what it returns."),
         Mistake(trace_with_value_names, "lost", "The public names are out, or out.0, out.1 and so on, whatever the value is called."),
         Mistake(trace_with_one_name_a_value, "lost", "One value may be two outputs: f returned it twice."),
         Mistake(trace_with_first_result, "lost", "A tuple has as many outputs as items."),
         Mistake(trace_with_single_unpacked, "lost", "A tuple of one item is a tuple: its output is out.0."),
         Mistake(trace_with_float_constants, "wrong-value", "NumPy's own dtype for a number alone: np.asarray(2.0) is float64."),
         Mistake(trace_with_used_inputs, "lost", "The inputs are the graph's signature, read or not: the caller passes them all."),
         Mistake(trace_with_copies, "too-much", "An output may be an input itself: no node is needed for that.")),
        (trace_with_lists, trace_with_nodes),
        probes=TRACE_CASES, adapt=run_trace,
        praise="That is a tracer. The big ones have more operations, and the same three pieces.",
    ),
    Exercise(
        "02", "Both sides of an if", both_ways, judge_both,
        ("One run of f takes one path. The answers that you gave on the way name the path; change one answer, and f takes another one.",
         "Run f with a list of answers that is followed as far as it goes; after that answer True and note each condition. Every noted"
         " condition has another side: run f again with the same answers up to there, then False. Join from the last condition to the"
         " first.",
         "def explore(answers):\n    conditions = []\n    def decide(stand_in): ...\n    builder.decide = decide\n"
         "    result = f(**inputs).name\n    for place in reversed(range(len(answers), len(conditions))):\n"
         "        other = explore(...)\n        result = builder.emit('where', ...)\n"
         "    return result\nreturn explore([])"),
        (Mistake(both_ways_only_true, "wrong-value",
                 "Every question was answered True: the other side was never recorded. It is baked in."),
         Mistake(both_ways_swapped, "wrong-value", "where(condition, a, b) gives a where the condition is true."),
         Mistake(both_ways_two_runs, "wrong-value", "All True and all False are two paths; two conditions make up to four."),
         Mistake(both_ways_first_if, "wrong-value", "Only the first condition was tried both ways; the later ones are baked in."),
         Mistake(both_ways_forgets, "wrong-value",
                 "A later path must repeat the answers that led to its condition, the False ones, too."),
         Mistake(both_ways_last_condition, "wrong-value", "Each where takes the condition at which its two paths part.")),
        (both_ways_by_stopping, both_ways_by_list),
        probes=BOTH_CASES, adapt=run_both,
        praise="Each if doubles the runs, and a while loop has no last path. So real tracers ask you to write the choice down instead.",
        stretch=True,
    ),
)  # fmt: skip

REFUTATIONS = ()

BAKED = (
    Baked(
        "02", normalize, {"x": [4.0, -2.0, 1.0, 0.5]}, {"x": [0.5, -0.25, 0.0, 0.0]},
        "Which side of the if did the example take? Find numbers that take the other one.",
        "The graph divides whatever comes: the if is not in it. It was asked once, while tracing.",
    ),
    Baked(
        "02", settle, {"x": [3.0, 1.0, 0.0, 2.0]}, {"x": [8.0, 1.0, 0.0, 2.0]},
        "How often did the example go round the loop? Find numbers that need more rounds, or fewer.",
        "The graph halves twice, always: the loop was unrolled as often as the example went round.",
    ),
)
