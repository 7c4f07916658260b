"""Planners: every placement is right, the best of the orders is never beaten by one, and the exact search keeps its word."""

from __future__ import annotations

import random
from itertools import permutations
from pathlib import Path

import pytest

from minigraph.command.instances import InstanceError, read_instance
from minigraph.planners import PLANNERS, Buffer, PlanError, check, lower_bound, plan_memory

MEMORY = Path(__file__).with_name("memory")
CHALLENGES = ("A", "B", "C", "E", "F", "G")
SIMPLE = [name for name in PLANNERS if name not in ("best_of_orders", "exact")]


def some_buffers(seed: int, most: int = 40) -> list[Buffer]:
    draw = random.Random(seed)
    buffers = []
    for i in range(draw.randrange(most)):
        start = draw.randrange(12)
        buffers.append(Buffer(f"b{i}", start, start + draw.randrange(6), draw.choice((0, 1, 2, 3, 5, 8, 64, 100))))
    return buffers


def overlaps(buffers, offsets) -> bool:
    """The definition, pair by pair."""
    return any(a.start < b.end and b.start < a.end and p < q + b.size and q < p + a.size and a.size and b.size
               and a.end > a.start and b.end > b.start
               for (a, p), (b, q) in ((x, y) for i, x in enumerate(zip(buffers, offsets)) for y in list(zip(buffers, offsets))[:i]))


@pytest.mark.parametrize("planner", PLANNERS)
def test_no_two_buffers_overlap(planner):
    for seed in range(60):
        buffers = some_buffers(seed)
        found = PLANNERS[planner](buffers, seconds=0.2, nodes=2000)
        assert not overlaps(buffers, found.offsets) and not check(buffers, found.offsets), seed
        tops = [offset + b.size for b, offset in zip(buffers, found.offsets) if b.end > b.start and b.size]
        assert found.footprint == max(tops, default=0) >= found.lower_bound == lower_bound(buffers)
        if found.optimal and planner != "exact":
            assert found.footprint == found.lower_bound


def test_the_best_of_the_orders_is_never_worse_than_one():
    for seed in range(400):
        buffers = some_buffers(seed, 25)
        best = PLANNERS["best_of_orders"](buffers).footprint
        exact = PLANNERS["exact"](buffers, seconds=0.1, nodes=300).footprint
        assert exact <= best <= min(PLANNERS[name](buffers).footprint for name in SIMPLE), seed


def test_exact_is_exact_on_small_instances():
    """Against every order of placing by first fit, one of which gives the lowest footprint there is."""
    proved = 0
    for seed in range(40):
        buffers = [b for b in some_buffers(seed, 7) if b.size and b.end > b.start]
        best = min((tallest(order) for order in permutations(buffers)), default=0)
        found = PLANNERS["exact"](buffers, seconds=2.0, nodes=50_000)
        assert found.footprint >= best and (not found.optimal or found.footprint == best), seed
        proved += found.optimal and found.footprint == best
    assert proved >= 36


ABOVE_THE_BOUND = (  # (start, end, size), lower bound: each is one byte short of room, checked offset by offset below
    ([(0, 1, 2), (0, 2, 2), (1, 3, 2), (3, 4, 1), (2, 4, 1), (2, 5, 1), (3, 5, 1), (4, 6, 2), (5, 6, 2), (6, 7, 1), (6, 7, 3)], 4),
    ([(0, 1, 4), (1, 2, 2), (2, 3, 1), (2, 3, 1), (1, 3, 2), (3, 4, 3), (0, 5, 2), (4, 5, 1), (4, 5, 1), (5, 6, 2), (5, 7, 2),
      (6, 7, 1), (7, 8, 3), (3, 8, 1), (4, 9, 1), (6, 9, 1), (8, 9, 4)], 6),
)  # fmt: skip


def fits(buffers: list[Buffer], capacity: int, placed: tuple[int, ...] = ()) -> bool:
    """Is there a placement below the capacity? Every offset of every buffer is tried."""
    if len(placed) == len(buffers):
        return True
    new = buffers[len(placed)]
    return any(fits(buffers, capacity, (*placed, offset)) for offset in range(capacity - new.size + 1)
               if not any(b.start < new.end and new.start < b.end and low < offset + new.size and offset < low + b.size
                          for b, low in zip(buffers, placed)))


@pytest.mark.parametrize("rows, bound", ABOVE_THE_BOUND)
def test_exact_proves_that_a_bound_cannot_be_reached(rows, bound):
    buffers = [Buffer(f"b{i}", *row) for i, row in enumerate(sorted(rows))]
    assert lower_bound(buffers) == bound and not fits(buffers, bound) and fits(buffers, bound + 1)
    found = PLANNERS["exact"](buffers, seconds=60, nodes=20_000)
    assert found.footprint == bound + 1 and found.optimal and not check(buffers, found.offsets, bound + 1)
    assert not PLANNERS["exact"](buffers, seconds=60, nodes=1).optimal, "nothing is proved by one node"


