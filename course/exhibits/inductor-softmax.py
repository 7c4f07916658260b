# What torch.compile (Inductor) writes for softmax: one kernel, three walks over a row, and a
# buffer for the exponentials.
# Its vector instructions are switched off here, and casts left out, so that it can be read.
# torch 2.13.0, on the CPU; Python 3.11, Linux x86-64, 2026-11.
# `pip install torch==2.13.0; python course/exhibits/inductor-softmax.py`
import re

import torch
from torch._inductor import config
from torch._inductor.utils import run_and_get_code

config.fx_graph_cache = False
config.cpp.simdlen = 1


def softmax(x):
    e = torch.exp(x - x.amax(1, keepdim=True))
    return e / e.sum(1, keepdim=True)


_, (code,) = run_and_get_code(torch.compile(softmax), torch.zeros(64, 100))
print("kernels:", code.count("async_compile.cpp_pybinding"))
for line in code.splitlines():
    if re.search(r"\btmp_?\w+ =|for\(|= tmp\w+;", line):
        line = re.sub(r"static_cast<\w+>\(([^()]*?)L?\)|\bfloat\(([^()]*)\)", lambda m: m[1] or m[2], line).strip()
        line = line.replace("std::numeric_limits<float>::infinity()", "infinity")
        once = re.match(r"for\(\w+ x1|float tmp|out_ptr\d\[x0\]", line)  # once a row; the rest once an element
        print("" if "x0=" in line else "    " if once else "        ", line, sep="")
