# None of these is true of bits: x = -0.0, x = inf, x = nan are counterexamples.
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
  a = add(x, zero) : f32[3]
  b = mul(x, zero) : f32[3]
  c = sub(x, x) : f32[3]
  d = div(x, x) : f32[3]
  e = eq(x, x) : bool[3]
  return a = a, b = b, c = c, d = d, e = e
}
# steps: none
