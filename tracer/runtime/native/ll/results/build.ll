; Make the object that the plan describes from the step at *steps.at on, with the arrays at *leaves.at as its leaves.
; Both move behind what was used. Returns a new reference, or null with an exception set.
; The cases are those of StepKind for results. The children of a tuple, list or NODE are first made as a tuple.

define internal ptr @tracer.build(ptr %steps.at, ptr %leaves.at) {
entry:
  %step = load ptr, ptr %steps.at
  %kind = field i64 %step Step.kind
  %size = field i64 %step Step.size
  %object = field ptr %step Step.object
  %next = getelementptr i8, ptr %step, i64 Step.bytes
  store ptr %next, ptr %steps.at
  switch i64 %kind, label %children [
    i64 0, label %leaf
    i64 1, label %share
    i64 5, label %dict
    i64 10, label %attributes
  ]
leaf:
  %slot = load ptr, ptr %leaves.at
  %array = load ptr, ptr %slot
  %slot.next = getelementptr ptr, ptr %slot, i64 1
  store ptr %slot.next, ptr %leaves.at
  br label %share
share:
  %shared = phi ptr [ %object, %entry ], [ %array, %leaf ]
  call void @Py_IncRef(ptr %shared)
  ret ptr %shared
dict:
  %dict.made = call ptr @tracer.build_dict(ptr %object, i64 %size, ptr %steps.at, ptr %leaves.at)
  ret ptr %dict.made
attributes:
  %own = call ptr @tracer.build(ptr %steps.at, ptr %leaves.at)
  %no.own = icmp eq ptr %own, null
  br i1 %no.own, label %no, label %allocate
allocate:
  %instance = call ptr @PyType_GenericAlloc(ptr %object, i64 0)
  %no.instance = icmp eq ptr %instance, null
  br i1 %no.instance, label %own.alone, label %fill
fill:
  %set = call i32 @PyObject_GenericSetDict(ptr %instance, ptr %own, ptr null)
  call void @Py_DecRef(ptr %own)
  %is.set = icmp eq i32 %set, 0
  br i1 %is.set, label %filled, label %unset
filled:
  ret ptr %instance
own.alone:
  call void @Py_DecRef(ptr %own)
  br label %no
unset:
  call void @Py_DecRef(ptr %instance)
  br label %no
children:
  %tuple = call ptr @PyTuple_New(i64 %size)
  %no.tuple = icmp eq ptr %tuple, null
  br i1 %no.tuple, label %no, label %loop
loop:
  %i = phi i64 [ 0, %children ], [ %i.next, %keep ]
  %more = icmp ult i64 %i, %size
  br i1 %more, label %child, label %complete
child:
  %made = call ptr @tracer.build(ptr %steps.at, ptr %leaves.at)
  %failed = icmp eq ptr %made, null
  br i1 %failed, label %incomplete, label %keep
keep:
  %items = getelementptr i8, ptr %tuple, i64 Tuple.item0
  %item.at = getelementptr ptr, ptr %items, i64 %i
  store ptr %made, ptr %item.at
  %i.next = add i64 %i, 1
  br label %loop
complete:
  switch i64 %kind, label %node [
    i64 3, label %is.tuple
    i64 4, label %list
  ]
is.tuple:
  ret ptr %tuple
list:
  %list.made = call ptr @PySequence_List(ptr %tuple)
  br label %drop
node:
  %argument = alloca ptr
  store ptr %tuple, ptr %argument
  %node.made = call ptr @PyObject_Vectorcall(ptr %object, ptr %argument, i64 1, ptr null)
  br label %drop
incomplete:
  br label %drop
drop:
  %result = phi ptr [ %list.made, %list ], [ %node.made, %node ], [ null, %incomplete ]
  call void @Py_DecRef(ptr %tuple)
  ret ptr %result
no:
  ret ptr null
}
