"""A panel of a product: sums of a block of rows by some vectors of columns in registers.

All blocks of rows are computed in turn.

    void panel3(ptr a, ptr b, ptr out, i64 m, i64 depth, i64 a_row, i64 a_column, i64 out_row, i64 rest, i1 is.first,
                i64 chunk, ptr next, i64 next.step, i64 next.shift, i64 next.last, i64 next.line)

Every `chunk` steps, some cache lines are prefetched. One line of the result, which the sums are added to, goes into the
first cache. `LINES` of the memory read next go into the second. Prefetched all at once, they would delay the steps' own
loads. Few steps are one chunk, before which the result is prefetched. The memory read next is runs of 1 << next.shift
lines, next.step bytes apart, the last at next.last. A panel begins with the line next.line and prefetches `LINES`
beside each chunk of each block.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tracer.codegen.llvm.kernels.gemm.kernel_shapes import Shape, fused, mask

LINE: Final = 64  # bytes
LINES: Final = 4  # cache lines for each chunk
_CHUNK: Final = 16  # steps, which multiply for some 100 ns
_SPREAD: Final = 3 * 8 * _CHUNK  # steps from which on one line a chunk covers the result
NEXT: Final = "i64 %chunk, ptr %next, i64 %next.step, i64 %next.shift, i64 %next.last, i64 %next.line"


def chunks_text() -> str:
    """Write `%chunk`, the steps of a chunk of `%depth`, and `%chunk.count`."""
    return f"""\
  %is.short = icmp slt i64 %depth, {_SPREAD}
  %chunk = select i1 %is.short, i64 %depth, i64 {_CHUNK}
  %depth.up = add i64 %depth, {_CHUNK - 1}
  %depth.chunks = udiv i64 %depth.up, {_CHUNK}
  %chunk.count = select i1 %is.short, i64 1, i64 %depth.chunks"""


def panel(s: Shape, vectors: int) -> str:
    """Return the function for all rows of a panel of columns, `vectors` wide; its last vector holds `rest` elements."""
    sums = [(r, v) for r in range(s.rows) for v in range(vectors)]
    return f"""\
define internal void @panel{vectors}(ptr %a, ptr %b, ptr %out, i64 %m, i64 %depth, i64 %a_row, i64 %a_column, \
i64 %out_row, i64 %rest, i1 %is.first, {NEXT}) #0 {{
entry:
  %last = sub i64 %m, 1
  %next.run = shl i64 1, %next.shift
  %next.within = sub i64 %next.run, 1
  %is.short = icmp eq i64 %chunk, %depth
{mask(s, "%rest")}
  br label %block
block:
  %i = phi i64 [ 0, %entry ], [ %i.next, %block.end ]
  %line.first = phi i64 [ %next.line, %entry ], [ %line.next, %block.end ]
{rows_of(s, s.element)}
  br i1 %is.short, label %fetch, label %chunks
fetch:
{_result_fetched(s, sums)}
  br label %chunks
chunks:
  br label %chunk.steps
{_chunks(s, sums, vectors)}
{ends(s, sums, vectors)}
block.end:
  %i.next = add i64 %i, {s.rows}
  %i.more = icmp slt i64 %i.next, %m
  br i1 %i.more, label %block, label %done
done:
  ret void
}}
"""


def rows_of(s: Shape, element: str) -> str:
    """Write the rows of a, whose elements are of an LLVM type, and of the result; rows beyond the last repeat it."""
    lines = []
    for r in range(s.rows):
        lines += [
            f"  %row{r} = add i64 %i, {r}",
            f"  %kept{r} = call i64 @llvm.smin.i64(i64 %row{r}, i64 %last)",
            f"  %a.skip{r} = mul i64 %kept{r}, %a_row",
            f"  %a{r} = getelementptr {element}, ptr %a, i64 %a.skip{r}",
        ]
    return "\n".join(lines)


def _result_fetched(s: Shape, sums: Sequence[tuple[int, int]]) -> str:
    """Prefetch the whole block of the result, where there are too few steps to do it line by line."""
    lines = []
    for r in range(s.rows):
        lines.append(f"  %later.skip{r} = mul i64 %kept{r}, %out_row")
        lines.append(f"  %later{r} = getelementptr {s.element}, ptr %out, i64 %later.skip{r}")
    for r, v in sums:
        lines.append(f"  %later{r}.{v} = getelementptr {s.vector}, ptr %later{r}, i64 {v}")
        lines.append(f"  call void @llvm.prefetch.p0(ptr %later{r}.{v}, i32 1, i32 3, i32 1)")
    return "\n".join(lines)


def _chunks(s: Shape, sums: Sequence[tuple[int, int]], vectors: int) -> str:
    """Write the steps along k, and the prefetches beside them."""
    begun = [
        f"  %mid{r}.{v} = phi {s.vector} [ zeroinitializer, %chunks ], [ %new{r}.{v}, %chunk.end ]" for r, v in sums
    ]
    phis = [f"  %sum{r}.{v} = phi {s.vector} [ %mid{r}.{v}, %chunk.steps ], [ %new{r}.{v}, %step ]" for r, v in sums]
    newline = "\n"
    return f"""\
chunk.steps:
  %c = phi i64 [ 0, %chunks ], [ %c.next, %chunk.end ]
  %q.from = phi i64 [ 0, %chunks ], [ %q.next, %chunk.end ]
  %at.from = phi i64 [ 0, %chunks ], [ %at.next, %chunk.end ]
  %b.from = phi ptr [ %b, %chunks ], [ %b.next, %chunk.end ]
  %line = phi i64 [ %line.first, %chunks ], [ %line.next, %chunk.end ]
{newline.join(begun)}
  %c.next = add i64 %c, 1
  %q.far = add i64 %q.from, %chunk
  %q.stop = call i64 @llvm.smin.i64(i64 %q.far, i64 %depth)
{_fetched(s)}
  br label %step
