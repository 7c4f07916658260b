# Constants meet where operations may be regrouped.
# fast: reassoc arcp
graph g(x: f32[3]) -> (a, b) {
  three = const(3.0) : f32[]
  seven = const(7.0) : f32[]
  t = div(x, three) : f32[3]
  a = div(t, seven) : f32[3]
  s = add(x, three) : f32[3]
  b = add(s, seven) : f32[3]
  return a = a, b = b
}
=>
graph g(x: f32[3]) -> (a, b) {
  three = const(3.0) : f32[]
  seven = const(7.0) : f32[]
  t.c = const(0.33333334) : f32[]
  t = mul(x, t.c) : f32[3]
  a.c = const(0.14285715) : f32[]
  a.c.1 = const(0.047619052) : f32[]
  a = mul(x, a.c.1) : f32[3]
  s = add(x, three) : f32[3]
  b.c = const(10.0) : f32[]
  b = add(x, b.c) : f32[3]
  return a = a, b = b
}
# steps: div-const, mul-mul, add-add
