; Drop the references to the leaves among `objects`, the objects of every input; null where none are held.

define internal void @tracer.drop_leaves(ptr %record, ptr %objects) {
  %none = icmp eq ptr %objects, null
  br i1 %none, label %done, label %drop
drop:
  %captured = field i64 %record Record.captured
  %inputs = field i64 %record Record.inputs
  %count = sub i64 %inputs, %captured
  %first = getelementptr ptr, ptr %objects, i64 %captured
  call void @tracer.release(ptr %first, i64 %count)
  br label %done
done:
  ret void
}
