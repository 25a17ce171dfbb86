"""Emitted CUDA on the CPU, every access checked: kernel.h is a kernel's view, runtime.cpp has the checks.

The machine's C++ compiler builds the text as it is, but for the declarations of pointers and arrays. These become
checked ones. Libraries are kept where other kernels are, `config.kernel_dir`, so that a machine builds a text once.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from enum import IntEnum
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from tracer.codegen.cuda.helpers import HELPERS
from tracer.errors import DeviceError, InternalError, message
from tracer.runtime.cuda.simulator.memory import DeviceMemory, KernelError
from tracer.runtime.native.disk_cache import kernel_folder

_HERE: Final = Path(__file__).parent
_OPTIONS: Final = (
    "-std=c++17", "-g1", "-ffp-contract=off", "-fwrapv", "-fno-exceptions", "-U_FORTIFY_SOURCE", "-w", "-fPIC",
)  # fmt: skip
_LIBRARIES: Final = ("-nodefaultlibs", "-lm", "-lgcc", "-lc")  # to link C++'s takes a fifth of a small kernel's build
_MAX_ACCESSES: Final = 200_000_000

_KERNEL: Final = re.compile(r"__global__ void (?:__launch_bounds__\(\d+\) )?(\w+)\(([^)]*)\) \{")
_POINTER: Final = re.compile(r"(const )?\b(\w+)\*(?: __restrict__)? (\w+)")
_ARRAY: Final = re.compile(r"^( *)(__shared__ )?(\w+) (\w+)\[(\d+)\];", re.MULTILINE)
_MEETING: Final = re.compile(r"__syncthreads|_sync\(|__nanosleep|tr_grid_barrier")
_OWN: Final = {
    "widen_f16": "static f32 tr_widen_f16(f16 x) { return (f32)bits<_Float16>(x); }\n",
    "shorten_f16": "static f16 tr_shorten_f16(f32 x) { return bits<f16>((_Float16)x); }\n",
    "vector": "",
    "load_wide": "",
    "store_wide": "",
}  # in place of the machine's own instructions, or in kernel.h


class Order(IntEnum):
    """The order in which blocks and threads take their turns."""

    FORWARD = 0
    BACKWARD = 1
    BY_CHANCE = 2


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of a launch: checked accesses, switches from one thread to another, and its traffic where metered.

    requested: bytes that threads ask for. distinct: bytes that they touch, each once. sectors: of 32 bytes that warps
    ask for at once. least: sectors that as many bytes side by side would be.
    """

    accesses: int
    switches: int
    requested: int
    distinct: int
    sectors: int
    least: int

    def __add__(self, other: Counts) -> Counts:
        return Counts(*map(sum, zip(astuple(self), astuple(other), strict=True)))


class _Launch(ctypes.Structure):
    _fields_ = (
        ("grid", ctypes.c_uint32 * 3), ("block", ctypes.c_uint32 * 3), ("order", ctypes.c_uint32),
        ("seed", ctypes.c_uint32), ("cooperative", ctypes.c_uint32), ("fibers", ctypes.c_uint32),
        ("most", ctypes.c_uint64), ("error", ctypes.c_char_p), ("room", ctypes.c_uint32),
        ("accesses", ctypes.c_uint64), ("switches", ctypes.c_uint64), ("place", ctypes.c_uint64),
        ("meter", ctypes.c_uint32), ("requested", ctypes.c_uint64), ("distinct", ctypes.c_uint64),
        ("sectors", ctypes.c_uint64), ("least", ctypes.c_uint64),
    )  # fmt: skip


