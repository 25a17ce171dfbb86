"""Transforms of real lines from complex ones of half the length, and back, as LLVM text.

The complex line has the transform x[k] = even[k] + i odd[k]. Here even and odd are the transforms of the numbers at
even and at odd places. The real line has even[k] + exp(-2πi k / 2h) odd[k] at k < h. Both follow from x[k] and x[h -
k].
"""

from __future__ import annotations

from typing import Final

from tracer.codegen.llvm.kernels.fft.butterflies import LANES, Code, Pair
from tracer.codegen.llvm.kernels.fft.layouts import WHOLE, text_of
from tracer.codegen.llvm.kernels.gemm.kernel_loops import loop
from tracer.codegen.llvm.kernels.gemm.kernel_shapes import Shape


def real_texts(s: Shape, one: Shape) -> str:
    """Return `apart` and `together` of buffers, and `row.apart` and `row.together` of single lines.

    one: the shape of single numbers.
    """
    return "\n".join((_apart(s), _together(s), row_apart(s, one), row_together(s, one)))


def _split(c: Code, a: Pair, b: Pair, w: Pair) -> tuple[Pair, Pair]:
    """Return the results at k and h - k of real lines from the complex lines' results, and exp(-2πi k / 2h)."""
    half = c.constant(0.5)
    even = c.mul(c.add(a[0], b[0]), half), c.mul(c.sub(a[1], b[1]), half)
    odd = c.times((c.mul(c.add(a[1], b[1]), half), c.mul(c.sub(b[0], a[0]), half)), w)
    return c.plus(even, odd), (c.sub(even[0], odd[0]), c.sub(odd[1], even[1]))


def _joined(c: Code, a: Pair, b: Pair, w: Pair) -> tuple[Pair, Pair]:
    """Return the complex numbers at k and h - k whose inverse transform has the reals at even and odd places."""
    total, rest = (c.add(a[0], b[0]), c.sub(a[1], b[1])), (c.sub(a[0], b[0]), c.add(a[1], b[1]))
    turned = c.times(rest, (w[0], c.neg(w[1])))
    return c.more_turned(total, turned), (c.add(total[0], turned[1]), c.sub(turned[0], total[1]))


_ENDS: Final = f"""\
  %whole = mul i64 %h, {WHOLE}
  %middle = udiv i64 %h, 2
  %pairs = add i64 %middle, 1"""


def _apart(s: Shape) -> str:
    """Return the function that makes h + 1 results of real lines from h of complex ones."""
    c = Code(s, "c")
    w = c.spread("%w.k", 0), c.spread("%w.k", 1)
    one, other = _split(c, c.load_pair("%x", "%at"), c.load_pair("%x", "%back"), w)
    c.store_pair(one, "%y", "%at")
    c.store_pair(other, "%y", "%to")
    body = f"""\
  %at = mul i64 %k, {WHOLE}
  %to = sub i64 %whole, %at
  %is.first = icmp eq i64 %k, 0
  %back = select i1 %is.first, i64 0, i64 %to
  %w.at = mul i64 %k, 2
  %w.k = getelementptr {s.element}, ptr %w, i64 %w.at
{text_of(c)}"""
    return f"""\
define internal void @apart(ptr noalias %x, ptr noalias %y, ptr noalias %w, i64 %h) #0 {{
entry:
{_ENDS}
{loop("k", "0", "%pairs", 1, body)}
  ret void
}}"""


def _together(s: Shape) -> str:
    """Return the inverse of `apart` times 2, with parts exchanged; the imaginary parts at both ends are not read."""
    ends, c = Code(s, "e"), Code(s, "c")
    first, last = ends.load("%x"), ends.load("%x", "%whole")
    ends.store(ends.add(first, last), "%y", LANES)
    ends.store(ends.sub(first, last), "%y", 0)
    w = c.spread("%w.k", 0), c.spread("%w.k", 1)
    one, other = _joined(c, c.load_pair("%x", "%at"), c.load_pair("%x", "%back"), w)
    c.store_pair(one[::-1], "%y", "%at")
    c.store_pair(other[::-1], "%y", "%back")
    body = f"""\
  %at = mul i64 %k, {WHOLE}
  %back = sub i64 %whole, %at
  %w.at = mul i64 %k, 2
  %w.k = getelementptr {s.element}, ptr %w, i64 %w.at
{text_of(c)}"""
    return f"""\
define internal void @together(ptr noalias %x, ptr noalias %y, ptr noalias %w, i64 %h) #0 {{
entry:
{_ENDS}
{text_of(ends)}
{loop("k", "1", "%pairs", 1, body)}
  ret void
}}"""


# Halves of one line in memory: places side by side, and the last ones one by one. In place, pairs that are left over
# from vectors are single. Elsewhere the last vector takes some pairs again.


