"""Matrix products by our own kernels or by BLAS: one call on the caller's thread, or panels that threads share.

The schedule chooses kernel and panels (`schedule.algorithms.library_kernels`). Long calls are cut into pieces, between
which they look for Ctrl-C. Texts are shared by programs and see the size of a panel only when they run. So they cut it
themselves, as `emit.polls` decides where loops look.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tracer.codegen.llvm.kernels.gemm.kernel_loops import loop as counted
from tracer.codegen.llvm.kernels.gemm.kernel_loops import unless_stopped
from tracer.codegen.llvm.kernels.gemm.kernel_shapes import DEPTH, KINDS
from tracer.codegen.llvm.kernels.gemm.shared_panels import (
    BATCHES,
    COLUMNS,
    ITEM,
    ROWS,
    in_panels,
    of_batch,
    panels_part,
)
from tracer.codegen.llvm.kernels.transpose import SYMBOL
from tracer.ir import loop

SHORT_KIND: Final = "bf16"
"""Operand dtype that only our kernels multiply; results are of f32, and tiles of pairs are transposed."""
OWN: Final = "own"
"""Name of the blocked kernel in `loop.Kernel`; any other kernel is a form of `skinny`."""


def gemm_calls(kind: str, kernel: loop.Kernel, sizes: Sequence[int], spelled: Sequence[str]) -> list[str]:
    """Return the calls of one statement. sizes: batch, m, n, k. spelled: the statement's arguments.

    Sums of no products are zeros, which no kernel writes.
    """
    batch, m, n, k = sizes
    if not (batch and m and n):
        return []
    if not k:
        bytes = batch * m * n * _item_size(kind)
        return [f"call void @llvm.memset.p0.i64({spelled[2]}, i8 0, i64 {bytes}, i1 false)"]
    given, split = list(spelled), kernel.split
    if kernel.name:
        given[_TRANSPOSE_B] = "ptr null" if given[_TRANSPOSE_B] == "i64 0" else f"ptr @{SYMBOL}{_item_size(kind)}"
    if split is not None:
        given += [f"i64 {_WAYS[split.along]}", f"i64 {split.count}", f"i64 {split.width}"]
    if not kernel.name:
        name = f"library.{'alone' if split is None else 'split'}.gemm_{kind}"
        return [f"call void @{name}({', '.join(given)})"]
    name = kind if kernel.name == OWN else f"{kernel.name}_{kind}"
    if split is None:
        return [f"call void @tracer_product_alone_{name}({', '.join(given)})"]
    return [f"call void @tracer_product_shared_{name}({', '.join(given)}, i64 {split.at_once})"]


_TRANSPOSE_B: Final = 8  # its index among the arguments


def _item_size(kind: str) -> int:
    """Return the bytes of an element of the result, which an element of the transposed operand has too."""
    return ITEM["f32" if kind == SHORT_KIND else _element(kind)][1]


def _element(kind: str) -> str:
    """Return the dtype at the end of a kernel's name, such as "dots3_f32"."""
    return kind.rpartition("_")[2]


def _own_items(kind: str) -> tuple[str, str]:
    """Return the LLVM types of an element of an operand of our products and of the result."""
    return ("i16", "float") if kind == SHORT_KIND else (ITEM[_element(kind)][0],) * 2


_WAYS: Final = {loop.Along.BATCHES: BATCHES, loop.Along.ROWS: ROWS, loop.Along.COLUMNS: COLUMNS}


def product_declarations(kind: str) -> str:
    """Return the declarations that a module needs to call our products."""
    sizes = ", ".join(["i64"] * 5)
    return f"""\
declare void @{SYMBOL}{_item_size(kind)}(ptr, i64, ptr, i64, i64, i64)
declare void @tracer_product_alone_{kind}(ptr, ptr, ptr, {sizes}, ptr, i64, i64, ptr)
declare void @tracer_product_shared_{kind}(ptr, ptr, ptr, {sizes}, ptr, i64, i64, ptr, i64, i64, i64, i64)
"""


