; Return an arena of `bytes` bytes, aligned to 64: the one that the last call left, or new memory.
; Memory of Pool.large bytes or more comes from the result pool, which asks for huge pages.
; Returns null with MemoryError set where there is none.

define internal ptr @tracer.take_arena(ptr %record, i64 %bytes) {
  %spare.at = field ptr %record Record.spare
  %spare.bits = atomicrmw xchg ptr %spare.at, i64 0 acq_rel
  %has.spare = icmp ne i64 %spare.bits, 0
  br i1 %has.spare, label %reuse, label %fresh
reuse:
  %spare = inttoptr i64 %spare.bits to ptr
  ret ptr %spare
fresh:
  %is.large = icmp uge i64 %bytes, Pool.large
  br i1 %is.large, label %large, label %small
large:
  %pooled = call ptr @tracer_result_new(ptr null, i64 %bytes)
  br label %check
small:
  %more = add i64 %bytes, 63
  %whole = and i64 %more, -64
  %allocated = call ptr @aligned_alloc(i64 64, i64 %whole)
  br label %check
check:
  %new = phi ptr [ %pooled, %large ], [ %allocated, %small ]
  %failed = icmp eq ptr %new, null
  br i1 %failed, label %fail, label %done
fail:
  %set = call ptr @PyErr_NoMemory()
  br label %done
done:
  ret ptr %new
}
