; Run the program on the buffers and return the call's result; null with an exception set on failure.
; Takes the references in `results`.
; count: the number of elements of a call of free shape. Signals whose Python handlers return start the program
; again, if it may be repeated.

define internal ptr @tracer.run(ptr %record, ptr %buffers, ptr %results, i64 %count) {
  %context = alloca [Context.bytes x i8], align 16
  call void @llvm.memset.p0.i64(ptr align 16 %context, i8 0, i64 Context.bytes, i1 false)
  %frame = alloca [3 x ptr], align 8 ; for callbacks and `tracer.listen`, see `tracer.call`
  store ptr %record, ptr %frame
  set ptr @tracer.call_back %context Context.callback
  set ptr %frame %context Context.callback_self
  %stacks = field i64 %record Record.stacks
  %stack.bytes = mul i64 %stacks, Stack.bytes
  %stack = alloca i8, i64 %stack.bytes, align 16
  set ptr %stack %context Context.stacks
  %bytes = field i64 %record Record.arena
  %small = load i64, ptr @tracer.small
  %is.small = icmp ule i64 %bytes, %small
  br i1 %is.small, label %on.stack, label %on.heap
on.stack:
  %near = alloca i8, i64 %bytes, align 64
  br label %again
on.heap:
  %far = call ptr @tracer.take_arena(ptr %record, i64 %bytes)
  %no.memory = icmp eq ptr %far, null
  br i1 %no.memory, label %fail, label %again
again:
  %arena = phi ptr [ %near, %on.stack ], [ %far, %on.heap ], [ %arena, %signalled ]
  set ptr %arena %context Context.arena
  set i32 0 %context Context.status
  set i32 -1 %context Context.fault_site
  call void @llvm.memset.p0.i64(ptr align 16 %stack, i8 0, i64 %stack.bytes, i1 false)
  %status = call i32 @tracer.call(ptr %record, ptr %buffers, ptr %context, ptr %frame, i64 %count)
  call void @tracer.free_stacks(ptr %stack, i64 %stacks)
  %is.done = icmp eq i32 %status, Status.DONE
  br i1 %is.done, label %done, label %not.done
not.done:
  switch i32 %status, label %report [
    i32 Status.INTERRUPTED, label %interrupted
    i32 Status.RAISED, label %clean
  ]
interrupted:
  %handled = call i32 @PyErr_CheckSignals()
  %raised = icmp slt i32 %handled, 0
  br i1 %raised, label %clean, label %signalled
signalled: ; the user's handler returned: go on, from the start
  %repeatable = field i64 %record Record.repeatable
  %may.repeat = icmp ne i64 %repeatable, 0
  br i1 %may.repeat, label %again, label %report
report:
  call void @tracer.report(ptr %record, ptr %context)
  br label %clean
clean:
  call void @tracer.give_arena(ptr %record, ptr %arena, i64 %bytes)
  br label %fail
fail:
  %made = field i64 %record Record.outputs
  call void @tracer.release(ptr %results, i64 %made)
  ret ptr null
done:
  call void @tracer.give_arena(ptr %record, ptr %arena, i64 %bytes)
  %result = call ptr @tracer.result(ptr %record, ptr %results)
  ret ptr %result
}
