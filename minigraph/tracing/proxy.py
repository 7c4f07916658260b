"""The stand-in for an array: operators, methods and NumPy's functions on it are recorded."""

from __future__ import annotations

import functools
import inspect

import numpy as np

from ..errors import GraphError, nearest
from ..types import DTYPES, SHORT
from .choices import CHOICES
from .indexing import getitem
from .joins import JOINS
from .products import PRODUCTS
from .record import Traced, emit, own
from .reductions import REDUCTIONS
from .shapes import SHAPES
from .source import TraceAttributeError, fail, here, located
from .ufuncs import KNOWN, call_ufunc

REFUSED = (GraphError, TypeError, ValueError, IndexError, OverflowError)
NO_VALUE = "a traced value has no value yet: it stands for every array of its type"
NO_WRITES = "a graph has no writes: values never change"


def numpy_function(name: str):
    """``np.linalg.norm`` from ``"linalg.norm"``; None in a NumPy that does not have it yet."""
    return functools.reduce(lambda owner, part: getattr(owner, part, None), name.split("."), np)


NAMES = SHAPES | JOINS | REDUCTIONS | PRODUCTS | CHOICES
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


def call_function(function, args: tuple, kwargs: dict):
    """Our version of a NumPy function; arguments that change nothing here (``subok``, ``order="K"``) are dropped."""
    name = f"{function.__module__}.{function.__name__}".partition(".")[2]
    if function not in FUNCTIONS:
        fail(f"np.{name} is not known to the tracer", nearest(name, [*NAMES, *KNOWN])
             or "build it from NumPy functions that are, or compute it before the traced function")
    if kwargs.pop("out", None) is not None:
        fail(f"out= writes into an array in place; {NO_WRITES}", "use the function's result", TypeError)
    signature = inspect.signature(FUNCTIONS[function])
    for key, value in list(kwargs.items()):
        harmless = key == "subok" or value is None or value is np._NoValue or (key, value) == ("order", "K")
        if key not in signature.parameters and harmless:
            del kwargs[key]
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        fail(f"np.{name} with these arguments is not known to the tracer: {error}",
             f"known are {', '.join(signature.parameters)}", TypeError)
    return FUNCTIONS[function](*args, **kwargs)


class Tracer(Traced, np.lib.mixins.NDArrayOperatorsMixin):
    """An array that is not there yet. Operators come from NumPy's mixin: each is a ufunc, see ``trace_ufuncs``."""

    __slots__ = ()

    @located_errors
    def __array_ufunc__(self, ufunc, method, *args, **kwargs):
        return call_ufunc(ufunc, method, args, kwargs)

    @located_errors
    def __array_function__(self, function, types, args, kwargs):
        return call_function(function, args, dict(kwargs))

    @located_errors
    def __getitem__(self, index):
        return getitem(own(self), index)

    def __getattr__(self, name: str):
        if name in METHODS:
            return functools.partial(METHODS[name], self)
        if name.startswith("__"):  # protocols that NumPy and copy look for
            raise AttributeError(name)
        hint = NOT_METHODS.get(name) or nearest(name, METHODS) or "see the list in minigraph/tracing/proxy.py"
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
            fail(f"formatting {self!r} as '{form}' needs its value", "use print_value(x, label)", TypeError)
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
        np.round, np.take, np.repeat, np.ravel, np.squeeze, np.swapaxes, np.dot, np.trace, np.diagonal)},
    "reshape": packed(np.reshape), "transpose": packed(np.transpose), "flatten": np.ravel,
    "astype": astype, "view": view, "clip": located_errors(CHOICES["clip"]), "copy": lambda x, order="C": x,
    "conj": lambda x: x, "conjugate": lambda x: x,
}  # fmt: skip
NOT_METHODS = {
    **dict.fromkeys(("item", "tolist", "tobytes", "data", "flat"), NO_VALUE),
    **dict.fromkeys(("fill", "put", "itemset", "resize", "partition", "setflags", "byteswap"), NO_WRITES),
    "sort": "sort() writes in place: use np.sort(x)", "strides": "a value has no memory yet, only a shape",
}
