"""Copies between lines of an array and a buffer of eight lines, as LLVM text.

A buffer holds, for each place of the lines, eight real parts and eight imaginary ones.
"""

from __future__ import annotations

from typing import Final

from tracer.codegen.llvm.kernels.fft.butterflies import LANES, Code
from tracer.codegen.llvm.kernels.gemm.kernel_loops import loop
from tracer.codegen.llvm.kernels.gemm.kernel_shapes import Shape

WHOLE: Final = 2 * LANES
"""Numbers at one place of a buffer."""
TILE: Final = LANES // 2
"""Complex numbers of a line in a vector."""
ROWS, BESIDE, APART, BESIDE_REAL = range(4)
"""How lines lie: each in order; side by side; anyhow; side by side, real and imaginary parts in turn."""


def text_of(c: Code) -> str:
    return "\n".join(c.lines)


# Between lines and buffers


def exchanged(c: Code, rows: list[str], d: int) -> list[str]:
    """Return the vectors with blocks of d lanes exchanged between the vectors at i and i + d: a step of a transpose."""
    lanes = range(c.s.lanes)
    low = [lane if not lane & d else c.s.lanes + (lane ^ d) for lane in lanes]
    high = [lane ^ d if not lane & d else c.s.lanes + lane for lane in lanes]
    found = list(rows)
    for i in range(len(rows)):
        if not i & d:
            found[i], found[i + d] = c.shuffle(rows[i], rows[i + d], low), c.shuffle(rows[i], rows[i + d], high)
    return found


def _load_transposed(c: Code, pointers: list[str], element: str) -> list[str]:
    """Return the columns of a square of numbers. Halves of vectors are exchanged as they are loaded."""
    half = c.s.lanes // 2
    at = [c.at(pointer, element) for pointer in pointers]
    low, high = ([c.load_half(pointer, start) for pointer in at] for start in (0, half))
    rows = [c.joined(part[i], part[i + half]) for part in (low, high) for i in range(half)]
    return exchanged(c, exchanged(c, rows, 2), 1)


def transposed(c: Code, rows: list[str]) -> list[str]:
    """Return the columns of eight vectors; of vectors of 16 lanes, the columns of both halves side by side."""
    for d in (4, 2, 1):
        rows = exchanged(c, rows, d)
    return rows


def _switch(bodies: dict[int, str]) -> str:
    """Run the body of one layout of lines."""
    cases = " ".join(f"i64 {mode}, label %mode{mode}" for mode in bodies)
    blocks = "\n".join(f"mode{mode}:\n{body}\n  br label %done" for mode, body in bodies.items())
    return f"  switch i64 %mode, label %done [ {cases} ]\n{blocks}\ndone:"


def _pointers() -> str:
    return "\n".join(
        f"  %slot.{i} = getelementptr ptr, ptr %lanes, i64 {i}\n  %lane.{i} = load ptr, ptr %slot.{i}, align 8"
        for i in range(LANES)
    )


_PLACES: Final = """\
  %is.swapped = icmp ne i64 %swap, 0
  %re = select i1 %is.swapped, i64 LANES, i64 0
  %im = select i1 %is.swapped, i64 0, i64 LANES""".replace("LANES", str(LANES))


def _fetched(c: Code) -> None:
    """Fetch a tile of the lines that stand `%step` numbers further into the second cache."""
    for i in range(c.s.lanes):
        place = c.at(c.at(f"%lane.{i}", "%row.at"), "%step")
        c.lines.append(f"  call void @llvm.prefetch.p0(ptr {place}, i32 0, i32 2, i32 1)")


