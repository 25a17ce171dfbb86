"""Products of bf16 matrices by AMX, in tiles of 16 x 16 sums.

    void tracer_product_bf16(...)    as in `bf16_dot`, on machines with tiles

A block of the result is 32 x 32 sums in four tiles, which multiply two tiles of a by two of b. Blocks at the edges are
smaller, and so are their tiles: no memory outside a matrix is read or written. Both operands are copied, `DEPTH` deep,
with zeros up to a multiple of 32. Pairs of b's rows are interleaved (Intel calls the layout VNNI), in panels of 32
columns. Rows of a are copied in blocks of 32 rows by 32 elements, so that tiles are read sequentially however far apart
rows are. A panel of b stays in the first cache while `ROWS` rows of a pass by, which stay in the second. Sums
accumulate in the result from depth to depth. Subnormals count as zeros. Each call configures and releases the tiles,
which belong to a thread.

Instructions and layout: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, chapter 18.
"""

from __future__ import annotations

from typing import Final

from tracer.codegen.llvm.kernels.gemm.kernel_shapes import PARAMETERS

DEPTH: Final = 512  # elements of k, 32 KB of a panel
COLUMNS: Final = 256  # copied before any is multiplied
ROWS: Final = 128
_STEP: Final = 32  # elements of k in a tile
_WIDE: Final = "<32 x i16>"
_CONFIGURATION: Final = "\\01" + "\\00" * 15 + "\\40\\00" * 8 + "\\00" * 16 + "\\10" * 8 + "\\00" * 8
"""Palette 1: eight tiles of 16 rows of 64 bytes."""
_BLOCKS: Final = ((1, 1), (1, 2), (2, 1), (2, 2))
"""Tiles of sums in a block, down and across."""


def tile_products_text() -> str:
    """Return the module."""
    blocks = "\n".join(_block(*tiles) for tiles in _BLOCKS)
    return f"""\
@tile.configuration = private constant [64 x i8] c"{_CONFIGURATION}", align 64
@no.row = private constant {_WIDE} zeroinitializer, align 64
declare void @llvm.x86.ldtilecfg(ptr)
declare void @llvm.x86.tilerelease()
declare void @llvm.x86.tilezero(i8)
declare void @llvm.x86.tileloadd64(i8, ptr, i64)
declare void @llvm.x86.tdpbf16ps(i8, i8, i8)
declare void @llvm.x86.tilestored64(i8, ptr, i64)
declare {_WIDE} @llvm.masked.load.v32i16.p0(ptr, i32, <32 x i1>, {_WIDE})
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)
{_CONFIGURE}
{_pairs()}
{_TURNED}
{_ROWS_OF_A}
{blocks}
{_product()}
attributes #0 = {{ nounwind "prefer-vector-width"="512" }}
"""


