"""The judge of tracers: what they recorded is compared with what NumPy computes, on special values."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from ..errors import MinigraphError
from ..ir import Builder, Graph, Node
from ..run_numpy import run
from ..types import same_bits, type_of
from ..verify import verify
from .graphs import special_inputs
from .judge import NOT_ATTEMPTED, SECONDS, Failure, Verdict, attempt, show_array, show_element
from .limits import TookTooLong, time_limit
from .standins import expression_of

STEPS = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "lt": np.less}


def judge_traces(
    function: Callable, cases: Iterable[tuple], reference: Callable, truth: Callable, title: Callable[[tuple], str],
    most: int | None = 0, sets: int = 4,
) -> Verdict:  # fmt: skip
    """Judge ``function(*case)``, which gives a Graph, or a sentence where it could not make one.

    ``truth(case, inputs)`` are the outputs according to NumPy, and ``title(case)`` is how a case is called in a report.
    ``most``: nodes more than the reference's that are allowed, or None for any number.
    """
    tried, case = 0, ()
    try:
        with time_limit(SECONDS):
            for case in cases:
                tried += 1
                want = reference(*case)
                got, failure = attempt(function, case, None)
                if failure is NOT_ATTEMPTED:
                    return Verdict(failure, tried)
                failure = failure or compare(case, want, got, truth, most, sets)
                if failure:
                    return Verdict(replace(failure, got=got, case=case, details=(title(case), *failure.details)), tried)
    except TookTooLong:
        return Verdict(Failure("too-long", "Your function does not come to an end here, or is very slow: it was stopped after"
                               f" {SECONDS:g} seconds.", case=case, details=(title(case),)), tried)
    return Verdict(None, tried)


def compare(case: tuple, want: Graph | str, got, truth: Callable, most: int | None, sets: int) -> Failure | None:
    if isinstance(want, str):  # an error is wanted, by its name
        return None if got == want else Failure("wrong-value", f"NumPy raises {want} here, and your function does not.")
    if not isinstance(got, Graph):
        raises = got == "OverflowError"
        return Failure("not-a-graph", "Your function raised OverflowError, and NumPy does not." if raises else str(got))
    try:
        verify(got)
    except MinigraphError as error:
        return Failure("invalid", "The graph breaks a rule of the IR.", details=tuple(str(error).splitlines()))
    for what, one, other in (("inputs", inputs_of(want), inputs_of(got)), ("outputs", publics_of(want), publics_of(got))):
        if one != other:
            return Failure("lost", f"The graph's {what} are ({', '.join(other)}), and should be ({', '.join(one)}).")
    for inputs in special_inputs(want, sets):
        with np.errstate(all="ignore"):
            answers = dict(zip(publics_of(want), truth(case, inputs)))
            have = run(got, inputs)
        for public, array in answers.items():
            if not same_bits(array, have[public]):
                return difference(public, inputs, array, have[public])
    if most is not None and len(got) > len(want) + most:
        return Failure("too-much", "Your function records more than is needed.", details=(f"nodes: {len(got)}; enough: {len(want)}",))
    if most is not None and stored(got) > stored(want):
        return Failure("too-much", "A constant is larger than is needed.", details=(
            f"bytes of constants: {stored(got)}; enough: {stored(want)}",))
    return None


def stored(graph: Graph) -> int:
    return sum(len(node.value.data) for node in graph.nodes if node.op == "const")


def inputs_of(graph: Graph) -> list[str]:
    return [f"{node.name}: {node.type}" for node in graph.inputs]


def publics_of(graph: Graph) -> list[str]:
    return [public for public, _ in graph.outputs]


def difference(public: str, inputs: dict, want: np.ndarray, have: np.ndarray) -> Failure:
    given = tuple(f"{name} = {show_array(array)}" for name, array in inputs.items())
    if (want.dtype, want.shape) != (have.dtype, have.shape):
        return Failure("wrong-value", "The graph gives another type than NumPy.",
                       details=(f"{public} should be {type_of(want)}, and is {type_of(have)}",))
    at = next(index for index in np.ndindex(want.shape) if not same_bits(want[index], have[index]))
    where = f"[{', '.join(map(str, at))}]" if at else ""
    return Failure("wrong-value", "The graph gives another answer than NumPy.", details=(
        *given, f"{public}{where} should be {show_element(want[at])}, and is {show_element(have[at])}"))


def numpy_value(case: tuple, inputs: dict) -> list[np.ndarray]:
    """What the expression of the case gives on arrays."""
    parameters, text, _ = case
    result = expression_of(parameters, text)(**inputs)
    return list(map(np.asarray, result if isinstance(result, tuple) else (result,)))


def numpy_steps(case: tuple, inputs: dict) -> list[np.ndarray]:
    """What the steps ``(op, a, b)`` of the case give on arrays; ``"t1"`` is the result of the first one."""
    values = dict(inputs)
    for number, (op, *operands) in enumerate(case[1], 1):
        values[f"t{number}"] = STEPS[op](*(values[one] if isinstance(one, str) else one for one in operands))
    return [np.asarray(values[f"t{len(case[1])}"])]


def tidy(graph: Graph) -> Graph:
    """The same graph, its values named after their operations: two tracers that do the same give equal graphs."""
    builder, names = Builder("traced"), {}
    try:
        for node in graph.nodes:
            name = node.name if node.op == "input" else builder.fresh("c" if node.op == "const" else node.op)
            inputs = tuple(names[one] for one in node.inputs)
            names[node.name] = builder.add(Node(name, node.op, inputs, node.value, node.type))
        return builder.build({public: names[value] for public, value in graph.outputs})
    except (MinigraphError, KeyError, TypeError, AttributeError):
        return graph  # it breaks a rule, and the judge will say which
