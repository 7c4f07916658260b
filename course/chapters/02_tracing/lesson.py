# %% [markdown]
# # 02 Tracing
#
# *About 35 minutes. You need chapter 01. The exercises are in `exercises/02_tracing.ipynb`.*
#
# Nobody writes graphs by hand. A model is a Python function. The compiler gets its graph by running that function once and
# writing down what it does. That is **tracing**. (Reading the source instead would mean to understand all of Python. A
# tracer need only know arrays: Python itself does the rest.)
# %%
import numpy as np
import minigraph as mg


def block(x, w):
    half = 1 / 2
    h = x @ w
    if h.ndim == 2:
        h = h * half
    for _ in range(3):
        h = np.tanh(h)
    print("Python passes here; h is of type", type(h).__name__)
    return h + x
# %% [markdown]
# **The question:** `block` has an `if`, a loop and a `print`. A graph has none of these. How many nodes does its graph have, the
# two inputs included?
# %%
from minigraph.teach import predict

predict("How many nodes does the graph of block have?", None,
        lambda: len(mg.trace(block, x="f32[4,4]", w="f32[4,4]")))
# %%
graph = mg.trace(block, x="f32[4,4]", w="f32[4,4]")
print(graph)
print(len(graph), "nodes")
# %% [markdown]
# Here is where each node came from: your source on the left, what it recorded on the right. Look at the grey lines.
# %%
from minigraph.teach.lines import draw_lines

draw_lines(graph, block)
# %% [markdown]
# `trace` called `block` with two **stand-ins** in place of arrays. A stand-in has a dtype and a shape, and no numbers. Each
# operation on a stand-in writes a node and returns a new stand-in. Everything else is plain Python, and Python just ran it:
#
# - `1 / 2` was computed. The graph has only the 0.5.
# - The `if` asked for a number of dimensions. A stand-in knows its shape, so Python chose a side, and the graph has only that side.
# - The loop went round three times, so there are three `tanh`. The loop was **unrolled**.
# - `print` printed, once, while tracing. Who runs the graph later will not see it:
# %%
x = np.eye(4, dtype=np.float32)
print("the function:")
want = block(x, x)
print("the graph:")
have = mg.run(graph, x=x, w=x)["out"]
print("same bits:", mg.same_bits(want, have))
# %% [markdown]
# (`mg.print_value(h)` is the print that is recorded.)
#
# ## How a stand-in hears of an operation
#
# Python turns every operator into a method call. This class does nothing but tell which one.
# %%
class Echo:
    def __sub__(self, other):
        print(f"x.__sub__({other})")

    def __rsub__(self, other):
        print(f"x.__rsub__({other})")


predict("Which method of x does Python call for 2 - x?", None, lambda: "__rsub__")
# %%
x = Echo()
x - 2
2 - x
# %% [markdown]
# For `2 - x` Python asks the 2 first. It does not know what an Echo is, so Python asks `x`, by the **reflected** method. There
# `x` is the right operand, and a tracer that forgets this records `x - 2`.
#
# NumPy's functions ask, too: `np.tanh(x)` looks for a method `__array_ufunc__`. So a tracer is a class with such methods. You
# will write one.
#
# ## What NumPy does silently
#
# NumPy converts dtypes without a word. In a graph every conversion is a node, because it costs time and changes numbers.
# %%
def recorded(f, *types):
    nodes = mg.trace(f, *types).nodes
    print(*(mg.node_line(node) for node in nodes if node.op != "input"), sep="\n")


recorded(lambda n: n + 1.0, "i32[4]")
print()
recorded(lambda x: x * 2.0, "f32[4]")
# %% [markdown]
# Integers plus 1.0 are computed in f64: a **cast** of `n`, a constant, an addition. A float32 times 2.0 stays f32. A Python number
# has no dtype of its own; it takes the array's, if that is of a kind that can hold it. (NumPy calls this rule NEP 50.)
#
# A number that comes *from NumPy* does have a dtype. Attention divides its scores by a square root:
# %%
predict("x has 1,024 float32 elements, so 4,096 bytes. How many bytes has x / np.sqrt(16)?", None,
        lambda: mg.trace(lambda x: x / np.sqrt(16), "f32[1024]").nodes[-1].type.nbytes)
# %%
recorded(lambda x: x / np.sqrt(16), "f32[1024]")
print()
recorded(lambda x: x / np.sqrt(np.float32(16)), "f32[1024]")
# %% [markdown]
# `np.sqrt(16)` is a float64, and one float64 makes float64 of all that follows, at twice the bytes. NumPy never told. The graph
# does: look for the cast. The second version mends it.
#
# ## What happened, not what could happen
#
# A trace is the record of one run. Four things follow.
#
# **Python computes first.** Nothing of the addition below reaches the tracer.
# %%
recorded(lambda x: (2.0 + 3.0) * x, "f32[4]")
# %% [markdown]
# Other tracers see as little:
# %% exhibit=python-folds-first
# %% [markdown]
# **Arrays that the function uses become constants,** with the numbers that they had.
# %%
weights = np.array([1.0, 2.0], np.float32)


