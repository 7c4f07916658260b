# An effect is live by itself, and so is what it reads.
graph g(x: f32[2]) -> (y) {
  a = exp(x) : f32[2]
  p = print(a) {label=a} : token[]
  b = log(x) : f32[2]
  c = assert_finite(b, p) : token[]
  d = tanh(b) : f32[2]
  y = neg(x) : f32[2]
  return y = y
}
=>
graph g(x: f32[2]) -> (y) {
  a = exp(x) : f32[2]
  p = print(a) {label=a} : token[]
  b = log(x) : f32[2]
  c = assert_finite(b, p) : token[]
  y = neg(x) : f32[2]
  return y = y
}
# steps: dead
