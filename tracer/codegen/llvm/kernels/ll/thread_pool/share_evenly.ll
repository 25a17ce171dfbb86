; Call f(given, begin, end) for parts of range(count), on several threads, and return when all are done.
; most: the largest length of a part, but for the last. Each thread gets one part where that is long enough.

define void @tracer_share_evenly(ptr %f, ptr %given, i64 %count, i64 %most) {
  call void @pool.share(ptr %f, ptr %given, i64 %count, i64 1, i64 1, i64 %most)
  ret void
}
