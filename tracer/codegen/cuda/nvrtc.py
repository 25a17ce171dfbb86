"""NVRTC through ctypes: CUDA C++ to PTX and machine code, without a GPU, a driver or CuPy.

The library comes with the wheel `nvidia-cuda-nvrtc`. Versions are pinned to 13.0: NVRTC 13.4 emits PTX that the ptxas
of a 13.0 driver rejects.
"""

from __future__ import annotations

import ctypes
import importlib.util
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from tracer.errors import DeviceError, InternalError, message

INSTALL: Final = "pip install 'nvidia-cuda-nvrtc==13.0.*'"

OPTIONS: Final = (
    "--std=c++17",
    "--fmad=false",  # every operation rounds; the math functions rely on it
    "--ftz=false",
    "--prec-div=true",
    "--prec-sqrt=true",
)
"""Options that the meaning of kernels depends on, for any compiler."""

_LOG: Final = "--ptxas-options=-v"


@dataclass(frozen=True, slots=True)
class Resources:
    """Resources of one kernel: registers, bytes of stack and of spilled registers a thread, bytes of shared memory."""

    registers: int
    stack: int
    spill_stores: int
    spill_loads: int
    shared: int


@dataclass(frozen=True, slots=True)
class Compiled:
    """PTX text, machine code, the compiler's log, and the resources of each kernel by its name."""

    ptx: str
    cubin: bytes
    log: str
    resources: dict[str, Resources]


def is_available() -> bool:
    """Whether NVRTC is installed."""
    return _library_path() is not None


def compile_cuda(source: str, arch: str = "sm_90", *, options: tuple[str, ...] = OPTIONS) -> Compiled:
    """Compile a translation unit for an architecture such as "sm_80".

    Raises DeviceError where NVRTC is not installed or does not know the architecture. Raises InternalError with its log
    where the source is wrong.
    """
    library = _library()
    program = ctypes.c_void_p()
    _check(library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"tracer.cu", 0, None, None))
    try:
        arguments = [option.encode() for option in (f"--gpu-architecture={arch}", *options, _LOG)]
        status = library.nvrtcCompileProgram(program, len(arguments), (ctypes.c_char_p * len(arguments))(*arguments))
        log = _output(program, "ProgramLog").decode(errors="replace").rstrip("\0")
        if "gpu-architecture" in log and status:
            said = log.splitlines()
            raise DeviceError(message(f"NVRTC compiles for no {arch}", *said, help='name one such as "sm_90"'))
        if status:
            raise InternalError(message(f"NVRTC refuses what was written for {arch}", *log.splitlines()))
        ptx, cubin = _output(program, "PTX").decode().rstrip("\0"), _output(program, "CUBIN")
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))
    return Compiled(ptx, cubin, log, parse_resources(log))


_NUMBERS: Final = {
    "stack": r"(\d+) bytes stack frame",
    "spill_stores": r"(\d+) bytes spill stores",
    "spill_loads": r"(\d+) bytes spill loads",
    "registers": r"Used (\d+) registers",
    "shared": r"(\d+) bytes smem",
}


def parse_resources(log: str) -> dict[str, Resources]:
    """Return the resources of each kernel from ptxas's log under `-v`."""
    found: dict[str, dict[str, int]] = {}
    current: dict[str, int] = {}
    for line in log.splitlines():
        head = re.search(r"(?:Compiling entry function '|Function properties for )(\w+)", line)
        if head is not None:
            current = found.setdefault(head[1], dict.fromkeys(_NUMBERS, 0))
        for name, pattern in _NUMBERS.items():
            number = re.search(pattern, line)
            if number is not None:
                current[name] = int(number[1])
    return {name: Resources(**numbers) for name, numbers in found.items()}


# -- the library ---------------------------------------------------------------------------------------


@cache
def _library_path() -> Path | None:
    """Return the wheel's libnvrtc: in `nvidia/cu13/lib` since CUDA 13, `nvidia/cuda_nvrtc/lib` before."""
    spec = importlib.util.find_spec("nvidia")
    for root in spec.submodule_search_locations or () if spec is not None else ():
        for folder in ("cu13", "cuda_nvrtc"):
            found = sorted(Path(root, folder, "lib").glob("libnvrtc.so.*"))
            if found:
                return found[0]
    return None


@cache
def _library() -> ctypes.CDLL:
    path = _library_path()
    if path is None:
        raise DeviceError(message("NVRTC, which compiles CUDA, is not installed", help=INSTALL))
    for builtins in sorted(path.parent.glob("libnvrtc-builtins.so.*")):
        ctypes.CDLL(str(builtins), ctypes.RTLD_GLOBAL)  # 13.0 does not find it by itself
    library = ctypes.CDLL(str(path))
    library.nvrtcGetErrorString.restype = ctypes.c_char_p
    return library


def _check(status: int) -> None:
    if status:
        raise InternalError(f"NVRTC: {_library().nvrtcGetErrorString(status).decode()}")


def _output(program: ctypes.c_void_p, output: str) -> bytes:
    """Return one of a program's outputs: ProgramLog, PTX or CUBIN."""
    library, size = _library(), ctypes.c_size_t()
    _check(getattr(library, f"nvrtcGet{output}Size")(program, ctypes.byref(size)))
    buffer = ctypes.create_string_buffer(size.value)
    _check(getattr(library, f"nvrtcGet{output}")(program, buffer))
    return buffer.raw
