"""Chapter 07, launch overhead: counting and predicting launches, and a benchmark to refute."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np

from ...fusion import fuse
from ...ir import Graph
from ...launch_model import HOST, quantity, schedule
from ...ops import OPS, Kind
from ...plan import make_plan
from ...run_numpy import VIEWS, peak_bytes
from ...run_numpy import stats as package_stats
from ...text import parse
from ..examples import frozen_layer, mlp_graph
from ..exercise import Benchmark, Exercise, Mistake
from ..judge import judge_calls

# ---- counting -----------------------------------------------------------------------------------------------------


def count_launches(graph):
    """How many launches a graph is, if each operation is a launch of its own. Graph -> int.

    Inputs and constants lie in memory already. A view (reshape, transpose, broadcast_to, slice) only
    looks at its operand's memory in another way. None of these is a launch; every other node is one,
    whether somebody reads it or not.

    x = input, c = const, t = transpose(x), y = mul(t, c), z = exp(x)  are 2 launches: y and z.
    """
    ### BEGIN SOLUTION
    launches = 0
    for node in graph.nodes:
        given = node.op in ("input", "const")
        view = node.op in ("reshape", "transpose", "broadcast_to", "slice")
        if not given and not view:
            launches += 1
    return launches
    ### END SOLUTION


NO_LAUNCH = ("input", "const", *sorted(VIEWS))


def count_by_sum(graph):
    return sum(node.op not in NO_LAUNCH for node in graph.nodes)


def count_by_the_package(graph):
    return package_stats(graph).launches


def count_all_nodes(graph):
    return len(graph.nodes)


def count_constants_too(graph):
    return sum(node.op != "input" and node.op not in VIEWS for node in graph.nodes)


def count_views_too(graph):
    return sum(node.op not in ("input", "const") for node in graph.nodes)


def count_some_views(graph):
    return sum(node.op not in ("input", "const", "reshape", "transpose") for node in graph.nodes)


def count_without_layout(graph):
    return sum(OPS[node.op].kind not in (Kind.INPUT, Kind.CONST, Kind.LAYOUT) for node in graph.nodes)


def count_live_only(graph):
    read = {name for node in graph.nodes for name in node.inputs} | {value for _, value in graph.outputs}
    return sum(node.op not in NO_LAUNCH and (node.name in read or OPS[node.op].kind is Kind.EFFECT)
               for node in graph.nodes)


def count_reaching(graph):
    needed = {value for _, value in graph.outputs}
    for node in reversed(graph.nodes):
        needed |= set(node.inputs) if node.name in needed else set()
    return sum(node.op not in NO_LAUNCH and node.name in needed for node in graph.nodes)


def count_operations_once(graph):
    return len({node.op for node in graph.nodes} - set(NO_LAUNCH))


def count_equal_once(graph):
    return len({(node.op, node.inputs, node.value) for node in graph.nodes if node.op not in NO_LAUNCH})


def count_with_operands(graph):
    return sum(bool(node.inputs) and node.op not in VIEWS for node in graph.nodes)


def count_without_effects(graph):
    return sum(node.op not in NO_LAUNCH and OPS[node.op].kind is not Kind.EFFECT for node in graph.nodes)


def count_without_part_names(graph):
    return sum(not any(name in node.op for name in NO_LAUNCH) for node in graph.nodes)


def count_without_packing(graph):
    return sum(node.op not in (*NO_LAUNCH, "pack", "unpack") for node in graph.nodes)


def count_without_assertions(graph):
    return sum(node.op not in (*NO_LAUNCH, "assert_close", "assert_finite") for node in graph.nodes)


def count_without_casts(graph):
    return sum(node.op not in (*NO_LAUNCH, "cast") for node in graph.nodes)


def count_operands(graph):
    return sum(len(node.inputs) for node in graph.nodes)


def count_through_the_graph(graph):
    return sum(node.op not in NO_LAUNCH for node in graph)


def count_first_node(graph):
    launches = 0
    for node in graph.nodes:
        if node.op not in NO_LAUNCH:
            launches += 1
        return launches


def count_to_the_first(graph):
    launches = 0
    for node in graph.nodes:
        if node.op not in NO_LAUNCH:
            launches += 1
            return launches


# a graph with two launches comes before one without any: a return inside the loop is not told that it is missing
COUNTED = tuple(parse(text) for text in (
    "graph one(x: f32[4]) -> (y) {\n y = neg(x)\n return y\n}",
    "graph again(x: f32[4]) -> (y) {\n a = neg(x)\n y = neg(a)\n return y\n}",
    "graph nothing(x: f32[4]) -> (x) {\n return x\n}",
    "graph given() -> (c) {\n c = const(1.0) : f32[]\n return c\n}",
    "graph drawn() -> (y) {\n y = random() {shape=[4], site=0}\n return y\n}",
    "graph turned(x: f32[2,3]) -> (y) {\n y = transpose(x) {perm=[1,0]}\n return y\n}",
    "graph flat(x: f32[2,3]) -> (y) {\n y = reshape(x) {shape=[6]}\n return y\n}",
    "graph wide(x: f32[3]) -> (y) {\n y = broadcast_to(x) {shape=[2,3]}\n return y\n}",
    "graph part(x: f32[4]) -> (y) {\n y = slice(x) {start=[0], stop=[2], step=[1]}\n return y\n}",
    "graph joined(x: f32[4]) -> (y) {\n y = concat(x, x) {axis=0}\n return y\n}",
    "graph unread(x: f32[4]) -> (y) {\n z = exp(x)\n y = neg(x)\n return y\n}",
    "graph shown(x: f32[4]) -> (y) {\n seen = print(x) {label=\"x\"}\n y = neg(x)\n return y\n}",
    "graph scaled(x: f32[4]) -> (y) {\n c = const(2.0) : f32[]\n y = mul(x, c)\n return y\n}",
    "graph twice(x: f32[4]) -> (y) {\n a = neg(x)\n b = neg(x)\n y = add(a, b)\n return y\n}",
    "graph chosen(x: f32[4], i: i32[2]) -> (y) {\n a = take(x, i)\n y = cast(a) {dtype=f64}\n return y\n}",
))  # fmt: skip

# the types of the operands -> the operations, with their attributes, that each are one launch on them
ALONE = {
    "f32[4]": "neg abs sign sqrt rsqrt exp log exp2 expm1 log2 log1p tanh erf sin cos floor ceil round"
              " cast{dtype=f64} sum{axis=[0]} prod{axis=[0]} mean{axis=[0]} max{axis=[0]} min{axis=[0]} argmax{axis=0}"
              " argmin{axis=0} cumsum{axis=0} sort{axis=0} print{label=\"x\"} assert_finite",
    "f32[4] f32[4]": "add sub mul div floor_div mod pow maximum minimum eq ne lt le gt ge concat{axis=0} assert_close",
    "i32[4] i32[4]": "bitwise_and bitwise_or bitwise_xor left_shift right_shift",
    "i32[4]": "bitwise_not",
    "bool[4]": "any{axis=[0]} all{axis=[0]}",
    "bool[4] f32[4] f32[4]": "where",
    "f32[4] f32[]": "quantize pad{low=[1],high=[1]}",
    "i8[4] f32[]": "dequantize",
    "f32[4,4] f32[4,4]": "matmul",
    "f32[1,1,4,4] f32[1,1,3,3]": "conv2d",
    "f32[2,32]": "pack{format=\"q8_0\"}",
    "u8[2,34]": "unpack{format=\"q8_0\"}",
    "f32[1,32] u8[2,34]": "packed_matmul{format=\"q8_0\"}",
    "f32[1,32] f32[1,16,16] u32[1,1,16]": "sparse_matmul",
    "f32[1,4] f32[1,4,16] i32[1] i32[2]": "block_matmul",
    "f32[4] i32[2]": "take",
    "f32[4] f32[2] i32[]": "update_slice{axis=0}",
    "": "random{shape=[4],site=0}",
}


def alone(types: str, call: str) -> Graph:
    """A graph of one operation. An effect has no value to give away, so it is no output."""
    op, brace, attrs = call.partition("{")
    names = [f"x{i}" for i, _ in enumerate(types.split())]
    given = ", ".join(f"{name}: {type}" for name, type in zip(names, types.split()))
    output = names[0] if OPS[op].kind is Kind.EFFECT else "y"
    return parse(f"graph alone({given}) -> ({output}) {{\n y = {op}({', '.join(names)}) {brace}{attrs}\n"
                 f" return {output}\n}}")


def count_cases() -> list[tuple[Graph]]:
    each = [alone(types, call) for types, calls in ALONE.items() for call in calls.split()]
    return [(graph,) for graph in (*COUNTED, *each, mlp_graph(layers=2, width=4), frozen_layer())]


def explain_count(case, want, got) -> tuple[str, ...]:
    names = [node.name for node in case[0].nodes if node.op not in NO_LAUNCH]
    shown = ", ".join(names[:8]) + (" …" if len(names) > 8 else "")
    return (f"it should give {want}{f': {shown}' if names else ''}", f"and gives      {got!r}")


# ---- the launch model ---------------------------------------------------------------------------------------------


def predict_time(launches, overhead, bandwidth, peak):
    """Seconds for a list of launches by the launch model.

    ``launches`` has a pair (bytes, flops) for each. A launch costs ``overhead`` seconds, and then its
    work: moving its bytes at ``bandwidth`` bytes a second, or computing its flops at ``peak`` flops a
    second, whichever takes longer.

    predict_time([(100, 10), (0, 40)], overhead=1.0, bandwidth=50.0, peak=20.0)
    is (1 + 2) + (1 + 2) = 6.0: the first launch waits for memory, the second for arithmetic.
    """
    ### BEGIN SOLUTION
    seconds = 0.0
    for moved, computed in launches:
        seconds += overhead + max(moved / bandwidth, computed / peak)
    return seconds
    ### END SOLUTION


def predict_by_sum(launches, overhead, bandwidth, peak):
    return len(launches) * overhead + sum(max(one[0] / bandwidth, one[1] / peak) for one in launches)


def predict_with_numpy(launches, overhead, bandwidth, peak):
    table = np.asarray(launches, np.float64).reshape(-1, 2) / [bandwidth, peak]
    return overhead * len(table) + table.max(axis=1).sum()


def predict_overhead_once(launches, overhead, bandwidth, peak):
    return overhead + sum(max(moved / bandwidth, computed / peak) for moved, computed in launches)


def predict_no_overhead(launches, overhead, bandwidth, peak):
    return sum(max(moved / bandwidth, computed / peak) for moved, computed in launches)


def predict_both(launches, overhead, bandwidth, peak):
    return sum(overhead + moved / bandwidth + computed / peak for moved, computed in launches)


def predict_shorter(launches, overhead, bandwidth, peak):
    return sum(overhead + min(moved / bandwidth, computed / peak) for moved, computed in launches)


def predict_totals(launches, overhead, bandwidth, peak):
    moved, computed = (sum(one[k] for one in launches) for k in (0, 1))
    return len(launches) * overhead + max(moved / bandwidth, computed / peak)


def predict_overhead_hidden(launches, overhead, bandwidth, peak):
    return sum(max(overhead, moved / bandwidth, computed / peak) for moved, computed in launches)


def predict_bytes_only(launches, overhead, bandwidth, peak):
    return sum(overhead + moved / bandwidth for moved, _ in launches)


def predict_flops_only(launches, overhead, bandwidth, peak):
    return sum(overhead + computed / peak for _, computed in launches)


def predict_turned(launches, overhead, bandwidth, peak):
    return sum(overhead + max(moved / peak, computed / bandwidth) for moved, computed in launches)


def predict_last(launches, overhead, bandwidth, peak):
    seconds = 0.0
    for moved, computed in launches:
        seconds = overhead + max(moved / bandwidth, computed / peak)
    return seconds


def predict_compares_counts(launches, overhead, bandwidth, peak):
    return sum(overhead + (moved / bandwidth if moved > computed else computed / peak) for moved, computed in launches)


def predict_multiplied(launches, overhead, bandwidth, peak):
    return sum(overhead + max(moved * bandwidth, computed * peak) for moved, computed in launches)


def predict_bytes_multiplied(launches, overhead, bandwidth, peak):
    return sum(overhead + max(moved * bandwidth, computed / peak) for moved, computed in launches)


def predict_overhead_on_one_side(launches, overhead, bandwidth, peak):
    return sum(max(overhead + moved / bandwidth, computed / peak) for moved, computed in launches)


def predict_whole_seconds(launches, overhead, bandwidth, peak):
    return sum(overhead + max(moved // bandwidth, computed // peak) for moved, computed in launches)


def predict_first_launch(launches, overhead, bandwidth, peak):
    seconds = 0.0
    for moved, computed in launches:
        seconds += overhead + max(moved / bandwidth, computed / peak)
        return seconds


def predict_in_microseconds(launches, overhead, bandwidth, peak):
    return 1e6 * predict_by_sum(launches, overhead, bandwidth, peak)


def predict_in_milliseconds(launches, overhead, bandwidth, peak):
    return 1e3 * predict_by_sum(launches, overhead, bandwidth, peak)


def predict_in_bits(launches, overhead, bandwidth, peak):
    return sum(overhead + max(8 * moved / bandwidth, computed / peak) for moved, computed in launches)


def predict_without_empty(launches, overhead, bandwidth, peak):
    return sum(overhead + max(moved / bandwidth, computed / peak) for moved, computed in launches if moved)


def predict_longest(launches, overhead, bandwidth, peak):
    works = [max(moved / bandwidth, computed / peak) for moved, computed in launches]
    return overhead * len(launches) + max(works, default=0.0)


def predict_by_columns(launches, overhead, bandwidth, peak):
    table = np.array(launches)
    return overhead * len(table) + np.maximum(table[:, 0] / bandwidth, table[:, 1] / peak).sum()


def predict_unzipped(launches, overhead, bandwidth, peak):
    moved, computed = zip(*launches)
    return sum(overhead + max(a / bandwidth, b / peak) for a, b in zip(moved, computed))


# Powers of two, so that every order of adding and dividing gives the same float: first small ones that can be checked
# in one's head, then a GPU's, then all short lists of a few launches.
OVERHEAD, BANDWIDTH, PEAK = 1.0, 64.0, 1024.0
GPU = (2.0**-17, 2.0**38, 2.0**43)


def predict_cases() -> list[tuple]:
    lists = ([(256, 0)], [(0, 2048)], [(0, 0)], [(256, 256)], [(128, 1024)], [(64, 4096)], [(96, 0)], [(256, 2048)] * 2, [],
             [(512, 1024), (64, 8192)], [(256, 3072), (0, 0), (64, 4096)], [(1024, 4096)] * 3)
    small = [(list(one), OVERHEAD, BANDWIDTH, PEAK) for one in lists]
    kinds = ((0, 0), (96, 0), (0, 512), (256, 2048), (64, 3072))
    short = [(list(one), overhead, BANDWIDTH, PEAK) for one in lists_of(kinds, 2) for overhead in (0.0, OVERHEAD)]
    return [*small, ([(64, 128)], 0.0, 16.0, 16.0), ([(2**20, 2**21), (2**12, 2**30)], *GPU), *short]


def lists_of(items: tuple, longest: int) -> list[tuple]:
    """All lists of these items, the shortest first."""
    return [one for length in range(longest + 1) for one in product(items, repeat=length)]


def break_even(operands, itemsize, flops, overhead, bandwidth, peak):
    """The knee: the fewest elements with which an operation works as long as its launch takes.

    The operation is element-wise: an element is read from ``operands`` arrays and written to one,
    ``itemsize`` bytes each time, and takes ``flops`` operations, 0 if it only copies. Its share of the
    work is the longer of the two: moving its bytes at ``bandwidth`` bytes a second, or computing its
    flops at ``peak`` flops a second. Returns an int, rounded up (np.ceil gives a float).

    c = a + b in float32:  break_even(2, 4, 1, overhead=1.0, bandwidth=60.0, peak=1000.0)
    is 5, because an element moves 12 bytes, and 5 of them are moved in 1 second.
    """
    ### BEGIN SOLUTION
    moved = (operands + 1) * itemsize
    seconds = max(moved / bandwidth, flops / peak)
    return int(np.ceil(overhead / seconds))
    ### END SOLUTION


def break_even_by_minimum(operands, itemsize, flops, overhead, bandwidth, peak):
    rates = [bandwidth / (operands * itemsize + itemsize)] + ([peak / flops] if flops else [])
    return int(-(-overhead * min(rates) // 1))


def break_even_by_doubling(operands, itemsize, flops, overhead, bandwidth, peak):
    def long_enough(size):
        return max(size * (operands + 1) * itemsize / bandwidth, size * flops / peak) >= overhead

    low, high = 0, 1
    while not long_enough(high):
        high *= 2
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if long_enough(middle) else (middle + 1, high)
    return low


def rounded_up(value: float) -> int:
    return int(np.ceil(value))


def even_reads_only(operands, itemsize, flops, overhead, bandwidth, peak):
    return rounded_up(overhead / max(operands * itemsize / bandwidth, flops / peak))


def even_counts_elements(operands, itemsize, flops, overhead, bandwidth, peak):
    return rounded_up(overhead / max((operands + 1) / bandwidth, flops / peak))


def even_in_bytes(operands, itemsize, flops, overhead, bandwidth, peak):
    return rounded_up(overhead * bandwidth)


def even_rounded_down(operands, itemsize, flops, overhead, bandwidth, peak):
    return int(overhead / max((operands + 1) * itemsize / bandwidth, flops / peak))


def even_one_more(operands, itemsize, flops, overhead, bandwidth, peak):
    return int(overhead / max((operands + 1) * itemsize / bandwidth, flops / peak)) + 1


def even_both(operands, itemsize, flops, overhead, bandwidth, peak):
    return rounded_up(overhead / ((operands + 1) * itemsize / bandwidth + flops / peak))


def even_shorter(operands, itemsize, flops, overhead, bandwidth, peak):
    return rounded_up(overhead / min((operands + 1) * itemsize / bandwidth, flops / peak))


def even_bytes_only(operands, itemsize, flops, overhead, bandwidth, peak):
    return rounded_up(overhead / ((operands + 1) * itemsize / bandwidth))


def even_flops_only(operands, itemsize, flops, overhead, bandwidth, peak):
    return rounded_up(overhead / (flops / peak))


def even_divides_by_flops(operands, itemsize, flops, overhead, bandwidth, peak):
    return rounded_up(min(overhead * bandwidth / ((operands + 1) * itemsize), overhead * peak / flops))


def even_unrounded(operands, itemsize, flops, overhead, bandwidth, peak):
    return np.ceil(overhead / max((operands + 1) * itemsize / bandwidth, flops / peak)).item()


def even_one_array(operands, itemsize, flops, overhead, bandwidth, peak):
    return rounded_up(overhead / max(itemsize / bandwidth, flops / peak))


def even_three_arrays(operands, itemsize, flops, overhead, bandwidth, peak):
    return rounded_up(overhead / max(3 * itemsize / bandwidth, flops / peak))


def even_four_bytes(operands, itemsize, flops, overhead, bandwidth, peak):
    return rounded_up(overhead / max((operands + 1) * 4 / bandwidth, flops / peak))


def even_twelve_bytes(operands, itemsize, flops, overhead, bandwidth, peak):
    return rounded_up(overhead / max(12 / bandwidth, flops / peak))


def even_upside_down(operands, itemsize, flops, overhead, bandwidth, peak):
    return rounded_up(max((operands + 1) * itemsize / bandwidth, flops / peak) / overhead)


def even_multiplied(operands, itemsize, flops, overhead, bandwidth, peak):
    return rounded_up(overhead / max((operands + 1) * itemsize * bandwidth, flops * peak))


def even_without_brackets(operands, itemsize, flops, overhead, bandwidth, peak):
    return rounded_up(overhead / max((operands + 1 * itemsize) / bandwidth, flops / peak))


def even_flops_an_array(operands, itemsize, flops, overhead, bandwidth, peak):
    return rounded_up(overhead / max((operands + 1) * itemsize / bandwidth, (operands + 1) * flops / peak))


def even_nearest(operands, itemsize, flops, overhead, bandwidth, peak):
    return round(overhead / max((operands + 1) * itemsize / bandwidth, flops / peak))


def even_two_results(operands, itemsize, flops, overhead, bandwidth, peak):
    return rounded_up(overhead / max((operands + 2) * itemsize / bandwidth, flops / peak))


def even_flops_an_operand(operands, itemsize, flops, overhead, bandwidth, peak):
    return rounded_up(overhead / max((operands + 1) * itemsize / bandwidth, operands * flops / peak))


def even_flops_a_byte(operands, itemsize, flops, overhead, bandwidth, peak):
    return rounded_up(overhead / max((operands + 1) * itemsize / bandwidth, flops * itemsize / peak))


def even_nearly_one_more(operands, itemsize, flops, overhead, bandwidth, peak):
    return int(overhead / max((operands + 1) * itemsize / bandwidth, flops / peak) + 0.999)


def even_a_little_less(operands, itemsize, flops, overhead, bandwidth, peak):
    return rounded_up(overhead / max((operands + 1) * itemsize / bandwidth, flops / peak) - 1e-6)


def even_cases() -> list[tuple]:
    rows = ((2, 4, 1), (1, 4, 1), (1, 8, 1), (2, 2, 1), (3, 4, 2), (1, 4, 256), (2, 4, 512), (1, 8, 320), (1, 4, 0))
    net = product((0, 1, 2, 3), (1, 2, 4, 8), (0, 1, 256, 1000), (2.0**-6, 4.0))
    near = [(operands, 8, flops, whole + 2.0**-24 * side, BANDWIDTH, PEAK)  # an element takes 0.5 or 1 or 2 seconds
            for operands, flops in ((3, 0), (7, 1), (1, 2048)) for whole in (2.0, 4.0, 6.0) for side in (1, -1)]
    return [*((*row, 4.0, BANDWIDTH, PEAK) for row in rows), (2, 4, 1, *GPU), (1, 4, 1, *GPU), (2, 4, 1536, *GPU),
            *near, *((*row, BANDWIDTH, PEAK) for row in net)]


# ---- the stretch: a host that runs ahead -----------------------------------------------------------------------------


def device_events(work, issue, gap):
    """When each launch runs on a device whose host issues ahead: a list of (start, end), in seconds.

    ``work`` lists how long each launch runs. The host starts at 0, issues one launch after another,
    ``issue`` seconds each, and never waits. The device takes them in order. A launch starts when it
    has been issued; but if another was before it, not before that one has ended and ``gap`` seconds
    more have passed.

    device_events([10.0, 2.0], issue=1.0, gap=0.5)  is  [(1.0, 11.0), (11.5, 13.5)]
    device_events([2.0, 2.0], issue=5.0, gap=0.5)   is  [(5.0, 7.0), (10.0, 12.0)]
    """
    ### BEGIN SOLUTION
    events = []
    issued = ready = 0.0
    for seconds in work:
        issued += issue
        start = max(issued, ready)
        end = start + seconds
        events.append((start, end))
        ready = end + gap
    return events
    ### END SOLUTION


def events_by_number(work, issue, gap):
    events = []
    for number, seconds in enumerate(work, 1):
        free = events[-1][1] + gap if events else 0.0
        start = free if free > number * issue else number * issue
        events.append((start, start + seconds))
    return events


def events_from_arrays(work, issue, gap):
    """A launch starts when it is issued, or when all from an earlier one's issue on have run; the latest of these."""
    work = np.asarray(work, np.float64)
    starts = [max((k + 1) * issue + sum(work[k:n]) + (n - k) * gap for k in range(n + 1)) for n in range(len(work))]
    return [(start, start + seconds) for start, seconds in zip(starts, work)]


