# %% [markdown]
# # 07 Launch overhead
#
# *About 35 minutes. You need chapters 01 to 06. The exercises are in `exercises/07_launch_overhead.ipynb`.*
#
# Here is one layer of a network: a matrix product, a bias, a relu (the maximum with 0) and a scale. The network has 32 such
# layers. It answers one request at a time, so its input is a single row: **batch size 1**.
#
# **The question:** an A100 is a very large GPU. For how much of the time does it work, when it runs this network?
# %%
import numpy as np

import minigraph as mg
from minigraph import launch_model
from minigraph.command.tables import table
from minigraph.measure import measure, synchronized, wall
from minigraph.teach import devices, launches, predict
from minigraph.teach.examples import mlp, mlp_graph

network = mlp_graph(layers=32, width=1024, batch=1)
print(mlp_graph(layers=1))
# %% [markdown]
# ## What a launch is
#
# A GPU does nothing by itself. It has **kernels**: pieces of code, one to add two arrays, one to multiply two matrices. A program
# on the CPU, the **host**, starts them. It checks the arguments, writes down which kernel and where the arrays lie, and puts this
# command into the GPU's queue. That is a **launch**. Its price does not depend on how much the kernel has to do. To see a result,
# the host also has to wait, to **synchronize**.
# %%
predict("How many launches is the network, one for each operation?", None,
        lambda: mg.stats(network).launches)
# %% [markdown]
# **The answer:** 32 layers of 4 operations.
#
# A kernel can do several operations, if somebody writes it. Either it comes ready-made from a **library**, or it is **generated**:
# the compiler writes it for this very graph. `fuse` groups operations into launches. How it decides is chapter 08; today it is a
# switch with three positions. (`rows=0` leaves all matrix products to a library.)
# %%
ways = {"each operation a launch": mg.fuse(network, enabled=False),
        "a library does the products": mg.fuse(network, rows=0),
        "products are generated": mg.fuse(network)}
plans = {name: mg.make_plan(way) for name, way in ways.items()}
for name, plan in plans.items():
    print(f"{name:27} {len(plan.launches):4} launches, {plan.bytes_moved / 1e6:.1f} MB moved")
# %% [markdown]
# A library's kernel is closed: what follows the product is a second launch. If we generate the product ourselves, bias, relu
# and scale are computed on each number before it is stored. That is an **epilogue**.
# %%
two = mg.fuse(mlp_graph(layers=2))
print(*mg.explain(two, "layer0.mul").split("; "), sep="\n")
mg.draw_clusters(two)
# %% [markdown]
# Why is it not a single launch? Each number of a product needs the whole row before it. Fused, the first layer would be computed
# "as often" as it is read: once for each of the 1,024 columns.
#
# Do folding and dead-code elimination take the number lower still? Try three cases:
# %%
def counts(graph):
    graph = mg.optimize(graph).graph
    switch = (mg.fuse(graph, enabled=False), mg.fuse(graph, rows=0), mg.fuse(graph))
    return [len(mg.make_plan(way).launches) for way in switch]


one, square = np.ones(1024, np.float32), np.ones((1024, 1024), np.float32)
cases = {"as it is": network,
         "all scales are 1": mg.freeze(network, **{f"s{i}": one for i in range(32)}),
         "the last 8 layers are unread": mg.Graph("early", network.nodes, (("y", "layer23.mul"),)),
         "the first layer is constant": mg.freeze(network, x=one[None], w0=square, b0=one, s0=one)}
for case, graph in cases.items():
    print(f"{case:28}", counts(graph))
# %% [markdown]
# Look at the last numbers. An operation inside a layer is no launch of its own any more: removing it removes none. The number sinks
# only where **whole layers** die or fold.
#
# ## What a launch costs here
#
# A CPU has launches, too: each NumPy call is one. Add one-element arrays, and hardly anything but the call is left. Here are 1,000
# additions, and the same graph as compiled C, called once.
# %% nbval-ignore-output
def chain(x, y):
    for _ in range(1000):
        x = x + y
    return x


