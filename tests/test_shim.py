"""The CUDA source on the CPU: it computes what a GPU would, and planted mistakes are caught and named."""

import platform
import re

import numpy as np
import pytest

from minigraph import nvrtc, shim
from minigraph.shim import Launch, ShimError

pytestmark = pytest.mark.skipif(bool(shim.why_not()), reason=shim.why_not())

RNG = np.random.default_rng(7)

FUSED = r"""
extern "C" __global__ void fused(const float *__restrict__ a, const float *__restrict__ b, const float *__restrict__ c,
                                 const float *__restrict__ d, float *__restrict__ y, long long n) {
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float t = a[i] * b[i] + c[i];  // not one fma
    y[i] = sqrtf(fabsf(t)) / d[i];
}
"""
SUM = r"""
extern "C" __global__ void __launch_bounds__(256) sum(const float *x, float *y, int n) {
    __shared__ float s[256];
    float total = 0.0f;
    for (int i = threadIdx.x; i < n; i += blockDim.x) total += x[blockIdx.x * n + i];
    s[threadIdx.x] = total;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) s[threadIdx.x] += s[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) y[blockIdx.x] = s[0];
}
"""
REVERSE = r"""
__device__ int mirror(int i, int n) { return n - 1 - i; }
/* not a kernel: __global__ void ghost(int x) { */
extern "C" __global__ void reverse(const double *x, double *y) {
    extern __shared__ double s[];
    int i = threadIdx.x, j = mirror(i, blockDim.x);
    s[i] = x[blockIdx.x * blockDim.x + i];
    __syncthreads();
    y[blockIdx.x * blockDim.x + i] = s[j];
    __syncthreads();
    s[i] = 0.0;
}
"""
WARP = r"""
extern "C" __global__ void warps(const float *x, float *out, unsigned *votes) {
    unsigned all = 0xffffffffu, i = threadIdx.x;
    float v = x[i];
    for (int lanes = 16; lanes > 0; lanes /= 2) v += __shfl_xor_sync(all, v, lanes);
    out[i] = v;
    out[64 + i] = __shfl_down_sync(all, x[i], 3);
    out[128 + i] = __shfl_up_sync(all, x[i], 3, 8);
    out[192 + i] = __shfl_sync(all, x[i], 5);
    if (i % 32 < 16) out[256 + i] = __shfl_xor_sync(0xffffu, x[i], 1); else out[256 + i] = 0.0f;
    __syncwarp();
    out[320 + i] = __shfl_down_sync(all, x[i], 1, 4);
    votes[i] = __ballot_sync(all, x[i] > 0.0f);
    votes[64 + i] = (unsigned)__any_sync(all, x[i] > 1e9f) + 2u * (unsigned)__all_sync(all, x[i] < 1e9f);
}
"""
INDEX = r"""
extern "C" __global__ void where(int *out, int *count) {
    int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    out[block * blockDim.x * blockDim.y * blockDim.z + thread] = blockIdx.z * 100000 + blockIdx.y * 10000
        + blockIdx.x * 1000 + threadIdx.z * 100 + threadIdx.y * 10 + threadIdx.x;
    atomicAdd(count, 1);
    atomicMax(count + 1, thread);
}
"""
VECTOR = r"""
extern "C" __global__ void four(const float4 *x, float4 *y, float scale, unsigned char *big) {
    float4 v = x[threadIdx.x];
    y[threadIdx.x] = make_float4(v.w * scale, v.z * scale, v.y * scale, v.x * scale);
    big[threadIdx.x] = v.x > 0.5f;
}
"""
WORDS = r"""
extern "C" __global__ void words(const float *x, int *i, long long *l, float *f) {
    int t = threadIdx.x;
    i[t] = __float2int_rz(x[t]);
    i[8 + t] = __float2int_rn(x[t]);
    i[16 + t] = isnan(x[t]) + 2 * isinf(x[t]) + 4 * signbit(x[t]);
    i[24 + t] = __float_as_int(x[t]);
    l[t] = __float2ll_rz(x[t]);
    f[t] = fmaxf(x[t], 0.25f);
    f[8 + t] = fminf(x[t], 0.25f);
    f[16 + t] = tanhf(__expf(-fabsf(x[t]))) + erff(0.5f) + rsqrtf(4.0f);
    f[24 + t] = __int_as_float(0x7f800000) * copysignf(1.0f, x[t]);
    f[32 + t] = (float)__umulhi(0x80000000u, 6u) + __fmul_rn(2.0f, 3.0f) + max(2, 3) + fmaf(2.0f, 3.0f, 1.0f);
}
"""
GOOD = {"fused": FUSED, "sum": SUM, "reverse": REVERSE, "warps": WARP, "where": INDEX, "four": VECTOR, "words": WORDS}


