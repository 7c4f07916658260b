"""Grading a folder of 30 submissions: each gets its grade, and none harms another's."""

import csv
import sys

import pytest

from course import grade as command
from minigraph.teach import grading, sandbox
from minigraph.teach.wire import Opaque, decode, encode

import submissions

pytestmark = pytest.mark.skipif(not sys.platform.startswith(("linux", "darwin")), reason="grading needs POSIX processes")


def test_thirty_submissions(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(grading, "CALL_SECONDS", 3)
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
