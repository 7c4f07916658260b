// Float32 functions that a C compiler vectorizes: no branch, no table, no call. So a loop over exp_f32(x[i]) runs at
// the full width of the vector registers, where a loop over libm's expf(x[i]) takes one element at a time.
//
// Method: reduce the argument to a short interval, evaluate a minimax polynomial there (Remez's exchange; coefficients
// rounded to float one by one), put the scale back. Cody & Waite, "Software Manual for the Elementary Functions", 1980;
// Muller, "Elementary Functions", 3rd ed., 2016. NaN, infinities, zeros of both signs and subnormal numbers come out as
// NumPy has them. The ulps that a comment gives are the worst error that a test may find over random bit patterns.
//
// scalars.py takes this file apart at its blank lines: one function, with its comment, is one piece.
#include <math.h>
#include <stdint.h>
#include <string.h>

static inline int32_t as_int(float x) {
  int32_t bits;
  memcpy(&bits, &x, 4);
  return bits;
}

static inline float as_float(int32_t bits) {
  float x;
  memcpy(&x, &bits, 4);
  return x;
}

static inline int64_t as_int64(double x) {
  int64_t bits;
  memcpy(&bits, &x, 8);
  return bits;
}

static inline double as_double(int64_t bits) {
  double x;
  memcpy(&x, &bits, 8);
  return x;
}

// a * b + c: one rounding where the machine has the instruction, else two. For the insides of functions with ulps to
// spare, never for a graph's own products and sums.
static inline float fma_f32(float a, float b, float c) {
#if defined(__FP_FAST_FMAF) || defined(__FMA__)
  return fmaf(a, b, c);
#else
  return a * b + c;
#endif
}

static inline double fma_f64(double a, double b, double c) {
#if defined(__FP_FAST_FMA) || defined(__FMA__)
  return fma(a, b, c);
#else
  return a * b + c;
#endif
}

// 2^n for t = 1.5 * 2^23 + 127 + n: the last bits of t are n + 127, which is the exponent field of 2^n.
static inline float power_of_two(float t) {
  return as_float((int32_t)((uint32_t)as_int(t) << 23));
}

// The lower of a positive number and a limit, compared as integers: half the work of a comparison that minds NaN.
static inline float at_most(float t, float limit) {
  return as_float(as_int(t) < as_int(limit) ? as_int(t) : as_int(limit));
}

// x = 2 n ln 2 + r with |r| <= ln 2, exp(x) = (exp(r / 2) 2^n)^2: a square, so that results under 2^-126 round once.
// 12583039 is 1.5 * 2^23 + 127: adding it rounds to an integer. 3.1 ulp.
static inline float exp_f32(float x) {
  float t = at_most(fma_f32(x, 0x1.715476p-1f, 12583039.0f), 12583104.0f);
  float n = t - 12583039.0f, scale = power_of_two(t);
  float r = fma_f32(n, -0x1.7f7d1cp-19f, fma_f32(n, -0x1.62e4p0f, x));
  float p = fma_f32(r, 0x1.6a4ecep-16f, 0x1.12399cp-12f);
  p = fma_f32(r, p, 0x1.5558bp-9f);
  p = fma_f32(r, p, 0x1.555492p-6f);
  p = fma_f32(r, p, 0x1.fffffcp-4f);
  p = fma_f32(r, p, 0.5f);
  p = fma_f32(r, p, 1.0f) * scale;
  return x < -104.0f ? 0.0f : p * p;
}

// The same with x = 2 n + r, which is exact. 2.7 ulp.
static inline float exp2_f32(float x) {
  float t = at_most(fma_f32(x, 0.5f, 12583039.0f), 12583104.0f);
  float n = t - 12583039.0f, scale = power_of_two(t);
  float r = fma_f32(n, -2.0f, x);
  float p = fma_f32(r, 0x1.4177e2p-19f, 0x1.5f095p-15f);
  p = fma_f32(r, p, 0x1.3b2dd4p-11f);
  p = fma_f32(r, p, 0x1.c6af7ap-8f);
  p = fma_f32(r, p, 0x1.ebfbdcp-5f);
  p = fma_f32(r, p, 0x1.62e43p-2f);
  p = fma_f32(r, p, 1.0f) * scale;
  return x < -151.0f ? 0.0f : p * p;
}

