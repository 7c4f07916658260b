# %% [markdown]
# # 11 Memory planning: where everything lies
#
# *About 45 minutes. You need chapters 01 to 08. The exercises are in `exercises/11_memory_planning.ipynb`.*
#
# NumPy asks the system for memory at each operation. A compiler need not: it knows all sizes, and who reads what
# when. So it can reserve one block, the **arena**, and decide before the first run where in it each value will lie.
#
# **The question:** in how few bytes can a whole layer run?
# %%
import numpy as np

import minigraph as mg
from minigraph.command.tables import table
from minigraph.planners import Buffer, check, exact, first_fit, greedy_by_size, lower_bound, naive
from minigraph.teach import memory, predict
from minigraph.teach.examples import frozen_layer

layer = memory.optimized(frozen_layer())
plan = mg.make_plan(layer)
buffers = memory.buffers_of(plan)
for number, launch in enumerate(plan.launches):
    print(f"{number:2} {launch.name:9} reads {', '.join(launch.reads)}")
print(f"{len(buffers)} buffers, together {naive(buffers).footprint:,} bytes")
# %% [markdown]
# This is the attention layer of the scoreboard, fused. `x` is the input, and the result, `add.5`, has memory of its own.
# `cos`, `mask` and the transposed weights are constants. `a` and `b` are views of `x.1`: they look at its memory. What is
# left must lie in the arena.
# %%
predict("In how many bytes can these buffers live?", None)
# %% [markdown]
# ## Live ranges
#
# A value needs memory from the launch that writes it up to and with the last launch that reads it: its **live
# range**. We write it as a half-open interval. `[4, 11)` begins with launch 4, and launch 11 is the first that does
# not need it. Here are all of them. Time goes to the right, and each has bytes of its own:
# %%
mg.draw_memory(buffers, naive(buffers), "bytes of its own for each buffer")
# %% [markdown]
# Why half-open? Launch 4 writes `q` and reads `sub`. Both must be there, so `sub` ends at 5. Launch 5 may have its place
# at once. Two ranges meet if each starts before the other ends.
#
# The left and right edges are given. The height is given. All that we choose is how high a rectangle lies. That is
# **memory planning**: push the rectangles up and down, let none overlap, and keep the top low.
#
# ## A line that nobody can go below
#
# Look at one launch. What lives then must lie in different bytes. So no plan takes less than the fullest launch has
# alive:
# %%
alive = [sum(b.size for b in buffers if b.start <= t < b.end) for t in range(len(plan.launches))]
print("alive:", alive)
print("lower bound:", lower_bound(buffers), "reached at launch", alive.index(max(alive)))
# %% [markdown]
# This is the **lower bound**, and it costs one walk over the launches. It need not be reachable. But a plan that
# reaches it is **optimal**, and nothing more needs to be proved.
#
# ## The largest first
#
# To find the best plan is NP-hard. So most compilers are **greedy**: one buffer after the other, each to the lowest
# offset where it is free during its whole life, and never moved again. **Greedy by size** takes the largest first:
# the small ones find gaps anywhere.
# %%
largest_first = greedy_by_size(buffers)
mg.placing_steps(buffers, largest_first, lambda b: (-b.size, b.start), "the largest first")
# %%
mg.draw_memory(buffers, largest_first, "greedy by size")
# %% [markdown]
# Less than half of the bytes. But `matmul` came last, and lies above the line. Below it, bytes are free at each of its
# launches, but nowhere the same ones for its whole life. That is **fragmentation**.
#
# ## No order is the best everywhere
#
# **First fit** takes the buffers in the order in which they start, as an allocator does that meets them at run time.
# Here are two tiny instances and the layer:
# %%
small_first = [Buffer("a", 0, 1, 1), Buffer("b", 0, 2, 3), Buffer("c", 1, 2, 4)]
late = [Buffer("a", 0, 1, 4), Buffer("b", 0, 2, 2), Buffer("c", 1, 4, 3), Buffer("d", 2, 4, 4)]
instances = {"small first": small_first, "late": late, "the layer": buffers}
print(table([{"instance": name, "lower bound": lower_bound(one),
              "first fit": first_fit(one).footprint,
              "greedy by size": greedy_by_size(one).footprint} for name, one in instances.items()]))
