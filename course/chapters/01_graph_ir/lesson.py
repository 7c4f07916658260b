# %% [markdown]
# # 01 The graph
#
# *About 35 minutes. The exercises are in `exercises/01_graph_ir.ipynb`.*
#
# A compiler for language models takes a model that somebody wrote in a framework, and makes code for a device. In between
# it holds a **directed acyclic graph**: the nodes are operations, the edges are the tensors that pass from one to the
# next, and no path leads in a circle. Here is one, as text.
# %%
import minigraph as mg
import numpy as np
from minigraph.teach import predict

graph = mg.parse("""
graph a4(x: f32[4], y: f32[4]) -> (h) {
  a = const(2.0) : f32[]   # model.py:3
  b = const(3.0) : f32[]   # model.py:4
  c = add(a, b)            # model.py:5
  d = mul(c, x)            # model.py:6
  e = sin(d)               # model.py:7
  f = exp(e)               # model.py:8
  g = add(f, c)            # model.py:9
  h = mul(g, y)            # model.py:10
  return h
}""")
print(graph)
# %% [markdown]
# The inputs `x` and `y` stand in the header. Then come eight lines, a node each: a name, an operation, what it reads, and
# the type of what comes out. `f32[4]` is four 32-bit floats, `f32[]` is a single one. After `#` we noted which line of
# somebody's model each node stands for. It is not printed, but it is not lost, as you will see.
#
# **The question:** eight lines can be written in 40,320 orders. How many of these are programs?
# %%
from itertools import permutations

inputs, lines = graph.nodes[:2], graph.nodes[2:]


def is_right(order):
    """Does the verifier find nothing wrong with this order of the eight lines?"""
    return not any(mg.problems(mg.Graph("a4", inputs + order, graph.outputs)))


predict("How many of the 40,320 orders are programs?", None,
        lambda: sum(map(is_right, permutations(lines))))
# %%
orders = list(permutations(lines))
right = [order for order in orders if is_right(order)]
print(f"{len(orders):,} orders, of which {len(right)} are programs:")
for order in right:
    print("  ", *(node.name for node in order))
# %% [markdown]
# Only `a` and `b` may change places. A node may read only what stands above it, and here nearly every line waits for the
# one before. An order that keeps this rule is called **topological**. Let us ask what is wrong with one of the others.
# %%
a, b, c, *rest = lines
early = mg.Graph("early", (*inputs, a, c, b, *rest), graph.outputs)
try:
    mg.verify(early)
except mg.GraphError as error:
    print(error)
# %% [markdown]
# `verify` is the **verifier**. A **pass** is a function that takes a graph and gives a better one. What the verifier checks are
# **invariants**: rules that hold before and after every pass. This one pays at once. In a list that is always in order, nobody has to search for an order: every pass of
# this course is one `for` loop.
#
# ## Three faces of one thing
#
# You have seen the graph as text. This is what the compiler holds: plain data, a tuple of nodes.
# %%
print(graph.nodes[4])
# %% [markdown]
# And this is a picture of it. Follow the arrows: each goes from a value to a node that reads it.
# %%
mg.draw(graph)
# %% [markdown]
# Now look in the picture for what you know from the text. Does `a` stand before `b`? Which source line did `c` come from?
# The picture does not say. A picture is a *view*: good for looking, and something is always missing. The graph is not a
# picture. It is data, with rules.
#
# Text and data, on the other hand, are the same thing twice. Build the graph by hand, and compare:
# %%
hand = mg.Builder("a4")
x, y = hand.input("x", "f32[4]"), hand.input("y", "f32[4]")
c = hand.emit("add", hand.const(2.0, name="a"), hand.const(3.0, name="b"), name="c")
d = hand.emit("mul", c, x, name="d")
f = hand.emit("exp", hand.emit("sin", d, name="e"), name="f")
g = hand.emit("add", f, c, name="g")
built = hand.build([hand.emit("mul", g, y, name="h")])

print("built by hand == read from text:", built == graph)
print("parse(print(graph)) == graph:   ", mg.parse(mg.print_graph(graph)) == graph)
# %% [markdown]
# `==` compares node by node, by value. So a graph can stand in a test, in a bug report and in a diff.
#
# ## One node, magnified
# %%
from minigraph.teach.magnify import magnify

