# What NumPy refuses is an error at run time, as it was.
graph g(x: i32[2]) -> (a, b) {
  base = const(2) : i32[]
  down = const(-1) : i32[]
  a = pow(base, down) : i32[]
  index = const(9) : i64[]
  table = const([1, 2, 3]) : i32[3]
  b = take(table, index) : i32[]
  return a = a, b = b
}
=>
graph g(x: i32[2]) -> (a, b) {
  base = const(2) : i32[]
  down = const(-1) : i32[]
  a = pow(base, down) : i32[]
  index = const(9) : i64[]
  table = const([1, 2, 3]) : i32[3]
  b = take(table, index) : i32[]
  return a = a, b = b
}
# steps: none
