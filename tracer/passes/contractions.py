"""dot_general in the form that BLAS takes: [batch, m, k] x [batch, k, n], at most transposed within a batch."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from tracer.ir import dtypes
from tracer.ir.program import Equation
from tracer.ir.types import ArrayType
from tracer.primitives.arithmetic import mul
from tracer.primitives.bits import and_
from tracer.primitives.contractions import dot_general
from tracer.primitives.conversion import convert_element_type
from tracer.primitives.reductions import reduce_or, reduce_sum
from tracer.primitives.shapes import broadcast_in_dim, reshape, transpose

_BLAS = (dtypes.F32, dtypes.F64, dtypes.C64, dtypes.C128)


def canonical_dot(equation: Equation) -> Callable[[Any, Any], Any] | None:
    """The product as a function that writes its canonical form; None where it has that form already."""
    lhs, rhs = (atom.type for atom in equation.inputs)
    result = equation.outputs[0].type
    assert isinstance(lhs, ArrayType) and isinstance(rhs, ArrayType) and isinstance(result, ArrayType)
    numbers = equation.params["dimension_numbers"]
    compute = dtypes.accumulator_dtype(result.dtype)
    if _is_canonical(lhs, rhs, numbers) and lhs.dtype == rhs.dtype == result.dtype == compute and compute in _BLAS:
        return None
    return lambda x, y: _canonical(x, y, lhs, rhs, numbers, compute, result)


def _is_canonical(lhs: ArrayType, rhs: ArrayType, numbers: Any) -> bool:
    (left, right), (left_batch, right_batch) = numbers
    rank = len(left_batch)
    leading = tuple(range(rank))
    return (
        len(left) == 1 and left_batch == leading and right_batch == leading and rank <= 1
        and len(lhs.shape) == rank + 2 and len(rhs.shape) == rank + 2
    )  # fmt: skip


def _canonical(x: Any, y: Any, lhs: ArrayType, rhs: ArrayType, numbers: Any, compute: Any, result: ArrayType) -> Any:
    (left, right), (left_batch, right_batch) = numbers
    left_free = _free(len(lhs.shape), left, left_batch)
    right_free = _free(len(rhs.shape), right, right_batch)
    batch = tuple(lhs.shape[a] for a in left_batch)
    rows, inner = tuple(lhs.shape[a] for a in left_free), tuple(lhs.shape[a] for a in left)
    columns = tuple(rhs.shape[a] for a in right_free)
    a, swapped_a = _arranged(x, left_batch, left_free, left, lhs.shape, compute)
    b, straight_b = _arranged(y, right_batch, right_free, right, rhs.shape, compute)
    lead = (prod(batch),) if batch else ()
    if compute in _BLAS:
        rank = len(lead)
        contract = ((rank if swapped_a else rank + 1,), (rank if straight_b else rank + 1,))
        axes = tuple(range(rank))
        product = dot_general(a, b, (contract, (axes, axes)), preferred_element_type=compute)
    else:
        product = _by_sums(a, b, swapped_a, straight_b, lead, prod(rows), prod(inner), prod(columns))
    product = reshape(product, (*batch, *rows, *columns))
    return convert_element_type(product, result.dtype) if result.dtype != compute else product


def _free(rank: int, contracted: tuple[int, ...], batch: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(a for a in range(rank) if a not in contracted and a not in batch)


def _arranged(
    x: Any, batch: tuple[int, ...], free: tuple[int, ...], contracted: tuple[int, ...], shape: tuple[int, ...], dtype: Any
) -> tuple[Any, bool]:
    """The operand as [batch, free, contracted], or [batch, contracted, free] where it lies so; and which it is."""
    lies_swapped = batch + contracted + free == tuple(range(len(shape)))
    order = batch + (contracted + free if lies_swapped else free + contracted)
    m, k = prod(shape[a] for a in free), prod(shape[a] for a in contracted)
    lead = (prod(shape[a] for a in batch),) if batch else ()
    arranged = x if order == tuple(range(len(shape))) else transpose(x, order)
    arranged = reshape(arranged, (*lead, k, m) if lies_swapped else (*lead, m, k))
    return (arranged if x.type.dtype == dtype else convert_element_type(arranged, dtype)), lies_swapped


def _by_sums(
    a: Any, b: Any, swapped_a: bool, straight_b: bool, lead: tuple[int, ...], m: int, k: int, n: int
) -> Any:
    """Integers and booleans: products summed by a loop nest of our own, which wraps."""
    rank = len(lead)
    full = (*lead, m, n, k)
    axes = tuple(range(rank))
    left = broadcast_in_dim(a, full, (*axes, rank + 2, rank) if swapped_a else (*axes, rank, rank + 2))
    right = broadcast_in_dim(b, full, (*axes, rank + 2, rank + 1) if straight_b else (*axes, rank + 1, rank + 2))
    if dtypes.is_bool(left.type.dtype):
        return reduce_or(and_(left, right), (rank + 2,))
    return reduce_sum(mul(left, right), (rank + 2,))
