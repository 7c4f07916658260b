# Axes are renumbered, negative ones too; what is left to transpose has fewer elements, or is a reshape, or nothing.
graph g(x: f32[2,3,4], y: f32[9,3,4]) -> (whole, rows, kept, gone, best, run) {
  t = transpose(x) {perm=[2,0,1]} : f32[4,2,3]
  whole = sum(t) {axis=[0,1,2]} : f32[]
  rows = sum(t) {axis=[-1]} : f32[4,2]
  kept = max(t) {axis=[-3], keepdims=true} : f32[1,2,3]
  gone = mean(t) {axis=[0,-1]} : f32[2]
  ty = transpose(y) {perm=[2,0,1]} : f32[4,9,3]
  best = argmax(ty) {axis=-2} : i64[4,3]
  scan = cumsum(t) {axis=-1} : f32[4,2,3]
  run = transpose(scan) {perm=[1,2,0]} : f32[2,3,4]
  return whole = whole, rows = rows, kept = kept, gone = gone, best = best, run = run
}
=>
graph g(x: f32[2,3,4], y: f32[9,3,4]) -> (whole, rows, kept, gone, best, run) {
  whole = sum(x) {axis=[0,1,2]} : f32[]
  rows.sum = sum(x) {axis=[1]} : f32[2,4]
  rows = transpose(rows.sum) {perm=[1,0]} : f32[4,2]
  kept.max = max(x) {axis=[2], keepdims=true} : f32[2,3,1]
  kept = reshape(kept.max) {shape=[1,2,3]} : f32[1,2,3]
  gone = mean(x) {axis=[1,2]} : f32[2]
  best.argmax = argmax(y) {axis=0} : i64[3,4]
  best = transpose(best.argmax) {perm=[1,0]} : i64[4,3]
  scan.cumsum = cumsum(x) {axis=1} : f32[2,3,4]
  return whole = whole, rows = rows, kept = kept, gone = gone, best = best, run = scan.cumsum
}
# steps: sink-reduction, cancel-transposes, dead
