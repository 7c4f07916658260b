# %% [markdown]
# # Exercises 05: dead code
#
# *About 30 minutes. The lesson is `notebooks/05_dead_code.ipynb`.*
#
# Run this cell first. It brings the names that you need: `Graph`, `Node`, `OPS`, `Kind`, `check`, `hint` and more.
# %%
from minigraph.teach.prelude import *
# %% [markdown]
# ## 1. Where life begins
#
# Before anything is walked: which values are needed by themselves? About 5 lines.
# %% exercise=roots
# %%
check(roots)
# %% [markdown]
# Stuck? `hint(roots)` gives a first hint, and calling it again a stronger one. After three tries, `solution(roots)` opens.
#
# ## 2. The pass
#
# Now the walk. About 7 lines. Say before you start: in which direction, and why?
# %% exercise=dce
# %%
check(dce)
# %% [markdown]
# ## 3. Refute three wrong passes
#
# Each of these says why it is right, and is wrong. Find a graph on which it changes the program. At most 6 nodes. The graphs
# below do no harm: change them.
#
# `dce_last_output` keeps what the last output needs, "because the result comes last".
# %%
from minigraph.teach.exercises.ch05 import dce_drops_effects, dce_last_output, dce_renumbers_draws
# %% refute=dce_last_output
# %% [markdown]
# `dce_drops_effects` deletes whatever no output needs, "because nobody uses the value of a print".
# %% refute=dce_drops_effects
# %% [markdown]
# `dce_renumbers_draws` deletes the right nodes, and then numbers the draws that are left 0, 1, 2 …, "to keep it tidy".
# %% refute=dce_renumbers_draws
# %% [markdown]
# ## Stretch: stripping effects, on request
#
# A print costs time. Somebody who ships the model wants the prints out, and says so: `strip_effects(graph, ("print",))`.
#
# Effects keep their order, because each reads the *token* of the one before. Look at the last operand of `q` and of `r`. Whoever
# takes one out has to tie the ends together:
# %%
in_order = parse("""
graph in_order(x: f32[4]) -> (y) {
  p = assert_finite(x) : token[]
  q = print(x, p) {label="x is"} : token[]
  y = exp(x) : f32[4]
  r = assert_close(x, y, q) {digits=2} : token[]
  return y
}""")
draw(in_order)
# %% [markdown]
# Without the print, `r` is `assert_close(x, y, p)`. About 11 lines.
# %% exercise=strip_effects
# %%
check(strip_effects)
# %% [markdown]
# ## How far are you?
# %%
progress()
