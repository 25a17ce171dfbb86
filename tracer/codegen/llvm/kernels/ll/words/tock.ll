; Add the processor's cycle counter to a word, and 1 to the next word, which counts the runs.

define internal void @library.tock(i64 %word) #2 {
  %at = getelementptr i64, ptr @tracer_words, i64 %word
  %cycles = call i64 @llvm.readcyclecounter()
  %old = load volatile i64, ptr %at, align 8
  %new = add i64 %old, %cycles
  store volatile i64 %new, ptr %at, align 8
  %next = getelementptr i64, ptr %at, i64 1
  %runs = load volatile i64, ptr %next, align 8
  %more = add i64 %runs, 1
  store volatile i64 %more, ptr %next, align 8
  ret void
}
