"""Index of the max or min, argmax and argmin, as a reduction and a search; by blocks in a long vector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tracer.ir import dtypes
from tracer.ir.primitive import ArgReduce
from tracer.ir.program import Equation
from tracer.ir.scalar import ScalarOp
from tracer.ir.target import Target
from tracer.ir.types import ArrayType
from tracer.passes.base.rewriter import Rewriter
from tracer.primitives.arrays.dynamic_slice import dynamic_slice
from tracer.primitives.arrays.reductions.reductions import reduce_max, reduce_min
from tracer.primitives.arrays.slice_pad_concatenate import concatenate, slice
from tracer.primitives.base.shapes import broadcast_in_dim, broadcasted_iota, reshape, reshape_p
from tracer.primitives.elementwise.arithmetic import add, min, mul
from tracer.primitives.elementwise.bits import or_
from tracer.primitives.elementwise.comparison import eq, ne, select
from tracer.primitives.elementwise.conversion import convert_element_type
from tracer.trace.trace import Operand, as_literal

_STEP: Final = 64  # elements: four vectors of f32
_MIN_BLOCKS: Final = 4
_EXTREME: Final = {ScalarOp.MAX: reduce_max, ScalarOp.MIN: reduce_min}


def arg_reduce(x: Any, op: ScalarOp, *, axis: int, index_dtype: Any) -> Any:
    """Return the smallest index whose element equals the extreme; a NaN counts as extreme."""
    extreme = _EXTREME[op](x, (axis,))
    return _first_equal(x, extreme, axis, index_dtype)


def block_of(equation: Equation, at: Rewriter, target: Target) -> int:
    """Return the elements of a block where a long vector in memory is searched by blocks, else 0."""
    if not target.blocks.extreme or not isinstance(equation.primitive.lower, ArgReduce):
        return 0
    operand, block = equation.inputs[0], target.blocks.extreme
    if len(operand.type.shape) != 1:
        return 0
    reshaped = at.definition(operand, reshape_p)
    source = operand if reshaped is None else reshaped.inputs[0]
    is_long = source not in at.definitions and operand.type.shape[0] >= _MIN_BLOCKS * block
    return block if is_long else 0


def in_blocks(equation: Equation, operands: Sequence[Operand], *, block: int) -> list[Operand]:
    """Compute argmax or argmin of a long vector: reduce blocks, then search the first block that holds the extreme.

    If blocks do not divide the vector, the last one overlaps with the one before.
    """
    x, lower = operands[0], equation.primitive.lower
    assert isinstance(lower, ArgReduce)
    extreme_of, (length,) = _EXTREME[lower.op], x.type.shape
    size = _dividing(length, block)
    whole, rest = divmod(length, size)
    extremes = extreme_of(reshape(slice(x, (0,), (whole * size,)), (whole, size)), (1,))
    if rest:
        last = extreme_of(slice(x, (length - size,), (length,)), (0,))
        extremes = concatenate([extremes, reshape(last, (1,))], 0)
    extreme = extreme_of(extremes, (0,))
    start = mul(_first_equal(extremes, extreme, 0, dtypes.I64), as_literal(size, dtypes.I64))
    if rest:
        start = min(start, as_literal(length - size, dtypes.I64))
    within = _first_equal(dynamic_slice(x, [start], (size,)), extreme, 0, dtypes.I64)
    return [convert_element_type(add(start, within), equation.params["index_dtype"])]


def _dividing(length: int, block: int) -> int:
    """Return the block size: a whole number of vectors near `block` that divides the length, else `block`."""
    near = [n for n in range(block // 2, 2 * block + 1, _STEP) if length % n == 0]
    return sorted(near, key=lambda n: abs(n - block))[0] if near else block


def _first_equal(x: Any, extreme: Any, axis: int, index_dtype: Any) -> Any:
    """Return the smallest index along an axis that holds the extreme or a NaN."""
    type = x.type
    assert isinstance(type, ArrayType)
    others = tuple(a for a in range(len(type.shape)) if a != axis)
    found = eq(x, broadcast_in_dim(extreme, type.shape, others))
    if dtypes.is_float(type.dtype):
        found = or_(found, ne(x, x))
    narrow = dtypes.I32 if type.shape[axis] < 2**31 else dtypes.I64  # twice as many lanes in a vector
    position = broadcasted_iota(narrow, type.shape, axis)
    beyond = as_literal(type.shape[axis], narrow)
    first = reduce_min(select(found, position, beyond), (axis,))
    return convert_element_type(first, index_dtype)
