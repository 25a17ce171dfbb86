"""LAPACK and BLAS on stacks of matrices: loops over the stack, on one thread, as LLVM text.

LAPACK's matrices are column-major: row-major ones are seen as their transposes. One complex right-hand side goes to
trsv. It takes a third to a half of trsm's time, and a tenth where trsm would solve for one row.

    potrf_<dtype>   a[n, n]; batch, n                 in place: the lower triangle, by rows, becomes L of A = L L^H
    getrf_<dtype>   a[n, m], pivots[k]; batch, m, n   in place: the matrix of m rows, by columns; rows from 1
    trsm_<dtype>    a[n, n], x; batch, n, others, left, lower, form, unit
                    in place: op(a) X = x, or X op(a) = x, by rows; form: 0 a, 1 its transpose, 2 its adjoint

A matrix that is not positive definite gets a NaN as its last element.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tracer.codegen.llvm.kernels.gemm.blas import BLAS_LETTER, ONE, blas_threads, on_one_thread
from tracer.codegen.llvm.kernels.gemm.kernel_loops import onward
from tracer.codegen.llvm.toolchain.native_text import routines

_ITEM: Final = {"f32": ("float", 1), "f64": ("double", 1), "c64": ("float", 2), "c128": ("double", 2)}
_NAN: Final = {"float": "0x7FF8000000000000", "double": "0x7FF8000000000000"}


def definition(routine: str, kind: str) -> tuple[str, ...]:
    """Return the texts that calls of a routine need."""
    text = {"potrf": _potrf, "getrf": _getrf, "trsm": _trsm}[routine](kind)
    return (blas_threads(), trsm_letters(), text) if routine == "trsm" else (blas_threads(), text)


def external(routine: str, kind: str) -> tuple[str, str, str]:
    """Return the routine's symbol, the module of SciPy that has it, and its name there."""
    letter, library = BLAS_LETTER[kind], "blas" if routine in ("trsm", "trsv") else "lapack"
    return f"tracer_{library}_{letter}{routine}", f"scipy.linalg.cython_{library}", f"{letter}{routine}"


def _potrf(kind: str) -> str:
    item, parts = _ITEM[kind]
    return f"""\
declare void @tracer_lapack_{BLAS_LETTER[kind]}potrf(ptr, ptr, ptr, ptr, ptr)
{_stack("potrf", kind, ("a",), ("n",))}
  %upper = alloca i8, align 1
  %info = alloca i32, align 4
{_slots("n")}
  store i8 85, ptr %upper
  %size = mul i64 %n, %n
  %scalars = mul i64 %size, {parts}
  %last = sub i64 %scalars, {parts}
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %following, %next ]
  %at = mul i64 %i, %scalars
  %a.i = getelementptr {item}, ptr %a, i64 %at
  call void @tracer_lapack_{BLAS_LETTER[kind]}potrf(ptr %upper, ptr %n.slot, ptr %a.i, ptr %n.slot, ptr %info)
  %found = load i32, ptr %info, align 4
  %failed = icmp ne i32 %found, 0
  br i1 %failed, label %mark, label %next
mark:
  %end = getelementptr {item}, ptr %a.i, i64 %last
  store {item} {_NAN[item]}, ptr %end
  br label %next
{_END}"""


def _getrf(kind: str) -> str:
    item, parts = _ITEM[kind]
    return f"""\
declare void @tracer_lapack_{BLAS_LETTER[kind]}getrf(ptr, ptr, ptr, ptr, ptr, ptr)
{_stack("getrf", kind, ("a", "pivots"), ("m", "n"))}
  %info = alloca i32, align 4
{_slots("m", "n")}
  %size = mul i64 %m, %n
  %scalars = mul i64 %size, {parts}
  %wide = icmp slt i64 %m, %n
  %steps = select i1 %wide, i64 %m, i64 %n
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %following, %next ]
  %at = mul i64 %i, %scalars
  %a.i = getelementptr {item}, ptr %a, i64 %at
  %step = mul i64 %i, %steps
  %pivots.i = getelementptr i32, ptr %pivots, i64 %step
  call void @tracer_lapack_{BLAS_LETTER[kind]}getrf(ptr %m.slot, ptr %n.slot, ptr %a.i, ptr %m.slot, ptr %pivots.i, \
ptr %info)
  br label %next
{_END}"""


