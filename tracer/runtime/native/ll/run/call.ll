; Call the program and return its Status. Releases the GIL where `count` makes it long, and listens to Ctrl-C where
; it is very long. A patient program starts as a short one where it may, with a set stop word, and `tracer.listen`
; makes it long.
; frame: the Record, the thread's state while the GIL is released, and the stop word of a patient call that listens.

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
  %patience = field i64 %record Record.patience
  %is.patient = icmp ne i64 %patience, 0
  br i1 %is.patient, label %wait, label %start
wait:
  %may.wait = call i1 @tracer.wait()
  br i1 %may.wait, label %patient, label %start
patient:
  store ptr null, ptr %thread.at
  set i64 %patience %context Context.patience
  set ptr @tracer.listen %context Context.listen
  set ptr @tracer.stop %context Context.stop
  %patient.status = call i32 %main(ptr %buffers, ptr %context)
  %patient.thread = load ptr, ptr %thread.at
  %was.short = icmp eq ptr %patient.thread, null
  br i1 %was.short, label %short, label %long
short:
  store i32 0, ptr @tracer.stop
  ret i32 %patient.status
long:
  %stop.at = getelementptr ptr, ptr %frame, i64 2
  %patient.stop = load ptr, ptr %stop.at
  br label %end
start:
  %heard.from = field i64 %record Record.heard_from
  %is.heard = icmp uge i64 %count, %heard.from
  br i1 %is.heard, label %arm, label %run
arm:
  %armed = call ptr @tracer_arm()
  br label %run
run:
  %stop = phi ptr [ @tracer.never, %start ], [ %armed, %arm ]
  set ptr %stop %context Context.stop
  set i64 0 %context Context.patience
  %thread = call ptr @PyEval_SaveThread()
  store ptr %thread, ptr %thread.at
  %slow.status = call i32 %main(ptr %buffers, ptr %context)
  br label %end
end:
  %used = phi ptr [ %stop, %run ], [ %patient.stop, %long ]
  %state = phi ptr [ %thread, %run ], [ %patient.thread, %long ]
  %long.status = phi i32 [ %slow.status, %run ], [ %patient.status, %long ]
  call void @PyEval_RestoreThread(ptr %state)
  call void @tracer_disarm(ptr %used)
  ret i32 %long.status
}
