"""The entry's donated arguments, as LLVM text: whose memory a result may have, and what is left of them. See
`entry_text`."""

DONATION = """\
; The NumPy array of a result that is left in an operand's memory: the operand's own where nobody else knows of it, that
; is, where only its handle and this call hold it and the memory is its own; else a copy, which is then worked on.
define internal ptr @tracer.take_donated(ptr %record, ptr %result, ptr %owner, ptr %given.at, ptr %common) {
  %references = field i32 %owner Object.references
  %two = icmp eq i32 %references, 2
  %type = field ptr %owner Object.type
  %ndarray.type = field ptr %record Record.ndarray
  %is.ndarray = icmp eq ptr %type, %ndarray.type
  %sole = and i1 %two, %is.ndarray
  br i1 %sole, label %look, label %known
look:
  %flags = field i32 %owner Ndarray.flags
  %own = and i32 %flags, 4 ; OWNDATA
  %owns = icmp ne i32 %own, 0
  br i1 %owns, label %take, label %copy
take:
  call void @Py_IncRef(ptr %owner)
  ret ptr %owner
known:
  %shared = field ptr %record Record.shared
  %is.silent = icmp eq ptr %shared, null
  br i1 %is.silent, label %copy, label %tell
tell:
  %leaves = field ptr %record Record.leaves
  %donor = field i64 %result Result.donor
  %leaf = getelementptr [Leaf.bytes x i8], ptr %leaves, i64 %donor
  %donated = field ptr %leaf Leaf.donated
  %argument = alloca ptr
  store ptr %donated, ptr %argument
  %told = call ptr @PyObject_Vectorcall(ptr %shared, ptr %argument, i64 1, ptr null)
  %raised = icmp eq ptr %told, null ; warnings may be errors
  br i1 %raised, label %none, label %drop
drop:
  call void @Py_DecRef(ptr %told)
  br label %copy
none:
  ret ptr null
copy:
  %new = call ptr @tracer.new_value(ptr %record, ptr %result, ptr %common)
  %failed = icmp eq ptr %new, null
  br i1 %failed, label %done, label %fill
fill:
  %to = field ptr %new Ndarray.data
  %from = load ptr, ptr %given.at
  %size = field i64 %result Result.size
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %size, i1 false)
  store ptr %to, ptr %given.at
  br label %done
done:
  ret ptr %new
}

; Hold the handles that are donated, and forget what else there is among the arguments.
define internal void @tracer.hold_donated(ptr %record, ptr %handles) {
entry:
  %none = icmp eq ptr %handles, null
  %inputs = field i64 %record Record.inputs
  %leaves = field ptr %record Record.leaves
  %array.type = field ptr %record Record.array
  br i1 %none, label %done, label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %next ]
  %more = icmp ult i64 %i, %inputs
  br i1 %more, label %look, label %done
look:
  %handle.at = getelementptr ptr, ptr %handles, i64 %i
  %leaf = getelementptr [Leaf.bytes x i8], ptr %leaves, i64 %i
  %donated = field ptr %leaf Leaf.donated
  %handle = load ptr, ptr %handle.at
  %type = field ptr %handle Object.type
  %is.donated = icmp ne ptr %donated, null
  %is.array = icmp eq ptr %type, %array.type
  %given = and i1 %is.donated, %is.array
  br i1 %given, label %hold, label %forget
hold:
  call void @Py_IncRef(ptr %handle)
  br label %next
forget:
  store ptr null, ptr %handle.at
  br label %next
next:
  %i.next = add i64 %i, 1
  br label %loop
done:
  ret void
}

; Take the values away from the handles that are held.
define internal void @tracer.consume_donated(ptr %record, ptr %handles) {
entry:
  %none = icmp eq ptr %handles, null
  %inputs = field i64 %record Record.inputs
  %leaves = field ptr %record Record.leaves
  br i1 %none, label %done, label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %next ]
  %more = icmp ult i64 %i, %inputs
  br i1 %more, label %look, label %done
look:
  %handle.at = getelementptr ptr, ptr %handles, i64 %i
  %handle = load ptr, ptr %handle.at
  %forgotten = icmp eq ptr %handle, null
  br i1 %forgotten, label %next, label %consume
consume:
  %leaf = getelementptr [Leaf.bytes x i8], ptr %leaves, i64 %i
  %donated = field ptr %leaf Leaf.donated
  %value = field ptr %handle Array._value
  %type = field ptr %handle Array._type
  call void @Py_IncRef(ptr %donated)
  call void @Py_IncRef(ptr @_Py_NoneStruct)
  set ptr %donated %handle Array._value
  set ptr @_Py_NoneStruct %handle Array._type
  call void @Py_DecRef(ptr %value)
  call void @Py_DecRef(ptr %type)
  call void @Py_DecRef(ptr %handle)
  br label %next
next:
  %i.next = add i64 %i, 1
  br label %loop
done:
  ret void
}
"""