class Kernels:
    """A translation unit, built. Build equal text once: `built` keeps the results."""

    def __init__(self, text: str, library: Path) -> None:
        self.text = text
        self._path = library
        self._library = ctypes.CDLL(str(library))
        self._parameters = {name: _parameters(given) for name, given in _KERNEL.findall(text)}
        bodies = re.split(r"(?=__global__ void )", text)
        self._meets = {_KERNEL.search(body)[1]: bool(_MEETING.search(body)) for body in bodies if _KERNEL.search(body)}  # type: ignore[index]

    def launch(
        self, name: str, grid: int | Sequence[int], block: int | Sequence[int], arguments: Sequence[Any], *,
        order: Order = Order.FORWARD, seed: int = 1, cooperative: bool = False, most: int = _MAX_ACCESSES,
        meter: bool = False,
    ) -> Counts:  # fmt: skip
        """Run a kernel to its end.

        arguments: DeviceMemory for pointers, NumPy scalars for parameters by value. most: accesses. meter: measure
        traffic.

        Raises KernelError for the first thing that a thread does wrong.
        """
        parameters = self._parameters[name]
        assert len(parameters) == len(arguments), f"{name} takes {len(parameters)} arguments"
        _check_overlap(name, parameters, arguments)
        runtime, memories = _runtime(), []
        kept: list[Any] = []
        pointers = (ctypes.c_void_p * max(len(arguments), 1))()
        for i, (parameter, given) in enumerate(zip(parameters, arguments, strict=True)):
            if isinstance(given, DeviceMemory):
                label = parameter.name.encode()
                kept.append(label)
                memory = runtime.sim_memory(
                    given.address, given.known_address, given.size, given.dtype.itemsize, parameter.written, label
                )
                memories.append(memory)
                pointers[i] = memory
            else:
                held = np.array(given)
                kept.append(held)
                pointers[i] = held.ctypes.data
        error = ctypes.create_string_buffer(700)
        launch = _Launch(
            _three(grid), _three(block), order, seed, cooperative, self._meets[name] or cooperative,
            most, ctypes.cast(error, ctypes.c_char_p), len(error), 0, 0, 0, meter,
        )  # fmt: skip
        function = ctypes.cast(getattr(self._library, f"enter_{name}"), ctypes.c_void_p)
        listed = (ctypes.c_void_p * max(len(memories), 1))(*memories)
        failed = runtime.sim_launch(ctypes.byref(launch), name.encode(), function, pointers, listed, len(memories))
        for memory in memories:
            runtime.sim_forget(memory)
        if failed:
            raise KernelError(error.value.decode() + self._line(launch.place))
        return Counts(launch.accesses, launch.switches, launch.requested, launch.distinct, launch.sectors, launch.least)

    def _line(self, place: int) -> str:
        """Return the line of the kernel's text around an address of its code."""
        for mapped in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
            span, *_, path = mapped.split(maxsplit=5)
            first, last = (int(end, 16) for end in span.split("-"))
            if path == str(self._path) and first <= place < last:
                offset = int(mapped.split()[2], 16)
                said = subprocess.run(
                    ["addr2line", "-i", "-e", path, hex(place - first + offset - 1)],
                    check=True, capture_output=True, text=True,
                ).stdout  # fmt: skip
                lines = re.findall(r"kernel\.cu:(\d+)", said)
                return f", line {lines[0]}: {self.text.splitlines()[int(lines[0]) - 1].strip()}" if lines else ""
        return ""


@dataclass(frozen=True, slots=True)
class _Parameter:
    name: str
    kind: str
    pointer: bool
    written: bool


def _parameters(text: str) -> list[_Parameter]:
    found = []
    for parameter in filter(None, text.split(", ")):
        kind, _, name = parameter.rpartition(" ")
        pointer = _POINTER.fullmatch(parameter)
        found.append(_Parameter(name, kind, pointer is not None, pointer is not None and not pointer[1]))
    return found


def pointers_of(text: str) -> dict[str, list[int]]:
    """Return the positions of each kernel's parameters that are pointers."""
    return {name: [i for i, p in enumerate(_parameters(given)) if p.pointer] for name, given in _KERNEL.findall(text)}


def _check_overlap(name: str, parameters: Sequence[_Parameter], arguments: Sequence[Any]) -> None:
    """Raise KernelError where a written argument shares bytes with another: pointers are declared `__restrict__`."""
    spans = [(p, a.address, a.address + a.nbytes) for p, a in zip(parameters, arguments, strict=True) if p.pointer]
    for p, first, last in spans:
        for q, start, stop in spans:
            if p is not q and p.written and first < stop and start < last:
                raise KernelError(f"{name}: {p.name}, which it writes, shares memory with {q.name}")


def _three(extent: int | Sequence[int]) -> Any:
    given = (extent,) if isinstance(extent, (int, np.integer)) else tuple(extent)
    return (ctypes.c_uint32 * 3)(*given, *[1] * (3 - len(given)))


# -- building ------------------------------------------------------------------------------------------------


