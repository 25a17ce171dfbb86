; Return whether a call may begin short and listen later, and set the stop word for it. It may on the main thread, if no
; call listens: others have their stop words at no cost.

define internal i1 @tracer.wait() {
  %depth = load i64, ptr @tracer.depth
  %is.outer = icmp eq i64 %depth, 0
  br i1 %is.outer, label %ask, label %no
ask:
  %thread = call i64 @PyThread_get_thread_ident()
  %main = load i64, ptr @tracer_main_thread
  %is.main = icmp eq i64 %thread, %main
  br i1 %is.main, label %yes, label %no
yes:
  store i32 1, ptr @tracer.stop
  ret i1 true
no:
  ret i1 false
}
