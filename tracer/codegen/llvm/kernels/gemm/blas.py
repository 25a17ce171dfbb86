"""Matrix products by BLAS as LLVM text: loops over the batch, tiles of long products, and panels that threads share.

BLAS runs on one thread, and each panel is one call. So results do not depend on the number of threads.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tracer.codegen.llvm.kernels.gemm.kernel_loops import loop as counted
from tracer.codegen.llvm.kernels.gemm.kernel_loops import unless_stopped
from tracer.codegen.llvm.kernels.gemm.shared_panels import (
    ITEM,
    in_panels,
    of_batch,
    panels_part,
)
from tracer.codegen.llvm.toolchain.native_text import routines

BLAS_KINDS: Final = ("f32", "f64", "c64", "c128")


BLAS_LETTER: Final = {"f32": "s", "f64": "d", "c64": "c", "c128": "z"}


ONE: Final = {
    "f32": "float 1.0", "f64": "double 1.0",
    "c64": "[2 x float] [float 1.0, float 0.0]", "c128": "[2 x double] [double 1.0, double 0.0]",
}  # fmt: skip


def blas_threads() -> str:
    """Return the routines by which callers limit BLAS to one thread, once in a module."""
    folder = Path(__file__).parents[1] / "ll" / "blas"
    return routines(folder, ("declarations", "limit_threads", "restore_threads"))


def gemm_definition(kind: str) -> str:
    """Return a loop over the batch around BLAS, which is column-major: out.T = op(b).T @ op(a).T.

    A product with a vector (n = 1) goes to gemv: the vector is contiguous, however it is transposed.
    """
    item, letter = ITEM[kind][0], BLAS_LETTER[kind]
    sizes = ("m", "n", "k", "lda", "ldb", "ldc", "one")
    slots = "\n".join(f"  %{s}.slot = alloca i32, align 4" for s in (*sizes, "tile.m", "tile.n"))
    multiply = (
        f"call void @library.gemm_{kind}(ptr %a, ptr %b, ptr %out, i64 %batch, i64 %m, i64 %n, i64 %k, "
        "i64 %transpose.a, i64 %transpose.b, i64 %stride.a, i64 %stride.b, i64 %lda, i64 %ldb, i64 %n, ptr %halt)"
    )
    narrow = "\n".join(f"  %{s}.i = trunc i64 %{s} to i32\n  store i32 %{s}.i, ptr %{s}.slot" for s in sizes[:6])
    return f"""\
