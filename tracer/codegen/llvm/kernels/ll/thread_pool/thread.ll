; Run jobs until the pool stops: the main function of a thread. number: the thread's index.
; Blocks all signals. Spins after a job, then sleeps on the condition. Leaves out jobs that allow fewer threads.

define internal ptr @pool.thread(ptr %number) {
entry:
  %mask = alloca [128 x i8], align 16
  call i32 @sigfillset(ptr %mask)
  call i32 @pthread_sigmask(i32 Threads.sig_block, ptr %mask, ptr null)
  %id = ptrtoint ptr %number to i64
  br label %idle
idle:
  %seen = phi i64 [ -1, %entry ], [ %job, %invited ], [ %job, %worked ]
  br label %spin
spin:
  %spins = phi i64 [ 0, %idle ], [ %spins.next, %pause ]
  %state = load atomic i64, ptr @pool.state acquire, align 8
  %current = lshr i64 %state, 32
  %new = icmp ne i64 %current, %seen
  br i1 %new, label %found, label %tired
tired:
  %spins.next = add i64 %spins, 1
  %enough = icmp ugt i64 %spins.next, Threads.spins
  br i1 %enough, label %sleep, label %pause
pause:
  Threads.pause
  br label %spin
sleep:
  call i32 @pthread_mutex_lock(ptr @pool.mutex)
  %more = atomicrmw add ptr @pool.sleepers, i32 1 seq_cst
  br label %check
check:
  %state.asleep = load atomic i64, ptr @pool.state seq_cst, align 8
  %current.asleep = lshr i64 %state.asleep, 32
  %new.asleep = icmp ne i64 %current.asleep, %seen
  %stop.asleep = load atomic i32, ptr @pool.stopping monotonic, align 4
  %stops.asleep = icmp ne i32 %stop.asleep, 0
  %wakes = or i1 %new.asleep, %stops.asleep
  br i1 %wakes, label %awake, label %wait
wait:
  call i32 @pthread_cond_wait(ptr @pool.condition, ptr @pool.mutex)
  br label %check
awake:
  %less = atomicrmw sub ptr @pool.sleepers, i32 1 seq_cst
  call i32 @pthread_mutex_unlock(ptr @pool.mutex)
  br label %found
found:
  %job = phi i64 [ %current, %spin ], [ %current.asleep, %awake ]
  %stop = load atomic i32, ptr @pool.stopping monotonic, align 4
  %stops = icmp ne i32 %stop, 0
  br i1 %stops, label %end, label %invited
end:
  ret ptr null
invited:
  %limit = load atomic i64, ptr @pool.limit monotonic, align 8
  %takes.part = icmp ult i64 %id, %limit
  br i1 %takes.part, label %worked, label %idle
worked:
  call void @pool.work(i64 %job, i64 Threads.back)
  br label %idle
}