def trsm_letters() -> str:
    """Return the routine that writes trsm's letters, once in a module. `TRSM_HEAD` calls it."""
    return routines(Path(__file__).parents[1] / "ll" / "blas", ("trsm_letters",))


TRSM_HEAD: Final = """\
  %letters = alloca [4 x i8], align 4
  %letter1 = getelementptr i8, ptr %letters, i64 1
  %letter2 = getelementptr i8, ptr %letters, i64 2
  %letter3 = getelementptr i8, ptr %letters, i64 3
  call void @library.trsm_letters(ptr %letters, i64 %left, i64 %lower, i64 %form, i64 %unit)
  %is.left = icmp ne i64 %left, 0
  %is.turned = icmp ne i64 %form, 0"""


def _trsm(kind: str) -> str:
    (item, parts), letter = _ITEM[kind], BLAS_LETTER[kind]
    declared, single = "", "  br label %several"
    if parts == 2:
        declared = f"declare void @tracer_blas_{letter}trsv(ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr)"
        single = f"""\
  br i1 %is.single, label %one, label %several
one:
  call void @tracer_blas_{letter}trsv(ptr %letter1, ptr %form.slot, ptr %letter3, ptr %n.slot, ptr %a.i, ptr %n.slot, \
ptr %x.i, ptr %others.slot)
  br label %next"""
    return f"""\
@library.whole.{kind} = private constant {ONE[kind]}, align 16
declare void @tracer_blas_{letter}trsm(ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr)
{declared}
{_stack("trsm", kind, ("a", "x"), ("n", "others", "left", "lower", "form", "unit"))}
{_slots("n", "others")}
{TRSM_HEAD}
  %form.slot = alloca i8, align 1
  %is.flat = xor i1 %is.turned, %is.left
  %form.one = select i1 %is.flat, i8 84, i8 78
  store i8 %form.one, ptr %form.slot
  %is.vector = icmp eq i64 %others, 1
  %is.plain = icmp ne i64 %form, 2
  %is.single = and i1 %is.vector, %is.plain
  %rows.slot = select i1 %is.left, ptr %others.slot, ptr %n.slot
  %columns.slot = select i1 %is.left, ptr %n.slot, ptr %others.slot
  %square = mul i64 %n, %n
  %scalars.a = mul i64 %square, {parts}
  %area = mul i64 %n, %others
  %scalars.x = mul i64 %area, {parts}
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %following, %next ]
  %at = mul i64 %i, %scalars.a
  %a.i = getelementptr {item}, ptr %a, i64 %at
  %x.at = mul i64 %i, %scalars.x
  %x.i = getelementptr {item}, ptr %x, i64 %x.at
{single}
several:
  call void @tracer_blas_{letter}trsm(ptr %letters, ptr %letter1, ptr %letter2, ptr %letter3, \
ptr %rows.slot, ptr %columns.slot, ptr @library.whole.{kind}, ptr %a.i, ptr %n.slot, ptr %x.i, \
ptr %rows.slot)
  br label %next
{_END}"""


_END: Final = f"""\
next:
  %following = add i64 %i, 1
  %left.over = icmp slt i64 %following, %batch
{onward("%left.over", "more")}
  br i1 %more, label %loop, label %done
done:
  ret void
}}
"""


def _stack(routine: str, kind: str, views: Sequence[str], sizes: Sequence[str]) -> str:
    """Return the function that calls the loop with BLAS on one thread, and the head of the loop's function."""
    parameters = ", ".join([*(f"ptr %{v}" for v in views), *(f"i64 %{s}" for s in ("batch", *sizes)), "ptr %halt"])
    call = on_one_thread(f"call void @library.{routine}_{kind}({parameters})")
    return f"""\
define internal void @library.alone.{routine}_{kind}({parameters}) #2 {{
entry:
{call}
}}
define internal void @library.{routine}_{kind}({parameters}) #2 {{
entry:"""


def _slots(*sizes: str) -> str:
    """Store sizes as C's int."""
    return "\n".join(
        f"  %{s}.slot = alloca i32, align 4\n  %{s}.narrow = trunc i64 %{s} to i32\n"
        f"  store i32 %{s}.narrow, ptr %{s}.slot"
        for s in sizes
    )
