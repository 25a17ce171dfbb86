"""The entry's arrays, as LLVM text: scalars into memory, new results, references given back. See `entry_text`."""

ARRAYS = """\
; Write a Python scalar to memory, if it is the kind that the leaf takes.
define internal i1 @tracer.scalar(ptr %object, ptr %type, ptr %leaf, ptr %to) {
  %kind = field i64 %leaf Leaf.scalar
  switch i64 %kind, label %no [
    i64 1, label %bool
    i64 2, label %int
    i64 3, label %float
    i64 4, label %float
    i64 5, label %complex
    i64 6, label %complex
  ]
bool:
  %is.bool = icmp eq ptr %type, @PyBool_Type
  %is.true = icmp eq ptr %object, @_Py_TrueStruct
  %byte = zext i1 %is.true to i8
  store i8 %byte, ptr %to
  ret i1 %is.bool
int:
  %is.int = icmp eq ptr %type, @PyLong_Type
  br i1 %is.int, label %integer, label %no
integer:
  %in.range = call i1 @tracer.int64(ptr %object, ptr %to)
  ret i1 %in.range
float:
  %is.float = icmp eq ptr %type, @PyFloat_Type
  br i1 %is.float, label %real, label %no
real:
  %wide = call double @PyFloat_AsDouble(ptr %object)
  %is.single = icmp eq i64 %kind, 4
  br i1 %is.single, label %single, label %double
single:
  %narrow = fptrunc double %wide to float
  store float %narrow, ptr %to
  ret i1 true
double:
  store double %wide, ptr %to
  ret i1 true
complex:
  %is.complex = icmp eq ptr %type, @PyComplex_Type
  br i1 %is.complex, label %parts, label %no
parts:
  %re = call double @PyComplex_RealAsDouble(ptr %object)
  %im = call double @PyComplex_ImagAsDouble(ptr %object)
  %is.short = icmp eq i64 %kind, 6
  br i1 %is.short, label %short, label %long
short:
  %re.single = fptrunc double %re to float
  %im.single = fptrunc double %im to float
  %second = getelementptr float, ptr %to, i64 1
  store float %re.single, ptr %to
  store float %im.single, ptr %second
  ret i1 true
long:
  %imaginary = getelementptr double, ptr %to, i64 1
  store double %re, ptr %to
  store double %im, ptr %imaginary
  ret i1 true
no:
  ret i1 false
}

; New arrays for all results; false with an exception set and nothing left where memory runs out.
define internal i1 @tracer.make_all(ptr %record, ptr %results, ptr %all.buffers, ptr %owners, ptr %common) {
entry:
  %count = field i64 %record Record.outputs
  %inputs = field i64 %record Record.inputs
  %buffers = getelementptr ptr, ptr %all.buffers, i64 %inputs
  %table = field ptr %record Record.results
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %made ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %make, label %done
make:
  %result = getelementptr [Result.bytes x i8], ptr %table, i64 %i
  %buffer = getelementptr ptr, ptr %buffers, i64 %i
  %donor = field i64 %result Result.donor
  %owner.at = getelementptr ptr, ptr %owners, i64 %donor
  %given.at = getelementptr ptr, ptr %all.buffers, i64 %donor
  %has.donor = icmp sge i64 %donor, 0
  br i1 %has.donor, label %take, label %fresh
fresh:
  %new.value = call ptr @tracer.new_value(ptr %record, ptr %result, ptr %common)
  br label %wrap
take:
  %owner = load ptr, ptr %owner.at
  %taken.value = call ptr @tracer.take_donated(ptr %record, ptr %result, ptr %owner, ptr %given.at, ptr %common)
  br label %wrap
wrap:
  %value = phi ptr [ %new.value, %fresh ], [ %taken.value, %take ]
  %array = call ptr @tracer.wrap(ptr %record, ptr %result, ptr %value, ptr %buffer)
  %failed = icmp eq ptr %array, null
  br i1 %failed, label %no, label %made
made:
  %slot = getelementptr ptr, ptr %results, i64 %i
  store ptr %array, ptr %slot
  %i.next = add i64 %i, 1
  br label %loop
done:
  ret i1 true
no:
  call void @tracer.release(ptr %results, i64 %i)
  ret i1 false
}

; A new NumPy array of unset elements, or null.
define internal ptr @tracer.new_value(ptr %record, ptr %result, ptr %common) {
  %descr = field ptr %result Result.descr
  %own.ndim = field i64 %result Result.ndim
  %own.shape = field ptr %result Result.shape
  %common.ndim = field i64 %common Common.ndim
  %common.shape = field ptr %common Common.shape
  %is.free = icmp eq i64 %own.ndim, -1
  %ndim = select i1 %is.free, i64 %common.ndim, i64 %own.ndim
  %shape = select i1 %is.free, ptr %common.shape, ptr %own.shape
  %ndarray.type = field ptr %record Record.ndarray
  %ndim32 = trunc i64 %ndim to i32
  %size = field i64 %result Result.size
  %count = field i64 %common Common.count
  %size.of.all = mul i64 %size, %count
  %bytes = select i1 %is.free, i64 %size.of.all, i64 %size
  %is.large = icmp uge i64 %bytes, Memory.least
  call void @Py_IncRef(ptr %descr) ; the next call steals it
  br i1 %is.large, label %large, label %small
small:
  %small.value = call ptr @PyArray_NewFromDescr(ptr %ndarray.type, ptr %descr, i32 %ndim32, ptr %shape, ptr null, \
ptr null, i32 0, ptr null)
  ret ptr %small.value
large:
  %handler = load ptr, ptr @tracer_result_handler
  %before = call ptr @PyDataMem_SetHandler(ptr %handler)
  %large.value = call ptr @PyArray_NewFromDescr(ptr %ndarray.type, ptr %descr, i32 %ndim32, ptr %shape, ptr null, \
ptr null, i32 0, ptr null)
  %ours = call ptr @PyDataMem_SetHandler(ptr %before)
  call void @Py_DecRef(ptr %before)
  call void @Py_DecRef(ptr %ours)
  ret ptr %large.value
}

; A new Array on a NumPy array, whose reference it takes, and whose memory's address goes to `buffer`; null for null.
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

; Give back the first `count` references.
define internal void @tracer.release(ptr %objects, i64 %count) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %drop ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %drop, label %done
drop:
  %at = getelementptr ptr, ptr %objects, i64 %i
  %object = load ptr, ptr %at
  call void @Py_DecRef(ptr %object)
  %i.next = add i64 %i, 1
  br label %loop
done:
  ret void
}
"""
