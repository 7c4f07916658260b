# The value that stands for a wider one is broadcast to its shape.
graph g(x: f32[3], s: f32[]) -> (a, b) {
  minus = const(-0.0) : f32[2,3]
  a = add(x, minus) : f32[2,3]
  yes = const(true) : bool[4]
  b = where(yes, s, s) : f32[4]
  return a = a, b = b
}
=>
graph g(x: f32[3], s: f32[]) -> (a, b) {
  minus = const(-0.0) : f32[2,3]
  a = broadcast_to(x) {shape=[2,3]} : f32[2,3]
  yes = const(true) : bool[4]
  b = broadcast_to(s) {shape=[4]} : f32[4]
  return a = a, b = b
}
# steps: add--0.0-float, where-true
