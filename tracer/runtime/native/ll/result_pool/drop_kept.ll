; Free the block that the table has kept for longest, or nothing where that entry is empty by now.

define internal void @tracer.drop_kept() {
  %i = load i64, ptr @tracer.kept.oldest, align 8
  %block = call ptr @tracer.take_kept(i64 %i)
  call void @free(ptr %block)
  %i.next = add i64 %i, 1
  %i.wrapped = urem i64 %i.next, Pool.blocks
  store i64 %i.wrapped, ptr @tracer.kept.oldest, align 8
  ret void
}
