; Copy a dict and make its values for `count` keys: the plan from *steps.at on has a KEY before each value's steps.
; Returns a new reference, or null with an exception set.

define internal ptr @tracer.build_dict(ptr %template, i64 %count, ptr %steps.at, ptr %leaves.at) {
entry:
  %dict = call ptr @PyDict_Copy(ptr %template)
  %none = icmp eq ptr %dict, null
  br i1 %none, label %no, label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %insert ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %value, label %done
value:
  %step = load ptr, ptr %steps.at
  %key = field ptr %step Step.object
  %next = getelementptr i8, ptr %step, i64 Step.bytes
  store ptr %next, ptr %steps.at
  %made = call ptr @tracer.build(ptr %steps.at, ptr %leaves.at)
  %failed = icmp eq ptr %made, null
  br i1 %failed, label %drop, label %insert
insert:
  %inserted = call i32 @PyDict_SetItem(ptr %dict, ptr %key, ptr %made)
  call void @Py_DecRef(ptr %made)
  %i.next = add i64 %i, 1
  %ok = icmp eq i32 %inserted, 0
  br i1 %ok, label %loop, label %drop
done:
  ret ptr %dict
drop:
  call void @Py_DecRef(ptr %dict)
  br label %no
no:
  ret ptr null
}
