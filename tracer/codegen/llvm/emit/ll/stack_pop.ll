; Move the last item of a growable stack to `target`; zeros from an empty one.

define internal void @tracer.stack_pop(ptr %context, i64 %stack, ptr %target, i64 %bytes) #2 {
entry:
  %stacks.slot = getelementptr i8, ptr %context, i64 Context.stacks
  %stacks = load ptr, ptr %stacks.slot, align 8
  %byte = mul i64 %stack, Stack.bytes
  %record = getelementptr i8, ptr %stacks, i64 %byte
  %used.slot = getelementptr i8, ptr %record, i64 Stack.used
  %used = load i64, ptr %used.slot, align 8
  %left = sub i64 %used, %bytes
  %there = icmp sge i64 %left, 0
  br i1 %there, label %copy, label %zero
copy:
  %data = load ptr, ptr %record, align 8
  %top = getelementptr i8, ptr %data, i64 %left
  call void @llvm.memcpy.p0.p0.i64(ptr %target, ptr %top, i64 %bytes, i1 false)
  store i64 %left, ptr %used.slot, align 8
  ret void
zero:
  call void @llvm.memset.p0.i64(ptr %target, i8 0, i64 %bytes, i1 false)
  ret void
}
