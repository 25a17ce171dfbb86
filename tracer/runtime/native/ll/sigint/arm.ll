; Begin a call that listens to Ctrl-C, and return its stop word, which `tracer_disarm` takes at the end.
; On the main thread the outermost call installs our handler in front of CPython's, and calls within it share the
; handler. Other threads, and processes that ignore SIGINT or leave it to the system, get a word that stays 0.

define ptr @tracer_arm() {
  %thread = call i64 @PyThread_get_thread_ident()
  %main = load i64, ptr @tracer_main_thread
  %is.main = icmp eq i64 %thread, %main
  br i1 %is.main, label %nest, label %never
never:
  ret ptr @tracer.never
nest:
  %depth = load i64, ptr @tracer.depth
  %is.inner = icmp ne i64 %depth, 0
  br i1 %is.inner, label %enter, label %outermost
outermost:
  %previous = call ptr @PyOS_getsig(i32 2)
  %address = ptrtoint ptr %previous to i64
  %is.handler = icmp ugt i64 %address, 1 ; neither SIG_DFL nor SIG_IGN
  br i1 %is.handler, label %install, label %never
install:
  store i32 0, ptr @tracer.stop
  store ptr %previous, ptr @tracer.previous
  %replaced = call ptr @PyOS_setsig(i32 2, ptr @tracer.on_interrupt)
  br label %enter
enter:
  %deeper = add i64 %depth, 1
  store i64 %deeper, ptr @tracer.depth
  ret ptr @tracer.stop
}
