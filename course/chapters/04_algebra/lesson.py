# %% [markdown]
# # 04 Algebra
#
# *About 40 minutes. You need chapter 03. The exercises are in `exercises/04_algebra.ipynb`.*
#
# At school, anything times zero is zero. Here are eight scores, and a program that multiplies each of them by 0.0.
#
# **The question:** how many of the eight results are 0.0?
# %%
from minigraph.passes import fold, simplify
from minigraph.teach import predict
import minigraph as mg
import numpy as np

scores = np.array([2.0, 0.5, 0.0, -0.0, -3.0, np.inf, -np.inf, np.nan], np.float32)
program = mg.parse("""
graph program(scores: f32[8]) -> (y) {
  zero = const(0.0) : f32[]
  y = mul(scores, zero) : f32[8]
  return y
}""")
print(program)
# %%
predict("How many of the eight results are 0.0, to the bit?", None,
        lambda: sum(mg.same_bits(one, np.float32(0.0)) for one in mg.run(program, scores=scores)["y"]))
# %%
results = mg.run(program, scores=scores)["y"]
for score, result in zip(scores, results):
    mark = "" if mg.same_bits(result, np.float32(0.0)) else "  <- not 0.0"
    print(f"{score!s:>4} * 0.0 = {result!s:>4}", mark)
print("0.0 to the bit:", sum(mg.same_bits(result, np.float32(0.0)) for result in results))
# %% [markdown]
# Three. A compiler that writes 0.0 for `scores * 0.0` changes five results of eight.
#
# *To the bit* is what `same_bits(a, b)` says: the same dtype, the same shape, the same bits. -0.0 and 0.0 are two numbers for it; all
# NaNs count as one.
#
# But in chapter 03 we turned `5 * 0` into a constant without a second thought. Was that wrong?
# %%
constants = mg.parse("""
graph constants() -> (a, b) {
  five = const(5.0) : f32[]
  minus_five = const(-5.0) : f32[]
  zero = const(0.0) : f32[]
  a = mul(five, zero) : f32[]
  b = mul(minus_five, zero) : f32[]
  return a, b
}""")
print(fold(constants).graph)
# %% [markdown]
# No. **Folding knows both numbers**, so it computes, and gets even the sign right: look at `b`. **Algebra does not know x.** It
# may use a rule only if the rule is right for *every* x. So 5 * 0 folds, and x * 0 must not be touched.
#
# ## Numbers that school left out
# %%
f = np.float32
with np.errstate(all="ignore"):
    print("-1e-30 * 1e-30 =", f(-1e-30) * f(1e-30))
    print("0.0 == -0.0:", bool(f(0.0) == f(-0.0)))
    print("1 / 0.0 =", 1 / f(0.0), "   1 / -0.0 =", 1 / f(-0.0))
    print("1e30 * 1e30 =", f(1e30) * f(1e30), "   inf - inf =", f(np.inf) - f(np.inf))
    print("exp(-200) =", np.exp(f(-200)))
    print("nan == nan:", bool(f(np.nan) == f(np.nan)), "   nan * 0.0 =", f(np.nan) * f(0.0))
# %% [markdown]
# - **-0.0**, a *signed zero*: what is left of a negative number that became too small to write down. It compares equal to 0.0
#   and still is another number: one divided by it is -inf.
# - **inf**: what became too large to write down.
# - **NaN**, *not a number*: there is no answer. It is not even equal to itself, and it survives almost everything.
#
# None of these is exotic in a language model. A mask writes -inf on purpose, and exp makes 0.0 of every large negative score.
#
# ## Ten rules from school
#
# Each line says: write the right side for the left side.
# %%
from minigraph.passes.rules import RULES, Rule
from minigraph.teach.killers import killer, killer_table, rule_grid

school = [Rule(left, left, right) for left, right in [
    ("add(x, 0.0)", "x"), ("add(x, -0.0)", "x"), ("sub(x, 0.0)", "x"), ("sub(x, x)", "0"),
    ("sub(0.0, x)", "neg(x)"), ("mul(x, 0.0)", "0"), ("mul(x, 1)", "x"), ("div(x, 1)", "x"),
    ("div(x, x)", "1"), ("neg(neg(x))", "x"),
]]
predict("How many of the ten are right for every x?", None,
        lambda: sum(killer(rule) is None for rule in school))
# %%
rule_grid(school)
# %% [markdown]
# Read along a row. `=` means that both sides give the same bits for that x. A filled cell says what the left side gives,
# and, after *not*, what the right side would give. That x **kills** the rule: one counterexample is enough.
#
# Five rows are clean. Now compare the first three. Adding 0.0 does something, adding -0.0 does nothing, and for subtraction
# it is the other way round.
#
# Seven columns prove nothing about the other numbers. But float16 has only 65,536 of them, so we can try each one.
# %%
every = np.arange(65536, dtype=np.uint16).view(np.float16)  # all float16 numbers that there are
zero = np.float16(0.0)
with np.errstate(all="ignore"):
    sides = {"x + 0.0 -> x": (every + zero, every), "x + -0.0 -> x": (every + -zero, every),
             "x - x -> 0": (every - every, zero), "x * 0.0 -> 0": (every * zero, zero)}
