; Return the NumPy array of a result that is written to a donated operand's memory; null with an exception set on
; failure.
; That is the operand's own array, as a new reference, where only its handle and this call refer to it and it owns
; its memory. Else it is a copy, whose address replaces the operand's at `given.at`, and the Record's `shared` is
; called first if an array that others refer to had to be copied. It may raise: warnings can be errors.

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
