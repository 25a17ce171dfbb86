; Return whether a NumPy array has the leaf's dtype, as the same object, and its shape. A leaf of -1 axes takes any
; shape.

define internal i1 @tracer.same_array(ptr %ndarray, ptr %leaf) {
  %descr = field ptr %ndarray Ndarray.descr
  %wanted.descr = field ptr %leaf Leaf.descr
  %ndim32 = field i32 %ndarray Ndarray.ndim
  %ndim = zext i32 %ndim32 to i64
  %wanted.ndim = field i64 %leaf Leaf.ndim
  %same.descr = icmp eq ptr %descr, %wanted.descr
  %same.ndim = icmp eq i64 %ndim, %wanted.ndim
  %same = and i1 %same.descr, %same.ndim
  br i1 %same, label %shapes, label %free
free:
  %any.shape = icmp eq i64 %wanted.ndim, -1
  %fits = and i1 %any.shape, %same.descr
  ret i1 %fits
shapes:
  %shape = field ptr %ndarray Ndarray.shape
  %wanted.shape = field ptr %leaf Leaf.shape
  br label %loop
loop:
  %i = phi i64 [ 0, %shapes ], [ %i.next, %axis ]
  %more = icmp ult i64 %i, %ndim
  br i1 %more, label %axis, label %yes
axis:
  %size.at = getelementptr i64, ptr %shape, i64 %i
  %wanted.at = getelementptr i64, ptr %wanted.shape, i64 %i
  %size = load i64, ptr %size.at
  %wanted = load i64, ptr %wanted.at
  %equal = icmp eq i64 %size, %wanted
  %i.next = add i64 %i, 1
  br i1 %equal, label %loop, label %no
yes:
  ret i1 true
no:
  ret i1 false
}
