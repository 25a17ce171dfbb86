; Claim parts of a job and run them until none is left.
; step: what one claim adds to `pool.state`: Threads.front takes parts from the first on, Threads.back from the last.
; Claiming is a compare-and-swap of `pool.state`, so it fails once another job has begun.

define internal void @pool.work(i64 %job, i64 %step) {
entry:
  %is.front = icmp eq i64 %step, Threads.front
  br label %look
look:
  %state = load atomic i64, ptr @pool.state acquire, align 8
  %now = lshr i64 %state, 32
  %same = icmp eq i64 %now, %job
  %first = and i64 %state, 65535
  %rest = lshr i64 %state, 16
  %last = and i64 %rest, 65535
  %taken = add i64 %first, %last
  %parts = load atomic i64, ptr @pool.parts acquire, align 8
  %left = icmp ult i64 %taken, %parts
  %open = and i1 %same, %left
  br i1 %open, label %claim, label %done
claim:
  %f = load atomic ptr, ptr @pool.f acquire, align 8
  %given = load atomic ptr, ptr @pool.given acquire, align 8
  %count = load atomic i64, ptr @pool.count acquire, align 8
  %chunk = load atomic i64, ptr @pool.chunk acquire, align 8
  %following = add i64 %state, %step
  %swapped = cmpxchg ptr @pool.state, i64 %state, i64 %following acq_rel monotonic
  %claimed = extractvalue { i64, i1 } %swapped, 1
  br i1 %claimed, label %run, label %look
run:
  %after.last = sub i64 %parts, %last
  %from.end = sub i64 %after.last, 1
  %part = select i1 %is.front, i64 %first, i64 %from.end
  %begin = mul i64 %part, %chunk
  %next.part = add i64 %part, 1
  %is.last = icmp eq i64 %next.part, %parts
  %next = mul i64 %next.part, %chunk
  %end = select i1 %is.last, i64 %count, i64 %next
  call void %f(ptr %given, i64 %begin, i64 %end)
  %before = atomicrmw add ptr @pool.finished, i64 1 release
  br label %look
done:
  ret void
}
