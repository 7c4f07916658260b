"""Inputs that broke real graph compilers, through this one.

    python tests/run_cases.py [--cases FILE] [--only ID] [--verbose]

Each case is a NumPy expression with its right value. It is traced with its arrays as graph inputs, as constants, and
mixed; the graph is run as traced, after every single pass, after every ordered pair of passes and after the default
pipeline, with the verifier and the pass contract checked each time. Prints a table; the exit status is 1 if anything
is wrong. A case is ``skipped``, with the reason, only if the tracer says that it cannot record the expression.
"""

from __future__ import annotations

import argparse
import builtins
import itertools
import json
import pathlib
import sys
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))  # also where minigraph is not installed

from minigraph.errors import MinigraphError, PassError, TraceError
from minigraph.ir import Graph
from minigraph.passes import PASSES
from minigraph.pipeline import optimize, run_pass
from minigraph.run_numpy import compile
from minigraph.tracing import Tracer, assert_finite, constant, trace
from minigraph.types import same_bits
from minigraph.verify import verify

HERE = pathlib.Path(__file__).parent
CASES = HERE / "cases.json"
RTOL = {"float16": 2e-3, "float32": 2e-6, "float64": 1e-12}
PIPELINES = [(), *((name,) for name in PASSES), *itertools.product(PASSES, PASSES)]


# ---- a case and its values ------------------------------------------------------------------------------------------


def read_number(value):
    return float(value) if isinstance(value, str) else value


def read_array(given: dict) -> np.ndarray:
    def read(value):
        return [read(item) for item in value] if isinstance(value, list) else read_number(value)

    return np.array(read(given["value"]), given["dtype"]).reshape(given["shape"])


def load(path: pathlib.Path = CASES) -> list[dict]:
    return json.loads(pathlib.Path(path).read_text(encoding="utf-8"))


class TracedNumpy:
    """``np`` for an expression: NumPy, except for what it does not hand to a tracer.

    New arrays become constants of the graph, so that what is computed from them is recorded; ``asarray`` and its kin
    leave a traced value as it is, and ``asarray_chkfinite`` is the check that it is.
    """

    def __init__(self, lifting: bool):
        if lifting:
            for name in ("zeros", "ones", "full", "eye", "identity", "arange", "linspace", "tri"):
                setattr(self, name, self.lifted(getattr(np, name)))
        for name in ("array", "asarray", "asanyarray", "ascontiguousarray"):
            setattr(self, name, self.kept(getattr(np, name), lifting))

    def __getattr__(self, name):
        return getattr(np, name)

    def asarray_chkfinite(self, a, dtype=None, order=None):
        return assert_finite(self.asarray(a, dtype))

    def take(self, a, indices, axis=None, mode="raise"):
        return np.take(constant(a), indices, axis, mode=mode)

    @staticmethod
    def lifted(function):
        return lambda *args, **kwargs: constant(function(*args, **kwargs))

    @staticmethod
    def kept(function, lifting):
        def convert(a, dtype=None, **kwargs):
            if isinstance(a, Tracer):
                return a if dtype is None else a.astype(dtype)
            if isinstance(a, (list, tuple)) and any(isinstance(item, Tracer) for item in a):
                stacked = np.stack(a)
                return stacked if dtype is None else stacked.astype(dtype)
            array = function(a, dtype, **kwargs)
            return constant(array) if lifting else array

        return convert


def case_graph(case: dict, as_inputs: tuple[str, ...], lifting: bool = True) -> Graph:
    """The expression as a graph: the named arrays are inputs, the others constants, Python scalars stay weak."""
    code = builtins.compile(case["expr"], f"<{case['id']}>", "eval")
    numpy, arrays = TracedNumpy(lifting), arrays_of(case)
    scalars = {name: read_number(one["value"]) for name, one in case["inputs"].items() if "py" in one}
    scalars = {name: getattr(builtins, case["inputs"][name]["py"])(value) for name, value in scalars.items()}

    def expression(**tracers):
        constants = {name: constant(array) for name, array in arrays.items() if name not in tracers}
        return eval(code, {"np": numpy, **scalars, **constants, **tracers})  # the case files are our own

    with np.errstate(all="ignore"):
        return trace(expression, **{name: arrays[name] for name in as_inputs}, name=case["id"])


def arrays_of(case: dict) -> dict[str, np.ndarray]:
    return {name: read_array(one) for name, one in case["inputs"].items() if "py" not in one}


def modes(case: dict) -> list[tuple[str, ...]]:
    """Which arrays are graph inputs: all, none, and mixed (every subset of up to three)."""
    names = tuple(arrays_of(case))
    if len(names) > 3:
        return [names, (), names[::2], names[1::2]]
    return [subset for size in range(len(names), -1, -1) for subset in itertools.combinations(names, size)]


# ---- is it right? ---------------------------------------------------------------------------------------------------


def differs(case: dict, got: list[np.ndarray]) -> str:
    """Why the outputs are wrong, or an empty string."""
    wanted = [read_array(one) for one in case["expect"]]
    if len(wanted) != len(got):
        return f"{len(got)} outputs, not {len(wanted)}"
    for want, have in zip(wanted, got):
        if (have.dtype, have.shape) != (want.dtype, want.shape):
            return f"{have.dtype}{list(have.shape)}, not {want.dtype}{list(want.shape)}"
        near = case["compare"] == "close" and want.dtype.name in RTOL and np.allclose(
            want, have, rtol=RTOL[want.dtype.name], atol=0, equal_nan=True)
        if not near and not same_bits(want, have):
            return f"{have.tolist()}, not {want.tolist()}"
    return ""


