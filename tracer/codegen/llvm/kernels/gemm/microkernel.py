"""Matrix products by our own kernels, compiled once as a module: 8 rows by 3 vectors of sums in registers.

    void tracer_product_f32(ptr a, ptr b, ptr out, i64 m, i64 n, i64 k,
                            i64 a_row, i64 a_column, i64 b_row, i64 b_column, i64 out_row, ptr turn)
    out = a @ b, m and n and k positive; steps in elements. One step of b is 1, the steps of a are free. turn: the
    function that transposes tiles (see `emit.transposes`), if the columns of b are its rows in memory.

    void tracer_product_add_f32(...)    out += a @ b

The columns of b are taken in panels as wide as the sums and `DEPTH` deep. They are copied to be contiguous (Goto & van
de Geijn 2008, ACM Trans. Math. Softw. 34(3)); so are rows of a that several of them multiply. Elements of a are spread
over a vector. Every element of the result adds its products in the order of k, depth by depth. So its bits depend on
neither the panels nor the width of vectors. One thread of a Zen 5 at 256, 1024 and 2048 squared in f32, before rows of
a were copied: 220, 210 and 180 GF/s, transposed or not. OpenBLAS 0.3.30: 196, 186 with its kernels for AVX-512, 107,
111 with its kernels for AVX2. While a panel is multiplied, the memory read next is prefetched (see `panel`).
"""

from __future__ import annotations

from typing import Final

from tracer.codegen.llvm.kernels.gemm.kernel_loops import loop
from tracer.codegen.llvm.kernels.gemm.kernel_shapes import DEPTH, PARAMETERS, Shape, attributes, intrinsics, mask
from tracer.codegen.llvm.kernels.gemm.panel import LINE, LINES, NEXT, chunks_text, panel

_MIN_COPIED: Final = 192  # columns from which on rows of a are copied, to be contiguous; never in f64
_SKEW: Final = 64  # bytes between copied rows, or eight rows share the sets of the first cache
_FAR: Final = 2  # rows of a that are prefetched ahead of the copy


def products_text(kind: str, vector_bits: int | None = None) -> str:
    """Return the module of one dtype, for this machine or one like it with vectors of so many bits."""
    s = Shape(kind, vector_bits)
    panels = "\n".join(panel(s, vectors) for vectors in range(1, s.vectors + 1))
    return f"""\
{intrinsics(s)}
{panels}
{_product(s, kind)}
{attributes(s)}
"""


def _entry(name: str, *, adds: bool) -> str:
    """Return the product, or the one that is added to the result."""
    starts = "false" if adds else "true"
    return f"""\
define void @{name}({PARAMETERS}) #0 {{
  call void @product({PARAMETERS}, i1 {starts})
  ret void
}}"""


