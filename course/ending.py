"""How a command ends: with what it started when it is told to stop, and quietly when nobody reads its output."""

import os
import signal
import sys
from collections.abc import Callable

SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))  # Windows has one


class Told(SystemExit):
    """A signal told this process to stop; the exit status is the shell's for a process that it ended."""

    def __init__(self, number: int):
        super().__init__(128 + number)
        self.number = number


def notice_signals() -> None:
    """From now on a signal to stop raises Told, so that whoever waits for a child can stop the child first."""

    def told(number, frame):
        raise Told(number)

    for number in SIGNALS:
        if signal.getsignal(number) == signal.SIG_DFL:  # `nohup` has it ignored, and it stays so
            signal.signal(number, told)


def quietly(main: Callable[[], int]) -> int:
    """The exit status of `main`; 141 without a word, the way of cat and grep, where its output is a closed pipe."""
    try:
        status = main()
        sys.stdout.flush()  # now, while that can still be noticed
        return status
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that Python's own last flush is silent
        return 141
