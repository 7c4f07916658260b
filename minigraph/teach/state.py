"""What a learner has done, kept in ``work/progress.json``; and the passes that checked right, in ``work/passes/``."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

VERSION = 1
EMPTY: dict[str, dict] = {"checks": {}, "predictions": {}, "refuted": {}, "hints": {}}


def work_folder() -> Path:
    """``MINIGRAPH_WORK``, else the ``work`` folder of the course that this runs in, else ``.minigraph`` here."""
    if given := os.environ.get("MINIGRAPH_WORK"):
        return Path(given)
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / "course").is_dir() and (folder / "minigraph").is_dir():
            return folder / "work"
    return here / ".minigraph"


def load() -> dict:
    """The state; an unreadable file is set aside as ``progress.json.bad``, never overwritten."""
    path = work_folder() / "progress.json"
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
        if is_state(state):
            return EMPTY | state
        raise ValueError
    except FileNotFoundError:
        return dict(EMPTY)
    except (OSError, ValueError, RecursionError):
        try:
            path.replace(path.with_suffix(".json.bad"))
        except OSError:
            pass
        return dict(EMPTY)


def is_state(found) -> bool:
    """Is this something that ``save`` wrote? People edit files."""
    if not isinstance(found, dict) or not all(isinstance(found.get(key, {}), dict) for key in EMPTY):
        return False
    counts = [(entry, count) for key, count in (("checks", "tries"), ("hints", "level")) for entry in found.get(key, {}).values()]
    return all(isinstance(entry, dict) and type(entry.get(count, 0)) is int and entry.get(count, 0) >= 0 for entry, count in counts)


def save(state: dict) -> None:
    """Write the state in one step, so that a crash leaves the old file or the new one."""
    folder = work_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=folder, suffix=".tmp")
        with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as file:
            json.dump({"version": VERSION, **state}, file, indent=1, ensure_ascii=False)
        os.replace(name, folder / "progress.json")
    except OSError:
        pass  # a read-only folder costs the learner the record, not the lesson


def update(section: str, key: str, value) -> None:
    state = load()
    state[section] = state[section] | {key: value}
    save(state)


def record_check(name: str, outcome: str) -> int:
    """Count an attempt (``right`` or ``wrong``); returns how many there have been. Once right stays right."""
    entry = dict(load()["checks"].get(name, {"tries": 0, "right": False}))
    entry["tries"] = int(entry.get("tries", 0)) + 1
    entry["right"] = bool(entry.get("right")) or outcome == "right"
    update("checks", name, entry)
    return entry["tries"]
