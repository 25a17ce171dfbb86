"""LU of a panel of columns with partial pivoting, and systems of its unit triangle: kernels for `linalg.lu`.

A panel lies by columns, `%ld` elements apart, so rows are lanes; rows up to a whole number of vectors are zeros. Eight
columns are factored at a time (Golub & Van Loan 2013, Matrix Computations, 3.4.2, as a left-looking block algorithm).
The product with the columns before them is subtracted with its sums in registers. Then each column is searched, scaled,
and subtracted from the later columns of the eight. The pivot is the first of the largest elements, as in LAPACK; NaN is
never chosen.
"""

from __future__ import annotations

from typing import Final

from tracer.codegen.llvm.kernels.gemm.kernel_loops import loop
from tracer.codegen.llvm.kernels.gemm.kernel_shapes import Shape, fused
from tracer.codegen.llvm.kernels.transpose import SYMBOL

BLOCK: Final = 64  # columns of a panel, at most
_EIGHT: Final = 8  # columns factored at once, and rows solved for at once
_AHEAD: Final = 4  # vectors in an iteration of a search
_MIN_NORMAL: Final = {"f32": "0x3810000000000000", "f64": "0x0010000000000000"}


def at(s: Shape, name: str, base: str, row: str, step: str, column: str) -> str:
    """Write `name`: the address of the element at row * step + column."""
    return f"""\
  {name}.row = mul i64 {row}, {step}
  {name}.skip = add i64 {name}.row, {column}
  {name} = getelementptr {s.element}, ptr {base}, i64 {name}.skip"""


def everywhere(s: Shape, name: str, value: str) -> str:
    """Write `name`: a vector of a scalar."""
    return f"""\
  {name}.one = insertelement {s.vector} poison, {s.element} {value}, i64 0
  {name} = shufflevector {s.vector} {name}.one, {s.vector} poison, <{s.lanes} x i32> zeroinitializer"""


def panel_kernels(kind: str, vector_bits: int | None) -> str:
    """Return the functions of `linalg.lu`: @solve, and @panel with all that it calls."""
    s = Shape(kind, vector_bits)
    table = Shape(kind, vector_bits)
    table.lanes, table.vector = _EIGHT, f"<{_EIGHT} x {s.element}>"
    table.suffix = f"v{_EIGHT}f{8 * s.size}"
    declared = {f"declare {x.vector} @llvm.fma.{x.suffix}({', '.join([x.vector] * 3)})" for x in (s, table)}
    return "\n".join([
        *sorted(declared),
        f"declare {s.vector} @llvm.fabs.{s.suffix}({s.vector})",
        f"declare {s.element} @llvm.fabs.f{8 * s.size}({s.element})",
        f"declare {s.element} @llvm.vector.reduce.fmax.{s.suffix}({s.vector})",
        f"declare i{s.lanes} @llvm.cttz.i{s.lanes}(i{s.lanes}, i1)",
        _solve(s, "solve", solve_vectors(s)), _solve(table, "solve.table", 1),
        _take(s), _largest(s), _scale(s, kind), _less(s), _eight(s), _exchange(s), _panel(s),
    ])  # fmt: skip


def solve_vectors(s: Shape) -> int:
    """Return the vectors of columns that are solved for at once: eight rows of sums in each."""
    return 2 if s.vectors > 2 else 1


