"""Chapter 12, quantization and sparsity: the exercises, their mistakes and the passes to refute."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from ...ir import Graph, Node, defs
from ...ops import OPS, infer, make_attrs
from ...passes import fuse_dequantize as package_fuse
from ...passes.dce import dce
from ...passes.sparsity import mask_24
from ...text import parse
from ..exercise import Exercise, Mistake, Refutation
from ..graphs import Space
from ..judge import judge_calls, judge_pass

# ---- int8, with a scale a row -------------------------------------------------------------------------------------


def quantize_weights(w, clip=np.inf):
    """A matrix as int8 with a scale for each row: (q, scale).

    ``w`` is f32[N, K], and finite. The result is q: int8[N, K] and scale: float32[N, 1], so that q * scale
    is about w.

    The scale of a row is its largest size, divided by 127. What is larger than ``clip`` does not count as
    such: the largest size is clip then. A row whose scale would be 0 has the scale 1. q is w / scale, to the
    nearest integer (of two equally near ones the even one), and what is beyond 127 or -127 stays there.

        w = [[254, 5, -3], [0, 0, 0]]            gives q = [[127, 2, -2], [0, 0, 0]], scale = [[2], [1]]
        the same with clip=12.7                  gives q = [[127, 50, -30], [0, 0, 0]], scale = [[0.1], [1]]
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
             ([[1, -127.6]], 127), ([[0.0]],), ([[-3]],), ([[1e-44, 0]],), ([[3e38, 1e38], [1e-30, 2e-30]],)]
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
            kind = f"{yours.dtype}{list(yours.shape)}" if isinstance(yours, np.ndarray) else type(yours).__name__
            return (*head, f"{name} should be {right.dtype}{list(right.shape)}, and is {kind}")
        for at in np.ndindex(right.shape):
            if right[at] != yours[at]:
                place = ", ".join(map(str, at))
                return (*head, f"{name}[{place}] should be {right[at]:.9g}, and is {yours[at]:.9g}", *quotient_of(w, want, at, name))
    return head


def quotient_of(w: np.ndarray, want, at: tuple, name: str) -> tuple[str, ...]:
    return (f"w / scale is {w[at] / want[1][at[0], 0]:.9g} there",) if name == "q" else ()


# ---- the scale behind the product ---------------------------------------------------------------------------------

FUSE_SPACE = Space(
    inputs=(("x", "f32[2,2]"), ("q", "i8[2,2]")),
    consts=(("s", [[0.5, 2.0]], "f32[1,2]"), ("r", [[0.25], [2.0]], "f32[2,1]"), ("one", [[4.0]], "f32[1,1]")),
    ops=(("dequantize", {}), ("matmul", {}), ("matmul", {"transpose_b": True}), ("matmul", {"transpose_a": True}), ("neg", {})),
    limit=500, larger=120, size=5)  # fmt: skip


def target(inputs: str, scale: str, weight: str, flags: str = "", more: str = "", outputs: str = "y") -> Graph:
    """x and a dequantized q in one product."""
    lines = [f"s = const({scale})", f"w = dequantize(q, s) : {weight}", f"y = matmul(x, w){flags}", *filter(None, [more])]
    names = ", ".join(outputs.split())
    return parse(f"graph g({inputs}) -> ({names}) {{\n" + "\n".join(f"  {line}" for line in lines) + f"\n  return {names}\n}}")


SQUARE, BOTH = "x: f32[2,2], q: i8[2,2]", " {transpose_b=true}"
COLUMNS, ROWS = "[[0.5, 2.0]]) : f32[1,2", "[[0.5], [2.0]]) : f32[2,1"


def fuse_targets() -> Iterator[Graph]:
    def closed(scale):  # const(...) : type, whose last bracket target() has no place for
        return scale.replace(") : ", ") : ") + "]"

    def make(inputs, scale, weight, flags="", more="", outputs="y"):
        text = target(inputs, "0.0", weight, flags, more, outputs) if scale is None else None
        if text is not None:
            return text
        names = ", ".join(outputs.split())
        lines = [f"s = const({closed(scale)}", f"w = dequantize(q, s) : {weight}", f"y = matmul(x, w){flags}", *filter(None, [more])]
        return parse(f"graph g({inputs}) -> ({names}) {{\n" + "\n".join(f"  {line}" for line in lines) + f"\n  return {names}\n}}")

    yield make(SQUARE, COLUMNS, "f32[2,2]")
    yield make(SQUARE, ROWS, "f32[2,2]")
