# %% [markdown]
# # 00 A tour: from a line of Python to the machine
#
# *About 30 minutes. You need Python and NumPy, and nothing about compilers. Some predictions to play with are in
# `exercises/00_tour.ipynb`.*
#
# Ask a language model a question.
# %%
from minigraph.teach import predict
from minigraph.teach.tour import PROMPT, SIZES, answer, came_from, launches, parameters, weights
import minigraph as mg
import numpy as np

pieces = answer()
print(PROMPT)
print("".join(pieces))
print()
print("|".join(pieces))
# %% nbval-ignore-output
print(came_from())
# %% [markdown]
# That was SmolLM2, a small relative of the models that you know from chats. It writes one **token** at a time: a word, a
# piece of one, or a comma. The signs `|` show where one ends. For every token the same function runs, `decode`: it takes the
# last token, and gives a score to each of the 49,152 tokens that could come next. The best one is taken. The whole model is
# plain NumPy code: `minigraph/models/smollm2.py`. (The answer stops here where two candidates are so close that another processor might
# choose the other one.)
#
# **The question:** how many separate calculations does the machine carry out for *one* token?
# %%
from minigraph.models.compiled import decode_graph

decode = decode_graph(weights())
predict("How many separate calculations for one token?", None, lambda: len(launches(decode)))
# %% [markdown]
# ## From Python to a graph
#
# Before we count, look at how counting is possible at all. This is one small function of the model:
# %%
import inspect

from minigraph.models.smollm2 import silu

print(inspect.getsource(silu))
print(mg.trace(silu, x="f32[4]"))
# %% [markdown]
# Above is Python. Below is what it *does*, written down as a list. One line of Python has become four operations: `neg`,
# `exp`, `add`, `div`. Each gives one value a name, and the values are arrays, which people in this field call **tensors**.
# `f32[4]` says: four 32-bit floats.
#
# The list is a **graph**. Its nodes are the operations, and an arrow leads from each value to where it is read:
# %%
mg.draw(mg.trace(silu, x="f32[4]"))
# %% [markdown]
# All arrows lead downwards. No value depends on itself, so nothing goes round in circles: a *directed acyclic graph*.
#
# A **graph compiler** takes such a graph and turns it into something that a device, a CPU or a GPU, can run fast. It stands between
# the framework in which people write models and the machine that runs them. On its way it may change the graph as it likes, as
# long as nobody can tell from the results.
#
# Now the whole model, for one token. Do not read it. Look for two things only: the large frame, which is drawn once and stands
# for 30 layers, one after another; and the green boxes drawn in three dimensions, which are matrix products. (The dashed box
# stands for nodes that are left out.)
# %%
mg.draw(decode)
# %%
print(f"{len(decode):,} nodes, of which {len(launches(decode)):,} are calculations of their own;",
      "the others are inputs,")
print("stored numbers, and new views of an array that is already there")
# %% [markdown]
# So the answer is 1,541, for one token of the answer. Each of them is a **launch**: one start of a piece of ready-made code, which is
# called a *kernel*. Here Python starts NumPy's kernels; on a GPU a driver starts the GPU's.
#
# ## Three reasons
#
# **One: people write more than is needed.** Here is one attention layer, written the way people do it. The details do not
# matter yet. How much of it has to be there?
# %%
from minigraph.teach.examples import a4, attention_layer, expression, frozen_layer

print(inspect.getsource(attention_layer))
layer = frozen_layer()
better = mg.optimize(layer).graph
print(f"as written: {len(layer)} nodes, {len(launches(layer))} launches")
print(f"optimized:  {len(better)} nodes, {len(launches(better))} launches")
# %% [markdown]
# Nobody was careless here. `rms_norm(x, norm)` is written three times because that reads well. The angles are computed in
# each run, though they never change. And a line for debugging was forgotten.
#
# **Two: most launches are tiny.** How many numbers does each of the 1,541 calculations of our token produce?
# %%
from minigraph.teach.charts import bars

