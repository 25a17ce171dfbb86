"""Readings of Python's and NumPy's objects that the entry and the slots of `Array` share, as LLVM text.

Notation is as in `entry_text`.
"""

OBJECTS = """\
; A Python int, to 64 bits; false, and no exception, where it has more.
define internal i1 @tracer.int64(ptr %int, ptr %to) {
  %overflow.at = alloca i32
  %number = call i64 @PyLong_AsLongLongAndOverflow(ptr %int, ptr %overflow.at)
  store i64 %number, ptr %to
  %overflow = load i32, ptr %overflow.at
  %in.range = icmp eq i32 %overflow, 0
  ret i1 %in.range
}

; Whether a NumPy array is aligned and in C's order.
define internal i1 @tracer.laid_out(ptr %ndarray) {
  %flags = field i32 %ndarray Ndarray.flags
  %layout = and i32 %flags, Flags.laid_out
  %both = icmp eq i32 %layout, Flags.laid_out
  ret i1 %both
}

; How many elements a shape has.
define internal i64 @tracer.count(ptr %shape, i64 %ndim) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %axis ]
  %product = phi i64 [ 1, %entry ], [ %times, %axis ]
  %more = icmp ult i64 %i, %ndim
  br i1 %more, label %axis, label %done
axis:
  %at = getelementptr i64, ptr %shape, i64 %i
  %size = load i64, ptr %at
  %times = mul i64 %product, %size
  %i.next = add i64 %i, 1
  br label %loop
done:
  ret i64 %product
}
"""
