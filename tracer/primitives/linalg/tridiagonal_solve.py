"""Tridiagonal systems of equations: tridiagonal_solve, by elimination with partial pivoting."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracer.errors import ShapeError, message
from tracer.ir.primitive import Library, Primitive
from tracer.ir.types import Type
from tracer.primitives.arrays.slice_pad_concatenate import concatenate, slice_in_dim
from tracer.primitives.base.broadcasting import full
from tracer.primitives.base.rules import check_same_dtype, operand_of, per_operand
from tracer.primitives.elementwise.arithmetic import mul, neg
from tracer.primitives.linalg.lapack_calls import by_columns, by_rows, call_stack
from tracer.primitives.linalg.matrix_stacks import along_rows, in_front, matrix_type
from tracer.trace.source import here
from tracer.trace.trace import bind


def _infer(dl: Type, d: Type, du: Type, b: Type) -> Type:
    found = matrix_type("tridiagonal_solve", b, square=False)
    check_same_dtype("tridiagonal_solve", (dl, d, du, b))
    if not dl.shape == d.shape == du.shape == b.shape[:-1]:
        raise ShapeError(
            message(
                f"tridiagonal_solve{here()}: the sizes of the operands do not fit",
                f"got {dl}, {d}, {du} and {b}",
                help="all three diagonals are [*s, n], and b [*s, n, k]",
            )
        )
    return found


def _reference(dl: Any, d: Any, du: Any, b: Any) -> Any:
    n, k = b.shape[-2:]
    x = by_columns(b)
    if x.size:
        parts = {"dl": dl[..., 1:], "d": d, "du": du[..., :-1]}
        arrays = {name: np.array(part).reshape(len(x), part.shape[-1]) for name, part in parts.items()}
        call_stack("gtsv", b.dtype, {**arrays, "b": x}, {"n": n, "nrhs": k})
    return by_rows(x, b.shape)


def _shifted(x: Any, by: int, axis: int) -> Any:
    """Return elements moved by one towards higher indices (1) or lower ones (-1), zero where none was."""
    n, shape = x.type.shape[axis], list(x.type.shape)
    shape[axis] = 1
    zero = full(shape, 0, x.type.dtype)
    kept = slice_in_dim(x, 0, n - 1, axis=axis) if by > 0 else slice_in_dim(x, 1, n, axis=axis)
    return concatenate([zero, kept] if by > 0 else [kept, zero], axis)


def _times(by: int) -> Any:
    """Return the tangent for one diagonal: less the diagonal's tangent times the solution's rows."""

    def tangent(ctx: Any, dx: Any, dl: Any, d: Any, du: Any, b: Any) -> Any:
        x = ctx.outputs[0]
        moved = _shifted(x, by, len(x.type.shape) - 2) if by and x.type.shape[-2] else x
        return tridiagonal_solve(dl, d, du, neg(mul(along_rows(dx, moved.type.shape), moved)))

    return tangent


def _transpose(ctx: Any, cts: Any, xs: Any) -> list[Any]:
    """Return the solution for the transposed matrix, whose diagonals have changed places."""
    dl, d, du = (operand_of("tridiagonal_solve", x) for x in xs[:3])
    if not d.type.shape[-1]:
        return [None, None, None, cts[0]]
    axis = len(d.type.shape) - 1
    return [None, None, None, tridiagonal_solve(_shifted(du, 1, axis), d, _shifted(dl, -1, axis), cts[0])]


tridiagonal_solve_p: Primitive = Primitive(
    name="tridiagonal_solve", infer=_infer, reference=_reference,
    jvp=per_operand(
        _times(1), _times(0), _times(-1), lambda ctx, db, dl, d, du, b: tridiagonal_solve(dl, d, du, db)
    ),
    transpose=_transpose, batch=lambda ctx, xs, axes: in_front(ctx, xs, axes, {}), lower=Library("tridiagonal_solve"),
)  # fmt: skip


def tridiagonal_solve(dl: Any, d: Any, du: Any, b: Any) -> Any:
    """Return X with A X = b, for A[i, i - 1] = dl[i], A[i, i] = d[i] and A[i, i + 1] = du[i]."""
    return bind(tridiagonal_solve_p, dl, d, du, b)


TRIDIAGONAL_SOLVES = (tridiagonal_solve_p,)
"""The primitive of tridiagonal systems."""
