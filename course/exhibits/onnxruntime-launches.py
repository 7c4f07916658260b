# The network of 32 layers in ONNX Runtime: kernels that it runs at each optimization level. A
# library does the products, and bias and relu become part of its call.
# onnxruntime 1.32.0, onnx 1.23.2, on the CPU; Python 3.11, Linux x86-64, 2026-11.
# `pip install onnxruntime==1.32.0 onnx==1.23.2; python course/exhibits/onnxruntime-launches.py`
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper, numpy_helper

LAYERS, WIDTH = 32, 64
draw = np.random.default_rng(0)
nodes, weights, x = [], [], "x"
for layer in range(LAYERS):
    for name, shape in (("w", (WIDTH, WIDTH)), ("b", (WIDTH,)), ("s", (WIDTH,))):
        weights.append(numpy_helper.from_array(draw.random(shape, np.float32), f"{name}{layer}"))
    for op, others in (("MatMul", [f"w{layer}"]), ("Add", [f"b{layer}"]), ("Relu", []), ("Mul", [f"s{layer}"])):
        nodes.append(helper.make_node(op, [x, *others], [f"{op}{layer}"]))
        x = f"{op}{layer}"
row = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, WIDTH]) for name in ("x", x)]
graph = helper.make_graph(nodes, "mlp", row[:1], row[1:], weights)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)

for level in ("DISABLE_ALL", "ENABLE_BASIC", "ENABLE_EXTENDED", "ENABLE_ALL"):
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, f"ORT_{level}")
    with tempfile.TemporaryDirectory() as folder:
        options.optimized_model_filepath = str(Path(folder) / "optimized.onnx")
        ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        kinds = Counter(node.op_type for node in onnx.load(options.optimized_model_filepath).graph.node)
    print(f"{level:16} {sum(kinds.values()):3} = " + " + ".join(f"{many} {kind}" for kind, many in kinds.items()))
