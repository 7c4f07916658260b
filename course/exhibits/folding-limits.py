# Folding can make a model bigger, so real folders have limits: y = x + 2 * Range(0, n), folded by
# ONNX Runtime, by the same with a limit, and by onnxscript, whose limits are on by default.
# onnxruntime 1.32.0, onnx 1.23.2, onnxscript 0.7.2; Python 3.11, Linux x86-64, 2026-11.
# `pip install onnxruntime==1.32.0 onnx==1.23.2 onnxscript==0.7.2;
# python course/exhibits/folding-limits.py`
import tempfile
from pathlib import Path

import onnx.parser
import onnxruntime as ort
import onnxscript.optimizer


def model(n):
    return onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["" : 20]>
    example (float[{n}] x) => (float[{n}] y)
    <float first = {{0}}, float last = {{{n}}}, float step = {{1}}, float two = {{2}}> {{
      r = Range(first, last, step)  s = Mul(r, two)  y = Add(x, s)
    }}""")


def onnxruntime(n, limit=None):
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    if limit:
        options.add_session_config_entry("optimization.constant_folding_max_output_size_in_bytes", str(limit))
    with tempfile.TemporaryDirectory() as folder:
        options.optimized_model_filepath = str(Path(folder) / "optimized.onnx")
        ort.InferenceSession(model(n).SerializeToString(), options, providers=["CPUExecutionProvider"])
        return onnx.load(options.optimized_model_filepath)


print("bytes / nodes of the model")
print(f"{'n':>9} {'as written':>20} {'ONNX Runtime':>20} {'with limit of 1 MiB':>20} {'onnxscript':>20}")
for n in 1_000, 10_000, 100_000, 1_000_000:
    made = model(n), onnxruntime(n), onnxruntime(n, 2**20), onnxscript.optimizer.optimize(model(n))
    print(f"{n:9,}", *(f"{one.ByteSize():16,} / {len(one.graph.node)}" for one in made))
