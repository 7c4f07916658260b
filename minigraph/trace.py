"""Tracing: run ordinary NumPy code on stand-ins for arrays, and write down what it does.

``trace(f, "f32[8,4]", "f32[4,4]")`` calls ``f`` once with a ``Tracer`` for each array. A Tracer has a dtype and a shape
but no numbers; operators, NumPy functions and methods on it record nodes. What NumPy does silently is recorded too:
each conversion of dtypes (NEP 50) is a ``cast`` node and each Python number a constant of the dtype that it takes.

Tracing records what happened, once. So whatever does not go through a Tracer is baked in: the branch that a plain
``if`` took, loops (they unroll), ``print``, and numbers from ``np.random``, which a tracer cannot see: draw with
``minigraph.random``. What depends on values that are not known yet is a TraceError with the line and what to do.
"""

from __future__ import annotations

import ast
import functools
import inspect
import re
import textwrap

import numpy as np

from .errors import GraphError, TraceError, nearest
from .ir import NAME, Graph
from .trace_extra import *  # noqa: F403
from .trace_extra import __all__ as EXTRA
from .trace_index import getitem
from .trace_math import MATH
from .trace_record import (
    ACTIVE, Recording, Traced, TraceAttributeError, emit, fail, here, lift, located, own, position, recording,
)  # fmt: skip
from .trace_shapes import SHAPES
from .trace_ufuncs import KNOWN, call_ufunc
from .types import DTYPES, SHORT, Type, parse_type, type_of

__all__ = ["trace", "spec", "Tracer", *EXTRA]



def numpy_function(name: str):
    """``np.linalg.norm`` from ``"linalg.norm"``; None in a NumPy that does not have it yet."""
    return functools.reduce(lambda owner, part: getattr(owner, part, None), name.split("."), np)


NAMES = SHAPES | MATH
FUNCTIONS = {numpy_function(name): ours for name, ours in NAMES.items() if numpy_function(name)}
REFUSED = (GraphError, TypeError, ValueError, IndexError, OverflowError)
NO_VALUE = "a traced value has no value yet: it stands for every array of its type"
NO_WRITES = "a graph has no writes: values never change"


def located_errors(method):
    """What NumPy or the IR refuses becomes a TraceError at the user's line."""

    @functools.wraps(method)
    def wrapper(*args, **kwargs):
        try:
            return method(*args, **kwargs)
        except REFUSED as error:
            raise located(error) from None

    return wrapper


def same_function(function, args, kwargs):
    """The arguments fitted to our version of a NumPy function; harmless ones are dropped."""
    ours = FUNCTIONS[function]
    if kwargs.pop("out", None) is not None:
        fail(f"out= writes into an array in place; {NO_WRITES}", "use the function's result", TypeError)
    known = inspect.signature(ours).parameters
    if not any(p.kind is p.VAR_KEYWORD for p in known.values()):
        for name, value in list(kwargs.items()):
            if name in known:
                continue
            if not (name == "subok" or value is None or value is np._NoValue or (name, value) == ("order", "K")):
                fail(f"np.{function.__name__}'s argument '{name}' is not known to the tracer",
                     f"known are {', '.join(known)}", TypeError)
            del kwargs[name]
    return ours(*args, **kwargs)


