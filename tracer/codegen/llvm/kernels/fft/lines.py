"""Fourier transforms of lines of an array, in a module that is compiled once: `tracer_fft_lines_f64`.

    void tracer_fft_lines_f64(ptr source, ptr target, i64 kind, i64 outer, i64 n, i64 inner, double scale, i64 grain,
                              ptr plan, ptr work)
    target[o, k, i] = scale times the transform of source[o, :, i]

kind: 0 FFT, 1 IFFT, 2 RFFT, 3 IRFFT. grain: lines that are worth a thread. work: memory for the complex numbers of one
line, or null. Eight lines are transformed side by side, one in each lane of vectors (see `butterflies`). They are
copied to a buffer, transposed where they lie one behind the other, and back. A long line is a matrix [n1, n2]. Its
columns are transformed as lines, then multiplied by roots of unity, then its rows (Bailey 1990, J. Supercomputing
4(1)). With `work`, threads share its columns and rows, else the lines. Real lines are complex ones of half the length,
whose transform is taken apart (see `real_lines`). An inverse transform is one of numbers with real and imaginary parts
exchanged. A line whose length has a large prime factor is convolved (see `convolved`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tracer.codegen.llvm.kernels.fft.butterflies import LANES, lanes_of
from tracer.codegen.llvm.kernels.fft.convolved import convolution_texts
from tracer.codegen.llvm.kernels.fft.layouts import (
    APART,
    BESIDE,
    BESIDE_REAL,
    ROWS,
    TILE,
    WHOLE,
    load_text,
    store_text,
)
from tracer.codegen.llvm.kernels.fft.real_lines import real_texts
from tracer.codegen.llvm.kernels.fft.shared_texts import FAR_BYTES, GIVEN, freed, given_scale, memory, planned
from tracer.codegen.llvm.kernels.gemm.kernel_loops import keep, kept, loop
from tracer.codegen.llvm.kernels.gemm.kernel_shapes import Shape, attributes
from tracer.codegen.llvm.toolchain.native_text import expanded, routines

NAME: Final = "tracer_fft_lines_"
_FIXED: Final = ("steps", "between", "first_pass", "last_pass", "turned_columns")
PARAMETERS: Final = "ptr, ptr, i64, i64, i64, i64, double, i64, ptr, ptr"


def lines_text(kind: str, vector_bits: int | None = None) -> str:
    """Return the module of one dtype."""
    s = lanes_of(kind, vector_bits)
    one = lanes_of(kind, vector_bits)
    one.lanes, one.vector, one.suffix = 1, f"<1 x {s.element}>", f"v1f{8 * s.size}"
    return f"""\