def events_variant(work, issue, gap, start_of: Callable, first_gap: bool = False):
    events = []
    for number, seconds in enumerate(work):
        before = events[-1][1] if events else 0.0
        start = start_of(number, before, gap if events or first_gap else 0.0)
        events.append((start, start + seconds))
    return events


def events_in_turn(work, issue, gap):
    return events_variant(work, issue, gap, lambda number, before, wait: before + max(issue, wait))


def events_without_host(work, issue, gap):
    return events_variant(work, issue, gap, lambda number, before, wait: before + wait)


def events_overlapping(work, issue, gap):
    return events_variant(work, issue, gap, lambda number, before, wait: (number + 1) * issue)


def events_without_gap(work, issue, gap):
    return events_variant(work, issue, gap, lambda number, before, wait: max((number + 1) * issue, before))


def events_gap_first(work, issue, gap):
    return events_variant(work, issue, gap, lambda number, before, wait: max((number + 1) * issue, before + wait), True)


def events_issued_at_once(work, issue, gap):
    return events_variant(work, issue, gap, lambda number, before, wait: max(number * issue, before + wait))


def events_gap_always(work, issue, gap):
    return events_variant(work, issue, gap, lambda number, before, wait: max((number + 1) * issue, before) + wait)


def events_issued_together(work, issue, gap):
    return events_variant(work, issue, gap, lambda number, before, wait: max(len(work) * issue, before + wait))


