"""How a node looks: a shape, a fill and a line for each kind of operation, and what is written in it.

Shape, label and colour say the same thing, so a reader who lacks one has the others. Later pictures (clusters, memory)
draw their nodes with ``box`` and so look alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .dot import BLUE, DIM, GREEN, GREY, SMALL, TINY, VERMILLION, Html, font, statement
from ..ir import Node
from ..ops import OPS, Attrs, Kind
from ..text import format_attrs, node_line
from ..types import INLINE, Const, format_element


LONGEST = 26  # characters of a name or value before it is shortened


@dataclass(frozen=True)
class Look:
    """Graphviz's words for one kind of node."""

    shape: str
    fill: str
    line: str
    style: str = "filled"
    penwidth: float = 1.2
    margin: str = "0.09,0.04"  # inches between text and frame; some shapes bring room of their own


LOOKS = {
    Kind.INPUT: Look("ellipse", "#d9ebf7", BLUE, margin="0,0"),
    Kind.CONST: Look("note", "#fbf8d0", "#756f00"),
    Kind.ELEMENTWISE: Look("box", "#ffffff", "#333333", "filled,rounded"),
    Kind.REDUCTION: Look("invhouse", "#fdeccb", "#8a5f00", margin="0,0"),  # many come in, few go out
    Kind.CONTRACTION: Look("box3d", "#cdeee2", "#00664b"),
    Kind.LAYOUT: Look("component", "#f6e3ee", "#8c3f6a", margin="0.16,0.05"),  # elements move, none changes
    Kind.PACKING: Look("tab", "#e8e6f5", "#4b3f8c"),  # numbers into blocks of bits, and back
    Kind.RANDOM: Look("hexagon", "#dceff9", "#1f6f9f", margin="0,0"),
    Kind.EFFECT: Look("octagon", "#fae0cf", VERMILLION, penwidth=2, margin="0,0"),
}
OUTPUT = Look("ellipse", "#ffffff", BLUE, penwidth=2.6, margin="0,0")
UNKNOWN = Look("box", "#ffffff", VERMILLION, "filled,dashed", 2)
ELLIPSIS = Look("box", "#f4f4f4", GREY, "filled,rounded,dashed")

TAGS = {  # tag -> (colour, what it does to the frame)
    "removed": (VERMILLION, dict(style="filled,dashed", fillcolor="#ffffff", fontcolor=GREY, penwidth=1.6)),
    "added": ("#00664b", dict(penwidth=3.2, color=GREEN)),
    "changed": (BLUE, dict(penwidth=2.2, color=BLUE, peripheries=2)),
    "defined twice": (VERMILLION, dict(penwidth=2.2, color=VERMILLION)),
    "after another node": (VERMILLION, dict(penwidth=2.2, color=VERMILLION)),  # an input there breaks a rule
}
ARROWS = {  # what happened to an edge -> how it is drawn
    "kept": {},
    "removed": dict(style="dashed", color=VERMILLION, arrowhead="empty"),
    "added": dict(style="bold", color=GREEN, penwidth=2.6),
    "rewired": dict(style="dotted", color=BLUE, penwidth=2.4),
    "order": dict(color=VERMILLION, arrowhead="vee", label=" then "),
    "too early": dict(color=VERMILLION, penwidth=2, label=" defined later ", fontcolor=VERMILLION),
    "undefined": dict(color=VERMILLION, penwidth=2),
}


# ---- words ----------------------------------------------------------------------------------------------------


def shorten(text: str, longest: int = LONGEST) -> str:
    """The text, with its middle left out where it is long: both ends of a name tell it from its neighbours."""
    if len(text) <= longest:
        return text
    half = (longest - 1) // 2
    return f"{text[:longest - 1 - half]}…{text[-half:]}"


def short_value(const) -> str:
    """``2.0``, ``[1.0, 2.0, …]``, ``all 0.0``: enough to recognize a constant by."""
    if not isinstance(const, Const):
        return "?"
    flat = const.array.reshape(-1)
    if not flat.size:
        return "[]"
    if not const.shape:
        return short_element(flat[0])
    bits = flat.view(f"u{flat.itemsize}")
    if flat.size > 1 and (bits == bits[0]).all():
        return f"all {short_element(flat[0])}"
    some = [short_element(element) for element in flat[:3]] + ["…"] * (flat.size > 3)
    return f"[{', '.join(some)}]"


def short_element(element) -> str:
    text = format_element(element)
    return text if len(text) <= 11 or element.dtype.kind != "f" else f"≈{element:.5g}"


def line(node: Node) -> str:
    """The node's text line, without reading a large constant through for its digest."""
    value = node.value
    if node.op == "const" and (not isinstance(value, Const) or value.type.size > INLINE):
        return f"{node.name} = const({short_value(value)}) : {node.type}"
    return node_line(node)


def head(node: Node) -> str:
    """What is written large: an input's name, a constant's value, otherwise the operation."""
    return {"input": node.name, "const": short_value(node.value)}.get(node.op) or node.op


