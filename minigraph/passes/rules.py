"""The rewrite rules, as data in the IR's own text. A test attacks every row.

A hole is a bare name: ``x`` is any value, ``c1`` a constant; a repeated hole is the same value. A literal matches
a constant whose every element has exactly these bits. Where a result is narrower than what it replaces, it is
broadcast to that shape. A result of the replaced operation keeps its attributes.

A rule without flags keeps every bit, of infinities, NaNs and signed zeros too. A rule with flags is wrong for some
bits, and a test holds a counterexample for each flag that it names. The flags are LLVM's ("Fast-Math Flags",
LLVM Language Reference): nnan no NaNs · ninf no infinities · nsz the sign of zero does not matter · arcp a
reciprocal may stand for a division · reassoc operations may be regrouped · contract a*b+c may be rounded once ·
afn a function may be approximated. The last two are for generated kernels.
"""

from __future__ import annotations

from typing import NamedTuple

from ..ops import FLOAT, INT, NUMBER, ROWS

FLAGS = ("nnan", "ninf", "nsz", "arcp", "contract", "afn", "reassoc")
ANYTHING = (*NUMBER, "bool")


class Rule(NamedTuple):
    """``pattern`` becomes ``result`` for values of these domains, if all ``flags`` are allowed and ``when`` holds."""

    name: str
    pattern: str
    result: str
    domain: tuple[str, ...] = FLOAT
    flags: tuple[str, ...] = ()
    why: str = ""
    when: str = ""  # the name of a predicate in simplify.PREDICATES


def rules_of_rows() -> tuple[Rule, ...]:
    """What the op table already says: identities, idempotence and involutions."""
    rules = []
    for row in ROWS:
        for domain, e in row.right_identity:
            rules.append(Rule(f"{row.name}-{e}-{domain}", f"{row.name}(x, {e})", "x", (domain,),
                              why=f"{e} is the right identity of {row.name}"))
        f = row.name
        if row.idempotent and row.arity == (2, 2):
            rules.append(Rule(f"{f}-idempotent", f"{f}(x, x)", "x", ANYTHING, why=f"{f} of x and x is x"))
        elif row.idempotent:
            rules.append(Rule(f"{f}-idempotent", f"{f}({f}(x))", f"{f}(x)", ANYTHING, why=f"{f} twice is {f} once"))
        if row.involution:
            rules.append(Rule(f"{f}-involution", f"{f}({f}(x))", "x", ANYTHING, why=f"{f} undoes itself"))
    return tuple(rules)


EXACT = (
    # signs
    Rule("neg-zero-sub", "sub(-0.0, x)", "neg(x)", why="-0.0 - x is -x, for both zeros too"),
    Rule("zero-sub-int", "sub(0, x)", "neg(x)", INT, why="integers have one zero"),
    Rule("mul-minus-one", "mul(x, -1)", "neg(x)", ("float", "signed"), why="x * -1 only turns the sign"),
    Rule("add-neg", "add(x, neg(y))", "sub(x, y)", NUMBER, why="that is how x - y is defined"),
    Rule("sub-neg", "sub(x, neg(y))", "add(x, y)", NUMBER, why="two signs cancel"),
    Rule("mul-neg-neg", "mul(neg(x), neg(y))", "mul(x, y)", NUMBER, why="two signs cancel"),
    Rule("div-neg-neg", "div(neg(x), neg(y))", "div(x, y)", why="two signs cancel"),
    Rule("abs-neg", "abs(neg(x))", "abs(x)", ("float", "signed"), why="abs drops the sign"),
    # cheaper operations
    Rule("square", "pow(x, 2)", "mul(x, x)", NUMBER, when="scalar_exponent",
         why="NumPy squares by multiplying where the exponent is 0-d"),
    Rule("pow-zero", "pow(x, 0)", "1", NUMBER, why="x**0 is 1, of NaN too"),
    Rule("div-power-of-two", "div(x, c1)", "mul(x, div(1, c1))", when="power_of_two",
         why="1/c is exact, so both round the same number"),
    # integers wrap around, so what is true of numbers is true of bits
    Rule("mul-zero-int", "mul(x, 0)", "0", INT, why="integers have no NaN, no infinity and one zero"),
    Rule("sub-self-int", "sub(x, x)", "0", INT, why="integers have no NaN and no infinity"),
    Rule("add-add-int", "add(add(x, c1), c2)", "add(x, add(c1, c2))", INT, why="integer addition is associative"),
    Rule("mul-mul-int", "mul(mul(x, c1), c2)", "mul(x, mul(c1, c2))", INT, why="integer multiplication is associative"),
    Rule("xor-self", "bitwise_xor(x, x)", "0", INT, why="every bit equals itself"),
    Rule("and-zero", "bitwise_and(x, 0)", "0", INT, why="no bit is left"),
    Rule("and-false", "bitwise_and(x, false)", "false", ("bool",), why="false and anything is false"),
    Rule("or-true", "bitwise_or(x, true)", "true", ("bool",), why="true or anything is true"),
    # comparisons: NaN is not equal to itself, and not less than itself either
    Rule("eq-self-int", "eq(x, x)", "true", (*INT, "bool"), why="only NaN differs from itself"),
    Rule("ne-self-int", "ne(x, x)", "false", (*INT, "bool"), why="only NaN differs from itself"),
    Rule("le-self-int", "le(x, x)", "true", (*INT, "bool"), why="only NaN is not <= itself"),
    Rule("ge-self-int", "ge(x, x)", "true", (*INT, "bool"), why="only NaN is not >= itself"),
    Rule("lt-self", "lt(x, x)", "false", ANYTHING, why="nothing is less than itself, NaN included"),
    Rule("gt-self", "gt(x, x)", "false", ANYTHING, why="nothing is greater than itself, NaN included"),
    # choices
    Rule("where-true", "where(true, x, y)", "x", ANYTHING, why="the condition is always true"),
    Rule("where-false", "where(false, x, y)", "y", ANYTHING, why="the condition is always false"),
    Rule("where-same", "where(c, x, x)", "x", ANYTHING, why="both choices are the same value"),
    Rule("where-not", "where(bitwise_not(c), x, y)", "where(c, y, x)", ANYTHING, why="swap the choices instead"),
    # layout and casts that do nothing
    Rule("reshape-same", "reshape(x)", "x", ANYTHING, when="same_type", why="the shape is already right"),
    Rule("reshape-reshape", "reshape(reshape(x))", "reshape(x)", ANYTHING, why="only the last shape counts"),
    Rule("broadcast-same", "broadcast_to(x)", "x", ANYTHING, when="same_type", why="the shape is already right"),
    Rule("broadcast-broadcast", "broadcast_to(broadcast_to(x))", "broadcast_to(x)", ANYTHING,
         why="only the last shape counts"),
    Rule("transpose-identity", "transpose(x)", "x", ANYTHING, when="identity_permutation", why="every axis stays"),
    Rule("slice-all", "slice(x)", "x", ANYTHING, when="whole_slice", why="it takes every element in order"),
    Rule("concat-one", "concat(x)", "x", ANYTHING, why="one array, end to end with nothing"),
    Rule("cast-same", "cast(x)", "x", ANYTHING, when="same_type", why="the dtype is already right"),
    Rule("cast-there-and-back", "cast(cast(x))", "x", ANYTHING, when="lossless_round_trip",
         why="the wider dtype holds every value of the narrower"),
    Rule("cast-cast", "cast(cast(x))", "cast(x)", ANYTHING, when="lossless_inner_cast",
         why="the inner cast lost nothing"),
)  # fmt: skip

