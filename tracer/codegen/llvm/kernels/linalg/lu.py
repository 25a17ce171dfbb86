"""LU of real matrices by our own kernels, in a module that is compiled once.

    void tracer_lu_f64(ptr a, ptr pivots, ptr work, i64 m, i64 n, ptr halt)
    a[m, n], by rows, becomes its factors; pivots[min(m, n)], i32: the chosen rows, counted from 1, as in LAPACK.
    work[2 c, m + 128], where c is min(m, n, 64) up to a multiple of eight: room for two panels.

Right-looking, in panels of 64 columns (Golub & Van Loan 2013, Matrix Computations, 3.2.11). Each strip of 64 columns
behind a panel has its rows exchanged. Its part of the upper factor is solved for. Then the product of both is
subtracted from the rows below. Strips before the panel have their rows exchanged. Threads share strips. The thread of
the first strip also factors the next panel, which lies in it. Meanwhile other threads run the other strips. Strips
follow from the shape alone, so bits do not depend on the number of threads.
"""

from __future__ import annotations

from typing import Final

from tracer.codegen.llvm.kernels.gemm.kernel_loops import keep, kept, loop, unless_stopped
from tracer.codegen.llvm.kernels.gemm.kernel_shapes import KINDS, Shape, attributes
from tracer.codegen.llvm.kernels.linalg.lu_panel import BLOCK, at, panel_kernels, solve_vectors
from tracer.codegen.llvm.kernels.transpose import SYMBOL

NAME: Final = "tracer_lu_"
_APART: Final = 16  # columns of a panel are an odd multiple of these elements apart, in different cache sets
_GIVEN: Final = (
    "ptr %a", "ptr %pivots", "ptr %work", "i64 %m", "i64 %n", "i64 %steps", "i64 %ld", "i64 %j", "i64 %width",
    "i64 %strips", "ptr %halt",
)  # fmt: skip


def lu_text(kind: str, vector_bits: int | None = None) -> str:
    """Return the module of one dtype, for this machine or one like it with vectors of so many bits."""
    s = Shape(kind, vector_bits)
    numbers = ", ".join(["i64"] * 8)
    return f"""\
declare void @tracer_share(ptr, ptr, i64, i64)
declare void @tracer_product_add_{kind}(ptr, ptr, ptr, {numbers}, ptr)
declare void @{SYMBOL}{s.size}(ptr, i64, ptr, i64, i64, i64)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare i64 @llvm.smin.i64(i64, i64)
{panel_kernels(kind, vector_bits)}
{_matrix(kind)}
{_of_panel(s)}
{_strips(s, kind)}
{_rows_exchanged(s)}
{attributes(s)}
"""


def lu_definition(kind: str) -> str:
    """Return a loop over a stack of matrices, which use the same work memory."""
    element = KINDS[kind][0]
    each = f"""\
  %a.skip = mul i64 %i, %area
  %a.i = getelementptr {element}, ptr %a, i64 %a.skip
  %pivots.skip = mul i64 %i, %steps
  %pivots.i = getelementptr i32, ptr %pivots, i64 %pivots.skip
  call void @{NAME}{kind}(ptr %a.i, ptr %pivots.i, ptr %work, i64 %m, i64 %n, ptr %halt)"""
    return f"""\
declare void @{NAME}{kind}(ptr, ptr, ptr, i64, i64, ptr)
define internal void @library.lu_{kind}(ptr %a, ptr %pivots, ptr %work, i64 %batch, i64 %m, i64 %n, ptr %halt) #2 {{
entry:
  %area = mul i64 %m, %n
  %is.wide = icmp slt i64 %m, %n
  %steps = select i1 %is.wide, i64 %m, i64 %n
{loop("i", "0", "%batch", 1, each)}
  ret void
}}
"""


