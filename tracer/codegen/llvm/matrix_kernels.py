"""Matrix products by kernels of our own, in a module that is compiled once: 8 rows by 3 vectors of sums in registers.

    void tracer_product_f32(ptr a, ptr b, ptr out, i64 m, i64 n, i64 k,
                            i64 a_row, i64 a_column, i64 b_row, i64 b_column, i64 out_row, ptr turn)
    out = a @ b, m and n and k positive; steps in elements. One step of b is 1, those of a are free. turn: what
    transposes tiles (see `transposes`), where the columns of b are its rows in memory.

    void tracer_product_add_f32(...)    out += a @ b

The columns of b are taken in panels as wide as the sums, and `_DEPTH` deep, which are copied to where they follow each
other (Goto & van de Geijn 2008, ACM Trans. Math. Softw. 34(3)); so are rows of a that meet several of them. Elements of
a are spread over a vector. Every element of the result adds its products in the order of k, depth by depth, so that its
bits depend on neither the panels nor the width of vectors. One thread of a Zen 5 at 256, 1024 and 2048 squared in f32,
before rows of a were copied: 220, 210 and 180 GF/s, transposed or not (OpenBLAS 0.3.30: 196, 186 with its kernels for
AVX-512, 107, 111 with those for AVX2).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tracer.codegen.llvm.kernel_loops import loop
from tracer.codegen.llvm.machine import features, is_x86, preferred_bits

KINDS: Final = {"f32": ("float", 4), "f64": ("double", 8)}
_DEPTH: Final = 512  # of a panel of b, 96 KB, which passes through the first cache
_GROUP: Final = 1024  # bytes of a row of b, and almost a panel more, that are copied together, panel by panel
_COPIED: Final = 1 << 18  # bytes of a, rows of which meet those panels: they lie in the second cache
_LEAST_COPIED: Final = 192  # columns for which rows of a are copied, to where they follow each other; never in f64
_SKEW: Final = 64  # bytes between them, or eight rows lie in the same places of the first cache
_FAR: Final = 2  # rows of a that are fetched ahead of what is copied
_SHAPES: Final = {512: (8, 3), 256: (6, 2), 128: (4, 2)}  # rows and vectors of sums by the bits of a vector
_MANY_REGISTERS: Final = (8, 3)  # where there are 32 registers of 128 bits


class Shape:
    """The kernel's sizes on a machine: of vectors, and of the block of sums in registers."""

    def __init__(self, kind: str, vector_bits: int | None, bits: int | None = None) -> None:
        self.element, self.size = KINDS[kind]
        self.bits = bits = bits or preferred_bits(vector_bits)
        self.rows, self.vectors = _SHAPES[bits] if is_x86() else _MANY_REGISTERS
        self.lanes = bits // 8 // self.size
        self.vector = f"<{self.lanes} x {self.element}>"
        self.suffix = f"v{self.lanes}f{8 * self.size}"
        self.width = self.lanes * self.vectors
        self.fused = dict(features(vector_bits)).get("fma", False) or not is_x86()

    @property
    def group(self) -> int:
        """Columns that are copied together."""
        return _GROUP // self.size // self.width * self.width

    @property
    def high(self) -> int:
        """Rows of a that meet them."""
        return _COPIED // (_DEPTH * self.size) // self.rows * self.rows

    def narrow(self, vectors: int) -> None:
        """Take so many vectors of sums in a row."""
        self.vectors, self.width = vectors, self.lanes * vectors


def products_text(kind: str, vector_bits: int | None = None) -> str:
    """The module of one dtype, for this machine or one like it with vectors of so many bits."""
    s = Shape(kind, vector_bits)
    panels = "\n".join(_panel(s, vectors) for vectors in range(1, s.vectors + 1))
    return f"""\
{intrinsics(s)}
{panels}
{_product(s, kind)}
{attributes(s)}
"""


def intrinsics(s: Shape) -> str:
    """What kernels of a shape declare."""
    return f"""\
declare {s.vector} @llvm.fma.{s.suffix}({s.vector}, {s.vector}, {s.vector})
declare {s.vector} @llvm.masked.load.{s.suffix}.p0(ptr, i32, <{s.lanes} x i1>, {s.vector})
declare void @llvm.masked.store.{s.suffix}.p0({s.vector}, ptr, i32, <{s.lanes} x i1>)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
declare i64 @llvm.smin.i64(i64, i64)"""


def attributes(s: Shape) -> str:
    """Those of the kernels, by their number."""
    return f'''attributes #0 = {{ nounwind "prefer-vector-width"="{s.bits}" }}'''