small = np.ones(1, np.float32)
compiled = launches.compiled(mg.trace(chain, x="f32[1]", y="f32[1]"), x=small, y=small)
programs = {"NumPy: 1,000 calls": lambda: chain(small, small)} | compiled
additions = measure("1,000 additions", live=lambda: launches.per_operation(programs, 1000))
assert not compiled or additions.column("times as fast")[-1] > 5
additions
# %% [markdown]
# Inside compiled code, going on to the next operation costs next to nothing.
#
# Now let the arrays grow. How large must they be before the launch no longer matters?
# %% nbval-ignore-output
sizes = [4**k for k in range(12)]
cpu = measure("add over sizes", live=lambda: launches.numpy_sizes(sizes))
seconds = cpu.column("NumPy")
overhead = min(seconds[:4])
rates = [12 * n / t for n, t in zip(sizes, seconds)]  # c = a + b: an element moves 12 bytes
bandwidth = max(rates)
print(f"in the caches {bandwidth / 1e9:.0f} GB a second, at the largest size {rates[-1] / 1e9:.0f};"
      f" the knee is at {launch_model.quantity(overhead * bandwidth, 'B')}")
mg.draw_curves({"measured": list(zip(sizes, seconds)),
                "overhead + bytes / bandwidth": [(n, overhead + 12 * n / bandwidth) for n in sizes]},
               x_label="elements", y_label="time of one np.add", y_unit="s", label=cpu.source,
               title="the knee", marks=[(overhead * bandwidth / 12, "knee")])
# %% [markdown]
# Flat, then a slope. On the flat part more work costs nothing; on the slope, bytes are all that counts. Where launch and work take
# equally long is the **knee**, or break-even point. (On the far right the measured line may climb above the model: those arrays have
# left the caches, and the second number counts. And this call, with `out=` and a function around it, has another price than `x + y`
# above.)
#
# ## The launch model
#
# That is the whole model, summed over the launches:
#
# **time = launches × overhead + Σ max(bytes / bandwidth, flops / peak)**
#
# A flop is one operation on numbers, such as an addition. `bandwidth` says how many bytes the device moves in a second, `peak`
# how many flops it does. It moves and computes at the same time, so the longer of the two counts. For our network on an A100:
# %%
eager, a100 = plans["each operation a launch"], launch_model.PRESETS["a100"]
print(f"{len(eager.launches)} launches of {1e6 * a100.launch:.1f} µs;"
      f" {eager.bytes_moved / 1e9:.4f} GB at {a100.bandwidth / 1e9:,.0f} GB a second")
predict("Then for how many percent of the time does the A100 work?", None,
        lambda: round(100 - 100 * 128 * a100.launch / launch_model.predict(eager, a100)))