declare void @tracer_share(ptr, ptr, i64, i64)
declare noalias ptr @malloc(i64)
declare void @free(ptr)
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
declare i64 @llvm.smin.i64(i64, i64)
declare {s.vector} @llvm.fma.{s.suffix}({s.vector}, {s.vector}, {s.vector})
declare {one.vector} @llvm.fma.{one.suffix}({one.vector}, {one.vector}, {one.vector})
{load_text(s)}
{store_text(s)}
{expanded(routines(Path(__file__).parents[1] / "ll" / "fft", _FIXED), {"Line.element": s.element})}
{real_texts(s, one)}
{_at_once(s)}
{_columns(s)}
{_rows(s)}
{_line()}
{_some_lines(s)}
{convolution_texts(s)}
{_entry(s, kind)}
{attributes(s)}
"""


# Blocks of lines, and lines in two steps


def _lanes(s: Shape, array: str, base: str, step: str) -> str:
    """Fill an array with pointers to eight lines."""
    return "\n".join(
        f"  %{array}.skip{i} = mul i64 {step}, {i}\n"
        f"  %{array}.lane{i} = getelementptr {s.element}, ptr {base}, i64 %{array}.skip{i}\n"
        f"  %{array}.slot{i} = getelementptr ptr, ptr %{array}, i64 {i}\n"
        f"  store ptr %{array}.lane{i}, ptr %{array}.slot{i}, align 8"
        for i in range(LANES)
    )


def _scale(s: Shape) -> str:
    return f"  %factor.at = inttoptr i64 %bits to ptr\n  %scale = load {s.element}, ptr %factor.at, align 8"


def _following() -> str:
    """Count the outer and the inner index of eight lines from `line` on, of which none is behind the last."""
    lines = ["  %o.0 = udiv i64 %line, %inner", "  %i.0 = urem i64 %line, %inner"]
    for i in range(1, LANES):
        lines.append(f"""\
  %line.{i} = add i64 %line, {i}
  %is.there.{i} = icmp sle i64 %line.{i}, %line.last
  %i.more.{i} = add i64 %i.{i - 1}, 1
  %o.more.{i} = add i64 %o.{i - 1}, 1
  %is.next.{i} = icmp eq i64 %i.more.{i}, %inner
  %i.then.{i} = select i1 %is.next.{i}, i64 0, i64 %i.more.{i}
  %o.then.{i} = select i1 %is.next.{i}, i64 %o.more.{i}, i64 %o.{i - 1}
  %i.{i} = select i1 %is.there.{i}, i64 %i.then.{i}, i64 %i.{i - 1}
  %o.{i} = select i1 %is.there.{i}, i64 %o.then.{i}, i64 %o.{i - 1}""")
    return "\n".join(lines)


def _at_once(s: Shape) -> str:
    """Return the function of a thread's part: blocks of eight lines, each transformed at once."""
    sides = []
    for side, base, count, real in (("from", "%source", "%inputs", 2), ("to", "%target", "%outputs", 3)):
        lines = "\n".join(
            f"""\
  %{side}.row{i} = mul i64 %o.{i}, %{side}.line
  %{side}.column{i} = mul i64 %i.{i}, %{side}.unit
  %{side}.at{i} = add i64 %{side}.row{i}, %{side}.column{i}
  %{side}.lane{i} = getelementptr {s.element}, ptr {base}, i64 %{side}.at{i}
  %{side}.slot{i} = getelementptr ptr, ptr %{side}, i64 {i}
  store ptr %{side}.lane{i}, ptr %{side}.slot{i}, align 8"""
            for i in range(LANES)
        )
        setup = f"""\
  %{side} = alloca [{LANES} x ptr], align 64
  %{side}.is.real = icmp eq i64 %kind, {real}
  %{side}.unit = select i1 %{side}.is.real, i64 1, i64 2
  %{side}.half = select i1 %{side}.is.real, i64 %inner, i64 1
  %{side}.places = mul i64 {count}, %inner
  %{side}.line = mul i64 %{side}.places, 2
  %{side}.is.short = icmp slt i64 {count}, {TILE}
  %{side}.in.order = select i1 %{side}.is.short, i64 {APART}, i64 {ROWS}
  %{side}.beside = select i1 %{side}.is.real, i64 {BESIDE_REAL}, i64 {BESIDE}
  %{side}.other = select i1 %is.wide, i64 %{side}.beside, i64 {APART}
  %{side}.mode = select i1 %is.rows, i64 %{side}.in.order, i64 %{side}.other
  %{side}.is.tiled = icmp eq i64 %{side}.mode, {ROWS}
  %{side}.block = mul i64 %{side}.line, {LANES}
  %{side}.step = select i1 %{side}.is.tiled, i64 %{side}.block, i64 %step"""
        sides.append((setup, lines))
    body = f"""\
  %o = udiv i64 %block, %blocks
  %b = urem i64 %block, %blocks
  %b.start = mul i64 %b, {LANES}
  %b.end = sub i64 %inner, {LANES}
  %b.within = call i64 @llvm.smin.i64(i64 %b.start, i64 %b.end)
  %o.start = mul i64 %o, %inner
  %line.wide = add i64 %o.start, %b.within
  %line.plain = mul i64 %block, {LANES}
  %line = select i1 %is.wide, i64 %line.wide, i64 %line.plain
{_following()}
{sides[0][1]}
{sides[1][1]}
  %swap.load = select i1 %is.c2r, i64 0, i64 %is.back
  call void @load(ptr %one, ptr %from, i64 %from.mode, i64 %inputs, i64 %from.step, i64 %from.half, i64 %swap.load)
  br i1 %is.c2r, label %join, label %run
join:
  call void @together(ptr %one, ptr %two, ptr %halves, i64 %h)
  br label %run
run:
  %x = phi ptr [ %one, %block.body ], [ %two, %join ]
  %y = phi ptr [ %two, %block.body ], [ %one, %join ]
  %z = call ptr @steps(ptr %first, ptr %x, ptr %y)
  br i1 %is.r2c, label %part, label %put
part:
  %is.one = icmp eq ptr %z, %one
  %free = select i1 %is.one, ptr %two, ptr %one
  call void @apart(ptr %z, ptr %free, ptr %halves, i64 %h)
  br label %put
put:
  %found = phi ptr [ %z, %run ], [ %free, %part ]
  call void @store(ptr %found, ptr %to, i64 %to.mode, i64 %outputs, i64 %to.step, i64 %to.half, i64 %is.back, \
{s.element} %scale)"""
    return f"""\
define internal void @at.once(ptr %given, i64 %begin, i64 %end) #0 {{
entry:
{kept(*GIVEN)}
{_scale(s)}
{planned("h", "first", "halves")}
  %is.back = and i64 %kind, 1
  %is.r2c = icmp eq i64 %kind, 2
  %is.c2r = icmp eq i64 %kind, 3
  %is.rows = icmp eq i64 %inner, 1
  %is.wide = icmp sge i64 %inner, {LANES}
  %step = mul i64 %inner, 2
  %line.last = sub i64 %count, 1
  %blocks.more = add i64 %inner, {LANES - 1}
  %blocks = udiv i64 %blocks.more, {LANES}
{sides[0][0]}
{sides[1][0]}
  %places = add i64 %h, 1
  %numbers = mul i64 %places, {WHOLE}
  %all = mul i64 %numbers, 2
{memory(s, "one", "%all")}
  %two = getelementptr {s.element}, ptr %one, i64 %numbers
{loop("block", "%begin", "%end", 1, body)}
{freed("one")}
  ret void
}}"""


