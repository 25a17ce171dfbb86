; Run a plan's first pass, from columns to a buffer. flag: its `ahead` or `swap`, see `column_passes`.

define internal void @first.pass(ptr %plan, ptr %x, ptr %buffer, i64 %step, i64 %flag) #0 {
  %first.at = getelementptr i64, ptr %plan, i64 1
  %first = load ptr, ptr %first.at, align 8
  %m.at = getelementptr i64, ptr %plan, i64 2
  %m = load i64, ptr %m.at, align 8
  %roots.at = getelementptr i64, ptr %plan, i64 4
  %roots = load ptr, ptr %roots.at, align 8
  call void %first(ptr %x, ptr %buffer, ptr %roots, i64 %m, i64 %step, i64 %flag)
  ret void
}
