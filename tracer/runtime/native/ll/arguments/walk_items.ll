; Match `count` objects that follow each other in memory with the plan from `steps` on.
; Returns the step behind the last one, or null where an object does not match.

define internal ptr @tracer.walk_items(ptr %items, i64 %count, ptr %steps, ptr %cursor) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %item ]
  %step = phi ptr [ %steps, %entry ], [ %after, %item ]
  %ok = icmp ne ptr %step, null
  %more = icmp ult i64 %i, %count
  %on = and i1 %ok, %more
  br i1 %on, label %item, label %done
item:
  %item.at = getelementptr ptr, ptr %items, i64 %i
  %object = load ptr, ptr %item.at
  %after = call ptr @tracer.walk(ptr %object, ptr %step, ptr %cursor)
  %i.next = add i64 %i, 1
  br label %loop
done:
  ret ptr %step
}
