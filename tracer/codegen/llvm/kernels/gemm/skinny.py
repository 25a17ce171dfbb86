"""Matrix products of few rows or columns, as many as the name says. The other matrix is read once, in order.

    void tracer_product_dots3_f32(...)    out[m, 3] = a @ b, where the rows of a are contiguous (a_column is 1)
    void tracer_product_outs3_f32(...)    out[3, n] = a @ b, where the columns of b are contiguous (b_row is 1)
    void tracer_product_rows3_f32(...)    out[3, n] = a @ b, where the rows of b are contiguous (b_column is 1)

Parameters are as in `microkernel`; turn is not used. The bandwidth of the large matrix limits all forms. Dots multiply
a vector of each of some rows of a by vectors of the columns of b. These are copied to be contiguous, and the lanes are
added up at the end. A step is 64 bytes on every machine, so bits do not depend on them. Rows add eight rows of b, each
times its element of a, to the result, in the order of k.
"""

from __future__ import annotations

from typing import Final

from tracer.codegen.llvm.kernels.gemm.kernel_shapes import PARAMETERS, Shape, attributes, fused, intrinsics, mask
from tracer.codegen.llvm.toolchain.target import is_x86

COUNTS: Final = range(2, 8)
"""Rows or columns that there are kernels for."""
FORMS: Final = ("dots", "outs", "rows")
_STEP_BITS: Final = 512
_DOTS_DEPTH: Final = 1 << 14  # bytes of a row of a between sums; a column of b on the stack has as many
_ROWS_DEPTH: Final = 512
_GROUP: Final = 8  # rows of b at a time


def skinny_kind(form: str, count: int, kind: str) -> str:
    """Return the name of a form's functions, without their prefix."""
    return f"{form}{count}_{kind}"


def skinny_text(form: str, count: int, kind: str, vector_bits: int | None = None) -> str:
    """Return the kernel of a form, for this machine or one like it with vectors of so many bits."""
    return _rows(kind, count, vector_bits) if form == "rows" else _dots(form, kind, count, vector_bits)


def _registers(bits: int) -> int:
    """Return the number of vector registers."""
    return 32 if bits == 512 or not is_x86() else 16


def _load(s: Shape, name: str, at: str, masked: bool) -> str:
    if not masked:
        return f"  {name} = load {s.vector}, ptr {at}, align {s.size}"
    given = f"ptr {at}, i32 {s.size}, <{s.lanes} x i1> %mask, {s.vector} zeroinitializer"
    return f"  {name} = call {s.vector} @llvm.masked.load.{s.suffix}.p0({given})"


def _copied(s: Shape, count: int, step: str, apart: int) -> list[str]:
    """Copy one element of each row or column of the small matrix, a `step` from the next, `apart` elements apart."""
    lines = []
    for n in range(count):
        lines += [
            f"  %from.skip{n} = mul i64 %{step}, {n}",
            f"  %from{n} = getelementptr {s.element}, ptr %from, i64 %from.skip{n}",
            f"  %one{n} = load {s.element}, ptr %from{n}, align {s.size}",
            f"  %to{n} = getelementptr {s.element}, ptr %to, i64 {n * apart}",
            f"  store {s.element} %one{n}, ptr %to{n}, align {s.size}",
        ]
    return lines


# -- dots --------------------------------------------------------------------------------------------------------


