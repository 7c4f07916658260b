# To the bit, for -0.0 and NaN too: the identity of float addition is -0.0.
graph g(x: f32[3]) -> (a, b, c, d, e) {
  minus = const(-0.0) : f32[]
  zero = const(0.0) : f32[]
  one = const(1.0) : f32[]
  low = const(-inf) : f32[]
  a = add(minus, x) : f32[3]
  b = sub(x, zero) : f32[3]
  c = mul(one, x) : f32[3]
  d = div(x, one) : f32[3]
  e = maximum(x, low) : f32[3]
  return a = a, b = b, c = c, d = d, e = e
}
=>
graph g(x: f32[3]) -> (a, b, c, d, e) {
  minus = const(-0.0) : f32[]
  zero = const(0.0) : f32[]
  one = const(1.0) : f32[]
  low = const(-inf) : f32[]
  return a = x, b = x, c = x, d = x, e = x
}
# steps: add--0.0-float, sub-0.0-float, mul-1-float, div-1-float, maximum--inf-float
