"""Sorting by NumPy's own functions, which are vectorised where the machine allows: their text and their addresses.

NumPy's C interface has, for every dtype, functions that sort memory in place, NaN last. They are not stable, so the
routines here restore the order of equal elements. Among floats -0 equals +0: a row that holds a -0 gets its zeros back
in their original order. Equal keys of an argsort get their positions in order. Positions of long rows come from our own
radix sort (`radix_argsort`), which leaves rows that it cannot order to NumPy.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any, Final

import numpy as np

from tracer.codegen.llvm.kernels.gemm.kernel_loops import keep, kept

KINDS: Final = {
    "i8": "i8", "i16": "i16", "i32": "i32", "i64": "i64", "u8": "i8", "u16": "i16", "u32": "i32", "u64": "i64",
    "f32": "float", "f64": "double",
}  # fmt: skip
"""Dtypes that can be sorted, and the LLVM types of their elements."""
SORT_ROWS, ARGSORT_ROWS, RADIX_ROWS = ROWS = ("tracer_sort_rows_", "tracer_argsort_rows_", "tracer_radix_rows_")
"""Routines over rows, by their names without the dtype: modules that programs share."""
_FLOATS: Final = {"f32": ("i32", -(2**31)), "f64": ("i64", -(2**63))}
_SORT, _ARGSORT = 33, 36  # indices of the functions (quicksort) in PyArray_ArrFuncs
_GET_FUNCTIONS: Final = 365  # PyDataType_GetArrFuncs in NumPy's table

_Sort = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)
_Argsort = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)


def item_size(kind: str) -> int:
    """Return the bytes of an element."""
    return int(kind[1:]) // 8


def sort_text(kind: str) -> str:
    """Return the module that sorts rows of source into target, which is other memory."""
    element, zeros = KINDS[kind], ""
    if kind in _FLOATS:
        zeros = "  call void @zeros(ptr %source.row, ptr %target.row, i64 %n)\n"
    return f"""\
{_zeros_definition(kind)}declare i32 @tracer_sort_{kind}(ptr, i64, ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define void @{SORT_ROWS}{kind}(ptr %source, ptr %target, i64 %rows, i64 %n) nounwind {{
entry:
  %bytes = mul i64 %n, {item_size(kind)}
  br label %row
row:
  %i = phi i64 [ 0, %entry ], [ %following, %row ]
  %at = mul i64 %i, %n
  %source.row = getelementptr {element}, ptr %source, i64 %at
  %target.row = getelementptr {element}, ptr %target, i64 %at
  call void @llvm.memcpy.p0.p0.i64(ptr %target.row, ptr %source.row, i64 %bytes, i1 false)
  %status = call i32 @tracer_sort_{kind}(ptr %target.row, i64 %n, ptr null)
{zeros}  %following = add i64 %i, 1
  %more = icmp slt i64 %following, %rows
  br i1 %more, label %row, label %done
done:
  ret void
}}
"""


def _zeros_definition(kind: str) -> str:
    """Return the function that restores the order of a row's zeros in the target, if the source holds a -0."""
    if kind not in _FLOATS:
        return ""
    element, (bits, sign) = KINDS[kind], _FLOATS[kind]
    lanes = 64 // item_size(kind)
    vector = f"<{lanes} x {bits}>"
    return f"""\
declare i1 @llvm.vector.reduce.or.v{lanes}i1(<{lanes} x i1>)
define internal void @zeros(ptr %source, ptr %target, i64 %n) nounwind {{
entry:
  %whole = and i64 %n, {-lanes}
  br label %block
block:
  %b = phi i64 [ 0, %entry ], [ %b.next, %scan ]
  %b.more = icmp slt i64 %b, %whole
  br i1 %b.more, label %scan, label %rest
scan:
  %b.at = getelementptr {bits}, ptr %source, i64 %b
  %words = load {vector}, ptr %b.at, align {item_size(kind)}
  %negative = icmp eq {vector} %words, splat ({bits} {sign})
  %found = call i1 @llvm.vector.reduce.or.v{lanes}i1(<{lanes} x i1> %negative)
  %b.next = add i64 %b, {lanes}
  br i1 %found, label %first, label %block
rest:
  %r = phi i64 [ %whole, %block ], [ %r.next, %look ]
  %r.more = icmp slt i64 %r, %n
  br i1 %r.more, label %look, label %done
look:
  %r.at = getelementptr {bits}, ptr %source, i64 %r
  %word = load {bits}, ptr %r.at, align {item_size(kind)}
  %is.negative = icmp eq {bits} %word, {sign}
  %r.next = add i64 %r, 1
  br i1 %is.negative, label %first, label %rest
first:
  %z = phi i64 [ 0, %scan ], [ 0, %look ], [ %z.next, %first ]
  %z.at = getelementptr {element}, ptr %target, i64 %z
  %z.value = load {element}, ptr %z.at, align {item_size(kind)}
  %below = fcmp olt {element} %z.value, 0.0
  %z.next = add i64 %z, 1
  br i1 %below, label %first, label %copy
copy:
  %i = phi i64 [ 0, %first ], [ %i.next, %next ]
  %to = phi i64 [ %z, %first ], [ %to.next, %next ]
  %i.at = getelementptr {element}, ptr %source, i64 %i
  %value = load {element}, ptr %i.at, align {item_size(kind)}
  %is.zero = fcmp oeq {element} %value, 0.0
  br i1 %is.zero, label %put, label %next
put:
  %to.at = getelementptr {element}, ptr %target, i64 %to
  store {element} %value, ptr %to.at, align {item_size(kind)}
  br label %next
next:
  %step = zext i1 %is.zero to i64
  %to.next = add i64 %to, %step
  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, %n
  br i1 %more, label %copy, label %done
done:
  ret void
}}
"""


def argsort_text(kind: str) -> str:
    """Return the module that writes, for every row, the stable order of its elements as positions."""
    element = KINDS[kind]
    if kind in _FLOATS:
        same = f"""\
  %equal = fcmp oeq {element} %key, %key.before
  %nan = fcmp uno {element} %key, %key
  %nan.before = fcmp uno {element} %key.before, %key.before
  %nans = and i1 %nan, %nan.before
  %same = or i1 %equal, %nans"""
    else:
        same = f"  %same = icmp eq {element} %key, %key.before"
    return f"""\
declare i32 @tracer_argsort_{kind}(ptr, ptr, i64, ptr)
declare i32 @tracer_sort_positions(ptr, i64, ptr)
define void @{ARGSORT_ROWS}{kind}(ptr %source, ptr %target, i64 %rows, i64 %n) nounwind {{
entry:
  br label %row
row:
  %i = phi i64 [ 0, %entry ], [ %following, %row.end ]
  %at = mul i64 %i, %n
  %keys = getelementptr {element}, ptr %source, i64 %at
  %places = getelementptr i64, ptr %target, i64 %at
  br label %count
count:
  %c = phi i64 [ 0, %row ], [ %c.next, %count ]
  %c.at = getelementptr i64, ptr %places, i64 %c
  store i64 %c, ptr %c.at, align 8
  %c.next = add i64 %c, 1
  %c.more = icmp slt i64 %c.next, %n
  br i1 %c.more, label %count, label %order
order:
  %status = call i32 @tracer_argsort_{kind}(ptr %keys, ptr %places, i64 %n, ptr null)
  %first = load i64, ptr %places, align 8
  %first.at = getelementptr {element}, ptr %keys, i64 %first
  %first.key = load {element}, ptr %first.at, align {item_size(kind)}
  br label %walk
walk:
  %j = phi i64 [ 1, %order ], [ %j.next, %walked ]
  %start = phi i64 [ 0, %order ], [ %start.next, %walked ]
  %key.before = phi {element} [ %first.key, %order ], [ %key.next, %walked ]
  %j.more = icmp slt i64 %j, %n
  br i1 %j.more, label %read, label %run
read:
  %j.at = getelementptr i64, ptr %places, i64 %j
  %place = load i64, ptr %j.at, align 8
  %key.at = getelementptr {element}, ptr %keys, i64 %place
  %key = load {element}, ptr %key.at, align {item_size(kind)}
{same}
  br i1 %same, label %walked, label %run
run: ; ends before j
  %is.end = phi i1 [ true, %walk ], [ false, %read ]
  %key.after = phi {element} [ %key.before, %walk ], [ %key, %read ]
  %length = sub i64 %j, %start
  %several = icmp sgt i64 %length, 1
  br i1 %several, label %ties, label %settled
ties:
  %start.at = getelementptr i64, ptr %places, i64 %start
  %settled.status = call i32 @tracer_sort_positions(ptr %start.at, i64 %length, ptr null)
  br label %settled
settled:
  br i1 %is.end, label %row.end, label %walked
walked:
  %start.next = phi i64 [ %start, %read ], [ %j, %settled ]
  %key.next = phi {element} [ %key, %read ], [ %key.after, %settled ]
  %j.next = add i64 %j, 1
  br label %walk
row.end:
  %following = add i64 %i, 1
  %more = icmp slt i64 %following, %rows
  br i1 %more, label %row, label %done
done:
  ret void
}}
"""


def radix_rows_text(kind: str) -> str:
    """Return the module that argsorts rows by the radix sort, and by NumPy if it refuses.

    spare: as large as the target.
    """
    return f"""\
declare i1 @tracer_radix_{kind}(ptr, ptr, ptr, i64)
declare void @{ARGSORT_ROWS}{kind}(ptr, ptr, i64, i64)
define void @{RADIX_ROWS}{kind}(ptr %source, ptr %target, ptr %spare, i64 %rows, i64 %n) nounwind {{
entry:
  br label %row
row:
  %i = phi i64 [ 0, %entry ], [ %following, %row.end ]
  %at = mul i64 %i, %n
  %keys = getelementptr {KINDS[kind]}, ptr %source, i64 %at
  %places = getelementptr i64, ptr %target, i64 %at
  %spare.row = getelementptr i64, ptr %spare, i64 %at
  %is.done = call i1 @tracer_radix_{kind}(ptr %keys, ptr %places, ptr %spare.row, i64 %n)
  br i1 %is.done, label %row.end, label %refused
refused:
  call void @{ARGSORT_ROWS}{kind}(ptr %keys, ptr %places, i64 1, i64 %n)
  br label %row.end
row.end:
  %following = add i64 %i, 1
  %more = icmp slt i64 %following, %rows
  br i1 %more, label %row, label %done
done:
  ret void
}}
"""


def shared_rows_text(rows: str, kind: str) -> str:
    """Return the module of a routine over rows (one of `ROWS`) that threads share; a part has at least `grain` rows."""
    views = {"source": KINDS[kind], "target": KINDS[kind] if rows == SORT_ROWS else "i64"}
    if rows == RADIX_ROWS:
        views["spare"] = "i64"
    given = [*(f"ptr %{v}" for v in views), "i64 %n"]
    parts = "\n".join(f"  %{v}.part = getelementptr {e}, ptr %{v}, i64 %skip" for v, e in views.items())
    pointers = ", ".join(f"ptr %{v}" for v in views)
    return f"""\
declare void @tracer_share(ptr, ptr, i64, i64)
{rows_declaration(rows, kind)}
define void @{shared_rows(rows)}{kind}({pointers}, i64 %rows, i64 %n, i64 %grain) nounwind {{
  %given = alloca [{len(given)} x i64], align 8
{keep(*given)}
  call void @tracer_share(ptr @part, ptr %given, i64 %rows, i64 %grain)
  ret void
}}
define internal void @part(ptr %given, i64 %begin, i64 %end) nounwind {{
{kept(*given)}
  %skip = mul i64 %begin, %n
  %rows = sub i64 %end, %begin
{parts}
  call void @{rows}{kind}({", ".join(f"ptr %{v}.part" for v in views)}, i64 %rows, i64 %n)
  ret void
}}
"""


def shared_rows(rows: str) -> str:
    """Return the name, without the dtype, of a routine over rows that threads share."""
    return f"{rows}shared_"


def rows_declaration(rows: str, kind: str, *, shared: bool = False) -> str:
    """Return the declaration of a routine over rows.

    Its arguments are source and target, for a radix sort a spare one, then rows, n and a part's rows.
    """
    pointers = ["ptr"] * (3 if rows == RADIX_ROWS else 2)
    name = shared_rows(rows) if shared else rows
    return f"declare void @{name}{kind}({', '.join([*pointers, 'i64', 'i64', *['i64'] * shared])})"


def numpy_symbols(rows: str, kind: str) -> dict[str, int]:
    """Return the addresses in NumPy that the module of a routine over rows binds."""
    names = {
        SORT_ROWS: {f"tracer_sort_{kind}": f"sort_{kind}"},
        ARGSORT_ROWS: {f"tracer_argsort_{kind}": f"argsort_{kind}", "tracer_sort_positions": "sort_positions"},
    }.get(rows, {})
    return {symbol: numpy_address(name) for symbol, name in names.items()}


@cache
def numpy_address(name: str) -> int:
    """Return the address of `sort_f32`, `argsort_i64`, `sort_positions` and so on: NumPy's, if it sorts a sample."""
    operation, _, kind = name.partition("_")
    dtype = np.dtype(np.int64 if kind == "positions" else f"{kind[0]}{item_size(kind)}")
    try:
        found = _in_numpy(dtype, _SORT if operation == "sort" else _ARGSORT)
    except (AttributeError, ValueError):
        found = 0
    if found and _works(operation, dtype, found):
        return found
    replacement = _replacement(operation, dtype)
    _replacements.append(replacement)
    return ctypes.cast(replacement, ctypes.c_void_p).value or 0


_replacements: list[Any] = []  # references that keep ctypes callbacks alive


def _in_numpy(dtype: np.dtype[Any], place: int) -> int:
    get_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    table = get_pointer(np._core._multiarray_umath._ARRAY_API, None)  # type: ignore[attr-defined]  # private, as for all extensions
    address = ctypes.c_void_p.from_address(table + 8 * _GET_FUNCTIONS).value
    functions = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object)(address or 0)(dtype)
    return ctypes.c_void_p.from_address(functions + 8 * place).value or 0


def _works(operation: str, dtype: np.dtype[Any], address: int) -> bool:
    """Whether the function sorts a sample."""
    sample = np.arange(100)[::-1].astype(dtype)
    positions = np.arange(100)
    if operation == "sort":
        _Sort(address)(sample.ctypes.data, 100, None)
        return bool((sample == np.arange(100)).all())
    _Argsort(address)(sample.ctypes.data, positions.ctypes.data, 100, None)
    return bool((positions == np.arange(100)[::-1]).all())


def _replacement(operation: str, dtype: np.dtype[Any]) -> Any:
    """Return a callback that sorts through Python, for versions of NumPy whose C interface differs."""

    def memory(address: int, count: int, of: np.dtype[Any]) -> np.ndarray[Any, Any]:
        return np.ndarray(count, of, memoryview((ctypes.c_ubyte * (count * of.itemsize)).from_address(address)))

    def sort(start: int, count: int, _: int) -> int:
        memory(start, count, dtype).sort()
        return 0

    def argsort(start: int, places: int, count: int, _: int) -> int:
        memory(places, count, np.dtype(np.int64))[:] = memory(start, count, dtype).argsort()
        return 0

    return _Sort(sort) if operation == "sort" else _Argsort(argsort)
