"""dot_general by BLAS. `passes.expand` has brought it to [batch, m, k] x [batch, k, n], transposed within at most."""

from __future__ import annotations

from math import prod

from tracer.errors import InternalError
from tracer.ir import dtypes
from tracer.ir.program import Equation
from tracer.ir.types import ArrayType
from tracer.schedule.blocks import BlockWriter

ROUTINES = {dtypes.F32: "gemm_f32", dtypes.F64: "gemm_f64", dtypes.C64: "gemm_c64", dtypes.C128: "gemm_c128"}
"""The matrix products by dtype: (a, b, out, batch, m, n, k, transpose a, transpose b, stride of a, stride of b)."""


def write_dot(writer: BlockWriter, equation: Equation) -> None:
    """One call of a matrix product for all batches."""
    (variable,), (lhs, rhs) = equation.outputs, equation.inputs
    ((left,), (right,)), (left_batch, _) = _axes(equation)
    batch_rank = len(left_batch)
    a, b = writer.memory_of(lhs), writer.memory_of(rhs)
    target = writer.target_of(variable)
    transpose_a, transpose_b = left == batch_rank, right != batch_rank
    batch = prod(lhs.type.shape[:batch_rank])
    k = lhs.type.shape[left]
    m = prod(lhs.type.shape[batch_rank:]) // k if k else _other(lhs.type.shape, batch_rank, left)
    n = prod(rhs.type.shape[batch_rank:]) // k if k else _other(rhs.type.shape, batch_rank, right)
    dtype = variable.type.dtype if isinstance(variable.type, ArrayType) else None
    if dtype not in ROUTINES:
        raise InternalError(f"no BLAS for {variable.type}")
    writer.builder.library(
        ROUTINES[dtype], a.view, b.view, target.view, batch, m, n, k, int(transpose_a), int(transpose_b), m * k, k * n
    )


def _axes(equation: Equation) -> tuple[tuple[tuple[int], tuple[int]], tuple[tuple[int, ...], tuple[int, ...]]]:
    contracted, batch = equation.params["dimension_numbers"]
    return contracted, batch


def _other(shape: tuple[int, ...], batch_rank: int, contracted: int) -> int:
    return prod(n for axis, n in enumerate(shape) if axis >= batch_rank and axis != contracted)