magnify(graph, "c")
# %% [markdown]
# Look at three things.
#
# - The operands are **names**, and each name is defined once, by one node, for good. Compilers call this *static single
#   assignment*.
# - `origin` is the line of the model. Passes keep it, so that you can still ask where a value came from when its
#   neighbours are gone. It takes no part in equality: the graph that we built by hand has no origins, and was equal.
# - Who reads `c` is **not** stored. It follows from the other nodes; what is stored twice can disagree.
# %%
print("who reads c:", mg.users(graph)["c"])
print("outputs:    ", graph.outputs)
# %% [markdown]
# The outputs are a table beside the nodes, pairs of a public name and a value's name: `return h = h` in the text. The public
# name is a promise to the caller. A pass may put another value behind it.
#
# > **Another node.** Many people's first compiler has `Node(op, inputs, value, output)`: `inputs` are references to other
# > nodes, and `output` is a flag. It works, and you build one in the project of chapter 06. The price: plain objects are
# > compared by identity, so `==` of two graphs says nothing; a flag has no public name, and cannot return one value
# > twice; type and origin have no place.
#
# > **Another graph.** MLIR and torch.fx keep, in every value, the list of its users, and passes change nodes in place (a
# > *use-def graph*). To replace a value everywhere is one call. The price: each edit has to keep the lists in step, and
# > the graph of before is gone. We make a new list every time, and can always draw the difference.
#
# ## A row of the op table
#
# What does `sum` mean? The graph does not say. One table does, `OPS`. Its **row** for an operation is all that the
# compiler knows of it.
# %%
from minigraph.ops import OPS, infer

totals = mg.parse("""
graph totals(x: f32[2,3]) -> (s) {
  s = sum(x) {axis=[1]}
  return s
}""")
x, s = totals.nodes
row = OPS[s.op]
print("name, kind:", row.name, row.kind.value)
print("attributes:", dict(s.value))
print("numpy:     ", row.numpy(np.float32([[1, 2, 3], [4, 5, 6]]), **dict(s.value)))
print("infer:     ", infer(row, (x.type,), s.value))
# %% [markdown]
# `numpy` is the function that computes it. `infer` answers the type of the result, from the row, the types of the operands
# and the attributes. **Attributes** are what an operation has to know beside its operands, here the axis. The text leaves
# out `keepdims`, which has its usual value; the node holds both. They stand in the field `value`, which holds one of three
# things:
# %%
for node in (graph["a"], s, graph["c"]):
    print(f"{node.op:6}", type(node.value).__name__.ljust(9), node.value)
# %% [markdown]
# A const holds a `Const`, a node whose row asks for attributes holds `Attrs`, and any other `None`.
#
# ## A view that loses an operand
#
# networkx knows hundreds of graph algorithms. Why not keep the graph in it? Take `y = mul(x, x)`.
# %%
import networkx as nx

square = mg.parse("""
graph square(x: f32[4]) -> (y) {
  y = mul(x, x)
  return y
}""")
simple = nx.DiGraph((name, node.name) for node in square.nodes for name in node.inputs)
predict("y reads x twice. How many edges does networkx's DiGraph hold?", None, simple.number_of_edges)
# %%
print("DiGraph:       ", list(simple.edges))
print("MultiDiGraph:  ", list(mg.to_networkx(square).edges(keys=True)))
# %% [markdown]
# A DiGraph holds at most one edge between two nodes. It dropped the second one without a word, and a `mul` of one operand
# is nothing. So networkx is a view, too: `to_networkx` makes a MultiDiGraph, whose edges are numbered by operand.
#
# ## Types are claims
#
# Every node says its type. Should the compiler believe it?
# %%
product = mg.parse("""
graph product(x: f32[8,4], w: f32[4,3]) -> (scores) {
  scores = matmul(x, w)   # model.py:12
  return scores
}""")
predict("x is f32[8,4], w is f32[4,3]. How many numbers are in matmul(x, w)?", None,
        lambda: product["scores"].type.size)
# %%
from dataclasses import replace

x, w, scores = product.nodes
print("inferred:", scores.type, "\n")
lie = mg.Graph("lie", (x, w, replace(scores, type=x.type)), product.outputs)
print(*mg.problems(lie))
# %% [markdown]
# The verifier calls `infer` again for every node. The sentence says the rule, the node, and the line of the model. Without
# it you would meet a strange number, three passes later, in the middle of a run.
#
# ## Equal means: the same bits
#
# In Python `0.0 == -0.0` and `1 == True`. May a compiler take them for the same constant?
# %%
number = mg.Const.of
print("0.0 and -0.0:", 0.0 == -0.0, "in Python,",
      number(0.0, "f32") == number(-0.0, "f32"), "in the graph")
print("1 and True:  ", 1 == True, "in Python,",
      number(1, "i64") == number(True, "bool"), "in the graph")
