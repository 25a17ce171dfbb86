; Run a plan's last pass, from a buffer to columns. flag: its `end` or `swap`.

define internal void @last.pass(ptr %plan, ptr %buffer, ptr %y, i64 %step, i64 %flag, i64 %ahead, Line.element %scale) #0 {
  %count = load i64, ptr %plan, align 8
  %before = sub i64 %count, 1
  %at = mul i64 %before, 4
  %words = getelementptr i64, ptr %plan, i64 %at
  %last.at = getelementptr i64, ptr %words, i64 1
  %last = load ptr, ptr %last.at, align 8
  %l.at = getelementptr i64, ptr %words, i64 3
  %l = load i64, ptr %l.at, align 8
  call void %last(ptr %buffer, ptr %y, i64 %l, i64 %step, i64 %flag, i64 %ahead, Line.element %scale)
  ret void
}
