; Return the call's result: the one output, a tuple of the outputs, or the tree that the Record's plan makes of them.
; Takes the references in `results`. Returns null with an exception set on failure.

define internal ptr @tracer.result(ptr %record, ptr %results) {
  %single = field i64 %record Record.single
  %is.single = icmp ne i64 %single, 0
  br i1 %is.single, label %one, label %many
one:
  %only = load ptr, ptr %results
  ret ptr %only
many:
  %count = field i64 %record Record.outputs
  %plan = field ptr %record Record.tree
  %is.plain = icmp eq ptr %plan, null
  br i1 %is.plain, label %plain, label %tree
plain:
  %tuple = call ptr @PyTuple_New(i64 %count)
  %failed = icmp eq ptr %tuple, null
  br i1 %failed, label %fail, label %fill
fail:
  call void @tracer.release(ptr %results, i64 %count)
  ret ptr null
fill:
  %items = getelementptr i8, ptr %tuple, i64 Tuple.item0
  %bytes = mul i64 %count, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %items, ptr %results, i64 %bytes, i1 false)
  ret ptr %tuple
tree:
  %steps.at = alloca ptr
  %leaves.at = alloca ptr
  store ptr %plan, ptr %steps.at
  store ptr %results, ptr %leaves.at
  %made = call ptr @tracer.build(ptr %steps.at, ptr %leaves.at)
  call void @tracer.release(ptr %results, i64 %count)
  ret ptr %made
}
