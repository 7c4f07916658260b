"""A small matrix and what pruning keeps of it: 2 of each 4 along a row."""

from __future__ import annotations

import numpy as np

from ..errors import MinigraphError
from ..passes.sparsity import mask_24
from ..sparse import GROUP
from .dot import DIM, SMALL, Html, digraph, font, statement
from .picture import Picture
from .plan import count_of

MOST_ROWS, MOST_COLUMNS = 12, 24  # more are no picture any more
KEPT, DROPPED = "#d9ebf7", "#ffffff"  # a kept cell also has a thick frame and bold digits, a dropped one is crossed out


def draw_24(matrix: np.ndarray) -> Picture:
    """f32[rows, columns] pruned to 2:4: in each group of 4 the 2 largest numbers are kept, and what is stored of them.

    On the left all numbers, the dropped ones crossed out, with a bar between groups; on the right the stored values,
    and under each its place in the group, 2 bits. Raises MinigraphError for more than 12 by 24 numbers, or columns that
    are no multiple of 4.
    """
    matrix = np.asarray(matrix, np.float32)
    rows, columns = matrix.shape if matrix.ndim == 2 else (0, 0)
    if not (1 <= rows <= MOST_ROWS and GROUP <= columns <= MOST_COLUMNS) or columns % GROUP:
        raise MinigraphError(
            f"a 2:4 picture has 1 to {MOST_ROWS} rows of 4 to {MOST_COLUMNS} numbers, in groups of 4; "
            f"this is {list(matrix.shape)}\n  draw a smaller piece of the matrix"
        )
    mask = mask_24(matrix)
    title = f"2:4 of {matrix.shape[0]} x {matrix.shape[1]}"
    dot = digraph(
        [statement("matrix", label=table(matrix, mask), shape="plain", fillcolor="white")],
        label=font(title, SMALL, DIM),
    )
    return Picture(dot, describe(matrix, mask), title)


def table(matrix: np.ndarray, mask: np.ndarray) -> Html:
    lines = []
    for number, (values, kept) in enumerate(zip(matrix, mask)):
        cells = []
        for column, (value, stays) in enumerate(zip(values, kept)):
            cells += [gap()] * (column % GROUP == 0 and column > 0)
            cells.append(cell(f"{value:.2g}", stays))
        stored = [
            cell(f"{value:.2g}", True) + place(index % GROUP) for index, value in enumerate(values) if kept[index]
        ]
        lines.append(
            f'<TR><TD BORDER="0">{font(f"row {number}", SMALL, DIM)}</TD>{"".join(cells)}'
            f'<TD BORDER="0" WIDTH="24">{font("stored", SMALL, DIM) if number == 0 else " "}</TD>{"".join(stored)}</TR>'
        )
    return Html(f'<TABLE BORDER="0" CELLBORDER="1" CELLSPACING="2" CELLPADDING="5">{"".join(lines)}</TABLE>')


def cell(text: str, stays: bool) -> str:
    if stays:
        return f'<TD BGCOLOR="{KEPT}" BORDER="2">{font(text, SMALL, None, "B")}</TD>'
    return f'<TD BGCOLOR="{DROPPED}" STYLE="dashed">{font(text, SMALL, DIM, "S")}</TD>'


def place(index: int) -> str:
    """The place of a stored value in its group, as the 2 bits that are stored."""
    return f'<TD BORDER="0">{font(f"{index:02b}", SMALL, DIM)}</TD>'


def gap() -> str:
    return '<TD BORDER="0" WIDTH="8"> </TD>'


def describe(matrix: np.ndarray, mask: np.ndarray) -> str:
    """The picture in words."""
    rows = []
    for number, (values, kept) in enumerate(zip(matrix, mask)):
        groups = [
            f"keeps {' and '.join(f'{values[i]:.2g}' for i in range(first, first + GROUP) if kept[i])} of "
            + ", ".join(f"{values[i]:.2g}" for i in range(first, first + GROUP))
            for first in range(0, len(values), GROUP)
        ]
        rows.append(f"row {number} " + "; ".join(groups))
    before, after = 32 * matrix.size, (32 + 2) * int(mask.sum())
    return (
        f"2:4 pruning of a matrix of {count_of(matrix.shape[0], 'row')} of {matrix.shape[1]}: "
        f"in each group of 4 the 2 largest numbers stay; {'. '.join(rows)}. "
        f"Stored are the values and 2 bits for the place of each: {after:,} bits in place of {before:,}."
    )
