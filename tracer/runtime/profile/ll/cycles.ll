; Return the processor's cycle counter, which the clocks of a profile read.

declare i64 @llvm.readcyclecounter()

define i64 @tracer_cycles() {
  %now = call i64 @llvm.readcyclecounter()
  ret i64 %now
}
