# A draw depends on the seed of the run, and a print is wanted even of a constant.
graph g() -> (y) {
  r = random() {shape=[2], site=3} : f32[2]
  c = const(1.0) : f32[]
  p = print(c) {label=before} : token[]
  d = add(c, c) : f32[]
  q = print(d, p) {label=after} : token[]
  y = add(r, d) : f32[2]
  return y = y
}
=>
graph g() -> (y) {
  r = random() {shape=[2], site=3} : f32[2]
  c = const(1.0) : f32[]
  p = print(c) {label=before} : token[]
  d = const(2.0) : f32[]
  q = print(d, p) {label=after} : token[]
  y = add(r, d) : f32[2]
  return y = y
}
# steps: fold
