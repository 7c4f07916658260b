"""Chapter 09, reductions and attention: merging partial results, one walk, counting walks, and a fuser to refute."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ...fusion import fuse as package_fuse
from ...ir import Graph, defs, users
from ...ops import OPS, Kind
from ...text import parse
from ..exercise import Exercise, Mistake, Refutation
from ..judge import Failure, Verdict, equal, judge_calls
from ..judge_axes import Harmless, mixed_up
from ..partitions import Grouped, in_order
from ..streams import KEPT, with_little_memory

INF, NAN = float("inf"), float("nan")
PYTHON_MAX = ("The maximum passes a NaN over. Each comparison with NaN is false: so Python's max(1, nan) is 1, and an"
              " if may take the wrong side. np.fmax and np.nanmax skip NaN on purpose. np.maximum hands it on, and so"
              " does np.max with initial=.")
NUMBER_FOR_NAN = ("np.nan_to_num hides the trouble: it makes 0 of every NaN, also of one that comes from the row, and a"
                  " number of -inf. Avoid -inf - -inf instead: subtract 0 while the maximum is -inf.")
LOWEST = -1.7e308  # hardly any float64 is below, but -inf
LOWS = (-1e3, -1e4, -1e6, -1e9, -1e30, -1e300, float(np.finfo(np.float64).min))  # what people put in place of -inf
SMALL_IS_NOT_INF = ("A number far below 0 is not -inf: a row may lie below it, and one without elements has the"
                    " maximum -inf.")
SHIFT_ABOVE = ("A number in place of -inf may lie above the maxima, and seen from there each exp is 0. Subtract 0"
               " where the maximum is -inf itself, and the maximum else.")
WIDE_LAST = ("Whole rows take a walk after the last reduction only if they wait for it. What is ready in an earlier"
             " walk is computed there, wherever it is written, and whoever reads it.")
ONLY_REDUCTIONS = ("Only reductions were counted, no whole rows: those are computed during a walk, too. (If you ask"
                   " for them: a shape is a tuple, and never equal to a list.)")
SOME_REDUCTIONS = (("sum", "max"), ("sum", "max", "min"), ("sum", "max", "mean"), ("sum", "max", "min", "mean"))
NOT_ALL_REDUCTIONS = ("Not every reduction was found: max and sum have company, such as mean, min and prod. The table"
                      " knows: OPS[node.op].kind is Kind.REDUCTION.")
CAME_ONCE = ("A part was kept: each is valid only until the next one is asked for, and then holds NaN. Use each one up"
             " before you take the next.")
NO_NUMBERS = ("They come one after the other: nobody knows how many, and none can be asked for by its number. Walk over"
              " them with for.")
ROW_KEPT = "The elements were kept. Two numbers tell all about those that came: m and s. Forget the chunk."
SCORES_KEPT = ("All scores, or all tiles, were kept. Three things tell all about those that came: m, s and the mixture."
               " Forget the tile.")
NAN_FOR_NOTHING = ("A query that may look at nothing has no answer: leave it NaN, which 0 / 0 gives by itself. Put"
                   " nothing in its place, and add nothing to the sum.")
SHARES_ADDED = ("What one tile gives is a share of that tile, not of all keys: only the last tile completes the sum."
                " Add up e @ v, and divide once, after the loop.")
NUMBER_FOR_INF = ("A number in place of -inf may lie above all scores of a query, and seen from there each exp is 0."
                  " Begin with -inf, and subtract 0 only where the maximum is still -inf itself.")
FLAT = ("One number a query, of shape (n,), stands beside rows of values: NumPy takes it for one number a column, and"
        " where the matrix is square nothing complains. Keep the axis, with keepdims=True or [:, None].")
DIGITS = 6  # of a result that count: another order of adding gives other last digits


def rounded(value) -> np.float64:
    """A number to so many digits; each NaN and each zero alike."""
    value = float(np.asarray(value).item())
    return np.float64(NAN if value != value else float(f"{value:.{DIGITS - 1}e}") + 0.0)


def as_pair(answer):
    """Two numbers as a tuple, rounded; anything else as it is."""
    try:
        m, s = answer
        return rounded(m), rounded(s)
    except (TypeError, ValueError):
        return answer


def show(value) -> str:
    """Numbers as they are written by hand, in tuples and lists."""
    if isinstance(value, np.ndarray):
        return show(value.tolist())
    if isinstance(value, (list, tuple)):
        inside = ", ".join(map(show, value))
        return f"({inside})" if isinstance(value, tuple) else f"[{inside}]"
    return f"{value:.{DIGITS}g}" if isinstance(value, (float, np.floating)) else repr(value)


def explain_pair(case, want, got) -> tuple[str, ...]:
    return (f"given: {', '.join(map(show, case))}", f"it should give {show(want)}", f"and gives      {show(got)}")


# ---- merging two partial results ------------------------------------------------------------------------------------


def merge(left, right):
    """Two partial results become one. Each is a pair (m, s) of floats, and so is the answer.

    A part of a row has the maximum m, and s is the sum of exp(x - m) over its elements. A part
    without elements, or with nothing but -inf in it, is (-inf, 0.0). Merging two of those gives
    (-inf, 0.0) again. If one part is (nan, nan), the answer is (nan, nan). No m is +inf.

    merge((1.0, 2.0), (1.0, 3.0))  is  (1.0, 5.0): the same maximum, so the sums can be added.
    merge((0.0, 1.0), (np.log(4), 1.0))  is  (1.386…, 1.25): seen from log(4), a sum of 1 counts 1/4.
    """
    ### BEGIN SOLUTION
    (m1, s1), (m2, s2) = left, right
    m = np.maximum(m1, m2)
    shift = 0.0 if m == -np.inf else m  # -inf - -inf would be NaN
    s = s1 * np.exp(m1 - shift) + s2 * np.exp(m2 - shift)
    return m, s
    ### END SOLUTION


def merge_by_cases(left, right):
    if np.isnan(left[0]) or np.isnan(right[0]):
        return np.nan, np.nan
    if left[0] == -np.inf:
        return right
    if right[0] == -np.inf:
        return left
    low, high = sorted([left, right])
    return high[0], high[1] + low[1] * np.exp(low[0] - high[0])


def merge_with_arrays(left, right):
    m, s = np.array([left, right], np.float64).T
    top = m.max()
    return top, (s * np.exp(m - (top if np.isfinite(top) else 0))).sum()


def merge_above_the_lowest(left, right):
    """No number is below the lowest, so as a shift it does for -inf."""
    return merging(left, right, low=np.finfo(np.float64).min)


def merging(left, right, one=lambda m1, m: m1 - m, other=lambda m2, m: m2 - m, top=np.maximum, guard=True, low=None):
    """The solution with one thing changed; the mistakes below are made of it."""
    m = top(left[0], right[0])
    shift = 0.0 if guard and m == -INF else m
    if low is not None:
        shift = np.maximum(m, low)
    return m, left[1] * np.exp(one(left[0], shift)) + right[1] * np.exp(other(right[0], shift))


def merge_adding(left, right):
    return np.maximum(left[0], right[0]), left[1] + right[1]


def merge_left_only(left, right):
    return merging(left, right, other=lambda m2, m: 0.0)


def merge_right_only(left, right):
    return merging(left, right, one=lambda m1, m: 0.0)


def merge_wrong_sign(left, right):
    return merging(left, right, one=lambda m1, m: m - m1, other=lambda m2, m: m - m2)


def merge_to_the_smaller(left, right):
    m = np.minimum(left[0], right[0])
    return m, merging(left, right, top=np.minimum)[1]


def merge_without_shift(left, right):
    m = np.maximum(left[0], right[0])
    return m, (left[1] * np.exp(left[0]) + right[1] * np.exp(right[0])) / np.exp(m)


def merge_without_guard(left, right):
    return merging(left, right, guard=False)


def merge_python_max(left, right):
    return merging(left, right, top=max)


def merge_swapped(left, right):
    return merge(left, right)[::-1]


def merge_wrong_neutral(left, right):
    if left[0] == -INF:
        return left
    if right[0] == -INF:
        return right
    return merging(left, right)


def merge_without_exp(left, right):
    m = np.maximum(left[0], right[0])
    return m, left[1] * (left[0] - m) + right[1] * (right[0] - m)


def merge_nan_to_num(left, right):
    m, s = merging(left, right, guard=False)
    return m, np.nan_to_num(s)


def merge_nan_to_num_all(left, right):
    return tuple(np.nan_to_num(merging(left, right, guard=False)))


def merge_clamped(low):
    """Keeps the maximum above a very small number."""
    return lambda left, right: merging(left, right, top=lambda m1, m2: np.maximum(np.maximum(m1, m2), low))


def merge_shift_clamped(left, right):
    return merging(left, right, low=-1e9)


def merge_nanmax(left, right):
    return merging(left, right, top=lambda m1, m2: np.nanmax([m1, m2]))


def merge_by_comparing(left, right):
    """NaN is not >= anything, so the right part passes for the larger one."""
    return merging(left, right, top=lambda m1, m2: m1 if m1 >= m2 else m2)


def merge_scaling_products(left, right):
    return np.maximum(left[0], right[0]), left[1] * right[1]


MERGES = [
    ((0.0, 1.0), (0.0, 1.0)), ((2.0, 1.5), (2.0, 2.5)), ((1.0, 1.0), (3.0, 1.0)), ((3.0, 2.0), (1.0, 1.0)),
    ((-1.0, 2.0), (-4.0, 3.0)), ((LOWEST, 1.0), (LOWEST, 1.0)), ((1000.0, 1.0), (1001.0, 1.0)),
    ((-1000.0, 1.0), (-1001.0, 2.0)),
    ((-800.0, 1.0), (800.0, 2.0)),
    ((1.0, 2.0), (-INF, 0.0)), ((-INF, 0.0), (1.0, 2.0)), ((-INF, 0.0), (-INF, 0.0)), ((NAN, NAN), (1.0, 1.0)),
    ((1.0, 1.0), (NAN, NAN)), ((-INF, 0.0), (NAN, NAN)),
]  # fmt: skip


# ---- one walk -------------------------------------------------------------------------------------------------------


def online_softmax(chunks):
    """The running maximum m and the running sum s of exp(x - m) of a row: a pair of floats.

    The row comes in ``chunks``, each a 1-D array of float64, and it comes only once: you can write
    ``for chunk in chunks`` one time. A chunk is valid only until the next one is asked for: then its
    memory is used again. A row may be very long: check measures that less than half of it is in
    memory. A chunk may be empty, and may hold -inf and NaN, but not +inf. A row without elements, or
    with nothing but -inf in it, gives (-inf, 0.0); one with a NaN (nan, nan). Do not use logaddexp.

    online_softmax([np.array([1.0, 1.0]), np.array([1.0])])  is  (1.0, 3.0)
    online_softmax([np.array([0.0]), np.array([np.log(4)])])  is  (1.386…, 1.25)
    """
    ### BEGIN SOLUTION
    m, s = -np.inf, 0.0
    for chunk in chunks:
        top = np.max(chunk, initial=m)  # of the chunk and of what was before
        shift = 0.0 if top == -np.inf else top
        s = s * np.exp(m - shift) + np.sum(np.exp(chunk - shift))
        m = top
    return m, s
    ### END SOLUTION


def online_by_merging(chunks):
    total = (-np.inf, 0.0)
    for chunk in chunks:
        if len(chunk):
            top = np.max(chunk)
            total = merge(total, (top, np.sum(np.exp(chunk - top)) if top != -np.inf else 0.0))
    return total


def online_one_by_one(chunks):
    m, s = -np.inf, 0.0
    for chunk in chunks:
        for x in chunk:
            if np.isnan(x) or np.isnan(m):
                m, s = np.nan, np.nan
            elif x > m:
                m, s = x, s * np.exp(m - x) + 1.0
            elif x > -np.inf:
                s += np.exp(x - m)
    return m, s


def online_parts_first(chunks):
    """Keeps a pair for each chunk, which is little, and puts a number and a chunk together."""
    parts = []
    for chunk in chunks:
        padded = np.concatenate([[-np.inf], chunk])
        top = padded.max()
        parts.append((top, np.exp(padded - (0.0 if top == -np.inf else top)).sum()))
    total = (-np.inf, 0.0)
    for part in parts:
        total = merge(total, part)
    return total


def walked(chunks, first=-INF, start=0.0, top=lambda chunk, m: np.max(chunk, initial=m),
           scale=lambda m, new: np.exp(m - new), guard=True):
    """The solution with one thing changed; the mistakes below are made of it."""
    m, s = first, start
    for chunk in chunks:
        new = top(chunk, m)
        shift = 0.0 if guard and new == -INF else new
        s = s * scale(m, shift) + np.sum(np.exp(chunk - shift))
        m = new
    return m, s


def online_without_rescaling(chunks):
    return walked(chunks, scale=lambda m, new: 1.0)


def online_wrong_sign(chunks):
    return walked(chunks, scale=lambda m, new: np.exp(new - m) if m > -INF else 1.0)


def online_chunk_maximum(chunks):
    """Takes the maximum of the chunk alone for the new one."""
    return walked(chunks, top=lambda chunk, m: np.max(chunk, initial=-INF))


def online_fresh_sum(chunks):
    return walked(chunks, scale=lambda m, new: 0.0)


def online_without_maximum(chunks):
    m, s = -INF, 0.0
    for chunk in chunks:
        m = np.max(chunk, initial=m)
        s = s + np.sum(np.exp(chunk))
    return m, (s / np.exp(m) if s else 0.0)


def online_without_guard(chunks):
    return walked(chunks, guard=False)


def online_from_a_low(low):
    """Guards the chunk that is all -inf, and not the beginning."""
    return lambda chunks: walked(chunks, first=low)


def online_shift_clamped(chunks):
    m, s = -INF, 0.0
    for chunk in chunks:
        top = np.max(chunk, initial=m)
        shift = np.maximum(top, -1e9)
        s, m = s * np.exp(m - shift) + np.sum(np.exp(chunk - shift)), top
    return m, s


def online_returning_early(chunks):
    """Has the return inside the loop."""
    for chunk in chunks:
        return walked([chunk])


def online_stopping_at_empty(chunks):
    return walked(itertools.takewhile(len, chunks))


def online_python_max(chunks):
    return walked(chunks, top=lambda chunk, m: max(m, np.max(chunk, initial=-INF)))


def online_python_max_turned(chunks):
    return walked(chunks, top=lambda chunk, m: max(np.max(chunk, initial=-INF), m))


def online_python_max_by_element(chunks):
    """The lesson's loop, with the guard."""
    return walked((np.array([x]) for chunk in chunks for x in chunk), top=lambda chunk, m: max(m, chunk[0]))


