"""Operations on stacks of matrices: checks of types, triangles, adjoints, batching."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np

from tracer.errors import DTypeError, ShapeError, message
from tracer.ir import dtypes
from tracer.ir.types import ArrayType, Shape, Type
from tracer.primitives.arrays.slice_pad_concatenate import pad, slice_in_dim
from tracer.primitives.base.broadcasting import broadcast_in_dim
from tracer.primitives.base.rules import check_kinds
from tracer.primitives.base.shapes import broadcasted_iota, reshape, transpose
from tracer.primitives.elementwise.arithmetic import add, mul
from tracer.primitives.elementwise.comparison import eq, ge, select
from tracer.primitives.elementwise.complex import conj, is_complex
from tracer.primitives.elementwise.conversion import convert_element_type
from tracer.primitives.linalg.dot_general import batch_matmul
from tracer.trace.source import here
from tracer.trace.trace import as_literal

SMALL: Final = 16
"""Maximum size of matrices with loops of their own, many matrices side by side. Larger ones go to LAPACK."""

LAPACK_DTYPES: Final = (dtypes.F32, dtypes.F64, dtypes.C64, dtypes.C128)


# Types


def matrix_type(name: str, type: Type, *, square: bool = True) -> ArrayType:
    """Return the type of a stack of matrices. Raises DTypeError unless f32, f64, c64 or c128, ShapeError otherwise."""
    if not isinstance(type, ArrayType) or type.dtype not in LAPACK_DTYPES:
        check_kinds(name, [type], "fc")
        raise DTypeError(
            message(
                f"{name}{here()} computes in f32, f64, c64 and c128",
                f"got {type}",
                help='cast the operand, as with .astype("float32"), and the result back',
            )
        )
    if len(type.shape) < 2 or (square and type.shape[-1] != type.shape[-2]):
        raise ShapeError(
            message(
                f"{name}{here()} takes {'square ' * square}matrices in the last two axes",
                f"got {type}",
                help="check the axes; a vector is a matrix of one column, x[:, None]",
            )
        )
    return type


# Values


def triangle(x: Any, *, lower: bool, offset: int = 0, of_ones: bool = False) -> Any:
    """Set elements beyond a diagonal to zero: above the one at `offset` if `lower`, else below it.

    of_ones: set the main diagonal to ones.
    """
    rows, columns = _places(x.type.shape[-2:], offset)
    kept = ge(rows, columns) if lower else ge(columns, rows)
    result = select(spread(kept, x.type.shape), x, 0)
    return select(spread(eq(rows, columns), x.type.shape), 1, result) if of_ones else result


def halved(x: Any) -> Any:
    """Return the lower triangle with half the diagonal. With its adjoint it makes up the Hermitian matrix."""
    rows, columns = _places(x.type.shape[-2:], 0)
    weights = convert_element_type(select(eq(rows, columns), 0.5, 1.0), x.type.dtype)
    return triangle(mul(x, spread(weights, x.type.shape)), lower=True)


def _places(shape: Shape, offset: int) -> tuple[Any, Any]:
    """Return the row indices, shifted by `offset`, and the column indices of a matrix's elements."""
    rows, columns = (broadcasted_iota(dtypes.I32, shape, axis) for axis in (0, 1))
    return (add(rows, offset) if offset else rows), columns


def spread(matrix: Any, shape: Shape) -> Any:
    """Broadcast a matrix, or other trailing axes, to every matrix of a stack."""
    rank, own = len(shape), len(matrix.type.shape)
    return matrix if rank == own else broadcast_in_dim(matrix, shape, tuple(range(rank - own, rank)))


def identity(shape: Shape, dtype: Any) -> Any:
    """Return a stack of identity matrices."""
    rows, columns = _places(shape[-2:], 0)
    return spread(convert_element_type(eq(rows, columns), dtype), shape)


