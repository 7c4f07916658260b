"""Random graphs through fusion, the plan and a back end.

    minigraph fuzz --backend c --graphs 10000 --seed 0

``check_backends`` says what must hold. Of every two graphs one is of all operations, one of what fusion is about. Graph
number i of seed s depends on (s, i) alone; a failing graph is printed, and again after everything that the failure does
not need has been taken away.
"""

from __future__ import annotations

import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

import numpy as np

from .check_backends import BACKENDS, Case, check_cases
from .command.options import arg, read_options
from .dialect import C_FLAGS
from .errors import MinigraphError
from .fusible_graphs import fusible_sample
from .fusion import ROWS
from .fuzz import Finding, how_many, shrink
from .ir import Graph
from .random_graphs import sample
from .text import print_graph

BATCH = 100  # graphs in one library, checked by one process


def draw(seed: int, index: int) -> Case:
    """Case number ``index`` of a seed."""
    rows = (ROWS, ROWS, 0, 100)[index // 2 % 4]
    if index % 2:
        return Case(*sample(seed, index), frozenset(), rows)
    return Case(*fusible_sample(seed, index), rows)


def check_works(backend: str, options: dict) -> None:
    """An empty batch: MinigraphError where the back end's compiler is missing or of no use, which is no graph's fault."""
    try:
        list(BACKENDS[backend]([], Counter(), **options))
    except (MinigraphError, OSError) as error:  # OSError: what it made cannot be loaded
        raise MinigraphError(f"the back end {backend} does not work here: {error}") from error


def send_chunk(seed: int, indices: range, backend: str, options: dict, pipe) -> None:
    """In a process of its own, because wrong code may end it: what ``check_chunk`` gives, or its error as text."""
    try:
        pipe.send(check_chunk(seed, indices, backend, options))
    except MinigraphError as error:
        pipe.send(f"ends in an error: {error}")
    except Exception:
        pipe.send(f"ends in an error:\n{traceback.format_exc()}")


def check_chunk(seed: int, indices: range, backend: str, options: dict) -> tuple[Counter, list[str]]:
    """What was counted, and the reports of the first failures."""
    tally, reports = Counter(), []
    cases = [draw(seed, index) for index in indices]
    tally.update(
        graphs=len(cases),
        nodes=sum(len(case.graph) for case in cases),
        errors=sum(case.error is not None for case in cases),
    )
    for index, findings in zip(indices, check_cases(cases, backend, tally, **options)):
        tally["faults"] += len(findings)
        if findings and len(reports) < 2:
            reports.append(describe(seed, index, findings, backend, options))
    return tally, reports


def describe(seed: int, index: int, findings: list[Finding], backend: str, options: dict) -> str:
    """The failure, the graph, and a smaller one that fails in the same way."""
    case, first = draw(seed, index), findings[0]

    def fails(graph: Graph, inputs: dict) -> bool:
        try:
            donate = case.donate & {node.name for node in graph.inputs}
            found = check_cases([Case(graph, inputs, donate, case.rows)], backend, **options)[0]
            return any((one.kind, one.where) == (first.kind, first.where) for one in found)
        except Exception:
            return False

    small, inputs = shrink(case.graph, case.inputs, fails)
    lines = [
        f"graph {index} of seed {seed}, rows={case.rows}, donated {sorted(case.donate)}:",
        *(f"  {one}" for one in findings[:5]),
    ]
    lines += [print_graph(case.graph), "smaller:", print_graph(small)]
    with np.printoptions(threshold=20, edgeitems=2, linewidth=120):
        return "\n".join([*lines, *(f"  {name} = {array!r}" for name, array in inputs.items())])


def run_chunk(seed: int, indices: range, backend: str, options: dict) -> tuple[Counter, list[str]]:
    """One chunk in a child process; one that dies, or ends in an error, is searched for the graph that does it."""
    context = get_context("fork")
    receive, send = context.Pipe(duplex=False)
    child = context.Process(target=send_chunk, args=(seed, indices, backend, options, send))
    child.start()
    send.close()
    try:
        said = receive.recv()
        child.join()
    except EOFError:
        child.join()
        said = f"ends the process with {child.exitcode}"
    if not isinstance(said, str):
        return said
    if len(indices) == 1:
        text = print_graph(draw(seed, indices.start).graph)
        return Counter(graphs=1, faults=1), [
            f"graph {indices.start} of seed {seed} {said}\n{text}"
        ]
    tally, reports = Counter(), []
    for index in indices:
        one, said = run_chunk(seed, range(index, index + 1), backend, options)
        tally.update(one)
        reports += said
    return tally, reports


def run_chunks(chunks: list[range], jobs: int, seed: int, backend: str, options: dict) -> Iterator[tuple[Counter, list[str]]]:
    """What ``run_chunk`` gives for each chunk in turn, ``jobs`` of them at a time."""
    if jobs == 1:
        yield from (run_chunk(seed, chunk, backend, options) for chunk in chunks)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(partial(run_chunk, seed, backend=backend, options=options), chunks)


ARGUMENTS = (
    arg("--backend", choices=tuple(BACKENDS), required=True, help="cuda: the CUDA source, run on the CPU"), *how_many(1000),
    arg("--strong", action="store_true", help="c: compile as for use (-O3), which takes longer"),
)  # fmt: skip


def main(arguments: list[str]) -> int:
    """The command; its exit status is 1 where something is wrong. Raises MinigraphError where no graph can be checked."""
    options = read_options("fuzz", "random graphs through fusion, the plan and a back end", ARGUMENTS, arguments)
    extra = {"flags": C_FLAGS} if options.strong and options.backend == "c" else {}
    check_works(options.backend, extra)
    tally, began, told = Counter(), time.monotonic(), 0.0
    end = options.start + options.graphs
    chunks = [range(start, min(start + BATCH, end)) for start in range(options.start, end, BATCH)]
    for part, reports in run_chunks(chunks, options.jobs, options.seed, options.backend, extra):
        tally.update(part)
        for report in reports:
            print(report, flush=True)
        seconds = time.monotonic() - began
        if seconds - told > 30:
            told = seconds
            print(
                f"{tally['graphs']:,} of {options.graphs:,} graphs, {tally['graphs'] / seconds:.0f} a second,"
                f" {tally['faults']} faults",
                flush=True,
            )
    kinds = ", ".join(f"{count:,} {name}" for name, count in sorted(tally.items()) if " " in name)
    print(
        f"{tally['graphs']:,} graphs, seed {options.seed}, {tally['nodes']:,} nodes, {tally['errors']} end in an error:"
        f" {tally['faults']} faults. Launches: {kinds}."
    )
    return 1 if tally["faults"] else 0


if __name__ == "__main__":
    sys.exit("Start it as `minigraph fuzz`: the command line is above this file.")
