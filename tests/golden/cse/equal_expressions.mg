# Equal expressions of any depth merge in one walk; a + b is b + a, a - b is not b - a.
graph g(a: f32[3], b: f32[3]) -> (p, q) {
  s1 = add(a, b) : f32[3]   # model.py:1
  s2 = add(b, a) : f32[3]   # model.py:2
  t1 = exp(s1) : f32[3]   # model.py:3
  t2 = exp(s2) : f32[3]   # model.py:4
  d1 = sub(a, b) : f32[3]   # model.py:5
  d2 = sub(b, a) : f32[3]   # model.py:6
  p = mul(t1, d1) : f32[3]   # model.py:7
  q = mul(t2, d2) : f32[3]   # model.py:8
  return p = p, q = q
}
=>
graph g(a: f32[3], b: f32[3]) -> (p, q) {
  s1 = add(a, b) : f32[3]   # model.py:1, model.py:2
  t1 = exp(s1) : f32[3]   # model.py:3, model.py:4
  d1 = sub(a, b) : f32[3]   # model.py:5
  d2 = sub(b, a) : f32[3]   # model.py:6
  p = mul(t1, d1) : f32[3]   # model.py:7
  q = mul(t1, d2) : f32[3]   # model.py:8
  return p = p, q = q
}
# steps: cse