def _matrix(kind: str) -> str:
    """Return the loop over panels; the first panel is factored alone."""
    strips = f"""\
  %left = sub i64 %steps, %j
  %width = call i64 @llvm.smin.i64(i64 %left, i64 {BLOCK})
  %stop = add i64 %j, %width
  %behind = sub i64 %n, %stop
  %behind.up = add i64 %behind, {BLOCK - 1}
  %strips = sdiv i64 %behind.up, {BLOCK}
  %before = sdiv i64 %j, {BLOCK}
  %all = add i64 %strips, %before
{keep(*_GIVEN)}
  call void @tracer_share(ptr @strips, ptr %given, i64 %all, i64 1)"""
    return f"""\
define void @{NAME}{kind}(ptr %a, ptr %pivots, ptr %work, i64 %m, i64 %n, ptr %halt) #0 {{
entry:
  %given = alloca [{len(_GIVEN)} x i64], align 8
  %steps = call i64 @llvm.smin.i64(i64 %m, i64 %n)
  %room = add i64 %m, {5 * _APART}
  %times = udiv i64 %room, {_APART}
  %odd = or i64 %times, 1
  %ld = mul i64 %odd, {_APART}
  call void @panel.at(ptr %a, ptr %pivots, ptr %work, i64 %m, i64 %n, i64 %steps, i64 %ld, i64 0)
{loop("j", "0", "%steps", BLOCK, unless_stopped("panel", strips))}
  ret void
}}"""


def _of_panel(s: Shape) -> str:
    """Return the functions for the panel from column `%j` on; consecutive panels use different halves of `%work`."""
    return f"""\
define internal ptr @panel.place(ptr %work, i64 %steps, i64 %ld, i64 %j) #0 {{
  %width = call i64 @llvm.smin.i64(i64 %steps, i64 {BLOCK})
  %width.up = add i64 %width, 7
  %columns = and i64 %width.up, -8
  %number = udiv i64 %j, {BLOCK}
  %half = and i64 %number, 1
  %skip = mul i64 %half, %columns
{at(s, "%p", "%work", "%skip", "%ld", "0")}
  ret ptr %p
}}
define internal void @panel.at(ptr %a, ptr %pivots, ptr %work, i64 %m, i64 %n, i64 %steps, i64 %ld, i64 %j) #0 {{
  %p = call ptr @panel.place(ptr %work, i64 %steps, i64 %ld, i64 %j)
  %left = sub i64 %steps, %j
  %width = call i64 @llvm.smin.i64(i64 %left, i64 {BLOCK})
  %rows = sub i64 %m, %j
{at(s, "%corner", "%a", "%j", "%n", "%j")}
  %chosen = getelementptr i32, ptr %pivots, i64 %j
  call void @panel(ptr %corner, i64 %n, i64 %rows, i64 %width, i64 %j, ptr %p, i64 %ld, ptr %chosen)
  ret void
}}"""


