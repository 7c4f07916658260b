# On a square matrix, sums over different axes have one type; they are two values.
graph g(x: f32[3,3]) -> (a, b, c) {
  a = sum(x) {axis=[0]} : f32[3]
  b = sum(x) {axis=[1]} : f32[3]
  c = sum(x) {axis=[0]} : f32[3]
  return a = a, b = b, c = c
}
=>
graph g(x: f32[3,3]) -> (a, b, c) {
  a = sum(x) {axis=[0]} : f32[3]
  b = sum(x) {axis=[1]} : f32[3]
  return a = a, b = b, c = a
}
# steps: cse
