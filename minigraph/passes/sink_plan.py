"""Where transposes may sink, and where that pays: the cost rule of ``layout``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container

from ..ir import Graph, Node, defs, users
from ..ops import OPS, Kind
from .axes import Perm, compose, copies, cost, inverse, is_reshape, stored_shape, swap_last, torn, widen
from .dce import dce

# Element-wise operations and reductions work in any order of axes, and so do these.
OTHERS = ("concat", "pad", "slice", "broadcast_to", "update_slice")


def sinkable(node: Node) -> bool:
    """Could a transpose below this operation as well stand above it?"""
    return OPS[node.op].kind in (Kind.ELEMENTWISE, Kind.REDUCTION) or node.op in OTHERS


def one_order(node: Node, perms: dict[str, Perm], nodes: dict[str, Node], fixed: Container[str]) -> Perm | None:
    """The permutation that all operands share, so that ``node`` can work on them as they are stored; or None.

    ``perms`` has the operands that are transposes. Others fit if laying them out alike moves no byte (a number, a bias
    along one axis) or is done at compile time: ``fixed`` has the constants and their transposes.
    """
    known = [name for name in node.inputs if name in perms and name not in fixed]
    if not known:
        return None
    rank = max(len(node.type.shape), *[len(nodes[name].type.shape) for name in node.inputs])
    order = widen(perms[max(known, key=lambda name: nodes[name].type.nbytes)], rank)
    back = inverse(order)
    for name in dict.fromkeys(node.inputs):
        shape = nodes[name].type.shape
        perm = perms.get(name) or tuple(range(len(shape)))
        wide = (1,) * (rank - len(shape)) + stored_shape(shape, perm)
        if name not in fixed and not is_reshape(wide, compose(widen(perm, rank), back)):
            return None
    return order


def order_after(node: Node, order: Perm) -> Perm:
    """The permutation that the result still needs: a reduction may have dropped axes."""
    if len(node.type.shape) == len(order):
        return order
    axes = node.value.axis if isinstance(node.value.axis, tuple) else (node.value.axis,)
    gone = {axis % len(order) for axis in axes}
    kept = [order[axis] for axis in range(len(order)) if axis not in gone]
    place = {axis: i for i, axis in enumerate(sorted(kept))}
    return tuple([place[axis] for axis in kept])


class Sinking:
    """What is worth doing in one graph: ``sink`` are the values to compute from operands as they are stored.

    Every transpose sinks as deep as it can; what does not pay is taken back; then the bytes of each region are
    compared. A region is what transposes reach together. Its borders are read and written in order either way, so no
    region depends on another, and none gets worse.
    """

    def __init__(self, graph: Graph):
        self.graph = dce(graph).graph
        self.nodes, self.readers = defs(self.graph), users(self.graph)
        self.outputs = {value for _, value in graph.outputs}
        self.perms: dict[str, Perm] = {}  # value -> how what is stored for it must be transposed
        self.fixed = {node.name for node in self.graph.nodes if node.op == "const"}  # and their transposes
        self.sink: set[str] = set()
        self.sink_all()
        self.flip = {node.name for node in self.graph.nodes if self.turns_product(node)}
        self.needed = {name for name in self.perms if name in self.outputs}  # in its own order, contiguous
        self.below: set[str] = set()  # read as stored, by what has sunk or by another transpose
        self.held: set[str] = set()  # a transpose stays for a matmul, which reads it in place
        self.take_back()
        self.compare()
        self.flip = {name for name in self.flip if self.flips(name)}

    def sink_all(self) -> None:
        for node in self.graph.nodes:
            if node.op == "transpose":
                inner = self.perms.get(node.inputs[0]) or tuple(range(len(node.type.shape)))
                perm = compose(inner, node.value.perm)
                if node.inputs[0] in self.fixed:
                    self.fixed.add(node.name)
            elif sinkable(node) and (order := one_order(node, self.perms, self.nodes, self.fixed)):
                self.sink.add(node.name)
                perm = order_after(node, order)
            else:
                continue
            if not is_reshape(stored_shape(node.type.shape, perm), perm):
                self.perms[node.name] = perm

    def turns_product(self, node: Node) -> bool:
        """Is this the transpose of a product of matrices that has no other reader?"""
        if node.op != "transpose":
            return False
        product, rank = self.nodes[node.inputs[0]], len(node.type.shape)
        if product.op != "matmul" or self.readers[product.name] != [node.name] or product.name in self.outputs:
            return False
        return (node.value.perm == swap_last(tuple(range(rank)))
                and all(len(self.nodes[name].type.shape) >= 2 for name in product.inputs))

    def price(self, name: str) -> int:
        """What it costs that somebody needs this value in its own order."""
        free = name in self.flip and name not in self.below and len(set(self.readers[name])) <= 1  # more may differ yet
        return 0 if free else cost(self.nodes[name].type)

    def take_back(self) -> None:
        """From the end: what has sunk for nobody's benefit is computed in its own order again."""
        for node in reversed(self.graph.nodes):
            mine = [name for name in dict.fromkeys(node.inputs) if name in self.perms]
            if node.name in self.sink and node.name not in self.below:
                here = self.price(node.name) if node.name in self.needed and node.name in self.perms else 0
                if sum(self.price(name) for name in mine if name not in self.needed) <= here:
                    self.sink.discard(node.name)
                    self.perms.pop(node.name, None)
            for name in mine:
                self.reading(node, name).add(name)

    def reading(self, node: Node, name: str) -> set[str]:
        if node.name in self.sink or node.op == "transpose":
            return self.below
        if node.op != "matmul":
            return self.needed
        shape, perm = stored_shape(self.nodes[name].type.shape, self.perms[name]), self.perms[name]
        how = min(torn(shape, perm), torn(shape, swap_last(perm)))
        return (set(), self.held, self.held, self.needed)[how]

    def compare(self) -> None:
        """Sink nothing in a region where that does not lower (bytes, transposes)."""
        parent: dict[str, str] = {}

        def region(name: str) -> str:
            while parent.setdefault(name, name) != name:
                parent[name] = name = parent[parent[name]]
            return name

        for node in self.graph.nodes:
            if node.name in self.sink or node.op == "transpose":
                for name in node.inputs:
                    if name in self.perms:
                        parent[region(name)] = region(node.name)
        moved, count = Counter(), Counter()
        for name, before in copies(self.graph).items():
            moved[region(name)] += before
            count[region(name)] += 1
        for name in self.perms:
            moved[region(name)] -= self.price(name) if name in self.needed else 0
            count[region(name)] -= name in self.needed or name in self.held
        self.sink = {name for name in self.sink if (moved[region(name)], count[region(name)]) > (0, 0)}

    def flips(self, name: str) -> bool:
        """Turn the product round, unless somebody reads it as it is anyway, or a flag does the same."""
        reading = [self.nodes[reader] for reader in self.readers[name]]
        return all(node.op != "transpose" and node.name not in self.sink for node in reading) and (
            name in self.outputs or any(node.op != "matmul" for node in reading))

    def only_for_matmuls(self, name: str) -> bool:
        """Will nobody but matmul read this transpose?"""
        return name not in self.outputs and all(
            self.nodes[reader].op in ("matmul", "transpose") or reader in self.sink for reader in self.readers[name])
