"""Products of bf16 matrices with sums in f32: pairs of k in a register, by the machine's products of pairs.

    void tracer_product_bf16(ptr a, ptr b, ptr out, i64 m, i64 n, i64 k,
                             i64 a_row, i64 a_column, i64 b_row, i64 b_column, i64 out_row, ptr turn)
    out = a @ b, out in f32; steps in elements. One step of b is 1; a_column is 1; k is even where b_row is 1.
    turn: as in `microkernel`, for elements as large as pairs.

As `microkernel`, but pairs of b's rows are interleaved when they are copied (Intel calls the layout VNNI), `DEPTH`
deep; pairs of a are read in place. AVX512-BF16's dot products of pairs flush subnormals to zero. One thread of a Zen 5
reaches 372 and 392 GF/s at 256 and 512 squared; f32 has 204 and 193. Machines with tiles use them (`bf16_amx`).
Machines with neither convert their matrices. Two fused multiplications of both halves of each pair took three times as
long.
"""

from __future__ import annotations

from typing import Final

from tracer.codegen.llvm.kernels.gemm.amx import in_use
from tracer.codegen.llvm.kernels.gemm.bf16_amx import tile_products_text
from tracer.codegen.llvm.kernels.gemm.kernel_shapes import Shape, mask
from tracer.codegen.llvm.kernels.gemm.microkernel import panel_text
from tracer.codegen.llvm.kernels.gemm.panel import ends, rows_of
from tracer.codegen.llvm.toolchain.target import features

DEPTH: Final = 1024  # of a panel of b, in elements: as many bytes as one of f32
_PAIRS: Final = "<32 x bfloat>"


def short_products_text() -> str:
    """Return the module of this machine, which has products of pairs, in tiles or without.

    `Machine.tiles` tells the schedule which. If a first product in tiles turns out wrong, this is asked again.
    """
    return tile_products_text() if in_use() else dots_text()


def dots_text() -> str:
    """Return the module of a machine with products of pairs."""
    s = Shape("f32", None, 512)
    panels = "\n".join(_panel(s, vectors) for vectors in range(1, s.vectors + 1))
    return f"""\
@no.row = private constant [{s.lanes} x i16] zeroinitializer, align 64
declare {s.vector} @llvm.x86.avx512bf16.dpbf16ps.512({s.vector}, {_PAIRS}, {_PAIRS})
declare {s.vector} @llvm.masked.load.{s.suffix}.p0(ptr, i32, <{s.lanes} x i1>, {s.vector})
declare void @llvm.masked.store.{s.suffix}.p0({s.vector}, ptr, i32, <{s.lanes} x i1>)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare i64 @llvm.smin.i64(i64, i64)
{panels}
{_product(s)}
attributes #0 = {{ nounwind "prefer-vector-width"="{s.bits}" }}
"""


def has_dots() -> bool:
    """Whether the machine has AVX512-BF16's products of pairs."""
    return dict(features()).get("avx512bf16", False)


def _product(s: Shape) -> str:
    """Return the loops over depths and panels."""
    given = "ptr %a.at, ptr %packed, ptr %out.at, i64 %m, i64 %depth, i64 %a_row, i64 %out_row, i64 %rest, i1 %is.first"
    calls = "\n".join(
        f"pairs{v}:\n  call void @pairs{v}({given})\n  br label %panel.end" for v in range(1, s.vectors + 1)
    )
    cases = " ".join(f"i64 {v}, label %pairs{v}" for v in range(1, s.vectors))
    return f"""\
define void @tracer_product_bf16(ptr %a, ptr %b, ptr %out, i64 %m, i64 %n, i64 %k, i64 %a_row, i64 %a_column, \
i64 %b_row, i64 %b_column, i64 %out_row, ptr %turn) #0 {{
entry:
  %packed = alloca [{DEPTH // 2 * s.width} x i32], align 64
  %is.plain = icmp eq i64 %b_column, 1
  %pair.step = lshr i64 %b_column, 1
  br i1 %is.plain, label %depth.loop, label %clear
clear:
  %deepest = call i64 @llvm.smin.i64(i64 %k, i64 {DEPTH})
  %cleared = mul i64 %deepest, {s.width * 2}
  call void @llvm.memset.p0.i64(ptr align 64 %packed, i8 0, i64 %cleared, i1 false)
  br label %depth.loop
depth.loop:
  %p = phi i64 [ 0, %entry ], [ 0, %clear ], [ %p.next, %depth.end ]
  %p.left = sub i64 %k, %p
  %depth = call i64 @llvm.smin.i64(i64 %p.left, i64 {DEPTH})
  %depth.up = add i64 %depth, 1
  %steps = lshr i64 %depth.up, 1
  %pairs = lshr i64 %depth, 1
  %is.first = icmp eq i64 %p, 0
  %a.at = getelementptr i16, ptr %a, i64 %p
  br label %panel.loop
panel.loop:
  %j = phi i64 [ 0, %depth.loop ], [ %j.next, %panel.end ]
{panel_text(s, "i16", "float")}
  br i1 %is.plain, label %copy, label %turned
turned:
  call void %turn(ptr %packed, i64 %stride, ptr %b.at, i64 %pair.step, i64 %pairs, i64 %columns)
  br label %multiply
{_pairs_copied(s)}
multiply:
  switch i64 %vectors, label %pairs{s.vectors} [ {cases} ]
{calls}
panel.end:
  %j.next = add i64 %j, %columns
  %j.more = icmp slt i64 %j.next, %n
  br i1 %j.more, label %panel.loop, label %depth.end
depth.end:
  %p.next = add i64 %p, {DEPTH}
  %p.more = icmp slt i64 %p.next, %k
  br i1 %p.more, label %depth.loop, label %done
done:
  ret void
}}"""


