"""Pictures: what is drawn, in which words, and that they fit into any page on any machine."""

import html.parser
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from types import SimpleNamespace

import numpy as np
import pytest

from minigraph.drawing import dot, look
from minigraph.drawing.blocks import Body, Run, find_runs
from minigraph.drawing.changes import compare
from minigraph.drawing import draw, draw_diff, draw_history
from minigraph.errors import MinigraphError
from minigraph.ir import Builder, Graph, Node
from minigraph.ops import OPS, Kind
from minigraph.drawing.plan import GAP, LIMIT, make_plan
from minigraph.text import parse
from minigraph.types import Const

A4 = parse("""
graph a4(x: f32[], y: f32[]) -> (h) {
  a = const(2.0)
  b = const(3.0)
  c = add(a, b)
  d = mul(c, x)   # a4.py:6
  e = sin(d)
  f = exp(e)
  g = add(f, c)
  h = mul(g, y)
  return h
}""")
BEFORE = parse("""
graph arith(x: f32[4]) -> (out) {
  three = const(3.0)
  four = const(4.0)
  s = add(three, four)
  p = mul(s, x)
  zero = const(-0.0)
  r = add(p, zero)
  return out = r
}""")
AFTER = parse("graph arith(x: f32[4]) -> (out) {\n s = const(7.0)\n p = mul(s, x)\n n = neg(p)\n return out = p\n}")
BROKEN = Graph("broken", (Node("x", "input"), Node("y", "add", ("x", "q")), Node("y", "mull", ("z", "x")),
                          Node("z", "neg", ("y",))), (("out", "w"),))  # fmt: skip


def model(layers: int, size: int = 8, named: bool = True) -> Graph:
    """Layers of 11 nodes with 3 weights and a constant each, around a residual stream; one bias for all."""
    b = Builder("model")
    x = b.emit("neg", b.input("x", f"f32[4,{size}]"), name="start")
    bias = b.input("bias", f"f32[{size}]")
    for i in range(layers):
        def name(text, prefix=f"layers.{i}." if named else ""):
            return b.fresh(prefix + text if named else "v")
        g, w, u = (b.input(name(text), f"f32[{size},{size}]") for text in ("g", "w", "u"))
        m = b.emit("mean", b.emit("mul", x, x, name=name("sq")), axis=(1,), keepdims=True, name=name("mean"))
        e = b.emit("add", m, b.const(1e-5 * (i + 1), name=name("eps")), name=name("e"))
        n = b.emit("mul", x, b.emit("rsqrt", e, name=name("r")), name=name("n"))
        q, k = b.emit("matmul", n, g, name=name("q")), b.emit("matmul", n, w, name=name("k"))
        o = b.emit("matmul", b.emit("sub", q, k, name=name("d")), u, name=name("o"))
        x = b.emit("add", x, b.emit("add", o, bias, name=name("b")), name=name("out"))
    return b.build({"y": b.emit("tanh", x, name="end")})


def chain(length: int) -> Graph:
    b = Builder("chain")
    x = b.input("x", "f32[4]")
    for _ in range(length):
        x = b.emit("sin", x)
    return b.build([x])


def noise(length: int, seed: int = 0) -> Graph:
    rng = np.random.default_rng(seed)
    names, nodes = ["x"], [Node("x", "input", (), None, None)]
    for i in range(length):
        near = names[-20:]
        picks = rng.integers(0, len(near), 2)
        nodes.append(Node(f"v{i}", ("add", "sub", "mul")[rng.integers(3)], (near[picks[0]], near[picks[1]])))
        names.append(f"v{i}")
    return Graph("noise", tuple(nodes), (("y", names[-1]),))


def boxes(picture) -> int:
    return len(re.findall(r"^ *\w+ \[label=<<TABLE", picture.dot, re.MULTILINE))


def arrows(picture) -> list[str]:
    return re.findall(r"^ *(\w+ -> \w+)", picture.dot, re.MULTILINE)


