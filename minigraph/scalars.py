"""Helpers of generated kernels: NumPy's meaning of one element, where C's operators and functions have another.

One template serves every dtype that its row lists, in C and in CUDA. ``scalar_helpers`` fills them all in; the float32
functions of C are in vectormath.h.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from .types import DTYPES

FLOATS, SIGNED, UNSIGNED = ("f32", "f64"), ("i8", "i16", "i32", "i64"), ("u8", "u16", "u32", "u64")
INTS = SIGNED + UNSIGNED
# What the op table says -> libm's name, to which float32 adds an f.
LIBRARY = {name: name for name in ("sqrt", "exp", "exp2", "expm1", "log", "log2", "log1p", "tanh", "erf", "sin", "cos",
                                   "pow", "floor", "ceil")} | {"round": "rint", "abs": "fabs"}  # fmt: skip
# Operations on floats that take as long as ten others: a long kernel is faster with a loop for each of them.
COSTLY = frozenset(LIBRARY) - {"sqrt", "floor", "ceil", "round", "abs"} | {"floor_div", "mod"}

# In a template: T is the type, U the unsigned type of its width, BITS the width, fmodF is fmodf for float32.
TEMPLATES: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("maximum", FLOATS, """\
T NAME(T a, T b) {
  return a > b || a != a ? a : b;  // a NaN wins; of two zeros the second, as in NumPy
}"""),
    ("minimum", FLOATS, """\
T NAME(T a, T b) {
  return a < b || a != a ? a : b;  // a NaN wins; of two zeros the second, as in NumPy
}"""),
    ("maximum", INTS, """\
T NAME(T a, T b) {
  return a > b ? a : b;
}"""),
    ("minimum", INTS, """\
T NAME(T a, T b) {
  return a < b ? a : b;
}"""),
    ("sign", FLOATS, """\
T NAME(T a) {
  return a != a ? a : (T)((a > 0) - (a < 0));
}"""),
    ("sign", SIGNED, """\
T NAME(T a) {
  return (T)((a > 0) - (a < 0));
}"""),
    ("sign", UNSIGNED, """\
T NAME(T a) {
  return a > 0;
}"""),
    ("abs", SIGNED, """\
T NAME(T a) {
  return a < 0 ? (T)(0 - (U)a) : a;  // the lowest number stays
}"""),
    ("left_shift", INTS, """\
T NAME(T a, T b) {
  return (U)b < BITS ? (T)((U)a << ((U)b % BITS)) : 0;  // C leaves the rest open
}"""),
    ("right_shift", SIGNED, """\
T NAME(T a, T b) {
  return (T)(a >> ((U)b < BITS ? (U)b : BITS - 1));
}"""),
    ("right_shift", UNSIGNED, """\
T NAME(T a, T b) {
  return b < BITS ? (T)(a >> (b % BITS)) : 0;
}"""),
    ("floor_div", UNSIGNED, """\
T NAME(T a, T b) {
  return b == 0 ? 0 : (T)(a / b);
}"""),
    ("mod", UNSIGNED, """\
T NAME(T a, T b) {
  return b == 0 ? 0 : (T)(a % b);
}"""),
    ("floor_div", SIGNED, """\
T NAME(T a, T b) {
  if (b == 0) return 0;
  if (b == -1) return (T)(0 - (U)a);  // the lowest number wraps
  return (T)(a / b - (a % b != 0 && (a < 0) != (b < 0)));
}"""),
    ("mod", SIGNED, """\
T NAME(T a, T b) {
  if (b == 0 || b == -1) return 0;
  T rest = (T)(a % b);
  return (T)(rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest);  // the sign of b
}"""),
    ("floor_div", FLOATS, """\
T NAME(T a, T b) {
  if (b == 0) return a / b;
  T rest = fmodF(a, b), quotient = (a - rest) / b;
  if (rest != 0 && (rest < 0) != (b < 0)) quotient -= 1;
  if (quotient == 0) return copysignF((T)0, a / b);
  T whole = floorF(quotient);
  return quotient - whole > (T)0.5 ? whole + 1 : whole;
}"""),
    ("mod", FLOATS, """\
