"""Ranges of integers, from the min to the max that an array may hold, for comparisons and index checks.

A range follows from the few equations that make an array. Indices within bounds need no check:
`x[jnp.clip(i, 0, n - 1)]`, tables of 256 for bytes, indices made by `arange`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from tracer.ir import dtypes
from tracer.ir.primitive import Primitive
from tracer.ir.program import Atom, Equation, Literal, Var
from tracer.passes.algebra.identities import dtype_of, is_literal, limits_of
from tracer.passes.base.rewriter import Rewriter
from tracer.passes.base.rules import Rules
from tracer.primitives.arrays.dynamic_slice import dynamic_slice_p
from tracer.primitives.arrays.indexing.checked_indices import checked_indices_p
from tracer.primitives.arrays.indexing.dimension_numbers import Bound, GatherScatterMode, bounds_of
from tracer.primitives.arrays.indexing.gather import gather_p, scatter_add_p
from tracer.primitives.arrays.indexing.scatter import scatter_max_p, scatter_min_p, scatter_p
from tracer.primitives.arrays.slice_pad_concatenate import concatenate_p, slice_p
from tracer.primitives.arrays.sorting import sort_p
from tracer.primitives.base.broadcasting import broadcast_in_dim_p
from tracer.primitives.base.shapes import copy_p, iota_p, reshape_p, rev_p, squeeze_p, transpose_p
from tracer.primitives.control.scatter_mul import scatter_mul_p
from tracer.primitives.elementwise.arithmetic import add_p, max_p, min_p, mul_p, neg_p, sub_p
from tracer.primitives.elementwise.bits import and_p
from tracer.primitives.elementwise.comparison import eq_p, ge_p, gt_p, le_p, lt_p, ne_p, select_p
from tracer.primitives.elementwise.conversion import convert_element_type_p
from tracer.primitives.elementwise.rounding import rem_p

Range = tuple[int, int]

_MAX_STEPS: Final = 32  # examined equations for one range
_MOVES: Final = (
    broadcast_in_dim_p, copy_p, dynamic_slice_p, reshape_p, rev_p, slice_p, squeeze_p, transpose_p,
)  # fmt: skip


def range_of(atom: Atom, at: Rewriter) -> Range | None:
    """Return the min and the max that an integer atom may hold; None for other dtypes."""
    dtype = dtype_of(atom)
    return _Search(at).of(atom) if dtype is not None and dtypes.is_integer(dtype) else None


class _Search:
    """Search backwards through the equations that make an atom, limited to `_MAX_STEPS`."""

    def __init__(self, at: Rewriter) -> None:
        self.at = at
        self.left = _MAX_STEPS

    def of(self, atom: Atom) -> Range:
        """Return the range of integers, or of bools as 0 and 1."""
        if isinstance(atom, Literal):
            return int(atom.value), int(atom.value)
        dtype = dtype_of(atom)
        assert dtype is not None
        lowest, highest = map(int, limits_of(dtype))
        made = self.at.definitions.get(atom)
        if made is None or self.left == 0 or 0 in atom.type.shape:
            return self.at.ranges.get(atom, (lowest, highest))
        self.left -= 1
        found = self._made(made, atom)
        fits = found is not None and lowest <= found[0] and found[1] <= highest  # else the integers wrap
        return found if found is not None and fits else (lowest, highest)

    def _made(self, made: Equation, atom: Var) -> Range | None:
        primitive, inputs = made.primitive, made.inputs
        if primitive in _MOVES:
            return self.of(inputs[0])
        if primitive is iota_p:
            return 0, made.outputs[0].type.shape[made.params["dimension"]] - 1
        if primitive is concatenate_p:
            return _both([self.of(part) for part in inputs if 0 not in part.type.shape])
        if primitive is sort_p:
            return self.of(inputs[made.outputs.index(atom)])
        if primitive is select_p:
            return self._chosen(made)
        if primitive is convert_element_type_p:
            dtype = dtype_of(inputs[0])
            whole = dtype is not None and (dtypes.is_integer(dtype) or dtypes.is_bool(dtype))
            return self.of(inputs[0]) if whole else None
        formula = _FORMULAS.get(primitive)
        if formula is None or dtype_of(atom) == dtypes.BOOL:
            return None
        return formula(*map(self.of, inputs))

    def _chosen(self, made: Equation) -> Range:
        """Return the range of a select.

        For select(x < 0, x + n, x), the form of wrapped indices and remainders, each arm counts only where it is
        chosen.
        """
        which, on_true, on_false = made.inputs
        (low, high), other = self.of(on_false), self.of(on_true)
        if isinstance(on_false, Var) and _tells_negative(which, on_false, self.at):
            if low >= 0:
                return low, high
            moved = self.at.definition(on_true, add_p)
            if moved is not None and on_false in moved.inputs:
                n, most = self.of(moved.inputs[moved.inputs[0] is on_false])
                other = low + n, min(high, -1) + most
            return (min(0, other[0]), max(high, other[1])) if high >= 0 else other
        return min(low, other[0]), max(high, other[1])


def _tells_negative(which: Atom, x: Atom, at: Rewriter) -> bool:
    """Whether a predicate says that x < 0: by itself, or in conjunction with x != 0."""
    both = at.definition(which, and_p)
    tests = [which] if both is None else list(both.inputs)
    less = [test for test in tests if _compares(test, lt_p, x, at)]
    return bool(less) and all(test in less or _compares(test, ne_p, x, at) for test in tests)


def _compares(test: Atom, primitive: Primitive, x: Atom, at: Rewriter) -> bool:
    made = at.definition(test, primitive)
    return made is not None and made.inputs[0] is x and is_literal(made.inputs[1], 0)


def _both(ranges: Sequence[Range]) -> Range:
    return min(low for low, _ in ranges), max(high for _, high in ranges)


def _product(x: Range, y: Range) -> Range:
    ends = [a * b for a in x for b in y]
    return min(ends), max(ends)


def _remainder(x: Range, y: Range) -> Range | None:
    """Return the range of a remainder with the dividend's sign."""
    if y[0] <= 0:
        return None
    most = y[1] - 1
    return max(min(x[0], 0), -most), min(max(x[1], 0), most)


