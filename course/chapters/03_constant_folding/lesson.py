# %% [markdown]
# # 03 Constant folding
#
# *About 45 minutes. You need chapters 01 and 02. The exercises are in `exercises/03_constant_folding.ipynb`.*
#
# This is the graph of the first chapter. It has ten values, and two of them, `x` and `y`, come from outside.
#
# **The question:** how many of its six operations can the compiler carry out before anybody calls the program?
# %%
from minigraph.passes import fold
from minigraph.teach import predict
from minigraph.teach.examples import a4, frozen_layer
import minigraph as mg
import numpy as np

graph = a4()
print(graph)
# %% [markdown]
# Write your guess down before you go on. Being wrong is the quickest way to remember.
# %%
predict("How many operations of a4 can be computed before it runs?", None,
        lambda: len(fold(graph).report))
# %% [markdown]
# ## What folding does
#
# An operation whose operands are all constants has the same value in every run. So the compiler runs it once, and writes
# the value down. That is **constant folding**.
# %%
result = fold(graph)
print(mg.print_diff(graph, result.graph))
# %% [markdown]
# One operation: `c = add(a, b)` has become `c = const(5.0)`. It kept its name, so `d` and `g`, which read it, did not change at all.
#
# Look at `a` and `b`. Nobody reads them any more, and they are still there. Folding leaves such corpses behind; clearing
# them away is another pass's job (chapter 05). One pass, one thought.
# %%
mg.draw_diff(graph, result.graph)
# %% [markdown]
# Why did `d = mul(c, x)` stay? Because `x` is known only when the program runs.
#
# A pass also says what it did. Every change has a reason, and a report that leaves a change out is refused.
# %%
for step in result.report:
    print(step.rule, step.before, "->", step.after, "because:", step.why)
# %% [markdown]
# ## Folding needs no opinion
#
# What is 100 + 100? It depends on who computes it. Here both numbers are 8-bit integers, which go from -128 to 127.
# %%
small = mg.parse("""
graph small() -> (y) {
  a = const(100) : i8[]
  y = add(a, a) : i8[]
  return y
}""")
predict("What does the program give for 100 + 100 in i8?", None, lambda: int(mg.run(small)["y"]))
# %%
print("run:   ", mg.run(small)["y"])
print("folded:", mg.run(fold(small).graph)["y"])
# %% [markdown]
# The run wraps around, so the folded program must wrap around, too. 200 would be better arithmetic and a wrong compiler.
#
# Floats have the same trap. A float32 has 24 binary digits, so here the 1 falls off the end:
# %%
large = mg.parse("""
graph large() -> (y) {
  big = const(16777216.0) : f32[]
  one = const(1.0) : f32[]
  y = add(big, one) : f32[]
  return y
}""")
print("run:        ", f"{mg.run(large)['y']:.1f}")
print("folded:     ", f"{mg.run(fold(large).graph)['y']:.1f}")
print("in float64: ", np.float64(16777216) + 1)
# %% [markdown]
# A folder that computes in float64 would have the 1. Storing the result as float32 drops it again, so this one addition comes out
# right, by luck. You will find a graph where the luck ends.
# %% [markdown]
# How does the pass manage to agree with the run, in every dtype, for every operation? It has no arithmetic of its own. It
# asks the **op table**, and the executor asks the same table. There is one function for `add`, and both call it.
# %%
from minigraph import Const, Node
from minigraph.ops import OPS

