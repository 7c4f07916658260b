# %% [markdown]
# # 12 Quantization and sparsity: int8 is not 4x by itself
#
# *About 45 minutes. You need chapters 01 to 11. The exercises are in `exercises/12_quantization_sparsity.ipynb`.*
#
# A language model writes one token after the other, and reads all of its weights for each. As int8, a weight is one byte in place of the
# four of a float32. Here is one such product: a row times a matrix.
#
# `quantize_weights` stores the matrix as int8. The matmul still takes floats, so the graph gets a `dequantize` in front of it, which makes
# them.
#
# **The question:** how many bytes go through memory then, for each byte of the float program?
# %%
import numpy as np

import minigraph as mg
from minigraph.command.tables import table
from minigraph.passes import dce, quantize_weights
from minigraph.teach import predict

draw = np.random.default_rng(0)
big = draw.standard_normal((576, 1536)).astype(np.float32)
product = mg.trace(lambda x: x @ mg.constant(big), x="f32[1,576]", name="product")
int8 = quantize_weights(product, "i8").graph


def moved(graph):
    return mg.make_plan(dce(graph).graph).bytes_moved


predict("Bytes moved with int8 weights, for each byte without?", None,
        lambda: moved(int8) / moved(product))
# %% [markdown]
# A quarter would be 0.25. We come back to this number. First: what is int8, and what does it cost?
#
# ## Scale, rounding, saturation
#
# **Quantizing** counts a number in steps. The step is called the **scale**: q = round(w / scale), and w is about scale · q. int8 holds
# -128 to 127. With the largest size divided by 127 as scale, all numbers fit. (Weights leave -128 unused, so that both sides are alike.)
# %%
w = np.float32([-2.54, -1.0, 0.0, 0.01, 0.03, 1.3, 2.0])
scale = np.abs(w).max() / np.float32(127)
w = np.append(w, np.float32(4))  # comes later, and is beyond the range
q = np.clip(np.rint(w / scale), -127, 127).astype(np.int8)
rows = [{"w": f"{one:.4g}", "w / scale": f"{one / scale:.4g}", "q": int(step),
         "scale * q": f"{scale * step:.4g}", "error": f"{abs(scale * step - one):.2g}"}
        for one, step in zip(w, q.astype(np.float32))]
print(f"scale {scale:.4g}, half of it {scale / 2:.4g}")
print(table(rows))
# %% [markdown]
# Within the range, no error is above half a step. 0.01 is half a step itself: `rint` takes the even neighbour, so that such cases do not all drift
# one way. 4 is beyond the range and **saturates**: it stays at 127. (A plain conversion to int8 would wrap around, and might change the sign.)
#
# All numbers on one side, as after relu? Half of the steps would serve nobody. An **offset** (or, in steps, a **zero point**) moves the
# range: w is about scale · q + offset. With 4 bits:
# %%
positive = draw.uniform(0, 1, 1000).astype(np.float32)


def rms(error):
    return float(np.sqrt(np.mean(np.square(error, dtype=np.float64))))


step = positive.max() / np.float32(7)
back = np.clip(np.rint(positive / step), -7, 7) * step
print(f"-7 to 7, no offset:     rms error {rms(back - positive):.3f}")
low, high = positive.min(), positive.max()
step = (high - low) / np.float32(15)
back = np.rint((positive - low) / step) * step + low
print(f"0 to 15 with an offset: rms error {rms(back - positive):.3f}")
# %% [markdown]
# ## Error against bytes
#
# One scale for the whole matrix, one a row, or one for each block of 32 numbers? `q8_0` and `q4_1` are such blocks, as files for
# language models have them. Scales and offsets are bytes, too, and in blocks they are float16:
# %%
from minigraph.formats import FORMATS

# numbers, bits of each, bytes of a scale, offsets
stores = {"int8, a row of 64": (64, 8, 4, 0),
          "q8_0, a block": (32, 8, 2, 0), "q4_1, a block": (32, 4, 2, 1)}
