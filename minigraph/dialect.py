"""C and CUDA at the level of one expression: what a generated kernel writes to compute one element.

The op table's ``expr`` says how an operation looks; a dialect spells the names in it. Where the language has an
operator or a function with NumPy's meaning, that is used; elsewhere a helper such as ``maximum_f32``, whose source
``prologue`` gives. Rows with ``ulp`` 0 come out with NumPy's very bits.
"""

from __future__ import annotations

import functools
import platform
import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from .errors import GraphError
from .ops import Attrs, Kind, Op
from .scalars import COSTLY, FLOATS, INTS, LIBRARY, SIGNED, UNSIGNED, float32_functions, scalar_helpers
from .types import DTYPES, Type

# -ffp-contract=off: a * b + c rounds twice, as in NumPy. -fwrapv: integers wrap. The other two only say that nobody
# reads errno and the exception flags. Never -ffast-math, which forgets NaN, inf and -0.0.
C_FLAGS = ("-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off", "-fwrapv")
if platform.machine() in ("x86_64", "AMD64"):
    C_FLAGS += ("-mprefer-vector-width=512",)  # twice as fast as 256 here; where there is no AVX-512 it says nothing

C_TYPES = {
    "f32": "float", "f64": "double", "i8": "int8_t", "i16": "int16_t", "i32": "int32_t", "i64": "int64_t",
    "u8": "uint8_t", "u16": "uint16_t", "u32": "uint32_t", "u64": "uint64_t", "bool": "uint8_t",
}  # fmt: skip
CUDA_TYPES = {  # NVRTC has no <stdint.h>
    "f32": "float", "f64": "double", "i8": "signed char", "i16": "short", "i32": "int", "i64": "long long",
    "u8": "unsigned char", "u16": "unsigned short", "u32": "unsigned int", "u64": "unsigned long long",
    "bool": "unsigned char",
}  # fmt: skip
SUFFIX = {"f32": "f", "u32": "u", "i64": "ll", "u64": "ull"}  # of a literal, so that no narrower type computes with it
NARROW = ("i8", "i16", "u8", "u16")  # C computes with these in int


