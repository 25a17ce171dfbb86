; Check one input against its Leaf and store the address of its memory at `buffer`.
; Returns the object that owns the memory, borrowed, or null where the object is not as expected. Accepts an Array, a
; C-contiguous NumPy array, a NumPy scalar of the leaf's dtype, and the Python scalar that the leaf names, which is
; stored at `scalar`.

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