// exp(r) - 1 for |r| <= ln 2 / 2.
static inline float expm1_near_zero(float r) {
  float p = fma_f32(r, 0x1.6b9c8ep-10f, 0x1.122552p-7f);
  p = fma_f32(r, p, 0x1.5556f2p-5f);
  p = fma_f32(r, p, 0x1.5554b4p-3f);
  p = fma_f32(r, p, 0x1.fffffep-2f);
  return fma_f32(r * r, p, r);
}

// x = n ln 2 + r; with s = 2^(n-1), exp(x) - 1 = 2 ((exp(r) - 1) s + (s - 1/2)). 1.7 ulp.
static inline float expm1_f32(float x) {
  float t = at_most(fma_f32(x, 0x1.715476p0f, 12583038.0f), 12583166.0f);
  float n = t - 12583038.0f, s = power_of_two(t);
  float r = fma_f32(n, -0x1.7f7d1cp-20f, fma_f32(n, -0x1.62e4p-1f, x));
  float y = 2.0f * fma_f32(expm1_near_zero(r), s, s - 0.5f);
  y = x < -18.0f ? -1.0f : y;
  return fabsf(x) < 0x1p-25f ? x : y;
}

// With e = exp(2 |x|) - 1, tanh |x| = e / (e + 2). 2.6 ulp.
static inline float tanh_f32(float x) {
  float a = fabsf(x);
  float t = fma_f32(a + a, 0x1.715476p0f, 12583039.0f);
  float n = t - 12583039.0f, scale = power_of_two(t);
  float p = expm1_near_zero(fma_f32(n, -0x1.62e43p-1f, a + a));
  float e = fma_f32(p, scale, scale - 1.0f);
  return copysignf(a > 9.02f ? 1.0f : e / (e + 2.0f), x);
}

// (log(1 + f) - f + f^2 / 2) / f^2 for -1/3 <= f <= 1/3.
static inline float log_tail(float f) {
  float p = fma_f32(f, 0x1.e9b7fep-4f, -0x1.06d752p-3f);
  p = fma_f32(f, p, 0x1.b9259ep-4f);
  p = fma_f32(f, p, -0x1.f3a6bap-4f);
  p = fma_f32(f, p, 0x1.24eb26p-3f);
  p = fma_f32(f, p, -0x1.5597e4p-3f);
  p = fma_f32(f, p, 0x1.9997fp-3f);
  p = fma_f32(f, p, -0x1.ffff16p-3f);
  return f * fma_f32(f, p, 0x1.555556p-2f);
}

// log(2^k (1 + f)), k ln 2 in two parts, the small terms first.
static inline float log_sum(float k, float f) {
  float y = fma_f32(f * f, log_tail(f), k * 0x1.7f7d1cp-20f);
  return fma_f32(k, 0x1.62e4p-1f, fma_f32(f * f, -0.5f, y) + f);
}

// What y, a logarithm of x, is outside its domain.
static inline float log_ends(float x, float y) {
  y = x <= 0x1.fffffep127f ? y : x;  // infinity and NaN
  y = x < 0 ? NAN : y;
  return x == 0 ? -INFINITY : y;
}

// x = 2^k (1 + f) with 2/3 <= 1 + f < 4/3; 0x3f2aaaab is 2/3. Subnormal numbers are first scaled up by 2^23. 0.8 ulp.
static inline float log_f32(float x) {
  float normal = x < 0x1p-126f ? x * 0x1p23f : x;
  int32_t over = as_int(normal) - 0x3f2aaaab;
  float k = (float)(over >> 23) - (x < 0x1p-126f ? 23.0f : 0.0f);
  float f = as_float(as_int(normal) - (over & ~0x7fffff)) - 1.0f;
  return log_ends(x, log_sum(k, f));
}

// log2(2^k (1 + f)) = k + log(1 + f) / ln 2. 1.9 ulp.
static inline float log2_f32(float x) {
  float normal = x < 0x1p-126f ? x * 0x1p23f : x;
  int32_t over = as_int(normal) - 0x3f2aaaab;
  float k = (float)(over >> 23) - (x < 0x1p-126f ? 23.0f : 0.0f);
  float f = as_float(as_int(normal) - (over & ~0x7fffff)) - 1.0f;
  float g = f * f * (log_tail(f) - 0.5f);
  g = fma_f32(g, 0x1.715476p0f, f * 0x1.4ae0cp-26f);
  return log_ends(x, k + fma_f32(f, 0x1.715476p0f, g));
}