def _product(s: Shape, kind: str) -> str:
    """Return the loops over groups of columns, depths, rows and panels, which copy rows and panels at first use."""
    most, skew = s.group + s.width - s.lanes, _SKEW // s.size
    copied = max(s.high * (DEPTH + skew), DEPTH * (s.high + skew)) if most >= _MIN_COPIED else 1
    names = [f"panel{v}" for v in range(1, s.vectors + 1)]
    given = (
        "ptr %x, ptr %panel, ptr %out.at, i64 %rows, i64 %depth, i64 %x.row, i64 %x.column, i64 %out_row, "
        f"i64 %rest, i1 %is.first, {NEXT}"
    )
    calls = "\n".join(f"{name}:\n  call void @{name}({given})\n  br label %panel.end" for name in names)
    cases = " ".join(f"i64 {v}, label %panel{v}" for v in range(1, s.vectors))
    return f"""\
{_entry(f"tracer_product_{kind}", adds=False)}
{_entry(f"tracer_product_add_{kind}", adds=True)}
define internal void @product({PARAMETERS}, i1 %starts) #0 {{
entry:
  %packed = alloca [{DEPTH * most} x {s.element}], align 64
  %copied = alloca [{copied} x {s.element}], align 64
  %by.rows = icmp eq i64 %a_column, 1
  %by.columns = icmp eq i64 %a_row, 1
  %is.smooth = or i1 %by.rows, %by.columns
  %from.step = select i1 %by.rows, i64 %a_row, i64 %a_column
  %to.step = select i1 %by.rows, i64 {DEPTH + skew}, i64 {s.high + skew}
  %far = mul i64 %from.step, {_FAR}
  %is.plain = icmp eq i64 %b_column, 1
  %n.rest = urem i64 %n, {s.lanes}
  %n.is.whole = icmp eq i64 %n.rest, 0
  %is.clear = or i1 %is.plain, %n.is.whole
  br i1 %is.clear, label %group.loop, label %clear
{_cleared(s, most)}
group.loop:
  %g = phi i64 [ 0, %entry ], [ 0, %clear ], [ %g.next, %group.end ]
  %g.left = sub i64 %n, %g
  %is.last.group = icmp sle i64 %g.left, {most}
  %group = select i1 %is.last.group, i64 %g.left, i64 {s.group}
  %g.next = add i64 %g, %group
  %is.wide = icmp sge i64 %group, {_MIN_COPIED}
  %is.copied = and i1 %is.smooth, %is.wide
  br label %depth.loop
depth.loop:
  %p = phi i64 [ 0, %group.loop ], [ %p.next, %depth.end ]
  %p.left = sub i64 %k, %p
  %depth = call i64 @llvm.smin.i64(i64 %p.left, i64 {DEPTH})
{chunks_text()}
  %is.top = icmp eq i64 %p, 0
  %is.first = and i1 %is.top, %starts
  br label %rows.loop
rows.loop:
  %h = phi i64 [ 0, %depth.loop ], [ %h.next, %rows.end ]
  %h.left = sub i64 %m, %h
  %rows = call i64 @llvm.smin.i64(i64 %h.left, i64 {s.high})
  %is.new = icmp eq i64 %h, 0
  %a.row.skip = mul i64 %h, %a_row
  %a.column.skip = mul i64 %p, %a_column
  %a.skip = add i64 %a.row.skip, %a.column.skip
  %a.at = getelementptr {s.element}, ptr %a, i64 %a.skip
  %out.row.skip = mul i64 %h, %out_row
  %out.rows = getelementptr {s.element}, ptr %out, i64 %out.row.skip
{_rows_next(s)}
  br i1 %is.copied, label %a.copy, label %panel.loop
a.copy:
{_a_copied(s)}
  br label %panel.loop
panel.loop:
  %j = phi i64 [ %g, %rows.loop ], [ %g, %o.done ], [ %j.next, %panel.end ]
  %a.line = phi i64 [ 0, %rows.loop ], [ 0, %o.done ], [ %a.line.next, %panel.end ]
  %x = phi ptr [ %a.at, %rows.loop ], [ %copied, %o.done ], [ %x, %panel.end ]
  %x.row = phi i64 [ %a_row, %rows.loop ], [ %row.step, %o.done ], [ %x.row, %panel.end ]
  %x.column = phi i64 [ %a_column, %rows.loop ], [ %column.step, %o.done ], [ %x.column, %panel.end ]
{panel_text(s, s.element, s.element, "%g.next", "%out.rows")}
  %within = sub i64 %j, %g
  %panel.skip = mul i64 %within, %depth
  %panel = getelementptr {s.element}, ptr %packed, i64 %panel.skip
{_next(s)}
  br i1 %is.new, label %pack, label %multiply
{_panel_packed(s)}
multiply:
  switch i64 %vectors, label %panel{s.vectors} [ {cases} ]
{calls}
panel.end:
  %a.line.next = add i64 %a.line, %a.lines
  %j.next = add i64 %j, %columns
  %j.more = icmp slt i64 %j.next, %g.next
  br i1 %j.more, label %panel.loop, label %rows.end
rows.end:
  %h.next = add i64 %h, {s.high}
  %h.more = icmp slt i64 %h.next, %m
  br i1 %h.more, label %rows.loop, label %depth.end
depth.end:
  %p.next = add i64 %p, {DEPTH}
  %p.more = icmp slt i64 %p.next, %k
  br i1 %p.more, label %depth.loop, label %group.end
group.end:
  %g.more = icmp slt i64 %g.next, %n
  br i1 %g.more, label %group.loop, label %done
done:
  ret void
}}"""


def _cleared(s: Shape, most: int) -> str:
    """Clear the packed panels once, so that lanes beyond the last column stay zero."""
    return f"""\
clear:
  %deepest = call i64 @llvm.smin.i64(i64 %k, i64 {DEPTH})
  %n.up = add i64 %n, {s.lanes - 1}
  %n.whole = and i64 %n.up, {-s.lanes}
  %widest = call i64 @llvm.smin.i64(i64 %n.whole, i64 {most})
  %cleared = mul i64 %deepest, %widest
  %cleared.bytes = mul i64 %cleared, {s.size}
  call void @llvm.memset.p0.i64(ptr align 64 %packed, i8 0, i64 %cleared.bytes, i1 false)
  br label %group.loop"""


