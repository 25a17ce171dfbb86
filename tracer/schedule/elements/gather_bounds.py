"""Windows at computed indices: the element that a gather reads or a scatter writes, checked and clamped, as loop IR."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tracer.errors import CheckError, DivisionError, OutOfBoundsError
from tracer.ir import dtypes
from tracer.ir.loop import Address, Constant, Operand
from tracer.ir.loop.build import Builder, constant
from tracer.ir.primitive import Checked, Structured
from tracer.ir.program import Atom, Equation, Literal, Source
from tracer.ir.scalar import ScalarOp
from tracer.ir.types import ArrayType, KeyType, Type
from tracer.primitives.arrays.indexing.dimension_numbers import (
    Bound,
    GatherDimensionNumbers,
    GatherScatterMode,
    coordinate_message,
    out_of_bounds_message,
)
from tracer.primitives.elementwise.divisors import division_message
from tracer.schedule.terms.affine import ZERO, Affine, Index, flatten, of_operand, operand_of, plus, shifted
from tracer.schedule.terms.origins import Origins
from tracer.schedule.terms.value_locations import Element

Demand = tuple[Atom, Index]

_CLAMPED = (GatherScatterMode.CLIP, GatherScatterMode.PROMISE_IN_BOUNDS)


@dataclass(frozen=True, slots=True)
class FaultSite:
    """One faulting equation.

    kind: "bounds", "check" or "divisor". text: the text of a check, or the operation that takes coordinates or divides.
    """

    kind: str
    source: Source | None
    text: str = ""

    def error(self, values: Sequence[int], position: int) -> Exception:
        """Return the user's exception, from the values that the fault reported."""
        if self.kind == "bounds":
            index, axis, size = values[:3]
            if self.text:
                return OutOfBoundsError(coordinate_message(self.text, index, axis, size, self.source))
            return OutOfBoundsError(out_of_bounds_message(index, axis, size, self.source))
        if self.kind == "divisor":
            return DivisionError(division_message(self.text, f" at {self.source}" if self.source is not None else ""))
        return CheckError(self.text)


class FaultSites:
    """Registry of the faulting equations of a program, in program order.

    origins: where the lines of all registers are recorded, None where nobody asks.
    """

    def __init__(self, origins: Origins | None = None) -> None:
        self.sites: list[FaultSite] = []
        self.origins = origins
        self._numbers: dict[int, int] = {}

    def number(self, equation: Equation) -> int:
        """Return the number of an equation's site, new for the first call alone."""
        key = id(equation)
        if key not in self._numbers:
            self._numbers[key] = len(self.sites)
            self.sites.append(_site(equation))
        return self._numbers[key]


def _site(equation: Equation) -> FaultSite:
    match equation.primitive.lower:
        case Structured("check"):
            return FaultSite("check", equation.source, equation.params["text"])
        case Checked("divisor"):
            return FaultSite("divisor", equation.source, equation.params["operation"])
        case _:
            bounds: Sequence[Bound] = equation.params.get("bounds", ())
            return FaultSite("bounds", equation.source, "".join(b.operation for b in bounds[:1]))


@dataclass(frozen=True, slots=True)
class Window:
    """Window: the elements that its start depends on, and a function from these to the index.

    locate(builder, sites, elements) -> (index by axes, the predicate of the access or None).
    wanted: the position among the demands of the equation's own predicate, None where it always holds.
    """

    demands: Sequence[Demand]
    fill: Element
    locate: Callable[[Builder, FaultSites, Sequence[Element]], tuple[list[Affine], Operand | None]]
    wanted: int | None = None


def gather_window(equation: Equation, index: Sequence[Affine]) -> Window:
    """Return the window of a gather at an index of its result."""
    operand, indices, predicate = equation.inputs
    numbers: GatherDimensionNumbers = equation.params["dimension_numbers"]
    sizes: tuple[int, ...] = equation.params["slice_sizes"]
    fill = fill_element(operand.type, equation.params["fill_value"])
    return _window(equation, operand.type, indices, predicate, numbers, sizes, index, fill)


