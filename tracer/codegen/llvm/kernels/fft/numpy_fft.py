"""Fourier transforms by NumPy's compiled loops (pocketfft), in modules that are compiled once.

    void tracer_fft_numpy_f64(ptr source, ptr target, i64 kind, i64 outer, i64 n, i64 inner, double scale, i64 grain)
    target[o, k, i] = scale times the transform of source[o, :, i]; dtypes as in `primitives.linalg.fourier`

kind: 0 FFT, 1 IFFT, 2 RFFT, 3 IRFFT. n: the length of the complex or real side. grain: transforms that are worth a
thread. The loops are the inner loops of NumPy's ufuncs, C functions that keep plans under a lock of their own. They
take several transforms at a time into the lanes of vectors. They need the GIL only to report that memory ran out. Where
NumPy has no such loops, a callback runs `numpy.fft`.
"""

from __future__ import annotations

import ctypes
from functools import cache
from importlib import import_module
from typing import Any, Final

import numpy as np

from tracer.codegen.llvm.kernels.fft.shared_texts import given_scale
from tracer.codegen.llvm.kernels.gemm.kernel_loops import keep, kept

NAME: Final = "tracer_fft_numpy_"
KINDS: Final = {"f32": ("float", 4), "f64": ("double", 8)}
PARAMETERS: Final = "ptr, ptr, i64, i64, i64, i64, double, i64"
LOOPS: Final = ("fft", "ifft", "rfft_n_even", "rfft_n_odd", "irfft")
_GIVEN: Final = (
    "ptr %source", "ptr %target", "i64 %kind", "i64 %n", "i64 %inner", "i64 %inputs", "i64 %outputs", "i64 %from",
    "i64 %to", "ptr %loop", "ptr %data", "i64 %bits",
)  # fmt: skip


