; Leave an arena to the next call, and free the one that was left before. An arena on the stack is left alone.

define internal void @tracer.give_arena(ptr %record, ptr %arena, i64 %bytes) {
  %small = load i64, ptr @tracer.small
  %is.small = icmp ule i64 %bytes, %small
  br i1 %is.small, label %done, label %leave
leave:
  %spare.at = field ptr %record Record.spare
  %bits = ptrtoint ptr %arena to i64
  %old.bits = atomicrmw xchg ptr %spare.at, i64 %bits acq_rel
  %old = inttoptr i64 %old.bits to ptr
  call void @free(ptr %old)
  br label %done
done:
  ret void
}
