; Run the Record's callback with a slot and the addresses of its inputs and outputs, with the GIL, on this thread.
; Compiled code calls this function through its Context. Returns 0, or 1 where Python raised.

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
