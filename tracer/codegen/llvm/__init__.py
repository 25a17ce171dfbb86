"""Loop IR to LLVM text, object code and callable executables."""