PARAMETERS: Final = (
    "ptr %a, ptr %b, ptr %out, i64 %m, i64 %n, i64 %k, i64 %a_row, i64 %a_column, i64 %b_row, i64 %b_column, "
    "i64 %out_row, ptr %turn"
)


def _entry(name: str, *, adds: bool) -> str:
    """The product, or one that is added to the result."""
    starts = "false" if adds else "true"
    return f"""\
define void @{name}({PARAMETERS}) #0 {{
  call void @product({PARAMETERS}, i1 {starts})
  ret void
}}"""


def _product(s: Shape, kind: str) -> str:
    """The loops over groups of columns, depths, rows and panels, which are copied when their first rows come."""
    most, skew = s.group + s.width - s.lanes, _SKEW // s.size
    copied = max(s.high * (_DEPTH + skew), _DEPTH * (s.high + skew)) if most >= _LEAST_COPIED else 1
    names = [f"panel{v}" for v in range(1, s.vectors + 1)]
    given = (
        "ptr %x, ptr %panel, ptr %out.at, i64 %rows, i64 %depth, i64 %x.row, i64 %x.column, i64 %out_row, "
        "i64 %rest, i1 %is.first"
    )
    calls = "\n".join(f"{name}:\n  call void @{name}({given})\n  br label %panel.end" for name in names)
    cases = " ".join(f"i64 {v}, label %panel{v}" for v in range(1, s.vectors))
    return f"""\
{_entry(f"tracer_product_{kind}", adds=False)}
{_entry(f"tracer_product_add_{kind}", adds=True)}
define internal void @product({PARAMETERS}, i1 %starts) #0 {{
entry:
  %packed = alloca [{_DEPTH * most} x {s.element}], align 64
  %copied = alloca [{copied} x {s.element}], align 64
  %by.rows = icmp eq i64 %a_column, 1
  %by.columns = icmp eq i64 %a_row, 1
  %is.smooth = or i1 %by.rows, %by.columns
  %from.step = select i1 %by.rows, i64 %a_row, i64 %a_column
  %to.step = select i1 %by.rows, i64 {_DEPTH + skew}, i64 {s.high + skew}
  %far = mul i64 %from.step, {_FAR}
  %is.plain = icmp eq i64 %b_column, 1
  %n.rest = urem i64 %n, {s.lanes}
  %n.is.whole = icmp eq i64 %n.rest, 0
  %is.clear = or i1 %is.plain, %n.is.whole
  br i1 %is.clear, label %group.loop, label %clear
clear:
  %deepest = call i64 @llvm.smin.i64(i64 %k, i64 {_DEPTH})
  %n.up = add i64 %n, {s.lanes - 1}
  %n.whole = and i64 %n.up, {-s.lanes}
  %widest = call i64 @llvm.smin.i64(i64 %n.whole, i64 {most})
  %cleared = mul i64 %deepest, %widest
  %cleared.bytes = mul i64 %cleared, {s.size}
  call void @llvm.memset.p0.i64(ptr align 64 %packed, i8 0, i64 %cleared.bytes, i1 false)
  br label %group.loop
group.loop:
  %g = phi i64 [ 0, %entry ], [ 0, %clear ], [ %g.next, %group.end ]
  %g.left = sub i64 %n, %g
  %is.last.group = icmp sle i64 %g.left, {most}
  %group = select i1 %is.last.group, i64 %g.left, i64 {s.group}
  %g.next = add i64 %g, %group
  %is.wide = icmp sge i64 %group, {_LEAST_COPIED}
  %is.copied = and i1 %is.smooth, %is.wide
  br label %depth.loop
depth.loop:
  %p = phi i64 [ 0, %group.loop ], [ %p.next, %depth.end ]
  %p.left = sub i64 %k, %p
  %depth = call i64 @llvm.smin.i64(i64 %p.left, i64 {_DEPTH})
  %is.top = icmp eq i64 %p, 0
  %is.first = and i1 %is.top, %starts
  br label %rows.loop
rows.loop:
  %h = phi i64 [ 0, %depth.loop ], [ %h.next, %rows.end ]
  %h.left = sub i64 %m, %h
  %rows = call i64 @llvm.smin.i64(i64 %h.left, i64 {s.high})
  %is.new = icmp eq i64 %h, 0
  %a.row.skip = mul i64 %h, %a_row
  %a.column.skip = mul i64 %p, %a_column
  %a.skip = add i64 %a.row.skip, %a.column.skip
  %a.at = getelementptr {s.element}, ptr %a, i64 %a.skip
  %out.row.skip = mul i64 %h, %out_row
  %out.rows = getelementptr {s.element}, ptr %out, i64 %out.row.skip
  br i1 %is.copied, label %a.copy, label %panel.loop
a.copy:
{_a_copied(s)}
  br label %panel.loop
panel.loop:
  %j = phi i64 [ %g, %rows.loop ], [ %g, %o.done ], [ %j.next, %panel.end ]
  %x = phi ptr [ %a.at, %rows.loop ], [ %copied, %o.done ], [ %x, %panel.end ]
  %x.row = phi i64 [ %a_row, %rows.loop ], [ %row.step, %o.done ], [ %x.row, %panel.end ]
  %x.column = phi i64 [ %a_column, %rows.loop ], [ %column.step, %o.done ], [ %x.column, %panel.end ]
{panel_text(s, s.element, s.element, "%g.next", "%out.rows")}
  %within = sub i64 %j, %g
  %panel.skip = mul i64 %within, %depth
  %panel = getelementptr {s.element}, ptr %packed, i64 %panel.skip
  br i1 %is.new, label %pack, label %multiply
pack:
  br i1 %is.plain, label %copy, label %turned
turned:
  call void %turn(ptr %panel, i64 %stride, ptr %b.at, i64 %b_column, i64 %depth, i64 %columns)
  br label %multiply
copy:
  %q = phi i64 [ 0, %pack ], [ %q.next, %copy.row.end ]
  %from.skip = mul i64 %q, %b_row
  %from = getelementptr {s.element}, ptr %b.at, i64 %from.skip
  %to.skip = mul i64 %q, %stride
  %to = getelementptr {s.element}, ptr %panel, i64 %to.skip
  br label %copy.row
copy.row:
  %c = phi i64 [ 0, %copy ], [ %c.next, %copy.full ]
  %from.c = getelementptr {s.element}, ptr %from, i64 %c
  %to.c = getelementptr {s.element}, ptr %to, i64 %c
  %c.is.full = icmp slt i64 %c, %full
  br i1 %c.is.full, label %copy.full, label %copy.rest
copy.full:
  %whole = load {s.vector}, ptr %from.c, align {s.size}
  store {s.vector} %whole, ptr %to.c, align {s.lanes * s.size}
  %c.next = add i64 %c, {s.lanes}
  br label %copy.row
copy.rest:
{mask(s, "%rest")}
  %some = call {s.vector} @llvm.masked.load.{s.suffix}.p0(ptr %from.c, i32 {s.size}, <{s.lanes} x i1> %mask, \
{s.vector} zeroinitializer)
  store {s.vector} %some, ptr %to.c, align {s.lanes * s.size}
  br label %copy.row.end
copy.row.end:
  %q.next = add i64 %q, 1
  %q.more = icmp slt i64 %q.next, %depth
  br i1 %q.more, label %copy, label %multiply
multiply:
  switch i64 %vectors, label %panel{s.vectors} [ {cases} ]
{calls}
panel.end:
  %j.next = add i64 %j, %columns
  %j.more = icmp slt i64 %j.next, %g.next
  br i1 %j.more, label %panel.loop, label %rows.end
rows.end:
  %h.next = add i64 %h, {s.high}
  %h.more = icmp slt i64 %h.next, %m
  br i1 %h.more, label %rows.loop, label %depth.end
depth.end:
  %p.next = add i64 %p, {_DEPTH}
  %p.more = icmp slt i64 %p.next, %k
  br i1 %p.more, label %depth.loop, label %group.end
group.end:
  %g.more = icmp slt i64 %g.next, %n
  br i1 %g.more, label %group.loop, label %done
done:
  ret void
}}"""


