; Write trsm's letters in its order, from our flags: side, triangle, operation, diagonal.
; left: op(a) X = x, rather than X op(a) = x. form: 0 a, 1 its transpose, 2 its adjoint. unit: the diagonal is ones.
; BLAS reads matrices by columns, so sides and triangles change.

define internal void @library.trsm_letters(ptr %letters, i64 %left, i64 %lower, i64 %form, i64 %unit) #2 {
entry:
  %triangle.at = getelementptr i8, ptr %letters, i64 1
  %operation.at = getelementptr i8, ptr %letters, i64 2
  %diagonal.at = getelementptr i8, ptr %letters, i64 3
  %is.left = icmp ne i64 %left, 0
  %is.lower = icmp ne i64 %lower, 0
  %is.unit = icmp ne i64 %unit, 0
  %is.turned = icmp ne i64 %form, 0
  %is.adjoint = icmp eq i64 %form, 2
  %side = select i1 %is.left, i8 82, i8 76
  %triangle = select i1 %is.lower, i8 85, i8 76
  %turned = select i1 %is.adjoint, i8 67, i8 84
  %operation = select i1 %is.turned, i8 %turned, i8 78
  %diagonal = select i1 %is.unit, i8 85, i8 78
  store i8 %side, ptr %letters
  store i8 %triangle, ptr %triangle.at
  store i8 %operation, ptr %operation.at
  store i8 %diagonal, ptr %diagonal.at
  ret void
}
