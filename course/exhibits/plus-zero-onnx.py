# What is left of ((3 + 4) * x) + (5 * 0), and of 1 / (-x + 0), in ONNX tools, with the answers at
# x = -0.0 and at x = 0.0; IEEE says 0 and inf. ONNX Runtime drops + 0 unless it makes the output.
# onnxruntime 1.32.0, onnx 1.23.2, onnxsim 0.8.1; Python 3.11, Linux x86-64, 2026-11.
# `pip install onnxruntime==1.32.0 onnx==1.23.2 onnxsim==0.8.1;
# python course/exhibits/plus-zero-onnx.py`
import tempfile
from pathlib import Path

import numpy as np
import onnx.parser
import onnxruntime as ort
import onnxsim

HEAD = """<ir_version: 10, opset_import: ["" : 20]> f (float[1] x) => (float[1] y)
    <float one = {1}, float three = {3}, float four = {4}, float five = {5}, float zero = {0}>"""
SUM = HEAD + "{ s = Add(three, four)  p = Mul(s, x)  q = Mul(five, zero)  y = Add(p, q) }"
INVERSE = HEAD + "{ n = Neg(x)  m = Add(n, zero)  y = Div(one, m) }"


def row(name, text, x, level="DISABLE_ALL", simplify=False, without=()):
    model = onnx.parser.parse_model(text)
    if simplify:
        model = onnxsim.simplify(model)[0]
    with tempfile.TemporaryDirectory() as folder:
        options = ort.SessionOptions()
        options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, f"ORT_{level}")
        options.optimized_model_filepath = str(Path(folder) / "optimized.onnx")
        cpu = ["CPUExecutionProvider"]
        session = ort.InferenceSession(model.SerializeToString(), options, cpu, disabled_optimizers=list(without))
        left = " ".join(node.op_type for node in onnx.load(options.optimized_model_filepath).graph.node)
    answer = session.run(None, {"x": np.array([x], np.float32)})[0][0]
    print(f"{name:45} {left:16} {answer:5g}")


for title, text, x in ("((3 + 4) * x) + (5 * 0) at -0.0", SUM, -0.0), ("1 / (-x + 0) at 0.0", INVERSE, 0.0):
    print(title)
    row("  ONNX Runtime, optimizations off", text, x)
    row("  ONNX Runtime, basic", text, x, "ENABLE_BASIC")
    row("  ONNX Runtime, basic, no NoopElimination", text, x, "ENABLE_BASIC", without=["NoopElimination"])
    row("  onnxsim", text, x, simplify=True)
