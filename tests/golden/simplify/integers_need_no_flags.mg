# Integers have one zero, no NaN, no infinity, and wrap around.
graph g(x: i32[3]) -> (a, b, c, d, e, f) {
  zero = const(0) : i32[]
  two = const(2) : i32[]
  big = const(2147483647) : i32[]
  a = add(x, zero) : i32[3]
  b = mul(x, zero) : i32[3]
  c = sub(x, x) : i32[3]
  d = eq(x, x) : bool[3]
  s = add(x, two) : i32[3]
  e = add(s, big) : i32[3]
  f = sub(zero, x) : i32[3]
  return a = a, b = b, c = c, d = d, e = e, f = f
}
=>
graph g(x: i32[3]) -> (a, b, c, d, e, f) {
  zero = const(0) : i32[]
  two = const(2) : i32[]
  big = const(2147483647) : i32[]
  b.c = const(0) : i32[]
  b = broadcast_to(b.c) {shape=[3]} : i32[3]
  c.c = const(0) : i32[]
  c = broadcast_to(c.c) {shape=[3]} : i32[3]
  d.c = const(true) : bool[]
  d = broadcast_to(d.c) {shape=[3]} : bool[3]
  s = add(x, two) : i32[3]
  e.c = const(-2147483647) : i32[]
  e = add(x, e.c) : i32[3]
  f = neg(x) : i32[3]
  return a = x, b = b, c = c, d = d, e = e, f = f
}
# steps: add-0-signed, mul-zero-int, sub-self-int, eq-self-int, add-add-int, zero-sub-int
