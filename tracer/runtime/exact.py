"""Which programs compiled code computes to the bits of eager execution; and float sums in NumPy's order.

Eager execution runs most equations by NumPy. Elementwise operations, moves, comparisons and what combines integers
have one result; functions run by the same compiled loops either way. NumPy's sums of floats depend on its order, which
for small arrays is written out here in additions: eight partial sums along contiguous elements (pairwise summation,
NumPy's `loops_utils.h`), four of complex ones, one after another along every other axis. Products and running sums go
one after another. Products with short vectors are written out, too; those of small matrices are tried: see
`is_small_product`.
NaN is one value: which of several comes through is nobody's promise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from tracer.ir import dtypes
from tracer.ir import shape as shapes
from tracer.ir.primitive import (
    Alias,
    ArgReduce,
    Compare,
    Composite,
    Convert,
    Eager,
    Effect,
    Gather,
    Generate,
    IndexMap,
    Join,
    Library,
    Pointwise,
    Reduce,
    Scan,
    Scatter,
    Structured,
)
from tracer.ir.program import Equation, Literal, Program
from tracer.ir.scalar import MATH_FUNCTIONS, ScalarOp
from tracer.ir.types import ArrayType
from tracer.ir.visit import equations
from tracer.primitives.arrays.slice_pad_concatenate import concatenate, slice_in_dim
from tracer.primitives.base.broadcasting import broadcast_in_dim
from tracer.primitives.base.shapes import reshape, squeeze, transpose
from tracer.primitives.elementwise.arithmetic import add, mul
from tracer.primitives.linalg.matvec_strategies import Way, summed_axis, way_of
from tracer.trace.array import Array
from tracer.trace.evaluate import read
from tracer.trace.stage import stage
from tracer.trace.state import state
from tracer.trace.trace import Operand, bind_all

_EXACT = (Pointwise, Compare, Convert, IndexMap, Generate, Join, Gather, ArgReduce, Alias)
_PARTS = (Structured("imag"), Structured("complex"))  # of complex numbers, moved
_LANES = {dtypes.F32: 8, dtypes.F64: 8, dtypes.C64: 4, dtypes.C128: 4}  # partial sums that NumPy keeps
_MOST_ALONG = 16  # elements of each that NumPy adds up in one go; longer rows are halved
_MOST_PRODUCTS = 1 << 18  # of numbers in a product of matrices: on one thread, here and there
_MOST_STEPS = 32  # additions that follow one another, each an operation in the program


def exact_program(program: Program) -> Program | None:
    """A program that compiled code computes to the bits that eager execution of the given one has; None if none is
    known."""
    written = [_written_out(equation) for equation in program.equations]
    if not all(way is not None or is_exact(e) for way, e in zip(written, program.equations, strict=True)):
        return None
    if not any(written):
        return program

    def run(inputs: list[Any]) -> list[Operand]:
        environment: dict[Any, Operand] = dict(zip(program.inputs, inputs, strict=True))
        for equation, way in zip(program.equations, written, strict=True):
            state.source = equation.source
            xs = [read(environment, atom) for atom in equation.inputs]
            ys = bind_all(equation.primitive, xs, equation.params) if way is None else [way(*xs)]
            environment.update(zip(equation.outputs, ys, strict=True))
        return [read(environment, atom) for atom in program.outputs]

    outer = state.source
    try:
        return stage(run, program.input_types, name=program.name).program
    finally:
        state.source = outer


def is_exact(equation: Equation) -> bool:
    """Whether the equation has the same bits by itself, run eagerly, and within a compiled program."""
    primitive, lower = equation.primitive, equation.primitive.lower
    if primitive.eager is Eager.COMPILED:
        return not equation.effects - {Effect.FAULT} and not any(map(_multiplies, _nested(equation)))
    if isinstance(lower, Library):
        whole = lower.routine == "dot" and not _has(equation, dtypes.is_inexact)
        return whole or lower.routine == "sort" or is_small_product(equation)
    if isinstance(lower, Composite):
        kernel = primitive.splat and _has(equation, dtypes.is_complex)  # of its own: see `runtime.eager`
        return kernel or all(map(_is_spelt_alike, _expanded(equation, lower)))
    if isinstance(lower, Reduce | Scan):
        return lower.op in (ScalarOp.MAX, ScalarOp.MIN) or not _has(equation, dtypes.is_inexact)
    if isinstance(lower, Scatter):
        return lower.op is None or not _has(equation, _is_narrow)  # both go in order
    return isinstance(lower, _EXACT) or lower in _PARTS


def _expanded(equation: Equation, lower: Composite) -> list[Equation]:
    """The equations that a composite stands for."""

    def expanded(inputs: list[Any]) -> list[Operand]:
        given = iter(inputs)
        xs = [x if isinstance(x, Literal) else next(given) for x in equation.inputs]
        y = lower.expand(*xs, **equation.params)
        return list(y) if equation.primitive.multiple else [y]

    program = stage(expanded, [x.type for x in equation.inputs if not isinstance(x, Literal)]).program
    return [*program.equations, *(inner for e in program.equations for inner in _nested(e))]


def _is_spelt_alike(equation: Equation) -> bool:
    """Whether a part of a composite is no function that NumPy has in other bits: arithmetic, moves, whole numbers."""
    lower = equation.primitive.lower
    if isinstance(lower, Composite):
        return all(map(_is_spelt_alike, _expanded(equation, lower)))
    if isinstance(lower, Structured) or not _has(equation, dtypes.is_inexact):
        return True  # a loop's own equations are looked at, too
    return not (isinstance(lower, Pointwise) and lower.op in MATH_FUNCTIONS) and is_exact(equation)


def _nested(equation: Equation) -> list[Equation]:
    return [inner for _, program in equation.nested() for inner in equations(program)]


def _multiplies(equation: Equation) -> bool:
    """Whether the equation goes to a library whose order may depend on what stands around it."""
    return isinstance(equation.primitive.lower, Library) and equation.primitive.lower.routine != "sort"


def is_small_product(equation: Equation) -> bool:
    """Whether the equation is a product of matrices that both ways may add up in the same order.

    Our kernels add in the order of the inner axis, as OpenBLAS's do for small matrices of f64, and a few of f32; which
    those are depends on the machine, so it must be tried.
    """
    lower = equation.primitive.lower
    if not (isinstance(lower, Library) and lower.routine == "dot"):
        return False
    types = [x.type for x in (*equation.inputs, *equation.outputs)]
    if not all(isinstance(t, ArrayType) and len(t.shape) == 2 and t.dtype in (dtypes.F32, dtypes.F64) for t in types):
        return False
    return math.prod(size for t in types for size in t.shape) <= _MOST_PRODUCTS**2


def _added_up(equation: Equation) -> tuple[Way, int] | None:
    """For a product with a short vector, which eager execution adds up in NumPy's order: its way, along which axis."""
    lower = equation.primitive.lower
    if not (isinstance(lower, Library) and lower.routine == "dot"):
        return None
    x, y = (a.type for a in equation.inputs)
    assert isinstance(x, ArrayType)
    assert isinstance(y, ArrayType)
    way = way_of(x.shape, y.shape, equation.params["dimension_numbers"])
    axis = summed_axis(way, x.dtype) if x.dtype == y.dtype == equation.params["preferred_element_type"] else None
    return None if axis is None else (way, axis)


