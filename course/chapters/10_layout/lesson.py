# %% [markdown]
# # 10 Layout: removing transposes can hurt
#
# *About 45 minutes. You need chapters 01 to 09. The exercises are in `exercises/10_layout.ipynb`.*
#
# Here is a transformer layer as people write it: weights the wrong way round, a softmax along the first axis because
# the formula was written so, columns where rows would do.
#
# **The question:** how many of its transposes must move a byte?
# %%
import numpy as np

import minigraph as mg
from minigraph.command.tables import table
from minigraph.teach import predict


def rms(x):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + np.float32(1e-5))


def layer(x, wq, wk, wv, wo, w1, w2):
    length, width = x.shape
    heads = 4

    def split(y):
        return y.reshape(length, heads, width // heads).transpose(1, 0, 2)

    n = rms(x)
    q, k, v = split(n @ wq.T), split(n @ wk.T), split(n @ wv.T)
    scores = (q @ k.transpose(0, 2, 1)) / np.float32(4)
    s = scores.transpose(0, 2, 1)  # keys first
    e = np.exp(s - np.max(s, axis=-2, keepdims=True))
    share = (e / np.sum(e, axis=-2, keepdims=True)).transpose(0, 2, 1)
    x = x + (share @ v).transpose(1, 0, 2).reshape(length, width) @ wo.T
    return x + (w2 @ np.tanh(w1 @ rms(x).T)).T


square = dict.fromkeys(("wq", "wk", "wv", "wo"), "f32[64,64]")
naive = mg.trace(layer, name="layer", x="f32[32,64]", **square, w1="f32[256,64]", w2="f32[64,256]")
transposes = [node for node in naive.nodes if node.op == "transpose"]
print(len(naive), "nodes, of which transposes:", len(transposes))
# %% [markdown]
# ## A transpose moves nothing
#
# Memory is one long row of cells. An array with two axes is a way to read it: its **strides** say how far one step
# along each axis goes. Here are 12 numbers as 3 rows of 4.
# %%
from minigraph.drawing import stride_ruler

stride_ruler("f32[3,4]")
# %% [markdown]
# One step to the right is one cell. One step down is four. Now its transpose:
# %%
stride_ruler("f32[3,4]", perm=(1, 0))
# %% [markdown]
# The cells are the same ones. Only the two strides have changed places. The last row says when a cell's turn comes:
# after cell 0 comes cell 4, then cell 8. NumPy (which counts strides in bytes) does just that:
# %%
x = np.arange(12, dtype=np.float32).reshape(3, 4)
print("x:  ", x.shape, x.strides)
print("x.T:", x.T.shape, x.T.strides, "shares memory:", np.shares_memory(x, x.T))
print("in one row:", x.T.reshape(12)[:5], "shares memory:", np.shares_memory(x, x.T.reshape(12)))
# %% [markdown]
# An array is **contiguous** when reading it in order walks the cells one by one. `x` is, `x.T` is not. The last
# line shows when a transpose begins to cost: `reshape` wants the elements in *their* order, one after another. No
# strides do that. So NumPy copied.
#
# ## What a strided read costs
#
# Memory comes in **cache lines** of 64 bytes, 16 floats. Reading row by row uses all 16. Reading down a column of a
# wide matrix uses one, and by the time its neighbour is wanted, the line may be gone.
# %%
predict("Copying x.T of a 2048 x 2048 matrix: how many times as long as copying x?", None)
# %% nbval-ignore-output
from minigraph.launch_model import quantity
from minigraph.measure import compare

big = np.ones((2048, 2048), np.float32)
to = np.empty_like(big)
programs = {"copy x": lambda: np.copyto(to, big), "copy x.T": lambda: np.copyto(to, big.T)}
times = compare(programs, seconds=0.2)
print({name: quantity(one.median, "s") for name, one in times.items()},
      f"{times['copy x'].times_faster(times['copy x.T']):.1f} times as long")
assert times["copy x.T"].median > times["copy x"].median
# %% [markdown]
# The same bytes, in another order. Sixteen cache lines are read where one would do, so it may take 16 times as long, or
# longer: 2048 floats further is another page of memory, to be looked up. A GPU is stricter: 32 threads read together,
# and that makes few trips only if their cells are neighbours (**coalesced access**).
#
# So a copy that turns is dear, and we count it: **bytes moved by layout**. A transpose is free until somebody needs
# its elements in order. Then it is one copy, a read and a write, for all its readers together.
#
# **Who needs them in order?** In our count: an output, and every operation but two. Another transpose only changes the
# strides once more. And `matmul` has flags, below. All others, even `exp` and `add`, read their operands one cell
# after another.
#
# ## Two transposes annihilate
#
# Axis *i* of `transpose(x, p)` is axis *p[i]* of x. So axis *i* of a second transpose, by *q*, is axis *q[i]* of the
# middle, and axis *p[q[i]]* of x. Two permutations **compose** into one. If the one is (0, 1, 2), both are gone.
# %%
sizes = np.empty((10, 20, 30))
swap, turn, back = (1, 0, 2), (1, 2, 0), (2, 0, 1)
print(table([{"p": p, "q": q, "shape by NumPy": sizes.transpose(p).transpose(q).shape,
              "p[q]": tuple(p[axis] for axis in q), "q[p]": tuple(q[axis] for axis in p)}
             for p, q in ((swap, swap), (turn, turn), (turn, back), (turn, swap))]))
# %% [markdown]
# Row 2: equal permutations do not cancel if they rotate three axes. Row 4: the order matters, and *p[q]* is what NumPy
# does. A compiler that looks for equal pairs, or composes backwards, is right for matrices: two axes have one swap.
#
# ## Sinking
#
# Mostly, something stands between the two. But `exp` works on each element alone: it gives the same numbers in x's
# order as in the transpose's. So the transpose may as well come after it: it **sinks**, until it meets its partner. A
# reduction lets it through, too, if its axes get new numbers.
# %%
from minigraph.passes import layout

between = mg.parse("""
graph between(x: f32[2,3,4]) -> (y) {
  t = transpose(x) {perm=[1,2,0]}
  e = exp(t)
  m = max(e) {axis=[-3]}
  y = transpose(m) {perm=[1,0]}
  return y
}""")
result = layout(between)
mg.draw_diff(between, result.graph)
# %% [markdown]
# The transpose has the shape [3,4,2]. Axis -3 is its axis 0, and that is axis *p[0]* = 1 of x. Somebody who left the
# -3 alone would reduce axis 0 of x. First count from the end, then renumber. What is left, axes 0 and 2 of x, stood
# the other way round, so the sunk transpose is [1,0]. With `y` it cancels.
# %%
steps = dict.fromkeys((step.rule, " ".join(step.before), step.why) for step in result.report)
print(table([dict(zip(("rule", "value", "why"), step)) for step in steps]))
# %% [markdown]
# Element-wise results keep every bit. A float *sum* may meet its terms in another order, and round differently.
#
# ## Flags of a product
#
# `x @ w.T` needs no copy either. A library for products takes, for each operand, how far apart its rows are, and a
# **flag**: read it transposed. Both are strides, by another name: a matrix stored row by row (**row-major**) is its
# transpose stored column by column (**column-major**). So a transpose that only shuffles whole rows, such as (1, 0, 2),
# is free if a product reads it: the rows are read in place, a stride apart. And one of the last two axes flips a flag:
# %%
def product(x, w):
    return (x @ w.T).T


flags = mg.trace(product, x="f32[8,16]", w="f32[32,16]", name="product")
print(mg.print_diff(flags, layout(flags).graph))
# %% [markdown]
# The transpose of the *result* went, too: (A B)ᵀ = Bᵀ Aᵀ. And if the weight is a constant, chapter 03 can turn it for
# good:
# %%
from minigraph.passes import fold

frozen = mg.trace(lambda x: x @ mg.constant(np.ones((32, 16), np.float32)).T, x="f32[8,16]")
for name, after in (("layout", layout(frozen).graph), ("fold", fold(frozen).graph)):
    print(f"{name:7}", mg.node_line(after.nodes[-1]), "| w is", after.nodes[-1].inputs[1],
          "of shape", after[after.nodes[-1].inputs[1]].type.shape)
# %% [markdown]
# ## NCHW or NHWC
#
# Images have a batch (N), channels (C), a height and a width. Is C the second axis, or the last? With C last, the
# channels of a pixel are neighbours. Many GPU kernels want that; our `conv2d` wants them second. Take a norm over the
# channels, in both.
# %%
def norm(x, axis):
    d = x - np.mean(x, axis=axis, keepdims=True)
    return d / np.sqrt(np.mean(d * d, axis=axis, keepdims=True) + np.float32(1e-5))


shapes = {"NCHW": ((4, 128, 32, 32), 1), "NHWC": ((4, 32, 32, 128), 3)}
for name, (shape, axis) in shapes.items():
    print(name, "from one channel to the next:", np.empty(shape, np.float32).strides[axis], "bytes")
predict("Our C sums over the channels of each pixel. Is NCHW faster for it, or NHWC?", None)
# %% nbval-ignore-output
from minigraph.compiler import find_compiler

programs = {}
for name, (shape, axis) in shapes.items():
    image = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    programs[f"NumPy {name}"] = lambda image=image, axis=axis: norm(image, axis)
    if find_compiler():
        graph = mg.trace(lambda x: norm(x, axis), x=f"f32{list(shape)}", name="norm")
        programs[f"C {name}"] = lambda run=mg.compile(graph, backend="c"), image=image: run(x=image)
times = compare(programs, seconds=0.3)
print({name: quantity(one.median, "s") for name, one in times.items()})
assert not find_compiler() or times["C NHWC"].median < 1.5 * times["C NCHW"].median
# %% [markdown]
# The answer: NHWC, where the channels that our C sums lie side by side. NCHW is not far behind: there the pixels do, and
# our C takes several along. NumPy adds whole planes: for it NCHW is as good, or better. **No layout is best in itself:
# it depends on who reads.** So a compiler asks each kernel what it wants, and puts transposes between those that
# disagree. This net does it by hand, around each convolution. Each of its four transposes is read by somebody who needs
# order: a convolution, `y + bias`, or whoever gets the output.
# %%
from minigraph.passes.axes import bytes_moved_by_layout


def net(x, k1, bias, k2):
    y = mg.conv2d(x.transpose(0, 3, 1, 2), k1).transpose(0, 2, 3, 1)
    y = np.maximum(y + bias, np.float32(0))
    return mg.conv2d(y.transpose(0, 3, 1, 2), k2).transpose(0, 2, 3, 1)


image = mg.trace(net, x="f32[1,32,32,16]", k1="f32[16,16,3,3]", bias="f32[16]", k2="f32[16,16,3,3]")
inside = layout(image).graph
for graph in (image, inside):
    print(sum(node.op == "transpose" for node in graph.nodes), "transposes, bytes moved by layout:",
          bytes_moved_by_layout(graph))
print(*[mg.node_line(inside[name]) for name in ("add.reshape", "add.add")], sep="\n")
# %% [markdown]
# Inside, all is NCHW. Only the ends still turn. The bias, one number a channel, was laid out anew: a reshape, which
# moves nothing.
#
# ## When removing hurts
#
# So why not let every transpose sink? Here `t` has two readers. (And `s` reads `x` as it lies.)
# %%
kept = mg.parse("""
graph kept(x: f32[1024,1024]) -> (y, z, s) {
  t = transpose(x) {perm=[1,0]}
  y = exp(t)
  z = neg(t)
  s = sin(x)
  return y, z, s
}""")
sunk = mg.parse("""
graph sunk(x: f32[1024,1024]) -> (y, z, s) {
  e = exp(x)
  y = transpose(e) {perm=[1,0]}
  n = neg(x)
  z = transpose(n) {perm=[1,0]}
  s = sin(x)
  return y, z, s
}""")
predict("t is gone from sunk. How many bytes does layout move there, for each byte in kept?", None,
        lambda: bytes_moved_by_layout(sunk) / bytes_moved_by_layout(kept))
# %%
from textwrap import fill

from minigraph.passes.explain_layout import explain
from minigraph.teach.charts import bars

print(fill(explain(kept, "t"), 100))
bars("moved by layout", {name: bytes_moved_by_layout(graph) / 1e6
                         for name, graph in {"t stays": kept, "t sunk": sunk}.items()}, "MB")
# %% nbval-ignore-output
big = np.random.default_rng(0).standard_normal((1024, 1024)).astype(np.float32)


def above():
    t = np.ascontiguousarray(big.T)
    return np.exp(t), np.negative(t)


def below():
    return np.ascontiguousarray(np.exp(big).T), np.ascontiguousarray(np.negative(big).T)


times = compare({"one copy above": above, "two copies below": below}, seconds=0.3)
print({name: quantity(one.median, "s") for name, one in times.items()})
# %% [markdown]
# The answer is 2. Both `y` and `z` must be in order, for they are outputs: one copy above, or two below. So
# `layout` leaves `t` where it is. Its rule: a transpose sinks only if fewer bytes move in the whole region that it
# reaches, or as many with fewer transposes.
#
# A cast to f64 below `t` would hurt, too: a copy twice as large. A reduction helps: there is less to turn.
#
# ## The layer
#
# Back to the question: the transposes, and what reads each.
# %%
from minigraph.passes.axes import copies

readers = mg.users(naive)
for node in transposes:
    print(f"{mg.node_line(node):65}read by {', '.join(naive[name].op for name in readers[node.name])}")
after = layout(naive).graph
predict("How many of these must move bytes when layout is done?", None,
        lambda: sum(moved > 0 for moved in copies(after).values()))
# %%
for name, moved in copies(after).items():
    print(fill(explain(after, name), 100), end="\n\n")
print("bytes moved by layout:", bytes_moved_by_layout(naive), "->", bytes_moved_by_layout(after))
# %% [markdown]
# The answer: one of the 13, as far as `layout` can help. It puts the heads side by side again. The three that split
# them shuffle whole rows, which the product reads in place. The softmax is now along the other axis, and the transposes
# around it are gone. So are those of the weights: flags.
#
# ## The last one
#
# `layout` looks at how values are *read*. But a product may also *write* its rows anywhere: why not where the reshape
# wants them? The plan (chapter 07) does that, if nobody else reads the result. A copy that is left is a launch:
# %%
seen = mg.Graph("heads_seen", after.nodes, (*after.outputs, ("heads", "transpose.4")))
for graph in (after, seen):
    plan = mg.make_plan(mg.fuse(graph))
    moves = [launch.name for launch in plan.launches if launch.kind == "copy"]
    print(f"{graph.name:10} copies: {moves}; strides of the product: {plan.access['matmul.1'].strides}")
# %% [markdown]
# So in the end none of the 13 moves a byte: each head's rows are stored 64 numbers apart, between those of the other
# heads. In `heads_seen` the transpose is an output, too: then the product is stored in its own order, and copied.
#
# ## Write it
#
# Open `exercises/10_layout.ipynb`.
#
# ## The same pass in a real compiler
# %% exhibit=onnxruntime-transposes
# %% [markdown]
# The last graph is `kept`, from above. XLA goes further: its types have a layout, and a transpose can be a mere change
# of it.
# %% exhibit=xla-layouts
# %% [markdown]
# ## The scoreboard
#
# The attention layer of the other chapters, and then this chapter's.
# %%
from minigraph.teach.score import scoreboard

scoreboard("fold", "simplify", "cse", "dce", "layout")
print()
scoreboard("fuse", graph=naive)
print()
scoreboard("layout", "simplify", "dce", "fuse", graph=naive)
print()
for graph in (naive, after):
    print({op: sum(node.op == op for node in graph.nodes) for op in ("transpose", "reshape")})
print(*[mg.node_line(after[name]) for name in ("max.max", "max", "sub.reshape")], sep="\n")
# %% [markdown]
# In the first table, `fold` had turned the weights already, and `layout` finds one flag.
#
# "Bytes moved" is another measure than above: what the launches read and write. Unfused, a transpose is only strides and
# counts nowhere there. Fused, it stood between the scaling of the scores and their softmax. Now the two are one launch,
# and the scores save two trips.
#
# Reshapes came: a transpose that only moves an axis of length 1 past others is one. They come in pairs that undo each
# other, as in the last lines: the first keeps an old value's name and shape. They move nothing, and `simplify` and `dce`
# take them out.
# %% recall
# Q: What does a transpose cost, and when?
# A: Nothing, as strides. A copy, once somebody needs its elements in order and they are not.
#
# Q: A transpose by (1, 2, 0), then another one by the same. What is the permutation of both?
# A: p[q] = (2, 0, 1). They do not cancel: a rotation of three axes needs three turns.
#
# Q: When does removing a transpose hurt?
# A: When it is read by several, or by something that makes it larger: then there are more or larger copies below it.
# %% glossary=10