results = [node.type.size for node in launches(decode)]
bars("launches of one token, by the size of the result", {
    "1 number": sum(size == 1 for size in results),
    "2 to 600 numbers": sum(1 < size <= 600 for size in results),
    "more": sum(size > 600 for size in results)}, "launches")
# %% [markdown]
# 183 launches for a single number each. And starting a piece of code has a price, whatever it does then. Watch:
# %% nbval-ignore-output
import timeit


def nanoseconds(count):
    x = np.ones(count, np.float32)
    return min(timeit.repeat(lambda: np.add(x, x), number=20_000, repeat=7)) / 20_000 * 1e9


one, many = nanoseconds(1), nanoseconds(576)
print(f"adding 1 number: {one:.0f} ns; adding 576 numbers: {many:.0f} ns.",
      f"576 times the work, {many / one:.1f} times the time")
assert many < 100 * one
# %% [markdown]
# Most of the time is the call, not the adding.
#
# **Three: models are large.** Every number that a model has learned is read for every token.
# %%
from minigraph.teach.tour import FILE_BYTES

count = parameters(weights())
print(f"one layer: {count['one layer']:,} numbers;",
      f"{SIZES.layers} layers and the embedding: {count['all']:,}")
print(f"as 32-bit floats: {count['all'] * 4 / 1e6:,.0f} MB, read for each token")
print(f"in the model's file: {FILE_BYTES / 1e6:,.0f} MB,",
      f"which is {FILE_BYTES * 8 / count['all']:.1f} bits a number")
print(f"a model of 70 billion numbers: {70e9 / count['all']:,.0f} times as large")
# %% [markdown]
# The file is so small because most of its numbers have 4 bits each and share a scale; that is *quantization*. So why do we read 538 MB
# when we run? NumPy has no operation on 4-bit numbers, so our program unpacks them first, and the gain is gone. To
# keep it, somebody has to rewrite the program so that it works on packed numbers, or skips the zeros of a *pruned* model.
# That somebody is a compiler, too.
#
# ## What a compiler mostly does not do
#
# Many people think that a compiler makes the matrix products faster, since these are the hard work. How many of the 1,541
# launches are matrix products?
# %%
predict("How many of the launches are matrix products?", None,
        lambda: sum(node.op == "matmul" for node in launches(decode)))
# %%
from minigraph.teach.tour import arithmetic

matmuls = [node for node in launches(decode) if node.op == "matmul"]
others = [node for node in launches(decode) if node.op != "matmul"]
share = arithmetic(decode, matmuls) / arithmetic(decode, launches(decode))
print(f"matrix products do {share:.1%} of the arithmetic,",
      f"and are {len(matmuls) / len(launches(decode)):.1%} of the launches")
bars("launches of one token",
     {"matrix products": len(matmuls), "everything else": len(others)},
     "launches")
# %% [markdown]
# Nearly all arithmetic is in the 271 products. But those are good already: specialists have tuned them for years, and a compiler
# usually calls their library. What it takes in hand is the *other* bar, the 1,270 launches that carry numbers from one product to
# the next. It computes some before the program runs, drops some, does some only once, and puts many into one. A
# compiler speeds up little work, and removes much.
#
# ## One small program, stage by stage
#
# Six operations are enough to see how. This program will come back again and again.
# %%
graph = a4()
print(graph)
predict("How many of the ten nodes will be left?", None, lambda: len(mg.optimize(graph).graph))
# %% [markdown]
# Now the passes. A **pass** is one simple idea, applied to the whole graph. Click through the stages from left to right, and
# find out in each what has changed. A double frame means *computes something else now*, dashes mean *gone*.
# %%
history = mg.optimize(graph)
mg.steps(history)
# %% [markdown]
# - **fold** (chapter 03) saw that `a` and `b` are known, so `c = a + b` is known, too: it is 5, in every run, for ever.
# - **simplify** (04) looked for algebra such as `x * 1`, and found none here. **cse** (06) looked for the same
#   calculation done twice, and found none either.
# - **dce** (05) saw that nobody reads `a` and `b` any more, and took them out.
#
# Then all four ran again, and nothing changed, so that was the end. First and last stage in one picture:
# %%
mg.draw_diff(graph, history.graph, "a4, before and after")
# %%
x, y = np.array([0.0, -0.0, 1.5, np.inf], np.float32), np.ones(4, np.float32)
before, after = mg.run(graph, x=x, y=y)["h"], mg.run(history.graph, x=x, y=y)["h"]
print("launches:", len(launches(graph)), "->", len(launches(history.graph)))
print("the same answer, to the last bit, minus zero and infinity included:",
      mg.same_bits(before, after))
