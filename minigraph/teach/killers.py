"""Where the two sides of a rewrite rule differ: the values that kill it, found by trying."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np

from ..command.tables import table
from ..ir import Builder, Graph
from ..passes.rules import Rule
from ..passes.simplify import Call, Hole, compile_rule, simplify
from ..run_numpy import run
from ..types import same_bits
from .charts import Chart, grid

# What a hole stands for, ordinary numbers first; and the constants of rules such as div(x, c1).
VALUES = (2.0, 5.0, 7.0, -3.0, 0.1, 0.0, -0.0, np.inf, -np.inf, np.nan)
CONSTANTS = (3.0, 7.0, 0.1)


class Difference(NamedTuple):
    """Values at which a rule is wrong, what its left and right sides give there, and the flags that would excuse it."""

    values: dict[str, np.float32]
    left: np.float32
    right: np.float32
    excuses: frozenset[str]

    @property
    def where(self) -> str:
        return ", ".join(f"{name} = {value!s}" for name, value in self.values.items())


def differences(rule: Rule) -> Iterator[Difference]:
    """Every combination of VALUES and CONSTANTS at which the sides differ in a bit, in float32."""
    pattern = compile_rule(rule).patterns[0]
    holes = list(dict.fromkeys(holes_of(pattern)))
    names = [hole.name for hole in holes if not hole.constant]
    fixed = [hole.name for hole in holes if hole.constant]
    columns = np.array(list(product(VALUES, repeat=len(names))), np.float32).T
    inputs = dict(zip(names, columns))
    for numbers in product(CONSTANTS, repeat=len(fixed)):
        constants = dict(zip(fixed, map(np.float32, numbers)))
        before = left_side(pattern, columns.shape[-1], constants)
        after = simplify(before, rule.flags, (rule,)).graph
        left, right = all_values(before, inputs), all_values(after, inputs)
        everything = np.stack(np.broadcast_arrays(*left.values(), *right.values()))
        for i, (a, b) in enumerate(zip(left["out"], right["out"])):
            if not same_bits(a, b):
                values = {name: column[i] for name, column in inputs.items()} | constants
                yield Difference(values, a, b, excuses(a, b, everything[:, i]))


def holes_of(pattern) -> list[Hole]:
    if isinstance(pattern, Call):
        return [hole for part in pattern.args for hole in holes_of(part)]
    return [pattern] if isinstance(pattern, Hole) else []


def left_side(pattern, size: int, constants: dict[str, np.float32]) -> Graph:
    """The pattern as a graph; each hole is an input of ``size`` elements or one of ``constants``."""
    builder = Builder("left")

    def emit(part) -> str:
        if isinstance(part, Call):
            return builder.emit(part.op, *map(emit, part.args))
        if not isinstance(part, Hole):
            return builder.const(float(part.text), "f32")
        if part.name not in builder.nodes and part.constant:
            return builder.const(constants[part.name], name=part.name)
        return part.name if part.name in builder.nodes else builder.input(part.name, f"f32[{size}]")

    return builder.build({"out": emit(pattern)})


def all_values(graph: Graph, inputs) -> dict[str, np.ndarray]:
    """Every value of the graph, intermediate ones too, and ``out``."""
    names = tuple((node.name, node.name) for node in graph.nodes if node.op != "input")
    shown = Graph(graph.name, graph.nodes, names)
    values = inputs | run(shown, inputs)
    return values | {"out": np.broadcast_to(values[dict(graph.outputs)["out"]], next(iter(inputs.values())).shape)}


def excuses(left, right, everything: np.ndarray) -> frozenset[str]:
    """The flags that promise this away: a NaN or an infinity anywhere, two zeros, or else a matter of rounding."""
    found = {"nnan": np.isnan(everything).any(), "ninf": np.isinf(everything).any(), "nsz": left == right}
    return frozenset(flag for flag, holds in found.items() if holds)


def killer(rule: Rule, flag: str = "") -> Difference | None:
    """The first values at which the rule is wrong, or None where none are found.

    With a flag: the first for which that flag is asked; where possible one that no other flag of the rule excuses.
    """
    found = list(differences(rule))
    if not flag:
        return found[0] if found else None
    promised = {"nnan", "ninf", "nsz"}.intersection(rule.flags)
    found = [one for one in found if flag in one.excuses or (flag not in promised and not one.excuses & promised)]
    return min(found, key=lambda one: len(one.excuses & promised), default=None)  # the first of those with the fewest


# ---- shown -----------------------------------------------------------------------------------------------------------


class Shown(NamedTuple):
    """A difference as text."""

    where: str
    left: str
    right: str

    @classmethod
    def of(cls, one: Difference | None) -> Shown:
        return cls(one.where, str(one.left), str(one.right)) if one else cls("none found", "", "")


@dataclass(frozen=True, repr=False)
class Table:
    """Rows for people: HTML where it can be shown, the same as plain text elsewhere."""

    rows: tuple[dict[str, str], ...]

    def __repr__(self) -> str:
        return table(self.rows).rstrip("\n")

    def _repr_html_(self) -> str:
        head = "".join(f'<th scope="col" style="text-align:left">{html.escape(name)}</th>' for name in self.rows[0])
        body = "".join("<tr>" + "".join(f'<td style="text-align:left"><code>{html.escape(text)}</code></td>'
                                        for text in row.values()) + "</tr>" for row in self.rows)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def title(rule: Rule) -> str:
    return f"{rule.pattern} -> {rule.result}" + (f" when {rule.when}" if rule.when else "")


def killer_table(rules: Iterable[Rule]) -> Table:
    """One row for each flag of each rule, with values that make the flag necessary; flags with the same ones share it."""
    rows = []
    for rule in rules:
        found = {flag: killer(rule, flag) for flag in rule.flags}
        for number, one in enumerate(dict.fromkeys(map(Shown.of, found.values()))):
            flags = [flag for flag in rule.flags if Shown.of(found[flag]) == one]
            rows.append({"rule": "" if number else title(rule), "flags": " ".join(flags),
                         "killer": one.where, "left side": one.left, "right side": one.right})
    return Table(tuple(rows))


def rule_grid(rules: Iterable[Rule], values: Iterable[float] = (2.0, -3.0, 0.0, -0.0, np.inf, -np.inf, np.nan)) -> Chart:
    """A row for each rule about ``x``, a column for each value: where the sides differ, both are written down."""
    rules, columns = list(rules), [str(np.float32(value)) for value in values]
    cells = {(title(rule), str(one.values["x"])): f"{one.left}, not {one.right}"
             for rule in rules for one in differences(rule) if str(one.values["x"]) in columns}
    return grid("which x kills which rule", list(map(title, rules)), columns, cells)