// 1 + x rounds, so what it lost goes back into f. 1.6 ulp.
static inline float log1p_f32(float x) {
  float u = 1.0f + x, lost = x - (u - 1.0f);
  int32_t over = as_int(u) - 0x3f2aaaab, whole = over & ~0x7fffff;
  float f = as_float(as_int(u) - whole) - 1.0f;
  f = fma_f32(lost, as_float(0x3f800000 - (whole < 0x30000000 ? whole : 0x30000000)), f);
  float y = log_ends(u, log_sum((float)(over >> 23), f));
  return x == 0 ? x : y;
}

// A polynomial for |x| <= 0.9; beyond it 1 - 2^z(|x|), z a polynomial for log2(erfc). 1.6 ulp.
static inline float erf_f32(float x) {
  float a = fabsf(x), s = x * x;
  float p = fma_f32(s, -0x1.3d0a7ep-11f, 0x1.47e75ep-8f);
  p = fma_f32(s, p, -0x1.b6a63cp-6f);
  p = fma_f32(s, p, 0x1.ce1c18p-4f);
  p = fma_f32(s, p, -0x1.8126eep-2f);
  p = fma_f32(s, p, 0x1.06eba6p-3f);
  float near = fma_f32(p, a, a);
  float z = fma_f32(a, 0x1.44a382p-12f, -0x1.307222p-8f);
  z = fma_f32(a, z, 0x1.0eb79p-5f);
  z = fma_f32(a, z, -0x1.3715c2p-3f);
  z = fma_f32(a, z, -0x1.d590c8p-1f);
  z = a * fma_f32(a, z, -0x1.a0cbd4p0f);
  float t = z + 12583039.0f, r = z - (t - 12583039.0f);
  float q = fma_f32(r, 0x1.5bdba4p-10f, 0x1.3ce986p-7f);
  q = fma_f32(r, q, 0x1.c6b6d8p-5f);
  q = fma_f32(r, q, 0x1.ebf9cp-3f);
  q = fma_f32(r, q, 0x1.62e42ap-1f);
  q = fma_f32(r, q, 1.0f);
  float far = fma_f32(-q, power_of_two(t), 1.0f);
  float y = a > 0.9f ? far : near;
  return copysignf(a > 3.92f ? 1.0f : y, x);
}

// a / pi - shift less the nearest integer, negated where that is odd: sin(pi half_turns(a, 0)) is sin(a), and
// sin(pi half_turns(a, -0.5)) is cos(a), for every a >= 0. In double precision, after Payne & Hanek, "Radian reduction
// for trigonometric functions" (1983): a float a >= 2^50 is a multiple of 2^27, so the bits of 1 / pi worth 2^-26 and
// more only add even integers, and high + low, the next 106 bits, are enough. So again at 2^77 and at 2^103.
static inline double half_turns(float a, double shift) {
  double high = 0x1.45f306dc9c883p-2, low = -0x1.6b01ec5417056p-56;
  high = a >= 0x1p50f ? -0x1.1b1bbead603d9p-29 : high;
  low = a >= 0x1p50f ? 0x1.5f47d4d377037p-83 : low;
  high = a >= 0x1p77f ? 0x1.4a7f09d5f47d5p-55 : high;
  low = a >= 0x1p77f ? -0x1.6447e493ad4cep-110 : low;
  high = a >= 0x1p103f ? -0x1.505c1596447e5p-82 : high;
  low = a >= 0x1p103f ? 0x1.b14acc9e21c82p-136 : low;
  double x = a, t = x * high - shift + 0x1.8p52, n = 0x1.8p52 - t - shift;
#if defined(__FP_FAST_FMA) || defined(__FMA__)
  double f = fma(x, low, fma(x, high, n));
#else
  double first = (float)high;  // x * first and x * (high - first) are exact: Dekker's splitting
  double f = x * first + n + x * (high - first) + x * low;
#endif
  return as_double(as_int64(f) ^ (int64_t)((uint64_t)as_int64(t) << 63));
}

