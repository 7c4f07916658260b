# One small transpose instead of two, or of a larger one; and one that only other transposes would replace.
graph g(x: f32[3,4], y: f32[3,4], z: f32[4,3], h: f16[3,4]) -> (a, b, wide, c, d) {
  t = transpose(x) {perm=[1,0]} : f32[4,3]
  a = exp(t) : f32[4,3]
  b = sin(t) : f32[4,3]
  th = transpose(h) {perm=[1,0]} : f16[4,3]
  wide = cast(th) {dtype=f64} : f64[4,3]
  ty = transpose(y) {perm=[1,0]} : f32[4,3]
  c = add(ty, z) : f32[4,3]
  d = neg(ty) : f32[4,3]
  return a = a, b = b, wide = wide, c = c, d = d
}
=>
graph g(x: f32[3,4], y: f32[3,4], z: f32[4,3], h: f16[3,4]) -> (a, b, wide, c, d) {
  t = transpose(x) {perm=[1,0]} : f32[4,3]
  a = exp(t) : f32[4,3]
  b = sin(t) : f32[4,3]
  th = transpose(h) {perm=[1,0]} : f16[4,3]
  wide = cast(th) {dtype=f64} : f64[4,3]
  ty = transpose(y) {perm=[1,0]} : f32[4,3]
  c = add(ty, z) : f32[4,3]
  d = neg(ty) : f32[4,3]
  return a = a, b = b, wide = wide, c = c, d = d
}
# steps: none
