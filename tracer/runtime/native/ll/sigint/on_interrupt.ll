; Handle SIGINT: set the stop word, then call the handler that stood before. The only routine here that may run without
; the GIL.

define internal void @tracer.on_interrupt(i32 %signal) {
  store atomic i32 1, ptr @tracer.stop monotonic, align 4
  %previous = load ptr, ptr @tracer.previous
  call void %previous(i32 %signal)
  ret void
}