// sin(pi f) for |f| <= 0.532.
static inline float sin_pi(float f) {
  float s = f * f;
  float p = fma_f32(s, 0x1.3af8fep-4f, -0x1.3222ccp-1f);
  p = fma_f32(s, p, 0x1.46671ep1f);
  p = fma_f32(s, p, -0x1.4abbb8p2f);
  p = fma_f32(s, p, -0x1.001af8p-23f);
  return fma_f32(f, 0x1.921fb6p1f, f * p);
}

// 3.8 ulp, for every x.
static inline float sin_f32(float x) {
  float y = sin_pi((float)half_turns(fabsf(x), 0.0));
  return as_float(as_int(y) ^ (as_int(x) & INT32_MIN));
}

// 3.8 ulp, for every x.
static inline float cos_f32(float x) {
  return sin_pi((float)half_turns(fabsf(x), -0.5));
}

// a - n pi, in three steps that each lose nothing before they cancel (Cody & Waite), and its sine, negated where n is odd.
static inline float sin_near(float a, float n, int32_t odd) {
  float r = fma_f32(n, 0x1.ee59dap-49f, fma_f32(n, 0x1.777a5cp-24f, fma_f32(n, -0x1.921fb6p1f, a)));
  float s = r * r;
  float p = fma_f32(s, 0x1.5ca808p-19f, -0x1.9f5dbp-13f);
  p = fma_f32(s, p, 0x1.110e7ap-7f);
  p = fma_f32(s, p, -0x1.55554ap-3f);
  return as_float(as_int(fma_f32(r * s, p, r)) ^ (int32_t)((uint32_t)odd << 31));
}

// So near to 0 that single precision is enough? Only with one rounding for a * b + c.
static inline int is_near(float x) {
#if defined(__FP_FAST_FMAF) || defined(__FMA__)
  return fabsf(x) < 0x1p18f;
#else
  (void)x;
  return 0;
#endif
}

// As exact as 1.8 units of the last place where is_near(x).
static inline float near_sin(float x) {
  float a = fabsf(x), t = fma_f32(a, 0x1.45f306p-2f, 0x1.8p23f);
  return as_float(as_int(sin_near(a, t - 0x1.8p23f, as_int(t))) ^ (as_int(x) & INT32_MIN));
}

static inline float near_cos(float x) {
  float a = fabsf(x), t = fma_f32(a, 0x1.45f306p-2f, -0.5f) + 0x1.8p23f;
  return sin_near(a, t - 0x1.8p23f + 0.5f, ~as_int(t));
}

static inline int all_near(const float *x, long n) {
  int far = 0;
  for (long i = 0; i < n; i++) far |= !is_near(x[i]);
  return !far;
}

// The sine of n elements: three times as fast where all are near. What an element gives does not depend on the others.
static inline void sin_each_f32(float *y, const float *x, long n) {
  if (all_near(x, n)) {
#pragma GCC ivdep
    for (long i = 0; i < n; i++) y[i] = near_sin(x[i]);
  } else {
#pragma GCC ivdep
    for (long i = 0; i < n; i++) y[i] = is_near(x[i]) ? near_sin(x[i]) : sin_f32(x[i]);
  }
}

// The cosine of n elements.
static inline void cos_each_f32(float *y, const float *x, long n) {
  if (all_near(x, n)) {
#pragma GCC ivdep
    for (long i = 0; i < n; i++) y[i] = near_cos(x[i]);
  } else {
#pragma GCC ivdep
    for (long i = 0; i < n; i++) y[i] = is_near(x[i]) ? near_cos(x[i]) : cos_f32(x[i]);
  }
}