def checked_text(text: str) -> str:
    """Return the text with checked pointers and arrays, and code that enters each kernel; its lines stay in place."""
    for name, own in _OWN.items():
        text = text.replace(HELPERS[name], own.rstrip("\n") + "\n" * HELPERS[name].count("\n"))
    entries = [_entry(name, _parameters(given)) for name, given in _KERNEL.findall(text)]
    text = _POINTER.sub(lambda m: f"Pointer<{m[1] or ''}{m[2]}> {m[3]}", text)
    text = _ARRAY.sub(_array, text)
    return text + "\n" + "".join(entries)


def _array(m: re.Match[str]) -> str:
    maker = "sim_shared" if m[2] else "sim_local"
    return f'{m[1]}const Pointer<{m[3]}> {m[4]} = {{{maker}(__LINE__, {m[5]}, sizeof({m[3]}), "{m[4]}"), 0}};'


def _entry(name: str, parameters: Sequence[_Parameter]) -> str:
    given = [f"{{(Memory*)p[{i}], 0}}" if p.pointer else f"*({p.kind}*)p[{i}]" for i, p in enumerate(parameters)]
    return f'extern "C" void enter_{name}(void** p) {{ {name}({", ".join(given)}); }}\n'


@cache
def built(text: str) -> Kernels:
    """Return the kernels of a translation unit. Raises DeviceError where there is no C++ compiler."""
    return built_as(text, checked_text(text), _HERE / "kernel.h")


def built_as(text: str, code: str, header: Path) -> Kernels:
    """Return the kernels of a translation unit, built of C++ code behind a header."""
    _runtime()

    def build(library: Path) -> None:
        source = library.with_name("kernel.cu")
        source.write_text(code, encoding="utf-8")
        options = ("-O0", "-include", str(_kept_header(header)), "-x", "c++", str(source), "-shared", *_LIBRARIES)
        _compile(*options, "-o", str(library))

    headers = [path.read_text(encoding="utf-8") for path in (header, _HERE / "kernel.h")]
    return Kernels(text, _library(build, code, *headers))


def _library(build: Callable[[Path], None], *made_of: str) -> Path:
    """Return a shared library: kept by an earlier process, or built now. build: writes it to a path."""
    compiler = os.path.realpath(shutil.which("g++") or "")
    key = hashlib.sha256("\0".join((compiler, *_OPTIONS, *made_of)).encode()).hexdigest()
    library, kept = Path(tempfile.mkdtemp(dir=_folder())) / "kernel.so", kernel_folder()
    found = None if kept is None else kept.read(key)
    if found is not None:
        library.write_bytes(found)
        return library
    build(library)
    if kept is not None:
        kept.write(key, library.read_bytes())
    return library


def _compile(*arguments: str) -> None:
    if shutil.which("g++") is None:
        raise DeviceError(message("the simulated device builds kernels by g++, which is not here", help="install g++"))
    done = subprocess.run(["g++", *_OPTIONS, *arguments], check=False, capture_output=True, text=True)
    if done.returncode:
        raise InternalError(f"g++ refuses a kernel:\n{done.stderr[:4000]}")


@cache
def _folder() -> Path:
    folder = tempfile.TemporaryDirectory(prefix="cudasim")
    _KEPT.append(folder)
    return Path(folder.name)


_KEPT: list[tempfile.TemporaryDirectory[str]] = []


@cache
def _kept_header(header: Path) -> Path:
    """Return a copy of a header beside the form that the compiler reads faster."""
    copy = _folder() / header.name
    shutil.copy(header, copy)
    _compile("-O0", "-I", str(_HERE), "-x", "c++-header", str(copy), "-o", f"{copy}.gch")
    return copy


@cache
def _runtime() -> ctypes.CDLL:
    """Build the checks, once a process."""
    source = _HERE / "runtime.cpp"

    def build(library: Path) -> None:
        _compile("-O2", str(source), "-shared", "-o", str(library))

    runtime = ctypes.CDLL(str(_library(build, source.read_text(encoding="utf-8"))), ctypes.RTLD_GLOBAL)
    runtime.sim_memory.restype = ctypes.c_void_p
    runtime.sim_memory.argtypes = (
        ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32, ctypes.c_int32, ctypes.c_char_p,
    )  # fmt: skip
    runtime.sim_forget.argtypes = (ctypes.c_void_p,)
    return runtime
