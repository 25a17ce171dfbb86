; Empty a growable stack, and keep its memory.

define internal void @tracer.stack_reset(ptr %context, i64 %stack) #2 {
entry:
  %stacks.slot = getelementptr i8, ptr %context, i64 Context.stacks
  %stacks = load ptr, ptr %stacks.slot, align 8
  %byte = mul i64 %stack, Stack.bytes
  %record = getelementptr i8, ptr %stacks, i64 %byte
  %used.slot = getelementptr i8, ptr %record, i64 Stack.used
  %used = load i64, ptr %used.slot, align 8
  store i64 0, ptr %used.slot, align 8
  ret void
}
