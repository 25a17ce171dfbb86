"""Triangular systems of one right-hand side by our own kernels, in a module that is compiled once.

    void tracer_system_f64(ptr a, ptr x, i64 n, i64 lower, i64 turned, i64 unit)
    x[n] becomes the y of op(a) y = x, where op(a) is a[n, n] or its transpose, and a its lower or upper triangle.

Rows are read in order. An unknown is its right-hand side less a dot product of its row; in the transpose, a multiple of
an unknown's row is subtracted from the unknowns behind it (Golub & Van Loan 2013, Matrix Computations, 3.1). A step of
a dot product is 64 bytes on every machine, so bits do not depend on them.
"""

from __future__ import annotations

from typing import Final

from tracer.codegen.llvm.kernels.gemm.kernel_loops import keep, kept, loop
from tracer.codegen.llvm.kernels.gemm.kernel_shapes import KINDS, Shape, attributes, fused, intrinsics, mask

NAME: Final = "tracer_system_"
_STEP_BITS: Final = 512
_AT_ONCE: Final = 4  # vectors of sums


def system_call(kind: str, a: str, x: str, sizes: tuple[int, int], flags: tuple[bool, bool, bool], grain: int) -> str:
    """Return the call for a stack of systems. sizes: batch, n. flags: lower, turned, unit. grain: of the stack."""
    numbers = ", ".join(f"i64 {int(x)}" for x in (*sizes, *flags, grain))
    return f"call void @library.system_{kind}({a}, {x}, {numbers})"


def system_definition(kind: str) -> str:
    """Return a loop over a stack of systems, which threads share."""
    element, values = KINDS[kind][0], ("ptr %a", "ptr %x", "i64 %n", "i64 %lower", "i64 %turned", "i64 %unit")
    each = f"""\
  %a.skip = mul i64 %i, %area
  %a.i = getelementptr {element}, ptr %a, i64 %a.skip
  %x.skip = mul i64 %i, %n
  %x.i = getelementptr {element}, ptr %x, i64 %x.skip
  call void @{NAME}{kind}(ptr %a.i, ptr %x.i, i64 %n, i64 %lower, i64 %turned, i64 %unit)"""
    return f"""\
declare void @tracer_share(ptr, ptr, i64, i64)
declare void @{NAME}{kind}(ptr, ptr, i64, i64, i64, i64)
define internal void @library.system_{kind}(ptr %a, ptr %x, i64 %batch, {", ".join(values[2:])}, i64 %grain) #2 {{
entry:
  %given = alloca [{len(values)} x i64], align 8
{keep(*values)}
  call void @tracer_share(ptr @systems.few_{kind}, ptr %given, i64 %batch, i64 %grain)
  ret void
}}
define internal void @systems.few_{kind}(ptr %given, i64 %begin, i64 %end) #2 {{
entry:
{kept(*values)}
  %area = mul i64 %n, %n
{loop("i", "%begin", "%end", 1, each)}
  ret void
}}
"""


def system_text(kind: str, vector_bits: int | None = None) -> str:
    """Return the module of one dtype, for this machine or one like it with vectors of so many bits."""
    machine = Shape(kind, vector_bits)
    s = Shape(kind, vector_bits, _STEP_BITS)
    s.bits = machine.bits
    return f"""\
{intrinsics(s)}
{_dot(s)}
{_less(s)}
{_system(s, kind)}
{attributes(s)}
"""


def _system(s: Shape, kind: str) -> str:
    """Return the loop over unknowns, from the corner of the triangle on."""
    unknown = f"""\
  %back = sub i64 %last, %s
  %i = select i1 %goes.forward, i64 %s, i64 %back
  %row.skip = mul i64 %i, %n
  %row = getelementptr {s.element}, ptr %a, i64 %row.skip
  %behind = add i64 %i, 1
  %begin = select i1 %is.lower, i64 0, i64 %behind
  %end = select i1 %is.lower, i64 %i, i64 %n
  %own = getelementptr {s.element}, ptr %x, i64 %i
  %given = load {s.element}, ptr %own, align {s.size}
  br i1 %is.turned, label %divide, label %take
take:
  %sum = call {s.element} @dot(ptr %row, ptr %x, i64 %begin, i64 %end)
  %taken = fsub {s.element} %given, %sum
  br label %divide
divide:
  %rest = phi {s.element} [ %given, %s.body ], [ %taken, %take ]
  br i1 %is.unit, label %known, label %ratio
ratio:
  %diagonal.at = getelementptr {s.element}, ptr %row, i64 %i
  %diagonal = load {s.element}, ptr %diagonal.at, align {s.size}
  %divided = fdiv {s.element} %rest, %diagonal
  br label %known
known:
  %value = phi {s.element} [ %rest, %divide ], [ %divided, %ratio ]
  store {s.element} %value, ptr %own, align {s.size}
  br i1 %is.turned, label %spread, label %s.end
spread:
  call void @less(ptr %row, ptr %x, i64 %begin, i64 %end, {s.element} %value)
  br label %s.end
s.end:"""
    return f"""\
define void @{NAME}{kind}(ptr %a, ptr %x, i64 %n, i64 %lower, i64 %turned, i64 %unit) #0 {{
entry:
  %is.lower = icmp ne i64 %lower, 0
  %is.turned = icmp ne i64 %turned, 0
  %is.unit = icmp ne i64 %unit, 0
  %goes.forward = xor i1 %is.lower, %is.turned
  %last = sub i64 %n, 1
{loop("s", "0", "%n", 1, unknown)}
  ret void
}}"""


