"""AMX: products of bf16 matrices in tiles of 16 x 16 sums, and whether this process uses them.

A panel of b is what `short_products` has packed, two tiles wide; 32 rows of a are read where they are, in tiles of 32
elements, the last of them from a copy with zeros behind. Four tiles hold the sums of a panel's depth, which go to the
result through memory of their own: the last rows are the last 32, of which those that came before are left out.
Instructions and layout: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, chapter 18.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tracer.codegen.llvm.matrix_kernels import Shape, mask

TILE_VECTORS: Final = 2
"""Vectors of columns that the kernel takes at once, each the row of a tile."""
LEAST_ROWS: Final = 32
"""Rows of the result that the kernel takes at once, and needs."""
TILE_PAIRS: Final = 16
"""Pairs of k in a tile: panels of b are filled up with zeros to whole ones."""
_CONFIGURATION: Final = "\\01" + "\\00" * 15 + "\\40\\00" * 8 + "\\00" * 16 + "\\10" * 8 + "\\00" * 8
"""Palette 1: eight tiles of 16 rows of 64 bytes."""
_REQUEST_PERMISSION: Final = 0x1023  # ARCH_REQ_XCOMP_PERM of Linux's arch_prctl
_ARCH_PRCTL: Final = 158
_TILE_DATA: Final = 18  # the number of the tiles' part of the processor's state


def tiles_text(s: Shape) -> str:
    """The kernel for two vectors of columns, and what it declares."""
    return f"""\
@tile.configuration = private constant [64 x i8] c"{_CONFIGURATION}", align 64
declare void @llvm.x86.ldtilecfg(ptr)
declare void @llvm.x86.tilerelease()
declare void @llvm.x86.tilezero(i8)
declare void @llvm.x86.tileloadd64(i8, ptr, i64)
declare void @llvm.x86.tdpbf16ps(i8, i8, i8)
declare void @llvm.x86.tilestored64(i8, ptr, i64)
define internal void @tiles(ptr %a, ptr %b, ptr %out, i64 %m, i64 %depth, i64 %a_row, i64 %out_row, i64 %rest, \
i1 %is.first) #0 {{
entry:
  %sums = alloca [1024 x float], align 64
  %tail = alloca [1024 x i16], align 64
  call void @llvm.memset.p0.i64(ptr align 64 %tail, i8 0, i64 2048, i1 false)
  %last.block = sub i64 %m, 32
  %whole = and i64 %depth, -32
  %over = and i64 %depth, 31
  %over.bytes = shl i64 %over, 1
  %has.whole = icmp ne i64 %whole, 0
  %has.tail = icmp ne i64 %over, 0
  %a.stride = shl i64 %a_row, 1
  %b.tail.skip = shl i64 %whole, 4
  %b.tail = getelementptr i32, ptr %b, i64 %b.tail.skip
{mask(s, "%rest")}
  call void @llvm.x86.ldtilecfg(ptr @tile.configuration)
  br label %block
block:
  %i = phi i64 [ 0, %entry ], [ %i.next, %block.end ]
  %first = call i64 @llvm.smin.i64(i64 %i, i64 %last.block)
  %a.skip = mul i64 %first, %a_row
  %a.block = getelementptr i16, ptr %a, i64 %a.skip
  call void @llvm.x86.tilezero(i8 0)
  call void @llvm.x86.tilezero(i8 1)
  call void @llvm.x86.tilezero(i8 2)
  call void @llvm.x86.tilezero(i8 3)
  br i1 %has.whole, label %step, label %after
step:
  %q = phi i64 [ 0, %block ], [ %q.next, %step ]
  %a.upper = getelementptr i16, ptr %a.block, i64 %q
  %b.skip = shl i64 %q, 4
  %b.at = getelementptr i32, ptr %b, i64 %b.skip
{_multiply("%a.upper", "%a_row", "%a.stride", "%b.at", "")}
  %q.next = add i64 %q, 32
  %q.more = icmp slt i64 %q.next, %whole
  br i1 %q.more, label %step, label %after
after:
  br i1 %has.tail, label %copy, label %store
copy:
  %t = phi i64 [ 0, %after ], [ %t.next, %copy ]
  %t.skip = mul i64 %t, %a_row
  %t.at = add i64 %t.skip, %whole
  %t.from = getelementptr i16, ptr %a.block, i64 %t.at
  %t.to = getelementptr [32 x i16], ptr %tail, i64 %t
  call void @llvm.memcpy.p0.p0.i64(ptr align 2 %t.to, ptr align 2 %t.from, i64 %over.bytes, i1 false)
  %t.next = add i64 %t, 1
  %t.more = icmp slt i64 %t.next, 32
  br i1 %t.more, label %copy, label %multiply
multiply:
{_multiply("%tail", "32", "64", "%b.tail", ".tail")}
  br label %store
