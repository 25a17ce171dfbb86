"""Native code that all executables share: the handling of Ctrl-C and the entry, compiled once in a process."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

from tracer.codegen.llvm.toolchain.object_code import LoadedModule, load_object
from tracer.once import once
from tracer.runtime.native import capi, result_pool, sigint
from tracer.runtime.native.entry_text import entry_text
from tracer.runtime.native.object_cache import objects
from tracer.settings import gate

_OPT = 0  # LLVM takes 9 ms in place of 67; calls take some 12 ns more


@dataclass(frozen=True, slots=True, eq=False)
class Support:
    """The loaded code. `entry` is the C function of all compiled entries, None where the ABI is not known."""

    loaded: LoadedModule
    entry: int | None


@once
def support() -> Support:
    """Return this process's native code, loaded on first use."""
    native = capi.why_not() is None
    text = sigint.sigint_text() + (entry_text() if native else "")
    symbols = {**capi.signal_symbols(), "tracer_main_thread": ctypes.addressof(sigint.main_thread)}
    if native:
        symbols |= {**capi.entry_symbols(), "tracer_gate": ctypes.addressof(gate.words)}
        symbols["tracer_result_handler"] = ctypes.addressof(result_pool.handler_word)
    loaded = load_object(objects.kernel(text, _OPT), symbols, export="tracer_arm")
    if native:
        result_pool.install(loaded)
    return Support(loaded, loaded.address("tracer_entry") if native else None)
