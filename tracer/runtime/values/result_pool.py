"""The memory of large results: what freed arrays leave is kept for the next ones, in LLVM text beside the entry.

The operating system clears fresh memory page by page, which takes longer than most programs need to fill it. NumPy lets
arrays have memory from elsewhere (NEP 49), and gives it back there when they go. All functions are called with the GIL,
which guards the table.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Final, Protocol

from tracer.once import once

LEAST: Final = 1 << 20
"""Results of so many bytes are large; smaller ones are NumPy's, as always."""
MOST: Final = 1 << 28
"""As many bytes are kept at most."""
_BLOCKS: Final = 16  # that are kept at most
_GRAIN: Final = 1 << 16  # sizes are rounded up to whole ones, so that similar arrays serve each other
_HUGE: Final = 1 << 22  # from here on pages may be huge, as in NumPy

_ADVISE: Final = """\
  %is.huge = icmp uge i64 %whole, FROM
  br i1 %is.huge, label %advise, label %done
advise:
  %advised = call i32 @madvise(ptr %new, i64 %whole, i32 14) ; a wish for huge pages, whatever comes of it
  br label %done
"""
_TEXT: Final = """\
@tracer_result_handler = external global ptr
@tracer.kept = internal global [BLOCKS x [2 x i64]] zeroinitializer ; addresses and sizes
@tracer.kept.bytes = internal global i64 0
@tracer.kept.oldest = internal global i64 0
declare ptr @PyDataMem_SetHandler(ptr)
declare ptr @realloc(ptr, i64)
DECLARATION
define internal i64 @tracer.whole(i64 %bytes) {
  %over = add i64 %bytes, BEYOND
  %whole = and i64 %over, -GRAIN
  ret i64 %whole
}

; Take a block out of the table, which may be an empty place; its address.
define internal ptr @tracer.take_kept(i64 %i) {
  %at = getelementptr [2 x i64], ptr @tracer.kept, i64 %i
  %size.at = getelementptr i64, ptr %at, i64 1
  %address = load ptr, ptr %at, align 8
  %size = load i64, ptr %size.at, align 8
  store ptr null, ptr %at, align 8
  store i64 0, ptr %size.at, align 8
  %all = load i64, ptr @tracer.kept.bytes, align 8
  %left = sub i64 %all, %size
  store i64 %left, ptr @tracer.kept.bytes, align 8
  ret ptr %address
}

; Give the block back that has been kept for longest, as far as the table knows.
define internal void @tracer.drop_kept() {
  %i = load i64, ptr @tracer.kept.oldest, align 8
  %block = call ptr @tracer.take_kept(i64 %i)
  call void @free(ptr %block)
  %i.next = add i64 %i, 1
  %i.wrapped = urem i64 %i.next, BLOCKS
  store i64 %i.wrapped, ptr @tracer.kept.oldest, align 8
  ret void
}

; The place of a block of this size, 0 for an empty one; BLOCKS where there is none.
define internal i64 @tracer.find_kept(i64 %size) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %other ]
  %more = icmp ult i64 %i, BLOCKS
  br i1 %more, label %look, label %done
look:
  %at = getelementptr [2 x i64], ptr @tracer.kept, i64 %i
  %size.at = getelementptr i64, ptr %at, i64 1
  %found = load i64, ptr %size.at, align 8
  %same = icmp eq i64 %found, %size
  br i1 %same, label %done, label %other
other:
  %i.next = add i64 %i, 1
  br label %loop
done:
  ret i64 %i
}

define ptr @tracer_result_new(ptr %context, i64 %bytes) {
  %whole = call i64 @tracer.whole(i64 %bytes)
  %i = call i64 @tracer.find_kept(i64 %whole)
  %found = icmp ult i64 %i, BLOCKS
  br i1 %found, label %kept, label %fresh
kept:
  %block = call ptr @tracer.take_kept(i64 %i)
  ret ptr %block
fresh:
  %new = call ptr @aligned_alloc(i64 4096, i64 %whole)
ADVISE
done:
  ret ptr %new
}

define ptr @tracer_result_cleared(ptr %context, i64 %count, i64 %size) {
  %bytes = mul i64 %count, %size ; NumPy has looked for overflow
  %new = call ptr @tracer_result_new(ptr %context, i64 %bytes)
  %failed = icmp eq ptr %new, null
  br i1 %failed, label %done, label %clear
clear:
  call void @llvm.memset.p0.i64(ptr %new, i8 0, i64 %bytes, i1 false)
  br label %done
done:
  ret ptr %new
}

define ptr @tracer_result_resized(ptr %context, ptr %block, i64 %bytes) {
  %whole = call i64 @tracer.whole(i64 %bytes)
  %new = call ptr @realloc(ptr %block, i64 %whole)
  ret ptr %new
}

define void @tracer_result_free(ptr %context, ptr %block, i64 %bytes) {
entry:
  %whole = call i64 @tracer.whole(i64 %bytes)
  %too.large = icmp ugt i64 %whole, MOST
  br i1 %too.large, label %give.back, label %room
give.back:
  call void @free(ptr %block)
  ret void
room:
  %all = load i64, ptr @tracer.kept.bytes, align 8
  %sum = add i64 %all, %whole
  %over = icmp ugt i64 %sum, MOST
  %place = call i64 @tracer.find_kept(i64 0)
  %full = icmp eq i64 %place, BLOCKS
  %crowded = or i1 %over, %full
  br i1 %crowded, label %drop, label %keep
drop:
  call void @tracer.drop_kept()
  br label %room
keep:
  %at = getelementptr [2 x i64], ptr @tracer.kept, i64 %place
  %size.at = getelementptr i64, ptr %at, i64 1
  store ptr %block, ptr %at, align 8
  store i64 %whole, ptr %size.at, align 8
  store i64 %sum, ptr @tracer.kept.bytes, align 8
  ret void
}

; Give back all that is kept; how many bytes that was.
define i64 @tracer_result_release() {
entry:
  %all = load i64, ptr @tracer.kept.bytes, align 8
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  call void @tracer.drop_kept()
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, BLOCKS
  br i1 %more, label %loop, label %done
done:
  ret i64 %all
}
"""