def scatter_window(equation: Equation, index: Sequence[Affine]) -> Window:
    """Return the window of a scatter at an index of its updates."""
    operand, indices, updates, predicate = equation.inputs
    numbers = equation.params["dimension_numbers"]
    sizes = numbers.slice_sizes(len(operand.type.shape), updates.type.shape)
    fill = fill_element(operand.type, None)
    return _window(equation, operand.type, indices, predicate, numbers.as_gather, sizes, index, fill)


def _window(
    equation: Equation,
    operand: Type,
    indices: Atom,
    predicate: Atom,
    numbers: GatherDimensionNumbers,
    sizes: Sequence[int],
    index: Sequence[Affine],
    fill: Element,
) -> Window:
    offset_axes = set(numbers.offset_dims)
    batch = [i for axis, i in enumerate(index) if axis not in offset_axes]
    offsets = iter([i for axis, i in enumerate(index) if axis in offset_axes])
    base = [next(offsets) if numbers.is_window(axis) else ZERO for axis in range(len(operand.shape))]
    for axis, lane in zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True):
        base[axis] = batch[lane]
    count = len(numbers.start_index_map)
    demands: list[Demand] = [(indices, (*batch, Address(component))) for component in range(count)]
    window = flatten(batch, indices.type.shape[:-1])  # faults at its number, so that the axes within it may join
    always = is_always(predicate)
    if not always:
        demands.append((predicate, tuple(batch) if predicate.type.shape else ()))
    mode: GatherScatterMode = equation.params["mode"]
    reported = numbers.start_index_map if numbers.reported_axes is None else numbers.reported_axes

    def locate(b: Builder, sites: FaultSites, found: Sequence[Element]) -> tuple[list[Affine], Any]:
        place = list(base)
        live: Operand | None = None if always else found[count][0]
        for component, axis in enumerate(numbers.start_index_map):
            start = _signed(b, found[component][0])
            last = operand.shape[axis] - sizes[axis]
            fits = last >= 0
            if mode is GatherScatterMode.CHECKED:
                outside = _outside(b, start, last)
                bad = outside if always else b.apply(ScalarOp.AND, outside, found[count][0])
                site = sites.number(equation)
                b.fault(site, bad, operand_of(b, window), start, reported[component], operand.shape[axis])
            if mode is GatherScatterMode.FILL_OR_DROP or (mode is GatherScatterMode.CHECKED and not fits):
                inside = b.apply(ScalarOp.NOT, _outside(b, start, last))
                live = inside if live is None else b.apply(ScalarOp.AND, live, inside)
            clamped = _nearest(b, start, last) if mode in _CLAMPED or not fits else _any_within(b, start, last)
            place[axis] = plus(place[axis], of_operand(clamped))
        return place, live

    return Window(demands, fill, locate, None if always else count)


def is_always(predicate: Atom) -> bool:
    """Whether a predicate is known to hold."""
    return isinstance(predicate, Literal) and bool(predicate.value)


def write_check(
    b: Builder,
    sites: FaultSites,
    equation: Equation,
    index: Operand,
    wanted: Operand | None,
    component: Affine,
    flat: Affine,
) -> None:
    """Write a fault where a component of an index vector is out of its bounds and wanted."""
    bounds: Sequence[Bound] = equation.params["bounds"]
    if not bounds:  # there are no elements
        return
    start = _signed(b, index)
    last: Operand | int
    axis: Operand | int
    size: Operand | int
    if component.terms:
        number = operand_of(b, component)
        last, axis, size = (_chosen(b, number, column) for column in list(zip(*bounds, strict=True))[:3])
        outside = b.compute(ScalarOp.OR, b.compute(ScalarOp.LT, start, 0), b.compute(ScalarOp.GT, start, last))
    else:
        last, axis, size, _ = bounds[component.constant]
        outside = _outside(b, start, last)
    bad = outside if wanted is None else b.apply(ScalarOp.AND, outside, wanted)
    b.fault(sites.number(equation), bad, operand_of(b, flat), start, axis, size)


