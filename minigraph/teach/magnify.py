"""One node magnified: what it holds, what it reads, and who reads it."""

from __future__ import annotations

from ..drawing import look
from ..drawing.alt import listing
from ..drawing.dot import BLUE, DIM, SMALL, Html, digraph, escape, font, statement
from ..drawing.picture import Picture
from ..ir import Graph, Node, defs, users
from ..ops import OPS, Attrs
from ..text import format_attrs, node_line


def magnify(graph: Graph, name: str) -> Picture:
    """The node that defines ``name``, field by field, between its operands and its users."""
    nodes, readers = defs(graph), list(dict.fromkeys(users(graph)[name]))
    node = nodes[name]
    outputs = [public for public, value in graph.outputs if value == name]
    lines = [statement("here", label=table(node, readers, outputs), shape="plain", fillcolor="white")]
    for index, operand in enumerate(node.inputs):
        if operand not in node.inputs[:index]:
            lines.append(look.box(f"in{index}", nodes[operand]))
        lines.append(statement(f"in{node.inputs.index(operand)} -> here:inputs:w"))
    for index, reader in enumerate(readers):
        lines += [look.box(f"user{index}", nodes[reader]), statement(f"here:name:e -> user{index}")]
    for index, public in enumerate(outputs):
        lines += [look.output(f"out{index}", public), statement(f"here:name:e -> out{index}")]
    title = f"one node of {graph.name}, magnified"
    dot = digraph(lines, rankdir="LR", ranksep=0.5, label=font(title, SMALL, DIM))
    return Picture(dot, alt(node, readers, outputs), title)


def fields(node: Node) -> list[tuple[str, str, str]]:
    """Field, content, and what to know about it."""
    kind = OPS[node.op].kind.value if node.op in OPS else "unknown"
    value = "None" if node.value is None else look.head(node)
    if isinstance(node.value, Attrs):
        value = format_attrs(node.op, node.value).strip(" {}") or "all defaults"
    return [
        ("name", node.name, "the one value that it defines"),
        ("op", node.op, f"a row of the op table ({kind})"),
        ("inputs", f"({', '.join(node.inputs)})", "names of operands, in order"),
        ("value", value, "the constant itself" if node.op == "const" else "attributes, where the op has some"),
        ("type", str(node.type), "dtype and shape; verify infers it again"),
        ("origin", ", ".join(node.origin) or "()", "source lines; no part of equality"),
    ]


def table(node: Node, readers: list[str], outputs: list[str]) -> Html:
    """The fields as rows; what is not stored stands below them in a row of its own."""
    rows = [f'<TR><TD COLSPAN="3" BGCOLOR="#d9ebf7">{font(node_line(node), tag="B")}</TD></TR>']
    for field, content, remark in fields(node):
        rows.append(f'<TR><TD ALIGN="LEFT"{port(field, "inputs")}>{font(field, tag="I")}</TD>'
                    f'<TD ALIGN="LEFT">{font(content, tag="B")}</TD>'
                    f'<TD ALIGN="LEFT"{port(field, "name")}>{font(remark, SMALL, DIM)}</TD></TR>')
    found = ", ".join([*readers, *(f"output {public}" for public in outputs)]) or "nobody"
    rows.append(f'<TR><TD COLSPAN="3" ALIGN="LEFT" BGCOLOR="#f4f4f4">'
                f'{font(f"not stored: who reads it ({found})", SMALL, DIM)}</TD></TR>')
    return Html(f'<TABLE BORDER="2" COLOR="{BLUE}" CELLBORDER="1" CELLSPACING="0" CELLPADDING="4">{"".join(rows)}</TABLE>')


def port(field: str, wanted: str) -> str:
    return f' PORT="{escape(field)}"' if field == wanted else ""


def alt(node: Node, readers: list[str], outputs: list[str]) -> str:
    facts = "; ".join(f"{field} {content}" for field, content, _ in fields(node))
    read = listing([*readers, *(f"output {public}" for public in outputs)]) or "nobody"
    return f"One node magnified: {node_line(node)}. Its fields: {facts}. It is read by {read}, which it does not store."