def _solve(s: Shape, name: str, vectors: int) -> str:
    """Return the function for x = L^-1 x of `%w` rows and `vectors` of columns; L is the unit triangle of p.

    Rows beyond `%w`, up to a multiple of eight, are computed but never read.
    """
    lines, ends = [], []
    rows, columns = range(_EIGHT), range(vectors)
    for r in rows:
        lines.append(f"  %row{r} = add i64 %i, {r}\n{at(s, f'%x{r}', '%x', f'%row{r}', '%step', '0')}")
        for v in columns:
            lines.append(f"  %x{r}.{v} = getelementptr {s.vector}, ptr %x{r}, i64 {v}")
            lines.append(f"  %given{r}.{v} = load {s.vector}, ptr %x{r}.{v}, align {s.size}")
    body = [at(s, "%l", "%p", "%k", "%ld", "%i"), at(s, "%known", "%x", "%k", "%step", "0")]
    for v in columns:
        body.append(f"  %known{v}.at = getelementptr {s.vector}, ptr %known, i64 {v}")
        body.append(f"  %known{v} = load {s.vector}, ptr %known{v}.at, align {s.size}")
    for r in rows:
        body.append(_less_of(s, f"%l{r}", "%l", r))
        for v in columns:
            body += fused(s, f"%sum{r}.{v}.new", f"%l{r}", f"%known{v}", f"%sum{r}.{v}")
    carried = [(f"sum{r}.{v}", s.vector, f"%given{r}.{v}") for r in rows for v in columns]
    found = {(r, v): f"%sum{r}.{v}" for r in rows for v in columns}
    for k in rows:
        ends.append(f"  %row.of{k} = add i64 %i, {k}\n{at(s, f'%own{k}', '%p', f'%row.of{k}', '%ld', '%i')}")
        for r in range(k + 1, _EIGHT):
            ends.append(_less_of(s, f"%own{k}.{r}", f"%own{k}", r))
            for v in columns:
                ends += fused(s, f"%less{k}.{r}.{v}", f"%own{k}.{r}", found[k, v], found[r, v])
                found[r, v] = f"%less{k}.{r}.{v}"
    for r in rows:
        ends += [f"  store {s.vector} {found[r, v]}, ptr %x{r}.{v}, align {s.size}" for v in columns]
    newline = "\n"
    inner = f"{newline.join(lines)}\n{loop('k', '0', '%i', 1, newline.join(body), carried)}\n{newline.join(ends)}"
    return f"""\
define internal void @{name}(ptr %p, i64 %ld, i64 %w, ptr %x, i64 %step) #0 {{
{loop("i", "0", "%w", _EIGHT, inner)}
  ret void
}}"""


def _less_of(s: Shape, name: str, base: str, place: int) -> str:
    """Write `name`: a vector of the negative of an element."""
    return f"""\
  {name}.at = getelementptr {s.element}, ptr {base}, i64 {place}
  {name}.value = load {s.element}, ptr {name}.at, align {s.size}
  {name}.less = fneg {s.element} {name}.value
{everywhere(s, name, f"{name}.less")}"""


def _take(s: Shape) -> str:
    """Return the function that subtracts the columns before from eight columns, in rows from `%first` on.

    u: the upper factor's negative in these columns, [first, 8].
    """
    columns, vectors = range(_EIGHT), range(s.vectors if s.vectors > 2 else 1)
    lines, body, ends = [], [], []
    for c in columns:
        lines.append(f"  %column{c} = add i64 %first, {c}\n{at(s, f'%x{c}', '%p', f'%column{c}', '%ld', '%i')}")
        for v in vectors:
            lines.append(f"  %x{c}.{v} = getelementptr {s.vector}, ptr %x{c}, i64 {v}")
            lines.append(f"  %given{c}.{v} = load {s.vector}, ptr %x{c}.{v}, align {s.size}")
    body += [at(s, "%l", "%p", "%k", "%ld", "%i"), at(s, "%u.at", "%u", "%k", str(_EIGHT), "0")]
    for v in vectors:
        body.append(f"  %l{v}.at = getelementptr {s.vector}, ptr %l, i64 {v}")
        body.append(f"  %l{v} = load {s.vector}, ptr %l{v}.at, align {s.size}")
    for c in columns:
        body.append(f"  %u{c}.at = getelementptr {s.element}, ptr %u.at, i64 {c}")
        body.append(f"  %u{c}.value = load {s.element}, ptr %u{c}.at, align {s.size}")
        body.append(everywhere(s, f"%u{c}", f"%u{c}.value"))
        for v in vectors:
            body += fused(s, f"%sum{c}.{v}.new", f"%u{c}", f"%l{v}", f"%sum{c}.{v}")
            ends.append(f"  store {s.vector} %sum{c}.{v}, ptr %x{c}.{v}, align {s.size}")
    carried = [(f"sum{c}.{v}", s.vector, f"%given{c}.{v}") for c in columns for v in vectors]
    newline = "\n"
    inner = f"{newline.join(lines)}\n{loop('k', '0', '%first', 1, newline.join(body), carried)}\n{newline.join(ends)}"
    return f"""\
define internal void @take(ptr %p, i64 %ld, i64 %first, i64 %rows, ptr %u) #0 {{
{loop("i", "%first", "%rows", s.lanes * len(vectors), inner)}
  ret void
}}"""