def _interleaved(lanes: int) -> str:
    numbers = ", ".join(f"i32 {x}" for lane in range(lanes) for x in (lane, lanes + lane))
    return f"<{2 * lanes} x i32> <{numbers}>"


def _pairs_copied(s: Shape) -> str:
    """Copy a panel of b in interleaved pairs of rows, zeros for a row beyond the depth."""
    return f"""\
copy:
  %q = phi i64 [ 0, %panel.loop ], [ %q.next, %copy.row.end ]
  %row.number = shl i64 %q, 1
  %even.skip = mul i64 %row.number, %b_row
  %even = getelementptr i16, ptr %b.at, i64 %even.skip
  %next.row = getelementptr i16, ptr %even, i64 %b_row
  %is.pair = icmp slt i64 %q, %pairs
  %to.skip = mul i64 %q, %stride
  %to = getelementptr i32, ptr %packed, i64 %to.skip
  br label %copy.row
copy.row:
  %c = phi i64 [ 0, %copy ], [ %c.next, %copy.full ]
  %even.c = getelementptr i16, ptr %even, i64 %c
  %next.c = getelementptr i16, ptr %next.row, i64 %c
  %odd.c = select i1 %is.pair, ptr %next.c, ptr @no.row
  %to.c = getelementptr i32, ptr %to, i64 %c
  %c.is.full = icmp slt i64 %c, %full
  br i1 %c.is.full, label %copy.full, label %copy.rest
copy.full:
  %evens = load <{s.lanes} x i16>, ptr %even.c, align 2
  %odds = load <{s.lanes} x i16>, ptr %odd.c, align 2
  %both = shufflevector <{s.lanes} x i16> %evens, <{s.lanes} x i16> %odds, {_interleaved(s.lanes)}
  store <{2 * s.lanes} x i16> %both, ptr %to.c, align {4 * s.lanes}
  %c.next = add i64 %c, {s.lanes}
  br label %copy.row
copy.rest:
  store <{s.lanes} x i32> zeroinitializer, ptr %to.c, align {4 * s.lanes}
  br label %copy.one
copy.one:
  %e = phi i64 [ 0, %copy.rest ], [ %e.next, %copy.one ]
  %even.e = getelementptr i16, ptr %even.c, i64 %e
  %odd.e = getelementptr i16, ptr %odd.c, i64 %e
  %to.e = getelementptr i32, ptr %to.c, i64 %e
  %low = load i16, ptr %even.e, align 2
  %high = load i16, ptr %odd.e, align 2
  %low.wide = zext i16 %low to i32
  %high.wide = zext i16 %high to i32
  %high.placed = shl i32 %high.wide, 16
  %pair = or i32 %low.wide, %high.placed
  store i32 %pair, ptr %to.e, align 4
  %e.next = add i64 %e, 1
  %e.more = icmp slt i64 %e.next, %rest
  br i1 %e.more, label %copy.one, label %copy.row.end
copy.row.end:
  %q.next = add i64 %q, 1
  %q.more = icmp slt i64 %q.next, %steps
  br i1 %q.more, label %copy, label %multiply"""


