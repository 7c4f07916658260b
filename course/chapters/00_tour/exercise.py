# %% [markdown]
# # Exercises 00: predict
#
# *About 15 minutes. The lesson is `notebooks/00_tour.ipynb`.*
#
# There is nothing to write yet. Each task shows a small graph. Put your number in place of `None`, run the cell, and then run the
# next one, which shows what became of the graph. There are no points, and a wrong guess teaches more than a right one.
# %%
from minigraph.teach.prelude import *
# %% [markdown]
# ## 1. All of it is known
# %%
known = parse("""
graph known(x: f32[4]) -> (y) {
  two = const(2.0) : f32[]
  four = mul(two, two) : f32[]
  six = add(four, two) : f32[]
  y = mul(x, six) : f32[4]
  return y
}""")
predict("known: how many operations are left to compute in each run?", None,
        lambda: stats(optimize(known).graph).launches)
# %%
draw_diff(known, optimize(known).graph)
# %% [markdown]
# ## 2. Twice the same
# %%
twice = parse("""
graph twice(x: f32[4]) -> (y) {
  a = exp(x) : f32[4]
  b = exp(x) : f32[4]
  y = mul(a, b) : f32[4]
  return y
}""")
predict("twice: how many operations are left?", None,
        lambda: stats(optimize(twice).graph).launches)
# %%
draw_diff(twice, optimize(twice).graph)
# %% [markdown]
# ## 3. For nobody
# %%
nobody = parse("""
graph nobody(x: f32[4]) -> (y) {
  a = exp(x) : f32[4]
  b = sin(a) : f32[4]
  y = neg(x) : f32[4]
  return y
}""")
predict("nobody: how many operations are left?", None,
        lambda: stats(optimize(nobody).graph).launches)
# %%
draw_diff(nobody, optimize(nobody).graph)
# %% [markdown]
# ## 4. For nobody but the reader
#
# The same, and one line more.
# %%
printed = parse("""
graph printed(x: f32[4]) -> (y) {
  a = exp(x) : f32[4]
  b = sin(a) : f32[4]
  p = print(b) {label="b is"} : token[]
  y = neg(x) : f32[4]
  return y
}""")
predict("printed: how many operations are left, the print included?", None,
        lambda: stats(optimize(printed).graph).launches)
# %%
draw_diff(printed, optimize(printed).graph)
# %% [markdown]
# ## 5. Brackets
#
# (x + 1) + 2 is x + 3, or is it? Floats round after each step, and the answer must stay the same to the last bit.
# %%
brackets = parse("""
graph brackets(x: f32[4]) -> (y) {
  one = const(1.0) : f32[]
  two = const(2.0) : f32[]
  a = add(x, one) : f32[4]
  y = add(a, two) : f32[4]
  return y
}""")
predict("brackets: how many additions are left?", None,
        lambda: stats(optimize(brackets).graph).launches)
# %%
x, one, two, three = np.array([2**24, 1, 2, 3], np.float32)
print("(x + 1) + 2 =", int((x + one) + two), "in f32, for x = 16777216")
print(" x + 3      =", int(x + three))
print(print_diff(brackets, optimize(brackets).graph))
# %% [markdown]
# ## 6. A model's matrix products
#
# SmolLM2 has 30 layers. Each has seven weight matrices (query, key, value, output, gate, up, down), and two products more
# for the attention itself: queries with keys, and shares with values. At the end one large matrix gives a score to each token.
# %%
from minigraph.models.compiled import decode_graph
from minigraph.teach.tour import weights

decode = decode_graph(weights())
predict("decode: how many matrix products?", None,
        lambda: sum(node.op == "matmul" for node in decode.nodes))
# %%
print("counted:", sum(node.op == "matmul" for node in decode.nodes),
      " 30 * (7 + 2) + 1 =", 30 * (7 + 2) + 1)
# %% [markdown]
# ## How far are you?
#
# The chapters to come have exercises that are checked. This shows how many you have done.
# %%
progress()
