"""A stand-in for what minigraph calls of CuPy and cuBLAS: a machine without a GPU tests how they are used.

Arrays lie in blocks of host memory, and generated kernels run under minigraph's shim, so results are real. Nothing runs
when it is queued: a stream keeps its work until somebody waits for that stream, so a result that is read too early, or
a stream that does not wait for another, shows as wrong numbers. Fresh and freed memory holds 0xA5. A capture keeps what
is queued in the graph alone, and refuses what CUDA or CuPy refuses then: to wait, to copy from the host, CuPy's cuBLAS;
and to allocate where somebody else may get the memory later.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import sys
import time
import types

import numpy as np
from numpy.lib import stride_tricks

from minigraph import gpu, shim
from minigraph.device import cublas
from minigraph.ops import OPS

POISON = 0xA5
# a pointer into the middle of a block may be walked backwards: the shim is told of the whole block
TOUCH = 'extern "C" __global__ void touch(const unsigned char *block) {\n}\n'
CAPTURING = "cudaErrorStreamCaptureUnsupported: operation not permitted when stream is capturing"
SPOILED = "cudaErrorStreamCaptureInvalidated: operation failed due to a previous error during capture"


class CUDARuntimeError(RuntimeError):
    """CuPy's name for what the driver says."""


class OutOfMemoryError(MemoryError):
    pass


class NVRTCError(RuntimeError):
    pass


class Work:
    """Something queued. It is done when its stream gets there, and not before what it waits for."""

    def __init__(self, action, after: Work | None = None, stream: Stream | None = None):
        self.action, self.after, self.stream, self.done = action, after, stream, False


class Stream:
    def __init__(self, gpu, ptr: int, null: bool = False):
        self.gpu, self.ptr, self.null = gpu, ptr, null
        self.queue: list[Work] = []
        self.recording: list | None = None

    def __enter__(self):
        self.gpu.current.append(self)
        return self

    def __exit__(self, *error):
        assert self.gpu.current.pop() is self

    def put(self, action, after: Work | None = None) -> Work:
        if self.recording is not None:
            self.recording.append(action)
            return Work(action)
        self.queue.append(Work(action, after, self))
        return self.queue[-1]

    def step(self) -> None:
        """Do the first thing in the queue, or a step of the stream that it waits for."""
        stream = self
        while stream.queue and (after := stream.queue[0].after) and not after.done:
            stream = after.stream
        if stream.queue:
            work = stream.queue.pop(0)
            work.done = True
            work.action()

    def drain(self, until: Work | None = None) -> None:
        while self.queue and not (until and until.done):
            for stream in self.gpu.streams if self.gpu.dice else ():
                if self.gpu.dice.random() < 0.5:
                    stream.step()
            self.step()

    def synchronize(self):
        if self.recording is not None:
            raise CUDARuntimeError(CAPTURING)
        self.drain()

    def record(self, event=None):
        event = event or self.gpu.module.cuda.Event()
        event.record(self)
        return event

    def wait_event(self, event):
        self.put(lambda: None, event.work)

    def begin_capture(self, mode=None):
        if self.null:
            raise CUDARuntimeError("cannot capture on the default (legacy) stream")
        self.recording = []

    def end_capture(self):
        recording, self.recording = self.recording, None
        if self.gpu.spoiled:
            self.gpu.spoiled = False
            raise CUDARuntimeError(SPOILED)
        return Graph(self.gpu, recording)


class Graph:
    def __init__(self, gpu, actions):
        self.gpu, self.actions = gpu, actions

    def launch(self, stream=None):
        self.gpu.replays += 1
        for action in self.actions:
            (stream or self.gpu.current[-1]).put(action)


class Block:
    """Memory of the driver, given back to its pool when nobody refers to it any more."""

    def __init__(self, pool, bytes_, stream):
        self.pool, self.bytes, self.stream = pool, bytes_, stream

    def __del__(self):
        raw = self.bytes
        self.stream.put(lambda: raw.fill(POISON))  # in the stream's order, as reuse would be
        self.pool.free.setdefault((self.stream.ptr, len(raw)), []).append(raw)


