# 3 + 4 is computed once, in the node's own dtype; what reads an input stays.
graph g(x: f32[3]) -> (y) {
  three = const(3.0) : f32[]   # model.py:1
  four = const(4.0) : f32[]   # model.py:2
  seven = add(three, four) : f32[]   # model.py:3
  y = mul(seven, x) : f32[3]   # model.py:4
  return y = y
}
=>
graph g(x: f32[3]) -> (y) {
  three = const(3.0) : f32[]   # model.py:1
  four = const(4.0) : f32[]   # model.py:2
  seven = const(7.0) : f32[]   # model.py:3
  y = mul(seven, x) : f32[3]   # model.py:4
  return y = y
}
# steps: fold
