"""Loop IR to LLVM text, object code and callable executables.

    text = emit.module.emit_module(module)                      deterministic: equal modules, equal text
    code = toolchain.object_code.compile_object(text)           may be kept on disk, under `target.machine_key()`
    loaded = toolchain.object_code.load_object(code, symbols)   alive as long as the object is
    status, context = toolchain.ctypes_executable.Executable(module, loaded).run(arrays)

llvmlite is imported when text is first emitted, SciPy when a library routine is first bound.
"""
