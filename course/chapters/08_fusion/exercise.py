# %% [markdown]
# # Exercises 08: fusion
#
# *About 45 minutes, 70 with the stretch. The lesson is `notebooks/08_fusion.ipynb`.*
#
# Run this cell first.
# %%
from minigraph.teach.prelude import *
from minigraph.teach.tryout import try_fuser, try_groups, try_lines
# %% [markdown]
# ## 1. What a grouping costs
#
# Before you group anything: how many bytes does a grouping move? About 9 lines.
#
# What you need of a graph: a node has a `.name`, an `.op`, a `.type`, and `.inputs`, the names of what it reads. `defs(graph)` finds nodes
# by name, and `users(graph)` the names of the readers. `graph.outputs` holds pairs: the name that the caller sees, and the value's.
# %% exercise=bytes_moved
# %%
check(bytes_moved)
# %% [markdown]
# Stuck? `hint(bytes_moved)` gives a first hint, and calling it again a stronger one. After three tries, `solution(bytes_moved)`
# opens.
#
# ## 2. The fuser
#
# This graph has everything in it that the rules speak of. Which groups would you make, by hand?
# %%
example = parse("""
graph example(x: f32[4], w: f32[2,4]) -> (seen, y) {
  a = exp(x)
  b = neg(a)
  c = mul(a, b)
  s = sum(c) {axis=[0]}
  d = sub(c, s)
  seen = abs(d)
  e = sin(seen)
  y = add(e, w)
  return seen, y
}""")
for name, readers in users(example).items():
    node = example[name]
    print(f"{name:5} {OPS[node.op].kind.value:12} {str(node.type.shape):8} read by {readers}")
# %% [markdown]
# Here every operation is alone. Put them together until no fewer groups would do, and run the cell again after each change. Bold
# arrows go through memory.
# %%
mine = [("a",), ("b",), ("c",), ("s",), ("d",), ("seen",), ("e",), ("y",)]
try_groups(example, mine)
# %% [markdown]
# What stays apart, and why? `s` is a sum. `c` ends its group, for `s` and `d` read it and are in two. `seen` is an output. `e` is
# smaller than `y`. Now write the walk that finds this. About 16 lines.
# %% exercise=fuse
# %%
check(fuse)
# %% [markdown]
# What your groups cost as launches, on GELU:
# %%
gelu = trace(lambda x: 0.5 * x * (1 + np.tanh(0.7978846 * (x + 0.044715 * x * x * x))),
             x="f32[4096]", name="gelu")
try_fuser(fuse, gelu)
# %% [markdown]
# ## 3. The lines of a loop
#
# A group in C. About 7 lines.
# %% exercise=emit
# %%
check(emit)
# %% [markdown]
# Rotary embeddings turn pairs of numbers. Your lines, with a loop around them, through the C compiler of this machine:
# %% nbval-ignore-output
rotate = parse("""
graph rotate(a: f32[8], b: f32[8], c: f32[8], s: f32[8]) -> (out) {
  p = mul(a, c)
  q = mul(b, s)
  out = sub(p, q)
  return out
}""")
try_lines(emit, rotate)
# %% [markdown]
# ## 4. Refute two fusers
#
# Both are tempting, and both go too far. Read them.
# %%
import inspect

from minigraph.teach.exercises.ch08 import fuse_freely, fuse_greedily

for wrong in (fuse_greedily, fuse_freely):
    print(inspect.getsource(wrong))
# %% [markdown]
# Find a graph on which the groups of `fuse_greedily` wait for each other. At most 6 nodes, inputs included. On the
# graph below they do not: change it.
# %% refute=fuse_greedily
# %% [markdown]
# And one on which `fuse_freely` computes more elements than there are.
# %% refute=fuse_freely
# %% [markdown]
# ## Stretch: epilogues
#
# A product may open a group. About 20 lines, most of which you have already.
# %% exercise=fuse_epilogues
# %%
check(fuse_epilogues)
# %% [markdown]
# ## How far are you?
# %%
progress()