for rule, (left, right) in sides.items():
    same = (left == right) & (np.signbit(left) == np.signbit(right)) | np.isnan(left) & np.isnan(right)
    print(f"{rule:14} wrong for {np.count_nonzero(~same):6,} of {len(every):,}")
# %% [markdown]
# A random test would almost never find the one number that kills `x + 0.0`. A compiler meets it sooner or later.
#
# ## What a strict compiler does
#
# Who writes `x * 1` anyway? Nobody, and graphs are full of it: a scale that happens to be 1, a bias that the checkpoint does
# not have and that was filled with zeros, a dropout that is switched off. Other passes leave such things behind, too.
# Removing them is **algebraic simplification**.
# %%
layer = mg.parse("""
graph layer(scores: f32[4]) -> (y) {
  scale = const(1.0) : f32[]
  bias = const([0.0, 0.0, 0.0, 0.0]) : f32[4]
  scaled = mul(scores, scale) : f32[4]
  shifted = add(scaled, bias) : f32[4]
  turned = neg(shifted) : f32[4]
  y = neg(turned) : f32[4]
  return y
}""")
predict("How many of the four operations of this layer does simplify take out?", None,
        lambda: len(simplify(layer).report))
# %%
result = simplify(layer)
for step in result.report:
    print(f"{step.before[0]} is now {step.after}, by the rule {step.rule}")
mg.draw_diff(layer, result.graph)
# %% [markdown]
# Two. In the picture, dashed is gone and dotted is an arrow that moved. `turned` is still there and nobody reads it: a corpse
# for chapter 05. And `shifted`, the addition of a bias of zeros, **stays**: a score of -0.0 would come out with the other sign.
#
# So which bias adds nothing?
# %%
no_bias = mg.parse(str(layer).replace("const(0.0)", "const(-0.0)"))
print(no_bias)
print(simplify(no_bias).graph)
# %% [markdown]
# Whoever builds a graph for a layer without a bias should fill in -0.0.
#
# ## A rule is a line of data
#
# Our simplifier has no `if op == "add"` in it. It has a table.
# %%
table = {rule.name: rule for rule in RULES}
for name in ("mul-1-float", "sub-self-int", "sub-self", "div-power-of-two", "div-const"):
    rule = table[name]
    print(f"{rule.pattern} -> {rule.result}   for {' '.join(rule.domain)}",
          f"  flags: {' '.join(rule.flags) or 'none'}", f"  when: {rule.when}" if rule.when else "")
print(len(RULES), "rules, of which", sum(not rule.flags for rule in RULES), "need no flag")
# %% [markdown]
# A pattern is written in the language of the graphs. A bare `x` fits any value, and a second `x` only the same one; `c1` fits
# a constant; a number fits a constant with exactly these bits in every element, in the constant's dtype: for floats `0` is 0.0.
# Operations that commute are tried both ways. The **domain** says for which dtypes. **When** names
# a test for what no pattern can say: where c1 is a power of two, 1 / c1 is exact; for other constants the same row needs a flag.
#
# Data can be printed, counted, tested and extended. And it cannot forget the shape: the engine looks after that for every rule.
# %%
wide = mg.parse("""
graph wide(scores: f32[4]) -> (y) {
  ones = const(1.0) : f32[2,4]
  y = mul(scores, ones) : f32[2,4]
  return y
}""")
print(simplify(wide).graph)
# %% [markdown]
# The result has two rows, so `scores`, which has one, cannot stand for it. A replacement has the dtype and shape of what it replaces.
#
# When a rule of yours does nothing, ask why. Here are four kinds of answer.
# %%
from minigraph.passes.simplify import explain

