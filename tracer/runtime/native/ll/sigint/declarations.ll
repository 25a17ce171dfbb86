; The state of Ctrl-C, which is the process's, and CPython's symbols.
; stop: the word that our handler sets. never: the word of calls that do not listen. depth: calls that listen now.
; previous: the handler that ours stands in front of. tracer_main_thread: the main thread's identifier.

@tracer_main_thread = external global i64
@tracer.stop = internal global i32 0
@tracer.never = internal global i32 0
@tracer.depth = internal global i64 0
@tracer.previous = internal global ptr null
declare i64 @PyThread_get_thread_ident()
declare ptr @PyOS_getsig(i32)
declare ptr @PyOS_setsig(i32, ptr)
