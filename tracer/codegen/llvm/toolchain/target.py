"""The machine that code is generated for: its features as LLVM lists them, and LLVM's target machines.

The host's name only tunes the choice of instructions: LLVM may know a machine by the name of an older one. So features
are read from the feature list, every entry of which is given explicitly.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import cache, wraps
from importlib import import_module
from typing import Any, Final, TypeVar

from tracer.errors import InternalError
from tracer.once import once
from tracer.settings import config

T = TypeVar("T")

_WIDEST: Final = 512  # bits of a vector

# features that an x86 machine without 256-bit vectors lacks, AVX itself or extensions of it
_NEEDS_AVX = (
    "avx", "avx2", "fma", "fma4", "xop", "f16c", "vaes", "vpclmulqdq", "sha512", "sm3", "sm4",
    "avxvnni", "avxifma", "avxneconvert", "avxvnniint8", "avxvnniint16",
)  # fmt: skip
_NEEDS_512 = ("avx512", "avx10", "amx-avx512")


@once
def llvm() -> Any:  # llvmlite has no type information
    """Return llvmlite's binding, ready to generate code for this machine; imported at first use, since it is large."""
    binding = import_module("llvmlite.binding")
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    _hold_at_forks(getattr(binding.ffi.lib, "_lock", None))
    return binding


def _hold_at_forks(lock: Any) -> None:
    """Let the process fork only when no thread is within LLVM: the child would wait for it forever.

    lock: of llvmlite's calls.
    """

    def leave() -> None:
        lock.__exit__(None, None, None)

    if lock is not None and hasattr(os, "register_at_fork"):
        os.register_at_fork(before=lock.__enter__, after_in_parent=leave, after_in_child=leave)


def bits_in_force(vector_bits: int | None = None) -> int:
    """Return the maximum width of vectors: as given, or as `config.vector_bits` says, else 512."""
    bits = vector_bits or config.vector_bits or _WIDEST
    if bits not in (128, 256, _WIDEST):
        raise InternalError(f"llvm: vectors of {bits} bits")
    return bits


def _by_width(find: Callable[[int], T]) -> Callable[..., T]:
    """Cache a property of the machine for each value of `bits_in_force`."""
    kept = cache(find)

    @wraps(find)
    def found(vector_bits: int | None = None) -> T:
        return kept(bits_in_force(vector_bits))

    return found


@_by_width
def features(vector_bits: int) -> tuple[tuple[str, bool], ...]:
    """Return LLVM's features of this machine, or of one like it whose vectors are at most `vector_bits` wide."""
    host = dict(llvm().get_host_cpu_features())
    for name in host:
        if vector_bits < 512 and name.startswith(_NEEDS_512):
            host[name] = False
        if vector_bits < 256 and name in _NEEDS_AVX:
            host[name] = False
    return tuple(sorted(host.items()))


def _has(name: str, vector_bits: int) -> bool:
    return dict(features(vector_bits)).get(name, False)


def is_x86() -> bool:
    """Whether code is generated for x86-64."""
    return str(llvm().get_process_triple()).startswith("x86_64")


@_by_width
def converts_half(vector_bits: int) -> bool:
    """Whether `half` and `float` convert in one instruction; otherwise LLVM would call a run-time library."""
    return _has("f16c", vector_bits) if is_x86() else str(llvm().get_process_triple()).startswith("aarch64")


@_by_width
def fuses_products(vector_bits: int) -> bool:
    """Whether a fused multiply-add is an instruction; otherwise LLVM would call C's library."""
    return _has("fma", vector_bits) if is_x86() else str(llvm().get_process_triple()).startswith("aarch64")


@_by_width
def splits_floats(vector_bits: int) -> bool:
    """Whether the exponent and the significand of a float, in vectors of any width, are an instruction each."""
    return is_x86() and _has("avx512vl", vector_bits)


@_by_width
def permutes_singles(vector_bits: int) -> bool:
    """Whether one instruction permutes the f32 of a register of 256 bits."""
    return is_x86() and _has("avx2", vector_bits)


@_by_width
def preferred_bits(vector_bits: int) -> int:
    """Return the width of vector registers to prefer."""
    if not is_x86():
        return 128
    return 512 if _has("avx512vl", vector_bits) else 256 if _has("avx2", vector_bits) else 128


@_by_width
def machine_key(vector_bits: int) -> str:
    """Return the machine's part of the key of caches of object code."""
    version = ".".join(map(str, llvm().llvm_version_info))
    listed = ",".join(name for name, present in features(vector_bits) if present)
    return f"llvm {version}; {llvm().get_process_triple()}; {llvm().get_host_cpu_name()}; {listed}"


class _Machines(threading.local):
    """LLVM's target machines of a thread: they are not safe to use from several threads at once."""

    def __init__(self) -> None:
        self.made: dict[tuple[int, int], Any] = {}


_MACHINES = _Machines()


def target_machine(vector_bits: int | None = None, opt: int = 2) -> Any:
    """Return this thread's code generator of LLVM: position-independent code, which can be loaded anywhere."""
    made, key = _MACHINES.made, (bits_in_force(vector_bits), opt)
    if key not in made:
        flags = ",".join(f"{'+' if present else '-'}{name}" for name, present in features(key[0]))
        if is_x86():
            flags += ",-prefer-256-bit"  # some machines' tuning, which overrides `prefer-vector-width`
        target = llvm().Target.from_triple(llvm().get_process_triple())
        made[key] = target.create_target_machine(
            cpu=llvm().get_host_cpu_name(), features=flags, opt=opt, reloc="pic", codemodel="small", jit=True
        )
    return made[key]
