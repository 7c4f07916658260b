"""The text form: one node is one line, and ``parse(print_graph(g)) == g`` for every graph.

::

    graph relu_mlp(x: f32[8,4], w: f32[4,4]) -> (y) {
      h = matmul(x, w) : f32[8,4]
      z = const(0.0) : f32[]
      r = maximum(h, z) : f32[8,4]   # model.py:12
      return y = r
    }

Types are optional on input and checked where they are given. The parser evaluates no code. A constant of more
than 16 different elements prints as ``@digest``; ``constants(graph)`` is the side table that goes with it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from .errors import GraphError, ParseError, nearest
from .ir import NAME, WORDS, Graph, Node, no_collection
from .ops import OPS, Attrs, infer, make_attrs, row
from .types import DTYPES, Const, Type, format_value, parse_type

# ---- printing -------------------------------------------------------------------------------------------------


def node_line(node: Node, types: bool = True, origins: bool = False) -> str:
    """``h = matmul(x, w) : f32[8,4]``; an input is shown as the header has it, ``x: f32[8,4]``."""
    if node.op == "input":
        return f"{node.name}: {node.type}"
    inside = format_value(node.value) if node.op == "const" else ", ".join(node.inputs)
    line = f"{node.name} = {node.op}({inside})"
    if isinstance(node.value, Attrs):
        line += format_attrs(node.op, node.value)
    if types and node.type is not None:
        line += f" : {node.type}"
    if origins and node.origin:
        line += f"   # {', '.join(node.origin)}"
    return line


def format_attrs(op: str, attrs: Attrs) -> str:
    # no cache here: a wrong node's axis=(True,) equals axis=(1,), and would be printed for it
    defaults = {name: default for name, _, default in OPS[op].attrs} if op in OPS else {}
    shown = [f"{name}={format_attr(value)}" for name, value in attrs if value != defaults.get(name)]
    return f" {{{', '.join(shown)}}}" if shown else ""


def format_attr(value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return f"[{','.join(map(str, value))}]"
    if isinstance(value, str) and not (re.fullmatch(r"[A-Za-z]\w*", value, re.ASCII) and value not in WORDS):
        return json.dumps(value)
    return str(value)


def print_graph(graph: Graph, types: bool = True, origins: bool = False) -> str:
    """The whole graph as text. ``origins`` adds each node's source lines as a comment."""
    inputs = ", ".join(node_line(node) for node in graph.inputs)
    publics = ", ".join(public for public, _ in graph.outputs)
    lines = [f"graph {graph.name}({inputs}) -> ({publics}) {{"]
    lines += ["  " + node_line(node, types, origins) for node in graph.nodes if node.op != "input"]
    results = ", ".join(f"{public} = {value}" for public, value in graph.outputs)
    return "\n".join([*lines, f"  return {results}".rstrip(), "}"]) + "\n"


def constants(graph: Graph) -> dict[str, Const]:
    """digest -> constant, for the constants that the text names by digest."""
    consts = (node.value for node in graph.nodes if node.op == "const")
    return {const.digest: const for const in consts if format_value(const).startswith("@")}


def print_diff(before: Graph, after: Graph) -> str:
    """The lines of both graphs: ``-`` gone, ``+`` new. Survivors keep their names, so it is a merge by name."""
    old = print_graph(before).splitlines()
    new = print_graph(after).splitlines()
    kept, lines, i = set(old) & set(new), [], 0
    for line in new:
        # what went from here stands before what came; a survivor pulls its part of the old text along
        while i < len(old) and (old[i] not in kept or line in kept):
            i += 1
            if old[i - 1] == line:
                break
            if old[i - 1] not in kept:
                lines.append("- " + old[i - 1])
        lines.append(("  " if line in kept else "+ ") + line)
    lines += ["- " + line for line in old[i:] if line not in kept]
    return "\n".join(lines) + "\n"


# ---- parsing --------------------------------------------------------------------------------------------------

