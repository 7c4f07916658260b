# ONNX Runtime merges two equal exponentials (its CommonSubexpressionElimination, a basic
# optimization). The two random nodes stay two.
# onnxruntime 1.32.0, onnx 1.23.2; Python 3.11, Linux x86-64, 2026-11.
# `pip install onnxruntime==1.32.0 onnx==1.23.2; python course/exhibits/onnxruntime-merges.py`
import tempfile
from pathlib import Path

import onnx.parser
import onnx.printer
import onnxruntime as ort

MODEL = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 20]>
example (float[7] x) => (float[7] y, float[7] z) {
  a = Exp(x)  b = Exp(x)  y = Mul(a, b)
  p = RandomUniformLike(x)  q = RandomUniformLike(x)  z = Mul(p, q)
}""")


def show(title, model):
    print(f"{title}: {len(model.graph.node)} nodes")
    text = onnx.printer.to_text(model.graph).replace('[""] ', "")
    print(*[line.rstrip() for line in text.splitlines()], sep="\n")


show("before", MODEL)
options = ort.SessionOptions()
options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
with tempfile.TemporaryDirectory() as folder:
    options.optimized_model_filepath = str(Path(folder) / "optimized.onnx")
    ort.InferenceSession(MODEL.SerializeToString(), options, providers=["CPUExecutionProvider"])
    show("\nafter loading it with ORT_ENABLE_BASIC", onnx.load(options.optimized_model_filepath))