def _lanes_from(s: Shape, place: str, least: str, op: str) -> str:
    """Write `%mask`: the lanes of the vector at `place` whose rows compare by `op` with `least`."""
    lanes = f"<{s.lanes} x i64>"
    numbers = ", ".join(f"i64 {lane}" for lane in range(s.lanes))
    return f"""\
  %apart = sub i64 {least}, {place}
  %apart.one = insertelement {lanes} poison, i64 %apart, i64 0
  %apart.all = shufflevector {lanes} %apart.one, {lanes} poison, <{s.lanes} x i32> zeroinitializer
  %mask = icmp {op} {lanes} <{numbers}>, %apart.all"""


def _largest(s: Shape) -> str:
    """Return the function that finds the first row from `%j` on where the column is largest; `%j` if all are NaN."""
    ones = ", ".join([f"{s.element} -1.0"] * s.lanes)
    parts = range(_AHEAD)
    body = []
    for v in parts:
        body += [
            f"  %at{v} = getelementptr {s.vector}, ptr %at, i64 {v}",
            f"  %value{v} = load {s.vector}, ptr %at{v}, align {s.size}",
            f"  %size{v} = call {s.vector} @llvm.fabs.{s.suffix}({s.vector} %value{v})",
            f"  %above{v} = fcmp ogt {s.vector} %size{v}, %most{v}",
            f"  %most{v}.new = select <{s.lanes} x i1> %above{v}, {s.vector} %size{v}, {s.vector} %most{v}",
        ]
    carried = [(f"most{v}", s.vector, "%head.sizes" if v == 0 else f"<{ones}>") for v in parts]
    search = "\n".join(["  %at = getelementptr %T, ptr %x, i64 %i".replace("%T", s.element), *body])
    joins = []
    for a, b, name in (("most0", "most1", "both0"), ("most2", "most3", "both1"), ("both0", "both1", "most")):
        joins.append(f"  %{name}.above = fcmp ogt {s.vector} %{a}, %{b}")
        joins.append(f"  %{name} = select <{s.lanes} x i1> %{name}.above, {s.vector} %{a}, {s.vector} %{b}")
    newline = "\n"
    return f"""\
define internal i64 @largest(ptr %x, i64 %j, i64 %rows) #0 {{
entry:
  %head = and i64 %j, {-s.lanes}
  %head.at = getelementptr {s.element}, ptr %x, i64 %head
  %head.value = load {s.vector}, ptr %head.at, align {s.size}
  %head.size = call {s.vector} @llvm.fabs.{s.suffix}({s.vector} %head.value)
{_lanes_from(s, "%head", "%j", "sge")}
  %head.number = fcmp ord {s.vector} %head.size, zeroinitializer
  %head.counts = and <{s.lanes} x i1> %mask, %head.number
  %head.sizes = select <{s.lanes} x i1> %head.counts, {s.vector} %head.size, {s.vector} <{ones}>
  %second = add i64 %head, {s.lanes}
{loop("i", "%second", "%rows", _AHEAD * s.lanes, search, carried)}
{newline.join(joins)}
  %largest = call nnan {s.element} @llvm.vector.reduce.fmax.{s.suffix}({s.vector} %most)
{everywhere(s, "%all", "%largest")}
  %head.same = fcmp oeq {s.vector} %head.sizes, %all
  %head.equal = and <{s.lanes} x i1> %head.same, %head.counts
  %head.bits = bitcast <{s.lanes} x i1> %head.equal to i{s.lanes}
  br label %look
look:
  %place = phi i64 [ %head, %i.done ], [ %place.next, %read ]
  %bits = phi i{s.lanes} [ %head.bits, %i.done ], [ %read.bits, %read ]
  %is.here = icmp ne i{s.lanes} %bits, 0
  br i1 %is.here, label %here, label %on
on:
  %place.next = add i64 %place, {s.lanes}
  %more = icmp slt i64 %place.next, %rows
  br i1 %more, label %read, label %none
read:
  %read.at = getelementptr {s.element}, ptr %x, i64 %place.next
  %read.value = load {s.vector}, ptr %read.at, align {s.size}
  %read.size = call {s.vector} @llvm.fabs.{s.suffix}({s.vector} %read.value)
  %read.equal = fcmp oeq {s.vector} %read.size, %all
  %read.bits = bitcast <{s.lanes} x i1> %read.equal to i{s.lanes}
  br label %look
here:
  %lane.narrow = call i{s.lanes} @llvm.cttz.i{s.lanes}(i{s.lanes} %bits, i1 true)
  %lane = zext i{s.lanes} %lane.narrow to i64
  %found = add i64 %place, %lane
  %is.row = icmp slt i64 %found, %rows
  br i1 %is.row, label %row, label %none
row:
  ret i64 %found
none:
  ret i64 %j
}}"""


