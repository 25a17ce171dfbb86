; Add the process's processor time to a word, which then holds the nanoseconds of all threads since `tick_processors`.

define internal void @library.tock_processors(i64 %word) #2 {
  %at = getelementptr i64, ptr @tracer_words, i64 %word
  %now = call i64 @tracer_processor_time()
  %old = load volatile i64, ptr %at, align 8
  %new = add i64 %old, %now
  store volatile i64 %new, ptr %at, align 8
  ret void
}