FAST = (
    Rule("add-zero", "add(x, 0.0)", "x", flags=("nsz",), why="wrong for x = -0.0: -0.0 + 0.0 is 0.0"),
    Rule("zero-sub", "sub(0.0, x)", "neg(x)", flags=("nsz",), why="wrong for x = 0.0: 0.0 - 0.0 is 0.0, not -0.0"),
    Rule("neg-sub", "neg(sub(x, y))", "sub(y, x)", flags=("nsz",), why="wrong for x = y: -(0.0) is -0.0"),
    Rule("mul-zero", "mul(x, 0.0)", "0", flags=("nnan", "ninf", "nsz"),
         why="wrong for NaN, for infinities (inf * 0 is NaN) and for negative x (-0.0)"),
    Rule("zero-div", "div(0.0, x)", "0", flags=("nnan", "nsz"), why="wrong for 0.0 and NaN, and for negative x"),
    Rule("sub-self", "sub(x, x)", "0", flags=("nnan", "ninf"), why="wrong for NaN and infinities: inf - inf is NaN"),
    Rule("div-self", "div(x, x)", "1", flags=("nnan", "ninf"), why="wrong for NaN, infinities and zeros"),
    Rule("div-const", "div(x, c1)", "mul(x, div(1, c1))", flags=("arcp",), why="1/c is rounded, then the product again"),
    Rule("div-sqrt", "div(x, sqrt(y))", "mul(x, rsqrt(y))", flags=("arcp",), why="1/sqrt(y) is rounded once more"),
    Rule("add-add", "add(add(x, c1), c2)", "add(x, add(c1, c2))", flags=("reassoc",), why="rounds elsewhere"),
    Rule("mul-mul", "mul(mul(x, c1), c2)", "mul(x, mul(c1, c2))", flags=("reassoc",), why="rounds and overflows elsewhere"),
    Rule("div-div", "div(div(x, c1), c2)", "div(x, mul(c1, c2))", flags=("arcp", "reassoc"),
         why="(x / 3) / 7 is not x / 21"),
    Rule("mul-div", "div(mul(x, y), y)", "x", flags=("nnan", "reassoc"), why="x * y may overflow or round; 0 / 0 is NaN"),
    Rule("sqrt-squared", "mul(sqrt(x), sqrt(x))", "x", flags=("nnan", "nsz", "reassoc"),
         why="sqrt rounds; it is NaN below zero, and its square of -0.0 is 0.0"),
)  # fmt: skip

RULES = (*rules_of_rows(), *EXACT, *FAST)
