; The pool's four functions where there are no POSIX threads: every job is one call on the caller's thread.

define void @tracer_share(ptr %f, ptr %given, i64 %count, i64 %grain) {
  call void %f(ptr %given, i64 0, i64 %count)
  ret void
}

define void @tracer_share_evenly(ptr %f, ptr %given, i64 %count, i64 %most) {
  call void %f(ptr %given, i64 0, i64 %count)
  ret void
}

define void @tracer_pool_reset() {
  ret void
}

define void @tracer_pool_stop() {
  ret void
}
