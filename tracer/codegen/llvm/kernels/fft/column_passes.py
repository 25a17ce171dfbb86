"""Passes of Fourier transforms on columns of an array: the first loads them, the last stores them.

    void tracer_fft_first8_f64(ptr x, ptr y, ptr w, i64 m, i64 step, i64 ahead)
    void tracer_fft_middle8_f64(ptr x, ptr y, ptr w, i64 m, i64 l)
    void tracer_fft_last8_f64(ptr x, ptr y, i64 l, i64 step, i64 end, i64 ahead, double scale)
    void tracer_fft_begin8_f64(ptr x, ptr y, ptr w, i64 m, i64 step, i64 swap)
    void tracer_fft_turn8_f64(ptr x, ptr y, i64 l, i64 step, ptr starts, ptr lanes)
    void tracer_fft_end8_f64(ptr x, ptr y, i64 l, i64 step, i64 swap, i64, double scale)

Each is a pass of `butterflies` in a module of its own. A first pass has l = 1, a last one m = 1 and no roots. The array
has `step` numbers from one row to the next. end: 0, or n, whereupon results go to rows n, n - 1, n - 2 ... instead of
0, 1, 2 ..., the first one to row 0. "first" and "last" take as many columns as a vector has numbers, at least eight.
ahead: whether to fetch the next block meanwhile. The passes of `lines`, "begin", "turn" and "end", take eight. They
exchange real and imaginary parts where `swap` holds. "turn" multiplies row k by starts[k], of all columns, and
lanes[k], of each.
"""

from __future__ import annotations

from typing import Final

from tracer.codegen.llvm.kernels.fft.butterflies import (
    LANES,
    RADICES,
    Code,
    Pair,
    lanes_of,
    shaped_pass_text,
    transform,
)
from tracer.codegen.llvm.kernels.fft.layouts import text_of
from tracer.codegen.llvm.kernels.fft.shared_texts import fetched
from tracer.codegen.llvm.kernels.gemm.kernel_loops import loop
from tracer.codegen.llvm.kernels.gemm.kernel_shapes import Shape, attributes

PASS: Final = "tracer_fft_"
COLUMN_RADICES: Final = (16, *RADICES, 1)


def wide_shape(kind: str, vector_bits: int | None = None) -> Shape:
    """Return the shape of whole vectors, or of eight numbers where a vector has fewer."""
    s = Shape(kind, vector_bits)
    return s if s.lanes > LANES else lanes_of(kind, vector_bits)


def column_radices(n: int, most: int = 16) -> tuple[int, ...]:
    """Return the radices of a length with no prime factor above 13. A lone radix follows 1, which only loads.

    most: the largest power of two among them.

    >>> column_radices(1024), column_radices(96), column_radices(7)
    ((16, 8, 8), (8, 4, 3), (1, 7))
    """
    bits = (n & -n).bit_length() - 1
    odd, found = n >> bits, list[int]()
    passes = -(-bits // (most.bit_length() - 1))
    for i in range(passes):
        found.append(1 << (bits + passes - 1 - i) // passes)
    for radix in (3, 5, 7, 11, 13):
        while odd % radix == 0:
            found.append(radix)
            odd //= radix
    return (1, *found) if len(found) == 1 else tuple(found)


def first_text(radix: int, kind: str, vector_bits: int | None = None) -> str:
    """Return the module of the pass that loads columns."""
    return _first(radix, wide_shape(kind, vector_bits), f"{PASS}first{radix}_{kind}", swaps=False)


def begin_text(radix: int, kind: str, vector_bits: int | None = None) -> str:
    """Return the module of the pass that loads columns of a line."""
    return _first(radix, lanes_of(kind, vector_bits), f"{PASS}begin{radix}_{kind}", swaps=True)


def _first(radix: int, s: Shape, name: str, *, swaps: bool) -> str:
    ends = []
    for turned in (False, True):
        c = Code(s, "w" if turned else "a")
        rows = [c.at("%x.p" if turned else "%x", f"%from.{j}") for j in range(radix)]
        x = [c.load_in_turn(row) for row in rows]
        y = transform(c, [_swapped(c, pair) for pair in x] if swaps else x)
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
{"" if swaps else _fetched(s, "%x.p", "from", radix, write=False)}
{ends[1]}"""
    return f"""\
declare {s.vector} @llvm.fma.{s.suffix}({s.vector}, {s.vector}, {s.vector})
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
define void @{name}(ptr noalias %x, ptr noalias %y, ptr noalias %w, i64 %m, i64 %step, i64 %flag) #0 {{
entry:
  %is.swapped = icmp ne i64 %flag, 0
  %is.near = icmp eq i64 %flag, 0
  %part = mul i64 %m, %step
{places}
{ends[0]}
{loop("p", "1", "%m", 1, body)}
  ret void
}}
{attributes(s)}
"""


def _fetched(s: Shape, base: str, offset: str, radix: int, *, write: bool) -> str:
    """Fetch the rows of the next block, unless `%is.near` holds."""
    size, ahead, lines = 2 * s.lanes * s.size, 2 * s.lanes, list[str]()
    for j in range(radix):
        for at in range(0, size, 64):
            name = f"%fetch.{j}.{at}"
            lines.append(fetched(name, s.element, base, f"%{offset}.{j}", ahead + at // s.size, write=write))
    text = "\n".join(lines)
    return f"  br i1 %is.near, label %go, label %fetch\nfetch:\n{text}\n  br label %go\ngo:"


def _swapped(c: Code, x: Pair) -> Pair:
    """Return both parts, exchanged where `%is.swapped` holds."""
    v = c.s.vector
    re, im = (c.let(f"select i1 %is.swapped, {v} {a}, {v} {b}") for a, b in ((x[1], x[0]), (x[0], x[1])))
    return re, im


def middle_text(radix: int, kind: str, vector_bits: int | None = None) -> str:
    """Return the module of a pass between buffers."""
    return shaped_pass_text(radix, wide_shape(kind, vector_bits), f"{PASS}middle{radix}_{kind}")


def last_text(radix: int, kind: str, vector_bits: int | None = None) -> str:
    """Return the module of the pass that stores columns."""
    s = wide_shape(kind, vector_bits)
    c = Code(s, "c")
    for k, pair in enumerate(_transformed(c, radix)):
        c.store_in_turn(_scaled(c, pair), c.at("%y.q" if k else "%y.first", f"%to.{k}"))
    start = """\
  %is.near = icmp eq i64 %ahead, 0
  %is.back = icmp ne i64 %flag, 0
  %before = sub i64 0, %rows
  %after = select i1 %is.back, i64 %before, i64 %rows"""
    place = """\
  %q.back = sub i64 %flag, %q
  %row = select i1 %is.back, i64 %q.back, i64 %q"""
    first = """\
  %is.zero = icmp eq i64 %q, 0
  %y.first = select i1 %is.zero, ptr %y, ptr %y.q
