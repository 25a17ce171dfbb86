; Record a fault in the context, unless an earlier one is recorded: at a lower site, or at a lower position of the site.
; Sets the status to FAULT where it was DONE. values: for the message. Threads take the context's lock in turn.

define internal void @tracer.fault(ptr %context, i32 %site, i64 %position, i64 %value0, i64 %value1, i64 %value2, i64 %value3) #1 {
entry:
  %lock = getelementptr i8, ptr %context, i64 Context.lock
  br label %wait
wait:
  %held = atomicrmw xchg ptr %lock, i64 1 acquire
  %free = icmp eq i64 %held, 0
  br i1 %free, label %locked, label %wait
locked:
  %site.slot = getelementptr i8, ptr %context, i64 Context.fault_site
  %position.slot = getelementptr i8, ptr %context, i64 Context.fault_position
  %old.site = load i32, ptr %site.slot, align 4
  %old.position = load i64, ptr %position.slot, align 8
  %none = icmp slt i32 %old.site, 0
  %earlier = icmp slt i32 %site, %old.site
  %same = icmp eq i32 %site, %old.site
  %before = icmp slt i64 %position, %old.position
  %same.before = and i1 %same, %before
  %first = or i1 %earlier, %same.before
  %record = or i1 %none, %first
  br i1 %record, label %write, label %done
write:
  store i32 %site, ptr %site.slot, align 4
  store i64 %position, ptr %position.slot, align 8
  %slot0 = getelementptr i8, ptr %context, i64 Context.fault_value0
  store i64 %value0, ptr %slot0, align 8
  %slot1 = getelementptr i8, ptr %context, i64 Context.fault_value1
  store i64 %value1, ptr %slot1, align 8
  %slot2 = getelementptr i8, ptr %context, i64 Context.fault_value2
  store i64 %value2, ptr %slot2, align 8
  %slot3 = getelementptr i8, ptr %context, i64 Context.fault_value3
  store i64 %value3, ptr %slot3, align 8
  %status = load i32, ptr %context, align 4
  %new = icmp eq i32 %status, 0
  %set = select i1 %new, i32 Status.FAULT, i32 %status
  store i32 %set, ptr %context, align 4
  br label %done
done:
  store atomic i64 0, ptr %lock release, align 8
  ret void
}
