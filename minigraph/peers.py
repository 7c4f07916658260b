"""Other compilers as contenders of ``minigraph bench cpu``, where they are installed: none of them is needed."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterable
from types import SimpleNamespace

import numpy as np

Contender = tuple[Callable[[], object], Callable[[], np.ndarray]]  # what is timed, and its result as an array


def installed() -> list[str]:
    """The peers that are here."""
    return [name for name, (module, _) in PEERS.items() if importlib.util.find_spec(module)]


def contenders(chosen: Iterable[str], name: str, function: Callable, arrays: list[np.ndarray], threads: int) -> dict[str, Contender]:
    """The chosen peers that can do the task; one that fails to build it is left out, and says so."""
    found = {}
    for peer in chosen:
        try:
            found[peer] = PEERS[peer][1](name, function, arrays, threads)
        except (StopIteration, KeyError):
            pass  # the task is not in its table
        except Exception as error:  # a peer's own troubles are not ours to mend
            print(f"{peer} left out of {name}: {type(error).__name__}: {str(error)[:100]}", file=sys.stderr)
    return found


def in_torch(function: Callable) -> Callable:
    """The task written for NumPy, with torch's functions in place of NumPy's."""
    import torch

    def maximum(x, y):
        return torch.clamp(x, min=y) if not torch.is_tensor(y) else torch.maximum(x, y)

    words = SimpleNamespace(
        sqrt=torch.sqrt, maximum=maximum, sin=torch.sin, exp=torch.exp, tanh=torch.tanh,
        max=lambda x, axis, keepdims: torch.amax(x, axis, keepdims), sum=lambda x, axis, keepdims: torch.sum(x, axis, keepdims),
        mean=lambda x, axis, keepdims: torch.mean(x, axis, keepdims))  # fmt: skip
    return with_numpy(function, words)


def with_numpy(function: Callable, words) -> Callable:
    """The function, where ``np`` is something else."""
    return type(function)(function.__code__, {**function.__globals__, "np": words}, function.__name__)


def torch_eager(name, function, arrays, threads) -> Contender:
    import torch

    torch.set_num_threads(threads)
    tensors, run = [torch.from_numpy(array) for array in arrays], in_torch(function)

    def call():
        with torch.no_grad():
            return run(*tensors)

    return call, lambda: call().numpy()


def torch_operator(name, function, arrays, threads) -> Contender:
    """torch's own operator for a softmax, a layer-norm or a GELU."""
    import torch
    import torch.nn.functional as F

    torch.set_num_threads(threads)
    tensors = [torch.from_numpy(array) for array in arrays]
    own = {"softmax": lambda x: F.softmax(x, -1), "layer-norm": lambda x, w, b: F.layer_norm(x, x.shape[-1:], w, b, 1e-5),
           "GELU-tanh": lambda x: F.gelu(x, approximate="tanh")}[name.split()[0]]  # fmt: skip

    def call():
        with torch.no_grad():
            return own(*tensors)

    return call, lambda: call().numpy()


def torch_compile(name, function, arrays, threads) -> Contender:
    import torch

    torch.set_num_threads(threads)
    if name.startswith("1000"):
        raise NotImplementedError("takes minutes to compile")
    torch._dynamo.reset()
    tensors, run = [torch.from_numpy(array) for array in arrays], torch.compile(in_torch(function))

    def call():
        with torch.no_grad():
            return run(*tensors)

    return call, lambda: call().numpy()


def jax_jit(name, function, arrays, threads) -> Contender:
    import jax
    import jax.numpy as jnp

    run = jax.jit(with_numpy(function, jnp))
    values = [jnp.asarray(array) for array in arrays]
    run(*values).block_until_ready()
    return lambda: run(*values).block_until_ready(), lambda: np.asarray(run(*values))


