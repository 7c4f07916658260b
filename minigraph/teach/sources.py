"""Generated kernels as a lesson shows them: C and CUDA side by side, and the loads and stores that their PTX holds."""

from __future__ import annotations

import functools
import html
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .. import nvrtc
from ..codegen.program import Call, calls, kernels_source
from ..dialect import C, CUDA, Dialect
from ..errors import MinigraphError
from ..fusion import Partition, fuse
from ..ir import Graph
from ..plan import make_plan
from ..text import parse, print_graph

# For machines without NVRTC; `python -m minigraph.teach.sources` writes it again, with the graphs that are in it.
RECORDED = Path(__file__).with_name("ptx_counts.json")
ARCH = 80
ROW, COLUMN = "display:flex;flex-wrap:wrap;gap:1.5em", "flex:1 1 26em;overflow-x:auto"
CODE = "font-size:0.8em;line-height:1.3;white-space:pre;overflow-x:auto"


@dataclass(frozen=True, repr=False)
class Kernels:
    """Sources under their titles: one below the other as text, side by side in a notebook."""

    sources: tuple[tuple[str, str], ...]

    def __repr__(self) -> str:
        return "\n".join(f"{title}:\n\n{source}" for title, source in self.sources).rstrip()

    def _repr_mimebundle_(self, include=None, exclude=None):
        parts = [(html.escape(title), html.escape(narrow(text))) for title, text in self.sources]
        columns = "".join(f'<div style="{COLUMN}"><b>{title}</b><pre style="{CODE}">{text}</pre></div>' for title, text in parts)
        return {"text/plain": repr(self), "text/html": f'<div style="{ROW}">{columns}</div>'}


def narrow(text: str, width: int = 62) -> str:
    """Lines that are too long for half a page go on below, after a comma."""
    def parts(line: str) -> Iterator[str]:
        while len(line) > width and (cut := line.rfind(", ", 0, width) + 1) > 0:
            yield line[:cut]
            line = "      " + line[cut:].lstrip()
        yield line

    return "\n".join(part for line in text.split("\n") for part in parts(line))


def source(graph: Graph | Partition, dialect: Dialect = C) -> str:
    """The kernels of a graph, fused by default, without the helper functions before them; equal kernels once."""
    _, kernels = calls(make_plan(graph), dialect, 1)
    return "\n".join(kernel.source for kernel in kernels)


def show_kernels(graph: Graph | Partition) -> Kernels:
    """What is generated for a CPU, and what for a GPU."""
    return Kernels((("C", source(graph, C)), ("CUDA", source(graph, CUDA))))


# ---- what the GPU's assembly holds ----------------------------------------------------------------------------------

Row = dict[str, object]


def loads_and_stores(graph: Graph, fused: bool = True) -> list[Row]:
    """Instructions of one thread that read and write global memory, launch by launch, in the PTX for sm_80.

    Compiled here by NVRTC; where that is absent, as recorded. Raises MinigraphError for a graph that is not recorded.
    """
    if nvrtc.find():
        return [{"launch": name, "loads": loads, "stores": stores} for name, loads, stores in count(graph, fused)]
    for entry in recorded():
        if entry["graph"] == print_graph(graph) and entry["fused"] == fused:
            return [{"launch": name, "loads": loads, "stores": stores} for name, loads, stores in entry["launches"]]
    raise MinigraphError(f"{nvrtc.why_not()}\n  The counts of {graph.name} are not among the recorded ones.")


def count(graph: Graph, fused: bool) -> Iterator[tuple[str, int, int]]:
    """(launch, loads, stores), from the compiler that is here."""
    steps, kernels = calls(make_plan(fuse(graph, enabled=fused)), CUDA, 1)
    found = nvrtc.ptx_counts(nvrtc.compile(kernels_source(kernels, CUDA), ARCH).ptx)
    for step in steps:
        if isinstance(step, Call):  # a library call has no PTX of ours
            yield step.launch.name, found[step.kernel.name].loads, found[step.kernel.name].stores


@functools.cache
def recorded() -> list[dict]:
    return json.loads(RECORDED.read_text(encoding="utf-8")) if RECORDED.exists() else []


def record(*graphs: Graph) -> None:
    """Write the counts of these graphs, fused and unfused, into the file; without graphs, of those that are in it."""
    texts = [print_graph(graph) for graph in graphs] or list(dict.fromkeys(entry["graph"] for entry in recorded()))
    entries = [{"graph": text, "fused": fused, "launches": list(count(parse(text), fused))}
               for text in texts for fused in (False, True)]
    lines = ",\n".join(json.dumps(entry) for entry in entries)
    RECORDED.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    record(*[parse(Path(path).read_text(encoding="utf-8")) for path in sys.argv[1:]])
