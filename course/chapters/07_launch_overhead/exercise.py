# %% [markdown]
# # Exercises 07: launch overhead
#
# *About 30 minutes, 45 with the stretch. The lesson is `notebooks/07_launch_overhead.ipynb`.*
#
# Run this cell first.
# %%
from minigraph.teach.prelude import *
# %% [markdown]
# ## 1. Counting launches
#
# From the graph alone, with each operation a launch of its own. About 7 lines.
# %% exercise=count_launches
# %%
check(count_launches)
# %% [markdown]
# Stuck? `hint(count_launches)` gives a first hint, and calling it again a stronger one. After three tries,
# `solution(count_launches)` opens.
#
# ## 2. The launch model
#
# How long do these launches take? About 4 lines. Times are in seconds, sizes in bytes.
# %% exercise=predict_time
# %%
check(predict_time)
# %% [markdown]
# Now use it on the lesson's network. A plan knows what each of its launches moves and computes. The table has the three positions
# of the switch on two GPUs, by your model. Three numbers describe a GPU: its bandwidth, its peak, and what a launch costs. Which
# of them matters most here?
# %%
from minigraph import fuse, launch_model, make_plan
from minigraph.command.tables import table
from minigraph.teach.examples import mlp_graph

network = mlp_graph(layers=32, width=1024, batch=1)
switch = {"unfused": fuse(network, enabled=False),
          "library": fuse(network, rows=0),
          "fused": fuse(network)}
t4, h100 = launch_model.PRESETS["t4"], launch_model.PRESETS["h100"]


def time_on(device, plan):
    work = [(one.bytes_read + one.bytes_written, one.flops) for one in plan.launches]
    return predict_time(work, device.launch, device.bandwidth, device.peak)


print(f"T4 -> H100: bandwidth x {h100.bandwidth / t4.bandwidth:.1f}, peak x {h100.peak / t4.peak:.1f};"
      f" a launch is assumed to cost {1e6 * h100.launch:.1f} µs on both")
try:
    plans = {name: make_plan(way) for name, way in switch.items()}
    times = {name: (time_on(t4, plan), time_on(h100, plan)) for name, plan in plans.items()}
    print(table([{"": name, "launches": len(plans[name].launches), "T4, ms": round(1e3 * slow, 2),
                  "H100, ms": round(1e3 * quick, 2), "times as fast": round(slow / quick, 1)}
                 for name, (slow, quick) in times.items()]))
except NotImplementedError:
    print("Write predict_time first.")
# %% [markdown]
# **The answer:** what a launch costs. The host pays it, so the model assumes one published figure for all GPUs; that is an input, no
# result. The result is this: the H100 gains far less than its bandwidth and its peak promise. The fewer launches there are, the more
# of the promise is kept.
#
# ## 3. The knee
#
# From which size on does the work take as long as the launch? About 3 lines.
# %% exercise=break_even
# %%
check(break_even)
# %% [markdown]
# Is your own machine's knee where you say? The line is measured, the mark is your answer for this addition: two operands of
# float32, one flop. (1e11 flops a second is about what one CPU core does; here the bytes take longer anyway.)
# %% nbval-ignore-output
from minigraph import draw_curves
from minigraph.teach.launches import numpy_sizes

sizes = [4**k for k in range(12)]
seconds = [row["NumPy"] for row in numpy_sizes(sizes)]
overhead, bandwidth = min(seconds[:4]), max(12 * n / t for n, t in zip(sizes, seconds))
try:
    marks = [(break_even(2, 4, 1, overhead, bandwidth, 1e11), "your break_even")]
except NotImplementedError:
    marks = []
draw_curves({"np.add": list(zip(sizes, seconds))}, x_label="elements", y_label="time of one call",
            y_unit="s", title="the knee of this machine", label="measured here", marks=marks)
# %% [markdown]
# ## 4. Refute a benchmark
#
# `without_wait` issues a graph's launches to an A100 (in the launch model, where `schedule` says who is busy when) and stops the
# clock when the last one is in the queue.
# %%
import inspect

from minigraph.teach.exercises.ch07 import without_wait

print(inspect.getsource(without_wait))
# %% [markdown]
# A benchmark is there to say which of two programs is faster. Change the two graphs so that it calls one of them the faster one,
# and in truth that one takes at least twice as long. At most 6 nodes each, inputs included.
# %% refute_benchmark=without_wait
# %% [markdown]
# ## Stretch: a host that runs ahead
#
# The launch model adds overhead and work. A real host issues the next launches while the device works on the first. When does each
# launch run? About 9 lines.
# %% exercise=device_events
# %%
check(device_events)
# %% [markdown]
# Your schedule as a picture: one large product, then ten small launches, in microseconds. While the product runs, the host gets far
# ahead, and the small ones follow without a wait. Put the product last, and see what becomes of it.
# %%
from minigraph import draw_timeline
from minigraph.launch_model import DEVICE, HOST, Event

work = [60e-6] + [1e-6] * 10
try:
    runs = device_events([*work], issue=5e-6, gap=0.5e-6)
    events = [Event(start, end, "kernel", DEVICE) for start, end in runs]
    events += [Event(5e-6 * i, 5e-6 * (i + 1), "launch", HOST) for i in range(len(work))]
    picture = draw_timeline(events, "predicted by device_events", title="a host that runs ahead")
except NotImplementedError:
    picture = "write device_events first"
picture
# %% [markdown]
# ## How far are you?
# %%
progress()
