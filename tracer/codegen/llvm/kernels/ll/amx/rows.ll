; Copy `rows` rows of a in blocks of 32 rows, 32 elements of each row at a time, with zeros up to `filled` elements.
; Reads nothing beyond `depth` elements of a row.

define internal void @rows(ptr %a, ptr %packed, i64 %rows, i64 %depth, i64 %filled, i64 %a_row) #0 {
entry:
  %most = and i64 %depth, -128
  %whole = and i64 %depth, -32
  %left = sub i64 %depth, %whole
  %kept = call i64 @llvm.smin.i64(i64 %left, i64 32)
  %count = trunc i64 %kept to i16
  %count.one = insertelement <32 x i16> poison, i16 %count, i64 0
  %count.all = shufflevector <32 x i16> %count.one, <32 x i16> poison, <32 x i32> zeroinitializer
  %mask = icmp ult <32 x i16> <i16 0, i16 1, i16 2, i16 3, i16 4, i16 5, i16 6, i16 7, i16 8, i16 9, i16 10, i16 11, i16 12, i16 13, i16 14, i16 15, i16 16, i16 17, i16 18, i16 19, i16 20, i16 21, i16 22, i16 23, i16 24, i16 25, i16 26, i16 27, i16 28, i16 29, i16 30, i16 31>, %count.all
  br label %row
row:
  %i = phi i64 [ 0, %entry ], [ %i.next, %row.end ]
  %from.skip = mul i64 %i, %a_row
  %from = getelementptr i16, ptr %a, i64 %from.skip
  %block = and i64 %i, -32
  %within = and i64 %i, 31
  %block.skip = mul i64 %block, %filled
  %row.skip = mul i64 %within, 32
  %to.skip = add i64 %block.skip, %row.skip
  %to = getelementptr i16, ptr %packed, i64 %to.skip
  br label %four
four:
  %q = phi i64 [ 0, %row ], [ %q.next, %four.on ]
  %q.more = icmp slt i64 %q, %most
  br i1 %q.more, label %four.on, label %one
four.on:
  %q0 = add i64 %q, 0
  %q1 = add i64 %q, 32
  %q2 = add i64 %q, 64
  %q3 = add i64 %q, 96
  %from0 = getelementptr i16, ptr %from, i64 %q0
  %skip0 = shl i64 %q0, 5
  %to0 = getelementptr i16, ptr %to, i64 %skip0
  %whole0 = load <32 x i16>, ptr %from0, align 2
  store <32 x i16> %whole0, ptr %to0, align 64
  %from1 = getelementptr i16, ptr %from, i64 %q1
  %skip1 = shl i64 %q1, 5
  %to1 = getelementptr i16, ptr %to, i64 %skip1
  %whole1 = load <32 x i16>, ptr %from1, align 2
  store <32 x i16> %whole1, ptr %to1, align 64
  %from2 = getelementptr i16, ptr %from, i64 %q2
  %skip2 = shl i64 %q2, 5
  %to2 = getelementptr i16, ptr %to, i64 %skip2
  %whole2 = load <32 x i16>, ptr %from2, align 2
  store <32 x i16> %whole2, ptr %to2, align 64
  %from3 = getelementptr i16, ptr %from, i64 %q3
  %skip3 = shl i64 %q3, 5
  %to3 = getelementptr i16, ptr %to, i64 %skip3
  %whole3 = load <32 x i16>, ptr %from3, align 2
  store <32 x i16> %whole3, ptr %to3, align 64
  %q.next = add i64 %q, 128
  br label %four
one:
  %s = phi i64 [ %q, %four ], [ %s.next, %one.on ]
  %s.more = icmp slt i64 %s, %whole
  br i1 %s.more, label %one.on, label %ones.end
one.on:
  %from.one = getelementptr i16, ptr %from, i64 %s
  %skip.one = shl i64 %s, 5
  %to.one = getelementptr i16, ptr %to, i64 %skip.one
  %whole.one = load <32 x i16>, ptr %from.one, align 2
  store <32 x i16> %whole.one, ptr %to.one, align 64
  %s.next = add i64 %s, 32
  br label %one
ones.end:
  %is.whole = icmp eq i64 %left, 0
  br i1 %is.whole, label %row.end, label %some
some:
  %from.last = getelementptr i16, ptr %from, i64 %whole
  %last.skip = shl i64 %whole, 5
  %to.last = getelementptr i16, ptr %to, i64 %last.skip
  %last = call <32 x i16> @llvm.masked.load.v32i16.p0(ptr %from.last, i32 2, <32 x i1> %mask, <32 x i16> zeroinitializer)
  store <32 x i16> %last, ptr %to.last, align 64
  br label %row.end
row.end:
  %i.next = add i64 %i, 1
  %i.more = icmp slt i64 %i.next, %rows
  br i1 %i.more, label %row, label %done
done:
  ret void
}