def _a_copied(s: Shape) -> str:
    """Rows of a, or what is contiguous of it, to where they follow each other."""

    def element(kind: str, i: str, ahead: str = "") -> str:
        return f"""\
  %{i}.from = getelementptr {s.element}, ptr %o.from, i64 %{i}
  %{i}.to = getelementptr {s.element}, ptr %o.to, i64 %{i}
  %{i}.value = load {kind}, ptr %{i}.from, align {s.size}
  store {kind} %{i}.value, ptr %{i}.to, align {s.size}{ahead}"""

    ahead = f"""
  %v.ahead = getelementptr {s.element}, ptr %v.from, i64 %far
  call void @llvm.prefetch.p0(ptr %v.ahead, i32 0, i32 3, i32 1)"""
    row = f"""\
  %o.from.skip = mul i64 %o, %from.step
  %o.from = getelementptr {s.element}, ptr %a.at, i64 %o.from.skip
  %o.to.skip = mul i64 %o, %to.step
  %o.to = getelementptr {s.element}, ptr %copied, i64 %o.to.skip
{loop("v", "0", "%inner.full", s.lanes, element(s.vector, "v", ahead))}
{loop("w", "%inner.full", "%inner", 1, element(s.element, "w"))}"""
    return f"""\
  %outer = select i1 %by.rows, i64 %rows, i64 %depth
  %inner = select i1 %by.rows, i64 %depth, i64 %rows
  %row.step = select i1 %by.rows, i64 %to.step, i64 1
  %column.step = select i1 %by.rows, i64 1, i64 %to.step
  %inner.rest = urem i64 %inner, {s.lanes}
  %inner.full = sub i64 %inner, %inner.rest
{loop("o", "0", "%outer", 1, row)}"""


