"""Choice of the kernel of every library call on a CPU, and of the panels that threads share.

Kernels and panels follow from shapes alone, so results do not depend on the number of threads. Thresholds were measured
on a Zen 5.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from tracer.ir.loop import Along, Constant, Kernel, Library, Module, Operand, Split, Statement, View
from tracer.ir.loop.walk import with_bodies, with_statements
from tracer.ir.target import CPU, Target

_PLAIN: Final = Kernel()


def choose_kernels(module: Module, target: Target = CPU) -> Module:
    """Return the module with a kernel for every library call of constant sizes."""
    tiles = target.machine.tiles

    def chosen(s: Statement) -> Sequence[Statement]:
        if not isinstance(s, Library):
            return (s,)
        numbers = [a for a in s.arguments if not isinstance(a, View)]
        routine, _, dtype = s.name.partition("_")
        if routine not in _CHOICES or not all(isinstance(x, Constant) for x in numbers):
            return (s,)
        sizes = _sizes(s.arguments)
        kernel = product_kernel(dtype, sizes, tiles=tiles) if routine == "gemm" else _CHOICES[routine](dtype, sizes)
        return (s if kernel == s.kernel else replace(s, kernel=kernel),)

    return with_bodies(module, partial(with_statements, change=chosen))


_REAL: Final = ("f32", "f64")


# -- matrix products -------------------------------------------------------------------------------------------------
# Each kernel of our own is named by its form. OpenBLAS's own threads are not used. Where other processes keep the cores
# busy, two on two cores took 74 ms for 256 x 256 x 256. Alone they took 0.3.

_ALONE: Final = 1 << 21
"""Products up to this batch * m * n * k are one call: some 30 µs."""
_OWN_MIN_ROWS, _OWN_MIN_COLUMNS = 4, 8
_MANY: Final = 4  # panels; stacks of so many products are split between products
_PANEL_WORK: Final = 1 << 20
_MIN_PANEL: Final = 64  # rows or columns; each panel packs the other operand anew
_GOOD_PANEL: Final = 192  # width of a panel where there are more than `_MANY`
_VECTOR_WORK: Final = 8  # an element of a matrix times a vector costs its memory, like this many in a matrix product
_OWN_WIDTH, _OWN_ROWS = 32, 128  # columns that our kernels compute at once; rows worth a copy of the other operand
_OWN_PANELS: Final = 16
_CALLS: Final = 4  # a call takes a quarter of the panels at least
_SHORT: Final = 256  # rows or columns that a call takes at least, if there are as many
_OWN_WORK, _TILED_WORK = 1 << 21, 1 << 23  # of a panel, at least
_TILED_PANEL: Final = 256  # columns, for which AMX kernels copy the other operand once
_SKINNY_COUNTS: Final = range(2, 8)
_SKINNY_PANEL: Final = 1 << 18  # elements of the large matrix, which memory takes some 50 µs for
_SKINNY_MIN_LARGE: Final = 1 << 16  # elements of the large matrix; a smaller one fits the second cache, as fast in BLAS
_DOT_MIN_K, _DOT_MIN_COUNT = 48, 16
_ROW_MIN_K, _ROW_MIN_LENGTH = 16, 32


def product_kernel(dtype: str, sizes: Sequence[int], *, tiles: bool = False) -> Kernel:
    """Choose the kernel of a `gemm` call: "" for BLAS, "own", or a kernel for few rows or columns, such as "dots3".

    sizes: batch, m, n, k, transpose_a, transpose_b; further sizes are not read. Panels of our kernels are split by
    columns for free; the results do not depend on them.
    """
    batch, m, n, k, transpose_a, transpose_b = sizes[:6]
    if not (batch and m and n and k):
        return _PLAIN
    form = _skinny_form(m, n, k, bool(transpose_a), bool(transpose_b)) if dtype in _REAL else ""
    if form:
        return Kernel(form, _skinny_split(form, batch, m, n, k))
    if dtype == "bf16" or (dtype in _REAL and m >= _OWN_MIN_ROWS and n >= _OWN_MIN_COLUMNS):
        return Kernel("own", _own_split(batch, m, n, k, tiled=tiles and dtype == "bf16"))
    return Kernel("", _blas_split(batch, m, n, k))


def _skinny_form(m: int, n: int, k: int, transpose_a: bool, transpose_b: bool) -> str:
    """Choose a kernel that reads the large matrix once, in order; "" where none fits."""
    if n in _SKINNY_COUNTS and not transpose_a and k >= _DOT_MIN_K and m >= _DOT_MIN_COUNT:
        return f"dots{n}" if m * k >= _SKINNY_MIN_LARGE else ""
    if m in _SKINNY_COUNTS and n * k >= _SKINNY_MIN_LARGE:
        if transpose_b:
            return f"outs{m}" if k >= _DOT_MIN_K and n >= _DOT_MIN_COUNT else ""
        return f"rows{m}" if k >= _ROW_MIN_K and n >= _ROW_MIN_LENGTH else ""
    return ""


def _split(batch: int, one: int, alone: int, work: int, panels: Split | None) -> Split | None:
    """Split long stacks of products between products, and a long product into `panels`; None for shorter ones.

    one: the work of a product. alone: of the longest call that is not split. work: of a part of a stack.
    """
    if batch * one <= alone:
        return None
    if batch >= _MANY:
        width = max(work // one, 1)
        return Split(Along.BATCHES, -(-batch // width), width)
    return panels if batch == 1 else None


def _panels(along: Along, length: int, width: int) -> Split | None:
    """Split an axis into panels of a width, of which a call takes several; None for a single panel."""
    count = -(-length // width)
    at_once = min(max(_SHORT // width, count // _CALLS, 1), count)
    return Split(along, count, width, at_once) if count > 1 else None


def _blas_split(batch: int, m: int, n: int, k: int) -> Split | None:
    one = m * n * k * (_VECTOR_WORK if n == 1 else 1)
    along, length = (Along.ROWS, m) if m >= n else (Along.COLUMNS, n)
    width = -(-length // min(one // _PANEL_WORK, _MANY)) if one >= 2 * _PANEL_WORK else length
    if width > 2 * _GOOD_PANEL:
        width = max(_GOOD_PANEL, -(-length // 16))
    width = max(-(-width // 32) * 32, _MIN_PANEL)
    panels = _panels(along, length, width)
    return _split(batch, one, _ALONE, _PANEL_WORK, panels and replace(panels, at_once=1))


def _own_split(batch: int, m: int, n: int, k: int, *, tiled: bool) -> Split | None:
    if n >= _MANY * _OWN_WIDTH or n >= m:
        along, length, unit, work = Along.COLUMNS, n, _OWN_WIDTH, m * k
    else:
        along, length, unit, work = Along.ROWS, m, _OWN_ROWS, n * k
    most = max(_MANY, length // _TILED_PANEL) if tiled else _OWN_PANELS
    least = _TILED_WORK if tiled else _OWN_WORK
    width = -(-max(-(-length // most), least // max(work, 1), 1) // unit) * unit
    return _split(batch, m * n * k, _ALONE, _PANEL_WORK, _panels(along, length, width))


def _skinny_split(form: str, batch: int, m: int, n: int, k: int) -> Split | None:
    along, length = (Along.ROWS, m) if form.startswith("dots") else (Along.COLUMNS, n)
    unit, least, most = (32, 128, 8) if form.startswith("rows") else (12, 36, 16)
    width = max(-(-length // most), -(-_SKINNY_PANEL // k), least)
    panels = _panels(along, length, -(-width // unit) * unit)
    return _split(batch, length * k, _SKINNY_PANEL, _SKINNY_PANEL, panels)


# -- factorizations and triangular systems ---------------------------------------------------------------------------

_BLOCKED_CHOLESKY: Final = 192
"""Rows of matrices for which blocks pay, on one thread already: 0.97 of LAPACK's time at 192 in f64, 0.93 at 256 and
0.68 at 512."""
_BLOCKED_SYSTEM: Final = 128
"""Rows of matrices for which blocks pay: 1.0 to 1.4 times as fast as BLAS at 128, 1.2 to 2.8 from 192 on."""
_STRIP: Final = 192  # right-hand sides of a strip, at most
_STRIP_UNIT: Final = 48  # whole panels of products
_STRIP_GRAIN: Final = 1 << 20  # multiplications that are worth a thread: some 20 µs
_VECTOR_GRAIN: Final = 1 << 18  # elements of matrices that are worth a thread: some 20 µs


def cholesky_kernel(dtype: str, sizes: Sequence[int]) -> Kernel:
    """Choose the kernel of a `potrf` call: "" for LAPACK's, "blocked" for large real matrices. sizes: batch, n."""
    return Kernel("blocked") if dtype in _REAL and sizes[1] >= _BLOCKED_CHOLESKY else _PLAIN


