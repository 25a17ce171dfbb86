"""The entry's look at its arguments, as LLVM text: flattening by the plan, checking. See `entry_text`."""

ARGUMENTS = """\
; The objects of all inputs in order: captured handles, then the leaves of the arguments by the plan.
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
  %after = call ptr @tracer.walk(ptr %argument, ptr %pc, ptr %cursor)
  %refused = icmp eq ptr %after, null
  br i1 %refused, label %no, label %walked
walked:
  %k.next = add i64 %k, 1
  br label %walks
done:
  ret i1 true
no:
  ret i1 false
}

; Match an object with the plan from a step on; the step behind it, or null where it is another structure.
define internal ptr @tracer.walk(ptr %object, ptr %step, ptr %cursor) {
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
    i64 7, label %slice
    i64 8, label %float
  ]
leaf:
  %slot = load ptr, ptr %cursor
  store ptr %object, ptr %slot
  %slot.next = getelementptr ptr, ptr %slot, i64 1
  store ptr %slot.next, ptr %cursor
  ret ptr %next
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
float:
  %is.float = icmp eq ptr %type, @PyFloat_Type
  br i1 %is.float, label %bits, label %no
bits:
  %number = field i64 %object Float.value
  %expected.number = field i64 %expected Float.value
  %same.bits = icmp eq i64 %number, %expected.number
  br i1 %same.bits, label %yes, label %no
yes:
  ret ptr %next
tuple:
  %is.tuple = icmp eq ptr %type, %expected
  br i1 %is.tuple, label %tuple.size, label %no
tuple.size:
  %tuple.count = field i64 %object Tuple.size
  %tuple.fits = icmp eq i64 %tuple.count, %size
  %tuple.items = getelementptr i8, ptr %object, i64 Tuple.item0
  br i1 %tuple.fits, label %items, label %no
list:
  %is.list = icmp eq ptr %type, @PyList_Type
  br i1 %is.list, label %list.size, label %no
list.size:
  %list.count = field i64 %object List.size
  %list.fits = icmp eq i64 %list.count, %size
  %list.items = field ptr %object List.items
  br i1 %list.fits, label %items, label %no
slice:
  %is.slice = icmp eq ptr %type, @PySlice_Type
  %slice.items = getelementptr i8, ptr %object, i64 Slice.items
  br i1 %is.slice, label %items, label %no
items:
  %from = phi ptr [ %tuple.items, %tuple.size ], [ %list.items, %list.size ], [ %slice.items, %slice ]
  %after.items = call ptr @tracer.walk_items(ptr %from, i64 %size, ptr %next, ptr %cursor)
  ret ptr %after.items
dict:
  %is.dict = icmp eq ptr %type, @PyDict_Type
  br i1 %is.dict, label %dict.size, label %no
dict.size:
  %dict.count = field i64 %object Dict.used
  %dict.fits = icmp eq i64 %dict.count, %size
  br i1 %dict.fits, label %values, label %no
values:
  %after.values = call ptr @tracer.walk_values(ptr %object, i64 %size, ptr %next, ptr %cursor)
  ret ptr %after.values
no:
  ret ptr null
}

define internal ptr @tracer.walk_items(ptr %items, i64 %count, ptr %steps, ptr %cursor) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %item ]
  %step = phi ptr [ %steps, %entry ], [ %after, %item ]
  %ok = icmp ne ptr %step, null
  %more = icmp ult i64 %i, %count
  %on = and i1 %ok, %more
  br i1 %on, label %item, label %done
item:
  %item.at = getelementptr ptr, ptr %items, i64 %i
  %object = load ptr, ptr %item.at
  %after = call ptr @tracer.walk(ptr %object, ptr %step, ptr %cursor)
  %i.next = add i64 %i, 1
  br label %loop
done:
  ret ptr %step
}

; Keys are str, int, bool or bytes, so that looking them up runs no Python code.
define internal ptr @tracer.walk_values(ptr %dict, i64 %count, ptr %steps, ptr %cursor) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %walk ]
  %step = phi ptr [ %steps, %entry ], [ %after, %walk ]
  %ok = icmp ne ptr %step, null
  %more = icmp ult i64 %i, %count
  %on = and i1 %ok, %more
  br i1 %on, label %look, label %done
look:
  %key = field ptr %step Step.object
  %object = call ptr @PyDict_GetItemWithError(ptr %dict, ptr %key)
  %is.missing = icmp eq ptr %object, null
  br i1 %is.missing, label %missing, label %walk
walk:
  %value.step = getelementptr i8, ptr %step, i64 Step.bytes
  %after = call ptr @tracer.walk(ptr %object, ptr %value.step, ptr %cursor)
  %i.next = add i64 %i, 1
  br label %loop
missing:
  call void @PyErr_Clear()
  ret ptr null
done:
  ret ptr %step
}

; Check every input; then `objects` holds references to the objects whose memory `buffers` points to.
define internal i1 @tracer.accept_all(ptr %record, ptr %objects, ptr %buffers, ptr %scalars) {
entry:
  %count = field i64 %record Record.inputs
  %leaves = field ptr %record Record.leaves
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %kept ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %check, label %done
check:
  %object.at = getelementptr ptr, ptr %objects, i64 %i
  %buffer = getelementptr ptr, ptr %buffers, i64 %i
  %scalar = getelementptr [16 x i8], ptr %scalars, i64 %i
  %leaf = getelementptr [Leaf.bytes x i8], ptr %leaves, i64 %i
  %object = load ptr, ptr %object.at
  %owner = call ptr @tracer.accept(ptr %record, ptr %leaf, ptr %object, ptr %buffer, ptr %scalar)
  %refused = icmp eq ptr %owner, null
  br i1 %refused, label %no, label %kept
kept:
  call void @Py_IncRef(ptr %owner)
  store ptr %owner, ptr %object.at
  %i.next = add i64 %i, 1
  br label %loop
done:
  ret i1 true
no:
  call void @tracer.release(ptr %objects, i64 %i)
  ret i1 false
}

; The object that owns an input's memory, whose address goes to `buffer`; null where the object is not as expected.
define internal ptr @tracer.accept(ptr %record, ptr %leaf, ptr %object, ptr %buffer, ptr %scalar) {
  %type = field ptr %object Object.type
  %array.type = field ptr %record Record.array
  %ndarray.type = field ptr %record Record.ndarray
  %is.array = icmp eq ptr %type, %array.type
  br i1 %is.array, label %array, label %other
array:
  %trace = field ptr %object Array._trace
  %weak = field ptr %object Array._weak
  %wanted.weak = field ptr %leaf Leaf.weak
  %is.concrete = icmp eq ptr %trace, @_Py_NoneStruct
  %same.weak = icmp eq ptr %weak, %wanted.weak
  %simple = and i1 %is.concrete, %same.weak
  br i1 %simple, label %kind, label %no
kind:
  %ir.type = field ptr %object Array._type
  %wanted.kind = field ptr %leaf Leaf.kind
  %untyped = icmp eq ptr %ir.type, @_Py_NoneStruct
  br i1 %untyped, label %plain, label %typed
plain:
  %wants.plain = icmp eq ptr %wanted.kind, null
  br i1 %wants.plain, label %value, label %no
typed:
  %ir.kind = field ptr %ir.type Object.type
  %array.kind = field ptr %record Record.array_type
  %is.plain = icmp eq ptr %ir.kind, %array.kind
  %found.kind = select i1 %is.plain, ptr null, ptr %ir.kind
  %same.kind = icmp eq ptr %found.kind, %wanted.kind
  br i1 %same.kind, label %value, label %no
value:
  %held = field ptr %object Array._value
  %held.type = field ptr %held Object.type
  %holds.ndarray = icmp eq ptr %held.type, %ndarray.type
  br i1 %holds.ndarray, label %compare, label %no
other:
  %is.ndarray = icmp eq ptr %type, %ndarray.type
  br i1 %is.ndarray, label %foreign, label %python
foreign: ; neither weak nor a key, and any memory layout
  %takes.strong = field ptr %leaf Leaf.weak
  %is.weak = icmp eq ptr %takes.strong, @_Py_TrueStruct
  %takes.kind = field ptr %leaf Leaf.kind
  %is.special = icmp ne ptr %takes.kind, null
  %laid.out = call i1 @tracer.laid_out(ptr %object)
  %scattered = xor i1 %laid.out, true
  %replacement = field ptr %leaf Leaf.donated
  %is.donated = icmp ne ptr %replacement, null ; which calls for a warning
  %strange = or i1 %is.weak, %is.special
  %refused = or i1 %strange, %is.donated
  %unfit = or i1 %refused, %scattered
  br i1 %unfit, label %no, label %compare
compare:
  %ndarray = phi ptr [ %held, %value ], [ %object, %foreign ]
  %fits = call i1 @tracer.same_array(ptr %ndarray, ptr %leaf)
  br i1 %fits, label %take, label %no
take:
  %data = field ptr %ndarray Ndarray.data
  store ptr %data, ptr %buffer
  ret ptr %ndarray
python:
  %number = field ptr %leaf Leaf.number
  %is.number = icmp eq ptr %type, %number
  br i1 %is.number, label %element, label %builtin
element:
  %element.at = getelementptr i8, ptr %object, i64 Number.value
  store ptr %element.at, ptr %buffer
  ret ptr %object
builtin:
  store ptr %scalar, ptr %buffer
  %is.scalar = call i1 @tracer.scalar(ptr %object, ptr %type, ptr %leaf, ptr %scalar)
  br i1 %is.scalar, label %yes, label %no
yes:
  ret ptr %object
no:
  ret ptr null
}
"""
