; Copy rows of b in pairs, whose elements alternate, in panels of 32 columns: steps pairs, zeros beyond `depth` rows.
; Reads nothing beyond the last column. b_row: elements from row to row. The rows of b are contiguous.

define internal void @pairs(ptr %b, ptr %packed, i64 %columns, i64 %depth, i64 %steps, i64 %b_row) #0 {
entry:
  br label %pair
pair:
  %q = phi i64 [ 0, %entry ], [ %q.next, %pair.end ]
  %even = shl i64 %q, 1
  %odd = or i64 %even, 1
  %has.even = icmp slt i64 %even, %depth
  %has.odd = icmp slt i64 %odd, %depth
  %even.skip = mul i64 %even, %b_row
  %even.row = getelementptr i16, ptr %b, i64 %even.skip
  %odd.row = getelementptr i16, ptr %even.row, i64 %b_row
  %to.skip = shl i64 %q, 5
  %to = getelementptr i32, ptr %packed, i64 %to.skip
  br label %panel
panel:
  %j = phi i64 [ 0, %pair ], [ %j.next, %panel ]
  %left = sub i64 %columns, %j
  %kept = call i64 @llvm.smin.i64(i64 %left, i64 32)
  %count = trunc i64 %kept to i16
  %count.one = insertelement <32 x i16> poison, i16 %count, i64 0
  %count.all = shufflevector <32 x i16> %count.one, <32 x i16> poison, <32 x i32> zeroinitializer
  %mask = icmp ult <32 x i16> <i16 0, i16 1, i16 2, i16 3, i16 4, i16 5, i16 6, i16 7, i16 8, i16 9, i16 10, i16 11, i16 12, i16 13, i16 14, i16 15, i16 16, i16 17, i16 18, i16 19, i16 20, i16 21, i16 22, i16 23, i16 24, i16 25, i16 26, i16 27, i16 28, i16 29, i16 30, i16 31>, %count.all
  %even.j = getelementptr i16, ptr %even.row, i64 %j
  %odd.j = getelementptr i16, ptr %odd.row, i64 %j
  %even.at = select i1 %has.even, ptr %even.j, ptr @no.row
  %odd.at = select i1 %has.odd, ptr %odd.j, ptr @no.row
  %evens = call <32 x i16> @llvm.masked.load.v32i16.p0(ptr %even.at, i32 2, <32 x i1> %mask, <32 x i16> zeroinitializer)
  %odds = call <32 x i16> @llvm.masked.load.v32i16.p0(ptr %odd.at, i32 2, <32 x i1> %mask, <32 x i16> zeroinitializer)
  %low = shufflevector <32 x i16> %evens, <32 x i16> %odds, <32 x i32> <i32 0, i32 32, i32 1, i32 33, i32 2, i32 34, i32 3, i32 35, i32 4, i32 36, i32 5, i32 37, i32 6, i32 38, i32 7, i32 39, i32 8, i32 40, i32 9, i32 41, i32 10, i32 42, i32 11, i32 43, i32 12, i32 44, i32 13, i32 45, i32 14, i32 46, i32 15, i32 47>
  %high = shufflevector <32 x i16> %evens, <32 x i16> %odds, <32 x i32> <i32 16, i32 48, i32 17, i32 49, i32 18, i32 50, i32 19, i32 51, i32 20, i32 52, i32 21, i32 53, i32 22, i32 54, i32 23, i32 55, i32 24, i32 56, i32 25, i32 57, i32 26, i32 58, i32 27, i32 59, i32 28, i32 60, i32 29, i32 61, i32 30, i32 62, i32 31, i32 63>
  %panel.skip = mul i64 %j, %steps
  %low.at = getelementptr i32, ptr %to, i64 %panel.skip
  %high.at = getelementptr i32, ptr %low.at, i64 16
  store <32 x i16> %low, ptr %low.at, align 64
  store <32 x i16> %high, ptr %high.at, align 64
  %j.next = add i64 %j, 32
  %j.more = icmp slt i64 %j.next, %columns
  br i1 %j.more, label %panel, label %pair.end
pair.end:
  %q.next = add i64 %q, 1
  %q.more = icmp slt i64 %q.next, %steps
  br i1 %q.more, label %pair, label %done
done:
  ret void
}
