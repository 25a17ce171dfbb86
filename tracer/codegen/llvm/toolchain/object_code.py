"""LLVM text to object code, and object code to addresses: code generation and the linker.

Object code binds every outside symbol by name, so it may be written to disk and loaded by another process.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import re
import threading
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Final, Protocol

from tracer.codegen.llvm.toolchain.abi import MAIN_SYMBOL
from tracer.codegen.llvm.toolchain.target import llvm, target_machine
from tracer.errors import InternalError

_OUTSIDE: Final = re.compile(r"^(?:declare [^@]*@|@(?=[\w.]+ = external ))([\w.]+)", re.MULTILINE)
_C_FUNCTIONS = ("memcpy", "memmove", "memset", "realloc")
_MATH_FUNCTIONS = (
    "fma", "fmod", "floor", "ceil", "trunc", "rint", "roundeven", "nearbyint",
)  # fmt: skip
"""C functions that LLVM calls where the machine lacks an instruction: for f64, and for f32 with an `f` appended."""


class Compile(Protocol):
    """Function from text to object code. opt: LLVM's code generation level."""

    def __call__(self, text: str, *, opt: int = 2) -> bytes: ...


def _parse(text: str, machine: Any) -> Any:
    binding = llvm()
    try:
        module = binding.parse_assembly(text, context=binding.create_context())
        module.triple = binding.get_process_triple()
        module.data_layout = str(machine.target_data)
        module.verify()
    except RuntimeError as error:
        raise InternalError(f"llvm: the emitted text is not valid\n  {error}") from error
    return module


def compile_object(text: str, *, vector_bits: int | None = None, opt: int = 2) -> bytes:
    """Compile verified text to object code: code generation only, no pass pipeline.

    opt: LLVM's code generation level, 0 to 3; 0 is for text without vectors: LLVM 22 aborts on masked 512-bit code.
    Raises InternalError where the text is not valid.
    """
    machine = target_machine(vector_bits, _level(opt))
    return bytes(machine.emit_object(_parse(text, machine)))


def assembly(text: str, *, vector_bits: int | None = None, opt: int = 2) -> str:
    """Return the text as the machine's assembly language."""
    machine = target_machine(vector_bits, _level(opt))
    return str(machine.emit_assembly(_parse(text, machine)))


def _level(opt: int) -> int:
    if opt not in (0, 1, 2, 3):
        raise InternalError(f"llvm: code generation level {opt}")
    return opt


@cache
def _c_symbols() -> tuple[tuple[str, int], ...]:
    """Return the addresses of the C functions that compiled code may call."""
    names = [*_C_FUNCTIONS, *(name + letter for name in _MATH_FUNCTIONS for letter in ("", "f"))]
    return tuple(process_symbols(names).items())  # Python itself is linked to the mathematics library


def process_symbols(names: Iterable[str]) -> dict[str, int]:
    """Return the addresses of C functions that are linked into this process, without missing ones."""
    process = ctypes.CDLL(None)
    return {name: address for name in names if (address := _address(process, name))}


def _address(library: ctypes.CDLL, name: str) -> int:
    try:
        return ctypes.cast(library[name], ctypes.c_void_p).value or 0
    except AttributeError:  # roundeven is missing in old C libraries
        return 0


def binds_c_alone(text: str) -> bool:
    """Whether a module's text needs no outside symbols but C functions that `load_object` binds."""
    known = dict(_c_symbols())
    return all(name in known or name.startswith("llvm.") for name in _OUTSIDE.findall(text))


_MAX_LIBRARIES: Final = 64
"""Libraries of an LLJIT. Each keeps 9 kB until the LLJIT goes, whose making takes 1 ms."""


class _Linker:
    """The process's LLJIT; libraries in it are numbered, and unloaded with the module that holds them.

    A new one follows after some libraries. The old one goes with the last of its modules.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.lock = threading.Lock()
        self.jit: Any = None
        self.numbers = itertools.count()

    def link(self, obj: bytes, symbols: Mapping[str, int], export: str) -> tuple[Any, str, Any]:
        binding = llvm()
        with self.lock:
            number = next(self.numbers)
            if self.jit is None or number % _MAX_LIBRARIES == 0:
                self.jit = binding.create_lljit_compiler(use_jit_link=True)
            name = f"tracer{number}"
            builder = binding.JITLibraryBuilder().add_object_img(obj).export_symbol(export)
            for symbol, address in (*_c_symbols(), *symbols.items()):
                builder.import_symbol(symbol, address)
            try:
                return self.jit, name, builder.link(self.jit, name)
            except RuntimeError as error:
                raise InternalError(f"llvm: linking failed\n  {error}") from error


_LINKER = _Linker()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: setattr(_LINKER, "lock", threading.Lock()))


class LoadedModule:
    """Machine code in memory; it stays there as long as this object lives."""

    def __init__(self, jit: Any, name: str, tracker: Any, export: str = MAIN_SYMBOL) -> None:
        self._jit = jit
        self._name = name
        self._trackers = {export: tracker}

    def address(self, name: str = MAIN_SYMBOL) -> int:
        """Return the address of an exported function. Raises InternalError if there is none of that name."""
        if name not in self._trackers:
            try:
                self._trackers[name] = self._jit.lookup(self._name, name)
            except RuntimeError as error:
                raise InternalError(f"llvm: no symbol '{name}'\n  {error}") from error
        return int(self._trackers[name][name])


def load_object(obj: bytes, symbols: Mapping[str, int], export: str = MAIN_SYMBOL) -> LoadedModule:
    """Link object code. symbols: the addresses that it binds besides the C library.

    export: a function that it defines. Raises InternalError where a symbol is missing.
    """
    return LoadedModule(*_LINKER.link(obj, symbols, export), export)