def system_kernel(dtype: str, sizes: Sequence[int]) -> Kernel:
    """Choose the kernel of a `trsm` call: "" for BLAS's, "vector" for one right-hand side, "blocked" for large ones.

    sizes: batch, n, right-hand sides; further sizes are not read. Splits are of the stack, or of the right-hand sides
    of each system, which then count as columns.
    """
    batch, n, others = sizes[:3]
    if dtype not in _REAL or not (batch and others):
        return _PLAIN
    if others == 1:
        return Kernel("vector", Split(Along.BATCHES, batch, 1, max(_VECTOR_GRAIN // (n * n), 1)))
    if n < _BLOCKED_SYSTEM:
        return _PLAIN
    strips = -(-others // _STRIP)
    width = -(-others // (strips * _STRIP_UNIT)) * _STRIP_UNIT
    grain = max(_STRIP_GRAIN // (n * n * min(width, others) // 2), 1)
    return Kernel("blocked", Split(Along.COLUMNS, -(-others // width), width, grain))


# -- sorts -----------------------------------------------------------------------------------------------------------

_SHARED_ELEMENTS: Final = 1 << 14
"""Elements of rows that threads share, all together: some 50 µs."""


def sort_kernel(dtype: str, sizes: Sequence[int]) -> Kernel:
    """Choose how threads share a sort of rows. sizes: rows, n."""
    rows, n = sizes
    return Kernel("", _row_split(rows, n, _SHARED_ELEMENTS // (2 * n) if n else 0))


def top_k_kernel(dtype: str, sizes: Sequence[int]) -> Kernel:
    """Choose how threads share the search of rows for their largest elements. sizes: rows, n, k."""
    rows, n, _ = sizes
    return Kernel("", _row_split(rows, n, _SHARED_ELEMENTS // n if n else 0))


def _row_split(rows: int, n: int, grain: int) -> Split | None:
    return Split(Along.ROWS, rows, 1, max(grain, 1)) if rows > 1 and rows * n >= _SHARED_ELEMENTS else None


# -- Fourier transforms ----------------------------------------------------------------------------------------------

_TRANSFORMED: Final = 1 << 13
"""Elements of transforms that are worth a thread: some 30 µs."""


def fft_kernel(dtype: str, sizes: Sequence[int]) -> Kernel:
    """Choose how Fourier transforms run.

    "lines", "columns" and "short" are our kernels, the last two of complex columns and of a few lengths of rows. "" is
    NumPy.

    sizes: kind, outer, length, inner and n1 of two steps, which is negative where NumPy transforms; further sizes are
    not read.
    """
    kind, outer, length, inner, steps = sizes[:5]
    name, count = "lines" if steps >= 0 else "", outer * inner
    if steps >= 0 and inner == 1 and length in [n * (1 + (kind >= _REAL_KINDS)) for n in _IN_REGISTERS]:
        name = "short"
    if not steps and inner >= _WIDE and kind < _REAL_KINDS:
        name = "columns"
    if count * length < 2 * _TRANSFORMED or count == 1:
        return Kernel(name)
    grain = max(-(-_TRANSFORMED // length), 1)
    if not steps and count >= 2 * _LANES:
        grain = -(-grain // _LANES) * _LANES
    return Kernel(name, Split(Along.BATCHES, count, 1, grain))


def runs_in_place(s: Library) -> bool:
    """Whether a routine's target, the second array, may be its source, the first."""
    routine, _, dtype = s.name.partition("_")
    return routine == "fft" and fft_kernel(dtype, _sizes(s.arguments)).name == "columns"


def _sizes(arguments: Sequence[View | Operand]) -> list[int]:
    """Return the constants among arguments."""
    return [int(x.value) for x in arguments if isinstance(x, Constant)]


_IN_REGISTERS: Final = (64, 128, 256)
"""Complex numbers of rows whose transform runs in registers."""
_REAL_KINDS: Final = 2  # RFFT and IRFFT, whose lines have half as many complex numbers
_WIDE: Final = 16
"""Columns that kernels of columns take at least."""
_LANES: Final = 8
"""Transforms that vectors may take together: parts of a job are a multiple."""


_CHOICES: Final[dict[str, Callable[[str, Sequence[int]], Kernel]]] = {
    "gemm": product_kernel, "potrf": cholesky_kernel, "trsm": system_kernel, "topk": top_k_kernel,
    "sort": sort_kernel, "argsort": sort_kernel, "radix": sort_kernel, "fft": fft_kernel,
}  # fmt: skip
