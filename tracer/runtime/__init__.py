"""The jit decorator, devices, executables and dispatch."""