def write_divisor_check(
    b: Builder, sites: FaultSites, equation: Equation, divisor: Operand, wanted: Operand | None, flat: Affine
) -> None:
    """Write a fault where a divisor is zero and wanted."""
    zero = b.compute(ScalarOp.EQ, divisor, 0)
    bad = zero if wanted is None else b.apply(ScalarOp.AND, zero, wanted)
    b.fault(sites.number(equation), bad, operand_of(b, flat))


def _chosen(b: Builder, number: Operand, values: Sequence[int]) -> Operand:
    """Return the value at a computed index."""
    found: Operand = constant(values[0], dtypes.I64)
    for n, value in enumerate(values[1:], 1):
        found = b.compute(ScalarOp.SELECT, b.compute(ScalarOp.EQ, number, n), constant(value, dtypes.I64), found)
    return found


def _signed(b: Builder, start: Operand) -> Operand:
    """Return a start as i64, clamped to its max, which is out of bounds of every array."""
    if start.dtype == dtypes.U64:
        start = b.compute(ScalarOp.MIN, start, constant(2**63 - 1, dtypes.U64))
    return b.convert(start, dtypes.I64)


def _outside(b: Builder, start: Operand, last: int) -> Operand:
    """Whether a start is not in 0 ... last: one unsigned comparison, where negative values are very large."""
    if last < 0:
        return constant(True, dtypes.BOOL)
    return b.compute(ScalarOp.GT, b.bitcast(start, dtypes.U64), constant(last, dtypes.U64))


def _nearest(b: Builder, start: Operand, last: int) -> Operand:
    """Return the index in 0 ... last nearest to a start."""
    return b.compute(ScalarOp.MIN, b.compute(ScalarOp.MAX, start, 0), max(last, 0))


def _any_within(b: Builder, start: Operand, last: int) -> Operand:
    """Return the start where it is in 0 ... last, else any index in bounds, for accesses that are masked or unused."""
    least = b.compute(ScalarOp.MIN, b.bitcast(start, dtypes.U64), constant(last, dtypes.U64))
    return b.bitcast(least, dtypes.I64)


def slice_window(equation: Equation, index: Sequence[Affine]) -> Window:
    """Return the window of a dynamic_slice at an index of its result."""
    operand, *starts = equation.inputs
    return moved_window(operand.type, starts, equation.params["slice_sizes"], index)


def update_window(equation: Equation, index: Sequence[Affine]) -> Window:
    """Return the window of a dynamic_update_slice at an index of its update."""
    operand, update, *starts = equation.inputs
    return moved_window(operand.type, starts, update.type.shape, index)


def moved_window(operand: Type, starts: Sequence[Atom], sizes: Sequence[int], index: Sequence[Affine]) -> Window:
    """Return the window of a slice, moved into bounds where it would extend past the operand."""

    def locate(b: Builder, sites: FaultSites, found: Sequence[Element]) -> tuple[list[Affine], None]:
        place = []
        for i, (start,), n, taken in zip(index, found, operand.shape, sizes, strict=True):
            if isinstance(start, Constant):
                place.append(shifted(i, min(max(int(start.value), 0), n - taken)))
                continue
            clamped = b.compute(ScalarOp.MIN, b.compute(ScalarOp.MAX, _signed(b, start), 0), n - taken)
            place.append(plus(i, of_operand(clamped)))
        return place, None

    return Window([(start, ()) for start in starts], (), locate)


def fill_element(type: Type, value: Any) -> Element:
    """Return the result of masked reads: the fill value, or zero."""
    given = 0 if value is None else value
    if isinstance(type, KeyType):
        return (constant(given, dtypes.U32),) * 2
    assert isinstance(type, ArrayType)
    if dtypes.is_complex(type.dtype):
        real = dtypes.real_dtype(type.dtype)
        number = complex(given)
        return (constant(number.real, real), constant(number.imag, real))
    return (constant(given, type.dtype),)