# %% [markdown]
# Each wins somewhere. Placing costs hardly anything, so `best_of_orders` tries several orders and keeps the best
# plan.
#
# ## When the usual orders fail
#
# Four buffers, of 1 and 3 bytes:
# %%
four = [Buffer("a", 0, 3, 1), Buffer("b", 1, 2, 3), Buffer("c", 2, 4, 1), Buffer("d", 3, 4, 3)]
mg.draw_memory(four, greedy_by_size(four), "four buffers, greedy by size")
# %%
best = exact(four)
assert best.footprint == best.lower_bound
mg.draw_memory(four, best, "four buffers, searched")
# %% [markdown]
# Find `c`: it hangs above a gap, and under it there is room for `d`. Greedy never leaves a gap that it could use. A
# **search** does: it tries a place, goes on, and comes back if a launch has no bytes left to waste. It must be clever
# about where to try first, or it never ends.
#
# The authors of MiniMalloc (Google, 2023) published instances that they call challenging. This is one. In their paper a
# general solver (integer linear programming) and a heuristic one, TelaMalloc, had not finished it after an hour. The
# memory that it must fit into is 1 MiB.
# %%
hard = memory.read_instance("../course/memory/A.1048576.csv")
greedy, found = greedy_by_size(hard), exact(hard, nodes=100_000, seconds=600)
print(f"{len(hard)} buffers, lower bound {found.lower_bound:,}")
print(f"greedy by size: {greedy.footprint:,}, {greedy.footprint / greedy.lower_bound:.2f} × the bound")
print(f"searched:       {found.footprint:,}", "(optimal)" if found.optimal else "")
mg.draw_memory(hard, found, "MiniMalloc's instance A, searched")
# %% [markdown]
# Greedy does not fit. The search does, without a free byte at the fullest launch.
#
# ## Writing in place
#
# A range can also be avoided. `share` is the last to read `matmul`, and reads element i just before it writes element
# i. So it may write **in place**, into the memory of its operand:
# %%
print({launch.name: launch.in_place for launch in plan.launches if launch.in_place})
# %% [markdown]
# When is that wrong? In each of these graphs, `b` is written over `a`. A kernel computes an element, stores it, and
# goes on; `run_in_place` does just that.
# %%
from minigraph.teach.judge_memory import run_in_place

fine = mg.parse("""graph fine(x: f32[2,2]) -> (y) {
  a = exp(x)
  b = add(a, x)
  y = sin(b)
  return y
}""")
later = mg.parse("""graph later(x: f32[2,2]) -> (y) {
  a = exp(x)
  b = neg(a)
  y = add(a, b)
  return y
}""")
turned = mg.parse("""graph turned(x: f32[2,2]) -> (y) {
  a = exp(x)
  t = transpose(a) {perm=[1,0]}
  b = add(a, t)
  y = sin(b)
  return y
}""")
square = np.arange(4, dtype=np.float32).reshape(2, 2)
for graph in (fine, later, turned):
    right, got = mg.run(graph, x=square)["y"], run_in_place(graph, {"b": "a"}, {"x": square})["y"]
    over = memory.written_over(mg.make_plan(mg.fuse(graph, enabled=False)), "b", "a")
    right, got = (array.astype(float).round(1).tolist() for array in (right, got))
    print(f"{graph.name:7} right {right}, got {got}")
    print("        check_plan:", *mg.check_plan(over) or ["nothing to say"])
# %% [markdown]
# In `later`, `y` still needs `a`. In `turned`, `t` is a **view**: it has no memory, it looks at `a`'s in another way.
# When `b` comes to element (1, 0), it reads `a` at (0, 1), which is overwritten. The same with a broadcast operand:
# it is read again for other elements. So three rules: the last reader; the same element; and a view counts as its
# root, whose range it makes longer.
#
# Inputs are the caller's. Unless the caller gives one away: a **donated** input may be updated in place. That is how
# a language model's KV cache grows by a token without being copied. SmolLM2's architecture with two narrow layers,
# for eight tokens:
# %%
prefill = memory.optimized(memory.tiny_prefill(tokens=8))
rows = []
for what, donate in (("nothing", ()), ("the cache", memory.cache_names(prefill))):
    given = mg.make_plan(prefill, donate)
    outputs = sum(region.nbytes for region in given.regions.values() if region.where == "output")
    in_place = sum(bool(launch.in_place) for launch in given.launches)
    rows.append({"donated": what, "written in place": in_place, "bytes of outputs": outputs,
                 "arena": given.arena_bytes, "bytes moved": given.bytes_moved})