def panel_text(s: Shape, b_element: str, out_element: str, end: str = "%n", out: str = "%out") -> str:
    """The columns of the panel from %j on, how many vectors they are, the last one's part, where b and out begin.

    Where three vectors are a panel, the last four are two and two: one alone has too few sums for the machine's units.
    """
    fit = f"%fit = add i64 0, {s.width}"
    if s.vectors == 3:
        fit = f"""\
%is.even = icmp sle i64 %j.left, {4 * s.lanes}
  %is.more = icmp sgt i64 %j.left, {s.width}
  %is.four = and i1 %is.even, %is.more
  %fit = select i1 %is.four, i64 {2 * s.lanes}, i64 {s.width}"""
    return f"""\
  %j.left = sub i64 {end}, %j
  {fit}
  %columns = call i64 @llvm.smin.i64(i64 %j.left, i64 %fit)
  %columns.up = add i64 %columns, {s.lanes - 1}
  %vectors = udiv i64 %columns.up, {s.lanes}
  %before = sub i64 %vectors, 1
  %full = mul i64 %before, {s.lanes}
  %rest = sub i64 %columns, %full
  %stride = mul i64 %vectors, {s.lanes}
  %b.row.skip = mul i64 %p, %b_row
  %b.column.skip = mul i64 %j, %b_column
  %b.skip = add i64 %b.row.skip, %b.column.skip
  %b.at = getelementptr {b_element}, ptr %b, i64 %b.skip
  %out.at = getelementptr {out_element}, ptr {out}, i64 %j"""


def mask(s: Shape, count: str) -> str:
    """`%mask`: the first `count` lanes."""
    lanes = f"<{s.lanes} x i64>"
    numbers = ", ".join(f"i64 {lane}" for lane in range(s.lanes))
    return f"""\
  %count.one = insertelement {lanes} poison, i64 {count}, i64 0
  %count.all = shufflevector {lanes} %count.one, {lanes} poison, <{s.lanes} x i32> zeroinitializer
  %mask = icmp ult {lanes} <{numbers}>, %count.all"""


