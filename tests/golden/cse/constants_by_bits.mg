# 0.0 is not -0.0, and 1 is not true, nor 1 of another width; equal bits are one constant.
graph g(x: f32[2], i: i32[2]) -> (a, b, c) {
  zero = const(0.0) : f32[]
  minus = const(-0.0) : f32[]
  other = const(0.0) : f32[]
  one = const(1) : i32[]
  wide = const(1) : i64[]
  yes = const(true) : bool[]
  a = div(x, zero) : f32[2]
  b = div(x, minus) : f32[2]
  c = div(x, other) : f32[2]
  return a = a, b = b, c = c
}
=>
graph g(x: f32[2], i: i32[2]) -> (a, b, c) {
  zero = const(0.0) : f32[]
  minus = const(-0.0) : f32[]
  one = const(1) : i32[]
  wide = const(1) : i64[]
  yes = const(true) : bool[]
  a = div(x, zero) : f32[2]
  b = div(x, minus) : f32[2]
  return a = a, b = b, c = a
}
# steps: cse
