# Two draws are two draws, even from one site; two prints are two prints.
graph g(x: f32[2]) -> (y) {
  r1 = random() {shape=[2], site=0} : f32[2]
  r2 = random() {shape=[2], site=0} : f32[2]
  p1 = print(x) : token[]
  p2 = print(x, p1) : token[]
  y = sub(r1, r2) : f32[2]
  return y = y
}
=>
graph g(x: f32[2]) -> (y) {
  r1 = random() {shape=[2], site=0} : f32[2]
  r2 = random() {shape=[2], site=0} : f32[2]
  p1 = print(x) : token[]
  p2 = print(x, p1) : token[]
  y = sub(r1, r2) : f32[2]
  return y = y
}
# steps: none
