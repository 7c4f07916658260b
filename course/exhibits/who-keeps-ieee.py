# x * 0 and x + 0 in six compilers: what the compiled program returns, and whether that is what
# IEEE arithmetic says (NumPy's row). The 0 is a constant of the program, x is its input.
# numpy 2.4.6, torch 2.13.0, jax 0.10.2, onnxruntime 1.32.0, onnx 1.23.2, iree-base-compiler and
# iree-base-runtime 3.13.0, apache-tvm 0.27.0.post1, tinygrad 0.14.0;
# Python 3.11, Linux x86-64, 2026-11.
# `pip install numpy==2.4.6 torch==2.13.0 jax==0.10.2 onnxruntime==1.32.0 onnx==1.23.2
# iree-base-compiler==3.13.0 iree-base-runtime==3.13.0 apache-tvm==0.27.0.post1 tinygrad==0.14.0;
# python course/exhibits/who-keeps-ieee.py`
import operator
import os

os.environ.update(JAX_PLATFORMS="cpu", DEV="PYTHON")
import iree.compiler.tools
import iree.runtime
import jax
import numpy as np
import onnx.parser
import onnxruntime as ort
import tinygrad
import torch
import tvm
from tvm import relax

X = np.array([1, -1, np.nan, np.inf, -np.inf, 0, -0.0], np.float32)


def run_onnxruntime(op):
    model = onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["" : 20]>
        f (float[7] x) => (float[7] y) <float zero = {{0}}> {{ y = {op.__name__.title()}(x, zero) }}""")
    return ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {"x": X})[0]


def run_iree(op):
    text = jax.jit(lambda x: op(x, 0.0)).lower(X).as_text()
    code = iree.compiler.tools.compile_str(text, input_type="stablehlo", target_backends=["llvm-cpu"])
    return iree.runtime.load_vm_flatbuffer(code, driver="local-sync").main(X).to_host()


def run_tvm(op):
    x, block = relax.Var("x", relax.TensorType((7,), "float32")), relax.BlockBuilder()
    with block.function("main", [x]):
        block.emit_func_output(block.emit(op(x, relax.const(0.0, "float32"))))
    machine = relax.VirtualMachine(tvm.compile(block.get(), target="llvm"), tvm.cpu())
    return machine["main"](tvm.runtime.tensor(X, tvm.cpu())).numpy()


TOOLS = {
    "NumPy": lambda op: op(X, np.float32(0)),
    "torch.compile, 0.0": lambda op: torch.compile(lambda x: op(x, 0.0))(torch.tensor(X)).numpy(),
    "torch.compile, zeros(7)": lambda op: torch.compile(lambda x: op(x, torch.zeros(7)))(torch.tensor(X)).numpy(),
    "XLA (jax.jit)": lambda op: np.asarray(jax.jit(lambda x: op(x, 0.0))(X)),
    "ONNX Runtime": run_onnxruntime,
    "IREE (MLIR)": run_iree,
    "TVM": run_tvm,
    "tinygrad": lambda op: op(tinygrad.Tensor(X), 0.0).numpy(),
}
for op, sign in (operator.mul, "*"), (operator.add, "+"):
    print(f"{f'x {sign} 0     for x =':24}", *(f"{x:5g}" for x in X), "  as IEEE")
    for name, run in TOOLS.items():
        with np.errstate(invalid="ignore"):
            made, true = run(op), op(X, np.float32(0))
        same = np.array_equal(made, true, equal_nan=True) and (np.signbit(made) == np.signbit(true))[true == 0].all()
        print(f"{name:24}", *(f"{value:5g}" for value in made), "  yes" if same else "  NO")
