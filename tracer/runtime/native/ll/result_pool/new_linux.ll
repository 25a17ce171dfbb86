; Return `bytes` bytes, from the table where it has a block of this size: NumPy's malloc. Null where memory runs out.
; Large blocks ask Linux for huge pages, as NumPy's do.

declare i32 @madvise(ptr, i64, i32)

define ptr @tracer_result_new(ptr %context, i64 %bytes) {
  %whole = call i64 @tracer.whole(i64 %bytes)
  %i = call i64 @tracer.find_kept(i64 %whole)
  %found = icmp ult i64 %i, Pool.blocks
  br i1 %found, label %kept, label %fresh
kept:
  %block = call ptr @tracer.take_kept(i64 %i)
  ret ptr %block
fresh:
  %new = call ptr @aligned_alloc(i64 4096, i64 %whole)
  %is.huge = icmp uge i64 %whole, Pool.huge
  br i1 %is.huge, label %advise, label %done
advise:
  %advised = call i32 @madvise(ptr %new, i64 %whole, i32 14) ; MADV_HUGEPAGE, which may fail
  br label %done
done:
  ret ptr %new
}
