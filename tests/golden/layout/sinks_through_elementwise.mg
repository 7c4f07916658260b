# Operands are transposed alike, or laid out alike for nothing: a number, a bias along one axis, a constant.
graph g(x: f32[2,3,4], y: f32[2,3,4], bias: f32[4]) -> (out) {
  two = const(2.0) : f32[]
  table = const([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]) : f32[2,4]
  tx = transpose(x) {perm=[1,0,2]} : f32[3,2,4]   # model.py:1
  ty = transpose(y) {perm=[1,0,2]} : f32[3,2,4]   # model.py:2
  a = mul(tx, two) : f32[3,2,4]   # model.py:3
  b = sub(a, ty) : f32[3,2,4]   # model.py:4
  c = add(b, bias) : f32[3,2,4]   # model.py:5
  d = add(c, table) : f32[3,2,4]   # model.py:6
  e = lt(d, tx) : bool[3,2,4]   # model.py:7
  f = where(e, d, tx) : f32[3,2,4]   # model.py:8
  out = transpose(f) {perm=[1,0,2]} : f32[2,3,4]   # model.py:9
  return out = out
}
=>
graph g(x: f32[2,3,4], y: f32[2,3,4], bias: f32[4]) -> (out) {
  two = const(2.0) : f32[]
  a.mul = mul(x, two) : f32[2,3,4]   # model.py:3
  b.sub = sub(a.mul, y) : f32[2,3,4]   # model.py:4
  c.add = add(b.sub, bias) : f32[2,3,4]   # model.py:5
  d.c = const([[[1.0, 2.0, 3.0, 4.0]], [[5.0, 6.0, 7.0, 8.0]]]) : f32[2,1,4]   # model.py:6
  d.add = add(c.add, d.c) : f32[2,3,4]   # model.py:6
  e.lt = lt(d.add, x) : bool[2,3,4]   # model.py:7
  f.where = where(e.lt, d.add, x) : f32[2,3,4]   # model.py:8, model.py:9
  return out = f.where
}
# steps: sink-elementwise, cancel-transposes, dead
