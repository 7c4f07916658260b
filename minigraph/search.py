"""Offsets under a given ceiling, by a complete search: for instances on which every greedy order fails.

The search lays buffers like bricks. What is laid forms a skyline over time. On the floor of a valley, next to one of
its walls, there are few ways to go on: a buffer that starts there and fits in, or bytes left empty for ever, which
costs slack that the moment may not have. So branch at the end of a valley with the fewest ways to go on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from operator import or_
from time import process_time
from typing import NamedTuple

LEFT, RIGHT = 0, 1


def to_columns(spans: Sequence[tuple[int, int]]) -> tuple[list[tuple[int, int]], int]:
    """Lifetimes in launches -> half-open ranges of columns, and the number of columns.

    A column is a maximal set of buffers alive together: one ends where an end follows a start. Nothing else matters.
    """
    events = sorted((time, kind, i) for i, span in enumerate(spans) for time, kind in zip(span, (1, 0)))
    ranges, column, started = [[0, 0] for _ in spans], 0, False
    for _, starts, i in events:  # at one time, ends come first
        column += started and not starts
        started = bool(starts)
        ranges[i][1 - starts] = column
    return [(first, last) for first, last in ranges], column


def bits(mask: int) -> Iterator[int]:
    """The positions of the ones in an integer, lowest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


class Move(NamedTuple):
    """Leave ``gap`` (columns) empty up to the height ``up``; then lay a buffer beside it, or none (-1)."""

    waste: int
    buffer: int
    gap: tuple[int, int]
    up: int


