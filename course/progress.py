"""Run an installer quietly, show how long it takes, and keep its last words for when it fails."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

TAIL = 12  # lines of a failed command's output that are shown


class StepFailed(Exception):
    """A command that ended with an error; the text is the end of its output."""


def step(label: str, command: list, cwd: Path) -> None:
    """Run `command` in `cwd` while showing `label` and the elapsed seconds.

    On a terminal one line counts the seconds; elsewhere a line is added every ten.
    Raises StepFailed with the last lines of its output if it fails or cannot start.
    """
    terminal = sys.stdout.isatty()
    started = time.monotonic()
    print(f"  {label} ...", end="" if terminal else "\n", flush=True)
    with tempfile.TemporaryFile() as log:
        try:
            process = subprocess.Popen(
                [str(part) for part in command], cwd=cwd, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )
        except OSError as error:
            raise StepFailed(f"{command[0]}: {error.strerror}") from None
        try:
            status = wait(process, label, started, terminal)
        except BaseException:
            process.terminate()
            process.wait()
            raise
        seconds = time.monotonic() - started
        outcome = "done" if status == 0 else "failed"
        print(f"\r  {label} ... {outcome} in {seconds:.1f} s" if terminal else f"    {outcome} in {seconds:.1f} s", flush=True)
        if status != 0:
            log.seek(0)
            lines = log.read().decode(errors="replace").strip().splitlines()
            raise StepFailed("\n".join(lines[-TAIL:]))


def wait(process: subprocess.Popen, label: str, started: float, terminal: bool) -> int:
    """Wait for a process, telling every second (or every ten) how long it has run; its exit status."""
    while True:
        try:
            return process.wait(timeout=1 if terminal else 10)
        except subprocess.TimeoutExpired:
            seconds = time.monotonic() - started
            if terminal:
                print(f"\r  {label} ... {seconds:.0f} s", end="", flush=True)
            else:
                print(f"    {seconds:.0f} s", flush=True)
