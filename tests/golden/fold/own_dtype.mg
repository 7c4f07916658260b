# 512.25 is not a float16: folding in a wider dtype would store it.
graph g() -> (y, wrap) {
  a = const(512.0) : f16[]
  b = const(0.25) : f16[]
  y = add(a, b) : f16[]
  top = const(127) : i8[]
  one = const(1) : i8[]
  wrap = add(top, one) : i8[]
  return y = y, wrap = wrap
}
=>
graph g() -> (y, wrap) {
  a = const(512.0) : f16[]
  b = const(0.25) : f16[]
  y = const(512.0) : f16[]
  top = const(127) : i8[]
  one = const(1) : i8[]
  wrap = const(-128) : i8[]
  return y = y, wrap = wrap
}
# steps: fold