def _strips(s: Shape, kind: str) -> str:
    """Return the function for the strips from `%begin` to `%end`: behind the panel, then before it."""
    some = s.lanes * solve_vectors(s)
    width = -(-BLOCK // some) * some
    solve = f"""\
{at(s, "%g.x", "%x", "0", str(width), "%g")}
  call void @solve(ptr %p, i64 %ld, i64 %width, ptr %g.x, i64 {width})"""
    inward = _copy(s, "in", "%own", "%n", "%x", str(width), back=None)
    outward = _copy(s, "out", "%x", str(width), "%own", "%n", back="%x")
    strip = f"""\
  %is.behind = icmp slt i64 %s, %strips
  %right = mul i64 %s, {BLOCK}
  %right.at = add i64 %right, %stop
  %before = sub i64 %s, %strips
  %left = mul i64 %before, {BLOCK}
  %c = select i1 %is.behind, i64 %right.at, i64 %left
  %c.left = sub i64 %n, %c
  %columns = call i64 @llvm.smin.i64(i64 %c.left, i64 {BLOCK})
  %strip = getelementptr {s.element}, ptr %a, i64 %c
  call void @rows.exchanged(ptr %strip, i64 %n, i64 %columns, ptr %pivots, i64 %j, i64 %stop)
  br i1 %is.behind, label %behind, label %end.strip
behind:
{at(s, "%own", "%strip", "%j", "%n", "0")}
  call void @llvm.memset.p0.i64(ptr align 64 %x, i8 0, i64 {BLOCK * width * s.size}, i1 false)
{inward}
{loop("g", "0", "%columns", some, solve)}
{outward}
  %below = sub i64 %m, %stop
  %has.below = icmp sgt i64 %below, 0
  br i1 %has.below, label %take, label %end.strip
take:
{at(s, "%lower", "%a", "%stop", "%n", "%j")}
{at(s, "%rest", "%strip", "%stop", "%n", "0")}
  call void @tracer_product_add_{kind}(ptr %lower, ptr %x, ptr %rest, i64 %below, i64 %columns, i64 %width, i64 %n, \
i64 1, i64 {width}, i64 1, i64 %n, ptr null)
  %is.first = icmp eq i64 %s, 0
  %has.next = icmp slt i64 %stop, %steps
  %is.next = and i1 %is.first, %has.next
  br i1 %is.next, label %next, label %end.strip
next:
  call void @panel.at(ptr %a, ptr %pivots, ptr %work, i64 %m, i64 %n, i64 %steps, i64 %ld, i64 %stop)
  br label %end.strip
end.strip:"""
    return f"""\
define internal void @strips(ptr %given, i64 %begin, i64 %end) #0 {{
entry:
  %x = alloca [{BLOCK * width} x {s.element}], align 64
{kept(*_GIVEN)}
  %stop = add i64 %j, %width
  %p = call ptr @panel.place(ptr %work, i64 %steps, i64 %ld, i64 %j)
{loop("s", "%begin", "%end", 1, unless_stopped("strip", strip))}
  ret void
}}"""


def _copy(s: Shape, i: str, source: str, source_step: str, target: str, target_step: str, back: str | None) -> str:
    """Copy `%width` rows of `%columns` from source to target, and their negatives back to the source if `back`."""

    def element(kind: str, at: str) -> str:
        negative = f"\n  {at}.less = fneg {kind} {at}.value\n  store {kind} {at}.less, ptr {at}.from, align {s.size}"
        return f"""\
  {at}.from = getelementptr {s.element}, ptr %{i}.source, i64 {at}
  {at}.to = getelementptr {s.element}, ptr %{i}.target, i64 {at}
  {at}.value = load {kind}, ptr {at}.from, align {s.size}
  store {kind} {at}.value, ptr {at}.to, align {s.size}{negative if back else ""}"""

    rows = f"""\
{at(s, f"%{i}.source", source, f"%{i}", source_step, "0")}
{at(s, f"%{i}.target", target, f"%{i}", target_step, "0")}
  %{i}.rest = urem i64 %columns, {s.lanes}
  %{i}.full = sub i64 %columns, %{i}.rest
{loop(f"{i}.v", "0", f"%{i}.full", s.lanes, element(s.vector, f"%{i}.v"))}
{loop(f"{i}.c", f"%{i}.full", "%columns", 1, element(s.element, f"%{i}.c"))}"""
    return loop(i, "0", "%width", 1, rows)


def _rows_exchanged(s: Shape) -> str:
    """Return the function that exchanges, in `%columns` of rows `%step` apart, the rows chosen from `%j` to `%stop`."""

    def swap(kind: str, i: str) -> str:
        return f"""\
  {i}.here = getelementptr {s.element}, ptr %here, i64 {i}
  {i}.there = getelementptr {s.element}, ptr %there, i64 {i}
  {i}.one = load {kind}, ptr {i}.here, align {s.size}
  {i}.other = load {kind}, ptr {i}.there, align {s.size}
  store {kind} {i}.other, ptr {i}.here, align {s.size}
  store {kind} {i}.one, ptr {i}.there, align {s.size}"""

    row = f"""\
  %chosen.at = getelementptr i32, ptr %pivots, i64 %k
  %chosen = load i32, ptr %chosen.at, align 4
  %chosen.wide = sext i32 %chosen to i64
  %place = sub i64 %chosen.wide, 1
  %is.same = icmp eq i64 %place, %k
  br i1 %is.same, label %k.end, label %move
move:
{at(s, "%here", "%a", "%k", "%step", "0")}
{at(s, "%there", "%a", "%place", "%step", "0")}
{loop("v", "0", "%full", s.lanes, swap(s.vector, "%v"))}
{loop("c", "%full", "%columns", 1, swap(s.element, "%c"))}
  br label %k.end
k.end:"""
    return f"""\
define internal void @rows.exchanged(ptr %a, i64 %step, i64 %columns, ptr %pivots, i64 %j, i64 %stop) #0 {{
entry:
  %rest = urem i64 %columns, {s.lanes}
  %full = sub i64 %columns, %rest
{loop("k", "%j", "%stop", 1, row)}
  ret void
}}"""
