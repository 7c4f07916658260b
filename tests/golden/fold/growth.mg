# Folding may store 1024 bytes more than it reads: the first broadcast does, the second would be 16 GiB.
graph g() -> (small, large) {
  zero = const(0.0) : f32[]
  small = broadcast_to(zero) {shape=[256]} : f32[256]
  large = broadcast_to(zero) {shape=[65536,65536]} : f32[65536,65536]
  return small = small, large = large
}
=>
graph g() -> (small, large) {
  zero = const(0.0) : f32[]
  small = const(0.0) : f32[256]
  large = broadcast_to(zero) {shape=[65536,65536]} : f32[65536,65536]
  return small = small, large = large
}
# steps: fold
