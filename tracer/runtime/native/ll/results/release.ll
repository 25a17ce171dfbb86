; Drop the first `count` references of an array of objects.

define internal void @tracer.release(ptr %objects, i64 %count) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %drop ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %drop, label %done
drop:
  %at = getelementptr ptr, ptr %objects, i64 %i
  %object = load ptr, ptr %at
  call void @Py_DecRef(ptr %object)
  %i.next = add i64 %i, 1
  br label %loop
done:
  ret void
}
