# ((3 + 4) * x) + (5 * 0) in integers is 7 * x.
graph g(x: i32[4]) -> (y) {
  three = const(3) : i32[]
  four = const(4) : i32[]
  seven = add(three, four) : i32[]
  product = mul(seven, x) : i32[4]
  five = const(5) : i32[]
  zero = const(0) : i32[]
  nothing = mul(five, zero) : i32[]
  y = add(product, nothing) : i32[4]
  return y = y
}
=>
graph g(x: i32[4]) -> (y) {
  seven = const(7) : i32[]
  product = mul(seven, x) : i32[4]
  return y = product
}
# steps: fold, add-0-signed, cse, dead
