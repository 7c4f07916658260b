"""The graphs that the whole course comes back to."""

from __future__ import annotations

import numpy as np

from ..freeze import freeze
from ..ir import Builder, Graph
from ..text import parse
from ..tracing import trace

A4_TEXT = """graph a4(x: f32[4], y: f32[4]) -> (h) {
  a = const(2.0) : f32[]
  b = const(3.0) : f32[]
  c = add(a, b)
  d = mul(c, x)
  e = sin(d)
  f = exp(e)
  g = add(f, c)
  h = mul(g, y)
  return h
}
"""


def a4() -> Graph:
    """h = (exp(sin((2 + 3) * x)) + (2 + 3)) * y, one operation a line."""
    return parse(A4_TEXT)


def expression(dtype: str = "f32") -> Graph:
    """((3 + 4) * x) + (5 * 0), for floats or integers."""
    point = ".0" if dtype.startswith("f") else ""
    return parse(f"""graph expression(x: {dtype}[4]) -> (y) {{
  three = const(3{point}) : {dtype}[]
  four = const(4{point}) : {dtype}[]
  seven = add(three, four)
  m = mul(seven, x)
  five = const(5{point}) : {dtype}[]
  zero = const(0{point}) : {dtype}[]
  n = mul(five, zero)
  y = add(m, n)
  return y
}}""")


def rms_norm(x, weight):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-5) * weight


def rotate(x, cos, sin):
    half = x.shape[-1] // 2
    a, b = x[:, :half], x[:, half:]
    return np.concatenate([a * cos - b * sin, a * sin + b * cos], axis=-1)


def attention_layer(x, positions, norm, wq, wk, wv, wo, bias, keep):
    """One attention layer as people write it: f32[n, d] -> f32[n, d]. It has waste of every kind in it."""
    n, d = x.shape
    largest = np.max(np.abs(x))  # somebody printed this last week; nobody reads it now
    mask = positions.reshape(n, 1) >= positions.reshape(1, n)
    speed = np.float32(10000.0) ** (-np.arange(0, d, 2, dtype=np.float32) / d)
    angle = positions.reshape(n, 1).astype(np.float32) * speed
    q = rotate(rms_norm(x, norm) @ wq.T, np.cos(angle), np.sin(angle))
    k = rotate(rms_norm(x, norm) @ wk.T, np.cos(angle), np.sin(angle))
    v = rms_norm(x, norm) @ wv.T
    scores = np.where(mask, (q @ k.T) / np.sqrt(np.float32(d)), np.float32(-np.inf))
    e = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
    share = e / np.sum(e, axis=-1, keepdims=True)
    out = (share @ v) @ wo.T + bias
    return x + out * keep


def layer_graph(n: int = 8, d: int = 16) -> Graph:
    """``attention_layer`` traced; every argument is still an input."""
    matrix = f"f32[{d},{d}]"
    return trace(attention_layer, x=f"f32[{n},{d}]", positions=f"i32[{n}]", norm=f"f32[{d}]", wq=matrix, wk=matrix,
                 wv=matrix, wo=matrix, bias=f"f32[{d}]", keep="f32[]", name="layer")


def frozen_layer(n: int = 8, d: int = 16) -> Graph:
    """The layer with all that is known before it runs as constants; only ``x`` is left as an input."""
    draw = np.random.default_rng(0)
    weights = {name: (draw.standard_normal((d, d)) / np.sqrt(d)).astype(np.float32) for name in ("wq", "wk", "wv", "wo")}
    return freeze(layer_graph(n, d), positions=np.arange(n, dtype=np.int32), norm=np.ones(d, np.float32), **weights,
                  bias=np.full(d, -0.0, np.float32), keep=np.float32(1.0))


def mlp(x, layers):
    """A multilayer perceptron with scales, four operations a layer: f32[n, d] -> f32[n, d]."""
    for weight, bias, scale in layers:
        x = np.maximum(x @ weight + bias, 0) * scale
    return x


def mlp_graph(layers: int = 32, width: int = 1024, batch: int = 1) -> Graph:
    """What ``mlp`` does, each value named after its layer and operation: ``layer0.matmul``, ``layer0.add`` …

    All weights are inputs (``w0``, ``b0``, ``s0``, ``w1`` …), so a large network costs no memory.
    """
    builder = Builder("mlp")
    value, zero = builder.input("x", f"f32[{batch},{width}]"), builder.const(0.0, "f32")
    for i in range(layers):
        weight = builder.input(f"w{i}", f"f32[{width},{width}]")
        bias, scale = builder.input(f"b{i}", f"f32[{width}]"), builder.input(f"s{i}", f"f32[{width}]")
        for op, other in (("matmul", weight), ("add", bias), ("maximum", zero), ("mul", scale)):
            value = builder.emit(op, value, other, name=f"layer{i}.{op}")
    return builder.build({"y": value})
