"""Matrix multiplication kernels: micro-kernels, panels, bfloat16 dot products and AMX tiles."""
