"""Fourier transforms of lines of 64, 128 and 256 numbers, one behind the other, in modules that are compiled once.

    void tracer_fft_short_FFT_8_16_f64(ptr source, ptr target, i64 count, double scale, i64 grain, ptr between,
                                       ptr halves)
    target[i, k] = scale times the transform of source[i, :]

Names have the kind of transform, n1, n2 and the dtype. A line is a matrix [n1, n2], as in `lines`, but both steps run
in registers. Transforms of n1 take eight columns, side by side in memory, and store them as rows of a small
buffer. Transforms of n2 take these rows. A vector of 16 lanes holds columns of two lines. between: exp(-2πi j2 k1 / h),
[n2 / 8, n1, 2, 8]. halves: exp(-2πi k / 2h) for k <= h / 2, for transforms of real lines. grain: lines that are worth a
thread.
"""

from __future__ import annotations

from typing import Final

from tracer.codegen.llvm.kernels.fft.butterflies import LANES, Code, Pair, lanes_of, transform
from tracer.codegen.llvm.kernels.fft.layouts import text_of, transposed
from tracer.codegen.llvm.kernels.fft.real_lines import row_apart, row_together
from tracer.codegen.llvm.kernels.fft.shared_texts import FAR_BYTES, fetched, given_scale
from tracer.codegen.llvm.kernels.gemm.kernel_loops import keep, kept, loop
from tracer.codegen.llvm.kernels.gemm.kernel_shapes import Shape, attributes

NAME: Final = "tracer_fft_short_"
KINDS: Final = ("FFT", "IFFT", "RFFT", "IRFFT")
STEPS: Final = {64: (8, 8), 128: (8, 16), 256: (16, 16)}
"""n1 and n2 of every length of complex numbers."""
PARAMETERS: Final = "ptr, ptr, i64, double, i64, ptr, ptr"
_GIVEN: Final = ("ptr %source", "ptr %target", "i64 %count", "i64 %bits", "ptr %between", "ptr %halves")


def short_name(fft_type: str, n1: int, n2: int, kind: str) -> str:
    """Return the name of a kernel."""
    return f"{NAME}{fft_type}_{n1}_{n2}_{kind}"


def short_text(fft_type: str, n1: int, n2: int, kind: str, vector_bits: int | None = None) -> str:
    """Return the module of one kind of transform, length and dtype."""
    s, one = Shape(kind, vector_bits), lanes_of(kind, vector_bits)
    eight = lanes_of(kind, vector_bits)
    if s.lanes < LANES:
        s = eight
    one.lanes, one.vector, one.suffix = 1, f"<1 x {s.element}>", f"v1f{8 * s.size}"
    shapes = {each.suffix: each.vector for each in (s, eight, one)}
    declared = "\n".join(f"declare {v} @llvm.fma.{suffix}({v}, {v}, {v})" for suffix, v in shapes.items())
    halves = {"RFFT": row_apart, "IRFFT": row_together}.get(fft_type)
    return f"""\
declare void @tracer_share(ptr, ptr, i64, i64)
declare i64 @llvm.smin.i64(i64, i64)
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
{declared}
{halves(s, one) if halves else ""}
{_some(s, fft_type, n1, n2)}
{_entry(s, fft_type, n1, n2, kind)}
{attributes(s)}
"""