def online_skipping_minus_infinity(chunks):
    """Python's max, and a chunk with the maximum -inf is passed over: so is the NaN in it."""
    m, s = -INF, 0.0
    for chunk in chunks:
        top = max([m, *chunk])
        if top > -INF:
            s = s * np.exp(m - top) + np.sum(np.exp(chunk - top))
            m = top
    return m, s


def online_passing_over(chunks):
    """The same with NumPy's maximum of the chunk."""
    m, s = -INF, 0.0
    for chunk in chunks:
        top = max(m, chunk.max()) if len(chunk) else m
        if top == -INF:
            continue
        s = s * np.exp(m - top) + np.sum(np.exp(chunk - top))
        m = top
    return m, s


def online_nan_to_num(chunks):
    m, s = walked(chunks, guard=False)
    return m, np.nan_to_num(s)


def online_nan_to_num_each(chunks):
    m, s = -INF, 0.0
    for chunk in chunks:
        top = np.max(chunk, initial=m)
        s = np.nan_to_num(s * np.exp(m - top) + np.sum(np.exp(chunk - top)))
        m = top
    return m, s


def in_two_walks(row):
    """Of a whole row."""
    m = np.max(row, initial=-INF)
    return m, np.sum(np.exp(row - (0.0 if m == -INF else m)))


def online_listed(chunks):
    chunks = list(chunks)
    m = max([np.max(chunk, initial=-INF) for chunk in chunks], default=-INF)
    return m, sum(np.sum(np.exp(chunk - (0.0 if m == -INF else m))) for chunk in chunks)


def online_copied_iterator(chunks):
    first, second = itertools.tee(chunks)
    m = max([np.max(chunk, initial=-INF) for chunk in first], default=-INF)
    return m, sum(np.sum(np.exp(chunk - (0.0 if m == -INF else m))) for chunk in second)


def online_appended(chunks):
    row = np.empty(0)
    for chunk in chunks:
        row = np.append(row, chunk)
    return in_two_walks(row)


def online_all_elements(chunks):
    return in_two_walks(np.array([x for chunk in chunks for x in chunk]))


