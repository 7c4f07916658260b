# The course's first graph: a = 2, b = 3, c = a + b, d = c * x, e = sin(d), f = exp(e), g = f + c, h = g * y.
graph a4(x: f32[], y: f32[]) -> (h) {
  a = const(2.0) : f32[]   # document:1
  b = const(3.0) : f32[]   # document:2
  c = add(a, b) : f32[]   # document:3
  d = mul(c, x) : f32[]   # document:4
  e = sin(d) : f32[]   # document:5
  f = exp(e) : f32[]   # document:6
  g = add(f, c) : f32[]   # document:7
  h = mul(g, y) : f32[]   # document:8
  return h = h
}
=>
graph a4(x: f32[], y: f32[]) -> (h) {
  c = const(5.0) : f32[]   # document:3
  d = mul(c, x) : f32[]   # document:4
  e = sin(d) : f32[]   # document:5
  f = exp(e) : f32[]   # document:6
  g = add(f, c) : f32[]   # document:7
  h = mul(g, y) : f32[]   # document:8
  return h = h
}
# steps: fold, dead