_HALF: Final = ("ptr %x", "ptr %y", "ptr %plan", "i64 %is.back", "i64 %bits", "i64 %ahead")  # of one of both steps


def _fetched(s: Shape, line: str, places: str, *, write: bool) -> str:
    """Fetch a block's part of the line that stands `%ahead` numbers further, unless it is 0."""
    each = 64 // s.size
    body = f"""\
  %fetch.at = getelementptr {s.element}, ptr %fetch.from, i64 %fetch
  call void @llvm.prefetch.p0(ptr %fetch.at, i32 {int(write)}, i32 2, i32 1)"""
    return f"""\
  %fetch.all = mul i64 {places}, {2 * LANES}
  %fetch.is.none = icmp eq i64 %ahead, 0
  %fetch.count = select i1 %fetch.is.none, i64 0, i64 %fetch.all
  %fetch.block = mul i64 %b, %fetch.all
  %fetch.skip = add i64 %ahead, %fetch.block
  %fetch.from = getelementptr {s.element}, ptr {line}, i64 %fetch.skip
{loop("fetch", "0", "%fetch.count", each, body)}"""


def _columns(s: Shape) -> str:
    """Return the function of blocks of columns of [n1, n2]: their transforms, times roots of unity."""
    body = f"""\
  %b.start = mul i64 %b, {LANES}
  %column = call i64 @llvm.smin.i64(i64 %b.start, i64 %last)
  %skip = mul i64 %column, 2
  %x.b = getelementptr {s.element}, ptr %x, i64 %skip
  %y.b = getelementptr {s.element}, ptr %y, i64 %skip
{_fetched(s, "%x", "%n1", write=False)}
  %w.at = mul i64 %b, %w.step
  %w = getelementptr {s.element}, ptr %starts, i64 %w.at
  call void @turned.columns(ptr %x.b, ptr %y.b, ptr %one, ptr %two, i64 %step, i64 %is.back, ptr %w, ptr %lanes, \
ptr %first)"""
    return f"""\
define internal void @columns(ptr %given, i64 %begin, i64 %end) #0 {{
entry:
{kept(*_HALF)}
{planned("n1", "n2", "first", "starts", "lanes")}
  %numbers = mul i64 %n1, {WHOLE}
  %all = mul i64 %numbers, 2
{memory(s, "one", "%all")}
  %two = getelementptr {s.element}, ptr %one, i64 %numbers
  %w.step = mul i64 %n1, 2
  %step = mul i64 %n2, 2
  %last = sub i64 %n2, {LANES}
{loop("b", "%begin", "%end", 1, body)}
{freed("one")}
  ret void
}}"""