def online_by_number(chunks):
    m, s = -INF, 0.0
    for number in range(len(chunks)):
        top = np.max(chunks[number], initial=m)
        s, m = s * np.exp(m - top) + np.sum(np.exp(chunks[number] - top)), top
    return m, s


def online_from_the_first(chunks):
    m = np.max(chunks[0])
    return m, np.sum(np.exp(chunks[0] - m))


def online_ignoring_nan(chunks):
    return walked(chunks, top=lambda chunk, m: np.fmax.reduce(chunk, initial=m))


def online_from_zero(chunks):
    return walked(chunks, first=0.0)


def online_sum_from_one(chunks):
    return walked(chunks, start=1.0, scale=lambda m, new: np.exp(m - new) if m > -INF else 1.0)


def online_empty_raises(chunks):
    return walked(chunks, top=lambda chunk, m: np.maximum(m, np.max(chunk)))


def online_two_walks(chunks):
    m, s = -INF, 0.0
    for chunk in chunks:
        m = np.max(chunk, initial=m)
    for chunk in chunks:
        s += np.sum(np.exp(chunk - m))
    return m, s


def online_drops_nan(chunks):
    return walked(chunk[~np.isnan(chunk)] for chunk in chunks)


def online_gives_shares(chunks):
    m, s = walked(chunks)
    return 1 / s


def read_once(function: Callable) -> Callable:
    """Hand the chunks out one at a time, each of them once."""
    def call(chunks):
        parts = [(np.array(chunk, np.float64),) for chunk in chunks]
        return as_pair(with_little_memory(lambda given: function(chunk for (chunk,) in given), parts))
    return call


def rows_in_chunks() -> list[tuple]:
    draw = np.random.default_rng(0)
    rows = [
        [[0.0]], [[1.0, 1.0, 1.0]], [[1.0, 3.0]], [[3.0], [1.0]], [[1.0], [3.0]], [[2.0, 2.0], [2.0]],
        [[1.0, 2.0], [5.0, 0.0], [3.0]], [[-3.0], [-1.0, -2.0]], [[LOWEST], [LOWEST]],
        [[1000.0, 1001.0], [1002.0]], [[-1000.0], [-1002.0]],
        [[-800.0], [800.0]], [[0.0, -INF]], [[1.0, 2.0], [-INF, -INF]], [[-INF, -INF], [1.0, 2.0]], [[-INF]],
        [[-INF], [-INF, -INF]], [], [[]], [[], [1.0, 2.0]], [[1.0], [], [2.0]],
        [[NAN, 1.0]], [[1.0], [NAN]], [[NAN], [1.0]], [[-INF], [NAN]],
        [list(20 * draw.standard_normal(7)) for _ in range(30)],
        20 * draw.standard_normal((64, 256)),
    ]  # fmt: skip
    return [([np.array(chunk, np.float64) for chunk in row],) for row in rows]


def judge_streams(function: Callable, cases: list[tuple], reference: Callable, explain: Callable,
                  whole: str) -> Verdict:
    """As judge_calls, with a sentence for KEPT: at some time it had half of ``whole``."""
    verdict = judge_calls(function, cases, reference, explain=explain)
    failure = verdict.failure
    if failure is None or not equal(failure.got, KEPT):
        return verdict
    sentence = f"Your function needs much memory here: at some time it is more than half of {whole}."
    return Verdict(replace(failure, sentence=sentence, details=failure.details[:1]), verdict.tried)


def explain_row(case, want, got) -> tuple[str, ...]:
    (chunks,) = case
    size = sum(map(len, chunks))
    if size < 1000:
        return explain_pair(case, want, got)
    return (f"given: a row of {size:,} numbers, in {len(chunks)} chunks", *explain_pair((), want, got)[1:])


# ---- how many walks -------------------------------------------------------------------------------------------------

REDUCTIONS = [op for op in OPS if OPS[op].kind is Kind.REDUCTION]


def walks(graph):
    """How many walks over a row one launch needs for the whole graph, unread nodes too: an int.

    The rows are those of the only input, x: f32[4,8]. Every reduction (``OPS[node.op].kind is
    Kind.REDUCTION``) takes whole rows and keeps the axis, so it makes f32[4,1] of f32[4,8].
    Everything else is element-wise, or a constant. During a walk are computed: reductions, and nodes
    that have whole rows, as x has. One number a row is computed between the walks. A reduction's
    result is there only when its walk is over, and each node is computed in the earliest walk that it
    can be in.

    m = max(x), e = exp(x - m), s = sum(e), y = e / s   are 3 walks.  y = neg(x)  is 1.
    """
    ### BEGIN SOLUTION
    rows = graph.inputs[0].type.shape
    ready = {}  # name -> the first walk that can use this value
    most = 0
    for node in graph.nodes:
        walk = max([ready[name] for name in node.inputs], default=1)
        reduces = OPS[node.op].kind is Kind.REDUCTION
        if reduces or (node.type.shape == rows and node.op != "input"):
            most = max(most, walk)
        ready[node.name] = walk + 1 if reduces else walk
    return most
    ### END SOLUTION


def walks_by_recursion(graph):
    nodes = defs(graph)

    def done(name):  # how many walks are over when this value is there
        node = nodes[name]
        return max((done(one) for one in node.inputs), default=0) + (OPS[node.op].kind is Kind.REDUCTION)

    wide = [node for node in graph.nodes if node.type.shape == graph.inputs[0].type.shape and node.op != "input"]
    return max([done(node.name) + 1 for node in wide] + [done(node.name) for node in graph.nodes])


def walks_by_waves(graph):
    computed, count = {node.name for node in graph.nodes if node.op in ("input", "const")}, 0
    todo = [node for node in graph.nodes if node.name not in computed]
    while todo:
        fresh, walked_now = set(), False
        for node in todo:
            if set(node.inputs) <= computed:
                if OPS[node.op].kind is Kind.REDUCTION:
                    fresh.add(node.name)
                else:
                    computed.add(node.name)
                walked_now |= node.name in fresh or node.type.shape[-1:] == graph.inputs[0].type.shape[-1:]
        computed |= fresh
        todo = [node for node in todo if node.name not in computed]
        count += walked_now
    return count


def counted_walks(graph, reduction=1, narrow=False, last=True, join=max, inputs=False, known=REDUCTIONS):
    """The solution with one thing changed; the mistakes below are made of it."""
    ready, most = {}, 0
    for node in graph.nodes:
        walk = join([ready[name] for name in node.inputs] or [1])
        reduces = node.op in known
        wide = node.type.shape == graph.inputs[0].type.shape and (inputs or node.op != "input")
        if reduces or (last and wide) or (narrow and node.type.shape != () and node.op != "input"):
            most = max(most, walk)
        ready[node.name] = walk + reduction if reduces else walk
    return most


def walks_knowing(*ops):
    return lambda graph: counted_walks(graph, known=ops)


def walks_kind_as_text(graph):
    return counted_walks(graph, known=[op for op in OPS if OPS[op].kind == "reduction"])


def walks_list_for_shape(graph):
    """A shape is a tuple, and no tuple is equal to a list."""
    most, ready = 0, {}
    for node in graph.nodes:
        walk = max([ready[name] for name in node.inputs], default=1)
        reduces = OPS[node.op].kind is Kind.REDUCTION
        if reduces or (node.type.shape == [4, 8] and node.op != "input"):
            most = max(most, walk)
        ready[node.name] = walk + reduces
    return most


def walks_zero(graph):
    """As with return inside the loop."""
    return 0


def walks_reductions(graph):
    return sum(OPS[node.op].kind is Kind.REDUCTION for node in graph.nodes)


def walks_reductions_and_one(graph):
    return walks_reductions(graph) + 1


def walks_operations(graph):
    return sum(node.op not in ("input", "const") for node in graph.nodes)


def walks_without_last(graph):
    return counted_walks(graph, last=False)


def walks_always_last(graph):
    return counted_walks(graph, last=False) + 1


def walks_numbers_too(graph):
    return counted_walks(graph, narrow=True)


def walks_first_operand(graph):
    return counted_walks(graph, join=lambda found: found[0])


def walks_last_operand(graph):
    return counted_walks(graph, join=lambda found: found[-1])


def walks_adding(graph):
    return counted_walks(graph, join=sum)


