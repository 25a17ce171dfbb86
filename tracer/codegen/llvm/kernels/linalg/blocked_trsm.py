"""Large triangular systems in blocks: BLAS for blocks of the diagonal, our products for all other blocks.

    library.blocked.trsm_<dtype>    in place, parameters as in `lapack`, for real matrices

Right-looking (Golub & Van Loan 2013, Matrix Computations, 3.1.5). A block of unknowns is solved for. Its product with
the matrix is subtracted from all right-hand sides behind it. Right-hand sides are split in strips, which the schedule
chooses from the shape alone. Each strip belongs to one thread, so bits do not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tracer.codegen.llvm.kernels.gemm.blas import BLAS_LETTER, blas_threads, on_one_thread
from tracer.codegen.llvm.kernels.gemm.kernel_loops import keep, kept, onward
from tracer.codegen.llvm.kernels.gemm.kernel_shapes import KINDS
from tracer.codegen.llvm.kernels.linalg.lapack import TRSM_HEAD, trsm_letters
from tracer.codegen.llvm.kernels.transpose import SYMBOL
from tracer.ir import loop

_BLOCK: Final = 64
_STRIP: Final = 192  # columns of right-hand sides that a thread has room for
_LANES: Final = 8  # elements copied at once
_GIVEN: Final = (
    "ptr %a", "ptr %x", "i64 %n", "i64 %others", "i64 %left", "i64 %lower", "i64 %form", "i64 %unit", "ptr %halt",
    "i64 %width", "i64 %strips",
)  # fmt: skip


def systems_call(kind: str, spelled: Sequence[str], batch: int, split: loop.Split) -> str:
    """Return the call for a stack of systems, whose right-hand sides are split in strips."""
    units = batch * split.count
    given = [*spelled, *(f"i64 {x}" for x in (split.width, split.count, units, split.at_once))]
    return f"call void @library.blocked.trsm_{kind}({', '.join(given)})"


def systems_text(kind: str) -> tuple[str, ...]:
    """Return the texts that calls need."""
    element, size = KINDS[kind]
    letter = BLAS_LETTER[kind]
    numbers = ", ".join(["i64"] * 8)
    parameters = ", ".join([*_GIVEN[:2], "i64 %batch", *_GIVEN[2:]])
    share = f"call void @tracer_share(ptr @systems.part_{kind}, ptr %given, i64 %units, i64 %grain)"
    text = f"""\
declare void @tracer_share(ptr, ptr, i64, i64)
declare void @tracer_product_add_{kind}(ptr, ptr, ptr, {numbers}, ptr)
declare void @tracer_blas_{letter}trsm(ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr)
declare void @{SYMBOL}{size}(ptr, i64, ptr, i64, i64, i64)
@systems.one.{kind} = private constant {element} 1.0, align 16
define internal void @library.blocked.trsm_{kind}({parameters}, i64 %units, i64 %grain) #2 {{
entry:
  %given = alloca [{len(_GIVEN)} x i64], align 8
{keep(*_GIVEN)}
{on_one_thread(share)}
}}
{_part(kind)}"""
    return blas_threads(), trsm_letters(), text


def _negated(kind: str) -> str:
    """Copy the solved unknowns' negatives, so that their product is added."""
    (element, size), values = KINDS[kind], f"<{_LANES} x {KINDS[kind][0]}>"
    return f"""\
copy:
  %r = phi i64 [ 0, %block ], [ %r.next, %copy.end ]
  %from.skip = mul i64 %r, %x.row
  %from = getelementptr {element}, ptr %own, i64 %from.skip
  %to.skip = mul i64 %r, %rows
  %to = getelementptr {element}, ptr %less, i64 %to.skip
  br label %several
several:
  %v = phi i64 [ 0, %copy ], [ %v.next, %several.copy ]
  %v.next = add i64 %v, {_LANES}
  %is.whole = icmp sle i64 %v.next, %rows
  br i1 %is.whole, label %several.copy, label %one
several.copy:
  %from.v = getelementptr {element}, ptr %from, i64 %v
  %to.v = getelementptr {element}, ptr %to, i64 %v
  %values = load {values}, ptr %from.v, align {size}
  %negatives = fneg {values} %values
  store {values} %negatives, ptr %to.v, align {size}
  br label %several
one:
  %c = phi i64 [ %v, %several ], [ %c.next, %one.copy ]
  %c.more = icmp slt i64 %c, %rows
  br i1 %c.more, label %one.copy, label %copy.end
one.copy:
  %from.c = getelementptr {element}, ptr %from, i64 %c
  %to.c = getelementptr {element}, ptr %to, i64 %c
  %value = load {element}, ptr %from.c, align {size}
  %negative = fneg {element} %value
  store {element} %negative, ptr %to.c, align {size}
  %c.next = add i64 %c, 1
  br label %one
copy.end:
  %r.next = add i64 %r, 1
  %r.more = icmp slt i64 %r.next, %columns
  br i1 %r.more, label %copy, label %multiply"""


