/* Products of sparse rows with one row of activations, 16 rows at a time, see sparse.py: a vector's lanes are rows.
   Vector types of GCC where there are registers of 512 bits; elsewhere the plain loops, which compilers vectorize. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__AVX512F__) && !defined(PLAIN)
typedef float lanes __attribute__((vector_size(64), aligned(4), may_alias));
typedef int32_t picks __attribute__((vector_size(64), aligned(4), may_alias));

/* A shuffle reads the low 4 bits of each index: 2 of them are the place in the group, and the other two, which belong
   to the next value, choose among 4 copies of the group. So the words need a shift a value, and no mask. */
static inline void two_of_four(const float *values, const uint32_t *indices, const float *x, int words, float *y) {
  lanes even = {0}, odd = {0};
  for (int w = 0; w < words; w++, values += 256, indices += 16, x += 32) {
    picks pick = *(const picks *)indices;
#pragma GCC unroll 8
    for (int g = 0; g < 8; g++) {
      const float a = x[4 * g], b = x[4 * g + 1], c = x[4 * g + 2], d = x[4 * g + 3];
      const lanes group = {a, b, c, d, a, b, c, d, a, b, c, d, a, b, c, d};
      even += __builtin_shuffle(group, pick) * *(const lanes *)(values + 32 * g);
      odd += __builtin_shuffle(group, pick >> 2) * *(const lanes *)(values + 32 * g + 16);
      pick >>= 4;
    }
  }
  *(lanes *)y = even + odd;
}

static inline void some_blocks(const float *values, const int32_t *indices, int first, int end, const float *x,
                               int columns, float *y) {
  lanes even = {0}, odd = {0};
  for (int e = first; e < end; e++) {
    const float *block = values + (long)e * columns * 16, *z = x + (long)indices[e] * columns;
    int c = 0;
    for (; c + 1 < columns; c += 2) {
      even += *(const lanes *)(block + 16 * c) * z[c];
      odd += *(const lanes *)(block + 16 * c + 16) * z[c + 1];
    }
    if (c < columns) even += *(const lanes *)(block + 16 * c) * z[c];
  }
  *(lanes *)y = even + odd;
}
#else
static inline void two_of_four(const float *values, const uint32_t *indices, const float *x, int words, float *y) {
  float total[16] = {0};
  for (int w = 0; w < words; w++, values += 256, indices += 16, x += 32)
    for (int k = 0; k < 16; k++)
      for (int r = 0; r < 16; r++) total[r] += x[k / 2 * 4 + (indices[r] >> 2 * k & 3)] * values[16 * k + r];
  for (int r = 0; r < 16; r++) y[r] = total[r];
}

static inline void some_blocks(const float *values, const int32_t *indices, int first, int end, const float *x,
                               int columns, float *y) {
  float total[16] = {0};
  for (int e = first; e < end; e++)
    for (int c = 0; c < columns; c++)
      for (int r = 0; r < 16; r++)
        total[r] += values[((long)e * columns + c) * 16 + r] * x[(long)indices[e] * columns + c];
  for (int r = 0; r < 16; r++) y[r] = total[r];
}
#endif

/* Does an index lead outside? Asked once, before anything is read. */
static inline int bad_blocks(const int32_t *indices, const int32_t *starts, long tiles, int count, int across) {
  int bad = starts[0] < 0 || starts[tiles] > count;
  for (long t = 0; t < tiles; t++) bad |= starts[t] > starts[t + 1];
  if (bad) return 1;
  for (int e = starts[0]; e < starts[tiles]; e++) bad |= (uint32_t)indices[e] >= (uint32_t)across;
  return bad;
}
