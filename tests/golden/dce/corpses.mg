# What only dead values use is dead, too; inputs are the signature and stay.
graph g(x: f32[2], unused: f32[2]) -> (y) {
  a = exp(x) : f32[2]
  b = sin(a) : f32[2]
  c = add(b, unused) : f32[2]
  y = neg(x) : f32[2]
  return y = y
}
=>
graph g(x: f32[2], unused: f32[2]) -> (y) {
  y = neg(x) : f32[2]
  return y = y
}
# steps: dead
