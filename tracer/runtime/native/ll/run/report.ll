; Set the exception that the Record's `failed` makes of the context. It has no traceback of ours.

define internal void @tracer.report(ptr %record, ptr %context) {
  %failed = field ptr %record Record.failed
  %argument = alloca ptr
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
