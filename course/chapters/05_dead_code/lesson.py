# %% [markdown]
# # 05 Dead code
#
# *About 30 minutes, and as long for the exercises. You need chapters 03 and 04. The exercises are in `exercises/05_dead_code.ipynb`.*
#
# This is the attention layer of the last two chapters. Folding has computed what it could, and simplifying has rewritten
# what it was allowed to.
# %%
from minigraph.ops import OPS
from minigraph.passes import dce, fold, simplify
from minigraph.teach import predict
from minigraph.teach.examples import a4, frozen_layer
import minigraph as mg
import numpy as np

layer = frozen_layer()
folded = fold(layer).graph
simplified = simplify(folded).graph
print(f"as traced: {len(layer)} nodes; after fold: {len(folded)};",
      f"after fold and simplify: {len(simplified)}")
# %% [markdown]
# Two passes have worked hard, and almost no node is gone.
#
# **The question:** how many of the 80 nodes that are left does nobody need any more?
# %%
predict("How many of the 80 nodes does nobody need?", None, lambda: len(dce(simplified).report))
# %% [markdown]
# Before we look at those, a graph that fits on a fingernail.
#
# ## Mark, walk back, delete
# %%
example = mg.parse("""
graph example(a: f32[4]) -> (d) {
  two = const(2.0) : f32[]
  one = const(1.0) : f32[]
  b = mul(a, two) : f32[4]
  c = sin(a) : f32[4]
  d = add(b, one) : f32[4]
  return d
}""")
print(mg.print_diff(example, dce(example).graph))
# %% [markdown]
# The caller gets `d`. To compute `d` you need `b` and `one`; for `b` you need `a` and `two`. Nobody needs `c`: its sine
# would be computed in every run, and thrown away. A value that nobody needs is **dead**, and taking the dead out is
# **dead-code elimination**, DCE for short.
#
# Now a small change. Someone reads `c`:
# %%
longer = mg.parse("""
graph longer(a: f32[4]) -> (d) {
  two = const(2.0) : f32[]
  one = const(1.0) : f32[]
  b = mul(a, two) : f32[4]
  c = sin(a) : f32[4]
  e = exp(c) : f32[4]
  d = add(b, one) : f32[4]
  return d
}""")
predict("How many nodes of longer can go?", None, lambda: len(dce(longer).report))
# %% [markdown]
# `c` has a reader now, `e`. But nobody needs `e`. **Dead is also what only dead nodes read.** So to count readers once is
# not enough. The first idea that most people have is to count again and again:
# %%
def delete_unread(graph):
    """One round: delete what is read by no node and by no caller."""
    read = {name for node in graph.nodes for name in node.inputs}
    read |= {value for public, value in graph.outputs}
    # these stay, read or not, such as inputs; more on this below
    stays = {node.name for node in graph.nodes if not OPS[node.op].removable}
    kept = tuple(node for node in graph.nodes if node.name in read | stays)
    return mg.Graph(graph.name, kept, graph.outputs)


def rounds(graph):
    count = 0
    while len(delete_unread(graph)) < len(graph):
        graph, count = delete_unread(graph), count + 1
    return count


def dead_chain(length):
    builder = mg.Builder("dead_chain")
    last = x = builder.input("x", "f32[4]")
    for _ in range(length):
        last = builder.emit("neg", last)
    return builder.build({"y": x})


print("longer:", rounds(longer), "rounds")
print({length: rounds(dead_chain(length)) for length in (1, 10, 100)},
      "rounds for a dead chain of that length")
# %% [markdown]
# It works, and it is slow: a dead chain of 100 nodes takes 100 rounds over the whole graph. The trouble is the direction.
# This loop asks of each node *may you go?*, and the answer depends on other nodes that have not been judged.
#
# Ask the other way round: *who must stay?*
#
# 1. Mark what is needed by itself. Here that is `d`, because the caller gets it.
# 2. Walk back, from the last node to the first: a live node makes all its operands live.
# 3. Delete what is not marked.
#
# Read the next picture column by column. Each column is one moment of the walk. The frame says which node is looked at, a
# large dot what becomes live at that moment. Watch the live set grow backwards, from the output towards the input.
# %%
from minigraph.teach.liveness import chart_liveness, draw_liveness

