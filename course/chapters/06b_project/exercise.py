# %% [markdown]
# # Exercises 06b: the project
#
# *About 45 minutes. The lesson is `notebooks/06b_project.ipynb`.*
#
# Run this cell first. Here `project.Node` is the task's node, with references and a flag. Do not mix it up with our IR's `Node`.
# %%
from minigraph.teach.prelude import *

print(project.Node.__doc__, "Fields:", *project.Node.__dataclass_fields__)
print("MEANING:", *project.MEANING)
# %% [markdown]
# Two helpers: `project.network(nodes)` makes the graph, edges included, and `print(project.listing(graph))` shows one. The
# checker draws its counterexamples as graphs of our IR, which you can read.
#
# This is the expression, to try your functions on:
# %%
def expression(number):
    x = project.Node("input", [], "x")
    three, four, five, zero = (project.Node("const", [], number(value)) for value in (3, 4, 5, 0))
    seven = project.Node("add", [three, four])
    product = project.Node("mul", [seven, x])
    nothing = project.Node("mul", [five, zero])
    y = project.Node("add", [product, nothing], output=True)
    return project.network([x, three, four, seven, product, five, zero, nothing, y])


print(project.formula(expression(np.float32)))
# %% [markdown]
# ## 1. Constant folding
#
# About 9 lines.
# %% exercise=constant_folding
# %%
check(constant_folding)
# %% [markdown]
# Stuck? `hint(constant_folding)` gives a first hint, and calling it again a stronger one.
#
# ## 2. Dead-code elimination
#
# About 6 lines. It looks at edges and flags, and at no value.
# %% exercise=dead_code_elimination
# %%
check(dead_code_elimination)
# %% [markdown]
# ## 3. One rule of algebra
#
# About 15 lines. Say first: which zeros may go?
# %% exercise=drop_plus_zero
# %%
check(drop_plus_zero)
# %% [markdown]
# When all three are right, run this: how many nodes are left of the float expression, and of the integer one?
#
# ```python
# for number in (np.float32, np.int32):
#     graph = expression(number)
#     for one in (constant_folding, dead_code_elimination, drop_plus_zero, dead_code_elimination):
#         graph = one(graph)
#     print(project.formula(graph), len(graph))
# ```
#
# ## 4. Refute the explanation
#
# This pass, written for our IR, believes that a zero is "not used". Find a graph on which it changes the program. At most 6
# nodes. The graph below does no harm: change it.
# %%
from minigraph.teach.exercises.ch06b import zero_is_unused
# %% refute=zero_is_unused
# %% [markdown]
# ## How far are you?
# %%
progress()
