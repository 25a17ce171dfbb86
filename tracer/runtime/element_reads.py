"""`x[i]` of a known array, as LLVM text: a copy of the elements, in a new array. See `element_text`."""

from __future__ import annotations

MOST_BYTES = 1 << 16
"""Of a result that is copied here: larger ones are for NumPy, whose loops they are worth."""

READS = f"""\
; `Array`, item read. What is not decided here is for Python, as are all errors.
define ptr @tracer_get(ptr %x, ptr %index) {{
  %type = field ptr %x Object.type
  %array.type = field ptr @tracer_elements Elements.array
  %is.array = icmp eq ptr %type, %array.type
  br i1 %is.array, label %look, label %python
look:
  %value = call ptr @tracer.known(ptr %x)
  %unknown = icmp eq ptr %value, null
  br i1 %unknown, label %python, label %find
find:
  %place = alloca [Place.bytes x i8], align 8
  %placed = call i1 @tracer.place(ptr %value, ptr %index, ptr %place)
  br i1 %placed, label %take, label %gather
take:
  %taken = call ptr @tracer.take(ptr %value, ptr %place)
  br label %found
gather:
  %gathered = call ptr @tracer.gather(ptr %value, ptr %index)
  br label %found
found:
  %result = phi ptr [ %taken, %take ], [ %gathered, %gather ]
  %nothing = icmp eq ptr %result, null
  br i1 %nothing, label %python, label %wrap
wrap:
  %weak = field ptr %x Array._weak
  %handle = call ptr @tracer.handle(ptr %result, ptr %weak)
  ret ptr %handle
python:
  %arguments = alloca [2 x ptr]
  %second = getelementptr ptr, ptr %arguments, i64 1
  store ptr %x, ptr %arguments
  store ptr %index, ptr %second
  %getitem = field ptr @tracer_elements Elements.getitem
  %handed = call ptr @PyObject_Vectorcall(ptr %getitem, ptr %arguments, i64 2, ptr null)
  ret ptr %handed
}}

; The same as a function of an array and an index, of METH_FASTCALL.
define ptr @tracer_get_of(ptr %self, ptr %arguments, i64 %count) {{
  %x = load ptr, ptr %arguments
  %second = getelementptr ptr, ptr %arguments, i64 1
  %index = load ptr, ptr %second
  %found = call ptr @tracer_get(ptr %x, ptr %index)
  ret ptr %found
}}

; A new NumPy array of the elements; null, and no exception, where they are too many or memory runs out.
define internal ptr @tracer.take(ptr %value, ptr %place) {{
  %descr = field ptr %value Ndarray.descr
  %size = field i64 %descr Descr.size
  %ndim = field i64 %place Place.ndim
  %shape = getelementptr i8, ptr %place, i64 Place.shape
  %count = call i64 @tracer.count(ptr %shape, i64 %ndim)
  %bytes = mul i64 %count, %size
  %is.small = icmp ule i64 %bytes, {MOST_BYTES}
  br i1 %is.small, label %make, label %no
make:
  %ndarray.type = field ptr @tracer_elements Elements.ndarray
  %ndim32 = trunc i64 %ndim to i32
  call void @Py_IncRef(ptr %descr) ; the next call steals it
  %new = call ptr @PyArray_NewFromDescr(ptr %ndarray.type, ptr %descr, i32 %ndim32, ptr %shape, ptr null, \
ptr null, i32 0, ptr null)
  %failed = icmp eq ptr %new, null
  br i1 %failed, label %clear, label %copy
clear:
  call void @PyErr_Clear()
  br label %no
copy:
  %from = field ptr %value Ndarray.data
  %to = field ptr %new Ndarray.data
  %offset = field i64 %place Place.offset
  %from.first = getelementptr i8, ptr %from, i64 %offset
  %strides = getelementptr i8, ptr %place, i64 Place.strides
  %to.strides = field ptr %new Ndarray.strides
  %is.empty = icmp eq i64 %bytes, 0
  br i1 %is.empty, label %done, label %elements
elements:
  call void @tracer.copy(ptr %to, ptr %to.strides, ptr %from.first, ptr %strides, ptr %shape, i64 %ndim, i64 %size)
  br label %done
done:
  ret ptr %new
no:
  ret ptr null
}}

; Copy elements of `size` bytes. Last axes whose elements are neighbours on both sides are one element.
define internal void @tracer.copy(ptr %to, ptr %to.strides, ptr %from, ptr %from.strides, ptr %shape, i64 %ndim, \
i64 %size) {{
entry:
  br label %loop
loop:
  %n = phi i64 [ %ndim, %entry ], [ %last, %merge ]
  %run = phi i64 [ %size, %entry ], [ %longer, %merge ]
  %some = icmp ne i64 %n, 0
  br i1 %some, label %look, label %copy
look:
  %last = sub i64 %n, 1
  %to.at = getelementptr i64, ptr %to.strides, i64 %last
  %from.at = getelementptr i64, ptr %from.strides, i64 %last
  %count.at = getelementptr i64, ptr %shape, i64 %last
  %to.stride = load i64, ptr %to.at
  %from.stride = load i64, ptr %from.at
  %count = load i64, ptr %count.at
  %to.runs = icmp eq i64 %to.stride, %run
  %from.runs = icmp eq i64 %from.stride, %run
  %both = and i1 %to.runs, %from.runs
  %is.one = icmp eq i64 %count, 1
  %merges = or i1 %both, %is.one
  br i1 %merges, label %merge, label %copy
merge:
  %longer = mul i64 %run, %count
  br label %loop
copy:
  call void @tracer.copy_axes(ptr %to, ptr %to.strides, ptr %from, ptr %from.strides, ptr %shape, i64 %n, i64 %run)
  ret void
}}

define internal void @tracer.copy_axes(ptr %to, ptr %to.strides, ptr %from, ptr %from.strides, ptr %shape, i64 %ndim, \
i64 %size) {{
entry:
  %is.word = icmp eq i64 %size, 8
  %is.element = icmp eq i64 %ndim, 0
  br i1 %is.element, label %element, label %axis
element:
  br i1 %is.word, label %word, label %bytes
word:
  %one = load i64, ptr %from, align 1
  store i64 %one, ptr %to, align 1
  ret void
bytes:
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %size, i1 false)
  ret void
axis:
  %count = load i64, ptr %shape
  %to.stride = load i64, ptr %to.strides
  %from.stride = load i64, ptr %from.strides
  %inner = sub i64 %ndim, 1
  %inner.shape = getelementptr i64, ptr %shape, i64 1
  %to.inner = getelementptr i64, ptr %to.strides, i64 1
  %from.inner = getelementptr i64, ptr %from.strides, i64 1
  %is.last = icmp eq i64 %inner, 0
  %are.words = and i1 %is.last, %is.word
  br i1 %are.words, label %words, label %loop
words:
  %w = phi i64 [ 0, %axis ], [ %w.next, %copied ]
  %w.more = icmp ult i64 %w, %count
  br i1 %w.more, label %copied, label %done
copied:
  %w.to = mul i64 %w, %to.stride
  %w.from = mul i64 %w, %from.stride
  %w.target = getelementptr i8, ptr %to, i64 %w.to
  %w.source = getelementptr i8, ptr %from, i64 %w.from
  %each = load i64, ptr %w.source, align 1
  store i64 %each, ptr %w.target, align 1
  %w.next = add i64 %w, 1
  br label %words
loop:
  %i = phi i64 [ 0, %axis ], [ %i.next, %step ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %step, label %done
step:
  %i.to = mul i64 %i, %to.stride
  %i.from = mul i64 %i, %from.stride
  %target = getelementptr i8, ptr %to, i64 %i.to
  %source = getelementptr i8, ptr %from, i64 %i.from
  call void @tracer.copy_axes(ptr %target, ptr %to.inner, ptr %source, ptr %from.inner, ptr %inner.shape, i64 %inner, \
i64 %size)
  %i.next = add i64 %i, 1
  br label %loop
done:
  ret void
}}

; A new handle outside all traces on a NumPy array, whose reference it takes; null with an exception set.
define internal ptr @tracer.handle(ptr %value, ptr %weak) {{
  %array.type = field ptr @tracer_elements Elements.array
  %handle = call ptr @PyType_GenericAlloc(ptr %array.type, i64 0)
  %failed = icmp eq ptr %handle, null
  br i1 %failed, label %undo, label %fill
undo:
  call void @Py_DecRef(ptr %value)
  ret ptr null
fill:
  %zero = field ptr @tracer_elements Elements.zero
  call void @Py_IncRef(ptr %weak)
  call void @Py_IncRef(ptr %zero)
  call void @Py_IncRef(ptr @_Py_NoneStruct)
  call void @Py_IncRef(ptr @_Py_NoneStruct)
  call void @Py_IncRef(ptr @_Py_NoneStruct)
  set ptr %value %handle Array._value
  set ptr %weak %handle Array._weak
  set ptr %zero %handle Array._owner
  set ptr @_Py_NoneStruct %handle Array._type
  set ptr @_Py_NoneStruct %handle Array._trace
  set ptr @_Py_NoneStruct %handle Array._atom
  ret ptr %handle
}}

; What NumPy takes at places in arrays, masks and lists; null, and no exception, for what Python is to look at.
define internal ptr @tracer.gather(ptr %value, ptr %index) {{
  call void @Py_IncRef(ptr %value) ; another thread, or a finalizer, may rebind the handle
  %theirs = call ptr @tracer.numpys_index(ptr %index)
  %unfit = icmp eq ptr %theirs, null
  br i1 %unfit, label %no, label %ask
ask:
  %found = call ptr @PyObject_GetItem(ptr %value, ptr %theirs)
  call void @Py_DecRef(ptr %value)
  call void @Py_DecRef(ptr %theirs)
  %failed = icmp eq ptr %found, null
  br i1 %failed, label %clear, label %look
look:
  %type = field ptr %found Object.type
  %ndarray.type = field ptr @tracer_elements Elements.ndarray
  %is.array = icmp eq ptr %type, %ndarray.type
  br i1 %is.array, label %array, label %drop
array:
  %base = field ptr %found Ndarray.base
  %laid.out = call i1 @tracer.laid_out(ptr %found)
  %is.own = icmp eq ptr %base, null
  %is.ready = and i1 %is.own, %laid.out
  br i1 %is.ready, label %ready, label %copy
ready:
  ret ptr %found
copy:
  %copied = call ptr @PyArray_NewCopy(ptr %found, i32 0) ; in C's order
  call void @Py_DecRef(ptr %found)
  %no.copy = icmp eq ptr %copied, null
  br i1 %no.copy, label %clear, label %fresh
fresh:
  ret ptr %copied
drop:
  call void @Py_DecRef(ptr %found)
  ret ptr null
clear:
  call void @PyErr_Clear()
  ret ptr null
no:
  call void @Py_DecRef(ptr %value)
  ret ptr null
}}

; An index as NumPy takes it, a new reference; null, and no exception, for what is not known or plain.
define internal ptr @tracer.numpys_index(ptr %index) {{
entry:
  %type = field ptr %index Object.type
  %is.tuple = icmp eq ptr %type, @PyTuple_Type
  br i1 %is.tuple, label %tuple, label %single
single:
  %one = call ptr @tracer.numpys_item(ptr %index)
  ret ptr %one
tuple:
  %size = field i64 %index Tuple.size
  %items = getelementptr i8, ptr %index, i64 Tuple.item0
  %made = call ptr @PyTuple_New(i64 %size)
  %failed = icmp eq ptr %made, null
  br i1 %failed, label %clear, label %start
start:
  %slots = getelementptr i8, ptr %made, i64 Tuple.item0
  br label %loop
loop:
  %i = phi i64 [ 0, %start ], [ %i.next, %store ]
  %more = icmp ult i64 %i, %size
  br i1 %more, label %convert, label %done
convert:
  %at = getelementptr ptr, ptr %items, i64 %i
  %item = load ptr, ptr %at
  %theirs = call ptr @tracer.numpys_item(ptr %item)
  %unfit = icmp eq ptr %theirs, null
  br i1 %unfit, label %drop, label %store
store:
  %slot = getelementptr ptr, ptr %slots, i64 %i
  store ptr %theirs, ptr %slot
  %i.next = add i64 %i, 1
  br label %loop
done:
  ret ptr %made
drop:
  call void @Py_DecRef(ptr %made)
  ret ptr null
clear:
  call void @PyErr_Clear()
  ret ptr null
}}

define internal ptr @tracer.numpys_item(ptr %item) {{
  %type = field ptr %item Object.type
  %is.int = icmp eq ptr %type, @PyLong_Type
  %is.new = icmp eq ptr %item, @_Py_NoneStruct
  %is.gap = icmp eq ptr %item, @_Py_EllipsisObject
  %int.or.new = or i1 %is.int, %is.new
  %is.itself = or i1 %int.or.new, %is.gap
  br i1 %is.itself, label %itself, label %not.itself
not.itself:
  %is.slice = icmp eq ptr %type, @PySlice_Type
  br i1 %is.slice, label %slice, label %not.slice
slice:
  %plain = call i1 @tracer.plain_slice(ptr %item)
  br i1 %plain, label %itself, label %no
not.slice:
  %is.list = icmp eq ptr %type, @PyList_Type
  br i1 %is.list, label %list, label %not.list
list:
  %fits = call i1 @tracer.plain_list(ptr %item)
  br i1 %fits, label %itself, label %no
not.list:
  %value = call ptr @tracer.ndarray(ptr %item)
  %is.array = icmp ne ptr %value, null
  br i1 %is.array, label %places, label %no
places:
  %descr = field ptr %value Ndarray.descr
  %ndim = field i32 %value Ndarray.ndim
  %kind = field i8 %descr Descr.kind
  %size = field i64 %descr Descr.size
  %order = field i8 %descr Descr.order
  %has.axes = icmp ne i32 %ndim, 0
  %is.signed = icmp eq i8 %kind, 105 ; i
  %is.bool = icmp eq i8 %kind, 98 ; b
  %is.native = icmp eq i8 %order, 61 ; =
  %is.wide = icmp ugt i64 %size, 1
  %wide.native = and i1 %is.native, %is.wide
  %is.integer = and i1 %is.signed, %wide.native
  %is.either = or i1 %is.integer, %is.bool
  %is.places = and i1 %is.either, %has.axes
  br i1 %is.places, label %take, label %no
take:
  call void @Py_IncRef(ptr %value)
  ret ptr %value
itself:
  call void @Py_IncRef(ptr %item)
  ret ptr %item
no:
  ret ptr null
}}

; Whether a list has items, and they are all int, or all bool.
define internal i1 @tracer.plain_list(ptr %list) {{
entry:
  %size = field i64 %list List.size
  %items = field ptr %list List.items
  %some = icmp ne i64 %size, 0
  br i1 %some, label %first, label %no
first:
  %first.item = load ptr, ptr %items
  %wanted = field ptr %first.item Object.type
  %is.int = icmp eq ptr %wanted, @PyLong_Type
  %is.bool = icmp eq ptr %wanted, @PyBool_Type
  %fits = or i1 %is.int, %is.bool
  br i1 %fits, label %loop, label %no
loop:
  %i = phi i64 [ 1, %first ], [ %i.next, %next ]
  %more = icmp ult i64 %i, %size
  br i1 %more, label %look, label %yes
look:
  %at = getelementptr ptr, ptr %items, i64 %i
  %item = load ptr, ptr %at
  %type = field ptr %item Object.type
  %same = icmp eq ptr %type, %wanted
  br i1 %same, label %next, label %no
next:
  %i.next = add i64 %i, 1
  br label %loop
yes:
  ret i1 true
no:
  ret i1 false
}}
"""