def _panel_packed(s: Shape) -> str:
    """Copy a panel of b to be contiguous, transposed if its columns are rows in memory."""
    return f"""\
pack:
  br i1 %is.plain, label %copy, label %turned
turned:
  call void %turn(ptr %panel, i64 %stride, ptr %b.at, i64 %b_column, i64 %depth, i64 %columns)
  br label %multiply
copy:
  %q = phi i64 [ 0, %pack ], [ %q.next, %copy.row.end ]
  %from.skip = mul i64 %q, %b_row
  %from = getelementptr {s.element}, ptr %b.at, i64 %from.skip
  %to.skip = mul i64 %q, %stride
  %to = getelementptr {s.element}, ptr %panel, i64 %to.skip
  br label %copy.row
copy.row:
  %c = phi i64 [ 0, %copy ], [ %c.next, %copy.full ]
  %from.c = getelementptr {s.element}, ptr %from, i64 %c
  %to.c = getelementptr {s.element}, ptr %to, i64 %c
  %c.is.full = icmp slt i64 %c, %full
  br i1 %c.is.full, label %copy.full, label %copy.rest
copy.full:
  %whole = load {s.vector}, ptr %from.c, align {s.size}
  store {s.vector} %whole, ptr %to.c, align {s.lanes * s.size}
  %c.next = add i64 %c, {s.lanes}
  br label %copy.row
copy.rest:
{mask(s, "%rest")}
  %some = call {s.vector} @llvm.masked.load.{s.suffix}.p0(ptr %from.c, i32 {s.size}, <{s.lanes} x i1> %mask, \
{s.vector} zeroinitializer)
  store {s.vector} %some, ptr %to.c, align {s.lanes * s.size}
  br label %copy.row.end
copy.row.end:
  %q.next = add i64 %q, 1
  %q.more = icmp slt i64 %q.next, %depth
  br i1 %q.more, label %copy, label %multiply"""


def _rows_next(s: Shape) -> str:
    """Write the rows of a that are read next: below, or at the next depth; one of them where no step of a is 1."""
    run, runs = DEPTH * s.size // LINE, -(-s.high * s.size // LINE)  # lines of a row, and of a column
    return f"""\
  %below = add i64 %h, {s.high}
  %is.below = icmp slt i64 %below, %m
  %deeper = add i64 %p, {DEPTH}
  %is.deeper = icmp slt i64 %deeper, %k
  %deeper.or.first = select i1 %is.deeper, i64 %deeper, i64 0
  %then.h = select i1 %is.below, i64 %below, i64 0
  %then.p = select i1 %is.below, i64 %p, i64 %deeper.or.first
  %then.row.skip = mul i64 %then.h, %a_row
  %then.column.skip = mul i64 %then.p, %a_column
  %then.skip = add i64 %then.row.skip, %then.column.skip
  %then.a = getelementptr {s.element}, ptr %a, i64 %then.skip
  %then.rows.left = sub i64 %m, %then.h
  %then.rows = call i64 @llvm.smin.i64(i64 %then.rows.left, i64 {s.high})
  %then.depth.left = sub i64 %k, %then.p
  %then.depth = call i64 @llvm.smin.i64(i64 %then.depth.left, i64 {DEPTH})
  %then.runs = select i1 %by.rows, i64 %then.rows, i64 %then.depth
  %then.last = sub i64 %then.runs, 1
  %a.last = select i1 %is.smooth, i64 %then.last, i64 0
  %a.step = mul i64 %from.step, {s.size}
  %a.shift = select i1 %by.rows, i64 {_bits(run)}, i64 {_bits(runs)}
  %blocks.up = add i64 %rows, {s.rows - 1}
  %blocks = udiv i64 %blocks.up, {s.rows}"""