def _rows(s: Shape) -> str:
    """Return the function of blocks of rows of [n1, n2]: their transforms, times the scale, as columns."""
    body = f"""\
  %b.start = mul i64 %b, {LANES}
  %row = call i64 @llvm.smin.i64(i64 %b.start, i64 %last)
  %x.skip = mul i64 %row, %row.step
  %x.b = getelementptr {s.element}, ptr %x, i64 %x.skip
  %y.skip = mul i64 %row, 2
  %y.b = getelementptr {s.element}, ptr %y, i64 %y.skip
{_lanes(s, "from", "%x.b", "%row.step")}
{_fetched(s, "%y", "%n2", write=True)}
  call void @load(ptr %one, ptr %from, i64 {ROWS}, i64 %n2, i64 %row.block, i64 1, i64 0)
  %z = call ptr @between(ptr %second, i64 0, ptr %one, ptr %two)
  call void @last.pass(ptr %second, ptr %z, ptr %y.b, i64 %step, i64 %is.back, i64 0, \
{s.element} %scale)"""
    return f"""\
define internal void @rows(ptr %given, i64 %begin, i64 %end) #0 {{
entry:
{kept(*_HALF)}
{_scale(s)}
{planned("n1", "n2", "second")}
  %from = alloca [{LANES} x ptr], align 64
  %numbers = mul i64 %n2, {WHOLE}
  %all = mul i64 %numbers, 2
{memory(s, "one", "%all")}
  %two = getelementptr {s.element}, ptr %one, i64 %numbers
  %step = mul i64 %n1, 2
  %row.step = mul i64 %n2, 2
  %row.block = mul i64 %row.step, {LANES}
  %last = sub i64 %n1, {LANES}
{loop("b", "%begin", "%end", 1, body)}
{freed("one")}
  ret void
}}"""


def _line() -> str:
    """Return the function of one line in two steps. grain: blocks that are worth a thread."""
    step = """\
  store ptr {x}, ptr %given.0, align 8
  store ptr {y}, ptr %given.1, align 8
  %{name}.more = add i64 {count}, 7
  %{name}.blocks = udiv i64 %{name}.more, 8
  br i1 %is.shared, label %{name}.share, label %{name}.alone
{name}.share:
  call void @tracer_share(ptr @{name}, ptr %given, i64 %{name}.blocks, i64 %grain)
  br label %{name}.done
{name}.alone:
  call void @{name}(ptr %given, i64 0, i64 %{name}.blocks)
  br label %{name}.done
{name}.done:"""
    return f"""\
define internal void @line(ptr %source, ptr %target, ptr %work, ptr %plan, i64 %kind, i64 %bits, i64 %grain, \
i64 %from.ahead, i64 %to.ahead) #0 {{
entry:
{planned("h", "n1", "n2", "halves")}
  %given = alloca [{len(_HALF)} x i64], align 8
  %is.back = and i64 %kind, 1
  %is.shared = icmp sgt i64 %grain, 0
  %is.r2c = icmp eq i64 %kind, 2
  %is.c2r = icmp eq i64 %kind, 3
{keep("ptr %source", "ptr %target", *_HALF[2:-1], "i64 %from.ahead")}
  %swap.at = getelementptr i64, ptr %given, i64 3
  %ahead.at = getelementptr i64, ptr %given, i64 5
  br i1 %is.c2r, label %join, label %first
join:
  call void @row.together(ptr %source, ptr %target, ptr %halves, i64 %h)
  br label %first
first:
  %x = phi ptr [ %source, %entry ], [ %target, %join ]
  %swap = phi i64 [ %is.back, %entry ], [ 0, %join ]
  store i64 %swap, ptr %swap.at, align 8
{step.format(name="columns", x="%x", y="%work", count="%n2")}
  store i64 %is.back, ptr %swap.at, align 8
  store i64 %to.ahead, ptr %ahead.at, align 8
{step.format(name="rows", x="%work", y="%target", count="%n1")}
  br i1 %is.r2c, label %part, label %done
part:
  call void @row.apart(ptr %target, ptr %halves, i64 %h)
  br label %done
done:
  ret void
}}"""