def _subtracted(kind: str) -> str:
    """Subtract the unknowns' product with the matrix from the right-hand sides still to be solved."""
    element = KINDS[kind][0]
    return f"""\
multiply:
  %out.skip = mul i64 %rest.at, %x.block.step
  %out = getelementptr {element}, ptr %x.i, i64 %out.skip
  br i1 %is.left, label %from.left, label %from.right
from.left:
  %below.row = mul i64 %rest.at, %a.row
  %below.column = mul i64 %j, %a.column
  %below.skip = add i64 %below.row, %below.column
  %below = getelementptr {element}, ptr %a.i, i64 %below.skip
  call void @tracer_product_add_{kind}(ptr %below, ptr %less, ptr %out, i64 %rest, i64 %sides, i64 %count, \
i64 %a.row, i64 %a.column, i64 %sides, i64 1, i64 %others, ptr null)
  br label %block.end
from.right:
  %beside.row = mul i64 %j, %a.row
  %beside.column = mul i64 %rest.at, %a.column
  %beside.skip = add i64 %beside.row, %beside.column
  %beside = getelementptr {element}, ptr %a.i, i64 %beside.skip
  call void @tracer_product_add_{kind}(ptr %less, ptr %beside, ptr %out, i64 %sides, i64 %rest, i64 %count, \
i64 %count, i64 1, i64 %a.row, i64 %a.column, i64 %n, ptr %turn)
  br label %block.end"""


def _part(kind: str) -> str:
    """Return the function that solves the strips from `begin` to `end`, block of unknowns by block."""
    (element, size), letter = KINDS[kind], BLAS_LETTER[kind]
    return f"""\
define internal void @systems.part_{kind}(ptr %given, i64 %begin, i64 %end) #2 {{
entry:
  %sizes = alloca [4 x i32], align 4
  %less = alloca [{_BLOCK * _STRIP} x {element}], align 64
{kept(*_GIVEN)}
{TRSM_HEAD}
  %rows.slot = getelementptr i32, ptr %sizes, i64 1
  %columns.slot = getelementptr i32, ptr %sizes, i64 2
  %x.step.slot = getelementptr i32, ptr %sizes, i64 3
  %x.row = select i1 %is.left, i64 %others, i64 %n
  %n.narrow = trunc i64 %n to i32
  %x.step = trunc i64 %x.row to i32
  store i32 %n.narrow, ptr %sizes
  store i32 %x.step, ptr %x.step.slot
  %is.lower = icmp ne i64 %lower, 0
  %is.below = xor i1 %is.lower, %is.turned
  %is.above = xor i1 %is.below, true
  %goes.down = select i1 %is.left, i1 %is.below, i1 %is.above
  %a.row = select i1 %is.turned, i64 1, i64 %n
  %a.column = select i1 %is.turned, i64 %n, i64 1
  %turn = select i1 %is.turned, ptr @{SYMBOL}{size}, ptr null
  %x.side.step = select i1 %is.left, i64 1, i64 %n
  %x.block.step = select i1 %is.left, i64 %others, i64 1
  %area.a = mul i64 %n, %n
  %area.x = mul i64 %n, %others
  %blocks.up = add i64 %n, {_BLOCK - 1}
  %blocks = udiv i64 %blocks.up, {_BLOCK}
  br label %system
system:
  %u = phi i64 [ %begin, %entry ], [ %u.next, %system.end ]
  %i = udiv i64 %u, %strips
  %strip = urem i64 %u, %strips
  %a.skip = mul i64 %i, %area.a
  %a.i = getelementptr {element}, ptr %a, i64 %a.skip
  %first = mul i64 %strip, %width
  %sides.left = sub i64 %others, %first
  %is.short = icmp slt i64 %sides.left, %width
  %sides = select i1 %is.short, i64 %sides.left, i64 %width
  %x.matrix = mul i64 %i, %area.x
  %x.side = mul i64 %first, %x.side.step
  %x.skip = add i64 %x.matrix, %x.side
  %x.i = getelementptr {element}, ptr %x, i64 %x.skip
  br label %block
block:
  %b = phi i64 [ 0, %system ], [ %b.next, %block.end ]
  %b.last = sub i64 %blocks, 1
  %b.back = sub i64 %b.last, %b
  %number = select i1 %goes.down, i64 %b, i64 %b.back
  %j = mul i64 %number, {_BLOCK}
  %left.over = sub i64 %n, %j
  %is.rest = icmp slt i64 %left.over, {_BLOCK}
  %count = select i1 %is.rest, i64 %left.over, i64 {_BLOCK}
  %corner.row = mul i64 %j, %n
  %corner.skip = add i64 %corner.row, %j
  %corner = getelementptr {element}, ptr %a.i, i64 %corner.skip
  %own.skip = mul i64 %j, %x.block.step
  %own = getelementptr {element}, ptr %x.i, i64 %own.skip
  %rows = select i1 %is.left, i64 %sides, i64 %count
  %columns = select i1 %is.left, i64 %count, i64 %sides
  %rows.narrow = trunc i64 %rows to i32
  %columns.narrow = trunc i64 %columns to i32
  store i32 %rows.narrow, ptr %rows.slot
  store i32 %columns.narrow, ptr %columns.slot
  call void @tracer_blas_{letter}trsm(ptr %letters, ptr %letter1, ptr %letter2, ptr %letter3, ptr %rows.slot, \
ptr %columns.slot, ptr @systems.one.{kind}, ptr %corner, ptr %sizes, ptr %own, ptr %x.step.slot)
  %stop = add i64 %j, %count
  %behind = sub i64 %n, %stop
  %rest = select i1 %goes.down, i64 %behind, i64 %j
  %rest.at = select i1 %goes.down, i64 %stop, i64 0
  %has.rest = icmp sgt i64 %rest, 0
  br i1 %has.rest, label %copy, label %block.end
{_negated(kind)}
{_subtracted(kind)}
block.end:
  %b.next = add i64 %b, 1
  %b.left.over = icmp slt i64 %b.next, %blocks
{onward("%b.left.over", "b.more")}
  br i1 %b.more, label %block, label %system.end
system.end:
  %u.next = add i64 %u, 1
  %u.left.over = icmp slt i64 %u.next, %end
{onward("%u.left.over", "u.more")}
  br i1 %u.more, label %system, label %done
done:
  ret void
}}
"""
