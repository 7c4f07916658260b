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
        if isinstance(state, dict) and all(isinstance(state.get(key, {}), dict) for key in EMPTY):
            return EMPTY | state
        raise ValueError
    except FileNotFoundError:
        return dict(EMPTY)
    except (OSError, ValueError):
        try:
            path.replace(path.with_suffix(".json.bad"))
        except OSError:
            pass
        return dict(EMPTY)


def save(state: dict) -> None:
    """Write the state in one step, so that a crash leaves the old file or the new one."""
    folder = work_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=folder, suffix=".tmp")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
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