print(table(rows))
# %% [markdown]
# ## A test that is hard to fool
#
# A wrong plan may give the right answer. Here `q` is given up one launch too early; but nobody takes its place in
# time:
# %%
from minigraph.run_plan import PlanExecutable

x = np.random.default_rng(0).standard_normal((8, 16)).astype(np.float32)
(want,) = mg.run(layer, x=x).values()
early = memory.freed_early(plan, "q")
runs = ("right", plan, True), ("too early", early, False), ("too early", early, True)
for name, one, poison in runs:
    (got,) = PlanExecutable(one, poison=poison)(x=x).values()
    verdict = "as it should be" if np.allclose(got, want, atol=1e-5) else f"{np.isnan(got).sum()} NaN"
    print(f"{name:10} {'poisoned' if poison else '':9} {verdict}")
# %% [markdown]
# A **poisoned** arena is overwritten with NaN wherever nothing lives, after every launch. Whoever reads what is dead gets
# NaN, which survives arithmetic (not comparisons). minigraph's tests of plans run in this way. `check_plan` is a second test: it shares no code with
# the planner, and plays the plan.
#
# ## The order
#
# So far, the launches came in the order of the list. Here are three experts: each makes a wide array and a narrow one
# of it. Written like this, all wide ones live at once:
# %%
together = memory.experts()
wide = memory.buffers_of(mg.make_plan(together))
mg.draw_memory(wide, greedy_by_size(wide), "all wide ones first")
# %%
predict("The same nodes, one expert after the other. What is the lower bound now?", None)
# %% [markdown]
# `reorder` looks for the order with the lowest peak. Up to 40 operations it finds the best there is.
# %%
from minigraph.scheduling import reorder

apart = reorder(together)
print(*(node.name for node in apart.nodes if node.op != "input"))
short = memory.buffers_of(mg.make_plan(apart))
mg.draw_memory(short, greedy_by_size(short), "one expert after the other")
# %% [markdown]
# Both plans are optimal for their order. No packing could have gone from the first to the second: the **peak**
# depends on the order as much as on the packing. To change the order is **scheduling**. Any order will do in which a
# launch comes after what it reads, and effects keep their turn.
#
# ## A real model
#
# A plan needs shapes, not weights. So we can plan SmolLM2's prefill of 128 tokens anywhere:
# %%
rows, real = [], memory.optimized(memory.smollm2_prefill(tokens=128))
for name, graph in (("tiny", prefill), ("SmolLM2", real)):
    for how, way in (("unfused", mg.fuse(graph, enabled=False)), ("fused", mg.fuse(graph))):
        model = mg.make_plan(way, memory.cache_names(graph))
        own = naive(memory.buffers_of(model)).footprint
        rows.append({"model": name, "launches": f"{len(model.launches)} {how}", "own bytes each": own,
                     "lower bound": model.placement.lower_bound, "planned": model.arena_bytes,
                     "times less": round(own / model.arena_bytes)})
        assert check(memory.buffers_of(model), model.placement.offsets) == []
print(table(rows))
# %% [markdown]
# What took hundreds of megabytes fits into two. Layer after layer uses the same bytes, so the depth of a model costs
# nothing here. (Training keeps the activations for the backward pass. There it does cost.)
#
# ## Write it
#
# Open `exercises/11_memory_planning.ipynb`. You compute live ranges, decide what may be written in place, write a
# planner that is compared with greedy by size, and refute two rules.
#
# ## The same experts in a real compiler
# %% exhibit=xla-memory
# %% [markdown]
# XLA's arena is as large as ours in the first order, to the byte. Its packing is perfect, and its schedule is the
# expensive one, even for the source that runs one expert after the other: it puts the wide products side by side. (On
# a machine with many cores, that may be what one wants.)
#
# ## The scoreboard
#
# Until now the peak was counted as if memory could be packed without a gap, and as if the output could lie anywhere. The
# last line is what is really reserved, and the output's memory is reserved from the start.
# %%
from minigraph.teach.score import scoreboard

scoreboard("fold", "simplify", "dce", "cse", "fuse", "plan")
# %% recall
# Q: Why can no plan take less than the lower bound?
# A: What lives during one launch must lie in different bytes, and the bound is the fullest launch's sum.
#
# Q: When may a result be written over an operand?
# A: If the operand was computed, nobody reads its memory later (not through a view
# either), and this launch reads element i only for element i.
#
# Q: A wrong plan passes all tests of values. What did the tests lack?
# A: Poison. What is dead must be overwritten at once, or a stale read finds the right value by luck.
# %% glossary=11
