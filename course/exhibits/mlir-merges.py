# MLIR's cse merges two equal exponentials, because exp is pure. The two calls of a function that
# may do anything stay two.
# iree-base-compiler 3.13.0 (its MLIR); Python 3.11, Linux x86-64, 2026-11.
# `pip install iree-base-compiler==3.13.0; python course/exhibits/mlir-merges.py`
import textwrap

from iree.compiler import ir, passmanager

TEXT = """func.func private @rand() -> f32
func.func @f(%x: f32) -> (f32, f32) {
  %a = math.exp %x : f32
  %b = math.exp %x : f32
  %c = arith.mulf %a, %b : f32
  %p = func.call @rand() : () -> f32
  %q = func.call @rand() : () -> f32
  %d = arith.mulf %p, %q : f32
  return %c, %d : f32, f32
}
"""

print("before:", TEXT, sep="\n")
with ir.Context():
    module = ir.Module.parse(TEXT)
    passmanager.PassManager.parse("builtin.module(cse)").run(module.operation)
    print("after cse:", textwrap.dedent("\n".join(str(module).splitlines()[1:-1])), sep="\n")
