# Splitting heads is read in place by the products; merging them needs the elements in another order.
graph g(x: f32[2,5,12], y: f32[2,5,12]) -> (out) {
  xs = reshape(x) {shape=[2,5,3,4]} : f32[2,5,3,4]
  q = transpose(xs) {perm=[0,2,1,3]} : f32[2,3,5,4]
  ys = reshape(y) {shape=[2,5,3,4]} : f32[2,5,3,4]
  k = transpose(ys) {perm=[0,2,1,3]} : f32[2,3,5,4]
  kt = transpose(k) {perm=[0,1,3,2]} : f32[2,3,4,5]
  s = matmul(q, kt) : f32[2,3,5,5]
  o = matmul(s, k) : f32[2,3,5,4]
  m = transpose(o) {perm=[0,2,1,3]} : f32[2,5,3,4]
  out = reshape(m) {shape=[2,5,12]} : f32[2,5,12]
  return out = out
}
=>
graph g(x: f32[2,5,12], y: f32[2,5,12]) -> (out) {
  xs = reshape(x) {shape=[2,5,3,4]} : f32[2,5,3,4]
  q = transpose(xs) {perm=[0,2,1,3]} : f32[2,3,5,4]
  ys = reshape(y) {shape=[2,5,3,4]} : f32[2,5,3,4]
  k = transpose(ys) {perm=[0,2,1,3]} : f32[2,3,5,4]
  s = matmul(q, k) {transpose_b=true} : f32[2,3,5,5]
  o = matmul(s, k) : f32[2,3,5,4]
  m = transpose(o) {perm=[0,2,1,3]} : f32[2,5,3,4]
  out = reshape(m) {shape=[2,5,12]} : f32[2,5,12]
  return out = out
}
# steps: compose-transposes, absorb-into-matmul, dead
