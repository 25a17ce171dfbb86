; Return a size in bytes rounded up to whole grains, so that arrays of similar sizes can use each other's memory.

define internal i64 @tracer.whole(i64 %bytes) {
  %over = add i64 %bytes, Pool.grain_mask
  %whole = and i64 %over, -Pool.grain
  ret i64 %whole
}
