; Find the shape that all leaves of free shape share, and its number of elements, and store them in `common`.
; Returns false where the leaves' shapes differ. A program of fixed shapes gets an empty Common.

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
