"""The passes, by name. A pass is ``Graph -> Result(graph, report)``; its options are keyword arguments."""

from ..rebuild import Result, Rewrite, Step, rebuild
from .cse import cse
from .dce import dce
from .fold import fold
from .simplify import simplify

PASSES = {"fold": fold, "simplify": simplify, "cse": cse, "dce": dce}

__all__ = ["PASSES", "Result", "Rewrite", "Step", "cse", "dce", "fold", "rebuild", "simplify"]