# %% [markdown]
# Why did Python not see that? Because Python looks at one line at a time. When it adds `a` and `b`, it does not know that they
# will be the same in the next run, or whether anybody will read the result. **The compiler sees the whole program before it runs.**
# All that this course shows follows from that.
#
# ## A puzzle to take along
#
# Here is `((3 + 4) * x) + (5 * 0)`. At school you would write `7 * x`.
# %%
print(expression())
predict("How many of its nine nodes will be left?", None, lambda: len(mg.optimize(expression()).graph))
# %%
print(mg.optimize(expression()).graph)
print(mg.optimize(expression("i32")).graph)
# %% [markdown]
# For integers (`i32`) you get `7 * x`. For floats (`f32`) an addition of zero is left, and our compiler *refuses* to take it out. Is it too
# careful, or does it know a float that you have not thought of? Who may remove the `+ 0`, and when? Keep the
# question; chapter 04 answers it.
#
# ## The same graph in a real compiler
#
# XLA is the compiler behind JAX. This is what it makes of our small program:
# %% exhibit=xla-folds
# %% [markdown]
# The 2 and the 3 are gone, and 5 is there. It also put all five operations that are left into one launch, which is called *fusion* and
# comes later in the course.
#
# ## The scoreboard
#
# Each chapter ends with such a table: the attention layer again, and what each pass makes of it.
# %%
from minigraph.teach.score import scoreboard

scoreboard()
# %% [markdown]
# And the model? Does it still speak, after all four passes?
# %%
optimized = mg.optimize(decode).graph
print(f"{len(decode):,} -> {len(optimized):,} nodes;",
      f"{len(launches(decode)):,} -> {len(launches(optimized)):,} launches")
print("".join(answer(optimized, tokens=13)))
# %% [markdown]
# Word for word, as far as we let it. And an honest result: 207 nodes fewer, and not one launch. This model was written with care, so
# the four passes find only stored numbers and views to tidy up. Its 1,541 launches need fusion, a stronger medicine. (To ask the model
# something of your own, write `minigraph generate "your question"` in a terminal.)
#
# First the craft:
#
# | chapter | the question it answers |
# |---|---|
# | 01 The graph | What is a program, if it is data? |
# | 02 Tracing | How does a graph come out of running Python? |
# | 03 Constant folding | What can be computed before anybody calls? |
# | 04 Algebra | Which rules of school are true for floats? |
# | 05 Dead code | What does nobody need? |
# | 06 Common subexpressions and pass order | What is done twice, and who goes first? |
# | 06b Project | Can you build all of it yourself, from nothing? |
# %% recall
# Q: What are the nodes and the arrows of a computation graph?
# A: Nodes are operations. An arrow leads from a value, which is a tensor, to each operation that reads it. There is no way round in a circle.
#
# Q: Most of the arithmetic is in the matrix products. Why does a compiler care about everything else?
# A: The products come tuned from a library. The many small launches between them each have a price of their own, and much of what they do can be computed earlier, dropped, done once or put together.
#
# Q: Python computed `a + b` in every run. Why could the compiler do it once?
# A: It sees the whole program before it runs: both operands are constants, so the sum is the same in every run.
# %% glossary=00
