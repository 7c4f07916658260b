"""The exercises, by name. One module a chapter; each lists EXERCISES and REFUTATIONS, and may list BAKED, BREAKS
and BENCHMARKS."""

from __future__ import annotations

import importlib
import pkgutil

from ..exercise import Baked, Benchmark, Break, Exercise, Refutation

CHAPTERS = {
    "00": "A tour", "01": "The graph", "02": "Tracing", "03": "Constant folding", "04": "Algebra", "05": "Dead code",
    "06": "Common subexpressions and pass order", "06b": "Project: a compiler from scratch",
    "07": "Launch overhead", "08": "Fusion", "09": "Reductions and attention",
    "10": "Layout", "11": "Memory planning", "12": "Quantization and sparsity",
}  # fmt: skip

MODULES = [importlib.import_module(f"{__name__}.{found.name}")
           for found in sorted(pkgutil.iter_modules(__path__), key=lambda found: found.name)]
EXERCISES: dict[str, Exercise] = {one.name: one for module in MODULES for one in module.EXERCISES}
REFUTATIONS: dict[str, Refutation] = {one.name: one for module in MODULES for one in module.REFUTATIONS}
BAKED: dict[str, Baked] = {one.name: one for module in MODULES for one in getattr(module, "BAKED", ())}
BREAKS: dict[str, Break] = {one.name: one for module in MODULES for one in getattr(module, "BREAKS", ())}
BENCHMARKS: dict[str, Benchmark] = {one.name: one for module in MODULES for one in getattr(module, "BENCHMARKS", ())}
