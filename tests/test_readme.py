"""What the README says is so: numbers, links, commands, operations."""

import re
from pathlib import Path

from course import gates
from course.__main__ import COMMANDS
from course.sources import chapters
from minigraph.cli import COMMANDS as CLI
from minigraph.ops import OPS
from minigraph.teach import prelude
from minigraph.teach.score import scoreboard

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_links_lead_somewhere():
    assert [path for path in gates.broken_links(README, ROOT) if "NN" not in path] == []


def test_the_scoreboard_is_what_the_layer_gives(capsys):
    scoreboard()
    assert capsys.readouterr().out.strip() in README


def test_the_two_commands_come_first():
    first = README.split("```")[1]
    assert re.findall(r"python3 -m course (\w+)", first) == ["lab", "test"]


def test_every_command_that_it_names_is_there():
    assert set(re.findall(r"python3 -m course (\w+)", README)) <= set(COMMANDS)
    assert set(re.findall(r"`minigraph (\w+)", README)) <= set(CLI)


def test_the_table_of_operations_names_operations_of_that_kind():
    table = README.split("| kind of op |")[1].split("\n\n")[0]
    for kind, names in re.findall(r"^\| (\w+) \| `([^`]*)`", table, re.MULTILINE):
        assert {OPS[name].kind.value for name in names.split()} == {kind}
    for kind, foldable, mergeable, removable in re.findall(r"^\| (\w+) \|[^|]*\|([^|]*)\|([^|]*)\|([^|]*)\|$", table, re.MULTILINE):
        for op in OPS.values():
            if op.kind.value == kind:
                said = [text.strip() == "yes" for text in (foldable, mergeable, removable)]
                assert said == [op.foldable, op.mergeable, op.removable], kind


def test_the_cheat_sheet_names_what_the_prelude_has():
    sheet = README.split("## Cheat sheet")[1].split("| pass |")[0]
    assert set(re.findall(r"`(\w+)\(", sheet)) <= {"print", "list", *prelude.__all__}


def test_every_chapter_is_in_the_map_with_its_minutes():
    rows = dict(re.findall(r"^\| \[[^\]]+\]\(notebooks/([\w]+)\.ipynb\) .*\| (\d+) \|$", README, re.MULTILINE))
    assert list(rows) == [folder.name for folder in chapters()]
    for folder in chapters():
        assert abs(int(rows[folder.name]) - gates.measure(folder)["with exercises"]) <= 10, folder.name


def test_the_example_graph_is_a_graph():
    from minigraph import parse, verify

    text = README.split("## Cheat sheet")[1].split("```")[1]
    verify(parse(text))
