"""C and CUDA at the level of one expression: what a generated kernel writes to compute one element.

The op table's ``expr`` says how an operation looks; a dialect spells the names in it. Where C has an operator or a
function with NumPy's meaning, that is used; elsewhere a helper such as ``maximum_f32``, whose source ``prologue`` gives.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from .errors import GraphError
from .ops import OPS, Kind, Op
from .types import DTYPES, Type
from .vectormath import FUNCTIONS

# -ffp-contract=off: a * b + c rounds twice, as NumPy does. -fwrapv: integers wrap. The other two say that nobody reads
# errno or the floating-point exception flags; they change no result. Never -ffast-math: it forgets NaN, inf and -0.0.
C_FLAGS = ("-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off", "-fwrapv")

C_TYPES = {
    "f32": "float", "f64": "double", "i8": "int8_t", "i16": "int16_t", "i32": "int32_t", "i64": "int64_t",
    "u8": "uint8_t", "u16": "uint16_t", "u32": "uint32_t", "u64": "uint64_t", "bool": "uint8_t",
}  # fmt: skip
CUDA_TYPES = {
    "f32": "float", "f64": "double", "i8": "signed char", "i16": "short", "i32": "int", "i64": "long long",
    "u8": "unsigned char", "u16": "unsigned short", "u32": "unsigned int", "u64": "unsigned long long",
    "bool": "unsigned char",
}  # fmt: skip

FLOATS, SIGNED, UNSIGNED = ("f32", "f64"), ("i8", "i16", "i32", "i64"), ("u8", "u16", "u32", "u64")
INTS = SIGNED + UNSIGNED

# ---- helpers: one template serves every dtype of its row, and both dialects ------------------------------------------

# T: the type, U: the unsigned type of its width, BITS, LAST: BITS - 1, f: the suffix of a float function
TEMPLATES: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("maximum", FLOATS, "T NAME(T a, T b) {\n  return a > b || a != a ? a : b;  // of equal ones the second, as NumPy\n}\n"),
    ("minimum", FLOATS, "T NAME(T a, T b) {\n  return a < b || a != a ? a : b;  // of equal ones the second, as NumPy\n}\n"),
    ("maximum", INTS, "T NAME(T a, T b) {\n  return a > b ? a : b;\n}\n"),
    ("minimum", INTS, "T NAME(T a, T b) {\n  return a < b ? a : b;\n}\n"),
    ("sign", FLOATS, "T NAME(T a) {\n  return a != a ? a : (T)((a > 0) - (a < 0));\n}\n"),
    ("sign", INTS, "T NAME(T a) {\n  return (a > 0) - (a < 0);\n}\n"),
    ("abs", SIGNED, "T NAME(T a) {\n  return a < 0 ? (T)(0 - (U)a) : a;\n}\n"),
    ("neg", SIGNED, "T NAME(T a) {\n  return (T)(0 - (U)a);\n}\n"),
    ("add", SIGNED, "T NAME(T a, T b) {\n  return (T)((U)a + (U)b);  // wraps\n}\n"),
    ("sub", SIGNED, "T NAME(T a, T b) {\n  return (T)((U)a - (U)b);  // wraps\n}\n"),
    ("mul", INTS, "T NAME(T a, T b) {\n  return (T)(1u * (U)a * (U)b);  // wraps\n}\n"),
    ("left_shift", INTS, "T NAME(T a, T b) {\n  return (U)b < BITS ? (T)((U)a << (b & LAST)) : 0;\n}\n"),
    ("right_shift", INTS, "T NAME(T a, T b) {\n  return (U)b < BITS ? a >> (b & LAST) : -(a < 0);\n}\n"),
    ("floor_div", UNSIGNED, "T NAME(T a, T b) {\n  return b == 0 ? 0 : a / b;\n}\n"),
    ("mod", UNSIGNED, "T NAME(T a, T b) {\n  return b == 0 ? 0 : a % b;\n}\n"),
    ("floor_div", SIGNED, """\
