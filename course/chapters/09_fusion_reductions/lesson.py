# %% [markdown]
# # 09 Reductions: softmax, norms and attention in one launch
#
# *About 45 minutes. You need chapters 01 to 08. The exercises are in `exercises/09_fusion_reductions.ipynb`.*
#
# Attention compares each token with each other one. For 4,096 tokens that is a matrix of 17 million **scores**, 67 MB, in every
# head of every layer. A softmax turns each of its rows into shares, and the shares mix the rows of `v`.
#
# **The question:** how many of these 67 MB must be in memory?
#
# First, softmax alone.
# %%
import numpy as np

import minigraph as mg
from minigraph.command.tables import table
from minigraph.teach import predict


def softmax(x):
    m = np.max(x, axis=-1, keepdims=True)
    e = np.exp(x - m)
    return e / np.sum(e, axis=-1, keepdims=True)


graph = mg.trace(softmax, x="f32[512,1024]", name="softmax")
print(graph)
# %%
unfused = mg.make_plan(mg.fuse(graph, enabled=False))
trip = graph["x"].type.nbytes
predict("Five operations. How many trips of x's size through memory?", None,
        lambda: round(unfused.bytes_moved / trip))
# %%
rows = [{"launch": launch.name, "operands": " ".join(launch.reads),
         "read": round(launch.bytes_read / trip), "written": round(launch.bytes_written / trip)}
        for launch in unfused.launches]
print(table(rows))
fused = mg.fuse(graph)
print("unfused:", sum(row["read"] + row["written"] for row in rows), "trips; in one launch:",
      round(mg.make_plan(fused).bytes_moved / trip))
mg.draw_clusters(fused)
# %% [markdown]
# (`m` and `sum` are one number a row, hardly any bytes.) Two trips are the least: read `x`, write the result. But how can
# this be *one* loop? In chapter 08, a loop knew one element at a time.
#
# ## Walks
#
# The loop now goes over **rows**, and inside, it walks along one row: more than once. No element can be divided before the sum is
# complete, and the sum can't begin before the maximum is known. So **a reduction ends a walk**: its result is there only after
# the last element. Here are the same three lines for a small matrix.
# %%
from minigraph.teach.sources import source

print(source(mg.trace(softmax, x="f32[4,10]", name="softmax")))
# %% [markdown]
# Three walks over `j`. The row stays close in between: 1,024 numbers are 4 KB, and the first-level cache of a core holds 32 KB or more.
# Memory sees one read.
#
# The second walk and the third both need `e`. What to do with such a value? **Keep** it or **recompute** it. The generator
# recomputes what is cheap, such as a subtraction (the `d` of `layer_norm` below), and keeps what is dear: the exponentials lie in `e_row`. That array is as
# long as a row, not as the matrix.
#
# The norms work alike.
# %%
from minigraph.codegen.rows import Walks


def logsumexp(x):
    m = np.max(x, axis=-1, keepdims=True)
    return m + np.log(np.sum(np.exp(x - m), axis=-1, keepdims=True))


def rms_norm(x):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-5)


def layer_norm(x):
    d = x - np.mean(x, axis=-1, keepdims=True)
    return d / np.sqrt(np.mean(d * d, axis=-1, keepdims=True) + 1e-5)


def row_of(function):
    graph = mg.trace(function, x="f32[512,1024]", name=function.__name__)
    before, after = mg.make_plan(mg.fuse(graph, enabled=False)), mg.make_plan(graph)
    walks = Walks(after, after.launches[-1])
    return {"function": graph.name, "launches": len(before.launches), "fused": len(after.launches),
            "walks": walks.count, "kept": " ".join(walks.kept) or "-",
            "trips": round(before.bytes_moved / trip), "fused trips": round(after.bytes_moved / trip)}


predict("Walks over a row: softmax has 3. And layer_norm?", None, lambda: row_of(layer_norm)["walks"])
# %%
print(table([row_of(function) for function in (softmax, logsumexp, rms_norm, layer_norm)]))
# %% [markdown]
# Log-sum-exp has one number a row as its result: it needs no third walk, and writes nearly nothing. RMSNorm has one reduction less than
# layer-norm, so one walk less. And layer-norm computes `d` twice rather than keep it.
#
# What do the trips cost? A matrix that is too large for the caches:
# %% nbval-ignore-output
from minigraph.compiler import find_compiler
from minigraph.measure import compare
from minigraph.teach import launches

