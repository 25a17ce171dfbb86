"""Argsort of one row by a radix sort: stable, NaN last, -0 equal to +0.

    i1 tracer_radix_f64(ptr keys, ptr places, ptr spare, i64 n)    places and spare of n i64; n from 8 to 2^32 - 1

The sort moves words: 32 bits of the key above, its position below. Keys are mapped to unsigned integers in their order
and the minimum is subtracted. The uppermost 32 of the remaining bits are kept. A few passes of eleven bits then order
the words, from the least significant digit on (Knuth, The Art of Computer Programming 3, 5.2.5). Keys of 64 bits that
agree in the kept bits are then neighbours. An insertion sort orders them by the whole key. Where that moves too many,
as for a narrow range of values and an outlier, the result is 0. The caller then sorts the row otherwise. Passes whose
digit is the same everywhere are skipped, and a sorted row is only scanned.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tracer.codegen.llvm.kernels.sort.numpy_sort import KINDS, item_size
from tracer.codegen.llvm.toolchain.native_text import expanded, routines

SYMBOL: Final = "tracer_radix_"
_DIGIT: Final = 11  # bits of a pass
_PASSES: Final = -(-32 // _DIGIT)
_LANES: Final = 8
_MOVES: Final = 2  # most moves of insertions for each key


def radix_text(kind: str) -> str:
    """Return the module of one dtype of keys."""
    digits, lanes, words = 1 << _DIGIT, _LANES, f"<{_LANES} x i64>"
    return f"""\
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare i64 @llvm.ctlz.i64(i64, i1)
declare i64 @llvm.smax.i64(i64, i64)
declare i64 @llvm.smin.i64(i64, i64)
declare {words} @llvm.umin.v{lanes}i64({words}, {words})
declare {words} @llvm.umax.v{lanes}i64({words}, {words})
declare i64 @llvm.vector.reduce.umin.v{lanes}i64({words})
declare i64 @llvm.vector.reduce.umax.v{lanes}i64({words})
{_passes()}define i1 @{SYMBOL}{kind}(ptr %keys, ptr noalias %places, ptr noalias %spare, i64 %n) nounwind {{
entry:
  %counts = alloca [{_PASSES * digits} x i32], align 64
  call void @llvm.memset.p0.i64(ptr align 64 %counts, i8 0, i64 {4 * _PASSES * digits}, i1 false)
  %last = sub i64 %n, {lanes}
  br label %look
{_scan(kind)}
{_range(kind)}
{_words(kind)}
{_insertions(kind)}
done:
  ret i1 true
refused:
  ret i1 false
}}
"""


def _scan(kind: str) -> str:
    """Scan the row, positions in order; a sorted row is done."""
    element, size = KINDS[kind], item_size(kind)
    return f"""\
look:
  %l = phi i64 [ 0, %entry ], [ %l.next, %look.on ]
  %largest = phi i64 [ 0, %entry ], [ %first.key, %look.on ]
  %l.at = getelementptr i64, ptr %places, i64 %l
  store i64 %l, ptr %l.at, align 8
  %first.at = getelementptr {element}, ptr %keys, i64 %l
  %first = load {element}, ptr %first.at, align {size}
{_mapped(kind, "first")}
  %descends = icmp ult i64 %first.key, %largest
  br i1 %descends, label %extremes, label %look.on
look.on:
  %l.next = add i64 %l, 1
  %l.more = icmp slt i64 %l.next, %n
  br i1 %l.more, label %look, label %done"""


def _range(kind: str) -> str:
    """Find the range of the keys, and the bits of it that fit a word."""
    element, size = KINDS[kind], item_size(kind)
    lanes, words = _LANES, f"<{_LANES} x i64>"
    return f"""\