def events_with_lengths(work, issue, gap):
    return [(start, end - start) for start, end in events_by_number(work, issue, gap)]


def events_issued_late(work, issue, gap):
    events = []
    for seconds in work:
        start = max(events[-1][0] + issue, events[-1][1] + gap) if events else issue
        events.append((start, start + seconds))
    return events


def events_summed(work, issue, gap):
    return events_variant(work, issue, gap, lambda number, before, wait: before + issue + wait)


def events_gap_if_busy(work, issue, gap):
    def start_of(number, before, wait):
        issued = (number + 1) * issue
        return issued if issued > before else before + wait

    return events_variant(work, issue, gap, start_of)


def events_gap_if_late(work, issue, gap):
    def start_of(number, before, wait):
        issued = (number + 1) * issue
        return issued if issued >= before else before + wait

    return events_variant(work, issue, gap, start_of)


def events_zero_is_none(work, issue, gap):
    events, end = [], 0.0
    for number, seconds in enumerate(work, 1):
        start = max(number * issue, end + gap) if end else number * issue
        end = start + seconds
        events.append((start, end))
    return events


def events_issued_once(work, issue, gap):
    return events_variant(work, issue, gap, lambda number, before, wait: before + wait if number else issue)


def events_gap_before_all(work, issue, gap):
    return events_variant(work, issue, gap, lambda number, before, wait: max((number + 1) * issue, before) + wait, True)