def _product() -> str:
    """Return the loops over columns, depths, rows, panels and blocks."""
    calls = "\n".join(
        f"block{r}{c}:\n  call void @block{r}{c}(ptr %a.block, ptr %panel, ptr %out.block, i64 %filled, i64 %out_row, "
        f"i1 %is.first)\n  br label %block.end"
        for r, c in _BLOCKS
    )
    cases = " ".join(f"i64 {2 * r + c - 3}, label %block{r}{c}" for r, c in _BLOCKS[:-1])
    return f"""\
define void @tracer_product_bf16({PARAMETERS}) #0 {{
entry:
  %packed = alloca [{DEPTH // 2 * COLUMNS} x i32], align 64
  %rows.packed = alloca [{ROWS * DEPTH} x i16], align 64
  %configuration = alloca [64 x i8], align 64
  call void @llvm.memcpy.p0.p0.i64(ptr %configuration, ptr @tile.configuration, i64 64, i1 false)
  call void @llvm.x86.ldtilecfg(ptr %configuration)
  %configured = alloca i64, align 8
  store i64 {32 * 64 + 32}, ptr %configured, align 8
  %is.plain = icmp eq i64 %b_column, 1
  br label %columns.loop
columns.loop:
  %g = phi i64 [ 0, %entry ], [ %g.next, %columns.end ]
  %g.left = sub i64 %n, %g
  %columns = call i64 @llvm.smin.i64(i64 %g.left, i64 {COLUMNS})
  br label %depth.loop
depth.loop:
  %p = phi i64 [ 0, %columns.loop ], [ %p.next, %depth.end ]
  %p.left = sub i64 %k, %p
  %depth = call i64 @llvm.smin.i64(i64 %p.left, i64 {DEPTH})
  %is.first = icmp eq i64 %p, 0
  %depth.up = add i64 %depth, {_STEP - 1}
  %filled = and i64 %depth.up, {-_STEP}
  %steps = lshr i64 %filled, 1
  %b.row.skip = mul i64 %p, %b_row
  %b.column.skip = mul i64 %g, %b_column
  %b.skip = add i64 %b.row.skip, %b.column.skip
  %b.at = getelementptr i16, ptr %b, i64 %b.skip
  br i1 %is.plain, label %plain, label %turned
plain:
  call void @pairs(ptr %b.at, ptr %packed, i64 %columns, i64 %depth, i64 %steps, i64 %b_row)
  br label %rows.loop
turned:
  call void @turned(ptr %b.at, ptr %packed, i64 %columns, i64 %depth, i64 %steps, i64 %b_column, ptr %turn)
  br label %rows.loop
rows.loop:
  %h = phi i64 [ 0, %plain ], [ 0, %turned ], [ %h.next, %rows.end ]
  %h.left = sub i64 %m, %h
  %rows = call i64 @llvm.smin.i64(i64 %h.left, i64 {ROWS})
  %a.row.skip = mul i64 %h, %a_row
  %a.skip = add i64 %a.row.skip, %p
  %a.at = getelementptr i16, ptr %a, i64 %a.skip
  call void @rows(ptr %a.at, ptr %rows.packed, i64 %rows, i64 %depth, i64 %filled, i64 %a_row)
  br label %panel.loop
panel.loop:
  %j = phi i64 [ 0, %rows.loop ], [ %j.next, %panel.end ]
  %j.left = sub i64 %columns, %j
  %width = call i64 @llvm.smin.i64(i64 %j.left, i64 32)
  %panel.skip = mul i64 %j, %steps
  %panel = getelementptr i32, ptr %packed, i64 %panel.skip
  %column = add i64 %g, %j
  %out.panel = getelementptr float, ptr %out, i64 %column
  br label %block.loop
block.loop:
  %i = phi i64 [ 0, %panel.loop ], [ %i.next, %block.end ]
  %i.left = sub i64 %rows, %i
  %height = call i64 @llvm.smin.i64(i64 %i.left, i64 32)
  %i.skip = mul i64 %i, %filled
  %a.block = getelementptr i16, ptr %rows.packed, i64 %i.skip
  %row = add i64 %h, %i
  %out.skip = mul i64 %row, %out_row
  %out.block = getelementptr float, ptr %out.panel, i64 %out.skip
  %height.word = shl i64 %height, 6
  %wanted = add i64 %height.word, %width
  %found = load i64, ptr %configured, align 8
  %is.configured = icmp eq i64 %wanted, %found
  br i1 %is.configured, label %multiply, label %configure
configure:
  call void @configure(ptr %configuration, i64 %height, i64 %width)
  store i64 %wanted, ptr %configured, align 8
  br label %multiply
multiply:
  %is.tall = icmp sgt i64 %height, 16
  %is.wide = icmp sgt i64 %width, 16
  %tall = select i1 %is.tall, i64 2, i64 0
  %form = select i1 %is.wide, i64 1, i64 0
  %tiles = add i64 %tall, %form
  switch i64 %tiles, label %block22 [ {cases} ]
{calls}
block.end:
  %i.next = add i64 %i, 32
  %i.more = icmp slt i64 %i.next, %rows
  br i1 %i.more, label %block.loop, label %panel.end
panel.end:
  %j.next = add i64 %j, 32
  %j.more = icmp slt i64 %j.next, %columns
  br i1 %j.more, label %panel.loop, label %rows.end
rows.end:
  %h.next = add i64 %h, {ROWS}
  %h.more = icmp slt i64 %h.next, %m
  br i1 %h.more, label %rows.loop, label %depth.end
depth.end:
  %p.next = add i64 %p, {DEPTH}
  %p.more = icmp slt i64 %p.next, %k
  br i1 %p.more, label %depth.loop, label %columns.end
columns.end:
  %g.next = add i64 %g, {COLUMNS}
  %g.more = icmp slt i64 %g.next, %n
  br i1 %g.more, label %columns.loop, label %done
done:
  call void @llvm.x86.tilerelease()
  ret void
}}"""


