# ONNX Runtime's transpose optimizer. It pushes a transpose through Exp and ReduceMax, and there it
# cancels another one. The axis gets another number: -3 of t is 1 of x. A product gets a flag. In
# the last graph, sinking t would make two transposes of one: it stays.
# onnxruntime 1.32.0, onnx 1.23.2; Python 3.11, Linux x86-64, 2026-11.
# `pip install onnxruntime==1.32.0 onnx==1.23.2; python course/exhibits/onnxruntime-transposes.py`
import tempfile
from pathlib import Path

import onnx
import onnx.parser
import onnxruntime as ort

HEAD = '<ir_version: 10, opset_import: ["" : 20]>\n'
GRAPHS = """sinks (float[2,3,4] x) => (float[2,4] y) {
  t = Transpose <perm = [1, 2, 0]> (x)  e = Exp (t)
  axis = Constant <value_ints = [-3]> ()
  m = ReduceMax <keepdims = 0> (e, axis)  y = Transpose <perm = [1, 0]> (m)
}
flag (float[3,4] x, float[5,4] w) => (float[3,5] y) {
  t = Transpose <perm = [1, 0]> (w)  y = MatMul (x, t)
}
stays (float[3,4] x) => (float[4,3] y, float[4,3] z, float[3,4] s) {
  t = Transpose <perm = [1, 0]> (x)  y = Exp (t)  z = Neg (t)  s = Sin (x)
}"""

options = ort.SessionOptions()
options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
options.log_severity_level = 3
with tempfile.TemporaryDirectory() as folder:
    options.optimized_model_filepath = str(Path(folder) / "optimized.onnx")
    for graph in GRAPHS.split("}\n"):
        text = graph.rstrip("}\n") + "\n}"
        model = onnx.parser.parse_model(HEAD + text)
        ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        print(("" if text.startswith("sinks") else "\n") + text.removesuffix("\n}"))
        found = onnx.load(options.optimized_model_filepath).graph
        axes = {one.name: str(onnx.numpy_helper.to_array(one).tolist()) for one in found.initializer}
        print("->")
        for node in found.node:
            attributes = {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute}
            shown = {name: attributes[name] for name in ("keepdims", "perm", "transA", "transB") if name in attributes}
            line = f"{node.output[0]} = {node.op_type}({', '.join(axes.get(name, name) for name in node.input)})"
            print(" ", line, *[shown] * bool(shown))
