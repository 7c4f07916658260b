"""The stride ruler: memory as a row of cells, and where each axis of an array steps along it."""

from __future__ import annotations

from itertools import product

from ..access import row_major
from ..errors import MinigraphError
from ..types import DTYPES, Type, parse_type
from .dot import DIM, SMALL, Html, digraph, font, statement
from .picture import Picture
from .plan import count_of

CELLS = 32  # more do not fit into a line
COLOURS = ("#0072b2", "#a84300", "#00664b", "#8c3f6a", "#756f00")  # one an axis; its line and its label say the same


def stride_ruler(type: Type | str, perm: tuple[int, ...] | None = None) -> Picture:
    """An array x of this type in memory, row by row, and how ``transpose(x, perm)`` walks it (or x, without ``perm``).

    One cell is one element. Under the memory there is a line for each axis, with the index at each cell where the axis
    steps from the first element on, and a last one that says at each cell when its turn comes in reading order.
    Raises MinigraphError for more than 32 elements, none at all, or a ``perm`` that is no permutation of the axes.
    """
    type = parse_type(type) if isinstance(type, str) else type
    rank = len(type.shape)
    order = tuple(range(rank)) if perm is None else tuple(perm)
    if sorted(order) != list(range(rank)):
        raise MinigraphError(f"{list(order)} is no permutation of the axes of {type}"
                             f"\n  it names each of {list(range(rank))} once")
    if not 1 <= type.size <= CELLS:
        raise MinigraphError(f"{type} has {type.size} elements, and a ruler has 1 to {CELLS} cells"
                             "\n  draw a smaller array")
    shape = tuple(type.shape[axis] for axis in order)
    strides = tuple(row_major(type.shape)[axis] for axis in order)
    visits = [sum(i * stride for i, stride in zip(index, strides)) for index in product(*map(range, shape))]
    size = DTYPES[type.dtype].itemsize
    title = f"strides of {type}" + (f" transposed by {list(order)}" if perm is not None else "")
    ruler = statement("ruler", label=table(type, shape, strides, visits, size), shape="plain", fillcolor="white")
    dot = digraph([ruler], label=font(title, SMALL, DIM))
    return Picture(dot, describe(title, type.size, shape, strides, visits, size), title)


def table(type: Type, shape, strides, visits: list[int], size: int) -> Html:
    """The memory, a line for each axis, and the order of reading."""
    indices = [",".join(map(str, index)) or "x" for index in product(*map(range, type.shape))]
    lines = [line("cell", range(type.size), "#f4f4f4", tag="I"), line("element of x", indices, "#fbf8d0", tag="B")]
    for axis, (length, stride) in enumerate(zip(shape, strides)):
        at = {step * stride: f"{step}" for step in range(length)}
        words = f"axis {axis}: length {length}, stride {stride} = {stride * size} bytes"
        steps = [at.get(cell, "") for cell in range(type.size)]
        lines.append(line(words, steps, "#ffffff", COLOURS[axis % len(COLOURS)], "B"))
    turns = {cell: turn for turn, cell in enumerate(visits)}
    lines.append(line("its turn when read in order", [turns[cell] for cell in range(type.size)], "#d9ebf7"))
    return Html(f'<TABLE BORDER="0" CELLBORDER="1" CELLSPACING="0" CELLPADDING="5">{"".join(lines)}</TABLE>')


def line(label: str, cells, fill: str, colour: str | None = None, tag: str = "") -> str:
    """A row; where there is nothing to say about a cell, it has no frame."""
    frame = f' BORDER="2" COLOR="{colour}"' if colour else ""
    boxes = "".join(f'<TD BGCOLOR="{fill}"{frame}>{font(cell, SMALL, colour, tag)}</TD>' if cell != "" else
                    '<TD BORDER="0"> </TD>' for cell in cells)
    return f'<TR><TD BORDER="0" ALIGN="LEFT">{font(label, SMALL, colour or DIM)}</TD>{boxes}</TR>'


def describe(title: str, count: int, shape, strides, visits: list[int], size: int) -> str:
    """The picture in words."""
    parts = [f"{title[0].upper()}{title[1:]}: memory is a row of {count_of(count, 'cell')} of {count_of(size, 'byte')}"]
    for axis, (length, stride) in enumerate(zip(shape, strides)):
        walked = ", ".join(str(step * stride) for step in range(length))
        parts.append(f"axis {axis} has length {length} and stride {stride}, {stride * size} bytes,"
                     f" and walks cells {walked}")
    ordered = visits == sorted(visits)
    parts.append(f"read in order the elements lie in cells {', '.join(map(str, visits))}"
                 + (": one after another" if ordered else ": neighbours are not neighbours in memory"))
    return "; ".join(parts) + "."