def memory_text() -> str:
    """The functions that NumPy calls, and the table that they share."""
    advise = sys.platform == "linux"
    words = {
        "DECLARATION": "declare i32 @madvise(ptr, i64, i32)" if advise else "",
        "ADVISE": _ADVISE if advise else "  br label %done",
        "BLOCKS": str(_BLOCKS), "BEYOND": str(_GRAIN - 1), "GRAIN": str(_GRAIN), "MOST": str(MOST), "FROM": str(_HUGE),
    }  # fmt: skip
    text = _TEXT
    for name, value in words.items():
        text = text.replace(name, value)
    return text


C_FUNCTIONS: Final = ("realloc", *(("madvise",) if sys.platform == "linux" else ()))
handler_word = ctypes.c_void_p()
"""The address of NumPy's handler, a capsule; compiled code reads it."""


class _Handler(ctypes.Structure):
    """NumPy's PyDataMem_Handler."""

    _fields_ = (
        ("name", ctypes.c_char * 127), ("version", ctypes.c_uint8), ("context", ctypes.c_void_p),
        ("malloc", ctypes.c_void_p), ("calloc", ctypes.c_void_p), ("realloc", ctypes.c_void_p),
        ("free", ctypes.c_void_p),
    )  # fmt: skip


_CAPSULE_NAME: Final = ctypes.create_string_buffer(b"mem_handler")  # the one that NumPy asks for


class Loaded(Protocol):
    """Machine code in memory."""

    def address(self, name: str) -> int:
        """Where a function is."""


def install(loaded: Loaded) -> None:
    """Make the handler of the loaded functions.

    Arrays give their memory back even while Python shuts down, when modules' globals are gone: the handler and the code
    get a reference that is never returned.
    """
    names = ("new", "cleared", "resized", "free")
    handler = _Handler(b"tracer", 1, None, *(loaded.address(f"tracer_result_{name}") for name in names))
    new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(
        ("PyCapsule_New", ctypes.pythonapi)
    )
    capsule = new(ctypes.addressof(handler), ctypes.addressof(_CAPSULE_NAME), None)
    for thing in (handler, capsule, _CAPSULE_NAME, loaded):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
    handler_word.value = id(capsule)
    _capsules.append(capsule)
    _release.append(loaded.address("tracer_result_release"))


_capsules: list[object] = []
_release: list[int] = []


def handler() -> object:
    """NumPy's handler, once it is installed."""
    return _capsules[0]


@once
def _release_function() -> ctypes._FuncPointer:
    return ctypes.PYFUNCTYPE(ctypes.c_int64)(_release[0])


def release_kept() -> int:
    """Give the kept memory back to the operating system; how many bytes that was."""
    return int(_release_function()()) if _release else 0
