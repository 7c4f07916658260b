"""Chapter 12, quantization and sparsity: the exercises, their mistakes and the passes to refute."""

from __future__ import annotations

import math
from collections.abc import Callable
from math import prod

import numpy as np

from ...ir import Builder, Graph, Node, defs, fresh
from ...ops import OPS, Kind, infer, make_attrs
from ...passes.dce import dce
from ...passes.sparsity import mask_24
from ...text import parse
from ...types import DTYPES, Const
from ..exact import article
from ..exercise import Exercise, Mistake, Refutation
from ..graphs import Space
from ..judge import judge_calls, judge_harm, judge_pass

# ---- int8, with a scale a row -------------------------------------------------------------------------------------


def quantize_weights(w, clip=np.inf):
    """A matrix as int8 with a scale for each row: (q, scale).

    ``w`` is f32[N, K], and finite. The result is q: int8[N, K] and scale: float32[N, 1], so that
    q * scale is about w.

    The scale of a row is its largest size, or ``clip`` if that is smaller, divided by 127. A row whose
    scale would be 0 has the scale 1. q is w / scale, to the nearest integer (of two equally near ones
    the even one), and what is beyond 127 or -127 stays there. All of this in float32.

        w = [[254, 5, -3], [0, 0, 0]]  gives  q = [[127, 2, -2], [0, 0, 0]],    scale = [[2], [1]]
        the same with clip=12.7        gives  q = [[127, 50, -30], [0, 0, 0]],  scale = [[0.1], [1]]
    """
    ### BEGIN SOLUTION
    most = np.minimum(np.abs(w).max(axis=1, keepdims=True), np.float32(clip))
    scale = most / np.float32(127)
    scale = np.where(scale == 0, np.float32(1), scale)
    steps = np.rint(w / scale)
    return np.clip(steps, -127, 127).astype(np.int8), scale
    ### END SOLUTION


def quantize_by_rows(w, clip=np.inf):
    q, scales = np.zeros(w.shape, np.int8), np.ones((len(w), 1), np.float32)
    for number, row in enumerate(w):
        largest = min(np.abs(row).max(), np.float32(clip))
        if largest / np.float32(127) > 0:
            scales[number] = largest / np.float32(127)
        for column, value in enumerate(row):
            q[number, column] = max(-127, min(127, round(float(value / scales[number, 0]))))
    return q, scales


def quantize_clip_first(w, clip=np.inf):
    """Clips the weights in place of the steps."""
    scale = np.abs(np.clip(w, np.float32(-clip), np.float32(clip))).max(axis=1, keepdims=True) / np.float32(127)
    scale[scale == 0] = 1
    return np.round(np.clip(w / scale, -127, 127)).astype(np.int8), scale


def quantize_variant(w, clip=np.inf, size: Callable = np.abs, axis: int | None = 1, steps: int = 127, guard=True,
                     rounding: Callable = np.rint, low: int = -127, saturate: Callable = np.clip, dtype=np.int8,
                     scales=lambda scale: scale, clipped=True, quotient: Callable = np.divide):
    """The solution with one thing changed; the mistakes below are made of it."""
    most = size(w).max(axis=axis, keepdims=True)
    if clipped:
        most = np.minimum(most, np.float32(clip))
    scale = most / np.float32(steps)
    if guard:
        scale = np.where(scale == 0, np.float32(1), scale)
    with np.errstate(all="ignore"):
        q = saturate(rounding(quotient(w, scale)), low, 127).astype(dtype)
    return q, scales(scale)


def quantize_truncating(w, clip=np.inf):
    return quantize_variant(w, clip, rounding=np.trunc)


def quantize_half_up(w, clip=np.inf):
    return quantize_variant(w, clip, rounding=lambda x: np.floor(x + np.float32(0.5)))


def quantize_half_away(w, clip=np.inf):
    return quantize_variant(w, clip, rounding=lambda x: np.sign(x) * np.floor(np.abs(x) + np.float32(0.5)))


def quantize_one_scale(w, clip=np.inf):
    return quantize_variant(w, clip, axis=None, scales=lambda scale: np.repeat(scale, len(w), axis=0))


def quantize_scalar_scale(w, clip=np.inf):
    return quantize_variant(w, clip, axis=None, scales=lambda scale: scale[0, 0])


def quantize_one_by_one(w, clip=np.inf):
    """One scale, in an array of shape [1, 1]."""
    return quantize_variant(w, clip, axis=None)


def quantize_columns(w, clip=np.inf):
    return quantize_variant(w, clip, axis=0)


def quantize_by_128(w, clip=np.inf):
    return quantize_variant(w, clip, steps=128)


def quantize_without_size(w, clip=np.inf):
    return quantize_variant(w, clip, size=lambda x: x)


def quantize_without_guard(w, clip=np.inf):
    return quantize_variant(w, clip, guard=False)


def quantize_wrapping(w, clip=np.inf):
    return quantize_variant(w, clip, saturate=lambda x, low, high: x.astype(np.int64))


def quantize_to_minus_128(w, clip=np.inf):
    return quantize_variant(w, clip, low=-128)


def quantize_as_floats(w, clip=np.inf):
    return quantize_variant(w, clip, dtype=np.float32)


def quantize_in_doubles(w, clip=np.inf):
    return quantize_variant(w.astype(np.float64), clip)


def quantize_doubles_inside(w, clip=np.inf):
    q, scale = quantize_variant(w.astype(np.float64), clip)
    return q, scale.astype(np.float32)


def quantize_doubles_quotient(w, clip=np.inf):
    return quantize_variant(w, clip, quotient=lambda w, scale: w / scale.astype(np.float64))


def quantize_clip_in_doubles(w, clip=np.inf):
    """Divides Python's numbers, and makes the quotient a float32: a clip that is none is rounded too late."""
    scale = np.float32([[min(float(row.max()), clip) / 127] for row in np.abs(w)])
    scale[scale == 0] = 1
    return np.clip(np.rint(w / scale), -127, 127).astype(np.int8), scale


def quantize_sizes_first(w, clip=np.inf):
    """Asks whether the largest size is 0, and not whether the scale is."""
    most = np.minimum(np.abs(w).max(axis=1, keepdims=True), np.float32(clip))
    scale = np.where(most == 0, np.float32(1), most / np.float32(127))
    with np.errstate(all="ignore"):
        return np.clip(np.rint(w / scale), -127, 127).astype(np.int8), scale


def quantize_one_too_early(w, clip=np.inf):
    """Puts the 1 in before it divides by 127."""
    most = np.minimum(np.abs(w).max(axis=1, keepdims=True), np.float32(clip))
    most[most == 0] = 1
    scale = most / np.float32(127)
    with np.errstate(all="ignore"):
        return np.clip(np.rint(w / scale), -127, 127).astype(np.int8), scale


def quantize_by_a_rounded_share(w, clip=np.inf):
    most = np.minimum(np.abs(w).max(axis=1, keepdims=True), np.float32(clip))
    scale = most * np.float32(1 / 127)
    scale = np.where(scale == 0, np.float32(1), scale)
    return np.clip(np.rint(w / scale), -127, 127).astype(np.int8), scale


def quantize_by_reciprocal(w, clip=np.inf):
    return quantize_variant(w, clip, quotient=lambda w, scale: w * (np.float32(1) / scale))


def quantize_by_steps_of_most(w, clip=np.inf):
    """Divides by the largest size, and not by the scale, which is rounded itself."""
    most = np.minimum(np.abs(w).max(axis=1, keepdims=True), np.float32(clip))
    return quantize_variant(w, clip, quotient=lambda w, scale: w * np.float32(127) / np.where(most == 0, np.float32(1), most))


def quantize_clipped_before(w, clip=np.inf):
    """Clips the weights, and trusts that no step is beyond 127 then."""
    within = np.clip(w, np.float32(-clip), np.float32(clip))
    return quantize_variant(within, saturate=lambda x, low, high: x.astype(np.int64))


def quantize_clips_above(w, clip=np.inf):
    """Holds back what is above clip, before it takes the sizes."""
    return quantize_variant(w, size=lambda x: np.abs(np.minimum(x, np.float32(clip))))


def quantize_clips_weights_above(w, clip=np.inf):
    return quantize_variant(np.minimum(w, np.float32(clip)))


def quantize_clips_only_weights(w, clip=np.inf):
    """Clips the weights, and takes the scale of what they were."""
    scale = quantize_variant(w)[1]
    return np.clip(np.rint(np.clip(w, np.float32(-clip), np.float32(clip)) / scale), -127, 127).astype(np.int8), scale


def quantize_swapped(w, clip=np.inf):
    return quantize_variant(w, clip)[::-1]


def quantize_in_place(w, clip=np.inf):
    _, scale = quantize_variant(w, clip)
    w /= scale
    return np.clip(np.rint(w), -127, 127).astype(np.int8), scale