def _scale(s: Shape, kind: str) -> str:
    """Return the function that divides the rows behind `%j` by the pivot there; a zero pivot leaves the column alone.

    They are multiplied by the pivot's reciprocal, as in LAPACK, if it is finite.
    """
    divide = f"""\
  %n.at = getelementptr {s.element}, ptr %x, i64 %n
  %n.value = load {s.element}, ptr %n.at, align {s.size}
  %n.ratio = fdiv {s.element} %n.value, %pivot
  store {s.element} %n.ratio, ptr %n.at, align {s.size}"""
    multiply = f"""\
  %i.at = getelementptr {s.element}, ptr %x, i64 %i
  %value = load {s.vector}, ptr %i.at, align {s.size}
  %ratio = fmul {s.vector} %value, %all
  store {s.vector} %ratio, ptr %i.at, align {s.size}"""
    return f"""\
define internal void @scale(ptr %x, i64 %j, i64 %rows) #0 {{
entry:
  %pivot.at = getelementptr {s.element}, ptr %x, i64 %j
  %pivot = load {s.element}, ptr %pivot.at, align {s.size}
  %none = fcmp oeq {s.element} %pivot, 0.0
  br i1 %none, label %done, label %some
some:
  %size = call {s.element} @llvm.fabs.f{8 * s.size}({s.element} %pivot)
  %is.small = fcmp olt {s.element} %size, {_MIN_NORMAL[kind]}
  br i1 %is.small, label %small, label %usual
small:
  %below = add i64 %j, 1
{loop("n", "%below", "%rows", 1, divide)}
  ret void
usual:
  %inverse = fdiv {s.element} 1.0, %pivot
{everywhere(s, "%all", "%inverse")}
  %head = and i64 %j, {-s.lanes}
{_lanes_from(s, "%head", "%j", "sgt")}
  %head.at = getelementptr {s.element}, ptr %x, i64 %head
  %head.value = load {s.vector}, ptr %head.at, align {s.size}
  %head.ratio = fmul {s.vector} %head.value, %all
  %head.new = select <{s.lanes} x i1> %mask, {s.vector} %head.ratio, {s.vector} %head.value
  store {s.vector} %head.new, ptr %head.at, align {s.size}
  %second = add i64 %head, {s.lanes}
{loop("i", "%second", "%rows", s.lanes, multiply)}
  br label %done
done:
  ret void
}}"""