def product_calls_text(kind: str) -> str:
    """Return the module of a loop over the batch around our kernel. `turn` is null where b is not transposed."""
    added = f"declare void @tracer_product_add_{kind}(ptr, ptr, ptr, {', '.join(['i64'] * 8)}, ptr)\n"
    return f"""\
declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.umax.i64(i64, i64)
declare void @tracer_product_{kind}(ptr, ptr, ptr, i64, i64, i64, i64, i64, i64, i64, i64, ptr)
{added if kind in KINDS else ""}\
define void @tracer_product_alone_{kind}(ptr %a, ptr %b, ptr %out, i64 %batch, i64 %m, i64 %n, i64 %k, \
i64 %transpose.a, ptr %turn, i64 %stride.a, i64 %stride.b, ptr %halt) nounwind {{
  %ta.set = icmp ne i64 %transpose.a, 0
  %tb.set = icmp ne ptr %turn, null
  %lda = select i1 %ta.set, i64 %m, i64 %k
  %ldb = select i1 %tb.set, i64 %k, i64 %n
  call void @tracer_product_batch_{kind}(ptr %a, ptr %b, ptr %out, i64 %batch, i64 %m, i64 %n, i64 %k, \
i64 %transpose.a, ptr %turn, i64 %stride.a, i64 %stride.b, i64 %lda, i64 %ldb, i64 %n, ptr %halt)
  ret void
}}
define void @tracer_product_batch_{kind}(ptr %a, ptr %b, ptr %out, i64 %batch, i64 %m, i64 %n, i64 %k, \
i64 %transpose.a, ptr %turn, i64 %stride.a, i64 %stride.b, i64 %lda, i64 %ldb, i64 %ldc, ptr %halt) nounwind {{
entry:
  %ta.set = icmp ne i64 %transpose.a, 0
  %tb.set = icmp ne ptr %turn, null
  %a.row = select i1 %ta.set, i64 1, i64 %lda
  %a.column = select i1 %ta.set, i64 %lda, i64 1
  %b.row = select i1 %tb.set, i64 1, i64 %ldb
  %b.column = select i1 %tb.set, i64 %ldb, i64 1
  %stride.out = mul i64 %m, %n
  %work = mul i64 %stride.out, %k
  %is.long = icmp ugt i64 %work, {_piece(kind)}
{counted("i", "0", "%batch", 1, unless_stopped("product", _own_product(kind)))}
  ret void
}}
"""


def _piece(kind: str) -> int:
    """Return the multiplications of a call of a kernel, at most: some 0.1 s."""
    return 1 << 33 if kind == SHORT_KIND else 1 << 30


_WIDE: Final = 4032  # columns of a piece; a kernel's copy of b pays from a few hundred rows on
_HIGH: Final = 384  # rows of a piece, at least