store:
  %sums.right = getelementptr float, ptr %sums, i64 16
  %sums.below = getelementptr float, ptr %sums, i64 512
  %sums.corner = getelementptr float, ptr %sums, i64 528
  call void @llvm.x86.tilestored64(i8 0, ptr %sums, i64 128)
  call void @llvm.x86.tilestored64(i8 1, ptr %sums.right, i64 128)
  call void @llvm.x86.tilestored64(i8 2, ptr %sums.below, i64 128)
  call void @llvm.x86.tilestored64(i8 3, ptr %sums.corner, i64 128)
  %skipped = sub i64 %i, %first
  br label %row
row:
  %r = phi i64 [ %skipped, %store ], [ %r.next, %row ]
  %number = add i64 %first, %r
  %out.skip = mul i64 %number, %out_row
  %out.left = getelementptr float, ptr %out, i64 %out.skip
  %out.right = getelementptr float, ptr %out.left, i64 16
  %left.at = getelementptr [32 x float], ptr %sums, i64 %r
  %right.at = getelementptr float, ptr %left.at, i64 16
  %left = load <16 x float>, ptr %left.at, align 64
  %right = load <16 x float>, ptr %right.at, align 64
  %none = select i1 %is.first, <16 x i1> zeroinitializer, <16 x i1> splat (i1 true)
  %old.mask = and <16 x i1> %none, %mask
  %old.left = call <16 x float> @llvm.masked.load.v16f32.p0(ptr %out.left, i32 4, <16 x i1> %none, \
<16 x float> zeroinitializer)
  %old.right = call <16 x float> @llvm.masked.load.v16f32.p0(ptr %out.right, i32 4, <16 x i1> %old.mask, \
<16 x float> zeroinitializer)
  %new.left = fadd <16 x float> %old.left, %left
  %new.right = fadd <16 x float> %old.right, %right
  store <16 x float> %new.left, ptr %out.left, align 4
  call void @llvm.masked.store.v16f32.p0(<16 x float> %new.right, ptr %out.right, i32 4, <16 x i1> %mask)
  %r.next = add i64 %r, 1
  %r.more = icmp slt i64 %r.next, 32
  br i1 %r.more, label %row, label %block.end
block.end:
  %i.next = add i64 %i, 32
  %i.more = icmp slt i64 %i.next, %m
  br i1 %i.more, label %block, label %done
done:
  call void @llvm.x86.tilerelease()
  ret void
}}
"""


def _multiply(a: str, row: str, stride: str, b: str, name: str) -> str:
    """Add 32 products to each of 32 x 32 sums."""
    return f"""\
  %half{name} = shl i64 {row}, 4
  %a.lower{name} = getelementptr i16, ptr {a}, i64 %half{name}
  %b.right{name} = getelementptr i32, ptr {b}, i64 16
  call void @llvm.x86.tileloadd64(i8 4, ptr {a}, i64 {stride})
  call void @llvm.x86.tileloadd64(i8 6, ptr {b}, i64 128)
  call void @llvm.x86.tileloadd64(i8 7, ptr %b.right{name}, i64 128)
  call void @llvm.x86.tdpbf16ps(i8 0, i8 4, i8 6)
  call void @llvm.x86.tileloadd64(i8 5, ptr %a.lower{name}, i64 {stride})
  call void @llvm.x86.tdpbf16ps(i8 1, i8 4, i8 7)
  call void @llvm.x86.tdpbf16ps(i8 2, i8 5, i8 6)
  call void @llvm.x86.tdpbf16ps(i8 3, i8 5, i8 7)"""


def permitted() -> bool:
    """Whether the system lets this process use tiles: Linux wants to be asked, once."""
    if sys.platform != "linux":
        return False
    syscall = ctypes.CDLL(None).syscall
    syscall.restype = ctypes.c_long
    return int(syscall(*map(ctypes.c_long, (_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA)))) == 0


in_use: Final = ctypes.c_int32(0)
"""Whether products are made in tiles; compiled code reads it."""


def try_out(product: Callable[..., None]) -> None:
    """Have products made in tiles from now on, if the system allows it and `product` then gives what it should."""
    if permitted() and agrees(product, in_use):
        in_use.value = 1


def agrees(product: Callable[..., None], tiles: ctypes.c_int32) -> bool:
    """Whether a product in tiles is the one in registers, of whole numbers, whose sums have no order.

    m, n and k leave a rest in every direction. `tiles`, the word that the product reads, is 0 before and after.
    """
    m, n, k = 50, 90, 1090
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-8, 9, shape).astype("f4").view("u4") >> 16 for shape in ((m, k), (k, n)))

    def result(allowed: int) -> np.ndarray[Any, Any]:
        x, y, out = a.astype("u2"), b.astype("u2"), np.full((m, n), np.nan, "f4")
        tiles.value = allowed
        product(x.ctypes.data, y.ctypes.data, out.ctypes.data, m, n, k, k, 1, n, 1, n, None)
        tiles.value = 0
        return out

    return np.array_equal(result(0), result(1))
