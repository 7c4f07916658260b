"""Grading a folder of 30 submissions: each gets its grade, and none harms another's."""

import csv
import sys

import pytest

from course import grade as command
from minigraph.teach import grading, sandbox, worker
from minigraph.teach.wire import Opaque, decode, encode

import submissions

pytestmark = pytest.mark.skipif(not sys.platform.startswith(("linux", "darwin")), reason="grading needs POSIX processes")


def test_thirty_submissions(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(grading, "CALL_SECONDS", 4)
    expected = submissions.write(tmp_path)
    assert len(expected) == 30
    if not sandbox.version() and not grading.can_be_nobody():
        for name in submissions.NEEDS_CONFINEMENT:
            (tmp_path / name).unlink()
            del expected[name]
    assert command.main([str(tmp_path), "evaluate"]) == 0
    with (tmp_path / "grades.csv").open(encoding="utf-8") as file:
        got = {row["file"]: row["evaluate"] for row in csv.DictReader(file)}
    assert got == expected
    assert all((tmp_path / name).exists() for name in expected), "a submission deleted another one"
    report = (tmp_path / "grades.txt").read_text(encoding="utf-8")
    assert "does not come to an end" in report and "the wrong order" not in report  # no hints in a grade
    assert "x" * 1000 not in capsys.readouterr().out


def test_a_pass_is_judged_over_the_wire():
    fold = submissions.solved(submissions.source_of(submissions.EXERCISES["fold"].solution))
    assert grading.grade_file(".py", fold.encode(), "ada", ["fold"]).outcomes == {"fold": "right"}
    wrong = "def fold(graph):\n    object.__setattr__(graph, 'outputs', ())\n    return graph\n"
    assert grading.grade_file(".py", wrong.encode(), "bob", ["fold"]).outcomes == {"fold": "wrong"}


def test_a_changed_argument_is_noticed_over_the_wire():
    source = submissions.solved(submissions.source_of(submissions.EXERCISES["prune_2_4"].solution))
    assert grading.grade_file(".py", source.encode(), "ada", ["prune_2_4"]).outcomes == {"prune_2_4": "right"}
    grade = grading.grade_file(".py", source.replace("groups.copy()", "groups").encode(), "bob", ["prune_2_4"])
    assert grade.outcomes == {"prune_2_4": "wrong"} and "changed its first argument, an array" in grade.sentences["prune_2_4"]


def test_a_folder_without_submissions_is_a_sentence(tmp_path, capsys):
    assert command.main([str(tmp_path)]) == 1
    assert command.main([str(tmp_path / "none")]) == 2
    assert command.main([str(tmp_path), "flod"]) == 2
    assert "no exercise 'flod'" in capsys.readouterr().err


def test_a_name_that_looks_like_a_formula_stays_text(tmp_path):
    (tmp_path / "=HYPERLINK(1).py").write_text("", encoding="utf-8")
    assert command.main([str(tmp_path), "fold"]) == 0
    assert "'=HYPERLINK(1)" in (tmp_path / "grades.csv").read_text(encoding="utf-8")


def test_a_folder_for_each_person(tmp_path):
    (tmp_path / "ada").mkdir()
    (tmp_path / "ada" / "03.py").write_text(submissions.STUB, encoding="utf-8")
    assert [who for who, _ in command.submissions(tmp_path)] == ["ada"]


def test_values_travel_to_the_bit():
    import numpy as np

    from minigraph import parse

    graph = parse("graph g(x: f32[2]) -> (y) {\n c = const([nan, -0.0])\n s = sum(x) {axis=[0]}\n y = add(c, s)\n return y\n}")
    for value in (None, True, 3, -0.0, float("nan"), "text", (1, [2.5, {"a": ()}]), {"y"}, frozenset({1}), np.float32(1.5), np.arange(3, dtype=np.int8), graph,
                  graph.nodes[1], graph.nodes[2].value, graph.nodes[0].type):
        assert repr(decode(encode(value))) == repr(value)
    assert isinstance(decode(encode(object())), Opaque)
    assert isinstance(decode(encode(np.array([object()]))), Opaque)


@pytest.mark.parametrize("message", [{"function": ["os", "system"]}, {"function": ["minigraph.teach.exercises.ch03", "a.b"]},
                                     {"Const": ["f32", [4], ""]}, {"what": 1}, {"Node": [1]}, {"Type": ["f32", {"tuple": [{"int": "x"}]}]}])
def test_forged_messages_are_refused(message):
    with pytest.raises((ValueError, TypeError, KeyError, AttributeError, IndexError)):
        decode(message)


SAY = "import os, sys\n\n\ndef say(text):\n    os.write(int(sys.argv[3]), text.encode() + b'\\n')\n\n\n"


@pytest.mark.parametrize("reply", ['{"names": 5}', '{"names": [[]], "problems": 5}', "[" * 10**5])
def test_a_forged_greeting_stops_nobody(reply):
    grade = grading.grade_file(".py", f"{SAY}say({reply!r})".encode(), "eve", ["evaluate"])
    assert grade.outcomes == {"evaluate": "missing"}


def test_an_answer_that_cannot_be_looked_up_is_wrong():
    code = "def first_problem(graph):\n    return None if len(graph) < 3 and graph.nodes[0].op == 'input' else []\n"
    assert grading.grade_file(".py", code.encode(), "eve", ["first_problem"]).outcomes == {"first_problem": "wrong"}


def test_a_long_answer_is_wrong(monkeypatch):
    code = f"{SAY}def evaluate(node, arrays):\n    say('{{\"result\": [' + '[], ' * 2 * 10**6 + '[]]}}')\n"
    assert "too long" in grading.grade_file(".py", code.encode(), "eve", ["evaluate"]).sentences["evaluate"]


def test_nothing_can_write_lines_into_the_report(tmp_path, capsys):
    text = "ValueError('\\udc80\\nada (ada.py): 9 of 9 right')"
    name = "eve\nada (ada.py): 9 of 9 right" + ("\udc80" if sys.platform.startswith("linux") else "")  # a byte that is no text
    (tmp_path / f"{name}.py").write_text(f"def evaluate(node, arrays):\n    raise {text}\nraise {text}\n", encoding="utf-8")
    assert command.main([str(tmp_path), "evaluate"]) == 0
    for line in (tmp_path / "grades.txt").read_text(encoding="utf-8").splitlines() + capsys.readouterr().out.splitlines():
        assert not line.startswith("ada")


def test_links_and_what_cannot_be_read_harm_nobody(tmp_path, monkeypatch):
    (tmp_path / "ada").mkdir()
    (tmp_path / "ada" / "a.py").write_text(submissions.STUB, encoding="utf-8")
    (tmp_path / "eve.py").symlink_to(tmp_path / "ada" / "a.py")
    (tmp_path / "bob").symlink_to(tmp_path / "ada")
    assert [who for who, _ in command.submissions(tmp_path)] == ["ada"]
    monkeypatch.setattr(command, "LARGEST", 10)
    assert command.main([str(tmp_path), "evaluate"]) == 0
    assert "cannot be read" in (tmp_path / "grades.txt").read_text(encoding="utf-8")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux gives orphans a new parent")
def test_nothing_outlives_its_grading():
    code = ("import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        time.sleep(100)\n    os._exit(0)\n"
            "time.sleep(0.5)\n\n\n" + submissions.SOLUTION)
    before = sandbox.children()
    assert grading.grade_file(".py", code.encode(), "eve", ["evaluate"]).outcomes == {"evaluate": "right"}
    assert sandbox.children() == before


def test_folders_in_folders_are_removed():
    code = "import os\nfor _ in range(1500):\n    os.mkdir('d')\n    os.chdir('d')\n\n\n" + submissions.SOLUTION
    with grading.Process(".py", code.encode()) as process:
        process.read(grading.START_SECONDS)
    assert not process.folder.exists()


def test_a_percent_at_the_beginning_of_a_line_may_be_python():
    assert worker.without_magics("x = (7\n% 4)") == "x = (7\n% 4)"
    assert worker.without_magics("%time f()\n!ls\nx = 1") == "\n\nx = 1"


@pytest.mark.skipif(not sandbox.version(), reason="this kernel has no Landlock")
def test_the_sandbox_holds(tmp_path):
    import subprocess

    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.write_text("safe", encoding="utf-8")
    code = f"""
import os
from pathlib import Path
from minigraph.teach.sandbox import confine
assert confine(Path({str(inside)!r}))
Path({str(inside / 'new')!r}).write_text("yes")
for action in (lambda: open({str(outside)!r}, "w"), lambda: os.unlink({str(outside)!r}), lambda: open({str(tmp_path / 'x')!r}, "w")):
    try:
        action()
    except PermissionError:
        pass
    else:
        raise SystemExit("it wrote outside")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert outside.read_text(encoding="utf-8") == "safe" and (inside / "new").exists()