x = np.random.default_rng(0).standard_normal((8192, 1024)).astype(np.float32)
large = mg.trace(softmax, x="f32[8192,1024]", name="softmax")
contenders = {"NumPy": lambda: softmax(x)} | launches.compiled(large, x=x)
times = list(compare(contenders, seconds=1).items())
faster = {name: round(time.times_faster(times[0][1]), 1) for name, time in times}
assert not find_compiler() or list(faster.values())[-1] > 1
print("times as fast as NumPy:", faster)
# %% [markdown]
# Compare the two C programs. A quarter of the trips is left, but more than a quarter of the time: both compute an exponential for
# each element, and fusion takes none of that away. (The first step, from NumPy to C, is not fusion.)
#
# ## The wrong axis on a square matrix
#
# Somebody forgets `keepdims`. With 32 rows of 64, the tracer objects, as NumPy would:
# %%
def centre(x):
    return x - np.sum(x, axis=1)


try:
    mg.trace(centre, x="f32[32,64]")
except mg.errors.MinigraphError as error:
    print(str(error).partition(": ")[2])
square = mg.trace(centre, x="f32[64,64]", name="centre")
print(square)
# %% [markdown]
# With 64 rows of 64 it is a valid graph. It subtracts from each *column* the sum of the *row* with the same number. That is
# hardly meant, but a compiler must compute what is written. A fuser that only looks at shapes sees "one number a row" and "whole
# rows", and puts them together: wrong.
# %%
from textwrap import fill

print(fill(mg.explain(mg.fuse(square), "sum"), 100))
# %% [markdown]
# So `fuse` follows each axis from the reduction to its reader. Lengths prove nothing.
#
# With `axis=0`, each column would lose its own sum: one launch, which walks along columns. A launch may walk either way, not both.
#
# ## Maximum and sum in one walk
#
# Softmax walks once for the maximum, only so that `exp` doesn't overflow. If a row is long, or its elements have to be computed first, a
# walk is expensive. Do both at once? We would sum with a maximum that is not final.
#
# Do it anyway, and **repair** the sum whenever a larger element comes:
# %%
def online(row):
    m, s = -np.inf, 0.0
    for x in row:
        top = max(m, x)
        s = s * np.exp(m - top) + np.exp(x - top)
        m = top
        yield m, s


row = np.cumsum(np.random.default_rng(14).standard_normal(48))
m, s = zip(*online(row))
print(f"in one walk:  {m[-1]:.4f} {s[-1]:.4f}")
print(f"in two walks: {row.max():.4f} {np.exp(row - row.max()).sum():.4f}")
# %%
curves = {name: list(enumerate(values, 1)) for name, values in {"x": row, "m": m, "s": s}.items()}
mg.draw_curves(curves, x_label="elements so far", y_label="value", log="", steps=True,
               title="running maximum m and running sum s")
# %% [markdown]
# Each time `m` rises, what `s` has so far shrinks. Why is that right? Let *m* be the old maximum, *M* the new one, and *s* = Σ exp(x − *m*). Then
#
# > exp(x − *M*) = exp(x − *m*) · exp(*m* − *M*), for each x so far.
# >
# > So their sum is *s* · exp(*m* − *M*), and the new element adds exp(x − *M*).
#
# One factor repairs all terms, however many they were. It is at most 1, so nothing overflows. This is **online softmax** (Milakov and
# Gimelshein, 2018). Only rounding differs, as with any other order of adding.
#
# ## Minus infinity
#
# Attention masks: what a token may not see gets the score -inf, and exp(-inf) = 0.
# %%
cases = {"large": [1000, 1001, 1002], "masked": [0, -np.inf, 1], "begins masked": [-np.inf, 0, 1],
         "all masked": [-np.inf, -np.inf]}
with np.errstate(all="ignore"):
    print(table([{"row": name, "sum of exp(x)": f"{np.exp(values).sum():.4g}",
                  "online m": f"{list(online(values))[-1][0]:.4g}",
                  "online s": f"{list(online(values))[-1][1]:.4g}",
                  "softmax": np.array2string(softmax(np.array(values, float)), precision=3)}
                 for name, values in cases.items()]))