@library.one.{kind} = private constant {ONE[kind]}, align 16
@library.zero.{kind} = private constant {item} zeroinitializer, align 16
declare void @tracer_blas_{letter}gemm(ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr)
declare void @tracer_blas_{letter}gemv(ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr)
define internal void @library.alone.gemm_{kind}(ptr %a, ptr %b, ptr %out, i64 %batch, i64 %m, i64 %n, i64 %k, \
i64 %transpose.a, i64 %transpose.b, i64 %stride.a, i64 %stride.b, ptr %halt) #2 {{
entry:
  %ta.set = icmp ne i64 %transpose.a, 0
  %tb.set = icmp ne i64 %transpose.b, 0
  %lda = select i1 %ta.set, i64 %m, i64 %k
  %ldb = select i1 %tb.set, i64 %k, i64 %n
{on_one_thread(multiply)}
}}
define internal void @library.gemm_{kind}(ptr %a, ptr %b, ptr %out, i64 %batch, i64 %m, i64 %n, i64 %k, \
i64 %transpose.a, i64 %transpose.b, i64 %stride.a, i64 %stride.b, i64 %lda, i64 %ldb, i64 %ldc, ptr %halt) #2 {{
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
  %rows.slot = select i1 %ta.set, ptr %m.slot, ptr %k.slot
  %columns.slot = select i1 %ta.set, ptr %k.slot, ptr %m.slot
{narrow}
  store i32 1, ptr %one.slot
  %stride.out = mul i64 %m, %n
  %is.column = icmp eq i64 %n, 1
  %is.dense = icmp eq i64 %ldc, 1
  %is.vector = and i1 %is.column, %is.dense
  %area = mul i64 %m, %n
  %work = mul i64 %area, %k
  %is.tiled = icmp ugt i64 %work, {_BLAS_PIECE}
  %is.deep = icmp ugt i64 %k, {_BLAS_PIECE // _BLAS_TILE**2}
  %tile = select i1 %is.deep, i64 {_BLAS_TILE // 2}, i64 {_BLAS_TILE}
  %high = select i1 %is.tiled, i64 %tile, i64 %m
  %wide = select i1 %is.tiled, i64 %tile, i64 %n
  %a.row = select i1 %ta.set, i64 1, i64 %lda
  %b.column = select i1 %tb.set, i64 %ldb, i64 1
{counted("i", "0", "%batch", 1, _blas_product(kind))}
  ret void
}}
"""


_BLAS_TILE: Final = 256
"""Rows and columns of a call of BLAS within a product that takes long."""


_BLAS_PIECE: Final = 1 << 28
"""Multiplications of a call of BLAS that is not divided: of complex numbers, 0.1 s."""


def _blas_product(kind: str) -> str:
    """Call gemv for a product with a vector, else gemm, in tiles of the result if it takes long."""
    item, letter = ITEM[kind][0], BLAS_LETTER[kind]
    call = f"""\
  %m.left = sub i64 %m, %r
  %n.left = sub i64 %n, %c
  %tile.m = call i64 @llvm.smin.i64(i64 %m.left, i64 %high)
  %tile.n = call i64 @llvm.smin.i64(i64 %n.left, i64 %wide)
  %tile.m.i = trunc i64 %tile.m to i32
  %tile.n.i = trunc i64 %tile.n to i32
  store i32 %tile.m.i, ptr %tile.m.slot
  store i32 %tile.n.i, ptr %tile.n.slot
  %a.skip = mul i64 %r, %a.row
  %b.skip = mul i64 %c, %b.column
  %out.row.skip = mul i64 %r, %ldc
  %out.skip = add i64 %out.row.skip, %c
  %a.r = getelementptr {item}, ptr %a.i, i64 %a.skip
  %b.c = getelementptr {item}, ptr %b.i, i64 %b.skip
  %out.rc = getelementptr {item}, ptr %out.i, i64 %out.skip
  call void @tracer_blas_{letter}gemm(ptr %tb.slot, ptr %ta.slot, ptr %tile.n.slot, ptr %tile.m.slot, ptr %k.slot, \
ptr @library.one.{kind}, ptr %b.c, ptr %ldb.slot, ptr %a.r, ptr %lda.slot, ptr @library.zero.{kind}, \
ptr %out.rc, ptr %ldc.slot)"""
    rows = counted("r", "0", "%m", "%high", unless_stopped("tile", call))
    return f"""\
{of_batch(item, item)}
  br i1 %is.vector, label %vector, label %matrix
vector:
  call void @tracer_blas_{letter}gemv(ptr %tv.slot, ptr %rows.slot, ptr %columns.slot, ptr @library.one.{kind}, \
ptr %a.i, ptr %lda.slot, ptr %b.i, ptr %one.slot, ptr @library.zero.{kind}, ptr %out.i, ptr %one.slot)
  br label %next
matrix:
{counted("c", "0", "%n", "%wide", rows)}
  br label %next
next:"""


def gemm_split(kind: str) -> str:
    """Return BLAS's product in panels."""
    part = f"library.part.gemm_{kind}"
    share = f"call void @tracer_share(ptr @{part}, ptr %given, i64 %count, i64 1)"
    split = in_panels(f"internal void @library.split.gemm_{kind}", "i64 %transpose.b", on_one_thread(share))
    return f"{split}{panels_part(part, f'library.gemm_{kind}', 'i64 %transpose.b', *[ITEM[kind][0]] * 2, joined=False)}"


def on_one_thread(call: str) -> str:
    """Return the call, with BLAS limited to one thread around it, and the end of the function."""
    return f"""\
  %threads = call i32 @library.limit_threads()
  {call}
  call void @library.restore_threads(i32 %threads)
  ret void"""