with np.errstate(divide="ignore"):
    print("1 / 0.0 and 1 / -0.0:", 1 / np.float32([0.0, -0.0]))
# %% [markdown]
# If `0.0` became `-0.0`, some program would answer minus infinity. So a constant is a dtype, a shape and bytes, and equal
# only if all three are.
#
# ## Effects stand in line
#
# A `print` is there for what it does, not for its value. So is `assert_finite`: it stops the run where it sees an infinity
# or a NaN. What keeps the two in order?
# %%
talk = mg.parse("""
graph talk(x: f32[2]) -> (y) {
  first = print(x) {label="x"}
  y = neg(x)
  second = assert_finite(y, first)
  return y
}""")
result = mg.run(talk, x=np.float32([1, 2]))
mg.draw(talk)
# %% [markdown]
# Find the arrow marked *then*. The print gives a **token**, a value without data, and the next effect takes it as its
# last operand. The order has become an edge like any other, so whatever respects operands respects the order of effects.
# As data: `Node("second", "print", ("y", "first"), make_attrs(OPS["print"], {}), Type("token"))`; the token comes last, and the
# attributes are made by `make_attrs`. A token has a type, too, but it cannot be an output:
# %%
print(talk["first"].type == mg.Type("token"), "printed as", talk["first"].type, "\n")
print(*mg.problems(mg.Graph("wrong", talk.nodes, (("out", "first"),))))
# %% [markdown]
# A random draw needs something else: it must not depend on how many draws came before it. Each has a `site`, a number for
# life.
# %%
noise = mg.parse("""
graph noise() -> (r, s) {
  r = random() {shape=[3], site=0}
  s = random() {shape=[3], site=1}
  return r, s
}""")
only_s = mg.Graph("only_s", noise.nodes[1:], (("s", "s"),))
print("s after r:", mg.run(noise, seed=7)["s"].round(3),
      "  s alone:", mg.run(only_s, seed=7)["s"].round(3))

ordinary = np.random.default_rng(7)
r, s = ordinary.random(3), ordinary.random(3)
print("NumPy's generator, s after r:", s.round(3),
      "  s alone:", np.random.default_rng(7).random(3).round(3))
# %% [markdown]
# With an ordinary generator, removing a draw that nobody uses would change all later ones. With sites a pass may remove it.
#
# ## The rules, and a loop
#
# These are the rules of our IR, by short names.
# %%
from minigraph.teach.invariants import RULES

for rule, sentence in RULES.items():
    print(f"{rule:16} {sentence}")
# %% [markdown]
# And how does a graph run? With one loop over the list: take the operands' arrays, call the `numpy` of the operation's
# row, and keep the result under the node's name. That is an **interpreter**.
# %%
x = np.float32([0.0, 0.1, 0.2, 0.3])
print(mg.run(graph, x=x, y=np.ones(4, np.float32))["h"].round(2))
# %% [markdown]
# ## Write the verifier and the interpreter
#
# Now it is your turn. Open `exercises/01_graph_ir.ipynb` (in the course's own JupyterLab your copy is in `work/`). You
# find the readers of a value, break every rule once, and write a small verifier and an interpreter.
#
# ## The same graph in real compilers
#
# A form of programs that belongs to no framework and to no device is called an **intermediate representation**, IR. It is
# what lets one pass serve many frameworks: MLIR, XLA's HLO and TVM's Relax are such forms. Look for our `c = add(a, b)`
# in three compilers.
# %% exhibit=one-graph-three-texts
# %% [markdown]
# Each is a list of equations in topological order. torch.fx counts users, and prints no types. The jaxpr has types, and
# has given away our names: its `c` is our `x`. StableHLO, the MLIR dialect that XLA reads, numbers its values, and writes
# the broadcasting down as an operation of its own.
#
# ## The scoreboard
#
# From here on we follow one larger graph: an attention layer of a language model. It is the same kind of data, only
# longer. A *launch* is one call that computes something.
# %%
from minigraph.teach.score import scoreboard

scoreboard("traced")
# %% [markdown]
# Nothing is optimized yet. Every chapter with a pass adds a line.
# %% recall
# Q: What does the order of the list save every pass?
# A: A search for an order. Operands always stand earlier, so one loop over the list sees them first.
#
# Q: Why does a node not store who reads it?
# A: It follows from the other nodes' operands. Stored twice, the two could disagree, and every change would have to mend both.
#
# Q: What keeps two effects in order, and why do random draws not need the same?
# A: The second one takes the first one's token as an operand. A draw depends only on the seed of the run and its own site.
# %% glossary=01
