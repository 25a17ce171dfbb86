"""Decompositions of stacks of matrices by LAPACK, as LLVM text written from the records of `lapack_calls`.

A call's arguments are the routine's arrays, then integers. These are the stack's length, matrices of a part, elements
of each array for one matrix (scratch: for a part), sizes and characters. Threads share the parts, and BLAS has one
thread. With more, where other processes kept two cores busy, the eigenvalues of 200 rows took 150 ms, rather than 4.
"""

from __future__ import annotations

from typing import Final

from tracer.codegen.llvm.kernels.gemm.blas import blas_threads, on_one_thread
from tracer.codegen.llvm.kernels.gemm.kernel_loops import keep, kept, loop
from tracer.ir import dtypes
from tracer.primitives.linalg.lapack_calls import ROUTINES, Routine

_REAL: Final = {"f32": "float", "f64": "double", "c64": "float", "c128": "double"}
_NAN: Final = "0x7FF8000000000000"


def _item(item: str, kind: str) -> str:
    """Return the LLVM type of an array's elements."""
    real = _REAL[kind]
    return {"x": f"[2 x {real}]" if kind.startswith("c") else real, "r": real, "i": "i32"}[item]


def stack_external(key: str, kind: str) -> tuple[str, str, str]:
    """Return the routine's symbol, the module of SciPy that has it, and its name there."""
    name = ROUTINES[key].function(dtypes.BY_SHORT_NAME[kind])
    return f"tracer_lapack_{name}", "scipy.linalg.cython_lapack", name


def stack_definition(key: str, kind: str) -> tuple[str, ...]:
    """Return the texts that calls of a routine need."""
    routine = ROUTINES[key]
    arrays = [name for name, _ in routine.arrays]
    words = [f"ptr %{name}" for name in arrays]
    words += [f"i64 %{name}" for name in ("batch", "width", *(f"{a}.stride" for a in arrays))]
    words += [f"i64 %{name}.value" for name in (*routine.sizes, *routine.letters)]
    some, parts = f"@library.some.{key}_{kind}", f"@library.parts.{key}_{kind}"
    text = f"""\
declare void @tracer_share(ptr, ptr, i64, i64)
define internal void @library.{key}_{kind}({", ".join(words)}) #2 {{
entry:
  %given = alloca [{len(words)} x i64], align 8
{keep(*words)}
  %above = add i64 %batch, %width
  %most = sub i64 %above, 1
  %count = sdiv i64 %most, %width
  call void {parts}(ptr %given, i64 %count)
  ret void
}}
define internal void {parts}(ptr %given, i64 %count) #2 {{
entry:
{on_one_thread(f"call void @tracer_share(ptr {some}, ptr %given, i64 %count, i64 1)")}
}}
{_some(routine, key, kind, words)}"""
    return blas_threads(), text


def _some(routine: Routine, key: str, kind: str, words: list[str]) -> str:
    """Return the function that factors the matrices of the parts from `begin` to `end`."""
    symbol = stack_external(key, kind)[0]
    arguments = routine.arguments(dtypes.BY_SHORT_NAME[kind])
    slots = [f"  %{s} = alloca i32, align 4" for s in (*routine.sizes, "info")]
    slots += [f"  %{s} = alloca i8, align 1" for s in routine.letters]
    for group, narrow in ((routine.sizes, "i32"), (routine.letters, "i8")):
        for s in group:
            slots += [f"  %{s}.narrow = trunc i64 %{s}.value to {narrow}", f"  store {narrow} %{s}.narrow, ptr %{s}"]
    names = {"null": "ptr null", "info": "ptr %info"} | {s: f"ptr %{s}" for s in (*routine.sizes, *routine.letters)}
    places = []
    for name, item in routine.arrays:
        index = "%p" if name in routine.scratch else "%i"
        places += [f"  %{name}.at = mul i64 {index}, %{name}.stride"]
        places += [f"  %{name}.i = getelementptr {_item(item, kind)}, ptr %{name}, i64 %{name}.at"]
        names[name] = f"ptr %{name}.i"
    call = f"  call void @{symbol}({', '.join(names[word] for word in arguments)})"
    matrix = "\n".join([*places, "  store i32 0, ptr %info", *_guarded(routine, kind, call), *_marked(routine, kind)])
    part = f"""\
  %first = mul i64 %p, %width
  %behind = add i64 %first, %width
  %stop = call i64 @llvm.smin.i64(i64 %behind, i64 %batch)
{loop("i", "%first", "%stop", 1, matrix)}"""
    slot_text = "\n".join(slots)
    return f"""\
declare void @{symbol}({", ".join(["ptr"] * len(arguments))})
declare i64 @llvm.smin.i64(i64, i64)
define internal void @library.some.{key}_{kind}(ptr %given, i64 %begin, i64 %end) #2 {{
entry:
{kept(*words)}
{slot_text}
{loop("p", "%begin", "%end", 1, part)}
  ret void
}}
"""


def _parts(item: str, kind: str) -> int:
    """Return the scalars of an element."""
    return 2 if item == "x" and kind.startswith("c") else 1


def _guarded(routine: Routine, kind: str, call: str) -> list[str]:
    """Return the call, for iterations only where all scalars times zero add up to zero: where they are finite."""
    if not routine.iterates:
        return [call]
    name, item = routine.arrays[0]
    real = _REAL[kind]
    body = f"""\
  %x.at = getelementptr {real}, ptr %{name}.i, i64 %x
  %x.value = load {real}, ptr %x.at
  %x.zero = fmul {real} %x.value, 0.0
  %zeros.new = fadd reassoc {real} %zeros, %x.zero"""
    return [
        f"  %scalars = mul i64 %{name}.stride, {_parts(item, kind)}",
        loop("x", "0", "%scalars", 1, body, [("zeros", real, "0.0")]),
        f"  %is.finite = fcmp ord {real} %zeros, 0.0",
        "  br i1 %is.finite, label %run, label %refuse",
        "refuse:",
        "  store i32 1, ptr %info",
        "  br label %finished",
        "run:",
        call,
        "  br label %finished",
        "finished:",
    ]


def _marked(routine: Routine, kind: str) -> list[str]:
    """Return the lines that write NaN to the floats of results where `info` is not 0."""
    lines = ["  %found = load i32, ptr %info", "  %failed = icmp ne i32 %found, 0"]
    lines += ["  br i1 %failed, label %mark, label %known", "mark:"]
    for name, item in routine.arrays:
        if name in routine.scratch or item == "i":
            continue
        at, real = f"{name}.bad", _REAL[kind]
        body = f"  %{at}.at = getelementptr {real}, ptr %{name}.i, i64 %{at}\n  store {real} {_NAN}, ptr %{at}.at"
        lines += [
            f"  %{at}.count = mul i64 %{name}.stride, {_parts(item, kind)}",
            loop(at, "0", f"%{at}.count", 1, body),
        ]
    return [*lines, "  br label %known", "known:"]
