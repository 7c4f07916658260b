# %% [markdown]
# # Exercises 09: reductions and attention
#
# *About 45 minutes, 65 with the stretch. The lesson is `notebooks/09_fusion_reductions.ipynb`.*
#
# Run this cell first.
# %%
from minigraph.teach.prelude import *
# %% [markdown]
# ## 1. Merge two partial results
#
# A part of a row is a pair: its maximum m, and the sum of exp(x - m). Two parts become one. About 5 lines.
# %% exercise=merge
# %%
check(merge)
# %% [markdown]
# Stuck? `hint(merge)` gives a first hint, and calling it again a stronger one. After three tries, `solution(merge)` opens.
#
# ## 2. Maximum and sum in one walk
#
# The lesson's `online` took one element at a time, and stumbled over -inf. Yours takes a chunk at a time, with NumPy, and does not.
# Remember that `np.max` raises an error for an empty array, unless you give it `initial=`. About 7 lines.
# %% exercise=online_softmax
# %%
check(online_softmax)
# %% [markdown]
# ## 3. Count the walks
#
# How many walks does a launch need? Look at a graph by hand first: how many are these?
# %%
example = parse("""
graph example(x: f32[4,8]) -> (y) {
  a = max(x) {axis=[1], keepdims=true}
  b = sum(x) {axis=[1], keepdims=true}
  c = div(a, b)
  d = sub(x, c)
  e = exp(d)
  s = sum(e) {axis=[1], keepdims=true}
  y = log(s)
  return y
}""")
for node in example.nodes:
    print(f"{node.name}  {str(OPS[node.op].kind):16} {node.type.shape}")
# %% [markdown]
# `a` and `b` share the first walk. `c` is one number a row, between the walks. `d`, `e` and `s` are the second walk, and `y`
# needs none: 2. About 10 lines.
# %% exercise=walks
# %%
check(walks)
# %% [markdown]
# ## 4. Refute a fuser
#
# It puts reductions and element-wise nodes into one launch that walks along rows, or along columns, but never both ways. Read how
# it decides.
# %%
import inspect

from minigraph.teach.exercises.ch09 import fuse_by_shape

print(inspect.getsource(fuse_by_shape))
# %% [markdown]
# Find a graph on which it mixes up two axes, so that it puts together what cannot be one launch. At most 6 nodes, inputs
# included. On the graph below it does no harm: change it.
# %% refute=fuse_by_shape
# %% [markdown]
# ## Stretch: attention in tiles
#
# FlashAttention's forward pass, for one head. About 13 lines.
# %% exercise=tiled_attention
# %%
check(tiled_attention)
# %% [markdown]
# ## How far are you?
# %%
progress()
