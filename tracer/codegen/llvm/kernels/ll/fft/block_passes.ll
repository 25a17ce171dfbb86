; Transform a block of columns from x to y, which may be the same, by a plan's passes between two buffers.
; step: numbers from one row of x and y to the next. end, ahead: see `column_passes`.

define internal void @block.passes(ptr %x, ptr %y, ptr %one, ptr %two, i64 %step, i64 %end, i64 %ahead, Line.element %scale, ptr %plan) #0 {
  call void @first.pass(ptr %plan, ptr %x, ptr %one, i64 %step, i64 %ahead)
  %z = call ptr @between(ptr %plan, i64 1, ptr %one, ptr %two)
  call void @last.pass(ptr %plan, ptr %z, ptr %y, i64 %step, i64 %end, i64 %ahead, Line.element %scale)
  ret void
}
