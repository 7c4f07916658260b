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
# About 20 lines. Here is a pass that changes nothing, to start from.
# %%
def same_again(graph):
    nodes = []
    for node in graph.nodes:  # inputs first, and operands before whoever reads them
        nodes.append(Node(node.name, node.op, node.inputs, node.value, node.type, node.origin))
    return Graph(graph.name, tuple(nodes), graph.outputs)


example = parse("""
graph example(x: f32[4]) -> (y, z) {
  one = const(1.0) : f32[]
  a = mul(x, one) : f32[4]
  b = neg(a) : f32[4]
  return y = a, z = b
}""")
assert same_again(example) == example
print("outputs, as pairs (public name, value name):", example.outputs)
for node in example.nodes:  # x is in this list, too
    print(f"{node.name:3} is a {node.op:5} of {node.inputs}, node.type {node.type},",
          f"node.value.array {node.value.array}" if node.op == "const" else f"node.value {node.value}")
# %% [markdown]
# New is this: an operation that goes away leaves its name behind, in the operands of others. Keep a dict from the name that is gone
# to the name that stands for it.
# %% exercise=simplify
# %%
check(simplify)
# %% [markdown]
# ## 3. Rules as data
#
# Four wishes. For each, find the values that kill it before you write the row. When a row does nothing,
# `explain(rule, graph, name, flags)` says why, as in the lesson.
# %% exercise=my_rules
# %%
check(my_rules)
# %% [markdown]
# ## 4. Refute four passes
#
# Each of these is one row of data, and each author had a reason (`rewrite` is the package's own `simplify`). Find a graph on which
# the pass changes the program, of at most 6 nodes. The graphs below do no harm: change them. Write down first which x will do it,
# and make it a constant: the IR writes special numbers `const(-0.0)`, `const(inf)`, `const(nan)`. (An input `x: f32[4]` is tried with
# several of them.)
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
# You searched for killers by hand. Let a program do it. About 8 lines.
# %% exercise=find_killer
# %%
check(find_killer)
# %% [markdown]
# ## How far are you?
# %%
progress()
