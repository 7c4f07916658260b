"""The launch model: what a program costs when each launch is an overhead and then a transfer or a computation.

    time = sum over launches of (overhead + max(bytes / bandwidth, flops / peak))

It has no caches, no occupancy and no overlap, so it is an upper bound that is wrong by at most a factor of two against
its own refinement, ``schedule``, where the host issues ahead of the device. A launch is anything with the attributes
``name``, ``bytes_read``, ``bytes_written`` and ``flops``. Times are in seconds, sizes in bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .errors import MinigraphError, nearest

MODES = ("eager", "graph")  # a call for each launch; the whole recorded once and replayed
HOST, DEVICE = "host", "device"  # who issues, who executes


class ModelError(MinigraphError):
    """The launch model was asked something that has no answer."""


@dataclass(frozen=True)
class Device:
    """What the model knows of a machine; ``sources`` says where the numbers are from.

    ``bandwidth`` bytes/s of main memory, ``peak`` float32 flop/s without tensor cores, both as the vendor states them;
    ``launch`` seconds of the host for one eager launch; ``graph_launch`` seconds of the host to replay a whole graph
    and ``graph_node`` more for each launch in it; ``gap`` seconds of the device between one kernel and the next.
    Where ``waits`` is true the host itself executes, as on a CPU: nothing is issued ahead.
    """

    name: str
    bandwidth: float
    peak: float
    launch: float
    graph_launch: float
    graph_node: float
    gap: float
    sources: tuple[str, ...] = ()
    waits: bool = False

    def __post_init__(self):
        for field in ("bandwidth", "peak"):
            if not getattr(self, field) > 0:
                raise ModelError(f"the {field} of {self.name} is {getattr(self, field)}; it has to be above 0")
        for field in ("launch", "graph_launch", "graph_node", "gap"):
            if not 0 <= getattr(self, field) < float("inf"):
                raise ModelError(f"{field} of {self.name} is {getattr(self, field)}; it is in seconds, from 0 on")


class Event(NamedTuple):
    """One box of a timeline: from ``start`` to ``end`` seconds in a row, HOST or DEVICE."""

    start: float
    end: float
    name: str
    row: str


# ---- presets ----------------------------------------------------------------------------------------------------

CUDA_LAUNCHES = (
    "eager launch: 11.4 µs of host time for one element-wise CuPy call on a small array"
    " (CuPy pull request 3298, 'Improve ElementwiseKernel cpu time', 2020)",
    "graph replay: 2.5 µs + about 1 ns a node of host time (NVIDIA Technical Blog, 'Constant Time Launch for"
    " Straight-Line CUDA Graphs and Other Performance Enhancements', 2024; CUDA 12.6, RTX 3060)",
    "gap: 0.58 µs a node in a replayed chain of empty kernels (ocannl issue 488, 'CUDA/HIP graph capture of the"
    " fissioned step', RTX 5070 Ti Laptop)",
)
CPU_NUMBERS = (
    "measured with minigraph.timing.compare on one core of a virtual AMD EPYC with NumPy 2.4 and one BLAS thread: copy"
    " of 10 million float32, matmul of 1024 x 1024 float32, np.add of one element with out=, one ctypes call, and one"
    " call inside compiled C",
)


def gpu(name: str, bandwidth: float, peak: float, source: str) -> Device:
    """A GPU by its data sheet; launches cost much the same on all of them, for it is the host that pays."""
    return Device(name, bandwidth, peak, 11.4e-6, 2.5e-6, 1e-9, 0.58e-6, (source, *CUDA_LAUNCHES))


PRESETS = {
    "cpu": Device("one AMD EPYC core", 25e9, 98e9, 0.36e-6, 0.15e-6, 0, 1.4e-9, CPU_NUMBERS, waits=True),
    "t4": gpu("NVIDIA T4", 300e9, 8.1e12, "NVIDIA T4 Tensor Core GPU data sheet: 300 GB/s, 8.1 TFLOPS FP32"),
    "a100": gpu("NVIDIA A100 SXM 80 GB", 2039e9, 19.5e12,
                "NVIDIA A100 Tensor Core GPU data sheet: 2,039 GB/s, 19.5 TFLOPS FP32"),
    "h100": gpu("NVIDIA H100 SXM", 3.35e12, 67e12,
                "NVIDIA H100 Tensor Core GPU product page: 3.35 TB/s, 67 teraFLOPS FP32"),
    "rtx4090": gpu("NVIDIA GeForce RTX 4090", 1008e9, 82.6e12,
                   "NVIDIA Ada GPU Architecture white paper: 1,008 GB/s, 82.6 TFLOPS FP32"),
}  # fmt: skip


def device_of(device: Device | str) -> Device:
    """A device, or a preset by its name."""
    if isinstance(device, Device):
        return device
    if device not in PRESETS:
        hint = nearest(str(device), PRESETS) or f"there are {', '.join(PRESETS)}"
        raise ModelError(f"no device is named '{device}': {hint}")
    return PRESETS[device]


# ---- the model --------------------------------------------------------------------------------------------------


def overhead(device: Device | str, mode: str = "eager") -> float:
    """What each launch costs beside its work."""
    device = device_of(device)
    if mode not in MODES:
        raise ModelError(f"'{mode}' is no way to launch: it is {' or '.join(MODES)}")
    return max(device.launch, device.gap) if mode == "eager" else device.gap + device.graph_node


def work(launch, device: Device | str) -> float:
    """The launch itself, whichever takes longer: moving its bytes or computing its flops."""
    device = device_of(device)
    return max((launch.bytes_read + launch.bytes_written) / device.bandwidth, launch.flops / device.peak)


def listed(launches) -> list:
    """The launches of a plan, or the launches themselves."""
    return list(getattr(launches, "launches", launches))


def times(launches: Iterable, device: Device | str, mode: str = "eager") -> list[tuple[str, float, float]]:
    """(name, overhead, work) of each launch."""
    each = overhead(device, mode)
    return [(launch.name, each, work(launch, device)) for launch in listed(launches)]


def predict(launches: Iterable, device: Device | str, mode: str = "eager") -> float:
    """Seconds for all launches, or for a plan: the sum of what ``times`` gives, and for a graph its one launch."""
    device, rows = device_of(device), times(launches, device, mode)
    once = device.graph_launch if mode == "graph" and rows else 0.0
    return once + sum(extra + busy for _, extra, busy in rows)


def break_even(device: Device | str, mode: str = "eager") -> float:
    """The knee: how many bytes a launch has to move for the transfer to take as long as the launch.

    Below it a larger array costs nothing; at it the model says twice the overhead; far above it time grows with size.
    """
    return overhead(device, mode) * device_of(device).bandwidth


def schedule(launches: Iterable, device: Device | str, mode: str = "eager") -> list[Event]:
    """When each launch is issued and when it runs, if the host issues ahead and the device takes them in order.

    A kernel starts when it has been issued and ``gap`` after the one before it has ended. The last ends no later than
    ``predict`` says, and no earlier than host or device alone would need.
    """
    device, events = device_of(device), []
    each, host, busy_until = overhead(device, mode), 0.0, 0.0
    launches = listed(launches)
    if mode == "graph" and launches:
        host = device.graph_launch + device.graph_node * len(launches)
        events.append(Event(0.0, host, "graph launch", HOST))
    for launch in launches:
        if mode == "eager":
            begin = max(host, busy_until) if device.waits else host
            host = begin + each
            events.append(Event(begin, host, launch.name, HOST))
        start = max(host, busy_until + device.gap if busy_until or mode == "graph" else 0.0)
        busy_until = start + work(launch, device)
        events.append(Event(start, busy_until, launch.name, DEVICE))
    return events


def table(launches: int = 128, bytes_per_launch: float = 2**20, flops_per_launch: float = 0.0,
          devices: Iterable[Device | str] = tuple(PRESETS)) -> list[dict[str, object]]:
    """The model's answer for equal launches on each device in each mode, as rows: turn its arguments like sliders.

    ``launching`` is the part of the time that is overhead, and ``launching %`` its share.
    """
    rows = []
    for device in map(device_of, devices):
        busy = launches * max(bytes_per_launch / device.bandwidth, flops_per_launch / device.peak)
        for mode in MODES:
            extra = launches * overhead(device, mode) + (device.graph_launch if mode == "graph" and launches else 0.0)
            total = extra + busy
            rows.append({"device": device.name, "mode": mode, "launches": launches, "launching": quantity(extra, "s"),
                         "work": quantity(busy, "s"), "time": quantity(total, "s"),
                         "launching %": round(100 * extra / total) if total else 0,
                         "knee": quantity(break_even(device, mode), "B")})
    return rows


def over_sizes(sizes: Sequence[int], device: Device | str, mode: str = "eager", launches: int = 1,
               bytes_per_element: float = 8.0) -> list[tuple[int, float]]:
    """(elements, seconds) for a chain of element-wise launches; to read and to write a float32 is 8 bytes."""
    device = device_of(device)
    once, each = device.graph_launch if mode == "graph" else 0.0, overhead(device, mode)
    return [(size, once + launches * (each + size * bytes_per_element / device.bandwidth)) for size in sizes]


PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"))


def quantity(value: float, unit: str = "") -> str:
    """Three significant digits with the unit's prefix: ``1.46 ms``, ``23.2 MB``; without a unit ``0.012``, ``10k``."""
    if not value or value != value or abs(value) == float("inf"):
        return f"{value:g} {unit}".rstrip()
    rounded = float(f"{value:.{3 if unit else 4}g}")
    if not unit and abs(rounded) < 1e4:
        return f"{rounded:,.4g}"
    scale, prefix = next((pair for pair in PREFIXES if abs(rounded) >= pair[0]), PREFIXES[-1])
    return f"{rounded / scale:.3g}{' ' * bool(unit)}{prefix}{unit}"
