"""Matrix products by our own kernels or by BLAS: one call on the caller's thread, or panels that threads share.

The schedule chooses kernel and panels (`schedule.algorithms.library_kernels`). BLAS runs on one thread. Each panel is
one call, so results do not depend on the number of threads. Long calls are cut into pieces, between which they look
for Ctrl-C. Texts are shared by programs and see the size of a panel only when they run. So they cut it themselves, as
`emit.polls` decides where loops look.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tracer.codegen.llvm.kernels.gemm.kernel_loops import keep, kept, unless_stopped
from tracer.codegen.llvm.kernels.gemm.kernel_loops import loop as counted
from tracer.codegen.llvm.kernels.gemm.kernel_shapes import DEPTH, KINDS
from tracer.codegen.llvm.kernels.transpose import SYMBOL
from tracer.codegen.llvm.toolchain.native_text import routines
from tracer.ir import loop

BLAS_KINDS: Final = ("f32", "f64", "c64", "c128")
SHORT_KIND: Final = "bf16"
"""Operand dtype that only our kernels multiply; results are of f32, and tiles of pairs are transposed."""
OWN: Final = "own"
"""Name of the blocked kernel in `loop.Kernel`; any other kernel is a form of `skinny`."""
BLAS_LETTER: Final = {"f32": "s", "f64": "d", "c64": "c", "c128": "z"}
_ITEM: Final = {"f32": ("float", 4), "f64": ("double", 8), "c64": ("[2 x float]", 8), "c128": ("[2 x double]", 16)}
_ONE: Final = {
    "f32": "float 1.0", "f64": "double 1.0",
    "c64": "[2 x float] [float 1.0, float 0.0]", "c128": "[2 x double] [double 1.0, double 0.0]",
}  # fmt: skip


def blas_threads() -> str:
    """Return the routines by which callers limit BLAS to one thread, once in a module."""
    folder = Path(__file__).parents[1] / "ll" / "blas"
    return routines(folder, ("declarations", "limit_threads", "restore_threads"))


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
    return _ITEM["f32" if kind == SHORT_KIND else _element(kind)][1]


def _element(kind: str) -> str:
    """Return the dtype at the end of a kernel's name, such as "dots3_f32"."""
    return kind.rpartition("_")[2]


def _own_items(kind: str) -> tuple[str, str]:
    """Return the LLVM types of an element of an operand of our products and of the result."""
    return ("i16", "float") if kind == SHORT_KIND else (_ITEM[_element(kind)][0],) * 2


_BATCHES, _ROWS, _COLUMNS = range(3)
_WAYS: Final = {loop.Along.BATCHES: _BATCHES, loop.Along.ROWS: _ROWS, loop.Along.COLUMNS: _COLUMNS}


def gemm_definition(kind: str) -> str:
    """Return a loop over the batch around BLAS, which is column-major: out.T = op(b).T @ op(a).T.

    A product with a vector (n = 1) goes to gemv: the vector is contiguous, however it is transposed.
    """
    item, letter = _ITEM[kind][0], BLAS_LETTER[kind]
    sizes = ("m", "n", "k", "lda", "ldb", "ldc", "one")
    slots = "\n".join(f"  %{s}.slot = alloca i32, align 4" for s in (*sizes, "tile.m", "tile.n"))
    multiply = (
        f"call void @library.gemm_{kind}(ptr %a, ptr %b, ptr %out, i64 %batch, i64 %m, i64 %n, i64 %k, "
        "i64 %transpose.a, i64 %transpose.b, i64 %stride.a, i64 %stride.b, i64 %lda, i64 %ldb, i64 %n, ptr %halt)"
    )
    narrow = "\n".join(f"  %{s}.i = trunc i64 %{s} to i32\n  store i32 %{s}.i, ptr %{s}.slot" for s in sizes[:6])
    return f"""\
@library.one.{kind} = private constant {_ONE[kind]}, align 16
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
    item, letter = _ITEM[kind][0], BLAS_LETTER[kind]
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
{_of_batch(item, item)}
  br i1 %is.vector, label %vector, label %matrix
vector:
  call void @tracer_blas_{letter}gemv(ptr %tv.slot, ptr %rows.slot, ptr %columns.slot, ptr @library.one.{kind}, \
ptr %a.i, ptr %lda.slot, ptr %b.i, ptr %one.slot, ptr @library.zero.{kind}, ptr %out.i, ptr %one.slot)
  br label %next
matrix:
{counted("c", "0", "%n", "%wide", rows)}
  br label %next
next:"""


def _of_batch(item: str, result: str) -> str:
    """Write the operands and the result of product %i, with elements of these LLVM types."""
    return "\n".join(
        f"  %{x}.at = mul i64 %i, %stride.{x}\n  %{x}.i = getelementptr {element}, ptr %{x}, i64 %{x}.at"
        for x, element in (("a", item), ("b", item), ("out", result))
    )


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
{_of_batch(item, result)}
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


