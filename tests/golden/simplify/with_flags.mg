# The same graph, where NaNs, infinities and the sign of zero do not matter.
# fast: nnan ninf nsz
graph g(x: f32[3]) -> (a, b, c, d, e) {
  zero = const(0.0) : f32[]
  a = add(x, zero) : f32[3]
  b = mul(x, zero) : f32[3]
  c = sub(x, x) : f32[3]
  d = div(x, x) : f32[3]
  e = eq(x, x) : bool[3]
  return a = a, b = b, c = c, d = d, e = e
}
=>
graph g(x: f32[3]) -> (a, b, c, d, e) {
  zero = const(0.0) : f32[]
  b.c = const(0.0) : f32[]
  b = broadcast_to(b.c) {shape=[3]} : f32[3]
  c.c = const(0.0) : f32[]
  c = broadcast_to(c.c) {shape=[3]} : f32[3]
  d.c = const(1.0) : f32[]
  d = broadcast_to(d.c) {shape=[3]} : f32[3]
  e = eq(x, x) : bool[3]
  return a = x, b = b, c = c, d = d, e = e
}
# steps: add-zero, mul-zero, sub-self, div-self