extremes:
  %e = phi i64 [ 0, %look ], [ %e.next, %extremes ]
  %low = phi {words} [ splat (i64 -1), %look ], [ %low.next, %extremes ]
  %high = phi {words} [ zeroinitializer, %look ], [ %high.next, %extremes ]
  %e.kept = call i64 @llvm.smin.i64(i64 %e, i64 %last)
  %several.at = getelementptr {element}, ptr %keys, i64 %e.kept
  %several = load <{lanes} x {element}>, ptr %several.at, align {size}
{_mapped(kind, "several", lanes)}
  %low.next = call {words} @llvm.umin.v{lanes}i64({words} %low, {words} %several.key)
  %high.next = call {words} @llvm.umax.v{lanes}i64({words} %high, {words} %several.key)
  %e.next = add i64 %e, {lanes}
  %e.more = icmp slt i64 %e.next, %n
  br i1 %e.more, label %extremes, label %measure
measure:
  %least = call i64 @llvm.vector.reduce.umin.v{lanes}i64({words} %low.next)
  %most = call i64 @llvm.vector.reduce.umax.v{lanes}i64({words} %high.next)
  %range = sub i64 %most, %least
  %zeros = call i64 @llvm.ctlz.i64(i64 %range, i1 false)
  %beyond = sub i64 32, %zeros
  %shift = call i64 @llvm.smax.i64(i64 %beyond, i64 0)
  %bits = sub i64 64, %zeros
  %kept = sub i64 %bits, %shift
  %left.out = shl i64 -1, %shift
  %left.mask = xor i64 %left.out, -1
  br label %word"""


def _words(kind: str) -> str:
    """Make the words and count the digits of each."""
    element, size = KINDS[kind], item_size(kind)
    counts = "\n".join(_count(number) for number in range(_PASSES))
    return f"""\
word:
  %w = phi i64 [ 0, %measure ], [ %w.next, %word ]
  %seen = phi i64 [ 0, %measure ], [ %seen.next, %word ]
  %one.at = getelementptr {element}, ptr %keys, i64 %w
  %one = load {element}, ptr %one.at, align {size}
{_mapped(kind, "one")}
  %above = sub i64 %one.key, %least
  %seen.next = or i64 %seen, %above
  %top = lshr i64 %above, %shift
  %top.placed = shl i64 %top, 32
  %made = or i64 %top.placed, %w
  %made.at = getelementptr i64, ptr %spare, i64 %w
  store i64 %made, ptr %made.at, align 8
{counts}
  %w.next = add i64 %w, 1
  %w.more = icmp slt i64 %w.next, %n
  br i1 %w.more, label %word, label %words.end
words.end:
  %lost = and i64 %seen.next, %left.mask
  %is.whole = icmp eq i64 %lost, 0
  %ordered = call ptr @radix.passes(ptr %spare, ptr %places, ptr %counts, i64 %n, i64 %kept)
  br label %walk"""


def _passes() -> str:
    """Return the routine that orders words digit by digit."""
    digits = 1 << _DIGIT
    values = {"Digit.bits": _DIGIT, "Digit.count": digits, "Digit.mask": digits - 1}
    return expanded(routines(Path(__file__).parents[1] / "ll" / "sort", ("radix_passes",)), values)


def _insertions(kind: str) -> str:
    """Write positions, and insert keys that agree in the words' bits."""
    element, size = KINDS[kind], item_size(kind)
    return f"""\
walk:
  %i = phi i64 [ 0, %words.end ], [ %i.next, %walked ]
  %start = phi i64 [ 0, %words.end ], [ %start.next, %walked ]
  %before = phi i64 [ -1, %words.end ], [ %bits.here, %walked ]
  %spent = phi i64 [ 0, %words.end ], [ %spent.next, %walked ]
  %here.at = getelementptr i64, ptr %ordered, i64 %i
  %here = load i64, ptr %here.at, align 8
  %bits.here = lshr i64 %here, 32
  %position = and i64 %here, {2**32 - 1}
  %position.at = getelementptr i64, ptr %places, i64 %i
  store i64 %position, ptr %position.at, align 8
  %agrees = icmp eq i64 %bits.here, %before
  %start.next = select i1 %agrees, i64 %start, i64 %i
  %is.settled = select i1 %agrees, i1 %is.whole, i1 true
  br i1 %is.settled, label %walked, label %insert
insert:
  %new.at = getelementptr {element}, ptr %keys, i64 %position
  %new = load {element}, ptr %new.at, align {size}
{_mapped(kind, "new")}
  br label %down
down:
  %j = phi i64 [ %i, %insert ], [ %j.below, %pass ]
  %may.move = icmp sgt i64 %j, %start
  br i1 %may.move, label %compare, label %put
compare:
  %j.below = sub i64 %j, 1
  %old.place.at = getelementptr i64, ptr %places, i64 %j.below
  %old.place = load i64, ptr %old.place.at, align 8
  %old.at = getelementptr {element}, ptr %keys, i64 %old.place
  %old = load {element}, ptr %old.at, align {size}
{_mapped(kind, "old")}
  %is.above = icmp ugt i64 %old.key, %new.key
  br i1 %is.above, label %pass, label %put
pass:
  %pass.at = getelementptr i64, ptr %places, i64 %j
  store i64 %old.place, ptr %pass.at, align 8
  br label %down
put:
  %put.at = getelementptr i64, ptr %places, i64 %j
  store i64 %position, ptr %put.at, align 8
  %distance = sub i64 %i, %j
  %spent.here = add i64 %spent, %distance
  %most.spent = mul i64 %n, {_MOVES}
  %is.too.much = icmp ugt i64 %spent.here, %most.spent
  br i1 %is.too.much, label %refused, label %walked
walked:
  %spent.next = phi i64 [ %spent, %walk ], [ %spent.here, %put ]
  %i.next = add i64 %i, 1
  %i.more = icmp slt i64 %i.next, %n
  br i1 %i.more, label %walk, label %done"""


