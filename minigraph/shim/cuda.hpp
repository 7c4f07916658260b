// What a kernel sees: CUDA's words, spelled for g++. It includes no header, so that a build is quick and a
// kernel may use any name. Semantics follow NVIDIA's CUDA C++ Programming Guide; fibers.hpp runs the threads.

#define __global__ __attribute__((noinline))
#define __device__
#define __host__
#define __constant__ static
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))

#define MINIGRAPH_VECTOR(T, name, two, four) \
    struct __align__(two) name##2 { T x, y; }; \
    struct name##3 { T x, y, z; }; \
    struct __align__(four) name##4 { T x, y, z, w; }; \
    static inline name##2 make_##name##2(T x, T y) { return {x, y}; } \
    static inline name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; } \
    static inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
MINIGRAPH_VECTOR(float, float, 8, 16) MINIGRAPH_VECTOR(double, double, 16, 16)
MINIGRAPH_VECTOR(int, int, 8, 16) MINIGRAPH_VECTOR(unsigned, uint, 8, 16)
MINIGRAPH_VECTOR(signed char, char, 2, 4) MINIGRAPH_VECTOR(unsigned char, uchar, 2, 4)
struct dim3 { unsigned x, y, z; };

static uint3 threadIdx, blockIdx;
static dim3 blockDim, gridDim;
static const int warpSize = 32;

// ---- threads that wait for each other ------------------------------------------------------------------------

namespace minigraph_shim {

struct Kernel { void (*call)(void **); bool waits; unsigned char *shared, *shared_end; };
struct Place { int line, number; };  // of a waiting instruction: the number tells two on one line apart

alignas(128) extern unsigned char dynamic_shared[];
static void barrier(Place here);
static unsigned lane();
// Waits for the warp's lanes in `mask`. `value` becomes that of `source`, or stays where that is its own lane;
// the result has a bit for each lane whose value is not zero, `lanes` one for each that took part.
static unsigned exchange(Place here, unsigned mask, void *value, unsigned bytes, unsigned source, unsigned *lanes);

template <class T> T shuffle(Place here, unsigned mask, T value, unsigned source) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "a shuffle moves 4 or 8 bytes");
    unsigned lanes;
    exchange(here, mask, &value, sizeof value, source, &lanes);
    return value;
}
template <class T> T shuffle_idx(Place here, unsigned mask, T value, int source, int width = 32) {
    return shuffle(here, mask, value, (lane() & ~(width - 1)) | (source & (width - 1)));
}
template <class T> T shuffle_up(Place here, unsigned mask, T value, unsigned delta, int width = 32) {
    unsigned self = lane(), in_group = self & (width - 1);
    return shuffle(here, mask, value, delta > in_group ? self : self - delta);
}
template <class T> T shuffle_down(Place here, unsigned mask, T value, unsigned delta, int width = 32) {
    unsigned self = lane(), in_group = self & (width - 1);
    return shuffle(here, mask, value, in_group + delta >= (unsigned)width ? self : self + delta);
}
template <class T> T shuffle_xor(Place here, unsigned mask, T value, int bits, int width = 32) {
    unsigned self = lane(), source = self ^ bits;
    return shuffle(here, mask, value, source > (self | (width - 1)) ? self : source);
}
static inline unsigned ballot(Place here, unsigned mask, int predicate, unsigned *lanes) {
    return exchange(here, mask, &predicate, sizeof predicate, lane(), lanes);
}
static inline unsigned ballot(Place here, unsigned mask, int predicate) {
    unsigned lanes;
    return ballot(here, mask, predicate, &lanes);
}
static inline int all(Place here, unsigned mask, int predicate) {
    unsigned lanes, ayes = ballot(here, mask, predicate, &lanes);
    return ayes == lanes;
}
static inline void warp(Place here, unsigned mask = 0xffffffffu) { ballot(here, mask, 0); }

}  // namespace minigraph_shim

#define MINIGRAPH_HERE minigraph_shim::Place{__LINE__, __COUNTER__}
#define __syncthreads() minigraph_shim::barrier(MINIGRAPH_HERE)
#define __syncwarp(...) minigraph_shim::warp(MINIGRAPH_HERE __VA_OPT__(,) __VA_ARGS__)
#define __shfl_sync(...) minigraph_shim::shuffle_idx(MINIGRAPH_HERE, __VA_ARGS__)
#define __shfl_up_sync(...) minigraph_shim::shuffle_up(MINIGRAPH_HERE, __VA_ARGS__)
#define __shfl_down_sync(...) minigraph_shim::shuffle_down(MINIGRAPH_HERE, __VA_ARGS__)
#define __shfl_xor_sync(...) minigraph_shim::shuffle_xor(MINIGRAPH_HERE, __VA_ARGS__)
#define __ballot_sync(...) minigraph_shim::ballot(MINIGRAPH_HERE, __VA_ARGS__)
#define __any_sync(...) (minigraph_shim::ballot(MINIGRAPH_HERE, __VA_ARGS__) != 0)
#define __all_sync(...) minigraph_shim::all(MINIGRAPH_HERE, __VA_ARGS__)
#define __threadfence()
#define __threadfence_block()

