; Remove the block at index `i` from the table and return its address: null for an empty entry.

define internal ptr @tracer.take_kept(i64 %i) {
  %at = getelementptr [2 x i64], ptr @tracer.kept, i64 %i
  %size.at = getelementptr i64, ptr %at, i64 1
  %address = load ptr, ptr %at, align 8
  %size = load i64, ptr %size.at, align 8
  store ptr null, ptr %at, align 8
  store i64 0, ptr %size.at, align 8
  %all = load i64, ptr @tracer.kept.bytes, align 8
  %left = sub i64 %all, %size
  store i64 %left, ptr @tracer.kept.bytes, align 8
  ret ptr %address
}
