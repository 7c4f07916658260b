"""`python3 -m course`: help, wrong command lines, and how its commands end. Nothing here makes an environment."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from course import commands, environment
from course.__main__ import COMMANDS, main, usage

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(autouse=True)
def no_set_up(monkeypatch):
    monkeypatch.setattr(environment, "prepare", lambda **_: pytest.fail("set-up began"))


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_the_usage_line(name, capsys):
    for words in (["--help"], ["-h"], ["x", "--help"]):
        assert main([name, *words]) == 0
        assert capsys.readouterr().out.startswith(f"usage: python3 -m course {name}")


def test_the_usage_has_every_command(capsys):
    assert main([]) == 0 and capsys.readouterr().out.strip() == usage()
    assert all(f"\n  {name} " in usage() for name in COMMANDS)


@pytest.mark.parametrize("argv, sentence", (
    (["grade"], "usage: python3 -m course grade FOLDER [EXERCISE ...]"), (["grade", "nowhere"], "nowhere is not a folder."),
    (["start", "now"], "`start` takes nothing after it, and now was given."), (["doctor", "-x"], "`doctor` takes nothing after it"),
    (["nosuch"], "There is no command 'nosuch'"),
))  # fmt: skip
def test_wrong_command_lines_get_a_sentence_before_any_set_up(argv, sentence, capsys):
    assert main(argv) == 2
    assert sentence in capsys.readouterr().err


def test_an_exercise_that_is_not_there_gets_their_names(tmp_path, capsys):
    from course.grade import main as grade

    assert grade([str(tmp_path), "nosuch"]) == 2
    said = capsys.readouterr().err
    assert "no exercise 'nosuch'" in said and " fold," in said and " cse," in said


@pytest.mark.parametrize("user, given, times", ((0, [], 1), (0, ["--allow-root"], 1), (1000, [], 0)))
def test_lab_lets_root_in(user, given, times, monkeypatch):
    ran = []
    for name, value in (("copy_exercises", lambda: 0), ("turn_off_news", lambda path: None), ("run", lambda command: ran.append(command) or 0)):
        monkeypatch.setattr(commands, name, value)
    monkeypatch.setattr(environment, "prepare", lambda **_: None)
    monkeypatch.setattr(os, "geteuid", lambda: user, raising=False)
    assert commands.lab(given) == 0
    assert ran[0].count("--allow-root") == times


@pytest.mark.skipif(not hasattr(signal, "pause"), reason="Windows has no such signals")
@pytest.mark.parametrize("call", ("sys.exit(environment.run(command))", "progress.step('waiting', command, '.')"))
def test_a_child_ends_with_the_command(call, tmp_path):
    child = f"import os, pathlib, signal; pathlib.Path({str(tmp_path / 'pid')!r}).write_text(str(os.getpid())); signal.pause()"
    os.mkfifo(tmp_path / "pid")
    parent = "import sys; from course import ending, environment, progress; ending.notice_signals(); "
    parent += f"command = [sys.executable, '-c', {child!r}]; {call}"
    process = subprocess.Popen([sys.executable, "-c", parent], cwd=ROOT, stdout=subprocess.DEVNULL)
    pid = int((tmp_path / "pid").read_text())
    process.terminate()
    assert process.wait(timeout=30) == 143
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.parametrize("argv", (["-m", "course", "doctor"], ["-m", "course"], ["-I", "minigraph/doctor.py"]))
def test_a_closed_pipe_ends_it_quietly(argv):
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as pipe:
        done = subprocess.run([sys.executable, *argv], cwd=ROOT, stdout=pipe, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (141, b"")
