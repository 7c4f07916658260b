# A division by a power of two is a multiplication; by three it is not. A square is a product for a 0-d exponent only.
graph g(x: f32[3]) -> (a, b, c, d) {
  eight = const(8.0) : f32[]
  three = const(3.0) : f32[]
  two = const(2.0) : f32[]
  twos = const(2.0) : f32[3]
  a = div(x, eight) : f32[3]
  b = div(x, three) : f32[3]
  c = pow(x, two) : f32[3]
  d = pow(x, twos) : f32[3]
  return a = a, b = b, c = c, d = d
}
=>
graph g(x: f32[3]) -> (a, b, c, d) {
  eight = const(8.0) : f32[]
  three = const(3.0) : f32[]
  two = const(2.0) : f32[]
  twos = const(2.0) : f32[3]
  a.c = const(0.125) : f32[]
  a = mul(x, a.c) : f32[3]
  b = div(x, three) : f32[3]
  c = mul(x, x) : f32[3]
  d = pow(x, twos) : f32[3]
  return a = a, b = b, c = c, d = d
}
# steps: div-power-of-two, square
