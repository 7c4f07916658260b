# Axis i of transpose(transpose(x, p), q) is axis p[q[i]] of x: only p after its inverse cancels, not p after p.
graph g(x: f32[3,3,3], w: f32[2,3,4]) -> (back, twice, both, read) {
  p = transpose(x) {perm=[1,2,0]} : f32[3,3,3]   # model.py:1
  back = transpose(p) {perm=[2,0,1]} : f32[3,3,3]   # model.py:2
  twice = transpose(p) {perm=[1,2,0]} : f32[3,3,3]   # model.py:3
  a = transpose(w) {perm=[2,0,1]} : f32[4,2,3]   # model.py:4
  both = transpose(a) {perm=[0,2,1]} : f32[4,3,2]   # model.py:5
  read = reshape(a) {shape=[24]} : f32[24]   # model.py:6
  return back = back, twice = twice, both = both, read = read
}
=>
graph g(x: f32[3,3,3], w: f32[2,3,4]) -> (back, twice, both, read) {
  twice = transpose(x) {perm=[2,0,1]} : f32[3,3,3]   # model.py:3
  a = transpose(w) {perm=[2,0,1]} : f32[4,2,3]   # model.py:4
  both = transpose(w) {perm=[2,1,0]} : f32[4,3,2]   # model.py:5
  read = reshape(a) {shape=[24]} : f32[24]   # model.py:6
  return back = x, twice = twice, both = both, read = read
}
# steps: cancel-transposes, compose-transposes, dead