def _next(s: Shape) -> str:
    """Write the memory to prefetch while a panel is multiplied.

    It is the next panel of b if it is to be copied, or rows of a.
    """
    run = DEPTH * s.size // LINE
    return f"""\
  %beside = add i64 %j, %columns
  %is.beside = icmp slt i64 %beside, %g.next
  %b.is.next = and i1 %is.new, %is.beside
  %b.next.skip = mul i64 %columns, %b_column
  %b.next = getelementptr {s.element}, ptr %b.at, i64 %b.next.skip
  %beside.left = sub i64 %g.next, %beside
  %beside.columns = call i64 @llvm.smin.i64(i64 %beside.left, i64 {s.width})
  %b.runs = select i1 %is.plain, i64 %depth, i64 %beside.columns
  %b.last = sub i64 %b.runs, 1
  %b.run = select i1 %is.plain, i64 %b_row, i64 %b_column
  %b.step = mul i64 %b.run, {s.size}
  %b.shift = select i1 %is.plain, i64 {_bits(LINES)}, i64 {_bits(run)}
  %next = select i1 %b.is.next, ptr %b.next, ptr %then.a
  %next.step = select i1 %b.is.next, i64 %b.step, i64 %a.step
  %next.shift = select i1 %b.is.next, i64 %b.shift, i64 %a.shift
  %next.last = select i1 %b.is.next, i64 %b.last, i64 %a.last
  %next.line = select i1 %b.is.next, i64 0, i64 %a.line
  %lines.block = mul i64 %chunk.count, {LINES}
  %lines = mul i64 %lines.block, %blocks
  %a.lines = select i1 %b.is.next, i64 0, i64 %lines"""


def _bits(count: int) -> int:
    """Return the bits of an index up to a count."""
    return (count - 1).bit_length()


def _a_copied(s: Shape) -> str:
    """Copy rows of a, or columns if these are contiguous, so that they follow each other."""

    def element(kind: str, i: str, ahead: str = "") -> str:
        return f"""\
  %{i}.from = getelementptr {s.element}, ptr %o.from, i64 %{i}
  %{i}.to = getelementptr {s.element}, ptr %o.to, i64 %{i}
  %{i}.value = load {kind}, ptr %{i}.from, align {s.size}
  store {kind} %{i}.value, ptr %{i}.to, align {s.size}{ahead}"""

    ahead = f"""
  %v.ahead = getelementptr {s.element}, ptr %v.from, i64 %far
  call void @llvm.prefetch.p0(ptr %v.ahead, i32 0, i32 3, i32 1)"""
    row = f"""\
  %o.from.skip = mul i64 %o, %from.step
  %o.from = getelementptr {s.element}, ptr %a.at, i64 %o.from.skip
  %o.to.skip = mul i64 %o, %to.step
  %o.to = getelementptr {s.element}, ptr %copied, i64 %o.to.skip
{loop("v", "0", "%inner.full", s.lanes, element(s.vector, "v", ahead))}
{loop("w", "%inner.full", "%inner", 1, element(s.element, "w"))}"""
    return f"""\
  %outer = select i1 %by.rows, i64 %rows, i64 %depth
  %inner = select i1 %by.rows, i64 %depth, i64 %rows
  %row.step = select i1 %by.rows, i64 %to.step, i64 1
  %column.step = select i1 %by.rows, i64 1, i64 %to.step
  %inner.rest = urem i64 %inner, {s.lanes}
  %inner.full = sub i64 %inner, %inner.rest
{loop("o", "0", "%outer", 1, row)}"""


def panel_text(s: Shape, b_element: str, out_element: str, end: str = "%n", out: str = "%out") -> str:
    """Write the panel's columns from %j on: how many vectors, the last one's part, and where b and out begin.

    Where three vectors are a panel, the last four are two and two. One alone has too few sums for the machine's units.
    """
    fit = f"%fit = add i64 0, {s.width}"
    if s.vectors == 3:
        fit = f"""\
%is.even = icmp sle i64 %j.left, {4 * s.lanes}
  %is.more = icmp sgt i64 %j.left, {s.width}
  %is.four = and i1 %is.even, %is.more
  %fit = select i1 %is.four, i64 {2 * s.lanes}, i64 {s.width}"""
    return f"""\
  %j.left = sub i64 {end}, %j
  {fit}
  %columns = call i64 @llvm.smin.i64(i64 %j.left, i64 %fit)
  %columns.up = add i64 %columns, {s.lanes - 1}
  %vectors = udiv i64 %columns.up, {s.lanes}
  %before = sub i64 %vectors, 1
  %full = mul i64 %before, {s.lanes}
  %rest = sub i64 %columns, %full
  %stride = mul i64 %vectors, {s.lanes}
  %b.row.skip = mul i64 %p, %b_row
  %b.column.skip = mul i64 %j, %b_column
  %b.skip = add i64 %b.row.skip, %b.column.skip
  %b.at = getelementptr {b_element}, ptr %b, i64 %b.skip
  %out.at = getelementptr {out_element}, ptr {out}, i64 %j"""
