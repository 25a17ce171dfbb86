"""The entry's run of a program, as LLVM text: its memory, the GIL, Ctrl-C, callbacks, results. See `entry_text`."""

RUN = """\
@tracer.small = internal constant i64 16384 ; bytes of an arena that may lie on the stack

; Run the program on the buffers. Takes the references in `results`; the result, or null with an exception set.
define internal ptr @tracer.run(ptr %record, ptr %buffers, ptr %results, i64 %count) {
  %context = alloca [Context.bytes x i8], align 16
  call void @llvm.memset.p0.i64(ptr align 16 %context, i8 0, i64 Context.bytes, i1 false)
  %frame = alloca [2 x ptr], align 8 ; for callbacks: the record, and the thread's state while the GIL is given away
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

; The program itself; the GIL is given away if it may run for long, and Ctrl-C heard if for very long.
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

; Set the exception that belongs to the status of the context, if there is to be one. It has no traceback of ours.
define internal void @tracer.report(ptr %record, ptr %context) {
  %failed = field ptr %record Record.failed
  %argument = alloca ptr
  %hands.on = icmp eq ptr %failed, null
  br i1 %hands.on, label %done, label %make
make:
  %address = call ptr @PyLong_FromVoidPtr(ptr %context)
  store ptr %address, ptr %argument
  %error = call ptr @PyObject_Vectorcall(ptr %failed, ptr %argument, i64 1, ptr null)
  call void @Py_DecRef(ptr %address)
  %is.set = icmp eq ptr %error, null
  br i1 %is.set, label %done, label %raise
raise:
  %type = field ptr %error Object.type
  call void @PyErr_SetObject(ptr %type, ptr %error)
  call void @Py_DecRef(ptr %error)
  br label %done
done:
  ret void
}

; What compiled code calls for a callback: Python runs, with the GIL, on this thread.
define internal i32 @tracer.call_back(ptr %frame, i64 %slot, ptr %inputs, ptr %outputs) {
  %record = load ptr, ptr %frame
  %thread.at = getelementptr ptr, ptr %frame, i64 1
  %thread = load ptr, ptr %thread.at
  %has.gil = icmp eq ptr %thread, null
  br i1 %has.gil, label %call, label %acquire
acquire:
  call void @PyEval_RestoreThread(ptr %thread)
  br label %call
call:
  %arguments = alloca [3 x ptr]
  %first = call ptr @PyLong_FromLongLong(i64 %slot)
  %second = call ptr @PyLong_FromVoidPtr(ptr %inputs)
  %third = call ptr @PyLong_FromVoidPtr(ptr %outputs)
  %second.at = getelementptr ptr, ptr %arguments, i64 1
  %third.at = getelementptr ptr, ptr %arguments, i64 2
  store ptr %first, ptr %arguments
  store ptr %second, ptr %second.at
  store ptr %third, ptr %third.at
  %callable = field ptr %record Record.callback
  %result = call ptr @PyObject_Vectorcall(ptr %callable, ptr %arguments, i64 3, ptr null)
  call void @tracer.release(ptr %arguments, i64 3)
  %raised = icmp eq ptr %result, null
  br i1 %raised, label %after, label %drop
drop:
  call void @Py_DecRef(ptr %result)
  br label %after
after:
  %status = zext i1 %raised to i32
  br i1 %has.gil, label %done, label %give
give:
  %same.thread = call ptr @PyEval_SaveThread()
  br label %done
done:
  ret i32 %status
}

; The result: the one output, or a tuple of them, or what `finish` makes of the tuple. Takes the references.
define internal ptr @tracer.result(ptr %record, ptr %results) {
  %single = field i64 %record Record.single
  %is.single = icmp ne i64 %single, 0
  br i1 %is.single, label %one, label %many
one:
  %only = load ptr, ptr %results
  ret ptr %only
many:
  %count = field i64 %record Record.outputs
  %tuple = call ptr @PyTuple_New(i64 %count)
  %failed = icmp eq ptr %tuple, null
  br i1 %failed, label %fail, label %fill
fail:
  call void @tracer.release(ptr %results, i64 %count)
  ret ptr null
fill:
  %items = getelementptr i8, ptr %tuple, i64 Tuple.item0
  %bytes = mul i64 %count, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %items, ptr %results, i64 %bytes, i1 false)
  %finish = field ptr %record Record.finish
  %is.plain = icmp eq ptr %finish, null
  br i1 %is.plain, label %plain, label %finishing
plain:
  ret ptr %tuple
finishing:
  %argument = alloca ptr
  store ptr %tuple, ptr %argument
  %result = call ptr @PyObject_Vectorcall(ptr %finish, ptr %argument, i64 1, ptr null)
  call void @Py_DecRef(ptr %tuple)
  ret ptr %result
}

; An arena: the one that the last call left, or new memory; null with an exception set where there is none.
define internal ptr @tracer.take_arena(ptr %record, i64 %bytes) {
  %spare.at = field ptr %record Record.spare
  %spare.bits = atomicrmw xchg ptr %spare.at, i64 0 acq_rel
  %has.spare = icmp ne i64 %spare.bits, 0
  br i1 %has.spare, label %reuse, label %fresh
reuse:
  %spare = inttoptr i64 %spare.bits to ptr
  ret ptr %spare
fresh:
  %more = add i64 %bytes, 63
  %whole = and i64 %more, -64
  %new = call ptr @aligned_alloc(i64 64, i64 %whole)
  %failed = icmp eq ptr %new, null
  br i1 %failed, label %fail, label %done
fail:
  %set = call ptr @PyErr_NoMemory()
  br label %done
done:
  ret ptr %new
}

; Leave a large arena to the next call.
define internal void @tracer.give_arena(ptr %record, ptr %arena, i64 %bytes) {
  %small = load i64, ptr @tracer.small
  %is.small = icmp ule i64 %bytes, %small
  br i1 %is.small, label %done, label %leave
leave:
  %spare.at = field ptr %record Record.spare
  %bits = ptrtoint ptr %arena to i64
  %old.bits = atomicrmw xchg ptr %spare.at, i64 %bits acq_rel
  %old = inttoptr i64 %old.bits to ptr
  call void @free(ptr %old)
  br label %done
done:
  ret void
}

define internal void @tracer.free_stacks(ptr %stacks, i64 %count) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %one ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %one, label %done
one:
  %stack = getelementptr [Stack.bytes x i8], ptr %stacks, i64 %i
  %data = load ptr, ptr %stack
  call void @free(ptr %data)
  %i.next = add i64 %i, 1
  br label %loop
done:
  ret void
}
"""
