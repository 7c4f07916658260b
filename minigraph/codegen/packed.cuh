/* Products of one packed row with one row of activations; the words of 16 rows are interleaved, see packed.h. */
static __device__ inline float from_half(unsigned int half) {
  union { unsigned int bits; float value; } wide;
  wide.bits = (half & 0x8000u) << 16 | (half & 0x7fffu) << 13;
  return wide.value * 5.192296858534828e33f;  // 2 to the 112: the exponents have different zeros
}

static __device__ inline float q4_1_row(const unsigned char *tile, int lane, const float *x, long long step, int blocks) {
  const unsigned int *word = (const unsigned int *)tile + lane;
  float total = 0;
  for (int b = 0; b < blocks; b++, word += 5 * 16) {
    float sum = 0, plain = 0;
    for (int i = 0; i < 16; i++) {
      const unsigned int byte = word[(1 + i / 4) * 16] >> i % 4 * 8 & 255;
      const float low = x[(b * 32 + i) * step], high = x[(b * 32 + i + 16) * step];
      sum += (float)(byte & 15) * low;
      sum += (float)(byte >> 4) * high;
      plain += low + high;
    }
    total += from_half(word[0] & 0xffff) * sum + from_half(word[0] >> 16) * plain;
  }
  return total;
}

static __device__ inline float q8_0_row(const unsigned char *tile, int lane, const float *x, long long step, int blocks) {
  float total = 0;
  for (int b = 0; b < blocks; b++, tile += 34 * 16) {
    const unsigned int *word = (const unsigned int *)(tile + 2 * 16) + lane;
    float sum = 0;
    for (int i = 0; i < 32; i++) sum += (float)(signed char)(word[i / 4 * 16] >> i % 4 * 8 & 255) * x[(b * 32 + i) * step];
    total += from_half(((const unsigned short *)tile)[lane]) * sum;
  }
  return total;
}