def quantize_flat_scales(w, clip=np.inf):
    return quantize_variant(w, clip, scales=lambda scale: scale[:, 0])


def quantize_without_clip(w, clip=np.inf):
    return quantize_variant(w, clip, clipped=False)


def quantize_inverse(w, clip=np.inf):
    return quantize_variant(w, clip, quotient=np.multiply)


def weight_cases() -> list[tuple]:
    """Small matrices whose steps are easy to follow, then ties, rows of zeros, outliers, and random ones."""
    f, draw = np.float32, np.random.default_rng(0)
    cases = [([[127, 1, -2]],), ([[254, 5, -3]],), ([[127, -128 + 1, 0]], 127), ([[-254, 100]],), ([[127, 0.6, -0.6]],),
             ([[127, 0.5, 1.5, 2.5, -0.5, -1.5]],), ([[127, 1], [12.7, 1]],), ([[127, 2], [254, 3]],), ([[0, 0], [127, 3]],),
             ([[254, 5, -3], [0, 0, 0]],), ([[500, 1, -500]], 127), ([[-500, 3], [127, 2]], 127), ([[127.5, 4]], 127),
             ([[100, 5, -3]], 12.2), ([[254, 5, -3], [0, 0, 0]], 12.7),  # a clip that is no float32
             ([[1, -127.6]], 127), ([[0.0]],), ([[-3]],), ([[0.2, 0.1]],), ([[4.6, 2.3]],),
             ([[18, 9]],), ([[22, 11]],), ([[30, 15]],), ([[9, 4]],),  # a half, unless the scale is rounded first
             ([[1e-44, 0]],), ([[2.1e-43, 1e-43]],),  # 127 of the second scale, which is rounded, are less than the weight
             ([[3e38, 1e38], [1e-30, 2e-30]],)]
    for rows, columns in ((2, 8), (5, 3), (16, 64)):
        cases.append((draw.standard_normal((rows, columns)),))
        cases.append((draw.standard_normal((rows, columns)) * 3, 2.0))
    return [(np.array(w, f), *clip) for w, *clip in cases]


def explain_weights(case: tuple, want, got) -> tuple[str, ...]:
    """The matrix, and the first part that differs: a kind, a shape, or one element."""
    w, clip = case[0], case[1] if len(case) > 1 else np.inf
    shown = np.array2string(w, separator=", ", threshold=16, precision=6)
    head = (f"w = {shown}" + (f", clip = {clip:g}" if clip != np.inf else ""),)
    if not isinstance(got, tuple) or len(got) != 2:
        return (*head, "it should give a pair, q and scale")
    for name, right, yours in zip(("scale", "q"), want[::-1], got[::-1]):
        if not isinstance(yours, np.ndarray) or (yours.dtype, yours.shape) != (right.dtype, right.shape):
            kind = f"{yours.dtype}{list(yours.shape)}" if isinstance(yours, np.ndarray) else article(yours)
            return (*head, f"{name} should be {right.dtype}{list(right.shape)}, and is {kind}")
        for at in np.ndindex(right.shape):
            if right[at] != yours[at]:
                place = ", ".join(map(str, at))
                return (*head, f"{name}[{place}] should be {right[at]:.9g}, and is {yours[at]:.9g}", *quotient_of(w, want, at, name))
    return head


def quotient_of(w: np.ndarray, want, at: tuple, name: str) -> tuple[str, ...]:
    return (f"w / scale is {w[at] / want[1][at[0], 0]:.9g} there",) if name == "q" else ()


# ---- calibration --------------------------------------------------------------------------------------------------


