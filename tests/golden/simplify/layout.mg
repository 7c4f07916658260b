# Layout operations that do nothing.
graph g(x: f32[2,3]) -> (a, b, c, d) {
  same = reshape(x) {shape=[2,3]} : f32[2,3]
  a = transpose(same) {perm=[0,1]} : f32[2,3]
  flat = reshape(x) {shape=[6]} : f32[6]
  b = reshape(flat) {shape=[3,2]} : f32[3,2]
  c = slice(x) {start=[0,0], stop=[2,3]} : f32[2,3]
  one = concat(x) {axis=0} : f32[2,3]
  row = broadcast_to(one) {shape=[1,2,3]} : f32[1,2,3]
  d = broadcast_to(row) {shape=[4,2,3]} : f32[4,2,3]
  return a = a, b = b, c = c, d = d
}
=>
graph g(x: f32[2,3]) -> (a, b, c, d) {
  flat = reshape(x) {shape=[6]} : f32[6]
  b = reshape(x) {shape=[3,2]} : f32[3,2]
  row = broadcast_to(x) {shape=[1,2,3]} : f32[1,2,3]
  d = broadcast_to(x) {shape=[4,2,3]} : f32[4,2,3]
  return a = x, b = b, c = x, d = d
}
# steps: reshape-same, transpose-identity, reshape-reshape, slice-all, concat-one, broadcast-broadcast