def events_gap_behind_issue(work, issue, gap):
    def start_of(number, before, wait):
        return max((number + 1) * issue, before + wait) if number else issue + wait

    return events_variant(work, issue, gap, start_of, True)


def events_ending_with_gap(work, issue, gap):
    return [(start, end + gap) for start, end in events_by_number(work, issue, gap)]


def events_sorted(work, issue, gap):
    return events_by_number(sorted(work), issue, gap)


def events_first_alone(work, issue, gap):
    events = [(issue, issue + work[0])]
    for number, seconds in enumerate(work[1:], 2):
        start = max(number * issue, events[-1][1] + gap)
        events.append((start, start + seconds))
    return events


def events_one_returned(work, issue, gap):
    events = []
    for seconds in work:
        events.append((issue, issue + seconds))
        return events


def event_cases() -> list[tuple]:
    """First what can be checked in one's head, a launch issued within the gap among it; then all short lists."""
    shown = [([2.0], 4.0, 1.0), ([2.0, 2.0], 4.0, 1.0), ([8.0, 2.0], 1.0, 0.5), ([8.0, 2.0], 1.0, 0.0),
             ([2.0, 2.0], 2.25, 0.5), ([], 1.0, 0.5), ([2.0, 2.0, 2.0], 2.0, 0.5), ([2.0, 3.0], 0.0, 0.5),
             ([0.0, 2.0], 0.0, 0.5), ([8.0, 1.0, 1.0, 1.0, 1.0, 1.0], 2.0, 0.5), ([0.0, 0.0, 4.0, 0.0], 1.0, 0.25),
             ([1.0] * 40 + [64.0] + [1.0] * 40, 2.0, 0.25)]
    return shown + [(list(work), issue, gap) for work in lists_of((0.0, 2.0, 3.0), 3)
                    for issue in (0.0, 2.0, 2.25) for gap in (0.0, 0.5)]


