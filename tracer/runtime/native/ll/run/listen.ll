; Count steps of a patient call. When its patience is at an end, listen to Ctrl-C and release the GIL.
; An interrupt that CPython noted before keeps the stop word set, and is noted again for `PyErr_CheckSignals`.

define internal void @tracer.listen(ptr %context, i64 %steps) {
  %patience = field i64 %context Context.patience
  %left = call i64 @llvm.usub.sat.i64(i64 %patience, i64 %steps)
  set i64 %left %context Context.patience
  %is.out = icmp eq i64 %left, 0
  br i1 %is.out, label %arm, label %done
arm:
  %stop = call ptr @tracer_arm()
  store i32 0, ptr @tracer.stop
  %noted = call i32 @PyOS_InterruptOccurred()
  %is.noted = icmp ne i32 %noted, 0
  br i1 %is.noted, label %again, label %release
again:
  call void @PyErr_SetInterrupt()
  store i32 1, ptr @tracer.stop
  br label %release
release:
  %frame = field ptr %context Context.callback_self
  %thread.at = getelementptr ptr, ptr %frame, i64 1
  %stop.at = getelementptr ptr, ptr %frame, i64 2
  %thread = call ptr @PyEval_SaveThread()
  store ptr %thread, ptr %thread.at
  store ptr %stop, ptr %stop.at
  br label %done
done:
  ret void
}
