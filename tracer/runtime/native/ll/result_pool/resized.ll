; Return a block with its size changed: NumPy's realloc. Null, and the block as it was, where memory runs out.

define ptr @tracer_result_resized(ptr %context, ptr %block, i64 %bytes) {
  %whole = call i64 @tracer.whole(i64 %bytes)
  %new = call ptr @realloc(ptr %block, i64 %whole)
  ret ptr %new
}