class Tracer(Traced, np.lib.mixins.NDArrayOperatorsMixin):
    """An array that is not there yet. Operators come from NumPy's mixin: each is a ufunc, see ``trace_ufuncs``."""

    __slots__ = ()

    @located_errors
    def __array_ufunc__(self, ufunc, method, *args, **kwargs):
        return call_ufunc(ufunc, method, args, kwargs)

    @located_errors
    def __array_function__(self, function, types, args, kwargs):
        if function not in FUNCTIONS:
            name = function.__name__
            fail(f"np.{name} is not known to the tracer", nearest(name, [*NAMES, *KNOWN])
                 or "build it from NumPy functions that are, or compute it before the traced function")
        return same_function(function, args, dict(kwargs))

    @located_errors
    def __getitem__(self, index):
        return getitem(own(self), index)

    def __getattr__(self, name: str):
        if name in METHODS:
            return functools.partial(METHODS[name], self)
        if name.startswith("__"):  # protocols that NumPy and copy look for
            raise AttributeError(name)
        hint = NOT_METHODS.get(name) or nearest(name, METHODS) or "see the list in minigraph/trace.py"
        raise TraceAttributeError(f"a traced value has no '{name}'", where=here(), hint=hint)

    @property
    def T(self):
        return np.transpose(self)

    @property
    def mT(self):
        return np.matrix_transpose(self)

    @property
    def real(self):
        return self

    @property
    def imag(self):
        return np.zeros_like(self)

    def __pow__(self, exponent):
        # where NumPy's operator and np.power differ: f16 ** 0.5 is a sqrt, bool ** 2 a square, which is int8
        if type(exponent) is float and exponent == 0.5 and self.dtype.kind == "f":
            return np.sqrt(self)
        if type(exponent) is int and exponent == 2 and self.dtype == bool:
            return np.square(self)
        return np.power(self, exponent)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    # ---- what cannot be recorded ----

    def __bool__(self):
        fail(f"an `if`, `while`, `and`, `or`, `not`, `min` or `max` needs the value of {self!r}, and {NO_VALUE}",
             "use np.where(condition, a, b), & | ~, np.minimum, np.maximum; x.shape and x.dtype are known", TypeError)

    def __len__(self):
        fail(f"len() of {self!r} is not recorded", "write x.shape[0]: shapes are plain numbers", TypeError)

    def __iter__(self):
        fail(f"{self!r} is looped over or unpacked", "write for i in range(x.shape[0]): ... x[i], or np.unstack(x);"
             " better, use whole-array operations: a loop is unrolled", TypeError)

    def __contains__(self, item):
        fail(f"`in` needs the values of {self!r}, and {NO_VALUE}", "use np.any(x == item)", TypeError)

    def __array__(self, dtype=None, copy=None):
        fail(f"an array of numbers is wanted from {self!r}, and {NO_VALUE}",
             "in place of np.array([x, y]) write np.stack([x, y]), of table[x] or np.take(table, x) constant(table)[x],"
             " of np.asarray(x) x, of array[i] = x np.concatenate or np.where", TypeError)

    def __float__(self):
        fail(f"a Python number is wanted from {self!r}, and {NO_VALUE}",
             "use NumPy's functions in place of math's, and x.astype(...) to convert", TypeError)

    __int__ = __complex__ = __float__

    def __index__(self):
        fail(f"an index or a length is wanted from {self!r}, and {NO_VALUE}",
             "in place of table[x] write constant(table)[x]; shapes and loop counts are plain numbers", TypeError)

    def __setitem__(self, index, value):
        fail(f"x[...] = v writes in place; {NO_WRITES}",
             "use np.where(mask, v, x), np.concatenate, or minigraph's update_slice(x, v, start, axis=0)", TypeError)

    def __format__(self, form: str) -> str:
        if form:
            fail(f"formatting {self!r} as '{form}' needs its value", "use print_value(x, label) of minigraph", TypeError)
        return repr(self)


def in_place_operator(symbol: str):
    def refuse(self, other):
        fail(f"x {symbol}= y changes x in place, for every name it has; {NO_WRITES}", f"write x = x {symbol} y",
             TypeError)

    return refuse


for _symbol, _name in {"+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod", "**": "pow",
                       "@": "matmul", "&": "and", "|": "or", "^": "xor", "<<": "lshift", ">>": "rshift"}.items():
    setattr(Tracer, f"__i{_name}__", in_place_operator(_symbol))


# ---- methods --------------------------------------------------------------------------------------------------------


def packed(function):
    """A method that takes a tuple or its items: ``x.reshape(2, 3)``."""
    return lambda x, *items, **kwargs: function(x, items[0] if len(items) == 1 else items or None, **kwargs)


@located_errors
def astype(x, dtype, order="K", casting="unsafe", subok=True, copy=True):
    """An explicit cast is always recorded, also to the dtype that x has."""
    dtype = np.dtype(dtype)
    if dtype not in SHORT:
        fail(f"dtype {dtype} is not one of the IR's", "dtypes are " + " ".join(DTYPES), TypeError)
    if not np.can_cast(x.dtype, dtype, casting):
        fail(f"Cannot cast from {x.dtype} to {dtype} according to the rule '{casting}'", like=TypeError)
    return emit("cast", x, dtype=SHORT[dtype])


