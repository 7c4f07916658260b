# %% [markdown]
# # Exercises 11: memory planning
#
# *About 45 minutes, 60 with the stretch. The lesson is `notebooks/11_memory_planning.ipynb`.*
#
# Run this cell first.
# %%
from minigraph.teach.prelude import *
from minigraph import draw_memory, make_plan
from minigraph.planners import greedy_by_size, lower_bound
from minigraph.teach import memory
# %% [markdown]
# ## 1. Live ranges
#
# Before anything is placed: from when to when does each value need memory? About 11 lines. `-(-size // 64) * 64` rounds up.
# %% exercise=live_ranges
# %%
check(live_ranges)
# %% [markdown]
# Stuck? `hint(live_ranges)` gives a first hint, and calling it again a stronger one. After three tries, `solution(live_ranges)`
# opens.
#
# A chain with a skip, by your function: `a` must live until the last launch.
# %%
chain = [("a", ("x",)), ("b", ("a",)), ("c", ("b",)), ("y", ("a", "c"))]
try:
    for one in live_ranges(chain, {"a": 256, "b": 256, "c": 256, "y": 256}, ("y",), {}):
        print(f"{one.name}: [{one.start}, {one.end})  {'  ' * one.start}{'##' * (one.end - one.start)}")
except NotImplementedError:
    print("write live_ranges first")
# %% [markdown]
# ## 2. In place
#
# May this node be written over that operand? About 15 lines. `defs(graph)` gives the nodes by name, in their order. A
# node's type is `node.type`, and `OPS[node.op].kind is Kind.ELEMENTWISE` if it computes element after element.
# %%
example = parse("""
graph example(x: f32[2,2], w: f32[3,2,2]) -> (seen, z) {
  a = exp(x)
  t = transpose(a) {perm=[1,0]}
  b = neg(a)
  seen = add(b, t)
  c = sin(seen)
  z = mul(c, w)
  return seen, z
}""")
for node in example.nodes:
    print(f"{node.name:5} {OPS[node.op].kind.value:12} {node.type}")
# %% [markdown]
# Here, `b` may not go over `a`: `seen` reads `a`'s memory later, through `t`. `seen` may go over `b`. `c` may not go
# over `seen`, which is an output. `z` may not go over `c`, which is smaller. And nothing may go over `x`.
# %% exercise=can_reuse
# %%
check(can_reuse)
# %% [markdown]
# ## 3. A planner
#
# Now place the buffers. About 14 lines for greedy by size; another way is as welcome, if it is at most 1.1 times the bound.
# %% exercise=plan
# %%
check(plan)
# %% [markdown]
# How good is it? On the last instance, the lesson's layer, the package's greedy by size is not the best.
# %%
memory.try_plan(plan)
# %% [markdown]
# And as a picture, for the same layer. What overlaps would be crossed out.
# %%
from minigraph.teach.examples import frozen_layer

buffers = memory.buffers_of(make_plan(memory.optimized(frozen_layer())))
try:
    picture = draw_memory(buffers, plan(buffers), "the layer, by your plan")
except NotImplementedError:
    picture = "write plan first"
picture
# %% [markdown]
# ## 4. Refute two rules
#
# Both decide what is written in place. Read them.
# %%
import inspect

from minigraph.teach.exercises.ch11 import VIEWS, over_the_first, over_the_last_read

for wrong in (over_the_first, over_the_last_read):
    print(inspect.getsource(wrong))
# %% [markdown]
# Find a graph on which `over_the_first` changes a result: it writes over a value that is still read. At most 6 nodes.
# On the graph below it does no harm: change it. (In the pictures, `b_over_a` is a `b` that was written over `a`.)
# %% refute=over_the_first
# %% [markdown]
# The second rule asks who names the operand later. Get around it.
# %% refute=over_the_last_read
# %% [markdown]
# ## Stretch: an order
#
# Same launches, lower peak. About 15 lines.
# %% exercise=reorder
# %%
check(reorder)
# %% [markdown]
# The peaks, in the order that was given and in yours:
# %%
memory.try_order(reorder)
# %% [markdown]
# ## How far are you?
# %%
progress()