def numpy_text(kind: str) -> str:
    """Return the module of one dtype."""
    element, size = KINDS[kind]
    names = [f"@tracer_numpy_{name}_{kind}" for name in LOOPS]
    declared = "\n".join(f"declare void {name}(ptr, ptr, ptr, ptr)" for name in names)
    data = "\n".join(f"{name.replace('numpy_', 'numpy_data_')} = external global i8" for name in names)
    return f"""\
declare void @tracer_share(ptr, ptr, i64, i64)
declare i64 @llvm.smin.i64(i64, i64)
{declared}
{data}
define void @{NAME}{kind}(ptr %source, ptr %target, i64 %kind, i64 %outer, i64 %n, i64 %inner, double %scale, \
i64 %grain) nounwind {{
entry:
{given_scale(element, _GIVEN)}
  %halved = udiv i64 %n, 2
  %half = add i64 %halved, 1
  %parity = urem i64 %n, 2
  %is.odd = icmp ne i64 %parity, 0
  switch i64 %kind, label %c2c [ i64 2, label %r2c  i64 3, label %c2r ]
c2c:
  %is.back = icmp ne i64 %kind, 0
  %c2c.loop = select i1 %is.back, ptr {names[1]}, ptr {names[0]}
  %c2c.data = select i1 %is.back, ptr {names[1].replace("numpy_", "numpy_data_")}, \
ptr {names[0].replace("numpy_", "numpy_data_")}
  br label %share
r2c:
  %r2c.loop = select i1 %is.odd, ptr {names[3]}, ptr {names[2]}
  %r2c.data = select i1 %is.odd, ptr {names[3].replace("numpy_", "numpy_data_")}, \
ptr {names[2].replace("numpy_", "numpy_data_")}
  br label %share
c2r:
  br label %share
share:
  %loop = phi ptr [ %c2c.loop, %c2c ], [ %r2c.loop, %r2c ], [ {names[4]}, %c2r ]
  %data = phi ptr [ %c2c.data, %c2c ], [ %r2c.data, %r2c ], [ {names[4].replace("numpy_", "numpy_data_")}, %c2r ]
  %inputs = phi i64 [ %n, %c2c ], [ %n, %r2c ], [ %half, %c2r ]
  %outputs = phi i64 [ %n, %c2c ], [ %half, %r2c ], [ %n, %c2r ]
  %from = phi i64 [ {2 * size}, %c2c ], [ {size}, %r2c ], [ {2 * size}, %c2r ]
  %to = phi i64 [ {2 * size}, %c2c ], [ {2 * size}, %r2c ], [ {size}, %c2r ]
{keep(*_GIVEN)}
  %count = mul i64 %outer, %inner
  call void @tracer_share(ptr @some, ptr %given, i64 %count, i64 %grain)
  ret void
}}
define internal void @some(ptr %given, i64 %begin, i64 %end) nounwind {{
entry:
{kept(*_GIVEN)}
  %arguments = alloca [3 x ptr], align 8
  %sizes = alloca [3 x i64], align 8
  %steps = alloca [5 x i64], align 8
  %factor = inttoptr i64 %bits to ptr
  %is.rows = icmp eq i64 %inner, 1
  %from.step = mul i64 %from, %inner
  %to.step = mul i64 %to, %inner
  %from.row = mul i64 %from.step, %inputs
  %to.row = mul i64 %to.step, %outputs
  %from.next = select i1 %is.rows, i64 %from.row, i64 %from
  %to.next = select i1 %is.rows, i64 %to.row, i64 %to
{_stores("sizes", "i64", {1: "%inputs", 2: "%outputs"})}
{_stores("steps", "i64", {0: "%from.next", 1: "0", 2: "%to.next", 3: "%from.step", 4: "%to.step"})}
  br label %lines
lines:
  %at = phi i64 [ %begin, %entry ], [ %at.next, %lines ]
  %o = udiv i64 %at, %inner
  %i = urem i64 %at, %inner
  %left = sub i64 %end, %at
  %left.inner = sub i64 %inner, %i
  %least = call i64 @llvm.smin.i64(i64 %left, i64 %left.inner)
  %some = select i1 %is.rows, i64 %left, i64 %least
  %source.row = mul i64 %o, %from.row
  %source.skip = mul i64 %i, %from
  %source.at = add i64 %source.row, %source.skip
  %source.here = getelementptr i8, ptr %source, i64 %source.at
  %target.row = mul i64 %o, %to.row
  %target.skip = mul i64 %i, %to
  %target.at = add i64 %target.row, %target.skip
  %target.here = getelementptr i8, ptr %target, i64 %target.at
{_stores("arguments", "ptr", {0: "%source.here", 1: "%factor", 2: "%target.here"})}
  store i64 %some, ptr %sizes, align 8
  call void %loop(ptr %arguments, ptr %sizes, ptr %steps, ptr %data)
  %at.next = add i64 %at, %some
  %more = icmp slt i64 %at.next, %end
  br i1 %more, label %lines, label %done
done:
  ret void
}}
"""


def _stores(array: str, kind: str, values: dict[int, str]) -> str:
    return "\n".join(
        f"  %{array}.{place} = getelementptr i64, ptr %{array}, i64 {place}\n"
        f"  store {kind} {value}, ptr %{array}.{place}, align 8"
        for place, value in values.items()
    )


# Addresses of NumPy's loops


def numpy_symbols(kind: str) -> dict[str, int]:
    """Return the addresses of NumPy's loops of one dtype, and of the data that each is called with."""
    found = {}
    for name in LOOPS:
        found[f"tracer_numpy_{name}_{kind}"], found[f"tracer_numpy_data_{name}_{kind}"] = loop_of(name, kind)
    return found


_Loop = ctypes.CFUNCTYPE(
    None, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_ssize_t), ctypes.POINTER(ctypes.c_ssize_t),
    ctypes.c_void_p,
)  # fmt: skip
_nothing = ctypes.c_int64(0)
_replacements: list[Any] = []  # references that keep ctypes callbacks alive


@cache
def loop_of(name: str, kind: str) -> tuple[int, int]:
    """Return the address of a loop and of its data: NumPy's, if it transforms a sample."""
    try:
        address, data = in_numpy(name, kind)
    except (AttributeError, ImportError, ValueError):
        address = data = 0
    if address and works(name, kind, address, data):
        return address, data
    replacement = _Loop(_replacement(name, kind))
    _replacements.append(replacement)
    return ctypes.cast(replacement, ctypes.c_void_p).value or 0, ctypes.addressof(_nothing)