def view(x, dtype=None):
    if dtype is not None and np.dtype(dtype) != x.dtype:
        fail("view(dtype) reads the bits of memory that does not exist yet", "use astype to convert values")
    return x


METHODS = {
    **{function.__name__: function for function in (
        np.sum, np.prod, np.mean, np.max, np.min, np.any, np.all, np.argmax, np.argmin, np.var, np.std, np.cumsum,
        np.round, np.clip, np.take, np.repeat, np.ravel, np.squeeze, np.swapaxes, np.dot, np.trace)},
    "reshape": packed(np.reshape), "transpose": packed(np.transpose), "flatten": np.ravel,
    "astype": astype, "view": view, "copy": lambda x, order="C": x, "__array_namespace__": lambda x, **_: np,
    "conj": lambda x: x, "conjugate": lambda x: x,
}  # fmt: skip
NOT_METHODS = {
    **dict.fromkeys(("item", "tolist", "tobytes", "data", "flat"), NO_VALUE),
    **dict.fromkeys(("fill", "put", "itemset", "resize", "partition", "setflags", "byteswap"), NO_WRITES),
    "sort": "sort() writes in place: use np.sort(x)", "strides": "a value has no memory yet, only a shape",
}


# ---- specs ----------------------------------------------------------------------------------------------------------


def spec(of, shape=None) -> Type:
    """A type: ``spec("f32[8,4]")``, ``spec("f32", (8, 4))``, ``spec(np.float32, (8, 4))`` or ``spec(array)``."""
    if shape is not None:
        dtype = of if isinstance(of, str) and of in DTYPES else SHORT.get(np.dtype(of), str(of))
        return parse_type(f"{dtype}[{','.join(map(str, shape))}]")
    if isinstance(of, Type):
        return of
    return parse_type(of) if isinstance(of, str) else type_of(of)


def is_spec(value) -> bool:
    return isinstance(value, (Type, str, np.ndarray, np.generic))


def clean(part) -> str:
    """A key or an attribute as a part of a name."""
    return re.sub(r"[^A-Za-z0-9_.]", "_", str(part)).strip(".") or "_"


def items_of(value):
    """The (key, item) pairs of a nested spec or output, or None for a leaf."""
    if isinstance(value, dict):
        return list(value.items())
    is_nest = isinstance(value, (tuple, list)) and not isinstance(value, Type)
    return list(enumerate(value)) if is_nest else None


def rebuilt(value, items: list):
    """The nest again, with other items in it."""
    if isinstance(value, dict):
        return dict(zip(value, items))
    return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)


def make_inputs(record: Recording, given, name: str):
    """``given`` with each spec in it replaced by a Tracer: the inputs ``cache.0``, ``cache.k`` …"""
    items = items_of(given)
    if items is not None:
        return rebuilt(given, [make_inputs(record, item, f"{name}.{clean(key)}") for key, item in items])
    if not is_spec(given):
        return given  # a plain number, None, a configuration: known while tracing, so not part of the graph
    if not NAME.fullmatch(name):
        raise TraceError(f"'{name}' cannot name an input", hint="names are letters, digits and _, joined by dots")
    if any(entry.label == name for entry in record.entries):
        raise TraceError(f"two inputs are named '{name}'", hint="rename a key of the nested spec")
    return record.add("input", (), None, spec(given), name)


def bind(f, specs: tuple, named: dict) -> tuple[inspect.BoundArguments | None, dict]:
    """Argument names -> specs, by the signature of f; builtins without one get ``x0``, ``x1`` …"""
    try:
        signature = inspect.signature(f)
    except (TypeError, ValueError):
        return None, {f"x{i}": given for i, given in enumerate(specs)} | named
    bound = signature.bind(*specs, **named)
    return bound, dict(bound.arguments)


def call_with(f, bound, arguments: dict, named: dict):
    if bound is None:
        values = list(arguments.items())
        return f(*(v for k, v in values if k not in named), **{k: v for k, v in values if k in named})
    bound.arguments.update(arguments)
    return f(*bound.args, **bound.kwargs)


# ---- outputs --------------------------------------------------------------------------------------------------------


