"""Stop code that does not end, with a sentence instead of a hang."""

from __future__ import annotations

import ctypes
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


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
