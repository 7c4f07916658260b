"""A device that works while its host goes on: a GPU where there is one, else a thread with a queue."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from queue import Queue

import numpy as np

from ..launch_model import DEVICE, HOST, Event
from ..timing import gpu_here


class QueuedDevice:
    """The host puts jobs into a queue and goes on at once; a worker does them in order."""

    def __init__(self):
        self.queue = Queue()
        threading.Thread(target=self.work, daemon=True).start()

    def issue(self, job):
        self.queue.put(job)

    def work(self):
        while True:
            job = self.queue.get()
            job()
            self.queue.task_done()

    def wait(self):
        self.queue.join()


class GPU:
    """A CUDA GPU through CuPy, with the same two calls: CuPy itself puts kernels into a queue."""

    def __init__(self):
        import cupy

        self.cupy = cupy

    def issue(self, job):
        job()

    def wait(self):
        self.cupy.cuda.get_current_stream().synchronize()


def device_here() -> QueuedDevice | GPU:
    """A GPU where CuPy can use one, else a thread with a queue."""
    return QueuedDevice() if gpu_here() else GPU()


def large_matrix(device: QueuedDevice | GPU):
    """Ones where the device works, f32[n, n], with n such that a product of it takes milliseconds."""
    library, n = (device.cupy, 8192) if isinstance(device, GPU) else (np, 1024)
    return library.ones((n, n), dtype="float32")


def watch(jobs: dict[str, Callable[[], object]]) -> list[Event]:
    """Issue the jobs to a new ``QueuedDevice``, wait, and give what was measured: who was busy when, in seconds."""
    device, events = QueuedDevice(), []
    start = time.perf_counter()

    def timed(row: str, name: str, act: Callable[[], object]) -> None:
        begin = time.perf_counter() - start
        act()
        events.append(Event(begin, time.perf_counter() - start, name, row))

    for name, job in jobs.items():
        timed(HOST, name, lambda name=name, job=job: device.issue(lambda: timed(DEVICE, name, job)))
    timed(HOST, "wait", device.wait)
    return events
