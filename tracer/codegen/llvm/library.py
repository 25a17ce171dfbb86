"""Library routines: how each is called from LLVM text, and where its symbols come from.

A routine is one record. Its `definition` is the text of an internal function that adapts loop IR's arguments to the
library's C interface; `spell` writes the calls of one statement; `symbols` are the external names that it binds,
each resolved lazily, by name, so that object code can be kept on disk.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from tracer.codegen.llvm.ordering import KINDS, argsort_definition, numpy_address, sort_definition
from tracer.errors import InternalError
from tracer.ir.loop import Constant, Library, Module, Operand, View
from tracer.ir.loop_walk import blocks_of

Spell = Callable[["Routine", Sequence[View | Operand], Sequence[str]], list[str]]


@dataclass(frozen=True, slots=True)
class Routine:
    """One key of `LIBRARY`. blas: whether it needs to know about BLAS's threads."""

    name: str
    definition: str
    spell: Spell
    symbols: tuple[tuple[str, str, str], ...]  # (bound name, "numpy" or a module with __pyx_capi__, name there)
    blas: bool = False


def _size(argument: View | Operand, routine: str) -> int:
    """A dimension: a constant that fits C's int."""
    if not isinstance(argument, Constant):
        raise InternalError(f"llvm: {routine} takes constant dimensions")
    value = int(argument.value)
    if not 0 <= value < 1 << 31:
        raise InternalError(f"llvm: {routine} with a dimension of {value}: BLAS takes 32-bit sizes")
    return value


# -- matrix products ---------------------------------------------------------------------------------------------

_ITEM: Final = {"f32": ("float", 4), "f64": ("double", 8), "c64": ("[2 x float]", 8), "c128": ("[2 x double]", 16)}
_LETTER: Final = {"f32": "s", "f64": "d", "c64": "c", "c128": "z"}
_ONE: Final = {
    "f32": "float 1.0", "f64": "double 1.0",
    "c64": "[2 x float] [float 1.0, float 0.0]", "c128": "[2 x double] [double 1.0, double 0.0]",
}  # fmt: skip


_ALONE: Final = 1 << 22
"""Products of m * n * k up to this take one thread: below it, handing work over costs more than it gains, and far more
where other processes keep the cores busy (measured for 64 x 64 x 128 on two loaded cores: 30 ms in place of 10 µs)."""


def _gemm_spell(routine: Routine, given: Sequence[View | Operand], spelled: Sequence[str]) -> list[str]:
    """out[m, n] = op(a)[m, k] @ op(b)[k, n], `batch` times, all row-major.

    Arguments: views a, b, out; constants batch, m, n, k, transpose_a, transpose_b (0 or 1; then a is stored [k, m],
    b is stored [n, k]), stride_a, stride_b (elements of the routine's dtype from one product's operand to the next).
    """
    kind = routine.name.removeprefix("gemm_")
    batch, m, n, k = (_size(x, routine.name) for x in given[3:7])
    if not (batch and m and n):
        return []
    if not k:
        size = batch * m * n * _ITEM[kind][1]
        return [f"call void @llvm.memset.p0.i64({spelled[2]}, i8 0, i64 {size}, i1 false)"]
    way = "alone." if m * n * k <= _ALONE else ""
    return [f"call void @library.{way}{routine.name}({', '.join(spelled)})"]