N = NAME.pattern
SPACE = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")  # between tokens of the header, and between lines
HEAD = re.compile(rf"({N})[ \t]*=[ \t]*([A-Za-z_]\w*)[ \t]*\([ \t]*", re.ASCII)
ARGS = re.compile(rf"({N}(?:[ \t]*,[ \t]*{N})*)?[ \t]*\)[ \t]*", re.ASCII)
TYPE = re.compile(r":[ \t]*(\w+[ \t]*\[[^\]\n]*\])[ \t]*", re.ASCII)
END = re.compile(r"\r?(?:#[ \t]*([^\n]*?)[ \t\r]*)?(?:\n|$)")
TOKEN = re.compile(rf'({N}|->|[-+]?[0-9][\w.+-]*|"(?:[^"\\\n]|\\.)*"|[^\s\w]|\w+)', re.ASCII)
NUMBER = re.compile(r"[ \t]*(-?(?:[0-9][0-9.]*(?:[eE][-+]?[0-9]+)?|inf|nan(?::0x[0-9a-f]+)?)|true|false"
                    r"|@[0-9a-f]{32})[ \t]*")  # fmt: skip
# a whole node at once, made of the same pieces; where it does not match, the pieces say what is wrong
NODE = re.compile(rf"{HEAD.pattern}(?:{ARGS.pattern}|{NUMBER.pattern}\)[ \t]*)(?:{TYPE.pattern})?{END.pattern}", re.ASCII)
WHOLE = re.compile(r"-?[0-9]+")
LIST = re.compile(r"[ \t]*([\[\],])[ \t]*")


def parse(text: str, constants: Mapping[str, Const] | None = None, file: str = "<text>") -> Graph:
    """Read a graph. ``constants``: digest -> Const for large constants. Raises ParseError with file:line:column."""
    with no_collection():
        return Parser(text, constants or {}, file).graph()


class Line(NamedTuple):
    """A node as it is written: texts and their positions, not yet judged."""

    name: str
    op: str
    at_op: int
    args: str | None  # operands, separated by commas
    at_args: int
    attrs: dict
    literal: tuple | None  # a constant's shape and its elements' texts
    type: str | None
    at_type: int
    comment: str | None
    end: int


