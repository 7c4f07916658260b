# A transpose that keeps all elements in order is a reshape: decode steps have one row, and batches of one are common.
graph g(x: f32[1,1,3,4], y: f32[4,1,3], z: f32[0,3]) -> (a, b, c, d) {
  a = transpose(x) {perm=[0,2,1,3]} : f32[1,3,1,4]
  b = transpose(y) {perm=[1,0,2]} : f32[1,4,3]
  c = transpose(y) {perm=[0,2,1]} : f32[4,3,1]
  d = transpose(z) {perm=[1,0]} : f32[3,0]
  return a = a, b = b, c = c, d = d
}
=>
graph g(x: f32[1,1,3,4], y: f32[4,1,3], z: f32[0,3]) -> (a, b, c, d) {
  a = reshape(x) {shape=[1,3,1,4]} : f32[1,3,1,4]
  b = reshape(y) {shape=[1,4,3]} : f32[1,4,3]
  c = reshape(y) {shape=[4,3,1]} : f32[4,3,1]
  d = reshape(z) {shape=[3,0]} : f32[3,0]
  return a = a, b = b, c = c, d = d
}
# steps: transpose-is-reshape
