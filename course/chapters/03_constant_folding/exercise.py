# %% [markdown]
# # Exercises 03: constant folding
#
# *About 30 minutes. The lesson is `notebooks/03_constant_folding.ipynb`.*
#
# Run this cell first. It brings the names that you need: `Graph`, `Node`, `Const`, `OPS`, `np`, `check`, `hint` and more.
# %%
from minigraph.teach.prelude import *
# %% [markdown]
# ## 1. The value of one operation
#
# Everything starts with one operation and its operands' arrays. About 3 lines.
# %% exercise=evaluate
# %%
check(evaluate)
# %% [markdown]
# Stuck? `hint(evaluate)` gives a first hint, and calling it again a stronger one. After three tries, `solution(evaluate)` opens.
#
# ## 2. The pass
#
# Now the whole walk. About 16 lines. Your pass returns just a graph; the package's `fold` returns a report beside it.
# %% exercise=fold
# %%
check(fold)
# %% [markdown]
# ## 3. Refute a wrong pass
#
# `fold_in_float64` computes in double precision, "because more digits must be better". Find a graph on which it changes
# the program. At most 6 nodes. The graph below does no harm: change it.
# %%
from minigraph.teach.exercises.ch03 import fold_in_float64
# %% refute=fold_in_float64
# %% [markdown]
# ## Stretch: a fold that does not grow the program
#
# About 15 lines, most of which you have already.
# %% exercise=fold_small
# %%
check(fold_small)
# %% [markdown]
# ## How far are you?
# %%
progress()
