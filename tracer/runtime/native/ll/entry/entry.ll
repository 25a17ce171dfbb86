; Call one executable: the C function of every compiled entry, METH_FASTCALL | METH_KEYWORDS.
; self: a tuple of a ctypes memory that holds the Record, the fallback callable, and the objects that must stay
; alive.
; Returns a new reference, or null with an exception set. Arguments that the Record does not describe go to the
; fallback, unchanged. An instance of Raised from the fallback is raised as the error that it carries.
; Holds a reference to every object whose memory the program reads: another thread may rebind a handle meanwhile.

define ptr @tracer_entry(ptr %self, ptr %args, i64 %nargs, ptr %kwnames) {
  %memory = field ptr %self Tuple.item0
  %record = field ptr %memory CData.pointer
  %fits = call i1 @tracer.fits(ptr %record, i64 %nargs, ptr %kwnames)
  br i1 %fits, label %known, label %fallback
known:
  %unchanged = call i1 @tracer.unchanged(ptr %record)
  br i1 %unchanged, label %flatten, label %fallback
flatten:
  %inputs = field i64 %record Record.inputs
  %objects = alloca ptr, i64 %inputs
  %found = call i1 @tracer.objects(ptr %record, ptr %args, ptr %objects)
  br i1 %found, label %given, label %other.structure
given:
  %object.bytes = mul i64 %inputs, 8
  %nodes = field i64 %record Record.nodes
  %has.nodes = icmp ne i64 %nodes, 0
  br i1 %has.nodes, label %keep, label %leaves
keep: ; the leaves, of which flattening may have made some
  %kept.objects = alloca ptr, i64 %inputs
  call void @llvm.memcpy.p0.p0.i64(ptr %kept.objects, ptr %objects, i64 %object.bytes, i1 false)
  br label %leaves
leaves:
  %kept = phi ptr [ null, %given ], [ %kept.objects, %keep ]
  %donates = field i64 %record Record.donates
  %is.donating = icmp ne i64 %donates, 0
  br i1 %is.donating, label %note, label %accept
note:
  %given.objects = alloca ptr, i64 %inputs
  call void @llvm.memcpy.p0.p0.i64(ptr %given.objects, ptr %objects, i64 %object.bytes, i1 false)
  br label %accept
accept:
  %handles = phi ptr [ null, %leaves ], [ %given.objects, %note ]
  %outputs = field i64 %record Record.outputs
  %constants = field i64 %record Record.constants
  %arrays = add i64 %inputs, %outputs
  %parameters = add i64 %arrays, %constants
  %buffers = alloca ptr, i64 %parameters
  %scalars = alloca [16 x i8], i64 %inputs, align 16
  %accepted = call i1 @tracer.accept_all(ptr %record, ptr %objects, ptr %buffers, ptr %scalars)
  br i1 %accepted, label %measure, label %refuse
measure:
  %common = alloca [Common.bytes x i8], align 8
  %agree = call i1 @tracer.common(ptr %record, ptr %objects, ptr %common)
  br i1 %agree, label %hold, label %differ
hold:
  call void @tracer.hold_donated(ptr %record, ptr %handles)
  call void @tracer.drop_leaves(ptr %record, ptr %kept)
  br label %make
make:
  %results = alloca ptr, i64 %outputs
  %made = call i1 @tracer.make_all(ptr %record, ptr %results, ptr %buffers, ptr %objects, ptr %common)
  br i1 %made, label %run, label %out.of.memory
run:
  %data = field ptr %record Record.data
  %constant.buffers = getelementptr ptr, ptr %buffers, i64 %arrays
  %constant.bytes = mul i64 %constants, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %constant.buffers, ptr %data, i64 %constant.bytes, i1 false)
  %elementwise = field i64 %record Record.elementwise
  %is.elementwise = icmp ne i64 %elementwise, 0
  br i1 %is.elementwise, label %counted, label %ready
counted: ; the count of elements is the only constant
  %count.at = getelementptr i8, ptr %common, i64 Common.count
  store ptr %count.at, ptr %constant.buffers
  br label %ready
ready:
  %count = field i64 %common Common.count
  %result = call ptr @tracer.run(ptr %record, ptr %buffers, ptr %results, i64 %count)
  call void @tracer.release(ptr %objects, i64 %inputs)
  call void @tracer.consume_donated(ptr %record, ptr %handles)
  ret ptr %result
out.of.memory:
  call void @tracer.release(ptr %objects, i64 %inputs)
  call void @tracer.consume_donated(ptr %record, ptr %handles)
  ret ptr null
other.structure:
  %pending = call ptr @PyErr_Occurred()
  %flattening.raised = icmp ne ptr %pending, null
  br i1 %flattening.raised, label %stop, label %fallback
stop:
  ret ptr null
differ:
  call void @tracer.release(ptr %objects, i64 %inputs)
  br label %refuse
refuse:
  call void @tracer.drop_leaves(ptr %record, ptr %kept)
  br label %fallback
fallback:
  %callable = field ptr %self Tuple.item1
  %handed = call ptr @PyObject_Vectorcall(ptr %callable, ptr %args, i64 %nargs, ptr %kwnames)
  %failed = icmp eq ptr %handed, null
  br i1 %failed, label %done, label %look
look:
  %handed.type = field ptr %handed Object.type
  %raised.type = field ptr %record Record.raised
  %is.raised = icmp eq ptr %handed.type, %raised.type
  br i1 %is.raised, label %raise, label %done
raise:
  %error = field ptr %handed Raised.error
  %error.type = field ptr %error Object.type
  call void @PyErr_SetObject(ptr %error.type, ptr %error)
  call void @Py_DecRef(ptr %handed)
  ret ptr null
done:
  ret ptr %handed
}
