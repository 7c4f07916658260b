"""The passes, by name. A pass is ``Graph -> Result(graph, report)``; its options are keyword arguments.

``quantize_weights``, ``prune`` and the like are passes too, but not among ``PASSES``: they change values, so that only
a user can want them.
"""

from ..rebuild import Result, Rewrite, Step, rebuild
from .cse import cse
from .dce import dce
from .dequantize import explain_dequantize, fuse_dequantize
from .fold import fold
from .int8 import activations, quantize_activations, remove_quantize_pairs
from .layout import layout
from .quantize import quantize_weights
from .simplify import simplify
from .sparsity import compress, prune

PASSES = {"fold": fold, "simplify": simplify, "cse": cse, "layout": layout, "dce": dce}

__all__ = [
    "PASSES", "Result", "Rewrite", "Step", "activations", "compress", "cse", "dce", "explain_dequantize", "fold",
    "fuse_dequantize", "layout", "prune", "quantize_activations", "quantize_weights", "rebuild",
    "remove_quantize_pairs", "simplify",
]  # fmt: skip