def diagonal(x: Any) -> Any:
    """Return the main diagonals of matrices [*s, m, n]: [*s, min(m, n)]."""
    *stack, m, n = x.type.shape
    k = min(m, n)
    square = x if m == n else slice_in_dim(slice_in_dim(x, 0, k, axis=-2), 0, k, axis=-1)
    return slice_in_dim(reshape(square, (*stack, k * k)), 0, k * k, k + 1, axis=-1)


def diagonal_matrix(x: Any) -> Any:
    """Return square matrices with vectors on their diagonals: [*s, n, n] from [*s, n]."""
    shape = (*x.type.shape, x.type.shape[-1])
    rows, columns = _places(shape[-2:], 0)
    return select(spread(eq(rows, columns), shape), along_columns(x, shape), 0)


def along_columns(x: Any, shape: Shape) -> Any:
    """Broadcast a vector [*s, n] to the columns of matrices: element [*s, i, j] is x[*s, j]."""
    rank = len(shape)
    return broadcast_in_dim(x, shape, (*range(rank - 2), rank - 1))


def along_rows(x: Any, shape: Shape) -> Any:
    """Broadcast a vector [*s, m] to the rows of matrices: element [*s, i, j] is x[*s, i]."""
    return broadcast_in_dim(x, shape, tuple(range(len(shape) - 1)))


def leading(x: Any, rows: int, columns: int) -> Any:
    """Return the first rows and columns of matrices."""
    return slice_in_dim(slice_in_dim(x, 0, rows, axis=-2), 0, columns, axis=-1)


def extended(x: Any, rows: int, columns: int) -> Any:
    """Return matrices with zeros behind their rows and columns, up to the given sizes."""
    shape, dtype = x.type.shape, x.type.dtype
    more = ((0, rows - shape[-2], 0), (0, columns - shape[-1], 0))
    if more == ((0, 0, 0), (0, 0, 0)):
        return x
    return pad(x, as_literal(dtype.type(0), dtype), [*[(0, 0, 0)] * (len(shape) - 2), *more])


def turned(x: Any) -> Any:
    """Transpose matrices."""
    rank = len(x.type.shape)
    return transpose(x, (*range(rank - 2), rank - 1, rank - 2))


def conjugate(x: Any) -> Any:
    """Return the complex conjugate; a real operand as it is."""
    return conj(x) if is_complex(x) else x


def adjoint(x: Any) -> Any:
    """Return the conjugate transposes of matrices."""
    return conjugate(turned(x))


def product(x: Any, y: Any) -> Any:
    """Multiply matrices, stack by stack, in the highest precision."""
    return batch_matmul(x, y, "highest")


# Rules


def in_front(ctx: Any, xs: Sequence[Any], axes: Sequence[int | None], params: dict[str, Any]) -> Any:
    """Batch an operation on stacks: the batch is one more axis in front."""
    operands = [ctx.to_front(x, axis) for x, axis in zip(xs, axes, strict=True)]
    outputs = ctx.bind_all(ctx.primitive, operands, params)
    return outputs, [0] * len(outputs)


def scipy_linalg(module: str, name: str) -> Callable[..., Any]:
    """Return a function of `scipy.linalg.blas` or `scipy.linalg.lapack`, imported at first use."""
    return getattr(importlib.import_module(f"scipy.linalg.{module}"), name)  # type: ignore[no-any-return]


LETTERS: Final = {dtypes.F32: "s", dtypes.F64: "d", dtypes.C64: "c", dtypes.C128: "z"}
"""Prefixes of BLAS and LAPACK for the dtypes."""


def stacked(shape: Shape) -> Iterable[tuple[int, ...]]:
    """Return the index of every matrix of a stack."""
    return np.ndindex(shape[:-2])


def steps_pay(sizes: Sequence[int], count: int) -> bool:
    """Return whether a reference steps through rows, all matrices at once, rather than calling LAPACK for each matrix.

    A call takes some 4 µs, a step 30.
    """
    return count > 8 * max(sizes, default=0)