# %% [markdown]
# Large numbers are fine. But the third row has a proper softmax, and `online` gives NaN: at the first element it computes
# -inf − -inf. The remedy: while the maximum is -inf, subtract 0 in its place. The exponentials are then 0, and the pair stays (-inf,
# 0). When *all* is masked, NumPy's softmax has the same −inf − -inf, so all shares are NaN. With the remedy they are 0/0:
# NaN as well, for NumPy's numbers. (Python's own raise ZeroDivisionError.)
#
# ## Two halves
#
# A pair (*m*, *s*) tells all about a part of a row. So two parts can be **merged**: shrink both sums to the larger maximum, and add.
#
# > (*m₁*, *s₁*) + (*m₂*, *s₂*) = (*M*, *s₁* · exp(*m₁* − *M*) + *s₂* · exp(*m₂* − *M*)), with *M* = max(*m₁*, *m₂*)
#
# Merging is **associative**: (a + b) + c = a + (b + c), up to rounding. And (-inf, 0) is its zero. So the parts may be computed by
# anybody, in any order: lanes of a vector register, the 256 threads of a block, several GPUs.
# %%
def merge(a, b):
    top = max(a[0], b[0])
    return top, a[1] * np.exp(a[0] - top) + b[1] * np.exp(b[0] - top)


a, b, c = (list(online(part))[-1] for part in np.split(row, 3))
ways = {"(a + b) + c": merge(merge(a, b), c), "a + (b + c)": merge(a, merge(b, c))}
for name, (m, s) in ways.items():
    print(f"{name}: {m:.4f} {s:.4f}")
# %% [markdown]
# ## Attention
#
# The scores come out of a product, and go into a second one.
# %%
def attention(q, k, v):
    return softmax(q @ k.T * 0.125) @ v


def traced(n):
    return mg.trace(attention, name="attention", q=f"f32[{n},64]", k=f"f32[{n},64]", v=f"f32[{n},64]")


n = 4096
ways = {"unfused": mg.fuse(traced(n), enabled=False), "softmax fused": mg.fuse(traced(n)),
        "one launch": mg.fuse(traced(n), rows=n)}
plans = {name: mg.make_plan(way) for name, way in ways.items()}
predict("Unfused: 8 launches. How many fused, with the two products left to a library?", None,
        lambda: len(plans["softmax fused"].launches))
# %%
print(table([{"way": name, "launches": len(plan.launches), "MB moved": round(plan.bytes_moved / 1e6),
              "MB between the launches": round(plan.arena_bytes / 1e6, 1)}
             for name, plan in plans.items()]))
mg.draw_clusters(mg.fuse(traced(n), rows=n))
# %% [markdown]
# With softmax fused, it is 3: scaling and softmax are one, between the products. (Number 1 in the picture is a view: no launch.) One
# matrix is enough even unfused: a launch writes over an operand that nobody needs any more. But while the two products are apart, it must be stored.
#
# In one launch it need not be. Take a **tile** of 128 keys. Compute 128 scores of a row, update *m* and *s*, and carry a third
# running value: the **mixture** Σ exp(x − *m*) · v. It was made with the old maximum, so it shrinks by the same factor. Then forget the tile.
# These lines of the generated C are about the running values:
# %%
words = ("i = 0", "tile[128]", "first = 0", "largest", "shrink", "total")
code = source(ways["one launch"]).splitlines()[1:]
shown = [line if any(word in line for word in words) else "  …" for line in code]
print(*[line for line, before in zip(shown, ["", *shown]) if line != before], sep="\n")
both = sum(plans["one launch"].graph[name].type.nbytes for name in "kv")
print(f"k and v: {both / 1e6:.1f} MB, read for each of {n:,} rows: {n * both / 1e9:.1f} GB")
# %% [markdown]
# `part[0]` is at first the tile's maximum, and then its sum. `shift` is our remedy for -inf. The division comes last, once for
# each number of the result. The loads of `k` and `v` are the caches' work: the table
# counts each operand once.
#
# On a CPU, minigraph asks a library for large products and leaves the launches apart; `rows=n` says: generate. A GPU's
# FlashAttention (Dao, 2022) also takes many queries at a time, so that a tile of `k` and `v` is read once for all of them.
#
# ## Memory over the length
# %%
def memory(plan):
    return plan.arena_bytes + sum(r.nbytes for r in plan.regions.values() if r.where != "arena")


