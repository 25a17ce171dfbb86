; Record a fault for each lane whose byte of the mask is not 0.
; data: i64[1 + 4, lanes], the lanes' positions, then each of the message's values.

define internal void @tracer.fault_lanes(ptr %context, i32 %site, i64 %lanes, ptr %mask, ptr %data) #1 {
entry:
  br label %loop
loop:
  %lane = phi i64 [ 0, %entry ], [ %following, %next ]
  %flag.slot = getelementptr i8, ptr %mask, i64 %lane
  %flag = load i8, ptr %flag.slot, align 1
  %holds = icmp ne i8 %flag, 0
  br i1 %holds, label %record, label %next
record:
  %position.slot = getelementptr i64, ptr %data, i64 %lane
  %position = load i64, ptr %position.slot, align 8
  %row0 = mul i64 %lanes, 1
  %at0 = add i64 %row0, %lane
  %value0.slot = getelementptr i64, ptr %data, i64 %at0
  %value0 = load i64, ptr %value0.slot, align 8
  %row1 = mul i64 %lanes, 2
  %at1 = add i64 %row1, %lane
  %value1.slot = getelementptr i64, ptr %data, i64 %at1
  %value1 = load i64, ptr %value1.slot, align 8
  %row2 = mul i64 %lanes, 3
  %at2 = add i64 %row2, %lane
  %value2.slot = getelementptr i64, ptr %data, i64 %at2
  %value2 = load i64, ptr %value2.slot, align 8
  %row3 = mul i64 %lanes, 4
  %at3 = add i64 %row3, %lane
  %value3.slot = getelementptr i64, ptr %data, i64 %at3
  %value3 = load i64, ptr %value3.slot, align 8
  call void @tracer.fault(ptr %context, i32 %site, i64 %position, i64 %value0, i64 %value1, i64 %value2, i64 %value3)
  br label %next
next:
  %following = add i64 %lane, 1
  %more = icmp slt i64 %following, %lanes
  br i1 %more, label %loop, label %done
done:
  ret void
}