def walks_reduction_later(graph):
    """Puts a reduction one walk after the elements that it reads."""
    ready, most, nodes = {}, 0, defs(graph)
    rows = graph.inputs[0].type.shape
    for node in graph.nodes:
        reduces = OPS[node.op].kind is Kind.REDUCTION
        wide = {name for name in node.inputs if nodes[name].type.shape == rows and nodes[name].op != "input"}
        walk = max([ready[name] + (reduces and name in wide) for name in node.inputs], default=1)
        if reduces or (node.type.shape == rows and node.op != "input"):
            most = max(most, walk)
        ready[node.name] = walk + 1 if reduces else walk
    return most


def walks_read_only(graph):
    needed = {value for _, value in graph.outputs}
    for node in reversed(graph.nodes):
        needed |= set(node.inputs) if node.name in needed else set()
    kept = tuple(node for node in graph.nodes if node.name in needed or node.op == "input")
    return counted_walks(Graph(graph.name, kept, graph.outputs))


def walks_wide_output(graph):
    """Adds a walk if an output has whole rows, whenever it was computed."""
    depth = {}
    for node in graph.nodes:
        reduces = OPS[node.op].kind is Kind.REDUCTION
        depth[node.name] = max((depth[name] for name in node.inputs), default=0) + reduces
    return max(depth.values()) + any(defs(graph)[value].type.shape == (4, 8) for _, value in graph.outputs)


def walks_wide_end(graph):
    """Adds a walk if the last node has whole rows."""
    return counted_walks(graph, last=False) + (graph.nodes[-1].type.shape == (4, 8))


def walks_wide_after(graph):
    """Adds a walk if whole rows are computed after the last reduction of the text."""
    wide = False
    for node in graph.nodes:
        wide = OPS[node.op].kind is not Kind.REDUCTION and (wide or node.type.shape == (4, 8) and node.op != "input")
    return counted_walks(graph, last=False) + wide


def walks_longest_chain(graph):
    depth = {}
    for node in graph.nodes:
        depth[node.name] = max((depth[name] for name in node.inputs), default=0) + (node.op not in ("input", "const"))
    return max(depth.values())


def row_graph(name: str, *lines: str, outputs: str = "y") -> Graph:
    body = "\n ".join(line.replace("@", "{axis=[1], keepdims=true}") for line in lines)
    return parse(f"graph {name}(x: f32[4,8]) -> ({outputs}) {{\n {body}\n return {outputs}\n}}")


ROWS = (
    row_graph("one", "y = neg(x)"),
    row_graph("total", "y = sum(x) @"),
    row_graph("chain", "a = exp(x)", "y = neg(a)"),
    row_graph("norm", "a = mul(x, x)", "y = sum(a) @"),
    row_graph("negated", "s = sum(x) @", "y = neg(s)"),
    row_graph("minus", "s = sum(x) @", "y = sub(x, s)"),
    row_graph("turned", "s = sum(x) @", "y = sub(s, x)"),
    row_graph("lowest", "a = min(x) @", "y = sub(x, a)"),
    row_graph("product", "a = prod(x) @", "y = div(x, a)"),
    row_graph("width", "a = max(x) @", "b = min(x) @", "y = sub(a, b)"),
    row_graph("scaled", "c = const(2.0) : f32[]", "s = sum(x) @", "y = mul(s, c)"),
    row_graph("both", "a = max(x) @", "b = sum(x) @", "c = sub(x, a)", "y = div(c, b)"),
    row_graph("logsum", "m = max(x) @", "d = sub(x, m)", "e = exp(d)", "s = sum(e) @", "l = log(s)", "y = add(l, m)"),
    row_graph("beside", "s = sum(x) @", "y = neg(x)", outputs="y, s"),
    row_graph("early", "s = sum(x) @", "d = sub(x, s)", "t = sum(d) @", "y = neg(d)"),
    row_graph("unseen", "s = sum(x) @", "d = sub(x, s)", "y = neg(s)"),
    row_graph("softmax", "m = max(x) @", "d = sub(x, m)", "e = exp(d)", "s = sum(e) @", "y = div(e, s)"),
    row_graph("rms", "q = mul(x, x)", "a = mean(q) @", "r = sqrt(a)", "y = div(x, r)"),
    row_graph("layernorm", "a = mean(x) @", "d = sub(x, a)", "q = mul(d, d)", "v = mean(q) @", "r = sqrt(v)",
              "y = div(d, r)"),
    row_graph("unread", "a = max(x) @", "b = sum(x) @", "c = add(a, b)", "y = mul(c, c)"),
    row_graph("dropped", "s = sum(x) @", "d = sub(x, s)", "y = neg(x)"),
    row_graph("late", "a = sum(x) @", "d = sub(x, a)", "b = max(d) @", "c = add(a, b)", "y = mul(c, x)"),
)


def explain_walks(case, want, got) -> tuple[str, ...]:
    return f"it should give {want}", f"and gives      {got!r}"


def as_int(function: Callable) -> Callable:
    """A number is a number, NumPy's too."""
    def call(graph):
        got = function(graph)
        return int(got) if isinstance(got, (np.integer, np.bool_)) else got
    return call


# ---- stretch: attention ---------------------------------------------------------------------------------------------


def tiled_attention(q, tiles):
    """softmax(q @ k.T + mask) @ v, without ever having all scores: an array with a row for each of q's.

    ``q`` has one row a query, and is scaled already. The keys and values come in ``tiles``, once:
    each is (k, v, mask), where k has t rows as wide as q's, v has t rows, and mask is (rows of q, t):
    0 where a query may look at a key, -inf where not. All are float64, the answer too. Keep for each
    query the running maximum, the running sum, and a running mixture: the sum of exp(score - m) * v.
    Divide at the end. A query that may look at nothing gives NaN, as with NumPy's softmax: here it is
    0 / 0. A tile is valid only until the next one is asked for: then its memory is used again. There
    may be very many: check measures that less than half of the scores is in memory.

    With q = [[0.0]] and the tiles ([[0.0]], [[1.0]], [[0.0]]) and ([[0.0]], [[3.0]], [[0.0]]) both
    scores are 0, so the answer is the mean of the values, [[2.0]].
    """
    ### BEGIN SOLUTION
    m = np.full((len(q), 1), -np.inf)
    s = np.zeros((len(q), 1))
    mixed = 0.0
    for k, v, mask in tiles:
        scores = q @ k.T + mask
        top = np.maximum(m, scores.max(axis=1, keepdims=True))
        shift = np.where(top == -np.inf, 0.0, top)
        e = np.exp(scores - shift)
        shrink = np.exp(m - shift)
        s = s * shrink + e.sum(axis=1, keepdims=True)
        mixed = mixed * shrink + e @ v
        m = top
    return mixed / s
    ### END SOLUTION


def tiled_by_rows(q, tiles):
    state = [(-np.inf, 0.0, 0.0)] * len(q)
    for k, v, mask in tiles:
        for i, (m, s, mixed) in enumerate(state):
            scores = k @ q[i] + mask[i]
            top = max(m, scores.max())
            if top > -np.inf:
                e, shrink = np.exp(scores - top), np.exp(m - top)
                state[i] = (top, s * shrink + e.sum(), mixed * shrink + (e[:, None] * v).sum(axis=0))
            width = v.shape[1]
    return np.array([np.broadcast_to(np.divide(mixed, s), (width,)) for m, s, mixed in state])


def tiled_by_shares(q, tiles):
    """Keeps the result of the part so far instead of the mixture, weighted with its sum."""
    m, s, result = np.full((len(q), 1), -np.inf), np.zeros((len(q), 1)), None
    for k, v, mask in tiles:
        scores = q @ k.T + mask
        top = np.maximum(m, scores.max(1, keepdims=True))
        shift = np.where(np.isneginf(top), 0, top)
        e = np.exp(scores - shift)
        before = s * np.exp(m - shift)
        s = before + e.sum(1, keepdims=True)
        mixture = e @ v if result is None else np.where(before == 0, 0, before * result) + e @ v
        result, m = mixture / s, top
    return result


def tiled_parts_first(q, tiles):
    """Keeps three arrays for each tile, which is little, and puts those together."""
    parts = []
    for k, v, mask in tiles:
        scores = q @ k.T + mask
        top = scores.max(axis=1, keepdims=True)
        e = np.exp(scores - np.where(top == -np.inf, 0.0, top))
        parts.append((top, e.sum(axis=1, keepdims=True), e @ v))
    tops, sums, mixtures = (np.array(one) for one in zip(*parts))
    largest = tops.max(axis=0)
    weights = np.exp(tops - np.where(largest == -np.inf, 0.0, largest))
    return (weights * mixtures).sum(axis=0) / (weights * sums).sum(axis=0)