def _gemm_definition(kind: str) -> str:
    """A loop over the batch around BLAS, which is column-major: out.T = op(b).T @ op(a).T.

    A product with a vector (n = 1) goes to gemv: the vector is contiguous, however it is transposed.
    """
    item, letter = _ITEM[kind][0], _LETTER[kind]
    sizes = ("m", "n", "k", "lda", "ldb", "one")
    slots = "\n".join(f"  %{s}.slot = alloca i32, align 4" for s in sizes)
    narrow = "\n".join(f"  %{s}.i = trunc i64 %{s} to i32\n  store i32 %{s}.i, ptr %{s}.slot" for s in sizes[:5])
    return f"""\
@library.one.{kind} = private constant {_ONE[kind]}, align 16
@library.zero.{kind} = private constant {item} zeroinitializer, align 16
declare void @tracer_blas_{letter}gemm(ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr)
declare void @tracer_blas_{letter}gemv(ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr)
define internal void @library.alone.gemm_{kind}(ptr %a, ptr %b, ptr %out, i64 %batch, i64 %m, i64 %n, i64 %k, \
i64 %transpose.a, i64 %transpose.b, i64 %stride.a, i64 %stride.b) #2 {{
entry:
  %threads = load i32, ptr @tracer_blas_threads, align 4
  %several = icmp sgt i32 %threads, 1
  br i1 %several, label %reduce, label %multiply
reduce:
  call void @tracer_blas_set_threads(i32 1)
  br label %multiply
multiply:
  call void @library.gemm_{kind}(ptr %a, ptr %b, ptr %out, i64 %batch, i64 %m, i64 %n, i64 %k, \
i64 %transpose.a, i64 %transpose.b, i64 %stride.a, i64 %stride.b)
  br i1 %several, label %restore, label %done
restore:
  call void @tracer_blas_set_threads(i32 %threads)
  br label %done
done:
  ret void
}}
define internal void @library.gemm_{kind}(ptr %a, ptr %b, ptr %out, i64 %batch, i64 %m, i64 %n, i64 %k, \
i64 %transpose.a, i64 %transpose.b, i64 %stride.a, i64 %stride.b) #2 {{
entry:
{slots}
  %ta.slot = alloca i8, align 1
  %tb.slot = alloca i8, align 1
  %tv.slot = alloca i8, align 1
  %ta.set = icmp ne i64 %transpose.a, 0
  %tb.set = icmp ne i64 %transpose.b, 0
  %ta = select i1 %ta.set, i8 84, i8 78
  %tb = select i1 %tb.set, i8 84, i8 78
  %tv = select i1 %ta.set, i8 78, i8 84
  store i8 %ta, ptr %ta.slot
  store i8 %tb, ptr %tb.slot
  store i8 %tv, ptr %tv.slot
  %lda = select i1 %ta.set, i64 %m, i64 %k
  %ldb = select i1 %tb.set, i64 %k, i64 %n
  %rows.slot = select i1 %ta.set, ptr %m.slot, ptr %k.slot
  %columns.slot = select i1 %ta.set, ptr %k.slot, ptr %m.slot
{narrow}
  store i32 1, ptr %one.slot
  %stride.out = mul i64 %m, %n
  %is.vector = icmp eq i64 %n, 1
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %following, %next ]
  %a.at = mul i64 %i, %stride.a
  %b.at = mul i64 %i, %stride.b
  %out.at = mul i64 %i, %stride.out
  %a.i = getelementptr {item}, ptr %a, i64 %a.at
  %b.i = getelementptr {item}, ptr %b, i64 %b.at
  %out.i = getelementptr {item}, ptr %out, i64 %out.at
  br i1 %is.vector, label %vector, label %matrix
vector:
  call void @tracer_blas_{letter}gemv(ptr %tv.slot, ptr %rows.slot, ptr %columns.slot, ptr @library.one.{kind}, \
ptr %a.i, ptr %lda.slot, ptr %b.i, ptr %one.slot, ptr @library.zero.{kind}, ptr %out.i, ptr %one.slot)
  br label %next
matrix:
  call void @tracer_blas_{letter}gemm(ptr %tb.slot, ptr %ta.slot, ptr %n.slot, ptr %m.slot, ptr %k.slot, \
ptr @library.one.{kind}, ptr %b.i, ptr %ldb.slot, ptr %a.i, ptr %lda.slot, ptr @library.zero.{kind}, \
ptr %out.i, ptr %n.slot)
  br label %next
next:
  %following = add i64 %i, 1
  %more = icmp slt i64 %following, %batch
  br i1 %more, label %loop, label %done
done:
  ret void
}}
"""


def _gemm(kind: str) -> Routine:
    blas, letter = "scipy.linalg.cython_blas", _LETTER[kind]
    symbols = tuple((f"tracer_blas_{letter}{r}", blas, f"{letter}{r}") for r in ("gemm", "gemv"))
    return Routine(f"gemm_{kind}", _gemm_definition(kind), _gemm_spell, symbols, blas=True)


