"""Recordings: tables of numbers measured on a named machine, as JSON files in this folder. README.md has the format.

``minigraph bench gpu --out FILE`` writes one; ``measure`` shows them where the hardware itself is absent.
"""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import MinigraphError

FOLDER = Path(__file__).parent
FORMAT, VERSION = "minigraph recording", 1
FIELDS = ("kind", "machine", "date", "command", "tables")
MACHINE = {"gpu": ("name", "driver", "cuda", "cupy"), "cpu": ("name", "threads", "numpy")}  # what must be said of it

NO_NUMBERS = ("NaN", "Infinity", "-Infinity")  # Python's reader takes these three, and no standard does

Row = Mapping[str, object]


class RecordingError(MinigraphError):
    """A recording that cannot be read, or that would not be one."""


@dataclass(frozen=True)
class Recording:
    """``machine`` says on what it was measured, ``command`` how, ``date`` (YYYY-MM-DD) when; ``tables`` holds rows."""

    kind: str  # "gpu" or "cpu"
    machine: Mapping[str, str]
    date: str
    command: str
    tables: Mapping[str, Sequence[Row]]
    file: str = ""

    @property
    def label(self) -> str:
        return f"recorded on {self.machine['name']} ({self.date})"


def load_recordings(folder: str | Path = FOLDER) -> tuple[list[Recording], list[str]]:
    """The recordings in a folder, the newest first, and a sentence for each file that is not one."""
    good, problems = [], []
    for path in sorted(Path(folder).glob("*.json")):
        try:
            good.append(load_recording(path))
        except RecordingError as error:
            problems.append(str(error))
    return sorted(good, key=lambda one: (one.date, one.file), reverse=True), problems


def load_recording(path: str | Path) -> Recording:
    """One recording. Raises RecordingError."""
    path = Path(path)
    try:
        data = json.loads(path.read_text(encoding="utf-8"), parse_constant=str)
    except OSError as error:
        raise RecordingError(f"{path.name}: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise RecordingError(f"{path.name} is damaged: it is not JSON ({error})") from None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise RecordingError(f"{path.name} is no recording: its \"format\" is not \"{FORMAT}\"")
    if data.get("version") != VERSION:
        raise RecordingError(f"{path.name} has version {data.get('version')!r}, and version {VERSION} is read here")
    return checked(Recording(*map(data.get, FIELDS), file=path.name))


def save_recording(path: str | Path, tables: Mapping[str, Sequence[Row]], *, kind: str, machine: Mapping[str, str],
                   command: str, date: str = "") -> Recording:
    """Write tables that were measured here and now, and return them as they will be read. Raises RecordingError."""
    path = Path(path)
    if path.suffix != ".json":
        raise RecordingError(f"a recording is a .json file, not '{path.name}'")
    date = date or datetime.date.today().isoformat()
    recording = checked(Recording(kind, machine, date, command, plain(tables), path.name))
    data = {"format": FORMAT, "version": VERSION, **{name: getattr(recording, name) for name in FIELDS}}
    try:
        path.write_text(json.dumps(data, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise RecordingError(f"{path.name} cannot be written: {error.strerror or error}") from None
    return recording


def plain(value):
    """The same with NumPy's numbers as Python's."""
    if isinstance(value, Mapping):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    return value.item() if getattr(value, "shape", None) == () else value


def checked(recording: Recording) -> Recording:
    """The recording, if everything in it is as the format asks."""
    if problem := next(problems_of(recording), ""):
        raise RecordingError(f"{recording.file}: {problem}")
    return recording


def problems_of(recording: Recording):
    """What is wrong with it, in sentences."""
    if recording.kind not in tuple(MACHINE):  # it may be anything, a list too
        yield f"\"kind\" is {recording.kind!r}, and it has to be {' or '.join(map(repr, MACHINE))}"
        return
    machine = recording.machine if isinstance(recording.machine, Mapping) else {}
    for name in MACHINE[recording.kind]:
        if not (isinstance(machine.get(name), str) and machine[name].strip()):
            yield f"\"machine\" does not say its \"{name}\"; here it has {', '.join(MACHINE[recording.kind])}"
    try:
        datetime.date.fromisoformat(recording.date)
    except (TypeError, ValueError):
        yield f"\"date\" is {recording.date!r}, and it has to be a day like 2026-01-31"
    if not (isinstance(recording.command, str) and recording.command.strip()):
        yield "\"command\" does not say how the numbers were made"
    if not isinstance(recording.tables, Mapping) or not recording.tables:
        yield "\"tables\" has no tables"
        return
    for name, rows in recording.tables.items():
        if not (isinstance(rows, (list, tuple)) and rows and all(isinstance(row, Mapping) for row in rows)):
            yield f"the table '{name}' is not a list of rows"
            continue
        for column, value in (cell for row in rows for cell in row.items()):
            if not isinstance(column, str):
                yield f"the table '{name}' has the column {column!r}, and a column's name is a text"
            elif not isinstance(value, (str, bool, int, float, type(None))):
                yield f"the table '{name}' has a {type(value).__name__} in '{column}'; a cell is a number or a text"
            elif value in NO_NUMBERS or (isinstance(value, float) and not math.isfinite(value)):
                yield f"the table '{name}' has {value} in '{column}', which is no measurement"