rows = []
for name, (count, bits, size, offsets) in stores.items():
    nbytes = [size, offsets * size, count * bits // 8]
    rows.append(dict(zip(("stored", "scale", "offset", "numbers"), (name, *nbytes)))
                | {"bytes": sum(nbytes), "bits a number": 8 * sum(nbytes) / count})
assert [row["bytes"] for row in rows[1:]] == [FORMATS["q8_0"].nbytes, FORMATS["q4_1"].nbytes]
print(table(rows))
# %% [markdown]
# That a row of int8 has 8.5 bits here, like `q8_0`, is chance: in a longer row the scale weighs less.
#
# There is another way: **fp8** (e4m3: a sign, 4 bits of exponent, 3 of mantissa), a float of 8 bits, whose steps grow with the number. (float32 has 8 and
# 23: with the leading 1, that is 24 binary digits of precision. float16 has 11.) Our matrix is normally distributed, but for one **outlier**.
# %%
from minigraph.accuracy import ROUNDINGS

calm = draw.standard_normal((64, 64)).astype(np.float32)
wild = calm.copy()
wild[3, 5] = 40


def one_scale(x):
    rounded, nbytes = ROUNDINGS["i8 a row"](x.reshape(1, -1))
    return rounded.reshape(x.shape), nbytes


def fp8(x):
    scale = np.abs(x).max() / np.float32(448)  # the largest number of e4m3
    exponent = np.maximum(np.frexp(x / scale)[1], -5)
    step = np.ldexp(np.float32(1), exponent - 4)
    return np.rint(x / scale / step) * step * scale, x.size + scale.nbytes


ways = {"f32": lambda x: (x, x.nbytes), "f16": ROUNDINGS["f16"], "fp8, one scale": fp8,
        "int8, one scale": one_scale, "int8, one a row": ROUNDINGS["i8 a row"],
        "q8_0": ROUNDINGS["q8_0"], "q4_1": ROUNDINGS["q4_1"]}
errors = {name: [rms(way(x)[0] - x) for x in (calm, wild)] for name, way in ways.items()}
three = ("int8, one scale", "int8, one a row", "q8_0")
predict(f"Whose error does the outlier make largest, of {' / '.join(three)}?", None,
        lambda: max(three, key=lambda name: errors[name][1]))
# %%
rows = []
for name, way in ways.items():
    nbytes, (plain, hurt) = way(calm)[1], errors[name]
    rows.append({"stored as": name, "bytes": nbytes, "bits a number": 8 * nbytes / calm.size,
                 "rms error": f"{plain:.2g}", "with the outlier": f"{hurt:.2g}"})
print(table(rows))
# %%
from minigraph.drawing import draw_24, draw_curves

points = {name: (8 * way(wild)[1] / wild.size, errors[name][1]) for name, way in ways.items()}
draw_curves({name: [points[name]] for name in points if name != "f32"},
            x_label="bits a number", y_label="rms error", log="y",
            title="Error against bits, with one outlier")
# %% [markdown]
# So the answer is `int8, one scale`. A single number makes its steps coarse for all 4,096. With blocks, it spoils its 31 neighbours: finer scales buy
# accuracy for few bits. fp8 forgives the outlier, and without one it is coarser than int8.
#
# The error of a matrix is not the error of a model. Here is SmolLM2's tiny brother, with random weights: all of its products quantized, its logits
# compared.
# %%
from minigraph.accuracy import compare_logits, stepwise
from minigraph.bench_sparse import stored
from minigraph.models import compiled, smollm2
from minigraph.passes import fuse_dequantize

tiny = smollm2.tiny(max_len=32)
decode = compiled.decode_graph(tiny)
tokens = draw.integers(0, tiny.config.vocab, 24).astype(np.int32)


def model(graph):
    return stepwise(compiled.as_function(graph), lambda: smollm2.zero_cache(tiny))


rows = []
for format in ("i8", "q8_0", "q4_1"):
    small = fuse_dequantize(quantize_weights(decode, format, least=0).graph).graph
    found = compare_logits(model(decode), model(small), [tokens])
    rows.append({"weights": format, "rms error of the logits": f"{found['rms error']:.2g}",
                 "bytes of constants": stored(small), "moved a token": moved(small)})
    assert moved(small) < moved(decode)
rows.append({"weights": "float32",
             "bytes of constants": stored(decode), "moved a token": moved(decode)})
print(table(rows))
# %% [markdown]
# A trained model bears 4 bits far better than random weights do. `minigraph bench quant` measures that on the real one.
#
# All three move fewer bytes than float. It is no quarter: cache, activations and some tables stay float, and in so small a model they are a large part. (In
# `q8_0` and `q4_1`, so does a matrix that is no whole number of blocks.) But `fuse_dequantize` has run here. Our question is what happens without it.
#
# ## Dequantize, apart and fused
#
# Whoever multiplies float by int8 must first make floats: **dequantize**. Look at the launches:
# %%
q8 = quantize_weights(product, "q8_0x16").graph
q8_fused = fuse_dequantize(q8).graph
plans = {"float32": product, "int8, expanded first": int8,
         "int8, scale moved": fuse_dequantize(int8).graph,
         "q8_0, expanded first": q8, "q8_0, fused": q8_fused,
         "q4_1, fused": fuse_dequantize(quantize_weights(product, "q4_1x16").graph).graph}
print(table([{"weights": name, "launch": launch.name, "read": launch.bytes_read,
              "written": launch.bytes_written}
             for name, graph in plans.items()
             for launch in mg.make_plan(dce(graph).graph).launches]))
# %%
from minigraph.teach.charts import bars

assert moved(plans["int8, scale moved"]) < moved(product) < moved(int8)
print(f"int8, expanded first, moves {moved(int8) / moved(product):.2f} bytes for each byte of float32")
bars("what one product moves", {name: moved(graph) / 1e6 for name, graph in plans.items()}, "MB")
# %% [markdown]
# The line above the bars answers our question. Expanded first, the weights go through memory three times: read as int8, written as floats, read as
# floats. That is ¼ + 1 + 1. Only a kernel that reads the small weights *itself*, and makes floats of them in registers, saves anything.
#
# For blocks that is `packed_matmul`. For int8 the scale must get out of the way: then only a cast is left in front of the matmul, and the kernel of a product
# with few rows casts while it reads.
#
# What `x16` means: 16 rows lie interleaved. Here each word of 4 bytes is called *row.word*; a block of `q4_1` has 5.
# %%
words = np.arange(16 * 5, dtype="<u4")  # row r has the words 5 r to 5 r + 4
woven = FORMATS["q4_1x16"].weave(words.view(np.uint8).reshape(1, 16, 1, 20)).view("<u4")
for name, order in (("q4_1", words), ("q4_1x16", woven[0])):
    print(f"{name:8}", *(f"{word // 5}.{word % 5}" for word in order[:19]), "…")
# %% [markdown]
# So 16 neighbours are the same word of 16 rows, and one load brings a vector register one word of each.
#
# ## What a scale may cross
#
# For int8 with a scale a column, `fuse_dequantize` moves the scale behind the sum:
# %%
from minigraph.passes import explain_dequantize

columns = mg.parse("""
graph columns(x: f32[2,3], q: i8[3,2]) -> (y) {
  s = const([[0.5, 2.0]]) : f32[1,2]
  w = dequantize(q, s)
  y = matmul(x, w)
  return y
}""")
rowwise = mg.parse(str(columns).replace(
    "[[0.5, 2.0]]) : f32[1,2]", "[[0.5], [2.0], [1.5]]) : f32[3,1]"))
print(fuse_dequantize(columns).graph)
for graph in (columns, rowwise):
    print(explain_dequantize(graph, "y"))
# %% [markdown]
# A factor can leave a sum if all terms share it. There is one multiplication a result then, in place of one a weight: fewer, if x has fewer rows than w.
#
# And x is float here, so the terms are floats. If x is quantized, too, they are integers, and hardware that multiplies int8 can do the sum. Which scales may
# pass relu? That is an exercise.
#
# ## int8 that is not faster
#
# Now the clock: a matrix of 2,048 by 4,096, in generated C on one thread, first for one row, then for 64. *int8 times int8* has the activations in int8, too,
# and adds up integers. (For 64 rows it would take too long here.)
# %% nbval-ignore-output
from minigraph.bench_quant import integers
from minigraph.bench_sparse import caller, own_time
from minigraph.bench_sparse import product as random_product
from minigraph.compiler import find_compiler
from minigraph.measure import compare


def speeds(rows, seconds=0.1):
    dense = random_product(rows, 4096, 2048)
    x = np.random.default_rng(1).standard_normal((rows, 2048)).astype(np.float32)
    eight = quantize_weights(dense, "i8").graph
    graphs = {"float32": dense, "int8, expanded first": eight,
              "int8, scale moved": fuse_dequantize(eight).graph}
    for name, format in (("q8_0, fused", "q8_0x16"), ("q4_1, fused", "q4_1x16")):
        graphs[name] = fuse_dequantize(quantize_weights(dense, format).graph).graph
    if rows == 1:
        graphs["int8 times int8"] = integers(dense, [{"x": x}])
    calls = {name: caller(dce(graph).graph, x) for name, graph in graphs.items()}
    times = compare(calls, seconds=seconds, clock=own_time)
    return {name: (moved(graphs[name]) / moved(dense), one.times_faster(times["float32"]))
            for name, one in times.items()}


if find_compiler():
    for rows in (1, 64):
        found = speeds(rows)
        print(table([{"rows": rows, "weights": name, "bytes, float32 = 1": round(size, 2),
                      "times as fast": round(gain, 2)} for name, (size, gain) in found.items()]))
else:
    print("There is no C compiler here, so nothing was measured.")
# %% [markdown]
# One row: each weight is used once. Memory decides (**memory-bound**): expanded int8 is *slower* than float, and what moves fewer bytes is quicker, though
# not in proportion. 64 rows: each weight is used 64 times, and arithmetic decides (**compute-bound**). Small weights save none. Blocks are unpacked anew for
# each row of x, and what that costs is a matter of the format's code, not of its bytes. And with so many rows the kernel does no cast: int8 is expanded again.
#
# *int8 times int8* would pay where an instruction multiplies and adds four of them at once. Our product adds up i32, so the weights are first written as i32,
# four bytes each, and read again: ¼ + 1 + 1, as before. And its loop over integers is slower than that over floats. Fewer bits are a possibility. The kernel
# makes it real.
#
# ## Calibration
#
# Activations are not known before the run. **Calibration** runs samples and looks. Min–max takes the largest size seen. A **percentile** lets a
# few numbers saturate: here 99.9 % of them fit. One of 50 samples has an outlier.
# %%
from minigraph.calibrate import calibrate
from minigraph.passes import quantize_activations

layer = mg.trace(lambda x: x @ mg.constant(big[:32, :16]), x="f32[4,32]", name="layer")
weights8 = quantize_weights(layer, "i8", least=0).graph
samples, tests = ([{"x": draw.standard_normal((4, 32)).astype(np.float32)} for _ in range(50)]
                  for _ in range(2))
samples[7]["x"][2, 9] = 60
rows = []
for method in ("minmax", "percentile"):
    scales = calibrate(weights8, samples, method, percentile=99.9)
    quantized = quantize_activations(weights8, scales).graph
    usual, odd = (rms([mg.run(quantized, **one)["out"] - mg.run(layer, **one)["out"] for one in ones])
                  for ones in (tests, samples[7:8]))
    rows.append({"method": method, "scale": f"{scales['x']:.3g}", "error, usual inputs": f"{usual:.2g}",
                 "error, the odd one": f"{odd:.2g}"})
print(table(rows))
# %% [markdown]
# Which is right depends on whether the outlier matters. In large language models, it often does (Dettmers et al., "LLM.int8()", 2022).
#
# ## Pairs that cancel
#
# Where two int8 layers meet, there is a dequantize, then a quantize by the same scale. Is that nothing? Both take integers from i8 to i64, and scales in f16,
# f32 or f64. `dtype` says what `quantize` makes: i8, if it is left out. `remove_quantize_pairs` decides:
# %%
from minigraph.passes import remove_quantize_pairs

text = """graph pair(q: i8[4]) -> (y) {
  s = const(SCALE) : f32[]
  w = dequantize(q, s)
  y = quantize(w, s) {dtype="i8"}
  return y
}"""
rows = []
for scale in ("0.1", "-0.1", "1e+38", "0.0"):
    pair = mg.parse(text.replace("SCALE", scale))
    rows.append({"scale": scale, "-8, 0, 3, 7 become": str(mg.run(pair, q=np.int8([-8, 0, 3, 7]))["y"]),
                 "removed": "yes" if remove_quantize_pairs(pair).report else "no"})
print(table(rows))
# %% [markdown]
# (-128: the operation `quantize` uses all of int8.) Only a known scale that loses nothing lets the pair go. The other way round, quantize and then
# dequantize, is rounding itself, and never nothing.
#
# ## Sparsity
#
# Fewer bytes, once more: leave numbers out. **Pruning** makes the smallest weights 0. In **2:4**, two of each four in a row stay:
# %%
draw_24(((draw.permutation(24) + 1) * draw.choice([-1, 1], 24)).reshape(3, 8))
# %%
predict("Half of the weights are 0, anywhere. How many times as fast is the product?", None)
# %%
from minigraph.passes import compress, prune

dense = random_product(1, 2048, 2048)
sparse = {"dense": dense} | {pattern: dce(compress(prune(dense, pattern).graph).graph).graph
                             for pattern in ("unstructured", "2:4", "block")}
print(table([{"zeros": name, "bytes stored": stored(graph), "operation": graph.nodes[-1].op}
             for name, graph in sparse.items()]))
# %% nbval-ignore-output
if find_compiler():
    x = np.random.default_rng(1).standard_normal((1, 2048)).astype(np.float32)
    times = compare({name: caller(graph, x) for name, graph in sparse.items()}, seconds=0.3,
                    clock=own_time)
    print("times as fast:",
          {name: round(one.times_faster(times["dense"]), 2) for name, one in times.items()})
else:
    print("There is no C compiler here, so nothing was measured.")
# %% [markdown]
# The answer is about 1 (`unstructured`). Zeros anywhere are still stored, read and multiplied: the loop has no time to ask. A pattern tells beforehand where they are. 2:4 needs two bits for each
# value kept; blocks, here of 16 by 16, an index each. What pruning costs in accuracy is another matter: models are mostly trained again after it.
#
# ## A token from the model's own blocks
#
# SmolLM2's file holds `q4_1`, and one `q8_0` matrix. With `smollm2.load(packed=True)` they stay so. All are read for each token, so
# the bytes of a token are the bytes of the weights, and memory bounds the speed. (Without the file, this shows the tiny model.)
# %% nbval-ignore-output
from minigraph.models.gguf_file import ModelError, find_model, read

try:
    tensors = read(find_model()).tensors.values()
    count = sum(np.prod(one.shape) for one in tensors)
    nbytes = sum(one.stop - one.start for one in tensors)
except ModelError:
    count, nbytes = stored(decode) / 4, stored(small)
memory = np.ones(32_000_000, np.float32)
seconds = compare({"read": lambda: memory.sum()}, seconds=0.3)["read"].median
print(f"{nbytes:,} bytes of weights, {8 * nbytes / count:.2f} bits each;"
      f" in float32 {4 * count:,.0f} bytes")
print("at the speed at which NumPy sums an array:"
      f" {memory.nbytes / seconds / nbytes:,.0f} tokens a second,"
      f" and in float32 {memory.nbytes / seconds / (4 * count):,.0f}")
assert nbytes < 4 * count
# %% [markdown]
# `minigraph bench llm` measures the model itself.
#
# ## Write it
#
# Open `exercises/12_quantization_sparsity.ipynb`. You quantize, move scales, and refute two passes.
#
# ## The same step in a real compiler
# %% exhibit=onnxruntime-quantizes
# %% [markdown]
# ## The scoreboard
#
# SmolLM2's feed-forward part, for one token, with random weights. `quantize` is to `q8_0`; `packed` is `fuse_dequantize`.
# %%
from minigraph.passes import PASSES
from minigraph.teach.score import scoreboard


def feed_forward(x):
    gate, up, down = (mg.constant(big), mg.constant(big[::-1].copy()), mg.constant(big.T.copy()))
    a = x @ gate
    return (a / (1 + np.exp(-a)) * (x @ up)) @ down


with_quantize = PASSES | {"quantize": lambda graph: quantize_weights(graph, "q8_0x16"),
                          "packed": fuse_dequantize}
scoreboard("quantize", "packed", "dce", "fuse", passes=with_quantize,
           graph=mg.trace(feed_forward, x="f32[1,576]", name="ffn"))
# %% [markdown]
# `quantize` alone makes it worse. `packed` makes it pay, once `dce` has cleared away what is no longer read.
# %% recall
# Q: Why can int8 weights make a product slower?
# A: If they are expanded first, they go through memory three times. And where arithmetic decides, they save nothing.
#
# Q: When may a scale move behind a product? Does that save bytes?
# A: If it is the same all along the summed axis. Only where the product's kernel then casts the weights while it reads them.
#
# Q: Half of the weights are zeros. When does that pay?
# A: If they lie in a pattern, such as 2:4 or blocks, and a kernel skips them.
# %% glossary=12