def _row_pairs(s: Shape, one: Shape, *, joins: bool) -> str:
    """Loop over pairs of places k and h - k of a line."""
    to, start = ("%y", 1) if joins else ("%x", 0)

    def several() -> Code:
        c = Code(s, "v")
        a, w = c.load_in_turn("%x", "%v.at"), c.load_in_turn("%w", "%v.at")
        b = c.backwards(c.load_in_turn("%x", "%v.back"))
        first, second = (_joined if joins else _split)(c, a, b, w)
        if joins:
            first, second = first[::-1], second[::-1]
        c.store_in_turn(first, to, "%v.at")
        c.store_in_turn(c.backwards(second), to, "%v.back")
        return c

    def single() -> Code:
        c = Code(one, "s")
        a, b = ((c.load("%x", at), c.load("%x", after)) for at, after in (("%s.at", "%s.after"), ("%s.back", "%s.end")))
        first, second = (_joined if joins else _split)(c, a, b, (c.load("%w", "%s.at"), c.load("%w", "%s.after")))
        if joins:
            first, second = first[::-1], second[::-1]
        for pair, at, after in ((first, "%s.at", "%s.after"), (second, "%s.back", "%s.end")):
            c.store(pair[0], to, at)
            c.store(pair[1], to, after)
        return c

    of_several = f"""\
  %v.down = sub i64 %v.last, %v
  %v.is.in = icmp sge i64 %v.down, {start}
  %v.start = select i1 %v.is.in, i64 %v.down, i64 {start}
  %v.at = mul i64 %v.start, 2
  %v.from = sub i64 %h, %v.start
  %v.low = sub i64 %v.from, {s.lanes - 1}
  %v.back = mul i64 %v.low, 2
{text_of(several())}"""
    of_one = f"""\
  %s.at = mul i64 %s, 2
  %s.after = add i64 %s.at, 1
  %s.from = sub i64 %h, %s
  %s.back = mul i64 %s.from, 2
  %s.end = add i64 %s.back, 1
{text_of(single())}"""
    return f"""\
  %below = add i64 %h, 1
  %half = udiv i64 %below, 2
  %count = sub i64 %half, {start}
  %rest = urem i64 %count, {s.lanes}
  %is.short = icmp slt i64 %count, {s.lanes}
  %is.single = or i1 %is.short, {"false" if joins else "true"}
  %singles = select i1 %is.single, i64 %rest, i64 0
  %stop = sub i64 %half, %singles
  %v.last = sub i64 %stop, {s.lanes}
  %v.count = sub i64 %stop, {start}
  %middle = udiv i64 %h, 2
  %end = add i64 %middle, 1
{loop("v", "0", "%v.count", s.lanes, of_several)}
{loop("s", "%stop", "%end", 1, of_one)}"""


def row_apart(s: Shape, one: Shape) -> str:
    """Return `apart` of one line in place, with room for h + 1 results.

    Vectors begin at the first result, which stands for the last one. Both ends are written anew: they may be infinite.
    """
    e = s.element
    return f"""\
define internal void @row.apart(ptr %x, ptr %w, i64 %h) #0 {{
entry:
  %first.im = getelementptr {e}, ptr %x, i64 1
  %re = load {e}, ptr %x, align {s.size}
  %im = load {e}, ptr %first.im, align {s.size}
  %last = mul i64 %h, 2
  %last.re = getelementptr {e}, ptr %x, i64 %last
  %last.im = getelementptr {e}, ptr %last.re, i64 1
  %sum = fadd {e} %re, %im
  %less = fsub {e} %re, %im
  store {e} %re, ptr %last.re, align {s.size}
  store {e} %im, ptr %last.im, align {s.size}
{_row_pairs(s, one, joins=False)}
  store {e} %sum, ptr %x, align {s.size}
  store {e} 0.0, ptr %first.im, align {s.size}
  store {e} %less, ptr %last.re, align {s.size}
  store {e} 0.0, ptr %last.im, align {s.size}
  ret void
}}"""


def row_together(s: Shape, one: Shape) -> str:
    """Return the routine `together` for a single line, with its result in other memory."""
    e = s.element
    return f"""\
define internal void @row.together(ptr %x, ptr %y, ptr %w, i64 %h) #0 {{
entry:
  %last = mul i64 %h, 2
  %x.last = getelementptr {e}, ptr %x, i64 %last
  %re = load {e}, ptr %x, align {s.size}
  %re.last = load {e}, ptr %x.last, align {s.size}
  %sum = fadd {e} %re, %re.last
  %less = fsub {e} %re, %re.last
  %y.im = getelementptr {e}, ptr %y, i64 1
  store {e} %less, ptr %y, align {s.size}
  store {e} %sum, ptr %y.im, align {s.size}
{_row_pairs(s, one, joins=True)}
  ret void
}}"""
