; Copy b as `pairs` does where its columns are contiguous, `b_column` elements apart.
; turn: the function that transposes tiles of pairs.

define internal void @turned(ptr %b, ptr %packed, i64 %columns, i64 %depth, i64 %steps, i64 %b_column, ptr %turn) #0 {
entry:
  %pairs = lshr i64 %depth, 1
  %pair.step = lshr i64 %b_column, 1
  %beyond = sub i64 %steps, %pairs
  %bytes = shl i64 %beyond, 7
  %end.skip = shl i64 %pairs, 5
  br label %panel
panel:
  %j = phi i64 [ 0, %entry ], [ %j.next, %panel ]
  %left = sub i64 %columns, %j
  %width = call i64 @llvm.smin.i64(i64 %left, i64 32)
  %panel.skip = mul i64 %j, %steps
  %to = getelementptr i32, ptr %packed, i64 %panel.skip
  %end = getelementptr i32, ptr %to, i64 %end.skip
  call void @llvm.memset.p0.i64(ptr align 64 %end, i8 0, i64 %bytes, i1 false)
  %from.skip = mul i64 %j, %b_column
  %from = getelementptr i16, ptr %b, i64 %from.skip
  call void %turn(ptr %to, i64 32, ptr %from, i64 %pair.step, i64 %pairs, i64 %width)
  %j.next = add i64 %j, 32
  %j.more = icmp slt i64 %j.next, %columns
  br i1 %j.more, label %panel, label %done
done:
  ret void
}
