"""Attention as one launch: softmax(q @ k) @ v, found by its shape in the graph."""

from __future__ import annotations

from .ir import Graph


def find_attention(graph: Graph, users: dict[str, list[str]], outputs: frozenset[str]) -> dict[str, tuple[str, ...]]:
    """Last node of an attention -> all its nodes, in the graph's order."""
    return {}