def _own_product(kind: str) -> str:
    """Write one product: one call of the kernel, or several for parts of the result.

    Where a kernel adds to its result, its sums are cut into parts, too.

    Kernels sum in the order of k, `DEPTH` products at a time. So pieces of such depths have the bits of one call.
    """
    item, result = _own_items(kind)
    sums, deep = kind in KINDS, "%k"
    steps = "i64 %a.row, i64 %a.column, i64 %b.row, i64 %b.column, i64 %ldc, ptr %turn"
    piece = "ptr %a.p, ptr %b.p, ptr %out.p, i64 %piece.m, i64 %piece.n, i64 %piece.k"
    call = f"  call void @tracer_product_{kind}({piece}, {steps})"
    depth = "  %high.depth = add i64 %k, 0"
    if sums:
        deep = "%deep"
        call = f"""\
  %is.first = icmp eq i64 %p, 0
  br i1 %is.first, label %begin, label %add
begin:
{call}
  br label %added
add:
  call void @tracer_product_add_{kind}({piece}, {steps})
  br label %added
added:"""
        depth = f"  %high.depth = call i64 @llvm.smin.i64(i64 %k, i64 {DEPTH})"
    within = f"""\
  %n.left = sub i64 %n, %c
  %m.left = sub i64 %m, %r
  %k.left = sub i64 %k, %p
  %piece.n = call i64 @llvm.smin.i64(i64 %n.left, i64 %wide)
  %piece.m = call i64 @llvm.smin.i64(i64 %m.left, i64 %high)
  %piece.k = call i64 @llvm.smin.i64(i64 %k.left, i64 {deep})
  %a.row.skip = mul i64 %r, %a.row
  %a.column.skip = mul i64 %p, %a.column
  %a.skip = add i64 %a.row.skip, %a.column.skip
  %a.p = getelementptr {item}, ptr %a.i, i64 %a.skip
  %b.row.skip = mul i64 %p, %b.row
  %b.column.skip = mul i64 %c, %b.column
  %b.skip = add i64 %b.row.skip, %b.column.skip
  %b.p = getelementptr {item}, ptr %b.i, i64 %b.skip
  %out.row.skip = mul i64 %r, %ldc
  %out.skip = add i64 %out.row.skip, %c
  %out.p = getelementptr {result}, ptr %out.i, i64 %out.skip
{call}"""
    depths = counted("p", "0", "%k", deep, unless_stopped("piece", within))
    rows = counted("r", "0", "%m", "%high", depths)
    return f"""\
{of_batch(item, result)}
  br i1 %is.long, label %pieces, label %whole
whole:
  call void @tracer_product_{kind}(ptr %a.i, ptr %b.i, ptr %out.i, i64 %m, i64 %n, i64 %k, {steps})
  br label %multiplied
pieces:
  %wide = call i64 @llvm.smin.i64(i64 %n, i64 {_WIDE})
{depth}
  %row.work = mul i64 %wide, %high.depth
  %rows.fit = udiv i64 {_piece(kind)}, %row.work
  %rows.rest = urem i64 %rows.fit, {_HIGH}
  %rows.even = sub i64 %rows.fit, %rows.rest
  %high.even = call i64 @llvm.umax.i64(i64 %rows.even, i64 {_HIGH})
  %high = call i64 @llvm.smin.i64(i64 %high.even, i64 %m)
  %area = mul i64 %wide, %high
  %depth.fit = udiv i64 {_piece(kind)}, %area
  %depth.even = and i64 %depth.fit, {-DEPTH}
  %deep = call i64 @llvm.umax.i64(i64 %depth.even, i64 {DEPTH})
{counted("c", "0", "%n", "%wide", rows)}
  br label %multiplied
multiplied:"""


def product_split_text(kind: str) -> str:
    """Return the module of our product in panels. most: panels that one call takes."""
    part, batch = f"part.product_{kind}", f"tracer_product_batch_{kind}"
    share = f"""\
  %by.batches = icmp eq i64 %way, {BATCHES}
  br i1 %by.batches, label %batches, label %panels
batches:
  call void @tracer_share(ptr @{part}, ptr %given, i64 %count, i64 1)
  ret void
panels:
  call void @tracer_share_evenly(ptr @{part}, ptr %given, i64 %count, i64 %most)
  ret void"""
    sizes = ", ".join(["i64"] * 5)
    return f"""\
declare void @{batch}(ptr, ptr, ptr, {sizes}, ptr, i64, i64, i64, i64, i64, ptr)
declare void @tracer_share_evenly(ptr, ptr, i64, i64)
{in_panels(f"void @tracer_product_shared_{kind}", "ptr %turn", share, ", i64 %most")}
{panels_part(part, batch, "ptr %turn", *_own_items(kind), joined=True)}
attributes #2 = {{ nounwind }}
"""
