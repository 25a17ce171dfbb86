; Call the program and return its Status. Releases the GIL where `count` makes it long, and listens to Ctrl-C where
; it is very long.
; frame: two words, the Record and the thread's state while the GIL is released, for callbacks.

define internal i32 @tracer.call(ptr %record, ptr %buffers, ptr %context, ptr %frame, i64 %count) {
  %main = field ptr %record Record.main
  %long.from = field i64 %record Record.long_from
  %is.long = icmp uge i64 %count, %long.from
  %thread.at = getelementptr ptr, ptr %frame, i64 1
  br i1 %is.long, label %slow, label %quick
quick:
  store ptr null, ptr %thread.at
  set ptr @tracer.never %context Context.stop
  %status = call i32 %main(ptr %buffers, ptr %context)
  ret i32 %status
slow:
  %heard.from = field i64 %record Record.heard_from
  %is.heard = icmp uge i64 %count, %heard.from
  br i1 %is.heard, label %arm, label %run
arm:
  %armed = call ptr @tracer_arm()
  br label %run
run:
  %stop = phi ptr [ @tracer.never, %slow ], [ %armed, %arm ]
  set ptr %stop %context Context.stop
  %thread = call ptr @PyEval_SaveThread()
  store ptr %thread, ptr %thread.at
  %slow.status = call i32 %main(ptr %buffers, ptr %context)
  call void @PyEval_RestoreThread(ptr %thread)
  call void @tracer_disarm(ptr %stop)
  ret i32 %slow.status
}
