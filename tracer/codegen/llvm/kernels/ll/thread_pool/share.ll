; Call f(given, begin, end) for parts of range(count), on several threads, and return when all are done.
; grain: parts are whole multiples of it, but for the last. Each thread gets several parts.

define void @tracer_share(ptr %f, ptr %given, i64 %count, i64 %grain) {
  call void @pool.share(ptr %f, ptr %given, i64 %count, i64 %grain, i64 Threads.parts, i64 -1)
  ret void
}
