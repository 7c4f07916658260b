# Every output is live, not only the last.
graph g(x: f32[2]) -> (first, last) {
  a = exp(x) : f32[2]
  b = sin(x) : f32[2]
  c = cos(x) : f32[2]
  return first = a, last = c
}
=>
graph g(x: f32[2]) -> (first, last) {
  a = exp(x) : f32[2]
  c = cos(x) : f32[2]
  return first = a, last = c
}
# steps: dead