def _load(s: Shape, name: str, at: str, *, masked: bool) -> str:
    if not masked:
        return f"  {name} = load {s.vector}, ptr {at}, align {s.size}"
    given = f"ptr {at}, i32 {s.size}, <{s.lanes} x i1> %mask, {s.vector} zeroinitializer"
    return f"  {name} = call {s.vector} @llvm.masked.load.{s.suffix}.p0({given})"


def _products(s: Shape, i: str, sums: list[str], *, masked: bool = False) -> str:
    """Multiply vectors of the row by x's from `i` on, and add to sums; a new sum's name ends in `.new`."""
    lines = []
    for v, total in enumerate(sums):
        lines += [
            f"  %{i}.{v} = add i64 {'%full' if masked else f'%{i}'}, {v * s.lanes}",
            f"  %{i}.{v}.row = getelementptr {s.element}, ptr %row, i64 %{i}.{v}",
            f"  %{i}.{v}.x = getelementptr {s.element}, ptr %x, i64 %{i}.{v}",
            _load(s, f"%{i}.{v}.a", f"%{i}.{v}.row", masked=masked),
            _load(s, f"%{i}.{v}.b", f"%{i}.{v}.x", masked=masked),
            *fused(s, f"%{total}.new", f"%{i}.{v}.a", f"%{i}.{v}.b", f"%{total}"),
        ]
    return "\n".join(lines)


_PARTS: Final = """\
  %length = sub i64 %end, %begin
  %rest = urem i64 %length, LANES
  %full = sub i64 %end, %rest"""


def _dot(s: Shape) -> str:
    """Return the sum over a part of a row of x times it.

    It runs by four vectors, then by one, then by some lanes.
    """
    several = [f"sum{v}" for v in range(_AT_ONCE)]
    joins = [
        f"  %one.first = fadd {s.vector} %sum0, %sum1",
        f"  %other = fadd {s.vector} %sum2, %sum3",
        f"  %both = fadd {s.vector} %one.first, %other",
    ]
    halves, total, kind = [], "%all", s.vector
    lanes = s.lanes
    while lanes > 1:
        lanes //= 2
        half = f"<{lanes} x {s.element}>"
        for name, first in (("low", 0), ("high", lanes)):
            places = ", ".join(f"i32 {first + lane}" for lane in range(lanes))
            halves.append(f"  %{name}{lanes} = shufflevector {kind} {total}, {kind} poison, <{lanes} x i32> <{places}>")
        halves.append(f"  %sum.of{lanes} = fadd {half} %low{lanes}, %high{lanes}")
        total, kind = f"%sum.of{lanes}", half
    newline = "\n"
    return f"""\
define internal {s.element} @dot(ptr %row, ptr %x, i64 %begin, i64 %end) #0 {{
entry:
{_PARTS.replace("LANES", str(s.lanes))}
  %few = urem i64 %length, {_AT_ONCE * s.lanes}
  %many = sub i64 %end, %few
{
        loop(
            "v",
            "%begin",
            "%many",
            _AT_ONCE * s.lanes,
            _products(s, "v", several),
            [(name, s.vector, "zeroinitializer") for name in several],
        )
    }
{newline.join(joins)}
{loop("w", "%many", "%full", s.lanes, _products(s, "w", ["one"]), [("one", s.vector, "%both")])}
  %is.whole = icmp eq i64 %rest, 0
  br i1 %is.whole, label %lanes, label %some
some:
{mask(s, "%rest")}
{_products(s, "m", ["one"], masked=True).replace("%one.new", "%last")}
  br label %lanes
lanes:
  %all = phi {s.vector} [ %one, %w.done ], [ %last, %some ]
{newline.join(halves)}
  %sum = extractelement {kind} {total}, i64 0
  ret {s.element} %sum
}}"""


def _less(s: Shape) -> str:
    """Return the function that subtracts a multiple of a part of a row from a part of x."""
    newline = "\n"

    def part(i: str, *, masked: bool) -> str:
        place = "%full" if masked else f"%{i}"
        given = f"ptr %{i}.x, i32 {s.size}, <{s.lanes} x i1> %mask"
        store = (
            f"  call void @llvm.masked.store.{s.suffix}.p0({s.vector} %{i}.new, {given})"
            if masked
            else f"  store {s.vector} %{i}.new, ptr %{i}.x, align {s.size}"
        )
        return f"""\
  %{i}.row = getelementptr {s.element}, ptr %row, i64 {place}
  %{i}.x = getelementptr {s.element}, ptr %x, i64 {place}
{_load(s, f"%{i}.a", f"%{i}.row", masked=masked)}
{_load(s, f"%{i}.b", f"%{i}.x", masked=masked)}
{newline.join(fused(s, f"%{i}.new", "%factor", f"%{i}.a", f"%{i}.b"))}
{store}"""

    return f"""\
define internal void @less(ptr %row, ptr %x, i64 %begin, i64 %end, {s.element} %value) #0 {{
entry:
  %negative = fneg {s.element} %value
  %factor.one = insertelement {s.vector} poison, {s.element} %negative, i64 0
  %factor = shufflevector {s.vector} %factor.one, {s.vector} poison, <{s.lanes} x i32> zeroinitializer
{_PARTS.replace("LANES", str(s.lanes))}
{loop("v", "%begin", "%full", s.lanes, part("v", masked=False))}
  %is.whole = icmp eq i64 %rest, 0
  br i1 %is.whole, label %done, label %some
some:
{mask(s, "%rest")}
{part("m", masked=True)}
  br label %done
done:
  ret void
}}"""
