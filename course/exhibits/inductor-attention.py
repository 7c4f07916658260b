# torch.compile (Inductor) finds attention by its shape in the graph, and replaces it by one
# operation. Where somebody else reads the scores, it does not. After -> each kernel that is called.
# torch 2.13.0, on the CPU; Python 3.11, Linux x86-64, 2026-11.
# `pip install torch==2.13.0; python course/exhibits/inductor-attention.py`
import inspect
import re

import torch
from torch._inductor import config
from torch._inductor.utils import run_and_get_code

config.fx_graph_cache = False


def attention(q, k, v):
    return torch.softmax(q @ k.transpose(-2, -1) / 8, -1) @ v


def watched(q, k, v):
    scores = q @ k.transpose(-2, -1) / 8
    return torch.softmax(scores, -1) @ v, scores


arrays = [torch.rand(1, 2, 512, 64) for _ in range(3)]
for function in (attention, watched):
    print(inspect.getsource(function).rstrip())
    with torch.no_grad():
        _, codes = run_and_get_code(torch.compile(function), *arrays)
    called = re.findall(r"^\s+(?:\w+ = )?(?:torch\.ops\.aten\.|extern_kernels\.)?(\w+)(?:\.default)?\(.*buf|"
                        r"^\s+\w+ = torch\.ops\.aten\.(\w+)\.default\(", codes[0].split("def call(")[1], re.MULTILINE)
    skip = ("assert_size_stride", "empty_strided_cpu", "reinterpret_tensor", "return")
    for name in (a or b for a, b in called):
        if name not in skip:
            print("->", name)
