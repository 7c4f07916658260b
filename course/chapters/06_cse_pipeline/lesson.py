# %% [markdown]
# # 06 Common subexpressions, and the order of passes
#
# *About 35 minutes. You need chapters 01 to 05. The exercises are in `exercises/06_cse_pipeline.ipynb`.*
#
# Here is a small program that computes with the product of `x` and `y`, and nobody noticed that it does so twice.
#
# **The question:** five operations are written down. How many different values do they compute?
# %%
import numpy as np

import minigraph as mg
from minigraph.ops import OPS
from minigraph.passes import PASSES, Result, cse, dce
from minigraph.passes.cse import value_number
from minigraph.pipeline import DEFAULT
from minigraph.teach import predict, use_mine
from minigraph.teach.examples import frozen_layer
from minigraph.teach.numbering import number_steps, value_table

twice = mg.parse("""
graph twice(x: f32[4], y: f32[4]) -> (out) {
  a = mul(x, y)
  b = mul(y, x)
  c = exp(a)
  d = exp(b)
  out = add(c, d)
  return out
}""")
predict("How many of the five operations are left when each value is computed once?", None,
        lambda: len(cse(twice).graph) - 2)
# %% [markdown]
# **Common-subexpression elimination** (CSE) merges nodes that compute the same value. The first one stays.
# %%
mg.draw_diff(twice, cse(twice).graph)
# %% [markdown]
# Look at the dashed boxes. `b` is `a`, because `x * y` is `y * x` to the bit. And since `b` is `a`, `d` is `c`: the second
# merge follows from the first. Now `out` reads `c` twice.
#
# ## A number for each value
#
# How does the pass see that `exp(a)` and `exp(b)` are the same? It gives each value a **number**, and looks up every node by
# its **key**: the operation and the numbers of its operands. A new key gets the next number. A known key gets the number that
# is there already.
# %%
print(value_table(twice))
# %% [markdown]
# Follow `b`: its key, `mul #0 #1`, is in the table, so `b` becomes number 2, like `a`. When `d` comes, its operand has number 2
# as well, so its key is the one that `c` has. Operands come first in our list. That is why **one forward walk** finds equal
# expressions of any depth. This is **value numbering** (Cocke and Schwartz, 1970). Open the panels one after the other:
# %%
number_steps(twice)
# %% [markdown]
# `x` and `y` are not computed, so they equal nothing else. Their rows hold their own names, which no
# other node looks up. In the exercise, such a node has the key `None`: it is not looked up at all.
#
# ## What belongs in the key?
#
# All that decides the value, and nothing more. Too little in the key merges different values: a wrong program. Too much,
# say the node's own name, merges nothing. Which of these five pairs may be merged?
# %%
pairs = mg.parse("""
graph pairs(x: f32[2,2], y: f32[2,2]) -> (p, q) {
  sum0 = sum(x) {axis=[0]}
  sum1 = sum(x) {axis=[1]}
  zero = const(0.0) : f32[]
  minus = const(-0.0) : f32[]
  sub_xy = sub(x, y)
  sub_yx = sub(y, x)
  mul_xy = mul(x, y)
  mul_yx = mul(y, x)
  max_xy = maximum(x, y)
  max_yx = maximum(y, x)
  one = const(1.0) : f32[]
  p = div(one, zero)
  q = div(one, minus)
  return p, q
}""")
predict("Which pairs may be merged: sums, zeros, subs, muls, maxima?", None,
        lambda: [step.before[0] for step in cse(pairs).report])
# %%
for first, second in (
        ("sum0", "sum1"),
        ("zero", "minus"),
        ("sub_xy", "sub_yx"),
        ("mul_xy", "mul_yx"),
        ("max_xy", "max_yx")):
    same = value_number(pairs[first]) == value_number(pairs[second])
    print(f"{first:7} and {second:7} same key: {same}")
x = np.ones((2, 2), np.float32)
print("0.0 == -0.0 in Python:", 0.0 == -0.0)
print("1/0.0 and 1/-0.0 in the graph:", *mg.run(pairs, x=x, y=x).values())
# %% [markdown]
# - **Attributes** are part of the operation. `sum0` and `sum1` even have the same type.
# - **Constants** count by dtype, shape and bits. Python says `0.0 == -0.0`, and dividing by them tells them apart.
# - **Order** counts, unless the op table says *commutative*. `maximum` is not: of 0.0 and -0.0 NumPy may return either,
#   depending on which comes first.
#
# ## The same text is not the same value
#
# In Python, the same text can mean two values: here both calls read alike, and each draws numbers of its own.
# %%
draws = mg.trace(lambda: mg.random((3,)) - mg.random((3,)), name="draws")
print(draws)
print("merged:", len(cse(draws).report))
print("mergeable:", {name: OPS[name].mergeable for name in ("mul", "random", "print", "input")})
print("x and y of twice:", value_number(twice["x"]), value_number(twice["y"]))
one_site = mg.parse("""
graph one_site() -> (a, b) {
  a = random() {shape=[3], site=0}
  b = random() {shape=[3], site=0}
  return a, b
}""")
print("equal sites, equal numbers:", np.array_equal(*mg.run(one_site).values()))
# %% [markdown]
# The tracer gave each draw its own *site*; two nodes with one site are one draw, written twice. What is
# not mergeable (draws, effects, inputs) gets a number of its own and shares no key. For draws and
# effects, the site or the token already makes keys differ. But all inputs have the same three parts, as
# the line of `x` and `y` shows: without `mergeable`, `y` would become `x`. Everything else in the graph
# has one definition, so there the same equation *is* the same value. That is what single assignment
# buys.
#
# ## In a real layer
#
# The attention layer calls `rms_norm(x, norm)` three times, for queries, keys and values. It reads better that way.
# %%
layer = frozen_layer()
predict(f"The layer has {len(layer)} nodes. How many does CSE take away?", None,
        lambda: len(cse(layer).report))
