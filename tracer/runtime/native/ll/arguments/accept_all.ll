; Check every input against its Leaf. Afterwards `objects` holds a new reference to the owner of each input's memory,
; and `buffers` that memory's address. Returns false, and holds nothing, where an input is refused.
; scalars: 16 bytes for each input, where Python scalars are stored.

define internal i1 @tracer.accept_all(ptr %record, ptr %objects, ptr %buffers, ptr %scalars) {
entry:
  %count = field i64 %record Record.inputs
  %leaves = field ptr %record Record.leaves
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %kept ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %check, label %done
check:
  %object.at = getelementptr ptr, ptr %objects, i64 %i
  %buffer = getelementptr ptr, ptr %buffers, i64 %i
  %scalar = getelementptr [16 x i8], ptr %scalars, i64 %i
  %leaf = getelementptr [Leaf.bytes x i8], ptr %leaves, i64 %i
  %object = load ptr, ptr %object.at
  %owner = call ptr @tracer.accept(ptr %record, ptr %leaf, ptr %object, ptr %buffer, ptr %scalar)
  %refused = icmp eq ptr %owner, null
  br i1 %refused, label %no, label %kept
kept:
  call void @Py_IncRef(ptr %owner)
  store ptr %owner, ptr %object.at
  %i.next = add i64 %i, 1
  br label %loop
done:
  ret i1 true
no:
  call void @tracer.release(ptr %objects, i64 %i)
  ret i1 false
}