# ---- a benchmark to refute -------------------------------------------------------------------------------------------


def without_wait(graph):
    """Issues the launches to an A100, stops the clock, and has never waited for the GPU."""
    events = schedule(make_plan(fuse(graph, enabled=False)), "a100")
    return max((event.end for event in events if event.row == HOST), default=0.0)


def with_wait(graph):
    """The same, and the clock stops when the GPU is done."""
    return max((event.end for event in schedule(make_plan(fuse(graph, enabled=False)), "a100")), default=0.0)


A100_MEMORY = 80 * 10**9


def needs_too_much(graph) -> str:
    if (needed := peak_bytes(graph)) <= A100_MEMORY:
        return ""
    return f"needs {quantity(needed, 'B')}, and an A100 has {quantity(A100_MEMORY, 'B')}"


# ---- what a learner's answers are compared as ---------------------------------------------------------------------


def number(value):
    """An int or a NumPy scalar as the float that it is; anything else stays, and is refused."""
    value = scalar(value)
    is_number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    return float(value) if is_number else value


def whole(value):
    """A NumPy number as Python's. A float stays one."""
    value = scalar(value)
    return value.item() if isinstance(value, np.number) else value


def scalar(value):
    """An array without axes as the number in it."""
    return value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value


def pairs(value):
    """A list of pairs of floats, whatever pairs and numbers were used: lists, tuples, or an array with a row a pair."""
    if not in_a_row(value) or not all(map(in_a_row, value)):
        return value
    return [tuple(map(number, one)) for one in value]