// 2^(y log2|x|) in double precision, then the signs and the special cases of C99's pow, F.9.4.4. 0.51 ulp.
static inline float pow_f32(float x, float y) {
  double a = fabsf(x);
  int64_t over = as_int64(a) - 0x3fe5555555555555;  // 2/3
  double m = as_double(as_int64(a) - (over & ~0xfffffffffffff));
  double s = (m - 1) / (m + 1), z = s * s;
  double p = fma_f64(z, 0x1.01279c0d74ab9p-2, 0x1.0aea0dcda8850p-2);
  p = fma_f64(z, p, 0x1.48570cb80799cp-2);
  p = fma_f64(z, p, 0x1.a617375404146p-2);
  p = fma_f64(z, p, 0x1.2776c53432553p-1);
  p = fma_f64(z, p, 0x1.ec709dc38856cp-1);
  p = fma_f64(z, p, 0x1.71547652b8308p1);
  double log2 = fma_f64(s, p, (double)(int32_t)(over >> 52));
  log2 = a == 0 ? -INFINITY : log2;
  log2 = a > 0x1.fffffep127 ? a : log2;
  double w = y * log2;
  w = w > 200 ? 200 : w;
  w = w < -200 ? -200 : w;
  double t = w + 0x1.8p52, r = w - (t - 0x1.8p52);
  double q = fma_f64(r, 0x1.61af3efedb39ep-20, 0x1.00db4f23a0c6dp-16);
  q = fma_f64(r, q, 0x1.430ace6a3cd5bp-13);
  q = fma_f64(r, q, 0x1.5d87477e9228ap-10);
  q = fma_f64(r, q, 0x1.3b2ab5c34a88ep-7);
  q = fma_f64(r, q, 0x1.c6b08dd50633cp-5);
  q = fma_f64(r, q, 0x1.ebfbdff933b67p-3);
  q = fma_f64(r, q, 0x1.62e42fef85d9dp-1);
  q = fma_f64(r, q, 0x1.ffffffffff78ep-1);
  float result = (float)(q * as_double((int64_t)(((uint64_t)as_int64(t) + 1023) << 52)));
  int whole = rintf(y) == y, odd = whole & (rintf(0.5f * y) != 0.5f * y);
  result = as_float(as_int(result) ^ (odd ? as_int(x) & INT32_MIN : 0));
  result = ((x < 0) & (x >= -0x1.fffffep127f) & !whole) ? NAN : result;
  result = ((x != x) | (y != y)) ? x + y : result;
  result = ((a == 1) & (fabsf(y) > 0x1.fffffep127f)) ? 1.0f : result;  // pow(-1, inf)
  return ((x == 1) | (y == 0)) ? 1.0f : result;
}

// The 32 partial sums of a reduction added up: the upper half of the lanes to the lower half, again and again.
static inline float join_add_f32(const float *lanes) {
#if defined(__clang__) || __GNUC__ >= 12
  typedef float vector __attribute__((vector_size(64), aligned(4), may_alias));
  vector a = *(const vector *)lanes + *(const vector *)(lanes + 16);
  a += __builtin_shufflevector(a, a, 8, 9, 10, 11, 12, 13, 14, 15, 8, 9, 10, 11, 12, 13, 14, 15);
  a += __builtin_shufflevector(a, a, 4, 5, 6, 7, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  a += __builtin_shufflevector(a, a, 2, 3, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  a += __builtin_shufflevector(a, a, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  return a[0];
#else
  float total = lanes[0];
  for (int lane = 1; lane < 32; lane++) total += lanes[lane];
  return total;
#endif
}

// One lane of a largest and of a smallest element. NaN loses every comparison, so it is looked for apart, in integers.
static inline float larger_f32(float a, float b) {
  return a > b ? a : b;
}

static inline float smaller_f32(float a, float b) {
  return a < b ? a : b;
}

// The bits of the largest magnitude so far: NaN's are above those of infinity, 0x7f800000.
static inline uint32_t magnitude_f32(uint32_t seen, float x) {
  uint32_t bits = (uint32_t)as_int(x) & 0x7fffffff;
  return bits > seen ? bits : seen;
}

// The largest of the 32 lanes of a reduction; NaN if one of their elements was NaN.
static inline float join_maximum_f32(const float *lanes, const uint32_t *magnitudes) {
  float found = lanes[0];
  uint32_t seen = magnitudes[0];
  for (int lane = 1; lane < 32; lane++) {
    found = larger_f32(found, lanes[lane]);
    seen = magnitudes[lane] > seen ? magnitudes[lane] : seen;
  }
  return seen > 0x7f800000 ? NAN : found;
}

// The smallest of the 32 lanes of a reduction; NaN if one of their elements was NaN.
static inline float join_minimum_f32(const float *lanes, const uint32_t *magnitudes) {
  float found = lanes[0];
  uint32_t seen = magnitudes[0];
  for (int lane = 1; lane < 32; lane++) {
    found = smaller_f32(found, lanes[lane]);
    seen = magnitudes[lane] > seen ? magnitudes[lane] : seen;
  }
  return seen > 0x7f800000 ? NAN : found;
}
