; Match the `count` items of a tuple or a list, whose sizes stand alike, with the plan from `steps` on.
; Returns the step behind the last one, or null where the items are more or fewer, or one does not match.
; items.at: the address of the first item's address. A list may change while a NODE runs Python code, so its size and
; its items are read again for each.

define internal ptr @tracer.walk_items(ptr %sequence, ptr %items.at, i64 %count, ptr %steps, ptr %cursor, i1 %holds) {
entry:
  call void @Py_IncRef(ptr %sequence)
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %item ]
  %step = phi ptr [ %steps, %entry ], [ %after, %item ]
  %size = field i64 %sequence Tuple.size
  %matched = icmp ne ptr %step, null
  %fits = icmp eq i64 %size, %count
  %ok = and i1 %matched, %fits
  %more = icmp ult i64 %i, %count
  %on = and i1 %ok, %more
  br i1 %on, label %item, label %done
item:
  %items = load ptr, ptr %items.at
  %item.at = getelementptr ptr, ptr %items, i64 %i
  %object = load ptr, ptr %item.at
  %after = call ptr @tracer.walk(ptr %object, ptr %step, ptr %cursor, i1 %holds)
  %i.next = add i64 %i, 1
  br label %loop
done:
  call void @Py_DecRef(ptr %sequence)
  %result = select i1 %ok, ptr %step, ptr null
  ret ptr %result
}