# %% [markdown]
# The same for other devices. `eager` means a call for each launch. `graph` means that all launches were recorded, and one call
# replays them; that call comes on top, once. CUDA calls such a recording a *graph*; it is none of ours. (On the CPU it is compiled
# C.) The knee is in bytes. The CPU's differs from the one above: its bandwidth is main memory's.
# %%
print(table(launch_model.table(launches=128, bytes_per_launch=eager.bytes_moved // 128)))
# %% [markdown]
# **The answer**, to the chapter's question too, is what `launching %` leaves in the A100's line `eager`. No GPU figure here was
# measured. They are **predictions**, from data sheets and from launch costs that others published, for other cards. We assume them
# for all GPUs; `a100.sources` names them.
#
# ## At batch 1 the gaps are the program
#
# The host issues launches, one after another; the device takes them in order. This is our network on an A100. At the dotted line
# the axis jumps to the last layer: those between look the same.
# %%
predicted = "predicted by the launch model, A100"
events = launch_model.schedule(eager, "a100")
mg.draw_timeline(events, predicted, title="128 eager launches")
# %% [markdown]
# Nearly always, the device waits for the next launch. (Its share is a little larger than in the table, because the time is shorter:
# here the host runs ahead, and all work but the last hides behind the next launch.)
#
# There are two cures. **Fewer, bigger launches**: fusion. **Cheaper launches**: the recording, a CUDA graph (in `torch.compile` the
# mode `reduce-overhead`). Both together, with one launch for each layer:
# %%
replayed = launch_model.schedule(plans["products are generated"], "a100", "graph")
graph_launch, *kernels = replayed
boxes = [graph_launch, *(kernel._replace(name="a layer") for kernel in kernels)]
mg.draw_timeline(boxes, predicted, title="32 launches, replayed")
# %% [markdown]
# `open("trace.json", "w").write(mg.chrome_trace(events, predicted))` makes a file for ui.perfetto.dev.
#
# And each cure alone. The first line says whether the times are measured here, recorded elsewhere, or predicted.
# %% nbval-ignore-output
def modelled():
    return [{"program": name, "mode": mode, "launches": len(plan.launches),
             "seconds": launch_model.predict(plan, "a100", mode)}
            for name, plan in plans.items() for mode in launch_model.MODES]


def live():
    from minigraph.bench_gpu import Setting, narrow_mlp
    return narrow_mlp(Setting())


measure("MLP at batch 1", needs="gpu", live=live, model=modelled)
# %% [markdown]
# Either cure helps, and a recording helps more here: it removes nearly all of each launch's price. It needs fixed shapes and
# fixed addresses, though. And it moves every byte that the unfused program moves.
#
# A third cure is to have more to do. With more rows at a time, the same launches serve all of them. (`fused` has a library's
# products here, at every size.)
# %%
batches = [4**k for k in range(7)]
graphs = {rows: mlp_graph(batch=rows) for rows in batches}


def time_for_a_row(mode, **switch):
    return [(rows, launch_model.predict(mg.make_plan(mg.fuse(graph, **switch)), "a100", mode) / rows)
            for rows, graph in graphs.items()]


mg.draw_curves({"eager, unfused": time_for_a_row("eager", enabled=False),
                "eager, fused": time_for_a_row("eager", rows=0),
                "graph, fused": time_for_a_row("graph", rows=0)},
               x_label="rows in a batch", y_label="time for one row", y_unit="s",
               title="batch size", label=predicted)
# %% [markdown]
# At batch 1 the curves are far apart, and at 4,096 they nearly meet. Training and bulk work live on the right. A chat with one
# person lives on the left: a new token is one row.
#
# ## And on a CPU?
#
# The same network with narrow layers, for real. The C program is like a CUDA graph: one call, with all launches inside.
# %% nbval-ignore-output
narrow = mlp_graph(width=64)
draw = np.random.default_rng(0).standard_normal
arrays = {node.name: np.float32(draw(node.type.shape) / 8) for node in narrow.inputs}
layers = [[arrays[f"{kind}{i}"] for kind in "wbs"] for i in range(32)]
programs = {"NumPy: 128 calls": lambda: mlp(arrays["x"], layers)} | launches.compiled(narrow, **arrays)
measure("narrow network", live=lambda: launches.per_operation(programs, 128))
# %% [markdown]
# Do not conclude that fusion makes every model faster on a CPU. A real block is wide. This is one of GPT-2 small, in plain NumPy,
# and what its four large products take of it on one thread:
# %% nbval-ignore-output
measure("GPT-2 block", live=launches.gpt2_share)
# %% [markdown]
# The last column is the most that fusion could win: the gain if all but the products took no time. It wins more where launches
# or memory traffic decide.
#
# ## The clock that lies
#
# A device with a queue returns at once, and works later. That is how launches hide behind each other, and how people
# measure nonsense. Where no GPU is at hand, a thread behaves in the same way:
# %%
import inspect

print(inspect.getsource(devices.QueuedDevice))
# %%
predict("A large product takes some milliseconds. How long does issue() take, in microseconds?"
        " (The next cell measures it.)", None)
# %% nbval-ignore-output
device = devices.device_here()  # a GPU, if there is one
a = devices.large_matrix(device)


def job():
    device.issue(lambda: a @ a)


synchronized(device.wait)(job, 1)  # once, to warm up
wrong = wall(job, 5)  # stops the clock when the fifth product is in the queue
device.wait()
right = synchronized(device.wait)(job, 5)  # waits before it starts the clock, and before it stops it
assert wrong < right / 2
print(f"The answer: issue() takes {1e6 * wrong / 5:,.1f} µs. Waiting for the product, too:"
      f" {1e6 * right / 5:,.0f} µs ({type(device).__name__})")
# %% [markdown]
# **The answer** is no speed. It is the time to write a command. It would be the same for a product a thousand times as large.
#
# And the bill arrives elsewhere: at the first line that needs a result, such as a print. It *looks* slow, and is innocent.
# %% nbval-ignore-output
b = np.ones((1024, 1024), np.float32)
measured = devices.watch({"matmul_1": lambda: b @ b, "add_1": lambda: b + b, "matmul_2": lambda: b @ b})
for one in measured:
    if one.row == launch_model.HOST:
        print("the host,", one.name, launch_model.quantity(one.end - one.start, "s"))
mg.draw_timeline(measured, "measured here", title="three jobs, then a wait")
# %% [markdown]
# So: wait, start the clock, run, wait, stop the clock. Warm up first: a first call may compile. Run several times, and take the
# median. `measure.bench` and its clocks do this.
#
# ## NumPy and CuPy
#
# CuPy is NumPy on a GPU: the same `add`, in a queue. With the honest clock, over sizes:
# %% nbval-ignore-output
gpu = measure("add over sizes", needs="gpu", live=lambda: launches.cupy_sizes(sizes),
              model=lambda: launches.modelled_sizes(sizes, "t4"))
mg.draw_curves({"NumPy": list(zip(sizes, seconds)),
                "CuPy": list(zip(gpu.column("elements"), gpu.column("CuPy")))},
               x_label="elements", y_label="time of one add", y_unit="s", title="CPU and GPU",
               label=f"NumPy: {cpu.source}; CuPy: {gpu.source}")
# %% [markdown]
# Two knees. A GPU's is far to the right: for small arrays it is the slower machine. Without a GPU or a recording, its line is the
# model's for a T4, the GPU of many free notebooks. To measure on one:
#
# ```
# !git clone ADDRESS_OF_THIS_REPOSITORY minigraph && pip install -q "./minigraph[cuda12]"
# !cd minigraph && jupyter execute --inplace notebooks/07_launch_overhead.ipynb
# !minigraph bench gpu --out mine.json
# ```
#
# The third line records everything: put its file into `minigraph/recordings/`, and the GPU cells show it.
#
# ## Write it
#
# Open `exercises/07_launch_overhead.ipynb`. You count launches, predict times, find the knee, and refute a benchmark that does not
# wait.
#
# ## The same network in real compilers
# %% exhibit=onnxruntime-launches
# %% exhibit=xla-launches
# %% [markdown]
# In XLA's text, a line with `fusion(` is a launch: its name, its result's shape (4 rows of a network 64 wide), its operands.
# `kCustom` is a kernel of a library (`ynn`), `kLoop` a loop that XLA generated. Both compilers reach our second position, 64: their
# products come from a library.
#
# ## The scoreboard
#
# Back to the small attention layer of the earlier chapters. Two columns of the model are new, for an A100: what the launches cost,
# and how long the GPU works.
# %%
from minigraph.teach.score import scoreboard

scoreboard("fold", "simplify", "dce", "cse", device="a100")
# %% [markdown]
# All that your passes saved on this GPU was launches. Its work was never worth mentioning.
# %% recall
# Q: Why does batch size 1 suffer most from launch overhead?
# A: A launch costs the same for one row as for a thousand. With one row, its work is far shorter than that.
#
# Q: What are the two cures, and what does each change in time = launches × overhead + work?
# A: Fusion lowers the number of launches. Replaying a recorded graph lowers the overhead of each.
#
# Q: A colleague's CuPy benchmark says 12 µs for a product of any size. What went wrong?
# A: The clock stopped when the launch was in the queue. Wait for the device before starting and before stopping it.
# %% glossary=07
