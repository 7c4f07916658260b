# float32 holds every float16; a float64 does not hold every i64, and 300 as a u8 is clipped from float, wrapped from i32.
graph g(h: f16[2], i: i64[2], n: i32[2]) -> (a, b, c, d) {
  h32 = cast(h) {dtype=f32} : f32[2]
  a = cast(h32) {dtype=f16} : f16[2]
  i64f = cast(i) {dtype=f64} : f64[2]
  b = cast(i64f) {dtype=i64} : i64[2]
  n64 = cast(n) {dtype=f64} : f64[2]
  c = cast(n64) {dtype=u8} : u8[2]
  h64 = cast(h32) {dtype=f64} : f64[2]
  d = cast(h64) {dtype=i8} : i8[2]
  return a = a, b = b, c = c, d = d
}
=>
graph g(h: f16[2], i: i64[2], n: i32[2]) -> (a, b, c, d) {
  h32 = cast(h) {dtype=f32} : f32[2]
  i64f = cast(i) {dtype=f64} : f64[2]
  b = cast(i64f) {dtype=i64} : i64[2]
  n64 = cast(n) {dtype=f64} : f64[2]
  c = cast(n64) {dtype=u8} : u8[2]
  h64 = cast(h) {dtype=f64} : f64[2]
  d = cast(h) {dtype=i8} : i8[2]
  return a = h, b = b, c = c, d = d
}
# steps: cast-there-and-back, cast-cast
