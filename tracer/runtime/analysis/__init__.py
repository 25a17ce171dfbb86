"""Cost and memory of a program before it runs: flops, bytes, peak memory."""
