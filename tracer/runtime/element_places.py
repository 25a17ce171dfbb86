"""What an index of integers, slices, None and ... takes of a NumPy array, as LLVM text. See `element_text`."""

from __future__ import annotations

import ctypes

MOST_AXES = 32

_Axes = ctypes.c_int64 * MOST_AXES


class Place(ctypes.Structure):
    """The elements: `offset` bytes from the array's first one, along `ndim` axes. Strides are in bytes."""

    _fields_ = (
        ("offset", ctypes.c_int64),
        ("ndim", ctypes.c_int64),
        ("shape", _Axes),
        ("strides", _Axes),
        ("others", _Axes),  # the strides of the array that is read or written beside it
        ("axis", ctypes.c_int64),  # while the index is read: the axis of the array that comes next
        ("gap", ctypes.c_int64),  # how many axes ... stands for; -1 once it came
    )


PLACES = f"""\
; Find the elements. False for what is no such index, is out of bounds, or has more axes than there is room for.
define internal i1 @tracer.place(ptr %value, ptr %index, ptr %place) {{
entry:
  set i64 0 %place Place.offset
  set i64 0 %place Place.ndim
  set i64 0 %place Place.axis
  set i64 -1 %place Place.gap
  %type = field ptr %index Object.type
  %is.tuple = icmp eq ptr %type, @PyTuple_Type
  br i1 %is.tuple, label %tuple, label %single
single:
  %is.gap = icmp eq ptr %index, @_Py_EllipsisObject
  br i1 %is.gap, label %rest, label %one
one:
  %placed = call i1 @tracer.place_item(ptr %value, ptr %index, ptr %place)
  br i1 %placed, label %rest, label %no
tuple:
  %size = field i64 %index Tuple.size
  %items = getelementptr i8, ptr %index, i64 Tuple.item0
  %ndim32 = field i32 %value Ndarray.ndim
  %ndim = zext i32 %ndim32 to i64
  br label %count
count: ; how many axes are named
  %c = phi i64 [ 0, %tuple ], [ %c.next, %counted ]
  %left = phi i64 [ %ndim, %tuple ], [ %left.now, %counted ]
  %c.more = icmp ult i64 %c, %size
  br i1 %c.more, label %counted, label %named
counted:
  %c.at = getelementptr ptr, ptr %items, i64 %c
  %c.item = load ptr, ptr %c.at
  %c.new = icmp eq ptr %c.item, @_Py_NoneStruct
  %c.gap = icmp eq ptr %c.item, @_Py_EllipsisObject
  %c.other = or i1 %c.new, %c.gap
  %left.less = sub i64 %left, 1
  %left.now = select i1 %c.other, i64 %left, i64 %left.less
  %c.next = add i64 %c, 1
  br label %count
named:
  set i64 %left %place Place.gap
  %too.many = icmp slt i64 %left, 0
  br i1 %too.many, label %no, label %loop
loop:
  %i = phi i64 [ 0, %named ], [ %i.next, %next ]
  %more = icmp ult i64 %i, %size
  br i1 %more, label %item, label %rest
item:
  %at = getelementptr ptr, ptr %items, i64 %i
  %part = load ptr, ptr %at
  %part.ok = call i1 @tracer.place_item(ptr %value, ptr %part, ptr %place)
  br i1 %part.ok, label %next, label %no
next:
  %i.next = add i64 %i, 1
  br label %loop
rest:
  %all = call i1 @tracer.place_whole(ptr %value, ptr %place, i64 {MOST_AXES})
  ret i1 %all
no:
  ret i1 false
}}

; One item of an index.
define internal i1 @tracer.place_item(ptr %value, ptr %item, ptr %place) {{
  %type = field ptr %item Object.type
  %is.int = icmp eq ptr %type, @PyLong_Type
  br i1 %is.int, label %integer, label %not.int
integer:
  %long.at = alloca i64
  %in.range = call i1 @tracer.int64(ptr %item, ptr %long.at)
  %long = load i64, ptr %long.at
  br i1 %in.range, label %number, label %no
not.int:
  %is.slice = icmp eq ptr %type, @PySlice_Type
  br i1 %is.slice, label %slice, label %not.slice
slice:
  %sliced = call i1 @tracer.place_slice(ptr %value, ptr %item, ptr %place)
  ret i1 %sliced
not.slice:
  %is.new = icmp eq ptr %item, @_Py_NoneStruct
  br i1 %is.new, label %new, label %not.new
new:
  %added = call i1 @tracer.place_axis(ptr %place, i64 1, i64 0)
  ret i1 %added
not.new:
  %is.gap = icmp eq ptr %item, @_Py_EllipsisObject
  br i1 %is.gap, label %gap, label %not.gap
gap:
  %axes.left = field i64 %place Place.gap
  set i64 -1 %place Place.gap
  %once = icmp sge i64 %axes.left, 0
  br i1 %once, label %whole, label %no
whole:
  %all = call i1 @tracer.place_whole(ptr %value, ptr %place, i64 %axes.left)
  ret i1 %all
not.gap:
  %known.at = alloca i64
  %is.known = call i1 @tracer.known_integer(ptr %item, ptr %known.at)
  %known = load i64, ptr %known.at
  br i1 %is.known, label %number, label %no
number:
  %given = phi i64 [ %long, %integer ], [ %known, %not.gap ]
  %ok = call i1 @tracer.place_integer(ptr %value, ptr %place, i64 %given)
  ret i1 %ok
no:
  ret i1 false
}}

define internal i1 @tracer.place_integer(ptr %value, ptr %place, i64 %given) {{
  %axis = field i64 %place Place.axis
  %ndim32 = field i32 %value Ndarray.ndim
  %ndim = zext i32 %ndim32 to i64
  %there = icmp ult i64 %axis, %ndim
  br i1 %there, label %look, label %no
look:
  %shape = field ptr %value Ndarray.shape
  %size.at = getelementptr i64, ptr %shape, i64 %axis
  %size = load i64, ptr %size.at
  %is.negative = icmp slt i64 %given, 0
  %from.end = add i64 %given, %size
  %number = select i1 %is.negative, i64 %from.end, i64 %given
  %inside = icmp ult i64 %number, %size
  br i1 %inside, label %take, label %no
take:
  %strides = field ptr %value Ndarray.strides
  %stride.at = getelementptr i64, ptr %strides, i64 %axis
  %stride = load i64, ptr %stride.at
  %bytes = mul i64 %number, %stride
  %before = field i64 %place Place.offset
  %offset = add i64 %before, %bytes
  %next = add i64 %axis, 1
  set i64 %offset %place Place.offset
  set i64 %next %place Place.axis
  ret i1 true
no:
  ret i1 false
}}

; A slice whose bounds are None or int, so that nobody's code runs.
define internal i1 @tracer.place_slice(ptr %value, ptr %slice, ptr %place) {{
  %axis = field i64 %place Place.axis
  %ndim32 = field i32 %value Ndarray.ndim
  %ndim = zext i32 %ndim32 to i64
  %there = icmp ult i64 %axis, %ndim
  br i1 %there, label %look, label %no
look:
  %plain = call i1 @tracer.plain_slice(ptr %slice)
  br i1 %plain, label %unpack, label %no
unpack:
  %start.at = alloca i64
  %stop.at = alloca i64
  %step.at = alloca i64
  %unpacked = call i32 @PySlice_Unpack(ptr %slice, ptr %start.at, ptr %stop.at, ptr %step.at)
  %failed = icmp slt i32 %unpacked, 0
  br i1 %failed, label %clear, label %adjust
clear: ; a step of 0
  call void @PyErr_Clear()
  ret i1 false
adjust:
  %shape = field ptr %value Ndarray.shape
  %size.at = getelementptr i64, ptr %shape, i64 %axis
  %size = load i64, ptr %size.at
  %step = load i64, ptr %step.at
  %count = call i64 @PySlice_AdjustIndices(i64 %size, ptr %start.at, ptr %stop.at, i64 %step)
  %start = load i64, ptr %start.at
  %strides = field ptr %value Ndarray.strides
  %stride.at = getelementptr i64, ptr %strides, i64 %axis
  %stride = load i64, ptr %stride.at
  %bytes = mul i64 %start, %stride
  %is.empty = icmp eq i64 %count, 0
  %skipped = select i1 %is.empty, i64 0, i64 %bytes
  %before = field i64 %place Place.offset
  %offset = add i64 %before, %skipped
  %next = add i64 %axis, 1
  %by = mul i64 %step, %stride
  set i64 %offset %place Place.offset
  set i64 %next %place Place.axis
  %added = call i1 @tracer.place_axis(ptr %place, i64 %count, i64 %by)
  ret i1 %added
no:
  ret i1 false
}}

define internal i1 @tracer.plain_slice(ptr %slice) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %part ]
  %fine = phi i1 [ true, %entry ], [ %fine.now, %part ]
  %more = icmp ult i64 %i, 3
  %on = and i1 %more, %fine
  br i1 %on, label %part, label %done
part:
  %items = getelementptr i8, ptr %slice, i64 Slice.items
  %at = getelementptr ptr, ptr %items, i64 %i
  %bound = load ptr, ptr %at
  %type = field ptr %bound Object.type
  %is.none = icmp eq ptr %bound, @_Py_NoneStruct
  %is.int = icmp eq ptr %type, @PyLong_Type
  %fine.now = or i1 %is.none, %is.int
  %i.next = add i64 %i, 1
  br label %loop
done:
  ret i1 %fine
}}

; The next `most` axes of the array, or all that are left, as they are.
define internal i1 @tracer.place_whole(ptr %value, ptr %place, i64 %most) {{
entry:
  %ndim32 = field i32 %value Ndarray.ndim
  %ndim = zext i32 %ndim32 to i64
  %shape = field ptr %value Ndarray.shape
  %strides = field ptr %value Ndarray.strides
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %added ]
  %axis = field i64 %place Place.axis
  %wanted = icmp slt i64 %i, %most
  %there = icmp ult i64 %axis, %ndim
  %on = and i1 %wanted, %there
  br i1 %on, label %add, label %done
add:
  %size.at = getelementptr i64, ptr %shape, i64 %axis
  %stride.at = getelementptr i64, ptr %strides, i64 %axis
  %size = load i64, ptr %size.at
  %stride = load i64, ptr %stride.at
  %ok = call i1 @tracer.place_axis(ptr %place, i64 %size, i64 %stride)
  br i1 %ok, label %added, label %no
added:
  %next = add i64 %axis, 1
  set i64 %next %place Place.axis
  %i.next = add i64 %i, 1
  br label %loop
done:
  ret i1 true
no:
  ret i1 false
}}

define internal i1 @tracer.place_axis(ptr %place, i64 %size, i64 %stride) {{
  %ndim = field i64 %place Place.ndim
  %fits = icmp ult i64 %ndim, {MOST_AXES}
  br i1 %fits, label %add, label %no
add:
  %shape = getelementptr i8, ptr %place, i64 Place.shape
  %strides = getelementptr i8, ptr %place, i64 Place.strides
  %size.at = getelementptr i64, ptr %shape, i64 %ndim
  %stride.at = getelementptr i64, ptr %strides, i64 %ndim
  store i64 %size, ptr %size.at
  store i64 %stride, ptr %stride.at
  %more = add i64 %ndim, 1
  set i64 %more %place Place.ndim
  ret i1 true
no:
  ret i1 false
}}

; An integer in an array of ours without axes, or of NumPy's type int64.
define internal i1 @tracer.known_integer(ptr %object, ptr %to) {{
  %type = field ptr %object Object.type
  %array.type = field ptr @tracer_elements Elements.array
  %is.array = icmp eq ptr %type, %array.type
  br i1 %is.array, label %array, label %other
array:
  %value = call ptr @tracer.known(ptr %object)
  %unknown = icmp eq ptr %value, null
  br i1 %unknown, label %no, label %axes
axes:
  %ndim = field i32 %value Ndarray.ndim
  %is.scalar = icmp eq i32 %ndim, 0
  br i1 %is.scalar, label %dtype, label %no
dtype:
  %data = field ptr %value Ndarray.data
  %descr = field ptr %value Ndarray.descr
  %kind = field i8 %descr Descr.kind
  %size = field i64 %descr Descr.size
  %is.signed = icmp eq i8 %kind, 105 ; i
  br i1 %is.signed, label %width, label %no
width:
  switch i64 %size, label %no [
    i64 8, label %wide
    i64 4, label %narrow
  ]
wide:
  %whole = load i64, ptr %data
  br label %yes
narrow:
  %half = load i32, ptr %data
  %extended = sext i32 %half to i64
  br label %yes
other:
  %int64.type = field ptr @tracer_elements Elements.int64
  %is.int64 = icmp eq ptr %type, %int64.type
  br i1 %is.int64, label %convert, label %no
convert:
  %converted = call i64 @PyNumber_AsSsize_t(ptr %object, ptr null)
  br label %yes
yes:
  %number = phi i64 [ %whole, %wide ], [ %extended, %narrow ], [ %converted, %convert ]
  store i64 %number, ptr %to
  ret i1 true
no:
  ret i1 false
}}

; A NumPy array itself, or the one of a handle that is `known`; else null.
define internal ptr @tracer.ndarray(ptr %object) {{
  %type = field ptr %object Object.type
  %array.type = field ptr @tracer_elements Elements.array
  %is.array = icmp eq ptr %type, %array.type
  br i1 %is.array, label %array, label %other
array:
  %held = call ptr @tracer.known(ptr %object)
  ret ptr %held
other:
  %ndarray.type = field ptr @tracer_elements Elements.ndarray
  %is.ndarray = icmp eq ptr %type, %ndarray.type
  %itself = select i1 %is.ndarray, ptr %object, ptr null
  ret ptr %itself
}}

; The NumPy array of a handle that is known, no key, and outside all traces; else null.
define internal ptr @tracer.known(ptr %x) {{
  %closed = load atomic i64, ptr @tracer_gate monotonic, align 8
  %trace = field ptr %x Array._trace
  %is.open = icmp eq i64 %closed, 0
  %is.free = icmp eq ptr %trace, @_Py_NoneStruct
  %may = and i1 %is.open, %is.free
  br i1 %may, label %kind, label %no
kind:
  %ir.type = field ptr %x Array._type
  %untyped = icmp eq ptr %ir.type, @_Py_NoneStruct
  br i1 %untyped, label %value, label %typed
typed:
  %ir.kind = field ptr %ir.type Object.type
  %plain = field ptr @tracer_elements Elements.array_type
  %is.plain = icmp eq ptr %ir.kind, %plain
  br i1 %is.plain, label %value, label %no
value:
  %held = field ptr %x Array._value
  %held.type = field ptr %held Object.type
  %ndarray.type = field ptr @tracer_elements Elements.ndarray
  %holds = icmp eq ptr %held.type, %ndarray.type
  br i1 %holds, label %layout, label %no
layout:
  %laid.out = call i1 @tracer.laid_out(ptr %held)
  br i1 %laid.out, label %yes, label %no
yes:
  ret ptr %held
no:
  ret ptr null
}}
"""
