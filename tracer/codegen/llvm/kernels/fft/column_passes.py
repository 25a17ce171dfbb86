"""Passes of Fourier transforms on columns of an array: the first loads them, the last stores them.

    void tracer_fft_first8_f64(ptr x, ptr y, ptr w, i64 m, i64 step)
    void tracer_fft_middle8_f64(ptr x, ptr y, ptr w, i64 m, i64 l)
    void tracer_fft_last8_f64(ptr x, ptr y, i64 l, i64 step, i64 end, double scale)

Each is a pass of `butterflies` in a module of its own. The first one has l = 1, the last one m = 1 and no roots.
The array has `step` numbers from one row to the next. end: 0, or n, whereupon results go to rows n, n - 1, n - 2 ...
instead of 0, 1, 2 ..., the first one to row 0.
"""

from __future__ import annotations

from typing import Final

from tracer.codegen.llvm.kernels.fft.butterflies import LANES, RADICES, Code, lanes_of, shaped_pass_text, transform
from tracer.codegen.llvm.kernels.fft.layouts import text_of
from tracer.codegen.llvm.kernels.gemm.kernel_loops import loop
from tracer.codegen.llvm.kernels.gemm.kernel_shapes import Shape, attributes

PASS: Final = "tracer_fft_"
COLUMN_RADICES: Final = (16, *RADICES, 1)


def wide_shape(kind: str, vector_bits: int | None = None) -> Shape:
    """Return the shape of whole vectors, or of eight numbers where a vector has fewer."""
    s = Shape(kind, vector_bits)
    return s if s.lanes > LANES else lanes_of(kind, vector_bits)


def column_radices(n: int) -> tuple[int, ...]:
    """Return the radices of a length with no prime factor above 13. A lone radix follows 1, which only loads.

    >>> column_radices(1024), column_radices(96), column_radices(7)
    ((16, 8, 8), (8, 4, 3), (1, 7))
    """
    bits = (n & -n).bit_length() - 1
    odd, found = n >> bits, list[int]()
    passes = -(-bits // 4)
    for i in range(passes):
        found.append(1 << (bits + passes - 1 - i) // passes)
    for radix in (3, 5, 7, 11, 13):
        while odd % radix == 0:
            found.append(radix)
            odd //= radix
    return (1, *found) if len(found) == 1 else tuple(found)


def first_text(radix: int, kind: str, vector_bits: int | None = None) -> str:
    """Return the module of the pass that loads columns."""
    s = wide_shape(kind, vector_bits)
    ends = []
    for turned in (False, True):
        c = Code(s, "w" if turned else "a")
        rows = [c.at("%x.p" if turned else "%x", f"%from.{j}") for j in range(radix)]
        y = transform(c, [c.load_in_turn(row) for row in rows])
        for k, each in enumerate(y):
            w = (c.spread("%w.p", 2 * k - 2), c.spread("%w.p", 2 * k - 1)) if turned and k else None
            c.store_pair(c.times(each, w) if w else each, "%y.p" if turned else "%y", 2 * s.lanes * k)
        ends.append(text_of(c))
    places = "\n".join(f"  %from.{j} = mul i64 %part, {j}" for j in range(radix))
    body = f"""\
  %x.skip = mul i64 %p, %step
  %x.p = getelementptr {s.element}, ptr %x, i64 %x.skip
  %y.skip = mul i64 %p, {2 * s.lanes * radix}
  %y.p = getelementptr {s.element}, ptr %y, i64 %y.skip
  %w.before = sub i64 %p, 1
  %w.skip = mul i64 %w.before, {2 * (radix - 1)}
  %w.p = getelementptr {s.element}, ptr %w, i64 %w.skip
{ends[1]}"""
    return f"""\
declare {s.vector} @llvm.fma.{s.suffix}({s.vector}, {s.vector}, {s.vector})
define void @{PASS}first{radix}_{kind}(ptr noalias %x, ptr noalias %y, ptr noalias %w, i64 %m, i64 %step) #0 {{
entry:
  %part = mul i64 %m, %step
{places}
{ends[0]}
{loop("p", "1", "%m", 1, body)}
  ret void
}}
{attributes(s)}
"""


def middle_text(radix: int, kind: str, vector_bits: int | None = None) -> str:
    """Return the module of a pass between buffers."""
    return shaped_pass_text(radix, wide_shape(kind, vector_bits), f"{PASS}middle{radix}_{kind}")


def last_text(radix: int, kind: str, vector_bits: int | None = None) -> str:
    """Return the module of the pass that stores columns."""
    s = wide_shape(kind, vector_bits)
    c = Code(s, "c")
    y = transform(c, [c.load_pair("%x.q", f"%from.{j}") for j in range(radix)])
    for k, (re, im) in enumerate(y):
        c.store_in_turn((c.mul(re, "%factor"), c.mul(im, "%factor")), c.at("%y.q" if k else "%y.first", f"%to.{k}"))
    places = "\n".join(f"  %from.{j} = mul i64 %line, {j}\n  %to.{j} = mul i64 %apart, {j}" for j in range(radix))
    body = f"""\
  %x.skip = mul i64 %q, {2 * s.lanes}
  %x.q = getelementptr {s.element}, ptr %x, i64 %x.skip
  %q.back = sub i64 %end, %q
  %row = select i1 %is.back, i64 %q.back, i64 %q
  %y.skip = mul i64 %row, %step
  %y.q = getelementptr {s.element}, ptr %y, i64 %y.skip
  %is.zero = icmp eq i64 %q, 0
  %y.first = select i1 %is.zero, ptr %y, ptr %y.q
{text_of(c)}"""
    return f"""\
declare {s.vector} @llvm.fma.{s.suffix}({s.vector}, {s.vector}, {s.vector})
define void @{PASS}last{radix}_{kind}(ptr noalias %x, ptr noalias %y, i64 %l, i64 %step, i64 %end, \
{s.element} %scale) #0 {{
entry:
  %factor.one = insertelement {s.vector} poison, {s.element} %scale, i64 0
  %factor = shufflevector {s.vector} %factor.one, {s.vector} poison, <{s.lanes} x i32> zeroinitializer
  %is.back = icmp ne i64 %end, 0
  %line = mul i64 %l, {2 * s.lanes}
  %after = mul i64 %l, %step
  %before = sub i64 0, %after
  %apart = select i1 %is.back, i64 %before, i64 %after
{places}
{loop("q", "0", "%l", 1, body)}
  ret void
}}
{attributes(s)}
"""


TEXTS: Final = {"first": first_text, "middle": middle_text, "last": last_text}
