# %% [markdown]
# # Exercises 04: algebra
#
# *About an hour. The lesson is `notebooks/04_algebra.ipynb`.*
#
# Run this cell first. It brings the names that you need: `Graph`, `Node`, `Const`, `OPS`, `Rule`, `same_bits`, `check` and more.
# %%
from minigraph.teach.prelude import *
# %% [markdown]
# ## 1. Is it an identity?
#
# The question that every removal begins with. About 3 lines.
# %% exercise=is_identity
# %%
check(is_identity)
# %% [markdown]
# Stuck? `hint(is_identity)` gives a first hint, and calling it again a stronger one. After three tries, `solution(is_identity)` opens.
#
# ## 2. The pass
#
# About 20 lines. New here: an operation that goes away leaves its name behind, in the operands of others. Keep a dict from
# the name that is gone to the name that stands for it.
# %% exercise=simplify
# %%
check(simplify)
# %% [markdown]
# ## 3. Rules as data
#
# Four wishes. For each, find the values that kill it before you write the row.
# %% exercise=my_rules
# %%
check(my_rules)
# %% [markdown]
# ## 4. Refute four passes
#
# Each of these is one row of data, and each author had a reason. Find a graph on which the pass changes the program, of at most 6
# nodes. The graphs below do no harm: change them. Write down first which x will do it.
# %%
import inspect
from minigraph.teach.exercises.ch04 import divide_by_itself, minus_itself, plus_zero, times_zero

print(inspect.getsource(plus_zero))
predict("Which x kills x + 0 -> x, and in which dtype?", None)
# %% refute=plus_zero
# %%
print(inspect.getsource(times_zero))
predict("Which x kills tanh(x) * 0 -> 0?", None)
# %% refute=times_zero
# %%
print(inspect.getsource(minus_itself))
predict("Which x kills x - x -> 0?", None)
# %% refute=minus_itself
# %%
print(inspect.getsource(divide_by_itself))
predict("Which x kills exp(x) / exp(x) -> 1?", None)
# %% refute=divide_by_itself
# %% [markdown]
# ## Stretch: find the killer
#
# You searched for killers by hand. Let a program do it. About 7 lines.
# %% exercise=find_killer
# %%
check(find_killer)
# %% [markdown]
# ## How far are you?
# %%
progress()
