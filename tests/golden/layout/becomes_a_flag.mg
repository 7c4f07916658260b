# The last two axes of an operand, of a batch too, and the other way round where the flag was set.
graph g(x: f32[2,3], w: f32[5,3], q: f32[2,7,3,4], k: f32[2,5,7,4], v: f32[3]) -> (a, b, c, d, e) {
  wt = transpose(w) {perm=[1,0]} : f32[3,5]
  xt = transpose(x) {perm=[1,0]} : f32[3,2]
  a = matmul(x, wt) : f32[2,5]
  b = matmul(xt, wt) {transpose_a=true} : f32[2,5]
  c = matmul(wt, x) {transpose_a=true, transpose_b=true} : f32[5,2]
  heads = transpose(k) {perm=[0,2,1,3]} : f32[2,7,5,4]
  kt = transpose(heads) {perm=[0,1,3,2]} : f32[2,7,4,5]
  d = matmul(q, kt) : f32[2,7,3,5]
  e = matmul(v, wt) : f32[5]
  return a = a, b = b, c = c, d = d, e = e
}
=>
graph g(x: f32[2,3], w: f32[5,3], q: f32[2,7,3,4], k: f32[2,5,7,4], v: f32[3]) -> (a, b, c, d, e) {
  a = matmul(x, w) {transpose_b=true} : f32[2,5]
  b = matmul(x, w) {transpose_b=true} : f32[2,5]
  c = matmul(w, x) {transpose_b=true} : f32[5,2]
  heads = transpose(k) {perm=[0,2,1,3]} : f32[2,7,5,4]
  d = matmul(q, heads) {transpose_b=true} : f32[2,7,3,5]
  e = matmul(v, w) {transpose_b=true} : f32[5]
  return a = a, b = b, c = c, d = d, e = e
}
# steps: absorb-into-matmul, compose-transposes, dead