def _less(s: Shape) -> str:
    """Return the function that subtracts from the rows of y behind `%j` its element there times x's."""
    newline = "\n"
    take = f"""\
  %x.at = getelementptr {s.element}, ptr %x, i64 %i
  %y.at = getelementptr {s.element}, ptr %y, i64 %i
  %value = load {s.vector}, ptr %x.at, align {s.size}
  %old = load {s.vector}, ptr %y.at, align {s.size}
{newline.join(fused(s, "%new", "%all", "%value", "%old"))}
  store {s.vector} %new, ptr %y.at, align {s.size}"""
    return f"""\
define internal void @less(ptr %x, ptr %y, i64 %j, i64 %rows) #0 {{
entry:
  %here.at = getelementptr {s.element}, ptr %y, i64 %j
  %here = load {s.element}, ptr %here.at, align {s.size}
  %negative = fneg {s.element} %here
{everywhere(s, "%all", "%negative")}
  %head = and i64 %j, {-s.lanes}
{_lanes_from(s, "%head", "%j", "sgt")}
  %head.x = getelementptr {s.element}, ptr %x, i64 %head
  %head.y = getelementptr {s.element}, ptr %y, i64 %head
  %head.value = load {s.vector}, ptr %head.x, align {s.size}
  %head.old = load {s.vector}, ptr %head.y, align {s.size}
{newline.join(fused(s, "%head.less", "%all", "%head.value", "%head.old"))}
  %head.new = select <{s.lanes} x i1> %mask, {s.vector} %head.less, {s.vector} %head.old
  store {s.vector} %head.new, ptr %head.y, align {s.size}
  %second = add i64 %head, {s.lanes}
{loop("i", "%second", "%rows", s.lanes, take)}
  ret void
}}"""


def _exchanged(s: Shape) -> str:
    """Exchange the elements at `%here` and `%there`."""
    return f"""\
  %one = load {s.element}, ptr %here, align {s.size}
  %other = load {s.element}, ptr %there, align {s.size}
  store {s.element} %other, ptr %here, align {s.size}
  store {s.element} %one, ptr %there, align {s.size}"""


def _eight(s: Shape) -> str:
    """Return the function that factors the columns from `%first` to `%stop`, at most eight; rows count from 0."""
    swap = f"""\
{at(s, "%here", "%p", "%c", "%ld", "%j")}
{at(s, "%there", "%p", "%c", "%ld", "%place")}
{_exchanged(s)}"""
    behind = f"""\
{at(s, "%y", "%p", "%d", "%ld", "0")}
  call void @less(ptr %x, ptr %y, i64 %j, i64 %rows)"""
    column = f"""\
{at(s, "%x", "%p", "%j", "%ld", "0")}
  %place = call i64 @largest(ptr %x, i64 %j, i64 %rows)
  %chosen.at = getelementptr i32, ptr %chosen, i64 %j
  %narrow = trunc i64 %place to i32
  store i32 %narrow, ptr %chosen.at, align 4
{loop("c", "%first", "%stop", 1, swap)}
  call void @scale(ptr %x, i64 %j, i64 %rows)
  %behind = add i64 %j, 1
{loop("d", "%behind", "%stop", 1, behind)}"""
    return f"""\
define internal void @eight(ptr %p, i64 %ld, i64 %first, i64 %stop, i64 %rows, ptr %chosen) #0 {{
entry:
{loop("j", "%first", "%stop", 1, column)}
  ret void
}}"""


