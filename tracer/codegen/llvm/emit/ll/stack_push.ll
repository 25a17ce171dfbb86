; Add an item of `bytes` bytes to a growable stack. Returns whether memory ran out, with the status NO_MEMORY.

define internal i1 @tracer.stack_push(ptr %context, i64 %stack, ptr %source, i64 %bytes) #2 {
entry:
  %stacks.slot = getelementptr i8, ptr %context, i64 Context.stacks
  %stacks = load ptr, ptr %stacks.slot, align 8
  %byte = mul i64 %stack, Stack.bytes
  %record = getelementptr i8, ptr %stacks, i64 %byte
  %used.slot = getelementptr i8, ptr %record, i64 Stack.used
  %used = load i64, ptr %used.slot, align 8
  %size = call i64 @llvm.smax.i64(i64 %bytes, i64 1)
  %index = sdiv i64 %used, %size
  %failed = call i1 @tracer.stack_write(ptr %context, i64 %stack, i64 %index, ptr %source, i64 %bytes)
  ret i1 %failed
}