def in_a_row(value) -> bool:
    return isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim > 0)


def answering(convert: Callable) -> Callable[[Callable], Callable]:
    """An ``adapt`` that converts what the function answers."""
    return lambda function: lambda *case: convert(function(*case))


def explain_numbers(*names: str) -> Callable:
    def explain(case, want, got) -> tuple[str, ...]:
        given = ", ".join(f"{name}={shortened(value)}" for name, value in zip(names, case))
        return (f"given {given}", f"it should give {shortened(want)}", f"and gives      {shortened(got)}")

    return explain


def shortened(value) -> str:
    if isinstance(value, list) and len(value) > 4:
        return f"[{', '.join(map(repr, value[:4]))}, … {len(value)} in all]"
    return repr(value)


MODEL_NAMES = ("launches", "overhead", "bandwidth", "peak")
EVENT_NAMES = ("work", "issue", "gap")
EVEN_NAMES = ("operands", "itemsize", "flops", "overhead", "bandwidth", "peak")

# what several mistakes have in common
RETURN_INSIDE = "The return is inside the loop, and ends it in its first round: move it to the left, behind the loop."
IN_SECONDS = "The result is in seconds, as the overhead is: nothing is to be multiplied by a thousand or a million."
DIVIDE = "Bytes divided by bytes a second are seconds: divide by the bandwidth and by the peak."
LOOKS = "A print or an assertion must look at its operands: here it counts like any other operation."
NO_VIEW = "The views are reshape, transpose, broadcast_to and slice. This operation is none: it writes new memory."
FLOPS_AN_ELEMENT = ("The flops are those of one element already: they are multiplied neither by the arrays nor by the"
                    " bytes.")
NOT_ENOUGH = "Just above a whole number, this is one element too few: round up exactly, as np.ceil does."
NO_GAP_FIRST = "The gap is between two launches: there is none before the first."
GAP_TOO = "The gap must be over, too: compare the host's clock with the end plus the gap, not with the end alone."

