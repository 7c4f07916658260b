# Operations that know axes by number, or have a number for each.
graph g(x: f32[2,3,4], y: f32[1,3,4], n: f32[], at: i32[]) -> (a, b) {
  tx = transpose(x) {perm=[2,0,1]} : f32[4,2,3]
  ty = transpose(y) {perm=[2,0,1]} : f32[4,1,3]
  c = concat(tx, ty) {axis=-2} : f32[4,3,3]
  p = pad(c, n) {high=[0,1,2], low=[3,0,1]} : f32[7,4,6]
  s = slice(p) {start=[0,3,4], step=[2,-1,-2], stop=[7,0,-1]} : f32[4,3,3]
  a = transpose(s) {perm=[1,2,0]} : f32[3,3,4]
  u = update_slice(tx, tx, at) {axis=-1} : f32[4,2,3]
  w = broadcast_to(u) {shape=[5,4,2,3]} : f32[5,4,2,3]
  b = transpose(w) {perm=[0,2,3,1]} : f32[5,2,3,4]
  return a = a, b = b
}
=>
graph g(x: f32[2,3,4], y: f32[1,3,4], n: f32[], at: i32[]) -> (a, b) {
  c.concat = concat(x, y) {axis=0} : f32[3,3,4]
  p.pad = pad(c.concat, n) {high=[1,2,0], low=[0,1,3]} : f32[4,6,7]
  s.slice = slice(p.pad) {start=[3,4,0], step=[-1,-2,2], stop=[0,-1,7]} : f32[3,3,4]
  u.update_slice = update_slice(x, x, at) {axis=1} : f32[2,3,4]
  w.broadcast_to = broadcast_to(u.update_slice) {shape=[5,2,3,4]} : f32[5,2,3,4]
  return a = s.slice, b = w.broadcast_to
}
# steps: sink-layout, cancel-transposes, dead
