; Return a new Array on a NumPy array, and store the address of the array's memory at `buffer`.
; Takes the reference to `value`. Returns null where `value` is null or memory runs out.

define internal ptr @tracer.wrap(ptr %record, ptr %result, ptr %value, ptr %buffer) {
  %array.type = field ptr %record Record.array
  %no.value = icmp eq ptr %value, null
  br i1 %no.value, label %failed, label %handle
handle:
  %data = field ptr %value Ndarray.data
  store ptr %data, ptr %buffer
  %array = call ptr @PyType_GenericAlloc(ptr %array.type, i64 0)
  %no.array = icmp eq ptr %array, null
  br i1 %no.array, label %undo, label %fill
undo:
  call void @Py_DecRef(ptr %value)
  br label %failed
fill:
  %weak = field ptr %result Result.weak
  %type = field ptr %result Result.type
  %zero = field ptr %record Record.zero
  call void @Py_IncRef(ptr %weak)
  call void @Py_IncRef(ptr %type)
  call void @Py_IncRef(ptr %zero)
  call void @Py_IncRef(ptr @_Py_NoneStruct)
  call void @Py_IncRef(ptr @_Py_NoneStruct)
  set ptr %value %array Array._value
  set ptr %weak %array Array._weak
  set ptr %type %array Array._type
  set ptr %zero %array Array._owner
  set ptr @_Py_NoneStruct %array Array._trace
  set ptr @_Py_NoneStruct %array Array._atom
  ret ptr %array
failed:
  ret ptr null
}