def tiled(q, tiles, shrink_sum=True, shrink_mixed=True, guard=True, axis=1, mask_in=True, divide=True, shifted=True):
    """The solution with one thing changed; the mistakes below are made of it."""
    m, s, mixed = np.full((len(q), 1), -INF), np.zeros((len(q), 1)), 0.0
    for k, v, mask in tiles:
        scores = q @ k.T + (mask if mask_in else 0)
        top = scores.max(axis=axis, keepdims=True) if axis == 1 else scores.max(axis=0)[:, None]
        top = np.maximum(m, top)
        shift = np.where(top == -INF, 0.0, top) if guard else top
        e = np.exp(scores - shift) if shifted else np.exp(scores)
        shrink = np.exp(m - shift) if shifted else 1.0
        s = s * (shrink if shrink_sum else 1.0) + e.sum(axis=1, keepdims=True)
        mixed = mixed * (shrink if shrink_mixed else 1.0) + e @ v
        m = top
    return mixed / s if divide else mixed


def tiled_mixture_kept(q, tiles):
    return tiled(q, tiles, shrink_mixed=False)


def tiled_sum_kept(q, tiles):
    return tiled(q, tiles, shrink_sum=False)


def tiled_nothing_shrinks(q, tiles):
    return tiled(q, tiles, shrink_sum=False, shrink_mixed=False)


def tiled_without_guard(q, tiles):
    return tiled(q, tiles, guard=False)


def tiled_without_mask(q, tiles):
    return tiled(q, tiles, mask_in=False)


def tiled_mask_after(q, tiles):
    """Takes the maximum of all scores, and then sets to 0 what may not be seen."""
    m, s, mixed = np.full((len(q), 1), -INF), np.zeros((len(q), 1)), 0.0
    for k, v, mask in tiles:
        scores = q @ k.T
        top = np.maximum(m, scores.max(axis=1, keepdims=True))
        e, shrink = np.exp(scores - top) * (mask == 0), np.exp(m - top)
        s, mixed, m = s * shrink + e.sum(axis=1, keepdims=True), mixed * shrink + e @ v, top
    return mixed / s


def tiled_undivided(q, tiles):
    return tiled(q, tiles, divide=False)


def tiled_without_maximum(q, tiles):
    return tiled(q, tiles, shifted=False)


def tiled_columns(q, tiles):
    return tiled(q, tiles, axis=0)


def tiled_average(q, tiles):
    """Averages the attention of the tiles."""
    found = [tiled(q, [tile]) for tile in tiles]
    return sum(found) / len(found)


def tiled_last(q, tiles):
    for tile in tiles:
        found = tiled(q, [tile])
    return found


def tiled_by_the_whole(q, tiles):
    """One maximum for all queries."""
    m, s, mixed = -INF, np.zeros((len(q), 1)), 0.0
    for k, v, mask in tiles:
        scores = q @ k.T + mask
        top = max(m, scores.max())
        shift = 0.0 if top == -INF else top
        e, shrink = np.exp(scores - shift), np.exp(m - shift)
        s, mixed, m = s * shrink + e.sum(axis=1, keepdims=True), mixed * shrink + e @ v, top
    return mixed / s


def tiled_dividing_each(q, tiles):
    """Divides the mixture by the sum in each tile."""
    m, s, mixed = np.full((len(q), 1), -INF), np.zeros((len(q), 1)), 0.0
    for k, v, mask in tiles:
        scores = q @ k.T + mask
        top = np.maximum(m, scores.max(axis=1, keepdims=True))
        shift = np.where(top == -INF, 0.0, top)
        e, shrink = np.exp(scores - shift), np.exp(m - shift)
        s = s * shrink + e.sum(axis=1, keepdims=True)
        mixed, m = (mixed * shrink + e @ v) / s, top
    return mixed


def tiled_zero_for_nothing(q, tiles):
    return np.nan_to_num(tiled(q, tiles))


def tiled_with_epsilon(q, tiles):
    """Divides by a little more than the sum, which is the mixture of ones."""
    both = tiled(q, ((k, np.hstack([v, np.ones((len(v), 1))]), mask) for k, v, mask in tiles), divide=False)
    return both[:, :-1] / (both[:, -1:] + 1e-9)


def tiled_from(low):
    """Begins the maximum with a number."""
    def function(q, tiles):
        m, s, mixed = np.full((len(q), 1), low), np.zeros((len(q), 1)), 0.0
        for k, v, mask in tiles:
            scores = q @ k.T + mask
            top = np.maximum(m, scores.max(axis=1, keepdims=True))
            e, shrink = np.exp(scores - top), np.exp(m - top)
            s, mixed, m = s * shrink + e.sum(axis=1, keepdims=True), mixed * shrink + e @ v, top
        return mixed / s
    return function


def tiled_shift_clamped(q, tiles):
    m, s, mixed = np.full((len(q), 1), -INF), np.zeros((len(q), 1)), 0.0
    for k, v, mask in tiles:
        scores = q @ k.T + mask
        top = np.maximum(m, scores.max(axis=1, keepdims=True))
        shift = np.maximum(top, -1e9)
        e, shrink = np.exp(scores - shift), np.exp(m - shift)
        s, mixed, m = s * shrink + e.sum(axis=1, keepdims=True), mixed * shrink + e @ v, top
    return mixed / s


def tiled_flat(q, tiles, shrink_as=lambda shrink: shrink, divide_as=lambda s: s):
    """Keeps the maxima and sums without the axis of length 1."""
    m, s, mixed = np.full(len(q), -INF), np.zeros(len(q)), 0.0
    for k, v, mask in tiles:
        scores = q @ k.T + mask
        top = np.maximum(m, scores.max(axis=1))
        shift = np.where(top == -INF, 0.0, top)
        e, shrink = np.exp(scores - shift[:, None]), np.exp(m - shift)
        s, mixed, m = s * shrink + e.sum(axis=1), mixed * shrink_as(shrink) + e @ v, top
    return mixed / divide_as(s)


def tiled_flat_divided_right(q, tiles):
    return tiled_flat(q, tiles, divide_as=lambda s: s[:, None])


def tiled_flat_shrunk_right(q, tiles):
    return tiled_flat(q, tiles, shrink_as=lambda shrink: shrink[:, None])


def tiled_adding_shares(q, tiles):
    """Adds up what each tile gives by itself."""
    return sum(tiled(q, [tile]) for tile in tiles)


def tiled_adding_running_shares(q, tiles):
    """Divides each tile's part by the sum so far, and adds it up."""
    m, s, result = np.full((len(q), 1), -INF), np.zeros((len(q), 1)), 0.0
    for k, v, mask in tiles:
        scores = q @ k.T + mask
        top = np.maximum(m, scores.max(axis=1, keepdims=True))
        shift = np.where(top == -INF, 0.0, top)
        e, shrink = np.exp(scores - shift), np.exp(m - shift)
        s = s * shrink + e.sum(axis=1, keepdims=True)
        result, m = result * shrink + e @ v / s, top
    return result


def tiled_returning_early(q, tiles):
    """Has the return inside the loop."""
    for tile in tiles:
        return tiled(q, [tile])


def tiled_scaled_again(q, tiles):
    return tiled(q / np.sqrt(q.shape[1]), tiles)


def tiled_mask_clamped(q, tiles):
    return tiled(q, ((k, v, np.maximum(mask, -1e30)) for k, v, mask in tiles))


def tiled_in_float32(q, tiles):
    return tiled(q, tiles).astype(np.float32)


