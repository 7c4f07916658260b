"""Stop code that does not end, with a sentence instead of a hang."""

from __future__ import annotations

import ctypes
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class TookTooLong(BaseException):
    """Raised inside code that ran past its limit. Not an Exception, so that ``except Exception`` lets it through."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TookTooLong in the block after ``seconds``.

    By a timer signal where there is one and this is the main thread; otherwise by an exception that another
    thread plants here. Neither stops a loop inside C code: ``grade`` runs submissions in processes for that.
    """
    if hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread():
        def stop(signum, frame):
            raise TookTooLong

        before = signal.signal(signal.SIGALRM, stop)
        # again and again: a bare except in the learner's loop may swallow the first one
        signal.setitimer(signal.ITIMER_REAL, seconds, 0.5)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        return
    plant = ctypes.pythonapi.PyThreadState_SetAsyncExc
    here = ctypes.c_ulong(threading.get_ident())
    timer = threading.Timer(seconds, lambda: plant(here, ctypes.py_object(TookTooLong)))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