EXERCISES = (
    Exercise(
        "07", "Counting launches", count_launches,
        lambda function: judge_calls(function, count_cases(), count_by_sum, explain=explain_count),
        ("Which nodes make no work for the device? Count all the others.",
         "Go through graph.nodes with a counter. Leave out a node whose op is input or const, and one whose op is"
         " reshape, transpose, broadcast_to or slice. Count everything else: what nobody reads, draws and prints, too.",
         "launches = 0\nfor node in graph.nodes:\n    given = node.op in (...)\n    view = node.op in (...)\n"
         "    if ...:\n        launches += 1\nreturn launches"),
        (Mistake(count_all_nodes, "wrong-value", "This is the number of nodes. An input or a constant lies in memory"
                 " already, and nothing is launched for it."),
         Mistake(count_constants_too, "wrong-value", "A constant lies in memory already: nothing is launched for it."),
         Mistake(count_views_too, "wrong-value", "A view (reshape, transpose, broadcast_to, slice) looks at memory"
                 " that is there: it is no launch."),
         Mistake(count_some_views, "wrong-value", "There are four views: broadcast_to and slice are two of them."),
         Mistake(count_without_layout, "wrong-value", "Not everything that rearranges is a view: concat and take copy"
                 " elements, and a copy is a launch."),
         Mistake(count_live_only, "wrong-value", "A value that nobody reads is computed all the same, until a pass"
                 " deletes it: it is a launch."),
         Mistake(count_reaching, "wrong-value", "What leads to no output is computed all the same, and a print is seen:"
                 " each is a launch, whether read or not. Deleting is dce's work (chapter 05)."),
         Mistake(count_operations_once, "wrong-value", "Two nodes of the same operation are two launches: count nodes,"
                 " not kinds of operation."),
         Mistake(count_equal_once, "wrong-value", "Two equal nodes are launched twice: merging them is another pass's"
                 " work (chapter 06)."),
         Mistake(count_with_operands, "wrong-value", "A random draw has no operands, and is a launch: ask for the"
                 " operation."),
         Mistake(count_without_effects, "wrong-value", LOOKS),
         Mistake(count_without_assertions, "wrong-value", LOOKS),
         Mistake(count_without_part_names, "wrong-value", "Compare whole names: update_slice has slice in its name, and"
                 " is no view."),
         Mistake(count_without_packing, "wrong-value", NO_VIEW),
         Mistake(count_without_casts, "wrong-value", NO_VIEW),
         Mistake(count_operands, "wrong-value", "This counts the edges. A node with two operands is still one"
                 " launch."),
         Mistake(count_through_the_graph, "raises", "A graph is no list: its nodes are in graph.nodes."),
         Mistake(count_first_node, "wrong-value", RETURN_INSIDE),
         Mistake(count_to_the_first, "wrong-value", RETURN_INSIDE)),
        (count_by_sum, count_by_the_package),
        probes=tuple(count_cases()),
        adapt=answering(whole),
        without=("stats", "make_plan", "fuse"),
        praise="The scoreboard's column of launches is this number.",
    ),
    Exercise(
        "07", "The launch model", predict_time,
        lambda function: judge_calls(function, predict_cases(), predict_time, explain=explain_numbers(*MODEL_NAMES)),
        ("One launch after another: each has its own overhead and its own longer side.",
         "Start at 0.0. For each pair take bytes / bandwidth and flops / peak, and add the larger of the two and the"
         " overhead.",
         "seconds = 0.0\nfor moved, computed in launches:\n    seconds += overhead + max(..., ...)\nreturn seconds"),
        (Mistake(predict_overhead_once, "wrong-value", "Every launch has its overhead, and no launches have none. Once"
                 " for all is what a CUDA Graph makes of it."),
         Mistake(predict_no_overhead, "wrong-value", "The overhead is missing: at batch 1 it is nearly all of the"
                 " time."),
         Mistake(predict_both, "wrong-value", "Moving and computing go on at the same time: the longer one counts, not"
                 " the sum."),
         Mistake(predict_shorter, "wrong-value", "The launch has ended when both are done: the longer one counts."),
         Mistake(predict_totals, "wrong-value", "The longer side is chosen in each launch, and not once for all: a"
                 " launch that waits for memory leaves no time for the next one's arithmetic."),
         Mistake(predict_overhead_hidden, "wrong-value", "In this model the overhead comes before the work, not beside"
                 " it: add it. (That a host can run ahead is the stretch exercise.)"),
         Mistake(predict_bytes_only, "wrong-value", "A large product computes longer than it moves: the flops are"
                 " missing."),
         Mistake(predict_flops_only, "wrong-value", "Most launches move longer than they compute: the bytes are"
                 " missing."),
         Mistake(predict_turned, "wrong-value", "Bytes go with the bandwidth, and flops with the peak."),
         Mistake(predict_last, "wrong-value", "This is the time of the last launch alone: add them up."),
         Mistake(predict_compares_counts, "wrong-value", "Bytes and flops cannot be compared: turn both into seconds"
                 " first."),
         Mistake(predict_multiplied, "wrong-value", DIVIDE),
         Mistake(predict_bytes_multiplied, "wrong-value", DIVIDE),
         Mistake(predict_overhead_on_one_side, "wrong-value", "The overhead is paid whichever side is longer: it stands"
                 " before the max, not inside it."),
         Mistake(predict_whole_seconds, "wrong-value", "// throws away what is left of a second: divide with /."),
         Mistake(predict_first_launch, "wrong-value", RETURN_INSIDE),
         Mistake(predict_in_microseconds, "wrong-value", IN_SECONDS),
         Mistake(predict_in_milliseconds, "wrong-value", IN_SECONDS),
         Mistake(predict_in_bits, "wrong-value", "Both are in bytes already: the bytes, and the bandwidth in bytes a"
                 " second. Nothing is to be multiplied by 8."),
         Mistake(predict_without_empty, "wrong-value", "A launch that moves nothing is a launch: it has its overhead,"
                 " and its flops."),
         Mistake(predict_longest, "wrong-value", "This is the work of the longest launch alone: the work of all"
                 " launches adds up, as the overhead does."),
         Mistake(predict_by_columns, "raises", "There may be no launches, and an empty list makes an array without"
                 " columns: go through the list, or answer 0.0 for it first."),
         Mistake(predict_unzipped, "raises", "There may be no launches, and then zip has nothing to take apart: go"
                 " through the list, or answer 0.0 for it first.")),
        (predict_by_sum, predict_with_numpy),
        probes=tuple(predict_cases()),
        adapt=answering(number),
        praise="launch_model.predict is this sum; launch_model.PRESETS has the numbers of some devices and says where"
               " they are from.",
    ),
    Exercise(
        "07", "The knee", break_even,
        lambda function: judge_calls(function, even_cases(), break_even, explain=explain_numbers(*EVEN_NAMES)),
        ("How long does one element take? How many of them fit into the overhead?",
         "An element moves (operands + 1) * itemsize bytes. Its time is the longer of bytes / bandwidth and flops /"
         " peak. Divide the overhead by that time, round up, and make it an int.",
         "moved = ...\nseconds = max(moved / bandwidth, ...)\nreturn int(np.ceil(...))"),
        (Mistake(even_reads_only, "wrong-value", "The result is written, too: an element moves (operands + 1) *"
                 " itemsize bytes."),
         Mistake(even_counts_elements, "wrong-value", "The bandwidth is in bytes, and an element has itemsize of"
                 " them."),
         Mistake(even_in_bytes, "wrong-value", "This is the knee in bytes; how many elements have so many bytes?"),
         Mistake(even_rounded_down, "wrong-value", "With one element fewer the work is still shorter than the launch:"
                 " round up."),
         Mistake(even_one_more, "wrong-value", "Where it comes out even, that number of elements is enough: round up"
                 " instead of adding 1."),
         Mistake(even_both, "wrong-value", "Moving and computing go on at the same time: the longer one counts, not"
                 " the sum."),
         Mistake(even_shorter, "wrong-value", "The launch has ended when both are done: the longer one counts."),
         Mistake(even_bytes_only, "wrong-value", "An operation with many flops an element computes longer than it"
                 " moves: take the longer one."),
         Mistake(even_flops_only, "wrong-value", "Most operations move longer than they compute: take the longer one."),
         Mistake(even_divides_by_flops, "raises", "An operation that only copies has 0 flops: divide by the longer"
                 " time, not by each of the two."),
         Mistake(even_unrounded, "wrong-value", "This is the number, as a float: make it an int."),
         Mistake(even_one_array, "wrong-value", "Every operand is read and the result is written: an element moves"
                 " (operands + 1) * itemsize bytes."),
         Mistake(even_three_arrays, "wrong-value", "Three arrays are those of an addition. This operation has operands"
                 " + 1."),
         Mistake(even_four_bytes, "wrong-value", "Four bytes are those of a float32. Here an element has itemsize of"
                 " them."),
         Mistake(even_twelve_bytes, "wrong-value", "Twelve bytes are those of an addition in float32. Here an element"
                 " moves (operands + 1) * itemsize."),
         Mistake(even_upside_down, "wrong-value", "This is how many launches one element takes. How many elements fit"
                 " into a launch? Divide the other way round."),
         Mistake(even_multiplied, "wrong-value", DIVIDE),
         Mistake(even_without_brackets, "wrong-value", "operands + 1 * itemsize multiplies first: write (operands + 1)"
                 " * itemsize."),
         Mistake(even_flops_an_array, "wrong-value", FLOPS_AN_ELEMENT),
         Mistake(even_nearest, "wrong-value", "Rounded to the nearest, it is often one too few: round up."),
         Mistake(even_nearly_one_more, "wrong-value", NOT_ENOUGH),
         Mistake(even_a_little_less, "wrong-value", NOT_ENOUGH),
         Mistake(even_two_results, "wrong-value", "One array is written, however many are read: an element moves"
                 " (operands + 1) * itemsize bytes."),
         Mistake(even_flops_an_operand, "wrong-value", FLOPS_AN_ELEMENT),
         Mistake(even_flops_a_byte, "wrong-value", FLOPS_AN_ELEMENT)),
        (break_even_by_minimum, break_even_by_doubling),
        probes=tuple(even_cases()),
        adapt=answering(whole),
        praise="Far below the knee a larger array costs hardly anything; far above it the launch hardly matters. At the"
               " knee each is half of the time.",
    ),
    Exercise(
        "07", "A host that runs ahead", device_events,
        lambda function: judge_calls(function, event_cases(), device_events, explain=explain_numbers(*EVENT_NAMES)),
        ("Two clocks run: when the host has issued a launch, and when the device is ready for the next one.",
         "Keep both at 0.0. For each launch the host's clock goes on by issue. The launch starts at the later of the"
         " two clocks and runs for its work. Then the device is ready again gap after its end.",
         "events = []\nissued = ready = 0.0\nfor seconds in work:\n    issued += ...\n    start = max(..., ...)\n"
         "    ...\n    ready = ...\nreturn events"),
        (Mistake(events_in_turn, "wrong-value", "This host waits until the device is done before it issues the next"
                 " launch. Ours never waits: it issues launch n at n * issue, whatever the device does."),
         Mistake(events_without_host, "wrong-value", "A launch cannot start before the host has issued it."),
         Mistake(events_overlapping, "wrong-value", "The device does one launch after another: one cannot start before"
                 " the last has ended."),
         Mistake(events_without_gap, "wrong-value", "The gap between two launches is missing."),
         Mistake(events_gap_first, "wrong-value", NO_GAP_FIRST),
         Mistake(events_gap_behind_issue, "wrong-value", NO_GAP_FIRST),
         Mistake(events_gap_before_all, "wrong-value", NO_GAP_FIRST
                 + " Nor is it added where the host is later anyway."),
         Mistake(events_ending_with_gap, "wrong-value", "A launch ends when its work is done: the gap comes after its"
                 " end, and is no part of it."),
         Mistake(events_sorted, "wrong-value", "The device takes the launches in the order in which they are issued:"
                 " work must stay as it is."),
         Mistake(events_issued_at_once, "wrong-value", "To issue a launch takes time, the first one's, too: it cannot"
                 " start at 0."),
         Mistake(events_gap_always, "wrong-value", "The gap follows the end of the launch before. If the host is later"
                 " than that, nothing more is added."),
         Mistake(events_issued_together, "wrong-value", "The device does not wait until all are issued: it starts with"
                 " the first one."),
         Mistake(events_with_lengths, "wrong-value", "The second number of a pair is the end, not how long the launch"
                 " runs."),
         Mistake(events_issued_late, "wrong-value", "The host has a clock of its own: launch n is issued at n * issue,"
                 " not issue after the last one has started."),
         Mistake(events_summed, "wrong-value", "The host issues while the device works: issuing and the gap do not add"
                 " up behind every launch."),
         Mistake(events_gap_if_busy, "wrong-value", GAP_TOO),
         Mistake(events_gap_if_late, "wrong-value", GAP_TOO),
         Mistake(events_zero_is_none, "wrong-value", "A launch may end at 0.0, and that counts as false: ask whether"
                 " there was one before, not whether its end is 0."),
         Mistake(events_issued_once, "wrong-value", "The host issues every launch, not only the first one: launch n is"
                 " issued at n * issue."),
         Mistake(events_first_alone, "raises", "There may be no launches at all: then there is no first one, and the"
                 " answer is an empty list."),
         Mistake(events_one_returned, "wrong-value", RETURN_INSIDE)),
        (events_by_number, events_from_arrays),
        probes=tuple(event_cases()),
        adapt=answering(pairs),
        praise="launch_model.schedule is this loop with names. Look where the host becomes the slower of the two.",
        stretch=True,
    ),
)  # fmt: skip

REFUTATIONS = ()

BENCHMARKS = (
    Benchmark(
        "07", without_wait, with_wait,
        ("graph first(x: f32[64,64]) -> (y) {\n  y = neg(x)\n  return y\n}",
         "graph second(x: f32[64,64]) -> (y) {\n  a = neg(x)\n  y = exp(a)\n  return y\n}"),
        ("graph first(x: f32[4096,4096]) -> (y) {\n  y = matmul(x, x)\n  return y\n}",
         "graph second(x: f32[64,64]) -> (y) {\n  a = neg(x)\n  y = exp(a)\n  return y\n}"),
        "It counts launches and calls them seconds: to it, a launch is a launch. How much may a single one have to do?",
        "It praises fewer launches, whatever they do. Wait for the device before you stop the clock.",
        "It calls them equally fast, because they have equally many launches: those numbers must differ.",
        needs_too_much,
    ),
)  # fmt: skip
