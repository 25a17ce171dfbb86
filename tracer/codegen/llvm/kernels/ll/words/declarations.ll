; Shared words and what their routines need. Python owns the words, and reads them from other threads.

@tracer_words = external global i64
declare i64 @llvm.readcyclecounter()
