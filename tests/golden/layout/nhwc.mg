# A network written for channels last, around a conv2d for channels first: only its ends are transposed.
graph net(x: f32[2,4,4,3], k1: f32[5,3,1,1], b1: f32[5], k2: f32[5,5,3,3], b2: f32[5], zero: f32[]) -> (out) {
  x1 = transpose(x) {perm=[0,3,1,2]} : f32[2,3,4,4]   # net.py:1
  c1 = conv2d(x1, k1) : f32[2,5,4,4]   # net.py:2
  y1 = transpose(c1) {perm=[0,2,3,1]} : f32[2,4,4,5]   # net.py:3
  a1 = add(y1, b1) : f32[2,4,4,5]   # net.py:4
  r1 = maximum(a1, zero) : f32[2,4,4,5]   # net.py:5
  p1 = pad(r1, zero) {high=[0,1,1,0], low=[0,1,1,0]} : f32[2,6,6,5]   # net.py:6
  x2 = transpose(p1) {perm=[0,3,1,2]} : f32[2,5,6,6]   # net.py:7
  c2 = conv2d(x2, k2) : f32[2,5,4,4]   # net.py:8
  y2 = transpose(c2) {perm=[0,2,3,1]} : f32[2,4,4,5]   # net.py:9
  a2 = add(y2, b2) : f32[2,4,4,5]   # net.py:10
  s2 = add(a2, r1) : f32[2,4,4,5]   # net.py:11
  r2 = maximum(s2, zero) : f32[2,4,4,5]   # net.py:12
  out = mean(r2) {axis=[1,2]} : f32[2,5]   # net.py:13
  return out = out
}
=>
graph net(x: f32[2,4,4,3], k1: f32[5,3,1,1], b1: f32[5], k2: f32[5,5,3,3], b2: f32[5], zero: f32[]) -> (out) {
  x1 = transpose(x) {perm=[0,3,1,2]} : f32[2,3,4,4]   # net.py:1
  c1 = conv2d(x1, k1) : f32[2,5,4,4]   # net.py:2
  a1.reshape = reshape(b1) {shape=[1,5,1,1]} : f32[1,5,1,1]   # net.py:4
  a1.add = add(c1, a1.reshape) : f32[2,5,4,4]   # net.py:4
  r1.maximum = maximum(a1.add, zero) : f32[2,5,4,4]   # net.py:5
  p1.pad = pad(r1.maximum, zero) {high=[0,0,1,1], low=[0,0,1,1]} : f32[2,5,6,6]   # net.py:6, net.py:7
  c2 = conv2d(p1.pad, k2) : f32[2,5,4,4]   # net.py:8
  a2.reshape = reshape(b2) {shape=[1,5,1,1]} : f32[1,5,1,1]   # net.py:10
  a2.add = add(c2, a2.reshape) : f32[2,5,4,4]   # net.py:10
  s2.add = add(a2.add, r1.maximum) : f32[2,5,4,4]   # net.py:11
  r2.maximum = maximum(s2.add, zero) : f32[2,5,4,4]   # net.py:12
  out = mean(r2.maximum) {axis=[2,3]} : f32[2,5]   # net.py:13
  return out = out
}
# steps: sink-elementwise, sink-layout, cancel-transposes, sink-reduction, dead