def _block(down: int, across: int) -> str:
    """Return the function for up to 32 x 32 sums of products in `down` by `across` tiles, new or accumulated."""
    sums = [(2 * r + c, r, c) for r in range(down) for c in range(across)]
    places = [f"  %out{t} = getelementptr float, ptr %out.row{r}, i64 {16 * c}" for t, r, c in sums]
    zeros = [f"  call void @llvm.x86.tilezero(i8 {t})" for t, _, _ in sums]
    loads = [f"  call void @llvm.x86.tileloadd64(i8 {t}, ptr %out{t}, i64 %out.stride)" for t, _, _ in sums]
    stores = [f"  call void @llvm.x86.tilestored64(i8 {t}, ptr %out{t}, i64 %out.stride)" for t, _, _ in sums]
    newline = "\n"
    return f"""\
define internal void @block{down}{across}(ptr %a, ptr %b, ptr %out, i64 %filled, i64 %out_row, i1 %is.first) #0 {{
entry:
  %out.stride = shl i64 %out_row, 2
  %out.half = shl i64 %out_row, 4
  %out.row0 = getelementptr float, ptr %out, i64 0
  %out.row1 = getelementptr float, ptr %out, i64 %out.half
{newline.join(places)}
  br i1 %is.first, label %zero, label %more
zero:
{newline.join(zeros)}
  br label %step
more:
{newline.join(loads)}
  br label %step
step:
  %q = phi i64 [ 0, %zero ], [ 0, %more ], [ %q.next, %step ]
  %a.skip = shl i64 %q, 5
  %a.at = getelementptr i16, ptr %a, i64 %a.skip
  %b.skip = shl i64 %q, 4
  %b.at = getelementptr i32, ptr %b, i64 %b.skip
{newline.join(_multiply(down, across))}
  %q.next = add i64 %q, {_STEP}
  %q.more = icmp slt i64 %q.next, %filled
  br i1 %q.more, label %step, label %store
store:
{newline.join(stores)}
  ret void
}}"""


def _multiply(down: int, across: int) -> list[str]:
    """Add 32 products to every sum."""
    lines = ["  call void @llvm.x86.tileloadd64(i8 4, ptr %a.at, i64 64)"]
    for c in range(across):
        lines += [
            f"  %b{c} = getelementptr i32, ptr %b.at, i64 {16 * c}",
            f"  call void @llvm.x86.tileloadd64(i8 {6 + c}, ptr %b{c}, i64 128)",
            f"  call void @llvm.x86.tdpbf16ps(i8 {c}, i8 4, i8 {6 + c})",
        ]
    if down == 2:
        lines += [
            f"  %a.lower = getelementptr i16, ptr %a.at, i64 {16 * _STEP}",
            "  call void @llvm.x86.tileloadd64(i8 5, ptr %a.lower, i64 64)",
            *(f"  call void @llvm.x86.tdpbf16ps(i8 {2 + c}, i8 5, i8 {6 + c})" for c in range(across)),
        ]
    return lines


def _configure() -> str:
    """Return the function that configures tiles for a block's rows and columns; unused tiles are of minimal size."""
    rows = ("%upper", "%upper", "%lower", "%lower", "%upper", "%lower", "16", "16")
    widths = ("%left", "%right", "%left", "%right", "16", "16", "%left", "%right")
    lines = []
    for tile, (count, width) in enumerate(zip(rows, widths, strict=True)):
        lines += [
            f"  %rows{tile} = trunc i64 {count} to i8",
            f"  %rows.at{tile} = getelementptr i8, ptr %configuration, i64 {48 + tile}",
            f"  store i8 %rows{tile}, ptr %rows.at{tile}, align 1",
            f"  %bytes{tile} = shl i64 {width}, 2",
            f"  %short{tile} = trunc i64 %bytes{tile} to i16",
            f"  %bytes.at{tile} = getelementptr i8, ptr %configuration, i64 {16 + 2 * tile}",
            f"  store i16 %short{tile}, ptr %bytes.at{tile}, align 2",
        ]
    newline = "\n"
    return f"""\
define internal void @configure(ptr %configuration, i64 %height, i64 %width) #0 {{
  %upper = call i64 @llvm.smin.i64(i64 %height, i64 16)
  %below = sub i64 %height, 16
  %lower = call i64 @llvm.smax.i64(i64 %below, i64 1)
  %left = call i64 @llvm.smin.i64(i64 %width, i64 16)
  %beside = sub i64 %width, 16
  %right = call i64 @llvm.smax.i64(i64 %beside, i64 1)
{newline.join(lines)}
  call void @llvm.x86.ldtilecfg(ptr %configuration)
  ret void
}}"""


