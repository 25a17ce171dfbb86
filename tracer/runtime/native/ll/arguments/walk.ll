; Match an object with the plan from `step` on, and write the leaves at *cursor, which moves behind them.
; Returns the step behind the object's last one, or null where its structure differs; an exception may be set then. The
; cases are those of StepKind.
; holds: whether to take a reference to every leaf, since a NODE of the plan runs Python code.

define internal ptr @tracer.walk(ptr %object, ptr %step, ptr %cursor, i1 %holds) {
  %kind = field i64 %step Step.kind
  %expected = field ptr %step Step.object
  %size = field i64 %step Step.size
  %type = field ptr %object Object.type
  %next = getelementptr i8, ptr %step, i64 Step.bytes
  switch i64 %kind, label %no [
    i64 0, label %leaf
    i64 1, label %same
    i64 2, label %equal
    i64 3, label %tuple
    i64 4, label %list
    i64 5, label %dict
    i64 7, label %node
    i64 10, label %instance
  ]
leaf:
  %slot = load ptr, ptr %cursor
  store ptr %object, ptr %slot
  %slot.next = getelementptr ptr, ptr %slot, i64 1
  store ptr %slot.next, ptr %cursor
  br i1 %holds, label %hold, label %yes
hold:
  call void @Py_IncRef(ptr %object)
  br label %yes
same:
  %is.same = icmp eq ptr %object, %expected
  br i1 %is.same, label %yes, label %no
equal:
  %expected.type = field ptr %expected Object.type
  %same.type = icmp eq ptr %type, %expected.type
  br i1 %same.type, label %compare, label %no
compare:
  %compared = call i32 @PyObject_RichCompareBool(ptr %object, ptr %expected, i32 2)
  %is.equal = icmp eq i32 %compared, 1
  br i1 %is.equal, label %yes, label %no
yes:
  ret ptr %next
tuple:
  %is.tuple = icmp eq ptr %type, %expected
  br i1 %is.tuple, label %tuple.items, label %no
tuple.items:
  %items = getelementptr i8, ptr %object, i64 Tuple.item0
  %first = alloca ptr
  store ptr %items, ptr %first
  %after.tuple = call ptr @tracer.walk_items(ptr %object, ptr %first, i64 %size, ptr %next, ptr %cursor, i1 %holds)
  ret ptr %after.tuple
list:
  %is.list = icmp eq ptr %type, @PyList_Type
  br i1 %is.list, label %list.items, label %no
list.items:
  %items.at = getelementptr i8, ptr %object, i64 List.items
  %after.list = call ptr @tracer.walk_items(ptr %object, ptr %items.at, i64 %size, ptr %next, ptr %cursor, i1 %holds)
  ret ptr %after.list
dict:
  %is.dict = icmp eq ptr %type, @PyDict_Type
  br i1 %is.dict, label %dict.size, label %no
dict.size:
  %dict.count = field i64 %object Dict.used
  %dict.fits = icmp eq i64 %dict.count, %size
  br i1 %dict.fits, label %values, label %no
values:
  %after.values = call ptr @tracer.walk_values(ptr %object, i64 %size, ptr %next, ptr %cursor, i1 %holds)
  ret ptr %after.values
node:
  %is.node = icmp eq ptr %type, %expected
  br i1 %is.node, label %children, label %no
children:
  %after.node = call ptr @tracer.walk_node(ptr %object, i64 %size, ptr %next, ptr %cursor)
  ret ptr %after.node
instance:
  %is.instance = icmp eq ptr %type, %expected
  br i1 %is.instance, label %attributes, label %no
attributes:
  %own = call ptr @PyObject_GenericGetDict(ptr %object, ptr null)
  %has.none = icmp eq ptr %own, null
  br i1 %has.none, label %no, label %attribute.values
attribute.values:
  %after.attributes = call ptr @tracer.walk_values(ptr %own, i64 %size, ptr %next, ptr %cursor, i1 %holds)
  call void @Py_DecRef(ptr %own)
  ret ptr %after.attributes
no:
  ret ptr null
}
