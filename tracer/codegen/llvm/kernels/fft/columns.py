"""Fourier transforms of complex columns, side by side in an array, in a module that is compiled once.

    void tracer_fft_columns_f64(ptr source, ptr target, i64 kind, i64 outer, i64 n, i64 inner, double scale, i64 grain,
                                ptr plan)
    target[o, k, i] = scale times the transform of source[o, :, i]

kind: 0 FFT, 1 IFFT. grain: columns that are worth a thread. source and target may be the same. A block of as many
columns as a vector has numbers, at least eight, is transformed at once. The first pass loads the block from the array,
the last one stores it there (see `column_passes`). Columns at the end, too few for a block, are copied to memory of a
block's width, and back. An inverse transform is one whose results are stored in the opposite order.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tracer.codegen.llvm.kernels.fft.column_passes import wide_shape
from tracer.codegen.llvm.kernels.fft.shared_texts import FAR_BYTES, freed, given_scale, memory
from tracer.codegen.llvm.kernels.gemm.kernel_loops import keep, kept, loop
from tracer.codegen.llvm.kernels.gemm.kernel_shapes import Shape, attributes
from tracer.codegen.llvm.toolchain.native_text import expanded, routines

NAME: Final = "tracer_fft_columns_"
PARAMETERS: Final = "ptr, ptr, i64, i64, i64, i64, double, i64, ptr"
_GIVEN: Final = (
    "ptr %source", "ptr %target", "i64 %n", "i64 %inner", "i64 %end.row", "i64 %bits", "ptr %plan",
    "i64 %ahead",
)  # fmt: skip

_FETCHED: Final = 4096
"""Rows of a block that is fetched while another one is transformed: half a megabyte."""


def columns_text(kind: str, vector_bits: int | None = None) -> str:
    """Return the module of one dtype."""
    s = wide_shape(kind, vector_bits)
    fixed = routines(Path(__file__).parents[1] / "ll" / "fft", ("between", "first_pass", "last_pass", "block_passes"))
    return f"""\
declare void @tracer_share(ptr, ptr, i64, i64)
declare noalias ptr @malloc(i64)
declare void @free(ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
{expanded(fixed, {"Line.element": s.element})}
{_blocks(s)}
{_entry(s, kind)}
{attributes(s)}
"""


def _copies(s: Shape, name: str, to: str, from_: str, to_step: str, from_step: str) -> str:
    """Copy `%rest.bytes` of each of n rows."""
    return loop(name, "0", "%n", 1, f"""\
  %{name}.to.at = mul i64 %{name}, {to_step}
  %{name}.to = getelementptr {s.element}, ptr {to}, i64 %{name}.to.at
  %{name}.from.at = mul i64 %{name}, {from_step}
  %{name}.from = getelementptr {s.element}, ptr {from_}, i64 %{name}.from.at
  call void @llvm.memcpy.p0.p0.i64(ptr %{name}.to, ptr %{name}.from, i64 %rest.bytes, i1 false)""")  # fmt: skip


def _blocks(s: Shape) -> str:
    """Return the function of a thread's part of the blocks."""
    width = 2 * s.lanes
    body = f"""\
  %o = udiv i64 %block, %each
  %b = urem i64 %block, %each
  %column = mul i64 %b, {s.lanes}
  %row.first = mul i64 %o, %n
  %o.at = mul i64 %row.first, %step
  %column.at = mul i64 %column, 2
  %at = add i64 %o.at, %column.at
  %x = getelementptr {s.element}, ptr %source, i64 %at
  %y = getelementptr {s.element}, ptr %target, i64 %at
  %left = sub i64 %inner, %column
  %is.whole = icmp sge i64 %left, {s.lanes}
  br i1 %is.whole, label %whole, label %rest
whole:
  call void @block.passes(ptr %x, ptr %y, ptr %one, ptr %two, i64 %step, i64 %end.row, i64 %ahead, \
{s.element} %scale, ptr %plan)
  br label %after
rest:
  %rest.bytes = mul i64 %left, {2 * s.size}
{_copies(s, "in", "%two", "%x", str(width), "%step")}
  call void @block.passes(ptr %two, ptr %two, ptr %one, ptr %three, i64 {width}, i64 %end.row, i64 0, \
{s.element} %scale, ptr %plan)
{_copies(s, "out", "%y", "%two", "%step", str(width))}
  br label %after
after:"""
    return f"""\
define internal void @blocks(ptr %given, i64 %begin, i64 %end) #0 {{
entry:
{kept(*_GIVEN)}
  %factor.at = inttoptr i64 %bits to ptr
  %scale = load {s.element}, ptr %factor.at, align 8
  %step = mul i64 %inner, 2
  %more = add i64 %inner, {s.lanes - 1}
  %each = udiv i64 %more, {s.lanes}
  %numbers = mul i64 %n, {width}
  %all = mul i64 %numbers, 3
{memory(s, "one", "%all")}
  %two = getelementptr {s.element}, ptr %one, i64 %numbers
  %three = getelementptr {s.element}, ptr %two, i64 %numbers
{loop("block", "%begin", "%end", 1, body)}
{freed("one")}
  ret void
}}"""


def _entry(s: Shape, kind: str) -> str:
    """Return the entry, which shares blocks between threads."""
    return f"""\
define void @{NAME}{kind}(ptr %source, ptr %target, i64 %kind, i64 %outer, i64 %n, i64 %inner, double %scale, \
i64 %lines, ptr %plan) #0 {{
entry:
{given_scale(s.element, _GIVEN)}
  %end.row = mul i64 %n, %kind
  %row = mul i64 %inner, {2 * s.size}
  %plane = mul i64 %n, %row
  %bytes = mul i64 %outer, %plane
  %is.far = icmp sge i64 %bytes, {FAR_BYTES}
  %is.short = icmp sle i64 %n, {_FETCHED}
  %fetches = and i1 %is.far, %is.short
  %ahead = select i1 %fetches, i64 {2 * s.lanes}, i64 0
{keep(*_GIVEN)}
  %more = add i64 %inner, {s.lanes - 1}
  %each = udiv i64 %more, {s.lanes}
  %blocks = mul i64 %each, %outer
  %lines.more = add i64 %lines, {s.lanes - 1}
  %grain = udiv i64 %lines.more, {s.lanes}
  call void @tracer_share(ptr @blocks, ptr %given, i64 %blocks, i64 %grain)
  ret void
}}"""
