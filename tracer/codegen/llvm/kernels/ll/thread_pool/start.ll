; Have `wanted` threads started, as far as the system allows. The caller holds the pool.

define internal void @pool.start(i64 %wanted) {
entry:
  %attributes = alloca [128 x i8], align 16
  %started = load i64, ptr @pool.started, align 8
  %none = icmp eq i64 %started, 0
  br i1 %none, label %prepare, label %begin
prepare:
  call i32 @pthread_mutex_init(ptr @pool.mutex, ptr null)
  call i32 @pthread_cond_init(ptr @pool.condition, ptr null)
  br label %begin
begin:
  call i32 @pthread_attr_init(ptr %attributes)
  call i32 @pthread_attr_setstacksize(ptr %attributes, i64 Threads.stack_bytes)
  br label %loop
loop:
  %i = phi i64 [ %started, %begin ], [ %i.next, %made ]
  %more = icmp ult i64 %i, %wanted
  br i1 %more, label %make, label %done
make:
  %slot = getelementptr i64, ptr @pool.threads, i64 %i
  %number = inttoptr i64 %i to ptr
  %failed = call i32 @pthread_create(ptr %slot, ptr %attributes, ptr @pool.thread, ptr %number)
  %ok = icmp eq i32 %failed, 0
  br i1 %ok, label %made, label %done
made:
  %i.next = add i64 %i, 1
  store i64 %i.next, ptr @pool.started, align 8
  br label %loop
done:
  call i32 @pthread_attr_destroy(ptr %attributes)
  ret void
}