_CONFIGURE: Final = _configure()


def _masked(left: str) -> str:
    """Write `%mask`: the first `left` of 32 elements, or all."""
    numbers = ", ".join(f"i16 {lane}" for lane in range(32))
    return f"""\
  %kept = call i64 @llvm.smin.i64(i64 {left}, i64 32)
  %count = trunc i64 %kept to i16
  %count.one = insertelement {_WIDE} poison, i16 %count, i64 0
  %count.all = shufflevector {_WIDE} %count.one, {_WIDE} poison, <32 x i32> zeroinitializer
  %mask = icmp ult {_WIDE} <{numbers}>, %count.all"""


def _pairs() -> str:
    """Return the function that interleaves pairs of b's rows, zeros beyond the depth. It never reads past the last
    column.
    """
    low, high = (", ".join(f"i32 {x}" for lane in range(at, at + 16) for x in (lane, 32 + lane)) for at in (0, 16))
    return f"""\
define internal void @pairs(ptr %b, ptr %packed, i64 %columns, i64 %depth, i64 %steps, i64 %b_row) #0 {{
entry:
  br label %pair
pair:
  %q = phi i64 [ 0, %entry ], [ %q.next, %pair.end ]
  %even = shl i64 %q, 1
  %odd = or i64 %even, 1
  %has.even = icmp slt i64 %even, %depth
  %has.odd = icmp slt i64 %odd, %depth
  %even.skip = mul i64 %even, %b_row
  %even.row = getelementptr i16, ptr %b, i64 %even.skip
  %odd.row = getelementptr i16, ptr %even.row, i64 %b_row
  %to.skip = shl i64 %q, 5
  %to = getelementptr i32, ptr %packed, i64 %to.skip
  br label %panel
panel:
  %j = phi i64 [ 0, %pair ], [ %j.next, %panel ]
  %left = sub i64 %columns, %j
{_masked("%left")}
  %even.j = getelementptr i16, ptr %even.row, i64 %j
  %odd.j = getelementptr i16, ptr %odd.row, i64 %j
  %even.at = select i1 %has.even, ptr %even.j, ptr @no.row
  %odd.at = select i1 %has.odd, ptr %odd.j, ptr @no.row
  %evens = call {_WIDE} @llvm.masked.load.v32i16.p0(ptr %even.at, i32 2, <32 x i1> %mask, {_WIDE} zeroinitializer)
  %odds = call {_WIDE} @llvm.masked.load.v32i16.p0(ptr %odd.at, i32 2, <32 x i1> %mask, {_WIDE} zeroinitializer)
  %low = shufflevector {_WIDE} %evens, {_WIDE} %odds, <32 x i32> <{low}>
  %high = shufflevector {_WIDE} %evens, {_WIDE} %odds, <32 x i32> <{high}>
  %panel.skip = mul i64 %j, %steps
  %low.at = getelementptr i32, ptr %to, i64 %panel.skip
  %high.at = getelementptr i32, ptr %low.at, i64 16
  store {_WIDE} %low, ptr %low.at, align 64
  store {_WIDE} %high, ptr %high.at, align 64
  %j.next = add i64 %j, 32
  %j.more = icmp slt i64 %j.next, %columns
  br i1 %j.more, label %panel, label %pair.end
pair.end:
  %q.next = add i64 %q, 1
  %q.more = icmp slt i64 %q.next, %steps
  br i1 %q.more, label %pair, label %done
done:
  ret void
}}"""


