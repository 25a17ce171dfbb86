; Call f(given, 0, count) on the caller's thread: for systems without POSIX threads.

define void @tracer_share(ptr %f, ptr %given, i64 %count, i64 %grain) {
  call void %f(ptr %given, i64 0, i64 %count)
  ret void
}
