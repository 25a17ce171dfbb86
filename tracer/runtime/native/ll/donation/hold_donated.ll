; Take a reference to every donated handle in `handles`, and write null over every other object there.
; handles: the inputs' objects as given, or null where nothing is donated.

define internal void @tracer.hold_donated(ptr %record, ptr %handles) {
entry:
  %none = icmp eq ptr %handles, null
  %inputs = field i64 %record Record.inputs
  %leaves = field ptr %record Record.leaves
  %array.type = field ptr %record Record.array
  br i1 %none, label %done, label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %next ]
  %more = icmp ult i64 %i, %inputs
  br i1 %more, label %look, label %done
look:
  %handle.at = getelementptr ptr, ptr %handles, i64 %i
  %leaf = getelementptr [Leaf.bytes x i8], ptr %leaves, i64 %i
  %donated = field ptr %leaf Leaf.donated
  %handle = load ptr, ptr %handle.at
  %type = field ptr %handle Object.type
  %is.donated = icmp ne ptr %donated, null
  %is.array = icmp eq ptr %type, %array.type
  %given = and i1 %is.donated, %is.array
  br i1 %given, label %hold, label %forget
hold:
  call void @Py_IncRef(ptr %handle)
  br label %next
forget:
  store ptr null, ptr %handle.at
  br label %next
next:
  %i.next = add i64 %i, 1
  br label %loop
done:
  ret void
}