# %%
report = cse(layer).report
for name in dict.fromkeys(step.after for step in report):
    print(f"{name:8} stands for", *(step.before[0] for step in report if step.after == name))
# %% [markdown]
# Three norms became one, and the rotary `cos` and `sin` are shared, too. Write code for people; the compiler shares.
#
# ## One table, three hooks
#
# Folding, algebra and CSE share one forward walk, the package's function `rebuild`. For each node in
# order it replaces the operands that are gone, asks the pass, and then keeps the node or notes what
# stands for it. The passes differ only in the question:
#
# | hook | question | answer |
# |---|---|---|
# | fold | are all operands constants? | a constant |
# | algebra | does a rule fit? | another value, or a cheaper node |
# | CSE | is the key in the table? | the value that has it |
#
# Bril's teaching compiler does all three in one walk over one table; so does the stretch exercise. minigraph keeps three
# passes, so that each can be read and tested alone. The price: **order**.
# %%
relay = mg.parse("""
graph relay(x: f32[4]) -> (out) {
  two = const(2.0) : f32[]
  three = const(3.0) : f32[]
  one = sub(three, two)
  a = mul(x, one)
  b = exp(a)
  c = exp(x)
  out = sub(b, c)
  return out
}""")


def one_round(graph, order):
    for name in order:
        graph = PASSES[name](graph).graph
    return graph


predict("relay has 8 nodes. How many are left after one round of "
        "dce, cse, simplify, fold, in this order?", None,
        lambda: len(one_round(relay, ("dce", "cse", "simplify", "fold"))))
# %%
from minigraph.teach.exercises.ch06 import one_walk

for order in (("fold", "simplify", "cse", "dce"), ("dce", "cse", "simplify", "fold")):
    print(" ".join(order), "leaves", len(one_round(relay, order)), "nodes")
print("one walk with three hooks, then dce, leaves", len(dce(one_walk(relay)).graph), "nodes")
# %% [markdown]
# Each pass makes work for the next. Folding makes `one` a 1.0; then algebra sees `x * 1.0`; then
# `exp(a)` is `exp(x)`; then the leftovers are dead. In the wrong order each pass comes too early. In
# the single walk of the stretch exercise, each hook sees at once what the others did: it has no order
# to get wrong.
#
# Four passes have 24 orders. Here are all of them on the layer, after one round.
# %%
from itertools import permutations

from minigraph.teach.charts import bars

sizes = {" ".join(order): len(one_round(layer, order)) for order in permutations(DEFAULT)}
groups = {size: [order for order in sizes if sizes[order] == size] for size in sorted(sizes.values())}
bars(f"the layer after one round: {len(sizes)} orders, {len(groups)} results",
     {f"{len(group)} orders, such as {group[0]}": size for size, group in groups.items()}, "nodes")
# %% [markdown]
# What do the best have in common?
# %%
def broom_last(order):
    return order.index("dce") > max(order.index("fold"), order.index("simplify"))


print("dce after fold and simplify:",
      {size: {broom_last(order) for order in group} for size, group in groups.items()})
for order in (("fold", "simplify", "dce", "cse"), ("fold", "cse", "simplify", "dce")):
    print(" ".join(order), "leaves", len(one_round(layer, order)), "of the layer,",
          len(one_round(relay, order)), "of relay")
# %% [markdown]
# In all of the best, and in no other, `dce` comes after both `fold` and `simplify`: the broom goes
# after those that leave something lying about. `cse` drops what it merges, so on the layer its place
# does not matter. On `relay` it does: before `simplify`, `exp(a)` is not yet `exp(x)`, and `cse` comes
# too early.
#
# ## Until nothing changes
#
# Nobody should have to know the best order by heart. So `optimize` repeats the round until nothing
# changes: a **fixpoint**. A round has changed nothing when no pass reports a change. It gives up after
# 4 rounds; your own loop, in the exercise, after 10.
# %%
predict("How many different graphs do the 24 orders end with, "
        "when each is repeated until nothing changes?", None)
