# The transpose of a product is a product, if nobody else needs it as it was.
graph g(w: f32[5,3], x: f32[7,2,3]) -> (out, both, all) {
  xt = transpose(x) {perm=[0,2,1]} : f32[7,3,2]
  y = matmul(w, xt) : f32[7,5,2]
  out = transpose(y) {perm=[0,2,1]} : f32[7,2,5]
  z = matmul(x, w) {transpose_b=true} : f32[7,2,5]
  both = transpose(z) {perm=[0,2,1]} : f32[7,5,2]
  all = exp(z) : f32[7,2,5]
  return out = out, both = both, all = all
}
=>
graph g(w: f32[5,3], x: f32[7,2,3]) -> (out, both, all) {
  out = matmul(x, w) {transpose_b=true} : f32[7,2,5]
  z = matmul(x, w) {transpose_b=true} : f32[7,2,5]
  both = transpose(z) {perm=[0,2,1]} : f32[7,5,2]
  all = exp(z) : f32[7,2,5]
  return out = out, both = both, all = all
}
# steps: absorb-into-matmul, transposed-product, dead