_FORMULAS: Final[dict[Primitive, Callable[..., Range | None]]] = {
    add_p: lambda x, y: (x[0] + y[0], x[1] + y[1]),
    sub_p: lambda x, y: (x[0] - y[1], x[1] - y[0]),
    mul_p: _product,
    neg_p: lambda x: (-x[1], -x[0]),
    max_p: lambda x, y: (max(x[0], y[0]), max(x[1], y[1])),
    min_p: lambda x, y: (min(x[0], y[0]), min(x[1], y[1])),
    rem_p: _remainder,
    and_p: lambda x, y: (0, min(r[1] for r in (x, y) if r[0] >= 0)) if max(x[0], y[0]) >= 0 else None,
}


# Rules


def compare_ranges(equation: Equation, at: Rewriter) -> Atom | None:
    """Decide a comparison of integers by their ranges."""
    x, y = (range_of(atom, at) for atom in equation.inputs)
    if x is None or y is None:
        return None
    primitive = equation.primitive
    if primitive in (gt_p, le_p):
        x, y = y, x
    if primitive in (eq_p, ne_p):
        outcome = False if x[1] < y[0] or y[1] < x[0] else None
        outcome = outcome if outcome is None or primitive is eq_p else True
    else:
        outcome = True if x[1] < y[0] else False if x[0] >= y[1] else None  # x < y
        outcome = outcome if outcome is None or primitive in (lt_p, gt_p) else not outcome
    return None if outcome is None else at.number(outcome, equation.outputs[0].type)


def extreme_of_ranges(equation: Equation, at: Rewriter) -> Atom | None:
    """Decide max and min of integers by their ranges."""
    x, y = equation.inputs
    first, second = range_of(x, at), range_of(y, at)
    if first is None or second is None:
        return None
    for atom, (low, high), (least, most) in ((x, first, second), (y, second, first)):
        if (low >= most) if equation.primitive is max_p else (high <= least):
            return at.fit(atom, equation.outputs[0].type)
    return None


def access_within_bounds(equation: Equation, at: Rewriter) -> Atom | None:
    """Drop the bounds check of a gather or scatter whose indices are within bounds."""
    operand, indices = equation.inputs[:2]
    params, shape = equation.params, operand.type.shape
    if params["mode"] is not GatherScatterMode.CHECKED:
        return None
    numbers = params["dimension_numbers"]
    if equation.primitive is gather_p:
        bounds = bounds_of(shape, numbers, params["slice_sizes"])
    else:
        sizes = numbers.slice_sizes(len(shape), equation.inputs[2].type.shape)
        bounds = bounds_of(shape, numbers.as_gather, sizes)
    if not _within(indices, bounds, at):
        return None
    settled = {**params, "mode": GatherScatterMode.PROMISE_IN_BOUNDS}
    return at.emit(equation.primitive, *equation.inputs, **settled)


def indices_within_bounds(equation: Equation, at: Rewriter) -> Atom | None:
    """Drop a check of indices that are within bounds."""
    indices = equation.inputs[0]
    return indices if _within(indices, equation.params["bounds"], at) else None


def _within(indices: Atom, bounds: Sequence[Bound], at: Rewriter) -> bool:
    """Whether every component of the index vectors is within its bounds."""
    if not bounds:
        return False
    joined, last = at.definition(indices, concatenate_p), len(indices.type.shape) - 1
    if joined is None or joined.params["dimension"] != last:
        parts: list[Atom] = [indices] * len(bounds)
    else:
        parts = [part for part in joined.inputs for _ in range(part.type.shape[last])]
    ranges: dict[Atom, Range | None] = {}
    for part, bound in zip(parts, bounds, strict=True):
        if part not in ranges:
            ranges[part] = range_of(part, at)
        found = ranges[part]
        if found is None or found[0] < 0 or found[1] > bound.last:
            return False
    return True


_SCATTERS: Final = (scatter_p, scatter_add_p, scatter_mul_p, scatter_min_p, scatter_max_p)

RANGES: Final[Rules] = (
    ((eq_p, ne_p, lt_p, le_p, gt_p, ge_p), (compare_ranges,)),
    ((max_p, min_p), (extreme_of_ranges,)),
    ((gather_p, *_SCATTERS), (access_within_bounds,)),
    ((checked_indices_p,), (indices_within_bounds,)),
)