class Parser:
    """LL(1), one regular expression a piece; ``pos`` is where the next piece starts."""

    def __init__(self, text: str, constants: Mapping[str, Const], file: str):
        self.text, self.constants, self.file, self.pos = text, constants, file, 0
        self.nodes: dict[str, Node] = {}
        self.consts: dict[tuple, Const] = {}  # equal ones share their memory
        self.room = MOST

    # -- errors and small pieces

    def error(self, rule: str, hint: str = "", pos: int | None = None) -> ParseError:
        pos = self.pos if pos is None else pos
        start = self.text.rfind("\n", 0, pos) + 1
        stop = self.text.find("\n", pos)
        line = self.text[start:stop if stop >= 0 else None].rstrip()
        number = self.text.count("\n", 0, pos) + 1
        rule, line, hint = (text if len(text) <= 300 else text[:300] + " …" for text in (rule, line, hint))
        return ParseError(rule, line.strip(), f"{self.file}:{number}:{pos - start + 1}", hint)

    def skip(self) -> None:
        self.pos = SPACE.match(self.text, self.pos).end()

    def peek(self) -> str:
        self.skip()
        match = TOKEN.match(self.text, self.pos)
        return match[1] if match else ""

    def expect(self, wanted: str) -> None:
        found = self.peek()
        if found != wanted:
            raise self.error(f"expected '{wanted}', found {repr(found) if found else 'the end of the text'}")
        self.pos += len(wanted)

    def name(self, what: str) -> str:
        found = self.peek()
        if not NAME.fullmatch(found):
            raise self.error(f"expected {what}, found {repr(found) if found else 'the end of the text'}",
                             "a name is letters, digits and _, with dots inside")
        self.pos += len(found)
        return found

    def at(self, pos: int, action, *args):
        """Call ``action``; an error that it raises gets this position."""
        try:
            return action(*args)
        except ParseError:
            raise
        except GraphError as error:
            raise self.error(error.rule, error.hint, pos) from None

    # -- the graph

    def graph(self) -> Graph:
        self.expect("graph")
        name = self.name("the graph's name")
        self.expect("(")
        while self.peek() != ")":
            self.input()
            if self.peek() != ")":
                self.expect(",")
        self.expect(")")
        self.expect("->")
        self.expect("(")
        publics = []
        while self.peek() != ")":
            publics.append(self.name("an output's name"))
            if self.peek() != ")":
                self.expect(",")
        self.expect(")")
        self.expect("{")
        self.skip()
        while not self.text.startswith("return", self.pos) or self.peek() != "return":
            self.node()
            self.skip()
        outputs = self.outputs(publics)
        self.expect("}")
        if self.peek():
            raise self.error("text after the graph's closing brace", "a file holds one graph")
        return Graph(name, tuple(self.nodes.values()), outputs)

    def define(self, node: Node, pos: int) -> None:
        if node.name in self.nodes:
            raise self.error(f"'{node.name}' is defined twice", "every value has one definition; choose another name", pos)
        if node.name in WORDS:
            raise self.error(f"'{node.name}' is a word of the language, not a name", pos=pos)
        self.nodes[node.name] = node

    def input(self) -> None:
        name = self.name("an input's name")
        pos = self.pos - len(name)
        self.skip()
        match = TYPE.match(self.text, self.pos)
        if not match:
            raise self.error(f"input '{name}' needs a type", "like x: f32[8,4]")
        type = self.at(match.start(1), parse_type, match[1])
        self.pos = match.end()
        self.define(Node(name, "input", (), None, type), pos)

    def outputs(self, publics: list[str]) -> tuple[tuple[str, str], ...]:
        self.expect("return")
        pairs: dict[str, str] = {}
        while self.peek() != "}":
            public = self.name("an output's name")
            start = pos = self.pos - len(public)
            value = public
            if self.peek() == "=":
                self.expect("=")
                value = self.name("a value")
                pos = self.pos - len(value)
            if value not in self.nodes:
                raise self.error(f"output '{public}' is '{value}', which is not defined",
                                 nearest(value, self.nodes), pos)
            if public in pairs:
                raise self.error(f"two outputs are named '{public}'", pos=start)
            pairs[public] = value
            if self.peek() != "}":
                self.expect(",")
        if list(pairs) != publics:
            raise self.error(f"the header promises ({', '.join(publics)}), return gives ({', '.join(pairs)})")
        return tuple(pairs.items())

    # -- one node

    def node(self) -> None:
        start = self.pos
        line = self.whole_node() or self.pieces()
        inputs: tuple[str, ...] = ()
        at = line.at_type
        try:  # what breaks a rule of the IR is said of the piece that is being read
            given = parse_type(line.type) if line.type else None
            if line.literal is not None:
                at = line.at_args
                value = self.constant(*line.literal, given)
                type = value.type
            else:
                at = line.at_op
                facts = row(line.op)
                inputs = self.operands(line)
                value = make_attrs(facts, line.attrs) if facts.attrs or line.attrs else None
                type = infer(facts, tuple([self.nodes[name].type for name in inputs]), value)
        except ParseError:
            raise
        except GraphError as error:
            raise self.error(error.rule, error.hint, at) from None
        if given is not None and given != type:
            raise self.error(f"{line.op} gives {type}, not {given}", "leave the type out, or mend it", line.at_type)
        origin = tuple(line.comment.split(", ")) if line.comment else ()
        self.define(Node(line.name, line.op, inputs, value, type, origin), start)
        self.pos = line.end

    def whole_node(self) -> Line | None:
        """A node without attributes, or with one number as a constant: most lines are."""
        match = NODE.match(self.text, self.pos)
        if match is None:
            return None
        name, op, args, number, type, comment = match.groups()
        if (op == "const") != (number is not None):
            return None
        return Line(name, op, match.start(2), args, match.start(3 if number is None else 4), {},
                    None if number is None else ((), (number,)), type, match.start(5), comment, match.end())

    def pieces(self) -> Line:
        match = HEAD.match(self.text, self.pos)
        if not match:
            self.name("a node, as in y = add(a, b), or return")
            self.expect("=")
            self.name("an operation")
            self.expect("(")
            raise self.error("a node is written on one line")
        name, op = match.groups()
        self.pos = at_args = match.end()
        args, attrs, literal = None, {}, None
        if op == "const":
            literal = self.literal()
            self.expect(")")
        elif op == "input":
            raise self.error("inputs are listed in the graph's header", pos=match.start(2))
        else:
            args = self.arguments()
            if self.text.startswith("{", self.pos):
                attrs = self.attrs()
        self.blank()
        type = TYPE.match(self.text, self.pos)
        if not type and self.text.startswith(":", self.pos):
            raise self.error("expected a type after ':'", "like f32[8,4] or f32[]")
        self.pos = type.end() if type else self.pos
        end = END.match(self.text, self.pos)
        if not end:
            raise self.error(f"expected the end of the line, found {self.peek()!r}")
        return Line(name, op, match.start(2), args, at_args, attrs, literal, type and type[1],
                    type.start(1) if type else 0, end[1], end.end())

    def arguments(self) -> str | None:
        match = ARGS.match(self.text, self.pos)
        if not match:
            while self.peek() != ")":
                self.name("an operand")
                if self.peek() != ")":
                    self.expect(",")
            raise self.error("a node is written on one line")
        self.pos = match.end()
        return match[1]

    def operands(self, line: Line) -> tuple[str, ...]:
        inputs = tuple(line.args.replace(" ", "").replace("\t", "").split(",")) if line.args else ()
        for value in inputs:
            if value not in self.nodes:
                self.pos = line.at_args
                raise self.undefined(line.name, value)
        return inputs

    def blank(self) -> None:
        while self.text[self.pos:self.pos + 1] in (" ", "\t"):
            self.pos += 1

    def undefined(self, name: str, value: str) -> ParseError:
        """A sentence for a use without a definition: a cycle, the wrong order, or a slip of the pen."""
        pos = re.compile(rf"\b{re.escape(value)}\b").search(self.text, self.pos).start()
        later = re.compile(rf"^[ \t]*({N})[ \t]*=[ \t]*\w+[ \t]*\(([^)\n]*)\)", re.MULTILINE | re.ASCII)
        reads = {m[1]: [v.strip() for v in m[2].split(",")] for m in later.finditer(self.text, self.pos)}
        reads.setdefault(name, [value])
        if value not in reads:
            return self.error(f"operand '{value}' is not defined", nearest(value, self.nodes), pos)
        reader = {value: name}  # does the later definition lead back to this node? A value -> who reads it on the way
        stack = [value]
        while stack:
            current = stack.pop()
            if current == name:
                path = [name]
                while path[-1] != name or len(path) == 1:
                    path.append(reader[path[-1]])
                return self.error(f"a cycle: {' -> '.join(reversed(path))} (each reads the next)",
                                  "a graph is acyclic: break the loop", pos)
            for read in reads.get(current, ()):
                if read in reads and read not in reader:
                    reader[read] = current
                    stack.append(read)
        return self.error(f"'{value}' is used before it is defined", "list each node after its operands", pos)

    def attrs(self) -> dict:
        """``{axis=[1], keepdims=true, dtype=f64, label="loss"}``"""
        self.expect("{")
        items: dict = {}
        while self.peek() != "}":
            name = self.name("an attribute's name")
            if name in items:
                raise self.error(f"attribute '{name}' is given twice")
            self.expect("=")
            items[name] = self.attr_value()
            if self.peek() != "}":
                self.expect(",")
        self.expect("}")
        return items

    def attr_value(self):
        found = self.peek()
        self.pos += len(found)
        if found == "[":
            values = []
            while self.peek() != "]":
                values.append(self.integer())
                if self.peek() != "]":
                    self.expect(",")
            self.expect("]")
            return tuple(values)
        if found.startswith('"'):
            return self.at(self.pos - len(found), json_string, found)
        if found in ("true", "false"):
            return found == "true"
        self.pos -= len(found)
        if NAME.fullmatch(found):
            self.pos += len(found)
            return found
        return self.integer()

    def integer(self) -> int:
        sign = self.peek() == "-"
        self.pos += sign
        found = self.peek()
        if not re.fullmatch(r"[-+]?[0-9]{1,19}", found):
            raise self.error(f"expected a whole number, found {found!r}", "floats are operands, not attributes")
        self.pos += len(found)
        return -int(found) if sign else int(found)

    # -- constants

    def constant(self, shape: tuple[int, ...], elements: tuple[str, ...], type: Type | None) -> Const:
        first = elements[0] if elements else "0.0"
        if first.startswith("@"):
            if first[1:] not in self.constants:
                raise GraphError(f"the constant {first} is not in the side table",
                                 hint="load the .mg file beside its .npz, or pass constants=")
            return self.constants[first[1:]]
        if type is None:
            type = Type("bool" if first in ("true", "false") else "i64" if WHOLE.fullmatch(first) else "f32", shape)
        if (type, shape, elements) not in self.consts:
            self.room -= type.nbytes
            if self.room < 0:
                raise GraphError(f"a constant of {type.nbytes:,} bytes; {MOST:,} are the most that a text may ask for",
                                 hint="write a 0-d constant and broadcast_to")
            self.consts[type, shape, elements] = make_const(type, shape, elements)
        return self.consts[type, shape, elements]

    def literal(self) -> tuple[tuple[int, ...], tuple[str, ...]]:
        """A number, ``@digest`` or a nested list: its shape and the elements' texts."""
        match = NUMBER.match(self.text, self.pos)
        if match:
            self.pos = match.end()
            return (), (match[1],)
        if not self.text.startswith("[", self.pos):
            raise self.error("expected a number, true, false, a list or @digest")
        # a stack of counts, not recursion: brackets may be nested to any depth in hostile text
        elements, counts, shape, depth_of_leaf = [], [], {}, None
        expects_item = True
        while True:
            match = LIST.match(self.text, self.pos)
            mark = match[1] if match else None
            if mark == "[" and expects_item and len(counts) < 32:
                if counts:
                    counts[-1] += 1
                counts.append(0)
            elif mark == "]" and (not expects_item or counts[-1] == 0):
                depth = len(counts)
                if shape.setdefault(depth, counts[-1]) != counts.pop():
                    raise self.error("the lists of a constant have different lengths")
                expects_item = False
                if not counts:
                    self.pos = match.end()
                    break
            elif mark == "," and not expects_item:
                expects_item = True
                self.pos = match.end()
                continue
            elif mark is None and expects_item and (match := NUMBER.match(self.text, self.pos)):
                if depth_of_leaf not in (None, len(counts)):
                    raise self.error("the lists of a constant have different depths")
                depth_of_leaf = len(counts)
                counts[-1] += 1
                elements.append(match[1])
                expects_item = False
            else:
                raise self.error("this list is not a constant's value", "write [1.0, 2.0] or [[1, 2], [3, 4]]")
            if mark == "[":
                expects_item = True
            self.pos = match.end()
        deepest = max(shape)
        if elements and (depth_of_leaf != deepest or len(shape) != deepest):
            raise self.error("the lists of a constant have different depths")
        return tuple(shape[depth] for depth in sorted(shape)), tuple(elements)


