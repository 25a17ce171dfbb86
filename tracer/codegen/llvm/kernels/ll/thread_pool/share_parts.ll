; Run a job: call f(given, begin, end) for parts of range(count), and return when all are done.
; grain: parts are whole multiples of it. times: parts for each thread. most: the largest number of grains in a part.
; The last part takes the rest, and is less than twice as long as another. The caller works alone where the count is one
; grain, one thread is allowed, or another job is on.

define internal void @pool.share(ptr %f, ptr %given, i64 %count, i64 %grain, i64 %times, i64 %most) {
entry:
  %allowed = load atomic i32, ptr @tracer_threads monotonic, align 4
  %together = icmp sgt i32 %allowed, 1
  %pieces = udiv i64 %count, %grain
  %divisible = icmp ugt i64 %pieces, 1
  %worth = and i1 %together, %divisible
  br i1 %worth, label %try, label %alone
alone:
  call void %f(ptr %given, i64 0, i64 %count)
  ret void
try:
  %taken = cmpxchg ptr @pool.busy, i32 0, i32 1 acquire monotonic
  %mine = extractvalue { i32, i1 } %taken, 1
  br i1 %mine, label %ready, label %alone
ready:
  %threads = zext i32 %allowed to i64
  %others = sub i64 %threads, 1
  %helpers = call i64 @llvm.umin.i64(i64 %others, i64 Threads.max)
  call void @pool.start(i64 %helpers)
  %all.threads = add i64 %helpers, 1
  %wanted = mul i64 %all.threads, %times
  %each = udiv i64 %pieces, %wanted
  %shared = mul i64 %each, %wanted
  %exact = icmp eq i64 %shared, %pieces
  %several = icmp ugt i64 %times, 1
  %fair = or i1 %exact, %several
  %half = lshr i64 %each, 1 ; or one thread has twice as much to do
  %fitting = select i1 %fair, i64 %each, i64 %half
  %whole = call i64 @llvm.umax.i64(i64 %fitting, i64 1)
  %few = call i64 @llvm.umin.i64(i64 %whole, i64 %most)
  %chunk = mul i64 %few, %grain
  %parts = udiv i64 %count, %chunk
  %old = load atomic i64, ptr @pool.state monotonic, align 8
  %closed = or i64 %old, 4294967295
  store atomic i64 %closed, ptr @pool.state monotonic, align 8
  store atomic ptr %f, ptr @pool.f release, align 8 ; whoever reads one of these finds the former job closed
  store atomic ptr %given, ptr @pool.given release, align 8
  store atomic i64 %count, ptr @pool.count release, align 8
  store atomic i64 %chunk, ptr @pool.chunk release, align 8
  store atomic i64 %parts, ptr @pool.parts release, align 8
  store atomic i64 %helpers, ptr @pool.limit monotonic, align 8
  store atomic i64 0, ptr @pool.finished monotonic, align 8
  %old.job = lshr i64 %old, 32
  %job = add i64 %old.job, 1
  %new = shl i64 %job, 32
  store atomic i64 %new, ptr @pool.state seq_cst, align 8
  %sleepers = load atomic i32, ptr @pool.sleepers seq_cst, align 4
  %asleep = icmp ne i32 %sleepers, 0
  br i1 %asleep, label %wake, label %work
wake:
  call i32 @pthread_mutex_lock(ptr @pool.mutex)
  call i32 @pthread_cond_broadcast(ptr @pool.condition)
  call i32 @pthread_mutex_unlock(ptr @pool.mutex)
  br label %work
work:
  %low = and i64 %job, 4294967295
  call void @pool.work(i64 %low, i64 Threads.front)
  br label %wait
wait:
  %spins = phi i64 [ 0, %work ], [ %spins.next, %again ]
  %finished = load atomic i64, ptr @pool.finished acquire, align 8
  %all = icmp eq i64 %finished, %parts
  br i1 %all, label %done, label %rest
rest:
  %long = icmp ugt i64 %spins, Threads.spins
  br i1 %long, label %yield, label %pause
yield:
  call i32 @sched_yield()
  br label %again
pause:
  Threads.pause
  br label %again
again:
  %spins.next = add i64 %spins, 1
  br label %wait
done:
  store atomic i32 0, ptr @pool.busy release, align 4
  ret void
}
