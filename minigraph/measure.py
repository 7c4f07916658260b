"""Numbers that say where they are from: measured here, recorded on a named machine, or predicted by the launch model.

``measure`` chooses in that order. ``bench``, ``compare`` and the clocks are those of timing.py, the recordings those of
recordings/.
"""

from __future__ import annotations

import html
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .command.tables import is_number, table
from .doctor import ask
from .launch_model import quantity
from .recordings import FOLDER, load_recordings, save_recording
from .timing import MeasureError, Timing, bench, compare, gpu_clock, gpu_here, import_cupy, synchronized, wall

__all__ = ["MeasureError", "Measurement", "Timing", "bench", "compare", "cpu_machine", "gpu_clock", "gpu_here",
           "gpu_machine", "load_recordings", "measure", "save_recording", "synchronized", "wall"]  # fmt: skip

SOURCE = "source"  # the column that every row of a measurement has
MEASURED, PREDICTED = "measured here", "predicted by the launch model"
HERE = {"cpu": lambda: "", "gpu": gpu_here}  # what a measurement may need -> why it is not here, or an empty text

Rows = Sequence[Mapping[str, object]]


@dataclass(frozen=True, repr=False)
class Measurement:
    """Rows, and where they are from: ``source`` begins with measured, recorded or predicted.

    Every row carries the source, so that not even one taken out alone can pass for something else. ``reason`` says why
    nothing was measured here.
    """

    name: str
    source: str
    rows: tuple[Mapping[str, object], ...]
    reason: str = ""

    def __str__(self) -> str:
        shown = table([dict(as_shown(key, value) for key, value in row.items() if key != SOURCE) for row in self.rows])
        return f"{self.source}\n{shown}" + (f"Not measured here: {self.reason}.\n" if self.reason else "")

    __repr__ = __str__

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/html": f"<pre>{html.escape(str(self))}</pre>", "text/plain": str(self)}

    def column(self, name: str) -> list:
        """One column, None where a row lacks it. Raises MeasureError where no row has it."""
        if not any(name in row for row in self.rows):
            known = ", ".join(dict.fromkeys(key for row in self.rows for key in row if key != SOURCE))
            raise MeasureError(f"'{self.name}' has no column '{name}'; it has {known}")
        return [row.get(name) for row in self.rows]

    def draw(self, x: str, *ys: str, **options):
        """Curves of the columns ``ys`` over the column ``x``, with the source in the picture.

        A row without both numbers is left out. ``options`` go to ``draw_curves``; seconds are assumed otherwise.
        """
        from .drawing.curves import draw_curves

        places = self.column(x)
        curves = {y: [pair for pair in zip(places, self.column(y)) if all(map(is_number, pair))] for y in ys}
        return draw_curves(curves, **{"x_label": x, "y_label": "time", "y_unit": "s", **options, "label": self.source})


def measure(name: str, live: Callable[[], Rows] | None = None, needs: str = "cpu",
            model: Callable[[], Rows] | None = None, folder: str | Path = FOLDER) -> Measurement:
    """The rows of ``live()`` where the machine is what it ``needs`` ("cpu" or "gpu"); else those that the newest
    recording of that kind in ``folder`` has under ``name``; else those of ``model()``.

    Raises MeasureError where there is none of the three, or where the one that is there has no rows.
    """
    if needs not in HERE:
        raise MeasureError(f"'{name}' needs '{needs}', and what can be needed is {' or '.join(HERE)}")
    reason = HERE[needs]() if live else "nothing was given to run"
    if live and not reason:
        return labelled(name, MEASURED, live())
    recordings, problems = load_recordings(folder)
    for recording in recordings:
        if recording.kind == needs and name in recording.tables:
            return labelled(name, recording.label, recording.tables[name], reason)
    if model:
        return labelled(name, PREDICTED, model(), "; ".join([reason, *problems]))
    skipped = "".join(f"\n  skipped: {problem}" for problem in problems)
    raise MeasureError(f"'{name}' cannot be shown: {reason}, no recording has it, and no model predicts it{skipped}")


def as_shown(column: str, value: object) -> tuple[str, object]:
    """A column of seconds is printed as times with a unit."""
    return ("time", quantity(value, "s") if is_number(value) else value) if column == "seconds" else (column, value)


def labelled(name: str, source: str, rows: Rows, reason: str = "") -> Measurement:
    rows = tuple({SOURCE: source, **{key: value for key, value in row.items() if key != SOURCE}} for row in rows or ())
    if not rows:
        raise MeasureError(f"'{name}' has no rows to show ({source})")
    return Measurement(name, source, rows, reason)


# ---- the machine, for a recording -------------------------------------------------------------------------------


def gpu_machine(cupy=None) -> dict[str, str]:
    """What a recording says of the GPU in use: name, driver, cuda, cupy. Raises MeasureError where there is none."""
    cupy = cupy or import_cupy()
    runtime = cupy.cuda.runtime
    name = runtime.getDeviceProperties(runtime.getDevice())["name"]
    status, answer = ask(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"])
    driver = answer.strip().partition("\n")[0] if status == 0 else f"for CUDA {cuda(runtime.driverGetVersion())}"
    return {"name": name.decode() if isinstance(name, bytes) else name, "driver": driver,
            "cuda": cuda(runtime.runtimeGetVersion()), "cupy": cupy.__version__}


def cuda(version: int) -> str:
    """CUDA's own number for a version, 12040, as people write it, 12.4."""
    return f"{version // 1000}.{version % 1000 // 10}"


def cpu_machine(threads: int = 1) -> dict[str, str]:
    """What a recording says of this CPU: name, threads (of what was timed), numpy, system."""
    import numpy

    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []  # not Linux
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return {"name": (names or [platform.processor() or platform.machine()])[0], "threads": str(threads),
            "numpy": numpy.__version__, "system": platform.system()}
