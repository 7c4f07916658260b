"""The passes, by name. A pass is ``Graph -> Result(graph, report)``; its options are keyword arguments.

``quantize_weights``, ``prune`` and the like are passes too, but not among ``PASSES``: they change values, so that only a
user can want them.
"""

from ..rebuild import Result, Rewrite, Step, rebuild
from .cse import cse
from .dce import dce
from .fold import fold
from .layout import layout
from .quantize import explain_dequantize, fuse_dequantize, quantize_activations, quantize_weights, remove_quantize_pairs
from .simplify import simplify
from .sparsity import compress, prune

PASSES = {"fold": fold, "simplify": simplify, "cse": cse, "layout": layout, "dce": dce}

__all__ = ["PASSES", "Result", "Rewrite", "Step", "compress", "cse", "dce", "explain_dequantize", "fold", "fuse_dequantize",
           "layout", "prune", "quantize_activations", "quantize_weights", "rebuild", "remove_quantize_pairs", "simplify"]