def _panel(s: Shape, vectors: int) -> str:
    """All rows of the result in one panel of columns, `vectors` wide, its last vector holding `rest` elements."""
    rows, lines = range(s.rows), []
    for r in rows:
        lines += [
            f"  %row{r} = add i64 %i, {r}",
            f"  %kept{r} = call i64 @llvm.smin.i64(i64 %row{r}, i64 %last)",  # rows beyond the last are the last again
            f"  %a.skip{r} = mul i64 %kept{r}, %a_row",
            f"  %a{r} = getelementptr {s.element}, ptr %a, i64 %a.skip{r}",
        ]
        lines += [  # what sums are added to, which is far off where matrices are large
            f"  %later.skip{r} = mul i64 %kept{r}, %out_row",
            f"  %later{r} = getelementptr {s.element}, ptr %out, i64 %later.skip{r}",
        ]
        for v in range(vectors):
            lines += [
                f"  %later{r}.{v} = getelementptr {s.vector}, ptr %later{r}, i64 {v}",
                f"  call void @llvm.prefetch.p0(ptr %later{r}.{v}, i32 1, i32 3, i32 1)",
            ]
    sums = [(r, v) for r in rows for v in range(vectors)]
    phis = [f"  %sum{r}.{v} = phi {s.vector} [ zeroinitializer, %block ], [ %new{r}.{v}, %step ]" for r, v in sums]
    work = [f"  %b{v} = load {s.vector}, ptr %b.at{v}, align {s.lanes * s.size}" for v in range(vectors)]
    at_b = [f"  %b.at{v} = getelementptr {s.vector}, ptr %b.at, i64 {v}" for v in range(vectors)]
    for r in rows:
        work += [
            f"  %a.at{r} = getelementptr {s.element}, ptr %a{r}, i64 %at",
            f"  %one{r} = load {s.element}, ptr %a.at{r}, align {s.size}",
            f"  %lane{r} = insertelement {s.vector} poison, {s.element} %one{r}, i64 0",
            f"  %all{r} = shufflevector {s.vector} %lane{r}, {s.vector} poison, <{s.lanes} x i32> zeroinitializer",
        ]
        work += [
            line for v in range(vectors) for line in fused(s, f"%new{r}.{v}", f"%all{r}", f"%b{v}", f"%sum{r}.{v}")
        ]
    newline = "\n"
    return f"""\
define internal void @panel{vectors}(ptr %a, ptr %b, ptr %out, i64 %m, i64 %depth, i64 %a_row, i64 %a_column, \
i64 %out_row, i64 %rest, i1 %is.first) #0 {{
entry:
  %last = sub i64 %m, 1
{mask(s, "%rest")}
  br label %block
block:
  %i = phi i64 [ 0, %entry ], [ %i.next, %block.end ]
{newline.join(lines)}
  br label %step
step:
  %q = phi i64 [ 0, %block ], [ %q.next, %step ]
  %at = phi i64 [ 0, %block ], [ %at.next, %step ]
  %b.at = phi ptr [ %b, %block ], [ %b.next, %step ]
{newline.join([*phis, *at_b, *work])}
  %at.next = add i64 %at, %a_column
  %b.next = getelementptr {s.vector}, ptr %b.at, i64 {vectors}
  %q.next = add i64 %q, 1
  %q.more = icmp slt i64 %q.next, %depth
  br i1 %q.more, label %step, label %steps.end
{ends(s, sums, vectors)}
block.end:
  %i.next = add i64 %i, {s.rows}
  %i.more = icmp slt i64 %i.next, %m
  br i1 %i.more, label %block, label %done
done:
  ret void
}}
"""


def fused(s: Shape, name: str, x: str, y: str, total: str) -> list[str]:
    """x * y + total, rounded once where the machine can."""
    if s.fused:
        given = f"{s.vector} {x}, {s.vector} {y}, {s.vector} {total}"
        return [f"  {name} = call {s.vector} @llvm.fma.{s.suffix}({given})"]
    return [f"  {name}.product = fmul {s.vector} {x}, {y}", f"  {name} = fadd {s.vector} {total}, {name}.product"]


def ends(s: Shape, sums: Sequence[tuple[int, int]], vectors: int) -> str:
    """Add the sums to the result, or begin it. Rows beyond the last are equal to it, and written before it was read."""
    masked = f"<{s.lanes} x i1> %mask"
    at, old, new, stores = [], [], [], []
    for r in range(s.rows):
        at.append(f"  %out.skip{r} = mul i64 %kept{r}, %out_row")
        at.append(f"  %out{r} = getelementptr {s.element}, ptr %out, i64 %out.skip{r}")
    for r, v in sums:
        name, to = f"{r}.{v}", f"%out{r}.{v}"
        at.append(f"  {to} = getelementptr {s.vector}, ptr %out{r}, i64 {v}")
        if v == vectors - 1:
            given = f"ptr {to}, i32 {s.size}, {masked}"
            load = f"call {s.vector} @llvm.masked.load.{s.suffix}.p0({given}, {s.vector} zeroinitializer)"
            stores.append(f"  call void @llvm.masked.store.{s.suffix}.p0({s.vector} %all{name}, {given})")
        else:
            load = f"load {s.vector}, ptr {to}, align {s.size}"
            stores.append(f"  store {s.vector} %all{name}, ptr {to}, align {s.size}")
        old.append(f"  %old{name} = {load}")
        old.append(f"  %both{name} = fadd {s.vector} %old{name}, %new{name}")
        new.append(f"  %all{name} = phi {s.vector} [ %new{name}, %steps.end ], [ %both{name}, %more ]")
    newline = "\n"
    return f"""\
steps.end:
{newline.join(at)}
  br i1 %is.first, label %store, label %more
more:
{newline.join(old)}
  br label %store
store:
{newline.join([*new, *stores])}
  br label %block.end"""