step:
  %q = phi i64 [ %q.from, %chunk.steps ], [ %q.next, %step ]
  %at = phi i64 [ %at.from, %chunk.steps ], [ %at.next, %step ]
  %b.at = phi ptr [ %b.from, %chunk.steps ], [ %b.next, %step ]
{newline.join(phis)}
{_step(s, vectors)}
  %at.next = add i64 %at, %a_column
  %b.next = getelementptr {s.vector}, ptr %b.at, i64 {vectors}
  %q.next = add i64 %q, 1
  %q.more = icmp slt i64 %q.next, %q.stop
  br i1 %q.more, label %step, label %chunk.end
chunk.end:
  %c.more = icmp slt i64 %q.next, %depth
  br i1 %c.more, label %chunk.steps, label %steps.end"""


def _fetched(s: Shape) -> str:
    """Prefetch a line of the result, by columns of lines, and the lines read next, beginning with the line `line`."""
    lines = []
    for n in range(LINES):
        lines.append(f"  %line.at{n} = getelementptr i8, ptr %line.at, i64 {LINE * n}")
        lines.append(f"  call void @llvm.prefetch.p0(ptr %line.at{n}, i32 0, i32 2, i32 1)")
    newline = "\n"
    return f"""\
  %c.within = and i64 %c, 7
  %c.row = add i64 %i, %c.within
  %c.kept = call i64 @llvm.smin.i64(i64 %c.row, i64 %last)
  %c.row.skip = mul i64 %c.kept, %out_row
  %c.line = lshr i64 %c, 3
  %c.line.skip = mul i64 %c.line, {LINE // s.size}
  %c.skip = add i64 %c.row.skip, %c.line.skip
  %c.at = getelementptr {s.element}, ptr %out, i64 %c.skip
  call void @llvm.prefetch.p0(ptr %c.at, i32 1, i32 3, i32 1)
  %run = lshr i64 %line, %next.shift
  %run.kept = call i64 @llvm.smin.i64(i64 %run, i64 %next.last)
  %run.skip = mul i64 %run.kept, %next.step
  %line.within = and i64 %line, %next.within
  %line.bytes = mul i64 %line.within, {LINE}
  %line.skip = add i64 %run.skip, %line.bytes
  %line.at = getelementptr i8, ptr %next, i64 %line.skip
{newline.join(lines)}
  %line.next = add i64 %line, {LINES}"""


def _step(s: Shape, vectors: int) -> str:
    """Multiply one element of each row, spread over a vector, by the vectors of b, and add to the sums."""
    lines = []
    for v in range(vectors):
        lines.append(f"  %b.at{v} = getelementptr {s.vector}, ptr %b.at, i64 {v}")
        lines.append(f"  %b{v} = load {s.vector}, ptr %b.at{v}, align {s.lanes * s.size}")
    for r in range(s.rows):
        lines += [
            f"  %a.at{r} = getelementptr {s.element}, ptr %a{r}, i64 %at",
            f"  %one{r} = load {s.element}, ptr %a.at{r}, align {s.size}",
            f"  %lane{r} = insertelement {s.vector} poison, {s.element} %one{r}, i64 0",
            f"  %all{r} = shufflevector {s.vector} %lane{r}, {s.vector} poison, <{s.lanes} x i32> zeroinitializer",
        ]
        for v in range(vectors):
            lines += fused(s, f"%new{r}.{v}", f"%all{r}", f"%b{v}", f"%sum{r}.{v}")
    return "\n".join(lines)


def ends(s: Shape, sums: Sequence[tuple[int, int]], vectors: int) -> str:
    """Add the sums to the result, or store them. Rows beyond the last equal it, and are stored before it was read."""
    masked = f"<{s.lanes} x i1> %mask"
    at, old, new, stores = [], [], [], []
    for r in range(s.rows):
        at.append(f"  %out.skip{r} = mul i64 %kept{r}, %out_row")
        at.append(f"  %out{r} = getelementptr {s.element}, ptr %out, i64 %out.skip{r}")
    for r, v in sums:
        name, to = f"{r}.{v}", f"%out{r}.{v}"
        at.append(f"  {to} = getelementptr {s.vector}, ptr %out{r}, i64 {v}")
        if v == vectors - 1:
            given = f"ptr {to}, i32 {s.size}, {masked}"
            load = f"call {s.vector} @llvm.masked.load.{s.suffix}.p0({given}, {s.vector} zeroinitializer)"
            stores.append(f"  call void @llvm.masked.store.{s.suffix}.p0({s.vector} %all{name}, {given})")
        else:
            load = f"load {s.vector}, ptr {to}, align {s.size}"
            stores.append(f"  store {s.vector} %all{name}, ptr {to}, align {s.size}")
        old.append(f"  %old{name} = {load}")
        old.append(f"  %both{name} = fadd {s.vector} %old{name}, %new{name}")
        new.append(f"  %all{name} = phi {s.vector} [ %new{name}, %steps.end ], [ %both{name}, %more ]")
    newline = "\n"
    return f"""\
steps.end:
{newline.join(at)}
  br i1 %is.first, label %store, label %more
more:
{newline.join(old)}
  br label %store
store:
{newline.join([*new, *stores])}
  br label %block.end"""