def _first_step(c: Code, n1: int, n2: int, *, swap: bool) -> None:
    """Transform the columns of block `%b`, times roots of unity, and store them as rows of the buffer."""
    s, many = c.s, c.s.lanes > LANES
    place = c.let(f"mul i64 %b, {2 * LANES}")
    first, after = c.at("%from.0", place), c.at("%from.1", place) if many else ""
    x = []
    for j in range(n1):
        pair = c.load_in_turn(first, 2 * n2 * j, c.at(after, 2 * n2 * j) if many else "")
        x.append(pair[::-1] if swap else pair)
    y = transform(c, x)
    roots = c.at("%between", c.let(f"mul i64 %b, {2 * LANES * n1}"))
    for k in range(1, n1):
        y[k] = c.times(y[k], (c.load_eight(roots, 2 * LANES * k), c.load_eight(roots, 2 * LANES * k + LANES)))
    to = c.at("%buffer", c.let(f"mul i64 %b, {2 * s.lanes * LANES}"))
    for k in range(0, n1, LANES):
        for part in (0, 1):
            for j, row in enumerate(transposed(c, [pair[part] for pair in y[k : k + LANES]])):
                c.store(row, to, 2 * s.lanes * (k // LANES * n2 + j) + part * s.lanes)


def _second_step(c: Code, n1: int, n2: int, *, swap: bool) -> None:
    """Transform the rows of block `%g` of the buffer, and store them, scaled, as columns."""
    many, from_ = c.s.lanes > LANES, c.at("%buffer", c.let(f"mul i64 %g, {2 * c.s.lanes * n2}"))
    y = transform(c, [c.load_pair(from_, 2 * c.s.lanes * j) for j in range(n2)])
    place = c.let(f"mul i64 %g, {2 * LANES}")
    first, after = c.at("%to.0", place), c.at("%to.1", place) if many else ""
    for k, (re, im) in enumerate(y):
        pair: Pair = c.mul(re, "%factor"), c.mul(im, "%factor")
        at = 2 * n1 * k
        c.store_in_turn(pair[::-1] if swap else pair, first, at, c.at(after, at) if many else "")


def _some(s: Shape, fft_type: str, n1: int, n2: int) -> str:
    """Return the function of a thread's part: lines, as many at a time as vectors hold."""
    h, count = n1 * n2, s.lanes // LANES
    inputs, outputs = 2 * h + 2 * (fft_type == "IRFFT"), 2 * h + 2 * (fft_type == "RFFT")
    first, second = Code(s, "f"), Code(s, "s")
    _first_step(first, n1, n2, swap=fft_type == "IFFT")
    _second_step(second, n1, n2, swap=fft_type in ("IFFT", "IRFFT"))
    lines, joined = [], []
    for i in range(count):
        lines.append(f"""\
  %next.{i} = add i64 %line, {i}
  %line.{i} = call i64 @llvm.smin.i64(i64 %next.{i}, i64 %last)
  %x.at.{i} = mul i64 %line.{i}, {inputs}
  %y.at.{i} = mul i64 %line.{i}, {outputs}
  %x.{i} = getelementptr {s.element}, ptr %source, i64 %x.at.{i}
  %to.{i} = getelementptr {s.element}, ptr %target, i64 %y.at.{i}
  %from.{i} = getelementptr {s.element}, ptr %{"to" if fft_type == "IRFFT" else "x"}.{i}, i64 0""")
        joined.append(f"  call void @row.together(ptr %x.{i}, ptr %to.{i}, ptr %halves, i64 {h})")
    body = "\n".join(
        [
            *lines,
            *(joined if fft_type == "IRFFT" else []),
            loop("b", "0", str(n2 // LANES), 1, _fetched(s, "b", "%x", inputs, n1) + text_of(first)),
            loop("g", "0", str(n1 // LANES), 1, _fetched(s, "g", "%to", outputs, n2) + text_of(second)),
            *([_parted(s, h, count)] if fft_type == "RFFT" else []),
        ]
    )
    return f"""\
define internal void @some(ptr %given, i64 %begin, i64 %end) #0 {{
entry:
{kept(*_GIVEN)}
  %buffer = alloca {s.element}, i64 {2 * h * count}, align 64
  %factor.at = inttoptr i64 %bits to ptr
  %scale = load {s.element}, ptr %factor.at, align 8
  %factor.one = insertelement {s.vector} poison, {s.element} %scale, i64 0
  %factor = shufflevector {s.vector} %factor.one, {s.vector} poison, <{s.lanes} x i32> zeroinitializer
  %numbers = mul i64 %count, {outputs}
  %is.near = icmp slt i64 %numbers, {FAR_BYTES // s.size}
  %last = sub i64 %count, 1
  %start = mul i64 %begin, {count}
  %until = mul i64 %end, {count}
  %stop = call i64 @llvm.smin.i64(i64 %until, i64 %count)
{loop("line", "%start", "%stop", count, body)}
  ret void
}}"""


def _fetched(s: Shape, block: str, line: str, numbers: int, n: int) -> str:
    """Fetch a block's part of the next lines, unless `%is.near` holds. n: places of the block's columns."""
    part, lines = 2 * LANES * n, list[str]()
    for i in range(s.lanes // LANES):
        for at in range(0, part, 64 // s.size):
            name = f"%{block}.ahead.{i}.{at}"
            ahead = s.lanes // LANES * numbers + at
            lines.append(fetched(name, s.element, f"{line}.{i}", f"%{block}.part", ahead, write=line == "%to"))
    text = "\n".join(lines)
    return f"""\
  br i1 %is.near, label %{block}.near, label %{block}.far
{block}.far:
  %{block}.part = mul i64 %{block}, {part}
{text}
  br label %{block}.near
{block}.near:
"""


def _parted(s: Shape, h: int, count: int) -> str:
    """Take the transforms of real lines apart, each line once."""
    body = f"""\
  %part.at = mul i64 %part, {2 * h + 2}
  %part.line = getelementptr {s.element}, ptr %target, i64 %part.at
  call void @row.apart(ptr %part.line, ptr %halves, i64 {h})"""
    return f"""\
  %after = add i64 %line, {count}
  %end.of.lines = call i64 @llvm.smin.i64(i64 %after, i64 %count)
{loop("part", "%line", "%end.of.lines", 1, body)}"""


def _entry(s: Shape, fft_type: str, n1: int, n2: int, kind: str) -> str:
    """Return the entry, which shares lines between threads."""
    count = s.lanes // LANES
    return f"""\
define void @{short_name(fft_type, n1, n2, kind)}(ptr %source, ptr %target, i64 %count, double %scale, i64 %grain, \
ptr noalias %between, ptr noalias %halves) #0 {{
entry:
{given_scale(s.element, _GIVEN)}
{keep(*_GIVEN)}
  %more = add i64 %count, {count - 1}
  %parts = udiv i64 %more, {count}
  %grain.more = add i64 %grain, {count - 1}
  %each = udiv i64 %grain.more, {count}
  call void @tracer_share(ptr @some, ptr %given, i64 %parts, i64 %each)
  ret void
}}"""