row = OPS["add"]
print(row.name, row.kind.value, row.numpy, "foldable:", row.foldable)
# %% [markdown]
# A constant's value is a `Const`. Its `.array` is a NumPy array that nobody can write to; `Const.of(array, dtype)` makes one. So this
# is one fold, by hand:
# %%
two, three = Const.of(2.0, "f32"), Const.of(3.0, "f32")
value = Const.of(row.numpy(two.array, three.array), "f32")
print(value)
c = Node("c", "const", (), value, value.type)
print(mg.node_line(c))
print(mg.Graph("by_hand", tuple([c]), (("out", "c"),)))
# %% [markdown]
# Big compilers have slipped exactly here. One folded 64-bit divisions by way of float64, another had one rounding rule in
# its folder and a second one in its interpreter. Two definitions of one operation drift apart.
#
# ## What must not be folded
#
# Two kinds of operation have no operands that vary, and still must not be computed at compile time.
# %%
careful = mg.parse("""
graph careful() -> (y) {
  two = const(2.0) : f32[]
  draw = random() {shape=[3], site=0} : f32[3]
  seen = print(two) {label="two is"} : token[]
  y = mul(draw, two) : f32[3]
  return y
}""")
print("steps:", len(fold(careful).report))
print({name: OPS[name].foldable for name in ("mul", "random", "print")})
# %% [markdown]
# A **random draw** must differ from run to run. A **print** is there for what it does, not for its value. Neither is
# *foldable*: that is a column of the op table, decided by the kind of the operation and nowhere else.
#
# And some operations cannot be computed. NumPy refuses an integer to a negative power (a ValueError), and to take an element
# beyond the end (an IndexError). The fold leaves such a node where it is, and the error comes when the program runs, exactly as it
# would have.
# %%
refused = mg.parse("""
graph refused() -> (y) {
  two = const(2) : i32[]
  minus_one = const(-1) : i32[]
  y = pow(two, minus_one) : i32[]
  return y
}""")
print("steps:", len(fold(refused).report))
# %% [markdown]
# ## Where it pays
#
# Traced models are full of constants: positions, masks, scales, weights that are stored the wrong way round. This is an
# attention layer as people write it, with everything frozen that is known before it runs.
# %%
layer = frozen_layer()
folded = fold(layer)
gone = [step.before[0] for step in folded.report]
print(f"{len(layer)} nodes; folded: {len(gone)}")
print(*gone)
# %% [markdown]
# The causal mask (`mask`), the rotary angles (`cos`, `sin`) and the transposed weights no longer cost anything in a run. In a
# language model they would otherwise be computed again for every token and in every layer. What depends on `x`, the
# activations, cannot be folded: they are known only in the run. That is the limit of this pass.
#
# ## When folding hurts
#
# A constant is stored in the program. Here is a graph of one number.
# %%
zeros = mg.parse("""
graph zeros(x: f32[64,64]) -> (y) {
  zero = const(0.0) : f32[]
  wide = broadcast_to(zero) {shape=[64,64]} : f32[64,64]
  y = maximum(x, wide) : f32[64,64]
  return y
}""")


def stored(graph):
    return sum(node.type.nbytes for node in graph.nodes if node.op == "const")


predict("How many bytes of constants will there be after folding everything?", None)
# %%
from minigraph.teach.charts import bars

everything = fold(zeros, max_growth=2**30).graph
careful_fold = fold(zeros).graph
bars("bytes stored in the program", {
    "as written": stored(zeros),
    "folded, no limit": stored(everything),
    "folded, 1 KiB limit": stored(careful_fold)}, "bytes")
# %% [markdown]
# The unlimited fold stored the zero 4,096 times more. With `shape=[65536, 65536]` it would ask for 16 GiB, in the compiler. So our
# `fold` has a bound: a result may be at most 1,024 bytes larger than the operands that it replaces. Where it is not, the
# operation stays, and the run broadcasts without storing anything.
#
# ## Write the pass
#
# Now it is your turn. Open `exercises/03_constant_folding.ipynb` (in the course's own JupyterLab your copy is in `work/`). You
# write `evaluate`, then `fold`, and you refute a pass that folds in float64. The check there tries some thousands of small
# graphs and shows you the smallest one that goes wrong.
#
# ## The same pass in a real compiler
# %% exhibit=onnxruntime-folds
# %% [markdown]
# ## The scoreboard
#
# One line for the attention layer as traced, one after folding. *Launches* are calls that compute something; *stored* are
# the bytes of constants in the program; *peak* is the most memory that lives at one time.
# %%
from minigraph.teach.score import scoreboard

scoreboard("fold")
# %% [markdown]
# Fewer launches, fewer bytes moved, and *more* bytes stored: the results are written down, and the constants they came
# from are still there. Chapter 05 takes those away.
# %% recall
# Q: Why does a folded node keep its name?
# A: Its users read it by name. If the name stays, no user has to change, and the diff shows one line.
#
# Q: Why does `fold` call the op table instead of computing with Python numbers?
# A: So that the folded value is what the run would have given, in the node's own dtype, overflow and rounding included.
#
# Q: Name an operation without varying operands that must not be folded, and say why.
# A: A random draw (each run needs new numbers) or a print (it is there for its effect).
# %% glossary=03