def json_string(text: str) -> str:
    try:
        return json.loads(text)
    except ValueError as error:
        raise GraphError(f"a bad string: {error}") from None


def make_const(type: Type, shape: tuple[int, ...], elements: tuple[str, ...]) -> Const:
    """The constant of that type; one element fills any shape, otherwise the shapes agree."""
    if type.dtype not in DTYPES:
        raise GraphError(f"a constant has no type {type}")
    array = np.array([parse_element(text, type.dtype) for text in elements], DTYPES[type.dtype])
    if shape == () and len(elements) == 1:
        return Const.of(np.broadcast_to(array[0], type.shape))
    if array.size != type.size or (array.size and shape != type.shape):
        raise GraphError(f"the value has shape {list(shape)}, the type says {list(type.shape)}")
    return Const.of(array.reshape(type.shape))


MOST = 2**30  # bytes that the constants of one text may ask for: few letters fill a large shape


def parse_element(text: str, dtype: str):
    """One element from its text; the inverse of ``types.format_element``."""
    kind = DTYPES[dtype]
    if text in ("true", "false"):
        if dtype != "bool":
            raise GraphError(f"'{text}' is no {dtype}", hint="the dtype of true and false is bool")
        return text == "true"
    if dtype == "bool":
        raise GraphError(f"'{text}' is no bool", hint="write true or false")
    if kind.kind == "f":
        if text.startswith("nan:"):
            bits = int(text[4:], 16)
            if bits >= 2 ** (8 * kind.itemsize):
                raise GraphError(f"'{text}' has more bits than a {dtype}")
            value = np.array(bits, f"u{kind.itemsize}").view(kind)
            if value == value:
                raise GraphError(f"the bits of '{text}' are no NaN")
            return value
        try:
            with np.errstate(over="ignore"):
                return np.array(text, kind)
        except ValueError:
            raise GraphError(f"'{text}' is no {dtype}") from None
    if not re.fullmatch(r"-?[0-9]{1,20}", text):
        raise GraphError(f"'{text}' is no {dtype}", hint=f"an {dtype} has no point and no exponent")
    limits = np.iinfo(kind)
    if not limits.min <= int(text) <= limits.max:
        raise GraphError(f"{text} does not fit into {dtype}", hint=f"{dtype} goes from {limits.min} to {limits.max}")
    return int(text)
