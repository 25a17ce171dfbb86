; Return a new NumPy array with the dtype and shape of a Result, its elements not set; null with an exception set on
; failure. A shape of -1 axes is the common one. Results of Pool.large bytes or more come from the result pool.

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
  %is.large = icmp uge i64 %bytes, Pool.large
  call void @Py_IncRef(ptr %descr) ; the next call steals it
  br i1 %is.large, label %large, label %small
small:
  %small.value = call ptr @PyArray_NewFromDescr(ptr %ndarray.type, ptr %descr, i32 %ndim32, ptr %shape, ptr null, ptr null, i32 0, ptr null)
  ret ptr %small.value
large:
  %handler = load ptr, ptr @tracer_result_handler
  %before = call ptr @PyDataMem_SetHandler(ptr %handler)
  %large.value = call ptr @PyArray_NewFromDescr(ptr %ndarray.type, ptr %descr, i32 %ndim32, ptr %shape, ptr null, ptr null, i32 0, ptr null)
  %ours = call ptr @PyDataMem_SetHandler(ptr %before)
  call void @Py_DecRef(ptr %before)
  call void @Py_DecRef(ptr %ours)
  ret ptr %large.value
}
