; Multiply `filled` elements of rows of a by a panel of b, in 2 x 1 tiles of sums, up to 16 x 16 each.
; is.first: whether the sums begin at zero, or continue in `out`. Rows of out are `out_row` elements apart.

define internal void @block21(ptr %a, ptr %b, ptr %out, i64 %filled, i64 %out_row, i1 %is.first) #0 {
entry:
  %out.stride = shl i64 %out_row, 2
  %out.half = shl i64 %out_row, 4
  %out.row0 = getelementptr float, ptr %out, i64 0
  %out.row1 = getelementptr float, ptr %out, i64 %out.half
  %out0 = getelementptr float, ptr %out.row0, i64 0
  %out2 = getelementptr float, ptr %out.row1, i64 0
  br i1 %is.first, label %zero, label %more
zero:
  call void @llvm.x86.tilezero(i8 0)
  call void @llvm.x86.tilezero(i8 2)
  br label %step
more:
  call void @llvm.x86.tileloadd64(i8 0, ptr %out0, i64 %out.stride)
  call void @llvm.x86.tileloadd64(i8 2, ptr %out2, i64 %out.stride)
  br label %step
step:
  %q = phi i64 [ 0, %zero ], [ 0, %more ], [ %q.next, %step ]
  %a.skip = shl i64 %q, 5
  %a.at = getelementptr i16, ptr %a, i64 %a.skip
  %b.skip = shl i64 %q, 4
  %b.at = getelementptr i32, ptr %b, i64 %b.skip
  call void @llvm.x86.tileloadd64(i8 4, ptr %a.at, i64 64)
  %b0 = getelementptr i32, ptr %b.at, i64 0
  call void @llvm.x86.tileloadd64(i8 6, ptr %b0, i64 128)
  call void @llvm.x86.tdpbf16ps(i8 0, i8 4, i8 6)
  %a.lower = getelementptr i16, ptr %a.at, i64 512
  call void @llvm.x86.tileloadd64(i8 5, ptr %a.lower, i64 64)
  call void @llvm.x86.tdpbf16ps(i8 2, i8 5, i8 6)
  %q.next = add i64 %q, 32
  %q.more = icmp slt i64 %q.next, %filled
  br i1 %q.more, label %step, label %store
store:
  call void @llvm.x86.tilestored64(i8 0, ptr %out0, i64 %out.stride)
  call void @llvm.x86.tilestored64(i8 2, ptr %out2, i64 %out.stride)
  ret void
}