// ---- atomics: one thread runs at a time, so that a plain read and write is one -------------------------------

template <class T> struct MinigraphSame { using type = T; };
#define MINIGRAPH_ATOMIC(name, result) \
    template <class T> T name(T *at, typename MinigraphSame<T>::type value) { \
        T old = *at; \
        *at = result; \
        return old; \
    }
MINIGRAPH_ATOMIC(atomicAdd, old + value)
MINIGRAPH_ATOMIC(atomicSub, old - value)
MINIGRAPH_ATOMIC(atomicExch, value)
MINIGRAPH_ATOMIC(atomicMax, value > old ? value : old)
MINIGRAPH_ATOMIC(atomicMin, value < old ? value : old)
MINIGRAPH_ATOMIC(atomicAnd, old & value)
MINIGRAPH_ATOMIC(atomicOr, old | value)
MINIGRAPH_ATOMIC(atomicXor, old ^ value)
template <class T> T atomicCAS(T *at, typename MinigraphSame<T>::type expected, typename MinigraphSame<T>::type value) {
    T old = *at;
    if (old == expected) *at = value;
    return old;
}

// ---- mathematics: libm's functions, under CUDA's names -------------------------------------------------------

#define MINIGRAPH_UNARY(name) \
    extern "C" double name(double); \
    extern "C" float name##f(float); \
    static inline float name(float x) { return name##f(x); }
#define MINIGRAPH_BINARY(name) \
    extern "C" double name(double, double); \
    extern "C" float name##f(float, float); \
    static inline float name(float x, float y) { return name##f(x, y); }
MINIGRAPH_UNARY(exp) MINIGRAPH_UNARY(exp2) MINIGRAPH_UNARY(exp10) MINIGRAPH_UNARY(expm1) MINIGRAPH_UNARY(log)
MINIGRAPH_UNARY(log2) MINIGRAPH_UNARY(log10) MINIGRAPH_UNARY(log1p) MINIGRAPH_UNARY(sin) MINIGRAPH_UNARY(cos)
MINIGRAPH_UNARY(tan) MINIGRAPH_UNARY(asin) MINIGRAPH_UNARY(acos) MINIGRAPH_UNARY(atan) MINIGRAPH_UNARY(sinh)
MINIGRAPH_UNARY(cosh) MINIGRAPH_UNARY(tanh) MINIGRAPH_UNARY(asinh) MINIGRAPH_UNARY(acosh) MINIGRAPH_UNARY(atanh)
MINIGRAPH_UNARY(erf) MINIGRAPH_UNARY(erfc) MINIGRAPH_UNARY(sqrt) MINIGRAPH_UNARY(cbrt) MINIGRAPH_UNARY(fabs)
MINIGRAPH_UNARY(floor) MINIGRAPH_UNARY(ceil) MINIGRAPH_UNARY(trunc) MINIGRAPH_UNARY(round) MINIGRAPH_UNARY(rint)
MINIGRAPH_UNARY(nearbyint) MINIGRAPH_UNARY(lgamma) MINIGRAPH_UNARY(tgamma)
MINIGRAPH_BINARY(pow) MINIGRAPH_BINARY(fmod) MINIGRAPH_BINARY(remainder) MINIGRAPH_BINARY(atan2) MINIGRAPH_BINARY(fmax)
MINIGRAPH_BINARY(fmin) MINIGRAPH_BINARY(hypot) MINIGRAPH_BINARY(copysign) MINIGRAPH_BINARY(nextafter)
MINIGRAPH_BINARY(fdim)
extern "C" {
double fma(double, double, double), ldexp(double, int);
float fmaf(float, float, float), ldexpf(float, int);
long long llrint(double), llrintf(float), llabs(long long);
int abs(int);
}
static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
static inline double rsqrt(double x) { return 1.0 / sqrt(x); }
static inline float abs(float x) { return fabsf(x); }
static inline double abs(double x) { return fabs(x); }
static inline long long abs(long long x) { return llabs(x); }

#define MINIGRAPH_CLASSIFY(T) \
    static inline bool isnan(T x) { return __builtin_isnan(x); } \
    static inline bool isinf(T x) { return __builtin_isinf(x); } \
    static inline bool isfinite(T x) { return __builtin_isfinite(x); } \
    static inline bool signbit(T x) { return __builtin_signbit(x); } \
    static inline T max(T x, T y) { return fmax(x, y); } \
    static inline T min(T x, T y) { return fmin(x, y); }
MINIGRAPH_CLASSIFY(float) MINIGRAPH_CLASSIFY(double)
#define MINIGRAPH_ORDER(T) \
    static inline T max(T x, T y) { return x > y ? x : y; } \
    static inline T min(T x, T y) { return x < y ? x : y; }
MINIGRAPH_ORDER(int) MINIGRAPH_ORDER(unsigned) MINIGRAPH_ORDER(long) MINIGRAPH_ORDER(unsigned long)
MINIGRAPH_ORDER(long long) MINIGRAPH_ORDER(unsigned long long)

// The quick approximations are computed exactly here: what is compared with them needs a tolerance anyway.
#define __expf expf
#define __exp10f exp10f
#define __logf logf
#define __log2f log2f
#define __log10f log10f
#define __sinf sinf
#define __cosf cosf
#define __tanf tanf
#define __powf powf
#define __frsqrt_rn rsqrtf
#define __fsqrt_rn sqrtf
#define __dsqrt_rn sqrt
#define __fmaf_rn fmaf
#define __fma_rn fma
static inline float __fdividef(float x, float y) { return x / y; }
static inline float __frcp_rn(float x) { return 1.0f / x; }
static inline float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }
#define MINIGRAPH_ARITHMETIC(T, letter) \
    static inline T __##letter##add_rn(T x, T y) { return x + y; } \
    static inline T __##letter##sub_rn(T x, T y) { return x - y; } \
    static inline T __##letter##mul_rn(T x, T y) { return x * y; } \
    static inline T __##letter##div_rn(T x, T y) { return x / y; }
MINIGRAPH_ARITHMETIC(float, f) MINIGRAPH_ARITHMETIC(double, d)

// ---- conversions and bits ------------------------------------------------------------------------------------

// Out of range saturates; for NaN see the PTX ISA under cvt.
template <class To, class From> To minigraph_round(From x, To least, To most, To nan) {
    if (__builtin_isnan(x)) return nan;
    if (x <= (From)least) return least;  // a power of two or zero: exact
    return x >= (From)most ? most : (To)x;
}
static const long long MINIGRAPH_LL = 1LL << 62;
#define MINIGRAPH_CONVERT(suffix, way) \
    static inline int __float2int_##suffix(float x) { \
        return minigraph_round(way(x), -__INT_MAX__ - 1, __INT_MAX__, 0); } \
    static inline int __double2int_##suffix(double x) { \
        return minigraph_round(way(x), -__INT_MAX__ - 1, __INT_MAX__, -__INT_MAX__ - 1); } \
    static inline unsigned __float2uint_##suffix(float x) { return minigraph_round(way(x), 0u, ~0u, 0u); } \
    static inline unsigned __double2uint_##suffix(double x) { return minigraph_round(way(x), 0u, ~0u, 1u << 31); } \
    static inline long long __float2ll_##suffix(float x) { \
        return minigraph_round(way(x), -2 * MINIGRAPH_LL, __LONG_LONG_MAX__, -2 * MINIGRAPH_LL); } \
    static inline long long __double2ll_##suffix(double x) { \
        return minigraph_round(way(x), -2 * MINIGRAPH_LL, __LONG_LONG_MAX__, -2 * MINIGRAPH_LL); } \
    static inline unsigned long long __float2ull_##suffix(float x) { \
        return minigraph_round(way(x), 0ull, ~0ull, 1ull << 63); } \
    static inline unsigned long long __double2ull_##suffix(double x) { \
        return minigraph_round(way(x), 0ull, ~0ull, 1ull << 63); }
