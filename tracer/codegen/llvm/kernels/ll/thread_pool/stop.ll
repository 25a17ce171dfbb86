; End all threads and wait for them: before the process ends. No thread may be started afterwards.

define void @tracer_pool_stop() {
entry:
  store atomic i32 1, ptr @pool.stopping monotonic, align 4
  %started = load i64, ptr @pool.started, align 8
  %none = icmp eq i64 %started, 0
  br i1 %none, label %done, label %wake
wake:
  call i32 @pthread_mutex_lock(ptr @pool.mutex)
  call i32 @pthread_cond_broadcast(ptr @pool.condition)
  call i32 @pthread_mutex_unlock(ptr @pool.mutex)
  br label %loop
loop:
  %i = phi i64 [ 0, %wake ], [ %i.next, %join ]
  %more = icmp ult i64 %i, %started
  br i1 %more, label %join, label %done
join:
  %slot = getelementptr i64, ptr @pool.threads, i64 %i
  %thread = load i64, ptr %slot, align 8
  call i32 @pthread_join(i64 %thread, ptr null)
  %i.next = add i64 %i, 1
  br label %loop
done:
  ret void
}
