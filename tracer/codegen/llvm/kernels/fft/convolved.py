"""Transforms of lines of any length by convolution, as LLVM text.

With c[j] = exp(-πi j² / n), a transform is c[k] Σ_j (x[j] c[j]) conj(c[k - j]). Transforms of a longer line compute
this convolution (Bluestein 1970, IEEE Trans. Audio Electroacoust. 18(4)).
"""

from __future__ import annotations

from pathlib import Path

from tracer.codegen.llvm.kernels.fft.butterflies import LANES, Code, Pair
from tracer.codegen.llvm.kernels.fft.layouts import text_of
from tracer.codegen.llvm.kernels.fft.shared_texts import GIVEN, freed, memory, plan_offsets, planned
from tracer.codegen.llvm.kernels.gemm.kernel_loops import kept, loop
from tracer.codegen.llvm.kernels.gemm.kernel_shapes import Shape
from tracer.codegen.llvm.toolchain.native_text import expanded, routines


def convolution_texts(s: Shape) -> str:
    """Return `some.chirps`, a thread's part of lines, and all that it calls but `line`."""
    return "\n".join((_turned_in(s), _turned_out(s), _mirrored(s), _chirp(s), _some_chirps(s)))


def _blocks(count: str, body: str) -> str:
    """Loop over blocks of eight places, the last of which ends at the count; `%two` is the place's number of parts."""
    return f"  %last = sub i64 {count}, {LANES}\n" + loop("t", "0", count, LANES, f"""\
  %place = call i64 @llvm.smin.i64(i64 %t, i64 %last)
  %two = mul i64 %place, 2
{body}""")  # fmt: skip


def _exchanged(c: Code, x: Pair, flag: str) -> Pair:
    """Return both parts, exchanged where the flag holds."""
    v = c.s.vector
    re, im = ((x[0], x[1]), (x[1], x[0]))
    return c.let(f"select i1 {flag}, {v} {re[1]}, {v} {re[0]}"), c.let(f"select i1 {flag}, {v} {im[1]}, {v} {im[0]}")


def _turned_in(s: Shape) -> str:
    """Return the functions that write y = x w of a line and zeros behind it: for complex and for real x."""
    c = Code(s, "c")
    x = _exchanged(c, c.load_in_turn("%x", "%two"), "%is.back")
    c.store_in_turn(c.times(x, c.load_in_turn("%w", "%two")), "%y", "%two")
    r = Code(s, "r")
    real, w = r.load("%x", "%place"), r.load_in_turn("%w", "%two")
    r.store_in_turn((r.mul(real, w[0]), r.mul(real, w[1])), "%y", "%two")
    zeros = f"""\
  %from = mul i64 %n, 2
  %until = mul i64 %m, 2
  %left = sub i64 %until, %from
  %bytes = mul i64 %left, {s.size}
  %behind = getelementptr {s.element}, ptr %y, i64 %from
  call void @llvm.memset.p0.i64(ptr %behind, i8 0, i64 %bytes, i1 false)
  ret void
}}"""
    return f"""\
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
define internal void @turned.in(ptr %x, ptr noalias %y, ptr noalias %w, i64 %n, i64 %m, i1 %is.back) #0 {{
entry:
{_blocks("%n", text_of(c))}
{zeros}
define internal void @turned.in.real(ptr noalias %x, ptr noalias %y, ptr noalias %w, i64 %n, i64 %m) #0 {{
entry:
{_blocks("%n", text_of(r))}
{zeros}"""


def _turned_out(s: Shape) -> str:
    """Return the functions that write y = scale x w, complex and real, and x = x w of blocks of eight places."""
    scaled, texts = {}, {}
    for name in ("c", "r"):
        code = scaled[name] = Code(s, name)
        found = code.times(code.load_in_turn("%x", "%two"), code.load_in_turn("%w", "%two"))
        factor = code.spread("%scale", 0)
        found = code.mul(found[0], factor), code.mul(found[1], factor)
        if name == "c":
            code.store_in_turn(_exchanged(code, found, "%is.back"), "%y", "%two")
        else:
            code.store(found[1], "%y", "%place")
        texts[name] = text_of(code)
    p = Code(s, "p")
    p.store_in_turn(p.times(p.load_in_turn("%x", "%two"), p.load_in_turn("%w", "%two")), "%x", "%two")
    return f"""\
define internal void @turned.out(ptr noalias %x, ptr noalias %y, ptr noalias %w, i64 %n, ptr %scale, i1 %is.back) #0 {{
entry:
{_blocks("%n", texts["c"])}
  ret void
}}
define internal void @turned.out.real(ptr noalias %x, ptr noalias %y, ptr noalias %w, i64 %n, ptr %scale) #0 {{
entry:
{_blocks("%n", texts["r"])}
  ret void
}}
define internal void @multiplied(ptr noalias %x, ptr noalias %w, i64 %n) #0 {{
entry:
{_blocks("%n", text_of(p))}
  ret void
}}"""


