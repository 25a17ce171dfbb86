"""Panels of matrix products that threads share: batches, rows or columns, for our kernels and for BLAS."""

from __future__ import annotations

from typing import Final

from tracer.codegen.llvm.kernels.gemm.kernel_loops import keep, kept

ITEM: Final = {"f32": ("float", 4), "f64": ("double", 8), "c64": ("[2 x float]", 8), "c128": ("[2 x double]", 16)}
"""LLVM type of an element, and its bytes."""


BATCHES, ROWS, COLUMNS = range(3)
"""Words by which threads know along which axis a product is split."""


def of_batch(item: str, result: str) -> str:
    """Write the operands and the result of product %i, with elements of these LLVM types."""
    return "\n".join(
        f"  %{x}.at = mul i64 %i, %stride.{x}\n  %{x}.i = getelementptr {element}, ptr %{x}, i64 %{x}.at"
        for x, element in (("a", item), ("b", item), ("out", result))
    )


def _given(transposed: str) -> list[str]:
    """Return the words that threads are given, each with its type. transposed: the word that says whether b is."""
    return [
        "ptr %a", "ptr %b", "ptr %out", "i64 %batch", "i64 %m", "i64 %n", "i64 %k", "i64 %transpose.a", transposed,
        "i64 %stride.a", "i64 %stride.b", "ptr %halt", "i64 %way", "i64 %width",
    ]  # fmt: skip


def in_panels(header: str, transposed: str, share: str, more: str = "") -> str:
    """Return the product in panels of batches, rows or columns, `width` of them each, which threads share."""
    given = _given(transposed)
    parameters = ", ".join(given[:-1])
    return f"""\
declare void @tracer_share(ptr, ptr, i64, i64)
define {header}({parameters}, i64 %count, i64 %width{more}) #2 {{
entry:
  %given = alloca [{len(given)} x i64], align 8
{keep(*given)}
{share}
}}
"""


def panels_part(name: str, product: str, transposed: str, item: str, result: str, *, joined: bool) -> str:
    """Return the function for the panels from `begin` to `end`, each a call of `product`, or all joined in one."""
    none = "0" if transposed.startswith("i64") else "null"
    return f"""\
declare i64 @llvm.smin.i64(i64, i64)
define internal void @{name}(ptr %given, i64 %begin, i64 %end) #2 {{
entry:
{kept(*_given(transposed))}
  %ta.set = icmp ne i64 %transpose.a, 0
  %tb.set = icmp ne {transposed}, {none}
  %lda = select i1 %ta.set, i64 %m, i64 %k
  %ldb = select i1 %tb.set, i64 %k, i64 %n
  %by.batch = icmp eq i64 %way, {BATCHES}
  %by.row = icmp eq i64 %way, {ROWS}
  %m.or.n = select i1 %by.row, i64 %m, i64 %n
  %length = select i1 %by.batch, i64 %batch, i64 %m.or.n
  %a.row.step = select i1 %ta.set, i64 1, i64 %k
  %a.other.step = select i1 %by.row, i64 %a.row.step, i64 0
  %a.step = select i1 %by.batch, i64 %stride.a, i64 %a.other.step
  %b.column.step = select i1 %tb.set, i64 %k, i64 1
  %b.other.step = select i1 %by.row, i64 0, i64 %b.column.step
  %b.step = select i1 %by.batch, i64 %stride.b, i64 %b.other.step
  %product = mul i64 %m, %n
  %out.other.step = select i1 %by.row, i64 %n, i64 1
  %out.step = select i1 %by.batch, i64 %product, i64 %out.other.step
  br label %panel
panel:
  %i = phi i64 [ %begin, %entry ], [ %following, %panel ]
  %following = add i64 {"%end, 0" if joined else "%i, 1"}
  %first = mul i64 %i, %width
  %next = mul i64 %following, %width
  %stop = call i64 @llvm.smin.i64(i64 %length, i64 %next)
  %size = sub i64 %stop, %first
  %panel.batch = select i1 %by.batch, i64 %size, i64 1
  %not.columns = or i1 %by.batch, %by.row
  %panel.m = select i1 %by.row, i64 %size, i64 %m
  %panel.n = select i1 %not.columns, i64 %n, i64 %size
  %a.skip = mul i64 %first, %a.step
  %b.skip = mul i64 %first, %b.step
  %out.skip = mul i64 %first, %out.step
  %a.panel = getelementptr {item}, ptr %a, i64 %a.skip
  %b.panel = getelementptr {item}, ptr %b, i64 %b.skip
  %out.panel = getelementptr {result}, ptr %out, i64 %out.skip
  call void @{product}(ptr %a.panel, ptr %b.panel, ptr %out.panel, i64 %panel.batch, i64 %panel.m, \
i64 %panel.n, i64 %k, i64 %transpose.a, {transposed}, i64 %stride.a, i64 %stride.b, i64 %lda, i64 %ldb, \
i64 %n, ptr %halt)
  %more = icmp slt i64 %following, %end
  br i1 %more, label %panel, label %done
done:
  ret void
}}
"""