def _some_lines(s: Shape) -> str:
    """Return the function of a thread's part: long lines, one after another, in two steps."""
    body = f"""\
  %from.at = mul i64 %i, %from.line
  %to.at = mul i64 %i, %to.line
  %from = getelementptr {s.element}, ptr %source, i64 %from.at
  %to = getelementptr {s.element}, ptr %target, i64 %to.at
  call void @line(ptr %from, ptr %to, ptr %matrix, ptr %plan, i64 %kind, i64 %bits, i64 %grain, i64 %from.ahead, \
i64 %to.ahead)"""
    return f"""\
define internal void @some.lines(ptr %given, i64 %begin, i64 %end) #0 {{
entry:
{kept(*GIVEN)}
{planned("h")}
  %from.line = mul i64 %inputs, 2
  %to.line = mul i64 %outputs, 2
  %is.given = icmp ne ptr %work, null
  %own = select i1 %is.given, i64 0, i64 %to.line
  %numbers = mul i64 %count, %to.line
  %is.cached = icmp slt i64 %numbers, {FAR_BYTES // s.size}
  %is.near = or i1 %is.given, %is.cached
  %from.ahead = select i1 %is.near, i64 0, i64 %from.line
  %to.ahead = select i1 %is.near, i64 0, i64 %to.line
{memory(s, "memory", "%own")}
  %matrix = select i1 %is.given, ptr %work, ptr %memory
{loop("i", "%begin", "%end", 1, body)}
{freed("memory")}
  ret void
}}"""


def _entry(s: Shape, kind: str) -> str:
    """Return the entry, which chooses the way and shares lines between threads."""
    return f"""\
define void @{NAME}{kind}(ptr %source, ptr %target, i64 %kind, i64 %outer, i64 %n, i64 %inner, double %scale, \
i64 %lines, ptr %plan, ptr %work) #0 {{
entry:
{given_scale(s.element, GIVEN)}
{planned("h", "n1", "chirped")}
  %longer = add i64 %h, 1
  %is.r2c = icmp eq i64 %kind, 2
  %is.c2r = icmp eq i64 %kind, 3
  %inputs = select i1 %is.c2r, i64 %longer, i64 %h
  %outputs = select i1 %is.r2c, i64 %longer, i64 %h
  %count = mul i64 %outer, %inner
  %is.large = icmp ne ptr %work, null
  %grain = select i1 %is.large, i64 1, i64 0
{keep(*GIVEN)}
  %is.cut = icmp ne i64 %n1, 0
  br i1 %is.cut, label %cut, label %whole
cut:
  %is.chirp = icmp ne i64 %chirped, 0
  %some = select i1 %is.chirp, ptr @some.chirps, ptr @some.lines
  br i1 %is.large, label %alone, label %share
alone:
  call void %some(ptr %given, i64 0, i64 %count)
  ret void
share:
  call void @tracer_share(ptr %some, ptr %given, i64 %count, i64 %lines)
  ret void
whole:
  %is.wide = icmp sge i64 %inner, {LANES}
  %width = select i1 %is.wide, i64 %inner, i64 %count
  %others = select i1 %is.wide, i64 %outer, i64 1
  %more = add i64 %width, {LANES - 1}
  %each = udiv i64 %more, {LANES}
  %blocks = mul i64 %each, %others
  %lines.more = add i64 %lines, {LANES - 1}
  %at.once = udiv i64 %lines.more, {LANES}
  call void @tracer_share(ptr @at.once, ptr %given, i64 %blocks, i64 %at.once)
  ret void
}}"""
