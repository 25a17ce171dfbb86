"""`debug.watch`: ranges of the values of every line, for finding where a narrow dtype overflows or underflows."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tracer import markup
from tracer.errors import ArgumentError, message
from tracer.ir import dtypes
from tracer.ir.primitive import Convert
from tracer.ir.program import Equation, Program, Source
from tracer.ir.types import Type
from tracer.lazy import LazyModule
from tracer.primitives.arrays.reductions.reductions import reduce_max, reduce_min, reduce_sum
from tracer.primitives.control.effects import HostFunction, callback
from tracer.primitives.elementwise.bits import and_, not_
from tracer.primitives.elementwise.comparison import eq, ge, is_finite, lt, ne, select
from tracer.primitives.elementwise.complex import abs as absolute
from tracer.primitives.elementwise.conversion import convert_element_type
from tracer.runtime.analysis.tables import Column, Row, html_table, plain_table
from tracer.runtime.jit.jit import JitFunction, jit
from tracer.runtime.system.locks import ForkSafeLock
from tracer.trace import trees
from tracer.trace.array import Array
from tracer.trace.convert import as_array
from tracer.trace.source import here
from tracer.trace.trace import Operand
from tracer.trace.tracebacks import boundary, set_boundaries
from tracer.transforms.finite_checks import is_float, site
from tracer.transforms.functions import check_callable
from tracer.transforms.probing import Loops, probed

if TYPE_CHECKING:
    from tracer.runtime.compile import compile as compiling
else:
    compiling = LazyModule("tracer.runtime.compile.compile")

_COLUMNS: Final = (
    Column("line", is_text=True), Column("value", is_text=True), Column("type", is_text=True), Column("runs"),
    Column("min"), Column("max"), Column("mean"), Column("smallest"), Column("zero"), Column("subnormal"),
    Column("saturated"), Column("NaN"),
)  # fmt: skip


@dataclass(slots=True)
class Line:
    """Statistics of the values of one operation, over all its runs; of an argument, if the operation is "argument".

    source: the user's line; `source.derivative` tells equations of derivatives. runs: how often it ran. elements: how
    many it computed. min, max, total: of the finite elements. smallest: the least magnitude other than zero. zeros,
    subnormals: the number of such elements. saturated: the number that are infinite, or the dtype's largest. nans: the
    number of NaN.
    """

    operation: str
    source: Source | None
    type: Type
    runs: int = 0
    elements: int = 0
    min: float = np.inf
    max: float = -np.inf
    total: float = 0.0
    smallest: float = np.inf
    zeros: int = 0
    subnormals: int = 0
    saturated: int = 0
    nans: int = 0

    @property
    def mean(self) -> float:
        """Mean of the elements that are neither NaN nor saturated."""
        count = self.elements - self.nans - self.saturated
        return self.total / count if count else float("nan")

    def add(self, elements: int, values: Sequence[float]) -> None:
        """Add the statistics of one run, in the order of the fields from min on."""
        low, high, total, smallest, *counts = values
        self.runs += 1
        self.elements += elements
        self.min, self.max = min(self.min, low), max(self.max, high)
        self.total, self.smallest = self.total + total, min(self.smallest, smallest)
        zeros, subnormals, saturated, nans = map(int, counts)
        self.zeros, self.subnormals = self.zeros + zeros, self.subnormals + subnormals
        self.saturated, self.nans = self.saturated + saturated, self.nans + nans

    def row(self) -> Row:
        """Return the line as a row of the table, marked if elements are saturated, NaN or subnormal."""
        code = linecache.getline(self.source.file, self.source.line).strip() if self.source is not None else ""
        place = site(self.source).removeprefix(" at ").removeprefix(" in the ")
        shares = [_share(n, self.elements) for n in (self.zeros, self.subnormals, self.saturated)]
        numbers = [_number(x) for x in (self.min, self.max, self.mean, self.smallest)]
        marked = bool(self.saturated or self.nans or self.subnormals)
        name = f"{self.operation}  {code}" if code else self.operation
        return Row([place, name[:60], str(self.type), str(self.runs), *numbers, *shares, str(self.nans or "")], marked)


def _share(count: int, whole: int) -> str:
    return f"{100 * count / whole:.3g}%" if count else ""


def _number(x: float) -> str:
    return f"{x:.4g}" if np.isfinite(x) else ""


@dataclass(frozen=True)
class Watched:
    """Result of a watched call: `lines`, and `result`, the function's own. Prints as a table.

    Lines stand in the order of the program. The table marks lines with saturated, subnormal or NaN elements by `<`.
    """

    lines: tuple[Line, ...]
    result: Any = field(repr=False)

    def __str__(self) -> str:
        return plain_table(_COLUMNS, [line.row() for line in self.lines if line.runs])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return markup.view("values by line", html_table(_COLUMNS, [line.row() for line in self.lines if line.runs]))


def watch(fun: Callable[..., Any]) -> Callable[..., Watched]:
    """Return a function of fun's arguments that runs it compiled, and returns the ranges of the values of every line.

    fun: takes and returns trees of arrays of any shapes and dtypes, jitted or not; a gradient's lines are the lines
    that it differentiates. Each operation gets reductions of its results, in loops over all iterations. These are min,
    max, mean, smallest magnitude, and the share of zeros, subnormal and saturated elements. Saturated elements are
    infinite or the dtype's largest.

    >>> def f(x):
    ...     y = x * 300
    ...     return (y * y).sum()
    >>> found = tracer.debug.watch(f)(tnp.asarray([1.0, 0.0, -0.5], "float16"))
    >>> [(line.operation, line.max, line.saturated) for line in found.lines[1:]]
    [('mul', 300.0, 0), ('mul', 22496.0, 1), ('reduce_sum', -inf, 1)]
    >>> found.result
    Array(inf, f16)
    """
    check_callable(fun, "debug.watch")
    run = fun if isinstance(fun, JitFunction) else jit(fun)
    watching: dict[bytes, _Watching] = {}

    @wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Watched:
        lowered = run.lower(*args, **kwargs)
        program, given = lowered.program(), lowered._call
        operands = [as_array(x) for x in (*lowered._traced.captured, *given.leaves)]
        if any(x._trace is not None for x in operands):
            text = f"debug.watch{here()}: an argument is traced, and has no values to tabulate"
            raise ArgumentError(message(text, help="watch the whole function, debug.watch(vmap(f)), outside of jit"))
        names = [f"captured {n}" for n in range(len(lowered._traced.captured))]
        names += lowered._signature.leaf_names(given.args, given.kwargs, given.key.statics)
        key = program.digest + program.lines
        if key not in watching:
            watching[key] = _Watching(program, names)
        outputs, lines = watching[key].run(operands)
        return Watched(tuple(lines), trees.unflatten(lowered._traced.structure, outputs))

    return boundary(call)


class _Watching:
    """Program with the statistics of its values, compiled."""

    def __init__(self, program: Program, names: Sequence[str]) -> None:
        self._made: list[Callable[[], Line]] = []  # in program order
        self._running: list[Line] = []
        self._lock = ForkSafeLock()
        self._names = names
        self._compiled = compiling.compile_program(probed(program, lambda _: self._probe))

    def run(self, operands: Sequence[Array]) -> tuple[list[Array], list[Line]]:
        """Return the outputs, and the lines of this run."""
        inputs = [_argument(*row) for row in zip(self._names, operands, strict=True) if is_float(row[1])]
        with self._lock:
            self._running = [make() for make in self._made]
            outputs = self._compiled.call(operands)
            return outputs, [*inputs, *self._running]

    def _probe(self, equation: Equation, xs: Sequence[Operand], ys: Sequence[Operand], around: Loops) -> None:
        if not equation.primitive.computes and not isinstance(equation.primitive.lower, Convert):
            return
        for y in ys:
            if isinstance(y, Array) and is_float(y) and all(y.type.shape):
                host = HostFunction(partial(self._add, len(self._made), y.size), "watch")
                self._made.append(partial(Line, equation.primitive.name, equation.source, y.type))
                callback(host, _statistics(y), (), ordered=True, vmap_method="sequential")

    def _add(self, number: int, elements: int, *values: Any) -> tuple[()]:
        self._running[number].add(elements, [float(x) for x in values])
        return ()


def _statistics(y: Any) -> list[Any]:
    """Return the statistics of an array in the order of `Line.add`, each []."""
    limits = dtypes.finfo(y.type.dtype)
    wide = _wide(y)
    axes = tuple(range(len(wide.type.shape)))
    size, finite = absolute(wide), is_finite(wide)
    saturated = ge(size, float(limits.max))
    usual = and_(finite, not_(saturated))
    present = and_(finite, ne(wide, 0.0))
    flags = [eq(wide, 0.0), and_(present, lt(size, float(limits.smallest_normal))), saturated, ne(wide, wide)]
    return [
        _over(reduce_min, select(finite, wide, np.inf), axes),
        _over(reduce_max, select(finite, wide, -np.inf), axes),
        _over(reduce_sum, convert_element_type(select(usual, wide, 0.0), dtypes.F64), axes),
        _over(reduce_min, select(present, size, np.inf), axes),
        *(_over(reduce_sum, convert_element_type(flag, dtypes.I64), axes) for flag in flags),
    ]


def _over(reduce: Callable[..., Any], x: Any, axes: tuple[int, ...]) -> Any:
    return reduce(x, axes) if axes else x


def _wide(y: Any) -> Any:
    """Return an array in a dtype in which the limits of its own are exact; the magnitudes of a complex one."""
    if dtypes.is_complex(y.type.dtype):
        y = absolute(y)
    return y if y.type.dtype == dtypes.F64 else convert_element_type(y, dtypes.F64)


def _argument(name: str, x: Array) -> Line:
    """Return the statistics of an argument."""
    value = np.asarray(x._value)
    size = np.abs(value.astype(np.complex128 if dtypes.is_complex(value.dtype) else np.float64))
    wide = size if dtypes.is_complex(value.dtype) else value.astype(np.float64)
    limits, line = dtypes.finfo(value.dtype), Line(name, None, x.type)
    finite, present = wide[np.isfinite(wide)], size[(size > 0) & np.isfinite(size)]
    usual = wide[size < float(limits.max)]
    counts: list[Any] = [
        np.count_nonzero(size == 0), np.count_nonzero(present < float(limits.smallest_normal)),
        np.count_nonzero(size >= float(limits.max)), np.count_nonzero(np.isnan(wide)),
    ]  # fmt: skip
    line.add(
        value.size,
        [min(finite, default=np.inf), max(finite, default=-np.inf), usual.sum(), min(present, default=np.inf), *counts],
    )
    return line


set_boundaries(globals(), ["watch"])
