"""Memory-planning instances as CSV files: ``id,lower,upper,size``, as MiniMalloc and other planners exchange them."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable
from pathlib import Path

from ..errors import MinigraphError, nearest
from ..planners import Buffer

COLUMNS = ("id", "lower", "upper", "size")
MOST_BYTES = 64 * 2**20  # of a file: more than a million buffers
MOST = 2**62  # a time or a size that still can be added up


class InstanceError(MinigraphError):
    """A file that is no instance."""


def read_instance(path: str | Path) -> list[Buffer]:
    """The buffers of a CSV file; a buffer lives over the half-open interval [lower, upper). Other columns are left out.

    Raises InstanceError with the line and what is wrong there, and OSError where the file cannot be read.
    """
    path = Path(path)
    if os.path.getsize(path) > MOST_BYTES:
        raise InstanceError(f"{path}: {os.path.getsize(path):,} bytes are more than a plan can be made for; at most {MOST_BYTES:,}")
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            return read_rows(str(path), csv.reader(file))
    except (UnicodeDecodeError, csv.Error) as error:
        raise InstanceError(f"{path}: this is no CSV text: {error}") from error


def read_rows(name: str, rows: Iterable[list[str]]) -> list[Buffer]:
    lines = enumerate(rows, 1)
    head = [column.strip().lower() for column in next(lines, (0, []))[1]]
    for column in COLUMNS:
        if column not in head:
            hint = nearest(column, head)
            raise InstanceError(f"{name}: there is no column '{column}'; the first line must name the columns {', '.join(COLUMNS)}. {hint}".strip())
    place = [head.index(column) for column in COLUMNS]
    buffers, seen = [], set()
    for line, row in lines:
        if not any(cell.strip() for cell in row):
            continue
        if len(row) <= max(place):
            raise InstanceError(f"{name}, line {line}: {len(row)} cells, but the columns {', '.join(COLUMNS)} need {max(place) + 1}")
        key, *cells = (row[i].strip() for i in place)
        lower, upper, size = (whole(name, line, column, cell) for column, cell in zip(COLUMNS[1:], cells))
        if upper < lower:
            raise InstanceError(f"{name}, line {line}: buffer '{key}' ends at {upper}, before it starts at {lower}")
        if size < 0:
            raise InstanceError(f"{name}, line {line}: buffer '{key}' has a size of {size} bytes")
        if key in seen:
            raise InstanceError(f"{name}, line {line}: the id '{key}' is there twice")
        seen.add(key)
        buffers.append(Buffer(key, lower, upper, size))
    if not buffers:
        raise InstanceError(f"{name}: there is no buffer in it")
    return buffers


def whole(name: str, line: int, column: str, text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        raise InstanceError(f"{name}, line {line}: {column} is '{text[:40]}', not a whole number") from None
    if abs(value) >= MOST:
        raise InstanceError(f"{name}, line {line}: {column} is {text[:40]}: too large to count with")
    return value
