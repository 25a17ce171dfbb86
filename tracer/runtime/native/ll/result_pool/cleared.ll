; Return memory for `count` elements of `size` bytes, all zero: NumPy's calloc. Null where memory runs out.
; NumPy has checked that the product does not overflow.

define ptr @tracer_result_cleared(ptr %context, i64 %count, i64 %size) {
  %bytes = mul i64 %count, %size
  %new = call ptr @tracer_result_new(ptr %context, i64 %bytes)
  %failed = icmp eq ptr %new, null
  br i1 %failed, label %done, label %clear
clear:
  call void @llvm.memset.p0.i64(ptr %new, i8 0, i64 %bytes, i1 false)
  br label %done
done:
  ret ptr %new
}
