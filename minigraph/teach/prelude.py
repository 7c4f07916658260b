"""What an exercise starts with: ``from minigraph.teach.prelude import *``.

Graphs and running them are from ``minigraph``; check, hint, solution, predict, refute, progress and use_mine from
``minigraph.teach``; np and nx are NumPy and networkx.
"""

import networkx as nx
import numpy as np

from minigraph import (
    Builder, Const, Graph, Node, Type, compile, defs, draw, draw_clusters, draw_diff, node_line, optimize, parse, parse_type, print_diff,
    print_graph, problems, run, same_bits, spec, stats, steps, trace, users, verify,
)
from minigraph.errors import GraphError, MinigraphError
from minigraph.ops import OPS, Attrs, Kind, infer, make_attrs
from minigraph.passes.rules import Rule
from minigraph.passes.simplify import explain
from minigraph.planners import Buffer
from minigraph.teach import (
    break_rule, check, hint, predict, progress, project, refute, refute_benchmark, refute_trace, solution, use_mine,
)
from minigraph.types import DTYPES, SHORT

__all__ = [
    "Attrs", "Buffer", "Builder", "Const", "DTYPES", "Graph", "GraphError", "Kind", "MinigraphError", "Node", "OPS", "Rule", "SHORT", "Type",
    "break_rule", "check", "compile", "defs", "draw", "draw_clusters", "draw_diff", "explain", "hint", "infer", "make_attrs", "node_line",
    "np", "nx", "optimize", "parse", "parse_type", "predict", "print_diff", "print_graph", "problems", "progress", "project", "refute",
    "refute_benchmark", "refute_trace", "run", "same_bits", "solution", "spec", "stats", "steps", "trace", "use_mine", "users", "verify",
]  # fmt: skip