# %%
ends = {order: mg.optimize(layer, passes=order) for order in permutations(DEFAULT)}
print("different graphs:", len({str(end.graph) for end in ends.values()}),
      "  nodes:", {len(end.graph) for end in ends.values()})
print("rounds needed:", sorted({len(end.history) // len(DEFAULT) for end in ends.values()}))
# %% [markdown]
# Every order ends at the same graph here; a bad one needs a round more. So order is not irrelevant: it costs compile time,
# and with a limit on rounds it can cost the result. That all orders agree is luck, or good rules. It is no law.
# An *e-graph* avoids the question: it keeps all equal forms side by side and picks the cheapest at the end.
#
# `optimize` keeps a history. The panels show the worst order on `relay`, pass by pass:
# %%
worst = mg.optimize(relay, passes=("dce", "cse", "simplify", "fold"))
mg.draw_history(worst)
# %% [markdown]
# ## Where has my value gone?
#
# Optimized graphs are hard to debug, because names vanish. `k`'s own norm, `mul.6`, is nowhere in the result. Ask `why`:
# %%
print(mg.optimize(layer).why("mul.6"))
# %% [markdown]
# `3. cse, cse:` means: the third pass that ran, `cse`, by its rule `cse` (`simplify` has many rules,
# `cse` this one). The lines down to `mul = ...` say what became of `mul.6`. Below is the value that
# stands for it, which nodes it replaced, and, after `traced:`, their source lines. This works because
# every pass must report each change. A pass that forgets to is refused:
# %%
def forgetful(graph):
    return Result(cse(graph).graph, ())


try:
    mg.optimize(twice, passes=[forgetful])
except mg.PassError as error:
    print(error)
# %% [markdown]
# Yours may return just a graph; `optimize` then derives a report from the names. `use_mine()` gives the passes that you wrote
# and `check` found right, and the package's own for the rest:
# %%
mine = use_mine()
result = mg.optimize(layer, passes=[mine[name] for name in ("fold", "simplify", "cse", "dce")])
print(len(result.graph), "nodes")
# %% [markdown]
# ## A box: the graph in which CSE has nothing to do
#
# tinygrad remembers every node that it makes. Asked for an equal one, it hands out the old one. Such a graph is
# **hash-consed**:
# %%
memo = {}


def make(op, *operands):
    return memo.setdefault((op, operands), (op, operands))


first = make("mul", make("x"), make("y"))
second = make("mul", make("x"), make("y"))
print("one object:", first is second, "  nodes made:", len(memo))
# %% [markdown]
# The table of value numbering moved into the constructor, and CSE vanished. The price: two lines of your source are one node, so
# names and source lines need a home elsewhere. Our list keeps both nodes until a pass merges them, and you can watch.
#
# ## Write the pass
#
# The operands of a node are names, `node.inputs`, and the package's key has names, too. They do the
# work of the table's numbers: once each name that is gone is replaced by the one that stands for it,
# equal values have one name. A node never changes, so make a new one. A graph takes a tuple of nodes,
# and outputs as pairs of public name and value.
# %%
for name in ("a", "b", "c", "d"):
    print(name, twice[name].inputs, value_number(twice[name]))
d = twice["d"]
new = mg.Node(d.name, d.op, ("a",), d.value, d.type, d.origin)  # b is gone, and a stands for it
same = value_number(new) == value_number(twice["c"])
print("new d", new.inputs, value_number(new), "the key of c:", same)
nodes = [twice[name] for name in ("x", "y", "a", "c")]
print(mg.Graph("shorter", tuple(nodes), (("out", "c"),)))
# %% [markdown]
# Open `exercises/06_cse_pipeline.ipynb`. You write the key, then the pass, then the loop that runs passes to a fixpoint, and
# you refute three keys that are too small.
#
# ## The same pass in a real compiler
# %% exhibit=mlir-merges
# %% [markdown]
# MLIR knows that `exp` is pure, and knows nothing about `@rand`. So two calls stay two: its `mergeable`.
#
# ## The scoreboard
# %%
from minigraph.teach.score import scoreboard

scoreboard("fold", "simplify", "dce", "cse")
# %% [markdown]
# Four passes, and nobody rewrote the model: compare the first line with the last. When your own passes are there, run
# `scoreboard("fold", "simplify", "dce", "cse", passes=mine)`. Then build a compiler from scratch, in `notebooks/06b_project.ipynb`.
# %% recall
# Q: What goes wrong when the key of a node leaves something out, and what when it holds too much?
# A: Too little merges different values, so the program is wrong. Too much merges nothing: correct, and useless.
#
# Q: Why does one forward walk find equal expressions of any depth?
# A: Operands come first. When a node is looked up, its equal operands already have one number.
#
# Q: If every order of passes reaches the same fixpoint, why does order matter at all?
# A: A bad order needs more rounds, which is compile time; and with a limit on rounds it may stop too early.
# %% glossary=06
