; Forget all threads and the job: for a forked child, which has none of its parent's threads.

define void @tracer_pool_reset() {
  %old = load atomic i64, ptr @pool.state monotonic, align 8
  %closed = or i64 %old, 4294967295
  store atomic i64 %closed, ptr @pool.state monotonic, align 8
  store i64 0, ptr @pool.started, align 8
  store i32 0, ptr @pool.sleepers, align 4
  store atomic i32 0, ptr @pool.busy release, align 4
  ret void
}