def _has(equation: Equation, kind: Callable[[Any], bool]) -> bool:
    types = [x.type for x in (*equation.inputs, *equation.outputs)]
    return any(isinstance(type, ArrayType) and kind(type.dtype) for type in types)


def _is_narrow(dtype: Any) -> bool:
    """Whether numbers are floats that are not added as they are, or complex."""
    return dtypes.is_inexact(dtype) and dtype not in (dtypes.F32, dtypes.F64)


# NumPy's order


def _written_out(equation: Equation) -> Callable[..., Operand] | None:
    """What combines floats along axes as a function that follows NumPy; None for what need not be, or is too long."""
    lower = equation.primitive.lower
    added = _added_up(equation)
    if added is not None:
        return lambda x, y: _product(x, y, *added)
    if not isinstance(lower, Reduce | Scan) or lower.op not in (ScalarOp.ADD, ScalarOp.MUL):
        return None
    (x,) = equation.inputs
    if isinstance(x, Literal) or not isinstance(x.type, ArrayType) or x.type.dtype not in _LANES:
        return None
    if lower.op is ScalarOp.MUL and dtypes.is_complex(x.type.dtype):
        return None
    combine, shape = add if lower.op is ScalarOp.ADD else mul, x.type.shape
    if isinstance(lower, Scan):
        axis, reverse = equation.params["axis"], equation.params["reverse"]
        return (lambda x: _running(combine, x, axis, reverse)) if 0 < shape[axis] <= _MOST_STEPS else None
    axes = equation.params["axes"]
    steps = _steps(_merged(shape, axes), _LANES[x.type.dtype] if combine is add else None)
    return (lambda x: _reduced(combine, x, axes)) if steps is not None and steps <= _MOST_STEPS else None