def in_numpy(name: str, kind: str) -> tuple[int, int]:
    """Read a loop and its data in the ufunc's structure: counts and `identity`, then the arrays of both.

    Raises AttributeError, ImportError or ValueError where this version of NumPy has none.
    """
    ufunc = getattr(import_module("numpy.fft._pocketfft_umath"), name)
    letter = "f" if kind == "f32" else "d"
    place = next((i for i, types in enumerate(ufunc.types) if types.lower().startswith(letter)), -1)
    if place < 0:
        raise ValueError(name)
    head = id(ufunc) + object.__basicsize__
    counts = (ctypes.c_int * 3).from_address(head)
    if tuple(counts) != (ufunc.nin, ufunc.nout, ufunc.nargs):
        raise ValueError(name)
    functions, data = (ctypes.c_void_p * 2).from_address(head + 16)
    if not functions:
        raise ValueError(name)
    step = 8 * place
    given = ctypes.c_void_p.from_address(data + step).value if data else None
    return ctypes.c_void_p.from_address(functions + step).value or 0, given or ctypes.addressof(_nothing)


def works(name: str, kind: str, address: int, data: int) -> bool:
    """Whether the loop transforms two samples of length 5 or 6 as `numpy.fft` does."""
    real = np.dtype(f"f{KINDS[kind][1]}")
    whole = np.dtype(f"c{2 * real.itemsize}")
    n = 5 if name.endswith("odd") else 6
    is_real, to_real = name.startswith("rfft"), name.startswith("irfft")
    x = np.arange(2.0 * (n // 2 + 1 if to_real else n)).reshape(2, -1) ** 2
    x = x.astype(real if is_real else whole)
    y = np.zeros((2, n // 2 + 1 if is_real else n), real if to_real else whole)
    factor = np.full((), 0.5, real)
    arguments = (ctypes.c_void_p * 3)(x.ctypes.data, factor.ctypes.data, y.ctypes.data)
    sizes = (ctypes.c_ssize_t * 3)(2, x.shape[1], y.shape[1])
    steps = (ctypes.c_ssize_t * 5)(x.strides[0], 0, y.strides[0], x.strides[1], y.strides[1])
    _Loop(address)(arguments, sizes, steps, data)
    return bool(np.allclose(y, 0.5 * _by_name(name, x, n), rtol=1e-4, atol=1e-4))


def _by_name(name: str, x: Any, n: int) -> Any:
    """Return the transforms along the last axis, none scaled."""
    if name == "ifft":
        return np.fft.ifft(x, norm="forward")
    if name == "irfft":
        return np.fft.irfft(x, n, norm="forward")
    return np.fft.fft(x) if name == "fft" else np.fft.rfft(x)


def _replacement(name: str, kind: str) -> Any:
    """Return a callback that transforms through Python."""
    real = np.dtype(f"f{KINDS[kind][1]}")
    whole = np.dtype(f"c{2 * real.itemsize}")

    def memory(address: Any, dtype: Any, shape: tuple[int, int], strides: tuple[int, int]) -> Any:
        length = sum((count - 1) * stride for count, stride in zip(shape, strides, strict=True)) + dtype.itemsize
        held = memoryview((ctypes.c_ubyte * length).from_address(address))
        return np.ndarray(shape, dtype, held, strides=strides)

    def run(arguments: Any, sizes: Any, steps: Any, data: Any) -> None:
        count, inputs, outputs = sizes[0], sizes[1], sizes[2]
        x = memory(arguments[0], real if name.startswith("rfft") else whole, (count, inputs), (steps[0], steps[3]))
        y = memory(arguments[2], real if name == "irfft" else whole, (count, outputs), (steps[2], steps[4]))
        factor = memory(arguments[1], real, (1, 1), (0, 0))
        y[...] = _by_name(name, x, outputs) * factor

    return run
