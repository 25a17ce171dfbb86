; Make an Array for every result and store the address of its memory in `all.buffers`, behind the inputs'.
; Afterwards `results` holds a new reference to each. Returns false with an exception set, and holds nothing, where
; memory runs out or a warning about a donated array was turned into an error.

define internal i1 @tracer.make_all(ptr %record, ptr %results, ptr %all.buffers, ptr %owners, ptr %common) {
entry:
  %count = field i64 %record Record.outputs
  %inputs = field i64 %record Record.inputs
  %buffers = getelementptr ptr, ptr %all.buffers, i64 %inputs
  %table = field ptr %record Record.results
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %made ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %make, label %done
make:
  %result = getelementptr [Result.bytes x i8], ptr %table, i64 %i
  %buffer = getelementptr ptr, ptr %buffers, i64 %i
  %donor = field i64 %result Result.donor
  %owner.at = getelementptr ptr, ptr %owners, i64 %donor
  %given.at = getelementptr ptr, ptr %all.buffers, i64 %donor
  %has.donor = icmp sge i64 %donor, 0
  br i1 %has.donor, label %take, label %fresh
fresh:
  %new.value = call ptr @tracer.new_value(ptr %record, ptr %result, ptr %common)
  br label %wrap
take:
  %owner = load ptr, ptr %owner.at
  %taken.value = call ptr @tracer.take_donated(ptr %record, ptr %result, ptr %owner, ptr %given.at, ptr %common)
  br label %wrap
wrap:
  %value = phi ptr [ %new.value, %fresh ], [ %taken.value, %take ]
  %array = call ptr @tracer.wrap(ptr %record, ptr %result, ptr %value, ptr %buffer)
  %failed = icmp eq ptr %array, null
  br i1 %failed, label %no, label %made
made:
  %slot = getelementptr ptr, ptr %results, i64 %i
  store ptr %array, ptr %slot
  %i.next = add i64 %i, 1
  br label %loop
done:
  ret i1 true
no:
  call void @tracer.release(ptr %results, i64 %i)
  ret i1 false
}
