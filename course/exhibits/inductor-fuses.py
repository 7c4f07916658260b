# What torch.compile (Inductor) writes for the same line: one C++ loop, one load, one store.
# Its vector instructions are switched off here, and casts left out, so that it can be read.
# torch 2.13.0, on the CPU; Python 3.11, Linux x86-64, 2026-11.
# `pip install torch==2.13.0; python course/exhibits/inductor-fuses.py`
import re

import torch
from torch._inductor import config
from torch._inductor.utils import run_and_get_code

config.fx_graph_cache = False
config.cpp.simdlen = 1


def gelu(x):
    return 0.5 * x * (1 + torch.tanh(0.7978846 * (x + 0.044715 * x * x * x)))


_, (code,) = run_and_get_code(torch.compile(gelu), torch.zeros(1_000_000))
print("kernels:", code.count("async_compile.cpp_pybinding"))
for line in code.splitlines():
    if re.search(r"\btmp\d+ =|for\(|= tmp\d+;", line):
        line = re.sub(r"static_cast<\w+>\(([^()]*?)L?\)|\bfloat\(([^()]*)\)", lambda m: m[1] or m[2], line)
        print(("" if "for(" in line else "    ") + line.strip())
