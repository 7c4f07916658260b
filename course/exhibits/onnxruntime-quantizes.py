# ONNX Runtime on quantized products. Only the weights are quantized, in int8 with a scale a column,
# or in blocks of 32 numbers of 4 bits: a product that reads bytes and scales itself. Both sides are
# int8: a product of integers, with the scales behind it. The relu stays between floats. (Behind the
# arrow, zero points are left out.)
# onnxruntime 1.32.0, onnx 1.23.2; Python 3.11, Linux x86-64, 2026-11.
# `pip install onnxruntime==1.32.0 onnx==1.23.2; python course/exhibits/onnxruntime-quantizes.py`
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

HEAD = '<ir_version: 10, opset_import: ["" : 21]>\n'
GRAPHS = """weights (float[1,64] x) => (float[1,32] y) {
  w = DequantizeLinear <axis = 1> (q, s)  y = MatMul (x, w)
}
both (float[1,64] x) => (float[1,32] y) {
  i = QuantizeLinear (x, t, z)  f = DequantizeLinear (i, t, z)
  w = DequantizeLinear <axis = 1> (q, s)  y = MatMul (f, w)
}
blocks (float[1,64] x) => (float[1,32] y) {
  w = DequantizeLinear <axis = 0, block_size = 32> (b, c)  y = MatMul (x, w)
}
relu (int8[64] k) => (int8[64] y) {
  f = DequantizeLinear (k, t, z)  g = Relu (f)  y = QuantizeLinear (g, t, z)
}"""
draw = np.random.default_rng(0)
q = draw.integers(-127, 128, (64, 32)).astype(np.int8)
CONSTANTS = [
    numpy_helper.from_array(q, "q"),
    numpy_helper.from_array(draw.uniform(0.01, 0.02, 32).astype(np.float32), "s"),
    numpy_helper.from_array(np.float32(0.05), "t"),
    numpy_helper.from_array(np.int8(0), "z"),
    helper.make_tensor("b", TensorProto.INT4, (64, 32), (q // 16).reshape(-1).tolist()),
    numpy_helper.from_array(draw.uniform(0.1, 0.2, (2, 32)).astype(np.float32), "c"),
]

options = ort.SessionOptions()
options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
options.log_severity_level = 3
with tempfile.TemporaryDirectory() as folder:
    options.optimized_model_filepath = str(Path(folder) / "optimized.onnx")
    for graph in GRAPHS.split("}\n"):
        text = graph.rstrip("}\n") + "\n}"
        model = onnx.parser.parse_model(HEAD + text)
        used = {name for node in model.graph.node for name in node.input}
        model.graph.initializer.extend(one for one in CONSTANTS if one.name in used)
        ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        print(text.removesuffix("\n}"))
        print("->")
        for node in onnx.load(options.optimized_model_filepath).graph.node:
            read = ", ".join(name for name in node.input if name and "z" not in name)
            print(f"  {node.output[0]} = {node.op_type}({read})")