def normal(*shape, dtype="float32"):
    return RNG.normal(size=shape).astype(dtype)


def caught(source, launch, *args, order="both"):
    """The sentence of the error that a launch raises."""
    with pytest.raises(ShimError) as error:
        shim.build(source).run([(launch, args)], order)
    return str(error.value)


def line_of(source, text):
    return source[: source.index(text)].count("\n") + 1


# ---- it computes


def test_a_fused_kernel_has_numpys_bits():
    a, b, c, d = normal(4, 1000)
    y = np.zeros(1000, np.float32)
    shim.build(FUSED).run([(Launch("fused", (4, 1, 1), (256, 1, 1)), (a, b, c, d, y, 1000))])
    np.testing.assert_array_equal(y, np.sqrt(np.abs(a * b + c)) / d)


@pytest.mark.parametrize("order", ["ascending", "descending", "both"])
@pytest.mark.parametrize("threads", [1, 32, 256])
def test_a_block_sum_adds_in_the_order_of_its_tree(order, threads):
    x = normal(5, 700)
    y = np.zeros(5, np.float32)
    shim.build(SUM).run([(Launch("sum", (5,), (threads,)), (x, y, 700))], order)
    parts = np.zeros((5, threads), np.float32)
    for start in range(0, 700, threads):
        piece = x[:, start : start + threads]
        parts[:, : piece.shape[1]] += piece
    while parts.shape[1] > 1:
        parts = parts[:, : parts.shape[1] // 2] + parts[:, parts.shape[1] // 2 :]
    np.testing.assert_array_equal(y, parts[:, 0])


def test_dynamic_shared_memory_and_device_functions():
    x, y = normal(3, 40, dtype="float64"), np.zeros((3, 40))
    module = shim.build(REVERSE)
    module.run([(Launch("reverse", (3,), (40,), 40 * 8), (x, y))])
    np.testing.assert_array_equal(y, x[:, ::-1])
    assert list(module.kernels) == ["reverse"]  # the ghost in the comment is none


def test_warp_functions():
    x, out, votes = normal(64), np.zeros(384, np.float32), np.zeros(128, np.uint32)
    shim.build(WARP).run([(Launch("warps", (1,), (64,)), (x, out, votes))])
    lane, base = np.arange(64) % 32, np.arange(64) // 32 * 32
    tree = x.reshape(2, 32)
    for lanes in (16, 8, 4, 2, 1):
        tree = tree + tree[:, np.arange(32) ^ lanes]
    np.testing.assert_array_equal(out[:64], tree.ravel())
    np.testing.assert_array_equal(out[64:128], x[base + np.where(lane + 3 < 32, lane + 3, lane)])
    np.testing.assert_array_equal(out[128:192], x[base + np.where(lane % 8 >= 3, lane - 3, lane)])
    np.testing.assert_array_equal(out[192:256], x[base + 5])
    np.testing.assert_array_equal(out[256:320], np.where(lane < 16, x[base + (lane ^ 1)], 0))
    np.testing.assert_array_equal(out[320:384], x[base + np.where(lane % 4 < 3, lane + 1, lane)])
    ballots = (tree * 0 + (x.reshape(2, 32) > 0)).astype(np.uint64) @ (1 << np.arange(32, dtype=np.uint64))
    np.testing.assert_array_equal(votes[:64], np.repeat(ballots, 32))
    assert set(votes[64:]) == {2}


def test_blocks_and_threads_in_three_dimensions():
    grid, block = (2, 3, 4), (5, 2, 3)
    out, count = np.zeros(2 * 3 * 4 * 5 * 2 * 3, np.int32), np.zeros(2, np.int32)
    shim.build(INDEX).run([(Launch("where", grid, block), (out, count))])
    shape = (*grid[::-1], *block[::-1])
    digits = np.indices(shape).reshape(6, -1).T @ (100000, 10000, 1000, 100, 10, 1)
    np.testing.assert_array_equal(out, digits)
    assert list(count) == [out.size, 29]


def test_vectors_and_numbers():
    x, y, big = normal(6, 4), np.zeros((6, 4), np.float32), np.zeros(6, bool)
    shim.build(VECTOR).run([(Launch("four", (1,), (6,)), (x, y, np.float64(0.1), big))])
    np.testing.assert_array_equal(y, x[:, ::-1] * np.float32(0.1))
    np.testing.assert_array_equal(big, x[:, 0] > 0.5)


def test_words_of_cuda():
    x = np.array([-2.5, 2.5, -0.0, 0.75, np.nan, np.inf, -np.inf, 3e9], np.float32)
    i, l, f = np.zeros(32, np.int32), np.zeros(8, np.int64), np.zeros(40, np.float32)
    shim.build(WORDS).run([(Launch("words", (1,), (8,)), (x, i, l, f))])
    top = 2**31 - 1
    assert list(i[:8]) == [-2, 2, 0, 0, 0, top, -top - 1, top]
    assert list(i[8:16]) == [-2, 2, 0, 1, 0, top, -top - 1, top]
    assert list(i[16:24] & 3) == [0, 0, 0, 0, 1, 2, 2, 0]
    assert list(i[16:24] >> 2) == list(np.signbit(x))
    np.testing.assert_array_equal(i[24:], x.view(np.int32))
    assert list(l) == [-2, 2, 0, 0, -(2**63), 2**63 - 1, -(2**63), 3 * 10**9]
    np.testing.assert_array_equal(f[:8], np.fmax(x, np.float32(0.25)))
    np.testing.assert_array_equal(f[8:16], np.fmin(x, np.float32(0.25)))
    with np.errstate(all="ignore"):
        expected = np.tanh(np.exp(-np.abs(x))) + np.float32(0.5204999) + np.float32(0.5)
    np.testing.assert_allclose(f[16:24], expected, rtol=1e-6)
    np.testing.assert_array_equal(f[24:32], np.copysign(np.float32(np.inf), x))
    assert set(f[32:]) == {3 + 6 + 3 + 7}


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.skipif(bool(nvrtc.why_not()), reason=nvrtc.why_not())
def test_what_the_shim_runs_nvrtc_compiles(name):
    assert list(nvrtc.ptx_counts(nvrtc.compile(GOOD[name]).ptx)) == [name]


def test_launches_run_in_turn_and_views_share_their_memory():
    source = FUSED + r"""
    extern "C" __global__ void twice(const float *x, float *y) { y[threadIdx.x] = 2 * x[threadIdx.x]; }
    """
    arena = np.zeros(30, np.float32)
    arena[:10] = np.arange(10)
    launch = Launch("twice", (1,), (10,))
    shim.build(source).run([(launch, (arena[:10], arena[10:20])), (launch, (arena[10:20], arena[20:]))])
    np.testing.assert_array_equal(arena.reshape(3, 10), np.outer([1, 2, 4], np.arange(10)))
    whole = np.arange(6, dtype=np.float32)
    launch = Launch("twice", (1,), (2,))
    shim.build(source).run([(launch, (whole, whole[2:])), (launch, (whole[2:4], whole[4:]))])
    assert list(whole) == [0, 1, 0, 2, 0, 4]


def test_empty_arrays_null_pointers_and_read_only_inputs():
    source = r"""
    extern "C" __global__ void f(const float *x, float *y, float *z, int *none) { z[0] = x[0] + (none == nullptr); }
    """
    x, z = np.ones(1, np.float32), np.zeros(1, np.float32)
    x.flags.writeable = False
    shim.build(source).run([(Launch("f", (1,), (1,)), (x, np.zeros(0, np.float32), z, None))])
    assert z[0] == 2


def test_one_build_for_one_text():
    assert shim.build(FUSED) is shim.build(FUSED)


def test_a_folder_keeps_libraries_and_a_broken_one_is_built_again(tmp_path):
    def answer(text):
        y = np.zeros(1, np.int32)
        module = shim.build(f'extern "C" __global__ void f(int *y) {{ y[0] = 42; }} {text}', tmp_path)
        module.run([(Launch("f", (1,), (1,)), (y,))])
        return y[0]

    assert answer("") == 42
    (kept,) = tmp_path.iterdir()
    assert answer("// another") == 42
    assert len(list(tmp_path.iterdir())) == 2
    shim.compiler._build.cache_clear()
    kept.write_bytes(b"no library")
    assert answer("") == 42
    assert kept.read_bytes()[:4] == b"\x7fELF"


# ---- planted mistakes


def test_a_missing_barrier_is_caught():
    source = SUM.replace("s[threadIdx.x + half];\n        __syncthreads();", "s[threadIdx.x + half];")
    assert source != SUM
    said = caught(source, Launch("sum", (2,), (64,)), normal(2, 64), np.zeros(2, np.float32), 64)
    assert re.match(r"kernel `sum`: y\[0\] is \S+ when its threads run in ascending order and \S+ in descending", said)
    assert "race" in said


def test_a_missing_barrier_before_memory_is_used_again_is_caught():
    source = REVERSE.replace("s[j];\n    __syncthreads();", "s[j];")
    assert source != REVERSE
    said = caught(source, Launch("reverse", (1,), (8,), 64), normal(8, dtype="float64"), np.zeros(8))
    assert "kernel `reverse`: y[" in said and "race" in said


@pytest.mark.parametrize("index, grid, block", [("threadIdx.x", 1, 8), ("blockIdx.x", 8, 1)])
def test_a_race_in_global_memory_is_caught(index, grid, block):
    source = f'extern "C" __global__ void last(int *y, int i) {{ y[i] = {index}; }}'
    y = np.full(4, 9, np.int32)
    assert "kernel `last`: y[2] is 7 when its threads run in ascending order and 0 in descending" in caught(
        source, Launch("last", (grid,), (block,)), y, 2)  # fmt: skip
    assert list(y) == [9, 9, 9, 9]  # on an error the arrays are as they were
    shim.build(source).run([(Launch("last", (grid,), (block,)), (y, 2))], "ascending")
    assert list(y) == [9, 9, 7, 9]


def test_a_sum_whose_order_is_open_is_a_race():
    source = 'extern "C" __global__ void total(const float *x, float *y) { atomicAdd(y, x[threadIdx.x]); }'
    x = np.array([1e8, 1, -1e8, 1], np.float32)
    assert "kernel `total`: y[0] is 1.0 when" in caught(source, Launch("total", (1,), (4,)), x, np.zeros(1, np.float32))


HALF = r"""
extern "C" __global__ void half_waits(float *y) {
    if (threadIdx.x < 16)
        __syncthreads();
    y[threadIdx.x] = 1.0f;
}
"""
APART = r"""
extern "C" __global__ void apart(float *y) {
    if (threadIdx.x == 3) { __syncthreads(); }
    else {
        __syncthreads();
    }
    y[threadIdx.x] = 1.0f;
}
"""


def test_a_divergent_barrier_is_named():
    said = caught(HALF, Launch("half_waits", (2,), (64,)), np.zeros(64, np.float32))
    line = line_of(HALF, "__syncthreads")
    assert f"kernel `half_waits`, block (0, 0, 0): divergence at line {line}, where 16 of 64 threads wait" in said
    assert "thread (16, 0, 0) has ended" in said
    said = caught(APART, Launch("apart", (1,), (8,)), np.zeros(8, np.float32))
    assert "divergence at line 5, where 7 of 8 threads wait, thread (0, 0, 0) among them" in said
    assert "thread (3, 0, 0) waits at line 3" in said
    one_line = 'extern "C" __global__ void f() { if (threadIdx.x) __syncthreads(); else __syncthreads(); }'
    assert "divergence at line 1" in caught(one_line, Launch("f", (1,), (2,)))


def test_a_module_works_after_an_error():
    source = HALF.replace("threadIdx.x < 16", "threadIdx.x < y[0]")
    y = np.full(64, 16, np.float32)
    assert "divergence" in caught(source, Launch("half_waits", (1,), (64,)), y)
    y[:] = 64
    # y[0] is read by all before the barrier and written after it
    shim.build(source).run([(Launch("half_waits", (1,), (64,)), (y,))])
    assert set(y) == {1}


@pytest.mark.parametrize("statement, said", [
    ("if (i < 7) __shfl_xor_sync(0xffu, 1.0f, 1); else __syncthreads();", "where 7 of 8 threads wait"),
    ("if (i < 4) __shfl_xor_sync(0xffu, 1.0f, 1); else __shfl_xor_sync(0xffu, 1.0f, 1);", "where 4 of 8 threads wait"),
    ("__shfl_xor_sync(i < 4 ? 0xffu : 0xfeu, 1.0f, 1);", "their masks name lanes that do not come"),
    ("__shfl_xor_sync(0xfu, 1.0f, 1);", "thread (4, 0, 0) calls a warp function whose mask leaves it out"),
])  # fmt: skip
def test_warp_functions_that_diverge(statement, said):
    source = f'extern "C" __global__ void f(float *y) {{ int i = threadIdx.x; {statement} y[i] = 1.0f; }}'
    assert said in caught(source, Launch("f", (1,), (8,)), np.zeros(8, np.float32))


def test_shared_memory_is_poison_at_the_start_of_each_block():
    source = r"""
    extern "C" __global__ void stale(float *y, int *z) {
        __shared__ float s[4];
        extern __shared__ int t[];
        y[blockIdx.x] = s[1];
        z[blockIdx.x] = t[0];
        s[1] = 5.0f;
        t[0] = 5;
    }
    """
    y, z = np.zeros(3, np.float32), np.zeros(3, np.int32)
    shim.build(source).run([(Launch("stale", (3,), (1,), 4), (y, z))])
    assert np.isnan(y).all() and list(z) == [-1, -1, -1]


def test_a_lane_that_is_not_there_gives_poison():
    source = 'extern "C" __global__ void f(float *y) { y[threadIdx.x] = __shfl_down_sync(0xffffffffu, 1.0f, 1); }'
    y = np.zeros(4, np.float32)
    shim.build(source).run([(Launch("f", (1,), (4,)), (y,))])
    np.testing.assert_array_equal(y, np.array([1, 1, 1, np.nan], np.float32))


@pytest.mark.parametrize("body, said", [
    ("y[n] = 1.0f;", "kernel `f` writes past the end of `y`: guard the index"),
    ("y[-1] = 1.0f;", "kernel `f` writes before the start of `y`"),
    ("((volatile float *)8)[n] = 1.0f;", "thread (0, 0, 0) touches memory that is not its arrays'"),
    ("extern __shared__ float s[]; s[n] = 1.0f; y[0] = s[0];", "writes past the end of its dynamic shared memory"),
    pytest.param("y[0] = n / (n - 4);", "thread (0, 0, 0) divides an integer by zero", marks=pytest.mark.skipif(
        platform.machine() not in ("x86_64", "AMD64"), reason="only x86 traps on a division by zero")),
])  # fmt: skip
def test_memory_out_of_bounds(body, said):
    source = f'extern "C" __global__ void f(float *y, int n) {{ {body} }}'
    assert said in caught(source, Launch("f", (1,), (1,), 16), np.zeros(4, np.float32), 4)


def test_reading_out_of_bounds_gives_poison():
    source = 'extern "C" __global__ void f(const float *x, float *y, int n) { y[0] = x[n]; }'
    y = np.zeros(1, np.float32)
    shim.build(source).run([(Launch("f", (1,), (1,)), (np.ones(4, np.float32), y, 4))])
    assert np.isnan(y[0])


# ---- sentences


@pytest.mark.parametrize("launch, args, said", [
    (Launch("g", (1,), (1,)), (), "no kernel is named 'g'; the source has f"),
    (Launch("f", (0,), (1,)), (np.zeros(1, "f4"), 1), "a grid of (0, 1, 1) and a block of (1, 1, 1): a grid has 1 to"),
    (Launch("f", (1,), (65,)), (np.zeros(1, "f4"), 1), "a block of this kernel has 1 to 64 threads"),
    (Launch("f", (1,), (1, 1, 65)), (np.zeros(1, "f4"), 1), "at most 64 in z"),
    (Launch("f", (1,), (1,), 50000), (np.zeros(1, "f4"), 1), "dynamic shared memory is 0 to 49152 bytes, not 50000"),
    (Launch("f", (1,), (1,), 49000), (np.zeros(1, "f4"), 1), "fixed and dynamic shared memory together"),
    (Launch("f", (1,), (1,)), (np.zeros(1, "f4"),), "kernel f(float *y, int n) takes 2 arguments, not 1"),
    (Launch("f", (1,), (1,)), (np.zeros(1, "f8"), 1), "`float *y`: the array is float64, not float32"),
    (Launch("f", (1,), (1,)), (np.zeros(4, "f4")[::2], 1), "not C-contiguous"),
    (Launch("f", (1,), (1,)), (1.5, 1), "a pointer takes a NumPy array or None, not float"),
    (Launch("f", (1,), (1,)), (np.broadcast_to(np.zeros(1, "f4"), (1,)), 1), "the array is read-only"),
    (Launch("f", (1,), (1,)), (np.zeros(1, "f4"), 2**31), "`int n`: 2147483648 is no int"),
    (Launch("f", (1,), (1,)), (np.zeros(1, "f4"), 1.5), "`int n`: 1.5 is no int"),
])  # fmt: skip
def test_launches_that_do_not_fit(launch, args, said):
    source = r"""
    extern "C" __global__ void __launch_bounds__(64) f(float *y, int n) {
        __shared__ float s[64];
        s[0] = n;
        y[0] = s[0];
    }
    """
    assert said in caught(source, launch, *args)


def test_an_order_that_is_none():
    with pytest.raises(ShimError, match="order is one of ascending, descending, both, not 'up'"):
        shim.build(FUSED).run([], "up")


@pytest.mark.parametrize("source, said", [
    ("int f() { return 1; }", "the source has no kernel"),
    ('extern "C" __global__ void f(float *y) {\n    y[0] = foo(1);\n}',
     "line 2: 'foo' was not declared in this scope\n        y[0] = foo(1);"),
    ('extern "C" __global__ void f(float **y) {}', "cannot read the parameter `float * * y`"),
    ('extern "C" __global__ void f(float *y) {', "line 1: a '{' is never closed"),
    ('extern "C" __global__ int f(float *y) { return 1; }', "cannot read a __global__"),
    ('extern "C" __global__ void f(int x) {} extern "C" __global__ void f(int x) {}', "two kernels of the source have"),
    ('__shared__ float s[3];\nextern "C" __global__ void f(int x) {}', "declare an array of fixed size inside its"),
    ('extern "C" __global__ void f(float *y) { float s[9000]; s[threadIdx.x] = 1; y[0] = s[1]; }', "frame size"),
])  # fmt: skip
def test_sources_that_are_refused(source, said):
    with pytest.raises(ShimError) as error:
        shim.build(source)
    assert said in str(error.value)


def test_parameters_are_read():
    (kernel,) = shim.kernels.parse(
        'extern "C" __global__ void f(const unsigned  long long int *__restrict__ a, float4*b, long int c,'
        " const bool d, signed char *e) {}")
    assert [(p.base, p.name, p.pointer, p.const) for p in kernel.params] == [
        ("unsigned long long", "a", True, True), ("float4", "b", True, False), ("long", "c", False, False),
        ("bool", "d", False, True), ("signed char", "e", True, False)]  # fmt: skip


def test_without_a_compiler_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(shim.compiler.shutil, "which", lambda name: None)
    assert "install g++" in shim.why_not()
    with pytest.raises(ShimError, match="install g\\+\\+"):
        shim.build('extern "C" __global__ void unseen(int x) {}')