chart_liveness(longer)
# %% [markdown]
# `e` and `c` are looked at, too, and nobody has marked them by then. Nobody will: all readers of a node stand *after* it
# in the list, so when the walk reaches a node, every reader has been judged. That is why **one** walk is enough, for any
# graph. Chapter 01 made the order of the list a rule; here it pays.
#
# The same as a graph. Each value says who keeps it alive.
# %%
draw_liveness(longer)
# %% [markdown]
# ## Rewrites leave corpses
#
# Where does dead code come from? Hardly anyone writes it on purpose. Let us take stock of the layer.
# %%
from minigraph.teach.charts import bars

bars("nodes that DCE deletes from the attention layer", {
    "as traced": len(dce(layer).report),
    "after fold": len(dce(folded).report),
    "after fold and simplify": len(dce(simplified).report)}, "nodes")
# %%
def dead_in(graph):
    return [step.before[0] for step in dce(graph).report]


print("written dead:         ", *dead_in(layer))
print("killed by fold:       ", *[name for name in dead_in(folded) if name not in dead_in(layer)])
print("killed by simplify:   ", *[name for name in dead_in(simplified) if name not in dead_in(folded)])
# %% [markdown]
# Two nodes were dead when they were written. Somebody looked at the largest activation last week, and the line is still
# there. **Debugging leftovers** are the first source.
#
# The other fifteen were killed by *our own passes*. Folding computed `mask` from `positions`, and then nobody asked for
# `positions`. Simplifying saw that `out + bias` is `out`, and `bias` lost its only reader. Neither pass cleans up, and that is
# wise: a pass that rewrites has one thought, and one pass for all of them carries the dead away. Rewrites leave
# corpses; DCE is the broom.
#
# So here is the last step of folding, which chapter 03 left open, on `a4`:
# %%
folded_a4 = fold(a4()).graph
mg.draw_diff(folded_a4, dce(folded_a4).graph)
# %% [markdown]
# `a` and `b` are drawn with dashes: they go. `c` has their sum.
#
# A third source is the **unused branch**. Models have switches, and in a finished model a switch is a constant.
# %%
def attend(scores, bias, use_bias):
    return np.where(use_bias, scores + bias, scores)


switch = mg.trace(attend, scores="f32[4]", bias="f32[4]", use_bias="bool[]")
off = simplify(mg.freeze(switch, use_bias=np.bool_(False))).graph
print(off)
print(dce(off).graph)
# %% [markdown]
# The rule `where(false, x, y)` -> `y` killed the branch, and DCE took it. But `bias` is still in the first line, although
# nobody reads it. **An unused input stays.** It is in the graph's signature: callers pass a `bias`, and a
# compiler that changed the signature would break every one of them.
#
# ## Unused is not the same as deletable
#
# So an input stays, used or not. What about these?
# %%
careful = mg.parse("""
graph careful(x: f32[3]) -> (y) {
  first = random() {shape=[3], site=0} : f32[3]
  second = random() {shape=[3], site=1} : f32[3]
  hot = exp(x) : f32[3]
  seen = print(hot) {label="hot is"} : token[]
  cold = neg(x) : f32[3]
  y = add(x, second) : f32[3]
  return y
}""")
predict("How many of the nodes of careful can go?", None, lambda: len(dce(careful).report))
# %%
draw_liveness(careful)
# %% [markdown]
# Nobody reads `seen`, and still it must stay. A print is there for what it *does*, not for its value. That is an
# **effect**, and effects are live by themselves: the walk has to begin there, too. `seen` in turn keeps `hot` alive.
# An assertion is an effect as well. `cold` is an ordinary value without a reader, so it goes.
#
# Run it before and after. What the program does is the same, and so is its answer.
# %%
x = np.zeros(3, np.float32)
before = mg.run(careful, x=x)
after = mg.run(dce(careful).graph, x=x)
print("y is the same to the bit:", mg.same_bits(before["y"], after["y"]))
# %% [markdown]
# And `first`, a random draw? Think of NumPy, where one generator serves everybody:
# %%
generator = np.random.default_rng(0)
first, second = generator.random(), generator.random()
print(f"NumPy, both draws:           second = {second:.4f}")
generator = np.random.default_rng(0)
second = generator.random()
print(f"NumPy, first draw deleted:   second = {second:.4f}")

