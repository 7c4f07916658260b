# MLIR's canonicalizer deletes the pure operation whose result nobody uses (math.cos), and keeps the
# call with no result at all, with what it needs (math.sin): a call may do anything.
# iree-base-compiler 3.13.0 (its MLIR); Python 3.11, Linux x86-64, 2026-11.
# `pip install iree-base-compiler==3.13.0; python course/exhibits/mlir-effects.py`
import textwrap

from iree.compiler import ir, passmanager

TEXT = """func.func private @log(f32)
func.func @f(%x: f32) -> f32 {
  %a = math.exp %x : f32
  %b = math.sin %x : f32
  func.call @log(%b) : (f32) -> ()
  %dead = math.cos %x : f32
  return %a : f32
}
"""

print("before:", TEXT, sep="\n")
with ir.Context():
    module = ir.Module.parse(TEXT)
    passmanager.PassManager.parse("builtin.module(canonicalize)").run(module.operation)
    print("after canonicalize:", textwrap.dedent("\n".join(str(module).splitlines()[1:-1])), sep="\n")
