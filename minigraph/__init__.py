"""minigraph: a graph compiler small enough to read in an evening, and right to the bit.

>>> import minigraph as mg, numpy as np
>>> g = mg.trace(lambda x: np.tanh(x * 1.0) + (2.0 + 3.0), mg.spec("f32[8]"))
>>> mg.optimize(g).graph
"""

from __future__ import annotations

import importlib

from .errors import GraphError, MinigraphError, ParseError, PassError, RuleLoop, RunError, TraceError
from .backends import compile
from .ir import Builder, Graph, Node, defs, users
from .freeze import freeze
from .pipeline import Optimized, optimize
from .run_numpy import run, stats
from .text import node_line, parse, print_diff, print_graph
from .types import Const, Type, parse_type, same_bits
from .verify import problems, verify

__version__ = "0.1.0"

# What needs more than NumPy, or is not needed by most programs, is imported when it is first asked for.
LAZY = {
    **dict.fromkeys(("assert_close", "assert_finite", "constant", "conv2d", "dequantize", "erf", "print_value", "quantize",
                     "random", "random_like", "rsqrt", "spec", "take", "trace", "unpack", "update_slice"), "tracing"),
    **dict.fromkeys(("chrome_trace", "draw", "draw_clusters", "draw_curves", "draw_diff", "draw_history", "draw_memory",
                     "draw_timeline", "stride_ruler", "placing_steps", "steps"), "drawing"),
    **dict.fromkeys(("to_networkx", "from_networkx"), "view"),
    **dict.fromkeys(("load", "save"), "files"),
    **dict.fromkeys(("explain", "fuse"), "fusion"),
    **dict.fromkeys(("check_plan", "make_plan"), "plan"),
}  # fmt: skip


def __getattr__(name: str):
    if name not in LAZY:
        raise AttributeError(f"module 'minigraph' has no attribute '{name}'")
    return getattr(importlib.import_module(f".{LAZY[name]}", __name__), name)


def __dir__():
    return sorted({*globals(), *LAZY})
