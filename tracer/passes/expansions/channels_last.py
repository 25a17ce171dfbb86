"""Convolutions of arrays with channels last in memory, as products with a matrix of windows.

The nests of `schedule.convolutions` vectorise along the last spatial axis. In NHWC arrays its elements are strided, and
in gradients by windows each of them is gathered. Here rows of windows are contiguous in memory, and the other matrix
has the layout that the product needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tracer.ir import dtypes
from tracer.ir import shape as shapes
from tracer.ir.program import Equation
from tracer.ir.target import Machine
from tracer.ir.types import ArrayType
from tracer.passes.base.rewriter import Rewriter
from tracer.primitives.arrays.slice_pad_concatenate import pad
from tracer.primitives.arrays.sliding_windows import padded_sizes, positions, sliding_windows
from tracer.primitives.base.shapes import reshape, transpose, transpose_p
from tracer.primitives.linalg.convolution import conv_p
from tracer.primitives.linalg.dot_general import contract
from tracer.trace.trace import Operand, as_literal

FEATURES: Final = 1
BATCH: Final = 0
"""Axis of lhs that is last in memory: its features, or the batch in gradients by a window."""

_MIN: Final = 8  # elements of the last axis: half a vector of f32
_MATRIX_BYTES: Final = {FEATURES: 1 << 22, BATCH: 1 << 23}


def last_channels(equation: Equation, at: Rewriter, machine: Machine) -> int | None:
    """Return FEATURES or BATCH if the equation is a convolution that is faster as a product of matrices, else None."""
    if equation.primitive is not conv_p:
        return None
    lhs, rhs, params = equation.inputs[0].type, equation.inputs[1].type, equation.params
    moved = at.definition(equation.inputs[0], transpose_p)
    if moved is None or not isinstance(lhs, ArrayType) or lhs.dtype not in (dtypes.F32, dtypes.F64):
        return None
    rank, order = len(params["strides"]), moved.params["permutation"]
    along = tuple(range(1, 1 + rank))
    last = {(0, 1 + rank, *along): FEATURES, (1 + rank, 0, *along): BATCH}.get(order)
    plain = rank and params["feature_groups"] == params["batch_groups"] == 1 and set(params["lhs_dilation"]) == {1}
    if last is None or not plain or 0 in (*lhs.shape, *rhs.shape) or lhs.shape[last] < _MIN:
        return None
    window, strides = rhs.shape[2:], params["strides"]
    padded = padded_sizes(lhs.shape[2:], params["padding"], params["lhs_dilation"])
    outs = positions(padded, window, strides, params["rhs_dilation"])
    points = shapes.size(window) == 1
    matrix = lhs.shape[0] * lhs.shape[1] * shapes.size(outs) * shapes.size(window) * lhs.dtype.itemsize
    if 0 in outs or (matrix > _MATRIX_BYTES[last] and not points):
        return None
    few = outs[-1] * lhs.dtype.itemsize < machine.vector_bytes
    gathered = window[-1] > outs[-1] if last == BATCH else points or few or strides[-1] > 1
    return last if gathered else None


def as_product(equation: Equation, operands: Sequence[Any], last: int) -> list[Operand]:
    """Write the convolution as a product, with axis `last` of its first operand in the last position."""
    params: Any = equation.params
    lhs, rhs = operands
    dtype = lhs.type.dtype
    rank, window = len(params["strides"]), rhs.type.shape[2:]
    spatial, within = tuple(range(1, 1 + rank)), tuple(range(2 + rank, 2 + 2 * rank))
    image = transpose(lhs, (1 - last, *range(2, 2 + rank), last))
    if any(map(any, params["padding"])):
        around = [(0, 0, 0), *((low, high, 0) for low, high in params["padding"]), (0, 0, 0)]
        image = pad(image, as_literal(dtype.type(0), dtype), around)
    windows = sliding_windows(image, spatial, window, params["strides"], params["rhs_dilation"])
    others, *outs, channels = windows.shape[: 2 + rank]
    features, inner = rhs.type.shape[0], rhs.type.shape[1] * shapes.size(window)
    if last == FEATURES:
        rows = reshape(transpose(windows, (0, *spatial, *within, 1 + rank)), (others * shapes.size(outs), inner))
        weights = reshape(transpose(rhs, (*range(2, 2 + rank), 1, 0)), (inner, features))
        contracted, order = ((1,), (0,)), (0, 1 + rank, *spatial)
        shape = (others, *outs, features)
    else:
        rows = reshape(transpose(windows, (0, *within, *spatial, 1 + rank)), (inner, shapes.size(outs) * channels))
        weights = reshape(transpose(rhs, (1, *range(2, 2 + rank), 0)), (inner, features))
        contracted, order = ((0,), (0,)), (rank, 1 + rank, *range(rank))
        shape = (*outs, channels, features)
    numbers: Any = (contracted, ((), ()))
    result = contract(rows, weights, numbers, params["precision"], params["preferred_element_type"])
    return [transpose(reshape(result, shape), order)]