draws = mg.parse("""
graph draws() -> (second) {
  first = random() {shape=[1], site=0} : f32[1]
  second = random() {shape=[1], site=1} : f32[1]
  return second
}""")
print(f"minigraph, both draws:       second = {mg.run(draws, seed=0)['second'][0]:.4f}")
print(f"minigraph, after dce:        second = {mg.run(dce(draws).graph, seed=0)['second'][0]:.4f}")
# %% [markdown]
# In NumPy a draw moves the generator on, so deleting one changes all that follow. In our graph a draw is a function of the seed and
# of its own `site`, and of nothing else. So a draw that nobody reads may go, and no other draw notices. Whether something
# can be deleted is decided by how it is *defined*. It is a column of the op table:
# %%
names = ("sin", "const", "random", "print", "assert_finite", "input")
print({name: OPS[name].removable for name in names})
# %% [markdown]
# That settles debugging code. The value somebody once looked at dies. The print that somebody left in does not:
# %%
def quiet(x):
    largest = np.max(np.abs(x))  # somebody looked at this last week
    return np.tanh(x)


def loud(x):
    largest = np.max(np.abs(x))
    mg.print_value(largest, "largest")  # and here it is still printed
    return np.tanh(x)


for function in (quiet, loud):
    traced = mg.trace(function, x="f32[4]")
    print(f"{traced.name}: {len(traced)} nodes, after dce {len(dce(traced).graph)}")
# %% [markdown]
# Can a compiler take the prints out as well, for speed? Yes, if somebody *asks* for it. That changes what the program
# does, so it must never come as a side effect of an optimization. It is the stretch exercise of this chapter.
#
# ## Write the pass
#
# Open `exercises/05_dead_code.ipynb` (in the course's own JupyterLab your copy is in `work/`). You write `roots`, which says where
# life begins, and then `dce`. Then you refute three passes that delete too much or tidy too much.
#
# ## The same pass in real compilers
#
# One keeps too much. ONNX Runtime does not delete the sine, and computes it in every run:
# %% exhibit=onnxruntime-keeps-dead-code
# %% [markdown]
# And one deletes too much. `torch.fx` takes an operation for pure unless it knows better:
# %% exhibit=fx-dead-code
# %% [markdown]
# `report` printed something and `add_` changed `x`; both are gone, and the answer is another one. The walk was the same as ours.
# What differs is the list of roots. In DCE the walk is easy, and knowing the effects is the work.
#
# ## The scoreboard
# %%
from minigraph.teach.score import scoreboard

scoreboard("fold", "simplify", "dce")
# %% [markdown]
# The bytes that folding had stored twice are gone, and 17 nodes. The answer to the question is in the last line: 80 became 63.
#
# Launches fell only by two. Most corpses were constants, which cost memory and no time. Only `abs` and `largest` were
# computed in every run for nobody.
# %% recall
# Q: Why does one walk from the last node to the first find everything that is dead?
# A: Readers stand after what they read. When the walk reaches a node, all its readers have been judged, so it is known whether it is needed.
#
# Q: Nobody reads a print's value and nobody reads a random draw. Why may only one of them go?
# A: The print is an effect: it is there for what it does. The draw depends on its seed and site alone and changes nothing else, so without a reader it is dead.
#
# Q: Why do folding and simplifying not delete what they leave behind?
# A: Each pass has one thought. Whether a value is dead depends on all its readers, and one pass that knows that can clean up after all the others.
# %% glossary=05
