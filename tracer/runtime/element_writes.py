"""`x[i] = v` and `x.at[i].set(v)` of known arrays, as LLVM text: NumPy's assignment. See `element_text`.

What `x[i] = v` writes to is the array's own memory where nobody else refers to it, else a copy, which the handle stands
for then: see `tracer.numpy.arrays.concrete_items`.
"""

from __future__ import annotations

from tracer.runtime.element_reads import MOST_BYTES

WRITES = f"""\
; `Array`, item set and deleted, as the type's one slot for both: without a value it deletes.
define i32 @tracer_set(ptr %x, ptr %index, ptr %value) {{
  %deletes = icmp eq ptr %value, null
  br i1 %deletes, label %python, label %look
look:
  %references = field i32 %x Object.references
  %is.held = icmp sgt i32 %references, 1 ; else the write may be lost
  %type = field ptr %x Object.type
  %array.type = field ptr @tracer_elements Elements.array
  %is.array = icmp eq ptr %type, %array.type
  %owner = field ptr %x Array._owner
  %zero = field ptr @tracer_elements Elements.zero
  %is.ours = icmp eq ptr %owner, %zero
  %may = and i1 %is.held, %is.array
  %may.write = and i1 %may, %is.ours
  br i1 %may.write, label %known, label %python
known:
  %old = call ptr @tracer.writable(ptr %x)
  %unknown = icmp eq ptr %old, null
  br i1 %unknown, label %python, label %count
count:
  %holders = field i32 %old Object.references
  %alone = icmp eq i32 %holders, 1
  %base = field ptr %old Ndarray.base
  %flags = field i32 %old Ndarray.flags
  %own = and i32 %flags, Flags.own
  %is.own = icmp eq i32 %own, Flags.own
  %no.base = icmp eq ptr %base, null
  %alone.own = and i1 %alone, %is.own
  %in.place = and i1 %alone.own, %no.base
  br i1 %in.place, label %write, label %copy
write:
  call void @Py_IncRef(ptr %old)
  %wrote = call i1 @tracer.write(ptr %old, ptr %index, ptr %value)
  call void @Py_DecRef(ptr %old)
  br i1 %wrote, label %done, label %python
copy:
  %new = call ptr @tracer.written_copy(ptr %old, ptr %index, ptr %value)
  %failed = icmp eq ptr %new, null
  br i1 %failed, label %python, label %rebind
rebind:
  %before = field ptr %x Array._value
  set ptr %new %x Array._value
  call void @Py_DecRef(ptr %before)
  br label %done
done:
  ret i32 0
python:
  %arguments = alloca [3 x ptr]
  %second = getelementptr ptr, ptr %arguments, i64 1
  %third = getelementptr ptr, ptr %arguments, i64 2
  store ptr %x, ptr %arguments
  store ptr %index, ptr %second
  store ptr %value, ptr %third
  %setitem = field ptr @tracer_elements Elements.setitem
  %delitem = field ptr @tracer_elements Elements.delitem
  %callable = select i1 %deletes, ptr %delitem, ptr %setitem
  %given = select i1 %deletes, i64 2, i64 3
  %handed = call ptr @PyObject_Vectorcall(ptr %callable, ptr %arguments, i64 %given, ptr null)
  %raised = icmp eq ptr %handed, null
  br i1 %raised, label %error, label %drop
drop:
  call void @Py_DecRef(ptr %handed)
  ret i32 0
error:
  ret i32 -1
}}

; An array, an index and a value, by METH_FASTCALL: an array with the value written, or None for what Python is to do.
define ptr @tracer_written(ptr %self, ptr %arguments, i64 %count) {{
  %x = load ptr, ptr %arguments
  %second = getelementptr ptr, ptr %arguments, i64 1
  %third = getelementptr ptr, ptr %arguments, i64 2
  %index = load ptr, ptr %second
  %value = load ptr, ptr %third
  %type = field ptr %x Object.type
  %array.type = field ptr @tracer_elements Elements.array
  %is.array = icmp eq ptr %type, %array.type
  br i1 %is.array, label %look, label %no
look:
  %old = call ptr @tracer.writable(ptr %x)
  %unknown = icmp eq ptr %old, null
  br i1 %unknown, label %no, label %copy
copy:
  %new = call ptr @tracer.written_copy(ptr %old, ptr %index, ptr %value)
  %failed = icmp eq ptr %new, null
  br i1 %failed, label %no, label %wrap
wrap:
  %handle = call ptr @tracer.handle(ptr %new, ptr @_Py_FalseStruct)
  ret ptr %handle
no:
  call void @Py_IncRef(ptr @_Py_NoneStruct)
  ret ptr @_Py_NoneStruct
}}

; As `known`, of an array that is not weak and has elements.
define internal ptr @tracer.writable(ptr %x) {{
  %value = call ptr @tracer.known(ptr %x)
  %weak = field ptr %x Array._weak
  %is.strong = icmp eq ptr %weak, @_Py_FalseStruct
  %is.known = icmp ne ptr %value, null
  %may = and i1 %is.strong, %is.known
  br i1 %may, label %count, label %no
count:
  %ndim32 = field i32 %value Ndarray.ndim
  %ndim = zext i32 %ndim32 to i64
  %shape = field ptr %value Ndarray.shape
  %elements = call i64 @tracer.count(ptr %shape, i64 %ndim)
  %some = icmp ne i64 %elements, 0
  br i1 %some, label %yes, label %no
yes:
  ret ptr %value
no:
  ret ptr null
}}

; A copy of a small NumPy array with a value written; null, and no exception, for what Python is to look at.
define internal ptr @tracer.written_copy(ptr %old, ptr %index, ptr %value) {{
  %descr = field ptr %old Ndarray.descr
  %size = field i64 %descr Descr.size
  %ndim32 = field i32 %old Ndarray.ndim
  %ndim = zext i32 %ndim32 to i64
  %shape = field ptr %old Ndarray.shape
  %count = call i64 @tracer.count(ptr %shape, i64 %ndim)
  %bytes = mul i64 %count, %size
  %is.small = icmp ule i64 %bytes, {MOST_BYTES}
  br i1 %is.small, label %copy, label %no
copy:
  %new = call ptr @PyArray_NewCopy(ptr %old, i32 0) ; in C's order
  %failed = icmp eq ptr %new, null
  br i1 %failed, label %clear, label %write
write:
  %wrote = call i1 @tracer.write(ptr %new, ptr %index, ptr %value)
  br i1 %wrote, label %yes, label %drop
yes:
  ret ptr %new
drop:
  call void @Py_DecRef(ptr %new)
  ret ptr null
clear:
  call void @PyErr_Clear()
  br label %no
no:
  ret ptr null
}}

; Write to a NumPy array what NumPy casts as we do. False, with nothing written and no exception, for everything else.
define internal i1 @tracer.write(ptr %target, ptr %index, ptr %value) {{
entry:
  %bits = alloca i64
  %descr = field ptr %target Ndarray.descr
  %is.number = call i1 @tracer.number(ptr %value, ptr %descr, ptr %bits)
  br i1 %is.number, label %find, label %array
array:
  %held = call ptr @tracer.values(ptr %value, ptr %target)
  %unfit = icmp eq ptr %held, null
  br i1 %unfit, label %no, label %find
find:
  %source = phi ptr [ null, %entry ], [ %held, %array ]
  %place = alloca [Place.bytes x i8], align 8
  %placed = call i1 @tracer.place(ptr %target, ptr %index, ptr %place)
  br i1 %placed, label %broadcast, label %scatter
broadcast:
  %size = field i64 %descr Descr.size
  %ndim = field i64 %place Place.ndim
  %shape = getelementptr i8, ptr %place, i64 Place.shape
  %count = call i64 @tracer.count(ptr %shape, i64 %ndim)
  %bytes = mul i64 %count, %size
  %is.small = icmp ule i64 %bytes, {MOST_BYTES}
  %fits = call i1 @tracer.broadcasts(ptr %source, ptr %place)
  %may = and i1 %is.small, %fits
  br i1 %may, label %elements, label %no
elements:
  %is.empty = icmp eq i64 %count, 0
  br i1 %is.empty, label %yes, label %copy
copy:
  %first = field ptr %target Ndarray.data
  %offset = field i64 %place Place.offset
  %to = getelementptr i8, ptr %first, i64 %offset
  %strides = getelementptr i8, ptr %place, i64 Place.strides
  %others = getelementptr i8, ptr %place, i64 Place.others
  %is.scalar = icmp eq ptr %source, null
  br i1 %is.scalar, label %scalar, label %several
several:
  %data = field ptr %source Ndarray.data
  br label %run
scalar:
  br label %run
run:
  %from = phi ptr [ %data, %several ], [ %bits, %scalar ]
  call void @tracer.copy(ptr %to, ptr %strides, ptr %from, ptr %others, ptr %shape, i64 %ndim, i64 %size)
  ret i1 true
scatter:
  %is.itself = icmp eq ptr %source, null
  %given = select i1 %is.itself, ptr %value, ptr %source
  call void @Py_IncRef(ptr %given) ; another thread, or a finalizer, may rebind the handle
  %theirs = call ptr @tracer.numpys_index(ptr %index)
  %unusual = icmp eq ptr %theirs, null
  br i1 %unusual, label %unused, label %assign
unused:
  call void @Py_DecRef(ptr %given)
  ret i1 false
assign:
  %status = call i32 @PyObject_SetItem(ptr %target, ptr %theirs, ptr %given)
  call void @Py_DecRef(ptr %given)
  call void @Py_DecRef(ptr %theirs)
  %failed = icmp slt i32 %status, 0
  br i1 %failed, label %clear, label %yes
clear: ; NumPy looks at places and shapes before it writes
  call void @PyErr_Clear()
  ret i1 false
yes:
  ret i1 true
no:
  ret i1 false
}}

; The NumPy array of a value of the very dtype of the target, and other memory; else null.
define internal ptr @tracer.values(ptr %object, ptr %target) {{
  %value = call ptr @tracer.ndarray(ptr %object)
  %is.array = icmp ne ptr %value, null
  br i1 %is.array, label %layout, label %no
layout:
  %flags = field i32 %value Ndarray.flags
  %aligned = and i32 %flags, Flags.aligned
  %is.aligned = icmp ne i32 %aligned, 0
  br i1 %is.aligned, label %compare, label %no
compare:
  %descr = field ptr %value Ndarray.descr
  %wanted = field ptr %target Ndarray.descr
  %same.dtype = icmp eq ptr %descr, %wanted
  %another = icmp ne ptr %value, %target
  %fits = and i1 %same.dtype, %another
  br i1 %fits, label %yes, label %no
yes:
  ret ptr %value
no:
  ret ptr null
}}

; The strides by which a NumPy array, or null for a number, is repeated over the places, to `Place.others`.
define internal i1 @tracer.broadcasts(ptr %source, ptr %place) {{
entry:
  %ndim = field i64 %place Place.ndim
  %sizes = getelementptr i8, ptr %place, i64 Place.shape
  %others = getelementptr i8, ptr %place, i64 Place.others
  %bytes = mul i64 %ndim, 8
  call void @llvm.memset.p0.i64(ptr %others, i8 0, i64 %bytes, i1 false)
  %is.number = icmp eq ptr %source, null
  br i1 %is.number, label %yes, label %look
look:
  %given32 = field i32 %source Ndarray.ndim
  %given = zext i32 %given32 to i64
  %shape = field ptr %source Ndarray.shape
  %strides = field ptr %source Ndarray.strides
  %first = sub i64 %ndim, %given
  %too.many = icmp slt i64 %first, 0
  br i1 %too.many, label %no, label %loop
loop:
  %i = phi i64 [ 0, %look ], [ %i.next, %next ]
  %more = icmp ult i64 %i, %given
  br i1 %more, label %axis, label %yes
axis:
  %there = add i64 %first, %i
  %size.at = getelementptr i64, ptr %shape, i64 %i
  %wanted.at = getelementptr i64, ptr %sizes, i64 %there
  %stride.at = getelementptr i64, ptr %strides, i64 %i
  %other.at = getelementptr i64, ptr %others, i64 %there
  %size = load i64, ptr %size.at
  %wanted = load i64, ptr %wanted.at
  %stride = load i64, ptr %stride.at
  %is.one = icmp eq i64 %size, 1
  %kept = select i1 %is.one, i64 0, i64 %stride
  store i64 %kept, ptr %other.at
  %same = icmp eq i64 %size, %wanted
  %fits = or i1 %same, %is.one
  br i1 %fits, label %next, label %no
next:
  %i.next = add i64 %i, 1
  br label %loop
yes:
  ret i1 true
no:
  ret i1 false
}}

; A Python number, or NumPy's float64 or int64, in a dtype that holds it, to `bits`.
define internal i1 @tracer.number(ptr %object, ptr %descr, ptr %bits) {{
  %type = field ptr %object Object.type
  %kind = field i8 %descr Descr.kind
  %size = field i64 %descr Descr.size
  %float64 = field ptr @tracer_elements Elements.float64
  %is.float = icmp eq ptr %type, @PyFloat_Type
  %is.float64 = icmp eq ptr %type, %float64
  %is.real = or i1 %is.float, %is.float64
  br i1 %is.real, label %real, label %not.real
real:
  %double = call double @PyFloat_AsDouble(ptr %object)
  br label %floating
not.real:
  %is.int = icmp eq ptr %type, @PyLong_Type
  br i1 %is.int, label %int, label %not.int
int:
  %long.at = alloca i64
  %in.range = call i1 @tracer.int64(ptr %object, ptr %long.at)
  %long = load i64, ptr %long.at
  br i1 %in.range, label %integer, label %no
not.int:
  %is.true = icmp eq ptr %object, @_Py_TrueStruct
  %is.false = icmp eq ptr %object, @_Py_FalseStruct
  %is.bool = or i1 %is.true, %is.false
  br i1 %is.bool, label %bool, label %not.bool
bool:
  %holds.bool = icmp eq i8 %kind, 98 ; b
  %byte = zext i1 %is.true to i8
  store i8 %byte, ptr %bits
  ret i1 %holds.bool
not.bool:
  %int64 = field ptr @tracer_elements Elements.int64
  %is.int64 = icmp eq ptr %type, %int64
  %same.kind = icmp eq i8 %kind, 105 ; i
  %same.size = icmp eq i64 %size, 8
  %same.dtype = and i1 %same.kind, %same.size
  %fits.int64 = and i1 %is.int64, %same.dtype
  br i1 %fits.int64, label %convert, label %no
convert:
  %converted = call i64 @PyNumber_AsSsize_t(ptr %object, ptr null)
  store i64 %converted, ptr %bits
  ret i1 true
integer:
  switch i8 %kind, label %no [
    i8 102, label %exact ; f
    i8 105, label %signed ; i
    i8 117, label %unsigned ; u
  ]
exact: ; all such integers are floats of 32 bits
  %positive = add i64 %long, 16777215
  %is.exact = icmp ule i64 %positive, 33554430
  %as.double = sitofp i64 %long to double
  br i1 %is.exact, label %floating, label %no
signed:
  switch i64 %size, label %no [
    i64 8, label %store.wide
    i64 4, label %signed.narrow
    i64 2, label %signed.narrow
    i64 1, label %signed.narrow
  ]
signed.narrow:
  %bits.of = mul i64 %size, 8
  %highest = sub i64 %bits.of, 1
  %half = shl i64 1, %highest
  %shifted = add i64 %long, %half
  %all = shl i64 1, %bits.of
  %holds.signed = icmp ult i64 %shifted, %all
  br i1 %holds.signed, label %store.wide, label %no
unsigned:
  %is.negative = icmp slt i64 %long, 0
  br i1 %is.negative, label %no, label %unsigned.size
unsigned.size:
  switch i64 %size, label %no [
    i64 8, label %store.wide
    i64 4, label %unsigned.narrow
    i64 2, label %unsigned.narrow
    i64 1, label %unsigned.narrow
  ]
unsigned.narrow:
  %width = mul i64 %size, 8
  %limit = shl i64 1, %width
  %holds.unsigned = icmp ult i64 %long, %limit
  br i1 %holds.unsigned, label %store.wide, label %no
store.wide: ; the lowest bytes come first
  store i64 %long, ptr %bits
  ret i1 true
floating:
  %number = phi double [ %double, %real ], [ %as.double, %exact ]
  %double.descr = field ptr @tracer_elements Elements.f64
  %single.descr = field ptr @tracer_elements Elements.f32
  %is.double = icmp eq ptr %descr, %double.descr
  br i1 %is.double, label %wide, label %not.double
wide:
  store double %number, ptr %bits
  ret i1 true
not.double:
  %is.single = icmp eq ptr %descr, %single.descr
  br i1 %is.single, label %single, label %no
single: ; beyond 3e38 single precision may have no number
  %size.of = call double @llvm.fabs.f64(double %number)
  %is.infinite = fcmp oeq double %size.of, 0x7FF0000000000000
  %is.moderate = fcmp ule double %size.of, 3.0e38
  %holds = or i1 %is.infinite, %is.moderate
  %narrow = fptrunc double %number to float
  store float %narrow, ptr %bits
  ret i1 %holds
no:
  ret i1 false
}}
"""