def _panel(s: Shape, vectors: int) -> str:
    """Return the function for all rows of a panel of columns, `vectors` wide; its last vector holds `rest` elements."""
    sums = [(r, v) for r in range(s.rows) for v in range(vectors)]
    phis = [f"  %sum{r}.{v} = phi {s.vector} [ zeroinitializer, %block ], [ %next{r}.{v}, %step ]" for r, v in sums]
    loop = _products(s, vectors, "sum", "next", "%b.at", "%q", "i32")
    several = [f"  %most{r}.{v} = phi {s.vector} [ zeroinitializer, %block ], [ %next{r}.{v}, %step ]" for r, v in sums]
    one = _products(s, vectors, "most", "more", "%b.last", "%whole", "i16")
    last = [f"  %new{r}.{v} = phi {s.vector} [ %most{r}.{v}, %after ], [ %more{r}.{v}, %one ]" for r, v in sums]
    newline = "\n"
    return f"""\
define internal void @pairs{vectors}(ptr %a, ptr %b, ptr %out, i64 %m, i64 %depth, i64 %a_row, i64 %out_row, \
i64 %rest, i1 %is.first) #0 {{
entry:
  %last = sub i64 %m, 1
  %whole = lshr i64 %depth, 1
  %odd = trunc i64 %depth to i1
  %some = icmp ne i64 %whole, 0
  %b.last.skip = mul i64 %whole, {vectors}
  %b.last = getelementptr {s.vector}, ptr %b, i64 %b.last.skip
{mask(s, "%rest")}
  br label %block
block:
  %i = phi i64 [ 0, %entry ], [ %i.next, %block.end ]
{rows_of(s, "i16")}
  br i1 %some, label %step, label %after
step:
  %q = phi i64 [ 0, %block ], [ %q.next, %step ]
  %b.at = phi ptr [ %b, %block ], [ %b.next, %step ]
{newline.join([*phis, *loop])}
  %b.next = getelementptr {s.vector}, ptr %b.at, i64 {vectors}
  %q.next = add i64 %q, 1
  %q.more = icmp slt i64 %q.next, %whole
  br i1 %q.more, label %step, label %after
after:
{newline.join(several)}
  br i1 %odd, label %one, label %sums
one:
{newline.join(one)}
  br label %sums
sums:
{newline.join(last)}
  br label %steps.end
{ends(s, sums, vectors)}
block.end:
  %i.next = add i64 %i, {s.rows}
  %i.more = icmp slt i64 %i.next, %m
  br i1 %i.more, label %block, label %done
done:
  ret void
}}
"""


def _products(s: Shape, vectors: int, old: str, new: str, b: str, pair: str, read: str) -> list[str]:
    """Return the lines that add one pair of products to every sum. A pair of a that is read as i16 lacks its second."""
    word, lines = f"<{s.lanes} x i32>", []
    for v in range(vectors):
        lines += [
            f"  %{new}.b.at{v} = getelementptr {s.vector}, ptr {b}, i64 {v}",
            f"  %{new}.b{v} = load {_PAIRS}, ptr %{new}.b.at{v}, align 64",
        ]
    for r in range(s.rows):
        wide = f"load i32, ptr %{new}.a.at{r}, align 2" if read == "i32" else f"zext i16 %{new}.short{r} to i32"
        lines.append(f"  %{new}.a.at{r} = getelementptr i32, ptr %a{r}, i64 {pair}")
        if read != "i32":
            lines.append(f"  %{new}.short{r} = load {read}, ptr %{new}.a.at{r}, align 2")
        lines += [
            f"  %{new}.one{r} = {wide}",
            f"  %{new}.lane{r} = insertelement {word} poison, i32 %{new}.one{r}, i64 0",
            f"  %{new}.all{r} = shufflevector {word} %{new}.lane{r}, {word} poison, {word} zeroinitializer",
            f"  %{new}.a{r} = bitcast {word} %{new}.all{r} to {_PAIRS}",
        ]
        for v in range(vectors):
            given = f"{s.vector} %{old}{r}.{v}, {_PAIRS} %{new}.a{r}, {_PAIRS} %{new}.b{v}"
            lines.append(f"  %{new}{r}.{v} = call {s.vector} @llvm.x86.avx512bf16.dpbf16ps.512({given})")
    return lines