print(explain(table["add--0.0-float"], layer, "shifted"))
print(explain(table["add-zero"], layer, "shifted"))
print(explain(table["add-0-signed"], layer, "shifted"))
print(explain(table["sub-self"], layer, "shifted", fast=("nnan", "ninf")))
# %% [markdown]
# ## Integers
#
# Integers have no NaN, no infinity and one zero, and they wrap around. How many of these three operations survive?
# %%
whole = mg.parse("""
graph whole(positions: i32[4]) -> (a, b, c) {
  zero = const(0) : i32[]
  a = add(positions, zero) : i32[4]
  b = mul(positions, zero) : i32[4]
  c = sub(positions, positions) : i32[4]
  return a, b, c
}""")
print(simplify(whole).graph)
# %% [markdown]
# None: all three are exact. The domain decides. (It is not always the integers that are safe. An exercise has a rule
# that is exact for floats and wrong for integers.)
#
# ## Flags: permission to be wrong
#
# Many programs do not care about the sign of a zero. They may say so. LLVM's language reference gave such permissions
# names ("fast-math flags"), and the field uses them. A flag promises something about what goes in **and** what comes out:
#
# - `nnan`: no operand and no result is a NaN. `ninf`: none is an infinity. `nsz`: the sign of a zero does not matter.
# - `arcp`: x / c may be x * (1 / c). `reassoc`: operations may be regrouped.
# - `contract`: a * b + c may be rounded once instead of twice. `afn`: exp and its like may be approximated. (Both are for generated
#   kernels, later in the course.)
#
# A rule with flags is used only if **all** of them are allowed. By default none is.
# %%
predict("Which flags does our table name for mul(x, 0.0) -> 0?", None, lambda: table["mul-zero"].flags)
# %%
flagged = [rule for rule in RULES if rule.flags]
print(len(flagged), "rules have flags; here are six. killer_table(flagged) shows all.")
some = ("add-zero", "mul-zero", "sub-self", "div-self", "div-const", "add-add")
killer_table(table[name] for name in some)
# %% [markdown]
# One row for each flag, with a killer that it excuses, found by trying. *Left side* is what the program gives, *right side* what
# the rule would make of it. Look at `mul(x, 0.0)`: three flags, three killers. A test holds the whole table to this: a rule
# without flags has no killer, and a flag without a killer is refused.
# %%
for step in simplify(layer, fast=("nsz",)).report:
    print(f"{step.before[0]} is now {step.after}, by the rule {step.rule}")
# %% [markdown]
# With `nsz` the bias goes. But a flag is a **promise about the data, and nobody checks it**. Would our attention layer keep the
# promise `ninf`?
# %%
from minigraph.teach.examples import frozen_layer

attention = fold(frozen_layer()).graph
constants = [node for node in attention.nodes if node.op == "const"]
print([mg.node_line(node) for node in constants if np.isinf(node.value.array).any()])
# %% [markdown]
# It would not: the mask is made of -inf.
#
# ## Why it ends
#
# `x + y = y + x` is true to the bit. As a rule it would fire for ever. So each operation has a weight in the op table, and
# every use of a rule must make the graph lighter.
# %%
from minigraph.ops import OPS

print({name: OPS[name].cost for name in ("neg", "add", "mul", "div", "pow")})
swap = Rule("swap", "add(x, y)", "add(y, x)")
try:
    simplify(layer, rules=[swap])
except mg.RuleLoop as error:
    print(error)
# %% [markdown]
# A weight that falls with every step and is never below zero cannot fall for ever. That is the whole proof.
#
# ## Write the pass
#
# Your turn: `exercises/04_algebra.ipynb`. You write the test for an identity, the pass, and rules as data; you refute four
# passes whose authors had good reasons.
#
# ## The same rules in real compilers
#
# Here are `x * 0` and `x + 0` in six of them, PyTorch's with two ways to write the zero. Look at the last column.
# %% exhibit=who-keeps-ieee
# %% [markdown]
# Two compilers drop `x * 0`, and four drop `x + 0`, PyTorch's only where the zero is a tensor. Nobody gave them a flag. And
# this is MLIR, which has the same flags as we have:
# %% exhibit=mlir-flags
# %% [markdown]
# MLIR drops `x + -0.0`, keeps `x + 0.0`, and drops it too under `nsz`, as you would now. For `x * 0.0` it asks for `nnan` and `nsz`
# only. That is enough: inf * 0.0 *is* NaN, and `nnan` promises that no NaN comes out. Our table is more careful than it must be.
# An infinite x is a killer of its own, so it names `ninf` as well, here and for x - x and x / x. Both are right.
#
# ## The scoreboard
# %%
from minigraph.teach.score import scoreboard

scoreboard("fold", "simplify")
simple = simplify(attention)
print({step.before[0]: step.rule for step in simple.report})
x = np.random.default_rng(0).standard_normal((8, 16)).astype(np.float32)
before, after = mg.run(attention, x=x), mg.run(simple.graph, x=x)
print("the same bits:", all(mg.same_bits(before[name], after[name]) for name in before))
# %% [markdown]
# Five launches fewer: three norm weights that are all ones, a bias of -0.0, a dropout factor of 1. The sixth change made one division by 4
# a multiplication by 0.25, which rounds the same because 4 is a power of two. The ones and zeros are still stored, although
# nobody reads them: chapter 05.
# %% recall
# Q: Why may 5 * 0 become 0 while x * 0 may not?
# A: Folding knows both numbers and computes. For an unknown x the product may be -0.0 or NaN.
#
# Q: Which constant may be dropped from an addition of floats, and which from a subtraction?
# A: -0.0 from an addition, 0.0 from a subtraction. On integers, 0 from both.
#
# Q: Why does every use of a rule have to lower a weight?
# A: So that rules cannot undo one another for ever: a weight that falls with each step reaches an end.
# %% glossary=04
