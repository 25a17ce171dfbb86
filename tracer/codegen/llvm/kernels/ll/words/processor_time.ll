; Return the nanoseconds that this process has used of all processors.

declare i32 @clock_gettime(i32, ptr)

define internal i64 @tracer_processor_time() #2 {
  %time = alloca { i64, i64 }, align 8
  %status = call i32 @clock_gettime(i32 Words.process_clock, ptr %time)
  %seconds = load i64, ptr %time, align 8
  %rest_at = getelementptr i64, ptr %time, i64 1
  %rest = load i64, ptr %rest_at, align 8
  %scaled = mul i64 %seconds, 1000000000
  %sum = add i64 %scaled, %rest
  ret i64 %sum
}
