# ((3 + 4) * x) + (5 * 0) in float32: 5 * 0 folds; + 0.0 goes only where the sign of zero does not matter.
graph g(x: f32[4]) -> (y) {
  three = const(3.0) : f32[]
  four = const(4.0) : f32[]
  seven = add(three, four) : f32[]
  product = mul(seven, x) : f32[4]
  five = const(5.0) : f32[]
  zero = const(0.0) : f32[]
  nothing = mul(five, zero) : f32[]
  y = add(product, nothing) : f32[4]
  return y = y
}
=>
graph g(x: f32[4]) -> (y) {
  seven = const(7.0) : f32[]
  product = mul(seven, x) : f32[4]
  zero = const(0.0) : f32[]
  y = add(product, zero) : f32[4]
  return y = y
}
# steps: fold, cse, dead
