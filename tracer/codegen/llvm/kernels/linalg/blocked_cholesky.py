"""Cholesky of large matrices in blocks: LAPACK and BLAS for blocks of columns, our products for strips, on threads.

    library.blocked.potrf_<dtype>    in place, parameters as in `lapack`, for real matrices

Right-looking (Golub & Van Loan 2013, Matrix Computations, 4.2.6). A block of columns is factored. Then every strip
behind it has its part of the factor solved for, and the product of both subtracted. Strips follow from the shape alone
and each belongs to one thread. So bits do not depend on the number of threads. As in `lapack`, column-major matrices
are seen as rows: our products read and write them transposed.
"""

from __future__ import annotations

from typing import Final

from tracer.codegen.llvm.kernels.gemm.blas import BLAS_LETTER, blas_threads, on_one_thread
from tracer.codegen.llvm.kernels.gemm.kernel_loops import keep, kept, loop, onward
from tracer.codegen.llvm.kernels.gemm.kernel_shapes import KINDS
from tracer.codegen.llvm.kernels.transpose import SYMBOL

_GIVEN: Final = ("ptr %a", "i64 %n", "i64 %j", "i64 %width", "ptr %halt")
_BLOCK: Final = 64  # columns; 32 to 96 differ by a twentieth


def blocked_text(kind: str) -> tuple[str, ...]:
    """Return the texts that calls need."""
    return blas_threads(), _DECLARED, _common(kind), _potrf(kind)


_DECLARED: Final = """\
declare void @tracer_share(ptr, ptr, i64, i64)
declare i64 @llvm.smin.i64(i64, i64)
"""


def _common(kind: str) -> str:
    """Return the function for out -= x @ b, where x [rows, columns] is at most a block, with rows `step` apart."""
    element, size = KINDS[kind]
    numbers = ", ".join(["i64"] * 8)
    return f"""\
declare void @tracer_product_add_{kind}(ptr, ptr, ptr, {numbers}, ptr)
define internal void @blocks.take.{kind}(ptr %x, i64 %step, i64 %rows, i64 %columns, ptr %b, i64 %b.row, \
i64 %b.column, ptr %out, i64 %out.row, i64 %n, ptr %turn) #2 {{
entry:
  %less = alloca [{_BLOCK * _BLOCK} x {element}], align 64
  br label %row
row:
  %i = phi i64 [ 0, %entry ], [ %i.next, %row.end ]
  %from.skip = mul i64 %i, %step
  %from = getelementptr {element}, ptr %x, i64 %from.skip
  %to.skip = mul i64 %i, %columns
  %to = getelementptr {element}, ptr %less, i64 %to.skip
  br label %column
column:
  %j = phi i64 [ 0, %row ], [ %j.next, %column ]
  %from.j = getelementptr {element}, ptr %from, i64 %j
  %to.j = getelementptr {element}, ptr %to, i64 %j
  %value = load {element}, ptr %from.j, align {size}
  %negative = fneg {element} %value
  store {element} %negative, ptr %to.j, align {size}
  %j.next = add i64 %j, 1
  %j.more = icmp slt i64 %j.next, %columns
  br i1 %j.more, label %column, label %row.end
row.end:
  %i.next = add i64 %i, 1
  %i.more = icmp slt i64 %i.next, %rows
  br i1 %i.more, label %row, label %multiply
multiply:
  call void @tracer_product_add_{kind}(ptr %less, ptr %b, ptr %out, i64 %rows, i64 %n, i64 %columns, i64 %columns, \
i64 1, i64 %b.row, i64 %b.column, i64 %out.row, ptr %turn)
  ret void
}}
"""


def _narrow(**sizes: str) -> str:
    """Store sizes as C's int in the function's slots."""
    return "\n".join(
        f"  %{name}.narrow = trunc i64 {value} to i32\n  store i32 %{name}.narrow, ptr %{name}.slot"
        for name, value in sizes.items()
    )


def _slots(*names: str) -> str:
    return "\n".join(f"  %{name}.slot = alloca i32, align 4" for name in names)


def _sides(letters: str) -> str:
    """Write trsm's letters: the factor's side, its triangle, its form and its diagonal."""
    names = enumerate(("triangle", "form", "diagonal"), 1)
    places = "\n".join(f"  %{name} = getelementptr i8, ptr %side, i64 {n}" for n, name in names)
    return f"""\
  %side = alloca [4 x i8], align 4
  store [4 x i8] c"{letters}", ptr %side
{places}"""


def _stack(kind: str) -> str:
    """Return the loop over the matrices, with BLAS on one thread."""
    names = "ptr %a, i64 %batch, i64 %n, ptr %halt"
    each = f"""\
  %skip = mul i64 %i, %area
  %a.i = getelementptr {KINDS[kind][0]}, ptr %a, i64 %skip
  call void @blocks.potrf_{kind}(ptr %a.i, i64 %n, ptr %halt)"""
    return f"""\
define internal void @library.blocked.potrf_{kind}({names}) #2 {{
entry:
{on_one_thread(f"call void @blocks.potrf.each_{kind}({names})")}
}}
define internal void @blocks.potrf.each_{kind}({names}) #2 {{
entry:
  %area = mul i64 %n, %n
{loop("i", "0", "%batch", 1, each)}
  ret void
}}
"""


