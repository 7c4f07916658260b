/* Products of packed rows with one row of activations, 16 rows at a time: the words of 16 rows are interleaved, so a
   vector's lanes are rows. Vector types of GCC and Clang; other compilers take the plain loops below.

   q4_1: a block of 32 weights is 5 words: scale and offset as float16, then 32 nibbles; byte j holds weight j (low
   half) and j + 16 (high half). q8_0: a float16 scale, then 8 words of 4 int8. A tile is read from its first byte to
   its last without a gap, for at each gap the processor would have to find out anew what to read ahead.

   Whole numbers are summed before the scale is multiplied, so activations beyond 2^115 (4e34), which no model has, may
   overflow to infinity or NaN where the scaled weights would not. */
enum { TILE = 16 };

#if defined(__GNUC__) && !defined(PLAIN)
#define VECTORS 1
typedef float floats __attribute__((vector_size(4 * TILE), aligned(4), may_alias));
typedef int32_t words __attribute__((vector_size(4 * TILE), aligned(4), may_alias));
typedef uint32_t uwords __attribute__((vector_size(4 * TILE), aligned(4), may_alias));
typedef int16_t halves __attribute__((vector_size(2 * TILE), aligned(2), may_alias));
#define FLOATS(v) __builtin_convertvector((v), floats)

/* In these two functions a product and its sum are one instruction with one rounding, where the processor has it: the
   arithmetic takes longer than the reading otherwise. Not inlined, so that they round alike wherever they are called. */
#ifdef __clang__
#pragma STDC FP_CONTRACT ON
#define FUSED __attribute__((noinline))
#else
#define FUSED __attribute__((noinline, optimize("fp-contract=fast")))
#endif

/* A float16 in the upper half of a word: its sign, exponent and fraction move to where float32 has them, and
   2^112 makes up for the exponents' different zero. Exact for every finite float16, subnormal ones too. */
#define FROM_HALF(h) ((floats)(((h) >> 3) & (int32_t)0x8fffe000u) * 0x1p112f)

FUSED static void q4_1_tile(const uint8_t *tile, const float *x, int blocks, float *y) {
  const int32_t *w = (const int32_t *)tile;
  floats scaled = {0}, offsets = {0};
  for (int b = 0; b < blocks; b++, w += 5 * TILE, x += 33) {
    const words *word = (const words *)w;
    floats sum0 = {0}, sum1 = {0}, sum2 = {0}, sum3 = {0};
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
      const words q = word[1 + i];
      const float *z = x + 8 * i;
      sum0 += FLOATS(q & 0xf) * z[0];
      sum1 += FLOATS(q & 0xf0) * z[1];
      sum2 += FLOATS(q & 0xf00) * z[2];
      sum3 += FLOATS(q & 0xf000) * z[3];
      sum0 += FLOATS(q & 0xf0000) * z[4];
      sum1 += FLOATS(q & 0xf00000) * z[5];
      sum2 += FLOATS(q & 0xf000000) * z[6];
      sum3 += FLOATS((words)((uwords)q >> 28)) * z[7];
    }
    scaled += FROM_HALF(word[0] << 16) * ((sum0 + sum1) + (sum2 + sum3));
    offsets += FROM_HALF(word[0]) * x[32];
  }
  *(floats *)y = scaled + offsets;
}

FUSED static void q8_0_tile(const uint8_t *tile, const float *x, int blocks, float *y) {
  const int32_t top = (int32_t)0xff000000u;
  floats total = {0};
  for (int b = 0; b < blocks; b++, tile += 34 * TILE, x += 32) {
    const words scale = __builtin_convertvector(*(const halves *)tile, words) << 16;
    const words *word = (const words *)(tile + 2 * TILE);
    floats sum0 = {0}, sum1 = {0}, sum2 = {0}, sum3 = {0};
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) {
      const words q = word[i];
      const float *z = x + 4 * i;
      sum0 += FLOATS(q << 24) * z[0];
      sum1 += FLOATS((q << 16) & top) * z[1];
      sum2 += FLOATS((q << 8) & top) * z[2];
      sum3 += FLOATS(q & top) * z[3];
    }
    total += FROM_HALF(scale) * ((sum0 + sum1) + (sum2 + sum3));
  }
  *(floats *)y = total;
}
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif
#else
/* The same in loops over the rows of a tile, for compilers without vector types; GCC and Clang vectorize them. */
static inline float from_half(uint32_t h) {
  union { uint32_t bits; float value; } u = {((uint32_t)((int32_t)h >> 3)) & 0x8fffe000u};
  return u.value * 0x1p112f;
}

