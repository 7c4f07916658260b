# %% [markdown]
# # 08 Fusion: fewer trips to memory
#
# *About 45 minutes. You need chapters 01 to 07. The exercises are in `exercises/08_fusion.ipynb`.*
#
# GELU is the activation of GPT-2. In NumPy it is one line. A million numbers fill an array of 4 MB, and an operation
# reads such arrays from memory, or writes one. Call each array that is read or written a **trip**.
#
# **The question:** how many trips does this one line make, and how many would do?
# %%
import numpy as np

import minigraph as mg
from minigraph.command.tables import table
from minigraph.teach import predict


def gelu(x):
    return 0.5 * x * (1 + np.tanh(0.7978846 * (x + 0.044715 * x * x * x)))


graph = mg.trace(gelu, x="f32[1000000]", name="gelu")
print(graph)
# %%
unfused = mg.make_plan(mg.fuse(graph, enabled=False))
trip = graph["x"].type.nbytes
predict("How many trips does the line make?", None, lambda: unfused.bytes_moved // trip)
# %% [markdown]
# Count with the table. Each operation of NumPy writes a whole array, and the next one reads it back. (The constants `c` are numbers
# in the code and cost no trip.)
# %%
rows = [{"launch": launch.name, "operands": " ".join(launch.reads), "read": launch.bytes_read // trip,
         "written": launch.bytes_written // trip} for launch in unfused.launches]
print(table(rows))
print("together:", sum(row["read"] + row["written"] for row in rows), "trips")
# %% [markdown]
# The work itself could be done in two: read `x` once, write the result once. Everything in between is a number that is used at
# once and never again.
#
# ## One loop
#
# **Fusion** puts operations into one loop. For element `i` it does all nine, and then goes on to element `i + 1`. The graph
# stays as it is. `fuse` gives a **partition** beside it: each node is in exactly one group, and each group becomes one launch.
# %%
fused = mg.fuse(graph)
mg.draw_clusters(fused)
# %%
from minigraph.teach.charts import bars

plan = mg.make_plan(fused)
bars("what goes through memory", {
    "nine launches": unfused.bytes_moved / 1e6,
    "one launch": plan.bytes_moved / 1e6}, "MB")
# %% [markdown]
# Fusion gains three things. **Traffic**: values stay in registers, the few places inside the processor that cost nothing to reach.
# **Launches**: one instead of nine (chapter 07). And **instruction-level parallelism**: a processor works on several elements at a
# time. While one waits for memory, it computes others, and there are nine operations to overlap with each wait now, not one.
#
# ## What is generated
#
# A group is almost a program already. Each node becomes a line under its own name, and only the last one is stored. (A dot is no
# letter of C, and `tanh` is taken: hence `mul_1` and `tanh_1`.)
# %%
from minigraph.dialect import CUDA
from minigraph.teach.sources import loads_and_stores, show_kernels, source

show_kernels(graph)
# %% [markdown]
# The body is the same text for both machines. On the CPU there is a loop around it; `ivdep` and `restrict` promise that no store
# changes what another element reads, so the compiler may take several at a time. On the GPU a million threads run the body, each for
# its own `i`. Five nodes use `x`, and it is read once, into `x_i`.
#
# Does the compiler store any of these in memory? **PTX**, its output, is assembly for an imagined GPU with any number of registers; a
# last step fits it to a real one, which has enough for ten values. `ld.global` is a load from the GPU's memory, `st.global` a store.
# (Without NVIDIA's compiler you see recorded counts.)
# %%
nine, one = loads_and_stores(graph, fused=False), loads_and_stores(graph)
total = {"launch": "all nine", "loads": sum(row["loads"] for row in nine),
         "stores": sum(row["stores"] for row in nine)}
print(table([*nine, total, one[0] | {"launch": "fused"}]))
print(f"operations for each access: {9 / (total['loads'] + total['stores']):.2g},"
      f" and fused {9 / (one[0]['loads'] + one[0]['stores']):.2g}")
# %% [markdown]
# For each element, 22 accesses to memory became two: the trips of the table above.
#
# ## One line is not one loop
#
# It looks as if NumPy could do that, too: it has the whole line. But it never sees the line. Python calls `multiply`, then the next
# one, and each goes through its whole array first. How many arrays live at the worst moment? An array that nobody needs is dropped,
# or written over.
# %%
import tracemalloc


def peak(function):
    tracemalloc.start()
    function()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most / trip


x = np.linspace(-3, 3, 1_000_000, dtype=np.float32)
predict("x is there already. How many more arrays of its size are in memory at the peak?", None,
        lambda: round(peak(lambda: gelu(x))))
# %%
from minigraph.compiler import find_compiler

print(f"NumPy, one line:  {peak(lambda: gelu(x)):.1f} arrays at the peak")
result = sum(region.nbytes for region in plan.regions.values() if region.where == "output")
planned = (result + plan.arena_bytes) / trip
print(f"fused, as planned: {planned:.1f}")
if find_compiler():
    kernel = mg.compile(graph, backend="c")
    assert abs(peak(lambda: kernel(x=x)) - planned) < 0.01
# %% [markdown]
# The answer is three: `0.5 * x` waits for its partner while `tanh` reads one array and writes another. The fused kernel makes the
# result and nothing else.
#
# ## And the time?
#
# Each contender has its memory ready beforehand, except NumPy's line. "9 loops" is unfused C: it pays the trips, and not the calls
# from Python.
# %% nbval-ignore-output
from minigraph.launch_model import quantity
from minigraph.measure import compare, measure
from minigraph.teach import launches


def speeds(sizes):
    for n in sizes:
        x = np.linspace(-3, 3, n, dtype=np.float32)
        y = np.empty_like(x)
        c = launches.compiled(mg.trace(gelu, x=f"f32[{n}]", name="gelu"), x=x)
        c = dict(zip(("C, 9 loops", "C, 1 loop"), c.values()))
        programs = {"NumPy": lambda: gelu(x), "copying x": lambda: np.copyto(y, x)} | c
        times = compare(programs, seconds=0.3)
        yield {"elements": n, **{name: quantity(one.median, "s") for name, one in times.items()},
               **{f"{name} / 1 loop": round(times["C, 1 loop"].times_faster(times[slow]), 1)
                  for name, slow in (("9 loops", "C, 9 loops"), ("NumPy", "NumPy")) if c}}


speed = measure("gelu", live=lambda: list(speeds((1_000, 100_000, 4_000_000))))
assert not find_compiler() or speed.rows[-1]["NumPy / 1 loop"] > 1
speed
# %% [markdown]
# The last two columns say how many times as fast one loop is. Over nine loops it gains the **trips** alone. 1,000 elements are 4 KB
# and stay in the **cache**, a small memory inside the processor, where a trip is cheap: less is gained. Over NumPy it gains the
# nine **calls** from Python as well: in small arrays, most of it.
#
# *Copying x*, which computes nothing, is the floor. The rest of the distance is `tanh`. A fused loop is only as
# quick as its slowest function, and NumPy's `tanh` is a very good one, made of vector instructions; with C's usual `tanhf`, one
# element after the other, the fused loop would lose. That is why minigraph brings its own, in `minigraph/vectormath.h`.
#
# ## When a node must stay alone
#
# So why not put the whole model into one loop? Because a loop holds one element at a time, and stores only its last value. A node
# does not join the loop of its readers if
#
# - its value must be stored: the caller gets it, or its readers are in two launches;
# - its reader wants the whole array: a product, or a print;
# - it is itself no work element by element: a print, a draw of random numbers, or a product of many rows (a library does it);
# - the loop is larger than it is: broadcast, it would be computed again and again.
#
# Here is a graph with all of these. Go through it from the last node to the first.
# %%
stops = mg.parse("""
graph stops(x: f32[64,64], v: f32[64], w: f32[64,64]) -> (seen, y) {
  seen = exp(x)
  twice = neg(seen)
  p = matmul(twice, w)
  narrow = exp(v)
  noise = random() {shape=[64,64], site=0} : f32[64,64]
  a = add(p, twice)
  b = add(a, narrow)
  c = add(b, noise)
  shown = print(c) {label="c"}
  y = maximum(c, x)
  return seen, y
}""")
predict("It has ten operations. How many launches are left?", None,
        lambda: len(mg.make_plan(stops).launches))
# %%
stopped = mg.fuse(stops)
mg.draw_clusters(stopped)
# %%
from textwrap import fill

for name in ("seen", "twice", "p", "narrow", "noise", "c"):
    print(fill(mg.explain(stopped, name), 100), end="\n\n")
# %% [markdown]
# The answer is above the picture. Only `a`, `b` and `c` share a loop.
#
# Each reason comes from a **legality predicate**: a small function that says nothing, or why not. They are in
# `minigraph/fusion.py`, in a table called `PREDICATES`.
#
# `fuse` itself is one walk from the last node to the first. When it comes to a node, it knows where all its readers (its *users*)
# are. The node joins them if they are in *one* group and no predicate objects.
#
# ## The grouping that cannot run
#
# Why must *all* readers be in one group? This is a residual connection, as in every transformer: `r` goes into the product, and around
# it. `r` and `y` are both element-wise and of one shape. Put them into one loop:
# %%
residual = mg.parse("""
graph residual(x: f32[64,64], w: f32[64,64]) -> (y) {
  r = tanh(x)
  p = matmul(r, w)
  y = add(p, r)
  return y
}""")
mg.draw_clusters(residual, groups=[("r", "y"), ("p",)])
# %% [markdown]
# Group 1 needs `p`. Group 2 needs `r`. Neither can run first: a **cycle**, though the graph has none.
#
# With the rule, there can be none. Every member of a group leads to the last value, for all that reads it is inside as well. So the
# only way out is the last value. If a way led from there back to an operand of a member, it would go on to the last value, and
# the graph itself would have a cycle.
#
# ## Computing twice
#
# Two of the refusals could be overruled: compute the value again in each loop that needs it. `narrow` has 64 elements, and `b` has
# 4,096. Inside the loop over `b`, how many exponentials are that?
# %%
narrow, b = stops["narrow"].type.size, stops["b"].type.size
print("exp apart:", narrow, " in the loop over b:", b, " times as many:", b // narrow)
# %% [markdown]
# Stored, `narrow` costs two trips of 256 bytes. So minigraph stores, always. Real compilers weigh: a multiplication is cheaper
# than a trip, an exponential is not. Each `one loop` below is a launch, with what it computes:
# %% exhibit=xla-copies
# %% [markdown]
# ## The epilogue
#
# Chapter 07 used the epilogue to save launches. Products of at most `ROWS` rows are generated, so what follows them may join. Here: a
# product, a bias and GELU.
# %%
layer = mg.trace(lambda h, w, b: gelu(h @ w + b), name="layer",
                 h="f32[1,768]", w="f32[768,3072]", b="f32[3072]")
print("ROWS:", mg.fusion.ROWS)
print(mg.explain(mg.fuse(layer), "matmul"), end="\n\n")
print(source(layer, CUDA))
# %% [markdown]
# Eight threads share each sum of the product. One of them adds the parts up, in `matmul`, and goes on: bias and GELU, in registers, and
# one store. Does that save much traffic?
# %%
apart, together = mg.make_plan(mg.fuse(layer, enabled=False)), mg.make_plan(layer)
bars("a layer at batch 1: what goes through memory", {
    f"{len(apart.launches)} launches": apart.bytes_moved / 1e6,
    f"{len(together.launches)} launch": together.bytes_moved / 1e6,
    "the weights alone": layer["w"].type.nbytes / 1e6}, "MB")
# %% [markdown]
# No. The weights are read in any case, and they are nearly all. At batch 1 an epilogue saves launches, and hardly any bytes.
#
# ## What fusion cannot win
#
# And with 128 rows, on a CPU? This is the second half of a GPT-2 block, without its norm: two products, and element-wise work on
# what they give.
# A library does the products. We fuse the rest.
# %% nbval-ignore-output
def rest(h, o, x, b1, b2):
    return gelu(h + b1), x + (o + b2)


draw = np.random.default_rng(0)
x, w1, w2, b1, b2 = (draw.standard_normal(shape).astype(np.float32) / 30 for shape in
                     ((128, 768), (768, 3072), (3072, 768), 3072, 768))
h, o = x @ w1, x @ w1 @ w2
given = dict(h=h, o=o, x=x, b1=b1, b2=b2)
parts = mg.trace(rest, **{name: mg.spec(f"f32{list(array.shape)}") for name, array in given.items()})
kernels = mg.compile(parts, backend="c" if find_compiler() else "numpy")
times = compare({"two products": lambda: (x @ w1, h @ w2), "the rest in NumPy": lambda: rest(**given),
                 "the rest, fused": lambda: kernels(given)}, seconds=0.7)
products, plain, quick = (one.median for one in times.values())
print({name: quantity(one.median, "s") for name, one in times.items()})
print(f"the rest is {plain / quick:.1f} times as fast, and all together"
      f" {(products + plain) / (products + quick):.2f} times")
# %% [markdown]
# The last number is small, however quick the fused kernels are. What a part can win is bounded by its share: **Amdahl's law**.
# Fusion wins where trips decide, in element-wise chains over large arrays, and where launches or calls do: in small arrays, at batch
# one. In wide products, the library decides.
#
# ## Write it
#
# You need `users(graph)`: for each value the names of the nodes that read it, once for each operand.
# %%
nodes, readers = mg.defs(residual), mg.users(residual)
print(readers)
print({name: mg.ops.OPS[nodes[name].op].kind.value for name in ("r", "p", "y")})
# %% [markdown]
# Open `exercises/08_fusion.ipynb`. You count the bytes of a grouping, write the fuser, turn a group into C that runs, and refute two fusers.
#
# ## The same line in a real compiler
# %% exhibit=inductor-fuses
# %% [markdown]
# One load, one store, one line a node. You could have written this compiler.
#
# ## The scoreboard
# %%
from minigraph.teach.score import scoreboard

scoreboard("fold", "simplify", "dce", "cse", "fuse", device="a100")
# %% [markdown]
# The nodes stay: fusion changes no graph. The launches and the bytes go. Some of these groups hold a sum or a maximum. How can a loop
# over single elements do that? That is chapter 09.
# %% recall
# Q: What does fusion save, and where do the values go?
# A: Trips to memory and launches. A value that only its own group reads stays in a register.
#
# Q: Why is one line of NumPy not one loop?
# A: Python calls one operation after the other, and each goes through its whole array. Nobody sees the line.
#
# Q: Why may a node join only if all its readers are in one group?
# A: Otherwise its value is needed outside and must be stored, or computed twice; and a way out and back in would be a cycle.
# %% glossary=08
