; Free the memory of `count` growable stacks.

define internal void @tracer.free_stacks(ptr %stacks, i64 %count) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %one ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %one, label %done
one:
  %stack = getelementptr [Stack.bytes x i8], ptr %stacks, i64 %i
  %data = load ptr, ptr %stack
  call void @free(ptr %data)
  %i.next = add i64 %i, 1
  br label %loop
done:
  ret void
}
