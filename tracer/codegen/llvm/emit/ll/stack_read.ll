; Copy the item at `index` of a growable stack to `target`; zeros beyond the stack's end.

define internal void @tracer.stack_read(ptr %context, i64 %stack, i64 %index, ptr %target, i64 %bytes) #2 {
entry:
  %stacks.slot = getelementptr i8, ptr %context, i64 Context.stacks
  %stacks = load ptr, ptr %stacks.slot, align 8
  %byte = mul i64 %stack, Stack.bytes
  %record = getelementptr i8, ptr %stacks, i64 %byte
  %used.slot = getelementptr i8, ptr %record, i64 Stack.used
  %used = load i64, ptr %used.slot, align 8
  %place = mul i64 %index, %bytes
  %end = add i64 %place, %bytes
  %there = icmp sle i64 %end, %used
  br i1 %there, label %copy, label %zero
copy:
  %data = load ptr, ptr %record, align 8
  %source = getelementptr i8, ptr %data, i64 %place
  call void @llvm.memcpy.p0.p0.i64(ptr %target, ptr %source, i64 %bytes, i1 false)
  ret void
zero:
  call void @llvm.memset.p0.i64(ptr %target, i8 0, i64 %bytes, i1 false)
  ret void
}
