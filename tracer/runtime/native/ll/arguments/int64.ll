; Store a Python int as i64 at `to`. Returns false, with no exception set, where it needs more than 64 bits.

define internal i1 @tracer.int64(ptr %int, ptr %to) {
  %overflow.at = alloca i32
  %number = call i64 @PyLong_AsLongLongAndOverflow(ptr %int, ptr %overflow.at)
  store i64 %number, ptr %to
  %overflow = load i32, ptr %overflow.at
  %in.range = icmp eq i32 %overflow, 0
  ret i1 %in.range
}
