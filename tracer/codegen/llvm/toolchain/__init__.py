"""The LLVM toolchain: target description, ABI, object code, and calls through ctypes."""
