/* Products of one sparse row with one row of activations, a thread a row; 16 rows are interleaved, see sparse.py. */
static __device__ inline float two_of_four(const float *values, const unsigned int *indices, const float *x,
                                           long long step, int words) {
  float total = 0;
  for (int w = 0; w < words; w++)
    for (int k = 0; k < 16; k++)
      total += x[(w * 32 + k / 2 * 4 + (indices[w * 16] >> 2 * k & 3)) * step] * values[(w * 16 + k) * 16];
  return total;
}

static __device__ inline float some_blocks(const float *values, const int *indices, int first, int end, int lane,
                                           const float *x, long long step, int columns) {
  float total = 0;
  for (int e = first; e < end; e++)
    for (int c = 0; c < columns; c++)
      total += values[((long long)e * columns + c) * 16 + lane] * x[((long long)indices[e] * columns + c) * step];
  return total;
}

/* Does an index of these blocks lead outside? Each thread asks for its own tile, before it reads. */
static __device__ inline int bad_blocks(const int *indices, int first, int end, int count, int across) {
  if (first < 0 || end > count || first > end) return 1;
  int bad = 0;
  for (int e = first; e < end; e++) bad |= (unsigned int)indices[e] >= (unsigned int)across;
  return bad;
}
