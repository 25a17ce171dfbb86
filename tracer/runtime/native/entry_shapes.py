"""The entry's look at shapes, as LLVM text: those that are fixed, and the one that elementwise programs share."""

SHAPES = """\
; Whether a NumPy array has the leaf's dtype (the same object) and shape.
define internal i1 @tracer.same_array(ptr %ndarray, ptr %leaf) {
  %descr = field ptr %ndarray Ndarray.descr
  %wanted.descr = field ptr %leaf Leaf.descr
  %ndim32 = field i32 %ndarray Ndarray.ndim
  %ndim = zext i32 %ndim32 to i64
  %wanted.ndim = field i64 %leaf Leaf.ndim
  %same.descr = icmp eq ptr %descr, %wanted.descr
  %same.ndim = icmp eq i64 %ndim, %wanted.ndim
  %same = and i1 %same.descr, %same.ndim
  br i1 %same, label %shapes, label %free
free:
  %any.shape = icmp eq i64 %wanted.ndim, -1
  %fits = and i1 %any.shape, %same.descr
  ret i1 %fits
shapes:
  %shape = field ptr %ndarray Ndarray.shape
  %wanted.shape = field ptr %leaf Leaf.shape
  br label %loop
loop:
  %i = phi i64 [ 0, %shapes ], [ %i.next, %axis ]
  %more = icmp ult i64 %i, %ndim
  br i1 %more, label %axis, label %yes
axis:
  %size.at = getelementptr i64, ptr %shape, i64 %i
  %wanted.at = getelementptr i64, ptr %wanted.shape, i64 %i
  %size = load i64, ptr %size.at
  %wanted = load i64, ptr %wanted.at
  %equal = icmp eq i64 %size, %wanted
  %i.next = add i64 %i, 1
  br i1 %equal, label %loop, label %no
yes:
  ret i1 true
no:
  ret i1 false
}

; The shape of the leaves of any shape, and its number of elements, to `common`; whether they all have it.
define internal i1 @tracer.common(ptr %record, ptr %objects, ptr %common) {
entry:
  set ptr null %common Common.shape
  set i64 0 %common Common.ndim
  set i64 0 %common Common.count
  %elementwise = field i64 %record Record.elementwise
  %is.fixed = icmp eq i64 %elementwise, 0
  br i1 %is.fixed, label %yes, label %start
start:
  %count = field i64 %record Record.inputs
  %leaves = field ptr %record Record.leaves
  br label %loop
loop:
  %i = phi i64 [ 0, %start ], [ %i.next, %next ]
  %first = phi ptr [ null, %start ], [ %found, %next ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %look, label %measure
look:
  %leaf = getelementptr [Leaf.bytes x i8], ptr %leaves, i64 %i
  %wanted = field i64 %leaf Leaf.ndim
  %is.free = icmp eq i64 %wanted, -1
  br i1 %is.free, label %free, label %next
free:
  %object.at = getelementptr ptr, ptr %objects, i64 %i
  %object = load ptr, ptr %object.at
  %is.first = icmp eq ptr %first, null
  br i1 %is.first, label %next, label %compare
compare:
  %same = call i1 @tracer.same_shape(ptr %first, ptr %object)
  br i1 %same, label %next, label %no
next:
  %found = phi ptr [ %first, %look ], [ %object, %free ], [ %first, %compare ]
  %i.next = add i64 %i, 1
  br label %loop
measure:
  %none = icmp eq ptr %first, null
  br i1 %none, label %no, label %size
size:
  %ndim32 = field i32 %first Ndarray.ndim
  %ndim = zext i32 %ndim32 to i64
  %shape = field ptr %first Ndarray.shape
  set ptr %shape %common Common.shape
  set i64 %ndim %common Common.ndim
  %elements = call i64 @tracer.count(ptr %shape, i64 %ndim)
  set i64 %elements %common Common.count
  br label %yes
yes:
  ret i1 true
no:
  ret i1 false
}

; Whether two NumPy arrays have one shape.
define internal i1 @tracer.same_shape(ptr %a, ptr %b) {
  %ndim32 = field i32 %a Ndarray.ndim
  %other32 = field i32 %b Ndarray.ndim
  %same.ndim = icmp eq i32 %ndim32, %other32
  br i1 %same.ndim, label %shapes, label %no
shapes:
  %ndim = zext i32 %ndim32 to i64
  %a.shape = field ptr %a Ndarray.shape
  %b.shape = field ptr %b Ndarray.shape
  br label %loop
loop:
  %i = phi i64 [ 0, %shapes ], [ %i.next, %axis ]
  %more = icmp ult i64 %i, %ndim
  br i1 %more, label %axis, label %yes
axis:
  %a.at = getelementptr i64, ptr %a.shape, i64 %i
  %b.at = getelementptr i64, ptr %b.shape, i64 %i
  %a.size = load i64, ptr %a.at
  %b.size = load i64, ptr %b.at
  %equal = icmp eq i64 %a.size, %b.size
  %i.next = add i64 %i, 1
  br i1 %equal, label %loop, label %no
yes:
  ret i1 true
no:
  ret i1 false
}
"""
