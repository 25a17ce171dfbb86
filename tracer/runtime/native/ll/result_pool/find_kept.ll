; Return the index of a kept block of `size` bytes, or of an empty entry for size 0; Pool.blocks where there is none.

define internal i64 @tracer.find_kept(i64 %size) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %other ]
  %more = icmp ult i64 %i, Pool.blocks
  br i1 %more, label %look, label %done
look:
  %at = getelementptr [2 x i64], ptr @tracer.kept, i64 %i
  %size.at = getelementptr i64, ptr %at, i64 1
  %found = load i64, ptr %size.at, align 8
  %same = icmp eq i64 %found, %size
  br i1 %same, label %done, label %other
other:
  %i.next = add i64 %i, 1
  br label %loop
done:
  ret i64 %i
}
