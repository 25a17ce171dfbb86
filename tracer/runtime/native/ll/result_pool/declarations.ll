; The table of kept blocks, which the GIL guards, and the symbols that the pool binds.
; kept: addresses and sizes in bytes, 0 for an empty entry. kept.bytes: the sum of the sizes.
; kept.oldest: the entry that is freed next.
; tracer_result_handler: the address of NumPy's handler, a capsule.

@tracer_result_handler = external global ptr
@tracer.kept = internal global [Pool.blocks x [2 x i64]] zeroinitializer
@tracer.kept.bytes = internal global i64 0
@tracer.kept.oldest = internal global i64 0
declare ptr @PyDataMem_SetHandler(ptr)
declare ptr @realloc(ptr, i64)
