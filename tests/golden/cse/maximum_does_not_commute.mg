# maximum(0.0, -0.0) and maximum(-0.0, 0.0) differ.
graph g(a: f32[3], b: f32[3]) -> (p, q, r) {
  p = maximum(a, b) : f32[3]
  q = maximum(b, a) : f32[3]
  r = maximum(a, b) : f32[3]
  return p = p, q = q, r = r
}
=>
graph g(a: f32[3], b: f32[3]) -> (p, q, r) {
  p = maximum(a, b) : f32[3]
  q = maximum(b, a) : f32[3]
  return p = p, q = q, r = p
}
# steps: cse