T NAME(T a, T b) {
  T rest = fmodF(a, b);
  if (b == 0) return rest;
  if (rest == 0) return copysignF((T)0, b);
  return (rest < 0) != (b < 0) ? rest + b : rest;  // the sign of b
}"""),
    ("pow", UNSIGNED, """\
T NAME(T base, T exponent) {
  T power = 1;
  for (; exponent; exponent >>= 1) {
    if (exponent & 1) power = (T)(1u * power * base);
    base = (T)(1u * base * base);
  }
  return power;
}"""),
)  # fmt: skip

# Where the language says that a signed sum may not overflow, unsigned numbers do the work. Narrower types need it only
# where int, which computes for them, could overflow.
WRAPPING = (
    ("add", ("i32", "i64"), "T NAME(T a, T b) {\n  return (T)((U)a + (U)b);  // wraps\n}"),
    ("sub", ("i32", "i64"), "T NAME(T a, T b) {\n  return (T)((U)a - (U)b);  // wraps\n}"),
    ("mul", ("i32", "i64", "u16"), "T NAME(T a, T b) {\n  return (T)(1u * (U)a * (U)b);  // wraps\n}"),
    ("neg", ("i32", "i64"), "T NAME(T a) {\n  return (T)(0 - (U)a);  // wraps\n}"),
)

# From a float type X: toward zero, clipped to what T holds; NaN is 0.
TO_INT = """\
T NAME(X x) {
  return x >= HIGH ? MOST : x <= LOW ? LEAST : x == x ? (T)x : 0;
}"""
QUANTIZE = """\
T NAME(X x, X scale) {
  return CAST(rintF(x / scale));  // half to even
}"""


def scalar_helpers(types: dict[str, str], literal, wraps: bool) -> dict[str, str]:
    """Name -> source of every helper, callees first. ``literal(dtype, number)`` spells a number; see Dialect.wraps."""
    found = {}
    for word, dtypes, text in TEMPLATES + (() if wraps else WRAPPING):
        for dtype in dtypes:
            found[f"{word}_{dtype}"] = fill(text, types, dtype, dtype, NAME=f"{word}_{dtype}")
    for x in FLOATS:
        for dtype in INTS:
            info = np.iinfo(DTYPES[dtype])
            cast, quantize = f"{x}_to_{dtype}", f"quantize_{x}_to_{dtype}"
            ends = {"HIGH": literal(x, 2.0 * (info.max // 2 + 1)), "MOST": literal(dtype, info.max),
                    "LOW": literal(x, float(info.min)), "LEAST": literal(dtype, info.min)}  # fmt: skip
            found[cast] = fill(TO_INT, types, dtype, x, NAME=cast, **ends)
            found[quantize] = fill(QUANTIZE, types, dtype, x, NAME=quantize, CAST=cast)
    return found


def fill(text: str, types: dict[str, str], dtype: str, computed: str, **words: str) -> str:
    """A template for T = ``dtype``, computed in ``computed``."""
    bits = DTYPES[dtype].itemsize * 8
    words |= {"T": types[dtype], "U": types[f"u{bits}"], "X": types[computed], "BITS": str(bits)}
    text = re.sub(r"\b([a-z]+)F\(", r"\1f(" if computed == "f32" else r"\1(", text)
    return re.sub(r"\b(%s)\b" % "|".join(words), lambda match: words[match[1]], text)


def float32_functions() -> dict[str, str]:
    """Name -> source of every function of vectormath.h, with its comment, callees first."""
    pieces = Path(__file__).with_name("vectormath.h").read_text(encoding="utf-8").rstrip().split("\n\n")[1:]
    bodies = [re.sub(r"^static inline ", "", piece, flags=re.M) for piece in pieces]
    return {re.search(r"^\w+ (\w+)\(", body, re.M)[1]: body for body in bodies}