lengths = [128, 256, 512, 1024, 2048, 4096]
mg.draw_curves({"scores stored": [(n, memory(mg.make_plan(traced(n)))) for n in lengths],
                "in tiles": [(n, memory(mg.make_plan(mg.fuse(traced(n), rows=n)))) for n in lengths]},
               x_label="tokens", y_label="memory of one head", y_unit="B", x_ticks=lengths,
               title="n² against n: inputs, result, and all between")
# %% [markdown]
# With the scores stored, twice the length soon is four times the memory. In tiles it is twice: `q`, `k`, `v` and the result. That answers
# the question: of the 67 MB, none; 128 scores for each row in work. The multiplications hardly change. **FlashAttention is algebra plus memory**: a sum that can be repaired, and so a matrix that
# never is.
#
# ## Is it right?
#
# Not to the bit: the terms are added in another order. So compare with float64, and ask for a **rounding bound**. Let *u* be half of
# float32's spacing at 1. A sum of *n* terms, in any order, is off by about *n* · *u* · Σ|terms| at most. That happens in two places:
#
# - A score is a sum of 64 products, off by δ. Its exponential is off by the factor exp(δ). Large `q` and `k` make a large δ.
# - The mixture and the sum of the exponentials have *n* terms each.
#
# The result is a quotient, so both count twice. We double once more, for `exp`, shrinking and dividing.
# %% nbval-ignore-output
from minigraph.backends import bind

u = 2.0**-24


def error_and_bound(n, scale):
    draw = np.random.default_rng(0)
    arrays = {name: draw.standard_normal((n, 64)).astype(np.float32) for name in "qkv"}
    arrays |= {name: arrays[name] * np.float32(scale) for name in "qk"}
    run = bind(mg.make_plan(mg.fuse(traced(n), rows=n)), "c" if find_compiler() else "numpy")
    q, k, v = (array.astype(np.float64) for array in arrays.values())
    shares = softmax(q @ k.T / 8)
    delta = 64 * u * (np.abs(q) @ np.abs(k).T / 8).max(axis=1, keepdims=True)
    bound = 2 * 2 * (np.expm1(delta) + n * u) * (shares @ np.abs(v))
    return np.abs(run(arrays)["out"] - shares @ v), bound


for n, scale in ((512, 1), (16, 8), (16, 1 / 8)):
    off, bound = error_and_bound(n, scale)
    assert (off <= bound).all()
    print(f"{n} tokens, q and k times {scale}: largest error {(off / bound).max():.1%} of its bound")
# %% [markdown]
# ## Write it
#
# Open `exercises/09_fusion_reductions.ipynb`. You merge, walk once, count walks, and refute a fuser that looks at shapes only.
#
# ## The same kernels in a real compiler
# %% exhibit=inductor-softmax
# %% [markdown]
# Our three walks, and our scratch row. And attention?
# %% exhibit=inductor-attention
# %% [markdown]
# Like minigraph, it finds the whole by its shape in the graph. One more reader of the scores, and they have to be stored.
#
# ## The scoreboard
# %%
from minigraph.teach.examples import frozen_layer
from minigraph.teach.score import scoreboard

scoreboard("fold", "simplify", "dce", "cse", "fuse", device="a100")
plan = mg.make_plan(mg.optimize(frozen_layer()).graph)
for launch in plan.launches:
    if launch.kind == "reduce":
        print("one launch:", ", ".join(launch.nodes))
# %% [markdown]
# Two of the last 15 launches are rows: the RMSNorm, and the softmax with the scaling before it.
# %% recall
# Q: Why does softmax need three walks over a row, and RMSNorm two?
# A: A reduction's result is there only at the end of a walk. Softmax has two that wait for each other, then the elements; RMSNorm has one.
#
# Q: A larger maximum M replaces m. What happens to the running sum, and why is that exact?
# A: It is multiplied by exp(m - M), because exp(x - M) = exp(x - m) · exp(m - M) for each term.
#
# Q: What does FlashAttention save, and what not?
# A: The memory and the traffic of the n × n scores. The multiplications stay.
# %% glossary=09
