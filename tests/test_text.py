"""The text form: what is printed reads back equal, and what is no graph is a sentence with line and column."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import BOUNDED, graphs, samples

import minigraph as mg
from minigraph.errors import ParseError
from minigraph.ir import Builder
from minigraph.ops import OPS
from minigraph.random_graphs import SPECIAL
from minigraph.text import constants, node_line, parse, print_diff, print_graph
from minigraph.types import DTYPES, Const
from minigraph.verify import verify

EXAMPLE = """graph relu_mlp(x: f32[8,4], w: f32[4,4]) -> (y) {
  h = matmul(x, w) : f32[8,4]
  z = const(0.0) : f32[]
  r = maximum(h, z) : f32[8,4]
  return y = r
}
"""


# ---- round trips ----------------------------------------------------------------------------------------------------


def test_the_example_of_the_design():
    graph = parse(EXAMPLE)
    assert print_graph(graph) == EXAMPLE == str(graph)
    assert [node.name for node in graph.nodes] == ["x", "w", "h", "z", "r"] and graph.outputs == (("y", "r"),)


def test_random_graphs_read_back_equal():
    for graph, _ in samples(300, "text"):
        text, table = print_graph(graph), constants(graph)
        assert parse(text, table) == graph
        assert print_graph(parse(text, table)) == text
        bare = print_graph(graph, types=False)
        with_types = all(node.op != "const" for node in graph.nodes)
        assert not with_types or parse(bare) == graph
        again = parse(print_graph(graph, origins=True), table)
        assert [node.origin for node in again.nodes if node.op != "input"] == [
            node.origin for node in graph.nodes if node.op != "input"]


@BOUNDED
@given(graphs())
def test_graphs_that_hypothesis_grows_read_back_equal(case):
    graph, _ = case
    verify(graph)
    assert parse(print_graph(graph), constants(graph)) == graph


@pytest.mark.parametrize("dtype", DTYPES)
def test_constants_keep_every_bit(dtype):
    """Each special value alone, all of them, every shape that broadcasts badly, and NaNs with payloads."""
    pool = SPECIAL[dtype]
    arrays = [*map(np.array, pool), pool, pool[:5], pool[[0, 1, 1, 0]].reshape(2, 2), pool[-2:].reshape(1, 2, 1), pool[:1].reshape(1, 1),
              pool[:0], pool[:0].reshape(2, 0), pool[:0].reshape(0, 3), np.full((40, 3), pool[-1]), pool[:2].repeat(20)]
    if DTYPES[dtype].kind == "f":
        bits = np.array([np.nan], DTYPES[dtype]).view(f"u{DTYPES[dtype].itemsize}")
        arrays += [(bits + 5).view(DTYPES[dtype]), (bits ^ (1 << (8 * bits.itemsize - 1))).view(DTYPES[dtype])]
    for array in arrays:
        builder = Builder()
        builder.const(Const.of(array), name="k")
        graph = builder.build(["k"])
        again = parse(print_graph(graph), constants(graph))
        assert again == graph and again["k"].value.array.tobytes() == array.tobytes()


@pytest.mark.parametrize("value", ["", "two words", 'quote " and \\', "line\nbreak\ttab", "é√", "true", "nan", "return", "[1]", "a" * 500, "\x00\x1f\u2028", "# no comment"])
def test_strings_read_back(value):
    builder = Builder()
    builder.emit("print", builder.input("x", "f32[]"), label=value)
    graph = builder.build([])
    assert parse(print_graph(graph)) == graph and parse(print_graph(graph))["print"].value.label == value


SAME = [  # different ways to write one graph
    ("graph g(x: f32[2]) -> (y) {\n  y = neg(x) : f32[2]\n  return y = y\n}\n", [
        "graph g(x:f32[2])->(y){\ny=neg(x)\nreturn y}",
        "\ufeff"[:0] + "# a comment\ngraph g ( x : f32[ 2 ] ) -> ( y ) {   # more\n\n  y = neg( x )   # model.py:3\n\n return y\n}\n# end",
        "graph g(x: f32[2],) -> (y,) {\r\n  y = neg(x)\r\n  return y = y,\r\n}\r\n",
        "graph g(\n  x: f32[2]\n) -> (\n  y\n) {\n\ty\t=\tneg\t(\tx\t)\t:\tf32 [2]\n\treturn\n\ty = y }",
    ]),
    ("graph g() -> (a) {\n  a = const([[1.0, 2.0]]) : f32[1,2]\n  return a = a\n}\n", [
        "graph g() -> (a) {\n a = const([[1, 2e0]]) : f32[1,2]\n return a }",
        "graph g() -> (a) {\n a = const( [ [1.0,2.0] ] )\n return a }",
    ]),
    ("graph g() -> (a) {\n  a = const(inf) : f32[3]\n  return a = a\n}\n", [
        "graph g() -> (a) {\n a = const([inf, inf, inf])\n return a }",
        "graph g() -> (a) {\n a = const(1e999) : f32[3]\n return a }",
    ]),
    ("graph g(x: f32[2,3]) -> (a) {\n  a = sum(x) {axis=[1]} : f32[2]\n  return a = a\n}\n", [
        "graph g(x: f32[2,3]) -> (a) {\n a = sum(x) { keepdims = false , axis = [ 1 ] }\n return a }",
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("canonical", "variants"), SAME)
def test_many_ways_to_write_one_graph(canonical, variants):
    graph = parse(canonical)
    assert print_graph(graph) == canonical
    for text in variants:
        assert parse(text) == graph


def test_odd_but_valid_graphs():
    empty = parse("graph empty() -> () {\n return\n}")
    assert print_graph(empty) == "graph empty() -> () {\n  return\n}\n" and len(empty) == 0
    twice = parse("graph g(x: f32[]) -> (a, b, x) {\n return a = x, b = x, x\n}")
    assert twice.outputs == (("a", "x"), ("b", "x"), ("x", "x"))
    assert parse(print_graph(twice)) == twice
    dotted = parse("graph a.b(layers.0.w: f32[]) -> (out.1) {\n  y.1.z = neg(layers.0.w)\n  return out.1 = y.1.z\n}")
    assert parse(print_graph(dotted)) == dotted
    word_like = parse("graph g(returned: f32[]) -> (nans) {\n  nans = neg(returned)\n  return nans\n}")
    assert parse(print_graph(word_like)) == word_like
    verify(word_like)


# ---- broken texts -----------------------------------------------------------------------------------------------------

# The place that the error names is marked by ¦, which is taken out before parsing.
BROKEN = [
    ("¦", "expected 'graph', found the end of the text"),
    ("¦grph g() -> () { return }", "expected 'graph', found 'grph'"),
    ("graph ¦(x: f32[]) -> () { return }", "expected the graph's name, found '('"),
    ("graph ¦3d() -> () { return }", "expected the graph's name, found '3d'"),
    ("graph g(x¦) -> () { return }", "input 'x' needs a type"),
    ("graph g(x: ¦f33[2]) -> () { return }", "unknown dtype 'f33'"),
    ("graph g(x: ¦f32[n]) -> () { return }", "'f32[n]' is not a type"),
    ("graph g(x: ¦f32[-1]) -> () { return }", "'f32[-1]' is not a type"),
    ("graph g(x: ¦f32[99999999999,99999999999]) -> () { return }", "more elements than memory can address"),
    ("graph g(x: ¦f32[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]) -> () { return }", "at most 32 dimensions"),
    ("graph g(x: f32[] ¦y: f32[]) -> () { return }", "expected ',', found 'y'"),
    ("graph g(x: f32[], ¦x: f32[]) -> () { return }", "'x' is defined twice"),
    ("graph g(¦nan: f32[]) -> () { return }", "'nan' is a word of the language"),
    ("graph g() ¦{ return }", "expected '->', found '{'"),
    ("graph g() -> () ¦return }", "expected '{', found 'return'"),
    ("graph g() -> () { return¦", "expected an output's name, found the end of the text"),
    ("graph g() -> () { return }\n¦graph h() -> () { return }", "text after the graph's closing brace"),
    ("graph g(x: f32[]) -> (y) { return ¦}", "the header promises (y), return gives ()"),
    ("graph g(x: f32[]) -> (y) { return y = ¦z }", "output 'y' is 'z', which is not defined"),
    ("graph g(x: f32[]) -> (y, y) { return y = x, ¦y = x }", "two outputs are named 'y'"),
    ("graph g(x: f32[]) -> () {\n  ¦42\n  return }", "expected a node, as in y = add(a, b), or return, found '42'"),
    ("graph g(x: f32[]) -> () {\n  y ¦neg(x)\n  return }", "expected '=', found 'neg'"),
    ("graph g(x: f32[]) -> () {\n  y = ¦(x)\n  return }", "expected an operation, found '('"),
    ("graph g(x: f32[]) -> () {\n  y = neg ¦x\n  return }", "expected '(', found 'x'"),
    ("graph g(x: f32[]) -> () {\n  y = ng¦é(x)\n  return }", "expected '(', found 'é'"),
    ("graph g(x: f32[]) -> () {\n  y = ¦maximun(x, x)\n  return }", "did you mean 'maximum'?"),
    ("graph g(x: f32[]) -> () {\n  ¦x = neg(x)\n  return }", "'x' is defined twice"),
    ("graph g(x: f32[]) -> () {\n  ¦inf = neg(x)\n  return }", "'inf' is a word of the language"),
    ("graph g(x: f32[]) -> () {\n  y = neg(¦q)\n  return }", "operand 'q' is not defined"),
    ("graph g(x: f32[]) -> () {\n  y = neg(¦z)\n  z = neg(x)\n  return }", "'z' is used before it is defined"),
    ("graph g(x: f32[]) -> () {\n  y = neg(¦y)\n  return }", "a cycle: y -> y"),
    ("graph g(x: f32[]) -> () {\n  a = neg(¦c)\n  b = neg(a)\n  c = add(x, b)\n  return }", "a cycle: a -> c -> b -> a"),
    ("graph g(x: f32[]) -> () {\n  y = neg(x\n  ¦return }", "expected ',', found 'return'"),
    ("graph g(x: f32[]) -> () {\n  y = neg(¦1.0)\n  return }", "expected an operand, found '1.0'"),
    ("graph g(x: f32[]) -> () {\n  y = ¦add(x)\n  return }", "add takes 2 operands, got 1"),
    ("graph g(x: f32[], i: i32[]) -> () {\n  y = ¦add(x, i)\n  return }", "operands have different dtypes: f32[], i32[]"),
    ("graph g(x: f32[2], z: f32[3]) -> () {\n  y = ¦add(x, z)\n  return }", "do not broadcast"),
    ("graph g(x: f32[]) -> () {\n  y = neg(x) : ¦f64[]\n  return }", "neg gives f32[], not f64[]"),
    ("graph g(x: f32[]) -> () {\n  y = neg(x) ¦: f32\n  return }", "expected a type after ':'"),
    ("graph g(x: f32[]) -> () {\n  y = neg(x) ¦z = neg(x)\n  return }", "expected the end of the line, found 'z'"),
    ("graph g(x: f32[]) -> () {\n  y = ¦input()\n  return }", "inputs and constants carry their own type"),
    ("graph g(x: f32[2]) -> () {\n  y = sum(x) {axis=[¦1.5]}\n  return }", "expected a whole number, found '1.5'"),
    ("graph g(x: f32[2]) -> () {\n  y = sum(x) {axis=[0], axis¦=[0]}\n  return }", "attribute 'axis' is given twice"),
    ("graph g(x: f32[2]) -> () {\n  y = ¦sum(x)\n  return }", "sum needs the attribute 'axis'"),
    ("graph g(x: f32[2]) -> () {\n  y = ¦sum(x) {axes=[0]}\n  return }", "did you mean 'axis'?"),
    ("graph g(x: f32[2]) -> () {\n  y = ¦sum(x) {axis=[0], keepdims=1}\n  return }", "keepdims' is bool, not 1"),
    ("graph g(x: f32[2]) -> () {\n  y = sum(x) {axis=[¦99999999999999999999]}\n  return }", "expected a whole number"),
    ("graph g(x: f32[2]) -> () {\n  y = ¦sum(x) {axis=[9999999999999999999]}\n  return }", "attribute 'axis' is ints"),
    ("graph g(x: f32[2]) -> () {\n  y = print(x) {label=¦\"\\q\"}\n  return }", "a bad string"),
    ("graph g(x: f32[2]) -> () {\n  y = print(x) {label=¦\"open}\n  return }", "a bad string"),
    ("graph g() -> () {\n  y = const(¦)\n  return }", "expected a number, true, false, a list or @digest"),
    ("graph g() -> () {\n  y = const(¦__import__('os'))\n  return }", "expected a number, true, false, a list or @digest"),
    ("graph g() -> () {\n  y = const(1 ¦+ 1)\n  return }", "expected ')', found '+'"),
    ("graph g() -> () {\n  y = const(¦1.5) : i32[]\n  return }", "'1.5' is no i32"),
    ("graph g() -> () {\n  y = const(¦300) : u8[]\n  return }", "300 does not fit into u8"),
    ("graph g() -> () {\n  y = const(¦-1) : u8[]\n  return }", "-1 does not fit into u8"),
    ("graph g() -> () {\n  y = const(¦true) : f32[]\n  return }", "'true' is no f32"),
    ("graph g() -> () {\n  y = const(¦1) : bool[]\n  return }", "'1' is no bool"),
    ("graph g() -> () {\n  y = const(¦1) : token[]\n  return }", "a constant has no type token[]"),
    ("graph g() -> () {\n  y = const(¦1.2.3)\n  return }", "'1.2.3' is no f32"),
    ("graph g() -> () {\n  y = const(¦nan:0x1) : f32[]\n  return }", "the bits of 'nan:0x1' are no NaN"),
    ("graph g() -> () {\n  y = const(¦nan:0xfffffffff) : f32[]\n  return }", "has more bits than a f32"),
    ("graph g() -> () {\n  y = const(¦[1.0, 2.0]) : f32[3]\n  return }", "the value has shape [2], the type says [3]"),
    ("graph g() -> () {\n  y = const([[1.0], [2.0, 3.0¦]])\n  return }", "different lengths"),
    ("graph g() -> () {\n  y = const([1.0, [¦2.0]])\n  return }", "different depths"),
    ("graph g() -> () {\n  y = const([1.0,¦])\n  return }", "this list is not a constant's value"),
    ("graph g() -> () {\n  y = const(¦0.0) : f32[99999,99999]\n  return }", "a constant of 39,999,200,004 bytes"),
    ("graph g() -> () {\n  y = const(0.0) : f32[" + str(2**27) + "]\n  z = const(¦1.0) : f32[" + str(2**27 + 1) + "]\n"
     "  return }", "are the most that a text may ask for"),
    ("graph g() -> () {\n  y = const(¦@0123456789abcdef0123456789abcdef)\n  return }", "is not in the side table"),
]  # fmt: skip


@pytest.mark.parametrize(("marked", "sentence"), BROKEN)
def test_a_broken_text_is_a_sentence_with_a_place(marked, sentence):
    pos = marked.index("¦")
    text = marked.replace("¦", "")
    line, column = text.count("\n", 0, pos) + 1, pos - text.rfind("\n", 0, pos)
    with pytest.raises(ParseError) as caught:
        parse(text, file="m.mg")
    assert sentence in str(caught.value)
    assert caught.value.where == f"m.mg:{line}:{column}", str(caught.value)


def test_a_long_line_is_cut_in_the_message():
    with pytest.raises(ParseError) as caught:
        parse("graph g() -> () {\n  y = const([" + "1.0, " * 10_000 + "x])\n return }")
    assert len(str(caught.value)) < 500


# ---- mutated and hostile texts ----------------------------------------------------------------------------------------


def mutate(rng: random.Random, text: str) -> str:
    characters = list(text)
    for _ in range(rng.choice((1, 1, 2, 4))):
        i, j = rng.randrange(len(characters)), rng.randrange(len(characters))
        dice = rng.randrange(4)
        if dice == 0:
            del characters[i]
        elif dice == 1:
            characters.insert(i, rng.choice("()[]{}=,:;@#.-+e0159anxyf \n\t\"\\'é٣\x00\u2028"))
        elif dice == 2:
            characters[i], characters[j] = characters[j], characters[i]
        else:
            characters[i:i] = characters[j:j + 9]
    return "".join(characters)


def test_mutated_texts_raise_nothing_but_parse_errors():
    rng = random.Random(0)
    broken = 0
    for graph, _ in samples(250, "mutate"):
        text, table = print_graph(graph), constants(graph)
        for _ in range(12):
            try:
                verify(parse(mutate(rng, text), table))
            except ParseError as error:
                broken += 1
                assert error.where.count(":") == 2 and "\n" not in error.rule
    assert broken > 1500


@BOUNDED
@given(st.text(alphabet="graph() ->{}return=const[],:f32.@\"\n#x", max_size=60))
def test_any_text_at_all(text):
    with pytest.raises(ParseError):
        parse(text)
    with pytest.raises(ParseError):
        parse("graph g(x: f32[2]) -> () {\n" + text)


HOSTILE = {
    "deep list": "graph g() -> () {\n y = const(" + "[" * 100_000,
    "deep closed list": "graph g() -> () {\n y = const(" + "[" * 50_000 + "1" + "]" * 50_000 + ")\n return }",
    "huge number": "graph g() -> () {\n y = const(" + "9" * 100_000 + ")\n return }",
    "huge integer": "graph g() -> () {\n y = const(" + "9" * 100_000 + ") : i32[]\n return }",
    "huge exponent": "graph g() -> () {\n y = const(1e" + "9" * 100_000 + ") : i32[]\n return }",
    "huge dimension": "graph g(x: f32[" + "9" * 100_000 + "]) -> () { return }",
    "many dimensions": "graph g(x: f32[" + "1," * 100_000 + "1]) -> () { return }",
    "huge attribute": "graph g(x: f32[1]) -> () {\n y = sum(x) {axis=[" + "1" * 100_000 + "]}\n return }",
    "long name": "graph g(" + "x" * 1_000_000,
    "dots": "graph g(" + "x." * 200_000,
    "spaces": "graph g(" + " " * 1_000_000,
    "comments": "#\n" * 300_000,
    "open string": 'graph g(x: f32[]) -> () {\n y = print(x) {label="' + "\\" * 200_000,
    "commas": "graph g(x: f32[]) -> () {\n y = add(x" + ", x" * 100_000,
    "undefined": "graph g(x: f32[]) -> () {\n" + "".join(f" y{i} = neg(y{i + 1})\n" for i in range(20_000)) + "return }",
    "open type": "graph g(x: f32[]) -> () {\n y = neg(x) : f32[" + "1," * 100_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_end_in_a_short_sentence(name):
    with pytest.raises(ParseError) as caught:
        parse(HOSTILE[name])
    assert len(str(caught.value)) < 2_500


def test_a_million_empty_lists_are_not_written_out():
    for shape in ([1_000_000, 0], [0, 3], [2, 0, 2]):
        graph = parse(f"graph g() -> (y) {{\n y = const([]) : f32{shape}\n return y\n}}")
        assert "y = const([]) : f32" in print_graph(graph) and parse(print_graph(graph)) == graph


# ---- printing ---------------------------------------------------------------------------------------------------------


def test_node_lines():
    graph = parse(EXAMPLE.replace("z)", "z) {}").replace("f32[8,4]\n  z", "f32[8,4]   # model.py:3, model.py:4\n  z"))
    assert node_line(graph["x"]) == "x: f32[8,4]"
    assert node_line(graph["h"], types=False) == "h = matmul(x, w)"
    assert node_line(graph["h"], origins=True) == "h = matmul(x, w) : f32[8,4]   # model.py:3, model.py:4"


def test_large_constants_go_to_the_side_table():
    builder = Builder()
    builder.const(np.arange(17, dtype=np.float32), name="w")
    builder.const(np.zeros((500, 500), np.float32), name="z")
    graph = builder.build(["w", "z"])
    assert "z = const(0.0) : f32[500,500]" in str(graph)
    (digest,) = constants(graph)
    assert f"w = const(@{digest}) : f32[17]" in str(graph)
    other = parse(str(graph), {digest: Const.of(np.arange(17, dtype=np.float32))})
    assert other == graph
    with pytest.raises(ParseError, match="const gives f64"):
        parse(str(graph), {digest: Const.of(np.arange(17, dtype=np.float64))})


def test_print_diff_is_a_merge_by_name():
    before = parse("graph g(x: f32[]) -> (y) {\n a = neg(x)\n b = neg(a)\n y = exp(b)\n return y\n}")
    after = mg.optimize(before).graph
    assert print_diff(before, after) == (
        "  graph g(x: f32[]) -> (y) {\n-   a = neg(x) : f32[]\n-   b = neg(a) : f32[]\n-   y = exp(b) : f32[]\n"
        "+   y = exp(x) : f32[]\n    return y = y\n  }\n")
    assert {line[0] for line in print_diff(before, before).splitlines()} == {" "}


def test_print_diff_of_random_graphs_holds_both_texts():
    for graph, _ in samples(100, "diff"):
        after = mg.optimize(graph).graph
        lines = print_diff(graph, after).splitlines()
        assert [line[2:] for line in lines if line[0] in " +"] == str(after).splitlines()
        assert sorted(line[2:] for line in lines if line[0] in " -") == sorted(str(graph).splitlines())


def test_every_row_prints_with_its_defaults_left_out():
    for row in OPS.values():
        assert all(name.isidentifier() for name, _, _ in row.attrs)