def tallest(order) -> int:
    placed: list[tuple[Buffer, int]] = []
    for b in order:
        offset = 0
        for other, low in sorted(placed, key=lambda one: one[1]):
            if other.start < b.end and b.start < other.end and low < offset + b.size and offset < low + other.size:
                offset = low + other.size
        placed.append((b, offset))
    return max((offset + b.size for b, offset in placed), default=0)


@pytest.mark.parametrize("name", CHALLENGES)
def test_a_challenge_fits_its_capacity(name):
    buffers = read_instance(MEMORY / f"{name}.1048576.csv")
    capacity = 1_039_360 if name == "C" else 2**20
    found = PLANNERS["exact"](buffers, seconds=30, seed=0, capacity=capacity)
    assert found.footprint <= capacity and not check(buffers, found.offsets, capacity)
    assert PLANNERS["greedy_by_size"](buffers).footprint > 1.2 * capacity, "greedy is no challenge to beat"


@pytest.mark.parametrize("path", sorted(set(MEMORY.glob("*.csv")) - set(MEMORY.glob("?.1048576.csv"))), ids=lambda path: path.stem)
def test_traces_of_compilers_reach_the_bound(path):
    buffers = read_instance(path)
    found = PLANNERS["exact"](buffers, seconds=5)
    assert found.footprint <= (1.003 if path.stem == "resnet50" else 1) * lower_bound(buffers) and not check(buffers, found.offsets)


def test_the_same_seed_and_budget_give_the_same_plan():
    buffers = read_instance(MEMORY / "E.1048576.csv")
    first, second = (PLANNERS["exact"](buffers, seconds=1e9, seed=3, nodes=500) for _ in range(2))
    assert first == second


def test_many_buffers_take_little_time():
    draw = random.Random(0)
    buffers = [Buffer(str(i), i, i + draw.randrange(1, 40), draw.randrange(1, 10_000)) for i in range(20_000)]
    found = PLANNERS["greedy_by_size"](buffers)
    assert not check(buffers, found.offsets)


def test_check_sees_what_is_wrong():
    buffers = [Buffer("a", 0, 2, 64), Buffer("b", 1, 3, 64), Buffer("c", 2, 4, 64)]
    assert check(buffers, (0, 64, 0)) == []  # c starts when a has ended
    assert "b at [32, 96) overlaps a" in check(buffers, (0, 32, 0))[0]
    assert check(buffers, (0, 64)) and check(buffers, (-1, 64, 0)) and check(buffers, (0, 65, 0), alignment=64)
    assert check(buffers, (0, 64, 0), capacity=100)


def test_alignment_and_bad_buffers():
    buffers = [Buffer("a", 0, 2, 3), Buffer("b", 0, 2, 5), Buffer("empty", 0, 2, 0), Buffer("never", 1, 1, 9)]
    found = plan_memory(buffers, alignment=64)
    assert found.footprint == 128 and all(offset % 64 == 0 for offset in found.offsets)
    for bad, says in (([Buffer("a", 0, 1, -1)], "-1 bytes"), ([Buffer("a", 3, 1, 1)], "before it starts")):
        with pytest.raises(PlanError, match=says):
            plan_memory(bad)
    with pytest.raises(PlanError, match="greedy_by_size"):
        plan_memory(buffers, "greedy_by_sise")


@pytest.mark.parametrize("text, says", (
    ("", "no column 'id'"),
    ("id,lower,upper\na,0,1\n", "no column 'size'"),
    ("id,lower,uper,size\na,0,1,2\n", "did you mean 'uper'"),
    ("id,lower,upper,size\n", "no buffer"),
    ("id,lower,upper,size\na,0,1\n", "line 2: 3 cells"),
    ("id,lower,upper,size\na,0,1,x\n", "line 2: size is 'x', not a whole number"),
    ("id,lower,upper,size\na,0,1,1.5\n", "not a whole number"),
    ("id,lower,upper,size\na,0,1,-4\n", "a size of -4 bytes"),
    ("id,lower,upper,size\na,5,1,4\n", "ends at 1, before it starts at 5"),
    ("id,lower,upper,size\na,0,1,4\na,1,2,4\n", "line 3: the id 'a' is there twice"),
    ("id,lower,upper,size\na,0,1,99999999999999999999\n", "too large"),
    ("id,lower,upper,size\na,0,1,\0\n", ""),
))  # fmt: skip
def test_a_bad_file_gets_a_sentence(tmp_path, text, says):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(InstanceError) as caught:
        read_instance(path)
    assert says in str(caught.value) and str(path) in str(caught.value)


def test_a_file_of_ten_million_rows_is_refused_at_once(tmp_path):
    path = tmp_path / "huge.csv"
    with open(path, "wb") as file:
        file.truncate(200_000_000)
    with pytest.raises(InstanceError, match="more than a plan can be made for"):
        read_instance(path)


def test_columns_in_any_order_and_more_of_them(tmp_path):
    path = tmp_path / "wide.csv"
    path.write_text("\ufeffSize, Lower,upper,note,id\n8,0,2,hello,a\n\n4,1,3,,b\n", encoding="utf-8")
    assert read_instance(path) == [Buffer("a", 0, 2, 8), Buffer("b", 1, 3, 4)]