def load_text(s: Shape) -> str:
    """Return the function that copies places of lines to a buffer.

    step: numbers from one complex number to the next; of lines in order, to a line that is fetched ahead. half: from a
    number's real to its imaginary part. swap: whether to exchange them.
    """
    rows = Code(s, "r")
    _fetched(rows)
    lanes = [f"%lane.{i}" for i in range(LANES)]
    for place, vector in enumerate(_load_transposed(rows, lanes, "%row.at")):
        rows.store(vector, rows.at("%im.row" if place % 2 else "%re.row", place // 2 * WHOLE))
    beside = Code(s, "b")
    for part, name in zip(beside.load_in_turn("%lane.0", "%beside.at"), ("%re.beside", "%im.beside"), strict=True):
        beside.store(part, name)
    real = Code(s, "h")
    real.store(real.load("%lane.0", "%real.at"), "%re.real")
    real.store(real.load("%lane.0", "%real.next"), "%im.real")
    scalars = "\n".join(
        f"  %{part}.at{i} = getelementptr {s.element}, ptr %lane.{i}, i64 %apart.{part}\n"
        f"  %{part}.x{i} = load {s.element}, ptr %{part}.at{i}, align {s.size}\n"
        f"  %{part}.to{i} = getelementptr {s.element}, ptr %{part}.apart, i64 {i}\n"
        f"  store {s.element} %{part}.x{i}, ptr %{part}.to{i}, align {s.size}"
        for i in range(LANES)
        for part in ("re", "im")
    )
    return f"""\
define internal void @load(ptr noalias %buffer, ptr %lanes, i64 %mode, i64 %count, i64 %step, i64 %half, \
i64 %swap) #0 {{
entry:
{_PLACES}
{_pointers()}
{_layouts(s, text_of(rows), text_of(beside), text_of(real), scalars)}
  ret void
}}"""


def _layouts(s: Shape, rows: str, beside: str, real: str, scalars: str) -> str:
    """Loop over places, in each layout of lines."""
    return _switch({
        ROWS: f"  %last = sub i64 %count, {TILE}\n" + loop("t", "0", "%count", TILE, f"""\
  %place = call i64 @llvm.smin.i64(i64 %t, i64 %last)
  %row.at = mul i64 %place, 2
{_parts(s, "row", "%place")}
{rows}"""),
        BESIDE: loop("v", "0", "%count", 1, f"""\
  %beside.at = mul i64 %v, %step
{_parts(s, "beside", "%v")}
{beside}"""),
        APART: loop("u", "0", "%count", 1, f"""\
  %apart.re = mul i64 %u, %step
  %apart.im = add i64 %apart.re, %half
{_parts(s, "apart", "%u")}
{scalars}"""),
        BESIDE_REAL: loop("x", "0", "%count", 1, f"""\
  %real.at = mul i64 %x, %step
  %real.next = add i64 %real.at, %half
{_parts(s, "real", "%x")}
{real}"""),
    })  # fmt: skip


def _parts(s: Shape, name: str, place: str) -> str:
    """Point to the real and the imaginary parts at a place of the buffer."""
    return f"""\
  %{name}.skip = mul i64 {place}, {WHOLE}
  %{name}.both = getelementptr {s.element}, ptr %buffer, i64 %{name}.skip
  %re.{name} = getelementptr {s.element}, ptr %{name}.both, i64 %re
  %im.{name} = getelementptr {s.element}, ptr %{name}.both, i64 %im"""


def store_text(s: Shape) -> str:
    """Return the function that copies a buffer, times a factor, to lines; it has the parameters of `load`."""
    rows = Code(s, "r")
    _fetched(rows)
    columns = [
        rows.mul(rows.load(rows.at("%im.row" if place % 2 else "%re.row", place // 2 * WHOLE)), "%factor")
        for place in range(LANES)
    ]
    for i, row in enumerate(transposed(rows, columns)):
        rows.store(row, f"%lane.{i}", "%row.at")
    beside = Code(s, "b")
    re, im = (beside.mul(beside.load(f"%{part}.beside"), "%factor") for part in ("re", "im"))
    beside.store_in_turn((re, im), "%lane.0", "%beside.at")
    real = Code(s, "h")
    real.store(real.mul(real.load("%re.real"), "%factor"), "%lane.0", "%real.at")
    real.store(real.mul(real.load("%im.real"), "%factor"), "%lane.0", "%real.next")
    scalars = "\n".join(
        f"  %{part}.from{i} = getelementptr {s.element}, ptr %{part}.apart, i64 {i}\n"
        f"  %{part}.x{i} = load {s.element}, ptr %{part}.from{i}, align {s.size}\n"
        f"  %{part}.y{i} = fmul {s.element} %{part}.x{i}, %scale\n"
        f"  %{part}.at{i} = getelementptr {s.element}, ptr %lane.{i}, i64 %apart.{part}\n"
        f"  store {s.element} %{part}.y{i}, ptr %{part}.at{i}, align {s.size}"
        for i in range(LANES)
        for part in ("re", "im")
    )
    return f"""\
define internal void @store(ptr noalias %buffer, ptr %lanes, i64 %mode, i64 %count, i64 %step, i64 %half, i64 %swap, \
{s.element} %scale) #0 {{
entry:
{_PLACES}
  %factor.one = insertelement {s.vector} poison, {s.element} %scale, i64 0
  %factor = shufflevector {s.vector} %factor.one, {s.vector} poison, <{LANES} x i32> zeroinitializer
{_pointers()}
{_layouts(s, text_of(rows), text_of(beside), text_of(real), scalars)}
  ret void
}}"""