def facts(node: Node) -> list[str]:
    """What is written small below: the name with the type, and the attributes that the type does not show."""
    of = "input" if node.op == "input" else shorten(node.name)
    lines = [f"{of} : {node.type}" if node.type is not None else of]
    if node.op not in OPS:
        lines.insert(0, "unknown operation")
    if isinstance(node.value, Attrs):
        seen = ("shape", "dtype") if node.type is not None else ()
        lines.append(format_attrs(node.op, Attrs(**{k: v for k, v in node.value if k not in seen})).strip(" {}"))
    if odd := odd_value(node):
        lines.append(f"value is {odd}")
    return [shorten(text, 34) for text in lines if text]


def odd_value(node: Node) -> str:
    """A value that is no attributes, and no Const in a const; a right graph has none."""
    right = isinstance(node.value, Const if node.op == "const" else Attrs) or node.value is None
    return "" if right else f"{type(node.value).__name__} {node.value!r}"


def look_of(op: str) -> Look:
    return LOOKS[OPS[op].kind] if op in OPS else UNKNOWN


def wants_order(node: Node) -> bool:
    """Does the picture have to say which operand is which?"""
    commutes = node.op in OPS and OPS[node.op].commutative
    return len(set(node.inputs)) > 1 and not commutes


def inline(node: Node) -> str:
    """An input or constant as it is written into the node that reads it."""
    return short_value(node.value) if node.op == "const" else shorten(node.name, 14)


# ---- statements -----------------------------------------------------------------------------------------------


def label(title: str, lines: Sequence[str] = (), strip: Sequence[str] = (), tag: str = "") -> Html:
    """A tag, a strip of operands (each a place for an arrow to end), the title and small lines, one below the other."""
    span = f' COLSPAN="{len(strip)}"' if len(strip) > 1 else ""
    rows = []
    if strip:
        cells = (f'<TD PORT="p{i}">{font(text, TINY, DIM)}</TD>' for i, text in enumerate(strip))
        rows.append("".join(cells))
    if tag:
        rows.append(f"<TD{span}>{font(tag, SMALL, TAGS[tag][0], 'I')}</TD>")
    rows.append(f"<TD{span}>{font(f' {title} ', tag='B')}</TD>")
    rows += [f"<TD{span}>{font(text, SMALL, DIM)}</TD>" for text in lines]
    inside = "".join(f"<TR>{row}</TR>" for row in rows)
    return Html(f'<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="1">{inside}</TABLE>')


def shape(id: str, look: Look, text: Html, tooltip: str, **attrs) -> str:
    """The statement for anything with a look."""
    usual = dict(shape=look.shape, style=look.style, fillcolor=look.fill, color=look.line, penwidth=look.penwidth,
                 margin=look.margin)
    return statement(id, label=text, tooltip=tooltip, **{**usual, **attrs})


def box(id: str, node: Node, strip: Sequence[str] = (), tag: str = "", before: Node | None = None, note: str = "") -> str:
    """A node. ``before`` is what it was, for a node that changed in place; ``note`` is a line of its own."""
    was = head(before) if before is not None else ""
    title = shorten(f"{was} → {head(node)}" if was else head(node), 40)
    tooltip = "\n".join([*([line(before), "became"] if was else []), line(node), *(f"from {o}" for o in node.origin)])
    return shape(id, look_of(node.op), label(title, [*facts(node), *([note] if note else [])], strip, tag), tooltip,
                 **TAGS.get(tag, ("", {}))[1])


def bundle(id: str, nodes: Sequence[Node]) -> str:
    """Several inputs or constants in one box."""
    title = f"{shorten(nodes[0].name, 12)} … {shorten(nodes[-1].name, 12)}"
    kinds = [f"{count} {what}" for what, count in (("inputs", sum(node.op == "input" for node in nodes)),
                                                   ("constants", sum(node.op == "const" for node in nodes))) if count]
    return shape(id, LOOKS[Kind.INPUT], label(title, kinds), title)


def output(id: str, public: str, more: str = "output", tag: str = "") -> str:
    """The mark of an output: its public name."""
    return shape(id, OUTPUT, label(shorten(public), [more], tag=tag), f"output {public}", **TAGS.get(tag, ("", {}))[1])


def undefined(id: str, name: str) -> str:
    """A value that is read and that nobody defines."""
    return shape(id, UNKNOWN, label(shorten(name), ["not defined"]), f"'{name}' is read here and defined nowhere")


def ellipsis(id: str, title: str, lines: Sequence[str]) -> str:
    """What stands for nodes that are left out."""
    return shape(id, ELLIPSIS, label(title, lines), title)


def arrow(tail: str, to: str, what: str = "kept", port: int | None = None) -> str:
    """An edge; ``port`` is the cell of the operand strip in which it ends."""
    return statement(f"{tail} -> {to}" + (f":p{port}:n" if port is not None else ""), **ARROWS[what])