static inline void q4_1_tile(const uint8_t *tile, const float *x, int blocks, float *y) {
  const int32_t *w = (const int32_t *)tile;
  float total[TILE] = {0};
  for (int b = 0; b < blocks; b++, w += 5 * TILE, x += 33) {
    float even[TILE] = {0}, odd[TILE] = {0};
    for (int i = 0; i < 4; i++)
      for (int r = 0; r < TILE; r++) {
        const uint32_t q = (uint32_t)w[(1 + i) * TILE + r];
        const float *z = x + 8 * i;
        even[r] += (float)(int32_t)(q & 0xf) * z[0] + (float)(int32_t)(q & 0xf00) * z[2] +
                   (float)(int32_t)(q & 0xf0000) * z[4] + (float)(int32_t)(q & 0xf000000) * z[6];
        odd[r] += (float)(int32_t)(q & 0xf0) * z[1] + (float)(int32_t)(q & 0xf000) * z[3] +
                  (float)(int32_t)(q & 0xf00000) * z[5] + (float)(int32_t)(q >> 28) * z[7];
      }
    for (int r = 0; r < TILE; r++)
      total[r] += from_half((uint32_t)w[r] << 16) * (even[r] + odd[r]) + from_half((uint32_t)w[r]) * x[32];
  }
  for (int r = 0; r < TILE; r++) y[r] = total[r];
}

static inline void q8_0_tile(const uint8_t *tile, const float *x, int blocks, float *y) {
  float total[TILE] = {0};
  for (int b = 0; b < blocks; b++, tile += 34 * TILE, x += 32) {
    const int16_t *scales = (const int16_t *)tile;
    const int32_t *w = (const int32_t *)(tile + 2 * TILE);
    float sum[TILE] = {0};
    for (int i = 0; i < 8; i++)
      for (int r = 0; r < TILE; r++) {
        const uint32_t q = (uint32_t)w[i * TILE + r], top = 0xff000000u;
        const float *z = x + 4 * i;
        sum[r] += (float)(int32_t)(q << 24) * z[0] + (float)(int32_t)((q << 16) & top) * z[1] +
                  (float)(int32_t)((q << 8) & top) * z[2] + (float)(int32_t)(q & top) * z[3];
      }
    for (int r = 0; r < TILE; r++) total[r] += from_half((uint32_t)(int32_t)scales[r] << 16) * sum[r];
  }
  for (int r = 0; r < TILE; r++) y[r] = total[r];
}
#endif

/* x in the order in which the kernels use it. Q4_1: 33 floats a block: the 32 inputs in the order of the nibbles,
   nibble k of a word times 16^-k (its mask leaves the number 16^k times too large; the powers of 2 are exact),
   then their sum, for the minimum. */
static inline void q4_1_inputs(const float *x, long step, int blocks, float *out) {
  for (int b = 0; b < blocks; b++, x += 32 * step, out += 33) {
    float sum = 0;
    for (int i = 0; i < 4; i++)
      for (int k = 0; k < 8; k++) {
        static const float power[8] = {1, 0x1p-4f, 0x1p-8f, 0x1p-12f, 0x1p-16f, 0x1p-20f, 0x1p-24f, 1};
        const float value = x[(4 * i + k / 2 + k % 2 * 16) * step];
        sum += value;
        out[8 * i + k] = value * power[k];
      }
    out[32] = sum;
  }
}
static inline void q8_0_inputs(const float *x, long step, int blocks, float *out) {
  for (int i = 0; i < 32 * blocks; i++) out[i] = x[i * step] * 0x1p-24f;
}