def _mirrored(s: Shape) -> str:
    """Return the function that extends n // 2 + 1 numbers to a Hermitian line, with parts exchanged."""
    e = s.element
    body = f"""\
  %mirror = sub i64 %n, %j
  %is.behind = icmp sgt i64 %j, %mirror
  %k = select i1 %is.behind, i64 %mirror, i64 %j
  %k.at = mul i64 %k, 2
  %k.im = add i64 %k.at, 1
  %re.at = getelementptr {e}, ptr %x, i64 %k.at
  %im.at = getelementptr {e}, ptr %x, i64 %k.im
  %re = load {e}, ptr %re.at, align {s.size}
  %im = load {e}, ptr %im.at, align {s.size}
  %less = fneg {e} %im
  %im.here = select i1 %is.behind, {e} %less, {e} %im
  %is.zero = icmp eq i64 %j, 0
  %is.middle = icmp eq i64 %j, %mirror
  %is.end = or i1 %is.zero, %is.middle
  %im.known = select i1 %is.end, {e} 0.0, {e} %im.here
  %j.at = mul i64 %j, 2
  %j.im = add i64 %j.at, 1
  %to.re = getelementptr {e}, ptr %y, i64 %j.at
  %to.im = getelementptr {e}, ptr %y, i64 %j.im
  store {e} %im.known, ptr %to.re, align {s.size}
  store {e} %re, ptr %to.im, align {s.size}"""
    return f"""\
define internal void @mirrored(ptr noalias %x, ptr noalias %y, i64 %n) #0 {{
entry:
{loop("j", "0", "%n", 1, body)}
  ret void
}}"""


def _chirp(s: Shape) -> str:
    """Return the function of one line as a convolution."""
    values = {**plan_offsets(), "Line.element": s.element}
    return expanded(routines(Path(__file__).parents[1] / "ll" / "fft", ("chirp",)), values)


def _some_chirps(s: Shape) -> str:
    """Return the function of a thread's part of lines that are convolved."""
    body = f"""\
  %from.at = mul i64 %i, %from.line
  %to.at = mul i64 %i, %to.line
  %from = getelementptr {s.element}, ptr %source, i64 %from.at
  %to = getelementptr {s.element}, ptr %target, i64 %to.at
  call void @chirp(ptr %from, ptr %to, ptr %memory, ptr %plan, i64 %kind, i64 %bits, i64 %grain)"""
    return f"""\
define internal void @some.chirps(ptr %given, i64 %begin, i64 %end) #0 {{
entry:
{kept(*GIVEN)}
{planned("h", "chirped")}
  %whole = mul i64 %chirped, 2
  %halved = udiv i64 %chirped, 2
  %half.places = add i64 %halved, 1
  %half = mul i64 %half.places, 2
  %is.r2c = icmp eq i64 %kind, 2
  %is.c2r = icmp eq i64 %kind, 3
  %from.plain = select i1 %is.r2c, i64 %chirped, i64 %whole
  %from.line = select i1 %is.c2r, i64 %half, i64 %from.plain
  %to.plain = select i1 %is.r2c, i64 %half, i64 %whole
  %to.line = select i1 %is.c2r, i64 %chirped, i64 %to.plain
  %is.given = icmp ne ptr %work, null
  %three = mul i64 %h, 6
  %own = select i1 %is.given, i64 0, i64 %three
{memory(s, "own.lines", "%own")}
  %memory = select i1 %is.given, ptr %work, ptr %own.lines
{loop("i", "%begin", "%end", 1, body)}
{freed("own.lines")}
  ret void
}}"""
