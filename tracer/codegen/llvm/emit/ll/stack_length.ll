; Return how many items of `size` bytes a growable stack holds.

define internal i64 @tracer.stack_length(ptr %context, i64 %stack, i64 %size) #2 {
entry:
  %stacks.slot = getelementptr i8, ptr %context, i64 Context.stacks
  %stacks = load ptr, ptr %stacks.slot, align 8
  %byte = mul i64 %stack, Stack.bytes
  %record = getelementptr i8, ptr %stacks, i64 %byte
  %used.slot = getelementptr i8, ptr %record, i64 Stack.used
  %used = load i64, ptr %used.slot, align 8
  %length = sdiv i64 %used, %size
  ret i64 %length
}
