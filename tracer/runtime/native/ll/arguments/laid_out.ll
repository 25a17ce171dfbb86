; Return whether a NumPy array is aligned and C-contiguous.

define internal i1 @tracer.laid_out(ptr %ndarray) {
  %flags = field i32 %ndarray Ndarray.flags
  %layout = and i32 %flags, Flags.laid_out
  %both = icmp eq i32 %layout, Flags.laid_out
  ret i1 %both
}
