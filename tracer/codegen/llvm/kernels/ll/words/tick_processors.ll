; Subtract the process's processor time from a word; `tock_processors` adds it again.

define internal void @library.tick_processors(i64 %word) #2 {
  %at = getelementptr i64, ptr @tracer_words, i64 %word
  %now = call i64 @tracer_processor_time()
  %old = load volatile i64, ptr %at, align 8
  %new = sub i64 %old, %now
  store volatile i64 %new, ptr %at, align 8
  ret void
}