def is_expected(error: BaseException, case: dict) -> bool:
    """Is it the error that the case wants? Its class counts, also that of the NumPy error that it was raised from."""
    name = case["expect_error"]
    wanted = getattr(builtins, name, None) or getattr(np.exceptions, name, Exception)
    wanted = (ValueError, IndexError) if wanted is np.exceptions.AxisError else wanted
    return any(isinstance(one, wanted) for one in (error, error.__cause__) if one is not None)


@dataclass
class Outcome:
    """What became of a case: ``right``, ``wrong`` or ``skipped``, how many runs, and what there is to say."""

    id: str
    status: str = "right"
    runs: int = 0
    said: list[str] = field(default_factory=list)
    structural: str = ""

    def wrong(self, what: str) -> None:
        self.status = "wrong"
        self.said.append(what)


def through(graph: Graph, names: tuple[str, ...]) -> Graph:
    """The graph after these passes, with each pass's contract checked."""
    for name in names:
        graph = run_pass(name, PASSES[name], graph).after
    verify(graph)
    return graph


def reversed_view(array: np.ndarray) -> np.ndarray:
    """Equal values behind negative strides."""
    back = (slice(None, None, -1),) * array.ndim
    return array[back].copy()[back]


def check_mode(case: dict, as_inputs: tuple[str, ...], outcome: Outcome) -> None:
    arrays = {name: array for name, array in arrays_of(case).items() if name in as_inputs}
    label = f"inputs {', '.join(as_inputs) or 'none'}"
    try:
        graph = traced_graph(case, as_inputs)
    except TraceError as error:
        if case["expect_error"] and is_expected(error, case):
            outcome.runs += len(PIPELINES) + 1
        elif outcome.status != "wrong":
            outcome.status = "skipped"
            outcome.said.append(f"{label}: {error}".replace("\n", " "))
        return
    done: dict[Graph, str] = {}  # many pipelines end in the same graph
    for pipeline in (*PIPELINES, ("optimize",)):
        outcome.runs += 1
        try:
            after = optimize(graph).graph if pipeline == ("optimize",) else through(graph, pipeline)
            if after not in done:
                done[after] = run_twice(case, after, arrays)
            problem = done[after]
        except MinigraphError as error:
            problem = f"{type(error).__name__}: {error}"
        if problem:
            outcome.wrong(f"{label}, {' '.join(pipeline) or 'no pass'}: {problem}")


def traced_graph(case: dict, as_inputs: tuple[str, ...]) -> Graph:
    """With new arrays recorded as constants where that works (not as an index of a plain array, for example)."""
    try:
        return case_graph(case, as_inputs)
    except TraceError:
        return case_graph(case, as_inputs, lifting=False)


def run_twice(case: dict, graph: Graph, arrays: dict[str, np.ndarray]) -> str:
    """Run on contiguous arrays and on views with negative strides; the problem, or an empty string."""
    executable = compile(graph)
    for given in (arrays, {name: reversed_view(array) for name, array in arrays.items()}):
        try:
            got = list(executable(**given).values())
        except PassError:
            raise
        except MinigraphError as error:
            if case["expect_error"] and is_expected(error, case):
                continue
            return f"{type(error).__name__}: {error}"
        if case["expect_error"]:
            return f"gave {[one.tolist() for one in got]} instead of raising {case['expect_error']}"
        problem = differs(case, got)
        if problem:
            return problem
    return ""


def check_case(case: dict) -> Outcome:
    from structural import check_structure

    outcome = Outcome(case["id"])
    for as_inputs in modes(case):
        try:
            check_mode(case, as_inputs, outcome)
        except Exception as error:  # a crash of the harness or of the compiler: wrong, and the next case goes on
            outcome.wrong(f"inputs {as_inputs}: {type(error).__name__}: {error}")
    if outcome.runs and outcome.status == "skipped":  # some modes ran
        outcome.status = "right"
    if case.get("structural") and outcome.status != "skipped":
        try:
            outcome.structural = check_structure(case)
        except Exception as error:
            outcome.wrong(f"structure ({case['structural']}): {type(error).__name__}: {error}")
    return outcome


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--cases", default=CASES, help="a JSON file of cases (default: tests/cases.json)")
    parser.add_argument("--only", action="append", help="the id of a case; may be repeated")
    parser.add_argument("--verbose", action="store_true", help="everything that is wrong, not the first five lines")
    options = parser.parse_args(argv)
    cases = [case for case in load(options.cases) if not options.only or case["id"] in options.only]
    if not cases:
        parser.error("no such case")
    counts, runs = Counter(), 0
    print(f"{'case':8} {'result':8} {'runs':>5}  kind")
    for case in cases:
        outcome = check_case(case)
        counts[outcome.status] += 1
        runs += outcome.runs
        print(f"{outcome.id:8} {outcome.status:8} {outcome.runs:5}  {case.get('kind', '')}")
        for line in outcome.said if options.verbose else outcome.said[:5]:
            print(f"{'':24} {line}")
        if outcome.structural:
            print(f"{'':24} structure: {outcome.structural}")
    print(f"{counts['right']} right, {counts['wrong']} wrong, {counts['skipped']} skipped, {runs} runs")
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
