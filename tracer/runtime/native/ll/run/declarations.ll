; Bytes of an arena that may lie on the stack.

@tracer.small = internal constant i64 16384
