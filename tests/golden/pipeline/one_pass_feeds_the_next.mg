# Folding makes a zero, the zero makes two equal expressions, merging them leaves corpses.
graph g(x: i32[4], y: i32[4]) -> (r) {
  one = const(1) : i32[]
  minus = const(-1) : i32[]
  zero = add(one, minus) : i32[]
  a = add(x, zero) : i32[4]
  p = mul(a, y) : i32[4]
  q = mul(y, x) : i32[4]
  d = sub(p, q) : i32[4]
  r = add(d, x) : i32[4]
  return r = r
}
=>
graph g(x: i32[4], y: i32[4]) -> (r) {
  return r = x
}
# steps: fold, add-0-signed, cse, dead, sub-self-int