# -- sorting -----------------------------------------------------------------------------------------------------


def _sort_spell(routine: Routine, given: Sequence[View | Operand], spelled: Sequence[str]) -> list[str]:
    """target = each row of source sorted, or the positions (i64) of its elements in order, equal ones as they come.

    Arguments: views source, target, which do not overlap; constants rows, n.
    """
    rows, n = (int(x.value) for x in given[2:4] if isinstance(x, Constant))
    return [f"call void @library.{routine.name}({', '.join(spelled)})"] if rows and n else []


def _sorting(kind: str) -> list[Routine]:
    sort = (f"tracer_sort_{kind}", "numpy", f"sort_{kind}")
    arg = ((f"tracer_argsort_{kind}", "numpy", f"argsort_{kind}"), ("tracer_sort_positions", "numpy", "sort_positions"))
    return [
        Routine(f"sort_{kind}", sort_definition(kind), _sort_spell, (sort,)),
        Routine(f"argsort_{kind}", argsort_definition(kind), _sort_spell, arg),
    ]


LIBRARY: Final[dict[str, Routine]] = {
    routine.name: routine
    for routine in (
        _gemm("f32"), _gemm("f64"), _gemm("c64"), _gemm("c128"),
        *(routine for kind in KINDS for routine in _sorting(kind)),
    )
}  # fmt: skip


THREADS: Final = """\
@tracer_blas_threads = external global i32
declare void @tracer_blas_set_threads(i32)
"""
"""What the definitions of BLAS routines read, once in a module."""


def library_names(module: Module) -> list[str]:
    """The routines that a module calls, in order of their names."""
    names, blocks = set(), [function.body for function in module.functions]
    while blocks:
        for statement in blocks.pop().statements:
            if isinstance(statement, Library):
                names.add(statement.name)
            blocks.extend(blocks_of(statement))
    return sorted(names)


def capsule_address(module: str, name: str) -> int:
    """The address of a C function that a Cython module exports."""
    capsule = import_module(module).__pyx_capi__[name]
    get_name = ctypes.pythonapi.PyCapsule_GetName
    get_name.restype, get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return int(get_pointer(capsule, get_name(capsule)))


_threads = ctypes.c_int32(1)  # how many BLAS uses for large products; compiled code reads it
_ignore = ctypes.CFUNCTYPE(None, ctypes.c_int32)(lambda count: None)


@cache
def blas_thread_symbols() -> dict[str, int]:
    """How compiled code sets the number of BLAS threads; where SciPy's BLAS has no such switch, it stays as it is."""
    setter = _ignore
    library = _scipy_openblas()
    if library is not None:
        _threads.value = int(library.scipy_openblas_get_num_threads())
        setter = library.scipy_openblas_set_num_threads
    address = ctypes.cast(setter, ctypes.c_void_p).value
    assert address is not None
    return {"tracer_blas_threads": ctypes.addressof(_threads), "tracer_blas_set_threads": address}


def _scipy_openblas() -> Any:
    """The OpenBLAS that SciPy's wheels carry, where it is loaded."""
    folder = Path(import_module("scipy").__file__ or "").resolve().parent.parent / "scipy.libs"
    for path in sorted(folder.glob("libscipy_openblas*")):
        try:
            library = ctypes.CDLL(str(path), mode=getattr(os, "RTLD_NOLOAD", 0) | ctypes.RTLD_LOCAL)
        except OSError:
            continue
        if hasattr(library, "scipy_openblas_set_num_threads"):
            return library
    return None


def library_symbols(names: Iterable[str]) -> dict[str, int]:
    """The addresses that the named routines bind; SciPy is imported only when there are any.

    >>> library_symbols([])
    {}
    """
    addresses = {}
    for name in names:
        for symbol, module, function in LIBRARY[name].symbols:
            known = numpy_address(function) if module == "numpy" else capsule_address(module, function)
            addresses[symbol] = known
        if LIBRARY[name].blas:
            addresses.update(blas_thread_symbols())
    return addresses
