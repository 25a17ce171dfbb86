"""From programs to loop IR: fusion, loop nests, buffers, and the mapping to CPU and GPU."""
