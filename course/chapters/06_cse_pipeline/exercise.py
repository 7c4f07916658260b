# %% [markdown]
# # Exercises 06: common subexpressions, and the order of passes
#
# *About 45 minutes, 70 with the stretch. The lesson is `notebooks/06_cse_pipeline.ipynb`.*
#
# Run this cell first.
# %%
from minigraph.teach.prelude import *
# %% [markdown]
# ## 1. The key
#
# The heart of the pass: what makes two nodes the same value? You write only the key. `check` makes a pass of it: a forward walk
# that replaces operands first and keeps the first node of each key. About 6 lines.
# %% exercise=cse_key
# %%
check(cse_key)
# %% [markdown]
# Stuck? `hint(cse_key)` gives a first hint, and calling it again a stronger one. After three tries, `solution(cse_key)` opens.
#
# ## 2. The pass
#
# Now the walk itself, with the key inside. About 13 lines. Your pass is saved, and later chapters can run it.
# %% exercise=cse
# %%
check(cse)
# %% [markdown]
# ## 3. Round after round
#
# What `optimize` does, without its checks; `optimize` stops at 4 rounds, yours at 10. About 7 lines.
# %% exercise=run_to_fixpoint
# %%
check(run_to_fixpoint)
# %% [markdown]
# ## 4. Refute three keys
#
# Each of these passes has a key that is too small. Read their keys.
# %%
import inspect

from minigraph.teach.exercises.ch06 import cse_by_number, cse_merges_draws, cse_without_attributes

for wrong in (cse_without_attributes, cse_by_number, cse_merges_draws):
    print(inspect.getsource(wrong))
# %% [markdown]
# `merge_by` is the walk of exercise 1. Change each graph so that the pass goes wrong on it. At most 6 nodes.
# %% refute=cse_without_attributes
# %% refute=cse_by_number
# %% refute=cse_merges_draws
# %% [markdown]
# ## Your passes in the pipeline
#
# `use_mine()` takes each pass that you have checked right, here or in earlier chapters, and the package's own for the others.
# Before you run this: how many nodes will be left of the 8?
# %%
relay = parse("""
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
passes = use_mine()
result = optimize(relay, passes=[passes[name] for name in ("fold", "simplify", "cse", "dce")])
print(result.graph)
# %% [markdown]
# ## Stretch: one table, three hooks
#
# Folding, one rule of algebra and CSE in one walk. About 24 lines, 13 of which you have already. To
# fold, run the operation's own NumPy function on the arrays, with the attributes by name, and make a
# `Const` of the node's dtype:
# %%
sums = parse("""
graph sums() -> (s) {
  m = const([[1.0, 2.0], [3.0, 4.0]]) : f32[2,2]
  s = sum(m) {axis=[0]}
  return s
}""")
m, s = sums.nodes
arrays = [m.value.array]
result = OPS[s.op].numpy(*arrays, **dict(s.value or ()))  # a node without attributes has None there
print(Const.of(np.asarray(result), s.type.dtype))
# %% [markdown]
# Now the walk:
# %% exercise=one_walk
# %%
check(one_walk)
# %% [markdown]
# ## How far are you?
# %%
progress()
