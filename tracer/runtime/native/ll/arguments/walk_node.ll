; Match an instance of a registered class with the plan from `steps` on: FLATTEN, OTHER, and the steps of its children.
; Returns the step behind the last one. Returns null where the other data or the children differ, and with an exception
; set where flattening or the comparison raised it.
; FLATTEN's function returns a tuple (children, other data, ...); the children are any iterable. It runs Python code, in
; which lists and dicts that are being walked may change.

define internal ptr @tracer.walk_node(ptr %object, i64 %wanted, ptr %steps, ptr %cursor) {
  %function = field ptr %steps Step.object
  %other.step = getelementptr i8, ptr %steps, i64 Step.bytes
  %expected = field ptr %other.step Step.object
  %next = getelementptr i8, ptr %other.step, i64 Step.bytes
  %argument = alloca ptr
  store ptr %object, ptr %argument
  call void @Py_IncRef(ptr %object)
  %parts = call ptr @PyObject_Vectorcall(ptr %function, ptr %argument, i64 1, ptr null)
  call void @Py_DecRef(ptr %object)
  %raised = icmp eq ptr %parts, null
  br i1 %raised, label %no, label %look
look:
  %type = field ptr %parts Object.type
  %is.tuple = icmp eq ptr %type, @PyTuple_Type
  br i1 %is.tuple, label %count, label %drop
count:
  %size = field i64 %parts Tuple.size
  %is.pair = icmp uge i64 %size, 2
  br i1 %is.pair, label %pair, label %drop
pair:
  %given = field ptr %parts Tuple.item0
  %other = field ptr %parts Tuple.item1
  %is.same = icmp eq ptr %other, %expected
  br i1 %is.same, label %iterate, label %compare
compare:
  %compared = call i32 @PyObject_RichCompareBool(ptr %other, ptr %expected, i32 2)
  %is.equal = icmp eq i32 %compared, 1
  br i1 %is.equal, label %iterate, label %drop
iterate:
  %children = call ptr @PySequence_Tuple(ptr %given)
  %is.scalar = icmp eq ptr %children, null
  br i1 %is.scalar, label %drop, label %walk
walk:
  %items = getelementptr i8, ptr %children, i64 Tuple.item0
  %first = alloca ptr
  store ptr %items, ptr %first
  %after = call ptr @tracer.walk_items(ptr %children, ptr %first, i64 %wanted, ptr %next, ptr %cursor, i1 true)
  call void @Py_DecRef(ptr %children)
  br label %drop
drop:
  %result = phi ptr [ null, %look ], [ null, %count ], [ null, %compare ], [ null, %iterate ], [ %after, %walk ]
  call void @Py_DecRef(ptr %parts)
  ret ptr %result
no:
  ret ptr null
}