def gemm_split(kind: str) -> str:
    """Return BLAS's product in panels."""
    part = f"library.part.gemm_{kind}"
    share = f"call void @tracer_share(ptr @{part}, ptr %given, i64 %count, i64 1)"
    split = _split(f"internal void @library.split.gemm_{kind}", "i64 %transpose.b", on_one_thread(share))
    return f"{split}{_part(part, f'library.gemm_{kind}', 'i64 %transpose.b', *[_ITEM[kind][0]] * 2, joined=False)}"


def product_split_text(kind: str) -> str:
    """Return the module of our product in panels. most: panels that one call takes."""
    part, batch = f"part.product_{kind}", f"tracer_product_batch_{kind}"
    share = f"""\
  %by.batches = icmp eq i64 %way, {_BATCHES}
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
{_split(f"void @tracer_product_shared_{kind}", "ptr %turn", share, ", i64 %most")}
{_part(part, batch, "ptr %turn", *_own_items(kind), joined=True)}
attributes #2 = {{ nounwind }}
"""


def on_one_thread(call: str) -> str:
    """Return the call, with BLAS limited to one thread around it, and the end of the function."""
    return f"""\
  %threads = call i32 @library.limit_threads()
  {call}
  call void @library.restore_threads(i32 %threads)
  ret void"""


def _given(transposed: str) -> list[str]:
    """Return the words that threads are given, each with its type. transposed: the word that says whether b is."""
    return [
        "ptr %a", "ptr %b", "ptr %out", "i64 %batch", "i64 %m", "i64 %n", "i64 %k", "i64 %transpose.a", transposed,
        "i64 %stride.a", "i64 %stride.b", "ptr %halt", "i64 %way", "i64 %width",
    ]  # fmt: skip


def _split(header: str, transposed: str, share: str, more: str = "") -> str:
    """Return the product in panels of batches, rows or columns, `width` of them each, which threads share."""
    given = _given(transposed)
    parameters = ", ".join(given[:-1])
    return f"""\
declare void @tracer_share(ptr, ptr, i64, i64)
define {header}({parameters}, i64 %count, i64 %width{more}) #2 {{
entry:
  %given = alloca [{len(given)} x i64], align 8
{keep(*given)}
{share}
}}
"""


def _part(name: str, product: str, transposed: str, item: str, result: str, *, joined: bool) -> str:
    """Return the function for the panels from `begin` to `end`, each a call of `product`, or all joined in one."""
    none = "0" if transposed.startswith("i64") else "null"
    return f"""\
declare i64 @llvm.smin.i64(i64, i64)
define internal void @{name}(ptr %given, i64 %begin, i64 %end) #2 {{
entry:
{kept(*_given(transposed))}
  %ta.set = icmp ne i64 %transpose.a, 0
  %tb.set = icmp ne {transposed}, {none}
  %lda = select i1 %ta.set, i64 %m, i64 %k
  %ldb = select i1 %tb.set, i64 %k, i64 %n
  %by.batch = icmp eq i64 %way, {_BATCHES}
  %by.row = icmp eq i64 %way, {_ROWS}
  %m.or.n = select i1 %by.row, i64 %m, i64 %n
  %length = select i1 %by.batch, i64 %batch, i64 %m.or.n
  %a.row.step = select i1 %ta.set, i64 1, i64 %k
  %a.other.step = select i1 %by.row, i64 %a.row.step, i64 0
  %a.step = select i1 %by.batch, i64 %stride.a, i64 %a.other.step
  %b.column.step = select i1 %tb.set, i64 %k, i64 1
  %b.other.step = select i1 %by.row, i64 0, i64 %b.column.step
  %b.step = select i1 %by.batch, i64 %stride.b, i64 %b.other.step
  %product = mul i64 %m, %n
  %out.other.step = select i1 %by.row, i64 %n, i64 1
  %out.step = select i1 %by.batch, i64 %product, i64 %out.other.step
  br label %panel
panel:
  %i = phi i64 [ %begin, %entry ], [ %following, %panel ]
  %following = add i64 {"%end, 0" if joined else "%i, 1"}
  %first = mul i64 %i, %width
  %next = mul i64 %following, %width
  %stop = call i64 @llvm.smin.i64(i64 %length, i64 %next)
  %size = sub i64 %stop, %first
  %panel.batch = select i1 %by.batch, i64 %size, i64 1
  %not.columns = or i1 %by.batch, %by.row
  %panel.m = select i1 %by.row, i64 %size, i64 %m
  %panel.n = select i1 %not.columns, i64 %n, i64 %size
  %a.skip = mul i64 %first, %a.step
  %b.skip = mul i64 %first, %b.step
  %out.skip = mul i64 %first, %out.step
  %a.panel = getelementptr {item}, ptr %a, i64 %a.skip
  %b.panel = getelementptr {item}, ptr %b, i64 %b.skip
  %out.panel = getelementptr {result}, ptr %out, i64 %out.skip
  call void @{product}(ptr %a.panel, ptr %b.panel, ptr %out.panel, i64 %panel.batch, i64 %panel.m, \
i64 %panel.n, i64 %k, i64 %transpose.a, {transposed}, i64 %stride.a, i64 %stride.b, i64 %lda, i64 %ldb, \
i64 %n, ptr %halt)
  %more = icmp slt i64 %following, %end
  br i1 %more, label %panel, label %done
done:
  ret void
}}
"""
