"""Golden graphs: ``golden/<pass>/<case>.mg`` holds a graph, ``=>``, and what the pass makes of it.

A comment ``# fast: nsz nnan`` gives flags; ``# steps:`` lists the rules that fired. After a change that is meant,
``pytest tests/test_golden.py --accept`` writes the files anew: read the difference before you commit it.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import minigraph as mg
from minigraph.passes import PASSES
from minigraph.text import print_graph

GOLDEN = Path(__file__).parent / "golden"
CASES = sorted(GOLDEN.glob("*/*.mg"))


def render(path: Path) -> str:
    """The whole file as it should be: comments, the graph before, ``=>``, the graph after, the steps."""
    head = path.read_text(encoding="utf-8").partition("=>")[0]
    comments = re.match(r"(?:#[^\n]*\n)*", head)[0]
    fast = re.search(r"^# fast: (.*)$", comments, re.MULTILINE)
    before = mg.parse(head, file=path.name)
    passes = [path.parent.name] if path.parent.name in PASSES else list(PASSES)
    optimized = mg.optimize(before, fast[1].split() if fast else (), passes)
    mg.verify(optimized.graph)
    rules = dict.fromkeys(step.rule for stage in optimized.history for step in stage.report)
    return (f"{comments}{print_graph(before, origins=True)}=>\n{print_graph(optimized.graph, origins=True)}"
            f"# steps: {', '.join(rules) or 'none'}\n")


@pytest.mark.parametrize("path", CASES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_golden(path, accept):
    expected = render(path)
    if accept:
        path.write_text(expected, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == expected


def test_there_are_cases_for_every_pass():
    assert {path.parent.name for path in CASES} == {*PASSES, "pipeline"} and len(CASES) >= 25
