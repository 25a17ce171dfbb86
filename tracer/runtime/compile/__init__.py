"""Compilation of programs: for the CPU by LLVM, for GPUs by NVRTC."""
