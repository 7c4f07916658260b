# -0.0, inf and nan are values like any other; the NaN that is stored is NumPy's own.
graph g() -> (a, b, c) {
  zero = const(0.0) : f32[]
  minus = const(-0.0) : f32[]
  a = mul(zero, minus) : f32[]
  one = const(1.0) : f32[]
  b = div(one, minus) : f32[]
  c = div(zero, zero) : f32[]
  return a = a, b = b, c = c
}
=>
graph g() -> (a, b, c) {
  zero = const(0.0) : f32[]
  minus = const(-0.0) : f32[]
  a = const(-0.0) : f32[]
  one = const(1.0) : f32[]
  b = const(-inf) : f32[]
  c = const(nan) : f32[]
  return a = a, b = b, c = c
}
# steps: fold
