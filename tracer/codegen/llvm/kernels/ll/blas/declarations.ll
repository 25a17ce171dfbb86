; BLAS's number of threads, and its function that sets it. See `scipy_symbols`.

@tracer_blas_threads = external global i32
declare void @tracer_blas_set_threads(i32)