def _exchange(s: Shape) -> str:
    """Return the function that exchanges the chosen rows from `%first` to `%stop` in the columns up to `%c.stop`."""
    swap = f"""\
  %chosen.at = getelementptr i32, ptr %chosen, i64 %j
  %narrow = load i32, ptr %chosen.at, align 4
  %place = sext i32 %narrow to i64
  %here = getelementptr {s.element}, ptr %column, i64 %j
  %there = getelementptr {s.element}, ptr %column, i64 %place
{_exchanged(s)}"""
    column = f"""\
{at(s, "%column", "%p", "%x", "%ld", "0")}
{loop("j", "%first", "%stop", 1, swap)}"""
    return f"""\
define internal void @exchange(ptr %p, i64 %ld, i64 %c, i64 %c.stop, i64 %first, i64 %stop, ptr %chosen) #0 {{
entry:
{loop("x", "%c", "%c.stop", 1, column)}
  ret void
}}"""


def _panel(s: Shape) -> str:
    """Return the function that factors `%w` columns of a, rows `%step` apart, in p; chosen rows count from 1."""
    turn = f"call void @{SYMBOL}{s.size}"
    values = f"<{_EIGHT} x {s.element}>"
    clear = f"""\
{at(s, "%end", "%p", "%c", "%ld", "%rows")}
  call void @llvm.memset.p0.i64(ptr %end, i8 0, i64 %empty.bytes, i1 false)"""
    negative = f"""\
  %e.at = getelementptr {s.element}, ptr %u, i64 %e
  %e.value = load {values}, ptr %e.at, align {s.size}
  %e.less = fneg {values} %e.value
  store {values} %e.less, ptr %e.at, align {s.size}"""
    columns = f"""\
  %stop.full = add i64 %first, {_EIGHT}
  %stop = call i64 @llvm.smin.i64(i64 %stop.full, i64 %w)
  %is.behind = icmp sgt i64 %first, 0
  br i1 %is.behind, label %behind, label %factor
behind:
{at(s, "%x", "%p", "%first", "%ld", "0")}
  {turn}(ptr %u, i64 {_EIGHT}, ptr %x, i64 %ld, i64 %first, i64 {_EIGHT})
  call void @solve.table(ptr %p, i64 %ld, i64 %first, ptr %u, i64 {_EIGHT})
  {turn}(ptr %x, i64 %ld, ptr %u, i64 {_EIGHT}, i64 {_EIGHT}, i64 %first)
  %elements = mul i64 %first, {_EIGHT}
{loop("e", "0", "%elements", _EIGHT, negative)}
  call void @take(ptr %p, i64 %ld, i64 %first, i64 %rows, ptr %u)
  br label %factor
factor:
  call void @eight(ptr %p, i64 %ld, i64 %first, i64 %stop, i64 %rows, ptr %chosen)
  call void @exchange(ptr %p, i64 %ld, i64 0, i64 %first, i64 %first, i64 %stop, ptr %chosen)
  call void @exchange(ptr %p, i64 %ld, i64 %stop, i64 %w, i64 %first, i64 %stop, ptr %chosen)"""
    count = """\
  %n.at = getelementptr i32, ptr %chosen, i64 %n
  %n.within = load i32, ptr %n.at, align 4
  %n.whole = add i32 %n.within, %from.narrow
  store i32 %n.whole, ptr %n.at, align 4"""
    return f"""\
define internal void @panel(ptr %a, i64 %step, i64 %rows, i64 %w, i64 %before, ptr %p, i64 %ld, ptr %chosen) #0 {{
entry:
  %u = alloca [{BLOCK * _EIGHT} x {s.element}], align 64
  {turn}(ptr %p, i64 %ld, ptr %a, i64 %step, i64 %w, i64 %rows)
  %empty = sub i64 %ld, %rows
  %empty.bytes = mul i64 %empty, {s.size}
{loop("c", "0", "%w", 1, clear)}
{loop("first", "0", "%w", _EIGHT, columns)}
  {turn}(ptr %a, i64 %step, ptr %p, i64 %ld, i64 %rows, i64 %w)
  %from.one = add i64 %before, 1
  %from.narrow = trunc i64 %from.one to i32
{loop("n", "0", "%w", 1, count)}
  ret void
}}"""
