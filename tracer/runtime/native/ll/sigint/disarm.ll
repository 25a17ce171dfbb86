; End a call that listened to Ctrl-C. word: the stop word that `tracer_arm` returned, or any other for nothing to do.
; The outermost call puts the former handler back.

define void @tracer_disarm(ptr %word) {
  %armed = icmp eq ptr %word, @tracer.stop
  br i1 %armed, label %leave, label %done
leave:
  %depth = load i64, ptr @tracer.depth
  %outer = sub i64 %depth, 1
  store i64 %outer, ptr @tracer.depth
  %is.last = icmp eq i64 %outer, 0
  br i1 %is.last, label %restore, label %done
restore:
  %previous = load ptr, ptr @tracer.previous
  %replaced = call ptr @PyOS_setsig(i32 2, ptr %previous)
  store i32 0, ptr @tracer.stop
  br label %done
done:
  ret void
}
