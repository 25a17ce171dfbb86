; Write the object of every input to `objects`: captured handles first, then the leaves of the arguments in the plan's
; order. Returns false where the arguments' structure is not the plan's, or where flattening raised an exception.
; The references are borrowed; those to the leaves are new where the Record has `nodes`, and it holds none on failure.

define internal i1 @tracer.objects(ptr %record, ptr %args, ptr %objects) {
entry:
  %captured = field i64 %record Record.captured
  %leaves = field ptr %record Record.leaves
  br label %handles
handles:
  %i = phi i64 [ 0, %entry ], [ %i.next, %handle ]
  %more = icmp ult i64 %i, %captured
  br i1 %more, label %handle, label %arguments
handle:
  %leaf = getelementptr [Leaf.bytes x i8], ptr %leaves, i64 %i
  %array = field ptr %leaf Leaf.handle
  %slot = getelementptr ptr, ptr %objects, i64 %i
  store ptr %array, ptr %slot
  %i.next = add i64 %i, 1
  br label %handles
arguments:
  %first = getelementptr ptr, ptr %objects, i64 %captured
  %steps = field ptr %record Record.steps
  %positional = field i64 %record Record.positional
  %is.flat = icmp eq ptr %steps, null
  br i1 %is.flat, label %flat, label %tree
flat:
  %bytes = mul i64 %positional, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %first, ptr %args, i64 %bytes, i1 false)
  ret i1 true
tree:
  %keywords = field i64 %record Record.keywords
  %count = add i64 %positional, %keywords
  %order = field ptr %record Record.order
  %cursor = alloca ptr
  store ptr %first, ptr %cursor
  %nodes = field i64 %record Record.nodes
  %holds = icmp ne i64 %nodes, 0
  br label %walks
walks:
  %k = phi i64 [ 0, %tree ], [ %k.next, %walked ]
  %pc = phi ptr [ %steps, %tree ], [ %after, %walked ]
  %left = icmp ult i64 %k, %count
  br i1 %left, label %walk, label %done
walk:
  %number.at = getelementptr i64, ptr %order, i64 %k
  %number = load i64, ptr %number.at
  %argument.at = getelementptr ptr, ptr %args, i64 %number
  %argument = load ptr, ptr %argument.at
  %after = call ptr @tracer.walk(ptr %argument, ptr %pc, ptr %cursor, i1 %holds)
  %refused = icmp eq ptr %after, null
  br i1 %refused, label %no, label %walked
walked:
  %k.next = add i64 %k, 1
  br label %walks
done:
  ret i1 true
no:
  br i1 %holds, label %drop, label %fail
drop:
  %slot.end = load ptr, ptr %cursor
  %end = ptrtoint ptr %slot.end to i64
  %start = ptrtoint ptr %first to i64
  %written = sub i64 %end, %start
  %held = udiv i64 %written, 8
  call void @tracer.release(ptr %first, i64 %held)
  br label %fail
fail:
  ret i1 false
}
