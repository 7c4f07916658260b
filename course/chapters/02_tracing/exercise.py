# %% [markdown]
# # Exercises 02: tracing
#
# *About 45 minutes, the stretch not counted. The lesson is `notebooks/02_tracing.ipynb`.*
#
# Run this cell first. It brings the names that you need: `Builder`, `DTYPES`, `SHORT`, `np`, `check`, `hint` and more.
# %%
from minigraph.teach.prelude import *
# %% [markdown]
# You write a tracer in three pieces. A value is known by its name in a `Builder`, which you know from chapter 01:
# %%
builder = Builder("sketch")
n = builder.input("n", "i32[3]")
wide = builder.emit("cast", n, dtype="f64")
one = builder.const(1.0, "f64")
print(n, wide, one, builder.emit("add", wide, one))
# %% [markdown]
# ## 1. One operation
#
# That was `n + 1.0`, written by hand. Now for any operation, any dtypes, and with numbers on either side. About 12 lines.
# %% exercise=record
# %%
check(record)
# %% [markdown]
# Stuck? `hint(record)` gives a first hint, and calling it again a stronger one. After three tries, `solution(record)` opens.
#
# ## 2. The methods behind an operator
#
# Python calls methods. Here you make them, for any operator at once. About 7 lines.
# %% exercise=binary
# %%
check(binary)
# %% [markdown]
# ## 3. The tracer
#
# Stand-ins for the inputs, one call, and the names of what comes back. About 12 lines.
# %% exercise=trace_with
# %%
check(trace_with)
# %% [markdown]
# Your three pieces together are a tracer. Change the expression and see what it records.
# %%
from minigraph.teach.standins import assemble

assemble(record, binary, trace_with, "(2 - x) * n + 0.5", x="f32[4]", n="i32[4]")
# %% [markdown]
# ## 4. Refute two traced graphs
#
# These functions were traced by running them on an example, the numbers in the cells below. Read the first graph: where is the `if`?
# %%
import inspect
from minigraph.teach.exercises.ch02 import normalize, settle
from minigraph.teach.standins import trace_by_example

print(inspect.getsource(normalize))
print(trace_by_example(normalize, x=np.float32([4.0, -2.0, 1.0, 0.5])))
# %% [markdown]
# Find numbers on which the function and the graph differ.
# %% refute_trace=normalize
# %% [markdown]
# The second one has a loop. It was traced on four numbers, too.
# %%
print(inspect.getsource(settle))
# %% refute_trace=settle
# %% [markdown]
# ## Stretch: both sides of an if
#
# A tracer can go both ways, if it runs the function more than once. About 13 lines.
# %% exercise=both_ways
# %%
check(both_ways)
# %% [markdown]
# ## How far are you?
# %%
progress()
