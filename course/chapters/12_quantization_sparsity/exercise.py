# %% [markdown]
# # Exercises 12: quantization and sparsity
#
# *About 50 minutes, 65 with the stretch. The lesson is `notebooks/12_quantization_sparsity.ipynb`.*
#
# Run this cell first.
# %%
from minigraph.teach.prelude import *
# %% [markdown]
# ## 1. int8 with a scale a row
#
# The lesson's `quantize_weights` is a pass over a graph. Yours has its name, and takes one matrix. Three steps that NumPy has ready:
# %%
w = np.float32([[254, 5, -3], [0, 0, 0]])
print(np.abs(w).max(axis=1, keepdims=True).tolist(), np.rint(np.float32([0.5, 1.5, -2.5])),
      np.clip(np.float32([300, -300]), -127, 127), np.array([300, -300]).astype(np.int8))
# %% [markdown]
# The last two numbers are 300 and -300, converted without clipping: they wrapped around. About 5 lines.
# %% exercise=quantize_weights
# %%
check(quantize_weights)
# %% [markdown]
# Stuck? `hint(quantize_weights)` gives a first hint, and calling it again a stronger one. After three tries,
# `solution(quantize_weights)` opens.
#
# ## 2. A scale from samples
#
# Activations are not known before the run, so here the scale comes from samples. About 4 lines.
# %% exercise=scale_of
# %%
check(scale_of)
# %% [markdown]
# ## 3. The scale behind the product
#
# Two products. In one, the scale can leave the sum.
# %%
example = parse("""
graph example(x: f32[3,2], q: i8[2,2]) -> (y, z) {
  s = const([[0.5, 2.0]]) : f32[1,2]
  w = dequantize(q, s)
  y = matmul(x, w)
  z = matmul(x, w) {transpose_b=true}
  return y, z
}""")
for name in ("y", "z"):
    node = example[name]
    w = example[node.inputs[1]]
    print(name, dict(node.value), "w is", w.op, w.inputs, "of shape", w.type.shape,
          "and its scale", example[w.inputs[1]].type.shape)
# %% [markdown]
# It is `y`: its sums run along axis 0 of w, where the scale has length 1. About 13 lines.
# %% exercise=fuse_dequantize
# %%
check(fuse_dequantize)
# %% [markdown]
# What your two functions make of a real product:
# %%
try:
    columns = np.random.default_rng(0).standard_normal((8, 64)).astype(np.float32)  # a column of w each
    steps, scales = quantize_weights(columns)
    builder = Builder("mine")
    x = builder.input("x", "f32[1,64]")
    w = builder.emit("dequantize", builder.const(steps.T), builder.const(scales.T))
    graph = builder.build({"y": builder.emit("matmul", x, w)})
    row = np.ones((1, 64), np.float32)
    error = np.abs(run(fuse_dequantize(graph), x=row)["y"] - row @ columns.T).max()
    print(f"largest error {error:.1g}, of sums up to {np.abs(row @ columns.T).max():.1f}")
except NotImplementedError:
    print("Not yet: write both functions first.")
# %% [markdown]
# ## 4. Refute two passes
#
# Both save an operation on floats. Read them. (`fresh` gives a name that is not taken yet.)
# %%
import inspect

from minigraph.teach.exercises.ch12 import drop_pairs_in_range, relu_on_integers

for wrong in (relu_on_integers, drop_pairs_in_range):
    print(inspect.getsource(wrong))
# %% [markdown]
# Find a graph on which `relu_on_integers` changes the program. At most 6 nodes. The graph below does no harm: change it.
# The inputs may be any numbers of their type.
# %% refute=relu_on_integers
# %% [markdown]
# And one for `drop_pairs_in_range`. The pairs that the lesson's table keeps, it keeps as well. What else can go wrong?
# %% refute=drop_pairs_in_range
# %% [markdown]
# ## Stretch: two of each four
#
# About 5 lines.
# %% exercise=prune_2_4
# %%
check(prune_2_4)
# %% [markdown]
# ## How far are you?
# %%
progress()
