# Public names stay, whatever stands behind them: an input, one value twice, a constant.
graph g(x: f32[2]) -> (same, also, number) {
  minus = const(-0.0) : f32[]
  same_value = add(x, minus) : f32[2]
  n = neg(x) : f32[2]
  other = neg(n) : f32[2]
  two = const(2.0) : f32[]
  number = mul(two, two) : f32[]
  return same = same_value, also = other, number = number
}
=>
graph g(x: f32[2]) -> (same, also, number) {
  number = const(4.0) : f32[]
  return same = x, also = x, number = number
}
# steps: fold, add--0.0-float, neg-involution, dead