def returned_names(f):
    """What the one ``return`` of f says: an AST node, or None where there is no source or no single return."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(f))).body[0]
    except (OSError, TypeError, SyntaxError, IndexError):
        return None
    returns, todo = [], list(tree.body) if isinstance(tree, ast.FunctionDef) else []
    for node in todo:  # grows while it is walked; functions inside f return elsewhere
        if isinstance(node, ast.Return):
            returns.append(node.value)
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            todo += ast.iter_child_nodes(node)
    return returns[0] if len(returns) == 1 else None


def name_outputs(value, name: str, source) -> list[tuple[str, object]]:
    """(public name, leaf) pairs. A variable in the return statement gives its name, else it is ``out`` and numbers."""
    if isinstance(source, ast.Name) and NAME.fullmatch(source.id):
        name, source = source.id, None
    items = items_of(value)
    if items is None:
        return [(name or "out", value)]
    elements = getattr(source, "elts", None) or getattr(source, "values", None)
    if elements is None or len(elements) != len(items) or any(isinstance(e, ast.Starred) for e in elements):
        elements = [None] * len(items)
    pairs = []
    for (key, item), element in zip(items, elements):
        if isinstance(value, dict):
            element = element if items_of(item) is not None and not isinstance(element, ast.Name) else None
            key_name = f"{name}.{clean(key)}" if name else clean(key)
            key_name = key_name if NAME.fullmatch(key_name) else f"out.{clean(key)}"
        else:
            key_name = f"{name or 'out'}.{key}"
        pairs += name_outputs(item, key_name, element)
    return pairs


def make_outputs(result, source) -> list[tuple[str, Traced]]:
    """The outputs under unique public names."""
    outputs: dict[str, Traced] = {}
    for public, value in name_outputs(result, "", source):
        if not isinstance(value, (Traced, np.ndarray, np.generic, int, float)):
            fail(f"the function returned {type(value).__name__} {value!r} as '{public}'",
                 "return arrays, numbers, or tuples, lists and dicts of them", TypeError)
        base, count = public, 0
        while public in outputs:
            count += 1
            public = f"{base}.{count}"
        outputs[public] = lift(value)
        if base.partition(".")[0] != "out":
            recording().name(outputs[public], base)
    return list(outputs.items())


# ---- trace ----------------------------------------------------------------------------------------------------------


def trace(f, /, *specs, name: str | None = None, **named) -> Graph:
    """Run ``f`` once on tracers and return what it did as a graph.

    Each argument is a spec: a type or its text (``"f32[8,4]"``), an array or NumPy scalar, whose type is taken, or a
    nested tuple, list or dict of these, whose inputs are named ``cache.0`` or ``cache.k``. Anything else, such as a
    Python number, is passed through as it is. Inputs have the names of f's parameters.

    Outputs: f returns a value, or a nested tuple, list or dict of values. A variable in f's return statement gives
    its name to the output; else outputs are ``out``, ``out.0`` …, or named by the dict's keys.
    Arrays that f uses become constants: copied, unless their memory is read-only.

    Raises TraceError at the line of f that cannot be recorded; f's own exceptions pass through.
    """
    record = Recording(Tracer)
    bound, arguments = bind(f, specs, named)
    arguments = {parameter: make_argument(record, bound, parameter, given) for parameter, given in arguments.items()}
    token = ACTIVE.set(record)
    try:
        result = call_with(f, bound, arguments, named)
        if result is None and record.token is None:
            raise TraceError(f"{getattr(f, '__name__', 'the function')} returned nothing", where=definition(f),
                             hint="return the value or values that the graph is to compute")
        outputs = [] if result is None else make_outputs(result, returned_names(f))
    finally:
        ACTIVE.reset(token)
    own_name = clean(getattr(f, "__name__", "g"))
    return record.graph(name or (own_name if NAME.fullmatch(own_name) and own_name != "_lambda_" else "g"), outputs)


def make_argument(record: Recording, bound, parameter: str, given):
    kind = bound and bound.signature.parameters[parameter].kind
    if kind is inspect.Parameter.VAR_KEYWORD:
        return {key: make_inputs(record, value, clean(key)) for key, value in given.items()}
    return make_inputs(record, given, clean(parameter))


def definition(f) -> str:
    code = getattr(f, "__code__", None)
    return position(code.co_filename, code.co_firstlineno) if code else ""
