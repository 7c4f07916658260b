"""NVRTC without a GPU: CUDA compiles for three architectures, mistakes are named, and the PTX is counted."""

import pytest

from minigraph import doctor, nvrtc
from minigraph.nvrtc import ARCHS, Counts, NvrtcError, ptx_counts

needs_nvrtc = pytest.mark.skipif(bool(nvrtc.why_not()), reason=nvrtc.why_not())

SOURCE = r"""
extern "C" __global__ void fused(const float *__restrict__ a, const float *__restrict__ b, const float *__restrict__ c,
                                 const float *__restrict__ d, float *__restrict__ y, long long n) {
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = tanhf(a[i] * b[i] + c[i]) * d[i];
}
extern "C" __global__ void four(const float4 *x, float4 *y, int *count) {
    float4 v = x[threadIdx.x];
    v.x *= v.y;
    y[threadIdx.x] = v;
    atomicAdd(count, 1);
}
extern "C" __global__ void pair(const double *x, double *y) {
    __shared__ double s[2];
    s[threadIdx.x] = x[threadIdx.x] * x[threadIdx.x];
    __syncthreads();
    y[threadIdx.x] = s[threadIdx.x] + s[1 - threadIdx.x];
}
extern "C" __global__ void lanes(const float *x, float *y) {
    y[threadIdx.x] = x[threadIdx.x] - __shfl_xor_sync(0xffffffffu, x[threadIdx.x], 1);
}
"""

# Cut from what NVRTC prints, with forms that it seldom uses: a generic address, nested braces, a barrier that reduces.
PTX = r"""
.version 9.5
.target sm_80
.global .align 4 .b8 table[24] = {65, 145, 68, 60, 219, 98, 149, 60, 252, 39, 87, 211, 25, 54, 220, 9};
.visible .entry first(
	.param .u64 first_param_0
)
.maxntid 256, 1, 1
{
	.reg .f32 	%f<9>;
	ld.param.u64 	%rd1, [first_param_0];
	cvta.to.global.u64 	%rd2, %rd1;
	@%p1 bra 	$L__BB0_2;
	@!%p2 ld.global.nc.v4.f32 	{%f1, %f2, %f3, %f4}, [%rd2];
	ld.volatile.global.u8 	%rs1, [%rd2]; // ld.global.f32 in a comment
	{ // callseq 0, 0
	ld.f64 	%fd1, [%rd3];
	}
	ld.shared::cta.f32 	%f5, [%r1];
	st.local.u32 	[%rd5], %r2;
	add.s64 	%rd1, %rd8, %rd9;
	sub.f32 	%f6, %f1, %f2;
	mad.lo.s32 	%r1, %r2, %r3, %r4;
	fma.rn.f64 	%fd2, %fd1, %fd1, %fd1;
	mul.rn.bf16 	%h1, %h2, %h3;
	ex2.approx.ftz.f32 	%f7, %f6;
	bar.red.popc.u32 	%r5, 0, %p1;
	bar.warp.sync 	-1;
	barrier.sync 	0;
	red.global.add.f32 	[%rd1], %f1;
$L__BB0_2:
	st.global.v2.b64 	[%rd2], {%rd1, %rd2};
	ret;
}
.func helper()
{
	ld.global.f32 	%f1, [%rd2];
}
.visible .entry second()
{
	ret;
}
"""


def test_counting_needs_no_compiler():
    counts = ptx_counts(PTX)
    assert list(counts) == ["first", "second"]
    assert counts["first"] == Counts(
        loads=3, load_bytes=16 + 1 + 8, stores=1, store_bytes=16, widest=4, shared_loads=1, local_stores=1,
        atomics=1, barriers=2, add=1, mul=1, fma=1, special=1, instructions=20,
    )  # fmt: skip
    assert counts["second"] == Counts(instructions=1)


@needs_nvrtc
@pytest.mark.parametrize("arch", ARCHS)
def test_loads_and_stores_are_what_the_source_says(arch):
    compiled = nvrtc.compile(SOURCE, arch)
    assert f".target sm_{arch}" in compiled.ptx
    counts = ptx_counts(compiled.ptx)
    fused, four, pair, lanes = (counts[name] for name in ("fused", "four", "pair", "lanes"))
    assert (fused.loads, fused.stores, fused.load_bytes, fused.store_bytes) == (4, 1, 16, 4)
    assert (fused.widest, fused.barriers, fused.shared_loads) == (1, 0, 0)
    assert (four.loads, four.stores, four.load_bytes, four.widest, four.atomics, four.mul) == (1, 1, 16, 4, 1, 1)
    assert (pair.loads, pair.stores, pair.load_bytes, pair.barriers, pair.mul, pair.add) == (1, 1, 8, 1, 1, 1)
    assert (pair.shared_stores, pair.shared_loads) == (1, 2)
    assert (lanes.shuffles, lanes.add, lanes.barriers) == (1, 1, 0)


@needs_nvrtc
@pytest.mark.parametrize("arch", ARCHS)
def test_a_cubin_is_machine_code(arch):
    compiled = nvrtc.compile(SOURCE, arch, to="cubin")
    assert compiled.code[:4] == b"\x7fELF"
    with pytest.raises(NvrtcError, match="this is a cubin"):
        _ = compiled.ptx


@needs_nvrtc
def test_products_are_rounded_unless_contraction_is_allowed():
    source = 'extern "C" __global__ void f(float *y, float a, float b) { y[0] = y[0] * a + b; }'
    strict, free = (ptx_counts(nvrtc.compile(source, options=options).ptx)["f"] for options in (nvrtc.OPTIONS, ()))
    assert (strict.mul, strict.add, strict.fma) == (1, 1, 0)
    assert (free.mul, free.add, free.fma) == (0, 0, 1)


@needs_nvrtc
def test_warnings_are_kept():
    log = nvrtc.compile('extern "C" __global__ void f(float *y) {\n    int spare;\n    y[0] = 1;\n}').log
    assert "kernels.cu(2): warning" in log and "spare" in log


@needs_nvrtc
def test_a_mistake_is_shown_with_its_line():
    with pytest.raises(NvrtcError) as error:
        nvrtc.compile('extern "C" __global__ void f(float *y) {\n    y[0] = foo(1);\n}', 80)
    said = str(error.value)
    assert said.startswith("NVRTC makes no ptx for sm_80: NVRTC_ERROR_COMPILATION\n")
    assert 'kernels.cu(2): error: identifier "foo" is undefined\n        y[0] = foo(1);' in said
    assert "foo" in error.value.log


@needs_nvrtc
@pytest.mark.parametrize("arguments, said", [
    ({"arch": 12}, "for sm_12"), ({"options": ("--bogus",)}, "bogus"), ({"to": "sass"}, 'to is "ptx" or "cubin", not'),
])  # fmt: skip
def test_arguments_that_nvrtc_refuses(arguments, said):
    with pytest.raises(NvrtcError) as error:
        nvrtc.compile(SOURCE, **arguments)
    assert said in str(error.value)


@pytest.mark.parametrize("libraries", [[], ["/nowhere/libnvrtc.so.13"], [__file__]])
def test_without_nvrtc_it_says_what_to_install(monkeypatch, libraries):
    monkeypatch.setattr(doctor, "nvrtc_libraries", lambda: iter(libraries))
    nvrtc._library.cache_clear()
    try:
        assert nvrtc.find() is None
        assert "not installed" in nvrtc.why_not() and "nvrtc" in nvrtc.why_not().partition("installed.")[2]
        with pytest.raises(NvrtcError, match="not installed"):
            nvrtc.compile(SOURCE)
    finally:
        nvrtc._library.cache_clear()
