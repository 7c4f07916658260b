# torch.export keeps the addition of two buffers of the model; a pass of torch.compile's back end
# (Inductor), called by itself, folds it.
# torch 2.13.0; Python 3.11, Linux x86-64, 2026-11.
# `pip install torch==2.13.0; python course/exhibits/torch-folds.py`
import torch
from torch._inductor.constant_folding import constant_fold


class Example(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("a", torch.tensor(2.0))
        self.register_buffer("b", torch.tensor(3.0))

    def forward(self, x, y):
        c = self.a + self.b
        d = c * x
        e = torch.sin(d)
        f = torch.exp(e)
        g = f + c
        return g * y


def show(title):
    print(title)
    for line in module.code.splitlines():
        if " = self._frozen" in line or " = self.a" in line or " = self.b" in line or "torch.ops" in line:
            print(line.split(";")[0])


module = torch.export.export(Example(), (torch.randn(7), torch.randn(7))).module()
show("torch.export.export(...).module():")
constant_fold(module)
show("\nafter torch._inductor.constant_folding.constant_fold:")
print("self._frozen_param0 is", module._frozen_param0.item())
