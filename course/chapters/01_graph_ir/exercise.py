# %% [markdown]
# # Exercises 01: the graph
#
# *About 60 minutes. The lesson is `notebooks/01_graph_ir.ipynb`.*
#
# Run this cell first. It brings the names that you need: `Graph`, `Node`, `Const`, `Type`, `OPS`, `np`, `check`, `hint`
# and more.
# %%
from minigraph.teach.prelude import *
# %% [markdown]
# ## 1. Who reads a value?
#
# A node stores what it reads, not who reads it. Find that out. About 6 lines.
# %% exercise=users_of
# %%
check(users_of)
# %% [markdown]
# Stuck? `hint(users_of)` gives a first hint, and calling it again a stronger one. After three tries, `solution(users_of)`
# opens.
#
# ## 2. Break the rules
#
# To know a rule is to know how to break it. Here is a graph that keeps all eight, made of five nodes by hand.
# %%
x = Node("x", "input", (), None, Type("f32", (4,)))
two = Node("two", "const", (), Const.of(2.0, "f32"), Type("f32"))
y = Node("y", "mul", ("x", "two"), None, x.type)
seen = Node("seen", "assert_finite", ("y",), None, Type("token"))
z = Node("z", "exp", ("y",), None, x.type)
good = Graph("good", (x, two, y, seen, z), (("out", "z"),))
draw(good)
# %% [markdown]
# A node is made of name, op, inputs, value and type, in this order; origin is left out. `assert_finite` is an effect, and
# `seen` its token. Nobody reads it here.
#
# Below stands one call for each rule. Replace `good` by a graph that breaks this rule **and no other**. Write it as
# `Graph("bad", (x, two, y, seen, z), good.outputs)` and change what you need: put the nodes into another order, repeat
# one, add one, make one anew, or change the outputs. One line is enough each time. Mind the commas of tuples with one
# part: `("y",)`.
#
# *No two nodes have the same name:*
# %% break=defined-once
# %% [markdown]
# *Every op is a row of the op table:*
# %% break=known-op
# %% [markdown]
# *No input comes after another kind of node:*
# %% break=inputs-first
# %% [markdown]
# *Every operand is the name of an earlier node:*
# %% break=defined-earlier
# %% [markdown]
# *A const's value is a Const; any other node's is the attributes that its row asks for, or None:*
# %% break=right-value
# %% [markdown]
# *Every type is what the row infers from the operands; a constant's is its value's:*
# %% break=right-type
# %% [markdown]
# *Every effect after the first takes one operand more: the token of the effect before it:*
# %% break=effects-in-line
# %% [markdown]
# *Every output is a value that holds data, so no token; no two have the same public name:*
# %% break=right-outputs
# %% [markdown]
# Each answer shows the graph that you gave as a picture and, where it breaks a rule, as lines. Which of the eight faults
# does the picture mark, and which do you have to find yourself? The verifier needs no picture: it looks at the data.
#
# ## 3. A small verifier
#
# Now the other side: find the broken rule. Six of the eight, in one walk over the nodes and one look at the outputs.
# About 18 lines, most of them in pairs: a question and an answer.
# %% exercise=first_problem
# %%
check(first_problem)
# %% [markdown]
# ## 4. The interpreter
#
# Ten lines that run any graph. Say before you run the check: what does it have to remember while it walks?
# %% exercise=interpret
# %%
check(interpret)
# %% [markdown]
# ## Stretch: find an order
#
# The list of nodes is always in order, so no pass has to search for one. What would the search look like? About 12 lines.
# %% exercise=in_order
# %%
check(in_order)
# %% [markdown]
# ## How far are you?
# %%
progress()
