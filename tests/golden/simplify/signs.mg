# Signs cancel exactly.
graph g(x: f32[3], y: f32[3]) -> (a, b, c, d, e) {
  nx = neg(x) : f32[3]   # model.py:1
  ny = neg(y) : f32[3]   # model.py:2
  a = add(x, ny) : f32[3]   # model.py:3
  b = sub(x, ny) : f32[3]   # model.py:4
  c = mul(nx, ny) : f32[3]   # model.py:5
  d = neg(nx) : f32[3]   # model.py:6
  e = abs(nx) : f32[3]   # model.py:7
  return a = a, b = b, c = c, d = d, e = e
}
=>
graph g(x: f32[3], y: f32[3]) -> (a, b, c, d, e) {
  nx = neg(x) : f32[3]   # model.py:1
  ny = neg(y) : f32[3]   # model.py:2
  a = sub(x, y) : f32[3]   # model.py:3
  b = add(x, y) : f32[3]   # model.py:4
  c = mul(x, y) : f32[3]   # model.py:5
  e = abs(x) : f32[3]   # model.py:7
  return a = a, b = b, c = c, d = x, e = e
}
# steps: add-neg, sub-neg, mul-neg-neg, neg-involution, abs-neg
