; Replace the value of every handle in `handles` by its leaf's `donated` object, and drop the references to the handles.
; handles: as `tracer.hold_donated` left them, or null.

define internal void @tracer.consume_donated(ptr %record, ptr %handles) {
entry:
  %none = icmp eq ptr %handles, null
  %inputs = field i64 %record Record.inputs
  %leaves = field ptr %record Record.leaves
  br i1 %none, label %done, label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %next ]
  %more = icmp ult i64 %i, %inputs
  br i1 %more, label %look, label %done
look:
  %handle.at = getelementptr ptr, ptr %handles, i64 %i
  %handle = load ptr, ptr %handle.at
  %forgotten = icmp eq ptr %handle, null
  br i1 %forgotten, label %next, label %consume
consume:
  %leaf = getelementptr [Leaf.bytes x i8], ptr %leaves, i64 %i
  %donated = field ptr %leaf Leaf.donated
  %value = field ptr %handle Array._value
  %type = field ptr %handle Array._type
  call void @Py_IncRef(ptr %donated)
  call void @Py_IncRef(ptr @_Py_NoneStruct)
  set ptr %donated %handle Array._value
  set ptr @_Py_NoneStruct %handle Array._type
  call void @Py_DecRef(ptr %value)
  call void @Py_DecRef(ptr %type)
  call void @Py_DecRef(ptr %handle)
  br label %next
next:
  %i.next = add i64 %i, 1
  br label %loop
done:
  ret void
}
