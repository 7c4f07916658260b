# A value that is read twice sinks along both ways, and meets itself.
graph g(x: f32[2,3,4]) -> (out) {
  t = transpose(x) {perm=[0,2,1]} : f32[2,4,3]
  m = max(t) {axis=[-2], keepdims=true} : f32[2,1,3]
  s = sub(t, m) : f32[2,4,3]
  e = exp(s) : f32[2,4,3]
  d = sum(e) {axis=[-2], keepdims=true} : f32[2,1,3]
  p = div(e, d) : f32[2,4,3]
  out = transpose(p) {perm=[0,2,1]} : f32[2,3,4]
  return out = out
}
=>
graph g(x: f32[2,3,4]) -> (out) {
  m.max = max(x) {axis=[2], keepdims=true} : f32[2,3,1]
  m = reshape(m.max) {shape=[2,1,3]} : f32[2,1,3]
  s.reshape = reshape(m) {shape=[2,3,1]} : f32[2,3,1]
  s.sub = sub(x, s.reshape) : f32[2,3,4]
  e.exp = exp(s.sub) : f32[2,3,4]
  d.sum = sum(e.exp) {axis=[2], keepdims=true} : f32[2,3,1]
  d = reshape(d.sum) {shape=[2,1,3]} : f32[2,1,3]
  p.reshape = reshape(d) {shape=[2,3,1]} : f32[2,3,1]
  p.div = div(e.exp, p.reshape) : f32[2,3,4]
  return out = p.div
}
# steps: sink-reduction, sink-elementwise, cancel-transposes, dead
