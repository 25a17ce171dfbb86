; Match the values of a dict with the plan from `steps` on, which names `count` keys, each before its value's steps.
; Returns the step behind the last one, or null where a key is missing or a value does not match.
; Keys are str, int, bool or bytes, so that a look-up runs no Python code.

define internal ptr @tracer.walk_values(ptr %dict, i64 %count, ptr %steps, ptr %cursor, i1 %holds) {
entry:
  call void @Py_IncRef(ptr %dict)
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %walk ]
  %step = phi ptr [ %steps, %entry ], [ %after, %walk ]
  %ok = icmp ne ptr %step, null
  %more = icmp ult i64 %i, %count
  %on = and i1 %ok, %more
  br i1 %on, label %look, label %done
look:
  %key = field ptr %step Step.object
  %object = call ptr @PyDict_GetItemWithError(ptr %dict, ptr %key)
  %is.missing = icmp eq ptr %object, null
  br i1 %is.missing, label %missing, label %walk
walk:
  %value.step = getelementptr i8, ptr %step, i64 Step.bytes
  %after = call ptr @tracer.walk(ptr %object, ptr %value.step, ptr %cursor, i1 %holds)
  %i.next = add i64 %i, 1
  br label %loop
missing:
  call void @PyErr_Clear()
  br label %done
done:
  %result = phi ptr [ %step, %loop ], [ null, %missing ]
  call void @Py_DecRef(ptr %dict)
  ret ptr %result
}