""" + _fetched(s, "%y.q", "to", radix, write=True)
    return _stored(
        c, radix, f"{PASS}last{radix}_{kind}", f"i64 %flag, i64 %ahead, {s.element} %scale", (start, place, first)
    )


def end_text(radix: int, kind: str, vector_bits: int | None = None) -> str:
    """Return the module of the pass that stores columns of a line."""
    s = lanes_of(kind, vector_bits)
    c = Code(s, "c")
    for k, pair in enumerate(_transformed(c, radix)):
        c.store_in_turn(_swapped(c, _scaled(c, pair)), c.at("%y.q", f"%to.{k}"))
    start = "  %is.swapped = icmp ne i64 %flag, 0\n" + _AFTER
    return _stored(
        c, radix, f"{PASS}end{radix}_{kind}", f"i64 %flag, i64 %ahead, {s.element} %scale", (start, _ROW, "")
    )


def turn_text(radix: int, kind: str, vector_bits: int | None = None) -> str:
    """Return the module of the pass that stores columns of a line times roots of unity."""
    s = lanes_of(kind, vector_bits)
    c = Code(s, "c")
    for k, pair in enumerate(_transformed(c, radix)):
        row = c.let(f"add i64 %q, %row.{k}")
        start = c.at("%starts", c.let(f"mul i64 {row}, 2"))
        each = c.load_pair("%lanes", c.let(f"mul i64 {row}, {2 * s.lanes}"))
        w = c.times(each, (c.spread(start, 0), c.spread(start, 1)))
        c.store_in_turn(c.times(pair, w), c.at("%y.q", f"%to.{k}"))
    rows = "\n".join(f"  %row.{k} = mul i64 %l, {k}" for k in range(radix))
    given = "ptr noalias %starts, ptr noalias %lanes"
    return _stored(c, radix, f"{PASS}turn{radix}_{kind}", given, (f"{rows}\n{_AFTER}", _ROW, ""))


_AFTER: Final = "  %after = add i64 %rows, 0"
_ROW: Final = "  %row = add i64 %q, 0"


def _transformed(c: Code, radix: int) -> list[Pair]:
    return transform(c, [c.load_pair("%x.q", f"%from.{j}") for j in range(radix)])


def _scaled(c: Code, x: Pair) -> Pair:
    return c.mul(x[0], "%factor"), c.mul(x[1], "%factor")


def _stored(c: Code, radix: int, name: str, given: str, setup: tuple[str, str, str]) -> str:
    """Return the module of a last pass.

    given: its last parameters. setup: the text of `%after`, the numbers from a result to the next; of `%row`, the row
    of the first result at q; and of further names.
    """
    s, (start, row, more) = c.s, setup
    places = "\n".join(f"  %from.{j} = mul i64 %line, {j}\n  %to.{j} = mul i64 %after, {j}" for j in range(radix))
    factor = f"""\
  %factor.one = insertelement {s.vector} poison, {s.element} %scale, i64 0
  %factor = shufflevector {s.vector} %factor.one, {s.vector} poison, <{s.lanes} x i32> zeroinitializer"""
    body = f"""\
  %x.skip = mul i64 %q, {2 * s.lanes}
  %x.q = getelementptr {s.element}, ptr %x, i64 %x.skip
{row}
  %y.skip = mul i64 %row, %step
  %y.q = getelementptr {s.element}, ptr %y, i64 %y.skip
{more}
{text_of(c)}"""
    return f"""\
declare {s.vector} @llvm.fma.{s.suffix}({s.vector}, {s.vector}, {s.vector})
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
define void @{name}(ptr noalias %x, ptr noalias %y, i64 %l, i64 %step, {given}) #0 {{
entry:
  %line = mul i64 %l, {2 * s.lanes}
  %rows = mul i64 %l, %step
{factor if "%scale" in given else ""}
{start}
{places}
{loop("q", "0", "%l", 1, body)}
  ret void
}}
{attributes(s)}
"""


TEXTS: Final = {
    "first": first_text,
    "middle": middle_text,
    "last": last_text,
    "begin": begin_text,
    "turn": turn_text,
    "end": end_text,
}
