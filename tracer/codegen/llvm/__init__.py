"""Loop IR to LLVM text, object code and callable executables.

    text = emit_module(module)                                  deterministic: equal modules, equal text
    obj = compile_object(text)                                  may be kept on disk, under `machine_key()`
    loaded = load_object(obj, library_symbols(names))           alive as long as the object is
    status, context = Executable(module, loaded).run(arrays)

llvmlite is imported when text is first emitted, SciPy when a library routine is first bound.
"""

from tracer.codegen.llvm.emit.module import emit_module
from tracer.codegen.llvm.kernels.routines import library_names, library_symbols
from tracer.codegen.llvm.toolchain.ctypes_executable import Executable
from tracer.codegen.llvm.toolchain.object_code import LoadedModule, assembly, compile_object, load_object
from tracer.codegen.llvm.toolchain.target import machine_key

__all__ = [
    "Executable",
    "LoadedModule",
    "assembly",
    "compile_object",
    "emit_module",
    "library_names",
    "library_symbols",
    "load_object",
    "machine_key",
]