class Search:
    """Buffers in order of preference, a set of them as the bits of an integer: ``spans`` in columns, ``sizes``, and
    how often each column was a dead end in earlier searches (``weight``, updated)."""

    def __init__(self, spans: Sequence[tuple[int, int]], sizes: Sequence[int], columns: int, capacity: int,
                 weight: list[float]):  # fmt: skip
        self.spans, self.sizes, self.columns, self.capacity, self.weight = spans, sizes, columns, capacity, weight
        self.at = [0] * columns, [0] * columns  # the buffers with their left or right side on a column
        self.slack, self.again = [capacity] * columns, 0
        for i, ((first, last), size) in enumerate(zip(spans, sizes)):
            self.at[LEFT][first] |= 1 << i
            self.at[RIGHT][last - 1] |= 1 << i
            self.slack[first:last] = [slack - size for slack in self.slack[first:last]]
            if i and (spans[i - 1], sizes[i - 1]) == (spans[i], size):
                self.again |= 1 << i  # the same as the one before, and never laid before it
        # the buffers that start in a column or later, and those that have ended when it starts
        self.after = list(accumulate(reversed(self.at[LEFT]), or_, initial=0))[::-1]
        self.before = list(accumulate(self.at[RIGHT], or_, initial=0))
        self.free = self.after[0]
        self.height, self.offsets = [0] * columns, [0] * len(spans)
        self.trail: list[tuple[int, list[int], list[int]]] = []  # what the moves have overwritten

    def run(self, budget: int, deadline: float = float("inf")) -> tuple[list[int] | None, int]:
        """(offsets, nodes visited). No offsets with at most ``budget`` nodes visited is a proof that there are none."""
        stack, nodes = [], 0
        # columns lo to hi, their ceiling, how many choices were open before them, and what is to do after
        todo = 0, self.columns, self.capacity, 0, None
        while todo:
            lo, hi, top, depth, after = todo
            free = self.free & self.after[lo] & self.before[hi]
            if not free:
                del stack[depth:]  # done; ranges share no buffer, so that another's failure is no reason to come back
                todo = after
                continue
            whole = free & self.at[LEFT][lo] & self.at[RIGHT][hi - 1]
            for i in bits(whole):  # a buffer as wide as the range is as good under its ceiling as anywhere
                top -= self.sizes[i]
                self.offsets[i] = top
            self.free ^= whole
            free ^= whole
            todo = lo, hi, top, depth, after
            cuts = [lo, *(c for c in range(lo + 1, hi) if not free & ~(self.before[c] | self.after[c])), hi]
            if whole or len(cuts) > 2:
                for part in pairwise(cuts) if len(cuts) > 2 else ():
                    todo = *part, top, len(stack), todo
                continue
            nodes += 1
            if nodes > budget or process_time() > deadline:
                return None, budget + 1
            column, moves = self.tightest(lo, hi, top)
            stack.append((column, iter(moves), self.free, todo, len(self.trail)))
            while stack:
                column, moves, self.free, todo, mark = stack[-1]
                self.undo(mark)
                if move := next(moves, None):
                    self.lay(move)
                    break
                self.weight[column] += 1
                stack.pop()
            else:
                return None, nodes
        return self.offsets, nodes

    def tightest(self, lo: int, hi: int, top: int) -> tuple[int, list[Move]]:
        """The end of a valley with the fewest moves, where a move counts less in a column of many dead ends."""
        best, a, left = None, lo, top
        while a < hi:
            b = a + 1
            while b < hi and self.height[b] == self.height[a]:
                b += 1
            right = self.height[b] if b < hi else top
            if left > self.height[a] < right:
                for side, end in (LEFT, a), (RIGHT, b - 1):
                    moves = self.moves(a, b, (left, right), side)
                    if not moves:
                        return end, moves
                    score = (len(moves) - 1) / self.weight[end]
                    if best is None or score < best[0]:
                        best = score, end, moves
            left, a = self.height[a], b
        return best[1:]

    def moves(self, a: int, b: int, walls: tuple[int, int], side: int) -> list[Move]:
        """The ways to go on at one end of the valley [a, b), the least waste first.

        Some buffer comes next on the floor, at the end or further in. What lies above the gap before it rests on the
        wall or on that buffer: so high the gap is lost, unless a buffer would fit into it, which was a move before.
        """
        floor, found, room = self.height[a], [], self.capacity
        inner = self.free & self.after[a] & self.before[b]
        fresh = inner & ~(inner << 1 & self.again)
        for column in range(a, b) if side == LEFT else range(b - 1, a - 1, -1):
            gap = (a, column) if side == LEFT else (column + 1, b)
            for i in bits(fresh & self.at[side][column]):
                up = min(walls[side], floor + self.sizes[i])
                waste = up - floor if gap[0] < gap[1] else 0
                if waste <= room and not self.fits(inner, gap, waste):
                    found.append(Move(waste, i, gap, up))
            room = min(room, self.slack[column])
            if not room:
                break
        else:  # or nothing at all
            waste = min(walls) - floor
            if waste <= room and not self.fits(inner, (a, b), waste):
                found.append(Move(waste, -1, (a, b), min(walls)))
        return sorted(found)

    def fits(self, buffers: int, gap: tuple[int, int], room: int) -> bool:
        """Would one of the buffers fit into the gap?"""
        return room > 0 and any(self.sizes[i] <= room for i in bits(buffers & self.after[gap[0]] & self.before[gap[1]]))

    def lay(self, move: Move) -> None:
        self.raise_to(move.up, *move.gap)
        if move.buffer >= 0:
            first, last = self.spans[move.buffer]
            floor = self.offsets[move.buffer] = self.height[first]
            self.trail.append((first, self.height[first:last], self.slack[first:last]))
            self.height[first:last] = [floor + self.sizes[move.buffer]] * (last - first)
            self.free ^= 1 << move.buffer

    def raise_to(self, up: int, a: int, b: int) -> None:
        self.trail.append((a, self.height[a:b], self.slack[a:b]))
        self.slack[a:b] = [slack - (up - low) for slack, low in zip(self.slack[a:b], self.height[a:b])]
        self.height[a:b] = [up] * (b - a)

    def undo(self, mark: int) -> None:
        while len(self.trail) > mark:
            a, heights, slacks = self.trail.pop()
            self.height[a:a + len(heights)] = heights
            self.slack[a:a + len(slacks)] = slacks


def luby(i: int) -> int:
    """1 1 2 1 1 2 4 1 1 2 1 1 2 4 8 …, from i = 1: how long to try before starting again (Luby et al. 1993)."""
    while i + 1 & i:
        i -= (1 << i.bit_length() - 1) - 1
    return i + 1 >> 1
