; Return the product of the `ndim` sizes of a shape, i64 each: 1 for no axes.

define internal i64 @tracer.count(ptr %shape, i64 %ndim) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %axis ]
  %product = phi i64 [ 1, %entry ], [ %times, %axis ]
  %more = icmp ult i64 %i, %ndim
  br i1 %more, label %axis, label %done
axis:
  %at = getelementptr i64, ptr %shape, i64 %i
  %size = load i64, ptr %at
  %times = mul i64 %product, %size
  %i.next = add i64 %i, 1
  br label %loop
done:
  ret i64 %product
}
