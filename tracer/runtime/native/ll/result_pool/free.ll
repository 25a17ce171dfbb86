; Keep a block for the next array of its size: NumPy's free. Older blocks are freed where the table is full.
; A block larger than the whole table is freed at once.

define void @tracer_result_free(ptr %context, ptr %block, i64 %bytes) {
entry:
  %whole = call i64 @tracer.whole(i64 %bytes)
  %too.large = icmp ugt i64 %whole, Pool.capacity
  br i1 %too.large, label %give.back, label %room
give.back:
  call void @free(ptr %block)
  ret void
room:
  %all = load i64, ptr @tracer.kept.bytes, align 8
  %sum = add i64 %all, %whole
  %over = icmp ugt i64 %sum, Pool.capacity
  %place = call i64 @tracer.find_kept(i64 0)
  %full = icmp eq i64 %place, Pool.blocks
  %crowded = or i1 %over, %full
  br i1 %crowded, label %drop, label %keep
drop:
  call void @tracer.drop_kept()
  br label %room
keep:
  %at = getelementptr [2 x i64], ptr @tracer.kept, i64 %place
  %size.at = getelementptr i64, ptr %at, i64 1
  store ptr %block, ptr %at, align 8
  store i64 %whole, ptr %size.at, align 8
  store i64 %sum, ptr @tracer.kept.bytes, align 8
  ret void
}
