"""Chapter 11, memory planning: live ranges, in-place writes, a planner, an order."""

from __future__ import annotations

import random
from collections.abc import Callable

from ...ir import Graph, defs
from ...ops import OPS, Kind
from ...planners import Buffer
from ...run_numpy import VIEWS
from ...text import parse
from ..exercise import Exercise, Mistake, Refutation
from ..judge import judge_calls
from ..judge_memory import judge_in_place, judge_order, judge_plan
from ..memory import ORDERS, networks

# ---- live ranges ------------------------------------------------------------------------------------------------------


def live_ranges(launches, sizes, outputs, views):
    """The buffers of a list of launches: a list of Buffer(name, start, end, size), in their order.

    A launch is a pair (name, reads): number i of the list writes the value ``name`` and reads the
    values ``reads``. A value lives from its own launch up to and with the last launch that reads it;
    ``end`` is one more than that launch's number. If nobody reads it, it lives during its own launch.
    ``outputs`` names the values that the caller reads when all launches are done.
    ``views`` maps a view to the value whose memory it looks at, which may be a view again.
    What no launch writes (an input) gets no buffer. ``sizes`` has the bytes by name; round them up to
    a multiple of 64.

    live_ranges([("a", ("x",)), ("y", ("a",))], {"a": 100, "y": 8}, ("y",), {})
    is [Buffer("a", 0, 2, 128), Buffer("y", 1, 2, 64)]
    """
    ### BEGIN SOLUTION
    end = {}
    for index, (name, reads) in enumerate(launches):
        end[name] = index + 1
        for value in reads:
            while value in views:
                value = views[value]
            end[value] = index + 1
    for value in outputs:
        while value in views:
            value = views[value]
        end[value] = len(launches)
    found = []
    for start, (name, reads) in enumerate(launches):
        found.append(Buffer(name, start, end[name], -(-sizes[name] // 64) * 64))
    return found
    ### END SOLUTION


def ranges_backwards(launches, sizes, outputs, views):
    def memory(value):
        return memory(views[value]) if value in views else value

    end = {memory(value): len(launches) for value in outputs}
    found = []
    for index in reversed(range(len(launches))):
        name, reads = launches[index]
        for value in reads:
            end.setdefault(memory(value), index + 1)
        found.insert(0, Buffer(name, index, end.get(name, index + 1), (sizes[name] + 63) // 64 * 64))
    return found


def ranges_by_search(launches, sizes, outputs, views):
    found = []
    for start, (name, _) in enumerate(launches):
        same = {name}
        while more := {view for view, value in views.items() if value in same} - same:
            same |= more
        ends = [index + 1 for index, (_, reads) in enumerate(launches) if same & set(reads)]
        ends += [len(launches)] if same & set(outputs) else [start + 1]
        found.append(Buffer(name, start, max(ends), sizes[name] + -sizes[name] % 64))
    return found


def memory_of(value, views):
    while value in views:
        value = views[value]
    return value


def ranges_variant(launches, sizes, outputs, views, root: Callable = memory_of, out_root: Callable = memory_of,
                   shift: int = 1, unread: int = 1, align: Callable = lambda size: -(-size // 64) * 64,
                   first_only: bool = False, end_of: Callable = len):
    end = {}
    for index, (name, reads) in enumerate(launches):
        end[name] = index + unread
        for value in reads:
            value = root(value, views)
            if not first_only or end.get(value, 0) <= launch_of(launches, value) + 1:
                end[value] = index + shift
    for value in outputs:
        end[out_root(value, views)] = end_of(launches)
    return [Buffer(name, start, end[name], align(sizes[name])) for start, (name, _) in enumerate(launches)]


def launch_of(launches, value) -> int:
    return next((index for index, (name, _) in enumerate(launches) if name == value), 0)


def ranges_closed(*case):
    return ranges_variant(*case, shift=0, unread=0, end_of=lambda launches: len(launches) - 1)


def ranges_end_at_reader(*case):
    return ranges_variant(*case, shift=0)


def ranges_unread_never(*case):
    return ranges_variant(*case, unread=0)


def ranges_outputs_freed(launches, sizes, outputs, views):
    return ranges_variant(launches, sizes, (), views)


def ranges_views_ignored(*case):
    return ranges_variant(*case, root=lambda value, views: value, out_root=lambda value, views: value)


def ranges_one_view(*case):
    return ranges_variant(*case, root=lambda value, views: views.get(value, value),
                          out_root=lambda value, views: views.get(value, value))


def ranges_output_views_ignored(*case):
    return ranges_variant(*case, out_root=lambda value, views: value)


def ranges_unaligned(*case):
    return ranges_variant(*case, align=lambda size: size)


def ranges_rounded_down(*case):
    return ranges_variant(*case, align=lambda size: size // 64 * 64)


def ranges_always_more(*case):
    return ranges_variant(*case, align=lambda size: (size // 64 + 1) * 64)


def ranges_first_reader(*case):
    return ranges_variant(*case, first_only=True)


def ranges_forever(launches, sizes, outputs, views):
    return ranges_variant(launches, sizes, [name for name, _ in launches], {})


def ranges_with_inputs(launches, sizes, outputs, views):
    inputs = {memory_of(value, views): index + 1 for index, (_, reads) in enumerate(launches) for value in reads}
    given = [Buffer(name, 0, end, -(-sizes.get(name, 64) // 64) * 64) for name, end in inputs.items()
             if name not in dict(launches)]
    return [*given, *ranges_by_search(launches, sizes, outputs, views)]


def range_cases() -> list[tuple]:
    def case(text: str, outputs: str = "", views: dict | None = None, size: int = 64) -> tuple:
        launches = [(part.split("=")[0], tuple(part.split("=")[1])) for part in text.split()]
        sizes = {name: size + 40 * place * (size != 64) for place, (name, _) in enumerate(launches)}
        return launches, sizes, tuple(outputs), views or {}

    return [case("y=x", "y"), case("a=x y=a", "y"), case("a=x b=x y=b", "y"), case("a=x", "a", None, 100),
            case("a=x", "a", None, 8), case("y=x z=x", "yz"), case("a=x b=a c=b y=a", "y"), case("a=x b=a y=bb", "y"),
            case("a=x y=t z=y", "z", {"t": "a"}),
            case("a=x y=a z=yt", "z", {"t": "a"}), case("a=x b=x y=s", "y", {"t": "a", "s": "t"}),
            case("a=x y=x z=y", "zt", {"t": "a"}), case("a=x y=x", "sy", {"t": "a", "s": "t"}), case("y=t", "y", {"t": "x"}),
            case("a=x b=a c=ab d=bc e=ad y=ce", "yb", {}, 100), case("", ""),
            case("a=x b=t c=b d=c e=s y=e", "y", {"t": "a", "s": "t"}, 24)]


def as_buffers(function: Callable) -> Callable:
    """What the function answers, as a list of tuples; anything else stays, and is refused."""
    def answer(launches, sizes, outputs, views):
        found = function(launches, sizes, outputs, views)
        if isinstance(found, (list, tuple)) and all(isinstance(one, tuple) for one in found):
            return [tuple(one) for one in found]
        return found

    return answer


def explain_ranges(case, want, got) -> tuple[str, ...]:
    launches, sizes, outputs, views = case
    lines = [f"launch {index}: {name} ({sizes[name]} bytes) reads {', '.join(reads)}"
             for index, (name, reads) in enumerate(launches)]
    lines += [f"view: {view} looks at {value}" for view, value in views.items()]
    return (*lines[:10], f"outputs: {', '.join(outputs) or 'none'}", f"it should give {want}", f"and gives      {got}")


# ---- writing in place --------------------------------------------------------------------------------------------------


def can_reuse(graph, name, operand):
    """May the node ``name`` write its result into the memory of its operand ``operand``? True or False.

    The nodes run in the order of the list. The answer is yes if all of this holds:
    - the operand was computed: it is no input, no constant and no view;
    - the node is element-wise, and has the same type (dtype and shape) as the operand;
    - nobody needs the operand's memory later: no later node reads it, and it is no output's value;
    - the node itself reads that memory as this operand only.
    A view reads nothing, it looks at its operand's memory. So who reads a view, reads that memory;
    and a view may look at a view.

    a = exp(x), y = neg(a):                 can_reuse(graph, "y", "a") is True
    a = exp(x), y = neg(a), z = add(y, a):  can_reuse(graph, "y", "a") is False
    """
    views = ("reshape", "transpose", "broadcast_to", "slice")
    ### BEGIN SOLUTION
    nodes = defs(graph)
    node, old = nodes[name], nodes[operand]
    if old.op in ("input", "const", *views) or old.type != node.type:
        return False
    if OPS[node.op].kind is not Kind.ELEMENTWISE:
        return False
    same = {operand}
    for other in graph.nodes:
        if other.op in views and other.inputs[0] in same:
            same.add(other.name)
    later = {value for public, value in graph.outputs}
    for other in graph.nodes[list(nodes).index(name) + 1:]:
        if other.op not in views:
            later.update(other.inputs)
    return not same & later and not (same - {operand}) & set(node.inputs)
    ### END SOLUTION


def reuse_by_roots(graph, name, operand):
    nodes, root = defs(graph), {}
    for node in graph.nodes:
        root[node.name] = root[node.inputs[0]] if node.op in VIEWS else node.name
    node = nodes[name]
    if root[operand] != operand or nodes[operand].op in ("input", "const"):
        return False
    if OPS[node.op].kind is not Kind.ELEMENTWISE or node.type != nodes[operand].type:
        return False
    if any(root[value] == operand for _, value in graph.outputs):
        return False
    passed = False
    for other in graph.nodes:
        if other.op in VIEWS:
            continue
        reads = [value for value in other.inputs if root[value] == operand]
        if passed and reads or (other is node and set(reads) != {operand}):
            return False
        passed = passed or other is node
    return True


def reuse_step_by_step(graph, name, operand):
    return not reason(graph, name, operand)


def reason(graph, name, operand, skip: str = "", views=VIEWS) -> str:
    """Why the node may not write into the operand's memory; nothing if it may. ``skip`` leaves out a rule or half of one."""
    nodes = defs(graph)
    node, old = nodes[name], nodes[operand]
    if old.op == "input" and skip != "input":
        return f"{operand} is an input: its memory is the caller's"
    if old.op == "const" and skip != "const":
        return f"{operand} is a constant: the next run needs it"
    if old.op in VIEWS and skip != "view":
        return f"{operand} is a view: the memory is another value's"
    if OPS[node.op].kind is not Kind.ELEMENTWISE and skip != "kind":
        return f"{node.op} is not element-wise: it still reads elements of {operand} after it has stored some"
    if skip == "shape":
        same_type = old.type.nbytes == node.type.nbytes
    elif skip == "dtype":
        same_type = old.type.shape == node.type.shape
    else:
        same_type = old.type == node.type or skip == "type"
    if not same_type:
        return f"{operand} is {old.type} and {name} is {node.type}"
    place = list(nodes).index(name)
    same = {operand}
    for other in graph.nodes[:place] if skip == "views after" else graph.nodes:
        if other.op in views and other.inputs[0] in same:
            same.add(other.name)
    kept = {operand} if skip == "views of outputs" else same
    if kept & {value for _, value in graph.outputs} and skip != "outputs":
        return f"{operand} is an output's memory: the caller reads it"
    for other in graph.nodes[place + 1:]:
        if other.op not in VIEWS and same & set(other.inputs) and skip != "later":
            return f"{other.name} reads the memory of {operand} later"
    if (same - {operand}) & set(node.inputs) and skip != "twice":
        return f"{name} also reads the memory of {operand} through a view, at another place"
    return ""


def reuse_while_read(*case):
    return not reason(*case, skip="later")


def reuse_outputs(*case):
    return not reason(*case, skip="outputs")


def reuse_public_names(graph, name, operand):
    public = {public for public, _ in graph.outputs}
    return operand not in public and not reason(graph, name, operand, skip="outputs")


def reuse_inputs(*case):
    return not reason(*case, skip="input")


def reuse_constants(*case):
    return not reason(*case, skip="const")


def reuse_views(*case):
    return not reason(*case, skip="view")


def reuse_any_kind(*case):
    return not reason(*case, skip="kind")


def reuse_any_type(*case):
    return not reason(*case, skip="type")


def reuse_same_shape(*case):
    return not reason(*case, skip="dtype")


def reuse_same_bytes(*case):
    return not reason(*case, skip="shape")


def reuse_views_unseen(*case):
    return not reason(*case, views=())


def reuse_later_views_unseen(*case):
    return not reason(*case, skip="views after")


def reuse_views_are_readers(graph, name, operand):
    later = graph.nodes[list(defs(graph)).index(name) + 1:]
    return not any(operand in other.inputs for other in later) and not reason(graph, name, operand)


def reuse_output_views_unseen(*case):
    return not reason(*case, skip="views of outputs")


def reuse_own_views_unseen(*case):
    return not reason(*case, skip="twice")


def reuse_single_reader(graph, name, operand):
    readers = sum(other.inputs.count(operand) for other in graph.nodes)
    return readers == 1 and not reason(graph, name, operand)


def reuse_first_operand(graph, name, operand):
    return defs(graph)[name].inputs[0] == operand and not reason(graph, name, operand)


def reuse_none(graph, name, operand):
    return False


def graph_of(head: str, *lines: str, out: str = "y") -> Graph:
    body = "\n".join(f"  {line}" for line in lines)
    return parse(f"graph g({head}) -> ({out.replace('=', '_')}) {{\n{body}\n  return {out}\n}}")


def reuse_cases() -> list[tuple]:
    x, square = "x: f32[4]", "x: f32[2,2]"
    turned = "t = transpose(a) {perm=[1,0]}"
    flat = "t = reshape(a) {shape=[4]}"
    public = parse(f"graph g({x}) -> (out, y) {{\n  a = exp(x)\n  y = neg(a)\n  return out=a, y\n}}")
    return [
        (graph_of(x, "y = neg(x)"), "y", "x"),
        (graph_of(x, "a = exp(x)", "y = neg(a)"), "y", "a"),
        (graph_of(x, "c = const([1.0, 2.0, 3.0, 4.0]) : f32[4]", "y = neg(c)"), "y", "c"),
        (graph_of(x, "a = exp(x)", "y = mul(a, a)"), "y", "a"),
        (graph_of(x, "a = exp(x)", "y = add(x, a)"), "y", "a"),
        (graph_of(x, "a = exp(x)", "b = neg(a)", "y = add(a, b)"), "y", "a"),
        (graph_of(x, "a = exp(x)", "b = neg(a)", "y = add(a, b)"), "y", "b"),
        (graph_of(x, "a = exp(x)", "b = neg(a)", "y = add(a, b)"), "b", "a"),
        (graph_of(x, "a = exp(x)", "y = neg(a)", out="a, y"), "y", "a"),
        (public, "y", "a"),
        (graph_of(x, "a = exp(x)", "y = gt(a, x)"), "y", "a"),
        (graph_of("x: f32[4], w: f32[2,4]", "a = exp(x)", "y = add(a, w)"), "y", "a"),
        (graph_of("x: f32[4], w: f32[2,4]", "a = exp(w)", "y = add(a, x)"), "y", "a"),
        (graph_of(square, "a = exp(x)", "y = matmul(a, x)"), "y", "a"),
        (graph_of(square, turned.replace("(a)", "(x)"), "y = neg(t)"), "y", "t"),
        (graph_of(square, "a = exp(x)", turned, "y = neg(t)"), "y", "t"),
        (graph_of(square, "a = exp(x)", turned, "y = add(a, t)"), "y", "a"),
        (graph_of(square, "a = exp(x)", turned, "b = neg(a)", "y = add(b, t)"), "b", "a"),
        (graph_of(square, "a = exp(x)", turned, "b = exp(t)", "y = add(a, b)"), "y", "a"),
        (graph_of(square, "a = exp(x)", flat, "y = neg(a)", out="t, y"), "y", "a"),
        (graph_of(square, "a = exp(x)", flat, "s = slice(t) {start=[0], stop=[2], step=[1]}", "b = neg(a)",
                  "y = add(b, s)"), "b", "a"),
        (graph_of(x, "a = exp(x)", "b = gt(x, a)", "y = where(b, a, x)"), "y", "a"),
        (graph_of(x, "a = exp(x)", "b = sin(x)", "z = neg(a)", "y = add(b, z)"), "y", "b"),
        (graph_of(square, "a = exp(x)", "b = neg(a)", turned, "y = add(b, t)"), "b", "a"),
        (graph_of(square, "a = exp(x)", "b = neg(a)", "y = matmul(a, b)"), "b", "a"),
        (graph_of(x, "a = exp(x)", "y = neg(a)", out="y, a"), "y", "a"),
        (graph_of(x, "a = exp(x)", "y = cast(a) {dtype=i32}"), "y", "a"),
        (graph_of(square, "a = exp(x)", "b = neg(a)", turned, out="b"), "b", "a"),
    ]  # fmt: skip


def explain_reuse(case, want, got) -> tuple[str, ...]:
    graph, name, operand = case
    why = reason(*case)
    return (f"may {name} be written over {operand}?", f"it should give {want}{f': {why}' if why else ''}", f"and gives      {got!r}")


# ---- a planner --------------------------------------------------------------------------------------------------------


def plan(buffers):
    """An offset in bytes for each buffer, as a list in the order of ``buffers``.

    A Buffer has a name, a start, an end and a size. It lives over [start, end): launch ``end`` is the
    first that does not need it any more. Two buffers that live at one time must not overlap in memory.
    Offsets are 0 or more. The memory that the plan takes is the highest offset + size; on the
    instances of this exercise it may be at most 1.1 times the lower bound.

    plan([Buffer("a", 0, 2, 64), Buffer("b", 1, 3, 128), Buffer("c", 2, 4, 64)])
    may be [128, 0, 128]: a and c are never alive together
    """
    ### BEGIN SOLUTION
    offsets = {}
    for number in sorted(range(len(buffers)), key=lambda number: -buffers[number].size):
        one = buffers[number]
        near = []
        for other, offset in offsets.items():
            if buffers[other].start < one.end and one.start < buffers[other].end:
                near.append((offset, offset + buffers[other].size))
        floor = 0
        for low, top in sorted(near):
            if low - floor >= one.size:
                break
            floor = max(floor, top)
        offsets[number] = floor
    return [offsets[number] for number in range(len(buffers))]
    ### END SOLUTION


def by_size(buffers, number):
    return -buffers[number].size


def alive_together(a: Buffer, b: Buffer) -> bool:
    return a.start < b.end and b.start < a.end


def plan_variant(buffers, order: Callable = by_size, together: Callable = alive_together, floor_of: Callable | None = None):
    offsets = {}
    for number in sorted(range(len(buffers)), key=lambda number: order(buffers, number)):
        one = buffers[number]
        near = [(offset, offset + buffers[other].size) for other, offset in offsets.items() if together(one, buffers[other])]
        offsets[number] = (floor_of or lowest_gap)(near, one.size)
    return [offsets[number] for number in range(len(buffers))]


def lowest_gap(near, size: int) -> int:
    floor = 0
    for low, top in sorted(near):
        if low - floor >= size:
            break
        floor = max(floor, top)
    return floor


def plan_best_fit(buffers):
    """In the same order, into the smallest gap that is large enough."""
    def tightest(near, size):
        floor, found = 0, []
        for low, top in sorted(near):
            if low - floor >= size:
                found.append((low - floor, floor))
            floor = max(floor, top)
        return min(found)[1] if found else floor

    return plan_variant(buffers, order=lambda buffers, number: (by_size(buffers, number), buffers[number].start), floor_of=tightest)


def plan_several_orders(buffers):
    """The best of three orders."""
    orders = (by_size, lambda buffers, n: (buffers[n].start, -buffers[n].size),
              lambda buffers, n: -buffers[n].size * (buffers[n].end - buffers[n].start))
    plans = [plan_variant(buffers, order) for order in orders]
    return min(plans, key=lambda offsets: max((o + b.size for o, b in zip(offsets, buffers)), default=0))


def plan_by_candidates(buffers):
    """The lowest offset that is 0 or the top of a buffer, and where it fits."""
    def first(near, size):
        return next(low for low in sorted({0, *(top for _, top in near)})
                    if all(low + size <= bottom or top <= low for bottom, top in near))

    return plan_variant(buffers, floor_of=first)


def plan_naive(buffers):
    offsets, top = [], 0
    for buffer in buffers:
        offsets.append(top)
        top += buffer.size
    return offsets


def plan_closed(buffers):
    return plan_variant(buffers, together=lambda a, b: a.start <= b.end and b.start <= a.end)


def plan_contained(buffers):
    """Looks whether the other's start or end lies inside, and forgets that it may lie around."""
    return plan_variant(buffers, together=lambda one, other: one.start <= other.start < one.end or one.start < other.end <= one.end)


def plan_starts_inside(buffers):
    return plan_variant(buffers, together=lambda one, other: other.start <= one.start < other.end)


def plan_on_top(buffers):
    return plan_variant(buffers, floor_of=lambda near, size: max((top for _, top in near), default=0))


def plan_unsorted(buffers):
    def gap(near, size):
        floor = 0
        for low, top in near:
            if low - floor >= size:
                break
            floor = max(floor, top)
        return floor

    return plan_variant(buffers, floor_of=gap)


def plan_last_top(buffers):
    def gap(near, size):
        floor = 0
        for low, top in sorted(near):
            if low - floor >= size:
                break
            floor = top
        return floor

    return plan_variant(buffers, floor_of=gap)


def plan_strict_gap(buffers):
    def gap(near, size):
        floor = 0
        for low, top in sorted(near):
            if low - floor > size:
                break
            floor = max(floor, top)
        return floor

    return plan_variant(buffers, floor_of=gap)


def plan_gap_ignored(buffers):
    """Stops at the first gap, however small."""
    def gap(near, size):
        floor = 0
        for low, top in sorted(near):
            if low > floor:
                break
            floor = max(floor, top)
        return floor

    return plan_variant(buffers, floor_of=gap)


def plan_by_start(buffers):
    return plan_variant(buffers, order=lambda buffers, number: buffers[number].start)


def plan_smallest_first(buffers):
    return plan_variant(buffers, order=lambda buffers, number: buffers[number].size)


def plan_as_given(buffers):
    return plan_variant(buffers, order=lambda buffers, number: number)


def plan_in_its_own_order(buffers):
    order = sorted(range(len(buffers)), key=lambda number: by_size(buffers, number))
    offsets = plan_variant(buffers)
    return [offsets[number] for number in order]


def plan_dict(buffers):
    return {buffer.name: offset for buffer, offset in zip(buffers, plan_variant(buffers))}


def plan_without_ranges(buffers):
    return [0 for _ in buffers]


def valid_cases() -> list[list[Buffer]]:
    """Small instances on which a wrong test of overlap, or a wrong gap, shows; then random ones."""
    def case(*rows) -> list[Buffer]:
        return [Buffer("abcdefgh"[place], *row) for place, row in enumerate(rows)]

    small = [case((0, 1, 64)), case((0, 2, 64), (1, 3, 64)), case((0, 4, 64), (1, 2, 128)), case((1, 2, 64), (0, 4, 128)),
             case((1, 2, 128), (0, 4, 64)), case((0, 2, 64), (1, 3, 128)), case((1, 3, 64), (0, 2, 128)),
             case((0, 4, 128), (0, 1, 64), (1, 4, 64), (3, 4, 64)), case((0, 1, 0), (0, 1, 64))]
    draw = random.Random(11)
    for count in (3, 3, 4, 4, 5, 5, 6, 6, 8, 8, 12, 12, 20, 40):
        for _ in range(6):
            rows = []
            for _ in range(count):
                start = draw.randrange(count)
                rows.append((start, draw.randint(start + 1, count), 64 * draw.choice((1, 1, 2, 3, 4, 8))))
            if count <= 8:
                small.append(case(*rows))
            else:
                small.append([Buffer(f"b{place}", *row) for place, row in enumerate(rows)])
    return small


def low_cases() -> list[list[Buffer]]:
    """Instances of which the footprint is judged."""
    def case(*rows) -> list[Buffer]:
        return [Buffer("abcdefgh"[place], *row) for place, row in enumerate(rows)]

    return [case((0, 1, 64)), case((0, 1, 64), (1, 2, 64)), case((0, 2, 64), (2, 3, 128), (3, 5, 64)),
            case((0, 3, 256), (0, 1, 128), (0, 3, 64), (1, 3, 128)), case((0, 1, 128), (0, 2, 128), (1, 3, 256)),
            case((0, 2, 64), (1, 3, 128), (2, 4, 64)), *networks().values()]


# ---- the stretch: an order ----------------------------------------------------------------------------------------------


def reorder(launches, sizes, outputs):
    """A better order: the names of the launches, in an order whose peak is as low as you can make it.

    ``launches``, ``sizes`` and ``outputs`` are as in live_ranges; there are no views. A launch may run
    when all launches whose values it reads have run. While it runs, its result and all that it reads
    live. The peak is the lower bound of the live ranges. On the lists of this
    exercise it must be at most what the idea below reaches.

    An idea: of all launches that may run now, take the one that makes memory grow least. Its result
    comes, and the operands go that no other launch still needs and that are no outputs.
    It is no guarantee: on other lists its peak may be higher than in the given order, so a compiler
    compares the two and keeps the better.
    """
    ### BEGIN SOLUTION
    waiting = dict(launches)
    order, made = [], set()

    def growth(name):
        rest = {value for other, reads in waiting.items() if other != name for value in reads}
        freed = made & set(waiting[name]) - rest - set(outputs)
        return sizes[name] - sum(sizes[value] for value in freed)

    while waiting:
        ready = [name for name, reads in waiting.items() if not set(reads) & set(waiting)]
        best = min(ready, key=growth)
        order.append(best)
        made.add(best)
        del waiting[best]
    return order
    ### END SOLUTION


def reorder_by_counts(launches, sizes, outputs):
    """The same idea with a count of the readers that are left; the latest of the best."""
    reads = {name: {value for value in values if value in sizes} for name, values in launches}
    left = {name: sum(name in values for values in reads.values()) + (name in outputs) for name in reads}
    order = []
    while len(order) < len(reads):
        ready = [name for name in reversed(reads) if name not in order and reads[name] <= set(order)]
        name = max(ready, key=lambda name: sum(sizes[value] for value in reads[name] if left[value] == 1) - sizes[name])
        for value in reads[name]:
            left[value] -= 1
        order.append(name)
    return order


def reorder_by_peak(launches, sizes, outputs):
    """Every set of launches that can have run, with the lowest peak on a way there: exact, for short lists."""
    reads = {name: tuple(value for value in values if value in dict(launches)) for name, values in launches}
    readers = {name: {other for other in reads if name in reads[other]} for name in reads}

    def live(done):
        return {name for name in done if name in outputs or readers[name] - done}

    best = {frozenset(): (0, ())}
    for _ in reads:
        following: dict[frozenset, tuple] = {}
        for done, (peak, order) in best.items():
            for name in reads:
                if name in done or not set(reads[name]) <= done:
                    continue
                now = max(peak, sum(sizes[value] for value in live(done) | {name} | set(reads[name])))
                key = done | {name}
                if key not in following or now < following[key][0]:
                    following[key] = now, (*order, name)
        best = following
    return list(best[frozenset(reads)][1])


def reorder_unchanged(launches, sizes, outputs):
    return [name for name, _ in launches]


def reorder_by_size(launches, sizes, outputs):
    return sorted((name for name, _ in launches), key=lambda name: sizes[name])


def reorder_variant(launches, sizes, outputs, key: Callable):
    waiting, order = dict(launches), []
    while waiting:
        ready = [name for name, reads in waiting.items() if not set(reads) & set(waiting)]
        rest = {name: {value for other, reads in waiting.items() if other != name for value in reads} for name in ready}
        freed = {name: sum(sizes[value] for value in set(waiting[name]) & set(order) - rest[name] - set(outputs)) for name in ready}
        best = min(ready, key=lambda name: key(sizes[name], freed[name]))
        order.append(best)
        del waiting[best]
    return order


def reorder_smallest_ready(*case):
    return reorder_variant(*case, key=lambda size, freed: size)


def reorder_most_freed(*case):
    return reorder_variant(*case, key=lambda size, freed: -freed)


def reorder_largest_ready(*case):
    return reorder_variant(*case, key=lambda size, freed: freed - size)


def reorder_reversed(launches, sizes, outputs):
    return [name for name, _ in reversed(launches)]


def reorder_without_unread(launches, sizes, outputs):
    read = {value for _, reads in launches for value in reads} | set(outputs)
    return [name for name in reorder_by_peak(launches, sizes, outputs) if name in read]


# ---- wrong rules to refute -----------------------------------------------------------------------------------------------


def over_the_first(graph):
    """Writes every element-wise result over the first operand that was computed and has its type."""
    nodes, over = defs(graph), {}
    for node in graph.nodes:
        for value in node.inputs if OPS[node.op].kind is Kind.ELEMENTWISE else ():
            if nodes[value].op not in ("input", "const", *VIEWS) and nodes[value].type == node.type:
                over.setdefault(node.name, value)
    return over


def over_the_last_read(graph):
    """The same, but only if no later node and no output names the operand."""
    nodes, over = defs(graph), over_the_first(graph)
    order, outputs = list(nodes), {value for _, value in graph.outputs}
    for name, value in list(over.items()):
        later = graph.nodes[order.index(name) + 1:]
        if value in outputs or any(value in node.inputs for node in later):
            del over[name]
    return over


def lesson_of_views(graph):
    """Which of the two ways around the names the learner found."""
    nodes = defs(graph)
    for name, value in over_the_last_read(graph).items():
        views = {node.name: node.inputs[0] for node in graph.nodes if node.op in VIEWS}
        if any(one in views and memory_of(one, views) == value for one in nodes[name].inputs):
            return ("The launch reads the same memory twice, and through the view at another place: when it comes there, the"
                    " element has been overwritten. An operand that is broadcast or transposed is never at the same place.")
    return ("Nobody names the operand any more, but a view still looks at its memory. A view has no memory of its own, so it"
            " makes its root live longer.")


EXERCISES = (
    Exercise(
        "11", "Live ranges", live_ranges,
        lambda function: judge_calls(function, range_cases(), as_buffers(live_ranges), explain=explain_ranges),
        ("For each value there is one question: which launch is the last that needs its memory?",
         "Keep a dict from a name to its end. Walk over the launches with their numbers: the value that is written gets the"
         " number plus 1, and so does each value that is read, after its views have been followed back. Later launches"
         " overwrite what earlier ones wrote. Then every output gets the number of launches. In the end make the buffers.",
         "end = {}\nfor index, (name, reads) in enumerate(launches):\n    end[name] = index + 1\n    for value in reads:\n"
         "        while value in views:\n            ...\n        end[value] = ...\nfor value in outputs:\n    ...\n"
         "return [Buffer(name, start, end[name], ...) for start, (name, _) in enumerate(launches)]"),
        (Mistake(ranges_closed, "wrong-value", "These are the last launches themselves. The interval is half-open: end is"
                 " the first launch that does not need the value any more, one later."),
         Mistake(ranges_end_at_reader, "wrong-value", "The value ends where its last reader starts, so that launch could"
                 " write its result over what it still reads. The end is one later."),
         Mistake(ranges_unread_never, "wrong-value", "A value that nobody reads is written all the same, and needs memory"
                 " while it is: it lives during its own launch."),
         Mistake(ranges_outputs_freed, "wrong-value", "The caller reads the outputs when all launches are done: they live to"
                 " the end."),
         Mistake(ranges_views_ignored, "wrong-value", "Who reads a view reads the memory behind it: follow the view to the"
                 " value that owns the memory."),
         Mistake(ranges_one_view, "wrong-value", "A view may look at a view: follow them until the value is no view."),
         Mistake(ranges_output_views_ignored, "wrong-value", "An output may be a view, too: then the memory behind it lives"
                 " to the end."),
         Mistake(ranges_unaligned, "wrong-value", "The sizes are not rounded up to a multiple of 64: the next buffer would"
                 " begin in the middle of a cache line."),
         Mistake(ranges_rounded_down, "wrong-value", "This rounds down, so the buffer is too small. Round up:"
                 " -(-size // 64) * 64."),
         Mistake(ranges_always_more, "wrong-value", "A size that is a multiple of 64 already stays as it is."),
         Mistake(ranges_first_reader, "wrong-value", "This is the first launch that reads the value, and it must live until"
                 " the last."),
         Mistake(ranges_forever, "wrong-value", "Here nothing ever dies, so nothing can be reused: a value's end is after its"
                 " last reader."),
         Mistake(ranges_with_inputs, "wrong-value", "What no launch writes is the caller's and has its memory already: it"
                 " gets no buffer.")),
        (ranges_backwards, ranges_by_search),
        probes=tuple(range_cases()),
        adapt=as_buffers,
        praise="make_plan finds its regions with the same walk.",
    ),
    Exercise(
        "11", "Writing in place", can_reuse,
        lambda function: judge_calls(function, reuse_cases(), reuse_step_by_step, explain=explain_reuse),
        ("Four questions, each a reason to say no. Whose memory is it? Is it read at the same place only? Who reads it later?"
         " Who reads it now, in another way?",
         "Return False for an input, a constant or a view, for another type, and for a node that is not element-wise. Collect"
         " the operand and everything that looks at it in a set: walk over the nodes, and a view of something in the set comes"
         " into it. If a later node that is no view reads something of the set, or an output is of it, return False. The node"
         " itself may read only the operand of it.",
         "nodes = defs(graph)\nnode, old = nodes[name], nodes[operand]\nif ...:\n    return False\nsame = {operand}\nfor other"
         " in graph.nodes:\n    if other.op in views and other.inputs[0] in same: ...\nlater = {value for public, value in"
         " graph.outputs}\nfor other in graph.nodes[list(nodes).index(name) + 1:]: ...\nreturn not same & later and not ..."),
        (Mistake(reuse_while_read, "wrong-value", "A later node still reads the operand, and would find the new value there."),
         Mistake(reuse_outputs, "wrong-value", "The operand is an output: the caller reads it when all is done."),
         Mistake(reuse_public_names, "wrong-value", "An output has a public name and a value, which may be called otherwise:"
                 " compare with the value."),
         Mistake(reuse_inputs, "wrong-value", "An input's memory is the caller's: he would find his array changed."),
         Mistake(reuse_constants, "wrong-value", "A constant is needed by the next run, too."),
         Mistake(reuse_views, "wrong-value", "A view has no memory of its own: the memory is another value's, in another"
                 " arrangement."),
         Mistake(reuse_any_kind, "wrong-value", "The operation is not element-wise: it needs elements again after it has"
                 " stored others over them."),
         Mistake(reuse_any_type, "wrong-value", "The result has another size, as with an operand that is broadcast: it does not fit,"
                 " or not element on element."),
         Mistake(reuse_same_shape, "wrong-value", "The shape alone does not say how many bytes an element has: a bool has one"
                 " and a float32 four. Compare the types."),
         Mistake(reuse_same_bytes, "wrong-value", "As many bytes do not make the same type: compare the types, with"
                 " dtype and shape."),
         Mistake(reuse_later_views_unseen, "wrong-value", "A view may also be made after the node: look at all nodes for"
                 " views of the operand, not only at those before."),
         Mistake(reuse_output_views_unseen, "wrong-value", "An output may be a view of the operand: follow it."),
         Mistake(reuse_views_are_readers, "wrong-value", "A view reads nothing: it counts only if somebody reads the view, or"
                 " it is an output."),
         Mistake(reuse_views_unseen, "wrong-value", "A view looks at the operand's memory, and it is read: follow the views."),
         Mistake(reuse_own_views_unseen, "wrong-value", "The same node also reads the memory through a view, at another place:"
                 " when it comes there, the element has been overwritten."),
         Mistake(reuse_single_reader, "wrong-value", "Several readers do no harm if this node is the last of them, even twice."),
         Mistake(reuse_first_operand, "wrong-value", "Any operand will do, not only the first."),
         Mistake(reuse_none, "wrong-value", "Never is right, and saves nothing: here the memory could be reused.")),
        (reuse_by_roots, reuse_step_by_step),
        probes=tuple(reuse_cases()),
        praise="minigraph's share_memory asks the same of a whole launch, which may hold many nodes.",
    ),
    Exercise(
        "11", "A planner", plan,
        lambda function: judge_plan(function, valid_cases(), low_cases()),
        ("Place one buffer after the other, each at the lowest offset that is free during its whole life. Which should be"
         " placed first?",
         "Go through the numbers of the buffers by falling size. Collect (offset, top) of all buffers that are placed and"
         " live at one time with this one. Sort them. Start at floor = 0: if the next one's offset leaves room for the size"
         " above the floor, that is the place; otherwise raise the floor to its top, and never lower it.",
         "offsets = {}\nfor number in sorted(range(len(buffers)), key=...):\n    one = buffers[number]\n    near = [...]\n"
         "    floor = 0\n    for low, top in sorted(near):\n        if ...:\n            break\n        floor = max(...)\n"
         "    offsets[number] = floor\nreturn [offsets[number] for number in range(len(buffers))]"),
        (Mistake(plan_contained, "overlap", "One life may lie inside the other: then neither the start nor the end of the"
                 " longer one is inside the shorter. Two lives meet if each starts before the other ends."),
         Mistake(plan_starts_inside, "overlap", "The other buffer may also start later, while this one lives. Two lives meet"
                 " if each starts before the other ends."),
         Mistake(plan_unsorted, "overlap", "The gaps are between neighbours in memory, so the neighbours must be sorted by"
                 " offset first."),
         Mistake(plan_last_top, "overlap", "A low neighbour may reach less high than one before it: the floor is the highest"
                 " top so far, max(floor, top)."),
         Mistake(plan_gap_ignored, "overlap", "The gap is too small: compare it with the buffer's size."),
         Mistake(plan_in_its_own_order, "overlap", "The offsets come in the order in which they were placed: give them in the"
                 " order of the list."),
         Mistake(plan_without_ranges, "overlap", "Everything lies at 0, although some of it lives at one time."),
         Mistake(plan_dict, "not-offsets", "This is a dict: return a list of offsets, in the order of the buffers."),
         Mistake(plan_naive, "too-high", "Every buffer has bytes of its own, so nothing is reused: two buffers that never live"
                 " at one time may share."),
         Mistake(plan_closed, "too-high", "A buffer that ends at launch 1 is not needed at launch 1 any more: one that starts"
                 " there may have its place. Use < and not <=."),
         Mistake(plan_on_top, "too-high", "The buffer went on top of all its neighbours, and there was a gap below that is"
                 " large enough."),
         Mistake(plan_strict_gap, "too-high", "A gap of exactly the right size is large enough: use >=."),
         Mistake(plan_by_start, "too-high", "In the order of the starts, small early buffers are in the way of large late"
                 " ones: place the largest first."),
         Mistake(plan_as_given, "too-high", "In the order of the list, small buffers are in the way of large ones: place the"
                 " largest first."),
         Mistake(plan_smallest_first, "too-high", "The small ones fit anywhere: place the largest first.")),
        (plan_best_fit, plan_several_orders, plan_by_candidates),
        probes=tuple((list(case),) for case in (*valid_cases()[:40], *low_cases())),
        praise="The next cell compares your planner with greedy by size, and with the bound.",
    ),
    Exercise(
        "11", "An order", reorder,
        lambda function: judge_order(function, ORDERS, reorder),
        ("Finish what you have begun: a launch that frees more than it makes should run as soon as it may.",
         "While launches are waiting: find those of which no operand is waiting. For each, what would memory grow by? Its"
         " size, minus the sizes of its operands that no other waiting launch reads and that are no outputs. Take the least.",
         "waiting = dict(launches)\norder, made = [], set()\ndef growth(name):\n    rest = {...}\n    freed = ...\n    return"
         " sizes[name] - sum(...)\nwhile waiting:\n    ready = [...]\n    best = min(ready, key=growth)\n    ...\nreturn"
         " order"),
        (Mistake(reorder_unchanged, "too-high", "This is the order that was given: a lower peak can be reached."),
         Mistake(reorder_by_size, "too-early", "Sorting by size alone forgets that a launch needs its operands: take only"
                 " launches that may run."),
         Mistake(reorder_reversed, "too-early", "Backwards, every reader comes before what it reads."),
         Mistake(reorder_smallest_ready, "too-high", "The smallest result is not all: look also at what the launch frees."),
         Mistake(reorder_most_freed, "too-high", "What is freed is not all: a launch may free much and make more. Take the"
                 " difference."),
         Mistake(reorder_largest_ready, "too-high", "This takes the launch that makes memory grow most: take the least."),
         Mistake(reorder_without_unread, "not-an-order", "A launch whose value nobody reads is still a launch: deleting it is"
                 " dce's job.")),
        (reorder_by_counts, reorder_by_peak),
        probes=tuple(ORDERS),
        praise="The package's reorder searches all orders where there are at most 40 operations.",
        stretch=True,
    ),
)  # fmt: skip

REFUTATIONS = (
    Refutation(
        "11", over_the_first,
        parse("graph mine(x: f32[4]) -> (y) {\n  a = abs(x)\n  b = neg(a)\n  y = neg(b)\n  return y\n}"),
        parse("graph mine(x: f32[4]) -> (y) {\n  a = abs(x)\n  b = neg(a)\n  y = add(a, b)\n  return y\n}"),
        "It never asks who else needs the operand. Give a value two readers.",
        "The second reader found the new value in the operand's place. A result may go there only if nobody reads the operand"
        " afterwards.",
        judge_in_place, "On this graph the in-place writes do no harm: the outputs are as before.",
    ),
    Refutation(
        "11", over_the_last_read,
        parse("graph mine(x: f32[2,2]) -> (y) {\n  a = abs(x)\n  t = transpose(a) {perm=[1,0]}\n  y = neg(t)\n  return y\n}"),
        parse("graph mine(x: f32[2,2]) -> (y) {\n  a = abs(x)\n  t = transpose(a) {perm=[1,0]}\n  y = add(a, t)\n  return y\n}"),
        "It looks for the operand's name, and a view has another. Let the node, or a later one, read a view of the operand.",
        lesson_of_views,
        judge_in_place, "On this graph the in-place writes do no harm: the outputs are as before.",
    ),
)  # fmt: skip