def _count(number: int) -> str:
    """Count one digit of a new word."""
    return f"""\
  %digit{number}.low = lshr i64 %top, {_DIGIT * number}
  %digit{number} = and i64 %digit{number}.low, {(1 << _DIGIT) - 1}
  %slot{number}.at = add i64 %digit{number}, {number << _DIGIT}
  %slot{number} = getelementptr i32, ptr %counts, i64 %slot{number}.at
  %held{number} = load i32, ptr %slot{number}, align 4
  %more{number} = add i32 %held{number}, 1
  store i32 %more{number}, ptr %slot{number}, align 4"""


def _mapped(kind: str, name: str, lanes: int = 1) -> str:
    """Write `%name.key`: `%name` as an unsigned integer of 64 bits in the order of the keys."""
    width, given = int(kind[1:]), f"%{name}"

    def several(type: str) -> str:
        return f"<{lanes} x {type}>" if lanes > 1 else type

    def splat(type: str, value: object) -> str:
        return f"splat ({type} {value})" if lanes > 1 else str(value)

    bits, wide, truth = several(f"i{width}"), several("i64"), several("i1")
    sign = splat(f"i{width}", -(1 << (width - 1)))
    lines, result = [], given
    if kind[0] == "f":
        floats = several(KINDS[kind])
        lines = [
            f"  {given}.nan = fcmp uno {floats} {given}, {given}",
            f"  {given}.plus = fadd {floats} {given}, {splat(KINDS[kind], '0.0')}",  # -0 becomes +0
            f"  {given}.bits = bitcast {floats} {given}.plus to {bits}",
            f"  {given}.signs = ashr {bits} {given}.bits, {splat(f'i{width}', width - 1)}",
            f"  {given}.flip = or {bits} {given}.signs, {sign}",
            f"  {given}.number = xor {bits} {given}.bits, {given}.flip",
            f"  {given}.order = select {truth} {given}.nan, {bits} {splat(f'i{width}', -1)}, {bits} {given}.number",
        ]
        result = f"{given}.order"
    elif kind[0] == "i":
        lines = [f"  {given}.order = xor {bits} {given}, {sign}"]
        result = f"{given}.order"
    widen = f"zext {bits} {result} to {wide}" if width < 64 else f"or {wide} {result}, {splat('i64', 0)}"
    return "\n".join([*lines, f"  {given}.key = {widen}"])