def numba_loop(name, function, arrays, threads) -> Contender:
    """A loop that numba compiles, its result array there already."""
    import math

    import numba

    bodies = {"chain of 8 with": lambda x: (math.tanh((math.exp(math.sin(x * np.float32(1.5))) + np.float32(2)) * np.float32(0.25)) - np.float32(0.5)) * np.float32(3),
              "chain of 8,": lambda x: math.sqrt(max((x * np.float32(1.5) + np.float32(2)) * np.float32(0.5) - np.float32(1), np.float32(0.25)) * np.float32(3) + np.float32(1)),
              "GELU": lambda x: np.float32(0.5) * x * (np.float32(1) + math.tanh(np.float32(0.7978846) * (x + np.float32(0.044715) * (x * x * x))))}  # fmt: skip
    element = numba.njit(next(body for start, body in bodies.items() if name.startswith(start)))
    numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))
    flat, out = arrays[0].reshape(-1), np.zeros(arrays[0].size, np.float32)

    @numba.njit(parallel=threads > 1)
    def loop(x, y):
        for i in numba.prange(x.size):
            y[i] = element(x[i])

    loop(flat, out)
    return lambda: loop(flat, out), lambda: out.reshape(arrays[0].shape)


def numexpr(name, function, arrays, threads) -> Contender:
    import numexpr as ne

    ne.set_num_threads(threads)
    texts = {"chain of 8 with": "(tanh((exp(sin(x * a)) + b) * c) - d) * e",
             "GELU": "d * x * (one + tanh(f * (x + g * (x * x * x))))"}  # fmt: skip
    text = next(text for start, text in texts.items() if name.startswith(start))
    numbers = {key: np.float32(value) for key, value in dict(a=1.5, b=2, c=0.25, d=0.5, e=3, f=0.7978846, g=0.044715, one=1).items()}
    out = np.zeros_like(arrays[0])
    call = lambda: ne.evaluate(text, {"x": arrays[0], **numbers}, {}, out=out)  # noqa: E731
    call()
    return call, lambda: out


def onnx_model(name, arrays):
    """The task as an ONNX graph; a softmax, a layer-norm and a GELU are ONNX Runtime's own operators."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    nodes, constants = [], []

    def const(value) -> str:
        constants.append(numpy_helper.from_array(np.float32(value), f"c{len(constants)}"))
        return constants[-1].name

    def step(op: str, *inputs: str, **attrs) -> str:
        nodes.append(helper.make_node(op, list(inputs), [f"v{len(nodes)}"], **attrs))
        return nodes[-1].output[0]

    x = "x0"
    if name.startswith("chain of 8 with"):
        y = step("Exp", step("Sin", step("Mul", x, const(1.5))))
        y = step("Tanh", step("Mul", step("Add", y, const(2)), const(0.25)))
        y = step("Mul", step("Sub", y, const(0.5)), const(3))
    elif name.startswith("chain of 8"):
        y = step("Sub", step("Mul", step("Add", step("Mul", x, const(1.5)), const(2)), const(0.5)), const(1))
        y = step("Sqrt", step("Add", step("Mul", step("Max", y, const(0.25)), const(3)), const(1)))
    elif name.startswith("softmax"):
        y = step("Softmax", x, axis=-1)
    elif name.startswith("layer-norm"):
        y = step("LayerNormalization", x, "x1", "x2", axis=-1, epsilon=1e-5)
    elif name.startswith("GELU"):
        y = step("Gelu", x, approximate="tanh")
    else:
        for _ in range(500):
            x = step("Add", step("Mul", x, const(1.5)), const(0.5))
        y = x
    values = [helper.make_tensor_value_info(f"x{i}", TensorProto.FLOAT, array.shape) for i, array in enumerate(arrays)]
    result = helper.make_tensor_value_info(y, TensorProto.FLOAT, arrays[0].shape)
    model = helper.make_model(helper.make_graph(nodes, "task", values, [result], constants), opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    onnx.checker.check_model(model)
    return model.SerializeToString(), y


def onnxruntime(name, function, arrays, threads) -> Contender:
    """A session whose inputs and outputs are bound to memory."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    model, result = onnx_model(name, arrays)
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    out = np.zeros(arrays[0].shape, np.float32)
    binding = session.io_binding()
    for number, array in enumerate(arrays):
        binding.bind_cpu_input(f"x{number}", array)
    binding.bind_output(result, "cpu", 0, np.float32, out.shape, out.ctypes.data)

    def call():
        session.run_with_iobinding(binding)
        return out  # the session knows its address alone: who calls must keep the array

    return call, call


PEERS = {
    "numexpr": ("numexpr", numexpr), "numba": ("numba", numba_loop), "torch": ("torch", torch_eager),
    "torch operator": ("torch", torch_operator), "torch.compile": ("torch", torch_compile), "jax.jit": ("jax", jax_jit),
    "ONNX Runtime": ("onnxruntime", onnxruntime),
}  # fmt: skip
