"""Grade submissions, each in a process of its own. The grader compares; a submission only answers calls.

What is contained: time, memory, file sizes and the standard streams; on Linux also processes that would outlive the
grading, writing outside a throw-away folder, TCP and signals (Landlock), and as root the user (``nobody``). What is not:
reading files, filling the disk with many files, and other network protocols.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from .exercises import EXERCISES
from .judge import Changed, Failure
from .limits import TookTooLong
from .report import brief
from .sandbox import adopt_orphans, children, confine, version
from .wire import decode, encode

NOBODY = 65534
CALL_SECONDS, EXERCISE_SECONDS, START_SECONDS, ORPHAN_SECONDS = 10, 300, 60, 5
MEMORY, FILE_SIZE, PROCESSES = 4 * 2**30, 16 * 2**20, 64
LONGEST = 4 * 2**20  # bytes of one answer; 2,000 nodes are 0.5 MB


@dataclass
class Grade:
    """What one submission got: outcome by exercise, a sentence for each that is not right, and general problems."""

    submission: str
    outcomes: dict[str, str] = field(default_factory=dict)  # right, wrong, not attempted, missing, not graded
    sentences: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    @property
    def right(self) -> int:
        return sum(outcome == "right" for outcome in self.outcomes.values())


class Gone(Exception):
    """The submission's process ended, or answered nonsense."""


class Process:
    """One submission in its own process; ``call`` asks it for an answer."""

    def __init__(self, suffix: str, content: bytes):
        self.folder = Path(tempfile.mkdtemp(prefix="minigraph-grade-"))
        copy = self.folder / f"submission{suffix}"
        copy.write_bytes(content)
        self.buffer = b""
        self.others = children()
        adopt_orphans()
        self.started = time.monotonic()
        options = isolation(self.folder)
        to_child, self.requests = os.pipe()
        self.replies, from_child = os.pipe()
        # a fresh environment: nothing of the grader's leaks, and the learner's own progress is not touched
        env = {"PATH": os.defpath, "HOME": str(self.folder), "MINIGRAPH_WORK": str(self.folder / "work"), "OPENBLAS_NUM_THREADS": "1",
               "PYTHONPATH": str(Path(__file__).resolve().parents[2]), "PYTHONDONTWRITEBYTECODE": "1", "LANG": "C.UTF-8"}
        env |= {name: os.environ[name] for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE") if name in os.environ}
        self.child = subprocess.Popen(
            [sys.executable, "-m", "minigraph.teach.worker", str(copy), str(to_child), str(from_child)], cwd=self.folder,
            env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            pass_fds=(to_child, from_child), start_new_session=True, **options)
        os.close(to_child)
        os.close(from_child)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            os.killpg(self.child.pid, signal.SIGKILL)  # the whole session, forked children included
        except (ProcessLookupError, PermissionError):
            pass
        self.child.wait()
        deadline = time.monotonic() + ORPHAN_SECONDS
        while (orphans := children() - self.others) and time.monotonic() < deadline:  # what left the session
            for orphan in orphans:
                os.kill(orphan, signal.SIGKILL)
                os.waitpid(orphan, 0)
        os.close(self.requests)
        os.close(self.replies)
        try:
            shutil.rmtree(self.folder, ignore_errors=True)
        except RecursionError:  # folders in folders in folders
            subprocess.run(["rm", "-rf", self.folder], stderr=subprocess.DEVNULL)

    def read(self, seconds: float) -> dict:
        deadline = time.monotonic() + seconds
        while b"\n" not in self.buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.replies], [], [], left)[0]:
                raise TookTooLong
            piece = os.read(self.replies, 1 << 16)
            if not piece:
                raise Gone("its process ended: it crashed, left, or asked for too much memory")
            self.buffer += piece
            if len(self.buffer) > LONGEST:
                raise Gone("its answer is too long")
        line, _, self.buffer = self.buffer.partition(b"\n")
        try:
            message = json.loads(line)
            if not isinstance(message, dict):
                raise ValueError
        except (ValueError, RecursionError):
            raise Gone("its process answered nonsense") from None
        return message

    def call(self, name: str, arguments: tuple):
        """The answer of the submission's function; raises what it raised, by name."""
        if time.monotonic() > self.started + EXERCISE_SECONDS:
            raise TookTooLong
        line = json.dumps({"name": name, "arguments": [encode(one) for one in arguments]}).encode() + b"\n"
        try:
            while line:
                line = line[os.write(self.requests, line):]
        except BrokenPipeError:
            raise Gone("its process ended: it crashed, left, or asked for too much memory") from None
        message = self.read(CALL_SECONDS)
        if "error" in message:
            raise remote_error(message)
        try:
            return decode(message["result"])
        except (ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError):
            raise Gone("its process answered nonsense") from None