def scale_of(samples, percent=100):
    """A scale for int8 activations, from what was seen of them: a float32.

    ``samples`` is a list of arrays f32, of any shapes, with at least one number in all. ``percent`` is
    a whole number, 1 to 100. Take the sizes of all numbers in all samples, n of them, in order. The
    range is the k-th smallest, where k is percent of n, rounded up: so many fit, the others saturate.
    k is exact: 28 percent of 25 are 7. The scale is the range divided by 127, and 1 if that would be 0.

        scale_of([[1, -2], [127]])              is 127 / 127 = 1
        scale_of([[1, -2], [127]], percent=60)  is 2 / 127, for 60 % of 3 is 1.8, and k is 2
    """
    ### BEGIN SOLUTION
    sizes = np.sort(np.abs(np.concatenate([np.ravel(sample) for sample in samples])))
    k = -(-len(sizes) * percent // 100)
    scale = np.float32(sizes[k - 1]) / np.float32(127)
    return scale if scale > 0 else np.float32(1)
    ### END SOLUTION


def scale_by_partition(samples, percent=100):
    sizes = np.concatenate([np.abs(sample).reshape(-1) for sample in samples])
    k = math.ceil(len(sizes) * percent / 100)  # of a whole number, so the quotient is as near as can be
    return np.float32(np.partition(sizes, k - 1)[k - 1]) / np.float32(127) or np.float32(1)


def scale_by_counting(samples, percent=100):
    """The smallest size that is enough."""
    sizes = [abs(float(one)) for sample in samples for one in np.ravel(sample)]
    for size in sorted(sizes):
        if sum(other <= size for other in sizes) * 100 >= percent * len(sizes):
            return np.float32(np.float32(size) / np.float32(127)) or np.float32(1)


def scale_variant(samples, percent=100, size: Callable = np.abs, place: Callable = lambda n, percent: -(-n * percent // 100) - 1,
                  number: Callable = np.float32, guard=True, steps: int = 127, joined: Callable = lambda parts: np.concatenate(parts)):
    """The solution with one thing changed; the mistakes below are made of it."""
    sizes = np.sort(joined([size(np.ravel(sample)) for sample in samples]))
    scale = number(sizes[place(len(sizes), percent)]) / number(steps)
    return scale if scale > 0 or not guard else number(1)


def scale_minmax(samples, percent=100):
    return scale_variant(samples, 100)


def scale_without_sizes(samples, percent=100):
    return scale_variant(samples, percent, size=lambda x: x)


def scale_rounded_down(samples, percent=100):
    return scale_variant(samples, percent, place=lambda n, percent: max(n * percent // 100 - 1, 0))


def scale_one_further(samples, percent=100):
    return scale_variant(samples, percent, place=lambda n, percent: min(-(-n * percent // 100), n - 1))


def scale_rounded(samples, percent=100):
    return scale_variant(samples, percent, place=lambda n, percent: max(1, round(percent * n / 100)) - 1)


def scale_half_up(samples, percent=100):
    return scale_variant(samples, percent, place=lambda n, percent: max(1, int(percent * n / 100 + 0.5)) - 1)


def scale_always_one_more(samples, percent=100):
    return scale_variant(samples, percent, place=lambda n, percent: min(percent * n // 100 + 1, n) - 1)


def scale_one_more_at_the_end(samples, percent=100):
    return scale_variant(samples, percent, place=lambda n, percent: percent * n // 100)


def scale_share_of_range(samples, percent=100):
    scale = scale_variant(samples, 100, guard=False) * np.float32(percent / 100)
    return scale if scale > 0 else np.float32(1)


def scale_last_sample(samples, percent=100):
    return scale_variant(samples[-1:], percent)


def scale_of_maxima(samples, percent=100):
    """One number a sample: its largest."""
    return scale_variant(samples, percent, joined=lambda parts: np.array([part.max() for part in parts if part.size]))


def scale_mean_of_maxima(samples, percent=100):
    """Each sample's range, and their mean."""
    return np.float32(np.mean([np.abs(part).max() for part in samples if part.size])) / np.float32(127) or np.float32(1)


def scale_without_ravel(samples, percent=100):
    return scale_variant([np.concatenate(samples)], percent)


def scale_in_one_array(samples, percent=100):
    return scale_variant([np.array(samples)], percent)


def scale_by_rows(samples, percent=100):
    """A loop over a matrix gives its rows, and these cannot be put in order."""
    return scale_of_list(sorted(abs(one) for sample in samples for one in sample), percent, -1)


def scale_by_rows_as_numbers(samples, percent=100):
    return scale_of_list(sorted(abs(float(one)) for sample in samples for one in sample), percent, -1)


def scale_by_rows_in_one_array(samples, percent=100):
    return scale_of_list(np.sort([one for sample in samples for one in np.abs(sample)]), percent, -1)


def scale_of_list(sizes, percent, further):
    scale = np.float32(sizes[-(-len(sizes) * percent // 100) + further]) / np.float32(127)
    return scale if scale > 0 else np.float32(1)


def scale_of_gap(samples, percent=100):
    return scale_variant(samples, percent, place=lambda n, percent: int(percent / 100 * (n - 1)))


def scale_asks_the_range(samples, percent=100):
    """Asks whether the range is 0, and not whether the scale is."""
    reach = scale_variant(samples, percent, guard=False, steps=1)
    return reach / np.float32(127) if reach else np.float32(1)


def scale_one_too_early(samples, percent=100):
    """Puts the 1 in before it divides by 127."""
    return scale_variant(samples, percent, steps=1) / np.float32(127)


def scale_interpolated(samples, percent=100):
    sizes = np.concatenate([np.abs(np.ravel(sample)) for sample in samples])
    return np.float32(np.percentile(sizes, percent)) / np.float32(127) or np.float32(1)


def scale_of_percentile(samples, percent, method):
    sizes = np.concatenate([np.abs(np.ravel(sample)) for sample in samples])
    return np.float32(np.percentile(sizes, percent, method=method)) / np.float32(127) or np.float32(1)


def scale_by_numpy(samples, percent=100):
    return scale_of_percentile(samples, percent, "inverted_cdf")


def scale_higher(samples, percent=100):
    return scale_of_percentile(samples, percent, "higher")


def scale_lower(samples, percent=100):
    return scale_of_percentile(samples, percent, "lower")


def scale_nearest(samples, percent=100):
    return scale_of_percentile(samples, percent, "nearest")


def scale_of_a_fraction(samples, percent=100):
    return scale_variant(samples, percent, place=lambda n, percent: min(math.ceil(n * (percent / 100)), n) - 1)


def scale_index_k(samples, percent=100):
    return scale_variant(samples, percent, place=lambda n, percent: -(-n * percent // 100))


def scale_index_k_of_list(samples, percent=100):
    return scale_of_list(sorted(abs(float(one)) for sample in samples for one in np.ravel(sample)), percent, 0)


def scale_index_k_of_partition(samples, percent=100):
    sizes = np.concatenate([np.abs(np.ravel(sample)) for sample in samples])
    k = -(-len(sizes) * percent // 100)
    return np.float32(np.partition(sizes, k)[k]) / np.float32(127) or np.float32(1)


def scale_descending(samples, percent=100):
    return scale_variant(samples, percent, place=lambda n, percent: n + (n * -percent // 100))


def scale_part_of_range(samples, percent=100):
    largest = max(np.abs(sample).max() for sample in samples if sample.size)
    return np.float32(largest * percent / 100) / np.float32(127) or np.float32(1)


def scale_largest_of_samples(samples, percent=100):
    """The percentile of each sample, and the largest of these."""
    return max(scale_variant([sample], percent, guard=False) for sample in samples if sample.size) or np.float32(1)


def scale_unique(samples, percent=100):
    return scale_variant(samples, percent, joined=lambda parts: np.unique(np.concatenate(parts)))


def scale_in_place(samples, percent=100):
    return scale_variant([np.abs(sample, out=sample) for sample in samples], percent)


def scale_zero(samples, percent=100):
    return scale_variant(samples, percent, guard=False)


def scale_range(samples, percent=100):
    return scale_variant(samples, percent, steps=1)


def scale_in_double(samples, percent=100):
    return scale_variant(samples, percent, number=np.float64)


def scale_cases() -> list[tuple]:
    draw = np.random.default_rng(0)
    small = (([[127]],), ([[254, 127]],), ([[1, -254]],), ([[127], [254]],), ([[254], [127]],), ([[0, 0]],), ([[1e-44]],),
             ([[254, 1]], 50), ([[254, 127]], 50), ([[127, 1, 2]], 60), ([[127, 0, 0]], 60), ([[1, -2, 127]], 34), ([[100, 1, 1, 2]], 75),
             ([[[1, -2], [127, 3]], [5]],),  # a matrix among the samples
             ([[1, 2], [127]], 60), ([[2, 9], [1, 8], [3, 7]], 50), ([[5]], 1), ([[1, 2, 3, 4, 5, 6, 7]], 10),
             *(([range(1, n + 1)], percent) for n, percent in ((25, 28), (50, 14), (100, 55), (10, 77), (10, 25), (10, 7), (67, 3))))
    cases = [([np.array(one, np.float32) for one in samples], *percent) for samples, *percent in small]
    for percent in (100, 99, 90, 50):
        cases.append(([draw.standard_normal(shape).astype(np.float32) for shape in ((3, 5), (2,), (7, 9))], percent))
    return cases


def explain_scale(case: tuple, want, got) -> tuple[str, ...]:
    samples, percent = case[0], case[1] if len(case) > 1 else 100
    sizes = np.sort(np.abs(np.concatenate([np.ravel(one) for one in samples])))
    shown = np.array2string(sizes, separator=", ", threshold=12, precision=4)
    yours = f"{got:.6g}" if isinstance(got, (float, np.floating)) else got
    kind = "" if isinstance(got, np.float32) else f", {article(got)}"
    return (f"the samples: {[one.tolist() for one in samples]}"[:200], f"all sizes in order: {shown}, percent = {percent}",
            f"the scale should be {want:.6g}", f"and is              {yours}{kind}")


# ---- the scale behind the product ---------------------------------------------------------------------------------

FUSE_SPACE = Space(
    inputs=(("x", "f32[2,2]"), ("q", "i8[2,2]")),
    consts=(("s", [[0.5, 2.0]], "f32[1,2]"), ("r", [[0.25], [2.0]], "f32[2,1]"), ("one", [[4.0]], "f32[1,1]")),
    ops=(("dequantize", {}), ("matmul", {}), ("matmul", {"transpose_b": True}), ("matmul", {"transpose_a": True}), ("neg", {})),
    limit=500, larger=120, size=5)  # fmt: skip


def target(x: str = "f32[2,2]", q: str = "i8[2,2]", scale: tuple[int, ...] = (1, 2), constant=True, product=("x", "w"),
           after=(), outputs=("y",), before=(), **flags) -> Graph:
    """A product y of x and w, which is q dequantized by powers of two: a constant, or what is computed of it. ``before``: an
    operation v, and what it reads; ``after``: an operation z. The scale has the dtype of x."""
    builder = Builder("g")
    builder.input("x", x)
    builder.input("q", q)
    powers = np.exp2(np.arange(prod(scale))).reshape(scale).astype(DTYPES[x.partition("[")[0]])
    builder.const(Const.of(powers), name="s" if constant else "c")
    if not constant:
        builder.emit("abs", "c", name="s")
    for name, op, *operands in (("w", "dequantize", "q", "s"), *[("v", *before)] * bool(before), ("y", "matmul", *product),
                                *[("z", *after)] * bool(after)):
        builder.emit(op, *operands, name=name, **(flags if name == "y" else {}))
    return builder.build({name: name for name in outputs})


TURNED = {"transpose_b": True}
FLAGS = {}, TURNED, {"transpose_a": True}, {"transpose_a": True, **TURNED}
ROWS, COLUMNS, ONE, EACH = (2, 1), (1, 2), (1, 1), (2, 2)
WIDE, STACK = {"x": "f32[3,2]"}, {"x": "f32[3,2,2]"}

FUSE_TARGETS = (
    *(target(scale=scale, **flags) for flags in FLAGS for scale in (ROWS, COLUMNS, ONE, EACH)),
    target(product=("w", "w"), constant=False),
    *(target(scale=scale, constant=False, **flags) for flags in FLAGS[:2] for scale in (ROWS, COLUMNS)),
    # as many rows as columns hides which is which
    target(**WIDE, q="i8[2,4]", scale=(1, 4)), target(**WIDE, q="i8[2,4]", scale=ROWS), target(q="i8[2,4]", scale=(1, 4), transpose_a=True),
    target(**WIDE, q="i8[4,2]", scale=(4, 1), **TURNED), target(**WIDE, q="i8[4,2]", scale=COLUMNS, **TURNED), target(q="u8[2,2]"),
    # the scale is no float32
    *(target(f"{dtype}[2,2]", scale=scale, **flags) for dtype in ("f16", "f64") for scale, flags in ((COLUMNS, {}), (ROWS, TURNED))),
    # x has one axis or three, or is computed
    target("f32[2]"), target("f32[2]", scale=ROWS, **TURNED), target(**STACK), target(**STACK, scale=ROWS, **TURNED),
    target(before=("dequantize", "q", "s"), product=("v", "w")), target(before=("neg", "x"), product=("v", "w")),
    # q or s has not two axes
    *(target(scale=scale, **flags) for scale in ((), (2,), (1,), (1, 1, 2), (1, 2, 1), (3, 1, 2)) for flags in FLAGS[:2]),
    *(target(**STACK, q="i8[3,2,2]", scale=scale, **flags) for flags in FLAGS[:2]
      for scale in ((3, 1, 2), (3, 2, 1), (1, 1, 2), (1, 2, 1), (1, 1, 1), (3, 1, 1), COLUMNS, ROWS, ())),
    target("f32[3,1]", "i8[2]"), target("f32[3,2]", "i8[2]", (2,)), target("f32[3,2]", "i8[2]", (1,)), target("f32[3,2]", "i8[2]", ()),
    # w is the first operand, or both
    *(target(scale=scale, product=("w", "x"), **flags) for flags in FLAGS for scale in (ROWS, COLUMNS, ONE)),
    target(product=("w", "w")), target(product=("w", "w"), scale=ONE),
    # others read w or y
    target(product=("w", "w"), after=("matmul", "y", "w"), outputs=("z",)),
    target(outputs=("y", "w")), target(after=("matmul", "y", "w"), outputs=("z",)), target(after=("neg", "w"), outputs=("y", "z")),
    target(after=("matmul", "x", "w"), outputs=("y", "z"), **TURNED),
)  # fmt: skip


def fuse_dequantize(graph):
    """matmul(x, dequantize(q, s)) becomes matmul(x, q as floats) * s, where s can leave the sum.

    Graph -> Graph. Only the second operand matters, and only where q and s have two axes each; every
    other matmul may stay. A matmul sums along axis 0 of its second operand, and with transpose_b along
    axis 1. If s has length 1 along the summed axis, all terms of a sum have the same factor, and it can
    be multiplied once, behind the sum:

        w = dequantize(q, s)      becomes     w = dequantize(q, s)
        y = matmul(x, w)                      y.wide = cast(q) {dtype="f32"}
                                              y.sum = matmul(x, y.wide)
                                              y.scale = reshape(s) {shape=[2]}
                                              y = mul(y.sum, y.scale)

    y.wide has the dtype of s, here f32. y.scale has one axis, whatever the layout of s: mul then
    matches it with the columns of y.sum. The flags of the matmul stay as they are. w may stay (chapter
    05). No name in the graph ends in .wide, .sum or .scale, so yours are free.
    """
    nodes, known = [], {}

    def emit(name, op, *inputs, **attrs):
        """Appends a node; its type is inferred."""
        value = make_attrs(OPS[op], attrs)
        type = infer(OPS[op], tuple(known[one].type for one in inputs), value)
        known[name] = Node(name, op, inputs, value, type)
        nodes.append(known[name])

    ### BEGIN SOLUTION
    for node in graph.nodes:
        w = known[node.inputs[1]] if node.op == "matmul" else node
        if node.op == "matmul" and w.op == "dequantize":
            (q, s), name = w.inputs, node.name
            shape, summed = known[s].type.shape, 1 if node.value.transpose_b else 0
            if len(known[q].type.shape) == len(shape) == 2 and shape[summed] == 1:
                emit(name + ".wide", "cast", q, dtype=w.type.dtype)
                emit(name + ".sum", "matmul", node.inputs[0], name + ".wide", **dict(node.value))
                emit(name + ".scale", "reshape", s, shape=(known[s].type.size,))
                emit(name, "mul", name + ".sum", name + ".scale")
                continue
        known[node.name] = node
        nodes.append(node)
    ### END SOLUTION
    return Graph(graph.name, tuple(nodes), graph.outputs)


def unfused(graph: Graph) -> int:
    """Needed matmuls whose second operand has a scale that could leave."""
    graph = dce(graph).graph
    nodes = defs(graph)
    products = [(node, nodes[node.inputs[1]]) for node in graph.nodes if node.op == "matmul"]
    return sum(w.op == "dequantize" and two_axes(*(nodes[one] for one in w.inputs)) and summed_length(node, nodes[w.inputs[1]]) == 1
               for node, w in products)


def two_axes(*nodes: Node) -> bool:
    return all(len(node.type.shape) == 2 for node in nodes)


def summed_length(node: Node, scale: Node) -> int:
    return scale.type.shape[1 if node.value.transpose_b else 0]


def fuse_by_builder(graph):
    """Moves scales with one axis or none, too, and shapes them by the columns of the result."""
    builder = Builder(graph.name)
    for node in graph.nodes:
        w = graph[node.inputs[1]] if node.op == "matmul" else None
        if w is None or w.op != "dequantize" or len(graph[w.inputs[0]].type.shape) != 2 or len(graph[w.inputs[1]].type.shape) > 2:
            builder.add(node)
            continue
        (q, s), turned = w.inputs, node.value.transpose_b
        rows, columns = np.atleast_2d(np.empty(graph[s].type.shape)).shape
        if (columns if turned else rows) != 1:
            builder.add(node)
            continue
        factor = builder.emit("reshape", s, shape=(rows if turned else columns,))
        total = builder.emit("matmul", node.inputs[0], builder.emit("cast", q, dtype=node.type.dtype), **dict(node.value))
        builder.emit("mul", factor, total, name=node.name)
    return builder.build(dict(graph.outputs))


def fuse_variant(graph, moves: Callable = lambda node, scale: summed_length(node, scale) == 1, axes: Callable = two_axes, cast=True,
                 flags=True, scaled=True, shape: Callable | None = lambda node, scale: (scale.type.size,), drop=False, onto_x=False,
                 first=False, place: int | None = None, dtype: str | None = None, wide_name: Callable = lambda node: node.name + ".wide"):
    """The solution with one thing changed; the mistakes below are made of it."""
    nodes, known, gone = [], {}, set()

    def emit(name, op, *inputs, **attrs):
        value = make_attrs(OPS[op], attrs)
        known[name] = Node(name, op, inputs, value, infer(OPS[op], tuple(known[one].type for one in inputs), value))
        nodes.append(known[name])

    for node in graph.nodes:
        w = known[node.inputs[1]] if node.op == "matmul" else node
        if first and node.op == "matmul" and w.op != "dequantize":
            w = known[node.inputs[0]]
        q, s = [known[name] for name in w.inputs] if node.op == "matmul" and w.op == "dequantize" else (node, node)
        if s is not node and axes(q, s) and moves(node, s):
            x, name, of_sum, wide = node.inputs[0], node.name, dict(node.value) if flags else {}, q.name
            factor = name + ".scale" if shape else s.name
            if cast:
                emit(wide := wide_name(node), "cast", q.name, dtype=dtype or s.type.dtype)
            if not onto_x:
                operands = (wide, node.inputs[1]) if w.name != node.inputs[1] and place == 0 else (x, wide)
                emit(name + ".sum" if scaled else name, "matmul", *operands, **of_sum)
            if shape and scaled:
                emit(factor, "reshape", s.name, shape=shape(node, s))
            if onto_x:
                emit(name + ".x", "mul", x, factor)
                emit(name, "matmul", name + ".x", wide, **of_sum)
            elif scaled:
                emit(name, "mul", name + ".sum", factor)
            gone |= {w.name} if drop else set()
            continue
        known[node.name] = node
        nodes.append(node)
    return Graph(graph.name, tuple(node for node in nodes if node.name not in gone), graph.outputs)


def fuse_clean(graph):
    """Leaves out what is dead, too."""
    return dce(fuse_variant(graph)).graph


def fuse_nothing(graph):
    return graph


def fuse_any_scale(graph):
    return fuse_variant(graph, moves=lambda node, scale: True)


def fuse_any_scale_by_axis(graph):
    """Takes the length of the other axis of the scale for its shape, and does not ask for the summed one."""
    return fuse_variant(graph, moves=lambda node, scale: True,
                        shape=lambda node, scale: (scale.type.shape[0 if node.value.transpose_b else 1],))


def fuse_without_the_flag(graph):
    return fuse_variant(graph, moves=lambda node, scale: scale.type.shape[0] == 1)


def fuse_wrong_axis(graph):
    return fuse_variant(graph, moves=lambda node, scale: scale.type.shape[0 if node.value.transpose_b else 1] == 1)


def fuse_forgets_scale(graph):
    return fuse_variant(graph, scaled=False)


def fuse_onto_x(graph):
    return fuse_variant(graph, onto_x=True)


def fuse_without_cast(graph):
    return fuse_variant(graph, cast=False)


def fuse_without_reshape(graph):
    return fuse_variant(graph, shape=None)


def fuse_loses_flags(graph):
    return fuse_variant(graph, flags=False)


def fuse_numbers_only(graph):
    return fuse_variant(graph, moves=lambda node, scale: scale.type.size == 1)


def fuse_constants_only(graph):
    return fuse_variant(graph, moves=lambda node, scale: scale.op == "const" and summed_length(node, scale) == 1)


def fuse_straight_only(graph):
    return fuse_variant(graph, moves=lambda node, scale: not node.value.transpose_b and summed_length(node, scale) == 1)


def fuse_first_too(graph):
    return fuse_variant(graph, first=True)


def fuse_first_in_its_place(graph):
    """Takes the first operand in as well, and asks the axis that is summed there, but scales the columns."""
    return fuse_variant(graph, first=True, place=0, moves=lambda node, scale: summed_length(node, scale) == 1)


def fuse_either(graph):
    """Takes in whichever operand is dequantized, along the axis that is summed there, and scales the columns."""

    def moves(node, scale):
        second = graph[node.inputs[1]].op == "dequantize"
        return scale.type.shape[int(node.value.transpose_b) if second else 1 - node.value.transpose_a] == 1

    return fuse_variant(graph, first=True, place=0, moves=moves)


def fuse_always_float32(graph):
    return fuse_variant(graph, dtype="f32")


def fuse_one_name(graph):
    return fuse_variant(graph, wide_name=lambda node: "wide")


def fuse_shape_of_summed(graph):
    return fuse_variant(graph, shape=lambda node, scale: (summed_length(node, scale),))


def fuse_shape_of_q(graph):
    return fuse_variant(graph, shape=lambda node, scale: (kept_length(graph, node),))


def kept_length(graph: Graph, node: Node) -> int:
    """The length of w along the axis that the product keeps."""
    return graph[node.inputs[1]].type.shape[-2 if node.value.transpose_b else -1]


def fuse_asks_kept_axis(graph, **changes):
    """Asks whether s is as long as q along the axis that is kept, and not whether it has length 1 along the other."""
    return fuse_variant(graph, **changes,
                        moves=lambda node, scale: scale.type.shape[1 - node.value.transpose_b] == kept_length(graph, node))


def fuse_asks_kept_axis_for_shape(graph):
    return fuse_asks_kept_axis(graph, shape=lambda node, scale: (kept_length(graph, node),))


def fuse_shape_minus_one(graph):
    return fuse_variant(graph, shape=lambda node, scale: (-1,))


def readers(graph: Graph, name: str) -> int:
    return sum(node.inputs.count(name) for node in graph.nodes) + sum(value == name for _, value in graph.outputs)


def fuse_one_reader(graph):
    return fuse_variant(graph, moves=lambda node, scale: summed_length(node, scale) == 1 and readers(graph, node.inputs[1]) == 1)


def fuse_float_x(graph):
    return fuse_variant(graph, moves=lambda node, scale: summed_length(node, scale) == 1 and graph[node.inputs[0]].op != "dequantize")


def fuse_input_x(graph):
    return fuse_variant(graph, moves=lambda node, scale: summed_length(node, scale) == 1 and graph[node.inputs[0]].op == "input")


def fuse_matrix_x(graph):
    return fuse_variant(graph, moves=lambda node, scale: summed_length(node, scale) == 1 and len(graph[node.inputs[0]].type.shape) == 2)


def fuse_drops_weight(graph):
    return fuse_variant(graph, drop=True)


def fuse_asks_no_axes(graph):
    return fuse_variant(graph, axes=lambda q, s: True)


def fuse_asks_only_w(graph):
    return fuse_variant(graph, axes=lambda q, s: max(len(q.type.shape), len(s.type.shape)) == 2)


def fuse_asks_only_q(graph):
    return fuse_variant(graph, axes=lambda q, s: two_axes(q))


def fuse_asks_only_s(graph):
    return fuse_variant(graph, axes=lambda q, s: two_axes(s))


def fuse_any_rank(graph):
    return fuse_variant(graph, axes=lambda q, s: len(s.type.shape) > 1,
                        moves=lambda node, scale: scale.type.shape[-1 if node.value.transpose_b else -2] == 1)


# ---- the stretch: 2 of each 4 -------------------------------------------------------------------------------------


def prune_2_4(w):
    """In each group of 4 along a row, the two numbers of the smallest size become 0; a new array.

    ``w`` is f32[N, K], K a multiple of 4. Of equally large numbers, the one further left stays. So at
    most two numbers in a group are other than 0.

        w = [[1, -5, 2, 3, 1, 1, 1, 1]]     gives     [[0, -5, 0, 3, 1, 1, 0, 0]]
    """
    ### BEGIN SOLUTION
    groups = w.reshape(-1, 4)
    order = np.argsort(-np.abs(groups), axis=1, kind="stable")
    pruned = groups.copy()
    np.put_along_axis(pruned, order[:, 2:], 0, axis=1)
    return pruned.reshape(w.shape)
    ### END SOLUTION


def prune_by_loops(w):
    pruned = np.zeros_like(w)
    for row, values in enumerate(w):
        for first in range(0, len(values), 4):
            places = sorted(range(first, first + 4), key=lambda place: (-abs(values[place]), place))
            for place in places[:2]:
                pruned[row, place] = values[place]
    return pruned


def prune_by_the_package(w):
    return np.where(mask_24(w), w, np.float32(0))


def prune_by_a_mask(w):
    """Multiplies by the mask, which makes -0.0 of negative numbers."""
    groups = w.reshape(-1, 4)
    rank = np.argsort(np.argsort(-np.abs(groups), axis=1, kind="stable"), axis=1)
    return (groups * (rank < 2)).reshape(w.shape)


def with_one_zero(function: Callable) -> Callable:
    """What the function gives, with 0.0 for -0.0: either is a number left out."""

    def call(w):
        pruned = function(w)
        return np.where(pruned == 0, pruned.dtype.type(0), pruned) if type(pruned) is np.ndarray and pruned.dtype.kind == "f" else pruned

    return call


def prune_variant(w, key: Callable = lambda groups: -np.abs(groups), kept=2, in_place=False):
    groups = w.reshape(-1, 4)
    order = np.argsort(key(groups), axis=1, kind="stable")
    pruned = groups if in_place else groups.copy()
    np.put_along_axis(pruned, order[:, kept:], 0, axis=1)
    return pruned.reshape(w.shape)


def prune_by_value(w):
    return prune_variant(w, key=lambda groups: -groups)


def prune_the_large(w):
    return prune_variant(w, key=np.abs)


def prune_three(w):
    return prune_variant(w, kept=1)


def prune_in_place(w):
    return prune_variant(w, in_place=True)


def prune_in_doubles(w):
    return prune_variant(w).astype(np.float64)


def prune_in_halves(w):
    return prune_variant(w).astype(np.float16)


def prune_one_argsort(w):
    """Takes the places in order for the rank of each place."""
    groups = w.reshape(-1, 4)
    return np.where(np.argsort(-np.abs(groups), axis=1, kind="stable") < 2, groups, np.float32(0)).reshape(w.shape)


def prune_above(w):
    """Keeps what is larger than the third largest."""
    sizes = np.abs(w.reshape(-1, 4))
    return np.where(sizes > np.sort(sizes, axis=1)[:, 1:2], w.reshape(-1, 4), np.float32(0)).reshape(w.shape)


def prune_ties_from_the_right(w):
    return prune_variant(w[:, ::-1])[:, ::-1].copy()


def prune_by_threshold(w):
    """Keeps all that is not smaller than the second largest."""
    groups = w.reshape(-1, 4)
    second = np.sort(np.abs(groups), axis=1)[:, 2:3]
    return np.where(np.abs(groups) >= second, groups, np.float32(0)).reshape(w.shape)


def prune_columns(w):
    """Groups of 4 down a column, in the order of the transpose."""
    return prune_variant(np.ascontiguousarray(w.T)).reshape(w.T.shape).T.copy()


def prune_anywhere(w):
    """The smaller half of all, wherever it is."""
    order = np.argsort(-np.abs(w).reshape(-1), kind="stable")
    pruned = w.reshape(-1).copy()
    pruned[order[w.size // 2:]] = 0
    return pruned.reshape(w.shape)


def prune_compressed(w):
    """Leaves the zeros out."""
    return np.stack([row[row != 0] for row in prune_variant(w).reshape(-1, 4)]).reshape(len(w), -1)


def prune_cases() -> list[tuple]:
    draw = np.random.default_rng(0)
    small = ([[1, 2, 3, 4]], [[4, -3, 2, -1]], [[1, -5, 2, 3]], [[-4, -3, 2, 1]], [[1, 1, 1, 1]], [[0, 0, 0, 3]], [[2, 1, 2, 2]],
             [[9, 8, 7, 6, 1, 2, 3, 4]], [[1, -5, 2, 3, 1, 1, 1, 1]], [[1, 2, 3, 4], [8, 7, 6, 5]],
             [[9, 1, 2, 3], [9, 1, 2, 3], [9, 8, 2, 3], [9, 8, 2, 3]])
    large = [draw.standard_normal(shape) for shape in ((4, 8), (8, 4), (3, 16))]
    return [(np.array(w, np.float32),) for w in (*small, *large)]


def explain_prune(case: tuple, want, got) -> tuple[str, ...]:
    yours = got.tolist() if isinstance(got, np.ndarray) else repr(got)
    head = f"w = {case[0].tolist()}"
    if isinstance(got, np.ndarray) and (got.dtype, got.shape) != (want.dtype, want.shape):
        return head, f"the result should be {want.dtype}{list(want.shape)}, and is {got.dtype}{list(got.shape)}"
    return head, f"it should give {want.tolist()}", f"and gives      {yours}"


# ---- to refute ----------------------------------------------------------------------------------------------------


def relu_on_integers(graph):
    """Computes relu on the integers, before the scale.

    maximum(dequantize(q, s), 0.0) becomes dequantize(maximum(q, 0), s).
    """
    nodes, known = [], {}
    for node in graph.nodes:
        w, zero = [known[name] for name in node.inputs] if node.op == "maximum" else (node, node)
        if w.op == "dequantize" and zero.op == "const" and not any(zero.value.data) and node.type == w.type:
            q, s = w.inputs
            value = Const.of(np.zeros((), DTYPES[known[q].type.dtype]))
            none = Node(fresh(node.name + ".zero", defs(graph)), "const", (), value, value.type)
            low = Node(fresh(node.name + ".low", defs(graph)), "maximum", (q, none.name), None, known[q].type)
            nodes += [none, low]
            node = Node(node.name, "dequantize", (low.name, s), None, node.type)
        known[node.name] = node
        nodes.append(node)
    return Graph(graph.name, tuple(nodes), graph.outputs)


def drop_pairs_in_range(graph):
    """quantize(dequantize(q, s), s) is q again, if the scale is a constant, not 0, and no q * s is infinite:
    whoever read it reads q."""
    known, nodes, stands_for = {}, [], {}
    for node in graph.nodes:
        inputs = tuple(stands_for.get(name, name) for name in node.inputs)
        node = Node(node.name, node.op, inputs, node.value, node.type, node.origin)
        inner = known[node.inputs[0]] if node.op == "quantize" else node
        if node.op == "quantize" and inner.op == "dequantize" and node.inputs[1] == inner.inputs[1]:
            q, s = [known[name] for name in inner.inputs]
            if s.op == "const" and q.type == node.type and s.value.array.all():
                facts = np.iinfo(DTYPES[q.type.dtype])
                ends = s.value.array * s.value.array.dtype.type(facts.min), s.value.array * s.value.array.dtype.type(facts.max)
                if np.isfinite(ends).all():
                    stands_for[node.name] = q.name
        known[node.name] = node
        nodes.append(node)
    outputs = tuple((public, stands_for.get(value, value)) for public, value in graph.outputs)
    return Graph(graph.name, tuple(nodes), outputs)


def relu_graph(scale: str) -> Graph:
    return parse(f"graph mine(q: i8[4]) -> (y) {{\n  s = const({scale}) : f32[]\n  zero = const(0.0) : f32[]\n  w = dequantize(q, s)\n"
                 "  y = maximum(w, zero)\n  return y\n}")


def pair_graph(scale: str, dtype: str = "i8") -> Graph:
    return parse(f"graph mine(q: {dtype}[4]) -> (y) {{\n  s = const({scale}) : f32[]\n  w = dequantize(q, s)\n"
                 f'  y = quantize(w, s) {{dtype="{dtype}"}}\n  return y\n}}')


def all_returned(graph: Graph) -> Graph:
    """The graph, with every value that it computes among its outputs."""
    return Graph(graph.name, graph.nodes, tuple((node.name, node.name) for node in graph.nodes if OPS[node.op].kind is not Kind.EFFECT))


def unseen_harm(wrong: Callable, graph: Graph) -> str:
    """A sentence where the pass does harm to a value that no result depends on; else an empty text."""
    failure, _ = judge_harm(wrong, all_returned(graph))
    if failure is None or not failure.values:
        return ""
    changed = next(iter(failure.values))
    return f"The pass changes what {changed} is, but nothing that the graph returns shows it: return {changed}."


def no_harm_of_relu(graph: Graph, got: Graph) -> str:
    if unseen := unseen_harm(relu_on_integers, graph):
        return unseen
    if got == graph:
        return ("The pass did nothing here. It wants a maximum of a dequantize and a constant 0.0, in this order, and of no other"
                " shape than the dequantize has.")
    return "Here s * max(q, 0) is max(s * q, 0). For which s is the larger of two numbers no longer the larger one after scaling?"


def lesson_of_relu(graph: Graph) -> str:
    """What went wrong depends on the scale."""
    nodes = defs(graph)
    scales = [nodes[node.inputs[1]] for node in graph.nodes if node.op == "dequantize"]
    values = [number for scale in scales if scale.op == "const" for number in scale.value.array.flat]
    why = next((why for is_so, why in RELU_WRONG if any(map(is_so, values))), "Nobody knows the sign of a scale that is no constant.")
    return (f"s * max(q, 0) is max(s * q, 0) for every finite s above 0. {why} Scales that are learned, or into which a norm was folded,"
            " can be negative.")


RELU_WRONG = (
    (lambda s: s < 0, "A negative factor turns the order round, and makes of each maximum a minimum."),
    (np.isinf, "Infinity times 0 is NaN, and the integers that relu makes 0 had no NaN before."),
    (lambda s: s == 0, "Here both are zeros, and their signs differ."),
)  # is it so? -> what is wrong then


def no_harm_of_pair(graph: Graph, got: Graph) -> str:
    if unseen := unseen_harm(drop_pairs_in_range, graph):
        return unseen
    graph = all_returned(graph)  # a pair that nobody reads is dropped as well
    if drop_pairs_in_range(graph) == graph:
        return ("The pass did nothing here. It wants a quantize of a dequantize, with the same constant scale, which is not 0 and makes"
                " no q * s infinite. And y must have the type of q: quantize makes i8, unless it is told otherwise, as in"
                ' {dtype="i16"}.')
    nodes = defs(graph)
    floats = [nodes[node.inputs[0]] for node in graph.nodes if node.op == "quantize"]
    if all(nodes[w.inputs[0]].op == "input" for w in floats if w.op == "dequantize"):
        return "q * s / s comes out as q here, for every q of this type. Which integers can a float of this type not tell apart?"
    return ("q * s / s comes out as q here, for the values that q can have. Let q be an input, or other integers of its type: which of them"
            " can a float of this type not tell apart?")


DOUBLES_INSIDE = ("float64 on the way gives other halves than float32, and they are rounded another way: divide float32 by float32.")
BY_THE_SCALE = ("In exact arithmetic this is w / scale. In float32 it is rounded at another place, and near a half that gives another"
                " integer: divide w by the scale.")
ANY_SCALE = "This scale changes along the summed axis: each term has its own factor, and none can leave the sum."
FIRST_OPERAND = ("Here the first operand is dequantized, and not the second. Its scale goes with other axes: only the second operand is"
                 " meant.")
HOW_X_COMES = "The scale of w can leave here as well. What x is, and how it is computed, does not matter."
HOW_MANY = "Ask how many axes q and s have before you ask for a length. Unless each has two, the matmul stays as it is."
TO_THE_NEAREST = ("k is rounded to the nearest number here, so fewer may fit than were asked for: k is rounded up.")
ONE_MORE = "Where percent of n is a whole number, k is that number, and not one more: rounding up is -(-a // b)."
IN_FLOATS = ("The share percent / 100 is rounded to a float here, by you or inside np.percentile: 25 times 0.28 comes out above 7, and k"
             " is 8. Find k in whole numbers: n * percent first, and then divide by 100.")
INDEX_K = "The k-th smallest has the index k - 1: with percent=100, k is the number of all."
SHAPES = "The samples have other shapes than one another: np.ravel lays each into a row first."
NOT_NUMBERS = "A sample may have two axes or more. What it holds are rows then, not numbers: np.ravel lays it into one row first."
ONE_FOR_ALL = ("One scale serves all rows here, so one large weight makes the steps of all others coarse. Each row has its own, so that"
               " the scales have the shape [N, 1].")
ONLY_ABOVE = ("Only what is above clip is held back here, and a weight below -clip still counts in full. Take the sizes first, and then"
              " the smaller of each and clip.")
FROM_THE_SCALE = ("s may be one number, where w has several columns. Take the shape of y.scale from s: it has as many numbers as s.")
KEPT_AXIS = ("That s runs along the axis that the result keeps says nothing of its other axis. Along the summed axis it must have"
             " length 1.")
AMONG_GAPS = ("This counts the n - 1 gaps between the numbers, as np.percentile does, and k counts the n numbers: take the index k - 1"
              " of the sorted sizes.")

EXERCISES = (
    Exercise(
        "12", "int8 with a scale a row", quantize_weights,
        lambda function: judge_calls(function, weight_cases(), quantize_weights, explain=explain_weights),
        ("First the range: how large does a row get? 127 steps must reach that far. Then count each weight in steps.",
         "Take the sizes, the largest of each row (keep the axis), at most clip, and divide by 127. Put 1 where that is 0. Divide w by"
         " it, round with np.rint, hold the result between -127 and 127, and only then make it int8.",
         "most = np.minimum(np.abs(w).max(axis=..., keepdims=True), np.float32(clip))\nscale = most / np.float32(...)\n"
         "scale = np.where(scale == 0, ..., scale)\nsteps = np.rint(...)\nreturn np.clip(...).astype(...), scale"),
        (Mistake(quantize_truncating, "wrong-value", "Rounding toward zero makes every weight smaller, and errs by up to a whole step:"
                 " round to the nearest."),
         Mistake(quantize_half_up, "wrong-value", "Of two equally near integers, this takes the upper one. Half to even does not"
                 " drift: np.rint does it."),
         Mistake(quantize_half_away, "wrong-value", "Of two equally near integers, this takes the one further from 0. The even one is"
                 " wanted: np.rint does it."),
         Mistake(quantize_one_scale, "wrong-value", ONE_FOR_ALL),
         Mistake(quantize_scalar_scale, "wrong-value", ONE_FOR_ALL),
         Mistake(quantize_one_by_one, "wrong-value", ONE_FOR_ALL),
         Mistake(quantize_columns, "wrong-value", "These are the largest sizes of the columns. A row runs along axis 1."),
         Mistake(quantize_by_128, "wrong-value", "int8 goes from -128 to 127: with 128 steps the largest weight does not fit. Divide by"
                 " 127."),
         Mistake(quantize_without_size, "wrong-value", "The largest number is not the largest size: a row may be mostly negative. Take"
                 " np.abs first."),
         Mistake(quantize_without_guard, "wrong-value", "A row of zeros gets the scale 0, and 0 / 0 is no number. Where the scale would"
                 " be 0, it is 1."),
         Mistake(quantize_sizes_first, "wrong-value", "The largest size is not 0 here, and the scale is: a number so small, divided by"
                 " 127, is 0 in float32. Ask the scale."),
         Mistake(quantize_one_too_early, "wrong-value", "The 1 stands in for the largest size here, so the scale is 1 / 127. Divide"
                 " first, then put 1 where the scale is 0."),
         Mistake(quantize_wrapping, "wrong-value", "What does not fit wraps around to the other sign. Quantizing saturates: hold the"
                 " steps between -127 and 127."),
         Mistake(quantize_to_minus_128, "wrong-value", "The range is the same on both sides, -127 to 127; -128 has no partner."),
         Mistake(quantize_as_floats, "wrong-value", "q has the right values, but as float32, in four bytes each: make it int8."),
         Mistake(quantize_in_doubles, "wrong-value", "The scale is a float64: keep to float32 all the way."),
         Mistake(quantize_doubles_inside, "wrong-value", DOUBLES_INSIDE),
         Mistake(quantize_doubles_quotient, "wrong-value", DOUBLES_INSIDE),
         Mistake(quantize_clip_in_doubles, "wrong-value", "This clip is no float32, and it is divided as a float64 here: make it"
                 " np.float32(clip) first, and divide then."),
         Mistake(quantize_by_a_rounded_share, "wrong-value", "1 / 127 is rounded, and the product with it is rounded again: divide"
                 " by 127."),
         Mistake(quantize_by_reciprocal, "wrong-value", BY_THE_SCALE),
         Mistake(quantize_by_steps_of_most, "wrong-value", BY_THE_SCALE),
         Mistake(quantize_clipped_before, "wrong-value", "The weights are held within clip here, and the steps within nothing. So small a"
                 " scale is rounded coarsely, and 127 of it are less than the largest weight: hold the steps between -127 and 127."),
         Mistake(quantize_flat_scales, "wrong-value", "The scales lost an axis: keep it, and q * scale works row by row."),
         Mistake(quantize_without_clip, "wrong-value", "clip is forgotten: no size counts for more than clip."),
         Mistake(quantize_clips_only_weights, "wrong-value", "The weights are clipped, and the scale still reaches as far as they did."
                 " It is the largest size that counts for clip at most."),
         Mistake(quantize_clips_above, "wrong-value", ONLY_ABOVE),
         Mistake(quantize_clips_weights_above, "wrong-value", ONLY_ABOVE),
         Mistake(quantize_swapped, "wrong-value", "The two are the wrong way round: q first, then scale."),
         Mistake(quantize_in_place, "mutated", "This writes into the caller's weights. w / scale makes a new array; w /= scale and out= do"
                 " not."),
         Mistake(quantize_inverse, "wrong-value", "q * scale is w, so q is w divided by scale, not multiplied.")),
        (quantize_by_rows, quantize_clip_first),
        probes=tuple(weight_cases()),
        praise="A byte a weight, and four for each row. What the bytes bring depends on who reads them: the next exercise.",
    ),
    Exercise(
        "12", "A scale from samples", scale_of,
        lambda function: judge_calls(function, scale_cases(), scale_of, explain=explain_scale),
        ("How far must 127 steps reach, so that so many percent of all numbers that were seen fit?",
         "Lay all samples into one row, take the sizes, and sort them. Of n sizes the k-th smallest is wanted, k = n * percent / 100"
         " rounded up; it has the index k - 1. Divide by 127 in float32, and put 1 for 0.",
         "sizes = np.sort(np.abs(np.concatenate([... for sample in samples])))\nk = ...  # -(-a // b) is a / b, rounded up\n"
         "scale = np.float32(sizes[...]) / np.float32(127)\nreturn scale if scale > 0 else ..."),
        (Mistake(scale_minmax, "wrong-value", "This is min-max: one outlier decides for all. With percent below 100, the largest sizes may"
                 " saturate."),
         Mistake(scale_without_sizes, "wrong-value", "Negative numbers need room as well: take the sizes, np.abs."),
         Mistake(scale_rounded_down, "wrong-value", "Rounded down, fewer numbers fit than were asked for: k is rounded up."),
         Mistake(scale_rounded, "wrong-value", TO_THE_NEAREST),
         Mistake(scale_half_up, "wrong-value", TO_THE_NEAREST),
         Mistake(scale_always_one_more, "wrong-value", ONE_MORE),
         Mistake(scale_one_more_at_the_end, "raises", ONE_MORE),
         Mistake(scale_of_a_fraction, "wrong-value", IN_FLOATS),
         Mistake(scale_by_numpy, "wrong-value", IN_FLOATS),
         Mistake(scale_one_further, "wrong-value", "The k-th smallest has the index k - 1."),
         Mistake(scale_index_k, "raises", INDEX_K),
         Mistake(scale_index_k_of_list, "raises", INDEX_K),
         Mistake(scale_index_k_of_partition, "raises", INDEX_K),
         Mistake(scale_descending, "wrong-value", "This is the k-th largest size. The k-th smallest is wanted: sort upwards."),
         Mistake(scale_share_of_range, "wrong-value", "This is a share of the largest size. A percentile counts numbers: so many of them"
                 " are not larger."),
         Mistake(scale_part_of_range, "wrong-value", "This is a share of the largest size. A percentile counts numbers: so many of them"
                 " are not larger."),
         Mistake(scale_last_sample, "wrong-value", "Only the last sample counts here. All numbers of all samples do."),
         Mistake(scale_largest_of_samples, "wrong-value", "This looks at each sample alone, and takes the largest of the ranges. Lay all"
                 " numbers into one row first."),
         Mistake(scale_of_maxima, "wrong-value", "Each sample gives only its largest number here, so the small ones are not counted."),
         Mistake(scale_mean_of_maxima, "wrong-value", "This is the mean of the samples' largest sizes. Lay all numbers into one row, and"
                 " count."),
         Mistake(scale_without_ravel, "raises", SHAPES),
         Mistake(scale_in_one_array, "raises", SHAPES),
         Mistake(scale_by_rows, "raises", NOT_NUMBERS),
         Mistake(scale_by_rows_as_numbers, "raises", NOT_NUMBERS),
         Mistake(scale_by_rows_in_one_array, "raises", NOT_NUMBERS),
         Mistake(scale_of_gap, "wrong-value", AMONG_GAPS),
         Mistake(scale_interpolated, "wrong-value", "This lies between two sizes, as np.percentile does unless told otherwise. The k-th"
                 " smallest size is wanted."),
         Mistake(scale_higher, "wrong-value", AMONG_GAPS),
         Mistake(scale_lower, "wrong-value", AMONG_GAPS),
         Mistake(scale_nearest, "wrong-value", AMONG_GAPS),
         Mistake(scale_unique, "wrong-value", "Of several equal sizes only one is kept here, and all of them count: sort them, and leave"
                 " none out."),
         Mistake(scale_in_place, "mutated", "This writes into the caller's sample. np.abs(sample) makes a new array; out= does not."),
         Mistake(scale_zero, "wrong-value", "If all that was seen is 0, the scale would be 0, and dividing by it gives no number:"
                 " return 1."),
         Mistake(scale_asks_the_range, "wrong-value", "The range is not 0 here, and the scale is: a number so small, divided by 127, is 0"
                 " in float32. Ask the scale."),
         Mistake(scale_one_too_early, "wrong-value", "The 1 stands in for the range here, so the scale is 1 / 127. Divide first, then put"
                 " 1 where the scale is 0."),
         Mistake(scale_range, "wrong-value", "This is the range. 127 steps must reach that far: divide."),
         Mistake(scale_in_double, "wrong-value", "The scale is a float64: make it float32.")),
        (scale_by_partition, scale_by_counting),
        probes=tuple(scale_cases()),
        praise="percent=100 is min-max. Whether an outlier may saturate is no question of statistics: measure the model's error.",
    ),
    Exercise(
        "12", "The scale behind the product", fuse_dequantize,
        lambda function: judge_pass(function, FUSE_SPACE, fuse_dequantize, left=unfused, targets=FUSE_TARGETS),
        ("A factor that all terms of a sum share can be taken out of the sum. Which axis of w does the matmul sum along?",
         "For each matmul: is the second operand a dequantize, and have its q and its s two axes each? The summed axis is 0, or 1 with"
         " transpose_b. If s has length 1 there, emit four nodes: the cast of q, the matmul of it with the same flags, the scale"
         " with one axis, and the mul, which has the old name. All other nodes are kept.",
         "for node in graph.nodes:\n    w = known[node.inputs[1]] if node.op == 'matmul' else node\n    if ... and w.op =="
         " 'dequantize':\n        q, s = w.inputs\n        shape = known[s].type.shape\n        if ... and shape[...] == 1:\n"
         "            emit(node.name + '.wide', 'cast', q, dtype=...)\n            ...\n            continue\n"
         "    known[node.name] = ...\n    nodes.append(...)"),
        (Mistake(fuse_nothing, "did-nothing", "Here is a scale that can leave: s has length 1 along the axis of w that is summed."),
         Mistake(fuse_any_scale, "wrong-value", ANY_SCALE),
         Mistake(fuse_any_scale_by_axis, "raises", ANY_SCALE),
         Mistake(fuse_without_the_flag, "wrong-value", "With transpose_b the sum runs along axis 1 of w. Look at the flag before you ask"
                 " the scale."),
         Mistake(fuse_wrong_axis, "wrong-value", "You ask the other axis, the one that the result keeps. The scale must be constant along"
                 " the axis that is summed."),
         Mistake(fuse_forgets_scale, "wrong-value", "The product of the integers alone is not scaled: multiply it by s."),
         Mistake(fuse_onto_x, "wrong-value", "x runs along the summed axis, and this scale along the columns of the result. It belongs"
                 " behind the product."),
         Mistake(fuse_without_cast, "raises", "A matmul has operands of one dtype: cast q to that of the scale first."),
         Mistake(fuse_without_reshape, "wrong-value", "A scale of shape [N,1] scales the rows of the result, and the columns are meant:"
                 " reshape it to one axis."),
         Mistake(fuse_loses_flags, "wrong-value", "The new matmul needs the flags of the old one: **dict(node.value)."),
         Mistake(fuse_numbers_only, "did-nothing", "A scale for each column can leave the sum as well: it only must not change along the"
                 " summed axis."),
         Mistake(fuse_constants_only, "did-nothing", "This scale is computed, and no constant. It can leave as well: only its shape"
                 " counts, and that is in its type."),
         Mistake(fuse_straight_only, "did-nothing", "With transpose_b the scale can leave, too, if it is constant along axis 1."),
         Mistake(fuse_first_too, "wrong-value", FIRST_OPERAND),
         Mistake(fuse_first_in_its_place, "wrong-value", FIRST_OPERAND),
         Mistake(fuse_either, "wrong-value", FIRST_OPERAND),
         Mistake(fuse_always_float32, "raises", "s and x are no float32 here, and a matmul has operands of one dtype: cast q to the dtype of"
                 " s, which is that of w."),
         Mistake(fuse_one_name, "invalid", "Two products, and one name for both: begin each new name with that of the matmul."),
         Mistake(fuse_shape_of_summed, "raises", "Along the summed axis s has length 1. y.scale has as many numbers as s: its size, or the"
                 " length of the other axis."),
         Mistake(fuse_shape_of_q, "raises", FROM_THE_SCALE),
         Mistake(fuse_asks_kept_axis, "raises", KEPT_AXIS),
         Mistake(fuse_asks_kept_axis_for_shape, "raises", KEPT_AXIS),
         Mistake(fuse_shape_minus_one, "raises", "reshape takes no -1 here: the shape is the number of elements, known[s].type.size."),
         Mistake(fuse_one_reader, "did-nothing", "Others read w, too, and this matmul need not read it any longer. They can go on reading"
                 " it: w stays in the graph."),
         Mistake(fuse_float_x, "did-nothing", HOW_X_COMES),
         Mistake(fuse_input_x, "did-nothing", HOW_X_COMES),
         Mistake(fuse_matrix_x, "did-nothing", HOW_X_COMES),
         Mistake(fuse_drops_weight, "invalid", "Others may read the dequantized weights. Leave the node: what is dead is for dce."),
         Mistake(fuse_asks_no_axes, "raises", HOW_MANY),
         Mistake(fuse_asks_only_w, "raises", HOW_MANY),
         Mistake(fuse_asks_only_q, "raises", HOW_MANY),
         Mistake(fuse_asks_only_s, "raises", HOW_MANY),
         Mistake(fuse_any_rank, "lost", "A scale with three axes makes w a stack of matrices, and q is one. Only where q and s have two"
                 " axes each does the scale leave.")),
        (fuse_by_builder, fuse_clean),
        probes=tuple((graph,) for graph in FUSE_TARGETS),
        praise="A multiplication for each result, where it was one for each weight. And if x is quantized, too, integers are all that"
               " is summed. With scales that are no powers of two the rounding differs a little: so this is no pass of the standard"
               " pipeline.",
        is_pass=True,
    ),
    Exercise(
        "12", "Two of each four", prune_2_4,
        lambda function: judge_calls(function, prune_cases(), with_one_zero(prune_2_4), explain=explain_prune),
        ("Make the groups an axis of their own: then it is one small problem, many times.",
         "Reshape to rows of 4. Order each by size, the largest first, with a stable sort, so that equal ones stay in order. The places"
         " from the third on become 0, in a copy. Reshape back.",
         "groups = w.reshape(-1, 4)\norder = np.argsort(..., axis=1, kind='stable')\npruned = groups.copy()\n"
         "np.put_along_axis(pruned, ..., 0, axis=1)\nreturn pruned.reshape(...)"),
        (Mistake(prune_by_value, "wrong-value", "A large negative number matters as much as a positive one: compare the sizes."),
         Mistake(prune_the_large, "wrong-value", "These are the two smallest that stayed. The largest matter most."),
         Mistake(prune_three, "wrong-value", "Only one of four is left. Two stay."),
         Mistake(prune_ties_from_the_right, "wrong-value", "Of equal sizes the one further left stays. In ascending order it comes first and"
                 " goes first: sort the negative sizes, with kind='stable'."),
         Mistake(prune_one_argsort, "wrong-value", "argsort says which place is first, second and so on, and not how each place ranks. The"
                 " ranks are argsort of that again."),
         Mistake(prune_above, "wrong-value", "With equal sizes, fewer than two are above the third largest. Keep two by place."),
         Mistake(prune_in_place, "mutated", "This writes into the caller's w, of which a reshape is only a view: copy before you write"
                 " zeros."),
         Mistake(prune_in_doubles, "wrong-value", "The numbers are right, as float64: the result has the dtype of w."),
         Mistake(prune_in_halves, "wrong-value", "The result is float16: the weights that stay are not to be rounded."),
         Mistake(prune_by_threshold, "wrong-value", "With equal sizes, more than two reach the threshold, and three numbers do not fit"
                 " into the format. Keep two by place."),
         Mistake(prune_columns, "wrong-value", "These groups run down the columns. A group is 4 neighbours in a row."),
         Mistake(prune_anywhere, "wrong-value", "Half of all weights went, but not half of each group: this is unstructured, and no"
                 " format can leave the zeros out."),
         Mistake(prune_compressed, "wrong-value", "The zeros are left out, so the shape is another one. Here they stay as zeros;"
                 " storing less comes after.")),
        (prune_by_loops, prune_by_the_package, prune_by_a_mask),
        probes=tuple(prune_cases()), adapt=with_one_zero,
        praise="What is left is predictable: half the values, and two bits each for their places.",
        stretch=True,
    ),
)  # fmt: skip

REFUTATIONS = (
    Refutation("12", relu_on_integers, relu_graph("0.5"), relu_graph("-0.5"), no_harm_of_relu, lesson_of_relu),
    Refutation(
        "12", drop_pairs_in_range, pair_graph("0.5"), pair_graph("0.5", "i32"), no_harm_of_pair,
        "The range of the scale is not all that counts. float32 has 24 binary digits, so it has no 16,777,217, and i32 has; float16 has 11,"
        " and no 2,049. The package's pass asks for the type as well: i8 and i16 fit into float32, and i32 goes with float64 alone.",
    ),
)  # fmt: skip
