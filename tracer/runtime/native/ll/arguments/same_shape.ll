; Return whether two NumPy arrays have equal shapes.

define internal i1 @tracer.same_shape(ptr %a, ptr %b) {
  %ndim32 = field i32 %a Ndarray.ndim
  %other32 = field i32 %b Ndarray.ndim
  %same.ndim = icmp eq i32 %ndim32, %other32
  br i1 %same.ndim, label %shapes, label %no
shapes:
  %ndim = zext i32 %ndim32 to i64
  %a.shape = field ptr %a Ndarray.shape
  %b.shape = field ptr %b Ndarray.shape
  br label %loop
loop:
  %i = phi i64 [ 0, %shapes ], [ %i.next, %axis ]
  %more = icmp ult i64 %i, %ndim
  br i1 %more, label %axis, label %yes
axis:
  %a.at = getelementptr i64, ptr %a.shape, i64 %i
  %b.at = getelementptr i64, ptr %b.shape, i64 %i
  %a.size = load i64, ptr %a.at
  %b.size = load i64, ptr %b.at
  %equal = icmp eq i64 %a.size, %b.size
  %i.next = add i64 %i, 1
  br i1 %equal, label %loop, label %no
yes:
  ret i1 true
no:
  ret i1 false
}