MINIGRAPH_CONVERT(rz, trunc) MINIGRAPH_CONVERT(rn, rint) MINIGRAPH_CONVERT(rd, floor) MINIGRAPH_CONVERT(ru, ceil)
static inline float __int2float_rn(int x) { return (float)x; }
static inline float __uint2float_rn(unsigned x) { return (float)x; }
static inline float __ll2float_rn(long long x) { return (float)x; }
static inline float __ull2float_rn(unsigned long long x) { return (float)x; }
static inline double __int2double_rn(int x) { return x; }
static inline double __ll2double_rn(long long x) { return (double)x; }
static inline float __double2float_rn(double x) { return (float)x; }

template <class To, class From> To minigraph_bits(From x) {
    To y;
    static_assert(sizeof x == sizeof y, "the same size");
    __builtin_memcpy(&y, &x, sizeof y);
    return y;
}
#define __int_as_float(x) minigraph_bits<float, int>(x)
#define __uint_as_float(x) minigraph_bits<float, unsigned>(x)
#define __float_as_int(x) minigraph_bits<int, float>(x)
#define __float_as_uint(x) minigraph_bits<unsigned, float>(x)
#define __longlong_as_double(x) minigraph_bits<double, long long>(x)
#define __double_as_longlong(x) minigraph_bits<long long, double>(x)
template <class T> T __ldg(const T *at) { return *at; }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clz(int x) { return x ? __builtin_clz(x) : 32; }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __mulhi(int x, int y) { return (int)(((long long)x * y) >> 32); }
static inline unsigned __umulhi(unsigned x, unsigned y) { return (unsigned)(((unsigned long long)x * y) >> 32); }
static inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
    return (unsigned long long)(((unsigned __int128)x * y) >> 64);
}