def _blocks(kind: str) -> str:
    """Return the loop over blocks of columns of one matrix, which factors each and shares its strips."""
    (element, _), letter = KINDS[kind], BLAS_LETTER[kind]
    return f"""\
define internal void @blocks.potrf_{kind}(ptr %a, i64 %n, ptr %halt) #2 {{
entry:
{_slots("width", "lda", "info")}
  %upper = alloca i8, align 1
  %given = alloca [{len(_GIVEN)} x i64], align 8
  store i8 85, ptr %upper
{_narrow(lda="%n")}
  br label %block
block:
  %j = phi i64 [ 0, %entry ], [ %j.next, %onward ]
  %left = sub i64 %n, %j
  %width = call i64 @llvm.smin.i64(i64 %left, i64 {_BLOCK})
{_narrow(width="%width")}
  %skip = mul i64 %j, %n
  %corner.skip = add i64 %skip, %j
  %corner = getelementptr {element}, ptr %a, i64 %corner.skip
  call void @tracer_lapack_{letter}potrf(ptr %upper, ptr %width.slot, ptr %corner, ptr %lda.slot, ptr %info.slot)
  %found = load i32, ptr %info.slot, align 4
  %failed = icmp ne i32 %found, 0
  br i1 %failed, label %mark, label %share
mark:
  %area = mul i64 %n, %n
  %last = sub i64 %area, 1
  %end = getelementptr {element}, ptr %a, i64 %last
  store {element} 0x7FF8000000000000, ptr %end
  ret void
share:
  %below = sub i64 %left, %width
  %strips.up = add i64 %below, {_BLOCK - 1}
  %strips = udiv i64 %strips.up, {_BLOCK}
  %is.last = icmp eq i64 %below, 0
  br i1 %is.last, label %onward, label %strips.share
strips.share:
{keep(*_GIVEN)}
  call void @tracer_share(ptr @blocks.potrf.solve_{kind}, ptr %given, i64 %strips, i64 1)
  call void @tracer_share(ptr @blocks.potrf.take_{kind}, ptr %given, i64 %strips, i64 1)
  br label %onward
onward:
  %j.next = add i64 %j, {_BLOCK}
  %j.left.over = icmp slt i64 %j.next, %n
{onward("%j.left.over", "j.more")}
  br i1 %j.more, label %block, label %done
done:
  ret void
}}"""


def _potrf(kind: str) -> str:
    """Return the factorization of one matrix: its loop over blocks, and the two parts that threads share."""
    element, size = KINDS[kind]
    letter = BLAS_LETTER[kind]
    strip = f"""\
entry:
{_slots("width", "rows", "lda")}
{_sides("LUTN")}
{kept(*_GIVEN)}
{_narrow(width="%width", lda="%n")}
  %stop = add i64 %j, %width
  %corner.skip = mul i64 %j, %n
  %corner.row = getelementptr {element}, ptr %a, i64 %corner.skip
  %corner = getelementptr {element}, ptr %corner.row, i64 %j
  %stop.skip = mul i64 %stop, %n
  %below = getelementptr {element}, ptr %a, i64 %stop.skip
  %below.factor = getelementptr {element}, ptr %below, i64 %j
  br label %strip
strip:
  %s = phi i64 [ %begin, %entry ], [ %s.next, %work ]
  %own = mul i64 %s, {_BLOCK}
  %r = add i64 %stop, %own
  %left = sub i64 %n, %r
  %rows = call i64 @llvm.smin.i64(i64 %left, i64 {_BLOCK})
  %r.skip = mul i64 %r, %n
  %r.at = getelementptr {element}, ptr %a, i64 %r.skip
  %factor = getelementptr {element}, ptr %r.at, i64 %j
  br label %work
work:
"""
    strip_end = f"""  %s.next = add i64 %s, 1
  %s.left.over = icmp slt i64 %s.next, %end
{onward("%s.left.over", "s.more")}
  br i1 %s.more, label %strip, label %done
done:
  ret void
}}
"""
    return f"""\
@blocks.one.{kind} = private constant {element} 1.0, align 16
declare void @tracer_lapack_{letter}potrf(ptr, ptr, ptr, ptr, ptr)
declare void @tracer_blas_{letter}trsm(ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr)
declare void @{SYMBOL}{size}(ptr, i64, ptr, i64, i64, i64)
{_stack(kind)}
{_blocks(kind)}
define internal void @blocks.potrf.solve_{kind}(ptr %given, i64 %begin, i64 %end) #2 {{
{strip}{_narrow(rows="%rows")}
  call void @tracer_blas_{letter}trsm(ptr %side, ptr %triangle, ptr %form, ptr %diagonal, ptr %width.slot, \
ptr %rows.slot, ptr @blocks.one.{kind}, ptr %corner, ptr %lda.slot, ptr %factor, ptr %lda.slot)
{strip_end}define internal void @blocks.potrf.take_{kind}(ptr %given, i64 %begin, i64 %end) #2 {{
{strip}  %columns = add i64 %own, %rows
  %out = getelementptr {element}, ptr %r.at, i64 %stop
  call void @blocks.take.{kind}(ptr %factor, i64 %n, i64 %rows, i64 %width, ptr %below.factor, i64 1, i64 %n, \
ptr %out, i64 %n, i64 %columns, ptr @{SYMBOL}{size})
{strip_end}"""
