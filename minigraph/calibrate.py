"""Calibration: run a graph on samples, look how large its activations are, and choose scales for int8."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from numbers import Real

import numpy as np

from .errors import RunError, nearest
from .ir import Graph
from .passes import activations
from .run_numpy import Executable

LARGEST = 127  # of int8, on both sides


def minmax(sizes: np.ndarray, percentile: float) -> float:
    return float(sizes.max(initial=0))


def at_percentile(sizes: np.ndarray, percentile: float) -> float:
    return float(np.percentile(sizes, percentile)) if sizes.size else 0.0


METHODS: dict[str, Callable[[np.ndarray, float], float]] = {"minmax": minmax, "percentile": at_percentile}


Samples = Iterable[Mapping[str, np.ndarray]]  # inputs by name


def observe(graph: Graph, samples: Samples, names: Iterable[str]) -> dict[str, list[np.ndarray]]:
    """The values of these names on each sample, a dict of inputs by name."""
    names = list(dict.fromkeys(names))
    outputs = tuple((f"seen_{number}", name) for number, name in enumerate(names))
    executable = Executable(Graph(graph.name, graph.nodes, outputs))
    found: dict[str, list[np.ndarray]] = {name: [] for name in names}
    for sample in samples:
        for name, array in zip(names, executable(sample).values()):
            found[name].append(array)
    return found


def calibrate(graph: Graph, samples: Samples, method: str = "minmax", percentile: float = 99.9,
              names: Iterable[str] | None = None) -> dict[str, np.float32]:  # fmt: skip
    """A scale for each activation that meets an int8 weight: what ``quantize_activations`` takes.

    ``names``: scales for these values instead, for example ``activations(quantized)`` measured on the float graph that
    it was made from, where values have the same names.

    ``minmax``: the largest size seen is 127 steps. ``percentile``: so many percent of the numbers fit, and the rest is
    clipped, which makes the steps of all others finer. ``samples`` are dicts of inputs by name. Raises RunError where
    there are none, or for a value that is not finite.
    """
    if not isinstance(method, str) or method not in METHODS:
        hint = nearest(str(method), METHODS) or "methods are " + " and ".join(METHODS)
        raise RunError(f"there is no method '{method}'\n  {hint}")
    if not isinstance(percentile, Real) or not 0 < percentile <= 100:
        raise RunError(f"a percentile is above 0 and at most 100, not {percentile!r}")
    scales = {}
    for name, arrays in observe(graph, samples, activations(graph) if names is None else names).items():
        if not arrays:
            raise RunError("there are no samples to calibrate on\n  give a list of dicts of inputs by name")
        sizes = np.abs(np.concatenate([array.reshape(-1) for array in arrays]))
        if not np.isfinite(sizes).all():
            raise RunError(f"'{name}' is not finite on the samples, so no scale fits it")
        scale = np.float32(METHODS[method](sizes, percentile) / LARGEST)
        scales[name] = scale if scale >= np.finfo(np.float32).tiny else np.float32(1)  # all are 0, or as good as that
    return scales
