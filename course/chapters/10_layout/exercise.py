# %% [markdown]
# # Exercises 10: layout
#
# *About 45 minutes, 65 with the stretch. The lesson is `notebooks/10_layout.ipynb`.*
#
# Run this cell first.
# %%
from minigraph.teach.prelude import *
# %% [markdown]
# ## 1. One permutation instead of two
#
# About 4 lines. NumPy is a good witness:
# %%
x = np.empty((10, 20, 30))
middle = x.transpose(1, 2, 0)
print(middle.shape, middle.transpose(0, 2, 1).shape, x.transpose(1, 0, 2).shape)
# %% exercise=compose
# %%
check(compose)
# %% [markdown]
# Stuck? `hint(compose)` gives a first hint, and calling it again a stronger one. After three tries,
# `solution(compose)` opens.
#
# ## 2. Cancel transposes
#
# Where is a transpose's permutation, and how do you make a node with another one?
# %%
example = parse("""
graph example(x: f32[2,2,2]) -> (y, v) {
  t = transpose(x) {perm=[1,2,0]}
  u = transpose(t) {perm=[1,0,2]}
  v = transpose(u) {perm=[2,1,0]}
  y = neg(v)
  return y, v
}""")
u = example["u"]
print(u.value.perm, u.inputs, "| its operand:", example[u.inputs[0]].value.perm)
print(node_line(Node("u", "transpose", ("x",), Attrs(perm=(2, 1, 0)), u.type, u.origin)))
# %% [markdown]
# In this graph, `u` becomes the transpose of `x` in the line above, `v` is `x` itself, so `y` reads `x`, and the
# output `v` is `x`, too. About 18 lines.
# %% exercise=cancel_transposes
# %%
check(cancel_transposes)
# %% [markdown]
# ## 3. A flag instead of a transpose
# %%
product = parse("""
graph product(x: i32[2,3], w: i32[4,3]) -> (y) {
  t = transpose(w) {perm=[1,0]}
  y = matmul(x, t)
  return y
}""")
print(dict(product["y"].value))
flags = Attrs(transpose_a=False, transpose_b=True)
print(node_line(Node("y", "matmul", ("x", "w"), flags, product["y"].type)))
# %% [markdown]
# The flag may be set already; what is it then? About 16 lines.
# %% exercise=absorb_into_matmul
# %%
check(absorb_into_matmul)
# %% [markdown]
# ## 4. Refute two passes
#
# Both are right on many tests that people write. This is what each is for, and its decisive line:
# %%
import inspect

from minigraph.teach.exercises.ch10 import cancel_backwards, sink_negative

for wrong, decisive in ((cancel_backwards, "perm = tuple"), (sink_negative, "axes =")):
    print(f"{wrong.__name__}: {wrong.__doc__}")
    print(*[line for line in inspect.getsource(wrong).splitlines() if decisive in line], "", sep="\n")
# %% [markdown]
# Find a graph on which `cancel_backwards` changes the program. At most 6 nodes, inputs among them. The graph below does
# no harm: change it. You may leave out the types at the ends of the lines: `parse` finds them.
# %% refute=cancel_backwards
# %% [markdown]
# And one for `sink_negative`, with at most 6 nodes again.
# %% refute=sink_negative
# %% [markdown]
# ## Stretch: sink through a reduction
#
# About 17 lines.
# %% exercise=sink_through_reduction
# %%
check(sink_through_reduction)
# %% [markdown]
# ## How far are you?
# %%
progress()
