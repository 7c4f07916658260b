"""Algebraic simplification: rules as data, strict by default."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from itertools import permutations, product
from typing import NamedTuple

import numpy as np

from ..errors import GraphError, RuleLoop, nearest
from ..ir import Graph, Node
from ..ops import INT, OPS, infer, make_attrs, slice_ranges
from ..rebuild import Env, Result, Rewrite, rebuild
from ..text import node_line, parse_element
from ..types import DTYPES, Const, Type, splat
from .fold import evaluate
from .rules import FLAGS, RULES, Rule


def simplify(graph: Graph, fast: Iterable[str] = (), rules: Iterable[Rule] = RULES) -> Result:
    """Apply the rules whose flags are all in ``fast``; without flags the result keeps every bit.

    Each application lowers the weight of what it rewrites (a sum of the rows' costs), so this ends; a rule that
    does not is a RuleLoop. Raises GraphError for an unknown flag.
    """
    allowed = set(check_flags(fast))
    usable = [compile_rule(rule) for rule in rules if allowed.issuperset(rule.flags)]
    # most nodes fit no rule: what could fit follows from the operation and its operands' operations
    candidates: dict[tuple, list[tuple[Compiled, Call]]] = {}

    def visit(node: Node, env: Env) -> Rewrite | None:
        shape = (node.op, *[env.defs[name].op for name in node.inputs])
        if shape not in candidates:
            candidates[shape] = [(compiled, pattern) for compiled in usable for pattern in compiled.patterns
                                 if could_match(pattern, shape)]
        for compiled, pattern in candidates[shape]:
            rewrite = apply(compiled, pattern, node, env)
            if rewrite is not None:
                return rewrite
        return None

    with np.errstate(all="ignore"):
        return rebuild(graph, visit)


def check_flags(fast: Iterable[str]) -> tuple[str, ...]:
    """The flags, each known; ``fast`` stands for all of them."""
    flags = tuple(fast.split(",") if isinstance(fast, str) else fast)
    flags = tuple(flag.strip() for flag in flags if flag.strip())
    for flag in flags:
        if flag not in (*FLAGS, "fast"):
            raise GraphError(f"unknown fast-math flag '{flag}'",
                             hint=nearest(flag, FLAGS) or f"the flags are {' '.join(FLAGS)}, or fast for all")
    return FLAGS if "fast" in flags else flags


# ---- patterns -------------------------------------------------------------------------------------------------


class Call(NamedTuple):
    """An operation in a pattern."""

    op: str
    args: tuple


class Hole(NamedTuple):
    """A bare name; ``x`` stands for any value, ``c1`` for a constant."""

    name: str
    constant: bool


class Literal(NamedTuple):
    """A number, as text: its bits depend on the dtype that it meets."""

    text: str


class Compiled(NamedTuple):
    """A rule with its pattern parsed: one alternative for each order of commuting operands."""

    rule: Rule
    patterns: tuple[Call, ...]
    result: Call | Hole | Literal


@functools.lru_cache(maxsize=None)
def compile_rule(rule: Rule) -> Compiled:
    pattern, result = parse_pattern(rule.pattern), parse_pattern(rule.result)
    if not isinstance(pattern, Call):
        raise GraphError(f"rule {rule.name}: the pattern '{rule.pattern}' is not an operation")
    unbound = [name for name in hole_names(result) if name not in hole_names(pattern)]
    if unbound:
        raise GraphError(f"rule {rule.name}: the hole '{unbound[0]}' of '{rule.result}' is not in '{rule.pattern}'")
    if rule.when and rule.when not in PREDICATES:
        raise GraphError(f"rule {rule.name}: no predicate '{rule.when}'", hint=nearest(rule.when, PREDICATES))
    return Compiled(rule, tuple(dict.fromkeys(orders(pattern))), result)


def hole_names(pattern) -> list[str]:
    if isinstance(pattern, Call):
        return [name for arg in pattern.args for name in hole_names(arg)]
    return [pattern.name] if isinstance(pattern, Hole) else []


def parse_pattern(text: str) -> Call | Hole | Literal:
    """``add(mul(x, c1), -0.0)``: calls, holes and literals; nested as deep as it is written."""
    tokens = re.findall(r"[A-Za-z_]\w*|-?[0-9][0-9.e+-]*|-inf|[(),]|\S", text)
    pattern, rest = parse_tokens(tokens, text)
    if rest:
        raise GraphError(f"'{text}' goes on after the pattern: {' '.join(rest)}")
    return pattern


def parse_tokens(tokens: list[str], text: str):
    if not tokens or tokens[0] in "(),":
        raise GraphError(f"'{text}' is not a pattern", hint="like add(x, neg(y)) or mul(x, 0.0)")
    head, *rest = tokens
    if not rest or rest[0] != "(":
        literal = re.fullmatch(r"-?[0-9].*|-?inf|nan|true|false", head)
        return (Literal(head) if literal else Hole(head, bool(re.fullmatch(r"c[0-9]+", head)))), rest
    if head not in OPS:
        raise GraphError(f"'{text}': unknown op '{head}'", hint=nearest(head, OPS))
    args = []
    while rest[0] != ")":
        arg, rest = parse_tokens(rest[1:], text)
        args.append(arg)
        if not rest:
            raise GraphError(f"'{text}' lacks a closing parenthesis")
    return Call(head, tuple(args)), rest[1:]


def orders(pattern) -> Iterable:
    """The pattern with the operands of commuting operations in every order."""
    if not isinstance(pattern, Call):
        return [pattern]
    args = product(*map(orders, pattern.args))
    if not OPS[pattern.op].commutative:
        return [Call(pattern.op, one) for one in args]
    return [Call(pattern.op, turned) for one in args for turned in permutations(one)]


# ---- matching -------------------------------------------------------------------------------------------------


class Mismatch(NamedTuple):
    """Why a pattern does not fit: the part of it, the value it met, and the reason."""

    part: Call | Hole | Literal
    value: str
    reason: str


def match(pattern: Call, node: Node, env: Env, holes: dict[str, str]) -> Mismatch | None:
    """Bind the holes of ``pattern`` so that it equals ``node``; None on success."""
    if node.op != pattern.op:
        return Mismatch(pattern, node.name, "is another operation")
    if len(node.inputs) != len(pattern.args):
        return Mismatch(pattern, node.name, "has another number of operands")
    for part, name in zip(pattern.args, node.inputs):
        operand = env.defs[name]
        if isinstance(part, Hole):
            if part.constant and operand.op != "const":
                return Mismatch(part, name, "is not a constant")
            if holes.setdefault(part.name, name) != name:
                return Mismatch(part, name, "is not the value that the hole already stands for")
        elif isinstance(part, Literal):
            if operand.op != "const":
                return Mismatch(part, name, "is not a constant")
            if splat(operand.value) != literal_bytes(part.text, operand.value.dtype):
                return Mismatch(part, name, "does not have these bits in every element")
        elif (mismatch := match(part, operand, env, holes)) is not None:
            return mismatch
    return None


@functools.lru_cache(maxsize=4096)
def literal_bytes(text: str, dtype: str) -> bytes | None:
    """The bits of a literal in that dtype; None where the dtype does not have it."""
    try:
        return np.array(parse_element(text, dtype), DTYPES[dtype]).tobytes()
    except GraphError:
        return None


def could_match(pattern: Call, shape: tuple[str, ...]) -> bool:
    """Do the operation and its operands' operations allow the pattern at all?"""
    op, *operands = shape
    return op == pattern.op and len(operands) == len(pattern.args) and all(
        part.op == found if isinstance(part, Call) else found == "const" or (isinstance(part, Hole) and not part.constant)
        for part, found in zip(pattern.args, operands))


def apply(compiled: Compiled, pattern: Call, node: Node, env: Env) -> Rewrite | None:
    """Rewrite ``node`` by the rule, or None where it does not fit."""
    rule, holes = compiled.rule, {}
    if match(pattern, node, env, holes) is not None or refusal(rule, node, holes, env):
        return None
    new = build(compiled, node, holes, env)
    if new is None:
        return None
    if not isinstance(new, str):
        check_weight(rule, pattern, new, node)
    allowed = f"allowed by {' '.join(rule.flags)}; else " if rule.flags else ""
    return Rewrite(rule.name, new, f"{rule.pattern} -> {rule.result}: {allowed}{rule.why}")


def refusal(rule: Rule, node: Node, holes: dict[str, str], env: Env) -> str:
    """Why a rule that fits must not be used here; empty where it may."""
    domain = env.type(node.inputs[-1]).domain
    if domain not in rule.domain:
        return f"the rule is for {' and '.join(rule.domain)}, the operands are {domain}"
    if rule.when and not PREDICATES[rule.when](node, holes, env):
        return f"{rule.when.replace('_', ' ')} does not hold"
    return ""


def explain(rule: Rule, graph: Graph, name: str, fast: Iterable[str] = ()) -> str:
    """Why did my rule not fire? One sentence about the rule and the node ``name``."""
    env = Env(graph)
    env.defs.update({node.name: node for node in graph.nodes})
    if name not in env.defs:
        raise GraphError(f"no value is named '{name}'", hint=nearest(name, env.defs))
    node, compiled = env.defs[name], compile_rule(rule)
    missing = [flag for flag in rule.flags if flag not in check_flags(fast)]
    if missing:
        return f"{rule.name} needs the flags {', '.join(missing)}: {rule.why}"
    sentence = ""
    for pattern in compiled.patterns:
        holes: dict[str, str] = {}
        mismatch = match(pattern, node, env, holes)
        if mismatch is None:
            with np.errstate(all="ignore"):
                reason = refusal(rule, node, holes, env) or unfit(compiled, node, holes, env)
            return f"{rule.name}: {reason}" if reason else f"{rule.name} fits {node_line(node)}"
        line = node_line(env.defs[mismatch.value])
        sentence = sentence or f"{rule.name}: '{show(mismatch.part)}' does not fit {line}: it {mismatch.reason}"
    return sentence


def unfit(compiled: Compiled, node: Node, holes: dict[str, str], env: Env) -> str:
    """Why the result of a rule that matches cannot be built; empty where it can."""
    return "" if build(compiled, node, holes, env) else f"'{compiled.rule.result}' cannot stand for a value of type {node.type}"


def show(part) -> str:
    """A pattern as text."""
    if isinstance(part, Call):
        return f"{part.op}({', '.join(map(show, part.args))})"
    return part.name if isinstance(part, Hole) else part.text


# ---- building -------------------------------------------------------------------------------------------------


def build(compiled: Compiled, node: Node, holes: dict[str, str], env: Env) -> str | tuple[Node, ...] | None:
    """The nodes that replace ``node`` (the last stands for it), or a value's name; None where it would not fit."""
    made: dict[str, Node] = {}

    def emit(name: str, op: str, inputs: tuple[str, ...], value, type: Type) -> str:
        made[name] = Node(name, op, inputs, value, type)
        return name

    def look(name: str) -> Node:
        return made.get(name) or env.defs[name]

    def construct(part, is_root: bool) -> str | Const | None:
        if isinstance(part, Hole):
            value = env.defs[holes[part.name]].value
            return value if part.constant else holes[part.name]
        if isinstance(part, Literal):
            bits = literal_bytes(part.text, node.type.dtype)
            return None if bits is None else Const(node.type.dtype, (), bits)
        args = [construct(arg, False) for arg in part.args]
        if None in args:
            return None
        row = OPS[part.op]
        if all(isinstance(arg, Const) for arg in args):  # a rule's constants are computed at once
            type = infer(row, tuple(arg.type for arg in args), None)
            const = evaluate(row, args, Node("", part.op, (), None, type))
            # regrouping constants must not store more than it found
            fits = const and len(const.data) <= max(len(arg.data) for arg in args)
            return const if fits and (not compiled.rule.flags or only_rounds(part.op, const)) else None
        inputs = tuple(named(arg) for arg in args)
        value = node.value if is_root and part.op == node.op else make_attrs(row, {})
        type = infer(row, tuple(look(name).type for name in inputs), value)
        return emit(node.name if is_root else env.fresh(f"{node.name}.{part.op}"), part.op, inputs, value, type)

    def named(value: str | Const) -> str:
        if isinstance(value, str):
            return value
        return emit(env.fresh(f"{node.name}.c"), "const", (), value, value.type)

    result = construct(compiled.result, True)
    type = result.type if isinstance(result, Const) else look(result).type if result else None
    if type is None or type.dtype != node.type.dtype:
        return None
    if type != node.type:  # an operand that was broadcast stands for a wider value
        shape = make_attrs(OPS["broadcast_to"], {"shape": node.type.shape})
        if result == node.name:
            return None  # an operation of the rule itself came out narrower
        emit(node.name, "broadcast_to", (named(result),), shape, node.type)
    elif isinstance(result, Const):
        emit(node.name, "const", (), result, type)
    elif result not in made:
        return result
    return tuple(made.values())


def only_rounds(op: str, const: Const) -> bool:
    """Is every element an ordinary float? A flag allows other rounding, but 1 / 1e-40 is inf, and 0 * inf is NaN."""
    size, limits = np.abs(const.array), np.finfo(const.array.dtype)
    # a sum may cancel, and what is left is exact; a product or a quotient loses bits below the smallest normal
    return bool((size <= limits.max).all() and (op == "add" or (size >= limits.tiny).all()))


def check_weight(rule: Rule, pattern: Call, new: tuple[Node, ...], node: Node) -> None:
    """Every application must lower the weight, or rules could chase each other for ever."""
    before, after = weight(pattern), sum(OPS[made.op].cost for made in new if made.op != "const")
    if after >= before:
        raise RuleLoop(f"rule {rule.name} does not make '{node_line(node)}' lighter: {rule.pattern} weighs {before},"
                       f" {rule.result} weighs {after}")


def weight(pattern) -> int:
    """The sum of the costs of a pattern's operations."""
    return OPS[pattern.op].cost + sum(map(weight, pattern.args)) if isinstance(pattern, Call) else 0


# ---- predicates: conditions on types and attributes, named so that a rule can ask for them ----------------------


def scalar_exponent(node: Node, holes, env: Env) -> bool:
    return env.type(node.inputs[1]).shape == () or node.type.domain != "float"


def power_of_two(node: Node, holes, env: Env) -> bool:
    c = env.defs[holes["c1"]].value.array
    mantissa, _ = np.frexp(c)
    return bool(((np.abs(mantissa) == 0.5) & np.isfinite(1 / c)).all()) and c.size > 0


def same_type(node: Node, holes, env: Env) -> bool:
    return env.type(holes["x"]) == node.type


def identity_permutation(node: Node, holes, env: Env) -> bool:
    return node.value.perm == tuple(range(len(node.value.perm)))


def whole_slice(node: Node, holes, env: Env) -> bool:
    shape = env.type(holes["x"]).shape
    return all(taken == range(dim) for taken, dim in zip(slice_ranges(node.value), shape))


def lossless(narrow: str, wide: str) -> bool:
    """Does every value of ``narrow`` have itself in ``wide``?"""
    a, b = DTYPES[narrow], DTYPES[wide]
    if narrow == wide or not np.can_cast(a, b, "safe"):
        return False
    # can_cast calls i64 to f64 safe, but a float64 has 53 bits for a whole number
    return b.kind != "f" or a.kind not in "iu" or np.iinfo(a).bits <= np.finfo(b).nmant + 1


def lossless_round_trip(node: Node, holes, env: Env) -> bool:
    x, middle = env.type(holes["x"]).dtype, env.type(node.inputs[0]).dtype
    return lossless(x, middle) and node.type.dtype == x


def lossless_inner_cast(node: Node, holes, env: Env) -> bool:
    x, middle, result = env.type(holes["x"]), env.type(node.inputs[0]), node.type
    # from float to integer what does not fit is clipped, from integer to integer it wraps around
    clips = x.domain in INT and middle.domain == "float" and result.domain in INT
    return lossless(x.dtype, middle.dtype) and (not clips or lossless(x.dtype, result.dtype))


PREDICATES = {predicate.__name__: predicate for predicate in (
    scalar_exponent, power_of_two, same_type, identity_permutation, whole_slice,
    lossless_round_trip, lossless_inner_cast,
)}  # fmt: skip
