# ONNX Runtime keeps a node that nobody uses, at every level, and runs it; onnxsim removes it.
# onnxruntime 1.32.0, onnx 1.23.2, onnxsim 0.8.1; Python 3.11, Linux x86-64, 2026-11.
# `pip install onnxruntime==1.32.0 onnx==1.23.2 onnxsim==0.8.1;
# python course/exhibits/onnxruntime-keeps-dead-code.py`
import json
import tempfile
from pathlib import Path

import numpy as np
import onnx.parser
import onnxruntime as ort
import onnxsim

ort.set_default_logger_severity(3)
MODEL = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 20]>
example (float[7] x) => (float[7] y) { a = Exp(x)  dead = Sin(x)  y = Neg(a) }""")


def nodes(model):
    return " ".join(f"{node.output[0]}={node.op_type}" for node in model.graph.node)


print(f"{'as written':33}{nodes(MODEL)}")
for level in "DISABLE_ALL", "ENABLE_BASIC", "ENABLE_EXTENDED", "ENABLE_ALL":
    with tempfile.TemporaryDirectory() as folder:
        options = ort.SessionOptions()
        options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, f"ORT_{level}")
        options.optimized_model_filepath = str(Path(folder) / "optimized.onnx")
        options.enable_profiling = True
        options.profile_file_prefix = str(Path(folder) / "profile")
        session = ort.InferenceSession(MODEL.SerializeToString(), options, providers=["CPUExecutionProvider"])
        session.run(None, {"x": np.ones(7, np.float32)})
        events = json.loads(Path(session.end_profiling()).read_text())
        ran = [event["args"]["op_name"] for event in events if event["name"].endswith("kernel_time")]
        print(f"ONNX Runtime, {level:19}{nodes(onnx.load(options.optimized_model_filepath))}, ran {' '.join(ran)}")
print(f"{'onnxsim':33}{nodes(onnxsim.simplify(MODEL)[0])}")
