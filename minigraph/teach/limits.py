"""Stop code that does not end or prints too much, with a sentence instead of a hang."""

from __future__ import annotations

import contextlib
import ctypes
import io
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO


class TookTooLong(BaseException):
    """Raised inside code that ran past its limit. Not an Exception, so that ``except Exception`` lets it through."""


PATIENCE = 10  # wall-clock seconds for each second of CPU time: a busy machine is nobody's mistake


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TookTooLong in the block after ``seconds`` of this process's CPU time (or ten times that of waiting).

    By timer signals where there are any and this is the main thread; otherwise by an exception that another
    thread plants here. Neither stops a loop inside C code: ``grade`` runs submissions in processes for that.
    """
    if hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread():
        timers = {signal.SIGVTALRM: (signal.ITIMER_VIRTUAL, seconds), signal.SIGALRM: (signal.ITIMER_REAL, PATIENCE * seconds)}

        def stop(signum, frame):
            raise TookTooLong

        before = {number: signal.signal(number, stop) for number in timers}
        for timer, delay in timers.values():
            # again and again: a bare except in the learner's loop may swallow the first one
            signal.setitimer(timer, delay, 0.5)
        try:
            yield
        finally:
            for number, (timer, _) in timers.items():
                signal.setitimer(timer, 0)
                signal.signal(number, before[number])
        return
    plant = ctypes.pythonapi.PyThreadState_SetAsyncExc
    here = ctypes.c_ulong(threading.get_ident())
    timer = threading.Timer(PATIENCE * seconds, lambda: plant(here, ctypes.py_object(TookTooLong)))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


class Excerpt(io.TextIOBase):
    """The first characters that are written go to ``stream``, the rest nowhere: a print in a function that is called
    thousands of times must not fill a notebook."""

    def __init__(self, stream: TextIO, most: int):
        self.stream, self.left = stream, most

    def write(self, text: str) -> int:
        if self.left > 0:
            self.stream.write(text[:self.left])
            self.left -= len(text)
            if self.left <= 0:
                self.stream.write("\n(Your function prints more; it is not shown.)\n")
        return len(text)

    def flush(self) -> None:
        self.stream.flush()


def print_limit(characters: int = 4000) -> contextlib.AbstractContextManager:
    """In the block, let only so much through to standard output."""
    return contextlib.redirect_stdout(Excerpt(sys.stdout, characters))
