; Write an item of `bytes` bytes to a growable stack at `index`, and zeros between its end and the item.
; Doubles the capacity where it is too small. Returns whether memory ran out, with the status NO_MEMORY.

declare ptr @realloc(ptr, i64)

define internal i1 @tracer.stack_write(ptr %context, i64 %stack, i64 %index, ptr %source, i64 %bytes) #2 {
entry:
  %stacks.slot = getelementptr i8, ptr %context, i64 Context.stacks
  %stacks = load ptr, ptr %stacks.slot, align 8
  %byte = mul i64 %stack, Stack.bytes
  %record = getelementptr i8, ptr %stacks, i64 %byte
  %used.slot = getelementptr i8, ptr %record, i64 Stack.used
  %used = load i64, ptr %used.slot, align 8
  %capacity.slot = getelementptr i8, ptr %record, i64 Stack.capacity
  %capacity = load i64, ptr %capacity.slot, align 8
  %data.old = load ptr, ptr %record, align 8
  %place = mul i64 %index, %bytes
  %needed = add i64 %place, %bytes
  %full = icmp sgt i64 %needed, %capacity
  br i1 %full, label %grow, label %ready
grow:
  %double = mul i64 %capacity, 2
  %enough = call i64 @llvm.smax.i64(i64 %double, i64 %needed)
  %new = call i64 @llvm.smax.i64(i64 %enough, i64 4096)
  %data.new = call ptr @realloc(ptr %data.old, i64 %new)
  %failed = icmp eq ptr %data.new, null
  br i1 %failed, label %fail, label %grown
grown:
  store ptr %data.new, ptr %record, align 8
  store i64 %new, ptr %capacity.slot, align 8
  br label %ready
ready:
  %data = phi ptr [ %data.old, %entry ], [ %data.new, %grown ]
  %beyond = icmp sgt i64 %needed, %used
  br i1 %beyond, label %extend, label %copy
extend:
  %gap = sub i64 %place, %used
  %zeros = call i64 @llvm.smax.i64(i64 %gap, i64 0)
  %end = getelementptr i8, ptr %data, i64 %used
  call void @llvm.memset.p0.i64(ptr %end, i8 0, i64 %zeros, i1 false)
  store i64 %needed, ptr %used.slot, align 8
  br label %copy
copy:
  %target = getelementptr i8, ptr %data, i64 %place
  call void @llvm.memcpy.p0.p0.i64(ptr %target, ptr %source, i64 %bytes, i1 false)
  ret i1 false
fail:
  store i32 Status.NO_MEMORY, ptr %context, align 4
  ret i1 true
}