@dataclass(frozen=True, eq=False)
class Dialect:
    """How one language spells types, numbers, operations and the helpers that they need."""

    name: str
    types: dict[str, str]
    qualifier: str  # before each helper
    preamble: str
    own_math: bool  # float32 functions from vectormath.h, or from the language's library?
    wraps: bool  # do + - * on signed integers wrap?

    def type(self, dtype: str) -> str:
        """``float`` for f32; raises GraphError for a dtype that generated code does not have."""
        if dtype not in self.types:
            raise GraphError(f"generated {self.name} code has no {dtype}", hint="run this with backend='numpy'")
        return self.types[dtype]

    def literal(self, dtype: str, element) -> str:
        """A number, to the bit: ``0.1f``, ``-0.0f``, ``INFINITY``, ``7ll``; a boolean is 0 or 1."""
        self.type(dtype)
        value = DTYPES[dtype].type(element)
        if dtype in FLOATS:
            if not np.isfinite(value):
                return "NAN" if value != value else "INFINITY" if value > 0 else "-INFINITY"
            return float_text(value) + SUFFIX.get(dtype, "")
        suffix = SUFFIX.get(dtype, "")
        if dtype in ("i32", "i64") and value == np.iinfo(DTYPES[dtype]).min:
            return f"({int(value) + 1}{suffix} - 1)"  # C reads -2147483648 as minus a number that int does not hold
        return f"{int(value)}{suffix}"

    def supports(self, row: Op, operand_types: Iterable[Type], result_type: Type, attrs: Attrs | None = None) -> bool:
        """Can a generated kernel compute this element-wise operation on these types?"""
        dtypes = [type.dtype for type in operand_types]
        if row.kind is not Kind.ELEMENTWISE or row.expr is None:
            return False
        if row.name == "pow" and dtypes[0] in SIGNED:
            return False  # a negative exponent is an error, and kernels raise none
        return all(dtype in self.types for dtype in (*dtypes, result_type.dtype))

    def costly(self, row: Op, dtype: str) -> bool:
        """Does one element take so long that a long kernel is faster with a loop of its own for this operation?"""
        return row.name in COSTLY and dtype in FLOATS

    def expression(self, row: Op, operands: list[str], operand_dtypes: list[str], dtype: str,
                   attrs: Attrs | None = None) -> tuple[str, frozenset[str]]:  # fmt: skip
        """The source of one operation, and the helpers that it calls: ``x * y``, ``tanh_f32(t)``.

        ``operands`` are names, literals or expressions, ``dtype`` is the result's. Only needed parentheses are written.
        """
        template = self.template(row, operand_dtypes[0], dtype)
        words = re.findall(r"\{([a-z]\w*)\}", template)
        functions = {word: self.function(word, operand_dtypes[0], dtype) for word in words}
        texts = [self.operand(template, *item) for item in zip(range(len(operands)), operands, operand_dtypes)]
        return template.format(*texts, **functions), frozenset(functions.values()).intersection(self.helpers)

    def template(self, row: Op, operand: str, result: str) -> str:
        """The row's ``expr``, or what stands for it on these dtypes."""
        if row.name in ("add", "sub", "mul", "neg") and f"{row.name}_{operand}" in self.helpers:
            return "{%s}({0})" % row.name if row.name == "neg" else "{%s}({0}, {1})" % row.name
        if row.name == "bitwise_not":
            return "!{0}" if operand == "bool" else "~{0}"
        if row.name == "abs" and operand in UNSIGNED:
            return "{0}"
        if row.name == "cast" and result == "bool":
            return "{0} != 0"
        if row.name in ("cast", "dequantize") and not (operand in FLOATS and result in INTS):
            return row.expr.replace("{cast}({0})", f"({self.types[result]}){{0}}")
        return row.expr

    def function(self, word: str, operand: str, result: str) -> str:
        """The helper or library function that a word of a template stands for."""
        conversion = f"{operand}_to_{result}"
        name = {"cast": conversion, "quantize": f"quantize_{conversion}"}.get(word, f"{word}_{operand}")
        return name if name in self.helpers else LIBRARY[word] + "f" * (operand == "f32")

    def operand(self, template: str, index: int, text: str, dtype: str) -> str:
        """An operand as it stands at its place in a template."""
        if re.search(r"[(,] ?\{%d\}[,)]" % index, template):  # an argument of a call
            return text
        if is_atom(text):
            return f"({text})" if text.startswith("-") and "-{" in template else text
        return f"({self.types[dtype]})({text})" if dtype in NARROW else f"({text})"

    @functools.cached_property
    def helpers(self) -> dict[str, str]:
        """Name -> source of every helper, callees first."""
        return (float32_functions() if self.own_math else {}) | scalar_helpers(self.types, self.literal, self.wraps)

    def prologue(self, helpers: Iterable[str]) -> str:
        """The source of these helpers and of those that they call; what the language needs to be told comes first."""
        wanted, todo = set(), list(helpers)
        while todo:
            name = todo.pop()
            if name not in wanted:
                wanted.add(name)
                todo += [word for word in re.findall(r"\w+", self.helpers[name]) if word in self.helpers]
        texts = [re.sub(r"^(?=\w)", f"{self.qualifier} ", text, count=1, flags=re.M)
                 for name, text in self.helpers.items() if name in wanted]  # fmt: skip
        return "\n\n".join([self.preamble, *texts]) + "\n"


def is_atom(text: str) -> bool:
    """A name, a number, a call, an element ``x[i]``, or in parentheses: nothing that an operator tears apart."""
    if re.fullmatch(r"-?(\w|\.)+(e-\d+f?)?", text):
        return True
    if not re.match(r"\w*[(\[]", text):
        return False
    depths, depth = [], 0
    for character in text:
        depth += (character in "([") - (character in ")]")
        depths.append(depth)
    return depth == 0 and 0 not in depths[re.match(r"\w*", text).end():-1]


def float_text(value: np.floating) -> str:
    """The shortest decimal that reads back as the same bits, also by way of a double."""
    if value == 0 or 1e-4 <= abs(float(value)) < 1e16:
        text = np.format_float_positional(value, unique=True, trim="0")
    else:
        text = np.format_float_scientific(value, unique=True, trim="-")
    return text if type(value)(float(text)) == value else float(value).hex()


C = Dialect("c", C_TYPES, "static inline", """\
#include <math.h>
#include <stdint.h>
#include <string.h>""", own_math=True, wraps=True)  # fmt: skip
CUDA = Dialect("cuda", CUDA_TYPES, "static inline __device__", """\
#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#endif""", own_math=False, wraps=False)  # fmt: skip
