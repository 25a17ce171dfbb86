; The pool's state, which all threads share, and the POSIX functions that it binds.
; state: the job's number in the high half; parts taken from the back, and from the front, in the low quarters.
; finished: parts that are done. f, given, count, chunk, parts: the job. limit: threads besides the caller's that may
; help.
; busy: 1 while a job is on. sleepers: threads that wait on the condition. stopping: 1 once the pool ends.
; started: threads that were made, whose handles are in `threads`. tracer_threads: the setting, read at every job.
; The words that many threads write lie in cache lines of their own.

@tracer_threads = external global i32
@pool.state = internal global i64 0, align 64
@pool.finished = internal global i64 0, align 64
@pool.f = internal global ptr null, align 64
@pool.given = internal global ptr null
@pool.count = internal global i64 0
@pool.chunk = internal global i64 0
@pool.parts = internal global i64 0
@pool.limit = internal global i64 0
@pool.busy = internal global i32 0, align 64
@pool.sleepers = internal global i32 0, align 64
@pool.stopping = internal global i32 0
@pool.started = internal global i64 0
@pool.mutex = internal global [128 x i8] zeroinitializer, align 64
@pool.condition = internal global [128 x i8] zeroinitializer, align 64
@pool.threads = internal global [Threads.max x i64] zeroinitializer, align 64
declare i32 @pthread_attr_init(ptr)
declare i32 @pthread_attr_setstacksize(ptr, i64)
declare i32 @pthread_attr_destroy(ptr)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_join(i64, ptr)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @sigfillset(ptr)
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)
declare i32 @sched_yield()
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.umax.i64(i64, i64)
Threads.pause_declaration
