"""Integers: products of int8 numbers in int32, and quantize-dequantize pairs that can go because that is exact."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real

import numpy as np

from ..errors import GraphError, nearest
from ..ir import Graph, Node, defs
from ..rebuild import Env, Result, Rewrite, rebuild
from ..text import node_line
from ..types import DTYPES, Const
from .dequantize import around, scale_of
from .quantize import constant, emit
from .weights import Side, sides


def exact_scale(scale: np.ndarray, dtype: str) -> bool:
    """Is quantize(dequantize(q, s), s) = q for every integer q of this dtype and every scale in the array?

    With u half a unit in the last place, q * s and the quotient are each within a factor 1 ± u, if no product
    overflows or is subnormal; the result is within 2 |q| u of q, which rounding undoes as long as that is below 1/2.
    A subnormal scale would be exact in NumPy, but kernels that flush such numbers to 0 (``-ftz``, CuPy's default) would
    give 0 / 0.
    """
    facts, kind = np.iinfo(DTYPES[dtype]), np.finfo(scale.dtype)
    most = max(-int(facts.min), int(facts.max))
    if most * float(kind.eps) >= 0.5:
        return False
    size = np.abs(scale.astype(np.float64 if scale.dtype != np.float64 else np.longdouble))
    return bool(np.all((size >= float(kind.tiny)) & (size <= kind.max / most * (1 - kind.eps))))


def remove_quantize_pairs(graph: Graph) -> Result:
    """quantize(dequantize(q, s), s) is q, where s is a constant for which that is exact: see ``exact_scale``.

    With a scale of inf, NaN or 0, or one so large that q * s overflows, it is not. (The other way round,
    dequantize(quantize(x, s), s) is what rounding means, and never x.)
    """

    def visit(node: Node, env: Env) -> Rewrite | None:
        inner = env.defs[node.inputs[0]] if node.op == "quantize" else node
        if node.op != "quantize" or inner.op != "dequantize":
            return None
        q, scale, again = (env.defs[name] for name in (*inner.inputs, node.inputs[1]))
        if not (isinstance(scale.value, Const) and scale.value == again.value and node.type == q.type):
            return None
        if not exact_scale(scale.value.array, q.type.dtype):
            return None
        return Rewrite("quantize-pair", q.name, f"{q.type.dtype} times this scale loses no digit that rounding needs")

    return rebuild(graph, visit)


LONGEST = 2**31 // 128**2 - 1  # terms of a sum of int8 products that int32 always holds


def quantizable(node: Node, env: Env) -> Side | None:
    """The side of an int8 weight whose product could be computed in integers."""
    for side in sides(node, env) if node.op == "matmul" else []:
        if side.node.op != "dequantize":
            continue
        if env.type(side.node.inputs[0]).dtype == "i8" and env.type(side.other).dtype == "f32":
            if isinstance(scale_of(side, env), Node) and side.node.type.shape[side.summed] <= LONGEST:
                return side
    return None


def activations(graph: Graph) -> tuple[str, ...]:
    """The values that meet an int8 weight in a product: what ``quantize_activations`` needs a scale for."""
    env = Env(graph)
    env.defs.update(defs(graph))
    found = [side.other for node in graph.nodes if (side := quantizable(node, env)) is not None]
    return tuple(dict.fromkeys(found))


def check_scales(graph: Graph, scales: dict[str, float]) -> None:
    if not isinstance(scales, Mapping):
        raise GraphError(f"scales are a dict of numbers by name, not {scales!r}", hint="calibrate measures them")
    known = defs(graph)
    for name, scale in scales.items():
        if not isinstance(name, str) or name not in known:
            raise GraphError(
                f"there is a scale for '{name}', but no value is named so",
                hint=nearest(str(name), known) or "activations(graph) names those that need one",
            )
        number = scale.item() if isinstance(scale, np.ndarray) and scale.ndim == 0 else scale
        if not (isinstance(number, Real) and 0 < number <= float(np.finfo(np.float32).max) and np.float32(number)):
            raise GraphError(
                f"the scale of '{name}' is a float32 above 0, not {scale!r}",
                line=node_line(known[name]),
                hint="calibrate gives 1 where all samples are 0",
            )


def quantize_activations(graph: Graph, scales: dict[str, float]) -> Result:
    """Products of int8 weights in integers: a sum of int8 products in int32, as a float, times both scales.

    That is what matmul(x, dequantize(q, s)) becomes. ``scales`` gives each activation's scale, as ``calibrate``
    measures them; what is beyond 127 times that is clipped, and a product whose activation is not named stays. The
    int32 sums are exact. Raises GraphError for a name that the graph does not have, and for a scale that is no number
    above 0.
    """
    check_scales(graph, scales)

    def visit(node: Node, env: Env) -> Rewrite | None:
        side = quantizable(node, env)
        if side is None or side.other not in scales:
            return None
        of_x = constant(env, f"{side.other}.scale", np.array(scales[side.other], np.float32))
        few = emit(env, f"{side.other}.i8", "quantize", env.defs[side.other], of_x, dtype="i8")
        x, w = (
            emit(env, f"{node.name}.{letter}", "cast", one, dtype="i32")
            for letter, one in (("x", few), ("w", env.defs[side.node.inputs[0]]))
        )
        product, factor, after = around(node, side, w, x, scale_of(side, env), env)
        number = emit(env, f"{node.name}.float", "cast", product, dtype="f32")
        both = emit(env, f"{node.name}.both", "mul", factor, of_x)
        made = (
            of_x,
            few,
            x,
            w,
            product,
            number,
            factor,
            both,
            Node(node.name, "mul", (number.name, both.name), None, node.type),
        )
        return Rewrite("quantize-activations", made, "int8 times int8 is added up in int32, and scaled once")

    return rebuild(graph, visit)