def _dots(form: str, kind: str, count: int, vector_bits: int | None) -> str:
    """Return the kernel that multiplies rows of the large matrix, b for outs, by columns of the other."""
    large, row, length, small, along, beside = (
        ("a", "a_row", "m", "b", "b_row", "b_column")
        if form == "dots"
        else ("b", "b_column", "n", "a", "a_column", "a_row")
    )
    machine = Shape(kind, vector_bits)
    s = Shape(kind, vector_bits, _STEP_BITS)
    parts = _STEP_BITS // machine.bits
    s.bits = machine.bits
    rows = max(min(4, (_registers(machine.bits) // parts - 2) // (count + 1)), 1)
    depth, newline = _DOTS_DEPTH // s.size, "\n"
    sums = [(r, c) for r in range(rows) for c in range(count)]
    copies = _copied(s, count, beside, depth)
    begins = []
    for r in range(rows):
        begins += [
            f"  %row{r} = add i64 %i, {r}",
            f"  %kept{r} = call i64 @llvm.smin.i64(i64 %row{r}, i64 %last)",  # rows beyond the last repeat it
            f"  %a.skip{r} = mul i64 %kept{r}, %{row}",
            f"  %a{r} = getelementptr {s.element}, ptr %a.at, i64 %a.skip{r}",
        ]
    phis = [f"  %sum{r}.{c} = phi {s.vector} [ zeroinitializer, %block ], [ %new{r}.{c}, %step.on ]" for r, c in sums]
    ends = [f"  %end{r}.{c} = phi {s.vector} [ %sum{r}.{c}, %step.end ], [ %tail{r}.{c}, %tail ]" for r, c in sums]
    return f"""\
{intrinsics(s)}
{attributes(s)}
define void @tracer_product_{skinny_kind(form, count, kind)}({PARAMETERS}) #0 {{
entry:
  %packed = alloca [{count * depth} x {s.element}], align 64
  %last = sub i64 %{length}, 1
  br label %depth.loop
depth.loop:
  %p = phi i64 [ 0, %entry ], [ %p.next, %depth.end ]
  %p.left = sub i64 %k, %p
  %depth = call i64 @llvm.smin.i64(i64 %p.left, i64 {depth})
  %rest = urem i64 %depth, {s.lanes}
  %full = sub i64 %depth, %rest
{mask(s, "%rest")}
  %is.first = icmp eq i64 %p, 0
  %a.at = getelementptr {s.element}, ptr %{large}, i64 %p
  br label %copy
copy:
  %t = phi i64 [ 0, %depth.loop ], [ %t.next, %copy ]
  %t.row = add i64 %p, %t
  %from.skip = mul i64 %t.row, %{along}
  %from = getelementptr {s.element}, ptr %{small}, i64 %from.skip
  %to = getelementptr {s.element}, ptr %packed, i64 %t
{newline.join(copies)}
  %t.next = add i64 %t, 1
  %t.more = icmp slt i64 %t.next, %depth
  br i1 %t.more, label %copy, label %block
block:
  %i = phi i64 [ 0, %copy ], [ %i.next, %block.end ]
{newline.join(begins)}
  br label %step
step:
  %q = phi i64 [ 0, %block ], [ %q.next, %step.on ]
{newline.join(phis)}
  %q.is.full = icmp slt i64 %q, %full
  br i1 %q.is.full, label %step.on, label %step.end
step.on:
{newline.join(_dots_step(s, rows, count, depth, "new", masked=False))}
  %q.next = add i64 %q, {s.lanes}
  br label %step
step.end:
  %is.whole = icmp eq i64 %rest, 0
  br i1 %is.whole, label %lanes, label %tail
tail:
{newline.join(_dots_step(s, rows, count, depth, "tail", masked=True))}
  br label %lanes
lanes:
{newline.join(ends)}
{newline.join(_lanes_added(s, form, rows, count))}
  br i1 %is.first, label %store, label %more
more:
{newline.join(_added(s, rows, count))}
  br label %store
store:
{newline.join(_stored(s, rows, count))}
  br label %block.end
block.end:
  %i.next = add i64 %i, {rows}
  %i.more = icmp slt i64 %i.next, %{length}
  br i1 %i.more, label %block, label %depth.end
depth.end:
  %p.next = add i64 %p, {depth}
  %p.more = icmp slt i64 %p.next, %k
  br i1 %p.more, label %depth.loop, label %done
done:
  ret void
}}
"""


def _dots_step(s: Shape, rows: int, count: int, depth: int, name: str, *, masked: bool) -> list[str]:
    """Multiply a vector of each row by one of each column, and add to the sums."""
    lines = []
    for r in range(rows):
        lines.append(f"  %{name}.a.at{r} = getelementptr {s.element}, ptr %a{r}, i64 %q")
        lines.append(_load(s, f"%{name}.a{r}", f"%{name}.a.at{r}", masked))
    for c in range(count):
        lines.append(f"  %{name}.b.skip{c} = add i64 %q, {c * depth}")
        lines.append(f"  %{name}.b.at{c} = getelementptr {s.element}, ptr %packed, i64 %{name}.b.skip{c}")
        lines.append(_load(s, f"%{name}.b{c}", f"%{name}.b.at{c}", masked))
        for r in range(rows):
            lines += fused(s, f"%{name}{r}.{c}", f"%{name}.a{r}", f"%{name}.b{c}", f"%sum{r}.{c}")
    return lines


def _lanes_added(s: Shape, form: str, rows: int, count: int) -> list[str]:
    """Add up the lanes of each sum, half by half."""
    lines = []
    for r in range(rows):
        for c in range(count):
            step, fixed = (f"%kept{r}", c) if form == "dots" else (str(c), f"%kept{r}")
            lines.append(f"  %out.row{r}.{c} = mul i64 {step}, %out_row")
            lines.append(f"  %out.skip{r}.{c} = add i64 %out.row{r}.{c}, {fixed}")
            whole, lanes = f"%end{r}.{c}", s.lanes
            while lanes > 1:
                half = lanes // 2
                name = f"%half{half}.{r}.{c}"
                for part, start in (("low", 0), ("high", half)):
                    numbers = ", ".join(f"i32 {start + i}" for i in range(half))
                    lines.append(
                        f"  {name}.{part} = shufflevector <{lanes} x {s.element}> {whole}, "
                        f"<{lanes} x {s.element}> poison, <{half} x i32> <{numbers}>"
                    )
                lines.append(f"  {name} = fadd <{half} x {s.element}> {name}.low, {name}.high")
                whole, lanes = name, half
            lines.append(f"  %dot{r}.{c} = extractelement <1 x {s.element}> {whole}, i64 0")
            lines.append(f"  %out{r}.{c} = getelementptr {s.element}, ptr %out, i64 %out.skip{r}.{c}")
    return lines


def _added(s: Shape, rows: int, count: int) -> list[str]:
    """Read all of the result before any of it is written: rows beyond the last repeat it."""
    lines = []
    for name in [f"{r}.{c}" for r in range(rows) for c in range(count)]:
        lines.append(f"  %old{name} = load {s.element}, ptr %out{name}, align {s.size}")
        lines.append(f"  %both{name} = fadd {s.element} %old{name}, %dot{name}")
    return lines


def _stored(s: Shape, rows: int, count: int) -> list[str]:
    names = [f"{r}.{c}" for r in range(rows) for c in range(count)]
    found = [f"  %all{name} = phi {s.element} [ %dot{name}, %lanes ], [ %both{name}, %more ]" for name in names]
    return found + [f"  store {s.element} %all{name}, ptr %out{name}, align {s.size}" for name in names]


# -- rows --------------------------------------------------------------------------------------------------------


def _rows(kind: str, count: int, vector_bits: int | None) -> str:
    s, newline = Shape(kind, vector_bits), "\n"
    vectors = 2 if _registers(s.bits) == 32 else 1
    copies = _copied(s, count, "a_row", 1)
    clear = []
    for r in range(count):
        clear += [
            f"  %out.skip{r} = mul i64 %out_row, {r}",
            f"  %out{r} = getelementptr {s.element}, ptr %out, i64 %out.skip{r}",
            f"  call void @llvm.memset.p0.i64(ptr %out{r}, i8 0, i64 %bytes, i1 false)",
        ]
    at_group = f"""\
  %b.row{{0}} = add i64 %p, %q{{0}}
  %b.skip{{0}} = mul i64 %b.row{{0}}, %b_row
  %b.at{{0}} = getelementptr {s.element}, ptr %b, i64 %b.skip{{0}}
  %a.skip{{0}} = mul i64 %q{{0}}, {count}
  %a.at{{0}} = getelementptr {s.element}, ptr %packed, i64 %a.skip{{0}}
  call void @group{{1}}(ptr %a.at{{0}}, ptr %b.at{{0}}, ptr %out, i64 %n, i64 %b_row, i64 %out_row)"""
    return f"""\
{intrinsics(s)}
{attributes(s)}
{_group(s, count, _GROUP, vectors)}
{_group(s, count, 1, vectors)}
define void @tracer_product_{skinny_kind("rows", count, kind)}({PARAMETERS}) #0 {{
entry:
  %packed = alloca [{count * _ROWS_DEPTH} x {s.element}], align 64
  %bytes = mul i64 %n, {s.size}
{newline.join(clear)}
  br label %depth.loop
depth.loop:
  %p = phi i64 [ 0, %entry ], [ %p.next, %depth.end ]
  %p.left = sub i64 %k, %p
  %depth = call i64 @llvm.smin.i64(i64 %p.left, i64 {_ROWS_DEPTH})
  %rest = urem i64 %depth, {_GROUP}
  %full = sub i64 %depth, %rest
  br label %copy
copy:
  %t = phi i64 [ 0, %depth.loop ], [ %t.next, %copy ]
  %t.row = add i64 %p, %t
  %from.skip = mul i64 %t.row, %a_column
  %from = getelementptr {s.element}, ptr %a, i64 %from.skip
  %to.skip = mul i64 %t, {count}
  %to = getelementptr {s.element}, ptr %packed, i64 %to.skip
{newline.join(copies)}
  %t.next = add i64 %t, 1
  %t.more = icmp slt i64 %t.next, %depth
  br i1 %t.more, label %copy, label %groups
groups:
  %q.0 = phi i64 [ 0, %copy ], [ %q.next.0, %groups.on ]
  %more.0 = icmp slt i64 %q.0, %full
  br i1 %more.0, label %groups.on, label %singles
groups.on:
{at_group.format(".0", _GROUP)}
  %q.next.0 = add i64 %q.0, {_GROUP}
  br label %groups
singles:
  %q.1 = phi i64 [ %full, %groups ], [ %q.next.1, %singles.on ]
  %more.1 = icmp slt i64 %q.1, %depth
  br i1 %more.1, label %singles.on, label %depth.end
singles.on:
{at_group.format(".1", 1)}
  %q.next.1 = add i64 %q.1, 1
  br label %singles
depth.end:
  %p.next = add i64 %p, {_ROWS_DEPTH}
  %p.more = icmp slt i64 %p.next, %k
  br i1 %p.more, label %depth.loop, label %done
done:
  ret void
}}
"""


def _group(s: Shape, count: int, group: int, vectors: int) -> str:
    """Return the function that adds `group` rows of b, times their elements of a, to the rows of the result."""
    at = []
    for u in range(group):
        at.append(f"  %b.skip{u} = mul i64 %b_row, {u}")
        at.append(f"  %b{u} = getelementptr {s.element}, ptr %b, i64 %b.skip{u}")
    for r in range(count):
        at.append(f"  %out.skip{r} = mul i64 %out_row, {r}")
        at.append(f"  %out{r} = getelementptr {s.element}, ptr %out, i64 %out.skip{r}")
    newline, wide = "\n", s.lanes * vectors
    return f"""\
define internal void @group{group}(ptr %a, ptr %b, ptr %out, i64 %n, i64 %b_row, i64 %out_row) #0 noinline {{
entry:
{newline.join(at)}
  %wide.rest = urem i64 %n, {wide}
  %wide.end = sub i64 %n, %wide.rest
  br label %wide
wide:
  %j.wide = phi i64 [ 0, %entry ], [ %j.wide.next, %wide.on ]
  %is.wide = icmp slt i64 %j.wide, %wide.end
  br i1 %is.wide, label %wide.on, label %narrow
wide.on:
{newline.join(_group_step(s, count, group, vectors, "wide", masked=False))}
  %j.wide.next = add i64 %j.wide, {wide}
  br label %wide
narrow:
  %j.narrow = phi i64 [ %wide.end, %wide ], [ %j.narrow.next, %narrow.on ]
  %is.narrow = icmp slt i64 %j.narrow, %n
  br i1 %is.narrow, label %narrow.on, label %done
narrow.on:
  %left = sub i64 %n, %j.narrow
{mask(s, "%left")}
{newline.join(_group_step(s, count, group, 1, "narrow", masked=True))}
  %j.narrow.next = add i64 %j.narrow, {s.lanes}
  br label %narrow
done:
  ret void
}}
"""


def _group_step(s: Shape, count: int, group: int, vectors: int, name: str, *, masked: bool) -> list[str]:
    """Add rows of b to `vectors` vectors of each row of the result."""
    lines, spread = [], f"<{s.lanes} x i32> zeroinitializer"
    for r in range(count):
        lines.append(f"  %{name}.out{r} = getelementptr {s.element}, ptr %out{r}, i64 %j.{name}")
        for v in range(vectors):
            lines.append(f"  %{name}.out{r}.{v} = getelementptr {s.vector}, ptr %{name}.out{r}, i64 {v}")
            lines.append(_load(s, f"%{name}.sum{r}.{v}.0", f"%{name}.out{r}.{v}", masked))
    for u in range(group):
        lines.append(f"  %{name}.b{u} = getelementptr {s.element}, ptr %b{u}, i64 %j.{name}")
        for v in range(vectors):
            lines.append(f"  %{name}.b{u}.{v} = getelementptr {s.vector}, ptr %{name}.b{u}, i64 {v}")
            lines.append(_load(s, f"%{name}.row{u}.{v}", f"%{name}.b{u}.{v}", masked))
        for r in range(count):
            one = f"%{name}.a{u}.{r}"
            lines += [
                f"  {one}.at = getelementptr {s.element}, ptr %a, i64 {u * count + r}",
                f"  {one} = load {s.element}, ptr {one}.at, align {s.size}",
                f"  {one}.lane = insertelement {s.vector} poison, {s.element} {one}, i64 0",
                f"  {one}.all = shufflevector {s.vector} {one}.lane, {s.vector} poison, {spread}",
            ]
            for v in range(vectors):
                total = f"%{name}.sum{r}.{v}"
                lines += fused(s, f"{total}.{u + 1}", f"{one}.all", f"%{name}.row{u}.{v}", f"{total}.{u}")
    for r in range(count):
        for v in range(vectors):
            found, to = f"{s.vector} %{name}.sum{r}.{v}.{group}", f"ptr %{name}.out{r}.{v}"
            if masked:
                given = f"{found}, {to}, i32 {s.size}, <{s.lanes} x i1> %mask"
                lines.append(f"  call void @llvm.masked.store.{s.suffix}.p0({given})")
            else:
                lines.append(f"  store {found}, {to}, align {s.size}")
    return lines