def attend(q, tiles):
    """All at once, of a list of tiles."""
    k, v, mask = (np.concatenate([tile[part] for tile in tiles], axis=part // 2) for part in range(3))
    return tiled(q, [(k, v, mask)])


def tiled_listed(q, tiles):
    return attend(q, list(tiles))


def tiled_copied(q, tiles):
    return attend(q, [tuple(map(np.copy, tile)) for tile in tiles])


def tiled_all_scores(q, tiles):
    """Stores the scores, and takes a plain softmax."""
    scores, values = np.empty((len(q), 0)), []
    for k, v, mask in tiles:
        scores = np.append(scores, q @ k.T + mask, axis=1)
        values.extend(v.tolist())
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True) @ np.array(values)


def tiled_by_number(q, tiles):
    return attend(q, [tiles[number] for number in range(len(tiles))])


def tiles_once(function: Callable) -> Callable:
    """Hand the tiles out one at a time, and round what comes back."""
    def call(q, tiles):
        parts = [tuple(map(np.array, tile)) for tile in tiles]
        got = with_little_memory(lambda given: function(q, given), parts)
        if isinstance(got, np.ndarray) and got.dtype.kind == "f" and got.dtype.itemsize >= 8:
            return np.array([rounded(one) for one in got.ravel()]).reshape(got.shape)
        return got
    return call


def tile_cases() -> list[tuple]:
    draw = np.random.default_rng(0)

    def case(queries, keys, width, size, mask=None, scale=1.0):
        q, k, v = (draw.integers(-3, 4, shape) * 1.0 for shape in ((queries, width), (keys, width), (keys, width + 1)))
        mask = np.zeros((queries, keys)) if mask is None else np.where(mask, 0.0, -INF)
        return q * scale, [(k[at:at + size], v[at:at + size], mask[:, at:at + size]) for at in range(0, keys, size)]

    def simple(*tiles, queries=((0.0,),)):
        return np.array(queries), [tuple(np.array(part, np.float64) for part in tile) for tile in tiles]

    causal = np.tri(4, dtype=bool)
    return [
        simple(([[0.0]], [[1.0]], [[0.0]])),
        simple(([[0.0]], [[1.0]], [[0.0]]), ([[0.0]], [[3.0]], [[0.0]])),
        simple(([[0.0]], [[1.0]], [[0.0]]), ([[2.0]], [[3.0]], [[0.0]]), queries=[[1.0]]),
        simple(([[2.0]], [[1.0]], [[0.0]]), ([[0.0], [1.0]], [[3.0], [5.0]], [[0.0, 0.0]]), queries=[[1.0]]),
        simple(*[([[0.0]], [[value]], [[0.0]]) for value in (1.0, 3.0, 8.0)]),
        simple(([[500.0]], [[1.0]], [[0.0]]), ([[501.0]], [[3.0]], [[0.0]]), queries=[[2.0]]),
        simple(*[([[LOWEST]], [[value]], [[0.0]]) for value in (1.0, 3.0)], queries=[[1.0]]),
        simple(([[0.0], [0.0]], [[1.0], [3.0]], [[0.0, -INF]])),
        simple(([[0.0]], [[1.0]], [[0.0]]), ([[0.0]], [[3.0]], [[-INF]])),
        simple(([[0.0]], [[1.0]], [[-INF]]), ([[0.0]], [[3.0]], [[0.0]])),
        simple(([[0.0]], [[1.0]], [[-INF]])),
        simple(([[1000.0], [0.0]], [[1.0], [3.0]], [[-INF, 0.0]]), queries=[[1.0]]),
        case(2, 2, 1, 2), case(2, 4, 2, 2), case(3, 6, 2, 3), case(4, 4, 2, 2, causal), case(4, 4, 2, 2, causal[::-1]),
        case(2, 5, 2, 2, scale=300.0), case(5, 40, 4, 8), case(1, 7, 3, 3),
        case(4, 8192, 2, 128),
    ]  # fmt: skip


def explain_tiles(case, want, got) -> tuple[str, ...]:
    q, tiles = case
    if q.size + sum(k.size for k, _, _ in tiles) <= 8:
        lines = [f"q = {show(q)}"]
        lines += [f"tile {number}: k = {show(k)}, v = {show(v)}, mask = {show(mask)}"
                  for number, (k, v, mask) in enumerate(tiles)]
    else:
        lines = [f"{len(q)} queries, {len(tiles)} tiles of up to {len(tiles[0][0])} keys"]
    if not isinstance(got, np.ndarray):
        return (*lines, "it should give an array", f"and gives {got!r}")
    if got.shape != want.shape:
        return (*lines, f"it should give an array of shape {want.shape}", f"and gives one of shape {got.shape}")
    if got.dtype != want.dtype:
        return (*lines, f"it should give an array of {want.dtype}", f"and gives one of {got.dtype}")
    at = tuple(map(int, np.argwhere(~((want == got) | (np.isnan(want) & np.isnan(got))))[0]))
    return (*lines, f"element {list(at)} should be {show(want[at])}, and is {show(got[at])}")


# ---- a fuser to refute ----------------------------------------------------------------------------------------------


def fuse_by_shape(graph):
    """Row fusion: a node joins its readers if it has the rows' shape, or one number for each row."""
    nodes, readers, last = defs(graph), users(graph), {}
    outputs = {value for public, value in graph.outputs}
    for node in reversed(graph.nodes):
        if node.op in ("input", "const"):
            continue
        ends = {last[name] for name in readers[node.name]}
        end = nodes[ends.pop()] if len(ends) == 1 and node.name not in outputs else node
        shape = end.type.shape
        fits = node.type.shape in (shape, shape[:-1] + (1,), shape[:-1])
        computes = OPS[node.op].kind in (Kind.ELEMENTWISE, Kind.REDUCTION)
        last[node.name] = end.name if fits and computes else node.name
    groups = {}
    for name, end in reversed(last.items()):
        groups.setdefault(end, []).append(name)
    return [tuple(group) for group in groups.values()]


def judge_rows(fuser: Callable, graph: Graph) -> tuple[Failure | None, Grouped]:
    """Does a wrong fuser put together what no launch over rows, or over columns, can compute?"""
    groups, launches = in_order(fuser(graph), graph), package_fuse(graph).clusters
    shown = Grouped(graph, tuple(groups))
    for group in groups:
        if any(set(group) <= set(launch.nodes) for launch in launches):
            continue
        if found := mixed_up(graph, group):
            name, why = found
            sentence = f"Your function put {name} into the group ({', '.join(group)}), but {name} {why}."
            return Failure("illegal", sentence, graph, groups=tuple(groups)), shown
    return None, shown


LACKS = (
    (Harmless.has_no_reduction,
     "Without a reduction nothing needs a whole row. Give the graph a sum or a maximum."),
    (Harmless.adds_nothing_up,
     "The reduced axis has length 1, so there is nothing to add up. Take longer rows."),
    (Harmless.has_no_square,
     "With 2 rows of 4, one number a row and one number a column have different shapes. Which matrix makes them"
     " alike?"),
    (Harmless.reduces_all,
     "One number for all is none for a row, so the fuser leaves it apart. Reduce one axis of a matrix."),
    (Harmless.returns_it,
     "The reduced numbers are an output. So they are stored, and are a group of their own. Return only what reads"
     " them."),
    (Harmless.stays_narrow,
     "Nothing reads the reduced numbers beside a whole matrix. The broadcast is missing in which one number a row is"
     " read as one number a column."),
    (Harmless.reads_columns,
     "A sum along axis 0 is one number a column, and it is read as one number a column. That is right: a launch may"
     " walk along columns, too. Which sum is read as what it is not?"),
    (Harmless.is_one_launch,
     "The matrix is square. Now which number does the broadcast give to which element, if keepdims is left out?"),
)  # fmt: skip


def hint_for_axes(graph: Graph, got: Grouped) -> str:
    """What a graph lacks that does not refute: the first sentence that fits."""
    found = Harmless(graph, got.groups)
    if sentence := next((sentence for lacks, sentence in LACKS if lacks(found)), ""):
        return sentence
    name, launch, why = found.refused[0]
    if "library" in why:
        why = "it generates no kernel for that"
    return (f"The package leaves {name} apart from the launch ({', '.join(launch)}): {why}. This fuser cuts"
            " otherwise, and does no harm: in its groups each number is read along the axis that it belongs to. Look"
            " for one number a row that is read as one number a column.")


EXERCISES = (
    Exercise(
        "09", "Merge two partial results", merge,
        lambda function: judge_calls(function, MERGES, lambda *case: as_pair(merge(*case)), explain=explain_pair),
        (
            "A sum of exp(x - m1) becomes one of exp(x - m) when every term is multiplied with the same number.",
            "Take the larger maximum m. Multiply each sum with exp(its own maximum - m), and add. If both maxima are "
            "-inf, subtract 0 "
            "in place of m: exp(-inf - 0) is 0, and exp(-inf - -inf) is NaN. np.maximum hands a NaN on, Python's max "
            "may lose it.",
            "(m1, s1), (m2, s2) = left, right\nm = np.maximum(…)\nshift = 0.0 if … else m\n"
            "s = s1 * np.exp(…) + s2 * np.exp(…)\nreturn …",
        ),
        (
            Mistake(
                merge_adding, "wrong-value",
                "The sums were made with different maxima. They can be added only after both are seen from one.",
            ),
            Mistake(
                merge_scaling_products, "wrong-value",
                "The two sums are added, not multiplied: each covers its own elements.",
            ),
            Mistake(
                merge_left_only, "wrong-value",
                "Only the left sum is rescaled. The maximum may be the left one, and then the right sum must shrink.",
            ),
            Mistake(
                merge_right_only, "wrong-value",
                "Only the right sum is rescaled. The maximum may be the right one, and then the left sum must"
                " shrink.",
            ),
            Mistake(
                merge_wrong_sign, "wrong-value",
                "The exponent has the wrong sign: exp(old - new) is at most 1, so that a sum shrinks when the"
                " maximum grows.",
            ),
            Mistake(
                merge_to_the_smaller, "wrong-value",
                "The smaller maximum is no maximum of both. Beside it, exp of the larger one may overflow.",
            ),
            Mistake(
                merge_without_exp, "wrong-value",
                "A difference of maxima is an exponent: the factor is exp(m1 - m), not m1 - m.",
            ),
            Mistake(
                merge_without_shift, "wrong-value",
                "exp of the maximum itself overflows at 710 and is 0 below -746. Only exp of a difference is safe.",
            ),
            Mistake(
                merge_without_guard, "wrong-value",
                "-inf - -inf is NaN. If the common maximum is -inf, subtract 0 in its place.",
            ),
            Mistake(
                merge_wrong_neutral, "wrong-value",
                "(-inf, 0) holds nothing, so merging with it gives the other part.",
            ),
            Mistake(merge_nan_to_num, "wrong-value", NUMBER_FOR_NAN),
            Mistake(merge_nan_to_num_all, "wrong-value", NUMBER_FOR_NAN),
            *[Mistake(merge_clamped(low), "wrong-value", SMALL_IS_NOT_INF) for low in LOWS],
            Mistake(merge_shift_clamped, "wrong-value", SHIFT_ABOVE),
            Mistake(merge_nanmax, "wrong-value", PYTHON_MAX),
            Mistake(merge_by_comparing, "wrong-value", PYTHON_MAX),
            Mistake(
                merge_python_max, "wrong-value", PYTHON_MAX,
            ),
            Mistake(
                merge_swapped, "wrong-value",
                "The maximum comes first, then the sum.",
            ),
        ),
        (merge_by_cases, merge_with_arrays, merge_above_the_lowest),
        tuple(MERGES),
        adapt=lambda function: lambda left, right: as_pair(function(left, right)),
        praise="It does not matter in which order parts are merged: that is why 256 threads can share a row, and meet "
               "in a tree.",
    ),
    Exercise(
        "09", "Maximum and sum in one walk", online_softmax,
        lambda function: judge_streams(function, rows_in_chunks(), read_once(online_softmax), explain_row, "the row"),
        (
            "Whenever the maximum grows, the sum so far is seen from a new point. One factor repairs all of its terms "
            "at once.",
            "Start with (-inf, 0). For each chunk: the new maximum is that of the chunk and the old one (np.max has "
            "initial=, which "
            "also helps with an empty chunk). Multiply the sum with exp(old - new), add the chunk's exp(x - new), and "
            "only then "
            "forget the old maximum. While the maximum is -inf, subtract 0 in its place.",
            "m, s = -np.inf, 0.0\nfor chunk in chunks:\n    top = np.max(chunk, initial=…)\n"
            "    shift = 0.0 if … else top\n"
            "    s = s * … + np.sum(…)\n    m = …\nreturn m, s",
        ),
        (
            Mistake(
                online_without_rescaling, "wrong-value",
                "The sum so far was made with the old maximum. When the maximum grows, it must shrink by exp(old -"
                " new), with the old maximum, before that is overwritten.",
            ),
            Mistake(
                online_wrong_sign, "wrong-value",
                "The factor is exp(old - new), at most 1. Turned round, the sum grows where it should shrink.",
            ),
            Mistake(
                online_chunk_maximum, "wrong-value",
                "The running maximum is that of the chunk and of all that came before. It never falls.",
            ),
            Mistake(
                online_fresh_sum, "wrong-value",
                "The sum starts anew with each chunk. What came before shrinks, and stays.",
            ),
            Mistake(
                online_without_maximum, "wrong-value",
                "exp(x) itself overflows at 710. Subtract the maximum so far before exp.",
            ),
            Mistake(
                online_without_guard, "wrong-value",
                "-inf - -inf is NaN: while nothing but -inf has come, subtract 0 in place of the maximum.",
            ),
            *[Mistake(online_from_a_low(low), "wrong-value", SMALL_IS_NOT_INF) for low in LOWS],
            Mistake(online_shift_clamped, "wrong-value", SHIFT_ABOVE),
            Mistake(
                online_returning_early, "wrong-value",
                "The answer is that of the first chunk: return ends the function, and belongs behind the loop.",
            ),
            Mistake(
                online_stopping_at_empty, "wrong-value",
                "An empty chunk is not the end of the row. Go on with the next one: break and return end the walk.",
            ),
            Mistake(online_nan_to_num, "wrong-value", NUMBER_FOR_NAN),
            Mistake(online_nan_to_num_each, "wrong-value", NUMBER_FOR_NAN),
            Mistake(
                online_python_max, "wrong-value", PYTHON_MAX,
            ),
            Mistake(online_python_max_turned, "wrong-value", PYTHON_MAX),
            Mistake(online_python_max_by_element, "wrong-value", PYTHON_MAX),
            Mistake(online_skipping_minus_infinity, "wrong-value", PYTHON_MAX),
            Mistake(online_passing_over, "wrong-value", PYTHON_MAX),
            Mistake(online_ignoring_nan, "wrong-value", PYTHON_MAX),
            Mistake(
                online_drops_nan, "wrong-value",
                "The NaNs were taken out. A NaN in the row makes both results NaN, as in NumPy.",
            ),
            Mistake(
                online_from_zero, "wrong-value",
                "The maximum begins with -inf: 0 would be larger than every element of a row of negative ones.",
            ),
            Mistake(
                online_sum_from_one, "wrong-value",
                "The sum of nothing is 0, not 1.",
            ),
            Mistake(
                online_empty_raises, "raises",
                "A chunk may be empty, and np.max of nothing raises an error. With initial= there is always"
                " something.",
            ),
            Mistake(
                online_two_walks, "wrong-value",
                "These are two walks. The chunks come only once: in the second loop nothing is left.",
            ),
            Mistake(online_listed, "wrong-value", CAME_ONCE),
            Mistake(online_copied_iterator, "wrong-value", CAME_ONCE),
            Mistake(online_appended, "wrong-value", ROW_KEPT),
            Mistake(online_all_elements, "wrong-value", ROW_KEPT),
            Mistake(online_by_number, "raises", NO_NUMBERS),
            Mistake(online_from_the_first, "raises", NO_NUMBERS),
            Mistake(
                online_gives_shares, "wrong-value",
                "Return the pair (m, s). The shares exp(x - m) / s come in a later walk.",
            ),
        ),
        (online_by_merging, online_one_by_one, online_parts_first),
        tuple(rows_in_chunks()[:-1]),
        adapt=read_once,
        without=("logaddexp",),
        praise="One walk instead of two, and the row need never be in memory as a whole.",
    ),
    Exercise(
        "09", "Count the walks", walks,
        lambda function: judge_calls(as_int(function), [(graph,) for graph in ROWS], walks, explain=explain_walks),
        (
            "What needs the result of a reduction has to wait for the end of its walk. How often does one wait for "
            "another?",
            "Go through the nodes in order. Keep for each value the first walk that can use it: 1 for inputs and "
            "constants, and else the "
            "largest of its operands. For a reduction it is one more. The answer is the largest walk in which a "
            "reduction or a node "
            "with whole rows is computed.",
            "ready, most = {}, 0\nfor node in graph.nodes:\n"
            "    walk = max([… for name in node.inputs], default=1)\n    if …:\n"
            "        most = max(most, walk)\n    ready[node.name] = … if … else walk\nreturn most",
        ),
        (
            Mistake(
                walks_reductions, "wrong-value",
                "Reductions are not walks: the elements that follow the last one need a walk of their own, and two"
                " that do not wait for each other share one.",
            ),
            Mistake(
                walks_reductions_and_one, "wrong-value",
                "Not after every reduction comes a walk: one number a row needs none, and two reductions may share"
                " one.",
            ),
            Mistake(
                walks_operations, "wrong-value",
                "That is a walk for each operation, as without fusion. In one walk, all that is ready is computed"
                " together.",
            ),
            Mistake(
                walks_without_last, "wrong-value",
                ONLY_REDUCTIONS,
            ),
            Mistake(walks_list_for_shape, "wrong-value", ONLY_REDUCTIONS),
            Mistake(
                walks_kind_as_text, "wrong-value",
                "No reduction was found. OPS[node.op].kind is a Kind, never a text: compare it with Kind.REDUCTION.",
            ),
            *[Mistake(walks_knowing(*ops), "wrong-value", NOT_ALL_REDUCTIONS) for ops in SOME_REDUCTIONS],
            Mistake(
                walks_zero, "wrong-value",
                "All answers are 0. Does return stand behind the loop? Are kinds compared with Kind.REDUCTION, and"
                " shapes with a tuple?",
            ),
            Mistake(
                walks_always_last, "wrong-value",
                "A last walk is needed only where whole rows are computed after the last reduction.",
            ),
            Mistake(
                walks_numbers_too, "wrong-value",
                "One number a row is computed between the walks, once, and needs none.",
            ),
            Mistake(
                walks_first_operand, "wrong-value",
                "A node waits for all its operands, not for the first one only.",
            ),
            Mistake(
                walks_last_operand, "wrong-value",
                "A node waits for all its operands, not for the last one only.",
            ),
            Mistake(
                walks_adding, "wrong-value",
                "Operands do not add up: a node waits for the latest of them.",
            ),
            Mistake(
                walks_reduction_later, "wrong-value",
                "A reduction runs in its operand's walk: it takes each element in as it is computed. Only its readers"
                " wait for the next one.",
            ),
            Mistake(walks_wide_output, "wrong-value", WIDE_LAST),
            Mistake(walks_wide_end, "wrong-value", WIDE_LAST),
            Mistake(walks_wide_after, "wrong-value", WIDE_LAST),
            Mistake(
                walks_read_only, "wrong-value",
                "The launch computes the whole graph: what nobody reads is computed, too, until dce deletes it.",
            ),
            Mistake(
                walks_longest_chain, "wrong-value",
                "Element-wise operations follow each other within one walk. Only the result of a reduction makes"
                " others wait.",
            ),
        ),
        (walks_by_recursion, walks_by_waves),
        tuple((graph,) for graph in ROWS),
        adapt=as_int,
        praise="Where such a graph is one launch, its kernel has exactly as many loops over the row: the tests count"
               " them.",
    ),
    Exercise(
        "09", "Attention in tiles", tiled_attention,
        lambda function: judge_streams(
            function, tile_cases(), tiles_once(tiled_attention), explain_tiles, "the scores"),
        (
            "It is online_softmax for each row of the scores, with one more thing to carry: the mixture of values, "
            "which shrinks as the sum does.",
            "For each query keep m (-inf), s (0) and mixed (0). For each tile: the scores, their row maxima together "
            "with m, the exponentials "
            "from there, one factor exp(m - top) for each query. s and mixed are multiplied with it, and get e.sum "
            "and e @ v. At the end divide.",
            "m, s, mixed = np.full((len(q), 1), -np.inf), …, 0.0\nfor k, v, mask in tiles:\n    scores = …\n"
            "    top = np.maximum(m, …)\n"
            "    shift = np.where(…)\n    e, shrink = np.exp(…), np.exp(…)\n    s = s * shrink + …\n"
            "    mixed = …\n    m = top\nreturn mixed / s",
        ),
        (
            Mistake(
                tiled_mixture_kept, "wrong-value",
                "The mixture was made with the old maximum, too. It shrinks by the same factor as the sum.",
            ),
            Mistake(
                tiled_sum_kept, "wrong-value",
                "The sum was made with the old maximum. It shrinks by the same factor as the mixture.",
            ),
            Mistake(
                tiled_nothing_shrinks, "wrong-value",
                "When the maximum grows, sum and mixture must shrink by exp(old - new).",
            ),
            Mistake(
                tiled_without_guard, "wrong-value",
                "-inf - -inf is NaN: while a query has seen nothing but -inf, subtract 0 in place of the maximum.",
            ),
            Mistake(
                tiled_without_mask, "wrong-value",
                "The mask is added to the scores: exp(-inf) is 0, so what may not be seen counts for nothing.",
            ),
            Mistake(
                tiled_mask_after, "wrong-value",
                "The maximum was taken before the mask. A hidden score of 1000 then sets it, all that may be seen"
                " becomes exp(-1000) = 0, and the answer 0 / 0. Add the mask first.",
            ),
            Mistake(
                tiled_undivided, "wrong-value",
                "At the end the mixture is divided by the sum.",
            ),
            Mistake(
                tiled_dividing_each, "wrong-value",
                "The mixture is divided in each tile, and what was divided is divided again. While a query may look at"
                " nothing, that is 0 / 0. Divide once, after the loop.",
            ),
            Mistake(tiled_adding_shares, "wrong-value", SHARES_ADDED),
            Mistake(tiled_adding_running_shares, "wrong-value", SHARES_ADDED),
            *[Mistake(tiled_from(low), "wrong-value", NUMBER_FOR_INF) for low in (0.0, *LOWS[:-1])],
            Mistake(tiled_shift_clamped, "wrong-value", NUMBER_FOR_INF),
            Mistake(tiled_flat, "wrong-value", FLAT),
            Mistake(tiled_flat_shrunk_right, "wrong-value", FLAT),
            Mistake(tiled_flat_divided_right, "raises", FLAT),
            Mistake(
                tiled_returning_early, "wrong-value",
                "The answer is that of the first tile: return ends the function, and belongs behind the loop.",
            ),
            Mistake(tiled_zero_for_nothing, "wrong-value", NAN_FOR_NOTHING),
            Mistake(tiled_with_epsilon, "wrong-value", NAN_FOR_NOTHING),
            Mistake(
                tiled_mask_clamped, "wrong-value",
                "A large negative number is not -inf: a query that may look at nothing then looks at all keys alike,"
                " and should give NaN. Add the mask as it is.",
            ),
            Mistake(
                tiled_scaled_again, "wrong-value",
                "q is scaled already: do not divide the scores by a square root once more.",
            ),
            Mistake(
                tiled_in_float32, "wrong-value",
                "All is float64 here: float32 has half of the digits, and is 0 below 1e-45. Leave the types as they"
                " come.",
            ),
            Mistake(tiled_listed, "wrong-value", CAME_ONCE),
            Mistake(tiled_copied, "wrong-value", SCORES_KEPT),
            Mistake(tiled_all_scores, "wrong-value", SCORES_KEPT),
            Mistake(tiled_by_number, "raises", NO_NUMBERS),
            Mistake(
                tiled_without_maximum, "wrong-value",
                "exp(score) itself overflows at 710. Subtract the running maximum.",
            ),
            Mistake(
                tiled_columns, "wrong-value",
                "A maximum for each query goes along the keys: axis=1. With axis=0 there is one for each key; only"
                " where a tile is square does that fit, and is wrong.",
            ),
            Mistake(
                tiled_average, "wrong-value",
                "Tiles do not count alike: a tile with larger scores has more weight, and a masked one has none.",
            ),
            Mistake(
                tiled_last, "wrong-value",
                "The answer has to cover all tiles, not the last one alone.",
            ),
            Mistake(
                tiled_by_the_whole, "wrong-value",
                "Each query has its own maximum. With a common one, all exponentials of a query with small scores"
                " become 0.",
            ),
        ),
        (tiled_by_rows, tiled_by_shares, tiled_parts_first, tiled_from(LOWS[-1])),
        tuple(tile_cases()[:-1]),
        adapt=tiles_once,
        praise="This is FlashAttention's forward pass, in thirteen lines. A GPU's kernel does the same for a tile of "
               "queries in each block.",
        stretch=True,
    ),
)  # fmt: skip

REFUTATIONS = (
    Refutation(
        "09", fuse_by_shape,
        parse("graph mine(x: f32[2,4]) -> (y) {\n s = sum(x) {axis=[1], keepdims=true}\n y = sub(x, s)\n return y\n}"),
        parse("graph mine(x: f32[4,4]) -> (y) {\n s = sum(x) {axis=[1]}\n y = sub(x, s)\n return y\n}"),
        hint_for_axes,
        "A shape does not say which axis a number belongs to. On a square matrix rows and columns look alike, so a "
        "compiler has to follow"
        " each axis from the reduction to the reader. Test with sides of different lengths, and with square ones, too.",
        judge_rows, "No group of this graph mixes up two axes.",
    ),
)  # fmt: skip