class Pool:
    """A block goes back to the stream in which it was asked for."""

    def __init__(self, gpu):
        self.gpu, self.free, self.taken = gpu, {}, 0

    def malloc(self, size: int) -> Block:
        gpu, stream = self.gpu, self.gpu.current[-1]
        size = max(512, -(-size // 512) * 512)
        kept = self.free.get((stream.ptr, size), [])
        recording = any(one.recording is not None for one in gpu.streams)
        if recording and (self is gpu.pool or not kept):
            gpu.spoiled = True
            raise AssertionError("memory that others may get is allocated during a capture")
        if kept:
            return Block(self, kept.pop(), stream)
        if gpu.used + size > gpu.total:
            raise OutOfMemoryError(f"Out of memory allocating {size:,} bytes")
        gpu.used += size
        self.taken += size
        return Block(self, np.full(size, POISON, np.uint8), stream)

    def free_bytes(self) -> int:
        return sum(len(raw) for kept in self.free.values() for raw in kept)

    def free_all_blocks(self) -> None:
        for stream in self.gpu.streams:  # the driver waits for the whole GPU before it takes memory back
            stream.drain()
        self.gpu.used -= self.free_bytes()
        self.taken -= self.free_bytes()
        self.free.clear()

    def __del__(self):
        self.free_all_blocks()
        self.gpu.used -= self.taken  # by blocks that outlive their pool


class Array:
    """cupy.ndarray, as far as it is needed. ``host`` is the NumPy view of its block, for the stand-in alone."""

    def __init__(self, gpu, host, block):
        self.gpu, self.host, self.block = gpu, host, block

    shape = property(lambda self: self.host.shape)
    dtype = property(lambda self: self.host.dtype)
    size = property(lambda self: self.host.size)
    ndim = property(lambda self: self.host.ndim)
    itemsize = property(lambda self: self.host.itemsize)
    nbytes = property(lambda self: self.host.nbytes)
    strides = property(lambda self: self.host.strides)
    flags = property(lambda self: types.SimpleNamespace(c_contiguous=self.host.flags.c_contiguous))
    data = property(lambda self: types.SimpleNamespace(ptr=self.host.__array_interface__["data"][0], mem=self.block))
    device = property(lambda self: types.SimpleNamespace(id=self.gpu.device_of.get(id(self), 0)))

    def __array__(self, *args, **kwargs):
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Please use `.get()`")

    def __bool__(self):
        return bool(self.get())

    def __float__(self):
        return float(self.get())

    def same(self, host):
        """A view."""
        return Array(self.gpu, host, self.block)

    def get(self):
        self.gpu.current[-1].synchronize()
        return self.host.copy()

    def set(self, array, stream=None):
        if type(array) is not np.ndarray or (array.shape, array.dtype) != (self.shape, self.dtype):
            raise TypeError(f"cannot copy {type(array)} {getattr(array, 'shape', '')} to {self.shape}")
        self.gpu.upload(self.host, array, stream or self.gpu.current[-1])

    def view(self, dtype):
        return self.same(self.host.view(dtype))

    def reshape(self, *shape):
        view = self.host.reshape(*shape)
        apart = view.size and not np.shares_memory(view, self.host)
        return self.gpu.call(lambda x: x.reshape(*shape), self) if apart else self.same(view)

    def transpose(self, *perm):
        return self.same(self.host.transpose(*perm))

    def swapaxes(self, a, b):
        return self.same(self.host.swapaxes(a, b))

    def copy(self):
        return self.gpu.call(np.copy, self)

    def astype(self, dtype, copy=True):
        return self if not copy and self.dtype == dtype else self.gpu.call(lambda x: x.astype(dtype), self)

    def fill(self, value):
        self[...] = value

    def any(self):
        return self.gpu.call(np.any, self)

    def sum(self):
        return self.gpu.call(np.sum, self)

    def __getitem__(self, key):
        return self.same(self.host[(*(key if isinstance(key, tuple) else (key,)), ...)])

    def __setitem__(self, key, value):
        gpu = self.gpu
        if any(isinstance(one, np.ndarray) for one in (value, *(key if isinstance(key, tuple) else (key,)))):
            raise TypeError("Unsupported type <class 'numpy.ndarray'>")
        target, keys = self.host, key if isinstance(key, tuple) else (key,)
        places = [one.host if isinstance(one, Array) else one for one in keys]
        source = value.host if isinstance(value, Array) else value

        def assign():
            target[tuple(places)] = source

        gpu.queue(assign)

    def __ior__(self, other):
        gpu, target, more = self.gpu, self.host, other.host
        gpu.queue(lambda: np.bitwise_or(target, more, out=target))
        return self


OPERATORS = {"and": np.bitwise_and, "or": np.bitwise_or, "lt": np.less, "le": np.less_equal, "gt": np.greater,
             "ge": np.greater_equal, "add": np.add, "truediv": np.divide}  # fmt: skip
for _name, _function in OPERATORS.items():
    setattr(Array, f"__{_name}__", lambda self, other, function=_function: self.gpu.call(function, self, other))

UFUNCS = """add subtract multiply divide floor_divide remainder power maximum minimum negative absolute sign sqrt exp
exp2 expm1 log log2 log1p tanh sin cos floor ceil rint equal not_equal less less_equal greater greater_equal bitwise_and
bitwise_or bitwise_xor invert left_shift right_shift""".split()


class Gpu:
    """The machine. Counts what is launched; ``total`` bytes of memory; ``refuses`` maps what to fail to an error."""

    def __init__(self, total: int = 1 << 30):
        self.total, self.used, self.spoiled = total, 0, False
        self.launches = self.replays = 0
        self.dice = None  # random.Random: while one stream is waited for, the others advance now and then
        self.options: list[tuple[str, ...]] = []
        self.refuses: dict[str, Exception] = {}
        self.capability, self.device, self.device_of = "80", 0, {}
        self.streams = [Stream(self, 0, null=True)]
        self.current = [self.streams[0]]
        self.pool = Pool(self)
        self.allocators = [self.pool.malloc]
        self.module = self.make()

    # ---- memory and work ----

    def empty(self, shape, dtype=float, order="C") -> Array:
        shape, dtype = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape), np.dtype(dtype)
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        block = self.allocators[-1](size)
        return Array(self, block.bytes[:size].view(dtype).reshape(shape), block)

    def queue(self, action) -> None:
        """Queue in the current stream. As on a GPU, this keeps no memory from being freed."""
        if "queue" in self.refuses:
            raise self.refuses["queue"]
        self.launches += 1
        self.current[-1].put(action)

    def upload(self, target, array, stream) -> None:
        if stream.recording is not None:
            self.spoiled = True
            raise CUDARuntimeError(CAPTURING)
        staged = array.copy()  # CUDA copies pageable memory aside before it returns
        stream.put(lambda: target.__setitem__(..., staged))

    def call(self, function, *args, out=None, **kwargs) -> Array:
        """Queue NumPy's function, with the result's type found out on zeros."""
        if any(isinstance(one, np.ndarray) for one in args):
            raise TypeError("Unsupported type <class 'numpy.ndarray'>")

        def on(pick):
            with np.errstate(all="ignore"):
                return function(*[pick(one) for one in args], **kwargs)

        def real(one):
            return list(map(real, one)) if isinstance(one, list) else one.host if isinstance(one, Array) else one

        def zeros(one):
            if isinstance(one, list):
                return list(map(zeros, one))
            return np.zeros_like(one.host) if isinstance(one, Array) else one

        like = np.asarray(on(zeros))
        result = self.empty(like.shape, like.dtype) if out is None else out
        if result.shape != like.shape:
            raise ValueError(f"out has shape {result.shape}, not {like.shape}")
        hosts, target = [real(one) for one in args], result.host

        def run():
            with np.errstate(all="ignore"):
                target[...] = function(*hosts, **kwargs)

        self.queue(run)
        return result

    def asarray(self, value, dtype=None) -> Array:
        if isinstance(value, Array):
            return value
        host = np.asarray(value, dtype)
        array = self.empty(host.shape, host.dtype)
        self.upload(array.host, host, self.current[-1])
        return array

    def matmul(self, a, b, out=None):
        if self.current[-1].recording is not None and a.dtype.kind == "f":
            raise NotImplementedError("calling cuBLAS API during stream capture is currently unsupported")
        return self.call(np.matmul, a, b, out=out)

    def full(self, shape, value, dtype) -> Array:
        array = self.empty(shape, dtype)
        array.fill(value)
        return array

    @contextlib.contextmanager
    def using_allocator(self, allocator):
        self.allocators.append(allocator)
        try:
            yield
        finally:
            self.allocators.pop()

    # ---- the modules ----

    def make(self) -> types.ModuleType:
        gpu, module = self, types.ModuleType("cupy")
        module.__version__ = "14.2.0"
        module.ndarray = Array
        for name in UFUNCS:
            setattr(module, name, lambda *args, out=None, function=getattr(np, name):
                    gpu.call(function, *args, out=out))  # fmt: skip
        module.power = lambda base, exponent, out=None: gpu.call(power, base, exponent, out=out)
        for name in ("sum", "prod"):
            setattr(module, name, lambda a, axis=None, dtype=None, out=None, keepdims=False, function=getattr(np, name):
                    gpu.call(lambda x: function(x, axis=axis, dtype=dtype, keepdims=keepdims), a))  # fmt: skip
        for name in ("mean", "max", "min", "any", "all", "argmax", "argmin"):
            setattr(module, name, lambda a, axis=None, out=None, keepdims=False, function=getattr(np, name):
                    gpu.call(lambda x: function(x, axis=axis, keepdims=keepdims), a))  # fmt: skip
        module.cumsum = lambda a, axis=None, dtype=None, out=None: gpu.call(lambda x: np.cumsum(x, axis, dtype), a)
        module.sort = lambda a, axis=-1, kind=None: gpu.call(lambda x: np.sort(x, axis), a)
        module.where = lambda condition, x=None, y=None: gpu.call(np.where, condition, x, y)
        module.concatenate = lambda tup, axis=0, out=None: gpu.call(lambda xs: np.concatenate(xs, axis), list(tup))
        module.take = lambda a, indices, axis=None, out=None: gpu.call(
            lambda x, i: np.take(x, i, axis, mode="wrap"), a, indices)  # fmt: skip
        module.pad = lambda array, pad_width, mode="constant": gpu.call(lambda x: np.pad(x, pad_width), array)
        module.broadcast_to = lambda array, shape: array.same(np.broadcast_to(array.host, shape))
        module.arange = lambda start: gpu.asarray(np.arange(start)) if gpu.current[-1].recording is None else gpu.call(
            lambda: np.arange(start))  # fmt: skip
        module.empty, module.asarray, module.matmul, module.full = gpu.empty, gpu.asarray, gpu.matmul, gpu.full
        module.zeros = lambda shape, dtype=float: gpu.full(shape, 0, dtype)
        module.ones = lambda shape, dtype=float: gpu.full(shape, 1, dtype)
        module.ascontiguousarray = lambda a: a if a.flags.c_contiguous else a.copy()
        module.asnumpy = lambda a: a.get()
        module.get_default_memory_pool = lambda: gpu.pool
        tricks = types.SimpleNamespace(
            as_strided=lambda x, shape, strides: x.same(stride_tricks.as_strided(x.host, shape, strides)),
            sliding_window_view=lambda x, shape, axis: x.same(
                stride_tricks.sliding_window_view(x.host, shape, axis)))  # fmt: skip
        module.lib = types.SimpleNamespace(stride_tricks=tricks)
        module.cuda = self.make_cuda()
        return module

    def make_cuda(self) -> types.SimpleNamespace:
        gpu = self

        def make_stream(null=False, non_blocking=False):
            gpu.streams.append(Stream(gpu, 0x1000 + len(gpu.streams)))
            return gpu.streams[-1]

        class Event:
            stream = work = None

            def record(self, stream=None):
                self.stream, self.time = stream or gpu.current[-1], None
                self.work = self.stream.put(lambda: setattr(self, "time", time.perf_counter()))

            def synchronize(self):
                self.stream.drain(until=self.work)

        def elapsed(start, end):
            if start.time is None or end.time is None:
                raise CUDARuntimeError("cudaErrorNotReady: device not ready")
            return (end.time - start.time) * 1e3

        def asked(name, answer):
            def question(*args):
                if name in gpu.refuses:
                    raise gpu.refuses[name]
                return answer(*args)

            return question

        runtime = types.SimpleNamespace(
            getDevice=lambda: gpu.device, getDeviceCount=asked("getDeviceCount", lambda: 1),
            driverGetVersion=asked("driverGetVersion", lambda: 13010), runtimeGetVersion=lambda: 13000,
            getDeviceProperties=lambda number: {"name": b"Stand-in GPU"})  # fmt: skip

        class Device:
            id = property(lambda self: gpu.device)
            compute_capability = property(lambda self: gpu.capability)
            mem_info = property(lambda self: (gpu.total - gpu.used, gpu.total))

        class Module:
            def load(self, code: bytes):
                self.built = shim.build(code.decode() + TOUCH)

            def get_function(self, name):
                def launch(grid, block, args):
                    hosts, blocks = [one.host for one in args], [one.block.bytes for one in args]
                    jobs = [(shim.Launch("touch", (1,), (1,)), [bytes_]) for bytes_ in blocks]
                    gpu.queue(lambda: self.built.run([*jobs, (shim.Launch(name, grid, block), hosts)], "ascending"))

                return launch

        return types.SimpleNamespace(
            runtime=runtime, Stream=make_stream, Event=Event, Device=Device, Module=Module, nvrtc=self.make_nvrtc(),
            MemoryPool=lambda: Pool(gpu), using_allocator=gpu.using_allocator, get_elapsed_time=elapsed,
            get_current_stream=lambda: gpu.current[-1],
            memory=types.SimpleNamespace(OutOfMemoryError=OutOfMemoryError))  # fmt: skip

    def make_nvrtc(self) -> types.SimpleNamespace:
        """The compiler hands the source through as its machine code."""
        programs, numbers = {}, itertools.count(1)

        def create(source, name, headers, names):
            programs[number := next(numbers)] = source
            return number

        def compile(program, options):
            self.options.append(options)
            if "compile" in self.refuses:
                raise self.refuses["compile"]

        return types.SimpleNamespace(
            NVRTCError=NVRTCError, getSupportedArchs=lambda: (75, 80, 90), createProgram=create, compileProgram=compile,
            getCUBIN=lambda program: programs[program].encode(), getPTX=lambda program: programs[program].encode(),
            getProgramLog=lambda program: 'kernels.cu(3): error: identifier "x" is undefined',
            destroyProgram=programs.pop)  # fmt: skip

    def install(self, monkeypatch) -> Gpu:
        """Let `import cupy` find this, and cuBLAS too; for one test."""
        special = types.ModuleType("cupyx.scipy.special")
        special.erf = lambda x: self.call(OPS["erf"].numpy, x)
        outer = {name: types.ModuleType(name) for name in ("cupyx", "cupyx.scipy")}
        for name, one in {"cupy": self.module, **outer, special.__name__: special}.items():
            monkeypatch.setitem(sys.modules, name, one)
        gpu.gpu_status.cache_clear()
        monkeypatch.setattr(cublas, "load", lambda major: Blas(self))
        return self


def power(base, exponent):
    """A GPU raises nothing for a negative exponent of an integer."""
    return np.power(base, np.maximum(exponent, 0) if base.dtype.kind == "i" else exponent)


class Blas:
    """cuBLAS's library: one product, column-major, on addresses, as its manual describes it."""

    TYPES = {0: np.float32, 1: np.float64, 2: np.float16}

    def __init__(self, gpu: Gpu):
        self.gpu, self.stream, self.workspace = gpu, None, 0

    def cublasCreate_v2(self, handle):
        handle._obj.value = 0xB1A5
        return 0

    def cublasSetStream_v2(self, handle, stream):
        self.stream = next(one for one in self.gpu.streams if one.ptr == (stream.value or 0))
        self.workspace = 0
        return 0

    def cublasSetWorkspace_v2(self, handle, place, size):
        self.workspace = size.value
        return 0

    def cublasDestroy_v2(self, handle):
        return 0

    def cublasGemmStridedBatchedEx(self, handle, trans_a, trans_b, m, n, k, alpha, a, type_a, lda, step_a, b, type_b,
                                   ldb, step_b, beta, c, type_c, ldc, step_c, count, compute, algorithm):  # fmt: skip
        rows_a, rows_b = (k if trans_a else m), (n if trans_b else k)
        bad = lda < max(1, rows_a) or ldb < max(1, rows_b) or ldc < max(1, m) or min(m, n, k, count) < 1
        wide = (compute, type_c) in ((68, 0), (70, 1), (68, 2))
        if bad or not wide or not self.workspace:
            return 7  # invalid value
        x = self.matrices(a, type_a, rows_a, m if trans_a else k, lda, step_a, count, trans_a)
        y = self.matrices(b, type_b, rows_b, k if trans_b else n, ldb, step_b, count, trans_b)
        z = self.matrices(c, type_c, m, n, ldc, step_c, count, False)
        scale, keep = alpha._obj.value, beta._obj.value
        assert (scale, keep) == (1, 0)
        self.gpu.launches += 1

        def multiply():
            with np.errstate(all="ignore"):
                z[...] = np.matmul(x, y)

        self.stream.put(multiply)
        return 0

    def matrices(self, place, kind, rows, columns, leading, step, count, transposed):
        """``count`` matrices behind an address, turned as asked."""
        dtype = np.dtype(self.TYPES[kind])
        length = (count - 1) * step.value + (columns - 1) * leading + rows
        raw = (ctypes.c_char * (length * dtype.itemsize)).from_address(place.value)
        flat = np.frombuffer(raw, dtype)
        strides = (step.value * dtype.itemsize, dtype.itemsize, leading * dtype.itemsize)
        found = stride_tricks.as_strided(flat, (count, rows, columns), strides)
        return found.swapaxes(1, 2) if transposed else found