def remote_error(message: dict) -> Exception:
    """An exception of the name that the submission's had: the judge treats it as its own."""
    if message["error"] == "NotImplementedError":
        return NotImplementedError("your turn")
    if message["error"] == Changed.__name__:
        return Changed(str(message.get("text", "")))
    text = f"{message.get('text', '')} ({'; '.join(map(str, message.get('lines', ())))})"
    return type(str(message["error"]), (Exception,), {})(text)


def isolation(folder: Path) -> dict:
    """Options for Popen: limits on what the process may use, writing only in its folder, and another user where we may."""
    import resource

    nobody = can_be_nobody()
    limits = {resource.RLIMIT_AS: MEMORY, resource.RLIMIT_FSIZE: FILE_SIZE, resource.RLIMIT_CORE: 0,
              resource.RLIMIT_CPU: 4 * EXERCISE_SECONDS}
    if nobody:  # counted by user, so it would count the grader's own processes, too
        limits[resource.RLIMIT_NPROC] = PROCESSES

    def restrict() -> None:
        for what, most in limits.items():
            resource.setrlimit(what, (most, most))
        confine(folder)

    if not nobody:
        return {"preexec_fn": restrict}
    for path in (folder, *folder.iterdir()):
        os.chown(path, NOBODY, NOBODY)
    return {"preexec_fn": restrict, "user": NOBODY, "group": NOBODY, "extra_groups": []}


def containment() -> str:
    """What holds submissions back on this machine, in one sentence."""
    holds = ["the user nobody"] * can_be_nobody() + ["Linux's Landlock (no writing outside a throw-away folder, no TCP)"] * (version() > 0)
    return "each runs behind " + " and ".join(holds) + "." if holds else (
        "they run as you, with limits on time and memory only: grade people you trust, or in a container.")


_nobody: list[bool] = []


def can_be_nobody() -> bool:
    """Are we root, and can ``nobody`` run this Python and import the course?"""
    if not _nobody:
        works = False
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            try:
                works = subprocess.run([sys.executable, "-c", "import minigraph.teach.worker"], user=NOBODY, group=NOBODY,
                                       extra_groups=[], cwd="/", capture_output=True, timeout=60,
                                       env={"PYTHONPATH": str(Path(__file__).resolve().parents[2])}).returncode == 0
            except (OSError, subprocess.SubprocessError):
                works = False
        _nobody.append(works)
    return _nobody[0]


def grade_file(suffix: str, content: bytes, submission: str, wanted: Iterable[str] = ()) -> Grade:
    """Grade one file (``.py`` or ``.ipynb``) by its content: every exercise that it defines, or those ``wanted``."""
    grade = Grade(submission)
    wanted = list(wanted)
    names: list[str] = []
    try:
        with Process(suffix, content) as process:
            message = process.read(START_SECONDS)
            names, problems = ([text for text in message.get(key, ()) if isinstance(text, str)] for key in ("names", "problems"))
            names = [name for name in names if name in EXERCISES]
            grade.problems += [one_line(problem) for problem in problems[:5]]
    except TookTooLong:
        grade.problems.append(f"loading the file took longer than {START_SECONDS} seconds")
    except (Gone, OSError, TypeError) as error:
        grade.problems.append(f"the file could not be loaded: {error}")
    for name in wanted or names:
        # a process for each exercise: what one does to its process harms no other
        outcome, sentence = grade_exercise(suffix, content, name) if name in names else ("missing", "no such function in the file")
        grade.outcomes[name] = outcome
        if sentence:
            grade.sentences[name] = one_line(sentence)
    return grade


def grade_exercise(suffix: str, content: bytes, name: str) -> tuple[str, str]:
    exercise = EXERCISES[name]
    try:
        with Process(suffix, content) as process:
            process.read(START_SECONDS)
            lost: list[str] = []

            def remote(*arguments):
                try:
                    return process.call(name, arguments)
                except Gone as error:
                    lost.append(str(error))
                    raise

            remote.__name__ = name
            verdict = exercise.verdict(remote)
            if lost:
                return "wrong", f"On the way, {lost[0]}."
            return outcome_of(verdict.failure)
    except TookTooLong:
        return "wrong", f"The function does not come to an end: it was stopped after {CALL_SECONDS} seconds."
    except Gone as error:
        return "wrong", f"On the way, {error}."
    except OSError as error:
        return "not graded", f"No process could be started: {error}."


def one_line(text: str) -> str:
    """Text that somebody else made, fit for a line of a report: it can neither begin another line nor fail to be written."""
    return brief(" ".join(text.encode("utf-8", "replace").decode().split()))


def outcome_of(failure: Failure | None) -> tuple[str, str]:
    if failure is None:
        return "right", ""
    if failure.kind == "not-attempted":
        return "not attempted", ""
    return "wrong", " ".join([failure.sentence, *failure.details[-1:]])