_TURNED: Final = """\
define internal void @turned(ptr %b, ptr %packed, i64 %columns, i64 %depth, i64 %steps, i64 %b_column, ptr %turn) #0 {
entry:
  %pairs = lshr i64 %depth, 1
  %pair.step = lshr i64 %b_column, 1
  %beyond = sub i64 %steps, %pairs
  %bytes = shl i64 %beyond, 7
  %end.skip = shl i64 %pairs, 5
  br label %panel
panel:
  %j = phi i64 [ 0, %entry ], [ %j.next, %panel ]
  %left = sub i64 %columns, %j
  %width = call i64 @llvm.smin.i64(i64 %left, i64 32)
  %panel.skip = mul i64 %j, %steps
  %to = getelementptr i32, ptr %packed, i64 %panel.skip
  %end = getelementptr i32, ptr %to, i64 %end.skip
  call void @llvm.memset.p0.i64(ptr align 64 %end, i8 0, i64 %bytes, i1 false)
  %from.skip = mul i64 %j, %b_column
  %from = getelementptr i16, ptr %b, i64 %from.skip
  call void %turn(ptr %to, i64 32, ptr %from, i64 %pair.step, i64 %pairs, i64 %width)
  %j.next = add i64 %j, 32
  %j.more = icmp slt i64 %j.next, %columns
  br i1 %j.more, label %panel, label %done
done:
  ret void
}"""


def _copied(name: str, at: str) -> str:
    """Copy 32 elements of a row, from `%from` and `at` on, all in bounds."""
    return f"""\
  %from{name} = getelementptr i16, ptr %from, i64 {at}
  %skip{name} = shl i64 {at}, 5
  %to{name} = getelementptr i16, ptr %to, i64 %skip{name}
  %whole{name} = load {_WIDE}, ptr %from{name}, align 2
  store {_WIDE} %whole{name}, ptr %to{name}, align 64"""


def _several() -> str:
    """Copy four times as many."""
    places = [f"  %q{n} = add i64 %q, {n * _STEP}" for n in range(4)]
    return "\n".join([*places, *(_copied(str(n), f"%q{n}") for n in range(4))])


_ROWS_OF_A: Final = f"""\
define internal void @rows(ptr %a, ptr %packed, i64 %rows, i64 %depth, i64 %filled, i64 %a_row) #0 {{
entry:
  %most = and i64 %depth, {-4 * _STEP}
  %whole = and i64 %depth, {-_STEP}
  %left = sub i64 %depth, %whole
{_masked("%left")}
  br label %row
row:
  %i = phi i64 [ 0, %entry ], [ %i.next, %row.end ]
  %from.skip = mul i64 %i, %a_row
  %from = getelementptr i16, ptr %a, i64 %from.skip
  %block = and i64 %i, -32
  %within = and i64 %i, 31
  %block.skip = mul i64 %block, %filled
  %row.skip = mul i64 %within, {_STEP}
  %to.skip = add i64 %block.skip, %row.skip
  %to = getelementptr i16, ptr %packed, i64 %to.skip
  br label %four
four:
  %q = phi i64 [ 0, %row ], [ %q.next, %four.on ]
  %q.more = icmp slt i64 %q, %most
  br i1 %q.more, label %four.on, label %one
four.on:
{_several()}
  %q.next = add i64 %q, {4 * _STEP}
  br label %four
one:
  %s = phi i64 [ %q, %four ], [ %s.next, %one.on ]
  %s.more = icmp slt i64 %s, %whole
  br i1 %s.more, label %one.on, label %ones.end
one.on:
{_copied(".one", "%s")}
  %s.next = add i64 %s, {_STEP}
  br label %one
ones.end:
  %is.whole = icmp eq i64 %left, 0
  br i1 %is.whole, label %row.end, label %some
some:
  %from.last = getelementptr i16, ptr %from, i64 %whole
  %last.skip = shl i64 %whole, 5
  %to.last = getelementptr i16, ptr %to, i64 %last.skip
  %last = call {_WIDE} @llvm.masked.load.v32i16.p0(ptr %from.last, i32 2, <32 x i1> %mask, {_WIDE} zeroinitializer)
  store {_WIDE} %last, ptr %to.last, align 64
  br label %row.end
row.end:
  %i.next = add i64 %i, 1
  %i.more = icmp slt i64 %i.next, %rows
  br i1 %i.more, label %row, label %done
done:
  ret void
}}"""