def scale(x):
    return x * weights


graph = mg.trace(scale, "f32[2]")
weights[:] = 0
ones = np.ones(2, np.float32)
print("the function:", scale(ones), " the graph:", mg.run(graph, x=ones)["out"])
# %% [markdown]
# **Loops unroll.** The graph grows with the number of rounds.
# %%
def square(x, rounds):
    for _ in range(rounds):
        x = x * x
    return x


print({rounds: len(mg.trace(square, "f32[4]", rounds)) for rounds in (1, 10, 100)})
# %% [markdown]
# **Random numbers freeze,** unless they are drawn by the graph. `mg.random` records a draw; its `site` says which one, so that each
# keeps its own numbers whatever a pass does around it. NumPy's generator is plain Python to a tracer.
# %%
recorded(lambda x: x + mg.random((4,)) + mg.random((4,)), "f32[4]")
print()
recorded(lambda x: x + np.random.default_rng(0).random(), "f32[4]")
# %% [markdown]
# The second graph adds the same number in every run.
#
# ## "Tracing understands my if"
#
# An `if` on a shape was no trouble. This one depends on the *data*. Some tracers run on an example: their stand-ins know the
# example's numbers, so there is an answer.
# %%
from minigraph.teach.standins import trace_by_example


def choose(x):
    total = np.sum(x)
    if total > 0:
        return x * 2
    return x - 1


graph = trace_by_example(choose, x=np.ones(4, np.float32))
print(graph)
# %% [markdown]
# The example was all ones, so Python took the first `return`. For -3, `choose` gives -4.
# %%
threes = np.full(4, -3, np.float32)
predict("What does the graph give for -3?", None, lambda: float(mg.run(graph, x=threes)["out"][0]))
# %%
print("the function:", choose(threes), " the graph:", mg.run(graph, x=threes)["out"])
# %% [markdown]
# No error and no warning: a wrong number. The comparison is in the graph, and nobody reads it. The question was asked once, and
# the answer is **baked in**. Tracing records what happened, not what could happen.
#
# Our `trace` has no example, so it cannot answer. It refuses, and says what to write instead. So it does with everything else
# that a graph cannot say.
# %%
def in_place(x):
    x += 1
    return x


def unknown(x):
    return np.argsort(x)


for f in (choose, in_place, unknown):
    try:
        mg.trace(f, "f32[4]")
    except mg.TraceError as error:
        print(f"{f.__name__}: {error.rule}\n    {error.hint}\n")
# %% [markdown]
# The cure is to make the choice an operation. Follow the arrows into `where`: both sides are computed in every run, and
# the condition chooses.
# %%
mg.draw(mg.trace(lambda x: np.where(np.sum(x) > 0, x * 2, x - 1), "f32[4]"))
# %% [markdown]
# ## Where the waste comes from
#
# Nobody writes the same computation three times. They call a function three times, and a trace has no functions. This is
# the attention layer of this course. Look at the body of `rms_norm`, then at that of `rotate`.
# %%
from minigraph.teach.examples import attention_layer, layer_graph, rms_norm, rotate

layer = layer_graph()
draw_lines(layer, rms_norm, rotate, attention_layer)
# %%
print("x * x:", [node.name for node in layer.nodes if node.op == "mul" and node.inputs == ("x", "x")])
outputs = {value for _, value in layer.outputs}
print("read by nobody:",
      [name for name, readers in mg.users(layer).items() if not readers and name not in outputs])
# %% [markdown]
# `rms_norm(x, norm)` was called for the queries, the keys and the values, with the same arguments. It was recorded three times.
# The cosines and sines were recorded twice. And `largest` is left over from somebody's debugging. A traced graph says
# all that happened, and that is the reason for most of this course: the passes take the waste out again.
#
# ## Write the tracer
#
# Open `exercises/02_tracing.ipynb`. You write the three pieces of a tracer, `record`, `binary` and `trace_with`, and then you run
# your own. After that you find inputs on which traced graphs go wrong.
#
# ## The same `if` in real compilers
# %% exhibit=traced-if
# %% [markdown]
# Three answers to one question. torch.fx and JAX refuse, as we do. torch.compile ends the graph at the `if`, lets Python decide in
# every run, and has one graph for each side. And the last one is our `where`, under another name.
#
# ## The scoreboard
#
# The first line of a table that will grow: the attention layer as traced, with its weights as constants. *Launches* are calls that
# compute something, and *peak* is the most memory that lives at one time.
# %%
from minigraph.teach.score import scoreboard

scoreboard("traced")
# %% recall
# Q: A traced function has `for _ in range(3)`. Where is the loop in the graph?
# A: Nowhere. Python ran it, and its body was recorded three times.
#
# Q: Why may a traced function ask `if x.shape[0] > 4`, and not `if x[0] > 4`?
# A: A stand-in has a shape, so Python can choose a side. It has no numbers, so there is nothing to compare.
#
# Q: Why does `n + 1.0`, with `n` of int32, record three nodes?
# A: A cast of n to float64, the constant 1.0, and the addition: what NumPy does silently is written down.
# %% glossary=02