def labels(picture) -> list[str]:
    """What is written in each box, without the markup."""
    found = re.findall(r"<TABLE.*?</TABLE>", picture.dot)
    return [re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", text)).strip() for text in found]


# ---- one graph ------------------------------------------------------------------------------------------------


def test_every_node_operand_and_output_is_drawn():
    picture = draw(A4)
    assert boxes(picture) == 11
    assert len(arrows(picture)) == 11
    assert labels(picture)[:4] == ["x input : f32[]", "y input : f32[]", "2.0 a : f32[]", "3.0 b : f32[]"]
    assert labels(picture)[-1] == "h output"


def test_the_alt_text_says_it_all():
    assert draw(A4).alt == repr(draw(A4)) == (
        "Graph a4: 10 nodes. Inputs x and y. a = const(2.0); b = const(3.0); c = add(a, b); d = mul(c, x);"
        " e = sin(d); f = exp(e); g = add(f, c); h = mul(g, y). Output h.")
    assert draw(Graph("empty", (), ())).alt == "Graph empty: 0 nodes. No input. No output."
    assert draw(model(30)).alt == (
        "Graph model: 454 nodes. Inputs x, bias, layers.0.g, layers.0.w, layers.0.u, layers.1.g and 86 more."
        " Mostly add 90, matmul 90, mul 60, mean 30, const 30 and 4 more."
        " A block of 11 nodes is drawn once and stands for 30 in a row (layer × 30). Output y = end.")


def test_both_operands_of_a_square_are_drawn():
    square = parse("graph square(x: f32[]) -> (y) {\n y = mul(x, x)\n return y\n}")
    assert arrows(draw(square)) == ["n0 -> n1", "n0 -> n1", "n1 -> out0"]


@pytest.mark.parametrize("op, numbered", [("sub", True), ("add", False), ("maximum", True)])
def test_operand_numbers_where_order_matters(op, numbered):
    graph = parse(f"graph g(x: f32[], y: f32[]) -> (z) {{\n z = {op}(x, y)\n return z\n}}")
    assert ('PORT="p1"' in draw(graph).dot) == numbered
    assert ("n1 -> n2:p1:n" in draw(graph).dot) == numbered


def test_kinds_differ_by_shape_and_colour():
    assert set(look.LOOKS) == set(Kind)
    for what in ("shape", "fill", "line"):
        assert len({getattr(entry, what) for entry in look.LOOKS.values()}) == len(Kind)


@pytest.mark.parametrize("entry", [*look.LOOKS.values(), look.OUTPUT, look.UNKNOWN, look.ELLIPSIS], ids=str)
def test_text_stands_out_from_its_box(entry):
    def luminance(colour):
        parts = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
        parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    for text in (dot.INK, dot.DIM):
        assert (luminance(entry.fill) + 0.05) / (luminance(text) + 0.05) > 7  # WCAG's stricter level


def test_values_are_short():
    def short(value, dtype="f32"):
        return look.short_value(Const.of(value, dtype))

    assert short(2) == "2.0"
    assert short(-0.0) == "-0.0"
    assert short(1 / 3, "f64") == "≈0.33333"
    assert short([1, 2]) == "[1.0, 2.0]"
    assert short(np.arange(50), "i64") == "[0, 1, 2, …]"
    assert short(np.zeros((9, 9))) == "all 0.0"
    assert short([]) == "[]"


def test_tooltips_are_the_text_lines_and_where_they_come_from():
    titles = [title.text for title in ET.fromstring(draw(A4).svg).iter("{http://www.w3.org/2000/svg}title")]
    assert titles[0] == "graph a4"
    assert "d = mul(c, x) : f32[]\nfrom a4.py:6" in titles
    assert len(titles) == 12


def test_a_broken_graph_is_drawn_with_its_faults():
    picture = draw(BROKEN)
    text = labels(picture)
    assert "q not defined" in text and "w not defined" in text
    assert any("defined twice" in one and "unknown operation" in one for one in text)
    assert "defined later" in picture.dot
    assert picture.alt.endswith("Not defined: q. Output out = w.")
    ET.fromstring(picture.svg)


def test_any_name_can_be_drawn():
    nasty = 'a"<>&\\N\n\x01]]>{|}'
    graph = Graph(nasty, (Node(nasty, "input"), Node("", nasty, (nasty, "\ud800")), Node("é", "const")), ((nasty, ""),))
    picture = draw(graph)
    ET.fromstring(picture.svg)
    json.dumps(picture._repr_mimebundle_()).encode()


# ---- large graphs ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layers", [2, 3, 30])
@pytest.mark.parametrize("named", [True, False])
def test_layers_are_found(layers, named):
    body = Body(list(model(layers, named=named).nodes))
    assert list(find_runs(body)) == [Run(start=1, period=11, count=layers)]


def test_layers_are_drawn_once():
    plan = make_plan(model(30))
    assert [fold.title for fold in plan.folds] == ["layer × 30"]
    assert make_plan(model(30, named=False)).folds[0].title == "block × 30"
    picture = draw(model(30))
    assert boxes(picture) == 1 + 11 + 1 + 2 + 4 + 1  # start, a layer, end; x, bias; its weights and constant; y
    assert "layers.0.g" in picture.dot and "layers.1.g" not in picture.dot
    frame = picture.dot[picture.dot.index("subgraph"):].split("}\n  ")[0]
    assert "layers.0.g" in frame and "layers.0.eps" in frame
    assert "<B> bias </B>" in picture.dot and "<B> bias </B>" not in frame  # it does not repeat


def test_different_layers_are_not_folded():
    graph = model(30)
    changed = [Node(node.name, "abs", node.inputs, None, node.type) if node.name == "layers.10.r" else node
               for node in graph.nodes]  # fmt: skip
    runs = list(find_runs(Body(changed)))
    assert [(run.period, run.count) for run in runs] == [(11, 19), (11, 10)]


def test_wiring_counts():
    """Layer 10 reads layer 8 instead of layer 9: the same operations, but not the same block."""
    graph = model(30)
    changed = [Node(node.name, node.op, tuple(name.replace("layers.9.out", "layers.8.out") for name in node.inputs),
                    node.value, node.type) if node.name == "layers.10.n" else node for node in graph.nodes]
    assert Run(1, 11, 30) not in list(find_runs(Body(changed)))


def test_q_k_v_stay_apart():
    """Three equal projections in a row are no repetition, because the scores read the first two of them."""
    b = Builder("attention")
    x = b.input("x", "f32[8,8]")
    q, k, v = (b.emit("exp", b.emit("neg", b.emit("matmul", x, b.input(f"w{n}", "f32[8,8]")))) for n in "qkv")
    graph = b.build([b.emit("matmul", b.emit("matmul", q, k), v)])
    assert list(find_runs(Body(list(graph.nodes)))) == []


def test_heads_that_are_joined_are_a_repetition():
    b = Builder("heads")
    x = b.input("x", "f32[8,8]")
    heads = [b.emit("exp", b.emit("neg", b.emit("matmul", x, b.input(f"w{n}", "f32[8,8]")))) for n in range(9)]
    graph = b.build([b.emit("concat", *heads, axis=1)])
    assert list(find_runs(Body(list(graph.nodes)))) == [Run(0, 3, 9)]


def test_blocks_inside_blocks():
    b = Builder("nested")
    x = b.input("x", "f32[4]")
    for _ in range(20):
        x = b.emit("neg", x)
        for _ in range(50):
            x = b.emit("sin", b.emit("exp", x))
    runs = list(find_runs(Body(list(b.build([x]).nodes))))
    assert runs[:2] == [Run(0, 101, 20), Run(1, 2, 50)]
    assert boxes(draw(b.build([x]))) == 5


@pytest.mark.parametrize("graph", [chain(5000), noise(5000), noise(61), model(3, size=4), noise(100_000)], ids=len)
def test_never_more_than_the_limit(graph):
    for limit in (LIMIT, 20)[:1 + (len(graph) < 10_000)]:
        picture = draw(graph, limit)
        assert boxes(picture) <= limit
    assert f"{len(graph):,} nodes" in picture.alt


def test_what_is_left_out_is_said():
    plan = make_plan(noise(300))
    assert plan.shown.count(GAP) == 1
    assert draw(noise(300)).alt.endswith("Left out in the middle: 243 nodes. Output y = v299.")
    assert any(text.startswith("… 243 more nodes …") for text in labels(draw(noise(300))))


def test_weights_are_written_into_their_readers():
    graph = model(3)
    assert "layers.0.g" in draw(graph, 40).dot
    picture = draw(graph, 16)
    assert "0 layers.0.g matmul layers.0.q : f32[4,8]" in labels(picture)
    assert "Written into what reads them: 6 inputs and constants." in picture.alt


def test_many_inputs_and_outputs_are_drawn_together():
    b = Builder("wide")
    names = [b.input(f"x{i}", "f32[1]") for i in range(1000)]
    graph = b.build({"y": b.emit("concat", *names, axis=0), **{f"o{i}": name for i, name in enumerate(names)}})
    picture = draw(graph)
    assert "x2 … x999 998 inputs" in labels(picture) and "o2 … o999 998 outputs" in labels(picture)
    assert boxes(picture) == 8 and len(arrows(picture)) == 7


# ---- two graphs -----------------------------------------------------------------------------------------------


def test_a_difference_has_one_layout():
    picture = draw_diff(BEFORE, AFTER, "fold")
    text = labels(picture)
    assert boxes(picture) == len({node.name for node in (*BEFORE.nodes, *AFTER.nodes)}) + 1
    assert "removed 3.0 three : f32[]" in text
    assert "changed add → 7.0 s : f32[]" in text
    assert "added neg n : f32[4]" in text
    assert "mul p : f32[4]" in text  # nothing happened to it
    assert "1 added (bold)" in picture.dot and "4 removed (dashed)" in picture.dot


def test_arrows_of_a_difference():
    fates = {change.name: [fate for _, _, fate in change.reads] for change in compare(BEFORE, AFTER).changes}
    assert fates["s"] == ["removed", "removed"] and fates["p"] == ["kept", "kept"] and fates["n"] == ["added"]
    (out,) = compare(BEFORE, AFTER).outputs
    assert out.reads == (("r", 0, "removed"), ("p", 0, "rewired"))
    assert {"dashed", "dotted", "bold"} <= set(re.findall(r'style="(\w+)"', draw_diff(BEFORE, AFTER).dot))


def test_a_difference_in_words():
    assert draw_diff(BEFORE, AFTER, "fold").alt == (
        "fold: 7 nodes before, 4 after. Removed: three = const(3.0), four = const(4.0), zero = const(-0.0)"
        " and r = add(p, zero). Added: n = neg(p). Changed: s = add(three, four) became s = const(7.0)."
        " Rewired: output out reads p instead of r.")
    assert draw_diff(A4, A4).alt == "a4: no change, 10 nodes."


def test_a_change_in_a_large_graph_is_seen_from_near_by():
    graph = model(30)
    changed = [Node(node.name, "abs", node.inputs, None, node.type) if node.name == "layers.10.r" else node
               for node in graph.nodes]  # fmt: skip
    picture = draw_diff(graph, Graph("model", tuple(changed), graph.outputs), "rule")
    assert "changed rsqrt → abs layers.10.r : f32[4,1]" in labels(picture)
    assert boxes(picture) == 3  # with what it reads and what reads it
    assert picture.alt.endswith("451 unchanged nodes not drawn.")


def test_a_large_change_stays_small():
    assert boxes(draw_diff(noise(3000), noise(3000, 1))) <= LIMIT


# ---- pages ----------------------------------------------------------------------------------------------------


def ids(text: str) -> list[str]:
    return re.findall(r'\bid="([^"]*)"', text)


def test_pictures_share_no_ids_on_a_page():
    """Not even the same picture twice: there are none, because nothing refers to any."""
    page = draw(A4).svg + draw(A4).svg + draw_diff(BEFORE, AFTER).svg + draw(model(30)).svg
    assert ids(page) == [] and "url(#" not in page and 'href="#' not in page
    assert "<style" not in page and "<!--" not in page


def test_the_drawing_has_words_and_fits():
    for picture in (draw(A4), draw(noise(61)), draw_diff(BEFORE, AFTER)):
        root = ET.fromstring(picture.svg)
        assert root.get("role") == "img" and root.get("aria-label") == picture.alt
        assert [child.tag.rpartition("}")[2] for child in root[:2]] == ["title", "desc"]
        assert root[1].text == picture.alt
        assert int(root.get("width")) <= 900 and "max-width:100%" in root.get("style")


def test_the_bundle_of_a_notebook():
    picture = draw(A4)
    data = picture._repr_mimebundle_()
    assert list(data) == ["text/html", "text/plain"]
    assert data["text/plain"] == picture.alt
    assert data["text/html"].startswith('<img src="data:image/png;base64,iVBOR')
    assert f'alt="{html.escape(picture.alt)}"' in data["text/html"] and 'width="' in data["text/html"]



CODE = """
import hashlib, sys
sys.path.insert(0, "tests")
from test_draw import *
pictures = [draw(A4), draw(model(30)), draw(noise(300)), draw(BROKEN), draw_diff(BEFORE, AFTER)]
text = "".join(p.dot + p.svg + p.alt for p in pictures) + draw_history([stage()]).html
print(hashlib.sha256(text.encode() + pictures[0].png).hexdigest())
"""


def test_the_same_bytes_from_every_process():
    def run(seed):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        return subprocess.run([sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, check=True)

    assert run("1").stdout == run("2").stdout != ""


def test_saving(tmp_path):
    picture = draw(A4)
    for suffix, start in ((".svg", b"<svg"), (".png", b"\x89PNG"), (".dot", b"digraph"), (".html", b"<!DOCTYPE html>")):
        assert picture.save(tmp_path / f"a4{suffix}").read_bytes().startswith(start)
    with pytest.raises(MinigraphError, match="saved as .svg .png .dot .html, not as 'a4.pdf'"):
        picture.save(tmp_path / "a4.pdf")


# ---- programs that draw ---------------------------------------------------------------------------------------


def test_pip_alone_is_enough(monkeypatch):
    """No dot, not even a PATH: the wheel's program is found beside Python."""
    monkeypatch.setenv("PATH", "")
    assert [re.sub(r".*[\\/]|\.exe$", "", program) for program in dot.renderers()] == ["graphviz-pure"]
    assert "sin" in draw(A4).svg


def test_the_wheel_knows_where_its_program_is():
    assert dot.wheel_folders()


def test_without_a_program_there_are_words(monkeypatch, tmp_path):
    monkeypatch.setattr(dot, "renderers", lambda: [])
    picture = draw(A4)
    with pytest.raises(MinigraphError, match="pip install graphviz-pure"):
        picture.svg
    data = picture._repr_mimebundle_()
    assert data["text/plain"] == picture.alt and "pip install graphviz-pure" in data["text/html"]
    assert picture.save(tmp_path / "a4.dot").read_text(encoding="utf-8") == picture.dot
    assert "pip install graphviz-pure" in draw_history([stage()]).html


def test_a_program_that_fails_is_passed_over(monkeypatch):
    good = dot.renderers()[-1]
    monkeypatch.setattr(dot, "renderers", lambda: ["/no/such/dot", good])
    assert "sin" in draw(A4).svg
    monkeypatch.setattr(dot, "renderers", lambda: ["/no/such/dot"])
    with pytest.raises(MinigraphError, match="dot cannot be started"):
        draw(A4).svg
    monkeypatch.setattr(dot, "renderers", lambda: [good])
    with pytest.raises(MinigraphError, match="refused the picture"):
        dot.render("no graph")


def test_importing_needs_no_other_package():
    code = "import sys, minigraph.drawing; sys.exit(bool({'graphviz', 'matplotlib', 'networkx'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


# ---- the stepper ----------------------------------------------------------------------------------------------


def stage(name="fold", before=BEFORE, after=AFTER):
    step = SimpleNamespace(rule="fold", before=("three", "four"), after="s", why="3 + 4 <is> 7")
    return SimpleNamespace(name=name, before=before, after=after, report=(step,) * (before is not after))


class Balance(html.parser.HTMLParser):
    """Every tag is closed by its own."""

    def __init__(self):
        super().__init__()
        self.open, self.seen = [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in ("input", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def text_folds(page: str) -> int:
    return page.count("<summary>as text</summary>")


def test_the_stepper_shows_each_stage():
    idle = [stage(name, AFTER, AFTER) for name in ("cse", "dce")]
    stepper = draw_history([stage(), *idle, stage("undo", AFTER, BEFORE)])
    page = Balance()
    page.feed(stepper.html)
    assert page.open == []
    tags = [tag for tag, _ in page.seen]
    assert sum(tag == "details" and "open" in attrs for tag, attrs in page.seen) == 1
    assert tags.count("summary") - text_folds(stepper.html) == 5  # start, fold, cse and dce, undo, end
    assert tags.count("img") == 4 and tags.count("table") == 2
    assert [attrs["alt"] for tag, attrs in page.seen if tag == "img"][1] == draw_diff(BEFORE, AFTER, "fold").alt
    assert "3 + 4 &lt;is&gt; 7" in stepper.html and "three, four" in stepper.html
    assert stepper.alt == repr(stepper) == ("Graph arith through 4 passes."
                                            " fold: 7 → 4 nodes; cse, dce: no change; undo: 4 → 7 nodes.")


def test_the_stepper_needs_nothing_and_disturbs_nothing():
    text = draw_history([stage()]).html
    assert "<script" not in text and "http" not in re.sub(r"base64,[^\"]*", "", text)
    assert ids(text) == [] and "on" not in {attr[:2] for tag in re.findall(r"<\w+ [^>]*>", text)
                                            for attr in re.findall(r" (\w+)=", tag)}  # fmt: skip
    assert "<style" not in text and " class=" not in text


def test_the_stepper_takes_what_optimize_returns(tmp_path):
    from minigraph.pipeline import optimize

    stepper = draw_history(optimize(BEFORE))
    assert stepper.alt.startswith("Graph arith through")
    assert stepper.save(tmp_path / "steps.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert draw_history([]).alt == "No pass has run."
    assert stepper._repr_mimebundle_()["text/plain"] == stepper.alt


def test_every_operation_can_be_drawn():
    nodes = tuple(Node(f"v{i}", op) for i, op in enumerate(OPS))
    ET.fromstring(draw(Graph("all", nodes, ()), 200).svg)
