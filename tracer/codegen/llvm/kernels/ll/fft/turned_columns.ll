; Transform columns of a line from x to y by a plan's passes between two buffers, times roots of unity: see `lines`.
; step: numbers from one row to the next. swap: whether to exchange the parts of the operand.

define internal void @turned.columns(ptr %x, ptr %y, ptr %one, ptr %two, i64 %step, i64 %swap, ptr %starts, ptr %lanes, ptr %plan) #0 {
  call void @first.pass(ptr %plan, ptr %x, ptr %one, i64 %step, i64 %swap)
  %z = call ptr @between(ptr %plan, i64 1, ptr %one, ptr %two)
  %count = load i64, ptr %plan, align 8
  %before = sub i64 %count, 1
  %at = mul i64 %before, 4
  %words = getelementptr i64, ptr %plan, i64 %at
  %turn.at = getelementptr i64, ptr %words, i64 1
  %turn = load ptr, ptr %turn.at, align 8
  %l.at = getelementptr i64, ptr %words, i64 3
  %l = load i64, ptr %l.at, align 8
  call void %turn(ptr %z, ptr %y, i64 %l, i64 %step, ptr %starts, ptr %lanes)
  ret void
}