T NAME(T a, T b) {
  if (b == 0) return 0;
  if (b == -1) return (T)(0 - (U)a);  // the lowest number wraps
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
"""),
    ("mod", SIGNED, """\
T NAME(T a, T b) {
  if (b == 0 || b == -1) return 0;
  T rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;  // the sign of b
}
"""),
    ("floor_div", FLOATS, """\
T NAME(T a, T b) {
  if (b == 0) return a / b;
  T rest = fmodF(a, b);
  T quotient = (a - rest) / b;
  if (rest != 0 && (rest < 0) != (b < 0)) quotient -= 1;
  if (quotient == 0) return copysignF(0, a / b);
  T whole = floorF(quotient);
  return quotient - whole > (T)0.5 ? whole + 1 : whole;
}
"""),
    ("mod", FLOATS, """\
T NAME(T a, T b) {
  T rest = fmodF(a, b);
  if (b == 0) return rest;
  if (rest == 0) return copysignF(0, b);
  return (rest < 0) != (b < 0) ? rest + b : rest;  // the sign of b
}
"""),
    ("pow", UNSIGNED, """\
T NAME(T base, T exponent) {
  T power = 1;
  for (; exponent; exponent >>= 1) {
    if (exponent & 1) power = (T)(1u * power * base);
    base = (T)(1u * base * base);
  }
  return power;
}
"""),
)  # fmt: skip

# x is the float type, T the integer one: toward zero, clipped, NaN is 0
TO_INT = """\
T NAME(X x) {
  return x >= HIGH ? MOST : x <= LOW ? LEAST : x == x ? (T)x : 0;
}
"""
QUANTIZE = """\
T NAME(X x, X scale) {
  return CAST(rintF(x / scale));  // half to even
}
"""

LIBM = ("exp", "exp2", "expm1", "log", "log2", "log1p", "tanh", "erf", "sin", "cos", "pow")
SAME_NAME = {"sqrt": "sqrt", "floor": "floor", "ceil": "ceil", "round": "rint", "abs": "fabs"}  # placeholder -> libm


@dataclass(frozen=True, eq=False)
class Dialect:
    """How one language spells types, literals and functions."""

    name: str
    types: dict[str, str]
    qualifier: str  # before each helper
    preamble: str
    own_math: bool  # float32 functions from vectormath, not from the language's own library
    wraps: bool  # do the operators + - * wrap, also where the result does not fit?

    def type(self, dtype: str) -> str:
        """The language's name of a dtype; raises GraphError where it has none."""
        if dtype not in self.types:
            raise GraphError(f"generated {self.name} code has no type for {dtype}")
        return self.types[dtype]

    def literal(self, dtype: str, element) -> str:
        """The number, to the bit: ``0.1f``, ``-0.0f``, ``INFINITY``, ``1``."""
        value = DTYPES[dtype].type(element)
        if dtype == "bool":
            return "1" if value else "0"
        if dtype in FLOATS:
            if value != value:
                return "NAN"
            if np.isinf(value):
                return "INFINITY" if value > 0 else "-INFINITY"
            return float_text(value) + "f" * (dtype == "f32")
        if value == np.iinfo(DTYPES[dtype]).min and dtype in ("i32", "i64"):
            return f"({int(value) + 1}{'ll' * (dtype == 'i64')} - 1)"  # 2147483648 alone would be a wider type
        return str(int(value)) + {"u32": "u", "u64": "ull", "i64": "ll" * (abs(int(value)) >= 2**31)}.get(dtype, "")

    def supports(self, row: Op, operand_types: Iterable[Type], result_type: Type, attrs) -> bool:
        """Can a generated kernel compute this element-wise operation on these types?"""
        dtypes = [type.dtype for type in operand_types]
        if row.kind is not Kind.ELEMENTWISE or row.expr is None:
            return False
        if row.name == "pow" and dtypes[0] in SIGNED:
            return False  # a negative exponent is an error, and a kernel raises none
        return all(dtype in self.types for dtype in (*dtypes, result_type.dtype))

    def expression(self, row: Op, operands: list[str], operand_dtypes: list[str], dtype: str, attrs=None) -> tuple[str, frozenset[str]]:
        """The source of one operation on named operands, and the helpers that it calls."""
        template, names = self.spell(row, tuple(operand_dtypes), dtype)
        texts = list(operands)
        for index, operand in enumerate(operands):
            if re.search(r"-\{%d\}" % index, template) and operand.startswith("-") or not ATOM.fullmatch(operand):
                if not re.search(r"[(,] ?\{%d\}[,)]" % index, template):
                    texts[index] = f"({operand})"
        used = {names[word] for word in re.findall(r"\{(\w+)\}", template) if word in names}
        helpers = frozenset(name for name in used if name in self.helpers)
        return template.format(*texts, **names), helpers

    def spell(self, row: Op, operand_dtypes: tuple[str, ...], dtype: str) -> tuple[str, dict[str, str]]:
        """The template of an operation on these dtypes, and what its names become."""
        first, template = operand_dtypes[0], row.expr
        if not self.wraps and f"{row.name}_{first}" in self.helpers and row.name in ("add", "sub", "mul", "neg"):
            template = "{%s}(%s)" % (row.name, ", ".join("{%d}" % i for i in range(len(operand_dtypes))))
        if row.name == "bitwise_not":
            template = "!{0}" if first == "bool" else "~{0}"
        if row.name == "abs" and first in UNSIGNED:
            template = "{0}"
        if row.name == "cast" and dtype == "bool":
            template = "{0} != 0"
        elif row.name in ("cast", "dequantize") and not (first in FLOATS and dtype in INTS):
            template = template.replace("{cast}({0})", f"({self.types[dtype]}){{0}}")
        names = {}
        for word in re.findall(r"\{([a-z]\w*)\}", template):
            names[word] = self.function(word, first, dtype)
        return template, names

    def function(self, word: str, operand: str, result: str) -> str:
        if word in ("cast", "quantize"):
            return f"{operand}_to_{result}" if word == "cast" else f"quantize_{operand}_to_{result}"
        if operand in FLOATS and (word in SAME_NAME or word in LIBM):
            if word in LIBM and operand == "f32" and self.own_math:
                return f"{word}_f32"
            return SAME_NAME.get(word, word) + "f" * (operand == "f32")
        return f"{word}_{operand}"

    @functools.cached_property
    def helpers(self) -> dict[str, str]:
        """Name -> source of every helper, those that a helper calls before it."""
        found = {f"{word}_{dtype}": self.fill(text, f"{word}_{dtype}", dtype)
                 for word, dtypes, text in TEMPLATES for dtype in dtypes}
        for wide in FLOATS:
            for narrow in INTS:
                cast, quantize = f"{wide}_to_{narrow}", f"quantize_{wide}_to_{narrow}"
                found[cast] = self.fill(TO_INT, cast, narrow, wide)
                found[quantize] = self.fill(QUANTIZE, quantize, narrow, wide, cast)
        return (dict(FUNCTIONS) if self.own_math else {}) | found

    def fill(self, text: str, name: str, dtype: str, x: str = "", cast: str = "") -> str:
        bits = DTYPES[dtype].itemsize * 8
        names = {"NAME": name, "T": self.types[dtype], "U": self.types.get(f"u{bits}", ""), "BITS": str(bits),
                 "LAST": str(bits - 1), "X": self.types.get(x, ""), "CAST": cast}
        if x:
            info = np.iinfo(DTYPES[dtype])
            names |= {"HIGH": self.literal(x, 2.0 * (info.max // 2 + 1)), "LOW": self.literal(x, float(info.min)),
                      "MOST": self.literal(dtype, info.max), "LEAST": self.literal(dtype, info.min)}
        suffix = "f" if (x or dtype) == "f32" else ""
        text = re.sub(r"\b(fmod|copysign|floor|rint)F\b", rf"\1{suffix}", text)
        return re.sub(r"\b(%s)\b" % "|".join(names), lambda match: names[match[1]], text)

    def prologue(self, helpers: Iterable[str]) -> str:
        """The source of exactly these helpers, and of those that they call."""
        wanted, todo = set(), list(helpers)
        while todo:
            name = todo.pop()
            if name not in wanted:
                wanted.add(name)
                todo += [word for word in re.findall(r"\w+", self.helpers[name]) if word in self.helpers]
        texts = [f"{self.qualifier} {text}" for name, text in self.helpers.items() if name in wanted]
        return "\n".join([self.preamble, *texts])


ATOM = re.compile(r"-?[\w.]+(\([^()]*\)|\[[^\[\]]*\])*|\([^()]*\)")


def float_text(value: np.floating) -> str:
    """The shortest decimal that reads back as the same bits."""
    if value == 0 or 1e-4 <= abs(float(value)) < 1e16:
        return np.format_float_positional(value, unique=True, trim="0")
    return np.format_float_scientific(value, unique=True, trim="-")


C = Dialect("c", C_TYPES, "static inline", "#include <math.h>\n#include <stdint.h>\n", own_math=True, wraps=True)
CUDA = Dialect("cuda", CUDA_TYPES, "static __device__ inline", """\
#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#endif
""", own_math=False, wraps=False)  # fmt: skip