def _merged(shape: Sequence[int], axes: Sequence[int]) -> list[tuple[int, bool]]:
    """The axes as NumPy walks them: neighbours of a kind are one, (size, whether it is reduced)."""
    merged: list[tuple[int, bool]] = []
    for axis, n in enumerate(shape):
        reduced = axis in axes
        if n != 1 and merged and merged[-1][1] == reduced:
            merged[-1] = (merged[-1][0] * n, reduced)
        elif n != 1:
            merged.append((n, reduced))
    return merged


def _steps(merged: list[tuple[int, bool]], lanes: int | None) -> int | None:
    """How many additions follow one another; None where NumPy's order is not the one below, or nothing is there."""
    steps = 0
    for place, (n, reduced) in enumerate(merged):
        if n == 0:
            return None
        last = place == len(merged) - 1
        if reduced and last and lanes is not None:
            if n > _MOST_ALONG * lanes:
                return None
            steps += n // lanes + n % lanes + 3
        elif reduced:
            steps = max(steps, 1) * n
    return steps


def _reduced(combine: Callable[[Any, Any], Any], x: Array, axes: Sequence[int]) -> Any:
    kept = [n for axis, n in enumerate(x.shape) if axis not in axes]
    merged = _merged(x.shape, axes)
    y = reshape(x, [n for n, _ in merged])
    if combine is add and merged and merged[-1][1]:
        y = _pairwise(y)
        merged = merged[:-1]
    others = [axis for axis, (_, reduced) in enumerate(merged) if reduced]
    if others:
        places = [*others, *(axis for axis, (_, reduced) in enumerate(merged) if not reduced)]
        y = transpose(y, places)
        y = reshape(y, (math.prod(y.shape[: len(others)]), *y.shape[len(others) :]))
        y = _in_turn(combine, y, 0)
    return reshape(add(y, 0.0) if combine is add else y, kept)  # NumPy begins with 0: nothing sums up to -0


def _pairwise(x: Any) -> Any:
    """The sums along the last axis by partial sums, which are joined in pairs; the rest follows in turn."""
    n, lanes = x.shape[-1], _LANES[x.dtype]
    whole = n - n % lanes
    if not whole:
        return _in_turn(add, x, -1)
    total = slice_in_dim(x, 0, lanes, axis=-1)
    for first in range(lanes, whole, lanes):
        total = add(total, slice_in_dim(x, first, first + lanes, axis=-1))
    while total.shape[-1] > 1:
        total = add(slice_in_dim(total, 0, None, 2, axis=-1), slice_in_dim(total, 1, None, 2, axis=-1))
    total = squeeze(total, (total.ndim - 1,))
    for place in range(whole, n):
        total = add(total, _element(x, place, -1))
    return total


def _in_turn(combine: Callable[[Any, Any], Any], x: Any, axis: int) -> Any:
    total = _element(x, 0, axis)
    for place in range(1, x.shape[axis]):
        total = combine(total, _element(x, place, axis))
    return total


def _product(x: Any, y: Any, way: Way, axis: int) -> Any:
    """A product with a short vector, as `product_ways.added_up` has it."""
    x, y = (v if how is None else reshape(transpose(v, how[0]), how[1]) for v, how in ((x, way.left), (y, way.right)))
    factors = (x, transpose(y, (1, 0))) if axis == 1 else (transpose(x, (1, 0)), y)
    size = shapes.broadcast(*(v.shape for v in factors), operation="product")
    products = mul(*(v if v.shape == size else broadcast_in_dim(v, size, (0, 1)) for v in factors))
    return reshape(_reduced(add, products, (axis,)), way.result)


def _running(combine: Callable[[Any, Any], Any], x: Any, axis: int, reverse: bool) -> Any:
    """Every partial result along an axis."""
    places = range(x.shape[axis])
    parts = [slice_in_dim(x, place, place + 1, axis=axis) for place in (reversed(places) if reverse else places)]
    found = parts[:1]
    for part in parts[1:]:
        found.append(combine(found[-1], part))
    return concatenate(found[::-1] if reverse else found, axis)


def _element(x: Any, place: int, axis: int) -> Any:
    return squeeze(slice_in_dim(x, place, place + 1, axis=axis), (axis % x.ndim,))
